/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a device grants, takes and costs, found out by doing it.
 *
 * A send queue entry is in use until a completion at or behind it was polled: so hardware has it,
 * where the driver in this process only learns from completions how far the device has come. Some
 * devices, software mostly, share the queue's consumer index with the process and free entries as
 * they go. On these a forgotten signal never shows, while on the others it stops the queue for
 * good. Which of the two a device is, it does not say; whether more unsignalled work requests than
 * the queue holds are taken, if one waits between them and polls nothing, tells it.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "internal.h"
#include "probe.h"

#define PATIENCE_NS 1000000000ull /* a queue that is full for so long stays so */
#define EMPTY_POLLS 256		  /* between looks at the clock */

static int failed(const struct rxfer_dev *dev, const char *call, int err)
{
	return rxfer_fail(err, "%s on %s: %s", call, dev->info.name, strerror(abs(err)));
}

static int wait_over(const struct rxfer_wait *wait, const char *what)
{
	if (wait->stop && *wait->stop)
		return rxfer_fail(EINTR, "interrupted while probing %s", what);
	if (rxfer_now() >= wait->deadline)
		return rxfer_fail(ETIMEDOUT, "no end in time while probing %s (--timeout)", what);
	return 0;
}

/* ---- What is granted ---- */

static int create_qp(struct rxfer_dev *dev, struct rdma_cm_id *id, struct ibv_cq *cq,
		     uint32_t send_wr, uint32_t inline_bytes, struct rxfer_granted *out)
{
	struct ibv_qp_init_attr qp = {.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq};

	qp.cap.max_send_wr = send_wr;
	qp.cap.max_recv_wr = 1;
	qp.cap.max_send_sge = 1;
	qp.cap.max_recv_sge = 1;
	qp.cap.max_inline_data = inline_bytes;
	if (rdma_create_qp(id, dev->pd, &qp))
		return rxfer_fail(errno, "%s refuses a queue pair of %s and %s: %m", dev->info.name,
				  rxfer_count(send_wr, "send entry").s,
				  rxfer_count(inline_bytes, "inline byte").s);
	*out = (struct rxfer_granted){qp.cap.max_send_wr, qp.cap.max_inline_data};
	rdma_destroy_qp(id);
	return 0;
}

/* An id that is bound belongs to a device: enough for a queue pair that connects to nothing. */
int rxfer_probe_qp(struct rxfer_dev *dev, uint32_t send_wr, uint32_t inline_bytes,
		   struct rxfer_granted *out)
{
	struct sockaddr_storage any_port = dev->addr;
	struct ibv_cq *cq = ibv_create_cq(dev->verbs, 1, NULL, NULL, 0);
	struct rdma_cm_id *id;
	int rc;

	if (!cq)
		return failed(dev, "ibv_create_cq", errno);
	if (rdma_create_id(dev->events, &id, NULL, RDMA_PS_TCP)) {
		rc = failed(dev, "rdma_create_id", errno);
		ibv_destroy_cq(cq);
		return rc;
	}
	if (rdma_bind_addr(id, (struct sockaddr *)&any_port))
		rc = failed(dev, "rdma_bind_addr", errno);
	else
		rc = create_qp(dev, id, cq, send_wr, inline_bytes, out);
	rdma_destroy_id(id);
	ibv_destroy_cq(cq);
	return rc;
}

/* ---- What is taken ---- */

static struct ibv_send_wr write_wr(const struct rxfer_seg *remote)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

	wr.wr.rdma.remote_addr = remote->addr;
	wr.wr.rdma.rkey = remote->key;
	return wr;
}

/* One call for all: how many were taken; or -errno where the queue's end is not the reason. */
static int64_t post_chain(struct rxfer_conn *conn, const struct rxfer_seg *remote, uint32_t n)
{
	struct ibv_send_wr *wr = calloc(n, sizeof(*wr)), *bad = NULL;
	int64_t taken = n;
	int rc;

	if (!wr)
		return rxfer_fail(ENOMEM, "out of memory for %s", rxfer_count(n, "work request").s);
	for (uint32_t i = 0; i < n; i++) {
		wr[i] = write_wr(remote);
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	rc = ibv_post_send(conn->id->qp, wr, &bad);
	if (rc && (abs(rc) != ENOMEM || !bad))
		taken = failed(conn->dev, "posting unsignalled WRs", rc);
	else if (rc)
		taken = bad - wr;
	free(wr);
	return taken;
}

/* One more, waiting for a place while the queue is full: 1, or 0 where it stays so. */
static int post_patiently(struct rxfer_conn *conn, struct ibv_send_wr *wr, bool *waited,
			  const struct rxfer_wait *wait)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	uint64_t since = rxfer_now(), patience = PATIENCE_NS;

	if (since < wait->deadline && (wait->deadline - since) / 2 < patience)
		patience = (wait->deadline - since) / 2;
	for (;;) {
		struct ibv_send_wr *bad;
		int rc = ibv_post_send(conn->id->qp, wr, &bad);

		if (!rc)
			return 1;
		if (abs(rc) != ENOMEM)
			return failed(conn->dev, "posting an unsignalled WR", rc);
		*waited = true;
		if (rxfer_now() - since > patience)
			return 0;
		rc = wait_over(wait, "the send queue");
		if (rc)
			return rc;
		nanosleep(&pause, NULL);
	}
}

