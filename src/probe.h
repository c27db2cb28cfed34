/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Questions to a device that no I/O would ask: what it grants, how much it really takes, and what
 * posting costs. They go around the send queue's account, which is there to keep from happening
 * what is looked for here; so they need connections that carry nothing else.
 */
#ifndef RXFER_PROBE_H
#define RXFER_PROBE_H

#include "rxfer.h"

/* struct rxfer_granted - what creating a queue pair granted. */
struct rxfer_granted {
	uint32_t send_wr;
	uint32_t inline_bytes;
};

/**
 * rxfer_probe_qp() - create a queue pair, and destroy it.
 * @send_wr, @inline_bytes: asked for
 * Returns 0; or -errno, and rxfer_error() words the refusal.
 */
int rxfer_probe_qp(struct rxfer_dev *dev, uint32_t send_wr, uint32_t inline_bytes,
		   struct rxfer_granted *out);

/*
 * struct rxfer_silent - how many unsignalled WRs a send queue took, with nothing polled.
 * @burst: before it was full for the first time, or as many as were to be posted
 * @total: with waiting whenever it was full; more than the queue holds: entries come free without
 * a completion
 */
struct rxfer_silent {
	uint32_t burst;
	uint32_t total;
};

/**
 * rxfer_probe_silent() - post unsignalled WRITEs of 0 bytes until the queue stays full, @limit at
 * most. The connection is of no further use, and rxfer_conn_close() is all that may follow.
 * @chain:  all by one call, which tells what fits at once; else one by one
 * @remote: any segment the peer lets us write
 * Returns 0; -EINTR, -ETIMEDOUT as @wait says; another -errno where posting failed.
 */
int rxfer_probe_silent(struct rxfer_conn *conn, const struct rxfer_seg *remote, uint32_t limit,
		       bool chain, const struct rxfer_wait *wait, struct rxfer_silent *out);

#define RXFER_ROUND_MAX 64

/*
 * struct rxfer_round - small WRITEs, posted and completed.
 * @wrs:    1..RXFER_ROUND_MAX, and no more than the send queue has entries
 * @single: one post for each WR; else one for all
 * @all:    each is signalled; else only the last
 * @yield:  give the CPU away after a poll that found nothing
 */
struct rxfer_round {
	uint32_t wrs;
	bool single;
	bool all;
	bool yield;
};

/**
 * rxfer_probe_round() - run one round on a connection with nothing in flight.
 * @local: RXFER_FIXED memory of at least @remote->len bytes: what each WRITE carries
 * @ns:    from before the first post to after the last completion was polled
 * Returns 0; -EINTR, -ETIMEDOUT as @wait says; another -errno where the connection broke.
 */
int rxfer_probe_round(struct rxfer_conn *conn, const struct rxfer_mem *local,
		      const struct rxfer_seg *remote, const struct rxfer_round *round,
		      const struct rxfer_wait *wait, uint64_t *ns);

#endif
