/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A server's memory shared out: limits, who is refused in which words, and all of it given back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <cmocka.h>

#include "budget.h"
#include "rxfer.h"

#define MIB	(1ull << 20)
#define PLENTY	(1ull << 50)
#define SHARERS 8

static void assert_empty(const struct budget *b)
{
	assert_int_equal(b->used, 0);
	assert_int_equal(b->promised, 0);
}

static void up_to_the_limit_and_no_further(void **state)
{
	struct budget b = {.limit = 10 * MIB};
	struct share first, second, third;

	(void)state;
	assert_int_equal(budget_take(&b, 6 * MIB, 6 * MIB, PLENTY, &first), 0);
	assert_int_equal(budget_take(&b, 4 * MIB + 1, 4 * MIB, PLENTY, &second), -ENOMEM);
	assert_int_equal(second.bytes, 0);
	assert_int_equal(b.used, 6 * MIB);
	assert_int_equal(budget_take(&b, 4 * MIB, 4 * MIB, PLENTY, &second), 0);
	assert_int_equal(budget_take(&b, 1, 1, PLENTY, &third), -ENOMEM);
	budget_give(&b, &third);
	budget_give(&b, &first);
	assert_int_equal(budget_take(&b, 6 * MIB, 6 * MIB, PLENTY, &third), 0);
	budget_give(&b, &second);
	budget_give(&b, &third);
	assert_empty(&b);
}

static void refused_with_the_numbers(void **state)
{
	struct budget b = {.limit = 10 * MIB};
	struct share s, other;

	(void)state;
	assert_int_equal(budget_take(&b, 11 * MIB, 0, PLENTY, &s), -ENOMEM);
	assert_string_equal(rxfer_error(),
			    "this run takes 11.0 MiB on the server, which may have 10.0 MiB (its "
			    "--max-memory): use less (--depth, --size, --qps)");
	assert_int_equal(budget_take(&b, 4 * MIB, 0, PLENTY, &other), 0);
	assert_int_equal(budget_take(&b, 7 * MIB, 0, PLENTY, &s), -ENOMEM);
	assert_string_equal(
		rxfer_error(),
		"this run takes 7.0 MiB on the server, and other sessions have 4.0 "
		"MiB of the 10.0 MiB that there may be (its --max-memory): wait for them, or "
		"use less (--depth, --size, --qps)");
	budget_give(&b, &other);
	assert_int_equal(budget_take(&b, 7 * MIB, 7 * MIB, 8 * MIB, &s), -ENOMEM);
	assert_string_equal(rxfer_error(),
			    "7.0 MiB of memory are needed on the server, where 8.0 MiB are "
			    "available and 0 bytes of them promised to other sessions: use less "
			    "(--depth, --size, --qps)");
	assert_empty(&b);
}

/* What two runs are about to touch is counted for both; what was touched, the kernel counts. */
static void promised_until_it_is_touched(void **state)
{
	struct budget b = {0};
	struct share first, second;

	(void)state;
	assert_int_equal(budget_take(&b, 50 * MIB, 50 * MIB, 100 * MIB, &first), 0);
	assert_int_equal(budget_take(&b, 26 * MIB, 26 * MIB, 100 * MIB, &second), -ENOMEM);
	budget_settle(&b, &first);
	assert_int_equal(budget_take(&b, 26 * MIB, 26 * MIB, 50 * MIB, &second), 0);
	assert_int_equal(b.used, 76 * MIB);
	budget_give(&b, &first);
	budget_give(&b, &second);
	budget_give(&b, &second);
	assert_empty(&b);
}

/* Huge pages come out of a pool of their own. */
static void a_pool_is_not_plain_memory(void **state)
{
	struct budget b = {.limit = 200 * MIB};
	struct share s;

	(void)state;
	assert_int_equal(budget_take(&b, 150 * MIB, 0, 1 * MIB, &s), 0);
	budget_give(&b, &s);
	assert_empty(&b);
}

static void without_a_budget_nothing_is_counted(void **state)
{
	struct share s;

	(void)state;
	assert_int_equal(budget_take(NULL, UINT64_MAX, UINT64_MAX, 0, &s), 0);
	budget_settle(NULL, &s);
	budget_give(NULL, &s);
}

static void *share_and_give(void *arg)
{
	struct budget *b = arg;
	struct share s;

	for (int i = 0; i < 20000; i++) {
		if (budget_take(b, 3, 2, PLENTY, &s))
			continue;
		if (__atomic_load_n(&b->used, __ATOMIC_RELAXED) > b->limit)
			return b;
		budget_settle(b, &s);
		budget_give(b, &s);
	}
	return NULL;
}

static void many_at_once(void **state)
{
	struct budget b = {.limit = 10};
	pthread_t thread[SHARERS];
	void *over;

	(void)state;
	for (int i = 0; i < SHARERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, share_and_give, &b), 0);
	for (int i = 0; i < SHARERS; i++) {
		assert_int_equal(pthread_join(thread[i], &over), 0);
		assert_null(over);
	}
	assert_empty(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(up_to_the_limit_and_no_further),
		cmocka_unit_test(refused_with_the_numbers),
		cmocka_unit_test(promised_until_it_is_touched),
		cmocka_unit_test(a_pool_is_not_plain_memory),
		cmocka_unit_test(without_a_budget_nothing_is_counted),
		cmocka_unit_test(many_at_once),
	};

	return cmocka_run_group_tests_name("unit_budget", tests, NULL, NULL);
}
