/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line: words in, struct opts out, and back into words. cfg.c knows the values. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "opt.h"

#define LIST_MAX 1000 /* values of one option: the search for a value given twice is quadratic */

static const struct {
	unsigned int command;
	const char *name;
} commands[] = {
	{CMD_SERVER, "server"},	  {CMD_CLIENT, "client"}, {CMD_LOOPBACK, "loopback"},
	{CMD_DEVICES, "devices"}, {CMD_PROBE, "probe"},	  {CMD_FENCE, "fence"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

const char *command_name(unsigned int command)
{
	unsigned int i;

	for (i = 0; i < COMMANDS - 1; i++)
		if (commands[i].command == command)
			break;
	return commands[i].name;
}

/* Where the parsing of one command line is. */
struct parser {
	const char *command;
	int argc, next; /* @next: the word not yet looked at */
	char **argv;
	bool operands_only; /* behind "--" */
	struct opts *out;
	char *error;
	unsigned int error_size;
};

static int out_of_memory(struct parser *p)
{
	text_error(p->error, p->error_size, "out of memory while reading the command line");
	return -ENOMEM;
}

static struct opt_given *given_for(const struct opts *opts, const struct opt *o)
{
	return &opts->given[o - opt_table];
}

static void drop_values(struct opt_given *g)
{
	while (g->n)
		free(g->text[--g->n]);
	free(g->text);
	g->text = NULL;
}

/*
 * Values.
 */

static int append_value(struct parser *p, const struct opt *o, const char *text)
{
	struct opt_given *g = given_for(p->out, o);
	char **grown, clean[CLEAN_TEXT];
	unsigned int i;

	for (i = 0; i < g->n; i++)
		if (!strcmp(g->text[i], text))
			return text_error(p->error, p->error_size,
					  "--%s: %s is given twice; once is enough", o->name,
					  text_clean(text, clean, sizeof(clean)));
	if (g->n == LIST_MAX)
		return text_error(p->error, p->error_size,
				  "--%s: more than %d values; shorten the list", o->name, LIST_MAX);
	grown = realloc(g->text, (g->n + 1) * sizeof(*grown));
	if (!grown)
		return out_of_memory(p);
	g->text = grown;
	g->text[g->n] = strdup(text);
	if (!g->text[g->n])
		return out_of_memory(p);
	g->n++;
	return 0;
}

/* One value, checked, in its canonical form. */
static int add_value(struct parser *p, const struct opt *o, const char *text)
{
	struct cfg scratch;
	char canonical[CFG_TEXT];
	int err;

	if (o->offset == OPT_NO_MEMBER) {
		err = opt_check(o, text, p->error, p->error_size);
		return err ? err : append_value(p, o, text);
	}
	err = cfg_set(&scratch, o->name, text, p->error, p->error_size);
	if (err)
		return err;
	return append_value(p, o, cfg_text(&scratch, o, canonical, sizeof(canonical)));
}

static int add_all(struct parser *p, const struct opt *o)
{
	unsigned int i;
	int err = 0;

	for (i = 0; !err && opt_name(o, i); i++)
		err = add_value(p, o, opt_name(o, i));
	return err;
}

static int add_element(struct parser *p, const struct opt *o, const char *list, const char *text)
{
	char clean[CLEAN_TEXT];

	if (!*text)
		return text_error(p->error, p->error_size,
				  "--%s %s: an empty element; leave out the extra comma", o->name,
				  text_clean(list, clean, sizeof(clean)));
	if (!strcmp(text, "all") && opt_takes_all(o))
		return add_all(p, o);
	return add_value(p, o, text);
}

static int add_list(struct parser *p, const struct opt *o, const char *list)
{
	char *copy = strdup(list), *rest = copy, *text;
	int err = 0;

	if (!copy)
		return out_of_memory(p);
	while (!err && (text = strsep(&rest, ",")))
		err = add_element(p, o, list, text);
	free(copy);
	return err;
}

/*
 * Options.
 */

/* A word that is an option where a value could stand: "--size", "-n", but not "-4". */
static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] && !isdigit((unsigned char)word[1]) && word[1] != '.';
}

