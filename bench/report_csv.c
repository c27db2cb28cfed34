/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CSV: one header, one line for each result; files grow from one invocation to the next. */
#include "report_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compose_header(struct report *r)
{
	FILE *f = report_text(r);

	if (!f)
		return -ENOMEM;
	for (unsigned int i = 0; i < result_columns_count; i++)
		fprintf(f, "%s%s", i ? "," : "", result_columns[i].name);
	fputc('\n', f);
	return 0;
}

/* Does the file start with @header and end with a whole line? */
static int check_existing(struct report *r, int fd, const char *header, size_t len)
{
	char *head = calloc(1, len);
	char last = '\n';
	int err = 0;

	if (!head)
		return -ENOMEM;
	if (pread(fd, head, len, 0) < 0 || lseek(fd, -1, SEEK_END) < 0 || read(fd, &last, 1) < 0)
		err = -errno;
	else if (memcmp(head, header, len) != 0)
		err = report_fail(
			r, -EEXIST,
			"cannot append to %s: its header differs from the one that this version "
			"writes; name another --output or move the file away",
			report_name(r));
	else if (last != '\n')
		err = report_fail(
			r, -EEXIST,
			"cannot append to %s: its last line is not complete; remove that line or "
			"name another --output",
			report_name(r));
	free(head);
	return err;
}

static int match_existing(struct report *r)
{
	char *header = NULL;
	size_t len;
	int fd = open(r->path, O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : compose_header(r);

	if (!err)
		err = report_take(r, &header, &len);
	if (!err)
		err = check_existing(r, fd, header, len);
	free(header);
	if (fd >= 0)
		close(fd);
	return err;
}

static int csv_begin(struct report *r)
{
	int err;

	if (r->appended)
		return match_existing(r);
	err = compose_header(r);
	return err ? err : report_flush(r);
}

static int csv_row(struct report *r, const struct result *result)
{
	FILE *f = report_text(r);
	char field[REPORT_FIELD];

	if (!f)
		return -ENOMEM;
	for (unsigned int i = 0; i < result_columns_count; i++)
		fprintf(f, "%s%s", i ? "," : "",
			result_format(&result_columns[i], result, field, sizeof(field)));
	fputc('\n', f);
	return report_flush(r);
}

static int csv_end(struct report *r)
{
	(void)r;
	return 0;
}

const struct report_ops report_csv = {
	.name = "csv",
	.summary = "one line for each run, every column; appends",
	.begin = csv_begin,
	.row = csv_row,
	.end = csv_end,
};
