/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The report for people, to the letter. */
#include "report_fixture.h"

static const char table_head[] =
	"                                                            latency, us     for each I/O\n"
	"strategy signal   op      size frags qd/qps   MiB/s   kIO/s     p50     p99   SQE   CQE "
	"posts cpu us\n";

static const char table_row[] =
	"per-io   half     write    64k    16   12/1  1234.6   19.75   12.34 12345.7  1.00  0.17 "
	"16.00   4.50\n";

static void check_table(const char *expected)
{
	char whole[16384];
	const char *text = slurp(OUT);

	snprintf(whole, sizeof(whole), "\n%s%s", table_head, expected);
	assert_string_equal(text, whole);
	for (; *text; text += strcspn(text, "\n") + 1)
		assert_in_range(strcspn(text, "\n"), 0, 100);
}

static void test_table(void **state)
{
	char expected[4096];

	(void)state;
	write_one(&report_table, OUT);
	snprintf(expected, sizeof(expected),
		 "%s\ndevice rxe0, driver rxe, transport RoCEv2, mtu 1024, mode direct\n",
		 table_row);
	check_table(expected);
}

static void test_table_groups(void **state)
{
	struct report *r = opened(&report_table, OUT);
	struct result result;
	const char *text;

	(void)state;
	fill(&result);
	add(r, &result);
	strcpy(result.strategy, "global");
	add(r, &result); /* same group */
	result.frags = 1;
	add(r, &result);
	result.bytes = 1 << 20;
	add(r, &result);
	strcpy(result.op, "read");
	add(r, &result);
	result.bytes = NAN;
	add(r, &result);
	add(r, &result); /* same group */
	text = slurp(OUT);
	assert_int_equal(occurrences(text, "\n\n"), 4);
	assert_int_equal(occurrences(text, "posts"), 1);
	assert_null(strstr(text, "device"));
	assert_non_null(
		strstr(text, "1234.6   19.75   12.34 12345.7  1.00  0.17 16.00   4.50\nglobal "));
	closed(r, true);
}

static const char cells[] = "-        -        -          -     -      -       -       -       -   "
			    "    -     -     -     -"
			    "      -\n\n"
			    "rcache   every:1000 write-imm 1m 256 1024/16 1234568 200000       - "
			    "123456789   -     -     -"
			    "      -\n\n"
			    "rcache   every:1000 write-imm 1000 256 1024/16 1234568 200000     - "
			    "123456789   -     -     -"
			    "      -\n\n"
			    "rcache   every:1000 write-imm 1536 256 1024/16 1234568 200000     - "
			    "123456789   -     -     -"
			    "      -\n\n"
			    "rcache   every:1000 write-imm 1536k 256 1024/16 1234568 200000    - "
			    "123456789   -     -     -"
			    "      -\n\n";

static void test_table_cells(void **state)
{
	struct report *r = opened(&report_table, OUT);
	struct result result;

	(void)state;
	result_init(&result);
	add(r, &result);
	strcpy(result.strategy, "rcache");
	strcpy(result.signal, "every:1000");
	strcpy(result.op, "write-imm");
	result.bytes = 1 << 20;
	result.frags = 256;
	result.depth = 1024;
	result.qps = 16;
	result.bw_avg_MiBps = 1234567.8;
	result.msg_rate_Mpps = 200;
	result.lat_p99_us = 123456789;
	add(r, &result);
	result.bytes = 1000;
	add(r, &result);
	result.bytes = 1536;
	add(r, &result);
	result.bytes = 1536 * 1024;
	add(r, &result);
	closed(r, true);
	check_table(cells);
}

static const char reasons[] =
	"per-io   half     write    64k    16   12/1  skipped: the device grants 8 MRs, and each "
	"of "
	"the 12\n"
	"                                             I/Os in flight needs one of its own; use "
	"--depth 8\n"
	"per-io   half     write    64k    16   12/1  failed:\n"
	"                                             "
	"01234567890123456789012345678901234567890123456789"
	"01234567890123456789\n"
	"                                             as it were\n"
	"per-io   half     write    64k    16   12/1  failed\n\n";

