/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The client's slots: what each needs to come back, in any order; why there is none; waits; each
 * error, and that an error changes nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdbool.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "../src/slot.h"

#define assert_unchanged(before, now) assert_memory_equal(&(before), &(now), sizeof(now))

#define COMPLETE RXFER_SLOT_COMPLETE
#define FREED	 RXFER_SLOT_FREED
#define N	 4 /* two to submit, two to revoke */

struct fixture {
	struct rxfer_sq sq;
	struct rxfer_slots s;
};

static void start(struct fixture *f, uint32_t depth, uint32_t n, enum rxfer_slot_completes when)
{
	assert_int_equal(rxfer_sq_init(&f->sq, depth), 0);
	f->sq.head = f->sq.tail = UINT32_MAX - 3; /* numbers wrap under way */
	assert_int_equal(rxfer_slots_init(&f->s, &f->sq, n, N, when), 0);
}

static struct rxfer_slot *get(struct fixture *f)
{
	enum rxfer_slot_cause cause;
	struct rxfer_slot *slot = rxfer_slot_get(&f->s, 0, &cause);

	assert_non_null(slot);
	assert_int_equal(slot->held, N);
	return slot;
}

static void assert_none(struct fixture *f, uint64_t now, enum rxfer_slot_cause cause)
{
	enum rxfer_slot_cause told = RXFER_SLOT_CAUSES;

	assert_null(rxfer_slot_get(&f->s, now, &told));
	assert_int_equal(told, cause);
}

/* A post as the engine does it. */
static void post(struct fixture *f, struct rxfer_slot *slot, uint32_t actual, uint32_t keep)
{
	uint32_t first;

	assert_int_equal(rxfer_sq_commit(&f->sq, slot->held, actual, keep, &first), 0);
	slot->held = keep;
}

/* A REG and the SEND; two credits stay for the revoke. */
static void send(struct fixture *f, struct rxfer_slot *slot)
{
	post(f, slot, 2, 2);
	assert_int_equal(rxfer_slot_sent(&f->s, slot, true), 0);
}

/* All that is posted completes. */
static void complete_all(struct fixture *f)
{
	assert_in_range(rxfer_sq_complete(&f->sq, f->sq.head - 1), 1, UINT32_MAX);
}

static void assert_pools(struct fixture *f, uint32_t available, uint32_t in_use, uint32_t recycling)
{
	assert_int_equal(rxfer_slots_count(&f->s, RXFER_SLOT_AVAILABLE), available);
	assert_int_equal(rxfer_slots_count(&f->s, RXFER_SLOT_IN_USE), in_use);
	assert_int_equal(rxfer_slots_count(&f->s, RXFER_SLOT_RECYCLING), recycling);
}

static void init_refuses(void **state)
{
	struct rxfer_slots s;
	struct rxfer_sq sq;

	(void)state;
	assert_int_equal(rxfer_sq_init(&sq, 5), 0);
	assert_int_equal(rxfer_sq_reserve(&sq, 1), 0);
	assert_int_equal(rxfer_slots_init(&s, &sq, 0, 1, RXFER_SLOT_AT_REPLY), -EINVAL);
	assert_int_equal(rxfer_slots_init(&s, &sq, 1, 0, RXFER_SLOT_AT_REPLY), -EINVAL);
	assert_int_equal(rxfer_slots_init(&s, &sq, (1u << 20) + 1, 1, RXFER_SLOT_AT_REPLY),
			 -EINVAL);
	assert_int_equal(rxfer_slots_init(&s, &sq, 1, 5, RXFER_SLOT_AT_REPLY), -EMSGSIZE);
	assert_int_equal(rxfer_slots_init(&s, &sq, 1, UINT32_MAX, RXFER_SLOT_AT_REPLY), -EMSGSIZE);
	rxfer_slots_free(&s);
	assert_int_equal(rxfer_slots_init(&s, &sq, 1, 4, RXFER_SLOT_AT_REPLY), 0);
	rxfer_slots_free(&s);
	rxfer_slots_free(&s);
}