static int no_value(struct parser *p, const struct opt *o)
{
	return text_error(p->error, p->error_size, "--%s: its value is missing; say --%s %s",
			  o->name, o->name, o->arg);
}

/* The value of what takes one: @joined to it, or the next word. NULL: there is none. */
static const char *next_value(struct parser *p, const char *joined)
{
	if (!joined && p->next < p->argc && !is_option(p->argv[p->next]))
		joined = p->argv[p->next++];
	return joined && *joined ? joined : NULL;
}

/* In place of what was given before. */
static int store(struct parser *p, const struct opt *o, const char *value)
{
	if (!(o->flags & OPT_MULTI))
		drop_values(given_for(p->out, o));
	return o->flags & OPT_SWEEP ? add_list(p, o, value) : add_value(p, o, value);
}

/* @value: what was joined to the option, "=value" or "-Xvalue"; NULL: nothing. */
static int take(struct parser *p, const struct opt *o, const char *value)
{
	if (o->kind == OPT_FLAG || o->kind == OPT_HELP) {
		if (value)
			return text_error(p->error, p->error_size,
					  "--%s takes no value; say just --%s", o->name, o->name);
		value = "yes";
	} else {
		value = next_value(p, value);
	}
	if (!value)
		return no_value(p, o);
	if (o->kind == OPT_HELP) {
		p->out->want_help = true;
		return 0;
	}
	return store(p, o, value);
}

/*
 * Aliases.
 */

/* "every:" before each element of "7,64"; what is empty stays so, to be refused. NULL: no memory.
 */
static char *prefixed(const char *prefix, const char *list)
{
	size_t elements = 1, size;
	const char *s;
	char *text;

	for (s = list; *s; s++)
		elements += *s == ',';
	size = strlen(list) + elements * strlen(prefix) + 1;
	text = calloc(1, size);
	for (s = list; text; s++) {
		size_t len = strcspn(s, ",");

		snprintf(text + strlen(text), size - strlen(text), "%s%.*s%s", len ? prefix : "",
			 (int)len, s, s[len] ? "," : "");
		s += len;
		if (!*s)
			break;
	}
	return text;
}

/* The line so far is about the option: what was typed goes before it. */
static int blame(struct parser *p, const struct opt_alias *a, const char *given)
{
	char clean[CLEAN_TEXT], line[CFG_TEXT * 2];

	snprintf(line, sizeof(line), "%s", p->error);
	return text_error(p->error, p->error_size, "-%c%s%s: %s", a->letter, given ? " " : "",
			  given ? text_clean(given, clean, sizeof(clean)) : "", line);
}

static int take_given(struct parser *p, const struct opt_alias *a, const struct opt *o,
		      const char *joined)
{
	const char *given = next_value(p, joined);
	char *value;
	int err;

	if (!given)
		return text_error(p->error, p->error_size,
				  "-%c: its value is missing; say -%c %s for %s", a->letter,
				  a->letter, a->arg, a->help);
	value = prefixed(a->value, given);
	err = value ? store(p, o, value) : out_of_memory(p);
	free(value);
	return err == -EINVAL ? blame(p, a, given) : err;
}

static int take_alias(struct parser *p, const struct opt_alias *a, const struct opt *o,
		      const char *joined)
{
	int err;

	if (a->arg)
		return take_given(p, a, o, joined);
	if (joined)
		return text_error(p->error, p->error_size, "-%c takes no value; it is %s",
				  a->letter, a->help);
	err = store(p, o, a->value);
	return err == -EINVAL ? blame(p, a, NULL) : err;
}

static int unknown_option(struct parser *p, const char *word, const char *name)
{
	struct rxfer_nearest n = {.word = name};
	char clean[CLEAN_TEXT];
	unsigned int i;

	for (i = 0; i < opt_table_count; i++)
		if (opt_table[i].commands & p->out->command)
			rxfer_nearest_try(&n, opt_table[i].name);
	text_error(p->error, p->error_size, "unknown option %s; ",
		   text_clean(word, clean, sizeof(clean)));
	if (n.best)
		text_add(p->error, p->error_size, "did you mean --%s? See", n.best);
	else
		text_add(p->error, p->error_size, "see");
	text_add(p->error, p->error_size, " rxfer-bench %s --help", p->command);
	return -EINVAL;
}

