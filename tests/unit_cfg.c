/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Values of options: read, printed, told apart, checked against each other. And what a row must
 * keep to. */
#include <errno.h>
#include <string.h>

#include "prop.h"
#include "opt.h"
#include "rxfer.h"

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
	const char *name, *text, *canonical;
	uint64_t value;
} values[] = {
	{"size", "65536", "64k", 65536},
	{"size", "4097", "4097", 4097},
	{"size", "1024k", "1m", 1 << 20},
	{"size", "1KiB", "1k", 1024},
	{"size", "2kb", "2k", 2048},
	{"size", "3MIB", "3m", 3 << 20},
	{"size", "2G", "2g", 1ULL << 31},
	{"size", "007", "7", 7},
	{"frag-gap", "0", "0", 0},
	{"duration", "10", "10s", 10000000000ULL},
	{"duration", "0.5", "500ms", 500000000},
	{"duration", "1.000000001", "1000000001ns", 1000000001},
	{"duration", "1.50m", "90s", 90000000000ULL},
	{"duration", "60s", "1m", 60000000000ULL},
	{"duration", "24h", "24h", 86400000000000ULL},
	{"duration", "1ms", "1ms", 1000000},
	{"duration", "1500us", "1500us", 1500000},
	{"duration", "0.0000005h", "1800us", 1800000},
	{"duration", "0", "0", 0},
	{"iters", "1000000000000", "1000000000000", 1000000000000ULL},
	{"sq-depth", "0", "0", 0},
	{"op", "send", "send", OP_SEND},
	{"poll", "event", "event", POLL_EVENT},
	{"size", "0", "0", 0},
	{"mode", "direct", "direct", MODE_DIRECT},
	{"mode", "rpc", "rpc", MODE_RPC},
	{"revoke", "none", "none", RXFER_REVOKE_NONE},
	{"revoke", "sync", "sync", RXFER_REVOKE_SYNC},
	{"revoke", "async", "async", RXFER_REVOKE_ASYNC},
	{"revoke", "remote", "remote", RXFER_REVOKE_REMOTE},
	{"revoke", "lazy", "lazy", RXFER_REVOKE_LAZY},
	{"revoke", "auto", "auto", RXFER_REVOKE_AUTO},
	{"reply", "imm", "imm", REPLY_IMM},
	{"defer", "recv", "recv", DEFER_RECV},
	{"inline-threshold", "65536", "64k", 65536},
	{"peer-sq-depth", "0", "0", 0},
	{"mem", "memfd", "memfd", MEM_MEMFD},
	{"mem", "file", "file", MEM_FILE},
	{"prefault", "no", "no", PREFAULT_NO},
};

static void *member(struct cfg *c, const struct opt *o)
{
	return (char *)c + o->offset;
}

static void test_values(void **state)
{
	char why[LINE], text[CFG_TEXT];
	struct cfg c;
	unsigned int i;

	(void)state;
	cfg_init(&c);
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		const struct opt *o = row(values[i].name);

		if (cfg_set(&c, o->name, values[i].text, why, sizeof(why)))
			fail_msg("%s", why);
		assert_true(*(uint64_t *)member(&c, o) == values[i].value);
		assert_string_equal(cfg_text(&c, o, text, sizeof(text)), values[i].canonical);
	}
}

static void test_cfg_set_refuses(void **state)
{
	char why[LINE];
	struct cfg c, before;

	(void)state;
	cfg_init(&c);
	before = c;
	assert_int_equal(cfg_set(&c, "output", "a.csv", why, sizeof(why)), -ENOENT);
	assert_int_equal(cfg_set(&c, "help", "yes", why, sizeof(why)), -ENOENT);
	assert_int_equal(cfg_set(&c, "s\nze", "1", why, sizeof(why)), -ENOENT);
	assert_string_equal(
		why, "unknown setting s?ze; both sides need the same version of rxfer-bench");
	assert_int_equal(cfg_set(&c, "size", "4k,8k", why, sizeof(why)), -EINVAL);
	assert_int_equal(cfg_set(&c, "size", "", why, sizeof(why)), -EINVAL);
	assert_int_equal(cfg_set(&c, "strategy", "all", why, sizeof(why)), -EINVAL);
	assert_int_equal(cfg_set(&c, "verify", "maybe", why, sizeof(why)), -EINVAL);
	assert_int_equal(cfg_set(&c, "device", "", why, sizeof(why)), -EINVAL);
	assert_memory_equal(&c, &before, sizeof(c));
}

