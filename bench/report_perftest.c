/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * perftest's tables, for the scripts that read them: bandwidth as the *_bw programs print it,
 * latency as the *_lat programs do, byte for byte.
 *
 * Those scripts split lines at blanks, count the words, or search all of the output for numbers and
 * for words like "BW". So there is what perftest prints and nothing else: no further column, no
 * footnote. Each run is a table of its own with its header, written at once: many readers take the
 * header, then one row. A figure is always a number with a point; a run that has none of these
 * figures has no table, and its reason is said on stderr (by whoever called report_row()).
 *
 * The numbers are ours. The peak is had in runs of any length (see peak.c). The longest latency is
 * the longest, where perftest leaves out the largest; the deviation is computed in fractions, where
 * perftest cuts each difference to whole microseconds; WRITE and SEND are timed until they are
 * complete, not halved round trips.
 */
#include "report_internal.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define LINE \
	"---------------------------------------------------------------------------------------\n"

#define BW_HEADER \
	" #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n"

#define LAT_HEADER                                                               \
	" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    " \
	"t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"

#define NUMBER 400 /* bytes that hold any double */

struct number {
	char text[NUMBER];
};

/* perftest shows what it did not measure as 0.00. */
static const char *shown(double value, unsigned int digits, struct number *n)
{
	return result_number(isfinite(value) ? value : 0, digits, n->text, sizeof(n->text));
}

static unsigned long long count(double value)
{
	return isfinite(value) ? (unsigned long long)value : 0;
}

static void put_bw(FILE *f, const struct result *r)
{
	struct number peak, average, rate;

	fprintf(f,
		LINE BW_HEADER " %-7llu    %-10llu       %-7s            %-7s\t\t     %-7s\n" LINE,
		count(r->bytes), count(r->iterations), shown(r->bw_peak_MiBps, 2, &peak),
		shown(r->bw_avg_MiBps, 2, &average), shown(r->msg_rate_Mpps, 6, &rate));
}

/* In us. All from the histogram, also the percentiles that the columns leave empty as noise. */
static void put_lat(FILE *f, const struct result *r)
{
	const struct hist *h = &r->latency;
	struct number least, most, typical, average, stdev, p99, p999;

	fprintf(f, "%s%s", LINE, LAT_HEADER);
	fprintf(f,
		" %-7llu %llu          %-7s        %-7s      %-7s  \t       %-7s     \t%-7s\t\t%-7s "
		"\t\t%-7s\n%s",
		count(r->bytes), count(r->iterations), shown((double)h->min / 1e3, 2, &least),
		shown((double)h->max / 1e3, 2, &most),
		shown(hist_quantile(h, 0.5, 0) / 1e3, 2, &typical),
		shown(hist_mean(h) / 1e3, 2, &average), shown(hist_stdev(h) / 1e3, 2, &stdev),
		shown(hist_quantile(h, 0.99, 0) / 1e3, 2, &p99),
		shown(hist_quantile(h, 0.999, 0) / 1e3, 2, &p999), LINE);
}

static int begin(struct report *r)
{
	(void)r;
	return 0;
}

static int end(struct report *r)
{
	(void)r;
	return 0;
}

/* Says so if @result has no table. That it failed has been said. */
static int no_table(struct report *r, const struct result *result)
{
	if (result->status == RESULT_FAILED)
		return 0;
	return report_fail(r, -ENODATA, "it was skipped: %s", result->reason);
}

static int bw_row(struct report *r, const struct result *result)
{
	FILE *f;

	if (result->status != RESULT_OK)
		return no_table(r, result);
	f = report_text(r);
	if (!f)
		return -ENOMEM;
	put_bw(f, result);
	return report_flush(r);
}

static int lat_row(struct report *r, const struct result *result)
{
	FILE *f;

	if (result->status != RESULT_OK)
		return no_table(r, result);
	if (!result->latency.count)
		return report_fail(r, -ENODATA,
				   strcmp(result->mode, "rpc")
					   ? "no latency was measured; it needs --timing io, "
					     "--signal io or all, and over iWARP --op read"
					   : "no latency was measured; it needs --timing io");
	f = report_text(r);
	if (!f)
		return -ENOMEM;
	put_lat(f, result);
	return report_flush(r);
}

const struct report_ops report_perftest = {
	.name = "perftest",
	.summary = "the bandwidth table of perftest, for scripts that read it",
	.bare = true,
	.begin = begin,
	.row = bw_row,
	.end = end,
};

const struct report_ops report_perftest_lat = {
	.name = "perftest-lat",
	.summary = "the latency table of perftest, for scripts that read it",
	.bare = true,
	.begin = begin,
	.row = lat_row,
	.end = end,
};
