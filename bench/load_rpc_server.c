/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RPC mode, the server's end: take requests, move their data, reply.
 *
 * A request finds a place: memory for its data and a buffer for its reply. Its RECV is posted again
 * there and then, before anything that could make the client send the next one. The place queues
 * up for credits as one ticket, for all WRs of the I/O and the reply (ticket.h). WRITEs and the
 * reply go out as one chain; READs are awaited, and then the reply goes.
 *
 * A place is no request's id: with the reply the id is the client's again, but the reply's buffer,
 * and the bytes that were written from, are free only when a completion proves them sent. A request
 * that arrives when no place is free waits in the backlog, in its RECV buffer; there is one for
 * each request that can be in flight.
 *
 * What a client sends may be anything. It is checked before a byte of it is used (rpc_msg.c), ids
 * against those that are in flight (rpc_ids), and how its segments lie against the most WRs that
 * were agreed on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "load_rpc_server.h"

static struct place *place_of(struct rxfer_ticket *ticket)
{
	return (struct place *)ticket; /* its first member */
}

/* Waits are timed where phases are. */
static uint64_t now(const struct rpc_server *s)
{
	return s->cfg->timing == TIMING_PHASES ? clock_ticks(s->clock) : 0;
}

static struct rpc_bytes bytes_of(const struct rpc_server *s, const struct lane *lane,
				 const struct place *p)
{
	return (struct rpc_bytes){number_of(s, lane), p->number, s->cfg->size, " at the server"};
}

/* ---- Replies ---- */

/* Its data go into the reply by copy, behind the header. */
static void bring_data(struct rpc_server *s, struct place *p, char *to)
{
	uint64_t left = p->length;

	for (uint32_t i = 0; left; i++) {
		uint64_t len = p->frags[i].len < left ? p->frags[i].len : left;

		memcpy(to, p->frags[i].addr, len);
		to += len;
		left -= len;
	}
	s->copied += p->length;
}

/* The ring holds all that places can have in flight, and credits were held: nothing is waited for.
 */
static int posted(int rc)
{
	return rc == -EAGAIN ? rxfer_fail(EPROTO, "a bug of ours: no room for a post of the server")
			     : rc;
}

static int not_granted(int err)
{
	return rxfer_fail(err, "a bug of ours: the server posts what was not granted");
}

static uint64_t number_in(const struct lane *lane, const struct place *p)
{
	return (uint64_t)(p - lane->places);
}

/* A reply with data has as many bytes as were asked for; it revokes nothing, as nothing was
 * exposed. */
static int reply_with_data(struct rpc_server *s, struct lane *lane, struct place *p)
{
	const struct rpc_reply reply = {.id = p->id,
					.status = RPC_OK,
					.bytes = p->length,
					.inline_len = (uint32_t)p->length};
	const struct rxfer_op op = {.op = RXFER_SEND,
				    .local = &p->message,
				    .nlocal = 1,
				    .fixed = 1,
				    .id = number_in(lane, p),
				    .epoch = &p->epoch};

	p->message.len = rpc_reply_write(p->message.addr, &reply);
	bring_data(s, p, (char *)p->message.addr + p->message.len);
	p->message.len += reply.inline_len;
	return posted(rxfer_post_held(lane->conn, &op, &p->ticket.held, 0));
}

/* What comes before any reply: its id is the client's again, and it was granted. */
static int begin_reply(struct lane *lane, struct place *p)
{
	int rc = rpc_ids_give(&lane->ids, p->id);

	if (rc)
		return rc;
	rc = rxfer_ticket_spend(&lane->tickets, &p->ticket, true);
	return rc < 0 ? not_granted(rc) : 0;
}

static unsigned int reply_flags(const struct rpc_server *s)
{
	return s->plan.invalidates ? RXFER_INVALIDATE : 0;
}

static int reply(struct rpc_server *s, struct lane *lane, struct place *p)
{
	int rc = begin_reply(lane, p);

	if (rc)
		return rc;
	if (!p->answer)
		return reply_with_data(s, lane, p);
	rpc_reply_set(p->message.addr, p->id, p->length);
	return posted(rxfer_post_prepared_held(p->answer, p->segs[0].key, number_in(lane, p),
					       reply_flags(s), &p->ticket.held, 0));
}

