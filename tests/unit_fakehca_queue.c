/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The double's queues: entries, credits, completions, events, and what a post is refused for. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include "fakehca/ends.h"

#define SIGNAL IBV_SEND_SIGNALED

static int write_one(struct ends *e, uint64_t wr_id, unsigned int flags)
{
	return end_post(&e->a, &e->b, IBV_WR_RDMA_WRITE, wr_id, flags, 0, 64);
}

/* ---- The send queue ---- */

static void posting_only_queues(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	e.a.buf[5] = 55;
	assert_int_equal(write_one(&e, 1, SIGNAL), 0);
	end_expect_nothing(&e.a);
	assert_int_equal(e.b.buf[5], 0);
	assert_true(fake_step());
	assert_int_equal(e.b.buf[5], 55);
	assert_int_equal(end_expect(&e.a, 1, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_WRITE);
	assert_false(fake_step());
	ends_close(&e, 0);
}

static void entries_come_back_by_a_polled_completion_only(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(write_one(&e, i, i == 6 ? SIGNAL : 0), 0);
	assert_int_equal(write_one(&e, 8, 0), ENOMEM);
	ends_refused("all 8 send entries");
	fake_run(); /* all are done now, and nobody knows */
	assert_int_equal(write_one(&e, 8, 0), ENOMEM);
	end_expect(&e.a, 6, IBV_WC_SUCCESS);
	assert_int_equal(fake_sq_posted(e.a.qp), 1); /* 7, behind the one that was asked for */
	for (uint64_t i = 8; i < 15; i++)
		assert_int_equal(write_one(&e, i, 0), 0);
	assert_int_equal(write_one(&e, 15, 0), ENOMEM);
	assert_int_equal(fake_sq_peak(e.a.qp), 8);
	ends_close(&e, 0);
}

/* rxe would go on for ever. */
static void silent_posts_without_end_are_refused(void **state)
{
	struct ends e;
	int rc, n = 0;

	(void)state;
	ends_open(&e, NULL, NULL);
	while (n < 1000 && !(rc = write_one(&e, 1, 0))) {
		fake_run();
		end_expect_nothing(&e.a);
		n++;
	}
	assert_int_equal(rc, ENOMEM);
	assert_int_equal(n, 8);
	ends_close(&e, 0);
}

static void a_chain_is_taken_up_to_the_bad_one(void **state)
{
	struct ends e;
	struct ibv_send_wr wr[10] = {0}, *bad = NULL;

	(void)state;
	ends_open(&e, NULL, NULL);
	for (int i = 0; i < 10; i++) {
		wr[i].next = i < 9 ? &wr[i + 1] : NULL;
		wr[i].opcode = IBV_WR_RDMA_WRITE;
		wr[i].send_flags = SIGNAL;
		wr[i].wr_id = (uint64_t)i;
	}
	assert_int_equal(ibv_post_send(e.a.qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[8]);
	fake_run();
	for (uint64_t i = 0; i < 8; i++)
		end_expect(&e.a, i, IBV_WC_SUCCESS);
	assert_int_equal(fake_stats()->sqes, 8);
	assert_int_equal(fake_stats()->posts, 1);
	ends_close(&e, 0);
}

static void more_may_be_granted_than_asked(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	config.sq_extra = 5;
	ends_open(&e, &config, NULL);
	assert_int_equal(e.a.cap.max_send_wr, 13);
	for (uint64_t i = 0; i < 13; i++)
		assert_int_equal(write_one(&e, i, 0), 0);
	assert_int_equal(write_one(&e, 13, 0), ENOMEM);
	assert_int_equal(fake_sq_peak(e.a.qp), 13);
	ends_close(&e, 0);
}

/* What was granted is a promise that is not kept, and only a post finds out. */
static void fewer_may_be_there_than_granted(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	config.sq_extra = 2;
	config.sq_real = 5;
	ends_open(&e, &config, NULL);
	assert_int_equal(e.a.cap.max_send_wr, 10);
	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < 5; i++)
			assert_int_equal(write_one(&e, i, i == 4 ? SIGNAL : 0), 0);
		assert_int_equal(write_one(&e, 5, 0), ENOMEM);
		ends_refused("all 5 send entries");
		fake_run();
		assert_int_equal(write_one(&e, 5, 0), ENOMEM); /* executed is not proven */
		end_expect(&e.a, 4, IBV_WC_SUCCESS);
	}
	assert_int_equal(fake_sq_peak(e.a.qp), 5);
	ends_close(&e, 0);
}

