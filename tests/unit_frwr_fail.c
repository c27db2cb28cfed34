/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The strategy frwr where something fails: each is named, and nothing is left behind. */
#include "frwr_fixture.h"

/* ---- Devices ---- */

static void no_windows(bool iwarp)
{
	struct fake_config config = engine_config();
	struct rxfer_dev *dev = NULL;
	char leaks[256];

	config.device[0].iwarp = iwarp;
	if (!iwarp)
		config.device[0].max_mw = 0;
	fake_start(&config);
	assert_int_equal(rxfer_dev_open("", "frwr", &dev), -EOPNOTSUPP);
	engine_said("frwr takes memory windows of type 2, and fake0 gives none");
	assert_null(dev);
	assert_int_equal(rxfer_dev_try("fake0", "frwr"), -EOPNOTSUPP);
	engine_said("gives none");
	assert_int_equal(rxfer_dev_try("fake0", "global"), 0);
	assert_int_equal(fake_leaks(leaks, sizeof(leaks)), 0);
	assert_int_equal(fake_violations(), 0);
}

static void a_device_without_windows(void **state)
{
	(void)state;
	no_windows(true);
	no_windows(false);
}

static void a_device_with_windows(void **state)
{
	struct fake_config config = engine_config();

	(void)state;
	fake_start(&config);
	assert_int_equal(rxfer_dev_try("fake0", "frwr"), 0);
	assert_int_equal(fake_stats()->alloc_mw, 2); /* it was asked, and an exposure made */
	assert_int_equal(fake_stats()->dealloc_mw, 2);
	fake_live()->fail_alloc_mw = (struct fake_fault){2, ENOMEM};
	assert_int_equal(rxfer_dev_try("fake0", "frwr"), -ENOMEM);
	engine_said("ibv_alloc_mw on fake0");
	fake_live()->fail_dealloc_mw = (struct fake_fault){1, EBUSY};
	assert_int_equal(rxfer_dev_try("fake0", "frwr"), -EBUSY);
	engine_said("ibv_dealloc_mw on fake0");
}

static void what_it_is(void **state)
{
	(void)state;
	assert_string_equal(rxfer_strategy_engine("frwr"), "mw");
	assert_true(rxfer_strategy_by_wr("frwr"));
	assert_int_equal(rxfer_strategy_maps("frwr", false), -EOPNOTSUPP);
	engine_said("frwr has no key for local use");
	assert_int_equal(rxfer_strategy_maps("frwrr", false), -ENOENT);
	for (unsigned int i = 0; rxfer_strategy_name(i); i++) {
		bool frwr = !strcmp(rxfer_strategy_name(i), "frwr");

		assert_int_equal(rxfer_strategy_on_qp(rxfer_strategy_name(i)), frwr);
		assert_int_equal(rxfer_strategy_maps(rxfer_strategy_name(i), false),
				 frwr ? -EOPNOTSUPP : 0);
	}
	assert_int_equal(rxfer_strategy_revokes("frwr", RXFER_REVOKE_NONE), -EOPNOTSUPP);
	engine_said("frwr has one key after the other");
	for (int mode = RXFER_REVOKE_SYNC; mode < RXFER_REVOKE_AUTO; mode++)
		assert_int_equal(rxfer_strategy_revokes("frwr", (enum rxfer_revoke)mode), 0);
}

/* Memory that no peer is to reach is not registered: there is no use for it. */
static void memory_for_nobody(void **state)
{
	struct rxfer_mem *mem;
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_SYNC, 1);
	assert_int_equal(rxfer_dev_counts(p.e.cdev)->mr_now, 2);
	assert_int_equal(rxfer_mem_add(p.e.cdev, theirs, ROOM, RXFER_LOCAL, &mem), 0);
	assert_int_equal(rxfer_dev_counts(p.e.cdev)->mr_now, 2);
	rxfer_mem_del(mem);
	rxfer_mem_del(p.mem);
	assert_int_equal(rxfer_dev_counts(p.e.cdev)->mr_now, 1);
	close_pair(&p);
}

/* ---- Windows ---- */

