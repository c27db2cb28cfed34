/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The signalling decisions against a naive model that remembers every WR and, for each answer,
 * counts afresh from the last signalled one: no counters, no epochs. Posts are random in all that
 * matters to a decision; now and then the device takes only part of one, and the model forgets the
 * rest.
 *
 * That the decisions are also the right ones is shown by prop_loop.c.
 */
#include <string.h>

#include "prop.h"
#include "../src/sig.h"

#define MAX_DEPTH 64
#define MAX_SLOTS 20
#define MAX_CHAIN 8
#define MAX_POSTS 24

/* One WR of the past: what it was, what the policy wanted, what came out. */
struct past {
	uint32_t io;
	bool wanted;
	bool said;
};

struct model {
	struct past wr[MAX_CHAIN * MAX_POSTS];
	uint32_t n;
};

/* The decisions under test; a broken one differs in one call. */
struct decision_ops {
	bool (*decide)(struct rxfer_sig *sig, const struct rxfer_sq *sq, struct rxfer_sig_wr *wr);
	void (*rollback)(struct rxfer_sig *sig, const struct rxfer_sig_wr *wr, const bool *said,
			 uint32_t taken, uint32_t n);
};

static const struct decision_ops real = {rxfer_sig_decide, rxfer_sig_rollback};

struct run {
	const struct decision_ops *ops;
	struct prop *p;
	struct rxfer_sig sig;
	struct rxfer_sq sq;
	uint64_t word[MAX_SLOTS];
	struct model m;
	bool agree;
};

static void expect(struct run *r, bool cond)
{
	if (!cond)
		r->agree = false;
}

/* ---- the model ---- */

/* WRs since the last signalled one. */
static uint32_t model_silent(const struct model *m)
{
	uint32_t n = 0;

	while (n < m->n && !m->wr[m->n - 1 - n].said)
		n++;
	return n;
}

static uint32_t model_silent_ios(const struct model *m)
{
	uint32_t i, ios = 0, silent = model_silent(m);
	bool seen[MAX_SLOTS] = {false};

	for (i = m->n - silent; i < m->n; i++) {
		ios += !seen[m->wr[i].io];
		seen[m->wr[i].io] = true;
	}
	return ios;
}

/* WRs since the policy last wanted a signal. */
static uint32_t model_counted(const struct model *m)
{
	uint32_t n = 0;

	while (n < m->n && !m->wr[m->n - 1 - n].wanted)
		n++;
	return n;
}

/* What the policy wants of the newest WR. */
static bool model_wants(const struct run *r, const struct rxfer_sig_wr *wr)
{
	const char *name = r->sig.ops->name;
	uint32_t half = r->sig.depth / 2;

	if (!strcmp(name, "io"))
		return wr->ends_io;
	if (!strcmp(name, "every"))
		return model_counted(&r->m) == r->sig.arg;
	if (!strcmp(name, "half"))
		return model_silent(&r->m) >= (half > 1 ? half : 1);
	return true;
}

static bool model_decide(struct run *r, const struct rxfer_sig_wr *wr, uint32_t io)
{
	struct past *past = &r->m.wr[r->m.n++];
	uint32_t used = (r->sq.head - r->sq.tail) + r->sq.reserved;
	bool forced = wr->must_signal;

	*past = (struct past){.io = io};
	if (wr->ends_post && 2 * model_silent_ios(&r->m) >= r->sig.slots)
		forced = true;
	if (wr->ends_post && r->sq.depth < used + r->sig.need)
		forced = true;
	past->wanted = model_wants(r, wr);
	past->said = past->wanted || forced;
	return past->said;
}

