/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * multi-wr: as global, but each fragment travels by a WR of its own, as o2iblnd did before fast
 * registration. Its cost is send-queue entries: N is the number of fragments. The peer gets a
 * segment for each, and does likewise.
 */
#include "reg.h"

static int multi_wr_expose(struct rxfer_conn *conn, struct rxfer_exposure *x,
			   const struct rxfer_frag *frag, uint32_t n, unsigned int rights)
{
	return rxfer_reg_cut(conn, x, frag, n, rights, false);
}

const struct rxfer_reg_ops rxfer_reg_multi_wr = {
	.name = "multi-wr",
	.summary = "one region over all memory, made once; one WR per fragment",
	.engine = "",
	.sge_per_wr = 1,
	.keys_only = true,
	.open_sink = RXFER_REG_OPEN_SINK,
	.supported = rxfer_reg_always,
	.mem_add = rxfer_reg_mem_whole,
	.mem_del = rxfer_reg_mem_drop,
	.open = rxfer_reg_open_nothing,
	.close = rxfer_reg_close_nothing,
	.need = rxfer_reg_need_nothing,
	.map = rxfer_reg_map_whole,
	.unmap = rxfer_reg_unmap_nothing,
	.expose = multi_wr_expose,
	.replied = rxfer_reg_replied_nothing,
	.cut = multi_wr_expose,
	RXFER_REG_REVOKES_NOTHING,
};
