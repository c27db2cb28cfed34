/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The server's side of a session: do as the client says, within limits, and live on whatever it
 * does. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sched.h>
#include "env.h"
#include "fence_msg.h"
#include "session_server.h"

#define QUIET_PASSES 64 /* without work, and the CPU time is noted: what follows is waiting */

static int send_ready(struct served *s)
{
	struct rxfer_wait wait = watch_wait(&s->watch);
	struct ready ready = {.target = exposed_target(&s->exposed)};

	rxfer_listener_addr(s->listener, &ready.addr);
	return control_send(s->control, MSG_READY, ready_to_json(&ready), &wait);
}

static int accept_all(struct served *s)
{
	struct rxfer_conn_attr attr;

	for (; s->nconns < s->cfg.qps; s->nconns++) {
		struct rxfer_wait wait = watch_wait(&s->watch);
		int rc = conn_attr(&s->cfg, &s->layout, s->roles, s->token, s->nconns, &attr);

		if (rc)
			return rc;
		wait.cancel_fd = s->control->fd;
		rc = rxfer_accept(s->listener, &attr, &wait, &s->conns[s->nconns]);
		if (rc == -ECANCELED)
			rc = control_reason(s->control, rc);
		if (rc)
			return rc;
	}
	return 0;
}

/* Does anything ever come up here that this end must poll for? */
static bool is_active(const struct served *s)
{
	return server_polls(&s->cfg);
}

/*
 * Is there nothing now but the control connection to wait for? With --bidir GO is such a message:
 * who polled and looked for it every 50 ms only would begin when the client has long been issuing,
 * and figures of a short run would be those of one direction after the other.
 */
static bool only_listens(const struct served *s)
{
	return s->between || !is_active(s);
}

static void set_between(struct served *s, bool between)
{
	s->between = between && s->load;
	s->watch.passive = only_listens(s);
}

static void init_watch(struct served *s)
{
	watch_init(&s->watch, s->control, &s->cfg, s->runtime,
		   !is_active(s)	   ? 0
		   : s->peer->same_machine ? 2
					   : 1,
		   rxfer_dev_info(s->dev)->software);
	s->watch.must_hear = true;
	s->watch.passive = only_listens(s);
	s->watch.eager = true;
	watch_device(&s->watch, s->dev);
}

static int make_load(struct served *s)
{
	if (s->cfg.mode == MODE_RPC)
		return rpc_server_new(&s->cfg, &s->layout, s->dev, s->conns, &s->runtime->clock,
				      &s->rpc);
	s->sink = sink_new(&s->cfg, &s->layout, s->roles, s->conns, &s->exposed.recv);
	if (!s->sink)
		return -ENOMEM;
	if (!s->roles.issues)
		return 0;
	s->load = direct_new(&s->cfg, &s->layout, s->dev, s->conns, &s->theirs, s->sink, &s->watch);
	return s->load ? 0 : -ENOMEM;
}

/* Where our own I/Os go. The client makes that memory when it knows that we have ours. */
static int hear_of_memory(struct served *s)
{
	struct rxfer_wait wait = watch_wait(&s->watch);
	json_t *body;
	int rc;

	wait.deadline += layout_allowance(&s->cfg, &s->layout);
	rc = control_expect(s->control, MSG_MEMORY, &body, &wait);
	if (rc)
		return rc;
	rc = target_from_json(body, &s->theirs);
	json_decref(body);
	return rc ? rc : target_check(&s->theirs, "the client", &s->cfg, &s->layout);
}

/* The device, the memory, the connections. */
static int connect_it(struct served *s, const char *device)
{
	int rc = run_device(&s->cfg, device, s->roles, &s->dev);

	s->unable = rc == -EOPNOTSUPP;
	if (!rc)
		rc = conn_possible(&s->cfg, s->dev);
	if (rc)
		return rc;
	init_watch(s);
	rc = exposed_make(&s->cfg, &s->layout, s->roles, s->dev, &s->exposed);
	if (!rc)
		rc = rxfer_listen(s->dev, &s->listener);
	if (!rc)
		rc = send_ready(s);
	if (!rc && s->cfg.bidir)
		rc = hear_of_memory(s);
	return rc ? rc : accept_all(s);
}

