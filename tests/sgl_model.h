/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cutting a local and a remote list into work requests, against a model that walks byte by byte: a
 * byte begins a new SGE where it is the first of its local or remote piece, and a new WR, with an
 * SGE of its own, where it is the first of its remote piece, the SGEs of the open one are used up,
 * or its bytes are.
 */
#ifndef RXFER_TESTS_SGL_MODEL_H
#define RXFER_TESTS_SGL_MODEL_H

#include <string.h>

#include "prop.h"
#include "sgl.h"

#define PIECES 12
#define BYTES  160 /* of one list, at most */

/* struct lists - one case. */
struct lists {
	struct rxfer_seg local[PIECES], remote[PIECES];
	uint32_t nlocal, nremote, sge_max;
	uint32_t bytes_max;
};

/* struct cuts - what came of it: SGEs, and how many WRs. */
struct cuts {
	struct rxfer_piece piece[BYTES];
	uint32_t n, wrs;
};

/* Where byte @at of a list lies. False behind its end. */
static inline bool find_byte(const struct rxfer_seg *list, uint32_t n, uint64_t at, uint32_t *piece,
			     uint32_t *offset)
{
	for (uint32_t i = 0; i < n; i++) {
		if (at < list[i].len) {
			*piece = i;
			*offset = (uint32_t)at;
			return true;
		}
		at -= list[i].len;
	}
	return false;
}

/* The byte at @l and @r opens an SGE. */
static inline void model_open(const struct lists *c, struct cuts *out, uint32_t li, uint32_t loff,
			      uint32_t ri, uint32_t roff, bool starts_wr)
{
	struct rxfer_piece *p = &out->piece[out->n++];

	*p = (struct rxfer_piece){
		.local = {c->local[li].addr + loff, 0, c->local[li].key},
		.starts_wr = starts_wr,
	};
	if (c->nremote) {
		p->remote_addr = c->remote[ri].addr + roff;
		p->rkey = c->remote[ri].key;
	}
	out->wrs += starts_wr;
}

static inline void model(const struct lists *c, struct cuts *out)
{
	uint32_t li, loff, ri = 0, roff = 0, last_l = UINT32_MAX, last_r = UINT32_MAX, sges = 0;
	uint64_t bytes = 0;

	out->n = out->wrs = 0;
	for (uint64_t at = 0; find_byte(c->local, c->nlocal, at, &li, &loff); at++) {
		bool full = c->nremote && bytes == c->bytes_max, new_wr;

		if (c->nremote && !find_byte(c->remote, c->nremote, at, &ri, &roff))
			break;
		if (li != last_l || ri != last_r || full) {
			new_wr = ri != last_r || sges == c->sge_max || full;
			sges = new_wr ? 1 : sges + 1;
			bytes = new_wr ? 0 : bytes;
			model_open(c, out, li, loff, ri, roff, new_wr);
		}
		out->piece[out->n - 1].local.len++;
		bytes++;
		last_l = li;
		last_r = ri;
	}
}

/* At most BYTES pieces are taken: a walk that never ends is seen as one that is too long. */
static inline void cut(const struct lists *c, struct cuts *out)
{
	struct rxfer_piece piece;
	struct rxfer_cut walk;

	memset(&piece, 0, sizeof(piece));
	out->n = out->wrs = 0;
	rxfer_cut_init(&walk, c->local, c->nlocal, c->remote, c->nremote, c->sge_max, c->bytes_max);
	while (out->n < BYTES && rxfer_cut_next(&walk, &piece)) {
		out->wrs += piece.starts_wr;
		out->piece[out->n++] = piece;
	}
}

static inline bool same_piece(const struct rxfer_piece *a, const struct rxfer_piece *b, bool remote)
{
	return a->local.addr == b->local.addr && a->local.len == b->local.len &&
	       a->local.key == b->local.key && a->starts_wr == b->starts_wr &&
	       (!remote || (a->remote_addr == b->remote_addr && a->rkey == b->rkey));
}

