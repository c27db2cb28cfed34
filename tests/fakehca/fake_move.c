/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Moving data, one MTU at a time. Each piece is checked where it is, on both sides, when it moves:
 * a region that goes while a WR is under way stops it in the middle.
 */
#include "fake_internal.h"

static void fail(struct fake_sqe *sqe, enum ibv_wc_status status, bool peer_fails)
{
	sqe->state = FAKE_FAILED;
	sqe->status = status;
	sqe->peer_fails = peer_fails;
}

/* ---- Lists ---- */

/* A piece of memory of one SGE, inside a piece of a message. */
typedef bool (*visit)(void *arg, const struct ibv_sge *sge, uint64_t addr, uint64_t len);

static bool walk_mkey(const struct ibv_sge *sge, uint64_t addr, uint64_t len, visit fn, void *arg);

/* Walk [at, at + len) of a list; false where @fn stops it. Under an mkey it is what lies below. */
static bool walk(const struct ibv_sge *sge, uint32_t n, uint64_t at, uint64_t len, visit fn,
		 void *arg)
{
	for (; n && len; n--, sge++) {
		uint64_t here;

		if (at >= sge->length) {
			at -= sge->length;
			continue;
		}
		here = sge->length - at < len ? sge->length - at : len;
		if (fake_is_mkey(sge->lkey) ? !walk_mkey(sge, sge->addr + at, here, fn, arg)
					    : !fn(arg, sge, sge->addr + at, here))
			return false;
		len -= here;
		at = 0;
	}
	return true;
}

struct check {
	const struct ibv_pd *pd;
	unsigned int access;
};

static bool check_one(void *arg, const struct ibv_sge *sge, uint64_t addr, uint64_t len)
{
	const struct check *c = arg;

	return fake_mr_allows(sge->lkey, false, c->pd, addr, len, c->access);
}

/* struct copy - between a list and @flat; @to_list says which way. */
struct copy {
	uint8_t *flat;
	bool to_list;
};

static bool copy_one(void *arg, const struct ibv_sge *sge, uint64_t addr, uint64_t len)
{
	struct copy *c = arg;

	(void)sge;
	if (c->to_list)
		memcpy((void *)(uintptr_t)addr, c->flat, len);
	else
		memcpy(c->flat, (void *)(uintptr_t)addr, len);
	c->flat += len;
	return true;
}

static bool walk_mkey(const struct ibv_sge *sge, uint64_t addr, uint64_t len, visit fn, void *arg)
{
	const struct fake_mkey *mkey = fake_mkey_find(sge->lkey);

	if (fn == check_one) {
		const struct check *c = arg;

		if (!fake_mkey_allows(sge->lkey, c->pd, addr, len, c->access))
			return false;
	} else if (fake_context(mkey->pd->verbs.context)->config->mkey_blind) {
		((struct copy *)arg)->flat += len;
		return true;
	}
	return walk(mkey->sge, mkey->n, addr, len, fn, arg);
}

bool fake_lkey_allows(uint32_t key, const struct ibv_pd *pd, uint64_t addr, uint64_t len,
		      unsigned int access)
{
	const struct ibv_sge sge = {addr, (uint32_t)len, key};
	struct check c = {pd, access};

	return walk(&sge, 1, 0, len, check_one, &c);
}

/* Bytes between a buffer and what lies under a key of one's own or the peer's. */
static void copy_under(uint32_t key, uint64_t addr, uint64_t len, uint8_t *buf, bool from_buf)
{
	const struct ibv_sge sge = {addr, (uint32_t)len, key};
	struct copy c = {.flat = buf, .to_list = from_buf};

	walk(&sge, 1, 0, len, copy_one, &c);
}

