/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the server's end in RPC mode share. The essay is on top of load_rpc_server.c.
 */
#ifndef BENCH_LOAD_RPC_SERVER_H
#define BENCH_LOAD_RPC_SERVER_H

#include "load_internal.h"
#include "load_rpc.h"

/*
 * struct place - one I/O.
 * @ticket: its first member, so that the one is known by the other
 * @next:   of the free ones
 * @epoch:  its word for the signalling rules
 * @number: of the I/O on its QP; @id: the request's
 * @reads:  posts of READs that are not done
 * @whole:  all its data go in one round; else @cut is how far its rounds have come
 */
struct place {
	struct rxfer_ticket ticket;
	struct place *next;
	uint64_t epoch;
	uint64_t number;
	uint64_t length;
	uint32_t id;
	uint32_t nsegs;
	uint32_t reads;
	bool whole;
	struct rxfer_cut cut;
	struct rxfer_seg *segs;	       /* the client's */
	struct rxfer_frag *frags;      /* ours */
	struct rxfer_seg *local;       /* the same, for @cut */
	struct rxfer_frag message;     /* the reply's, */
	struct rxfer_prepared *answer; /* and its post, where it is always the same; else NULL */
	struct rxfer_prepared *move;   /* the post of all data, where they go into one segment */
};

/* A request that waits for a place, in its RECV buffer, @since then. */
struct backlog {
	uint32_t recv, bytes;
	uint64_t since;
};

/* struct lane - one QP. @backlog: a ring of plan.limits.slots; @numbers: requests so far; @wrs: of
 * an I/O into one segment, 0 where that goes in rounds. */
struct lane {
	struct rxfer_conn *conn;
	struct rxfer_tickets tickets;
	struct rpc_ids ids;
	struct place *places, *free;
	uint32_t nfree;
	struct backlog *backlog;
	uint32_t first, waiting;
	uint64_t numbers;
	uint32_t sge_max, wrs;
};

/* @part, @frags: room for one round of an I/O; @bytes_max: of a WR, on any lane. @backlogged:
 * requests that waited for a place, for @backlog_time of the clock's ticks. */
struct rpc_server {
	const struct cfg *cfg;
	const struct clock *clock;
	struct rpc_plan plan;
	struct rxfer_conn **conns;
	struct lane *lanes;
	struct place *places;
	struct rxfer_seg *segs;
	struct rxfer_frag *frags;
	struct backlog *backlog;
	struct rxfer_part part;
	struct rxfer_frag *part_frags;
	struct area recvs, replies, data;
	uint64_t backlogged, backlog_time, copied;
	uint32_t bytes_max;
};

static inline unsigned int number_of(const struct rpc_server *s, const struct lane *lane)
{
	return (unsigned int)(lane - s->lanes);
}

static inline char *recv_buffer(const struct rpc_server *s, const struct lane *lane, uint64_t recv)
{
	return s->recvs.base + (number_of(s, lane) * s->cfg->depth + recv) * s->plan.request_room;
}

static inline int post_recv(const struct rpc_server *s, const struct lane *lane, uint64_t recv)
{
	return rxfer_post_recv(lane->conn, recv_buffer(s, lane, recv),
			       (uint32_t)s->plan.request_room, recv);
}

#endif
