/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registration strategies: one file each, behind one ops table. How to add one: CONTRIBUTING.md.
 */
#ifndef RXFER_REG_H
#define RXFER_REG_H

#include "internal.h"

/*
 * struct rxfer_need - SQEs that a strategy adds to an I/O's own data WRs, in its worst case.
 * @at_submit: in the post that starts the I/O
 * @later:     afterwards (a revoke)
 */
struct rxfer_need {
	uint32_t at_submit;
	uint32_t later;
};

/**
 * struct rxfer_reg_ops - one registration strategy. All members are mandatory unless it says
 * otherwise.
 * @name, @summary: as the user types it; one line for help
 * @engine:     the mechanism, where there could be several; else ""
 * @sge_per_wr: fragments of one WR; 0: as many as the device takes
 * @keys_only:  memory is registered whole by mem_add; map only looks up its keys, and unmap does
 * nothing. Then the engine may keep what map answered while no memory goes, and leave out unmap.
 * @supported:  0, or -EOPNOTSUPP with rxfer_fail() wording the reason
 * @mem_add:    memory was declared with RXFER_LOCAL; @mem_del: it goes
 * @open:       make pools, outside the timed path; @close: undo; all I/Os were unmapped before
 * @need:       see above
 * @map:        hot. Make an I/O's local fragments usable: fill io->range[0..io->nrange) and return
 * 0, or -errno with nothing left mapped.
 * @unmap:      hot. The transfer is proven done; undo map. Also called for I/Os that a broken
 * connection leaves behind. Returns 0 or -errno.
 */
struct rxfer_reg_ops {
	const char *name;
	const char *summary;
	const char *engine;
	uint32_t sge_per_wr;
	bool keys_only;
	int (*supported)(const struct rxfer_dev *dev);
	int (*mem_add)(struct rxfer_dev *dev, struct rxfer_mem *mem);
	void (*mem_del)(struct rxfer_dev *dev, struct rxfer_mem *mem);
	int (*open)(struct rxfer_conn *conn);
	void (*close)(struct rxfer_conn *conn);
	struct rxfer_need (*need)(const struct rxfer_dev *dev, const struct rxfer_shape *shape);
	int (*map)(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *frag,
		   uint32_t n);
	int (*unmap)(struct rxfer_conn *conn, struct rxfer_io *io);
};

/** rxfer_reg_find() - by name; NULL and rxfer_error() (with the nearest) where there is none. */
const struct rxfer_reg_ops *rxfer_reg_find(const char *name);

/* Parts that several strategies share. */
int rxfer_reg_always(const struct rxfer_dev *dev);
int rxfer_reg_mem_whole(struct rxfer_dev *dev, struct rxfer_mem *mem);
void rxfer_reg_mem_drop(struct rxfer_dev *dev, struct rxfer_mem *mem);
int rxfer_reg_open_nothing(struct rxfer_conn *conn);
void rxfer_reg_close_nothing(struct rxfer_conn *conn);
struct rxfer_need rxfer_reg_need_nothing(const struct rxfer_dev *dev,
					 const struct rxfer_shape *shape);
int rxfer_reg_unmap_nothing(struct rxfer_conn *conn, struct rxfer_io *io);

/* One range per fragment, under the keys of memory that is registered whole. */
int rxfer_reg_map_whole(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *frag,
			uint32_t n);

/* The memory that is registered whole and holds all of it: @mem if that does; NULL for none. Hot.
 */
static inline const struct rxfer_mem *
rxfer_reg_holder(struct rxfer_dev *dev, const struct rxfer_mem *mem, const void *addr, uint32_t len)
{
	if (rxfer_mem_holds(mem, addr, len))
		return mem;
	mem = rxfer_mem_find(dev, addr, len);
	return mem && mem->mr ? mem : NULL;
}

/* Fragments that adjoin become one range; fills addr and len only. Returns how many ranges. Hot. */
static inline uint32_t rxfer_reg_runs(const struct rxfer_frag *frag, uint32_t n,
				      struct rxfer_seg *run)
{
	struct rxfer_seg *last = run - 1;
	uint64_t end = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = (uintptr_t)frag[i].addr;
		uint32_t len = frag[i].len;

		if (i && addr == end)
			last->len += len;
		else
			*++last = (struct rxfer_seg){.addr = addr, .len = len};
		end = addr + len;
	}
	return (uint32_t)(last - run) + 1;
}

#endif
