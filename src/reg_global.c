/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * global: one memory region over all declared memory, made once. An I/O costs nothing and its
 * fragments are gathered by as few WRs as the device's SGEs allow; everything stays usable all the
 * time, for the peer, too, where it is to be exposed. This is what the kernel's local_dma_lkey and
 * IB_PD_UNSAFE_GLOBAL_RKEY give their users.
 */
#include "reg.h"

const struct rxfer_reg_ops rxfer_reg_global = {
	.name = "global",
	.summary = "one region over all memory, made once; fragments gathered by SGEs",
	.engine = "",
	.keys_only = true,
	.open_sink = RXFER_REG_OPEN_SINK,
	.supported = rxfer_reg_always,
	.mem_add = rxfer_reg_mem_whole,
	.mem_del = rxfer_reg_mem_drop,
	.open = rxfer_reg_open_nothing,
	.close = rxfer_reg_close_nothing,
	.need = rxfer_reg_need_nothing,
	.map = rxfer_reg_map_runs,
	.unmap = rxfer_reg_unmap_nothing,
	.expose = rxfer_reg_cut_runs,
	.replied = rxfer_reg_replied_nothing,
	.cut = rxfer_reg_cut_runs,
	RXFER_REG_REVOKES_NOTHING,
};
