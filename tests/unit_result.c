/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The columns of the CSV contract and how their values are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../bench/result.h"

/* The contract as it is published. Columns may only be added behind it. */
static const char contract[] =
	"schema,status,reason,strategy,engine,mode,op,signal,revoke,peer_strategy,peer_signal,qps,"
	"depth,sq_depth,sq_wanted,sqe_max,bytes,frags,frag_gap,iterations,seconds,"
	"bw_peak_MiBps,bw_avg_MiBps,msg_rate_Mpps,lat_min_us,lat_p50_us,lat_p90_us,lat_p99_us,"
	"lat_p999_us,lat_p9999_us,lat_max_us,lat_avg_us,lat_stdev_us,samples,"
	"sqe_per_io,peer_sqe_per_io,cqe_per_io,peer_cqe_per_io,recv_cqe_per_io,posts_per_io,"
	"peer_posts_per_io,forced_signals,sq_peak,peer_sq_peak,stalls_per_io,stall_us_per_io,"
	"map_us_per_io,unmap_us_per_io,cpu_us_per_io,peer_cpu_us_per_io,poll_idle_pct,pinned_bytes,"
	"mr_count,exposed_bytes_peak,exposed_bytes_avg,exposure_scope,open_after_us_p50,"
	"open_after_us_p99,key_reuse_min,verify,partial,clock,device,driver,fw,transport,mtu,"
	"rd_atomic,kernel,host,peer_host,emulated,version,started,opts,"
	"cpu,mem_node,mem_huge_pct,peer_cpu,peer_mem_node,peer_iterations";

static void test_order(void **state)
{
	char header[4096] = "";

	(void)state;
	for (unsigned int i = 0; i < result_columns_count; i++) {
		strcat(header, i ? "," : "");
		strcat(header, result_columns[i].name);
	}
	header[sizeof(contract) - 1] = '\0'; /* what has been added is not part of it */
	assert_string_equal(header, contract);
}

/* Which column has what: a number written through the struct comes out under its name, and only
 * there. */
static void test_members(void **state)
{
	struct result r;
	char buf[1024];

	(void)state;
	for (unsigned int i = 0; i < result_columns_count; i++) {
		const struct column *c = &result_columns[i];
		double mark = 42;

		assert_ptr_equal(result_column(c->name), c);
		result_init(&r);
		if (c->kind == COLUMN_TEXT)
			strcpy((char *)&r + c->offset, "42");
		else if (c->kind == COLUMN_COUNT || c->kind == COLUMN_REAL)
			memcpy((char *)&r + c->offset, &mark, sizeof(mark));
		else
			continue;
		for (unsigned int j = 2; j < result_columns_count; j++) {
			result_format(&result_columns[j], &r, buf, sizeof(buf));
			assert_true(j == i ? atof(buf) == 42 : buf[0] == '\0');
		}
	}
	assert_null(result_column("no such"));
	r.lat_p99_us = 1.5;
	assert_string_equal(result_format(result_column("lat_p99_us"), &r, buf, 16), "1.500");
}

/* No member is forgotten: the columns fill the struct from the first text to the histogram. */
static void test_complete(void **state)
{
	size_t doubles = 0, texts = 0;

	(void)state;
	for (unsigned int i = 0; i < result_columns_count; i++) {
		doubles += result_columns[i].kind == COLUMN_COUNT ||
			   result_columns[i].kind == COLUMN_REAL;
		texts += result_columns[i].kind == COLUMN_TEXT;
	}
	texts -= 2; /* reason and opts have their own sizes */
	assert_in_range(offsetof(struct result, latency) - offsetof(struct result, reason),
			512 + sizeof(((struct result *)NULL)->opts) + doubles * sizeof(double) +
				texts * RESULT_TEXT,
			512 + sizeof(((struct result *)NULL)->opts) + doubles * sizeof(double) +
				texts * RESULT_TEXT + 64);
}

static void test_init(void **state)
{
	struct result r;
	char buf[64];

	(void)state;
	memset(&r, 0x55, sizeof(r));
	result_init(&r);
	assert_string_equal(result_format(&result_columns[0], &r, buf, sizeof(buf)), "1");
	assert_string_equal(result_format(&result_columns[1], &r, buf, sizeof(buf)), "ok");
	for (unsigned int i = 2; i < result_columns_count; i++)
		assert_string_equal(result_format(&result_columns[i], &r, buf, sizeof(buf)), "");
	assert_int_equal(r.latency.count, 0);
	assert_true(r.latency.min == UINT64_MAX);
}

