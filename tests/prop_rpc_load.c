/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RPC mode's client against its server on the test double: random options, a random device, a
 * random schedule, a warm-up and a timed phase. The loads check each I/O's bytes themselves
 * (--verify). Here, for each phase: it ends; then both ends are idle, and all credits, regions and
 * keys are back; the counts are those that the options make necessary, worked out another way; the
 * double's counts are the same, and it has nothing to say.
 *
 * A device and the peer go on while a program is between two calls of the engine. So they do here:
 * some of these are wrapped (ld --wrap), and let device and peer do something before and after.
 */
#include <string.h>
#include "../bench/load_rpc_client.h"
#include "../src/reg.h"
#include "rpc_load_check.h"
#include "rpc_load_order.h"
#include "rpc_load_wraps.h"

#define DEAD_ROUNDS 2000 /* in which neither end nor the device does anything: it never will */

/* What was prepared, so that a post of it can be looked at. */
static struct prepared {
	const struct rxfer_prepared *p;
	struct rxfer_conn *conn;
	struct rxfer_op op;
} prepared[RPC_LOAD_QPS * 200];
static size_t nprepared;

/* ---- Set up ---- */

static void set_up(struct sim *s)
{
	struct rpc_plan plan;

	check_rc(s, rpc_load_open(&s->l, &s->r.cfg, &s->r.device), "connecting");
	for (uint64_t qp = 0; qp < s->r.cfg.qps; qp++) {
		move_on(s, s->l.client[qp]);
		move_on(s, s->l.server[qp]);
	}
	nprepared = 0;
	check_rc(s, rpc_load_make(&s->l), "the loads");
	check_rc(s, rpc_revoke(&s->r.cfg, &s->revoke), "revoking");
	rpc_plan_make(&s->r.cfg, &plan);
	make_model(&s->model, &s->r.cfg, &plan, s->revoke, s->l.server[0],
		   s->r.device.device[0].max_msg_size);
	s->regions = s->l.e.cdev->counts.mr_now;
	s->peer_regions = s->l.e.sdev->counts.mr_now;
}

/* ---- A phase ---- */

/* No more lies open than I/Os that are not complete need; where keys are revoked later, than there
 * are slots, unless by calls and the client had nothing to do (@idle); where the next request does
 * it, twice as much. */
static void check_open(const struct sim *s, uint32_t qp, bool idle)
{
	const struct turn *t = load_turn(s->l.load, qp);
	uint64_t pending = t->number - t->first - t->completed;
	bool none_later = s->model.waits || (idle && !s->model.binds);
	uint64_t slots = none_later ? pending : s->r.cfg.depth * s->model.lives;

	CHECK(s, pending <= s->r.cfg.depth);
	CHECK(s, s->l.client[qp]->ledger.live <= s->model.segs * slots);
}

static bool client(struct sim *s)
{
	bool did;

	if (s->timed && ++s->passes == s->r.stop_after)
		load_stop(s->l.load);
	did = check_rc(s, rpc_load_client_pass(&s->l), "the client");
	for (uint32_t qp = 0; !did && qp < s->r.cfg.qps; qp++)
		check_open(s, qp, true);
	return did;
}

static bool server(struct sim *s)
{
	return check_rc(s, rpc_server_pass(s->l.rpc), "the server");
}

static bool step(struct sim *s)
{
	uint32_t n = prop_range(s->p, 1, s->most);
	bool more = false;

	if (s->jitter && prop_chance(s->p, 20)) {
		fake_live()->sq_delay = prop_chance(s->p, 50) ? 0 : prop_range(s->p, 0, 200);
		fake_live()->rq_delay = prop_chance(s->p, 50) ? 0 : prop_range(s->p, 0, 20);
	}
	while (n--)
		more |= fake_step();
	return more;
}

static bool (*const events[N_EVENTS])(struct sim *) = {client, server, step};

/* Something happens: by weight; if that cannot, whatever can. */
static bool happens(struct sim *s)
{
	uint32_t dice = prop_range(s->p, 1, s->weight[0] + s->weight[1] + s->weight[2]);
	uint32_t i = dice <= s->weight[0] ? 0 : dice <= s->weight[0] + s->weight[1] ? 1 : 2;

	if (events[i](s))
		return true;
	for (i = 0; i < N_EVENTS; i++)
		if (events[i](s))
			return true;
	return false;
}

static bool in_bounds(const struct rxfer_conn *conn)
{
	return rxfer_sq_check(&conn->sq) == 0 && conn->sq.reserved >= 1 - conn->drains &&
	       fake_sq_posted(conn->qp) <= conn->sq.depth;
}

static void check_always(const struct sim *s)
{
	for (uint32_t qp = 0; qp < s->r.cfg.qps; qp++) {
		CHECK(s, in_bounds(s->l.client[qp]) && in_bounds(s->l.server[qp]));
		check_open(s, qp, false);
	}
}

/* ---- Inside of passes ---- */

/* Of the run under way, for the wrapped calls; NULL: none. */
static struct sim *running;