static void compare(struct run *r)
{
	uint64_t signalled = 0, forced = 0;
	uint32_t i;

	for (i = 0; i < r->m.n; i++) {
		signalled += r->m.wr[i].said;
		forced += r->m.wr[i].said && !r->m.wr[i].wanted;
	}
	expect(r, r->sig.silent == model_silent(&r->m));
	expect(r, r->sig.silent_ios == model_silent_ios(&r->m));
	expect(r, r->sig.counted == model_counted(&r->m));
	expect(r, r->sig.signalled == signalled);
	expect(r, r->sig.forced == forced);
	expect(r, rxfer_sig_tail_silent(&r->sig) == (model_silent(&r->m) != 0));
}

/* ---- sequences ---- */

/* A queue in any lawful state; mostly one with room, or rule (c) would answer everything. */
static void random_account(struct run *r)
{
	uint32_t depth = r->sig.depth;
	uint32_t most = prop_chance(r->p, 60) ? depth - r->sig.need : depth;
	uint32_t posted = prop_range(r->p, 0, most);

	r->sq = (struct rxfer_sq){.depth = depth};
	r->sq.tail = (uint32_t)prop_next(r->p);
	r->sq.head = r->sq.tail + posted;
	r->sq.reserved = prop_range(r->p, 0, most - posted);
}

static void random_post(struct run *r)
{
	uint32_t i, n = prop_range(r->p, 1, MAX_CHAIN);
	uint32_t taken = prop_chance(r->p, 20) ? prop_range(r->p, 0, n) : n;
	struct rxfer_sig_wr wr[MAX_CHAIN];
	bool said[MAX_CHAIN];

	random_account(r);
	for (i = 0; i < n; i++) {
		uint32_t io = prop_range(r->p, 0, r->sig.slots - 1);

		wr[i] = (struct rxfer_sig_wr){
			.must_signal = prop_chance(r->p, 5),
			.ends_io = prop_chance(r->p, 30),
			.ends_post = i == n - 1,
			.io_epoch = &r->word[io],
		};
		said[i] = r->ops->decide(&r->sig, &r->sq, &wr[i]);
		expect(r, said[i] == model_decide(r, &wr[i], io));
	}
	if (taken < n) {
		r->ops->rollback(&r->sig, wr, said, taken, n);
		r->m.n -= n - taken;
	}
	compare(r);
}

static void run_start(struct run *r, const struct decision_ops *ops, struct prop *p, uint64_t seed)
{
	uint32_t depth = 1 + (uint32_t)(seed % MAX_DEPTH);
	uint32_t need, slots, arg;

	prop_start(p, seed);
	*r = (struct run){.ops = ops, .p = p, .agree = true};
	need = prop_range(p, 1, depth);
	slots = prop_range(p, 1, MAX_SLOTS);
	arg = prop_range(p, 1, depth);
	expect(r, !rxfer_sig_init(&r->sig, rxfer_sig_list(prop_range(p, 0, 3)), arg, depth, slots,
				  need));
}

static bool run_agrees(const struct decision_ops *ops, struct prop *p, uint64_t seed)
{
	struct run r;
	uint32_t posts;

	run_start(&r, ops, p, seed);
	for (posts = prop_range(p, 1, MAX_POSTS); posts && r.agree; posts--)
		random_post(&r);
	return r.agree;
}

static void agrees_with_the_model(void **state)
{
	uint64_t seed = prop_first_seed();
	uint64_t n = prop_count(1000000, 64);
	struct prop p;

	(void)state;
	for (; n; n--, seed++)
		PROP_CHECK(&p, run_agrees(&real, &p, seed));
}

/* ---- an I/O of one WR or two, alone in its post: in two halves ---- */

/* What is asked and not entered leaves no trace: a post that was refused. Two only where the first
 * would be silent. */
