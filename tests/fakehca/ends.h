/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two connected ends in bare verbs, for tests of the double itself: each has a PD, a CQ with a
 * channel, a QP and one registered buffer. All of it asserts; nothing returns an error that a test
 * does not ask for.
 */
#ifndef FAKE_ENDS_H
#define FAKE_ENDS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "fakehca.h"

#define ENDS_BYTES 16384

struct end {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_qp_cap cap; /* as granted */
	uint8_t *buf;	       /* ENDS_BYTES, all of it in @mr */
};

/* struct ends_attr - @cq: entries; 0: as many as both queues have. @access: of both buffers. */
struct ends_attr {
	uint32_t sq, rq, cq, sge, inline_data;
	int access;
	uint8_t rd_atomic, rnr_retry;
	bool sig_all;
};

struct ends {
	struct ibv_context **devices;
	struct end a, b; /* a connects, b listens */
	struct rdma_cm_id *listener;
};

/** ends_config() - the double's defaults; ends_defaults() - queues of 8, all rights, patience 0. */
struct fake_config ends_config(void);
struct ends_attr ends_defaults(void);

/** ends_almost() - start the double; a has a route and a QP, b listens. NULL: the defaults. */
void ends_almost(struct ends *e, const struct fake_config *config, const struct ends_attr *attr);

/** ends_open() - the same, and connect. */
void ends_open(struct ends *e, const struct fake_config *config, const struct ends_attr *attr);

/** ends_close() - in good order; then nothing is left, and there were @violations. */
void ends_close(struct ends *e, unsigned int violations);

/* Parts of the above, for who connects himself. end_id() is bound to the device's address. */
void end_make(struct end *end, struct ibv_context *verbs, const struct ends_attr *attr);
int end_make_qp(struct end *end, const struct ends_attr *attr);
void end_drop(struct end *end);
struct rdma_cm_id *ends_listen(struct end *end, struct sockaddr_storage *addr);
void ends_resolve(struct end *end, const struct sockaddr_storage *to);

/** ends_event() - the next event there is of this type; acknowledged. Its id. */
struct rdma_cm_id *ends_event(struct end *end, enum rdma_cm_event_type type);

/** end_post() - one WR of @len bytes at @at of either buffer; SENDs have no other end. */
int end_post(struct end *from, const struct end *to, enum ibv_wr_opcode op, uint64_t wr_id,
	     unsigned int flags, uint64_t at, uint32_t len);
int end_recv(struct end *end, uint64_t wr_id, uint64_t at, uint32_t len);

/** end_poll() - one completion, if there is one. end_expect() - it must be this one. */
bool end_poll(struct end *end, struct ibv_wc *wc);
struct ibv_wc end_expect(struct end *end, uint64_t wr_id, enum ibv_wc_status status);
void end_expect_nothing(struct end *end);

/** ends_violated() - the latest violation has these words. ends_refused() - the latest refusal. */
void ends_violated(const char *words);
void ends_refused(const char *words);

#endif
