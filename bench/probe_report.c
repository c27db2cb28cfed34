/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The findings of a probe as text. Opening, replacing and closing files is the reports' business;
 * since all findings are there at once, a format is just the way to compose them.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include "probing.h"
#include "report_internal.h"

#define NOTE_COLUMN 63 /* where notes start */

static void table_rows(FILE *f, const struct probe_rows *rows)
{
	char value[64];

	fprintf(f, "%-23s %-16s %11s %-8s  %s\n", "quantity", "variant", "value", "unit", "note");
	for (unsigned int i = 0; i < rows->n; i++) {
		const struct probe_row *row = &rows->row[i];
		int at;

		if (i && row->section != row[-1].section)
			fputc('\n', f);
		result_number(row->value, row->digits, value, sizeof(value));
		at = fprintf(f, "%-23s %-16s %11s %s", row->quantity, row->variant,
			     value[0] ? value : "-", row->unit);
		if (row->note[0])
			report_wrap(f, (unsigned int)at, NOTE_COLUMN, row->note);
		else
			fputc('\n', f);
	}
}

static int put_table(struct report *r, FILE *f, const void *all, bool partial)
{
	const struct probe_rows *rows = all;
	int err;

	table_rows(f, rows);
	fputc('\n', f);
	err = report_put_shared(r, f);
	if (partial)
		fputs("Partial: ended before all was probed.\n", f);
	if (r->common.emulated[0])
		fputs(EMULATED_WARNING, f);
	return err;
}

static int put_csv(struct report *r, FILE *f, const void *all, bool partial)
{
	const struct probe_rows *rows = all;
	char value[64];

	(void)r;
	(void)partial;
	fputs("quantity,variant,value,unit,note\n", f);
	for (unsigned int i = 0; i < rows->n; i++) {
		const struct probe_row *row = &rows->row[i];

		report_put_field(f, row->quantity, ',');
		report_put_field(f, row->variant, ',');
		report_put_field(f, result_number(row->value, row->digits, value, sizeof(value)),
				 ',');
		report_put_field(f, row->unit, ',');
		report_put_field(f, row->note, '\n');
	}
	return 0;
}

/* One more member of a JSON row; an empty text is null. */
static int put_member(FILE *f, const char *name, const char *text, const char *end)
{
	int err = 0;

	fprintf(f, "      \"%s\": ", name);
	if (text[0])
		err = report_put_string(f, text);
	else
		fputs("null", f);
	fputs(end, f);
	return err;
}

static int put_json_row(FILE *f, const struct probe_row *row)
{
	char value[64];
	int err = put_member(f, "quantity", row->quantity, ",\n");

	if (!err)
		err = put_member(f, "variant", row->variant, ",\n");
	result_number(row->value, row->digits, value, sizeof(value));
	fprintf(f, "      \"value\": %s,\n", value[0] ? value : "null");
	if (!err)
		err = put_member(f, "unit", row->unit, ",\n");
	return err ? err : put_member(f, "note", row->note, "\n");
}

static int put_json(struct report *r, FILE *f, const void *all, bool partial)
{
	const struct probe_rows *rows = all;
	int err = report_put_head(r, f);

	fprintf(f, ",\n  \"partial\": %s,\n  \"rows\": [", partial ? "true" : "false");
	for (unsigned int i = 0; !err && i < rows->n; i++) {
		fprintf(f, "%s\n    {\n", i ? "," : "");
		err = put_json_row(f, &rows->row[i]);
		fputs("    }", f);
	}
	fputs("\n  ]\n}\n", f);
	return err;
}

static const struct report_whole formats[] = {
	REPORT_WHOLE("table", put_table),
	REPORT_WHOLE("csv", put_csv),
	REPORT_WHOLE("json", put_json),
	REPORT_WHOLE_END,
};

const struct report_ops *probe_format(const char *name)
{
	return report_whole_find(formats, name);
}

int probe_write(struct report *r, const struct probe_rows *rows, const struct result *env,
		bool partial)
{
	return report_whole_write(formats, r, rows, env, partial);
}
