/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Medians, straight lines, frequent differences. */
#include "stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

double stats_median(double *v, unsigned int n)
{
	if (n == 0)
		return NAN;
	qsort(v, n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* About the weighted means, so that nothing large is subtracted from something large. */
int stats_fit(const double *x, const double *y, unsigned int n, struct fit *out)
{
	double weight = 0, mean_x = 0, mean_y = 0, sxx = 0, sxy = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (!(y[i] > 0))
			return -EINVAL;
		weight += 1 / (y[i] * y[i]);
		mean_x += x[i] / (y[i] * y[i]);
		mean_y += 1 / y[i];
	}
	mean_x /= weight;
	mean_y /= weight;
	for (unsigned int i = 0; i < n; i++) {
		double dx = x[i] - mean_x, w = 1 / (y[i] * y[i]);

		sxx += w * dx * dx;
		sxy += w * dx * (y[i] - mean_y);
	}
	if (n < 2 || !(sxx > 0))
		return -EINVAL;
	out->b = sxy / sxx;
	out->a = mean_y - out->b * mean_x;
	out->worst = 0;
	for (unsigned int i = 0; i < n; i++)
		out->worst = fmax(out->worst, fabs(out->a + out->b * x[i] - y[i]) / y[i]);
	return 0;
}

static int by_delta(const void *a, const void *b)
{
	const struct delta *x = a, *y = b;

	return (x->delta > y->delta) - (x->delta < y->delta);
}

static int by_times(const void *a, const void *b)
{
	const struct delta *x = a, *y = b;

	if (x->times != y->times)
		return x->times < y->times ? 1 : -1;
	return by_delta(a, b);
}

unsigned int stats_deltas(const uint32_t *keys, unsigned int n, struct delta *out)
{
	unsigned int different = 0;

	if (n < 2)
		return 0;
	for (unsigned int i = 0; i + 1 < n; i++)
		out[i] = (struct delta){(int32_t)(keys[i + 1] - keys[i]), 1};
	qsort(out, n - 1, sizeof(*out), by_delta);
	for (unsigned int i = 1; i + 1 < n; i++) {
		if (out[i].delta == out[different].delta)
			out[different].times++;
		else
			out[++different] = out[i];
	}
	qsort(out, different + 1, sizeof(*out), by_times);
	return different + 1;
}
