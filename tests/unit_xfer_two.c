/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A server's data and its reply, prepared and in one post: as if they had been posted by their
 * lists. And how the messages are handed up there. */
#include "held_fixture.h"

#define IOS   12
#define LEN   100
#define REPLY 24 /* bytes */

static const struct rxfer_shape one_by_one = {
	.op = RXFER_WRITE, .bytes = BYTES, .frags = 1, .segments = 1};

/* What an I/O of a server's is, and what is prepared of it. */
struct replies {
	struct pair p;
	struct rxfer_prepared *data[IOS], *last[IOS];
	struct rxfer_frag frag[IOS], message[IOS];
	uint64_t epoch[IOS];
};

static void prepare_one(struct replies *r, uint32_t i, enum rxfer_opcode op)
{
	const struct rxfer_seg anywhere = {.len = UINT32_MAX};
	const struct rxfer_op data = {.op = op,
				      .local = &r->frag[i],
				      .nlocal = 1,
				      .remote = &anywhere,
				      .nremote = 1,
				      .epoch = &r->epoch[i]};
	const struct rxfer_op last = {.op = RXFER_SEND,
				      .local = &r->message[i],
				      .nlocal = 1,
				      .fixed = 1,
				      .epoch = &r->epoch[i]};

	r->frag[i] = (struct rxfer_frag){pool + i * LEN, LEN};
	r->message[i] = (struct rxfer_frag){header + i * REPLY, REPLY};
	assert_int_equal(rxfer_prepare(r->p.e.client, &data, &r->data[i]), 0);
	assert_int_equal(rxfer_prepare(r->p.e.client, &last, &r->last[i]), 0);
}

static void open_replies_at(struct replies *r, const struct fake_config *config, const char *signal,
			    enum rxfer_opcode op, uint32_t depth)
{
	*r = (struct replies){0};
	open_pair(&r->p, config, "global", &one_by_one);
	engine_attr(&r->p.e, &one_by_one, IOS, 0, signal);
	r->p.e.server_attr.rq_depth = MESSAGES;
	r->p.e.client_attr.reply = true;
	r->p.e.client_attr.ios = 2 * IOS;
	r->p.e.client_attr.sq_depth = depth;
	connect_pair(&r->p);
	for (uint32_t i = 0; i < IOS; i++)
		prepare_one(r, i, op);
}

/* A queue that is deep enough for all of them. */
static void open_replies(struct replies *r, const struct fake_config *config, const char *signal,
			 enum rxfer_opcode op)
{
	open_replies_at(r, config, signal, op, 2 * IOS + 1);
}

static void close_replies(struct replies *r)
{
	for (uint32_t i = 0; i < IOS; i++) {
		rxfer_unprepare(r->data[i]);
		rxfer_unprepare(r->last[i]);
	}
	engine_close(&r->p.e);
}

static uint32_t reserve(struct replies *r, uint32_t n)
{
	assert_int_equal(rxfer_sq_reserve(r->p.sq, n), 0);
	return n;
}

static int post_two(struct replies *r, uint32_t i, uint32_t *held)
{
	struct rxfer_seg to = remote(&r->p, i * LEN, LEN);

	return rxfer_post_prepared_two(r->data[i], &to, r->last[i], 0, i, 0, held);
}

/* ---- The same as by lists ---- */

enum way { BY_LISTS, PREPARED };

static int by_lists(struct replies *r, uint32_t i, enum rxfer_opcode opcode, unsigned int flags,
		    uint32_t *held, uint32_t keep)
{
	bool send = opcode == RXFER_SEND;
	struct rxfer_seg to = remote(&r->p, i * LEN, LEN);
	const struct rxfer_op op = {.op = opcode,
				    .local = send ? &r->message[i] : &r->frag[i],
				    .nlocal = 1,
				    .fixed = send,
				    .remote = send ? NULL : &to,
				    .nremote = !send,
				    .id = i,
				    .flags = flags,
				    .epoch = &r->epoch[i]};

	return rxfer_post_held(r->p.e.client, &op, held, keep);
}

static int write_and_reply(struct replies *r, uint32_t i, enum way way, uint32_t *held)
{
	int rc;

	if (way == PREPARED)
		return post_two(r, i, held);
	rc = by_lists(r, i, RXFER_WRITE, RXFER_PART | RXFER_MORE, held, 1);
	return rc ? rc : by_lists(r, i, RXFER_SEND, 0, held, 0);
}

