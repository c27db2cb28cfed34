/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What mlx5 has beyond verbs, as far as registration by work requests needs it: keys to lists of
 * pieces (mkeys), WRs that give them their list (UMR, user-mode memory registration), and queue
 * pairs that take such WRs. umr.c has it where there is libmlx5; else umr_none.c says that there is
 * none.
 */
#ifndef RXFER_UMR_H
#define RXFER_UMR_H

#include "internal.h"

struct mlx5dv_mkey;

/*
 * struct rxfer_umr - an mkey: memory that is registered, in pieces, looks under it as if it lay in
 * a row from address 0 on. One and the same key for this end and the peer.
 * @tags:   the lower 8 bits of its key can be others with each list; else they are 0
 * @set:    the device took a list;
 * @key:    that of the latest
 * @access: of the list to come, IBV_ACCESS_*
 * @n, @max, @sge: its pieces
 */
struct rxfer_umr {
	struct mlx5dv_mkey *mkey;
	bool tags, set;
	uint32_t key;
	unsigned int access;
	uint32_t n, max;
	struct ibv_sge sge[];
};

/** rxfer_umr_supported() - 0; or -EOPNOTSUPP with the reason: by making what it takes, and moving
 * bytes by it. */
int rxfer_umr_supported(const struct rxfer_dev *dev);

/** rxfer_umr_new() - room for @max pieces. @peer_revokes: a message of the peer's may. 0; or -errno
 * with rxfer_error(). rxfer_umr_free() - NULL is fine; 0 or -errno with rxfer_error(): then it
 * stays.
 */
int rxfer_umr_new(const struct rxfer_dev *dev, uint32_t max, bool peer_revokes,
		  struct rxfer_umr **out);
int rxfer_umr_free(const struct rxfer_dev *dev, struct rxfer_umr *u);

/* One more piece of the list; there is room for it. Hot. */
static inline void rxfer_umr_add(struct rxfer_umr *u, uint64_t addr, uint32_t len, uint32_t lkey)
{
	u->sge[u->n++] = (struct ibv_sge){addr, len, lkey};
}

/* The WR that has the device take the list, under @key; for rxfer_umr_post() alone. Hot. */
static inline struct ibv_send_wr rxfer_umr_wr(struct rxfer_umr *u, uint32_t key)
{
	return (struct ibv_send_wr){
		.opcode = IBV_WR_DRIVER1,
		.sg_list = u->sge,
		.num_sge = (int)u->n,
		.bind_mw = {.rkey = key,
			    .bind_info = {.addr = (uintptr_t)u, .mw_access_flags = u->access}},
	};
}

/** rxfer_umr_post() - see ops.post in reg.h. */
int rxfer_umr_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/** rxfer_umr_qp() - a QP whose WRs have room for lists of @max pieces; attr->cap becomes what it
 * has. NULL and errno in failure. */
struct ibv_qp *rxfer_umr_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint32_t max);

/* umr_check.c: bytes are moved through a list, there and back, by a QP that is connected to itself.
 * 0; or -EOPNOTSUPP with the reason. */
int rxfer_umr_check(const struct rxfer_dev *dev);

#endif
