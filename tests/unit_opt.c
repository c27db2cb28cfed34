/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line: what is accepted, what is refused and in which words. Values: unit_cfg.c. */
#include <errno.h>
#include <string.h>

#include "prop.h"
#include "opt.h"
#include "report.h"
#include "rxfer.h"

#define WORDS 12
#define WORD  128
#define LINE  1024

static const struct opt *row(const char *name)
{
	unsigned int i;

	for (i = 0; i < opt_table_count; i++)
		if (!strcmp(opt_table[i].name, name))
			return &opt_table[i];
	fail_msg("no option %s", name);
	return NULL;
}

/* Blanks separate the words; "''" is an empty one. */
static unsigned int split(char *line, char **words)
{
	unsigned int n = 0;
	char *word;

	for (word = strtok(line, " "); word && n < WORDS; word = strtok(NULL, " "))
		words[n++] = strcmp(word, "''") ? word : word + 2;
	return n;
}

static int parse(unsigned int command, const char *text, struct opts *o, char *error)
{
	char line[LINE], *words[WORDS];
	unsigned int n;

	snprintf(line, sizeof(line), "%s", text);
	n = split(line, words);
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

static void assert_refused(unsigned int command, const char *text, const char *expected)
{
	char error[LINE];
	struct opts o;

	if (parse(command, text, &o, error) != -EINVAL)
		fail_msg("'%s' accepted", text);
	assert_string_equal(error, expected);
	assert_null(o.given);
}

static void test_forms(void **state)
{
	(void)state;
	assert_prints(CMD_LOOPBACK, "", "");
	assert_prints(CMD_LOOPBACK, "-s 4k", "--size 4k");
	assert_prints(CMD_LOOPBACK, "-s4k", "--size 4k");
	assert_prints(CMD_LOOPBACK, "--size 4k", "--size 4k");
	assert_prints(CMD_LOOPBACK, "--size=4k", "--size 4k");
	assert_prints(CMD_LOOPBACK, "-s 4k,64k -s 1m", "--size 1m");
	assert_prints(CMD_LOOPBACK, "--verify --verify -s 1 --op send",
		      "--op send --size 1 --verify");
	assert_prints(CMD_CLIENT, "-s 1 node7 -n 5", "--size 1 --iters 5");
	assert_prints(CMD_CLIENT, "-s 1 -- node7", "--size 1");
	assert_prints(CMD_SERVER, "-d mlx5_0 -p 1 --timeout 1",
		      "--device mlx5_0 --port 1 --timeout 1s");
	assert_prints(CMD_DEVICES, "-drxe0", "--device rxe0");
	assert_prints(CMD_DEVICES, "-d-p", "--device=-p");	/* "--device -p" would be refused */
	assert_prints(CMD_LOOPBACK, "-t 1 -q 2 -n 3 -D 4 -d a", /* perftest's letters */
		      "--device a --depth 1 --qps 2 --iters 3 --duration 4s");
}

#define POWERS "2,4,8,16,32,64,128,256,512,1k,2k,4k,8k,16k,32k,64k,128k,256k,512k,1m,2m,4m,8m"

static void test_aliases(void **state)
{
	(void)state;
	assert_prints(CMD_LOOPBACK, "-e", "--poll event");
	assert_prints(CMD_LOOPBACK, "-a", "--size " POWERS);
	assert_prints(CMD_LOOPBACK, "-Q 7", "--signal every:7");
	assert_prints(CMD_CLIENT, "-Q7,1,64 -e node7",
		      "--signal every:7,every:1,every:64 --poll event");
	/* the last holds, by whatever name */
	assert_prints(CMD_LOOPBACK, "-Q 7 --signal half", "--signal half");
	assert_prints(CMD_LOOPBACK, "--signal half,all -Q 7 -Q 8", "--signal every:8");
	assert_prints(CMD_LOOPBACK, "-a -s 4k", "--size 4k");
	assert_prints(CMD_LOOPBACK, "-s 4k,3 -a", "--size " POWERS);
	assert_prints(CMD_LOOPBACK, "-e --poll busy", "--poll busy");
	assert_prints(CMD_LOOPBACK, "--poll busy -e -e", "--poll event");
}

static bool has_letter(char letter)
{
	unsigned int i;

	for (i = 0; i < opt_table_count; i++)
		if (opt_table[i].letter == letter)
			return true;
	return false;
}

/* No letter twice; each alias about an option there is; a mark only where there is a letter. */
static void test_alias_table(void **state)
{
	unsigned int i, k;

	(void)state;
	assert_true(opt_aliases_count >= 3);
	for (i = 0; i < opt_aliases_count; i++) {
		assert_non_null(row(opt_aliases[i].option));
		assert_false(has_letter(opt_aliases[i].letter));
		for (k = 0; k < i; k++)
			assert_int_not_equal(opt_aliases[k].letter, opt_aliases[i].letter);
	}
	for (i = 0; i < opt_table_count; i++)
		if (opt_table[i].flags & OPT_PERFTEST)
			assert_int_not_equal(opt_table[i].letter, 0);
}

static void test_host(void **state)
{
	static const char *const good[] = {"node7", "192.0.2.7", "fe80::1%eth0", "a_b.example.org"};
	char error[LINE];
	struct opts o;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(parse(CMD_CLIENT, good[i], &o, error), 0);
		assert_string_equal(o.host, good[i]);
		opts_free(&o);
	}
}

