/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The server's side of rxfer-bench fence; this test is the client, and no good one: what it wants
 * beyond its own two connections and the agreed size is refused, by name, and nothing is left.
 */
#include "peers_fixture.h"

#include "fence_msg.h"
#include "pattern.h"

#define BYTES 64

static int serve_it(struct scene *s)
{
	struct host host = {.device = "fake0", .timeout_ns = TIMEOUT_NS, .runtime = &s->runtime};

	return session_serve(&s->its, &host);
}

static void be_ready(struct scene *s, struct ready *ready)
{
	json_t *body;

	cfg_init(&s->cfg);
	s->cfg.size = BYTES;
	s->cfg.timeout_ns = TIMEOUT_NS;
	say_body(s, MSG_FENCE, config_to_json(&s->cfg, s->token));
	body = hear(s, MSG_READY);
	assert_int_equal(ready_from_json(body, ready), 0);
	json_decref(body);
}

/* struct guest - our end: memory that lies open to it, and one of the connections. */
struct guest {
	struct scene scene;
	struct ready ready;
	struct area memory, message;
	struct fence_end end;
};

static void open_guest(struct guest *g)
{
	*g = (struct guest){0};
	set_scene(&g->scene);
	meet(&g->scene, serve_it, true);
	be_ready(&g->scene, &g->ready);
	assert_int_equal(rxfer_dev_open("fake0", "global", &g->scene.dev), 0);
	assert_int_equal(
		area_make(g->scene.dev, BYTES, RXFER_PEER_READ | RXFER_PEER_WRITE, &g->memory), 0);
	assert_int_equal(area_make(g->scene.dev, FENCE_MESSAGE, RXFER_FIXED, &g->message), 0);
}

static void close_guest(struct guest *g)
{
	fence_close(&g->end);
	area_drop(&g->memory);
	area_drop(&g->message);
}

static void connect_guest(struct guest *g)
{
	struct rxfer_conn_attr attr = {
		.slots = 2, .rq_depth = 2, .shape = {.op = RXFER_SEND, .bytes = BYTES, .frags = 1}};
	struct rxfer_wait wait = soon();

	memcpy(attr.token, g->scene.token, sizeof(attr.token));
	assert_int_equal(rxfer_sig_parse("io", &attr.sig, &attr.sig_arg), 0);
	say(&g->scene, MSG_HOLD, "{\"connections\":1,\"requests\":1}");
	assert_int_equal(rxfer_connect(g->scene.dev, &g->ready.addr, &attr, &wait, &g->end.conn),
			 0);
	drop(hear(&g->scene, MSG_CONNECTED));
}

static void ask(struct guest *g)
{
	struct rxfer_wait wait = soon();

	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(rxfer_post_recv(g->end.conn, g->message.base, FENCE_MESSAGE, i),
				 0);
	assert_int_equal(fence_send(&g->end, g->message.base, 0, 0, &wait), 0);
}

static struct fence_tried attempt(struct guest *g, const struct fence_try *t)
{
	struct fence_tried tried;
	json_t *body;

	say_body(&g->scene, MSG_TRY, fence_try_to_json(t));
	body = hear(&g->scene, MSG_TRIED);
	assert_int_equal(fence_tried_from_json(body, &tried), 0);
	json_decref(body);
	return tried;
}

static struct fence_try our_try(const struct guest *g)
{
	return (struct fence_try){.addr = (uintptr_t)g->memory.base,
				  .len = BYTES,
				  .key = rxfer_mem_rkey(g->memory.mem),
				  .position = 3,
				  .seed = 5};
}

/* What it brings and leaves, on one connection after another; then an ordinary good-bye. */
static void attempts_and_their_end(void **state)
{
	struct rxfer_wait wait;
	struct fence_tried d;
	struct fence_try t;
	struct guest g;

	(void)state;
	open_guest(&g);
	pattern_fill(g.memory.base, BYTES, 0, 1);
	connect_guest(&g);
	ask(&g);
	t = our_try(&g);
	d = attempt(&g, &t);
	assert_true(d.outcome == FENCE_OPEN && d.sum == fence_sum(g.memory.base, BYTES));
	t.write = true;
	d = attempt(&g, &t);
	assert_true(d.outcome == FENCE_OPEN);
	wait = soon();
	assert_int_equal(fence_await(&g.end, RXFER_RECV, 1, "what follows a WRITE", &wait), 0);
	assert_int_equal(pattern_check(g.memory.base, BYTES, 3, 5), -1);
	say(&g.scene, MSG_REPLY, "{\"revoke\":0,\"key\":0}");
	assert_int_equal(fence_await(&g.end, RXFER_RECV, 2, "the reply", &wait), 0);
	t.key ^= 1;
	d = attempt(&g, &t);
	assert_true(d.outcome == FENCE_CLOSED);
	assert_non_null(strstr(d.words, "REM_ACCESS_ERR"));
	d = attempt(&g, &t); /* the connection is broken: it was not tried */
	assert_true(d.outcome == FENCE_FAILED);
	fence_close(&g.end);
	connect_guest(&g);
	ask(&g);
	t.key ^= 1;
	assert_true(attempt(&g, &t).outcome == FENCE_OPEN);
	close_guest(&g);
	say(&g.scene, MSG_STOP, "{}");
	say(&g.scene, MSG_BYE, "{}");
	end_scene(&g.scene);
	assert_int_equal(g.scene.rc, 1);
}

