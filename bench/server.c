/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rxfer-bench server: accept sessions, one thread each, within limits, until told to stop.
 *
 * Whoever connects is looked at in this order: is it of a network that may (--allow)? Is there room
 * for a session (--max-sessions)? Then it gets a thread, and that has --timeout for each thing that
 * it waits for. So a peer can hold one session, its thread and five descriptors, and no more.
 *
 * A client whose run failed comes again at once, when its old session may still be giving its
 * memory back. So where there is no room, the caller waits in the listener's queue for a moment.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "allow.h"
#include "command.h"
#include "log.h"
#include "place.h"

#define GRACE_NS 1000000000ull	/* for a session to end, before a client is turned away */
#define STOP_NS	 30000000000ull /* for all of them, once we are told to stop */

struct guest;

/* struct server - what the accepting thread has; sessions read what does not change. */
struct server {
	struct cfg cfg;
	struct runtime runtime;
	struct place place;
	struct allow allow;
	struct budget budget; /* of sessions, too: atomic */
	bool timed;	      /* log lines have the time */
	int listener;
	struct guest *guests;
	unsigned int sessions; /* of which some may be over */
	unsigned int number;   /* of the latest session */
	uint64_t full_since;   /* a caller waits for room; 0: none does */
	struct log_gate strangers, refused, broken;
};

/* struct guest - one session's thread. */
struct guest {
	struct server *server;
	struct control control;
	unsigned int number; /* of the session, from 1 on */
	pthread_t thread;
	bool over; /* atomic: written by the thread, read by the accept loop */
	struct guest *next;
};

/* ---- Sessions ---- */

static void guest_says(void *arg, const char *what)
{
	const struct guest *g = arg;

	log_line(g->server->timed, "server: session %u of %s: %s", g->number, g->control.peer,
		 what);
}

