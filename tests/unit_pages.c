/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pages of each kind: what the kernel says of them, when they are touched, and refusals in words.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "prop.h"
#include "pages.h"
#include "rxfer.h"

#define PAGE 4096u
#define MIB  ((size_t)1 << 20)

static size_t pages(size_t n)
{
	return (n + PAGE - 1) / PAGE * PAGE;
}

static bool writable(const struct pages *p, size_t len)
{
	char *bytes = p->base;

	for (size_t i = 0; i < len; i += 511)
		if (bytes[i])
			return false;
	bytes[0] = bytes[len - 1] = 1;
	return true;
}

/* In /proc/self/smaps, of the mapping that begins at @start; UINT64_MAX: no such mapping or line.
 */
static uint64_t smaps(const void *start, const char *name, uint64_t *end)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long long from, to, kib;
	uint64_t found = UINT64_MAX;
	bool ours = false;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx ", &from, &to) == 2) {
			ours = from == (uintptr_t)start;
			if (ours)
				*end = to;
		} else if (ours && !strncmp(line, name, strlen(name)) &&
			   sscanf(line + strlen(name), ": %llu", &kib) == 1) {
			found = kib * 1024;
		}
	}
	fclose(f);
	return found;
}

/* Nothing may be read there. */
static bool no_access(const char *at)
{
	int fds[2];
	bool refused;

	assert_int_equal(pipe(fds), 0);
	refused = write(fds[1], at, 1) < 0 && errno == EFAULT;
	close(fds[0]);
	close(fds[1]);
	return refused;
}

static void says(const char *words)
{
	if (!strstr(rxfer_error(), words))
		fail_msg("not \"%s\": %s", words, rxfer_error());
}

static int map(uint64_t kind, size_t len, struct pages *out)
{
	return pages_map(&(struct pages_ask){kind, true, NULL}, len, out);
}

/* Three of each kind, one behind the other: all lie in mappings of their own. */
static void plain_and_transparent_pages(void **state)
{
	static const size_t lens[] = {1, PAGE, 3 * MIB + 1};
	struct pages p[2][3];
	uint64_t end;

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		uint64_t kind = i < 3 ? MEM_ANON : MEM_THP;

		if (map(kind, lens[i % 3], &p[i / 3][i % 3])) {
			assert_int_equal(kind, MEM_THP);
			assert_non_null(strstr(rxfer_error(), "transparent_hugepage"));
			skip();
		}
	}
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(smaps(p[0][i].base, "Rss", &end), pages(lens[i])); /* touched */
		assert_true(no_access((char *)p[0][i].base - 1) && no_access((char *)end));
		assert_true(smaps(p[1][i].base, "Rss", &end) >= pages(lens[i]));
		assert_true(no_access((char *)p[1][i].base - 1) && no_access((char *)end));
		assert_true(writable(&p[0][i], lens[i]) && writable(&p[1][i], lens[i]));
		assert_int_equal((uintptr_t)p[1][i].base % (2 * MIB), 0);
		assert_int_equal(smaps(p[0][i].base, "AnonHugePages", &end), 0);
		assert_int_equal(end - (uintptr_t)p[0][i].base, pages(lens[i]));
		assert_true(smaps(p[1][i].base, "AnonHugePages", &end) <= 4 * MIB);
		assert_int_equal(end - (uintptr_t)p[1][i].base, i == 2 ? 4 * MIB : 2 * MIB);
	}
	for (size_t i = 0; i < 3; i++) {
		pages_unmap(&p[0][i]);
		pages_unmap(&p[1][i]);
		assert_null(p[0][i].map);
	}
}

