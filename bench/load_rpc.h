/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RPC mode: the client's requests say where its memory lies, the server moves the data and replies.
 * What both ends work out of the options, alike.
 */
#ifndef BENCH_LOAD_RPC_H
#define BENCH_LOAD_RPC_H

#include "load.h"
#include "rpc_msg.h"

/**
 * struct rpc_plan - how the I/Os of a run travel.
 * @limits:  what a request may say
 * @moves:   the server moves data by READ or WRITE; else they are in a message, or there are none
 * @carries: they are in the request; @brings: they are in the reply
 * @imm:     the reply is the immediate data of the last WRITE
 * @invalidates: the reply revokes the key of the request's first segment
 * @frags:   of an I/O, 1 or more; @runs: pieces of memory that the client opens for them
 * @wrs:     that move its data, at most, where it is no more bytes than a WR of the server's takes
 * @request, @reply: bytes of the largest one
 * @request_room, @reply_room: of a buffer for it
 * @places:  I/Os that the server can have at once, those whose reply is not proven included
 */
struct rpc_plan {
	struct rpc_limits limits;
	bool moves, carries, brings, imm, invalidates;
	uint32_t frags, runs, wrs;
	uint32_t request, reply;
	size_t request_room, reply_room;
	uint32_t places;
};

void rpc_plan_make(const struct cfg *cfg, struct rpc_plan *out);

/** rpc_possible() - does the device have messages that large? 0; or -EMSGSIZE with the numbers. */
int rpc_possible(const struct cfg *cfg, const struct rxfer_dev_info *dev);

/** rpc_rights() - what the server may do with the client's memory: RXFER_EXPOSE_*, or none. */
unsigned int rpc_rights(const struct rpc_plan *plan);

/** rpc_reads() - does the server READ the client's memory into its own? */
bool rpc_reads(const struct cfg *cfg);

/** rpc_peer_strategy() - how the server registers its memory: as @cfg says; where that leaves it
 * open, whole, but for READs over iWARP by what does not let the client write to all of it. */
const char *rpc_peer_strategy(const struct cfg *cfg, const struct rxfer_dev_info *dev);

/** rpc_revoke() - how the run takes keys back; NONE where it gives none. 0; -EOPNOTSUPP with the
 * reason where the strategy cannot. */
int rpc_revoke(const struct cfg *cfg, enum rxfer_revoke *out);

/** rpc_conn_attr() - of a QP of the client's, or the server's; what is the same for all modes is
 * left alone. 0 or -errno. */
int rpc_conn_attr(const struct cfg *cfg, bool server, struct rxfer_conn_attr *attr);

/** rpc_server_need() - add the memory that the server's end will take, connections included. */
void rpc_server_need(const struct cfg *cfg, const struct layout *layout, struct need *n);

/* struct rpc_bytes - whose bytes: those of I/O @number on QP @qp, of @size bytes each; @where they
 * are, for a message. */
struct rpc_bytes {
	unsigned int qp;
	uint64_t number, size;
	const char *where;
};

/**
 * rpc_bytes_fill() - give the @n fragments the bytes that the I/O has; rpc_bytes_poison() - others;
 * rpc_bytes_check() - are the first @length of them what they must be? 0 or -EILSEQ.
 */
void rpc_bytes_fill(const struct rxfer_frag *frags, uint32_t n, struct rpc_bytes bytes);
void rpc_bytes_poison(const struct rxfer_frag *frags, uint32_t n);
int rpc_bytes_check(const struct rxfer_frag *frags, uint32_t n, uint64_t length,
		    struct rpc_bytes bytes);

/**
 * rpc_client_new() - the load of one run: 0 or -errno. All RECVs are posted, nothing else.
 * @conns: cfg->qps connections; all arguments but @layout must outlive it
 * @out:   also what was made before a failure: RECVs may be posted, so it is freed after @conns
 */
int rpc_client_new(const struct cfg *cfg, const struct layout *layout, struct rxfer_dev *dev,
		   struct rxfer_conn **conns, struct watch *watch, struct load **out);

/* ---- The server's end ---- */

struct rpc_server;

/** rpc_server_new() - likewise. */
int rpc_server_new(const struct cfg *cfg, const struct layout *layout, struct rxfer_dev *dev,
		   struct rxfer_conn **conns, const struct clock *clock, struct rpc_server **out);

/** rpc_server_pass() - one look at every connection: how much was done, or -errno. */
int rpc_server_pass(struct rpc_server *s);

/** rpc_server_quiet() - is all answered, and proven? Does what that needs, where no request is in
 * flight. 0 or -errno. */
int rpc_server_quiet(struct rpc_server *s, bool *yes);

/** rpc_server_restart() - counts begin anew, with those of the connections. */
void rpc_server_restart(struct rpc_server *s);

/** rpc_server_count() - add what it counted itself. */
void rpc_server_count(const struct rpc_server *s, struct counts *c);

/** rpc_server_memory() - where the data come from or go to; empty where there is none. */
const struct area *rpc_server_memory(const struct rpc_server *s);

/** rpc_server_free() - after its connections. NULL is fine. */
void rpc_server_free(struct rpc_server *s);

#endif
