/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * frwr, engine mw: what kernels do by fast registration work requests (IB_WR_REG_MR), by what user
 * space has for it. A type 2 memory window is bound to an I/O's memory by a WR, IBV_WR_BIND_MW, and
 * revoked by another, IBV_WR_LOCAL_INV, or by the peer's IBV_WR_SEND_WITH_INV. On the wire, and to
 * the peer, both are the same. What differs: the window lies over a region, so the pages have been
 * pinned before, which is no part of the cost here; and it opens memory to the peer alone, having
 * no key for local use.
 *
 * Each exposure has windows of its own, as many as it may have runs, made with the connection. One
 * window is one contiguous run, never more. The region below gives the peer no right: its own key
 * opens nothing.
 *
 * A window's key has 24 bits that are the device's and 8 that are ours. Each bind takes the next of
 * the 256, so a key comes back after 256 binds of its window (keys.c measures it). To put that off
 * costs two calls: for a window that has had them all another one is made, and it is given back.
 *
 * The WR names the new key; the old one is taken out of the struct ibv_mw by the provider, and most
 * of them leave it there (ibv_bind_mw(3) is about type 1; rxe, mlx4, mlx5 do; irdma does not). So
 * it is we who keep it current, once the device has taken the bind.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "reg.h"

/* struct window - @binds: since it was made. */
struct window {
	struct ibv_mw *mw;
	struct rxfer_number *number;
	uint32_t binds;
};

/* struct windows - of one exposure; @access: of what is exposed now. */
struct windows {
	unsigned int access;
	uint32_t n;
	struct window window[];
};

/* ---- Devices and memory ---- */

static int no_window(const struct rxfer_dev *dev, int err)
{
	return rxfer_fail(err,
			  "ibv_alloc_mw on %s: %s (max_mw %u): use a smaller --depth or --frags",
			  dev->info.name, strerror(abs(err)), dev->info.max_mw);
}

static int give_back(const struct rxfer_dev *dev, struct ibv_mw *mw)
{
	int rc = ibv_dealloc_mw(mw);

	return rc ? rxfer_fail(rc, "ibv_dealloc_mw on %s: %s", dev->info.name, strerror(abs(rc)))
		  : 0;
}

/* Capability flags are set where there are no windows, and the other way round: so it is tried. */
static int mw_supported(const struct rxfer_dev *dev)
{
	struct ibv_mw *mw = ibv_alloc_mw(dev->pd, IBV_MW_TYPE_2);
	int err = errno;

	if (mw)
		return give_back(dev, mw);
	return rxfer_fail(
		EOPNOTSUPP,
		"frwr takes memory windows of type 2, and %s gives none (ibv_alloc_mw: %s)",
		dev->info.name, strerror(err));
}

