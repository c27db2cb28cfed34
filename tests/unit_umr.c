/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The strategy frwr-umr, on the test double: what is gathered under one key for the peer, how that
 * ends, and who can have it. */
#include "frwr_fixture.h"

static struct fake_config mlx5(void)
{
	struct fake_config config = engine_config();

	config.device[0].mlx5 = true;
	config.auto_steps = 8;
	return config;
}

static void open_umr(struct pair *p, const struct how *how)
{
	const struct fake_config config = mlx5();
	struct how with = *how;

	with.strategy = "frwr-umr";
	open_with(p, &config, &with);
}

static void open_mode(struct pair *p, enum rxfer_revoke revoke)
{
	const struct how how = {.revoke = revoke, .exposed = FRAGS};

	open_umr(p, &how);
}

static uint8_t *slot_memory(uint32_t i)
{
	return mine + i * ROOM + AT;
}

/* The peer reads just the fragments, in a row, and puts others there; what is between them stays.
 */
static void reaches_all(struct pair *p, uint32_t i, uint32_t n, uint32_t stride)
{
	const struct rxfer_seg at = segs(p, i, 1)[0];
	uint8_t were[ROOM];

	assert_int_equal(at.addr, 0);
	assert_int_equal(at.len, n * LEN);
	memcpy(were, mine + i * ROOM, ROOM);
	memset(theirs, 0, at.len);
	assert_int_equal(reach(p, RXFER_READ, at), 0);
	for (uint32_t k = 0; k < n; k++)
		assert_memory_equal(theirs + k * LEN, slot_memory(i) + (size_t)k * stride, LEN);
	for (uint32_t b = 0; b < at.len; b++)
		theirs[b] ^= 0x5a;
	assert_int_equal(reach(p, RXFER_WRITE, at), 0);
	for (uint32_t k = 0; k < n; k++) {
		uint8_t *piece = were + AT + (size_t)k * stride;

		memcpy(piece, theirs + k * LEN, LEN);
	}
	assert_memory_equal(mine + i * ROOM, were, ROOM);
}

/* A slot's I/O up to its request's completion. */
static void grant(struct pair *p, uint32_t i, uint32_t n, uint32_t stride)
{
	expose(p, i, n, stride);
	ask(p, i);
	serve(p);
	expect_done(p, RXFER_SEND, i);
}

static void end(struct pair *p, uint32_t i)
{
	assert_int_equal(revoke(p, i, 0), 0);
	expect_done(p, RXFER_REVOKE, REVOKE + i);
}

/* ---- What is exposed ---- */

static void fragments_are_one_segment(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= FRAGS; n++)
		for (int gaps = 0; gaps < 2; gaps++) {
			struct pair p;

			open_mode(&p, RXFER_REVOKE_SYNC);
			grant(&p, 0, n, gaps ? GAPS : ADJOINS);
			open_keys(&p, 1, n * LEN);
			posted(&p, 1, 1, 1, 0);
			reaches_all(&p, 0, n, gaps ? GAPS : ADJOINS);
			end(&p, 0);
			posted(&p, 2, 1, 1, 1);
			open_keys(&p, 0, 0);
			is_refused(&p, RXFER_WRITE, segs(&p, 0, 1)[0]);
			close_pair(&p);
			assert_int_equal(fake_stats()->umrs, 2); /* one to try it out */
			assert_int_equal(fake_stats()->umr_invalidates, 2);
		}
}

