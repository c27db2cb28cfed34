/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pages, kind by kind.
 *
 * Plain and transparent huge pages lie between two pages without access: the kernel joins mappings
 * of one kind that adjoin, and then nobody could tell which huge pages are whose. Huge pages out of
 * the pool are never joined, nor are those of two files.
 *
 * Nobody but us knows of the file that memory is made of: it has a name for a moment only, and its
 * space is reserved before it is mapped, as a page that finds no room later on ends the process. A
 * file that the user names is another matter: what he does to it is up to him.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "pages.h"
#include "rxfer.h"

#define THP_BYTES   (2ull << 20)
#define THP_SETTING "/sys/kernel/mm/transparent_hugepage/enabled"

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

#define USE_LESS "use less (--depth, --size, --qps)"

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static uint64_t plain_page(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static int no_memory(size_t len)
{
	return rxfer_fail(ENOMEM, "no %s of memory: " USE_LESS, rxfer_size(len).s);
}

/* ---- Plain pages, and transparent huge ones ---- */

/* @len bytes at a multiple of @align, and at least a page without access on either side. */
static int map_between(size_t len, size_t align, struct pages *out)
{
	size_t guard = plain_page();
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

/* A kernel without transparent huge pages does not know the word, and needs none. */
static void stay_plain(void *base, size_t len)
{
	madvise(base, len, MADV_NOHUGEPAGE);
}

static int map_anon(const struct pages_ask *ask, size_t len, struct pages *out)
{
	size_t page = plain_page();
	int rc = map_between(round_up(len, page), page, out);

	(void)ask;
	if (!rc)
		stay_plain(out->base, round_up(len, page));
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

static uint64_t thp_page(void)
{
	return THP_BYTES;
}

static int map_thp(const struct pages_ask *ask, size_t len, struct pages *out)
{
	int err, rc = thp_check();

	(void)ask;
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
		"--mem hugetlb: %s of %llu KiB %s needed and %llu %s free, %llu %s missing: sysctl vm.nr_hugepages=%llu, or " USE_LESS,
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

static uint64_t huge_page(void)
{
	struct huge_pool pool;

	huge_pool_read(&pool);
	return pool.size ? pool.size : plain_page(); /* without any, it will be refused */
}

static int map_pool(size_t len, struct huge_pool *pool, struct pages *out)
{
	out->map_len = round_up(len, pool->size);
	out->base = out->map = mmap(NULL, out->map_len, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (out->map != MAP_FAILED)
		return 0;
	huge_pool_read(pool); /* somebody else may just have been faster */
	return pages_too_few(pool, out->map_len / pool->size);
}

/* That the pages can be had is found out by having them. Untouched are those of another mapping,
 * for which the kernel has as many put by. */
static int map_hugetlb(const struct pages_ask *ask, size_t len, struct pages *out)
{
	struct huge_pool pool;
	int rc;

	huge_pool_read(&pool);
	if (!pool.size)
		return rxfer_fail(
			EOPNOTSUPP,
			"--mem hugetlb: this kernel has no huge pages (CONFIG_HUGETLBFS): take --mem thp or anon");
	rc = map_pool(len, &pool, out);
	if (rc)
		return rc;
	rc = populate(out, &pool);
	if (rc || !ask->prefault)
		munmap(out->map, out->map_len);
	if (rc || ask->prefault)
		return rc;
	return map_pool(len, &pool, out);
}

/* ---- Pages of a file ---- */

/* All of the file @fd, which is closed: the mapping keeps it, and a lock on it. */
static int map_shared(int fd, size_t len, const char *kind, struct pages *out)
{
	int err;

	out->map_len = round_up(len, plain_page());
	out->base = out->map = mmap(NULL, out->map_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	err = errno;
	close(fd);
	if (out->map == MAP_FAILED)
		return rxfer_fail(err, "--mem %s: mapping %s: %s", kind, rxfer_size(len).s,
				  strerror(err));
	stay_plain(out->map, out->map_len);
	return 0;
}

static int map_memfd(const struct pages_ask *ask, size_t len, struct pages *out)
{
	int fd = memfd_create("rxfer-bench", MFD_CLOEXEC), err;

	(void)ask;
	if (fd < 0)
		return rxfer_fail(errno, "--mem memfd: memfd_create: %m");
	if (!ftruncate(fd, (off_t)len))
		return map_shared(fd, len, "memfd", out);
	err = errno;
	close(fd);
	return rxfer_fail(err, "--mem memfd: %s: %s: " USE_LESS, rxfer_size(len).s, strerror(err));
}

static int make_temporary(size_t len, int *fd)
{
	const char *given = getenv("TMPDIR"), *dir = given && given[0] ? given : "/var/tmp";
	char path[PATH_MAX];
	int err;

	snprintf(path, sizeof(path), "%s/rxfer-bench-XXXXXX", dir);
	*fd = mkostemp(path, O_CLOEXEC);
	if (*fd < 0)
		return rxfer_fail(
			errno,
			"--mem file: a temporary file in %s: %m: name another directory (TMPDIR)",
			dir);
	unlink(path);
	err = posix_fallocate(*fd, 0, (off_t)len);
	if (!err)
		return 0;
	close(*fd);
	return rxfer_fail(err,
			  "--mem file: %s in %s: %s: name another directory (TMPDIR), or " USE_LESS,
			  rxfer_size(len).s, dir, strerror(err));
}

/* May memory be made of the file? Two who did that at once would have each other's bytes. */
static int check_named(const char *path, size_t len, int fd)
{
	struct statfs fs;
	struct stat st;
	int err;

	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return rxfer_fail(errno, "--mem-file %s: %m", path);
	if (!S_ISREG(st.st_mode))
		return rxfer_fail(EINVAL,
				  "--mem-file %s: not a regular file: name one of %zu bytes", path,
				  len);
	if (fs.f_type == HUGETLBFS_MAGIC)
		return rxfer_fail(EINVAL, "--mem-file %s: on hugetlbfs: take --mem hugetlb", path);
	if ((size_t)st.st_size < len)
		return rxfer_fail(
			EINVAL,
			"--mem-file %s: has %llu bytes, and %zu are needed: truncate -s %zu %s, or " USE_LESS,
			path, (unsigned long long)st.st_size, len, len, path);
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return rxfer_fail(EBUSY,
				  "--mem-file %s: in use by another rxfer-bench: name another file",
				  path);
	err = posix_fallocate(fd, 0, (off_t)len); /* it may have holes */
	return err ? rxfer_fail(err, "--mem-file %s: reserving %s: %s", path, rxfer_size(len).s,
				strerror(err))
		   : 0;
}

static int open_named(const char *path, size_t len, int *fd)
{
	int rc;

	*fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (*fd < 0)
		return rxfer_fail(
			errno,
			"--mem-file %s: %m: name a file of %zu bytes that may be read and written",
			path, len);
	rc = check_named(path, len, *fd);
	if (rc)
		close(*fd);
	return rc;
}

static int map_file(const struct pages_ask *ask, size_t len, struct pages *out)
{
	bool named = ask->file && ask->file[0];
	int fd, rc = named ? open_named(ask->file, len, &fd) : make_temporary(len, &fd);

	return rc ? rc : map_shared(fd, len, "file", out);
}

/* ---- Any ---- */

static const struct kind {
	const char *name;
	uint64_t (*page)(void); /* bytes that it comes in */
	bool pooled;
	int (*map)(const struct pages_ask *ask, size_t len, struct pages *out);
} kinds[] = {
	[MEM_ANON] = {"anon", plain_page, false, map_anon},
	[MEM_THP] = {"thp", thp_page, false, map_thp},
	[MEM_HUGETLB] = {"hugetlb", huge_page, true, map_hugetlb},
	[MEM_MEMFD] = {"memfd", plain_page, false, map_memfd},
	[MEM_FILE] = {"file", plain_page, false, map_file},
};

const char *pages_kind(unsigned int kind)
{
	return kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[kind].name : NULL;
}

bool pages_pooled(uint64_t kind)
{
	return kinds[kind].pooled;
}

uint64_t pages_rounded(uint64_t kind, uint64_t len)
{
	return round_up(len, kinds[kind].page());
}

int pages_map(const struct pages_ask *ask, size_t len, struct pages *out)
{
	struct pages p = {NULL};
	int rc = kinds[ask->kind].map(ask, len, &p);

	*out = (struct pages){NULL};
	if (rc)
		return rc;
	if (ask->prefault)
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
