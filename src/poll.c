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
 * flight is therefore fenced there; where READs are alone, as in a measured run, no fence is ever
 * set. On InfiniBand and RoCE a fence would buy nothing and could cost the queue: rxe (seen with
 * Linux 6.1) goes back to a fenced WR that was lost, counts READs behind it as if they were before,
 * and waits for them for ever, without a timer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reg.h"

static const char *const opcode_name[] = {
	[RXFER_READ] = "RDMA READ",
	[RXFER_WRITE] = "RDMA WRITE",
	[RXFER_WRITE_IMM] = "RDMA WRITE with immediate",
	[RXFER_SEND] = "SEND",
	[RXFER_BIND] = "BIND_MW",
	[RXFER_REVOKE] = "LOCAL_INV",
	[RXFER_RECV] = "RECV",
};

int rxfer_io_unmap(struct rxfer_conn *conn, struct rxfer_io *io)
{
	uint64_t begin;
	int rc;

	if (io->nrange == 0)
		return 0;
	if (!conn->attr.time_phases)
		return conn->reg->unmap(conn, io);
	begin = rxfer_now();
	rc = conn->reg->unmap(conn, io);
	conn->counts.unmap_ns += rxfer_now() - begin;
	return rc;
}

/* Is it only that the peer is no more to be reached? Then he may say why. */
static int error_of(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_WR_FLUSH_ERR ? ENOTCONN : EIO;
}

/* What its @i-th WR is: some have others in front, which are about keys. */
static const char *wr_name(const struct rxfer_io *io, uint32_t i)
{
	if (i >= io->front)
		return opcode_name[io->done.op];
	if (io->wr[i].opcode == IBV_WR_DRIVER1)
		return "UMR";
	return opcode_name[io->wr[i].opcode == IBV_WR_BIND_MW ? RXFER_BIND : RXFER_REVOKE];
}

/* What the WR @seq is. */
static const char *opcode_of(const struct rxfer_conn *conn, uint32_t seq)
{
	const struct rxfer_io *io = conn->oldest;

	for (uint32_t i = 0; i < conn->inflight; i++, io = io->next)
		if ((int32_t)(seq - io->last_seq) <= 0)
			return wr_name(io, io->nwr - 1 - (io->last_seq - seq));
	return "a silent WR";
}

static const char *what_failed(const struct rxfer_conn *conn, const struct ibv_wc *wc)
{
	if (wc->wr_id & WR_RECV)
		return opcode_name[RXFER_RECV];
	if (wc->wr_id & WR_DRAIN)
		return "the drain WR";
	if (wc->wr_id & WR_NOTE)
		return "a SEND of no bytes";
	return opcode_of(conn, (uint32_t)wc->wr_id);
}

/*
 * A flushed WR only says that something came before. A CQ keeps no order between its queues, so the
 * completion that says what may be the next one; @wc becomes that one, where it is there.
 */
static void find_cause(struct rxfer_conn *conn, struct ibv_wc *wc)
{
	do {
		for (; conn->wc_next < conn->wc_count; conn->wc_next++) {
			const struct ibv_wc *next = &conn->wc[conn->wc_next];

			if (next->status != IBV_WC_SUCCESS && next->status != IBV_WC_WR_FLUSH_ERR) {
				*wc = *next;
				return;
			}
		}
	} while (rxfer_cq_fetch(conn) > 0);
}

/* What is most likely behind it. Known for sure: a port that is down, and a peer that left. */
static struct rxfer_reason reason_of(struct rxfer_conn *conn, enum ibv_wc_status status, char *buf,
				     size_t size)
{
	const char *ended = status == IBV_WC_WR_FLUSH_ERR ? rxfer_conn_ended(conn) : NULL;
	const struct rxfer_dev_info *dev = &conn->dev->info;
	struct ibv_port_attr port;

	if (!ibv_query_port(conn->dev->verbs, dev->port, &port) && port.state != IBV_PORT_ACTIVE) {
		snprintf(buf, size, "port %u of %s is not active", dev->port, dev->name);
		return (struct rxfer_reason){buf, "bring its link up"};
	}
	if (ended) {
		snprintf(buf, size, "the peer closed the connection (%s)", ended);
		return (struct rxfer_reason){buf, "see what the peer says"};
	}
	return rxfer_wc_reason(status);
}