static void test_all(void **state)
{
	char expected[LINE] = "--strategy ";
	unsigned int i;

	(void)state;
	for (i = 0; rxfer_strategy_name(i); i++)
		text_add(expected, sizeof(expected), "%s%s", i ? "," : "", rxfer_strategy_name(i));
	assert_true(i > 1);
	assert_prints(CMD_LOOPBACK, "--strategy all", expected);
	assert_prints(CMD_LOOPBACK, "--op all", "--op read,write,write-imm,send");
	assert_prints(CMD_LOOPBACK, "--mode all --revoke all --reply all --defer all",
		      "--mode direct,rpc --reply send,imm --defer slot,recv "
		      "--revoke none,sync,async,remote,lazy,auto");
	assert_prints(CMD_LOOPBACK, "--peer-signal all,half,every:7 --peer-strategy global,per-io",
		      "--peer-signal all,half,every:7 --peer-strategy global,per-io");
	assert_prints(CMD_LOOPBACK, "--signal all,every:7", "--signal all,every:7"); /* a policy */
	assert_refused(CMD_LOOPBACK, "--poll all",				     /* not swept */
		       "--poll all: unknown; say one of busy, yield, event");
}

static void test_help_wanted(void **state)
{
	char error[LINE];
	struct opts o;

	(void)state;
	assert_int_equal(parse(CMD_CLIENT, "-s 4k --help --rubbish", &o, error), 0);
	assert_true(o.want_help);
	opts_free(&o);
	assert_int_equal(parse(CMD_DEVICES, "-h", &o, error), 0);
	assert_true(o.want_help);
	opts_free(&o);
	assert_int_equal(parse(CMD_DEVICES, "", &o, error), 0);
	assert_false(o.want_help);
	opts_free(&o);
}

static void test_output(void **state)
{
	char error[LINE];
	struct opts o;

	(void)state;
	assert_int_equal(parse(CMD_LOOPBACK, "-o x/a.csv --output=b.JSON -oc.txt", &o, error), 0);
	assert_string_equal(opts_output(&o, 0), "x/a.csv");
	assert_string_equal(opts_output(&o, 1), "b.JSON");
	assert_string_equal(opts_output(&o, 2), "c.txt");
	assert_null(opts_output(&o, 3));
	assert_string_equal(output_format(opts_output(&o, 0)), "csv");
	assert_string_equal(output_format(opts_output(&o, 1)), "json");
	assert_string_equal(output_format(opts_output(&o, 2)), "table");
	opts_free(&o);
	assert_null(output_format("a.xml"));
	assert_null(output_format("csv"));
	assert_null(output_format("results.csv/a"));
	assert_null(output_format("results/.csv"));
	assert_non_null(report_find("csv"));
	assert_non_null(report_find("json"));
	assert_non_null(report_find("perftest-lat"));
	assert_non_null(report_find("table"));
}

