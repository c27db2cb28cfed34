/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The server in RPC mode, and a client whose requests are well formed and still ask for too much.
 * Its session ends with the reason, what it did not grant is neither read nor written, and the next
 * client is served.
 */
#include "rpc_client_fixture.h"

#define PART (SIZE / FRAGS)

/* ---- Memory that was not granted ---- */

/* struct beyond - @at in the test's memory is where segment @seg lies; 0: where it is good. */
struct beyond {
	const char *name;
	enum cfg_op op;
	uint32_t seg, at, key, rights;
};

#define READABLE IBV_ACCESS_REMOTE_READ
#define WRITABLE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define BOTH	 (READABLE | WRITABLE)

static const struct beyond beyond[] = {
	{"key 0", OP_READ, 0, 0, 0, BOTH},
	{"key 0", OP_WRITE, 0, 0, 0, BOTH},
	{"a key of nobody's", OP_READ, 2, 0, 0xdeadbeef, BOTH},
	{"a key of nobody's", OP_WRITE, 1, 0, 0xdeadbeef, BOTH},
	{"a byte before", OP_READ, 0, GRANTED - 1, 1, BOTH},
	{"a byte before", OP_WRITE, 0, GRANTED - 1, 1, BOTH},
	{"a byte behind", OP_READ, 2, GRANTED + PAGE - PART + 1, 1, BOTH},
	{"a byte behind", OP_WRITE, 2, GRANTED + PAGE - PART + 1, 1, BOTH},
	{"all before", OP_WRITE, 1, GRANTED - PART, 1, BOTH},
	{"all behind", OP_WRITE, 1, GRANTED + PAGE, 1, BOTH},
	{"it may only write", OP_READ, 0, 0, 1, WRITABLE},
	{"it may only read", OP_WRITE, 0, 0, 1, READABLE},
};

static void one_beyond(struct rpc_scene *r, const struct beyond *b)
{
	struct rxfer_seg segs[FRAGS];

	rpc_cfg(r, b->op);
	r->rights = b->rights;
	connect_to_server(r);
	for (uint32_t i = 0; i < FRAGS; i++)
		segs[i] = good_seg(r, i, PART);
	if (b->at)
		segs[b->seg].addr = (uintptr_t)r->mem + b->at;
	if (b->key != 1)
		segs[b->seg].key = b->key;
	post_bytes(r, 0, write_request(r, 0, 0, segs, FRAGS, SIZE));
	hear_why(r, b->name, b->op == OP_READ ? "RDMA READ failed" : "RDMA WRITE failed");
	memory_is_untouched(r, b->op == OP_READ);
	end_session(r);
	assert_true(r->s.rc < 0);
	one_line(b->name, r->s.error, "the peer's memory is not open to us there: key or bounds");
}

static void memory_that_was_not_granted(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		one_beyond(&r, &beyond[i]);
		good_run(&r, beyond[i].op);
	}
}

/* The last byte of it is granted, and the first. */
static void memory_to_the_last_byte(void **state)
{
	static const enum cfg_op ops[] = {OP_READ, OP_WRITE};
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (int i = 0; i < 2; i++) {
		struct rxfer_seg segs[2];

		rpc_cfg(&r, ops[i]);
		connect_to_server(&r);
		segs[0] = good_seg(&r, 0, SIZE - 1);
		segs[1] = good_seg(&r, 0, 1);
		segs[0].addr = (uintptr_t)r.mem + GRANTED + PAGE - SIZE + 1;
		segs[1].addr = (uintptr_t)r.mem + GRANTED;
		post_bytes(&r, 0, write_request(&r, 0, 1, segs, 2, SIZE));
		reply_is_good(&r, 1, SIZE);
		memory_is_untouched(&r, ops[i] == OP_READ);
		end_session(&r);
	}
}

/* ---- Where segments are cut ---- */

/* One WR for each piece. */
static void no_lists(struct rpc_scene *r, enum cfg_op op, uint64_t peer_sq_depth, bool imm)
{
	rpc_cfg(r, op);
	r->s.cfg.max_sge = 1;
	r->s.cfg.peer_sq_depth = peer_sq_depth;
	r->s.cfg.reply = imm ? REPLY_IMM : REPLY_SEND;
	connect_to_server(r);
}

