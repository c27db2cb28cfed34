/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A session with --bidir, on the test double, where one end is the program's, in a thread, and the
 * other one is this test: it says what is due, or something else, and has real memory and
 * connections behind it. Whatever it says, the program's end names what is wrong, and leaves
 * nothing behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fakehca/fakehca.h"
#include "session.h"

#define MS	   1000000ull
#define TIMEOUT_NS (3000 * MS)

/* struct scene - both ends. What is not the program's: @ours, and what hangs on @dev. */
struct scene {
	struct control ours, its;
	struct runtime runtime;
	volatile sig_atomic_t stop;
	struct cfg cfg;
	struct layout layout;
	uint8_t token[RXFER_TOKEN_BYTES];
	struct rxfer_dev *dev;
	struct exposed exposed;
	struct rxfer_listener *listener;
	struct rxfer_conn *conn;
	struct peer peer;
	pthread_t thread;
	const uint64_t *at; /* where our memory is said to be; NULL: where it is */

	/* Of the program's end. */
	int (*run)(struct scene *s);
	int rc;
	char error[512];
	struct result result;
};

static struct rxfer_wait soon(void)
{
	return (struct rxfer_wait){rxfer_now() + TIMEOUT_NS, -1, NULL};
}

static void *its_thread(void *arg)
{
	struct scene *s = arg;

	s->rc = s->run(s);
	snprintf(s->error, sizeof(s->error), "%s", s->rc < 0 ? rxfer_error() : "");
	control_close(&s->its);
	return NULL;
}

static int serve_it(struct scene *s)
{
	return session_serve(&s->its, "fake0", TIMEOUT_NS, &s->runtime);
}

static int run_it(struct scene *s)
{
	struct rxfer_wait wait = soon();
	struct peer peer;
	int rc = session_hello(&s->its, true, &peer, &wait);

	return rc ? rc : session_run(&s->its, &peer, &s->cfg, &s->runtime, &s->result);
}

static void start_it(struct scene *s, int (*run)(struct scene *))
{
	s->run = run;
	assert_int_equal(pthread_create(&s->thread, NULL, its_thread, s), 0);
}

static void set_scene(struct scene *s)
{
	struct fake_config config;

	fake_config_init(&config);
	config.real_clock = true;
	config.auto_steps = 64;
	fake_start(&config);
	memset(s, 0, sizeof(*s));
	s->runtime = (struct runtime){.stop = &s->stop, .topo = {.cpus = 2}};
	cfg_init(&s->cfg);
	snprintf(s->cfg.device, sizeof(s->cfg.device), "fake0");
	s->cfg.bidir = true;
	s->cfg.op = OP_WRITE;
	s->cfg.size = 64;
	s->cfg.depth = 2;
	s->cfg.iters = 20;
	s->cfg.timeout_ns = TIMEOUT_NS;
	result_init(&s->result);
	assert_int_equal(control_pair(&s->ours, &s->its), 0);
}

static void our_device(struct scene *s)
{
	struct roles both = {true, true};

	layout_make(&s->cfg, &s->layout);
	assert_int_equal(rxfer_dev_open("fake0", "global", &s->dev), 0);
	assert_int_equal(exposed_make(&s->cfg, &s->layout, both, s->dev, &s->exposed), 0);
}

/* Both ends are gone, and nothing is left. */
static void end_scene(struct scene *s)
{
	char leaks[256];

	control_close(&s->ours);
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	rxfer_conn_close(s->conn);
	rxfer_listener_close(s->listener);
	exposed_drop(&s->exposed);
	rxfer_dev_close(s->dev);
	if (fake_leaks(leaks, sizeof(leaks)))
		fail_msg("left behind: %s", leaks);
	if (fake_violations())
		fail_msg("%u violations: %s", fake_violations(), fake_violation(0));
}

static void say(struct scene *s, enum message type, const char *text)
{
	struct rxfer_wait wait = soon();
	json_t *body = json_loads(text, 0, NULL);

	assert_non_null(body);
	assert_int_equal(control_send(&s->ours, type, body, &wait), 0);
}

static json_t *hear(struct scene *s, enum message want)
{
	struct rxfer_wait wait = soon();
	json_t *body = NULL;

	if (control_expect(&s->ours, want, &body, &wait))
		fail_msg("message %d is due: %s", want, rxfer_error());
	return body;
}

static void drop(json_t *body)
{
	json_decref(body);
}

/* The program's end says why it ends, in words with @part in them. */
static void it_fails(struct scene *s, const char *part)
{
	json_t *body = hear(s, MSG_FAIL);
	const char *reason = json_string_value(json_object_get(body, "reason"));

	assert_non_null(reason);
	if (!strstr(reason, part))
		fail_msg("no \"%s\" in: %s", part, reason);
	json_decref(body);
	end_scene(s);
	assert_true(s->rc < 0);
	assert_non_null(strstr(s->error, part));
}

/* ---- This test is the client ---- */

static void meet_server(struct scene *s)
{
	struct rxfer_wait wait = soon();

	set_scene(s);
	start_it(s, serve_it);
	assert_int_equal(session_hello(&s->ours, true, &s->peer, &wait), 0);
}

