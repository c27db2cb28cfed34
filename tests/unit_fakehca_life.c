/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The double's objects: destroying them in order, and what leaks; and the virtual clock. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "fakehca/ends.h"

/* ---- Order of destruction ---- */

static void a_cq_under_a_qp(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	assert_int_equal(ibv_destroy_cq(e.a.cq), EBUSY);
	ends_violated("2 queues still complete into it");
	ends_close(&e, 1);
}

static void a_pd_under_regions(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	assert_int_equal(ibv_dealloc_pd(e.a.pd), EBUSY);
	ends_violated("2 regions, windows or QPs");
	ends_close(&e, 1);
}

static void a_channel_under_a_cq(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	assert_int_equal(ibv_destroy_comp_channel(e.a.channel), EBUSY);
	ends_violated("CQs still report to it");
	ends_close(&e, 1);
}

static void an_id_before_its_qp(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	rdma_destroy_id(e.a.id);
	ends_violated("its QP is still there");
	fake_start(&(struct fake_config){0}); /* what is left behind is forgotten */
	assert_int_equal(fake_leaks(NULL, 0), 0);
	free(e.a.buf);
	free(e.b.buf);
}

static void an_id_with_an_event_unacknowledged(void **state)
{
	struct rdma_cm_event *ev;
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	fake_disconnect(e.a.qp);
	assert_int_equal(rdma_get_cm_event(e.a.events, &ev), 0);
	rdma_destroy_qp(e.a.id);
	rdma_destroy_id(e.a.id);
	ends_violated("not acknowledged");
	e.a.id = NULL;
	rdma_ack_cm_event(ev);
	ends_close(&e, 1);
}

static void a_cq_with_an_event_unacknowledged(void **state)
{
	struct ibv_cq *cq;
	void *context;
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	ibv_req_notify_cq(e.a.cq, 0);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED, 0, 64);
	fake_run();
	assert_int_equal(ibv_get_cq_event(e.a.channel, &cq, &context), 0);
	ends_close(&e, 1);
	ends_violated("events are not acknowledged");
}

/* What nobody got is dropped with its CQ, and wakes nobody. */
static void a_cq_with_an_event_that_nobody_got(void **state)
{
	struct pollfd p = {.events = POLLIN};
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	end_recv(&e.a, 1, 0, 8);
	ibv_req_notify_cq(e.a.cq, 0);
	rdma_disconnect(e.a.id); /* it flushes */
	rdma_destroy_qp(e.a.id);
	p.fd = e.a.channel->fd;
	assert_int_equal(poll(&p, 1, 0), 1);
	ibv_destroy_cq(e.a.cq);
	e.a.cq = NULL;
	assert_int_equal(poll(&p, 1, 0), 0);
	ends_close(&e, 0);
}

static void the_event_of_another_cq_stays(void **state)
{
	struct ibv_cq *other, *cq;
	void *context;
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	other = ibv_create_cq(e.devices[0], 8, NULL, e.a.channel, 0);
	ibv_req_notify_cq(e.a.cq, 0);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED, 0, 8);
	fake_run();
	ibv_destroy_cq(other);
	assert_int_equal(ibv_get_cq_event(e.a.channel, &cq, &context), 0);
	assert_ptr_equal(cq, e.a.cq);
	ibv_ack_cq_events(cq, 1);
	ends_close(&e, 0);
}

static void acknowledging_too_much(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	ibv_ack_cq_events(e.a.cq, 1);
	ends_violated("1 of 0");
	ends_close(&e, 1);
}

static void leaks_are_told(void **state)
{
	char text[128];
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	assert_int_equal(fake_leaks(text, sizeof(text)), 16);
	assert_string_equal(text, "2 PDs, 2 memory regions, 2 CQs, 2 QPs, 2 completion channels, "
				  "2 event channels, 3 ids, 1 device lists");
	ends_close(&e, 0);
}

static void a_channel_under_ids(void **state)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;

	(void)state;
	fake_start(&(struct fake_config){0});
	channel = rdma_create_event_channel();
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	rdma_destroy_event_channel(channel);
	ends_violated("1 ids still report to it");
	fake_start(&(struct fake_config){0});
}

/* ---- The clock ---- */

static uint64_t clock_now(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void time_is_steps(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;
	uint64_t t;

	(void)state;
	config.step_ns = 1000;
	config.clock_read_ns = 7;
	ends_open(&e, &config, NULL);
	t = clock_now();
	assert_int_equal(t, fake_now());
	assert_int_equal(clock_now(), t + 7);
	fake_step();
	fake_step();
	assert_int_equal(clock_now(), t + 2014);
	fake_live()->clock_read_ns = 0;
	assert_int_equal(clock_now(), t + 2014);
	assert_int_equal(clock_now(), t + 2014);
	fake_live()->real_clock = true;
	assert_int_not_equal(clock_now(), t + 2014);
	ends_close(&e, 0);
}

static void count(void *arg)
{
	++*(int *)arg;
	clock_now(); /* no turn within a turn */
}

static void others_run_while_one_waits(void **state)
{
	struct fake_config config = ends_config();
	int turns = 0;

	(void)state;
	fake_start(&config);
	fake_while_waiting(count, &turns);
	clock_now();
	clock_now();
	fake_while_waiting(NULL, NULL);
	clock_now();
	assert_int_equal(turns, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cq_under_a_qp),
		cmocka_unit_test(a_pd_under_regions),
		cmocka_unit_test(a_channel_under_a_cq),
		cmocka_unit_test(an_id_before_its_qp),
		cmocka_unit_test(an_id_with_an_event_unacknowledged),
		cmocka_unit_test(a_cq_with_an_event_unacknowledged),
		cmocka_unit_test(a_cq_with_an_event_that_nobody_got),
		cmocka_unit_test(the_event_of_another_cq_stays),
		cmocka_unit_test(acknowledging_too_much),
		cmocka_unit_test(leaks_are_told),
		cmocka_unit_test(a_channel_under_ids),
		cmocka_unit_test(time_is_steps),
		cmocka_unit_test(others_run_while_one_waits),
	};

	return cmocka_run_group_tests_name("unit_fakehca_life", tests, NULL, NULL);
}
