/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * perftest's tables: byte for byte, and as the scripts that are about read them. Each reader is
 * done again here from a description of what it relies on, and its numbers are compared with those
 * of the result.
 *
 * The bytes are those of perftest since 2024. Before, the label was MB/sec for the same MiB, and
 * there were two blanks less before the message rate.
 */
#include "report_fixture.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>

#define LINE                                                                                  \
	"-----------------------------------------------------------------------------------" \
	"----\n"
#define BW_HEADER \
	" #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n"
#define LAT_HEADER                                                           \
	" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]" \
	"    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"

#define WORDS 16
#define WORD  100 /* bytes of one, with its NUL */

/* ---- results and their tables ---- */

static const struct bw {
	double bytes, iterations, peak, average, rate;
} bws[] = {
	{65536, 1000, 1300.25, 1234.5678, 0.019753},   {2, 5, 0.01, 0.0049, 0.002569},
	{8388608, 20000, 11890.77, 11873.5, 0.001484}, {1, 123456789012.0, 2e6, 1e6, 12345.678},
	{2147483648.0, 1, 9.5, 9.5, 0.000005},
};

#define BWS (sizeof(bws) / sizeof(bws[0]))

static void fill_bw(struct result *r, const struct bw *bw)
{
	fill(r);
	r->bytes = bw->bytes;
	r->iterations = bw->iterations;
	r->bw_peak_MiBps = bw->peak;
	r->bw_avg_MiBps = bw->average;
	r->msg_rate_Mpps = bw->rate;
}

/* 1000 latencies of five values; 18 of 1000 and then 1 lie above most. */
static void fill_lat(struct result *r, double bytes, uint64_t ns)
{
	fill(r);
	r->bytes = bytes;
	r->iterations = 1000;
	for (unsigned int i = 0; i < 1000; i++)
		hist_add(&r->latency, i == 0	? ns / 2
				      : i < 980 ? ns
				      : i < 998 ? 2 * ns
				      : i < 999 ? 4 * ns
						: 8 * ns);
}

static const uint64_t typical_ns[] = {100, 1600, 51200, 1638400, 4194304000};

#define LATS (sizeof(typical_ns) / sizeof(typical_ns[0]))

static const char *table_of(const struct report_ops *ops, const struct result *r)
{
	struct report *report = opened(ops, OUT);

	add(report, r);
	closed(report, true);
	return slurp(OUT);
}

static const char *bw_table(const struct bw *bw)
{
	struct result r;

	unlink(OUT);
	fill_bw(&r, bw);
	return table_of(&report_perftest, &r);
}

static const char *lat_table(double bytes, uint64_t ns)
{
	static struct result r;

	unlink(OUT);
	fill_lat(&r, bytes, ns);
	return table_of(&report_perftest_lat, &r);
}

/* ---- bytes ---- */

static void test_bw_bytes(void **state)
{
	(void)state;
	assert_string_equal(bw_table(&bws[0]),
			    LINE BW_HEADER " 65536      1000             1300.25            1234.57"
					   "\t\t     0.019753\n" LINE);
	assert_string_equal(bw_table(&bws[1]),
			    LINE BW_HEADER " 2          5                0.01               0.00   "
					   "\t\t     0.002569\n" LINE);
	assert_string_equal(bw_table(&bws[3]),
			    LINE BW_HEADER " 1          123456789012       2000000.00            "
					   "1000000.00\t\t     12345.678000\n" LINE);
	assert_int_equal(strlen(LINE), 88);
}

/* The same by printf() of what perftest's sources have as its format. */
static void test_bw_printf(void **state)
{
	char row[400];

	(void)state;
	for (unsigned int i = 0; i < BWS; i++) {
		snprintf(row, sizeof(row),
			 LINE BW_HEADER " %-7lu    %-10lu       %-7.2f            %-7.2f\t\t     "
					"%-7.6f\n" LINE,
			 (unsigned long)bws[i].bytes, (unsigned long)bws[i].iterations, bws[i].peak,
			 bws[i].average, bws[i].rate);
		assert_string_equal(bw_table(&bws[i]), row);
	}
}

static void test_lat_bytes(void **state)
{
	(void)state;
	assert_string_equal(lat_table(4096, 100), LINE LAT_HEADER
			    " 4096    1000          0.05           0.80         0.10"
			    "     \t       0.10        \t0.03   \t\t0.20    "
			    "\t\t0.40   \n" LINE);
}

