/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <hwloc.h>
#include <numa.h>
#include <sched.h>
#include "topo.h"

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
	cpu_set_t allowed;

	*t = (struct topo){.cpus = 1};
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	t->cpus = (unsigned int)CPU_COUNT(&allowed);
	if (hwloc_topology_init(&topology))
		return;
	if (!hwloc_topology_load(topology))
		find_cores(t, topology, &allowed);
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
