/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The strategy frwr, by hand: keys that the peer's reply revokes, or the next request of the slot;
 * and the 256 keys of a window. */
#include "frwr_fixture.h"

/* A request is answered: the reply is the client's next message. */
static struct rxfer_done ask_and_hear(struct pair *p, uint32_t i, unsigned int flags, uint32_t k)
{
	struct rxfer_done done;

	ask(p, i);
	expect_done(p, RXFER_SEND, i);
	assert_int_equal(serve(p), 1);
	reply(p, flags, k);
	done = message(p);
	serve(p);
	rxfer_replied(p->e.client, p->x[i]);
	return done;
}

/* ---- Revoked by the peer ---- */

static void expect_inv(const struct rxfer_done *done, bool inv, uint32_t k)
{
	assert_int_equal(done->bytes, REPLY);
	assert_int_equal(done->with_inv, inv);
	assert_false(done->with_imm);
	if (inv)
		assert_int_equal(done->imm, k);
}

/* It is dead since the reply, and the others are revoked from here. */
static void the_reply_revokes(void **state)
{
	(void)state;
	for (uint32_t k = 1; k <= 3; k += 2) {
		struct rxfer_done done;
		struct rxfer_seg seg;
		struct pair p;

		open_pair(&p, RXFER_REVOKE_REMOTE, 3);
		fake_live()->clock_read_ns = 0;
		expose(&p, 0, k, GAPS);
		done = ask_and_hear(&p, 0, RXFER_INVALIDATE, key(&p, 0));
		expect_inv(&done, true, key(&p, 0));
		open_keys(&p, k, LEN);
		assert_int_equal(rxfer_peer_revoked(p.e.client, p.x[0], done.imm), 0);
		open_keys(&p, k - 1, LEN);
		assert_int_equal(rxfer_exposure_open(p.x[0]), k - 1);
		assert_int_equal(rxfer_open_after(p.x[0]), 0);
		if (k > 1) {
			assert_int_equal(revoke(&p, 0, 0), 0);
			expect_done(&p, RXFER_REVOKE, REVOKE);
		}
		posted(&p, k > 1 ? 2 : 1, k, 1, k - 1);
		open_keys(&p, 0, 0);
		assert_int_equal(fake_stats()->invalidates, k);
		assert_int_equal(revoke(&p, 0, 0), -EALREADY);
		seg = segs(&p, 0, k)[0];
		is_refused(&p, RXFER_READ, seg);
		close_pair(&p);
	}
}

/* Any of the request's keys will do. */
static void the_reply_revokes_another_of_them(void **state)
{
	struct rxfer_done done;
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_REMOTE, 3);
	expose(&p, 0, 3, GAPS);
	done = ask_and_hear(&p, 0, RXFER_INVALIDATE, segs(&p, 0, 3)[1].key);
	assert_int_equal(rxfer_peer_revoked(p.e.client, p.x[0], done.imm), 0);
	assert_int_equal(rxfer_exposure_open(p.x[0]), 2);
	assert_int_equal(revoke(&p, 0, 0), 0);
	expect_done(&p, RXFER_REVOKE, REVOKE);
	posted(&p, 2, 3, 1, 2);
	close_pair(&p);
}

/* Nothing is sent any more, whatever for. */
static void is_over(struct pair *p, uint32_t k)
{
	char words[32];
	uint64_t sqes = fake_stats()->sqes;

	snprintf(words, sizeof(words), "the peer revoked key %#x", k);
	engine_said(words);
	assert_int_equal(expose_part(p, 5, 1, GAPS, BOTH), -EPROTO);
	assert_int_equal(post_request(p, 4, 0), -EPROTO);
	engine_said(words);
	assert_true(revoke(p, 0, 0) < 0);
	assert_true(revoke(p, 1, 0) < 0);
	assert_int_equal(fake_stats()->sqes, sqes);
	close_pair(p);
}

