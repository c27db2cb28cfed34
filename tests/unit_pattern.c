/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The pattern of --verify: a byte that is wrong, or anywhere but where it belongs, is found. */
#include <string.h>

#include "prop.h"
#include "pattern.h"

#define GUARD 0x5a
#define SPAN  200 /* positions of the reference */

/* One byte at a time: the model of all that is longer. */
static unsigned char byte_at(uint64_t pos, uint64_t seed)
{
	unsigned char b;

	pattern_fill(&b, 1, pos, seed);
	return b;
}

static void same_from_any_start(void **state)
{
	unsigned char ref[SPAN], buf[SPAN + 32];

	(void)state;
	for (uint64_t pos = 0; pos < SPAN; pos++)
		ref[pos] = byte_at(pos, 7);
	for (size_t align = 0; align < 16; align++) {
		for (uint64_t pos = 0; pos < 17; pos++) {
			for (size_t len = 0; len <= 80; len++) {
				unsigned char *at = buf + 8 + align;

				memset(buf, GUARD, sizeof(buf));
				pattern_fill(at, len, pos, 7);
				assert_memory_equal(at, ref + pos, len);
				assert_int_equal(at[-1], GUARD);
				assert_int_equal(at[len], GUARD);
				assert_int_equal(pattern_check(at, len, pos, 7), -1);
			}
		}
	}
}

/* What is behind the buffer is not looked at. */
static void check_stops_at_the_end(void **state)
{
	unsigned char buf[64];

	(void)state;
	for (size_t len = 0; len < 60; len++) {
		pattern_fill(buf, sizeof(buf), 3, 1);
		for (size_t i = len; i < sizeof(buf); i++)
			buf[i] ^= 0xff;
		assert_int_equal(pattern_check(buf, len, 3, 1), -1);
		assert_int_equal(pattern_check(buf, len + 1, 3, 1), len);
	}
}

static void any_changed_byte_is_found(void **state)
{
	unsigned char buf[80];

	(void)state;
	for (uint64_t pos = 0; pos < 9; pos++) {
		for (size_t len = 1; len <= 40; len++) {
			unsigned char *at = buf + pos % 3 + 1;

			pattern_fill(at, len, pos, 42);
			for (size_t i = 0; i < len; i++) {
				for (unsigned int bits = 1; bits < 256; bits++) {
					at[i] ^= bits;
					assert_int_equal(pattern_check(at, len, pos, 42), i);
					at[i] ^= bits;
				}
			}
			assert_int_equal(pattern_check(at, len, pos, 42), -1);
		}
	}
}

/* Of two wrong bytes the first counts. */
static void the_first_wrong_byte_is_named(void **state)
{
	unsigned char buf[48];

	(void)state;
	for (size_t i = 0; i < sizeof(buf); i++) {
		for (size_t k = i + 1; k < sizeof(buf); k++) {
			pattern_fill(buf, sizeof(buf), 11, 0);
			buf[i] ^= 1;
			buf[k] ^= 0x80;
			assert_int_equal(pattern_check(buf, sizeof(buf), 11, 0), i);
		}
	}
}

/* Sixteen bytes are enough to tell any shift, all over the pattern and over every seed. */
static void a_shift_is_found(void **state)
{
	static unsigned char buf[4096 + 256];

	(void)state;
	for (uint64_t seed = 0; seed < 8; seed++) {
		pattern_fill(buf, sizeof(buf), 0, seed);
		for (size_t at = 64; at < 4096 + 128; at++) {
			for (size_t shift = 1; shift <= 64; shift++) {
				assert_in_range(pattern_check(buf + at, 16, at + shift, seed), 0,
						15);
				assert_in_range(pattern_check(buf + at, 16, at - shift, seed), 0,
						15);
			}
		}
	}
}

/* What an I/O leaves where another should be: a whole number of I/Os away, or of pages. */
static void a_far_shift_is_found(void **state)
{
	static const uint64_t sizes[] = {8, 512, 4096, 65536, 1 << 20, 1ull << 31, 1ull << 40};
	unsigned char buf[16];

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (uint64_t n = 0; n < 2000; n++) {
			pattern_fill(buf, sizeof(buf), n * sizes[s], 3);
			assert_in_range(pattern_check(buf, sizeof(buf), (n + 1) * sizes[s], 3), 0,
					15);
			assert_int_equal(pattern_check(buf, sizeof(buf), n * sizes[s], 3), -1);
		}
	}
}

/* Each QP has a seed of its own. */
static void another_seed_differs(void **state)
{
	unsigned char buf[16];

	(void)state;
	for (uint64_t pos = 0; pos < 300; pos += 7) {
		for (uint64_t seed = 0; seed < 100; seed++) {
			pattern_fill(buf, sizeof(buf), pos, seed);
			for (uint64_t other = 0; other < 100; other++) {
				int64_t bad = pattern_check(buf, sizeof(buf), pos, other);

				assert_true(other == seed ? bad == -1 : bad >= 0 && bad < 16);
			}
		}
	}
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void no_two_words_are_alike(void **state)
{
	static uint64_t words[1 << 16];

	(void)state;
	pattern_fill(words, sizeof(words), 8ull << 20, 5);
	qsort(words, sizeof(words) / sizeof(words[0]), sizeof(words[0]), by_value);
	for (size_t i = 1; i < sizeof(words) / sizeof(words[0]); i++)
		assert_true(words[i - 1] != words[i]);
}

/* What a buffer holds that was never written to, or was poisoned, does not pass for the pattern. */
static void constant_bytes_are_found(void **state)
{
	unsigned char buf[16];

	(void)state;
	for (int value = 0; value < 256; value++) {
		memset(buf, value, sizeof(buf));
		for (uint64_t pos = 0; pos < 500; pos++)
			assert_in_range(pattern_check(buf, sizeof(buf), pos, 0), 0, 15);
	}
}

/* Filled in pieces of any lengths, checked in others: one endless pattern. */
static void pieces_join(void **state)
{
	uint64_t first = prop_first_seed(), n = prop_count(20000, 100);
	unsigned char buf[600];
	struct prop p;

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t pos, seed;
		size_t len, at = 0, step;

		prop_start(&p, first + i);
		pos = prop_next(&p) >> 1;
		seed = prop_next(&p);
		len = prop_range(&p, 0, sizeof(buf));
		for (; at < len; at += step) {
			step = prop_range(&p, 1, (uint32_t)(len - at));
			pattern_fill(buf + at, step, pos + at, seed);
		}
		PROP_CHECK(&p, pattern_check(buf, len, pos, seed) == -1);
		for (at = 0; at < len; at += step) {
			step = prop_range(&p, 1, (uint32_t)(len - at));
			PROP_CHECK(&p, pattern_check(buf + at, step, pos + at, seed) == -1);
		}
		if (len == 0)
			continue;
		at = prop_range(&p, 0, (uint32_t)len - 1);
		buf[at] ^= prop_range(&p, 1, 255);
		PROP_CHECK(&p, pattern_check(buf, len, pos, seed) == (int64_t)at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_from_any_start),
		cmocka_unit_test(check_stops_at_the_end),
		cmocka_unit_test(any_changed_byte_is_found),
		cmocka_unit_test(the_first_wrong_byte_is_named),
		cmocka_unit_test(a_shift_is_found),
		cmocka_unit_test(a_far_shift_is_found),
		cmocka_unit_test(another_seed_differs),
		cmocka_unit_test(no_two_words_are_alike),
		cmocka_unit_test(constant_bytes_are_found),
		cmocka_unit_test(pieces_join),
	};

	return cmocka_run_group_tests_name("unit_pattern", tests, NULL, NULL);
}
