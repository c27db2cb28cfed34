/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client and a server that do what src/slot.c and src/ticket.c are for, simulated: rpc_sim.c says
 * how; rpc_client.c and rpc_server.c are the ends. Any rule can be taken out.
 */
#ifndef RXFER_TESTS_RPC_SIM_H
#define RXFER_TESTS_RPC_SIM_H

#include "prop.h"
#include "../src/sig.h"
#include "../src/slot.h"
#include "../src/ticket.h"

#define RPC_MAX_SLOTS 12
#define RPC_MAX_NEED  8
#define RPC_RING      256 /* above any depth, a power of two */
#define RPC_EVENTS    13
#define RPC_NEVER     UINT64_MAX

enum rpc_outcome { RPC_FINE, RPC_DEAD_LOCK, RPC_WRONG };

enum rpc_broken {
	RPC_NOTHING,
	RPC_REPLY_PROVES_SEND,
	RPC_POSTED_IS_REVOKED,
	RPC_RECV_FORGOTTEN,
	RPC_OVERTAKING,
	RPC_ROUNDS_MIXED,    /* others are let in between the rounds of an I/O */
	RPC_NO_REPLY_CREDIT, /* an I/O asks for its data's credits, then for the reply's */
	RPC_NO_REPLY_IN_N,   /* the signalling rules are told an N without the reply */
};

/* @exact: each I/O posts as many WRs as it may, and the server moves @most. */
struct rpc_config {
	uint32_t slots, submit, later, client_depth, server_depth, most, n_ios;
	enum rxfer_slot_completes completes;
	const struct rxfer_sig_ops *client_signal, *server_signal;
	bool write, exact;
	uint32_t weight[RPC_EVENTS];
};

enum rpc_wr_kind { WR_REG, WR_SEND, WR_INV, WR_DATA, WR_REPLY, WR_DRAIN };

/* @who: the client's slot, or the server's place */
struct rpc_wr {
	enum rpc_wr_kind kind;
	uint32_t who;
	bool signalled;
};

/*
 * A send queue: our account and policy, and the device in 64-bit numbers. Entries [returned, head)
 * are occupied; up to @gone they have left for the peer, up to @exec they are acknowledged.
 */
struct rpc_queue {
	struct rxfer_sq sq;
	struct rxfer_sig sig;
	struct rpc_wr wr[RPC_RING];
	uint64_t head, gone, exec, returned;
	uint32_t depth;
};

/* What is on its way to a receive queue, or lies there; @recvs: RECVs posted. */
struct rpc_inbox {
	uint32_t who[RPC_MAX_SLOTS];
	uint32_t head, tail, recvs;
};

enum rpc_revoker { NOBODY, BY_PEER, BY_CALL, BY_WRS };

/* The truth about a client's slot. @send, @revoke: WR numbers. */
struct rpc_io {
	bool handed, replied, recv, live, told;
	bool revoke_due, recv_due, revoke_posted;
	enum rpc_revoker revoker;
	uint32_t n;
	uint64_t send, revoke, epoch;
};

enum rpc_place_state { FREE, QUEUED, MOVING, REPLY_DUE, PROVING };

/* The server's side of an I/O. @granted: rounds so far, @left: WRs not posted yet. */
struct rpc_place {
	struct rxfer_ticket ticket;
	enum rpc_place_state state;
	uint32_t slot, n, granted, left;
	uint64_t last, epoch, taken;
};

struct rpc_sim {
	struct prop *p;
	enum rpc_broken broken;
	enum rpc_outcome outcome;
	struct rpc_config c;
	uint64_t now;

	struct rpc_queue client, server;
	struct rpc_inbox requests, replies;
	struct rxfer_slots slots;
	struct rxfer_tickets tickets;
	struct rpc_io io[RPC_MAX_SLOTS];
	struct rpc_place place[RPC_MAX_SLOTS];
	uint32_t started, complete;

	/* naive: who waits for credits, oldest first; how often the oldest was passed, at most ever
	 */
	uint32_t fifo[RPC_MAX_SLOTS];
	uint32_t n_fifo, passed, passed_most, later_rounds;
	/* naive: time waited */
	bool waiting;
	uint64_t since, slot_ns, ticket_ns;
};

/* Random, such that all of it fits; n_ios within 1..@most_ios. */
void rpc_random_config(struct rpc_config *c, struct prop *p, uint32_t most_ios);

/* Until nothing can happen any more. @p was started. */
enum rpc_outcome rpc_run(struct rpc_sim *s, struct prop *p, const struct rpc_config *c,
			 enum rpc_broken broken);

/* ---- what the ends share ---- */

/* If not @cond, the run is RPC_WRONG. Returns @cond. */
bool rpc_expect(struct rpc_sim *s, bool cond);

/* lo..hi; hi in an exact configuration. */
uint32_t rpc_up_to(struct rpc_sim *s, uint32_t lo, uint32_t hi);

bool rpc_inbox_take(struct rpc_inbox *in, uint32_t *who);
bool rpc_queue_leave(struct rpc_sim *s, struct rpc_queue *q);
bool rpc_queue_execute(struct rpc_sim *s, struct rpc_queue *q);

/* One completion, if there is any. */
bool rpc_queue_poll(struct rpc_sim *s, struct rpc_queue *q);

/*
 * Posts a chain whose credits were just committed: @n WRs of @kind, then one of kind @last, unless
 * that is negative. Returns the number of the last one. @must: its poster waits for that.
 */
uint64_t rpc_chain(struct rpc_sim *s, struct rpc_queue *q, uint32_t first, uint32_t n,
		   enum rpc_wr_kind kind, int last, uint32_t who, uint64_t *epoch, bool must);

/* The truth: may the slot not be handed out; is its I/O complete? */
bool rpc_truly_in_use(const struct rpc_sim *s, const struct rpc_io *io);
bool rpc_truly_complete(const struct rpc_sim *s, const struct rpc_io *io);

/* What can happen. Each returns whether it did. */
bool rpc_client_start(struct rpc_sim *s);
bool rpc_client_leave(struct rpc_sim *s);
bool rpc_client_execute(struct rpc_sim *s);
bool rpc_client_poll(struct rpc_sim *s);
bool rpc_client_reply(struct rpc_sim *s);
bool rpc_client_revoke(struct rpc_sim *s);
bool rpc_client_recv(struct rpc_sim *s);
bool rpc_server_take(struct rpc_sim *s);
bool rpc_server_grant(struct rpc_sim *s);
bool rpc_server_leave(struct rpc_sim *s);
bool rpc_server_execute(struct rpc_sim *s);
bool rpc_server_poll(struct rpc_sim *s);
bool rpc_server_reply(struct rpc_sim *s);

#endif
