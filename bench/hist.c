/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A log-linear histogram.
 *
 * A run takes millions of samples between a few hundred nanoseconds and minutes. Keeping them costs
 * memory that grows with the run; fixed steps are too coarse at one end or too many at the other.
 * So the range is cut into powers of two, and each power into 1024 buckets of equal width:
 *
 *	values           width   buckets
 *	0 .. 2047        1       0 .. 2047     (exact)
 *	2048 .. 4095     2       2048 .. 3071
 *	4096 .. 8191     4       3072 .. 4095
 *	...
 *	2^39 .. 2^40-1   2^29    30720 .. 31743
 *
 * With `shift` = log2 of the width, bucket = 1024 * shift + (value >> shift): the quotient lies in
 * 1024 .. 2047 and carries its own leading one, which is why the powers join without a gap. The
 * position of the highest bit gives the shift, so that adding needs neither loop nor search.
 *
 * A quantile is reported as the middle of its bucket. The smallest value in a bucket of width w is
 * 1024 * w or more, so the middle is at most w / 2 from any value in it: 1/2048, or 0.05 %. It has
 * to be that fine: two ways of doing an I/O that differ by 0.5 % are to be told apart by their
 * medians. Values of 2^40 ns (18 minutes) and longer count in the last bucket; extremes, mean and
 * deviation stay exact even then.
 */
#include "hist.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define SUB	(1u << HIST_SUB_BITS)
#define LONGEST ((UINT64_C(1) << HIST_MAX_BITS) - 1)

void hist_init(struct hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

static unsigned int bucket_of(uint64_t ns)
{
	uint64_t v = ns < LONGEST ? ns : LONGEST;
	unsigned int shift = 63 - HIST_SUB_BITS - (unsigned int)__builtin_clzll(v | SUB);

	return (shift << HIST_SUB_BITS) + (unsigned int)(v >> shift);
}

void hist_add(struct hist *h, uint64_t ns)
{
	h->count++;
	h->min = ns < h->min ? ns : h->min;
	h->max = ns > h->max ? ns : h->max;
	h->sum += ns;
	h->sum_squares += (unsigned __int128)ns * ns;
	h->bucket[bucket_of(ns)]++;
}

void hist_merge(struct hist *into, const struct hist *from)
{
	into->count += from->count;
	into->min = from->min < into->min ? from->min : into->min;
	into->max = from->max > into->max ? from->max : into->max;
	into->sum += from->sum;
	into->sum_squares += from->sum_squares;
	for (unsigned int i = 0; i < HIST_BUCKETS; i++)
		into->bucket[i] += from->bucket[i];
}

uint64_t hist_bucket_low(unsigned int i)
{
	unsigned int shift;

	if (i < 2 * SUB)
		return i;
	shift = (i >> HIST_SUB_BITS) - 1;
	return (uint64_t)(SUB + (i & (SUB - 1))) << shift;
}

/* The value of the sample at @rank (1 .. count) in ascending order, as well as it is known. */
static double value_at(const struct hist *h, uint64_t rank)
{
	uint64_t seen = h->bucket[0];
	unsigned int i = 0;
	double middle;

	if (rank == 1)
		return (double)h->min;
	if (rank == h->count)
		return (double)h->max;
	while (seen < rank)
		seen += h->bucket[++i];
	middle = ((double)hist_bucket_low(i) + (double)(hist_bucket_low(i + 1) - 1)) / 2;
	return fmin(fmax(middle, (double)h->min), (double)h->max);
}

/*
 * The quantile is the sample at rank ceil(q * count). The product of 0.999 and 10000 may come out a
 * hair above 9990, which must not cost a rank: the hair is taken off first.
 */
double hist_quantile(const struct hist *h, double q, uint64_t tail)
{
	double share = fmin(fmax(q, 0), 1);
	uint64_t rank;

	if (!h->count || isnan(q))
		return NAN;
	rank = (uint64_t)ceil(share * (double)h->count * (1 - 4 * DBL_EPSILON));
	rank = rank < 1 ? 1 : rank;
	rank = rank > h->count || share == 1 ? h->count : rank;
	return h->count - rank < tail ? NAN : value_at(h, rank);
}

double hist_mean(const struct hist *h)
{
	return h->count ? (double)h->sum / (double)h->count : NAN;
}

/*
 * The textbook's sum of squares minus squared sum loses all its digits to cancellation where the
 * deviation is small beside the mean. In integers nothing is lost. With m = sum / n rounded down
 * and r = sum - n * m, the squared distances from m add up to
 *
 *	sum_squares - 2 * m * sum + n * m * m = sum_squares - m * (sum + r)
 *
 * which is no negative number, so that no term overflows; moving from m to the true mean takes off
 * r * r / n.
 */
double hist_stdev(const struct hist *h)
{
	unsigned __int128 largest = (unsigned __int128)h->max * h->max;
	unsigned __int128 m, r, around_m;
	double n = (double)h->count;

	if (h->count < 2)
		return NAN;
	if (largest && h->count > ~(unsigned __int128)0 / largest)
		return NAN; /* days long, many times: sum_squares may have wrapped */
	m = h->sum / h->count;
	r = h->sum % h->count;
	around_m = h->sum_squares - m * (h->sum + r);
	return sqrt(fmax(0, (double)around_m - (double)r * (double)r / n) / (n - 1));
}
