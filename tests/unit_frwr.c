/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The strategy frwr, by hand: what a key opens, when it does, and when it does no more. */
#include "frwr_fixture.h"

/* ---- Granting ---- */

/* struct shape - @n fragments @stride bytes apart are @runs of @bytes each. */
static const struct shape {
	uint32_t n, stride, runs, bytes;
} shapes[] = {{1, ADJOINS, 1, LEN}, {3, GAPS, 3, LEN}, {3, ADJOINS, 1, 3 * LEN}, {4, GAPS, 4, LEN}};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* From the post on, before the device has looked at it. */
static void one_post_grants_and_asks(const struct shape *s, const char *signal, bool single)
{
	const struct how how = {.exposed = FRAGS, .signal = signal, .post_single = single};
	bool all = !strcmp(signal, "all");
	const struct rxfer_seg *seg;
	struct pair p;

	open_with(&p, NULL, &how);
	expose(&p, 0, s->n, s->stride);
	open_keys(&p, 0, 0);
	posted(&p, 0, 0, 0, 0);
	ask(&p, 0);
	posted(&p, single ? s->runs + 1 : 1, s->runs, 1, 0);
	assert_int_equal(fake_stats()->posts, single ? s->runs + 1 : 1);
	assert_int_equal(fake_stats()->sqes, s->runs + 1);
	assert_int_equal(fake_stats()->binds, 0);
	open_keys(&p, s->runs, s->bytes);
	account(&p, s->runs + 1, p.info.later);
	expect_done(&p, RXFER_SEND, 0);
	assert_int_equal(fake_stats()->binds, s->runs);
	assert_int_equal(rxfer_conn_counts(p.e.client)->cqe, all ? s->runs + 1 : 1);
	account(&p, 0, p.info.later);
	open_keys(&p, s->runs, s->bytes);
	assert_int_equal(serve(&p), 1);
	seg = segs(&p, 0, s->runs);
	for (uint32_t i = 0; i < s->runs; i++) {
		assert_int_equal(seg[i].addr, (uintptr_t)mine + AT + (size_t)i * s->stride);
		assert_int_equal(seg[i].len, s->bytes);
		reaches(&p, seg[i]);
	}
	close_pair(&p);
}

static void a_request_brings_its_keys(void **state)
{
	(void)state;
	for (size_t i = 0; i < SHAPES; i++) {
		one_post_grants_and_asks(&shapes[i], "all", false);
		one_post_grants_and_asks(&shapes[i], "io", false);
		one_post_grants_and_asks(&shapes[i], "all", true);
	}
}

/* A segment of slot 0, granted, but for what @change does to it. */
static void beyond(const struct shape *s, uint32_t i, int64_t addr, uint32_t longer,
		   enum rxfer_opcode op)
{
	struct rxfer_seg seg;
	struct pair p;

	open_pair(&p, RXFER_REVOKE_SYNC, FRAGS);
	expose(&p, 0, s->n, s->stride);
	ask(&p, 0);
	seg = segs(&p, 0, s->runs)[i];
	seg.addr += (uint64_t)addr;
	seg.len += longer;
	is_refused(&p, op, seg);
	close_pair(&p);
}

static void not_a_byte_before_or_after(void **state)
{
	(void)state;
	for (size_t k = 0; k < SHAPES; k++)
		for (uint32_t i = 0; i < shapes[k].runs; i++)
			for (int write = 0; write < 2; write++) {
				enum rxfer_opcode op = write ? RXFER_WRITE : RXFER_READ;

				beyond(&shapes[k], i, -1, 0, op);
				beyond(&shapes[k], i, 1, 0, op);
				beyond(&shapes[k], i, 0, 1, op);
				if (shapes[k].runs > 1) /* its neighbour's bytes, by its key */
					beyond(&shapes[k], i, i ? -GAPS : GAPS, 0, op);
			}
}

