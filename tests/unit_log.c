/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A server's log: the time where nobody else notes it, printable bytes only, not too many lines. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "log.h"

#define SECOND 1000000000ull

static void no_time_into_the_journal(void **state)
{
	struct stat st;
	char stream[64];

	(void)state;
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	assert_false(log_timed(stream, STDERR_FILENO));
	assert_true(log_timed(NULL, STDERR_FILENO));
	assert_true(log_timed("", STDERR_FILENO));
	assert_true(log_timed("8:nonsense", STDERR_FILENO));
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino + 1);
	assert_true(log_timed(stream, STDERR_FILENO));
	assert_true(log_timed(stream, -1));
}

/* What log_line() writes to stderr. */
static const char *logged(bool timed, const char *text)
{
	static char line[4096];
	FILE *f = tmpfile();
	int kept = dup(STDERR_FILENO);
	size_t n;

	assert_non_null(f);
	assert_true(dup2(fileno(f), STDERR_FILENO) >= 0);
	log_line(timed, "%s", text);
	dup2(kept, STDERR_FILENO);
	close(kept);
	rewind(f);
	n = fread(line, 1, sizeof(line) - 1, f);
	line[n] = '\0';
	fclose(f);
	return line;
}

static void one_line_of_printable_bytes(void **state)
{
	(void)state;
	assert_string_equal(logged(false, "node7: it's \"up\" ~"), "node7: it's \"up\" ~\n");
	assert_string_equal(logged(false, "a\nb\x1b[2Jc\x7f\xc3\xa4"), "a?b?[2Jc???\n");
}

static void the_time_comes_first(void **state)
{
	const char *line = logged(true, "what");
	int year, month, day, hour, minute, second, end = 0;

	(void)state;
	assert_int_equal(sscanf(line, "%4d-%2d-%2d %2d:%2d:%2d what%n", &year, &month, &day, &hour,
				&minute, &second, &end),
			 6);
	assert_string_equal(line + end, "\n");
	assert_in_range(year, 2024, 2200);
}

static void what_is_too_long_is_cut(void **state)
{
	char text[4000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(strlen(logged(false, text)), 2048);
}

static void one_line_a_second(void **state)
{
	struct log_gate g = {0};
	unsigned int kept_back = 99;

	(void)state;
	assert_true(log_gate_open(&g, 5 * SECOND, &kept_back));
	assert_int_equal(kept_back, 0);
	for (int i = 0; i < 7; i++)
		assert_false(log_gate_open(&g, 6 * SECOND - 1, &kept_back));
	assert_true(log_gate_open(&g, 6 * SECOND, &kept_back));
	assert_int_equal(kept_back, 7);
	assert_false(log_gate_open(&g, 6 * SECOND, &kept_back));
	assert_true(log_gate_open(&g, 60 * SECOND, &kept_back));
	assert_int_equal(kept_back, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_time_into_the_journal),
		cmocka_unit_test(one_line_of_printable_bytes),
		cmocka_unit_test(the_time_comes_first),
		cmocka_unit_test(what_is_too_long_is_cut),
		cmocka_unit_test(one_line_a_second),
	};

	return cmocka_run_group_tests_name("unit_log", tests, NULL, NULL);
}
