/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Service levels on the test double: both queue pairs have the one asked for or there is no
 * connection, and nothing is left of what could not be made. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "fakehca/engine.h"

static const struct rxfer_shape read_shape = {RXFER_READ, 1024, 4, 3};

static void open_with(struct engine *e, const struct fake_config *config, uint8_t sl)
{
	engine_open(e, config, "global");
	engine_attr(e, &read_shape, 5, 0, "half");
	e->client_attr.sl = e->server_attr.sl = sl;
}

static void connect_with(struct engine *e, const struct fake_config *config, uint8_t sl)
{
	open_with(e, config, sl);
	assert_int_equal(engine_connect_both(e), 0);
}

static struct ibv_qp_attr qp_of(const struct rxfer_conn *conn)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(conn->id->qp, &attr, IBV_QP_AV, &init), 0);
	return attr;
}

static int found(const struct rxfer_conn *conn)
{
	struct rxfer_conn_info info;

	rxfer_conn_info(conn, &info);
	return info.sl;
}

static int reads(const struct rxfer_conn *conn)
{
	struct rxfer_conn_info info;

	rxfer_conn_info(conn, &info);
	return (int)info.rd_atomic;
}

/* The peer's memory is read and written: its QP grants it. */
static void move(struct engine *e, enum rxfer_opcode op)
{
	static char here[1024], there[1024];
	struct rxfer_frag frag = {here, sizeof(here)};
	struct rxfer_mem *local, *remote;
	struct rxfer_done done;
	struct rxfer_seg seg;
	int n;

	memset(there, op == RXFER_READ ? 'r' : 0, sizeof(there));
	memset(here, op == RXFER_READ ? 0 : 'w', sizeof(here));
	assert_int_equal(rxfer_mem_add(e->cdev, here, sizeof(here), RXFER_LOCAL, &local), 0);
	assert_int_equal(rxfer_mem_add(e->sdev, there, sizeof(there),
				       RXFER_PEER_READ | RXFER_PEER_WRITE, &remote),
			 0);
	seg = (struct rxfer_seg){(uintptr_t)there, sizeof(there), rxfer_mem_rkey(remote)};
	n = op == RXFER_READ ? rxfer_post_read(e->client, &frag, 1, &seg, 1, 7, RXFER_MUST_SIGNAL)
			     : rxfer_post_write(e->client, &frag, 1, &seg, 1, 7, RXFER_MUST_SIGNAL);
	assert_int_equal(n, 0);
	fake_run();
	assert_int_equal(rxfer_poll(e->client, &done, 1), 1);
	assert_memory_equal(here, there, sizeof(here));
	rxfer_mem_del(local);
	rxfer_mem_del(remote);
}

static void both_ends_have_it(const struct fake_config *config, uint8_t sl)
{
	struct engine e;

	open_with(&e, config, sl);
	e.client_attr.rd_atomic = e.server_attr.rd_atomic = 3;
	e.client_attr.rnr_retry = 2;
	e.server_attr.rnr_retry = 5;
	assert_int_equal(engine_connect_both(&e), 0);
	assert_int_equal(e.accepted, 0);
	assert_int_equal(found(e.client), sl);
	assert_int_equal(found(e.server), sl);
	assert_int_equal(qp_of(e.client).ah_attr.sl, sl);
	assert_int_equal(qp_of(e.server).ah_attr.sl, sl);
	assert_int_equal(reads(e.client), 3);
	assert_int_equal(reads(e.server), 3);
	assert_int_equal(qp_of(e.client).rnr_retry, 5);
	assert_int_equal(qp_of(e.server).rnr_retry, 2);
	move(&e, RXFER_READ);
	move(&e, RXFER_WRITE);
	engine_close(&e);
}

static void the_level_that_was_asked_for(void **state)
{
	struct fake_config config = engine_config();

	(void)state;
	both_ends_have_it(&config, 0);
	both_ends_have_it(&config, 1);
	both_ends_have_it(&config, 7);
	config.device[0].infiniband = true;
	both_ends_have_it(&config, 15);
}

