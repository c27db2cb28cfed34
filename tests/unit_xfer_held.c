/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Posts out of credits that the caller has reserved: what becomes of these, and of the accounts. */
#include "held_fixture.h"

#define REPLY 24 /* bytes */

static const struct rxfer_shape two_by_two = {
	.op = RXFER_WRITE, .bytes = BYTES, .frags = 2, .segments = 2};
static const struct rxfer_shape one_by_one = {
	.op = RXFER_WRITE, .bytes = BYTES, .frags = 1, .segments = 1};

/* A server of such I/Os, each of them a WRITE and a reply; two at a time. */
static void open_replier(struct pair *p, const struct rxfer_shape *shape, uint32_t depth,
			 const char *signal)
{
	open_pair(p, NULL, "multi-wr", shape);
	p->e.client_attr.reply = true;
	p->e.client_attr.ios = 4;
	p->e.client_attr.sq_depth = depth;
	policy(p, signal);
	connect_pair(p);
}

/* 100 bytes at @at, by @wrs WRs, to where they lie in the pool. */
static int write_held(struct pair *p, uint64_t at, uint32_t wrs, unsigned int flags, uint32_t *held,
		      uint32_t keep, uint64_t *epoch)
{
	uint32_t each = 100 / wrs;
	struct rxfer_frag frag[] = {{pool + at, each}, {pool + at + each, each}};
	struct rxfer_seg to = remote(p, at, 100);
	struct rxfer_op op = {.op = RXFER_WRITE,
			      .local = frag,
			      .nlocal = wrs,
			      .remote = &to,
			      .nremote = 1,
			      .id = at,
			      .flags = flags,
			      .epoch = epoch};

	return rxfer_post_held(p->e.client, &op, held, keep);
}

/* A message of REPLY bytes from the @n-th place of the fixed memory; its id is 1000 + @n. */
static int reply_held(struct pair *p, uint32_t n, unsigned int flags, uint32_t *held,
		      uint64_t *epoch)
{
	struct rxfer_frag frag = {header + n * REPLY, REPLY};
	struct rxfer_op op = {.op = RXFER_SEND,
			      .local = &frag,
			      .nlocal = 1,
			      .fixed = 1,
			      .id = 1000 + n,
			      .flags = flags,
			      .epoch = epoch};

	return rxfer_post_held(p->e.client, &op, held, 0);
}

static uint32_t reserve(struct pair *p, uint32_t n)
{
	assert_int_equal(rxfer_sq_reserve(p->sq, n), 0);
	return n;
}

/* ---- Credits ---- */

/* N is 4: three WRs at worst, and the reply. The WRITE takes two, one is kept, one is free again.
 */
static void what_is_not_kept_is_free(void **state)
{
	struct pair p;
	uint32_t held;

	(void)state;
	open_replier(&p, &two_by_two, 5, "all");
	expect_account(&p, 0, 0);
	held = reserve(&p, 4);
	expect_account(&p, 0, 4);
	assert_int_equal(rxfer_sq_reserve(p.sq, 1), -EAGAIN);
	assert_int_equal(write_held(&p, 200, 2, 0, &held, 1, NULL), 0);
	assert_int_equal(held, 1);
	expect_account(&p, 2, 1);
	assert_int_equal(rxfer_sq_free(p.sq), 1);
	assert_int_equal(fake_stats()->posts, 1);
	assert_int_equal(expect_done(&p, 200).bytes, 100);
	assert_memory_equal(theirs + 200, pool + 200, 100);
	expect_account(&p, 0, 1);
	assert_int_equal(reply_held(&p, 0, 0, &held, NULL), 0);
	assert_int_equal(held, 0);
	expect_account(&p, 1, 0);
	expect_done(&p, 1000);
	expect_message(&p, 0, header, REPLY);
	expect_account(&p, 0, 0);
	expect_nothing(&p);
	expect_no_message(&p);
	assert_true(engine_idle(p.e.client));
	engine_close(&p.e);
}

/* Two pieces onto two that are cut elsewhere: all three WRs, and what is kept stays, whoever asks
 * for it, until it is given back. */
