/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening devices and making connections on the test double: what is had, what is refused and in
 * which words, and that nothing is left of what could not be made. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include "fakehca/engine.h"

static const struct rxfer_shape write_shape = {RXFER_WRITE, 1024, 4, 3};

static void nothing_left(unsigned int violations)
{
	char left[256];

	if (fake_leaks(left, sizeof(left)))
		fail_msg("left behind: %s", left);
	assert_int_equal(fake_violations(), violations);
}

/* ---- Devices ---- */

static void devices_are_listed(void **state)
{
	struct fake_config config = engine_config();
	struct rxfer_dev_info *list;
	unsigned int n;

	(void)state;
	config.devices = 3;
	config.device[0].vendor_id = 0xffffff;
	config.device[1].iwarp = true;
	config.device[1].down = true;
	config.device[1].max_sge_rd = 0;
	config.device[1].mtu = 4096;
	config.device[2].addr = NULL;
	fake_start(&config);
	assert_int_equal(rxfer_dev_list(&list, &n), 0);
	assert_int_equal(n, 3);
	assert_string_equal(list[0].name, "fake0");
	assert_string_equal(list[0].driver, "rxe");
	assert_true(list[0].software && list[0].active);
	assert_string_equal(list[0].addr, "10.86.0.1");
	assert_string_equal(list[0].transport, "RoCE");
	assert_string_equal(list[0].state, "active");
	assert_int_equal(list[0].mtu, 1024);
	assert_int_equal(list[0].max_sge, 30);
	assert_string_equal(list[1].transport, "iWARP");
	assert_string_equal(list[1].state, "down");
	assert_int_equal(list[1].mtu, 4096);
	assert_int_equal(list[1].max_sge_rd, 30); /* it does not say: as many as of others */
	assert_false(list[1].active);
	assert_string_equal(list[2].addr, "");
	free(list);
	nothing_left(0);
}

static void open_fails(const struct fake_config *config, const char *name, const char *strategy,
		       int err, const char *words)
{
	struct rxfer_dev *dev;

	fake_start(config);
	assert_int_equal(rxfer_dev_open(name, strategy, &dev), err);
	engine_said(words);
	nothing_left(0);
}

static void devices_that_cannot_be_opened(void **state)
{
	struct fake_config config = engine_config();

	(void)state;
	config.devices = 0;
	open_fails(&config, "", "global", -ENODEV, "RDMA device");
	config.devices = 2;
	open_fails(&config, "fake7", "global", -ENODEV, "did you mean fake0");
	open_fails(&config, "", "globl", -ENOENT, "did you mean global");
	config.fail_alloc_pd = (struct fake_fault){1, ENOMEM};
	open_fails(&config, "fake1", "global", -ENOMEM, "ibv_alloc_pd on fake1");
	config.fail_alloc_pd.nth = 0;
	config.fail_channel = (struct fake_fault){1, EMFILE};
	open_fails(&config, "", "global", -EMFILE, "event channels");
	config.fail_channel.nth = 0;
	config.device[1].down = true;
	config.device[0].addr = NULL;
	open_fails(&config, "fake1", "global", -ENODEV, "not active");
	open_fails(&config, "fake0", "global", -ENODEV, "no IP address");
	open_fails(&config, "", "global", -ENODEV, "of 2 RDMA devices none");
}

static void the_first_that_is_usable(void **state)
{
	struct fake_config config = engine_config();
	struct rxfer_dev *dev;

	(void)state;
	config.devices = 3;
	config.device[0].down = true;
	config.device[1].addr = NULL;
	fake_start(&config);
	assert_int_equal(rxfer_dev_open(NULL, "per-io", &dev), 0);
	assert_string_equal(rxfer_dev_info(dev)->name, "fake2");
	rxfer_dev_close(dev);
	nothing_left(0);
}

static void memory_that_cannot_be_registered(void **state)
{
	struct rxfer_mem *mem;
	struct rxfer_dev *dev;
	char buf[64];

	(void)state;
	fake_start(&(struct fake_config){.devices = 1, .device = {engine_config().device[0]}});
	assert_int_equal(rxfer_dev_open("", "global", &dev), 0);
	fake_live()->fail_reg_mr = (struct fake_fault){1, EFAULT};
	assert_int_equal(rxfer_mem_add(dev, buf, sizeof(buf), RXFER_LOCAL, &mem), -EFAULT);
	engine_said("ibv_reg_mr");
	assert_int_equal(rxfer_dev_counts(dev)->mr_now, 0);
	rxfer_dev_close(dev);
	nothing_left(0);
}

