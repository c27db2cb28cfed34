/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How an I/O's work requests look and are posted: SGEs, inline data, immediate data, doorbells. */
#include <errno.h>
#include <string.h>
#include "fakehca/engine.h"

#define FRAGS	4
#define STRIDE	1000 /* from one fragment to the next: they do not adjoin */
#define SEND_TO 8000

static uint8_t mine[16384], theirs[16384];

/* struct pair - a connection of one slot, and an I/O of FRAGS fragments of @each bytes. */
struct pair {
	struct engine e;
	struct rxfer_frag frag[FRAGS];
	struct rxfer_seg to;
	struct rxfer_mem *mine;
};

/* All of it but the connection; the test sets what it wants in p->e.client_attr meanwhile. */
static void prepare(struct pair *p, const struct fake_config *config, enum rxfer_opcode op,
		    uint32_t each)
{
	struct rxfer_shape shape = {op, FRAGS * each, FRAGS, op == RXFER_SEND ? 0 : 1};
	struct rxfer_mem *mem;

	memset(theirs, 0, sizeof(theirs));
	engine_open(&p->e, config, "global");
	assert_int_equal(rxfer_mem_add(p->e.cdev, mine, sizeof(mine), RXFER_LOCAL, &p->mine), 0);
	assert_int_equal(rxfer_mem_add(p->e.sdev, theirs, sizeof(theirs),
				       RXFER_PEER_READ | RXFER_PEER_WRITE, &mem),
			 0);
	for (uint32_t i = 0; i < FRAGS; i++) {
		p->frag[i] = (struct rxfer_frag){mine + (size_t)i * STRIDE, each};
		memset(p->frag[i].addr, (int)i + 1, each);
	}
	p->to = (struct rxfer_seg){(uintptr_t)theirs, FRAGS * each, rxfer_mem_rkey(mem)};
	engine_attr(&p->e, &shape, 1, 0, "all");
}

static void connect_pair(struct pair *p)
{
	assert_int_equal(engine_connect(&p->e), 0);
	assert_int_equal(p->e.accepted, 0);
}

static void open_pair(struct pair *p, enum rxfer_opcode op)
{
	prepare(p, NULL, op, 10);
	connect_pair(p);
}

static void refused(struct pair *p, const char *words)
{
	assert_int_equal(engine_connect(&p->e), -EMSGSIZE);
	engine_said(words);
	engine_close(&p->e);
}

static int write_it(struct pair *p)
{
	return rxfer_post_write(p->e.client, p->frag, FRAGS, &p->to, 1, 7, 0);
}

static void expect_done(struct pair *p, uint64_t bytes)
{
	struct rxfer_done done;

	fake_run();
	assert_int_equal(rxfer_poll(p->e.client, &done, 1), 1);
	assert_int_equal(done.id, 7);
	assert_int_equal(done.bytes, bytes);
	assert_true(engine_idle(p->e.client));
}

/* ---- SGEs ---- */

static void a_wr_has_no_more_sges_than_asked(void **state)
{
	static const uint32_t wrs[] = {[1] = 4, [2] = 2, [3] = 2, [4] = 1};

	(void)state;
	for (uint32_t max = 1; max <= 4; max++) {
		struct rxfer_conn_info info;
		struct pair p;

		prepare(&p, NULL, RXFER_WRITE, 10);
		p.e.client_attr.sge_max = max;
		connect_pair(&p);
		rxfer_conn_info(p.e.client, &info);
		assert_int_equal(info.sge_per_wr, max);
		assert_int_equal(info.need, wrs[max]);
		assert_int_equal(write_it(&p), 0);
		assert_int_equal(fake_stats()->sqes, wrs[max]);
		expect_done(&p, 40);
		engine_close(&p.e);
	}
}

static void more_sges_than_the_device_has(void **state)
{
	struct fake_config config = engine_config();
	struct pair p;

	(void)state;
	config.device[0].max_sge = 5;
	config.device[0].max_sge_rd = 3;
	prepare(&p, &config, RXFER_WRITE, 10);
	p.e.client_attr.sge_max = 6;
	refused(&p, "6 SGEs in a WR are more than fake0 can have (max_sge 5): use --max-sge 5");
	prepare(&p, &config, RXFER_READ, 10);
	p.e.client_attr.sge_max = 4;
	refused(&p, "max_sge_rd 3");
}

