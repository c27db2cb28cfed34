/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The send-queue account and the signalling rules together, in a closed loop: random queues, random
 * policies, slots that post I/O after I/O, a device that executes in order, at its own pace, and
 * gives entries back only with a polled completion. All that could go wrong goes wrong here first:
 *
 * - nothing ever dead-locks;
 * - the device never holds more SQEs than the depth;
 * - each completion returns what the device returns;
 * - at the end the tail is silent if and only if entries are still out; one drain WR then returns
 *   them all, and every credit is free.
 *
 * Three kinds of I/O. DIRECT posts once and is done when proven. REPLY keeps credits for later WRs:
 * its reply comes some time after the device executed the first post, and the rest is then posted
 * or released (the peer has revoked). SYNC waits for the proof of its first post, so it has
 * must_signal set there, before it posts the rest.
 *
 * The other tests run the same simulation with one rule taken out, and demand that it then fails.
 */
#include <string.h>

#include "prop.h"
#include "../src/sig.h"

#define MAX_DEPTH 64
#define MAX_SLOTS 16

enum kind { DIRECT, REPLY, SYNC };
enum slot_state { IDLE, READY, WAITING, READY_AGAIN, PROVING };
enum outcome { FINE, DEAD_LOCK, WRONG };

/* What is taken out. */
enum broken {
	NOTHING,
	NO_RULE_B,
	NO_RULE_C,
	NO_RULE_D,
	RULE_C_AT_EVERY_WR, /* not broken, only wasteful */
	ONE_SQE_PER_CQE,
	NO_CREDITS,
};

/* One I/O in flight. @last: number of its latest WR. @held: credits it holds. */
struct slot {
	enum slot_state state;
	uint32_t held;
	uint64_t last;
	uint64_t epoch;
};

/* A real queue: 64-bit numbers, entries [returned, head) occupied, [returned, exec) executed. */
struct device {
	bool signalled[MAX_DEPTH];
	uint64_t head;
	uint64_t exec;
	uint64_t returned;
};

struct sim {
	struct prop *p;
	enum broken broken;
	enum outcome outcome;

	/* the configuration */
	uint32_t depth, n_slots, need, later, drain, batch, partial, n_ios;
	uint32_t weight[5];
	enum kind kind;

	struct rxfer_sq sq;
	struct rxfer_sig sig;
	struct device dev;
	struct slot slot[MAX_SLOTS];
	uint32_t started;

	/* the post under construction */
	struct rxfer_sig_wr wr[MAX_DEPTH];
	struct slot *owner[MAX_DEPTH];
	uint32_t n_wr;
};

static bool expect(struct sim *s, bool cond)
{
	if (!cond)
		s->outcome = WRONG;
	return cond;
}

/* ---- posting ---- */

static bool decide(struct sim *s, struct rxfer_sig_wr *wr)
{
	const struct rxfer_sq plenty = {.depth = RXFER_SQ_MAX_DEPTH};

	if (s->broken == RULE_C_AT_EVERY_WR && rxfer_sq_free(&s->sq) < s->need)
		wr->must_signal = true;
	return rxfer_sig_decide(&s->sig, s->broken == NO_RULE_C ? &plenty : &s->sq, wr);
}

static void device_take(struct sim *s, const bool *said, uint32_t n)
{
	struct device *d = &s->dev;
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (!expect(s, d->head - d->returned < s->depth))
			return;
		s->owner[i]->last = d->head;
		d->signalled[d->head++ % s->depth] = said[i];
	}
}

/* The device took @taken of the post: what it refused is committed anew, to be posted at once. */
static void refused(struct sim *s, const bool *said, uint32_t taken)
{
	uint32_t left = s->n_wr - taken, first = 0;

	expect(s, rxfer_sq_unpost(&s->sq, left) == 0);
	rxfer_sig_rollback(&s->sig, s->wr, said, taken, s->n_wr);
	expect(s, rxfer_sq_reserve(&s->sq, left) == 0);
	expect(s, rxfer_sq_commit(&s->sq, left, left, 0, &first) == 0);
	expect(s, first == (uint32_t)s->dev.head);
	memmove(s->wr, s->wr + taken, left * sizeof(s->wr[0]));
	memmove(s->owner, s->owner + taken, left * sizeof(s->owner[0]));
	s->n_wr = left;
}