/* ---- Queues ---- */

/* N of write_shape is 3 + 3/4 = 3 (SGEs: 4 a WR), with 5 slots 31 entries. */
static int connect_with(struct engine *e, const struct fake_config *config, uint32_t sq_depth)
{
	engine_open(e, config, "global");
	engine_attr(e, &write_shape, 5, sq_depth, "half");
	return engine_connect(e);
}

static void sized_to(const struct fake_config *config, uint32_t sq_depth, uint32_t got)
{
	struct rxfer_conn_info info;
	struct engine e;

	assert_int_equal(connect_with(&e, config, sq_depth), 0);
	rxfer_conn_info(e.client, &info);
	assert_int_equal(info.need, 3);
	assert_int_equal(info.sq_wanted, 31);
	assert_int_equal(info.sq_depth, got);
	assert_int_equal(info.sqe_max, got + (config ? config->sq_extra : 0));
	engine_close(&e);
}

static void not_sized(const struct fake_config *config, uint32_t sq_depth, int err,
		      const char *words)
{
	struct engine e;

	assert_int_equal(connect_with(&e, config, sq_depth), err);
	engine_said(words);
	assert_null(e.client);
	engine_close(&e);
}

static void the_default_depth_is_what_can_be_had(void **state)
{
	struct fake_config config = engine_config();

	(void)state;
	sized_to(NULL, 0, 31);
	config.sq_extra = 7; /* more than asked for is never counted on */
	sized_to(&config, 0, 31);
	config.sq_extra = 0;
	for (uint32_t room = 4; room <= 33; room++) {
		config.device[0].sq_room = room;
		sized_to(&config, 0, room < 31 ? room : 31);
	}
	config.device[0].sq_room = 0;
	config.device[0].max_qp_wr = 17;
	sized_to(&config, 0, 17);
	config.device[0].max_qp_wr = 100;
	config.device[0].max_cqe = 20; /* two of these are for RECVs; the peer's are 16 */
	sized_to(&config, 0, 18);
}

static void the_default_depth_shrinks_at_a_failure(void **state)
{
	struct fake_config config = engine_config();
	struct rxfer_conn_info info;
	struct engine e;

	(void)state;
	config.fail_create_qp = (struct fake_fault){1, ENOMEM};
	assert_int_equal(connect_with(&e, &config, 0), 0);
	rxfer_conn_info(e.client, &info);
	assert_in_range(info.sq_depth, 4, 30);
	engine_close(&e);
	config.fail_create_qp = (struct fake_fault){1, EPERM}; /* no matter of size */
	not_sized(&config, 0, -EPERM, "creating a queue pair");
	config.fail_create_qp.nth = 0;
	config.fail_create_cq = (struct fake_fault){1, EPERM};
	not_sized(&config, 0, -EPERM, "ibv_create_cq");
}

static void too_small_for_one_io(void **state)
{
	struct fake_config config = engine_config();

	(void)state;
	config.device[0].max_qp_wr = 3;
	not_sized(&config, 0, -EMSGSIZE, "fake0");
	config.device[0].max_qp_wr = 100;
	config.device[0].sq_room = 3;
	not_sized(&config, 0, -ENOMEM, "4 send entries");
	config.device[0].sq_room = 0;
	config.device[0].max_cqe = 2; /* the CQ has room for the RECVs alone */
	not_sized(&config, 0, -EMSGSIZE, "RECVs");
	config.device[0].max_cqe = 100;
	not_sized(&config, 3, -EMSGSIZE, "--sq-depth 4 or more");
	sized_to(&config, 4, 4);
}

static void an_explicit_depth_is_had_or_refused(void **state)
{
	struct fake_config config = engine_config();

	(void)state;
	sized_to(&config, 100, 100);
	config.device[0].sq_room = 99;
	not_sized(&config, 100, -ENOMEM, "100 send entries");
	sized_to(&config, 99, 99);
	config.device[0].sq_room = 0;
	config.device[0].max_qp_wr = 50;
	not_sized(&config, 51, -EMSGSIZE, "--sq-depth 50 or less");
	config.device[0].max_qp_wr = 500;
	config.device[0].max_cqe = 50;
	not_sized(&config, 49, -EMSGSIZE, "--sq-depth 48 or less");
}

