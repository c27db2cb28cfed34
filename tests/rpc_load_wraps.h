/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The engine's calls that prop_rpc_load.c wraps (ld --wrap). */
#ifndef RXFER_TESTS_RPC_LOAD_WRAPS_H
#define RXFER_TESTS_RPC_LOAD_WRAPS_H

#include "rxfer.h"

int __real_rxfer_poll(struct rxfer_conn *conn, struct rxfer_done *done, int max);
int __wrap_rxfer_poll(struct rxfer_conn *conn, struct rxfer_done *done, int max);
int __real_rxfer_post_recv(struct rxfer_conn *conn, void *addr, uint32_t len, uint64_t id);
int __wrap_rxfer_post_recv(struct rxfer_conn *conn, void *addr, uint32_t len, uint64_t id);
int __real_rxfer_post_held(struct rxfer_conn *conn, const struct rxfer_op *op, uint32_t *held,
			   uint32_t keep);
int __wrap_rxfer_post_held(struct rxfer_conn *conn, const struct rxfer_op *op, uint32_t *held,
			   uint32_t keep);
int __real_rxfer_prepare(struct rxfer_conn *conn, const struct rxfer_op *op,
			 struct rxfer_prepared **out);
int __wrap_rxfer_prepare(struct rxfer_conn *conn, const struct rxfer_op *op,
			 struct rxfer_prepared **out);
int __real_rxfer_post_prepared_held(struct rxfer_prepared *p, uint32_t imm, uint64_t id,
				    unsigned int flags, uint32_t *held, uint32_t keep);
int __wrap_rxfer_post_prepared_held(struct rxfer_prepared *p, uint32_t imm, uint64_t id,
				    unsigned int flags, uint32_t *held, uint32_t keep);
int __real_rxfer_post_prepared_to(struct rxfer_prepared *p, const struct rxfer_seg *remote,
				  uint32_t imm, uint64_t id, unsigned int flags, uint32_t *held,
				  uint32_t keep);
int __wrap_rxfer_post_prepared_to(struct rxfer_prepared *p, const struct rxfer_seg *remote,
				  uint32_t imm, uint64_t id, unsigned int flags, uint32_t *held,
				  uint32_t keep);
int __real_rxfer_post_prepared_two(struct rxfer_prepared *data, const struct rxfer_seg *remote,
				   struct rxfer_prepared *last, uint32_t imm, uint64_t id,
				   unsigned int flags, uint32_t *held);
int __wrap_rxfer_post_prepared_two(struct rxfer_prepared *data, const struct rxfer_seg *remote,
				   struct rxfer_prepared *last, uint32_t imm, uint64_t id,
				   unsigned int flags, uint32_t *held);
int __real_rxfer_revoke(struct rxfer_conn *conn, struct rxfer_exposure *x);
int __wrap_rxfer_revoke(struct rxfer_conn *conn, struct rxfer_exposure *x);
int __real_rxfer_revoke_held(struct rxfer_conn *conn, struct rxfer_exposure *x,
			     const struct rxfer_revoking *how);
int __wrap_rxfer_revoke_held(struct rxfer_conn *conn, struct rxfer_exposure *x,
			     const struct rxfer_revoking *how);

#endif