static void one_of_few(struct run *r, struct rxfer_sig *halves)
{
	uint64_t word = 0; /* an I/O that the silent tail does not count yet */
	const bool part = prop_chance(r->p, 20);
	const enum rxfer_sig_place place = part ? RXFER_SIG_INSIDE : RXFER_SIG_ENDS_IO;
	struct rxfer_sig_wr wr = {.must_signal = part || prop_chance(r->p, 5),
				  .ends_io = !part,
				  .ends_post = true,
				  .io_epoch = &word};
	struct rxfer_sig_wr inside = {.io_epoch = &word};
	uint32_t before = prop_chance(r->p, 50) && rxfer_sig_inside_is_silent(halves);
	enum rxfer_sig_answer answer;
	bool said;

	random_account(r);
	rxfer_sig_ask(halves, before, place, rxfer_sq_free(&r->sq), prop_chance(r->p, 50));
	answer = rxfer_sig_ask(halves, before, place, rxfer_sq_free(&r->sq), wr.must_signal);
	rxfer_sig_told(halves, before, answer);
	expect(r, !before || !rxfer_sig_decide(&r->sig, &r->sq, &inside));
	said = rxfer_sig_decide(&r->sig, &r->sq, &wr);
	expect(r, said == (answer != RXFER_SIG_SILENT));
	expect(r, !said || wr.forced == (answer == RXFER_SIG_FORCED));
	expect(r, !memcmp(&r->sig, halves, sizeof(*halves)));
}

static void halves_make_the_whole(void **state)
{
	uint64_t seed = prop_first_seed();
	struct rxfer_sig halves;
	struct prop p;
	struct run r;

	(void)state;
	for (uint64_t n = prop_count(100000, 64); n; n--, seed++) {
		run_start(&r, &real, &p, seed);
		halves = r.sig;
		for (uint32_t posts = prop_range(&p, 1, MAX_POSTS); posts && r.agree; posts--)
			one_of_few(&r, &halves);
		PROP_CHECK(&p, r.agree);
	}
}

/* ---- each rule bites ---- */

/* With slots without number no silent tail is ever half of them: rule (b) is off. */
static bool broken_no_b(struct rxfer_sig *sig, const struct rxfer_sq *sq, struct rxfer_sig_wr *wr)
{
	uint32_t slots = sig->slots;
	bool said;

	sig->slots = ~0u;
	said = rxfer_sig_decide(sig, sq, wr);
	sig->slots = slots;
	return said;
}

/* Half of an odd number of slots, rounded down. */
static bool broken_b_floor(struct rxfer_sig *sig, const struct rxfer_sq *sq,
			   struct rxfer_sig_wr *wr)
{
	uint32_t slots = sig->slots;
	bool said;

	if (slots > 1)
		sig->slots = slots & ~1u;
	said = rxfer_sig_decide(sig, sq, wr);
	sig->slots = slots;
	return said;
}

/* A queue that is never full: rule (c) is off. */
static bool broken_no_c(struct rxfer_sig *sig, const struct rxfer_sq *sq, struct rxfer_sig_wr *wr)
{
	const struct rxfer_sq plenty = {.depth = RXFER_SQ_MAX_DEPTH};

	(void)sq;
	return rxfer_sig_decide(sig, &plenty, wr);
}

/* Forgets what is reserved. */
static bool broken_c_unreserved(struct rxfer_sig *sig, const struct rxfer_sq *sq,
				struct rxfer_sig_wr *wr)
{
	struct rxfer_sq blind = *sq;

	blind.reserved = 0;
	return rxfer_sig_decide(sig, &blind, wr);
}

static bool broken_no_d(struct rxfer_sig *sig, const struct rxfer_sq *sq, struct rxfer_sig_wr *wr)
{
	bool must = wr->must_signal, said;

	wr->must_signal = false;
	said = rxfer_sig_decide(sig, sq, wr);
	wr->must_signal = must;
	return said;
}

/* Every WR counts as the end of its post. */
static bool broken_ends_post(struct rxfer_sig *sig, const struct rxfer_sq *sq,
			     struct rxfer_sig_wr *wr)
{
	bool ends = wr->ends_post, said;

	wr->ends_post = true;
	said = rxfer_sig_decide(sig, sq, wr);
	wr->ends_post = ends;
	return said;
}