static void a_policy_that_would_overflow_the_queue(void **state)
{
	struct engine e;

	(void)state;
	engine_open(&e, NULL, "global");
	engine_attr(&e, &write_shape, 5, 20, "every:21");
	assert_int_equal(engine_connect(&e), -EINVAL);
	engine_said("every:20 or less");
	engine_close(&e);
	engine_open(&e, NULL, "global");
	engine_attr(&e, &write_shape, 5, 20, "every:20");
	assert_int_equal(engine_connect(&e), 0);
	engine_close(&e);
}

/* The device's SGEs, the READs' own limit, the strategy's: N follows. */
static void credits_of_one_io(void **state)
{
	static const struct {
		const char *strategy;
		enum rxfer_opcode op;
		uint32_t sge, sge_rd, need, per_wr;
	} cases[] = {
		{"global", RXFER_WRITE, 30, 30, 3, 6},	{"global", RXFER_WRITE, 2, 30, 4, 2},
		{"global", RXFER_READ, 30, 1, 6, 1},	{"multi-wr", RXFER_WRITE, 30, 30, 6, 1},
		{"per-io", RXFER_READ, 30, 3, 4, 3},	{"per-io", RXFER_SEND, 2, 30, 1, 2},
		{"multi-wr", RXFER_SEND, 30, 30, 4, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rxfer_shape shape = write_shape;
		struct fake_config config = engine_config();
		struct rxfer_conn_info info;
		struct engine e;

		config.device[0].max_sge = cases[i].sge;
		config.device[0].max_sge_rd = cases[i].sge_rd;
		shape.op = cases[i].op;
		if (shape.op == RXFER_SEND)
			shape.segments = 0;
		engine_open(&e, &config, cases[i].strategy);
		engine_attr(&e, &shape, 2, 0, "half");
		assert_int_equal(engine_connect(&e), 0);
		rxfer_conn_info(e.client, &info);
		assert_int_equal(info.need, cases[i].need);
		assert_int_equal(info.sge_per_wr, cases[i].per_wr);
		engine_close(&e);
	}
}

/* ---- The hand-shake ---- */

static void reads_in_flight_are_agreed_upon(void **state)
{
	struct fake_config config = engine_config();
	struct rxfer_conn_info info;
	struct engine e;

	(void)state;
	config.device[0].max_rd_atomic = 5;
	assert_int_equal(connect_with(&e, &config, 0), 0);
	rxfer_conn_info(e.client, &info);
	assert_int_equal(info.rd_atomic, 5);
	rxfer_conn_info(e.server, &info);
	assert_int_equal(info.rd_atomic, 5);
	engine_close(&e);
}

static void agreed(uint32_t asked, uint32_t server_asked, uint32_t got)
{
	struct rxfer_conn_info info;
	struct engine e;

	engine_open(&e, NULL, "global");
	engine_attr(&e, &write_shape, 5, 0, "half");
	e.client_attr.rd_atomic = asked;
	e.server_attr.rd_atomic = server_asked;
	assert_int_equal(engine_connect(&e), 0);
	rxfer_conn_info(e.client, &info);
	assert_int_equal(info.rd_atomic, got);
	rxfer_conn_info(e.server, &info);
	assert_int_equal(info.rd_atomic, got);
	engine_close(&e);
}

static void reads_in_flight_as_asked_for(void **state)
{
	(void)state;
	agreed(1, 1, 1);
	agreed(4, 4, 4);
	agreed(16, 16, 16);
	agreed(0, 0, 16);
	agreed(7, 3, 3); /* whoever is ready for less has the last word */
	agreed(3, 7, 3);
	agreed(0, 2, 2);
}

/* Refused before anybody is asked, and before anything is made. */
static void more_reads_in_flight_than_there_are(void **state)
{
	struct rxfer_wait wait;
	struct engine e;

	(void)state;
	engine_open(&e, NULL, "global");
	engine_attr(&e, &write_shape, 5, 0, "half");
	e.client_attr.rd_atomic = 17;
	assert_int_equal(engine_connect(&e), -EINVAL);
	engine_said("--rd-atomic 16 or less");
	assert_int_equal(e.accepted, 1);
	e.server_attr.rd_atomic = 255;
	wait = engine_wait();
	assert_int_equal(rxfer_accept(e.listener, &e.server_attr, &wait, &e.server), -EINVAL);
	engine_said("--rd-atomic 255 is more than fake0 has");
	engine_close(&e);
}

/* Whoever does not carry our token is turned away, and we go on waiting. */
static void a_stranger_is_rejected(void **state)
{
	struct engine e;

	(void)state;
	engine_open(&e, NULL, "global");
	engine_attr(&e, &write_shape, 5, 0, "half");
	e.server_attr.token[3]++;
	assert_int_equal(engine_connect(&e), -ECONNREFUSED);
	engine_said("refused");
	assert_int_equal(e.accepted, -ETIMEDOUT);
	engine_attr(&e, &write_shape, 5, 0, "half");
	e.server_attr.index++;
	assert_int_equal(engine_connect(&e), -ECONNREFUSED);
	engine_attr(&e, &write_shape, 5, 0, "half");
	assert_int_equal(engine_connect(&e), 0);
	engine_close(&e);
}

static void pass_event(struct engine *e)
{
	struct rdma_cm_event *ev;
	int tries = 0;

	while (rdma_get_cm_event(e->cdev->events, &ev) && tries++ < 1000)
		rxfer_now(); /* the double's time goes by */
	assert_true(tries < 1000);
	rdma_ack_cm_event(ev);
}

/* A client that asks for connection @index and does not wait: only the request is made. */
static struct rdma_cm_id *ask(struct engine *e, uint16_t index)
{
	struct {
		uint32_t magic;
		uint16_t version, index;
		uint8_t token[RXFER_TOKEN_BYTES];
	} said = {htonl(0x52584652), htons(1), htons(index), {0}};
	struct rdma_conn_param param = {.private_data = &said, .private_data_len = sizeof(said)};
	struct ibv_qp_init_attr qp = {.qp_type = IBV_QPT_RC};
	struct sockaddr_storage addr, from = e->cdev->addr;
	struct rdma_cm_id *id;

	memcpy(said.token, e->client_attr.token, sizeof(said.token));
	rxfer_listener_addr(e->listener, &addr);
	assert_int_equal(rdma_create_id(e->cdev->events, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(
		rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&addr, 100), 0);
	pass_event(e);
	assert_int_equal(rdma_resolve_route(id, 100), 0);
	pass_event(e);
	qp.send_cq = qp.recv_cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	qp.cap.max_send_wr = qp.cap.max_recv_wr = qp.cap.max_send_sge = qp.cap.max_recv_sge = 1;
	assert_int_equal(rdma_create_qp(id, e->cdev->pd, &qp), 0);
	assert_int_equal(rdma_connect(id, &param), 0);
	return id;
}

static void drop(struct rdma_cm_id *id)
{
	struct ibv_cq *cq = id->qp->send_cq;

	rdma_destroy_qp(id);
	ibv_destroy_cq(cq);
	rdma_destroy_id(id);
}

static void take_client_events(void *arg)
{
	struct rdma_cm_event *ev;

	while (!rdma_get_cm_event(((struct engine *)arg)->cdev->events, &ev))
		rdma_ack_cm_event(ev);
}

/* The request for the next connection overtakes the news that this one is established. */
static void a_request_that_comes_early(void **state)
{
	struct rxfer_wait wait;
	struct rxfer_conn *second;
	struct rdma_cm_id *id[3];
	struct engine e;

	(void)state;
	engine_open(&e, NULL, "global");
	engine_attr(&e, &write_shape, 5, 0, "half");
	for (uint16_t i = 0; i < 3; i++)
		id[i] = ask(&e, i);
	fake_while_waiting(take_client_events, &e);
	e.server_attr.index = 0;
	wait = engine_wait();
	assert_int_equal(rxfer_accept(e.listener, &e.server_attr, &wait, &e.server), 0);
	e.server_attr.index = 1;
	wait = engine_wait();
	assert_int_equal(rxfer_accept(e.listener, &e.server_attr, &wait, &second), 0);
	fake_while_waiting(NULL, NULL);
	take_client_events(&e);
	rxfer_conn_close(second);
	for (int i = 0; i < 3; i++)
		drop(id[i]);
	engine_close(&e);
}

static void the_server_cannot(void **state)
{
	struct fake_config config = engine_config();
	struct engine e;

	(void)state;
	config.fail_accept = (struct fake_fault){1, ECONNABORTED};
	assert_int_equal(connect_with(&e, &config, 0), -ECONNREFUSED);
	assert_int_equal(e.accepted, -ECONNABORTED);
	engine_close(&e);
	config.fail_accept.nth = 0;
	config.device[0].max_qp = 1;
	assert_int_equal(connect_with(&e, &config, 0), -ECONNREFUSED);
	assert_int_equal(e.accepted, -ENOMEM);
	assert_non_null(strstr(e.accept_error, "max_qp 1"));
	engine_close(&e);
}

static void there_is_no_way(void **state)
{
	struct fake_config config = engine_config();
	struct engine e;

	(void)state;
	config.fail_resolve = (struct fake_fault){1, ENETUNREACH};
	assert_int_equal(connect_with(&e, &config, 0), -EHOSTUNREACH);
	engine_said("no way");
	assert_int_equal(e.accepted, 1);
	engine_close(&e);
}

static void nobody_answers(void **state)
{
	struct rxfer_wait wait;
	struct sockaddr_storage addr;
	struct engine e;

	(void)state;
	engine_open(&e, NULL, "global");
	engine_attr(&e, &write_shape, 5, 0, "half");
	wait = engine_wait();
	rxfer_listener_addr(e.listener, &addr);
	wait.deadline = rxfer_now() + 100000000; /* some looks at the clock */
	assert_int_equal(rxfer_connect(e.cdev, &addr, &e.client_attr, &wait, &e.client),
			 -ETIMEDOUT);
	engine_said("no answer in time");
	engine_close(&e);
}

static void interrupted(void **state)
{
	const atomic_int stop = 1;
	struct rxfer_wait wait;
	struct engine e;

	(void)state;
	engine_open(&e, NULL, "global");
	engine_attr(&e, &write_shape, 5, 0, "half");
	wait = engine_wait();
	wait.stop = &stop;
	assert_int_equal(rxfer_accept(e.listener, &e.server_attr, &wait, &e.server), -EINTR);
	engine_close(&e);
}

/* A peer that left between two connections of ours is met while we wait for something else. */
static void a_peer_leaves_meanwhile(void **state)
{
	struct rxfer_conn *first;
	struct engine e;

	(void)state;
	assert_int_equal(connect_with(&e, NULL, 0), 0);
	first = e.client;
	rxfer_conn_close(e.server);
	e.client = e.server = NULL;
	assert_int_equal(engine_connect(&e), 0);
	assert_int_equal(rxfer_poll(first, &(struct rxfer_done){0}, 1), -ECONNRESET);
	engine_said("the data connection ended: ");
	rxfer_conn_close(first);
	engine_close(&e);
}

static void two_devices_on_one_address(void **state)
{
	struct fake_config config = engine_config();
	struct rxfer_dev *dev;
	int rc;

	(void)state;
	config.devices = 2;
	config.device[1].addr = config.device[0].addr;
	fake_start(&config);
	rc = rxfer_dev_open("fake1", "global", &dev); /* rdma_cm only ever finds the first */
	assert_int_equal(rc, -ENODEV);
	engine_said("no IP address");
	nothing_left(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_listed),
		cmocka_unit_test(devices_that_cannot_be_opened),
		cmocka_unit_test(the_first_that_is_usable),
		cmocka_unit_test(memory_that_cannot_be_registered),
		cmocka_unit_test(the_default_depth_is_what_can_be_had),
		cmocka_unit_test(the_default_depth_shrinks_at_a_failure),
		cmocka_unit_test(too_small_for_one_io),
		cmocka_unit_test(an_explicit_depth_is_had_or_refused),
		cmocka_unit_test(a_policy_that_would_overflow_the_queue),
		cmocka_unit_test(credits_of_one_io),
		cmocka_unit_test(reads_in_flight_are_agreed_upon),
		cmocka_unit_test(reads_in_flight_as_asked_for),
		cmocka_unit_test(more_reads_in_flight_than_there_are),
		cmocka_unit_test(a_stranger_is_rejected),
		cmocka_unit_test(a_request_that_comes_early),
		cmocka_unit_test(the_server_cannot),
		cmocka_unit_test(there_is_no_way),
		cmocka_unit_test(nobody_answers),
		cmocka_unit_test(interrupted),
		cmocka_unit_test(a_peer_leaves_meanwhile),
		cmocka_unit_test(two_devices_on_one_address),
	};

	return cmocka_run_group_tests_name("unit_xfer_conn", tests, NULL, NULL);
}
