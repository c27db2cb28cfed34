/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * per-io: ibv_reg_mr() before each I/O and ibv_dereg_mr() after it, one region for each contiguous
 * run of fragments (a region over the gaps as well would open memory that is not part of the I/O).
 * Nothing stays usable between I/Os; the cost is two system calls a run, and pinning.
 */
#include <errno.h>
#include <stdlib.h>
#include "reg.h"

/* A region of a run. @grant: open while the peer has a right in it: READs over iWARP. */
struct region {
	struct ibv_mr *mr;
	struct rxfer_grant grant;
};

/* For each I/O of the connection, room for the regions of its runs; io->nrange says how many are
 * live. */
struct per_io {
	uint32_t stride;
	struct region region[];
};

static int per_io_open(struct rxfer_conn *conn)
{
	uint32_t stride = conn->attr.shape.frags;
	struct per_io *p =
		calloc(1, sizeof(*p) + (size_t)conn->nio * stride * sizeof(p->region[0]));

	if (!p)
		return rxfer_fail(ENOMEM, "out of memory for the regions of %s",
				  rxfer_count(conn->nio, "I/O").s);
	p->stride = stride;
	conn->reg_data = p;
	return 0;
}

static void per_io_close(struct rxfer_conn *conn)
{
	free(conn->reg_data);
	conn->reg_data = NULL;
}

static struct region *regions_of(struct rxfer_conn *conn, const struct rxfer_io *io)
{
	struct per_io *p = conn->reg_data;

	return p->region + (size_t)io->index * p->stride;
}

static int drop(struct rxfer_conn *conn, struct region *r)
{
	uint32_t key = r->mr->rkey;
	int rc = rxfer_dev_dereg_mr(conn->dev, r->mr);
	uint64_t none;

	if (!rc && r->grant.state == RXFER_GRANT_OPEN)
		rc = rxfer_grant_proven(&r->grant, key, rxfer_now(), &none);
	return rc;
}

static int per_io_unmap(struct rxfer_conn *conn, struct rxfer_io *io)
{
	struct region *region = regions_of(conn, io);
	int rc = 0, this;

	while (io->nrange) {
		this = drop(conn, &region[--io->nrange]);
		if (this)
			rc = this;
	}
	return rc;
}

static int make(struct rxfer_conn *conn, const struct rxfer_seg *run, int access, struct region *r)
{
	int rc =
		rxfer_dev_reg_mr(conn->dev, (void *)(uintptr_t)run->addr, run->len, access, &r->mr);

	if (rc || !(access & IBV_ACCESS_REMOTE_WRITE))
		return rc;
	rc = rxfer_grant_open(&conn->ledger, &r->grant, r->mr->rkey, run->len, rxfer_now());
	if (rc)
		rxfer_dev_dereg_mr(conn->dev, r->mr);
	return rc;
}

static int per_io_map(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *frag,
		      uint32_t n)
{
	struct region *region = regions_of(conn, io);
	uint32_t runs = rxfer_reg_runs(frag, n, io->range);
	int access = io->done.op == RXFER_READ ? rxfer_sink_access(conn->dev)
					       : IBV_ACCESS_LOCAL_WRITE;

	for (io->nrange = 0; io->nrange < runs; io->nrange++) {
		struct rxfer_seg *r = &io->range[io->nrange];
		int rc = make(conn, r, access, &region[io->nrange]);

		if (rc) {
			per_io_unmap(conn, io);
			return rc;
		}
		r->key = region[io->nrange].mr->lkey;
	}
	return 0;
}

/* ---- The peer's side: one region for each segment, in x->reg_data ---- */

static int per_io_expose_open(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	(void)conn;
	x->reg_data = calloc(x->max, sizeof(struct ibv_mr *));
	if (!x->reg_data)
		return rxfer_fail(ENOMEM, "out of memory for the regions of %s",
				  rxfer_count(x->max, "fragment").s);
	return 0;
}

static int revoke_one(struct rxfer_conn *conn, struct rxfer_exposure *x, uint32_t i)
{
	struct ibv_mr **mr = x->reg_data;
	int rc = rxfer_exposure_revoking(x, i);

	if (rc)
		return rc;
	rc = rxfer_dev_dereg_mr(conn->dev, mr[i]);
	if (rc) {
		rxfer_exposure_kept(x, i);
		return rc;
	}
	return rxfer_exposure_proven(x, i, rxfer_now());
}

/* All that are open, also behind one that the device keeps. */
static int per_io_revoke(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	int rc = 0, this;

	for (uint32_t i = x->nseg; i--;) {
		if (x->grant[i].state != RXFER_GRANT_OPEN)
			continue;
		this = revoke_one(conn, x, i);
		if (this)
			rc = this;
	}
	return rc;
}

static void per_io_expose_close(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	per_io_revoke(conn, x);
	free(x->reg_data);
}

static int per_io_expose(struct rxfer_conn *conn, struct rxfer_exposure *x,
			 const struct rxfer_frag *frag, uint32_t n, unsigned int rights)
{
	int access = rxfer_peer_access(rights);
	struct ibv_mr **mr = x->reg_data;
	int rc = rxfer_reg_cut(conn, x, frag, n, rights, true);

	for (uint32_t i = 0; !rc && i < x->nseg; i++) {
		struct rxfer_seg *s = &x->seg[i];

		rc = rxfer_dev_reg_mr(conn->dev, (void *)(uintptr_t)s->addr, s->len, access,
				      &mr[i]);
		if (rc)
			break;
		s->key = mr[i]->rkey;
		rxfer_exposure_granted(conn, x, i);
	}
	if (rc)
		per_io_revoke(conn, x);
	return rc;
}

const struct rxfer_reg_ops rxfer_reg_per_io = {
	.name = "per-io",
	.summary = "ibv_reg_mr before and ibv_dereg_mr after each I/O",
	.engine = "",
	.supported = rxfer_reg_always,
	.mem_add = rxfer_reg_mem_nothing,
	.mem_del = rxfer_reg_mem_del_nothing,
	.open = per_io_open,
	.close = per_io_close,
	.need = rxfer_reg_need_nothing,
	.map = per_io_map,
	.unmap = per_io_unmap,
	.revokes = RXFER_REVOKES(SYNC) | RXFER_REVOKES(ASYNC),
	.no_revoke =
		{
			[RXFER_REVOKE_NONE] =
				"registers the memory of each I/O anew, and must deregister it (--revoke sync, async)",
			[RXFER_REVOKE_REMOTE] =
				"exposes memory regions, and a peer's message revokes memory windows only (--revoke sync, async)",
			[RXFER_REVOKE_LAZY] =
				"has no key that is used again, and so would never revoke (--revoke sync, async)",
		},
	.expose_open = per_io_expose_open,
	.expose_close = per_io_expose_close,
	.expose = per_io_expose,
	.replied = rxfer_reg_replied_nothing,
	.cut = rxfer_reg_cut_runs,
	.revoke = per_io_revoke,
};