static void *guest_thread(void *arg)
{
	struct guest *g = arg;
	struct server *s = g->server;
	struct host host = {.device = s->cfg.device,
			    .timeout_ns = s->cfg.timeout_ns,
			    .runtime = &s->runtime,
			    .budget = &s->budget,
			    .say = guest_says,
			    .arg = g};

	if (place_thread(&s->place, g->number - 1)) {
		char what[640];

		snprintf(what, sizeof(what), "cannot begin: %s", rxfer_error());
		guest_says(g, what);
		control_refuse(&g->control);
	} else {
		session_serve(&g->control, &host);
	}
	control_close(&g->control);
	__atomic_store_n(&g->over, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Join the threads of sessions that are over. */
static void reap(struct server *s)
{
	struct guest **list = &s->guests;

	while (*list) {
		struct guest *g = *list;

		if (!__atomic_load_n(&g->over, __ATOMIC_ACQUIRE)) {
			list = &g->next;
			continue;
		}
		pthread_join(g->thread, NULL);
		*list = g->next;
		free(g);
		s->sessions--;
	}
}

/* ---- Callers ---- */

/* @what happened to a caller, but not more than a line a second. */
static void say_seldom(struct server *s, struct log_gate *gate, const char *what)
{
	unsigned int kept_back;

	if (!log_gate_open(gate, rxfer_now(), &kept_back))
		return;
	if (kept_back)
		log_line(s->timed, "server: %s (and %u more such)", what, kept_back);
	else
		log_line(s->timed, "server: %s", what);
}

static void turn_away(struct server *s, struct control *c)
{
	char what[256];

	snprintf(what, sizeof(what), "%s turned away: not of a network that --allow names",
		 c->peer);
	say_seldom(s, &s->strangers, what);
	control_close(c);
}

static bool is_full(const struct server *s)
{
	return s->cfg.max_sessions && s->sessions >= s->cfg.max_sessions;
}

static void refuse(struct server *s, struct control *c)
{
	char what[256];

	snprintf(what, sizeof(what),
		 "%s turned away: there %s %s, as many as may be (--max-sessions)", c->peer,
		 s->sessions == 1 ? "is" : "are", rxfer_count(s->sessions, "session").s);
	say_seldom(s, &s->refused, what);
	rxfer_fail(
		EBUSY,
		"the server has %s, as many as it may have: try again when one has ended, or start it with a larger --max-sessions",
		rxfer_count(s->sessions, "session").s);
	control_refuse(c);
}

/* Whatever we lack, a moment later it may be there: do not spin on the waiting caller. */
static void cannot_serve(struct server *s, const char *peer, const char *why)
{
	char what[640];

	snprintf(what, sizeof(what), "cannot serve %s: %s", peer, why);
	say_seldom(s, &s->broken, what);
	poll(NULL, 0, 100);
}

static void begin(struct server *s, const struct control *c)
{
	struct guest *g = malloc(sizeof(*g));
	struct control closing = *c;
	int rc = ENOMEM;

	if (g) {
		*g = (struct guest){.server = s, .control = *c, .number = s->number + 1};
		rc = pthread_create(&g->thread, NULL, guest_thread, g);
	}
	if (rc) {
		free(g);
		rxfer_fail(rc, "the server has no thread for a session: %s", strerror(rc));
		cannot_serve(s, c->peer, rxfer_error());
		control_refuse(&closing);
		return;
	}
	s->number++;
	s->sessions++;
	g->next = s->guests;
	s->guests = g;
}

static void welcome(struct server *s)
{
	struct control c;
	int rc = control_accept(s->listener, &c);

	if (rc == -EAGAIN || rc == -ECONNABORTED)
		return; /* it has gone already */
	c.trace = trace_of(&s->runtime, "server");
	if (rc)
		cannot_serve(s, "a caller", rxfer_error());
	else if (!allow_permits(&s->allow, &c.addr))
		turn_away(s, &c);
	else if (is_full(s))
		refuse(s, &c);
	else
		begin(s, &c);
}

/* There is no room, but there may be in a moment. */
static bool holds_back(struct server *s)
{
	uint64_t now = rxfer_now();

	if (!is_full(s)) {
		s->full_since = 0;
		return false;
	}
	if (!s->full_since)
		s->full_since = now;
	if (now - s->full_since >= GRACE_NS)
		return false;
	poll(NULL, 0, 20);
	return true;
}

static bool somebody_waits(const struct server *s, int ms)
{
	struct pollfd p = {.fd = s->listener, .events = POLLIN};

	return poll(&p, 1, ms) > 0;
}

/*
 * Whoever has waited with the first one has waited enough, too; who comes later begins anew. Those
 * who have gone are counted out before we wait, not after: sessions end at once when we are told to
 * stop, and finish() says how many there were.
 */
static void serve(struct server *s)
{
	while (!*s->runtime.stop) {
		reap(s);
		if (somebody_waits(s, 200) && !holds_back(s)) {
			welcome(s);
			if (!somebody_waits(s, 0))
				s->full_since = 0;
		}
	}
}

/* ---- From begin to end ---- */

static int read_allow(const struct opts *o, struct allow *out)
{
	const char *text;
	char why[256];
	int rc = 0;

	for (unsigned int i = 0; !rc && (text = opts_text(o, "allow", i)); i++)
		rc = allow_add(out, text, why, sizeof(why));
	return rc ? rxfer_fail(rc, "--allow: %s", why) : 0;
}

static int set_up(struct server *s, const struct opts *o)
{
	int rc = place_make(&s->cfg, &s->runtime.topo, &s->place);

	if (!rc)
		rc = place_memory(&s->place);
	if (!rc)
		rc = read_allow(o, &s->allow);
	if (!rc)
		s->listener = rc = control_listen(s->cfg.bind, (uint16_t)s->cfg.port);
	return rc < 0 ? rc : 0;
}

/* False: some session did not end. */
static bool finish(struct server *s)
{
	uint64_t end = rxfer_now() + STOP_NS;

	close(s->listener);
	log_line(s->timed, "server: told to stop, %s to end",
		 rxfer_count(s->sessions, "session").s);
	for (reap(s); s->sessions && rxfer_now() < end; reap(s))
		poll(NULL, 0, 10);
	if (s->sessions)
		log_line(s->timed, "server: %s did not end within %llu s: left to the kernel",
			 rxfer_count(s->sessions, "session").s, STOP_NS / 1000000000);
	return !s->sessions;
}

static int run(struct server *s)
{
	struct rxfer_dev_info info;

	if (check_device(s->cfg.device, &info)) {
		close(s->listener);
		return EXIT_RUN_FAILED;
	}
	log_line(s->timed, "server: listening on %s%sport %llu, device %s (%s)", s->cfg.bind,
		 s->cfg.bind[0] ? " " : "", (unsigned long long)s->cfg.port, info.name, info.addr);
	serve(s);
	return finish(s) ? 0 : EXIT_RUN_FAILED;
}

int command_server(const struct opts *o, const struct runtime *runtime)
{
	struct server *s = calloc(1, sizeof(*s));
	int status = EXIT_RUN_FAILED;

	if (!s) {
		complain("out of memory");
		return status;
	}
	opts_first(o, &s->cfg);
	s->runtime = *runtime;
	s->budget.limit = s->cfg.max_memory;
	s->timed = log_timed(getenv("JOURNAL_STREAM"), STDERR_FILENO);
	if (set_up(s, o))
		complain("%s", rxfer_error());
	else
		status = run(s);
	if (!s->sessions) /* else threads still look at it, until the process ends */
		free(s);
	return status;
}
