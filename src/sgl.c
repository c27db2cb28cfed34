/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A work request has one remote address and up to sge_max local pieces. Two lists that are cut in
 * different places therefore become a walk: each step takes what is left of the current local and
 * of the current remote piece, whichever is shorter. A new WR starts where the remote piece is used
 * up or the SGEs are.
 *
 * Each remote piece i with p_i steps becomes ceil(p_i / sge_max) WRs, and there are at most nlocal
 * + nremote - 1 steps. Summed up, with ceil(p / m) <= (p + m - 1) / m, that is at most nremote +
 * (nlocal - 1) / sge_max.
 */
#include <stddef.h>
#include "sgl.h"

void rxfer_cut_init(struct rxfer_cut *cut, const struct rxfer_seg *local, uint32_t nlocal,
		    const struct rxfer_seg *remote, uint32_t nremote, uint32_t sge_max)
{
	*cut = (struct rxfer_cut){
		.local = local,
		.local_end = local + nlocal,
		.remote = nremote ? remote : NULL,
		.remote_end = nremote ? remote + nremote : NULL,
		.sge_max = sge_max,
	};
}

/* Fill in the remote side of a piece and bound its length by it. */
static void take_remote(struct rxfer_cut *cut, struct rxfer_piece *piece)
{
	const struct rxfer_seg *r = cut->remote;
	uint32_t left = r->len - cut->remote_off;

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
	if (cut->remote)
		take_remote(cut, piece);
	piece->starts_wr = cut->sge_left == 0;
	cut->sge_left = (piece->starts_wr ? cut->sge_max : cut->sge_left) - 1;

	cut->local_off += piece->local.len;
	if (cut->local_off == l->len) {
		cut->local++;
		cut->local_off = 0;
	}
	if (cut->remote && cut->remote_off == cut->remote->len) {
		cut->remote++;
		cut->remote_off = 0;
		cut->sge_left = 0;
	}
	return true;
}

uint32_t rxfer_cut_worst(uint32_t nlocal, uint32_t nremote, uint32_t sge_max)
{
	if (nlocal == 0)
		return 0;
	return (nremote ? nremote : 1) + (nlocal - 1) / sge_max;
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
