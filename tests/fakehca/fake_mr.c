/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory regions and their keys. A key is a slot and that slot's generation, so that a key of a
 * region that is gone opens nothing, even where the slot is in use again. An lkey is no rkey: the
 * top bit tells them apart, and who mixes them up is refused. The bit below it is a window's,
 * or alone an mkey's.
 *
 * Regions on demand (IBV_ACCESS_ON_DEMAND) may hold what is not mapped; only who uses that is
 * refused.
 */
#include <sys/mman.h>
#include <unistd.h>
#include "fake_internal.h"

#undef ibv_reg_mr

#define GENERATION_BITS 12
#define GENERATION_MASK ((1u << GENERATION_BITS) - 1)
#define REMOTE		(1u << 31)
#define MAX_SLOTS	(1u << (30 - GENERATION_BITS))

static void release(struct fake_object *object)
{
	struct fake_mr *mr = FAKE_OF(object, struct fake_mr);
	uint32_t slot = (mr->verbs.lkey & ~REMOTE) >> GENERATION_BITS;

	fake.mr[slot] = NULL;
	fake.mr_free[fake.mr_nfree++] = slot;
	free(mr);
}

void fake_mr_forget_slots(void)
{
	free(fake.mr);
	free(fake.mr_generation);
	free(fake.mr_free);
	fake.mr = NULL;
	fake.mr_generation = NULL;
	fake.mr_free = NULL;
	fake.mr_slots = fake.mr_nfree = 0;
}

/* Twice as many slots; false without memory. */
static bool more_slots(void)
{
	uint32_t before = fake.mr_slots, n = before ? 2 * before : 64;
	struct fake_mr **mr = n <= MAX_SLOTS ? realloc(fake.mr, n * sizeof(*mr)) : NULL;
	uint16_t *generation = realloc(fake.mr_generation, n * sizeof(*generation));
	uint32_t *list = realloc(fake.mr_free, n * sizeof(*list));

	fake.mr = mr ? mr : fake.mr;
	fake.mr_generation = generation ? generation : fake.mr_generation;
	fake.mr_free = list ? list : fake.mr_free;
	if (!mr || !generation || !list)
		return false;
	memset(mr + before, 0, (n - before) * sizeof(*mr));
	memset(generation + before, 0, (n - before) * sizeof(*generation));
	for (uint32_t slot = n - 1; slot > 0 && slot >= before; slot--) /* never 0, nor key 0 */
		list[fake.mr_nfree++] = slot;
	fake.mr_slots = n;
	return true;
}

/* As with max_mw: it takes no configuration to be iWARP as iWARP is. */
uint32_t fake_odp(const struct fake_device *d)
{
	return d->iwarp ? 0 : d->odp;
}

/* Paged on demand, all of the address space included; nothing else can be that large. */
static int check_paging(const struct fake_device *d, size_t len, unsigned int access)
{
	if (access & IBV_ACCESS_ON_DEMAND && !fake_odp(d))
		return fake_refuse(EOPNOTSUPP, "ibv_reg_mr: no on-demand paging");
	if (len == SIZE_MAX && !(access & IBV_ACCESS_ON_DEMAND && d->odp_implicit))
		return fake_refuse(EINVAL, "ibv_reg_mr: no region over all of the address space");
	return 0;
}

static int check_args(const struct ibv_pd *pd, size_t len, unsigned int access)
{
	const struct fake_device *d = fake_context(pd->context)->config;
	int err = fake_fault(&fake.config.fail_reg_mr);

	if (err)
		return err;
	if (len == 0)
		return fake_refuse(EINVAL, "ibv_reg_mr: no bytes");
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return fake_refuse(EINVAL, "ibv_reg_mr: REMOTE_WRITE needs LOCAL_WRITE");
	if (fake.count[FAKE_MR] >= d->max_mr)
		return fake_refuse(ENOMEM, "ibv_reg_mr: %u regions of %u", fake.count[FAKE_MR],
				   d->max_mr);
	if (fake.mr_nfree == 0 && !more_slots())
		return ENOMEM;
	return check_paging(d, len, access);
}

/* Is this the one that never comes back? Without the lock: others go on. */
static void get_stuck(void)
{
	bool stuck;

	fake_lock();
	stuck = fake.config.stuck_reg_mr && --fake.config.stuck_reg_mr == 0;
	fake_unlock();
	while (stuck)
		pause();
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t len, unsigned int access)
{
	struct fake_mr *mr;
	uint32_t slot;
	int err;

	get_stuck();
	fake_lock();
	err = check_args(pd, len, access);
	mr = err ? NULL : calloc(1, sizeof(*mr));
	if (!mr)
		goto out;
	slot = fake.mr_free[--fake.mr_nfree];
	fake.mr[slot] = mr;
	fake.mr_generation[slot] = (fake.mr_generation[slot] + 1) & GENERATION_MASK;
	mr->access = access;
	mr->verbs = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = len};
	mr->verbs.lkey = slot << GENERATION_BITS | fake.mr_generation[slot];
	mr->verbs.rkey = mr->verbs.lkey | REMOTE;
	((struct fake_pd *)(void *)pd)->users++;
	fake_object_add(&mr->object, FAKE_MR, release);
	fake.stats.reg_mr++;