/* What the memory was declared with is no right of the peer's, only what was asked for is. */
static void rights_are_those_that_were_asked_for(void **state)
{
	(void)state;
	for (int write = 0; write < 2; write++) {
		enum rxfer_opcode may = write ? RXFER_WRITE : RXFER_READ;
		enum rxfer_opcode not = write ? RXFER_READ : RXFER_WRITE;
		struct pair p;

		open_pair(&p, RXFER_REVOKE_SYNC, 1);
		assert_int_equal(
			expose_part(&p, 0, 1, GAPS, write ? RXFER_EXPOSE_WRITE : RXFER_EXPOSE_READ),
			0);
		ask(&p, 0);
		assert_int_equal(reach(&p, may, segs(&p, 0, 1)[0]), 0);
		is_refused(&p, not, segs(&p, 0, 1)[0]);
		close_pair(&p);
	}
}

/* The region that a window lies over gives the peer nothing by a key of its own. */
static void the_regions_key_opens_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct rxfer_seg seg;
		struct pair p;

		open_pair(&p, RXFER_REVOKE_SYNC, 1);
		assert_non_null(p.mem->mr);
		expose(&p, 0, 1, GAPS);
		ask(&p, 0);
		reaches(&p, segs(&p, 0, 1)[0]);
		seg = segs(&p, 0, 1)[0];
		seg.key = i % 2 ? p.mem->mr->rkey : p.mem->mr->lkey;
		is_refused(&p, i / 2 ? RXFER_WRITE : RXFER_READ, seg);
		close_pair(&p);
	}
}

/* Nor does a key open anything on another connection of the same two ends. */
static void a_key_is_of_one_connection(void **state)
{
	struct rxfer_conn *client, *server;
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_SYNC, 1);
	client = p.e.client;
	server = p.e.server;
	expose(&p, 0, 1, GAPS);
	ask(&p, 0);
	reaches(&p, segs(&p, 0, 1)[0]);
	assert_int_equal(engine_connect(&p.e), 0);
	assert_int_equal(p.e.accepted, 0);
	assert_int_equal(reach_by(p.e.server, RXFER_READ, segs(&p, 0, 1)[0]), -EIO);
	engine_said("IBV_WC_REM_ACCESS_ERR");
	rxfer_conn_close(p.e.server);
	rxfer_conn_close(p.e.client);
	p.e.client = client;
	p.e.server = server;
	reaches(&p, segs(&p, 0, 1)[0]);
	close_pair(&p);
}

/* N is what a request and its revoke take; the default depth follows from it. */
static void credits_by_mode(void **state)
{
	static const struct {
		enum rxfer_revoke revoke;
		uint32_t exposed, need, later;
	} cases[] = {
		{RXFER_REVOKE_SYNC, 1, 3, 1},	{RXFER_REVOKE_SYNC, 3, 7, 3},
		{RXFER_REVOKE_ASYNC, 1, 3, 1},	{RXFER_REVOKE_ASYNC, 4, 9, 4},
		{RXFER_REVOKE_LAZY, 1, 3, 0},	{RXFER_REVOKE_LAZY, 3, 7, 0},
		{RXFER_REVOKE_REMOTE, 1, 2, 0}, {RXFER_REVOKE_REMOTE, 3, 6, 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pair p;

		open_pair(&p, cases[i].revoke, cases[i].exposed);
		assert_int_equal(p.info.need, cases[i].need);
		assert_int_equal(p.info.later, cases[i].later);
		assert_int_equal(p.info.sq_depth, 2 * cases[i].need * SLOTS + 1);
		assert_int_equal(p.info.key_reuse_min, 0);
		assert_int_equal(fake_stats()->alloc_mw, 1 + SLOTS * cases[i].exposed);
		close_pair(&p);
	}
}

/* ---- Chosen, and not posted ---- */

/* Nothing is open before the request is posted. */
static void a_key_that_was_only_chosen(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_SYNC, 1);
	expose(&p, 0, 1, GAPS);
	open_keys(&p, 0, 0);
	assert_int_equal(rxfer_exposure_open(p.x[0]), 0);
	is_refused(&p, RXFER_READ, segs(&p, 0, 1)[0]);
	close_pair(&p);
}

