/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of a fence as text. As with a probe, all are there at once. */
#include <errno.h>
#include <string.h>
#include "fence.h"
#include "report_internal.h"

#define NOTE_COLUMN 9 /* where notes start, on lines of their own */

static const char *const verdicts[] = {
	[FENCE_OK] = "ok", [FENCE_DIFFERS] = "differs", [FENCE_SKIPPED] = "skipped"};

#define FIELDS 9

static const char *const fields[FIELDS] = {"strategy", "revoke",   "right",    "bytes",	 "attempt",
					   "stage",    "expected", "observed", "verdict"};

/* A row's fields, in that order; of what was skipped most are empty. @bytes: room for a number. */
static void texts_of(const struct fence_row *row, const char *text[FIELDS], char bytes[24])
{
	const struct fence_cell *c = &row->cell;

	for (unsigned int i = 0; i < FIELDS; i++)
		text[i] = "";
	text[0] = c->strategy;
	text[1] = rxfer_revoke_name(c->revoke);
	text[8] = verdicts[fence_verdict(row)];
	if (row->skipped)
		return;
	snprintf(bytes, 24, "%llu", (unsigned long long)c->bytes);
	text[2] = c->write ? "write" : "read";
	text[3] = bytes;
	text[4] = fence_attempt_name(c->attempt);
	text[5] = fence_stage_name(c->stage);
	text[6] = fence_outcome_name(row->expected);
	text[7] = fence_outcome_name(row->observed);
}

/* ---- table ---- */

static void put_line(FILE *f, const char *const text[FIELDS])
{
	static const int width[FIELDS - 1] = {8, 6, 5, 7, 15, 8, 8, 8};

	for (unsigned int i = 0; i < FIELDS - 1; i++)
		fprintf(f, "%-*s ", width[i], text[i][0] ? text[i] : "-");
	fprintf(f, "%s\n", text[FIELDS - 1]);
}

static void put_rows(FILE *f, const struct fence_rows *rows)
{
	put_line(f, fields);
	for (unsigned int i = 0; i < rows->n; i++) {
		const char *text[FIELDS];
		char bytes[24];

		texts_of(&rows->row[i], text, bytes);
		put_line(f, text);
		if (rows->row[i].note[0])
			report_wrap(f, 0, NOTE_COLUMN, rows->row[i].note);
	}
}

static void put_found(FILE *f, const struct fence_rows *rows, const char *strategy)
{
	struct fence_found found = fence_find(rows, strategy);

	if (found.always)
		fprintf(f, "%s: the peer can use the key at any time%s.\n", strategy,
			found.all     ? ", and reach all declared memory"
			: found.pages ? ", and reach what is in the same page"
				      : "");
	if (found.beyond)
		fprintf(f,
			"%s: the peer can reach memory beyond an I/O's: this device does not keep to a key's bounds.\n",
			strategy);
}

static void put_summary(FILE *f, const struct fence_rows *rows)
{
	struct fence_tally t = fence_count(rows);
	const char *name;

	fprintf(f, "%s: %u as expected, %u %s", rxfer_count(t.cells, "cell").s, t.cells - t.differ,
		t.differ, t.differ == 1 ? "differs" : "differ");
	if (t.skipped)
		fprintf(f, "; %s skipped", rxfer_count(t.skipped, "row").s);
	fputs(".\n", f);
	for (unsigned int i = 0; (name = rxfer_strategy_name(i)); i++)
		put_found(f, rows, name);
}

static int put_table(struct report *r, FILE *f, const void *all, bool partial)
{
	const struct fence_rows *rows = all;
	int err;

	put_rows(f, rows);
	fputc('\n', f);
	put_summary(f, rows);
	err = report_put_shared(r, f);
	if (partial)
		fputs("Partial: ended before all was tried.\n", f);
	if (r->common.emulated[0])
		fputs("Warning: this is what such a device lets the peer do; a NIC may be stricter, or less.\n",
		      f);
	return err;
}

/* ---- csv ---- */

static int put_csv(struct report *r, FILE *f, const void *all, bool partial)
{
	const struct fence_rows *rows = all;
	(void)partial;
	for (unsigned int i = 0; i < FIELDS; i++)
		report_put_field(f, fields[i], ',');
	fputs("note,device,emulated\n", f);
	for (unsigned int i = 0; i < rows->n; i++) {
		const char *text[FIELDS];
		char bytes[24];

		texts_of(&rows->row[i], text, bytes);
		for (unsigned int j = 0; j < FIELDS; j++)
			report_put_field(f, text[j], ',');
		report_put_field(f, rows->row[i].note, ',');
		report_put_field(f, r->common.device, ',');
		report_put_field(f, r->common.emulated, '\n');
	}
	return 0;
}

static const struct report_whole formats[] = {
	REPORT_WHOLE("table", put_table),
	REPORT_WHOLE("csv", put_csv),
	REPORT_WHOLE_END,
};

const struct report_ops *fence_format(const char *name)
{
	return report_whole_find(formats, name);
}

int fence_write(struct report *r, const struct fence_rows *rows, const struct result *env,
		bool partial)
{
	return report_whole_write(formats, r, rows, env, partial);
}
