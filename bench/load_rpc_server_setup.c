/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RPC mode, the server's end: its memory, places and lanes, made before anything is timed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "load_rpc_server.h"

static int make_areas(struct rpc_server *s, const struct layout *layout, struct rxfer_dev *dev)
{
	uint64_t qps = s->cfg->qps, places = qps * s->plan.places;
	bool has_data = s->plan.moves || s->plan.brings;
	unsigned int rights = s->plan.limits.op == RPC_READ ? RXFER_READ_SINK : RXFER_LOCAL;
	uint64_t requests = qps * s->cfg->depth * s->plan.request_room;
	int rc = s->plan.carries ? area_make_io(dev, s->cfg, requests, RXFER_FIXED, &s->recvs)
				 : area_make(dev, requests, RXFER_FIXED, &s->recvs);

	if (!rc)
		rc = area_make(dev, places * s->plan.reply_room, RXFER_FIXED, &s->replies);
	if (!rc && has_data)
		rc = area_make_io(dev, s->cfg, places * layout->slot, rights, &s->data);
	return rc;
}

static int make_arrays(struct rpc_server *s)
{
	size_t places = s->cfg->qps * s->plan.places, frags = s->plan.frags;
	size_t segs = s->plan.limits.segs;

	s->lanes = calloc(s->cfg->qps, sizeof(*s->lanes));
	s->places = calloc(places, sizeof(*s->places));
	s->segs = calloc(places * (frags + segs) + frags + segs, sizeof(*s->segs));
	s->frags = calloc((places + 1) * frags, sizeof(*s->frags));
	s->backlog = calloc(s->cfg->qps * s->cfg->depth, sizeof(*s->backlog));
	if (!s->lanes || !s->places || !s->segs || !s->frags || !s->backlog)
		return rxfer_fail(ENOMEM, "out of memory for %s at the server",
				  rxfer_count(places, "I/O").s);
	s->part.local = s->segs + places * (frags + segs);
	s->part.remote = s->part.local + frags;
	s->part_frags = s->frags + places * frags;
	return 0;
}

/* A reply without data is the same post each time, and all but two fields of it are the same. */
static int prepare_reply(const struct rpc_server *s, const struct lane *lane, struct place *p)
{
	const struct rpc_reply ok = {.status = RPC_OK};
	const struct rxfer_op op = {.op = RXFER_SEND,
				    .local = &p->message,
				    .nlocal = 1,
				    .fixed = 1,
				    .epoch = &p->epoch};

	rpc_reply_write(p->message.addr, &ok);
	return s->plan.brings ? 0 : rxfer_prepare(lane->conn, &op, &p->answer);
}

static const struct rxfer_seg anywhere = {.len = UINT32_MAX};

/* Nor is what moves all data another post, but for where they lie at the client's. */
static int prepare_move(const struct rpc_server *s, const struct lane *lane, struct place *p)
{
	const enum rxfer_opcode write = s->plan.imm ? RXFER_WRITE_IMM : RXFER_WRITE;
	const struct rxfer_op op = {.op = s->plan.limits.op == RPC_READ ? RXFER_READ : write,
				    .local = p->frags,
				    .nlocal = s->plan.frags,
				    .remote = &anywhere,
				    .nremote = 1,
				    .epoch = &p->epoch};

	return s->plan.moves ? rxfer_prepare(lane->conn, &op, &p->move) : 0;
}

static void init_place(struct rpc_server *s, const struct layout *layout, size_t i)
{
	size_t frags = s->plan.frags, segs = s->plan.limits.segs;
	struct place *p = &s->places[i];

	p->frags = s->frags + i * frags;
	p->local = s->segs + i * (frags + segs);
	p->segs = p->local + frags;
	p->message = (struct rxfer_frag){s->replies.base + i * s->plan.reply_room, s->plan.reply};
	if (!s->data.len)
		return;
	layout_frags(s->cfg, s->data.base + i * layout->slot, p->frags);
	for (size_t k = 0; k < frags; k++)
		p->local[k] = (struct rxfer_seg){(uintptr_t)p->frags[k].addr, p->frags[k].len, 0};
}