static void the_reply_revokes_a_wrong_key(void **state)
{
	(void)state;
	for (int what = 0; what < 4; what++) {
		struct rxfer_done done;
		struct pair p;
		uint32_t k;

		open_pair(&p, RXFER_REVOKE_REMOTE, 1);
		expose(&p, 4, 1, GAPS);
		for (uint32_t i = 0; i < 2; i++)
			expose(&p, i, 1, GAPS);
		ask(&p, 1);
		expect_done(&p, RXFER_SEND, 1);
		serve(&p);
		k = key(&p, what == 0 ? 1 : 0);
		done = ask_and_hear(&p, 0, RXFER_INVALIDATE, k);
		expect_inv(&done, true, k);
		if (what == 1) /* it is told of one that nobody has */
			k = 0xdeadbeef;
		if (what == 2) /* of one that is dead */
			assert_int_equal(rxfer_peer_revoked(p.e.client, p.x[0], k), 0);
		if (what == 3) { /* of the one that is chosen next */
			assert_int_equal(rxfer_peer_revoked(p.e.client, p.x[0], k), 0);
			expose(&p, 0, 1, GAPS);
			k = key(&p, 0);
		}
		assert_int_equal(rxfer_peer_revoked(p.e.client, p.x[0], k), -EPROTO);
		is_over(&p, k);
	}
}

/* Its LOCAL_INV is on its way: then a reply that revokes it, too, is no reply of ours. */
static void both_revoke(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_REMOTE, 3);
	expose(&p, 0, 3, GAPS);
	ask(&p, 0);
	expect_done(&p, RXFER_SEND, 0);
	p.held[0] += rxfer_sq_reserve(rxfer_conn_sq(p.e.client), 1) ? 0 : 1;
	assert_int_equal(revoke(&p, 0, 0), 0);
	assert_int_equal(rxfer_peer_revoked(p.e.client, p.x[0], key(&p, 0)), -EPROTO);
	is_over(&p, key(&p, 0));
}

/* A reply that revokes nothing says so; one with immediate data is none that revokes. */
static void the_reply_revokes_nothing(void **state)
{
	struct rxfer_done done;
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_REMOTE, 1);
	expose(&p, 0, 1, GAPS);
	done = ask_and_hear(&p, 0, 0, 0);
	expect_inv(&done, false, 0);
	assert_int_equal(rxfer_exposure_open(p.x[0]), 1);
	close_pair(&p);
}

static int reply_by(struct pair *p, struct rxfer_prepared *reply, bool held, uint32_t k,
		    unsigned int flags)
{
	uint32_t credits = 1;

	if (!held || rxfer_sq_reserve(rxfer_conn_sq(p->e.server), credits))
		return rxfer_post_prepared(reply, k, 1, flags);
	return rxfer_post_prepared_held(reply, k, 1, flags, &credits, 0);
}

/* One that was prepared revokes a key, or none, each time as it is told; by whichever call. */
static void the_reply_is_prepared(void **state)
{
	struct rxfer_frag frag = {inbox + RECVS * MESSAGE, REPLY};
	const struct rxfer_op op = {.op = RXFER_SEND, .local = &frag, .nlocal = 1, .fixed = 1};
	struct rxfer_prepared *prepared;
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_REMOTE, 1);
	assert_int_equal(rxfer_prepare(p.e.server, &op, &prepared), 0);
	for (uint32_t i = 0; i < 4; i++) {
		unsigned int flags = i % 2 ? 0 : RXFER_INVALIDATE;
		struct rxfer_done done;

		expose(&p, i, 1, GAPS);
		ask(&p, i);
		expect_done(&p, RXFER_SEND, i);
		serve(&p);
		assert_int_equal(reply_by(&p, prepared, i != 1, key(&p, i), flags), 0);
		done = message(&p);
		expect_inv(&done, i % 2 == 0, key(&p, i));
	}
	rxfer_unprepare(prepared);
	close_pair(&p);
}

/* ---- Drivers ---- */

