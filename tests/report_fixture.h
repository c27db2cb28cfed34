/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of the reports share: a directory for each test, a result to report, short forms.
 */
#ifndef TESTS_REPORT_FIXTURE_H
#define TESTS_REPORT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../bench/report.h"

#define ERROR 600
#define OUT   "out"

static char error[ERROR];

/* ---- each test runs inside a new, empty directory ---- */

static char directory[] = "/tmp/unit_report.XXXXXX";

static inline int setup(void **state)
{
	(void)state;
	error[0] = '\0';
	strcpy(directory + sizeof(directory) - 7, "XXXXXX");
	return !mkdtemp(directory) || chmod(directory, 0777) || chdir(directory);
}

static inline unsigned int files(bool discard)
{
	DIR *d = opendir(".");
	unsigned int n = 0;
	struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
			n++;
			if (discard)
				remove(e->d_name);
		}
	closedir(d);
	return n;
}

static inline int teardown(void **state)
{
	(void)state;
	chmod(directory, 0777);
	files(true);
	return chdir("/") || rmdir(directory);
}

/* ---- helpers ---- */

static inline void spill(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static inline const char *slurp_fd(int fd)
{
	static char text[300000];
	ssize_t n;
	size_t len = 0;

	while ((n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	return text;
}

static inline const char *slurp(const char *path)
{
	int fd = open(path, O_RDONLY);
	const char *text;

	assert_true(fd >= 0);
	text = slurp_fd(fd);
	close(fd);
	return text;
}

static inline bool says(const char *words)
{
	if (!strstr(error, words))
		print_message("message: %s\n", error);
	return strstr(error, words) && !strchr(error, '\n');
}

static inline void fill(struct result *r)
{
	result_init(r);
	strcpy(r->strategy, "per-io");
	strcpy(r->signal, "half");
	strcpy(r->mode, "direct");
	strcpy(r->op, "write");
	strcpy(r->device, "rxe0");
	strcpy(r->driver, "rxe");
	strcpy(r->transport, "RoCEv2");
	strcpy(r->version, "0.1");
	strcpy(r->opts, "op=write size=64k");
	r->mtu = 1024;
	r->bytes = 65536;
	r->frags = 16;
	r->depth = 12;
	r->qps = 1;
	r->bw_avg_MiBps = 1234.5678;
	r->msg_rate_Mpps = 0.0197530;
	r->lat_p50_us = 12.344;
	r->lat_p99_us = 12345.67;
	r->sqe_per_io = 1;
	r->cqe_per_io = 0.1667;
	r->posts_per_io = 16;
	r->cpu_us_per_io = 4.5;
}

static inline struct report *opened(const struct report_ops *ops, const char *path)
{
	struct report *r = NULL;

	if (report_open(ops, path, "--op write", &r, error, ERROR))
		fail_msg("open: %s", error);
	return r;
}

static inline void add(struct report *r, const struct result *result)
{
	if (report_row(r, result, error, ERROR))
		fail_msg("row: %s", error);
}

static inline void closed(struct report *r, bool keep)
{
	if (report_close(r, keep, error, ERROR))
		fail_msg("close: %s", error);
}

static inline void write_one(const struct report_ops *ops, const char *path)
{
	struct report *r = opened(ops, path);
	struct result result;

	fill(&result);
	add(r, &result);
	closed(r, true);
}

static inline int refused(const struct report_ops *ops, const char *path)
{
	struct report *r = NULL;
	int err = report_open(ops, path, "", &r, error, ERROR);

	if (!err)
		report_close(r, false, error, ERROR);
	return err;
}

static inline unsigned int occurrences(const char *text, const char *word)
{
	unsigned int n = 0;

	for (const char *p = text; (p = strstr(p, word)); p += strlen(word))
		n++;
	return n;
}

static inline json_t *parsed(const char *text)
{
	json_error_t at;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &at);

	if (!root)
		fail_msg("line %d: %s", at.line, at.text);
	return root;
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