/* ---- Moving data ---- */

/* The next @wrs WRs of an I/O that goes in rounds. */
static void next_part(struct rpc_server *s, struct place *p, uint32_t wrs, struct rxfer_op *op)
{
	struct rxfer_part *part = &s->part;

	rxfer_cut_take(&p->cut, wrs, part);
	for (uint32_t i = 0; i < part->nlocal; i++)
		s->part_frags[i] = (struct rxfer_frag){(void *)(uintptr_t)part->local[i].addr,
						       part->local[i].len};
	op->local = s->part_frags;
	op->nlocal = part->nlocal;
	op->remote = part->remote;
	op->nremote = part->nremote;
}

static int post_lists(struct rpc_server *s, struct lane *lane, struct place *p, struct rxfer_op *op,
		      uint32_t wrs, uint32_t keep)
{
	op->local = p->frags;
	op->nlocal = s->plan.frags;
	op->remote = p->segs;
	op->nremote = p->nsegs;
	if (!p->whole)
		next_part(s, p, wrs, op);
	return posted(rxfer_post_held(lane->conn, op, &p->ticket.held, keep));
}

static bool in_one_segment(const struct place *p)
{
	return p->whole && p->nsegs == 1;
}

/* The WRs that were granted: all data of the I/O, mostly, and into one segment. @keep: of its
 * credits. */
static int post_data(struct rpc_server *s, struct lane *lane, struct place *p,
		     enum rxfer_opcode opcode, uint32_t wrs, unsigned int flags, uint32_t keep)
{
	struct rxfer_op op;

	if (in_one_segment(p))
		return posted(rxfer_post_prepared_to(p->move, p->segs, p->id, number_in(lane, p),
						     flags, &p->ticket.held, keep));
	op = (struct rxfer_op){.op = opcode,
			       .imm = p->id,
			       .id = number_in(lane, p),
			       .flags = flags,
			       .epoch = &p->epoch};
	return post_lists(s, lane, p, &op, wrs, keep);
}

/* The reply waits for the last of them. */
static int post_reads(struct rpc_server *s, struct lane *lane, struct place *p, uint32_t wrs,
		      bool last)
{
	p->reads++;
	return post_data(s, lane, p, RXFER_READ, wrs, RXFER_PART | (last ? RXFER_MUST_SIGNAL : 0),
			 1);
}

/* The last WRITEs and the reply are one chain. */
static int post_writes(struct rpc_server *s, struct lane *lane, struct place *p, uint32_t wrs,
		       bool last)
{
	int rc;

	if (!last)
		return post_data(s, lane, p, RXFER_WRITE, wrs, RXFER_PART, 1);
	if (!in_one_segment(p)) {
		rc = post_data(s, lane, p, RXFER_WRITE, wrs, RXFER_PART | RXFER_MORE, 1);
		return rc ? rc : reply(s, lane, p);
	}
	rc = begin_reply(lane, p);
	if (rc)
		return rc;
	rpc_reply_set(p->message.addr, p->id, p->length);
	return posted(rxfer_post_prepared_two(p->move, p->segs, p->answer, p->segs[0].key,
					      number_in(lane, p), reply_flags(s), &p->ticket.held));
}

/* The last WRITE is the reply: its credit is the ticket's one for that. */
static int post_last_imm(struct rpc_server *s, struct lane *lane, struct place *p, uint32_t wrs)
{
	int rc = begin_reply(lane, p);

	return rc ? rc : post_data(s, lane, p, RXFER_WRITE_IMM, wrs + 1, 0, 0);
}

/* Its ticket was granted WRs; with the last of them, or with none, comes the reply. */
static int go_on(struct rpc_server *s, struct lane *lane, struct place *p)
{
	bool last = rxfer_ticket_is_last(&p->ticket);
	uint32_t wrs = p->ticket.wrs;
	int rc;

	if (!s->plan.moves)
		return reply(s, lane, p);
	rc = wrs ? rxfer_ticket_spend(&lane->tickets, &p->ticket, false) : 0;
	if (rc < 0)
		return not_granted(rc);
	if (s->plan.limits.op == RPC_READ)
		return post_reads(s, lane, p, wrs, last);
	return last && s->plan.imm ? post_last_imm(s, lane, p, wrs)
				   : post_writes(s, lane, p, wrs, last);
}

