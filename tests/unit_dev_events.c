/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a device reports by itself: who is told, in which words, and which failure it explains. Each
 * test ends with engine_close(): the double objects to queues that go before their events are
 * acknowledged.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "fakehca/engine.h"

struct ends {
	struct engine e;
	unsigned int lines;
	char line[200];
	char traced[1000];
};

static void on_event(void *arg, const char *line)
{
	struct ends *s = arg;

	s->lines++;
	snprintf(s->line, sizeof(s->line), "%s", line);
}

static void on_trace(void *arg, const char *line)
{
	struct ends *s = arg;
	size_t used = strlen(s->traced);

	snprintf(s->traced + used, sizeof(s->traced) - used, "%s\n", line);
}

static void open_ends(struct ends *s)
{
	*s = (struct ends){0};
	engine_open(&s->e, NULL, "global");
}

static void connect_ends(struct ends *s)
{
	struct rxfer_shape shape = {RXFER_WRITE, 100, 1, 1};

	engine_attr(&s->e, &shape, 4, 0, "half");
	assert_int_equal(engine_connect(&s->e), 0);
}

static void observe(struct ends *s, struct rxfer_dev *dev)
{
	struct rxfer_observer o = {.event = on_event, .arg = s};

	rxfer_dev_observe(dev, &o);
}

/* Nothing is blamed: the words of a failure stay as they are. */
static void blames_nothing(struct rxfer_dev *dev)
{
	rxfer_fail(EIO, "the failure");
	assert_int_equal(rxfer_dev_blame(dev, -EIO), -EIO);
	assert_string_equal(rxfer_error(), "the failure");
}

static void blames(struct rxfer_dev *dev, const char *words)
{
	rxfer_fail(EIO, "the failure");
	assert_int_equal(rxfer_dev_blame(dev, -EPROTO), -EPROTO);
	engine_said("the failure; ");
	engine_said(" s before: ");
	engine_said(words);
}

static const struct {
	enum ibv_event_type type;
	bool blamed;
	const char *words; /* NULL: not told */
} cases[] = {
	{IBV_EVENT_PORT_ERR, true, "port 1 of fake0 went down: look at its link"},
	{IBV_EVENT_PORT_ACTIVE, false, "port 1 of fake0 is active"},
	{IBV_EVENT_LID_CHANGE, true, "port 1 of fake0 got another LID"},
	{IBV_EVENT_GID_CHANGE, true, "port 1 of fake0 has another table of GIDs"},
	{IBV_EVENT_PKEY_CHANGE, true, "port 1 of fake0 has other partition keys"},
	{IBV_EVENT_SM_CHANGE, false, "port 1 of fake0 has another subnet manager"},
	{IBV_EVENT_CLIENT_REREGISTER, false, "port 1 of fake0 is to register anew"},
	{IBV_EVENT_DEVICE_FATAL, true, "device fake0 has failed and needs a reset: see dmesg"},
	{IBV_EVENT_QP_FATAL, true, "queue pair 1 of fake0 has failed"},
	{IBV_EVENT_QP_REQ_ERR, true, "queue pair 1 of fake0 got a request from its peer"},
	{IBV_EVENT_QP_ACCESS_ERR, true, "queue pair 1 of fake0 got a request that its peer has no"},
	{IBV_EVENT_CQ_ERR, true, "a completion queue of fake0 has failed"},
	{IBV_EVENT_SRQ_ERR, false, "device fake0 reports: some event"},
	{IBV_EVENT_COMM_EST, false, NULL},
	{IBV_EVENT_SQ_DRAINED, false, NULL},
	{IBV_EVENT_QP_LAST_WQE_REACHED, false, NULL},
};

static void each_event_has_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ends s;

		open_ends(&s);
		connect_ends(&s);
		observe(&s, s.e.cdev);
		fake_raise(cases[i].type);
		rxfer_dev_look(s.e.cdev);
		assert_int_equal(s.lines, cases[i].words ? 1 : 0);
		if (cases[i].words && strncmp(s.line, cases[i].words, strlen(cases[i].words)))
			fail_msg("it said: %s; wanted: %s", s.line, cases[i].words);
		if (cases[i].blamed)
			blames(s.e.cdev, cases[i].words);
		else
			blames_nothing(s.e.cdev);
		engine_close(&s.e);
	}
}

/* What comes between the last look and the failure counts, too. */
static void the_last_word_is_heard(void **state)
{
	struct ends s;

	(void)state;
	open_ends(&s);
	observe(&s, s.e.cdev);
	blames_nothing(s.e.cdev);
	fake_raise(IBV_EVENT_PORT_ERR);
	blames(s.e.cdev, "went down");
	assert_int_equal(s.lines, 1);
	assert_int_equal(rxfer_dev_blame(NULL, -EIO), -EIO);
	engine_close(&s.e);
}

