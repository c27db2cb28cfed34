/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where everything lies: fragments inside their slot, slots apart from each other, a RECV buffer
 * large enough for each message. Up to the largest settings that cfg_check() lets pass, whose sizes
 * are compared with those in 128-bit arithmetic.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "prop.h"
#include "load.h"
#include "memory.h"

#define PAGE	  4096u
#define MIB	  ((size_t)1 << 20)
#define FRAGS_MAX 1024

typedef unsigned __int128 wide;

static struct rxfer_frag frags[FRAGS_MAX];

/* Never dereferenced: the layout is arithmetic. */
static char *const base = (char *)0x200000000000;

static struct cfg settings(const char *strategy, uint64_t size, uint64_t nfrags, uint64_t gap,
			   uint64_t depth)
{
	struct cfg cfg;

	cfg_init(&cfg);
	cfg.mode = MODE_DIRECT;
	snprintf(cfg.strategy, sizeof(cfg.strategy), "%s", strategy);
	cfg.size = size;
	cfg.frags = nfrags;
	cfg.frag_gap = gap;
	cfg.depth = depth;
	return cfg;
}

static wide pages(wide n)
{
	return (n + PAGE - 1) / PAGE * PAGE;
}

/* ---- Rules, each NULL or what is wrong ---- */

static const char *check_slot(const struct cfg *cfg, const struct layout *l)
{
	wide need = cfg->misalign + (wide)cfg->size + (wide)(cfg->frags - 1) * cfg->frag_gap;

	if (l->slot < need)
		return "a slot is smaller than its fragments and gaps";
	if (l->slot != pages(need))
		return "a slot is not the fewest whole pages";
	if (l->target < cfg->misalign + cfg->size)
		return "the peer's memory is smaller than the I/O";
	if (cfg->verify && l->target < cfg->misalign + cfg->size + TARGET_SLACK - 8)
		return "no room for a READ at the last offset";
	if (l->target % PAGE)
		return "the peer's memory is not whole pages";
	if (l->target >= cfg->misalign + (wide)cfg->size + 2 * PAGE)
		return "the peer's memory is too large";
	return NULL;
}

static const char *check_frags(const struct cfg *cfg, const struct layout *l)
{
	char *at = base + cfg->misalign;
	wide sum = 0;

	layout_frags(cfg, base, frags);
	for (uint64_t i = 0; i < cfg->frags; i++) {
		if ((char *)frags[i].addr != at)
			return "a gap is not as asked";
		if (frags[i].len == 0)
			return "an empty fragment";
		if (frags[i].len > frags[0].len || frags[i].len + 1 < frags[0].len)
			return "fragments are not of one length, but for one byte";
		sum += frags[i].len;
		at += frags[i].len + cfg->frag_gap;
	}
	if (sum != cfg->size)
		return "the lengths do not sum up to the size";
	if (at - cfg->frag_gap > base + l->slot)
		return "the last fragment ends behind its slot";
	return NULL;
}

/* Call after check_frags(). */
static const char *check_messages(const struct cfg *cfg, const struct layout *l)
{
	bool split = !strcmp(cfg->strategy, "multi-wr");

	if (l->messages != (split ? cfg->frags : 1))
		return "another number of messages";
	if (l->message < cfg->misalign + (split ? frags[0].len : cfg->size))
		return "a message does not fit its buffer";
	if (l->message % PAGE || l->message >= cfg->misalign + (wide)cfg->size + PAGE)
		return "a buffer is not the fewest whole pages";
	if (l->recvs != (wide)2 * cfg->depth * l->messages)
		return "RECVs are not twice what can be in flight";
	return NULL;
}

/* What both ends allocate and post, by the largest numbers there are. */
static const char *check_sums(const struct cfg *cfg, const struct layout *l)
{
	if ((wide)cfg->qps * l->recvs * l->message > SIZE_MAX / 2)
		return "all RECV buffers: beyond size_t";
	if ((wide)cfg->qps * cfg->depth * l->slot > SIZE_MAX / 2)
		return "all slots: beyond size_t";
	if ((wide)cfg->qps * cfg->depth * l->target > SIZE_MAX / 2)
		return "all of the peer's memory: beyond size_t";
	if ((wide)cfg->qps * cfg->depth * cfg->frags * sizeof(struct rxfer_frag) > SIZE_MAX / 2)
		return "the array of fragments: beyond size_t";
	if (layout_allowance(cfg, l) > INT64_MAX / 2)
		return "the time to set it up: beyond any clock";
	if (l->message > UINT32_MAX)
		return "a RECV buffer's length: beyond 32 bits";
	return NULL;
}

