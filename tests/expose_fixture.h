/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A client that exposes memory to a server, on the test double, and what the server gets of it. */
#ifndef RXFER_TESTS_EXPOSE_FIXTURE_H
#define RXFER_TESTS_EXPOSE_FIXTURE_H

#include <errno.h>
#include <string.h>
#include "fakehca/engine.h"
#include "../src/reg.h"

#define BYTES 8192
#define FRAGS 4
#define BOTH  (RXFER_EXPOSE_READ | RXFER_EXPOSE_WRITE)

/* Those with one key over everything first, then the others that revoke none. */
static const char *const strategies[] = {"global", "multi-wr", "odp", "rcache", "per-io"};
#define STRATEGIES  (sizeof(strategies) / sizeof(strategies[0]))
#define ALWAYS_OPEN 3

/* The client exposes @mine; the server, who is told, has @theirs. */
struct pair {
	struct engine e;
	struct rxfer_mem *local, *target;
	struct rxfer_exposure *x;
};

static uint8_t mine[BYTES], theirs[BYTES];

static inline void connect_pair(struct pair *p)
{
	struct rxfer_shape shape = {RXFER_SEND, 8, 1, 0};

	engine_attr(&p->e, &shape, 4, 0, "io");
	p->e.server_attr.shape = (struct rxfer_shape){RXFER_READ, BYTES, 1, 1};
	assert_int_equal(engine_connect(&p->e), 0);
	assert_int_equal(p->e.accepted, 0);
	assert_int_equal(rxfer_exposure_new(p->e.client, FRAGS, &p->x), 0);
}

static inline void open_pair(struct pair *p, const struct fake_config *config, const char *strategy,
			     unsigned int rights)
{
	for (int i = 0; i < BYTES; i++) {
		mine[i] = (uint8_t)(i % 251);
		theirs[i] = 0;
	}
	*p = (struct pair){0};
	engine_open(&p->e, config, strategy);
	assert_int_equal(rxfer_mem_add(p->e.cdev, mine, BYTES, rights, &p->local), 0);
	assert_int_equal(rxfer_mem_add(p->e.sdev, theirs, BYTES, RXFER_FIXED, &p->target), 0);
	connect_pair(p);
}

static inline void close_pair(struct pair *p)
{
	rxfer_conn_close(p->e.client);
	p->e.client = NULL;
	assert_int_equal(rxfer_mem_forget(p->e.cdev, mine, BYTES), 0);
	assert_int_equal(rxfer_dev_exposed(p->e.cdev).live, p->local->grant.ledger ? 1 : 0);
	engine_close(&p->e);
}

/* @n fragments of 100 bytes, each that many behind the one before. */
static inline void fragments(struct rxfer_frag *frag, uint32_t n, uint32_t stride)
{
	for (uint32_t i = 0; i < n; i++)
		frag[i] = (struct rxfer_frag){mine + 1000 + (size_t)i * stride, 100};
}

static inline int expose(struct pair *p, uint32_t n, uint32_t stride, unsigned int rights)
{
	struct rxfer_frag frag[FRAGS + 1];

	fragments(frag, n, stride);
	return rxfer_expose(p->e.client, p->x, frag, n, rights);
}

static inline struct rxfer_seg seg(const struct pair *p, uint32_t i)
{
	uint32_t n;
	const struct rxfer_seg *s = rxfer_exposure_segs(p->x, &n);

	assert_true(i < n);
	return s[i];
}

static inline uint32_t nseg(const struct pair *p)
{
	uint32_t n;

	rxfer_exposure_segs(p->x, &n);
	return n;
}

/* What becomes of the peer's READ from, or WRITE to, that place of ours. */
static inline int reach(struct pair *p, enum rxfer_opcode op, struct rxfer_seg at)
{
	struct rxfer_frag frag = {theirs + 1000, at.len};
	struct rxfer_done done;
	int rc;

	if (op == RXFER_READ)
		rc = rxfer_post_read(p->e.server, &frag, 1, &at, 1, 5, 0);
	else
		rc = rxfer_post_write(p->e.server, &frag, 1, &at, 1, 5, 0);
	assert_int_equal(rc, 0);
	fake_run();
	rc = rxfer_poll(p->e.server, &done, 1);
	return rc == 1 ? 0 : rc;
}

static inline bool revocable(const char *strategy)
{
	return !rxfer_strategy_revokes(strategy, RXFER_REVOKE_SYNC);
}

#endif
