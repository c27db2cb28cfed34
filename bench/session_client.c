/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The client's side of a session: set one run up and drive it. */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "env.h"
#include "load_rpc.h"
#include "session_client.h"

/* ---- Setting up ---- */

/* Is the server's address our device's own? Then its queues are taken from the same device. */
static bool same_device(const struct run *run)
{
	char theirs[INET6_ADDRSTRLEN];

	addr_text(&run->server.addr, theirs, sizeof(theirs));
	return run->peer->same_machine && !strcmp(theirs, rxfer_dev_info(run->dev)->addr);
}

static int configure(struct run *run, const uint8_t token[RXFER_TOKEN_BYTES])
{
	struct rxfer_wait wait = watch_wait(&run->watch);
	json_t *body = config_to_json(run->cfg, token);
	int rc;

	wait.deadline += layout_allowance(run->cfg, &run->layout);
	rc = control_send(run->control, MSG_CONFIG, body, &wait);
	if (!rc)
		rc = control_expect(run->control, MSG_READY, &body, &wait);
	if (rc)
		return rc;
	rc = ready_from_json(body, &run->server);
	json_decref(body);
	if (!rc)
		rc = target_check(&run->server.target, "the server", run->cfg, &run->layout);
	if (!rc && same_device(run))
		rc = rxfer_dev_room(run->dev, run->cfg->qps, 2);
	return rc;
}

/* What the server sends to; with --bidir it waits to hear where that is. */
static int expose(struct run *run)
{
	int rc = exposed_make(run->cfg, &run->layout, run->roles, run->dev, &run->exposed);
	struct target mine = exposed_target(&run->exposed);
	struct rxfer_wait wait = watch_wait(&run->watch);
	json_t *body;

	if (rc || !run->cfg->bidir)
		return rc;
	body = json_object();
	target_to_json(&mine, body);
	return control_send(run->control, MSG_MEMORY, body, &wait);
}

/* Is it the peer who knows why? What failed on our side, he only knows the consequences of. */
static bool peer_knows(int rc)
{
	return rc == -ECANCELED || rc == -ECONNREFUSED || rc == -ECONNRESET || rc == -ETIMEDOUT ||
	       rc == -EIO;
}

static int connect_all(struct run *run, const uint8_t token[RXFER_TOKEN_BYTES])
{
	const struct cfg *cfg = run->cfg;
	struct rxfer_conn_attr attr;

	for (; run->nconns < cfg->qps; run->nconns++) {
		struct rxfer_wait wait = watch_wait(&run->watch);
		int rc = conn_attr(cfg, &run->layout, run->roles, token, run->nconns, &attr);

		if (rc)
			return rc;
		wait.cancel_fd = run->control->fd;
		rc = rxfer_connect(run->dev, &run->server.addr, &attr, &wait,
				   &run->conns[run->nconns]);
		if (rc)
			return peer_knows(rc) ? control_reason(run->control, rc) : rc;
	}
	return 0;
}

/* The RECVs are there before the server is told to begin. */
static int make_load(struct run *run)
{
	if (run->cfg->mode == MODE_RPC)
		return rpc_client_new(run->cfg, &run->layout, run->dev, run->conns, &run->watch,
				      &run->load);
	run->sink = sink_new(run->cfg, &run->layout, run->roles, run->conns, &run->exposed.recv);
	if (!run->sink)
		return -ENOMEM;
	run->load = direct_new(run->cfg, &run->layout, run->dev, run->conns, &run->server.target,
			       run->sink, &run->watch);
	return run->load ? 0 : -ENOMEM;
}

static int set_up(struct run *run)
{
	uint8_t token[RXFER_TOKEN_BYTES];
	struct rxfer_wait wait;
	int rc;

	if (getrandom(token, sizeof(token), 0) != sizeof(token))
		return rxfer_fail(EIO, "getrandom: %m");
	run->conns = calloc(run->cfg->qps, sizeof(run->conns[0]));
	run->messages = calloc(run->cfg->qps, sizeof(run->messages[0]));
	if (!run->conns || !run->messages)
		return rxfer_fail(ENOMEM, "out of memory");
	layout_make(run->cfg, &run->layout);
	rc = configure(run, token);
	if (!rc)
		rc = expose(run);
	if (!rc)
		rc = connect_all(run, token);
	wait = watch_wait(&run->watch);
	/* The server makes the memory of its load now. */
	if (run->cfg->bidir || run->cfg->mode == MODE_RPC)
		wait.deadline += layout_allowance(run->cfg, &run->layout);
	if (!rc)
		rc = control_expect(run->control, MSG_CONNECTED, NULL, &wait);
	return rc ? rc : make_load(run);
}