static int prepare(struct served *s, const char *device)
{
	struct rxfer_wait wait;
	int rc;

	s->conns = calloc(s->cfg.qps, sizeof(s->conns[0]));
	s->messages = calloc(s->cfg.qps, sizeof(s->messages[0]));
	if (!s->conns || !s->messages)
		return rxfer_fail(ENOMEM, "out of memory");
	rc = connect_it(s, device);
	if (!rc)
		rc = make_load(s);
	if (rc)
		return rc;
	wait = watch_wait(&s->watch);
	/* Registering much memory takes long: that of the client's load comes next. */
	s->watch.heard = rxfer_now() + layout_allowance(&s->cfg, &s->layout);
	return control_send(s->control, MSG_CONNECTED, NULL, &wait);
}

/* ---- From the client's START to its STOP ---- */

static int answer_start(struct served *s)
{
	struct rxfer_wait wait = watch_wait(&s->watch);
	json_t *body = s->load ? messages_to_json(s->load, s->cfg.qps) : NULL;

	for (uint64_t i = 0; i < s->nconns; i++)
		rxfer_conn_restart(s->conns[i]);
	if (s->rpc)
		rpc_server_restart(s->rpc);
	s->faults = rxfer_dev_faults(s->dev);
	watch_begin(&s->watch);
	s->cpu_start = s->cpu_end = cpu_time_ns();
	s->cpu = sched_getcpu();
	set_between(s, true);
	return control_send(s->control, MSG_STARTED, body, &wait);
}

/* With a load of its own this end's CPU time is that of the load, as at the client's. */
static json_t *my_counts(struct served *s)
{
	struct counts counts = {0};

	counts.cpu_ns = (s->quiet < QUIET_PASSES ? cpu_time_ns() : s->cpu_end) - s->cpu_start;
	counts.passes = s->watch.passes;
	counts.idle = s->watch.idle;
	counts_take(&counts, s->conns, (unsigned int)s->nconns);
	counts_faults(&counts, s->dev, s->faults);
	if (s->rpc)
		rpc_server_count(s->rpc, &counts);
	if (s->load)
		counts.cpu_ns = s->measured.counts.cpu_ns;
	return counts_to_json(&counts);
}

/* Where what the peer moves goes to or comes from. */
static const struct area *peers_memory(const struct served *s)
{
	if (s->rpc)
		return rpc_server_memory(s->rpc);
	return s->exposed.target.len ? &s->exposed.target : &s->exposed.recv;
}

static int answer_stop(struct served *s)
{
	struct rxfer_wait wait = watch_wait(&s->watch);
	json_t *body = my_counts(s);
	struct found found = {0};

	found_cpu(&found, s->cpu, sched_getcpu());
	found_nodes(&found, peers_memory(s)->base, peers_memory(s)->len);
	found_to_json(body, &found);
	if (s->load) {
		load_to_json(&s->measured, body);
		json_object_update_new(body, messages_to_json(s->load, s->cfg.qps));
	}
	return control_send(s->control, MSG_RESULT, body, &wait);
}

/* The client goes on to its next part, or stops: answered once all it has sent has arrived, and our
 * own load, if there is one, is done. */
static int may_answer(struct served *s, bool *yes)
{
	if (s->rpc)
		return rpc_server_quiet(s->rpc, yes);
	*yes = sink_caught_up(s->sink, s->messages) && (!s->load || load_finished(s->load));
	return 0;
}

static int answer(struct served *s, enum message asked)
{
	return asked == MSG_START ? answer_start(s) : answer_stop(s);
}

/* GO: the warm-up, if there is one, then the timed part. */
static void begin_load(struct served *s)
{
	bool timed = s->begun || s->cfg.warmup == 0;

	s->begun = true;
	if (timed)
		load_begin(s->load, s->cfg.iters, s->cfg.duration_ns, &s->measured);
	else
		load_begin(s->load, s->cfg.warmup, 0, NULL);
}

/* For the log. An older client does not say it, and no run fails for that. */
static void note_moved(struct served *s, enum message type, const json_t *body)
{
	if (type != MSG_STOP || moved_from_json(body, &s->moved))
		return;
	s->cut_short = json_integer_value(json_object_get(body, "cut_short")) > 0;
}