static void the_peer_gets_what_was_asked_for(void **state)
{
	static const enum rxfer_opcode other[] = {RXFER_WRITE, RXFER_READ};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct rxfer_seg beyond;
		struct pair p;

		for (int attempt = 0; attempt < 2; attempt++) {
			open_mode(&p, RXFER_REVOKE_SYNC);
			assert_int_equal(expose_part(&p, 0, 2, GAPS,
						     i ? RXFER_EXPOSE_WRITE : RXFER_EXPOSE_READ),
					 0);
			ask(&p, 0);
			beyond = segs(&p, 0, 1)[0];
			if (attempt)
				is_refused(&p, other[i], beyond);
			beyond.addr = beyond.len;
			beyond.len = 1;
			if (!attempt)
				is_refused(&p, other[1 - i], beyond);
			rxfer_conn_close(p.e.client);
			p.e.client = NULL;
			engine_close(&p.e);
		}
	}
}

/* Before anything is exposed a request can be written. */
static void a_cut(void **state)
{
	struct rxfer_frag frag[2] = {{slot_memory(0), LEN}, {slot_memory(0) + GAPS, LEN}};
	struct pair p;

	(void)state;
	open_mode(&p, RXFER_REVOKE_SYNC);
	assert_int_equal(rxfer_exposure_cut(p.e.client, p.x[0], frag, 2, BOTH), 0);
	assert_int_equal(segs(&p, 0, 1)[0].addr, 0);
	assert_int_equal(segs(&p, 0, 1)[0].len, 2 * LEN);
	assert_int_equal(segs(&p, 0, 1)[0].key, 0);
	posted(&p, 0, 0, 0, 0);
	close_pair(&p);
}

/* ---- The ways to revoke ---- */

static void what_an_io_takes(void **state)
{
	static const struct {
		enum rxfer_revoke revoke;
		uint32_t need, later;
	} modes[] = {
		{RXFER_REVOKE_SYNC, 3, 1},
		{RXFER_REVOKE_ASYNC, 3, 1},
		{RXFER_REVOKE_REMOTE, 2, 0},
		{RXFER_REVOKE_LAZY, 3, 0},
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct pair p;

		open_mode(&p, modes[i].revoke);
		assert_int_equal(p.info.need, modes[i].need);
		assert_int_equal(p.info.later, modes[i].later);
		expose(&p, 0, FRAGS, GAPS);
		ask(&p, 0);
		account(&p, 2, modes[i].later);
		serve(&p);
		expect_done(&p, RXFER_SEND, 0);
		account(&p, 0, modes[i].later);
		close_pair(&p);
	}
}

static void the_reply_revokes(void **state)
{
	struct rxfer_done done;
	struct pair p;

	(void)state;
	open_mode(&p, RXFER_REVOKE_REMOTE);
	grant(&p, 0, 3, GAPS);
	reply(&p, RXFER_INVALIDATE, key(&p, 0));
	done = message(&p);
	assert_true(done.with_inv);
	assert_int_equal(done.imm, key(&p, 0));
	assert_int_equal(rxfer_peer_revoked(p.e.client, p.x[0], done.imm), 0);
	open_keys(&p, 0, 0);
	serve(&p);
	is_refused(&p, RXFER_READ, segs(&p, 0, 1)[0]);
	close_pair(&p);
}

/* A device takes no message for it where it was not told that one may come. */
static void the_peer_may_not(void **state)
{
	struct pair p;

	(void)state;
	open_mode(&p, RXFER_REVOKE_SYNC);
	grant(&p, 0, 3, GAPS);
	reply(&p, RXFER_INVALIDATE, key(&p, 0));
	breaks(&p, -EIO, "IBV_WC_REM_INV_REQ_ERR");
	close_pair(&p);
}

static void lazily(void **state)
{
	struct rxfer_seg old;
	struct pair p;

	(void)state;
	open_mode(&p, RXFER_REVOKE_LAZY);
	for (uint32_t i = 0; i < 3; i++) {
		grant(&p, 0, 2, GAPS);
		reaches_all(&p, 0, 2, GAPS);
		open_keys(&p, 1, 2 * LEN);
		posted(&p, i + 1, i + 1, i + 1, i);
	}
	old = segs(&p, 0, 1)[0];
	expose(&p, 0, 1, GAPS);
	ask(&p, 0);
	assert_int_equal(rxfer_conn_exposed(p.e.client).now, 3 * LEN);
	serve(&p);
	expect_done(&p, RXFER_SEND, 0);
	open_keys(&p, 1, LEN);
	is_refused(&p, RXFER_READ, old);
	close_pair(&p);
}

