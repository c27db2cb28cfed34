/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The server's queue for credits: order, rounds, waits, each error, and that an error changes
 * nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdbool.h>
#include <errno.h>
#include <cmocka.h>

#include "../src/ticket.h"

#define assert_unchanged(before, now) assert_memory_equal(&(before), &(now), sizeof(now))

/* A queue of @depth with the drain reserved, for I/Os of @most WRs. */
struct fixture {
	struct rxfer_sq sq;
	struct rxfer_tickets t;
	struct rxfer_ticket a, b, c;
};

static void start(struct fixture *f, uint32_t depth, uint32_t most)
{
	*f = (struct fixture){0};
	assert_int_equal(rxfer_sq_init(&f->sq, depth), 0);
	assert_int_equal(rxfer_sq_reserve(&f->sq, 1), 0);
	assert_int_equal(rxfer_tickets_init(&f->t, &f->sq, most), 0);
}

/* A post as the engine does it: @actual WRs out of what the ticket holds. */
static void post(struct fixture *f, struct rxfer_ticket *ticket, uint32_t actual, bool reply)
{
	uint32_t first, keep = !reply;

	assert_int_equal(rxfer_ticket_spend(&f->t, ticket, reply), keep);
	assert_int_equal(ticket->wrs, 0);
	assert_int_equal(rxfer_sq_commit(&f->sq, ticket->held, actual, keep, &first), 0);
	ticket->held = keep;
}

/* What was granted, all of it, and the reply. */
static void post_all(struct fixture *f, struct rxfer_ticket *ticket)
{
	if (ticket->wrs)
		post(f, ticket, ticket->wrs, false);
	post(f, ticket, 1, true);
}

/* All that is posted completes. */
static void complete_all(struct fixture *f)
{
	assert_in_range(rxfer_sq_complete(&f->sq, f->sq.head - 1), 1, UINT32_MAX);
}

static void init_refuses_what_rounds_cannot_serve(void **state)
{
	struct rxfer_tickets t;
	struct rxfer_sq sq;

	(void)state;
	assert_int_equal(rxfer_sq_init(&sq, 2), 0);
	assert_int_equal(rxfer_tickets_init(&t, &sq, RXFER_SQ_MAX_DEPTH + 1), -EINVAL);
	assert_int_equal(rxfer_tickets_init(&t, &sq, 1), 0);
	assert_int_equal(rxfer_tickets_init(&t, &sq, RXFER_SQ_MAX_DEPTH), 0);
	assert_int_equal(rxfer_sq_reserve(&sq, 1), 0);
	assert_int_equal(rxfer_tickets_init(&t, &sq, 1), -EMSGSIZE);
	assert_int_equal(rxfer_tickets_init(&t, &sq, 0), 0);
	assert_int_equal(rxfer_sq_reserve(&sq, 1), 0);
	assert_int_equal(rxfer_tickets_init(&t, &sq, 0), -EMSGSIZE);
	sq.reserved = 3;
	assert_int_equal(rxfer_tickets_init(&t, &sq, 0), -EMSGSIZE);
}

static void need_is_the_most_at_once(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 10, 0);
	assert_int_equal(f.t.need, 1);
	start(&f, 10, 7);
	assert_int_equal(f.t.need, 8);
	start(&f, 10, 8);
	assert_int_equal(f.t.need, 9);
	start(&f, 10, 300);
	assert_int_equal(f.t.need, 9);
	assert_int_equal(f.t.chunk, 8);
}

static void takes_all_credits_at_once(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 10, 8);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 4, 0), 1);
	assert_int_equal(f.a.wrs, 4);
	assert_int_equal(f.a.held, 5);
	assert_true(rxfer_ticket_is_last(&f.a));
	assert_int_equal(f.sq.reserved, 6);
	assert_null(rxfer_tickets_next(&f.t, 0));
}

static void a_reply_alone_needs_one(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 2, 0);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 0, 0), 1);
	assert_int_equal(f.a.held, 1);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.b, 0, 0), 0);
	post(&f, &f.a, 1, true);
	assert_null(rxfer_tickets_next(&f.t, 0));
	complete_all(&f);
	assert_ptr_equal(rxfer_tickets_next(&f.t, 0), &f.b);
}

