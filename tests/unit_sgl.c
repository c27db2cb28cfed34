/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cutting a local and a remote list into work requests, against a model that walks byte by byte: a
 * byte begins a new SGE where it is the first of its local or remote piece, and a new WR where it
 * is the first of its remote piece or the SGEs of the open one are used up.
 */
#include <stdio.h>
#include <string.h>

#include "prop.h"
#include "sgl.h"

#define PIECES 12
#define BYTES  160 /* of one list, at most */

/* struct lists - one case. */
struct lists {
	struct rxfer_seg local[PIECES], remote[PIECES];
	uint32_t nlocal, nremote, sge_max;
};

/* struct cuts - what came of it: SGEs, and how many WRs. */
struct cuts {
	struct rxfer_piece piece[BYTES];
	uint32_t n, wrs;
};

/* Where byte @at of a list lies. False behind its end. */
static bool find_byte(const struct rxfer_seg *list, uint32_t n, uint64_t at, uint32_t *piece,
		      uint32_t *offset)
{
	for (uint32_t i = 0; i < n; i++) {
		if (at < list[i].len) {
			*piece = i;
			*offset = (uint32_t)at;
			return true;
		}
		at -= list[i].len;
	}
	return false;
}

/* The byte at @l and @r opens an SGE. */
static void model_open(const struct lists *c, struct cuts *out, uint32_t li, uint32_t loff,
		       uint32_t ri, uint32_t roff, bool starts_wr)
{
	struct rxfer_piece *p = &out->piece[out->n++];

	*p = (struct rxfer_piece){
		.local = {c->local[li].addr + loff, 0, c->local[li].key},
		.starts_wr = starts_wr,
	};
	if (c->nremote) {
		p->remote_addr = c->remote[ri].addr + roff;
		p->rkey = c->remote[ri].key;
	}
	out->wrs += starts_wr;
}

static void model(const struct lists *c, struct cuts *out)
{
	uint32_t li, loff, ri = 0, roff = 0, last_l = UINT32_MAX, last_r = UINT32_MAX, sges = 0;

	out->n = out->wrs = 0;
	for (uint64_t at = 0; find_byte(c->local, c->nlocal, at, &li, &loff); at++) {
		bool new_wr;

		if (c->nremote && !find_byte(c->remote, c->nremote, at, &ri, &roff))
			break;
		if (li != last_l || ri != last_r) {
			new_wr = ri != last_r || sges == c->sge_max;
			sges = new_wr ? 1 : sges + 1;
			model_open(c, out, li, loff, ri, roff, new_wr);
		}
		out->piece[out->n - 1].local.len++;
		last_l = li;
		last_r = ri;
	}
}

/* At most BYTES pieces are taken: a walk that never ends is seen as one that is too long. */
static void cut(const struct lists *c, struct cuts *out)
{
	struct rxfer_piece piece;
	struct rxfer_cut walk;

	memset(&piece, 0, sizeof(piece));
	out->n = out->wrs = 0;
	rxfer_cut_init(&walk, c->local, c->nlocal, c->remote, c->nremote, c->sge_max);
	while (out->n < BYTES && rxfer_cut_next(&walk, &piece)) {
		out->wrs += piece.starts_wr;
		out->piece[out->n++] = piece;
	}
}

static bool same_piece(const struct rxfer_piece *a, const struct rxfer_piece *b, bool remote)
{
	return a->local.addr == b->local.addr && a->local.len == b->local.len &&
	       a->local.key == b->local.key && a->starts_wr == b->starts_wr &&
	       (!remote || (a->remote_addr == b->remote_addr && a->rkey == b->rkey));
}

/* NULL, or how the cut differs from the model. */
static const char *compare(const struct lists *c, const struct cuts *got, const struct cuts *want)
{
	if (got->n != want->n)
		return "another number of SGEs than the model";
	if (got->wrs != want->wrs)
		return "another number of WRs than the model";
	for (uint32_t i = 0; i < got->n; i++)
		if (!same_piece(&got->piece[i], &want->piece[i], c->nremote))
			return "an SGE differs from the model's";
	return NULL;
}

static void show(const char *what, const struct rxfer_seg *list, uint32_t n)
{
	print_error("%s:", what);
	for (uint32_t i = 0; i < n; i++)
		print_error(" %u", list[i].len);
	print_error("\n");
}