static void more_than_granted_are_never_there(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	config.sq_real = 9;
	ends_open(&e, &config, NULL);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(write_one(&e, i, 0), 0);
	assert_int_equal(write_one(&e, 8, 0), ENOMEM);
	ends_close(&e, 0);
}

static void a_post_fails_when_told_to(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	fake_live()->fail_post_send = (struct fake_fault){2, ENOSPC};
	assert_int_equal(write_one(&e, 0, 0), 0);
	assert_int_equal(write_one(&e, 1, 0), ENOSPC);
	assert_int_equal(write_one(&e, 2, 0), 0);
	fake_live()->fail_post_recv = (struct fake_fault){1, EBADF};
	assert_int_equal(end_recv(&e.b, 1, 0, 8), EBADF);
	fake_live()->negative_errno = true;
	fake_live()->fail_post_send = (struct fake_fault){1, ENOSPC};
	assert_int_equal(write_one(&e, 3, 0), -ENOSPC);
	assert_int_equal(fake_stats()->sqes, 2);
	ends_close(&e, 0);
}

static void a_post_takes_a_part_when_told_to(void **state)
{
	struct ibv_send_wr wr[3] = {0}, *bad = NULL;
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	for (int i = 0; i < 3; i++) {
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
		wr[i].opcode = IBV_WR_RDMA_WRITE;
		wr[i].wr_id = (uint64_t)i;
		wr[i].send_flags = SIGNAL;
	}
	fake_live()->post_part.nth = 1;
	fake_live()->post_part.take = 2;
	fake_live()->post_part.err = EIO;
	assert_int_equal(ibv_post_send(e.a.qp, wr, &bad), EIO);
	assert_ptr_equal(bad, &wr[2]);
	fake_run();
	end_expect(&e.a, 0, IBV_WC_SUCCESS);
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	end_expect_nothing(&e.a);
	ends_close(&e, 0);
}

/* ---- What a post is refused for ---- */

static void a_post_needs_a_connected_qp(void **state)
{
	struct ends_attr attr = ends_defaults();
	struct sockaddr_storage addr;
	struct ends e = {0};
	int n;

	(void)state;
	fake_start(&(struct fake_config){.devices = 1, .device = {ends_config().device[0]}});
	e.devices = rdma_get_devices(&n);
	end_make(&e.a, e.devices[0], &attr);
	end_make(&e.b, e.devices[0], &attr);
	e.listener = ends_listen(&e.b, &addr);
	ends_resolve(&e.a, &addr);
	assert_int_equal(end_make_qp(&e.a, &attr), 0);
	assert_int_equal(write_one(&e, 1, SIGNAL), EINVAL);
	ends_refused("is in state");
	assert_int_equal(end_recv(&e.a, 1, 0, 64), 0); /* a RECV may be early */
	ends_close(&e, 0);
}

static void unknown_opcodes_are_refused(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	assert_int_equal(end_post(&e.a, &e.b, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, SIGNAL, 0, 8),
			 EINVAL);
	ends_refused("opcode");
	ends_close(&e, 0);
}

static int post_sges(struct end *from, const struct end *to, enum ibv_wr_opcode op, int n)
{
	struct ibv_sge sge[8];
	struct ibv_send_wr *bad, wr = {.opcode = op, .sg_list = sge, .num_sge = n};

	for (int i = 0; i < 8; i++)
		sge[i] = (struct ibv_sge){(uintptr_t)from->buf + (unsigned int)i * 8, 8,
					  from->mr->lkey};
	wr.wr.rdma.remote_addr = (uintptr_t)to->buf;
	wr.wr.rdma.rkey = to->mr->rkey;
	return ibv_post_send(from->qp, &wr, &bad);
}