static void test_table_reasons(void **state)
{
	struct report *r = opened(&report_table, OUT);
	struct result result;

	(void)state;
	fill(&result);
	result.status = RESULT_SKIPPED;
	strcpy(result.reason,
	       "the device grants 8 MRs, and each of the 12 I/Os in flight needs one of "
	       "its own; use --depth 8");
	add(r, &result);
	result.status = RESULT_FAILED;
	strcpy(result.reason, "01234567890123456789012345678901234567890123456789"
			      "01234567890123456789\nas it were");
	add(r, &result);
	result.reason[0] = '\0';
	add(r, &result);
	closed(r, true);
	assert_non_null(strstr(slurp(OUT), reasons));
}

static void test_table_footnote(void **state)
{
	struct report *r = opened(&report_table, OUT);
	struct result result;
	const char *text;

	(void)state;
	fill(&result);
	add(r, &result);
	strcpy(result.emulated, "software");
	strcpy(result.verify, "yes");
	add(r, &result);
	result.mtu = 4096;
	strcpy(result.partial, "yes");
	add(r, &result);
	closed(r, true);
	text = slurp(OUT);
	assert_non_null(strstr(text, "\n\ndevice rxe0, driver rxe, transport RoCEv2, mtu mixed, "
				     "mode direct, verify yes, emulated software\n"));
	assert_non_null(strstr(text, "\n1 of 3 rows is partial: "));
	assert_null(strstr(text, "Both directions"));
	assert_non_null(strstr(text, "\nWarning: these figures compare software paths; they are no "
				     "hardware figures.\n"));
}

/* Figures of two directions are not to be taken for one's. */
static void test_table_bidir(void **state)
{
	struct report *r = opened(&report_table, OUT);
	struct result result;

	(void)state;
	fill(&result);
	strcpy(result.peer_signal, "half");
	result.peer_iterations = 10;
	add(r, &result);
	closed(r, true);
	assert_non_null(strstr(slurp(OUT),
			       "\nBoth directions: MiB/s and kIO/s add up both ends' own "
			       "averages, all else is the client's.\n"));
}

static void test_table_no_rows(void **state)
{
	(void)state;
	closed(opened(&report_table, OUT), true);
	check_table("");
}

/* In RPC mode the server has a part in it; a row of the other mode has none, and is another group.
 */
static void test_table_rpc(void **state)
{
	struct report *r = opened(&report_table, OUT);
	struct result result;
	const char *text;

	(void)state;
	fill(&result);
	strcpy(result.mode, "rpc");
	strcpy(result.peer_signal, "half");
	result.peer_sqe_per_io = 17;
	result.peer_cqe_per_io = 0.25;
	result.peer_posts_per_io = 1;
	add(r, &result);
	strcpy(result.mode, "direct");
	result.peer_signal[0] = '\0';
	add(r, &result);
	closed(r, true);
	text = slurp(OUT);
	assert_non_null(strstr(text, "for each I/O                      server's\n"));
	assert_non_null(strstr(text, "posts cpu us   SQE   CQE posts\n"));
	assert_non_null(strstr(text, "16.00   4.50 17.00  0.25  1.00\n\n     "));
	assert_non_null(strstr(text, "16.00   4.50\n\ndevice rxe0"));
	assert_null(strstr(text, "Both directions"));
}

/* How keys are revoked is shown where they are, and moves nothing but the next cell. */
static void test_table_revoke(void **state)
{
	static const char *const modes[] = {"remote", "none", ""};
	struct report *r = opened(&report_table, OUT);
	struct result result;
	const char *text;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		fill(&result);
		strcpy(result.strategy, "frwr");
		strcpy(result.signal, "half");
		strcpy(result.op, "read");
		strcpy(result.revoke, modes[i]);
		add(r, &result);
	}
	closed(r, true);
	text = slurp(OUT);
	text = strstr(text, "\nfrwr/remote half  read ");
	assert_non_null(text);
	text = strstr(text, "\nfrwr     half     read ");
	assert_non_null(text);
	assert_non_null(strstr(text + 1, "\nfrwr     half     read "));
}

static void test_table_appends(void **state)
{
	(void)state;
	spill(OUT, "before\n");
	write_one(&report_table, OUT);
	assert_memory_equal(slurp(OUT), "before\n\n      ", 14);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_table),	  test(test_table_groups),   test(test_table_cells),
		test(test_table_reasons), test(test_table_footnote), test(test_table_no_rows),
		test(test_table_bidir),	  test(test_table_appends),  test(test_table_rpc),
		test(test_table_revoke),
	};

	return cmocka_run_group_tests_name("report_table", tests, NULL, NULL);
}
