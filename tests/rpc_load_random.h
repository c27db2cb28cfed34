/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random options and a random device, for RPC mode on the test double: all that goes together. */
#ifndef RXFER_TESTS_RPC_LOAD_RANDOM_H
#define RXFER_TESTS_RPC_LOAD_RANDOM_H

#include <stdio.h>
#include <string.h>
#include "access.h"
#include "prop.h"
#include "rpc_load_fixture.h"

#define MEMORY_BYTES (6u << 20) /* of all slots at both ends, about */
#define MOVED_BYTES  (2u << 20) /* in a phase, unless it has few I/Os */

/*
 * struct random_run - what ends the timed phase: @cfg's iters, each 0 where it does not:
 * @duration: ns; @stop_after: passes of the client, then it is told to stop
 */
struct random_run {
	struct cfg cfg;
	struct fake_config device;
	uint64_t stop_after, duration;
};

static inline uint32_t random_size(struct prop *p)
{
	uint32_t dice = prop_range(p, 1, 100);

	if (dice <= 4)
		return 0;
	if (dice <= 40)
		return prop_range(p, 1, 200);
	if (dice <= 80)
		return prop_range(p, 1, 4096);
	return dice <= 95 ? prop_range(p, 1, 16384) : prop_range(p, 16384, 65536);
}

static inline void random_memory(struct random_run *r, struct prop *p)
{
	struct cfg *c = &r->cfg;
	struct layout layout;
	uint64_t most;

	c->size = random_size(p);
	c->frags = prop_chance(p, 35) || !c->size
			   ? 1
			   : prop_range(p, 1, prop_chance(p, 10) ? RPC_SEGS_MAX : 40);
	if (c->frags > c->size && c->size)
		c->frags = c->size;
	c->frag_gap = prop_chance(p, 40) ? 0 : prop_chance(p, 50) ? 4096 : prop_range(p, 1, 100);
	c->misalign = prop_chance(p, 60) ? 0 : prop_range(p, 1, 4095);
	c->qps = prop_range(p, 1, RPC_LOAD_QPS);
	c->depth = prop_chance(p, 40) ? prop_range(p, 1, 4) : prop_range(p, 1, 32);
	layout_make(c, &layout);
	most = MEMORY_BYTES / (3 * c->qps * (layout.slot + 1));
	if (c->depth > most)
		c->depth = most ? most : 1;
}

static inline void random_messages(struct random_run *r, struct prop *p)
{
	static const uint64_t ops[] = {OP_READ, OP_READ, OP_WRITE, OP_WRITE, OP_SEND};
	struct cfg *c = &r->cfg;

	c->op = ops[prop_range(p, 0, 4)];
	if (c->op != OP_SEND && prop_chance(p, 20))
		c->inline_threshold = prop_range(p, 1, 4096);
	if (c->op == OP_WRITE && c->size > c->inline_threshold && !r->device.device[0].iwarp &&
	    prop_chance(p, 35))
		c->reply = REPLY_IMM;
	c->defer = prop_chance(p, 25) ? DEFER_RECV : DEFER_SLOT;
	c->post = prop_chance(p, 25) ? POST_SINGLE : POST_CHAIN;
	c->timing = prop_range(p, TIMING_OFF, TIMING_PHASES);
	if (prop_chance(p, 6))
		c->rate = prop_range(p, 100000, 5000000);
}

static inline void random_strategies(struct random_run *r, struct prop *p)
{
	static const char *const names[] = {"global", "multi-wr", "per-io",
					    "per-io", "rcache",	  "bounce"};
	struct cfg *c = &r->cfg;
	struct rpc_plan plan;

	strcpy(c->strategy, names[prop_range(p, 0, 5)]);
	strcpy(c->peer_strategy, names[prop_range(p, 0, 5)]);
	rpc_plan_make(c, &plan);
	if (!plan.carries && !r->device.device[0].iwarp && prop_chance(p, 50))
		strcpy(c->strategy, "frwr");
	do
		c->revoke = prop_range(p, RXFER_REVOKE_NONE, RXFER_REVOKE_AUTO);
	while (rxfer_strategy_revokes(c->strategy, (enum rxfer_revoke)c->revoke) ||
	       (c->reply == REPLY_IMM && c->revoke == RXFER_REVOKE_REMOTE));
	c->mw_renew = prop_chance(p, 30);
	c->rcache_max = prop_range(p, 1, 30); /* mostly fewer than are in use */
	c->rcache_max_bytes = prop_chance(p, 50) ? 0 : prop_range(p, 1, 100000);
	c->rcache_merge = prop_chance(p, 30);
}

