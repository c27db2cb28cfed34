/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* WRs of no bytes that belong to no I/O: the drain, which proves a silent tail, and notes to the
 * peer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

/* One signalled WR of no bytes, no I/O's, out of one reserved credit. @mark: in its wr_id. */
static int post_bare(struct rxfer_conn *conn, struct ibv_send_wr *wr, uint64_t mark,
		     const char *what)
{
	uint64_t epoch = 0, forced = conn->sig.forced;
	struct rxfer_sig_wr sig = {
		.must_signal = true, .ends_io = true, .ends_post = true, .io_epoch = &epoch};
	struct ibv_send_wr *bad;
	uint32_t seq;
	int rc = rxfer_sq_commit(&conn->sq, 1, 1, 0, &seq);

	if (rc)
		return rxfer_conn_break(conn, EOVERFLOW,
					"a credit that was reserved is gone (a bug of ours)");
	rxfer_sig_decide(&conn->sig, &conn->sq, &sig);
	conn->sig.forced = forced;
	wr->wr_id = mark | seq;
	wr->send_flags = IBV_SEND_SIGNALED;
	if (conn->reads && wr->opcode != IBV_WR_RDMA_READ) /* these come back in order */
		wr->send_flags |= IBV_SEND_FENCE;
	rc = ibv_post_send(conn->qp, wr, &bad);
	if (!rc)
		return 0;
	rxfer_sq_unpost(&conn->sq, 1);
	return rxfer_conn_break(conn, abs(rc), "posting %s on %s: %s", what, conn->dev->info.name,
				strerror(abs(rc)));
}

/* One at a time: there is one credit for it. */
static int post_drain(struct rxfer_conn *conn, struct ibv_send_wr *wr,
		      const struct rxfer_seg *remote)
{
	int rc;

	wr->wr.rdma.remote_addr = remote->addr;
	wr->wr.rdma.rkey = remote->key;
	rc = post_bare(conn, wr, WR_ASIDE | WR_DRAIN, "the drain WR");
	if (rc)
		return rc;
	conn->drains = 1;
	conn->counts.aside_sqe++;
	conn->counts.aside_posts++;
	return 0;
}

int rxfer_drain(struct rxfer_conn *conn, const struct rxfer_seg *remote)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
	int rc;

	if (conn->drains || conn->broken)
		return 0;
	rc = rxfer_flush(conn);
	if (rc || !rxfer_sig_tail_silent(&conn->sig))
		return rc;
	return post_drain(conn, &wr, remote);
}

int rxfer_drain_read(struct rxfer_conn *conn, const struct rxfer_seg *remote,
		     const struct rxfer_frag *into)
{
	const struct rxfer_mem *mem = rxfer_mem_find(conn->dev, into->addr, into->len);
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ, .num_sge = 1};
	struct ibv_sge sge;
	int rc;

	if (!mem || !mem->mr)
		return rxfer_fail(EINVAL, "a drain READ outside RXFER_FIXED memory");
	rc = rxfer_flush(conn);
	if (rc)
		return rc;
	sge = (struct ibv_sge){(uintptr_t)into->addr, into->len, mem->lkey};
	wr.sg_list = &sge;
	return post_drain(conn, &wr, remote);
}

int rxfer_post_note(struct rxfer_conn *conn)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	int rc;

	rc = rxfer_flush(conn);
	if (!rc)
		rc = rxfer_sq_reserve(&conn->sq, 1);
	if (!rc)
		rc = post_bare(conn, &wr, WR_NOTE, "a SEND of no bytes");
	if (rc)
		return rc;
	conn->notes++;
	conn->counts.sqe++;
	conn->counts.sqe_op[RXFER_SEND]++;
	conn->counts.posts++;
	return 0;
}
