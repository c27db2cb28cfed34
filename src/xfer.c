/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Transfers: from two lists to one chain of work requests and one ibv_post_send(). The way back is
 * poll.c.
 *
 * An I/O's way: credits are reserved, its worst case N of them; the strategy maps its memory; the
 * lists are cut into WRs; commit() spends what is needed and frees the rest; the signalling policy
 * looks at each WR; the chain is posted. Everything that can be is prebuilt: an I/O owns its WRs,
 * SGEs and ranges, and none of this allocates.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "reg.h"

static const enum ibv_wr_opcode wr_opcode[] = {
	[RXFER_READ] = IBV_WR_RDMA_READ,
	[RXFER_WRITE] = IBV_WR_RDMA_WRITE,
	[RXFER_WRITE_IMM] = IBV_WR_RDMA_WRITE, /* but for the last one: add_imm() */
	[RXFER_SEND] = IBV_WR_SEND,
};

/* ---- The arrays of a connection ---- */

/* Cut pieces off one allocation, each aligned for anything. */
static void *carve(char **slab, size_t bytes)
{
	void *p = *slab;

	*slab += (bytes + 63) & ~(size_t)63;
	return p;
}

/* The same walk twice: with @slab at NULL it measures, else it hands out. Returns the bytes. */
static size_t lay_out(struct rxfer_conn *conn, char *slab)
{
	const struct rxfer_shape *s = &conn->attr.shape;
	uint32_t pieces = s->frags + (s->segments ? s->segments - 1 : 0);
	char *at = slab;
	struct rxfer_io *io = carve(&at, conn->nio * sizeof(*io));
	struct rxfer_io **free_io = carve(&at, conn->nio * sizeof(*free_io));
	struct rxfer_io **ring = carve(&at, (conn->ring_mask + 1) * sizeof(*ring));

	for (uint32_t i = 0; i < conn->nio; i++) {
		struct ibv_send_wr *wr = carve(&at, conn->need * sizeof(*wr));
		struct rxfer_seg *range = carve(&at, s->frags * sizeof(*range));
		struct ibv_sge *sge = carve(&at, pieces * sizeof(*sge));
		struct rxfer_sig_wr *sig = carve(&at, conn->need * sizeof(*sig));
		bool *said = carve(&at, conn->need * sizeof(*said));

		if (!slab)
			continue;
		io[i] = (struct rxfer_io){
			.index = i, .range = range, .sge = sge, .wr = wr, .sig = sig, .said = said};
		for (uint32_t k = 0; k < conn->need; k++)
			sig[k].io_epoch = &io[i].sig_epoch;
		free_io[i] = &io[i];
	}
	if (slab) {
		conn->io = io;
		conn->free_io = free_io;
		conn->ring = ring;
	}
	return (size_t)(at - slab);
}

/* Where SENDs of more pieces than SGEs are gathered by copy; declared memory like any other. */
static int make_staging(struct rxfer_conn *conn)
{
	const struct rxfer_shape *s = &conn->attr.shape;
	size_t each = (s->bytes + 4095) & ~(size_t)4095;
	int rc;

	if (s->op != RXFER_SEND || conn->reg->sge_per_wr || s->frags <= conn->sge_max)
		return 0;
	conn->staging = aligned_alloc(4096, each * conn->nio);
	if (!conn->staging)
		return rxfer_fail(ENOMEM, "out of memory for %u messages of %zu bytes", conn->nio,
				  each);
	memset(conn->staging, 0, each * conn->nio);
	rc = rxfer_mem_add(conn->dev, conn->staging, each * conn->nio, RXFER_LOCAL,
			   &conn->staging_mem);
	for (uint32_t i = 0; i < conn->nio; i++)
		conn->io[i].staging.addr = (char *)conn->staging + i * each;
	return rc;
}

