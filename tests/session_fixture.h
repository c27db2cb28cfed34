/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of a session's messages share. */
#ifndef RXFER_TESTS_SESSION_FIXTURE_H
#define RXFER_TESTS_SESSION_FIXTURE_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "prop.h"
#include "session.h"

static const uint8_t token[RXFER_TOKEN_BYTES] = {0x00, 0xff, 0x10, 0x01, 0xa0, 0x0a, 0x7f, 0x80,
						 0x99, 0xde, 0xad, 0xbe, 0xef, 0x0f, 0xf0, 0x00};

/* As it comes out at the other end of a connection; takes the reference. */
static inline json_t *travel(json_t *body)
{
	char *text = json_dumps(body, JSON_COMPACT);
	json_t *got;

	assert_non_null(text);
	assert_true(strlen(text) + 4 <= CONTROL_MAX_PAYLOAD);
	got = json_loads(text, 0, NULL);
	assert_non_null(got);
	free(text);
	json_decref(body);
	return got;
}

static inline void assert_says(const char *part)
{
	const char *error = rxfer_error();

	if (!strstr(error, part))
		fail_msg("no \"%s\" in: %s", part, error);
	for (const char *p = error; *p; p++)
		if (*p < ' ' || *p > '~')
			fail_msg("a byte 0x%02x in: %s", (unsigned char)*p, error);
}

#endif
