/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * frwr-umr, engine umr: what kernels do by fast registration work requests (IB_WR_REG_MR), by what
 * mlx5 has for it in user space: an mkey, a key that a WR gives a list of pieces of memory (umr.h).
 * Unlike a memory window it gathers: an I/O's fragments, however they lie, are one key and one
 * segment from address 0 on, so exposing takes one WR and revoking another. And it is a key for
 * local use, too: an I/O's own fragments are one SGE. What it has in common with windows: the
 * regions below are made once, with no right for the peer, so pinning pages is no part of the cost.
 * A key is good on all queue pairs of its protection domain.
 *
 * Exposing. Each exposure has an mkey, and each grant takes its next tag, where the device has
 * tags; else the same key comes back each time, and key_reuse_min says so.
 *
 *	UMR, SEND (the request)        reply        LOCAL_INV
 *
 * Local use. Each I/O of the connection has an mkey, and the WR that ends its list goes in front of
 * the next one:
 *
 *	LOCAL_INV, UMR, READ
 *
 * Then all that used the list is proven done: nothing is waited for, no fence is needed, and a
 * WRITE that the device has to send again finds its source. (Behind the data, in the same post, it
 * would need a fence: IBA allows a LOCAL_INV to pass what is under way.) It is what kernels do with
 * regions for their own READs, in drivers/infiniband/core/rw.c. No peer has such a key, so nothing
 * lies open meanwhile. What is gathered cannot go inline: its addresses are no memory's.
 *
 * Written by the manual pages and the source of rdma-core, and tried on a test double alone: it
 * awaits its first run on hardware.
 */
#include <errno.h>
#include <stdlib.h>
#include "reg.h"
#include "umr.h"

/* ---- Memory ---- */

static int umr_mem_add(struct rxfer_dev *dev, struct rxfer_mem *mem)
{
	(void)dev;
	return rxfer_mem_register_as(mem, IBV_ACCESS_LOCAL_WRITE);
}

static struct rxfer_need umr_need(const struct rxfer_shape *shape, enum rxfer_revoke revoke)
{
	uint32_t map = shape->frags > shape->fixed ? 2 : 0;

	if (!shape->exposed)
		return (struct rxfer_need){map, 0};
	if (revoke == RXFER_REVOKE_LAZY)
		return (struct rxfer_need){map + 2, 0};
	return (struct rxfer_need){map + 1, revoke != RXFER_REVOKE_REMOTE};
}

/* ---- Queue pairs ---- */

/* Pieces of the longest list. */
static uint32_t longest(const struct rxfer_shape *s)
{
	uint32_t own = s->frags - s->fixed;

	return own > s->exposed ? own : s->exposed;
}

/* Does the device make a QP of lists of @max pieces, and of little else? */
static bool is_possible(const struct rxfer_conn *conn, const struct ibv_qp_init_attr *attr,
			uint32_t max)
{
	struct ibv_qp_init_attr small = *attr;
	struct ibv_qp *qp;

	small.cap.max_send_wr = 1;
	qp = rxfer_umr_qp(conn->dev->pd, &small, max);
	if (qp)
		ibv_destroy_qp(qp);
	return qp;
}

/* What it has room for is in no list of limits. */
static int too_long(const struct rxfer_conn *conn, const struct ibv_qp_init_attr *attr,
		    uint32_t most)
{
	uint32_t asked = most, least = 1;

	while (least + 1 < most) {
		uint32_t middle = least + (most - least) / 2;

		if (is_possible(conn, attr, middle))
			least = middle;
		else
			most = middle;
	}
	return rxfer_fail(
		EMSGSIZE,
		"a key to %s of memory is more than a work request of %s has room for, %u: use fewer --frags",
		rxfer_count(asked, "piece").s, conn->dev->info.name, least);
}

static int umr_create_qp(struct rxfer_conn *conn, struct ibv_qp_init_attr *attr)
{
	uint32_t max = longest(&conn->attr.shape);
	struct ibv_qp *qp;
	int err;

	max = max ? max : 1;
	qp = rxfer_umr_qp(conn->dev->pd, attr, max);
	err = errno;
	if (!qp && !is_possible(conn, attr, max) && is_possible(conn, attr, 1))
		return too_long(conn, attr, max);
	conn->id->qp = qp;
	return qp ? 0 : -err;
}

/* ---- Local use: an mkey for each I/O, in conn->reg_data ---- */

#define NO_ROUNDS \
	"takes two work requests more for each post of data, which a server does not reckon with: take another --peer-strategy"

static void umr_close(struct rxfer_conn *conn)
{
	struct rxfer_umr **umr = conn->reg_data;

	for (uint32_t i = 0; umr && i < conn->nio; i++)
		rxfer_umr_free(conn->dev, umr[i]);
	free(umr);
	conn->reg_data = NULL;
}

