/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Strategy bounce, the I/Os of this end, on the test double: what is copied, when, and how much of
 * it; what is not, and what is registered. The peer's side is unit_bounce_expose.c.
 */
#include "held_fixture.h"

#define EACH 8 /* bytes of a fragment */
#define MOST 64

static const struct rxfer_shape reads = {RXFER_READ, 2048, MOST, 1};
static const struct rxfer_shape writes = {RXFER_WRITE, 2048, MOST, 1};

static struct rxfer_frag frags[MOST + 1];

/* @n fragments from @at on, with gaps as large as they are. */
static void fragments(uint32_t n, uint32_t at)
{
	for (uint32_t i = 0; i < n; i++)
		frags[i] = (struct rxfer_frag){pool + at + 2 * i * EACH, EACH};
}

static void open_bounce(struct pair *p, const struct fake_config *config,
			const struct rxfer_shape *shape)
{
	open_pair(p, config, "bounce", shape);
	connect_pair(p);
}

static uint64_t copied(const struct pair *p)
{
	return rxfer_conn_counts(p->e.client)->copied_bytes;
}

/* That each byte of the pool is as it was made. */
static void pool_is_as_it_was(void)
{
	for (int i = 0; i < BYTES; i++)
		assert_int_equal(pool[i], 1 + i % 120);
}

/* The @n fragments from @at on have the target's bytes from @from on, and what lies between them is
 * as it was. */
static void brought(uint32_t n, uint32_t at, uint32_t from)
{
	for (uint32_t i = 0; i < n; i++) {
		assert_memory_equal(pool + at + 2 * i * EACH, theirs + from + i * EACH, EACH);
		for (uint32_t k = at + (2 * i + 1) * EACH; k < at + (2 * i + 2) * EACH; k++)
			assert_int_equal(pool[k], 1 + k % 120);
	}
}

static void fill_target(uint8_t with)
{
	for (int i = 0; i < BYTES; i++)
		theirs[i] = (uint8_t)(with + i % 61);
}

static int post_read(struct pair *p, uint32_t n, uint32_t at, uint32_t from, uint64_t id)
{
	struct rxfer_seg seg = remote(p, from, n * EACH);
	int rc;

	fragments(n, at);
	rc = rxfer_post_read(p->e.client, frags, n, &seg, 1, id, 0);
	memset(frags, 0, sizeof(frags)); /* the list is the caller's again */
	return rc;
}

static int post_write(struct pair *p, uint32_t n, uint32_t at, uint32_t to)
{
	struct rxfer_seg seg = remote(p, to, n * EACH);

	fragments(n, at);
	return rxfer_post_write(p->e.client, frags, n, &seg, 1, 7, 0);
}

/* ---- What is copied, and when ---- */

static void a_write_is_copied_before_its_post(void **state)
{
	struct pair p;

	(void)state;
	open_bounce(&p, NULL, &writes);
	assert_int_equal(post_write(&p, 3, 100, 500), 0);
	assert_int_equal(copied(&p), 3 * EACH);
	memset(pool, 0xee, BYTES);
	expect_done(&p, 7);
	for (int i = 0; i < 3 * EACH; i++)
		assert_int_equal(theirs[500 + i],
				 1 + (100 + 2 * EACH * (i / EACH) + i % EACH) % 120);
	assert_int_equal(theirs[499] + theirs[500 + 3 * EACH], 0);
	assert_int_equal(copied(&p), 3 * EACH);
	assert_int_equal(fake_stats()->sqes, 1);
	assert_true(engine_idle(p.e.client));
	engine_close(&p.e);
}

static void a_read_is_copied_when_it_is_handed_up(void **state)
{
	struct pair p;

	(void)state;
	fill_target(130);
	open_bounce(&p, NULL, &reads);
	fill_target(130);
	assert_int_equal(post_read(&p, 5, 64, 700, 9), 0);
	fake_run();
	assert_int_equal(copied(&p), 0);
	pool_is_as_it_was();
	assert_int_equal(expect_done(&p, 9).bytes, 5 * EACH);
	brought(5, 64, 700);
	assert_int_equal(copied(&p), 5 * EACH);
	assert_int_equal(fake_stats()->sqes, 1);
	engine_close(&p.e);
}

/* Two in flight at a time, so each entry of the ring, and its buffer, has its turns; what one
 * completion proves is more than one I/O. */
