/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A session in RPC mode, on the test double, where one end is the program's, in a thread, and the
 * other one is the test: it shakes hands properly, and then posts whatever it likes, by bare verbs,
 * on a connection of the engine's that the engine has no part in any more.
 */
#ifndef RXFER_TESTS_RPC_FIXTURE_H
#define RXFER_TESTS_RPC_FIXTURE_H

#include "peers_fixture.h"
#include "load_rpc.h"
#include "../src/internal.h"

#define PAGE	  4096u
#define GRANTED	  (1 * PAGE) /* in struct rpc_scene.mem, between two pages that are not */
#define MESSAGES  (3 * PAGE)
#define MESSAGE	  1024u /* bytes of a buffer: MAX_SENDS for what we send, then those of RECVs */
#define MAX_SENDS 8u
#define MAX_RECVS 8u
#define MEM	  (MESSAGES + (MAX_SENDS + MAX_RECVS) * MESSAGE)

#define SIZE  96u /* of an I/O, in FRAGS equal parts */
#define FRAGS 3u

/*
 * struct rpc_scene - both ends, and the host that the program's server lives on from session to
 * session.
 * @mem:     the test's: guard, granted, guard, messages
 * @were:    its first three pages when the session began
 * @hold:    the program's server is kept in its next look at the control connection
 * @its_held: it is there
 */
struct rpc_scene {
	struct scene s; /* the first member */
	struct budget budget;
	struct host host;
	struct rpc_plan plan;
	uint8_t *mem, *were;
	struct ibv_mr *granted, *messages;
	unsigned int rights; /* of @granted */
	atomic_int hold, its_held;
};

/* ---- The program's ends ---- */

static inline int serve_rpc(struct scene *s)
{
	return session_serve(&s->its, &((struct rpc_scene *)s)->host);
}

static inline int run_rpc(struct scene *s)
{
	struct rxfer_wait wait = soon();
	struct peer peer;
	int rc = session_hello(&s->its, true, &peer, &wait);

	return rc ? rc : session_run(&s->its, &peer, &s->cfg, &s->runtime, &s->result);
}

/* It stays here as long as the test wants it to. */
static inline void be_held(void *arg)
{
	struct rpc_scene *r = arg;

	while (r->hold) {
		r->its_held = 1;
		usleep(1000);
	}
}

/* ---- A scene, and what a run in it is to be ---- */

static inline void rpc_cfg(struct rpc_scene *r, enum cfg_op op)
{
	struct cfg *cfg = &r->s.cfg;

	cfg_init(cfg);
	snprintf(cfg->device, sizeof(cfg->device), "fake0");
	snprintf(cfg->peer_strategy, sizeof(cfg->peer_strategy),
		 "global"); /* a client settles it */
	cfg->mode = MODE_RPC;
	cfg->op = op;
	cfg->size = SIZE;
	cfg->frags = FRAGS;
	cfg->depth = 2;
	cfg->iters = 20;
	cfg->warmup = 0;
	cfg->rnr_retry = 0;
	cfg->timeout_ns = TIMEOUT_NS;
}

static inline void open_rpc_scene(struct rpc_scene *r)
{
	memset(r, 0, sizeof(*r));
	set_scene(&r->s);
	control_close(&r->s.ours); /* each session has its own */
	control_close(&r->s.its);
	r->s.runtime.tick = be_held;
	r->s.runtime.arg = r;
	r->host = (struct host){.device = "fake0",
				.timeout_ns = TIMEOUT_NS,
				.runtime = &r->s.runtime,
				.budget = &r->budget};
	r->rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	rpc_cfg(r, OP_READ);
}

static inline void begin_session(struct rpc_scene *r)
{
	r->s.rc = 0;
	r->s.error[0] = '\0';
	r->hold = r->its_held = 0;
	result_init(&r->s.result);
	rpc_plan_make(&r->s.cfg, &r->plan);
	assert_int_equal(control_pair(&r->s.ours, &r->s.its), 0);
}

/* ---- The test's end ---- */

static inline void make_memory(struct rpc_scene *r)
{
	struct ibv_pd *pd = r->s.dev->pd;

	r->mem = aligned_alloc(PAGE, (MEM + PAGE - 1) / PAGE * PAGE);
	r->were = malloc(MESSAGES);
	assert_true(r->mem && r->were);
	for (uint32_t i = 0; i < MEM; i++)
		r->mem[i] = (uint8_t)(i * 7 + i / 256);
	memcpy(r->were, r->mem, MESSAGES);
	r->granted = ibv_reg_mr(pd, r->mem + GRANTED, PAGE, (int)r->rights);
	r->messages = ibv_reg_mr(pd, r->mem + MESSAGES, MEM - MESSAGES, IBV_ACCESS_LOCAL_WRITE);
	assert_true(r->granted && r->messages);
}

static inline void post_recvs(struct rpc_scene *r, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		uintptr_t at = (uintptr_t)r->mem + MESSAGES + (MAX_SENDS + i) * MESSAGE;
		struct ibv_sge sge = {at, MESSAGE, r->messages->lkey};
		struct ibv_recv_wr *bad, wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};

		assert_int_equal(ibv_post_recv(r->s.conn->qp, &wr, &bad), 0);
	}
}

static inline uint8_t *send_buffer(const struct rpc_scene *r, unsigned int i)
{
	return r->mem + MESSAGES + i * MESSAGE;
}

static inline uint8_t *received(const struct rpc_scene *r, const struct ibv_wc *wc)
{
	return r->mem + MESSAGES + (MAX_SENDS + wc->wr_id) * MESSAGE;
}

