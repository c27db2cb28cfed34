/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pages of three kinds.
 *
 * Plain and transparent huge pages lie between two pages without access: the kernel joins mappings
 * of one kind that adjoin, and then nobody could tell which huge pages are whose. Huge pages out of
 * the pool are never joined.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "pages.h"
#include "rxfer.h"

#define THP_BYTES   (2ull << 20)
#define THP_SETTING "/sys/kernel/mm/transparent_hugepage/enabled"

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static int no_memory(size_t len)
{
	return rxfer_fail(ENOMEM, "no %s of memory: use less (--depth, --size, --qps)",
			  rxfer_size(len).s);
}

/* ---- Plain pages, and transparent huge ones ---- */

/* @len bytes at a multiple of @align, and at least a page without access on either side. */
static int map_between(size_t len, size_t align, struct pages *out)
{
	size_t guard = (size_t)sysconf(_SC_PAGESIZE);
	char *base;

	out->map_len = len + align + 2 * guard;
	out->map = mmap(NULL, out->map_len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (out->map == MAP_FAILED)
		return no_memory(len);
	base = out->map;
	base += round_up((uintptr_t)base + guard, align) - (uintptr_t)base;
	if (mprotect(base, len, PROT_READ | PROT_WRITE)) {
		munmap(out->map, out->map_len);
		return no_memory(len);
	}
	out->base = base;
	return 0;
}

static int map_anon(size_t len, struct pages *out)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int rc = map_between(round_up(len, page), page, out);

	/* A kernel without transparent huge pages does not know the word, and needs none. */
	if (!rc)
		madvise(out->base, round_up(len, page), MADV_NOHUGEPAGE);
	return rc;
}

int pages_thp_check(const char *setting)
{
	if (!setting[0])
		return rxfer_fail(
			EOPNOTSUPP,
			"--mem thp: this kernel has no transparent huge pages (there is no %s): take --mem hugetlb or anon",
			THP_SETTING);
	if (strstr(setting, "[never]"))
		return rxfer_fail(
			EOPNOTSUPP,
			"--mem thp: transparent huge pages are switched off (%s is never): as root, echo madvise >%s, or take another --mem",
			THP_SETTING, THP_SETTING);
	return 0;
}

static int thp_check(void)
{
	FILE *f = fopen(THP_SETTING, "re");
	char line[128] = "";

	if (f && !fgets(line, sizeof(line), f))
		line[0] = '\0';
	if (f)
		fclose(f);
	return pages_thp_check(line);
}

static int map_thp(size_t len, struct pages *out)
{
	int err, rc = thp_check();

	if (!rc)
		rc = map_between(round_up(len, THP_BYTES), THP_BYTES, out);
	if (rc || !madvise(out->base, round_up(len, THP_BYTES), MADV_HUGEPAGE))
		return rc;
	err = errno;
	pages_unmap(out);
	return rxfer_fail(err, "--mem thp: the kernel does not take the advice (madvise: %s)",
			  strerror(err));
}

/* ---- Huge pages out of the pool ---- */

void huge_pool_read(struct huge_pool *out)
{
	unsigned long long kib = 0, total = 0, idle = 0, promised = 0;
	FILE *f = fopen("/proc/meminfo", "re");
	char line[128];

	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "HugePages_Total: %llu", &total);
		sscanf(line, "HugePages_Free: %llu", &idle);
		sscanf(line, "HugePages_Rsvd: %llu", &promised);
		sscanf(line, "Hugepagesize: %llu kB", &kib);
	}
	if (f)
		fclose(f);
	*out = (struct huge_pool){kib * 1024, total, idle > promised ? idle - promised : 0};
}

static const char *are(uint64_t n)
{
	return n == 1 ? "is" : "are";
}

int pages_too_few(const struct huge_pool *pool, uint64_t needed)
{
	uint64_t missing = needed - pool->free;

	if (needed <= pool->free)
		return rxfer_fail(
			ENOMEM,
			"--mem hugetlb: %s of %llu KiB %s needed and %llu %s free, but not where this process may take them: see --numa, numactl and the hugetlb limits of its cgroup",
			rxfer_count(needed, "huge page").s, (unsigned long long)pool->size / 1024,
			are(needed), (unsigned long long)pool->free, are(pool->free));
	return rxfer_fail(
		ENOMEM,
		"--mem hugetlb: %s of %llu KiB %s needed and %llu %s free, %llu %s missing: sysctl vm.nr_hugepages=%llu, or use less (--depth, --size, --qps)",
		rxfer_count(needed, "huge page").s, (unsigned long long)pool->size / 1024,
		are(needed), (unsigned long long)pool->free, are(pool->free),
		(unsigned long long)missing, are(missing),
		(unsigned long long)(pool->total + missing));
}

/*
 * The pool may be empty on the one NUMA node that is permitted though it is not elsewhere, and
 * touching such a page ends the process. Asked for by madvise() it is an error; older kernels do
 * not know how to be asked.
 */
static int populate(const struct pages *p, const struct huge_pool *pool)
{
	if (!madvise(p->base, p->map_len, MADV_POPULATE_WRITE) || errno == EINVAL)
		return 0;
	return pages_too_few(pool, p->map_len / pool->size);
}

static int map_hugetlb(size_t len, struct pages *out)
{
	struct huge_pool pool;
	int rc;

	huge_pool_read(&pool);
	if (!pool.size)
		return rxfer_fail(
			EOPNOTSUPP,
			"--mem hugetlb: this kernel has no huge pages (CONFIG_HUGETLBFS): take --mem thp or anon");
	out->map_len = round_up(len, pool.size);
	out->base = out->map = mmap(NULL, out->map_len, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (out->map == MAP_FAILED) {
		huge_pool_read(&pool); /* somebody else may just have been faster */
		return pages_too_few(&pool, out->map_len / pool.size);
	}
	rc = populate(out, &pool);
	if (rc)
		munmap(out->map, out->map_len);
	return rc;
}

/* ---- Any ---- */

uint64_t pages_rounded(uint64_t kind, uint64_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct huge_pool pool;

	if (kind == MEM_THP)
		page = THP_BYTES;
	if (kind == MEM_HUGETLB) {
		huge_pool_read(&pool);
		page = pool.size ? pool.size : page; /* without any, it will be refused */
	}
	return round_up(len, page);
}

int pages_map(uint64_t kind, size_t len, struct pages *out)
{
	static int (*const map[])(size_t len, struct pages * out) = {
		[MEM_ANON] = map_anon, [MEM_THP] = map_thp, [MEM_HUGETLB] = map_hugetlb};
	struct pages p = {NULL};
	int rc = map[kind](len, &p);

	*out = (struct pages){NULL};
	if (rc)
		return rc;
	memset(p.base, 0, len); /* every page is there before any clock runs */
	*out = p;
	return 0;
}

void pages_unmap(struct pages *p)
{
	if (p->map)
		munmap(p->map, p->map_len);
	*p = (struct pages){NULL};
}