static int mw_mem_add(struct rxfer_dev *dev, struct rxfer_mem *mem)
{
	(void)dev;
	if (!(mem->rights & (RXFER_EXPOSE_READ | RXFER_EXPOSE_WRITE)))
		return 0;
	return rxfer_mem_register_as(mem, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
}

#define NO_MAP \
	"has no key for local use: a memory window only lets the peer in (take another strategy where this end moves data itself)"

static int mw_map(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *frag,
		  uint32_t n)
{
	(void)conn;
	(void)io;
	(void)frag;
	(void)n;
	return rxfer_fail(EOPNOTSUPP, "frwr %s", NO_MAP);
}

static struct rxfer_need mw_need(const struct rxfer_shape *shape, enum rxfer_revoke revoke)
{
	uint32_t runs = shape->exposed;

	if (revoke == RXFER_REVOKE_LAZY)
		return (struct rxfer_need){2 * runs, 0};
	if (revoke == RXFER_REVOKE_REMOTE && runs)
		return (struct rxfer_need){runs, runs - 1};
	return (struct rxfer_need){runs, runs};
}

/* ---- Windows ---- */

static int alloc(struct rxfer_conn *conn, struct window *w)
{
	w->mw = ibv_alloc_mw(conn->dev->pd, IBV_MW_TYPE_2);
	w->binds = 0;
	if (!w->mw)
		return no_window(conn->dev, errno);
	w->number = rxfer_key_number(conn, w->mw->rkey);
	if (w->number)
		return 0;
	ibv_dealloc_mw(w->mw);
	w->mw = NULL;
	return rxfer_fail(ENOMEM, "out of memory for the keys of a window");
}

static void mw_expose_close(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	struct windows *ws = x->reg_data;

	(void)conn;
	for (uint32_t i = 0; i < ws->n; i++) {
		if (!ws->window[i].mw || ibv_dealloc_mw(ws->window[i].mw))
			continue;
		rxfer_key_buried(x, i);
	}
	free(ws);
}

static int mw_expose_open(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	uint32_t n = conn->attr.shape.exposed < x->max ? conn->attr.shape.exposed : x->max;
	struct windows *ws = calloc(1, sizeof(*ws) + n * sizeof(ws->window[0]));
	int rc = 0;

	if (!ws)
		return rxfer_fail(ENOMEM, "out of memory for %s", rxfer_count(n, "window").s);
	x->reg_data = ws;
	for (; !rc && ws->n < n; ws->n++)
		rc = alloc(conn, &ws->window[ws->n]);
	if (rc)
		mw_expose_close(conn, x);
	return rc;
}

static int too_many(const struct rxfer_exposure *x, uint32_t n)
{
	return rxfer_fail(EMSGSIZE, "an I/O's memory is %s, and its exposure was made for %u",
			  rxfer_count(x->nseg, "contiguous run").s, n);
}

static int mw_expose(struct rxfer_conn *conn, struct rxfer_exposure *x,
		     const struct rxfer_frag *frag, uint32_t n, unsigned int rights)
{
	struct windows *ws = x->reg_data;
	int rc = rxfer_reg_cut(conn, x, frag, n, rights, true);

	if (rc)
		return rc;
	if (x->nseg > ws->n)
		return too_many(x, ws->n);
	ws->access = (rights & RXFER_EXPOSE_READ ? IBV_ACCESS_REMOTE_READ : 0) |
		     (rights & RXFER_EXPOSE_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0);
	for (uint32_t i = 0; i < x->nseg; i++)
		x->seg[i].key = ibv_inc_rkey(ws->window[i].mw->rkey);
	return 0;
}

static int mw_revoke(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	(void)conn;
	(void)x;
	return rxfer_fail(EOPNOTSUPP, "frwr revokes by a work request: rxfer_revoke_held()");
}

/* ---- Work requests ---- */

static struct ibv_send_wr local_inv(uint32_t key)
{
	return (struct ibv_send_wr){.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = key};
}

/* Providers want all of it that does not belong to a bind to be zero. */
static struct ibv_send_wr bind_mw(const struct rxfer_conn *conn, const struct windows *ws,
				  uint32_t i, const struct rxfer_seg *s)
{
	const struct rxfer_mem *mem = rxfer_mem_find(conn->dev, (void *)(uintptr_t)s->addr, s->len);

	return (struct ibv_send_wr){
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {.mw = ws->window[i].mw,
			    .rkey = s->key,
			    .bind_info = {.mr = mem->mr,
					  .addr = s->addr,
					  .length = s->len,
					  .mw_access_flags = ws->access}},
	};
}

static uint32_t mw_grant(struct rxfer_conn *conn, struct rxfer_exposure *x, struct ibv_send_wr *wr)
{
	const struct windows *ws = x->reg_data;
	const struct ibv_send_wr *first = wr;

	for (uint32_t i = 0; i < x->nwas; i++)
		if (x->was[i].state == RXFER_GRANT_OPEN)
			*wr++ = local_inv(x->was[i].key);
	for (uint32_t i = 0; i < x->nseg; i++)
		*wr++ = bind_mw(conn, ws, i, &x->seg[i]);
	return (uint32_t)(wr - first);
}

static void mw_granted(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	struct windows *ws = x->reg_data;

	for (uint32_t i = 0; i < x->nseg; i++) {
		struct window *w = &ws->window[i];

		w->mw->rkey = x->seg[i].key;
		w->binds++;
		rxfer_key_used(conn, w->number, w->mw->rkey);
	}
}

/* All that are open are being revoked: say of which key. */
static int revoking_already(struct rxfer_exposure *x)
{
	uint32_t i = 0;

	while (x->grant[i].state != RXFER_GRANT_REVOKING)
		i++;
	return rxfer_exposure_revoking(x, i);
}

static int mw_revoke_wrs(struct rxfer_conn *conn, struct rxfer_exposure *x, struct ibv_send_wr *wr)
{
	int n = 0, rc;

	(void)conn;
	for (uint32_t i = 0; i < x->nseg; i++) {
		if (x->grant[i].state != RXFER_GRANT_OPEN)
			continue;
		rc = rxfer_exposure_revoking(x, i);
		if (rc)
			return rc;
		wr[n++] = local_inv(x->seg[i].key);
	}
	return n ? n : revoking_already(x);
}

/* Another window in place of one that has had all its keys; it stays where there is no other. */
static int renew(struct rxfer_conn *conn, struct rxfer_exposure *x, uint32_t i)
{
	struct window *w = &((struct windows *)x->reg_data)->window[i], next;
	int rc = alloc(conn, &next);

	if (rc)
		return rc;
	rc = give_back(conn->dev, w->mw);
	if (rc) {
		ibv_dealloc_mw(next.mw);
		return rc;
	}
	*w = next;
	return rxfer_key_ended(x, i);
}

static int mw_renew(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	const struct windows *ws = x->reg_data;
	int rc = 0, ended = 0;

	for (uint32_t i = 0; rc >= 0 && i < ws->n; i++) {
		if (ws->window[i].binds < RXFER_KEYS - 1)
			continue;
		if (!ended)
			x->open_after = RXFER_NO_SPAN;
		rc = renew(conn, x, i);
		ended |= rc;
	}
	return rc < 0 ? rc : ended;
}

static const struct rxfer_reg_by_wr mw_by_wr = {
	.grant = mw_grant,
	.granted = mw_granted,
	.revoke = mw_revoke_wrs,
	.renew = mw_renew,
};

const struct rxfer_reg_ops rxfer_reg_frwr = {
	.name = "frwr",
	.summary = "a work request lets the peer in for each I/O, another one ends it",
	.engine = "mw",
	.supported = mw_supported,
	.mem_add = mw_mem_add,
	.mem_del = rxfer_reg_mem_drop,
	.open = rxfer_reg_open_nothing,
	.close = rxfer_reg_close_nothing,
	.need = mw_need,
	.map = mw_map,
	.unmap = rxfer_reg_unmap_nothing,
	.revokes = RXFER_REVOKES(SYNC) | RXFER_REVOKES(ASYNC) | RXFER_REVOKES(REMOTE) |
		   RXFER_REVOKES(LAZY),
	.no_revoke =
		{
			[RXFER_REVOKE_NONE] =
				"has one key after the other for the same window, which must be revoked before the next (--revoke sync, async, remote, lazy)",
		},
	.expose_open = mw_expose_open,
	.expose_close = mw_expose_close,
	.expose = mw_expose,
	.replied = rxfer_reg_replied_nothing,
	.cut = rxfer_reg_cut_runs,
	.revoke = mw_revoke,
	.no_map = NO_MAP,
	.on_qp = true,
	.by_wr = &mw_by_wr,
};