static void handed_out_with_n_credits_oldest_first(void **state)
{
	struct fixture f;
	uint32_t i;

	(void)state;
	start(&f, 3 * N, 3, RXFER_SLOT_AT_REPLY);
	for (i = 0; i < 3; i++)
		assert_int_equal(get(&f)->index, i);
	assert_int_equal(f.sq.reserved, 3 * N);
	assert_pools(&f, 0, 3, 0);
	assert_int_equal(rxfer_slot_put(&f.s, &f.s.slot[1]), FREED);
	assert_int_equal(rxfer_slot_put(&f.s, &f.s.slot[0]), FREED);
	assert_int_equal(f.sq.reserved, N);
	assert_pools(&f, 2, 1, 0);
	assert_int_equal(get(&f)->index, 1);
	assert_int_equal(get(&f)->index, 0);
	rxfer_slots_free(&f.s);
}

/* What comes, in an order: R reply, K revoke, S proof of the SEND, P RECV posted. */
static int event(struct fixture *f, struct rxfer_slot *slot, char what)
{
	switch (what) {
	case 'R':
		return rxfer_slot_replied(&f->s, slot);
	case 'K':
		return rxfer_slot_revoked(&f->s, slot);
	case 'P':
		return rxfer_slot_recv_posted(&f->s, slot);
	default:
		complete_all(f);
		return rxfer_slot_proven(&f->s, slot);
	}
}

/* In each order the I/O completes at its event, and the slot is free at the last, not before. */
static void any_order(void **state)
{
	static const char *const orders[] = {"RKSP", "RKPS", "RSKP", "RSPK",
					     "RPKS", "RPSK", "SRKP", "SRPK"};
	static const char *const waits_for[] = {"R", "RK", "RS", "RKS"};
	uint32_t when, i, j;

	(void)state;
	for (when = RXFER_SLOT_AT_REPLY; when <= RXFER_SLOT_AT_ALL; when++) {
		for (i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
			size_t left = strlen(waits_for[when]);
			struct rxfer_slot *slot;
			struct fixture f;

			start(&f, N, 1, (enum rxfer_slot_completes)when);
			slot = get(&f);
			send(&f, slot);
			for (j = 0; j < 4; j++) {
				bool counts = strchr(waits_for[when], orders[i][j]);
				int events = event(&f, slot, orders[i][j]);
				bool done = counts && --left == 0;

				assert_int_equal(events,
						 (done ? COMPLETE : 0) | (j == 3 ? FREED : 0));
			}
			assert_pools(&f, 1, 0, 0);
			assert_int_equal(rxfer_sq_free(&f.sq), N);
			rxfer_slots_free(&f.s);
		}
	}
}

static void nothing_exposed_nothing_to_revoke(void **state)
{
	struct rxfer_slot *slot;
	struct fixture f;

	(void)state;
	start(&f, N, 1, RXFER_SLOT_AT_REVOKE);
	slot = get(&f);
	post(&f, slot, 1, 0);
	assert_int_equal(rxfer_slot_sent(&f.s, slot, false), 0);
	assert_int_equal(rxfer_slot_replied(&f.s, slot), COMPLETE);
	assert_int_equal(rxfer_slot_revoked(&f.s, slot), -EALREADY);
	assert_int_equal(rxfer_slot_recv_posted(&f.s, slot), 0);
	assert_int_equal(rxfer_slot_proven(&f.s, slot), FREED);
	rxfer_slots_free(&f.s);
}

/* The peer revoked: what was kept for that is free at once, long before the slot. */
static void unused_credits_are_free_at_once(void **state)
{
	struct rxfer_slot *slot;
	struct fixture f;

	(void)state;
	start(&f, N, 1, RXFER_SLOT_AT_REPLY);
	slot = get(&f);
	send(&f, slot);
	assert_int_equal(rxfer_slot_replied(&f.s, slot), COMPLETE);
	assert_int_equal(f.sq.reserved, 2);
	assert_int_equal(rxfer_slot_revoked(&f.s, slot), 0);
	assert_int_equal(f.sq.reserved, 0);
	assert_int_equal(rxfer_sq_free(&f.sq), 2);
	rxfer_slots_free(&f.s);
}

/* Kept for a revoke, and then nothing was exposed: free with the reply. */
static void unused_credits_are_free_with_the_reply(void **state)
{
	struct rxfer_slot *slot;
	struct fixture f;

	(void)state;
	start(&f, N, 1, RXFER_SLOT_AT_PROOF);
	slot = get(&f);
	post(&f, slot, 1, 2);
	assert_int_equal(rxfer_slot_sent(&f.s, slot, false), 0);
	assert_int_equal(rxfer_slot_proven(&f.s, slot), 0);
	assert_int_equal(f.sq.reserved, 2);
	assert_int_equal(rxfer_slot_replied(&f.s, slot), COMPLETE);
	assert_int_equal(slot->held, 0);
	assert_int_equal(f.sq.reserved, 0);
	rxfer_slots_free(&f.s);
}

