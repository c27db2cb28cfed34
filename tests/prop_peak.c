/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The peak against perftest's definition, computed as it is written: over all pairs of I/Os. The
 * runs are random: steps of time in which some I/Os are posted and some completed, in order.
 */
#include "prop.h"

#include <math.h>

#include "../bench/peak.h"

#define IOS    300
#define MARGIN (1 + 1e-9) /* rounding of doubles */

struct run {
	struct peak peak;
	uint64_t now, start;
	uint64_t issued, completed;
	uint64_t posted_at[IOS], completed_at[IOS];
	uint64_t looks;
};

static void step(struct prop *p, struct run *r, uint32_t depth)
{
	uint32_t posts = prop_range(p, 0, depth), done = prop_range(p, 0, depth);

	for (; posts && r->issued < IOS && r->issued - r->completed < depth; posts--) {
		r->posted_at[r->issued++] = r->now;
		r->now += prop_range(p, 0, 3);
	}
	r->now += prop_range(p, 0, 1000);
	for (; done && r->completed < r->issued; done--) {
		r->now += prop_range(p, 0, 3);
		r->completed_at[r->completed++] = r->now;
	}
}

static void look(struct run *r)
{
	r->looks++;
	if (r->now >= r->peak.next)
		peak_mark(&r->peak, r->now, r->issued, r->completed);
}

static void run(struct prop *p, struct run *r)
{
	uint32_t depth = prop_range(p, 1, 32), rare = prop_range(p, 1, 10);

	*r = (struct run){.now = prop_range(p, 0, 1000)};
	r->start = r->now;
	peak_begin(&r->peak, r->now);
	while (r->completed < IOS) {
		step(p, r, depth);
		if (prop_range(p, 1, rare) == 1)
			look(r);
	}
	r->now += 1; /* no run takes no time */
	peak_mark(&r->peak, r->now, r->issued, r->completed);
}

static double perftest_peak(const struct run *r)
{
	double best = 0;

	for (unsigned int i = 0; i < IOS; i++)
		for (unsigned int j = i; j < IOS; j++)
			best = fmax(best, 1e9 * (j - i + 1) /
						  (double)(r->completed_at[j] - r->posted_at[i]));
	return best;
}

static void between_average_and_perftest(void **state)
{
	uint64_t seed = prop_first_seed(), n = prop_count(1000, 50);
	static struct run r;
	struct prop p;

	(void)state;
	while (n--) {
		double peak, average;

		prop_start(&p, seed++);
		run(&p, &r);
		peak = peak_rate(&r.peak);
		average = 1e9 * IOS / (double)(r.now - r.start);
		PROP_CHECK(&p, peak >= average / MARGIN);
		PROP_CHECK(&p, peak <= perftest_peak(&r) * MARGIN);
	}
}

/* A run of I/Os one after the other, each of @ns, looked at after every 64; in the middle half
 * they take @fast ns. */
static double one_after_the_other(struct peak *p, uint64_t ios, uint64_t ns, uint64_t fast)
{
	uint64_t now = 1000;

	peak_begin(p, now);
	for (uint64_t i = 1; i <= ios; i++) {
		now += i > ios / 4 && i <= ios / 4 * 3 ? fast : ns;
		if (i % 64 == 0 && now >= p->next)
			peak_mark(p, now, i, i);
	}
	peak_mark(p, now, ios, ios);
	return peak_rate(p);
}

static bool about(double value, double wanted)
{
	return fabs(value / wanted - 1) < 0.001;
}

static void finds_the_fast_half(void **state)
{
	static const uint64_t lengths[] = {1024, 10000, 1000000, 7654321};
	struct peak p;

	(void)state;
	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		assert_true(about(one_after_the_other(&p, lengths[i], 1000, 1000), 1e6));
		assert_true(about(one_after_the_other(&p, lengths[i], 1000, 250), 4e6));
	}
}

/* However long it is: enough marks, not too many, over all of the run. */
static void marks_spread_over_the_run(void **state)
{
	struct peak p;
	uint64_t widest;

	(void)state;
	for (uint64_t ios = 64 * 64; ios < 20000000; ios = ios * 5 / 4) {
		one_after_the_other(&p, ios, 1000, 1000);
		assert_in_range(p.n, PEAK_MARKS / 2, PEAK_MARKS);
		assert_int_equal(p.mark[0].when, 1000);
		assert_int_equal(p.mark[p.n - 1].when, 1000 + ios * 1000);
		widest = 0;
		for (unsigned int i = 1; i < p.n; i++)
			if (p.mark[i].when - p.mark[i - 1].when > widest)
				widest = p.mark[i].when - p.mark[i - 1].when;
		assert_true(widest <=
			    ios * 1000 / (PEAK_MARKS / 2 - 2) + 64 * 1000); /* and a look */
	}
}

static void no_peak_of_nothing(void **state)
{
	struct peak p;

	(void)state;
	peak_begin(&p, 5);
	assert_true(isnan(peak_rate(&p)));
	peak_mark(&p, 1000, 16, 0);
	assert_true(isnan(peak_rate(&p)));
	peak_mark(&p, 1005, 16, 16);
	assert_true(peak_rate(&p) == 16e6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(between_average_and_perftest),
		cmocka_unit_test(finds_the_fast_half),
		cmocka_unit_test(marks_spread_over_the_run),
		cmocka_unit_test(no_peak_of_nothing),
	};

	return cmocka_run_group_tests_name("prop_peak", tests, NULL, NULL);
}
