/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rxfer-bench fence: what must come of each attempt, and what it means that it did not. */
#include <string.h>
#include "fence.h"

static const char *const attempts[] = {
	[FENCE_USE] = "use",	   [FENCE_BEFORE] = "before",
	[FENCE_AFTER] = "after",   [FENCE_WRITE_READ_ONLY] = "write-read-only",
	[FENCE_PARENT] = "parent", [FENCE_OTHER_QP] = "other-qp",
	[FENCE_MEMORY] = "memory",
};

static const char *const stages[] = {
	[FENCE_DURING] = "during",
	[FENCE_REPLIED] = "replied",
	[FENCE_COMPLETE] = "complete",
	[FENCE_REVOKED] = "revoked",
};

const char *fence_attempt_name(enum fence_attempt attempt)
{
	return attempts[attempt];
}

const char *fence_stage_name(enum fence_stage stage)
{
	return stages[stage];
}

#define WHOLE  (1u << FENCE_WHOLE)
#define PAGES  (1u << FENCE_PAGES)
#define TAIL   (1u << FENCE_TAIL)
#define KEPT   (WHOLE | PAGES | TAIL)
#define REGION (1u << FENCE_REGION)
#define WINDOW (1u << FENCE_WINDOW)
#define BUFFER (1u << FENCE_BUFFER)
#define LIST   (1u << FENCE_LIST)
#define OWN    (REGION | WINDOW | LIST) /* a key of the I/O's own */
#define EVERY  (KEPT | OWN | BUFFER)

#define NONE   (1u << RXFER_REVOKE_NONE)
#define SYNC   (1u << RXFER_REVOKE_SYNC)
#define ASYNC  (1u << RXFER_REVOKE_ASYNC)
#define REMOTE (1u << RXFER_REVOKE_REMOTE)
#define LAZY   (1u << RXFER_REVOKE_LAZY)
#define ANY    (NONE | SYNC | ASYNC | REMOTE | LAZY)

/*
 * The stages: the request has come and is not answered; the client has the reply, and has revoked
 * nothing; the I/O is complete, as the mode has it; its key is proven dead, where that comes later
 * yet. What is in no row is no cell.
 */
