/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rxfer-bench fence: what both ends share. The client asks the server to use keys that it holds,
 * and to reply when it is told to; the essay is on top of fence.c.
 */
#ifndef BENCH_FENCE_MSG_H
#define BENCH_FENCE_MSG_H

#include "session.h"

#define FENCE_CONNS    2  /* of one I/O: its own, and another one of the same two ends */
#define FENCE_REQUESTS 2  /* on the first of them */
#define FENCE_MESSAGE  64 /* bytes of a message on a data connection, which says nothing */

/* enum fence_outcome - what became of an attempt. */
enum fence_outcome {
	FENCE_OPEN,   /* it was let in, and did what it was to do */
	FENCE_CLOSED, /* the device refused it as an access that is not allowed */
	FENCE_FAILED, /* anything else, which says nothing about the key */
	FENCE_ENDED,  /* over iWARP, where no completion tells more: the client's device ended the
		       * connection */
};

/** fence_outcome_name() - "open"; NULL behind the last. */
const char *fence_outcome_name(unsigned int outcome);

/** fence_is_iwarp() - who refuses an access there tells the other device, and ends the connection;
 * no completion, at either end, has that status. */
bool fence_is_iwarp(const struct rxfer_dev *dev);

/* struct fence_hold - data connections for one I/O. On the first so many requests will come, on the
 * other a message: over iWARP nothing may go the other way before that. */
struct fence_hold {
	unsigned int conns;
	unsigned int requests;
};

/* struct fence_reply - reply to the first request now. @revoke: and revoke @key by that. */
struct fence_reply {
	bool revoke;
	uint32_t key;
};

/**
 * struct fence_try - an attempt, once all requests and messages have come.
 * @write:       by RDMA WRITE, of the bytes at @position of the pattern @seed; else by RDMA READ
 * @conn:        over the connection of this number
 * @addr, @len, @key: the client's memory
 */
struct fence_try {
	bool write;
	unsigned int conn;
	uint64_t addr, len;
	uint32_t key;
	uint64_t position, seed;
};

/* struct fence_tried - what came of it. @sum: fence_sum() of what a READ brought; @words: of a
 * failure. */
struct fence_tried {
	enum fence_outcome outcome;
	uint64_t sum;
	char words[400];
};

/* Messages from and to them; the latter check all but what the run has agreed on. 0 or -EBADMSG. */
json_t *fence_hold_to_json(const struct fence_hold *h);
int fence_hold_from_json(const json_t *body, struct fence_hold *h);
json_t *fence_reply_to_json(const struct fence_reply *r);
int fence_reply_from_json(const json_t *body, struct fence_reply *r);
json_t *fence_try_to_json(const struct fence_try *t);
int fence_try_from_json(const json_t *body, struct fence_try *t);
json_t *fence_tried_to_json(const struct fence_tried *t);
int fence_tried_from_json(const json_t *body, struct fence_tried *t);

/** fence_sum() - of bytes, so that who has them can tell that the other end got the same; a
 * positive number in 63 bits. */
uint64_t fence_sum(const void *bytes, uint64_t len);

/* struct fence_end - an end of a data connection, and what was done on it so far. @message: the
 * latest that was received. */
struct fence_end {
	struct rxfer_conn *conn;
	unsigned int done[RXFER_OPCODES];
	struct rxfer_done message;
};

/**
 * fence_await() - until @n I/Os of this kind are done. 0; -errno where the connection broke; as
 * @wait says, and then @what is named.
 */
int fence_await(struct fence_end *e, enum rxfer_opcode op, unsigned int n, const char *what,
		const struct rxfer_wait *wait);

/** fence_send() - a message of FENCE_MESSAGE bytes, done when this returns. @flags, @imm: as in
 * struct rxfer_op. 0 or -errno as above. */
int fence_send(struct fence_end *e, void *message, unsigned int flags, uint32_t imm,
	       const struct rxfer_wait *wait);

/** fence_close() - and forget what was done. */
void fence_close(struct fence_end *e);

/**
 * fence_serve() - the server's side, from FENCE to STOP.
 * @body: of FENCE; @number: for the log
 * Returns 0, or -errno and the client was told why.
 */
int fence_serve(struct control *c, const struct host *host, const json_t *body,
		unsigned int number);

#endif