/* The i-th of an exposure's windows is not to be had: then it has none, and the next one all. */
static void a_window_that_is_not_to_be_had(void **state)
{
	struct rxfer_exposure *x;
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_SYNC, 3);
	for (uint32_t i = 1; i <= 3; i++) {
		uint64_t freed = fake_stats()->dealloc_mw;

		fake_live()->fail_alloc_mw = (struct fake_fault){i, ENOMEM};
		assert_int_equal(rxfer_exposure_new(p.e.client, FRAGS, &x), -ENOMEM);
		engine_said("ibv_alloc_mw on fake0: Cannot allocate memory (max_mw 65536)");
		engine_said("use a smaller --depth or --frags");
		assert_int_equal(fake_stats()->dealloc_mw - freed, i - 1);
	}
	assert_int_equal(rxfer_exposure_new(p.e.client, FRAGS, &x), 0);
	assert_int_equal(fake_stats()->alloc_mw - fake_stats()->dealloc_mw, 3 * (SLOTS + 1));
	close_pair(&p);
}

static void more_windows_than_there_are(void **state)
{
	struct fake_config config = engine_config();
	const struct how how = {.exposed = 2, .slots = 2};
	struct rxfer_exposure *x;
	struct pair p;

	(void)state;
	config.device[0].max_mw = 5;
	open_with(&p, &config, &how);
	assert_int_equal(rxfer_exposure_new(p.e.client, FRAGS, &x), -ENOMEM);
	engine_said("(max_mw 5)");
	assert_int_equal(rxfer_exposure_new(p.e.client, 1, &x),
			 0); /* of one fragment: one will do */
	close_pair(&p);
}

/* A window that cannot be given back, or where there is no other: it goes on, and is tried again
 * the next time. */
static void renewing_fails(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_LAZY, 1);
	for (uint32_t i = 0; i < 255; i++) {
		expose(&p, 0, 1, GAPS);
		ask(&p, 0);
		serve(&p);
		expect_done(&p, RXFER_SEND, 0);
	}
	fake_live()->fail_dealloc_mw = (struct fake_fault){1, EBUSY};
	assert_int_equal(rxfer_exposure_renew(p.e.client, p.x[0]), -EBUSY);
	engine_said("ibv_dealloc_mw on fake0");
	open_keys(&p, 1, LEN);
	reaches(&p, segs(&p, 0, 1)[0]);
	fake_live()->fail_alloc_mw = (struct fake_fault){1, ENOMEM};
	assert_int_equal(rxfer_exposure_renew(p.e.client, p.x[0]), -ENOMEM);
	engine_said("ibv_alloc_mw on fake0");
	open_keys(&p, 1, LEN);
	expose(&p, 0, 1, GAPS);
	ask(&p, 0);
	serve(&p);
	expect_done(&p, RXFER_SEND, 0);
	reaches(&p, segs(&p, 0, 1)[0]);
	posted(&p, 256, 256, 256, 255);
	assert_int_equal(rxfer_exposure_renew(p.e.client, p.x[0]), RXFER_REVOKED);
	open_keys(&p, 0, 0);
	close_pair(&p);
}

/* A window that the device keeps stays in the books, as its key is open. */
static void a_window_that_stays(void **state)
{
	char leaks[256];
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_SYNC, 1);
	for (uint32_t i = 0; i < 2; i++) {
		expose(&p, i, 1, GAPS);
		ask(&p, i);
	}
	fake_run();
	fake_live()->fail_dealloc_mw = (struct fake_fault){SLOTS, EBUSY}; /* the first one's */
	rxfer_conn_close(p.e.client);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).live, 1);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, LEN);
	rxfer_conn_close(p.e.server);
	rxfer_listener_close(p.e.listener);
	rxfer_dev_close(p.e.cdev);
	rxfer_dev_close(p.e.sdev);
	assert_true(fake_leaks(leaks, sizeof(leaks)) > 0);
	fake_start(&(struct fake_config){.devices = 0});
}

/* ---- Completions ---- */