/* ---- Inline data ---- */

/* The bytes go with the WR: what becomes of the source is nobody's business then. */
static void small_wrs_carry_their_bytes(void **state)
{
	static const enum rxfer_opcode ops[] = {RXFER_WRITE, RXFER_WRITE_IMM, RXFER_SEND};
	struct rxfer_mem *mem;

	(void)state;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct pair p;

		prepare(&p, NULL, ops[i], 10);
		p.e.client_attr.inline_max = 40;
		connect_pair(&p);
		assert_int_equal(rxfer_mem_add(p.e.sdev, theirs, 100, RXFER_FIXED, &mem), 0);
		assert_int_equal(rxfer_post_recv(p.e.server, theirs, 100, 0), 0);
		if (ops[i] == RXFER_SEND)
			assert_int_equal(rxfer_post_send(p.e.client, p.frag, FRAGS, 7, 0), 0);
		else if (ops[i] == RXFER_WRITE)
			assert_int_equal(write_it(&p), 0);
		else
			assert_int_equal(
				rxfer_post_write_imm(p.e.client, p.frag, FRAGS, &p.to, 1, 1, 7, 0),
				0);
		memset(mine, 0xff, sizeof(mine));
		expect_done(&p, 40);
		assert_int_equal(theirs[0], 1);
		assert_int_equal(theirs[39], 4);
		engine_close(&p.e);
	}
}

/* One byte too many, and READs, go the usual way: the double would see a changed source. */
static void larger_wrs_do_not(void **state)
{
	struct pair p;

	(void)state;
	prepare(&p, NULL, RXFER_WRITE, 10);
	p.e.client_attr.inline_max = 39;
	connect_pair(&p);
	assert_int_equal(write_it(&p), 0);
	memset(mine, 0xff, sizeof(mine));
	expect_done(&p, 40);
	assert_int_equal(theirs[0], 0xff);
	engine_close(&p.e);

	prepare(&p, NULL, RXFER_READ, 10);
	p.e.client_attr.inline_max = 40;
	connect_pair(&p);
	assert_int_equal(rxfer_post_read(p.e.client, p.frag, FRAGS, &p.to, 1, 7, 0), 0);
	expect_done(&p, 40); /* the double refuses an inline READ */
	engine_close(&p.e);
}

static void more_inline_than_the_device_grants(void **state)
{
	struct fake_config config = engine_config();
	struct pair p;

	(void)state;
	config.device[0].max_inline = 77;
	prepare(&p, &config, RXFER_WRITE, 10);
	p.e.client_attr.inline_max = 1000;
	refused(&p, "--inline 1000 is more than fake0 grants: use --inline 77");
	prepare(&p, &config, RXFER_WRITE, 10);
	p.e.client_attr.inline_max = 77;
	connect_pair(&p);
	engine_close(&p.e);
	config.device[0].max_inline = 0;
	prepare(&p, &config, RXFER_WRITE, 10);
	p.e.client_attr.inline_max = 1;
	refused(&p, "use --inline 0 or less");
}

/* ---- Immediate data ---- */

/* Several WRs, one message: the last one brings it, when all bytes are there. */
static void the_last_wr_brings_the_immediate_data(void **state)
{
	struct rxfer_done done;
	struct rxfer_mem *mem;
	struct pair p;

	(void)state;
	prepare(&p, NULL, RXFER_WRITE_IMM, 10);
	p.e.client_attr.sge_max = 1;
	connect_pair(&p);
	assert_int_equal(rxfer_mem_add(p.e.sdev, theirs + SEND_TO, 8, RXFER_FIXED, &mem), 0);
	assert_int_equal(rxfer_post_recv(p.e.server, theirs + SEND_TO, 8, 5), 0);
	assert_int_equal(
		rxfer_post_write_imm(p.e.client, p.frag, FRAGS, &p.to, 1, 0x12345678, 7, 0), 0);
	assert_int_equal(fake_stats()->sqes, FRAGS);
	expect_done(&p, 40);
	assert_int_equal(rxfer_poll(p.e.server, &done, 1), 1);
	assert_int_equal(done.op, RXFER_RECV);
	assert_int_equal(done.id, 5);
	assert_true(done.with_imm);
	assert_int_equal(done.imm, 0x12345678);
	assert_int_equal(theirs[39], 4);
	assert_int_equal(rxfer_poll(p.e.server, &done, 1), 0);
	engine_close(&p.e);
}

