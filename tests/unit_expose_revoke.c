/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Exposing memory to the peer, on the test double: what is refused, what is left when the device
 * fails, one revoke for each key, and what the ledger says of all that.
 */
#include <stdio.h>
#include "expose_fixture.h"

/* ---- Refused ---- */

static void refused(struct pair *p, struct rxfer_frag frag, unsigned int rights, int want,
		    const char *words)
{
	assert_int_equal(rxfer_expose(p->e.client, p->x, &frag, 1, rights), want);
	engine_said(words);
	assert_int_equal(nseg(p), 0);
	assert_int_equal(rxfer_conn_exposed(p->e.client).live, 0);
}

static void wrong_calls(const char *strategy)
{
	static uint8_t elsewhere[8];
	struct rxfer_mem *local;
	struct pair p;

	open_pair(&p, NULL, strategy, RXFER_EXPOSE_READ);
	assert_int_equal(rxfer_mem_add(p.e.cdev, elsewhere, 4, RXFER_LOCAL, &local), 0);
	refused(&p, (struct rxfer_frag){elsewhere, 8}, RXFER_EXPOSE_READ, -EFAULT, "rxfer_mem_add");
	refused(&p, (struct rxfer_frag){elsewhere, 4}, RXFER_EXPOSE_READ, -EACCES,
		"RXFER_EXPOSE_READ");
	refused(&p, (struct rxfer_frag){mine, 4}, RXFER_EXPOSE_WRITE, -EACCES,
		"RXFER_EXPOSE_WRITE");
	refused(&p, (struct rxfer_frag){mine, 4}, BOTH, -EACCES, "RXFER_EXPOSE_WRITE");
	refused(&p, (struct rxfer_frag){mine, 0}, RXFER_EXPOSE_READ, -EINVAL, "no bytes");
	refused(&p, (struct rxfer_frag){mine, 4}, 0, -EINVAL, "rights 0");
	refused(&p, (struct rxfer_frag){mine, 4}, RXFER_PEER_READ, -EINVAL, "rights 0x1");
	assert_int_equal(expose(&p, 0, 100, RXFER_EXPOSE_READ), -EINVAL);
	assert_int_equal(expose(&p, FRAGS + 1, 100, RXFER_EXPOSE_READ), -EINVAL);
	engine_said("5 fragments");
	assert_int_equal(expose(&p, FRAGS, 200, RXFER_EXPOSE_READ), 0); /* no harm done */
	close_pair(&p);
}

static void wrong_calls_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < STRATEGIES; i++)
		wrong_calls(strategies[i]);
}

static void rights_that_do_not_go_together(void **state)
{
	struct rxfer_mem *mem = NULL;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "per-io", BOTH);
	assert_int_equal(rxfer_mem_add(p.e.cdev, theirs, 8, BOTH | RXFER_FIXED, &mem), -EINVAL);
	assert_int_equal(rxfer_mem_add(p.e.cdev, theirs, 8, BOTH | RXFER_PEER_READ, &mem), -EINVAL);
	engine_said("for good");
	assert_null(mem);
	assert_int_equal(rxfer_exposure_new(p.e.client, 0, &p.x), -EINVAL);
	rxfer_exposure_free(p.e.client, NULL);
	close_pair(&p);
}

static void a_key_is_never_revoked_twice(void **state)
{
	char words[64];
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "per-io", BOTH);
	assert_int_equal(rxfer_revoke(p.e.client, p.x), -ENOENT);
	assert_int_equal(expose(&p, 3, 200, BOTH), 0);
	snprintf(words, sizeof(words), "key %#x", seg(&p, 0).key);
	assert_int_equal(expose(&p, 3, 200, BOTH), -EBUSY);
	engine_said(words);
	assert_int_equal(fake_stats()->dereg_mr, 0);
	assert_int_equal(rxfer_revoke(p.e.client, p.x), 0);
	assert_int_equal(fake_stats()->dereg_mr, 3);
	assert_int_equal(rxfer_revoke(p.e.client, p.x), -EALREADY);
	engine_said(words);
	engine_said("never revoked twice");
	assert_int_equal(fake_stats()->dereg_mr, 3);
	assert_int_equal(expose(&p, 3, 200, BOTH), 0);
	assert_int_equal(rxfer_revoke(p.e.client, p.x), 0);
	close_pair(&p);
}