static void sges_are_counted(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	config.device[0].max_sge_rd = 2;
	ends_open(&e, &config, NULL);
	assert_int_equal(post_sges(&e.a, &e.b, IBV_WR_RDMA_WRITE, 4), 0);
	assert_int_equal(post_sges(&e.a, &e.b, IBV_WR_RDMA_WRITE, 5), EINVAL);
	ends_refused("5 SGEs");
	assert_int_equal(post_sges(&e.a, &e.b, IBV_WR_RDMA_READ, 2), 0);
	assert_int_equal(post_sges(&e.a, &e.b, IBV_WR_RDMA_READ, 3), EINVAL);
	ends_refused("max_sge_rd 2");
	ends_close(&e, 0);
}

static void messages_above_the_maximum_are_refused(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	config.device[0].max_msg_size = 2048;
	ends_open(&e, &config, NULL);
	assert_int_equal(end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 1, 0, 0, 2048), 0);
	assert_int_equal(end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 1, 0, 0, 2049), EINVAL);
	ends_refused("max_msg_sz");
	ends_close(&e, 0);
}

static void inline_data_goes_with_the_post(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	memset(e.a.buf, 7, 64);
	assert_int_equal(write_one(&e, 1, SIGNAL | IBV_SEND_INLINE), 0);
	memset(e.a.buf, 8, 64); /* allowed at once */
	fake_run();
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(e.b.buf[63], 7);
	assert_int_equal(
		end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 1, SIGNAL | IBV_SEND_INLINE, 0, 65),
		EINVAL);
	ends_refused("65 bytes inline");
	assert_int_equal(end_post(&e.a, &e.b, IBV_WR_RDMA_READ, 1, SIGNAL | IBV_SEND_INLINE, 0, 8),
			 EINVAL);
	ends_close(&e, 0);
}

static void an_sge_of_no_bytes_is_a_violation(void **state)
{
	struct ends e;
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};

	(void)state;
	ends_open(&e, NULL, NULL);
	sge = (struct ibv_sge){(uintptr_t)e.a.buf, 0, e.a.mr->lkey};
	ibv_post_send(e.a.qp, &wr, &bad);
	ends_violated("length 0");
	ends_close(&e, 1);
}

static void recvs_are_counted_until_they_are_polled(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(end_recv(&e.b, i, 0, 64), 0);
	assert_int_equal(end_recv(&e.b, 8, 0, 64), ENOMEM);
	assert_int_equal(end_post(&e.a, NULL, IBV_WR_SEND, 1, 0, 0, 64), 0);
	fake_run();
	assert_int_equal(fake_rq_posted(e.b.qp), 7);
	assert_int_equal(end_recv(&e.b, 8, 0, 64), ENOMEM);
	end_expect(&e.b, 0, IBV_WC_SUCCESS);
	assert_int_equal(end_recv(&e.b, 8, 0, 64), 0);
	ends_close(&e, 0);
}

/* ---- Completion queues ---- */

static void a_full_cq_loses_completions(void **state)
{
	struct ends_attr attr = ends_defaults();
	struct ends e;

	(void)state;
	attr.cq = 3;
	ends_open(&e, NULL, &attr);
	for (uint64_t i = 0; i < 4; i++)
		write_one(&e, i, SIGNAL);
	fake_run();
	ends_violated("a CQ of 3 entries is full");
	assert_int_equal(fake_stats()->lost_cqes, 1);
	for (uint64_t i = 0; i < 3; i++)
		end_expect(&e.a, i, IBV_WC_SUCCESS);
	end_expect_nothing(&e.a);
	assert_int_equal(fake_sq_posted(e.a.qp), 1); /* for ever */
	ends_close(&e, 1);
}

