/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Prepared I/Os: for who posts the same lists again and again.
 *
 * An I/O in a benchmark, and in a protocol whose buffers are made once, differs from the last one
 * on the same buffer in its sequence number and in whether it asks for a completion. All else of
 * its WR can be made once: that takes the key look-up, the walks over lists and their checks out of
 * the way of each post. What stays in it is what makes the send queue safe, the account and the
 * signalling policy, and what counts.
 *
 * Alone in its post such a WR goes as it is, and the signalling policy is asked by halves; so do
 * two in one post, a server's data and its reply, where the policy wants no completion in between.
 * In another post of several, or as a part of an I/O, it is copied into the place that the I/O
 * would have made it in, and goes on from there like any other.
 *
 * It is no other strategy. Where a strategy does something for each I/O, where an I/O takes more
 * than one WR, where phases are timed, a prepared I/O is posted by its lists, like any other.
 *
 * What was made once can go out of date: the memory may be deleted and declared anew, under another
 * key. The dev counts such changes, an I/O remembers the count that it was made at, and is made
 * again where they differ. It is the caller who sees to it that the lists themselves stay.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "reg.h"

/*
 * struct rxfer_prepared - @wr: as it is posted, but for id, flags and immediate data
 * @generation: of the dev's memory when @wr was made; 0: there is none, post by the lists
 * @flags:      IBV_SEND_INLINE or nothing
 * @range:      room for a strategy's answer; the SGEs lie behind it
 */
struct rxfer_prepared {
	struct ibv_send_wr wr;
	uint64_t generation;
	uint64_t bytes;
	struct rxfer_conn *conn;
	unsigned int flags;
	struct rxfer_op op;
	struct ibv_sge *sge;
	struct rxfer_seg range[];
};

/* One WR that carries the @n ranges; false where one is not enough. */
static bool fill_wr(struct rxfer_prepared *p, uint32_t n)
{
	uint64_t room = p->op.nremote ? p->op.remote->len : UINT32_MAX;

	if (p->op.nremote && room > p->conn->bytes_max)
		room = p->conn->bytes_max;
	p->bytes = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct rxfer_seg *r = &p->range[i];

		if (r->len == 0)
			return false;
		p->sge[i] = (struct ibv_sge){r->addr, r->len, r->key};
		p->bytes += r->len;
	}
	p->wr = (struct ibv_send_wr){
		.sg_list = p->sge, .num_sge = (int)n, .opcode = rxfer_wr_opcode(p->op.op)};
	if (p->op.nremote) {
		p->wr.wr.rdma.remote_addr = p->op.remote->addr;
		p->wr.wr.rdma.rkey = p->op.remote->key;
	}
	p->flags = p->op.op != RXFER_READ && p->bytes <= p->conn->inline_max ? IBV_SEND_INLINE : 0;
	return n && n <= p->conn->sge_max && p->bytes <= room;
}

/* Does an I/O of these lists look the same each time? Of memory that is registered whole it does,
 * whatever the strategy. */
static bool is_fixed(const struct rxfer_prepared *p)
{
	return p->op.fixed == p->op.nlocal || p->conn->keys_only;
}

static bool can_be_one_wr(const struct rxfer_prepared *p)
{
	return is_fixed(p) && !(p->op.grants && p->conn->by_wr) && p->op.nlocal &&
	       p->op.fixed <= p->op.nlocal && p->op.nlocal <= p->conn->attr.shape.frags &&
	       p->op.nremote == (p->op.op != RXFER_SEND);
}

/* Find all ranges and their keys. Returns how many, or -errno. */
static int map_all(struct rxfer_prepared *p)
{
	struct rxfer_io scratch = {.range = p->range};
	const struct rxfer_op *op = &p->op;
	int rc = 0;

	if (op->fixed)
		rc = rxfer_reg_map_whole(p->conn, &scratch, op->local, op->fixed);
	if (rc || op->fixed == op->nlocal)
		return rc ? rc : (int)op->fixed;
	scratch.range += op->fixed;
	rc = p->conn->reg->map(p->conn, &scratch, op->local + op->fixed, op->nlocal - op->fixed);
	return rc ? rc : (int)(op->fixed + scratch.nrange);
}

/* Make the WR, if it can be made. 0, or -errno where the memory is not there. */
static int make_wr(struct rxfer_prepared *p)
{
	int n;

	p->generation = 0;
	if (!can_be_one_wr(p))
		return 0;
	n = map_all(p);
	if (n > 0 && fill_wr(p, (uint32_t)n))
		p->generation = p->conn->dev->generation;
	return n < 0 ? n : 0;
}