static void credits_come_back_in_two_parts(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 10, 8);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 4, 0), 1);
	post(&f, &f.a, 4, false);
	assert_int_equal(f.a.held, 1);
	assert_int_equal(rxfer_sq_free(&f.sq), 4);
	complete_all(&f);
	assert_int_equal(rxfer_sq_free(&f.sq), 8);
	post(&f, &f.a, 1, true);
	assert_int_equal(f.a.held, 0);
	assert_int_equal(rxfer_sq_free(&f.sq), 8);
	complete_all(&f);
	assert_int_equal(rxfer_sq_free(&f.sq), 9);
}

static void reply_goes_at_once_behind_writes(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 10, 8);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 8, 0), 1);
	post_all(&f, &f.a);
	assert_int_equal(f.sq.reserved, 1);
	assert_int_equal(rxfer_sq_free(&f.sq), 0);
}

/* Eight were granted and three are posted: five are b's, before anything completes. */
static void what_a_round_does_not_take_is_free_at_once(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 10, 8);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 8, 0), 1);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.b, 4, 0), 0);
	assert_null(rxfer_tickets_next(&f.t, 0));
	post(&f, &f.a, 3, false);
	assert_int_equal(rxfer_sq_free(&f.sq), 5);
	assert_ptr_equal(rxfer_tickets_next(&f.t, 0), &f.b);
	assert_int_equal(rxfer_sq_free(&f.sq), 0);
	post(&f, &f.a, 1, true);
	assert_int_equal(f.a.held, 0);
}

/* The same within one I/O: its next round need not wait for a completion. */
static void next_round_fits_when_the_last_took_less(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 6, 5);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 5, 0), 1);
	assert_int_equal(f.a.wrs, 3);
	assert_null(rxfer_tickets_next(&f.t, 0));
	post(&f, &f.a, 2, false);
	assert_ptr_equal(rxfer_tickets_next(&f.t, 0), &f.a);
	assert_int_equal(f.a.wrs, 2);
	assert_int_equal(f.a.held, 3);
	post_all(&f, &f.a);
	assert_int_equal(f.sq.reserved, 1);
	assert_int_equal(rxfer_sq_posted(&f.sq), 5);
}

/* Five are free and would do for b, but a came first. */
static void nobody_overtakes(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 10, 8);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.c, 3, 0), 1);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 5, 0), 0);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.b, 0, 0), 0);
	assert_null(rxfer_tickets_next(&f.t, 0));
	post_all(&f, &f.c);
	complete_all(&f);
	assert_ptr_equal(rxfer_tickets_next(&f.t, 0), &f.a);
	assert_ptr_equal(rxfer_tickets_next(&f.t, 0), &f.b);
	assert_null(rxfer_tickets_next(&f.t, 0));
	assert_int_equal(rxfer_sq_free(&f.sq), 2);
}

static void a_place_in_the_queue_can_be_taken_again(void **state)
{
	struct fixture f;
	uint32_t i;

	(void)state;
	start(&f, 4, 2);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 2, 0), 1);
	for (i = 0; i < 10; i++) {
		struct rxfer_ticket *runs = i % 2 ? &f.b : &f.a, *waits = i % 2 ? &f.a : &f.b;

		assert_int_equal(rxfer_ticket_take(&f.t, waits, 2, 0), 0);
		post_all(&f, runs);
		complete_all(&f);
		assert_ptr_equal(rxfer_tickets_next(&f.t, 0), waits);
	}
}

/* Eleven through a queue that has room for four beside reply and drain. */
static void goes_in_rounds_with_the_reply_held(void **state)
{
	static const uint32_t wrs[] = {4, 4, 3};
	struct fixture f;
	uint32_t i;

	(void)state;
	start(&f, 6, 11);
	assert_int_equal(rxfer_tickets_rounds(&f.t, 11), 3);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 11, 0), 1);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.b, 0, 0), 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(f.a.wrs, wrs[i]);
		assert_int_equal(f.a.held, wrs[i] + 1);
		assert_int_equal(rxfer_ticket_is_last(&f.a), i == 2);
		if (i < 2)
			assert_null(rxfer_tickets_next(&f.t, 0));
		post(&f, &f.a, wrs[i], false);
		assert_int_equal(f.a.held, 1);
		complete_all(&f);
		assert_ptr_equal(rxfer_tickets_next(&f.t, 0), i < 2 ? &f.a : &f.b);
	}
	post(&f, &f.a, 1, true);
	post(&f, &f.b, 1, true);
	complete_all(&f);
	assert_int_equal(rxfer_sq_free(&f.sq), 5);
}

