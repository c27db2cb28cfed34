/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Signalling: which WRs ask for a completion. A policy says what it would like; the rules that keep
 * the send queue alive add to that and never take away. Pure decisions, no verbs. The essay is on
 * top of sig.c.
 */
#ifndef RXFER_SIG_H
#define RXFER_SIG_H

#include <stdbool.h>
#include <stdint.h>
#include "sq.h"

struct rxfer_sig;

/**
 * struct rxfer_sig_wr - what the decision needs to know of one WR, in posting order.
 * @must_signal: whoever posts it waits for its completion (rule d)
 * @ends_io:     the last WR of its I/O in this post
 * @ends_post:   the last WR of its ibv_post_send() call
 * @io_epoch:    a word that belongs to the WR's I/O, zero at first; tells which I/Os the silent
 *               tail already counts. Never NULL.
 * @epoch_was:   filled in by the decision: that word as it was before, for the rollback
 */
struct rxfer_sig_wr {
	bool must_signal;
	bool ends_io;
	bool ends_post;
	uint64_t *io_epoch;
	uint64_t epoch_was;
};

/**
 * struct rxfer_sig_ops - one policy (all, io, every:K, half): one row in the table of sig.c.
 * @name:      as in --signal, without the parameter
 * @summary:   one line for --help
 * @takes_arg: name is followed by ":K", K >= 1
 * @wants:     would the policy signal this WR? Looks at the state as it is after the WR was
 *             counted, and at nothing that may change meanwhile: the rollback asks again.
 */
struct rxfer_sig_ops {
	const char *name;
	const char *summary;
	bool takes_arg;
	bool (*wants)(const struct rxfer_sig *sig, const struct rxfer_sig_wr *wr);
};

/**
 * struct rxfer_sig - the signalling state of one send queue.
 * @ops, @arg:  the policy and its K (0 where it takes none)
 * @depth:      SQEs of the queue
 * @slots:      I/Os in flight at most
 * @need:       N, the credits of one I/O (its worst case)
 * @silent:     SQEs since the last signalled one
 * @silent_ios: distinct I/Os with a WR among them
 * @epoch:      number of the current silent tail, from 1
 * @counted:    WRs since every:K last fired
 * @signalled:  WRs signalled, @forced: of these, those the policy did not want
 */
struct rxfer_sig {
	const struct rxfer_sig_ops *ops;
	uint32_t arg;
	uint32_t depth;
	uint32_t slots;
	uint32_t need;
	uint32_t silent;
	uint32_t silent_ios;
	uint32_t counted;
	uint64_t epoch;
	uint64_t signalled;
	uint64_t forced;
};

/**
 * rxfer_sig_parse() - look up "half", "every:64", ... .
 * @text: as given by the user
 * @ops:  out: the policy
 * @arg:  out: K, or 0
 * Returns 0; -ENOENT where no policy has that name; -EINVAL where K is missing, not wanted, no
 * number or out of 1..2^30.
 */
int rxfer_sig_parse(const char *text, const struct rxfer_sig_ops **ops, uint32_t *arg);

/** rxfer_sig_list() - the @i-th policy, NULL behind the last. For help and sweeps. */
const struct rxfer_sig_ops *rxfer_sig_list(unsigned int i);

/**
 * rxfer_sig_init() - the state of a fresh queue.
 * Returns 0; -EINVAL where a number is 0; -EMSGSIZE where @need > @depth; -ERANGE where every:K has
 * K > @depth (no K-th WR would ever fit behind a proven one).
 */
int rxfer_sig_init(struct rxfer_sig *sig, const struct rxfer_sig_ops *ops, uint32_t arg,
		   uint32_t depth, uint32_t slots, uint32_t need);

/**
 * rxfer_sig_decide() - shall this WR be signalled? Counts it.
 * @sq: the account after rxfer_sq_commit() of the chain that the WR is part of
 *
 * Call it when the post is about to happen, once for each of its WRs, in posting order and with
 * @wr->ends_post true for the last one: that WR alone carries the rules that keep the queue alive.
 */
bool rxfer_sig_decide(struct rxfer_sig *sig, const struct rxfer_sq *sq, struct rxfer_sig_wr *wr);

/**
 * rxfer_sig_rollback() - the device took only the first @taken of the @n WRs just decided on.
 * @before:    the state before the first of them
 * @wr, @said: the WRs as rxfer_sig_decide() left them, and the answers it gave
 *
 * Afterwards the state, the WRs' epoch words included, is as if only the first @taken had ever been
 * decided on. The last WR that was taken may be silent and did not end its post then: whoever goes
 * on with this queue must post again at once (what was refused, or the drain WR).
 */
void rxfer_sig_rollback(struct rxfer_sig *sig, const struct rxfer_sig *before,
			const struct rxfer_sig_wr *wr, const bool *said, uint32_t taken,
			uint32_t n);

/** rxfer_sig_tail_silent() - are there SQEs that no completion will ever prove? (rule 5: drain) */
static inline bool rxfer_sig_tail_silent(const struct rxfer_sig *sig)
{
	return sig->silent != 0;
}

#endif
