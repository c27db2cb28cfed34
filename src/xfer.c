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
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "reg.h"

/* ---- The work requests of an I/O ---- */

static inline void start_wr(struct ibv_send_wr *wr, struct ibv_sge *sge, enum rxfer_opcode op,
			    uint64_t remote_addr, uint32_t rkey)
{
	wr->next = wr + 1;
	wr->sg_list = sge;
	wr->num_sge = 0;
	wr->opcode = rxfer_wr_opcode(op);
	wr->wr.rdma.remote_addr = remote_addr;
	wr->wr.rdma.rkey = rkey;
}

/* @wr is the last one; before the first where there is nothing to carry. */
static inline void end_chain(struct rxfer_io *io, struct ibv_send_wr *wr, uint64_t bytes)
{
	io->nwr = (uint32_t)(wr - io->wr) + 1;
	io->done.bytes = bytes;
	if (io->nwr)
		wr->next = NULL;
}

/* Those in RXFER_FIXED memory come first, then the strategy's. */
static inline uint32_t ranges(const struct rxfer_io *io)
{
	return (uint32_t)(io->range - io->first) + io->nrange;
}

/* One range into one segment that it fits in, and one WR: no walk is needed. */
static void build_single(struct rxfer_io *io, const struct rxfer_seg *remote)
{
	const struct rxfer_seg *range = io->first;
	struct ibv_send_wr *wr = io->wr + io->front;

	start_wr(wr, io->sge, io->done.op, remote->addr, remote->key);
	*io->sge = (struct ibv_sge){range->addr, range->len, range->key};
	wr->num_sge = 1;
	end_chain(io, wr, range->len);
}

/* An I/O's ranges into one segment (or none, a SEND): a new WR begins where SGEs are used up, and
 * nowhere else. false: they do not fit in, or into the bytes of a WR, so it has to be cut. */
static bool build_into_one(const struct rxfer_conn *conn, struct rxfer_io *io,
			   const struct rxfer_seg *remote)
{
	const struct rxfer_seg none = {.len = UINT32_MAX}, *into = remote ? remote : &none;
	uint64_t room = remote && conn->bytes_max < remote->len ? conn->bytes_max : into->len;
	const struct rxfer_seg *range = io->first, *end = range + ranges(io);
	struct ibv_send_wr *wr = io->wr + io->front - 1;
	struct ibv_sge *sge = io->sge;
	uint32_t sge_left = 0;
	uint64_t bytes = 0;

	for (; range < end; range++) {
		if (range->len == 0)
			continue;
		if (sge_left == 0) {
			start_wr(++wr, sge, io->done.op, into->addr + bytes, into->key);
			sge_left = conn->sge_max;
		}
		*sge++ = (struct ibv_sge){range->addr, range->len, range->key};
		wr->num_sge++;
		sge_left--;
		bytes += range->len;
	}
	end_chain(io, wr, bytes);
	return bytes <= room;
}

/* Cut an I/O's ranges and the remote segments into WRs. */
static void build_cut(const struct rxfer_conn *conn, struct rxfer_io *io,
		      const struct rxfer_seg *remote, uint32_t nremote)
{
	struct ibv_send_wr *wr = io->wr + io->front - 1;
	struct ibv_sge *sge = io->sge;
	struct rxfer_piece piece;
	struct rxfer_cut cut;
	uint64_t bytes = 0;

	rxfer_cut_init(&cut, io->first, ranges(io), remote, nremote, conn->sge_max,
		       conn->bytes_max);
	for (; rxfer_cut_next(&cut, &piece); sge++) {
		if (piece.starts_wr)
			start_wr(++wr, sge, io->done.op, piece.remote_addr, piece.rkey);
		*sge = (struct ibv_sge){piece.local.addr, piece.local.len, piece.local.key};
		wr->num_sge++;
		bytes += piece.local.len;
	}
	end_chain(io, wr, bytes);
}

static void build(const struct rxfer_conn *conn, struct rxfer_io *io,
		  const struct rxfer_seg *remote, uint32_t nremote)
{
	const struct rxfer_seg *local = io->first;

	if (ranges(io) == 1 && nremote == 1 && local->len && local->len <= remote->len &&
	    local->len <= conn->bytes_max)
		build_single(io, remote);
	else if (nremote > 1 || !build_into_one(conn, io, nremote ? remote : NULL))
		build_cut(conn, io, remote, nremote);
}

static uint64_t wr_bytes(const struct ibv_send_wr *wr)
{
	uint64_t bytes = 0;

	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return bytes;
}

/* ---- Posting a chain ---- */

