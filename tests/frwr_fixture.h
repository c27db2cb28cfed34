/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client whose keys are granted and revoked by work requests (frwr), on the test double, and a
 * server that reads, writes and replies. Both are driven by hand.
 */
#ifndef RXFER_TESTS_FRWR_FIXTURE_H
#define RXFER_TESTS_FRWR_FIXTURE_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "fakehca/engine.h"
#include "../src/reg.h"

#define SLOTS	8
#define ROOM	2048 /* bytes of a slot's memory, */
#define AT	512  /* where its first fragment lies in it, */
#define LEN	64   /* and how long each is */
#define FRAGS	4
#define ADJOINS LEN
#define GAPS	(LEN + 16)
#define MESSAGE 64
#define RECVS	16
#define BOTH	(RXFER_EXPOSE_READ | RXFER_EXPOSE_WRITE)
#define REVOKE	100	/* ids of revokes begin here */
#define REQUEST MESSAGE /* bytes of one */
#define REPLY	24

/* struct how - the client's connection; zeros: sync, every WR signalled, one run, SLOTS, no limit.
 */
struct how {
	enum rxfer_revoke revoke;
	const char *signal;
	uint32_t exposed, slots, ios, sq_depth, inline_max;
	bool phases, post_single;
	unsigned int rights;  /* that the memory is declared with; 0: both */
	const char *strategy; /* NULL: frwr */
};

/* @held: credits of each slot's exposure. */
struct pair {
	struct engine e;
	struct rxfer_mem *mem, *messages, *target, *inbox;
	struct rxfer_exposure *x[SLOTS];
	uint32_t held[SLOTS];
	struct rxfer_conn_info info;
};

static uint8_t mine[SLOTS * ROOM], theirs[ROOM], messages[(SLOTS + RECVS) * MESSAGE],
	inbox[(SLOTS + RECVS) * MESSAGE];

/* ---- A pair ---- */

static inline void post_recvs(struct pair *p)
{
	for (uint64_t i = 0; i < RECVS; i++) {
		assert_int_equal(rxfer_post_recv(p->e.server, inbox + i * MESSAGE, MESSAGE, i), 0);
		assert_int_equal(
			rxfer_post_recv(p->e.client, messages + (SLOTS + i) * MESSAGE, MESSAGE, i),
			0);
	}
}

static inline void connect_pair(struct pair *p)
{
	if (p->e.cdev->reg->create_qp)
		assert_int_equal(engine_connect_both(&p->e), 0);
	else
		assert_int_equal(engine_connect(&p->e), 0);
	assert_int_equal(p->e.accepted, 0);
	rxfer_conn_info(p->e.client, &p->info);
	post_recvs(p);
}

static inline void declare(struct pair *p, unsigned int rights)
{
	for (size_t i = 0; i < sizeof(mine); i++)
		mine[i] = (uint8_t)(1 + i % 251);
	memset(theirs, 0, sizeof(theirs));
	assert_int_equal(rxfer_mem_add(p->e.cdev, mine, sizeof(mine), rights, &p->mem), 0);
	assert_int_equal(
		rxfer_mem_add(p->e.cdev, messages, sizeof(messages), RXFER_FIXED, &p->messages), 0);
	assert_int_equal(rxfer_mem_add(p->e.sdev, theirs, ROOM, RXFER_FIXED, &p->target), 0);
	assert_int_equal(rxfer_mem_add(p->e.sdev, inbox, sizeof(inbox), RXFER_FIXED, &p->inbox), 0);
}

/* Both ends, but for the connection. */
static inline void open_devices(struct pair *p, const struct fake_config *config,
				const struct how *how)
{
	struct rxfer_shape shape = {.op = RXFER_SEND, .bytes = MESSAGE, .frags = 1};

	*p = (struct pair){0};
	engine_open(&p->e, config, how->strategy ? how->strategy : "frwr");
	fake_live()->auto_steps = 0; /* if any, they were for a strategy that tries itself out */
	declare(p, how->rights ? how->rights : BOTH);
	shape.exposed = how->exposed ? how->exposed : 1;
	shape.fixed = 1;
	engine_attr(&p->e, &shape, how->slots ? how->slots : SLOTS, how->sq_depth,
		    how->signal ? how->signal : "all");
	p->e.client_attr.one_message = true;
	p->e.client_attr.ios = how->ios ? how->ios : 2 * p->e.client_attr.slots;
	p->e.client_attr.rq_depth = RECVS;
	p->e.client_attr.revoke = how->revoke ? how->revoke : RXFER_REVOKE_SYNC;
	p->e.client_attr.time_phases = how->phases;
	p->e.client_attr.post_single = how->post_single;
	p->e.client_attr.inline_max = how->inline_max;
	p->e.server_attr.shape = (struct rxfer_shape){RXFER_READ, ROOM, 1, 1};
	p->e.server_attr.rq_depth = RECVS;
	p->e.server_attr.slots = RECVS;
}