static int umr_open(struct rxfer_conn *conn)
{
	const struct rxfer_shape *s = &conn->attr.shape;
	struct rxfer_umr **umr;
	int rc = 0;

	if (conn->attr.rounds)
		return rxfer_fail(EOPNOTSUPP, "frwr-umr %s", NO_ROUNDS);
	if (s->frags <= s->fixed)
		return 0;
	umr = calloc(conn->nio, sizeof(struct rxfer_umr *));
	if (!umr)
		return rxfer_fail(ENOMEM, "out of memory for the keys of %s",
				  rxfer_count(conn->nio, "I/O").s);
	conn->reg_data = umr;
	for (uint32_t i = 0; !rc && i < conn->nio; i++)
		rc = rxfer_umr_new(conn->dev, s->frags - s->fixed, false, &umr[i]);
	if (rc)
		umr_close(conn);
	return rc;
}

static struct ibv_send_wr local_inv(uint32_t key)
{
	return (struct ibv_send_wr){.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = key};
}

/* One more in front of the data. */
static void put_in_front(struct rxfer_io *io, struct ibv_send_wr wr)
{
	struct ibv_send_wr *at = &io->wr[io->front++];

	*at = wr;
	at->next = at + 1;
}

static int too_large(void)
{
	return rxfer_fail(EMSGSIZE, "an I/O of more bytes than one segment can have, %u",
			  UINT32_MAX);
}

/* The list of ranges, runs of them as one piece. */
static int list_ranges(struct rxfer_umr *u, const struct rxfer_seg *range, uint32_t n,
		       uint32_t *bytes)
{
	struct ibv_sge *last;
	uint64_t sum = 0;

	u->n = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct rxfer_seg *r = &range[i];

		last = &u->sge[u->n - 1];
		if (i && r->key == last->lkey && r->addr == last->addr + last->length)
			last->length += r->len;
		else
			rxfer_umr_add(u, r->addr, r->len, r->key);
		sum += r->len;
	}
	*bytes = (uint32_t)sum;
	return sum > UINT32_MAX ? too_large() : 0;
}

static int misfit(uint32_t n)
{
	return rxfer_fail(EINVAL,
			  "an I/O of %s to be mapped on a connection made for fewer, or for none",
			  rxfer_count(n, "fragment").s);
}

static int umr_map(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *frag,
		   uint32_t n)
{
	struct rxfer_umr **umr = conn->reg_data, *u = umr ? umr[io->index] : NULL;
	uint32_t bytes;
	int rc;

	if (!u || n > u->max)
		return misfit(n);
	rc = rxfer_reg_map_whole(conn, io, frag, n);
	if (!rc)
		rc = list_ranges(u, io->range, n, &bytes);
	if (rc)
		return rc;
	u->access = io->done.op == RXFER_READ ? IBV_ACCESS_LOCAL_WRITE : 0;
	if (u->set)
		put_in_front(io, local_inv(u->key));
	put_in_front(io, rxfer_umr_wr(u, u->key));
	io->range[0] = (struct rxfer_seg){0, bytes, u->key};
	io->nrange = 1;
	return 0;
}

/* ---- The peer's side: an mkey for each exposure ---- */

/* @grants: since its mkey was made. @number: of that. */
struct exposed {
	struct rxfer_umr *umr;
	struct rxfer_number *number;
	uint32_t grants;
};

static int make_key(struct rxfer_conn *conn, uint32_t max, struct exposed *e)
{
	int rc = rxfer_umr_new(conn->dev, max, conn->attr.revoke == RXFER_REVOKE_REMOTE, &e->umr);

	if (rc)
		return rc;
	e->grants = 0;
	e->number = rxfer_key_number(conn, e->umr->key);
	if (e->number)
		return 0;
	rxfer_umr_free(conn->dev, e->umr);
	e->umr = NULL;
	return rxfer_fail(ENOMEM, "out of memory for what is known of a key");
}

static int umr_expose_open(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	uint32_t max = conn->attr.shape.exposed < x->max ? conn->attr.shape.exposed : x->max;
	struct exposed *e = calloc(1, sizeof(*e));
	int rc;

	if (!e)
		return rxfer_fail(ENOMEM, "out of memory for what an I/O exposes");
	rc = make_key(conn, max, e);
	if (rc)
		free(e);
	else
		x->reg_data = e;
	return rc;
}

static void umr_expose_close(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	struct exposed *e = x->reg_data;

	if (!rxfer_umr_free(conn->dev, e->umr))
		rxfer_key_buried(x, 0);
	free(e);
}

/* The segments become the one that they are under the key. */
static int gather(struct rxfer_exposure *x, uint32_t key)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < x->nseg; i++)
		sum += x->seg[i].len;
	if (sum > UINT32_MAX)
		return too_large();
	x->seg[0] = (struct rxfer_seg){0, (uint32_t)sum, key};
	x->nseg = 1;
	return 0;
}