__attribute__((cold, noinline)) int rxfer_post_refused(struct rxfer_conn *conn, uint32_t taken,
						       uint32_t nwr, int err)
{
	return rxfer_conn_break(
		conn, abs(err),
		"%s on %s took %u of %u WRs (%s): %u of %u send entries were in use by our count",
		conn->reg->post ? "ibv_wr_complete" : "ibv_post_send", conn->dev->info.name, taken,
		nwr, strerror(abs(err)), rxfer_sq_posted(&conn->sq), conn->sq.depth);
}

/* The I/O that was held back as the @i-th. */
static struct rxfer_io *held_io(struct rxfer_io *first, uint32_t i)
{
	while (i--)
		first = first->next;
	return first;
}

/* Its first @n WRs are about keys. */
static void count_keys(struct rxfer_conn *conn, const struct rxfer_io *io, uint32_t n, uint64_t one)
{
	for (uint32_t i = 0; i < n; i++) {
		bool revokes = io->wr[i].opcode == IBV_WR_LOCAL_INV;

		conn->counts.sqe_op[revokes ? RXFER_REVOKE : RXFER_BIND] += one;
	}
}

/* Its first @n WRs were posted. @one: 1; or -1, as unsigned numbers have it: they were not. */
static inline void count(struct rxfer_conn *conn, const struct rxfer_io *io, uint32_t n,
			 uint64_t one)
{
	uint32_t keys = io->front < n ? io->front : n;

	if (io->aside) {
		conn->counts.aside_sqe += n * one;
		return;
	}
	conn->counts.sqe += n * one;
	conn->counts.sqe_op[io->done.op] += (n - keys) * one;
	if (__builtin_expect(keys, 0))
		count_keys(conn, io, keys, one);
}

/* The device took the first @taken WRs of an I/O: what the others changed is as it was. */
static void undo(struct rxfer_conn *conn, struct rxfer_io *io, uint32_t taken)
{
	for (uint32_t i = 0; i < io->nwr; i++)
		io->said[i] = io->wr[i].send_flags & IBV_SEND_SIGNALED;
	rxfer_sig_rollback(&conn->sig, io->sig, io->said, taken, io->nwr);
	count(conn, io, io->nwr, UINT64_MAX);
	count(conn, io, taken, 1);
}

/*
 * The device refused the post of the @n I/Os from @first on, from the WR @bad on: put the accounts
 * right, the latest first; the connection is of no more use.
 */
static __attribute__((cold, noinline)) int post_failed(struct rxfer_conn *conn,
						       struct rxfer_io *first, uint32_t n,
						       const struct ibv_send_wr *bad, int err)
{
	uint32_t nwr = 0, left = 0;
	bool found = !bad;

	for (uint32_t i = 0; i < n; i++)
		nwr += held_io(first, i)->nwr;
	for (uint32_t i = 0; i < n; i++) {
		struct rxfer_io *io = held_io(first, i);
		bool here = !found && bad >= io->wr && bad < io->wr + io->nwr;

		io->taken = found ? 0 : here ? (uint32_t)(bad - io->wr) : io->nwr;
		found = found || here;
		left += io->nwr - io->taken;
	}
	while (n--)
		undo(conn, held_io(first, n), held_io(first, n)->taken);
	rxfer_sq_unpost(&conn->sq, left);
	return rxfer_post_refused(conn, nwr - left, nwr, err);
}

static __attribute__((cold, noinline)) int account_broken(struct rxfer_conn *conn, uint32_t nwr)
{
	return rxfer_conn_break(
		conn, EOVERFLOW,
		"the send-queue account does not hold (a bug of ours): %s to post, N %u, posted %u, reserved %u, depth %u",
		rxfer_count(nwr, "WR").s, conn->need, rxfer_sq_posted(&conn->sq), conn->sq.reserved,
		conn->sq.depth);
}

/* One post for each WR of the chain. Returns what it did; counts. */
static int post_singly(struct rxfer_conn *conn, struct ibv_send_wr *wr, uint64_t *posts,
		       struct ibv_send_wr **bad)
{
	int rc = 0;

	while (wr && rc == 0) {
		struct ibv_send_wr *next = wr->next;

		wr->next = NULL;
		*posts += 1;
		*bad = wr;
		rc = conn->post(conn->qp, wr, bad);
		wr = next;
	}
	return rc;
}

