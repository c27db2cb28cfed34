/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The double between two ends: messages and RECVs, READs in flight, order, and ends that go away.
 */
#include <errno.h>
#include <string.h>
#include "fakehca/ends.h"

#define SIGNAL IBV_SEND_SIGNALED

static int send_one(struct ends *e, uint64_t wr_id, uint32_t len)
{
	return end_post(&e->a, NULL, IBV_WR_SEND, wr_id, SIGNAL, 0, len);
}

static int read_one(struct ends *e, uint64_t wr_id, uint32_t len)
{
	return end_post(&e->a, &e->b, IBV_WR_RDMA_READ, wr_id, SIGNAL, 0, len);
}

static void open_with(struct ends *e, struct fake_config *config, uint8_t rd_atomic,
		      uint8_t rnr_retry)
{
	struct ends_attr attr = ends_defaults();

	attr.rd_atomic = rd_atomic;
	attr.rnr_retry = rnr_retry;
	ends_open(e, config, &attr);
}

/* ---- Messages ---- */

static void a_message_fills_a_recv(void **state)
{
	struct ibv_wc wc;
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	memset(e.a.buf, 5, 3000);
	end_recv(&e.b, 9, 0, 4096);
	assert_int_equal(send_one(&e, 1, 3000), 0);
	fake_run();
	wc = end_expect(&e.b, 9, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 3000);
	assert_int_equal(wc.wc_flags, 0);
	assert_int_equal(e.b.buf[2999], 5);
	assert_int_equal(e.b.buf[3000], 0);
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	ends_close(&e, 0);
}

static void a_message_too_long_for_its_recv(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	end_recv(&e.b, 9, 0, 2999);
	end_recv(&e.b, 10, 0, 2999);
	send_one(&e, 1, 3000);
	fake_run();
	end_expect(&e.b, 9, IBV_WC_LOC_LEN_ERR);
	end_expect(&e.b, 10, IBV_WC_WR_FLUSH_ERR);
	end_expect(&e.a, 1, IBV_WC_REM_INV_REQ_ERR);
	ends_close(&e, 0);
}

static void a_recv_longer_than_any_message(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	config.device[0].max_msg_size = 2048;
	ends_open(&e, &config, NULL);
	end_recv(&e.b, 1, 0, 2048);
	assert_int_equal(fake_violations(), 0);
	end_recv(&e.b, 2, 0, 2049);
	ends_violated("has length 2049, max_msg_sz 2048");
	ends_close(&e, 1);
}