/* As many segments as agreed, but they end inside the server's fragments. */
static void too_many_work_requests(void **state)
{
	struct rxfer_seg segs[FRAGS];
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (int i = 0; i < 6; i++) {
		no_lists(&r, i % 2 ? OP_WRITE : OP_READ, i / 2 == 1 ? 4 : 0, i == 5);
		segs[0] = good_seg(&r, 0, PART - 1);
		segs[1] = good_seg(&r, 1, PART + 2);
		segs[2] = good_seg(&r, 2, PART - 1);
		post_bytes(&r, 0, write_request(&r, 0, 1, segs, FRAGS, SIZE));
		hear_why(
			&r, "cut",
			"the segments of request 1 lie so that its data take 5 WRs (agreed were 3)");
		memory_is_untouched(&r, true);
		end_session(&r);
	}
	good_run(&r, OP_WRITE);
}

/* Another cut that takes no more WRs is no crime, in rounds or not. */
static void another_cut(void **state)
{
	struct rxfer_seg segs[FRAGS];
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (int i = 0; i < 4; i++) {
		no_lists(&r, i % 2 ? OP_WRITE : OP_READ, i < 2 ? 3 : 0, false);
		segs[0] = good_seg(&r, 0, 2 * PART);
		segs[1] = good_seg(&r, 2, PART);
		post_bytes(&r, 0, write_request(&r, 0, 1, segs, 2, SIZE));
		reply_is_good(&r, 1, SIZE);
		end_session(&r);
	}
}

/*
 * An I/O of fewer bytes than agreed is served: they are what is moved, whether the queue holds all
 * of its WRs at once or not.
 */
static void fewer_bytes(void **state)
{
	static const uint32_t lengths[] = {1, PART - 1, PART, PART + 1, 2 * PART, SIZE - 1};
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (uint32_t i = 0; i < 6 * 6; i++) {
		uint32_t length = lengths[i / 6];
		bool write = i % 2, imm = i % 6 == 5, rounds = i % 6 >= 2;
		struct fake_stats before;
		struct rxfer_seg seg;

		no_lists(&r, write ? OP_WRITE : OP_READ, rounds ? 3 : 0, imm);
		before = *fake_stats();
		seg = good_seg(&r, 0, length);
		for (int k = 0; k < 3; k++) {
			post_bytes(&r, 0, write_request(&r, 0, 1, &seg, 1, length));
			if (imm)
				assert_int_equal(ntohl(await_reply(&r).imm_data), 1);
			else
				reply_is_good(&r, 1, length);
		}
		assert_int_equal(fake_stats()->bytes_written - before.bytes_written,
				 write ? 3 * length : 0);
		assert_int_equal(fake_stats()->bytes_read - before.bytes_read,
				 write ? 0 : 3 * length);
		assert_memory_equal(r.mem, r.were, SEG_AT(0));
		assert_memory_equal(r.mem + SEG_AT(0) + length, r.were + SEG_AT(0) + length,
				    MESSAGES - SEG_AT(0) - length);
		end_session(&r);
	}
	good_run(&r, OP_READ);
}

/* ---- Too many at once ---- */

/* READs are not answered as long as this takes. */
static void slow_reads(struct rpc_scene *r)
{
	open_rpc_scene(r);
	fake_live()->read_lag = 200000;
}

static void an_id_in_flight_twice(void **state)
{
	struct rpc_scene r;

	(void)state;
	slow_reads(&r);
	connect_to_server(&r);
	good_request(&r, 0, 1);
	post_bytes(&r, 0, good_request(&r, 1, 1));
	post_bytes(&r, 1, good_request(&r, 1, 1));
	server_ends(&r, "twice", "request 1 is in flight already (one of each id at a time)");
	fake_live()->read_lag = 0;
	good_run(&r, OP_READ);
}

/* All ids are in flight, each as it should be; whatever id the next one has, it is one too many. */
static void a_request_too_many(void **state)
{
	struct rpc_scene r;

	(void)state;
	slow_reads(&r);
	for (uint32_t id = 0; id < 2; id++) {
		rpc_cfg(&r, OP_READ);
		connect_to_server(&r);
		for (unsigned int i = 0; i < 3; i++)
			post_bytes(&r, i, good_request(&r, i, i < 2 ? i : id));
		server_ends(&r, "too many",
			    id ? "request 1 is in flight" : "request 0 is in flight");
	}
	fake_live()->read_lag = 0;
	good_run(&r, OP_WRITE);
}