int rxfer_xfer_init(struct rxfer_conn *conn)
{
	size_t bytes;
	int rc;

	conn->nio = conn->attr.slots;
	for (conn->ring_mask = 1; conn->ring_mask < conn->nio;)
		conn->ring_mask *= 2;
	conn->ring_mask--;
	bytes = lay_out(conn, NULL);
	conn->slab = aligned_alloc(64, bytes);
	if (!conn->slab)
		return rxfer_fail(ENOMEM, "out of memory for %u I/Os of %u work requests",
				  conn->nio, conn->need);
	memset(conn->slab, 0, bytes);
	lay_out(conn, conn->slab);
	conn->nfree = conn->nio;
	rc = conn->reg->open(conn);
	if (rc)
		return rc;
	conn->reg_open = true;
	return make_staging(conn);
}

/* The QP is gone: unmap what was in flight. Also called on a half-made connection. */
void rxfer_xfer_destroy(struct rxfer_conn *conn)
{
	for (; conn->slab && conn->ring_tail != conn->ring_head; conn->ring_tail++) {
		struct rxfer_io *io = conn->ring[conn->ring_tail & conn->ring_mask];

		if (!io->aside)
			conn->reg->unmap(conn, io);
	}
	if (conn->reg_open)
		conn->reg->close(conn);
	rxfer_mem_del(conn->staging_mem);
	free(conn->staging);
	free(conn->slab);
	conn->slab = NULL;
}

/* ---- Posting ---- */

/* One range to one segment (or to none, a SEND): no walk is needed. */
static void build_single(struct rxfer_io *io, const struct rxfer_seg *remote)
{
	const struct rxfer_seg *local = &io->range[0];
	struct ibv_send_wr *wr = io->wr;

	io->sge[0] = (struct ibv_sge){local->addr, local->len, local->key};
	if (remote) {
		if (remote->len < local->len)
			io->sge[0].length = remote->len;
		wr->wr.rdma.remote_addr = remote->addr;
		wr->wr.rdma.rkey = remote->key;
	}
	wr->sg_list = io->sge;
	wr->num_sge = 1;
	wr->opcode = wr_opcode[io->op];
	wr->next = NULL;
	io->bytes = io->sge[0].length;
	io->nwr = io->bytes != 0;
}

/* Cut an I/O's ranges and the remote segments into WRs. */
static void build_cut(const struct rxfer_conn *conn, struct rxfer_io *io,
		      const struct rxfer_seg *remote, uint32_t nremote)
{
	struct ibv_send_wr *wr = io->wr - 1;
	struct ibv_sge *sge = io->sge;
	struct rxfer_piece piece;
	struct rxfer_cut cut;

	io->bytes = 0;
	rxfer_cut_init(&cut, io->range, io->nrange, remote, nremote, conn->sge_max);
	for (; rxfer_cut_next(&cut, &piece); sge++) {
		if (piece.starts_wr) {
			wr++;
			wr->next = wr + 1;
			wr->sg_list = sge;
			wr->num_sge = 0;
			wr->opcode = wr_opcode[io->op];
			wr->wr.rdma.remote_addr = piece.remote_addr;
			wr->wr.rdma.rkey = piece.rkey;
		}
		wr->num_sge++;
		*sge = (struct ibv_sge){piece.local.addr, piece.local.len, piece.local.key};
		io->bytes += piece.local.len;
	}
	if (wr >= io->wr)
		wr->next = NULL;
	io->nwr = (uint32_t)(wr - io->wr) + 1;
}

static void build(const struct rxfer_conn *conn, struct rxfer_io *io,
		  const struct rxfer_seg *remote, uint32_t nremote)
{
	if (io->nrange == 1 && nremote <= 1)
		build_single(io, nremote ? remote : NULL);
	else
		build_cut(conn, io, remote, nremote);
}

static uint64_t wr_bytes(const struct ibv_send_wr *wr)
{
	uint64_t bytes = 0;

	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return bytes;
}

