/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a polling loop looks at besides completions, with timeouts of a fraction of a second. */
#include "control_fixture.h"
#include "watch.h"

#define TIMEOUT_MS 200
#define LOOK_MS	   50  /* between looks at the control connection */
#define EMPTY	   256 /* passes without work before a look */

/* One end that is watched, and its peer. */
struct scene {
	struct link link;
	struct watch watch;
	struct runtime runtime;
	struct cfg cfg;
	atomic_int stop;
	unsigned int ticks;
};

static void tick(void *arg)
{
	struct scene *s = arg;

	s->ticks++;
}

static void set_scene(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	s->cfg.timeout_ns = TIMEOUT_MS * MS;
	s->cfg.poll = POLL_BUSY;
	make_link(&s->link, PAIR);
	s->runtime =
		(struct runtime){.stop = &s->stop, .topo = {.cpus = 2}, .tick = tick, .arg = s};
	watch_init(&s->watch, &s->link.a, &s->cfg, &s->runtime, 1, false);
}

/* Passes for @ms that each do @did; the first result that is not 0, which leaves no message. */
static int passes(struct scene *s, uint64_t ms, unsigned int did, bool busy)
{
	uint64_t end = rxfer_now() + ms * MS;
	enum message type;
	json_t *body;
	int rc = 0;

	while (!rc && rxfer_now() < end)
		rc = watch_pass(&s->watch, did, busy, &type, &body);
	if (rc == 1)
		json_decref(body);
	return rc;
}

/* How many signs of life the peer was sent, and nothing else. */
static unsigned int alive_received(struct scene *s)
{
	struct rxfer_wait wait = within(LONG_MS);
	uint64_t heard = 0;
	enum message type;
	unsigned int n = 0;
	json_t *body;

	for (;; n++, heard = 0) {
		assert_int_equal(control_poll(&s->link.b, &type, &body, &heard, &wait), -EAGAIN);
		if (!heard)
			return n;
	}
}

static void say(struct scene *s, enum message type)
{
	struct rxfer_wait wait = within(LONG_MS);

	assert_int_equal(control_send(&s->link.b, type, json_pack("{s:i}", "n", 5), &wait), 0);
}

/* ---- Looking ---- */

static void a_message_is_handed_over(void **state)
{
	uint64_t start = rxfer_now(), end = start + LONG_MS * MS;
	enum message type;
	struct scene s;
	json_t *body;
	int rc = 0;

	(void)state;
	set_scene(&s);
	say(&s, MSG_ALIVE);
	say(&s, MSG_STOP);
	while (!rc && rxfer_now() < end)
		rc = watch_pass(&s.watch, 0, false, &type, &body);
	assert_int_equal(rc, 1);
	assert_int_equal(type, MSG_STOP);
	assert_int_equal(json_integer_value(json_object_get(body, "n")), 5);
	assert_true(rxfer_now() - start < (3 * LOOK_MS + LATE_MS) * MS);
	json_decref(body);
	drop_link(&s.link);
}

/* The hot loop pays for a look only after many passes, and not more often than every 50 ms. */
static void looks_are_rare(void **state)
{
	enum message type;
	struct scene s;
	json_t *body;

	(void)state;
	set_scene(&s);
	say(&s, MSG_STOP);
	nap(LOOK_MS + 10);
	for (int i = 0; i < EMPTY - 1; i++)
		assert_int_equal(watch_pass(&s.watch, 0, false, &type, &body), 0);
	assert_int_equal(s.ticks, 0);
	assert_int_equal(watch_pass(&s.watch, 0, false, &type, &body), 1);
	json_decref(body);
	assert_int_equal(s.ticks, 1);

	s.ticks = 0;
	s.cfg.timeout_ns = 60000 * MS;
	watch_init(&s.watch, &s.link.a, &s.cfg, &s.runtime, 1, false);
	assert_int_equal(passes(&s, 300, 0, true), 0);
	assert_in_range(s.ticks, 1, 6);
	drop_link(&s.link);
}

/* A loop with work to do at every pass looks too. */
static void a_busy_loop_looks_too(void **state)
{
	struct scene s;

	(void)state;
	set_scene(&s);
	say(&s, MSG_FAIL);
	assert_int_equal(passes(&s, 1000, 1, true), 1);
	drop_link(&s.link);
}

