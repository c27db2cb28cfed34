/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the client's end in RPC mode share. The essay is on top of load_rpc_client.c.
 */
#ifndef BENCH_LOAD_RPC_CLIENT_H
#define BENCH_LOAD_RPC_CLIENT_H

#include "load_internal.h"
#include "load_rpc.h"
#include "shadow.h"

/*
 * struct io - what a slot has beside its struct rxfer_slot, @slot.
 * @start:  clock_ticks() before it was exposed, or when it was due
 * @number: of the I/O on its QP
 * @frags:  its request's header, then its memory
 * @request: the post of these; NULL where they are others each time
 * @asked:  what the request says
 * @epoch:  its word for the signalling rules: request and revoke are one I/O
 * @wrs:    of its request, then of its revoke
 * @piece:  of the working set
 * @due:    the next one whose keys are to be revoked some time
 */
struct io {
	struct rxfer_slot *slot;
	uint64_t start;
	uint64_t number;
	struct rxfer_frag *frags;
	struct rxfer_exposure *exposure;
	struct rxfer_prepared *request;
	struct rpc_request asked;
	uint64_t epoch;
	uint32_t wrs;
	uint32_t piece;
	struct io *due;
};

/* struct lane - one QP. @due: slots whose keys are to be revoked some time, oldest first.
 * @shadow: under --signal inferred */
struct lane {
	struct turn turn;
	struct rxfer_conn *conn;
	struct rxfer_slots slots;
	struct io *io;
	struct io *due, **due_end;
	struct shadow shadow;
};

/*
 * @keys:    requests have new keys each time
 * @revokes: which are revoked before their slot is used again
 * @waits:   and before the I/O is complete
 * @by_wr:   by work requests; @later: of a slot's credits, those for them
 * @infers:  --signal inferred
 */
struct rpc_client {
	struct load load;
	struct rpc_plan plan;
	enum rxfer_revoke revoke;
	bool keys, revokes, waits, by_wr, infers;
	uint32_t later;
	unsigned int rights;
	unsigned int flags; /* of a request's post */
	struct rxfer_dev *dev;
	struct lane *lanes;
	struct io *ios;
	struct rxfer_frag *frags;
	struct area requests, replies;
	struct hist open_after;
	uint64_t copied;
};

static inline struct rpc_client *client_of(struct load *l)
{
	return (struct rpc_client *)l; /* its first member */
}

static inline unsigned int number_of(const struct rpc_client *c, const struct lane *lane)
{
	return (unsigned int)(lane - c->lanes);
}

static inline char *reply_buffer(const struct rpc_client *c, const struct lane *lane, uint64_t recv)
{
	return c->replies.base +
	       (number_of(c, lane) * c->load.cfg->depth + recv) * c->plan.reply_room;
}

static inline int post_recv(const struct rpc_client *c, const struct lane *lane, uint64_t recv)
{
	return rxfer_post_recv(lane->conn, reply_buffer(c, lane, recv),
			       (uint32_t)c->plan.reply_room, recv);
}

/* The post of a request. */
static inline struct rxfer_op rpc_client_request(const struct rpc_client *c, struct io *io)
{
	return (struct rxfer_op){.op = RXFER_SEND,
				 .local = io->frags,
				 .nlocal = 1 + (c->plan.carries ? c->plan.frags : 0),
				 .fixed = 1,
				 .grants = c->keys ? io->exposure : NULL,
				 .epoch = &io->epoch};
}

extern const struct load_ops rpc_client_ops;
void rpc_client_free(struct load *l);

#endif
