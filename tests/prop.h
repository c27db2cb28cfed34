/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the property tests share: random numbers from a seed that is printed at failure, and a
 * scale. Two environment variables:
 *
 * RXFER_PROP_SEED=N is the seed of the first sequence of each test; the next have N+1, N+2, ... The
 * default is the clock, so that every run tries something new. A sequence depends on its seed
 * alone: set to the seed that was printed, it is repeated as the first of its test.
 *
 * RXFER_PROP_SCALE=X multiplies the number of sequences, e.g. 0.1 under a sanitizer.
 */
#ifndef RXFER_TESTS_PROP_H
#define RXFER_TESTS_PROP_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

/* The sequence under way: its seed, and its generator's state. */
struct prop {
	uint64_t seed;
	uint64_t state;
};

/* Fails the test and says how to repeat it. */
#define PROP_CHECK(p, cond)                                                     \
	do {                                                                    \
		if (!(cond))                                                    \
			fail_msg("%s; repeat with RXFER_PROP_SEED=%llu", #cond, \
				 (unsigned long long)(p)->seed);                \
	} while (0)

static inline void prop_start(struct prop *p, uint64_t seed)
{
	p->seed = seed;
	p->state = seed;
}

/* splitmix64: neighbouring seeds give unrelated sequences. */
static inline uint64_t prop_next(struct prop *p)
{
	uint64_t z = p->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* lo..hi, both included. */
static inline uint32_t prop_range(struct prop *p, uint32_t lo, uint32_t hi)
{
	uint64_t span = (uint64_t)hi - lo + 1;

	return lo + (uint32_t)(((prop_next(p) >> 32) * span) >> 32);
}

static inline bool prop_chance(struct prop *p, uint32_t percent)
{
	return prop_range(p, 1, 100) <= percent;
}

static inline uint64_t prop_first_seed(void)
{
	const char *text = getenv("RXFER_PROP_SEED");
	struct timespec now;

	if (text && *text)
		return strtoull(text, NULL, 0);
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* @n scaled, but never fewer than @least. */
static inline uint64_t prop_count(uint64_t n, uint64_t least)
{
	const char *text = getenv("RXFER_PROP_SCALE");
	double scale = text && *text ? strtod(text, NULL) : 1.0;
	double scaled = (double)n * scale;

	return scaled > (double)least ? (uint64_t)scaled : least;
}

#endif