/* So does the other end, which is no part of the call, unless this is inside of its pass. */
static void others_go_on(const struct rxfer_conn *conn)
{
	struct sim *s = running;
	bool more;

	if (!s || !s->goes_on || s->inside || !prop_chance(s->p, 10))
		return;
	s->inside = true;
	more = step(s);
	while (more && prop_chance(s->p, 70)) {
		conn->dev == s->l.e.cdev ? server(s) : client(s);
		more = step(s);
	}
	s->inside = false;
}

/* Each slot's requests are of one exposure. */
static void note_slot(struct sim *s, const struct rxfer_conn *conn, uint64_t id)
{
	uint32_t qp = qp_of(s, conn);
	struct used *u = &s->used[qp];

	if (conn != s->l.client[qp] || u->slot[id])
		return;
	u->slot[id] = true;
	u->n++;
	u->since++;
}

int __wrap_rxfer_prepare(struct rxfer_conn *conn, const struct rxfer_op *op,
			 struct rxfer_prepared **out)
{
	int rc = __real_rxfer_prepare(conn, op, out);

	assert_true(nprepared < sizeof(prepared) / sizeof(prepared[0]));
	if (!rc)
		prepared[nprepared++] = (struct prepared){*out, conn, *op};
	return rc;
}

/* Where it is not one WR it goes by its lists, and so by rxfer_post_held(): what was seen there,
 * data that move or a message. */
static bool saw_data, saw_message;

/* A prepared post is about to be made. */
static struct prepared *before_post(const struct rxfer_prepared *p, const struct rxfer_seg *remote,
				    uint32_t imm, uint64_t id)
{
	struct prepared *what = prepared;

	while (what->p != p)
		what++;
	what->op.id = id;
	what->op.imm = imm;
	what->op.remote = remote;
	return what;
}

static void after_post(const struct prepared *what)
{
	if (!(what->op.nremote ? saw_data : saw_message))
		check_order(running, what->conn, &what->op);
}

int __wrap_rxfer_post_prepared_held(struct rxfer_prepared *p, uint32_t imm, uint64_t id,
				    unsigned int flags, uint32_t *held, uint32_t keep)
{
	const struct prepared *what = before_post(p, NULL, imm, id);
	int rc;

	others_go_on(what->conn);
	note_slot(running, what->conn, id);
	saw_data = saw_message = false;
	rc = __real_rxfer_post_prepared_held(p, imm, id, flags, held, keep);
	after_post(what);
	others_go_on(what->conn);
	return rc;
}

int __wrap_rxfer_post_prepared_to(struct rxfer_prepared *p, const struct rxfer_seg *remote,
				  uint32_t imm, uint64_t id, unsigned int flags, uint32_t *held,
				  uint32_t keep)
{
	const struct prepared *what = before_post(p, remote, imm, id);
	int rc;

	others_go_on(what->conn);
	saw_data = saw_message = false;
	rc = __real_rxfer_post_prepared_to(p, remote, imm, id, flags, held, keep);
	after_post(what);
	others_go_on(what->conn);
	return rc;
}

int __wrap_rxfer_post_prepared_two(struct rxfer_prepared *data, const struct rxfer_seg *remote,
				   struct rxfer_prepared *last, uint32_t imm, uint64_t id,
				   unsigned int flags, uint32_t *held)
{
	const struct prepared *moves = before_post(data, remote, 0, id);
	const struct prepared *ends = before_post(last, NULL, imm, id);
	int rc;

	others_go_on(ends->conn);
	saw_data = saw_message = false;
	rc = __real_rxfer_post_prepared_two(data, remote, last, imm, id, flags, held);
	after_post(moves);
	after_post(ends);
	others_go_on(ends->conn);
	return rc;
}

/* The other end, which goes on inside, posts too. */
int __wrap_rxfer_post_held(struct rxfer_conn *conn, const struct rxfer_op *op, uint32_t *held,
			   uint32_t keep)
{
	const bool data = saw_data, message = saw_message;
	int rc;

	check_order(running, conn, op);
	others_go_on(conn);
	rc = __real_rxfer_post_held(conn, op, held, keep);
	others_go_on(conn);
	saw_data = data || op->nremote;
	saw_message = message || !op->nremote;
	return rc;
}

/* Whose completions were looked at last, and how many RECVs it has posted since. */
static const struct rxfer_conn *polled;
static unsigned int posted_recvs;

int __wrap_rxfer_poll(struct rxfer_conn *conn, struct rxfer_done *done, int max)
{
	polled = conn;
	posted_recvs = 0;
	return __real_rxfer_poll(conn, done, max);
}

/* A client takes the next of several replies: what the one before has freed is in use again, or
 * nothing is to be issued, or there are no credits. Else an I/O waits where no latency tells. */
static void check_none_waits(const struct sim *s, const struct rxfer_conn *conn)
{
	uint32_t qp = qp_of(s, conn);
	const struct turn *turn = load_turn(s->l.load, qp);
	const struct rxfer_slots *slots = &((const struct lane *)(const void *)turn)->slots;

	if (conn == s->l.client[qp] && load_may_issue(s->l.load, turn))
		CHECK(s, !rxfer_slots_count(slots, RXFER_SLOT_AVAILABLE) ||
				 rxfer_sq_free(slots->sq) < slots->need);
}

