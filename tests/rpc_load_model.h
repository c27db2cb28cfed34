/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an I/O of RPC mode is, by the options of its run: worked out another way than the program
 * does. */
#ifndef RXFER_TESTS_RPC_LOAD_MODEL_H
#define RXFER_TESTS_RPC_LOAD_MODEL_H

#include <string.h>
#include "load_rpc.h"

/*
 * struct model - what an I/O is by its options.
 * @segs: segments of its request; @wrs: READs or WRITEs; @rounds: that they go in
 * @request, @reply: bytes of the messages; @reply 0: there is none
 */
struct model {
	bool moves, imm;
	uint32_t segs, wrs, rounds;
	uint64_t request, reply;
};

/* How many WRs the server counts on, which knows nothing of what its strategy joins. */
static inline uint32_t counted_on(const struct cfg *cfg, const struct model *m, uint32_t sge_max)
{
	uint32_t frags = (uint32_t)cfg->frags;

	return m->segs > 1 ? frags : (frags + sge_max - 1) / sge_max;
}

/*
 * Fragments that adjoin are one segment, and one local piece, unless a strategy takes each for
 * itself. Where there are several segments each has just one fragment. Where there is one, it is
 * all one WR, or, in rounds, one each, unless the server's pieces are several, and then so are its
 * WRs, of one SGE each.
 */
static inline void make_model(struct model *m, const struct cfg *c, const struct rpc_plan *plan,
			      const struct rxfer_conn *server)
{
	bool adjoin = c->frag_gap == 0, many = !strcmp(c->strategy, "multi-wr");
	bool theirs = !strcmp(c->peer_strategy, "multi-wr");
	struct rxfer_conn_info info;
	uint32_t n, chunk;

	*m = (struct model){.moves = plan->moves, .imm = plan->imm};
	m->request = 32 + (plan->carries ? c->size : 0);
	m->reply = plan->imm ? 0 : 24 + (plan->brings ? c->size : 0);
	m->rounds = 1;
	if (!m->moves)
		return;
	rxfer_conn_info(server, &info);
	m->segs = adjoin && !many ? 1 : (uint32_t)c->frags;
	m->request += 16 * m->segs;
	n = counted_on(c, m, info.sge_per_wr) - m->imm;
	chunk = info.sq_depth - 2;
	m->rounds = n > chunk ? (n + chunk - 1) / chunk : 1;
	m->wrs = m->segs == 1 && !theirs ? m->rounds : (uint32_t)c->frags;
}

#endif