static inline void open_with(struct pair *p, const struct fake_config *config,
			     const struct how *how)
{
	open_devices(p, config, how);
	connect_pair(p);
	for (uint32_t i = 0; i < p->e.client_attr.slots && i < SLOTS; i++)
		assert_int_equal(rxfer_exposure_new(p->e.client, FRAGS, &p->x[i]), 0);
}

static inline void open_pair(struct pair *p, enum rxfer_revoke revoke, uint32_t exposed)
{
	const struct how how = {.revoke = revoke, .exposed = exposed};

	open_with(p, NULL, &how);
}

/* The client first: what its device has in its books then. */
static inline void close_pair(struct pair *p)
{
	rxfer_conn_close(p->e.client);
	p->e.client = NULL;
	assert_int_equal(fake_stats()->mw_outlived, 0); /* rxe waits 50 s for each */
	assert_int_equal(rxfer_dev_exposed(p->e.cdev).live, 0);
	assert_int_equal(rxfer_dev_exposed(p->e.cdev).now, 0);
	engine_close(&p->e);
}

/* ---- What the client does ---- */

static inline int expose_part(struct pair *p, uint32_t i, uint32_t n, uint32_t stride,
			      unsigned int rights)
{
	struct rxfer_frag frag[FRAGS + 1];

	for (uint32_t k = 0; k < n; k++)
		frag[k] = (struct rxfer_frag){mine + i * ROOM + AT + (size_t)k * stride, LEN};
	return rxfer_expose(p->e.client, p->x[i], frag, n, rights);
}

static inline void expose(struct pair *p, uint32_t i, uint32_t n, uint32_t stride)
{
	assert_int_equal(expose_part(p, i, n, stride, BOTH), 0);
}

static inline const struct rxfer_seg *segs(const struct pair *p, uint32_t i, uint32_t n)
{
	uint32_t have;
	const struct rxfer_seg *s = rxfer_exposure_segs(p->x[i], &have);

	assert_int_equal(have, n);
	return s;
}

static inline uint32_t key(const struct pair *p, uint32_t i)
{
	uint32_t n;

	return rxfer_exposure_segs(p->x[i], &n)->key;
}

/* The request that grants what the slot's exposure was chosen keys for. */
static inline int post_request(struct pair *p, uint32_t i, unsigned int flags)
{
	struct rxfer_frag frag = {messages + i * MESSAGE, REQUEST};
	const struct rxfer_op op = {.op = RXFER_SEND,
				    .local = &frag,
				    .nlocal = 1,
				    .fixed = 1,
				    .id = i,
				    .flags = flags,
				    .grants = p->x[i]};
	int rc;

	assert_int_equal(p->held[i], 0);
	if (rxfer_sq_reserve(rxfer_conn_sq(p->e.client), p->info.need))
		return -EAGAIN;
	p->held[i] = p->info.need;
	rc = rxfer_post_held(p->e.client, &op, &p->held[i], p->info.later);
	if (rc && p->held[i] == p->info.need) {
		rxfer_sq_release(rxfer_conn_sq(p->e.client), p->held[i]);
		p->held[i] = 0;
	}
	return rc;
}

static inline void ask(struct pair *p, uint32_t i)
{
	assert_int_equal(post_request(p, i, 0), 0);
}

static inline int revoke(struct pair *p, uint32_t i, unsigned int flags)
{
	const struct rxfer_revoking how = {.id = REVOKE + i, .flags = flags, .held = &p->held[i]};

	return rxfer_revoke_held(p->e.client, p->x[i], &how);
}

/* The client's next I/O that is done is this one. */
static inline struct rxfer_done expect_done(struct pair *p, enum rxfer_opcode op, uint64_t id)
{
	struct rxfer_done done = {0};
	int rc;

	fake_run();
	rc = rxfer_poll(p->e.client, &done, 1);
	if (rc != 1)
		fail_msg("nothing is done: %s", rc ? rxfer_error() : "");
	assert_int_equal(done.op, op);
	assert_int_equal(done.id, id);
	return done;
}

/* Nor message. */
static inline void expect_nothing(struct pair *p)
{
	struct rxfer_done done;

	fake_run();
	assert_int_equal(rxfer_poll(p->e.client, &done, 1), 0);
}

/* The client finds that its connection broke, with these words. */
static inline void breaks(struct pair *p, int err, const char *words)
{
	struct rxfer_done done;
	int rc;

	fake_run();
	do {
		rc = rxfer_poll(p->e.client, &done, 1);
	} while (rc > 0);
	assert_int_equal(rc, err);
	engine_said(words);
}

/* ---- What the server does ---- */

/* What becomes of its READ or WRITE of @at. */
static inline int reach_by(struct rxfer_conn *server, enum rxfer_opcode op, struct rxfer_seg at)
{
	struct rxfer_frag frag = {theirs, at.len};
	struct rxfer_done done;
	int rc;

	fake_run(); /* what was granted before is granted by now */
	if (op == RXFER_READ)
		rc = rxfer_post_read(server, &frag, 1, &at, 1, 77, RXFER_MUST_SIGNAL);
	else
		rc = rxfer_post_write(server, &frag, 1, &at, 1, 77, RXFER_MUST_SIGNAL);
	assert_int_equal(rc, 0);
	fake_run();
	do {
		rc = rxfer_poll(server, &done, 1);
	} while (rc == 1 && done.op == RXFER_RECV);
	assert_int_not_equal(rc, 0);
	return rc == 1 ? 0 : rc;
}