static int wrong_command(struct parser *p, const struct opt *o)
{
	const char *glue = " belongs to ";
	unsigned int i;

	text_error(p->error, p->error_size, "--%s", o->name);
	for (i = 0; i < COMMANDS; i++) {
		if (!(o->commands & commands[i].command))
			continue;
		text_add(p->error, p->error_size, "%s%s", glue, commands[i].name);
		glue = " and ";
	}
	text_add(p->error, p->error_size, ", not to %s; see rxfer-bench %s --help", p->command,
		 p->command);
	return -EINVAL;
}

static const struct opt *find_long(const char *name, size_t len)
{
	unsigned int i;

	for (i = 0; i < opt_table_count; i++)
		if (strlen(opt_table[i].name) == len && !strncmp(opt_table[i].name, name, len))
			return &opt_table[i];
	return NULL;
}

/* The option with that letter, or the one that an alias with that letter is about. */
static const struct opt *find_letter(char letter, const struct opt_alias **alias)
{
	unsigned int i;

	*alias = NULL;
	for (i = 0; i < opt_table_count; i++)
		if (opt_table[i].letter == letter)
			return &opt_table[i];
	for (i = 0; i < opt_aliases_count; i++) {
		if (opt_aliases[i].letter != letter)
			continue;
		*alias = &opt_aliases[i];
		return find_long(opt_aliases[i].option, strlen(opt_aliases[i].option));
	}
	return NULL;
}

static int long_option(struct parser *p, const char *word)
{
	const char *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - word) : strlen(word);
	const struct opt *o = find_long(word + 2, len - 2);
	char name[CLEAN_TEXT + 4];

	if (o && (o->commands & p->out->command))
		return take(p, o, equals ? equals + 1 : NULL);
	if (o)
		return wrong_command(p, o);
	snprintf(name, sizeof(name), "%.*s", (int)len, word);
	return unknown_option(p, name, name + 2);
}

/* "-depth 4" would be the device "epth": a long name behind one dash is a slip, never a value. */
static int short_option(struct parser *p, const char *word)
{
	const struct opt_alias *alias;
	const struct opt *o = find_letter(word[1], &alias);
	const char *joined = word[2] ? word + 2 : NULL;
	int err;

	if (word[2] && find_long(word + 1, strcspn(word + 1, "=")))
		return unknown_option(p, word, find_long(word + 1, strcspn(word + 1, "="))->name);
	if (!o)
		return unknown_option(p, word, word + 1);
	if (!(o->commands & p->out->command)) {
		err = wrong_command(p, o);
		return alias ? blame(p, alias, NULL) : err;
	}
	return alias ? take_alias(p, alias, o, joined) : take(p, o, joined);
}

/*
 * Operands.
 */

static bool is_host(const char *word)
{
	size_t i;

	for (i = 0; word[i]; i++)
		if (!isalnum((unsigned char)word[i]) && !strchr(".:_%-", word[i]))
			return false;
	return i < CFG_TEXT && word[0] != '-';
}

static int operand(struct parser *p, const char *word)
{
	char clean[CLEAN_TEXT];

	text_clean(word, clean, sizeof(clean));
	if (!(p->out->command & (CMD_CLIENT | CMD_PROBE | CMD_FENCE)))
		return text_error(
			p->error, p->error_size,
			"%s takes no operand, but '%s' was given; see rxfer-bench %s --help",
			p->command, clean, p->command);
	if (!*word)
		return text_error(p->error, p->error_size,
				  "HOST is empty; say where the server runs: rxfer-bench %s HOST",
				  p->command);
	if (p->out->host[0])
		return text_error(p->error, p->error_size,
				  "one HOST too many: '%s'; an option begins with a dash, a list "
				  "has no blanks",
				  clean);
	if (!is_host(word))
		return text_error(p->error, p->error_size,
				  "HOST '%s' is not a host's name or address; say one like node7 "
				  "or 192.0.2.7",
				  clean);
	snprintf(p->out->host, sizeof(p->out->host), "%s", word);
	return 0;
}