static void refused(enum message type, json_t *body, bool connected, const char *part)
{
	struct guest g;

	open_guest(&g);
	if (connected) {
		connect_guest(&g);
		ask(&g);
	}
	say_body(&g.scene, type, body);
	drop(hear(&g.scene, MSG_FAIL));
	close_guest(&g);
	end_scene(&g.scene);
	assert_true(g.scene.rc < 0);
	if (!strstr(g.scene.error, part))
		fail_msg("no \"%s\" in: %s", part, g.scene.error);
}

static json_t *a_try(unsigned int conn, uint64_t len)
{
	const struct fence_try t = {.conn = conn, .len = len, .addr = 4096, .key = 1};

	return fence_try_to_json(&t);
}

static json_t *text(const char *s)
{
	return json_loads(s, 0, NULL);
}

static void what_is_not_agreed(void **state)
{
	const char *none = "an I/O that there is not";

	(void)state;
	refused(MSG_TRY, a_try(0, BYTES), false, none);
	refused(MSG_TRY, a_try(1, BYTES), true, none);
	refused(MSG_TRY, a_try(0, BYTES + 1), true, "65 bytes (agreed were 1 to 64)");
	refused(MSG_TRY, a_try(0, 0), true, "0 bytes (agreed were 1 to 64)");
	refused(MSG_TRY, a_try(0, 1ull << 40), true, "1099511627776 bytes");
	refused(MSG_TRY, text("{\"write\":0}"), true, "lacks the number");
	refused(MSG_REPLY, text("{\"revoke\":0,\"key\":0}"), false, none);
	refused(MSG_REPLY, text("{\"revoke\":0}"), true, "lacks the number key");
	refused(MSG_HOLD, text("{\"connections\":3,\"requests\":1}"), true, "connections 3");
	refused(MSG_START, text("{}"), false, "when none such was due");
	refused(MSG_FENCE, text("{}"), true, "when none such was due");
	refused(MSG_BYE, text("{}"), true, "when none such was due");
}

static void configurations_that_are_none(void **state)
{
	static const char *const says[] = {"an I/O of no bytes", "lacks the text token"};

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct scene s;
		json_t *body;

		set_scene(&s);
		meet(&s, serve_it, true);
		cfg_init(&s.cfg);
		s.cfg.size = i * BYTES;
		body = config_to_json(&s.cfg, s.token);
		if (i)
			json_object_del(body, "token");
		say_body(&s, MSG_FENCE, body);
		it_fails(&s, says[i]);
	}
}

/* Nobody holds it for ever: not by a request that never comes, not by silence, not by going. */
static void who_keeps_it_waiting(void **state)
{
	struct guest g;

	(void)state;
	open_guest(&g);
	connect_guest(&g);
	say_body(&g.scene, MSG_TRY, a_try(0, BYTES));
	say(&g.scene, MSG_STOP, "{}"); /* instead of the request */
	close_guest(&g);
	end_scene(&g.scene);
	assert_true(g.scene.rc < 0);

	open_guest(&g);
	say(&g.scene, MSG_HOLD, "{\"connections\":2,\"requests\":1}");
	close_guest(&g);
	end_scene(&g.scene); /* gone */
	assert_true(g.scene.rc < 0);

	open_guest(&g);
	g.scene.stop = 1;
	drop(hear(&g.scene, MSG_FAIL));
	close_guest(&g);
	end_scene(&g.scene);
	assert_int_equal(g.scene.rc, -EINTR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attempts_and_their_end),
		cmocka_unit_test(what_is_not_agreed),
		cmocka_unit_test(configurations_that_are_none),
		cmocka_unit_test(who_keeps_it_waiting),
	};

	return cmocka_run_group_tests_name("unit_fence_server", tests, NULL, NULL);
}
