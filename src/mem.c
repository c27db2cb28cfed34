/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory on a device: declare it, register it, count what is registered, find it again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "reg.h"

static uint64_t whole_pages(const void *addr, size_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t first = (uintptr_t)addr / page, end = ((uintptr_t)addr + len + page - 1) / page;

	return (end - first) * page;
}

/* What the kernel counts as pinned by this process, the other end of a loopback included. In bytes.
 */
static uint64_t pinned_by_process(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/self/status", "re");

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmPin: %llu", &kib) == 1)
			break;
	fclose(f);
	return kib * 1024;
}

/* The limit of locked memory, where a registration may have failed for it; else
 * UINT64_MAX. */
static uint64_t memory_limit(int access, int err)
{
	bool by_limit = (err == ENOMEM || err == EPERM) && /* EPERM: the limit is 0 */
			!(access & IBV_ACCESS_ON_DEMAND);
	struct rlimit limit;

	if (!by_limit || getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

/*
 * What else there is to know: how near the limit is, as another thread, here at the other end of a
 * loopback or in another session, may have given back since what it had pinned then; and which
 * pages the kernel does not pin.
 */
static void remark(int err, uint64_t pinned, uint64_t limit, char *said, size_t size)
{
	said[0] = '\0';
	if (limit != UINT64_MAX)
		snprintf(said, size,
			 "; %s are pinned now of the locked-memory limit of %s: see ulimit -l",
			 rxfer_size(pinned).s, rxfer_size(limit).s);
	if (err == EFAULT)
		snprintf(
			said, size,
			"; pages that cannot be pinned: since Linux 6.5 those of a file, unless it is on tmpfs: --mem memfd, or TMPDIR or --mem-file below /dev/shm");
}

/* Registration failed: if a limit explains it, name the limit and the remedy. */
static int reg_mr_failed(const struct rxfer_dev *dev, const void *addr, size_t len, int access,
			 int err)
{
	uint64_t pinned = pinned_by_process(), limit = memory_limit(access, err);
	char also[256];

	if (pinned + whole_pages(addr, len) > limit)
		return rxfer_fail(
			err,
			"registering %s (%s are pinned) exceeds the locked-memory limit of %s: raise it (ulimit -l unlimited; LimitMEMLOCK=infinity in a systemd unit) or use less (--depth, --size, --qps)",
			rxfer_size(len).s, rxfer_size(pinned).s, rxfer_size(limit).s);
	remark(err, pinned, limit, also, sizeof(also));
	return rxfer_fail(err, "ibv_reg_mr of %s on %s: %s (%llu of %u regions are in use%s)",
			  len == SIZE_MAX ? "the whole address space" : rxfer_size(len).s,
			  dev->info.name, strerror(err), (unsigned long long)dev->counts.mr_now,
			  dev->info.max_mr, also);
}

int rxfer_dev_reg_mr(struct rxfer_dev *dev, void *addr, size_t len, int access, struct ibv_mr **mr)
{
	struct rxfer_dev_counts *c = &dev->counts;

	*mr = ibv_reg_mr(dev->pd, addr, len, access);
	if (!*mr)
		return reg_mr_failed(dev, addr, len, access, errno);
	c->mr_total++;
	c->mr_now++;
	if (c->mr_peak < c->mr_now)
		c->mr_peak = c->mr_now;
	if (access & IBV_ACCESS_ON_DEMAND)
		return 0;
	c->pinned_now += whole_pages(addr, len);
	if (c->pinned_peak < c->pinned_now)
		c->pinned_peak = c->pinned_now;
	return 0;
}

static int dereg(struct rxfer_dev *dev, struct ibv_mr *mr, uint64_t pinned)
{
	int err = ibv_dereg_mr(mr);

	if (err)
		return rxfer_fail(err, "ibv_dereg_mr on %s: %s", dev->info.name,
				  strerror(abs(err)));
	dev->counts.mr_now--;
	dev->counts.pinned_now -= pinned;
	return 0;
}

int rxfer_dev_dereg_mr(struct rxfer_dev *dev, struct ibv_mr *mr)
{
	return dereg(dev, mr, whole_pages(mr->addr, mr->length));
}

/* @opens: bytes that the key is for */
static int register_range(struct rxfer_mem *mem, void *base, size_t len, int access, uint64_t opens)
{
	int rc = rxfer_dev_reg_mr(mem->dev, base, len, access, &mem->mr);

	if (rc)
		return rc;
	mem->on_demand = access & IBV_ACCESS_ON_DEMAND;
	if (!(access & (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)))
		return 0;
	return rxfer_grant_open(&mem->dev->ledger, &mem->grant, mem->mr->rkey, opens, rxfer_now());
}

int rxfer_mem_register(struct rxfer_mem *mem)
{
	return rxfer_mem_register_as(mem, rxfer_mem_access(mem));
}

int rxfer_mem_register_as(struct rxfer_mem *mem, int access)
{
	return register_range(mem, mem->base, mem->len, access, mem->len);
}

int rxfer_mem_register_on_demand(struct rxfer_mem *mem, bool all)
{
	int access = rxfer_mem_access(mem) | IBV_ACCESS_ON_DEMAND;

	return all ? register_range(mem, NULL, SIZE_MAX, access, RXFER_ADDRESS_SPACE)
		   : rxfer_mem_register_as(mem, access);
}

void rxfer_mem_unregister(struct rxfer_mem *mem)
{
	uint64_t none;
	int rc;

	if (!mem->mr)
		return;
	rc = mem->on_demand ? dereg(mem->dev, mem->mr, 0) : rxfer_dev_dereg_mr(mem->dev, mem->mr);
	if (!rc && mem->grant.ledger)
		rxfer_grant_proven(&mem->grant, mem->grant.key, rxfer_now(), &none);
	mem->mr = NULL;
}

/* Is it up to the strategy whether, and when, it is registered? */
static bool by_strategy(unsigned int rights)
{
	return !(rights & (RXFER_PEER_READ | RXFER_PEER_WRITE | RXFER_FIXED));
}

static int mem_register(struct rxfer_mem *mem)
{
	if (by_strategy(mem->rights))
		return mem->dev->reg->mem_add(mem->dev, mem);
	if (mem->rights & (RXFER_EXPOSE_READ | RXFER_EXPOSE_WRITE))
		return rxfer_fail(
			EINVAL,
			"memory cannot be exposed I/O by I/O and be registered for good: rights %#x",
			mem->rights);
	return rxfer_mem_register(mem);
}

int rxfer_mem_add(struct rxfer_dev *dev, void *base, size_t len, unsigned int rights,
		  struct rxfer_mem **out)
{
	struct rxfer_mem *mem = calloc(1, sizeof(*mem));
	int rc;

	if (!mem)
		return rxfer_fail(ENOMEM, "out of memory");
	*mem = (struct rxfer_mem){
		.dev = dev, .base = base, .end = (char *)base + len, .len = len, .rights = rights};
	rc = mem_register(mem);
	if (rc) {
		free(mem);
		return rc;
	}
	mem->lkey = mem->mr ? mem->mr->lkey : 0;
	mem->next = dev->mems;
	dev->mems = mem;
	*out = mem;
	return 0;
}

void rxfer_mem_del(struct rxfer_mem *mem)
{
	struct rxfer_mem **p;

	if (!mem)
		return;
	for (p = &mem->dev->mems; *p != mem; p = &(*p)->next)
		;
	*p = mem->next;
	mem->dev->generation++;
	if (mem->dev->found == mem)
		mem->dev->found = &mem->dev->nowhere;
	if (by_strategy(mem->rights))
		mem->dev->reg->mem_del(mem->dev, mem);
	else
		rxfer_mem_unregister(mem);
	free(mem);
}

int rxfer_mem_forget(struct rxfer_dev *dev, const void *addr, size_t len)
{
	const char *from = addr, *end = from + len;
	int rc = 0, this;

	for (struct rxfer_mem *m = dev->mems; dev->reg->forget && m; m = m->next) {
		if (end <= m->base || from >= m->end)
			continue;
		this = dev->reg->forget(dev, m, addr, len);
		if (this)
			rc = this;
	}
	return rc;
}

uint32_t rxfer_mem_rkey(const struct rxfer_mem *mem)
{
	return mem->mr ? mem->mr->rkey : 0;
}

/* A device that tells no remote key of a region without remote rights knows it by the local one. */
uint32_t rxfer_mem_below(const struct rxfer_mem *mem)
{
	if (!mem->mr)
		return 0;
	return mem->mr->rkey ? mem->mr->rkey : mem->mr->lkey;
}

struct rxfer_mem *rxfer_mem_search(struct rxfer_dev *dev, const void *addr, size_t len)
{
	for (struct rxfer_mem *m = dev->mems; m; m = m->next)
		if (rxfer_mem_contains(m, addr, len))
			return dev->found = m;
	return NULL;
}
