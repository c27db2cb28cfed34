/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where threads run and memory lies. */
#ifndef BENCH_TOPO_H
#define BENCH_TOPO_H

/** topo_cpus() - CPUs this thread may run on, at least 1. */
unsigned int topo_cpus(void);

/**
 * topo_pin() - bind this thread to the @which-th core it may run on, and its memory to that core's
 * NUMA node. Does nothing where there are fewer cores than that. Returns 1 where it did, 0 where
 * not.
 */
int topo_pin(unsigned int which);

#endif
