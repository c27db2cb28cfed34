/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What must be so at the end of a phase of prop_rpc_load.c. */
#ifndef RXFER_TESTS_RPC_LOAD_CHECK_H
#define RXFER_TESTS_RPC_LOAD_CHECK_H

#include <string.h>
#include "../src/reg.h"
#include "rpc_load_order.h"

/* @rest: what is registered whatever I/Os do. A cache keeps some, and is within its limit. */
static inline bool at_rest(const struct sim *s, const struct rxfer_dev *dev, uint64_t rest)
{
	uint64_t cached = dev->counts.mr_now - rest;

	return cached <= (dev->reg->forget ? s->r.cfg.rcache_max : 0);
}

static inline void check_idle(struct sim *s)
{
	s->issued = 0;
	for (uint32_t qp = 0; qp < s->r.cfg.qps; qp++) {
		const struct turn *t = load_turn(s->l.load, qp);

		CHECK(s, engine_idle(s->l.client[qp]) && engine_idle(s->l.server[qp]));
		CHECK(s, t->completed == t->number - t->first);
		check_all_served(s, qp);
		CHECK(s, fake_rq_posted(s->l.client[qp]->qp) == s->r.cfg.depth);
		CHECK(s, fake_rq_posted(s->l.server[qp]->qp) == s->r.cfg.depth);
		s->issued += t->completed;
	}
	CHECK(s, at_rest(s, s->l.e.cdev, s->regions));
	CHECK(s, at_rest(s, s->l.e.sdev, s->peer_regions));
}

/* What a policy promises of its completions. @least: those that somebody waits for. */
static inline void check_cqes(const struct sim *s, const struct counts *c, const char *signal,
			      uint64_t least)
{
	CHECK(s, c->sqe == c->sqe_read + c->sqe_write + c->sqe_send + c->sqe_bind + c->sqe_inv);
	CHECK(s, c->cqe <= c->sqe && c->posts <= c->sqe && c->cqe >= least);
	if (!strcmp(signal, "all"))
		CHECK(s, c->cqe == c->sqe && c->forced_signals == 0);
	if (!strcmp(signal, "io"))
		CHECK(s, c->cqe >= s->issued);
	if (!strcmp(signal, "io") && s->model.rounds == 1) {
		CHECK(s, c->cqe == s->issued + c->forced_signals);
		CHECK(s, c->sqe_bind || c->forced_signals == s->issued * (c->sqe_read > 0));
	}
	if (s->r.cfg.post == POST_SINGLE)
		CHECK(s, c->posts == c->sqe);
}

/* Where the queue is never short, a policy is overruled once for half of the slots, and no more;
 * an I/O with two posts counts for each, unless no completion comes between. */
static inline void check_forced(const struct sim *s, const struct counts *c)
{
	uint64_t half = (s->r.cfg.depth + 1) / 2, most = 0;
	uint32_t posts = 1 + (c->sqe_bind ? s->model.revokes : 0);

	for (uint32_t qp = 0; qp < s->r.cfg.qps; qp++)
		most += posts * load_turn(s->l.load, qp)->completed / half;
	CHECK(s, c->forced_signals <= most);
}

/* Windows, in this phase. */
static inline uint64_t renewed(const struct sim *s)
{
	return fake_stats()->dealloc_mw - s->was.dealloc_mw;
}

/* Of the phase. A window that was made anew has lost what its slot's last I/O granted. */
static inline uint64_t invs(const struct sim *s)
{
	uint64_t n = s->issued * s->model.invs;

	if (!s->model.lazy)
		return n;
	for (uint32_t qp = 0; qp < s->r.cfg.qps; qp++)
		n -= (uint64_t)s->used[qp].since * s->model.invs;
	return n - renewed(s);
}

static inline bool never_short(const struct rxfer_conn *conn)
{
	struct rxfer_conn_info info;

	rxfer_conn_info(conn, &info);
	return info.sq_depth >= info.sq_wanted;
}

static inline void check_client(const struct sim *s, const struct counts *c)
{
	const struct model *m = &s->model;
	bool all = s->r.cfg.defer == DEFER_RECV;
	uint64_t waits = (all + (m->waits && m->revokes)) * s->issued;

	CHECK(s, c->sqe_send == s->issued && c->sqe_bind == s->issued * m->binds);
	CHECK(s, c->sqe_inv == invs(s) && c->recv_cqe == s->issued);
	if (s->r.cfg.post == POST_CHAIN)
		CHECK(s, c->posts == s->issued * (1 + m->revokes));
	check_cqes(s, c, s->r.cfg.signal, waits);
	if (all && !m->binds)
		CHECK(s, c->cqe == s->issued);
	else if (!waits && never_short(s->l.client[0]))
		check_forced(s, c);
}

static inline void check_server(const struct sim *s, const struct counts *c)
{
	const struct model *m = &s->model;
	bool reads = m->moves && s->r.cfg.op == OP_READ;

	CHECK(s, c->sqe_read == (reads ? s->issued * m->wrs : 0));
	CHECK(s, c->sqe_write == (reads ? 0 : s->issued * m->wrs));
	CHECK(s, c->sqe_send == (m->imm ? 0 : s->issued));
	CHECK(s, c->recv_cqe == s->issued);
	check_cqes(s, c, s->r.cfg.peer_signal, reads ? s->issued : 0);
	if (!reads && s->r.cfg.peer_sq_depth >= ample_depth(&s->r, m->moves, m->imm))
		check_forced(s, c);
	if (s->r.cfg.post == POST_CHAIN) /* of WRITEs the last go with the reply */
		CHECK(s, c->posts == s->issued * (m->rounds + reads));
}

