/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an I/O of RPC mode is, by the options of its run: worked out another way than the program
 * does. Where keys are granted by WRs, each run of fragments is one. */
#ifndef RXFER_TESTS_RPC_LOAD_MODEL_H
#define RXFER_TESTS_RPC_LOAD_MODEL_H

#include <string.h>
#include "load_rpc.h"

/*
 * struct model - what an I/O is by its options.
 * @segs: segments of its request; @wrs: READs or WRITEs; @rounds: that they go in
 * @request, @reply: bytes of the messages; @reply 0: there is none
 * @keys:    of its request that are new each time; @binds: that WRs grant
 * @invs:    WRs of the client that revoke them; lazy: of an I/O but the first of its slot
 * @peer_invs: SENDs of the server that do
 * @revokes: posts of the client for that alone, @waits: each of which it waits for
 * @lives:   I/Os' keys that a slot may have open at once
 */
struct model {
	bool moves, imm, lazy, waits;
	uint32_t segs, wrs, rounds;
	uint64_t request, reply;
	uint32_t keys, binds, invs, peer_invs, revokes, lives;
};

/* How many WRs the server counts on, which knows nothing of what its strategy joins. */
static inline uint32_t counted_on(const struct cfg *cfg, const struct model *m, uint32_t sge_max)
{
	uint32_t frags = (uint32_t)cfg->frags;

	return m->segs > 1 ? frags : (frags + sge_max - 1) / sge_max;
}

static inline void model_keys(struct model *m, const struct cfg *c, enum rxfer_revoke revoke)
{
	if (revoke == RXFER_REVOKE_NONE)
		return;
	m->keys = m->segs;
	m->waits = revoke == RXFER_REVOKE_SYNC || revoke == RXFER_REVOKE_REMOTE;
	if (strcmp(c->strategy, "frwr"))
		return;
	m->lazy = revoke == RXFER_REVOKE_LAZY;
	m->peer_invs = revoke == RXFER_REVOKE_REMOTE;
	m->binds = m->segs;
	m->invs = m->segs - m->peer_invs;
	m->revokes = m->invs && !m->lazy;
	m->lives += m->lazy;
}

/*
 * Fragments that adjoin are one segment, and one local piece, unless a strategy takes each for
 * itself. Where there are several segments each has just one fragment. Where there is one, it is
 * all one WR, or, in rounds, one each, unless the server's pieces are several, and then so are its
 * WRs, of as many SGEs as they may have. Under bounce a list of fragments is one piece.
 */
static inline void make_model(struct model *m, const struct cfg *c, const struct rpc_plan *plan,
			      enum rxfer_revoke revoke, const struct rxfer_conn *server)
{
	bool adjoin = c->frag_gap == 0, many = !strcmp(c->strategy, "multi-wr");
	bool theirs = !strcmp(c->peer_strategy, "multi-wr");
	bool copies = !strcmp(c->strategy, "bounce"),
	     they_copy = !strcmp(c->peer_strategy, "bounce");
	struct rxfer_conn_info info;
	uint32_t n, chunk;

	*m = (struct model){.moves = plan->moves, .imm = plan->imm, .lives = 1};
	m->request = 32 + (plan->carries ? c->size : 0);
	m->reply = plan->imm ? 0 : 24 + (plan->brings ? c->size : 0);
	m->rounds = 1;
	if (!m->moves)
		return;
	rxfer_conn_info(server, &info);
	m->segs = copies || (adjoin && !many) ? 1 : (uint32_t)c->frags;
	m->request += 16 * m->segs;
	n = counted_on(c, m, they_copy ? (uint32_t)c->frags : info.sge_per_wr) - m->imm;
	chunk = info.sq_depth - 2;
	m->rounds = n > chunk ? (n + chunk - 1) / chunk : 1;
	m->wrs = m->segs > 1 || theirs ? (uint32_t)c->frags : adjoin ? m->rounds : n + m->imm;
	model_keys(m, c, revoke);
}

#endif
