/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two ends with memory windows on the test double. Windows are b's, who also binds and revokes; a
 * is the peer. Each WR has a number of its own: 1 a's access, 2 its message, 3 b's RECV for it, 10
 * a BIND, 20 a LOCAL_INV.
 */
#ifndef RXFER_TESTS_WINDOW_FIXTURE_H
#define RXFER_TESTS_WINDOW_FIXTURE_H

#include <errno.h>
#include <netinet/in.h>
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

static inline void open_with(struct ends *e, const struct fake_config *config, int access)
{
	struct ends_attr attr = ends_defaults();

	attr.access = access;
	ends_open(e, config, &attr);
}

/* Regions have no right of their own for the peer. */
static inline void open_ends(struct ends *e, const struct fake_config *config)
{
	open_with(e, config, LOCAL | BIND);
}

static inline struct ibv_mw *window(struct end *end)
{
	struct ibv_mw *mw = ibv_alloc_mw(end->pd, IBV_MW_TYPE_2);

	assert_non_null(mw);
	return mw;
}

/* A BIND of [AT, +LEN) of @end's buffer to the next key. */
static inline struct ibv_send_wr bind_wr(const struct end *end, struct ibv_mw *mw,
					 unsigned int access)
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

static inline int post(struct end *end, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int rc = ibv_post_send(end->qp, wr, &bad);

	assert_ptr_equal(bad, rc ? wr : NULL);
	return rc;
}

/* Post and run; it must complete so, with this opcode where it succeeds. */
static inline void done(struct end *end, struct ibv_send_wr *wr, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	assert_int_equal(post(end, wr), 0);
	fake_run();
	wc = end_expect(end, wr->wr_id, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, opcode);
	assert_int_equal(wc.wc_flags, 0);
}

/* The user's part of it: the current key is his to keep. */
static inline void do_bind(struct end *end, struct ibv_mw *mw, unsigned int access)
{
	struct ibv_send_wr wr = bind_wr(end, mw, access);

	done(end, &wr, IBV_WC_BIND_MW);
	assert_int_not_equal(mw->rkey, wr.bind_mw.rkey);
	mw->rkey = wr.bind_mw.rkey;
}

static inline struct ibv_send_wr inv_wr(uint32_t key)
{
	return (struct ibv_send_wr){
		.wr_id = 20,
		.opcode = IBV_WR_LOCAL_INV,
		.send_flags = SIGNAL,
		.invalidate_rkey = key,
	};
}

static inline void do_inv(struct end *end, uint32_t key)
{
	struct ibv_send_wr wr = inv_wr(key);

	done(end, &wr, IBV_WC_LOCAL_INV);
}

/* a accesses @len bytes at @at of b's buffer by @key, as WR 1. */
static inline void post_access(struct ends *e, enum ibv_wr_opcode op, uint64_t at, uint32_t len,
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

static inline void accesses(struct ends *e, enum ibv_wr_opcode op, uint64_t at, uint32_t len,
			    uint32_t key)
{
	post_access(e, op, at, len, key);
	fake_run();
	end_expect(&e->a, 1, IBV_WC_SUCCESS);
}

/* It is refused, for this reason, and both ends break. */
static inline void denied(struct ends *e, enum ibv_wr_opcode op, uint64_t at, uint32_t len,
			  uint32_t key, const char *words)
{
	post_access(e, op, at, len, key);
	fake_run();
	ends_refused(words);
	end_expect(&e->a, 1, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(e->a.qp->state, IBV_QPS_ERR);
	assert_int_equal(e->b.qp->state, IBV_QPS_ERR);
}

/* This WR of b's fails, for this reason, and breaks b. */
static inline void fails(struct ends *e, struct ibv_send_wr *wr, enum ibv_wc_status status,
			 const char *words)
{
	assert_int_equal(post(&e->b, wr), 0);
	fake_run();
	ends_refused(words);
	end_expect(&e->b, wr->wr_id, status);
	assert_int_equal(e->b.qp->state, IBV_QPS_ERR);
}

static inline void post_send_with_inv(struct ends *e, uint32_t key, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)e->a.buf, len, e->a.mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = 2,
		.opcode = IBV_WR_SEND_WITH_INV,
		.send_flags = SIGNAL,
		.sg_list = &sge,
		.num_sge = 1,
		.invalidate_rkey = key,
	};

	assert_int_equal(post(&e->a, &wr), 0);
}

static inline void send_with_inv(struct ends *e, uint32_t key)
{
	assert_int_equal(end_recv(&e->b, 3, 8192, 64), 0);
	post_send_with_inv(e, key, 64);
	fake_run();
}

/* The message is refused, for this reason, and both ends break. */
static inline void send_with_inv_fails(struct ends *e, uint32_t key, const char *words)
{
	send_with_inv(e, key);
	ends_refused(words);
	end_expect(&e->b, 3, IBV_WC_REM_INV_REQ_ERR);
	end_expect(&e->a, 2, IBV_WC_REM_OP_ERR);
	assert_int_equal(e->a.qp->state, IBV_QPS_ERR);
	assert_int_equal(e->b.qp->state, IBV_QPS_ERR);
}

/* Another QP of b's, with its PD and CQ, and whoever is at its other end. */
struct more {
	struct end c, d;
};

static inline void open_more(struct ends *e, struct more *m)
{
	struct rdma_conn_param param = {.initiator_depth = 4, .responder_resources = 4};
	struct ends_attr attr = ends_defaults();
	struct sockaddr_storage addr = {0};

	memcpy(&addr, rdma_get_local_addr(e->listener), sizeof(struct sockaddr_in));
	*m = (struct more){.d = {.pd = e->b.pd, .cq = e->b.cq, .mr = e->b.mr, .buf = e->b.buf}};
	end_make(&m->c, e->devices[0], &attr);
	ends_resolve(&m->c, &addr);
	assert_int_equal(end_make_qp(&m->c, &attr), 0);
	assert_int_equal(rdma_connect(m->c.id, &param), 0);
	m->d.id = ends_event(&e->b, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(end_make_qp(&m->d, &attr), 0);
	assert_int_equal(rdma_accept(m->d.id, &param), 0);
	ends_event(&m->c, RDMA_CM_EVENT_ESTABLISHED);
	ends_event(&e->b, RDMA_CM_EVENT_ESTABLISHED);
}

static inline void close_more(struct more *m)
{
	rdma_destroy_qp(m->d.id);
	rdma_destroy_id(m->d.id);
	end_drop(&m->c);
}

static inline void close_ends(struct ends *e, struct ibv_mw *mw, unsigned int violations)
{
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	ends_close(e, violations);
}

#endif