/* Those who waited for credits, in turn. */
static int grant(struct rpc_server *s, struct lane *lane)
{
	struct rxfer_ticket *ticket;
	int rc = 0;

	while (!rc && (ticket = rxfer_tickets_next(&lane->tickets, now(s))))
		rc = go_on(s, lane, place_of(ticket));
	return rc;
}

/* ---- Requests ---- */

static int too_many(const struct rpc_server *s, const struct lane *lane, const struct place *p,
		    uint32_t wrs)
{
	return rxfer_fail(
		EBADMSG,
		"the segments of request %u lie so that its data take %u WRs (agreed were %u)",
		p->id, wrs, lane->tickets.most + s->plan.imm);
}

/* How many WRs its data take. All of it in one segment, as mostly, is no walk. */
static uint32_t count_wrs(const struct rpc_server *s, const struct lane *lane, struct place *p)
{
	uint32_t wrs;

	p->whole = p->length == s->cfg->size;
	if (p->whole && p->nsegs == 1 && lane->wrs)
		return lane->wrs;
	rxfer_cut_init(&p->cut, p->local, s->plan.frags, p->segs, p->nsegs, lane->sge_max,
		       s->bytes_max);
	wrs = rxfer_cut_count(&p->cut);
	p->whole = p->whole && wrs - s->plan.imm <= lane->tickets.chunk;
	return wrs;
}

static int start(struct rpc_server *s, struct lane *lane, struct place *p)
{
	uint32_t wrs = s->plan.moves ? count_wrs(s, lane, p) : 0;
	int rc;

	if (s->cfg->verify && s->plan.limits.op == RPC_READ)
		rpc_bytes_poison(p->frags, s->plan.frags);
	else if (s->cfg->verify && s->plan.limits.op == RPC_WRITE)
		rpc_bytes_fill(p->frags, s->plan.frags, bytes_of(s, lane, p));
	rc = rxfer_ticket_take(&lane->tickets, &p->ticket, wrs - s->plan.imm, now(s));
	if (rc == -EMSGSIZE)
		return too_many(s, lane, p, wrs);
	if (rc < 0)
		return rxfer_fail(rc, "a bug of ours: a place is used twice");
	return rc ? go_on(s, lane, p) : 0;
}

static int parse(struct rpc_server *s, struct lane *lane, struct place *p, const char *message,
		 uint32_t bytes)
{
	struct rpc_request r = {.segs = p->segs};
	struct rxfer_frag carried;
	int rc = rpc_request_parse(message, bytes, &s->plan.limits, &r);

	if (!rc)
		rc = rpc_ids_take(&lane->ids, r.id);
	if (rc)
		return rc;
	p->id = r.id;
	p->length = r.length;
	p->nsegs = r.nsegs;
	p->number = lane->numbers++;
	if (!s->cfg->verify || !s->plan.carries)
		return 0;
	carried = (struct rxfer_frag){(void *)(uintptr_t)r.inline_data, r.inline_len};
	return rpc_bytes_check(&carried, 1, p->length, bytes_of(s, lane, p));
}

/* There is a free place. */
static int take_request(struct rpc_server *s, struct lane *lane, uint32_t recv, uint32_t bytes)
{
	struct place *p = lane->free;
	int rc = parse(s, lane, p, recv_buffer(s, lane, recv), bytes);

	if (!rc)
		rc = post_recv(s, lane, recv);
	if (rc)
		return rc;
	lane->free = p->next;
	lane->nfree--;
	return start(s, lane, p);
}

static int arrived(struct rpc_server *s, struct lane *lane, const struct rxfer_done *done)
{
	uint32_t slots = s->plan.limits.slots;

	if (done->with_imm)
		return rxfer_fail(EBADMSG,
				  "the client sent immediate data %u, which nobody asked for",
				  done->imm);
	if (lane->free && !lane->waiting)
		return take_request(s, lane, (uint32_t)done->id, (uint32_t)done->bytes);
	lane->backlog[(lane->first + lane->waiting++) % slots] =
		(struct backlog){(uint32_t)done->id, (uint32_t)done->bytes, now(s)};
	s->backlogged++;
	return 0;
}

