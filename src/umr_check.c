/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Do bytes go where a UMR says? Before anything is timed that is tried out, in each direction, on
 * the device itself: a list that is not taken as it is meant may leave all WRs behind it
 * successful, and the data where they were. A strategy that moves nothing would be the fastest of
 * all.
 *
 * One QP is enough: connected to itself, it is its own peer. Its address is the port's first, which
 * every port has. Two pieces lie with a gap between them:
 *
 *	memory:   one │ gap │ other │ plain
 *
 *	WRITE from plain to the list, READ from the list to plain: as the peer's
 *	READ from plain into the list, WRITE from the list to plain: as our own
 *
 * Pieces of different lengths, so that none of it is right by chance.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "umr.h"

#define ONE	   72u
#define OTHER	   53u
#define ALL	   (ONE + OTHER)
#define GAP	   40u
#define ROOM	   (ONE + GAP + OTHER)
#define FILL	   0xc3
#define ALL_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

#define PATIENCE_NS 2000000000ull

struct check {
	const struct rxfer_dev *dev;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct rxfer_umr *umr;
	uint8_t room[ROOM], plain[ALL], want[ALL];
};

static int no_way(const struct check *c, const char *what, int err)
{
	return rxfer_fail(EOPNOTSUPP, "frwr-umr tried itself out on %s before use, and %s: %s",
			  c->dev->info.name, what, strerror(abs(err)));
}

/* ---- A QP that is connected to itself ---- */

static int step(struct check *c, struct ibv_qp_attr attr, int mask)
{
	int rc = ibv_modify_qp(c->qp, &attr, mask | IBV_QP_STATE);

	return rc ? no_way(c, "its queue pair does not get ready", rc) : 0;
}

static int address(const struct check *c, struct ibv_ah_attr *ah)
{
	struct ibv_context *verbs = c->dev->verbs;
	uint8_t number = c->dev->info.port;
	struct ibv_port_attr port;
	int rc = ibv_query_port(verbs, number, &port);

	*ah = (struct ibv_ah_attr){.dlid = port.lid, .is_global = 1, .port_num = number};
	ah->grh.hop_limit = 1;
	if (!rc)
		rc = ibv_query_gid(verbs, number, 0, &ah->grh.dgid);
	return rc ? no_way(c, "the port's address is not to be had", rc) : 0;
}

static int connect_to_itself(struct check *c)
{
	struct ibv_ah_attr ah;
	int rc = address(c, &ah);

	if (!rc)
		rc = step(c,
			  (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT,
					       .port_num = c->dev->info.port,
					       .qp_access_flags = ALL_RIGHTS},
			  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (!rc)
		rc = step(c,
			  (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
					       .ah_attr = ah,
					       .path_mtu = IBV_MTU_256,
					       .dest_qp_num = c->qp->qp_num,
					       .max_dest_rd_atomic = 1,
					       .min_rnr_timer = 12},
			  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (rc)
		return rc;
	return step(c,
		    (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
					 .max_rd_atomic = 1,
					 .timeout = 14,
					 .retry_cnt = 7,
					 .rnr_retry = 7},
		    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			    IBV_QP_MAX_QP_RD_ATOMIC);
}

/* Not by rxfer_dev_reg_mr(), which counts what a run registers. */
static int open_check(struct check *c)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	int rc = rxfer_umr_new(c->dev, 2, false, &c->umr);

	if (rc)
		return no_way(c, "it makes no mkey", rc);
	c->mr = ibv_reg_mr(c->dev->pd, c, sizeof(*c), ALL_RIGHTS);
	if (!c->mr)
		return no_way(c, "ibv_reg_mr failed", errno);
	c->cq = ibv_create_cq(c->dev->verbs, 16, NULL, NULL, 0);
	if (!c->cq)
		return no_way(c, "ibv_create_cq failed", errno);
	attr.send_cq = attr.recv_cq = c->cq;
	c->qp = rxfer_umr_qp(c->dev->pd, &attr, 2);
	if (!c->qp)
		return no_way(c, "mlx5dv_create_qp failed", errno);
	return connect_to_itself(c);
}

static void close_check(struct check *c)
{
	if (c->qp)
		ibv_destroy_qp(c->qp);
	if (c->cq)
		ibv_destroy_cq(c->cq);
	rxfer_umr_free(c->dev, c->umr);
	if (c->mr)
		ibv_dereg_mr(c->mr);
	free(c);
}

/* ---- Moving bytes ---- */

/* The completion of the one WR that asked for it. */
static int await(struct check *c, const char *what)
{
	uint64_t deadline = rxfer_now() + PATIENCE_NS;
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(c->cq, 1, &wc);
	} while (n == 0 && rxfer_now() < deadline);
	if (n == 1 && wc.status == IBV_WC_SUCCESS)
		return 0;
	return rxfer_fail(EOPNOTSUPP, "frwr-umr tried itself out on %s before use, and %s %s",
			  c->dev->info.name, what,
			  n == 1 ? ibv_wc_status_str(wc.status) : "did not complete");
}