static inline void random_device(struct random_run *r, struct prop *p)
{
	struct fake_config *f = &r->device;
	struct fake_device *d = &f->device[0];

	*f = engine_config();
	f->seed = prop_next(p) | 1;
	f->sq_delay = prop_chance(p, 40) ? 0 : prop_range(p, 0, prop_chance(p, 20) ? 300 : 40);
	f->rq_delay = prop_chance(p, 50) ? 0 : prop_range(p, 0, 40);
	f->read_lag = prop_chance(p, 50) ? 0 : prop_range(p, 0, 30);
	f->sq_extra = prop_chance(p, 60) ? 0 : prop_range(p, 1, 50);
	f->poll_every = prop_chance(p, 80) ? 0 : prop_range(p, 2, 9);
	f->cq_order = (enum fake_cq_order)prop_range(p, FAKE_CQ_WRITTEN, FAKE_CQ_RANDOM);
	d->mtu = 256u << prop_range(p, 0, 4);
	d->max_sge = prop_chance(p, 40) ? 30 : prop_range(p, 1, 6);
	d->max_sge_rd = prop_chance(p, 50) ? d->max_sge : prop_range(p, 1, d->max_sge);
	d->max_rd_atomic = prop_range(p, 1, 8);
	d->iwarp = prop_chance(p, 20);
	f->early_sends = d->iwarp && prop_chance(p, 60);
}

static inline void random_wrs(struct random_run *r, struct prop *p)
{
	const struct fake_device *d = &r->device.device[0];
	struct cfg *c = &r->cfg;

	if (prop_chance(p, 30))
		c->max_sge = prop_range(p, 1, d->max_sge_rd);
	if (prop_chance(p, 30))
		c->inline_max = prop_range(p, 1, d->max_inline);
	c->rd_atomic = prop_chance(p, 70) ? 0 : prop_range(p, 1, d->max_rd_atomic);
}

/* Often less than what the server moves, though no less than a message: it moves it in up to some
 * 20 WRs for that alone. */
static inline void random_limit(struct random_run *r, const struct rpc_plan *plan, struct prop *p)
{
	size_t room = plan->request_room > plan->reply_room ? plan->request_room : plan->reply_room;
	uint32_t least = (uint32_t)r->cfg.size / 20 + 1;

	if (least < room)
		least = (uint32_t)room;
	if (plan->moves && r->cfg.size >= least && prop_chance(p, 50))
		r->device.device[0].max_msg_size = prop_range(p, least, (uint32_t)r->cfg.size);
}

/* The client's N: the request; and where WRs grant a key for each run, and revoke it, these. */
static inline uint32_t client_need(const struct cfg *c, const struct rpc_plan *plan)
{
	uint32_t runs = c->frag_gap ? (uint32_t)c->frags : 1;

	if (!plan->moves || strcmp(c->strategy, "frwr"))
		return 1;
	return 1 + 2 * runs - (c->revoke == RXFER_REVOKE_REMOTE);
}

/* The server's N, and a depth with which each of its places could have so many entries, and N were
 * still free. */
static inline uint32_t server_need(const struct random_run *r, bool moves, bool imm)
{
	const struct cfg *c = &r->cfg;
	bool one = !strcmp(c->strategy, "bounce") && !strcmp(c->peer_strategy, "bounce");
	uint32_t pieces = one ? 1 : (uint32_t)c->frags;
	/* each has a byte at least, and of the rest each WR more is full */
	uint32_t full = moves ? (uint32_t)(c->size - pieces) / r->device.device[0].max_msg_size : 0;

	return 1 + (moves ? pieces + full - imm : 0);
}

static inline uint64_t ample_depth(const struct random_run *r, bool moves, bool imm)
{
	return (2 * r->cfg.depth + 1) * server_need(r, moves, imm) + 1;
}