static void iwarp_has_none(void **state)
{
	struct fake_config config = engine_config();
	struct pair p;

	(void)state;
	config.device[0].iwarp = true;
	prepare(&p, &config, RXFER_WRITE, 10);
	assert_int_equal(rxfer_dev_can(p.e.cdev, RXFER_WRITE_IMM), -EOPNOTSUPP);
	engine_said("immediate");
	assert_int_equal(rxfer_dev_can(p.e.cdev, RXFER_WRITE), 0);
	engine_close(&p.e);
	prepare(&p, NULL, RXFER_WRITE, 10);
	assert_int_equal(rxfer_dev_can(p.e.cdev, RXFER_WRITE_IMM), 0);
	engine_close(&p.e);
}

/* ---- Notes ---- */

/* A RECV for one, with id 3. */
static int note_recv(struct pair *p)
{
	struct rxfer_mem *mem;

	assert_int_equal(rxfer_mem_add(p->e.sdev, theirs + SEND_TO, 8, RXFER_FIXED, &mem), 0);
	return rxfer_post_recv(p->e.server, theirs + SEND_TO, 8, 3);
}

static void a_note_arrives_as_nothing(void **state)
{
	struct rxfer_done done;
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_SEND);
	assert_int_equal(note_recv(&p), 0);
	assert_int_equal(rxfer_post_note(p.e.client), 0);
	assert_false(engine_idle(p.e.client));
	fake_run();
	assert_int_equal(rxfer_poll(p.e.server, &done, 1), 1);
	assert_int_equal(done.op, RXFER_RECV);
	assert_int_equal(done.id, 3);
	assert_int_equal(done.bytes, 0);
	assert_int_equal(rxfer_poll(p.e.client, &done, 1), 0);
	assert_true(engine_idle(p.e.client));
	assert_int_equal(rxfer_conn_counts(p.e.client)->sqe, 1);
	assert_int_equal(rxfer_conn_counts(p.e.client)->posts, 1);
	assert_int_equal(rxfer_conn_counts(p.e.client)->cqe, 1);
	engine_close(&p.e);
}

/* The end's own I/Os are finished, whatever it has still to say of the peer's. */
static void a_note_under_way_is_no_work(void **state)
{
	struct rxfer_done done;
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_SEND);
	assert_int_equal(note_recv(&p), 0);
	assert_int_equal(rxfer_post_note(p.e.client), 0);
	assert_true(rxfer_idle(p.e.client));
	rxfer_conn_restart(p.e.client);
	fake_run();
	assert_int_equal(rxfer_poll(p.e.client, &done, 1), 0);
	assert_true(engine_idle(p.e.client));
	assert_int_equal(rxfer_conn_counts(p.e.client)->sqe, 0);
	assert_int_equal(rxfer_conn_counts(p.e.client)->cqe, 0);
	assert_int_equal(rxfer_poll(p.e.server, &done, 1), 1);
	assert_int_equal(rxfer_post_recv(p.e.server, theirs + SEND_TO, 8, 3), 0);
	assert_int_equal(rxfer_post_note(p.e.client), 0);
	fake_run();
	assert_int_equal(rxfer_poll(p.e.client, &done, 1), 0);
	assert_int_equal(rxfer_conn_counts(p.e.client)->cqe, 1);
	engine_close(&p.e);
}

/* It goes behind an I/O of the same connection, and proves it. */
static void a_note_takes_a_credit_and_no_slot(void **state)
{
	struct pair p;

	(void)state;
	prepare(&p, NULL, RXFER_WRITE, 10);
	p.e.client_attr.sq_depth = 3;
	p.e.client_attr.sge_max = 2;
	rxfer_sig_parse("every:3", &p.e.client_attr.sig, &p.e.client_attr.sig_arg);
	connect_pair(&p);
	assert_int_equal(note_recv(&p), 0);
	assert_int_equal(write_it(&p), 0); /* two WRs, and one credit is the drain's */
	assert_int_equal(rxfer_post_note(p.e.client), -EAGAIN);
	expect_done(&p, 40);
	assert_int_equal(rxfer_post_note(p.e.client), 0);
	assert_int_equal(rxfer_post_note(p.e.client), 0);
	assert_int_equal(rxfer_post_note(p.e.client), -EAGAIN);
	engine_close(&p.e);
}

