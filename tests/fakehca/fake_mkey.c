/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mkeys of mlx5, as its manual pages and its driver have them: a key to a list of pieces of
 * regions, given and taken back by work requests.
 *
 *	        UMR: a list, rights, and the lower 8 bits of the key
 *	make ──► free ─────────────────────────────────────────────► set
 *	          ▲                                                   │
 *	          └── LOCAL_INV, a message of the peer's if the mkey ─┘
 *	              is made so: these bits are 0 again
 *
 * Addresses under the key count from 0, through the pieces in their order, on either side: it is an
 * lkey and an rkey at once. Any queue pair of its protection domain may use it.
 *
 * The device would take a list in place of another; here it is a violation, since the manual has a
 * LOCAL_INV between. So is to touch a list while a WR in front of that in the same queue, which no
 * completion has proven, has it as its own memory: who sends again reads again.
 *
 * Keys have the second bit set and not the first; regions have not that many slots (fake_mr.c).
 */
#include "fake_internal.h"

#define KEY_BITS 8
#define KEY_MASK ((1u << KEY_BITS) - 1)
#define MKEY	 (1u << 30)

bool fake_is_mkey(uint32_t key)
{
	return key >> 30 == 1;
}

static uint32_t slot_of(uint32_t key)
{
	return (key & ~MKEY) >> KEY_BITS;
}

struct fake_mkey *fake_mkey_find(uint32_t key)
{
	return fake_is_mkey(key) && slot_of(key) < fake.mkeys ? fake.mkey[slot_of(key)] : NULL;
}

static void release(struct fake_object *object)
{
	struct fake_mkey *mkey = FAKE_OF(object, struct fake_mkey);

	fake.mkey[slot_of(mkey->key)] = NULL;
	free(mkey->sge);
	free(mkey);
}

void fake_mkey_forget_slots(void)
{
	free(fake.mkey);
	fake.mkey = NULL;
	fake.mkeys = 0;
}

/* ---- Making ---- */

struct fake_mkey *fake_mkey_make(struct ibv_pd *pd, uint32_t max, bool peer_revokes, bool tags)
{
	struct fake_mkey **all = realloc(fake.mkey, (fake.mkeys + 1) * sizeof(*all));
	struct fake_mkey *mkey = calloc(1, sizeof(*mkey));

	if (!all || !mkey)
		abort();
	fake.mkey = all;
	all[fake.mkeys] = mkey;
	*mkey = (struct fake_mkey){.pd = (struct fake_pd *)(void *)pd,
				   .key = MKEY | fake.mkeys++ << KEY_BITS,
				   .peer_revokes = peer_revokes,
				   .tags = tags,
				   .max = max,
				   .sge = calloc(max, sizeof(struct ibv_sge))};
	if (!mkey->sge)
		abort();
	mkey->pd->users++;
	fake_object_add(&mkey->object, FAKE_MKEY, release);
	fake.stats.create_mkey++;
	return mkey;
}

static void bind_pieces(const struct fake_mkey *mkey, int change)
{
	for (uint32_t i = 0; i < mkey->n; i++) {
		struct fake_mr *mr = fake_mr_find(mkey->sge[i].lkey, false);

		if (mr)
			mr->bound += (uint32_t)change;
	}
}

static void unset(struct fake_mkey *mkey)
{
	bind_pieces(mkey, -1);
	mkey->set = false;
	mkey->n = 0;
	mkey->key &= ~KEY_MASK;
}

int fake_mkey_drop(struct fake_mkey *mkey)
{
	int err = fake_fault(&fake.config.fail_destroy_mkey);

	if (err)
		return err;
	bind_pieces(mkey, -1);
	mkey->pd->users--;
	fake_object_del(&mkey->object);
	fake.stats.destroy_mkey++;
	return 0;
}

/* ---- Work requests ---- */

static bool names(const struct fake_sqe *sqe, const struct fake_mkey *mkey)
{
	for (uint32_t i = 0; i < sqe->nsge; i++)
		if (fake_mkey_find(sqe->sge[i].lkey) == mkey)
			return true;
	return false;
}

