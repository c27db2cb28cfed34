/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzer of the command line. An input is a text, a word a line; the first one is the sub-command,
 * of which only the first letter counts ("client"; any other letter is loopback). With f, "file",
 * the rest is the text of a profile for loopback.
 *
 * What is accepted must come back the same from each form that it is given in: as words for a shell
 * (opts_print), as the text of a run (cfg_print), and as the message to the server. What is refused
 * must be refused in one clean line.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "fuzz.h"
#include "plan.h"
#include "session.h"

#define WORDS	   512
#define TEXT	   65536
#define RUNS_AMPLE 300 /* that are made and looked at; a plan of PLAN_MAX takes seconds */

/* struct words - a command line, in @text. */
struct words {
	char text[TEXT];
	char *word[WORDS];
	int n;
};

static unsigned int command_of(char letter)
{
	static const unsigned int commands[] = {CMD_SERVER, CMD_CLIENT, CMD_DEVICES, CMD_PROBE};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (command_name(commands[i])[0] == letter)
			return commands[i];
	return CMD_LOOPBACK;
}

/* The lines behind the first one. */
static void split(const uint8_t *data, size_t size, struct words *w)
{
	char *rest = w->text;

	size = size < TEXT ? size : TEXT - 1;
	memcpy(w->text, data, size);
	w->text[size] = '\0';
	strsep(&rest, "\n");
	for (w->n = 0; rest && w->n < WORDS; w->n++)
		w->word[w->n] = strsep(&rest, "\n");
}

/* ---- opts_print(), read back as a shell would ---- */

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef", *at = strchr(digits, c);

	FUZZ_CHECK(c && at);
	return (int)(at - digits);
}