/* The ring is full: the request is posted later, or not at all and another one instead. */
static void a_request_that_was_not_posted(void **state)
{
	const struct how how = {.exposed = 3, .ios = 1, .slots = 2};
	struct pair p;
	uint32_t was;

	(void)state;
	open_with(&p, NULL, &how);
	for (int again = 0; again < 3; again++) {
		expose(&p, 0, 1, GAPS);
		ask(&p, 0);
		expose(&p, 1, 3, GAPS);
		was = key(&p, 1);
		assert_int_equal(post_request(&p, 1, 0), -EAGAIN);
		open_keys(&p, 1, LEN);
		expect_done(&p, RXFER_SEND, 0);
		serve(&p);
		if (again)
			expose(&p, 1, again == 1 ? 3 : 2, GAPS);
		assert_int_equal(key(&p, 1), was);
		ask(&p, 1);
		expect_done(&p, RXFER_SEND, 1);
		serve(&p);
		for (uint32_t i = 0; i < (again == 2 ? 2 : 3); i++)
			reaches(&p, rxfer_exposure_segs(p.x[1], &(uint32_t){0})[i]);
		for (uint32_t i = 0; i < 2; i++) {
			assert_int_equal(revoke(&p, i, 0), 0);
			expect_done(&p, RXFER_REVOKE, REVOKE + i);
		}
		account(&p, 0, 0);
	}
	assert_int_equal(fake_stats()->binds, 3 + 3 + 3 + 2);
	close_pair(&p);
}

/* As often as you like: a window's key and our idea of it never part. */
static void chosen_again_and_again(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_SYNC, 2);
	for (uint32_t i = 0; i < 600; i++) {
		uint32_t was;

		expose(&p, 0, 1 + i % 2, GAPS);
		was = key(&p, 0);
		for (uint32_t k = 0; k < i % 4; k++) {
			expose(&p, 0, 1 + k % 2, GAPS);
			assert_int_equal(key(&p, 0), was);
		}
		ask(&p, 0);
		expect_done(&p, RXFER_SEND, 0);
		assert_int_equal(serve(&p), 1);
		if (i % 16 == 0)
			reaches(&p, rxfer_exposure_segs(p.x[0], &(uint32_t){0})[0]);
		assert_int_equal(revoke(&p, 0, 0), 0);
		expect_done(&p, RXFER_REVOKE, REVOKE);
	}
	open_keys(&p, 0, 0);
	close_pair(&p);
}

/* Nothing is exposed by what is refused, and the next one is. */
static void what_is_refused_leaves_nothing(void **state)
{
	const struct how how = {.exposed = 2, .rights = RXFER_EXPOSE_READ};
	struct rxfer_frag outside = {theirs, LEN}, none = {mine, 0};
	struct rxfer_frag half[2] = {{mine, LEN}, {theirs, LEN}};
	struct pair p;
	uint32_t n;

	(void)state;
	open_with(&p, NULL, &how);
	assert_int_equal(expose_part(&p, 0, 1, GAPS, BOTH), -EACCES);
	assert_int_equal(expose_part(&p, 0, 1, GAPS, 0), -EINVAL);
	assert_int_equal(expose_part(&p, 0, FRAGS + 1, GAPS, RXFER_EXPOSE_READ), -EINVAL);
	assert_int_equal(rxfer_expose(p.e.client, p.x[0], &outside, 1, RXFER_EXPOSE_READ), -EFAULT);
	assert_int_equal(rxfer_expose(p.e.client, p.x[0], half, 2, RXFER_EXPOSE_READ), -EFAULT);
	assert_int_equal(rxfer_expose(p.e.client, p.x[0], &none, 1, RXFER_EXPOSE_READ), -EINVAL);
	assert_int_equal(expose_part(&p, 0, 3, GAPS, RXFER_EXPOSE_READ), -EMSGSIZE);
	engine_said("3 contiguous runs, and its exposure was made for 2");
	rxfer_exposure_segs(p.x[0], &n);
	assert_int_equal(n, 0);
	assert_int_equal(revoke(&p, 0, 0), -ENOENT);
	open_keys(&p, 0, 0);
	posted(&p, 0, 0, 0, 0);
	assert_int_equal(expose_part(&p, 0, 3, ADJOINS, RXFER_EXPOSE_READ), 0);
	ask(&p, 0);
	assert_int_equal(reach(&p, RXFER_READ, segs(&p, 0, 1)[0]), 0);
	close_pair(&p);
}

