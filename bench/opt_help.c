/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --help, written from the table: two columns, the right one filled word by word. */
#include <string.h>
#include "opt.h"

#define TEXT_COLUMN 27
#define LAST_COLUMN 96

static void start_line(FILE *out, unsigned int *column)
{
	fprintf(out, "\n%*s", TEXT_COLUMN, "");
	*column = TEXT_COLUMN;
}

/* Blanks separate words; a new line begins where the next one would not fit. */
static void fill(FILE *out, unsigned int *column, const char *text)
{
	while (*text) {
		unsigned int len = strcspn(text, " ");

		if (*column > TEXT_COLUMN && *column + 1 + len > LAST_COLUMN)
			start_line(out, column);
		*column += fprintf(out, "%s%.*s", *column > TEXT_COLUMN ? " " : "", (int)len, text);
		text += len + (text[len] == ' ');
	}
}

/* @names: "-s, --size"; @arg: NULL for none. */
static void left_column(const char *names, const char *arg, bool list, FILE *out,
			unsigned int *column)
{
	char left[CFG_TEXT];

	snprintf(left, sizeof(left), "  %s%s%s%s", names, arg ? " " : "", arg ? arg : "",
		 arg && list ? ",..." : "");
	*column = fprintf(out, "%-*s", TEXT_COLUMN - 1, left);
	if (*column >= TEXT_COLUMN)
		start_line(out, column);
	else
		*column += fprintf(out, " ");
}

/* What may be said, and what holds otherwise: "[1..2g; default 64k]". */
static void values(const struct opt *o, char *buf, unsigned int size)
{
	char range[CFG_TEXT];

	buf[0] = '\0';
	if (opt_name(o, 0))
		text_add(buf, size, "[%s", opt_names(o, range, sizeof(range)));
	else if (o->max)
		text_add(buf, size, "[%s", opt_range(o, range, sizeof(range)));
	if (*buf && o->def)
		text_add(buf, size, "; default %s", o->def);
	if (*buf)
		text_add(buf, size, "]");
}

static void help_option(const struct opt *o, FILE *out)
{
	char range[2 * CFG_TEXT], names[CFG_TEXT], letter[] = "    ";
	unsigned int column;

	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	snprintf(names, sizeof(names), "%s--%s", letter, o->name);
	left_column(names, o->arg, o->flags & OPT_SWEEP, out, &column);
	fill(out, &column, o->help);
	values(o, range, sizeof(range));
	fill(out, &column, range);
	fputc('\n', out);
}

/* The @i-th alias that is one of @o; NULL behind the last. */
static const struct opt_alias *alias_of(const struct opt *o, unsigned int i)
{
	const struct opt_alias *a;

	for (a = opt_aliases; a < opt_aliases + opt_aliases_count; a++)
		if (!strcmp(a->option, o->name) && !i--)
			return a;
	return NULL;
}

static void help_aliases(const struct opt *o, FILE *out)
{
	const struct opt_alias *a;
	unsigned int i, column;

	for (i = 0; (a = alias_of(o, i)); i++) {
		char letter[] = {'-', a->letter, '\0'};

		left_column(letter, a->arg, o->flags & OPT_SWEEP, out, &column);
		fill(out, &column, "the same as");
		fill(out, &column, a->help);
		fputc('\n', out);
	}
}

/* In the order of the options, so that each is easily found above. */
static void perftest_letters(unsigned int command, FILE *out)
{
	const struct opt_alias *a;
	const struct opt *o;
	unsigned int i;

	fputs("These letters mean the same in perftest:", out);
	for (o = opt_table; o < opt_table + opt_table_count; o++) {
		if (!(o->commands & command))
			continue;
		if (o->flags & OPT_PERFTEST)
			fprintf(out, " -%c", o->letter);
		for (i = 0; (a = alias_of(o, i)); i++)
			fprintf(out, " -%c", a->letter);
	}
	fputc('\n', out);
}

void opts_help(unsigned int command, FILE *out)
{
	unsigned int i, kinds = 0, flags = 0;

	for (i = 0; i < opt_table_count; i++) {
		if (!(opt_table[i].commands & command))
			continue;
		help_option(&opt_table[i], out);
		help_aliases(&opt_table[i], out);
		kinds |= 1U << opt_table[i].kind;
		flags |= opt_table[i].flags;
	}
	fputc('\n', out);
	if (flags & OPT_SWEEP)
		fputs("An option with \",...\" takes a list, and every combination is run: -s "
		      "4k,64k,1m\n",
		      out);
	if (kinds & (1U << OPT_SIZE))
		fputs("BYTES: 4096, 4k, 1m, 2g, in powers of 1024\n", out);
	if (kinds & (1U << OPT_TIME))
		fputs("TIME: seconds, as in 10 or 0.5, or with a unit: ns, us, ms, s, m, h\n", out);
	perftest_letters(command, out);
}
