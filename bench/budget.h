/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory that all sessions of a server together may have for runs. A run takes its share before
 * anything is allocated, and gives it back when all is gone. Sessions are threads: the two counts
 * are atomic, and there is no lock.
 */
#ifndef BENCH_BUDGET_H
#define BENCH_BUDGET_H

#include <stdint.h>

/**
 * struct budget - in bytes. Zeroed to begin with.
 * @limit:    of --max-memory; 0: none but what the machine has
 * @used:     by all runs
 * @promised: of plain memory, to runs that have not touched theirs yet: what the kernel calls
 *            available still includes it
 */
struct budget {
	uint64_t limit;
	uint64_t used;
	uint64_t promised;
};

/**
 * struct share - what one run has of it.
 * @bytes:    in all; 0: nothing was taken
 * @promised: of these, still to be touched
 */
struct share {
	uint64_t bytes;
	uint64_t promised;
};

/**
 * budget_take() - a share of @bytes, or -ENOMEM with the numbers. @b NULL: nothing is counted.
 * @plain:     of these, out of plain memory, and not out of the pool of huge pages
 * @available: plain memory that the machine has to give (memory_available())
 */
int budget_take(struct budget *b, uint64_t bytes, uint64_t plain, uint64_t available,
		struct share *out);

/** budget_settle() - the share's memory was touched: the kernel counts it from now on. */
void budget_settle(struct budget *b, struct share *s);

/** budget_give() - it is free again. */
void budget_give(struct budget *b, struct share *s);

#endif
