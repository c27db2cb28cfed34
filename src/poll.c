/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Transfers, the way back: from completions to I/Os that are done.
 *
 * The send queue is strongly ordered, so a completion proves its own WR and all
 * before it. A WR's id is its sequence number, and I/Os wait in a ring in posting order; those
 * whose last WR lies before `proven` are done. An I/O need not have asked for a completion of its
 * own for that. The ring is drained before the next completion is looked at, so that an I/O that
 * did ask is handed up at its own.
 *
 * That order has one exception: over iWARP a WRITE or SEND is complete when TCP has taken it, and
 * may be reported before a READ that was posted earlier (seen on siw). What follows a READ in
 * flight is therefore fenced; where READs are alone, as in a measured run, no fence is ever set.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "reg.h"

static const char *const opcode_name[] = {
	[RXFER_READ] = "RDMA READ",
	[RXFER_WRITE] = "RDMA WRITE",
	[RXFER_WRITE_IMM] = "RDMA WRITE with immediate",
	[RXFER_SEND] = "SEND",
	[RXFER_RECV] = "RECV",
};

int rxfer_io_unmap(struct rxfer_conn *conn, struct rxfer_io *io)
{
	uint64_t begin;
	int rc;

	if (io->aside)
		return 0;
	if (!conn->attr.time_phases)
		return conn->reg->unmap(conn, io);
	begin = rxfer_now();
	rc = conn->reg->unmap(conn, io);
	conn->counts.unmap_ns += rxfer_now() - begin;
	return rc;
}

static const char *remedy(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_RETRY_EXC_ERR:
		return "the peer no longer answers: gone, or its link is down";
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return "the peer had no RECV posted";
	case IBV_WC_REM_ACCESS_ERR:
		return "the peer's memory is not open to us there: key revoked, or out of bounds";
	case IBV_WC_LOC_QP_OP_ERR:
		return "the device could not carry it out: is its link up?";
	case IBV_WC_LOC_PROT_ERR:
		return "our own memory is not registered for it";
	case IBV_WC_WR_FLUSH_ERR:
		return "the peer closed the connection, or an earlier error did";
	default:
		return "see ibv_poll_cq(3)";
	}
}

static int completion_failed(struct rxfer_conn *conn, const struct ibv_wc *wc)
{
	const char *what = "a silent WR";

	if (wc->wr_id & WR_RECV)
		what = opcode_name[RXFER_RECV];
	else if (wc->wr_id & WR_DRAIN)
		what = "the drain WR";
	else if (wc->wr_id & WR_NOTE)
		what = "a SEND of no bytes";
	for (uint32_t i = conn->ring_tail;
	     !(wc->wr_id & (WR_RECV | WR_DRAIN | WR_NOTE)) && i != conn->ring_head; i++) {
		const struct rxfer_io *io = conn->ring[i & conn->ring_mask];

		if ((int32_t)((uint32_t)wc->wr_id - io->last_seq) <= 0) {
			what = opcode_name[io->op];
			break;
		}
	}
	return rxfer_conn_break(conn, EIO, "%s failed: %s (status %d, vendor %#x); %s", what,
				ibv_wc_status_str(wc->status), wc->status, wc->vendor_err,
				remedy(wc->status));
}

static int take_send(struct rxfer_conn *conn, const struct ibv_wc *wc)
{
	uint32_t seq = (uint32_t)wc->wr_id;

	if (rxfer_sq_complete(&conn->sq, seq) < 0)
		return rxfer_conn_break(
			conn, EPROTO,
			"%s reported a completion for WR %u, which is not in the queue",
			conn->dev->info.name, seq);
	conn->proven = seq + 1;
	if (wc->wr_id & WR_ASIDE)
		conn->counts.aside_cqe++;
	else
		conn->counts.cqe++;
	if (wc->wr_id & WR_NOTE)
		conn->notes--;
	if (wc->wr_id & WR_DRAIN) {
		conn->drains = 0;
		return rxfer_sq_reserve(&conn->sq, 1);
	}
	return 0;
}

/* The oldest I/O, if it is proven done: unmap it and hand it up. 1, 0 or -errno. */
static int finish_one(struct rxfer_conn *conn, struct rxfer_done *done)
{
	struct rxfer_io *io;
	int rc;

	if (conn->ring_tail == conn->ring_head)
		return 0;
	io = conn->ring[conn->ring_tail & conn->ring_mask];
	if ((int32_t)(io->last_seq - conn->proven) >= 0)
		return 0;
	conn->ring_tail++;
	conn->free_io[conn->nfree++] = io;
	conn->reads -= io->op == RXFER_READ;
	rc = rxfer_io_unmap(conn, io);
	if (rc)
		return rxfer_conn_break(conn, rc, "%s", rxfer_error());
	*done = (struct rxfer_done){
		.id = io->id, .op = io->op, .own_cqe = io->own_cqe, .bytes = io->bytes};
	return 1;
}

/* One completion: 1 where it is a message for the caller, 0 where it proved WRs, or -errno. */
static int take_one(struct rxfer_conn *conn, const struct ibv_wc *wc, struct rxfer_done *done)
{
	if (wc->status != IBV_WC_SUCCESS)
		return completion_failed(conn, wc);
	if (!(wc->wr_id & WR_RECV))
		return take_send(conn, wc);
	conn->counts.recv_cqe++;
	*done = (struct rxfer_done){.id = wc->wr_id & ~WR_RECV,
				    .op = RXFER_RECV,
				    .own_cqe = true,
				    .with_imm = wc->wc_flags & IBV_WC_WITH_IMM,
				    .bytes = wc->byte_len};
	if (done->with_imm)
		done->imm = ntohl(wc->imm_data);
	return 1;
}

int rxfer_poll(struct rxfer_conn *conn, struct rxfer_done *done, int max)
{
	bool fetched = false;
	int n = 0, rc;

	if (conn->broken)
		return rxfer_conn_break(conn, conn->broken, "%s", "");
	while (n < max) {
		rc = finish_one(conn, &done[n]);
		if (rc == 0 && conn->wc_next < conn->wc_count) {
			rc = take_one(conn, &conn->wc[conn->wc_next++], &done[n]);
		} else if (rc == 0) {
			if (fetched || n)
				break;
			fetched = true;
			rc = rxfer_cq_fetch(conn);
			if (rc == 0)
				break;
			rc = rc < 0 ? rc : 0;
		}
		if (rc < 0)
			return rc;
		n += rc;
	}
	return n;
}

bool rxfer_due(const struct rxfer_conn *conn)
{
	return rxfer_sq_posted(&conn->sq) > conn->sig.silent;
}

bool rxfer_idle(const struct rxfer_conn *conn)
{
	return conn->ring_tail == conn->ring_head && conn->drains == 0 && conn->notes == 0 &&
	       conn->wc_next == conn->wc_count;
}
