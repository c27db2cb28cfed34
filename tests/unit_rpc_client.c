/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The client in RPC mode, and a server, which is this test, that answers in another order, wrongly
 * or not at all. Where that is wrong the run fails, its row says why, nothing is left behind, and
 * the next run is a good one.
 */
#include "rpc_server_fixture.h"

/* Where a reply's fields are: see rpc_msg.c. */
#define AT_MAGIC   0, 4
#define AT_VERSION 4, 2
#define AT_STATUS  6, 2
#define AT_ID	   8, 4
#define AT_INLINE  12, 4
#define AT_BYTES   16, 8

enum run { READ, WRITE, IMM, SEND, BACK };

/* struct change - of a field: @width bytes at @at become @value. */
struct change {
	uint32_t at, width;
	uint64_t value;
};

/* struct kind - of a wrong reply: what is done to a good one, of which @longer bytes more than it
 * has are sent. */
struct kind {
	const char *name;
	enum run run;
	struct change change[2];
	int longer;
	const char *says;
};

static const struct kind kinds[] = {
	{"magic", READ, {{AT_MAGIC, 0}}, 0, "begins with 0x00000000 (it should be 0x52584641)"},
	{"a request", READ, {{AT_MAGIC, 0x52584651}}, 0, "a request came where a reply was due"},
	{"version", SEND, {{AT_VERSION, 9}}, 0, "the reply is of version 9 (ours is 1)"},
	{"status 3", READ, {{AT_STATUS, 3}}, 0, "the reply has status 3 (known are 0 to 2)"},
	{"status 65535", WRITE, {{AT_STATUS, 65535}}, 0, "the reply has status 65535"},
	{"refused",
	 READ,
	 {{AT_STATUS, 1}, {AT_BYTES, 0}},
	 0,
	 "request 0 by status 1 (it could not take it)"},
	{"failed",
	 WRITE,
	 {{AT_STATUS, 2}, {AT_BYTES, 0}},
	 0,
	 "request 0 by status 2 (it could not move the data)"},
	{"refused, by message", IMM, {{AT_STATUS, 1}, {AT_BYTES, 0}}, 0, "request 0 by status 1"},
	{"refused, yet moved", READ, {{AT_STATUS, 1}}, 0, "96 bytes moved (with status 1 it is 0)"},
	{"failed, yet data",
	 BACK,
	 {{AT_STATUS, 2}, {AT_BYTES, 0}},
	 0,
	 "96 bytes of inline data (with status 2 it is 0)"},
	{"id 2", READ, {{AT_ID, 2}}, 0, "the reply has id 2 (allowed are 0 to 1)"},
	{"id 2^32-1", WRITE, {{AT_ID, UINT32_MAX}}, 0, "the reply has id 4294967295"},
	{"95 bytes", READ, {{AT_BYTES, 95}}, 0, "95 bytes moved (with status 0 it is 96)"},
	{"0 bytes", SEND, {{AT_BYTES, 0}}, 0, "0 bytes moved (with status 0 it is 96)"},
	{"2^64-1 bytes", WRITE, {{AT_BYTES, UINT64_MAX}}, 0, "18446744073709551615 bytes moved"},
	{"data not asked for", READ, {{AT_INLINE, 1}}, 1, "1 byte of inline data (at most 0)"},
	{"a send's, back",
	 SEND,
	 {{AT_INLINE, 8}},
	 8,
	 "8 bytes of inline data (with status 0 it is 0)"},
	{"inline 2^32-1", READ, {{AT_INLINE, UINT32_MAX}}, 0, "4294967295 bytes of inline data"},
	{"data too few",
	 BACK,
	 {{AT_INLINE, 95}},
	 -1,
	 "95 bytes of inline data (with status 0 it is 96)"},
	{"data too many", BACK, {{AT_INLINE, 97}}, 1, "97 bytes of inline data (at most 96)"},
	{"data cut off",
	 BACK,
	 {{0}},
	 -1,
	 "the reply is cut off: it has 119 bytes (its header says 120)"},
	{"data missing",
	 BACK,
	 {{0}},
	 -96,
	 "the reply is cut off: it has 24 bytes (its header says 120)"},
	{"too long", READ, {{0}}, 1, "the reply is too long: it has 25 bytes (its header says 24)"},
	{"all of the buffer", WRITE, {{0}}, 40, "the reply is too long: it has 64 bytes"},
	{"more than the buffer", READ, {{0}}, 41, "RECV failed: IBV_WC_LOC_LEN_ERR"},
	{"too short", READ, {{0}}, -1, "the reply has 23 bytes (its header alone has 24)"},
	{"one byte", WRITE, {{0}}, -23, "the reply has 1 byte (its header alone has 24)"},
	{"no byte", READ, {{0}}, -24, "the reply has 0 bytes (its header alone has 24)"},
};

