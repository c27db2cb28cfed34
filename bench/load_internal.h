/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the direct load know of each other. */
#ifndef BENCH_LOAD_INTERNAL_H
#define BENCH_LOAD_INTERNAL_H

#include "load.h"
#include "peak.h"

enum slot_state {
	SLOT_FREE,
	SLOT_IO,
	SLOT_TO_CHECK, /* its WRITE is done, the READ that fetches it back waits for credits */
	SLOT_CHECK,    /* that READ is under way */
};

struct slot {
	uint64_t start;	 /* rxfer_now() before map, or when it was due; 0 without --timing */
	uint64_t number; /* of the I/O on its QP */
	enum slot_state state;
	char *base;
	struct rxfer_frag *frags;
	struct rxfer_seg remote;
};

/*
 * struct lane - one QP.
 * @due: when its next I/O has to start (--rate), in ns of rxfer_now()
 */
struct lane {
	struct rxfer_conn *conn;
	struct slot *slots;
	uint32_t *free; /* a stack of slot numbers */
	uint32_t nfree;
	uint64_t issued;    /* I/Os in this phase */
	uint64_t completed; /* likewise */
	uint64_t number;    /* I/Os ever */
	uint64_t credits;   /* RECVs at the peer */
	uint32_t to_check;  /* slots in that state */
	uint64_t stalled;   /* the next I/O waits: since when, or 1; 0: it does not */
	double due;
};

struct direct {
	const struct cfg *cfg;
	struct layout layout;
	struct rxfer_dev *dev;
	struct rxfer_conn **conns;
	const struct target *target;
	struct sink *sink;
	struct watch *watch;
	struct area work;  /* local memory of all slots */
	struct area check; /* where --verify fetches WRITEs back to */
	struct lane *lanes;
	struct slot *slots;
	struct rxfer_frag *frags;
	uint32_t *free;
	bool sends; /* an I/O takes RECVs of the peer */

	/* The phase. */
	uint64_t limit, deadline, now;
	double period; /* ns between the I/Os of a lane; 0: closed loop */
	bool issuing, finished;
	struct load_result *out;
	uint64_t stalls, stall_ns, bytes;
	struct peak peak;
};

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