static __attribute__((cold, noinline)) int completion_failed(struct rxfer_conn *conn,
							     const struct ibv_wc *failed)
{
	char peer[INET6_ADDRSTRLEN], known[128];
	struct rxfer_reason reason;
	struct ibv_wc wc = *failed;

	if (wc.status == IBV_WC_WR_FLUSH_ERR)
		find_cause(conn, &wc);
	conn->refused = !conn->broken && wc.status == IBV_WC_REM_ACCESS_ERR;
	/* Broken from here on, so that nothing that is met while looking for the reason words it.
	 */
	rxfer_conn_break(conn, error_of(wc.status), "%s failed", what_failed(conn, &wc));
	reason = reason_of(conn, wc.status, known, sizeof(known));
	snprintf(conn->broken_why, sizeof(conn->broken_why),
		 "%s failed: %s (%s, status %d, vendor %#x), strategy %s, peer %s, QP %u: %s; %s",
		 what_failed(conn, &wc), rxfer_wc_name(wc.status), ibv_wc_status_str(wc.status),
		 wc.status, wc.vendor_err, conn->reg->name,
		 rxfer_conn_peer(conn, peer, sizeof(peer)), conn->qp->qp_num, reason.cause,
		 reason.remedy);
	return rxfer_conn_break(conn, conn->broken, "%s", "");
}

/* Is the oldest I/O proven done? */
static inline bool oldest_is_done(const struct rxfer_conn *conn)
{
	return conn->inflight && (int32_t)(conn->oldest->last_seq - conn->proven) < 0;
}

/* What it had mapped, or had revoked. */
static inline int settle(struct rxfer_conn *conn, struct rxfer_io *io)
{
	int rc;

	io->moved = true;
	rc = rxfer_io_unmap(conn, io);
	if (!rc && io->proves)
		rc = rxfer_keys_dead(io);
	if (io->front)
		rxfer_keys_forget(io);
	return rc;
}

/*
 * I/Os that are proven, one at least is. A completion under `half` proves many, so this loop is
 * what most I/Os cost on the way back. Completions are looked at one by one, so an I/O that had one
 * of its own is the last here: its latency can be taken before more memory is unmapped.
 */
static inline int finish(struct rxfer_conn *conn, struct rxfer_done *done, int max, bool unmap)
{
	int n = 0;

	do {
		struct rxfer_io *io = conn->oldest;
		int rc;

		conn->oldest = io->next;
		conn->inflight--;
		if (io->done.op == RXFER_READ)
			conn->reads -= conn->unordered;
		rc = unmap ? settle(conn, io) : 0;
		if (rc)
			return rxfer_conn_break(conn, rc, "%s", rxfer_error());
		done[n++] = io->done;
	} while (n < max && oldest_is_done(conn));
	return n;
}

static __attribute__((noinline)) int finish_unmapping(struct rxfer_conn *conn,
						      struct rxfer_done *done, int max)
{
	return finish(conn, done, max, true);
}

static int message(struct rxfer_conn *conn, const struct ibv_wc *wc, struct rxfer_done *done)
{
	conn->counts.recv_cqe++;
	*done = (struct rxfer_done){.id = wc->wr_id & ~WR_RECV,
				    .op = RXFER_RECV,
				    .own_cqe = true,
				    .with_imm = wc->wc_flags & IBV_WC_WITH_IMM,
				    .with_inv = wc->wc_flags & conn->revokes,
				    .bytes = wc->byte_len};
	if (done->with_imm)
		done->imm = ntohl(wc->imm_data);
	else if (done->with_inv)
		done->imm = wc->invalidated_rkey;
	return 1;
}

