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
#define RPC_MAX_DONE  32  /* that are handed up at once */
#define RPC_EVENTS    12
#define RPC_NEVER     UINT64_MAX

enum rpc_outcome { RPC_FINE, RPC_DEAD_LOCK, RPC_WRONG };

enum rpc_broken {
	RPC_NOTHING,
	RPC_REPLY_PROVES_SEND,
	RPC_POSTED_IS_REVOKED,
	RPC_RECV_FORGOTTEN,
	RPC_PLACE_OF_SLOT, /* a request goes where its slot's last one went, proven or not */
	RPC_NO_BACKLOG, /* a request for which no place is free is left in the completion queue */
	RPC_OVERTAKING,
	RPC_ROUNDS_MIXED,    /* others are let in between the rounds of an I/O */
	RPC_NO_REPLY_CREDIT, /* an I/O asks for its data's credits, then for the reply's */
	RPC_NO_REPLY_IN_N,   /* the signalling rules are told an N without the reply */
};

/* @exact: each I/O posts as many WRs as it may or was granted, and the server moves @most. */
struct rpc_config {
	uint32_t slots, places, submit, later, client_depth, server_depth, most, n_ios;
	enum rxfer_slot_completes completes;
	const struct rxfer_sig_ops *client_signal, *server_signal;
	bool write, exact;
	uint32_t weight[RPC_EVENTS];
};

enum rpc_wr_kind { WR_REG, WR_SEND, WR_INV, WR_DATA, WR_REPLY, WR_DRAIN, WR_RECV };

/* @who: the client's slot, or the server's place; of a message (WR_RECV) the client's slot */
struct rpc_wr {
	enum rpc_wr_kind kind;
	uint32_t who;
	bool signalled;
};

/* An I/O of the engine's ring, handed up when @last is proven. */
struct rpc_done {
	enum rpc_wr_kind kind;
	uint32_t who;
	uint64_t last;
};

/* A completion: of the WR @seq, or of a RECV that took the message of @who. */
struct rpc_cqe {
	bool recv;
	uint32_t who;
	uint64_t seq;
};

/*
 * One end's queues: our account and policy, and the device in 64-bit numbers. Entries [returned,
 * head) are occupied; up to @gone they have left for the peer, up to @exec they are acknowledged.
 * @post: I/Os posted and not handed up, [n_done, n_post), as in src/poll.c; up to @handed all WRs
 * were handed up. @cqe: one completion queue for both, [n_polled, n_cqe). @recvs: RECVs posted.
 * @deaf: messages are left lying.
 */
struct rpc_queue {
	struct rxfer_sq sq;
	struct rxfer_sig sig;
	struct rpc_wr wr[RPC_RING];
	uint64_t head, gone, exec, returned, handed;
	uint32_t depth;
	struct rpc_done post[RPC_RING];
	uint32_t n_post, n_done;
	struct rpc_cqe cqe[RPC_RING];
	uint32_t n_cqe, n_polled, recvs;
	bool deaf;
};

enum rpc_revoker { NOBODY, BY_PEER, BY_CALL, BY_WRS };

/* The truth about a client's slot. @send, @revoke: WR numbers. */
struct rpc_io {
	bool handed, replied, recv, live, told;
	bool revoke_due, recv_due;
	enum rpc_revoker revoker;
	uint32_t n;
	uint64_t send, revoke, epoch;
};

enum rpc_place_state { FREE, QUEUED, MOVING, REPLY_DUE, PROVING };

/*
 * The server's side of an I/O. @granted: rounds so far, @moving: of these, posted and not handed up
 * yet, @left: WRs not posted yet. @reply: the number of the latest reply out of its buffer.
 */
struct rpc_place {
	struct rxfer_ticket ticket;
	enum rpc_place_state state;
	uint32_t slot, n, granted, moving, left;
	uint64_t reply, taken, epoch;
};

struct rpc_sim {
	struct prop *p;
	enum rpc_broken broken;
	enum rpc_outcome outcome;
	struct rpc_config c;
	uint64_t now;

	struct rpc_queue client, server;
	struct rxfer_slots slots;
	struct rxfer_tickets tickets;
	struct rpc_io io[RPC_MAX_SLOTS];
	struct rpc_place place[RPC_MAX_SLOTS];
	uint32_t started, complete;
	/* requests that came, oldest first, a ring */
	uint32_t backlog[RPC_MAX_SLOTS];
	uint32_t n_came, n_taken;

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

bool rpc_queue_leave(struct rpc_sim *s, struct rpc_queue *q);
bool rpc_queue_execute(struct rpc_sim *s, struct rpc_queue *q);

/* Hands up I/Os that are done, or one message; @n how many. Returns whether anything was polled. */
bool rpc_queue_poll(struct rpc_sim *s, struct rpc_queue *q, struct rpc_done *done, uint32_t *n);

/*
 * What is posted: @n WRs of @kind, then one of kind @last. @must: its poster waits for that. @more:
 * it does not end its post, another follows at once. @epoch: what the I/Os of one slot or place
 * share, so that the signalling rules count them as one.
 */
struct rpc_op {
	enum rpc_wr_kind kind, last;
	uint32_t n, who;
	bool must, more;
	uint64_t *epoch;
};

/*
 * Posts an I/O as the engine does: spends what is @held, of which @keep stays. Returns the number
 * of its last WR.
 */
uint64_t rpc_post_held(struct rpc_sim *s, struct rpc_queue *q, const struct rpc_op *op,
		       uint32_t *held, uint32_t keep);

/* The truth: may the slot not be handed out; is its I/O complete? */
bool rpc_truly_in_use(const struct rpc_sim *s, const struct rpc_io *io);
bool rpc_truly_complete(const struct rpc_sim *s, const struct rpc_io *io);

/* What can happen. Each returns whether it did. */
bool rpc_client_start(struct rpc_sim *s);
bool rpc_client_leave(struct rpc_sim *s);
bool rpc_client_execute(struct rpc_sim *s);
bool rpc_client_poll(struct rpc_sim *s);
bool rpc_client_revoke(struct rpc_sim *s);
bool rpc_client_recv(struct rpc_sim *s);
bool rpc_server_take(struct rpc_sim *s);
bool rpc_server_grant(struct rpc_sim *s);
bool rpc_server_leave(struct rpc_sim *s);
bool rpc_server_execute(struct rpc_sim *s);
bool rpc_server_poll(struct rpc_sim *s);
bool rpc_server_reply(struct rpc_sim *s);

#endif
