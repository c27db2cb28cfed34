/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registration strategies: one file each, behind one ops table. How to add one: CONTRIBUTING.md.
 */
#ifndef RXFER_REG_H
#define RXFER_REG_H

#include "internal.h"

/*
 * struct rxfer_need - SQEs that a strategy adds to an I/O's own data WRs, in its worst case.
 * @at_submit: in the post that starts the I/O (grants)
 * @later:     afterwards (revokes)
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
 * @copies:     map copies what an I/O sends into memory of the strategy's own, and what a READ
 * brings is copied out by unmap: whatever its fragments are, it is one range. Likewise an exposure,
 * which is one segment.
 * @supported:  0, or -EOPNOTSUPP with rxfer_fail() wording the reason
 * @dev_close:  NULL; or: free dev->reg_data. All memory and connections of the device are gone; it
 * may be NULL
 * @mem_add:    memory was declared with RXFER_LOCAL or RXFER_EXPOSE_*; @mem_del: it goes
 * @memory:     NULL; or bytes that open allocates for such a connection's I/Os, which are pinned
 * @forget:     NULL: it keeps no registration of an I/O for another one; or see rxfer_mem_forget(),
 * of which this is the part in @mem
 * @open:       make pools, outside the timed path; @close: undo; all I/Os were unmapped before
 * @need:       see above
 * @map:        hot. Make an I/O's local fragments usable: fill io->range[0..io->nrange) and return
 * 0, or -errno with nothing left mapped.
 * @unmap:      hot. The transfer is proven done (io->moved); undo map. Also called for I/Os that
 * were not posted, or that a broken connection leaves behind: then it is not. Returns 0 or -errno.
 * @revokes:    how it can take a key from the peer again: RXFER_REVOKES() of enum rxfer_revoke, of
 * one mode at least
 * @no_revoke:  for each other mode but AUTO, why not, to be read behind its name
 * @expose_open: make what an exposure needs, outside the timed path; @expose_close: undo, and
 * revoke what is open still. Then no peer can reach it any more: the QP may be gone.
 * @expose:     hot. Let the peer reach an I/O's fragments, with these rights and no more: fill
 * x->seg[0..x->nseg) (rxfer_reg_cut() does all but the keys) and return 0, or -errno with nothing
 * left exposed. Nothing is open in @x before.
 * @revoke:     hot. Take the keys back of which x->open are open; 0 or -errno, see rxfer_revoke().
 * @replied:    hot. The peer has replied, and is done with what @x exposes: bring the bytes to
 * where they belong, let go of what only the I/O needed. Revoking comes after it. 0 or -errno.
 * @cut:        fill @x with the segments that expose would, but expose nothing: only the keys may
 * be other ones
 * @keys_vary:  with RXFER_REVOKE_NONE, too, an exposure's keys may be others in each I/O
 * @no_map:     NULL; or why it cannot make local memory usable, to be read behind its name
 * @prefetch:   NULL; or, of one whose memory is paged on demand: 0 where its device takes advice
 * about pages, else -EOPNOTSUPP, worded. Where conn->prefetch is set, map and expose give it.
 * @open_sink:  NULL: where READs bring their bytes is registered for an I/O, or is no memory of the
 * caller's; or what lies open for longer where the peer must be allowed to write there (iWARP), to
 * be read behind its name
 * @no_rounds:  NULL; or why not where an I/O goes in rounds, likewise
 * @gathers:    map makes one range of all fragments, whose addresses are no memory's. It may put
 * WRs of its own in front of the data: they count in io->front, and in need
 * @on_qp:      a key that the peer is given is good on its own QP alone
 * @by_wr:      NULL; or what it does by WRs, see there
 * @create_qp:  NULL: rdma_create_qp() makes its QPs. Else make one in the state RESET, as the id's:
 * 0; -EMSGSIZE, with rxfer_fail() wording it, where it is the shape of the I/Os that the device has
 * no room for; else -errno as the device says it
 * @post:       NULL: ibv_post_send() posts. Else it does, with the same arguments, and takes WRs
 * that the strategy alone knows among them; it posts once, and takes all of a chain or nothing
 *
 * A key's grant is entered when it becomes valid, by rxfer_exposure_granted(); before its revoke
 * rxfer_exposure_revoking() says whether that may be, and rxfer_exposure_proven() enters that it is
 * dead. Where the device does it at a call, as it registers memory, all is in expose and revoke.
 * Where it takes WRs, expose only chooses the keys, and it is a post that grants and revokes, and a
 * completion that proves: see struct rxfer_reg_by_wr.
 */