static void test_defaults(void **state)
{
	char text[LINE];
	struct cfg c;

	(void)state;
	cfg_init(&c);
	assert_int_equal(c.port, 18515);
	assert_int_equal(c.size, 65536);
	assert_int_equal(c.frags, 1);
	assert_int_equal(c.frag_gap, 4096);
	assert_int_equal(c.depth, 16);
	assert_int_equal(c.sq_depth, 0);
	assert_int_equal(c.qps, 1);
	assert_int_equal(c.iters, 1000);
	assert_int_equal(c.duration_ns, 0);
	assert_int_equal(c.warmup, 16);
	assert_true(c.timeout_ns == 10000000000ULL);
	assert_int_equal(c.rnr_retry, 7);
	assert_int_equal(c.rd_atomic, 0);
	assert_int_equal(c.sl, 0);
	assert_int_equal(c.poll, POLL_BUSY);
	assert_string_equal(c.format, "table");
	assert_string_equal(c.signal, "half");
	assert_string_equal(c.device, "");
	assert_int_equal(c.revoke, RXFER_REVOKE_AUTO);
	assert_string_equal(c.peer_strategy, "");
	assert_string_equal(c.peer_signal, "half");
	assert_int_equal(c.peer_sq_depth, 0);
	assert_int_equal(c.reply, REPLY_SEND);
	assert_int_equal(c.defer, DEFER_SLOT);
	assert_int_equal(c.touch, TOUCH_OFF);
	assert_int_equal(c.inline_threshold, 0);
	assert_int_equal(c.mem, MEM_ANON);
	assert_int_equal(c.prefault, PREFAULT_YES);
	assert_false(c.verify || c.mw_renew);
	cfg_print(&c, 0, text, sizeof(text));
	assert_string_equal(text, "");
	assert_int_equal(cfg_check(&c, text, sizeof(text)), 0);
}

/* clang-format off */
static const char *const wire[] = {
	"duration", "frag-gap", "mode", "op", "size", "frags", "depth", "qps", "verify", "poll",
	"timeout", "rnr-retry", "strategy", "signal", "sq-depth", "iters", "warmup", "misalign",
	"inline", "max-sge", "post", "rate", "bidir", "timing", "rd-atomic", "sl", "mem", "prefault",
	"revoke", "peer-strategy", "peer-signal", "peer-sq-depth", "reply", "defer",
	"inline-threshold", "mw-renew", "odp-prefetch", "rcache-max", "rcache-merge",
	"rcache-max-bytes", "unsafe-global-sink"};
/* clang-format on */

static bool is_wire(const char *name)
{
	unsigned int i;

	for (i = 0; i < sizeof(wire) / sizeof(wire[0]); i++)
		if (!strcmp(wire[i], name))
			return true;
	return false;
}

/* What a new row must keep to. */
static void test_table(void **state)
{
	unsigned int i, j;
	char why[LINE];
	struct cfg c;

	(void)state;
	for (i = 0; i < opt_table_count; i++) {
		const struct opt *o = &opt_table[i];

		assert_non_null(o->help);
		assert_true(o->commands);
		assert_int_equal(!!(o->flags & OPT_WIRE), is_wire(o->name));
		assert_int_equal(!o->arg, o->kind == OPT_FLAG || o->kind == OPT_HELP);
		assert_true(o->min <= o->max);
		if (o->offset != OPT_NO_MEMBER)
			assert_true(o->offset < sizeof(c));
		if (o->def && cfg_set(&c, o->name, o->def, why, sizeof(why)))
			fail_msg("bad default: %s", why);
		for (j = 0; j < i; j++) {
			assert_string_not_equal(o->name, opt_table[j].name);
			if (o->letter)
				assert_int_not_equal(o->letter, opt_table[j].letter);
			if (o->offset != OPT_NO_MEMBER)
				assert_int_not_equal(o->offset, opt_table[j].offset);
		}
	}
}

