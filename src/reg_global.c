/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * global: one memory region over all declared memory, made once. An I/O costs nothing and its
 * fragments are gathered by as few WRs as the device's SGEs allow; everything stays usable all the
 * time, for the peer, too, where it is to be exposed. This is what the kernel's local_dma_lkey and
 * IB_PD_UNSAFE_GLOBAL_RKEY give their users.
 */
#include <errno.h>
#include "reg.h"

static int global_map(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *frag,
		      uint32_t n)
{
	uint32_t runs = rxfer_reg_runs(frag, n, io->range);
	const struct rxfer_mem *mem = &conn->dev->nowhere;

	for (uint32_t i = 0; i < runs; i++) {
		struct rxfer_seg *r = &io->range[i];

		mem = rxfer_reg_holder(conn->dev, mem, (void *)(uintptr_t)r->addr, r->len);
		if (!mem)
			return rxfer_fail(
				EFAULT,
				"memory at %#llx, %u bytes, was not declared by rxfer_mem_add()",
				(unsigned long long)r->addr, r->len);
		r->key = mem->lkey;
	}
	io->nrange = runs;
	return 0;
}

const struct rxfer_reg_ops rxfer_reg_global = {
	.name = "global",
	.summary = "one region over all memory, made once; fragments gathered by SGEs",
	.engine = "",
	.keys_only = true,
	.supported = rxfer_reg_always,
	.mem_add = rxfer_reg_mem_whole,
	.mem_del = rxfer_reg_mem_drop,
	.open = rxfer_reg_open_nothing,
	.close = rxfer_reg_close_nothing,
	.need = rxfer_reg_need_nothing,
	.map = global_map,
	.unmap = rxfer_reg_unmap_nothing,
	.expose = rxfer_reg_cut_runs,
	.replied = rxfer_reg_replied_nothing,
	.cut = rxfer_reg_cut_runs,
	RXFER_REG_REVOKES_NOTHING,
};
