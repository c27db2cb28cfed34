/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of a client in RPC mode share: this test is the server. */
#ifndef RXFER_TESTS_RPC_SERVER_FIXTURE_H
#define RXFER_TESTS_RPC_SERVER_FIXTURE_H

#include "rpc_fixture.h"
#include "pattern.h"

static inline void accept_client(struct rpc_scene *r)
{
	struct scene *s = &r->s;
	struct ready ready = {0};
	struct rxfer_conn_attr attr;
	struct rxfer_wait wait;
	struct cfg theirs;
	json_t *body;

	begin_session(r);
	meet(s, run_rpc, false);
	body = hear(s, MSG_CONFIG);
	assert_int_equal(config_from_json(body, &theirs, s->token), 0);
	json_decref(body);
	layout_make(&s->cfg, &s->layout);
	assert_int_equal(rxfer_dev_open("fake0", "global", &s->dev), 0);
	make_memory(r);
	assert_int_equal(rxfer_listen(s->dev, &s->listener), 0);
	rxfer_listener_addr(s->listener, &ready.addr);
	say_body(s, MSG_READY, ready_to_json(&ready));
	wait = soon();
	attr = rpc_attr(r, (struct roles){.receives = true});
	assert_int_equal(rxfer_accept(s->listener, &attr, &wait, &s->conn), 0);
	post_recvs(r, MAX_RECVS);
	say(s, MSG_CONNECTED, "{}");
}

/* What the requests said: by their ids. */
static struct rxfer_seg asked[MAX_SENDS][FRAGS];

/* The client issues what it has to; @n requests are there. */
static inline void take_requests(struct rpc_scene *r, unsigned int n)
{
	for (int phase = 0; phase < 2; phase++) {
		drop(hear(&r->s, MSG_START));
		say(&r->s, MSG_STARTED, "{}");
	}
	for (unsigned int i = 0; i < n; i++) {
		struct rpc_request q = {.segs = asked[i]};
		struct ibv_wc wc = await_wc(r, true);

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (rpc_request_parse(received(r, &wc), wc.byte_len, &r->plan.limits, &q))
			fail_msg("a bad request: %s", rxfer_error());
		assert_int_equal(q.id, i);
	}
}

/* Into the @i-th buffer; its length. */
static inline uint32_t good_reply(struct rpc_scene *r, unsigned int i, uint32_t id)
{
	const struct rpc_reply a = {
		.id = id,
		.status = RPC_OK,
		.bytes = r->s.cfg.size,
		.inline_len = r->plan.brings ? SIZE : 0,
	};
	uint32_t bytes = rpc_reply_write(send_buffer(r, i), &a);

	if (r->plan.brings)
		pattern_fill(send_buffer(r, i) + bytes, SIZE, (uint64_t)id * SIZE, 0);
	return bytes + a.inline_len;
}

/* The client gives up, with @says in its reason; its row says so, too. */
static inline void client_ends(struct rpc_scene *r, const char *name, const char *says)
{
	hear_why(r, name, says);
	end_session(r);
	assert_true(r->s.rc < 0);
	one_line(name, r->s.error, says);
	one_line(name, r->s.result.reason, says);
	assert_int_equal(r->s.result.status, RESULT_FAILED);
}

#endif
