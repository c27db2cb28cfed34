/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a probe writes, and what it says of a device that took so many posts. */
#include "report_fixture.h"

#include "../bench/probing.h"

static struct probe_rows rows;
static struct result env;

static int begin_rows(void **state)
{
	struct probe_row row = {.quantity = "sq_depth", .variant = "asked 16", .unit = "entries"};

	rows = (struct probe_rows){.section = 1};
	row.value = 31;
	probe_add(&rows, &row, "%s", "");
	row.value = NAN;
	probe_add(&rows, &row, "refused, \"%s\"\n%d", "why", 7);
	rows.section = 2;
	row = (struct probe_row){.quantity = "cost_post", .value = 1.25, .digits = 1, .unit = "ns"};
	probe_add(&rows, &row, "%s",
		  "a note that is so long that it does not fit into what is left of the line");
	fill(&env);
	env.mode[0] = '\0';
	return setup(state);
}

static int end_rows(void **state)
{
	free(rows.row);
	return teardown(state);
}

static const char *written(const char *format, bool partial)
{
	struct report *r = opened(probe_format(format), OUT);

	assert_int_equal(probe_write(r, &rows, &env, partial), 0);
	closed(r, true);
	assert_int_equal(files(false), 1);
	return slurp(OUT);
}

static void test_csv(void **state)
{
	(void)state;
	assert_string_equal(written("csv", false),
			    "quantity,variant,value,unit,note\n"
			    "sq_depth,asked 16,31,entries,\n"
			    "sq_depth,asked 16,,entries,refused;  why  7\n"
			    "cost_post,,1.2,ns,a note that is so long that it does not fit into "
			    "what is left of the line\n");
}

static void test_table(void **state)
{
	(void)state;
	assert_string_equal(
		written("table", false),
		"quantity                variant                value unit      note\n"
		"sq_depth                asked 16                  31 entries\n"
		"sq_depth                asked 16                   - entries   refused, \"why\" 7\n"
		"\n"
		"cost_post                                        1.2 ns        a note that is so "
		"long that it does\n"
		"                                                               not fit into what "
		"is left of the line\n"
		"\n"
		"device rxe0, driver rxe, transport RoCEv2, mtu 1024\n");
}

static void test_table_warns(void **state)
{
	const char *text;

	(void)state;
	strcpy(env.emulated, "software RDMA");
	text = written("table", true);
	assert_non_null(strstr(text, "Partial: "));
	assert_non_null(strstr(text, "Warning: "));
	assert_null(strstr(written("table", false), "Partial: "));
}

static void test_json(void **state)
{
	json_error_t where;
	json_t *doc = json_loads(written("json", true), 0, &where), *list;
	const char *version, *device, *quantity, *note;
	int partial;

	(void)state;
	assert_non_null(doc);
	assert_int_equal(json_unpack(doc, "{s:s, s:{s:s}, s:b, s:o}", "version", &version,
				     "environment", "device", &device, "partial", &partial, "rows",
				     &list),
			 0);
	assert_string_equal(version, "0.1");
	assert_string_equal(device, "rxe0");
	assert_true(partial);
	assert_int_equal(json_array_size(list), 3);
	assert_true(json_is_null(json_object_get(json_array_get(list, 0), "note")));
	assert_true(json_is_null(json_object_get(json_array_get(list, 1), "value")));
	assert_int_equal(json_unpack(json_array_get(list, 1), "{s:s, s:s}", "quantity", &quantity,
				     "note", &note),
			 0);
	assert_string_equal(quantity, "sq_depth");
	assert_string_equal(note, "refused, \"why\" 7");
	assert_true(json_number_value(json_object_get(json_array_get(list, 2), "value")) == 1.2);
	json_decref(doc);
}

/* A file is replaced by findings, and stays where there are none. */
static void test_files(void **state)
{
	struct report *r;

	(void)state;
	spill(OUT, "old");
	r = opened(probe_format("csv"), OUT);
	closed(r, false);
	assert_string_equal(slurp(OUT), "old");
	assert_int_equal(files(false), 1);
	written("csv", false);
	assert_null(strstr(written("csv", false), "old"));
	assert_null(strstr(slurp(OUT) + 1, "quantity,")); /* one header, though written twice */
}

/* Where text cannot be taken back, none is written that shall not be kept. */
static void test_not_kept(void **state)
{
	char path[64], byte;
	struct report *r;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd[1]);
	r = opened(probe_format("json"), path);
	assert_int_equal(probe_write(r, &rows, &env, true), 0);
	closed(r, false);
	close(fd[1]);
	assert_int_equal(read(fd[0], &byte, 1), 0);
	close(fd[0]);
}

static void test_formats(void **state)
{
	(void)state;
	assert_null(probe_format("perftest"));
	assert_null(probe_format(""));
	assert_string_equal(probe_format("json")->name, "json");
}

static const char *verdict(uint32_t chain, uint32_t burst, uint32_t total)
{
	struct rxfer_silent c = {chain, chain}, s = {burst, total};

	return probe_verdict(&c, &s, 1024);
}

static void test_verdicts(void **state)
{
	const char *frees = "frees entries without completions: a forgotten signal never shows";

	(void)state;
	/* It was full, or holds so many, and took more. */
	assert_non_null(strstr(verdict(511, 1024, 1024), frees));
	assert_non_null(strstr(verdict(1024, 356, 1024), frees));
	assert_non_null(strstr(verdict(511, 511, 512), frees));
	/* It was full, and stayed so: at what was granted, or at what that was rounded up to. */
	assert_non_null(strstr(verdict(256, 256, 256), "by completions only"));
	assert_non_null(strstr(verdict(511, 511, 511), "by completions only"));
	/* Never full, either way: nothing follows. */
	assert_non_null(strstr(verdict(1024, 1024, 1024), "or there are more than granted"));
}

#define rows_test(f) cmocka_unit_test_setup_teardown(f, begin_rows, end_rows)

int main(void)
{
	const struct CMUnitTest tests[] = {
		rows_test(test_csv),
		rows_test(test_table),
		rows_test(test_table_warns),
		rows_test(test_json),
		rows_test(test_files),
		rows_test(test_not_kept),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_verdicts),
	};

	return cmocka_run_group_tests_name("probe", tests, NULL, NULL);
}