/* A shell must read the printed words back; control and foreign bytes are escaped. */
static void test_quoting(void **state)
{
	static char name[] = "it's gr\xc3\xb6\\\xc3\x9f.csv", o_word[] = "-o";
	char *words[] = {o_word, name};
	char error[LINE], printed[LINE];
	struct opts o;

	(void)state;
	assert_int_equal(opts_parse(CMD_LOOPBACK, 2, words, &o, error, sizeof(error)), 0);
	opts_print(&o, printed, sizeof(printed));
	assert_string_equal(printed, "--output $'it\\x27s gr\\xc3\\xb6\\x5c\\xc3\\x9f.csv'");
	opts_print(&o, printed, 8);
	assert_string_equal(printed, "--outpu");
	opts_free(&o);
}

static const struct {
	unsigned int command;
	const char *text, *error;
} refused[] = {
	/* options */
	{CMD_CLIENT, "h --stratgy x",
	 "unknown option --stratgy; did you mean --strategy? See rxfer-bench client --help"},
	{CMD_CLIENT, "h --strat=x",
	 "unknown option --strat; did you mean --strategy? See rxfer-bench client --help"},
	{CMD_SERVER, "--zzz", "unknown option --zzz; see rxfer-bench server --help"},
	{CMD_SERVER, "--sizes", "unknown option --sizes; see rxfer-bench server --help"},
	{CMD_CLIENT, "h -x", "unknown option -x; see rxfer-bench client --help"},
	{CMD_CLIENT, "h -depth 4",
	 "unknown option -depth; did you mean --depth? See rxfer-bench client --help"},
	{CMD_CLIENT, "h -iters=4",
	 "unknown option -iters=4; did you mean --iters? See rxfer-bench client --help"},
	{CMD_SERVER, "--size 4k",
	 "--size belongs to client and loopback and fence, not to server; see rxfer-bench server --help"},
	{CMD_LOOPBACK, "-p 1",
	 "--port belongs to server and client and probe and fence, not to loopback; see rxfer-bench loopback --help"},
	{CMD_LOOPBACK, "--size", "--size: its value is missing; say --size BYTES"},
	{CMD_LOOPBACK, "--size --verify", "--size: its value is missing; say --size BYTES"},
	{CMD_LOOPBACK, "-s -n", "--size: its value is missing; say --size BYTES"},
	{CMD_LOOPBACK, "--size=", "--size: its value is missing; say --size BYTES"},
	{CMD_LOOPBACK, "-o ''", "--output: its value is missing; say --output FILE"},
	{CMD_LOOPBACK, "--verify=yes", "--verify takes no value; say just --verify"},
	{CMD_LOOPBACK, "-h1", "--help takes no value; say just --help"},
	/* numbers */
	{CMD_LOOPBACK, "--size 4q", "--size 4q: not a size; say bytes like 4096, 4k, 1m"},
	{CMD_LOOPBACK, "-s 4kk", "--size 4kk: not a size; say bytes like 4096, 4k, 1m"},
	{CMD_LOOPBACK, "-s k", "--size k: not a size; say bytes like 4096, 4k, 1m"},
	{CMD_LOOPBACK, "-s 4iB", "--size 4iB: not a size; say bytes like 4096, 4k, 1m"},
	{CMD_LOOPBACK, "-s 1.5k", "--size 1.5k: not a size; say bytes like 4096, 4k, 1m"},
	{CMD_LOOPBACK, "-s 2147483649", "--size 2147483649: above the largest; say 0..2g"},
	{CMD_LOOPBACK, "-s 9223372036854775809",
	 "--size 9223372036854775809: above the largest; say 0..2g"},
	{CMD_LOOPBACK, "-s 18446744073709551617",
	 "--size 18446744073709551617: above the largest; say 0..2g"},
	{CMD_LOOPBACK, "-s 17179869184g", "--size 17179869184g: above the largest; say 0..2g"},
	{CMD_LOOPBACK, "-t -4", "--depth -4: negative; say 1..65536"},
	{CMD_LOOPBACK, "-t 65537", "--depth 65537: above the largest; say 1..65536"},
	{CMD_LOOPBACK, "-q 16385", "--qps 16385: above the largest; say 1..16384"},
	{CMD_LOOPBACK, "--frags 0", "--frags 0: below the smallest; say 1..1024"},
	{CMD_LOOPBACK, "--frags 1025", "--frags 1025: above the largest; say 1..1024"},
	{CMD_LOOPBACK, "--rnr-retry 8", "--rnr-retry 8: above the largest; say 0..7"},
	{CMD_LOOPBACK, "--sq-depth 1048577",
	 "--sq-depth 1048577: above the largest; say 0..1048576"},
	{CMD_SERVER, "-p 0", "--port 0: below the smallest; say 1..65535"},
	{CMD_SERVER, "-p 65536", "--port 65536: above the largest; say 1..65535"},
	{CMD_LOOPBACK, "-n 1k", "--iters 1k: not a number; say digits like 12"},
	{CMD_LOOPBACK, "-n +5", "--iters +5: not a number; say digits like 12"},
	{CMD_LOOPBACK, "-n 0x10", "--iters 0x10: not a number; say digits like 12"},
	{CMD_LOOPBACK, "-D 999us", "--duration 999us: below the smallest; say 1ms..24h"},
	{CMD_LOOPBACK, "-D 25h", "--duration 25h: above the largest; say 1ms..24h"},
	{CMD_LOOPBACK, "-D -5s", "--duration -5s: negative; say 1ms..24h"},
	{CMD_LOOPBACK, "-D 1d",
	 "--duration 1d: not a time; say seconds like 10 or 0.5, or 500ms, 2m, 1h"},
	{CMD_LOOPBACK, "-D 1.",
	 "--duration 1.: not a time; say seconds like 10 or 0.5, or 500ms, 2m, 1h"},
	{CMD_LOOPBACK, "-D 1.2.3",
	 "--duration 1.2.3: not a time; say seconds like 10 or 0.5, or 500ms, 2m, 1h"},
	{CMD_LOOPBACK, "-D 0.1ns",
	 "--duration 0.1ns: finer than a nanosecond; say seconds like 10 or 0.5, or 500ms, 2m, 1h"},
	{CMD_SERVER, "--timeout 0", "--timeout 0: below the smallest; say 100ms..1h"},
	{CMD_LOOPBACK, "-D 99999999999999999999.5s",
	 "--duration 99999999999999999999.5s: above the largest; say 1ms..24h"},
	{CMD_LOOPBACK, "-q 123456789012345678901234567890123456789012345678",
	 "--qps 12345678901234567890123456789012345678901234...: above the largest; say 1..16384"},
	/* lists */
	{CMD_LOOPBACK, "-s 4k,,8k", "--size 4k,,8k: an empty element; leave out the extra comma"},
	{CMD_LOOPBACK, "-s ,4k", "--size ,4k: an empty element; leave out the extra comma"},
	{CMD_LOOPBACK, "-s 4k,", "--size 4k,: an empty element; leave out the extra comma"},
	{CMD_LOOPBACK, "-s 4k,4096", "--size: 4k is given twice; once is enough"},
	{CMD_LOOPBACK, "-s 4k,5q", "--size 5q: not a size; say bytes like 4096, 4k, 1m"},
	{CMD_LOOPBACK, "--warmup 1,2", "--warmup 1,2: not a number; say digits like 12"},
	/* names */
	{CMD_LOOPBACK, "--op raed",
	 "--op raed: unknown; did you mean read? Say one of read, write, write-imm, send, all"},
	{CMD_LOOPBACK, "--op WRITE",
	 "--op WRITE: unknown; did you mean write? Say one of read, write, write-imm, send, all"},
	{CMD_LOOPBACK, "--op rea",
	 "--op rea: unknown; did you mean read? Say one of read, write, write-imm, send, all"},
	{CMD_LOOPBACK, "--op x", "--op x: unknown; say one of read, write, write-imm, send, all"},
	{CMD_LOOPBACK, "--poll yeld",
	 "--poll yeld: unknown; did you mean yield? Say one of busy, yield, event"},
	{CMD_LOOPBACK, "--signal every", "--signal every: K is missing; say it like every:64"},
	{CMD_LOOPBACK, "--signal every:0",
	 "--signal every:0: K is 0, so no work request would ask for a completion; take 1 (each of them) or more"},
	{CMD_LOOPBACK, "--signal every:000",
	 "--signal every:000: K is 0, so no work request would ask for a completion; take 1 (each of them) or more"},
	{CMD_LOOPBACK, "--signal every:", "--signal every:: K is missing; say it like every:64"},
	{CMD_LOOPBACK, "--signal every:x",
	 "--signal every:x: K is no number of 1..1073741824; say it like every:64"},
	{CMD_LOOPBACK, "--signal every:1073741825",
	 "--signal every:1073741825: K is no number of 1..1073741824; say it like every:64"},
	{CMD_LOOPBACK, "--signal half:2",
	 "--signal half:2: only \"every\" takes a K, like every:64; say just half"},
	{CMD_LOOPBACK, "--signal inferred:2",
	 "--signal inferred:2: only \"every\" takes a K, like every:64; say just inferred"},
	{CMD_LOOPBACK, "--peer-signal every:0",
	 "--peer-signal every:0: K is 0, so no work request would ask for a completion; take 1 (each of them) or more"},
	{CMD_LOOPBACK, "--revoke asink",
	 "--revoke asink: unknown; did you mean async? Say one of none, sync, async, remote, lazy, auto, all"},
	{CMD_LOOPBACK, "--mode rcp",
	 "--mode rcp: unknown; did you mean rpc? Say one of direct, rpc, all"},
	{CMD_LOOPBACK, "--inline-threshold 65537",
	 "--inline-threshold 65537: above the largest; say 0..64k"},
	{CMD_SERVER, "--peer-sq-depth 9",
	 "--peer-sq-depth belongs to client and loopback, not to server; see rxfer-bench server --help"},
	{CMD_LOOPBACK, "--signal infer",
	 "--signal infer: unknown; did you mean inferred? Say one of all, io, every:K, half, inferred"},
	/* aliases */
	{CMD_LOOPBACK, "-Q 0",
	 "-Q 0: --signal every:0: K is 0, so no work request would ask for a completion; take 1 (each of them) or more"},
	{CMD_LOOPBACK, "-Q", "-Q: its value is missing; say -Q K for --signal every:K"},
	{CMD_LOOPBACK, "-Q -e", "-Q: its value is missing; say -Q K for --signal every:K"},
	{CMD_LOOPBACK, "-Q ''", "-Q: its value is missing; say -Q K for --signal every:K"},
	{CMD_LOOPBACK, "-Q 4,x\n",
	 "-Q 4,x?: --signal every:x?: K is no number of 1..1073741824; say it like every:64"},
	{CMD_LOOPBACK, "-Q half",
	 "-Q half: --signal every:half: K is no number of 1..1073741824; say it like every:64"},
	{CMD_LOOPBACK, "-Q7,,8",
	 "-Q 7,,8: --signal every:7,,every:8: an empty element; leave out the extra comma"},
	{CMD_LOOPBACK, "-Q 7,",
	 "-Q 7,: --signal every:7,: an empty element; leave out the extra comma"},
	{CMD_LOOPBACK, "-Q 7,7", "-Q 7,7: --signal: every:7 is given twice; once is enough"},
	{CMD_LOOPBACK, "-e1", "-e takes no value; it is --poll event"},
	{CMD_LOOPBACK, "-a4k",
	 "-a takes no value; it is --size with every power of two from 2 to 8m"},
	{CMD_SERVER, "-Q 4",
	 "-Q: --signal belongs to client and loopback, not to server; see rxfer-bench server --help"},
	{CMD_LOOPBACK, "--signal every:07", "--signal every:07: K begins with a 0; leave it out"},
	/* texts and operands */
	{CMD_LOOPBACK, "-o a.xml",
	 "--output a.xml: the ending tells the format; say FILE.csv or FILE.json or FILE.txt"},
	{CMD_LOOPBACK, "-o a.csv -o a.csv", "--output: a.csv is given twice; once is enough"},
	{CMD_LOOPBACK, "-o a\nb.csv",
	 "--output a?b.csv: a control character in a file's name; rename it"},
	{CMD_LOOPBACK, "-d a,b", "--device a,b: not a device's name; see rxfer-bench devices"},
	{CMD_SERVER, "x",
	 "server takes no operand, but 'x' was given; see rxfer-bench server --help"},
	{CMD_SERVER, "-- -p",
	 "server takes no operand, but '-p' was given; see rxfer-bench server --help"},
	{CMD_CLIENT, "-s 4k",
	 "HOST is missing; say where the server runs: rxfer-bench client HOST"},
	{CMD_CLIENT, "''", "HOST is empty; say where the server runs: rxfer-bench client HOST"},
	{CMD_CLIENT, "a b",
	 "one HOST too many: 'b'; an option begins with a dash, a list has no blanks"},
	{CMD_CLIENT, "a\x1b[31m",
	 "HOST 'a?[31m' is not a host's name or address; say one like node7 or 192.0.2.7"},
	{CMD_CLIENT, "-",
	 "HOST '-' is not a host's name or address; say one like node7 or 192.0.2.7"},
};

