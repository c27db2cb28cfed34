/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parts of a walk over two lists, against the plain walk. What must hold for whoever posts an I/O
 * in parts: nothing is lost, doubled or moved; a part becomes no more WRs than it was said to; and
 * it fits into room for as many pieces as the lists had.
 *
 * A part's pieces are compared with the caller's own one by one, so two of his that adjoin may
 * neither become one, nor one of his two within a part.
 */
#include <string.h>

#include "prop.h"
#include "sgl.h"

#define PIECES	  14
#define SGES_MOST 32

/* One case, and room for its parts: exactly what is promised to be enough. */
struct lists {
	struct rxfer_seg local[PIECES], remote[PIECES];
	uint32_t nlocal, nremote, sge_max;
	uint32_t bytes_max;
};

/* Where in one of the caller's lists the parts have come to. @used: the piece at @i was in the part
 * already. */
struct cursor {
	const struct rxfer_seg *list;
	uint32_t n, i, off;
	bool used;
};

/* Any lengths, some empty; pieces adjoin as often as not, and often under one key. */
static void random_list(struct prop *p, struct rxfer_seg *list, uint32_t n, uint32_t longest,
			uint32_t empty)
{
	uint64_t at = prop_next(p) >> 8;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t len = prop_chance(p, empty) ? 0 : prop_range(p, 1, longest);

		list[i] = (struct rxfer_seg){at, len, prop_range(p, 1, 2)};
		at += len + (prop_chance(p, 50) ? 0 : prop_range(p, 1, 5000));
	}
}

/* Make the remote list end where the local one does, as an I/O's must; a cut of it may stay empty.
 */
static void same_total(struct lists *c)
{
	uint64_t left = rxfer_sgl_total(c->local, c->nlocal);

	for (uint32_t i = 0; i < c->nremote; i++) {
		if (c->remote[i].len > left || i == c->nremote - 1)
			c->remote[i].len = (uint32_t)left;
		left -= c->remote[i].len;
	}
}

static void random_lists(struct prop *p, struct lists *c)
{
	uint32_t longest = prop_chance(p, 50) ? 3 : 4000, empty = prop_chance(p, 30) ? 25 : 0;

	c->nlocal = prop_range(p, 0, PIECES);
	c->nremote = prop_chance(p, 20) ? 0 : prop_range(p, 1, PIECES);
	c->sge_max = prop_chance(p, 60) ? prop_range(p, 1, 4) : prop_range(p, 1, SGES_MOST);
	c->bytes_max = prop_chance(p, 40) ? UINT32_MAX : prop_range(p, 1, 2 * longest);
	random_list(p, c->local, c->nlocal, longest, empty);
	random_list(p, c->remote, c->nremote, longest, empty);
	if (prop_chance(p, 80))
		same_total(c);
}

static void begin(const struct lists *c, struct rxfer_cut *walk)
{
	rxfer_cut_init(walk, c->local, c->nlocal, c->remote, c->nremote, c->sge_max, c->bytes_max);
}

/* What rxfer_cut_count() is to tell; and the bytes that a walk carries. */
static uint32_t plain_walk(struct rxfer_cut walk, uint64_t *bytes)
{
	struct rxfer_piece piece;
	uint32_t wrs = 0;

	*bytes = 0;
	while (rxfer_cut_next(&walk, &piece)) {
		wrs += piece.starts_wr;
		*bytes += piece.local.len;
	}
	return wrs;
}

static void leave_used_up(struct cursor *at)
{
	while (at->i < at->n && at->off == at->list[at->i].len) {
		at->i++;
		at->off = 0;
		at->used = false;
	}
}

/* @piece is what comes next in the caller's list, and all within one piece of his. */
static bool follows(struct cursor *at, const struct rxfer_seg *piece)
{
	const struct rxfer_seg *own;

	leave_used_up(at);
	if (at->i == at->n || at->used || piece->len == 0)
		return false;
	own = &at->list[at->i];
	if (piece->addr != own->addr + at->off || piece->key != own->key ||
	    piece->len > own->len - at->off)
		return false;
	at->off += piece->len;
	at->used = true;
	return true;
}

/* The @n pieces of a part go on from @at, and have @bytes. */
static bool goes_on(struct cursor *at, const struct rxfer_seg *part, uint32_t n, uint64_t bytes)
{
	at->used = false;
	for (uint32_t i = 0; i < n; i++)
		if (!follows(at, &part[i]))
			return false;
	return rxfer_sgl_total(part, n) == bytes;
}