/* clang-format off */
static const struct {
	enum fence_attempt attempt;
	unsigned int kinds, modes;
	enum fence_stage stage;
	enum fence_outcome outcome;
} table[] = {
	/* Without that there would be no I/O. */
	{FENCE_USE, EVERY, ANY, FENCE_DURING, FENCE_OPEN},
	/* The key is not the I/O's, so its end changes nothing. That is the finding. */
	{FENCE_USE, KEPT | BUFFER, NONE, FENCE_REPLIED, FENCE_OPEN},
	{FENCE_USE, KEPT | BUFFER, NONE, FENCE_COMPLETE, FENCE_OPEN},
	/* A reply is for the client; its device has not been told. */
	{FENCE_USE, OWN, SYNC | ASYNC | LAZY, FENCE_REPLIED, FENCE_OPEN},
	/* The reply itself revoked it. */
	{FENCE_USE, OWN, REMOTE, FENCE_REPLIED, FENCE_CLOSED},
	{FENCE_USE, OWN, REMOTE, FENCE_COMPLETE, FENCE_CLOSED},
	/* It is not complete before the revoke is proven. */
	{FENCE_USE, OWN, SYNC, FENCE_COMPLETE, FENCE_CLOSED},
	/* It is complete at the reply; the revoke may come any time later: here, not yet. */
	{FENCE_USE, OWN, ASYNC, FENCE_COMPLETE, FENCE_OPEN},
	/* It is complete at the reply, and revoked when the next I/O of the slot is posted. */
	{FENCE_USE, OWN, LAZY, FENCE_COMPLETE, FENCE_OPEN},
	/* That is what the proof says. */
	{FENCE_USE, OWN, ASYNC | LAZY, FENCE_REVOKED, FENCE_CLOSED},

	/* One region holds all memory of all I/Os. That is the other finding. */
	{FENCE_BEFORE, WHOLE, ANY, FENCE_DURING, FENCE_OPEN},
	{FENCE_AFTER, WHOLE, ANY, FENCE_DURING, FENCE_OPEN},
	/* A region of whole pages holds what shares a page with the I/O, which begins with one here. */
	{FENCE_BEFORE, PAGES | TAIL, ANY, FENCE_DURING, FENCE_CLOSED},
	{FENCE_AFTER, PAGES, ANY, FENCE_DURING, FENCE_CLOSED},
	{FENCE_AFTER, TAIL, ANY, FENCE_DURING, FENCE_OPEN},
	/* It holds the I/O's bytes; bounds are checked to the byte. A list begins at address 0. */
	{FENCE_BEFORE, REGION | WINDOW, ANY, FENCE_DURING, FENCE_CLOSED},
	{FENCE_AFTER, OWN, ANY, FENCE_DURING, FENCE_CLOSED},
	/* (Beside a buffer there is another one, or nothing: that is the strategy's business.) */

	/* The I/O's bytes are in the buffer; the key is for that. */
	{FENCE_MEMORY, BUFFER, ANY, FENCE_DURING, FENCE_CLOSED},

	/* The memory was declared, or the key granted, for reading alone. */
	{FENCE_WRITE_READ_ONLY, EVERY, ANY, FENCE_DURING, FENCE_CLOSED},

	/* The region below a window or a list gives the peer no right. */
	{FENCE_PARENT, WINDOW | LIST, ANY, FENCE_DURING, FENCE_CLOSED},

	/* A region, or a list, is good on all queue pairs of its protection domain. */
	{FENCE_OTHER_QP, KEPT | REGION | LIST | BUFFER, ANY, FENCE_DURING, FENCE_OPEN},
	/* A window of type 2 is bound to one queue pair. */
	{FENCE_OTHER_QP, WINDOW, ANY, FENCE_DURING, FENCE_CLOSED},
};
/* clang-format on */

bool fence_expected(const struct fence_cell *cell, enum fence_outcome *out)
{
	if (cell->attempt == FENCE_WRITE_READ_ONLY && cell->write)
		return false;
	for (unsigned int i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (table[i].attempt != cell->attempt || table[i].stage != cell->stage ||
		    !(table[i].kinds & 1u << cell->kind) || !(table[i].modes & 1u << cell->revoke))
			continue;
		*out = table[i].outcome;
		return true;
	}
	return false;
}

enum fence_verdict fence_verdict(const struct fence_row *row)
{
	bool closed = row->expected == FENCE_CLOSED && row->observed == FENCE_ENDED;

	if (row->skipped)
		return FENCE_SKIPPED;
	return closed || row->observed == row->expected ? FENCE_OK : FENCE_DIFFERS;
}

struct fence_tally fence_count(const struct fence_rows *rows)
{
	struct fence_tally t = {0};

	for (unsigned int i = 0; i < rows->n; i++) {
		enum fence_verdict v = fence_verdict(&rows->row[i]);

		t.cells += v != FENCE_SKIPPED;
		t.differ += v == FENCE_DIFFERS;
		t.skipped += v == FENCE_SKIPPED;
	}
	return t;
}

struct fence_found fence_find(const struct fence_rows *rows, const char *strategy)
{
	struct fence_found found = {0};

	for (unsigned int i = 0; i < rows->n; i++) {
		const struct fence_row *row = &rows->row[i];
		const struct fence_cell *c = &row->cell;

		if (row->skipped || row->observed != FENCE_OPEN || strcmp(c->strategy, strategy))
			continue;
		found.always |= ((KEPT | BUFFER) & 1u << c->kind) && c->attempt == FENCE_USE &&
				c->stage == FENCE_COMPLETE;
		if (c->attempt == FENCE_BEFORE || c->attempt == FENCE_AFTER ||
		    c->attempt == FENCE_MEMORY)
			*(c->kind == FENCE_WHOLE	? &found.all
			  : row->expected == FENCE_OPEN ? &found.pages
							: &found.beyond) = true;
	}
	return found;
}
