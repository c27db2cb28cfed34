/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <math.h>
#include <numaif.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include "found.h"

#define SAMPLE	  64 /* pages that are asked about */
#define NODES_MAX 1024

void found_cpu(struct found *f, int begin, int end)
{
	if (begin < 0 || end < 0)
		f->cpu[0] = '\0';
	else if (begin != end)
		snprintf(f->cpu, sizeof(f->cpu), "moved");
	else
		snprintf(f->cpu, sizeof(f->cpu), "%d", end);
}

/* In the order of their numbers; those that there is no room for are left out whole. */
void found_nodes_of(struct found *f, const int *status, unsigned int n)
{
	bool there[NODES_MAX] = {false};
	char one[16];

	f->mem_node[0] = '\0';
	for (unsigned int i = 0; i < n; i++)
		if (status[i] >= 0 && status[i] < NODES_MAX)
			there[status[i]] = true;
	for (int node = 0; node < NODES_MAX; node++) {
		if (!there[node])
			continue;
		snprintf(one, sizeof(one), "%s%d", f->mem_node[0] ? "+" : "", node);
		if (strlen(f->mem_node) + strlen(one) < sizeof(f->mem_node))
			strcat(f->mem_node, one);
	}
}

void found_nodes(struct found *f, const void *base, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (len + page - 1) / page;
	unsigned int n = pages < SAMPLE ? (unsigned int)pages : SAMPLE;
	void *at[SAMPLE];
	int status[SAMPLE];

	for (size_t i = 0; i < n; i++)
		at[i] = (char *)(uintptr_t)base + i * pages / n * page;
	if (n == 0 || move_pages(0, n, at, NULL, status, 0))
		n = 0; /* without nodes to move to it only asks; not permitted everywhere */
	found_nodes_of(f, status, n);
}

/* Those of the pool are not. */
static bool huge_in_rss(const char *name)
{
	return !strcmp(name, "AnonHugePages") || !strcmp(name, "ShmemPmdMapped") ||
	       !strcmp(name, "FilePmdMapped");
}

/* A mapping counts whole if part of it is in question: areas have mappings of their own. */
double found_huge_in(FILE *smaps, const void *base, size_t len)
{
	unsigned long long from, to, kib, plain = 0, huge = 0;
	bool ours = false;
	char line[512], name[32];

	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%llx-%llx ", &from, &to) == 2) {
			ours = from < (uintptr_t)base + len && to > (uintptr_t)base;
			continue;
		}
		if (!ours || sscanf(line, "%31[^:]: %llu kB", name, &kib) != 2)
			continue;
		if (!strcmp(name, "Rss"))
			plain += kib;
		if (huge_in_rss(name)) {
			plain -= kib < plain ? kib : plain;
			huge += kib;
		}
		if (!strcmp(name, "Private_Hugetlb") || !strcmp(name, "Shared_Hugetlb"))
			huge += kib;
	}
	return plain + huge ? 100.0 * (double)huge / (double)(plain + huge) : NAN;
}

double found_huge_pct(const void *base, size_t len)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	double pct = NAN;

	if (!f)
		return NAN;
	pct = found_huge_in(f, base, len);
	fclose(f);
	return pct;
}