/* A post that does not come about grants nothing. */
static void a_post_that_does_not_fit(void **state)
{
	struct rxfer_frag frag[2] = {{messages, 8}, {messages + 64, 8}};
	struct rxfer_op op = {.op = RXFER_SEND, .local = frag, .nlocal = 2, .fixed = 2, .flags = 0};
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_SYNC, 1);
	expose(&p, 0, 1, GAPS);
	op.grants = p.x[0];
	assert_int_equal(rxfer_post(p.e.client, &op), -EINVAL);
	op.nlocal = op.fixed = 1;
	op.flags = RXFER_MORE;
	assert_int_equal(rxfer_post(p.e.client, &op), -EINVAL);
	engine_said("grants keys");
	op.flags = 0;
	op.fixed = 0; /* the strategy's memory: it has no key for that */
	assert_int_equal(rxfer_post(p.e.client, &op), -EOPNOTSUPP);
	engine_said("frwr has no key for local use");
	open_keys(&p, 0, 0);
	posted(&p, 0, 0, 0, 0);
	account(&p, 0, 0);
	ask(&p, 0);
	reaches(&p, segs(&p, 0, 1)[0]);
	close_pair(&p);
}

/* Its keys are open: another post cannot grant them again. */
static void granted_once(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_SYNC, 1);
	expose(&p, 0, 1, GAPS);
	ask(&p, 0);
	p.held[0] = 0;
	assert_int_equal(expose_part(&p, 0, 1, GAPS, BOTH), -EBUSY);
	assert_int_equal(post_request(&p, 0, 0), -EBUSY);
	engine_said("granted already");
	posted(&p, 1, 1, 1, 0);
	open_keys(&p, 1, LEN);
	p.held[0] = p.info.later;
	expect_done(&p, RXFER_SEND, 0);
	reaches(&p, segs(&p, 0, 1)[0]);
	assert_int_equal(revoke(&p, 0, 0), 0);
	expect_done(&p, RXFER_REVOKE, REVOKE);
	posted(&p, 2, 1, 1, 1);
	account(&p, 0, 0);
	close_pair(&p);
}

/* ---- Revoking ---- */

static void says_key(uint32_t k)
{
	char words[32];

	snprintf(words, sizeof(words), "key %#x", k);
	engine_said(words);
}

/* Open until the completion was polled, though the device has long done it. */
static void open_until_it_is_proven(void **state)
{
	(void)state;
	for (uint32_t k = 1; k <= 3; k += 2) {
		struct rxfer_seg seg;
		struct pair p;

		open_pair(&p, RXFER_REVOKE_SYNC, 3);
		expose(&p, 0, k, GAPS);
		ask(&p, 0);
		expect_done(&p, RXFER_SEND, 0);
		serve(&p);
		account(&p, 0, p.info.later);
		assert_int_equal(revoke(&p, 0, 0), 0);
		posted(&p, 2, k, 1, k);
		account(&p, k, 0);
		fake_run();
		assert_int_equal(fake_stats()->invalidates, k);
		open_keys(&p, k, LEN);
		assert_int_equal(rxfer_exposure_open(p.x[0]), k);
		assert_int_equal(expose_part(&p, 0, 1, GAPS, BOTH), -EBUSY);
		expect_done(&p, RXFER_REVOKE, REVOKE);
		open_keys(&p, 0, 0);
		assert_int_equal(rxfer_exposure_open(p.x[0]), 0);
		assert_true(rxfer_open_after(p.x[0]) == RXFER_NO_SPAN);
		account(&p, 0, 0);
		seg = segs(&p, 0, k)[k - 1];
		is_refused(&p, k == 1 ? RXFER_READ : RXFER_WRITE, seg);
		close_pair(&p);
	}
}