/* Chosen again where it was not posted: as the device has it. */
static void a_key_that_was_not_posted(void **state)
{
	struct pair p;
	uint32_t first;

	(void)state;
	open_mode(&p, RXFER_REVOKE_SYNC);
	expose(&p, 0, 2, GAPS);
	first = key(&p, 0);
	expose(&p, 0, 3, GAPS);
	assert_int_equal(key(&p, 0), first);
	ask(&p, 0);
	reaches_all(&p, 0, 3, GAPS);
	close_pair(&p);
}

/* ---- Keys ---- */

static uint32_t reuse(const struct pair *p)
{
	struct rxfer_conn_info info;

	rxfer_conn_info(p->e.client, &info);
	return info.key_reuse_min;
}

static void a_key_comes_back(void **state)
{
	struct pair p;
	uint32_t first = 0;

	(void)state;
	open_mode(&p, RXFER_REVOKE_SYNC);
	for (uint32_t i = 0; i < 257; i++) {
		grant(&p, 0, 1, GAPS);
		first = i ? first : key(&p, 0);
		assert_int_equal(key(&p, 0) == first, i == 0 || i == 256);
		assert_int_equal(reuse(&p), i == 256 ? 256 : 0);
		end(&p, 0);
	}
	close_pair(&p);
}

/* A device without tags: it is the same one each time, and said so. */
static void one_key_for_ever(void **state)
{
	const struct how how = {.strategy = "frwr-umr"};
	struct fake_config config = mlx5();
	struct pair p;
	uint32_t first;

	(void)state;
	config.device[0].mkey_tagless = true;
	open_with(&p, &config, &how);
	grant(&p, 0, 1, GAPS);
	first = key(&p, 0);
	end(&p, 0);
	assert_int_equal(reuse(&p), 0);
	grant(&p, 0, 1, GAPS);
	assert_int_equal(key(&p, 0), first);
	assert_int_equal(reuse(&p), 1);
	end(&p, 0);
	assert_int_equal(rxfer_exposure_renew(p.e.client, p.x[0]), 0);
	grant(&p, 0, 1, GAPS);
	assert_int_not_equal(key(&p, 0), first);
	end(&p, 0);
	close_pair(&p);
}

static void renewed(void **state)
{
	(void)state;
	for (int lazy = 0; lazy < 2; lazy++) {
		struct rxfer_seg old = {0};
		uint64_t made;
		struct pair p;

		open_mode(&p, lazy ? RXFER_REVOKE_LAZY : RXFER_REVOKE_SYNC);
		made = fake_stats()->create_mkey;
		for (uint32_t i = 0; i < 255; i++) {
			assert_int_equal(rxfer_exposure_renew(p.e.client, p.x[0]), 0);
			grant(&p, 0, 1, GAPS);
			old = segs(&p, 0, 1)[0];
			if (!lazy)
				end(&p, 0);
		}
		assert_int_equal(fake_stats()->create_mkey, made);
		assert_int_equal(rxfer_exposure_renew(p.e.client, p.x[0]),
				 lazy ? RXFER_REVOKED : 0);
		open_keys(&p, 0, 0);
		assert_int_equal(fake_stats()->create_mkey, made + 1);
		grant(&p, 0, 2, GAPS);
		reaches_all(&p, 0, 2, GAPS);
		assert_int_equal(reuse(&p), 0);
		is_refused(&p, RXFER_READ, old);
		close_pair(&p);
	}
}