static int read_part(struct replies *r, uint32_t i, enum way way, uint32_t *held)
{
	const unsigned int flags = RXFER_PART | RXFER_MUST_SIGNAL;
	struct rxfer_seg from = remote(&r->p, i * LEN, LEN);

	if (way == PREPARED)
		return rxfer_post_prepared_to(r->data[i], &from, 0, i, flags, held, 1);
	return by_lists(r, i, RXFER_READ, flags, held, 1);
}

static int reply(struct replies *r, uint32_t i, enum way way, uint32_t *held)
{
	if (way == PREPARED)
		return rxfer_post_prepared_held(r->last[i], 0, i, 0, held, 0);
	return by_lists(r, i, RXFER_SEND, 0, held, 0);
}

/* All that the rules and the reports know after each post, and what was handed up. */
struct known {
	uint64_t rules[IOS][10];
	struct rxfer_counts counts[IOS];
	uint64_t done[2 * IOS][4];
	uint32_t ndone;
};

static void note(const struct replies *r, struct known *k, uint32_t i)
{
	const struct rxfer_sig *sig = &r->p.e.client->sig;
	const struct rxfer_sq *sq = r->p.sq;
	const uint64_t rules[] = {sig->silent, sig->silent_ios, sig->counted, sig->signalled,
				  sig->forced, sig->epoch,	sq->head,     sq->tail,
				  sq->peak,    sq->reserved};

	memcpy(k->rules[i], rules, sizeof(rules));
	k->counts[i] = *rxfer_conn_counts(r->p.e.client);
}

static void poll_all(struct replies *r, struct known *k)
{
	struct rxfer_done done;

	fake_run();
	while (rxfer_poll(r->p.e.client, &done, 1) == 1) {
		const uint64_t what[] = {done.id, done.op, done.own_cqe, done.bytes};

		assert_true(k->ndone < 2 * IOS);
		memcpy(k->done[k->ndone++], what, sizeof(what));
	}
}

/* Polls now and then, so that tails of many lengths are met, and where there are no credits. */
static void run_writes(enum way way, const char *signal, uint32_t depth, struct known *k)
{
	struct replies r;

	open_replies_at(&r, NULL, signal, RXFER_WRITE, depth);
	*k = (struct known){0};
	for (uint32_t i = 0; i < IOS; i++) {
		uint32_t held = 2;

		if (rxfer_sq_reserve(r.p.sq, held)) {
			poll_all(&r, k);
			reserve(&r, held);
		}
		assert_int_equal(write_and_reply(&r, i, way, &held), 0);
		assert_int_equal(held, 0);
		note(&r, k, i);
		if (i % 5 == 4)
			poll_all(&r, k);
	}
	poll_all(&r, k);
	for (uint32_t i = 0; i < IOS; i++)
		expect_message(&r.p, i, header + i * REPLY, REPLY);
	assert_memory_equal(theirs, pool, IOS * LEN);
	assert_int_equal(fake_violations(), 0);
	close_replies(&r);
}

/* The READ is awaited, and then the reply goes. */
static void run_reads(enum way way, const char *signal, uint32_t depth, struct known *k)
{
	struct replies r;

	open_replies_at(&r, NULL, signal, RXFER_READ, depth);
	*k = (struct known){0};
	memset(theirs, 7, sizeof(theirs));
	for (uint32_t i = 0; i < IOS; i++) {
		uint32_t held = reserve(&r, 2);

		assert_int_equal(read_part(&r, i, way, &held), 0);
		assert_int_equal(held, 1);
		poll_all(&r, k);
		assert_int_equal(pool[i * LEN], 7);
		assert_int_equal(reply(&r, i, way, &held), 0);
		assert_int_equal(held, 0);
		note(&r, k, i);
	}
	poll_all(&r, k);
	assert_int_equal(fake_violations(), 0);
	close_replies(&r);
}

typedef void run_fn(enum way way, const char *signal, uint32_t depth, struct known *k);

static void expect_same(run_fn *run, const char *signal, uint32_t depth)
{
	static struct known lists, prepared;

	run(BY_LISTS, signal, depth, &lists);
	run(PREPARED, signal, depth, &prepared);
	assert_memory_equal(lists.rules, prepared.rules, sizeof(lists.rules));
	assert_memory_equal(lists.counts, prepared.counts, sizeof(lists.counts));
	assert_memory_equal(lists.done, prepared.done, sizeof(lists.done));
	assert_int_equal(lists.ndone, prepared.ndone);
	assert_true(lists.ndone > IOS / 2);
}

