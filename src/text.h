/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The text of the latest failure, numbers in words, and the clock: part of rxfer.h. */
#ifndef RXFER_TEXT_H
#define RXFER_TEXT_H

#include <stdint.h>

/** rxfer_error() - one line on this thread's latest failure. Valid until the next one. */
const char *rxfer_error(void);

/** rxfer_fail() - word this thread's latest failure; for the layers above too. Returns -|err|. */
int rxfer_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* struct rxfer_text - a number in words, for a line that is worded there and then. */
struct rxfer_text {
	char s[48];
};

/** rxfer_count() - "1 run", "2 runs", "2 entries". @noun: in the singular. */
struct rxfer_text rxfer_count(uint64_t n, const char *noun);

/** rxfer_size() - in the unit that shows it: "17 bytes", "64.0 KiB", "1.5 MiB". */
struct rxfer_text rxfer_size(uint64_t bytes);

/** rxfer_now() - CLOCK_MONOTONIC in ns. */
uint64_t rxfer_now(void);

#endif
