/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an I/O of RPC mode is, by the options of its run: worked out another way than the program
 * does. Where keys are granted by WRs, each run of fragments is one. */
#ifndef RXFER_TESTS_RPC_LOAD_MODEL_H
#define RXFER_TESTS_RPC_LOAD_MODEL_H

#include <string.h>
#include "load_rpc.h"
#include "prop.h"

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

#define MODEL_WRS 1024

/*
 * The WRs that the server counts on, which knows nothing of what its strategy joins: bytes of each
 * into @wr. It fills one after the other with fragments, as far as each has SGEs and @limit bytes;
 * each segment, where there are several, begins another. Returns how many.
 */
static inline uint32_t counted_on(const struct cfg *cfg, const struct model *m, uint32_t sge_max,
				  uint64_t limit, uint64_t *wr)
{
	uint32_t n = 0, sges = sge_max;

	for (uint64_t i = 0; i < cfg->frags; i++) {
		uint64_t left = cfg->size / cfg->frags + (i < cfg->size % cfg->frags);

		if (m->segs > 1)
			sges = sge_max;
		for (uint64_t some; left; left -= some) {
			if (sges == sge_max || wr[n - 1] == limit) {
				assert_true(n < MODEL_WRS);
				wr[n++] = sges = 0;
			}
			some = limit - wr[n - 1] < left ? limit - wr[n - 1] : left;
			wr[n - 1] += some;
			sges++;
		}
	}
	return n;
}

/* Where all of a round is one piece on both sides, it is as many WRs as its bytes take. Rounds
 * differ by a WR at most, larger ones first; one with immediate data has that WR besides. */
static inline uint32_t joined(const struct model *m, const uint64_t *wr, uint32_t n, uint64_t limit)
{
	uint32_t wrs = 0, left = n - m->imm;

	for (uint32_t rounds = m->rounds; rounds; rounds--) {
		uint32_t count = (left + rounds - 1) / rounds;
		uint64_t bytes = 0;

		left -= count;
		for (count += rounds == 1 && m->imm; count; count--)
			bytes += *wr++;
		wrs += (uint32_t)((bytes + limit - 1) / limit);
	}
	return wrs;
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
 * WRs, of as many SGEs as they may have. Under bounce a list of fragments is one piece. With more
 * bytes than the device's messages have, @limit, each of these WRs is several.
 */
static inline void make_model(struct model *m, const struct cfg *c, const struct rpc_plan *plan,
			      enum rxfer_revoke revoke, const struct rxfer_conn *server,
			      uint64_t limit)
{
	bool adjoin = c->frag_gap == 0, many = !strcmp(c->strategy, "multi-wr");
	bool theirs = !strcmp(c->peer_strategy, "multi-wr");
	uint64_t wr[MODEL_WRS];
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
	n = counted_on(c, m, they_copy ? (uint32_t)c->frags : info.sge_per_wr, limit, wr);
	chunk = info.sq_depth - 2;
	m->rounds = n - m->imm > chunk ? (n - m->imm + chunk - 1) / chunk : 1;
	m->wrs = m->segs > 1 || theirs || !adjoin ? n : joined(m, wr, n, limit);
	model_keys(m, c, revoke);
}

#endif
