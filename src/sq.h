/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Send-queue credits: who may post how much, and when an entry is free again. Pure arithmetic, no
 * verbs, so that every rule can be tested by the million. The essay is on top of sq.c.
 */
#ifndef RXFER_SQ_H
#define RXFER_SQ_H

#include <errno.h>
#include <stdint.h>

/* Depths above this are refused: sequence numbers are told apart by their distance modulo 2^32. */
#define RXFER_SQ_MAX_DEPTH (1u << 30)

/**
 * struct rxfer_sq - the account of one send queue.
 * @depth:    SQEs asked for at creation. Every rule counts against it, even where the device
 *            granted more, so that one program behaves alike on all devices.
 * @reserved: credits promised to somebody, not yet posted.
 * @head:     sequence number of the next WR. Wraps at 2^32.
 * @tail:     sequence number of the oldest WR that no completion has proven done. head - tail SQEs
 *            are posted.
 * @peak:     the most SQEs that were ever posted at once.
 * @peak_was: @peak before the latest commit, should the device refuse some of it.
 */
struct rxfer_sq {
	uint32_t depth;
	uint32_t head;
	uint32_t tail;
	uint32_t reserved;
	uint32_t peak;
	uint32_t peak_was;
};

/**
 * struct rxfer_sq_waits - how often somebody waited for the queue, or for what hangs on it.
 * @ns: how long, by the clock that the callers gave (in ns if it was)
 */
struct rxfer_sq_waits {
	uint64_t count;
	uint64_t ns;
};

/* SQEs in the queue, proven by no completion yet. */
static inline uint32_t rxfer_sq_posted(const struct rxfer_sq *sq)
{
	return sq->head - sq->tail;
}

/* SQEs neither posted nor promised. */
static inline uint32_t rxfer_sq_free(const struct rxfer_sq *sq)
{
	return sq->depth - rxfer_sq_posted(sq) - sq->reserved;
}

/**
 * rxfer_sq_init() - an empty queue of @depth entries.
 * Returns 0, or -EINVAL where depth is 0 or above RXFER_SQ_MAX_DEPTH.
 */
int rxfer_sq_init(struct rxfer_sq *sq, uint32_t depth);

/**
 * rxfer_sq_check() - the invariant: 0 <= posted + reserved <= depth.
 * Returns 0, or -EOVERFLOW where it does not hold.
 */
static inline int rxfer_sq_check(const struct rxfer_sq *sq)
{
	/* A head behind its tail shows as a huge distance; in 64 bits the sum cannot wrap. */
	return (uint64_t)rxfer_sq_posted(sq) + sq->reserved > sq->depth ? -EOVERFLOW : 0;
}

/**
 * rxfer_sq_reserve() - set @n credits aside for one I/O.
 * Returns 0; -EAGAIN where they are not free now (nothing is set aside); -EMSGSIZE where @n is
 * above the depth, so that waiting would never help.
 */
static inline int rxfer_sq_reserve(struct rxfer_sq *sq, uint32_t n)
{
	if (n > rxfer_sq_free(sq))
		return n > sq->depth ? -EMSGSIZE : -EAGAIN;

	sq->reserved += n;
	return 0;
}

/**
 * rxfer_sq_commit() - spend a reservation, immediately before the post.
 * @n:         credits of this reservation
 * @actual:    WRs that are about to be posted out of them
 * @keep:      credits that stay reserved for this I/O's later WRs
 * @first_seq: out: the sequence number of the first of the @actual WRs
 *
 * The rest, n - actual - keep, is free at once. This is the check before every post (release builds
 * too): -EOVERFLOW, and nothing changes, where actual + keep > n or @n credits are not reserved or
 * the account is out of bounds. That is a bug of the caller.
 */
static inline int rxfer_sq_commit(struct rxfer_sq *sq, uint32_t n, uint32_t actual, uint32_t keep,
				  uint32_t *first_seq)
{
	uint32_t posted;

	if (n > sq->reserved || (uint64_t)actual + keep > n || rxfer_sq_check(sq))
		return -EOVERFLOW;

	*first_seq = sq->head;
	sq->head += actual;
	sq->reserved -= n - keep;
	posted = rxfer_sq_posted(sq);
	sq->peak_was = sq->peak;
	if (posted > sq->peak)
		sq->peak = posted;
	return 0;
}

/**
 * rxfer_sq_room() - what rxfer_sq_reserve() of @n would leave free; negative where it would refuse.
 * rxfer_sq_posted_one() - one WR was posted out of room that was found so. For who posts a single
 * WR and need not undo it: what the device refused was never entered.
 */
static inline int64_t rxfer_sq_room(const struct rxfer_sq *sq, uint32_t n)
{
	return (int64_t)sq->depth - rxfer_sq_posted(sq) - sq->reserved - n;
}

static inline void rxfer_sq_posted_one(struct rxfer_sq *sq)
{
	sq->head++;
	if (rxfer_sq_posted(sq) > sq->peak)
		sq->peak = rxfer_sq_posted(sq);
}

/**
 * rxfer_sq_release() - give back @n reserved credits unused.
 * Returns 0, or -EOVERFLOW (nothing changes) where fewer are reserved.
 */
static inline int rxfer_sq_release(struct rxfer_sq *sq, uint32_t n)
{
	if (n > sq->reserved)
		return -EOVERFLOW;

	sq->reserved -= n;
	return 0;
}

/**
 * rxfer_sq_unpost() - the device refused the last @n WRs of the latest commit (bad_wr).
 * They were never in the queue: their sequence numbers will be used again, and their credits are
 * free. To be called right after the post. Where one post was covered by several commits, @n may
 * reach back over all of them; only @peak then still counts the commits before the latest.
 * Returns 0, or -EOVERFLOW (nothing changes) where fewer are posted.
 */
int rxfer_sq_unpost(struct rxfer_sq *sq, uint32_t n);

/**
 * rxfer_sq_complete() - a completion for the WR with sequence number @seq was polled.
 * The send queue is strongly ordered, so it returns that SQE and all silent ones before it.
 * Returns how many SQEs came back, at least 1; -ERANGE (nothing changes) where @seq is not posted.
 */
static inline int64_t rxfer_sq_complete(struct rxfer_sq *sq, uint32_t seq)
{
	uint32_t before = seq - sq->tail;

	if (before >= rxfer_sq_posted(sq))
		return -ERANGE;

	sq->tail = seq + 1;
	return (int64_t)before + 1;
}

#endif
