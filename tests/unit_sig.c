/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The signalling policies and rules, one by one, by hand-made examples. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <errno.h>
#include <cmocka.h>

#include "../src/sig.h"

/* A queue under test. @room: an account with all of its credits free. @word: one per I/O. */
struct fixture {
	struct rxfer_sig sig;
	struct rxfer_sq room;
	uint64_t word[8];
};

static struct fixture make(const char *policy, uint32_t depth, uint32_t slots, uint32_t need)
{
	struct fixture f = {.room = {.depth = depth}};
	const struct rxfer_sig_ops *ops = NULL;
	uint32_t arg = 0;

	assert_int_equal(rxfer_sig_parse(policy, &ops, &arg), 0);
	assert_int_equal(rxfer_sig_init(&f.sig, ops, arg, depth, slots, need), 0);
	return f;
}

/*
 * Decides on one WR of I/O number @io, described by letters: 'i' ends the I/O, 'p' ends the post,
 * 'm' must be signalled, 'r' is a revoke.
 */
static bool wr(struct fixture *f, unsigned int io, const char *what)
{
	struct rxfer_sig_wr w = {
		.must_signal = strchr(what, 'm') != NULL,
		.ends_io = strchr(what, 'i') != NULL,
		.revokes = strchr(what, 'r') != NULL,
		.ends_post = strchr(what, 'p') != NULL,
		.io_epoch = &f->word[io],
	};

	return rxfer_sig_decide(&f->sig, &f->room, &w);
}

/* ---- parse, list, init ---- */

static void assert_parses(const char *text, const char *name, uint32_t k)
{
	const struct rxfer_sig_ops *ops = NULL;
	uint32_t arg = 77;

	assert_int_equal(rxfer_sig_parse(text, &ops, &arg), 0);
	assert_string_equal(ops->name, name);
	assert_int_equal(arg, k);
}

static void assert_parse_fails(const char *text, int error)
{
	const struct rxfer_sig_ops *ops = NULL;
	uint32_t arg = 77;

	assert_int_equal(rxfer_sig_parse(text, &ops, &arg), error);
	assert_null(ops);
	assert_int_equal(arg, 77);
}

static void parse_accepts(void **state)
{
	(void)state;
	assert_parses("all", "all", 0);
	assert_parses("io", "io", 0);
	assert_parses("half", "half", 0);
	assert_parses("every:1", "every", 1);
	assert_parses("every:64", "every", 64);
	assert_parses("every:1073741824", "every", 1u << 30);
}

static void parse_knows_no_such_policy(void **state)
{
	(void)state;
	assert_parse_fails("", -ENOENT);
	assert_parse_fails("hal", -ENOENT);
	assert_parse_fails("halff", -ENOENT);
	assert_parse_fails("Half", -ENOENT);
	assert_parse_fails(" half", -ENOENT);
	assert_parse_fails(":4", -ENOENT);
	assert_parse_fails("never:4", -ENOENT);
}

static void parse_refuses_bad_arguments(void **state)
{
	(void)state;
	assert_parse_fails("half:", -EINVAL);
	assert_parse_fails("half:3", -EINVAL);
	assert_parse_fails("every", -EINVAL);
	assert_parse_fails("every:", -EINVAL);
	assert_parse_fails("every:0", -EINVAL);
	assert_parse_fails("every:-1", -EINVAL);
	assert_parse_fails("every:+1", -EINVAL);
	assert_parse_fails("every: 1", -EINVAL);
	assert_parse_fails("every:4k", -EINVAL);
	assert_parse_fails("every:4:4", -EINVAL);
	assert_parse_fails("every:x", -EINVAL);
	assert_parse_fails("every:1073741825", -EINVAL);
	assert_parse_fails("every:4294967297", -EINVAL); /* 1 modulo 2^32 */
	assert_parse_fails("every:18446744073709551617", -EINVAL);
}

/* What help and sweeps walk over is what the parser knows. */
static void list_is_complete(void **state)
{
	const struct rxfer_sig_ops *ops;
	char text[32];
	unsigned int i;

	(void)state;
	for (i = 0; (ops = rxfer_sig_list(i)); i++) {
		assert_true(strlen(ops->summary) > 0);
		assert_non_null(ops->wants);
		strcpy(text, ops->name);
		assert_parses(strcat(text, ops->takes_arg ? ":3" : ""), ops->name,
			      ops->takes_arg ? 3 : 0);
	}
	assert_int_equal(i, 5);
	assert_null(rxfer_sig_list(~0u));
}

static int init(const char *policy, uint32_t arg, uint32_t depth, uint32_t slots, uint32_t need)
{
	struct rxfer_sig sig, before;
	const struct rxfer_sig_ops *ops = NULL;
	uint32_t unused = 0;
	int ret;

	assert_int_equal(rxfer_sig_parse(policy, &ops, &unused), 0);
	memset(&sig, 0x5a, sizeof(sig));
	before = sig;
	ret = rxfer_sig_init(&sig, ops, arg, depth, slots, need);
	if (ret)
		assert_memory_equal(&before, &sig, sizeof(sig));
	else
		assert_int_equal(sig.arg, ops->takes_arg ? arg : 0);
	return ret;
}