static int umr_cut(struct rxfer_conn *conn, struct rxfer_exposure *x, const struct rxfer_frag *frag,
		   uint32_t n, unsigned int rights)
{
	int rc = rxfer_reg_cut(conn, x, frag, n, rights, true);

	return rc ? rc : gather(x, 0);
}

static int too_many(const struct rxfer_exposure *x, uint32_t max)
{
	return rxfer_fail(EMSGSIZE, "an I/O's memory is %s, and its exposure was made for %u",
			  rxfer_count(x->nseg, "contiguous run").s, max);
}

static int umr_expose(struct rxfer_conn *conn, struct rxfer_exposure *x,
		      const struct rxfer_frag *frag, uint32_t n, unsigned int rights)
{
	struct rxfer_umr *u = ((struct exposed *)x->reg_data)->umr;
	int rc = rxfer_reg_cut(conn, x, frag, n, rights, true);

	if (rc)
		return rc;
	if (x->nseg > u->max)
		return too_many(x, u->max);
	u->n = 0;
	for (uint32_t i = 0; i < x->nseg; i++) {
		const struct rxfer_seg *s = &x->seg[i];
		const struct rxfer_mem *mem =
			rxfer_mem_find(conn->dev, (void *)(uintptr_t)s->addr, s->len);

		rxfer_umr_add(u, s->addr, s->len, mem->lkey);
	}
	u->access = rxfer_peer_access(rights);
	return gather(x, u->tags ? ibv_inc_rkey(u->key) : u->key);
}

static int umr_revoke(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	(void)conn;
	(void)x;
	return rxfer_fail(EOPNOTSUPP, "frwr-umr revokes by a work request: rxfer_revoke_held()");
}

/* ---- Work requests ---- */

static uint32_t umr_grant(struct rxfer_conn *conn, struct rxfer_exposure *x, struct ibv_send_wr *wr)
{
	const struct exposed *e = x->reg_data;
	uint32_t n = 0;

	(void)conn;
	if (x->nwas && x->was[0].state == RXFER_GRANT_OPEN)
		wr[n++] = local_inv(x->was[0].key);
	wr[n++] = rxfer_umr_wr(e->umr, x->seg[0].key);
	return n;
}

static void umr_granted(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	struct exposed *e = x->reg_data;

	e->grants++;
	rxfer_key_used(conn, e->number, x->seg[0].key);
}

static int umr_revoke_wrs(struct rxfer_conn *conn, struct rxfer_exposure *x, struct ibv_send_wr *wr)
{
	int rc = rxfer_exposure_revoking(x, 0);

	(void)conn;
	if (rc)
		return rc;
	*wr = local_inv(x->seg[0].key);
	return 1;
}

/* Another mkey in place of one that has had all its keys; it stays where there is no other. */
static int umr_renew(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	struct exposed *e = x->reg_data, next;
	int rc;

	if (e->grants < (e->umr->tags ? RXFER_KEYS - 1 : 1))
		return 0;
	x->open_after = RXFER_NO_SPAN;
	rc = make_key(conn, e->umr->max, &next);
	if (rc)
		return rc;
	rc = rxfer_umr_free(conn->dev, e->umr);
	if (rc) {
		rxfer_umr_free(conn->dev, next.umr);
		return rc;
	}
	*e = next;
	return rxfer_key_ended(x, 0);
}

static const struct rxfer_reg_by_wr umr_by_wr = {
	.grant = umr_grant,
	.granted = umr_granted,
	.revoke = umr_revoke_wrs,
	.renew = umr_renew,
};

const struct rxfer_reg_ops rxfer_reg_frwr_umr = {
	.name = "frwr-umr",
	.summary =
		"a work request gathers an I/O's memory under one key, another one ends it (mlx5)",
	.engine = "umr",
	.supported = rxfer_umr_supported,
	.mem_add = umr_mem_add,
	.mem_del = rxfer_reg_mem_drop,
	.open = umr_open,
	.close = umr_close,
	.need = umr_need,
	.map = umr_map,
	.unmap = rxfer_reg_unmap_nothing,
	.revokes = RXFER_REVOKES(SYNC) | RXFER_REVOKES(ASYNC) | RXFER_REVOKES(REMOTE) |
		   RXFER_REVOKES(LAZY),
	.no_revoke =
		{
			[RXFER_REVOKE_NONE] =
				"gives one list after the other to the same key, which must be revoked before the next (--revoke sync, async, remote, lazy)",
		},
	.expose_open = umr_expose_open,
	.expose_close = umr_expose_close,
	.expose = umr_expose,
	.replied = rxfer_reg_replied_nothing,
	.cut = umr_cut,
	.revoke = umr_revoke,
	.no_rounds = NO_ROUNDS,
	.gathers = true,
	.by_wr = &umr_by_wr,
	.create_qp = umr_create_qp,
	.post = rxfer_umr_post,
};