/* All sizes in all small queues: sums, no empty round, the fewest, and no two at once. */
static void plans_of_rounds(void **state)
{
	uint32_t depth, n;
	struct fixture f;

	(void)state;
	for (depth = 3; depth <= 20; depth++) {
		for (n = 1; n <= 100; n++) {
			uint32_t rounds = 1, sum;

			start(&f, depth, 100);
			assert_int_equal(rxfer_ticket_take(&f.t, &f.a, n, 0), 1);
			for (sum = f.a.wrs; f.a.rounds; sum += f.a.wrs, rounds++) {
				assert_in_range(f.a.wrs, 1, depth - 2);
				post(&f, &f.a, f.a.wrs, false);
				assert_null(rxfer_tickets_next(&f.t, 0));
				complete_all(&f);
				assert_ptr_equal(rxfer_tickets_next(&f.t, 0), &f.a);
			}
			assert_in_range(f.a.wrs, 1, depth - 2);
			assert_int_equal(sum, n);
			assert_int_equal(rounds, (n + depth - 3) / (depth - 2));
			assert_int_equal(rounds, rxfer_tickets_rounds(&f.t, n));
		}
	}
}

static void waits_are_counted_and_timed(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 6, 8);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 4, 100), 1);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.b, 8, 110), 0);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.c, 1, 120), 0);
	assert_int_equal(f.t.started.count, 2);
	assert_null(rxfer_tickets_next(&f.t, 130));
	post_all(&f, &f.a);
	complete_all(&f);
	assert_ptr_equal(rxfer_tickets_next(&f.t, 150), &f.b);
	assert_int_equal(f.t.started.ns, 40);
	assert_int_equal(f.t.rounds.count, 1);
	post(&f, &f.b, 4, false);
	complete_all(&f);
	assert_ptr_equal(rxfer_tickets_next(&f.t, 175), &f.b);
	assert_int_equal(f.t.rounds.ns, 25);
	post_all(&f, &f.b);
	complete_all(&f);
	assert_ptr_equal(rxfer_tickets_next(&f.t, 200), &f.c);
	assert_int_equal(f.t.started.count, 2);
	assert_int_equal(f.t.started.ns, 120);
	assert_int_equal(f.t.rounds.count, 1);
}

/* An I/O in rounds that starts at once waits for the second only. */
static void rounds_wait_from_the_start(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 6, 8);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 8, 5), 1);
	assert_int_equal(f.t.started.count, 0);
	assert_int_equal(f.t.rounds.count, 1);
	post(&f, &f.a, 4, false);
	complete_all(&f);
	assert_ptr_equal(rxfer_tickets_next(&f.t, 12), &f.a);
	assert_int_equal(f.t.rounds.ns, 7);
	assert_null(f.t.first);
}

static void take_refuses(void **state)
{
	struct fixture f, before;

	(void)state;
	start(&f, 6, 8);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 4, 0), 1);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.b, 4, 0), 0);
	before = f;
	assert_int_equal(rxfer_ticket_take(&f.t, &f.c, 9, 0), -EMSGSIZE);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 1, 0), -EBUSY);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.b, 1, 0), -EBUSY);
	assert_unchanged(before, f);
}

static void take_refuses_until_the_reply_is_posted(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 6, 8);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 4, 0), 1);
	post(&f, &f.a, 4, false);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 1, 0), -EBUSY);
	assert_int_equal(rxfer_ticket_spend(&f.t, &f.a, true), 0);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 1, 0), -EBUSY);
	post(&f, &f.a, 1, true);
	complete_all(&f);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 1, 0), 1);
}

