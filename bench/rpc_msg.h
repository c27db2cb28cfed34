/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests and replies of remote procedure calls: bytes from and to structures, and which ids are
 * in flight. Pure memory, no verbs. The wire format is on top of rpc_msg.c.
 *
 * Who writes passes what is within the limits of the run; who parses may get anything at all.
 */
#ifndef BENCH_RPC_MSG_H
#define BENCH_RPC_MSG_H

#include <stdint.h>
#include "sgl.h"

#define RPC_SEGS_MAX	  256	     /* segments of one request */
#define RPC_SEG_LEN_MAX	  (1u << 31) /* bytes of one segment */
#define RPC_INLINE_MAX	  (1u << 31) /* bytes of inline data */
#define RPC_REQUEST_BYTES 32	     /* a request's header */
#define RPC_SEG_BYTES	  16	     /* each of its segments */
#define RPC_REPLY_BYTES	  24	     /* a reply's header */

/* enum rpc_op - how the server moves the data; on the wire. */
enum rpc_op {
	RPC_READ = 1, /* by RDMA READ from the client's segments */
	RPC_WRITE,    /* by RDMA WRITE into them */
	RPC_SEND,     /* not at all: they are in the request */
};

/* enum rpc_flags - on the wire, a bit each. */
enum rpc_flags {
	RPC_DATA_BACK =
		1, /* the reply brings the data: with RPC_SEND those that were sent; with
		    * RPC_WRITE it does so instead of the WRITE, and there are no segments */
	RPC_REPLY_IMM =
		2, /* with RPC_WRITE: the last WRITE's immediate data, an id, is a good reply */
	RPC_INVALIDATE = 4, /* with segments: the reply's SEND revokes the key of the first one */
};

/* enum rpc_status - what became of a request; on the wire. */
enum rpc_status {
	RPC_OK,	     /* all bytes were moved */
	RPC_REFUSED, /* the server could not take the request */
	RPC_FAILED,  /* it could not move the data */
};

/*
 * struct rpc_limits - what both ends have agreed on for a run.
 * @slots:      requests in flight at most; 1 or more; ids are 0 to @slots - 1
 * @segs:       segments of a request at most, up to RPC_SEGS_MAX
 * @bytes:      of one I/O at most; 0: no request moves any
 * @inline_max: bytes of inline data at most, either way, up to RPC_INLINE_MAX
 * @op:         of every request
 * @flags:      enum rpc_flags, just these in every request
 */
struct rpc_limits {
	uint32_t slots;
	uint32_t segs;
	uint64_t bytes;
	uint32_t inline_max;
	enum rpc_op op;
	unsigned int flags;
};

/*
 * struct rpc_request - a request.
 * @length:      bytes of the I/O: of all segments together, or of the inline data
 * @segs:        @nsegs pieces of the client's memory, by its keys; the array is the caller's
 * @inline_data: @inline_len bytes inside the message that was parsed; NULL: there are none. Not
 * looked at for writing: see rpc_request_write()
 */
struct rpc_request {
	uint32_t id;
	enum rpc_op op;
	unsigned int flags;
	uint32_t nsegs;
	uint64_t length;
	struct rxfer_seg *segs;
	uint32_t inline_len;
	const void *inline_data;
};

/* struct rpc_reply - a reply. @bytes: moved; the inline data are as in struct rpc_request. */
struct rpc_reply {
	uint32_t id;
	enum rpc_status status;
	uint64_t bytes;
	uint32_t inline_len;
	const void *inline_data;
};

/**
 * rpc_request_bytes(), rpc_reply_bytes() - how many bytes a message has; with 0 bytes of inline
 * data, where these begin.
 * @nsegs: up to RPC_SEGS_MAX; @inline_len: up to RPC_INLINE_MAX
 */
static inline uint32_t rpc_request_bytes(uint32_t nsegs, uint32_t inline_len)
{
	return RPC_REQUEST_BYTES + nsegs * RPC_SEG_BYTES + inline_len;
}

static inline uint32_t rpc_reply_bytes(uint32_t inline_len)
{
	return RPC_REPLY_BYTES + inline_len;
}

/**
 * rpc_request_write() - the header and the segments of a request. Its inline data are the caller's
 * to put behind them, or to send from where they are.
 * @buf: rpc_request_bytes(@r->nsegs, 0) bytes or more
 * Returns how many bytes were written.
 */
uint32_t rpc_request_write(void *buf, const struct rpc_request *r);

/**
 * rpc_request_set_keys(), rpc_request_set_segs() - change a request that stands in @buf, written
 * before, for it to be sent again.
 * @segs: as many as were written, of which the keys are taken, or all
 */
void rpc_request_set_keys(void *buf, const struct rxfer_seg *segs, uint32_t nsegs);
void rpc_request_set_segs(void *buf, const struct rxfer_seg *segs, uint32_t nsegs);

/**
 * rpc_request_parse() - check what has arrived, and take it apart.
 * @buf: @received bytes, of which none behind the last is looked at; any alignment. It must stay
 * as long as @out->inline_data is used; the segments are copied.
 * @out: its @segs is set by the caller: room for @limits->segs. All else is set on success only;
 * that room may be written to in any case
 * Returns 0, or -EBADMSG: no such request can be in this run. rxfer_error() names what is wrong,
 * its value, and what is allowed.
 */
int rpc_request_parse(const void *buf, uint32_t received, const struct rpc_limits *limits,
		      struct rpc_request *out);

/** rpc_reply_write() - the header of a reply; as rpc_request_write(). */
uint32_t rpc_reply_write(void *buf, const struct rpc_reply *r);

/** rpc_reply_set() - change a reply that was written before, for it to be sent again. */
void rpc_reply_set(void *buf, uint32_t id, uint64_t bytes);

/** rpc_reply_parse() - as rpc_request_parse(). @out may have any of the known states. */
int rpc_reply_parse(const void *buf, uint32_t received, const struct rpc_limits *limits,
		    struct rpc_reply *out);

/**
 * rpc_reply_match() - is @reply, as parsed, one to the request @asked, which has its id? Looks at
 * @asked's length and flags alone. Returns 0, also where the reply tells of a failure; -EBADMSG
 * where the amounts are not those.
 */
int rpc_reply_match(const struct rpc_reply *reply, const struct rpc_request *asked);

/* struct rpc_ids - which requests of one connection are in flight, @in_flight of them. */
struct rpc_ids {
	uint64_t *bits; /* owned */
	uint32_t slots;
	uint32_t in_flight;
};

/** rpc_ids_init() - none is; ids will be 0 to @slots - 1 (@slots: 1 or more). 0 or -ENOMEM. */
int rpc_ids_init(struct rpc_ids *ids, uint32_t slots);

/** rpc_ids_free() - also of one that is all zeros. */
void rpc_ids_free(struct rpc_ids *ids);

/**
 * rpc_ids_take(), rpc_ids_give() - a request is in flight from now on (it goes out, or arrives);
 * it is no more (its reply, or the immediate data that is one, arrives or goes out). -EBADMSG,
 * worded, and nothing changed, where @id is out of range, in flight already, or not in flight.
 */
int rpc_ids_take(struct rpc_ids *ids, uint32_t id);
int rpc_ids_give(struct rpc_ids *ids, uint32_t id);

#endif
