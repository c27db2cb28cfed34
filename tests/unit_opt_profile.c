/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Profiles: where they are found, what a line may be, and that the command line wins. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "opt.h"
#include "plan.h"

#define WORDS 12
#define LINE  1024

static char dir[] = "/tmp/unit_opt_profile.XXXXXX";

static void write_file(const char *name, const char *text, size_t n)
{
	char path[LINE];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void profile(const char *text)
{
	write_file("one", text, strlen(text));
}

/* Blanks separate the words. */
static int parse(unsigned int command, const char *text, struct opts *o, char *error)
{
	char line[LINE], *words[WORDS], *word;
	unsigned int n = 0;

	snprintf(line, sizeof(line), "%s", text);
	for (word = strtok(line, " "); word && n < WORDS; word = strtok(NULL, " "))
		words[n++] = word;
	strcpy(error, "untouched");
	return opts_parse(command, n, words, o, error, LINE);
}

static void assert_prints(unsigned int command, const char *text, const char *expected)
{
	char error[LINE], printed[LINE];
	struct opts o;

	if (parse(command, text, &o, error))
		fail_msg("'%s' refused: %s", text, error);
	opts_print(&o, printed, sizeof(printed));
	assert_string_equal(printed, expected);
	opts_free(&o);
}

/* @expected, in which an @ is the directory. */
static void assert_refused(const char *text, const char *expected)
{
	char error[LINE], wanted[LINE];
	struct opts o;

	if (parse(CMD_LOOPBACK, text, &o, error) != -EINVAL)
		fail_msg("'%s' accepted", text);
	snprintf(wanted, sizeof(wanted), "%.*s%s%s", (int)strcspn(expected, "@"), expected,
		 strchr(expected, '@') ? dir : "",
		 expected + strcspn(expected, "@") + !!strchr(expected, '@'));
	assert_string_equal(error, wanted);
	assert_null(o.given);
}

static void test_lines(void **state)
{
	(void)state;
	profile("");
	assert_prints(CMD_LOOPBACK, "--profile one", "");
	profile("# all of it\n\n  \t\nop read,write\r\n  size\t4096  # bytes\n#verify\nbidir\n");
	assert_prints(CMD_LOOPBACK, "--profile one", "--op read,write --size 4k --bidir");
	assert_prints(CMD_LOOPBACK, "--profile=one", "--op read,write --size 4k --bidir");
	profile("signal all\nsignal every:7,half"); /* the last holds, as elsewhere */
	assert_prints(CMD_LOOPBACK, "--profile one", "--signal every:7,half");
	profile("output a#1.csv\noutput two words.json\n");
	assert_prints(CMD_LOOPBACK, "--profile one",
		      "--output $'a#1.csv' --output $'two words.json'");
	profile("strategy all");
	assert_prints(
		CMD_CLIENT, "node7 --profile one",
		"--strategy global,multi-wr,per-io,rcache,frwr,frwr-umr,bounce,odp,odp-implicit");
}

static void test_the_command_line_wins(void **state)
{
	(void)state;
	profile("op write\nsize 4k\nverify\noutput a.csv\n");
	assert_prints(CMD_LOOPBACK, "--op read --profile one",
		      "--op read --size 4k --verify "
		      "--output a.csv");
	assert_prints(CMD_LOOPBACK, "--profile one --op read -s 1,2 -o b.csv",
		      "--op read --size 1,2 --verify --output b.csv");
	profile("poll busy\nsize 1\n");
	assert_prints(CMD_LOOPBACK, "-e --profile one", "--size 1 --poll event");
	write_file("two", "size 2\n", 7);
	assert_prints(CMD_LOOPBACK, "--profile one --profile two", "--size 2");
}

static void test_its_options_reach_the_runs(void **state)
{
	char error[LINE];
	struct plan plan;
	struct opts o;

	(void)state;
	profile("mode rpc\nop read,write\nsignal io\n");
	assert_int_equal(parse(CMD_LOOPBACK, "--profile one -s 4k", &o, error), 0);
	assert_int_equal(plan_make(&o, &plan, error, sizeof(error)), 0);
	assert_int_equal(plan.n, 2);
	assert_int_equal(plan.run[1].mode, MODE_RPC);
	assert_int_equal(plan.run[1].op, OP_WRITE);
	assert_int_equal(plan.run[1].size, 4096);
	assert_string_equal(plan.run[1].signal, "io");
	plan_free(&plan);
	opts_free(&o);
}

/* --help ends the parsing, and what is wrong behind it does not matter. */
static void test_help(void **state)
{
	char error[LINE];
	struct opts o;

	(void)state;
	assert_int_equal(parse(CMD_LOOPBACK, "--profile none --help", &o, error), 0);
	assert_true(o.want_help);
	opts_free(&o);
}

static const struct {
	const char *text, *error;
} bad[] = {
	{"size 4k\nop raed\n", "@/one:2: --op raed: unknown; did you mean read? Say one of read, "
			       "write, write-imm, send, all"},
	{"\n\nstratgy x", "@/one:3: unknown option stratgy; did you mean --strategy? See "
			  "rxfer-bench loopback --help"},
	{"zzz", "@/one:1: unknown option zzz; see rxfer-bench loopback --help"},
	{"port 5",
	 "@/one:1: --port belongs to server and client and probe and fence, not to loopback; see "
	 "rxfer-bench loopback --help"},
	{"size", "@/one:1: --size: its value is missing; say --size BYTES"},
	{"size # 4k", "@/one:1: --size: its value is missing; say --size BYTES"},
	{"verify yes", "@/one:1: --verify takes no value; say just --verify"},
	{"size 4k, 8k", "@/one:1: --size  8k: not a size; say bytes like 4096, 4k, 1m"},
	{"--size 4k", "@/one:1: --size: options have no dashes here, and long names only"},
	{"-s 4k", "@/one:1: -s: options have no dashes here, and long names only"},
	{"size=4k", "@/one:1: size=4k: a blank goes before the value here, no ="},
	{"profile one", "@/one:1: profile: not in a profile; leave it out"},
	{"help", "@/one:1: help: not in a profile; leave it out"},
	{"s\x1bze 1", "@/one:1: unknown option s?ze; did you mean --size? See rxfer-bench "
		      "loopback --help"},
};

static void test_bad_lines(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		profile(bad[i].text);
		assert_refused("--profile one", bad[i].error);
		assert_refused("--profile one --op read -s 1",
			       bad[i].error); /* overridden or not */
	}
}