static void what_has_no_key_cannot_be_revoked(void **state)
{
	struct pair p;

	(void)state;
	for (size_t i = 0; i < ALWAYS_OPEN; i++) {
		open_pair(&p, NULL, strategies[i], BOTH);
		assert_int_equal(rxfer_revoke(p.e.client, p.x), -EOPNOTSUPP);
		assert_int_equal(expose(&p, 2, 200, BOTH), 0);
		assert_int_equal(rxfer_revoke(p.e.client, p.x), -EOPNOTSUPP);
		engine_said(strategies[i]);
		engine_said("has no key of its own for each I/O: its memory lies open all the time "
			    "(--revoke none)");
		rxfer_replied(p.e.client, p.x);
		assert_true(rxfer_open_after(p.x) == RXFER_NO_SPAN);
		assert_int_equal(expose(&p, 2, 200, BOTH), 0); /* the next, with no revoke */
		close_pair(&p);
	}
}

static void modes_of_the_strategies(void **state)
{
	enum rxfer_revoke out = RXFER_REVOKE_LAZY;

	(void)state;
	for (unsigned int i = 0; rxfer_strategy_name(i); i++) {
		const char *s = rxfer_strategy_name(i);
		bool by_wr = rxfer_strategy_by_wr(s), sync = by_wr || revocable(s);

		assert_int_equal(rxfer_strategy_revokes(s, RXFER_REVOKE_AUTO), 0);
		for (enum rxfer_revoke m = 0; m < RXFER_REVOKE_AUTO; m++) {
			bool has = by_wr  ? m != RXFER_REVOKE_NONE
				   : sync ? m == RXFER_REVOKE_SYNC || m == RXFER_REVOKE_ASYNC
					  : m == RXFER_REVOKE_NONE;

			assert_int_equal(rxfer_strategy_revokes(s, m), has ? 0 : -EOPNOTSUPP);
			assert_int_equal(rxfer_revoke_resolve(s, m, BOTH, &out),
					 has ? 0 : -EOPNOTSUPP);
			if (has)
				assert_int_equal(out, m);
			else
				engine_said(s);
		}
		assert_int_equal(rxfer_revoke_resolve(s, RXFER_REVOKE_AUTO, BOTH, &out), 0);
		assert_int_equal(out, sync ? RXFER_REVOKE_SYNC : RXFER_REVOKE_NONE);
		assert_int_equal(
			rxfer_revoke_resolve(s, RXFER_REVOKE_AUTO, RXFER_EXPOSE_WRITE, &out), 0);
		assert_int_equal(out, sync ? RXFER_REVOKE_SYNC : RXFER_REVOKE_NONE);
		assert_int_equal(
			rxfer_revoke_resolve(s, RXFER_REVOKE_AUTO, RXFER_EXPOSE_READ, &out), 0);
		assert_int_equal(out, sync ? RXFER_REVOKE_ASYNC : RXFER_REVOKE_NONE);
	}
	assert_int_equal(rxfer_strategy_revokes("pre-io", RXFER_REVOKE_SYNC), -ENOENT);
	engine_said("did you mean per-io");
	assert_int_equal(rxfer_revoke_resolve("?", RXFER_REVOKE_AUTO, BOTH, &out), -ENOENT);
	assert_string_equal(rxfer_revoke_name(RXFER_REVOKE_NONE), "none");
	assert_string_equal(rxfer_revoke_name(RXFER_REVOKE_AUTO), "auto");
	assert_null(rxfer_revoke_name(RXFER_REVOKE_AUTO + 1));
}

/* ---- The device fails ---- */

static void a_registration_fails(void **state)
{
	struct fake_config config = engine_config();
	struct pair p;

	(void)state;
	for (uint32_t k = 1; k <= FRAGS; k++) {
		open_pair(&p, &config, "per-io", BOTH);
		fake_live()->fail_reg_mr = (struct fake_fault){k, EAGAIN};
		assert_int_equal(expose(&p, FRAGS, 200, BOTH), -EAGAIN);
		engine_said("ibv_reg_mr of 100 bytes");
		assert_int_equal(fake_stats()->dereg_mr, k - 1);
		assert_int_equal(rxfer_dev_counts(p.e.cdev)->mr_now, 0);
		assert_int_equal(nseg(&p), 0);
		assert_int_equal(rxfer_conn_exposed(p.e.client).now, 0);
		assert_int_equal(rxfer_conn_exposed(p.e.client).proven, k - 1);
		assert_int_equal(rxfer_revoke(p.e.client, p.x), -ENOENT);
		assert_int_equal(expose(&p, FRAGS, 200, BOTH), 0);
		close_pair(&p);
	}
}