static void the_worst_case_takes_all_but_what_is_kept(void **state)
{
	struct rxfer_frag frag[] = {{pool, 50}, {pool + 100, 50}};
	struct rxfer_op op = {.op = RXFER_WRITE, .local = frag, .nlocal = 2, .nremote = 2, .id = 7};
	struct rxfer_seg to[2];
	struct pair p;
	uint32_t held;

	(void)state;
	open_replier(&p, &two_by_two, 5, "io");
	to[0] = remote(&p, 0, 30);
	to[1] = remote(&p, 1000, 70);
	op.remote = to;
	held = reserve(&p, 4);
	assert_int_equal(rxfer_post_held(p.e.client, &op, &held, 1), 0);
	assert_int_equal(held, 1);
	expect_account(&p, 3, 1);
	assert_int_equal(rxfer_sq_free(p.sq), 0);
	expect_done(&p, 7);
	expect_account(&p, 0, 1);
	assert_memory_equal(theirs + 1020, pool + 100, 50);
	assert_int_equal(rxfer_sq_reserve(p.sq, 4), -EAGAIN);
	assert_int_equal(rxfer_sq_release(p.sq, held), 0);
	assert_int_equal(rxfer_sq_reserve(p.sq, 4), 0);
	assert_int_equal(rxfer_sq_release(p.sq, 4), 0);
	assert_true(engine_idle(p.e.client));
	engine_close(&p.e);
}

/* A post of both kinds beside each other: who has no credits of his own reserves N for a moment. */
static void posts_of_either_kind_share_the_queue(void **state)
{
	struct rxfer_frag frag = {pool, 8};
	struct rxfer_seg to;
	struct pair p;
	uint32_t held;

	(void)state;
	open_replier(&p, &one_by_one, 4, "all");
	to = remote(&p, 0, 8);
	held = reserve(&p, 1);
	assert_int_equal(rxfer_post_write(p.e.client, &frag, 1, &to, 1, 1, 0), 0);
	expect_account(&p, 1, 1);
	assert_int_equal(rxfer_post_write(p.e.client, &frag, 1, &to, 1, 2, 0), -EAGAIN);
	expect_account(&p, 1, 1);
	assert_int_equal(reply_held(&p, 0, 0, &held, NULL), 0);
	expect_account(&p, 2, 0);
	expect_done(&p, 1);
	expect_done(&p, 1000);
	expect_account(&p, 0, 0);
	engine_close(&p.e);
}

/* A WRITE that waits for its reply, and both in one post. */
static void one_post_out_of_one_reservation(void **state)
{
	struct pair p;
	uint32_t held;

	(void)state;
	open_replier(&p, &one_by_one, 3, "all");
	held = reserve(&p, 2);
	assert_int_equal(write_held(&p, 100, 1, RXFER_MORE, &held, 1, NULL), 0);
	assert_int_equal(held, 1);
	assert_int_equal(fake_stats()->posts, 0);
	assert_int_equal(rxfer_sq_posted(p.sq), 1); /* spent all the same */
	assert_int_equal(p.sq->reserved, 2);
	assert_int_equal(reply_held(&p, 3, 0, &held, NULL), 0);
	assert_int_equal(held, 0);
	assert_int_equal(fake_stats()->posts, 1);
	expect_account(&p, 2, 0);
	expect_message(&p, 0, header + 3 * REPLY, REPLY);
	assert_memory_equal(theirs + 100, pool + 100, 100);
	expect_done(&p, 100);
	expect_done(&p, 1003);
	expect_nothing(&p);
	assert_true(engine_idle(p.e.client));
	engine_close(&p.e);
}

/* ---- Refused ---- */

static void over(struct pair *p, int err, uint32_t held, uint32_t posted)
{
	struct rxfer_done done;
	uint32_t before = held;

	assert_int_equal(
		rxfer_post_held(p->e.client, &(struct rxfer_op){.op = RXFER_SEND}, &held, 0), err);
	assert_int_equal(held, before);
	assert_int_equal(write_held(p, 0, 1, RXFER_MORE, &held, 0, NULL), err);
	assert_int_equal(held, before);
	assert_int_equal(rxfer_poll(p->e.client, &done, 1), err);
	engine_said("took");
	expect_account(p, posted, before);
	engine_close(&p->e);
}