static const char *check(const struct lists *c)
{
	struct cuts got, want;
	const char *wrong;

	cut(c, &got);
	model(c, &want);
	wrong = compare(c, &got, &want);
	if (!wrong && got.wrs > rxfer_cut_worst(c->nlocal, c->nremote, c->sge_max))
		wrong = "more WRs than rxfer_cut_worst()";
	if (wrong) {
		print_error("%s, sge_max %u\n", wrong, c->sge_max);
		show("local", c->local, c->nlocal);
		show("remote", c->remote, c->nremote);
	}
	return wrong;
}

/* Pieces of the given lengths, which do not adjoin. Ends at a negative length. */
static uint32_t fill(struct rxfer_seg *list, const int *lengths, uint64_t base, uint32_t key)
{
	uint32_t n = 0;

	for (; lengths[n] >= 0; n++)
		list[n] = (struct rxfer_seg){base + n * 0x1000u, (uint32_t)lengths[n], key + n};
	return n;
}

#define LENGTHS(...) ((const int[]){__VA_ARGS__, -1})
#define NO_LIST	     ((const int[]){-1})

static struct lists make(const int *local, const int *remote, uint32_t sge_max)
{
	struct lists c = {.sge_max = sge_max};

	c.nlocal = fill(c.local, local, 0x10000, 100);
	c.nremote = fill(c.remote, remote, 0x7fff00000000, 200);
	return c;
}

/* ---- Single cases ---- */

static void one_to_one(void **state)
{
	struct lists c = make(LENGTHS(64), LENGTHS(64), 4);
	struct cuts got;

	(void)state;
	cut(&c, &got);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.piece[0].local.addr, 0x10000);
	assert_int_equal(got.piece[0].local.len, 64);
	assert_int_equal(got.piece[0].local.key, 100);
	assert_int_equal(got.piece[0].remote_addr, 0x7fff00000000);
	assert_int_equal(got.piece[0].rkey, 200);
	assert_true(got.piece[0].starts_wr);
}

/* The model itself, by hand: SGEs 3+2 | 2, 4 | 1 on remote pieces of 7 and 5 bytes. */
static void by_hand(void **state)
{
	struct lists c = make(LENGTHS(3, 6, 3), LENGTHS(5, 7), 2);
	static const uint32_t lens[] = {3, 2, 4, 3};
	static const uint64_t at[] = {0x10000, 0x11000, 0x11002, 0x12000};
	static const uint64_t to[] = {0x7fff00000000, 0x7fff00000003, 0x7fff00001000,
				      0x7fff00001004};
	struct cuts got;

	(void)state;
	cut(&c, &got);
	assert_int_equal(got.n, 4);
	assert_int_equal(got.wrs, 2);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(got.piece[i].local.len, lens[i]);
		assert_int_equal(got.piece[i].local.addr, at[i]);
		assert_int_equal(got.piece[i].starts_wr, i % 2 == 0);
		assert_int_equal(got.piece[i].remote_addr, to[i]);
	}
	assert_null(check(&c));
}

/* A SEND has no remote side: SGEs alone end a WR. */
static void send_cuts_by_sges_alone(void **state)
{
	struct lists c = make(LENGTHS(1, 2, 3, 4, 5, 6, 7), NO_LIST, 3);
	struct cuts got;

	(void)state;
	cut(&c, &got);
	assert_int_equal(got.n, 7);
	assert_int_equal(got.wrs, 3);
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(got.piece[i].starts_wr, i % 3 == 0);
	assert_null(check(&c));
}

/* A shorter list ends the walk; nothing beyond it is touched. */
static void the_shorter_list_ends_it(void **state)
{
	struct lists c = make(LENGTHS(4, 4, 4), LENGTHS(6), 8);
	struct cuts got;

	(void)state;
	assert_null(check(&c));
	cut(&c, &got);
	assert_int_equal(got.n, 2);
	c = make(LENGTHS(6), LENGTHS(4, 4, 4), 8);
	assert_null(check(&c));
	cut(&c, &got);
	assert_int_equal(got.n, 2);
}

static void no_local_is_no_work(void **state)
{
	struct lists c = make(NO_LIST, LENGTHS(4), 2);
	struct cuts got;

	(void)state;
	cut(&c, &got);
	assert_int_equal(got.n, 0);
	assert_int_equal(rxfer_cut_worst(0, 1, 2), 0);
	assert_int_equal(rxfer_cut_worst(0, 0, 2), 0);
}