static void no_recv_and_no_patience(void **state)
{
	struct ends e;

	(void)state;
	open_with(&e, NULL, 4, 0);
	send_one(&e, 1, 64);
	fake_run();
	end_expect(&e.a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(e.b.qp->state, IBV_QPS_RTS);
	ends_close(&e, 0);
}

static void no_recv_and_some_patience(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	config.rnr_delay = 10;
	open_with(&e, &config, 4, 2);
	send_one(&e, 1, 64);
	for (int i = 0; i < 13; i++)
		assert_true(fake_step());
	end_expect_nothing(&e.a);
	end_recv(&e.b, 9, 0, 64); /* in time for the second retry */
	fake_run();
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(fake_stats()->rnr_waits, 2);
	send_one(&e, 2, 64); /* its patience begins anew */
	fake_run();
	end_expect(&e.a, 2, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(fake_stats()->rnr_waits, 4);
	ends_close(&e, 0);
}

static void no_recv_and_endless_patience(void **state)
{
	struct ends e;

	(void)state;
	open_with(&e, NULL, 4, 7);
	send_one(&e, 1, 64);
	fake_run(); /* ends: it waits for us, not for time */
	end_expect_nothing(&e.a);
	end_recv(&e.b, 9, 0, 64);
	fake_run();
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	end_expect(&e.b, 9, IBV_WC_SUCCESS);
	ends_close(&e, 0);
}

static void immediate_data(void **state)
{
	struct ibv_wc wc;
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	end_recv(&e.b, 9, 4096, 64);
	end_recv(&e.b, 10, 4096, 64);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE_WITH_IMM, 1, SIGNAL, 0, 2000);
	end_post(&e.a, NULL, IBV_WR_SEND_WITH_IMM, 2, SIGNAL, 0, 64);
	fake_run();
	wc = end_expect(&e.b, 9, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, 0x01020304);
	assert_int_equal(wc.byte_len, 2000);
	wc = end_expect(&e.b, 10, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.imm_data, 0x01020304);
	assert_int_equal(end_expect(&e.a, 1, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_WRITE);
	assert_int_equal(end_expect(&e.a, 2, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
	ends_close(&e, 0);
}

static void immediate_data_needs_a_recv(void **state)
{
	struct ends e;

	(void)state;
	open_with(&e, NULL, 4, 0);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE_WITH_IMM, 1, SIGNAL, 0, 2000);
	fake_run();
	end_expect(&e.a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	ends_close(&e, 0);
}

static void iwarp_has_no_immediate_data(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	config.device[0].iwarp = true;
	open_with(&e, &config, 4, 0);
	assert_int_equal(end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE_WITH_IMM, 1, SIGNAL, 0, 8), EINVAL);
	assert_int_equal(end_post(&e.a, NULL, IBV_WR_SEND_WITH_IMM, 1, SIGNAL, 0, 8), EINVAL);
	ends_refused("iWARP");
	ends_close(&e, 0);
}

static void on_iwarp_the_connecting_side_speaks_first(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	config.device[0].iwarp = true;
	open_with(&e, &config, 4, 0);
	end_post(&e.b, &e.a, IBV_WR_RDMA_WRITE, 2, SIGNAL, 64, 64);
	fake_run();
	end_expect_nothing(&e.b);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 1, SIGNAL, 0, 64);
	fake_run();
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	end_expect(&e.b, 2, IBV_WC_SUCCESS);
	ends_close(&e, 0);
}

/* A reply says nothing of the SEND that it answers: its completion may well be the later one. */
static void a_reply_may_overtake_the_completion(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	config.sq_delay = 20;
	open_with(&e, &config, 4, 0);
	end_recv(&e.b, 9, 0, 64);
	end_recv(&e.a, 8, 4096, 64);
	send_one(&e, 1, 64);
	fake_step();
	end_expect(&e.b, 9, IBV_WC_SUCCESS);
	end_post(&e.b, NULL, IBV_WR_SEND, 2, SIGNAL, 64, 64);
	fake_step();
	end_expect(&e.a, 8, IBV_WC_SUCCESS);
	end_expect_nothing(&e.a);
	fake_run();
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	ends_close(&e, 0);
}

static void a_message_may_arrive_late(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	config.rq_delay = 5;
	open_with(&e, &config, 4, 0);
	end_recv(&e.b, 9, 0, 64);
	send_one(&e, 1, 64);
	fake_step();
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	end_expect_nothing(&e.b);
	fake_run();
	end_expect(&e.b, 9, IBV_WC_SUCCESS);
	ends_close(&e, 0);
}

/* ---- READs in flight ---- */

static void without_rd_atomic_a_read_hangs(void **state)
{
	struct ends e;

	(void)state;
	open_with(&e, NULL, 0, 0);
	read_one(&e, 1, 64);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 2, SIGNAL, 64, 64);
	fake_run();
	end_expect_nothing(&e.a); /* and whatever is behind it */
	ends_close(&e, 0);
}

/* Each end may send what the other is ready to answer. */
static void rd_atomic_is_agreed_upon(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ends e;

	(void)state;
	open_with(&e, NULL, 3, 6);
	assert_int_equal(ibv_query_qp(e.a.qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC, &init), 0);
	assert_int_equal(attr.max_rd_atomic, 3);
	assert_int_equal(attr.max_dest_rd_atomic, 3);
	assert_int_equal(attr.rnr_retry, 6);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	ends_close(&e, 0);
}

/* Two under way, the third and the WRITE behind it wait for the first to be answered. */
static void more_reads_than_agreed_wait(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	config.read_lag = 100;
	open_with(&e, &config, 2, 0);
	for (uint64_t i = 1; i <= 3; i++)
		read_one(&e, i, 64);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 4, SIGNAL, 64, 64);
	e.a.buf[64] = 1;
	for (int i = 0; i < 90; i++)
		assert_true(fake_step());
	assert_int_equal(e.b.buf[64], 0);
	fake_run();
	assert_int_equal(e.b.buf[64], 1);
	for (uint64_t i = 1; i <= 4; i++)
		end_expect(&e.a, i, IBV_WC_SUCCESS);
	ends_close(&e, 0);
}

static void overtaken_read(struct ends *e, unsigned int flags)
{
	struct fake_config config = ends_config();

	config.read_lag = 50;
	open_with(e, &config, 2, 0);
	read_one(e, 1, 64);
	end_post(&e->a, &e->b, IBV_WR_RDMA_WRITE, 2, SIGNAL | flags, 64, 64);
	e->a.buf[64] = 1;
	for (int i = 0; i < 10; i++)
		fake_step();
}

/* A WR behind a READ overtakes its answer, but not its completion. */
static void a_read_is_overtaken(void **state)
{
	struct ends e;

	(void)state;
	overtaken_read(&e, 0);
	assert_int_equal(e.b.buf[64], 1);
	end_expect_nothing(&e.a);
	fake_run();
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	end_expect(&e.a, 2, IBV_WC_SUCCESS);
	ends_close(&e, 0);
}

static void a_fence_waits_for_reads(void **state)
{
	struct ends e;

	(void)state;
	overtaken_read(&e, IBV_SEND_FENCE);
	assert_int_equal(e.b.buf[64], 0);
	fake_run();
	assert_int_equal(e.b.buf[64], 1);
	ends_close(&e, 0);
}

