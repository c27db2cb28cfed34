/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A cache of registrations, as UCX and MPI libraries have one: memory that was registered for an
 * I/O stays so for the next ones, until something else needs the place.
 *
 * Regions that can be found never overlap: then the one that holds an address is the last that
 * begins at it or before, and a binary search in a sorted array finds it. (A tree would make
 * inserting cheaper, which is nothing beside the registration that goes with it, and looking up
 * dearer, which is all that a hit costs.)
 *
 * A miss is a piece that no region holds whole. Parts of it may be in some: those are replaced by
 * one new region, over the piece and all of them, so that none overlaps it. They are retired: no
 * look-up finds them, those who use them go on doing so, and they are deregistered once nobody
 * does. The union grows no larger than the limit of bytes; where it would, the new region is the
 * piece alone, and what it overlaps is retired all the same.
 *
 * Taking in neighbours that the piece only adjoins saves regions, of which a device has only so
 * many. It costs that each miss registers all of its neighbourhood anew: a buffer of n pieces that
 * is walked through has n * n / 2 registered by the end of the first round, and up to as many
 * unions of it at once as there are I/Os in flight. So it is asked for (@adjoin), not done anyhow.
 *
 * Limits are looked at when a region is to come and when a reference is given back, and count what
 * is registered: retired ones, too, as their pages are pinned like any others. What is in use is
 * never given up, so the cache is above its limits while all of it is in use; each reference that
 * comes back brings it nearer to them again. Of those unused the one goes that has been for
 * longest.
 *
 * So the number of entries is bounded. While a region comes in, those unused are below @max, or
 * none is, and those in use are no more than references: the larger one of both, and one more, is
 * room for all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "rcache.h"

/* ---- Lists ---- */

static const struct rxfer_region_list empty = {RXFER_NO_REGION, RXFER_NO_REGION};

static void append(struct rxfer_rcache *c, struct rxfer_region_list *l, uint32_t i)
{
	c->region[i].prev = l->last;
	c->region[i].next = RXFER_NO_REGION;
	if (l->last == RXFER_NO_REGION)
		l->first = i;
	else
		c->region[l->last].next = i;
	l->last = i;
}

static void take_out(struct rxfer_rcache *c, struct rxfer_region_list *l, uint32_t i)
{
	const struct rxfer_region *r = &c->region[i];

	if (r->prev == RXFER_NO_REGION)
		l->first = r->next;
	else
		c->region[r->prev].next = r->next;
	if (r->next == RXFER_NO_REGION)
		l->last = r->prev;
	else
		c->region[r->next].prev = r->prev;
}

static uint32_t take_first(struct rxfer_rcache *c, struct rxfer_region_list *l)
{
	uint32_t i = l->first;

	if (i != RXFER_NO_REGION)
		take_out(c, l, i);
	return i;
}

/* ---- Set-up ---- */

void rxfer_rcache_init(struct rxfer_rcache *c, uint32_t max, uint64_t max_bytes, bool adjoin)
{
	*c = (struct rxfer_rcache){.max = max,
				   .max_bytes = max_bytes,
				   .adjoin = adjoin,
				   .unused = empty,
				   .retired = empty,
				   .free = empty};
}

void rxfer_rcache_free(struct rxfer_rcache *c)
{
	free(c->region);
	free(c->sorted);
}

