/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rxfer-bench fence: messages from and to structures, and waiting, alike at both ends. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include "fence_msg.h"

#define LOOK_NS 20000000u /* between looks at what may end a wait */

static const char *const outcomes[] = {
	[FENCE_OPEN] = "open",
	[FENCE_CLOSED] = "closed",
	[FENCE_FAILED] = "failed",
	[FENCE_ENDED] = "ended",
};

const char *fence_outcome_name(unsigned int outcome)
{
	return outcome <= FENCE_ENDED ? outcomes[outcome] : NULL;
}

bool fence_is_iwarp(const struct rxfer_dev *dev)
{
	return is_iwarp(rxfer_dev_info(dev));
}

/* ---- Messages ---- */

/* A number up to @max. */
static int number(const json_t *body, const char *key, uint64_t max, uint64_t *out)
{
	int rc = control_uint(body, key, out);

	if (rc || *out <= max)
		return rc;
	return rxfer_fail(EBADMSG, "the peer's message says %s %llu, at most %llu is allowed", key,
			  (unsigned long long)*out, (unsigned long long)max);
}

json_t *fence_hold_to_json(const struct fence_hold *h)
{
	return json_pack("{s:i,s:i}", "connections", (int)h->conns, "requests", (int)h->requests);
}

int fence_hold_from_json(const json_t *body, struct fence_hold *h)
{
	uint64_t conns, requests;

	if (number(body, "connections", FENCE_CONNS, &conns) ||
	    number(body, "requests", FENCE_REQUESTS, &requests))
		return -EBADMSG;
	if (!conns || !requests)
		return rxfer_fail(EBADMSG, "the client wants an I/O without a %s",
				  conns ? "request" : "connection");
	*h = (struct fence_hold){(unsigned int)conns, (unsigned int)requests};
	return 0;
}

json_t *fence_reply_to_json(const struct fence_reply *r)
{
	return json_pack("{s:i,s:I}", "revoke", r->revoke, "key", (json_int_t)r->key);
}

int fence_reply_from_json(const json_t *body, struct fence_reply *r)
{
	uint64_t revoke, key;

	if (number(body, "revoke", 1, &revoke) || number(body, "key", UINT32_MAX, &key))
		return -EBADMSG;
	*r = (struct fence_reply){revoke, (uint32_t)key};
	return 0;
}

json_t *fence_try_to_json(const struct fence_try *t)
{
	return json_pack("{s:i,s:i,s:I,s:I,s:I,s:I,s:I}", "write", t->write, "connection",
			 (int)t->conn, "address", (json_int_t)t->addr, "bytes", (json_int_t)t->len,
			 "key", (json_int_t)t->key, "position", (json_int_t)t->position, "seed",
			 (json_int_t)t->seed);
}

int fence_try_from_json(const json_t *body, struct fence_try *t)
{
	uint64_t write, conn, key;

	if (number(body, "write", 1, &write) ||
	    number(body, "connection", FENCE_CONNS - 1, &conn) ||
	    number(body, "key", UINT32_MAX, &key) || control_uint(body, "address", &t->addr) ||
	    control_uint(body, "bytes", &t->len) || control_uint(body, "position", &t->position) ||
	    control_uint(body, "seed", &t->seed))
		return -EBADMSG;
	t->write = write;
	t->conn = (unsigned int)conn;
	t->key = (uint32_t)key;
	return 0;
}

json_t *fence_tried_to_json(const struct fence_tried *t)
{
	char words[sizeof(t->words)];

	snprintf(words, sizeof(words), "%s", t->words);
	for (char *p = words; *p; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?'; /* JSON takes no text but UTF-8; this may be cut, or foreign */
	return json_pack("{s:s,s:I,s:s}", "outcome", outcomes[t->outcome], "sum",
			 (json_int_t)t->sum, "words", words);
}

int fence_tried_from_json(const json_t *body, struct fence_tried *t)
{
	char outcome[16];
	unsigned int i = 0;

	if (control_text(body, "outcome", outcome, sizeof(outcome)) ||
	    control_uint(body, "sum", &t->sum) ||
	    control_text(body, "words", t->words, sizeof(t->words)))
		return -EBADMSG;
	while (fence_outcome_name(i) && strcmp(outcomes[i], outcome))
		i++;
	if (!fence_outcome_name(i))
		return rxfer_fail(EBADMSG, "the server says that an attempt was %s", outcome);
	t->outcome = (enum fence_outcome)i;
	return 0;
}

/* FNV-1a. Numbers of messages are signed, so it has a bit less. */
uint64_t fence_sum(const void *bytes, uint64_t len)
{
	const unsigned char *p = bytes;
	uint64_t sum = 0xcbf29ce484222325u;

	for (; len; len--)
		sum = (sum ^ *p++) * 0x100000001b3u;
	return sum >> 1;
}

/* ---- Waiting ---- */

static bool spoke(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

static int wait_over(const char *what, const struct rxfer_wait *wait, uint64_t *looked)
{
	uint64_t now = rxfer_now();

	if (wait->stop && *wait->stop)
		return rxfer_fail(EINTR, "interrupted while waiting for %s", what);
	if (now >= wait->deadline)
		return rxfer_fail(ETIMEDOUT, "waited in vain for %s (--timeout)", what);
	if (now - *looked < LOOK_NS)
		return 0;
	*looked = now;
	return spoke(wait->cancel_fd)
		       ? rxfer_fail(ECANCELED, "the peer spoke up or went away instead of %s", what)
		       : 0;
}

/* Others are waited for later: they are counted. */
int fence_await(struct fence_end *e, enum rxfer_opcode op, unsigned int n, const char *what,
		const struct rxfer_wait *wait)
{
	uint64_t looked = rxfer_now();

	while (e->done[op] < n) {
		struct rxfer_done done;
		int rc = rxfer_poll(e->conn, &done, 1);

		if (rc < 0)
			return rc;
		if (rc) {
			e->done[done.op]++;
			if (done.op == RXFER_RECV)
				e->message = done;
			continue;
		}
		rc = wait_over(what, wait, &looked);
		if (rc)
			return rc;
		sched_yield();
	}
	return 0;
}

int fence_send(struct fence_end *e, void *message, unsigned int flags, uint32_t imm,
	       const struct rxfer_wait *wait)
{
	const struct rxfer_frag local = {message, FENCE_MESSAGE};
	const struct rxfer_op op = {.op = RXFER_SEND,
				    .local = &local,
				    .nlocal = 1,
				    .fixed = 1,
				    .imm = imm,
				    .flags = flags | RXFER_MUST_SIGNAL};
	int rc = rxfer_post(e->conn, &op);

	return rc ? rc : fence_await(e, RXFER_SEND, e->done[RXFER_SEND] + 1, "a SEND", wait);
}

void fence_close(struct fence_end *e)
{
	rxfer_conn_close(e->conn);
	*e = (struct fence_end){0};
}
