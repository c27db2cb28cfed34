/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a polling loop has to look at besides completions: the stop signal, the peer, its own lack
 * of progress, and what to do with an empty poll. Costs a clock read now and then, and a system
 * call every few dozen milliseconds.
 */
#ifndef BENCH_WATCH_H
#define BENCH_WATCH_H

#include <jansson.h>
#include "clock.h"
#include "control.h"
#include "opt.h"
#include "ticker.h"
#include "topo.h"

/**
 * struct runtime - what the process gives to every run in it.
 * @stop: becomes non-zero when a signal asks to end
 * @topo: the CPUs it may run on
 * @clock: what I/Os are timed by
 * @debug: rxfer_now() as traces begin; 0: there are none
 * @deaf: another end of this process listens to the device
 * @tick: called now and then during a run (NULL: not), for a progress line
 */
struct runtime {
	const atomic_int *stop;
	struct topo topo;
	struct clock clock;
	uint64_t debug;
	bool deaf;
	void (*tick)(void *arg);
	void *arg;
};

/* trace_of() - the trace of an end, for its control connection. */
static inline struct trace trace_of(const struct runtime *r, const char *who)
{
	return (struct trace){r->debug ? who : NULL, r->debug};
}

struct watch {
	struct control *control;
	struct rxfer_dev *dev; /* what it reports is told at each full look; NULL: nobody asks */
	const struct runtime *runtime;
	const atomic_int *stop;
	uint64_t timeout;   /* ns without progress, or without a word from the peer */
	uint64_t progress;  /* rxfer_now() of the last progress */
	uint64_t heard;	    /* of the last message */
	uint64_t said;	    /* of our last sign of life */
	uint64_t now;	    /* of the last look at the clock */
	uint64_t looked;    /* of the last full look */
	unsigned int empty; /* empty passes since then */
	unsigned int done;  /* things done since then */
	uint64_t passes;    /* of the loop, and those that found nothing to do */
	uint64_t idle;
	bool must_hear; /* silence of the peer is a failure */
	bool yield;	/* an empty poll gives the CPU away */
	bool sleep;	/* --poll event */
	struct ticker ticker;
	bool woken;   /* by something else than a completion: look at all */
	bool passive; /* passes are rare and cost nothing: look at each */
	bool eager;   /* with nothing to do, look more often */
};

/**
 * watch_init() - @pollers: threads that poll on this machine, the peer's included where it is the
 * same machine;
 * @software: the device's work is done by the CPU too.
 */
void watch_init(struct watch *w, struct control *control, const struct cfg *cfg,
		const struct runtime *runtime, unsigned int pollers, bool software);

/** watch_device() - what @dev reports is told, from now on and at each full look. */
void watch_device(struct watch *w, struct rxfer_dev *dev);

/** watch_wait() - for a blocking call now: the whole timeout from here. */
struct rxfer_wait watch_wait(const struct watch *w);

/** watch_begin() - a phase begins: progress from here, passes counted from here. */
void watch_begin(struct watch *w);

/**
 * watch_pass() - after each pass of the loop, with the number of things it @did.
 * Returns 0; 1 where a message came (@type, @body, the caller's); -errno where the peer has gone,
 * is silent or nothing has moved for too long (only while @busy). A stop signal is the caller's to
 * look at.
 */
int watch_pass(struct watch *w, unsigned int did, bool busy, enum message *type, json_t **body);

/**
 * watch_sleep() - with --poll event, when nothing can be issued or handled: sleep until one of the
 * @n connections has completions, the peer says something, or it is time to look. 0 or -errno.
 */
int watch_sleep(struct watch *w, struct rxfer_conn **conns, unsigned int n);

/** watch_end() - there will be no more sleep: signals come no more. */
void watch_end(struct watch *w);

/** cpu_time_ns() - CPU time of this thread. */
uint64_t cpu_time_ns(void);

#endif
