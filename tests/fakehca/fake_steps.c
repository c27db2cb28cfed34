/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The states of a queue pair whose user takes the steps himself: its id has no QP (he hid it), and
 * rdma_cm only tells what to fill in.
 *
 * What each step must name is as in the InfiniBand specification; what rdma_cm fills in, and when
 * it can, is as in the kernel: the rights of the peer once there is a request, and the way to it
 * once there is an answer, or one to be given. The side that answers is told what the other one
 * offered, not what it is about to agree to.
 */
#include "fake_internal.h"

#define ALL_RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* ---- What rdma_cm knows ---- */

static enum ibv_mtu mtu_code(uint32_t bytes)
{
	return bytes >= 4096   ? IBV_MTU_4096
	       : bytes >= 2048 ? IBV_MTU_2048
	       : bytes >= 1024 ? IBV_MTU_1024
	       : bytes >= 512  ? IBV_MTU_512
			       : IBV_MTU_256;
}

/* What the other end said: to who answers, when it asked; to who asked, when it answered. */
static const struct rdma_conn_param *heard(const struct fake_id *id)
{
	bool now = id->state == FAKE_ID_REQUESTED || id->state == FAKE_ID_RESPONDED;

	return now && id->peer && fake_id_qp(id->peer) ? &id->peer->said : NULL;
}

static int init_attr(const struct fake_id *id, struct ibv_qp_attr *attr, int *mask)
{
	const struct rdma_conn_param *said = heard(id);

	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	attr->port_num = 1;
	attr->qp_access_flags = 0; /* nobody is there yet */
	if (said && said->initiator_depth)
		attr->qp_access_flags = ALL_RIGHTS;
	else if (said)
		attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	return 0;
}

static int rtr_attr(const struct fake_id *id, struct ibv_qp_attr *attr, int *mask)
{
	const struct rdma_conn_param *said = heard(id);

	if (!said)
		return fake_refuse(EINVAL, "rdma_init_qp_attr: RTR, and no peer is known");
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	attr->ah_attr.port_num = 1;
	attr->ah_attr.is_global = !id->context->config->infiniband;
	attr->path_mtu = mtu_code(id->context->config->mtu);
	attr->dest_qp_num = fake_id_qp(id->peer)->verbs.qp_num;
	attr->rq_psn = 1;
	attr->max_dest_rd_atomic = said->initiator_depth;
	return 0;
}

static int rts_attr(const struct fake_id *id, struct ibv_qp_attr *attr, int *mask)
{
	const struct rdma_conn_param *said = heard(id);

	if (!said)
		return fake_refuse(EINVAL, "rdma_init_qp_attr: RTS, and no peer is known");
	*mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
	attr->timeout = 14;
	attr->retry_cnt = said->retry_count;
	attr->rnr_retry = said->rnr_retry_count;
	attr->sq_psn = 1;
	attr->max_rd_atomic = said->responder_resources;
	return 0;
}

int rdma_init_qp_attr(struct rdma_cm_id *verbs, struct ibv_qp_attr *attr, int *mask)
{
	const struct fake_id *id = (const struct fake_id *)(const void *)verbs;
	int err;

	fake_lock();
	if (!id->context || id->context->config->iwarp)
		err = fake_refuse(EINVAL, "rdma_init_qp_attr: no device, or iWARP, whose QPs the "
					  "kernel moves");
	else if (attr->qp_state == IBV_QPS_INIT)
		err = init_attr(id, attr, mask);
	else if (attr->qp_state == IBV_QPS_RTR)
		err = rtr_attr(id, attr, mask);
	else if (attr->qp_state == IBV_QPS_RTS)
		err = rts_attr(id, attr, mask);
	else
		err = fake_refuse(EINVAL, "rdma_init_qp_attr: state %d", attr->qp_state);
	fake_unlock();
	errno = err ? err : errno;
	return err ? -1 : 0;
}

/* ---- The steps ---- */

static int check_step(const struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	static const struct {
		enum ibv_qp_state from, to;
		int needs;
	} steps[] = {
		{IBV_QPS_RESET, IBV_QPS_INIT,
		 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
		{IBV_QPS_INIT, IBV_QPS_INIT, 0},
		{IBV_QPS_INIT, IBV_QPS_RTR,
		 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER},
		{IBV_QPS_RTR, IBV_QPS_RTS,
		 IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			 IBV_QP_MAX_QP_RD_ATOMIC},
	};

	if (!(mask & IBV_QP_STATE))
		return fake_refuse(EINVAL, "ibv_modify_qp: no state");
	if (attr->qp_state == IBV_QPS_ERR)
		return 0;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (steps[i].from != qp->verbs.state || steps[i].to != attr->qp_state)
			continue;
		if ((mask & steps[i].needs) != steps[i].needs)
			return fake_refuse(EINVAL, "ibv_modify_qp: state %d needs %#x, not %#x",
					   attr->qp_state, steps[i].needs, mask);
		return 0;
	}
	return fake_refuse(EINVAL, "ibv_modify_qp: from state %d to %d", qp->verbs.state,
			   attr->qp_state);
}

