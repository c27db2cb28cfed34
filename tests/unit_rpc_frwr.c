/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RPC mode where the client's keys are granted by work requests (frwr), with a server, or a client,
 * that revokes what it should not, or nothing: this test. The run ends with a line that says so,
 * nothing is revoked after that, and the next run is a good one.
 */
#include "rpc_server_fixture.h"
#include "rpc_client_fixture.h"

#define NOBODYS 0xdeadbeef

/* ---- Runs ---- */

/* @runs: contiguous pieces of an I/O's memory, 1 or FRAGS. */
static void frwr_cfg(struct rpc_scene *r, enum cfg_op op, enum rxfer_revoke revoke, uint32_t runs)
{
	struct cfg *cfg = &r->s.cfg;

	rpc_cfg(r, op);
	snprintf(cfg->strategy, sizeof(cfg->strategy), "frwr");
	cfg->revoke = revoke;
	cfg->frag_gap = runs > 1 ? 8 : 0;
}

/* Both ends are the program's. */
static void frwr_run(struct rpc_scene *r, enum cfg_op op, enum rxfer_revoke revoke, uint32_t runs)
{
	uint64_t binds = fake_stats()->binds, revoked = fake_stats()->invalidates;
	uint64_t lazy = revoke == RXFER_REVOKE_LAZY ? 2 * runs : 0;

	frwr_cfg(r, op, revoke, runs);
	r->s.cfg.verify = true;
	if (run_both(r) || r->s.rc != 1)
		fail_msg("a good run failed: %s / %s", r->s.result.reason, r->s.error);
	assert_int_equal(r->s.result.status, RESULT_OK);
	assert_true(r->s.result.iterations == 20);
	assert_int_equal(fake_stats()->binds - binds, 20 * runs);
	assert_int_equal(fake_stats()->invalidates - revoked, 20 * runs - lazy);
}

static void good_runs(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (int mode = RXFER_REVOKE_SYNC; mode < RXFER_REVOKE_AUTO; mode++)
		for (int i = 0; i < 4; i++)
			frwr_run(&r, i % 2 ? OP_WRITE : OP_READ, (enum rxfer_revoke)mode,
				 i / 2 ? FRAGS : 1);
}

/* One slot, and more I/Os than its window has keys. */
static double key_reuse(struct rpc_scene *r, bool renew, enum rxfer_revoke revoke)
{
	uint64_t windows = fake_stats()->alloc_mw;

	frwr_cfg(r, OP_READ, revoke, 1);
	r->s.cfg.depth = 1;
	r->s.cfg.iters = 600;
	r->s.cfg.mw_renew = renew;
	if (run_both(r) || r->s.rc != 1)
		fail_msg("a good run failed: %s / %s", r->s.result.reason, r->s.error);
	assert_int_equal(fake_stats()->alloc_mw - windows, 1 + 1 + (renew ? 2 : 0));
	assert_true(r->s.result.open_after_us_p50 >=
		    0); /* how long is known, where that is 0, too */
	return r->s.result.key_reuse_min;
}

static void keys_that_come_back(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	fake_live()->mw_numbered_on = true;
	assert_true(key_reuse(&r, false, RXFER_REVOKE_SYNC) == 256);
	assert_true(isnan(key_reuse(&r, true, RXFER_REVOKE_SYNC)));
	assert_true(isnan(key_reuse(&r, true, RXFER_REVOKE_LAZY)));
	assert_true(isnan(key_reuse(&r, true, RXFER_REVOKE_REMOTE)));
}

/* ---- A server that revokes what it should not ---- */

static void post_inv(struct rpc_scene *r, uint32_t id, uint32_t key)
{
	struct ibv_sge sge = {(uintptr_t)send_buffer(r, id), good_reply(r, id, id),
			      r->messages->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = 100 + id,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND_WITH_INV,
				       .send_flags = IBV_SEND_SIGNALED,
				       .invalidate_rkey = key};

	assert_int_equal(ibv_post_send(r->s.conn->qp, &wr, &bad), 0);
}