out:
	fake_unlock();
	errno = err ? err : errno;
	return mr ? &mr->verbs : NULL;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return reg_mr(pd, addr, len, (unsigned int)access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				unsigned int access)
{
	if (iova != (uintptr_t)addr) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return reg_mr(pd, addr, len, access);
}

int ibv_dereg_mr(struct ibv_mr *verbs)
{
	struct fake_mr *mr = (struct fake_mr *)(void *)verbs;
	int err;

	fake_lock();
	err = fake_fault(&fake.config.fail_dereg_mr);
	if (!err && mr->bound) {
		fake_violate(
			"ibv_dereg_mr: %u windows or lists are bound to the region of %zu bytes",
			mr->bound, verbs->length);
		err = EBUSY;
	}
	if (err)
		goto out;
	if (mr->users)
		fake_violate("ibv_dereg_mr: %u WRs that are not proven done name the region of "
			     "%zu bytes (lkey %#x)",
			     mr->users, verbs->length, verbs->lkey);
	((struct fake_pd *)(void *)verbs->pd)->users--;
	fake_object_del(&mr->object);
	fake.stats.dereg_mr++;
out:
	fake_unlock();
	return fake.config.negative_errno ? -err : err;
}

/* ---- Keys ---- */

struct fake_mr *fake_mr_find(uint32_t key, bool remote)
{
	uint32_t slot = (key & ~REMOTE) >> GENERATION_BITS;

	if (slot >= fake.mr_slots || !fake.mr[slot])
		return NULL;
	return (fake.mr[slot]->verbs.lkey | (remote ? REMOTE : 0)) == key ? fake.mr[slot] : NULL;
}

/* mincore() says -ENOMEM of a page that is not mapped. */
static bool mapped(uint64_t addr, uint64_t len)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned char in_core;

	for (uint64_t at = addr - addr % page; at < addr + len; at += page)
		if (mincore((void *)(uintptr_t)at, 1, &in_core))
			return false;
	return true;
}

bool fake_mr_allows(uint32_t key, bool remote, const struct ibv_pd *pd, uint64_t addr, uint64_t len,
		    unsigned int access)
{
	const struct fake_mr *mr = fake_mr_find(key, remote);
	const char *kind = remote ? "rkey" : "lkey";
	uint64_t base;

	if (!mr)
		return fake_refuse(0, "%s %#x opens no region", kind, key);
	if (mr->verbs.pd != pd)
		return fake_refuse(0, "%s %#x is of another PD", kind, key);
	base = (uintptr_t)mr->verbs.addr; /* below it the difference is huge */
	if (len > mr->verbs.length || addr - base > mr->verbs.length - len)
		return fake_refuse(0, "%s %#x: [%#llx, +%llu) is outside [%#llx, +%zu)", kind, key,
				   (unsigned long long)addr, (unsigned long long)len,
				   (unsigned long long)base, mr->verbs.length);
	if ((mr->access & access) != access)
		return fake_refuse(0, "%s %#x grants %#x, not %#x", kind, key, mr->access, access);
	if (mr->access & IBV_ACCESS_ON_DEMAND && !mapped(addr, len))
		return fake_refuse(0, "%s %#x: [%#llx, +%llu) is not mapped", kind, key,
				   (unsigned long long)addr, (unsigned long long)len);
	return true;
}

/* All pieces, or none of them. */
static int advice_refused(const struct ibv_pd *pd, const struct ibv_sge *sge, uint32_t n,
			  unsigned int access)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct fake_mr *mr = fake_mr_find(sge[i].lkey, false);

		if (mr && !(mr->access & IBV_ACCESS_ON_DEMAND))
			return fake_refuse(EINVAL, "ibv_advise_mr: lkey %#x pages nothing",
					   sge[i].lkey);
		if (!fake_mr_allows(sge[i].lkey, false, pd, sge[i].addr, sge[i].length, access))
			return EFAULT;
	}
	return 0;
}

int fake_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		   struct ibv_sge *sge, uint32_t n)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	int err;

	(void)flags;
	fake_lock();
	err = n ? advice_refused(pd, sge, n, write ? IBV_ACCESS_LOCAL_WRITE : 0)
		: fake_refuse(EINVAL, "ibv_advise_mr: of nothing");
	fake.stats.advices += !err;
	for (uint32_t i = 0; !err && i < n; i++)
		fake.stats.prefetched += sge[i].length;
	fake_unlock();
	return err;
}

void fake_mr_use(uint32_t key, bool remote, int32_t change)
{
	struct fake_mr *mr = fake_mr_find(key, remote);

	if (mr)
		mr->users = (uint32_t)((int32_t)mr->users + change);
}
