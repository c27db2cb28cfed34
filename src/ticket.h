/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A server's queue of I/Os that wait for credits: first come, first served. Pure arithmetic, no
 * verbs, no clock. The essay is on top of ticket.c.
 */
#ifndef RXFER_TICKET_H
#define RXFER_TICKET_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include "sq.h"

/**
 * struct rxfer_ticket - one I/O's place in the queue, and what it holds. All zero at first.
 * @next:   who is behind it
 * @left:   READs and WRITEs of rounds that were not granted yet
 * @rounds: how many such rounds
 * @wrs:    READs and WRITEs that were granted and are to be posted now
 * @held:   credits that it holds reserved: for @wrs, and 1 for the reply. Who posts for it spends
 *          them and leaves here what rxfer_ticket_spend() says.
 * @since:  when it began to wait, by the caller's clock
 */
struct rxfer_ticket {
	struct rxfer_ticket *next;
	uint32_t left;
	uint32_t rounds;
	uint32_t wrs;
	uint32_t held;
	uint64_t since;
};

/**
 * struct rxfer_tickets - the queue of one connection. Belongs to one thread.
 * @sq:     the connection's account, the caller's: credits are reserved here, spent by who posts
 * @first, @last: who waits, oldest first
 * @most:   the most READs and WRITEs of an I/O
 * @chunk:  the most in one round
 * @need:   the most credits that anybody asks for at once: N, for the signalling rules of sig.h
 * @started: waits for the first credits: I/Os that did not get them at once
 * @rounds:  waits for those of a later round. There is one before each: no two fit at once.
 */
struct rxfer_tickets {
	struct rxfer_sq *sq;
	struct rxfer_ticket *first;
	struct rxfer_ticket *last;
	uint32_t most;
	uint32_t chunk;
	uint32_t need;
	struct rxfer_sq_waits started;
	struct rxfer_sq_waits rounds;
};

/**
 * rxfer_tickets_init() - an empty queue.
 * @sq:   outlives it; nothing is posted, and what is reserved now (the drain) is so for good
 * @most: the most READs and WRITEs of an I/O, at most 2^30
 * Returns 0; -EINVAL where @most is too large; -EMSGSIZE where the account has no credit for the
 * reply, or, with @most above 0, none beside it: no rounds would help.
 */
int rxfer_tickets_init(struct rxfer_tickets *tickets, struct rxfer_sq *sq, uint32_t most);

/** rxfer_tickets_rounds() - in how many rounds an I/O of @n READs or WRITEs goes, at least 1. */
static inline uint32_t rxfer_tickets_rounds(const struct rxfer_tickets *tickets, uint32_t n)
{
	return n <= tickets->chunk ? 1 : n / tickets->chunk + !!(n % tickets->chunk);
}

/**
 * rxfer_ticket_take() - an I/O of @n READs or WRITEs and a reply arrived: it queues up.
 * @ticket: the caller's, one for each I/O that it may have at once
 * Returns 1 where it has its first credits at once: @ticket->wrs may be posted. 0 where it waits,
 * for rxfer_tickets_next(). -EMSGSIZE where @n is above what was said at the start; -EBUSY where
 * the ticket is in use.
 */
int rxfer_ticket_take(struct rxfer_tickets *tickets, struct rxfer_ticket *ticket, uint32_t n,
		      uint64_t now);

/**
 * rxfer_tickets_next() - grant the oldest I/O that waits its next round.
 * Returns its ticket, with @wrs READs or WRITEs to be posted; NULL where none waits or credits are
 * too few. Call it when credits came back, again and again until it returns NULL.
 */
struct rxfer_ticket *rxfer_tickets_next(struct rxfer_tickets *tickets, uint64_t now);

/**
 * rxfer_ticket_spend() - may this be posted now? Before the post, which spends @ticket->held and
 * sets it to what is returned here. Where the round and the reply are one post, ask for both, the
 * round first.
 * @reply: false: the round that was granted, all of it. It may take fewer WRs than @ticket->wrs;
 *         the other credits are then free at once. true: the reply. Once it is posted the ticket is
 *         free to be taken again.
 * Returns the credits to keep: 1, or 0 for the reply. -EPROTO, and nothing changes, where no round
 * is granted, or the reply would leave out READs and WRITEs or was posted.
 */
static inline int rxfer_ticket_spend(struct rxfer_tickets *tickets, struct rxfer_ticket *ticket,
				     bool reply)
{
	(void)tickets;
	if (!reply) {
		if (!ticket->wrs)
			return -EPROTO;
		ticket->wrs = 0;
		return 1;
	}
	return ticket->wrs || ticket->rounds || !ticket->held ? -EPROTO : 0;
}

/**
 * rxfer_tickets_restart() - the waits begin anew, for a part of the run that is measured on its
 * own. Waits under way go on: each counts, and when it ends its whole time does.
 */
void rxfer_tickets_restart(struct rxfer_tickets *tickets);

/** rxfer_ticket_is_last() - is its last round granted? If so, the reply goes behind it. */
static inline bool rxfer_ticket_is_last(const struct rxfer_ticket *ticket)
{
	return ticket->rounds == 0;
}

#endif