/* Two slots by turns, each revoked by a WR, over the end of sequence numbers. */
static void goes_round(void **state)
{
	struct fixture f;
	uint32_t i;

	(void)state;
	start(&f, 2 * N, 2, RXFER_SLOT_AT_REVOKE);
	for (i = 0; i < 100; i++) {
		struct rxfer_slot *slot = get(&f);

		assert_int_equal(slot->index, i % 2);
		send(&f, slot);
		assert_int_equal(rxfer_slot_replied(&f.s, slot), 0);
		assert_int_equal(rxfer_slot_recv_posted(&f.s, slot), 0);
		post(&f, slot, 1, 0);
		assert_pools(&f, 1, 0, 1);
		complete_all(&f);
		assert_int_equal(rxfer_slot_proven(&f.s, slot), 0);
		assert_int_equal(rxfer_slot_revoked(&f.s, slot), COMPLETE | FREED);
		assert_pools(&f, 2, 0, 0);
	}
	assert_int_equal(f.sq.reserved, 0);
	rxfer_slots_free(&f.s);
}

static void causes(void **state)
{
	struct rxfer_slot *a, *b;
	struct fixture f;

	(void)state;
	start(&f, 2 * N + N - 1, 3, RXFER_SLOT_AT_REPLY);
	a = get(&f);
	b = get(&f);
	assert_none(&f, 0, RXFER_SLOT_NO_SQES);
	rxfer_slots_free(&f.s);
	start(&f, 3 * N, 2, RXFER_SLOT_AT_REPLY);
	a = get(&f);
	b = get(&f);
	send(&f, a);
	send(&f, b);
	assert_none(&f, 0, RXFER_SLOT_EXECUTING);
	assert_int_equal(rxfer_slot_replied(&f.s, b), COMPLETE);
	assert_none(&f, 0, RXFER_SLOT_KEY);
	assert_int_equal(rxfer_slot_revoked(&f.s, b), 0);
	assert_none(&f, 0, RXFER_SLOT_UNPROVEN);
	assert_int_equal(rxfer_slot_replied(&f.s, a), COMPLETE);
	assert_none(&f, 0, RXFER_SLOT_UNPROVEN);
	assert_int_equal(rxfer_slot_proven(&f.s, a), 0);
	assert_none(&f, 0, RXFER_SLOT_UNPROVEN);
	assert_int_equal(rxfer_slot_proven(&f.s, b), 0);
	assert_none(&f, 0, RXFER_SLOT_NO_RECV);
	assert_int_equal(rxfer_slot_recv_posted(&f.s, b), FREED);
	assert_ptr_equal(get(&f), b);
	rxfer_slots_free(&f.s);
}

static void assert_waits(struct fixture *f, enum rxfer_slot_cause cause, uint64_t n, uint64_t ns)
{
	assert_int_equal(f->s.waits[cause].count, n);
	assert_int_equal(f->s.waits[cause].ns, ns);
}

/* Once for each wait, however often it is asked; the time goes to the cause told before. */
static void waits_are_counted_and_timed(void **state)
{
	enum rxfer_slot_cause cause;
	struct rxfer_slot *slot;
	struct fixture f;

	(void)state;
	start(&f, N, 1, RXFER_SLOT_AT_REPLY);
	slot = get(&f);
	send(&f, slot);
	assert_none(&f, 1000, RXFER_SLOT_EXECUTING);
	assert_none(&f, 1010, RXFER_SLOT_EXECUTING);
	assert_int_equal(rxfer_slot_replied(&f.s, slot), COMPLETE);
	assert_none(&f, 1100, RXFER_SLOT_KEY);
	assert_int_equal(rxfer_slot_recv_posted(&f.s, slot), 0);
	assert_int_equal(rxfer_slot_revoked(&f.s, slot), 0);
	assert_none(&f, 1103, RXFER_SLOT_UNPROVEN);
	complete_all(&f);
	assert_int_equal(rxfer_slot_proven(&f.s, slot), FREED);
	assert_ptr_equal(rxfer_slot_get(&f.s, 1110, &cause), slot);
	assert_waits(&f, RXFER_SLOT_EXECUTING, 1, 100);
	assert_waits(&f, RXFER_SLOT_KEY, 1, 3);
	assert_waits(&f, RXFER_SLOT_UNPROVEN, 1, 7);
	assert_none(&f, 2000, RXFER_SLOT_EXECUTING);
	rxfer_slots_stop_waiting(&f.s, 2050);
	rxfer_slots_stop_waiting(&f.s, 2080);
	assert_waits(&f, RXFER_SLOT_EXECUTING, 2, 150);
	assert_none(&f, 3000, RXFER_SLOT_EXECUTING);
	assert_waits(&f, RXFER_SLOT_EXECUTING, 3, 150);
	assert_waits(&f, RXFER_SLOT_NO_RECV, 0, 0);
	assert_waits(&f, RXFER_SLOT_NO_SQES, 0, 0);
	rxfer_slots_free(&f.s);
}

