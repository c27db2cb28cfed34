/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the report formats share among themselves. */
#ifndef BENCH_REPORT_INTERNAL_H
#define BENCH_REPORT_INTERNAL_H

#include "report.h"

#include <stddef.h>

#define REPORT_FIELD (sizeof(((struct result *)0)->opts)) /* bytes that hold any column's text */

/**
 * struct report - one report being written. Formats read all of it and write none of it directly.
 * @path:     owned; as the user gave it, NULL: stdout
 * @fd:       where text goes: the file itself, or what will be renamed to @target
 * @target:   owned; the file to replace at the end, NULL where @fd is the real thing
 * @temp:     owned; the name of @fd while @target is set
 * @created:  @path is new, and goes again should nothing come to stand in it
 * @appended: the file had something in it already
 * @keep:     while ending: whether the report shall stay
 * @opts:     owned; the options of the invocation
 * @rows:     rows written so far, @partial of them interrupted
 * @last:     the last row written, if @rows
 * @common:   for each column the first value that was known
 * @varies:   owned; for each column whether another value has been seen
 * @text:     being composed, see report_text()
 * @error:    one line, if a format had more to say than errno does
 */
struct report {
	const struct report_ops *ops;
	char *path;
	int fd;
	char *target;
	char *temp;
	bool created;
	bool appended;
	bool keep;
	char *opts;
	unsigned int rows;
	unsigned int partial;
	struct result last;
	struct result common;
	bool *varies;
	FILE *text;
	char *buf;
	size_t len;
	char error[512];
};

/** report_text() - a stream into memory, the same until it is taken or flushed; NULL for no memory.
 */
FILE *report_text(struct report *r);

/** report_take() - end the stream and hand its text over; the caller frees @buf. 0 or -ENOMEM. */
int report_take(struct report *r, char **buf, size_t *len);

/**
 * report_flush() - end the stream and write its text out, all of it or nothing.
 * A regular file is cut back to where it was; what went into a pipe cannot be called back. 0 or
 * -errno.
 */
int report_flush(struct report *r);

/** report_fail() - word an error for the user; returns @err. */
__attribute__((format(printf, 3, 4))) int report_fail(struct report *r, int err, const char *fmt,
						      ...);

/** report_name() - what to call the output in a message. */
const char *report_name(const struct report *r);

/**
 * report_common() - the column @name if every row that knows its value has the same, else NULL.
 * The value is in @r->common, and unknown there if no row knew it.
 */
const struct column *report_common(const struct report *r, const char *name);

/* Parts of the formats that others can use. */

/** report_put_shared() - "device rxe0, driver rxe, ...": what is in @r->common. 0 or -errno. */
int report_put_shared(const struct report *r, FILE *out);

/** report_wrap() - @text from column @start on, as many lines as it needs; @at: where the line is.
 */
void report_wrap(FILE *f, unsigned int at, unsigned int start, const char *text);

/** report_put_head() - a JSON document's beginning: version, environment, options. 0 or -errno. */
int report_put_head(struct report *r, FILE *f);

/** report_put_string() - @text as a JSON string. 0 or -ENOMEM. */
int report_put_string(FILE *f, const char *text);

/** report_put_field() - @text as a field of the CSV of runs, without commas, quotes or line ends;
 * then
 * @end. */
void report_put_field(FILE *f, const char *text, char end);

/* ---- report_whole.c: reports of what is all there at once ---- */

/* struct report_whole - a format. A table of them ends with REPORT_WHOLE_END. */
struct report_whole {
	struct report_ops ops;
	int (*put)(struct report *r, FILE *f, const void *rows, bool partial);
};

#define REPORT_WHOLE(format, function)        \
	{                                     \
		{.name = format,              \
		 .replaces = true,            \
		 .begin = report_whole_begin, \
		 .end = report_whole_end},    \
			function              \
	}
#define REPORT_WHOLE_END    \
	{                   \
		.put = NULL \
	}

int report_whole_begin(struct report *r);
int report_whole_end(struct report *r);

/** report_whole_find() - the format of that name in the table; NULL: none. */
const struct report_ops *report_whole_find(const struct report_whole *formats, const char *name);

/**
 * report_whole_write() - compose @rows in the format that @r was opened with.
 * @env: what is the same for all of them. 0 or -errno.
 */
int report_whole_write(const struct report_whole *formats, struct report *r, const void *rows,
		       const struct result *env, bool partial);

#define EMULATED_WARNING \
	"Warning: these figures compare software paths; they are no hardware figures.\n"

#endif