static void test_refused(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_refused(refused[i].command, refused[i].text, refused[i].error);
}

static void test_unknown_names_from_lists(void **state)
{
	char error[LINE], names[LINE], text[LINE], expected[LINE];
	struct opts o;

	(void)state;
	snprintf(text, sizeof(text), "--strategy x%s", rxfer_strategy_name(0));
	assert_int_equal(parse(CMD_LOOPBACK, text, &o, error), -EINVAL);
	snprintf(expected, sizeof(expected),
		 "--strategy x%s: unknown; did you mean %s? Say one of %s", rxfer_strategy_name(0),
		 rxfer_strategy_name(0), opt_names(row("strategy"), names, sizeof(names)));
	assert_string_equal(error, expected);
	assert_int_equal(parse(CMD_LOOPBACK, "--signal evry:7", &o, error), -EINVAL);
	assert_non_null(strstr(error, "--signal evry:7: unknown; did you mean every? Say one of "));
	assert_non_null(strstr(error, "every:K"));
	assert_null(strstr(error, "all, all"));
	assert_int_equal(parse(CMD_LOOPBACK, "--format cvs", &o, error), -EINVAL);
	assert_non_null(strstr(error, "did you mean csv?"));
}

static void test_long_values_are_cut(void **state)
{
	static const char *const start[] = {"--size=", "--op=", "--output=", "--", "", "-d"};
	char text[900], error[LINE];
	struct opts o;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(start) / sizeof(start[0]); i++) {
		memset(text, 'x', sizeof(text));
		memcpy(text, start[i], strlen(start[i]));
		text[sizeof(text) - 1] = '\0';
		assert_int_equal(parse(CMD_CLIENT, text, &o, error), -EINVAL);
		assert_true(strlen(error) < 200);
	}
	assert_int_equal(opts_parse(CMD_CLIENT, 0, NULL, &o, error, 10), -EINVAL);
	assert_string_equal(error, "HOST is m");
}