struct rxfer_reg_ops {
	const char *name;
	const char *summary;
	const char *engine;
	uint32_t sge_per_wr;
	bool keys_only;
	bool copies;
	int (*supported)(const struct rxfer_dev *dev);
	void (*dev_close)(struct rxfer_dev *dev);
	int (*mem_add)(struct rxfer_dev *dev, struct rxfer_mem *mem);
	void (*mem_del)(struct rxfer_dev *dev, struct rxfer_mem *mem);
	uint64_t (*memory)(const struct rxfer_conn_attr *attr);
	int (*forget)(struct rxfer_dev *dev, const struct rxfer_mem *mem, const void *addr,
		      size_t len);
	int (*open)(struct rxfer_conn *conn);
	void (*close)(struct rxfer_conn *conn);
	struct rxfer_need (*need)(const struct rxfer_shape *shape, enum rxfer_revoke revoke);
	int (*map)(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *frag,
		   uint32_t n);
	int (*unmap)(struct rxfer_conn *conn, struct rxfer_io *io);
	unsigned int revokes;
	const char *no_revoke[RXFER_REVOKE_AUTO];
	int (*expose_open)(struct rxfer_conn *conn, struct rxfer_exposure *x);
	void (*expose_close)(struct rxfer_conn *conn, struct rxfer_exposure *x);
	int (*expose)(struct rxfer_conn *conn, struct rxfer_exposure *x,
		      const struct rxfer_frag *frag, uint32_t n, unsigned int rights);
	int (*replied)(struct rxfer_conn *conn, struct rxfer_exposure *x);
	int (*revoke)(struct rxfer_conn *conn, struct rxfer_exposure *x);
	int (*cut)(struct rxfer_conn *conn, struct rxfer_exposure *x, const struct rxfer_frag *frag,
		   uint32_t n, unsigned int rights);
	bool keys_vary;
	const char *no_map;
	int (*prefetch)(struct rxfer_dev *dev);
	const char *open_sink;
	const char *no_rounds;
	bool gathers;
	bool on_qp;
	const struct rxfer_reg_by_wr *by_wr;
	int (*create_qp)(struct rxfer_conn *conn, struct ibv_qp_init_attr *attr);
	int (*post)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
};

/**
 * struct rxfer_reg_by_wr - what is different where a key is granted and revoked by WRs. keys.c
 * knows when.
 * @grant:   hot. Write the WRs of an I/O's exposure, lazy revokes first, and return how many; at
 * most need.at_submit. May be called again, where it did not come to a post.
 * @granted: hot. The device took them.
 * @revoke:  hot. Write a WR for each key that is open, and return how many; or -errno, with nothing
 * under way.
 * @renew:   see rxfer_exposure_renew()
 */
struct rxfer_reg_by_wr {
	uint32_t (*grant)(struct rxfer_conn *conn, struct rxfer_exposure *x,
			  struct ibv_send_wr *wr);
	void (*granted)(struct rxfer_conn *conn, struct rxfer_exposure *x);
	int (*revoke)(struct rxfer_conn *conn, struct rxfer_exposure *x, struct ibv_send_wr *wr);
	int (*renew)(struct rxfer_conn *conn, struct rxfer_exposure *x);
};

#define RXFER_REVOKES(mode) (1u << RXFER_REVOKE_##mode)

/* Of a strategy whose memory lies open from mem_add on. */
#define RXFER_REG_LIES_OPEN \
	"has no key of its own for each I/O: its memory lies open all the time (--revoke none)"
#define RXFER_REG_OPEN_SINK                                                                        \
	"registers memory whole: over iWARP what READs fill would lie open to the peer's writes, " \
	"all of it, all the time (--unsafe-global-sink allows it)"
