/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <hwloc.h>
#include <numa.h>
#include <sched.h>
#include "topo.h"

unsigned int topo_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned int)CPU_COUNT(&set);
}

/* One core each: two hardware threads of a core would share what we want to measure. */
static int pin_to_core(hwloc_topology_t topology, unsigned int which)
{
	hwloc_obj_t core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, which);
	hwloc_bitmap_t one;
	int rc;

	if (!core || hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) < 2)
		return 0;
	one = hwloc_bitmap_dup(core->cpuset);
	if (!one)
		return 0;
	hwloc_bitmap_singlify(one);
	rc = hwloc_set_cpubind(topology, one, HWLOC_CPUBIND_THREAD);
	hwloc_bitmap_free(one);
	return rc == 0;
}

int topo_pin(unsigned int which)
{
	hwloc_topology_t topology;
	int pinned = 0;

	if (hwloc_topology_init(&topology))
		return 0;
	if (!hwloc_topology_load(topology))
		pinned = pin_to_core(topology, which);
	hwloc_topology_destroy(topology);
	if (pinned && numa_available() >= 0)
		numa_set_localalloc();
	return pinned;
}