static void expect_all_the_same(run_fn *run)
{
	static const char *const policies[] = {"all",	  "io",	     "every:2", "every:3",
					       "every:4", "every:7", "half"};

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		expect_same(run, policies[i], 2 * IOS + 1);
		expect_same(run, policies[i], IOS);
		expect_same(run, policies[i], 7);
	}
}

static void data_and_reply_are_as_by_lists(void **state)
{
	(void)state;
	expect_all_the_same(run_writes);
}

static void a_read_that_is_awaited_is_as_by_lists(void **state)
{
	(void)state;
	expect_all_the_same(run_reads);
}

/* ---- Where they cannot go as they are ---- */

/* Behind what is held back: one post of all three. */
static void they_join_what_is_held(void **state)
{
	struct replies r;
	uint32_t held;

	(void)state;
	open_replies(&r, NULL, "all", RXFER_WRITE);
	held = reserve(&r, 1);
	assert_int_equal(by_lists(&r, 0, RXFER_WRITE, RXFER_MORE, &held, 0), 0);
	held = reserve(&r, 2);
	assert_int_equal(post_two(&r, 1, &held), 0);
	assert_int_equal(held, 0);
	expect_account(&r.p, 3, 0);
	assert_int_equal(rxfer_conn_counts(r.p.e.client)->posts, 1);
	expect_done(&r.p, 0);
	expect_done(&r.p, 1);
	expect_done(&r.p, 1);
	expect_message(&r.p, 0, header + REPLY, REPLY);
	close_replies(&r);
}

/* What went as the first of two goes alone again. */
static void nothing_stays_behind_it(void **state)
{
	struct rxfer_seg to;
	struct replies r;
	uint32_t held;

	(void)state;
	open_replies(&r, NULL, "every:3", RXFER_WRITE);
	to = remote(&r.p, 0, LEN);
	held = reserve(&r, 2);
	assert_int_equal(post_two(&r, 0, &held), 0);
	held = reserve(&r, 1);
	assert_int_equal(rxfer_post_prepared_to(r.data[0], &to, 0, 7, 0, &held, 0), 0);
	assert_int_equal(fake_stats()->sqes, 3);
	expect_done(&r.p, 0);
	expect_done(&r.p, 0);
	expect_done(&r.p, 7);
	expect_nothing(&r.p);
	expect_message(&r.p, 0, header, REPLY);
	expect_no_message(&r.p);
	close_replies(&r);
}

/* Memory that was declared anew has another key. */
static void what_is_out_of_date_is_made_anew(void **state)
{
	struct replies r;
	uint32_t held;

	(void)state;
	open_replies(&r, NULL, "all", RXFER_WRITE);
	rxfer_mem_del(r.p.pool);
	assert_int_equal(rxfer_mem_add(r.p.e.cdev, pool, BYTES, RXFER_LOCAL, &r.p.pool), 0);
	for (uint32_t i = 0; i < 4; i++) {
		held = reserve(&r, 2);
		assert_int_equal(post_two(&r, i & 1, &held), 0);
		expect_done(&r.p, i & 1);
		expect_done(&r.p, i & 1);
	}
	assert_memory_equal(theirs, pool, 2 * LEN);
	assert_int_equal(fake_violations(), 0);
	close_replies(&r);
}

/* As by lists, which end where one of the two does. */
static void nothing_is_written_beyond_a_segment(void **state)
{
	struct rxfer_seg to;
	struct replies r;
	uint32_t held;

	(void)state;
	open_replies(&r, NULL, "all", RXFER_WRITE);
	to = remote(&r.p, 0, LEN - 1);
	held = reserve(&r, 2);
	assert_int_equal(rxfer_post_prepared_two(r.data[0], &to, r.last[0], 0, 0, 0, &held), 0);
	assert_int_equal(expect_done(&r.p, 0).bytes, LEN - 1);
	expect_done(&r.p, 0);
	assert_memory_equal(theirs, pool, LEN - 1);
	assert_int_equal(theirs[LEN - 1], 0);
	held = reserve(&r, 2);
	assert_int_equal(post_two(&r, 0, &held), 0);
	assert_int_equal(expect_done(&r.p, 0).bytes, LEN);
	assert_int_equal(theirs[LEN - 1], pool[LEN - 1]);
	close_replies(&r);
}