/* What was counted before is forgotten; a wait under way is one of the new ones, from then on. */
static void waits_begin_anew(void **state)
{
	enum rxfer_slot_cause cause;
	struct rxfer_slot *slot;
	struct fixture f;

	(void)state;
	start(&f, N, 1, RXFER_SLOT_AT_REPLY);
	slot = get(&f);
	send(&f, slot);
	assert_none(&f, 100, RXFER_SLOT_EXECUTING);
	assert_int_equal(rxfer_slot_replied(&f.s, slot), COMPLETE);
	assert_none(&f, 110, RXFER_SLOT_KEY);
	rxfer_slots_restart(&f.s, 117);
	assert_waits(&f, RXFER_SLOT_EXECUTING, 0, 0);
	assert_waits(&f, RXFER_SLOT_KEY, 1, 0);
	assert_none(&f, 120, RXFER_SLOT_KEY);
	assert_int_equal(rxfer_slot_revoked(&f.s, slot), 0);
	assert_int_equal(rxfer_slot_recv_posted(&f.s, slot), 0);
	assert_none(&f, 125, RXFER_SLOT_UNPROVEN);
	complete_all(&f);
	assert_int_equal(rxfer_slot_proven(&f.s, slot), FREED);
	assert_ptr_equal(rxfer_slot_get(&f.s, 130, &cause), slot);
	assert_waits(&f, RXFER_SLOT_KEY, 1, 8);
	assert_waits(&f, RXFER_SLOT_UNPROVEN, 1, 5);
	rxfer_slots_restart(&f.s, 140);
	assert_waits(&f, RXFER_SLOT_KEY, 0, 0);
	assert_waits(&f, RXFER_SLOT_UNPROVEN, 0, 0);
	assert_none(&f, 150, RXFER_SLOT_EXECUTING);
	rxfer_slots_stop_waiting(&f.s, 160);
	assert_waits(&f, RXFER_SLOT_EXECUTING, 1, 10);
	rxfer_slots_free(&f.s);
}

/* The state before and after: the account, the slots' state, and one slot. */
#define assert_refused(f, slot, call, err)               \
	do {                                             \
		struct fixture before_f = *(f);          \
		struct rxfer_slot before_slot = *(slot); \
                                                         \
		assert_int_equal(call, err);             \
		assert_unchanged(before_f, *(f));        \
		assert_unchanged(before_slot, *(slot));  \
	} while (0)

