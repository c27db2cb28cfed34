/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the device does in one step, and when a WR completes.
 *
 * WRs are issued in posting order, a READ's answer comes later and may be overtaken by WRs behind
 * it (unless they are fenced); a BIND or LOCAL_INV is done as soon as it is issued. Completions are
 * in posting order all the same: `done` moves over an SQE once it is acknowledged, its delay is
 * over, and all before it are done. A WR that fails stops the issue of further ones; when its turn
 * to complete comes, its completion is written whether it was asked for or not, the QP goes to the
 * error state, and everything behind it flushes, each WR with a completion of its own, silent ones
 * too.
 */
#include "fake_internal.h"

/* ---- Completions ---- */

/* What a completion leaves undefined is made to look like nothing. */
static struct fake_cqe blank(struct fake_qp *qp, uint64_t seq, uint64_t wr_id,
			     enum ibv_wc_status status)
{
	struct fake_cqe cqe = {.qp = qp, .seq = seq};

	memset(&cqe.wc, 0xa5, sizeof(cqe.wc));
	cqe.wc.wr_id = wr_id;
	cqe.wc.status = status;
	cqe.wc.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0xfa;
	cqe.wc.qp_num = qp->verbs.qp_num;
	return cqe;
}

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode op)
{
	switch (op) {
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		return IBV_WC_SEND;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case IBV_WR_DRIVER1:
		return IBV_WC_DRIVER1;
	default:
		return IBV_WC_RDMA_WRITE;
	}
}

static void write_sq_cqe(struct fake_qp *qp, uint64_t seq, enum ibv_wc_status status)
{
	struct fake_sqe *sqe = fake_sqe(qp, seq);
	struct fake_cqe cqe = blank(qp, seq, sqe->wr_id, status);

	if (status == IBV_WC_SUCCESS) {
		cqe.wc.opcode = wc_opcode(sqe->opcode);
		cqe.wc.wc_flags = 0;
		if (sqe->opcode == IBV_WR_RDMA_READ)
			cqe.wc.byte_len = (uint32_t)sqe->len;
	}
	sqe->told = true;
	fake_cq_write(qp->send_cq, true, &cqe);
}

/* The next SQE in posting order is over. */
static void complete_sqe(struct fake_qp *qp, enum ibv_wc_status status)
{
	struct fake_sqe *sqe = fake_sqe(qp, qp->done);

	fake_sqe_let_go(sqe);
	qp->done++;
	if (!sqe->told && (!sqe->silent || status != IBV_WC_SUCCESS))
		write_sq_cqe(qp, qp->done - 1, status);
}

static void complete_rqe(struct fake_qp *qp, enum ibv_wc_status status)
{
	const struct fake_rqe *rqe = fake_rqe(qp, qp->rq_done);
	struct fake_cqe cqe = blank(qp, qp->rq_done, rqe->wr_id, status);

	if (status == IBV_WC_SUCCESS) {
		cqe.wc.opcode = rqe->wc.opcode;
		cqe.wc.wc_flags = rqe->wc.wc_flags;
		cqe.wc.byte_len = rqe->wc.byte_len;
		cqe.wc.imm_data = rqe->wc.imm_data;
		cqe.solicited = rqe->solicited;
	}
	qp->rq_done++;
	fake_cq_write(qp->recv_cq, false, &cqe);
}

void fake_qp_fail(struct fake_qp *qp)
{
	qp->verbs.state = IBV_QPS_ERR;
	qp->halted = true;
	qp->reads = 0;
	if (qp->peer)
		fake_qp_cut_off(qp->peer);
	while (qp->done != qp->head)
		complete_sqe(qp, IBV_WC_WR_FLUSH_ERR);
	qp->issue = qp->head;
	while (qp->rq_done != qp->rq_next)
		complete_rqe(qp, fake_rqe(qp, qp->rq_done)->wc.status);
	while (qp->rq_done != qp->rq_head)
		complete_rqe(qp, IBV_WC_WR_FLUSH_ERR);
	qp->rq_next = qp->rq_head;
}

