/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* I/Os that go out in one post: what RXFER_MORE holds back, and what lets it go. */
#include <errno.h>
#include <string.h>
#include "fakehca/engine.h"

#define SLOTS 4
#define BYTES 32

static uint8_t mine[4096], theirs[4096];

struct pair {
	struct engine e;
	struct rxfer_mem *target;
};

/* A connection whose send queue is as deep as it need be, so that signals come by @policy alone. */
static void open_pair(struct pair *p, const struct fake_config *config, const char *policy,
		      bool single)
{
	struct rxfer_shape shape = {RXFER_WRITE, 2 * BYTES, 2, 2};
	struct rxfer_mem *mem;

	memset(theirs, 0, sizeof(theirs));
	for (size_t i = 0; i < sizeof(mine); i++)
		mine[i] = (uint8_t)(i / BYTES + 1);
	engine_open(&p->e, config, "multi-wr");
	assert_int_equal(rxfer_mem_add(p->e.cdev, mine, sizeof(mine), RXFER_LOCAL, &mem), 0);
	assert_int_equal(rxfer_mem_add(p->e.sdev, theirs, sizeof(theirs),
				       RXFER_PEER_READ | RXFER_PEER_WRITE, &p->target),
			 0);
	engine_attr(&p->e, &shape, SLOTS, 0, policy);
	p->e.client_attr.post_single = single;
	assert_int_equal(engine_connect(&p->e), 0);
	assert_int_equal(p->e.accepted, 0);
}

/* The @id-th piece of both memories, by @n WRs. */
static int write_it(struct pair *p, uint64_t id, uint32_t n, unsigned int flags)
{
	uint32_t each = BYTES / n;
	struct rxfer_frag frag[] = {{mine + id * BYTES, each}, {mine + id * BYTES + each, each}};
	struct rxfer_seg to = {(uintptr_t)theirs + id * BYTES, BYTES, rxfer_mem_rkey(p->target)};

	return rxfer_post_write(p->e.client, frag, n, &to, 1, id, flags);
}

static void arrived(uint64_t id, bool yes)
{
	static const uint8_t nothing[BYTES];

	assert_memory_equal(theirs + id * BYTES, yes ? mine + id * BYTES : nothing, BYTES);
}

static const struct rxfer_counts *counts(const struct pair *p)
{
	return rxfer_conn_counts(p->e.client);
}

/* I/Os 0 to @n - 1 are done, and nothing else. */
static void expect_done(struct pair *p, uint64_t n)
{
	struct rxfer_done done;

	fake_run();
	for (uint64_t i = 0; i < n; i++) {
		assert_int_equal(rxfer_poll(p->e.client, &done, 1), 1);
		assert_int_equal(done.id, i);
		arrived(i, true);
	}
	assert_int_equal(rxfer_poll(p->e.client, &done, 1), 0);
	assert_int_equal(fake_violations(), 0);
}

static void what_is_held_goes_with_the_next(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "all", false);
	assert_int_equal(write_it(&p, 0, 2, RXFER_MORE), 0);
	assert_int_equal(write_it(&p, 1, 1, RXFER_MORE), 0);
	fake_run();
	arrived(0, false);
	assert_int_equal(counts(&p)->posts, 0);
	assert_int_equal(rxfer_sq_posted(&p.e.client->sq), 3); /* spent all the same */
	assert_int_equal(write_it(&p, 2, 2, 0), 0);
	assert_int_equal(counts(&p)->posts, 1);
	assert_int_equal(counts(&p)->sqe, 5);
	expect_done(&p, 3);
	assert_int_equal(fake_stats()->sqes, 5);
	engine_close(&p.e);
}

static void flush_lets_it_go(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "all", false);
	assert_int_equal(rxfer_flush(p.e.client), 0); /* nothing is held */
	assert_int_equal(counts(&p)->posts, 0);
	assert_int_equal(write_it(&p, 0, 1, RXFER_MORE), 0);
	assert_int_equal(rxfer_flush(p.e.client), 0);
	assert_int_equal(rxfer_flush(p.e.client), 0);
	assert_int_equal(counts(&p)->posts, 1);
	expect_done(&p, 1);
	engine_close(&p.e);
}

