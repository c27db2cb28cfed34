/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "engine.h"

struct fake_config engine_config(void)
{
	struct fake_config config;

	fake_config_init(&config);
	config.clock_read_ns = 5000000;
	return config;
}

struct rxfer_wait engine_wait(void)
{
	return (struct rxfer_wait){rxfer_now() + ENGINE_WAIT_NS, -1, NULL};
}

void engine_open(struct engine *e, const struct fake_config *config, const char *strategy)
{
	struct fake_config defaults = engine_config();

	fake_start(config ? config : &defaults);
	*e = (struct engine){.accepted = 1};
	assert_int_equal(rxfer_dev_open("", strategy, &e->cdev), 0);
	assert_int_equal(rxfer_dev_open("", "global", &e->sdev), 0);
	assert_int_equal(rxfer_listen(e->sdev, &e->listener), 0);
}

void engine_attr(struct engine *e, const struct rxfer_shape *shape, uint32_t slots,
		 uint32_t sq_depth, const char *signal)
{
	e->client_attr = (struct rxfer_conn_attr){
		.slots = slots,
		.sq_depth = sq_depth,
		.rq_depth = 2,
		.shape = *shape,
		.token = "who I am",
		.index = 3,
	};
	assert_int_equal(rxfer_sig_parse(signal, &e->client_attr.sig, &e->client_attr.sig_arg), 0);
	e->server_attr = e->client_attr;
	e->server_attr.slots = 2;
	e->server_attr.sq_depth = 0;
	e->server_attr.rq_depth = 16;
	e->server_attr.shape = (struct rxfer_shape){RXFER_SEND, 8, 1, 0};
	assert_int_equal(rxfer_sig_parse("half", &e->server_attr.sig, &e->server_attr.sig_arg), 0);
}

static void accept_it(void *arg)
{
	struct engine *e = arg;
	struct rxfer_wait wait;

	if (!fake_pending_requests())
		return;
	wait = engine_wait();
	wait.deadline -= ENGINE_WAIT_NS / 2; /* there is time left for the client to hear of it */
	e->accepted = rxfer_accept(e->listener, &e->server_attr, &wait, &e->server);
	snprintf(e->accept_error, sizeof(e->accept_error), "%s", e->accepted ? rxfer_error() : "");
}

int engine_connect(struct engine *e)
{
	struct rxfer_wait wait = engine_wait();
	struct sockaddr_storage addr;
	int rc;

	rxfer_listener_addr(e->listener, &addr);
	fake_while_waiting(accept_it, e);
	rc = rxfer_connect(e->cdev, &addr, &e->client_attr, &wait, &e->client);
	fake_while_waiting(NULL, NULL);
	return rc;
}

/* Two threads share the double's time, and one may get no CPU for a while. */
static struct rxfer_wait patient_wait(void)
{
	struct rxfer_wait wait = engine_wait();

	wait.deadline += 20ull * ENGINE_WAIT_NS;
	return wait;
}

static void *accept_thread(void *arg)
{
	struct engine *e = arg;
	struct rxfer_wait wait = patient_wait();

	e->accepted = rxfer_accept(e->listener, &e->server_attr, &wait, &e->server);
	snprintf(e->accept_error, sizeof(e->accept_error), "%s", e->accepted ? rxfer_error() : "");
	return NULL;
}

int engine_connect_both(struct engine *e)
{
	struct rxfer_wait wait = patient_wait();
	struct sockaddr_storage addr;
	pthread_t server;
	int rc;

	rxfer_listener_addr(e->listener, &addr);
	assert_int_equal(pthread_create(&server, NULL, accept_thread, e), 0);
	rc = rxfer_connect(e->cdev, &addr, &e->client_attr, &wait, &e->client);
	assert_int_equal(pthread_join(server, NULL), 0);
	return rc;
}

void engine_close(struct engine *e)
{
	char leaks[256];

	rxfer_conn_close(e->client);
	rxfer_conn_close(e->server);
	rxfer_listener_close(e->listener);
	rxfer_dev_close(e->cdev);
	rxfer_dev_close(e->sdev);
	if (fake_leaks(leaks, sizeof(leaks)))
		fail_msg("left behind: %s", leaks);
	if (fake_violations())
		fail_msg("%u violations: %s", fake_violations(), fake_violation(0));
}

bool engine_idle(const struct rxfer_conn *conn)
{
	return rxfer_idle(conn) && rxfer_sq_posted(&conn->sq) == 0 && conn->sq.reserved == 1 &&
	       conn->inflight == 0 && !rxfer_sig_tail_silent(&conn->sig) &&
	       fake_sq_posted(conn->id->qp) == 0;
}

void engine_said(const char *words)
{
	if (!strstr(rxfer_error(), words))
		fail_msg("it said: %s; wanted: %s", rxfer_error(), words);
}