/* Broken, with what is open still in the books, and closed in good order. */
static void names(struct pair *p, const char *words, uint32_t open)
{
	breaks(p, -EIO, words);
	open_keys(p, open, LEN);
	assert_int_equal(expose_part(p, 7, 1, GAPS, BOTH), -EIO);
	engine_said(words);
	assert_true(post_request(p, 6, 0) < 0);
	close_pair(p);
}

static void a_bind_fails(void **state)
{
	static const char *const signals[] = {"all", "io", "every:60"};

	(void)state;
	for (uint32_t i = 0; i < 3 * 3; i++) {
		const struct how how = {.exposed = 3, .signal = signals[i / 3], .sq_depth = 70};
		struct pair p;

		open_with(&p, NULL, &how);
		expose(&p, 0, 3, GAPS);
		fake_live()->fail_bind = 1 + i % 3;
		ask(&p, 0);
		fake_run();
		assert_int_equal(fake_stats()->binds, i % 3);
		assert_int_equal(serve(&p), 0); /* the request never went */
		names(&p, "BIND_MW failed: IBV_WC_MW_BIND_ERR", 3);
	}
}

/* The i-th WR of a request that revokes two keys first, and grants two. */
static void a_part_of_a_lazy_request_fails(void **state)
{
	static const char *const what[] = {"LOCAL_INV failed: IBV_WC_LOC_QP_OP_ERR",
					   "LOCAL_INV failed", "BIND_MW failed", "BIND_MW failed",
					   "SEND failed"};

	(void)state;
	for (uint32_t i = 0; i < 5 * 2; i++) {
		const struct how how = {.revoke = RXFER_REVOKE_LAZY,
					.exposed = 2,
					.signal = i % 2 ? "all" : "every:60",
					.sq_depth = 70};
		struct pair p;

		open_with(&p, NULL, &how);
		expose(&p, 0, 2, GAPS);
		assert_int_equal(post_request(&p, 0, RXFER_MUST_SIGNAL), 0);
		serve(&p);
		expect_done(&p, RXFER_SEND, 0);
		expose(&p, 0, 2, GAPS);
		fake_live()->fail_wr = (struct fake_fault){1 + i / 2, IBV_WC_LOC_QP_OP_ERR};
		ask(&p, 0);
		names(&p, what[i / 2], 4);
	}
}

static void a_revoke_fails(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 3 * 2; i++) {
		const struct how how = {
			.exposed = 3, .signal = i % 2 ? "all" : "every:60", .sq_depth = 70};
		struct pair p;

		open_with(&p, NULL, &how);
		expose(&p, 0, 3, GAPS);
		assert_int_equal(post_request(&p, 0, RXFER_MUST_SIGNAL), 0);
		serve(&p);
		expect_done(&p, RXFER_SEND, 0);
		fake_live()->fail_wr = (struct fake_fault){1 + i / 2, IBV_WC_LOC_QP_OP_ERR};
		assert_int_equal(revoke(&p, 0, 0), 0);
		names(&p, "LOCAL_INV failed: IBV_WC_LOC_QP_OP_ERR", 3);
	}
}

/* The peer leaves while keys are open, or being revoked. */
static void the_peer_leaves(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct pair p;

		open_pair(&p, RXFER_REVOKE_SYNC, 2);
		expose(&p, 0, 2, GAPS);
		ask(&p, 0);
		serve(&p);
		expect_done(&p, RXFER_SEND, 0);
		if (i)
			assert_int_equal(revoke(&p, 0, 0), 0);
		fake_disconnect(p.e.client->qp);
		breaks(&p, -ENOTCONN, "failed: IBV_WC_WR_FLUSH_ERR");
		open_keys(&p, 2, LEN);
		assert_true(revoke(&p, 0, 0) < 0);
		close_pair(&p);
	}
}

/* ---- Posts ---- */

