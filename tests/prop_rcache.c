/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cache of registrations against a naive model: a list of all regions that are registered, each
 * with the time when it was used last, looked through from one end to the other for each answer.
 * Random look-ups, references that come back in any order, memory that is forgotten, registrations
 * that fail for want of room, limits of either kind.
 */
#include "prop.h"

#include <errno.h>

#include "../src/rcache.h"

#define SEQUENCES 1000
#define STEPS	  1000
#define HOMES	  3
#define PAGE	  16u
#define PAGES	  40
#define MOST	  128 /* regions, in the model */
#define REFS	  24

/* A region that is registered. @i: its index in the cache. */
struct known {
	uint64_t home, addr, end, used;
	uint32_t i, refs;
	bool found;
};

struct scene {
	struct prop *p;
	struct rxfer_rcache c;
	struct known known[MOST];
	uint32_t n;
	uint32_t held[REFS]; /* indices in the cache */
	uint32_t nheld, room;
	uint64_t now;
};

/* ---- The model ---- */

static bool overlaps(const struct known *k, uint64_t home, struct rxfer_span s)
{
	return k->found && k->home == home && k->addr < s.end && k->end > s.addr;
}

static bool adjoins(const struct known *k, uint64_t home, struct rxfer_span s)
{
	return k->found && k->home == home && (k->end == s.addr || k->addr == s.end);
}

static struct known *holder(struct scene *s, uint64_t home, struct rxfer_span what)
{
	for (struct known *k = s->known; k < s->known + s->n; k++)
		if (k->found && k->home == home && k->addr <= what.addr && k->end >= what.end)
			return k;
	return NULL;
}

static struct known *by_index(struct scene *s, uint32_t i)
{
	for (struct known *k = s->known; k < s->known + s->n; k++)
		if (k->i == i)
			return k;
	return NULL;
}

static struct rxfer_span union_of(const struct scene *s, uint64_t home, struct rxfer_span want)
{
	struct rxfer_span all = want;

	for (const struct known *k = s->known; k < s->known + s->n; k++) {
		if (!overlaps(k, home, want) && !(s->c.adjoin && adjoins(k, home, want)))
			continue;
		all.addr = k->addr < all.addr ? k->addr : all.addr;
		all.end = k->end > all.end ? k->end : all.end;
	}
	return s->c.max_bytes && all.end - all.addr > s->c.max_bytes ? want : all;
}

static void retire(struct scene *s, uint64_t home, struct rxfer_span what)
{
	for (struct known *k = s->known; k < s->known + s->n; k++)
		if (overlaps(k, home, what))
			k->found = false;
}

static struct known *unused_longest(struct scene *s)
{
	struct known *oldest = NULL;

	for (struct known *k = s->known; k < s->known + s->n; k++)
		if (k->found && !k->refs && (!oldest || k->used < oldest->used))
			oldest = k;
	return oldest;
}

static bool above(const struct scene *s, uint64_t bytes)
{
	uint64_t all = bytes;

	for (const struct known *k = s->known; k < s->known + s->n; k++)
		all += k->end - k->addr;
	return s->n + (bytes ? 1 : 0) > s->c.max || (s->c.max_bytes && all > s->c.max_bytes);
}

/* Must this one go now? Of those retired, any; NULL: is it right that none goes? */
static bool must_go(struct scene *s, const struct known *which, uint64_t bytes)
{
	for (const struct known *k = s->known; k < s->known + s->n; k++)
		if (!k->found && !k->refs)
			return which && !which->found && !which->refs;
	return which == (above(s, bytes) ? unused_longest(s) : NULL);
}

/* ---- Both ---- */

static void gone(struct scene *s, struct known *k)
{
	rxfer_rcache_gone(&s->c, k->i);
	*k = s->known[--s->n];
}

/* All that must go. */
static void give_up(struct scene *s, uint64_t bytes)
{
	for (;;) {
		uint32_t i = rxfer_rcache_victim(&s->c, bytes);
		struct known *k = i == RXFER_NO_REGION ? NULL : by_index(s, i);

		PROP_CHECK(s->p, i == RXFER_NO_REGION || k);
		PROP_CHECK(s->p, must_go(s, k, bytes));
		if (!k)
			return;
		gone(s, k);
	}
}

