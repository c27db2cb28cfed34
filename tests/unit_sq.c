/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The send-queue account: each call, each error, and that an error changes nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdbool.h>
#include <errno.h>
#include <cmocka.h>

#include "../src/sq.h"

#define UNTOUCHED 0xabad1deau

static struct rxfer_sq queue(uint32_t depth)
{
	struct rxfer_sq sq;

	assert_int_equal(rxfer_sq_init(&sq, depth), 0);
	return sq;
}

/* A queue of ten: three posted (100, 101, 102), four reserved, three free. */
static struct rxfer_sq half_full(void)
{
	struct rxfer_sq sq = queue(10);
	uint32_t first;

	sq.head = sq.tail = 100;
	assert_int_equal(rxfer_sq_reserve(&sq, 7), 0);
	assert_int_equal(rxfer_sq_commit(&sq, 7, 3, 4, &first), 0);
	return sq;
}

static void assert_counts(const struct rxfer_sq *sq, uint32_t posted, uint32_t reserved,
			  uint32_t left)
{
	assert_int_equal(rxfer_sq_posted(sq), posted);
	assert_int_equal(sq->reserved, reserved);
	assert_int_equal(rxfer_sq_free(sq), left);
	assert_int_equal(rxfer_sq_check(sq), 0);
}

#define assert_unchanged(before, sq) assert_memory_equal(&(before), &(sq), sizeof(sq))

static void init_is_empty(void **state)
{
	struct rxfer_sq sq = queue(7);

	(void)state;
	assert_int_equal(sq.depth, 7);
	assert_int_equal(sq.peak, 0);
	assert_counts(&sq, 0, 0, 7);
}

static void init_refuses_bad_depths(void **state)
{
	struct rxfer_sq sq;

	(void)state;
	assert_int_equal(rxfer_sq_init(&sq, 0), -EINVAL);
	assert_int_equal(rxfer_sq_init(&sq, RXFER_SQ_MAX_DEPTH + 1), -EINVAL);
	assert_int_equal(rxfer_sq_init(&sq, UINT32_MAX), -EINVAL);
	assert_int_equal(rxfer_sq_init(&sq, RXFER_SQ_MAX_DEPTH), 0);
	assert_int_equal(rxfer_sq_init(&sq, 1), 0);
}

static void reserve_up_to_what_is_free(void **state)
{
	struct rxfer_sq sq = queue(4);

	(void)state;
	assert_int_equal(rxfer_sq_reserve(&sq, 3), 0);
	assert_int_equal(rxfer_sq_reserve(&sq, 2), -EAGAIN);
	assert_counts(&sq, 0, 3, 1);
	assert_int_equal(rxfer_sq_reserve(&sq, 1), 0);
	assert_counts(&sq, 0, 4, 0);
	assert_int_equal(rxfer_sq_reserve(&sq, 1), -EAGAIN);
	assert_int_equal(rxfer_sq_reserve(&sq, 0), 0);
	assert_counts(&sq, 0, 4, 0);
}

/* -EAGAIN says "wait"; more than the depth will never be free. */
static void reserve_more_than_the_depth(void **state)
{
	struct rxfer_sq sq = queue(4), before = sq;

	(void)state;
	assert_int_equal(rxfer_sq_reserve(&sq, 5), -EMSGSIZE);
	assert_int_equal(rxfer_sq_reserve(&sq, UINT32_MAX), -EMSGSIZE);
	assert_unchanged(before, sq);
	assert_int_equal(rxfer_sq_reserve(&sq, 4), 0);
	assert_int_equal(rxfer_sq_reserve(&sq, 5), -EMSGSIZE);
}

static void commit_posts_keeps_and_frees(void **state)
{
	struct rxfer_sq sq = queue(10);
	uint32_t first = UNTOUCHED;

	(void)state;
	assert_int_equal(rxfer_sq_reserve(&sq, 8), 0);
	assert_int_equal(rxfer_sq_commit(&sq, 8, 3, 2, &first), 0);
	assert_int_equal(first, 0);
	assert_counts(&sq, 3, 2, 5);
	assert_int_equal(rxfer_sq_commit(&sq, 2, 2, 0, &first), 0);
	assert_int_equal(first, 3);
	assert_counts(&sq, 5, 0, 5);
	assert_int_equal(sq.peak, 5);
}

