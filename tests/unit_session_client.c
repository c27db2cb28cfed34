/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The client's side of a session with --bidir; this test is the server. Whatever that says, the
 * client names what is wrong, its row says so, and nothing is left behind.
 */
#include "peers_fixture.h"

static int run_it(struct scene *s)
{
	struct rxfer_wait wait = soon();
	struct peer peer;
	int rc = session_hello(&s->its, true, &peer, &wait);

	usleep(s->late_us);
	return rc ? rc : session_run(&s->its, &peer, &s->cfg, &s->runtime, &s->result);
}

/* READY says @value of @member, where that is not NULL. */
static void greet_client(struct scene *s, const char *member, json_t *value)
{
	struct rxfer_conn_attr attr;
	struct rxfer_wait wait;
	struct ready ready;
	json_t *body;

	meet(s, run_it, false);
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
	say_body(s, MSG_READY, body);
	if (member)
		return;
	drop(hear(s, MSG_MEMORY));
	wait = soon();
	attr = our_attr(s);
	assert_int_equal(rxfer_accept(s->listener, &attr, &wait, &s->conn), 0);
	usleep(s->pause_us);
	say(s, MSG_CONNECTED, "{}");
}

static void meet_client(struct scene *s, const char *member, json_t *value)
{
	set_scene(s);
	greet_client(s, member, value);
}

/* It has been gone when the client asks for something; its last word is there all the same. */
static void a_server_that_has_given_up(void **state)
{
	struct scene s;

	(void)state;
	set_scene(&s);
	s.late_us = 100000;
	meet(&s, run_it, false);
	say(&s, MSG_FAIL, "{\"reason\":\"asked for no run within 3.0 s\"}");
	control_close(&s.ours);
	end_scene(&s);
	assert_int_equal(s.rc, -EREMOTEIO);
	assert_string_equal(s.error, "the client side: asked for no run within 3.0 s");
	assert_int_equal(s.result.status, RESULT_FAILED);
	assert_string_equal(s.result.reason, s.error);
}

/* Its device cannot, ours can: no failure, though the session is over. */
static void a_server_that_is_unable(void **state)
{
	struct scene s;

	(void)state;
	for (int unable = 0; unable < 2; unable++) {
		set_scene(&s);
		meet(&s, run_it, false);
		drop(hear(&s, MSG_CONFIG));
		say(&s, MSG_FAIL,
		    unable ? "{\"reason\":\"no windows\",\"unable\":1}"
			   : "{\"reason\":\"no windows\",\"unable\":0}");
		end_scene(&s);
		assert_int_equal(s.rc, unable ? -EREMOTE : -EREMOTEIO);
		assert_int_equal(s.result.status, unable ? RESULT_SKIPPED : RESULT_FAILED);
		assert_string_equal(s.result.reason, "the client side: no windows");
	}
}

static void a_server_without_memory(void **state)
{
	struct scene s;

	(void)state;
	meet_client(&s, "bytes", json_integer(8191));
	it_fails(&s, "8191 bytes of memory");
	assert_int_equal(s.result.status, RESULT_FAILED);
}

/* The client waits for our answer to its START, and for nothing else. */
static void meet_up_to_start(struct scene *s)
{
	meet_client(s, NULL, NULL);
	drop(hear(s, MSG_START));
	say(s, MSG_ALIVE, "{}");
	usleep(80000); /* so that what comes next is looked at alone */
}

/* One phase of the client's load begins. */
static void let_it_go(struct scene *s)
{
	drop(hear(s, MSG_START));
	say(s, MSG_STARTED, "{\"messages\":[0]}");
	drop(hear(s, MSG_GO));
}

static void malformed_answers_to_start(void **state)
{
	static const char *const texts[] = {"{}", "{\"messages\":[]}", "{\"messages\":[0,0]}",
					    "{\"messages\":[\"0\"]}", "{\"messages\":[-7]}"};
	struct scene s;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		meet_up_to_start(&s);
		say(&s, MSG_STARTED, texts[i]);
		it_fails(&s, "messages");
	}
}