/* A message in mid-run. What it asks for goes to @asked. */
static int told(struct served *s, enum message type, json_t *body, enum message *asked)
{
	bool may_go = s->between;
	uint64_t cut_short = 0;
	int rc = 0;

	set_between(s, false);
	if (type == MSG_GO && may_go) {
		json_decref(body);
		begin_load(s);
		return 0;
	}
	if (type != MSG_START && type != MSG_STOP)
		return control_bad_news(s->control, type, body);
	*asked = type;
	rc = messages_from_json(body, s->messages, s->cfg.qps);
	if (!rc && s->load)
		rc = control_uint(body, "cut_short", &cut_short);
	if (cut_short)
		load_stop(s->load);
	if (!rc)
		note_moved(s, type, body);
	json_decref(body);
	return rc;
}

/* How long to sleep where there is nothing to do but to say that we are alive, in good time. */
static int nap_ms(const struct served *s)
{
	uint64_t ms = s->cfg.timeout_ns / 4000000;

	return ms < 100 ? (int)ms : 100;
}

/* Give the CPU away while nothing comes: READ and WRITE need none of it here. Who goes to sleep
 * looks at the device once more by that, so no look of its own has to find nothing before. */
static int rest(struct served *s, int did)
{
	struct pollfd p = {.fd = s->control->fd, .events = POLLIN};

	if (only_listens(s))
		poll(&p, 1, nap_ms(s));
	else if (s->load)
		return load_rest(s->load, did);
	else if (s->watch.sleep)
		return watch_sleep(&s->watch, s->conns, (unsigned int)s->nconns);
	return 0;
}

/* The client's STOP comes a while after its last message: waiting for it is no part of the work. */
static void note_cpu(struct served *s, int did)
{
	if (did)
		s->quiet = 0;
	else if (++s->quiet == QUIET_PASSES)
		s->cpu_end = cpu_time_ns();
}

static int work(struct served *s)
{
	if (s->rpc)
		return rpc_server_pass(s->rpc);
	return s->load ? load_pass(s->load) : sink_pass(s->sink);
}

/* What was @asked for, once it may be answered; @over: that was the end of the run. */
static int answer_when_done(struct served *s, enum message *asked, bool *over)
{
	bool may = false;
	int rc = may_answer(s, &may);

	if (rc || !may)
		return rc;
	*over = *asked == MSG_STOP;
	rc = answer(s, *asked);
	*asked = 0;
	return rc;
}

static int serve(struct served *s)
{
	enum message asked = 0, type;
	bool over = false;
	json_t *body;
	int rc;

	for (;;) {
		int did = work(s);

		if (did < 0)
			return did;
		if (*s->runtime->stop)
			return rxfer_fail(EINTR, "the server was told to stop");
		if (asked) {
			rc = answer_when_done(s, &asked, &over);
			if (rc || over)
				return rc;
		}
		note_cpu(s, did);
		rc = rest(s, did);
		if (rc)
			return rc;
		rc = watch_pass(&s->watch, (unsigned int)did, s->load && load_waits(s->load), &type,
				&body);
		if (rc == 1)
			rc = told(s, type, body, &asked);
		if (rc)
			return rc;
	}
}

/* A second STOP, of a client that was interrupted, may have crossed our RESULT. */
static int let_client_leave(struct served *s)
{
	struct rxfer_wait wait = watch_wait(&s->watch);
	enum message type;
	json_t *body;
	int rc = control_recv(s->control, &type, &body, &wait);

	if (rc)
		return rc;
	if (type != MSG_STOP && type != MSG_CLOSED)
		return control_bad_news(s->control, type, body);
	json_decref(body);
	return type == MSG_CLOSED ? 0 : control_expect(s->control, MSG_CLOSED, NULL, &wait);
}

static void clean_up(struct served *s)
{
	for (uint64_t i = 0; i < s->nconns; i++)
		rxfer_conn_close(s->conns[i]);
	load_free(s->load);
	rpc_server_free(s->rpc);
	sink_free(s->sink);
	rxfer_listener_close(s->listener);
	exposed_drop(&s->exposed);
	rxfer_dev_close(s->dev);
	free(s->conns);
	free(s->messages);
}

/* The session is over, and the peer is told why. */
static int give_up(struct control *c, int rc)
{
	if (rc == -EINTR)
		rxfer_fail(rc, "the server was told to stop");
	if (rc)
		control_give_up(c, rc);
	return rc;
}

/* ---- Run after run ---- */

