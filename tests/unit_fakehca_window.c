/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The double's memory windows: a grant, what the peer can do by it, and that it can no more once it
 * is taken back; and each way in which a BIND or a revoke is wrong. Windows are b's, who also binds
 * and revokes; a is the peer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "fakehca/ends.h"

#define SIGNAL IBV_SEND_SIGNALED
#define LOCAL  IBV_ACCESS_LOCAL_WRITE
#define READ   IBV_ACCESS_REMOTE_READ
#define WRITE  IBV_ACCESS_REMOTE_WRITE
#define BIND   IBV_ACCESS_MW_BIND
#define ATOMIC IBV_ACCESS_REMOTE_ATOMIC

#define AT  1024u /* of most windows: in b's buffer, */
#define LEN 4096u /* and so long */

/* ---- Both ends, and what they post ---- */

static struct ends_attr attributes(void)
{
	struct ends_attr attr = ends_defaults();

	attr.access = LOCAL | BIND; /* no right of the region's own for the peer */
	return attr;
}

static void open_ends(struct ends *e, const struct fake_config *config)
{
	struct ends_attr attr = attributes();

	ends_open(e, config, &attr);
}

static struct ibv_mw *window(struct end *end)
{
	struct ibv_mw *mw = ibv_alloc_mw(end->pd, IBV_MW_TYPE_2);

	assert_non_null(mw);
	return mw;
}

/* A BIND of [AT, +LEN) of @end's buffer to the next key. */
static struct ibv_send_wr bind_wr(const struct end *end, struct ibv_mw *mw, unsigned int access)
{
	struct ibv_send_wr wr = {
		.wr_id = 10,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = SIGNAL,
	};

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = end->mr,
		.addr = (uintptr_t)end->buf + AT,
		.length = LEN,
		.mw_access_flags = access,
	};
	return wr;
}

static int post(struct end *end, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int rc = ibv_post_send(end->qp, wr, &bad);

	assert_ptr_equal(bad, rc ? wr : NULL);
	return rc;
}

/* Post and run; it must complete so, with this opcode where it succeeds. */
static void done(struct end *end, struct ibv_send_wr *wr, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	assert_int_equal(post(end, wr), 0);
	fake_run();
	wc = end_expect(end, wr->wr_id, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, opcode);
	assert_int_equal(wc.wc_flags, 0);
}

/* The user's part of it: the current key is his to keep. */
static void do_bind(struct end *end, struct ibv_mw *mw, unsigned int access)
{
	struct ibv_send_wr wr = bind_wr(end, mw, access);

	done(end, &wr, IBV_WC_BIND_MW);
	assert_int_not_equal(mw->rkey, wr.bind_mw.rkey);
	mw->rkey = wr.bind_mw.rkey;
}

static struct ibv_send_wr inv_wr(uint32_t key)
{
	return (struct ibv_send_wr){
		.wr_id = 20,
		.opcode = IBV_WR_LOCAL_INV,
		.send_flags = SIGNAL,
		.invalidate_rkey = key,
	};
}

static void do_inv(struct end *end, uint32_t key)
{
	struct ibv_send_wr wr = inv_wr(key);

	done(end, &wr, IBV_WC_LOCAL_INV);
}

/* a accesses @len bytes at @at of b's buffer by @key, as WR 1. */
static void post_access(struct ends *e, enum ibv_wr_opcode op, uint64_t at, uint32_t len,
			uint32_t key)
{
	struct ibv_sge sge = {(uintptr_t)e->a.buf, len, e->a.mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.opcode = op,
		.send_flags = SIGNAL,
		.sg_list = &sge,
		.num_sge = 1,
	};

	wr.wr.rdma.remote_addr = (uintptr_t)e->b.buf + at;
	wr.wr.rdma.rkey = key;
	assert_int_equal(post(&e->a, &wr), 0);
}

static void accesses(struct ends *e, enum ibv_wr_opcode op, uint64_t at, uint32_t len, uint32_t key)
{
	post_access(e, op, at, len, key);
	fake_run();
	end_expect(&e->a, 1, IBV_WC_SUCCESS);
}