/* One case: its walk, where its parts have come to, and one part. */
struct run {
	struct lists c;
	struct rxfer_cut walk;
	struct cursor local, remote;
	struct rxfer_seg part_local[PIECES + 1], part_remote[PIECES + 1];
	struct rxfer_part part;
};

static void start(struct run *r)
{
	const struct lists *c = &r->c;

	begin(c, &r->walk);
	r->local = (struct cursor){.list = c->local, .n = c->nlocal};
	r->remote = (struct cursor){.list = c->remote, .n = c->nremote};
	memset(r->part_local, 0xee, sizeof(r->part_local));
	memset(r->part_remote, 0xee, sizeof(r->part_remote));
	r->part = (struct rxfer_part){r->part_local, r->part_remote, 77, 77};
}

/* The part that was taken, of @taken WRs: what it has, and what it becomes. Returns its bytes. */
static uint64_t check_part(struct prop *p, struct run *r, uint32_t taken)
{
	const struct lists *c = &r->c;
	const struct rxfer_part *part = &r->part;
	struct rxfer_cut again;
	uint64_t bytes, cut;

	PROP_CHECK(p, part->nlocal <= c->nlocal);
	PROP_CHECK(p, part->nremote <= c->nremote);
	bytes = rxfer_sgl_total(part->local, part->nlocal);
	PROP_CHECK(p, bytes > 0);
	PROP_CHECK(p, goes_on(&r->local, part->local, part->nlocal, bytes));
	PROP_CHECK(p, goes_on(&r->remote, part->remote, part->nremote, c->nremote ? bytes : 0));
	rxfer_cut_init(&again, part->local, part->nlocal, part->remote, part->nremote, c->sge_max,
		       c->bytes_max);
	PROP_CHECK(p, plain_walk(again, &cut) <= taken);
	PROP_CHECK(p, cut == bytes);
	return bytes;
}

/* A walk from its start: each part has the WRs that were asked for, as long as there are any. */
static void in_parts(struct prop *p, struct run *r)
{
	uint32_t most = prop_range(p, 1, 6), left, wrs, taken;
	uint64_t total, bytes = 0, rest;

	start(r);
	left = plain_walk(r->walk, &total);
	PROP_CHECK(p, rxfer_cut_count(&r->walk) == left);
	while (left) {
		wrs = prop_range(p, 1, most);
		taken = rxfer_cut_take(&r->walk, wrs, &r->part);
		PROP_CHECK(p, taken == (wrs < left ? wrs : left));
		left -= taken;
		bytes += check_part(p, r, taken);
		PROP_CHECK(p, rxfer_cut_count(&r->walk) == left);
		PROP_CHECK(p, plain_walk(r->walk, &rest) == left && rest == total - bytes);
	}
	PROP_CHECK(p, bytes == total);
	PROP_CHECK(p, rxfer_cut_take(&r->walk, most, &r->part) == 0);
	PROP_CHECK(p, r->part.nlocal == 0 && r->part.nremote == 0);
}

static void random_parts(void **state)
{
	uint64_t first = prop_first_seed(), n = prop_count(1000000, 1000);
	static struct run r;
	struct prop p;

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		prop_start(&p, first + i);
		random_lists(&p, &r.c);
		in_parts(&p, &r);
	}
}

/* A part may begin within a WR of the walk that came before: it begins a new one. */
static void from_the_middle(struct prop *p, struct run *r)
{
	uint32_t steps = prop_range(p, 1, 5), taken;
	struct rxfer_cut fresh;
	struct rxfer_piece piece;
	uint64_t rest, bytes = 0;

	start(r);
	for (; steps && rxfer_cut_next(&r->walk, &piece); steps--) {
		r->local.used = r->remote.used = false;
		PROP_CHECK(p, follows(&r->local, &piece.local));
		if (r->c.nremote)
			PROP_CHECK(p, follows(&r->remote,
					      &(struct rxfer_seg){piece.remote_addr,
								  piece.local.len, piece.rkey}));
	}
	fresh = r->walk;
	fresh.sge_left = 0;
	plain_walk(fresh, &rest);
	do {
		uint32_t wrs = prop_range(p, 1, 3);

		taken = rxfer_cut_take(&r->walk, wrs, &r->part);
		PROP_CHECK(p, taken <= wrs);
		if (taken)
			bytes += check_part(p, r, taken);
	} while (taken);
	PROP_CHECK(p, bytes == rest);
}

static void random_parts_from_the_middle(void **state)
{
	uint64_t first = prop_first_seed(), n = prop_count(200000, 1000);
	static struct run r;
	struct prop p;

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		prop_start(&p, first + i);
		random_lists(&p, &r.c);
		from_the_middle(&p, &r);
	}
}

