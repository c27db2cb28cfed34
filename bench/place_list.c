/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --cpu and --numa in words and numbers; the machine is asked in place.c. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "place.h"
#include "rxfer.h"

/* ---- Reading ---- */

static int read_number(const char **p, unsigned int *v, char *why, unsigned int size)
{
	const char *s = *p;

	if (!isdigit((unsigned char)*s))
		return text_error(why, size, "a number is missing; say it like 0,2,4-6, or near");
	if (s[0] == '0' && isdigit((unsigned char)s[1]))
		return text_error(why, size, "a number begins with a 0; leave it out");
	for (*v = 0; isdigit((unsigned char)*s) && *v < CPU_SETSIZE; s++)
		*v = *v * 10 + (unsigned int)(*s - '0');
	if (*v >= CPU_SETSIZE)
		return text_error(why, size, "a number above %d; say 0..%d", CPU_SETSIZE - 1,
				  CPU_SETSIZE - 1);
	*p = s;
	return 0;
}

/* Is it in the list already? The list is short, and this is no hot path. */
static bool listed(const struct place_list *list, unsigned int cpu)
{
	for (unsigned int i = 0; i < list->n; i++)
		if (list->cpu[i] == cpu)
			return true;
	return false;
}

static int add_range(struct place_list *list, unsigned int from, unsigned int to, char *why,
		     unsigned int size)
{
	if (to < from)
		return text_error(why, size, "%u-%u goes backwards; say %u-%u", from, to, to, from);
	for (unsigned int cpu = from; cpu <= to; cpu++) {
		if (listed(list, cpu))
			return text_error(why, size, "CPU %u is given twice; once is enough", cpu);
		list->cpu[list->n++] = (unsigned short)cpu;
	}
	return 0;
}

int place_list_parse(const char *text, struct place_list *out, char *why, unsigned int size)
{
	unsigned int from, to;
	int rc;

	out->n = 0;
	for (;; text++) {
		rc = read_number(&text, &from, why, size);
		to = from;
		if (!rc && *text == '-') {
			text++;
			rc = read_number(&text, &to, why, size);
		}
		if (!rc)
			rc = add_range(out, from, to, why, size);
		if (rc)
			return rc;
		if (!*text)
			return 0;
		if (*text != ',')
			return text_error(why, size,
					  "not a list of CPUs; say it like 0,2,4-6, or near");
	}
}

int place_list_check(const char *text, char *why, unsigned int size)
{
	struct place_list list;

	return strcmp(text, PLACE_NEAR) ? place_list_parse(text, &list, why, size) : 0;
}

int place_node_check(const char *text, char *why, unsigned int size)
{
	struct place_list list;

	if (!strcmp(text, PLACE_NEAR))
		return 0;
	if (text[strspn(text, "0123456789")] || place_list_parse(text, &list, why, size))
		return text_error(why, size, "not a NUMA node; say one of 0..%d, or near",
				  CPU_SETSIZE - 1);
	return 0;
}

/* ---- Sets ---- */

const char *place_set_text(const cpu_set_t *set, char *buf, unsigned int size)
{
	char one[32];
	int to;

	snprintf(buf, size, "%s", CPU_COUNT(set) ? "" : "none");
	for (int from = 0; from < CPU_SETSIZE; from = to + 1) {
		to = from;
		if (!CPU_ISSET(from, set))
			continue;
		while (to + 1 < CPU_SETSIZE && CPU_ISSET(to + 1, set))
			to++;
		snprintf(one, sizeof(one), to > from ? "%s%d-%d" : "%s%d", *buf ? "," : "", from,
			 to);
		if (strlen(buf) + strlen(one) + sizeof(",...") > size) {
			text_add(buf, size, ",...");
			break;
		}
		text_add(buf, size, "%s", one);
	}
	return buf;
}

int place_list_there(const struct place_list *list, const cpu_set_t *allowed)
{
	char there[128];

	for (unsigned int i = 0; i < list->n; i++)
		if (!CPU_ISSET(list->cpu[i], allowed))
			return rxfer_fail(
				ENODEV,
				"--cpu: there is no CPU %u for this process, but %s: say some of these (what its cgroup or taskset leaves it)",
				list->cpu[i], place_set_text(allowed, there, sizeof(there)));
	return 0;
}

int place_node_there(int node, const cpu_set_t *nodes)
{
	char there[128];

	if (CPU_ISSET(node, nodes))
		return 0;
	return rxfer_fail(
		ENODEV,
		"--numa: there is no NUMA node %d for this process, but %s: say one of these (what its cgroup leaves it)",
		node, place_set_text(nodes, there, sizeof(there)));
}

int place_near(const char *option, const char *device, int node, const cpu_set_t *nodes)
{
	char there[128];

	place_set_text(nodes, there, sizeof(there));
	if (node < 0 && CPU_COUNT(nodes) == 1)
		return atoi(there);
	if (node < 0)
		return rxfer_fail(
			ENODEV,
			"--%s near: device %s does not say which NUMA node it is at, and there are several (%s): say which",
			option, device, there);
	if (node >= CPU_SETSIZE || !CPU_ISSET(node, nodes))
		return rxfer_fail(
			ENODEV,
			"--%s near: device %s is at NUMA node %d, of which this process may not use anything (but of %s): say where",
			option, device, node, there);
	return node;
}
