/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The client's slots and the server's tickets at work: both ends, both send queues with accounts
 * and signalling policies as the engine has them, and what lies between.
 *
 * The client posts REGs and a SEND, the server READs or WRITEs and replies, the client revokes, by
 * WRs, by a call, or by the grace of the peer. A device takes WRs in order and at its own pace:
 * they leave for the peer first and are acknowledged later, so that a reply can be there before the
 * completion of the SEND that it answers. An entry comes back with a polled completion only.
 *
 * Each end has one completion queue. What its send queue and its receive queue report is in there
 * in the order of each, and of both as it comes; it is polled from its old end, so that a message
 * cannot be left lying while a completion behind it is wanted. I/Os that a completion proved are
 * handed up in posting order, some at a time (src/poll.c). RECVs are posted again some time after.
 *
 * The server has places for I/Os, at most as many as the client has slots, each in use until its
 * reply is proven; requests for which there is none wait, oldest first. What happens next is drawn
 * by lot.
 *
 * Next to it is a model that knows the truth and no cleverness: it counts afresh at every step what
 * must be so, by walking over everything.
 */
#include <string.h>

#include "rpc_sim.h"

bool rpc_expect(struct rpc_sim *s, bool cond)
{
	if (!cond)
		s->outcome = RPC_WRONG;
	return cond;
}

uint32_t rpc_up_to(struct rpc_sim *s, uint32_t lo, uint32_t hi)
{
	return s->c.exact ? hi : prop_range(s->p, lo, hi);
}

/* ---- the wire ---- */

/* Into a completion queue, which has room for all that can be posted. */
static void report(struct rpc_sim *s, struct rpc_queue *q, struct rpc_cqe cqe)
{
	if (rpc_expect(s, q->n_cqe - q->n_polled < RPC_RING))
		q->cqe[q->n_cqe++ % RPC_RING] = cqe;
}

static void receive(struct rpc_sim *s, struct rpc_queue *q, uint32_t who)
{
	if (!rpc_expect(s, q->recvs > 0))
		return;
	q->recvs--;
	report(s, q, (struct rpc_cqe){.recv = true, .who = who});
}

/* A WR leaves for the peer. The server's data WRs use the client's key. */
static void leave(struct rpc_sim *s, const struct rpc_wr *wr)
{
	if (wr->kind == WR_SEND)
		receive(s, &s->server, wr->who);
	else if (wr->kind == WR_REPLY)
		receive(s, &s->client, s->place[wr->who].slot);
	else if (wr->kind == WR_DATA)
		rpc_expect(s, s->io[s->place[wr->who].slot].live);
}

bool rpc_queue_leave(struct rpc_sim *s, struct rpc_queue *q)
{
	uint32_t n = (uint32_t)(q->head - q->gone);

	if (!n)
		return false;
	for (n = prop_range(s->p, 1, n); n && s->outcome == RPC_FINE; n--)
		leave(s, &q->wr[q->gone++ % RPC_RING]);
	return true;
}

bool rpc_queue_execute(struct rpc_sim *s, struct rpc_queue *q)
{
	uint64_t until;

	if (q->gone == q->exec)
		return false;
	until = q->exec + prop_range(s->p, 1, (uint32_t)(q->gone - q->exec));
	for (; q->exec < until; q->exec++) {
		if (q->wr[q->exec % RPC_RING].signalled)
			report(s, q, (struct rpc_cqe){.seq = q->exec});
	}
	return true;
}

/* ---- the engine ---- */

static bool oldest_is_done(const struct rpc_queue *q)
{
	return q->n_done != q->n_post && q->post[q->n_done % RPC_RING].last < q->returned;
}

/* All that is proven, or as much as is wanted: up to there, and not further, it was told. */
static uint32_t hand_up(struct rpc_queue *q, struct rpc_done *done, uint32_t max)
{
	uint32_t n = 0;

	while (n < max && oldest_is_done(q))
		done[n++] = q->post[q->n_done++ % RPC_RING];
	q->handed = oldest_is_done(q) ? done[n - 1].last + 1 : q->returned;
	return n;
}

