/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fragments in RXFER_FIXED memory are no strategy's business: messages and their headers are
 * registered once, also where a strategy registers all else anew for each I/O. And a message that
 * is to be one is one.
 */
#include "held_fixture.h"

#define HEADER 40 /* bytes */

/* A connection for messages of @frags pieces. @sges: of the device; 0: as many as it likes. */
static void open_sender(struct pair *p, const char *strategy, uint32_t frags, uint32_t sges,
			bool one_message)
{
	struct rxfer_shape shape = {.op = RXFER_SEND, .bytes = MESSAGE, .frags = frags};
	struct fake_config config = engine_config();

	if (sges)
		config.device[0].max_sge = sges;
	open_pair(p, &config, strategy, &shape);
	p->e.client_attr.one_message = one_message;
	connect_pair(p);
}

/* A header, and pieces of 20 bytes that lie apart. @bytes: room for what is to arrive; its length
 * is returned. */
static uint32_t fragments(struct rxfer_frag *frag, uint32_t n, uint8_t *bytes)
{
	uint32_t len = 0;

	for (uint32_t i = 0; i < n; i++) {
		frag[i] = i ? (struct rxfer_frag){pool + 100 * i, 20}
			    : (struct rxfer_frag){header + 7, HEADER};
		memcpy(bytes + len, frag[i].addr, frag[i].len);
		len += frag[i].len;
	}
	return len;
}

static int send_it(struct pair *p, const struct rxfer_frag *frag, uint32_t n, uint32_t fixed,
		   uint64_t id)
{
	struct rxfer_op op = {
		.op = RXFER_SEND, .local = frag, .nlocal = n, .fixed = fixed, .id = id};
	uint32_t held = p->e.client->need;
	int rc;

	assert_int_equal(rxfer_sq_reserve(p->sq, held), 0);
	rc = rxfer_post_held(p->e.client, &op, &held, 0);
	if (rc) {
		assert_int_equal(held, p->e.client->need);
		assert_int_equal(rxfer_sq_release(p->sq, held), 0);
	}
	return rc;
}

/* Regions beside those of the memory itself: now, and ever made. */
static uint64_t regions(const struct pair *p, uint64_t *made)
{
	const struct rxfer_dev_counts *c = rxfer_dev_counts(p->e.cdev);

	*made = c->mr_total - 1;				 /* header[] */
	assert_int_equal(fake_stats()->reg_mr, c->mr_total + 2); /* the server's two */
	return c->mr_now - 1;
}

static void expect_regions(const struct pair *p, uint64_t now, uint64_t made)
{
	uint64_t ever;

	assert_int_equal(regions(p, &ever), now);
	assert_int_equal(ever, made);
}

/* ---- Fixed ---- */

static void no_region_for_what_is_fixed(void **state)
{
	struct rxfer_frag frag[2] = {{header, 16}, {header + 100, 16}};
	uint8_t bytes[32];
	struct pair p;

	(void)state;
	open_sender(&p, "per-io", 2, 0, false);
	expect_regions(&p, 0, 0);
	memcpy(bytes, header, 16);
	memcpy(bytes + 16, header + 100, 16);
	for (uint64_t id = 0; id < 3; id++) {
		assert_int_equal(send_it(&p, frag, 2, 2, id), 0);
		expect_regions(&p, 0, 0);
		assert_int_equal(expect_done(&p, id).bytes, 32);
		expect_message(&p, id, bytes, 32);
	}
	expect_regions(&p, 0, 0);
	assert_int_equal(send_it(&p, frag, 2, 0, 3), 0); /* nobody said that it is */
	expect_regions(&p, 2, 2);
	expect_done(&p, 3);
	expect_regions(&p, 0, 2);
	assert_true(engine_idle(p.e.client));
	engine_close(&p.e);
}