/* Half of the I/Os in flight may be silent, rule (b): it is asked of the last WR of a post. */
static void the_last_of_a_flush_keeps_the_queue_alive(void **state)
{
	struct rxfer_conn_info info;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "every:9", false);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(write_it(&p, i, 1, RXFER_MORE), 0);
	rxfer_conn_info(p.e.client, &info);
	assert_int_equal(info.forced_signals, 0);
	assert_int_equal(rxfer_flush(p.e.client), 0);
	rxfer_conn_info(p.e.client, &info);
	assert_int_equal(info.forced_signals, 1);
	expect_done(&p, 3);
	assert_int_equal(counts(&p)->cqe, 1);
	engine_close(&p.e);
}

static void a_silent_one_stays_silent(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "every:9", false);
	assert_int_equal(write_it(&p, 0, 1, RXFER_MORE), 0);
	assert_int_equal(rxfer_flush(p.e.client), 0);
	expect_done(&p, 0);
	arrived(0, true);
	assert_true(rxfer_sig_tail_silent(&p.e.client->sig));
	engine_close(&p.e);
}

static int prepare_write(struct pair *p, const struct rxfer_frag *frag, const struct rxfer_seg *to,
			 struct rxfer_prepared **out)
{
	const struct rxfer_op op = {
		.op = RXFER_WRITE, .local = frag, .nlocal = 1, .remote = to, .nremote = 1};

	return rxfer_prepare(p->e.client, &op, out);
}

/* Nobody posts past what is held, and an I/O that has to wait does not hold it. */
static void whoever_comes_next_lets_it_go(void **state)
{
	struct rxfer_prepared *prepared;
	struct rxfer_frag frag = {mine + BYTES, BYTES};
	struct rxfer_seg at;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "all", false);
	at = (struct rxfer_seg){(uintptr_t)theirs + BYTES, BYTES, rxfer_mem_rkey(p.target)};
	assert_int_equal(prepare_write(&p, &frag, &at, &prepared), 0);
	assert_int_equal(write_it(&p, 0, 1, RXFER_MORE), 0);
	assert_int_equal(rxfer_post_prepared(prepared, 0, 1, 0), 0);
	assert_int_equal(counts(&p)->posts, 1);
	for (uint64_t i = 2; i < SLOTS; i++)
		assert_int_equal(write_it(&p, i, 1, RXFER_MORE), 0);
	assert_int_equal(write_it(&p, SLOTS, 1, 0), -EAGAIN); /* no slot */
	assert_int_equal(counts(&p)->posts, 2);
	expect_done(&p, SLOTS);
	rxfer_unprepare(prepared);
	engine_close(&p.e);
}

/* Nothing is signalled, so nobody will say when a prepared one may follow: it goes at once. */
static void a_prepared_one_goes_with_what_is_held(void **state)
{
	struct rxfer_frag frag = {mine + BYTES, BYTES};
	struct rxfer_prepared *prepared;
	struct rxfer_seg at;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "every:9", false);
	at = (struct rxfer_seg){(uintptr_t)theirs + BYTES, BYTES, rxfer_mem_rkey(p.target)};
	assert_int_equal(prepare_write(&p, &frag, &at, &prepared), 0);
	assert_int_equal(rxfer_post_prepared(prepared, 0, 0, RXFER_MORE), 0);
	assert_int_equal(counts(&p)->posts, 0);
	assert_int_equal(rxfer_flush(p.e.client), 0);
	assert_int_equal(write_it(&p, 2, 1, RXFER_MORE), 0);
	assert_int_equal(rxfer_post_prepared(prepared, 0, 1, 0), 0);
	assert_int_equal(counts(&p)->posts, 2);
	assert_int_equal(counts(&p)->sqe, 3);
	fake_run();
	arrived(1, true);
	arrived(2, true);
	rxfer_unprepare(prepared);
	engine_close(&p.e);
}