/* Its memory is taken from what all sessions have, before there is any of it. */
static int take_memory(struct served *s)
{
	struct need need = {0};

	layout_make(&s->cfg, &s->layout);
	exposed_need(&s->cfg, &s->layout, s->roles, &need);
	if (s->cfg.mode == MODE_RPC)
		rpc_server_need(&s->cfg, &s->layout, &need);
	if (s->roles.issues)
		direct_need(&s->cfg, &s->layout, &need);
	return budget_take(s->host->budget, need.all, need.plain, memory_available(), &s->share);
}

static int configure(struct served *s, const json_t *body)
{
	int rc = config_from_json(body, &s->cfg, s->token);

	s->configured = !rc;
	s->roles = (struct roles){.issues = s->cfg.bidir, .receives = true};
	return rc ? rc : take_memory(s);
}

static int run_it(struct served *s, const json_t *body)
{
	int rc = configure(s, body);

	if (!rc)
		rc = prepare(s, s->host->device);
	if (s->cfg.prefault == PREFAULT_YES) /* else it may all be touched later */
		budget_settle(s->host->budget, &s->share);
	if (!rc)
		rc = serve(s);
	watch_end(&s->watch);
	if (rc == -ENOTCONN)
		rc = control_reason(s->control, rc);
	if (!rc && s->load)
		rc = let_client_leave(s);
	if (rc)
		rxfer_dev_blame(s->dev, rc);
	if (!s->unable)
		return give_up(s->control, rc);
	control_unable(s->control);
	return rc;
}

static int serve_run(struct control *c, const struct peer *peer, const struct host *host,
		     const json_t *body, unsigned int number)
{
	struct served s = {.control = c, .runtime = host->runtime, .host = host, .peer = peer};
	char reason[512] = "";
	int rc = run_it(&s, body);

	if (rc)
		snprintf(reason, sizeof(reason), "%s", rxfer_error());
	clean_up(&s);
	budget_give(host->budget, &s.share);
	served_say(&s, number, rc, reason);
	return rc ? rxfer_fail(rc, "%s", reason) : 0;
}

/* The next message between runs. */
static int next_request(struct control *c, const struct host *host, enum message *type,
			json_t **body)
{
	struct rxfer_wait wait = {rxfer_now() + host->timeout_ns, -1, host->runtime->stop};
	int rc = control_recv(c, type, body, &wait);

	if (rc == -ETIMEDOUT)
		rxfer_fail(rc, "%s asked for no run within %.1f s (the server's --timeout)",
			   c->peer, (double)host->timeout_ns / 1e9);
	if (!rc && *type != MSG_CONFIG && *type != MSG_FENCE && *type != MSG_BYE)
		rc = control_bad_news(c, *type, *body);
	return give_up(c, rc);
}

/* @runs: counts them. 0: the client said goodbye. */
static int serve_runs(struct control *c, const struct peer *peer, const struct host *host,
		      unsigned int *runs)
{
	enum message type;
	json_t *body;
	int rc;

	for (;;) {
		rc = next_request(c, host, &type, &body);
		if (rc)
			return rc;
		if (type == MSG_CONFIG)
			rc = serve_run(c, peer, host, body, *runs + 1);
		else if (type == MSG_FENCE)
			rc = fence_serve(c, host, body, *runs + 1);
		json_decref(body);
		if (rc || type == MSG_BYE)
			return rc;
		++*runs;
	}
}

static int greet(struct control *c, const struct host *host, struct peer *peer)
{
	struct rxfer_wait wait = {rxfer_now() + host->timeout_ns, -1, host->runtime->stop};
	int rc = session_hello(c, false, peer, &wait);

	if (rc == -ETIMEDOUT)
		rxfer_fail(rc, "%s said no hello within %.1f s (the server's --timeout)", c->peer,
			   (double)host->timeout_ns / 1e9);
	return give_up(c, rc);
}

int session_serve(struct control *c, const struct host *host)
{
	unsigned int runs = 0;
	struct peer peer;
	int rc = greet(c, host, &peer);

	if (rc) {
		host_say(host, "was dropped before it began: %s", rxfer_error());
		return rc;
	}
	host_say(host, "begins, client on %s, version %s", peer.host, peer.version);
	rc = serve_runs(c, &peer, host, &runs);
	if (rc)
		host_say(host, "ended after %s: %s", rxfer_count(runs, "run").s, rxfer_error());
	else
		host_say(host, "ends after %s", rxfer_count(runs, "run").s);
	return rc ? rc : (int)runs;
}
