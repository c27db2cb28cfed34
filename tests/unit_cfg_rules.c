/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options that contradict each other, and what is said of it. */
#include <errno.h>
#include <string.h>

#include "prop.h"
#include "opt.h"

#define LINE 1280

static const struct opt *row(const char *name)
{
	unsigned int i;

	for (i = 0; i < opt_table_count; i++)
		if (!strcmp(opt_table[i].name, name))
			return &opt_table[i];
	fail_msg("no option %s", name);
	return NULL;
}

static const struct {
	const char *set[2 * 5];
	const char *error; /* NULL: no contradiction */
} rules[] = {
	{{"frags", "9", "size", "8"},
	 "contradiction: --frags 9, --size 8: each fragment needs a byte; take fewer fragments or "
	 "a "
	 "larger size"},
	{{"frags", "8", "size", "8"}, NULL},
	{{"iters", "0"},
	 "contradiction: --iters 0, --duration 0: nothing would end the run; give one of them"},
	{{"iters", "0", "duration", "1"}, NULL},
	{{"size", "2g", "depth", "65536", "qps", "16384"},
	 "contradiction: --size 2g, --frags 1, --frag-gap 4k, --depth 65536, --qps 16384: together "
	 "above "
	 "64 TiB of memory; make one smaller"},
	{{"size", "2g", "depth", "32768", "frag-gap", "0"}, NULL}, /* exactly 64 TiB */
	{{"size", "2147479553", "depth", "32768", "frags", "2"},
	 "contradiction: --size 2147479553, --frags 2, --frag-gap 4k, --depth 32768, --qps 1: "
	 "together "
	 "above 64 TiB of memory; make one smaller"},
	{{"frags", "1024", "frag-gap", "1g", "depth", "65536", "qps", "16384"},
	 "contradiction: --size 64k, --frags 1024, --frag-gap 1g, --depth 65536, --qps 16384: "
	 "together "
	 "above 64 TiB of memory; make one smaller"},
	{{"mode", "direct", "size", "1g", "frags", "1024", "frag-gap", "1g", "depth", "64"},
	 NULL}, /* exactly, too */
	{{"size", "1g", "frags", "1024", "frag-gap", "1g", "depth", "65536", "qps",
	  "16384"}, /* 2^70 */
	 "contradiction: --size 1g, --frags 1024, --frag-gap 1g, --depth 65536, --qps 16384: "
	 "together "
	 "above 64 TiB of memory; make one smaller"},
	{{"signal", "every:17", "sq-depth", "16"},
	 "contradiction: --signal every:17, --sq-depth 16: K is larger than the send queue; take a "
	 "smaller "
	 "K or a deeper queue"},
	{{"signal", "every:16", "sq-depth", "16"}, NULL},
	{{"signal", "every:17"}, NULL},
	{{"mode", "direct", "op", "read", "inline", "64"},
	 "contradiction: --inline 64, --op read: a READ fetches bytes, it carries none; leave out "
	 "one of them"},
	{{"mode", "rpc", "op", "read", "inline", "64"}, NULL}, /* for the messages */
	/* rpc mode and what it does not have */
	{{"mode", "rpc"}, NULL},
	{{"mode", "rpc", "bidir", "yes"},
	 "contradiction: --mode rpc, --bidir yes: in rpc mode the client asks and the server "
	 "answers; leave out one of them"},
	{{"mode", "direct", "bidir", "yes"}, NULL},
	{{"mode", "rpc", "op", "write-imm"},
	 "contradiction: --mode rpc, --op write-imm: in rpc mode immediate data is a way to reply; "
	 "take --op read,write,send, --op write --reply imm, or --mode direct"},
	{{"mode", "rpc", "op", "send", "inline-threshold", "4k"},
	 "contradiction: --inline-threshold 4k, --op send: the data of a send are in its request, "
	 "whatever their size; leave out one of them"},
	{{"mode", "direct", "op", "write-imm"}, NULL},
	{{"mode", "rpc", "op", "read", "frags", "257"},
	 "contradiction: --mode rpc, --op read, --frags 257: a request names at most 256 segments; "
	 "take fewer fragments or --op send"},
	{{"mode", "rpc", "op", "write", "frags", "257"},
	 "contradiction: --mode rpc, --op write, --frags 257: a request names at most 256 segments; "
	 "take fewer fragments or --op send"},
	{{"mode", "rpc", "op", "write", "frags", "256"}, NULL},
	{{"mode", "rpc", "op", "send", "frags", "257"}, NULL},
	{{"mode", "direct", "op", "read", "frags", "257"}, NULL},
	/* no bytes */
	{{"mode", "direct", "size", "0"},
	 "contradiction: --size 0, --mode direct: there is no I/O without bytes in direct mode; "
	 "take a larger size or --mode rpc"},
	{{"mode", "rpc", "size", "0"}, NULL},
	{{"mode", "rpc", "size", "0", "frags", "2"},
	 "contradiction: --frags 2, --size 0: each fragment needs a byte; take fewer fragments or "
	 "a larger size"},
	/* how to reply */
	{{"mode", "rpc", "op", "write", "reply", "imm"}, NULL},
	{{"mode", "rpc", "op", "read", "reply", "imm"},
	 "contradiction: --reply imm, --op read: it is the last WRITE that carries the reply; take "
	 "--op write or leave out --reply"},
	{{"mode", "rpc", "op", "send", "reply", "imm"},
	 "contradiction: --reply imm, --op send: it is the last WRITE that carries the reply; take "
	 "--op write or leave out --reply"},
	{{"mode", "rpc", "op", "write", "reply", "imm", "size", "0"},
	 "contradiction: --reply imm, --size 0: without bytes there is no WRITE to carry the reply; "
	 "take a larger size or leave out --reply"},
	{{"mode", "rpc", "op", "write", "reply", "imm", "size", "4k", "inline-threshold", "4k"},
	 "contradiction: --reply imm, --size 4k, --inline-threshold 4k: such an I/O has no WRITE to "
	 "carry the reply; take a larger size or a lower threshold"},
	{{"mode", "rpc", "op", "write", "reply", "imm", "size", "4097", "inline-threshold", "4k"},
	 NULL},
	{{"mode", "rpc", "op", "write", "reply", "imm", "revoke", "remote"},
	 "contradiction: --reply imm, --revoke remote: it is a SEND that revokes a key of the "
	 "peer's, and with --reply imm there is none; leave out --reply or take another --revoke"},
	{{"mode", "rpc", "op", "write", "reply", "imm", "revoke", "lazy"}, NULL},
	{{"mode", "rpc", "op", "write", "revoke", "remote"}, NULL},
	/* the peer's queue */
	{{"mode", "rpc", "peer-signal", "every:17", "peer-sq-depth", "16"},
	 "contradiction: --peer-signal every:17, --peer-sq-depth 16: K is larger than the send "
	 "queue; take a smaller K or a deeper queue"},
	{{"mode", "rpc", "peer-signal", "every:16", "peer-sq-depth", "16"}, NULL},
	{{"mode", "rpc", "peer-signal", "every:17", "sq-depth", "16"}, NULL},
	/* one file */
	{{"mem-file", "f"},
	 "contradiction: --mem-file f, --mem anon: only --mem file is made of a file; take that, or "
	 "leave out --mem-file"},
	{{"mem-file", "f", "mem", "file"}, NULL},
	{{"mem", "file"}, NULL},
	{{"mem-file", "f", "mem", "file", "mode", "direct", "bidir", "yes"},
	 "contradiction: --mem-file f, --bidir yes: both directions have memory of their own, and "
	 "the file is one; leave out one of them"},
	/* the working set */
	{{"access", "zipf"},
	 "contradiction: --access zipf, --working-set 0: each slot has one place for its I/Os; give "
	 "a working set, or leave out --access"},
	{{"access", "zipf", "working-set", "1m"}, NULL},
	{{"working-set", "1m", "size", "0", "mode", "rpc"},
	 "contradiction: --working-set 1m, --size 0: an I/O without bytes has no place in it; take a "
	 "larger size or leave out --working-set"},
	{{"working-set", "1m", "size", "64k", "depth", "4", "qps", "4"}, NULL},
	{{"working-set", "1m", "size", "65535", "depth", "17"},
	 "--working-set of 1048576 bytes has 16 pieces of 65536 bytes, one for an I/O, and 17 I/Os "
	 "are in flight (qps x depth); take 1114112 or more, or a smaller --depth"},
	{{"working-set", "1m", "size", "64k", "misalign", "1"},
	 "--working-set of 1048576 bytes has 15 pieces of 69632 bytes, one for an I/O, and 16 I/Os "
	 "are in flight (qps x depth); take 1114112 or more, or a smaller --depth"},
};