static void fail_wr(struct fake_qp *qp, const struct fake_sqe *sqe)
{
	bool peer_fails = sqe->peer_fails;

	complete_sqe(qp, sqe->status);
	if (peer_fails && qp->peer)
		fake_qp_fail(qp->peer);
	fake_qp_fail(qp);
}

static void complete_sends(struct fake_qp *qp)
{
	while (qp->done != qp->issue && qp->verbs.state == IBV_QPS_RTS) {
		const struct fake_sqe *sqe = fake_sqe(qp, qp->done);

		if (sqe->state == FAKE_FAILED)
			fail_wr(qp, sqe);
		else if (sqe->state == FAKE_ACKED && sqe->due <= fake.step)
			complete_sqe(qp, IBV_WC_SUCCESS);
		else
			break;
	}
}

static void complete_early(struct fake_qp *qp)
{
	for (uint64_t seq = qp->done; seq != qp->issue; seq++) {
		const struct fake_sqe *sqe = fake_sqe(qp, seq);

		if (sqe->state == FAKE_ACKED && sqe->due <= fake.step && !sqe->silent &&
		    !sqe->told && sqe->opcode != IBV_WR_RDMA_READ)
			write_sq_cqe(qp, seq, IBV_WC_SUCCESS);
	}
}

void fake_qp_complete(struct fake_qp *qp)
{
	complete_sends(qp);
	if (fake.config.early_sends)
		complete_early(qp);
	while (qp->rq_done != qp->rq_next) {
		const struct fake_rqe *rqe = fake_rqe(qp, qp->rq_done);
		bool failed = rqe->wc.status != IBV_WC_SUCCESS;

		if (!failed && rqe->due > fake.step)
			break;
		complete_rqe(qp, rqe->wc.status);
		if (failed)
			fake_qp_fail(qp);
	}
}

/* ---- One step ---- */

/* The oldest READ under way; only where qp->reads. */
static struct fake_sqe *oldest_read(const struct fake_qp *qp)
{
	uint64_t seq = qp->done;

	while (fake_sqe(qp, seq)->state != FAKE_READING)
		seq++;
	return fake_sqe(qp, seq);
}

static bool can_answer(const struct fake_qp *qp)
{
	return qp->reads && oldest_read(qp)->due <= fake.step;
}

/* The peer has no RECV, and nobody will lose patience. */
static bool stalled(const struct fake_qp *qp)
{
	return qp->rnr_waiting && qp->rnr_retry == 7 && fake_qp_reachable(qp) &&
	       qp->peer->rq_next == qp->peer->rq_head;
}

static bool can_issue(const struct fake_qp *qp)
{
	const struct fake_sqe *sqe = fake_sqe(qp, qp->issue);

	if (qp->issue == qp->head || qp->halted || qp->mute)
		return false;
	if (stalled(qp) || (qp->rnr_waiting && qp->rnr_due > fake.step))
		return false;
	if ((sqe->flags & IBV_SEND_FENCE) && qp->reads)
		return false;
	return sqe->opcode != IBV_WR_RDMA_READ || qp->reads < qp->rd_atomic;
}

/* Will time alone bring something? */
static bool waits_for_time(const struct fake_qp *qp)
{
	if (qp->verbs.state != IBV_QPS_RTS)
		return false;
	if (qp->reads || (qp->rnr_waiting && !stalled(qp)))
		return true;
	return (qp->done != qp->issue && fake_sqe(qp, qp->done)->state == FAKE_ACKED) ||
	       qp->rq_done != qp->rq_next;
}

/* A WR that nobody but this device has to do with. */
static bool is_local(const struct fake_sqe *sqe)
{
	return sqe->opcode == IBV_WR_BIND_MW || sqe->opcode == IBV_WR_LOCAL_INV ||
	       sqe->opcode == IBV_WR_DRIVER1;
}