/* What is in the @i-th buffer; @bytes 0: nothing. */
static inline void post_as(struct rpc_scene *r, unsigned int i, uint32_t bytes,
			   enum ibv_wr_opcode opcode, uint32_t imm)
{
	struct ibv_sge sge = {(uintptr_t)send_buffer(r, i), bytes, r->messages->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = 100 + i,
				       .sg_list = &sge,
				       .num_sge = bytes ? 1 : 0,
				       .opcode = opcode,
				       .send_flags = IBV_SEND_SIGNALED,
				       .imm_data = htonl(imm)};

	assert_int_equal(ibv_post_send(r->s.conn->qp, &wr, &bad), 0);
}

static inline void post_bytes(struct rpc_scene *r, unsigned int i, uint32_t bytes)
{
	post_as(r, i, bytes, IBV_WR_SEND, 0);
}

/* The next completion of a RECV (@recv) or of a WR of ours; the others are let go. */
static inline struct ibv_wc await_wc(struct rpc_scene *r, bool recv)
{
	uint64_t end = rxfer_now() + TIMEOUT_NS;
	struct ibv_wc wc;

	while (rxfer_now() < end) {
		int n = ibv_poll_cq(r->s.conn->cq, 1, &wc);

		assert_in_range(n, 0, 1);
		if (n && (wc.wr_id < 100) == recv)
			return wc;
		if (!n)
			usleep(50);
	}
	fail_msg("no completion of a %s", recv ? "RECV" : "WR");
	return wc;
}

/* As conn_attr() has it for the test's end, with room for more than is allowed. */
static inline struct rxfer_conn_attr rpc_attr(const struct rpc_scene *r, struct roles roles)
{
	struct rxfer_conn_attr attr;

	assert_int_equal(conn_attr(&r->s.cfg, &r->s.layout, roles, r->s.token, 0, &attr), 0);
	attr.sq_depth = 64;
	attr.rq_depth = MAX_RECVS;
	attr.sge_max = 0;
	return attr;
}

/* Nothing around what was granted has changed; nothing of it, where @all. */
static inline void memory_is_untouched(const struct rpc_scene *r, bool all)
{
	uint32_t size = all ? MESSAGES : GRANTED;

	assert_memory_equal(r->mem, r->were, size);
	assert_memory_equal(r->mem + GRANTED + PAGE, r->were + GRANTED + PAGE, PAGE);
}

/* Both ends are gone, and nothing is left: of the double's, nor of the host's. One of them is the
 * test, and may have violated as much. */
static inline void end_session_after(struct rpc_scene *r, unsigned int violations)
{
	struct scene *s = &r->s;
	char leaks[256];

	r->hold = 0;
	control_close(&s->ours);
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	rxfer_conn_close(s->conn);
	rxfer_listener_close(s->listener);
	if (r->granted)
		assert_int_equal(ibv_dereg_mr(r->granted), 0);
	if (r->messages)
		assert_int_equal(ibv_dereg_mr(r->messages), 0);
	rxfer_dev_close(s->dev);
	s->conn = NULL;
	s->listener = NULL;
	s->dev = NULL;
	r->granted = r->messages = NULL;
	free(r->mem);
	free(r->were);
	r->mem = r->were = NULL;
	if (fake_leaks(leaks, sizeof(leaks)))
		fail_msg("left behind: %s", leaks);
	if (fake_violations() != violations)
		fail_msg("%u violations: %s", fake_violations(),
			 fake_violations() ? fake_violation(0) : "");
	assert_true(r->budget.used == 0 && r->budget.promised == 0);
}

static inline void end_session(struct rpc_scene *r)
{
	end_session_after(r, 0);
}

/* One line, printable, with @part in it. @name: of the case. */
static inline void one_line(const char *name, const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("%s: no \"%s\" in: %s", name, part, text ? text : "(nothing)");
	for (const char *p = text; *p; p++)
		if (*p < ' ' || *p > '~')
			fail_msg("%s: a byte 0x%02x in: %s", name, (unsigned char)*p, text);
}

/* The program's end says why it ends. */
static inline void hear_why(struct rpc_scene *r, const char *name, const char *part)
{
	struct rxfer_wait wait = soon();
	json_t *body = NULL;

	if (control_expect(&r->s.ours, MSG_FAIL, &body, &wait))
		fail_msg("%s: the other end did not give up: %s", name, rxfer_error());
	one_line(name, json_string_value(json_object_get(body, "reason")), part);
	json_decref(body);
}

/* ---- A run of both of the program's ends ---- */

/* By the same host. What session_run() returned; the row is in s.result. */
static inline int run_both(struct rpc_scene *r)
{
	struct scene *s = &r->s;
	struct rxfer_wait wait = soon();
	struct peer peer;
	int rc;

	begin_session(r);
	start_it(s, serve_rpc);
	assert_int_equal(session_hello(&s->ours, true, &peer, &wait), 0);
	rc = session_run(&s->ours, &peer, &s->cfg, &s->runtime, &s->result);
	wait = soon();
	if (!rc)
		assert_int_equal(control_send(&s->ours, MSG_BYE, NULL, &wait), 0);
	end_session(r);
	return rc;
}

/* Whatever was before, the next one is served, to the end. */
static inline void good_run(struct rpc_scene *r, enum cfg_op op)
{
	rpc_cfg(r, op);
	r->s.cfg.verify = true;
	if (run_both(r) || r->s.rc != 1)
		fail_msg("a good run failed: %s / %s", r->s.result.reason, r->s.error);
	assert_int_equal(r->s.result.status, RESULT_OK);
	assert_true(r->s.result.iterations == 20);
}

#endif
