/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The slots of a client that asks a server to move its data: when may the next request use what an
 * earlier one used? Pure decisions, no verbs, no clock. The essay is on top of slot.c.
 */
#ifndef RXFER_SLOT_H
#define RXFER_SLOT_H

#include <stdbool.h>
#include <stdint.h>
#include "sq.h"

/* Why there is no slot now. RXFER_SLOT_CAUSES is their number. */
enum rxfer_slot_cause {
	RXFER_SLOT_EXECUTING, /* each is with the server: no reply yet */
	RXFER_SLOT_UNPROVEN,  /* a reply came, but no completion proves the SEND */
	RXFER_SLOT_KEY,	      /* a reply came, but a key is not proven revoked */
	RXFER_SLOT_NO_RECV,   /* a reply came, but its RECV is not posted again */
	RXFER_SLOT_NO_SQES,   /* a slot is there, but not N credits */
	RXFER_SLOT_CAUSES,
};

enum rxfer_slot_pool {
	RXFER_SLOT_AVAILABLE,
	RXFER_SLOT_IN_USE,
	RXFER_SLOT_RECYCLING,
	RXFER_SLOT_POOLS,
};

/* When is an I/O complete, its memory its owner's again? */
enum rxfer_slot_completes {
	RXFER_SLOT_AT_REPLY,  /* revoke mode async: the slot is recycled later */
	RXFER_SLOT_AT_REVOKE, /* mode sync: reply and proven revoke; the slot is recycled later */
	RXFER_SLOT_AT_PROOF,  /* mode async, and recycling is not deferred: when the SEND is proven,
				 too */
	RXFER_SLOT_AT_ALL,    /* the same in mode sync */
};

/* What may be missing from a slot, bits of struct rxfer_slot.missing. */
#define RXFER_SLOT_MISSES_SEND	 (1u << 0) /* the request was not posted */
#define RXFER_SLOT_MISSES_REPLY	 (1u << 1)
#define RXFER_SLOT_MISSES_REVOKE (1u << 2) /* a key may be live */
#define RXFER_SLOT_MISSES_PROOF	 (1u << 3) /* no completion proves the SEND */
#define RXFER_SLOT_MISSES_RECV	 (1u << 4) /* the RECV for the next reply is not posted */

/* What an event led to, bits. Each comes exactly once for each slot that was handed out. */
#define RXFER_SLOT_COMPLETE 0x1 /* the I/O is complete */
#define RXFER_SLOT_FREED    0x2 /* the slot is available again */

/**
 * struct rxfer_slot - one I/O's place.
 * @prev, @next: neighbours in its pool
 * @index:       0..n-1, for the caller's own arrays
 * @held:        credits that it still has reserved: who posts for it spends them and says what is
 * left
 * @missing:     RXFER_SLOT_MISSES_*
 * @pool:        where it is
 */
struct rxfer_slot {
	struct rxfer_slot *prev;
	struct rxfer_slot *next;
	uint32_t index;
	uint32_t held;
	uint32_t missing;
	enum rxfer_slot_pool pool;
};

/**
 * struct rxfer_slots - the slots of one connection. Belongs to one thread, and stays where it was
 * made.
 * @sq:        the connection's account, the caller's: credits are reserved and released here, and
 *             spent by who posts
 * @slot, @n:  all of them
 * @need:      N: credits that a slot is handed out with
 * @completes: RXFER_SLOT_MISSES_*: what an I/O needs to be complete
 * @ends:      of the pools that are lists, oldest first: first is @next, last @prev
 * @count:     of slots in each pool
 * @waits:     for each cause: in how many waits it was met, and for how long (the caller's ns)
 * @waiting:   a slot was wanted and there was none
 * @met:       causes met in this wait, bits; @cause the latest, @since when
 */
struct rxfer_slots {
	struct rxfer_sq *sq;
	struct rxfer_slot *slot;
	uint32_t n;
	uint32_t need;
	uint32_t completes;
	struct rxfer_slot ends[RXFER_SLOT_POOLS];
	uint32_t count[RXFER_SLOT_POOLS];
	struct rxfer_sq_waits waits[RXFER_SLOT_CAUSES];
	bool waiting;
	uint32_t met;
	enum rxfer_slot_cause cause;
	uint64_t since;
};

