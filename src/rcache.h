/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A cache of registrations: which region holds a piece of memory, what a new one has to span, and
 * which must go. Pure decisions, no verbs: the caller registers and deregisters. The essay is on
 * top of rcache.c.
 */
#ifndef RXFER_RCACHE_H
#define RXFER_RCACHE_H

#include <stdbool.h>
#include <stdint.h>

#define RXFER_NO_REGION UINT32_MAX

/*
 * struct rxfer_region - [@addr, @end) of the memory @home, an id of the caller's. What is of
 * different homes has nothing to do with each other, wherever it lies.
 * @refs:  who uses it now
 * @found: by look-ups; else it is retired, or free
 * @prev, @next: in the list that it is in: unused, retired ones that are to go, free
 */
struct rxfer_region {
	uint64_t home, addr, end;
	uint32_t refs;
	bool found;
	uint32_t prev, next;
};

/* struct rxfer_region_list - by indices; the first is the next to be taken. */
struct rxfer_region_list {
	uint32_t first, last;
};

/*
 * struct rxfer_rcache - @max regions and @max_bytes (0: no limit) at most, the retired ones
 * included; more only while all of them are in use.
 * @adjoin:  a new region takes in those that it adjoins, too, and not only those that it overlaps
 * @region:  @entries of them; the caller may have data of its own for each, by the index
 * @sorted:  the @nfound that are found, by home and address; none overlaps another
 * @count, @bytes: of all that the caller has registered and not given up
 * @refs:    that can be held at once, by what rxfer_rcache_room() was told
 */
struct rxfer_rcache {
	uint32_t max;
	uint64_t max_bytes;
	bool adjoin;
	struct rxfer_region *region;
	uint32_t *sorted;
	uint32_t entries, nfound, count;
	uint64_t bytes, refs;
	struct rxfer_region_list unused, retired, free;
};

/** rxfer_rcache_init() - empty, and without any room. @max: 1 or more. */
void rxfer_rcache_init(struct rxfer_rcache *c, uint32_t max, uint64_t max_bytes, bool adjoin);

/** rxfer_rcache_free() - the caller has deregistered all. Also of one that is all zeros. */
void rxfer_rcache_free(struct rxfer_rcache *c);

/**
 * rxfer_rcache_room() - @more references can be held at once than so far; fewer where it is
 * negative. Allocates where the entries do not suffice, and nothing else here ever does: @region
 * may move, indices stay. Returns 0; -ENOMEM, with all as it was.
 */
int rxfer_rcache_room(struct rxfer_rcache *c, int64_t more);

/** rxfer_rcache_get() - hot. A reference to the region that holds all of [@addr, @end); or
 * RXFER_NO_REGION. */
uint32_t rxfer_rcache_get(struct rxfer_rcache *c, uint64_t home, uint64_t addr, uint64_t end);

/**
 * rxfer_rcache_put() - hot. Give a reference back. Returns whether something is to go now:
 * rxfer_rcache_victim().
 */
bool rxfer_rcache_put(struct rxfer_rcache *c, uint32_t i);

/* struct rxfer_span - [addr, end). */
struct rxfer_span {
	uint64_t addr, end;
};

/**
 * rxfer_rcache_miss() - what to register so that the next rxfer_rcache_get() of @want finds it: the
 * union of that and of what it overlaps (or adjoins, see there) unless it has more than @max_bytes;
 * then just @want. All that the answer overlaps is retired. Then the caller gives up what
 * rxfer_rcache_victim() says, registers, and adds.
 */
struct rxfer_span rxfer_rcache_miss(struct rxfer_rcache *c, uint64_t home, struct rxfer_span want);

/** rxfer_rcache_add() - it is registered: its region, with one reference. RXFER_NO_REGION where
 * more references are held than there is room for. */
uint32_t rxfer_rcache_add(struct rxfer_rcache *c, uint64_t home, struct rxfer_span span);

/**
 * rxfer_rcache_victim() - a region that must go so that another one of so many @bytes can come (0:
 * none comes): retired, or unused for longest. It is not found any more; the caller deregisters it,
 * and then says rxfer_rcache_gone(). RXFER_NO_REGION: there is none.
 */
uint32_t rxfer_rcache_victim(struct rxfer_rcache *c, uint64_t bytes);

/** rxfer_rcache_oldest() - likewise, whatever the limits: the one that is unused for longest. */
uint32_t rxfer_rcache_oldest(struct rxfer_rcache *c);

/** rxfer_rcache_gone() - it is deregistered. Where that failed it is not said, and the entry is
 * never used again. */
void rxfer_rcache_gone(struct rxfer_rcache *c, uint32_t i);

/** rxfer_rcache_forget() - whatever overlaps [@addr, @end) is retired. */
void rxfer_rcache_forget(struct rxfer_rcache *c, uint64_t home, struct rxfer_span what);

#endif