static void agree_on(struct rpc_scene *r, enum run run)
{
	static const enum cfg_op op[] = {OP_READ, OP_WRITE, OP_WRITE, OP_SEND, OP_WRITE};

	rpc_cfg(r, op[run]);
	r->s.cfg.iters = 2; /* both in flight at once, and no third */
	r->s.cfg.reply = run == IMM ? REPLY_IMM : REPLY_SEND;
	r->s.cfg.inline_threshold = run == BACK ? SIZE : 0;
}

/* ---- Replies that are right ---- */

/* The server's word on the run: it counted nothing. */
static void end_run(struct rpc_scene *r)
{
	const struct counts counts = {0};
	const struct found found = {0};
	json_t *body = counts_to_json(&counts);

	drop(hear(&r->s, MSG_STOP));
	found_to_json(body, &found);
	say_body(&r->s, MSG_RESULT, body);
	end_session(r);
}

/* Each is of the request whose id it says, the later one's first: each I/O has its own bytes. */
static void replies_in_another_order(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (enum run run = READ; run <= BACK; run++) {
		agree_on(&r, run);
		r.s.cfg.verify = run == BACK;
		accept_client(&r);
		take_requests(&r, 2);
		for (unsigned int i = 0; i < 2; i++) {
			if (run == IMM)
				post_as(&r, i, 0, IBV_WR_RDMA_WRITE_WITH_IMM, 1 - i);
			else
				post_bytes(&r, i, good_reply(&r, i, 1 - i));
		}
		end_run(&r);
		if (r.s.rc || r.s.result.status != RESULT_OK)
			fail_msg("the run failed: %s", r.s.result.reason);
		assert_true(r.s.result.iterations == 2);
	}
}

/* ---- Replies that are wrong ---- */

static void put(uint8_t *reply, const struct change *c)
{
	for (uint32_t i = 0; i < c->width; i++)
		reply[c->at + i] = (uint8_t)(c->value >> 8 * (c->width - 1 - i));
}

static void wrong_replies(void **state)
{
	static const enum cfg_op ops[] = {OP_READ, OP_WRITE, OP_SEND};
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct kind *k = &kinds[i];
		uint32_t bytes;

		agree_on(&r, k->run);
		accept_client(&r);
		take_requests(&r, 2);
		bytes = good_reply(&r, 0, 0);
		put(send_buffer(&r, 0), &k->change[0]);
		put(send_buffer(&r, 0), &k->change[1]);
		post_bytes(&r, 0, bytes + (uint32_t)k->longer);
		client_ends(&r, k->name, k->says);
		good_run(&r, ops[i % 3]);
	}
}

/* ---- Immediate data ---- */

static void immediate_data(void **state)
{
	static const struct {
		enum run run;
		enum ibv_wr_opcode opcode;
		uint32_t imm;
		const char *says;
	} cases[] = {
		{READ, IBV_WR_SEND_WITH_IMM, 0, "immediate data 0, which nobody asked for"},
		{WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, 1, "immediate data 1, which nobody asked for"},
		{SEND, IBV_WR_SEND_WITH_IMM, UINT32_MAX, "immediate data 4294967295, which nobody"},
		{IMM, IBV_WR_RDMA_WRITE_WITH_IMM, 2, "immediate data 2, which is no request"},
		{IMM, IBV_WR_RDMA_WRITE_WITH_IMM, UINT32_MAX,
		 "data 4294967295, which is no request"},
	};
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool write = cases[i].opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
		uint32_t bytes;

		agree_on(&r, cases[i].run);
		accept_client(&r);
		take_requests(&r, 2);
		bytes = good_reply(&r, 0, 0);
		post_as(&r, 0, write ? 0 : bytes, cases[i].opcode, cases[i].imm);
		client_ends(&r, "immediate data", cases[i].says);
		good_run(&r, OP_WRITE);
	}
}

/* ---- Replies to nothing ---- */

/* Two in one post, so that nothing comes between. */
static void post_twice(struct rpc_scene *r, uint32_t bytes, enum ibv_wr_opcode opcode)
{
	post_as(r, 0, bytes, opcode, 0);
	post_as(r, 0, bytes, opcode, 0);
}

static void a_second_reply(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (enum run run = READ; run <= BACK; run++) {
		agree_on(&r, run);
		accept_client(&r);
		take_requests(&r, 2);
		if (run == IMM)
			post_twice(&r, 0, IBV_WR_RDMA_WRITE_WITH_IMM);
		else
			post_twice(&r, good_reply(&r, 0, 0), IBV_WR_SEND);
		client_ends(&r, "twice", "a reply for request 0, which is not waiting for that");
	}
	good_run(&r, OP_READ);
}