/* A silent LOCAL_INV is proven by whatever comes behind it, and by nothing before. */
static void proven_by_a_later_one(void **state)
{
	const struct how how = {.exposed = 2, .signal = "every:50", .sq_depth = 60};
	struct pair p;

	(void)state;
	open_with(&p, NULL, &how);
	for (int i = 0; i < 2; i++) {
		expose(&p, (uint32_t)i, 2, GAPS);
		assert_int_equal(post_request(&p, (uint32_t)i, i ? 0 : RXFER_MUST_SIGNAL), 0);
	}
	serve(&p);
	expect_done(&p, RXFER_SEND, 0);
	assert_int_equal(revoke(&p, 0, 0), 0);
	expect_nothing(&p);
	assert_int_equal(fake_stats()->invalidates, 2);
	open_keys(&p, 4, LEN);
	assert_int_equal(revoke(&p, 1, RXFER_MUST_SIGNAL), 0);
	open_keys(&p, 4, LEN);
	expect_done(&p, RXFER_SEND, 1);
	expect_done(&p, RXFER_REVOKE, REVOKE);
	open_keys(&p, 2, LEN);
	assert_int_equal(expect_done(&p, RXFER_REVOKE, REVOKE + 1).own_cqe, true);
	open_keys(&p, 0, 0);
	assert_int_equal(rxfer_conn_counts(p.e.client)->cqe, 2);
	account(&p, 0, 0);
	close_pair(&p);
}

/* Under way or over: it is the second time, and no WR is posted for it. */
static void never_twice(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_SYNC, 3);
	assert_int_equal(revoke(&p, 0, 0), -ENOENT);
	expose(&p, 0, 3, GAPS);
	assert_int_equal(revoke(&p, 0, 0), -ENOENT);
	says_key(key(&p, 0));
	ask(&p, 0);
	expect_done(&p, RXFER_SEND, 0);
	serve(&p);
	assert_int_equal(revoke(&p, 0, 0), 0);
	p.held[0] = 0;
	assert_int_equal(revoke(&p, 0, 0), -EALREADY);
	says_key(key(&p, 0));
	posted(&p, 2, 3, 1, 3);
	expect_done(&p, RXFER_REVOKE, REVOKE);
	assert_int_equal(revoke(&p, 0, 0), -EALREADY);
	says_key(key(&p, 0));
	expose(&p, 0, 2, GAPS);
	assert_int_equal(revoke(&p, 0, 0), -ENOENT); /* the new ones are not granted */
	posted(&p, 2, 3, 1, 3);
	assert_int_equal(fake_stats()->sqes, 7);
	expect_nothing(&p);
	ask(&p, 0);
	reaches(&p, segs(&p, 0, 2)[1]);
	expect_done(&p, RXFER_SEND, 0);
	assert_int_equal(revoke(&p, 0, 0), 0);
	expect_done(&p, RXFER_REVOKE, REVOKE);
	assert_int_equal(fake_stats()->invalidates, 5);
	close_pair(&p);
}

