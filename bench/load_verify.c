/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --verify of READ and WRITE, by who issues them. A READ fetches another place of a
 * position-dependent pattern each time, into memory that was poisoned before. What a WRITE left at
 * the peer is fetched back by a READ before its slot is used again; that READ is posted aside, so
 * it is neither timed nor counted. SENDs are checked where they arrive (load_sink.c).
 */
#include <errno.h>
#include <string.h>
#include "load_direct.h"
#include "pattern.h"

#define POISON 0xa5

static size_t number_of(const struct direct *d, const struct lane *lane)
{
	return (size_t)(lane - d->lanes);
}

/* Where in the target of its slot a READ starts: another place each time. */
static uint64_t read_offset(const struct slot *s)
{
	return s->number * 8 % TARGET_SLACK;
}

/* The place of a slot in the peer's memory, without what --verify adds. */
static uint64_t target_of(const struct direct *d, const struct slot *s)
{
	return d->target->addr + (uint64_t)(s - d->slots) * d->load.layout.target +
	       d->load.cfg->misalign;
}

void verify_prepare(struct direct *d, const struct lane *lane, struct slot *s)
{
	uint64_t pos = s->number * d->load.cfg->size;

	for (uint64_t i = 0; i < d->load.cfg->frags; i++) {
		if (d->load.cfg->op == OP_READ)
			memset(s->frags[i].addr, POISON, s->frags[i].len);
		else
			pattern_fill(s->frags[i].addr, s->frags[i].len, pos, number_of(d, lane));
		pos += s->frags[i].len;
	}
	if (d->load.cfg->op == OP_READ)
		s->remote.addr = target_of(d, s) + read_offset(s);
}

static int wrong_byte(const struct lane *lane, const struct direct *d, const struct slot *s,
		      uint64_t at)
{
	return rxfer_fail(EILSEQ,
			  "verification failed: QP %zu, I/O %llu, byte %llu of %llu is wrong",
			  number_of(d, lane), (unsigned long long)s->number, (unsigned long long)at,
			  (unsigned long long)d->load.cfg->size);
}

int verify_read(const struct direct *d, const struct lane *lane, const struct slot *s)
{
	uint64_t start = s->remote.addr - d->target->addr, done = 0;

	for (uint64_t i = 0; i < d->load.cfg->frags; i++) {
		int64_t bad = pattern_check(s->frags[i].addr, s->frags[i].len, start + done, 0);

		if (bad >= 0)
			return wrong_byte(lane, d, s, done + (uint64_t)bad);
		done += s->frags[i].len;
	}
	return 0;
}

static char *check_buffer(const struct direct *d, const struct slot *s)
{
	return d->check.base + (size_t)(s - d->slots) * d->load.layout.target;
}

int verify_write(const struct direct *d, const struct lane *lane, const struct slot *s)
{
	int64_t bad = pattern_check(check_buffer(d, s), d->load.cfg->size,
				    s->number * d->load.cfg->size, number_of(d, lane));

	return bad < 0 ? 0 : wrong_byte(lane, d, s, (uint64_t)bad);
}

/* -EAGAIN: no credits yet. */
static int fetch_back(const struct direct *d, struct lane *lane, struct slot *s)
{
	struct rxfer_frag into = {check_buffer(d, s), (uint32_t)d->load.cfg->size};
	int rc;

	memset(into.addr, POISON, into.len);
	rc = rxfer_post_read(lane->conn, &into, 1, &s->remote, 1, (uint64_t)(s - lane->slots),
			     RXFER_MUST_SIGNAL | RXFER_ASIDE);
	if (rc)
		return rc;
	s->checking = true;
	lane->check = behind(lane, lane->check);
	lane->to_check--;
	return 0;
}

int verify_fetch_back(const struct direct *d, struct lane *lane)
{
	int rc = 0;

	while (lane->to_check && rc == 0)
		rc = fetch_back(d, lane, &lane->slots[lane->check]);
	return rc == -EAGAIN ? 0 : rc;
}
