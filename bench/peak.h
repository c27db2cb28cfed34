/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The peak of a run: its fastest stretch between two of a few dozen marks. The essay is on top of
 * peak.c.
 */
#ifndef BENCH_PEAK_H
#define BENCH_PEAK_H

#include <stdint.h>

/* At most; at least half of them once a run had so many looks at the clock. */
#define PEAK_MARKS 32

/* struct peak_mark - a moment, and how many I/Os had been issued and completed by then. */
struct peak_mark {
	uint64_t when, issued, completed;
};

/**
 * struct peak - the marks of a run.
 * @next: rxfer_now() from which on the next mark is due
 * @step: ns between two marks, at least
 */
struct peak {
	uint64_t next, step;
	unsigned int n;
	struct peak_mark mark[PEAK_MARKS];
};

/** peak_begin() - the run starts at @now. */
void peak_begin(struct peak *p, uint64_t now);

/**
 * peak_mark() - @issued I/Os so far, @completed so far, at @now: after what was completed, before
 * what will be issued. Due when @now has reached @next, and at the end of the run.
 */
void peak_mark(struct peak *p, uint64_t now, uint64_t issued, uint64_t completed);

/** peak_rate() - I/Os per second in the fastest stretch; NAN if there is none. */
double peak_rate(const struct peak *p);

#endif