static void a_note_that_fails_breaks(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_SEND);
	fake_live()->fail_post_send = (struct fake_fault){1, EIO};
	assert_int_equal(rxfer_post_note(p.e.client), -EIO);
	engine_said("no bytes on fake0");
	assert_int_equal(rxfer_sq_posted(&p.e.client->sq), 0);
	assert_int_equal(rxfer_post_note(p.e.client), -EIO);
	engine_close(&p.e);
}

/* ---- Prepared I/Os ---- */

static struct rxfer_prepared *prepare_it(struct pair *p, enum rxfer_opcode op)
{
	struct rxfer_prepared *prepared = NULL;
	bool send = op == RXFER_SEND;

	const struct rxfer_op it = {.op = op,
				    .local = p->frag,
				    .nlocal = FRAGS,
				    .remote = send ? NULL : &p->to,
				    .nremote = !send};

	assert_int_equal(rxfer_prepare(p->e.client, &it, &prepared), 0);
	return prepared;
}

/* It is posted, and all of it arrives. */
static void moves(struct pair *p, struct rxfer_prepared *prepared)
{
	assert_int_equal(rxfer_post_prepared(prepared, 0, 7, 0), 0);
	expect_done(p, 40);
}

/* As often as one likes, and with what is in the memory then. */
static void a_prepared_io_is_posted_again_and_again(void **state)
{
	struct rxfer_prepared *prepared;
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_WRITE);
	prepared = prepare_it(&p, RXFER_WRITE);
	for (int i = 1; i <= 5; i++) {
		memset(mine, i, sizeof(mine));
		moves(&p, prepared);
		assert_int_equal(fake_stats()->sqes, i); /* four fragments in one WR */
		assert_int_equal(theirs[0], i);
		assert_int_equal(theirs[39], i);
	}
	assert_int_equal(rxfer_conn_counts(p.e.client)->sqe, 5);
	assert_int_equal(rxfer_conn_counts(p.e.client)->posts, 5);
	rxfer_unprepare(prepared);
	engine_close(&p.e);
}

/* More than one WR, or a strategy with work for each I/O: by the lists, and right. */
static void what_cannot_be_prepared_goes_by_its_lists(void **state)
{
	struct rxfer_prepared *prepared;
	struct pair p;

	(void)state;
	prepare(&p, NULL, RXFER_WRITE, 10);
	p.e.client_attr.sge_max = 3;
	connect_pair(&p);
	prepared = prepare_it(&p, RXFER_WRITE);
	for (uint64_t i = 1; i <= 2; i++) {
		moves(&p, prepared);
		assert_int_equal(fake_stats()->sqes, 2 * i);
	}
	assert_int_equal(theirs[39], 4);
	rxfer_unprepare(prepared);
	engine_close(&p.e);
}

/* The memory goes and comes back under another key: what was made with the old one is made anew. */
static void memory_that_was_declared_anew(void **state)
{
	struct rxfer_prepared *prepared;
	struct rxfer_mem *mem;
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_WRITE);
	prepared = prepare_it(&p, RXFER_WRITE);
	rxfer_mem_del(p.mine);
	assert_int_equal(rxfer_post_prepared(prepared, 0, 7, 0), -EFAULT);
	engine_said("rxfer_mem_add");
	assert_true(engine_idle(p.e.client));
	assert_int_equal(rxfer_mem_add(p.e.cdev, mine, sizeof(mine), RXFER_LOCAL, &mem), 0);
	moves(&p, prepared);
	assert_int_equal(theirs[39], 4);
	rxfer_mem_del(mem);
	assert_int_equal(rxfer_mem_add(p.e.cdev, mine, sizeof(mine), RXFER_LOCAL, &mem), 0);
	moves(&p, prepared);
	rxfer_unprepare(prepared);
	engine_close(&p.e);
}