static void init_checks_its_numbers(void **state)
{
	(void)state;
	assert_int_equal(init("half", 0, 8, 2, 8), 0);
	assert_int_equal(init("half", 0, 0, 2, 1), -EINVAL);
	assert_int_equal(init("half", 0, 8, 0, 1), -EINVAL);
	assert_int_equal(init("half", 0, 8, 2, 0), -EINVAL);
	assert_int_equal(init("every:1", 0, 8, 2, 1), -EINVAL);
	assert_int_equal(init("half", 0, 8, 2, 9), -EMSGSIZE);
	assert_int_equal(init("every:1", 8, 8, 2, 1), 0);
	assert_int_equal(init("every:1", 9, 8, 2, 1), -ERANGE);
	assert_int_equal(init("half", 9, 8, 2, 1), 0); /* takes none, so it cannot be too large */
}

static void init_starts_afresh(void **state)
{
	struct fixture f = make("every:5", 8, 3, 2);

	(void)state;
	assert_int_equal(f.sig.arg, 5);
	assert_int_equal(f.sig.depth, 8);
	assert_int_equal(f.sig.slots, 3);
	assert_int_equal(f.sig.need, 2);
	assert_int_equal(f.sig.epoch, 1);
	assert_int_equal(f.sig.signalled, 0);
	assert_false(rxfer_sig_tail_silent(&f.sig));
}

/* ---- policies ---- */

static void all_signals_everything(void **state)
{
	struct fixture f = make("all", 100, 100, 1);
	int i;

	(void)state;
	for (i = 0; i < 5; i++)
		assert_true(wr(&f, 0, ""));
	assert_int_equal(f.sig.signalled, 5);
	assert_int_equal(f.sig.forced, 0);
	assert_false(rxfer_sig_tail_silent(&f.sig));
}

static void io_signals_the_last_of_each(void **state)
{
	struct fixture f = make("io", 100, 100, 1);

	(void)state;
	assert_false(wr(&f, 0, ""));
	assert_true(wr(&f, 0, "i"));
	assert_false(wr(&f, 1, ""));
	assert_false(wr(&f, 1, "p"));
	assert_true(rxfer_sig_tail_silent(&f.sig));
	assert_true(wr(&f, 1, "ip"));
	assert_int_equal(f.sig.signalled, 2);
	assert_int_equal(f.sig.forced, 0);
}

static void inferred_signals_revokes_alone(void **state)
{
	struct fixture f = make("inferred", 100, 100, 1);

	(void)state;
	assert_false(wr(&f, 0, "i"));
	assert_false(wr(&f, 0, "r")); /* not its last one */
	assert_true(wr(&f, 0, "ri"));
	assert_false(wr(&f, 1, "ip"));
	assert_int_equal(f.sig.signalled, 1);
	assert_int_equal(f.sig.forced, 0);
}

/* Every third WR, whatever was signalled in between. */
static void every_counts_wrs(void **state)
{
	struct fixture f = make("every:3", 100, 100, 1);

	(void)state;
	assert_false(wr(&f, 0, "ip"));
	assert_true(wr(&f, 0, "m"));
	assert_true(wr(&f, 0, ""));
	assert_false(wr(&f, 0, ""));
	assert_false(wr(&f, 0, ""));
	assert_true(wr(&f, 0, ""));
	assert_int_equal(f.sig.signalled, 3);
	assert_int_equal(f.sig.forced, 1);
}

static void half_counts_from_the_last_signal(void **state)
{
	struct fixture f = make("half", 7, 100, 1);

	(void)state;
	assert_false(wr(&f, 0, ""));
	assert_false(wr(&f, 0, ""));
	assert_true(wr(&f, 0, ""));
	assert_false(wr(&f, 0, ""));
	assert_true(wr(&f, 0, "m"));
	assert_false(wr(&f, 0, ""));
	assert_false(wr(&f, 0, ""));
	assert_true(wr(&f, 0, ""));
	assert_int_equal(f.sig.forced, 1);
}

static void half_of_little_is_one(void **state)
{
	uint32_t depth;

	(void)state;
	for (depth = 1; depth <= 3; depth++) {
		struct fixture f = make("half", depth, 100, 1);

		assert_true(wr(&f, 0, ""));
		assert_true(wr(&f, 0, ""));
		assert_int_equal(f.sig.forced, 0);
	}
}

/* ---- rules ---- */

/* Two of three slots are in the tail: signal, at the end of the post only. */
static void rule_b_counts_ios(void **state)
{
	struct fixture f = make("half", 100, 3, 1);

	(void)state;
	assert_false(wr(&f, 0, "ip"));
	assert_false(wr(&f, 0, "ip"));
	assert_false(wr(&f, 0, "ip"));
	assert_int_equal(f.sig.silent_ios, 1);
	assert_false(wr(&f, 1, ""));
	assert_int_equal(f.sig.silent_ios, 2);
	assert_true(wr(&f, 1, "ip"));
	assert_int_equal(f.sig.silent_ios, 0);
	assert_int_equal(f.sig.silent, 0);
	assert_int_equal(f.sig.forced, 1);

	/* the new tail counts both again */
	assert_false(wr(&f, 1, "ip"));
	assert_true(wr(&f, 0, "ip"));
}