/* A random value that the option may have, of any magnitude. */
static void random_value(const struct opt *o, struct cfg *c, struct prop *p)
{
	char *text = member(c, o);
	uint64_t *number = member(c, o);
	unsigned int n = 0, which;

	while (opt_name(o, n))
		n++;
	which = n ? prop_range(p, 0, n - 1) : 0;
	switch (o->kind) {
	case OPT_FLAG:
		*(bool *)member(c, o) = prop_chance(p, 50);
		break;
	case OPT_ENUM:
		*number = which;
		break;
	case OPT_NAME:
		snprintf(text, CFG_TEXT, "%s", opt_name(o, which));
		if (o->suffix && *o->suffix(which))
			text_add(text, CFG_TEXT, ":%u", prop_range(p, 1, 1 << 30));
		break;
	case OPT_TEXT:
		if (!strcmp(o->name, "device"))
			snprintf(text, CFG_TEXT, "dev%u", prop_range(p, 0, UINT32_MAX));
		else
			snprintf(text, CFG_TEXT, "%u", prop_range(p, 0, 1023));
		break;
	default:
		*number = prop_next(p) >> prop_range(p, 0, 63);
		*number = o->min + *number % (o->max - o->min + 1);
	}
}

static bool equal(const struct opt *o, struct cfg *a, struct cfg *b)
{
	switch (o->kind) {
	case OPT_FLAG:
		return *(bool *)member(a, o) == *(bool *)member(b, o);
	case OPT_NAME:
	case OPT_TEXT:
		return !strcmp(member(a, o), member(b, o));
	default:
		return *(uint64_t *)member(a, o) == *(uint64_t *)member(b, o);
	}
}

static bool comes_back(struct prop *p)
{
	char text[CFG_TEXT], why[LINE];
	struct cfg a, b;
	unsigned int i;

	cfg_init(&a);
	cfg_init(&b);
	for (i = 0; i < opt_table_count; i++) {
		const struct opt *o = &opt_table[i];

		if (o->offset == OPT_NO_MEMBER)
			continue;
		random_value(o, &a, p);
		cfg_text(&a, o, text, sizeof(text));
		if (cfg_set(&b, o->name, text, why, sizeof(why)) || !equal(o, &a, &b))
			return false;
	}
	return true;
}

static void test_round_trip(void **state)
{
	uint64_t seed = prop_first_seed(), n = prop_count(20000, 500);
	struct prop p;

	(void)state;
	for (; n; n--, seed++) {
		prop_start(&p, seed);
		PROP_CHECK(&p, comes_back(&p));
	}
}

/* Two settings print alike if and only if they are alike; they differ in one option at most. */
static bool told_apart(struct prop *p, bool *same)
{
	char one[LINE], other[LINE];
	struct cfg a, b;
	unsigned int i, changed = prop_range(p, 0, opt_table_count - 1);

	cfg_init(&a);
	for (i = 0; i < opt_table_count; i++)
		if (opt_table[i].offset != OPT_NO_MEMBER && prop_chance(p, 50))
			random_value(&opt_table[i], &a, p);
	b = a;
	*same = true;
	if (opt_table[changed].offset != OPT_NO_MEMBER) {
		random_value(&opt_table[changed], &b, p);
		*same = equal(&opt_table[changed], &a, &b);
	}
	cfg_print(&a, 0, one, sizeof(one));
	cfg_print(&b, 0, other, sizeof(other));
	return !strcmp(one, other) == *same;
}

