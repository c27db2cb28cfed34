/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Load patterns: what an end does between start and stop, and what it counted. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "hist.h"
#include "memory.h"
#include "opt.h"
#include "rxfer.h"
#include "watch.h"

#define CREDIT_BYTES \
	8 /* of the message that gives RECV credits back; its content is not looked at */
#define CREDIT_RECVS 4 /* that the sender of data keeps posted for them: two can be under way */

/* struct counts - of all QPs of one end, over the timed part. */
struct counts {
	uint64_t sqe, posts, cqe, recv_cqe, copied_bytes;
	uint64_t passes, idle; /* of the polling loop, and those that found nothing to do */
	uint64_t sq_peak, forced_signals;
	uint64_t cpu_ns;
};

/** counts_take() - add up what @n connections counted. Peaks: the largest. */
void counts_take(struct counts *c, struct rxfer_conn **conns, unsigned int n);

/* struct target - the peer's memory for READ and WRITE. */
struct target {
	uint64_t addr;
	uint64_t len;
	uint32_t key;
};

/**
 * struct load_result - what the client's side measured.
 * @ios, @bytes: completed
 * @start, @end: rxfer_now() before the first I/O, after the last one was done
 * @stalls:      times that an I/O with a free slot had to wait for SQEs or RECV credits
 * @peak:        I/Os per second in the fastest stretch (peak.h)
 * @cut_short:   a stop signal ended it
 */
struct load_result {
	uint64_t ios, bytes, start, end, stalls;
	struct counts counts;
	struct hist latency;
	double peak;
	bool cut_short;
};

/* ---- Direct mode, the client: it issues READ, WRITE or SEND against the server's memory ---- */

struct direct;

/**
 * direct_new() - the load of one run; NULL and rxfer_error() in failure. Nothing is posted but
 * RECVs for credits.
 * @conns: cfg->qps connections; all arguments but @layout must outlive it
 */
struct direct *direct_new(const struct cfg *cfg, const struct layout *layout, struct rxfer_dev *dev,
			  struct rxfer_conn **conns, const struct target *target,
			  struct watch *watch);

/**
 * direct_run() - @ios per QP (0: no limit), for at most @duration ns (0: no limit; a warm-up has
 * none); until all is complete and the send queues are proven empty. @out NULL: a warm-up, nothing
 * is kept. Returns 0 or -errno.
 */
int direct_run(struct direct *d, uint64_t ios, uint64_t duration, struct load_result *out);

/** direct_messages() - SENT on each QP so far, warm-up included. */
uint64_t direct_messages(const struct direct *d, unsigned int qp);
void direct_free(struct direct *d);

/* ---- Direct mode, the server: passive, but for SEND, where it keeps RECVs posted ---- */

struct sink;

/** sink_new() - @recv, @credit: the areas of RECV buffers and of credit messages. NULL and
 * rxfer_error() in failure. */
struct sink *sink_new(const struct cfg *cfg, const struct layout *layout, struct rxfer_conn **conns,
		      const struct area *recv, const struct area *credit);

/** sink_pass() - one look at every connection: how many messages were taken, or -errno. */
int sink_pass(struct sink *s);

/** sink_caught_up() - have all messages arrived that the client says it sent on each QP? */
bool sink_caught_up(const struct sink *s, const uint64_t *messages);
void sink_free(struct sink *s);

#endif
