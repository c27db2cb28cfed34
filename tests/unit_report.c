/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The reports for programs, CSV and JSON: what they write. */
#include "report_fixture.h"

static char header[4096]; /* of the CSV, with its newline; unit_result.c compares it with the
			     contract */

/* ---- CSV ---- */

static void compose_header(void)
{
	for (unsigned int i = 0; i < result_columns_count; i++) {
		strcat(header, i ? "," : "");
		strcat(header, result_columns[i].name);
	}
	strcat(header, "\n");
}

/* The field of a column in line @line (0: the header). */
static const char *field(const char *text, unsigned int line, const char *column)
{
	static char value[1024];
	unsigned int i = 0;

	while (line--)
		text = strchr(text, '\n') + 1;
	while (strcmp(result_columns[i].name, column) != 0)
		i++;
	while (i--)
		text = strchr(text, ',') + 1;
	snprintf(value, sizeof(value), "%.*s", (int)strcspn(text, ",\n"), text);
	return value;
}

static void test_csv(void **state)
{
	const char *text;

	(void)state;
	write_one(&report_csv, OUT);
	write_one(&report_csv, OUT);
	text = slurp(OUT);
	assert_memory_equal(text, header, strlen(header));
	assert_int_equal(occurrences(text, "\n"), 3);
	assert_int_equal(occurrences(text, "schema"), 1);
	for (unsigned int line = 1; line <= 2; line++) {
		assert_string_equal(field(text, line, "schema"), "1");
		assert_string_equal(field(text, line, "strategy"), "per-io");
		assert_string_equal(field(text, line, "engine"), "");
		assert_string_equal(field(text, line, "bytes"), "65536");
		assert_string_equal(field(text, line, "lat_p50_us"), "12.344");
		assert_string_equal(field(text, line, "lat_p999_us"), "");
		assert_string_equal(field(text, line, "opts"), "op=write size=64k");
	}
	assert_int_equal(occurrences(text, ","), 3 * (result_columns_count - 1));
}

static void test_csv_empty_file(void **state)
{
	(void)state;
	spill(OUT, "");
	write_one(&report_csv, OUT);
	assert_memory_equal(slurp(OUT), header, strlen(header));
}

static void refuses_to_append(const char *before, const char *why)
{
	spill(OUT, before);
	assert_int_equal(refused(&report_csv, OUT), -EEXIST);
	assert_true(says("cannot append to out: ") && says(why) && says("name another --output"));
	assert_string_equal(slurp(OUT), before);
}

static void test_csv_other_header(void **state)
{
	char longer[sizeof(header) + 16], older[sizeof(header)], broken[sizeof(header) + 16];

	(void)state;
	refuses_to_append("a,b\n1,2\n", "header differs");
	assert_true(says("move the file away"));
	refuses_to_append("\n", "header differs");
	refuses_to_append("s", "header differs");
	snprintf(longer, sizeof(longer), "%.*s,more\n", (int)strlen(header) - 1, header);
	refuses_to_append(longer, "header differs");
	snprintf(older, sizeof(older), "%.*s\n", (int)(strrchr(header, ',') - header), header);
	refuses_to_append(older, "header differs");
	snprintf(broken, sizeof(broken), "%s1,ok,half", header);
	refuses_to_append(broken, "last line is not complete");
}

/* ---- JSON ---- */

static const char *text_in(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "(none)";
}

static json_t *row_of(const json_t *root, unsigned int i)
{
	return json_array_get(json_object_get(root, "rows"), i);
}

static void write_json(const char *path)
{
	struct report *r = opened(&report_json, path);
	struct result result;

	result_init(&result);
	result.status = RESULT_SKIPPED;
	strcpy(result.reason, "no, \"windows\"\n");
	strcpy(result.device, "rxe0");
	add(r, &result);
	fill(&result);
	strcpy(result.emulated, "software");
	strcpy(result.host, "h\xff");
	hist_add(&result.latency, 5);
	hist_add(&result.latency, 5);
	hist_add(&result.latency, 4097);
	add(r, &result);
	strcpy(result.driver, "other");
	add(r, &result);
	closed(r, true);
}

static void test_json(void **state)
{
	json_t *root, *environment, *row, *histogram;

	(void)state;
	write_json(OUT);
	root = parsed(slurp(OUT));
	assert_string_equal(text_in(root, "version"), "0.1");
	assert_string_equal(text_in(root, "options"), "--op write");
	environment = json_object_get(root, "environment");
	assert_string_equal(text_in(environment, "device"), "rxe0");
	assert_string_equal(text_in(environment, "emulated"), "software");
	assert_string_equal(text_in(environment, "host"), "h?");
	assert_int_equal(json_integer_value(json_object_get(environment, "mtu")), 1024);
	assert_true(json_is_null(json_object_get(environment, "driver"))); /* not in common */
	assert_true(json_is_null(json_object_get(environment, "kernel")));
	assert_int_equal(json_array_size(json_object_get(root, "rows")), 3);
	row = row_of(root, 0);
	assert_string_equal(text_in(row, "status"), "skipped");
	assert_string_equal(text_in(row, "reason"), "no, \"windows\"\n");
	assert_true(json_is_null(json_object_get(row, "bytes")));
	row = row_of(root, 1);
	assert_int_equal(json_object_size(row), result_columns_count + 2);
	assert_int_equal(json_integer_value(json_object_get(row, "schema")), RESULT_SCHEMA);
	assert_int_equal(json_integer_value(json_object_get(row, "bytes")), 65536);
	assert_true(json_real_value(json_object_get(row, "lat_p50_us")) == 12.344);
	histogram = json_loads("[[5, 2], [4096, 1]]", 0, NULL);
	assert_true(json_equal(json_object_get(row, "histogram"), histogram));
	json_decref(histogram);
	json_decref(root);
}

