/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which piece of a working set the next I/O takes: --access. No pointers, no memory of I/Os; the
 * essay is on top of access.c.
 */
#ifndef BENCH_ACCESS_H
#define BENCH_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

enum access_order { ACCESS_SEQ, ACCESS_RAND, ACCESS_ZIPF };

struct access_column {
	uint32_t keep, other;
};

/*
 * struct access - @pieces of a working set; 0: there is none.
 * @order: enum access_order; ACCESS_SEQ may be taken whatever it was made for
 * @next:  the next one in order
 * @state: of the random numbers, the same ones in each run
 * @taken: a bit for each piece that an I/O has
 * @column: ACCESS_ZIPF: one for each piece
 */
struct access {
	uint32_t pieces;
	uint32_t next;
	uint64_t order;
	uint64_t state;
	uint64_t *taken;
	struct access_column *column;
};

/**
 * access_init() - the first @held of 1 to INT32_MAX @pieces are taken. 0, or -ENOMEM, -E2BIG; then
 * there is nothing to free. access_free() - also of one that is all zeros.
 */
int access_init(struct access *a, enum access_order order, uint64_t pieces, uint64_t held);
void access_free(struct access *a);

/** access_move() - hot. An I/O gives up @piece, and gets another one, which may be the same. */
uint32_t access_move(struct access *a, uint32_t piece);

#endif