/* The next completion. Returns false where there is none. @n: 1 where it is a message. */
static bool take_one(struct rpc_sim *s, struct rpc_queue *q, struct rpc_done *done, uint32_t *n)
{
	const struct rpc_cqe *cqe = &q->cqe[q->n_polled % RPC_RING];
	int64_t back;

	if (q->n_polled == q->n_cqe || (cqe->recv && q->deaf))
		return false;
	q->n_polled++;
	if (cqe->recv) {
		*done = (struct rpc_done){.kind = WR_RECV, .who = cqe->who};
		*n = 1;
		return true;
	}
	back = rxfer_sq_complete(&q->sq, (uint32_t)cqe->seq);
	rpc_expect(s, back == (int64_t)(cqe->seq + 1 - q->returned));
	q->returned = cqe->seq + 1;
	return true;
}

bool rpc_queue_poll(struct rpc_sim *s, struct rpc_queue *q, struct rpc_done *done, uint32_t *n)
{
	uint32_t max = prop_range(s->p, 1, prop_chance(s->p, 33) ? 3 : RPC_MAX_DONE);
	bool polled = oldest_is_done(q);

	*n = 0;
	while (!oldest_is_done(q) && !*n && take_one(s, q, done, n))
		polled = true;
	if (!*n)
		*n = hand_up(q, done, max);
	return polled;
}

/* A chain whose credits were just committed. */
static void chain(struct rpc_sim *s, struct rpc_queue *q, const struct rpc_op *op)
{
	uint32_t i;

	rpc_expect(s, q->head + op->n + 1 - q->returned <= q->depth);
	for (i = 0; i <= op->n && s->outcome == RPC_FINE; i++) {
		bool end = i == op->n;
		struct rxfer_sig_wr wr = {.must_signal = op->must && end,
					  .ends_io = end,
					  .ends_post = end && !op->more,
					  .io_epoch = op->epoch};
		struct rpc_wr *entry = &q->wr[q->head++ % RPC_RING];

		entry->kind = end ? op->last : op->kind;
		entry->who = op->who;
		entry->signalled = rxfer_sig_decide(&q->sig, &q->sq, &wr);
	}
}

uint64_t rpc_post_held(struct rpc_sim *s, struct rpc_queue *q, const struct rpc_op *op,
		       uint32_t *held, uint32_t keep)
{
	struct rpc_done *io = &q->post[q->n_post % RPC_RING];
	uint32_t first = 0;

	if (!rpc_expect(s, !rxfer_sq_commit(&q->sq, *held, op->n + 1, keep, &first)))
		return q->head - 1;
	*held = keep;
	rpc_expect(s, first == (uint32_t)q->head);
	rpc_expect(s, q->n_post - q->n_done < RPC_RING);
	chain(s, q, op);
	io->kind = op->last;
	io->who = op->who;
	io->last = q->head - 1;
	q->n_post++;
	return io->last;
}

/* ---- a run ---- */

static bool (*const events[RPC_EVENTS])(struct rpc_sim *s) = {
	rpc_client_start,  rpc_client_leave,   rpc_client_execute, rpc_client_poll,
	rpc_client_revoke, rpc_client_recv,    rpc_server_take,	   rpc_server_grant,
	rpc_server_leave,  rpc_server_execute, rpc_server_poll,	   rpc_server_reply,
};

/* By weight, so that delays differ; if that cannot be, whatever can, from some other on. */
static bool step(struct rpc_sim *s)
{
	uint32_t i, all = 0, dice;

	s->now += prop_range(s->p, 1, 100);
	for (i = 0; i < RPC_EVENTS; i++)
		all += s->c.weight[i];
	dice = prop_range(s->p, 0, all - 1);
	for (i = 0; dice >= s->c.weight[i]; i++)
		dice -= s->c.weight[i];
	if (events[i](s))
		return true;
	dice = prop_range(s->p, 0, RPC_EVENTS - 1);
	for (i = 0; i < RPC_EVENTS; i++) {
		if (events[(i + dice) % RPC_EVENTS](s))
			return true;
	}
	return false;
}

