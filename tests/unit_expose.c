/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Exposing memory to the peer, on the test double, which looks at keys, bounds, rights and
 * protection domains as hardware does: what the peer can do with what it was told, and what it
 * cannot, before, beside, and afterwards.
 */
#include "expose_fixture.h"

/* ---- What the peer can do ---- */

static void the_peer_reads_and_writes(const char *strategy)
{
	struct pair p;

	open_pair(&p, NULL, strategy, BOTH);
	assert_int_equal(expose(&p, 2, 200, BOTH), 0);
	assert_int_equal(nseg(&p), 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(seg(&p, i).addr, (uintptr_t)mine + 1000 + 200 * i);
		assert_int_equal(seg(&p, i).len, 100);
		assert_int_equal(reach(&p, RXFER_READ, seg(&p, i)), 0);
		assert_memory_equal(theirs + 1000, mine + 1000 + 200 * i, 100);
		memset(theirs + 1000, 77, 100);
		assert_int_equal(reach(&p, RXFER_WRITE, seg(&p, i)), 0);
		assert_memory_equal(mine + 1000 + 200 * i, theirs + 1000, 100);
	}
	if (revocable(strategy))
		assert_int_equal(rxfer_revoke(p.e.client, p.x), 0);
	close_pair(&p);
}

static void it_reads_and_writes(void **state)
{
	(void)state;
	for (size_t i = 0; i < STRATEGIES; i++)
		the_peer_reads_and_writes(strategies[i]);
}

/* One byte in front of it, or behind it. */
static void beside_a_fragment(const char *strategy, enum rxfer_opcode op, int byte, bool whole)
{
	struct rxfer_seg at;
	struct pair p;

	open_pair(&p, NULL, strategy, BOTH);
	assert_int_equal(expose(&p, 2, 200, BOTH), 0);
	at = seg(&p, 0);
	at.addr += (uint64_t)(int64_t)byte;
	assert_int_equal(reach(&p, op, at), whole ? 0 : -EIO);
	close_pair(&p);
}

static void beside_it_lies_nothing_open(void **state)
{
	(void)state;
	for (size_t i = 0; i < STRATEGIES; i++) {
		bool whole = !revocable(strategies[i]);

		beside_a_fragment(strategies[i], RXFER_READ, 1, whole);
		beside_a_fragment(strategies[i], RXFER_READ, -1, whole);
		beside_a_fragment(strategies[i], RXFER_WRITE, 1, whole);
		beside_a_fragment(strategies[i], RXFER_WRITE, -1, whole);
	}
}

/* Not even with one key over everything. */
static void behind_the_declared_memory(void **state)
{
	struct rxfer_frag frag = {mine + BYTES - 100, 100};
	struct rxfer_seg at;
	struct pair p;

	(void)state;
	for (size_t i = 0; i < STRATEGIES; i++) {
		open_pair(&p, NULL, strategies[i], BOTH);
		assert_int_equal(rxfer_expose(p.e.client, p.x, &frag, 1, BOTH), 0);
		at = seg(&p, 0);
		assert_int_equal(reach(&p, RXFER_READ, at), 0);
		at.addr++;
		assert_int_equal(reach(&p, RXFER_READ, at), -EIO);
		close_pair(&p);
	}
}

/* The memory's rights are those of its region, with one key for all of it; the I/O's are those of
 * its own key. */
static void with_other_rights(const char *strategy, unsigned int declared, unsigned int rights,
			      enum rxfer_opcode op, int want)
{
	struct pair p;

	open_pair(&p, NULL, strategy, declared);
	assert_int_equal(expose(&p, 2, 200, rights), 0);
	assert_int_equal(reach(&p, op, seg(&p, 1)), want);
	close_pair(&p);
}