static void test_too_many_values(void **state)
{
	char list[8 * 1001] = "1", size[] = "-s", *words[] = {size, list}, error[LINE];
	struct opts o;
	unsigned int i;

	(void)state;
	for (i = 2; i <= 1000; i++)
		text_add(list, sizeof(list), ",%u", i);
	assert_int_equal(opts_parse(CMD_LOOPBACK, 2, words, &o, error, sizeof(error)), 0);
	assert_int_equal(o.given[row("size") - opt_table].n, 1000);
	opts_free(&o);
	text_add(list, sizeof(list), ",1001");
	assert_int_equal(opts_parse(CMD_LOOPBACK, 2, words, &o, error, sizeof(error)), -EINVAL);
	assert_string_equal(error, "--size: more than 1000 values; shorten the list");
}

/* "      --inline-threshold BYTES,...": too long for its column, what it is stands below. */
static bool names_alone(const char *line)
{
	const char *arg = strchr(line + 6, ' ');

	return strlen(line) > 26 && line[6] == '-' && arg && !strchr(arg + 1, ' ');
}

/* Every option of the command has its line, in one column, and no other option has. */
static void check_help(unsigned int command)
{
	char *text, *line, wanted[64];
	bool there;
	size_t size;
	unsigned int i;
	FILE *out = open_memstream(&text, &size);

	opts_help(command, out);
	fclose(out);
	for (i = 0; i < opt_table_count; i++) {
		snprintf(wanted, sizeof(wanted), "--%s%s", opt_table[i].name,
			 opt_table[i].arg ? " " : "");
		assert_int_equal(!!strstr(text, wanted), !!(opt_table[i].commands & command));
		if (!opt_table[i].letter)
			continue;
		snprintf(wanted, sizeof(wanted), " -%c", opt_table[i].letter);
		there = strstr(strstr(text, "\nThese letters mean the same in perftest:"), wanted);
		assert_int_equal(there, (opt_table[i].commands & command) &&
						(opt_table[i].flags & OPT_PERFTEST));
	}
	for (i = 0; i < opt_aliases_count; i++) {
		snprintf(wanted, sizeof(wanted), "\n  -%c ", opt_aliases[i].letter);
		there = strstr(text, wanted);
		assert_int_equal(there, !!(row(opt_aliases[i].option)->commands & command));
	}
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		assert_true(strlen(line) <= 96);
		assert_int_not_equal(line[strlen(line) - 1], ' ');
		if (line[0] == ' ' && !names_alone(line))
			assert_true(line[26] == ' ' && line[27] != ' ');
	}
	free(text);
}

