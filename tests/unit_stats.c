/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Medians, fitted lines and frequent differences, against values that are known. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "stats.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static void near(double a, double b)
{
	if (!(fabs(a - b) <= 1e-9 * fmax(1, fabs(b))))
		fail_msg("%.15g is not %.15g", a, b);
}

static void medians(void **state)
{
	double odd[] = {9, 1, 5}, even[] = {8, 2, 4, 1000}, one[] = {7}, same[] = {3, 3, 3, 3};

	(void)state;
	near(stats_median(odd, 3), 5);
	near(stats_median(even, 4),
	     6); /* the mean of the two in the middle; an outlier is nothing */
	near(stats_median(one, 1), 7);
	near(stats_median(same, 4), 3);
	assert_true(isnan(stats_median(one, 0)));
}

static void a_line_is_found_exactly(void **state)
{
	const double x[] = {1, 4, 16, 64, 256, 1024, 4096};
	double y[N(x)];
	struct fit f;

	(void)state;
	for (unsigned int i = 0; i < N(x); i++)
		y[i] = 1200 + 37.5 * x[i];
	assert_int_equal(stats_fit(x, y, N(x), &f), 0);
	near(f.a, 1200);
	near(f.b, 37.5);
	assert_true(f.worst < 1e-12);
}

/* 1 % at the largest point is more than the whole of a; it must not move a by more than that. */
static void a_large_point_does_not_drown_the_small_ones(void **state)
{
	const double x[] = {1, 4, 16, 64, 256, 1024, 4096};
	double y[N(x)];
	struct fit f;

	(void)state;
	for (unsigned int i = 0; i < N(x); i++)
		y[i] = 1200 + 37.5 * x[i];
	y[N(x) - 1] *= 1.01;
	assert_int_equal(stats_fit(x, y, N(x), &f), 0);
	assert_true(fabs(f.a - 1200) < 12);
	assert_true(f.b > 37.5 && f.b < 37.5 * 1.01);
	assert_true(f.worst > 0 && f.worst < 0.01);
}

/*
 * Three points that are on no line, by hand: x 0, 1, 2; y 1, 2, 2; weights 1, 1/4, 1/4. The normal
 * equations are 1.5 a + 0.75 b = 2 and 0.75 a + 1.25 b = 1.5: a = 22/21, b = 4/7.
 */
static void the_normal_equations(void **state)
{
	const double x[] = {0, 1, 2}, y[] = {1, 2, 2};
	struct fit f;

	(void)state;
	assert_int_equal(stats_fit(x, y, 3, &f), 0);
	near(f.a, 22.0 / 21);
	near(f.b, 4.0 / 7);
	near(f.worst, (2 - 34.0 / 21) / 2); /* at x = 1 */
}

static void no_line_follows(void **state)
{
	const double x[] = {5, 5, 5}, y[] = {1, 2, 3}, up[] = {1, 2, 3}, zero[] = {1, 0, 1};
	const double none[] = {1, NAN, 1};
	struct fit f = {.a = 42};

	(void)state;
	assert_int_equal(stats_fit(x, y, 3, &f), -EINVAL);
	assert_int_equal(stats_fit(up, y, 1, &f), -EINVAL);
	assert_int_equal(stats_fit(up, y, 0, &f), -EINVAL);
	assert_int_equal(stats_fit(up, zero, 3, &f), -EINVAL);
	assert_int_equal(stats_fit(up, none, 3, &f), -EINVAL);
	near(f.a, 42);
}

static void deltas_by_frequency(void **state)
{
	const uint32_t keys[] = {100, 356, 612, 600, 856, 844, 900};
	struct delta d[N(keys) - 1];

	(void)state;
	assert_int_equal(stats_deltas(keys, N(keys), d), 3);
	assert_int_equal(d[0].delta, 256);
	assert_int_equal(d[0].times, 3);
	assert_int_equal(d[1].delta, -12);
	assert_int_equal(d[1].times, 2);
	assert_int_equal(d[2].delta, 56);
	assert_int_equal(d[2].times, 1);
}

static void deltas_that_tie(void **state)
{
	const uint32_t keys[] = {10, 15, 12, 13};
	struct delta d[3];

	(void)state;
	assert_int_equal(stats_deltas(keys, 4, d), 3);
	assert_int_equal(d[0].delta, -3);
	assert_int_equal(d[1].delta, 1);
	assert_int_equal(d[2].delta, 5);
}

static void deltas_wrap_around(void **state)
{
	const uint32_t keys[] = {0xffffff00u, 0, 0x100, 0x80000100u};
	struct delta d[3];

	(void)state;
	assert_int_equal(stats_deltas(keys, 4, d), 2);
	assert_int_equal(d[0].delta, 256);
	assert_int_equal(d[0].times, 2);
	assert_int_equal(d[1].delta, INT32_MIN);
}

static void deltas_of_few(void **state)
{
	const uint32_t keys[] = {7, 7};
	struct delta d[1] = {{1, 9}};

	(void)state;
	assert_int_equal(stats_deltas(keys, 0, d), 0);
	assert_int_equal(stats_deltas(keys, 1, d), 0);
	assert_int_equal(d[0].times, 9);
	assert_int_equal(stats_deltas(keys, 2, d), 1);
	assert_int_equal(d[0].delta, 0);
	assert_int_equal(d[0].times, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(medians),
		cmocka_unit_test(a_line_is_found_exactly),
		cmocka_unit_test(a_large_point_does_not_drown_the_small_ones),
		cmocka_unit_test(the_normal_equations),
		cmocka_unit_test(no_line_follows),
		cmocka_unit_test(deltas_by_frequency),
		cmocka_unit_test(deltas_that_tie),
		cmocka_unit_test(deltas_wrap_around),
		cmocka_unit_test(deltas_of_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
