/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where threads are to run and memory is to lie (--cpu, --numa): each side's own affair, settled
 * before anything is made. Where they were in fact is in found.h; what there is to choose from, in
 * topo.h.
 */
#ifndef BENCH_PLACE_H
#define BENCH_PLACE_H

#include "opt.h"
#include "topo.h"

#define PLACE_NEAR "near" /* instead of numbers: at the device */

/* struct place_list - CPUs in the order in which threads take them. */
struct place_list {
	unsigned int n;
	unsigned short cpu[CPU_SETSIZE];
};

/**
 * struct place - what was asked for, in numbers of this machine.
 * @cpus: empty: not asked for
 * @node: that all memory is to be on; -1: not asked for
 */
struct place {
	struct place_list cpus;
	int node;
};

/**
 * place_make() - what --cpu and --numa of @cfg mean here. The device is looked at only where "near"
 * asks for it. Returns 0, or -errno: what is not there, or not for this process; and what is.
 */
int place_make(const struct cfg *cfg, const struct topo *topo, struct place *out);

/**
 * place_memory() - what this thread touches first from now on, and the threads that it makes, goes
 * to @p's node and to no other. Nothing where there is none.
 * place_thread() - that, and bind this thread to the CPU of the @which-th one: they take turns
 * where there are more threads than CPUs. Both: 0 or -errno.
 */
int place_memory(const struct place *p);
int place_thread(const struct place *p, unsigned int which);

/** place_available() - bytes that can be had on the nodes that this thread's memory is bound to, by
 * place_memory() or by numactl; UINT64_MAX where it is not bound. */
uint64_t place_available(void);

/* ---- place_list.c: texts and numbers only ---- */

/**
 * place_list_parse() - "0,2,4-6". Returns 0; or -EINVAL with the reason, also where one comes
 * twice: threads that were meant to be apart would share it.
 */
int place_list_parse(const char *text, struct place_list *out, char *why, unsigned int size);

/** place_list_check(), place_node_check() - for the option table: "near" is fine, too. */
int place_list_check(const char *text, char *why, unsigned int size);
int place_node_check(const char *text, char *why, unsigned int size);

/** place_set_text() - "0-3,8" for a set of CPUs or nodes, "none"; cut with "...". Returns @buf. */
const char *place_set_text(const cpu_set_t *set, char *buf, unsigned int size);

/** place_list_there() - are all of @list among @allowed? 0 or -errno. */
int place_list_there(const struct place_list *list, const cpu_set_t *allowed);

/** place_node_there() - is @node among @nodes? 0 or -errno. */
int place_node_there(int node, const cpu_set_t *nodes);

/**
 * place_near() - the node of a device that says it is at @node (-1: it does not say). It is the
 * only one of @nodes then, if it is the only one. @option: for the message. Returns the node or
 * -errno.
 */
int place_near(const char *option, const char *device, int node, const cpu_set_t *nodes);

#endif
