/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The account that goes by replies: entries out, entries back, what it would have let go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "shadow.h"

static void entries_come_back_with_the_reply(void **state)
{
	struct shadow s;

	(void)state;
	shadow_init(&s, 7);
	assert_int_equal(s.used, 1); /* the drain's */
	shadow_posted(&s, 3, true);
	shadow_posted(&s, 2, false);
	assert_int_equal(s.used, 6);
	shadow_returned(&s, 3);
	shadow_returned(&s, 2);
	assert_int_equal(s.used, 1);
}

static void what_fits_would_have_been_let_go(void **state)
{
	struct shadow s;

	(void)state;
	shadow_init(&s, 7);
	shadow_posted(&s, 3, true);
	shadow_refused(&s, 4); /* 4 are used: one too many */
	assert_int_equal(s.overposts, 0);
	shadow_refused(&s, 3);
	assert_int_equal(s.overposts, 1);
	shadow_refused(&s, UINT32_MAX);
	assert_int_equal(s.overposts, 1);
}

/* One that waits is one, however often it asks; a revoke in between is nobody's turn. */
static void one_that_waits_counts_once(void **state)
{
	struct shadow s;

	(void)state;
	shadow_init(&s, 9);
	for (int i = 0; i < 5; i++)
		shadow_refused(&s, 3);
	assert_int_equal(s.overposts, 1);
	shadow_posted(&s, 1, false);
	shadow_refused(&s, 3);
	assert_int_equal(s.overposts, 1);
	shadow_posted(&s, 3, true);
	shadow_refused(&s, 3);
	assert_int_equal(s.overposts, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_come_back_with_the_reply),
		cmocka_unit_test(what_fits_would_have_been_let_go),
		cmocka_unit_test(one_that_waits_counts_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