static int check_values(const struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	const struct fake_device *d = qp->context->config;

	if (mask & IBV_QP_AV && attr->ah_attr.sl > 15)
		return fake_refuse(EINVAL, "ibv_modify_qp: service level %u", attr->ah_attr.sl);
	if (mask & IBV_QP_AV && !attr->ah_attr.is_global && !d->infiniband)
		return fake_refuse(EINVAL, "ibv_modify_qp: RoCE without a global address");
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > d->max_rd_atomic) ||
	    (mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > d->max_rd_atomic))
		return fake_refuse(EINVAL, "ibv_modify_qp: more than %u READs in flight",
				   d->max_rd_atomic);
	return 0;
}

static struct fake_qp *qp_of(uint32_t number)
{
	for (struct fake_object *o = fake.objects[FAKE_QP]; o; o = o->next)
		if (FAKE_OF(o, struct fake_qp)->verbs.qp_num == number)
			return FAKE_OF(o, struct fake_qp);
	return NULL;
}

static void become_ready(struct fake_qp *qp, const struct ibv_qp_attr *attr)
{
	const struct fake_qp *peer = qp->id && qp->id->peer ? fake_id_qp(qp->id->peer) : NULL;

	qp->sl = attr->ah_attr.sl;
	qp->peer_rd_atomic = attr->max_dest_rd_atomic;
	if (!qp->id) /* no rdma_cm is there to introduce them */
		qp->peer = qp_of(attr->dest_qp_num);
	if (peer && peer->verbs.qp_num != attr->dest_qp_num)
		fake_violate("ibv_modify_qp: QP %u is no peer of QP %u; it would talk to nobody",
			     attr->dest_qp_num, qp->verbs.qp_num);
	if (qp->id && qp->id->remote_ece.vendor_id && qp->id->remote_ece.options != qp->ece_options)
		fake_violate("ibv_modify_qp: extensions %#x on QP %u, where the peer agreed to %#x",
			     qp->ece_options, qp->verbs.qp_num, qp->id->remote_ece.options);
}

static void step(struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (attr->qp_state == IBV_QPS_ERR) {
		fake_qp_fail(qp);
		return;
	}
	if (mask & IBV_QP_ACCESS_FLAGS)
		qp->access = (unsigned int)attr->qp_access_flags;
	if (attr->qp_state == IBV_QPS_RTR)
		become_ready(qp, attr);
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		qp->rd_atomic = attr->max_rd_atomic;
	if (mask & IBV_QP_RNR_RETRY)
		qp->rnr_retry = attr->rnr_retry;
	qp->verbs.state = attr->qp_state;
}

int ibv_modify_qp(struct ibv_qp *verbs, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = (struct fake_qp *)(void *)verbs;
	int err;

	fake_lock();
	err = fake_fault(&fake.config.fail_modify_qp);
	if (!err)
		err = check_step(qp, attr, mask);
	if (!err)
		err = check_values(qp, attr, mask);
	if (!err)
		step(qp, attr, mask);
	fake_unlock();
	return err;
}

/* ---- Extensions that the two ends agree on (enhanced connection establishment) ---- */

int ibv_query_ece(struct ibv_qp *verbs, struct ibv_ece *ece)
{
	const struct fake_qp *qp = (const struct fake_qp *)(const void *)verbs;
	const struct fake_device *d = qp->context->config;

	memset(ece, 0, sizeof(*ece));
	if (!d->ece_vendor)
		return EOPNOTSUPP;
	ece->vendor_id = d->ece_vendor;
	ece->options = qp->ece_options;
	return 0;
}

int ibv_set_ece(struct ibv_qp *verbs, struct ibv_ece *ece)
{
	struct fake_qp *qp = (struct fake_qp *)(void *)verbs;

	if (!ece->vendor_id || !qp->context->config->ece_vendor)
		return EOPNOTSUPP;
	if (ece->vendor_id != qp->context->config->ece_vendor || qp->verbs.state != IBV_QPS_INIT)
		return EINVAL;
	qp->ece_options = ece->options & qp->context->config->ece_options;
	return 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *verbs, struct ibv_ece *ece)
{
	const struct fake_id *id = (const struct fake_id *)(const void *)verbs;

	if (verbs->qp) {
		errno = EINVAL;
		return -1;
	}
	*ece = id->remote_ece;
	return 0;
}