/* The device takes @taken WRs of a WRITE of two and a reply, all silent. */
static void chain_is_refused(uint32_t taken)
{
	uint64_t epoch = 0;
	struct pair p;
	uint32_t held;

	open_replier(&p, &two_by_two, 40, "every:40");
	held = reserve(&p, 4);
	fake_live()->post_part.nth = 1;
	fake_live()->post_part.take = taken;
	fake_live()->post_part.err = ENOSPC;
	assert_int_equal(write_held(&p, 0, 2, RXFER_MORE, &held, 1, &epoch), 0);
	assert_int_equal(reply_held(&p, 0, 0, &held, &epoch), -ENOSPC);
	engine_said("of 3 WRs");
	assert_int_equal(held, 0);
	assert_int_equal(p.e.client->sig.silent, taken);
	assert_int_equal(p.e.client->sig.silent_ios, taken > 0);
	assert_int_equal(epoch, taken ? p.e.client->sig.epoch : 0);
	assert_int_equal(p.e.client->sig.forced, 0);
	assert_int_equal(rxfer_sq_posted(p.sq), taken);
	assert_int_equal(p.e.client->counts.posts, 1);
	over(&p, -ENOSPC, held, taken);
}

static void a_chain_is_refused(void **state)
{
	(void)state;
	for (uint32_t taken = 0; taken < 3; taken++)
		chain_is_refused(taken);
}

/* What was kept for later stays reserved: it is the caller's, also when there is no later. */
static void the_second_post_is_refused(void **state)
{
	struct pair p;
	uint32_t held;

	(void)state;
	open_replier(&p, &two_by_two, 9, "all");
	held = reserve(&p, 8);
	assert_int_equal(write_held(&p, 0, 2, 0, &held, 5, NULL), 0);
	expect_account(&p, 2, 5);
	fake_live()->fail_post_send = (struct fake_fault){1, EIO};
	assert_int_equal(write_held(&p, 100, 2, 0, &held, 2, NULL), -EIO);
	assert_int_equal(held, 2);
	over(&p, -EIO, held, 2);
}

/* ---- Not posted: nothing is spent ---- */

/* @ios posts are in flight, whatever there is in credits. What was held back does not wait. */
static void the_ring_is_full(void **state)
{
	struct rxfer_frag frag = {pool, 8};
	struct rxfer_seg to;
	struct pair p;
	uint32_t held;

	(void)state;
	open_pair(&p, NULL, "global", &one_by_one);
	p.e.client_attr.ios = 3; /* the slots are 2 */
	p.e.client_attr.sq_depth = 20;
	connect_pair(&p);
	held = reserve(&p, 19);
	assert_int_equal(write_held(&p, 0, 1, 0, &held, 18, NULL), 0);
	assert_int_equal(write_held(&p, 100, 1, RXFER_MORE, &held, 17, NULL), 0);
	assert_int_equal(write_held(&p, 200, 1, RXFER_MORE, &held, 10, NULL), 0);
	assert_int_equal(fake_stats()->posts, 1);
	assert_int_equal(write_held(&p, 300, 1, 0, &held, 0, NULL), -EAGAIN);
	assert_int_equal(held, 10);
	expect_account(&p, 3, 10);
	assert_int_equal(fake_stats()->posts, 2);
	to = remote(&p, 0, 8);
	assert_int_equal(rxfer_post_write(p.e.client, &frag, 1, &to, 1, 4, 0), -EAGAIN);
	expect_account(&p, 3, 10); /* nor are its own credits gone */
	for (uint64_t id = 0; id < 300; id += 100)
		expect_done(&p, id);
	assert_int_equal(write_held(&p, 300, 1, 0, &held, 0, NULL), 0);
	expect_account(&p, 1, 0);
	expect_done(&p, 300);
	engine_close(&p.e);
}

/* With none told, as many posts as slots. */
static void the_ring_is_as_large_as_the_slots(void **state)
{
	struct pair p;
	uint32_t held;

	(void)state;
	open_pair(&p, NULL, "global", &one_by_one);
	p.e.client_attr.sq_depth = 20;
	connect_pair(&p);
	held = reserve(&p, 5);
	assert_int_equal(write_held(&p, 0, 1, 0, &held, 4, NULL), 0);
	assert_int_equal(write_held(&p, 100, 1, 0, &held, 3, NULL), 0);
	assert_int_equal(write_held(&p, 200, 1, 0, &held, 2, NULL), -EAGAIN);
	assert_int_equal(held, 3);
	expect_account(&p, 2, 3);
	engine_close(&p.e);
}

static void refuse(struct pair *p, const struct rxfer_op *op, int err, const char *words)
{
	uint32_t held = reserve(p, 2);

	rxfer_fail(EIO, "something else");
	assert_int_equal(rxfer_post_held(p->e.client, op, &held, 1), err);
	engine_said(words);
	assert_int_equal(held, 2);
	expect_account(p, 0, 2);
	assert_int_equal(rxfer_sq_release(p->sq, held), 0);
}