/* Ask the policy for the @i-th WR, and number it. @bytes: below @inlines they are copied. */
static inline __attribute__((always_inline)) bool
sign_wr(struct rxfer_conn *conn, struct rxfer_io *io, uint32_t i, uint32_t seq, uint64_t bytes,
	uint64_t inlines, bool must_signal, enum rxfer_sig_place place, bool ends_post)
{
	struct ibv_send_wr *wr = &io->wr[i];
	bool said;

	io->sig[i].io_epoch = io->epoch;
	said = rxfer_sig_next(&conn->sig, rxfer_sq_free(&conn->sq), &io->sig[i], io->epoch,
			      must_signal, place, ends_post);
	wr->send_flags = said ? IBV_SEND_SIGNALED : 0;
	wr->wr_id = seq + i;
	if (__builtin_expect(bytes < inlines, 0) && i >= io->front)
		wr->send_flags |= IBV_SEND_INLINE;
	return said;
}

/* Nobody measures it: it is marked, and no matter for the counts of signals. */
static __attribute__((noinline)) void set_aside(struct rxfer_conn *conn, struct rxfer_io *io)
{
	for (uint32_t i = 0; i < io->nwr; i++) {
		bool said = io->wr[i].send_flags & IBV_SEND_SIGNALED;

		io->wr[i].wr_id |= WR_ASIDE;
		conn->sig.forced -= said && io->sig[i].forced;
		io->sig[i].forced = false;
	}
}

/* Ask the policy for each WR of the chain, and number them, from @seq on. */
static inline void sign(struct rxfer_conn *conn, struct rxfer_io *io, uint32_t seq,
			unsigned int flags)
{
	const bool read = io->done.op == RXFER_READ;
	const uint64_t inlines = read || io->gathered ? 0 : conn->inline_max + 1;
	const uint32_t last = io->nwr - 1;
	enum rxfer_sig_place place = RXFER_SIG_ENDS_IO;

	for (uint32_t i = 0; i < last; i++)
		sign_wr(conn, io, i, seq, wr_bytes(&io->wr[i]), inlines, false, RXFER_SIG_INSIDE,
			false);
	if (flags & RXFER_PART)
		place = RXFER_SIG_INSIDE;
	else if (__builtin_expect(io->done.op == RXFER_REVOKE, 0))
		place = RXFER_SIG_ENDS_REVOKE;
	io->done.own_cqe = sign_wr(conn, io, last, seq,
				   last ? wr_bytes(&io->wr[last]) : io->done.bytes, inlines,
				   flags & RXFER_MUST_SIGNAL, place, !(flags & RXFER_MORE));
	if (__builtin_expect(flags & RXFER_ASIDE, 0))
		set_aside(conn, io);
	if (read)
		conn->reads += conn->unordered;
	else if (conn->reads)
		io->wr->send_flags |= IBV_SEND_FENCE;
	io->last_seq = seq + last;
}

/* Post what is held back. */
static int post_held(struct rxfer_conn *conn, uint64_t *posts)
{
	struct rxfer_io *first = conn->held;
	struct ibv_send_wr *bad = NULL;
	uint32_t n = conn->nheld;
	int rc;

	conn->held = NULL;
	conn->nheld = 0;
	conn->most = conn->nio;
	if (first->wr->next && conn->attr.post_single) {
		rc = post_singly(conn, first->wr, posts, &bad);
	} else {
		*posts += 1;
		rc = conn->post(conn->qp, first->wr, &bad);
	}
	if (__builtin_expect(rc, 0))
		return post_failed(conn, first, n, bad, rc);
	return 0;
}

/* Put the I/O behind what is held back. While something is, nobody may post past it: @most is 0. */
static void hold(struct rxfer_conn *conn, struct rxfer_io *io)
{
	if (conn->held)
		conn->last_held->wr[conn->last_held->nwr - 1].next = io->wr;
	else
		conn->held = io;
	conn->last_held = io;
	conn->nheld++;
	conn->most = 0;
}

/*
 * Take the I/O from the free ones and post its WRs, which are numbered from @seq. It counts as in
 * flight also where the post fails: part of it may be in the queue, so it stays mapped as long as
 * the QP.
 */
static int submit(struct rxfer_conn *conn, struct rxfer_io *io, uint32_t seq, unsigned int flags)
{
	bool aside = flags & RXFER_ASIDE;

	conn->next_io = io->next;
	conn->inflight++;
	sign(conn, io, seq, flags);
	count(conn, io, io->nwr, 1);
	hold(conn, io);
	if (flags & RXFER_MORE)
		return 0;
	return post_held(conn, aside ? &conn->counts.aside_posts : &conn->counts.posts);
}

