/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the direct load know of each other. */
#ifndef BENCH_LOAD_INTERNAL_H
#define BENCH_LOAD_INTERNAL_H

#include "load.h"
#include "peak.h"

/* I/Os that one completion proves are handed up together, so many of them at once; and so much is
 * done on one QP before the next one has its turn. */
#define BURST 32

/* struct slot - one I/O in flight. */
struct slot {
	uint64_t start;	 /* clock_ticks() before map, or when it was due; 0 without --timing */
	uint64_t number; /* of the I/O on its QP */
	struct rxfer_prepared *prepared; /* its I/O, where that is always the same; else NULL */
	struct rxfer_frag *frags;
	struct rxfer_seg remote;
	bool checking; /* the READ that fetches its WRITE back is under way */
};

/*
 * struct lane - one QP. I/Os are done in the order in which they were issued, so its slots are a
 * ring: those of I/Os in flight, then those whose WRITE waits for its check (@to_check of them,
 * from @check on), ... the @nfree free ones begin at @next.
 * @left: I/Os that may still be issued in this phase; 0 stops it
 * @due:  when its next I/O has to start (--rate), by clock_ticks()
 */
struct lane {
	struct rxfer_conn *conn;
	struct slot *slots;
	uint32_t depth, next, nfree;
	uint32_t check, to_check;
	uint64_t left;
	uint64_t number;    /* I/Os ever issued */
	uint64_t first;	    /* the same, when this phase began */
	uint64_t completed; /* I/Os, in this phase */
	uint64_t credits;   /* RECVs at the peer */
	uint64_t stalled;   /* the next I/O waits: since when, or 1; 0: it does not */
	double due;
};

struct direct {
	int (*pass)(struct direct *d, struct lane *lane); /* as the options want it */
	struct lane *lanes;
	uint32_t nlanes, nfrags;
	bool timed;    /* a start time for each I/O */
	bool sampling; /* and its latency counts */
	bool finished;
	struct clock clock;
	uint64_t deadline; /* by it; UINT64_MAX: none */
	double period;	   /* ticks between the I/Os of a lane; 0: closed loop */
	uint64_t now;	   /* with a period: at the begin of this pass */
	uint64_t seen;	   /* the watch's latest look at the clock that was attended to */
	uint64_t bytes, stalls, stall_ns;
	struct load_result *out;
	struct peak peak;

	const struct cfg *cfg;
	struct layout layout;
	struct rxfer_dev *dev;
	struct rxfer_conn **conns;
	const struct target *target;
	struct sink *sink;
	struct watch *watch;
	struct area work;  /* local memory of all slots */
	struct area check; /* where --verify fetches WRITEs back to */
	struct slot *slots;
	struct rxfer_frag *frags;
};

/* The slot behind slot @i of @lane's ring. */
static inline uint32_t behind(const struct lane *lane, uint32_t i)
{
	return i + 1 == lane->depth ? 0 : i + 1;
}

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