/* Room is there where both calls would take it, and one WR out of it leaves what they leave. With
 * numbers that make sums wrap, too. */
static void assert_posts_alike(const struct rxfer_sq *sq)
{
	static const uint32_t number[] = {1, 2, 3, 4, 7, UINT32_MAX - 1, UINT32_MAX};

	for (uint32_t i = 0; i < sizeof(number) / sizeof(number[0]); i++) {
		uint32_t n = number[i], first = 77;
		struct rxfer_sq two = *sq, one = *sq;
		int64_t room = rxfer_sq_room(sq, n);
		bool fine = !rxfer_sq_reserve(&two, n) && !rxfer_sq_commit(&two, n, 1, 0, &first);

		assert_int_equal(room >= 0, fine);
		if (!fine)
			continue;
		assert_int_equal(room + n - 1, rxfer_sq_free(&two));
		assert_int_equal(first, sq->head);
		rxfer_sq_posted_one(&one);
		two.peak_was = one.peak_was; /* for who may have to undo it */
		assert_memory_equal(&one, &two, sizeof(one));
	}
}

/* Sound accounts, and broken ones: too much posted, too much reserved, a head behind its tail. */
static void room_is_what_may_be_posted(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 6 * 8 * 8 * 3; i++) {
		uint32_t posted = i / 6 % 8 - 1, reserved = i / 48 % 8;
		struct rxfer_sq sq = {.depth = 1 + i % 6, .tail = UINT32_MAX - 2};

		sq.head = sq.tail + posted;
		sq.reserved = reserved == 7 ? UINT32_MAX : reserved;
		sq.peak = i / 384;
		sq.peak_was = 1;
		assert_posts_alike(&sq);
	}
}

static void commit_of_nothing(void **state)
{
	struct rxfer_sq sq = half_full();
	uint32_t first = UNTOUCHED;

	(void)state;
	assert_int_equal(rxfer_sq_commit(&sq, 4, 0, 1, &first), 0);
	assert_int_equal(first, 103);
	assert_counts(&sq, 3, 1, 6);
}

static void assert_commit_refused(struct rxfer_sq sq, uint32_t n, uint32_t actual, uint32_t keep)
{
	struct rxfer_sq before = sq;
	uint32_t first = UNTOUCHED;

	assert_int_equal(rxfer_sq_commit(&sq, n, actual, keep, &first), -EOVERFLOW);
	assert_unchanged(before, sq);
	assert_int_equal(first, UNTOUCHED);
}

static void commit_refuses_more_than_promised(void **state)
{
	(void)state;
	assert_commit_refused(half_full(), 4, 5, 0);
	assert_commit_refused(half_full(), 4, 3, 2);
	assert_commit_refused(half_full(), 4, 0, 5);
	assert_commit_refused(half_full(), 5, 1, 0);
	assert_commit_refused(half_full(), 4, 2, UINT32_MAX);
	assert_commit_refused(half_full(), 4, UINT32_MAX, 1);
	assert_commit_refused(half_full(), UINT32_MAX, 1, 0);
}

static void commit_refuses_a_reservation_spent_twice(void **state)
{
	struct rxfer_sq sq = half_full();
	uint32_t first;

	(void)state;
	assert_int_equal(rxfer_sq_commit(&sq, 4, 2, 0, &first), 0);
	assert_commit_refused(sq, 4, 2, 0);
}

/* Somebody wrote into the account: the check before the post must see it. */
static void commit_refuses_a_broken_account(void **state)
{
	struct rxfer_sq sq = half_full();

	(void)state;
	sq.head += 4;
	assert_int_equal(rxfer_sq_check(&sq), -EOVERFLOW);
	assert_commit_refused(sq, 4, 1, 0);

	sq = half_full();
	sq.tail = sq.head + 1;
	assert_commit_refused(sq, 4, 1, 0);
}