/* What a WR proved that was more than an I/O's: one posted aside, a note, the drain. */
static __attribute__((noinline)) int take_marked(struct rxfer_conn *conn, uint64_t wr_id)
{
	if (wr_id & WR_ASIDE)
		conn->counts.aside_cqe++;
	else if (conn->old_notes)
		conn->old_notes--;
	else
		conn->counts.cqe++;
	if (wr_id & WR_NOTE)
		conn->notes--;
	if (wr_id & WR_DRAIN) {
		conn->drains = 0;
		return rxfer_sq_reserve(&conn->sq, 1);
	}
	return 0;
}

static __attribute__((cold, noinline)) int not_ours(struct rxfer_conn *conn, uint32_t seq)
{
	return rxfer_conn_break(conn, EPROTO,
				"%s reported a completion for WR %u, which is not in the queue",
				conn->dev->info.name, seq);
}

/* One completion: 1 where it is a message for the caller, 0 where it proved WRs, or -errno. */
static inline int take_one(struct rxfer_conn *conn, const struct ibv_wc *wc,
			   struct rxfer_done *done)
{
	uint32_t seq = (uint32_t)wc->wr_id;

	if (__builtin_expect(wc->status != IBV_WC_SUCCESS, 0))
		return completion_failed(conn, wc);
	if (wc->wr_id & WR_RECV)
		return message(conn, wc, done);
	if (__builtin_expect(rxfer_sq_complete(&conn->sq, seq) < 0, 0))
		return not_ours(conn, seq);
	conn->proven = seq + 1;
	if (__builtin_expect(wc->wr_id != seq, 0))
		return take_marked(conn, wc->wr_id);
	conn->counts.cqe++;
	return 0;
}

/* Is a message the next that is known? */
static inline bool message_is_next(const struct rxfer_conn *conn)
{
	const struct ibv_wc *wc = &conn->wc[conn->wc_next];

	return conn->wc_next < conn->wc_count && wc->status == IBV_WC_SUCCESS &&
	       wc->wr_id & WR_RECV;
}

/* Those behind the first one that came in one go with it: nothing was done in between. */
static inline int more_messages(struct rxfer_conn *conn, struct rxfer_done *done, int max)
{
	int n = 1;

	while (n < max && message_is_next(conn))
		n += message(conn, &conn->wc[conn->wc_next++], &done[n]);
	return n;
}

/* Nothing is known to be done: look at completions until something is; fetches some, once, when no
 * known ones are left. As rxfer_poll(). */
static inline int look(struct rxfer_conn *conn, struct rxfer_done *done, int max)
{
	bool fetched = false;
	int rc;

	do {
		if (conn->wc_next == conn->wc_count) {
			if (fetched)
				return 0;
			fetched = true;
			rc = rxfer_cq_fetch(conn);
			if (rc <= 0)
				return rc;
		}
		rc = take_one(conn, &conn->wc[conn->wc_next++], done);
		if (rc)
			return rc < 0 ? rc : more_messages(conn, done, max);
	} while (!oldest_is_done(conn));
	return 0;
}

static __attribute__((cold, noinline)) int broken_before(struct rxfer_conn *conn)
{
	return rxfer_conn_break(conn, conn->broken, "%s", "");
}

int rxfer_poll(struct rxfer_conn *conn, struct rxfer_done *done, int max)
{
	if (__builtin_expect(conn->broken, 0))
		return broken_before(conn);
	if (!oldest_is_done(conn)) {
		int rc = look(conn, done, max);

		if (rc || !oldest_is_done(conn))
			return rc;
	}
	return conn->keys_only ? finish(conn, done, max, false) : finish_unmapping(conn, done, max);
}

bool rxfer_more(const struct rxfer_conn *conn)
{
	return conn->wc_next < conn->wc_count || conn->wc_count == RXFER_WC_BATCH ||
	       oldest_is_done(conn);
}

bool rxfer_due(const struct rxfer_conn *conn)
{
	return rxfer_sq_posted(&conn->sq) > conn->sig.silent;
}

bool rxfer_idle(const struct rxfer_conn *conn)
{
	return conn->inflight == 0 && conn->drains == 0 && conn->wc_next == conn->wc_count;
}