/* One key a segment, each revoked once; lazy: but for what the last I/O of each slot granted. Over
 * iWARP a server that READs opens its own memory. */
static inline void check_keys(const struct sim *s)
{
	const struct model *m = &s->model;
	uint64_t grants = 0, proven = 0, kept = 0;

	for (uint32_t qp = 0; qp < s->r.cfg.qps; qp++) {
		struct rxfer_exposed mine = rxfer_conn_exposed(s->l.client[qp]);
		struct rxfer_exposed theirs = rxfer_conn_exposed(s->l.server[qp]);
		uint32_t open = m->lazy ? s->used[qp].n : 0;

		CHECK(s, mine.now == open * s->r.cfg.size && mine.live == open * m->keys);
		CHECK(s, theirs.now == 0 && theirs.live == 0);
		CHECK(s, mine.peak <= m->lives * s->r.cfg.depth * s->r.cfg.size);
		CHECK(s, theirs.peak <= 2 * s->r.cfg.depth * s->r.cfg.size);
		grants += mine.grants;
		proven += mine.proven;
		kept += m->lazy ? s->used[qp].since * m->keys : 0;
	}
	CHECK(s, grants == s->issued * m->keys && proven == grants - kept);
}

/* The double's own counts since the phase began, of both ends. */
static inline void check_wire(const struct sim *s)
{
	const struct fake_stats *f = fake_stats(), *was = &s->was;
	const struct model *m = &s->model;
	uint64_t moved = m->moves ? s->issued * s->r.cfg.size : 0;
	uint64_t sqes = 0, cqes = 0, posts = 0;

	for (uint32_t i = 0; i < 2 * s->r.cfg.qps; i++) {
		const struct rxfer_counts *c =
			rxfer_conn_counts(i % 2 ? s->l.server[i / 2] : s->l.client[i / 2]);

		sqes += c->sqe + c->aside_sqe;
		cqes += c->cqe + c->aside_cqe;
		posts += c->posts + c->aside_posts;
	}
	CHECK(s, f->sqes - was->sqes == sqes && f->sq_cqes - was->sq_cqes == cqes);
	CHECK(s, f->posts - was->posts == posts && f->rq_cqes - was->rq_cqes == 2 * s->issued);
	CHECK(s, f->bytes_read - was->bytes_read == (s->r.cfg.op == OP_READ ? moved : 0));
	CHECK(s, f->bytes_written - was->bytes_written == (s->r.cfg.op == OP_WRITE ? moved : 0));
	CHECK(s, f->bytes_sent - was->bytes_sent == s->issued * (m->request + m->reply));
	CHECK(s, f->binds - was->binds == s->issued * m->binds);
	CHECK(s, f->invalidates - was->invalidates == invs(s) + s->issued * m->peer_invs);
	CHECK(s, f->rnr_waits == 0 && f->lost_cqes == 0);
}

/* What the result says of it: how long keys were open after the reply where WRs or calls revoked
 * them, not where a window went. It has 256 keys, and on the double the next one in its place takes
 * one of these for itself. */
static inline void check_exposed(const struct sim *s)
{
	const struct load_result *out = &s->out;
	const struct model *m = &s->model;
	uint64_t most = s->r.cfg.qps * m->lives * s->r.cfg.depth * s->r.cfg.size;
	uint64_t first = 0, now = 0;

	for (uint32_t qp = 0; m->lazy && qp < s->r.cfg.qps; qp++) {
		first += s->used[qp].since;
		now += s->used[qp].n * s->r.cfg.size;
	}
	CHECK(s, out->open_after->count == (m->keys ? s->issued - first : 0));
	CHECK(s, out->key_reuse == 0 || out->key_reuse >= (s->r.cfg.mw_renew ? 255 : 256));
	if (!m->keys)
		return;
	CHECK(s, out->exposed.now == now);
	CHECK(s, out->exposed.peak <= most && (out->exposed.peak >= s->r.cfg.size || !out->ios));
}

static inline void check_result(struct sim *s, uint64_t ios)
{
	const struct load_result *out = &s->out;

	load_count(s->l.load);
	check_client(s, &out->counts);
	CHECK(s, out->ios == s->issued && out->bytes == s->issued * s->r.cfg.size);
	CHECK(s, out->latency.count == (s->r.cfg.timing == TIMING_OFF ? 0 : s->issued));
	CHECK(s, s->r.stop_after || !out->cut_short);
	if (ios && !s->r.stop_after && !s->r.duration)
		CHECK(s, s->issued == ios * s->r.cfg.qps);
	check_exposed(s);
	s->tally.client_stalls += out->counts.stalls;
	s->tally.unproven += out->counts.unproven;
	s->tally.unrevoked += out->counts.unrevoked;
	s->tally.cut_short += out->cut_short;
	s->tally.reused += out->key_reuse > 0;
	s->tally.renewed += renewed(s);
	s->tally.revoked[s->revoke] += s->model.binds > 0;
}

#endif