static void check_queue(struct rpc_sim *s, const struct rpc_queue *q, uint64_t held)
{
	rpc_expect(s, rxfer_sq_check(&q->sq) == 0);
	rpc_expect(s, rxfer_sq_posted(&q->sq) == q->head - q->returned);
	rpc_expect(s, q->sq.reserved == held + 1); /* and the drain */
	rpc_expect(s, q->handed <= q->returned);
}

/* What must hold at all times. */
static void check(struct rpc_sim *s)
{
	uint64_t client = 0, server = 0;
	uint32_t i;

	for (i = 0; i < s->c.slots; i++) {
		const struct rxfer_slot *slot = &s->slots.slot[i];
		const struct rpc_io *io = &s->io[i];

		client += slot->held;
		rpc_expect(s, (slot->pool == RXFER_SLOT_AVAILABLE) == !rpc_truly_in_use(s, io));
		rpc_expect(s, io->told == rpc_truly_complete(s, io));
	}
	for (i = 0; i < s->c.places; i++) {
		const struct rpc_place *place = &s->place[i];

		server += place->ticket.held;
		rpc_expect(s, (place->state == PROVING) == (place->reply >= s->server.handed));
	}
	check_queue(s, &s->client, client);
	check_queue(s, &s->server, server);
}

static void set_up_queue(struct rpc_sim *s, struct rpc_queue *q, uint32_t depth)
{
	q->depth = depth;
	rpc_expect(s, rxfer_sq_init(&q->sq, depth) == 0);
	rpc_expect(s, rxfer_sq_reserve(&q->sq, 1) == 0);
	q->head = (1ull << 32) - prop_range(s->p, 0, 200);
	q->gone = q->exec = q->returned = q->handed = q->head;
	q->sq.head = q->sq.tail = (uint32_t)q->head;
}

static void set_up(struct rpc_sim *s)
{
	const struct rpc_config *c = &s->c;
	uint32_t need = c->submit + c->later, server_need;

	set_up_queue(s, &s->client, c->client_depth);
	set_up_queue(s, &s->server, c->server_depth);
	rpc_expect(s, !rxfer_slots_init(&s->slots, &s->client.sq, c->slots, need, c->completes));
	rpc_expect(s, !rxfer_tickets_init(&s->tickets, &s->server.sq, c->most));
	server_need = s->tickets.need;
	if (s->broken == RPC_NO_REPLY_IN_N && server_need > 1)
		server_need--;
	rpc_expect(s, !rxfer_sig_init(&s->client.sig, c->client_signal,
				      prop_range(s->p, 1, c->client_depth), c->client_depth,
				      c->slots, need));
	rpc_expect(s, !rxfer_sig_init(&s->server.sig, c->server_signal,
				      prop_range(s->p, 1, c->server_depth), c->server_depth,
				      c->places, server_need));
	s->client.recvs = s->server.recvs = c->slots;
}

/* The tail is silent if and only if entries are out; the drain brings them back. */
static void drain(struct rpc_sim *s, struct rpc_queue *q, bool (*poll)(struct rpc_sim *s))
{
	uint64_t epoch = 0;
	const struct rpc_op op = {.last = WR_DRAIN, .must = true, .epoch = &epoch};
	uint32_t held = 1;

	rpc_expect(s, rxfer_sig_tail_silent(&q->sig) == (q->head != q->returned));
	if (rxfer_sig_tail_silent(&q->sig)) {
		rpc_post_held(s, q, &op, &held, 0);
		while (rpc_queue_leave(s, q) || rpc_queue_execute(s, q) || poll(s))
			;
	} else {
		rpc_expect(s, rxfer_sq_release(&q->sq, 1) == 0);
	}
	rpc_expect(s, rxfer_sq_free(&q->sq) == q->depth);
	rpc_expect(s, q->sq.peak <= q->depth);
}

