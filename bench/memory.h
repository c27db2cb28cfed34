/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where everything lies in an end's memory. Both sides compute the same layout from the same
 * settings; only a base address and a key travel.
 */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include "opt.h"
#include "pages.h"
#include "rxfer.h"

/**
 * struct layout - sizes in bytes and counts, per QP unless it says otherwise.
 * @slot:     of an I/O's local memory, from one slot to the next: fragments and gaps, whole pages
 * @target:   of an I/O's memory at the peer (READ, WRITE), from one slot to the next; with --verify
 * there is room for a READ at another offset each time
 * All three begin with cfg->misalign bytes that are left out.
 * @message:  of one RECV buffer (SEND)
 * @messages: that one SEND I/O becomes; one for each WRITE with immediate data
 * @recvs:    RECVs the receiver of them keeps posted: twice what can be in flight, so that credits
 * that come back half a queue at a time never stall the sender
 */
struct layout {
	size_t slot;
	size_t target;
	size_t message;
	uint32_t messages;
	uint32_t recvs;
};

#define TARGET_SLACK                                                                               \
	4096 /* bytes of @target beyond the I/O with --verify; offsets are multiples of 8 below it \
	      */

void layout_make(const struct cfg *cfg, struct layout *out);

/**
 * layout_allowance() - ns that setting up so much memory may take beyond the usual time to answer.
 */
uint64_t layout_allowance(const struct cfg *cfg, const struct layout *l);

/** layout_frags() - the cfg->frags fragments of the I/O whose slot begins at @base. */
void layout_frags(const struct cfg *cfg, void *base, struct rxfer_frag *out);

/** layout_regions() - the contiguous runs that an I/O's memory is in, and the bytes of the whole
 * pages that each of them touches. */
void layout_regions(const struct cfg *cfg, uint64_t *runs, uint64_t *bytes);

/**
 * struct need - memory that something will take, before it is made: @all of it, in bytes, and what
 * of this is @plain, not out of the pool of huge pages.
 */
struct need {
	uint64_t all, plain;
};

/** need_add() - an area of @len bytes. @kind: enum cfg_mem */
void need_add(struct need *n, uint64_t kind, uint64_t len);

/** memory_available() - what the kernel thinks can be had without swapping, where this thread may
 * have it. */
uint64_t memory_available(void);

/** memory_fits() - is there so much to be had at once? 0; -ENOMEM with the numbers. */
int memory_fits(uint64_t len);

/* struct area - memory of this end, allocated, touched (--prefault) and declared. */
struct area {
	char *base;
	size_t len;
	struct rxfer_mem *mem;
	struct pages pages;
};

/**
 * area_make() - of plain pages; area_make_io() - for the bytes of I/Os, of the pages that --mem
 * and --prefault ask for. 0 or -errno; nothing is left in failure. @len 0: an empty area.
 */
int area_make(struct rxfer_dev *dev, size_t len, unsigned int rights, struct area *out);
int area_make_io(struct rxfer_dev *dev, const struct cfg *cfg, size_t len, unsigned int rights,
		 struct area *out);
void area_drop(struct area *a);

#endif
