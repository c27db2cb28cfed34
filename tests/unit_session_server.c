/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The server's side of a session with --bidir; this test is the client. Whatever that says, the
 * server names what is wrong, and leaves nothing behind.
 */
#include "peers_fixture.h"

static int serve_it(struct scene *s)
{
	struct host host = {.device = "fake0", .timeout_ns = TIMEOUT_NS, .runtime = &s->runtime};

	return session_serve(&s->its, &host);
}

static void meet_server(struct scene *s)
{
	set_scene(s);
	meet(s, serve_it, true);
}

/* Up to the server's READY. */
static void configure_server(struct scene *s, struct ready *ready)
{
	json_t *body;

	our_device(s);
	say_body(s, MSG_CONFIG, config_to_json(&s->cfg, s->token));
	body = hear(s, MSG_READY);
	assert_int_equal(ready_from_json(body, ready), 0);
	json_decref(body);
}

static json_t *our_memory(struct scene *s)
{
	struct target mine = exposed_target(&s->exposed);
	json_t *body = json_object();

	if (s->at)
		mine.addr = *s->at;
	target_to_json(&mine, body);
	return body;
}

static void connect_server(struct scene *s)
{
	struct rxfer_conn_attr attr;
	struct rxfer_wait wait;
	struct ready ready;

	configure_server(s, &ready);
	usleep(s->pause_us);
	if (s->cfg.bidir)
		say_body(s, MSG_MEMORY, our_memory(s));
	wait = soon();
	attr = our_attr(s);
	assert_int_equal(rxfer_connect(s->dev, &ready.addr, &attr, &wait, &s->conn), 0);
	drop(hear(s, MSG_CONNECTED));
}

/* The device of this end has no immediate data, and no such service level. What it cannot do at all
 * is told apart from what it cannot do so. */
static void what_the_device_cannot_do(void **state)
{
	static const struct {
		uint64_t op;
		uint64_t sl;
		const char *reason;
		bool unable;
	} cases[] = {
		{OP_WRITE_IMM, 0, "iWARP has no immediate data", true},
		{OP_WRITE, 1, "--sl 1 cannot be had", false},
	};
	const char *reason;
	struct scene s;
	json_t *body;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_scene_on(&s, true);
		meet(&s, serve_it, true);
		s.cfg.op = cases[i].op;
		s.cfg.sl = cases[i].sl;
		say_body(&s, MSG_CONFIG, config_to_json(&s.cfg, s.token));
		body = hear(&s, MSG_FAIL);
		reason = json_string_value(json_object_get(body, "reason"));
		assert_non_null(reason);
		assert_non_null(strstr(reason, cases[i].reason));
		assert_int_equal(json_integer_value(json_object_get(body, "unable")),
				 cases[i].unable);
		json_decref(body);
		end_scene(&s);
		assert_int_equal(s.rc, -EOPNOTSUPP);
	}
}

/* It is ready for GO. */
static void start_server(struct scene *s)
{
	say(s, MSG_START, "{\"messages\":[0],\"cut_short\":0}");
	drop(hear(s, MSG_STARTED));
}

static void memory_refused(const char *name, json_t *value, const char *part)
{
	struct ready ready;
	struct scene s;
	json_t *body;

	meet_server(&s);
	configure_server(&s, &ready);
	body = our_memory(&s);
	if (value)
		json_object_set_new(body, name, value);
	else
		json_object_del(body, name);
	say_body(&s, MSG_MEMORY, body);
	it_fails(&s, part);
}

static void memory_that_is_none(void **state)
{
	static const char *const names[] = {"memory", "bytes", "key"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		memory_refused(names[i], NULL, names[i]);
		memory_refused(names[i], json_integer(-1), names[i]);
		memory_refused(names[i], json_string("4096"), names[i]);
	}
	memory_refused("key", json_integer(1ll << 32), "key");
	memory_refused("bytes", json_integer(2 * 4096 - 1), "8191 bytes of memory");
}

/* It cannot be known before it is tried; the sum of address and length does not wrap, at least. */
static void memory_that_is_elsewhere(void **state)
{
	static const uint64_t addrs[] = {0, 4096, INT64_MAX};
	struct scene s;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		meet_server(&s);
		s.at = &addrs[i];
		connect_server(&s);
		start_server(&s);
		say(&s, MSG_GO, "{}");
		it_fails(&s, "memory is not open to us there");
	}
}

