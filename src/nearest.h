/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The name that a mistyped word was meant to be, for messages. */
#ifndef RXFER_NEAREST_H
#define RXFER_NEAREST_H

/**
 * struct rxfer_nearest - the name most like a word, as seen so far: set @word, offer names with
 * rxfer_nearest_try(), read @best (NULL: none is near).
 */
struct rxfer_nearest {
	const char *word;
	const char *best;
	unsigned int distance; /* of @best */
};

void rxfer_nearest_try(struct rxfer_nearest *n, const char *name);

/** rxfer_nearest() - the name most like @word among list(0), list(1), ... up to NULL; or NULL. */
const char *rxfer_nearest(const char *word, const char *(*list)(unsigned int i));

#endif
