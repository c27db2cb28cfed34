/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory windows of type 2B: keys to a part of a region, given and taken back by work requests.
 *
 *	            BIND_MW: the low 8 bits of the key change
 *	alloc ──► free ───────────────────────────────────────► bound to a QP
 *	           ▲                                              │
 *	           └── LOCAL_INV, the peer's SEND_WITH_INV, ──────┘
 *	               or the QP is destroyed: the key stays as it is
 *
 * The upper 24 bits of a key are the window, so that after 256 binds an old key opens again what it
 * opened once. mw->rkey is its user's to keep: the driver takes the current key from there, and a
 * BIND whose idea of it differs from the window's own fails.
 *
 * A window that is revoked while nobody holds it makes a kernel with software RDMA fall over, and
 * tells of a program that has lost track: the device refuses, and it is a violation, too.
 *
 * Keys have the two top bits set; regions have not that many slots (fake_mr.c). LOCAL_INV of an
 * mkey is told from that of a window by its key.
 */
#include "fake_internal.h"

#define KEY_BITS    8
#define KEY_MASK    ((1u << KEY_BITS) - 1)
#define WINDOW	    (3u << 30)
#define MAX_WINDOWS ((1u << (30 - KEY_BITS)) - 1)

#define REMOTE_RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define WRITES	      (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* ---- Slots: who uses one again begins with the key behind the last that was there ---- */

static uint32_t slot_of(uint32_t key)
{
	return (key & ~WINDOW) >> KEY_BITS;
}

static void release(struct fake_object *object)
{
	struct fake_mw *mw = FAKE_OF(object, struct fake_mw);
	uint32_t slot = slot_of(mw->rkey);

	fake.mw[slot].mw = NULL;
	fake.mw[slot].next_key = mw->rkey + 1;
	if (!fake.config.mw_numbered_on)
		fake.mw_free[fake.mw_nfree++] = slot;
	free(mw);
}

void fake_mw_forget_slots(void)
{
	free(fake.mw);
	free(fake.mw_free);
	fake.mw = NULL;
	fake.mw_free = NULL;
	fake.mw_slots = fake.mw_nfree = 0;
}

static bool more_slots(void)
{
	uint32_t before = fake.mw_slots, n = before ? 2 * before : 64;
	struct fake_mw_slot *mw = n <= MAX_WINDOWS ? realloc(fake.mw, n * sizeof(*mw)) : NULL;
	uint32_t *list = mw ? realloc(fake.mw_free, n * sizeof(*list)) : NULL;

	fake.mw = mw ? mw : fake.mw;
	fake.mw_free = list ? list : fake.mw_free;
	if (!mw || !list)
		return false;
	memset(mw + before, 0, (n - before) * sizeof(*mw));
	for (uint32_t slot = n; slot-- > before;)
		list[fake.mw_nfree++] = slot;
	fake.mw_slots = n;
	return true;
}

bool fake_is_window(uint32_t key)
{
	return (key & WINDOW) == WINDOW;
}

/* The window that @key is one of, whichever of its keys. */
static struct fake_mw *find(uint32_t key)
{
	uint32_t slot = slot_of(key);

	return fake_is_window(key) && slot < fake.mw_slots ? fake.mw[slot].mw : NULL;
}

/* ---- Making ---- */

uint32_t fake_mw_limit(const struct fake_device *device)
{
	return device->iwarp ? 0 : device->max_mw;
}

static int check_args(const struct ibv_pd *pd, enum ibv_mw_type type)
{
	uint32_t max = fake_mw_limit(fake_context(pd->context)->config);
	int err = fake_fault(&fake.config.fail_alloc_mw);

	if (err)
		return err;
	if (max == 0)
		return fake_refuse(EOPNOTSUPP, "ibv_alloc_mw: the device has no windows");
	if (type != IBV_MW_TYPE_2)
		return fake_refuse(EINVAL, "ibv_alloc_mw: type %d", type);
	if (fake.count[FAKE_MW] >= max)
		return fake_refuse(ENOMEM, "ibv_alloc_mw: %u windows of %u", fake.count[FAKE_MW],
				   max);
	return fake.mw_nfree == 0 && !more_slots() ? ENOMEM : 0;
}

