/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Placement: lists and nodes as texts, what of them is there, where "near" is; and, on the CPUs
 * that this test may run on, that threads and memory go there.
 */
#include <errno.h>
#include <numaif.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "prop.h"
#include "place.h"
#include "rxfer.h"

#define LINE 512

static struct place_list list;

/* The list, read and written again: "0 2 4 5 6"; or what is wrong with it. */
static const char *read_back(const char *text)
{
	static char out[LINE];
	char why[LINE];

	out[0] = '\0';
	memset(&list, 0xee, sizeof(list));
	assert_int_equal(place_list_check(text, why, sizeof(why)),
			 place_list_parse(text, &list, out, sizeof(out)));
	if (out[0]) {
		assert_string_equal(why, out);
		return out;
	}
	for (unsigned int i = 0; i < list.n; i++)
		text_add(out, sizeof(out), "%s%u", i ? " " : "", list.cpu[i]);
	return out;
}

static void lists(void **state)
{
	(void)state;
	assert_string_equal(read_back("0"), "0");
	assert_string_equal(read_back("0,2,4-6"), "0 2 4 5 6");
	assert_string_equal(read_back("7,3,5"), "7 3 5"); /* threads take them in this order */
	assert_string_equal(read_back("4-6,0-1"), "4 5 6 0 1");
	assert_string_equal(read_back("3-3"), "3");
	assert_string_equal(read_back("1023"), "1023");
	read_back("0-1023");
	assert_int_equal(list.n, 1024);
}

static void lists_that_are_none(void **state)
{
	static const char missing[] = "a number is missing; say it like 0,2,4-6, or near";
	static const char other[] = "not a list of CPUs; say it like 0,2,4-6, or near";
	static const char above[] = "a number above 1023; say 0..1023";

	(void)state;
	assert_string_equal(read_back(""), missing);
	assert_string_equal(read_back(","), missing);
	assert_string_equal(read_back("1,"), missing);
	assert_string_equal(read_back("1,,2"), missing);
	assert_string_equal(read_back("1-"), missing);
	assert_string_equal(read_back("-1"), missing);
	assert_string_equal(read_back("1--2"), missing);
	assert_string_equal(read_back(" 1"), missing);
	assert_string_equal(read_back("nearby"), missing);
	assert_string_equal(read_back("1 2"), other);
	assert_string_equal(read_back("1-2-3"), other);
	assert_string_equal(read_back("0x1"), other);
	assert_string_equal(read_back("1,near"), missing);
	assert_string_equal(read_back("1024"), above);
	assert_string_equal(read_back("0-1024"), above);
	assert_string_equal(read_back("18446744073709551616"), above);
	assert_string_equal(read_back("07"), "a number begins with a 0; leave it out");
	assert_string_equal(read_back("0-00"), "a number begins with a 0; leave it out");
}

static void lists_that_say_too_much(void **state)
{
	(void)state;
	assert_string_equal(read_back("6-4"), "6-4 goes backwards; say 4-6");
	assert_string_equal(read_back("2,2"), "CPU 2 is given twice; once is enough");
	assert_string_equal(read_back("0-5,3"), "CPU 3 is given twice; once is enough");
	assert_string_equal(read_back("3,0-5"), "CPU 3 is given twice; once is enough");
	assert_string_equal(read_back("0-1023,0-1023"), "CPU 0 is given twice; once is enough");
}

static void what_the_options_take(void **state)
{
	static const char *const bad[] = {"", "-1", "0,1", "0-1", "1024", "00", "far", "1 ", "+1"};
	char why[LINE];

	(void)state;
	assert_int_equal(place_list_check("near", why, LINE), 0);
	assert_int_equal(place_node_check("near", why, LINE), 0);
	assert_int_equal(place_node_check("0", why, LINE), 0);
	assert_int_equal(place_node_check("1023", why, LINE), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(place_node_check(bad[i], why, LINE), -EINVAL);
		assert_string_equal(why, "not a NUMA node; say one of 0..1023, or near");
	}
}

/* ---- Sets ---- */

static cpu_set_t set_of(const char *text)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (*text)
		read_back(text);
	for (unsigned int i = 0; *text && i < list.n; i++)
		CPU_SET(list.cpu[i], &set);
	return set;
}

static void sets_in_words(void **state)
{
	static const char *const same[] = {"0", "0-1", "0,2", "3-5,7,9-1023", "1023"};
	char buf[LINE];
	cpu_set_t set;

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		set = set_of(same[i]);
		assert_string_equal(place_set_text(&set, buf, sizeof(buf)), same[i]);
	}
	set = set_of("");
	assert_string_equal(place_set_text(&set, buf, sizeof(buf)), "none");
	set = set_of("10,12,14,16,18,20");
	assert_string_equal(place_set_text(&set, buf, 15), "10,12,14,...");
	assert_string_equal(place_set_text(&set, buf, 16), "10,12,14,16,...");
	assert_string_equal(place_set_text(&set, buf, 64), "10,12,14,16,18,20");
}

