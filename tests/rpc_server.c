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

enum follows { NOTHING, AWAITED, REPLY };

/* WRs of a round, at least one. What is not needed of what it holds is free at once. */
static void post_data(struct rpc_sim *s, struct rpc_place *place, uint32_t n, uint32_t keep,
		      enum follows follows)
{
	struct rpc_op op = {.kind = WR_DATA,
			    .last = WR_DATA,
			    .n = n - 1,
			    .who = (uint32_t)(place - s->place),
			    .must = follows == AWAITED,
			    .more = follows == REPLY,
			    .epoch = &place->epoch};

	rpc_post_held(s, &s->server, &op, &place->ticket.held, keep);
	place->moving++;
}

/* The reply, behind @n WRs of data that are one I/O with it. */
static void post_reply(struct rpc_sim *s, struct rpc_place *place, uint32_t n)
{
	struct rpc_op op = {.kind = WR_DATA,
			    .last = WR_REPLY,
			    .n = n,
			    .who = (uint32_t)(place - s->place),
			    .epoch = &place->epoch};

	rpc_expect(s, place->reply < s->server.returned); /* or its buffer is in use */
	s->server.recvs++;
	place->reply = rpc_post_held(s, &s->server, &op, &place->ticket.held, 0);
	place->state = PROVING;
}

/* Without a credit for the reply: all that it has is for data; at last it holds on to it. */
static void post_round_broken(struct rpc_sim *s, struct rpc_place *place)
{
	struct rxfer_ticket *ticket = &place->ticket;
	uint32_t n = place->left < ticket->held ? place->left : ticket->held;
	bool last = rxfer_ticket_is_last(ticket);

	rpc_expect(s, rxfer_sq_release(&s->server.sq, ticket->held - n) == 0);
	ticket->held = n;
	ticket->wrs = 0;
	if (last)
		place->state = REPLY_DUE;
	if (!n || (s->c.write && last))
		return;
	place->left -= n;
	post_data(s, place, n, 0, AWAITED);
	if (last)
		place->state = MOVING;
}

static bool reply_broken(struct rpc_sim *s, struct rpc_place *place)
{
	if (rxfer_sq_reserve(&s->server.sq, 1))
		return false;
	place->ticket.held++;
	if (place->left)
		post_data(s, place, place->left, 1, REPLY);
	post_reply(s, place, 0);
	return true;
}

static bool spend(struct rpc_sim *s, struct rpc_place *place, bool reply)
{
	return rpc_expect(s, rxfer_ticket_spend(&s->tickets, &place->ticket, reply) == !reply);
}

static void reply(struct rpc_sim *s, struct rpc_place *place, uint32_t n)
{
	if (spend(s, place, true))
		post_reply(s, place, n);
}

/* The last WRITEs: the reply is the very last of them, as with immediate data, or one post with
 * them, or a post of its own. */
static void post_last_writes(struct rpc_sim *s, struct rpc_place *place, uint32_t n)
{
	uint32_t one = prop_range(s->p, 0, 2);

	if (one < 2)
		post_data(s, place, n, 1, one ? REPLY : NOTHING);
	reply(s, place, one < 2 ? 0 : n);
}

/* READs are awaited before the reply goes; with the last WRITEs it goes at once. */
static void post_round(struct rpc_sim *s, struct rpc_place *place)
{
	bool last = rxfer_ticket_is_last(&place->ticket);
	uint32_t n = place->ticket.wrs;

	if (!n) {
		reply(s, place, 0);
		return;
	}
	n = rpc_up_to(s, 1, n);
	if (!spend(s, place, false))
		return;
	if (last && s->c.write) {
		post_last_writes(s, place, n);
		return;
	}
	post_data(s, place, n, 1, last || prop_chance(s->p, 50) ? AWAITED : NOTHING);
	if (last)
		place->state = MOVING;
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

static uint32_t free_places(const struct rpc_sim *s)
{
	uint32_t i, n = 0;

	for (i = 0; i < s->c.places; i++)
		n += s->place[i].state == FREE;
	return n;
}

/* The oldest request that has no place yet, if there is one. */
bool rpc_server_take(struct rpc_sim *s)
{
	uint32_t i = 0, n, slot;
	struct rpc_place *place;
	int err;

	if (s->n_taken == s->n_came)
		return false;
	slot = s->backlog[s->n_taken % RPC_MAX_SLOTS];
	while (i < s->c.places && s->place[i].state != FREE)
		i++;
	if (s->broken == RPC_PLACE_OF_SLOT)
		i = slot;
	if (i == s->c.places)
		return false;
	s->n_taken++;
	place = &s->place[i];
	n = s->io[slot].n;
	place->slot = slot;
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

static void done(struct rpc_sim *s, const struct rpc_done *done)
{
	struct rpc_place *place = &s->place[done->who];

	if (done->kind == WR_RECV) {
		if (rpc_expect(s, s->n_came - s->n_taken < RPC_MAX_SLOTS))
			s->backlog[s->n_came++ % RPC_MAX_SLOTS] = done->who;
	} else if (done->kind == WR_DATA) {
		place->moving--;
		if (place->state == MOVING && place->moving == 0)
			place->state = REPLY_DUE;
	} else if (done->kind == WR_REPLY) {
		rpc_expect(s, place->state == PROVING && place->moving == 0);
		place->state = FREE;
	}
}

bool rpc_server_poll(struct rpc_sim *s)
{
	struct rpc_done some[RPC_MAX_DONE];
	uint32_t i, n;

	s->server.deaf = s->broken == RPC_NO_BACKLOG && free_places(s) <= s->n_came - s->n_taken;
	if (!rpc_queue_poll(s, &s->server, some, &n))
		return false;
	for (i = 0; i < n; i++)
		done(s, &some[i]);
	return true;
}

bool rpc_server_reply(struct rpc_sim *s)
{
	uint32_t i, offset = prop_range(s->p, 0, s->c.places - 1);

	for (i = 0; i < s->c.places; i++) {
		struct rpc_place *place = &s->place[(i + offset) % s->c.places];

		if (place->state != REPLY_DUE)
			continue;
		if (s->broken != RPC_NO_REPLY_CREDIT)
			reply(s, place, 0);
		else if (!reply_broken(s, place))
			continue;
		return true;
	}
	return false;
}
