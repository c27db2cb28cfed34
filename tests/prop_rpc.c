/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Slots and tickets at work, a million random I/Os (rpc_sim.c). At every step, at both ends:
 *
 * - 0 <= posted + reserved <= depth, and what is reserved is what slots and tickets hold;
 * - a slot is available if and only if its SEND and the revoke of its key are proven and its RECV
 * is posted, and an I/O was told complete if and only if it is; no key is used that is not live;
 * - a server's place is free if and only if its reply is proven and handed up;
 * - no slot and no credits are refused needlessly, and the cause that is told is one;
 * - credits go to the oldest, in the rounds planned, and no message finds no RECV;
 * - nothing dead-locks, and at the end everything is back and each wait was timed.
 *
 * Then the same with one rule taken out, which must be noticed; and three facts on sizes.
 */
#include "rpc_sim.h"

static void a_million_ios(void **state)
{
	uint64_t seed = prop_first_seed();
	uint64_t ios = 0, n = prop_count(1000000, 1000);
	struct rpc_config c;
	struct rpc_sim s;
	struct prop p;

	(void)state;
	for (; ios < n; seed++) {
		prop_start(&p, seed);
		rpc_random_config(&c, &p, 200);
		rpc_run(&s, &p, &c, RPC_NOTHING);
		PROP_CHECK(&p, s.outcome != RPC_DEAD_LOCK);
		PROP_CHECK(&p, s.outcome == RPC_FINE);
		ios += s.complete;
	}
}

/* ---- each rule bites ---- */

#define N_BROKEN 2000

/* How many of N_BROKEN runs end with @outcome. */
static uint32_t count(enum rpc_broken broken, enum rpc_outcome outcome)
{
	uint64_t seed = prop_first_seed();
	uint32_t i, n = 0;
	struct rpc_config c;
	struct rpc_sim s;
	struct prop p;

	for (i = 0; i < N_BROKEN; i++) {
		prop_start(&p, seed + i);
		rpc_random_config(&c, &p, 60);
		n += rpc_run(&s, &p, &c, broken) == outcome;
	}
	return n;
}

#define BITES(name, broken, outcome, least)                               \
	static void name(void **state)                                    \
	{                                                                 \
		(void)state;                                              \
		assert_in_range(count(broken, outcome), least, N_BROKEN); \
	}

BITES(bites_a_reply_proves_the_send, RPC_REPLY_PROVES_SEND, RPC_WRONG, N_BROKEN / 10)
BITES(bites_posted_is_revoked, RPC_POSTED_IS_REVOKED, RPC_WRONG, N_BROKEN / 10)
BITES(bites_a_recv_is_forgotten, RPC_RECV_FORGOTTEN, RPC_WRONG, N_BROKEN / 10)
BITES(bites_a_place_is_its_slots, RPC_PLACE_OF_SLOT, RPC_WRONG, N_BROKEN / 10)
BITES(dead_locks_without_a_backlog, RPC_NO_BACKLOG, RPC_DEAD_LOCK, N_BROKEN / 10)
BITES(dead_locks_when_rounds_mix, RPC_ROUNDS_MIXED, RPC_DEAD_LOCK, N_BROKEN / 100)
BITES(dead_locks_without_a_credit_for_the_reply, RPC_NO_REPLY_CREDIT, RPC_DEAD_LOCK, N_BROKEN / 100)
BITES(dead_locks_without_the_reply_in_n, RPC_NO_REPLY_IN_N, RPC_DEAD_LOCK, N_BROKEN / 100)

/* ---- sizes ---- */

/* Eight slots of N = 5, each I/O as large as it may be, READs, policy `half`, keys revoked by WRs.
 */
static struct rpc_config exact(struct prop *p, uint32_t client_depth)
{
	struct rpc_config c;
	uint32_t arg;

	rpc_random_config(&c, p, 1);
	c.slots = c.places = 8;
	c.submit = 3;
	c.later = 2;
	c.client_depth = client_depth;
	c.server_depth = 64;
	c.most = 4;
	c.n_ios = 500;
	c.exact = true;
	c.write = false;
	assert_int_equal(rxfer_sig_parse("half", &c.client_signal, &arg), 0);
	c.server_signal = c.client_signal;
	return c;
}