/* Ask the policy for each WR of the chain, and number them. */
static void sign(struct rxfer_conn *conn, struct rxfer_io *io, uint32_t seq, unsigned int flags)
{
	uint64_t mark = flags & RXFER_ASIDE ? WR_ASIDE : 0;

	for (uint32_t i = 0; i < io->nwr; i++) {
		bool last = i == io->nwr - 1;

		io->sig[i].must_signal = last && (flags & RXFER_MUST_SIGNAL);
		io->sig[i].ends_io = last;
		io->sig[i].ends_post = last;
		io->said[i] = rxfer_sig_decide(&conn->sig, &conn->sq, &io->sig[i]);
		if (mark && io->said[i]) {
			conn->sig.forced -= io->sig[i].forced;
			io->sig[i].forced = false;
		}
		io->wr[i].send_flags = io->said[i] ? IBV_SEND_SIGNALED : 0;
		if (conn->attr.inline_max && io->op != RXFER_READ &&
		    wr_bytes(&io->wr[i]) <= conn->attr.inline_max)
			io->wr[i].send_flags |= IBV_SEND_INLINE;
		io->wr[i].wr_id = mark | (uint32_t)(seq + i);
	}
	if (conn->reads && io->op != RXFER_READ)
		io->wr[0].send_flags |= IBV_SEND_FENCE;
	conn->reads += io->op == RXFER_READ;
	io->own_cqe = io->said[io->nwr - 1];
	io->last_seq = seq + io->nwr - 1;
}

/* The device refused the post from @bad on: put the accounts right; the connection is of no more
 * use. */
static int post_failed(struct rxfer_conn *conn, struct rxfer_io *io, const struct ibv_send_wr *bad,
		       int err)
{
	uint32_t taken = bad ? (uint32_t)(bad - io->wr) : 0;

	rxfer_sq_unpost(&conn->sq, io->nwr - taken);
	rxfer_sig_rollback(&conn->sig, io->sig, io->said, taken, io->nwr);
	*(io->aside ? &conn->counts.aside_sqe : &conn->counts.sqe) -= io->nwr - taken;
	return rxfer_conn_break(
		conn, abs(err),
		"ibv_post_send on %s took %u of %u WRs (%s): %u of %u send entries were in use by our count",
		conn->dev->info.name, taken, io->nwr, strerror(abs(err)),
		rxfer_sq_posted(&conn->sq), conn->sq.depth);
}

static int account_broken(struct rxfer_conn *conn, const struct rxfer_io *io)
{
	return rxfer_conn_break(
		conn, EOVERFLOW,
		"the send-queue account does not hold (a bug of ours): %u WRs to post, N %u, posted %u, reserved %u, depth %u",
		io->nwr, conn->need, rxfer_sq_posted(&conn->sq), conn->sq.reserved, conn->sq.depth);
}

/* Ring the doorbell: once, or once for each WR. Returns what ibv_post_send() did; counts. */
static int ring_doorbell(struct rxfer_conn *conn, struct rxfer_io *io, struct ibv_send_wr **bad)
{
	uint64_t *posts = io->aside ? &conn->counts.aside_posts : &conn->counts.posts;
	struct ibv_send_wr *wr = io->wr;
	int rc = 0;

	if (!conn->attr.post_single) {
		*posts += 1;
		return ibv_post_send(conn->id->qp, wr, bad);
	}
	for (; wr < io->wr + io->nwr && rc == 0; wr++) {
		wr->next = NULL;
		*posts += 1;
		*bad = wr;
		rc = ibv_post_send(conn->id->qp, wr, bad);
	}
	return rc;
}

/* Spend the reservation and post. */
static int submit(struct rxfer_conn *conn, struct rxfer_io *io, unsigned int flags)
{
	struct rxfer_counts *c = &conn->counts;
	struct ibv_send_wr *bad = NULL;
	uint32_t seq;
	int rc = rxfer_sq_commit(&conn->sq, conn->need, io->nwr, conn->later, &seq);

	if (rc)
		return account_broken(conn, io);
	sign(conn, io, seq, flags);
	if (flags & RXFER_ASIDE)
		c->aside_sqe += io->nwr;
	else
		c->sqe += io->nwr;
	rc = ring_doorbell(conn, io, &bad);
	if (rc)
		return post_failed(conn, io, bad, rc);
	return 0;
}