static void renewed_in_vain(void **state)
{
	struct pair p;

	(void)state;
	open_mode(&p, RXFER_REVOKE_LAZY);
	for (uint32_t i = 0; i < 255; i++)
		grant(&p, 0, 1, GAPS);
	fake_live()->fail_create_mkey = (struct fake_fault){1, ENOMEM};
	assert_int_equal(rxfer_exposure_renew(p.e.client, p.x[0]), -ENOMEM);
	engine_said("mlx5dv_create_mkey on fake0, for 4 pieces");
	fake_live()->fail_destroy_mkey = (struct fake_fault){1, EBUSY};
	assert_int_equal(rxfer_exposure_renew(p.e.client, p.x[0]), -EBUSY);
	engine_said("mlx5dv_destroy_mkey on fake0");
	open_keys(&p, 1, LEN);
	reaches_all(&p, 0, 1, GAPS);
	close_pair(&p);
}

/* ---- What fails ---- */

static void a_grant_that_fails(void **state)
{
	struct pair p;

	(void)state;
	open_mode(&p, RXFER_REVOKE_SYNC);
	expose(&p, 0, 2, GAPS);
	ask(&p, 0);
	fake_live()->fail_wr = (struct fake_fault){1, IBV_WC_MW_BIND_ERR};
	breaks(&p, -EIO, "UMR failed");
	close_pair(&p);
}

static void a_post_that_is_refused(void **state)
{
	struct pair p;

	(void)state;
	open_mode(&p, RXFER_REVOKE_SYNC);
	expose(&p, 0, 2, GAPS);
	fake_live()->fail_post_send = (struct fake_fault){1, ENOMEM};
	assert_int_equal(post_request(&p, 0, 0), -ENOMEM);
	engine_said("ibv_wr_complete on fake0 took 0 of 2 WRs");
	posted(&p, 1, 0, 0, 0);
	close_pair(&p);
}

static void too_many_runs(void **state)
{
	const struct how how = {.exposed = 2};
	struct pair p;

	(void)state;
	open_umr(&p, &how);
	assert_int_equal(expose_part(&p, 0, 3, GAPS, BOTH), -EMSGSIZE);
	engine_said("an I/O's memory is 3 contiguous runs, and its exposure was made for 2");
	expose(&p, 0, 3, ADJOINS);
	close_pair(&p);
}

static void memory_that_is_not_declared(void **state)
{
	struct rxfer_frag frag = {theirs, LEN};
	struct pair p;

	(void)state;
	open_mode(&p, RXFER_REVOKE_SYNC);
	assert_int_equal(rxfer_expose(p.e.client, p.x[0], &frag, 1, BOTH), -EFAULT);
	assert_int_equal(rxfer_exposure_cut(p.e.client, p.x[0], &frag, 1, BOTH), -EFAULT);
	assert_int_equal(rxfer_revoke(p.e.client, p.x[0]), -ENOENT);
	grant(&p, 0, 1, GAPS);
	assert_int_equal(rxfer_revoke(p.e.client, p.x[0]), -EOPNOTSUPP);
	close_pair(&p);
}

/* ---- Who can have it ---- */

static int try(const struct fake_config *config)
{
	int rc;

	fake_start(config);
	rc = rxfer_dev_try("fake0", "frwr-umr");
	assert_int_equal(fake_leaks(NULL, 0), 0);
	assert_int_equal(fake_violations(), 0);
	return rc;
}

static void devices(void **state)
{
	struct fake_config config = mlx5();

	(void)state;
	assert_int_equal(try(&config), 0);
	config.device[0].infiniband = true;
	assert_int_equal(try(&config), 0);
	config.device[0].mlx5 = false;
	assert_int_equal(try(&config), -EOPNOTSUPP);
	engine_said("frwr-umr takes mkeys of mlx5, and fake0 is another driver's");
}