static void test_help(void **state)
{
	(void)state;
	check_help(CMD_SERVER);
	check_help(CMD_CLIENT);
	check_help(CMD_LOOPBACK);
	check_help(CMD_DEVICES);
}

/* A word: bytes of any kind, or pieces of what means something. */
static void random_word(char *word, struct prop *p)
{
	static const char *const pieces[] = {
		"--",	      "-s",    "--size",
		"=",	      "4k",    ",",
		"--op",	      "read",  "-n",
		"7",	      "0.5",   "ms",
		"-D",	      "all",   "g",
		"--signal",   "-o",    "every:",
		":",	      "host",  "--",
		"-h",	      "a.csv", "-",
		"--strategy", "--s",   "99999999999999999999",
		"-Q",	      "-e",    "-a",
	};
	const unsigned int last = sizeof(pieces) / sizeof(pieces[0]) - 1;
	unsigned int n = prop_range(p, 0, 4);

	word[0] = '\0';
	while (n--) {
		if (prop_chance(p, 70))
			text_add(word, WORD, "%s", pieces[prop_range(p, 0, last)]);
		else
			text_add(word, WORD, "%c", (char)prop_range(p, 1, 255));
	}
}

static bool is_clean_line(const char *text)
{
	const char *s = text;

	while (*s >= ' ' && *s <= '~')
		s++;
	return !*s && s != text && s - text < 400;
}