static void the_ring_is_used_again(void **state)
{
	struct rxfer_done done[2];
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "bounce", &reads);
	policy(&p, "half");
	connect_pair(&p);
	for (uint32_t round = 0; round < 9; round++) {
		fill_target((uint8_t)(130 + round));
		assert_int_equal(post_read(&p, 1 + round, 0, 10 * round, 1), 0);
		assert_int_equal(post_read(&p, 9 - round, 2048, 500, 2), 0);
		assert_int_equal(post_read(&p, 1, 0, 0, 3), -EAGAIN);
		fake_run();
		for (int n = 0; n < 2;)
			n += rxfer_poll(p.e.client, done + n, 1);
		assert_int_equal(done[0].id, 1);
		assert_int_equal(done[1].id, 2);
		brought(1 + round, 0, 10 * round);
		brought(9 - round, 2048, 500);
		assert_int_equal(copied(&p), 10 * (round + 1) * EACH);
	}
	engine_close(&p.e);
}

static void as_many_fragments_as_there_may_be(void **state)
{
	struct rxfer_conn_info info;
	struct pair p;

	(void)state;
	open_bounce(&p, NULL, &reads);
	fill_target(130);
	rxfer_conn_info(p.e.client, &info);
	assert_int_equal(info.need, 1);
	assert_int_equal(info.sge_per_wr, 1);
	assert_int_equal(info.frags_per_wr, MOST);
	assert_int_equal(post_read(&p, MOST, 0, 0, 1), 0);
	expect_done(&p, 1);
	brought(MOST, 0, 0);
	assert_int_equal(fake_stats()->sqes, 1);
	engine_close(&p.e);
}

/* An I/O that is prepared takes the bytes that there are at each of its posts. */
static void prepared_ones_are_copied_each_time(void **state)
{
	struct rxfer_prepared *prepared;
	struct rxfer_seg seg;
	struct pair p;

	(void)state;
	open_bounce(&p, NULL, &writes);
	seg = remote(&p, 0, EACH);
	fragments(1, 0);
	assert_int_equal(rxfer_prepare(p.e.client,
				       &(struct rxfer_op){.op = RXFER_WRITE,
							  .local = frags,
							  .nlocal = 1,
							  .remote = &seg,
							  .nremote = 1},
				       &prepared),
			 0);
	for (uint64_t i = 1; i < 4; i++) {
		memset(pool, (int)i, EACH);
		assert_int_equal(rxfer_post_prepared(prepared, 0, i, 0), 0);
		expect_done(&p, i);
		assert_memory_equal(theirs, pool, EACH);
		assert_int_equal(copied(&p), i * EACH);
	}
	rxfer_unprepare(prepared);
	engine_close(&p.e);
}

/* ---- Messages ---- */

/* 24 bytes of fixed memory, then two fragments. */
static int send_with_header(struct pair *p)
{
	const struct rxfer_frag list[] = {{header, 24}, {pool, 100}, {pool + 200, 50}};
	const struct rxfer_op op = {
		.op = RXFER_SEND, .local = list, .nlocal = 3, .fixed = 1, .id = 4};

	return rxfer_post(p->e.client, &op);
}

static void message(uint32_t device_sges, uint64_t want)
{
	const struct rxfer_shape shape = {.op = RXFER_SEND, .bytes = 174, .frags = 3, .fixed = 1};
	struct fake_config config = engine_config();
	uint8_t all[174];
	struct pair p;

	config.device[0].max_sge = config.device[0].max_sge_rd = device_sges;
	open_bounce(&p, &config, &shape);
	memcpy(all, header, 24);
	memcpy(all + 24, pool, 100);
	memcpy(all + 124, pool + 200, 50);
	assert_int_equal(send_with_header(&p), 0);
	memset(pool, 0, BYTES);
	expect_message(&p, 0, all, sizeof(all));
	expect_done(&p, 4);
	assert_int_equal(copied(&p), want);
	assert_null(p.e.client->staging);
	assert_int_equal(fake_stats()->sqes, 1);
	engine_close(&p.e);
}

static void what_is_fixed_is_not_copied(void **state)
{
	(void)state;
	message(30, 150);
	message(2, 150);
	message(1, 174); /* head and data do not go into one message otherwise */
}

/* ---- What is not copied ---- */

