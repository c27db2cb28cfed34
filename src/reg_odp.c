/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * odp, odp-implicit: as global, but registered for on-demand paging. Nothing is pinned: the device
 * asks the kernel for a page when it comes to use it, and again after the kernel has taken it away
 * (by swap, migration, munmap). Registering costs next to nothing, however much memory it is. The
 * price comes later, as faults of the device in the middle of I/Os, which nobody sees but the
 * clock.
 *
 *	odp		one region for each declared memory
 *	odp-implicit	one region over the whole address space of the process, present and
 *			future: a peer that has the key can reach all there is, stacks, heaps
 *			and keys of cryptography included
 *
 * All that lies open lies open all the time, as with global. The implicit region has rights for the
 * peer only once memory is declared with them, and just these: one region for each set of rights.
 *
 * With --odp-prefetch io the pages of each I/O are asked for before it, by a system call that
 * returns when the device has them (IBV_ADVISE_MR_FLAG_FLUSH). That is no promise that they stay.
 *
 * Faults are counted by some drivers: see faults.c.
 *
 * What is relied on beyond ibv_reg_mr(3), where address NULL and length SIZE_MAX mean implicit:
 * such a region may have remote rights. mlx5 gives the keys that it makes below it, piece by piece
 * as they are used, the access of the region (drivers/infiniband/hw/mlx5/odp.c). rxe has none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "reg.h"

/* ---- Can it? ---- */

/* What our I/Os do with memory that goes by the strategy. RECVs do not: theirs is RXFER_FIXED. */
static const struct {
	uint32_t cap;
	const char *name;
} operations[] = {
	{IBV_ODP_SUPPORT_SEND, "SEND"},
	{IBV_ODP_SUPPORT_READ, "READ"},
	{IBV_ODP_SUPPORT_WRITE, "WRITE"},
};

static int query(const struct rxfer_dev *dev, struct ibv_odp_caps *caps)
{
	struct ibv_device_attr_ex attr = {0};
	int err = ibv_query_device_ex(dev->verbs, NULL, &attr);

	if (err)
		return rxfer_fail(err, "device %s does not answer: ibv_query_device_ex: %s",
				  dev->info.name, strerror(abs(err)));
	*caps = attr.odp_caps;
	if (!(caps->general_caps & IBV_ODP_SUPPORT))
		return rxfer_fail(
			EOPNOTSUPP,
			"%s has no on-demand paging (odp_caps.general_caps %#llx; rxe has it in newer kernels only, iWARP never)",
			dev->info.name, (unsigned long long)caps->general_caps);
	return 0;
}

static int odp_supported(const struct rxfer_dev *dev)
{
	struct ibv_odp_caps caps;
	int rc = query(dev, &caps);

	for (size_t i = 0; !rc && i < sizeof(operations) / sizeof(operations[0]); i++)
		if (!(caps.per_transport_caps.rc_odp_caps & operations[i].cap))
			rc = rxfer_fail(
				EOPNOTSUPP,
				"%s has on-demand paging, but not for a %s of a reliable connection (rc_odp_caps %#x)",
				dev->info.name, operations[i].name,
				caps.per_transport_caps.rc_odp_caps);
	return rc;
}

static int implicit_supported(const struct rxfer_dev *dev)
{
	struct ibv_odp_caps caps;
	int rc = odp_supported(dev);

	if (!rc)
		rc = query(dev, &caps);
	if (!rc && !(caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT))
		rc = rxfer_fail(
			EOPNOTSUPP,
			"%s has on-demand paging, but no region over all of the address space (odp_caps.general_caps %#llx)",
			dev->info.name, (unsigned long long)caps.general_caps);
	return rc;
}

/* ---- Memory ---- */

static int odp_mem_add(struct rxfer_dev *dev, struct rxfer_mem *mem)
{
	(void)dev;
	return rxfer_mem_register_on_demand(mem, false);
}

/* Other memory under the same implicit region as @mem is, or is to be; NULL: none. */
static struct rxfer_mem *sharer(struct rxfer_dev *dev, const struct rxfer_mem *mem)
{
	int access = rxfer_peer_access(mem->rights);
	struct rxfer_mem *m = dev->mems;

	while (m && !(m != mem && m->mr && m->mr->length == SIZE_MAX &&
		      rxfer_peer_access(m->rights) == access))
		m = m->next;
	return m;
}

static int implicit_mem_add(struct rxfer_dev *dev, struct rxfer_mem *mem)
{
	const struct rxfer_mem *other = sharer(dev, mem);

	if (!other)
		return rxfer_mem_register_on_demand(mem, true);
	mem->mr = other->mr;
	mem->on_demand = true;
	return 0;
}