/* As siw does: what the completion says of the READ before it is nothing. */
static void a_send_may_complete_before_a_read(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	config.early_sends = true;
	config.read_lag = 50;
	open_with(&e, &config, 2, 0);
	memset(e.b.buf, 3, 64);
	read_one(&e, 1, 64);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 2, SIGNAL, 64, 64);
	for (int i = 0; i < 10; i++)
		fake_step();
	end_expect(&e.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(e.a.buf[0], 0);
	assert_int_equal(fake_sq_posted(e.a.qp), 2);
	fake_run();
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	end_expect_nothing(&e.a);
	assert_int_equal(e.a.buf[0], 3);
	ends_close(&e, 0);
}

/* ---- Trouble ---- */

/* The WRs before the one that fails are done in peace. */
static void a_wr_fails_when_told_to(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	config.read_lag = 20;
	config.fail_wr = (struct fake_fault){2, IBV_WC_RETRY_EXC_ERR};
	open_with(&e, &config, 4, 0);
	memset(e.b.buf, 2, 64);
	read_one(&e, 1, 64);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 2, 0, 64, 64);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 3, 0, 64, 64);
	fake_run();
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(e.a.buf[63], 2);
	end_expect(&e.a, 2, IBV_WC_RETRY_EXC_ERR);
	end_expect(&e.a, 3, IBV_WC_WR_FLUSH_ERR);
	end_expect_nothing(&e.a);
	ends_close(&e, 0);
}

static void a_peer_that_says_goodbye(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	end_recv(&e.a, 9, 0, 64);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 1, 0, 0, 64);
	fake_disconnect(e.a.qp);
	assert_ptr_equal(ends_event(&e.a, RDMA_CM_EVENT_DISCONNECTED), e.a.id);
	end_expect(&e.a, 1, IBV_WC_WR_FLUSH_ERR);
	end_expect(&e.a, 9, IBV_WC_WR_FLUSH_ERR);
	ends_close(&e, 0);
}

static void a_peer_that_falls_silent(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	fake_unplug(e.a.qp);
	send_one(&e, 1, 64);
	read_one(&e, 2, 64);
	fake_run();
	end_expect(&e.a, 1, IBV_WC_RETRY_EXC_ERR);
	end_expect(&e.a, 2, IBV_WC_WR_FLUSH_ERR);
	ends_close(&e, 0);
}

static void a_peer_whose_qp_is_gone(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	rdma_destroy_qp(e.b.id);
	read_one(&e, 2, 64);
	fake_run();
	end_expect(&e.a, 2, IBV_WC_RETRY_EXC_ERR);
	ends_close(&e, 0);
}

/* ---- Schedules ---- */

/* In which order two ends' WRITEs of three pieces each land, as a number. */
static unsigned int schedule(uint64_t seed)
{
	struct fake_config config = ends_config();
	unsigned int order = 1;
	struct ends e;

	config.seed = seed;
	open_with(&e, &config, 4, 0);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 1, 0, 0, 8192);
	end_post(&e.b, &e.a, IBV_WR_RDMA_WRITE, 1, 0, 8192, 8192);
	memset(e.a.buf, 1, 8192);
	memset(e.b.buf + 8192, 1, 8192);
	for (unsigned int a = 0; a + 1024 < 8192;) {
		fake_step();
		order = order * 2 + (e.b.buf[a] != 0);
		a += e.b.buf[a] ? 1024 : 0;
	}
	ends_close(&e, 0);
	return order;
}

static void a_seed_is_a_schedule(void **state)
{
	unsigned int turns = schedule(0), different = 0;

	(void)state;
	assert_int_equal(turns, schedule(0));
	for (uint64_t seed = 1; seed <= 20; seed++) {
		unsigned int order = schedule(seed);

		assert_int_equal(order, schedule(seed));
		different += order != turns;
	}
	assert_in_range(different, 15, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_fills_a_recv),
		cmocka_unit_test(a_message_too_long_for_its_recv),
		cmocka_unit_test(a_recv_longer_than_any_message),
		cmocka_unit_test(no_recv_and_no_patience),
		cmocka_unit_test(no_recv_and_some_patience),
		cmocka_unit_test(no_recv_and_endless_patience),
		cmocka_unit_test(immediate_data),
		cmocka_unit_test(immediate_data_needs_a_recv),
		cmocka_unit_test(iwarp_has_no_immediate_data),
		cmocka_unit_test(on_iwarp_the_connecting_side_speaks_first),
		cmocka_unit_test(a_reply_may_overtake_the_completion),
		cmocka_unit_test(a_message_may_arrive_late),
		cmocka_unit_test(without_rd_atomic_a_read_hangs),
		cmocka_unit_test(rd_atomic_is_agreed_upon),
		cmocka_unit_test(more_reads_than_agreed_wait),
		cmocka_unit_test(a_read_is_overtaken),
		cmocka_unit_test(a_fence_waits_for_reads),
		cmocka_unit_test(a_send_may_complete_before_a_read),
		cmocka_unit_test(a_wr_fails_when_told_to),
		cmocka_unit_test(a_peer_that_says_goodbye),
		cmocka_unit_test(a_peer_that_falls_silent),
		cmocka_unit_test(a_peer_whose_qp_is_gone),
		cmocka_unit_test(a_seed_is_a_schedule),
	};

	return cmocka_run_group_tests_name("unit_fakehca_wire", tests, NULL, NULL);
}