/* @need: N; @least, @most: between which the depth may be. Often one of the smallest. */
static inline uint64_t random_depth(struct prop *p, uint64_t slots, uint32_t need, uint32_t least,
				    uint32_t most)
{
	uint32_t all = 2 * need * (uint32_t)slots + 1;

	if (all > most)
		all = most;
	switch (prop_range(p, 0, 4)) {
	case 0:
		return 0;
	case 1:
		return need + 1;
	case 2:
		return prop_range(p, least, need + 1);
	default:
		return prop_range(p, least, all);
	}
}

static inline void random_signal(struct prop *p, uint64_t depth, char *text)
{
	static const char *const names[] = {"all", "io", "half", "half"};
	uint32_t i = prop_range(p, 0, 4);

	if (i < 4)
		strcpy(text, names[i]);
	else
		snprintf(text, CFG_TEXT, "every:%u",
			 prop_range(p, 1, depth ? (uint32_t)depth : 60));
}

/* The client's least is the drain and N. The server's least is the drain, the reply, and a WR for
 * data where there is one besides. */
static inline void random_queues(struct random_run *r, const struct rpc_plan *plan, struct prop *p)
{
	struct cfg *c = &r->cfg;
	uint32_t need = server_need(r, plan->moves, plan->imm), own = client_need(c, plan);
	uint32_t most = r->device.device[0].max_qp_wr;

	c->sq_depth = random_depth(p, c->depth, own, own + 1, most);
	c->peer_sq_depth = random_depth(p, c->depth, need, need > 1 ? 3 : 2, most);
	if (prop_chance(p, 30) && ample_depth(r, plan->moves, plan->imm) < 500)
		c->peer_sq_depth = ample_depth(r, plan->moves, plan->imm);
	random_signal(p, c->sq_depth, c->signal);
	if (prop_chance(p, 10))
		strcpy(c->signal, "inferred");
	random_signal(p, c->peer_sq_depth, c->peer_signal);
}

/* How many I/Os, and what ends the timed phase otherwise. */
static inline void random_phases(struct random_run *r, struct prop *p)
{
	struct cfg *c = &r->cfg;
	uint64_t most = MOVED_BYTES / (c->qps * (c->size + 1));

	c->warmup = prop_chance(p, 20) ? 0 : prop_range(p, 1, 60);
	c->iters = prop_range(p, 1, prop_chance(p, 10) ? 600 : 150);
	if (c->depth * c->size < 4096 && !strcmp(c->strategy, "frwr") &&
	    (c->mw_renew || prop_chance(p, 20))) /* so many that a window has had all its keys */
		c->iters = 300 * c->depth;
	most = most < 10 ? 10 : most;
	c->iters = c->iters < most ? c->iters : most;
	c->warmup = c->warmup < most ? c->warmup : most;
	if (prop_chance(p, 5))
		r->stop_after = prop_range(p, 1, 300);
	else if (prop_chance(p, 5))
		r->duration = prop_range(p, 1, 200000);
	if (r->stop_after || (r->duration && prop_chance(p, 70)))
		c->iters = 0;
}

static inline void random_working_set(struct random_run *r, struct prop *p)
{
	struct cfg *c = &r->cfg;
	struct layout layout;

	if (!c->size || prop_chance(p, 60))
		return;
	layout_make(c, &layout);
	c->working_set = (c->qps * c->depth + prop_range(p, 0, 40)) * layout.slot;
	c->access = prop_range(p, ACCESS_SEQ, ACCESS_ZIPF);
}

static inline void random_run_draw(struct random_run *r, struct prop *p)
{
	struct rpc_plan plan;

	cfg_init(&r->cfg);
	r->cfg.mode = MODE_RPC;
	r->cfg.verify = true;
	r->cfg.rnr_retry = 0;
	random_device(r, p);
	random_memory(r, p);
	random_messages(r, p);
	random_strategies(r, p);
	random_wrs(r, p);
	rpc_plan_make(&r->cfg, &plan);
	random_limit(r, &plan, p);
	random_queues(r, &plan, p);
	random_phases(r, p);
	random_working_set(r, p);
	r->cfg.duration_ns = r->cfg.iters ? r->duration : 1; /* who is told to stop has no limit */
}

#endif
