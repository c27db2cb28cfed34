/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libmlx5's part, for devices that are mlx5: mkeys, and queue pairs that take UMRs. What a UMR may
 * have is checked as its driver does: the list inline, pieces by the inline data that the QP was
 * made with, a tag only where there are such.
 */
#include <infiniband/mlx5dv.h>
#include "fake_internal.h"

#define PIECE  16u /* bytes of one in a WR, */
#define HEADER 4u  /* and of these, that need not be asked for */
#define LEAST  4u  /* pieces that each WR has room for */
#define TAG    0xffu

#define MKEY_FLAGS                                                                              \
	(MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE | \
	 MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG)

/* The API's mkey, and ours. */
struct mkey {
	struct mlx5dv_mkey dv;
	struct fake_mkey *mkey;
};

bool mlx5dv_is_supported(struct ibv_device *device)
{
	bool is = false;

	fake_lock();
	for (unsigned int i = 0; i < fake.config.devices; i++)
		is |= &fake.context[i].device == device && fake.config.device[i].mlx5;
	fake_unlock();
	return is;
}

/* ---- mkeys ---- */

static int check_mkey(const struct mlx5dv_mkey_init_attr *attr)
{
	const struct fake_device *d = fake_context(attr->pd->context)->config;
	int err = fake_fault(&fake.config.fail_create_mkey);

	if (err)
		return err;
	if (!d->mlx5 || !(attr->create_flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT) ||
	    attr->create_flags & ~(uint32_t)MKEY_FLAGS)
		return fake_refuse(EOPNOTSUPP, "mlx5dv_create_mkey: no mlx5, or flags %#x",
				   attr->create_flags);
	if (attr->create_flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG && d->mkey_tagless)
		return fake_refuse(EOPNOTSUPP, "mlx5dv_create_mkey: there are no tags");
	return attr->max_entries ? 0 : EINVAL;
}

struct mlx5dv_mkey *mlx5dv_create_mkey(struct mlx5dv_mkey_init_attr *attr)
{
	struct mkey *mkey = NULL;
	int err;

	fake_lock();
	err = check_mkey(attr);
	if (!err)
		mkey = calloc(1, sizeof(*mkey));
	if (mkey) {
		uint32_t flags = attr->create_flags;

		attr->max_entries = (uint16_t)((attr->max_entries + 3) & ~3u);
		mkey->mkey = fake_mkey_make(attr->pd, attr->max_entries,
					    flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE,
					    flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG);
		mkey->dv.lkey = mkey->dv.rkey = mkey->mkey->key;
	}
	fake_unlock();
	errno = err ? err : errno;
	return mkey ? &mkey->dv : NULL;
}

int mlx5dv_destroy_mkey(struct mlx5dv_mkey *dv)
{
	struct mkey *mkey = (struct mkey *)(void *)dv;
	int err;

	fake_lock();
	err = fake_mkey_drop(mkey->mkey);
	fake_unlock();
	if (!err)
		free(mkey);
	return err;
}

/* ---- Queue pairs ---- */

/* struct dv - @verbs first, which the API has. */
struct dv {
	struct mlx5dv_qp_ex verbs;
	struct fake_qp *qp;
};

struct mlx5dv_qp_ex *mlx5dv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *ex)
{
	return &((struct dv *)((struct fake_qp *)(void *)ex)->dv)->verbs;
}

static int check_list(const struct fake_qp *qp, const struct mlx5dv_mkey *dv)
{
	const struct fake_mkey *mkey = ((const struct mkey *)(const void *)dv)->mkey;

	if (!(qp->ex.wr_flags & IBV_SEND_INLINE))
		return fake_refuse(EOPNOTSUPP, "mlx5dv_wr_mr_list: without IBV_SEND_INLINE");
	if (dv->lkey != dv->rkey || (dv->lkey & ~TAG) != (mkey->key & ~TAG))
		return fake_refuse(EINVAL, "mlx5dv_wr_mr_list: keys %#x and %#x of mkey %#x",
				   dv->lkey, dv->rkey, mkey->key);
	if (dv->lkey & TAG && !mkey->tags)
		return fake_refuse(EOPNOTSUPP, "mlx5dv_wr_mr_list: a tag, of an mkey without");
	return 0;
}

static void wr_mr_list(struct mlx5dv_qp_ex *ex, struct mlx5dv_mkey *mkey, uint32_t access,
		       uint16_t n, struct ibv_sge *sge)
{
	struct fake_qp *qp = ((struct dv *)(void *)ex)->qp;
	struct ibv_send_wr *wr;
	int err = check_list(qp, mkey);

	if (err) {
		fake_wr_fail(qp, err);
		return;
	}
	if (qp->scatters)
		fake_violate("an mkey for QP %u, which may write small data into completions",
			     qp->verbs.qp_num);
	wr = fake_wr_add(qp, IBV_WR_DRIVER1);
	wr->bind_mw.rkey = mkey->lkey;
	wr->bind_mw.bind_info.mw_access_flags = access;
	fake_wr_sge(qp, sge, n);
}

static int check_qp(const struct fake_context *c, const struct ibv_qp_init_attr_ex *attr,
		    const struct mlx5dv_qp_init_attr *dv)
{
	const uint32_t needs = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	int err = fake_fault(&fake.config.fail_create_qp);

	if (err)
		return err;
	if (!c->config->mlx5 || (attr->comp_mask & needs) != needs ||
	    !(dv->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS) ||
	    dv->send_ops_flags != MLX5DV_QP_EX_WITH_MR_LIST)
		return fake_refuse(EOPNOTSUPP, "mlx5dv_create_qp: no mlx5, or other than UMRs");
	return 0;
}

/* What is granted of inline data is never less than the room that each WR has. */
static void make_mlx5(struct fake_qp *qp, const struct mlx5dv_qp_init_attr *attr)
{
	struct dv *dv = calloc(1, sizeof(*dv));
	uint32_t pieces = (qp->cap.max_inline_data + HEADER) / PIECE;

	if (!dv)
		abort();
	dv->qp = qp;
	dv->verbs.wr_mr_list = wr_mr_list;
	qp->dv = dv;
	qp->lists = pieces > LEAST ? pieces : LEAST;
	qp->scatters = !(attr->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS) ||
		       !(attr->create_flags & MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE);
	fake_wr_init(qp);
}

struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *ex,
				struct mlx5dv_qp_init_attr *dv)
{
	struct ibv_qp_init_attr attr = {.send_cq = ex->send_cq,
					.recv_cq = ex->recv_cq,
					.cap = ex->cap,
					.qp_type = ex->qp_type};
	struct fake_context *c = fake_context(context);
	struct fake_qp *qp = NULL;
	int err;

	fake_lock();
	err = check_qp(c, ex, dv);
	if (!err)
		err = fake_qp_check_args(c, ex->pd, &attr);
	if (!err)
		qp = fake_qp_make(c, ex->pd, &attr);
	if (qp) {
		make_mlx5(qp, dv);
		ex->cap = qp->cap;
	}
	fake_unlock();
	errno = err ? err : errno;
	return qp ? &qp->verbs : NULL;
}
