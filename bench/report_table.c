/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table for people: the few columns that one compares strategies by, in 100 characters; in RPC
 * mode, where the server works too, three of its in 18 more. Rows show as they come, so it is the
 * first that decides on the header. A cell that is too wide for its place borrows from the blanks
 * of the next, so that one long name does not shift the whole line.
 */
#include "report_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 100

/* The ends of the columns below are those of the words here. */
static const char *const header[2] = {
	"                                                            latency, us     for each I/O",
	"strategy signal   op      size frags qd/qps   MiB/s   kIO/s     p50     p99   SQE   CQE "
	"posts cpu us",
};
static const char *const rpc_header[2] = {"              server's", "   SQE   CQE posts"};

#define AFTER_SHAPE 45 /* where reasons start */

struct cell {
	const char *column;
	unsigned int end;
	unsigned int width;
	unsigned int digits; /* behind the point; fewer where the width demands it */
	double scale;
};

static const struct cell figures[] = {
	{"bw_avg_MiBps", 51, 7, 1, 1}, {"msg_rate_Mpps", 59, 7, 2, 1000},
	{"lat_p50_us", 67, 7, 2, 1},   {"lat_p99_us", 75, 7, 2, 1},
	{"sqe_per_io", 81, 5, 2, 1},   {"cqe_per_io", 87, 5, 2, 1},
	{"posts_per_io", 93, 5, 2, 1}, {"cpu_us_per_io", 100, 6, 2, 1},
};

#define FIGURES (sizeof(figures) / sizeof(figures[0]))

static const struct cell rpc_figures[] = {
	{"peer_sqe_per_io", 106, 5, 2, 1},
	{"peer_cqe_per_io", 112, 5, 2, 1},
	{"peer_posts_per_io", 118, 5, 2, 1},
};

#define RPC_FIGURES (sizeof(rpc_figures) / sizeof(rpc_figures[0]))

/* In the footnote. */
static const char *const shared[] = {"device", "driver", "transport", "mtu",
				     "mode",   "verify", "emulated"};

#define SHARED (sizeof(shared) / sizeof(shared[0]))

/* ---- one line of cells ---- */

struct line {
	FILE *f;
	unsigned int at; /* characters so far */
};

static const char *or_dash(const char *text)
{
	return text[0] ? text : "-";
}

/* At least one blank between two cells, whatever their width. */
static void pad_to(struct line *l, unsigned int column)
{
	unsigned int n = column > l->at ? column - l->at : l->at > 0;

	fprintf(l->f, "%*s", (int)n, "");
	l->at += n;
}

static void put_left(struct line *l, unsigned int start, const char *text)
{
	pad_to(l, start);
	fputs(text, l->f);
	l->at += (unsigned int)strlen(text);
}

static void put_right(struct line *l, unsigned int end, const char *text)
{
	unsigned int len = (unsigned int)strlen(text);

	put_left(l, end > len ? end - len : 0, text);
}

/* 4096 is 4k. */
static const char *size_text(double bytes, char *buf, unsigned int size)
{
	double mib = bytes / (1 << 20), kib = bytes / (1 << 10);
	double shown = bytes > 0 && mib == floor(mib)	? mib
		       : bytes > 0 && kib == floor(kib) ? kib
							: bytes;

	if (!result_number(shown, 0, buf, size - 1)[0])
		return "-";
	strcat(buf, shown == bytes ? "" : shown == mib ? "m" : "k");
	return buf;
}

static void put_figure(struct line *l, const struct cell *cell, const struct result *result)
{
	double value = result_value(result_column(cell->column), result) * cell->scale;
	unsigned int digits = cell->digits + 1;
	char text[64];

	do
		result_number(value, --digits, text, sizeof(text));
	while (digits && strlen(text) > cell->width);
	put_right(l, cell->end, or_dash(text));
}

/* "frwr/remote": with how its keys are revoked, where they are. */
static void put_strategy(struct line *l, const struct result *result)
{
	bool revokes = result->revoke[0] && strcmp(result->revoke, "none");

	put_left(l, 0, or_dash(result->strategy));
	if (!revokes)
		return;
	fprintf(l->f, "/%s", result->revoke);
	l->at += 1 + (unsigned int)strlen(result->revoke);
}

static void put_shape(struct line *l, const struct result *result)
{
	char depth[64], qps[64], text[192];

	put_strategy(l, result);
	put_left(l, 9, or_dash(result->signal));
	put_left(l, 18, or_dash(result->op));
	put_right(l, 30, size_text(result->bytes, text, sizeof(text)));
	put_right(l, 36, or_dash(result_number(result->frags, 0, text, sizeof(text))));
	result_number(result->depth, 0, depth, sizeof(depth));
	result_number(result->qps, 0, qps, sizeof(qps));
	snprintf(text, sizeof(text), "%s/%s", or_dash(depth), or_dash(qps));
	put_right(l, 43, depth[0] || qps[0] ? text : "-");
}

