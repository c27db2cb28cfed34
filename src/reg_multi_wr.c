/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * multi-wr: as global, but each fragment travels by a WR of its own, as o2iblnd did before fast
 * registration. Its cost is send-queue entries: N is the number of fragments.
 */
#include "reg.h"

const struct rxfer_reg_ops rxfer_reg_multi_wr = {
	.name = "multi-wr",
	.summary = "one region over all memory, made once; one WR per fragment",
	.engine = "",
	.sge_per_wr = 1,
	.keys_only = true,
	.supported = rxfer_reg_always,
	.mem_add = rxfer_reg_mem_whole,
	.mem_del = rxfer_reg_mem_drop,
	.open = rxfer_reg_open_nothing,
	.close = rxfer_reg_close_nothing,
	.need = rxfer_reg_need_nothing,
	.map = rxfer_reg_map_whole,
	.unmap = rxfer_reg_unmap_nothing,
};
