/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The exposure ledger: each call, each error, and that an error changes nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdbool.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "../src/ledger.h"

#define UNTOUCHED 0xabad1deaull

static struct rxfer_ledger ledger(uint64_t now)
{
	struct rxfer_ledger l;

	rxfer_ledger_init(&l, NULL, now);
	return l;
}

static struct rxfer_grant granted(struct rxfer_ledger *l, uint32_t key, uint64_t bytes,
				  uint64_t now)
{
	struct rxfer_grant g = {0};

	assert_int_equal(rxfer_grant_open(l, &g, key, bytes, now), 0);
	return g;
}

static uint64_t dies(struct rxfer_grant *g, uint64_t now)
{
	uint64_t span = UNTOUCHED;

	assert_int_equal(rxfer_grant_revoking(g, g->key), 0);
	assert_int_equal(rxfer_grant_proven(g, g->key, now, &span), 0);
	return span;
}

static void says(const struct rxfer_ledger *l, uint64_t when, uint64_t now, uint64_t peak,
		 double avg)
{
	struct rxfer_exposed x = rxfer_ledger_read(l, when);

	assert_int_equal(x.now, now);
	assert_int_equal(x.peak, peak);
	assert_true(x.avg == avg);
}

static void nothing_is_open(void **state)
{
	struct rxfer_ledger l = ledger(1000);

	(void)state;
	says(&l, 1000, 0, 0, 0);
	says(&l, 2000, 0, 0, 0);
	assert_int_equal(rxfer_ledger_read(&l, 2000).live, 0);
}

static void bytes_over_time(void **state)
{
	struct rxfer_ledger l = ledger(1000);
	struct rxfer_grant a = granted(&l, 7, 100, 1000), b;

	(void)state;
	says(&l, 1000, 100, 100, 100); /* no time has passed */
	b = granted(&l, 8, 300, 1100);
	says(&l, 1200, 400, 400, (100 * 100 + 400 * 100) / 200.0);
	dies(&a, 1200);
	says(&l, 1400, 300, 400, (100 * 100 + 400 * 100 + 300 * 200) / 400.0);
	dies(&b, 1400);
	says(&l, 2000, 0, 400, 110);
	assert_int_equal(rxfer_ledger_read(&l, 2000).grants, 2);
	assert_int_equal(rxfer_ledger_read(&l, 2000).proven, 2);
	assert_int_equal(rxfer_ledger_read(&l, 2000).live, 0);
}

/* It is read at a time, and that changes nothing. */
static void reading_changes_nothing(void **state)
{
	struct rxfer_ledger l = ledger(0), was;

	(void)state;
	granted(&l, 7, 100, 10);
	was = l;
	says(&l, 20, 100, 100, 50);
	assert_memory_equal(&was, &l, sizeof(l));
}

static void a_posted_revoke_proves_nothing(void **state)
{
	struct rxfer_ledger l = ledger(0);
	struct rxfer_grant g = granted(&l, 7, 100, 0);
	uint64_t span;

	(void)state;
	assert_int_equal(rxfer_grant_revoking(&g, 7), 0);
	says(&l, 50, 100, 100, 100);
	assert_int_equal(rxfer_grant_proven(&g, 7, 50, &span), 0);
	says(&l, 100, 0, 100, 50);
}

static void from_the_reply_to_the_proof(void **state)
{
	struct rxfer_ledger l = ledger(0);
	struct rxfer_grant g = granted(&l, 7, 100, 0);

	(void)state;
	rxfer_grant_replied(&g, 30);
	rxfer_grant_replied(&g, 40); /* the first one counts */
	assert_int_equal(dies(&g, 100), 70);

	g = granted(&l, 8, 100, 200); /* no reply yet, for this one */
	assert_int_equal(dies(&g, 300), RXFER_NO_SPAN);

	g = granted(&l, 9, 100, 400);
	assert_int_equal(rxfer_grant_revoking(&g, 9), 0);
	rxfer_grant_replied(&g, 500);
	rxfer_grant_kept(&g, 9);
	assert_int_equal(dies(&g, 500), 0);
	rxfer_grant_replied(&g, 600);
	assert_false(granted(&l, 10, 1, 700).has_reply);
}

/* The peer's own revoke, which comes with its reply. */
static void proven_without_a_revoke_of_ours(void **state)
{
	struct rxfer_ledger l = ledger(0);
	struct rxfer_grant g = granted(&l, 7, 100, 0);
	uint64_t span = UNTOUCHED;

	(void)state;
	rxfer_grant_replied(&g, 30);
	assert_int_equal(rxfer_grant_proven(&g, 7, 30, &span), 0);
	assert_int_equal(span, 0);
	assert_int_equal(rxfer_grant_revoking(&g, 7), -EALREADY);
}