static void execute_local(struct fake_qp *qp, struct fake_sqe *sqe)
{
	sqe->status = sqe->opcode == IBV_WR_DRIVER1 ? fake_mkey_execute(qp, sqe)
						    : fake_mw_execute(qp, sqe);
	if (sqe->status == IBV_WC_SUCCESS)
		fake_acknowledge(sqe);
	else
		sqe->state = FAKE_FAILED;
}

static void issue(struct fake_qp *qp)
{
	struct fake_sqe *sqe = fake_sqe(qp, qp->issue);
	int status = sqe->moved || qp->rnr_waiting ? 0 : fake_fault(&fake.config.fail_wr);

	if (status) {
		sqe->state = FAKE_FAILED;
		sqe->status = (enum ibv_wc_status)status;
	} else if (sqe->opcode == IBV_WR_RDMA_READ) {
		sqe->state = FAKE_READING;
		sqe->due = fake.step + fake.config.read_lag;
		qp->reads++;
	} else if (is_local(sqe)) {
		execute_local(qp, sqe);
	} else {
		fake_move_out(qp, sqe);
	}
	if (sqe->state == FAKE_FAILED)
		qp->halted = true;
	if (sqe->state != FAKE_QUEUED)
		qp->issue++;
}

static void answer(struct fake_qp *qp)
{
	struct fake_sqe *sqe = oldest_read(qp);

	fake_move_read(qp, sqe);
	if (sqe->state != FAKE_READING)
		qp->reads--;
	if (sqe->state == FAKE_FAILED)
		qp->halted = true;
}

/* Let @qp do one thing; false: there is none. */
static bool run(struct fake_qp *qp)
{
	bool can[2] = {can_answer(qp), can_issue(qp)};
	bool issues = can[1] && (!can[0] || fake_random(2));

	if (qp->verbs.state != IBV_QPS_RTS || (!can[0] && !can[1]))
		return false;
	if (issues)
		issue(qp);
	else
		answer(qp);
	return true;
}

static struct fake_qp *first_qp(void)
{
	return fake.objects[FAKE_QP] ? FAKE_OF(fake.objects[FAKE_QP], struct fake_qp) : NULL;
}

static struct fake_qp *next_qp(const struct fake_qp *qp)
{
	return qp->object.next ? FAKE_OF(qp->object.next, struct fake_qp) : NULL;
}

static bool complete_all(void)
{
	bool waiting = false;

	for (struct fake_qp *qp = first_qp(); qp; qp = next_qp(qp)) {
		fake_qp_complete(qp);
		waiting |= waits_for_time(qp);
	}
	return waiting;
}

/* In turns, or at random: the first of the QPs behind a chosen one that can do something. */
static bool run_one(void)
{
	uint32_t n = fake.count[FAKE_QP];
	uint64_t skip = n ? (fake.config.seed ? fake_random(n) : fake.next_qp++ % n) : 0;
	struct fake_qp *qp = first_qp();

	while (skip--)
		qp = next_qp(qp);
	for (; n; n--, qp = next_qp(qp) ? next_qp(qp) : first_qp())
		if (run(qp))
			return true;
	return false;
}

bool fake_step_locked(void)
{
	uint64_t written = fake.cqe_order;
	bool ran, waiting;

	fake.step++;
	fake.now += fake.config.step_ns;
	fake.stats.steps++;
	if (fake.step == fake.config.event_at)
		fake_async_raise((enum ibv_event_type)fake.config.event);
	ran = run_one();
	waiting = complete_all();
	return ran || waiting || fake.cqe_order != written;
}

bool fake_step(void)
{
	bool more;

	fake_lock();
	more = fake_step_locked();
	fake_unlock();
	return more;
}

uint64_t fake_run(void)
{
	uint64_t n = 0;

	while (fake_step())
		n++;
	return n;
}
