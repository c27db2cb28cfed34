/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Values of options: text to struct cfg and back, both by the table. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include "opt.h"

void text_add(char *buf, unsigned int size, const char *fmt, ...)
{
	unsigned int used = strlen(buf);
	va_list args;

	va_start(args, fmt);
	vsnprintf(buf + used, size - used, fmt, args);
	va_end(args);
}

int text_error(char *buf, unsigned int size, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(buf, size, fmt, args);
	va_end(args);
	return -EINVAL;
}

const char *text_clean(const char *text, char *buf, unsigned int size)
{
	unsigned int i;

	for (i = 0; text[i] && i < size - 1; i++)
		buf[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	buf[i] = '\0';
	if (text[i])
		memcpy(buf + size - 4, "...", 4);
	return buf;
}

/*
 * Numbers. All arithmetic is in integers, so what is printed reads back to the same value.
 */

struct unit {
	const char *suffix;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{"g", 1ULL << 30}, {"m", 1ULL << 20}, {"k", 1ULL << 10}, {"", 1}, {NULL, 0}};

static const struct unit time_units[] = {{"h", 3600000000000ULL},
					 {"m", 60000000000ULL},
					 {"s", 1000000000ULL},
					 {"ms", 1000000ULL},
					 {"us", 1000ULL},
					 {"ns", 1},
					 {NULL, 0}};

static const struct unit plain_units[] = {{"", 1}, {NULL, 0}};

/* Digits at *@p, which moves behind them. 0; -EINVAL: there are none; -ERANGE: beyond 2^64 - 1. */
static int read_digits(const char **p, uint64_t *v)
{
	const char *s;
	bool over = false;

	*v = 0;
	for (s = *p; isdigit((unsigned char)*s); s++)
		over |= __builtin_mul_overflow(*v, 10, v) ||
			__builtin_add_overflow(*v, (uint64_t)(*s - '0'), v);
	if (s == *p)
		return -EINVAL;
	*p = s;
	return over ? -ERANGE : 0;
}

/* "k", "K", "kB", "KiB": the same. NULL: no unit of size. */
static const struct unit *size_unit(const char *suffix)
{
	const struct unit *u;

	for (u = size_units; u->suffix; u++) {
		if (!*u->suffix && !*suffix)
			return u;
		if (*u->suffix && tolower((unsigned char)*suffix) == *u->suffix &&
		    (!suffix[1] || !strcasecmp(suffix + 1, "b") || !strcasecmp(suffix + 1, "ib")))
			return u;
	}
	return NULL;
}

static const struct unit *time_unit(const char *suffix)
{
	const struct unit *u = time_units;

	if (!*suffix)
		suffix = "s";
	while (u->suffix && strcmp(u->suffix, suffix))
		u++;
	return u->suffix ? u : NULL;
}

static int read_size(const char *text, uint64_t *v)
{
	int err = read_digits(&text, v);
	const struct unit *u = size_unit(text);

	if (err == -EINVAL || !u)
		return -EINVAL;
	return err || __builtin_mul_overflow(*v, u->factor, v) ? -ERANGE : 0;
}

/*
 * The digits from @first to before @end, behind a point, in units of @unit: from the last one on,
 * each step adds a digit's worth and divides by ten. A step with a remainder has no whole result:
 * -EDOM.
 */
static int read_fraction(const char *first, const char *end, uint64_t unit, uint64_t *v)
{
	*v = 0;
	while (end-- > first) {
		*v += (uint64_t)(*end - '0') * unit;
		if (*v % 10)
			return -EDOM;
		*v /= 10;
	}
	return 0;
}

static int read_time(const char *text, uint64_t *v)
{
	const char *fraction = NULL, *end;
	const struct unit *u;
	uint64_t part = 0;
	int err = read_digits(&text, v);

	end = text;
	if (err != -EINVAL && *text == '.') {
		fraction = ++text;
		if (read_digits(&text, &part) == -EINVAL)
			return -EINVAL;
		end = text;
	}
	u = time_unit(text);
	if (err == -EINVAL || !u)
		return -EINVAL;
	if (fraction && read_fraction(fraction, end, u->factor, &part))
		return -EDOM;
	return err || __builtin_mul_overflow(*v, u->factor, v) ||
			       __builtin_add_overflow(*v, part, v)
		       ? -ERANGE
		       : 0;
}

static int read_plain(const char *text, uint64_t *v)
{
	int err = read_digits(&text, v);

	return *text ? -EINVAL : err;
}

static const struct number {
	int (*read)(const char *text, uint64_t *v);
	const struct unit *units; /* largest first */
	const char *what, *like;
} numbers[] = {
	[OPT_NUMBER] = {read_plain, plain_units, "number", "digits like 12"},
	[OPT_SIZE] = {read_size, size_units, "size", "bytes like 4096, 4k, 1m"},
	[OPT_TIME] = {read_time, time_units, "time", "seconds like 10 or 0.5, or 500ms, 2m, 1h"},
};

/* In the largest unit that leaves no remainder. */
static const char *number_text(enum opt_kind kind, uint64_t v, char *buf, unsigned int size)
{
	const struct unit *u = numbers[kind].units;

	while (v && v % u->factor)
		u++;
	snprintf(buf, size, "%llu%s", (unsigned long long)(v / u->factor), v ? u->suffix : "");
	return buf;
}

const char *opt_range(const struct opt *o, char *buf, unsigned int size)
{
	char max[CFG_TEXT];

	number_text(o->kind, o->min, buf, size);
	text_add(buf, size, "..%s", number_text(o->kind, o->max, max, sizeof(max)));
	return buf;
}

static int set_number(const struct opt *o, const char *text, uint64_t *to, char *why,
		      unsigned int size)
{
	const struct number *n = &numbers[o->kind];
	char clean[CLEAN_TEXT], range[CFG_TEXT];
	const char *wrong;
	uint64_t v;
	int err = n->read(text, &v);

	if (!err && ((v >= o->min && v <= o->max) || (!v && !o->def))) {
		*to = v;
		return 0;
	}
	text_clean(text, clean, sizeof(clean));
	opt_range(o, range, sizeof(range));
	if (text[0] == '-' && isdigit((unsigned char)text[1]))
		return text_error(why, size, "--%s %s: negative; say %s", o->name, clean, range);
	if (err == -EINVAL)
		return text_error(why, size, "--%s %s: not a %s; say %s", o->name, clean, n->what,
				  n->like);
	if (err == -EDOM)
		return text_error(why, size, "--%s %s: finer than a nanosecond; say %s", o->name,
				  clean, n->like);
	wrong = err || v > o->max ? "above the largest" : "below the smallest";
	return text_error(why, size, "--%s %s: %s; say %s", o->name, clean, wrong, range);
}

/*
 * Names.
 */

const char *opt_name(const struct opt *o, unsigned int i)
{
	if (o->names)
		return o->names[i];
	return o->list ? o->list(i) : NULL;
}

/* The index of the name that @text begins with, up to a suffix where there can be one; -ENOENT. */
static int find_name(const struct opt *o, const char *text)
{
	size_t len = o->suffix ? strcspn(text, ":") : strlen(text);
	const char *name;
	int i;

	for (i = 0; (name = opt_name(o, i)); i++)
		if (strlen(name) == len && !strncmp(name, text, len))
			return i;
	return -ENOENT;
}

bool opt_takes_all(const struct opt *o)
{
	return (o->flags & OPT_SWEEP) && opt_name(o, 0) && find_name(o, "all") < 0;
}

const char *opt_names(const struct opt *o, char *buf, unsigned int size)
{
	unsigned int i;

	buf[0] = '\0';
	for (i = 0; opt_name(o, i); i++)
		text_add(buf, size, "%s%s%s", i ? ", " : "", opt_name(o, i),
			 o->suffix ? o->suffix(i) : "");
	if (opt_takes_all(o))
		text_add(buf, size, ", all");
	return buf;
}

static int unknown_name(const struct opt *o, const char *text, char *why, unsigned int size)
{
	char clean[CLEAN_TEXT], names[CFG_TEXT], head[CFG_TEXT];
	struct rxfer_nearest n = {.word = head};
	unsigned int i;

	snprintf(head, sizeof(head), "%.*s", (int)strcspn(text, o->suffix ? ":" : ""), text);
	for (i = 0; opt_name(o, i); i++)
		rxfer_nearest_try(&n, opt_name(o, i));
	text_error(why, size, "--%s %s: unknown; ", o->name,
		   text_clean(text, clean, sizeof(clean)));
	if (n.best)
		text_add(why, size, "did you mean %s? ", n.best);
	text_add(why, size, "%s one of %s", n.best ? "Say" : "say",
		 opt_names(o, names, sizeof(names)));
	return -EINVAL;
}

int opt_check(const struct opt *o, const char *text, char *why, unsigned int size)
{
	char clean[CLEAN_TEXT], reason[CFG_TEXT];

	if (!o->check || !o->check(text, reason, sizeof(reason)))
		return 0;
	text_clean(text, clean, sizeof(clean));
	return text_error(why, size, "--%s %s: %s", o->name, *clean ? clean : "''", reason);
}

static int set_text(const struct opt *o, const char *text, char *to, char *why, unsigned int size)
{
	int err = opt_check(o, text, why, size);

	if (!err && snprintf(to, CFG_TEXT, "%s", text) >= CFG_TEXT)
		err = text_error(why, size, "--%s: longer than %d bytes; shorten it", o->name,
				 CFG_TEXT - 1);
	return err;
}

static int set_flag(const struct opt *o, const char *text, bool *to, char *why, unsigned int size)
{
	char clean[CLEAN_TEXT];

	if (strcmp(text, "yes") && strcmp(text, "no"))
		return text_error(why, size, "--%s %s: neither yes nor no; say one of them",
				  o->name, text_clean(text, clean, sizeof(clean)));
	*to = !strcmp(text, "yes");
	return 0;
}

/*
 * struct cfg.
 */

static int set(const struct opt *o, void *to, const char *text, char *why, unsigned int size)
{
	int i;

	switch (o->kind) {
	case OPT_FLAG:
		return set_flag(o, text, to, why, size);
	case OPT_ENUM:
	case OPT_NAME:
		i = find_name(o, text);
		if (i < 0 && opt_check(o, text, why, size))
			return -EINVAL;
		if (i < 0)
			return unknown_name(o, text, why, size);
		if (o->kind == OPT_NAME)
			return set_text(o, text, to, why, size);
		*(uint64_t *)to = i;
		return 0;
	case OPT_TEXT:
		return set_text(o, text, to, why, size);
	default:
		return set_number(o, text, to, why, size);
	}
}

int cfg_set(struct cfg *c, const char *name, const char *text, char *why, unsigned int size)
{
	const struct opt *o;
	char clean[CLEAN_TEXT];

	for (o = opt_table; o < opt_table + opt_table_count; o++)
		if (o->offset != OPT_NO_MEMBER && !strcmp(o->name, name))
			return set(o, (char *)c + o->offset, text, why, size);
	text_error(why, size, "unknown setting %s; both sides need the same version of rxfer-bench",
		   text_clean(name, clean, sizeof(clean)));
	return -ENOENT;
}

void cfg_init(struct cfg *c)
{
	const struct opt *o;
	char why[CFG_TEXT];

	memset(c, 0, sizeof(*c));
	for (o = opt_table; o < opt_table + opt_table_count; o++)
		if (o->def)
			cfg_set(c, o->name, o->def, why, sizeof(why));
}

const char *cfg_text(const struct cfg *c, const struct opt *o, char *buf, unsigned int size)
{
	const void *from = (const char *)c + o->offset;

	switch (o->kind) {
	case OPT_FLAG:
		snprintf(buf, size, "%s", *(const bool *)from ? "yes" : "no");
		break;
	case OPT_ENUM:
		snprintf(buf, size, "%s", opt_name(o, *(const uint64_t *)from));
		break;
	case OPT_NAME:
	case OPT_TEXT:
		snprintf(buf, size, "%s", (const char *)from);
		break;
	default:
		number_text(o->kind, *(const uint64_t *)from, buf, size);
	}
	return buf;
}

void cfg_print(const struct cfg *c, unsigned int flags, char *buf, unsigned int size)
{
	char text[CFG_TEXT], def_text[CFG_TEXT];
	const struct opt *o;
	struct cfg def;

	cfg_init(&def);
	buf[0] = '\0';
	for (o = opt_table; o < opt_table + opt_table_count; o++) {
		if (o->offset == OPT_NO_MEMBER || (o->flags & flags) != flags)
			continue;
		cfg_text(c, o, text, sizeof(text));
		if (strcmp(text, cfg_text(&def, o, def_text, sizeof(def_text))))
			text_add(buf, size, "%s%s=%s", *buf ? " " : "", o->name, text);
	}
}