/* A registration that fails for want of room takes that of the oldest. */
static bool registers(struct scene *s)
{
	while (prop_chance(s->p, 10)) {
		struct known *oldest = unused_longest(s);
		uint32_t i = rxfer_rcache_oldest(&s->c);

		PROP_CHECK(s->p, i == (oldest ? oldest->i : RXFER_NO_REGION));
		if (!oldest)
			return false;
		gone(s, oldest);
	}
	return true;
}

static uint32_t miss(struct scene *s, uint64_t home, struct rxfer_span want)
{
	struct rxfer_span all = union_of(s, home, want), span;
	uint32_t i;

	span = rxfer_rcache_miss(&s->c, home, want);
	PROP_CHECK(s->p, span.addr == all.addr && span.end == all.end);
	retire(s, home, all);
	give_up(s, all.end - all.addr);
	if (!registers(s))
		return RXFER_NO_REGION;
	i = rxfer_rcache_add(&s->c, home, span);
	PROP_CHECK(s->p, i < s->c.entries && !by_index(s, i));
	PROP_CHECK(s->p, s->n < MOST);
	s->known[s->n++] = (struct known){
		.home = home, .addr = all.addr, .end = all.end, .i = i, .refs = 1, .found = true};
	return i;
}

static struct rxfer_span some_pages(struct scene *s, uint32_t most)
{
	uint32_t n = prop_range(s->p, 1, most), at = prop_range(s->p, 0, PAGES - n);

	return (struct rxfer_span){at * PAGE, (at + n) * PAGE};
}

/* Some bytes in those pages. */
static struct rxfer_span part_of(struct scene *s, struct rxfer_span pages)
{
	pages.addr += prop_range(s->p, 0, PAGE - 1);
	pages.end -= prop_range(s->p, 0, PAGE - 1);
	return pages.addr < pages.end ? pages : (struct rxfer_span){pages.end - 1, pages.end};
}

static void look_up(struct scene *s)
{
	uint64_t home = prop_range(s->p, 1, HOMES);
	struct rxfer_span pages = some_pages(s, 6), what = part_of(s, pages);
	struct known *k = holder(s, home, what);
	uint32_t i;

	if (s->nheld == s->room)
		return;
	i = rxfer_rcache_get(&s->c, home, what.addr, what.end);
	PROP_CHECK(s->p, i == (k ? k->i : RXFER_NO_REGION));
	if (k)
		k->refs++;
	else
		i = miss(s, home, pages);
	if (i != RXFER_NO_REGION)
		s->held[s->nheld++] = i;
}

static void put(struct scene *s)
{
	uint32_t at;
	struct known *k;
	bool some;

	if (!s->nheld)
		return;
	at = prop_range(s->p, 0, s->nheld - 1);
	k = by_index(s, s->held[at]);
	s->held[at] = s->held[--s->nheld];
	k->refs--;
	k->used = ++s->now;
	some = rxfer_rcache_put(&s->c, k->i);
	PROP_CHECK(s->p, some || must_go(s, NULL, 0));
	if (some)
		give_up(s, 0);
}

static void forget(struct scene *s)
{
	uint64_t home = prop_range(s->p, 1, HOMES);
	struct rxfer_span what = part_of(s, some_pages(s, prop_chance(s->p, 10) ? PAGES : 4));

	rxfer_rcache_forget(&s->c, home, what);
	retire(s, home, what);
	give_up(s, 0);
}

static void more_room(struct scene *s)
{
	uint32_t more = prop_range(s->p, 0, REFS - s->room);
	uint32_t fewer = prop_range(s->p, 0, more);

	PROP_CHECK(s->p, !rxfer_rcache_room(&s->c, more));
	PROP_CHECK(s->p, !rxfer_rcache_room(&s->c, -(int64_t)fewer));
	s->room += more - fewer;
}

