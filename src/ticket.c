/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who may use a server's send queue next.
 *
 * A server that moves data for many clients' requests posts for each some READs or WRITEs, then a
 * reply. All want entries of one queue. To hand them out to whoever asks, as they come, goes wrong
 * in three ways, and each has been met in practice:
 *
 * - Half-way. An I/O that has its data and no entry for the reply waits, and holds what others need
 *   to get on. Where WRITEs are silent this is a dead-lock at once: their credits come back by the
 *   completion of the reply, which is not posted. So an I/O asks once, for all that it needs, reply
 *   included, before its first READ or WRITE. (nvmet takes 1 + n_rdma off sq_wr_avail before the
 *   READ.)
 * - Starvation. An I/O that needs many credits looks for them while small ones, always content with
 *   what is left, take each that comes back. So it is first come, first served, and nobody
 *   overtakes, even where credits are free that would do for somebody behind. This costs a little
 *   throughput, and what it buys is that each wait ends. (nvmet's rsp_wr_wait_list; svcrdma's
 *   tickets, sc_sq_ticket_head and _tail, came because waiters starved.)
 * - Never. An I/O that needs more than the queue has would wait for ever. (svcrdma refuses it,
 *   -EINVAL; a file server was seen to stand still with "needed:31 > max:9".) Here it goes in
 *   rounds.
 *
 * Rounds. An I/O of n READs or WRITEs has the reply's credit from the start to the end, and what
 * the queue has beside it, the chunk, is the most in one round. It takes as few rounds as that
 * allows, of about equal size, as the smaller a round is, the sooner it fits; none is empty. Two
 * rounds never fit at once, so the next is granted when the former is posted and enough credits are
 * back: by its completion, or because it took fewer WRs than it might. In between the I/O stays at
 * the head: those behind it wait until its last round is granted. At most one I/O is thus between
 * rounds, it holds one credit, and whoever holds others got all that they need before it. They end,
 * their credits come back, and its next round is granted: no dead-lock. Were a second I/O
 * let in between, each would hold what the other's round needs.
 *
 * Credits come back as for everybody, by completions (sq.c): those of READs by that of the last
 * READ, which is awaited anyway before the reply goes, those of WRITEs by the reply's or, between
 * rounds, by one that the signalling rules ask for. For those rules, N is the most that is asked
 * for at once, a chunk and the reply; without the reply in it a silent queue may stand still.
 *
 * What was granted is held by the ticket and spent by the engine's post, once
 * rxfer_ticket_spend() said what to keep: a round leaves the reply's credit, the reply nothing.
 * Both are asked for where the last round and the reply are one post. Thus the account has one
 * spender, and only the post knows how many WRs it is in the end: what a round did not need is free
 * at once.
 */
#include "ticket.h"

#include <errno.h>
#include <stddef.h>

int rxfer_tickets_init(struct rxfer_tickets *tickets, struct rxfer_sq *sq, uint32_t most)
{
	uint32_t usable = rxfer_sq_free(sq);

	if (most > RXFER_SQ_MAX_DEPTH)
		return -EINVAL;
	if (rxfer_sq_check(sq) || usable == 0 || (most && usable == 1))
		return -EMSGSIZE;

	*tickets = (struct rxfer_tickets){
		.sq = sq,
		.most = most,
		.chunk = usable - 1,
		.need = most < usable - 1 ? most + 1 : usable,
	};
	return 0;
}

/* Of those that are left, rounded up: sizes differ by 1 at most, larger ones first. */
static uint32_t next_round(const struct rxfer_ticket *ticket)
{
	return ticket->left / ticket->rounds + !!(ticket->left % ticket->rounds);
}

/* What the first round of an I/O finds: it has no credit yet, not even the reply's. */
static bool is_new(const struct rxfer_ticket *ticket)
{
	return ticket->held == 0;
}

/* What it waits for. */
static struct rxfer_sq_waits *waits_of(struct rxfer_tickets *tickets,
				       const struct rxfer_ticket *ticket)
{
	return is_new(ticket) ? &tickets->started : &tickets->rounds;
}

static bool grant(struct rxfer_tickets *tickets, struct rxfer_ticket *ticket)
{
	uint32_t wrs = next_round(ticket);
	uint32_t credits = wrs + is_new(ticket);

	if (rxfer_sq_reserve(tickets->sq, credits))
		return false;
	ticket->held += credits;
	ticket->wrs += wrs;
	ticket->left -= wrs;
	ticket->rounds--;
	return true;
}

static void enqueue(struct rxfer_tickets *tickets, struct rxfer_ticket *ticket, uint64_t now)
{
	ticket->next = NULL;
	ticket->since = now;
	waits_of(tickets, ticket)->count++;
	*(tickets->first ? &tickets->last->next : &tickets->first) = ticket;
	tickets->last = ticket;
}

int rxfer_ticket_take(struct rxfer_tickets *tickets, struct rxfer_ticket *ticket, uint32_t n,
		      uint64_t now)
{
	bool granted;

	if (n > tickets->most)
		return -EMSGSIZE;
	if (ticket->held || ticket->rounds)
		return -EBUSY;

	*ticket = (struct rxfer_ticket){.left = n, .rounds = rxfer_tickets_rounds(tickets, n)};
	granted = !tickets->first && grant(tickets, ticket);
	if (ticket->rounds)
		enqueue(tickets, ticket, now);
	return granted;
}

struct rxfer_ticket *rxfer_tickets_next(struct rxfer_tickets *tickets, uint64_t now)
{
	struct rxfer_ticket *ticket = tickets->first;
	struct rxfer_sq_waits *waits;

	if (!ticket)
		return NULL;
	waits = waits_of(tickets, ticket);
	if (!grant(tickets, ticket))
		return NULL;

	waits->ns += now - ticket->since;
	ticket->since = now;
	if (ticket->rounds)
		tickets->rounds.count++;
	else
		tickets->first = ticket->next;
	return ticket;
}

void rxfer_tickets_restart(struct rxfer_tickets *tickets)
{
	const struct rxfer_ticket *ticket;

	tickets->started = (struct rxfer_sq_waits){0};
	tickets->rounds = (struct rxfer_sq_waits){0};
	for (ticket = tickets->first; ticket; ticket = ticket->next)
		waits_of(tickets, ticket)->count++;
}