static void two_requests(struct rpc_scene *r, enum cfg_op op, enum rxfer_revoke revoke,
			 uint32_t runs)
{
	frwr_cfg(r, op, revoke, runs);
	r->s.cfg.iters = 2;
	accept_client(r);
	take_requests(r, 2);
}

/* It gives up, names the key where there is one, and has sent nothing since. @sqes, @revoked: that
 * there had been, and were this test's; @violations: likewise. */
struct so_far {
	uint64_t sqes, revoked;
	unsigned int violations;
};

static struct so_far so_far(void)
{
	return (struct so_far){fake_stats()->sqes, fake_stats()->invalidates, fake_violations()};
}

static void gives_up(struct rpc_scene *r, struct so_far should, const char *name, const char *says)
{
	hear_why(r, name, says);
	end_session_after(r, should.violations);
	assert_true(r->s.rc < 0);
	one_line(name, r->s.error, says);
	one_line(name, r->s.result.reason, says);
	assert_int_equal(r->s.result.status, RESULT_FAILED);
	assert_int_equal(fake_stats()->sqes, should.sqes);
	assert_int_equal(fake_stats()->invalidates, should.revoked);
}

/* The reply to request 0 revokes @key; 0: none. The device lets it pass: @lands */
static void wrong_inv(struct rpc_scene *r, const char *name, uint32_t key, bool lands,
		      const char *says)
{
	struct so_far should = so_far();

	should.sqes++;
	should.revoked += lands;
	if (key)
		post_inv(r, 0, key);
	else
		post_bytes(r, 0, good_reply(r, 0, 0));
	gives_up(r, should, name, says);
}

static void a_key_of_nobodys(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (uint32_t runs = 1; runs <= FRAGS; runs += 2) {
		two_requests(&r, OP_READ, RXFER_REVOKE_REMOTE, runs);
		wrong_inv(&r, "nobody's", NOBODYS, false, "RECV failed: IBV_WC_REM_INV_REQ_ERR");
		frwr_run(&r, OP_WRITE, RXFER_REVOKE_REMOTE, runs);
	}
}

static void a_key_of_another_request(void **state)
{
	struct rpc_scene r;
	char says[160];

	(void)state;
	open_rpc_scene(&r);
	for (uint32_t runs = 1; runs <= FRAGS; runs += 2) {
		two_requests(&r, OP_WRITE, RXFER_REVOKE_REMOTE, runs);
		assert_int_not_equal(asked[0][0].key, asked[1][0].key);
		snprintf(says, sizeof(says),
			 "the peer revoked key %#x, which is not one that its request granted",
			 asked[1][0].key);
		wrong_inv(&r, "another's", asked[1][0].key, true, says);
		frwr_run(&r, OP_READ, RXFER_REVOKE_REMOTE, runs);
	}
}

static void no_key(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (uint32_t runs = 1; runs <= FRAGS; runs += 2) {
		two_requests(&r, OP_READ, RXFER_REVOKE_REMOTE, runs);
		wrong_inv(&r, "none", 0, false,
			  "the reply to request 0 revoked no key, as --revoke remote has it");
		frwr_run(&r, OP_READ, RXFER_REVOKE_REMOTE, runs);
	}
}

/* In a run where it is the client alone that revokes. */
static void nobody_asked(void **state)
{
	static const enum rxfer_revoke modes[] = {RXFER_REVOKE_SYNC, RXFER_REVOKE_ASYNC,
						  RXFER_REVOKE_LAZY};
	struct rpc_scene r;
	char says[160];

	(void)state;
	open_rpc_scene(&r);
	for (size_t i = 0; i < 3; i++) {
		two_requests(&r, OP_READ, modes[i], 1);
		snprintf(says, sizeof(says),
			 "the reply to request 0 revoked key %#x, which nobody asked for",
			 asked[0][0].key);
		wrong_inv(&r, "unasked", asked[0][0].key, true, says);
		frwr_run(&r, OP_WRITE, modes[i], 1);
	}
}