int rxfer_probe_silent(struct rxfer_conn *conn, const struct rxfer_seg *remote, uint32_t limit,
		       bool chain, const struct rxfer_wait *wait, struct rxfer_silent *out)
{
	struct ibv_send_wr wr = write_wr(remote);
	int64_t taken = chain ? post_chain(conn, remote, limit) : 0;
	bool waited = false;

	if (taken < 0)
		return (int)taken;
	*out = (struct rxfer_silent){(uint32_t)taken, (uint32_t)taken};
	while (!chain && out->total < limit) {
		int rc = post_patiently(conn, &wr, &waited, wait);

		if (rc < 0)
			return rc;
		if (rc == 0)
			break;
		out->total++;
		out->burst += !waited;
	}
	return 0;
}

/* ---- What it costs ---- */

/* The WRs of a round, laid out before its clock starts. */
static void lay_out_round(struct ibv_send_wr *wr, struct ibv_sge *sge,
			  const struct rxfer_mem *local, const struct rxfer_seg *remote,
			  const struct rxfer_round *round)
{
	*sge = (struct ibv_sge){(uintptr_t)local->base, remote->len, local->mr->lkey};
	for (uint32_t i = 0; i < round->wrs; i++) {
		bool last = i + 1 == round->wrs;

		wr[i] = write_wr(remote);
		wr[i].sg_list = sge;
		wr[i].num_sge = 1;
		wr[i].send_flags = round->all || last ? IBV_SEND_SIGNALED : 0;
		wr[i].next = round->single || last ? NULL : &wr[i + 1];
	}
}

static int post_round(struct rxfer_conn *conn, struct ibv_send_wr *wr,
		      const struct rxfer_round *round)
{
	struct ibv_send_wr *bad;
	uint32_t posts = round->single ? round->wrs : 1;

	for (uint32_t i = 0; i < posts; i++) {
		int rc = ibv_post_send(conn->id->qp, &wr[i], &bad);

		if (rc)
			return failed(conn->dev, "posting a WRITE", rc);
	}
	return 0;
}

/* Poll @due completions. */
static int await_round(struct rxfer_conn *conn, uint32_t due, bool yield,
		       const struct rxfer_wait *wait)
{
	struct ibv_wc wc[RXFER_WC_BATCH];
	unsigned int empty = 0;

	while (due) {
		int n = ibv_poll_cq(conn->cq, RXFER_WC_BATCH, wc), rc = 0;

		if (n < 0)
			return rxfer_fail(EIO, "ibv_poll_cq on %s failed", conn->dev->info.name);
		for (int i = 0; i < n; i++)
			if (wc[i].status)
				return rxfer_fail(EIO, "a WRITE on %s failed: %s",
						  conn->dev->info.name,
						  ibv_wc_status_str(wc[i].status));
		due -= (uint32_t)n < due ? (uint32_t)n : due;
		if (n == 0 && yield)
			sched_yield();
		if (n == 0 && ++empty % EMPTY_POLLS == 0)
			rc = wait_over(wait, "the cost of a WRITE");
		if (rc)
			return rc;
	}
	return 0;
}

int rxfer_probe_round(struct rxfer_conn *conn, const struct rxfer_mem *local,
		      const struct rxfer_seg *remote, const struct rxfer_round *round,
		      const struct rxfer_wait *wait, uint64_t *ns)
{
	struct ibv_send_wr wr[RXFER_ROUND_MAX];
	struct ibv_sge sge;
	uint64_t start;
	int rc;

	lay_out_round(wr, &sge, local, remote, round);
	start = rxfer_now();
	rc = post_round(conn, wr, round);
	if (!rc)
		rc = await_round(conn, round->all ? round->wrs : 1, round->yield, wait);
	if (!rc)
		*ns = rxfer_now() - start;
	return rc;
}