static void check_sees_every_breach(void **state)
{
	struct rxfer_sq sq = half_full();

	(void)state;
	assert_int_equal(rxfer_sq_check(&sq), 0);
	sq.reserved = 7;
	assert_int_equal(rxfer_sq_check(&sq), 0);
	sq.reserved = 8;
	assert_int_equal(rxfer_sq_check(&sq), -EOVERFLOW);
	sq.reserved = UINT32_MAX - 1; /* the sum wraps to 1 */
	assert_int_equal(rxfer_sq_check(&sq), -EOVERFLOW);

	sq = half_full();
	sq.reserved = 0;
	sq.head = sq.tail + 11;
	assert_int_equal(rxfer_sq_check(&sq), -EOVERFLOW);
	sq.head = sq.tail - 1;
	assert_int_equal(rxfer_sq_check(&sq), -EOVERFLOW);
}

static void release_gives_back(void **state)
{
	struct rxfer_sq sq = half_full(), before;

	(void)state;
	assert_int_equal(rxfer_sq_release(&sq, 3), 0);
	assert_counts(&sq, 3, 1, 6);
	before = sq;
	assert_int_equal(rxfer_sq_release(&sq, 2), -EOVERFLOW);
	assert_int_equal(rxfer_sq_release(&sq, UINT32_MAX), -EOVERFLOW);
	assert_unchanged(before, sq);
	assert_int_equal(rxfer_sq_release(&sq, 1), 0);
	assert_counts(&sq, 3, 0, 7);
}

static void complete_returns_the_silent_ones_too(void **state)
{
	struct rxfer_sq sq = half_full();

	(void)state;
	assert_int_equal(rxfer_sq_complete(&sq, 101), 2);
	assert_counts(&sq, 1, 4, 5);
	assert_int_equal(rxfer_sq_complete(&sq, 102), 1);
	assert_counts(&sq, 0, 4, 6);
	assert_int_equal(sq.peak, 3);
}

static void complete_refuses_what_is_not_posted(void **state)
{
	struct rxfer_sq sq = half_full(), before = sq;

	(void)state;
	assert_int_equal(rxfer_sq_complete(&sq, 103), -ERANGE);
	assert_int_equal(rxfer_sq_complete(&sq, 99), -ERANGE);
	assert_int_equal(rxfer_sq_complete(&sq, 101 + (1u << 31)), -ERANGE);
	assert_unchanged(before, sq);

	assert_int_equal(rxfer_sq_complete(&sq, 102), 3);
	before = sq;
	assert_int_equal(rxfer_sq_complete(&sq, 102), -ERANGE); /* twice */
	assert_int_equal(rxfer_sq_complete(&sq, 101), -ERANGE);
	assert_unchanged(before, sq);
}

static void unpost_takes_back(void **state)
{
	struct rxfer_sq sq = half_full();
	uint32_t first;

	(void)state;
	assert_int_equal(rxfer_sq_commit(&sq, 4, 4, 0, &first), 0);
	assert_int_equal(sq.peak, 7);
	assert_int_equal(rxfer_sq_unpost(&sq, 2), 0);
	assert_counts(&sq, 5, 0, 5);
	assert_int_equal(sq.peak, 5); /* the two were never in the queue */
	assert_int_equal(rxfer_sq_unpost(&sq, 2), 0);
	assert_counts(&sq, 3, 0, 7);
	assert_int_equal(sq.peak, 3);

	assert_int_equal(rxfer_sq_reserve(&sq, 1), 0);
	assert_int_equal(rxfer_sq_commit(&sq, 1, 1, 0, &first), 0);
	assert_int_equal(first, 103);
}

