/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What goes to stderr: complaints, what a device reports, and with --debug what an end says and
 * hears. */
#ifndef BENCH_TRACE_H
#define BENCH_TRACE_H

#include <stdint.h>
#include "rxfer.h"

/** complain() - one line on stderr. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/**
 * struct trace - whose lines they are, and since when their times count.
 * @who:   "client" or "server"; NULL: there is no trace
 * @began: rxfer_now()
 */
struct trace {
	const char *who;
	uint64_t began;
};

/** trace_line() - one line. Ask for t->who before going to expense. */
void trace_line(const struct trace *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * trace_device() - what @dev reports is told from now on; with a trace also rdma_cm's events.
 * @t:    stays valid as long as @dev
 * @deaf: another end in this process listens to the device
 */
void trace_device(const struct trace *t, bool deaf, struct rxfer_dev *dev);

#endif