static void *raise_later(void *arg)
{
	(void)arg;
	usleep(20000);
	fake_raise(IBV_EVENT_PORT_ERR);
	return NULL;
}

/* A WR fails, and only then the device says that its port is down. */
static void a_moment_later_is_heard_too(void **state)
{
	pthread_t thread;
	struct ends s;

	(void)state;
	open_ends(&s);
	observe(&s, s.e.cdev);
	assert_int_equal(pthread_create(&thread, NULL, raise_later, NULL), 0);
	rxfer_fail(EIO, "the failure");
	assert_int_equal(rxfer_dev_blame(s.e.cdev, -EIO), -EIO);
	engine_said("the failure; ");
	engine_said("went down");
	assert_int_equal(pthread_join(thread, NULL), 0);
	engine_close(&s.e);
}

/* That the port came back, or changed its addresses, does not explain what its fall did. */
static void the_gravest_is_blamed(void **state)
{
	struct ends s;

	(void)state;
	open_ends(&s);
	observe(&s, s.e.cdev);
	fake_raise(IBV_EVENT_PORT_ERR);
	fake_raise(IBV_EVENT_GID_CHANGE);
	fake_raise(IBV_EVENT_PORT_ACTIVE);
	rxfer_dev_look(s.e.cdev);
	assert_int_equal(s.lines, 3);
	blames(s.e.cdev, "went down");
	fake_raise(IBV_EVENT_DEVICE_FATAL);
	blames(s.e.cdev, "needs a reset");
	engine_close(&s.e);
}

static void what_was_before_is_told_and_not_blamed(void **state)
{
	struct ends s;

	(void)state;
	open_ends(&s);
	fake_raise(IBV_EVENT_PORT_ERR);
	observe(&s, s.e.cdev);
	assert_int_equal(s.lines, 1);
	blames_nothing(s.e.cdev);
	engine_close(&s.e);
}

/* QP 1 and its CQ are the client's. Whoever looks first tells of them, and only their end blames
 * them. */
static void another_ends_queue_is_told_of_and_not_blamed(void **state)
{
	static const enum ibv_event_type types[] = {IBV_EVENT_QP_FATAL, IBV_EVENT_CQ_ERR};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ends s;

		open_ends(&s);
		connect_ends(&s);
		observe(&s, s.e.sdev);
		fake_raise(types[i]);
		rxfer_dev_look(s.e.sdev);
		assert_int_equal(s.lines, 1);
		blames_nothing(s.e.sdev);
		engine_close(&s.e);
	}
}

/* An end that is deaf leaves the events to the other. */
static void each_event_is_told_once(void **state)
{
	struct rxfer_observer deaf = {.trace = on_trace};
	struct ends s;

	(void)state;
	open_ends(&s);
	deaf.arg = &s;
	rxfer_dev_observe(s.e.sdev, &deaf);
	observe(&s, s.e.cdev);
	fake_raise(IBV_EVENT_PORT_ERR);
	rxfer_dev_look(s.e.sdev);
	blames_nothing(s.e.sdev);
	assert_int_equal(s.lines, 0);
	rxfer_dev_look(s.e.cdev);
	rxfer_dev_look(s.e.cdev);
	assert_int_equal(s.lines, 1);
	engine_close(&s.e);
}

static void events_of_rdma_cm_are_traced(void **state)
{
	struct rxfer_observer o = {.trace = on_trace};
	struct ends s;

	(void)state;
	open_ends(&s);
	o.arg = &s;
	rxfer_dev_observe(s.e.cdev, &o);
	connect_ends(&s);
	assert_string_equal(s.traced, "rdma_cm on fake0: address resolved, status 0\n"
				      "rdma_cm on fake0: route resolved, status 0\n"
				      "rdma_cm on fake0: established, status 0, connection 3\n");
	engine_close(&s.e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_event_has_words),
		cmocka_unit_test(the_last_word_is_heard),
		cmocka_unit_test(a_moment_later_is_heard_too),
		cmocka_unit_test(the_gravest_is_blamed),
		cmocka_unit_test(what_was_before_is_told_and_not_blamed),
		cmocka_unit_test(another_ends_queue_is_told_of_and_not_blamed),
		cmocka_unit_test(each_event_is_told_once),
		cmocka_unit_test(events_of_rdma_cm_are_traced),
	};

	return cmocka_run_group_tests_name("unit_dev_events", tests, NULL, NULL);
}
