/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Direct mode, the server's side. For READ and WRITE there is nothing to do: the NIC serves the
 * memory. SENDs need RECVs: each message's buffer is posted again at once, and when half the queue
 * has been, a message tells the client so.
 */
#include <errno.h>
#include <stdlib.h>
#include "load.h"
#include "pattern.h"

struct sink_lane {
	struct rxfer_conn *conn;
	char *recv; /* its RECV buffers */
	struct rxfer_frag credit;
	uint64_t messages;  /* taken */
	uint64_t stream;    /* bytes taken: the pattern goes on from message to message */
	uint64_t to_return; /* credits not yet given back */
};

struct sink {
	const struct cfg *cfg;
	struct layout layout;
	struct sink_lane *lanes;
};

static int post_recv(struct sink *s, struct sink_lane *lane, uint64_t i)
{
	return rxfer_post_recv(lane->conn, lane->recv + i * s->layout.message,
			       (uint32_t)s->layout.message, i);
}

struct sink *sink_new(const struct cfg *cfg, const struct layout *layout, struct rxfer_conn **conns,
		      const struct area *recv, const struct area *credit)
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
	for (uint64_t qp = 0; cfg->op == OP_SEND && qp < cfg->qps; qp++) {
		struct sink_lane *lane = &s->lanes[qp];

		lane->conn = conns[qp];
		lane->recv = recv->base + qp * layout->recvs * layout->message;
		lane->credit = (struct rxfer_frag){credit->base + qp * CREDIT_BYTES, CREDIT_BYTES};
		for (uint64_t i = 0; i < layout->recvs; i++)
			if (post_recv(s, lane, i))
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

static int check(const struct sink *s, const struct sink_lane *lane, const struct rxfer_done *done)
{
	const char *at = lane->recv + done->id * s->layout.message;
	size_t qp = (size_t)(lane - s->lanes);
	int64_t bad = pattern_check(at, done->bytes, lane->stream, qp);

	if (bad < 0)
		return 0;
	return rxfer_fail(EILSEQ,
			  "verification failed: QP %zu, message %llu, byte %lld of %llu is wrong",
			  qp, (unsigned long long)lane->messages, (long long)bad,
			  (unsigned long long)done->bytes);
}

static int take(struct sink *s, struct sink_lane *lane, const struct rxfer_done *done)
{
	int rc;

	if (done->op != RXFER_RECV)
		return 0; /* one of our credit messages is done */
	rc = s->cfg->verify ? check(s, lane, done) : 0;
	if (rc)
		return rc;
	lane->stream += done->bytes;
	lane->messages++;
	lane->to_return++;
	return post_recv(s, lane, done->id);
}

static int return_credits(struct sink *s, struct sink_lane *lane)
{
	int rc;

	if (lane->to_return < s->layout.recvs / 2)
		return 0;
	rc = rxfer_post_send(lane->conn, &lane->credit, 1, 0, 0);
	if (rc == -EAGAIN)
		return 0; /* its own send queue is full for the moment */
	if (!rc)
		lane->to_return -= s->layout.recvs / 2;
	return rc;
}

int sink_pass(struct sink *s)
{
	struct rxfer_done done;
	int did = 0, rc = 0;

	for (uint64_t qp = 0; s->cfg->op == OP_SEND && qp < s->cfg->qps; qp++) {
		struct sink_lane *lane = &s->lanes[qp];

		while ((rc = rxfer_poll(lane->conn, &done, 1)) > 0) {
			rc = take(s, lane, &done);
			if (!rc)
				rc = return_credits(s, lane);
			if (rc)
				return rc;
			did++;
		}
		if (!rc)
			rc = return_credits(s, lane);
		if (rc < 0)
			return rc;
	}
	return did;
}

bool sink_caught_up(const struct sink *s, const uint64_t *messages)
{
	for (uint64_t qp = 0; s->cfg->op == OP_SEND && qp < s->cfg->qps; qp++)
		if (s->lanes[qp].messages < messages[qp])
			return false;
	return true;
}