static void a_grant_to_read_is_none_to_write(void **state)
{
	(void)state;
	for (size_t i = 0; i < STRATEGIES; i++) {
		int kept = revocable(strategies[i]) ? -EIO : 0;
		const char *s = strategies[i];

		with_other_rights(s, RXFER_EXPOSE_READ, RXFER_EXPOSE_READ, RXFER_READ, 0);
		with_other_rights(s, RXFER_EXPOSE_READ, RXFER_EXPOSE_READ, RXFER_WRITE, -EIO);
		with_other_rights(s, RXFER_EXPOSE_WRITE, RXFER_EXPOSE_WRITE, RXFER_WRITE, 0);
		with_other_rights(s, RXFER_EXPOSE_WRITE, RXFER_EXPOSE_WRITE, RXFER_READ, -EIO);
		with_other_rights(s, BOTH, RXFER_EXPOSE_READ, RXFER_WRITE, kept);
		with_other_rights(s, BOTH, RXFER_EXPOSE_WRITE, RXFER_READ, kept);
	}
}

static void after_the_revoke(enum rxfer_opcode op)
{
	struct rxfer_seg at;
	struct pair p;

	open_pair(&p, NULL, "per-io", BOTH);
	assert_int_equal(expose(&p, 2, 200, BOTH), 0);
	at = seg(&p, 1);
	assert_int_equal(reach(&p, op, at), 0);
	assert_int_equal(rxfer_revoke(p.e.client, p.x), 0);
	assert_int_equal(reach(&p, op, at), -EIO);
	close_pair(&p);
}

static void after_the_revoke_it_can_do_nothing(void **state)
{
	(void)state;
	after_the_revoke(RXFER_READ);
	after_the_revoke(RXFER_WRITE);
}

/* The key of the I/O before does not open that of the next, though its memory is the same. */
static void a_key_of_before(void **state)
{
	struct rxfer_seg before;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "per-io", BOTH);
	assert_int_equal(expose(&p, 1, 0, BOTH), 0);
	before = seg(&p, 0);
	assert_int_equal(rxfer_revoke(p.e.client, p.x), 0);
	assert_int_equal(expose(&p, 1, 0, BOTH), 0);
	assert_int_equal(reach(&p, RXFER_READ, seg(&p, 0)), 0);
	assert_int_equal(reach(&p, RXFER_READ, before), -EIO);
	close_pair(&p);
}

/* A key is good in its own protection domain, and each end has one: what lies open on another one
 * of the same process cannot be had by way of this one. */
static void a_key_of_another_end(void **state)
{
	struct rxfer_mem *open;
	struct pair p;

	(void)state;
	for (size_t i = 0; i < STRATEGIES; i++) {
		open_pair(&p, NULL, strategies[i], BOTH);
		assert_int_equal(rxfer_mem_add(p.e.sdev, mine, BYTES, RXFER_PEER_READ, &open), 0);
		assert_int_equal(
			reach(&p, RXFER_READ,
			      (struct rxfer_seg){(uintptr_t)mine, 8, rxfer_mem_rkey(open)}),
			-EIO);
		assert_non_null(strstr(fake_reason(), "another PD"));
		close_pair(&p);
	}
}

/* ---- Segments ---- */

static void what_adjoins_is_one_segment(void **state)
{
	struct pair p;

	(void)state;
	for (size_t i = 0; i < STRATEGIES; i++) {
		bool each = !strcmp(strategies[i], "multi-wr");

		open_pair(&p, NULL, strategies[i], BOTH);
		assert_int_equal(expose(&p, 4, 100, RXFER_EXPOSE_READ), 0);
		assert_int_equal(nseg(&p), each ? 4 : 1);
		assert_int_equal(seg(&p, 0).len, each ? 100 : 400);
		assert_int_equal(reach(&p, RXFER_READ, seg(&p, 0)), 0);
		if (revocable(strategies[i]))
			assert_int_equal(rxfer_revoke(p.e.client, p.x), 0);
		assert_int_equal(expose(&p, 4, 101, RXFER_EXPOSE_READ), 0); /* gaps of a byte */
		assert_int_equal(nseg(&p), 4);
		for (uint32_t k = 0; k < 4; k++)
			assert_int_equal(reach(&p, RXFER_READ, seg(&p, k)), 0);
		close_pair(&p);
	}
}