/* ---- running text ---- */

/* How much of @text goes into @room: whole words, or, if one is longer than that, all of the word.
 */
static unsigned int fitting(const char *text, unsigned int room)
{
	size_t len = strlen(text);
	size_t n = len < room ? len : room;

	if (n == len)
		return (unsigned int)n;
	while (n && text[n] != ' ')
		n--;
	return (unsigned int)(n ? n : strcspn(text, " "));
}

/* Words from @start on, on as many lines as they need; ends the last one. */
static void put_wrapped(struct line *l, unsigned int start, const char *text)
{
	do {
		unsigned int n = fitting(text, WIDTH - start);

		pad_to(l, start);
		fprintf(l->f, "%.*s\n", (int)n, text);
		l->at = 0;
		text += n;
		text += strspn(text, " ");
	} while (*text);
}

void report_wrap(FILE *f, unsigned int at, unsigned int start, const char *text)
{
	struct line l = {.f = f, .at = at};

	put_wrapped(&l, start, text);
}

/* ---- the report ---- */

static int table_begin(struct report *r)
{
	FILE *f = report_text(r);

	if (!f)
		return -ENOMEM;
	fputc('\n', f); /* the header waits for a row, but a full disk should not */
	return report_flush(r);
}

static bool is_rpc(const struct result *result)
{
	return !strcmp(result->mode, "rpc");
}

static void put_header(FILE *f, bool rpc)
{
	for (unsigned int i = 0; i < 2; i++)
		fprintf(f, "%s%*s%s\n", header[i],
			rpc && i == 0 ? (int)(WIDTH - strlen(header[i])) - 4 : 0, "",
			rpc ? rpc_header[i] : "");
}

static void put_figures(struct line *l, const struct result *result)
{
	for (unsigned int i = 0; i < FIGURES; i++)
		put_figure(l, &figures[i], result);
	for (unsigned int i = 0; i < RPC_FIGURES && is_rpc(result); i++)
		put_figure(l, &rpc_figures[i], result);
	fputc('\n', l->f);
}

static bool same(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static bool same_group(const struct result *a, const struct result *b)
{
	return !strcmp(a->mode, b->mode) && !strcmp(a->op, b->op) && same(a->bytes, b->bytes) &&
	       same(a->frags, b->frags);
}

static void put_reason(struct line *l, const struct result *result)
{
	char text[sizeof(result->reason) + 16];

	snprintf(text, sizeof(text), "%s%s%s", result_status_name(result->status),
		 result->reason[0] ? ": " : "", result->reason);
	for (char *p = text; *p; p++)
		*p = (unsigned char)*p < ' ' ? ' ' : *p;
	put_wrapped(l, AFTER_SHAPE, text);
}

static int table_row(struct report *r, const struct result *result)
{
	struct line l = {.f = report_text(r)};

	if (!l.f)
		return -ENOMEM;
	if (r->rows && !same_group(&r->last, result))
		fputc('\n', l.f);
	if (r->rows == 0 || strcmp(r->last.mode, result->mode))
		put_header(l.f, is_rpc(result));
	put_shape(&l, result);
	if (result->status == RESULT_OK)
		put_figures(&l, result);
	else
		put_reason(&l, result);
	return report_flush(r);
}

/* "device rxe0, driver rxe": what is known, on lines of WIDTH. */
int report_put_shared(const struct report *r, FILE *out)
{
	struct line l = {.f = out};
	char value[REPORT_FIELD];
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return -ENOMEM;
	for (unsigned int i = 0; i < SHARED; i++) {
		const struct column *c = result_column(shared[i]);
		bool one = report_common(r, shared[i]) != NULL;

		if (result_format(c, &r->common, value, sizeof(value))[0])
			fprintf(f, "%s%s %s", ftell(f) ? ", " : "", c->name, one ? value : "mixed");
	}
	if (fclose(f)) {
		free(text);
		return -ENOMEM;
	}
	if (len)
		put_wrapped(&l, 0, text);
	free(text);
	return 0;
}

static int table_end(struct report *r)
{
	FILE *f = report_text(r);
	int err;

	if (!f)
		return -ENOMEM;
	if (r->rows)
		fputc('\n', f);
	else
		put_header(f, false);
	err = report_put_shared(r, f);
	if (err)
		return err;
	if (isfinite(r->common.peer_iterations)) /* --bidir is for a whole sweep */
		fputs("Both directions: MiB/s and kIO/s add up both ends' own averages, all else is the client's.\n",
		      f);
	if (r->partial)
		fprintf(f, "%u of %u rows %s partial: interrupted before the end of the run.\n",
			r->partial, r->rows, r->partial == 1 ? "is" : "are");
	if (r->common.emulated[0])
		fputs(EMULATED_WARNING, f);
	return report_flush(r);
}

const struct report_ops report_table = {
	.name = "table",
	.summary = "for people: the columns to compare strategies by",
	.begin = table_begin,
	.row = table_row,
	.end = table_end,
};