static void spend_refuses(void **state)
{
	struct fixture f, before;

	(void)state;
	start(&f, 6, 8);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 8, 0), 1);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.b, 0, 0), 0);
	before = f;
	assert_int_equal(rxfer_ticket_spend(&f.t, &f.a, true), -EPROTO);  /* not posted */
	assert_int_equal(rxfer_ticket_spend(&f.t, &f.b, true), -EPROTO);  /* not granted */
	assert_int_equal(rxfer_ticket_spend(&f.t, &f.b, false), -EPROTO); /* nor that */
	assert_int_equal(rxfer_ticket_spend(&f.t, &f.c, true), -EPROTO);  /* not taken */
	assert_int_equal(rxfer_ticket_spend(&f.t, &f.c, false), -EPROTO);
	assert_unchanged(before, f);
	post(&f, &f.a, 4, false);
	before = f;
	assert_int_equal(rxfer_ticket_spend(&f.t, &f.a, false), -EPROTO); /* posted before */
	assert_int_equal(rxfer_ticket_spend(&f.t, &f.a, true), -EPROTO);  /* another round */
	assert_unchanged(before, f);
	complete_all(&f);
	assert_ptr_equal(rxfer_tickets_next(&f.t, 0), &f.a);
	before = f;
	assert_int_equal(rxfer_ticket_spend(&f.t, &f.a, true), -EPROTO); /* the last, not posted */
	assert_unchanged(before, f);
	post_all(&f, &f.a);
	before = f;
	assert_int_equal(rxfer_ticket_spend(&f.t, &f.a, true), -EPROTO); /* posted before */
	assert_int_equal(rxfer_ticket_spend(&f.t, &f.a, false), -EPROTO);
	assert_unchanged(before, f);
}

/* Whoever waits at the restart counts, for what it waits for, and from when it began. */
static void waits_begin_anew(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 6, 8);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.c, 4, 100), 1);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.a, 8, 110), 0);
	post_all(&f, &f.c);
	complete_all(&f);
	assert_ptr_equal(rxfer_tickets_next(&f.t, 120), &f.a);
	assert_int_equal(rxfer_ticket_take(&f.t, &f.b, 0, 130), 0);
	assert_int_equal(f.t.started.count, 2);
	assert_int_equal(f.t.started.ns, 10);
	rxfer_tickets_restart(&f.t);
	assert_int_equal(f.t.started.count, 1);
	assert_int_equal(f.t.started.ns, 0);
	assert_int_equal(f.t.rounds.count, 1);
	assert_int_equal(f.t.rounds.ns, 0);
	post(&f, &f.a, 4, false);
	complete_all(&f);
	assert_ptr_equal(rxfer_tickets_next(&f.t, 150), &f.a);
	assert_int_equal(f.t.rounds.ns, 30);
	post_all(&f, &f.a);
	complete_all(&f);
	assert_ptr_equal(rxfer_tickets_next(&f.t, 170), &f.b);
	assert_int_equal(f.t.started.ns, 40);
	rxfer_tickets_restart(&f.t);
	assert_int_equal(f.t.started.count + f.t.started.ns, 0);
	assert_int_equal(f.t.rounds.count + f.t.rounds.ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(init_refuses_what_rounds_cannot_serve),
		cmocka_unit_test(need_is_the_most_at_once),
		cmocka_unit_test(takes_all_credits_at_once),
		cmocka_unit_test(a_reply_alone_needs_one),
		cmocka_unit_test(credits_come_back_in_two_parts),
		cmocka_unit_test(reply_goes_at_once_behind_writes),
		cmocka_unit_test(what_a_round_does_not_take_is_free_at_once),
		cmocka_unit_test(next_round_fits_when_the_last_took_less),
		cmocka_unit_test(nobody_overtakes),
		cmocka_unit_test(a_place_in_the_queue_can_be_taken_again),
		cmocka_unit_test(goes_in_rounds_with_the_reply_held),
		cmocka_unit_test(plans_of_rounds),
		cmocka_unit_test(waits_are_counted_and_timed),
		cmocka_unit_test(rounds_wait_from_the_start),
		cmocka_unit_test(take_refuses),
		cmocka_unit_test(take_refuses_until_the_reply_is_posted),
		cmocka_unit_test(spend_refuses),
		cmocka_unit_test(waits_begin_anew),
	};

	return cmocka_run_group_tests_name("unit_ticket", tests, NULL, NULL);
}
