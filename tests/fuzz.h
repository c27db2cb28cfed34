/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the fuzzers share. The driver without libFuzzer is fuzz_main.c. */
#ifndef RXFER_TESTS_FUZZ_H
#define RXFER_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Called by libFuzzer, or by fuzz_main.c: aborts where @data brings out a defect, else 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts, so that both drivers keep the input. Never compiled out. */
#define FUZZ_CHECK(cond)                                                                   \
	do {                                                                               \
		if (!(cond)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                           \
		}                                                                          \
	} while (0)

/* One line of complaint, as users get them: printable ASCII, not empty. */
static inline void fuzz_check_line(const char *line)
{
	FUZZ_CHECK(*line);
	for (; *line; line++)
		FUZZ_CHECK(*line >= ' ' && *line <= '~');
}

#endif
