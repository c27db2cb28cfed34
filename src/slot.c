/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a slot may be used again.
 *
 * A client that lets the server move its data posts a SEND, a request that names its memory by
 * keys. The server READs or WRITEs, and replies by a SEND of its own. With the reply the I/O looks
 * done, and its buffers, keys and queue entries look free. Most of them are not, and to use them
 * again corrupts data or overflows a queue, rarely, under load, on real NICs only. So a slot, the
 * place of one I/O in flight, goes round through three pools:
 *
 *	available ---get---> in use ---reply---> recycling ---all of this---> available
 *
 * - Its SEND is proven by a completion, its own or a later one of the queue. The reply is no proof:
 *   the request came, but the acknowledgement may be lost, and the NIC then sends again, out of a
 *   buffer that holds the next request by now. (drivers/nvme/host/rdma.c counts both since
 *   4af7f7ff92a4, iSER signals every SEND again since 433dc0efd1e0.)
 * - Its keys are revoked, proven by a completion or by the peer's SEND_WITH_INV. Posted is not
 *   revoked. (frwr_unmap_async() lets the completion of the last LOCAL_INV complete the request.)
 * - Its RECV is posted again, or the next reply meets an empty queue. All RECVs of a queue are
 *   alike, but each slot whose reply took one owes one.
 * - The peer has a RECV for its next request. The server re-posts before it replies, so this
 *   is what a reply does prove.
 * - N credits are free, so that the next I/O can go all its way, the revoke included. Credits are
 *   anonymous, so this is looked at when the slot is handed out, and they are reserved with the
 *   same stroke: none is set aside for a slot that nobody wants.
 *
 * These come in any order: a reply may well be seen before the completion of the SEND that it
 * answers, even where one CQ serves both queues, and a silent SEND is proven later still, by
 * somebody else's completion. Each slot has a word of what is missing, and leaves when it is zero.
 *
 * That the I/O is complete, its memory its owner's again, is another event than that the slot is
 * available. If the peer could write, the I/O is not complete before the key is revoked (sync): its
 * owner would read what may yet change. If it could only read, the reply is enough (async). In both
 * cases the reply is processed at once and only recycling waits for proof: deferred. The other
 * choice is to hold the completion back until the proofs are there; then they are waited for, must
 * be asked for by a signal, and cost latency.
 *
 * Which completion proves which slot is not decided here. The engine has one ring of all I/Os in
 * posting order, hands up those that a completion has proven (poll.c), and the caller tells the
 * slot: a SEND done is rxfer_slot_proven(), a revoke done rxfer_slot_revoked(). A second ring would
 * be a second opinion. (rpcrdma_sendctx_put_locked() keeps one for silent SENDs alone.) Nor is it
 * guarded here that a key is revoked once: that is the ledger's (ledger.c).
 *
 * Likewise the credits: they are reserved here with the slot, and spent by the post, which leaves
 * in `held` what the slot's later WRs, its revoke, may still need. Once reply and revoke are there
 * the I/O posts nothing any more, and what is held goes back, though the slot may not yet.
 *
 * No event walks slots: the pools are lists through them, rings that begin and end in the owner.
 *
 * Why a slot is not there: if one is available, credits are missing. Else the oldest that is being
 * recycled names the cause; of several that it misses, first the key, whose proof comes last (the
 * revoke is behind the SEND in the queue), then the SEND, then the RECV. If none is being recycled,
 * all are in use: the server is awaited, as it always is in a closed loop.
 */
#include "slot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SLOTS (1u << 20)

/* ---- pools ---- */

static void list_init(struct rxfer_slot *ends)
{
	ends->prev = ends->next = ends;
}

static struct rxfer_slot *first_in(const struct rxfer_slots *slots, enum rxfer_slot_pool pool)
{
	struct rxfer_slot *first = slots->ends[pool].next;

	return first != &slots->ends[pool] ? first : NULL;
}

/* What is in use is in no list: nobody looks for it. */
static inline void move(struct rxfer_slots *slots, struct rxfer_slot *slot,
			enum rxfer_slot_pool pool)
{
	struct rxfer_slot *ends = &slots->ends[pool];