/* Passes that are rare by themselves look each time; those that sleep, every 50 ms. */
static void rare_passes_look_each_time(void **state)
{
	enum message type;
	struct scene s;
	json_t *body;

	(void)state;
	set_scene(&s);
	s.watch.passive = true;
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(watch_pass(&s.watch, 0, false, &type, &body), 0);
	assert_int_equal(s.ticks, 5);
	drop_link(&s.link);

	set_scene(&s);
	s.cfg.poll = POLL_EVENT;
	watch_init(&s.watch, &s.link.a, &s.cfg, &s.runtime, 1, false);
	assert_true(s.watch.sleep);
	nap(LOOK_MS + 10);
	for (unsigned int i = 0; i < 2; i++) {
		s.watch.woken = true;
		assert_int_equal(watch_pass(&s.watch, 0, false, &type, &body), 0);
		assert_false(s.watch.woken);
	}
	assert_int_equal(s.ticks, 1);
	drop_link(&s.link);
}

/* Who has nothing to do looks every 5 ms, if he is to: he waits to be told. Others have figures to
 * take. */
static void an_idle_loop_looks_more_often(void **state)
{
	(void)state;
	for (int eager = 0; eager < 2; eager++) {
		struct scene s;

		set_scene(&s);
		s.watch.eager = eager;
		nap(6);
		assert_int_equal(passes(&s, 1, 0, false), 0);
		assert_int_equal(s.ticks, eager);
		drop_link(&s.link);

		set_scene(&s);
		s.watch.eager = eager;
		nap(6);
		assert_int_equal(passes(&s, 1, 1, false), 0); /* it was busy until now */
		assert_int_equal(s.ticks, 0);
		drop_link(&s.link);
	}
}

/* A sleeper that the peer has woken does not wait for the next look. */
static void a_woken_loop_looks_at_once(void **state)
{
	enum message type;
	struct scene s;
	json_t *body;

	(void)state;
	set_scene(&s);
	s.watch.sleep = true;
	say(&s, MSG_STOP);
	assert_int_equal(watch_pass(&s.watch, 0, false, &type, &body), 0);
	s.watch.woken = true;
	s.watch.looked = 0;
	assert_int_equal(watch_pass(&s.watch, 0, false, &type, &body), 1);
	json_decref(body);
	drop_link(&s.link);
}

static void no_tick_is_fine(void **state)
{
	enum message type;
	struct scene s;
	json_t *body;

	(void)state;
	set_scene(&s);
	s.runtime.tick = NULL;
	s.watch.passive = true;
	assert_int_equal(watch_pass(&s.watch, 0, false, &type, &body), 0);
	drop_link(&s.link);
}

/* ---- Progress ---- */

static void no_progress(void **state)
{
	struct scene s;
	uint64_t start;

	(void)state;
	set_scene(&s);
	start = rxfer_now();
	assert_int_equal(passes(&s, 900, 0, true), -ETIMEDOUT);
	assert_took(start, TIMEOUT_MS);
	assert_non_null(strstr(rxfer_error(), "no I/O completed for 0.2 s: the peer is stopped"));
	assert_non_null(strstr(rxfer_error(), "--timeout"));
	drop_link(&s.link);
}

/* Signs of life from the peer are no progress, but say where not to look. */
static void alive_is_no_progress(void **state)
{
	struct scene s;
	int rc = 0;

	(void)state;
	set_scene(&s);
	for (int i = 0; i < 12 && !rc; i++) {
		say(&s, MSG_ALIVE);
		rc = passes(&s, 50, 0, true);
	}
	assert_int_equal(rc, -ETIMEDOUT);
	assert_non_null(strstr(rxfer_error(), "no I/O completed for 0.2 s, though"));
	assert_non_null(strstr(rxfer_error(), "answers on the control connection"));
	drop_link(&s.link);
}

static void nothing_to_do_is_no_lack_of_progress(void **state)
{
	struct scene s;

	(void)state;
	set_scene(&s);
	assert_int_equal(passes(&s, 2 * TIMEOUT_MS + 100, 0, false), 0);
	drop_link(&s.link);
}

/* One I/O now and then, between a great many empty passes, is enough. */
static void slow_progress_is_progress(void **state)
{
	enum message type;
	struct scene s;
	json_t *body;

	(void)state;
	set_scene(&s);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(passes(&s, TIMEOUT_MS / 4, 0, true), 0);
		assert_int_equal(watch_pass(&s.watch, 1, true, &type, &body), 0);
	}
	assert_int_equal(passes(&s, 900, 0, true), -ETIMEDOUT);
	drop_link(&s.link);
}

/* What was before a phase began does not count. */
static void a_phase_begins(void **state)
{
	enum message type;
	struct scene s;
	json_t *body;

	(void)state;
	set_scene(&s);
	assert_int_equal(passes(&s, TIMEOUT_MS + 100, 0, false), 0);
	assert_true(s.watch.passes > EMPTY);
	watch_begin(&s.watch);
	assert_int_equal(s.watch.passes, 0);
	assert_int_equal(s.watch.idle, 0);
	assert_int_equal(passes(&s, TIMEOUT_MS / 4, 0, true), 0);
	watch_begin(&s.watch);
	for (unsigned int i = 0; i < 10; i++)
		assert_int_equal(watch_pass(&s.watch, i % 3, true, &type, &body), 0);
	assert_int_equal(s.watch.passes, 10);
	assert_int_equal(s.watch.idle, 4);
	drop_link(&s.link);
}