static inline int reach(struct pair *p, enum rxfer_opcode op, struct rxfer_seg at)
{
	return reach_by(p->e.server, op, at);
}

/* It reads just these bytes, and puts others there. */
static inline void reaches(struct pair *p, struct rxfer_seg at)
{
	uint8_t *here = (uint8_t *)(uintptr_t)at.addr, before = here[-1], behind = here[at.len];

	memset(theirs, 0, at.len);
	assert_int_equal(reach(p, RXFER_READ, at), 0);
	assert_memory_equal(theirs, here, at.len);
	for (uint32_t i = 0; i < at.len; i++)
		theirs[i] ^= 0x5a;
	assert_int_equal(reach(p, RXFER_WRITE, at), 0);
	assert_memory_equal(theirs, here, at.len);
	assert_int_equal(here[-1], before);
	assert_int_equal(here[at.len], behind);
}

/* Refused, which ends the connection. */
static inline void is_refused(struct pair *p, enum rxfer_opcode op, struct rxfer_seg at)
{
	static uint8_t were[sizeof(mine)];

	memcpy(were, mine, sizeof(mine));
	memset(theirs, 0xee, sizeof(theirs));
	assert_int_equal(reach(p, op, at), -EIO);
	engine_said("IBV_WC_REM_ACCESS_ERR");
	assert_memory_equal(mine, were, sizeof(mine));
	for (uint32_t i = 0; i < at.len; i++)
		assert_int_equal(theirs[i], 0xee);
}

/* A reply, which revokes a key where it has RXFER_INVALIDATE. */
static inline void reply(struct pair *p, unsigned int flags, uint32_t revoked)
{
	struct rxfer_frag frag = {inbox + RECVS * MESSAGE, REPLY};
	const struct rxfer_op op = {.op = RXFER_SEND,
				    .local = &frag,
				    .nlocal = 1,
				    .fixed = 1,
				    .imm = revoked,
				    .id = 88,
				    .flags = flags | RXFER_MUST_SIGNAL};

	assert_int_equal(rxfer_post(p->e.server, &op), 0);
}

/* The client's next message. */
static inline struct rxfer_done message(struct pair *p)
{
	struct rxfer_done done = {0};

	fake_run();
	do {
		assert_int_equal(rxfer_poll(p->e.client, &done, 1), 1);
	} while (done.op != RXFER_RECV);
	assert_int_equal(rxfer_post_recv(p->e.client, messages + (SLOTS + done.id) * MESSAGE,
					 MESSAGE, done.id),
			 0);
	return done;
}

/* The server takes the requests that have come, and has RECVs for the next ones. */
static inline uint32_t serve(struct pair *p)
{
	struct rxfer_done done;
	uint32_t n = 0;

	fake_run();
	while (rxfer_poll(p->e.server, &done, 1) == 1)
		if (done.op == RXFER_RECV) {
			assert_int_equal(rxfer_post_recv(p->e.server, inbox + done.id * MESSAGE,
							 MESSAGE, done.id),
					 0);
			n++;
		}
	return n;
}

/* ---- Books ---- */

/* Keys that count as open, of this many bytes each. */
static inline void open_keys(struct pair *p, uint32_t n, uint32_t bytes)
{
	struct rxfer_exposed conn = rxfer_conn_exposed(p->e.client);
	struct rxfer_exposed dev = rxfer_dev_exposed(p->e.cdev);

	assert_int_equal(conn.live, n);
	assert_int_equal(conn.now, (uint64_t)n * bytes);
	assert_int_equal(dev.live, n);
	assert_int_equal(dev.now, (uint64_t)n * bytes);
}

/* What the client has posted, of each kind; the double has seen as much of binds and revokes. */
static inline void posted(const struct pair *p, uint64_t posts, uint64_t binds, uint64_t sends,
			  uint64_t revokes)
{
	const struct rxfer_counts *c = rxfer_conn_counts(p->e.client);

	assert_int_equal(c->posts, posts);
	assert_int_equal(c->sqe_op[RXFER_BIND], binds);
	assert_int_equal(c->sqe_op[RXFER_SEND], sends);
	assert_int_equal(c->sqe_op[RXFER_REVOKE], revokes);
	assert_int_equal(c->sqe, binds + sends + revokes);
}

/* How the client's account stands: posted, and reserved beside the drain's one. */
static inline void account(const struct pair *p, uint32_t in_queue, uint32_t reserved)
{
	const struct rxfer_sq *sq = &p->e.client->sq;

	assert_int_equal(rxfer_sq_posted(sq), in_queue);
	assert_int_equal(fake_sq_posted(p->e.client->qp), in_queue);
	assert_int_equal(sq->reserved, 1 + reserved);
}

#endif