/* Its reply is proven: it is free, for the oldest request that waits for it. */
static int free_place(struct rpc_server *s, struct lane *lane, struct place *p)
{
	struct backlog oldest;

	p->next = lane->free;
	lane->free = p;
	lane->nfree++;
	if (!lane->waiting)
		return 0;
	oldest = lane->backlog[lane->first];
	lane->first = (lane->first + 1) % s->plan.limits.slots;
	lane->waiting--;
	s->backlog_time += now(s) - oldest.since;
	return take_request(s, lane, oldest.recv, oldest.bytes);
}

static int read_done(struct rpc_server *s, struct lane *lane, struct place *p)
{
	int rc = 0;

	p->reads--;
	if (p->reads || p->ticket.wrs || !rxfer_ticket_is_last(&p->ticket))
		return 0;
	if (s->cfg->verify)
		rc = rpc_bytes_check(p->frags, s->plan.frags, p->length, bytes_of(s, lane, p));
	return rc ? rc : reply(s, lane, p);
}

static int take(struct rpc_server *s, struct lane *lane, const struct rxfer_done *done)
{
	switch (done->op) {
	case RXFER_RECV:
		return arrived(s, lane, done);
	case RXFER_READ:
		return read_done(s, lane, &lane->places[done->id]);
	case RXFER_WRITE:
		return 0; /* the reply behind it proves no less */
	default:
		return free_place(s, lane, &lane->places[done->id]);
	}
}

/* One look at one QP, as long as there is something, but not for ever: others wait. */
static int pass(struct rpc_server *s, struct lane *lane)
{
	struct rxfer_done done[BURST];
	int did = 0, n, rc = 0;

	do {
		n = rxfer_poll(lane->conn, done, BURST);
		if (n < 0)
			return n;
		did += n;
		for (int i = 0; !rc && i < n; i++)
			rc = take(s, lane, &done[i]);
		if (!rc && n && lane->tickets.first)
			rc = grant(s, lane);
	} while (!rc && n && did < BURST && rxfer_more(lane->conn));
	return rc ? rc : did;
}

int rpc_server_pass(struct rpc_server *s)
{
	int did = 0;

	for (struct lane *lane = s->lanes; lane < s->lanes + s->cfg->qps; lane++) {
		int rc = pass(s, lane);

		if (rc < 0)
			return rc;
		did += rc;
	}
	return did;
}

int rpc_server_quiet(struct rpc_server *s, bool *yes)
{
	const struct rxfer_seg nowhere = {0};

	*yes = true;
	for (struct lane *lane = s->lanes; lane < s->lanes + s->cfg->qps; lane++) {
		int rc = 0;

		if (lane->nfree == s->plan.places && rxfer_idle(lane->conn))
			continue;
		*yes = false;
		if (!lane->ids.in_flight && !lane->waiting)
			rc = rxfer_drain(lane->conn, &nowhere);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- Counts ---- */

void rpc_server_restart(struct rpc_server *s)
{
	s->backlogged = s->backlog_time = s->copied = 0;
	for (uint64_t i = 0; i < s->cfg->qps; i++)
		rxfer_tickets_restart(&s->lanes[i].tickets);
}

void rpc_server_count(const struct rpc_server *s, struct counts *c)
{
	c->unproven += s->backlogged;
	c->unproven_ns += clock_ns(s->clock, s->backlog_time);
	c->copied_bytes += s->copied;
	for (uint64_t i = 0; i < s->cfg->qps; i++) {
		const struct rxfer_tickets *t = &s->lanes[i].tickets;

		c->stalls += t->started.count;
		c->stall_ns += clock_ns(s->clock, t->started.ns);
		c->round_waits += t->rounds.count;
		c->round_wait_ns += clock_ns(s->clock, t->rounds.ns);
	}
}

const struct area *rpc_server_memory(const struct rpc_server *s)
{
	return s->data.len ? &s->data : &s->recvs;
}