/* One end by rdma_cm's own steps, the other by ours, and the other way round. */
static void only_one_end_asks(void **state)
{
	struct engine e;

	(void)state;
	for (int server = 0; server < 2; server++) {
		open_with(&e, NULL, 0);
		*(server ? &e.server_attr.sl : &e.client_attr.sl) = 6;
		assert_int_equal(engine_connect_both(&e), 0);
		assert_int_equal(found(e.client), server ? 0 : 6);
		assert_int_equal(found(e.server), server ? 6 : 0);
		assert_int_equal(reads(e.client), 16);
		move(&e, RXFER_READ);
		engine_close(&e);
	}
}

/* What the accepting side puts into its QP is its answer, not the other one's offer. */
static void fewer_reads_than_offered(void **state)
{
	struct engine e;

	(void)state;
	open_with(&e, NULL, 2);
	e.server_attr.rd_atomic = 4;
	assert_int_equal(engine_connect_both(&e), 0);
	assert_int_equal(reads(e.client), 4);
	assert_int_equal(reads(e.server), 4);
	assert_int_equal(qp_of(e.server).max_dest_rd_atomic, 4);
	engine_close(&e);
}

static void extensions_are_those_that_both_have(void **state)
{
	struct fake_config config = engine_config();
	struct ibv_ece ece;
	struct engine e;

	(void)state;
	config.device[0].ece_vendor = 9;
	config.device[0].ece_options = 5;
	connect_with(&e, &config, 2);
	assert_int_equal(ibv_query_ece(e.client->id->qp, &ece), 0);
	assert_int_equal(ece.options, 5);
	engine_close(&e);
}

/* As rxe does, and several NICs: over Ethernet it tells nothing, which is not to say 0. */
static void a_driver_that_does_not_tell(void **state)
{
	struct fake_config config = engine_config();
	struct engine e;

	(void)state;
	config.device[0].sl_told = 0;
	connect_with(&e, &config, 3);
	assert_int_equal(found(e.client), -1);
	assert_int_equal(found(e.server), -1);
	engine_close(&e);
	connect_with(&e, &config, 0);
	assert_int_equal(found(e.client), 0);
	engine_close(&e);
}

/* @client: what comes of it there; the server finds out first, by itself. */
static void no_connection(const struct fake_config *config, uint8_t sl, int server,
			  const char *words)
{
	struct engine e;

	open_with(&e, config, sl);
	assert_int_equal(engine_connect_both(&e), -ECONNREFUSED);
	assert_int_equal(e.accepted, server);
	if (!strstr(e.accept_error, words))
		fail_msg("it said: %s; wanted: %s", e.accept_error, words);
	assert_null(e.client);
	assert_null(e.server);
	engine_close(&e);
}

/* The client finds out, when the server has answered. */
static void no_connection_for_us(const struct fake_config *config, int client, const char *words)
{
	struct engine e;

	open_with(&e, config, 4);
	assert_int_equal(engine_connect_both(&e), client);
	engine_said(words);
	assert_int_equal(e.accepted, -ECONNREFUSED);
	engine_close(&e);
}

static void never_another_level(void **state)
{
	struct fake_config config = engine_config();

	(void)state;
	config.device[0].sl_told = 2;
	no_connection(&config, 3, -EOPNOTSUPP,
		      "--sl 3: the queue pair on fake0 has service level 2");
	config.device[0].infiniband = true;
	config.device[0].sl_told = 0; /* InfiniBand's drivers do tell: 0 is 0 */
	no_connection(&config, 3, -EOPNOTSUPP, "has service level 0");
	config.device[0].sl_told = 15;
	config.fail_query_qp = (struct fake_fault){1, EIO};
	no_connection(&config, 3, -EOPNOTSUPP, "does not tell which service level");
}