static int parse_word(struct parser *p, const char *word)
{
	if (p->operands_only || word[0] != '-' || !word[1])
		return operand(p, word);
	if (word[1] != '-')
		return short_option(p, word);
	if (word[2])
		return long_option(p, word);
	p->operands_only = true;
	return 0;
}

int opts_take(struct opts *o, const char *name, const char *value, char *error,
	      unsigned int error_size)
{
	struct parser p = {
		.command = command_name(o->command),
		.out = o,
		.error = error,
		.error_size = error_size,
	};
	const struct opt *row = find_long(name, strlen(name));

	if (!row)
		return unknown_option(&p, name, name);
	return row->commands & o->command ? take(&p, row, value) : wrong_command(&p, row);
}

/* Its options take its place: what is printed and sent does not depend on a file. */
static int take_profile(struct parser *p)
{
	struct opt_given *g = given_for(p->out, find_long("profile", strlen("profile")));
	int err;

	if (!g->n)
		return 0;
	err = profile_apply(p->out, g->text[0], p->error, p->error_size);
	drop_values(g);
	return err;
}

int opts_parse(unsigned int command, int argc, char **argv, struct opts *out, char *error,
	       unsigned int error_size)
{
	struct parser p = {
		.command = command_name(command),
		.argc = argc,
		.argv = argv,
		.out = out,
		.error = error,
		.error_size = error_size,
	};
	int err = 0;

	*out = (struct opts){.command = command};
	out->given = calloc(opt_table_count, sizeof(*out->given));
	if (!out->given)
		return out_of_memory(&p);
	while (!err && !out->want_help && p.next < argc)
		err = parse_word(&p, argv[p.next++]);
	if (!err && command == CMD_CLIENT && !out->host[0] && !out->want_help)
		err = text_error(
			error, error_size,
			"HOST is missing; say where the server runs: rxfer-bench client HOST");
	if (!err && !out->want_help)
		err = take_profile(&p);
	if (err)
		opts_free(out);
	return err;
}

void opts_free(struct opts *o)
{
	unsigned int i;

	for (i = 0; o->given && i < opt_table_count; i++)
		drop_values(&o->given[i]);
	free(o->given);
	o->given = NULL;
}

const char *opts_text(const struct opts *o, const char *name, unsigned int i)
{
	const struct opt_given *g = given_for(o, find_long(name, strlen(name)));

	return i < g->n ? g->text[i] : NULL;
}

const char *opts_output(const struct opts *o, unsigned int i)
{
	return opts_text(o, "output", i);
}

/*
 * Printing.
 */

/* A word as a shell reads it back: bare where it may be, else $'...'. */
static void add_quoted(char *buf, unsigned int size, const char *word)
{
	const char *s;

	for (s = word; *s && (isalnum((unsigned char)*s) || strchr("-_./:,+@%=", *s)); s++)
		;
	if (!*s && *word) {
		text_add(buf, size, "%s", word);
		return;
	}
	text_add(buf, size, "$'");
	for (s = word; *s; s++) {
		bool bare = *s >= ' ' && *s <= '~' && *s != '\'' && *s != '\\';

		text_add(buf, size, bare ? "%c" : "\\x%02x", (unsigned char)*s);
	}
	text_add(buf, size, "'");
}

/* What a dash begins is a value only behind "=". */
static const char *glue(const struct opt *o, const char *value)
{
	if (o->kind == OPT_FLAG)
		return "";
	return value[0] == '-' ? "=" : " ";
}

static void add_option(char *buf, unsigned int size, const struct opt *o, const struct opt_given *g)
{
	unsigned int i;

	for (i = 0; i < g->n; i++) {
		if (i && !(o->flags & OPT_MULTI))
			text_add(buf, size, ",");
		else
			text_add(buf, size, "%s--%s%s", *buf ? " " : "", o->name,
				 glue(o, g->text[i]));
		if (o->kind != OPT_FLAG)
			add_quoted(buf, size, g->text[i]);
	}
}

void opts_print(const struct opts *o, char *buf, unsigned int size)
{
	unsigned int i;

	buf[0] = '\0';
	for (i = 0; i < opt_table_count; i++)
		add_option(buf, size, &opt_table[i], &o->given[i]);
}