static json_t *good_config(struct scene *s)
{
	struct target mine = exposed_target(&s->exposed);
	json_t *body = config_to_json(&s->cfg, s->token);

	if (s->at)
		mine.addr = *s->at;
	target_to_json(&mine, body);
	return body;
}

static void connect_server(struct scene *s)
{
	struct rxfer_wait wait = soon();
	struct rxfer_conn_attr attr;
	struct ready ready;
	json_t *body;

	our_device(s);
	assert_int_equal(control_send(&s->ours, MSG_CONFIG, good_config(s), &wait), 0);
	body = hear(s, MSG_READY);
	assert_int_equal(ready_from_json(body, &ready), 0);
	json_decref(body);
	assert_int_equal(
		conn_attr(&s->cfg, &s->layout, (struct roles){true, true}, s->token, 0, &attr), 0);
	assert_int_equal(rxfer_connect(s->dev, &ready.addr, &attr, &wait, &s->conn), 0);
	drop(hear(s, MSG_CONNECTED));
}

static void config_refused(const char *name, json_t *value, const char *part)
{
	struct rxfer_wait wait;
	struct scene s;
	json_t *body;

	meet_server(&s);
	our_device(&s);
	wait = soon();
	body = good_config(&s);
	if (value)
		json_object_set_new(body, name, value);
	else
		json_object_del(body, name);
	assert_int_equal(control_send(&s.ours, MSG_CONFIG, body, &wait), 0);
	it_fails(&s, part);
}

static void memory_that_is_none(void **state)
{
	static const char *const names[] = {"memory", "bytes", "key"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		config_refused(names[i], NULL, names[i]);
		config_refused(names[i], json_integer(-1), names[i]);
		config_refused(names[i], json_string("4096"), names[i]);
	}
	config_refused("key", json_integer(1ll << 32), "key");
	config_refused("bytes", json_integer(2 * 4096 - 1), "8191 bytes of memory");
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
		say(&s, MSG_START, "{\"messages\":[0],\"cut_short\":0}");
		drop(hear(&s, MSG_STARTED));
		say(&s, MSG_GO, "{}");
		it_fails(&s, "memory is not open to us there");
	}
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
	say(&s, MSG_START, "{\"messages\":[0],\"cut_short\":0}");
	drop(hear(&s, MSG_STARTED));
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

	say(s, MSG_START, "{\"messages\":[0],\"cut_short\":0}");
	drop(hear(s, MSG_STARTED));
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

/* ---- This test is the server ---- */

/* READY says @value of @member, where that is not NULL. */
static void greet_client(struct scene *s, const char *member, json_t *value)
{
	struct rxfer_wait wait = soon();
	struct rxfer_conn_attr attr;
	struct ready ready;
	json_t *body;

	start_it(s, run_it);
	assert_int_equal(session_hello(&s->ours, false, &s->peer, &wait), 0);
	body = hear(s, MSG_CONFIG);
	assert_int_equal(config_from_json(body, &s->cfg, s->token), 0);
	json_decref(body);
	our_device(s);
	assert_int_equal(rxfer_listen(s->dev, &s->listener), 0);
	ready.target = exposed_target(&s->exposed);
	rxfer_listener_addr(s->listener, &ready.addr);
	body = ready_to_json(&ready);
	if (member)
		json_object_set_new(body, member, value);
	assert_int_equal(control_send(&s->ours, MSG_READY, body, &wait), 0);
	if (member)
		return;
	assert_int_equal(
		conn_attr(&s->cfg, &s->layout, (struct roles){true, true}, s->token, 0, &attr), 0);
	assert_int_equal(rxfer_accept(s->listener, &attr, &wait, &s->conn), 0);
	say(s, MSG_CONNECTED, "{}");
}

static void meet_client(struct scene *s, const char *member, json_t *value)
{
	set_scene(s);
	greet_client(s, member, value);
}

static void a_server_without_memory(void **state)
{
	struct scene s;

	(void)state;
	meet_client(&s, "bytes", json_integer(8191));
	it_fails(&s, "8191 bytes of memory");
	assert_int_equal(s.result.status, RESULT_FAILED);
}

static void malformed_answers_to_start(void **state)
{
	static const char *const texts[] = {"{}", "{\"messages\":[]}", "{\"messages\":[0,0]}",
					    "{\"messages\":[\"0\"]}", "{\"messages\":[-7]}"};
	struct scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		meet_client(&s, NULL, NULL);
		drop(hear(&s, MSG_START));
		say(&s, MSG_ALIVE, "{}");
		usleep(80000); /* so that it is looked at alone */
		say(&s, MSG_STARTED, texts[i]);
		it_fails(&s, "messages");
	}
}

