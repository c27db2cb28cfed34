/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The server of the simulation: what it does, one event each, and a naive view of its queue. */
#include <string.h>

#include "rpc_sim.h"

/* ---- the server ---- */

/* Rounds and the size of one, naively: the fewest rounds that fit, as equal as can be. */
static uint32_t plan(const struct rpc_sim *s, uint32_t n, uint32_t round, uint32_t *rounds)
{
	uint32_t chunk = s->c.server_depth - 2;

	*rounds = 1;
	while (*rounds * chunk < n)
		++*rounds;
	return n / *rounds + (round < n % *rounds);
}

/* Without a credit for the reply: all that it has is for data; at last it holds on to it. */
static void post_round_broken(struct rpc_sim *s, struct rpc_place *place)
{
	struct rxfer_ticket *ticket = &place->ticket;
	uint32_t n = place->left < ticket->held ? place->left : ticket->held, first = 0;
	uint32_t who = (uint32_t)(place - s->place);

	rpc_expect(s, rxfer_sq_release(&s->server.sq, ticket->held - n) == 0);
	ticket->held = n;
	ticket->wrs = 0;
	if (ticket->rounds == 0)
		place->state = REPLY_DUE;
	if (!n || (s->c.write && ticket->rounds == 0))
		return;
	rpc_expect(s, rxfer_sq_commit(&s->server.sq, n, n, 0, &first) == 0);
	ticket->held = 0;
	place->left -= n;
	if (place->state == REPLY_DUE)
		place->state = MOVING;
	place->last = rpc_chain(s, &s->server, first, n, WR_DATA, -1, who, &place->epoch, true);
}

static bool reply_broken(struct rpc_sim *s, struct rpc_place *place)
{
	uint32_t n = place->left, first = 0;

	if (rxfer_sq_reserve(&s->server.sq, 1))
		return false;
	rpc_expect(s, rxfer_sq_commit(&s->server.sq, n + 1, n + 1, 0, &first) == 0);
	place->ticket.held = 0;
	s->requests.recvs++;
	place->last = rpc_chain(s, &s->server, first, n, WR_DATA, WR_REPLY,
				(uint32_t)(place - s->place), &place->epoch, false);
	place->state = PROVING;
	return true;
}

static void post_reply(struct rpc_sim *s, struct rpc_place *place, uint32_t n)
{
	uint32_t first = 0;

	if (!rpc_expect(s, !rxfer_ticket_commit(&s->tickets, &place->ticket, n, true, &first)))
		return;
	s->requests.recvs++;
	place->last = rpc_chain(s, &s->server, first, n, WR_DATA, WR_REPLY,
				(uint32_t)(place - s->place), &place->epoch, false);
	place->state = PROVING;
}

/* READs are awaited before the reply goes; the last WRITEs go with it. */
static void post_round(struct rpc_sim *s, struct rpc_place *place)
{
	bool last = rxfer_ticket_is_last(&place->ticket);
	uint32_t first = 0, n = place->ticket.wrs;

	if (last && (s->c.write || n == 0)) {
		post_reply(s, place, n);
		return;
	}
	if (!rpc_expect(s, !rxfer_ticket_commit(&s->tickets, &place->ticket, n, false, &first)))
		return;
	if (last)
		place->state = MOVING;
	place->last = rpc_chain(s, &s->server, first, n, WR_DATA, -1, (uint32_t)(place - s->place),
				&place->epoch, last || prop_chance(s->p, 50));
}

static void remove_from_fifo(struct rpc_sim *s, uint32_t at)
{
	memmove(&s->fifo[at], &s->fifo[at + 1], (--s->n_fifo - at) * sizeof(s->fifo[0]));
}

/* Credits were granted: to the right one, for a round of the right size? */
static void granted(struct rpc_sim *s, struct rpc_place *place)
{
	uint32_t size, rounds, at = 0;

	while (at < s->n_fifo && s->fifo[at] != place - s->place)
		at++;
	if (!rpc_expect(s, at < s->n_fifo))
		return;
	if (s->broken != RPC_OVERTAKING && s->broken != RPC_ROUNDS_MIXED)
		rpc_expect(s, at == 0);
	s->passed = at ? s->passed + 1 : 0;
	if (s->passed > s->passed_most)
		s->passed_most = s->passed;
	size = plan(s, place->n, place->granted, &rounds);
	if (place->granted++ == 0)
		s->ticket_ns += s->now - place->taken;
	else
		s->later_rounds++;
	if (rxfer_ticket_is_last(&place->ticket))
		remove_from_fifo(s, at);
	if (s->broken == RPC_NO_REPLY_CREDIT) {
		post_round_broken(s, place);
		return;
	}
	rpc_expect(s, place->ticket.wrs == size && (size || !place->n));
	rpc_expect(s, rxfer_ticket_is_last(&place->ticket) == (place->granted == rounds));
	post_round(s, place);
}

