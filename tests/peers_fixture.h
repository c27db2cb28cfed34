/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A session with --bidir, on the test double, where one end is the program's, in a thread, and the
 * other one is the test: it says what is due, or something else, and has real memory and
 * connections behind it.
 */
#ifndef RXFER_TESTS_PEERS_FIXTURE_H
#define RXFER_TESTS_PEERS_FIXTURE_H

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
	atomic_int stop;
	struct cfg cfg;
	struct layout layout;
	uint8_t token[RXFER_TOKEN_BYTES];
	struct rxfer_dev *dev;
	struct exposed exposed;
	struct rxfer_listener *listener;
	struct rxfer_conn *conn;
	struct peer peer;
	pthread_t thread;
	const uint64_t *at;    /* where our memory is said to be; NULL: where it is */
	unsigned int pause_us; /* that we take to make it */
	unsigned int late_us;  /* that the program's end takes between hello and all else */

	/* Of the program's end. */
	int (*run)(struct scene *s);
	int rc;
	char error[512];
	struct result result;
};

static inline struct rxfer_wait soon(void)
{
	return (struct rxfer_wait){rxfer_now() + TIMEOUT_NS, -1, NULL};
}

static inline void *its_thread(void *arg)
{
	struct scene *s = arg;

	s->rc = s->run(s);
	snprintf(s->error, sizeof(s->error), "%s", s->rc < 0 ? rxfer_error() : "");
	control_close(&s->its);
	return NULL;
}

static inline void start_it(struct scene *s, int (*run)(struct scene *))
{
	s->run = run;
	assert_int_equal(pthread_create(&s->thread, NULL, its_thread, s), 0);
}

static inline void set_scene_on(struct scene *s, bool iwarp)
{
	struct fake_config config;

	fake_config_init(&config);
	config.real_clock = true;
	config.auto_steps = 64;
	config.device[0].iwarp = iwarp;
	fake_start(&config);
	memset(s, 0, sizeof(*s));
	s->runtime = (struct runtime){.stop = &s->stop, .topo = {.cpus = 2}};
	cfg_init(&s->cfg);
	s->cfg.mode = MODE_DIRECT;
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

/* The program's end begins; @first: we say hello first. */
static inline void meet(struct scene *s, int (*run)(struct scene *), bool first)
{
	struct rxfer_wait wait = soon();

	start_it(s, run);
	assert_int_equal(session_hello(&s->ours, first, &s->peer, &wait), 0);
}

static inline void set_scene(struct scene *s)
{
	set_scene_on(s, false);
}

static inline void our_device(struct scene *s)
{
	struct roles both = {true, true};

	layout_make(&s->cfg, &s->layout);
	assert_int_equal(rxfer_dev_open("fake0", "global", &s->dev), 0);
	assert_int_equal(exposed_make(&s->cfg, &s->layout, both, s->dev, &s->exposed), 0);
}

static inline struct rxfer_conn_attr our_attr(const struct scene *s)
{
	struct rxfer_conn_attr attr;

	assert_int_equal(
		conn_attr(&s->cfg, &s->layout, (struct roles){true, true}, s->token, 0, &attr), 0);
	return attr;
}

/* Both ends are gone, and nothing is left. */
static inline void end_scene(struct scene *s)
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

static inline void say_body(struct scene *s, enum message type, json_t *body)
{
	struct rxfer_wait wait = soon();

	assert_non_null(body);
	assert_int_equal(control_send(&s->ours, type, body, &wait), 0);
}

static inline void say(struct scene *s, enum message type, const char *text)
{
	say_body(s, type, json_loads(text, 0, NULL));
}

static inline json_t *hear(struct scene *s, enum message want)
{
	struct rxfer_wait wait = soon();
	json_t *body = NULL;

	if (control_expect(&s->ours, want, &body, &wait))
		fail_msg("message %d is due: %s", want, rxfer_error());
	return body;
}

static inline void drop(json_t *body)
{
	json_decref(body);
}

/* The program's end says why it ends, in words with @part in them. */
static inline void it_fails(struct scene *s, const char *part)
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

#endif