static void test_lat_printf(void **state)
{
	const char *text;
	static struct result r;
	char row[200];

	(void)state;
	for (unsigned int i = 0; i < LATS; i++) {
		const struct hist *h = &r.latency;

		fill_lat(&r, 64, typical_ns[i]);
		snprintf(row, sizeof(row),
			 " %-7lu %lu          %-7.2f        %-7.2f      %-7.2f  "
			 "\t       %-7.2f     \t%-7.2f\t\t%-7.2f \t\t%-7.2f\n",
			 64ul, 1000ul, (double)h->min / 1e3, (double)h->max / 1e3,
			 hist_quantile(h, 0.5, 0) / 1e3, hist_mean(h) / 1e3, hist_stdev(h) / 1e3,
			 hist_quantile(h, 0.99, 0) / 1e3, hist_quantile(h, 0.999, 0) / 1e3);
		text = lat_table(64, typical_ns[i]);
		text += strlen(LINE LAT_HEADER);
		assert_memory_equal(text, row, strlen(row));
		assert_string_equal(text + strlen(row), LINE);
	}
}

/* ---- the readers ---- */

/* A line's words, as split() has them. */
static unsigned int split(const char *line, char word[WORDS][WORD])
{
	unsigned int n = 0;
	const char *end = line + strcspn(line, "\n");

	while (line < end && n < WORDS) {
		size_t len;

		while (line < end && isspace((unsigned char)*line))
			line++;
		len = strcspn(line, " \t\n");
		if (line == end)
			break;
		assert_true(len < WORD);
		snprintf(word[n++], WORD, "%.*s", (int)len, line);
		line += len;
	}
	return n;
}

static const char *next_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end && end[1] ? end + 1 : NULL;
}

/* The text of one line; lives until the next call. */
static const char *one_line(const char *line)
{
	static char text[1000];

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(line, "\n"), line);
	return text;
}

/* One that strtod() takes whole, and that has its point. */
static double real(const char *word)
{
	char *end;
	double value = strtod(word, &end);

	if (!strchr(word, '.') || *end)
		fail_msg("'%s' is no float", word);
	return value;
}

static double whole(const char *word)
{
	assert_int_equal(word[strspn(word, "0123456789")], '\0');
	return strtod(word, NULL);
}

static bool shows(double text, double value, unsigned int digits)
{
	return fabs(text - value) <= 0.5000001 * pow(10, -(double)digits) + 1e-12 * value;
}

static bool near_percent(double a, double b)
{
	return fabs(a - b) <= 0.01 * b + 0.006;
}

/* The first match of @pattern in @text: its groups. */
static bool matches(const char *pattern, const char *text, unsigned int groups, double *value)
{
	regmatch_t m[WORDS];
	regex_t re;
	int rc;

	assert_int_equal(regcomp(&re, pattern, REG_EXTENDED), 0);
	assert_true(re.re_nsub >= groups);
	rc = regexec(&re, text, WORDS, m, 0);
	regfree(&re);
	for (unsigned int i = 0; !rc && i < groups; i++) {
		char word[64];

		snprintf(word, sizeof(word), "%.*s", (int)(m[i + 1].rm_eo - m[i + 1].rm_so),
			 text + m[i + 1].rm_so);
		value[i] = strtod(word, NULL);
	}
	return !rc;
}

/*
 * DCPerf: a line with #bytes and #iterations is a header; "BW peak" or "t_min" in it is the mode,
 * the unit stands there, too; the next line whose first word is a number is the one row of that
 * header. Returns how many figures it found.
 */
static unsigned int dcperf(const char *text, const char **unit, double *figure)
{
	const char *header = NULL, *line;
	char word[WORDS][WORD];
	unsigned int n, wanted = 0;

	for (line = text; line; line = next_line(line)) {
		const char *l = one_line(line);

		if (strstr(l, "#bytes") && strstr(l, "#iterations")) {
			header = line;
			wanted = strstr(l, "BW peak") ? 5 : strstr(l, "t_min") ? 9 : 0;
			*unit = strstr(l, "Gb/sec") ? "Gb" : strstr(l, "MiB/sec") ? "MiB" : "none";
			continue;
		}
		n = split(line, word);
		if (!header || !n || !isdigit((unsigned char)word[0][0]))
			continue;
		if (n < wanted)
			return 0;
		figure[0] = whole(word[0]);
		figure[1] = whole(word[1]);
		for (unsigned int i = 2; i < wanted; i++)
			figure[i] = real(word[i]);
		return wanted;
	}
	return 0;
}

/* superbench, loopback: lines of exactly five words, of which the first is an integer. */
static bool superbench_loopback(const char *text, double size, double *bandwidth)
{
	char word[WORDS][WORD];
	bool found = false;

	for (const char *line = text; line; line = next_line(line)) {
		unsigned int n = split(line, word);

		if (n != 5)
			continue;
		found = whole(word[0]) == size;
		*bandwidth = real(word[n - 2]);
	}
	return found;
}