static const char *check(const struct cfg *cfg)
{
	struct layout l;
	const char *wrong;

	memset(&l, 0xee, sizeof(l));
	layout_make(cfg, &l);
	wrong = check_slot(cfg, &l);
	if (!wrong)
		wrong = check_frags(cfg, &l);
	if (!wrong)
		wrong = check_messages(cfg, &l);
	if (!wrong)
		wrong = check_sums(cfg, &l);
	if (wrong) {
		char text[1280];

		cfg_print(cfg, OPT_RUN, text, sizeof(text));
		print_error("%s: %s\n", wrong, text);
	}
	return wrong;
}

/* ---- Single cases ---- */

static void one_fragment(void **state)
{
	struct cfg cfg = settings("global", 65536, 1, 4096, 16);
	struct layout l;

	(void)state;
	layout_make(&cfg, &l);
	assert_int_equal(l.slot, 65536);
	assert_int_equal(l.target, 65536);
	assert_int_equal(l.message, 65536);
	assert_int_equal(l.messages, 1);
	assert_int_equal(l.recvs, 32);
	layout_frags(&cfg, base, frags);
	assert_ptr_equal(frags[0].addr, base);
	assert_int_equal(frags[0].len, 65536);
}

/* Ten bytes in four pieces, 100 apart: 3 3 2 2. */
static void by_hand(void **state)
{
	struct cfg cfg = settings("multi-wr", 10, 4, 100, 2);
	static const uint32_t lens[] = {3, 3, 2, 2}, at[] = {0, 103, 206, 308};
	struct layout l;

	(void)state;
	cfg.verify = true;
	layout_make(&cfg, &l);
	assert_int_equal(l.slot, 4096);
	assert_int_equal(l.target, 8192);
	assert_int_equal(l.message, 4096);
	assert_int_equal(l.messages, 4);
	assert_int_equal(l.recvs, 16);
	layout_frags(&cfg, base, frags);
	for (size_t i = 0; i < 4; i++) {
		assert_ptr_equal(frags[i].addr, base + at[i]);
		assert_int_equal(frags[i].len, lens[i]);
	}
}

static void adjoining_fragments(void **state)
{
	struct cfg cfg = settings("global", 4097, 7, 0, 1);
	struct layout l;

	(void)state;
	layout_make(&cfg, &l);
	assert_int_equal(l.slot, 8192);
	layout_frags(&cfg, base, frags);
	for (size_t i = 1; i < 7; i++)
		assert_ptr_equal(frags[i].addr, (char *)frags[i - 1].addr + frags[i - 1].len);
	assert_null(check(&cfg));
}

/* The longer of two fragments is one byte above a page. */
static void a_buffer_for_the_longest_fragment(void **state)
{
	struct cfg cfg = settings("multi-wr", 2 * PAGE + 1, 2, 0, 1);
	struct layout l;

	(void)state;
	layout_make(&cfg, &l);
	assert_int_equal(l.message, 2 * PAGE);
	assert_null(check(&cfg));
}

/* One byte in each of 1024 fragments; the first of 1025 bytes has two. */
static void as_many_fragments_as_bytes(void **state)
{
	struct cfg cfg = settings("multi-wr", 1024, 1024, 4096, 3);

	(void)state;
	assert_null(check(&cfg));
	cfg.size = 1025;
	assert_null(check(&cfg));
	assert_int_equal(frags[0].len, 2);
	assert_int_equal(frags[1].len, 1);
}

/* Nothing is cut twice or left over between slots that lie one behind the other. */
static void slots_do_not_overlap(void **state)
{
	struct cfg cfg = settings("multi-wr", 12289, 5, 1, 4);
	char *end = base;
	struct layout l;

	(void)state;
	layout_make(&cfg, &l);
	for (uint64_t i = 0; i < cfg.depth; i++) {
		layout_frags(&cfg, base + i * l.slot, frags);
		for (size_t k = 0; k < 5; k++) {
			assert_true((char *)frags[k].addr >= end);
			end = (char *)frags[k].addr + frags[k].len;
		}
	}
	assert_true(end <= base + cfg.depth * l.slot);
}

/* A second for each 64 MiB, of both sides and of RECV buffers. */
static void time_to_set_it_up(void **state)
{
	struct cfg cfg = settings("global", 1 << 20, 1, 0, 16);
	struct layout l;
	uint64_t one;

	(void)state;
	layout_make(&cfg, &l);
	one = layout_allowance(&cfg, &l);
	assert_int_equal(one, 1000000000); /* 16 slots, 16 targets, 32 RECVs of a MiB */
	cfg.qps = 7;
	assert_int_equal(layout_allowance(&cfg, &l), 7 * one);
}

