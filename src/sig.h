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
 * @revokes:     and that revokes keys
 * @ends_post:   the last WR of its ibv_post_send() call
 * @io_epoch:    a word that belongs to the WR's I/O, zero at first; tells which I/Os the silent
 *               tail already counts. Never NULL.
 *
 * The rest is filled in by the decision, for the rollback:
 * @epoch_was:   that word as it was before
 * @forced, @silent_was, @silent_ios_was, @counted_was: of a WR that is signalled only: was it
 *               against the policy's wish, and the state's members as they were
 */
struct rxfer_sig_wr {
	bool must_signal;
	bool ends_io;
	bool revokes;
	bool ends_post;
	bool forced;
	uint32_t silent_was;
	uint32_t silent_ios_was;
	uint64_t counted_was;
	uint64_t epoch_was;
	uint64_t *io_epoch;
};

/* Limits that are never reached. */
#define RXFER_SIG_NEVER_SILENT	UINT32_MAX
#define RXFER_SIG_NEVER_COUNTED UINT64_MAX

/**
 * struct rxfer_sig_limits - when a policy wants a WR signalled: as soon as one of these is reached,
 * the WR itself included.
 * @silent:  SQEs since the last signalled one
 * @counted: WRs since the policy last wanted one, by enum rxfer_sig_place of the WR
 */
enum rxfer_sig_place { RXFER_SIG_INSIDE, RXFER_SIG_ENDS_IO, RXFER_SIG_ENDS_REVOKE };
struct rxfer_sig_limits {
	uint32_t silent;
	uint64_t counted[3];
};

/**
 * struct rxfer_sig_ops - one policy (all, io, every:K, half, inferred): one row in the table of
 * sig.c.
 * @name:      as in --signal, without the parameter
 * @summary:   one line for --help
 * @takes_arg: name is followed by ":K", K >= 1
 * @wants:     its limits, for K and the depth of the queue. Asked once: a decision compares
 *             numbers and calls nobody.
 */
struct rxfer_sig_ops {
	const char *name;
	const char *summary;
	bool takes_arg;
	struct rxfer_sig_limits (*wants)(uint32_t arg, uint32_t depth);
};

/**
 * struct rxfer_sig - the signalling state of one send queue.
 * @silent:     SQEs since the last signalled one
 * @silent_ios: distinct I/Os with a WR among them
 * @slots:      I/Os in flight at most
 * @need:       N, the credits of one I/O (its worst case)
 * @epoch:      number of the current silent tail, from 1
 * @counted:    WRs since the policy last wanted one signalled. 64 bits: under `half` with many
 *              credits that may be never.
 * @limits:     the policy's
 * @signalled:  WRs signalled, @forced: of these, those the policy did not want
 * @ops, @arg:  the policy and its K (0 where it takes none)
 * @depth:      SQEs of the queue
 */
