/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The plan: the command line's lists, multiplied out into runs. */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include "opt.h"

struct plan {
	unsigned int n;
	struct cfg *run; /* owned; plan_free() */
};

#define PLAN_MAX 100000 /* runs */

/**
 * plan_make() - every combination of the swept options, each checked by cfg_check(). The last swept
 * row of the option table varies fastest, the first one slowest. The table is ordered for that:
 * strategy, then signal are the fastest, so that the rows that one wants to compare are neighbours;
 * mode, op, size, frags are the slowest.
 *
 * Where an I/O count and a time are both not given, the default count holds; with --duration alone
 * a run is not limited by count (iters = 0). This is the one place that knows.
 *
 * Returns 0, -ENOMEM, or -EINVAL with a one-line @error (also where there would be above PLAN_MAX
 * runs).
 */
int plan_make(const struct opts *o, struct plan *out, char *error, unsigned int error_size);
void plan_free(struct plan *p);

/** opts_first() - the first value given for each option, else its default: for what is not swept.
 */
void opts_first(const struct opts *o, struct cfg *cfg);

#endif
