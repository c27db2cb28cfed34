/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The histogram against sorted samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "../bench/hist.h"

#define LONGEST ((UINT64_C(1) << HIST_MAX_BITS) - 1)
#define SAMPLES 20000

static uint64_t random_state = 1;

/* splitmix64 */
static uint64_t next(void)
{
	uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t uniform(void)
{
	return next() % 1000000;
}

static uint64_t log_uniform(void)
{
	return (LONGEST & next()) >> (next() % HIST_MAX_BITS);
}

static uint64_t bimodal(void)
{
	return next() % 2 ? 32000 + next() % 4000 : 8000000 + next() % 100000;
}

static uint64_t constant(void)
{
	return 4711;
}

static uint64_t small(void)
{
	return next() % 200;
}

static uint64_t borders(void)
{
	static const int64_t offsets[] = {-1, 0, 1};
	uint64_t v = (UINT64_C(1) << (next() % HIST_MAX_BITS)) + (uint64_t)offsets[next() % 3];

	return v > LONGEST ? LONGEST : v;
}

static uint64_t (*const distributions[])(void) = {uniform,  log_uniform, bimodal,
						  constant, small,	 borders};

#define DISTRIBUTIONS (sizeof(distributions) / sizeof(distributions[0]))

static const double shares[] = {0, 0.001, 0.1, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1};

#define SHARES (sizeof(shares) / sizeof(shares[0]))

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double exact_quantile(const uint64_t *sorted, uint64_t n, double q)
{
	uint64_t rank = (uint64_t)ceill((long double)q * n - 1e-9L);

	return (double)sorted[rank ? rank - 1 : 0];
}

static double error_of(const struct hist *h, const uint64_t *sorted, double q)
{
	double exact = exact_quantile(sorted, h->count, q);
	double got = hist_quantile(h, q, 0);

	assert_true(got >= (double)h->min && got <= (double)h->max);
	return got == exact ? 0 : fabs(got - exact) / exact;
}

static void check_moments(const struct hist *h, const uint64_t *v, uint64_t n)
{
	long double sum = 0, squares = 0, mean, deviation;

	for (uint64_t i = 0; i < n; i++)
		sum += v[i];
	mean = sum / n;
	for (uint64_t i = 0; i < n; i++)
		squares += (v[i] - mean) * (v[i] - mean);
	deviation = n > 1 ? sqrtl(squares / (n - 1)) : NAN;
	assert_true(fabsl(hist_mean(h) - mean) <= 1e-12L * mean);
	if (n > 1)
		assert_true(fabsl(hist_stdev(h) - deviation) <= 1e-9L * deviation);
	else
		assert_true(isnan(hist_stdev(h)));
}

static double check_one(uint64_t (*draw)(void), uint64_t n)
{
	uint64_t *v = calloc(n, sizeof(*v));
	struct hist h;
	double worst = 0;

	assert_non_null(v);
	hist_init(&h);
	for (uint64_t i = 0; i < n; i++)
		hist_add(&h, v[i] = draw());
	qsort(v, n, sizeof(*v), ascending);
	assert_int_equal(h.count, n);
	assert_int_equal(h.min, v[0]);
	assert_int_equal(h.max, v[n - 1]);
	for (unsigned int i = 0; i < SHARES; i++)
		worst = fmax(worst, error_of(&h, v, shares[i]));
	for (unsigned int i = 0; i < 20; i++)
		worst = fmax(worst, error_of(&h, v, (double)(next() % 10001) / 10000));
	check_moments(&h, v, n);
	free(v);
	return worst;
}

static void test_error(void **state)
{
	double worst = 0;

	(void)state;
	for (unsigned int d = 0; d < DISTRIBUTIONS; d++)
		for (unsigned int i = 0; i < 60; i++)
			worst = fmax(worst, check_one(distributions[d],
						      1 + next() % (i < 30 ? 40 : SAMPLES)));
	print_message("worst error of a quantile: %.4f %%\n", worst * 100);
	assert_true(worst <= 0.0005);
	assert_true(worst > 0.0001); /* the samples did stress the buckets */
}

/* Every bucket starts where the one before ends, and its first and last value count in it. */
static void test_buckets(void **state)
{
	struct hist h;

	(void)state;
	assert_int_equal(hist_bucket_low(0), 0);
	assert_true(hist_bucket_low(HIST_BUCKETS) == LONGEST + 1);
	hist_init(&h);
	for (unsigned int i = 0; i < HIST_BUCKETS; i++) {
		assert_true(hist_bucket_low(i) < hist_bucket_low(i + 1));
		assert_int_equal(h.bucket[i], 0);
		hist_add(&h, hist_bucket_low(i));
		hist_add(&h, hist_bucket_low(i + 1) - 1);
		assert_int_equal(h.bucket[i], 2);
	}
}

static void check_alone(uint64_t v)
{
	struct hist h;

	hist_init(&h);
	hist_add(&h, v);
	for (unsigned int i = 0; i < SHARES; i++)
		assert_true(hist_quantile(&h, shares[i], 0) == (double)v);
	assert_int_equal(h.min, v);
	assert_int_equal(h.max, v);
	assert_true(hist_mean(&h) == (double)v);
}

static void test_extremes(void **state)
{
	static const uint64_t values[] = {0,	    1,		1023,	       1024,
					  2047,	    2048,	LONGEST,       LONGEST + 1,
					  1u << 31, UINT64_MAX, UINT64_MAX - 1};
	struct hist h;

	(void)state;
	hist_init(&h);
	for (unsigned int i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		check_alone(values[i]);
		hist_add(&h, values[i]);
	}
	assert_int_equal(h.bucket[HIST_BUCKETS - 1], 4);
	assert_true(hist_quantile(&h, 0, 0) == 0);
	assert_true(hist_quantile(&h, 1, 0) == (double)UINT64_MAX);
}

/* Longer than the last bucket: all that can be said is that they lie among the samples. */
static void test_too_long(void **state)
{
	struct hist h;

	(void)state;
	hist_init(&h);
	for (unsigned int i = 0; i < 100; i++)
		hist_add(&h, 2 * LONGEST + i);
	assert_true(hist_quantile(&h, 0.5, 0) >= (double)h.min);
	assert_true(hist_quantile(&h, 0.5, 0) <= (double)h.max);
}

static void test_merge(void **state)
{
	struct hist all, part[2], empty;

	(void)state;
	hist_init(&all);
	hist_init(&part[0]);
	hist_init(&part[1]);
	hist_init(&empty);
	for (unsigned int i = 0; i < 10000; i++) {
		uint64_t v = distributions[next() % DISTRIBUTIONS]();

		hist_add(&all, v);
		hist_add(&part[next() % 2], v);
	}
	hist_merge(&part[0], &part[1]);
	assert_memory_equal(&part[0], &all, sizeof(all));
	hist_merge(&part[0], &empty);
	assert_memory_equal(&part[0], &all, sizeof(all));
	hist_merge(&empty, &all);
	assert_memory_equal(&empty, &all, sizeof(all));
}

static bool known(double q, uint64_t n, uint64_t tail)
{
	struct hist h;

	hist_init(&h);
	for (uint64_t i = 0; i < n; i++)
		hist_add(&h, i);
	return !isnan(hist_quantile(&h, q, tail));
}

/* A percentile needs so many samples above it. */
static void test_tail(void **state)
{
	static const struct {
		double q;
		uint64_t least;
	} rules[] = {{0.5, 20}, {0.9, 100}, {0.99, 1000}, {0.999, 10000}, {0.9999, 100000}};

	(void)state;
	for (unsigned int i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		assert_true(known(rules[i].q, rules[i].least, 10));
		assert_false(known(rules[i].q, rules[i].least - 1, 10));
		assert_true(known(rules[i].q, 1, 0));
	}
	assert_false(known(1, 1000, 1));
	assert_false(known(NAN, 1000, 0));
	assert_false(known(0.5, 0, 0));
}

static void test_undefined(void **state)
{
	struct hist h;

	(void)state;
	hist_init(&h);
	assert_int_equal(h.min, UINT64_MAX);
	assert_int_equal(h.max, 0);
	assert_true(isnan(hist_mean(&h)));
	assert_true(isnan(hist_stdev(&h)));
	hist_add(&h, UINT64_MAX);
	hist_add(&h, UINT64_MAX);
	assert_true(isnan(hist_stdev(&h))); /* the squares do not fit: no figure, not a wrong one */
}

/* A deviation of 1 ns beside a mean of 17 minutes: floating-point sums of squares would say 0 or
 * noise. */
static void test_cancellation(void **state)
{
	struct hist h;

	(void)state;
	hist_init(&h);
	for (unsigned int i = 0; i < 1000000; i++)
		hist_add(&h, LONGEST - 2 * (i % 2));
	assert_true(fabs(hist_stdev(&h) - 1) < 1e-6);
	assert_true(hist_mean(&h) == (double)(LONGEST - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_error),	  cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_extremes),  cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_merge),	  cmocka_unit_test(test_tail),
		cmocka_unit_test(test_undefined), cmocka_unit_test(test_cancellation),
	};

	return cmocka_run_group_tests_name("hist", tests, NULL, NULL);
}