/* NULL, or how the cut differs from the model. */
static inline const char *compare(const struct lists *c, const struct cuts *got,
				  const struct cuts *want)
{
	if (got->n != want->n)
		return "another number of SGEs than the model";
	if (got->wrs != want->wrs)
		return "another number of WRs than the model";
	for (uint32_t i = 0; i < got->n; i++)
		if (!same_piece(&got->piece[i], &want->piece[i], c->nremote))
			return "an SGE differs from the model's";
	return NULL;
}

static inline void show(const char *what, const struct rxfer_seg *list, uint32_t n)
{
	print_error("%s:", what);
	for (uint32_t i = 0; i < n; i++)
		print_error(" %u", list[i].len);
	print_error("\n");
}

static inline uint32_t worst(const struct lists *c)
{
	uint64_t local = rxfer_sgl_total(c->local, c->nlocal);
	uint64_t remote = rxfer_sgl_total(c->remote, c->nremote);

	return rxfer_cut_worst(c->nlocal, c->nremote, c->sge_max, local < remote ? local : remote,
			       c->bytes_max);
}

static inline const char *check(const struct lists *c)
{
	struct cuts got, want;
	const char *wrong;

	cut(c, &got);
	model(c, &want);
	wrong = compare(c, &got, &want);
	if (!wrong && got.wrs > worst(c))
		wrong = "more WRs than rxfer_cut_worst()";
	if (wrong) {
		print_error("%s, sge_max %u, bytes_max %llu\n", wrong, c->sge_max,
			    (unsigned long long)c->bytes_max);
		show("local", c->local, c->nlocal);
		show("remote", c->remote, c->nremote);
	}
	return wrong;
}

/* Pieces of the given lengths, which do not adjoin. Ends at a negative length. */
static inline uint32_t fill(struct rxfer_seg *list, const int *lengths, uint64_t base, uint32_t key)
{
	uint32_t n = 0;

	for (; lengths[n] >= 0; n++)
		list[n] = (struct rxfer_seg){base + n * 0x1000u, (uint32_t)lengths[n], key + n};
	return n;
}

#define LENGTHS(...) ((const int[]){__VA_ARGS__, -1})
#define NO_LIST	     ((const int[]){-1})

static inline struct lists make(const int *local, const int *remote, uint32_t sge_max)
{
	struct lists c = {.sge_max = sge_max, .bytes_max = UINT32_MAX};

	c.nlocal = fill(c.local, local, 0x10000, 100);
	c.nremote = fill(c.remote, remote, 0x7fff00000000, 200);
	return c;
}

/* ---- All small lists ---- */

/* The next way to write a sum as parts >= 1, in lexical order; false at the last. */
static inline bool next_parts(struct rxfer_seg *list, uint32_t n)
{
	for (uint32_t i = n - 1; i-- > 0;) {
		uint32_t behind = 0;

		for (uint32_t k = i + 1; k < n; k++)
			behind += list[k].len;
		if (behind == n - 1 - i)
			continue; /* all ones: nothing to move here */
		list[i].len++;
		for (uint32_t k = i + 1; k < n; k++)
			list[k].len = 1;
		list[n - 1].len += behind - 1 - (n - 1 - i);
		return true;
	}
	return false;
}

static inline void first_parts(struct rxfer_seg *list, uint32_t n, uint32_t sum)
{
	for (uint32_t i = 0; i < n; i++)
		list[i].len = 1;
	list[n - 1].len = sum - (n - 1);
}

/* The most WRs over all ways to cut @sum bytes into nlocal and nremote pieces; each is checked. */
static inline uint32_t most_wrs(struct lists *c, uint32_t sum)
{
	uint32_t most = 0;
	struct cuts got;

	first_parts(c->local, c->nlocal, sum);
	do {
		first_parts(c->remote, c->nremote, sum);
		do {
			cut(c, &got);
			assert_null(check(c));
			if (most < got.wrs)
				most = got.wrs;
		} while (next_parts(c->remote, c->nremote));
	} while (next_parts(c->local, c->nlocal));
	return most;
}

#endif
