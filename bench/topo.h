/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where threads run and memory lies. */
#ifndef BENCH_TOPO_H
#define BENCH_TOPO_H

#define TOPO_CORES 2 /* as many as there are threads to keep apart */

/**
 * struct topo - the CPUs that this process may run on, as it was started.
 * @cpus:   how many, at least 1
 * @cores:  how many entries of @core are filled
 * @core:   one CPU of each of the first cores: two hardware threads of one core would share what is
 *          to be measured
 */
struct topo {
	unsigned int cpus;
	unsigned int cores;
	int core[TOPO_CORES];
};

/** topo_init() - look, before any thread is bound. */
void topo_init(struct topo *t);

/**
 * topo_pin() - bind this thread to the @which-th core, and what memory it touches first to that
 * core's NUMA node. Does nothing where there are fewer than TOPO_CORES cores.
 */
void topo_pin(const struct topo *t, unsigned int which);

#endif