static void of_a_connection_that_is_left_nothing_is(void **state)
{
	struct pair p;

	(void)state;
	open_bounce(&p, NULL, &reads);
	fill_target(130);
	assert_int_equal(post_read(&p, 3, 0, 0, 1), 0);
	assert_int_equal(post_read(&p, 3, 1024, 0, 2), 0);
	fake_run(); /* the bytes are there, but nobody has looked */
	engine_close(&p.e);
	pool_is_as_it_was();
}

static void of_an_io_that_fails_nothing_is(void **state)
{
	struct rxfer_done done;
	struct rxfer_seg seg;
	struct pair p;

	(void)state;
	open_bounce(&p, NULL, &reads);
	fill_target(130);
	assert_int_equal(post_read(&p, 3, 0, 0, 1), 0);
	fragments(2, 1024);
	seg = remote(&p, 0, 2 * EACH);
	seg.key++;
	assert_int_equal(rxfer_post_read(p.e.client, frags, 2, &seg, 1, 2, 0), 0);
	fake_run();
	assert_int_equal(rxfer_poll(p.e.client, &done, 1), 1);
	brought(3, 0, 0);
	assert_int_equal(rxfer_poll(p.e.client, &done, 1), -EIO);
	assert_int_equal(copied(&p), 3 * EACH);
	engine_close(&p.e);
	for (int i = 1024; i < BYTES; i++)
		assert_int_equal(pool[i], 1 + i % 120);
}

static void of_a_post_that_the_device_refuses_nothing_is(void **state)
{
	struct pair p;

	(void)state;
	open_bounce(&p, NULL, &reads);
	fake_live()->fail_post_send = (struct fake_fault){1, EINVAL};
	assert_int_equal(post_read(&p, 3, 0, 0, 1), -EINVAL);
	engine_close(&p.e);
	pool_is_as_it_was();
}

/* Its entry of the ring was another READ's before, and that was proven done. */
static void of_an_io_that_is_not_posted_nothing_is(void **state)
{
	const struct rxfer_shape shape = {
		.op = RXFER_READ, .bytes = 2048, .frags = MOST, .segments = 8};
	struct rxfer_seg segs[8];
	uint32_t held = 2;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "bounce", &shape);
	p.e.client_attr.rounds = true;
	p.e.client_attr.sq_depth = 3;
	connect_pair(&p);
	fill_target(130);
	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(post_read(&p, 3, 0, 0, i), 0);
		expect_done(&p, i);
	}
	memset(pool, 1, BYTES);
	for (int i = 0; i < 8; i++)
		segs[i] = remote(&p, 16 * (uint64_t)i, EACH);
	fragments(8, 0);
	assert_int_equal(rxfer_sq_reserve(p.sq, held), 0);
	assert_int_equal(rxfer_post_held(p.e.client,
					 &(struct rxfer_op){.op = RXFER_READ,
							    .local = frags,
							    .nlocal = 8,
							    .remote = segs,
							    .nremote = 8},
					 &held, 0),
			 -EMSGSIZE);
	engine_said("it goes in rounds");
	assert_int_equal(held, 2);
	rxfer_sq_release(p.sq, held);
	assert_int_equal(copied(&p), 4 * 3 * EACH);
	for (int i = 0; i < BYTES; i++)
		assert_int_equal(pool[i], 1);
	engine_close(&p.e);
}

static void what_is_too_large_is_refused(void **state)
{
	struct rxfer_frag frag = {pool, 2049};
	struct rxfer_seg seg;
	struct pair p;

	(void)state;
	open_bounce(&p, NULL, &writes);
	seg = remote(&p, 0, 2049);
	assert_int_equal(rxfer_post_write(p.e.client, &frag, 1, &seg, 1, 1, 0), -EMSGSIZE);
	engine_said("2049 bytes");
	frag.len = 0;
	assert_int_equal(rxfer_post_write(p.e.client, &frag, 1, &seg, 1, 1, 0), -EINVAL);
	assert_int_equal(post_write(&p, MOST + 1, 0, 0), -EINVAL);
	assert_int_equal(copied(&p), 0);
	frag.len = 2048;
	assert_int_equal(rxfer_post_write(p.e.client, &frag, 1, &seg, 1, 1, 0), 0);
	expect_done(&p, 1);
	assert_memory_equal(theirs, pool, 2048);
	engine_close(&p.e);
}

