/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The account that --signal inferred would have of its send queue: it takes a reply for the proof
 * that the request's entries are free, as clients of NFS over RDMA once did. A reply proves no such
 * thing: the NIC may have to send the request again, and an entry is the program's again only when
 * a completion is polled. This account gates nothing here. It only says when it would have let a
 * request go that the real one (sq.h) kept back: an overpost. On a queue that gives an entry back
 * when its completion is polled, and not before, as those of NICs do, each is an overflow.
 *
 * Pure arithmetic.
 */
#ifndef BENCH_SHADOW_H
#define BENCH_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

/*
 * struct shadow - one send queue's.
 * @depth, @used: entries; the drain's is used for good
 * @over:         the request that waits now is counted already
 */
struct shadow {
	uint32_t depth, used;
	bool over;
	uint64_t overposts;
};

static inline void shadow_init(struct shadow *s, uint32_t depth)
{
	*s = (struct shadow){.depth = depth, .used = 1};
}

/* @n WRs were posted; @request: they are one, so whoever waited does no more. */
static inline void shadow_posted(struct shadow *s, uint32_t n, bool request)
{
	s->used += n;
	s->over &= !request;
}

/* The reply to a request of @n WRs came, or the completion of @n others. */
static inline void shadow_returned(struct shadow *s, uint32_t n)
{
	s->used -= n;
}

/* The real account refused a request that needs @need entries: would this one have, too? */
static inline void shadow_refused(struct shadow *s, uint32_t need)
{
	if (s->over || (uint64_t)s->used + need > s->depth)
		return;
	s->over = true;
	s->overposts++;
}

#endif
