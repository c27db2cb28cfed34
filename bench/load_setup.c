/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Direct mode, the issuing half: its memory, slots and lanes, made before anything is timed. */
#include <errno.h>
#include <stdlib.h>
#include "load_direct.h"

/* Each I/O on a slot is the same, unless it is to be checked. */
static int init_slot(struct direct *d, const struct lane *lane, uint64_t i)
{
	struct slot *s = &d->slots[i];

	s->frags = d->frags + i * d->load.cfg->frags;
	layout_frags(d->load.cfg, d->load.work.base + i * d->load.layout.slot, s->frags);
	s->remote = (struct rxfer_seg){
		.addr = d->target->addr + i * d->load.layout.target + d->load.cfg->misalign,
		.len = (uint32_t)d->load.cfg->size,
		.key = d->target->key,
	};
	s->piece = (uint32_t)i;
	if (d->load.cfg->verify || d->load.cfg->working_set)
		return 0;
	return rxfer_prepare(lane->conn,
			     &(struct rxfer_op){.op = run_opcode(d->load.cfg),
						.local = s->frags,
						.nlocal = d->nfrags,
						.remote = &s->remote,
						.nremote = d->load.cfg->op == OP_SEND ? 0 : 1},
			     &s->prepared);
}

static int init_lane(struct direct *d, uint32_t qp)
{
	int rc = 0;
	struct lane *lane = &d->lanes[qp];
	uint32_t depth = (uint32_t)d->load.cfg->depth;

	lane->conn = d->load.conns[qp];
	lane->slots = d->slots + (size_t)qp * depth;
	lane->depth = lane->nfree = depth;
	lane->credits = d->load.layout.recvs;
	for (uint32_t i = 0; !rc && i < depth; i++)
		rc = init_slot(d, lane, (uint64_t)qp * depth + i);
	return rc;
}

static uint64_t check_bytes(const struct cfg *cfg, const struct layout *layout)
{
	bool written = cfg->op == OP_WRITE || cfg->op == OP_WRITE_IMM;

	return cfg->verify && written ? cfg->qps * cfg->depth * layout->target : 0;
}

/*
 * With that of the engine: it gathers SENDs of more fragments than the device's SGEs in a buffer
 * for each slot. Which device that is is not asked, so it may be too much, and is never too little.
 * And with the strategy's.
 */
void direct_need(const struct cfg *cfg, const struct layout *layout, struct need *n)
{
	const struct rxfer_conn_attr attr = {
		.slots = (uint32_t)cfg->depth,
		.shape = {.bytes = cfg->size, .frags = (uint32_t)cfg->frags}};
	uint64_t strategy = rxfer_strategy_memory(cfg->strategy, &attr);

	need_add(n, cfg->mem, load_work_bytes(cfg, layout));
	need_add(n, MEM_ANON, check_bytes(cfg, layout));
	need_add(n, MEM_ANON, cfg->op == OP_WRITE ? 1 : 0);
	if (cfg->op == OP_SEND && cfg->frags > 1 && layout->messages == 1 && !strategy)
		need_add(n, MEM_ANON, cfg->qps * cfg->depth * cfg->size);
	need_add(n, MEM_ANON, cfg->qps * strategy);
}

static int make_areas(struct direct *d)
{
	unsigned int rights = d->load.cfg->op == OP_READ ? RXFER_READ_SINK : RXFER_LOCAL;
	bool proves = d->load.cfg->op == OP_WRITE && is_iwarp(rxfer_dev_info(d->dev));
	int rc = load_make_work(&d->load, d->dev, rights);

	if (!rc)
		rc = area_make(d->dev, check_bytes(d->load.cfg, &d->load.layout),
			       RXFER_FIXED | RXFER_READ_SINK, &d->check);
	if (!rc)
		rc = area_make(d->dev, proves ? 1 : 0, RXFER_FIXED | RXFER_READ_SINK, &d->proof);
	return rc;
}

static int make_arrays(struct direct *d)
{
	size_t slots = d->load.cfg->qps * d->load.cfg->depth;

	d->lanes = calloc(d->load.cfg->qps, sizeof(*d->lanes));
	d->slots = calloc(slots, sizeof(*d->slots));
	d->frags = calloc(slots * d->load.cfg->frags, sizeof(*d->frags));
	if (!d->lanes || !d->slots || !d->frags)
		return rxfer_fail(ENOMEM, "out of memory for %s in flight",
				  rxfer_count(slots, "I/O").s);
	d->load.lanes = (char *)d->lanes;
	d->load.stride = sizeof(d->lanes[0]);
	return 0;
}

struct load *direct_new(const struct cfg *cfg, const struct layout *layout, struct rxfer_dev *dev,
			struct rxfer_conn **conns, const struct target *target, struct sink *sink,
			struct watch *watch)
{
	struct direct *d = calloc(1, sizeof(*d));

	if (!d) {
		rxfer_fail(ENOMEM, "out of memory");
		return NULL;
	}
	load_init(&d->load, cfg, layout, conns, watch);
	d->dev = dev;
	d->target = target;
	d->sink = sink;
	d->pass = direct_way(cfg);
	d->nfrags = (uint32_t)cfg->frags;
	d->load.ops = &direct_ops;
	d->load.messages = layout->messages;
	if (make_areas(d) || make_arrays(d))
		goto fail;
	for (uint32_t qp = 0; qp < cfg->qps; qp++)
		if (init_lane(d, qp))
			goto fail;
	return &d->load;
fail:
	direct_free(&d->load);
	return NULL;
}

void direct_free(struct load *l)
{
	struct direct *d = direct_of(l);

	for (size_t i = 0; d->slots && i < l->cfg->qps * l->cfg->depth; i++)
		rxfer_unprepare(d->slots[i].prepared);
	load_drop_work(l);
	area_drop(&d->check);
	area_drop(&d->proof);
	free(d->lanes);
	free(d->slots);
	free(d->frags);
	free(d);
}