static void a_revoke_fails_and_is_tried_again(void **state)
{
	struct pair p;
	char words[64];

	(void)state;
	for (uint32_t k = 1; k <= 3; k++) {
		open_pair(&p, NULL, "per-io", BOTH);
		assert_int_equal(expose(&p, 3, 200, BOTH), 0);
		fake_live()->fail_dereg_mr = (struct fake_fault){k, EBUSY};
		assert_int_equal(rxfer_revoke(p.e.client, p.x), -EBUSY);
		engine_said("ibv_dereg_mr");
		assert_int_equal(rxfer_conn_exposed(p.e.client).now, 100); /* and it is told */
		snprintf(words, sizeof(words), "key %#x", seg(&p, 3 - k).key);
		assert_int_equal(expose(&p, 3, 200, BOTH), -EBUSY);
		engine_said(words);
		assert_int_equal(reach(&p, RXFER_READ, seg(&p, 3 - k)), 0);
		assert_int_equal(rxfer_revoke(p.e.client, p.x), 0);
		assert_int_equal(fake_stats()->dereg_mr, 3);
		assert_int_equal(rxfer_conn_exposed(p.e.client).live, 0);
		close_pair(&p);
	}
}

/* The unwinding fails, too: what is left is known, and goes with the connection. */
static void the_unwinding_fails(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "per-io", BOTH);
	fake_live()->fail_reg_mr = (struct fake_fault){3, EAGAIN};
	fake_live()->fail_dereg_mr = (struct fake_fault){1, EBUSY};
	assert_int_equal(expose(&p, 3, 200, BOTH), -EAGAIN);
	assert_int_equal(rxfer_conn_exposed(p.e.client).live, 1);
	assert_int_equal(expose(&p, 3, 200, BOTH), -EBUSY);
	close_pair(&p);
}

static void on_a_broken_connection(void **state)
{
	struct rxfer_seg at;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "per-io", BOTH);
	assert_int_equal(expose(&p, 2, 200, BOTH), 0);
	at = seg(&p, 0);
	at.len++;
	assert_int_equal(reach(&p, RXFER_READ, at), -EIO);
	fake_disconnect(p.e.client->id->qp);
	rxfer_conn_break(p.e.client, ENOTCONN, "the peer is gone");
	assert_int_equal(rxfer_revoke(p.e.client, p.x), 0);
	assert_int_equal(expose(&p, 2, 200, BOTH), -ENOTCONN);
	engine_said("the peer is gone");
	close_pair(&p);
}

static void closing_with_memory_exposed(void **state)
{
	struct rxfer_exposure *more[3];
	struct rxfer_frag frag[2];
	struct pair p;

	(void)state;
	fragments(frag, 2, 200);
	for (size_t i = 0; i < STRATEGIES; i++) {
		open_pair(&p, NULL, strategies[i], BOTH);
		for (size_t k = 0; k < 3; k++) {
			assert_int_equal(rxfer_exposure_new(p.e.client, 2, &more[k]), 0);
			assert_int_equal(rxfer_expose(p.e.client, more[k], frag, 2, BOTH), 0);
		}
		assert_int_equal(expose(&p, 3, 200, BOTH), 0);
		rxfer_exposure_free(p.e.client, more[1]);
		if (revocable(strategies[i]))
			assert_int_equal(rxfer_conn_exposed(p.e.client).live, 7);
		close_pair(&p);
	}
}

/* ---- The ledger ---- */

static void each_key_is_entered(void **state)
{
	struct rxfer_exposed x;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "per-io", BOTH);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, 0);
	assert_int_equal(expose(&p, 3, 200, BOTH), 0);
	x = rxfer_conn_exposed(p.e.client);
	assert_int_equal(x.now, 300);
	assert_int_equal(x.live, 3);
	assert_int_equal(x.grants, 3);
	assert_int_equal(x.proven, 0);
	rxfer_revoke(p.e.client, p.x);
	assert_int_equal(expose(&p, 4, 100, BOTH), 0); /* a run */
	x = rxfer_dev_exposed(p.e.cdev);
	assert_int_equal(x.now, 400);
	assert_int_equal(x.peak, 400);
	assert_int_equal(x.live, 1);
	assert_int_equal(x.grants, 4);
	assert_int_equal(x.proven, 3);
	rxfer_conn_restart(p.e.client);
	x = rxfer_conn_exposed(p.e.client);
	assert_int_equal(x.grants, 0);
	assert_int_equal(x.now, 400);
	assert_true(x.avg == 400);
	rxfer_revoke(p.e.client, p.x);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).grants, 4);
	rxfer_dev_exposed_restart(p.e.cdev);
	x = rxfer_dev_exposed(p.e.cdev);
	assert_int_equal(x.grants, 0);
	assert_int_equal(x.peak, 0);
	assert_true(x.avg == 0);
	close_pair(&p);
}