/* What is in a WR: the header under its own key, then the others in order. */
static void expect_sges(const struct pair *p, const struct rxfer_frag *frag, uint32_t n)
{
	const struct ibv_send_wr *wr = p->e.client->oldest->wr;

	assert_int_equal(wr->num_sge, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(wr->sg_list[i].addr, (uintptr_t)frag[i].addr);
		assert_int_equal(wr->sg_list[i].length, frag[i].len);
		assert_int_equal(wr->sg_list[i].lkey == p->fixed->mr->lkey, i == 0);
	}
}

static void a_header_and_two_others(void **state)
{
	struct rxfer_frag frag[3];
	uint8_t bytes[MESSAGE];
	struct pair p;
	uint32_t len;

	(void)state;
	open_sender(&p, "per-io", 3, 0, false);
	len = fragments(frag, 3, bytes);
	for (uint64_t id = 0; id < 3; id++) {
		assert_int_equal(send_it(&p, frag, 3, 1, id), 0);
		expect_regions(&p, 2, 2 * id + 2);
		expect_sges(&p, frag, 3);
		assert_int_equal(expect_done(&p, id).bytes, len);
		expect_regions(&p, 0, 2 * id + 2);
		expect_message(&p, id, bytes, len);
	}
	assert_int_equal(rxfer_conn_counts(p.e.client)->copied_bytes, 0);
	assert_true(engine_idle(p.e.client));
	engine_close(&p.e);
}

/* One of each kind in turn, in the same two places of the ring: none inherits what another had. */
static void nothing_is_left_of_the_one_before(void **state)
{
	static const uint32_t fixed[] = {0, 1, 0, 3, 3, 1, 3, 0};
	static const uint32_t made[] = {3, 2, 3, 0, 0, 2, 0, 3};
	uint8_t bytes[3 * 16];
	struct rxfer_frag frag[3];
	uint64_t ever = 0;
	struct pair p;

	(void)state;
	open_sender(&p, "per-io", 3, 0, false);
	for (uint32_t i = 0; i < 3; i++) {
		frag[i] = (struct rxfer_frag){header + 100 * i, 16};
		memcpy(bytes + 16 * i, header + 100 * i, 16);
	}
	for (uint64_t id = 0; id < 8; id++) {
		assert_int_equal(send_it(&p, frag, 3, fixed[id], id), 0);
		ever += made[id];
		expect_regions(&p, made[id], ever);
		expect_done(&p, id);
		expect_regions(&p, 0, ever);
		expect_message(&p, id, bytes, sizeof(bytes));
	}
	engine_close(&p.e);
}

/* In the middle of the map: what was made is undone, and nothing is spent (send_it()). */
static void the_second_registration_fails(void **state)
{
	struct rxfer_frag frag[3];
	uint8_t bytes[MESSAGE];
	struct pair p;
	uint32_t len;

	(void)state;
	open_sender(&p, "per-io", 3, 0, false);
	len = fragments(frag, 3, bytes);
	fake_live()->fail_reg_mr = (struct fake_fault){2, ENOSPC};
	assert_int_equal(send_it(&p, frag, 3, 1, 5), -ENOSPC);
	assert_int_equal(rxfer_dev_counts(p.e.cdev)->mr_now, 1);
	assert_true(engine_idle(p.e.client));
	assert_int_equal(send_it(&p, frag, 3, 1, 6), 0);
	expect_done(&p, 6);
	expect_message(&p, 0, bytes, len);
	engine_close(&p.e);
}

/* What a strategy registers piece by piece has no key for good. */
static void not_fixed_after_all(void **state)
{
	struct rxfer_frag frag[2] = {{header, 16}, {pool, 16}};
	struct pair p;

	(void)state;
	open_sender(&p, "per-io", 2, 0, false);
	assert_int_equal(send_it(&p, frag, 2, 2, 0), -EFAULT);
	engine_said("rxfer_mem_add()");
	expect_regions(&p, 0, 0);
	assert_true(engine_idle(p.e.client));
	engine_close(&p.e);
}