/* All succeeds, and nothing has moved: that is found before anything is timed. */
static void a_device_that_moves_nothing(void **state)
{
	struct fake_config config = mlx5();

	(void)state;
	config.device[0].mkey_blind = true;
	assert_int_equal(try(&config), -EOPNOTSUPP);
	engine_said("a WRITE to an mkey succeeded and moved wrong bytes, or none");
}

static void what_the_trial_meets(void **state)
{
	static const struct {
		size_t fault;
		int with;
		const char *words;
	} cases[] = {
#define FAULT(member) offsetof(struct fake_config, member)
		{FAULT(fail_create_mkey), EPERM, "it makes no mkey: Operation not permitted"},
		{FAULT(fail_reg_mr), ENOMEM, "ibv_reg_mr failed"},
		{FAULT(fail_create_cq), ENOMEM, "ibv_create_cq failed"},
		{FAULT(fail_create_qp), ENOMEM, "mlx5dv_create_qp failed"},
		{FAULT(fail_modify_qp), EINVAL, "its queue pair does not get ready"},
		{FAULT(fail_post_send), ENOMEM, "posting failed"},
		{FAULT(fail_wr), IBV_WC_LOC_PROT_ERR, "local protection error"},
#undef FAULT
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fake_config config = mlx5();

		*(struct fake_fault *)(void *)((char *)&config + cases[i].fault) =
			(struct fake_fault){1, cases[i].with};
		assert_int_equal(try(&config), -EOPNOTSUPP);
		engine_said("frwr-umr tried itself out on fake0 before use, and");
		engine_said(cases[i].words);
	}
}

/* A device that never completes: the trial ends. */
static void no_completion(void **state)
{
	struct fake_config config = mlx5();

	(void)state;
	config.auto_steps = 0;
	assert_int_equal(try(&config), -EOPNOTSUPP);
	engine_said("a WRITE to an mkey did not complete");
}

static void what_it_is(void **state)
{
	(void)state;
	assert_string_equal(rxfer_strategy_engine("frwr-umr"), "umr");
	assert_true(rxfer_strategy_by_wr("frwr-umr"));
	assert_false(rxfer_strategy_on_qp("frwr-umr"));
	assert_int_equal(rxfer_strategy_maps("frwr-umr", false), 0);
	assert_int_equal(rxfer_strategy_maps("frwr-umr", true), -EOPNOTSUPP);
	engine_said("take another --peer-strategy");
	assert_int_equal(rxfer_strategy_revokes("frwr-umr", RXFER_REVOKE_NONE), -EOPNOTSUPP);
	engine_said("frwr-umr gives one list after the other to the same key");
	for (int mode = RXFER_REVOKE_SYNC; mode < RXFER_REVOKE_AUTO; mode++)
		assert_int_equal(rxfer_strategy_revokes("frwr-umr", (enum rxfer_revoke)mode), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fragments_are_one_segment),
		cmocka_unit_test(the_peer_gets_what_was_asked_for),
		cmocka_unit_test(a_cut),
		cmocka_unit_test(what_an_io_takes),
		cmocka_unit_test(the_reply_revokes),
		cmocka_unit_test(the_peer_may_not),
		cmocka_unit_test(lazily),
		cmocka_unit_test(a_key_that_was_not_posted),
		cmocka_unit_test(a_key_comes_back),
		cmocka_unit_test(one_key_for_ever),
		cmocka_unit_test(renewed),
		cmocka_unit_test(renewed_in_vain),
		cmocka_unit_test(a_grant_that_fails),
		cmocka_unit_test(a_post_that_is_refused),
		cmocka_unit_test(too_many_runs),
		cmocka_unit_test(memory_that_is_not_declared),
		cmocka_unit_test(devices),
		cmocka_unit_test(a_device_that_moves_nothing),
		cmocka_unit_test(what_the_trial_meets),
		cmocka_unit_test(no_completion),
		cmocka_unit_test(what_it_is),
	};

	return cmocka_run_group_tests_name("unit_umr", tests, NULL, NULL);
}