static const struct {
	const char *name, *value, *def;
} rpc_only[] = {
	{"revoke", "sync", "auto"},	 {"peer-strategy", "per-io", NULL},
	{"peer-signal", "io", "half"},	 {"peer-sq-depth", "64", "0"},
	{"reply", "imm", "send"},	 {"defer", "recv", "slot"},
	{"inline-threshold", "4k", "0"}, {"mw-renew", "yes", "no"},
};

static void set_all(struct cfg *c, const char *mode, const char *name, const char *value)
{
	char why[LINE];

	cfg_init(c);
	assert_int_equal(cfg_set(c, "mode", mode, why, sizeof(why)), 0);
	assert_int_equal(cfg_set(c, "op", "write", why, sizeof(why)), 0);
	if (value) /* else it is unset */
		assert_int_equal(cfg_set(c, name, value, why, sizeof(why)), 0);
}

/* What only rpc mode has is taken there, and outside it where it is the default. */
static void test_rpc_only(void **state)
{
	char why[LINE], expected[LINE];
	unsigned int i, marked = 0;
	struct cfg c;

	(void)state;
	for (i = 0; i < opt_table_count; i++)
		marked += !!(opt_table[i].flags & OPT_RPC);
	assert_int_equal(marked, sizeof(rpc_only) / sizeof(rpc_only[0]));
	for (i = 0; i < marked; i++) {
		assert_true(row(rpc_only[i].name)->flags & OPT_RPC);
		set_all(&c, "rpc", rpc_only[i].name, rpc_only[i].value);
		assert_int_equal(cfg_check(&c, why, sizeof(why)), 0);
		set_all(&c, "direct", rpc_only[i].name, rpc_only[i].def);
		assert_int_equal(cfg_check(&c, why, sizeof(why)), 0);
		set_all(&c, "direct", rpc_only[i].name, rpc_only[i].value);
		assert_int_equal(cfg_check(&c, why, sizeof(why)), -EINVAL);
		snprintf(expected, sizeof(expected),
			 "contradiction: --%s %s, --mode direct: only rpc mode has it; take "
			 "--mode rpc or leave it out",
			 rpc_only[i].name, rpc_only[i].value);
		assert_string_equal(why, expected);
	}
}

static void test_rules(void **state)
{
	char why[LINE];
	unsigned int i, j;
	struct cfg c;

	(void)state;
	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		cfg_init(&c);
		for (j = 0; j < 10 && rules[i].set[j]; j += 2)
			assert_int_equal(
				cfg_set(&c, rules[i].set[j], rules[i].set[j + 1], why, LINE), 0);
		strcpy(why, "");
		assert_int_equal(cfg_check(&c, why, sizeof(why)), rules[i].error ? -EINVAL : 0);
		assert_string_equal(why, rules[i].error ? rules[i].error : "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_rpc_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
