/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A run of prop_rpc_load.c: what is known of it, and how it is told what went wrong. */
#ifndef RXFER_TESTS_RPC_LOAD_SIM_H
#define RXFER_TESTS_RPC_LOAD_SIM_H

#include "rpc_load_model.h"
#include "rpc_load_random.h"

#define SLOTS 32 /* of a QP, the most */

enum event { CLIENT, SERVER, STEP, N_EVENTS };

/* struct tally - what must have come up in a large number of runs. */
struct tally {
	uint64_t rounds, backlogged, server_stalls, client_stalls, unproven, unrevoked, drains,
		cut_short, forced, renewed, reused, split, revoked[RXFER_REVOKE_AUTO];
};

/*
 * struct order - a QP's requests, oldest first, in rings, by numbers that only grow: @asked of
 * them, @answered, @begun: the server has moved the first byte.
 * @at:   where the client's memory for it begins
 * @left: bytes that are still to move of the latest that has begun, @place: the server's for it
 */
struct order {
	uint32_t id[SLOTS], asked, answered, begun;
	uint64_t at[SLOTS], left, place;
};

/* struct used - of a QP: slots that had an I/O, @since: in this phase for the first time. */
struct used {
	bool slot[SLOTS];
	uint32_t n, since;
};

/*
 * struct sim - @most: steps at once
 * @jitter:  the device's delays change all the time
 * @goes_on: it takes steps inside of passes, and so does the other end; @inside: now
 * @issued: I/Os of the phase
 */
struct sim {
	struct prop *p;
	struct random_run r;
	struct rpc_load l;
	struct model model;
	uint32_t weight[N_EVENTS], most;
	bool jitter, goes_on, inside;
	struct order order[RPC_LOAD_QPS];
	struct used used[RPC_LOAD_QPS];
	uint64_t passes, regions, peer_regions, issued;
	bool timed;
	enum rxfer_revoke revoke;
	struct fake_stats was;
	struct load_result out;
	struct tally tally;
};

/* Delays do not change where SENDs would change places by that. */
static inline void random_schedule(struct sim *s)
{
	s->jitter = prop_chance(s->p, 40) && !s->r.device.early_sends;
	s->goes_on = prop_chance(s->p, 50);
	for (int i = 0; i < N_EVENTS; i++)
		s->weight[i] = prop_chance(s->p, 50) ? 4 : prop_range(s->p, 1, 16);
	s->most = prop_chance(s->p, 50) ? 4 : prop_range(s->p, 1, 100);
}

/* Anywhere on the ring of sequence numbers, often shortly before it wraps. */
static inline void move_on(struct sim *s, struct rxfer_conn *conn)
{
	conn->sq.head = conn->sq.tail = conn->proven =
		prop_chance(s->p, 50) ? 0u - prop_range(s->p, 1, 100) : (uint32_t)prop_next(s->p);
}

/* ---- What went wrong ---- */

/* In which run, so that nobody has to debug for that. */
static inline void wrong(const struct sim *s, const char *what, const char *why)
{
	char text[1280];

	cfg_print(&s->r.cfg, OPT_RUN, text, sizeof(text));
	fail_msg("%s (%s): %s; repeat with RXFER_PROP_SEED=%llu", what, why, text,
		 (unsigned long long)s->p->seed);
}

#define CHECK(s, cond)                               \
	do {                                         \
		if (!(cond))                         \
			wrong(s, #cond, "is false"); \
	} while (0)

static inline int check_rc(const struct sim *s, int rc, const char *what)
{
	if (fake_violations())
		wrong(s, what, fake_violation(0));
	if (rc < 0)
		wrong(s, what, rxfer_error());
	return rc;
}

#endif
