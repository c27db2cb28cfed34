/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Profiles: options out of a file. They are parsed as a command line of their own; then each option
 * that was not given on the real one is taken from there.
 *
 * A line is one option by its long name, without dashes, then blanks and its value; a flag has
 * none. What a # begins, at the start of a line or behind a blank, is a comment.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "opt.h"

#define FILE_MAX   65536 /* bytes of a profile */
#define PATH_SHOWN 96	 /* of a path in a message, likewise: the line stays short */
#define LIST_SHOWN 80

/*
 * Text.
 */

static bool is_blank(char c)
{
	return isspace((unsigned char)c);
}

static void cut_comment(char *line)
{
	char *s;

	for (s = line; *s; s++)
		if (*s == '#' && (s == line || is_blank(s[-1]))) {
			*s = '\0';
			break;
		}
}

static char *trim(char *line)
{
	char *end = line + strlen(line);

	while (end > line && is_blank(end[-1]))
		end--;
	*end = '\0';
	while (is_blank(*line))
		line++;
	return line;
}

/* Of a trimmed line: the name ends, the value begins. NULL: there is none. */
static char *split_value(char *line)
{
	while (*line && !is_blank(*line))
		line++;
	if (!*line)
		return NULL;
	*line++ = '\0';
	return trim(line);
}

static int take_line(struct opts *o, char *line, char *why, unsigned int size)
{
	char *value, *equals, clean[CLEAN_TEXT];

	cut_comment(line);
	line = trim(line);
	if (!*line)
		return 0;
	value = split_value(line);
	text_clean(line, clean, sizeof(clean));
	if (line[0] == '-')
		return text_error(why, size, "%s: options have no dashes here, and long names only",
				  clean);
	equals = strchr(line, '=');
	if (equals)
		return text_error(why, size, "%s: a blank goes before the value here, no =", clean);
	if (!strcmp(line, "profile") || !strcmp(line, "help"))
		return text_error(why, size, "%s: not in a profile; leave it out", clean);
	return opts_take(o, line, value, why, size);
}

int profile_take(struct opts *o, const char *file, char *text, char *error, unsigned int size)
{
	char *rest = text, *line, clean[PATH_SHOWN], why[2 * CFG_TEXT];
	unsigned int number = 0;
	int err = 0;

	while (!err && (line = strsep(&rest, "\n"))) {
		number++;
		err = take_line(o, line, why, sizeof(why));
	}
	if (err)
		text_error(error, size, "%s:%u: %s", text_clean(file, clean, sizeof(clean)), number,
			   why);
	return err;
}

/*
 * Where profiles are.
 */

/* The @i-th directory, NULL behind the last. */
static const char *profile_dir(unsigned int i)
{
	const char *own = getenv("RXFER_PROFILES");

	if (!own || !*own)
		i++;
	return i == 0 ? own : i == 1 ? PROFILES_DIR : NULL;
}

