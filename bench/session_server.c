/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The server's side of a session: do as the client says, within limits, and live on whatever it
 * does. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include "env.h"
#include "pattern.h"
#include "session.h"

/* A credit message needs few of these; its send queue is this side's only one. */
#define CREDIT_SLOTS 4

/* struct served - one run, as the server has it. */
struct served {
	struct control *control;
	const struct runtime *runtime;
	const struct peer *peer;
	struct cfg cfg;
	struct layout layout;
	uint8_t token[RXFER_TOKEN_BYTES];
	struct rxfer_dev *dev;
	struct rxfer_listener *listener;
	struct area target; /* what the client READs, WRITEs or SENDs to */
	struct area credit;
	struct rxfer_conn **conns;
	uint64_t nconns;
	struct sink *sink;
	struct watch watch;
	uint64_t *messages;	     /* that the client says it has sent, per QP */
	uint64_t cpu_start, cpu_end; /* of this thread: at START, and after its latest work */
	unsigned int quiet;	     /* passes since that work */
};

#define QUIET_PASSES 64 /* without work, and the CPU time is noted: what follows is waiting */

static unsigned int target_rights(const struct cfg *cfg)
{
	if (cfg->op == OP_SEND)
		return RXFER_FIXED;
	if (cfg->op == OP_READ)
		return RXFER_PEER_READ;
	return RXFER_PEER_WRITE | (cfg->verify ? RXFER_PEER_READ : 0);
}

static int make_memory(struct served *s)
{
	const struct cfg *cfg = &s->cfg;
	size_t len = cfg->op == OP_SEND ? cfg->qps * s->layout.recvs * s->layout.message
					: cfg->qps * cfg->depth * s->layout.target;
	int rc = area_make(s->dev, len, target_rights(cfg), &s->target);

	if (rc)
		return rc;
	if (cfg->op == OP_READ)
		pattern_fill(s->target.base, cfg->verify ? len : 0, 0, 0);
	return area_make(s->dev, cfg->op == OP_SEND ? cfg->qps * CREDIT_BYTES : 0, RXFER_LOCAL,
			 &s->credit);
}

static int send_ready(struct served *s)
{
	struct rxfer_wait wait = watch_wait(&s->watch);
	struct ready ready = {
		.target = {(uintptr_t)s->target.base, s->target.len, rxfer_mem_rkey(s->target.mem)},
	};

	rxfer_listener_addr(s->listener, &ready.addr);
	return control_send(s->control, MSG_READY, ready_to_json(&ready), &wait);
}

static int accept_all(struct served *s)
{
	struct rxfer_conn_attr attr;

	for (; s->nconns < s->cfg.qps; s->nconns++) {
		struct rxfer_wait wait = watch_wait(&s->watch);
		int rc = conn_attr(&s->cfg, s->token, s->nconns, &attr);

		if (rc)
			return rc;
		wait.cancel_fd = s->control->fd;
		attr.slots = s->cfg.op == OP_SEND ? CREDIT_SLOTS : 1;
		attr.rq_depth = s->cfg.op == OP_SEND ? s->layout.recvs : 0;
		attr.shape = (struct rxfer_shape){RXFER_SEND, CREDIT_BYTES, 1, 0};
		rxfer_sig_parse("half", &attr.sig, &attr.sig_arg);
		rc = rxfer_accept(s->listener, &attr, &wait, &s->conns[s->nconns]);
		if (rc == -ECANCELED)
			rc = control_reason(s->control, rc);
		if (rc)
			return rc;
	}
	return 0;
}

static int prepare(struct served *s, const char *device)
{
	const struct rxfer_dev_info *info;
	struct rxfer_wait wait;
	int rc;

	layout_make(&s->cfg, &s->layout);
	s->conns = calloc(s->cfg.qps, sizeof(s->conns[0]));
	s->messages = calloc(s->cfg.qps, sizeof(s->messages[0]));
	if (!s->conns || !s->messages)
		return rxfer_fail(ENOMEM, "out of memory");
	rc = rxfer_dev_open(device, "global", &s->dev);
	if (rc)
		return rc;
	info = rxfer_dev_info(s->dev);
	watch_init(&s->watch, s->control, &s->cfg, s->runtime,
		   s->cfg.op != OP_SEND	   ? 0
		   : s->peer->same_machine ? 2
					   : 1,
		   info->software);
	s->watch.must_hear = true;
	s->watch.passive = s->cfg.op != OP_SEND;
	/* Registering much memory takes long, on both sides; meanwhile there is nothing to hear. */
	s->watch.heard += layout_allowance(&s->cfg, &s->layout);
	rc = make_memory(s);
	if (!rc)
		rc = rxfer_listen(s->dev, &s->listener);
	if (!rc)
		rc = send_ready(s);
	if (!rc)
		rc = accept_all(s);
	if (rc)
		return rc;
	s->sink = sink_new(&s->cfg, &s->layout, s->conns, &s->target, &s->credit);
	if (!s->sink)
		return -ENOMEM;
	wait = watch_wait(&s->watch);
	return control_send(s->control, MSG_CONNECTED, NULL, &wait);
}