struct ibv_mw *fake_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct fake_mw *mw;
	uint32_t slot;
	int err;

	fake_lock();
	err = check_args(pd, type);
	mw = err ? NULL : calloc(1, sizeof(*mw));
	if (!mw)
		goto out;
	slot = fake.mw_free[--fake.mw_nfree];
	fake.mw[slot].mw = mw;
	mw->rkey = WINDOW | slot << KEY_BITS | (fake.mw[slot].next_key & KEY_MASK);
	mw->verbs = (struct ibv_mw){
		.context = pd->context, .pd = pd, .rkey = mw->rkey, .handle = slot, .type = type};
	((struct fake_pd *)(void *)pd)->users++;
	fake_object_add(&mw->object, FAKE_MW, release);
	fake.stats.alloc_mw++;
out:
	fake_unlock();
	errno = err ? err : errno;
	return mw ? &mw->verbs : NULL;
}

static void unbind(struct fake_mw *mw)
{
	if (mw->mr)
		mw->mr->bound--;
	mw->mr = NULL;
	mw->qp = NULL;
}

/* A bound one is closed by it. */
int fake_dealloc_mw(struct ibv_mw *verbs)
{
	struct fake_mw *mw = (struct fake_mw *)(void *)verbs;
	int err;

	fake_lock();
	err = fake_fault(&fake.config.fail_dealloc_mw);
	if (!err) {
		unbind(mw);
		((struct fake_pd *)(void *)verbs->pd)->users--;
		fake_object_del(&mw->object);
		fake.stats.dealloc_mw++;
	}
	fake_unlock();
	return fake.config.negative_errno ? -err : err;
}

void fake_mw_forget_qp(const struct fake_qp *qp)
{
	for (struct fake_object *o = fake.objects[FAKE_MW]; o; o = o->next)
		if (FAKE_OF(o, struct fake_mw)->qp == qp) {
			unbind(FAKE_OF(o, struct fake_mw));
			fake.stats.mw_outlived++;
		}
}

/* ---- Posting ---- */

static int check_bind(const struct ibv_send_wr *wr)
{
	if (wr->num_sge || wr->imm_data)
		return fake_refuse(EINVAL, "ibv_post_send: a BIND with %d SGEs, imm_data %#x",
				   wr->num_sge, wr->imm_data);
	if (!wr->bind_mw.mw || !wr->bind_mw.bind_info.mr)
		return fake_refuse(EINVAL, "ibv_post_send: a BIND without a window or a region");
	return 0;
}

int fake_mw_check_post(const struct fake_qp *qp, const struct ibv_send_wr *wr)
{
	if (wr->opcode != IBV_WR_BIND_MW && wr->opcode != IBV_WR_LOCAL_INV)
		return 0;
	if (fake_mw_limit(qp->context->config) == 0 && !qp->context->config->mlx5)
		return fake_refuse(EINVAL, "ibv_post_send: the device has no windows");
	if (wr->opcode == IBV_WR_BIND_MW)
		return check_bind(wr);
	if (wr->num_sge)
		return fake_refuse(EINVAL, "ibv_post_send: a LOCAL_INV with %d SGEs", wr->num_sge);
	return 0;
}

/* What the driver copies from the user's structs; nobody looks at them again. */
void fake_mw_queue(struct fake_sqe *sqe, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

	if (wr->opcode == IBV_WR_LOCAL_INV || wr->opcode == IBV_WR_SEND_WITH_INV)
		sqe->bind.key = wr->invalidate_rkey;
	if (wr->opcode != IBV_WR_BIND_MW)
		return;
	sqe->bind = (struct fake_bind){
		.key = wr->bind_mw.mw->rkey,
		.new_key = wr->bind_mw.rkey,
		.lkey = info->mr->lkey,
		.addr = info->addr,
		.len = info->length,
		.access = info->mw_access_flags,
	};
	fake_mr_use(sqe->bind.lkey, false, 1);
}

/* ---- Execution ---- */

static bool check_key(const struct fake_mw *mw, const struct fake_bind *b)
{
	if (!mw)
		return fake_refuse(0, "a BIND of key %#x, which is no window", b->key);
	if (mw->rkey != b->key)
		return fake_refuse(0, "a BIND with mw->rkey %#x, and the window's key is %#x",
				   b->key, mw->rkey);
	if (mw->qp)
		return fake_refuse(0, "a BIND of the window %#x, which is bound", b->key);
	if (b->new_key >> KEY_BITS != b->key >> KEY_BITS)
		return fake_refuse(0, "a BIND of the window %#x to the key %#x of another", b->key,
				   b->new_key);
	if (b->new_key == b->key)
		return fake_refuse(0, "a BIND of the window %#x to the key it has", b->key);
	return true;
}