/* What is found is what the model has, in order, and none overlaps the next. */
static void compare(struct scene *s)
{
	const struct rxfer_rcache *c = &s->c;
	uint64_t bytes = 0;
	uint32_t found = 0;

	for (const struct known *k = s->known; k < s->known + s->n; k++) {
		bytes += k->end - k->addr;
		found += k->found;
		PROP_CHECK(s->p, c->region[k->i].refs == k->refs);
	}
	PROP_CHECK(s->p, c->count == s->n && c->bytes == bytes && c->nfound == found);
	for (uint32_t at = 0; at < c->nfound; at++) {
		const struct rxfer_region *r = &c->region[c->sorted[at]], *was;
		const struct known *k = by_index(s, c->sorted[at]);

		was = at ? &c->region[c->sorted[at - 1]] : NULL;
		PROP_CHECK(s->p, k && k->found && k->home == r->home);
		PROP_CHECK(s->p, k->addr == r->addr && k->end == r->end);
		PROP_CHECK(s->p, !was || was->home < r->home ||
					 (was->home == r->home && was->end <= r->addr));
	}
	PROP_CHECK(s->p, !above(s, 0) || !unused_longest(s));
}

static void step(struct scene *s)
{
	uint32_t what = prop_range(s->p, 0, 99);

	if (what < 55)
		look_up(s);
	else if (what < 95)
		put(s);
	else if (what < 99)
		forget(s);
	else
		more_room(s);
	compare(s);
}

static void sequence(struct prop *p, uint64_t seed)
{
	struct scene s = {.p = p};

	prop_start(p, seed);
	s.room = prop_range(p, 1, REFS / 2);
	rxfer_rcache_init(&s.c, prop_range(p, 1, prop_chance(p, 50) ? 6 : 40),
			  prop_chance(p, 40) ? 0 : PAGE * prop_range(p, 6, 60), prop_chance(p, 50));
	PROP_CHECK(p, !rxfer_rcache_room(&s.c, s.room));
	for (int i = 0; i < STEPS; i++)
		step(&s);
	while (s.nheld)
		put(&s);
	compare(&s);
	for (uint64_t home = 1; home <= HOMES; home++) {
		rxfer_rcache_forget(&s.c, home, (struct rxfer_span){0, PAGES * PAGE});
		retire(&s, home, (struct rxfer_span){0, PAGES * PAGE});
	}
	give_up(&s, 0);
	PROP_CHECK(p, s.n == 0 && s.c.count == 0 && s.c.bytes == 0);
	rxfer_rcache_free(&s.c);
}

static void as_the_model_has_it(void **state)
{
	uint64_t seed = prop_first_seed(), n = prop_count(SEQUENCES, 10);
	struct prop p;

	(void)state;
	for (; n; n--, seed++)
		sequence(&p, seed);
}

/* What the device keeps is counted for good, and its entry is not used again. */
static void what_could_not_be_deregistered(void **state)
{
	struct rxfer_rcache c;
	uint32_t a, b;

	(void)state;
	rxfer_rcache_init(&c, 1, 0, false);
	assert_int_equal(rxfer_rcache_room(&c, 1), 0);
	a = rxfer_rcache_add(&c, 1, (struct rxfer_span){0, 16});
	assert_false(rxfer_rcache_put(&c, a));
	assert_int_equal(rxfer_rcache_victim(&c, 16), a); /* and it is not gone */
	assert_int_equal(rxfer_rcache_get(&c, 1, 0, 16), RXFER_NO_REGION);
	b = rxfer_rcache_add(&c, 1, (struct rxfer_span){16, 32});
	assert_int_not_equal(b, a);
	assert_true(rxfer_rcache_put(&c, b)); /* above the limit */
	assert_int_equal(rxfer_rcache_victim(&c, 0), b);
	assert_int_equal(c.count, 2);
	assert_int_equal(rxfer_rcache_add(&c, 1, (struct rxfer_span){32, 48}), RXFER_NO_REGION);
	rxfer_rcache_free(&c);
}

/* More than there can be indices for. */
static void no_room_for_so_many(void **state)
{
	struct rxfer_rcache c;

	(void)state;
	rxfer_rcache_init(&c, 1024, 0, false);
	assert_int_equal(rxfer_rcache_room(&c, UINT32_MAX), -ENOMEM);
	assert_int_equal(c.refs, 0);
	assert_int_equal(c.entries, 0);
	assert_int_equal(rxfer_rcache_room(&c, 4), 0);
	assert_int_equal(c.entries, 1025);
	rxfer_rcache_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_model_has_it),
		cmocka_unit_test(what_could_not_be_deregistered),
		cmocka_unit_test(no_room_for_so_many),
	};

	return cmocka_run_group_tests_name("prop_rcache", tests, NULL, NULL);
}