/* The connection goes while a mixed one is in flight: engine_close() finds nothing left. */
static void closed_in_the_middle(void **state)
{
	struct rxfer_frag frag[3];
	uint8_t bytes[MESSAGE];
	struct pair p;

	(void)state;
	open_sender(&p, "per-io", 3, 0, false);
	fragments(frag, 3, bytes);
	assert_int_equal(send_it(&p, frag, 3, 1, 0), 0);
	assert_int_equal(send_it(&p, frag, 1, 1, 1), 0);
	expect_regions(&p, 2, 2);
	rxfer_conn_close(p.e.client);
	p.e.client = NULL;
	expect_regions(&p, 0, 2);
	engine_close(&p.e);
}

/* A WRITE, cut elsewhere: the header's 40 and 20 + 20 into 50 and 30. */
static void a_write_of_both_kinds(void **state)
{
	static const char *const strategies[] = {"per-io", "global", "multi-wr"};
	struct rxfer_shape shape = {.op = RXFER_WRITE, .bytes = MESSAGE, .frags = 3, .segments = 2};
	struct rxfer_frag frag[3];
	struct rxfer_seg to[2];
	uint8_t bytes[MESSAGE];
	struct pair p;

	(void)state;
	for (size_t i = 0; i < sizeof(strategies) / sizeof(strategies[0]); i++) {
		struct rxfer_op op = {.op = RXFER_WRITE, .local = frag, .nlocal = 3, .fixed = 1};
		uint32_t held;

		open_pair(&p, NULL, strategies[i], &shape);
		connect_pair(&p);
		assert_int_equal(fragments(frag, 3, bytes), 80);
		to[0] = remote(&p, 0, 50);
		to[1] = remote(&p, 2000, 30);
		op.remote = to;
		op.nremote = 2;
		held = p.e.client->need;
		assert_int_equal(rxfer_sq_reserve(p.sq, held), 0);
		assert_int_equal(rxfer_post_held(p.e.client, &op, &held, 0), 0);
		if (i == 0)
			expect_regions(&p, 2, 2);
		assert_int_equal(expect_done(&p, 0).bytes, 80);
		assert_memory_equal(theirs, bytes, 50);
		assert_memory_equal(theirs + 2000, bytes + 50, 30);
		assert_int_equal(theirs[50], 0);
		assert_true(engine_idle(p.e.client));
		engine_close(&p.e);
	}
}

/* The time that it takes to look up the keys of fixed memory is no strategy's. */
static void only_the_strategys_part_is_timed(void **state)
{
	struct rxfer_shape shape = {.op = RXFER_SEND, .bytes = MESSAGE, .frags = 3};
	const struct rxfer_counts *c;
	struct rxfer_frag frag[3];
	uint8_t bytes[MESSAGE];
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "per-io", &shape);
	p.e.client_attr.time_phases = true;
	connect_pair(&p);
	c = rxfer_conn_counts(p.e.client);
	fragments(frag, 3, bytes);
	assert_int_equal(send_it(&p, frag, 1, 1, 0), 0);
	expect_done(&p, 0);
	assert_int_equal(c->map_ns, 0);
	assert_int_equal(c->unmap_ns, 0);
	assert_int_equal(send_it(&p, frag, 3, 1, 1), 0);
	assert_in_range(c->map_ns, 1, UINT32_MAX);
	assert_int_equal(c->unmap_ns, 0);
	expect_done(&p, 1);
	assert_in_range(c->unmap_ns, 1, UINT32_MAX);
	engine_close(&p.e);
}

/* ---- More fragments than SGEs ---- */