int rxfer_submit(struct rxfer_conn *conn, struct rxfer_io *io, unsigned int flags, uint32_t *held,
		 uint32_t keep)
{
	uint32_t seq;

	if (rxfer_sq_commit(&conn->sq, *held, io->nwr, keep, &seq)) {
		rxfer_io_unmap(conn, io);
		return account_broken(conn, io->nwr);
	}
	*held = keep;
	return submit(conn, io, seq, flags);
}

/* The last WR held back turns out to end a post: what keeps the queue alive is asked of it now. */
int rxfer_flush(struct rxfer_conn *conn)
{
	struct rxfer_io *io = conn->last_held;
	uint32_t last;

	if (conn->broken)
		return rxfer_conn_break(conn, conn->broken, "%s", "");
	if (!conn->held)
		return 0;
	last = io->nwr - 1;
	if (!io->done.own_cqe &&
	    rxfer_sig_keeps_alive(&conn->sig, conn->sig.silent_ios, rxfer_sq_free(&conn->sq))) {
		rxfer_sig_signal(&conn->sig, &io->sig[last], false);
		io->wr[last].send_flags |= IBV_SEND_SIGNALED;
		io->done.own_cqe = true;
	}
	return post_held(conn, &conn->counts.posts);
}

/* ---- Posting an I/O ---- */

static int timed_map(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *local,
		     uint32_t n)
{
	uint64_t begin = rxfer_now();
	int rc = conn->reg->map(conn, io, local, n);

	conn->counts.map_ns += rxfer_now() - begin;
	return rc;
}

/* The first @fixed fragments by the keys that they have for good, the others as the strategy does
 * it. What it does is undone when the I/O is done, where io->nrange is not 0. */
