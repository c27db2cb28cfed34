/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Scatter-gather lists: cut two lists of any length, the local and the remote one, into work
 * requests. Pure arithmetic, no verbs.
 */
#ifndef RXFER_SGL_H
#define RXFER_SGL_H

#include <stdbool.h>
#include <stdint.h>

/* struct rxfer_seg - a contiguous piece of memory under one key, ours (lkey) or the peer's (rkey).
 */
struct rxfer_seg {
	uint64_t addr;
	uint32_t len;
	uint32_t key;
};

/* struct rxfer_cut - where a walk over a local and a remote list stands. @wr_end: of the remote
 * piece, where the open WR ends at the latest. */
struct rxfer_cut {
	const struct rxfer_seg *local, *local_end;
	const struct rxfer_seg *remote, *remote_end;
	uint32_t local_off, remote_off;
	uint32_t sge_max, sge_left; /* SGEs a WR may have, and what is left in the open one */
	uint32_t wr_end;
	uint32_t bytes_max; /* of a WR */
};

/*
 * struct rxfer_piece - one SGE.
 * @starts_wr: it is the first of a new WR, whose remote side is @remote_addr under @rkey
 */
struct rxfer_piece {
	struct rxfer_seg local;
	uint64_t remote_addr;
	uint32_t rkey;
	bool starts_wr;
};

/** rxfer_cut_init() - @nremote 0 (a SEND) cuts by @sge_max alone. @sge_max and @bytes_max, of a WR,
 * are >= 1; without a limit of bytes it is UINT32_MAX, which no segment is above. */
void rxfer_cut_init(struct rxfer_cut *cut, const struct rxfer_seg *local, uint32_t nlocal,
		    const struct rxfer_seg *remote, uint32_t nremote, uint32_t sge_max,
		    uint32_t bytes_max);

/** rxfer_cut_next() - the next SGE, never an empty one; false at the end of either list. */
bool rxfer_cut_next(struct rxfer_cut *cut, struct rxfer_piece *piece);

/**
 * rxfer_cut_worst() - the most WRs that up to @bytes bytes in @nlocal and @nremote pieces can
 * become, however they lie.
 */
uint32_t rxfer_cut_worst(uint32_t nlocal, uint32_t nremote, uint32_t sge_max, uint64_t bytes,
			 uint32_t bytes_max);

/**
 * rxfer_cut_count() - how many WRs all that is left of the walk becomes. The walk stays where it
 * is.
 */
uint32_t rxfer_cut_count(const struct rxfer_cut *cut);

/* struct rxfer_part - a part of two lists, cut where WRs are. @nlocal and @nremote of each. */
struct rxfer_part {
	struct rxfer_seg *local;
	struct rxfer_seg *remote;
	uint32_t nlocal, nremote;
};

/**
 * rxfer_cut_take() - the next part of the walk: as much as becomes up to @wrs WRs.
 * @part: in: room for as many pieces as the lists had; out: the part. Cut again, with as many SGEs
 * and bytes, it becomes those WRs, or fewer.
 * Returns how many WRs it takes; 0 at the end.
 */
uint32_t rxfer_cut_take(struct rxfer_cut *cut, uint32_t wrs, struct rxfer_part *part);

/**
 * rxfer_sgl_total() - bytes in a list.
 */
uint64_t rxfer_sgl_total(const struct rxfer_seg *list, uint32_t n);

#endif
