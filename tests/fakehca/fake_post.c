/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Posting: what a driver looks at before it rings the doorbell. Keys are not among it: they are the
 * NIC's to check, when it gets there.
 */
#include "fake_internal.h"

static bool is_rdma(enum ibv_wr_opcode op)
{
	return op == IBV_WR_RDMA_READ || op == IBV_WR_RDMA_WRITE ||
	       op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool with_imm(enum ibv_wr_opcode op)
{
	return op == IBV_WR_RDMA_WRITE_WITH_IMM || op == IBV_WR_SEND_WITH_IMM;
}

static bool known(enum ibv_wr_opcode op)
{
	return is_rdma(op) || op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM ||
	       op == IBV_WR_SEND_WITH_INV || op == IBV_WR_BIND_MW || op == IBV_WR_LOCAL_INV;
}

/* It comes by a batch alone, with its list for SGEs. */
static int check_umr(const struct fake_qp *qp, const struct ibv_send_wr *wr)
{
	if (!qp->batch)
		return fake_refuse(EINVAL, "ibv_post_send: opcode %d", wr->opcode);
	if (wr->num_sge < 1 || (uint32_t)wr->num_sge > qp->lists)
		return fake_refuse(ENOMEM, "mlx5dv_wr_mr_list: %d pieces, the QP has room for %u",
				   wr->num_sge, qp->lists);
	return 0;
}

/* Lengths of a list, summed up; an SGE of 0 bytes is a violation. */
static uint64_t total(const struct ibv_sge *sge, int n, const char *what)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++) {
		if (sge[i].length == 0)
			fake_violate("%s: SGE %d of %d has length 0", what, i, n);
		sum += sge[i].length;
	}
	return sum;
}

static int check_opcode(const struct fake_qp *qp, const struct ibv_send_wr *wr)
{
	const struct fake_device *d = qp->context->config;

	if (wr->opcode == IBV_WR_DRIVER1)
		return check_umr(qp, wr);
	if (!known(wr->opcode))
		return fake_refuse(EINVAL, "ibv_post_send: opcode %d", wr->opcode);
	if (d->iwarp && with_imm(wr->opcode))
		return fake_refuse(EINVAL, "ibv_post_send: iWARP has no immediate data");
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge)
		return fake_refuse(EINVAL, "ibv_post_send: %d SGEs, the QP has %u", wr->num_sge,
				   qp->cap.max_send_sge);
	if (wr->opcode == IBV_WR_RDMA_READ && (uint32_t)wr->num_sge > d->max_sge_rd)
		return fake_refuse(EINVAL, "ibv_post_send: a READ of %d SGEs, max_sge_rd %u",
				   wr->num_sge, d->max_sge_rd);
	return fake_mw_check_post(qp, wr);
}

static int check_length(const struct fake_qp *qp, const struct ibv_send_wr *wr, uint64_t len)
{
	const struct fake_device *d = qp->context->config;

	if (len > d->max_msg_size)
		return fake_refuse(EINVAL, "ibv_post_send: %llu bytes, max_msg_sz %u",
				   (unsigned long long)len, d->max_msg_size);
	if (!(wr->send_flags & IBV_SEND_INLINE))
		return 0;
	if (wr->opcode == IBV_WR_RDMA_READ)
		return fake_refuse(EINVAL, "ibv_post_send: an inline READ");
	if (len > qp->cap.max_inline_data)
		return fake_refuse(EINVAL, "ibv_post_send: %llu bytes inline, the QP has %u",
				   (unsigned long long)len, qp->cap.max_inline_data);
	return 0;
}

/* @ahead: WRs that are to be queued before it. */
static int check_send(const struct fake_qp *qp, const struct ibv_send_wr *wr, uint32_t ahead,
		      uint64_t *len)
{
	int err;

	if (qp->verbs.state != IBV_QPS_RTS && qp->verbs.state != IBV_QPS_ERR)
		return fake_refuse(EINVAL, "ibv_post_send: QP %u is in state %d", qp->verbs.qp_num,
				   qp->verbs.state);
	err = check_opcode(qp, wr);
	if (err)
		return err;
	*len = total(wr->sg_list, wr->num_sge, "ibv_post_send");
	err = check_length(qp, wr, *len);
	if (err)
		return err;
	if (qp->head - qp->tail + ahead == qp->sq_size)
		return fake_refuse(ENOMEM,
				   "ibv_post_send: all %u send entries of QP %u are in use: no "
				   "completion that returns one has been polled",
				   qp->sq_size, qp->verbs.qp_num);
	return 0;
}

