/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The operations by name, for who has no struct rxfer_op at hand. */
#include "rxfer.h"

int rxfer_post_read(struct rxfer_conn *conn, const struct rxfer_frag *local, uint32_t nlocal,
		    const struct rxfer_seg *remote, uint32_t nremote, uint64_t id,
		    unsigned int flags)
{
	return rxfer_post(conn, &(struct rxfer_op){.op = RXFER_READ,
						   .local = local,
						   .nlocal = nlocal,
						   .remote = remote,
						   .nremote = nremote,
						   .id = id,
						   .flags = flags});
}

int rxfer_post_write(struct rxfer_conn *conn, const struct rxfer_frag *local, uint32_t nlocal,
		     const struct rxfer_seg *remote, uint32_t nremote, uint64_t id,
		     unsigned int flags)
{
	return rxfer_post(conn, &(struct rxfer_op){.op = RXFER_WRITE,
						   .local = local,
						   .nlocal = nlocal,
						   .remote = remote,
						   .nremote = nremote,
						   .id = id,
						   .flags = flags});
}

int rxfer_post_write_imm(struct rxfer_conn *conn, const struct rxfer_frag *local, uint32_t nlocal,
			 const struct rxfer_seg *remote, uint32_t nremote, uint32_t imm,
			 uint64_t id, unsigned int flags)
{
	return rxfer_post(conn, &(struct rxfer_op){.op = RXFER_WRITE_IMM,
						   .local = local,
						   .nlocal = nlocal,
						   .remote = remote,
						   .nremote = nremote,
						   .imm = imm,
						   .id = id,
						   .flags = flags});
}

int rxfer_post_send(struct rxfer_conn *conn, const struct rxfer_frag *local, uint32_t nlocal,
		    uint64_t id, unsigned int flags)
{
	return rxfer_post(conn, &(struct rxfer_op){.op = RXFER_SEND,
						   .local = local,
						   .nlocal = nlocal,
						   .id = id,
						   .flags = flags});
}