/* ---- By hand ---- */

static void expect_list(const struct rxfer_seg *got, uint32_t n, const struct rxfer_seg *want,
			uint32_t nwant)
{
	assert_int_equal(n, nwant);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(got[i].addr, want[i].addr);
		assert_int_equal(got[i].len, want[i].len);
		assert_int_equal(got[i].key, want[i].key);
	}
}

/* 10 + 10 that adjoin, onto 4 + 0 + 16, one SGE a WR: 4 | 6, 10. The two stay two, and the six that
 * are left of the first are one piece. */
static void cut_within_a_piece(void **state)
{
	struct rxfer_seg local[] = {{1000, 10, 1}, {1010, 10, 1}};
	struct rxfer_seg remote[] = {{5000, 4, 2}, {6000, 0, 2}, {5004, 16, 2}};
	struct rxfer_seg l[2], r[3];
	struct rxfer_part part = {.local = l, .remote = r};
	struct rxfer_cut walk;

	(void)state;
	rxfer_cut_init(&walk, local, 2, remote, 3, 1, UINT32_MAX);
	assert_int_equal(rxfer_cut_count(&walk), 3);
	assert_int_equal(rxfer_cut_take(&walk, 1, &part), 1);
	expect_list(l, part.nlocal, &(struct rxfer_seg){1000, 4, 1}, 1);
	expect_list(r, part.nremote, &(struct rxfer_seg){5000, 4, 2}, 1);
	assert_int_equal(rxfer_cut_count(&walk), 2);
	assert_int_equal(rxfer_cut_take(&walk, 0, &part), 0);
	assert_int_equal(part.nlocal, 0);
	assert_int_equal(rxfer_cut_count(&walk), 2);
	assert_int_equal(rxfer_cut_take(&walk, 9, &part), 2);
	expect_list(l, part.nlocal, (struct rxfer_seg[]){{1004, 6, 1}, {1010, 10, 1}}, 2);
	expect_list(r, part.nremote, &(struct rxfer_seg){5004, 16, 2}, 1);
	assert_int_equal(rxfer_cut_take(&walk, 9, &part), 0);
}

/* One local piece of 12 onto three of 4: all in one part it is one piece again. */
static void one_piece_onto_many(void **state)
{
	struct rxfer_seg local = {1000, 12, 1}, l[1], r[3];
	struct rxfer_seg remote[] = {{5000, 4, 2}, {5004, 4, 2}, {7000, 4, 3}};
	struct rxfer_part part = {.local = l, .remote = r};
	struct rxfer_cut walk;

	(void)state;
	rxfer_cut_init(&walk, &local, 1, remote, 3, 4, UINT32_MAX);
	assert_int_equal(rxfer_cut_take(&walk, 3, &part), 3);
	expect_list(l, part.nlocal, &local, 1);
	expect_list(r, part.nremote, remote, 3);
	rxfer_cut_init(&walk, &local, 1, remote, 3, 4, UINT32_MAX);
	assert_int_equal(rxfer_cut_take(&walk, 2, &part), 2);
	expect_list(l, part.nlocal, &(struct rxfer_seg){1000, 8, 1}, 1);
	assert_int_equal(rxfer_cut_take(&walk, 2, &part), 1);
	expect_list(l, part.nlocal, &(struct rxfer_seg){1008, 4, 1}, 1);
	expect_list(r, part.nremote, &remote[2], 1);
}

/* A SEND has no remote list, and gets none. */
static void a_send_in_parts(void **state)
{
	struct rxfer_seg local[] = {{1000, 5, 1}, {1005, 5, 1}, {3000, 5, 1}}, l[3];
	struct rxfer_part part = {.local = l};
	struct rxfer_cut walk;

	(void)state;
	rxfer_cut_init(&walk, local, 3, NULL, 0, 2, UINT32_MAX);
	assert_int_equal(rxfer_cut_count(&walk), 2);
	assert_int_equal(rxfer_cut_take(&walk, 1, &part), 1);
	expect_list(l, part.nlocal, local, 2);
	assert_int_equal(part.nremote, 0);
	assert_int_equal(rxfer_cut_take(&walk, 1, &part), 1);
	expect_list(l, part.nlocal, &local[2], 1);
	assert_int_equal(rxfer_cut_take(&walk, 1, &part), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_within_a_piece),
		cmocka_unit_test(one_piece_onto_many),
		cmocka_unit_test(a_send_in_parts),
		cmocka_unit_test(random_parts),
		cmocka_unit_test(random_parts_from_the_middle),
	};

	return cmocka_run_group_tests_name("prop_sgl_part", tests, NULL, NULL);
}
