/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The name that a mistyped word was meant to be: the least number of typing errors (a letter left
 * out, one too many, a wrong one, two swapped), case not counted. A word cut short ("--strat") is
 * one error.
 */
#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include "nearest.h"

#define NAME_MAX_LEN 63
#define FAR	     UINT_MAX

static unsigned int min2(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Typing errors between @a and @b, this up to NAME_MAX_LEN; three rows of the matrix live. */
static unsigned int edit_distance(const char *a, const char *b)
{
	unsigned int rows[3][NAME_MAX_LEN + 1];
	unsigned int *before = rows[0], *last = rows[1], *now = rows[2], *spare;
	unsigned int i, j;

	for (j = 0; j <= strlen(b); j++)
		last[j] = j;
	for (i = 1; a[i - 1]; i++) {
		now[0] = i;
		for (j = 1; b[j - 1]; j++) {
			now[j] = min2(last[j], now[j - 1]) + 1;
			now[j] = min2(now[j], last[j - 1] + !same(a[i - 1], b[j - 1]));
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
				now[j] = min2(now[j], before[j - 2] + 1);
		}
		spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[strlen(b)];
}

/* More errors than this, and it is another word. */
static unsigned int tolerance(size_t len)
{
	return len <= 3 ? 1 : len <= 7 ? 2 : 3;
}

static unsigned int distance(const char *word, const char *name)
{
	size_t word_len = strlen(word), name_len = strlen(name);
	unsigned int d;

	if (!word_len || name_len > NAME_MAX_LEN)
		return FAR;
	if (!strcasecmp(word, name))
		return 0;
	if (word_len > 1 && !strncasecmp(word, name, word_len))
		return 1;
	d = edit_distance(word, name);
	return d <= tolerance(name_len) && d < name_len && d < word_len ? d : FAR;
}

void rxfer_nearest_try(struct rxfer_nearest *n, const char *name)
{
	unsigned int d = distance(n->word, name);

	if (d != FAR && (!n->best || d < n->distance)) {
		n->best = name;
		n->distance = d;
	}
}

const char *rxfer_nearest(const char *word, const char *(*list)(unsigned int i))
{
	struct rxfer_nearest n = {.word = word};
	unsigned int i;

	for (i = 0; list(i); i++)
		rxfer_nearest_try(&n, list(i));
	return n.best;
}
