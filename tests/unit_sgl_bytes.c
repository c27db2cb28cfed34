/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cutting lists into work requests where the most bytes of a message end them (sgl_model.h). */
#include "sgl_model.h"

/* The bytes of a WR are used up within pieces and at their ends: WRs of 4 | 3 | 4 | 1 bytes. */
static void bytes_end_a_wr(void **state)
{
	struct lists c = make(LENGTHS(3, 6, 3), LENGTHS(7, 5), 2);
	static const uint32_t lens[] = {3, 1, 3, 2, 2, 1};
	static const uint64_t to[] = {0x7fff00000000, 0x7fff00000003, 0x7fff00000004,
				      0x7fff00001000, 0x7fff00001002, 0x7fff00001004};
	static const bool starts[] = {true, false, true, true, false, true};
	struct cuts got;

	(void)state;
	c.bytes_max = 4;
	cut(&c, &got);
	assert_int_equal(got.n, 6);
	assert_int_equal(got.wrs, 4);
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(got.piece[i].local.len, lens[i]);
		assert_int_equal(got.piece[i].remote_addr, to[i]);
		assert_int_equal(got.piece[i].starts_wr, starts[i]);
	}
	assert_null(check(&c));
}

/* One piece on each side: as many WRs as its bytes take, and one at its size exactly. */
static void one_piece_is_cut_by_bytes_alone(void **state)
{
	struct lists c = make(LENGTHS(14), LENGTHS(14), 4);
	struct cuts got;

	(void)state;
	for (c.bytes_max = 1; c.bytes_max <= 15; c.bytes_max++) {
		cut(&c, &got);
		assert_int_equal(got.wrs, (14 + c.bytes_max - 1) / c.bytes_max);
		assert_int_equal(worst(&c), got.wrs);
		assert_null(check(&c));
	}
}

/* A SEND is one message: no limit of bytes cuts it. */
static void bytes_do_not_cut_a_send(void **state)
{
	struct lists c = make(LENGTHS(5, 6, 7), NO_LIST, 2);
	struct cuts got;

	(void)state;
	c.bytes_max = 1;
	cut(&c, &got);
	assert_int_equal(got.n, 3);
	assert_int_equal(got.wrs, 2);
	assert_int_equal(worst(&c), 2);
	assert_null(check(&c));
}

/* As the largest messages of devices are: 2^31, and 2^32 - 1. The place where a WR ends is no sum
 * that wraps. */
static void the_largest_limits(void **state)
{
	struct rxfer_seg local = {0x1000, UINT32_MAX, 1}, remote = {0x2000, UINT32_MAX, 2};
	static const uint32_t limits[] = {1u << 31, UINT32_MAX - 1u, UINT32_MAX};
	struct rxfer_piece p;
	struct rxfer_cut walk;

	(void)state;
	for (int i = 0; i < 3; i++) {
		rxfer_cut_init(&walk, &local, 1, &remote, 1, 1, limits[i]);
		assert_int_equal(rxfer_cut_count(&walk), i < 2 ? 2 : 1);
		assert_int_equal(rxfer_cut_worst(1, 1, 1, UINT32_MAX, limits[i]), i < 2 ? 2 : 1);
		assert_true(rxfer_cut_next(&walk, &p));
		assert_int_equal(p.local.len, limits[i]);
		assert_int_equal(rxfer_cut_next(&walk, &p), i < 2);
		if (i < 2)
			assert_int_equal(p.remote_addr, 0x2000ull + limits[i]);
	}
}

/* Nor with a limit of bytes, for as many of them as any cut for want of SGEs takes. */
static void the_worst_case_of_bytes_is_reached(void **state)
{
	static const int blank[] = {1, 1, 1, 1, -1};
	const uint32_t sum = 11;

	(void)state;
	for (uint32_t nlocal = 1; nlocal <= 4; nlocal++) {
		for (uint32_t nremote = 1; nremote <= 3; nremote++) {
			for (uint32_t sge_max = 1; sge_max <= 4; sge_max++) {
				struct lists c = make(blank, blank, sge_max);

				c.nlocal = nlocal;
				c.nremote = nremote;
				for (c.bytes_max = 1; c.bytes_max <= sum; c.bytes_max++)
					assert_int_equal(most_wrs(&c, sum),
							 rxfer_cut_worst(nlocal, nremote, sge_max,
									 sum, c.bytes_max));
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_end_a_wr),
		cmocka_unit_test(one_piece_is_cut_by_bytes_alone),
		cmocka_unit_test(bytes_do_not_cut_a_send),
		cmocka_unit_test(the_largest_limits),
		cmocka_unit_test(the_worst_case_of_bytes_is_reached),
	};

	return cmocka_run_group_tests_name("unit_sgl_bytes", tests, NULL, NULL);
}
