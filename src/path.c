/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The service level (SL) of a connection, and the states that a QP goes through by our own hand.
 *
 * rdma_cm takes the SL from the path that it finds, and there is no way to tell it another. (Its
 * option for the type of service is about a byte of the IP header, and what it makes of that is up
 * to the kernel and the NIC.) But what a NIC sends with is the address that its QP got on the step
 * to RTR. So where an SL is asked for, we take the steps ourselves: with all that rdma_cm says of
 * them (rdma_init_qp_attr(): the peer, MTU, time-outs, retries, sequence numbers), but for the SL.
 *
 * librdmacm takes them as long as there is an id->qp. Where there is none, it believes the number
 * that it is given, hands the peer's answer out as CONNECT_RESPONSE, and waits for
 * rdma_establish(). So the QP is made as always, and hidden while the ends shake hands:
 *
 *	connecting side                            accepting side
 *	hide, rdma_connect()       -- request -->  hide
 *	                                           INIT, RTR with the SL, RTS
 *	CONNECT_RESPONSE          <-- answer ---   rdma_accept(), show
 *	INIT, RTR with the SL, RTS
 *	rdma_establish(), show     --- ready -->   ESTABLISHED
 *
 * librdmacm does three things on the way that are ours then:
 *
 *	INIT a second time. As made, the QP grants its peer nothing, since there was no peer; READs
 *	and WRITEs would be refused.
 *
 *	READs in flight. Until it has answered, the accepting side is told what the other one
 *	offered; what it will answer has to be put in its place.
 *
 *	Extensions that both NICs know (ECE). The accepting side's are set when its QP is made; the
 *	other one has to set what the answer says, or one end would use what the other does not.
 *
 * The same is done for a QP that a strategy has made (ops.create_qp): rdma_cm takes no QP of
 * others'. Extensions are not among what such a one offers, or takes on the accepting side.
 *
 * Nothing is believed: the SL is read back from the QP, and another is an error. InfiniBand's
 * drivers tell it. Over Ethernet, where the SL is a priority of frames, many know nothing but 0
 * (rxe, which ignores it, but also some that use it): then the driver has taken the SL without a
 * complaint, and that is all there is to know. iWARP has no such thing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

#define ETHERNET_MOST 7 /* a priority has three bits, and NICs would drop the fourth */

int rxfer_path_check(const struct rxfer_dev *dev, uint8_t sl)
{
	const struct rxfer_dev_info *info = &dev->info;

	if (sl && !strcmp(info->transport, "iWARP"))
		return rxfer_fail(
			EOPNOTSUPP,
			"--sl %u cannot be had on %s: it is iWARP, which has no service levels: leave --sl out",
			sl, info->name);
	if (sl > ETHERNET_MOST && !strcmp(info->transport, "RoCE"))
		return rxfer_fail(
			EOPNOTSUPP,
			"--sl %u cannot be had on %s: over Ethernet (RoCE) a service level is one of 8 priorities: use --sl %u or less",
			sl, info->name, ETHERNET_MOST);
	return 0;
}

void rxfer_path_hide(struct rxfer_conn *conn, struct rdma_conn_param *param)
{
	conn->hidden = conn->id->qp;
	conn->id->qp = NULL;
	param->qp_num = conn->hidden->qp_num;
}

void rxfer_path_show(struct rxfer_conn *conn)
{
	if (!conn->hidden)
		return;
	conn->id->qp = conn->hidden;
	conn->hidden = NULL;
}

