/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reports to stdout, and to places that cannot be written to: what is said and what is left behind.
 */
#include "report_fixture.h"

#include <signal.h>
#include <sys/resource.h>

/* The first error of open, one row, close. */
static int first_error(const struct report_ops *ops, const char *path)
{
	struct report *r;
	struct result result;
	int err = report_open(ops, path, "", &r, error, ERROR);
	char later[ERROR];

	if (err)
		return err;
	fill(&result);
	hist_add(&result.latency, 5);
	err = report_row(r, &result, error, ERROR);
	if (err)
		report_close(r, false, later, ERROR);
	else
		err = report_close(r, true, error, ERROR);
	return err;
}

#define for_each_format(ops) for (unsigned int i_ = 0; ((ops) = report_list(i_)); i_++)

/* ---- stdout ---- */

/* stdout goes to a file for a while; returns what brings it back. */
static int redirect(int fd)
{
	int saved = dup(STDOUT_FILENO);

	fflush(stdout);
	assert_true(saved >= 0);
	assert_true(dup2(fd, STDOUT_FILENO) == STDOUT_FILENO);
	close(fd);
	return saved;
}

static void restore(int saved)
{
	dup2(saved, STDOUT_FILENO);
	close(saved);
}

static size_t size_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (size_t)st.st_size;
}

/* Sizes after open, row, row, close. */
static void stdout_sizes(const struct report_ops *ops, const char *path, bool keep, size_t size[4])
{
	int saved = redirect(open(OUT, O_WRONLY | O_CREAT | O_TRUNC, 0600));
	struct report *r = NULL;
	struct result result;
	int err = report_open(ops, path, "", &r, error, ERROR);

	fill(&result);
	for (unsigned int i = 0; i < 3 && !err; i++) {
		size[i] = size_of(OUT);
		err = i < 2 ? report_row(r, &result, error, ERROR)
			    : report_close(r, keep, error, ERROR);
	}
	restore(saved);
	assert_int_equal(err, 0);
	size[3] = size_of(OUT);
}

static void test_stdout(void **state)
{
	size_t size[4];

	(void)state;
	stdout_sizes(&report_csv, NULL, true, size);
	assert_true(size[0] > 0); /* the header */
	assert_true(size[1] > size[0] && size[2] - size[1] == size[1] - size[0]);
	assert_int_equal(size[3], size[2]);
	stdout_sizes(&report_table, "-", true, size);
	assert_true(size[0] > 0);
	assert_true(size[1] > size[0] && size[2] > size[1]); /* header and row, row */
	assert_true(size[3] > size[2]);			     /* the footnote */
	stdout_sizes(&report_json, "-", false, size);
	assert_int_equal(size[3], 0);
	stdout_sizes(&report_json, "-", true, size);
	assert_int_equal(size[2], 0);
	json_decref(parsed(slurp(OUT)));
	assert_int_equal(files(false), 1);
}

static void test_stdout_stays_open(void **state)
{
	int saved = redirect(open(OUT, O_WRONLY | O_CREAT, 0600));
	int err = first_error(&report_csv, NULL);
	ssize_t n = write(STDOUT_FILENO, "more\n", 5);

	(void)state;
	restore(saved);
	assert_int_equal(err, 0);
	assert_int_equal(n, 5);
	assert_non_null(strstr(slurp(OUT), "\nmore\n"));
}

static void test_stdout_closed(void **state)
{
	const struct report_ops *ops;
	int saved, err;

	(void)state;
	for_each_format(ops)
	{
		saved = redirect(open("/dev/null", O_WRONLY));
		close(STDOUT_FILENO);
		err = refused(ops, NULL);
		restore(saved);
		assert_int_equal(err, -EBADF);
		assert_true(says("cannot open stdout: Bad file descriptor; ") &&
			    says("--output FILE"));
		saved = redirect(open("/dev/null", O_RDONLY));
		err = refused(ops, NULL);
		restore(saved);
		assert_int_equal(err, -EBADF);
	}
}

static void test_stdout_reader_gone(void **state)
{
	const struct report_ops *ops;
	int saved, err, ends[2];

	(void)state;
	for_each_format(ops)
	{
		assert_int_equal(pipe(ends), 0);
		close(ends[0]);
		saved = redirect(ends[1]);
		err = first_error(ops, NULL);
		restore(saved);
		assert_int_equal(err, -EPIPE);
		assert_true(says("cannot write to stdout: Broken pipe; its reader has gone"));
	}
}

/* ---- places that cannot be written to ---- */