	if (slot->pool != RXFER_SLOT_IN_USE) {
		slot->prev->next = slot->next;
		slot->next->prev = slot->prev;
	}
	slots->count[slot->pool]--;
	slots->count[pool]++;
	slot->pool = pool;
	if (pool == RXFER_SLOT_IN_USE)
		return;
	slot->next = ends;
	slot->prev = ends->prev;
	ends->prev->next = slot;
	ends->prev = slot;
}

/* ---- life ---- */

static uint32_t completes_by(enum rxfer_slot_completes completes)
{
	uint32_t bits = RXFER_SLOT_MISSES_REPLY;

	if (completes == RXFER_SLOT_AT_REVOKE || completes == RXFER_SLOT_AT_ALL)
		bits |= RXFER_SLOT_MISSES_REVOKE;
	if (completes == RXFER_SLOT_AT_PROOF || completes == RXFER_SLOT_AT_ALL)
		bits |= RXFER_SLOT_MISSES_PROOF;
	return bits;
}

int rxfer_slots_init(struct rxfer_slots *slots, struct rxfer_sq *sq, uint32_t n, uint32_t need,
		     enum rxfer_slot_completes completes)
{
	uint32_t i;

	*slots = (struct rxfer_slots){.sq = sq, .n = n, .need = need};
	if (n == 0 || n > MAX_SLOTS || need == 0)
		return -EINVAL;
	if ((uint64_t)need + sq->reserved > sq->depth)
		return -EMSGSIZE;

	slots->slot = calloc(n, sizeof(*slots->slot));
	if (!slots->slot)
		return -ENOMEM;
	slots->completes = completes_by(completes);
	slots->count[RXFER_SLOT_IN_USE] = n;
	list_init(&slots->ends[RXFER_SLOT_AVAILABLE]);
	list_init(&slots->ends[RXFER_SLOT_RECYCLING]);
	for (i = 0; i < n; i++) {
		slots->slot[i].index = i;
		slots->slot[i].pool = RXFER_SLOT_IN_USE;
		move(slots, &slots->slot[i], RXFER_SLOT_AVAILABLE);
	}
	return 0;
}

void rxfer_slots_free(struct rxfer_slots *slots)
{
	free(slots->slot);
	slots->slot = NULL;
}

/* ---- handing out ---- */

static enum rxfer_slot_cause cause_now(const struct rxfer_slots *slots)
{
	const struct rxfer_slot *oldest = first_in(slots, RXFER_SLOT_RECYCLING);

	if (first_in(slots, RXFER_SLOT_AVAILABLE))
		return RXFER_SLOT_NO_SQES;
	if (!oldest)
		return RXFER_SLOT_EXECUTING;
	if (oldest->missing & RXFER_SLOT_MISSES_REVOKE)
		return RXFER_SLOT_KEY;
	return oldest->missing & RXFER_SLOT_MISSES_PROOF ? RXFER_SLOT_UNPROVEN : RXFER_SLOT_NO_RECV;
}

void rxfer_slots_stop_waiting(struct rxfer_slots *slots, uint64_t now)
{
	if (!slots->waiting)
		return;
	slots->waits[slots->cause].ns += now - slots->since;
	slots->waiting = false;
	slots->met = 0;
}

void rxfer_slots_restart(struct rxfer_slots *slots, uint64_t now)
{
	memset(slots->waits, 0, sizeof(slots->waits));
	if (!slots->waiting)
		return;
	slots->waits[slots->cause].count = 1;
	slots->met = 1u << slots->cause;
	slots->since = now;
}

static void wait_on(struct rxfer_slots *slots, uint64_t now, enum rxfer_slot_cause cause)
{
	if (slots->waiting)
		slots->waits[slots->cause].ns += now - slots->since;
	if (!(slots->met & 1u << cause))
		slots->waits[cause].count++;
	slots->waiting = true;
	slots->met |= 1u << cause;
	slots->cause = cause;
	slots->since = now;
}