/* What is posted of a chain of revokes, grants, and the request. */
static void taken(const struct pair *p, uint32_t before, uint32_t invs, uint32_t binds, uint32_t n)
{
	const struct rxfer_counts *c = rxfer_conn_counts(p->e.client);
	uint32_t i = n < invs ? n : invs, b = n - i < binds ? n - i : binds;

	assert_int_equal(c->sqe, before + n);
	assert_int_equal(c->sqe, fake_stats()->sqes);
	assert_int_equal(c->sqe_op[RXFER_REVOKE], i);
	assert_int_equal(c->sqe_op[RXFER_BIND], (before ? before - 1 : 0) + b);
	assert_int_equal(c->sqe_op[RXFER_SEND], (before ? 1 : 0) + n - i - b);
	assert_int_equal(rxfer_sq_posted(&p->e.client->sq), n);
	assert_int_equal(fake_sq_posted(p->e.client->qp), n);
}

static void is_refused_at(struct pair *p, uint32_t n, uint32_t of)
{
	char words[64];

	snprintf(words, sizeof(words), "took %u of %u WRs", n, of);
	engine_said(words);
	assert_int_equal(p->e.client->broken, -ENOSPC);
	assert_int_equal(expose_part(p, 7, 1, GAPS, BOTH), -ENOSPC);
	assert_true(post_request(p, 6, 0) < 0);
}

static void refuse(uint32_t n, bool single)
{
	if (single) {
		fake_live()->fail_post_send = (struct fake_fault){n + 1, ENOSPC};
		return;
	}
	fake_live()->post_part.nth = 1;
	fake_live()->post_part.take = n;
	fake_live()->post_part.err = ENOSPC;
}

/* The device takes @n of the request's WRs. @lazily: they begin with two that revoke. */
static void a_request_is_refused(uint32_t n, bool lazily, bool single)
{
	const struct how how = {.revoke = lazily ? RXFER_REVOKE_LAZY : RXFER_REVOKE_SYNC,
				.exposed = 2,
				.post_single = single};
	uint32_t invs = lazily ? 2 : 0;
	struct pair p;

	open_with(&p, NULL, &how);
	if (lazily) {
		expose(&p, 0, 2, GAPS);
		ask(&p, 0);
		serve(&p);
		expect_done(&p, RXFER_SEND, 0);
	}
	expose(&p, 0, 2, GAPS);
	refuse(n, single);
	assert_int_equal(post_request(&p, 0, 0), -ENOSPC);
	taken(&p, lazily ? 3 : 0, invs, 2, n);
	open_keys(&p, 2 + invs, LEN);
	is_refused_at(&p, n, 3 + invs);
	close_pair(&p);
}

static void a_request_is_refused_in_the_middle(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 5; n++)
		for (int single = 0; single < 2; single++) {
			a_request_is_refused(n, true, single);
			if (n < 3)
				a_request_is_refused(n, false, single);
		}
}

static void a_revoke_is_refused_in_the_middle(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 3 * 2; n++) {
		const struct how how = {.exposed = 3, .post_single = n % 2};
		struct pair p;

		open_with(&p, NULL, &how);
		expose(&p, 0, 3, GAPS);
		ask(&p, 0);
		serve(&p);
		expect_done(&p, RXFER_SEND, 0);
		refuse(n / 2, n % 2);
		assert_int_equal(revoke(&p, 0, 0), -ENOSPC);
		taken(&p, 4, n / 2, 0, n / 2);
		open_keys(&p, 3, LEN);
		is_refused_at(&p, n / 2, 3);
		close_pair(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_without_windows),
		cmocka_unit_test(a_device_with_windows),
		cmocka_unit_test(what_it_is),
		cmocka_unit_test(memory_for_nobody),
		cmocka_unit_test(a_window_that_is_not_to_be_had),
		cmocka_unit_test(more_windows_than_there_are),
		cmocka_unit_test(renewing_fails),
		cmocka_unit_test(a_window_that_stays),
		cmocka_unit_test(a_bind_fails),
		cmocka_unit_test(a_part_of_a_lazy_request_fails),
		cmocka_unit_test(a_revoke_fails),
		cmocka_unit_test(the_peer_leaves),
		cmocka_unit_test(a_request_is_refused_in_the_middle),
		cmocka_unit_test(a_revoke_is_refused_in_the_middle),
	};

	return cmocka_run_group_tests_name("unit_frwr_fail", tests, NULL, NULL);
}