static void a_level_that_there_is_not(void **state)
{
	struct fake_config config = engine_config();
	struct rxfer_wait wait;
	struct engine e;

	(void)state;
	open_with(&e, &config, 8);
	assert_int_equal(engine_connect(&e), -EOPNOTSUPP);
	engine_said("--sl 7 or less");
	wait = engine_wait();
	assert_int_equal(rxfer_accept(e.listener, &e.server_attr, &wait, &e.server), -EOPNOTSUPP);
	engine_close(&e);
	config.device[0].iwarp = true;
	open_with(&e, &config, 1);
	assert_int_equal(engine_connect(&e), -EOPNOTSUPP);
	engine_said("iWARP, which has no service levels");
	engine_close(&e);
	open_with(&e, &config, 0);
	assert_int_equal(engine_connect(&e), 0);
	assert_int_equal(found(e.client), -1);
	engine_close(&e);
}

/* The server's steps are the first three, the client's the next. */
static void a_step_that_fails(void **state)
{
	static const char *const steps[] = {"INIT", "RTR", "RTS"};
	struct fake_config config = engine_config();
	char words[64];

	(void)state;
	for (uint32_t nth = 1; nth <= 3; nth++) {
		config.fail_modify_qp = (struct fake_fault){nth, EINVAL};
		no_connection(&config, 4, -EINVAL, steps[nth - 1]);
	}
	for (uint32_t nth = 4; nth <= 6; nth++) {
		snprintf(words, sizeof(words), "refuses to make the queue pair ready (%s)",
			 steps[nth - 4]);
		config.fail_modify_qp = (struct fake_fault){nth, EINVAL};
		no_connection_for_us(&config, -EINVAL, words);
	}
}

static void the_last_word_fails(void **state)
{
	struct fake_config config = engine_config();

	(void)state;
	config.fail_establish = (struct fake_fault){1, ENODATA};
	no_connection_for_us(&config, -ENODATA, "rdma_establish on fake0");
	config.fail_establish.nth = 0;
	config.fail_accept = (struct fake_fault){1, ECONNABORTED};
	no_connection(&config, 4, -ECONNABORTED, "rdma_accept on fake0");
}

static void nobody_listens(void **state)
{
	struct rxfer_wait wait;
	struct sockaddr_storage addr;
	struct engine e;

	(void)state;
	open_with(&e, NULL, 4);
	wait = engine_wait();
	rxfer_listener_addr(e.listener, &addr);
	rxfer_listener_close(e.listener);
	e.listener = NULL;
	assert_int_equal(rxfer_connect(e.cdev, &addr, &e.client_attr, &wait, &e.client),
			 -ECONNREFUSED);
	engine_close(&e);
}

/* Nobody accepts: the QP is hidden while the wait ends. */
static void nobody_answers(void **state)
{
	struct rxfer_wait wait;
	struct sockaddr_storage addr;
	struct engine e;

	(void)state;
	open_with(&e, NULL, 4);
	wait = engine_wait();
	wait.deadline = rxfer_now() + 100000000;
	rxfer_listener_addr(e.listener, &addr);
	assert_int_equal(rxfer_connect(e.cdev, &addr, &e.client_attr, &wait, &e.client),
			 -ETIMEDOUT);
	engine_close(&e);
}

/* Such a connection ends like any other, and is met as such while we wait for the next one. */
static void the_peer_leaves(void **state)
{
	struct rxfer_conn *first;
	struct engine e;

	(void)state;
	connect_with(&e, NULL, 4);
	first = e.client;
	rxfer_conn_close(e.server);
	e.client = e.server = NULL;
	assert_int_equal(engine_connect_both(&e), 0);
	assert_int_equal(rxfer_poll(first, &(struct rxfer_done){0}, 1), -ECONNRESET);
	engine_said("the data connection ended: ");
	rxfer_conn_close(first);
	engine_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_level_that_was_asked_for),
		cmocka_unit_test(only_one_end_asks),
		cmocka_unit_test(fewer_reads_than_offered),
		cmocka_unit_test(extensions_are_those_that_both_have),
		cmocka_unit_test(a_driver_that_does_not_tell),
		cmocka_unit_test(never_another_level),
		cmocka_unit_test(a_level_that_there_is_not),
		cmocka_unit_test(a_step_that_fails),
		cmocka_unit_test(the_last_word_fails),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(nobody_answers),
		cmocka_unit_test(the_peer_leaves),
	};

	return cmocka_run_group_tests_name("unit_xfer_path", tests, NULL, NULL);
}