static void unpost_leaves_an_older_peak(void **state)
{
	struct rxfer_sq sq = half_full();
	uint32_t first;

	(void)state;
	assert_int_equal(rxfer_sq_complete(&sq, 102), 3);
	assert_int_equal(rxfer_sq_commit(&sq, 4, 4, 0, &first), 0);
	assert_int_equal(sq.peak, 4);
	assert_int_equal(rxfer_sq_unpost(&sq, 4), 0);
	assert_int_equal(sq.peak, 3);
}

static void unpost_refuses_more_than_is_posted(void **state)
{
	struct rxfer_sq sq = half_full(), before = sq;

	(void)state;
	assert_int_equal(rxfer_sq_unpost(&sq, 4), -EOVERFLOW);
	assert_int_equal(rxfer_sq_unpost(&sq, UINT32_MAX), -EOVERFLOW);
	assert_unchanged(before, sq);
	assert_int_equal(rxfer_sq_unpost(&sq, 0), 0);
	assert_counts(&sq, 3, 4, 3);
}

static void sequence_numbers_wrap(void **state)
{
	struct rxfer_sq sq = queue(8);
	uint32_t first;

	(void)state;
	sq.head = sq.tail = UINT32_MAX - 1;
	assert_int_equal(rxfer_sq_reserve(&sq, 5), 0);
	assert_int_equal(rxfer_sq_commit(&sq, 5, 5, 0, &first), 0);
	assert_int_equal(first, UINT32_MAX - 1);
	assert_int_equal(sq.head, 3);
	assert_counts(&sq, 5, 0, 3);
	assert_int_equal(rxfer_sq_complete(&sq, 3), -ERANGE);
	assert_int_equal(rxfer_sq_complete(&sq, UINT32_MAX - 2), -ERANGE);
	assert_int_equal(rxfer_sq_complete(&sq, 0), 3);
	assert_int_equal(rxfer_sq_complete(&sq, UINT32_MAX), -ERANGE);
	assert_int_equal(rxfer_sq_complete(&sq, 2), 2);
	assert_counts(&sq, 0, 0, 8);
}

static void the_largest_queue(void **state)
{
	struct rxfer_sq sq = queue(RXFER_SQ_MAX_DEPTH);
	uint32_t first;

	(void)state;
	sq.head = sq.tail = UINT32_MAX - 5;
	assert_int_equal(rxfer_sq_reserve(&sq, sq.depth), 0);
	assert_int_equal(rxfer_sq_commit(&sq, sq.depth, sq.depth, 0, &first), 0);
	assert_counts(&sq, RXFER_SQ_MAX_DEPTH, 0, 0);
	assert_int_equal(rxfer_sq_complete(&sq, first - 1), -ERANGE);
	assert_int_equal(rxfer_sq_complete(&sq, first + sq.depth), -ERANGE);
	assert_int_equal(rxfer_sq_complete(&sq, first + sq.depth - 1), RXFER_SQ_MAX_DEPTH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(init_is_empty),
		cmocka_unit_test(init_refuses_bad_depths),
		cmocka_unit_test(reserve_up_to_what_is_free),
		cmocka_unit_test(reserve_more_than_the_depth),
		cmocka_unit_test(commit_posts_keeps_and_frees),
		cmocka_unit_test(commit_of_nothing),
		cmocka_unit_test(room_is_what_may_be_posted),
		cmocka_unit_test(commit_refuses_more_than_promised),
		cmocka_unit_test(commit_refuses_a_reservation_spent_twice),
		cmocka_unit_test(commit_refuses_a_broken_account),
		cmocka_unit_test(check_sees_every_breach),
		cmocka_unit_test(release_gives_back),
		cmocka_unit_test(complete_returns_the_silent_ones_too),
		cmocka_unit_test(complete_refuses_what_is_not_posted),
		cmocka_unit_test(unpost_takes_back),
		cmocka_unit_test(unpost_leaves_an_older_peak),
		cmocka_unit_test(unpost_refuses_more_than_is_posted),
		cmocka_unit_test(sequence_numbers_wrap),
		cmocka_unit_test(the_largest_queue),
	};

	return cmocka_run_group_tests_name("unit_sq", tests, NULL, NULL);
}
