/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reports: opening, writing and closing; the formats only compose text.
 *
 * A row is composed in memory and written by one write() to a descriptor in append mode, so that
 * two programs that append to one file do not mix within a row. Where the disk fills up in the
 * middle, the file is cut back to the end of the row before: no half row is ever left behind. The
 * cut is made only if our half row is still the end of the file.
 *
 * A format that replaces its file (json) writes to a new name beside it, made when the report is
 * opened, so that a place that cannot be written to shows before the first run and not after the
 * last. The rename is the last step. Terminals, pipes and devices are written to directly: renaming
 * a file over /dev/null would be a disaster.
 */
#include "report_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct report_ops *const formats[] = {&report_table, &report_csv, &report_json,
						   &report_perftest, &report_perftest_lat};

#define FORMATS (sizeof(formats) / sizeof(formats[0]))

const struct report_ops *report_list(unsigned int i)
{
	return i < FORMATS ? formats[i] : NULL;
}

const struct report_ops *report_find(const char *name)
{
	for (unsigned int i = 0; i < FORMATS; i++)
		if (!strcmp(formats[i]->name, name))
			return formats[i];
	return NULL;
}

/* ---- messages ---- */

const char *report_name(const struct report *r)
{
	return r->path ? r->path : "stdout";
}

static const char *remedy(int err)
{
	switch (-err) {
	case ENOSPC:
	case EDQUOT:
		return "free some space or name another --output";
	case EFBIG:
		return "raise the file size limit (ulimit -f) or name another --output";
	case ENOENT:
	case ENOTDIR:
		return "create its directory first or name another --output";
	case EISDIR:
		return "name a file in it";
	case EPIPE:
		return "its reader has gone; use --output FILE to keep the results";
	case EBADF:
		return "it is closed; use --output FILE";
	case ENOMEM:
		return "free some memory";
	case EMFILE:
		return "raise the limit of open files (ulimit -n)";
	default:
		return "name an --output that you may write to";
	}
}

int report_fail(struct report *r, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->error, sizeof(r->error), fmt, ap);
	va_end(ap);
	return err;
}

/* Words @error for @err: as the format worded it, or what was being done and why it failed. */
static int explain(struct report *r, int err, const char *doing, char *error, unsigned int size)
{
	if (err && r->error[0])
		snprintf(error, size, "%s", r->error);
	else if (err)
		snprintf(error, size, "cannot %s %s: %s; %s", doing, report_name(r), strerror(-err),
			 remedy(err));
	r->error[0] = '\0';
	return err;
}

/* ---- composing and writing ---- */

FILE *report_text(struct report *r)
{
	if (!r->text)
		r->text = open_memstream(&r->buf, &r->len);
	return r->text;
}

int report_take(struct report *r, char **buf, size_t *len)
{
	FILE *text = report_text(r);
	bool bad = !text || ferror(text);

	r->text = NULL;
	bad = (text && fclose(text)) || bad;
	*buf = r->buf;
	*len = r->len;
	r->buf = NULL;
	r->len = 0;
	if (!bad)
		return 0;
	free(*buf);
	*buf = NULL;
	return -ENOMEM;
}

/* One write() that outlasts signals and a descriptor that somebody made non-blocking. */
static ssize_t write_some(int fd, const char *buf, size_t len)
{
	ssize_t n;

	while ((n = write(fd, buf, len)) < 0 && (errno == EINTR || errno == EAGAIN))
		if (errno == EAGAIN)
			poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
	return n < 0 ? -errno : n;
}

/* Take back the last @done bytes written, if @fd is a file and they are its end. */
static void take_back(int fd, size_t done)
{
	off_t end = lseek(fd, 0, SEEK_CUR);
	struct stat st;

	if (!done || end < (off_t)done || fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    st.st_size != end)
		return;
	if (!ftruncate(fd, end - (off_t)done))
		lseek(fd, end - (off_t)done, SEEK_SET);
}

static int write_whole(int fd, const char *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write_some(fd, buf + done, len - done);

		if (n <= 0) {
			take_back(fd, done);
			return n ? (int)n : -EIO;
		}
		done += (size_t)n;
	}
	return 0;
}

int report_flush(struct report *r)
{
	size_t len;
	char *buf;
	int err = report_take(r, &buf, &len);

	if (!err)
		err = write_whole(r->fd, buf, len);
	free(buf);
	return err;
}

/* ---- what the rows have in common ---- */

static void learn(struct report *r, const struct result *result)
{
	char a[REPORT_FIELD], b[REPORT_FIELD];

	for (unsigned int i = 0; i < result_columns_count; i++) {
		const struct column *c = &result_columns[i];
		const char *text = result_text(c, result);
		char *known = (char *)&r->common + c->offset;

		if (!result_format(c, result, b, sizeof(b))[0])
			continue;
		if (result_format(c, &r->common, a, sizeof(a))[0])
			r->varies[i] |= strcmp(a, b) != 0;
		else if (c->kind == COLUMN_TEXT)
			strcpy(known, text);
		else
			memcpy(known, (const char *)result + c->offset, sizeof(double));
	}
	r->last = *result;
	r->partial += !strcmp(result->partial, "yes");
	r->rows++;
}

