/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rxfer-bench fence: what the files of the client's side share. The essay is on top of fence.c. */
#ifndef BENCH_FENCE_H
#define BENCH_FENCE_H

#include "command.h"
#include "fence_msg.h"
#include "report.h"

#define FENCE_PAGE \
	4096u /* bytes: an I/O begins with a page, and one is before and behind its own */

/* enum fence_kind - what a key is of. */
enum fence_kind {
	FENCE_WHOLE,  /* all declared memory, for good */
	FENCE_PAGES,  /* the whole pages that the I/O is in, and it fills the last one; likewise */
	FENCE_TAIL,   /* the same, and it ends before the last page does */
	FENCE_REGION, /* a region of the I/O's own, made and given back by calls */
	FENCE_WINDOW, /* a window, granted and revoked by work requests */
	FENCE_BUFFER, /* the buffers that I/Os are copied to and from, for good */
	FENCE_LIST,   /* a list of pieces, likewise, with addresses of its own */
};

enum fence_attempt {
	FENCE_USE,
	FENCE_BEFORE,
	FENCE_AFTER,
	FENCE_WRITE_READ_ONLY,
	FENCE_PARENT,
	FENCE_OTHER_QP,
	FENCE_MEMORY, /* of the I/O, where the key is a buffer's */
	FENCE_ATTEMPTS,
};

enum fence_stage { FENCE_DURING, FENCE_REPLIED, FENCE_COMPLETE, FENCE_REVOKED, FENCE_STAGES };

/* struct fence_cell - one attempt at one stage. @write: the I/O lets the peer write, else read. */
struct fence_cell {
	const char *strategy;
	enum fence_kind kind;
	enum rxfer_revoke revoke;
	bool write;
	uint64_t bytes;
	enum fence_attempt attempt;
	enum fence_stage stage;
};

const char *fence_attempt_name(enum fence_attempt attempt);
const char *fence_stage_name(enum fence_stage stage);

/** fence_expected() - THE table: what must come of it. false: there is no such cell. */
bool fence_expected(const struct fence_cell *cell, enum fence_outcome *out);

enum fence_verdict { FENCE_OK, FENCE_DIFFERS, FENCE_SKIPPED };

/**
 * struct fence_row - what came of it.
 * @skipped: a strategy or mode that there is not: of @cell only strategy and revoke count
 * @note:    why it was skipped, or what failed
 */
struct fence_row {
	struct fence_cell cell;
	bool skipped;
	enum fence_outcome expected, observed;
	char note[512];
};

enum fence_verdict fence_verdict(const struct fence_row *row);

/* struct fence_rows - all of them, owned. */
struct fence_rows {
	struct fence_row *row;
	unsigned int n;
};

/* struct fence_tally - cells that were tried, those that differ, rows that were skipped. */
struct fence_tally {
	unsigned int cells, differ, skipped;
};
struct fence_tally fence_count(const struct fence_rows *rows);

/**
 * struct fence_found - what was seen of a strategy, said in words below the rows.
 * @always: a key that is not the I/O's own was used when the I/O was complete
 * @all:    and other memory was reached by it; @pages: the rest of the same page
 * @beyond: memory beyond the I/O's was reached by a key for that alone
 */
struct fence_found {
	bool always, all, pages, beyond;
};
struct fence_found fence_find(const struct fence_rows *rows, const char *strategy);

/** fence_format() - how rows are written as "table" or "csv"; NULL for another. */
const struct report_ops *fence_format(const char *name);

/** fence_write() - all rows into a report that was opened with one of these formats. As
 * probe_write(). */
int fence_write(struct report *r, const struct fence_rows *rows, const struct result *env,
		bool partial);

/* ---- One cell, fence_client.c ---- */

/**
 * struct fence_client - a session with the server, and what cells are tried with.
 * @dead:   the session is over
 * @arena:  the I/O's memory with a page before and behind it; @image: what must be in it, and then
 * in the I/O's buffer, where there is one
 * @below:  the key of the region that it is in; 0: none
 * @number: of the next cell, so that no two have the same bytes
 */
struct fence_client {
	uint64_t timeout_ns;
	const struct runtime *runtime;
	struct control *control;
	bool dead;
	struct sockaddr_storage addr;
	uint8_t token[RXFER_TOKEN_BYTES];
	struct rxfer_dev *dev;
	struct area arena, messages;
	char *image;
	uint64_t bytes; /* of the I/O */
	uint32_t below;
	uint64_t number;
};

/** fence_memory() - the memory of I/Os of so many @bytes that let the peer read, or write. 0 or
 * -errno; fence_memory_drop() in any case. */
int fence_memory(struct fence_client *f, bool write, uint64_t bytes);
void fence_memory_drop(struct fence_client *f);

/**
 * fence_cell() - bring an I/O of its own to the stage, have the peer try, and see what came of it:
 * @row's observed and note. 0; -EINTR; or another -errno where it did not come to that, and then
 * rxfer_error() says why.
 */
int fence_cell(struct fence_client *f, const struct fence_cell *cell, struct fence_row *row);

#endif