static void test_print_tells_apart(void **state)
{
	uint64_t seed = prop_first_seed(), n = prop_count(20000, 500), i, alike = 0;
	struct prop p;
	bool same;

	(void)state;
	for (i = 0; i < n; i++) {
		prop_start(&p, seed + i);
		PROP_CHECK(&p, told_apart(&p, &same));
		alike += same;
	}
	assert_in_range(alike, 1, n - 1);
}

static void test_print(void **state)
{
	char text[LINE], why[LINE];
	unsigned int i;
	struct cfg c;

	(void)state;
	cfg_init(&c);
	assert_int_equal(cfg_set(&c, "signal", "every:7", why, sizeof(why)), 0);
	assert_int_equal(cfg_set(&c, "size", "4096", why, sizeof(why)), 0);
	assert_int_equal(cfg_set(&c, "op", "write", why, sizeof(why)), 0);
	assert_int_equal(cfg_set(&c, "warmup", "0", why, sizeof(why)), 0);
	assert_int_equal(cfg_set(&c, "verify", "yes", why, sizeof(why)), 0);
	assert_int_equal(cfg_set(&c, "port", "1", why, sizeof(why)), 0);
	cfg_print(&c, OPT_RUN, text, sizeof(text));
	assert_string_equal(text, "op=write size=4k signal=every:7 warmup=0 verify=yes");
	cfg_print(&c, OPT_RUN | OPT_WIRE, text, sizeof(text));
	assert_string_equal(text, "op=write size=4k signal=every:7 warmup=0 verify=yes");
	cfg_print(&c, 0, text, sizeof(text));
	assert_string_equal(text, "port=1 op=write size=4k signal=every:7 warmup=0 verify=yes");

	/* The longest there is fits into the 1280 bytes that are promised. */
	for (i = 0; i < opt_table_count; i++)
		if (opt_table[i].max)
			*(uint64_t *)member(&c, &opt_table[i]) = opt_table[i].max - 1;
	memset(c.device, 'd', 63);
	memset(c.cpu, '1', CFG_TEXT - 1);
	memset(c.mem_file, 'f', CFG_TEXT - 1);
	strcpy(c.numa, "1023");
	strcpy(c.signal, "every:1073741824");
	strcpy(c.peer_signal, c.signal);
	strcpy(c.peer_strategy, "multi-wr");
	c.mode = MODE_RPC;
	c.revoke = RXFER_REVOKE_REMOTE;
	c.reply = REPLY_IMM;
	c.defer = DEFER_RECV;
	cfg_print(&c, 0, text, sizeof(text));
	assert_true(strlen(text) < LINE - 1);
}

static const char *fruit(unsigned int i)
{
	static const char *const names[] = {"apple", "apricot", "fig", "pomegranate"};

	return i < 4 ? names[i] : NULL;
}

static void test_nearest(void **state)
{
	(void)state;
	assert_string_equal(rxfer_nearest("aple", fruit), "apple");
	assert_string_equal(rxfer_nearest("appel", fruit), "apple");
	assert_string_equal(rxfer_nearest("APPLE", fruit), "apple");
	assert_string_equal(rxfer_nearest("APLE", fruit), "apple");
	assert_string_equal(rxfer_nearest("apr", fruit), "apricot");
	assert_string_equal(rxfer_nearest("pomegrnaet", fruit), "pomegranate");
	assert_string_equal(rxfer_nearest("fgi", fruit), "fig");
	assert_null(rxfer_nearest("fog2", fruit));
	assert_null(rxfer_nearest("", fruit));
	assert_null(rxfer_nearest("kumquat", fruit));
	assert_null(rxfer_nearest(
		"pomegranatepomegranatepomegranatepomegranatepomegranatepomegranate", fruit));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),	   cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_values),	   cmocka_unit_test(test_cfg_set_refuses),
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_print_tells_apart),
		cmocka_unit_test(test_print),	   cmocka_unit_test(test_nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
