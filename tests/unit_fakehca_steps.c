/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The double's queue pairs that their user moves to their states himself. */
#include <errno.h>
#include <stdlib.h>
#include "fakehca/ends.h"

/* The id has no QP any more; what is said instead. */
static struct rdma_conn_param hide(struct end *end)
{
	end->id->qp = NULL;
	return (struct rdma_conn_param){
		.initiator_depth = 3,
		.responder_resources = 2,
		.qp_num = end->qp->qp_num,
	};
}

static int connect_by(struct end *end, struct rdma_conn_param p)
{
	return rdma_connect(end->id, &p);
}

static int step(struct end *end, enum ibv_qp_state state, uint8_t sl)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;

	if (rdma_init_qp_attr(end->id, &attr, &mask))
		return errno;
	if (mask & IBV_QP_AV)
		attr.ah_attr.sl = sl;
	return ibv_modify_qp(end->qp, &attr, mask);
}

static void steps(struct end *end, uint8_t sl)
{
	assert_int_equal(step(end, IBV_QPS_INIT, sl), 0);
	assert_int_equal(step(end, IBV_QPS_RTR, sl), 0);
	assert_int_equal(step(end, IBV_QPS_RTS, sl), 0);
}

/* a has asked by number, b has the request and a QP that is hidden as well. */
static void asked(struct ends *e, const struct fake_config *config)
{
	struct ends_attr attr = ends_defaults();

	ends_almost(e, config, NULL);
	assert_int_equal(connect_by(&e->a, hide(&e->a)), 0);
	e->b.id = ends_event(&e->b, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(end_make_qp(&e->b, &attr), 0);
	hide(&e->b);
}

static void show_and_close(struct ends *e, unsigned int violations)
{
	e->a.id->qp = e->a.qp;
	e->b.id->qp = e->b.qp;
	ends_close(e, violations);
}

static void agree_to(struct ends *e, uint8_t reads)
{
	struct rdma_conn_param p = hide(&e->b);

	p.initiator_depth = p.responder_resources = reads;
	assert_int_equal(rdma_accept(e->b.id, &p), 0);
	ends_event(&e->a, RDMA_CM_EVENT_CONNECT_RESPONSE);
}

static uint8_t sl_of(const struct end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(end->qp, &attr, IBV_QP_AV, &init), 0);
	return attr.ah_attr.sl;
}

static void steps_of_our_own(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ends e;

	(void)state;
	asked(&e, NULL);
	steps(&e.b, 5);
	agree_to(&e, 3);
	steps(&e.a, 7);
	assert_int_equal(rdma_establish(e.a.id), 0);
	ends_event(&e.b, RDMA_CM_EVENT_ESTABLISHED); /* a gets no event: it said so itself */
	assert_int_equal(sl_of(&e.a), 7);
	assert_int_equal(sl_of(&e.b), 5);
	fake_live()->device[0].sl_told = 3;
	assert_int_equal(sl_of(&e.b), 1);
	ibv_query_qp(e.a.qp, &attr, 0, &init);
	assert_int_equal(attr.max_rd_atomic, 3);
	assert_int_equal(end_post(&e.a, &e.b, IBV_WR_RDMA_READ, 1, IBV_SEND_SIGNALED, 0, 64), 0);
	fake_run();
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	e.a.id->qp = e.a.qp;
	assert_int_equal(rdma_disconnect(e.a.id), 0);
	ends_event(&e.b, RDMA_CM_EVENT_DISCONNECTED);
	show_and_close(&e, 0);
}

static void steps_out_of_order(void **state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct rdma_conn_param p;
	struct ends e;
	int mask;

	(void)state;
	ends_almost(&e, NULL, NULL);
	assert_int_equal(step(&e.a, IBV_QPS_INIT, 0), 0);
	assert_int_equal(step(&e.a, IBV_QPS_RTR, 0), EINVAL);
	ends_refused("no peer is known");
	ends_close(&e, 0);

	asked(&e, NULL);
	p = hide(&e.b);
	assert_int_equal(rdma_accept(e.b.id, &p), -1);
	ends_refused("is not ready to receive");
	assert_int_equal(step(&e.b, IBV_QPS_RTS, 0), EINVAL);
	ends_refused("from state 1 to 3");
	assert_int_equal(rdma_establish(e.a.id), -1);
	ends_refused("nobody has answered");
	assert_int_equal(rdma_init_qp_attr(e.b.id, &attr, &mask), 0);
	assert_int_equal(ibv_modify_qp(e.b.qp, &attr, mask & ~IBV_QP_AV), EINVAL);
	ends_refused("state 2 needs");
	attr.ah_attr.sl = 16;
	assert_int_equal(ibv_modify_qp(e.b.qp, &attr, mask), EINVAL);
	ends_refused("service level 16");
	steps(&e.b, 1);
	agree_to(&e, 2);
	assert_int_equal(rdma_establish(e.a.id), -1);
	ends_refused("ready to send");
	steps(&e.a, 1);
	e.a.id->qp = e.a.qp;
	assert_int_equal(rdma_establish(e.a.id), -1);
	ends_refused("the id has a QP");
	show_and_close(&e, 0);
}

