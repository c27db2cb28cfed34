/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reports: results in, text out. One ops table, one file for each format. A report never sees a
 * device.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>
#include <stdio.h>
#include "result.h"

struct report;

/**
 * struct report_ops - one output format.
 * All return 0 or -errno (a full disk shows in row or end; nothing is left half-written behind it).
 * @begin: before the first row; checks that what is in the file already may be appended to
 * @row:   one result
 *         -ENODATA: it has no place in this format; others can go on with the next
 * @end:   after the last row
 */
struct report_ops {
	const char *name;
	const char *summary;
	bool replaces; /* a file is written anew under another name and replaced at the end; else
			  appended to */
	bool bare;     /* figures only: what is to be known about them has to be said elsewhere */
	int (*begin)(struct report *);
	int (*row)(struct report *, const struct result *);
	int (*end)(struct report *);
};

extern const struct report_ops report_table, report_csv, report_json, report_perftest,
	report_perftest_lat;

/** report_find() - the format of that name, or NULL; report_list() - the i-th, NULL behind the
 * last. */
const struct report_ops *report_find(const char *name);
const struct report_ops *report_list(unsigned int i);

/**
 * report_open() - open @path (NULL or "-": stdout) in the format @ops, and begin.
 * @opts:  the options of the whole invocation, canonical (for JSON), may be ""
 * @error: out on failure: one line, what failed, why, what to do
 *
 * csv appends to a file that has the same header and refuses one that has another; table appends;
 * json replaces the file, at once and only when the last row is in. Returns 0 or -errno.
 */
int report_open(const struct report_ops *ops, const char *path, const char *opts,
		struct report **out, char *error, unsigned int error_size);

/**
 * report_row() - write one result out, completely or not at all. Returns 0 or -errno, words @error;
 * -ENODATA: the format has no place for this one, the report is as good as before.
 */
int report_row(struct report *r, const struct result *result, char *error, unsigned int error_size);

/**
 * report_close() - end and close; frees @r in any case. With @keep false a format that is only
 * whole at its end (json) leaves what was there before, and a file that was made for rows that
 * never came goes again. Returns 0 or -errno, words @error.
 */
int report_close(struct report *r, bool keep, char *error, unsigned int error_size);

#endif
