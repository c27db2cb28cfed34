/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Built without libmlx5: no device is supported, and so nothing else of it is ever called. */
#include <errno.h>
#include "umr.h"

int rxfer_umr_supported(const struct rxfer_dev *dev)
{
	(void)dev;
	return rxfer_fail(
		EOPNOTSUPP,
		"frwr-umr takes mkeys of mlx5, and this program was built without libmlx5 (configure --with-mlx5)");
}

int rxfer_umr_new(const struct rxfer_dev *dev, uint32_t max, bool peer_revokes,
		  struct rxfer_umr **out)
{
	(void)max;
	(void)peer_revokes;
	(void)out;
	return rxfer_umr_supported(dev);
}

int rxfer_umr_free(const struct rxfer_dev *dev, struct rxfer_umr *u)
{
	(void)u;
	return rxfer_umr_supported(dev);
}

int rxfer_umr_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	*bad = wr;
	return EOPNOTSUPP;
}

struct ibv_qp *rxfer_umr_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint32_t max)
{
	(void)pd;
	(void)attr;
	(void)max;
	errno = EOPNOTSUPP;
	return NULL;
}