/* rxe tells it by a bit that means something else with others. */
static void the_flag_of_rxe(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct fake_config config = engine_config();
		const struct how how = {.revoke = RXFER_REVOKE_REMOTE};
		bool rxe = i % 2, wrong = i / 2;
		struct rxfer_done done;
		struct pair p;

		config.device[0].inv_flag_wrong = wrong;
		if (rxe)
			config.device[0].vendor_id = 0xffffff;
		open_with(&p, &config, &how);
		assert_int_equal(!strcmp(rxfer_dev_info(p.e.cdev)->driver, "rxe"), rxe);
		expose(&p, 0, 1, GAPS);
		done = ask_and_hear(&p, 0, RXFER_INVALIDATE, key(&p, 0));
		expect_inv(&done, rxe || !wrong, key(&p, 0));
		if (done.with_inv)
			assert_int_equal(rxfer_peer_revoked(p.e.client, p.x[0], done.imm), 0);
		close_pair(&p);
	}
}

/* ---- Revoked by the next request ---- */

/* The old keys' LOCAL_INVs come first; both kinds count until the post is proven. */
static void lazy(void **state)
{
	uint64_t replied, span;
	struct rxfer_seg old;
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_LAZY, 3);
	fake_live()->clock_read_ns = 0;
	expose(&p, 0, 2, GAPS);
	ask(&p, 0);
	expect_done(&p, RXFER_SEND, 0);
	serve(&p);
	reply(&p, 0, 0);
	message(&p);
	replied = fake_now(); /* nothing has moved since the look that found it */
	rxfer_replied(p.e.client, p.x[0]);
	old = segs(&p, 0, 2)[1];
	reaches(&p, old);
	open_keys(&p, 2, LEN);
	assert_int_equal(rxfer_exposure_open(p.x[0]), 2);

	expose(&p, 0, 3, GAPS);
	open_keys(&p, 2, LEN);
	reaches(&p, old); /* chosen, not posted: nothing has happened */
	ask(&p, 0);
	posted(&p, 2, 2 + 3, 2, 2);
	assert_int_equal(p.e.client->oldest->wr[0].opcode, IBV_WR_LOCAL_INV);
	assert_int_equal(p.e.client->oldest->wr[1].opcode, IBV_WR_LOCAL_INV);
	for (int i = 2; i < 5; i++)
		assert_int_equal(p.e.client->oldest->wr[i].opcode, IBV_WR_BIND_MW);
	open_keys(&p, 5, LEN);
	assert_int_equal(rxfer_conn_exposed(p.e.client).peak, 5 * LEN);
	fake_run();
	assert_int_equal(fake_stats()->invalidates, 2);
	open_keys(&p, 5, LEN);
	assert_int_equal(expose_part(&p, 0, 1, GAPS, BOTH), -EBUSY);
	expect_done(&p, RXFER_SEND, 0);
	span = rxfer_open_after(p.x[0]);
	assert_true(span != RXFER_NO_SPAN && span == fake_now() - replied && span > 0);
	open_keys(&p, 3, LEN);
	serve(&p);
	reaches(&p, segs(&p, 0, 3)[2]);

	expose(&p, 0, 1, GAPS); /* fewer than before */
	ask(&p, 0);
	posted(&p, 3, 6, 3, 5);
	open_keys(&p, 4, LEN);
	serve(&p);
	expect_done(&p, RXFER_SEND, 0);
	assert_true(rxfer_open_after(p.x[0]) == RXFER_NO_SPAN); /* there was no reply */
	open_keys(&p, 1, LEN);
	is_refused(&p, RXFER_READ, old);
	close_pair(&p);
}

