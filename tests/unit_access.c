/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which piece of a working set is next: as often as it must be, never twice at once, the same ones
 * in each run. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "access.h"

static struct access made(enum access_order order, uint64_t pieces, uint64_t held)
{
	struct access a;

	assert_int_equal(access_init(&a, order, pieces, held), 0);
	return a;
}

static void in_order(void **state)
{
	struct access a = made(ACCESS_SEQ, 5, 2);
	uint32_t one = 0, other = 1;

	(void)state;
	for (uint32_t i = 0; i < 20; i++) {
		uint32_t *piece = i % 2 ? &other : &one;

		*piece = access_move(&a, *piece);
		assert_int_equal(*piece, i % 5);
	}
	access_free(&a);
}

/* Pieces that are in use are left out, and come in the next round. */
static void in_order_around_one_that_stays(void **state)
{
	struct access a = made(ACCESS_SEQ, 4, 3);
	uint32_t piece = 0;

	(void)state;
	for (uint32_t i = 0; i < 6; i++) { /* 1 and 2 are somebody else's */
		piece = access_move(&a, piece);
		assert_int_equal(piece, i % 2 ? 3 : 0);
	}
	assert_int_equal(access_move(&a, 2), 0);
	access_free(&a);
}

/* As many pieces as I/Os: each keeps its own. */
static void none_to_choose_from(void **state)
{
	(void)state;
	for (int order = ACCESS_SEQ; order <= ACCESS_ZIPF; order++) {
		struct access a = made(order, 70, 70);

		for (uint32_t i = 0; i < 700; i++)
			assert_int_equal(access_move(&a, i * 13 % 70), i * 13 % 70);
		access_free(&a);
	}
}

#define ROUNDS 1000
#define PIECES 100

/* Within 6 standard deviations of the mean: one in 10 million sets of numbers is not, and these are
 * always the same. */
static void evenly(void **state)
{
	struct access a = made(ACCESS_RAND, PIECES, 1);
	uint32_t hits[PIECES] = {0}, piece = 0;

	(void)state;
	for (int i = 0; i < ROUNDS * PIECES; i++)
		hits[piece = access_move(&a, piece)]++;
	for (int i = 0; i < PIECES; i++)
		assert_true(fabs((double)hits[i] - ROUNDS) < 6 * sqrt(ROUNDS));
	access_free(&a);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* How likely each piece is, by the table: its own column, and what it has of others'. */
static void likely(const struct access *a, double *p)
{
	for (uint32_t i = 0; i < a->pieces; i++)
		p[i] = 0;
	for (uint32_t i = 0; i < a->pieces; i++) {
		double keep = ((double)a->column[i].keep + 1) / 4294967296.0;

		p[i] += keep / a->pieces;
		p[a->column[i].other] += (1 - keep) / a->pieces;
	}
}

static void zipf_of(uint32_t pieces)
{
	struct access a = made(ACCESS_ZIPF, pieces, 1);
	double *p = calloc(pieces, sizeof(*p)), sum = 0;

	assert_non_null(p);
	for (uint32_t rank = 1; rank <= pieces; rank++)
		sum += pow(rank, -0.99);
	likely(&a, p);
	qsort(p, pieces, sizeof(*p), by_size);
	for (uint32_t rank = 1; rank <= pieces; rank++)
		assert_true(fabs(p[rank - 1] - pow(rank, -0.99) / sum) < 1e-8);
	free(p);
	access_free(&a);
}

static void by_zipfs_law(void **state)
{
	(void)state;
	for (uint32_t pieces = 1; pieces < 130; pieces++)
		zipf_of(pieces);
	zipf_of(1000);
	zipf_of(4096);
	zipf_of(99991);
}

/* And so it is drawn. */
static void as_the_table_has_it(void **state)
{
	struct access a = made(ACCESS_ZIPF, PIECES, 1);
	uint32_t hits[PIECES] = {0}, piece = 0;
	double p[PIECES];

	(void)state;
	likely(&a, p);
	for (int i = 0; i < ROUNDS * PIECES; i++)
		hits[piece = access_move(&a, piece)]++;
	for (int i = 0; i < PIECES; i++) {
		double mean = p[i] * ROUNDS * PIECES;

		assert_true(fabs(hits[i] - mean) < 6 * sqrt(mean));
	}
	access_free(&a);
}

/* The ten most popular pieces of a thousand are not beside each other. */
static void popular_ones_are_scattered(void **state)
{
	struct access a = made(ACCESS_ZIPF, 1000, 1);
	double p[1000], sorted[1000];
	int last = -100;

	(void)state;
	likely(&a, p);
	memcpy(sorted, p, sizeof(p));
	qsort(sorted, 1000, sizeof(*sorted), by_size);
	for (int i = 0; i < 1000; i++) {
		if (p[i] < sorted[9])
			continue;
		assert_true(i - last > 10);
		last = i;
	}
	access_free(&a);
}

/* Whatever the order, and however many are held: never one that is. */
static void no_piece_twice_at_once(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 60; i++) {
		uint32_t pieces = 64 + i, held = 1 + i * 2, who = 0;
		bool in_use[256] = {0};
		uint32_t piece[128];
		struct access a;

		held = held > pieces ? pieces : held;
		a = made(i % 3, pieces, held);
		for (uint32_t k = 0; k < held; k++)
			in_use[piece[k] = k] = true;
		for (int n = 0; n < 2000; n++) {
			who = (who * 31 + 7 + n) % held;
			in_use[piece[who]] = false;
			piece[who] = access_move(&a, piece[who]);
			assert_true(piece[who] < pieces && !in_use[piece[who]]);
			in_use[piece[who]] = true;
		}
		access_free(&a);
	}
}

static void the_same_in_each_run(void **state)
{
	struct access a = made(ACCESS_ZIPF, 1000, 1), b = made(ACCESS_ZIPF, 1000, 1);
	uint32_t one = 0, other = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		one = access_move(&a, one);
		other = access_move(&b, other);
		assert_int_equal(one, other);
	}
	access_free(&a);
	access_free(&b);
	access_free(&a);
}

static void too_many(void **state)
{
	struct access a;

	(void)state;
	assert_int_equal(access_init(&a, ACCESS_SEQ, 1ull << 31, 1), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order),
		cmocka_unit_test(in_order_around_one_that_stays),
		cmocka_unit_test(none_to_choose_from),
		cmocka_unit_test(evenly),
		cmocka_unit_test(by_zipfs_law),
		cmocka_unit_test(as_the_table_has_it),
		cmocka_unit_test(popular_ones_are_scattered),
		cmocka_unit_test(no_piece_twice_at_once),
		cmocka_unit_test(the_same_in_each_run),
		cmocka_unit_test(too_many),
	};

	return cmocka_run_group_tests_name("unit_access", tests, NULL, NULL);
}