int __wrap_rxfer_post_recv(struct rxfer_conn *conn, void *addr, uint32_t len, uint64_t id)
{
	if (running && conn == polled && posted_recvs++)
		check_none_waits(running, conn);
	others_go_on(conn);
	return __real_rxfer_post_recv(conn, addr, len, id);
}

/* The I/O is not complete yet where it must not be. */
int __wrap_rxfer_revoke(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	others_go_on(conn);
	check_open(running, qp_of(running, conn), false);
	return __real_rxfer_revoke(conn, x);
}

int __wrap_rxfer_revoke_held(struct rxfer_conn *conn, struct rxfer_exposure *x,
			     const struct rxfer_revoking *how)
{
	int rc;

	others_go_on(conn);
	check_open(running, qp_of(running, conn), false);
	rc = __real_rxfer_revoke_held(conn, x, how);
	others_go_on(conn);
	return rc;
}

/* Until the client is done, and then the server. */
static void run_phase(struct sim *s)
{
	bool quiet = false;

	running = s;
	for (uint32_t idle = 0; !quiet && idle < DEAD_ROUNDS;) {
		idle = happens(s) ? 0 : idle + 1;
		check_always(s);
		if (load_finished(s->l.load))
			check_rc(s, rpc_server_quiet(s->l.rpc, &quiet), "the server's end");
	}
	running = NULL;
	if (!quiet)
		wrong(s, "dead-lock", load_finished(s->l.load) ? "at the server" : "at the client");
}

/* ---- A run ---- */

/* @timed: its result is wanted. */
static void phase(struct sim *s, uint64_t ios, bool timed)
{
	struct counts c = {0};

	s->was = *fake_stats();
	s->timed = timed;
	for (uint32_t qp = 0; qp < RPC_LOAD_QPS; qp++)
		s->used[qp].since = 0;
	rpc_load_begin(&s->l, ios, timed ? s->r.duration : 0, timed ? &s->out : NULL);
	run_phase(s);
	check_idle(s);
	counts_take(&c, s->l.server, (unsigned int)s->r.cfg.qps);
	check_server(s, &c);
	check_keys(s);
	check_wire(s);
	if (timed)
		check_result(s, ios);
	rpc_server_count(s->l.rpc, &c);
	s->tally.backlogged += c.unproven;
	s->tally.server_stalls += c.stalls;
	s->tally.forced += c.forced_signals;
	s->tally.rounds += s->model.rounds > 1;
	s->tally.split += s->model.moves && s->r.cfg.size > s->r.device.device[0].max_msg_size;
	for (uint64_t qp = 0; qp < s->r.cfg.qps; qp++)
		s->tally.drains += rxfer_conn_counts(s->l.client[qp])->aside_sqe +
				   rxfer_conn_counts(s->l.server[qp])->aside_sqe;
}

/* Returns how many I/Os there were. */
static uint64_t run(struct sim *s, struct prop *p, uint64_t seed)
{
	const struct tally tally = s->tally;
	uint64_t ios = 0;
	char leaks[256], why[256];

	prop_start(p, seed);
	*s = (struct sim){.p = p, .tally = tally};
	random_run_draw(&s->r, p);
	random_schedule(s);
	if (cfg_check(&s->r.cfg, why, sizeof(why)))
		wrong(s, "the options", why);
	set_up(s);
	if (s->r.cfg.warmup) {
		phase(s, s->r.cfg.warmup, false);
		CHECK(s, s->issued == s->r.cfg.warmup * s->r.cfg.qps);
		ios = s->issued;
	}
	phase(s, s->r.cfg.iters, true);
	rpc_load_close(&s->l);
	if (fake_leaks(leaks, sizeof(leaks)))
		wrong(s, "left behind", leaks);
	check_rc(s, 0, "at the end");
	return ios + s->issued;
}

#define ALL_IOS	   1000000 /* 17 s */
#define MANY_IOS   250000 /* for keys that are used again to come up, which takes 256 of a window */
#define ENOUGH_IOS 50000  /* for all else that there is */

static void ios_move_and_all_comes_back(void **state)
{
	uint64_t seed = prop_first_seed(), n = prop_count(ALL_IOS, 1000), ios = 0;
	static struct sim s;
	const struct tally *t = &s.tally;
	struct prop p;

	(void)state;
	memset(&s, 0, sizeof(s));
	for (; ios < n; seed++)
		ios += run(&s, &p, seed);
	if (n < ENOUGH_IOS)
		return;
	assert_true(t->rounds && t->split && t->backlogged && t->drains && t->forced &&
		    t->cut_short);
	assert_true(t->server_stalls && t->client_stalls && t->unproven && t->unrevoked);
	assert_true(n < MANY_IOS || (t->renewed && t->reused));
	for (enum rxfer_revoke m = RXFER_REVOKE_SYNC; m < RXFER_REVOKE_AUTO; m++)
		assert_true(t->revoked[m]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ios_move_and_all_comes_back),
	};

	return cmocka_run_group_tests_name("prop_rpc_load", tests, NULL, NULL);
}
