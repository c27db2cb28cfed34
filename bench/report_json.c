/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * JSON: one document for the whole invocation, one key a line so that two documents can be compared
 * by diff. The rows are collected in memory, because the head tells what they have in common.
 * Numbers carry the same digits as in the CSV; what was not measured is null.
 */
#include "report_internal.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* In @environment, in this order. */
static const char *const environment[] = {"device", "driver", "fw",	   "transport", "mtu",
					  "kernel", "host",   "peer_host", "clock",	"emulated"};

#define ENVIRONMENT (sizeof(environment) / sizeof(environment[0]))

/* Names from outside may hold any bytes, JSON takes UTF-8 only. */
static json_t *string_of(const char *text)
{
	json_t *string = json_string(text);
	char *ascii;

	if (string)
		return string;
	ascii = strdup(text);
	for (char *p = ascii; p && *p; p++)
		if (*p & 0x80)
			*p = '?';
	string = ascii ? json_string(ascii) : NULL;
	free(ascii);
	return string;
}

int report_put_string(FILE *f, const char *text)
{
	json_t *string = string_of(text);
	int failed = !string || json_dumpf(string, f, JSON_ENCODE_ANY);

	json_decref(string);
	return failed ? -ENOMEM : 0;
}

static int put_value(FILE *f, const struct column *c, const struct result *result)
{
	const char *text = c ? result_text(c, result) : NULL;
	char number[REPORT_FIELD];

	if (text && text[0])
		return report_put_string(f, text);
	if (!c || text || !result_format(c, result, number, sizeof(number))[0])
		fputs("null", f);
	else
		fputs(number, f);
	return 0;
}

static void put_histogram(FILE *f, const struct hist *h)
{
	const char *separator = "";

	fputs("      \"histogram\": [", f);
	for (unsigned int i = 0; i < HIST_BUCKETS; i++) {
		if (!h->bucket[i])
			continue;
		fprintf(f, "%s[%llu, %llu]", separator, (unsigned long long)hist_bucket_low(i),
			(unsigned long long)h->bucket[i]);
		separator = ", ";
	}
	fputs("]\n", f);
}

/*
 * The names under which scripts look for bandwidth in perftest's JSON, line by line. For the mean
 * latency they look for "t_avg", which they find in lat_avg_us: a second one would be one too many.
 */
static int put_perftest_names(FILE *f, const struct result *result)
{
	static const char *const names[][2] = {{"BW_peak", "bw_peak_MiBps"},
					       {"BW_average", "bw_avg_MiBps"},
					       {"MsgRate", "msg_rate_Mpps"}};
	int err = 0;

	fputs("      \"perftest\": {\n", f);
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]) && !err; i++) {
		fprintf(f, "        \"%s\": ", names[i][0]);
		err = put_value(f, result_column(names[i][1]), result);
		fputs(",\n", f);
	}
	fputs("        \"units\": \"MiB/s, million messages/s\"\n      },\n", f);
	return err;
}

static int json_begin(struct report *r)
{
	(void)r;
	return 0;
}

static int json_row(struct report *r, const struct result *result)
{
	FILE *f = report_text(r);
	long start;
	int err = 0;

	if (!f)
		return -ENOMEM;
	start = ftell(f);
	fprintf(f, "%s\n    {\n", r->rows ? "," : "");
	for (unsigned int i = 0; i < result_columns_count && !err; i++) {
		fprintf(f, "      \"%s\": ", result_columns[i].name);
		err = put_value(f, &result_columns[i], result);
		fputs(",\n", f);
	}
	err = err ? err : put_perftest_names(f, result);
	put_histogram(f, &result->latency);
	fputs("    }", f);
	if (err)
		fseek(f, start, SEEK_SET); /* no half row among the others */
	return err;
}

int report_put_head(struct report *r, FILE *f)
{
	int err;

	fputs("{\n  \"version\": ", f);
	err = put_value(f, report_common(r, "version"), &r->common);
	fputs(",\n  \"environment\": {", f);
	for (unsigned int i = 0; i < ENVIRONMENT && !err; i++) {
		fprintf(f, "%s\n    \"%s\": ", i ? "," : "", environment[i]);
		err = put_value(f, report_common(r, environment[i]), &r->common);
	}
	fputs("\n  },\n  \"options\": ", f);
	return err ? err : report_put_string(f, r->opts);
}

static int json_end(struct report *r)
{
	char *rows;
	size_t len;
	FILE *f;
	int err;

	if (!r->keep)
		return 0;
	err = report_take(r, &rows, &len);
	if (err)
		return err;
	f = report_text(r);
	err = f ? report_put_head(r, f) : -ENOMEM;
	if (!err)
		fprintf(f, ",\n  \"rows\": [%s%s]\n}\n", rows, r->rows ? "\n  " : "");
	free(rows);
	return err ? err : report_flush(r);
}

const struct report_ops report_json = {
	.name = "json",
	.summary = "one document at the end, every column and the latency histograms",
	.replaces = true,
	.begin = json_begin,
	.row = json_row,
	.end = json_end,
};