/* The client goes on to its next part, or stops: answered once all it has sent has arrived. */
static int answer(struct served *s, enum message asked)
{
	struct rxfer_wait wait = watch_wait(&s->watch);
	struct counts counts = {0};

	if (asked == MSG_START) {
		for (uint64_t i = 0; i < s->nconns; i++)
			rxfer_conn_restart(s->conns[i]);
		watch_begin(&s->watch);
		s->cpu_start = s->cpu_end = cpu_time_ns();
		return control_send(s->control, MSG_STARTED, NULL, &wait);
	}
	counts.cpu_ns = (s->quiet < QUIET_PASSES ? cpu_time_ns() : s->cpu_end) - s->cpu_start;
	counts.passes = s->watch.passes;
	counts.idle = s->watch.idle;
	counts_take(&counts, s->conns, (unsigned int)s->nconns);
	return control_send(s->control, MSG_RESULT, counts_to_json(&counts), &wait);
}

static int told(struct served *s, enum message type, json_t *body)
{
	int rc;

	if (type != MSG_START && type != MSG_STOP)
		return control_bad_news(s->control, type, body);
	rc = messages_from_json(body, s->messages, s->cfg.qps);
	json_decref(body);
	return rc;
}

/* Give the CPU away while nothing comes: READ and WRITE need none of it here. */
static int rest(struct served *s, int did)
{
	struct pollfd p = {.fd = s->control->fd, .events = POLLIN};

	if (s->cfg.op != OP_SEND)
		poll(&p, 1, 100);
	else if (did == 0 && s->watch.sleep)
		return watch_woken(&s->watch, rxfer_sleep(s->dev, s->conns, (unsigned int)s->nconns,
							  s->control->fd, 50));
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

/* From the client's START to its STOP. */
static int serve(struct served *s)
{
	enum message asked = 0, type;
	json_t *body;
	int rc;

	for (;;) {
		int did = sink_pass(s->sink);

		if (did < 0)
			return did;
		if (*s->runtime->stop)
			return rxfer_fail(EINTR, "the server was told to stop");
		if (asked && sink_caught_up(s->sink, s->messages)) {
			rc = answer(s, asked);
			if (rc || asked == MSG_STOP)
				return rc;
			asked = 0;
		}
		note_cpu(s, did);
		rc = rest(s, did);
		if (rc)
			return rc;
		rc = watch_pass(&s->watch, (unsigned int)did, false, &type, &body);
		if (rc == 1) {
			rc = told(s, type, body);
			asked = type;
		}
		if (rc)
			return rc;
	}
}

static void clean_up(struct served *s)
{
	for (uint64_t i = 0; i < s->nconns; i++)
		rxfer_conn_close(s->conns[i]);
	sink_free(s->sink);
	rxfer_listener_close(s->listener);
	area_drop(&s->target);
	area_drop(&s->credit);
	rxfer_dev_close(s->dev);
	free(s->conns);
	free(s->messages);
}

static int serve_run(struct control *c, const struct peer *peer, const char *device,
		     const json_t *body, const struct runtime *runtime)
{
	struct served s = {.control = c, .runtime = runtime, .peer = peer};
	int rc = config_from_json(body, &s.cfg, s.token);

	if (!rc)
		rc = prepare(&s, device);
	if (!rc)
		rc = serve(&s);
	if (rc && rc != -EREMOTEIO && rc != -ECONNRESET) {
		struct rxfer_wait soon = {rxfer_now() + 1000000000u, -1, NULL};

		control_fail(c, &soon);
	}
	clean_up(&s);
	return rc;
}

int session_serve(struct control *c, const char *device, uint64_t timeout_ns,
		  const struct runtime *runtime)
{
	struct rxfer_wait wait = {rxfer_now() + timeout_ns, -1, runtime->stop};
	struct peer peer;
	int rc = session_hello(c, false, &peer, &wait), runs = 0;

	while (!rc) {
		enum message type;
		json_t *body;

		wait.deadline = rxfer_now() + timeout_ns;
		rc = control_recv(c, &type, &body, &wait);
		if (rc)
			break;
		if (type == MSG_BYE) {
			json_decref(body);
			return runs;
		}
		if (type == MSG_CONFIG)
			rc = serve_run(c, &peer, device, body, runtime);
		else
			rc = control_bad_news(c, type, json_incref(body));
		json_decref(body);
		runs += !rc;
	}
	return rc;
}