static void post(struct sim *s)
{
	while (s->n_wr && s->outcome == FINE) {
		bool said[MAX_DEPTH];
		uint32_t i, taken = s->n_wr;

		for (i = 0; i < s->n_wr; i++)
			said[i] = decide(s, &s->wr[i]);
		if (prop_chance(s->p, s->partial))
			taken = prop_range(s->p, 0, s->n_wr - 1);
		device_take(s, said, taken);
		if (taken == s->n_wr)
			s->n_wr = 0;
		else
			refused(s, said, taken);
	}
}

/* Appends @actual WRs of one I/O, which holds its credits and keeps @keep. */
static bool append(struct sim *s, struct slot *io, uint32_t actual, uint32_t keep, bool must)
{
	uint32_t i, first = 0;

	if (s->broken == NO_CREDITS)
		s->sq.head += actual;
	else if (!expect(s, !rxfer_sq_commit(&s->sq, io->held, actual, keep, &first)) ||
		 !expect(s, first == (uint32_t)(s->dev.head + s->n_wr)))
		return false;

	io->held = keep;
	for (i = 0; i < actual; i++) {
		s->owner[s->n_wr] = io;
		s->wr[s->n_wr++] = (struct rxfer_sig_wr){
			.must_signal = must && i == actual - 1,
			.ends_io = i == actual - 1,
			.io_epoch = &io->epoch,
		};
	}
	return true;
}

static bool append_io(struct sim *s, struct slot *io)
{
	bool first = io->state == READY;
	uint32_t keep = first ? s->later : 0;
	uint32_t actual = prop_range(s->p, 1, io->held - keep);
	bool must = first && s->kind == SYNC && s->broken != NO_RULE_D;

	io->state = first && s->kind != DIRECT ? WAITING : PROVING;
	return append(s, io, actual, keep, must);
}

/* ---- what can happen; each returns whether it did ---- */

static bool start_io(struct sim *s)
{
	uint32_t i;

	if (s->started == s->n_ios)
		return false;
	for (i = 0; i < s->n_slots && s->slot[i].state != IDLE; i++)
		;
	if (i == s->n_slots || (s->broken != NO_CREDITS && rxfer_sq_reserve(&s->sq, s->need)))
		return false;

	s->slot[i].state = READY;
	s->slot[i].held = s->need;
	s->started++;
	return true;
}

/* One post for some of the I/Os that hold credits for it. */
static bool post_ios(struct sim *s)
{
	uint32_t i, most = prop_range(s->p, 1, s->batch), n = 0;
	uint32_t offset = prop_range(s->p, 0, s->n_slots - 1);

	for (i = 0; i < s->n_slots && n < most; i++) {
		struct slot *io = &s->slot[(i + offset) % s->n_slots];

		if (io->state != READY && io->state != READY_AGAIN)
			continue;
		if (s->n_wr + io->held > MAX_DEPTH)
			break;
		if (!append_io(s, io))
			return true;
		n++;
	}
	if (!n)
		return false;
	s->wr[s->n_wr - 1].ends_post = true;
	post(s);
	return true;
}

static bool execute(struct sim *s)
{
	uint64_t left = s->dev.head - s->dev.exec;

	if (!left)
		return false;
	s->dev.exec += prop_range(s->p, 1, (uint32_t)left);
	return true;
}

/* All WRs up to @s->dev.returned are proven. */
static void proven(struct sim *s)
{
	uint32_t i;

	for (i = 0; i < s->n_slots; i++) {
		struct slot *io = &s->slot[i];

		if (io->last >= s->dev.returned)
			continue;
		if (io->state == PROVING)
			io->state = IDLE;
		else if (io->state == WAITING && s->kind == SYNC)
			io->state = READY_AGAIN;
	}
}

static bool poll_one(struct sim *s)
{
	struct device *d = &s->dev;
	uint64_t seq = d->returned;
	int64_t back;

	while (seq < d->exec && !d->signalled[seq % s->depth])
		seq++;
	if (seq == d->exec)
		return false;

	back = rxfer_sq_complete(&s->sq, (uint32_t)seq);
	expect(s, back == (int64_t)(seq + 1 - d->returned));
	d->returned = seq + 1;
	if (s->broken == ONE_SQE_PER_CQE) {
		s->outcome = FINE;
		s->sq.tail -= (uint32_t)back - 1;
	}
	proven(s);
	return true;
}

/* A reply may come as soon as its request is executed, proven or not. */
static bool reply(struct sim *s)
{
	uint32_t i;

	for (i = 0; i < s->n_slots; i++) {
		struct slot *io = &s->slot[i];

		if (s->kind != REPLY || io->state != WAITING || io->last >= s->dev.exec)
			continue;
		if (prop_chance(s->p, 50)) {
			io->state = READY_AGAIN;
			return true;
		}
		expect(s, rxfer_sq_release(&s->sq, io->held) == 0);
		io->held = 0;
		io->state = io->last < s->dev.returned ? IDLE : PROVING;
		return true;
	}
	return false;
}

