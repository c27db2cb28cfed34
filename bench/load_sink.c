/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Direct mode, the receiving half of an end. For READ and WRITE there is nothing to do: the NIC
 * serves the memory. SENDs and immediate data need RECVs: each is posted again at once, and when
 * half the queue has been, a note tells the peer so.
 *
 * With --bidir both kinds of messages arrive at one receive queue, and RECVs are taken in the order
 * in which they were posted, whoever takes them. So all of an end's RECVs are alike, and a message
 * is known by what it is: a note has no bytes and no immediate data.
 */
#include <errno.h>
#include <stdlib.h>
#include "load.h"
#include "pattern.h"

struct sink_lane {
	struct rxfer_conn *conn;
	char *recv;	    /* its RECV buffers */
	uint64_t messages;  /* of data, taken */
	uint64_t stream;    /* bytes taken: the pattern goes on from message to message */
	uint64_t to_return; /* credits not yet given back */
};

struct sink {
	const struct cfg *cfg;
	struct layout layout;
	uint32_t recvs;	 /* per QP */
	uint32_t size;	 /* of a RECV buffer */
	uint64_t stride; /* from one to the next; 0: all share one, as nothing is ever put there */
	struct sink_lane *lanes;
};

uint32_t sink_recvs(const struct cfg *cfg, const struct layout *layout, struct roles roles)
{
	if (!op_takes_recvs(cfg))
		return 0;
	return (roles.receives ? layout->recvs : 0) + (roles.issues ? CREDIT_RECVS : 0);
}

static char *buffer(const struct sink *s, const struct sink_lane *lane, uint64_t i)
{
	return lane->recv + i * s->stride;
}

static int post_recv(struct sink *s, struct sink_lane *lane, uint64_t i)
{
	return rxfer_post_recv(lane->conn, buffer(s, lane, i), s->size, i);
}

static int post_all(struct sink *s, struct sink_lane *lane)
{
	int rc = 0;

	for (uint64_t i = 0; !rc && i < s->recvs; i++)
		rc = post_recv(s, lane, i);
	return rc;
}

struct sink *sink_new(const struct cfg *cfg, const struct layout *layout, struct roles roles,
		      struct rxfer_conn **conns, const struct area *recv)
{
	struct sink *s = calloc(1, sizeof(*s));

	if (s)
		s->lanes = calloc(cfg->qps, sizeof(*s->lanes));
	if (!s || !s->lanes) {
		rxfer_fail(ENOMEM, "out of memory");
		goto fail;
	}
	s->cfg = cfg;
	s->layout = *layout;
	s->recvs = sink_recvs(cfg, layout, roles);
	if (sink_takes_bytes(cfg, roles)) {
		s->stride = layout->message;
		s->size = (uint32_t)((cfg->size + layout->messages - 1) / layout->messages);
	} else {
		s->size = (uint32_t)recv->len;
	}
	for (uint64_t qp = 0; qp < cfg->qps; qp++) {
		struct sink_lane *lane = &s->lanes[qp];

		lane->conn = conns[qp];
		lane->recv =
			recv->base + qp * s->recvs * s->stride + (s->stride ? cfg->misalign : 0);
		if (post_all(s, lane))
			goto fail;
	}
	return s;
fail:
	sink_free(s);
	return NULL;
}

void sink_free(struct sink *s)
{
	if (!s)
		return;
	free(s->lanes);
	free(s);
}

/* ---- Messages ---- */

static int check_bytes(const struct sink *s, unsigned int qp, const struct rxfer_done *done)
{
	const struct sink_lane *lane = &s->lanes[qp];
	int64_t bad = pattern_check(buffer(s, lane, done->id), done->bytes, lane->stream, qp);

	if (bad < 0)
		return 0;
	return rxfer_fail(EILSEQ,
			  "verification failed: QP %u, message %llu, byte %lld of %llu is wrong",
			  qp, (unsigned long long)lane->messages, (long long)bad,
			  (unsigned long long)done->bytes);
}

/* The bytes of a WRITE are fetched back and checked by who wrote them: they may be gone here. */
static int check_imm(const struct sink *s, unsigned int qp, const struct rxfer_done *done)
{
	uint32_t want = (uint32_t)s->lanes[qp].messages;

	if (done->imm == want)
		return 0;
	return rxfer_fail(EILSEQ, "verification failed: QP %u, immediate data %u instead of %u", qp,
			  done->imm, want);
}

static int take_data(struct sink *s, unsigned int qp, const struct rxfer_done *done)
{
	struct sink_lane *lane = &s->lanes[qp];
	int rc = 0;

	if (s->cfg->verify)
		rc = done->with_imm ? check_imm(s, qp, done) : check_bytes(s, qp, done);
	lane->stream += done->bytes;
	lane->messages++;
	lane->to_return++;
	return rc;
}

int sink_take(struct sink *s, unsigned int qp, const struct rxfer_done *done)
{
	bool note = !done->with_imm && done->bytes == 0;
	int rc = note ? 0 : take_data(s, qp, done);

	if (!rc)
		rc = post_recv(s, &s->lanes[qp], done->id);
	if (rc)
		return rc;
	return note ? (int)(s->layout.recvs / 2) : 0;
}

int sink_return(struct sink *s, unsigned int qp)
{
	struct sink_lane *lane = &s->lanes[qp];
	int rc;

	if (lane->to_return == 0 || lane->to_return < s->layout.recvs / 2)
		return 0;
	rc = rxfer_post_note(lane->conn);
	if (rc == -EAGAIN)
		return 0; /* the send queue is full for the moment */
	if (!rc)
		lane->to_return -= s->layout.recvs / 2;
	return rc;
}

/* Who only receives has I/Os of its own in no queue: all that comes up is messages. */
static int pass(struct sink *s, unsigned int qp)
{
	struct rxfer_conn *conn = s->lanes[qp].conn;
	struct rxfer_done done;
	int did = 0, rc;

	do {
		rc = rxfer_poll(conn, &done, 1);
		if (rc <= 0)
			break;
		did++;
		rc = sink_take(s, qp, &done);
	} while (rc >= 0 && rxfer_more(conn));
	if (rc >= 0)
		rc = sink_return(s, qp);
	return rc < 0 ? rc : did;
}

int sink_pass(struct sink *s)
{
	int did = 0;

	for (unsigned int qp = 0; s->recvs && qp < s->cfg->qps; qp++) {
		int rc = pass(s, qp);

		if (rc < 0)
			return rc;
		did += rc;
	}
	return did;
}

bool sink_caught_up(const struct sink *s, const uint64_t *messages)
{
	for (uint64_t qp = 0; s->recvs && qp < s->cfg->qps; qp++)
		if (s->lanes[qp].messages < messages[qp])
			return false;
	return true;
}