/* @answer: what we are about to say; NULL: the peer has said it, and rdma_cm knows. */
static int step(struct rxfer_conn *conn, enum ibv_qp_state to, const char *name,
		const struct rdma_conn_param *answer)
{
	struct ibv_qp_attr attr = {.qp_state = to};
	int mask, rc;

	if (rdma_init_qp_attr(conn->id, &attr, &mask))
		return rxfer_fail(errno, "rdma_init_qp_attr for %s on %s: %m", name,
				  conn->dev->info.name);
	if (mask & IBV_QP_AV && conn->attr.sl)
		attr.ah_attr.sl = conn->attr.sl;
	if (answer && mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		attr.max_dest_rd_atomic = answer->responder_resources;
	if (answer && mask & IBV_QP_MAX_QP_RD_ATOMIC)
		attr.max_rd_atomic = answer->initiator_depth;
	rc = ibv_modify_qp(conn->hidden, &attr, mask);
	if (rc && conn->attr.sl)
		return rxfer_fail(
			rc,
			"%s refuses to make the queue pair ready (%s) with --sl %u: %s: does it have that service level?",
			conn->dev->info.name, name, conn->attr.sl, strerror(abs(rc)));
	if (rc)
		return rxfer_fail(rc, "%s refuses to make the queue pair ready (%s): %s",
				  conn->dev->info.name, name, strerror(abs(rc)));
	return 0;
}

/* The SL that the QP says it has; -1: its driver does not say. */
static int find_sl(const struct rxfer_conn *conn, struct ibv_qp *qp)
{
	const char *transport = conn->dev->info.transport;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (!strcmp(transport, "iWARP") || ibv_query_qp(qp, &attr, IBV_QP_AV, &init))
		return -1;
	if (attr.ah_attr.sl == 0 && conn->attr.sl && strcmp(transport, "IB"))
		return -1;
	return attr.ah_attr.sl;
}

static int check_sl(const struct rxfer_conn *conn)
{
	int sl = conn->attr.sl ? find_sl(conn, conn->hidden) : 0;

	if (sl == conn->attr.sl || (sl < 0 && strcmp(conn->dev->info.transport, "IB")))
		return 0;
	if (sl < 0)
		return rxfer_fail(
			EOPNOTSUPP,
			"--sl %u: %s does not tell which service level its queue pair has, so it may be another: leave --sl out",
			conn->attr.sl, conn->dev->info.name);
	return rxfer_fail(
		EOPNOTSUPP,
		"--sl %u: the queue pair on %s has service level %d instead, and that is not what was to be measured: use --sl %d, or leave --sl out",
		conn->attr.sl, conn->dev->info.name, sl, sl);
}

int rxfer_path_ready(struct rxfer_conn *conn, const struct rdma_conn_param *answer)
{
	int rc = step(conn, IBV_QPS_INIT, "INIT", answer);

	if (!rc)
		rc = step(conn, IBV_QPS_RTR, "RTR", answer);
	if (!rc)
		rc = step(conn, IBV_QPS_RTS, "RTS", answer);
	return rc ? rc : check_sl(conn);
}

/* A peer whose NIC knows of no extensions names no vendor: then none is used. */
static int take_extensions(struct rxfer_conn *conn)
{
	struct ibv_ece ece;
	int rc;

	if (rdma_get_remote_ece(conn->id, &ece))
		return rxfer_fail(errno, "rdma_get_remote_ece on %s: %m", conn->dev->info.name);
	if (!ece.vendor_id && ibv_query_ece(conn->hidden, &ece))
		return 0; /* neither does ours */
	if (!ece.vendor_id)
		ece.options = 0;
	rc = ibv_set_ece(conn->hidden, &ece);
	if (rc && abs(rc) != EOPNOTSUPP)
		return rxfer_fail(rc, "ibv_set_ece on %s: %s", conn->dev->info.name,
				  strerror(abs(rc)));
	return 0;
}

int rxfer_path_establish(struct rxfer_conn *conn)
{
	int rc = take_extensions(conn);

	if (!rc)
		rc = rxfer_path_ready(conn, NULL);
	if (!rc && rdma_establish(conn->id))
		rc = rxfer_fail(errno, "rdma_establish on %s: %m", conn->dev->info.name);
	rxfer_path_show(conn);
	return rc;
}

void rxfer_path_note(struct rxfer_conn *conn)
{
	conn->info.sl = find_sl(conn, conn->id->qp);
}
