/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the load patterns know of each other. */
#ifndef BENCH_LOAD_INTERNAL_H
#define BENCH_LOAD_INTERNAL_H

#include "access.h"
#include "load.h"
#include "peak.h"
#include "touch.h"

/* I/Os that one completion proves are handed up together, so many of them at once; and so much is
 * done on one QP before the next one has its turn. */
#define BURST 32

/*
 * struct turn - what there is of each QP to be issued, and what was: the first member of whatever a
 * load keeps for a QP.
 * @left:      I/Os that may still be issued in this phase; 0 stops it
 * @number:    I/Os ever issued; @first: the same, when this phase began
 * @completed: I/Os, in this phase
 * @stalled:   the next I/O waits: since when, or 1; 0: it does not
 * @due:       when its next I/O has to start (--rate), by clock_ticks()
 */
struct turn {
	uint64_t left;
	uint64_t number;
	uint64_t first;
	uint64_t completed;
	uint64_t stalled;
	double due;
};

/*
 * struct load_ops - a load pattern.
 * @pass:   issue what may be, take what is done, on one lane: how much was done, or -errno
 * @ended:  all was issued: is it complete, and the queue proven empty? Does what that needs. 0 or
 *          -errno
 * @begin, @end: of a timed part or a warm-up: what the pattern alone counts; NULL: nothing
 */
struct load_ops {
	int (*pass)(struct load *l, struct turn *turn);
	int (*ended)(struct load *l, struct turn *turn, bool *yes);
	void (*begin)(struct load *l);
	void (*end)(struct load *l, struct load_result *out);
	void (*free)(struct load *l);
};

/*
 * struct load - what all load patterns have; the first member of theirs.
 * @lanes:     @nlanes of them, @stride bytes apart; each begins with its struct turn
 * @messages:  that an I/O sends to the peer's sink
 * @answered:  each I/O is answered, so that who waits for one waits for the peer
 * @timed:     a start time for each I/O; @sampling: and its latency counts
 * @deadline:  by @clock; UINT64_MAX: none
 * @period:    ticks between the I/Os of a lane; 0: closed loop
 * @now:       with a period: at the begin of this pass
 * @seen:      the watch's latest look at the clock that was attended to
 * @work:      local memory of all slots, or the working set
 * @access:    of the pieces of that
 * @touch:     what is done to an I/O's before it begins
 */
struct load {
	const struct load_ops *ops;
	char *lanes;
	size_t stride;
	uint32_t nlanes;
	uint32_t messages;
	bool answered;
	bool timed, sampling, finished;
	struct clock clock;
	uint64_t deadline;
	double period;
	uint64_t now;
	uint64_t seen;
	uint64_t bytes, stalls, stall_ns;
	struct load_result *out;
	struct peak peak;

	const struct cfg *cfg;
	struct layout layout;
	struct rxfer_conn **conns;
	struct watch *watch;
	struct area work;
	struct access access;
	struct touch touch;
};

/** load_init() - all but @ops, @lanes, @messages and @work. */
void load_init(struct load *l, const struct cfg *cfg, const struct layout *layout,
	       struct rxfer_conn **conns, struct watch *watch);

/** load_work_bytes() - how large @work is: a piece for each slot, or the working set in whole
 * pieces. */
uint64_t load_work_bytes(const struct cfg *cfg, const struct layout *layout);

/** load_make_work() - @work, and @access to it; the first pieces are the slots'. 0 or -errno.
 * load_drop_work() in any case. */
int load_make_work(struct load *l, struct rxfer_dev *dev, unsigned int rights);
void load_drop_work(struct load *l);

/** load_place() - with a working set, before an I/O: its memory is another piece from now on.
 * @piece: that the @n fragments are in now; what is to be kept of them is their place in it */
static inline void load_place(struct load *l, uint32_t *piece, struct rxfer_frag *frags, uint32_t n)
{
	uint32_t next = access_move(&l->access, *piece);
	int64_t by = ((int64_t)next - *piece) * (int64_t)l->layout.slot;

	for (uint32_t i = 0; i < n; i++)
		frags[i].addr = (char *)frags[i].addr + by;
	*piece = next;
}

static inline struct turn *load_turn(const struct load *l, uint32_t qp)
{
	return (struct turn *)(void *)(l->lanes + qp * l->stride);
}

/** load_may_issue() - leaves to be seen whether there is a slot. */
static inline bool load_may_issue(const struct load *l, const struct turn *turn)
{
	return turn->left && (l->period == 0 || (uint64_t)turn->due <= l->now);
}

/** load_stall() - a free slot, but no SQEs or no RECV at the peer: counted once for each I/O that
 * it happens to. load_unstall() - it has got them. */
void load_stall(struct load *l, struct turn *turn);
void load_unstall(struct load *l, struct turn *turn);

/** load_stop_issuing() - nothing more in this phase. */
void load_stop_issuing(struct load *l);

#endif