static bool (*const events[])(struct sim *s) = {start_io, post_ios, execute, poll_one, reply};

#define N_EVENTS (sizeof(events) / sizeof(events[0]))

/* Something happens: by weight, so that delays differ; if that cannot, whatever can. */
static bool step(struct sim *s)
{
	uint32_t i = 0, dice = prop_range(s->p, 0, 99);

	while (i < N_EVENTS - 1 && dice >= s->weight[i])
		dice -= s->weight[i++];
	if (events[i](s))
		return true;
	for (i = 0; i < N_EVENTS; i++) {
		if (events[i](s))
			return true;
	}
	return false;
}

/* ---- a run ---- */

static uint32_t random_need(struct prop *p, uint32_t depth)
{
	return prop_chance(p, 50) ? prop_range(p, 1, depth) : prop_range(p, 1, 1 + depth / 8);
}

/* The drain credit is left out only where N takes the whole depth. */
static void configure(struct sim *s, struct prop *p, enum broken broken, uint64_t seed)
{
	uint32_t i;

	prop_start(p, seed);
	*s = (struct sim){.p = p, .broken = broken};
	s->depth = 1 + (uint32_t)(seed % MAX_DEPTH);
	s->need = random_need(p, s->depth);
	s->drain = s->need < s->depth;
	s->n_slots = prop_range(p, 1, MAX_SLOTS);
	s->kind = s->need > 1 ? (enum kind)prop_range(p, DIRECT, SYNC) : DIRECT;
	s->later = s->kind == DIRECT ? 0 : prop_range(p, 1, s->need - 1);
	s->batch = prop_chance(p, 50) ? 1 : prop_range(p, 1, s->n_slots);
	s->partial = prop_chance(p, 30) ? 20 : 0;
	s->n_ios = prop_range(p, 1, 60);
	for (i = 0; i < N_EVENTS; i++)
		s->weight[i] = prop_range(p, 1, 30);
}

static void set_up(struct sim *s, const struct rxfer_sig_ops *policy)
{
	uint32_t arg = prop_range(s->p, 1, s->depth);
	uint32_t slots = s->broken == NO_RULE_B ? ~0u : s->n_slots;

	expect(s, rxfer_sq_init(&s->sq, s->depth) == 0);
	expect(s, rxfer_sig_init(&s->sig, policy, arg, s->depth, slots, s->need) == 0);
	expect(s, rxfer_sq_reserve(&s->sq, s->drain) == 0);
	s->dev.head = (1ull << 32) - prop_range(s->p, 0, 200);
	s->dev.exec = s->dev.returned = s->dev.head;
	s->sq.head = s->sq.tail = (uint32_t)s->dev.head;
}

/* The load is over once all I/Os were posted and wait for nothing but proof. */
static bool load_is_over(const struct sim *s)
{
	uint32_t i;

	for (i = 0; i < s->n_slots; i++) {
		if (s->slot[i].state != IDLE && s->slot[i].state != PROVING)
			return false;
	}
	return s->started == s->n_ios;
}

/* Entries are out if and only if the tail is silent, and the drain WR brings them back. */
static void drain(struct sim *s)
{
	struct slot drainer = {.held = 1};

	if (!expect(s, rxfer_sig_tail_silent(&s->sig) == (s->dev.head != s->dev.returned)))
		return;
	if (!rxfer_sig_tail_silent(&s->sig)) {
		expect(s, rxfer_sq_release(&s->sq, s->drain) == 0);
		return;
	}
	if (!s->drain && !expect(s, rxfer_sq_reserve(&s->sq, 1) == 0))
		return;
	if (!append(s, &drainer, 1, 0, true))
		return;
	s->wr[0].ends_post = true;
	s->partial = 0;
	post(s);
	s->dev.exec = s->dev.head;
	expect(s, poll_one(s));
}

static void all_is_back(struct sim *s)
{
	uint32_t i;

	expect(s, s->dev.head == s->dev.returned);
	expect(s, rxfer_sq_posted(&s->sq) == 0);
	expect(s, rxfer_sq_free(&s->sq) == s->depth);
	expect(s, !rxfer_sig_tail_silent(&s->sig));
	expect(s, s->sq.peak <= s->depth);
	for (i = 0; i < s->n_slots; i++)
		expect(s, s->slot[i].state == IDLE);
}

