/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The clock that I/Os are timed by: what its ticks are worth, and that it goes as the kernel's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include <time.h>
#include "clock.h"

/* @ticks of a clock that goes at @mult, in ns. */
static uint64_t ns_of(uint64_t ticks, uint64_t mult)
{
	return (uint64_t)((unsigned __int128)ticks * mult >> 32);
}

static void ticks_are_worth_ns(void **state)
{
	static const struct {
		uint64_t ticks, ns;
	} cases[] = {{20000000, 20000000},
		     {50000000, 20000000},
		     {4000000, 20000000},
		     {80000000, 20000000}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t mult = clock_mult(cases[i].ticks, cases[i].ns), day = 86400000000000;

		assert_true(mult != 0);
		/* A day of ticks, to 0.1 us. */
		assert_in_range(ns_of(cases[i].ticks * (day / cases[i].ns), mult), day - 100 * 1000,
				day);
	}
}

static void nonsense_is_no_clock(void **state)
{
	(void)state;
	assert_int_equal(clock_mult(0, 20000000), 0);
	assert_int_equal(clock_mult(20000000, 0), 0);
	assert_int_equal(clock_mult(1000, 20000000), 0);       /* 50 kHz */
	assert_int_equal(clock_mult(1ull << 62, 20000000), 0); /* far too fast */
}

/* Whichever it is: over 30 ms it goes like CLOCK_MONOTONIC, to 1 %. */
static void it_goes_as_the_kernels(void **state)
{
	const struct timespec pause = {.tv_nsec = 30000000};
	uint64_t a, b, ours, kernels;
	struct clock c;

	(void)state;
	clock_init(&c);
	assert_string_equal(clock_name(&c), c.mult ? "tsc" : "monotonic");
	kernels = rxfer_now();
	a = clock_ns(&c, clock_ticks(&c));
	nanosleep(&pause, NULL);
	b = clock_ns(&c, clock_ticks(&c));
	kernels = rxfer_now() - kernels;
	ours = b - a;
	assert_true(ours <= kernels + kernels / 100);
	/* From below only that it goes at all: this thread may have been put aside between two
	 * looks. */
	assert_true(ours >= 29000000);
}

static void without_a_counter_it_is_the_kernels(void **state)
{
	struct clock c = {0};
	uint64_t before = rxfer_now(), now = clock_ns(&c, clock_ticks(&c));

	(void)state;
	assert_in_range(now, before, rxfer_now());
	assert_string_equal(clock_name(&c), "monotonic");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ticks_are_worth_ns),
		cmocka_unit_test(nonsense_is_no_clock),
		cmocka_unit_test(it_goes_as_the_kernels),
		cmocka_unit_test(without_a_counter_it_is_the_kernels),
	};

	return cmocka_run_group_tests_name("unit_clock", tests, NULL, NULL);
}
