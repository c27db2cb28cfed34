/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The machine: its CPUs, cores and NUMA nodes. Where the user wants things to be is in place.h. */
#ifndef BENCH_TOPO_H
#define BENCH_TOPO_H

#include <sched.h>

#define TOPO_CORES 2 /* as many as there are threads to keep apart */

/**
 * struct topo - the CPUs that this process may run on, as it was started.
 * @cpus:   how many, at least 1
 * @cores:  how many entries of @core are filled
 * @core:   one CPU of each of the first cores: two hardware threads of one core would share what is
 *          to be measured
 * @allowed: all of the CPUs
 */
struct topo {
	unsigned int cpus;
	unsigned int cores;
	int core[TOPO_CORES];
	cpu_set_t allowed;
};

/** topo_init() - look, before any thread is bound. */
void topo_init(struct topo *t);

/**
 * topo_pin() - bind this thread to the @which-th core, and what memory it touches first to that
 * core's NUMA node. Does nothing where there are fewer than TOPO_CORES cores.
 */
void topo_pin(const struct topo *t, unsigned int which);

/** topo_nodes() - the NUMA nodes that this process may use. 0 or -errno. */
int topo_nodes(cpu_set_t *out);

/**
 * topo_node_cpus() - the CPUs of NUMA node @node that this process may run on: first one of each
 * core, then the next of each, so that neighbours in the list share no core as long as that can be.
 * Returns how many went to @out, @max at most.
 */
unsigned int topo_node_cpus(const struct topo *t, int node, unsigned short *out, unsigned int max);

#endif