/* Slots, credits, the device: it is refused as any other is, and the accounts hold. */
static void a_prepared_io_is_refused(void **state)
{
	struct rxfer_prepared *prepared, *other;
	struct pair p;

	(void)state;
	prepare(&p, NULL, RXFER_WRITE, 10);
	p.e.client_attr.slots = 2;
	p.e.client_attr.sq_depth = 2;
	connect_pair(&p);
	prepared = prepare_it(&p, RXFER_WRITE);
	other = prepare_it(&p, RXFER_WRITE);
	assert_int_equal(rxfer_post_prepared(prepared, 0, 7, 0), 0);
	assert_int_equal(rxfer_post_prepared(other, 0, 8, 0),
			 -EAGAIN); /* one credit is the drain's */
	expect_done(&p, 40);
	fake_live()->fail_post_send = (struct fake_fault){1, EIO};
	assert_int_equal(rxfer_post_prepared(prepared, 0, 7, 0), -EIO);
	engine_said("took 0 of 1 WRs");
	assert_int_equal(rxfer_sq_posted(&p.e.client->sq), 0);
	assert_int_equal(rxfer_conn_counts(p.e.client)->sqe, 1);
	assert_int_equal(rxfer_post_prepared(prepared, 0, 7, 0), -EIO);
	rxfer_unprepare(prepared);
	rxfer_unprepare(other);
	engine_close(&p.e);
}

/* ---- Doorbells, clocks ---- */

static void open_singly(struct pair *p)
{
	prepare(p, NULL, RXFER_WRITE, 10);
	p->e.client_attr.sge_max = 1;
	p->e.client_attr.post_single = true;
	connect_pair(p);
}

static void one_post_for_each_wr(void **state)
{
	struct pair p;

	(void)state;
	open_singly(&p);
	assert_int_equal(write_it(&p), 0);
	assert_int_equal(fake_stats()->posts, FRAGS);
	assert_int_equal(rxfer_conn_counts(p.e.client)->posts, FRAGS);
	assert_int_equal(rxfer_conn_counts(p.e.client)->sqe, FRAGS);
	expect_done(&p, 40);
	assert_int_equal(theirs[39], 4);
	engine_close(&p.e);
}

/* The third post fails: two WRs are in the queue, two are not, and the accounts say so. */
static void a_post_that_fails_among_others(void **state)
{
	struct pair p;

	(void)state;
	open_singly(&p);
	fake_live()->fail_post_send = (struct fake_fault){3, EIO};
	assert_int_equal(write_it(&p), -EIO);
	engine_said("took 2 of 4 WRs");
	assert_int_equal(rxfer_sq_posted(&p.e.client->sq), 2);
	assert_int_equal(rxfer_conn_counts(p.e.client)->sqe, 2);
	assert_int_equal(fake_stats()->sqes, 2);
	engine_close(&p.e);
}

static void phases_are_timed_when_asked(void **state)
{
	struct pair p;

	(void)state;
	for (int on = 0; on < 2; on++) {
		prepare(&p, NULL, RXFER_WRITE, 10);
		p.e.client_attr.time_phases = on;
		connect_pair(&p);
		assert_int_equal(write_it(&p), 0);
		assert_int_equal(rxfer_conn_counts(p.e.client)->map_ns != 0, on);
		assert_int_equal(rxfer_conn_counts(p.e.client)->unmap_ns, 0);
		expect_done(&p, 40);
		assert_int_equal(rxfer_conn_counts(p.e.client)->unmap_ns != 0, on);
		engine_close(&p.e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wr_has_no_more_sges_than_asked),
		cmocka_unit_test(more_sges_than_the_device_has),
		cmocka_unit_test(small_wrs_carry_their_bytes),
		cmocka_unit_test(larger_wrs_do_not),
		cmocka_unit_test(more_inline_than_the_device_grants),
		cmocka_unit_test(the_last_wr_brings_the_immediate_data),
		cmocka_unit_test(iwarp_has_none),
		cmocka_unit_test(a_note_arrives_as_nothing),
		cmocka_unit_test(a_note_under_way_is_no_work),
		cmocka_unit_test(a_note_takes_a_credit_and_no_slot),
		cmocka_unit_test(a_note_that_fails_breaks),
		cmocka_unit_test(a_prepared_io_is_posted_again_and_again),
		cmocka_unit_test(what_cannot_be_prepared_goes_by_its_lists),
		cmocka_unit_test(memory_that_was_declared_anew),
		cmocka_unit_test(a_prepared_io_is_refused),
		cmocka_unit_test(one_post_for_each_wr),
		cmocka_unit_test(a_post_that_fails_among_others),
		cmocka_unit_test(phases_are_timed_when_asked),
	};

	return cmocka_run_group_tests_name("unit_xfer_wr", tests, NULL, NULL);
}