/* ---- Silence ---- */

static void silence_of_a_peer_that_must_be_heard(void **state)
{
	struct scene s;
	uint64_t start;

	(void)state;
	set_scene(&s);
	s.watch.must_hear = true;
	start = rxfer_now();
	assert_int_equal(passes(&s, 900, 1, false), -ETIMEDOUT);
	assert_took(start, TIMEOUT_MS);
	assert_non_null(strstr(rxfer_error(), "nothing heard from the server side for 0.2 s"));
	drop_link(&s.link);
}

static void silence_of_a_peer_that_need_not_be_heard(void **state)
{
	struct scene s;

	(void)state;
	set_scene(&s);
	assert_int_equal(passes(&s, 2 * TIMEOUT_MS + 100, 1, true), 0);
	drop_link(&s.link);
}

static void signs_of_life_end_the_silence(void **state)
{
	struct scene s;

	(void)state;
	set_scene(&s);
	s.watch.must_hear = true;
	for (int i = 0; i < 6; i++) {
		say(&s, MSG_ALIVE);
		assert_int_equal(passes(&s, TIMEOUT_MS / 4, 0, false), 0);
	}
	assert_int_equal(passes(&s, 900, 0, false), -ETIMEDOUT);
	drop_link(&s.link);
}

/* The peer has been given more time to begin with. */
static void silence_that_was_allowed(void **state)
{
	struct scene s;
	uint64_t start;

	(void)state;
	set_scene(&s);
	s.watch.must_hear = true;
	start = rxfer_now();
	s.watch.heard = start + TIMEOUT_MS * MS;
	assert_int_equal(passes(&s, 1500, 0, false), -ETIMEDOUT);
	assert_took(start, 2 * TIMEOUT_MS);
	drop_link(&s.link);
}

static void the_peer_has_gone(void **state)
{
	struct scene s;

	(void)state;
	set_scene(&s);
	control_close(&s.link.b);
	assert_int_equal(passes(&s, 900, 0, true), -ECONNRESET);
	assert_non_null(strstr(rxfer_error(), "closed the control connection"));
	drop_link(&s.link);
}

static void the_peer_talks_nonsense(void **state)
{
	struct scene s;

	(void)state;
	set_scene(&s);
	put(&s.link.b, "GET / HTTP/1.0\r\n\r\n", 18);
	assert_int_equal(passes(&s, 900, 0, true), -EPROTO);
	drop_link(&s.link);
}

/* Half a message is waited for, but not longer than the timeout. */
static void half_a_message(void **state)
{
	struct scene s;
	uint64_t start;

	(void)state;
	set_scene(&s);
	put(&s.link.b, "RXFB\0\1\0\7", 8);
	start = rxfer_now();
	assert_int_equal(passes(&s, 900, 0, false), -ETIMEDOUT);
	assert_in_range(rxfer_now() - start, TIMEOUT_MS * MS,
			(TIMEOUT_MS + LOOK_MS + LATE_MS) * MS);
	drop_link(&s.link);
}

/* ---- Our own signs of life ---- */

/* How many signs of life a pass sends when the last one was @ago_ms before. */
static unsigned int alive_after(uint64_t timeout_ms, uint64_t ago_ms)
{
	enum message type;
	struct scene s;
	unsigned int n;
	json_t *body;

	set_scene(&s);
	s.cfg.timeout_ns = timeout_ms * MS;
	watch_init(&s.watch, &s.link.a, &s.cfg, &s.runtime, 1, false);
	s.watch.passive = true;
	s.watch.said -= ago_ms * MS;
	assert_int_equal(watch_pass(&s.watch, 0, false, &type, &body), 0);
	assert_int_equal(watch_pass(&s.watch, 0, false, &type, &body), 0);
	n = alive_received(&s);
	drop_link(&s.link);
	return n;
}

/* Four in each timeout: the peer's patience is as long as ours. */
static void we_say_that_we_live(void **state)
{
	struct scene s;

	(void)state;
	assert_int_equal(alive_after(3000, 0), 0);
	assert_int_equal(alive_after(3000, 500), 0);
	assert_int_equal(alive_after(3000, 751), 1);

	set_scene(&s);
	assert_int_equal(passes(&s, 500, 0, false), 0);
	assert_in_range(alive_received(&s), 1, 11);
	drop_link(&s.link);
}