/* The bytes go with the WR, and its memory is free at once. */
static void copy_inline(struct fake_sqe *sqe, const struct ibv_send_wr *wr)
{
	uint8_t *to = sqe->inline_data;

	for (int i = 0; i < wr->num_sge; i++) {
		memcpy(to, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
}

static void copy_list(struct fake_sqe *sqe, const struct ibv_send_wr *wr)
{
	size_t bytes = (size_t)wr->num_sge * sizeof(*sqe->list);

	sqe->list = malloc(bytes);
	if (!sqe->list)
		abort();
	memcpy(sqe->list, wr->sg_list, bytes);
	sqe->nlist = (uint32_t)wr->num_sge;
	for (uint32_t i = 0; i < sqe->nlist; i++)
		fake_mr_use(sqe->list[i].lkey, false, 1);
	sqe->nsge = 0;
	sqe->len = 0;
	sqe->bind.new_key = wr->bind_mw.rkey;
	sqe->bind.access = wr->bind_mw.bind_info.mw_access_flags;
}

static void copy_sges(struct fake_sqe *sqe, const struct ibv_send_wr *wr)
{
	for (int i = 0; i < wr->num_sge; i++) {
		sqe->sge[i] = wr->sg_list[i];
		fake_mr_use(sqe->sge[i].lkey, false, 1);
	}
}

static void queue_send(struct fake_qp *qp, const struct ibv_send_wr *wr, uint64_t len)
{
	struct fake_sqe *sqe = fake_sqe(qp, qp->head);
	struct ibv_sge *sge = sqe->sge;
	uint8_t *inline_data = sqe->inline_data;

	*sqe = (struct fake_sqe){
		.wr_id = wr->wr_id,
		.len = len,
		.sge = sge,
		.inline_data = inline_data,
		.nsge = (uint32_t)wr->num_sge,
		.opcode = wr->opcode,
		.flags = wr->send_flags,
		.silent = !qp->sig_all && !(wr->send_flags & IBV_SEND_SIGNALED),
	};
	if (with_imm(wr->opcode))
		sqe->imm = wr->imm_data;
	fake_mw_queue(sqe, wr);
	if (is_rdma(wr->opcode)) {
		sqe->remote_addr = wr->wr.rdma.remote_addr;
		sqe->rkey = fake_qp_reachable(qp) ? wr->wr.rdma.rkey : 0;
		fake_mr_use(sqe->rkey, true, 1);
	}
	if (wr->opcode == IBV_WR_DRIVER1)
		copy_list(sqe, wr);
	else if (wr->send_flags & IBV_SEND_INLINE)
		copy_inline(sqe, wr);
	else
		copy_sges(sqe, wr);
	qp->head++;
	if (qp->sq_peak < qp->head - qp->tail)
		qp->sq_peak = (uint32_t)(qp->head - qp->tail);
}

/* How many WRs this post may take, and with what it then fails: UINT32_MAX and 0, as a rule. */
static int told_to_fail(uint32_t *most)
{
	int err = fake_fault(&fake.config.fail_post_send);

	*most = err ? 0 : UINT32_MAX;
	if (err || fake.config.post_part.nth == 0 || --fake.config.post_part.nth)
		return err;
	*most = fake.config.post_part.take;
	return fake_refuse(fake.config.post_part.err, "told to take %u WRs", *most);
}

int fake_post_send(struct ibv_qp *verbs, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)(void *)verbs;
	uint32_t taken = 0, most;
	uint64_t len = 0;
	int err = 0, then;

	fake_lock();
	then = told_to_fail(&most);
	for (; wr && !err; wr = err ? wr : wr->next) {
		err = taken == most ? then : check_send(qp, wr, 0, &len);
		if (!err) {
			queue_send(qp, wr, len);
			taken++;
		}
	}
	if (err)
		*bad = wr;
	fake.stats.posts += taken > 0;
	fake.stats.sqes += taken;
	if (verbs->state == IBV_QPS_ERR)
		fake_qp_fail(qp);
	fake_unlock();
	return fake.config.negative_errno ? -err : err;
}

/* A batch, which is never taken in part. */
int fake_post_all(struct fake_qp *qp, struct ibv_send_wr *wr)
{
	uint32_t none, n = 0;
	uint64_t len = 0;
	int err = told_to_fail(&none);

	for (const struct ibv_send_wr *p = wr; p && !err; p = p->next)
		err = check_send(qp, p, n++, &len);
	for (; wr && !err; wr = wr->next) {
		check_send(qp, wr, 0, &len);
		queue_send(qp, wr, len);
	}
	if (err)
		return err;
	fake.stats.posts += n > 0;
	fake.stats.sqes += n;
	if (qp->verbs.state == IBV_QPS_ERR)
		fake_qp_fail(qp);
	return 0;
}

/* ---- RECVs ---- */

static int check_recv(const struct fake_qp *qp, const struct ibv_recv_wr *wr)
{
	int err = fake_fault(&fake.config.fail_post_recv);

	if (err)
		return err;
	if (qp->verbs.state == IBV_QPS_RESET)
		return fake_refuse(EINVAL, "ibv_post_recv: QP %u is in state RESET",
				   qp->verbs.qp_num);
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_recv_sge)
		return fake_refuse(EINVAL, "ibv_post_recv: %d SGEs, the QP has %u", wr->num_sge,
				   qp->cap.max_recv_sge);
	if (qp->rq_head - qp->rq_tail == qp->cap.max_recv_wr)
		return fake_refuse(ENOMEM, "ibv_post_recv: all %u receive entries are in use",
				   qp->cap.max_recv_wr);
	return 0;
}

static void queue_recv(struct fake_qp *qp, const struct ibv_recv_wr *wr)
{
	struct fake_rqe *rqe = fake_rqe(qp, qp->rq_head);
	uint32_t most = qp->context->config->max_msg_size;
	struct ibv_sge *sge = rqe->sge;

	*rqe = (struct fake_rqe){.wr_id = wr->wr_id, .sge = sge, .nsge = (uint32_t)wr->num_sge};
	rqe->len = total(wr->sg_list, wr->num_sge, "ibv_post_recv");
	for (int i = 0; i < wr->num_sge; i++) {
		sge[i] = wr->sg_list[i];
		fake_mr_use(sge[i].lkey, false, 1);
		if (sge[i].length > most)
			fake_violate("ibv_post_recv: SGE %d has length %u, max_msg_sz %u", i,
				     sge[i].length, most);
	}
	qp->rq_head++;
	fake.stats.recvs++;
}

int fake_post_recv(struct ibv_qp *verbs, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)(void *)verbs;
	int err = 0;

	fake_lock();
	for (; wr; wr = wr->next) {
		err = check_recv(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
		queue_recv(qp, wr);
	}
	if (verbs->state == IBV_QPS_ERR)
		fake_qp_fail(qp);
	fake_unlock();
	return fake.config.negative_errno ? -err : err;
}
