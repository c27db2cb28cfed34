/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rxfer-bench fence, the server's side: it plays the peer that uses the keys it was given, when and
 * how the client says.
 *
 * All that a client can bring about is RDMA on connections that it has made itself, to memory of
 * its own, from and to one buffer here of the size that was agreed on; two connections at a time.
 * Every wait ends by the run's --timeout, or when the client speaks or goes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "fence_msg.h"
#include "pattern.h"
#include "session_server.h"

#define POISON 0xa5

/*
 * struct fence_server - one FENCE.
 * @buffer:   what READs fill and WRITEs are from; behind it a message that comes, and one that goes
 * @requests: that come on the first connection; on the other it is a message
 */
struct fence_server {
	struct control *control;
	const struct host *host;
	struct cfg cfg;
	uint8_t token[RXFER_TOKEN_BYTES];
	struct share share;
	struct rxfer_dev *dev;
	struct rxfer_listener *listener;
	struct area buffer;
	struct fence_end end[FENCE_CONNS];
	unsigned int conns, requests;
	unsigned int tried[FENCE_ENDED + 1];
};

static char *request_buffer(const struct fence_server *s)
{
	return s->buffer.base + s->cfg.size;
}

static char *reply_buffer(const struct fence_server *s)
{
	return request_buffer(s) + FENCE_MESSAGE;
}

static size_t buffer_bytes(const struct fence_server *s)
{
	return s->cfg.size + 2 * FENCE_MESSAGE;
}

static struct rxfer_wait wait_now(const struct fence_server *s)
{
	return (struct rxfer_wait){rxfer_now() + s->cfg.timeout_ns, s->control->fd,
				   s->host->runtime->stop};
}

/* ---- Connections ---- */

static void close_all(struct fence_server *s)
{
	for (unsigned int i = 0; i < FENCE_CONNS; i++)
		fence_close(&s->end[i]);
	s->conns = 0;
}

/* In flight at once: an attempt, or a message, and RECVs for the requests. */
static int attr_of(const struct fence_server *s, unsigned int i, struct rxfer_conn_attr *attr)
{
	*attr = (struct rxfer_conn_attr){
		.slots = 2,
		.reply = true,
		.rq_depth = FENCE_REQUESTS,
		.shape = {RXFER_READ, s->cfg.size, 1, 1},
		.index = (uint16_t)i,
	};
	memcpy(attr->token, s->token, sizeof(attr->token));
	return rxfer_sig_parse("io", &attr->sig, &attr->sig_arg);
}

static int accept_one(struct fence_server *s, unsigned int i)
{
	struct rxfer_wait wait = wait_now(s);
	struct rxfer_conn_attr attr;
	int rc = attr_of(s, i, &attr);

	if (!rc)
		rc = rxfer_accept(s->listener, &attr, &wait, &s->end[i].conn);
	s->conns += !rc;
	return rc;
}

/* Messages that come on the @i-th connection. */
static unsigned int messages(const struct fence_server *s, unsigned int i)
{
	return i ? 1 : s->requests;
}

static int post_recvs(struct fence_server *s, unsigned int i)
{
	int rc = 0;

	for (unsigned int k = 0; !rc && k < messages(s, i); k++)
		rc = rxfer_post_recv(s->end[i].conn, request_buffer(s), FENCE_MESSAGE, k);
	return rc;
}

static int hold(struct fence_server *s, const json_t *body)
{
	struct rxfer_wait wait;
	struct fence_hold h;
	int rc = fence_hold_from_json(body, &h);

	close_all(s);
	while (!rc && s->conns < h.conns)
		rc = accept_one(s, s->conns);
	s->requests = h.requests;
	for (unsigned int i = 0; !rc && i < s->conns; i++)
		rc = post_recvs(s, i);
	wait = wait_now(s);
	return rc ? rc : control_send(s->control, MSG_CONNECTED, NULL, &wait);
}

static int not_held(void)
{
	return rxfer_fail(EBADMSG, "the client wants something of an I/O that there is not");
}

