/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mlx5's mkeys and the WRs that give them lists.
 *
 * An mkey is made by a call (mlx5dv_create_mkey(3)) and is good for nothing. A UMR, a WR like
 * others (mlx5dv_wr_post(3)), gives it a list of pieces of registered memory and what may be done
 * with them; WRs behind it can use it at once. IBV_WR_LOCAL_INV takes the list away again, as it
 * ends a window. Addresses under an mkey count from 0.
 *
 * A UMR is one of ibv_post_send()'s not. It goes by the other way to post, ibv_wr_start() to
 * ibv_wr_complete(), and so does each chain with one in it, in one post. Both ways may follow each
 * other on one QP (ibv_wr_post(3)): where nothing of ours is in front, ibv_post_send() is as good.
 * Between both, a chain's WR of opcode IBV_WR_DRIVER1 stands for a UMR: it never reaches verbs.
 *
 * The list lies in the WR itself, which the manual calls inline. How many pieces fit in is said
 * when the QP is made, as bytes of inline data; 16 for each, and 4 are there anyhow. The NIC may
 * also write small data of a READ into the completion in place of memory, and cannot where an mkey
 * says which memory that is: the QP is made without (mlx5dv_create_mkey(3), NOTES).
 *
 * The lower 8 bits of a key, its tag, may be others each time, if device and kernel can do that: it
 * is what the struct mlx5dv_mkey has when the UMR is built (rdma-core, 9eabb3fd9, "Allow an
 * application to use the indirect mkey tag"). LOCAL_INV, of the key as it is, sets the tag to 0.
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>
#include "umr.h"

#define PIECE	    16 /* bytes of one in a WR, */
#define HEADER	    4  /* and of these, that need not be asked for */
#define FLAGS_TO_GO (IBV_SEND_SIGNALED | IBV_SEND_FENCE | IBV_SEND_SOLICITED)

/* ---- mkeys ---- */

static struct mlx5dv_mkey *create(const struct rxfer_dev *dev, uint32_t max, bool peer_revokes,
				  bool tags)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = dev->pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
				(tags ? MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG : 0) |
				(peer_revokes ? MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE : 0),
		.max_entries = (uint16_t)max,
	};

	return mlx5dv_create_mkey(&attr);
}

int rxfer_umr_new(const struct rxfer_dev *dev, uint32_t max, bool peer_revokes,
		  struct rxfer_umr **out)
{
	struct rxfer_umr *u = calloc(1, sizeof(*u) + max * sizeof(u->sge[0]));

	if (!u)
		return rxfer_fail(ENOMEM, "out of memory for a key to %s",
				  rxfer_count(max, "piece").s);
	u->max = max;
	u->tags = true;
	u->mkey = create(dev, max, peer_revokes, true);
	if (!u->mkey && errno == EOPNOTSUPP) {
		u->tags = false;
		u->mkey = create(dev, max, peer_revokes, false);
	}
	if (!u->mkey) {
		int err = errno;

		free(u);
		return rxfer_fail(err, "mlx5dv_create_mkey on %s, for %s%s: %s", dev->info.name,
				  rxfer_count(max, "piece").s,
				  peer_revokes ? ", that the peer may revoke" : "", strerror(err));
	}
	u->key = u->mkey->rkey;
	*out = u;
	return 0;
}

int rxfer_umr_free(const struct rxfer_dev *dev, struct rxfer_umr *u)
{
	int rc = u ? mlx5dv_destroy_mkey(u->mkey) : 0;

	if (rc)
		return rxfer_fail(rc, "mlx5dv_destroy_mkey on %s: %s", dev->info.name,
				  strerror(abs(rc)));
	free(u);
	return 0;
}

/* ---- Posting ---- */

static struct rxfer_umr *umr_of(const struct ibv_send_wr *wr)
{
	return (struct rxfer_umr *)(uintptr_t)wr->bind_mw.bind_info.addr;
}

static void put_umr(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	struct mlx5dv_mkey *mkey = umr_of(wr)->mkey;

	mkey->lkey = mkey->rkey = wr->bind_mw.rkey;
	qp->wr_flags |= IBV_SEND_INLINE;
	mlx5dv_wr_mr_list(mlx5dv_qp_ex_from_ibv_qp_ex(qp), mkey,
			  wr->bind_mw.bind_info.mw_access_flags, (uint16_t)wr->num_sge,
			  wr->sg_list);
}

/* Of several pieces none goes inline: they are registered, too. */
static void put_data(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_sge *sge = wr->sg_list;

	if (wr->send_flags & IBV_SEND_INLINE && wr->num_sge == 1)
		ibv_wr_set_inline_data(qp, (void *)(uintptr_t)sge->addr, sge->length);
	else
		ibv_wr_set_sge_list(qp, (size_t)wr->num_sge, sge);
}

static void put(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	uint64_t addr = wr->wr.rdma.remote_addr;
	uint32_t key = wr->wr.rdma.rkey;

	qp->wr_id = wr->wr_id;
	qp->wr_flags = wr->send_flags & FLAGS_TO_GO;
	switch (wr->opcode) {
	case IBV_WR_DRIVER1:
		put_umr(qp, wr);
		return;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(qp, wr->invalidate_rkey);
		return;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, key, addr);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, key, addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, key, addr, wr->imm_data);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qp, wr->invalidate_rkey);
		break;
	default:
		ibv_wr_send(qp); /* the engine posts nothing else */
		break;
	}
	put_data(qp, wr);
}

static void note(struct rxfer_umr *u, uint32_t key)
{
	u->set = true;
	u->key = key;
}

int rxfer_umr_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);
	int rc;

	ibv_wr_start(qpx);
	for (const struct ibv_send_wr *p = wr; p; p = p->next)
		put(qpx, p);
	rc = ibv_wr_complete(qpx);
	if (rc) {
		*bad = wr;
		return rc;
	}
	for (const struct ibv_send_wr *p = wr; p; p = p->next)
		if (p->opcode == IBV_WR_DRIVER1)
			note(umr_of(p), p->bind_mw.rkey);
	return 0;
}

/* ---- Queue pairs ---- */

static uint32_t inline_bytes(uint32_t pieces, uint32_t data)
{
	uint32_t list = PIECE * pieces - HEADER;

	return list > data ? list : data;
}

struct ibv_qp *rxfer_umr_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint32_t max)
{
	struct ibv_qp_init_attr_ex ex = {
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				  IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV |
				  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_LOCAL_INV,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS |
			     MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
		.send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST,
	};
	struct ibv_qp *qp;

	ex.cap.max_inline_data = inline_bytes(max, attr->cap.max_inline_data);
	qp = mlx5dv_create_qp(pd->context, &ex, &dv);
	if (qp)
		attr->cap = ex.cap;
	return qp;
}

/* ---- Devices ---- */

int rxfer_umr_supported(const struct rxfer_dev *dev)
{
	if (!mlx5dv_is_supported(dev->verbs->device))
		return rxfer_fail(EOPNOTSUPP,
				  "frwr-umr takes mkeys of mlx5, and %s is another driver's",
				  dev->info.name);
	return rxfer_umr_check(dev);
}