/* Chosen again and not posted, or refused: what was open is still revoked once. */
static void lazy_and_not_posted(void **state)
{
	const struct how how = {.revoke = RXFER_REVOKE_LAZY, .exposed = 2, .ios = 1, .slots = 2};
	struct pair p;

	(void)state;
	open_with(&p, NULL, &how);
	expose(&p, 0, 2, GAPS);
	ask_and_hear(&p, 0, 0, 0);
	assert_int_equal(expose_part(&p, 0, FRAGS, GAPS, BOTH), -EMSGSIZE);
	assert_int_equal(rxfer_exposure_open(p.x[0]), 2);
	expose(&p, 1, 1, GAPS);
	ask(&p, 1);
	expose(&p, 0, 1, GAPS);
	assert_int_equal(post_request(&p, 0, 0), -EAGAIN);
	assert_int_equal(rxfer_exposure_open(p.x[0]), 2);
	open_keys(&p, 3, LEN);
	serve(&p);
	expect_done(&p, RXFER_SEND, 1);
	expose(&p, 0, 2, GAPS);
	ask(&p, 0);
	assert_int_equal(rxfer_exposure_open(p.x[0]), 4);
	serve(&p);
	expect_done(&p, RXFER_SEND, 0);
	assert_int_equal(rxfer_exposure_open(p.x[0]), 2);
	assert_int_equal(fake_stats()->invalidates, 2);
	reaches(&p, segs(&p, 0, 2)[0]);
	reaches(&p, segs(&p, 0, 2)[1]);
	close_pair(&p);
}

/* A message in the place of a request that revoked and granted: it does neither, whichever way it
 * is posted, and leaves alone what is open. Nor are WRs about keys inline. */
static void a_message_in_between(void **state)
{
	struct rxfer_frag frag = {messages, REQUEST};
	const struct rxfer_op op = {.op = RXFER_SEND, .local = &frag, .nlocal = 1, .fixed = 1};

	(void)state;
	for (int prepared = 0; prepared < 2; prepared++) {
		const struct how how = {
			.revoke = RXFER_REVOKE_LAZY, .ios = 1, .slots = 1, .inline_max = REQUEST};
		struct rxfer_prepared *message;
		struct pair p;

		open_with(&p, NULL, &how);
		assert_int_equal(rxfer_prepare(p.e.client, &op, &message), 0);
		for (int i = 0; i < 2; i++) {
			expose(&p, 0, 1, GAPS);
			ask(&p, 0);
			for (int k = 0; k <= i; k++)
				assert_false(p.e.client->oldest->wr[k].send_flags &
					     IBV_SEND_INLINE);
			assert_true(p.e.client->oldest->wr[i + 1].send_flags & IBV_SEND_INLINE);
			serve(&p);
			expect_done(&p, RXFER_SEND, 0);
		}
		expose(&p, 0, 1, GAPS);
		if (prepared)
			assert_int_equal(rxfer_post_prepared(message, 0, 9, 0), 0);
		else
			assert_int_equal(rxfer_post_send(p.e.client, &frag, 1, 9, RXFER_ASIDE), 0);
		serve(&p);
		expect_done(&p, RXFER_SEND, 9);
		open_keys(&p, 1, LEN);
		ask(&p, 0);
		serve(&p);
		expect_done(&p, RXFER_SEND, 0);
		open_keys(&p, 1, LEN);
		assert_int_equal(fake_stats()->binds, 3);
		assert_int_equal(fake_stats()->invalidates, 2);
		reaches(&p, segs(&p, 0, 1)[0]);
		rxfer_unprepare(message);
		close_pair(&p);
	}
}

/* The keys of now can be revoked, too; the proof of those before is none of it. */
static void lazy_and_revoked_by_hand(void **state)
{
	const struct how how = {.revoke = RXFER_REVOKE_LAZY};
	struct pair p;

	(void)state;
	open_with(&p, NULL, &how);
	expose(&p, 0, 1, GAPS);
	ask_and_hear(&p, 0, 0, 0);
	expose(&p, 0, 1, GAPS);
	ask(&p, 0);
	p.held[0] += rxfer_sq_reserve(rxfer_conn_sq(p.e.client), 1) ? 0 : 1;
	assert_int_equal(revoke(&p, 0, 0), 0);
	open_keys(&p, 2, LEN);
	serve(&p);
	expect_done(&p, RXFER_SEND, 0);
	open_keys(&p, 1, LEN);
	expect_done(&p, RXFER_REVOKE, REVOKE);
	open_keys(&p, 0, 0);
	expose(&p, 0, 1, GAPS);
	ask(&p, 0);
	posted(&p, 4, 3, 3, 2);
	expect_done(&p, RXFER_SEND, 0);
	close_pair(&p);
}