/* At a long timeout, once in a second: enough, and no load. */
static void not_too_often(void **state)
{
	(void)state;
	assert_int_equal(alive_after(3600000, 700), 0);
	assert_int_equal(alive_after(3600000, 1001), 1);
}

/* ---- Stopping, waiting ---- */

static void a_stop_is_the_callers(void **state)
{
	struct scene s;

	(void)state;
	set_scene(&s);
	s.stop = 1;
	assert_int_equal(passes(&s, 120, 0, true), 0);
	assert_true(*s.watch.stop);
	drop_link(&s.link);
}

static void a_blocking_call_gets_the_whole_timeout(void **state)
{
	struct rxfer_wait wait;
	enum message type;
	struct scene s;
	uint64_t now;
	json_t *body;

	(void)state;
	set_scene(&s);
	nap(20);
	now = rxfer_now();
	wait = watch_wait(&s.watch);
	assert_in_range(wait.deadline, now + TIMEOUT_MS * MS, rxfer_now() + TIMEOUT_MS * MS);
	assert_int_equal(wait.cancel_fd, -1);
	assert_ptr_equal(wait.stop, &s.stop);
	s.stop = 1;
	assert_int_equal(control_recv(&s.link.a, &type, &body, &wait), -EINTR);
	drop_link(&s.link);
}

/* An empty poll gives the CPU away where there are fewer CPUs than there is work for. */
static void when_to_yield(void **state)
{
	static const struct {
		enum cfg_poll poll;
		unsigned int pollers, cpus;
		bool software, yield;
	} cases[] = {
		{POLL_BUSY, 1, 1, false, false}, {POLL_BUSY, 2, 1, false, true},
		{POLL_BUSY, 1, 1, true, true},	 {POLL_BUSY, 2, 2, true, true},
		{POLL_BUSY, 2, 2, false, false}, {POLL_BUSY, 2, 3, true, false},
		{POLL_YIELD, 1, 8, false, true}, {POLL_EVENT, 1, 8, false, false},
		{POLL_EVENT, 2, 1, true, false}, /* it sleeps instead */
	};
	struct scene s;

	(void)state;
	set_scene(&s);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		s.cfg.poll = cases[i].poll;
		s.runtime.topo.cpus = cases[i].cpus;
		watch_init(&s.watch, &s.link.a, &s.cfg, &s.runtime, cases[i].pollers,
			   cases[i].software);
		assert_int_equal(s.watch.yield, cases[i].yield);
		assert_int_equal(s.watch.sleep, cases[i].poll == POLL_EVENT);
		assert_false(s.watch.must_hear);
	}
	drop_link(&s.link);
}

static void cpu_time_is_this_threads(void **state)
{
	uint64_t before = cpu_time_ns(), wall, spent;

	(void)state;
	nap(60);
	assert_true(cpu_time_ns() - before < 50 * MS);
	wall = rxfer_now();
	before = cpu_time_ns();
	while (cpu_time_ns() - before < 10 * MS && rxfer_now() - wall < 1000 * MS)
		;
	spent = cpu_time_ns() - before;
	assert_true(spent >= 10 * MS);
	assert_true(spent <= rxfer_now() - wall + 5 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_handed_over),
		cmocka_unit_test(looks_are_rare),
		cmocka_unit_test(a_busy_loop_looks_too),
		cmocka_unit_test(rare_passes_look_each_time),
		cmocka_unit_test(an_idle_loop_looks_more_often),
		cmocka_unit_test(a_woken_loop_looks_at_once),
		cmocka_unit_test(no_tick_is_fine),
		cmocka_unit_test(no_progress),
		cmocka_unit_test(alive_is_no_progress),
		cmocka_unit_test(nothing_to_do_is_no_lack_of_progress),
		cmocka_unit_test(slow_progress_is_progress),
		cmocka_unit_test(a_phase_begins),
		cmocka_unit_test(silence_of_a_peer_that_must_be_heard),
		cmocka_unit_test(silence_of_a_peer_that_need_not_be_heard),
		cmocka_unit_test(signs_of_life_end_the_silence),
		cmocka_unit_test(silence_that_was_allowed),
		cmocka_unit_test(the_peer_has_gone),
		cmocka_unit_test(the_peer_talks_nonsense),
		cmocka_unit_test(half_a_message),
		cmocka_unit_test(we_say_that_we_live),
		cmocka_unit_test(not_too_often),
		cmocka_unit_test(a_stop_is_the_callers),
		cmocka_unit_test(a_blocking_call_gets_the_whole_timeout),
		cmocka_unit_test(when_to_yield),
		cmocka_unit_test(cpu_time_is_this_threads),
	};

	return cmocka_run_group_tests_name("unit_watch", tests, NULL, NULL);
}