/* Counts WRs where it should count I/Os. */
static bool broken_count_ios(struct rxfer_sig *sig, const struct rxfer_sq *sq,
			     struct rxfer_sig_wr *wr)
{
	*wr->io_epoch = 0;
	return rxfer_sig_decide(sig, sq, wr);
}

/* every:K starts anew at each signal, wanted or not. */
static bool broken_counted(struct rxfer_sig *sig, const struct rxfer_sq *sq,
			   struct rxfer_sig_wr *wr)
{
	bool said = rxfer_sig_decide(sig, sq, wr);

	if (said)
		sig->counted = 0;
	return said;
}

static void broken_rollback_none(struct rxfer_sig *sig, const struct rxfer_sig_wr *wr,
				 const bool *said, uint32_t taken, uint32_t n)
{
	(void)sig, (void)wr, (void)said, (void)taken, (void)n;
}

/* Takes everything back, the WRs that are in the queue too. */
static void broken_rollback_all(struct rxfer_sig *sig, const struct rxfer_sig_wr *wr,
				const bool *said, uint32_t taken, uint32_t n)
{
	(void)taken;
	rxfer_sig_rollback(sig, wr, said, 0, n);
}

/* Right counters, but the words of refused WRs still say that their I/Os are counted. */
static void broken_rollback_words(struct rxfer_sig *sig, const struct rxfer_sig_wr *wr,
				  const bool *said, uint32_t taken, uint32_t n)
{
	uint64_t word[MAX_CHAIN];
	uint32_t i;

	for (i = 0; i < n; i++)
		word[i] = *wr[i].io_epoch;
	rxfer_sig_rollback(sig, wr, said, taken, n);
	for (i = 0; i < n; i++)
		*wr[i].io_epoch = word[i];
}

/* How many of @n sequences notice that something is wrong with @ops. */
static uint64_t noticed(const struct decision_ops *ops, uint64_t n)
{
	uint64_t seed = prop_first_seed();
	uint64_t i, count = 0;
	struct prop p;

	for (i = 0; i < n; i++)
		count += !run_agrees(ops, &p, seed + i);
	return count;
}

#define BITES(name, member, broken)                               \
	static void name(void **state)                            \
	{                                                         \
		struct decision_ops ops = real;                   \
                                                                  \
		(void)state;                                      \
		ops.member = broken;                              \
		assert_in_range(noticed(&ops, 10000), 20, 10000); \
	}

BITES(bites_no_rule_b, decide, broken_no_b)
BITES(bites_rule_b_rounds_down, decide, broken_b_floor)
BITES(bites_no_rule_c, decide, broken_no_c)
BITES(bites_rule_c_ignores_reserved, decide, broken_c_unreserved)
BITES(bites_no_rule_d, decide, broken_no_d)
BITES(bites_rules_in_mid_post, decide, broken_ends_post)
BITES(bites_ios_counted_twice, decide, broken_count_ios)
BITES(bites_every_restarts, decide, broken_counted)
BITES(bites_rollback_none, rollback, broken_rollback_none)
BITES(bites_rollback_all, rollback, broken_rollback_all)
BITES(bites_rollback_words, rollback, broken_rollback_words)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_model),
		cmocka_unit_test(halves_make_the_whole),
		cmocka_unit_test(bites_no_rule_b),
		cmocka_unit_test(bites_rule_b_rounds_down),
		cmocka_unit_test(bites_no_rule_c),
		cmocka_unit_test(bites_rule_c_ignores_reserved),
		cmocka_unit_test(bites_no_rule_d),
		cmocka_unit_test(bites_rules_in_mid_post),
		cmocka_unit_test(bites_ios_counted_twice),
		cmocka_unit_test(bites_every_restarts),
		cmocka_unit_test(bites_rollback_none),
		cmocka_unit_test(bites_rollback_all),
		cmocka_unit_test(bites_rollback_words),
	};

	return cmocka_run_group_tests_name("prop_sig", tests, NULL, NULL);
}
