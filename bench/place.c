/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Placement by the machine. It is settled before any buffer, QP or CQ is made: providers allocate
 * the rings of a QP in this process, when it is made and by the policy of the thread that makes it.
 */
#include <errno.h>
#include <numaif.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "place.h"
#include "rxfer.h"

#define WORD_BITS (8 * sizeof(unsigned long))

static bool is_near(const char *text)
{
	return !strcmp(text, PLACE_NEAR);
}

static int near_node(const char *option, const struct cfg *cfg, const cpu_set_t *nodes)
{
	struct rxfer_dev_info info;
	struct rxfer_dev *dev;
	int rc = rxfer_dev_open(cfg->device, "global", &dev);

	if (rc)
		return rc;
	info = *rxfer_dev_info(dev);
	rxfer_dev_close(dev);
	return place_near(option, info.name, info.numa_node, nodes);
}

static int near_cpus(const struct cfg *cfg, const struct topo *topo, const cpu_set_t *nodes,
		     struct place_list *out)
{
	int node = near_node("cpu", cfg, nodes);
	char there[128];

	if (node < 0)
		return node;
	out->n = topo_node_cpus(topo, node, out->cpu, CPU_SETSIZE);
	if (out->n)
		return 0;
	return rxfer_fail(
		ENODEV,
		"--cpu near: NUMA node %d, where the device is, has no CPU for this process, which has %s: say some of these",
		node, place_set_text(&topo->allowed, there, sizeof(there)));
}

static int make_cpus(const struct cfg *cfg, const struct topo *topo, const cpu_set_t *nodes,
		     struct place_list *out)
{
	char why[256];

	if (is_near(cfg->cpu))
		return near_cpus(cfg, topo, nodes, out);
	if (place_list_parse(cfg->cpu, out, why, sizeof(why)))
		return rxfer_fail(EINVAL, "--cpu %s: %s", cfg->cpu, why);
	return place_list_there(out, &topo->allowed);
}

static int make_node(const struct cfg *cfg, const cpu_set_t *nodes, int *out)
{
	int rc, node = is_near(cfg->numa) ? near_node("numa", cfg, nodes) : atoi(cfg->numa);

	if (node < 0)
		return node;
	rc = place_node_there(node, nodes);
	if (!rc)
		*out = node;
	return rc;
}

int place_make(const struct cfg *cfg, const struct topo *topo, struct place *out)
{
	cpu_set_t nodes;
	int rc;

	*out = (struct place){.node = -1};
	if (!cfg->cpu[0] && !cfg->numa[0])
		return 0;
	rc = topo_nodes(&nodes);
	if (!rc && cfg->cpu[0])
		rc = make_cpus(cfg, topo, &nodes, &out->cpus);
	if (!rc && cfg->numa[0])
		rc = make_node(cfg, &nodes, &out->node);
	return rc;
}

int place_memory(const struct place *p)
{
	unsigned long mask[CPU_SETSIZE / WORD_BITS] = {0};

	if (p->node < 0)
		return 0;
	mask[(size_t)p->node / WORD_BITS] = 1ul << (size_t)p->node % WORD_BITS;
	/* The kernel takes one bit less than it is told of. */
	if (set_mempolicy(MPOL_BIND, mask, CPU_SETSIZE + 1))
		return rxfer_fail(errno,
				  "--numa: binding memory to NUMA node %d: %s; take another node",
				  p->node, strerror(errno));
	return 0;
}

/* Free, or the kernel's to take back: it does not say as much of a node as of the machine. */
static uint64_t node_available(unsigned int node)
{
	unsigned long long kib, idle = 0, file = 0, shmem = 0, slab = 0;
	char path[80], line[128], name[32];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/meminfo", node);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Node %*u %31[^:]: %llu", name, &kib) != 2)
			continue;
		idle = strcmp(name, "MemFree") ? idle : kib;
		file = strcmp(name, "FilePages") ? file : kib;
		shmem = strcmp(name, "Shmem") ? shmem : kib;
		slab = strcmp(name, "SReclaimable") ? slab : kib;
	}
	if (f)
		fclose(f);
	return (idle + slab + (file > shmem ? file - shmem : 0)) * 1024;
}

uint64_t place_available(void)
{
	unsigned long mask[CPU_SETSIZE / WORD_BITS] = {0};
	uint64_t sum = 0;
	int policy;

	if (get_mempolicy(&policy, mask, CPU_SETSIZE, NULL, 0) || policy != MPOL_BIND)
		return UINT64_MAX;
	for (unsigned int node = 0; node < CPU_SETSIZE; node++)
		if (mask[node / WORD_BITS] & 1ul << node % WORD_BITS)
			sum += node_available(node);
	return sum ? sum : UINT64_MAX;
}

int place_thread(const struct place *p, unsigned int which)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	if (p->cpus.n) {
		CPU_SET(p->cpus.cpu[which % p->cpus.n], &one);
		if (sched_setaffinity(0, sizeof(one), &one))
			return rxfer_fail(errno, "--cpu: binding a thread to CPU %d: %s",
					  p->cpus.cpu[which % p->cpus.n], strerror(errno));
	}
	return place_memory(p);
}