/* Who names no QP at all, or one that is not his. */
static void numbers_of_no_use(void **state)
{
	struct rdma_conn_param p;
	struct ends e;

	(void)state;
	ends_almost(&e, NULL, NULL);
	p = hide(&e.a);
	p.qp_num += 77;
	assert_int_equal(connect_by(&e.a, p), -1);
	ends_refused("no route or no QP");
	e.a.id->qp = e.a.qp;
	ends_close(&e, 0);
}

/* The rights are those that the step to INIT gave, not those of the memory alone. */
static void without_the_second_init_nobody_may_read(void **state)
{
	struct ends e;

	(void)state;
	asked(&e, NULL);
	assert_int_equal(step(&e.b, IBV_QPS_RTR, 1), 0);
	assert_int_equal(step(&e.b, IBV_QPS_RTS, 1), 0);
	agree_to(&e, 3);
	steps(&e.a, 1);
	assert_int_equal(rdma_establish(e.a.id), 0);
	assert_int_equal(end_post(&e.a, &e.b, IBV_WR_RDMA_READ, 1, IBV_SEND_SIGNALED, 0, 64), 0);
	fake_run();
	end_expect(&e.a, 1, IBV_WC_REM_ACCESS_ERR);
	show_and_close(&e, 0);
}

/* b keeps what a offered (3 to send, 2 to answer), and tells a of less. */
static void ends_that_do_not_fit_together(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	asked(&e, NULL);
	steps(&e.b, 1);
	agree_to(&e, 1);
	steps(&e.a, 1);
	assert_int_equal(rdma_establish(e.a.id), 0);
	ends_violated("may have 2 READs in flight, and its peer answers 1");
	show_and_close(&e, 1);

	config.device[0].ece_vendor = 9;
	config.device[0].ece_options = 6;
	asked(&e, &config);
	steps(&e.b, 1);
	agree_to(&e, 2);
	assert_int_equal(step(&e.a, IBV_QPS_INIT, 1), 0);
	assert_int_equal(step(&e.a, IBV_QPS_RTR, 1), 0);
	ends_violated("extensions 0 on QP 1, where the peer agreed to 0x6");
	show_and_close(&e, 1);
}

/* Between the answer and the word that all is done, either end may go. */
static void one_leaves_before_it_is_established(void **state)
{
	struct ends e;

	(void)state;
	asked(&e, NULL);
	steps(&e.b, 1);
	agree_to(&e, 2);
	e.a.id->qp = e.a.qp;
	rdma_destroy_qp(e.a.id);
	rdma_destroy_id(e.a.id);
	e.a.id = NULL;
	ends_event(&e.b, RDMA_CM_EVENT_REJECTED);
	e.b.id->qp = e.b.qp;
	ends_close(&e, 0);

	asked(&e, NULL);
	steps(&e.b, 1);
	agree_to(&e, 2);
	e.b.id->qp = e.b.qp;
	rdma_destroy_qp(e.b.id);
	rdma_destroy_id(e.b.id);
	e.b.id = NULL;
	ends_event(&e.a, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(rdma_establish(e.a.id), -1);
	e.a.id->qp = e.a.qp;
	ends_close(&e, 0);
}

static void a_hidden_qp_is_not_forgotten(void **state)
{
	struct ends e;

	(void)state;
	asked(&e, NULL);
	e.a.id->qp = e.a.qp;
	rdma_destroy_qp(e.a.id);
	rdma_destroy_id(e.a.id);
	e.a.id = NULL;
	rdma_destroy_id(e.b.id);
	ends_violated("its QP is still there");
	assert_true(fake_leaks(NULL, 0) > 0);
	fake_start(&(struct fake_config){0}); /* b's QP cannot be got rid of any more */
	free(e.a.buf);
	free(e.b.buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_of_our_own),
		cmocka_unit_test(steps_out_of_order),
		cmocka_unit_test(numbers_of_no_use),
		cmocka_unit_test(without_the_second_init_nobody_may_read),
		cmocka_unit_test(ends_that_do_not_fit_together),
		cmocka_unit_test(one_leaves_before_it_is_established),
		cmocka_unit_test(a_hidden_qp_is_not_forgotten),
	};

	return cmocka_run_group_tests_name("unit_fakehca_steps", tests, NULL, NULL);
}