static void what_does_not_fit_is_refused(void **state)
{
	struct rxfer_frag frag[3] = {{header, 8}, {header + 64, 8}, {header + 128, 8}};
	struct rxfer_frag elsewhere = {(void *)(uintptr_t)4096, 8}, none = {pool, 0};
	struct rxfer_op op = {.op = RXFER_WRITE, .local = frag, .nremote = 1};
	struct rxfer_seg to[3];
	struct pair p;

	(void)state;
	open_replier(&p, &two_by_two, 9, "all");
	for (uint32_t i = 0; i < 3; i++)
		to[i] = remote(&p, i * 100, 8);
	op.remote = to;
	refuse(&p, &op, -EINVAL, "0 fragments and 1 segment on a connection made for 2 and 2");
	op.nlocal = 3;
	refuse(&p, &op, -EINVAL, "3 fragments");
	op.nlocal = 2;
	op.nremote = 3;
	refuse(&p, &op, -EINVAL, "3 segments");
	op.nremote = 2;
	op.fixed = 3;
	refuse(&p, &op, -EINVAL, "2 fragments");
	op.fixed = 0;
	op.flags = RXFER_ASIDE | RXFER_MORE;
	refuse(&p, &op, -EINVAL, "joins no others");
	op = (struct rxfer_op){.op = RXFER_SEND, .local = &elsewhere, .nlocal = 1};
	refuse(&p, &op, -EFAULT, "rxfer_mem_add()");
	op.fixed = 1;
	refuse(&p, &op, -EFAULT, "rxfer_mem_add()");
	op = (struct rxfer_op){.op = RXFER_WRITE, .local = &none, .nlocal = 1};
	op.remote = to;
	op.nremote = 1;
	refuse(&p, &op, -EINVAL, "no bytes");
	assert_true(engine_idle(p.e.client));
	engine_close(&p.e);
}

/* ---- Signalling: the parts of an I/O are one ---- */

#define SLOTS 8
#define IOS   100

/* A WRITE and its reply by themselves, for the first one; both silent. */
static uint32_t silent_ios(uint64_t *first, uint64_t *second)
{
	struct pair p;
	uint32_t held, ios;

	open_pair(&p, NULL, "multi-wr", &one_by_one);
	p.e.client_attr.slots = SLOTS;
	p.e.client_attr.sq_depth = 200;
	policy(&p, "every:99");
	connect_pair(&p);
	held = reserve(&p, 2);
	assert_int_equal(write_held(&p, 0, 1, 0, &held, 1, first), 0);
	assert_int_equal(p.e.client->sig.silent_ios, 1);
	assert_int_equal(reply_held(&p, 0, 0, &held, second), 0);
	assert_int_equal(p.e.client->sig.silent, 2);
	ios = p.e.client->sig.silent_ios;
	engine_close(&p.e);
	return ios;
}

static void parts_that_share_a_word_are_one_io(void **state)
{
	uint64_t epoch[3] = {0};

	(void)state;
	assert_int_equal(silent_ios(NULL, NULL), 2);
	assert_int_equal(silent_ios(&epoch[0], &epoch[0]), 1);
	assert_int_not_equal(epoch[0], 0);
	assert_int_equal(silent_ios(&epoch[1], &epoch[2]), 2);
	assert_int_equal(epoch[1], epoch[2]);
}

/* A word that is not given any more is not written to by the next one in the same place. */
static void a_word_is_for_one_post(void **state)
{
	uint64_t epoch = 0, was;
	struct pair p;
	uint32_t held;

	(void)state;
	open_pair(&p, NULL, "multi-wr", &one_by_one);
	p.e.client_attr.slots = 1;
	connect_pair(&p);
	held = reserve(&p, 2);
	assert_int_equal(write_held(&p, 0, 1, 0, &held, 1, &epoch), 0);
	was = epoch;
	assert_int_equal(was, 1);
	expect_done(&p, 0);
	assert_int_equal(write_held(&p, 100, 1, 0, &held, 0, NULL), 0);
	assert_int_equal(epoch, was);
	expect_done(&p, 100);
	engine_close(&p.e);
}

/* I/Os of two WRITEs and a reply, in a closed loop over the slots. @more: in one post. */
struct stream {
	struct pair p;
	uint64_t epoch[SLOTS];
	uint32_t started, done;
	bool more;
};

