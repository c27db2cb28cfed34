/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread that sleeps in one blocking read, woken by a signal from time to time and as soon as its
 * peer says something. The essay is on top of ticker.c.
 */
#ifndef BENCH_TICKER_H
#define BENCH_TICKER_H

#include <stdbool.h>
#include <time.h>

struct ticker {
	bool runs;
	int fd;
	timer_t timer;
};

/**
 * ticker_start() - from here on blocking calls of this thread end with EINTR every @ns, and when
 * @fd, a socket, has something to read. 0 or -errno with rxfer_error(). Running already: 0.
 */
int ticker_start(struct ticker *t, int fd, long ns);

/** ticker_stop() - no more of that; by the thread that started it. Never started: nothing. */
void ticker_stop(struct ticker *t);

#endif