/* ---- The largest settings ---- */

static void set(struct cfg *cfg, const char *name, const char *text)
{
	char why[256];

	if (cfg_set(cfg, name, text, why, sizeof(why)))
		fail_msg("%s", why);
}

static void the_largest_settings(void **state)
{
	static const char *const most[][5] = {
		/* size, frags, frag-gap, depth, qps; what is above 64 TiB is refused */
		{"2g", "1", "0", "32768", "1"},		{"2g", "1", "0", "2", "16384"},
		{"2g", "1024", "0", "32768", "1"},	{"2g", "1024", "0", "1", "16384"},
		{"1", "1", "0", "65536", "16384"},	{"1k", "1024", "0", "65536", "16384"},
		{"64k", "1024", "0", "65536", "16384"}, {"1k", "1024", "1g", "64", "1"},
		{"1k", "1024", "1g", "1", "64"},	{"2147483647", "1023", "1g", "1", "1"},
	};
	char why[512];

	(void)state;
	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		for (unsigned int s = 0; rxfer_strategy_name(s); s++) {
			struct cfg cfg;

			cfg_init(&cfg);
			cfg.mode = MODE_DIRECT;
			set(&cfg, "strategy", rxfer_strategy_name(s));
			set(&cfg, "size", most[i][0]);
			set(&cfg, "frags", most[i][1]);
			set(&cfg, "frag-gap", most[i][2]);
			set(&cfg, "depth", most[i][3]);
			set(&cfg, "qps", most[i][4]);
			set(&cfg, "verify", "yes");
			if (cfg_check(&cfg, why, sizeof(why)))
				fail_msg("%s", why);
			assert_null(check(&cfg));
		}
	}
}

/* Mostly near the ends of each range. */
static uint64_t spread(struct prop *p, uint64_t most)
{
	uint32_t bits = prop_range(p, 0, 63);
	uint64_t v = prop_next(p) >> bits;

	return prop_chance(p, 10) ? most : v % (most + 1);
}

static uint64_t at_least_1(uint64_t v)
{
	return v ? v : 1;
}

static void random_settings(void **state)
{
	uint64_t first = prop_first_seed(), n = prop_count(30000, 500), done = 0;
	char why[512];
	struct prop p;

	(void)state;
	for (uint64_t i = 0; done < n; i++) {
		unsigned int strategies = 0;
		struct cfg cfg;

		prop_start(&p, first + i);
		while (rxfer_strategy_name(strategies))
			strategies++;
		cfg = settings(rxfer_strategy_name(prop_range(&p, 0, strategies - 1)),
			       at_least_1(spread(&p, 1ull << 31)), at_least_1(spread(&p, 1024)),
			       spread(&p, 1ull << 30), at_least_1(spread(&p, 65536)));
		cfg.qps = at_least_1(spread(&p, 16384));
		cfg.verify = prop_chance(&p, 50);
		cfg.misalign = prop_chance(&p, 50) ? 0 : spread(&p, PAGE - 1);
		if (cfg_check(&cfg, why, sizeof(why)))
			continue;
		PROP_CHECK(&p, check(&cfg) == NULL);
		done++;
	}
}

/* ---- Areas ---- */

static void an_empty_area(void **state)
{
	struct area a;

	(void)state;
	memset(&a, 0xee, sizeof(a));
	assert_int_equal(area_make(NULL, 0, RXFER_LOCAL, &a), 0);
	assert_null(a.base);
	assert_null(a.mem);
	assert_int_equal(a.len, 0);
	area_drop(&a);
	area_drop(&a);
}

static void an_area_too_large(void **state)
{
	struct area a;

	(void)state;
	memset(&a, 0xee, sizeof(a));
	assert_int_equal(area_make(NULL, 1ull << 62, RXFER_LOCAL, &a), -ENOMEM);
	assert_non_null(strstr(rxfer_error(), "--depth"));
	assert_null(a.base);
	assert_null(a.mem);
	assert_int_equal(a.len, 0);
	area_drop(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_fragment),
		cmocka_unit_test(by_hand),
		cmocka_unit_test(adjoining_fragments),
		cmocka_unit_test(a_buffer_for_the_longest_fragment),
		cmocka_unit_test(as_many_fragments_as_bytes),
		cmocka_unit_test(slots_do_not_overlap),
		cmocka_unit_test(time_to_set_it_up),
		cmocka_unit_test(the_largest_settings),
		cmocka_unit_test(random_settings),
		cmocka_unit_test(an_empty_area),
		cmocka_unit_test(an_area_too_large),
	};

	return cmocka_run_group_tests_name("unit_memory", tests, NULL, NULL);
}
