/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A log-linear histogram of durations: fixed memory, at most 0.05 % error in a quantile, exact
 * extremes, mean and deviation. The essay is on top of hist.c.
 */
#ifndef BENCH_HIST_H
#define BENCH_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS                                                                             \
	10		 /* 1024 buckets a power of two: a bucket's middle is within 0.05 % of it \
			  */
#define HIST_MAX_BITS 40 /* up to 2^40 ns, 18 minutes; longer ones count in the last bucket */
#define HIST_BUCKETS  ((HIST_MAX_BITS - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct hist {
	uint64_t count;
	uint64_t min; /* exact; UINT64_MAX while empty */
	uint64_t max; /* exact */
	unsigned __int128 sum;
	unsigned __int128 sum_squares;
	uint64_t bucket[HIST_BUCKETS];
};

void hist_init(struct hist *h);

/** hist_add() - one sample, in nanoseconds. No branch on the size of the histogram, no allocation.
 */
void hist_add(struct hist *h, uint64_t ns);

/** hist_merge() - add all of @from to @into. */
void hist_merge(struct hist *into, const struct hist *from);

/**
 * hist_quantile() - the value below which the share @q (0..1) of the samples lies, in ns.
 * NAN where fewer than @tail samples lie above it: such a figure would be noise. @tail 0 asks no
 * such thing. Never outside [min, max]. NAN for an empty histogram.
 */
double hist_quantile(const struct hist *h, double q, uint64_t tail);

/** hist_mean(), hist_stdev() - exact over all samples (stdev: n - 1 in the divisor); NAN if
 * undefined. */
double hist_mean(const struct hist *h);
double hist_stdev(const struct hist *h);

/** hist_bucket_low() - the smallest value that counts in bucket @i; for printing the histogram. */
uint64_t hist_bucket_low(unsigned int i);

#endif