static void says(int rc, int want, const char *words)
{
	assert_int_equal(rc, want);
	if (!strstr(rxfer_error(), words))
		fail_msg("not \"%s\": %s", words, rxfer_error());
}

static void what_is_not_there(void **state)
{
	cpu_set_t there = set_of("0-3,8");

	(void)state;
	read_back("8,0");
	assert_int_equal(place_list_there(&list, &there), 0);
	read_back("0-4");
	says(place_list_there(&list, &there), -ENODEV, "no CPU 4 for this process, but 0-3,8: say");
	assert_int_equal(place_node_there(8, &there), 0);
	says(place_node_there(7, &there), -ENODEV, "no NUMA node 7 for this process, but 0-3,8: ");
}

static void near_a_device(void **state)
{
	cpu_set_t one = set_of("3"), several = set_of("0-1");

	(void)state;
	assert_int_equal(place_near("cpu", "mlx5_0", 1, &several), 1);
	assert_int_equal(place_near("cpu", "mlx5_0", 3, &one), 3);
	assert_int_equal(place_near("cpu", "rxe0", -1, &one), 3); /* it cannot be elsewhere */
	says(place_near("cpu", "rxe0", -1, &several), -ENODEV,
	     "--cpu near: device rxe0 does not say which NUMA node it is at, and there are several "
	     "(0-1): say which");
	says(place_near("numa", "mlx5_0", 2, &several), -ENODEV,
	     "--numa near: device mlx5_0 is at NUMA node 2, of which this process may not use");
	says(place_near("numa", "mlx5_0", 1, &one), -ENODEV, "(but of 3)");
	says(place_near("numa", "mlx5_0", 5000, &one), -ENODEV, "at NUMA node 5000");
}

/* ---- This machine ---- */

static struct topo topo;

static struct cfg asked(const char *cpu, const char *numa)
{
	struct cfg cfg;

	cfg_init(&cfg);
	snprintf(cfg.cpu, sizeof(cfg.cpu), "%s", cpu);
	snprintf(cfg.numa, sizeof(cfg.numa), "%s", numa);
	return cfg;
}

static void nothing_asked_for(void **state)
{
	struct cfg cfg = asked("", "");
	cpu_set_t before, after;
	struct place p;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(place_make(&cfg, &topo, &p), 0);
	assert_int_equal(p.cpus.n, 0);
	assert_int_equal(p.node, -1);
	assert_int_equal(place_thread(&p, 1), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
}

static void refused_by_this_machine(void **state)
{
	struct cfg cfg;
	struct place p;

	(void)state;
	assert_false(CPU_ISSET(1023, &topo.allowed));
	cfg = asked("1023", "");
	says(place_make(&cfg, &topo, &p), -ENODEV, "there is no CPU 1023 for this process, but ");
	cfg = asked("", "1023");
	says(place_make(&cfg, &topo, &p), -ENODEV, "there is no NUMA node 1023 for this process");
	cfg = asked("2-1", "");
	says(place_make(&cfg, &topo, &p), -EINVAL, "--cpu 2-1: 2-1 goes backwards");
	cfg = asked("near", "");
	snprintf(cfg.device, sizeof(cfg.device), "no-such-device");
	says(place_make(&cfg, &topo, &p), -ENODEV, "RDMA device");
}

struct turn {
	const struct place *place;
	unsigned int which;
	int rc, cpu, policy;
	uint64_t available;
	unsigned long nodes[16];
};

static void *take_turn(void *arg)
{
	struct turn *t = arg;

	t->rc = place_thread(t->place, t->which);
	t->cpu = sched_getcpu();
	t->available = place_available();
	if (get_mempolicy(&t->policy, t->nodes, 8 * sizeof(t->nodes), NULL, 0))
		t->policy = -1;
	return NULL;
}

static struct turn in_a_thread(const struct place *p, unsigned int which)
{
	struct turn t = {.place = p, .which = which};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, take_turn, &t), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return t;
}

/* The last CPU first, so that it is not where one would be anyway. */
static void threads_in_turn(void **state)
{
	int first = 0, last = CPU_SETSIZE - 1;
	char text[32];
	struct place p;
	struct cfg cfg;

	(void)state;
	while (!CPU_ISSET(first, &topo.allowed))
		first++;
	while (!CPU_ISSET(last, &topo.allowed))
		last--;
	snprintf(text, sizeof(text), last > first ? "%d,%d" : "%d", last, first);
	cfg = asked(text, "");
	assert_int_equal(place_make(&cfg, &topo, &p), 0);
	for (unsigned int i = 0; i < 5; i++) {
		struct turn t = in_a_thread(&p, i);

		assert_int_equal(t.rc, 0);
		assert_int_equal(t.cpu, i % 2 ? first : last);
		assert_true(t.policy <= MPOL_DEFAULT);
	}
	p.cpus.cpu[0] = 1023;
	says(place_thread(&p, 0), -EINVAL, "--cpu: binding a thread to CPU 1023: Invalid argument");
}

