/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --touch: whether the CPU has an I/O's memory in its caches when the I/O begins. */
#ifndef BENCH_TOUCH_H
#define BENCH_TOUCH_H

#include "opt.h"
#include "rxfer.h"

/* struct touch - @how: enum cfg_touch; @line: bytes of a cache line; @unordered: flushes need not
 * wait for each other. */
struct touch {
	uint64_t how;
	uint64_t line;
	bool unordered;
};

/** touch_can_flush() - is there an instruction for it here that a program may use? */
bool touch_can_flush(void);

/** touch_init() - what this CPU has for it: to ask that takes long. */
void touch_init(struct touch *t, uint64_t how);

/**
 * touch_frags() - bring the @n fragments into the caches, or out of all of them. Their bytes stay
 * as they are. Not with off. Returns how many cache lines that were, those that two fragments share
 * twice.
 */
uint64_t touch_frags(const struct touch *t, const struct rxfer_frag *frags, uint32_t n);

#endif
