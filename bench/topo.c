/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <hwloc.h>
#include <numa.h>
#include <sched.h>
#include "rxfer.h"
#include "topo.h"

/* NULL: hwloc cannot tell. */
static hwloc_topology_t load(void)
{
	hwloc_topology_t topology;

	if (hwloc_topology_init(&topology))
		return NULL;
	if (!hwloc_topology_load(topology))
		return topology;
	hwloc_topology_destroy(topology);
	return NULL;
}

/* The first CPU of each core that we may use; without hwloc's knowledge each CPU is a core. */
static void find_cores(struct topo *t, hwloc_topology_t topology, const cpu_set_t *allowed)
{
	int n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);

	for (int i = 0; i < n && t->cores < TOPO_CORES; i++) {
		hwloc_obj_t core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, (unsigned int)i);
		int cpu = -1;

		while ((cpu = hwloc_bitmap_next(core->cpuset, cpu)) >= 0)
			if (cpu < CPU_SETSIZE && CPU_ISSET(cpu, allowed))
				break;
		if (cpu >= 0)
			t->core[t->cores++] = cpu;
	}
}

void topo_init(struct topo *t)
{
	hwloc_topology_t topology;

	*t = (struct topo){.cpus = 1};
	if (sched_getaffinity(0, sizeof(t->allowed), &t->allowed))
		return;
	t->cpus = (unsigned int)CPU_COUNT(&t->allowed);
	topology = load();
	if (!topology)
		return;
	find_cores(t, topology, &t->allowed);
	hwloc_topology_destroy(topology);
}

void topo_pin(const struct topo *t, unsigned int which)
{
	cpu_set_t one;

	if (t->cores < TOPO_CORES)
		return;
	CPU_ZERO(&one);
	CPU_SET(t->core[which], &one);
	if (!sched_setaffinity(0, sizeof(one), &one) && numa_available() >= 0)
		numa_set_localalloc();
}

int topo_nodes(cpu_set_t *out)
{
	hwloc_topology_t topology = load();
	int node = -1;

	CPU_ZERO(out);
	if (!topology)
		return rxfer_fail(EIO, "hwloc cannot tell which NUMA nodes there are");
	while ((node = hwloc_bitmap_next(hwloc_topology_get_topology_nodeset(topology), node)) >= 0)
		if (node < CPU_SETSIZE)
			CPU_SET(node, out);
	hwloc_topology_destroy(topology);
	return 0;
}

/* Take out of @left one CPU of each core, the first one; of what is in no core, all. */
static unsigned int take_turn(hwloc_topology_t topology, cpu_set_t *left, unsigned short *out,
			      unsigned int max)
{
	cpu_set_t cores_seen;
	unsigned int n = 0;

	CPU_ZERO(&cores_seen);
	for (unsigned short cpu = 0; cpu < CPU_SETSIZE && n < max; cpu++) {
		hwloc_obj_t o;

		if (!CPU_ISSET(cpu, left))
			continue;
		o = hwloc_get_pu_obj_by_os_index(topology, cpu);
		while (o && o->type != HWLOC_OBJ_CORE)
			o = o->parent;
		if (o && o->logical_index < CPU_SETSIZE) {
			if (CPU_ISSET(o->logical_index, &cores_seen))
				continue;
			CPU_SET(o->logical_index, &cores_seen);
		}
		CPU_CLR(cpu, left);
		out[n++] = cpu;
	}
	return n;
}

unsigned int topo_node_cpus(const struct topo *t, int node, unsigned short *out, unsigned int max)
{
	hwloc_topology_t topology = load();
	unsigned int n = 0, more = 1;
	hwloc_obj_t o = NULL;
	cpu_set_t left;

	if (!topology)
		return 0;
	CPU_ZERO(&left);
	while ((o = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, o)))
		for (int cpu = 0; o->os_index == (unsigned int)node && cpu < CPU_SETSIZE; cpu++)
			if (hwloc_bitmap_isset(o->cpuset, (unsigned int)cpu) &&
			    CPU_ISSET(cpu, &t->allowed))
				CPU_SET(cpu, &left);
	for (; more && n < max; n += more)
		more = take_turn(topology, &left, out + n, max - n);
	hwloc_topology_destroy(topology);
	return n;
}