/* SQ and RQ together. */
static void both_queues_fill_a_cq(void **state)
{
	struct ends_attr attr = ends_defaults();
	struct ends e;

	(void)state;
	attr.cq = 2;
	ends_open(&e, NULL, &attr);
	end_recv(&e.a, 7, 128, 64);
	write_one(&e, 0, SIGNAL);
	end_post(&e.b, NULL, IBV_WR_SEND, 1, 0, 0, 64);
	fake_run();
	assert_int_equal(fake_violations(), 0);
	write_one(&e, 1, SIGNAL);
	fake_run();
	ends_violated("is full");
	ends_close(&e, 1);
}

static void completions_take_their_time(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	config.sq_delay = 5;
	ends_open(&e, &config, NULL);
	write_one(&e, 1, SIGNAL);
	for (int i = 0; i < 5; i++) {
		assert_true(fake_step());
		end_expect_nothing(&e.a);
	}
	fake_step();
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	ends_close(&e, 0);
}

/* One completion in each ring of a's CQ, the SQ's written first: which comes first? */
static void order_is(enum fake_cq_order order, bool sq_first)
{
	struct fake_config config = ends_config();
	struct ends e;

	config.cq_order = order;
	ends_open(&e, &config, NULL);
	end_recv(&e.a, 2, 128, 64);
	write_one(&e, 1, SIGNAL);
	fake_run();
	end_post(&e.b, NULL, IBV_WR_SEND, 1, 0, 0, 64);
	fake_run();
	end_expect(&e.a, sq_first ? 1 : 2, IBV_WC_SUCCESS);
	end_expect(&e.a, sq_first ? 2 : 1, IBV_WC_SUCCESS);
	ends_close(&e, 0);
}