/* ngc_multinode_perf: awk -F'[:,]' '/NAME/{print $2}' | cut -d. -f1, and it takes all that comes.
 */
static const char *ngc(const char *text, const char *name)
{
	static char found[200];
	const char *line;

	found[0] = '\0';
	for (line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t len = strcspn(line, "\n");
		const char *at = memmem(line, len, name, strlen(name));
		const char *second = strpbrk(line, ":,");

		if (!at)
			continue;
		snprintf(found + strlen(found), sizeof(found) - strlen(found), "%.*s;",
			 (int)strcspn(second + 1, ".:,\n"), second + 1);
	}
	return found;
}

static void test_json_perftest(void **state)
{
	struct report *r = opened(&report_json, OUT);
	static struct result result;

	(void)state;
	fill(&result);
	result.bw_peak_MiBps = 2345.6;
	result.lat_avg_us = 13.57;
	add(r, &result);
	closed(r, true);
	assert_string_equal(ngc(slurp(OUT), "BW_average"), " 1234;");
	assert_string_equal(ngc(slurp(OUT), "BW_peak"), " 2345;");
	assert_string_equal(ngc(slurp(OUT), "MsgRate"), " 0;");
	assert_string_equal(ngc(slurp(OUT), "t_avg"), " 13;");
}

static void test_json_lines(void **state)
{
	char *text;
	unsigned int keys = 0;

	(void)state;
	write_json(OUT);
	text = (char *)(uintptr_t)slurp(OUT);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		assert_true(occurrences(line, "\": ") <= 1);
		keys += occurrences(line, "\": ");
	}
	assert_int_equal(keys, 4 + 10 + 3 * (result_columns_count + 1 + 5));
}

static void test_json_no_rows(void **state)
{
	json_t *root;

	(void)state;
	closed(opened(&report_json, OUT), true);
	root = parsed(slurp(OUT));
	assert_true(json_is_null(json_object_get(root, "version")));
	assert_int_equal(json_array_size(json_object_get(root, "rows")), 0);
	assert_true(json_is_array(json_object_get(root, "rows")));
	json_decref(root);
}

/* Until the end the old file stands; then the new one does, and nothing else is there. */
static void test_json_replaces(void **state)
{
	struct report *r;
	struct result result;

	(void)state;
	spill(OUT, "old");
	r = opened(&report_json, OUT);
	fill(&result);
	add(r, &result);
	assert_string_equal(slurp(OUT), "old");
	assert_int_equal(files(false), 2);
	closed(r, false);
	assert_string_equal(slurp(OUT), "old");
	assert_int_equal(files(false), 1);
	write_json(OUT);
	json_decref(parsed(slurp(OUT)));
	assert_int_equal(files(false), 1);
}

/* New files get the permissions that everybody's new files get. */
static void test_json_mode(void **state)
{
	struct stat st;
	mode_t mask = umask(027);

	(void)state;
	write_json(OUT);
	umask(mask);
	assert_int_equal(stat(OUT, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
}

static void test_json_link(void **state)
{
	struct stat st;

	(void)state;
	spill("target", "old");
	assert_int_equal(symlink("target", OUT), 0);
	write_json(OUT);
	assert_int_equal(lstat(OUT, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	json_decref(parsed(slurp("target")));
	assert_int_equal(files(false), 2);
}

/* What is no file is written to, not replaced. */
static void test_json_fifo(void **state)
{
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(mkfifo(OUT, 0600), 0);
	fd = open(OUT, O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	write_json(OUT);
	json_decref(parsed(slurp_fd(fd)));
	close(fd);
	assert_int_equal(lstat(OUT, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
}

static void test_formats(void **state)
{
	(void)state;
	assert_ptr_equal(report_find("csv"), &report_csv);
	assert_ptr_equal(report_find("json"), &report_json);
	assert_ptr_equal(report_find("table"), &report_table);
	assert_null(report_find("tables"));
	assert_ptr_equal(report_list(0), &report_table);
	assert_ptr_equal(report_find("perftest"), &report_perftest);
	assert_ptr_equal(report_find("perftest-lat"), &report_perftest_lat);
	assert_non_null(report_list(4));
	assert_null(report_list(5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_csv),		 test(test_csv_empty_file), test(test_csv_other_header),
		test(test_json),	 test(test_json_perftest),  test(test_json_lines),
		test(test_json_no_rows), test(test_json_replaces),  test(test_json_mode),
		test(test_json_link),	 test(test_json_fifo),	    test(test_formats),
	};

	compose_header();
	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
