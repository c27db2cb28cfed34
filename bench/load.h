/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Load patterns: what an end does between start and stop, and what it counted. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <string.h>
#include "hist.h"
#include "memory.h"
#include "opt.h"
#include "rxfer.h"
#include "watch.h"

/* struct counts - of all QPs of one end, over the timed part. */
struct counts {
	uint64_t sqe, posts, cqe, recv_cqe, copied_bytes, lookups, hits;
	uint64_t sqe_read, sqe_write, sqe_send, sqe_bind, sqe_inv; /* of @sqe, by opcode */
	/* An I/O had to wait, each counted once: for SQEs (direct mode: or RECV credits); rpc: for
	 * the proof that a SEND is done, for a key to be revoked. */
	uint64_t stalls, unproven, unrevoked;
	uint64_t round_waits; /* for SQEs, between two rounds of an I/O */
	uint64_t overposts;   /* of @stalls, those that --signal inferred would not have had */
	/* With --timing phases. */
	uint64_t map_ns, unmap_ns, stall_ns, unproven_ns, unrevoked_ns, round_wait_ns;
	uint64_t passes, idle; /* of the polling loop, and those that found nothing to do */
	uint64_t sq_peak, forced_signals;
	uint64_t cpu_ns;
	uint64_t faults,
		fault_counts; /* of the device's pages; of so many regions. 0: nobody counts */
};

/** counts_take() - add up what @n connections counted. Peaks: the largest. */
void counts_take(struct counts *c, struct rxfer_conn **conns, unsigned int n);

/** counts_faults() - page faults of @dev since @before: rxfer_dev_faults() of the begin. */
void counts_faults(struct counts *c, const struct rxfer_dev *dev, struct rxfer_faults before);

/* struct target - the peer's memory for READ and WRITE. */
struct target {
	uint64_t addr;
	uint64_t len;
	uint32_t key;
};

/** run_opcode() - what one I/O is to the engine. */
static inline enum rxfer_opcode run_opcode(const struct cfg *cfg)
{
	static const enum rxfer_opcode code[] = {
		[OP_READ] = RXFER_READ,
		[OP_WRITE] = RXFER_WRITE,
		[OP_WRITE_IMM] = RXFER_WRITE_IMM,
		[OP_SEND] = RXFER_SEND,
	};

	return code[cfg->op];
}

/** is_iwarp() - where a WRITE or SEND is complete as soon as TCP has taken it, and a READ is
 * answered by writing to where its bytes go. */
static inline bool is_iwarp(const struct rxfer_dev_info *dev)
{
	return !strcmp(dev->transport, "iWARP");
}

/** op_takes_recvs() - does an I/O of this kind use up RECVs of whom it is sent to? */
static inline bool op_takes_recvs(const struct cfg *cfg)
{
	return cfg->op == OP_SEND || cfg->op == OP_WRITE_IMM;
}

/* ---- Direct mode, the receiving half of an end: RECVs kept posted, credits given back ---- */

#define CREDIT_RECVS 4 /* that who sends data keeps posted for notes: two can be under way */

/* struct roles - what an end does: the client issues; the server is issued to; with --bidir both.
 */
struct roles {
	bool issues, receives;
};

/** sink_takes_bytes() - do messages of data, with bytes, arrive at an end? */
static inline bool sink_takes_bytes(const struct cfg *cfg, struct roles roles)
{
	return cfg->op == OP_SEND && roles.receives;
}

/** sink_recvs() - RECVs that an end keeps posted on each QP. */
uint32_t sink_recvs(const struct cfg *cfg, const struct layout *layout, struct roles roles);

struct sink;

/**
 * sink_new() - post all RECVs. @recv: the area of their buffers; for messages without bytes a small
 * one.
 * @conns: cfg->qps connections; all arguments but @layout must outlive it. NULL and rxfer_error()
 * in failure.
 */
