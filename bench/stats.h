/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Arithmetic on samples. Knows nothing of devices. */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stdint.h>

/** stats_median() - of @n samples, which are sorted in place; NAN where there is none. */
double stats_median(double *v, unsigned int n);

/* struct fit - y = a + b * x; @worst: the largest error of a point, as a part of its y. */
struct fit {
	double a, b, worst;
};

/**
 * stats_fit() - the line through @n points whose relative errors have the smallest sum of squares:
 * with absolute ones a few large points would drown what the small ones say of @a.
 * Returns 0, or -EINVAL where no line follows: fewer than two different x, or a y that is not above
 * 0.
 */
int stats_fit(const double *x, const double *y, unsigned int n, struct fit *out);

struct delta {
	int32_t delta;
	unsigned int times;
};

/**
 * stats_deltas() - the differences of successive keys (modulo 2^32), the most frequent first; of
 * equally frequent ones the smaller first.
 * @out: room for @n - 1; returns how many different ones there are
 */
unsigned int stats_deltas(const uint32_t *keys, unsigned int n, struct delta *out);

#endif
