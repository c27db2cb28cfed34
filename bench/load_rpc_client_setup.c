/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RPC mode, the client's end: its memory, slots and lanes, made before anything is timed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "load_rpc_client.h"

static int make_areas(struct rpc_client *c)
{
	const struct cfg *cfg = c->load.cfg;
	uint64_t slots = cfg->qps * cfg->depth;
	int rc = load_make_work(&c->load, c->dev, c->rights ? c->rights : RXFER_LOCAL);

	if (!rc)
		rc = area_make(c->dev, slots * c->plan.request_room, RXFER_FIXED, &c->requests);
	if (!rc)
		rc = area_make(c->dev, slots * c->plan.reply_room, RXFER_FIXED, &c->replies);
	return rc;
}

static int make_arrays(struct rpc_client *c)
{
	size_t slots = c->load.cfg->qps * c->load.cfg->depth;

	c->lanes = calloc(c->load.cfg->qps, sizeof(*c->lanes));
	c->ios = calloc(slots, sizeof(*c->ios));
	c->frags = calloc(slots * (1 + c->plan.frags), sizeof(*c->frags));
	if (!c->lanes || !c->ios || !c->frags)
		return rxfer_fail(ENOMEM, "out of memory for %s in flight",
				  rxfer_count(slots, "I/O").s);
	c->load.lanes = (char *)c->lanes;
	c->load.stride = sizeof(c->lanes[0]);
	return 0;
}

/* The segments that its memory is. */
static int cut(const struct rpc_client *c, const struct lane *lane, struct io *io)
{
	int rc = rxfer_exposure_new(lane->conn, c->plan.frags, &io->exposure);

	if (!rc)
		rc = rxfer_exposure_cut(lane->conn, io->exposure, io->frags + 1, c->plan.frags,
					c->rights);
	if (!rc)
		io->asked.segs =
			(struct rxfer_seg *)rxfer_exposure_segs(io->exposure, &io->asked.nsegs);
	return rc;
}

/* @i: of the slot, over all QPs. */
static int init_io(struct rpc_client *c, struct lane *lane, size_t i)
{
	struct io *io = &c->ios[i];

	io->piece = (uint32_t)i;
	io->frags = c->frags + i * (1 + c->plan.frags);
	io->frags[0].addr = c->requests.base + i * c->plan.request_room;
	layout_frags(c->load.cfg, c->load.work.base + i * c->load.layout.slot, io->frags + 1);
	io->asked = (struct rpc_request){
		.id = (uint32_t)(io - lane->io),
		.op = c->plan.limits.op,
		.flags = c->plan.limits.flags,
		.length = c->load.cfg->size,
		.inline_len = c->plan.carries ? (uint32_t)c->load.cfg->size : 0,
	};
	return c->plan.moves ? cut(c, lane, io) : 0;
}

/* The request is written once, and posted again and again. */
static int prepare_request(const struct rpc_client *c, const struct lane *lane, struct io *io)
{
	const struct rxfer_op op = rpc_client_request(c, io);

	io->frags[0].len = rpc_request_write(io->frags[0].addr, &io->asked);
	if (c->plan.carries && c->load.access.pieces)
		return 0;
	return rxfer_prepare(lane->conn, &op, &io->request);
}

/* When an I/O is complete: see the top of the file. */
static enum rxfer_slot_completes completes(const struct rpc_client *c)
{
	if (c->load.cfg->defer == DEFER_RECV)
		return c->waits ? RXFER_SLOT_AT_ALL : RXFER_SLOT_AT_PROOF;
	return c->waits ? RXFER_SLOT_AT_REVOKE : RXFER_SLOT_AT_REPLY;
}

static int init_lane(struct rpc_client *c, uint64_t qp)
{
	struct lane *lane = &c->lanes[qp];
	size_t depth = c->load.cfg->depth;
	struct rxfer_conn_info info;
	int rc;

	lane->conn = c->load.conns[qp];
	lane->io = c->ios + qp * depth;
	lane->due_end = &lane->due;
	rxfer_conn_info(lane->conn, &info);
	c->later = info.later;
	if (c->later)
		c->flags |= RXFER_PART;
	shadow_init(&lane->shadow, info.sq_depth);
	rc = rxfer_slots_init(&lane->slots, rxfer_conn_sq(lane->conn), (uint32_t)depth, info.need,
			      completes(c));
	if (rc)
		return rxfer_fail(rc, "the slots of a connection: %s", strerror(-rc));
	for (size_t i = 0; !rc && i < depth; i++) {
		lane->io[i].slot = &lane->slots.slot[i];
		rc = init_io(c, lane, qp * depth + i);
		if (!rc)
			rc = prepare_request(c, lane, &lane->io[i]);
		if (!rc)
			rc = post_recv(c, lane, i);
	}
	return rc;
}

void rpc_client_free(struct load *l)
{
	struct rpc_client *c = client_of(l);

	for (uint64_t qp = 0; c->lanes && qp < l->cfg->qps; qp++)
		rxfer_slots_free(&c->lanes[qp].slots);
	for (uint64_t i = 0; c->ios && i < l->cfg->qps * l->cfg->depth; i++)
		rxfer_unprepare(c->ios[i].request);
	load_drop_work(l);
	area_drop(&c->requests);
	area_drop(&c->replies);
	free(c->lanes);
	free(c->ios);
	free(c->frags);
	free(c);
}

static int set_up(struct rpc_client *c)
{
	const struct cfg *cfg = c->load.cfg;
	int rc = rpc_revoke(cfg, &c->revoke);

	c->rights = rpc_rights(&c->plan);
	c->keys = c->rights && rxfer_strategy_keys_vary(cfg->strategy);
	c->revokes = c->rights && c->revoke != RXFER_REVOKE_NONE && c->revoke != RXFER_REVOKE_LAZY;
	c->waits = c->revoke == RXFER_REVOKE_SYNC || c->revoke == RXFER_REVOKE_REMOTE;
	c->by_wr = rxfer_strategy_by_wr(cfg->strategy);
	c->infers = !strcmp(cfg->signal, "inferred");
	c->flags = cfg->defer == DEFER_RECV ? RXFER_MUST_SIGNAL : 0;
	if (!rc)
		rc = make_areas(c);
	if (!rc)
		rc = make_arrays(c);
	for (uint64_t qp = 0; !rc && qp < cfg->qps; qp++)
		rc = init_lane(c, qp);
	return rc;
}

int rpc_client_new(const struct cfg *cfg, const struct layout *layout, struct rxfer_dev *dev,
		   struct rxfer_conn **conns, struct watch *watch, struct load **out)
{
	struct rpc_client *c = calloc(1, sizeof(*c));

	if (!c)
		return rxfer_fail(ENOMEM, "out of memory");
	load_init(&c->load, cfg, layout, conns, watch);
	c->load.ops = &rpc_client_ops;
	c->load.answered = true;
	c->dev = dev;
	rpc_plan_make(cfg, &c->plan);
	*out = &c->load;
	return set_up(c);
}