/* smaps has the advice as a flag: "nh" for no huge pages, "hg" for huge ones. */
static void the_advice_is_given(void **state)
{
	static const char *const flags[] = {[MEM_ANON] = " nh", [MEM_THP] = " hg"};
	struct pages p;
	char line[512];

	(void)state;
	for (uint64_t kind = MEM_ANON; kind <= MEM_THP; kind++) {
		bool ours = false, advised = false;
		unsigned long long from;
		FILE *f;

		if (map(kind, PAGE, &p))
			skip();
		f = fopen("/proc/self/smaps", "r");
		assert_non_null(f);
		while (fgets(line, sizeof(line), f)) {
			if (strchr(line, '-') && sscanf(line, "%llx-", &from) == 1)
				ours = from == (uintptr_t)p.base;
			if (ours && !strncmp(line, "VmFlags:", 8))
				advised = strstr(line, flags[kind]) != NULL;
		}
		fclose(f);
		pages_unmap(&p);
		if (!advised && access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK))
			skip();
		assert_true(advised);
	}
}

static void transparent_pages_that_are_off(void **state)
{
	(void)state;
	assert_int_equal(pages_thp_check("always [madvise] never\n"), 0);
	assert_int_equal(pages_thp_check("[always] madvise never\n"), 0);
	assert_int_equal(pages_thp_check("always madvise [never]\n"), -EOPNOTSUPP);
	assert_non_null(strstr(rxfer_error(), "echo madvise >/sys/kernel/mm/transparent_hugepage"));
	assert_int_equal(pages_thp_check(""), -EOPNOTSUPP);
	assert_non_null(strstr(rxfer_error(), "this kernel has no transparent huge pages"));
}

static void too_few_in_words(void **state)
{
	struct huge_pool pool = {2 * MIB, 7, 3};

	(void)state;
	assert_int_equal(pages_too_few(&pool, 8), -ENOMEM);
	says("8 huge pages of 2048 KiB are needed and 3 are free, 5 are missing: "
	     "sysctl vm.nr_hugepages=12,");
	pool.free = 0;
	assert_int_equal(pages_too_few(&pool, 1), -ENOMEM);
	says("1 huge page of 2048 KiB is needed and 0 are free, 1 is missing: "
	     "sysctl vm.nr_hugepages=8,");
	pool.free = 3;
	assert_int_equal(pages_too_few(&pool, 3), -ENOMEM);
	says("3 huge pages of 2048 KiB are needed and 3 are free, but not where");
}

/* One more than there is, of however many: refused at once, in numbers, and nothing is taken. */
static void a_pool_too_small(void **state)
{
	struct huge_pool pool, after;
	char words[128];
	struct pages p;

	(void)state;
	huge_pool_read(&pool);
	if (!pool.size)
		skip();
	assert_int_equal(map(MEM_HUGETLB, pool.free * pool.size + 1, &p), -ENOMEM);
	assert_null(p.map);
	snprintf(words, sizeof(words), "%llu %s free, 1 is missing: sysctl vm.nr_hugepages=%llu,",
		 (unsigned long long)pool.free, pool.free == 1 ? "is" : "are",
		 (unsigned long long)pool.total + 1);
	says(words);
	huge_pool_read(&after);
	assert_int_equal(after.free, pool.free);
}

/* ---- Pages of files ---- */

static char folder[64];

static int with_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/unit_memory-XXXXXX");
	return mkdtemp(folder) && !setenv("TMPDIR", folder, 1) ? 0 : -1;
}

static int without_folder(void **state)
{
	(void)state;
	unsetenv("TMPDIR");
	return rmdir(folder); /* nothing was left in it */
}

/* Only what is asked to be is touched, whatever it is made of. */
static void untouched_until_used(void **state)
{
	uint64_t len = 5 * PAGE + 1, end;
	struct pages p;

	(void)state;
	for (uint64_t kind = MEM_ANON; kind <= MEM_FILE; kind++) {
		if (kind == MEM_THP || kind == MEM_HUGETLB) /* may not be there */
			continue;
		for (int prefault = 0; prefault < 2; prefault++) {
			const struct pages_ask ask = {kind, prefault, NULL};

			assert_int_equal(pages_map(&ask, len, &p), 0);
			assert_int_equal(smaps(p.base, "Rss", &end), prefault ? pages(len) : 0);
			((char *)p.base)[2 * PAGE] = 1;
			assert_int_equal(smaps(p.base, "Rss", &end), prefault ? pages(len) : PAGE);
			assert_true(writable(&p, len));
			assert_int_equal(smaps(p.base, "AnonHugePages", &end), 0);
			pages_unmap(&p);
		}
	}
}

