/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pages that memory for I/O is made of (--mem). A kind that cannot be had is a failure, never
 * another kind; what transparent huge pages really gave is for found.h to say.
 */
#ifndef BENCH_PAGES_H
#define BENCH_PAGES_H

#include "opt.h"

/** pages_kind() - the name of one of enum cfg_mem; NULL behind the last. */
const char *pages_kind(unsigned int kind);

/** pages_pooled() - are they out of a pool, and not of what memory is available? */
bool pages_pooled(uint64_t kind);

/**
 * struct pages_ask - what is to be had.
 * @kind:     enum cfg_mem. anon: pages of the plain size, whatever the kernel would prefer; thp: it
 * is advised to take huge ones; hugetlb: huge ones of the default size; memfd: plain ones that are
 * shared; file: those of a file in the page cache, likewise
 * @prefault: touch them
 * @file:     file: the path of the one to take, which is overwritten; NULL, empty: a temporary one
 */
struct pages_ask {
	uint64_t kind;
	bool prefault;
	const char *file;
};

/* struct pages - a mapping; @base is where what was asked for begins. */
struct pages {
	void *base;
	void *map; /* the whole of it, with what is around */
	size_t map_len;
};

/** pages_map() - @len bytes, above 0. Returns 0 or -errno; nothing is left in failure. */
int pages_map(const struct pages_ask *ask, size_t len, struct pages *out);
void pages_unmap(struct pages *p);

/** pages_rounded() - what @len bytes of that kind really take. */
uint64_t pages_rounded(uint64_t kind, uint64_t len);

/**
 * struct huge_pool - the kernel's huge pages of the default size.
 * @size:  bytes of one; 0: the kernel has none
 * @total: in the pool, @free: of these, neither in use nor promised to somebody
 */
struct huge_pool {
	uint64_t size, total, free;
};
void huge_pool_read(struct huge_pool *out);

/* For tests: the words of a refusal. Both return -errno. */

/** pages_too_few() - @needed huge pages are more than @pool has free. */
int pages_too_few(const struct huge_pool *pool, uint64_t needed);

/** pages_thp_check() - @setting: the line in .../transparent_hugepage/enabled. 0 where it permits
 * them. */
int pages_thp_check(const char *setting);

#endif