/* Where it is: WRs that move the data of an I/O, at most; and into one segment. */
static uint32_t most_wrs(const struct rpc_server *s)
{
	return rxfer_cut_worst(1, s->plan.wrs, 1, s->cfg->size, s->bytes_max);
}

static uint32_t wrs_into_one(const struct rpc_server *s, const struct lane *lane)
{
	struct rxfer_cut cut;

	rxfer_cut_init(&cut, lane->places->local, s->plan.frags, &anywhere, 1, lane->sge_max,
		       s->bytes_max);
	return rxfer_cut_count(&cut);
}

static int init_tickets(struct rpc_server *s, struct lane *lane)
{
	struct rxfer_conn_info info;
	int rc;

	rxfer_conn_info(lane->conn, &info);
	lane->sge_max = info.frags_per_wr;
	s->bytes_max = info.bytes_per_wr;
	rc = rxfer_tickets_init(&lane->tickets, rxfer_conn_sq(lane->conn),
				s->plan.moves ? most_wrs(s) - s->plan.imm : 0);
	if (!rc && lane->tickets.need != info.need)
		return rxfer_fail(EPROTO, "a bug of ours: N is %u, and %u by the tickets",
				  info.need, lane->tickets.need);
	lane->wrs = wrs_into_one(s, lane);
	if (lane->wrs - s->plan.imm > lane->tickets.chunk)
		lane->wrs = 0;
	return rc ? rxfer_fail(rc, "the queue for credits: %s", strerror(-rc)) : 0;
}

static int init_lane(struct rpc_server *s, const struct layout *layout, uint64_t qp)
{
	struct lane *lane = &s->lanes[qp];
	int rc;

	lane->conn = s->conns[qp];
	lane->places = s->places + qp * s->plan.places;
	lane->backlog = s->backlog + qp * s->cfg->depth;
	for (uint32_t i = 0; i < s->plan.places; i++) {
		init_place(s, layout, qp * s->plan.places + i);
		lane->places[i].next = lane->free;
		lane->free = &lane->places[i];
	}
	lane->nfree = s->plan.places;
	rc = init_tickets(s, lane);
	for (uint32_t i = 0; !rc && i < s->plan.places; i++) {
		rc = prepare_reply(s, lane, &lane->places[i]);
		if (!rc)
			rc = prepare_move(s, lane, &lane->places[i]);
	}
	if (!rc)
		rc = rpc_ids_init(&lane->ids, s->plan.limits.slots);
	for (uint64_t i = 0; !rc && i < s->cfg->depth; i++)
		rc = post_recv(s, lane, i);
	return rc;
}

int rpc_server_new(const struct cfg *cfg, const struct layout *layout, struct rxfer_dev *dev,
		   struct rxfer_conn **conns, const struct clock *clock, struct rpc_server **out)
{
	struct rpc_server *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return rxfer_fail(ENOMEM, "out of memory");
	s->cfg = cfg;
	s->clock = clock;
	s->conns = conns;
	*out = s;
	rpc_plan_make(cfg, &s->plan);
	rc = make_areas(s, layout, dev);
	if (!rc)
		rc = make_arrays(s);
	for (uint64_t qp = 0; !rc && qp < cfg->qps; qp++)
		rc = init_lane(s, layout, qp);
	return rc;
}

void rpc_server_free(struct rpc_server *s)
{
	if (!s)
		return;
	for (uint64_t i = 0; s->lanes && i < s->cfg->qps; i++)
		rpc_ids_free(&s->lanes[i].ids);
	for (uint64_t i = 0; s->places && i < s->cfg->qps * s->plan.places; i++) {
		rxfer_unprepare(s->places[i].answer);
		rxfer_unprepare(s->places[i].move);
	}
	area_drop(&s->recvs);
	area_drop(&s->replies);
	area_drop(&s->data);
	free(s->lanes);
	free(s->places);
	free(s->segs);
	free(s->frags);
	free(s->backlog);
	free(s);
}