/* @policy: NULL for a random one */
static enum outcome run(struct sim *s, struct prop *p, enum broken broken, uint64_t seed,
			const struct rxfer_sig_ops *policy)
{
	configure(s, p, broken, seed);
	set_up(s, policy ? policy : rxfer_sig_list(prop_range(p, 0, 3)));
	while (s->outcome == FINE && step(s)) {
		if (broken == NOTHING)
			expect(s, rxfer_sq_check(&s->sq) == 0);
	}
	if (s->outcome != FINE)
		return s->outcome;
	if (!load_is_over(s))
		return DEAD_LOCK;
	drain(s);
	if (s->outcome == FINE)
		all_is_back(s);
	return s->outcome;
}

/* ---- tests ---- */

#define N_BROKEN 5000

static const struct rxfer_sig_ops *half(void)
{
	const struct rxfer_sig_ops *ops = NULL;
	uint32_t arg;

	assert_int_equal(rxfer_sig_parse("half", &ops, &arg), 0);
	return ops;
}

/* How many of N_BROKEN runs under `half` end with @outcome. */
static uint32_t count(enum broken broken, enum outcome outcome)
{
	uint64_t seed = prop_first_seed();
	uint32_t i, n = 0;
	struct prop p;
	struct sim s;

	for (i = 0; i < N_BROKEN; i++)
		n += run(&s, &p, broken, seed + i, half()) == outcome;
	return n;
}

static void never_dead_locks(void **state)
{
	uint64_t seed = prop_first_seed();
	uint64_t n = prop_count(200000, 64);
	struct prop p;
	struct sim s;

	(void)state;
	for (; n; n--, seed++) {
		enum outcome outcome = run(&s, &p, NOTHING, seed, NULL);

		PROP_CHECK(&p, outcome != DEAD_LOCK);
		PROP_CHECK(&p, outcome == FINE);
	}
}

/* The default must be alive on the very configurations that the tests below break. */
static void half_is_fine(void **state)
{
	(void)state;
	assert_int_equal(count(NOTHING, FINE), N_BROKEN);
}

static void dead_locks_without_rule_b(void **state)
{
	(void)state;
	assert_in_range(count(NO_RULE_B, DEAD_LOCK), N_BROKEN / 10, N_BROKEN);
}

static void dead_locks_without_rule_c(void **state)
{
	(void)state;
	assert_in_range(count(NO_RULE_C, DEAD_LOCK), N_BROKEN / 50, N_BROKEN);
}

static void dead_locks_without_rule_d(void **state)
{
	(void)state;
	assert_in_range(count(NO_RULE_D, DEAD_LOCK), N_BROKEN / 100, N_BROKEN);
}

static void dead_locks_when_silent_sqes_stay(void **state)
{
	(void)state;
	assert_in_range(count(ONE_SQE_PER_CQE, DEAD_LOCK) + count(ONE_SQE_PER_CQE, WRONG),
			N_BROKEN / 10, N_BROKEN);
}

static void overflows_without_credits(void **state)
{
	(void)state;
	assert_in_range(count(NO_CREDITS, WRONG), N_BROKEN / 10, N_BROKEN);
}

/* Rule (c) at the end of a post is as alive as at every WR, and asks for fewer completions. */
static void rule_c_is_lean(void **state)
{
	uint64_t seed = prop_first_seed();
	uint64_t lean = 0, wasteful = 0;
	struct prop p;
	struct sim s;
	uint32_t i;

	(void)state;
	for (i = 0; i < N_BROKEN; i++) {
		PROP_CHECK(&p, run(&s, &p, NOTHING, seed + i, half()) == FINE);
		lean += s.sig.signalled;
		PROP_CHECK(&p, run(&s, &p, RULE_C_AT_EVERY_WR, seed + i, half()) == FINE);
		wasteful += s.sig.signalled;
	}
	assert_true(lean * 10 < wasteful * 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_dead_locks),
		cmocka_unit_test(half_is_fine),
		cmocka_unit_test(dead_locks_without_rule_b),
		cmocka_unit_test(dead_locks_without_rule_c),
		cmocka_unit_test(dead_locks_without_rule_d),
		cmocka_unit_test(dead_locks_when_silent_sqes_stay),
		cmocka_unit_test(overflows_without_credits),
		cmocka_unit_test(rule_c_is_lean),
	};

	return cmocka_run_group_tests_name("prop_loop", tests, NULL, NULL);
}
