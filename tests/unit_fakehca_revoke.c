/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The double's memory windows: revoking a grant, by either end, and revoking wrongly. */
#include "window_fixture.h"

/* ---- Revoking ---- */

/* What is revoked opens nothing from the next piece on, and nobody did wrong but the peer. */
static void in_the_middle_of_a_write(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	memset(e.a.buf, 6, LEN);
	mw = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	post_access(&e, IBV_WR_RDMA_WRITE, AT, LEN, mw->rkey);
	fake_step();
	wr = inv_wr(mw->rkey);
	assert_int_equal(post(&e.b, &wr), 0);
	while (fake_stats()->invalidates == 0)
		fake_step();
	assert_in_range(fake_stats()->bytes_written, 1024, LEN - 1024);
	fake_run();
	end_expect(&e.b, 20, IBV_WC_SUCCESS);
	end_expect(&e.a, 1, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(e.b.buf[AT], 6);
	assert_int_equal(e.b.buf[AT + LEN - 1], 0);
	close_ends(&e, mw, 0);
}

static void in_the_middle_of_a_read(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	memset(e.b.buf, 6, ENDS_BYTES);
	mw = window(&e.b);
	do_bind(&e.b, mw, READ);
	post_access(&e, IBV_WR_RDMA_READ, AT, LEN, mw->rkey);
	fake_step(); /* asks */
	wr = inv_wr(mw->rkey);
	assert_int_equal(post(&e.b, &wr), 0);
	fake_run();
	end_expect(&e.b, 20, IBV_WC_SUCCESS);
	end_expect(&e.a, 1, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(e.a.buf[LEN - 1], 0);
	close_ends(&e, mw, 0);
}

/* Fenced, it waits for its own end's READs; else it overtakes them. */
static void revoke_behind_a_read(unsigned int fence)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	open_with(&e, NULL, LOCAL | BIND | READ);
	fake_live()->read_lag = 10;
	mw = window(&e.b);
	do_bind(&e.b, mw, READ);
	assert_int_equal(end_post(&e.b, &e.a, IBV_WR_RDMA_READ, 1, 0, 0, 64), 0);
	wr = inv_wr(mw->rkey);
	wr.send_flags |= fence;
	assert_int_equal(post(&e.b, &wr), 0);
	for (int i = 0; i < 5; i++)
		fake_step();
	assert_int_equal(fake_stats()->invalidates, fence ? 0 : 1);
	assert_int_equal(fake_stats()->bytes_read, 0);
	fake_run();
	assert_int_equal(fake_stats()->invalidates, 1);
	assert_int_equal(fake_stats()->bytes_read, 64);
	assert_int_equal(end_expect(&e.b, 20, IBV_WC_SUCCESS).opcode, IBV_WC_LOCAL_INV);
	close_ends(&e, mw, 0);
}

static void fenced_or_not(void **state)
{
	(void)state;
	revoke_behind_a_read(IBV_SEND_FENCE);
	revoke_behind_a_read(0);
}

static void revoking_twice(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	do_inv(&e.b, mw->rkey);
	wr = inv_wr(mw->rkey);
	fails(&e, &wr, IBV_WC_LOC_QP_OP_ERR, "grants nothing");
	ends_violated("key revoked twice");
	assert_int_equal(fake_stats()->invalidates, 1);
	close_ends(&e, mw, 1);
}

static void revoking_what_was_never_granted(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	wr = inv_wr(mw->rkey);
	fails(&e, &wr, IBV_WC_LOC_QP_OP_ERR, "grants nothing");
	ends_violated("never granted");
	close_ends(&e, mw, 1);
}

/* A device refuses those, and all is well. */
static void revoke_fails(struct ends *e, struct ibv_mw *mw, uint32_t key)
{
	struct ibv_send_wr wr = inv_wr(key);

	wr.send_flags = 0; /* silent or not */
	do_bind(&e->b, mw, WRITE);
	fails(e, &wr, IBV_WC_LOC_QP_OP_ERR, "is no window's");
	assert_int_equal(fake_stats()->invalidates, 0);
	close_ends(e, mw, 0);
}

static void revoking_by_a_wrong_key(void **state)
{
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	revoke_fails(&e, mw, mw->rkey); /* the one before the BIND */
	open_ends(&e, NULL);
	mw = window(&e.b);
	revoke_fails(&e, mw, mw->rkey + 0x100);
	open_ends(&e, NULL);
	revoke_fails(&e, window(&e.b), e.b.mr->rkey);
}

static void revoking_by_another_qp(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct more m;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	open_more(&e, &m);
	mw = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	wr = inv_wr(mw->rkey);
	assert_int_equal(post(&m.d, &wr), 0);
	fake_run();
	ends_refused("of another QP");
	end_expect(&m.d, 20, IBV_WC_LOC_QP_OP_ERR);
	accesses(&e, IBV_WR_RDMA_WRITE, AT, 64, mw->rkey);
	do_inv(&e.b, mw->rkey);
	close_more(&m);
	close_ends(&e, mw, 0);
}

/* What flushes was not done: neither the revoke nor anything wrong. */
static void revokes_that_flush(void **state)
{
	struct ibv_send_wr wr, again;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	wr = again = inv_wr(mw->rkey);
	wr.next = &again;
	again.send_flags = 0;
	again.wr_id = 21;
	assert_int_equal(post(&e.b, &wr), 0);
	assert_int_equal(
		ibv_modify_qp(e.b.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE),
		0);
	end_expect(&e.b, 20, IBV_WC_WR_FLUSH_ERR);
	end_expect(&e.b, 21, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(fake_stats()->invalidates, 0);
	close_ends(&e, mw, 0);
}

/* ---- Revoking by the peer ---- */

static void a_message_revokes(void **state)
{
	struct ibv_mw *mw;
	struct ibv_wc wc;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	e.a.buf[0] = 5;
	send_with_inv(&e, mw->rkey);
	assert_int_equal(end_expect(&e.a, 2, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
	wc = end_expect(&e.b, 3, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 64);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, mw->rkey);
	assert_int_equal(e.b.buf[8192], 5);
	assert_int_equal(fake_stats()->invalidates, 1);
	assert_int_equal(fake_stats()->bytes_sent, 64);
	do_bind(&e.b, mw, WRITE);
	accesses(&e, IBV_WR_RDMA_WRITE, AT, 1, mw->rkey);
	denied(&e, IBV_WR_RDMA_WRITE, AT, 1, wc.invalidated_rkey, "opens no window");
	close_ends(&e, mw, 0);
}

static void told_of_by_the_wrong_flag(void **state)
{
	struct ibv_mw *mw;
	struct ibv_wc wc;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	fake_live()->device[0].inv_flag_wrong = true;
	mw = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	send_with_inv(&e, mw->rkey);
	end_expect(&e.a, 2, IBV_WC_SUCCESS);
	wc = end_expect(&e.b, 3, IBV_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, 1 << 2);
	assert_int_equal(wc.invalidated_rkey, mw->rkey);
	assert_int_equal(end_recv(&e.b, 4, 8192, 64), 0);
	assert_int_equal(end_post(&e.a, NULL, IBV_WR_SEND, 5, SIGNAL, 0, 64), 0);
	fake_run();
	end_expect(&e.a, 5, IBV_WC_SUCCESS);
	assert_int_equal(end_expect(&e.b, 4, IBV_WC_SUCCESS).wc_flags, 0);
	close_ends(&e, mw, 0);
}

/* Not before all of it is there. */
static void the_last_piece_revokes(void **state)
{
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	assert_int_equal(end_recv(&e.b, 3, 8192, LEN), 0);
	post_send_with_inv(&e, mw->rkey, LEN);
	for (int i = 0; i < 3; i++)
		fake_step();
	assert_int_equal(fake_stats()->bytes_sent, 3072);
	assert_int_equal(fake_stats()->invalidates, 0);
	fake_step();
	assert_int_equal(fake_stats()->invalidates, 1);
	assert_int_equal(end_expect(&e.b, 3, IBV_WC_SUCCESS).byte_len, LEN);
	fake_run();
	end_expect(&e.a, 2, IBV_WC_SUCCESS);
	close_ends(&e, mw, 0);
}

static void a_message_that_revokes_a_wrong_key(void **state)
{
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	send_with_inv_fails(&e, mw->rkey - 1, "is no window's");
	assert_int_equal(fake_stats()->invalidates, 0);
	close_ends(&e, mw, 0);
}

static void a_message_that_revokes_twice(void **state)
{
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	send_with_inv(&e, mw->rkey);
	end_expect(&e.b, 3, IBV_WC_SUCCESS);
	end_expect(&e.a, 2, IBV_WC_SUCCESS);
	send_with_inv_fails(&e, mw->rkey, "grants nothing");
	ends_violated("key revoked twice");
	assert_int_equal(fake_stats()->invalidates, 1);
	close_ends(&e, mw, 1);
}

/* A client that overlooks what the reply did. */
static void once_by_each_end(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	send_with_inv(&e, mw->rkey);
	end_expect(&e.b, 3, IBV_WC_SUCCESS);
	wr = inv_wr(mw->rkey);
	fails(&e, &wr, IBV_WC_LOC_QP_OP_ERR, "grants nothing");
	ends_violated("key revoked twice");
	close_ends(&e, mw, 1);
}

static void a_message_to_another_qp(void **state)
{
	struct ibv_mw *mw;
	struct more m;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	open_more(&e, &m);
	mw = window(&e.b);
	do_bind(&m.d, mw, WRITE);
	send_with_inv_fails(&e, mw->rkey, "of another QP");
	assert_int_equal(fake_stats()->invalidates, 0);
	do_inv(&m.d, mw->rkey);
	close_more(&m);
	close_ends(&e, mw, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_the_middle_of_a_write),
		cmocka_unit_test(in_the_middle_of_a_read),
		cmocka_unit_test(fenced_or_not),
		cmocka_unit_test(revoking_twice),
		cmocka_unit_test(revoking_what_was_never_granted),
		cmocka_unit_test(revoking_by_a_wrong_key),
		cmocka_unit_test(revoking_by_another_qp),
		cmocka_unit_test(revokes_that_flush),
		cmocka_unit_test(a_message_revokes),
		cmocka_unit_test(told_of_by_the_wrong_flag),
		cmocka_unit_test(the_last_piece_revokes),
		cmocka_unit_test(a_message_that_revokes_a_wrong_key),
		cmocka_unit_test(a_message_that_revokes_twice),
		cmocka_unit_test(once_by_each_end),
		cmocka_unit_test(a_message_to_another_qp),
	};

	return cmocka_run_group_tests_name("unit_fakehca_revoke", tests, NULL, NULL);
}