static void check_users(const struct fake_qp *qp, const struct fake_mkey *mkey)
{
	for (uint64_t seq = qp->tail; seq != qp->issue; seq++)
		if (names(fake_sqe(qp, seq), mkey))
			fake_violate("the list of key %#x changes, and WR %#llx (QP %u), which is "
				     "not proven done, has it as its memory",
				     mkey->key, (unsigned long long)fake_sqe(qp, seq)->wr_id,
				     qp->verbs.qp_num);
}

static bool check_umr(const struct fake_qp *qp, const struct fake_mkey *mkey,
		      const struct fake_sqe *sqe)
{
	if (!mkey)
		return fake_refuse(0, "a UMR of key %#x, which is no mkey", sqe->bind.new_key);
	if (&mkey->pd->verbs != qp->verbs.pd)
		return fake_refuse(0, "a UMR of an mkey of another PD");
	if (sqe->nlist > mkey->max)
		return fake_refuse(0, "a UMR of %u pieces, the mkey has room for %u", sqe->nlist,
				   mkey->max);
	for (uint32_t i = 0; i < sqe->nlist; i++)
		if (!fake_mr_allows(sqe->list[i].lkey, false, qp->verbs.pd, sqe->list[i].addr,
				    sqe->list[i].length, 0))
			return false;
	return true;
}

enum ibv_wc_status fake_mkey_execute(struct fake_qp *qp, const struct fake_sqe *sqe)
{
	struct fake_mkey *mkey = fake_mkey_find(sqe->bind.new_key);

	if (!check_umr(qp, mkey, sqe))
		return IBV_WC_MW_BIND_ERR;
	if (mkey->set)
		fake_violate("key %#x is given a list, and has one", mkey->key);
	check_users(qp, mkey);
	unset(mkey);
	memcpy(mkey->sge, sqe->list, sqe->nlist * sizeof(mkey->sge[0]));
	mkey->n = sqe->nlist;
	mkey->len = 0;
	for (uint32_t i = 0; i < mkey->n; i++)
		mkey->len += mkey->sge[i].length;
	mkey->key = sqe->bind.new_key;
	mkey->access = sqe->bind.access;
	mkey->set = mkey->was_set = true;
	bind_pieces(mkey, 1);
	fake.stats.umrs++;
	return IBV_WC_SUCCESS;
}

bool fake_mkey_revoke(const struct fake_qp *qp, uint32_t key, bool by_peer)
{
	struct fake_mkey *mkey = fake_mkey_find(key);

	if (!mkey || &mkey->pd->verbs != qp->verbs.pd)
		return fake_refuse(0, "key %#x, to be revoked, is no mkey's of this PD", key);
	if (!mkey->set) {
		fake_violate(mkey->was_set ? "key revoked twice: %#x, by QP %u"
					   : "key revoked that was never granted: %#x, by QP %u",
			     key, qp->verbs.qp_num);
		return fake_refuse(0, "key %#x, to be revoked, grants nothing", key);
	}
	if (mkey->key != key)
		return fake_refuse(0, "key %#x, to be revoked, is %#x now", key, mkey->key);
	if (by_peer && !mkey->peer_revokes)
		return fake_refuse(0, "key %#x is none that the peer may revoke", key);
	if (!by_peer)
		check_users(qp, mkey);
	if (!qp->context->config->mw_stays)
		unset(mkey);
	fake.stats.umr_invalidates++;
	return true;
}

/* ---- Access ---- */

bool fake_mkey_allows(uint32_t key, const struct ibv_pd *pd, uint64_t addr, uint64_t len,
		      unsigned int access)
{
	const struct fake_mkey *mkey = fake_mkey_find(key);

	if (!mkey || !mkey->set || mkey->key != key)
		return fake_refuse(0, "key %#x opens no list", key);
	if (&mkey->pd->verbs != pd)
		return fake_refuse(0, "key %#x is of another PD", key);
	if (len > mkey->len || addr > mkey->len - len)
		return fake_refuse(0, "key %#x: [%#llx, +%llu) is outside [0, +%llu)", key,
				   (unsigned long long)addr, (unsigned long long)len,
				   (unsigned long long)mkey->len);
	if ((mkey->access & access) != access)
		return fake_refuse(0, "key %#x grants %#x, not %#x", key, mkey->access, access);
	return true;
}