/* It is refused, for this reason, and both ends break. */
static void denied(struct ends *e, enum ibv_wr_opcode op, uint64_t at, uint32_t len, uint32_t key,
		   const char *words)
{
	post_access(e, op, at, len, key);
	fake_run();
	ends_refused(words);
	end_expect(&e->a, 1, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(e->a.qp->state, IBV_QPS_ERR);
	assert_int_equal(e->b.qp->state, IBV_QPS_ERR);
}

/* This WR of b's fails, for this reason, and breaks b. */
static void fails(struct ends *e, struct ibv_send_wr *wr, enum ibv_wc_status status,
		  const char *words)
{
	assert_int_equal(post(&e->b, wr), 0);
	fake_run();
	ends_refused(words);
	end_expect(&e->b, wr->wr_id, status);
	assert_int_equal(e->b.qp->state, IBV_QPS_ERR);
}

static void send_with_inv(struct ends *e, uint32_t key)
{
	struct ibv_sge sge = {(uintptr_t)e->a.buf, 64, e->a.mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = 2,
		.opcode = IBV_WR_SEND_WITH_INV,
		.send_flags = SIGNAL,
		.sg_list = &sge,
		.num_sge = 1,
		.invalidate_rkey = key,
	};

	assert_int_equal(end_recv(&e->b, 3, 8192, 64), 0);
	assert_int_equal(post(&e->a, &wr), 0);
	fake_run();
}

static void close_ends(struct ends *e, struct ibv_mw *mw, unsigned int violations)
{
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	ends_close(e, violations);
}

/* ---- Grants ---- */

static void a_grant_and_its_end(void **state)
{
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	assert_int_equal(mw->type, IBV_MW_TYPE_2);
	assert_ptr_equal(mw->pd, e.b.pd);
	do_bind(&e.b, mw, READ | WRITE);
	memset(e.a.buf, 7, LEN);
	accesses(&e, IBV_WR_RDMA_WRITE, AT, LEN, mw->rkey);
	assert_int_equal(e.b.buf[AT - 1], 0);
	assert_int_equal(e.b.buf[AT], 7);
	assert_int_equal(e.b.buf[AT + LEN - 1], 7);
	assert_int_equal(e.b.buf[AT + LEN], 0);
	e.b.buf[AT] = 8;
	accesses(&e, IBV_WR_RDMA_READ, AT, LEN, mw->rkey);
	assert_int_equal(e.a.buf[0], 8);
	do_inv(&e.b, mw->rkey);
	memset(e.a.buf, 9, LEN);
	denied(&e, IBV_WR_RDMA_WRITE, AT, LEN, mw->rkey, "opens no window");
	assert_int_equal(e.b.buf[AT], 8);
	assert_int_equal(fake_stats()->binds, 1);
	assert_int_equal(fake_stats()->invalidates, 1);
	assert_int_equal(fake_stats()->bytes_written, LEN);
	assert_int_equal(fake_stats()->bytes_read, LEN);
	assert_int_equal(fake_stats()->sqes, 5);
	close_ends(&e, mw, 0);
	assert_int_equal(fake_stats()->alloc_mw, 1);
	assert_int_equal(fake_stats()->dealloc_mw, 1);
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
	denied(&e, IBV_WR_RDMA_WRITE, AT, 1, mw->rkey, "opens no window");
	close_ends(&e, mw, 0);
}

/* ---- BINDs that fail ---- */

/* Who forgets to keep mw->rkey binds once and no more. */
static void the_current_key_is_the_users_to_keep(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	wr = bind_wr(&e.b, mw, WRITE);
	done(&e.b, &wr, IBV_WC_BIND_MW);
	do_inv(&e.b, wr.bind_mw.rkey);
	wr = bind_wr(&e.b, mw, WRITE);
	wr.bind_mw.rkey = ibv_inc_rkey(wr.bind_mw.rkey);
	fails(&e, &wr, IBV_WC_MW_BIND_ERR, "the window's key is");
	assert_int_equal(fake_stats()->binds, 1);
	close_ends(&e, mw, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_grant_and_its_end),
		cmocka_unit_test(a_message_revokes),
		cmocka_unit_test(the_current_key_is_the_users_to_keep),
	};

	return cmocka_run_group_tests_name("unit_fakehca_window", tests, NULL, NULL);
}
