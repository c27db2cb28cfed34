/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A work request has one remote address, up to sge_max local pieces, and up to bytes_max bytes. Two
 * lists that are cut in different places therefore become a walk: each step takes what is left of
 * the current local and of the current remote piece, whichever is shorter, and no more than the WR
 * has room for. A new WR starts where the remote piece is used up, or the SGEs are, or the bytes.
 *
 * Where a WR ends at the latest is a place in its remote piece, known when it begins: a step then
 * looks at that place, in place of the piece's end, and costs the same with a limit and without.
 *
 * How many WRs at most: each remote piece has a last one, nremote in all. Of the others, those that
 * end as their bytes are used up have bytes_max each. Those that end for want of SGEs alone end
 * sge_max local pieces each, and these have a byte each at least; no more than nlocal - 1 pieces
 * end before the last WR of a remote piece does. As SGEs that do not fit into the bytes end no WR,
 * m = min(sge_max, bytes_max) is what counts. The most come about if as many as can be end for want
 * of SGEs, s = (nlocal - 1) / m, with as few bytes as can be: what is left of the bytes is full
 * WRs.
 */
#include <stddef.h>
#include "sgl.h"

void rxfer_cut_init(struct rxfer_cut *cut, const struct rxfer_seg *local, uint32_t nlocal,
		    const struct rxfer_seg *remote, uint32_t nremote, uint32_t sge_max,
		    uint32_t bytes_max)
{
	*cut = (struct rxfer_cut){
		.local = local,
		.local_end = local + nlocal,
		.remote = nremote ? remote : NULL,
		.remote_end = nremote ? remote + nremote : NULL,
		.sge_max = sge_max,
		.bytes_max = bytes_max,
	};
}

/* Of the remote piece, the end; before it, where a WR that begins here has all its bytes. */
static uint32_t end_of_wr(const struct rxfer_cut *cut)
{
	uint32_t left = cut->remote->len - cut->remote_off;

	return left <= cut->bytes_max ? cut->remote->len : cut->remote_off + cut->bytes_max;
}

/* Fill in the remote side of a piece and bound its length by it. */
static void take_remote(struct rxfer_cut *cut, struct rxfer_piece *piece)
{
	const struct rxfer_seg *r = cut->remote;
	uint32_t left;

	if (piece->starts_wr)
		cut->wr_end = end_of_wr(cut);
	left = cut->wr_end - cut->remote_off;
	piece->remote_addr = r->addr + cut->remote_off;
	piece->rkey = r->key;
	if (piece->local.len > left)
		piece->local.len = left;
	cut->remote_off += piece->local.len;
}

/* Empty pieces carry nothing, and become nothing. */
static void skip_empty(struct rxfer_cut *cut)
{
	while (cut->local != cut->local_end && cut->local->len == 0)
		cut->local++;
	while (cut->remote != cut->remote_end && cut->remote->len == 0) {
		cut->remote++;
		cut->sge_left = 0;
	}
}

bool rxfer_cut_next(struct rxfer_cut *cut, struct rxfer_piece *piece)
{
	const struct rxfer_seg *l;

	skip_empty(cut);
	l = cut->local;
	if (l == cut->local_end || (cut->remote && cut->remote == cut->remote_end))
		return false;
	piece->local.addr = l->addr + cut->local_off;
	piece->local.len = l->len - cut->local_off;
	piece->local.key = l->key;
	piece->starts_wr = cut->sge_left == 0;
	cut->sge_left = (piece->starts_wr ? cut->sge_max : cut->sge_left) - 1;
	if (cut->remote)
		take_remote(cut, piece);

	cut->local_off += piece->local.len;
	if (cut->local_off == l->len) {
		cut->local++;
		cut->local_off = 0;
	}
	if (cut->remote && cut->remote_off == cut->wr_end) {
		cut->sge_left = 0;
		if (cut->wr_end == cut->remote->len) {
			cut->remote++;
			cut->remote_off = 0;
		}
	}
	return true;
}

uint32_t rxfer_cut_worst(uint32_t nlocal, uint32_t nremote, uint32_t sge_max, uint64_t bytes,
			 uint32_t bytes_max)
{
	uint32_t m = nremote && sge_max > bytes_max ? bytes_max : sge_max, wrs;
	uint64_t least;

	if (nlocal == 0)
		return 0;
	wrs = (nremote ? nremote : 1) + (nlocal - 1) / m;
	least = (uint64_t)nremote + (uint64_t)((nlocal - 1) / m) * m;
	if (nremote && bytes > least)
		wrs += (uint32_t)((bytes - least) / bytes_max);
	return wrs;
}

uint32_t rxfer_cut_count(const struct rxfer_cut *cut)
{
	struct rxfer_cut walk = *cut;
	struct rxfer_piece piece;
	uint32_t wrs = 0;

	while (rxfer_cut_next(&walk, &piece))
		wrs += piece.starts_wr;
	return wrs;
}

/* A piece goes on where the list's last one ended, or is a new one. Two pieces of the caller's that
 * happen to adjoin stay two. */
static void append(struct rxfer_seg *list, uint32_t *n, const struct rxfer_seg *piece, bool goes_on)
{
	if (goes_on && *n)
		list[*n - 1].len += piece->len;
	else
		list[(*n)++] = *piece;
}

uint32_t rxfer_cut_take(struct rxfer_cut *cut, uint32_t wrs, struct rxfer_part *part)
{
	struct rxfer_cut next = *cut;
	struct rxfer_piece piece;
	uint32_t taken = 0;

	part->nlocal = part->nremote = 0;
	cut->sge_left = next.sge_left = 0;
	for (;;) {
		bool in_local, in_remote;

		in_local = next.local_off != 0;
		in_remote = next.remote_off != 0;
		if (!rxfer_cut_next(&next, &piece) || taken + piece.starts_wr > wrs)
			return taken;
		taken += piece.starts_wr;
		append(part->local, &part->nlocal, &piece.local, in_local);
		if (cut->remote)
			append(part->remote, &part->nremote,
			       &(struct rxfer_seg){piece.remote_addr, piece.local.len, piece.rkey},
			       in_remote);
		*cut = next;
	}
}

uint64_t rxfer_sgl_total(const struct rxfer_seg *list, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += list[i].len;
	return sum;
}