/* ---- The keys of a window ---- */

/* One exposure, from its request to the proof that its keys are dead. */
static void one_io(struct pair *p, uint32_t i, bool lazily)
{
	ask(p, i);
	serve(p);
	expect_done(p, RXFER_SEND, i);
	if (lazily)
		return;
	assert_int_equal(revoke(p, i, 0), 0);
	expect_done(p, RXFER_REVOKE, REVOKE + i);
}

static uint32_t reuse(const struct pair *p)
{
	struct rxfer_conn_info info;

	rxfer_conn_info(p->e.client, &info);
	return info.key_reuse_min;
}

/* It comes back after 256 binds of its window; how far apart that is counts in exposures. */
static void a_key_comes_back(void **state)
{
	(void)state;
	for (uint32_t slots = 1; slots <= SLOTS; slots *= SLOTS) {
		uint32_t first = 0;
		struct pair p;

		open_pair(&p, RXFER_REVOKE_SYNC, 1);
		for (uint32_t i = 0; i < 257 * slots; i++) {
			expose(&p, i % slots, 1, GAPS);
			if (i == 0)
				first = key(&p, 0);
			if (i < 256 * slots)
				assert_int_equal(reuse(&p), 0);
			assert_int_equal(i % slots == 0 && key(&p, 0) == first,
					 i == 0 || i == 256 * slots);
			one_io(&p, i % slots, false);
		}
		assert_int_equal(reuse(&p), 256 * slots);
		for (uint32_t i = 0; slots == SLOTS && i < 256; i++) { /* now one of them alone */
			expose(&p, 3, 1, GAPS);
			one_io(&p, 3, false);
		}
		/* The last one's key was used by slot 3 last when all were at their 257th. */
		assert_int_equal(reuse(&p), slots == SLOTS ? 256 + 4 : 256);
		rxfer_conn_restart(p.e.client);
		assert_int_equal(reuse(&p), 0);
		close_pair(&p);
	}
}

#define RENEWED 3000 /* exposures, of two windows each */

static bool seen_before(uint32_t *keys, uint32_t n, uint32_t k)
{
	for (uint32_t i = 0; i < n; i++)
		if (keys[i] == k)
			return true;
	return false;
}

/* With others before the last one is used up, none comes twice: on a device that numbers its
 * windows on and on. */
static void renewed_in_time(void **state)
{
	static uint32_t keys[2 * RENEWED];

	(void)state;
	for (int lazily = 0; lazily < 2; lazily++) {
		const struct how how = {.revoke = lazily ? RXFER_REVOKE_LAZY : RXFER_REVOKE_SYNC,
					.exposed = 2};
		struct fake_config config = engine_config();
		uint32_t n = 0, ios = 0;
		struct pair p;

		config.mw_numbered_on = true;
		open_with(&p, &config, &how);
		for (; ios < RENEWED; ios++) {
			uint32_t runs = 1 + (ios % 3 != 0), open = rxfer_exposure_open(p.x[0]);
			int rc = rxfer_exposure_renew(p.e.client, p.x[0]);

			assert_int_equal(rc,
					 open > rxfer_exposure_open(p.x[0]) ? RXFER_REVOKED : 0);
			assert_true(rc == 0 || lazily);
			expose(&p, 0, runs, GAPS);
			for (uint32_t k = 0; k < runs; k++) {
				assert_false(seen_before(keys, n, segs(&p, 0, runs)[k].key));
				keys[n++] = segs(&p, 0, runs)[k].key;
			}
			one_io(&p, 0, lazily);
			if (lazily && ios % 50 == 0)
				reaches(&p, segs(&p, 0, runs)[runs - 1]);
		}
		/* The first window was bound each time, the second two times of three. */
		assert_int_equal(fake_stats()->alloc_mw,
				 1 + 2 * SLOTS + (RENEWED - 1) / 255 + (RENEWED * 2 / 3 - 1) / 255);
		assert_int_equal(fake_stats()->alloc_mw - fake_stats()->dealloc_mw, 2 * SLOTS);
		assert_int_equal(reuse(&p), 0);
		open_keys(&p, lazily ? 2 : 0, LEN);
		close_pair(&p);
	}
}