/* ---- The reply ---- */

static int reply(struct fence_server *s, const json_t *body)
{
	struct rxfer_wait wait = wait_now(s);
	struct fence_reply r;
	int rc = s->conns ? fence_reply_from_json(body, &r) : not_held();

	if (!rc)
		rc = fence_await(&s->end[0], RXFER_RECV, 1, "the client's request", &wait);
	return rc ? rc
		  : fence_send(&s->end[0], reply_buffer(s), r.revoke ? RXFER_INVALIDATE : 0, r.key,
			       &wait);
}

/* ---- Attempts ---- */

/* What it reads is none of what was there; what it writes is what the client expects. */
static int post(struct fence_server *s, struct fence_end *e, const struct fence_try *t)
{
	const struct rxfer_seg remote = {t->addr, (uint32_t)t->len, t->key};
	const struct rxfer_frag local = {s->buffer.base, (uint32_t)t->len};
	const struct rxfer_op op = {.op = t->write ? RXFER_WRITE : RXFER_READ,
				    .local = &local,
				    .nlocal = 1,
				    .fixed = 1,
				    .remote = &remote,
				    .nremote = 1,
				    .flags = RXFER_MUST_SIGNAL};

	if (t->write)
		pattern_fill(s->buffer.base, t->len, t->position, t->seed);
	else
		memset(s->buffer.base, POISON, t->len);
	return rxfer_post(e->conn, &op);
}

/*
 * A WRITE that went well is followed by a message: when that is there, so are the bytes, and over
 * iWARP, where a WRITE is complete once TCP has taken it, nothing else says that it was let in.
 */
static int attempt(struct fence_server *s, const struct fence_try *t, struct fence_tried *out)
{
	struct fence_end *e = &s->end[t->conn];
	enum rxfer_opcode op = t->write ? RXFER_WRITE : RXFER_READ;
	struct rxfer_wait wait = wait_now(s);
	int rc = post(s, e, t);
	bool posted = !rc;

	if (!rc)
		rc = fence_await(e, op, e->done[op] + 1, "an attempt's completion", &wait);
	if (!rc && t->write)
		rc = fence_send(e, reply_buffer(s), 0, 0, &wait);
	*out = (struct fence_tried){.outcome = FENCE_OPEN};
	if (!rc && !t->write)
		out->sum = fence_sum(s->buffer.base, t->len);
	if (rc == -EINTR || rc == -ECANCELED || !rc)
		return rc;
	out->outcome = FENCE_FAILED;
	if (posted && rxfer_conn_refused(e->conn))
		out->outcome = FENCE_CLOSED;
	else if (posted && rc == -ENOTCONN && fence_is_iwarp(s->dev))
		out->outcome = FENCE_ENDED;
	snprintf(out->words, sizeof(out->words), "%s", rxfer_error());
	return 0;
}

static int check_try(const struct fence_server *s, const struct fence_try *t)
{
	if (t->conn >= s->conns)
		return not_held();
	if (t->len && t->len <= s->cfg.size)
		return 0;
	return rxfer_fail(EBADMSG, "the client wants an attempt of %s (agreed were 1 to %llu)",
			  rxfer_count(t->len, "byte").s, (unsigned long long)s->cfg.size);
}

static int await_messages(struct fence_server *s)
{
	struct rxfer_wait wait = wait_now(s);
	int rc = 0;

	for (unsigned int i = 0; !rc && i < s->conns; i++)
		rc = fence_await(&s->end[i], RXFER_RECV, messages(s, i), "the client's request",
				 &wait);
	return rc;
}

static int try(struct fence_server *s, const json_t *body)
{
	struct fence_tried tried;
	struct rxfer_wait wait;
	struct fence_try t;
	int rc = fence_try_from_json(body, &t);

	if (!rc)
		rc = check_try(s, &t);
	if (!rc)
		rc = await_messages(s);
	if (!rc)
		rc = attempt(s, &t, &tried);
	if (rc)
		return rc;
	s->tried[tried.outcome]++;
	wait = wait_now(s);
	return control_send(s->control, MSG_TRIED, fence_tried_to_json(&tried), &wait);
}