static int grow(struct rxfer_rcache *c, uint32_t entries)
{
	struct rxfer_region *region = realloc(c->region, entries * sizeof(*region));
	uint32_t *sorted;

	if (!region)
		return -ENOMEM;
	c->region = region;
	sorted = realloc(c->sorted, entries * sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	c->sorted = sorted;
	while (c->entries < entries) {
		c->region[c->entries] = (struct rxfer_region){0};
		append(c, &c->free, c->entries++);
	}
	return 0;
}

int rxfer_rcache_room(struct rxfer_rcache *c, int64_t more)
{
	uint64_t refs = c->refs + (uint64_t)more;
	uint64_t entries = (refs > c->max ? refs : c->max) + 1;
	int rc = 0;

	if (entries >= RXFER_NO_REGION)
		return -ENOMEM;
	if (entries > c->entries)
		rc = grow(c, (uint32_t)entries);
	if (!rc)
		c->refs = refs;
	return rc;
}

/* ---- Looking up ---- */

/* The first of those found that ends behind @addr of @home, or is of a later home; @nfound: none.
 * As none overlaps another, ends are in the same order as begins. */
static uint32_t first_behind(const struct rxfer_rcache *c, uint64_t home, uint64_t addr)
{
	uint32_t lo = 0, n = c->nfound;

	while (n) {
		const struct rxfer_region *r = &c->region[c->sorted[lo + n / 2]];
		bool before = r->home < home || (r->home == home && r->end <= addr);

		lo = before ? lo + n / 2 + 1 : lo;
		n = before ? n - n / 2 - 1 : n / 2;
	}
	return lo;
}

uint32_t rxfer_rcache_get(struct rxfer_rcache *c, uint64_t home, uint64_t addr, uint64_t end)
{
	uint32_t at = first_behind(c, home, addr), i;
	struct rxfer_region *r;

	if (at == c->nfound)
		return RXFER_NO_REGION;
	i = c->sorted[at];
	r = &c->region[i];
	if (r->home != home || r->addr > addr || r->end < end)
		return RXFER_NO_REGION;
	if (r->refs++ == 0)
		take_out(c, &c->unused, i);
	return i;
}

static bool above_limits(const struct rxfer_rcache *c, uint64_t bytes)
{
	return c->count + (bytes > 0) > c->max || (c->max_bytes && c->bytes + bytes > c->max_bytes);
}

bool rxfer_rcache_put(struct rxfer_rcache *c, uint32_t i)
{
	struct rxfer_region *r = &c->region[i];

	if (--r->refs)
		return false;
	append(c, r->found ? &c->unused : &c->retired, i);
	return !r->found || above_limits(c, 0);
}

/* ---- Coming and going ---- */

/* The @n from @at on are not found any more. */
static void retire(struct rxfer_rcache *c, uint32_t at, uint32_t n)
{
	for (uint32_t k = at; k < at + n; k++) {
		uint32_t i = c->sorted[k];

		c->region[i].found = false;
		if (c->region[i].refs)
			continue;
		take_out(c, &c->unused, i);
		append(c, &c->retired, i);
	}
	c->nfound -= n;
	memmove(&c->sorted[at], &c->sorted[at + n], (c->nfound - at) * sizeof(c->sorted[0]));
}

/* How many of those found, from @at on, begin before @end of @home. */
static uint32_t count_before(const struct rxfer_rcache *c, uint32_t at, uint64_t home, uint64_t end)
{
	uint32_t n = 0;

	for (; at + n < c->nfound; n++) {
		const struct rxfer_region *r = &c->region[c->sorted[at + n]];

		if (r->home != home || r->addr >= end)
			break;
	}
	return n;
}

void rxfer_rcache_forget(struct rxfer_rcache *c, uint64_t home, struct rxfer_span what)
{
	uint32_t at = first_behind(c, home, what.addr);

	retire(c, at, count_before(c, at, home, what.end));
}

struct rxfer_span rxfer_rcache_miss(struct rxfer_rcache *c, uint64_t home, struct rxfer_span want)
{
	const struct rxfer_span reach = {want.addr - (c->adjoin && want.addr),
					 want.end + c->adjoin};
	uint32_t at = first_behind(c, home, reach.addr);
	uint32_t n = count_before(c, at, home, reach.end);
	struct rxfer_span all = want;

	if (n) {
		const struct rxfer_region *first = &c->region[c->sorted[at]];
		const struct rxfer_region *last = &c->region[c->sorted[at + n - 1]];

		all.addr = first->addr < want.addr ? first->addr : want.addr;
		all.end = last->end > want.end ? last->end : want.end;
	}
	if (c->max_bytes && all.end - all.addr > c->max_bytes)
		all = want;
	rxfer_rcache_forget(c, home, all);
	return all;
}

uint32_t rxfer_rcache_add(struct rxfer_rcache *c, uint64_t home, struct rxfer_span span)
{
	uint32_t at = first_behind(c, home, span.addr), i = take_first(c, &c->free);

	if (i == RXFER_NO_REGION)
		return i;
	c->region[i] = (struct rxfer_region){
		.home = home, .addr = span.addr, .end = span.end, .refs = 1, .found = true};
	memmove(&c->sorted[at + 1], &c->sorted[at], (c->nfound - at) * sizeof(c->sorted[0]));
	c->sorted[at] = i;
	c->nfound++;
	c->count++;
	c->bytes += span.end - span.addr;
	return i;
}

uint32_t rxfer_rcache_victim(struct rxfer_rcache *c, uint64_t bytes)
{
	uint32_t i = take_first(c, &c->retired);

	if (i != RXFER_NO_REGION || !above_limits(c, bytes))
		return i;
	return rxfer_rcache_oldest(c);
}

uint32_t rxfer_rcache_oldest(struct rxfer_rcache *c)
{
	uint32_t i = c->unused.first;

	if (i == RXFER_NO_REGION)
		return i;
	retire(c, first_behind(c, c->region[i].home, c->region[i].addr), 1);
	take_out(c, &c->retired, i);
	return i;
}

void rxfer_rcache_gone(struct rxfer_rcache *c, uint32_t i)
{
	const struct rxfer_region *r = &c->region[i];

	c->count--;
	c->bytes -= r->end - r->addr;
	append(c, &c->free, i);
}