/* ---- Driving ---- */

/*
 * One pass of the load, and all that goes on beside it. 1: a message of the server, which is the
 * caller's; 0; or -errno. @busy: lack of progress is a failure.
 */
static int one_pass(struct run *run, bool busy, enum message *type, json_t **body)
{
	int did = load_pass(run->load), rc;

	if (did < 0)
		return did;
	rc = load_rest(run->load, did);
	return rc ? rc : watch_pass(&run->watch, (unsigned int)did, busy, type, body);
}

/* Our own load, to its end. */
static int run_phase(struct run *run, uint64_t ios, uint64_t duration, struct load_result *out)
{
	enum message type;
	json_t *body;
	int rc = 0;

	run->watch.heard = rxfer_now(); /* its answer, just now */
	load_begin(run->load, ios, duration, out);
	while (!rc && !load_finished(run->load))
		rc = one_pass(run, load_waits(run->load), &type, &body);
	/* In mid-run there is nothing good that the server could have to say. */
	return rc == 1 ? control_bad_news(run->control, type, body) : rc;
}

static int say_where(struct run *run, enum message say)
{
	struct rxfer_wait wait = watch_wait(&run->watch);
	json_t *sent = messages_to_json(run->load, run->cfg->qps);
	bool cut_short = run->mine.cut_short || run->told_to_stop;

	json_object_set_new(sent, "cut_short", json_integer(cut_short));
	if (say == MSG_STOP)
		moved_to_json(&run->mine, sent);
	return control_send(run->control, say, sent, &wait);
}

/* A stop signal while only the server's load goes on. */
static int interrupt(struct run *run, enum message expect)
{
	if (expect != MSG_RESULT)
		return rxfer_fail(EINTR, "interrupted before the timed part");
	if (run->mine.cut_short || run->told_to_stop)
		return 0; /* it knows */
	run->told_to_stop = true;
	return say_where(run, MSG_STOP);
}

/* The server's answer; with --bidir it may take as long as its load, which we go on receiving.
 * @body is set on success only: a sign of life has been there and gone. */
static int await(struct run *run, enum message expect, json_t **body)
{
	struct rxfer_wait wait = watch_wait(&run->watch);
	enum message type;
	json_t *got;
	int rc = 0;

	wait.stop = NULL; /* an interrupted run still wants its result */
	if (!run->cfg->bidir)
		return control_expect(run->control, expect, body, &wait);
	while (!rc) {
		rc = one_pass(run, false, &type, &got);
		if (!rc && *run->runtime->stop)
			rc = interrupt(run, expect);
	}
	if (rc < 0)
		return rc;
	if (type != expect)
		return control_bad_news(run->control, type, got);
	*body = got;
	return 0;
}

/* All that the server says it has sent has arrived. */
static int catch_up(struct run *run, const json_t *body)
{
	int rc = messages_from_json(body, run->messages, run->cfg->qps);
	enum message type;
	json_t *more;

	while (!rc && !sink_caught_up(run->sink, run->messages))
		rc = one_pass(run, true, &type, &more);
	return rc == 1 ? control_bad_news(run->control, type, more) : rc;
}

/* Tell the server where we stand, and wait until it has caught up, and we with it. */
static int sync_with_server(struct run *run, enum message say, enum message expect, json_t **body)
{
	int rc = say_where(run, say);

	*body = NULL;
	if (!rc)
		rc = await(run, expect, body);
	if (!rc && run->cfg->bidir)
		rc = catch_up(run, *body);
	if (rc) {
		json_decref(*body);
		*body = NULL;
	}
	return rc;
}

/* All is quiet in both directions: counts begin anew, and then the phase. */
static int phase(struct run *run, uint64_t ios, uint64_t duration, struct load_result *out)
{
	struct rxfer_wait wait;
	json_t *body;
	int rc = sync_with_server(run, MSG_START, MSG_STARTED, &body);

	json_decref(body);
	for (uint64_t i = 0; !rc && i < run->nconns; i++)
		rxfer_conn_restart(run->conns[i]);
	run->faults = rxfer_dev_faults(run->dev);
	if (rc || (!out && !ios))
		return rc; /* no warm-up */
	wait = watch_wait(&run->watch);
	if (run->cfg->bidir)
		rc = control_send(run->control, MSG_GO, NULL, &wait);
	return rc ? rc : run_phase(run, ios, duration, out);
}