bool rpc_server_take(struct rpc_sim *s)
{
	uint32_t i = 0, n;
	struct rpc_place *place;
	int err;

	while (i < s->c.slots && s->place[i].state != FREE)
		i++;
	if (i == s->c.slots)
		return false;
	place = &s->place[i];
	if (!rpc_inbox_take(&s->requests, &place->slot))
		return false;
	n = s->io[place->slot].n;
	place->state = QUEUED;
	place->n = place->left = n;
	place->granted = 0;
	place->taken = s->now;
	s->fifo[s->n_fifo++] = i;
	if (s->broken == RPC_NO_REPLY_CREDIT)
		n -= n > 0;
	err = rxfer_ticket_take(&s->tickets, &place->ticket, n, s->now);
	if (rpc_expect(s, err >= 0) && err)
		granted(s, place);
	return true;
}

/* Whoever is behind the oldest, if its credits are there. */
static struct rxfer_ticket *overtake(struct rpc_sim *s)
{
	struct rxfer_ticket *oldest = s->tickets.first, *ticket;

	if (!oldest || !oldest->next)
		return NULL;
	s->tickets.first = oldest->next;
	ticket = rxfer_tickets_next(&s->tickets, s->now);
	oldest->next = s->tickets.first;
	s->tickets.first = oldest;
	if (!oldest->next)
		s->tickets.last = oldest;
	return ticket;
}

/* An I/O between two rounds goes to the end of the queue. */
static void to_the_end(struct rpc_sim *s, struct rxfer_ticket *ticket)
{
	struct rxfer_tickets *t = &s->tickets;

	if (t->first != ticket || t->last == ticket)
		return;
	t->first = ticket->next;
	t->last->next = ticket;
	t->last = ticket;
	ticket->next = NULL;
}

/* Refused though the oldest could have its credits? */
static void waits_rightly(struct rpc_sim *s)
{
	uint32_t rounds, size;
	const struct rpc_place *place;

	if (!s->n_fifo || s->broken != RPC_NOTHING)
		return;
	place = &s->place[s->fifo[0]];
	size = plan(s, place->n, place->granted, &rounds);
	rpc_expect(s, size + !place->granted > rxfer_sq_free(&s->server.sq));
}

bool rpc_server_grant(struct rpc_sim *s)
{
	struct rxfer_ticket *ticket = rxfer_tickets_next(&s->tickets, s->now);

	if (!ticket && s->broken == RPC_OVERTAKING)
		ticket = overtake(s);
	if (!ticket) {
		waits_rightly(s);
		return false;
	}
	if (s->broken == RPC_ROUNDS_MIXED && ticket->rounds)
		to_the_end(s, ticket);
	/* the ticket is the place's first member */
	granted(s, (struct rpc_place *)ticket);
	return true;
}

bool rpc_server_leave(struct rpc_sim *s)
{
	return rpc_queue_leave(s, &s->server);
}

bool rpc_server_execute(struct rpc_sim *s)
{
	return rpc_queue_execute(s, &s->server);
}

bool rpc_server_poll(struct rpc_sim *s)
{
	uint32_t i;

	if (!rpc_queue_poll(s, &s->server))
		return false;
	for (i = 0; i < s->c.slots; i++) {
		struct rpc_place *place = &s->place[i];

		if (s->server.returned <= place->last)
			continue;
		if (place->state == MOVING)
			place->state = REPLY_DUE;
		else if (place->state == PROVING)
			place->state = FREE;
	}
	return true;
}

bool rpc_server_reply(struct rpc_sim *s)
{
	uint32_t i, offset = prop_range(s->p, 0, s->c.slots - 1);

	for (i = 0; i < s->c.slots; i++) {
		struct rpc_place *place = &s->place[(i + offset) % s->c.slots];

		if (place->state != REPLY_DUE)
			continue;
		if (s->broken != RPC_NO_REPLY_CREDIT)
			post_reply(s, place, 0);
		else if (!reply_broken(s, place))
			continue;
		return true;
	}
	return false;
}