static void test_status(void **state)
{
	(void)state;
	assert_string_equal(result_status_name(RESULT_OK), "ok");
	assert_string_equal(result_status_name(RESULT_SKIPPED), "skipped");
	assert_string_equal(result_status_name(RESULT_FAILED), "failed");
}

static const char *shown(const char *column, double value)
{
	const struct column *c = result_column(column);
	static char buf[64];
	struct result r;

	result_init(&r);
	memcpy((char *)&r + c->offset, &value, sizeof(value));
	return result_format(c, &r, buf, sizeof(buf));
}

static void test_numbers(void **state)
{
	(void)state;
	assert_string_equal(shown("iterations", 9007199254740992.0), "9007199254740992");
	assert_string_equal(shown("bytes", 1048576), "1048576");
	assert_string_equal(shown("forced_signals", 0), "0");
	assert_string_equal(shown("lat_p50_us", 1.23456), "1.235");
	assert_string_equal(shown("lat_p50_us", 1e6), "1000000.000");
	assert_string_equal(shown("bw_avg_MiBps", 11234.567), "11234.57");
	assert_string_equal(shown("msg_rate_Mpps", 0.000123), "0.000123");
	assert_string_equal(shown("sqe_per_io", 1.0625), "1.0625");
	assert_string_equal(shown("seconds", 2), "2.000000");
	assert_string_equal(shown("poll_idle_pct", 99.5), "99.50");
	assert_string_equal(shown("mem_huge_pct", 33.333), "33.3");
	assert_string_equal(shown("lat_p50_us", -0.0), "0.000");
	assert_string_equal(shown("lat_p50_us", -0.0001), "0.000");
	assert_string_equal(shown("lat_p50_us", NAN), "");
	assert_string_equal(shown("lat_p50_us", INFINITY), "");
	assert_string_equal(shown("bytes", 1e300),
			    ""); /* does not fit: no figure, not a part of one */
}

static void test_texts(void **state)
{
	const struct column *c = result_column("reason");
	struct result r;
	char buf[64];

	(void)state;
	result_init(&r);
	strcpy(r.reason, "a,b \"c\"\r\nd\te it's");
	assert_string_equal(result_format(c, &r, buf, sizeof(buf)), "a;b  c   d e it's");
	assert_string_equal(result_format(c, &r, buf, 4), "a;b");
}

/*
 * A locale whose decimal point is a comma. Few machines have one installed, so this one is made on
 * the spot: the compiled form of LC_NUMERIC, as the C library keeps it, is but a table of offsets
 * and the strings.
 */
static int write_comma_locale(const char *dir)
{
	static const uint32_t head[] = {0x20031114, 6, 32, 34, 36, 40, 44, 48};
	static const uint32_t wide[] = {',', '.'};
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/comma", dir);
	if (mkdir(path, 0700))
		return -1;
	snprintf(path, sizeof(path), "%s/comma/LC_NUMERIC", dir);
	f = fopen(path, "w");
	if (!f)
		return -1;
	fwrite(head, sizeof(head), 1, f);
	fwrite(",\0.\0\3\3\0\0", 8, 1, f);
	fwrite(wide, sizeof(wide), 1, f);
	fwrite("ANSI_X3.4-1968", 15, 1, f);
	return fclose(f);
}

static void remove_comma_locale(const char *dir)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/comma/LC_NUMERIC", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/comma", dir);
	rmdir(path);
	rmdir(dir);
}

static void test_locale(void **state)
{
	char dir[] = "/tmp/unit_result.XXXXXX";
	char number[16], after[16], probe[16];
	int written;

	(void)state;
	assert_non_null(mkdtemp(dir));
	written = write_comma_locale(dir);
	setenv("LOCPATH", dir, 1);
	uselocale(LC_GLOBAL_LOCALE);
	setlocale(LC_NUMERIC, "comma");
	snprintf(probe, sizeof(probe), "%.1f", 0.5);
	snprintf(number, sizeof(number), "%s", shown("lat_p50_us", 1.5));
	snprintf(after, sizeof(after), "%.1f", 0.5);
	setlocale(LC_NUMERIC, "C");
	unsetenv("LOCPATH");
	remove_comma_locale(dir);
	assert_int_equal(written, 0);
	if (strcmp(probe, "0,5") != 0)
		skip(); /* not this C library's form */
	assert_string_equal(number, "1.500");
	assert_string_equal(after, "0,5"); /* the caller's locale is as it was */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	 cmocka_unit_test(test_members),
		cmocka_unit_test(test_complete), cmocka_unit_test(test_init),
		cmocka_unit_test(test_status),	 cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_texts),	 cmocka_unit_test(test_locale),
	};

	return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}