struct rxfer_slot *rxfer_slot_get(struct rxfer_slots *slots, uint64_t now,
				  enum rxfer_slot_cause *cause)
{
	struct rxfer_slot *slot = first_in(slots, RXFER_SLOT_AVAILABLE);

	if (!slot || rxfer_sq_reserve(slots->sq, slots->need)) {
		*cause = cause_now(slots);
		wait_on(slots, now, *cause);
		return NULL;
	}
	rxfer_slots_stop_waiting(slots, now);
	move(slots, slot, RXFER_SLOT_IN_USE);
	slot->held = slots->need;
	slot->missing = RXFER_SLOT_MISSES_SEND;
	return slot;
}

int rxfer_slot_put(struct rxfer_slots *slots, struct rxfer_slot *slot)
{
	if (slot->missing != RXFER_SLOT_MISSES_SEND || slot->held != slots->need ||
	    rxfer_sq_release(slots->sq, slot->held))
		return -EBUSY;

	slot->held = 0;
	slot->missing = 0;
	move(slots, slot, RXFER_SLOT_AVAILABLE);
	return RXFER_SLOT_FREED;
}

/* ---- what happens to a slot ---- */

int rxfer_slot_sent(struct rxfer_slots *slots, struct rxfer_slot *slot, bool exposes)
{
	(void)slots;
	if (slot->missing != RXFER_SLOT_MISSES_SEND)
		return -EALREADY;

	slot->missing = RXFER_SLOT_MISSES_REPLY | RXFER_SLOT_MISSES_PROOF | RXFER_SLOT_MISSES_RECV;
	if (exposes)
		slot->missing |= RXFER_SLOT_MISSES_REVOKE;
	return 0;
}

/* @bit is missing no more. Once reply and revoke are there, the I/O posts nothing any more. */
static inline int arrived(struct rxfer_slots *slots, struct rxfer_slot *slot, uint32_t bit)
{
	uint32_t missing = slot->missing & ~bit;
	int events = 0;

	if (!(missing & (RXFER_SLOT_MISSES_REPLY | RXFER_SLOT_MISSES_REVOKE)) && slot->held) {
		if (rxfer_sq_release(slots->sq, slot->held))
			return -EOVERFLOW;
		slot->held = 0;
	}
	slot->missing = missing;
	if (bit & slots->completes && !(missing & slots->completes))
		events |= RXFER_SLOT_COMPLETE;
	if (!missing) {
		events |= RXFER_SLOT_FREED;
		move(slots, slot, RXFER_SLOT_AVAILABLE);
	} else if (bit == RXFER_SLOT_MISSES_REPLY) {
		move(slots, slot, RXFER_SLOT_RECYCLING);
	}
	return events;
}

/* Something that may happen when nothing of @first is missing any more, and once. */
static inline int happened(struct rxfer_slots *slots, struct rxfer_slot *slot, uint32_t bit,
			   uint32_t first)
{
	if (slot->missing & first)
		return -EPROTO;
	return slot->missing & bit ? arrived(slots, slot, bit) : -EALREADY;
}

int rxfer_slot_proven(struct rxfer_slots *slots, struct rxfer_slot *slot)
{
	return happened(slots, slot, RXFER_SLOT_MISSES_PROOF, RXFER_SLOT_MISSES_SEND);
}

int rxfer_slot_replied(struct rxfer_slots *slots, struct rxfer_slot *slot)
{
	return happened(slots, slot, RXFER_SLOT_MISSES_REPLY, RXFER_SLOT_MISSES_SEND);
}

int rxfer_slot_revoked(struct rxfer_slots *slots, struct rxfer_slot *slot)
{
	return happened(slots, slot, RXFER_SLOT_MISSES_REVOKE,
			RXFER_SLOT_MISSES_SEND | RXFER_SLOT_MISSES_REPLY);
}

int rxfer_slot_recv_posted(struct rxfer_slots *slots, struct rxfer_slot *slot)
{
	return happened(slots, slot, RXFER_SLOT_MISSES_RECV,
			RXFER_SLOT_MISSES_SEND | RXFER_SLOT_MISSES_REPLY);
}
