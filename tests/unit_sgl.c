/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cutting a local and a remote list into work requests, against a model (sgl_model.h), where SGEs
 * and pieces end them. And random lists, where bytes do, too. */
#include "sgl_model.h"

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
	assert_int_equal(rxfer_cut_worst(0, 1, 2, 0, UINT32_MAX), 0);
	assert_int_equal(rxfer_cut_worst(0, 0, 2, 0, UINT32_MAX), 0);
	assert_int_equal(rxfer_cut_worst(0, 1, 2, 4, 2), 0);
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
	rxfer_cut_init(&walk, local, 2, remote, 2, 2, UINT32_MAX);
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
				assert_int_equal(
					most_wrs(&c, nlocal + nremote + 1),
					rxfer_cut_worst(nlocal, nremote, sge_max, 0, UINT32_MAX));
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
			assert_int_equal(worst(&c), want);
			c.nremote = 0;
			cut(&c, &got);
			assert_int_equal(got.wrs, want);
			assert_int_equal(worst(&c), want);
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
		c.bytes_max = prop_chance(&p, 30) ? UINT32_MAX : prop_range(&p, 1, 60);
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