/* The next I/O, where there are a slot and N credits for it. */
static bool start_one(struct stream *s)
{
	unsigned int flags = s->more ? RXFER_MORE : 0;
	uint64_t *epoch = &s->epoch[s->started % SLOTS];
	uint32_t held = 3;

	if (s->started == IOS || s->started - s->done == SLOTS || rxfer_sq_reserve(s->p.sq, held))
		return false;
	*epoch = 0;
	assert_int_equal(write_held(&s->p, 0, 1, flags, &held, 2, epoch), 0);
	assert_int_equal(held, 2);
	assert_int_equal(write_held(&s->p, 100, 1, flags, &held, 1, epoch), 0);
	assert_int_equal(held, 1);
	assert_int_equal(reply_held(&s->p, s->started, 0, &held, epoch), 0);
	assert_int_equal(held, 0);
	s->started++;
	return true;
}

/* Whatever is done, on either end. */
static bool reap(struct stream *s)
{
	struct rxfer_done done;
	bool any = false;

	fake_run();
	while (rxfer_poll(s->p.e.client, &done, 1) == 1) {
		s->done += done.op == RXFER_SEND;
		any = true;
	}
	while (rxfer_poll(s->p.e.server, &done, 1) == 1)
		assert_int_equal(rxfer_post_recv(s->p.e.server, inbox[done.id], MESSAGE, done.id),
				 0);
	return any;
}

/* Returns the signals that the policy did not want. */
static uint64_t stream(uint32_t depth, const char *signal, bool more)
{
	static const struct rxfer_shape shape = {
		.op = RXFER_WRITE, .bytes = 200, .frags = 2, .segments = 2, .aligned = true};
	struct stream s = {.more = more};
	struct rxfer_conn_info info;
	bool moved, drained = false;
	struct rxfer_seg none;

	open_pair(&s.p, NULL, "multi-wr", &shape);
	s.p.e.client_attr.reply = true;
	s.p.e.client_attr.slots = SLOTS;
	s.p.e.client_attr.ios = 3 * SLOTS;
	s.p.e.client_attr.sq_depth = depth;
	policy(&s.p, signal);
	connect_pair(&s.p);
	none = remote(&s.p, 0, 0);
	rxfer_conn_info(s.p.e.client, &info);
	assert_int_equal(info.need, 3);
	while (s.done < IOS) {
		for (moved = false; start_one(&s); moved = true)
			;
		moved = reap(&s) || moved;
		if (!moved && s.started == IOS && !drained)
			drained = moved = !rxfer_drain(s.p.e.client, &none); /* the tail's */
		if (!moved)
			fail_msg("%u of %u I/Os are done, and nothing moves", s.done, IOS);
	}
	assert_true(engine_idle(s.p.e.client));
	rxfer_conn_info(s.p.e.client, &info);
	assert_int_equal(rxfer_conn_counts(s.p.e.client)->sqe, 3 * IOS);
	engine_close(&s.p.e);
	return info.forced_signals;
}

/* The sixth WR that the policy waits for never comes, as there is room for three: each I/O is asked
 * for a completion by the rule of credits. */
static void a_queue_of_six_never_stands_still(void **state)
{
	(void)state;
	assert_int_equal(stream(6, "every:6", true), IOS / 2);
	assert_in_range(stream(6, "every:6", false), IOS, 3 * IOS);
	stream(4, "every:4", true);
	stream(4, "half", false);
}

/* Credits are plenty, so it is the slots: half of them in the silent tail, and one is asked. In
 * three posts that is the fourth I/O's first, and its other two are the first of the next four.
 * Were the posts counted as three I/Os, it would be more often. */
static void slots_never_stand_still(void **state)
{
	(void)state;
	assert_int_equal(stream(1000, "every:999", true), IOS / 4);
	assert_int_equal(stream(1000, "every:999", false), 1 + (IOS - 4) / 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_kept_is_free),
		cmocka_unit_test(the_worst_case_takes_all_but_what_is_kept),
		cmocka_unit_test(posts_of_either_kind_share_the_queue),
		cmocka_unit_test(one_post_out_of_one_reservation),
		cmocka_unit_test(a_chain_is_refused),
		cmocka_unit_test(the_second_post_is_refused),
		cmocka_unit_test(the_ring_is_full),
		cmocka_unit_test(the_ring_is_as_large_as_the_slots),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(parts_that_share_a_word_are_one_io),
		cmocka_unit_test(a_word_is_for_one_post),
		cmocka_unit_test(a_queue_of_six_never_stands_still),
		cmocka_unit_test(slots_never_stand_still),
	};

	return cmocka_run_group_tests_name("unit_xfer_held", tests, NULL, NULL);
}