/* Of two no byte is the same one. */
static void files_of_their_own(void **state)
{
	struct pages a, b;

	(void)state;
	for (uint64_t kind = MEM_MEMFD; kind <= MEM_FILE; kind++) {
		assert_int_equal(map(kind, 2 * PAGE, &a), 0);
		assert_int_equal(map(kind, 2 * PAGE, &b), 0);
		memset(a.base, 'a', 2 * PAGE);
		assert_true(((char *)b.base)[0] == 0 && ((char *)b.base)[2 * PAGE - 1] == 0);
		pages_unmap(&a);
		pages_unmap(&b);
	}
}

/* A full disk is met by what reserves the space; here it is the limit of a file's size. */
static void no_room_for_a_file(void **state)
{
	struct rlimit was, low;
	struct pages p;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	low = was;
	low.rlim_cur = PAGE;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	assert_int_equal(map(MEM_FILE, 2 * PAGE, &p), -EFBIG);
	says("--mem file: 8.0 KiB in /tmp/unit_memory-");
	says("name another directory (TMPDIR)");
	assert_int_equal(map(MEM_MEMFD, 2 * PAGE, &p), -EFBIG);
	says("--mem memfd: 8.0 KiB: File too large");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	setenv("TMPDIR", "/nonexistent", 1);
	assert_int_equal(map(MEM_FILE, PAGE, &p), -ENOENT);
	says("--mem file: a temporary file in /nonexistent: No such file");
	setenv("TMPDIR", folder, 1);
}

static int map_named(const char *path, size_t len, struct pages *out)
{
	return pages_map(&(struct pages_ask){MEM_FILE, true, path}, len, out);
}

static void a_file_by_name(void **state)
{
	struct pages p, other;
	char path[80], byte;
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/named", folder);
	assert_int_equal(map_named(path, PAGE, &p), -ENOENT);
	says("No such file or directory: name a file of 4096 bytes");
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0 && !ftruncate(fd, PAGE));
	assert_int_equal(map_named(path, PAGE + 1, &p), -EINVAL);
	says("has 4096 bytes, and 4097 are needed: truncate -s 4097 /tmp/");
	assert_int_equal(map_named(path, PAGE, &p), 0);
	((char *)p.base)[PAGE - 1] = 'x';
	assert_true(pread(fd, &byte, 1, PAGE - 1) == 1 && byte == 'x');
	assert_int_equal(map_named(path, PAGE, &other), -EBUSY);
	says("in use by another");
	pages_unmap(&p);
	assert_int_equal(map_named(path, PAGE, &p), 0);
	assert_int_equal(((char *)p.base)[PAGE - 1], 0); /* overwritten, as it says */
	pages_unmap(&p);
	close(fd);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(map_named("/dev/null", PAGE, &p), -EINVAL);
	says("not a regular file");
	assert_int_equal(map_named(folder, PAGE, &p), -EISDIR);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, with_folder, without_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_and_transparent_pages),
		cmocka_unit_test(the_advice_is_given),
		cmocka_unit_test(transparent_pages_that_are_off),
		cmocka_unit_test(too_few_in_words),
		cmocka_unit_test(a_pool_too_small),
		IN_FOLDER(untouched_until_used),
		IN_FOLDER(files_of_their_own),
		IN_FOLDER(no_room_for_a_file),
		IN_FOLDER(a_file_by_name),
	};

	return cmocka_run_group_tests_name("unit_pages", tests, NULL, NULL);
}