static void memory_of_one_node(void **state)
{
	struct turn t, before;
	cpu_set_t nodes;
	struct place p;
	struct cfg cfg;
	char text[16];
	int node = 0;

	(void)state;
	assert_int_equal(topo_nodes(&nodes), 0);
	while (!CPU_ISSET(node, &nodes))
		node++;
	snprintf(text, sizeof(text), "%d", node);
	cfg = asked("", text);
	assert_int_equal(place_make(&cfg, &topo, &p), 0);
	assert_int_equal(p.node, node);
	before = in_a_thread(&(struct place){.node = -1}, 0);
	if (before.policy < 0)
		skip(); /* not permitted here */
	assert_true(before.available == UINT64_MAX || before.policy == MPOL_BIND);
	t = in_a_thread(&p, 0);
	assert_int_equal(t.rc, 0);
	assert_in_range(t.available, 1 << 20, 1ull << 60);
	assert_int_equal(t.available % 1024, 0);
	assert_int_equal(t.policy, MPOL_BIND);
	assert_int_equal(t.nodes[node / 64], 1ul << node % 64);
	p.node = 1023;
	says(place_memory(&p), -EINVAL, "--numa: binding memory to NUMA node 1023");
}

/* All of a node's CPUs that are allowed, each once; and of every core one, before any other. */
static void cpus_of_a_node(void **state)
{
	unsigned short cpu[CPU_SETSIZE];
	cpu_set_t nodes, seen;
	unsigned int all = 0;

	(void)state;
	CPU_ZERO(&seen);
	assert_int_equal(topo_nodes(&nodes), 0);
	for (int node = 0; node < CPU_SETSIZE; node++) {
		unsigned int n = topo_node_cpus(&topo, node, cpu, CPU_SETSIZE);

		assert_true(n == 0 || CPU_ISSET(node, &nodes));
		for (unsigned int i = 0; i < n; i++) {
			assert_true(CPU_ISSET(cpu[i], &topo.allowed));
			assert_false(CPU_ISSET(cpu[i], &seen));
			CPU_SET(cpu[i], &seen);
		}
		all += n;
		if (n)
			assert_int_equal(topo_node_cpus(&topo, node, cpu, 1), 1);
		if (node == 8)
			node = CPU_SETSIZE - 2; /* hwloc takes its time */
	}
	assert_int_equal(all, topo.cpus);
}

/* A machine of two nodes with two cores of two CPUs each, as hwloc draws it up: 0 to 3, 4 to 7. */
static void cores_before_their_siblings(void **state)
{
	struct topo wide = {.cpus = 7};
	unsigned short cpu[8];
	cpu_set_t nodes;

	(void)state;
	wide.allowed = set_of("0-4,6-7");
	setenv("HWLOC_SYNTHETIC", "numa:2 core:2 pu:2", 1);
	assert_int_equal(topo_nodes(&nodes), 0);
	assert_int_equal(CPU_COUNT(&nodes), 2);
	assert_int_equal(topo_node_cpus(&wide, 0, cpu, 8), 4);
	assert_memory_equal(cpu, ((unsigned short[]){0, 2, 1, 3}), 8);
	assert_int_equal(topo_node_cpus(&wide, 1, cpu, 8), 3);
	assert_memory_equal(cpu, ((unsigned short[]){4, 6, 7}), 6);
	assert_int_equal(topo_node_cpus(&wide, 2, cpu, 8), 0);
	unsetenv("HWLOC_SYNTHETIC");
}

static int look(void **state)
{
	(void)state;
	topo_init(&topo);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),
		cmocka_unit_test(lists_that_are_none),
		cmocka_unit_test(lists_that_say_too_much),
		cmocka_unit_test(what_the_options_take),
		cmocka_unit_test(sets_in_words),
		cmocka_unit_test(what_is_not_there),
		cmocka_unit_test(near_a_device),
		cmocka_unit_test(nothing_asked_for),
		cmocka_unit_test(refused_by_this_machine),
		cmocka_unit_test(threads_in_turn),
		cmocka_unit_test(memory_of_one_node),
		cmocka_unit_test(cpus_of_a_node),
		cmocka_unit_test(cores_before_their_siblings),
	};

	return cmocka_run_group_tests_name("unit_place", tests, look, NULL);
}
