/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a thread and its memory were found to be, whatever was asked for (place.h, pages.h). What
 * could not be found out is empty.
 */
#ifndef BENCH_FOUND_H
#define BENCH_FOUND_H

#include <stddef.h>
#include <stdio.h>

#define FOUND_TEXT 64

/**
 * struct found - of one end, over the timed part.
 * @cpu:      of the polling thread: "3", or "moved" if it was on another at the end
 * @mem_node: that hold the pages of its memory: "0", "0+1"
 */
struct found {
	char cpu[FOUND_TEXT];
	char mem_node[FOUND_TEXT];
};

/** found_cpu() - @begin, @end: what sched_getcpu() said; negative: nothing. */
void found_cpu(struct found *f, int begin, int end);

/** found_nodes() - a look at 64 pages at most of @len bytes at @base, all over them. */
void found_nodes(struct found *f, const void *base, size_t len);

/** found_huge_pct() - the share of @len bytes at @base that is in huge pages, in percent; NAN:
 * unknown. */
double found_huge_pct(const void *base, size_t len);

/* For tests: what the two above make of what the kernel said. */

/** found_nodes_of() - @status: of each page its node, negative where it has none. */
void found_nodes_of(struct found *f, const int *status, unsigned int n);

/** found_huge_in() - @smaps: in the form of /proc/self/smaps. */
double found_huge_in(FILE *smaps, const void *base, size_t len);

#endif