/* Lengths up to 2^32 - 1 and addresses up to the end of the space. */
static void the_largest_pieces(void **state)
{
	struct rxfer_seg local[] = {{0x1000, UINT32_MAX, 1}, {UINT64_MAX - 1, 1, 2}};
	struct rxfer_seg remote[] = {{0x2000, 1, 3},
				     {UINT64_MAX - (UINT32_MAX - 1u), UINT32_MAX, 4}};
	struct rxfer_piece p;
	struct rxfer_cut walk;

	(void)state;
	assert_true(rxfer_sgl_total(local, 2) == 1ull << 32);
	rxfer_cut_init(&walk, local, 2, remote, 2, 2);
	assert_true(rxfer_cut_next(&walk, &p));
	assert_int_equal(p.local.len, 1);
	assert_true(rxfer_cut_next(&walk, &p));
	assert_int_equal(p.local.addr, 0x1001);
	assert_int_equal(p.local.len, UINT32_MAX - 1);
	assert_true(p.starts_wr);
	assert_true(p.remote_addr == UINT64_MAX - (UINT32_MAX - 1u));
	assert_true(rxfer_cut_next(&walk, &p));
	assert_true(p.local.addr == UINT64_MAX - 1);
	assert_int_equal(p.local.len, 1);
	assert_false(p.starts_wr);
	assert_false(rxfer_cut_next(&walk, &p));
}

static void total_adds_up(void **state)
{
	struct rxfer_seg list[3] = {{0, 5, 0}, {0, 0, 0}, {0, 7, 0}};

	(void)state;
	assert_int_equal(rxfer_sgl_total(list, 0), 0);
	assert_int_equal(rxfer_sgl_total(list, 3), 12);
}

/*
 * An empty piece carries no byte, so it gets no SGE (some devices take a length of 0 for 2^31) and
 * opens no WR.
 */
static void empty_pieces_are_left_out(void **state)
{
	static const struct {
		int local[7], remote[7];
	} cases[] = {
		{{0, -1}, {0, -1}},
		{{0, -1}, {-1}},
		{{0, 0, 0, -1}, {-1}},
		{{0, 4, -1}, {4, -1}},
		{{4, 0, -1}, {4, -1}},
		{{2, 0, 2, -1}, {4, -1}},
		{{4, -1}, {0, 4, -1}},
		{{4, -1}, {4, 0, -1}},
		{{4, -1}, {2, 0, 2, -1}},
		{{2, 0, 0, 2, -1}, {2, 0, 2, -1}},
		{{0, 3, 0, 5, 0, -1}, {0, 0, 4, 0, 4, 0, -1}},
		{{0, 1, 0, 2, 0, -1}, {-1}},
	};
	uint32_t wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (uint32_t sge_max = 1; sge_max < 4; sge_max++) {
			struct lists c = make(cases[i].local, cases[i].remote, sge_max);

			wrong += check(&c) != NULL;
		}
	}
	assert_int_equal(wrong, 0);
}

/* ---- All small lists ---- */

/* The next way to write a sum as parts >= 1, in lexical order; false at the last. */
static bool next_parts(struct rxfer_seg *list, uint32_t n)
{
	for (uint32_t i = n - 1; i-- > 0;) {
		uint32_t behind = 0;

		for (uint32_t k = i + 1; k < n; k++)
			behind += list[k].len;
		if (behind == n - 1 - i)
			continue; /* all ones: nothing to move here */
		list[i].len++;
		for (uint32_t k = i + 1; k < n; k++)
			list[k].len = 1;
		list[n - 1].len += behind - 1 - (n - 1 - i);
		return true;
	}
	return false;
}

static void first_parts(struct rxfer_seg *list, uint32_t n, uint32_t sum)
{
	for (uint32_t i = 0; i < n; i++)
		list[i].len = 1;
	list[n - 1].len = sum - (n - 1);
}

/* The most WRs over all ways to cut @sum bytes into nlocal and nremote pieces; each is checked. */
static uint32_t most_wrs(struct lists *c, uint32_t sum)
{
	uint32_t most = 0;
	struct cuts got;

	first_parts(c->local, c->nlocal, sum);
	do {
		first_parts(c->remote, c->nremote, sum);
		do {
			cut(c, &got);
			assert_null(check(c));
			if (most < got.wrs)
				most = got.wrs;
		} while (next_parts(c->remote, c->nremote));
	} while (next_parts(c->local, c->nlocal));
	return most;
}