static int timed_map(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *local,
		     uint32_t n)
{
	uint64_t begin = rxfer_now();
	int rc = conn->reg->map(conn, io, local, n);

	conn->counts.map_ns += rxfer_now() - begin;
	return rc;
}

static int map(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *local,
	       uint32_t n)
{
	if (io->aside)
		return rxfer_reg_map_whole(conn, io, local, n);
	if (conn->attr.time_phases)
		return timed_map(conn, io, local, n);
	return conn->reg->map(conn, io, local, n);
}

/* A free I/O with N credits, or why there is none. */
static int take_io(struct rxfer_conn *conn, uint32_t nlocal, uint32_t nremote, struct rxfer_io **io)
{
	if (conn->broken)
		return rxfer_conn_break(conn, conn->broken, "%s", "");
	if (conn->nfree == 0)
		return -EAGAIN;
	if (nlocal == 0 || nlocal > conn->attr.shape.frags || nremote > conn->attr.shape.segments)
		return rxfer_fail(
			EINVAL,
			"an I/O of %u fragments and %u segments on a connection made for %u and %u",
			nlocal, nremote, conn->attr.shape.frags, conn->attr.shape.segments);
	*io = conn->free_io[conn->nfree - 1];
	return rxfer_sq_reserve(&conn->sq, conn->need);
}

/* Gather fragments by copy into the I/O's staging buffer, which then is the one fragment. */
static void linearise(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *local,
		      uint32_t n)
{
	char *to = io->staging.addr;

	for (uint32_t i = 0; i < n; i++) {
		memcpy(to, local[i].addr, local[i].len);
		to += local[i].len;
	}
	io->staging.len = (uint32_t)(to - (char *)io->staging.addr);
	conn->counts.copied_bytes += io->staging.len;
}

/* Immediate data go with an I/O's last WR: its arrival is that of all the others. */
static void add_imm(struct ibv_send_wr *wr, uint32_t imm)
{
	wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->imm_data = htonl(imm);
}

/* One I/O, from its two lists to the device. One copy, so that its parts are inlined in it. */
static __attribute__((noinline)) int post(struct rxfer_conn *conn, enum rxfer_opcode op,
					  const struct rxfer_frag *local, uint32_t nlocal,
					  const struct rxfer_seg *remote, uint32_t nremote,
					  uint32_t imm, uint64_t id, unsigned int flags)
{
	struct rxfer_io *io = NULL;
	int rc = take_io(conn, nlocal, nremote, &io);

	if (rc)
		return rc;
	io->op = op;
	io->id = id;
	io->aside = flags & RXFER_ASIDE;
	if (op == RXFER_SEND && conn->staging && nlocal > conn->sge_max) {
		linearise(conn, io, local, nlocal);
		local = &io->staging;
		nlocal = 1;
	}
	rc = map(conn, io, local, nlocal);
	if (rc) {
		rxfer_sq_release(&conn->sq, conn->need);
		return rc;
	}
	build(conn, io, remote, nremote);
	if (io->nwr == 0) {
		rxfer_io_unmap(conn, io);
		rxfer_sq_release(&conn->sq, conn->need);
		return rxfer_fail(EINVAL, "an I/O of no bytes");
	}
	if (op == RXFER_WRITE_IMM)
		add_imm(&io->wr[io->nwr - 1], imm);
	/* In the ring also where the post fails: part of it may be in the queue, so it stays mapped
	 * as long as the QP. */
	conn->ring[conn->ring_head++ & conn->ring_mask] = io;
	conn->nfree--;
	return submit(conn, io, flags);
}