/* Nor is it asked for where memory lies open: the device refuses it. */
static void a_key_for_good(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	rpc_cfg(&r, OP_READ);
	r.s.cfg.iters = 2;
	accept_client(&r);
	take_requests(&r, 2);
	wrong_inv(&r, "for good", asked[0][0].key, false, "RECV failed: IBV_WC_REM_INV_REQ_ERR");
	good_run(&r, OP_READ);
}

/* The key is dead by then, by the first reply or by the client's LOCAL_INV: it breaks the
 * connection, and where a kernel does not look, more than that. */
static void a_key_twice(void **state)
{
	struct rpc_scene r;

	(void)state;
	for (uint32_t second = 0; second < 2; second++) {
		struct so_far should;

		open_rpc_scene(&r);
		two_requests(&r, OP_READ, RXFER_REVOKE_REMOTE, 1);
		should = so_far();
		should.sqes += 2;
		should.revoked++;
		should.violations = 1;
		post_inv(&r, 0, asked[0][0].key);
		assert_int_equal(await_wc(&r, false).status, IBV_WC_SUCCESS);
		post_inv(&r, second, asked[0][0].key);
		gives_up(&r, should, "twice", "RECV failed: IBV_WC_REM_INV_REQ_ERR");
	}
}

/* A second reply that revokes another one's key, which is good. */
static void a_second_reply(void **state)
{
	struct so_far should;
	struct rpc_scene r;
	char says[160];

	(void)state;
	open_rpc_scene(&r);
	two_requests(&r, OP_READ, RXFER_REVOKE_REMOTE, 1);
	should = so_far();
	should.sqes += 2;
	should.revoked += 2;
	post_inv(&r, 0, asked[0][0].key);
	post_inv(&r, 0, asked[1][0].key);
	snprintf(says, sizeof(says), "the peer revoked key %#x, which is not one", asked[1][0].key);
	gives_up(&r, should, "second", says);
	frwr_run(&r, OP_READ, RXFER_REVOKE_REMOTE, 1);
}

/* ---- A client that says keys which are not its own to say ---- */

/* struct client - @mw: a window over all that is granted, with key @key. */
struct client {
	struct rpc_scene r;
	struct ibv_mw *mw;
	uint32_t key;
};

static void post_wr(struct rpc_scene *r, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->wr_id = 200;
	wr->send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(r->s.conn->qp, wr, &bad), 0);
	assert_int_equal(await_wc(r, false).status, IBV_WC_SUCCESS);
}

static void bind_window(struct client *c)
{
	struct rpc_scene *r = &c->r;
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};

	c->key = ibv_inc_rkey(c->mw->rkey);
	wr.bind_mw.mw = c->mw;
	wr.bind_mw.rkey = c->key;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = r->granted,
		.addr = (uintptr_t)r->mem + GRANTED,
		.length = PAGE,
		.mw_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};
	post_wr(r, &wr);
	c->mw->rkey = c->key;
}

static void be_client(struct client *c, enum cfg_op op)
{
	frwr_cfg(&c->r, op, RXFER_REVOKE_REMOTE, FRAGS);
	c->r.rights |= IBV_ACCESS_MW_BIND;
	connect_to_server(&c->r);
	c->mw = ibv_alloc_mw(c->r.s.dev->pd, IBV_MW_TYPE_2);
	assert_non_null(c->mw);
	bind_window(c);
}

static void ask_by(struct client *c, unsigned int i, uint32_t id, uint32_t first, uint32_t others)
{
	struct rxfer_seg segs[FRAGS];

	for (uint32_t k = 0; k < FRAGS; k++) {
		segs[k] = good_seg(&c->r, k, SIZE / FRAGS);
		segs[k].key = k ? others : first;
	}
	post_bytes(&c->r, i, write_request(&c->r, i, id, segs, FRAGS, SIZE));
}