/* Behind $' and up to the closing quote, which @from moves behind. */
static char *unquote(char *to, const char **from)
{
	const char *s = *from;

	for (; *s != '\''; s++) {
		FUZZ_CHECK(*s);
		if (*s == '\\') {
			FUZZ_CHECK(s[1] == 'x');
			*to++ = (char)(hex_digit(s[2]) * 16 + hex_digit(s[3]));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*from = s + 1;
	return to;
}

static void shell_split(const char *line, struct words *w)
{
	char *to = w->text;

	for (w->n = 0; *line; w->n++) {
		FUZZ_CHECK(w->n < WORDS);
		w->word[w->n] = to;
		while (*line && *line != ' ') {
			if (line[0] == '$' && line[1] == '\'') {
				line += 2;
				to = unquote(to, &line);
			} else {
				*to++ = *line++;
			}
		}
		*to++ = '\0';
		line += *line == ' ';
	}
}

/* In words for a shell it is the same command line. */
static void check_words(const struct opts *o)
{
	static char printed[TEXT], again[TEXT];
	static struct words w;
	struct opts copy;
	char error[512];

	opts_print(o, printed, sizeof(printed));
	if (strlen(printed) == sizeof(printed) - 1)
		return; /* cut, as it says */
	if (*printed)
		fuzz_check_line(printed);
	shell_split(printed, &w);
	if (o->host[0]) {
		FUZZ_CHECK(w.n < WORDS);
		w.word[w.n++] = (char *)o->host;
	}
	FUZZ_CHECK(!opts_parse(o->command, w.n, w.word, &copy, error, sizeof(error)));
	opts_print(&copy, again, sizeof(again));
	FUZZ_CHECK(!strcmp(printed, again) && !strcmp(o->host, copy.host));
	opts_free(&copy);
}

/* ---- Runs ---- */

/* All settings with all of @flags are the same. */
static void check_same(const struct cfg *a, const struct cfg *b, unsigned int flags)
{
	char one[CFG_TEXT], other[CFG_TEXT];

	for (const struct opt *o = opt_table; o < opt_table + opt_table_count; o++)
		if (o->offset != OPT_NO_MEMBER && (o->flags & flags) == flags)
			FUZZ_CHECK(!strcmp(cfg_text(a, o, one, sizeof(one)),
					   cfg_text(b, o, other, sizeof(other))));
}

/* "op=write size=4k": each setting taken back. */
static void check_printed(const struct cfg *run)
{
	char text[2048], why[512], *rest = text, *name;
	struct cfg copy;

	cfg_print(run, 0, text, sizeof(text));
	FUZZ_CHECK(strlen(text) < 1280);
	cfg_init(&copy);
	while (*text && (name = strsep(&rest, " "))) {
		char *value = strchr(name, '=');

		FUZZ_CHECK(value);
		*value++ = '\0';
		FUZZ_CHECK(!cfg_set(&copy, name, value, why, sizeof(why)));
	}
	check_same(run, &copy, 0);
}

/* What the client takes, the server takes. */
static void check_sent(const struct cfg *run)
{
	static const uint8_t token[RXFER_TOKEN_BYTES] = {0x5a};
	uint8_t got[RXFER_TOKEN_BYTES];
	json_t *body = config_to_json(run, token);
	struct cfg copy;

	FUZZ_CHECK(!config_from_json(body, &copy, got));
	FUZZ_CHECK(!memcmp(token, got, sizeof(got)));
	check_same(run, &copy, OPT_WIRE);
	json_decref(body);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* No two runs look alike: none is made twice, none is lost. */
static void check_distinct(const struct plan *p)
{
	static char text[RUNS_AMPLE][1280];

	for (unsigned int i = 0; i < p->n; i++)
		cfg_print(&p->run[i], OPT_RUN, text[i], sizeof(text[i]));
	qsort(text, p->n, sizeof(text[0]), by_text);
	for (unsigned int i = 1; i < p->n; i++)
		FUZZ_CHECK(strcmp(text[i - 1], text[i]));
}

static uint64_t runs_of(const struct opts *o)
{
	uint64_t n = 1;

	for (unsigned int i = 0; i < opt_table_count && n <= PLAN_MAX; i++)
		if ((opt_table[i].flags & OPT_SWEEP) && o->given[i].n)
			n *= o->given[i].n;
	return n;
}

static void check_plan(const struct opts *o)
{
	uint64_t n = runs_of(o);
	char error[512] = "";
	struct plan p;
	int rc;

	if (n > RUNS_AMPLE && n <= PLAN_MAX)
		return;
	rc = plan_make(o, &p, error, sizeof(error));
	FUZZ_CHECK(!rc || rc == -EINVAL);
	if (rc) {
		FUZZ_CHECK(!p.run);
		fuzz_check_line(error);
		return;
	}
	FUZZ_CHECK(p.n == n);
	for (unsigned int i = 0; i < p.n; i++) {
		FUZZ_CHECK(!cfg_check(&p.run[i], error, sizeof(error)));
		check_printed(&p.run[i]);
		if (o->command & (CMD_CLIENT | CMD_LOOPBACK))
			check_sent(&p.run[i]);
	}
	check_distinct(&p);
	plan_free(&p);
}

/* As opts_parse(), of a profile. */
static int parse_profile(const uint8_t *data, size_t size, struct opts *o, char *error,
			 unsigned int error_size)
{
	static char text[TEXT];
	int rc;

	size = size < TEXT ? size : TEXT - 1;
	memcpy(text, data, size);
	text[size] = '\0';
	*o = (struct opts){.command = CMD_LOOPBACK};
	o->given = calloc(opt_table_count, sizeof(*o->given));
	FUZZ_CHECK(o->given);
	rc = profile_take(o, "profile", strchr(text, '\n') ? strchr(text, '\n') + 1 : text, error,
			  error_size);
	if (rc)
		opts_free(o);
	return rc;
}

static int parse_words(const uint8_t *data, size_t size, struct opts *o, char *error,
		       unsigned int error_size)
{
	static struct words w;

	split(data, size, &w);
	return opts_parse(command_of(size ? (char)data[0] : 0), w.n, w.word, o, error, error_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool file = size && data[0] == 'f';
	char error[512] = "";
	struct cfg first;
	struct opts o;
	int rc;

	rc = (file ? parse_profile : parse_words)(data, size, &o, error, sizeof(error));
	FUZZ_CHECK(!rc || rc == -EINVAL);
	if (rc) {
		FUZZ_CHECK(!o.given);
		fuzz_check_line(error);
		return 0;
	}
	opts_first(&o, &first);
	for (unsigned int i = 0; opts_output(&o, i); i++)
		FUZZ_CHECK(output_format(opts_output(&o, i)));
	if (!o.want_help) {
		check_words(&o);
		check_plan(&o);
	}
	opts_free(&o);
	return 0;
}
