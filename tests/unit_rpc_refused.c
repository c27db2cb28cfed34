/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RPC mode, both of the program's ends: what cannot be is refused before the first I/O, by the end
 * that it is about, with the numbers and the option that it takes; and the client's row says it.
 */
#include "rpc_fixture.h"

/* The run fails: at the server, where @server. */
static void refused(struct rpc_scene *r, bool server, const char *says)
{
	const char *reason = r->s.result.reason;
	uint64_t before = fake_stats()->sqes;

	if (run_both(r) == 0)
		fail_msg("it ran, instead of: %s", says);
	one_line("row", reason, says);
	assert_int_equal(r->s.result.status, RESULT_FAILED);
	assert_int_equal(!strncmp(reason, "the server side: ", 17), server);
	assert_true(r->s.rc < 0);
	one_line("server", r->s.error, says);
	assert_true(fake_stats()->sqes == before);
}

static void limit(uint32_t max_msg_size, uint32_t max_qp_wr, uint32_t max_sge)
{
	struct fake_device *device = &fake_live()->device[0];

	device->max_msg_size = max_msg_size ? max_msg_size : device->max_msg_size;
	device->max_qp_wr = max_qp_wr ? max_qp_wr : device->max_qp_wr;
	device->max_sge = device->max_sge_rd = max_sge ? max_sge : device->max_sge;
}

/* A WRITE or a READ, the reply and the drain: 3 are enough for any number of fragments. */
static void the_servers_queue(void **state)
{
	static const enum cfg_op ops[] = {OP_WRITE, OP_READ};
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (int i = 0; i < 2; i++) {
		for (uint64_t depth = 1; depth < 3; depth++) {
			rpc_cfg(&r, ops[i]);
			r.s.cfg.peer_sq_depth = depth;
			refused(&r, true,
				depth == 1 ? "a send queue of 1 entry cannot hold one I/O: it "
					     "takes 2, and one for the drain: use --peer-sq-depth 3"
					   : "a send queue of 2 entries cannot hold one I/O: it "
					     "takes 2, and one for the drain: use --peer-sq-depth "
					     "3");
		}
		rpc_cfg(&r, ops[i]);
		r.s.cfg.peer_sq_depth = 3;
		r.s.cfg.verify = true;
		assert_int_equal(run_both(&r), 0);
	}
	rpc_cfg(&r, OP_SEND);
	r.s.cfg.peer_sq_depth = 1;
	refused(&r, true, "it takes 1, and one for the drain: use --peer-sq-depth 2");
	good_run(&r, OP_WRITE);
}

/* With immediate data the last WRITE is the reply, and a round is one WRITE before it. */
static void the_servers_queue_without_replies(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (uint64_t depth = 1; depth < 4; depth++) {
		rpc_cfg(&r, OP_WRITE);
		r.s.cfg.reply = REPLY_IMM;
		r.s.cfg.max_sge = 1;
		r.s.cfg.peer_sq_depth = depth;
		r.s.cfg.verify = true;
		if (depth < 3)
			refused(&r, true, "use --peer-sq-depth 3");
		else
			assert_int_equal(run_both(&r), 0);
	}
	for (uint64_t depth = 1; depth < 3; depth++) { /* there are no rounds */
		rpc_cfg(&r, OP_WRITE);
		r.s.cfg.reply = REPLY_IMM;
		r.s.cfg.frags = 1;
		r.s.cfg.peer_sq_depth = depth;
		if (depth < 2)
			refused(&r, true, "use --peer-sq-depth 2");
		else
			assert_int_equal(run_both(&r), 0);
	}
	good_run(&r, OP_WRITE);
}

static void the_clients_queue(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (enum cfg_op op = OP_READ; op <= OP_SEND; op++) {
		if (op == OP_WRITE_IMM)
			continue;
		rpc_cfg(&r, op);
		r.s.cfg.sq_depth = 1;
		refused(&r, false,
			"a send queue of 1 entry cannot hold one I/O: it takes 1, and one for "
			"the drain: use --sq-depth 2 or more");
		rpc_cfg(&r, op);
		r.s.cfg.sq_depth = 2;
		r.s.cfg.verify = true;
		assert_int_equal(run_both(&r), 0);
	}
}

