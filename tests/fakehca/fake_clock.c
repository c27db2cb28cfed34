/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CLOCK_MONOTONIC, in the C library's place. It moves with the device's steps and a little with
 * each look, so that a deadline is reached at last by a loop that does nothing but look. All other
 * clocks are the machine's.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "fake_internal.h"

/*
 * Called for more than what it does: it brings this file into a program that wants nothing else of
 * it. Sanitizers' libraries come first, and their clock_gettime() would be all that it wanted.
 */
void fake_clock_start(void)
{
	fake.now = 1000000000;
	fake.waiting = NULL;
}

uint64_t fake_now(void)
{
	return fake.now;
}

void fake_while_waiting(void (*fn)(void *arg), void *arg)
{
	fake.waiting = fn;
	fake.waiting_arg = arg;
}

/* Whoever looks at the clock may be waiting: now it is the others' turn. */
static void others_turn(void)
{
	if (!fake.waiting || fake.in_waiting)
		return;
	fake.in_waiting = true;
	fake.waiting(fake.waiting_arg);
	fake.in_waiting = false;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	uint64_t now;

	if (id != CLOCK_MONOTONIC || !__atomic_load_n(&fake.started, __ATOMIC_ACQUIRE) ||
	    fake.config.real_clock)
		return (int)syscall(SYS_clock_gettime, id, t);
	others_turn();
	fake_lock();
	now = fake.now += fake.config.clock_read_ns;
	fake_unlock();
	t->tv_sec = (time_t)(now / 1000000000u);
	t->tv_nsec = (long)(now % 1000000000u);
	return 0;
}
