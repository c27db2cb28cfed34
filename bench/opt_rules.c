/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of rules between options, which cfg_check() goes through for each run. */
#include <errno.h>
#include <string.h>
#include "opt.h"
#include "rxfer.h"
#include "sig.h"

/* A predicate is true where the settings contradict each other. */

static bool more_frags_than_bytes(const struct cfg *c)
{
	return c->frags > c->size;
}

static bool endless(const struct cfg *c)
{
	return !c->iters && !c->duration_ns;
}

static bool too_much_memory(const struct cfg *c)
{
	uint64_t gaps, one, per_qp, all;

	return __builtin_mul_overflow(c->frags - 1, c->frag_gap, &gaps) ||
	       __builtin_add_overflow(c->size, gaps, &one) ||
	       __builtin_add_overflow(one, c->misalign, &one) ||
	       __builtin_mul_overflow(one, c->depth, &per_qp) ||
	       __builtin_mul_overflow(per_qp, c->qps, &all) || all > MEMORY_MAX;
}

/* The K-th WR since the last signalled one would never find a free entry. */
static bool signals_too_rarely(const struct cfg *c)
{
	const struct rxfer_sig_ops *ops;
	uint32_t k;

	return c->sq_depth && !rxfer_sig_parse(c->signal, &ops, &k) && k > c->sq_depth;
}

static bool sleeps_over_starts(const struct cfg *c)
{
	return c->rate && c->poll == POLL_EVENT;
}

static bool read_that_carries(const struct cfg *c)
{
	return c->inline_max && c->op == OP_READ;
}

#define RULE_OPTIONS 5

static const struct rule {
	bool (*broken)(const struct cfg *c);
	const char *options[RULE_OPTIONS + 1];
	const char *why;
} rules[] = {
	{more_frags_than_bytes,
	 {"frags", "size"},
	 "each fragment needs a byte; take fewer fragments or a larger size"},
	{endless, {"iters", "duration"}, "nothing would end the run; give one of them"},
	{too_much_memory,
	 {"size", "frags", "frag-gap", "depth", "qps"},
	 "together above 64 TiB of memory; make one smaller"},
	{signals_too_rarely,
	 {"signal", "sq-depth"},
	 "K is larger than the send queue; take a smaller K or a deeper queue"},
	{sleeps_over_starts,
	 {"rate", "poll"},
	 "who sleeps misses the moments that I/Os are due; poll busy or yield"},
	{read_that_carries,
	 {"inline", "op"},
	 "a READ fetches bytes, it carries none; leave out one of them"},
};

static const struct opt *row(const char *name)
{
	const struct opt *o = opt_table;

	while (strcmp(o->name, name))
		o++;
	return o;
}

static int rule_error(const struct rule *r, const struct cfg *c, char *why, unsigned int size)
{
	char text[CFG_TEXT];
	unsigned int i;

	text_error(why, size, "contradiction:");
	for (i = 0; r->options[i]; i++)
		text_add(why, size, "%s --%s %s", i ? "," : "", r->options[i],
			 cfg_text(c, row(r->options[i]), text, sizeof(text)));
	text_add(why, size, ": %s", r->why);
	return -EINVAL;
}

int cfg_check(const struct cfg *c, char *why, unsigned int size)
{
	size_t i;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].broken(c))
			return rule_error(&rules[i], c, why, size);
	return 0;
}