/* A device that gives the same windows again, here by turns two: then so are their keys, and we say
 * so. */
static void renewed_in_vain(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_REVOKE_SYNC, 1);
	for (uint32_t i = 0; i < 600; i++) {
		assert_int_equal(rxfer_exposure_renew(p.e.client, p.x[0]), 0);
		expose(&p, 0, 1, GAPS);
		one_io(&p, 0, false);
	}
	assert_int_equal(reuse(&p), 2 * 255);
	close_pair(&p);
}

/* What is open lazily ends with its window, whether the next keys were chosen already or not, and
 * is not revoked once more. */
static void renewed_while_open(void **state)
{
	(void)state;
	for (int chosen = 0; chosen < 2; chosen++) {
		struct rxfer_seg old;
		struct pair p;

		open_pair(&p, RXFER_REVOKE_LAZY, 2);
		for (uint32_t i = 0; i < 255; i++) {
			expose(&p, 0, 1 + (i == 254), GAPS);
			one_io(&p, 0, true);
		}
		old = segs(&p, 0, 2)[0];
		open_keys(&p, 2, LEN);
		if (chosen)
			expose(&p, 0, 1, GAPS);
		assert_int_equal(rxfer_exposure_renew(p.e.client, p.x[0]), RXFER_REVOKED);
		open_keys(&p, 1, LEN);
		assert_int_equal(rxfer_exposure_open(p.x[0]), 1);
		expose(&p, 0, 2, GAPS);
		ask(&p, 0);
		assert_int_equal(rxfer_conn_counts(p.e.client)->sqe_op[RXFER_REVOKE], 255);
		serve(&p);
		expect_done(&p, RXFER_SEND, 0);
		open_keys(&p, 2, LEN);
		reaches(&p, segs(&p, 0, 2)[0]);
		reaches(&p, segs(&p, 0, 2)[1]);
		is_refused(&p, RXFER_WRITE, old);
		close_pair(&p);
	}
}

/* ---- Phases ---- */

static void phases_are_timed(void **state)
{
	(void)state;
	for (int on = 0; on < 2; on++) {
		const struct how how = {.phases = on, .exposed = 2};
		const struct rxfer_counts *c;
		struct pair p;
		uint64_t before;

		open_with(&p, NULL, &how);
		c = rxfer_conn_counts(p.e.client);
		expose(&p, 0, 2, GAPS);
		assert_int_equal(c->map_ns > 0, on);
		assert_int_equal(c->unmap_ns, 0);
		before = c->map_ns;
		ask(&p, 0);
		serve(&p);
		expect_done(&p, RXFER_SEND, 0);
		assert_int_equal(c->map_ns, before);
		assert_int_equal(revoke(&p, 0, 0), 0);
		assert_int_equal(c->unmap_ns > 0, on);
		expect_done(&p, RXFER_REVOKE, REVOKE);
		close_pair(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_reply_revokes),
		cmocka_unit_test(the_reply_revokes_another_of_them),
		cmocka_unit_test(the_reply_revokes_a_wrong_key),
		cmocka_unit_test(both_revoke),
		cmocka_unit_test(the_reply_revokes_nothing),
		cmocka_unit_test(the_reply_is_prepared),
		cmocka_unit_test(the_flag_of_rxe),
		cmocka_unit_test(lazy),
		cmocka_unit_test(lazy_and_not_posted),
		cmocka_unit_test(a_message_in_between),
		cmocka_unit_test(lazy_and_revoked_by_hand),
		cmocka_unit_test(a_key_comes_back),
		cmocka_unit_test(renewed_in_time),
		cmocka_unit_test(renewed_in_vain),
		cmocka_unit_test(renewed_while_open),
		cmocka_unit_test(phases_are_timed),
	};

	return cmocka_run_group_tests_name("unit_frwr_modes", tests, NULL, NULL);
}