struct rxfer_sig {
	uint32_t silent;
	uint32_t silent_ios;
	uint32_t slots;
	uint32_t need;
	uint64_t epoch;
	uint64_t counted;
	struct rxfer_sig_limits limits;
	uint64_t signalled;
	uint64_t forced;
	const struct rxfer_sig_ops *ops;
	uint32_t arg;
	uint32_t depth;
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

/* A signalled WR: remember what it undoes, then the tail begins anew behind it. */
static inline void rxfer_sig_signal(struct rxfer_sig *sig, struct rxfer_sig_wr *wr, bool wanted)
{
	wr->forced = !wanted;
	wr->silent_was = sig->silent;
	wr->silent_ios_was = sig->silent_ios;
	wr->counted_was = sig->counted;
	if (wanted)
		sig->counted = 0;
	sig->signalled++;
	sig->forced += !wanted;
	sig->silent = 0;
	sig->silent_ios = 0;
	sig->epoch++;
}

/* Rules (b) and (c), of the last WR of a post that leaves @ios I/Os in the silent tail: the one
 * place where the queue is kept alive. The essay is in sig.c. */
static inline bool rxfer_sig_keeps_alive(const struct rxfer_sig *sig, uint32_t ios, int64_t free)
{
	return 2ull * ios >= sig->slots || free < sig->need;
}

/* The same, and rule (d). @free: credits free after rxfer_sq_commit() of the chain. */
static inline bool rxfer_sig_must(const struct rxfer_sig *sig, int64_t free, bool must_signal,
				  bool ends_post)
{
	if (must_signal)
		return true;
	if (!ends_post)
		return false;
	return rxfer_sig_keeps_alive(sig, sig->silent_ios, free);
}

/*
 * rxfer_sig_next() - the decision itself. Hot: of a silent WR it touches the two counters, the
 * I/O's word and the record of it, and no more. What is known of the WR is given apart from @wr
 * so that a caller who knows it beforehand pays for no comparison.
 */
static inline bool rxfer_sig_next(struct rxfer_sig *sig, int64_t free, struct rxfer_sig_wr *wr,
				  uint64_t *io_epoch, bool must_signal, enum rxfer_sig_place place,
				  bool ends_post)
{
	bool wanted;

	wr->epoch_was = *io_epoch;
	if (wr->epoch_was != sig->epoch) {
		*io_epoch = sig->epoch;
		sig->silent_ios++;
	}
	sig->silent++;
	sig->counted++;
	wanted = sig->silent >= sig->limits.silent || sig->counted >= sig->limits.counted[place];
	if (!wanted && !rxfer_sig_must(sig, free, must_signal, ends_post))
		return false;
	rxfer_sig_signal(sig, wr, wanted);
	return true;
}

/*
 * rxfer_sig_ask(), rxfer_sig_told() - the same decision for the last WR of an I/O that is alone in
 * its post, in two halves: the first changes nothing, the second enters what was done once the
 * device has taken it. Nothing needs to be kept for a rollback then. @before: WRs of the I/O in
 * front of it, 0 or 1, all silent; rxfer_sig_inside_is_silent() - is such a one? A WR that does not
 * end its I/O is asked for so only where it must be signalled: else its I/O's word would matter.
 */
enum rxfer_sig_answer {
	RXFER_SIG_SILENT,
	RXFER_SIG_FORCED, /* signalled, against the policy's wish */
	RXFER_SIG_WANTED,
};

static inline bool rxfer_sig_inside_is_silent(const struct rxfer_sig *sig)
{
	return sig->silent + 1 < sig->limits.silent &&
	       sig->counted + 1 < sig->limits.counted[RXFER_SIG_INSIDE];
}

static inline enum rxfer_sig_answer rxfer_sig_ask(const struct rxfer_sig *sig, uint32_t before,
						  enum rxfer_sig_place place, int64_t free,
						  bool must_signal)
{
	if (sig->silent + before + 1 >= sig->limits.silent ||
	    sig->counted + before + 1 >= sig->limits.counted[place])
		return RXFER_SIG_WANTED;
	if (must_signal || rxfer_sig_keeps_alive(sig, sig->silent_ios + 1, free))
		return RXFER_SIG_FORCED;
	return RXFER_SIG_SILENT;
}

static inline void rxfer_sig_told(struct rxfer_sig *sig, uint32_t before,
				  enum rxfer_sig_answer answer)
{
	sig->counted += before + 1;
	if (answer == RXFER_SIG_SILENT) {
		sig->silent += before + 1;
		sig->silent_ios++;
		return;
	}
	if (answer == RXFER_SIG_WANTED)
		sig->counted = 0;
	else
		sig->forced++;
	sig->signalled++;
	sig->silent = 0;
	sig->silent_ios = 0;
	sig->epoch++;
}

/**
 * rxfer_sig_decide() - shall this WR be signalled? Counts it.
 * @sq: the account after rxfer_sq_commit() of the chain that the WR is part of
 *
 * Call it once for each WR of a post, in posting order and with
 * @wr->ends_post true for the last one: that WR alone carries the rules that keep the queue alive.
 */
static inline bool rxfer_sig_decide(struct rxfer_sig *sig, const struct rxfer_sq *sq,
				    struct rxfer_sig_wr *wr)
{
	enum rxfer_sig_place end = wr->revokes ? RXFER_SIG_ENDS_REVOKE : RXFER_SIG_ENDS_IO;

	return rxfer_sig_next(sig, rxfer_sq_free(sq), wr, wr->io_epoch, wr->must_signal,
			      wr->ends_io ? end : RXFER_SIG_INSIDE, wr->ends_post);
}

/**
 * rxfer_sig_rollback() - the device took only the first @taken of the @n WRs just decided on.
 * @wr, @said: the WRs as rxfer_sig_decide() left them, and the answers it gave
 *
 * Afterwards the state, the WRs' epoch words included, is as if only the first @taken had ever been
 * decided on. The last WR that was taken may be silent and did not end its post then: whoever goes
 * on with this queue must post again at once (what was refused, or the drain WR).
 */
void rxfer_sig_rollback(struct rxfer_sig *sig, const struct rxfer_sig_wr *wr, const bool *said,
			uint32_t taken, uint32_t n);

/** rxfer_sig_tail_silent() - are there SQEs that no completion will ever prove? (rule 5: drain) */
static inline bool rxfer_sig_tail_silent(const struct rxfer_sig *sig)
{
	return sig->silent != 0;
}

#endif