#define RXFER_REG_REVOKES_NOTHING                                                            \
	.revokes = RXFER_REVOKES(NONE),                                                      \
	.no_revoke = {NULL, RXFER_REG_LIES_OPEN, RXFER_REG_LIES_OPEN, RXFER_REG_LIES_OPEN,   \
		      RXFER_REG_LIES_OPEN},                                                  \
	.expose_open = rxfer_reg_expose_nothing, .expose_close = rxfer_reg_unexpose_nothing, \
	.revoke = rxfer_reg_revoke_refused

/** rxfer_reg_find() - by name; NULL and rxfer_error() (with the nearest) where there is none. */
const struct rxfer_reg_ops *rxfer_reg_find(const char *name);

/* Parts that several strategies share. */
int rxfer_reg_always(const struct rxfer_dev *dev);
int rxfer_reg_mem_whole(struct rxfer_dev *dev, struct rxfer_mem *mem);
void rxfer_reg_mem_drop(struct rxfer_dev *dev, struct rxfer_mem *mem);
int rxfer_reg_mem_nothing(struct rxfer_dev *dev, struct rxfer_mem *mem);
void rxfer_reg_mem_del_nothing(struct rxfer_dev *dev, struct rxfer_mem *mem);
int rxfer_reg_open_nothing(struct rxfer_conn *conn);
void rxfer_reg_close_nothing(struct rxfer_conn *conn);
struct rxfer_need rxfer_reg_need_nothing(const struct rxfer_shape *shape, enum rxfer_revoke revoke);
int rxfer_reg_unmap_nothing(struct rxfer_conn *conn, struct rxfer_io *io);

int rxfer_reg_expose_nothing(struct rxfer_conn *conn, struct rxfer_exposure *x);
void rxfer_reg_unexpose_nothing(struct rxfer_conn *conn, struct rxfer_exposure *x);
int rxfer_reg_revoke_refused(struct rxfer_conn *conn, struct rxfer_exposure *x);
int rxfer_reg_replied_nothing(struct rxfer_conn *conn, struct rxfer_exposure *x);

/*
 * expose.c: one segment per fragment, or with @merge per run of fragments that adjoin in one
 * declared memory. The keys are those of memory that is registered whole, 0 for other. Returns 0;
 * -EINVAL, -EFAULT or -EACCES with x->nseg as it was, which is 0 in expose.
 */
int rxfer_reg_cut(struct rxfer_conn *conn, struct rxfer_exposure *x, const struct rxfer_frag *frag,
		  uint32_t n, unsigned int rights, bool merge);

/* The same with @merge; for ops.cut. */
int rxfer_reg_cut_runs(struct rxfer_conn *conn, struct rxfer_exposure *x,
		       const struct rxfer_frag *frag, uint32_t n, unsigned int rights);

/* expose.c: the i-th segment's key is valid; may it be revoked; that failed; it is dead, proven. */
void rxfer_exposure_granted(struct rxfer_conn *conn, struct rxfer_exposure *x, uint32_t i);
int rxfer_exposure_revoking(struct rxfer_exposure *x, uint32_t i);
void rxfer_exposure_kept(struct rxfer_exposure *x, uint32_t i);
int rxfer_exposure_proven(struct rxfer_exposure *x, uint32_t i, uint64_t now);
/* Likewise of what the I/O before exposed, under RXFER_REVOKE_LAZY. */
int rxfer_exposure_was_proven(struct rxfer_exposure *x, uint32_t i, uint64_t now);

/*
 * keys.c, for strategies whose keys come back after some time: what is known of a key's number, its
 * upper 24 bits (NULL without memory); the key is in use from now on, in conn->exposed_ios. What
 * was under the i-th key of @x is over, without a WR: the device has let go of it, and nobody can
 * reach it any more; returns RXFER_REVOKED where something was open, 0, or -errno.
 */
struct rxfer_number *rxfer_key_number(struct rxfer_conn *conn, uint32_t key);
void rxfer_key_used(struct rxfer_conn *conn, struct rxfer_number *number, uint32_t key);
int rxfer_key_ended(struct rxfer_exposure *x, uint32_t i);
void rxfer_key_buried(struct rxfer_exposure *x, uint32_t i);

#define RXFER_KEYS 256 /* of a number */

/* One range per fragment, under the keys of memory that is registered whole; or per run of
 * fragments that adjoin. */
int rxfer_reg_map_whole(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *frag,
			uint32_t n);
int rxfer_reg_map_runs(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *frag,
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