/* The server says why its session ends, and serves the next one. */
static void ends(struct client *c, const char *name, const char *says, unsigned int violations)
{
	struct rpc_scene *r = &c->r;

	hear_why(r, name, says);
	assert_int_equal(ibv_dealloc_mw(c->mw), 0);
	end_session_after(r, violations);
	assert_true(r->s.rc < 0);
	one_line(name, r->s.error, says);
	if (!violations)
		frwr_run(r, OP_READ, RXFER_REVOKE_REMOTE, 1);
}

static void a_good_client(void **state)
{
	struct client c;

	(void)state;
	open_rpc_scene(&c.r);
	for (int i = 0; i < 2; i++) {
		be_client(&c, i ? OP_WRITE : OP_READ);
		for (uint32_t n = 0; n < 5; n++) {
			struct ibv_wc wc;

			/* It is the first segment's that the reply revokes. */
			ask_by(&c, 0, n % 2, c.key, n < 3 ? c.r.granted->rkey : c.key);
			wc = await_reply(&c.r);
			assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
			assert_int_equal(wc.invalidated_rkey, c.key);
			bind_window(&c);
		}
		assert_int_equal(ibv_dealloc_mw(c.mw), 0);
		end_session(&c.r);
	}
}

/* The data can be moved, by a region's key, but that is none to be revoked. */
static void a_key_that_cannot_be_revoked(void **state)
{
	struct client c;

	(void)state;
	open_rpc_scene(&c.r);
	for (int i = 0; i < 4; i++) {
		be_client(&c, i % 2 ? OP_WRITE : OP_READ);
		ask_by(&c, 0, 1, c.r.granted->rkey, i / 2 ? c.key : c.r.granted->rkey);
		ends(&c, "a region's", "SEND failed: IBV_WC_REM_OP_ERR", 0);
	}
}

static void a_key_that_opens_nothing(void **state)
{
	struct client c;

	(void)state;
	open_rpc_scene(&c.r);
	for (int i = 0; i < 4; i++) {
		bool write = i % 2;

		be_client(&c, write ? OP_WRITE : OP_READ);
		if (i / 2) { /* it was revoked before */
			struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV,
						 .invalidate_rkey = c.key};

			post_wr(&c.r, &wr);
		}
		ask_by(&c, 0, 0, i / 2 ? c.key : NOBODYS, c.r.granted->rkey);
		ends(&c, "nothing",
		     write ? "RDMA WRITE failed: IBV_WC_REM_ACCESS_ERR"
			   : "RDMA READ failed: IBV_WC_REM_ACCESS_ERR",
		     0);
	}
}

/* Two requests by one key: the first reply revokes it, so the second one has none. The server
 * cannot know, and its client's device is asked for it twice. */
static void one_key_for_two(void **state)
{
	struct client c;

	(void)state;
	open_rpc_scene(&c.r);
	be_client(&c, OP_READ);
	ask_by(&c, 0, 0, c.key, c.r.granted->rkey);
	await_reply(&c.r);
	ask_by(&c, 1, 1, c.key, c.r.granted->rkey);
	ends(&c, "again", "RDMA READ failed: IBV_WC_REM_ACCESS_ERR", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_runs),
		cmocka_unit_test(keys_that_come_back),
		cmocka_unit_test(a_key_of_nobodys),
		cmocka_unit_test(a_key_of_another_request),
		cmocka_unit_test(no_key),
		cmocka_unit_test(nobody_asked),
		cmocka_unit_test(a_key_for_good),
		cmocka_unit_test(a_key_twice),
		cmocka_unit_test(a_second_reply),
		cmocka_unit_test(a_good_client),
		cmocka_unit_test(a_key_that_cannot_be_revoked),
		cmocka_unit_test(a_key_that_opens_nothing),
		cmocka_unit_test(one_key_for_two),
	};

	return cmocka_run_group_tests_name("unit_rpc_frwr", tests, NULL, NULL);
}
