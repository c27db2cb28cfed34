/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How fast the time stamp counter is, and whether it is to be trusted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "clock.h"

#define CALIBRATE_NS 20000000
#define TRIES	     16
#define SOURCE	     "/sys/devices/system/clocksource/clocksource0/current_clocksource"

/* struct look - at all clocks, at about one time. */
struct look {
	uint64_t ticks, monotonic, boottime;
};

static uint64_t read_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The best of some: nothing came between. */
static struct look look(void)
{
	struct look best = {0};
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = clock_counter(), ns = rxfer_now(), after = clock_counter();

		if (after - before >= least)
			continue;
		least = after - before;
		best.ticks = before + least / 2;
		best.monotonic = ns;
	}
	best.boottime = read_ns(CLOCK_BOOTTIME);
	return best;
}

static bool is_kernels_own(void)
{
	FILE *f = fopen(SOURCE, "re");
	char line[32] = "";
	bool yes = f && fgets(line, sizeof(line), f) && !strcmp(line, "tsc\n");

	if (f)
		fclose(f);
	return yes;
}

/* The third clock is read a moment later, and the kernel may be slow about it: within 10 %. */
static bool agree(const struct look *a, const struct look *b)
{
	double m = (double)(b->monotonic - a->monotonic), t = (double)(b->boottime - a->boottime);

	return m > 0.9 * t && m < 1.1 * t;
}

uint64_t clock_mult(uint64_t ticks, uint64_t ns)
{
	double mult = ticks ? (double)ns / (double)ticks * 4294967296.0 : 0;

	/* Between 100 MHz and 100 GHz. */
	return mult > 0.01 * 4294967296.0 && mult < 10 * 4294967296.0 ? (uint64_t)mult : 0;
}

void clock_init(struct clock *c)
{
	const struct timespec pause = {.tv_nsec = CALIBRATE_NS};
	struct look a, b;

	*c = (struct clock){0};
	if (!clock_counter() || !is_kernels_own())
		return;
	a = look();
	nanosleep(&pause, NULL);
	b = look();
	if (agree(&a, &b))
		c->mult = clock_mult(b.ticks - a.ticks, b.monotonic - a.monotonic);
}

const char *clock_name(const struct clock *c)
{
	return c->mult ? "tsc" : "monotonic";
}
