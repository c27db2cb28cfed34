/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs: making, states, and what comes back when a completion is polled.
 *
 * A send-queue entry is free again when a completion of it, or of a later one, has been polled, and
 * not a moment earlier: that is all that a driver can see of how far its NIC has read. Then, too,
 * the sources of all WRs so proven are hashed again: had one changed since it left, a
 * retransmission would have sent something else, and the owner was told too early.
 */
#include "fake_internal.h"

/* ---- Making ---- */

static void release(struct fake_object *object)
{
	struct fake_qp *qp = FAKE_OF(object, struct fake_qp);

	fake_wr_destroy(qp);
	free(qp->dv);
	free(qp->sq);
	free(qp->sq_sge);
	free(qp->sq_inline);
	free(qp->rq);
	free(qp->rq_sge);
	free(qp);
}

static bool too_much(const struct fake_device *d, const struct ibv_qp_cap *cap)
{
	return cap->max_send_wr > d->max_qp_wr || cap->max_recv_wr > d->max_qp_wr ||
	       cap->max_send_sge > d->max_sge || cap->max_recv_sge > d->max_sge ||
	       cap->max_inline_data > d->max_inline;
}

int fake_qp_check_args(const struct fake_context *c, const struct ibv_pd *pd,
		       const struct ibv_qp_init_attr *attr)
{
	const struct ibv_context *verbs = &c->verbs.context;
	const struct ibv_qp_cap *cap = &attr->cap;
	const struct fake_device *d = c->config;

	if (attr->qp_type != IBV_QPT_RC || attr->srq)
		return fake_refuse(EINVAL, "rdma_create_qp: not a plain RC one");
	if (!pd || !attr->send_cq || !attr->recv_cq)
		return fake_refuse(EINVAL, "rdma_create_qp: no PD or no CQ");
	if (pd->context != verbs || attr->send_cq->context != verbs ||
	    attr->recv_cq->context != verbs)
		return fake_refuse(EINVAL, "rdma_create_qp: PD or CQ of another device");
	if (too_much(d, cap) || cap->max_send_wr == 0)
		return fake_refuse(EINVAL,
				   "rdma_create_qp: %u send and %u receive entries of %u and %u "
				   "SGEs, %u bytes inline: above the device's limits",
				   cap->max_send_wr, cap->max_recv_wr, cap->max_send_sge,
				   cap->max_recv_sge, cap->max_inline_data);
	if (c->qps >= d->max_qp)
		return fake_refuse(ENOMEM, "rdma_create_qp: %u QPs of %u", c->qps, d->max_qp);
	if (d->sq_room && cap->max_send_wr > d->sq_room)
		return fake_refuse(ENOMEM, "rdma_create_qp: room for %u send entries", d->sq_room);
	return 0;
}

static int check_args(struct fake_id *id, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	int err = fake_fault(&fake.config.fail_create_qp);

	if (err)
		return err;
	if (!id->context || id->verbs.qp)
		return fake_refuse(EINVAL, "rdma_create_qp: no device yet, or a QP already");
	return fake_qp_check_args(id->context, pd, attr);
}

/* Of the promise and the truth the smaller: fake_config.sq_real. */
static uint32_t entries_of(const struct ibv_qp_cap *granted)
{
	uint32_t real = fake.config.sq_real;

	return real && real < granted->max_send_wr ? real : granted->max_send_wr;
}

static struct fake_qp *new_qp(const struct ibv_qp_cap *asked)
{
	struct fake_qp *qp = calloc(1, sizeof(*qp));

	if (!qp)
		return NULL;
	qp->cap = *asked;
	qp->cap.max_send_wr += fake.config.sq_extra;
	qp->sq_size = entries_of(&qp->cap);
	qp->rq_size = qp->cap.max_recv_wr ? qp->cap.max_recv_wr : 1;
	qp->sq = calloc(qp->sq_size, sizeof(*qp->sq));
	qp->sq_sge = calloc((size_t)qp->sq_size * (qp->cap.max_send_sge + 1), sizeof(*qp->sq_sge));
	qp->sq_inline = calloc(qp->sq_size, qp->cap.max_inline_data + 1);
	qp->rq = calloc(qp->rq_size, sizeof(*qp->rq));
	qp->rq_sge = calloc((size_t)qp->rq_size * (qp->cap.max_recv_sge + 1), sizeof(*qp->rq_sge));
	fake_object_add(&qp->object, FAKE_QP, release);
	if (qp->sq && qp->sq_sge && qp->sq_inline && qp->rq && qp->rq_sge)
		return qp;
	fake_object_del(&qp->object);
	return NULL;
}

