/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The plan: which runs come out of the lists, in which order, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "plan.h"
#include "rxfer.h"

#define WORDS 24
#define LINE  16384

/* Blanks separate the words. */
static int make(const char *text, struct plan *plan, char *error)
{
	char line[LINE], *words[WORDS], *word;
	unsigned int n = 0;
	struct opts o;
	int err;

	snprintf(line, sizeof(line), "%s", text);
	for (word = strtok(line, " "); word && n < WORDS; word = strtok(NULL, " "))
		words[n++] = word;
	if (opts_parse(CMD_LOOPBACK, n, words, &o, error, LINE))
		fail_msg("%s", error);
	err = plan_make(&o, plan, error, LINE);
	opts_free(&o);
	return err;
}

static void assert_plan(const char *text, unsigned int n, const char *const *expected)
{
	char error[LINE], printed[LINE];
	struct plan plan;
	unsigned int i;

	if (make(text, &plan, error))
		fail_msg("'%s' refused: %s", text, error);
	assert_int_equal(plan.n, n);
	for (i = 0; i < n; i++) {
		cfg_print(&plan.run[i], OPT_RUN, printed, sizeof(printed));
		assert_string_equal(printed, expected[i]);
	}
	plan_free(&plan);
	assert_null(plan.run);
	assert_int_equal(plan.n, 0);
}

static void test_nothing_given(void **state)
{
	static const char *const expected[] = {""};

	(void)state;
	assert_plan("", 1, expected);
}

/* From the slowest to the fastest: op, size, frags, depth, qps, signal. */
static void test_order(void **state)
{
	static const char *const ops[] = {
		"size=4k signal=all",	       "size=4k",
		"size=4k frags=2 signal=all",  "size=4k frags=2",
		"size=8k signal=all",	       "size=8k",
		"size=8k frags=2 signal=all",  "size=8k frags=2",
		"op=write size=4k signal=all", "op=write size=4k",
	};
	static const char *const queues[] = {
		"depth=1",
		"depth=1 qps=2",
		"depth=3",
		"depth=3 qps=2",
	};
	char error[LINE], printed[LINE];
	struct plan plan;
	unsigned int i;

	(void)state;
	assert_int_equal(
		make("--signal all,half -s 4k,8k --frags 1,2 --op read,write", &plan, error), 0);
	assert_int_equal(plan.n, 16);
	for (i = 0; i < 10; i++) {
		cfg_print(&plan.run[i], OPT_RUN, printed, sizeof(printed));
		assert_string_equal(printed, ops[i]);
	}
	plan_free(&plan);
	assert_plan("-q 1,2 -t 1,3", 4, queues);
}

static void test_strategy_is_fastest(void **state)
{
	char error[LINE];
	struct plan plan;
	unsigned int i, n = 0;

	(void)state;
	while (rxfer_strategy_name(n))
		n++;
	assert_true(n > 1);
	assert_int_equal(
		make("--signal io,half --strategy all -D 1,2 -n 5,6 -t 1,2 --sq-depth 0,500", &plan,
		     error),
		0);
	assert_int_equal(plan.n, 32 * n);
	for (i = 0; i < plan.n; i++) {
		assert_string_equal(plan.run[i].strategy, rxfer_strategy_name(i % n));
		assert_string_equal(plan.run[i].signal, i / n % 2 ? "half" : "io");
	}
	plan_free(&plan);
}

/* The comparison that a newcomer sees first: 3 x 3 x 2 x all strategies, each once. */
static void test_cross_product_is_complete(void **state)
{
	char error[LINE], one[LINE], other[LINE];
	struct plan plan;
	unsigned int i, j, n = 0;

	(void)state;
	assert_int_equal(make("--mode direct --op all -s 4k,64k,1m --frags 1,16 --strategy all",
			      &plan, error),
			 0);
	while (rxfer_strategy_name(n))
		n++;
	assert_int_equal(plan.n, 4 * 3 * 2 * n);
	for (i = 0; i < plan.n; i++)
		for (j = 0; j < i; j++) {
			cfg_print(&plan.run[i], OPT_RUN, one, sizeof(one));
			cfg_print(&plan.run[j], OPT_RUN, other, sizeof(other));
			assert_string_not_equal(one, other);
		}
	plan_free(&plan);
}

static void assert_limits(const char *text, uint64_t iters, uint64_t duration_ns)
{
	char error[LINE];
	struct plan plan;

	assert_int_equal(make(text, &plan, error), 0);
	assert_true(plan.run[0].iters == iters);
	assert_true(plan.run[0].duration_ns == duration_ns);
	plan_free(&plan);
}

static void test_what_ends_a_run(void **state)
{
	static const char *const both[] = {"", "iters=0 duration=1s"};

	(void)state;
	assert_limits("", 1000, 0);
	assert_limits("-n 7", 7, 0);
	assert_limits("-D 1ms", 0, 1000000);
	assert_limits("-D 1ms -n 7", 7, 1000000);
	assert_limits("-n 1000 -D 1ms", 1000, 1000000);
	assert_limits("-D 0", 1000, 0);
	assert_plan("-D 0,1", 2, both);
}