static int take_result(struct run *run, const json_t *body)
{
	int rc = run->cfg->bidir ? load_from_json(body, &run->theirs) : 0;

	if (!rc)
		rc = counts_from_json(body, &run->theirs.counts);
	return rc ? rc : found_from_json(body, &run->theirs_found);
}

static int drive(struct run *run)
{
	const struct cfg *cfg = run->cfg;
	json_t *body;
	int rc, cpu;

	/* A NIC serves the memory of a process that is stopped; its load, its result are none. */
	run->watch.heard = rxfer_now();
	run->watch.must_hear = true;
	rc = phase(run, cfg->warmup, 0, NULL);
	if (!rc && *run->runtime->stop)
		rc = rxfer_fail(EINTR, "interrupted before the timed part");
	cpu = sched_getcpu();
	if (!rc)
		rc = phase(run, cfg->iters, cfg->duration_ns, &run->mine);
	found_cpu(&run->found, cpu, sched_getcpu());
	if (!rc)
		rc = sync_with_server(run, MSG_STOP, MSG_RESULT, &body);
	if (rc)
		return rc;
	load_count(run->load);
	counts_faults(&run->mine.counts, run->dev, run->faults);
	rc = take_result(run, body);
	json_decref(body);
	return rc;
}

static void close_all(struct run *run)
{
	while (run->nconns)
		rxfer_conn_close(run->conns[--run->nconns]);
}

/* The server waits for us to go first. */
static int leave(struct run *run)
{
	struct rxfer_wait wait = watch_wait(&run->watch);

	close_all(run);
	return run->cfg->bidir ? control_send(run->control, MSG_CLOSED, NULL, &wait) : 0;
}

static void clean_up(struct run *run)
{
	close_all(run);
	free(run->conns);
	free(run->messages);
	load_free(run->load);
	sink_free(run->sink);
	exposed_drop(&run->exposed);
	rxfer_dev_close(run->dev);
}

/* The server is told what it is to be, and the row has it. */
static void settle(struct run *run, struct result *result)
{
	const char *strategy;

	if (run->cfg->mode != MODE_RPC)
		return;
	strategy = rpc_peer_strategy(run->cfg, rxfer_dev_info(run->dev));
	run->settled = *run->cfg;
	snprintf(run->settled.peer_strategy, CFG_TEXT, "%s", strategy);
	snprintf(result->peer_strategy, RESULT_TEXT, "%s", strategy);
	run->cfg = &run->settled;
}

int session_run(struct control *c, const struct peer *peer, const struct cfg *cfg,
		const struct runtime *runtime, struct result *result)
{
	struct run *run = calloc(1, sizeof(*run));
	int rc;

	if (!run)
		return rxfer_fail(ENOMEM, "out of memory");
	*run = (struct run){.control = c,
			    .peer = peer,
			    .cfg = cfg,
			    .runtime = runtime,
			    .roles = {.issues = true, .receives = cfg->bidir}};
	result_settings(result, cfg);
	snprintf(result->peer_host, sizeof(result->peer_host), "%s", peer->host);
	rc = run_device(cfg, cfg->device, run->roles, &run->dev);
	if (!rc && cfg->mode == MODE_RPC)
		rc = rpc_revoke(cfg, &run->revoke);
	if (rc == -EOPNOTSUPP) {
		result->status = RESULT_SKIPPED;
		snprintf(result->reason, sizeof(result->reason), "%s", rxfer_error());
		clean_up(run);
		free(run);
		return 0;
	}
	if (rc)
		goto out;
	settle(run, result);
	env_fill(result, rxfer_dev_info(run->dev));
	snprintf(result->clock, sizeof(result->clock), "%s", clock_name(&runtime->clock));
	watch_init(&run->watch, c, cfg, runtime, server_polls(cfg) && peer->same_machine ? 2 : 1,
		   rxfer_dev_info(run->dev)->software);
	watch_device(&run->watch, run->dev);
	rc = conn_possible(cfg, run->dev);
	if (!rc)
		rc = set_up(run);
	if (!rc)
		rc = drive(run);
	watch_end(&run->watch);
	if (rc == -ENOTCONN)
		rc = control_reason(c, rc);
	if (!rc) {
		result_fill(run, result);
		rc = leave(run);
	}
out:
	if (rc) {
		result->status = rc == -EREMOTE ? RESULT_SKIPPED : RESULT_FAILED;
		rxfer_dev_blame(run->dev, rc);
		snprintf(result->reason, sizeof(result->reason), "%s", rxfer_error());
		control_give_up(c, rc);
		rxfer_fail(rc, "%s", result->reason);
	}
	clean_up(run);
	free(run);
	return rc;
}