int rxfer_prepare(struct rxfer_conn *conn, const struct rxfer_op *op, struct rxfer_prepared **out)
{
	size_t ranges = op->nlocal * sizeof(struct rxfer_seg);
	struct rxfer_prepared *p;
	int rc;

	p = calloc(1, sizeof(*p) + ranges + op->nlocal * sizeof(struct ibv_sge));
	if (!p)
		return rxfer_fail(ENOMEM, "out of memory for an I/O of %s",
				  rxfer_count(op->nlocal, "fragment").s);
	p->conn = conn;
	p->op = *op;
	p->sge = (struct ibv_sge *)(void *)((char *)p->range + ranges);
	rc = make_wr(p);
	if (rc)
		free(p);
	else
		*out = p;
	return rc;
}

void rxfer_unprepare(struct rxfer_prepared *p)
{
	free(p);
}

static int post_lists(struct rxfer_prepared *p, uint32_t imm, uint64_t id, unsigned int flags)
{
	p->op.imm = imm;
	p->op.id = id;
	p->op.flags = flags;
	return rxfer_post(p->conn, &p->op);
}

/* One that is out of date is made anew, for the next time, if it can be. */
static int refresh(struct rxfer_prepared *p)
{
	bool stale = p->generation && p->generation != p->conn->dev->generation;

	return stale ? make_wr(p) : 0;
}

/* No WR, one that is out of date, or flags that are for lists. */
static __attribute__((noinline)) int post_unready(struct rxfer_prepared *p, uint32_t imm,
						  uint64_t id, unsigned int flags)
{
	int rc = refresh(p);

	return rc ? rc : post_lists(p, imm, id, flags);
}

/* Immediate data, or a key to be revoked, where @wr takes one. */
static inline void set_imm(const struct rxfer_prepared *p, struct ibv_send_wr *wr, uint32_t imm,
			   unsigned int flags)
{
	if (p->op.op == RXFER_WRITE_IMM)
		rxfer_wr_add_imm(wr, imm);
	else if (flags & RXFER_INVALIDATE)
		rxfer_wr_add_inv(wr, imm);
}

/* Posted: the next time it may revoke nothing, and a key is never revoked twice. */
static inline void forget_key(struct rxfer_prepared *p, unsigned int flags)
{
	if (flags & RXFER_INVALIDATE)
		p->wr.opcode = IBV_WR_SEND;
}

/* One of several in its post, or in its I/O. */
static int post_copy(const struct rxfer_prepared *p, uint32_t imm, uint64_t id, unsigned int flags,
		     uint32_t *held, uint32_t keep)
{
	struct rxfer_conn *conn = p->conn;
	struct rxfer_io *io = conn->next_io;

	*io->wr = p->wr;
	set_imm(p, io->wr, imm, flags);
	io->done.id = id;
	io->done.op = p->op.op;
	io->done.bytes = p->bytes;
	io->epoch = p->op.epoch ? p->op.epoch : &io->sig_epoch;
	io->aside = false;
	io->moved = false;
	io->gathered = false;
	io->nrange = 0;
	io->nwr = 1;
	return rxfer_submit(conn, io, flags, held, keep);
}

/* The same out of @held credits. */
static __attribute__((noinline)) int post_held_unready(struct rxfer_prepared *p, uint32_t imm,
						       uint64_t id, unsigned int flags,
						       uint32_t *held, uint32_t keep)
{
	int rc = refresh(p);

	p->op.imm = imm;
	p->op.id = id;
	p->op.flags = flags;
	return rc ? rc : rxfer_post_held(p->conn, &p->op, held, keep);
}

/* In a post or an I/O of several, or by its lists. */
static __attribute__((noinline)) int post_held_otherwise(struct rxfer_prepared *p, uint32_t imm,
							 uint64_t id, unsigned int flags,
							 uint32_t *held, uint32_t keep)
{
	struct rxfer_conn *conn = p->conn;

	if (p->generation != conn->dev->generation || flags & RXFER_ASIDE || conn->broken ||
	    conn->inflight >= conn->nio)
		return post_held_unready(p, imm, id, flags, held, keep);
	return post_copy(p, imm, id, flags, held, keep);
}