static void in_any_order(void **state)
{
	struct rxfer_frag frag[4] = {
		{mine + 100, 50}, {mine + 150, 50}, {mine, 100}, {mine + 400, 1}};
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "global", BOTH);
	assert_int_equal(rxfer_expose(p.e.client, p.x, frag, 4, BOTH), 0);
	assert_int_equal(nseg(&p), 3); /* the third ends where the first begins: another place */
	assert_int_equal(seg(&p, 0).len, 100);
	assert_int_equal(seg(&p, 1).addr, (uintptr_t)mine);
	assert_int_equal(seg(&p, 2).len, 1);
	close_pair(&p);
}

/* Two declared memories side by side are two, with a key each and rights of their own. */
static void from_one_memory_into_the_next(void **state)
{
	struct rxfer_frag frag[2] = {{mine + 4000, 96}, {mine + 4096, 100}};
	struct rxfer_mem *second;
	struct pair p;

	(void)state;
	for (size_t i = 0; i < STRATEGIES; i++) {
		open_pair(&p, NULL, strategies[i], BOTH);
		rxfer_mem_del(p.local);
		assert_int_equal(rxfer_mem_add(p.e.cdev, mine, 4096, BOTH, &p.local), 0);
		assert_int_equal(
			rxfer_mem_add(p.e.cdev, mine + 4096, 4096, RXFER_EXPOSE_READ, &second), 0);
		assert_int_equal(rxfer_expose(p.e.client, p.x, frag, 2, RXFER_EXPOSE_READ), 0);
		assert_int_equal(nseg(&p), 2);
		for (uint32_t k = 0; k < 2; k++)
			assert_int_equal(reach(&p, RXFER_READ, seg(&p, k)), 0);
		if (revocable(strategies[i]))
			assert_int_equal(rxfer_revoke(p.e.client, p.x), 0);
		assert_int_equal(rxfer_expose(p.e.client, p.x, frag, 2, BOTH), -EACCES);
		engine_said("RXFER_EXPOSE_WRITE");
		assert_int_equal(nseg(&p), 0);
		rxfer_mem_del(second);
		close_pair(&p);
	}
}

static void a_run_longer_than_a_segment(void **state)
{
	struct rxfer_conn conn = {0};
	struct rxfer_dev dev = {0};
	char *base = (char *)(uintptr_t)0x100000;
	struct rxfer_mem mem = {
		.base = base, .end = base + (1ull << 33), .len = 1ull << 33, .rights = BOTH};
	struct rxfer_frag frag[2] = {{base, UINT32_MAX}, {base + UINT32_MAX, 1}};
	struct rxfer_seg segs[2];
	struct rxfer_exposure x = {.seg = segs, .max = 2};

	(void)state;
	dev.found = dev.mems = &mem;
	conn.dev = &dev;
	assert_int_equal(rxfer_reg_cut(&conn, &x, frag, 2, BOTH, true), 0);
	assert_int_equal(x.nseg, 2);
	frag[0].len--;
	frag[1].addr = base + UINT32_MAX - 1;
	assert_int_equal(rxfer_reg_cut(&conn, &x, frag, 2, BOTH, true), 0);
	assert_int_equal(x.nseg, 1);
	assert_int_equal(segs[0].len, UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_reads_and_writes),
		cmocka_unit_test(beside_it_lies_nothing_open),
		cmocka_unit_test(behind_the_declared_memory),
		cmocka_unit_test(a_grant_to_read_is_none_to_write),
		cmocka_unit_test(after_the_revoke_it_can_do_nothing),
		cmocka_unit_test(a_key_of_before),
		cmocka_unit_test(a_key_of_another_end),
		cmocka_unit_test(what_adjoins_is_one_segment),
		cmocka_unit_test(in_any_order),
		cmocka_unit_test(from_one_memory_into_the_next),
		cmocka_unit_test(a_run_longer_than_a_segment),
	};

	return cmocka_run_group_tests_name("unit_expose", tests, NULL, NULL);
}