/* A connection whose I/Os have fixed memory alone, by its shape, has no buffers. */
static void where_there_is_no_buffer_it_is_refused(void **state)
{
	const struct rxfer_shape shape = {.op = RXFER_SEND, .bytes = 64, .frags = 1, .fixed = 1};
	struct rxfer_frag frag = {pool, 8};
	struct pair p;

	(void)state;
	open_bounce(&p, NULL, &shape);
	assert_int_equal(rxfer_post_send(p.e.client, &frag, 1, 1, 0), -EMSGSIZE);
	engine_said("have 0 bytes");
	engine_close(&p.e);
}

/* ---- What is registered ---- */

/* Over what is there without a connection. @open: buffers that the peer may write. */
static void registered(const struct fake_config *config, const struct rxfer_shape *shape,
		       uint64_t mrs, uint64_t bytes, uint64_t open)
{
	const struct rxfer_dev_counts *c;
	uint64_t before, pinned;
	struct pair p;

	open_pair(&p, config, "bounce", shape);
	c = rxfer_dev_counts(p.e.cdev);
	assert_int_equal(c->mr_now, 1); /* the fixed one; the pool is none */
	before = c->mr_total;
	pinned = c->pinned_now;
	connect_pair(&p);
	assert_int_equal(c->mr_total - before, mrs);
	assert_int_equal(c->pinned_now - pinned, bytes);
	assert_int_equal(rxfer_strategy_memory("bounce", &p.e.client_attr), bytes);
	assert_int_equal(rxfer_strategy_memory("global", &p.e.client_attr), 0);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, open);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).live, open ? 1 : 0);
	assert_int_equal(rxfer_conn_exposed(p.e.client).live, 0);
	for (uint64_t i = 0; i < 5 && shape->op == RXFER_READ; i++) {
		assert_int_equal(post_read(&p, 3, 0, 0, i), 0);
		expect_done(&p, i);
	}
	assert_int_equal(c->mr_total - before, mrs);
	rxfer_conn_close(p.e.client);
	p.e.client = NULL;
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).live, 0);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).proven, open ? 1 : 0);
	assert_int_equal(c->pinned_now, pinned);
	engine_close(&p.e);
}

static void one_region_for_all_buffers(void **state)
{
	const struct rxfer_shape fixed = {.op = RXFER_SEND, .bytes = 64, .frags = 1, .fixed = 1};
	const struct rxfer_shape large = {RXFER_WRITE, 4097, 1, 1};

	(void)state;
	registered(NULL, &reads, 1, 2 * 4096, 0);
	registered(NULL, &large, 1, 4 * 4096, 0);
	registered(NULL, &fixed, 0, 0, 0);
}

static void over_iwarp_the_peer_may_write_a_reads_sink(void **state)
{
	struct fake_config config = engine_config();

	(void)state;
	config.device[0].iwarp = true;
	registered(&config, &reads, 1, 2 * 4096, 2 * 4096);
	registered(&config, &writes, 1, 2 * 4096, 0);
}

static void a_device_that_registers_no_more(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "bounce", &reads);
	fake_live()->fail_reg_mr = (struct fake_fault){1, ENOMEM};
	assert_int_equal(engine_connect(&p.e), -ENOMEM);
	engine_said("ibv_reg_mr of 8.0 KiB");
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).live, 0);
	engine_close(&p.e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_is_copied_before_its_post),
		cmocka_unit_test(a_read_is_copied_when_it_is_handed_up),
		cmocka_unit_test(the_ring_is_used_again),
		cmocka_unit_test(as_many_fragments_as_there_may_be),
		cmocka_unit_test(prepared_ones_are_copied_each_time),
		cmocka_unit_test(what_is_fixed_is_not_copied),
		cmocka_unit_test(of_a_connection_that_is_left_nothing_is),
		cmocka_unit_test(of_an_io_that_fails_nothing_is),
		cmocka_unit_test(of_a_post_that_the_device_refuses_nothing_is),
		cmocka_unit_test(of_an_io_that_is_not_posted_nothing_is),
		cmocka_unit_test(what_is_too_large_is_refused),
		cmocka_unit_test(where_there_is_no_buffer_it_is_refused),
		cmocka_unit_test(one_region_for_all_buffers),
		cmocka_unit_test(over_iwarp_the_peer_may_write_a_reads_sink),
		cmocka_unit_test(a_device_that_registers_no_more),
	};

	return cmocka_run_group_tests_name("unit_bounce", tests, NULL, NULL);
}