/* Its part in the record of the I/O, once the device has it. */
static inline void enter(struct rxfer_conn *conn, const struct rxfer_prepared *p, uint64_t id,
			 bool said)
{
	struct rxfer_io *io = conn->next_io;

	io->done.id = id;
	io->done.op = p->op.op;
	io->done.own_cqe = said;
	io->done.bytes = p->bytes;
	io->aside = false;
	io->nrange = 0;
	io->last_seq = conn->sq.head;
	conn->next_io = io->next;
	conn->inflight++;
	if (p->op.op == RXFER_READ)
		conn->reads += conn->unordered;
	conn->counts.sqe++;
	conn->counts.sqe_op[p->op.op]++;
}

/* The WR is what it will be, but for what is different each time. */
static inline void ready_wr(struct rxfer_prepared *p, uint32_t seq, bool signal)
{
	p->wr.wr_id = seq;
	p->wr.send_flags = p->flags | (signal ? IBV_SEND_SIGNALED : 0);
}

/*
 * The rules are asked before the post, and it is entered after: what the device refuses leaves no
 * trace to be wiped out, and what it takes is under way while we keep our books. @left: credits
 * that are free after it.
 */
static inline __attribute__((always_inline)) int post_wr(struct rxfer_prepared *p, uint64_t id,
							 unsigned int flags,
							 enum rxfer_sig_place place, int64_t left)
{
	struct rxfer_conn *conn = p->conn;
	struct ibv_send_wr *bad = NULL;
	enum rxfer_sig_answer answer;
	int rc;

	answer = rxfer_sig_ask(&conn->sig, 0, place, left, flags & RXFER_MUST_SIGNAL);
	ready_wr(p, conn->sq.head, answer != RXFER_SIG_SILENT);
	if (p->op.op != RXFER_READ && conn->reads)
		p->wr.send_flags |= IBV_SEND_FENCE;
	rc = ibv_post_send(conn->qp, &p->wr, &bad);
	if (__builtin_expect(rc, 0))
		return rxfer_post_refused(conn, 0, 1, rc);
	enter(conn, p, id, answer != RXFER_SIG_SILENT);
	conn->counts.posts++;
	rxfer_sig_told(&conn->sig, 0, answer);
	rxfer_sq_posted_one(&conn->sq);
	return 0;
}

/* @lists: flags of what goes by its lists. */
static inline bool is_ready(const struct rxfer_prepared *p, unsigned int flags, unsigned int lists)
{
	return p->generation == p->conn->dev->generation && !(flags & lists);
}

int rxfer_post_prepared(struct rxfer_prepared *p, uint32_t imm, uint64_t id, unsigned int flags)
{
	struct rxfer_conn *conn = p->conn;
	int64_t room = rxfer_sq_room(&conn->sq, conn->need);

	if (__builtin_expect(conn->inflight >= conn->most, 0))
		return conn->held ? post_lists(p, imm, id, flags) : rxfer_no_io(conn);
	if (__builtin_expect(
		    !is_ready(p, flags, RXFER_MORE | RXFER_PART | RXFER_ASIDE | RXFER_INVALIDATE),
		    0))
		return post_unready(p, imm, id, flags);
	if (__builtin_expect(room < 0, 0))
		return rxfer_no_credits(conn);
	if (p->op.op == RXFER_WRITE_IMM)
		rxfer_wr_add_imm(&p->wr, imm);
	return post_wr(p, id, flags, RXFER_SIG_ENDS_IO, room + conn->need - 1);
}

/* As it is. Apart from who decides so, which then has no registers to save. */
static __attribute__((noinline)) int post_held_alone(struct rxfer_prepared *p, uint32_t imm,
						     uint64_t id, unsigned int flags,
						     uint32_t *held, uint32_t keep)
{
	struct rxfer_sq *sq = &p->conn->sq;
	int rc;

	set_imm(p, &p->wr, imm, flags);
	rc = post_wr(p, id, flags, flags & RXFER_PART ? RXFER_SIG_INSIDE : RXFER_SIG_ENDS_IO,
		     (int64_t)rxfer_sq_free(sq) + *held - keep - 1);
	forget_key(p, flags);
	sq->reserved -= *held - keep;
	*held = keep;
	return rc;
}

int rxfer_post_prepared_held(struct rxfer_prepared *p, uint32_t imm, uint64_t id,
			     unsigned int flags, uint32_t *held, uint32_t keep)
{
	const struct rxfer_conn *conn = p->conn;

	if (conn->inflight >= conn->most || !is_ready(p, flags, RXFER_MORE | RXFER_ASIDE) ||
	    (flags & (RXFER_PART | RXFER_MUST_SIGNAL)) == RXFER_PART || *held <= keep ||
	    *held > conn->sq.reserved || rxfer_sq_check(&conn->sq))
		return post_held_otherwise(p, imm, id, flags, held, keep);
	return post_held_alone(p, imm, id, flags, held, keep);
}

