/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of a server in RPC mode share: this test is the client. */
#ifndef RXFER_TESTS_RPC_CLIENT_FIXTURE_H
#define RXFER_TESTS_RPC_CLIENT_FIXTURE_H

#include "rpc_fixture.h"

#define SEG_AT(i) (GRANTED + 1024u + 256u * (i)) /* the i-th segment of a good request */

/* Up to the server's CONNECTED: from here on it takes requests. */
static inline void connect_to_server(struct rpc_scene *r)
{
	struct scene *s = &r->s;
	struct rxfer_conn_attr attr;
	struct rxfer_wait wait;
	struct ready ready;
	json_t *body;

	begin_session(r);
	meet(s, serve_rpc, true);
	layout_make(&s->cfg, &s->layout);
	assert_int_equal(rxfer_dev_open("fake0", "global", &s->dev), 0);
	make_memory(r);
	say_body(s, MSG_CONFIG, config_to_json(&s->cfg, s->token));
	body = hear(s, MSG_READY);
	assert_int_equal(ready_from_json(body, &ready), 0);
	json_decref(body);
	wait = soon();
	attr = rpc_attr(r, (struct roles){.issues = true});
	assert_int_equal(rxfer_connect(s->dev, &ready.addr, &attr, &wait, &s->conn), 0);
	post_recvs(r, MAX_RECVS);
	drop(hear(s, MSG_CONNECTED));
}

static inline struct rxfer_seg good_seg(const struct rpc_scene *r, uint32_t i, uint32_t len)
{
	return (struct rxfer_seg){(uintptr_t)r->mem + SEG_AT(i), len, r->granted->rkey};
}

/* A request of @length bytes in these segments, into the @i-th buffer: how long it is. */
static inline uint32_t write_request(struct rpc_scene *r, unsigned int i, uint32_t id,
				     const struct rxfer_seg *segs, uint32_t nsegs, uint32_t length)
{
	const struct rpc_request q = {
		.id = id,
		.op = r->plan.limits.op,
		.flags = r->plan.limits.flags,
		.nsegs = nsegs,
		.length = length,
		.segs = (struct rxfer_seg *)segs,
		.inline_len = r->plan.carries ? length : 0,
	};
	uint32_t bytes = rpc_request_write(send_buffer(r, i), &q);

	return bytes + q.inline_len;
}

/* As the program's client would send it. */
static inline uint32_t good_request(struct rpc_scene *r, unsigned int i, uint32_t id)
{
	struct rxfer_seg segs[FRAGS];

	for (uint32_t k = 0; k < FRAGS; k++)
		segs[k] = good_seg(r, k, SIZE / FRAGS);
	return write_request(r, i, id, segs, r->plan.moves ? FRAGS : 0, (uint32_t)r->s.cfg.size);
}

/* The server's next message. */
static inline struct ibv_wc await_reply(struct rpc_scene *r)
{
	struct ibv_wc wc = await_wc(r, true);
	struct rxfer_wait wait = soon();

	if (wc.status != IBV_WC_SUCCESS) {
		control_expect(&r->s.ours, MSG_READY, NULL, &wait);
		fail_msg("no reply: %s: %s", rxfer_wc_name(wc.status), rxfer_error());
	}
	return wc;
}

/* The reply to request @id is there, and a good one. */
static inline void reply_is_good(struct rpc_scene *r, uint32_t id, uint64_t bytes)
{
	struct ibv_wc wc = await_reply(r);
	struct rpc_reply reply;

	if (rpc_reply_parse(received(r, &wc), wc.byte_len, &r->plan.limits, &reply))
		fail_msg("a bad reply: %s", rxfer_error());
	assert_int_equal(reply.id, id);
	assert_int_equal(reply.status, RPC_OK);
	assert_true(reply.bytes == bytes);
}

/* The server ends this session, with @part in its reason, and serves the next one. */
static inline void server_ends(struct rpc_scene *r, const char *name, const char *part)
{
	hear_why(r, name, part);
	end_session(r);
	assert_true(r->s.rc < 0);
	one_line(name, r->s.error, part);
}

#endif