/**
 * rxfer_slots_init() - @n slots, all available; both ends have posted @n RECVs.
 * @sq:   outlives the slots. What is reserved for good (the drain) is reserved before.
 * @need: N: the most WRs that one I/O may ever post, its revoke included
 * Returns 0; -EINVAL where @n or @need is 0, or @n is above 2^20; -EMSGSIZE where @need credits
 * will never be free; -ENOMEM. Nothing is allocated later. rxfer_slots_free() frees it, in any
 * state; after a failure there is nothing to free, and to do so is harmless.
 */
int rxfer_slots_init(struct rxfer_slots *slots, struct rxfer_sq *sq, uint32_t n, uint32_t need,
		     enum rxfer_slot_completes completes);

void rxfer_slots_free(struct rxfer_slots *slots);

/**
 * rxfer_slot_get() - a slot, with N credits reserved, for the next I/O.
 * @now:   the caller's clock
 * @cause: out, where there is none: why
 * Returns it, or NULL: try again later. The first NULL begins a wait, and the next slot, or
 * rxfer_slots_stop_waiting(), ends it; in between each cause counts once, and the time from one
 * call to the next goes to the cause that the former told.
 */
struct rxfer_slot *rxfer_slot_get(struct rxfer_slots *slots, uint64_t now,
				  enum rxfer_slot_cause *cause);

/** rxfer_slots_stop_waiting() - no slot is wanted any more: end the wait, if there is one. */
void rxfer_slots_stop_waiting(struct rxfer_slots *slots, uint64_t now);

/**
 * rxfer_slots_restart() - @waits begin anew, for a part of the run that is measured on its own.
 * A wait under way goes on: it counts once, by its cause of now, and its time from now on.
 */
void rxfer_slots_restart(struct rxfer_slots *slots, uint64_t now);

/**
 * rxfer_slot_put() - back unused: nothing was posted for it. Its credits are free.
 * Returns RXFER_SLOT_FREED; -EBUSY where it is not fresh from rxfer_slot_get().
 */
int rxfer_slot_put(struct rxfer_slots *slots, struct rxfer_slot *slot);

/**
 * rxfer_slot_sent() - the request was posted, out of the slot's credits.
 * @exposes: it gave away a key that must be revoked before the slot is used again
 * Tell at once after the post. Returns 0; -EALREADY (nothing changes) where the slot's request was
 * posted or it is available.
 */
int rxfer_slot_sent(struct rxfer_slots *slots, struct rxfer_slot *slot, bool exposes);

/*
 * What happens to a slot. Each returns RXFER_SLOT_COMPLETE and RXFER_SLOT_FREED, whichever it led
 * to, or 0, or -errno, and then nothing changes: -EALREADY where it happened before or was not to
 * happen; -EPROTO where something else must come first; -EOVERFLOW where the slot's credits are not
 * in the account any more.
 *
 * rxfer_slot_proven() - its SEND is done, proven by a completion. Before or after the reply.
 *
 * rxfer_slot_replied() - the reply was received. It proves that the peer has a RECV for the next
 * request (who replies has re-posted it), and nothing about the SEND.
 *
 * rxfer_slot_revoked() - its keys are proven revoked: by the completion of the WRs that do it (that
 * they are posted is not enough), by the peer's SEND_WITH_INV, or by a call that returned. After
 * the reply.
 *
 * rxfer_slot_recv_posted() - a RECV is posted again in place of the one that its reply took.
 */
int rxfer_slot_proven(struct rxfer_slots *slots, struct rxfer_slot *slot);
int rxfer_slot_replied(struct rxfer_slots *slots, struct rxfer_slot *slot);
int rxfer_slot_revoked(struct rxfer_slots *slots, struct rxfer_slot *slot);
int rxfer_slot_recv_posted(struct rxfer_slots *slots, struct rxfer_slot *slot);

/** rxfer_slots_count() - slots in @pool. */
static inline uint32_t rxfer_slots_count(const struct rxfer_slots *slots, enum rxfer_slot_pool pool)
{
	return slots->count[pool];
}

#endif