static void an_answer_that_is_not_due(void **state)
{
	struct scene s;

	(void)state;
	meet_client(&s, NULL, NULL);
	drop(hear(&s, MSG_START));
	say(&s, MSG_ALIVE, "{}");
	usleep(80000);
	say(&s, MSG_RESULT, "{}");
	it_fails(&s, "message 8 when none such was due");
	meet_client(&s, NULL, NULL);
	drop(hear(&s, MSG_START));
	say(&s, MSG_ALIVE, "{}");
	usleep(80000);
	say(&s, MSG_FAIL, "{\"reason\":\"tired of it\"}");
	end_scene(&s);
	assert_int_equal(s.rc, -EREMOTEIO);
	assert_non_null(strstr(s.error, "tired of it"));
}

/* Up to STOP, of which it returns what it says. */
static json_t *client_to_stop(struct scene *s)
{
	meet_client(s, NULL, NULL);
	for (int i = 0; i < 2; i++) {
		drop(hear(s, MSG_START));
		say(s, MSG_STARTED, "{\"messages\":[0]}");
		drop(hear(s, MSG_GO));
	}
	return hear(s, MSG_STOP);
}

static json_t *good_result(void)
{
	struct load_result load = {.ios = 20, .bytes = 1280, .end = 1000, .peak = NAN};
	struct found found = {"0", "0"};
	json_t *body = counts_to_json(&load.counts);

	load_to_json(&load, body);
	found_to_json(body, &found);
	json_object_update_new(body, json_loads("{\"messages\":[0]}", 0, NULL));
	return body;
}

static void malformed_results(void **state)
{
	static const char *const names[] = {"ios",	"moved_bytes", "ns",  "peak_mHz", "sqe",
					    "messages", "cut_short",   "cpu", "mem_node"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct rxfer_wait wait;
		struct scene s;
		json_t *body;

		drop(client_to_stop(&s));
		body = good_result();
		json_object_del(body, names[i]);
		wait = soon();
		assert_int_equal(control_send(&s.ours, MSG_RESULT, body, &wait), 0);
		it_fails(&s, names[i]);
		assert_int_equal(s.result.status, RESULT_FAILED);
	}
}

/* Its own load is done, the server's goes on: that one is cut short, too, and it is said once. */
static void interrupted_while_it_waits(void **state)
{
	struct load_result load;
	struct rxfer_wait wait;
	struct scene s;
	json_t *body;

	(void)state;
	body = client_to_stop(&s);
	assert_int_equal(json_integer_value(json_object_get(body, "cut_short")), 0);
	json_decref(body);
	s.stop = 1;
	body = hear(&s, MSG_STOP);
	assert_int_equal(json_integer_value(json_object_get(body, "cut_short")), 1);
	assert_int_equal(json_array_size(json_object_get(body, "messages")), 1);
	json_decref(body);
	body = good_result();
	assert_int_equal(load_from_json(body, &load), 0);
	json_object_set_new(body, "cut_short", json_integer(1));
	wait = soon();
	assert_int_equal(control_send(&s.ours, MSG_RESULT, body, &wait), 0);
	drop(hear(&s, MSG_CLOSED));
	end_scene(&s);
	assert_int_equal(s.rc, 0);
	assert_int_equal(s.result.status, RESULT_OK);
	assert_string_equal(s.result.partial, "yes");
	assert_true(s.result.peer_iterations == 20);
	assert_true(isnan(s.result.bw_peak_MiBps));
}

/* A server that is stopped: its memory can be written to for ever, but its load is none. */
static void a_server_that_falls_silent(void **state)
{
	struct scene s;

	(void)state;
	set_scene(&s);
	s.cfg.iters = 0;
	s.cfg.duration_ns = 20 * TIMEOUT_NS;
	s.cfg.timeout_ns = 300 * MS;
	greet_client(&s, NULL, NULL);
	for (int i = 0; i < 2; i++) {
		drop(hear(&s, MSG_START));
		say(&s, MSG_STARTED, "{\"messages\":[0]}");
		drop(hear(&s, MSG_GO));
	}
	it_fails(&s, "nothing heard from");
}

/* It waits for the server's warm-up: there will be nothing to report. */
static void interrupted_before_the_timed_part(void **state)
{
	struct scene s;

	(void)state;
	meet_client(&s, NULL, NULL);
	drop(hear(&s, MSG_START));
	say(&s, MSG_STARTED, "{\"messages\":[0]}");
	drop(hear(&s, MSG_GO));
	drop(hear(&s, MSG_START));
	s.stop = 1;
	it_fails(&s, "interrupted before the timed part");
	assert_int_equal(s.rc, -EINTR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_that_is_none),
		cmocka_unit_test(memory_that_is_elsewhere),
		cmocka_unit_test(go_when_it_is_not_due),
		cmocka_unit_test(malformed_starts),
		cmocka_unit_test(the_server_begins_at_once),
		cmocka_unit_test(what_follows_a_result),
		cmocka_unit_test(a_server_without_memory),
		cmocka_unit_test(malformed_answers_to_start),
		cmocka_unit_test(an_answer_that_is_not_due),
		cmocka_unit_test(malformed_results),
		cmocka_unit_test(a_server_that_falls_silent),
		cmocka_unit_test(interrupted_while_it_waits),
		cmocka_unit_test(interrupted_before_the_timed_part),
	};

	return cmocka_run_group_tests_name("unit_session_peers", tests, NULL, NULL);
}
