/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The double's devices, ids and connections. */
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>
#include "fakehca/ends.h"

static struct rdma_conn_param param(void)
{
	static const char words[] = "who I am";

	return (struct rdma_conn_param){
		.private_data = words,
		.private_data_len = sizeof(words),
		.initiator_depth = 3,
		.responder_resources = 2,
	};
}

static int connect_with(struct ends *e, struct rdma_conn_param p)
{
	return rdma_connect(e->a.id, &p);
}

/* ---- Devices ---- */

static void devices_are_as_configured(void **state)
{
	struct fake_config config = ends_config();
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	struct ibv_context **list;
	int n = 0;

	(void)state;
	config.devices = 2;
	config.device[1].iwarp = true;
	config.device[1].down = true;
	config.device[1].mtu = 4096;
	config.device[1].max_sge_rd = 1;
	fake_start(&config);
	list = rdma_get_devices(&n);
	assert_int_equal(n, 2);
	assert_null(list[2]);
	assert_string_equal(ibv_get_device_name(list[1]->device), "fake1");
	assert_int_equal(list[0]->device->transport_type, IBV_TRANSPORT_IB);
	assert_int_equal(list[1]->device->transport_type, IBV_TRANSPORT_IWARP);
	assert_int_equal(ibv_query_device(list[1], &attr), 0);
	assert_int_equal(attr.max_sge_rd, 1);
	assert_int_equal(ibv_query_port(list[0], 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(port.active_mtu, IBV_MTU_1024);
	assert_int_equal(ibv_query_port(list[1], 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_DOWN);
	assert_int_equal(port.active_mtu, IBV_MTU_4096);
	assert_int_not_equal(ibv_query_port(list[1], 2, &port), 0);
	assert_int_equal(fake_leaks(NULL, 0), 1);
	rdma_free_devices(list);
	assert_int_equal(fake_leaks(NULL, 0), 0);
}

static void addresses_are_as_configured(void **state)
{
	struct fake_config config = ends_config();
	struct ifaddrs *all;

	(void)state;
	config.devices = 2;
	config.device[0].addr = NULL;
	config.device[1].addr = "fd00::7";
	fake_start(&config);
	assert_int_equal(getifaddrs(&all), 0);
	assert_null(all->ifa_addr);
	assert_int_equal(all->ifa_next->ifa_addr->sa_family, AF_INET6);
	assert_null(all->ifa_next->ifa_next);
	freeifaddrs(all);
	assert_int_equal(fake_leaks(NULL, 0), 0);
}

/* ---- Connecting ---- */

static void a_connection_is_made(void **state)
{
	struct rdma_conn_param p = param();
	struct ends_attr attr = ends_defaults();
	struct rdma_cm_event *ev;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr qp;
	struct ends e;

	(void)state;
	ends_almost(&e, NULL, NULL);
	assert_int_equal(connect_with(&e, p), 0);
	assert_int_equal(fake_pending_requests(), 1);
	assert_int_equal(rdma_get_cm_event(e.b.events, &ev), 0);
	assert_int_equal(fake_pending_requests(), 0);
	assert_ptr_equal(ev->listen_id, e.listener);
	assert_string_equal(ev->param.conn.private_data, "who I am");
	assert_int_equal(ev->param.conn.private_data_len, 56);	 /* whatever it was */
	assert_int_equal(ev->param.conn.responder_resources, 3); /* what the other wants to send */
	assert_int_equal(ev->param.conn.initiator_depth, 2);
	e.b.id = ev->id;
	rdma_ack_cm_event(ev);
	assert_int_equal(end_make_qp(&e.b, &attr), 0);
	p.rnr_retry_count = 5;
	p.initiator_depth = 9;
	p.responder_resources = 1;
	assert_int_equal(rdma_accept(e.b.id, &p), 0);
	ends_event(&e.a, RDMA_CM_EVENT_ESTABLISHED);
	ends_event(&e.b, RDMA_CM_EVENT_ESTABLISHED);
	ibv_query_qp(e.a.qp, &qp, 0, &init);
	assert_int_equal(qp.max_rd_atomic, 1);
	assert_int_equal(qp.rnr_retry, 5); /* each as patient as the other told it to be */
	ibv_query_qp(e.b.qp, &qp, 0, &init);
	assert_int_equal(qp.max_rd_atomic, 2);
	assert_int_equal(qp.rnr_retry, 0);
	ends_close(&e, 0);
}

static void a_request_is_rejected(void **state)
{
	struct ends e;
	struct rdma_cm_id *id;

	(void)state;
	ends_almost(&e, NULL, NULL);
	connect_with(&e, param());
	id = ends_event(&e.b, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(rdma_reject(id, NULL, 0), 0);
	rdma_destroy_id(id);
	ends_event(&e.a, RDMA_CM_EVENT_REJECTED);
	ends_close(&e, 0);
}

/* Gone without a word: before the request was looked at, and after. */
static void a_request_that_nobody_answers_is_rejected(void **state)
{
	struct rdma_cm_id *id;
	struct ends e;

	(void)state;
	ends_almost(&e, NULL, NULL);
	connect_with(&e, param());
	rdma_destroy_id(e.listener);
	e.listener = NULL;
	ends_event(&e.a, RDMA_CM_EVENT_REJECTED);
	ends_close(&e, 0);

	ends_almost(&e, NULL, NULL);
	connect_with(&e, param());
	id = ends_event(&e.b, RDMA_CM_EVENT_CONNECT_REQUEST);
	rdma_destroy_id(e.listener);
	e.listener = NULL;
	rdma_destroy_id(id);
	ends_event(&e.a, RDMA_CM_EVENT_REJECTED);
	ends_close(&e, 0);
}

static void accepting_who_has_given_up(void **state)
{
	struct rdma_conn_param p = param();
	struct ends_attr attr = ends_defaults();
	struct ends e;

	(void)state;
	ends_almost(&e, NULL, NULL);
	connect_with(&e, p);
	e.b.id = ends_event(&e.b, RDMA_CM_EVENT_CONNECT_REQUEST);
	end_drop(&e.a);
	assert_int_equal(end_make_qp(&e.b, &attr), 0);
	assert_int_equal(rdma_accept(e.b.id, &p), 0);
	ends_event(&e.b, RDMA_CM_EVENT_CONNECT_ERROR);
	ends_close(&e, 0);
}

static void nobody_listens(void **state)
{
	struct ends e;

	(void)state;
	ends_almost(&e, NULL, NULL);
	rdma_destroy_id(e.listener);
	e.listener = NULL;
	connect_with(&e, param());
	ends_event(&e.a, RDMA_CM_EVENT_REJECTED);
	ends_close(&e, 0);
}

static void too_many_wait_at_the_listener(void **state)
{
	struct sockaddr_storage addr;
	struct ends_attr attr = ends_defaults();
	struct ends e;

	(void)state;
	ends_almost(&e, NULL, NULL);
	addr = e.listener->route.addr.src_storage;
	for (int i = 0; i < 4; i++) { /* as many as its backlog */
		struct rdma_cm_id *id = e.a.id;

		assert_int_equal(connect_with(&e, param()), 0);
		assert_int_equal(fake_pending_requests(), i + 1);
		rdma_destroy_qp(id);
		ends_resolve(&e.a, &addr);
		end_make_qp(&e.a, &attr);
		rdma_destroy_id(id);
	}
	connect_with(&e, param());
	ends_event(&e.a, RDMA_CM_EVENT_REJECTED);
	ends_close(&e, 0);
}

static void wrong_words_when_connecting(void **state)
{
	struct rdma_conn_param p = param();
	struct ends e;

	(void)state;
	ends_almost(&e, NULL, NULL);
	p.private_data_len = 57;
	assert_int_equal(connect_with(&e, p), -1);
	assert_int_equal(errno, EINVAL);
	p = param();
	p.responder_resources = 17;
	assert_int_equal(connect_with(&e, p), -1);
	ends_refused("17 READs in flight of 16");
	p = param();
	p.rnr_retry_count = 8;
	assert_int_equal(connect_with(&e, p), -1);
	p = param();
	p.initiator_depth = p.responder_resources = 255; /* all that there are */
	assert_int_equal(connect_with(&e, p), 0);
	ends_close(&e, 0);
}

static void no_way_to_an_address(void **state)
{
	struct sockaddr_in nowhere = {.sin_family = AF_INET}, own;
	struct rdma_cm_id *id;
	struct ends e;

	(void)state;
	ends_almost(&e, NULL, NULL);
	own = *(struct sockaddr_in *)&e.listener->route.addr.src_addr;
	assert_int_equal(rdma_create_id(e.a.events, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&nowhere), -1);
	assert_int_equal(errno, ENODEV);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&own), -1);
	assert_int_equal(errno, EADDRINUSE);
	own.sin_port = 0;
	assert_int_equal(
		rdma_resolve_addr(id, (struct sockaddr *)&own, (struct sockaddr *)&nowhere, 10), 0);
	ends_event(&e.a, RDMA_CM_EVENT_ADDR_ERROR);
	assert_int_equal(rdma_resolve_route(id, 10), -1);
	rdma_destroy_id(id);
	ends_close(&e, 0);
}

static void a_port_that_is_down(void **state)
{
	struct ends e;

	(void)state;
	ends_almost(&e, NULL, NULL);
	fake_live()->device[0].down = true;
	connect_with(&e, param());
	ends_event(&e.a, RDMA_CM_EVENT_UNREACHABLE);
	ends_close(&e, 0);
}

static void disconnecting(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	end_recv(&e.a, 1, 0, 64);
	end_recv(&e.b, 2, 0, 64);
	assert_int_equal(rdma_disconnect(e.a.id), 0);
	end_expect(&e.a, 1, IBV_WC_WR_FLUSH_ERR);
	ends_event(&e.b, RDMA_CM_EVENT_DISCONNECTED);
	end_expect_nothing(&e.b); /* its own QP is untouched */
	assert_int_equal(rdma_disconnect(e.b.id), 0);
	end_expect(&e.b, 2, IBV_WC_WR_FLUSH_ERR);
	ends_close(&e, 0);
}

static void an_id_that_goes_tells_its_peer(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	rdma_destroy_qp(e.b.id);
	rdma_destroy_id(e.b.id);
	e.b.id = NULL;
	ends_event(&e.a, RDMA_CM_EVENT_DISCONNECTED);
	ends_close(&e, 0);
}

static void waiting_for_no_event(void **state)
{
	struct rdma_cm_event *ev;
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	assert_int_equal(rdma_get_cm_event(e.a.events, &ev), -1);
	ends_violated("it would wait");
	assert_int_equal(fcntl(e.a.events->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(rdma_get_cm_event(e.a.events, &ev), -1);
	assert_int_equal(errno, EAGAIN);
	ends_close(&e, 1);
}

/* ---- QPs and CQs that cannot be had ---- */

static int qp_error(struct ends *e, const struct ends_attr *attr)
{
	errno = 0;
	return end_make_qp(&e->a, attr) ? errno : 0;
}

static void qps_above_the_limits(void **state)
{
	struct fake_config config = ends_config();
	struct ends_attr attr = ends_defaults();
	struct ends e;

	(void)state;
	config.device[0].max_qp_wr = 100;
	config.device[0].sq_room = 50;
	config.device[0].max_qp = 1;
	ends_almost(&e, &config, NULL);
	rdma_destroy_qp(e.a.id);
	attr.sq = 101;
	assert_int_equal(qp_error(&e, &attr), EINVAL);
	attr.sq = 51;
	assert_int_equal(qp_error(&e, &attr), ENOMEM);
	ends_refused("room for 50");
	attr.sq = 50;
	attr.sge = 31;
	assert_int_equal(qp_error(&e, &attr), EINVAL);
	attr.sge = 30;
	attr.inline_data = 257;
	assert_int_equal(qp_error(&e, &attr), EINVAL);
	attr.inline_data = 256;
	fake_live()->fail_create_qp = (struct fake_fault){1, EAGAIN};
	assert_int_equal(qp_error(&e, &attr), EAGAIN);
	assert_int_equal(qp_error(&e, &attr), 0);
	connect_with(&e, param());
	e.b.id = ends_event(&e.b, RDMA_CM_EVENT_CONNECT_REQUEST);
	errno = 0;
	assert_int_equal(end_make_qp(&e.b, &attr), -1);
	assert_int_equal(errno, ENOMEM);
	ends_refused("1 QPs of 1");
	ends_close(&e, 0);
}

static void cqs_above_the_limits(void **state)
{
	struct fake_config config = ends_config();
	struct ibv_context **list;
	struct ibv_cq *cq;
	int n;

	(void)state;
	config.device[0].max_cqe = 10;
	fake_start(&config);
	list = rdma_get_devices(&n);
	assert_null(ibv_create_cq(list[0], 11, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(list[0], 0, NULL, NULL, 0));
	assert_null(ibv_create_cq(list[0], 1, NULL, NULL, 1));
	fake_live()->fail_create_cq = (struct fake_fault){1, ENOMEM};
	assert_null(ibv_create_cq(list[0], 10, NULL, NULL, 0));
	assert_int_equal(errno, ENOMEM);
	cq = ibv_create_cq(list[0], 10, NULL, NULL, 0);
	assert_non_null(cq);
	assert_int_equal(ibv_req_notify_cq(cq, 0), EINVAL);
	ibv_destroy_cq(cq);
	fake_live()->fail_alloc_pd = (struct fake_fault){1, ENOMEM};
	assert_null(ibv_alloc_pd(list[0]));
	fake_live()->fail_channel = (struct fake_fault){1, EMFILE};
	assert_null(ibv_create_comp_channel(list[0]));
	assert_int_equal(errno, EMFILE);
	rdma_free_devices(list);
	assert_int_equal(fake_leaks(NULL, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_as_configured),
		cmocka_unit_test(addresses_are_as_configured),
		cmocka_unit_test(a_connection_is_made),
		cmocka_unit_test(a_request_is_rejected),
		cmocka_unit_test(a_request_that_nobody_answers_is_rejected),
		cmocka_unit_test(accepting_who_has_given_up),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(too_many_wait_at_the_listener),
		cmocka_unit_test(wrong_words_when_connecting),
		cmocka_unit_test(no_way_to_an_address),
		cmocka_unit_test(a_port_that_is_down),
		cmocka_unit_test(disconnecting),
		cmocka_unit_test(an_id_that_goes_tells_its_peer),
		cmocka_unit_test(waiting_for_no_event),
		cmocka_unit_test(qps_above_the_limits),
		cmocka_unit_test(cqs_above_the_limits),
	};

	return cmocka_run_group_tests_name("unit_fakehca_cm", tests, NULL, NULL);
}