/* Between options, and where it is the device that takes no more. */
static void signals_too_rarely(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	rpc_cfg(&r, OP_READ);
	r.s.cfg.peer_sq_depth = 8;
	snprintf(r.s.cfg.peer_signal, sizeof(r.s.cfg.peer_signal), "every:9");
	refused(&r, true, "contradiction: --peer-signal every:9, --peer-sq-depth 8: K is larger");
	snprintf(r.s.cfg.peer_signal, sizeof(r.s.cfg.peer_signal), "every:8");
	assert_int_equal(run_both(&r), 0);

	limit(0, 16, 0);
	rpc_cfg(&r, OP_WRITE);
	snprintf(r.s.cfg.peer_signal, sizeof(r.s.cfg.peer_signal), "every:17");
	refused(&r, true,
		"--peer-signal every:17 asks for a completion every 17 entries, but the send "
		"queue has 16, the most that the device takes");
	rpc_cfg(&r, OP_WRITE);
	snprintf(r.s.cfg.signal, sizeof(r.s.cfg.signal), "every:17");
	refused(&r, false,
		"--signal every:17 asks for a completion every 17 entries, but the send queue "
		"has 16, the most that the device takes");
	good_run(&r, OP_WRITE);
}

/* A request is one message, with its data or all its segments; so is a reply. What the server READs
 * or WRITEs is not: it takes as many WRs as it must. */
static void more_than_a_message(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	limit(4096, 0, 0);
	for (int i = 0; i < 2; i++) {
		rpc_cfg(&r, i ? OP_WRITE : OP_READ);
		for (r.s.cfg.size = 4096; r.s.cfg.size <= 12289; r.s.cfg.size += 8193)
			assert_int_equal(run_both(&r), 0);
	}
	rpc_cfg(&r, OP_SEND);
	r.s.cfg.size = 4096 - 31;
	refused(&r, false,
		"a request of 4097 bytes is more than one message on fake0 can carry (max_msg_sz 4096)");
	r.s.cfg.size = 4096 - 32;
	assert_int_equal(run_both(&r), 0);

	rpc_cfg(&r, OP_WRITE);
	r.s.cfg.inline_threshold = r.s.cfg.size = 4096 - 23;
	refused(&r, false,
		"a reply of 4097 bytes is more than one message on fake0 can carry (max_msg_sz 4096)");
	r.s.cfg.inline_threshold = r.s.cfg.size = 4096 - 24;
	assert_int_equal(run_both(&r), 0);

	rpc_cfg(&r, OP_READ);
	r.s.cfg.size = 4096;
	r.s.cfg.frags = 255;
	refused(&r, false,
		"a request of 4112 bytes is more than one message on fake0 can carry (max_msg_sz 4096)");
	r.s.cfg.frags = 254;
	assert_int_equal(run_both(&r), 0);
	good_run(&r, OP_READ);
}

/* Fragments beyond the SGEs of a WR become more WRs, or are copied. */
static void more_fragments_than_sges(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	limit(0, 0, 2);
	for (enum cfg_op op = OP_READ; op <= OP_SEND; op++) {
		for (int shallow = 0; op != OP_WRITE_IMM && shallow < 2; shallow++) {
			rpc_cfg(&r, op);
			r.s.cfg.frags = 9;
			r.s.cfg.size = 9 * 100;
			r.s.cfg.verify = true;
			r.s.cfg.peer_sq_depth = shallow ? 3 : 0;
			if (run_both(&r))
				fail_msg("it is refused: %s", r.s.result.reason);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_servers_queue),
		cmocka_unit_test(the_servers_queue_without_replies),
		cmocka_unit_test(the_clients_queue),
		cmocka_unit_test(signals_too_rarely),
		cmocka_unit_test(more_than_a_message),
		cmocka_unit_test(more_fragments_than_sges),
	};

	return cmocka_run_group_tests_name("unit_rpc_refused", tests, NULL, NULL);
}