/* The copy is one piece, in memory of the engine's: one region, whatever the fragments are in. */
static void linearised(uint32_t fixed)
{
	struct rxfer_frag frag[3];
	uint8_t bytes[MESSAGE];
	struct pair p;
	uint32_t len;

	open_sender(&p, "per-io", 3, 2, false);
	len = fragments(frag, 3, bytes);
	for (uint32_t i = 1; i < fixed; i++) {
		frag[i].addr = header + 1000 * i;
		memcpy(bytes + HEADER + 20 * (i - 1), frag[i].addr, 20);
	}
	for (uint64_t id = 0; id < 3; id++) {
		assert_int_equal(send_it(&p, frag, 3, fixed, id), 0);
		expect_regions(&p, 1, id + 1);
		assert_int_equal(p.e.client->oldest->wr->num_sge, 1);
		assert_int_equal(expect_done(&p, id).bytes, len);
		expect_regions(&p, 0, id + 1);
		expect_message(&p, id, bytes, len);
	}
	assert_int_equal(rxfer_conn_counts(p.e.client)->copied_bytes, 3 * len);
	assert_int_equal(send_it(&p, frag, 2, 2 < fixed ? 2 : fixed, 3),
			 0); /* two go as they are */
	assert_int_equal(p.e.client->oldest->wr->num_sge, 2);
	expect_done(&p, 3);
	expect_message(&p, 3, bytes, HEADER + 20);
	assert_int_equal(rxfer_conn_counts(p.e.client)->copied_bytes, 3 * len);
	engine_close(&p.e);
}

static void a_message_of_too_many_pieces(void **state)
{
	(void)state;
	linearised(0);
	linearised(1);
	linearised(3);
}

/* ---- One message ---- */

/* Of five pieces. @want: WRs and messages. */
static void five_pieces(const char *strategy, uint32_t sges, bool one_message, uint32_t want,
			uint32_t copied)
{
	struct rxfer_conn_info info;
	struct rxfer_frag frag[5];
	uint8_t bytes[MESSAGE];
	struct pair p;
	uint32_t len;

	open_sender(&p, strategy, 5, sges, one_message);
	len = fragments(frag, 5, bytes);
	rxfer_conn_info(p.e.client, &info);
	assert_int_equal(info.need, want);
	assert_int_equal(send_it(&p, frag, 5, 1, 0), 0);
	assert_int_equal(fake_stats()->sqes, want);
	assert_int_equal(fake_stats()->posts, 1);
	if (want == 1)
		expect_message(&p, 0, bytes, len);
	for (uint32_t i = 0; want == 5 && i < 5; i++)
		expect_message(&p, i, frag[i].addr, frag[i].len);
	expect_no_message(&p);
	assert_int_equal(expect_done(&p, 0).bytes, len);
	assert_int_equal(rxfer_conn_counts(p.e.client)->copied_bytes, copied);
	assert_true(engine_idle(p.e.client));
	engine_close(&p.e);
}

static void a_message_is_one_where_that_is_asked(void **state)
{
	(void)state;
	five_pieces("multi-wr", 0, false, 5, 0);
	five_pieces("multi-wr", 0, true, 1, 0);
	five_pieces("multi-wr", 3, true, 1, HEADER + 4 * 20);
	five_pieces("multi-wr", 3, false, 5, 0);
	five_pieces("global", 0, true, 1, 0);
	five_pieces("global", 3, true, 1, HEADER + 4 * 20);
	five_pieces("per-io", 0, false, 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_region_for_what_is_fixed),
		cmocka_unit_test(a_header_and_two_others),
		cmocka_unit_test(nothing_is_left_of_the_one_before),
		cmocka_unit_test(the_second_registration_fails),
		cmocka_unit_test(not_fixed_after_all),
		cmocka_unit_test(closed_in_the_middle),
		cmocka_unit_test(a_write_of_both_kinds),
		cmocka_unit_test(only_the_strategys_part_is_timed),
		cmocka_unit_test(a_message_of_too_many_pieces),
		cmocka_unit_test(a_message_is_one_where_that_is_asked),
	};

	return cmocka_run_group_tests_name("unit_xfer_fixed", tests, NULL, NULL);
}
