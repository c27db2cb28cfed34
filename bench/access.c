/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which piece of a working set the next I/O takes.
 *
 * zipf: the piece of rank r, from 1, is chosen with a probability in proportion to r^-0.99, the law
 * and the exponent that YCSB has for its requests. Ranks are scattered over the set: neighbours in
 * memory are no neighbours in rank, else the popular ones would all lie in the same few pages. As
 * the ranks' own order in memory means nothing, a step of the golden section does: the piece of
 * rank r is r * step modulo the number of pieces.
 *
 * Choosing costs a random number and one look at a table, whatever the size of the set: Walker's
 * alias method. Each piece has a column of equal height, filled by its own share as far as that
 * goes, and by a part of one other's share above. So a column is chosen evenly, then the height in
 * it, of a number of 32 bits each. All that needs powers is done when the table is made.
 *
 * No piece is in two I/Os at once: where the one chosen is in use, it is the next one that is not.
 * So where nearly all of the set is in flight, there is not much of a choice.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "access.h"

#define EXPONENT 0.99
#define SEED	 0x9e3779b97f4a7c15u

static bool is_taken(const struct access *a, uint32_t i)
{
	return a->taken[i / 64] >> i % 64 & 1;
}

static void turn_over(struct access *a, uint32_t i)
{
	a->taken[i / 64] ^= 1ull << i % 64;
}

/* ---- The table ---- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Without a common divisor each piece has a rank. */
static uint64_t scatter(uint64_t pieces)
{
	uint64_t step = (uint64_t)((double)pieces * 0.6180339887498949);

	while (common_divisor(step, pieces) != 1)
		step++;
	return step;
}

/* Each piece's share, of which the average is 1. */
static void fill_shares(double *share, uint32_t pieces)
{
	uint64_t step = scatter(pieces), at = 0;
	double sum = 0;

	for (uint32_t rank = 1; rank <= pieces; rank++) {
		at = (at + step) % pieces;
		share[at] = pow(rank, -EXPONENT);
		sum += share[at];
	}
	for (uint32_t i = 0; i < pieces; i++)
		share[i] *= pieces / sum;
}

static uint32_t fraction(double x)
{
	return x >= 1 ? UINT32_MAX : (uint32_t)(x * 4294967296.0);
}

/* The next one behind @i whose share fills a column, or does not. */
static uint32_t next_of(const double *share, uint32_t pieces, uint32_t i, bool full)
{
	while (i < pieces && (share[i] >= 1) != full)
		i++;
	return i;
}

/*
 * Columns that are not full get the rest from one with more than a column; that may end up with
 * less than one itself, and is filled at once if its turn has passed.
 */
static void fill_columns(struct access_column *column, double *share, uint32_t pieces)
{
	uint32_t rich = next_of(share, pieces, 0, true);
	uint32_t poor = next_of(share, pieces, 0, false), turn = poor;

	for (uint32_t i = 0; i < pieces; i++)
		column[i] = (struct access_column){UINT32_MAX, i};
	while (rich < pieces && poor < pieces) {
		column[poor] = (struct access_column){fraction(share[poor]), rich};
		share[rich] -= 1 - share[poor];
		if (share[rich] < 1 && rich < turn) {
			poor = rich;
		} else {
			turn = next_of(share, pieces, turn + 1, false);
			poor = turn;
		}
		rich = next_of(share, pieces, rich, true);
	}
}

static int make_table(struct access *a)
{
	double *share = malloc(a->pieces * sizeof(*share));

	a->column = malloc(a->pieces * sizeof(*a->column));
	if (share && a->column) {
		fill_shares(share, a->pieces);
		fill_columns(a->column, share, a->pieces);
	}
	free(share);
	return share && a->column ? 0 : -ENOMEM;
}

int access_init(struct access *a, enum access_order order, uint64_t pieces, uint64_t held)
{
	if (pieces > INT32_MAX)
		return -E2BIG;
	*a = (struct access){.pieces = (uint32_t)pieces, .order = order, .state = SEED};
	a->taken = calloc(pieces / 64 + 1, sizeof(*a->taken));
	if (!a->taken || (order == ACCESS_ZIPF && make_table(a))) {
		access_free(a);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < held; i++)
		turn_over(a, i);
	return 0;
}

void access_free(struct access *a)
{
	free(a->taken);
	free(a->column);
	*a = (struct access){0};
}

/* ---- Choosing ---- */

/* xorshift64*: the upper bits are the good ones. */
static uint64_t random_bits(struct access *a)
{
	a->state ^= a->state >> 12;
	a->state ^= a->state << 25;
	a->state ^= a->state >> 27;
	return a->state * 0x2545f4914f6cdd1du;
}

static uint32_t choose(struct access *a)
{
	uint64_t bits;
	uint32_t i;

	if (a->order == ACCESS_SEQ)
		return a->next;
	bits = random_bits(a);
	i = (uint32_t)((bits >> 32) * a->pieces >> 32);
	if (a->order == ACCESS_RAND || (uint32_t)bits <= a->column[i].keep)
		return i;
	return a->column[i].other;
}

static uint32_t behind(const struct access *a, uint32_t i)
{
	return i + 1 == a->pieces ? 0 : i + 1;
}

uint32_t access_move(struct access *a, uint32_t piece)
{
	uint32_t i = choose(a);

	turn_over(a, piece);
	while (is_taken(a, i))
		i = behind(a, i);
	turn_over(a, i);
	a->next = behind(a, i);
	return i;
}