/* What is written at step 1 and at step 5 lies there until a poll at step 4, and at step 8. */
static void polls_by_a_timer_find_all_that_came(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	config.poll_every = 4;
	ends_open(&e, &config, NULL);
	for (uint64_t i = 0; i < 5; i++)
		write_one(&e, i, i == 0 || i == 2 || i == 4 ? SIGNAL : 0);
	for (int step = 1; step < 4; step++) {
		fake_step();
		end_expect_nothing(&e.a);
		assert_int_equal(fake_sq_posted(e.a.qp), 5);
	}
	fake_step();
	end_expect(&e.a, 0, IBV_WC_SUCCESS);
	end_expect(&e.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(fake_sq_posted(e.a.qp), 2);
	for (int step = 5; step < 8; step++) {
		fake_step();
		end_expect_nothing(&e.a);
	}
	fake_step();
	end_expect(&e.a, 4, IBV_WC_SUCCESS);
	ends_close(&e, 0);
}

static void queues_of_one_cq_keep_no_order(void **state)
{
	(void)state;
	order_is(FAKE_CQ_WRITTEN, true);
	order_is(FAKE_CQ_SQ_FIRST, true);
	order_is(FAKE_CQ_RQ_FIRST, false);
}

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void events_come_once_and_for_new_completions(void **state)
{
	struct ibv_cq *cq;
	void *context;
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	write_one(&e, 1, SIGNAL);
	fake_run();
	assert_false(readable(e.a.channel->fd)); /* nobody asked */
	assert_int_equal(ibv_req_notify_cq(e.a.cq, 0), 0);
	assert_false(readable(e.a.channel->fd)); /* for one that is there already */
	write_one(&e, 2, SIGNAL);
	write_one(&e, 3, SIGNAL);
	fake_run();
	assert_true(readable(e.a.channel->fd));
	assert_int_equal(ibv_get_cq_event(e.a.channel, &cq, &context), 0);
	assert_ptr_equal(cq, e.a.cq);
	assert_ptr_equal(context, &e.a);
	assert_false(readable(e.a.channel->fd));
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(ibv_get_cq_event(e.a.channel, &cq, &context), -1);
	ends_violated("it would wait");
	assert_int_equal(fcntl(e.a.channel->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(ibv_get_cq_event(e.a.channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	ends_close(&e, 1);
}

static void solicited_events(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	for (uint64_t i = 0; i < 2; i++)
		end_recv(&e.b, i, 0, 64);
	assert_int_equal(ibv_req_notify_cq(e.b.cq, 1), 0);
	end_post(&e.a, NULL, IBV_WR_SEND, 1, 0, 0, 64);
	fake_run();
	assert_false(readable(e.b.channel->fd));
	end_post(&e.a, NULL, IBV_WR_SEND, 1, IBV_SEND_SOLICITED, 0, 64);
	fake_run();
	assert_true(readable(e.b.channel->fd));
	ends_close(&e, 0);
}

static void polling_and_asking_fail_when_told_to(void **state)
{
	struct ibv_wc wc;
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	fake_live()->fail_poll = (struct fake_fault){1, EIO};
	assert_int_equal(ibv_poll_cq(e.a.cq, 1, &wc), -EIO);
	fake_live()->fail_notify = (struct fake_fault){1, EIO};
	assert_int_equal(ibv_req_notify_cq(e.a.cq, 0), EIO);
	ends_close(&e, 0);
}

static void sq_sig_all_leaves_nothing_silent(void **state)
{
	struct ends_attr attr = ends_defaults();
	struct ends e;

	(void)state;
	attr.sig_all = true;
	ends_open(&e, NULL, &attr);
	write_one(&e, 1, 0);
	fake_run();
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	ends_close(&e, 0);
}

/* The completion of a silent WR's error is written all the same; everything behind it flushes. */
static void errors_flush_silent_ones_too(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	end_recv(&e.a, 77, 0, 64);
	fake_live()->fail_wr = (struct fake_fault){2, IBV_WC_LOC_QP_OP_ERR};
	for (uint64_t i = 0; i < 4; i++)
		write_one(&e, i, 0);
	fake_run();
	end_expect(&e.a, 1, IBV_WC_LOC_QP_OP_ERR);
	assert_int_equal(write_one(&e, 4, 0), 0); /* still taken, and flushed */
	end_expect(&e.a, 2, IBV_WC_WR_FLUSH_ERR);
	end_expect(&e.a, 3, IBV_WC_WR_FLUSH_ERR);
	end_expect(&e.a, 77, IBV_WC_WR_FLUSH_ERR);
	end_expect(&e.a, 4, IBV_WC_WR_FLUSH_ERR);
	end_expect_nothing(&e.a);
	assert_int_equal(fake_sq_posted(e.a.qp), 0);
	ends_close(&e, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(posting_only_queues),
		cmocka_unit_test(entries_come_back_by_a_polled_completion_only),
		cmocka_unit_test(silent_posts_without_end_are_refused),
		cmocka_unit_test(a_chain_is_taken_up_to_the_bad_one),
		cmocka_unit_test(more_may_be_granted_than_asked),
		cmocka_unit_test(fewer_may_be_there_than_granted),
		cmocka_unit_test(more_than_granted_are_never_there),
		cmocka_unit_test(a_post_fails_when_told_to),
		cmocka_unit_test(a_post_takes_a_part_when_told_to),
		cmocka_unit_test(a_post_needs_a_connected_qp),
		cmocka_unit_test(unknown_opcodes_are_refused),
		cmocka_unit_test(sges_are_counted),
		cmocka_unit_test(messages_above_the_maximum_are_refused),
		cmocka_unit_test(inline_data_goes_with_the_post),
		cmocka_unit_test(an_sge_of_no_bytes_is_a_violation),
		cmocka_unit_test(recvs_are_counted_until_they_are_polled),
		cmocka_unit_test(a_full_cq_loses_completions),
		cmocka_unit_test(both_queues_fill_a_cq),
		cmocka_unit_test(completions_take_their_time),
		cmocka_unit_test(polls_by_a_timer_find_all_that_came),
		cmocka_unit_test(queues_of_one_cq_keep_no_order),
		cmocka_unit_test(events_come_once_and_for_new_completions),
		cmocka_unit_test(solicited_events),
		cmocka_unit_test(polling_and_asking_fail_when_told_to),
		cmocka_unit_test(sq_sig_all_leaves_nothing_silent),
		cmocka_unit_test(errors_flush_silent_ones_too),
	};

	return cmocka_run_group_tests_name("unit_fakehca_queue", tests, NULL, NULL);
}
