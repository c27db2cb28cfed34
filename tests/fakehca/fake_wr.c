/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The other way to post: ibv_wr_start(), a builder for each WR, a setter for its data, and
 * ibv_wr_complete(), which takes all of it or nothing. The builders are inline in verbs.h and call
 * through the struct ibv_qp_ex. The lock is held from start to complete, as a driver holds its own.
 */
#include "fake_internal.h"

/* struct fake_batched - @sge: a copy of what the setter was given. */
struct fake_batched {
	struct ibv_send_wr wr;
	struct ibv_sge *sge;
};

struct fake_batch {
	struct fake_batched *at;
	size_t n, room;
	int err;
};

static struct fake_qp *qp_of(struct ibv_qp_ex *ex)
{
	return (struct fake_qp *)(void *)ex;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct fake_qp *fake_qp = (struct fake_qp *)(void *)qp;

	return fake_qp->ex.wr_start ? &fake_qp->ex : NULL;
}

/* ---- Building ---- */

struct ibv_send_wr *fake_wr_add(struct fake_qp *qp, enum ibv_wr_opcode opcode)
{
	struct fake_batch *b = qp->batch;

	if (b->n == b->room) {
		b->room += 16;
		b->at = realloc(b->at, b->room * sizeof(b->at[0]));
		if (!b->at)
			abort();
	}
	b->at[b->n] = (struct fake_batched){
		.wr = {.wr_id = qp->ex.wr_id,
		       .opcode = opcode,
		       .send_flags = qp->ex.wr_flags & ~(unsigned int)IBV_SEND_INLINE}};
	return &b->at[b->n++].wr;
}

void fake_wr_sge(struct fake_qp *qp, const struct ibv_sge *sge, size_t n)
{
	struct fake_batched *last = &qp->batch->at[qp->batch->n - 1];

	last->sge = calloc(n + 1, sizeof(*sge));
	if (!last->sge)
		abort();
	memcpy(last->sge, sge, n * sizeof(*sge));
	last->wr.num_sge = (int)n;
}

void fake_wr_fail(struct fake_qp *qp, int err)
{
	if (!qp->batch->err)
		qp->batch->err = err;
}

static void rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr)
{
	struct ibv_send_wr *wr = fake_wr_add(qp_of(ex), opcode);

	wr->wr.rdma.remote_addr = addr;
	wr->wr.rdma.rkey = rkey;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	rdma(ex, IBV_WR_RDMA_READ, rkey, addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr);
	qp_of(ex)->batch->at[qp_of(ex)->batch->n - 1].wr.imm_data = imm;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	fake_wr_add(qp_of(ex), IBV_WR_SEND);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t key)
{
	fake_wr_add(qp_of(ex), IBV_WR_SEND_WITH_INV)->invalidate_rkey = key;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t key)
{
	fake_wr_add(qp_of(ex), IBV_WR_LOCAL_INV)->invalidate_rkey = key;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *sge)
{
	fake_wr_sge(qp_of(ex), sge, n);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t len)
{
	const struct ibv_sge sge = {(uintptr_t)addr, (uint32_t)len, 0};
	struct fake_qp *qp = qp_of(ex);

	fake_wr_sge(qp, &sge, 1);
	qp->batch->at[qp->batch->n - 1].wr.send_flags |= IBV_SEND_INLINE;
}

/* ---- A batch ---- */

static void drop(struct fake_qp *qp)
{
	struct fake_batch *b = qp->batch;

	qp->batch = NULL;
	for (size_t i = 0; i < b->n; i++)
		free(b->at[i].sge);
	free(b->at);
	free(b);
}

static void wr_start(struct ibv_qp_ex *ex)
{
	fake_lock();
	qp_of(ex)->batch = calloc(1, sizeof(struct fake_batch));
	if (!qp_of(ex)->batch)
		abort();
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct fake_qp *qp = qp_of(ex);
	struct fake_batch *b = qp->batch;
	int err = b->err;

	for (size_t i = 0; i < b->n; i++) {
		b->at[i].wr.sg_list = b->at[i].sge;
		b->at[i].wr.next = i + 1 < b->n ? &b->at[i + 1].wr : NULL;
	}
	if (!err)
		err = fake_post_all(qp, b->n ? &b->at[0].wr : NULL);
	drop(qp);
	fake_unlock();
	return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	drop(qp_of(ex));
	fake_unlock();
}

void fake_wr_init(struct fake_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->ex;

	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_send = wr_send;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
}

void fake_wr_destroy(struct fake_qp *qp)
{
	if (qp->batch)
		drop(qp);
}
