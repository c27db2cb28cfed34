/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the direct load know of each other. */
#ifndef BENCH_LOAD_DIRECT_H
#define BENCH_LOAD_DIRECT_H

#include "load_internal.h"

/* struct slot - one I/O in flight. */
struct slot {
	uint64_t start;	 /* clock_ticks() before map, or when it was due; 0 without --timing */
	uint64_t number; /* of the I/O on its QP */
	struct rxfer_prepared *prepared; /* its I/O, where that is always the same; else NULL */
	struct rxfer_frag *frags;
	struct rxfer_seg remote;
	uint32_t piece; /* of the working set */
	bool placed;	/* it has that of its next I/O, which is not posted yet */
	bool checking;	/* the READ that fetches its WRITE back is under way */
};

/*
 * struct lane - one QP. I/Os are done in the order in which they were issued, so its slots are a
 * ring: those of I/Os in flight, then those whose WRITE waits for its check (@to_check of them,
 * from @check on), ... the @nfree free ones begin at @next.
 */
struct lane {
	struct turn turn;
	struct rxfer_conn *conn;
	struct slot *slots;
	uint32_t depth, next, nfree;
	uint32_t check, to_check;
	uint64_t asked;	  /* so many I/Os were issued when proof was asked that they arrived */
	uint64_t credits; /* RECVs at the peer */
};

struct direct {
	struct load load;
	int (*pass)(struct direct *d, struct lane *lane); /* as the options want it */
	struct lane *lanes;
	uint32_t nfrags;
	struct rxfer_dev *dev;
	const struct target *target;
	struct sink *sink;
	struct area check; /* where --verify fetches WRITEs back to */
	struct area proof; /* a byte of what was written comes here, where that takes a READ */
	struct slot *slots;
	struct rxfer_frag *frags;
};

static inline struct direct *direct_of(struct load *l)
{
	return (struct direct *)l; /* its first member */
}

/* The slot behind slot @i of @lane's ring. */
static inline uint32_t behind(const struct lane *lane, uint32_t i)
{
	return i + 1 == lane->depth ? 0 : i + 1;
}

extern const struct load_ops direct_ops;
void direct_free(struct load *l);

/* load_direct.c: the way of issuing that the options ask for. */
int (*direct_way(const struct cfg *cfg))(struct direct *d, struct lane *lane);

/* load_verify.c */

/** verify_prepare() - before an I/O: give the bytes it will carry, or poison the place it must
 * fill.
 */
void verify_prepare(struct direct *d, const struct lane *lane, struct slot *s);

/** verify_read() - a READ brought what was there, or -EILSEQ. */
int verify_read(const struct direct *d, const struct lane *lane, const struct slot *s);

/** verify_fetch_back() - READ what WRITEs left at the peer, as far as credits allow. 0 or -errno.
 */
int verify_fetch_back(const struct direct *d, struct lane *lane);

/** verify_write() - what such a READ brought is what was written, or -EILSEQ. */
int verify_write(const struct direct *d, const struct lane *lane, const struct slot *s);

#endif