static void an_answer_that_is_not_due(void **state)
{
	struct scene s;

	(void)state;
	meet_up_to_start(&s);
	say(&s, MSG_RESULT, "{}");
	it_fails(&s, "message 8 when none such was due");
	meet_up_to_start(&s);
	say(&s, MSG_FAIL, "{\"reason\":\"tired of it\"}");
	end_scene(&s);
	assert_int_equal(s.rc, -EREMOTEIO);
	assert_non_null(strstr(s.error, "tired of it"));
}

/* The server makes the memory of its load before it says CONNECTED. */
static void memory_that_takes_its_time(void **state)
{
	struct scene s;

	(void)state;
	set_scene(&s);
	s.cfg.timeout_ns = 200 * MS;
	s.cfg.size = 16 << 20; /* four times that at each end: a second */
	s.pause_us = 800000;
	greet_client(&s, NULL, NULL);
	drop(hear(&s, MSG_START));
	end_scene(&s);
	assert_int_equal(s.rc, -ECONNRESET);
}

/* Up to STOP, of which it returns what it says. */
static json_t *client_to_stop(struct scene *s)
{
	meet_client(s, NULL, NULL);
	let_it_go(s);
	let_it_go(s);
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
		struct scene s;
		json_t *body;

		drop(client_to_stop(&s));
		body = good_result();
		json_object_del(body, names[i]);
		say_body(&s, MSG_RESULT, body);
		it_fails(&s, names[i]);
		assert_int_equal(s.result.status, RESULT_FAILED);
	}
}

/* The server's is 20 I/Os of 64 bytes in a microsecond; time and iterations are the client's. */
static void is_sum_of_averages(const struct result *r)
{
	double rate = r->iterations / r->seconds / 1e6;

	assert_true(r->iterations == 20);
	assert_true(r->seconds > 1e-6);
	assert_true(fabs(r->msg_rate_Mpps - (rate + 20)) < 1e-6);
	assert_true(fabs(r->bw_avg_MiBps - (rate + 20) * 64e6 / 1048576) < 1e-3);
}

/* Its own load is done, the server's goes on: that one is cut short, too, and it is said once. */
static void interrupted_while_it_waits(void **state)
{
	struct load_result load;
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
	say_body(&s, MSG_RESULT, body);
	drop(hear(&s, MSG_CLOSED));
	end_scene(&s);
	assert_int_equal(s.rc, 0);
	assert_int_equal(s.result.status, RESULT_OK);
	assert_string_equal(s.result.partial, "yes");
	assert_true(s.result.peer_iterations == 20);
	assert_true(isnan(s.result.bw_peak_MiBps));
	is_sum_of_averages(&s.result);
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
	let_it_go(&s);
	let_it_go(&s);
	it_fails(&s, "nothing heard from");
}

/* It waits for the server's warm-up: there will be nothing to report. */
static void interrupted_before_the_timed_part(void **state)
{
	struct scene s;

	(void)state;
	meet_client(&s, NULL, NULL);
	let_it_go(&s);
	drop(hear(&s, MSG_START));
	s.stop = 1;
	it_fails(&s, "interrupted before the timed part");
	assert_int_equal(s.rc, -EINTR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_that_has_given_up),
		cmocka_unit_test(a_server_that_is_unable),
		cmocka_unit_test(a_server_without_memory),
		cmocka_unit_test(malformed_answers_to_start),
		cmocka_unit_test(an_answer_that_is_not_due),
		cmocka_unit_test(memory_that_takes_its_time),
		cmocka_unit_test(malformed_results),
		cmocka_unit_test(a_server_that_falls_silent),
		cmocka_unit_test(interrupted_while_it_waits),
		cmocka_unit_test(interrupted_before_the_timed_part),
	};

	return cmocka_run_group_tests_name("unit_session_client", tests, NULL, NULL);
}
