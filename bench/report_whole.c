/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reports of what is all there at once, as of a probe or a fence. Opening, replacing and closing
 * files is as with runs; a format is just the way to compose the text.
 */
#include <errno.h>
#include <string.h>
#include "report_internal.h"

int report_whole_begin(struct report *r)
{
	(void)r;
	return 0;
}

/* What was composed; or nothing, and a file that was there before stays. */
int report_whole_end(struct report *r)
{
	return r->keep ? report_flush(r) : 0;
}

const struct report_ops *report_whole_find(const struct report_whole *formats, const char *name)
{
	while (formats->ops.name && strcmp(formats->ops.name, name))
		formats++;
	return formats->ops.name ? &formats->ops : NULL;
}

int report_whole_write(const struct report_whole *formats, struct report *r, const void *rows,
		       const struct result *env, bool partial)
{
	FILE *f = report_text(r);

	if (!f)
		return -ENOMEM;
	r->common = *env;
	while (formats->ops.name && &formats->ops != r->ops)
		formats++;
	return formats->put ? formats->put(r, f, rows, partial) : -EINVAL;
}

void report_put_field(FILE *f, const char *text, char end)
{
	for (const char *p = text; *p; p++)
		fputc(*p == ',' ? ';' : *p == '"' || (unsigned char)*p < ' ' ? ' ' : *p, f);
	fputc(end, f);
}
