/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * per-io: ibv_reg_mr() before each I/O and ibv_dereg_mr() after it, one region for each contiguous
 * run of fragments (a region over the gaps as well would open memory that is not part of the I/O).
 * Nothing stays usable between I/Os; the cost is two system calls a run, and pinning.
 */
#include <errno.h>
#include <stdlib.h>
#include "reg.h"

/* For each I/O of the connection, room for the regions of its runs; io->nrange says how many are
 * live. */
struct per_io {
	uint32_t stride;
	struct ibv_mr *mr[];
};

static int per_io_mem_add(struct rxfer_dev *dev, struct rxfer_mem *mem)
{
	(void)dev;
	(void)mem;
	return 0;
}

static void per_io_mem_del(struct rxfer_dev *dev, struct rxfer_mem *mem)
{
	(void)dev;
	(void)mem;
}

static int per_io_open(struct rxfer_conn *conn)
{
	uint32_t stride = conn->attr.shape.frags;
	struct per_io *p = calloc(1, sizeof(*p) + (size_t)conn->nio * stride * sizeof(p->mr[0]));

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

static struct ibv_mr **regions_of(struct rxfer_conn *conn, const struct rxfer_io *io)
{
	struct per_io *p = conn->reg_data;

	return p->mr + (size_t)io->index * p->stride;
}

static int per_io_unmap(struct rxfer_conn *conn, struct rxfer_io *io)
{
	struct ibv_mr **mr = regions_of(conn, io);
	int rc = 0, this;

	while (io->nrange) {
		this = rxfer_dev_dereg_mr(conn->dev, mr[--io->nrange]);
		if (this)
			rc = this;
	}
	return rc;
}

static int per_io_map(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *frag,
		      uint32_t n)
{
	struct ibv_mr **mr = regions_of(conn, io);
	uint32_t runs = rxfer_reg_runs(frag, n, io->range);

	for (io->nrange = 0; io->nrange < runs; io->nrange++) {
		struct rxfer_seg *r = &io->range[io->nrange];
		int rc = rxfer_dev_reg_mr(conn->dev, (void *)(uintptr_t)r->addr, r->len,
					  IBV_ACCESS_LOCAL_WRITE, &mr[io->nrange]);

		if (rc) {
			per_io_unmap(conn, io);
			return rc;
		}
		r->key = mr[io->nrange]->lkey;
	}
	return 0;
}

const struct rxfer_reg_ops rxfer_reg_per_io = {
	.name = "per-io",
	.summary = "ibv_reg_mr before and ibv_dereg_mr after each I/O",
	.engine = "",
	.supported = rxfer_reg_always,
	.mem_add = per_io_mem_add,
	.mem_del = per_io_mem_del,
	.open = per_io_open,
	.close = per_io_close,
	.need = rxfer_reg_need_nothing,
	.map = per_io_map,
	.unmap = per_io_unmap,
};
