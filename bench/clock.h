/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The clock that I/Os are timed by. Each I/O is looked at twice, so the look itself is in every
 * figure: where the kernel keeps its own time by the CPU's time stamp counter, that is read
 * directly, at a few instructions; else CLOCK_MONOTONIC. Its zero is its own: compare it with
 * nothing else.
 */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdbool.h>
#include "rxfer.h"

/* struct clock - @mult: ns of a tick, times 2^32; 0: CLOCK_MONOTONIC. */
struct clock {
	uint64_t mult;
};

/**
 * clock_init() - find out whether the counter may be trusted, and how fast it is. Takes 20 ms where
 * it may. It may where it is the kernel's own clock source, and CLOCK_MONOTONIC and CLOCK_BOOTTIME
 * go alike meanwhile (a test's virtual clock does not).
 */
void clock_init(struct clock *c);

/** clock_name() - as it stands in the CSV: "tsc" or "monotonic". */
const char *clock_name(const struct clock *c);

/** clock_mult() - from two looks at both clocks; 0: no sense can be made of them. */
uint64_t clock_mult(uint64_t ticks, uint64_t ns);

static inline uint64_t clock_counter(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

/**
 * clock_ticks() - the time in the clock's own unit; clock_ns() - of a time or a span in it. Hot:
 * what need not be known while an I/O is timed, its nanoseconds, is worked out afterwards.
 */
static inline uint64_t clock_ticks(const struct clock *c)
{
	return __builtin_expect(c->mult != 0, 1) ? clock_counter() : rxfer_now();
}

static inline uint64_t clock_ns(const struct clock *c, uint64_t ticks)
{
	return c->mult ? (uint64_t)((unsigned __int128)ticks * c->mult >> 32) : ticks;
}

/** clock_span() - of @ns, in the clock's unit. */
static inline double clock_span(const struct clock *c, double ns)
{
	return c->mult ? ns * 4294967296.0 / (double)c->mult : ns;
}

#endif