/* Held or not: after the drain all is on its way, and nothing is drained that needs it not. */
static void the_drain_lets_it_go(void **state)
{
	struct rxfer_seg at;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "all", false);
	at = (struct rxfer_seg){(uintptr_t)theirs, 0, rxfer_mem_rkey(p.target)};
	assert_int_equal(write_it(&p, 0, 1, RXFER_MORE), 0);
	assert_int_equal(rxfer_drain(p.e.client, &at), 0);
	assert_int_equal(counts(&p)->posts, 1);
	assert_int_equal(counts(&p)->aside_posts, 0);
	expect_done(&p, 1);
	engine_close(&p.e);
}

static void aside_joins_no_others(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "all", false);
	assert_int_equal(write_it(&p, 0, 1, RXFER_MORE | RXFER_ASIDE), -EINVAL);
	engine_said("joins no others");
	assert_int_equal(write_it(&p, 0, 1, RXFER_MORE), 0);
	assert_int_equal(write_it(&p, 1, 1, RXFER_ASIDE), -EINVAL);
	assert_int_equal(rxfer_flush(p.e.client), 0);
	expect_done(&p, 1);
	engine_close(&p.e);
}

static void each_by_itself_where_that_is_asked(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "all", true);
	assert_int_equal(write_it(&p, 0, 2, RXFER_MORE), 0);
	assert_int_equal(write_it(&p, 1, 2, 0), 0);
	assert_int_equal(counts(&p)->posts, 4);
	expect_done(&p, 2);
	engine_close(&p.e);
}

/* The device takes @taken WRs of 2 + 1 + 2: the accounts know those, and the connection is over. */
static void part_of_a_chain_is_refused(void **state)
{
	(void)state;
	for (uint32_t taken = 0; taken < 5; taken++) {
		struct fake_config config = engine_config();
		struct rxfer_conn_info info;
		struct pair p;

		open_pair(&p, &config, "every:9", false);
		fake_live()->post_part.nth = 1;
		fake_live()->post_part.take = taken;
		fake_live()->post_part.err = EIO;
		assert_int_equal(write_it(&p, 0, 2, RXFER_MORE), 0);
		assert_int_equal(write_it(&p, 1, 1, RXFER_MORE), 0);
		assert_int_equal(write_it(&p, 2, 2, 0), -EIO);
		assert_int_equal(rxfer_sq_posted(&p.e.client->sq), taken);
		assert_int_equal(counts(&p)->sqe, taken);
		assert_int_equal(p.e.client->sig.silent, taken);
		rxfer_conn_info(p.e.client, &info);
		assert_int_equal(info.forced_signals, 0);
		engine_said("of 5 WRs");
		assert_int_equal(rxfer_flush(p.e.client), -EIO);
		engine_close(&p.e);
	}
}

static void held_back_for_ever(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "all", false);
	assert_int_equal(write_it(&p, 0, 1, RXFER_MORE), 0);
	engine_close(&p.e); /* nothing leaks */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_held_goes_with_the_next),
		cmocka_unit_test(flush_lets_it_go),
		cmocka_unit_test(the_last_of_a_flush_keeps_the_queue_alive),
		cmocka_unit_test(a_silent_one_stays_silent),
		cmocka_unit_test(whoever_comes_next_lets_it_go),
		cmocka_unit_test(a_prepared_one_goes_with_what_is_held),
		cmocka_unit_test(the_drain_lets_it_go),
		cmocka_unit_test(aside_joins_no_others),
		cmocka_unit_test(each_by_itself_where_that_is_asked),
		cmocka_unit_test(part_of_a_chain_is_refused),
		cmocka_unit_test(held_back_for_ever),
	};

	return cmocka_run_group_tests_name("unit_xfer_chain", tests, NULL, NULL);
}