static void test_bad_files(void **state)
{
	static char large[65537];

	(void)state;
	memset(large, '\n', sizeof(large));
	write_file("one", large, sizeof(large) - 1);
	assert_prints(CMD_LOOPBACK, "--profile one", "");
	write_file("one", large, sizeof(large));
	assert_refused("--profile one", "@/one: above 64 KiB; it is no profile");
	write_file("one", "size 4k\n\0op", 11);
	assert_refused("--profile one", "@/one: not a text; it is no profile");
	assert_refused("--profile /dev/zero",
		       "--profile /dev/zero: not a regular file; say a file of options, or a name");
	assert_refused("--profile /none/such",
		       "--profile /none/such: No such file or directory; say a file of options, or "
		       "a name");
	assert_refused("--profile .",
		       "--profile @/.: Is a directory; say a file of options, or a name");
	assert_refused("--profile", "--profile: its value is missing; say --profile PROFILE");
	assert_refused("--profile a\n", "--profile a?: a control character in a file's name; "
					"rename it");
}

static void test_paths(void **state)
{
	char text[LINE];

	(void)state;
	profile("size 4k");
	snprintf(text, sizeof(text), "--profile %s/one", dir);
	assert_prints(CMD_LOOPBACK, text, "--size 4k");
	setenv("RXFER_PROFILES", "/none/such", 1);
	assert_prints(CMD_LOOPBACK, text, "--size 4k");
	setenv("RXFER_PROFILES", dir, 1);
}

/* Which directories, with what there is; the installed ones may be there or not. */
static void test_no_such_name(void **state)
{
	char error[LINE], wanted[LINE];
	struct opts o;

	(void)state;
	profile("");
	write_file("two", "", 0);
	write_file(".hidden", "", 0);
	assert_int_equal(parse(CMD_LOOPBACK, "--profile tow", &o, error), -EINVAL);
	snprintf(wanted, sizeof(wanted),
		 "--profile tow: there is none of that name; did you mean two? Looked in %s (one, "
		 "two), " PROFILES_DIR " (",
		 dir);
	assert_memory_equal(error, wanted, strlen(wanted));
	assert_non_null(strstr(error, "); a file is named with a slash"));

	setenv("RXFER_PROFILES", "/none/such", 1);
	assert_int_equal(parse(CMD_LOOPBACK, "--profile xyzzy", &o, error), -EINVAL);
	strcpy(wanted, "--profile xyzzy: there is none of that name; looked in /none/such (none), "
		       "" PROFILES_DIR " (");
	assert_memory_equal(error, wanted, strlen(wanted));

	unsetenv("RXFER_PROFILES");
	assert_int_equal(parse(CMD_LOOPBACK, "--profile xyzzy", &o, error), -EINVAL);
	strcpy(wanted, "--profile xyzzy: there is none of that name; looked in " PROFILES_DIR " (");
	assert_memory_equal(error, wanted, strlen(wanted));
	setenv("RXFER_PROFILES", dir, 1);
}

static void test_many_names(void **state)
{
	char error[LINE], name[LINE], path[LINE];
	struct opts o;
	unsigned int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "many-%u", i);
		write_file(name, "", 0);
	}
	assert_int_equal(parse(CMD_LOOPBACK, "--profile xyzzy", &o, error), -EINVAL);
	assert_non_null(strstr(error, ", many-1, many-10, "));
	assert_non_null(strstr(error, ", ...), "));
	assert_true(strlen(error) < 400);
	for (i = 0; i < 100; i++) {
		snprintf(path, sizeof(path), "%s/many-%u", dir, i);
		unlink(path);
	}
}

static int make_dir(void **state)
{
	(void)state;
	return !mkdtemp(dir) || setenv("RXFER_PROFILES", dir, 1);
}

static int drop_dir(void **state)
{
	static const char *const names[] = {"one", "two", ".hidden"};
	char path[LINE];
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_the_command_line_wins),
		cmocka_unit_test(test_its_options_reach_the_runs),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_no_such_name),
		cmocka_unit_test(test_many_names),
	};

	return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