/* The server is kept from looking: its RECVs run dry, and that is the client's bad luck. */
static void more_requests_than_recvs(void **state)
{
	static const char *const says[] = {"the client is sorry", "peer"};
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (int tells = 0; tells < 2; tells++) {
		rpc_cfg(&r, OP_SEND);
		connect_to_server(&r);
		r.hold = 1;
		while (!r.its_held)
			usleep(1000);
		for (unsigned int i = 0; i < 3; i++)
			post_bytes(&r, i, good_request(&r, i, i % 2));
		fake_run();
		assert_int_equal(await_wc(&r, false).status, IBV_WC_SUCCESS);
		assert_int_equal(await_wc(&r, false).status, IBV_WC_SUCCESS);
		assert_int_equal(await_wc(&r, false).status, IBV_WC_RNR_RETRY_EXC_ERR);
		if (!tells)
			say(&r.s, MSG_FAIL, "{\"reason\":\"the client is sorry\"}");
		r.hold = 0;
		if (tells)
			hear_why(&r, "RECVs", "peer");
		end_session(&r);
		assert_true(r.s.rc < 0);
		one_line("RECVs", r.s.error, says[tells]);
		good_run(&r, OP_SEND);
	}
}

/* It asks, and has no RECV for the answer. */
static void no_recv_for_the_reply(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (int imm = 0; imm < 2; imm++) {
		rpc_cfg(&r, imm ? OP_WRITE : OP_READ);
		r.s.cfg.reply = imm ? REPLY_IMM : REPLY_SEND;
		connect_to_server(&r);
		for (unsigned int i = 0; i < MAX_RECVS; i++) {
			post_bytes(&r, 0, good_request(&r, 0, 0));
			await_reply(&r);
		}
		post_bytes(&r, 0, good_request(&r, 0, 0));
		server_ends(&r, "no RECV", "failed: IBV_WC_RNR_RETRY_EXC_ERR");
		good_run(&r, OP_READ);
	}
}

/* ---- What is no request ---- */

static void immediate_data(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND_WITH_IMM,
						     IBV_WR_RDMA_WRITE_WITH_IMM};
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (int i = 0; i < 4; i++) {
		bool write = i % 2;
		uint32_t bytes;

		rpc_cfg(&r, i < 2 ? OP_READ : OP_WRITE);
		r.s.cfg.reply = i < 2 ? REPLY_SEND : REPLY_IMM;
		connect_to_server(&r);
		bytes = good_request(&r, 0, 0);
		post_as(&r, 0, write ? 0 : bytes, opcodes[write], 17);
		hear_why(&r, "immediate data", "immediate data 17");
		memory_is_untouched(&r, true);
		end_session(&r);
		assert_true(r.s.rc < 0);
		good_run(&r, OP_READ);
	}
}

/* Nothing of the server's is open to its client. */
static void it_reaches_for_our_memory(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
						     IBV_WR_RDMA_WRITE_WITH_IMM};
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (size_t i = 0; i < 3; i++) {
		connect_to_server(&r);
		good_request(&r, 0, 0);
		post_as(&r, 0, 1, opcodes[i], 0);
		server_ends(&r, "RDMA", "failed: IBV_WC_WR_FLUSH_ERR");
	}
	good_run(&r, OP_WRITE);
}

/* It goes away, with requests in flight. */
static void a_client_that_leaves(void **state)
{
	struct rpc_scene r;

	(void)state;
	slow_reads(&r);
	for (int politely = 0; politely < 2; politely++) {
		rpc_cfg(&r, OP_READ);
		connect_to_server(&r);
		post_bytes(&r, 0, good_request(&r, 0, 0));
		post_bytes(&r, 1, good_request(&r, 1, 1));
		usleep(2000);
		if (politely)
			fake_disconnect(r.s.conn->qp);
		end_session(&r);
		assert_true(r.s.rc < 0);
	}
	fake_live()->read_lag = 0;
	good_run(&r, OP_READ);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_that_was_not_granted),
		cmocka_unit_test(memory_to_the_last_byte),
		cmocka_unit_test(too_many_work_requests),
		cmocka_unit_test(another_cut),
		cmocka_unit_test(fewer_bytes),
		cmocka_unit_test(an_id_in_flight_twice),
		cmocka_unit_test(a_request_too_many),
		cmocka_unit_test(more_requests_than_recvs),
		cmocka_unit_test(no_recv_for_the_reply),
		cmocka_unit_test(immediate_data),
		cmocka_unit_test(it_reaches_for_our_memory),
		cmocka_unit_test(a_client_that_leaves),
	};

	return cmocka_run_group_tests_name("unit_rpc_hostile", tests, NULL, NULL);
}
