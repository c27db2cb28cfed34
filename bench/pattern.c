/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>
#include "pattern.h"

/* The eight bytes at position 8 * @word: a bijective mix, so no two words of a pattern are alike.
 */
static uint64_t word_at(uint64_t word, uint64_t seed)
{
	uint64_t x = word + seed * 0x9e3779b97f4a7c15u + 1;

	x ^= x >> 31;
	x *= 0x7fb5d329728ea185u;
	x ^= x >> 27;
	x *= 0x81dadef4bc2dd44du;
	return x ^ x >> 33;
}

/* The longest piece from @pos on that lies within one word, with its bytes in @piece. */
static size_t piece_at(uint64_t pos, size_t len, uint64_t seed, unsigned char piece[8])
{
	uint64_t word = word_at(pos / 8, seed);
	size_t skip = pos % 8, n = 8 - skip;

	memcpy(piece, (unsigned char *)&word + skip, n);
	return n < len ? n : len;
}

void pattern_fill(void *buf, size_t len, uint64_t pos, uint64_t seed)
{
	unsigned char piece[8], *p = buf;

	while (len) {
		size_t n = piece_at(pos, len, seed, piece);

		memcpy(p, piece, n);
		p += n;
		pos += n;
		len -= n;
	}
}

int64_t pattern_check(const void *buf, size_t len, uint64_t pos, uint64_t seed)
{
	const unsigned char *start = buf, *p = buf;
	unsigned char piece[8];

	while (len) {
		size_t n = piece_at(pos, len, seed, piece);

		if (memcmp(p, piece, n)) {
			size_t i = 0;

			while (p[i] == piece[i])
				i++;
			return p - start + (int64_t)i;
		}
		p += n;
		pos += n;
		len -= n;
	}
	return -1;
}