static void wire_up(struct fake_qp *qp, struct fake_context *c, struct ibv_pd *pd,
		    const struct ibv_qp_init_attr *attr)
{
	for (uint32_t i = 0; i < qp->sq_size; i++) {
		qp->sq[i].sge = qp->sq_sge + (size_t)i * (qp->cap.max_send_sge + 1);
		qp->sq[i].inline_data = qp->sq_inline + (size_t)i * (qp->cap.max_inline_data + 1);
	}
	for (uint32_t i = 0; i < qp->rq_size; i++)
		qp->rq[i].sge = qp->rq_sge + (size_t)i * (qp->cap.max_recv_sge + 1);
	qp->context = c;
	qp->pd = (struct fake_pd *)(void *)pd;
	qp->send_cq = (struct fake_cq *)(void *)attr->send_cq;
	qp->recv_cq = (struct fake_cq *)(void *)attr->recv_cq;
	qp->sig_all = attr->sq_sig_all;
	qp->verbs = (struct ibv_qp){
		.context = &c->verbs.context,
		.qp_context = attr->qp_context,
		.pd = pd,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.qp_num = ++fake.qp_numbers,
		.state = IBV_QPS_RESET,
		.qp_type = IBV_QPT_RC,
	};
	qp->pd->users++;
	qp->send_cq->users++;
	qp->recv_cq->users++;
	qp->context->qps++;
}

/* In the state RESET, and nobody's. */
struct fake_qp *fake_qp_make(struct fake_context *c, struct ibv_pd *pd,
			     const struct ibv_qp_init_attr *attr)
{
	struct fake_qp *qp = new_qp(&attr->cap);

	if (qp)
		wire_up(qp, c, pd, attr);
	return qp;
}

static void give_to(struct fake_id *id, struct fake_qp *qp)
{
	const struct fake_device *d = id->context->config;

	qp->id = id;
	qp->verbs.state = IBV_QPS_INIT;
	if (id->remote_ece.vendor_id == d->ece_vendor)
		qp->ece_options = id->remote_ece.options & d->ece_options;
	id->verbs.qp = &qp->verbs;
}

int rdma_create_qp(struct rdma_cm_id *verbs, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct fake_id *id = (struct fake_id *)(void *)verbs;
	struct fake_qp *qp = NULL;
	int err;

	fake_lock();
	err = check_args(id, pd, attr);
	if (!err) {
		qp = fake_qp_make(id->context, pd, attr);
		err = qp ? 0 : ENOMEM;
	}
	if (qp) {
		give_to(id, qp);
		attr->cap = qp->cap;
	}
	fake_unlock();
	errno = err ? err : errno;
	return err ? -1 : 0;
}

static void destroy(struct fake_qp *qp)
{
	fake_qp_retire_sq(qp, qp->head - 1, false);
	fake_qp_retire_rq(qp, qp->rq_head - 1);
	fake_async_forget(qp->context, qp, qp->unacked);
	fake_cq_forget(qp->send_cq, qp);
	fake_cq_forget(qp->recv_cq, qp);
	fake_mw_forget_qp(qp);
	if (qp->peer) {
		fake_qp_cut_off(qp->peer);
		qp->peer->peer = NULL;
	}
	qp->pd->users--;
	qp->send_cq->users--;
	qp->recv_cq->users--;
	qp->context->qps--;
	fake_object_del(&qp->object);
}

void rdma_destroy_qp(struct rdma_cm_id *verbs)
{
	fake_lock();
	destroy((struct fake_qp *)(void *)verbs->qp);
	verbs->qp = NULL;
	((struct fake_id *)(void *)verbs)->used = NULL;
	fake_unlock();
}

int ibv_destroy_qp(struct ibv_qp *verbs)
{
	fake_lock();
	destroy((struct fake_qp *)(void *)verbs);
	fake_unlock();
	return 0;
}