#define INT    "[0-9]+"
#define FLOAT  "[0-9]+\\.[0-9]+"
#define BLANKS "[[:space:]]+"

/* superbench, validation: "BW" anywhere decides how lines are read; the largest counts. */
static bool superbench_validation(const char *text, double *largest)
{
	const char *pattern =
		strstr(text, "BW") ? INT BLANKS INT BLANKS FLOAT BLANKS "(" FLOAT ")" BLANKS FLOAT
				   : INT BLANKS INT BLANKS FLOAT BLANKS FLOAT BLANKS FLOAT BLANKS
			"(" FLOAT ")" BLANKS FLOAT BLANKS FLOAT BLANKS FLOAT;
	double value;
	bool found = false;

	*largest = 0;
	for (const char *line = text; line; line = next_line(line)) {
		if (!matches(pattern, one_line(line), 1, &value))
			continue;
		found = true;
		*largest = value > *largest ? value : *largest;
	}
	return found;
}

/* Azure's health checks: the first line that contains the size, its fourth word. */
static bool azure(const char *text, double size, double *bandwidth)
{
	char digits[32], word[WORDS][WORD];

	snprintf(digits, sizeof(digits), "%.0f", size);
	for (const char *line = text; line; line = next_line(line)) {
		if (!strstr(one_line(line), digits))
			continue;
		if (split(line, word) < 4)
			return false;
		*bandwidth = real(word[3]);
		return true;
	}
	return false;
}

/* cvs of ROCm: the size, anywhere, and what follows it; no bad word in all of the output. */
static bool cvs(const char *text, double size, unsigned int figures, double *figure)
{
	static const char *const bad[] = {"error", "fail"};
	char pattern[400];
	unsigned int n;

	for (unsigned int i = 0; i < 2; i++)
		if (strcasestr(text, bad[i]))
			return false;
	n = (unsigned int)snprintf(pattern, sizeof(pattern), "%.0f" BLANKS INT, size);
	if (figures == 2) /* the peak is skipped */
		n += (unsigned int)snprintf(pattern + n, sizeof(pattern) - n, BLANKS "[0-9.]+");
	for (unsigned int i = 0; i < figures; i++)
		n += (unsigned int)snprintf(pattern + n, sizeof(pattern) - n, BLANKS "([0-9.]+)");
	return matches(pattern, text, figures, figure);
}

/* rpma of pmem: blanks only between the first four, blanks and tabs behind. */
static bool rpma(const char *text, unsigned int groups, double *figure)
{
	char pattern[400] = "([0-9]+)[ ]+([0-9]+)[ ]+([0-9.]+)[ ]+([0-9.]+)";

	for (unsigned int i = 4; i < groups; i++)
		strcat(pattern, "[\t ]+([0-9.]+)");
	return matches(pattern, text, groups, figure);
}

/* ---- what they read ---- */

static void check_bw(const struct bw *bw, const double *figure)
{
	assert_true(figure[0] == bw->bytes && figure[1] == bw->iterations);
	assert_true(shows(figure[2], bw->peak, 2));
	assert_true(shows(figure[3], bw->average, 2));
	assert_true(shows(figure[4], bw->rate, 6));
}

static void test_bw_readers(void **state)
{
	double figure[WORDS];
	const char *unit = "none";

	(void)state;
	for (unsigned int i = 0; i < BWS; i++) {
		const struct bw *bw = &bws[i];
		const char *text = bw_table(bw);

		assert_int_equal(dcperf(text, &unit, figure), 5);
		assert_string_equal(unit, "MiB");
		check_bw(bw, figure);
		assert_true(rpma(text, 5, figure));
		check_bw(bw, figure);
		assert_true(superbench_loopback(text, bw->bytes, figure));
		assert_true(shows(figure[0], bw->average, 2));
		assert_true(superbench_validation(text, figure));
		assert_true(shows(figure[0], bw->average, 2));
		assert_true(azure(text, bw->bytes, figure));
		assert_true(shows(figure[0], bw->average, 2));
		assert_true(cvs(text, bw->bytes, 2, figure));
		assert_true(shows(figure[0], bw->average, 2) && shows(figure[1], bw->rate, 6));
	}
}

/* size, iterations, then min, max, typical, avg, stdev, 99 %, 99.9 % */
static void check_lat(const struct result *r, const double *figure)
{
	const struct hist *h = &r->latency;

	assert_true(shows(figure[0], (double)h->min / 1e3, 2));
	assert_true(shows(figure[1], (double)h->max / 1e3, 2));
	assert_true(near_percent(figure[2], hist_quantile(h, 0.5, 0) / 1e3));
	assert_true(shows(figure[3], hist_mean(h) / 1e3, 2));
	assert_true(shows(figure[4], hist_stdev(h) / 1e3, 2));
	assert_true(near_percent(figure[5], hist_quantile(h, 0.99, 0) / 1e3));
	assert_true(near_percent(figure[6], hist_quantile(h, 0.999, 0) / 1e3));
}

