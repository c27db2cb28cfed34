/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where threads and pages were found to be: what is made of the kernel's answers, and of this
 * process. */
#include <math.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "prop.h"
#include "found.h"
#include "pages.h"

static void a_thread_that_stays_and_one_that_moves(void **state)
{
	struct found f;

	(void)state;
	found_cpu(&f, 17, 17);
	assert_string_equal(f.cpu, "17");
	found_cpu(&f, 0, 0);
	assert_string_equal(f.cpu, "0");
	found_cpu(&f, 0, 1);
	assert_string_equal(f.cpu, "moved");
	found_cpu(&f, -1, 1);
	assert_string_equal(f.cpu, "");
	found_cpu(&f, 1, -1);
	assert_string_equal(f.cpu, "");
}

static const char *nodes(unsigned int n, const int *status)
{
	static struct found f;

	memset(&f, 0xee, sizeof(f));
	found_nodes_of(&f, status, n);
	return f.mem_node;
}

static void nodes_of_pages(void **state)
{
	int many[100];

	(void)state;
	assert_string_equal(nodes(0, NULL), "");
	assert_string_equal(nodes(3, (int[]){0, 0, 0}), "0");
	assert_string_equal(nodes(4, (int[]){1, 0, 1, 1}), "0+1");
	assert_string_equal(nodes(3, (int[]){-2, 12, -14}), "12");
	assert_string_equal(nodes(2, (int[]){-2, -2}), "");
	assert_string_equal(nodes(2, (int[]){5000, 3}), "3");
	for (int i = 0; i < 100; i++)
		many[i] = i;
	assert_int_equal(strlen(nodes(100, many)), 61); /* up to 9: 19 characters; then 3 each */
	assert_string_equal(nodes(100, many) + 58, "+23");
}

/* Three mappings; the middle one is in question, its neighbours adjoin. */
static double huge(const char *middle)
{
	char text[2048];
	FILE *f;
	double pct;

	snprintf(text, sizeof(text),
		 "1000-2000 rw-p 00000000 00:00 0 \nRss: 4 kB\nAnonHugePages: 4 kB\n"
		 "2000-6000 rw-p 00000000 00:00 0 \nSize: 99 kB\n%sVmFlags: rd wr\n"
		 "6000-7000 rw-p 00000000 00:00 0 \nRss: 4 kB\nPrivate_Hugetlb: 4 kB\n",
		 middle);
	f = fmemopen(text, strlen(text), "r");
	assert_non_null(f);
	pct = found_huge_in(f, (void *)0x2000, 0x4000);
	fclose(f);
	return pct;
}

static void shares_of_huge_pages(void **state)
{
	(void)state;
	assert_true(huge("Rss: 16 kB\nAnonHugePages:         0 kB\n") == 0);
	assert_true(huge("Rss: 16 kB\nAnonHugePages:         4 kB\n") == 25);
	assert_true(huge("Rss: 16 kB\nAnonHugePages: 16 kB\nPrivate_Hugetlb: 0 kB\n") == 100);
	assert_true(huge("Rss: 0 kB\nAnonHugePages: 0 kB\nPrivate_Hugetlb: 2048 kB\n") == 100);
	assert_true(huge("Rss: 0 kB\nShared_Hugetlb: 2048 kB\n") == 100);
	assert_true(huge("Rss: 16 kB\nShmemPmdMapped: 8 kB\nFilePmdMapped: 0 kB\n") == 50);
	assert_true(huge("Rss: 16 kB\nShmemPmdMapped: 0 kB\nFilePmdMapped: 12 kB\n") == 75);
	assert_true(huge("Rss: 16 kB\n") == 0);
	assert_true(isnan(huge("Rss: 0 kB\nAnonHugePages: 0 kB\n")));
	assert_true(isnan(huge("")));
}

static void this_process(void **state)
{
	struct found f;
	struct pages p;
	bool silent;

	(void)state;
	assert_int_equal(pages_map(&(struct pages_ask){MEM_ANON, true, NULL}, 300 * 4096, &p), 0);
	assert_true(found_huge_pct(p.base, 300 * 4096) == 0);
	found_nodes(&f, p.base, 300 * 4096);
	silent = !f.mem_node[0];
	if (silent)
		print_message("the kernel does not say where pages are\n");
	else
		assert_int_equal(strspn(f.mem_node, "0123456789+"), strlen(f.mem_node));
	pages_unmap(&p);
	found_nodes(&f, NULL, 0);
	assert_string_equal(f.mem_node, "");
	/* Not one page is there. */
	p.base = mmap(NULL, 300 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(p.base != MAP_FAILED);
	found_nodes(&f, p.base, 300 * 4096);
	assert_string_equal(f.mem_node, "");
	/* The latter half is: the look goes all over it. */
	memset((char *)p.base + 150 * 4096, 1, 150 * 4096);
	found_nodes(&f, p.base, 300 * 4096);
	assert_int_equal(!f.mem_node[0], silent);
	munmap(p.base, 300 * 4096);
}

/* Where transparent huge pages may be had, a fresh process nearly always gets them. */
static void transparent_huge_pages(void **state)
{
	struct pages p;
	double pct;

	(void)state;
	if (pages_map(&(struct pages_ask){MEM_THP, true, NULL}, 4 << 20, &p))
		skip();
	pct = found_huge_pct(p.base, 4 << 20);
	assert_true(pct == 0 || pct == 50 || pct == 100);
	pages_unmap(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_stays_and_one_that_moves),
		cmocka_unit_test(nodes_of_pages),
		cmocka_unit_test(shares_of_huge_pages),
		cmocka_unit_test(this_process),
		cmocka_unit_test(transparent_huge_pages),
	};

	return cmocka_run_group_tests_name("unit_found", tests, NULL, NULL);
}