static void a_reply_to_nothing(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (enum run run = READ; run <= BACK; run++) {
		agree_on(&r, run);
		r.s.cfg.iters = 1;
		accept_client(&r);
		take_requests(&r, 1);
		if (run == IMM)
			post_as(&r, 0, 0, IBV_WR_RDMA_WRITE_WITH_IMM, 1);
		else
			post_bytes(&r, 0, good_reply(&r, 0, 1));
		client_ends(&r, "nothing", "a reply for request 1, which is not waiting for that");
	}
	good_run(&r, OP_WRITE);
}

/* ---- Bytes that are wrong ---- */

static void wrong_bytes(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (int i = 0; i < 3; i++) {
		bool back = i < 2;
		uint32_t bytes;

		agree_on(&r, back ? BACK : WRITE);
		r.s.cfg.verify = true;
		accept_client(&r);
		take_requests(&r, 2);
		post_bytes(&r, 0, good_reply(&r, 0, 0));
		bytes = good_reply(&r, 1, 1);
		send_buffer(&r, 1)[RPC_REPLY_BYTES + (i ? 0 : SIZE - 1)] ^= 1;
		if (back)
			post_bytes(&r, 1, bytes);
		client_ends(&r, "bytes",
			    i == 0   ? "verification failed: QP 0, I/O 1, byte 95 of 96 is wrong"
			    : i == 1 ? "verification failed: QP 0, I/O 1, byte 0 of 96 is wrong"
				     : "verification failed: QP 0, I/O 0, byte 0 of 96 is wrong");
	}
	good_run(&r, OP_WRITE);
}

/* ---- A server that does something else ---- */

/* Signs of life, or not. */
static void silence(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (int alive = 0; alive < 2; alive++) {
		agree_on(&r, READ);
		r.s.cfg.timeout_ns = 300 * MS;
		accept_client(&r);
		take_requests(&r, 2);
		for (int i = 0; alive && i < 5; i++) {
			say(&r.s, MSG_ALIVE, "{}");
			usleep(30000);
		}
		client_ends(&r, "silence",
			    alive ? "no I/O completed for 0.3 s, though" : "for 0.3 s: ");
	}
	good_run(&r, OP_READ);
}

/* By a broken connection, in silence, or with a word of why. */
static void it_closes_the_connection(void **state)
{
	static const char *const says[] = {"failed: IBV_WC_WR_FLUSH_ERR",
					   "for 0.3 s: ", "the client side: out of patience"};
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (int how = 0; how < 3; how++) {
		agree_on(&r, how ? WRITE : READ);
		r.s.cfg.timeout_ns = 300 * MS;
		accept_client(&r);
		take_requests(&r, 2);
		post_bytes(&r, 0, good_reply(&r, 0, 0));
		await_wc(&r, false);
		if (!how)
			fake_disconnect(r.s.conn->qp);
		rxfer_conn_close(r.s.conn);
		r.s.conn = NULL;
		if (how == 2)
			say(&r.s, MSG_FAIL, "{\"reason\":\"out of patience\"}");
		else
			hear_why(&r, "closed", says[how]);
		end_session(&r);
		assert_true(r.s.rc < 0);
		assert_int_equal(r.s.result.status, RESULT_FAILED);
		one_line("closed", r.s.result.reason, says[how]);
	}
	good_run(&r, OP_READ);
}

/* The control connection goes, or what it says is not what is due. */
static void it_leaves(void **state)
{
	static const struct {
		enum message type;
		const char *body, *says;
	} cases[] = {
		{MSG_FAIL, "{\"reason\":\"gone fishing\"}", "gone fishing"},
		{MSG_RESULT, "{}", "message 8 when none such was due"},
		{MSG_STARTED, "{}", "message 6 when none such was due"},
	};
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (size_t i = 0; i < 4; i++) {
		agree_on(&r, SEND);
		accept_client(&r);
		take_requests(&r, 2);
		if (i < 3)
			say(&r.s, cases[i].type, cases[i].body);
		if (i == 1 || i == 2)
			hear_why(&r, "leaves", cases[i].says);
		end_session(&r);
		assert_true(r.s.rc < 0);
		assert_int_equal(r.s.result.status, RESULT_FAILED);
		if (i < 3)
			one_line("leaves", r.s.result.reason, cases[i].says);
	}
	good_run(&r, OP_SEND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replies_in_another_order),
		cmocka_unit_test(wrong_replies),
		cmocka_unit_test(immediate_data),
		cmocka_unit_test(a_second_reply),
		cmocka_unit_test(a_reply_to_nothing),
		cmocka_unit_test(wrong_bytes),
		cmocka_unit_test(silence),
		cmocka_unit_test(it_closes_the_connection),
		cmocka_unit_test(it_leaves),
	};

	return cmocka_run_group_tests_name("unit_rpc_client", tests, NULL, NULL);
}