/* ---- From FENCE to STOP ---- */

static int send_ready(struct fence_server *s)
{
	struct rxfer_wait wait = wait_now(s);
	struct ready ready = {0};

	rxfer_listener_addr(s->listener, &ready.addr);
	return control_send(s->control, MSG_READY, ready_to_json(&ready), &wait);
}

static int open_it(struct fence_server *s)
{
	struct need need = {0};
	int rc;

	if (!s->cfg.size)
		return rxfer_fail(EBADMSG, "the client's options: an I/O of no bytes");
	need_add(&need, MEM_ANON, buffer_bytes(s));
	rc = budget_take(s->host->budget, need.all, need.plain, memory_available(), &s->share);
	if (!rc)
		rc = rxfer_dev_open(s->host->device, "global", &s->dev);
	if (rc)
		return rc;
	trace_device(&s->control->trace, true, s->dev);
	rc = message_possible(&s->cfg, s->dev); /* an attempt is one WR, and fails as a whole */
	if (!rc)
		rc = conn_possible(&s->cfg, s->dev);
	if (!rc)
		rc = area_make(s->dev, buffer_bytes(s), RXFER_FIXED | RXFER_READ_SINK, &s->buffer);
	if (!rc)
		rc = rxfer_listen(s->dev, &s->listener);
	budget_settle(s->host->budget, &s->share);
	return rc ? rc : send_ready(s);
}

static int answer(struct fence_server *s, enum message type, json_t *body)
{
	switch (type) {
	case MSG_HOLD:
		return hold(s, body);
	case MSG_REPLY:
		return reply(s, body);
	case MSG_TRY:
		return try(s, body);
	default:
		return control_bad_news(s->control, type, json_incref(body));
	}
}

/* Until the client says STOP, which is not answered: what comes next is another request. Between
 * two messages it may wait in vain itself. */
static int serve(struct fence_server *s)
{
	for (;;) {
		struct rxfer_wait wait = wait_now(s);
		enum message type;
		json_t *body;
		int rc;

		wait.deadline += s->cfg.timeout_ns;
		rc = control_recv(s->control, &type, &body, &wait);
		if (rc)
			return rc;
		if (type != MSG_STOP)
			rc = answer(s, type, body);
		json_decref(body);
		if (rc || type == MSG_STOP)
			return rc;
	}
}

static void clean_up(struct fence_server *s)
{
	close_all(s);
	rxfer_listener_close(s->listener);
	area_drop(&s->buffer);
	rxfer_dev_close(s->dev);
	budget_give(s->host->budget, &s->share);
}

/* Why it ended: in the client's words, where it said so. */
static int ended(struct fence_server *s, int rc)
{
	if (rc == -ECANCELED || rc == -ENOTCONN)
		rc = control_reason(s->control, rc);
	if (rc == -EINTR)
		rxfer_fail(rc, "the server was told to stop");
	if (rc)
		control_give_up(s->control, rc);
	return rc;
}

int fence_serve(struct control *c, const struct host *host, const json_t *body, unsigned int number)
{
	struct fence_server s = {.control = c, .host = host};
	int rc = config_from_json(body, &s.cfg, s.token);
	char why[512];

	if (!rc)
		rc = open_it(&s);
	if (!rc)
		rc = serve(&s);
	rc = ended(&s, rc);
	snprintf(why, sizeof(why), "%s", rxfer_error());
	clean_up(&s);
	if (rc)
		host_say(host, "fence %u failed: %s", number, why);
	else
		host_say(host, "fence %u (%s): %u attempts open, %u closed, %u failed", number,
			 rxfer_size(s.cfg.size).s, s.tried[FENCE_OPEN], s.tried[FENCE_CLOSED],
			 s.tried[FENCE_FAILED] + s.tried[FENCE_ENDED]);
	return rc ? rxfer_fail(rc, "%s", why) : 0;
}