/* The last one ends the region; before, its grant is another's to keep. */
static void implicit_mem_del(struct rxfer_dev *dev, struct rxfer_mem *mem)
{
	struct rxfer_mem *other = sharer(dev, mem);

	if (!other)
		rxfer_mem_unregister(mem);
	else if (mem->grant.ledger)
		other->grant = mem->grant;
}

/* ---- Prefetching ---- */

static int advise(struct rxfer_dev *dev, struct ibv_sge *sge, uint32_t n, bool write)
{
	enum ibv_advise_mr_advice advice = write ? IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE
						 : IBV_ADVISE_MR_ADVICE_PREFETCH;

	return abs(ibv_advise_mr(dev->pd, advice, IBV_ADVISE_MR_FLAG_FLUSH, sge, n));
}

#define BATCH 64 /* pieces in one call */

/* The pages of these pieces, all in declared memory. @write: the device will write them. */
static int prefetch(struct rxfer_conn *conn, const struct rxfer_seg *seg, uint32_t n, bool write)
{
	const struct rxfer_mem *mem = &conn->dev->nowhere;
	struct ibv_sge sge[BATCH];
	int err = 0;

	for (uint32_t i = 0; !err && i < n; i++) {
		mem = rxfer_reg_holder(conn->dev, mem, (void *)(uintptr_t)seg[i].addr, seg[i].len);
		sge[i % BATCH] = (struct ibv_sge){seg[i].addr, seg[i].len, mem->lkey};
		if (i + 1 == n || i % BATCH == BATCH - 1)
			err = advise(conn->dev, sge, i % BATCH + 1, write);
	}
	if (!err)
		return 0;
	return rxfer_fail(err, "ibv_advise_mr on %s: %s: it could not bring in the pages of an I/O",
			  conn->dev->info.name, strerror(err));
}

/* By asking for a page of our own: there is no other way to know. */
static int odp_prefetch(struct rxfer_dev *dev)
{
	char byte = 0;
	struct rxfer_mem *mem;
	struct ibv_sge sge;
	int rc = rxfer_mem_add(dev, &byte, sizeof(byte), RXFER_LOCAL, &mem);

	if (rc)
		return rc;
	sge = (struct ibv_sge){(uintptr_t)&byte, sizeof(byte), mem->lkey};
	rc = advise(dev, &sge, 1, true);
	rxfer_mem_del(mem);
	if (!rc)
		return 0;
	return rxfer_fail(
		EOPNOTSUPP,
		"%s, or its library, takes no advice about pages (ibv_advise_mr: %s): there is no prefetching (--odp-prefetch off)",
		dev->info.name, strerror(rc));
}

static int odp_map(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *frag,
		   uint32_t n)
{
	int rc = rxfer_reg_map_runs(conn, io, frag, n);

	if (rc || !conn->prefetch)
		return rc;
	rc = prefetch(conn, io->range, io->nrange, io->done.op == RXFER_READ);
	if (rc)
		io->nrange = 0;
	return rc;
}

static int odp_expose(struct rxfer_conn *conn, struct rxfer_exposure *x,
		      const struct rxfer_frag *frag, uint32_t n, unsigned int rights)
{
	int rc = rxfer_reg_cut_runs(conn, x, frag, n, rights);

	if (rc || !conn->prefetch)
		return rc;
	return prefetch(conn, x->seg, x->nseg, rights & RXFER_EXPOSE_WRITE);
}

#define ON_DEMAND                                                                              \
	.keys_only = true, .open = rxfer_reg_open_nothing, .close = rxfer_reg_close_nothing,   \
	.need = rxfer_reg_need_nothing, .map = odp_map, .unmap = rxfer_reg_unmap_nothing,      \
	.expose = odp_expose, .replied = rxfer_reg_replied_nothing, .cut = rxfer_reg_cut_runs, \
	.prefetch = odp_prefetch, RXFER_REG_REVOKES_NOTHING

const struct rxfer_reg_ops rxfer_reg_odp = {
	.name = "odp",
	.summary = "as global, but paged in when the device uses it; nothing is pinned",
	.engine = "explicit",
	.supported = odp_supported,
	.mem_add = odp_mem_add,
	.mem_del = rxfer_reg_mem_drop,
	ON_DEMAND,
};

const struct rxfer_reg_ops rxfer_reg_odp_implicit = {
	.name = "odp-implicit",
	.summary = "likewise, one region over the whole address space of the process",
	.engine = "implicit",
	.supported = implicit_supported,
	.mem_add = implicit_mem_add,
	.mem_del = implicit_mem_del,
	ON_DEMAND,
};