static uint64_t hash(uint64_t h, const uint8_t *p, uint64_t n)
{
	uint64_t word;

	for (; n >= sizeof(word); n -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	for (; n; n--, p++)
		h = (h ^ *p) * 0x100000001b3u;
	return h;
}

/* ---- Pieces ---- */

static uint64_t piece(const struct fake_qp *qp, const struct fake_sqe *sqe)
{
	uint64_t left = sqe->len - sqe->moved, mtu = qp->context->config->mtu;

	return left < mtu ? left : mtu;
}

/* The source's piece at @at, into @buf. */
static void gather(const struct fake_sqe *sqe, uint64_t at, uint64_t len, uint8_t *buf)
{
	struct copy c = {.flat = buf};

	if (sqe->flags & IBV_SEND_INLINE)
		memcpy(buf, sqe->inline_data + at, len);
	else
		walk(sqe->sge, sqe->nsge, at, len, copy_one, &c);
}

/* In the same pieces as it left, or the sum would differ. */
uint64_t fake_hash_source(const struct fake_qp *qp, const struct fake_sqe *sqe)
{
	uint64_t mtu = qp->context->config->mtu, h = 0;
	uint8_t buf[FAKE_MTU_MAX];

	for (uint64_t at = 0; at < sqe->len; at += mtu) {
		uint64_t len = sqe->len - at < mtu ? sqe->len - at : mtu;

		gather(sqe, at, len, buf);
		h = hash(h, buf, len);
	}
	return h;
}

/* All of it has arrived. Were it sent again, the peer would answer without a look at its memory, so
 * a region there is in use no more; what is behind a WRITE tells its owner so (a READ was read). */
void fake_acknowledge(struct fake_sqe *sqe)
{
	fake_sqe_let_go(sqe);
	sqe->state = FAKE_ACKED;
	sqe->due = fake.step + fake.config.sq_delay;
}

/* Does the peer at @qp's end of a connection get at [addr, addr + len) by @key? */
static bool opens(const struct fake_qp *qp, uint32_t key, uint64_t addr, uint64_t len,
		  unsigned int access)
{
	if (!(qp->access & access))
		return fake_refuse(0, "QP %u grants %#x, not %#x", qp->verbs.qp_num, qp->access,
				   access);
	if (fake_is_window(key))
		return fake_mw_allows(qp, key, addr, len, access);
	if (fake_is_mkey(key))
		return fake_mkey_allows(key, qp->verbs.pd, addr, len, access) &&
		       fake_lkey_allows(key, qp->verbs.pd, addr, len,
					access & IBV_ACCESS_REMOTE_WRITE ? IBV_ACCESS_LOCAL_WRITE
									 : 0);
	return fake_mr_allows(key, true, qp->verbs.pd, addr, len, access);
}

/* ---- READ ---- */

void fake_move_read(struct fake_qp *qp, struct fake_sqe *sqe)
{
	uint64_t len = piece(qp, sqe), from = sqe->remote_addr + sqe->moved;
	struct check sink = {qp->verbs.pd, IBV_ACCESS_LOCAL_WRITE};
	uint8_t buf[FAKE_MTU_MAX];
	struct copy c = {.flat = buf, .to_list = true};

	if (qp->context->config->iwarp)
		sink.access |= IBV_ACCESS_REMOTE_WRITE;
	if (!fake_qp_reachable(qp)) {
		fail(sqe, IBV_WC_RETRY_EXC_ERR, false);
		return;
	}
	qp->peer->mute = false;
	if (len && !opens(qp->peer, sqe->rkey, from, len, IBV_ACCESS_REMOTE_READ)) {
		fail(sqe, IBV_WC_REM_ACCESS_ERR, true);
		return;
	}
	if (!walk(sqe->sge, sqe->nsge, sqe->moved, len, check_one, &sink)) {
		fail(sqe, IBV_WC_LOC_PROT_ERR, true);
		return;
	}
	copy_under(sqe->rkey, from, len, buf, false);
	walk(sqe->sge, sqe->nsge, sqe->moved, len, copy_one, &c);
	sqe->moved += len;
	fake.stats.bytes_read += len;
	if (sqe->moved == sqe->len)
		fake_acknowledge(sqe);
}

/* ---- WRITE and SEND ---- */

static bool is_send(const struct fake_sqe *sqe)
{
	return sqe->opcode == IBV_WR_SEND || sqe->opcode == IBV_WR_SEND_WITH_IMM ||
	       sqe->opcode == IBV_WR_SEND_WITH_INV;
}

/* A SEND takes a RECV with its first piece, a WRITE with immediate with its last. */
static bool takes_recv(const struct fake_sqe *sqe, uint64_t len)
{
	if (is_send(sqe))
		return sqe->moved == 0;
	return sqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM && sqe->moved + len == sqe->len;
}

/* Nobody waits for this message: try again, or give up. 7 retries are for ever. */
static void no_recv(struct fake_qp *qp, struct fake_sqe *sqe)
{
	if (!qp->rnr_waiting)
		qp->rnr_left = qp->rnr_retry;
	else
		qp->rnr_left--; /* who retries for ever does not come here without a RECV */
	if (qp->rnr_left == 0) {
		qp->rnr_waiting = false;
		fail(sqe, IBV_WC_RNR_RETRY_EXC_ERR, false);
		return;
	}
	qp->rnr_waiting = true;
	qp->rnr_due = fake.step + fake.config.rnr_delay + 1;
	fake.stats.rnr_waits++;
}

/* What the message carries besides its bytes. */
static void fill_extra(const struct fake_qp *peer, struct ibv_wc *wc, const struct fake_sqe *sqe)
{
	wc->wc_flags = 0;
	wc->imm_data = 0;
	if (sqe->opcode == IBV_WR_SEND_WITH_INV) {
		wc->wc_flags = peer->context->config->inv_flag_wrong ? IBV_WC_IP_CSUM_OK
								     : IBV_WC_WITH_INV;
		wc->invalidated_rkey = sqe->bind.key;
	} else if (sqe->opcode != IBV_WR_SEND) {
		wc->wc_flags = IBV_WC_WITH_IMM;
		wc->imm_data = sqe->imm;
	}
}

/* The peer's RECV @rqe ends in @status. */
static void end_recv(struct fake_qp *peer, struct fake_rqe *rqe, const struct fake_sqe *sqe,
		     enum ibv_wc_status status)
{
	rqe->wc.status = status;
	rqe->wc.opcode = is_send(sqe) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
	fill_extra(peer, &rqe->wc, sqe);
	rqe->wc.byte_len = (uint32_t)sqe->len;
	rqe->solicited = sqe->flags & IBV_SEND_SOLICITED;
	rqe->due = fake.step + fake.config.rq_delay;
	peer->rq_next++;
}

/* A piece of a SEND into the peer's RECV. False: it failed. */
static bool deliver_send(struct fake_qp *qp, struct fake_sqe *sqe, uint8_t *buf, uint64_t len)
{
	struct fake_qp *peer = qp->peer;
	struct fake_rqe *rqe = fake_rqe(peer, peer->rq_next);
	struct check sink = {peer->verbs.pd, IBV_ACCESS_LOCAL_WRITE};
	struct copy c = {.flat = buf, .to_list = true};

	if (sqe->moved + len > rqe->len) {
		fake_refuse(0, "a SEND of %llu bytes into a RECV of %llu",
			    (unsigned long long)sqe->len, (unsigned long long)rqe->len);
		end_recv(peer, rqe, sqe, IBV_WC_LOC_LEN_ERR);
		fail(sqe, IBV_WC_REM_INV_REQ_ERR, true);
		return false;
	}
	if (!walk(rqe->sge, rqe->nsge, sqe->moved, len, check_one, &sink)) {
		end_recv(peer, rqe, sqe, IBV_WC_LOC_PROT_ERR);
		fail(sqe, IBV_WC_REM_OP_ERR, true);
		return false;
	}
	walk(rqe->sge, rqe->nsge, sqe->moved, len, copy_one, &c);
	fake.stats.bytes_sent += len;
	return true;
}

/* The message is there; what it revokes is revoked before anybody hears of it. */
static bool revoke(struct fake_qp *qp, struct fake_sqe *sqe)
{
	struct fake_qp *peer = qp->peer;

	if (sqe->opcode != IBV_WR_SEND_WITH_INV)
		return true;
	if (fake_is_mkey(sqe->bind.key) ? fake_mkey_revoke(peer, sqe->bind.key, true)
					: fake_mw_revoke(peer, sqe->bind.key))
		return true;
	end_recv(peer, fake_rqe(peer, peer->rq_next), sqe, IBV_WC_REM_INV_REQ_ERR);
	fail(sqe, IBV_WC_REM_OP_ERR, true);
	return false;
}

static bool deliver_write(struct fake_qp *qp, struct fake_sqe *sqe, uint8_t *buf, uint64_t len)
{
	uint64_t to = sqe->remote_addr + sqe->moved;

	if (len == 0)
		return true; /* nobody looks at the key of nothing */
	if (!opens(qp->peer, sqe->rkey, to, len, IBV_ACCESS_REMOTE_WRITE)) {
		fail(sqe, IBV_WC_REM_ACCESS_ERR, true);
		return false;
	}
	copy_under(sqe->rkey, to, len, buf, true);
	fake.stats.bytes_written += len;
	return true;
}

void fake_move_out(struct fake_qp *qp, struct fake_sqe *sqe)
{
	struct check source = {qp->verbs.pd, 0};
	uint64_t len = piece(qp, sqe);
	uint8_t buf[FAKE_MTU_MAX];

	if (!fake_qp_reachable(qp)) {
		fail(sqe, IBV_WC_RETRY_EXC_ERR, false);
		return;
	}
	if (!(sqe->flags & IBV_SEND_INLINE) &&
	    !walk(sqe->sge, sqe->nsge, sqe->moved, len, check_one, &source)) {
		fail(sqe, IBV_WC_LOC_PROT_ERR, true);
		return;
	}
	if (takes_recv(sqe, len) && qp->peer->rq_next == qp->peer->rq_head) {
		no_recv(qp, sqe);
		return;
	}
	qp->rnr_waiting = false;
	gather(sqe, sqe->moved, len, buf);
	if (!(is_send(sqe) ? deliver_send(qp, sqe, buf, len) : deliver_write(qp, sqe, buf, len)))
		return;
	sqe->hash = hash(sqe->moved ? sqe->hash : 0, buf, len);
	sqe->hashed = !(sqe->flags & IBV_SEND_INLINE);
	sqe->moved += len;
	qp->peer->mute = false;
	if (sqe->moved != sqe->len || !revoke(qp, sqe))
		return;
	if (sqe->opcode != IBV_WR_RDMA_WRITE)
		end_recv(qp->peer, fake_rqe(qp->peer, qp->peer->rq_next), sqe, IBV_WC_SUCCESS);
	fake_acknowledge(sqe);
}
