/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* In which order RPC mode's server serves its requests, as prop_rpc_load.c sees its posts: nobody
 * is overtaken, neither before the first round of an I/O nor between two. */
#ifndef RXFER_TESTS_RPC_LOAD_ORDER_H
#define RXFER_TESTS_RPC_LOAD_ORDER_H

#include "rpc_load_sim.h"

static inline uint32_t qp_of(const struct sim *s, const struct rxfer_conn *conn)
{
	uint32_t qp = 0;

	while (s->l.client[qp] != conn && s->l.server[qp] != conn)
		qp++;
	return qp;
}

/* A request goes out. */
static inline void note_asked(struct sim *s, struct order *o, const struct rxfer_op *op)
{
	uint32_t i = o->asked++ % SLOTS;
	struct rxfer_seg segs[RPC_SEGS_MAX];
	struct rpc_request r = {.segs = segs};
	struct rpc_plan plan;

	o->id[i] = (uint32_t)op->id;
	if (!s->model.moves)
		return;
	rpc_plan_make(&s->r.cfg, &plan);
	check_rc(s, rpc_request_parse(op->local->addr, op->local->len, &plan.limits, &r),
		 "a request");
	o->at[i] = segs[0].addr;
}

/* The server moves data: of the I/O that it has begun, to its end, and then of the next one. */
static inline void check_moved(const struct sim *s, struct order *o, const struct rxfer_op *op)
{
	uint64_t bytes = rxfer_sgl_total(op->remote, op->nremote);

	if (o->left == 0) {
		CHECK(s, o->begun != o->asked && op->remote->addr == o->at[o->begun++ % SLOTS]);
		o->left = s->r.cfg.size;
		o->place = op->id;
	}
	CHECK(s, op->id == o->place && bytes <= o->left);
	o->left -= bytes;
}

/* Which request a server's post answers; -1: none. */
static inline int64_t answers(const struct sim *s, const struct rxfer_op *op)
{
	struct rpc_reply reply;
	struct rpc_plan plan;

	if (op->op == RXFER_WRITE_IMM)
		return op->imm;
	if (op->op != RXFER_SEND)
		return -1;
	rpc_plan_make(&s->r.cfg, &plan);
	check_rc(s, rpc_reply_parse(op->local->addr, op->local->len, &plan.limits, &reply),
		 "a reply");
	return reply.id;
}

/* A post of either end. Replies come in the order of the requests, but where READs are awaited. */
static inline void check_order(struct sim *s, const struct rxfer_conn *conn,
			       const struct rxfer_op *op)
{
	uint32_t qp = qp_of(s, conn);
	bool reads = s->model.moves && s->r.cfg.op == OP_READ;
	struct order *o = &s->order[qp];
	int64_t id;

	if (conn == s->l.client[qp]) {
		note_asked(s, o, op);
		return;
	}
	if (op->nremote)
		check_moved(s, o, op);
	id = answers(s, op);
	if (id < 0)
		return;
	CHECK(s, o->answered != o->asked && (reads || id == o->id[o->answered % SLOTS]));
	o->answered++;
}

static inline void check_all_served(const struct sim *s, uint32_t qp)
{
	const struct order *o = &s->order[qp];

	CHECK(s, o->answered == o->asked && o->left == 0);
	CHECK(s, o->begun == (s->model.moves ? o->asked : 0));
}

#endif