/* @wr alone, or behind others that lead to it. */
static int run(struct check *c, struct ibv_send_wr *first, struct ibv_send_wr *wr, const char *what)
{
	struct ibv_send_wr *bad;
	int rc;

	wr->send_flags = IBV_SEND_SIGNALED;
	rc = rxfer_umr_post(c->qp, first, &bad);
	return rc ? no_way(c, "posting failed", rc) : await(c, what);
}

/* Other bytes each time, and where they must not go, FILL. */
static void refill(struct check *c, uint8_t number)
{
	for (uint32_t i = 0; i < ALL; i++)
		c->want[i] = (uint8_t)(number * 97 + i * 7);
	memset(c->room, FILL, sizeof(c->room));
	memset(c->plain, FILL, sizeof(c->plain));
}

static void put_listed(struct check *c)
{
	memcpy(c->room, c->want, ONE);
	memcpy(c->room + ONE + GAP, c->want + ONE, OTHER);
}

static int wrong(const struct check *c, const char *what)
{
	return rxfer_fail(
		EOPNOTSUPP,
		"frwr-umr tried itself out on %s before use, and %s succeeded and moved wrong bytes, or none: nothing is measured by it",
		c->dev->info.name, what);
}

static int check_bytes(const struct check *c, const char *what)
{
	bool right = !memcmp(c->room, c->want, ONE) &&
		     !memcmp(c->room + ONE + GAP, c->want + ONE, OTHER) &&
		     !memcmp(c->plain, c->want, ALL);

	for (uint32_t i = ONE; i < ONE + GAP; i++)
		right = right && c->room[i] == FILL;
	return right ? 0 : wrong(c, what);
}

/* One transfer between the list and the plain bytes, one of which is remote. @to_list: its
 * direction. */
static int transfer(struct check *c, struct ibv_send_wr *first, uint8_t number,
		    enum ibv_wr_opcode op, bool to_list, const char *what)
{
	bool list_is_remote = (op == IBV_WR_RDMA_WRITE) == to_list;
	struct ibv_sge sge = {(uintptr_t)c->plain, ALL, c->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = op};
	int rc;

	wr.wr.rdma.rkey = c->umr->key;
	if (!list_is_remote) {
		sge = (struct ibv_sge){0, ALL, c->umr->key};
		wr.wr.rdma.remote_addr = (uintptr_t)c->plain;
		wr.wr.rdma.rkey = c->mr->rkey;
	}
	refill(c, number);
	if (to_list)
		memcpy(c->plain, c->want, ALL);
	else
		put_listed(c);
	if (first)
		first->next = &wr;
	rc = run(c, first ? first : &wr, &wr, what);
	return rc ? rc : check_bytes(c, what);
}

static int move_bytes(struct check *c)
{
	struct ibv_send_wr umr, inv = {.opcode = IBV_WR_LOCAL_INV};
	int rc;

	rxfer_umr_add(c->umr, (uintptr_t)c->room, ONE, c->mr->lkey);
	rxfer_umr_add(c->umr, (uintptr_t)c->room + ONE + GAP, OTHER, c->mr->lkey);
	c->umr->access = ALL_RIGHTS;
	umr = rxfer_umr_wr(c->umr, c->umr->key);
	inv.invalidate_rkey = c->umr->key;
	rc = transfer(c, &umr, 1, IBV_WR_RDMA_WRITE, true, "a WRITE to an mkey");
	if (!rc)
		rc = transfer(c, NULL, 2, IBV_WR_RDMA_READ, false, "a READ from an mkey");
	if (!rc)
		rc = transfer(c, NULL, 3, IBV_WR_RDMA_READ, true, "a READ into an mkey");
	if (!rc)
		rc = transfer(c, NULL, 4, IBV_WR_RDMA_WRITE, false, "a WRITE out of an mkey");
	return rc ? rc : run(c, &inv, &inv, "a LOCAL_INV of an mkey");
}

int rxfer_umr_check(const struct rxfer_dev *dev)
{
	struct check *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return rxfer_fail(ENOMEM, "out of memory");
	c->dev = dev;
	rc = open_check(c);
	if (!rc)
		rc = move_bytes(c);
	close_check(c);
	return rc;
}