/* What it takes to make it is known to both ends, and comes on top of --timeout. */
static void memory_that_takes_its_time(void **state)
{
	struct scene s;

	(void)state;
	meet_server(&s);
	s.cfg.timeout_ns = 200 * MS;
	s.cfg.size = 16 << 20; /* four times that at each end: a second */
	s.pause_us = 800000;
	connect_server(&s);
	end_scene(&s);
	assert_int_equal(s.rc, -ECONNRESET);
}

static void go_when_it_is_not_due(void **state)
{
	struct scene s;

	(void)state;
	meet_server(&s);
	connect_server(&s);
	say(&s, MSG_GO, "{}");
	it_fails(&s, "message 12 when none such was due");

	meet_server(&s);
	connect_server(&s);
	start_server(&s);
	say(&s, MSG_GO, "{}");
	say(&s, MSG_GO, "{}");
	it_fails(&s, "message 12 when none such was due");

	meet_server(&s);
	s.cfg.bidir = false;
	connect_server(&s);
	say(&s, MSG_START, "{\"messages\":[0]}");
	drop(hear(&s, MSG_STARTED));
	say(&s, MSG_GO, "{}");
	it_fails(&s, "message 12 when none such was due");
}

static void malformed_starts(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{"{}", "messages"},
		{"{\"messages\":[0,0],\"cut_short\":0}", "messages"},
		{"{\"messages\":[-1],\"cut_short\":0}", "messages"},
		{"{\"messages\":[0]}", "cut_short"},
		{"{\"messages\":[0],\"cut_short\":\"1\"}", "cut_short"},
		{"{\"messages\":[0],\"cut_short\":-1}", "cut_short"},
		{"{\"messages\":[0],\"cut_short\":1.5}", "cut_short"},
	};
	struct scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		meet_server(&s);
		connect_server(&s);
		say(&s, i % 2 ? MSG_STOP : MSG_START, cases[i].text);
		it_fails(&s, cases[i].part);
	}
}

/* One phase of the server's load; ns from GO until its first bytes arrive. */
static uint64_t server_goes(struct scene *s)
{
	uint64_t before, start;

	start_server(s);
	before = fake_stats()->bytes_written;
	start = rxfer_now();
	say(s, MSG_GO, "{}");
	while (fake_stats()->bytes_written == before && rxfer_now() < start + TIMEOUT_NS)
		usleep(100);
	return rxfer_now() - start;
}

/* Who starts much later than the client measures another time than that one. */
static void the_server_begins_at_once(void **state)
{
	uint64_t best = UINT64_MAX;
	struct scene s;

	(void)state;
	meet_server(&s);
	connect_server(&s);
	for (int i = 0; i < 4; i++) {
		uint64_t ns = server_goes(&s);

		best = ns < best ? ns : best;
	}
	end_scene(&s);
	assert_true(best < 20 * MS);
	assert_int_equal(s.rc, -ECONNRESET);
}

/* A whole run, up to RESULT. */
static void server_to_result(struct scene *s)
{
	json_t *body;

	meet_server(s);
	connect_server(s);
	server_goes(s);
	server_goes(s);
	say(s, MSG_STOP, "{\"messages\":[0],\"cut_short\":0}");
	body = hear(s, MSG_RESULT);
	assert_int_equal(json_integer_value(json_object_get(body, "ios")), 20);
	assert_int_equal(json_integer_value(json_object_get(body, "moved_bytes")), 20 * 64);
	json_decref(body);
}

static void what_follows_a_result(void **state)
{
	struct scene s;

	(void)state;
	server_to_result(&s);
	say(&s, MSG_STOP, "{\"messages\":[0],\"cut_short\":1}"); /* crossed the RESULT */
	say(&s, MSG_CLOSED, "{}");
	say(&s, MSG_BYE, "{}");
	end_scene(&s);
	assert_int_equal(s.rc, 1);

	server_to_result(&s);
	say(&s, MSG_BYE, "{}");
	it_fails(&s, "message 11 when none such was due");

	server_to_result(&s);
	end_scene(&s); /* gone without a word */
	assert_int_equal(s.rc, -ECONNRESET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_device_cannot_do),
		cmocka_unit_test(memory_that_is_none),
		cmocka_unit_test(memory_that_is_elsewhere),
		cmocka_unit_test(memory_that_takes_its_time),
		cmocka_unit_test(go_when_it_is_not_due),
		cmocka_unit_test(malformed_starts),
		cmocka_unit_test(the_server_begins_at_once),
		cmocka_unit_test(what_follows_a_result),
	};

	return cmocka_run_group_tests_name("unit_session_server", tests, NULL, NULL);
}
