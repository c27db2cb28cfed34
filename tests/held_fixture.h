/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A client that posts out of credits that it holds, on the test double, and a server that gets its
 * WRITEs and messages. */
#ifndef RXFER_TESTS_HELD_FIXTURE_H
#define RXFER_TESTS_HELD_FIXTURE_H

#include <errno.h>
#include <string.h>
#include "fakehca/engine.h"

#define BYTES	 4096
#define MESSAGES 16
#define MESSAGE	 256 /* bytes of one RECV */

/*
 * struct pair - @pool: memory that is the strategy's business; @fixed: that is not; @target: the
 * server's. @sq: the client's account.
 */
struct pair {
	struct engine e;
	struct rxfer_mem *pool, *fixed, *target, *inbox;
	struct rxfer_sq *sq;
};

static uint8_t pool[BYTES], header[BYTES], theirs[BYTES], inbox[MESSAGES][MESSAGE];

/* Both ends, not connected. Each byte of ours says where it is from. */
static inline void open_pair(struct pair *p, const struct fake_config *config, const char *strategy,
			     const struct rxfer_shape *shape)
{
	for (int i = 0; i < BYTES; i++) {
		pool[i] = (uint8_t)(1 + i % 120);
		header[i] = (uint8_t)(128 + i % 120);
	}
	memset(theirs, 0, sizeof(theirs));
	memset(inbox, 0, sizeof(inbox));
	*p = (struct pair){0};
	engine_open(&p->e, config, strategy);
	assert_int_equal(rxfer_mem_add(p->e.cdev, pool, BYTES, RXFER_LOCAL, &p->pool), 0);
	assert_int_equal(rxfer_mem_add(p->e.cdev, header, BYTES, RXFER_FIXED, &p->fixed), 0);
	assert_int_equal(rxfer_mem_add(p->e.sdev, theirs, BYTES, RXFER_PEER_READ | RXFER_PEER_WRITE,
				       &p->target),
			 0);
	assert_int_equal(rxfer_mem_add(p->e.sdev, inbox, sizeof(inbox), RXFER_FIXED, &p->inbox), 0);
	engine_attr(&p->e, shape, 2, 0, "all");
	p->e.server_attr.rq_depth = MESSAGES;
}

/* By p->e.client_attr as it is by now; the server has a RECV for each of MESSAGES messages. */
static inline void connect_pair(struct pair *p)
{
	assert_int_equal(engine_connect(&p->e), 0);
	assert_int_equal(p->e.accepted, 0);
	p->sq = rxfer_conn_sq(p->e.client);
	for (uint64_t i = 0; i < MESSAGES; i++)
		assert_int_equal(rxfer_post_recv(p->e.server, inbox[i], MESSAGE, i), 0);
}

static inline void policy(struct pair *p, const char *signal)
{
	assert_int_equal(rxfer_sig_parse(signal, &p->e.client_attr.sig, &p->e.client_attr.sig_arg),
			 0);
}

static inline struct rxfer_seg remote(const struct pair *p, uint64_t at, uint32_t len)
{
	return (struct rxfer_seg){(uintptr_t)theirs + at, len, rxfer_mem_rkey(p->target)};
}

/* How the client's account stands: posted, and reserved beside the drain's one. The double agrees.
 */
static inline void expect_account(const struct pair *p, uint32_t posted, uint32_t reserved)
{
	assert_int_equal(rxfer_sq_posted(p->sq), posted);
	assert_int_equal(fake_sq_posted(p->e.client->id->qp), posted);
	assert_int_equal(p->sq->reserved, 1 + reserved);
	assert_int_equal(rxfer_sq_free(p->sq), p->sq->depth - 1 - posted - reserved);
	assert_int_equal(rxfer_conn_counts(p->e.client)->sqe, fake_stats()->sqes);
}

/* The next I/O of the client's that is done. */
static inline struct rxfer_done expect_done(struct pair *p, uint64_t id)
{
	struct rxfer_done done = {0};

	fake_run();
	assert_int_equal(rxfer_poll(p->e.client, &done, 1), 1);
	assert_int_equal(done.id, id);
	return done;
}

static inline void expect_nothing(struct pair *p)
{
	struct rxfer_done done;

	fake_run();
	assert_int_equal(rxfer_poll(p->e.client, &done, 1), 0);
}

/* The server's next message: the @n-th, of these bytes. */
static inline void expect_message(struct pair *p, uint64_t n, const void *bytes, uint32_t len)
{
	struct rxfer_done done = {0};

	fake_run();
	assert_int_equal(rxfer_poll(p->e.server, &done, 1), 1);
	assert_int_equal(done.op, RXFER_RECV);
	assert_int_equal(done.id, n);
	assert_int_equal(done.bytes, len);
	assert_memory_equal(inbox[n], bytes, len);
}

static inline void expect_no_message(struct pair *p)
{
	struct rxfer_done done;

	fake_run();
	assert_int_equal(rxfer_poll(p->e.server, &done, 1), 0);
}

#endif
