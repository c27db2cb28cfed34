/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cache lines, one by one: read, or flushed. What flushes is an instruction of its own for each
 * kind of CPU. Flushes have no order among themselves, so that many can be under way; a fence
 * behind the last one has them done before the clock is read.
 */
#include "touch.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

/* CLFLUSH is there on each of them. CLFLUSHOPT, which does not wait for the one before, is younger.
 */
static bool unordered(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_CLFLUSHOPT);
}

static uint64_t line_bytes(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && (b >> 8 & 0xff) ? (b >> 8 & 0xff) * 8 : 64;
}

__attribute__((target("clflushopt"))) static void flush_unordered(const char *from, const char *end,
								  uint64_t line)
{
	for (; from < end; from += line)
		_mm_clflushopt((void *)(uintptr_t)from);
}

static void flush(const struct touch *t, const char *from, const char *end)
{
	if (t->unordered)
		flush_unordered(from, end, t->line);
	else
		for (; from < end; from += t->line)
			_mm_clflush(from);
	_mm_mfence();
}

bool touch_can_flush(void)
{
	return true;
}

#elif defined(__aarch64__)

static bool unordered(void)
{
	return true;
}

/* The smallest line of all its data caches. */
static uint64_t line_bytes(void)
{
	uint64_t ctr;

	__asm__("mrs %0, ctr_el0" : "=r"(ctr));
	return 4ull << (ctr >> 16 & 15);
}

static void flush(const struct touch *t, const char *from, const char *end)
{
	for (; from < end; from += t->line)
		__asm__ volatile("dc civac, %0" ::"r"(from) : "memory");
	__asm__ volatile("dsb ish" ::: "memory");
}

bool touch_can_flush(void)
{
	return true;
}

#else

static bool unordered(void)
{
	return false;
}

static uint64_t line_bytes(void)
{
	return 64; /* to read more often than once a line does no harm */
}

static void flush(const struct touch *t, const char *from, const char *end)
{
	(void)t;
	(void)from;
	(void)end;
}

bool touch_can_flush(void)
{
	return false;
}

#endif

/* Its own bytes only: what lies beside them may be another's. */
static void load(const char *from, const char *end, uint64_t line)
{
	for (; from < end; from = (const char *)(((uintptr_t)from | (line - 1)) + 1))
		(void)*(const volatile char *)from;
}

void touch_init(struct touch *t, uint64_t how)
{
	*t = (struct touch){.how = how};
	if (how == TOUCH_OFF)
		return;
	t->line = line_bytes();
	t->unordered = unordered();
}

uint64_t touch_frags(const struct touch *t, const struct rxfer_frag *frags, uint32_t n)
{
	uint64_t lines = 0;

	for (uint32_t i = 0; i < n; i++) {
		const char *from = frags[i].addr, *end = from + frags[i].len;
		const char *first = (const char *)((uintptr_t)from & ~(t->line - 1));

		if (!frags[i].len)
			continue;
		if (t->how == TOUCH_COLD)
			flush(t, first, end);
		else
			load(from, end, t->line);
		lines += ((uint64_t)(end - first) + t->line - 1) / t->line;
	}
	return lines;
}