static void test_lat_readers(void **state)
{
	static struct result r;
	double figure[WORDS];
	const char *unit = "";

	(void)state;
	for (unsigned int i = 0; i < LATS; i++) {
		double bytes = (double)(64ul << i);
		const char *text = lat_table(bytes, typical_ns[i]);

		fill_lat(&r, bytes, typical_ns[i]);
		assert_int_equal(dcperf(text, &unit, figure), 9);
		assert_true(figure[0] == bytes && figure[1] == 1000);
		check_lat(&r, figure + 2);
		assert_true(rpma(text, 9, figure));
		assert_true(figure[0] == bytes && figure[1] == 1000);
		check_lat(&r, figure + 2);
		assert_true(superbench_validation(text, figure));
		assert_true(shows(figure[0], hist_mean(&r.latency) / 1e3, 2));
		assert_true(cvs(text, bytes, 7, figure));
		check_lat(&r, figure);
	}
}

/* A reader of one row for each header finds all of a sweep. */
static void test_sweep(void **state)
{
	struct report *report = opened(&report_perftest, OUT);
	double figure[WORDS];
	const char *text, *unit;
	struct result r;

	(void)state;
	for (unsigned int i = 0; i < BWS; i++) {
		fill_bw(&r, &bws[i]);
		add(report, &r);
	}
	closed(report, true);
	text = slurp(OUT);
	assert_int_equal(occurrences(text, "#bytes"), BWS);
	assert_int_equal(occurrences(text, "\n"), 4 * BWS);
	for (unsigned int i = 0; i < BWS; i++) {
		assert_int_equal(dcperf(text, &unit, figure), 5);
		check_bw(&bws[i], figure);
		text = strstr(text + 2 * strlen(LINE), LINE LINE);
		text = text ? text + strlen(LINE) : "";
	}
}

/* ---- runs that lack a figure ---- */

static void test_no_peak(void **state)
{
	struct bw bw = bws[0];
	double figure[WORDS];
	const char *unit;

	(void)state;
	bw.peak = NAN;
	assert_int_equal(dcperf(bw_table(&bw), &unit, figure), 5);
	bw.peak = 0;
	check_bw(&bw, figure);
	assert_non_null(strstr(slurp(OUT), " 0.00 "));
}

static void test_one_sample(void **state)
{
	static struct result r;
	double figure[WORDS];
	const char *unit;

	(void)state;
	fill(&r);
	r.iterations = 1;
	hist_add(&r.latency, 5000);
	assert_int_equal(dcperf(table_of(&report_perftest_lat, &r), &unit, figure), 9);
	assert_true(figure[2] == 5 && figure[3] == 5 && figure[4] == 5 && figure[5] == 5);
	assert_true(figure[6] == 0 && figure[7] == 5 && figure[8] == 5);
}

static void has_no_table(const struct report_ops *ops, struct result *r, const char *why)
{
	struct report *report = opened(ops, OUT);

	assert_int_equal(report_row(report, r, error, ERROR), -ENODATA);
	assert_true(says(why));
	r->status = RESULT_FAILED;
	assert_int_equal(report_row(report, r, error, ERROR), 0);
	assert_string_equal(slurp(OUT), "");
	r->status = RESULT_OK;
	hist_add(&r->latency, 5);
	add(report, r);
	closed(report, true);
	assert_int_equal(occurrences(slurp(OUT), "\n"), 4);
	unlink(OUT);
}

static void test_no_table(void **state)
{
	static struct result r;

	(void)state;
	fill(&r);
	has_no_table(&report_perftest_lat, &r,
		     "no latency was measured; it needs --timing io, --signal io");
	r.status = RESULT_SKIPPED;
	strcpy(r.reason, "no windows");
	has_no_table(&report_perftest_lat, &r, "it was skipped: no windows");
	r.status = RESULT_SKIPPED;
	has_no_table(&report_perftest, &r, "it was skipped: no windows");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_bw_bytes),   test(test_bw_printf),  test(test_lat_bytes),
		test(test_lat_printf), test(test_bw_readers), test(test_lat_readers),
		test(test_sweep),      test(test_no_peak),    test(test_one_sample),
		test(test_no_table),
	};

	return cmocka_run_group_tests_name("report_perftest", tests, NULL, NULL);
}