/* The double's clock goes on by a fixed span at each look, and only then: one look for each key at
 * the grant and at the proof, none at the reply, which was polled before, none at what has no key
 * of its own. */
static void looks_at_the_clock(const char *strategy, uint64_t keys)
{
	struct fake_config config = engine_config();
	uint64_t begin;
	struct pair p;

	open_pair(&p, &config, strategy, BOTH);
	begin = fake_now();
	assert_int_equal(expose(&p, 3, 200, BOTH), 0);
	assert_int_equal((fake_now() - begin) / config.clock_read_ns, keys);
	rxfer_replied(p.e.client, p.x);
	assert_int_equal((fake_now() - begin) / config.clock_read_ns, keys);
	if (revocable(strategy))
		assert_int_equal(rxfer_revoke(p.e.client, p.x), 0);
	assert_int_equal((fake_now() - begin) / config.clock_read_ns, 2 * keys);
	close_pair(&p);
}

static void the_clock_is_looked_at_once_for_each_key(void **state)
{
	(void)state;
	looks_at_the_clock("global", 0);
	looks_at_the_clock("multi-wr", 0);
	looks_at_the_clock("per-io", 3);
}

static void from_the_reply_on(void **state)
{
	struct fake_config config = engine_config();
	struct pair p;

	(void)state;
	config.clock_read_ns = 1000000;
	open_pair(&p, &config, "per-io", BOTH);
	assert_true(rxfer_open_after(p.x) == RXFER_NO_SPAN);
	assert_int_equal(expose(&p, 3, 200, BOTH), 0);
	p.e.client->fetched = fake_now();
	rxfer_replied(p.e.client, p.x);
	assert_true(rxfer_open_after(p.x) == RXFER_NO_SPAN);
	assert_int_equal(rxfer_revoke(p.e.client, p.x), 0);
	assert_int_equal(rxfer_open_after(p.x), 3000000); /* the last one's look */
	assert_int_equal(expose(&p, 3, 200, BOTH), 0);
	assert_int_equal(rxfer_revoke(p.e.client, p.x), 0); /* there was no reply */
	assert_true(rxfer_open_after(p.x) == RXFER_NO_SPAN);
	close_pair(&p);
}

/* What lies open for good is one grant, from the declaration to the end. */
static void what_lies_open_for_good(void **state)
{
	static const unsigned int rights[] = {BOTH, RXFER_EXPOSE_READ, RXFER_EXPOSE_WRITE,
					      RXFER_PEER_READ, RXFER_PEER_WRITE};
	struct pair p;

	(void)state;
	for (size_t i = 0; i < ALWAYS_OPEN; i++) {
		for (size_t k = 0; k < 5; k++) {
			open_pair(&p, NULL, strategies[i], rights[k]);
			assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, BYTES);
			assert_int_equal(rxfer_dev_exposed(p.e.cdev).grants, 1);
			if (k == 0)
				assert_int_equal(expose(&p, 3, 200, BOTH), 0);
			assert_int_equal(rxfer_dev_exposed(p.e.cdev).grants, 1);
			assert_int_equal(rxfer_conn_exposed(p.e.client).now, 0);
			rxfer_mem_del(p.local);
			assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, 0);
			assert_int_equal(rxfer_dev_exposed(p.e.cdev).peak, BYTES);
			assert_true(rxfer_dev_exposed(p.e.cdev).avg > 0);
			engine_close(&p.e);
		}
	}
	open_pair(&p, NULL, "per-io", RXFER_PEER_WRITE);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, BYTES);
	close_pair(&p);
	open_pair(&p, NULL, "global", RXFER_LOCAL);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, 0);
	assert_int_equal(rxfer_dev_exposed(p.e.sdev).now, 0); /* fixed, for its own WRs */
	close_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_calls_are_refused),
		cmocka_unit_test(rights_that_do_not_go_together),
		cmocka_unit_test(a_key_is_never_revoked_twice),
		cmocka_unit_test(what_has_no_key_cannot_be_revoked),
		cmocka_unit_test(modes_of_the_strategies),
		cmocka_unit_test(a_registration_fails),
		cmocka_unit_test(a_revoke_fails_and_is_tried_again),
		cmocka_unit_test(the_unwinding_fails),
		cmocka_unit_test(on_a_broken_connection),
		cmocka_unit_test(closing_with_memory_exposed),
		cmocka_unit_test(each_key_is_entered),
		cmocka_unit_test(the_clock_is_looked_at_once_for_each_key),
		cmocka_unit_test(from_the_reply_on),
		cmocka_unit_test(what_lies_open_for_good),
	};

	return cmocka_run_group_tests_name("unit_expose_revoke", tests, NULL, NULL);
}