int ibv_query_qp(struct ibv_qp *verbs, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	const struct fake_qp *qp = (const struct fake_qp *)(const void *)verbs;

	int err;

	(void)mask;
	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	fake_lock();
	err = fake_fault(&fake.config.fail_query_qp);
	attr->ah_attr.sl = qp->sl & (uint8_t)qp->context->config->sl_told;
	attr->qp_access_flags = qp->access;
	attr->qp_state = attr->cur_qp_state = qp->verbs.state;
	attr->max_rd_atomic = (uint8_t)qp->rd_atomic;
	attr->max_dest_rd_atomic = (uint8_t)qp->peer_rd_atomic;
	attr->rnr_retry = qp->rnr_retry;
	attr->cap = init->cap = qp->cap;
	init->send_cq = qp->verbs.send_cq;
	init->recv_cq = qp->verbs.recv_cq;
	init->qp_type = IBV_QPT_RC;
	fake_unlock();
	return err;
}

/* ---- Entries that come back ---- */

void fake_sqe_let_go(struct fake_sqe *sqe)
{
	fake_mr_use(sqe->rkey, true, -1);
	fake_mr_use(sqe->bind.lkey, false, -1);
	for (uint32_t i = 0; i < sqe->nlist; i++)
		fake_mr_use(sqe->list[i].lkey, false, -1);
	free(sqe->list);
	sqe->list = NULL;
	sqe->nlist = 0;
	sqe->rkey = sqe->bind.lkey = 0;
}

static void let_go_local(const struct ibv_sge *sge, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		fake_mr_use(sge[i].lkey, false, -1);
}

/* Where a region is gone, its memory may be, too: that was recorded already. */
static void check_source(const struct fake_qp *qp, const struct fake_sqe *sqe)
{
	if (!sqe->hashed)
		return;
	for (uint32_t i = 0; i < sqe->nsge; i++)
		if (!fake_lkey_allows(sqe->sge[i].lkey, qp->verbs.pd, sqe->sge[i].addr,
				      sqe->sge[i].length, 0))
			return;
	if (fake_hash_source(qp, sqe) == sqe->hash)
		return;
	fake_violate("the source of WR %#llx (QP %u) changed after it was delivered and before a "
		     "completion proved it: the buffer was reused unproven",
		     (unsigned long long)sqe->wr_id, qp->verbs.qp_num);
}

/* All SQEs up to @seq are free. @proven: by a completion of success. */
void fake_qp_retire_sq(struct fake_qp *qp, uint64_t seq, bool proven)
{
	for (; qp->tail != seq + 1; qp->tail++) {
		struct fake_sqe *sqe = fake_sqe(qp, qp->tail);

		if (proven)
			check_source(qp, sqe);
		if (!(sqe->flags & IBV_SEND_INLINE))
			let_go_local(sqe->sge, sqe->nsge);
		if (qp->tail >= qp->done) /* the QP is destroyed */
			fake_sqe_let_go(sqe);
	}
}

/* What @qp names at its peer is out of its reach for good. */
void fake_qp_cut_off(struct fake_qp *qp)
{
	for (uint64_t seq = qp->done; seq != qp->head; seq++) {
		fake_mr_use(fake_sqe(qp, seq)->rkey, true, -1);
		fake_sqe(qp, seq)->rkey = 0;
	}
}

void fake_qp_retire_rq(struct fake_qp *qp, uint64_t seq)
{
	for (; qp->rq_tail != seq + 1; qp->rq_tail++) {
		const struct fake_rqe *rqe = fake_rqe(qp, qp->rq_tail);

		let_go_local(rqe->sge, rqe->nsge);
	}
}

/* ---- Tests' hands on it ---- */

uint32_t fake_sq_posted(const struct ibv_qp *verbs)
{
	const struct fake_qp *qp = (const struct fake_qp *)(const void *)verbs;

	return (uint32_t)(qp->head - qp->tail);
}

uint32_t fake_sq_peak(const struct ibv_qp *verbs)
{
	return ((const struct fake_qp *)(const void *)verbs)->sq_peak;
}

uint32_t fake_rq_posted(const struct ibv_qp *verbs)
{
	const struct fake_qp *qp = (const struct fake_qp *)(const void *)verbs;

	return (uint32_t)(qp->rq_head - qp->rq_next);
}

void fake_set_rd_atomic(struct ibv_qp *verbs, uint32_t rd_atomic)
{
	fake_lock();
	((struct fake_qp *)(void *)verbs)->rd_atomic = rd_atomic;
	fake_unlock();
}

void fake_unplug(struct ibv_qp *verbs)
{
	fake_lock();
	((struct fake_qp *)(void *)verbs)->unplugged = true;
	fake_unlock();
}