const struct column *report_common(const struct report *r, const char *name)
{
	const struct column *c = result_column(name);

	return c && !r->varies[c - result_columns] ? c : NULL;
}

/* ---- opening ---- */

static int open_stdout(struct report *r)
{
	int mode = fcntl(STDOUT_FILENO, F_GETFL);

	if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	r->fd = STDOUT_FILENO;
	return 0;
}

/* A new file beside r->target, with the permissions that any new file gets. */
static int open_temp(struct report *r)
{
	size_t size = strlen(r->target) + 64;
	int err;

	r->temp = malloc(size);
	if (!r->temp)
		return -ENOMEM;
	for (unsigned int i = 0; i < 100; i++) {
		snprintf(r->temp, size, "%s.%ld-%u.tmp", r->target, (long)getpid(), i);
		r->fd = open(r->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (r->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	err = -errno;
	free(r->temp);
	r->temp = NULL; /* not ours to remove */
	return err;
}

/*
 * Where a file is replaced, what is there now decides: nothing or a file make way for a new one (a
 * link stays, the file it points to is replaced), everything else is written to directly.
 */
static int open_replacing(struct report *r)
{
	int fd = open(r->path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno != ENOENT)
		return -errno;
	if (fd >= 0 && fstat(fd, &st) < 0) {
		close(fd);
		return -EIO;
	}
	if (fd >= 0 && !S_ISREG(st.st_mode)) {
		r->fd = fd;
		return 0;
	}
	r->target = fd >= 0 ? realpath(r->path, NULL) : strdup(r->path);
	if (fd >= 0)
		close(fd);
	return r->target ? open_temp(r) : -errno;
}

static int open_appending(struct report *r)
{
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_CLOEXEC;
	struct stat st;

	r->fd = open(r->path, flags | O_EXCL, 0666);
	r->created = r->fd >= 0;
	if (r->fd < 0 && errno == EEXIST)
		r->fd = open(r->path, flags, 0666);
	if (r->fd < 0)
		return -errno;
	if (fstat(r->fd, &st))
		return -errno;
	r->appended = S_ISREG(st.st_mode) && st.st_size > 0;
	return 0;
}

static int open_output(struct report *r)
{
	if (!r->path)
		return open_stdout(r);
	return r->ops->replaces ? open_replacing(r) : open_appending(r);
}

static void report_free(struct report *r)
{
	if (r->text)
		fclose(r->text);
	free(r->buf);
	if (r->path && r->fd >= 0)
		close(r->fd);
	if (r->temp)
		unlink(r->temp);
	if (r->created)
		unlink(r->path);
	free(r->temp);
	free(r->target);
	free(r->varies);
	free(r->path);
	free(r->opts);
	free(r);
}

static struct report *report_alloc(const struct report_ops *ops, const char *path, const char *opts)
{
	bool to_file = path && strcmp(path, "-") != 0;
	struct report *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->ops = ops;
	r->path = to_file ? strdup(path) : NULL;
	r->fd = -1;
	r->opts = strdup(opts);
	r->varies = calloc(result_columns_count, sizeof(*r->varies));
	result_init(&r->common);
	if (r->opts && r->varies && (r->path || !to_file))
		return r;
	report_free(r);
	return NULL;
}

int report_open(const struct report_ops *ops, const char *path, const char *opts,
		struct report **out, char *error, unsigned int error_size)
{
	struct report *r = report_alloc(ops, path, opts);
	int err;

	if (!r) {
		snprintf(error, error_size, "no memory for the report; %s", remedy(-ENOMEM));
		return -ENOMEM;
	}
	err = explain(r, open_output(r), "open", error, error_size);
	if (!err)
		err = explain(r, ops->begin(r), "write to", error, error_size);
	if (err)
		report_free(r);
	else
		*out = r;
	return err;
}

/* ---- rows, and the end ---- */

int report_row(struct report *r, const struct result *result, char *error, unsigned int error_size)
{
	int err = r->ops->row(r, result);

	if (!err)
		learn(r, result);
	return explain(r, err, "write to", error, error_size);
}

/* Data first, then the name: a crash leaves the old file or the new one, never an empty one. */
static int replace_target(struct report *r)
{
	if (fsync(r->fd) || rename(r->temp, r->target))
		return -errno;
	free(r->temp);
	r->temp = NULL; /* nothing left to remove */
	return 0;
}

int report_close(struct report *r, bool keep, char *error, unsigned int error_size)
{
	int err;

	r->keep = keep;
	r->created = r->created && !keep && r->rows == 0;
	err = r->ops->end(r);
	if (!err && keep && r->temp)
		err = replace_target(r);
	if (r->path && close(r->fd) && !err) /* network file systems may tell only now */
		err = -errno;
	if (r->path)
		r->fd = -1;
	explain(r, err, "write to", error, error_size);
	report_free(r);
	return err;
}