static void one_revoke_for_each_grant(void **state)
{
	struct rxfer_ledger l = ledger(0), was;
	struct rxfer_grant g = {0};
	uint64_t span = UNTOUCHED;

	(void)state;
	assert_int_equal(rxfer_grant_revoking(&g, 0), -ENOENT);
	assert_int_equal(rxfer_grant_kept(&g, 0), -ENOENT);
	assert_int_equal(rxfer_grant_proven(&g, 0, 1, &span), -ENOENT);
	g = granted(&l, 7, 100, 0);
	assert_int_equal(rxfer_grant_open(&l, &g, 8, 100, 1), -EEXIST);
	assert_int_equal(rxfer_grant_revoking(&g, 8), -ENOENT);
	assert_int_equal(rxfer_grant_proven(&g, 8, 1, &span), -ENOENT);
	assert_int_equal(rxfer_grant_kept(&g, 7), -ENOENT);
	assert_int_equal(rxfer_grant_revoking(&g, 7), 0);
	assert_int_equal(rxfer_grant_revoking(&g, 7), -EALREADY);
	assert_int_equal(rxfer_grant_open(&l, &g, 8, 100, 1), -EEXIST);
	assert_int_equal(rxfer_grant_kept(&g, 8), -ENOENT);
	assert_int_equal(rxfer_grant_proven(&g, 7, 9, &span), 0);
	was = l;
	span = UNTOUCHED;
	assert_int_equal(rxfer_grant_proven(&g, 7, 10, &span), -EALREADY);
	assert_int_equal(rxfer_grant_revoking(&g, 7), -EALREADY);
	assert_int_equal(rxfer_grant_revoking(&g, 8), -ENOENT);
	assert_int_equal(rxfer_grant_kept(&g, 7), -ENOENT);
	assert_int_equal(span, UNTOUCHED);
	assert_memory_equal(&was, &l, sizeof(l));
	assert_int_equal(rxfer_grant_open(&l, &g, 7, 100, 11), 0); /* the same key, given anew */
	dies(&g, 12);
}

/* A failed revoke has revoked nothing, and may be tried again. */
static void a_revoke_fails(void **state)
{
	struct rxfer_ledger l = ledger(0);
	struct rxfer_grant g = granted(&l, 7, 100, 0);

	(void)state;
	assert_int_equal(rxfer_grant_revoking(&g, 7), 0);
	assert_int_equal(rxfer_grant_kept(&g, 7), 0);
	says(&l, 10, 100, 100, 100);
	dies(&g, 10);
	says(&l, 20, 0, 100, 50);
}

static void what_is_open_counts_from_the_restart(void **state)
{
	struct rxfer_ledger l = ledger(0);
	struct rxfer_grant a = granted(&l, 7, 100, 0), b = granted(&l, 8, 50, 10);

	(void)state;
	rxfer_grant_replied(&b, 15);
	dies(&a, 20);
	rxfer_ledger_restart(&l, 100);
	says(&l, 100, 50, 50, 50);
	assert_int_equal(rxfer_ledger_read(&l, 100).live, 1);
	assert_int_equal(rxfer_ledger_read(&l, 100).grants, 0);
	assert_int_equal(rxfer_ledger_read(&l, 100).proven, 0);
	assert_int_equal(dies(&b, 150), 135);
	says(&l, 200, 0, 50, 25);
	assert_int_equal(rxfer_ledger_read(&l, 200).proven, 1);
}

static void a_part_of_a_whole(void **state)
{
	struct rxfer_ledger all = ledger(0), one, two;
	struct rxfer_grant a, b, ever = granted(&all, 1, 1000, 0);

	(void)state;
	rxfer_ledger_init(&one, &all, 0);
	rxfer_ledger_init(&two, &all, 0);
	a = granted(&one, 7, 100, 0);
	b = granted(&two, 8, 10, 50);
	says(&one, 100, 100, 100, 100);
	says(&two, 100, 10, 10, 5);
	says(&all, 100, 1110, 1110, 1105);
	rxfer_ledger_restart(&one, 100);
	says(&all, 100, 1110, 1110, 1105);
	dies(&a, 100);
	dies(&b, 100);
	says(&all, 200, 1000, 1110, 1052.5);
	dies(&ever, 200);
	assert_int_equal(rxfer_ledger_read(&all, 200).live, 0);
}

/* A TiB for a day is exact, and so is a byte beside it. */
static void much_for_long(void **state)
{
	const uint64_t day = 86400ull * 1000000000;
	struct rxfer_ledger l = ledger(5);

	(void)state;
	granted(&l, 7, 1ull << 40, 5);
	says(&l, 5 + day, 1ull << 40, 1ull << 40, (double)(1ull << 40));
	granted(&l, 8, 1, 5 + day);
	says(&l, 5 + 2 * day, (1ull << 40) + 1, (1ull << 40) + 1, (double)(1ull << 40) + 0.5);
}

static void a_clock_that_goes_back_stands_still(void **state)
{
	struct rxfer_ledger l = ledger(100);
	struct rxfer_grant g = granted(&l, 7, 100, 200), h;

	(void)state;
	h = granted(&l, 8, 100, 150);
	says(&l, 150, 200, 200, 0);
	rxfer_grant_replied(&g, 400);
	assert_int_equal(dies(&g, 300), 0);
	says(&l, 300, 100, 200, 100);
	dies(&h, 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_open),
		cmocka_unit_test(bytes_over_time),
		cmocka_unit_test(reading_changes_nothing),
		cmocka_unit_test(a_posted_revoke_proves_nothing),
		cmocka_unit_test(from_the_reply_to_the_proof),
		cmocka_unit_test(proven_without_a_revoke_of_ours),
		cmocka_unit_test(one_revoke_for_each_grant),
		cmocka_unit_test(a_revoke_fails),
		cmocka_unit_test(what_is_open_counts_from_the_restart),
		cmocka_unit_test(a_part_of_a_whole),
		cmocka_unit_test(much_for_long),
		cmocka_unit_test(a_clock_that_goes_back_stands_still),
	};

	return cmocka_run_group_tests_name("unit_ledger", tests, NULL, NULL);
}