static void refuses_what_is_out_of_order(void **state)
{
	struct rxfer_slot *slot;
	struct fixture f;

	(void)state;
	start(&f, 2 * N, 2, RXFER_SLOT_AT_REPLY);
	slot = &f.s.slot[0];
	assert_refused(&f, slot, rxfer_slot_put(&f.s, slot), -EBUSY);
	assert_refused(&f, slot, rxfer_slot_sent(&f.s, slot, true), -EALREADY);
	assert_refused(&f, slot, rxfer_slot_proven(&f.s, slot), -EALREADY);
	assert_refused(&f, slot, rxfer_slot_replied(&f.s, slot), -EALREADY);
	assert_refused(&f, slot, rxfer_slot_revoked(&f.s, slot), -EALREADY);
	assert_refused(&f, slot, rxfer_slot_recv_posted(&f.s, slot), -EALREADY);
	assert_ptr_equal(get(&f), slot);
	assert_refused(&f, slot, rxfer_slot_proven(&f.s, slot), -EPROTO);
	assert_refused(&f, slot, rxfer_slot_replied(&f.s, slot), -EPROTO);
	assert_refused(&f, slot, rxfer_slot_revoked(&f.s, slot), -EPROTO);
	assert_refused(&f, slot, rxfer_slot_recv_posted(&f.s, slot), -EPROTO);
	send(&f, slot);
	assert_refused(&f, slot, rxfer_slot_put(&f.s, slot), -EBUSY);
	assert_refused(&f, slot, rxfer_slot_sent(&f.s, slot, true), -EALREADY);
	assert_refused(&f, slot, rxfer_slot_revoked(&f.s, slot), -EPROTO);
	assert_refused(&f, slot, rxfer_slot_recv_posted(&f.s, slot), -EPROTO);
	assert_int_equal(rxfer_slot_proven(&f.s, slot), 0);
	assert_refused(&f, slot, rxfer_slot_proven(&f.s, slot), -EALREADY);
	assert_int_equal(rxfer_slot_replied(&f.s, slot), COMPLETE);
	assert_refused(&f, slot, rxfer_slot_put(&f.s, slot), -EBUSY);
	assert_refused(&f, slot, rxfer_slot_sent(&f.s, slot, true), -EALREADY);
	assert_refused(&f, slot, rxfer_slot_replied(&f.s, slot), -EALREADY);
	assert_int_equal(rxfer_slot_recv_posted(&f.s, slot), 0);
	assert_refused(&f, slot, rxfer_slot_recv_posted(&f.s, slot), -EALREADY);
	assert_int_equal(rxfer_slot_revoked(&f.s, slot), FREED);
	assert_refused(&f, slot, rxfer_slot_revoked(&f.s, slot), -EALREADY);
	rxfer_slots_free(&f.s);
}

/* Posted, but not yet told: not to be put back either. */
static void put_refuses_what_was_posted(void **state)
{
	struct rxfer_slot *slot;
	struct fixture f;

	(void)state;
	start(&f, N, 1, RXFER_SLOT_AT_REPLY);
	slot = get(&f);
	post(&f, slot, 1, 3);
	assert_refused(&f, slot, rxfer_slot_put(&f.s, slot), -EBUSY);
	rxfer_slots_free(&f.s);
}

/* Somebody else gave away what the slot holds: told, not papered over. */
static void notices_lost_credits(void **state)
{
	struct rxfer_slot *slot;
	struct fixture f;

	(void)state;
	start(&f, N, 1, RXFER_SLOT_AT_REPLY);
	slot = get(&f);
	send(&f, slot);
	assert_int_equal(rxfer_slot_replied(&f.s, slot), COMPLETE);
	assert_int_equal(rxfer_sq_release(&f.sq, 1), 0);
	assert_refused(&f, slot, rxfer_slot_revoked(&f.s, slot), -EOVERFLOW);
	rxfer_slots_free(&f.s);
	start(&f, N, 1, RXFER_SLOT_AT_REPLY);
	slot = get(&f);
	post(&f, slot, 1, 1);
	assert_int_equal(rxfer_slot_sent(&f.s, slot, false), 0);
	assert_int_equal(rxfer_sq_release(&f.sq, 1), 0);
	assert_refused(&f, slot, rxfer_slot_replied(&f.s, slot), -EOVERFLOW);
	rxfer_slots_free(&f.s);
	start(&f, N, 1, RXFER_SLOT_AT_REPLY);
	slot = get(&f);
	assert_int_equal(rxfer_sq_release(&f.sq, 1), 0);
	assert_refused(&f, slot, rxfer_slot_put(&f.s, slot), -EBUSY);
	rxfer_slots_free(&f.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(init_refuses),
		cmocka_unit_test(handed_out_with_n_credits_oldest_first),
		cmocka_unit_test(any_order),
		cmocka_unit_test(nothing_exposed_nothing_to_revoke),
		cmocka_unit_test(unused_credits_are_free_at_once),
		cmocka_unit_test(unused_credits_are_free_with_the_reply),
		cmocka_unit_test(goes_round),
		cmocka_unit_test(causes),
		cmocka_unit_test(waits_are_counted_and_timed),
		cmocka_unit_test(waits_begin_anew),
		cmocka_unit_test(refuses_what_is_out_of_order),
		cmocka_unit_test(put_refuses_what_was_posted),
		cmocka_unit_test(notices_lost_credits),
	};

	return cmocka_run_group_tests_name("unit_slot", tests, NULL, NULL);
}