/* Names in the order of the alphabet; no hidden files. */
static int wanted(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void name_list(struct dirent **entries, int n, char *buf, unsigned int size)
{
	char clean[CLEAN_TEXT];
	int i;

	buf[0] = '\0';
	for (i = 0; i < n && strlen(buf) < LIST_SHOWN; i++)
		text_add(buf, size, "%s%s", i ? ", " : "",
			 text_clean(entries[i]->d_name, clean, sizeof(clean)));
	if (n <= 0)
		text_add(buf, size, "none");
	else if (i < n)
		text_add(buf, size, ", ...");
}

/* What one directory has, for the message; the name most like the one asked for, to @near. */
static void look_in(const char *dir, const char *name, char *near, char *buf, unsigned int size)
{
	char clean[PATH_SHOWN], list[2 * LIST_SHOWN];
	struct rxfer_nearest nearest = {.word = name};
	struct dirent **entries = NULL;
	int i, n = scandir(dir, &entries, wanted, alphasort);

	for (i = 0; i < n; i++)
		rxfer_nearest_try(&nearest, entries[i]->d_name);
	if (nearest.best && !*near)
		text_clean(nearest.best, near, CLEAN_TEXT);
	name_list(entries, n, list, sizeof(list));
	text_add(buf, size, "%s%s (%s)", *buf ? ", " : "", text_clean(dir, clean, sizeof(clean)),
		 list);
	while (n > 0)
		free(entries[--n]);
	free(entries);
}

static int no_such_profile(const char *name, char *error, unsigned int size)
{
	char looked[4 * CFG_TEXT] = "", near[CLEAN_TEXT] = "", clean[CLEAN_TEXT];
	unsigned int i;

	for (i = 0; profile_dir(i); i++)
		look_in(profile_dir(i), name, near, looked, sizeof(looked));
	text_error(error, size, "--profile %s: there is none of that name; ",
		   text_clean(name, clean, sizeof(clean)));
	if (*near)
		text_add(error, size, "did you mean %s? ", near);
	text_add(error, size, "%s in %s; a file is named with a slash", *near ? "Looked" : "looked",
		 looked);
	return -EINVAL;
}

/* 0 and @fd; or -errno. What is no regular file might never end, or begin. */
static int open_file(const char *path, int *fd)
{
	struct stat st;
	int err = 0;

	*fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (*fd < 0)
		return -errno;
	if (fstat(*fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
	if (err)
		close(*fd);
	return err;
}

/* The first one there is, its path in @path. -ENOENT: none. */
static int open_profile(const char *name, int *fd, char *path, unsigned int size)
{
	unsigned int i;
	int err = -ENOENT;

	if (strchr(name, '/')) {
		snprintf(path, size, "%s", name);
		return open_file(name, fd);
	}
	for (i = 0; (err == -ENOENT || err == -ENOTDIR) && profile_dir(i); i++) {
		if (snprintf(path, size, "%s/%s", profile_dir(i), name) >= (int)size)
			return -ENAMETOOLONG;
		err = open_file(path, fd);
	}
	return err == -ENOTDIR ? -ENOENT : err;
}

/*
 * Files.
 */

static int unreadable(const char *path, int err, char *error, unsigned int size)
{
	char clean[PATH_SHOWN];

	return text_error(error, size, "--profile %s: %s; say a file of options, or a name",
			  text_clean(path, clean, sizeof(clean)),
			  err == -ENXIO ? "not a regular file" : strerror(-err));
}

/* All of @fd to @text of FILE_MAX + 1 bytes. The count, or -errno. */
static ssize_t read_all(int fd, char *text)
{
	ssize_t n, got = 0;

	do {
		n = read(fd, text + got, FILE_MAX + 1 - got);
		if (n < 0 && errno != EINTR)
			return -errno;
		got += n > 0 ? n : 0;
	} while (n && got <= FILE_MAX);
	return got;
}

static int take_file(struct opts *o, const char *path, int fd, char *error, unsigned int size)
{
	char clean[PATH_SHOWN], *text = calloc(1, FILE_MAX + 2);
	ssize_t n;
	int err;

	text_clean(path, clean, sizeof(clean));
	if (!text) {
		text_error(error, size, "out of memory for %s", clean);
		return -ENOMEM;
	}
	n = read_all(fd, text);
	if (n < 0)
		err = unreadable(path, (int)n, error, size);
	else if (n > FILE_MAX)
		err = text_error(error, size, "%s: above 64 KiB; it is no profile", clean);
	else if (memchr(text, '\0', n))
		err = text_error(error, size, "%s: not a text; it is no profile", clean);
	else
		err = profile_take(o, path, text, error, size);
	free(text);
	return err;
}

/* What was not given on the command line, which keeps the rest. */
static void merge(struct opts *to, struct opts *from)
{
	struct opt_given swap;
	unsigned int i;

	for (i = 0; i < opt_table_count; i++) {
		if (to->given[i].n)
			continue;
		swap = to->given[i];
		to->given[i] = from->given[i];
		from->given[i] = swap;
	}
}

int profile_apply(struct opts *o, const char *name, char *error, unsigned int size)
{
	struct opts profile = {.command = o->command};
	char path[4096];
	int fd, err = open_profile(name, &fd, path, sizeof(path));

	if (err == -ENOENT && !strchr(name, '/'))
		return no_such_profile(name, error, size);
	if (err)
		return unreadable(path, err, error, size);
	profile.given = calloc(opt_table_count, sizeof(*profile.given));
	if (!profile.given) {
		text_error(error, size, "out of memory for a profile");
		err = -ENOMEM;
	} else {
		err = take_file(&profile, path, fd, error, size);
	}
	close(fd);
	if (!err)
		merge(o, &profile);
	opts_free(&profile);
	return err;
}