/* Domain, bounds and rights are as a local access's: of the region that is named. */
static bool check_range(const struct fake_qp *qp, const struct fake_mw *mw,
			const struct fake_bind *b)
{
	unsigned int needs = IBV_ACCESS_MW_BIND;

	if (b->len == 0)
		return fake_refuse(0, "a BIND of no bytes");
	if (b->access & ~(unsigned int)REMOTE_RIGHTS)
		return fake_refuse(0, "a BIND with rights %#x", b->access);
	if (mw->verbs.pd != qp->verbs.pd)
		return fake_refuse(0, "a BIND of a window of another PD");
	if (b->access & WRITES)
		needs |= IBV_ACCESS_LOCAL_WRITE;
	return fake_mr_allows(b->lkey, false, qp->verbs.pd, b->addr, b->len, needs);
}

static bool told_to_fail(void)
{
	if (fake.config.fail_bind == 0 || --fake.config.fail_bind)
		return false;
	fake_refuse(0, "told to fail");
	return true;
}

static enum ibv_wc_status execute_bind(struct fake_qp *qp, const struct fake_bind *b)
{
	struct fake_mw *mw = find(b->key);

	if (told_to_fail() || !check_key(mw, b) || !check_range(qp, mw, b))
		return IBV_WC_MW_BIND_ERR;
	mw->rkey = b->new_key;
	mw->qp = qp;
	mw->mr = fake_mr_find(b->lkey, false);
	mw->mr->bound++;
	mw->addr = b->addr;
	mw->len = b->len;
	mw->access = b->access;
	mw->was_bound = true;
	fake.stats.binds++;
	return IBV_WC_SUCCESS;
}

bool fake_mw_revoke(const struct fake_qp *qp, uint32_t key)
{
	struct fake_mw *mw = find(key);

	if (!mw || mw->rkey != key)
		return fake_refuse(0, "key %#x, to be revoked, is no window's", key);
	if (!mw->qp) {
		fake_violate(mw->was_bound ? "key revoked twice: %#x, by QP %u"
					   : "key revoked that was never granted: %#x, by QP %u",
			     key, qp->verbs.qp_num);
		return fake_refuse(0, "key %#x, to be revoked, grants nothing", key);
	}
	if (mw->qp != qp)
		return fake_refuse(0, "key %#x, to be revoked, is of another QP", key);
	if (!qp->context->config->mw_stays)
		unbind(mw);
	fake.stats.invalidates++;
	return true;
}

enum ibv_wc_status fake_mw_execute(struct fake_qp *qp, const struct fake_sqe *sqe)
{
	if (sqe->opcode == IBV_WR_BIND_MW)
		return execute_bind(qp, &sqe->bind);
	if (fake_is_mkey(sqe->bind.key))
		return fake_mkey_revoke(qp, sqe->bind.key, false) ? IBV_WC_SUCCESS
								  : IBV_WC_LOC_QP_OP_ERR;
	return fake_mw_revoke(qp, sqe->bind.key) ? IBV_WC_SUCCESS : IBV_WC_LOC_QP_OP_ERR;
}

/* ---- The peer's access ---- */

static bool in_bounds(const struct fake_qp *qp, const struct fake_mw *mw, uint64_t addr,
		      uint64_t len)
{
	bool wide = qp->context->config->mw_wide;
	uint64_t base = wide ? (uintptr_t)mw->mr->verbs.addr : mw->addr;
	uint64_t room = wide ? mw->mr->verbs.length : mw->len;

	return len <= room && addr - base <= room - len;
}

bool fake_mw_allows(const struct fake_qp *qp, uint32_t key, uint64_t addr, uint64_t len,
		    unsigned int access)
{
	const struct fake_mw *mw = find(key);

	if (!mw || !mw->qp || mw->rkey != key)
		return fake_refuse(0, "rkey %#x opens no window", key);
	if (mw->qp != qp)
		return fake_refuse(0, "rkey %#x is of another QP", key);
	if (!in_bounds(qp, mw, addr, len))
		return fake_refuse(0, "rkey %#x: [%#llx, +%llu) is outside [%#llx, +%llu)", key,
				   (unsigned long long)addr, (unsigned long long)len,
				   (unsigned long long)mw->addr, (unsigned long long)mw->len);
	if ((mw->access & access) != access)
		return fake_refuse(0, "rkey %#x grants %#x, not %#x", key, mw->access, access);
	return true;
}
