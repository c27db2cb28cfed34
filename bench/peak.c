/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The peak bandwidth.
 *
 * perftest keeps two times of each I/O and takes the fastest of all windows: from when an I/O was
 * posted until when a later one, or the same, was completed, the I/Os in between by the time. That
 * is memory for each I/O and a search over their pairs, so it does it for short runs only.
 *
 * Here a window may start and end at a few marks only. A mark is made where the loop looks at the
 * clock anyway, after some dozen I/Os: nothing is added for an I/O. Between the marks a and b,
 *
 *	completed(b) - issued(a)
 *
 * I/Os were both issued and completed (at least: where one of many queue pairs completed none of
 * them, it counts against the others). So a burst of completions that had piled up makes no peak,
 * as their I/Os were issued before, and the figure is never above perftest's. The first mark is the
 * start of the run and the last is its end, so it is never below the average either.
 *
 * How long a run will be is not known. Marks are made at each look until there are 32; then every
 * second one goes, and from there on they are as far apart as those that stay are on average. So
 * between the 16th look and the end there are 16 to 32, spread over the whole run, and windows of
 * one 32nd to one 16th of it and longer.
 */
#include "peak.h"

#include <math.h>

void peak_begin(struct peak *p, uint64_t now)
{
	p->n = 0;
	p->step = 1;
	peak_mark(p, now, 0, 0);
}

/* Every second one goes; the first, which is the start of the run, stays. */
static void thin_out(struct peak *p)
{
	p->n /= 2;
	for (unsigned int i = 1; i < p->n; i++)
		p->mark[i] = p->mark[2 * i];
	p->step = (p->mark[p->n - 1].when - p->mark[0].when) / (p->n - 1) + 1;
}

void peak_mark(struct peak *p, uint64_t now, uint64_t issued, uint64_t completed)
{
	if (p->n == PEAK_MARKS)
		thin_out(p);
	p->mark[p->n++] = (struct peak_mark){now, issued, completed};
	p->next = now + p->step;
}

static double rate_between(const struct peak_mark *a, const struct peak_mark *b)
{
	if (b->completed <= a->issued || b->when <= a->when)
		return NAN;
	return 1e9 * (double)(b->completed - a->issued) / (double)(b->when - a->when);
}

double peak_rate(const struct peak *p)
{
	double best = NAN;

	for (unsigned int b = 1; b < p->n; b++)
		for (unsigned int a = 0; a < b; a++)
			best = fmax(best, rate_between(&p->mark[a], &p->mark[b]));
	return best;
}
