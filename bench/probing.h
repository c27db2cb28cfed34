/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rxfer-bench probe: what its parts share. */
#ifndef BENCH_PROBING_H
#define BENCH_PROBING_H

#include "command.h"
#include "probe.h"
#include "report.h"

/**
 * struct probe_row - one finding.
 * @variant: under which circumstances; may be empty
 * @value:   NAN: not found out, and @note says why
 * @digits:  of @value, behind the point
 * @section: those of one section stand together
 */
struct probe_row {
	char quantity[32];
	char variant[32];
	double value;
	unsigned int digits;
	unsigned int section;
	char unit[16];
	char note[512];
};

/* struct probe_rows - findings, owned; @section: of the next one; @err: -ENOMEM once one was lost.
 */
struct probe_rows {
	struct probe_row *row;
	unsigned int n;
	unsigned int section;
	int err;
};

/** probe_add() - a finding; @note: printf, and it becomes one line. */
void probe_add(struct probe_rows *rows, const struct probe_row *row, const char *note, ...)
	__attribute__((format(printf, 3, 4)));

/* struct probe - one device being asked. */
struct probe {
	const struct opts *opts;
	struct cfg cfg;
	const struct runtime *runtime;
	struct rxfer_dev *dev;
	struct probe_rows rows;
};

/** probe_stopped() - has a signal asked to end? Then -EINTR, and rxfer_error(). */
int probe_stopped(const struct probe *p);

/**
 * probe_registration() - what registering memory costs, as a line over its pages, and what
 * deregistering it does; probe_keys() - how remote keys follow each other. Both: 0 or -errno.
 */
int probe_registration(struct probe *p);
int probe_keys(struct probe *p);

/**
 * probe_verdict() - what it says of a device how many silent WRs it took.
 * @chain, @singles: posted by one call, and one by one
 * @limit:           as many were tried, each time
 */
const char *probe_verdict(const struct rxfer_silent *chain, const struct rxfer_silent *singles,
			  uint32_t limit);

/**
 * probe_format() - how findings are written as "table", "csv" or "json"; NULL for another. A file
 * is replaced when the report is closed.
 */
const struct report_ops *probe_format(const char *name);

/**
 * probe_write() - all findings into a report that was opened with one of these formats.
 * @env:     device and conditions
 * @partial: the probing did not come to its end
 * Returns 0 or -errno. Shows when the report is closed.
 */
int probe_write(struct report *r, const struct probe_rows *rows, const struct result *env,
		bool partial);

#endif