static void all_is_back(struct rpc_sim *s)
{
	uint64_t ns = 0;
	uint32_t i;

	drain(s, &s->client, rpc_client_poll);
	drain(s, &s->server, rpc_server_poll);
	rpc_expect(s, rxfer_slots_count(&s->slots, RXFER_SLOT_AVAILABLE) == s->c.slots);
	for (i = 0; i < s->c.slots; i++)
		rpc_expect(s, s->io[i].told == s->io[i].handed);
	for (i = 0; i < s->c.places; i++)
		rpc_expect(s, s->place[i].state == FREE && s->place[i].moving == 0);
	for (i = 0; i < RXFER_SLOT_CAUSES; i++)
		ns += s->slots.waits[i].ns;
	rpc_expect(s, ns == s->slot_ns);
	rpc_expect(s, s->tickets.started.ns == s->ticket_ns);
	rpc_expect(s, s->tickets.rounds.count == s->later_rounds);
}

static enum rpc_outcome outcome(struct rpc_sim *s)
{
	while (s->outcome == RPC_FINE && step(s)) {
		if (s->broken <= RPC_NO_BACKLOG)
			check(s);
	}
	if (s->outcome != RPC_FINE)
		return s->outcome;
	if (s->complete != s->c.n_ios)
		return RPC_DEAD_LOCK;
	if (s->broken == RPC_NOTHING)
		all_is_back(s);
	return s->outcome;
}

enum rpc_outcome rpc_run(struct rpc_sim *s, struct prop *p, const struct rpc_config *c,
			 enum rpc_broken broken)
{
	*s = (struct rpc_sim){.p = p, .c = *c, .broken = broken};
	if (broken == RPC_PLACE_OF_SLOT)
		s->c.places = c->slots;
	set_up(s);
	if (s->outcome == RPC_FINE)
		s->outcome = outcome(s);
	rxfer_slots_free(&s->slots);
	return s->outcome;
}

/* lo..hi, in a third of the cases near @lo. */
static uint32_t often_tight(struct prop *p, uint32_t lo, uint32_t hi)
{
	return prop_chance(p, 33) ? prop_range(p, lo, lo + 3 < hi ? lo + 3 : hi)
				  : prop_range(p, lo, hi);
}

void rpc_random_config(struct rpc_config *c, struct prop *p, uint32_t most_ios)
{
	uint32_t need, i;

	*c = (struct rpc_config){.slots = prop_range(p, 1, RPC_MAX_SLOTS)};
	c->places = prop_chance(p, 50) ? c->slots : prop_range(p, 1, c->slots);
	c->later = prop_range(p, 0, RPC_MAX_NEED / 2);
	c->submit = prop_range(p, 1, RPC_MAX_NEED - c->later);
	need = c->submit + c->later;
	c->client_depth = often_tight(p, need + 1, 2 * need * c->slots + 1);
	c->most = prop_chance(p, 10) ? 0 : prop_range(p, 1, 30);
	c->server_depth = often_tight(p, c->most ? 3 : 2, 64);
	c->n_ios = prop_range(p, 1, most_ios);
	c->completes =
		(enum rxfer_slot_completes)prop_range(p, RXFER_SLOT_AT_REPLY, RXFER_SLOT_AT_ALL);
	c->client_signal = rxfer_sig_list(prop_range(p, 0, 3));
	c->server_signal = rxfer_sig_list(prop_range(p, 0, 3));
	c->write = prop_chance(p, 50);
	for (i = 0; i < RPC_EVENTS; i++)
		c->weight[i] = prop_chance(p, 30) ? 1 : prop_range(p, 1, 30);
}