/* Whatever the words: success, or one clean line. */
static bool survives(struct prop *p, bool *accepted)
{
	char store[WORDS][WORD], *words[WORDS], text[LINE] = "";
	unsigned int i, n = prop_range(p, 0, WORDS), command = 1U << prop_range(p, 0, 3);
	struct opts o;
	int err;

	for (i = 0; i < n; i++) {
		random_word(store[i], p);
		words[i] = store[i];
	}
	err = opts_parse(command, n, words, &o, text, sizeof(text));
	*accepted = !err;
	if (err)
		return err == -EINVAL && is_clean_line(text) && !o.given;
	opts_print(&o, text, sizeof(text));
	opts_free(&o);
	return !*text || is_clean_line(text);
}

static void test_fuzz(void **state)
{
	uint64_t seed = prop_first_seed(), n = prop_count(50000, 1000), i, accepted = 0;
	struct prop p;
	bool yes;

	(void)state;
	for (i = 0; i < n; i++) {
		prop_start(&p, seed + i);
		PROP_CHECK(&p, survives(&p, &yes));
		accepted += yes;
	}
	assert_in_range(accepted, 1, n - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_alias_table),
		cmocka_unit_test(test_host),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_help_wanted),
		cmocka_unit_test(test_output),
		cmocka_unit_test(test_quoting),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_unknown_names_from_lists),
		cmocka_unit_test(test_long_values_are_cut),
		cmocka_unit_test(test_too_many_values),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_fuzz),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