static void rule_b_half_of_slots_rounded_up(void **state)
{
	static const uint32_t half[] = {0, 1, 1, 2, 2, 3, 3, 4};
	uint32_t slots, io;

	(void)state;
	for (slots = 1; slots <= 7; slots++) {
		struct fixture f = make("half", 100, slots, 1);

		for (io = 0; io + 1 < half[slots]; io++)
			assert_false(wr(&f, io, "ip"));
		assert_true(wr(&f, io, "ip"));
	}
}

static void rule_c_when_the_next_io_would_not_fit(void **state)
{
	struct fixture f = make("half", 100, 100, 10);

	(void)state;
	f.room.head = 60;
	f.room.reserved = 30;
	assert_false(wr(&f, 0, "p")); /* ten are free */
	f.room.reserved = 31;
	assert_false(wr(&f, 0, "")); /* mid-post */
	assert_true(wr(&f, 0, "p"));
	assert_int_equal(f.sig.forced, 1);

	f.room.reserved = 30;
	f.room.tail = UINT32_MAX; /* 61 posted */
	assert_true(wr(&f, 0, "p"));
}

static void rule_d_anywhere(void **state)
{
	struct fixture f = make("half", 100, 100, 1);

	(void)state;
	assert_true(wr(&f, 0, "m"));
	assert_false(wr(&f, 0, "p"));
	assert_true(wr(&f, 0, "mp"));
	assert_int_equal(f.sig.forced, 2);
	assert_int_equal(f.sig.signalled, 2);
}

/* The rules hold under each policy, and what a policy wanted itself is not forced. */
static void rules_hold_under_every_policy(void **state)
{
	static const char *const policy[] = {"all", "io", "every:100", "half"};
	static const uint64_t forced[] = {0, 3, 3, 3};
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		struct fixture f = make(policy[i], 100, 4, 10);

		assert_true(wr(&f, 0, "m"));
		wr(&f, 0, "p");
		assert_true(wr(&f, 1, "p"));
		f.room.head = 91;
		assert_true(wr(&f, 0, "p"));
		assert_int_equal(f.sig.forced, forced[i]);
	}
}

/* ---- rollback ---- */

/*
 * Ten WRs of four I/Os in one post, of which the device takes the first @taken; then what follows
 * must be answered as if the others had never been. I/O 0 was in the tail before.
 */
static void assert_rolled_back(const char *policy, uint32_t taken)
{
	struct fixture f = make(policy, 14, 6, 2), g = make(policy, 14, 6, 2);
	struct rxfer_sig_wr w[10];
	bool said[10];
	uint32_t i;

	assert_int_equal(wr(&f, 0, "p"), wr(&g, 0, "p"));
	for (i = 0; i < 10; i++) {
		w[i] = (struct rxfer_sig_wr){.must_signal = i == 4,
					     .ends_io = i % 3 == 2,
					     .ends_post = i == 9,
					     .io_epoch = &f.word[i * 3 % 4]};
		said[i] = rxfer_sig_decide(&f.sig, &f.room, &w[i]);
	}
	rxfer_sig_rollback(&f.sig, w, said, taken, 10);

	for (i = 0; i < taken; i++) {
		struct rxfer_sig_wr again = w[i];

		again.io_epoch = &g.word[i * 3 % 4];
		assert_int_equal(rxfer_sig_decide(&g.sig, &g.room, &again), said[i]);
	}
	assert_memory_equal(&f.sig, &g.sig, sizeof(f.sig));
	assert_memory_equal(f.word, g.word, sizeof(f.word));
}

static void rollback_is_as_if_never_decided(void **state)
{
	static const char *const policy[] = {"all", "io", "every:4", "half"};
	uint32_t taken;
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		for (taken = 0; taken <= 10; taken++)
			assert_rolled_back(policy[i], taken);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_accepts),
		cmocka_unit_test(parse_knows_no_such_policy),
		cmocka_unit_test(parse_refuses_bad_arguments),
		cmocka_unit_test(list_is_complete),
		cmocka_unit_test(init_checks_its_numbers),
		cmocka_unit_test(init_starts_afresh),
		cmocka_unit_test(all_signals_everything),
		cmocka_unit_test(io_signals_the_last_of_each),
		cmocka_unit_test(inferred_signals_revokes_alone),
		cmocka_unit_test(every_counts_wrs),
		cmocka_unit_test(half_counts_from_the_last_signal),
		cmocka_unit_test(half_of_little_is_one),
		cmocka_unit_test(rule_b_counts_ios),
		cmocka_unit_test(rule_b_half_of_slots_rounded_up),
		cmocka_unit_test(rule_c_when_the_next_io_would_not_fit),
		cmocka_unit_test(rule_d_anywhere),
		cmocka_unit_test(rules_hold_under_every_policy),
		cmocka_unit_test(rollback_is_as_if_never_decided),
	};

	return cmocka_run_group_tests_name("unit_sig", tests, NULL, NULL);
}