static void set_remote(struct rxfer_prepared *p, const struct rxfer_seg *remote)
{
	p->op.remote = remote;
	p->wr.wr.rdma.remote_addr = remote->addr;
	p->wr.wr.rdma.rkey = remote->key;
}

int rxfer_post_prepared_to(struct rxfer_prepared *p, const struct rxfer_seg *remote, uint32_t imm,
			   uint64_t id, unsigned int flags, uint32_t *held, uint32_t keep)
{
	set_remote(p, remote);
	if (p->bytes > remote->len) /* lists end where one of them does */
		return post_held_unready(p, imm, id, flags, held, keep);
	return rxfer_post_prepared_held(p, imm, id, flags, held, keep);
}

/* The device took none of two, or one: that is under way. */
static __attribute__((cold, noinline)) int pair_refused(const struct rxfer_prepared *data,
							uint64_t id, bool taken, int err)
{
	struct rxfer_conn *conn = data->conn;

	if (taken) {
		enter(conn, data, id, false);
		rxfer_sig_told(&conn->sig, 0, RXFER_SIG_SILENT);
		rxfer_sq_posted_one(&conn->sq);
	}
	conn->counts.posts += taken;
	return rxfer_post_refused(conn, taken, 2, err);
}

/* As they are, the first of them silent. As post_wr(). */
static int post_two(struct rxfer_prepared *data, struct rxfer_prepared *last, uint64_t id,
		    unsigned int flags, int64_t left)
{
	struct rxfer_conn *conn = data->conn;
	struct ibv_send_wr *bad = NULL;
	enum rxfer_sig_answer answer;
	int rc;

	answer = rxfer_sig_ask(&conn->sig, 1, RXFER_SIG_ENDS_IO, left, flags & RXFER_MUST_SIGNAL);
	ready_wr(data, conn->sq.head, false);
	ready_wr(last, conn->sq.head + 1, answer != RXFER_SIG_SILENT);
	data->wr.next = &last->wr;
	rc = ibv_post_send(conn->qp, &data->wr, &bad);
	data->wr.next = NULL;
	if (__builtin_expect(rc, 0))
		return pair_refused(data, id, bad == &last->wr, rc);
	enter(conn, data, id, false);
	conn->sq.head++;
	enter(conn, last, id, answer != RXFER_SIG_SILENT);
	conn->counts.posts++;
	rxfer_sig_told(&conn->sig, 1, answer);
	rxfer_sq_posted_one(&conn->sq);
	return 0;
}

/* Both can go as they are, in one post, and the policy wants no completion of the first. */
static bool can_be_two(const struct rxfer_prepared *data, const struct rxfer_prepared *last,
		       unsigned int flags, uint32_t held)
{
	const struct rxfer_conn *conn = data->conn;

	return conn->inflight + 2 <= conn->most &&
	       is_ready(data, flags, RXFER_MORE | RXFER_PART | RXFER_ASIDE) &&
	       is_ready(last, 0, 0) && held >= 2 && held <= conn->sq.reserved &&
	       !rxfer_sq_check(&conn->sq) && !conn->reads && !conn->attr.post_single &&
	       rxfer_sig_inside_is_silent(&conn->sig);
}

int rxfer_post_prepared_two(struct rxfer_prepared *data, const struct rxfer_seg *remote,
			    struct rxfer_prepared *last, uint32_t imm, uint64_t id,
			    unsigned int flags, uint32_t *held)
{
	struct rxfer_sq *sq = &data->conn->sq;
	int rc;

	if (!can_be_two(data, last, flags, *held) || data->bytes > remote->len) {
		rc = rxfer_post_prepared_to(data, remote, 0, id, RXFER_PART | RXFER_MORE, held, 1);
		return rc ? rc : rxfer_post_prepared_held(last, imm, id, flags, held, 0);
	}
	set_remote(data, remote);
	set_imm(last, &last->wr, imm, flags);
	rc = post_two(data, last, id, flags, (int64_t)rxfer_sq_free(sq) + *held - 2);
	forget_key(last, flags);
	sq->reserved -= *held;
	*held = 0;
	return rc;
}