static void test_other_options_reach_every_run(void **state)
{
	char error[LINE];
	struct plan plan;
	unsigned int i;

	(void)state;
	assert_int_equal(
		make("-d rxe0 -s 1,2 --verify --poll event --timeout 1 --format csv -o a.csv",
		     &plan, error),
		0);
	assert_int_equal(plan.n, 2);
	for (i = 0; i < plan.n; i++) {
		assert_string_equal(plan.run[i].device, "rxe0");
		assert_string_equal(plan.run[i].format, "csv");
		assert_true(plan.run[i].verify);
		assert_int_equal(plan.run[i].poll, POLL_EVENT);
		assert_int_equal(plan.run[i].timeout_ns, 1000000000);
		assert_int_equal(plan.run[i].size, i + 1);
	}
	plan_free(&plan);
}

static void assert_refused(const char *text, const char *expected)
{
	char error[LINE];
	struct plan plan;

	assert_int_equal(make(text, &plan, error), -EINVAL);
	assert_string_equal(error, expected);
	assert_null(plan.run);
	assert_int_equal(plan.n, 0);
}

/* One combination that contradicts itself is enough, be it the last. */
static void test_contradictions(void **state)
{
	(void)state;
	assert_refused("-s 4k,8 --frags 1,9", "contradiction: --frags 9, --size 8: each fragment "
					      "needs a byte; take fewer fragments "
					      "or a larger size");
	assert_refused("-n 0", "contradiction: --iters 0, --duration 0: nothing would end the run; "
			       "give one of them");
	assert_refused("-D 1,0 -n 0", "contradiction: --iters 0, --duration 0: nothing would end "
				      "the run; give one of them");
}

/* Each run as "rpc: op=write size=4k", whichever mode is the default. */
static void assert_modes(const char *text, unsigned int n, const char *const *expected)
{
	char error[LINE], printed[LINE], *rest, run[LINE + 8];
	struct plan plan;
	unsigned int i;

	assert_int_equal(make(text, &plan, error), 0);
	assert_int_equal(plan.n, n);
	for (i = 0; i < n; i++) {
		cfg_print(&plan.run[i], OPT_RUN, printed, sizeof(printed));
		rest = printed;
		if (!strncmp(rest, "mode=", 5))
			rest += strcspn(rest, " ") + (strchr(rest, ' ') != NULL);
		snprintf(run, sizeof(run), "%s: %s",
			 plan.run[i].mode == MODE_RPC ? "rpc" : "direct", rest);
		assert_string_equal(run, expected[i]);
	}
	plan_free(&plan);
}

/* One list crosses the modes; what only one of them has cannot be in a sweep over both. */
static void test_modes(void **state)
{
	static const char *const modes[] = {
		"direct: op=write size=4k",
		"direct: op=write size=8k",
		"rpc: op=write size=4k",
		"rpc: op=write size=8k",
	};
	static const char *const revokes[] = {
		"rpc: revoke=sync peer-strategy=per-io signal=io",
		"rpc: revoke=sync peer-strategy=per-io",
		"rpc: revoke=sync peer-strategy=global signal=io",
		"rpc: revoke=sync peer-strategy=global",
		"rpc: peer-strategy=per-io signal=io",
		"rpc: peer-strategy=per-io",
		"rpc: peer-strategy=global signal=io",
		"rpc: peer-strategy=global",
	};

	(void)state;
	assert_modes("--mode direct,rpc --op write -s 4k,8k", 4, modes);
	assert_modes("--mode rpc --signal io,half --peer-strategy per-io,global --revoke sync,auto",
		     8, revokes);
	assert_refused("--mode rpc,direct --revoke auto,sync",
		       "contradiction: --revoke sync, --mode direct: only rpc mode has it; take "
		       "--mode rpc or leave it out");
	assert_refused("--mode rpc --op write,read --reply imm",
		       "contradiction: --reply imm, --op read: it is the last WRITE that carries "
		       "the reply; take --op write or leave out --reply");
	assert_refused("-s 4k,0 --mode direct",
		       "contradiction: --size 0, --mode direct: there is no I/O without bytes in "
		       "direct mode; take a larger size or --mode rpc");
}

static void add_list(char *text, const char *option, unsigned int n)
{
	unsigned int i;

	text_add(text, LINE, " %s 1", option);
	for (i = 2; i <= n; i++)
		text_add(text, LINE, ",%u", i);
}

static void test_too_many(void **state)
{
	char text[LINE] = "", error[LINE];
	struct plan plan;

	(void)state;
	add_list(text, "-q", 10);
	add_list(text, "-t", 10);
	add_list(text, "-n", 10);
	add_list(text, "-D", 10);
	add_list(text, "-s", 10);
	assert_int_equal(make(text, &plan, error), 0);
	assert_int_equal(plan.n, PLAN_MAX);
	plan_free(&plan);
	text_add(text, sizeof(text), ",11");
	assert_refused(text, "the lists make more than 100000 runs; shorten one");
	add_list(text, "--sq-depth", 10);
	add_list(text, "--frag-gap", 80);
	assert_refused(text, "the lists make more than 100000 runs; shorten one");
}

/* Eight lists of 256: 2^64 runs, which is 0 to whoever counts carelessly. */
static void test_far_too_many(void **state)
{
	static const char *const options[] = {"-s",	    "--frags", "--frag-gap", "-t",
					      "--sq-depth", "-q",      "-n",	     "-D"};
	char text[LINE] = "";
	unsigned int i;

	(void)state;
	for (i = 0; i < 8; i++)
		add_list(text, options[i], 256);
	assert_refused(text, "the lists make more than 100000 runs; shorten one");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_given),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_strategy_is_fastest),
		cmocka_unit_test(test_cross_product_is_complete),
		cmocka_unit_test(test_what_ends_a_run),
		cmocka_unit_test(test_other_options_reach_every_run),
		cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_far_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