/* Not by a call, which would have to wait. */
static void not_by_a_call(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_SYNC, 1);
	expose(&p, 0, 1, GAPS);
	ask(&p, 0);
	assert_int_equal(rxfer_revoke(p.e.client, p.x[0]), -EOPNOTSUPP);
	engine_said("rxfer_revoke_held()");
	open_keys(&p, 1, LEN);
	expect_done(&p, RXFER_SEND, 0);
	assert_int_equal(revoke(&p, 0, 0), 0);
	expect_done(&p, RXFER_REVOKE, REVOKE);
	close_pair(&p);
}

/* The ring is full: nothing has happened, and it can be done later. */
static void no_room_for_a_revoke(void **state)
{
	const struct how how = {.ios = 1, .slots = 1};
	struct pair p;

	(void)state;
	open_with(&p, NULL, &how);
	expose(&p, 0, 1, GAPS);
	ask(&p, 0);
	assert_int_equal(revoke(&p, 0, 0), -EAGAIN);
	assert_int_equal(p.held[0], p.info.later);
	open_keys(&p, 1, LEN);
	posted(&p, 1, 1, 1, 0);
	serve(&p);
	expect_done(&p, RXFER_SEND, 0);
	reaches(&p, segs(&p, 0, 1)[0]);
	assert_int_equal(revoke(&p, 0, 0), 0);
	expect_done(&p, RXFER_REVOKE, REVOKE);
	open_keys(&p, 0, 0);
	close_pair(&p);
}

/* What is open, chosen, or being revoked when the connection is closed. */
static void closed_with_keys_open(void **state)
{
	(void)state;
	for (int run = 0; run < 2; run++) {
		struct pair p;

		open_pair(&p, RXFER_REVOKE_SYNC, 3);
		for (uint32_t i = 0; i < 4; i++)
			expose(&p, i, 3, GAPS);
		for (uint32_t i = 0; i < 3; i++)
			ask(&p, i);
		assert_int_equal(revoke(&p, 0, 0), 0);
		if (run) {
			fake_run();
			expect_done(&p, RXFER_SEND, 0);
		}
		rxfer_exposure_free(p.e.client, p.x[3]);
		open_keys(&p, 9, LEN);
		close_pair(&p);
	}
}

/* Its revoke was done by the device, and its completion comes when it is gone. */
static void freed_before_it_is_proven(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_SYNC, 2);
	for (uint32_t i = 0; i < 2; i++) {
		expose(&p, i, 2, GAPS);
		ask(&p, i);
		expect_done(&p, RXFER_SEND, i);
	}
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(revoke(&p, i, 0), 0);
	fake_run();
	rxfer_exposure_free(p.e.client, p.x[0]);
	open_keys(&p, 2, LEN);
	expect_done(&p, RXFER_REVOKE, REVOKE);
	open_keys(&p, 2, LEN);
	expect_done(&p, RXFER_REVOKE, REVOKE + 1);
	open_keys(&p, 0, 0);
	account(&p, 0, 0);
	close_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_brings_its_keys),
		cmocka_unit_test(not_a_byte_before_or_after),
		cmocka_unit_test(rights_are_those_that_were_asked_for),
		cmocka_unit_test(the_regions_key_opens_nothing),
		cmocka_unit_test(a_key_is_of_one_connection),
		cmocka_unit_test(credits_by_mode),
		cmocka_unit_test(a_key_that_was_only_chosen),
		cmocka_unit_test(a_request_that_was_not_posted),
		cmocka_unit_test(chosen_again_and_again),
		cmocka_unit_test(what_is_refused_leaves_nothing),
		cmocka_unit_test(a_post_that_does_not_fit),
		cmocka_unit_test(granted_once),
		cmocka_unit_test(open_until_it_is_proven),
		cmocka_unit_test(proven_by_a_later_one),
		cmocka_unit_test(never_twice),
		cmocka_unit_test(not_by_a_call),
		cmocka_unit_test(no_room_for_a_revoke),
		cmocka_unit_test(closed_with_keys_open),
		cmocka_unit_test(freed_before_it_is_proven),
	};

	return cmocka_run_group_tests_name("unit_frwr", tests, NULL, NULL);
}