/* The device takes none, or the first: the accounts know that, and the connection is over. */
static void what_the_device_refuses_was_never_there(void **state)
{
	(void)state;
	for (uint32_t taken = 0; taken < 2; taken++) {
		struct fake_config config = engine_config();
		struct replies r;
		uint32_t held;

		open_replies(&r, &config, "every:9", RXFER_WRITE);
		fake_live()->post_part.nth = 1;
		fake_live()->post_part.take = taken;
		fake_live()->post_part.err = EIO;
		held = reserve(&r, 2);
		assert_int_equal(post_two(&r, 0, &held), -EIO);
		engine_said("of 2 WRs");
		assert_int_equal(rxfer_sq_posted(r.p.sq), taken);
		assert_int_equal(rxfer_conn_counts(r.p.e.client)->sqe, taken);
		assert_int_equal(r.p.e.client->sig.silent, taken);
		assert_int_equal(r.p.e.client->sig.silent_ios, taken);
		assert_int_equal(r.p.e.client->inflight, taken);
		assert_int_equal(rxfer_conn_counts(r.p.e.client)->posts, taken);
		assert_int_equal(r.p.sq->reserved, 1); /* the drain's */
		assert_int_equal(held, 0);
		held = 2;
		assert_int_equal(post_two(&r, 1, &held), -EIO);
		close_replies(&r);
	}
}

/* ---- Messages ---- */

/* Up to @max of the messages from the @first on; returns how many. */
static int take_messages(struct replies *r, int first, int max)
{
	struct rxfer_done done[IOS];
	int n = rxfer_poll(r->p.e.server, done, max);

	for (int i = 0; i < n; i++) {
		assert_int_equal(done[i].op, RXFER_RECV);
		assert_int_equal(done[i].id, first + i);
		assert_int_equal(done[i].bytes, REPLY);
	}
	return n;
}

/* What came one behind the other goes together, as far as there is room; what completions prove
 * does not. */
static void messages_are_handed_up_together(void **state)
{
	struct rxfer_done done[IOS];
	struct replies r;
	uint32_t held;

	(void)state;
	open_replies(&r, NULL, "all", RXFER_WRITE);
	for (uint32_t i = 0; i < 5; i++) {
		held = reserve(&r, 1);
		assert_int_equal(reply(&r, i, PREPARED, &held), 0);
	}
	fake_run();
	assert_int_equal(take_messages(&r, 0, 3), 3);
	assert_int_equal(take_messages(&r, 3, IOS), 2);
	assert_int_equal(take_messages(&r, 5, IOS), 0);
	assert_int_equal(rxfer_conn_counts(r.p.e.server)->recv_cqe, 5);
	for (uint32_t i = 0; i < 5; i++) /* completions prove one I/O each */
		assert_int_equal(rxfer_poll(r.p.e.client, done, IOS), 1);
	close_replies(&r);
}

/* One that fails ends it, once those before it are handed up. */
static void a_message_that_fails_is_no_message(void **state)
{
	struct rxfer_done done[IOS];
	struct replies r;
	uint32_t held;

	(void)state;
	open_replies(&r, NULL, "all", RXFER_WRITE);
	for (uint32_t i = 0; i < 2; i++) {
		held = reserve(&r, 1);
		r.message[i].len = i ? MESSAGE + 1 : REPLY; /* it has no such room there */
		assert_int_equal(reply(&r, i, BY_LISTS, &held), 0);
	}
	fake_run();
	assert_int_equal(take_messages(&r, 0, IOS), 1);
	assert_true(rxfer_poll(r.p.e.server, done, IOS) < 0);
	engine_said("RECV failed");
	close_replies(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_and_reply_are_as_by_lists),
		cmocka_unit_test(a_read_that_is_awaited_is_as_by_lists),
		cmocka_unit_test(they_join_what_is_held),
		cmocka_unit_test(nothing_stays_behind_it),
		cmocka_unit_test(what_is_out_of_date_is_made_anew),
		cmocka_unit_test(nothing_is_written_beyond_a_segment),
		cmocka_unit_test(what_the_device_refuses_was_never_there),
		cmocka_unit_test(messages_are_handed_up_together),
		cmocka_unit_test(a_message_that_fails_is_no_message),
	};

	return cmocka_run_group_tests_name("unit_xfer_two", tests, NULL, NULL);
}