int rxfer_post_read(struct rxfer_conn *conn, const struct rxfer_frag *local, uint32_t nlocal,
		    const struct rxfer_seg *remote, uint32_t nremote, uint64_t id,
		    unsigned int flags)
{
	return post(conn, RXFER_READ, local, nlocal, remote, nremote, 0, id, flags);
}

int rxfer_post_write(struct rxfer_conn *conn, const struct rxfer_frag *local, uint32_t nlocal,
		     const struct rxfer_seg *remote, uint32_t nremote, uint64_t id,
		     unsigned int flags)
{
	return post(conn, RXFER_WRITE, local, nlocal, remote, nremote, 0, id, flags);
}

int rxfer_post_write_imm(struct rxfer_conn *conn, const struct rxfer_frag *local, uint32_t nlocal,
			 const struct rxfer_seg *remote, uint32_t nremote, uint32_t imm,
			 uint64_t id, unsigned int flags)
{
	return post(conn, RXFER_WRITE_IMM, local, nlocal, remote, nremote, imm, id, flags);
}

int rxfer_post_send(struct rxfer_conn *conn, const struct rxfer_frag *local, uint32_t nlocal,
		    uint64_t id, unsigned int flags)
{
	return post(conn, RXFER_SEND, local, nlocal, NULL, 0, 0, id, flags);
}

int rxfer_post_recv(struct rxfer_conn *conn, void *addr, uint32_t len, uint64_t id)
{
	struct rxfer_mem *mem = len ? rxfer_mem_find(conn->dev, addr, len) : NULL;
	struct ibv_recv_wr wr = {.wr_id = id | WR_RECV, .num_sge = len != 0}, *bad;
	struct ibv_sge sge;
	int rc;

	if (conn->broken)
		return rxfer_conn_break(conn, conn->broken, "%s", "");
	if (len && (!mem || !mem->mr))
		return rxfer_fail(EINVAL, "a RECV buffer outside RXFER_FIXED memory");
	if (len)
		sge = (struct ibv_sge){(uintptr_t)addr, len, mem->mr->lkey};
	wr.sg_list = &sge;
	rc = ibv_post_recv(conn->id->qp, &wr, &bad);
	if (rc)
		return rxfer_conn_break(conn, abs(rc), "ibv_post_recv on %s: %s (%u entries)",
					conn->dev->info.name, strerror(abs(rc)),
					conn->attr.rq_depth);
	return 0;
}

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
	wr->send_flags = IBV_SEND_SIGNALED | (conn->reads ? IBV_SEND_FENCE : 0);
	rc = ibv_post_send(conn->id->qp, wr, &bad);
	if (!rc)
		return 0;
	rxfer_sq_unpost(&conn->sq, 1);
	return rxfer_conn_break(conn, abs(rc), "posting %s on %s: %s", what, conn->dev->info.name,
				strerror(abs(rc)));
}

int rxfer_drain(struct rxfer_conn *conn, const struct rxfer_seg *remote)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
	int rc;

	if (!rxfer_sig_tail_silent(&conn->sig) || conn->drains || conn->broken)
		return 0;
	wr.wr.rdma.remote_addr = remote->addr;
	wr.wr.rdma.rkey = remote->key;
	rc = post_bare(conn, &wr, WR_ASIDE | WR_DRAIN, "the drain WR");
	if (rc)
		return rc;
	conn->drains = 1;
	conn->counts.aside_sqe++;
	conn->counts.aside_posts++;
	return 0;
}

int rxfer_post_note(struct rxfer_conn *conn)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	int rc;

	if (conn->broken)
		return rxfer_conn_break(conn, conn->broken, "%s", "");
	rc = rxfer_sq_reserve(&conn->sq, 1);
	if (!rc)
		rc = post_bare(conn, &wr, WR_NOTE, "a SEND of no bytes");
	if (rc)
		return rc;
	conn->notes++;
	conn->counts.sqe++;
	conn->counts.posts++;
	return 0;
}