struct sink *sink_new(const struct cfg *cfg, const struct layout *layout, struct roles roles,
		      struct rxfer_conn **conns, const struct area *recv);

/**
 * sink_take() - a message arrived on @qp; its RECV is posted again. Returns how many RECVs of the
 * peer are free again: 0, that was data; or -errno.
 */
int sink_take(struct sink *s, unsigned int qp, const struct rxfer_done *done);

/** sink_return() - give credits back, if half a queue of them has come together. 0 or -errno. */
int sink_return(struct sink *s, unsigned int qp);

/** sink_pass() - one look at every connection, where nobody else polls them: how many messages were
 * taken, or -errno. */
int sink_pass(struct sink *s);

/** sink_caught_up() - have all messages arrived that the peer says it sent on each QP? */
bool sink_caught_up(const struct sink *s, const uint64_t *messages);
void sink_free(struct sink *s);

/* ---- What issues I/Os: the load of a run ---- */

/**
 * struct load_result - what an end that issues measured.
 * @ios, @bytes: completed
 * @start, @end: rxfer_now() before the first I/O, after the last one was done
 * @exposed:     rpc: what lay open to the peer
 * @open_after:  rpc: ns from the reply to the proof that a key is dead; the load's, as long as that
 * @key_reuse:   rpc: exposures between two uses of one key, the fewest; 0: none was used twice
 * @peak:        I/Os per second in the fastest stretch (peak.h)
 * @cut_short:   a stop signal ended it
 */
struct load_result {
	uint64_t ios, bytes, start, end;
	struct rxfer_exposed exposed;
	const struct hist *open_after;
	uint32_t key_reuse;
	struct counts counts;
	struct hist latency;
	double peak;
	bool cut_short;
};

struct load;

/**
 * load_begin() - a phase: @ios per QP (0: no limit), for at most @duration ns (0: no limit; a
 * warm-up has none). @out NULL: a warm-up, nothing is kept.
 */
void load_begin(struct load *l, uint64_t ios, uint64_t duration, struct load_result *out);

/** load_pass() - issue what may be, take what is done: how much was done, or -errno. */
int load_pass(struct load *l);

/**
 * load_finished() - is all complete, and are the send queues proven empty? Then @out is filled,
 * but for what load_count() adds. Passes may go on, for what is still to be received.
 */
bool load_finished(const struct load *l);

/** load_waits() - must something happen soon? With --rate there may be nothing to do until the
 * next I/O is due, and a silent I/O waits for later ones. */
bool load_waits(const struct load *l);

/** load_count() - the connections' counts, as they now are, into the phase's @out. */
void load_count(struct load *l);

/** load_stop() - no more I/Os in this phase; it is over when those in flight are done. */
void load_stop(struct load *l);

/** load_rest() - between passes: @did nothing, so sleep if that is asked for; peaks, stop signal.
 * Returns 0 or -errno. */
int load_rest(struct load *l, int did);

/** load_messages() - SENT on each QP so far that take RECVs of the peer's sink, warm-up included.
 */
uint64_t load_messages(const struct load *l, unsigned int qp);

/** load_memory() - the memory of all its I/Os. */
const struct area *load_memory(const struct load *l);

/** load_free() - after its connections. NULL is fine. */
void load_free(struct load *l);

/* ---- Direct mode, the issuing half: READ, WRITE or SEND against the peer's memory ---- */

/** direct_need() - add the memory that the load of one run will take. */
void direct_need(const struct cfg *cfg, const struct layout *layout, struct need *n);

/**
 * direct_new() - the load of one run; NULL and rxfer_error() in failure. Nothing is posted yet.
 * @conns: cfg->qps connections; all arguments but @layout must outlive it
 * @sink:  of this end; with all that is polled it gets what is its
 */
struct load *direct_new(const struct cfg *cfg, const struct layout *layout, struct rxfer_dev *dev,
			struct rxfer_conn **conns, const struct target *target, struct sink *sink,
			struct watch *watch);

#endif