/* Not only a bound: for any number of pieces some lists need as many WRs as it says. */
static void the_worst_case_is_reached(void **state)
{
	static const int blank[] = {1, 1, 1, 1, 1, -1};

	(void)state;
	for (uint32_t nlocal = 1; nlocal <= 5; nlocal++) {
		for (uint32_t nremote = 1; nremote <= 4; nremote++) {
			for (uint32_t sge_max = 1; sge_max <= 5; sge_max++) {
				struct lists c = make(blank, blank, sge_max);

				c.nlocal = nlocal;
				c.nremote = nremote;
				assert_int_equal(most_wrs(&c, nlocal + nremote + 1),
						 rxfer_cut_worst(nlocal, nremote, sge_max));
			}
		}
	}
}

/* One remote piece, or none: always ceil(nlocal / sge_max). */
static void one_remote_piece_is_exact(void **state)
{
	struct lists c = make(LENGTHS(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), LENGTHS(11), 1);
	struct cuts got;

	(void)state;
	for (c.nlocal = 1; c.nlocal <= 11; c.nlocal++) {
		for (c.sge_max = 1; c.sge_max <= 12; c.sge_max++) {
			uint32_t want = (c.nlocal + c.sge_max - 1) / c.sge_max;

			c.nremote = 1;
			c.remote[0].len = c.nlocal;
			cut(&c, &got);
			assert_int_equal(got.wrs, want);
			assert_int_equal(rxfer_cut_worst(c.nlocal, 1, c.sge_max), want);
			c.nremote = 0;
			cut(&c, &got);
			assert_int_equal(got.wrs, want);
			assert_int_equal(rxfer_cut_worst(c.nlocal, 0, c.sge_max), want);
		}
	}
}

/* ---- Random lists ---- */

/*
 * @n pieces with @sum bytes in all, @empty percent of them empty; their addresses may adjoin, their
 * keys may be the same.
 */
static void random_list(struct prop *p, struct rxfer_seg *list, uint32_t n, uint32_t sum,
			uint32_t empty)
{
	uint64_t at = prop_next(p) >> 8;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t spare = sum - (n - 1 - i);
		uint32_t len = i == n - 1 ? sum : prop_range(p, 1, spare < 24 ? spare : 24);

		if (i < n - 1 && prop_chance(p, empty))
			len = 0;
		list[i] = (struct rxfer_seg){at, len, prop_range(p, 1, 3)};
		sum -= len;
		at += len + (prop_chance(p, 50) ? 0 : prop_range(p, 1, 5000));
	}
}

static void random_cases(uint64_t n, uint32_t empty)
{
	uint64_t first = prop_first_seed();
	struct prop p;

	for (uint64_t i = 0; i < n; i++) {
		struct lists c;
		uint32_t most, sum;

		prop_start(&p, first + i);
		c.nlocal = prop_range(&p, 1, PIECES);
		c.nremote = prop_chance(&p, 15) ? 0 : prop_range(&p, 1, PIECES);
		c.sge_max = prop_range(&p, 1, PIECES + 1);
		most = c.nlocal < c.nremote ? c.nremote : c.nlocal;
		sum = most + prop_range(&p, 0, 40);
		random_list(&p, c.local, c.nlocal, sum, empty);
		random_list(&p, c.remote, c.nremote, sum, empty);
		PROP_CHECK(&p, check(&c) == NULL);
	}
}

static void random_lists(void **state)
{
	(void)state;
	random_cases(prop_count(2000000, 1000), 0);
}

static void random_lists_with_empty_pieces(void **state)
{
	(void)state;
	random_cases(prop_count(200000, 1000), 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_to_one),
		cmocka_unit_test(by_hand),
		cmocka_unit_test(send_cuts_by_sges_alone),
		cmocka_unit_test(the_shorter_list_ends_it),
		cmocka_unit_test(no_local_is_no_work),
		cmocka_unit_test(the_largest_pieces),
		cmocka_unit_test(total_adds_up),
		cmocka_unit_test(empty_pieces_are_left_out),
		cmocka_unit_test(the_worst_case_is_reached),
		cmocka_unit_test(one_remote_piece_is_exact),
		cmocka_unit_test(random_lists),
		cmocka_unit_test(random_lists_with_empty_pieces),
	};

	return cmocka_run_group_tests_name("unit_sgl", tests, NULL, NULL);
}