static int map(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *local,
	       uint32_t n, uint32_t fixed)
{
	int rc = 0;

	io->range = io->first;
	if (fixed) {
		rc = rxfer_reg_map_whole(conn, io, local, fixed);
		io->range += fixed;
		io->nrange = 0;
	}
	if (rc || fixed == n)
		return rc;
	if (conn->attr.time_phases)
		return timed_map(conn, io, local + fixed, n - fixed);
	return conn->reg->map(conn, io, local + fixed, n - fixed);
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

/* No I/O can start now. What was held back must not wait for one that has to wait itself. */
__attribute__((noinline)) int rxfer_no_io(struct rxfer_conn *conn)
{
	int rc = rxfer_flush(conn);

	return rc ? rc : -EAGAIN;
}

/* The same where its credits were not to be had: mostly there are just none free now. */
__attribute__((noinline)) int rxfer_no_credits(struct rxfer_conn *conn)
{
	int rc = rxfer_sq_reserve(&conn->sq, conn->need);

	if (rc == -EAGAIN)
		return rxfer_no_io(conn);
	return rc ? rc : account_broken(conn, 1);
}

static int misfit(const struct rxfer_conn *conn, const struct rxfer_op *op)
{
	const struct rxfer_shape *s = &conn->attr.shape;

	return rxfer_fail(EINVAL, "an I/O of %s and %s on a connection made for %u and %u",
			  rxfer_count(op->nlocal, "fragment").s,
			  rxfer_count(op->nremote, "segment").s, s->frags, s->segments);
}

/* Where I/Os go in rounds there is room for the WRs of one, and the shape allows more; where bytes
 * cut them, for those that its bytes become. */
static bool fits(const struct rxfer_conn *conn, const struct rxfer_io *io,
		 const struct rxfer_op *op)
{
	struct rxfer_cut cut;

	if (ranges(io) + op->nremote <= conn->need && conn->bytes_max == UINT32_MAX)
		return true; /* no list becomes more */
	rxfer_cut_init(&cut, io->first, ranges(io), op->remote, op->nremote, conn->sge_max,
		       conn->bytes_max);
	return io->front + rxfer_cut_count(&cut) <= conn->need;
}

static int too_many_wrs(const struct rxfer_conn *conn)
{
	return rxfer_fail(EMSGSIZE, "a post of more than %s: %s", rxfer_count(conn->need, "WR").s,
			  conn->attr.rounds ? "it goes in rounds"
					    : "the connection was made for fewer bytes");
}

/* Map an I/O's memory and make its WRs. What is written to the next free I/O before it is taken
 * does no harm if it is not taken then. */
static int make(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_op *op)
{
	const struct rxfer_frag *local = op->local;
	uint32_t n = op->nlocal, fixed = op->flags & RXFER_ASIDE ? n : op->fixed;
	int rc = 0;

	io->done.id = op->id;
	io->done.op = op->op;
	io->aside = op->flags & RXFER_ASIDE;
	io->moved = false;
	io->epoch = op->epoch ? op->epoch : &io->sig_epoch;
	if (__builtin_expect(op->grants && conn->by_wr, 0))
		rc = rxfer_keys_build(conn, io, op->grants);
	if (rc)
		return rc;
	if (op->op == RXFER_SEND && conn->staging && n > conn->sge_max) {
		linearise(conn, io, local, n);
		local = &io->staging;
		n = 1;
		fixed = 0;
	}
	if (__builtin_expect(fixed + (n > fixed) > conn->ranges, 0))
		fixed = 0; /* the strategy gathers all */
	rc = map(conn, io, local, n, fixed);
	if (rc)
		return rc;
	io->gathered = conn->reg->gathers && fixed < n;
	if (__builtin_expect(conn->bounded && !fits(conn, io, op), 0)) {
		rxfer_io_unmap(conn, io);
		return too_many_wrs(conn);
	}
	build(conn, io, op->remote, op->nremote);
	if (io->nwr == io->front) {
		rxfer_io_unmap(conn, io);
		return rxfer_fail(EINVAL, "an I/O of no bytes");
	}
	if (op->op == RXFER_WRITE_IMM)
		rxfer_wr_add_imm(&io->wr[io->nwr - 1], op->imm);
	else if (op->flags & RXFER_INVALIDATE)
		rxfer_wr_add_inv(&io->wr[io->nwr - 1], op->imm);
	return 0;
}

/*
 * One I/O, from its two lists to the device, out of credits that the caller has. Nothing of an
 * earlier one is remembered, so nothing can be out of date.
 */
int rxfer_post_held(struct rxfer_conn *conn, const struct rxfer_op *op, uint32_t *held,
		    uint32_t keep)
{
	struct rxfer_io *io = conn->next_io;
	int rc;

	if (__builtin_expect(conn->broken || conn->inflight >= conn->nio, 0))
		return rxfer_no_io(conn);
	if ((op->flags & RXFER_ASIDE) && (conn->held || op->flags & RXFER_MORE))
		return rxfer_fail(EINVAL, "an I/O that is counted aside joins no others in a post");
	if (op->grants && op->flags & RXFER_MORE)
		return rxfer_fail(EINVAL, "an I/O that grants keys is not held back");
	if (op->nlocal == 0 || op->nlocal > conn->attr.shape.frags || op->fixed > op->nlocal ||
	    op->nremote > conn->attr.shape.segments)
		return misfit(conn, op);
	rc = make(conn, io, op);
	if (rc) {
		rxfer_keys_forget(io);
		return rc;
	}
	if (__builtin_expect(!op->grants || !conn->by_wr, 1))
		return rxfer_submit(conn, io, op->flags, held, keep);
	rxfer_keys_granting(conn, op->grants);
	rc = rxfer_submit(conn, io, op->flags, held, keep);
	if (!rc)
		rxfer_keys_granted(conn, op->grants);
	return rc;
}

struct rxfer_sq *rxfer_conn_sq(struct rxfer_conn *conn)
{
	return &conn->sq;
}

/* The same out of credits of its own, its worst case N. */
int rxfer_post(struct rxfer_conn *conn, const struct rxfer_op *op)
{
	uint32_t held = conn->need;
	int rc = rxfer_sq_reserve(&conn->sq, held);

	if (rc)
		return rc == -EAGAIN ? rxfer_no_io(conn) : rc;
	rc = rxfer_post_held(conn, op, &held, 0);
	if (rc && held == conn->need) /* not spent */
		rxfer_sq_release(&conn->sq, held);
	return rc;
}

int rxfer_post_recv(struct rxfer_conn *conn, void *addr, uint32_t len, uint64_t id)
{
	const struct rxfer_mem *mem = rxfer_fixed_mem(conn, &conn->recv_mem, addr, len);
	struct ibv_recv_wr wr = {.wr_id = id | WR_RECV, .num_sge = 1}, *bad;
	struct ibv_sge sge;
	int rc;

	if (conn->broken)
		return rxfer_conn_break(conn, conn->broken, "%s", "");
	if (!mem)
		return rxfer_fail(EINVAL, "a RECV buffer outside RXFER_FIXED memory");
	sge = (struct ibv_sge){(uintptr_t)addr, len, mem->lkey};
	wr.sg_list = &sge;
	rc = ibv_post_recv(conn->qp, &wr, &bad);
	if (rc)
		return rxfer_conn_break(conn, abs(rc), "ibv_post_recv on %s: %s (%s)",
					conn->dev->info.name, strerror(abs(rc)),
					rxfer_count(conn->attr.rq_depth, "entry").s);
	return 0;
}