static void test_dev_full(void **state)
{
	const struct report_ops *ops;
	struct stat st;
	int saved, err;

	(void)state;
	for_each_format(ops)
	{
		assert_int_equal(first_error(ops, "/dev/full"), -ENOSPC);
		assert_true(says(
			"cannot write to /dev/full: No space left on device; free some space"));
		saved = redirect(open("/dev/full", O_WRONLY));
		err = first_error(ops, NULL);
		restore(saved);
		assert_int_equal(err, -ENOSPC);
		assert_true(says("cannot write to stdout: No space left on device"));
	}
	assert_int_equal(stat("/dev/full", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
}

static void test_no_directory(void **state)
{
	const struct report_ops *ops;

	(void)state;
	for_each_format(ops)
	{
		assert_int_equal(refused(ops, "no/where"), -ENOENT);
		assert_true(says(
			"cannot open no/where: No such file or directory; create its directory"));
		assert_int_equal(refused(ops, "."), -EISDIR);
		assert_true(says("cannot open .: Is a directory; name a file in it"));
	}
	assert_int_equal(files(false), 0);
}

/* Root may write everywhere; these two are somebody else for a moment. */
static int refused_as_nobody(const struct report_ops *ops, const char *path)
{
	uid_t uid = geteuid();
	int err;

	if (!uid)
		assert_int_equal(seteuid(65534), 0);
	err = refused(ops, path);
	assert_int_equal(seteuid(uid), 0);
	return err;
}

static void test_read_only_file(void **state)
{
	const struct report_ops *ops;

	(void)state;
	spill(OUT, "old\n");
	assert_int_equal(chmod(OUT, 0444), 0);
	for_each_format(ops)
	{
		assert_int_equal(refused_as_nobody(ops, OUT), -EACCES);
		assert_true(says("cannot open out: Permission denied; name an --output"));
	}
	assert_string_equal(slurp(OUT), "old\n");
	assert_int_equal(files(false), 1);
}

static void test_unwritable_directory(void **state)
{
	const struct report_ops *ops;

	(void)state;
	assert_int_equal(chmod(".", 0555), 0);
	for_each_format(ops)
	{
		assert_int_equal(refused_as_nobody(ops, OUT), -EACCES);
		assert_true(says("cannot open out: Permission denied; "));
	}
	assert_int_equal(files(false), 0);
}

/* ---- a disk that fills up ---- */

/* The file may not grow beyond @limit bytes: what a full disk looks like, at any byte. */
static void limit_files(rlim_t limit)
{
	struct rlimit l;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &l), 0);
	l.rlim_cur = limit;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static void check_cut(const struct report_ops *ops, size_t room)
{
	struct report *r = opened(ops, OUT);
	char *whole;
	struct result result;
	int err;

	fill(&result);
	add(r, &result);
	whole = strdup(slurp(OUT));
	assert_non_null(whole);
	limit_files(strlen(whole) + room);
	err = report_row(r, &result, error, ERROR);
	limit_files(RLIM_INFINITY);
	assert_int_equal(err, -EFBIG);
	assert_true(says("cannot write to out: File too large; "));
	assert_string_equal(slurp(OUT), whole);
	add(r, &result); /* and when there is room again, it goes on */
	assert_int_equal(strncmp(slurp(OUT), whole, strlen(whole)), 0);
	assert_true(strlen(slurp(OUT)) > strlen(whole) + 20);
	closed(r, true);
	unlink(OUT);
	free(whole);
}

static void test_whole_rows(void **state)
{
	(void)state;
	check_cut(&report_csv, 0);
	check_cut(&report_csv, 1);
	check_cut(&report_csv, 50);
	check_cut(&report_table, 50);
	check_cut(&report_perftest, 150);
}

/* A disk that fills up at the very end costs neither the old file nor a stray one. */
static void test_json_full(void **state)
{
	struct report *r;
	struct result result;
	int err;

	(void)state;
	spill(OUT, "old");
	r = opened(&report_json, OUT);
	fill(&result);
	add(r, &result);
	limit_files(100);
	err = report_close(r, true, error, ERROR);
	limit_files(RLIM_INFINITY);
	assert_int_equal(err, -EFBIG);
	assert_true(says("cannot write to out: File too large; "));
	assert_string_equal(slurp(OUT), "old");
	assert_int_equal(files(false), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_stdout),	   test(test_stdout_stays_open),
		test(test_stdout_closed),  test(test_stdout_reader_gone),
		test(test_dev_full),	   test(test_no_directory),
		test(test_read_only_file), test(test_unwritable_directory),
		test(test_whole_rows),	   test(test_json_full),
	};

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests_name("report_output", tests, NULL, NULL);
}
