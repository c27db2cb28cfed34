/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lists multiplied out: the number of a run is read as digits, one for each option, the last the
 * fastest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "plan.h"

static const struct opt_given *given_for(const struct opts *opts, const char *name)
{
	unsigned int i;

	for (i = 0; i < opt_table_count; i++)
		if (!strcmp(opt_table[i].name, name))
			return &opts->given[i];
	return NULL;
}

/* How many runs; PLAN_MAX + 1 stands for all that is above. */
static unsigned int count_runs(const struct opts *opts)
{
	uint64_t n = 1;
	unsigned int i;

	for (i = 0; i < opt_table_count && n <= PLAN_MAX; i++)
		if ((opt_table[i].flags & OPT_SWEEP) && opts->given[i].n)
			n *= opts->given[i].n;
	return n <= PLAN_MAX ? n : PLAN_MAX + 1;
}

/* The default count is for runs that nothing else would end. */
static void resolve_iters(const struct opts *opts, struct cfg *run)
{
	if (run->duration_ns && !given_for(opts, "iters")->n)
		run->iters = 0;
}

/* Run @number, in @run, which holds the defaults. */
static int make_run(const struct opts *opts, unsigned int number, struct cfg *run, char *error,
		    unsigned int error_size)
{
	unsigned int i = opt_table_count;
	int err = 0;

	while (!err && i-- > 0) {
		const struct opt_given *g = &opts->given[i];

		if (!g->n || opt_table[i].offset == OPT_NO_MEMBER)
			continue;
		err = cfg_set(run, opt_table[i].name, g->text[number % g->n], error, error_size);
		number /= g->n;
	}
	if (err)
		return err;
	resolve_iters(opts, run);
	return cfg_check(run, error, error_size);
}

int plan_make(const struct opts *o, struct plan *out, char *error, unsigned int error_size)
{
	unsigned int i, n = count_runs(o);
	struct cfg defaults;
	int err = 0;

	*out = (struct plan){0};
	if (n > PLAN_MAX)
		return text_error(error, error_size,
				  "the lists make more than %u runs; shorten one", PLAN_MAX);
	out->run = calloc(n, sizeof(*out->run));
	if (!out->run) {
		text_error(error, error_size, "out of memory for %u runs", n);
		return -ENOMEM;
	}
	out->n = n;
	cfg_init(&defaults);
	for (i = 0; !err && i < n; i++) {
		out->run[i] = defaults;
		err = make_run(o, i, &out->run[i], error, error_size);
	}
	if (err)
		plan_free(out);
	return err;
}

void plan_free(struct plan *p)
{
	free(p->run);
	*p = (struct plan){0};
}

void opts_first(const struct opts *o, struct cfg *cfg)
{
	char why[256];
	unsigned int i;

	cfg_init(cfg);
	for (i = 0; i < opt_table_count; i++)
		if (o->given[i].n && opt_table[i].offset != OPT_NO_MEMBER)
			cfg_set(cfg, opt_table[i].name, o->given[i].text[0], why, sizeof(why));
}
