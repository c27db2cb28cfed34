/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of rules between options, which cfg_check() goes through for each run. */
#include <errno.h>
#include <string.h>
#include "access.h"
#include "memory.h"
#include "opt.h"
#include "rpc_msg.h"
#include "rxfer.h"
#include "sig.h"
#include "touch.h"

/* A predicate is true where the settings contradict each other. */

static bool more_frags_than_bytes(const struct cfg *c)
{
	return c->frags > (c->size ? c->size : 1);
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
static bool too_rarely(const char *signal, uint64_t sq_depth)
{
	const struct rxfer_sig_ops *ops;
	uint32_t k;

	return sq_depth && !rxfer_sig_parse(signal, &ops, &k) && k > sq_depth;
}

static bool signals_too_rarely(const struct cfg *c)
{
	return too_rarely(c->signal, c->sq_depth);
}

static bool peer_signals_too_rarely(const struct cfg *c)
{
	return too_rarely(c->peer_signal, c->peer_sq_depth);
}

static bool sleeps_over_starts(const struct cfg *c)
{
	return c->rate && c->poll == POLL_EVENT;
}

/* In rpc mode it is for the messages. */
static bool read_that_carries(const struct cfg *c)
{
	return c->mode == MODE_DIRECT && c->inline_max && c->op == OP_READ;
}

static bool nothing_to_move(const struct cfg *c)
{
	return c->mode == MODE_DIRECT && !c->size;
}

static bool rpc_both_ways(const struct cfg *c)
{
	return c->mode == MODE_RPC && c->bidir;
}

static bool rpc_write_imm(const struct cfg *c)
{
	return c->mode == MODE_RPC && c->op == OP_WRITE_IMM;
}

static bool rpc_too_many_segments(const struct cfg *c)
{
	return c->mode == MODE_RPC && (c->op == OP_READ || c->op == OP_WRITE) &&
	       c->frags > RPC_SEGS_MAX;
}

static bool imm_without_write(const struct cfg *c)
{
	return c->reply == REPLY_IMM && c->op != OP_WRITE;
}

static bool imm_without_bytes(const struct cfg *c)
{
	return c->reply == REPLY_IMM && !c->size;
}

static bool imm_inside_message(const struct cfg *c)
{
	return c->reply == REPLY_IMM && c->size <= c->inline_threshold;
}

/* Not of the peer's: at the server no reply comes. */
static bool infers_from_nothing(const struct cfg *c)
{
	return c->mode != MODE_RPC && !strcmp(c->signal, "inferred");
}

static bool peer_infers(const struct cfg *c)
{
	return !strcmp(c->peer_signal, "inferred");
}

static bool imm_revokes_nothing(const struct cfg *c)
{
	return c->reply == REPLY_IMM && c->revoke == RXFER_REVOKE_REMOTE;
}

static bool inside_anyhow(const struct cfg *c)
{
	return c->inline_threshold && c->op == OP_SEND;
}

static bool file_of_other_pages(const struct cfg *c)
{
	return c->mem_file[0] && c->mem != MEM_FILE;
}

static bool one_file_for_two(const struct cfg *c)
{
	return c->mem_file[0] && c->bidir;
}

static bool order_of_nothing(const struct cfg *c)
{
	return c->access != ACCESS_SEQ && !c->working_set;
}

static bool set_of_nothing(const struct cfg *c)
{
	return c->working_set && !c->size;
}

static bool cold_without_flush(const struct cfg *c)
{
	return c->touch == TOUCH_COLD && !touch_can_flush();
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
	{peer_signals_too_rarely,
	 {"peer-signal", "peer-sq-depth"},
	 "K is larger than the send queue; take a smaller K or a deeper queue"},
	{nothing_to_move,
	 {"size", "mode"},
	 "there is no I/O without bytes in direct mode; take a larger size or --mode rpc"},
	{rpc_both_ways,
	 {"mode", "bidir"},
	 "in rpc mode the client asks and the server answers; leave out one of them"},
	{rpc_write_imm,
	 {"mode", "op"},
	 "in rpc mode immediate data is a way to reply; take --op read,write,send, --op write "
	 "--reply imm, or --mode direct"},
	{inside_anyhow,
	 {"inline-threshold", "op"},
	 "the data of a send are in its request, whatever their size; leave out one of them"},
	{rpc_too_many_segments,
	 {"mode", "op", "frags"},
	 "a request names at most 256 segments; take fewer fragments or --op send"},
	{imm_without_write,
	 {"reply", "op"},
	 "it is the last WRITE that carries the reply; take --op write or leave out --reply"},
	{imm_without_bytes,
	 {"reply", "size"},
	 "without bytes there is no WRITE to carry the reply; take a larger size or leave out "
	 "--reply"},
	{infers_from_nothing,
	 {"signal", "mode"},
	 "in direct mode there are no replies to infer anything from; take another policy or --mode "
	 "rpc"},
	{peer_infers,
	 {"peer-signal"},
	 "no reply comes to the server that it could infer anything from; take another policy"},
	{imm_revokes_nothing,
	 {"reply", "revoke"},
	 "it is a SEND that revokes a key of the peer's, and with --reply imm there is none; leave "
	 "out --reply or take another --revoke"},
	{file_of_other_pages,
	 {"mem-file", "mem"},
	 "only --mem file is made of a file; take that, or leave out --mem-file"},
	{one_file_for_two,
	 {"mem-file", "bidir"},
	 "both directions have memory of their own, and the file is one; leave out one of them"},
	{cold_without_flush,
	 {"touch"},
	 "on this kind of CPU no instruction is known that empties caches; take off or warm"},
	{imm_inside_message,
	 {"reply", "size", "inline-threshold"},
	 "such an I/O has no WRITE to carry the reply; take a larger size or a lower threshold"},
	{order_of_nothing,
	 {"access", "working-set"},
	 "each slot has one place for its I/Os; give a working set, or leave out --access"},
	{set_of_nothing,
	 {"working-set", "size"},
	 "an I/O without bytes has no place in it; take a larger size or leave out --working-set"},
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

/* The first option that only rpc mode has and that is not at its default; NULL: none. */
static const struct opt *rpc_option(const struct cfg *c)
{
	char text[CFG_TEXT], def_text[CFG_TEXT];
	struct cfg def;
	const struct opt *o;

	cfg_init(&def);
	for (o = opt_table; o < opt_table + opt_table_count; o++)
		if ((o->flags & OPT_RPC) && strcmp(cfg_text(c, o, text, sizeof(text)),
						   cfg_text(&def, o, def_text, sizeof(def_text))))
			return o;
	return NULL;
}

static int rpc_option_error(const struct opt *o, const struct cfg *c, char *why, unsigned int size)
{
	const struct rule r = {
		.options = {o->name, "mode"},
		.why = "only rpc mode has it; take --mode rpc or leave it out",
	};

	return rule_error(&r, c, why, size);
}

/* Each I/O in flight is in a piece of its own; how large that is follows from several options. */
static int check_working_set(const struct cfg *c, char *why, unsigned int size)
{
	uint64_t slots = c->qps * c->depth;
	struct layout layout;

	if (!c->working_set)
		return 0;
	layout_make(c, &layout);
	if (c->working_set / layout.slot >= slots)
		return 0;
	return text_error(
		why, size,
		"--working-set of %llu bytes has %llu pieces of %zu bytes, one for an I/O, and %llu I/Os are in flight (qps x depth); take %llu or more, or a smaller --depth",
		(unsigned long long)c->working_set,
		(unsigned long long)(c->working_set / layout.slot), layout.slot,
		(unsigned long long)slots, (unsigned long long)(slots * layout.slot));
}

int cfg_check(const struct cfg *c, char *why, unsigned int size)
{
	const struct opt *o = c->mode == MODE_RPC ? NULL : rpc_option(c);
	size_t i;

	if (o)
		return rpc_option_error(o, c, why, size);
	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].broken(c))
			return rule_error(&rules[i], c, why, size);
	return check_working_set(c, why, size);
}
