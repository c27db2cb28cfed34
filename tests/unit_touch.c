/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --touch: each line of an I/O's memory, no byte of another's, and what that does to the next
 * reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "touch.h"

#define PAGE 4096

/* Three pages, of which the middle one alone may be used. */
static char *guarded(void)
{
	char *all = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(all, MAP_FAILED);
	assert_int_equal(mprotect(all + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	memset(all + PAGE, 0x5a, PAGE);
	return all + PAGE;
}

/* What is read beyond a fragment at an end of the page ends the test; what is written shows. */
static void lines(uint64_t how)
{
	static const struct {
		uint32_t at, len;
		uint64_t lines; /* of 64 bytes */
	} cases[] = {
		{0, 1, 1},     {63, 1, 1},	  {63, 2, 2},	    {0, 64, 1},	     {1, 64, 2},
		{0, PAGE, 64}, {1, PAGE - 1, 64}, {PAGE - 1, 1, 1}, {100, 1000, 17}, {5, 0, 0},
	};
	char *page = guarded();
	struct touch t;
	struct rxfer_frag all[sizeof(cases) / sizeof(cases[0])];
	uint64_t sum = 0, one, line, got;

	touch_init(&t, how);
	one = touch_frags(&t, &(struct rxfer_frag){page, PAGE}, 1);
	line = PAGE / one;
	assert_true(line == t.line && line >= 16 && line <= 1024 && one * line == PAGE);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		all[i] = (struct rxfer_frag){page + cases[i].at, cases[i].len};
		got = touch_frags(&t, &all[i], 1);
		if (line == 64)
			assert_int_equal(got, cases[i].lines);
		sum += got;
	}
	assert_int_equal(touch_frags(&t, all, sizeof(cases) / sizeof(cases[0])), sum);
	for (int i = 0; i < PAGE; i++)
		assert_int_equal(page[i], 0x5a);
	munmap(page - PAGE, 3 * PAGE);
}

static void each_line_and_no_other(void **state)
{
	(void)state;
	lines(TOUCH_WARM);
	if (touch_can_flush())
		lines(TOUCH_COLD);
}

/* ns to read a byte of each of @n lines, one after the other. */
static uint64_t reading(const char *at, unsigned int n)
{
	uint64_t begin = rxfer_now();
	unsigned int next = 0;

	for (unsigned int i = 0; i < n; i++) /* each address waits for the byte before */
		next = (next + 64 * 7 + (unsigned char)*(const volatile char *)(at + next)) %
		       (64 * n);
	return rxfer_now() - begin;
}

static bool is_emulated(void)
{
	char line[256];
	bool found = false;
	FILE *f = fopen("/proc/cpuinfo", "re");

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, "QEMU TCG CPU");
	if (f)
		fclose(f);
	return found;
}

/* Once in a thousand tries it must show: others use the machine, too. */
static void a_cold_line_takes_longer(void **state)
{
	static char memory[64 * 64] __attribute__((aligned(64)));
	const struct rxfer_frag all = {memory, sizeof(memory)};
	struct touch out, in;
	bool shown = false;

	(void)state;
	touch_init(&out, TOUCH_COLD);
	touch_init(&in, TOUCH_WARM);
	if (!touch_can_flush() || is_emulated())
		skip();
	for (int i = 0; i < 1000 && !shown; i++) {
		uint64_t cold, warm;

		touch_frags(&out, &all, 1);
		cold = reading(memory, 64);
		touch_frags(&out, &all, 1);
		touch_frags(&in, &all, 1);
		warm = reading(memory, 64);
		shown = cold > 3 * warm;
	}
	assert_true(shown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_line_and_no_other),
		cmocka_unit_test(a_cold_line_takes_longer),
	};

	return cmocka_run_group_tests_name("unit_touch", tests, NULL, NULL);
}