/* Waits for SQEs in 20 runs with a client's queue of that depth; all I/Os complete. */
static uint64_t waits_for_sqes(uint32_t depth)
{
	uint64_t seed = prop_first_seed(), waits = 0;
	struct rpc_config c;
	struct rpc_sim s;
	struct prop p;
	uint32_t i;

	for (i = 0; i < 20; i++) {
		prop_start(&p, seed + i);
		c = exact(&p, depth);
		PROP_CHECK(&p, rpc_run(&s, &p, &c, RPC_NOTHING) == RPC_FINE);
		waits += s.slots.waits[RXFER_SLOT_NO_SQES].count;
	}
	return waits;
}

static void no_waits_for_sqes_at_the_default_depth(void **state)
{
	(void)state;
	assert_int_equal(waits_for_sqes(2 * 5 * 8 + 1), 0);
}

static void waits_for_sqes_at_half_of_it(void **state)
{
	(void)state;
	assert_in_range(waits_for_sqes((2 * 5 * 8 + 1) / 2), 5, UINT64_MAX);
}

static void completes_at_the_least_depth(void **state)
{
	(void)state;
	assert_in_range(waits_for_sqes(5 + 1), 20, UINT64_MAX);
}

/* 256 segments, a WR each, through a queue of 8: 6 at once beside reply and drain, 43 rounds. */
static void large_ios_through_a_small_server_queue(void **state)
{
	uint64_t seed = prop_first_seed();
	struct rpc_config c;
	struct rpc_sim s;
	struct prop p;
	uint32_t i;

	(void)state;
	for (i = 0; i < 20; i++) {
		prop_start(&p, seed + i);
		c = exact(&p, 2 * 5 * 8 + 1);
		c.server_depth = 8;
		c.most = 256;
		c.n_ios = 50;
		c.write = i % 2;
		PROP_CHECK(&p, rpc_run(&s, &p, &c, RPC_NOTHING) == RPC_FINE);
		PROP_CHECK(&p, s.passed_most == 0);
		PROP_CHECK(&p, s.tickets.rounds.count == 50 * 42);
	}
}

/* How often the oldest is passed in one run of many small I/Os and a few large ones. */
static uint32_t passed(enum rpc_broken broken)
{
	uint64_t seed = prop_first_seed();
	uint32_t i, most = 0;
	struct rpc_config c;
	struct rpc_sim s;
	struct prop p;

	for (i = 0; i < 20; i++) {
		prop_start(&p, seed + i);
		c = exact(&p, 2 * 5 * 8 + 1);
		c.exact = false;
		c.server_depth = 18;
		c.most = 16;
		c.n_ios = 2000;
		PROP_CHECK(&p, rpc_run(&s, &p, &c, broken) == RPC_FINE);
		most = s.passed_most > most ? s.passed_most : most;
	}
	return most;
}

static void nobody_is_passed(void **state)
{
	(void)state;
	assert_int_equal(passed(RPC_NOTHING), 0);
}

/* More often than there are others: some pass it again and again. */
static void starves_when_overtaken(void **state)
{
	(void)state;
	assert_in_range(passed(RPC_OVERTAKING), 8, UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_million_ios),
		cmocka_unit_test(bites_a_reply_proves_the_send),
		cmocka_unit_test(bites_posted_is_revoked),
		cmocka_unit_test(bites_a_recv_is_forgotten),
		cmocka_unit_test(bites_a_place_is_its_slots),
		cmocka_unit_test(dead_locks_without_a_backlog),
		cmocka_unit_test(dead_locks_when_rounds_mix),
		cmocka_unit_test(dead_locks_without_a_credit_for_the_reply),
		cmocka_unit_test(dead_locks_without_the_reply_in_n),
		cmocka_unit_test(no_waits_for_sqes_at_the_default_depth),
		cmocka_unit_test(waits_for_sqes_at_half_of_it),
		cmocka_unit_test(completes_at_the_least_depth),
		cmocka_unit_test(large_ios_through_a_small_server_queue),
		cmocka_unit_test(nobody_is_passed),
		cmocka_unit_test(starves_when_overtaken),
	};

	return cmocka_run_group_tests_name("prop_rpc", tests, NULL, NULL);
}
