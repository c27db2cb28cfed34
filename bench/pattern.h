/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Position-dependent bytes for --verify: a byte that arrives anywhere but where it belongs does not
 * match. */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/** pattern_fill() - the bytes at positions @pos.. of the endless pattern number @seed. */
void pattern_fill(void *buf, size_t len, uint64_t pos, uint64_t seed);

/** pattern_check() - the index of the first byte of @buf that differs, or -1. */
int64_t pattern_check(const void *buf, size_t len, uint64_t pos, uint64_t seed);

#endif
