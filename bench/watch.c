/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <time.h>
#include "watch.h"

#define PASSES_EMPTY 256		 /* passes without work between clock reads */
#define PASSES_DONE  64			 /* pieces of work between clock reads */
#define LOOK_NS	     (50 * 1000000ull)	 /* between looks at the control connection */
#define REST_NS	     (5 * 1000000ull)	 /* the same, where nothing was to be done for so long */
#define ALIVE_NS     (1000 * 1000000ull) /* between signs of life, at most */

void watch_init(struct watch *w, struct control *control, const struct cfg *cfg,
		const struct runtime *runtime, unsigned int pollers, bool software)
{
	uint64_t now = rxfer_now();

	*w = (struct watch){
		.control = control,
		.runtime = runtime,
		.stop = runtime->stop,
		.timeout = cfg->timeout_ns,
		.progress = now,
		.heard = now,
		.said = now,
		.looked = now,
		.yield = cfg->poll == POLL_YIELD ||
			 (cfg->poll == POLL_BUSY && pollers + software > runtime->topo.cpus),
		.sleep = cfg->poll == POLL_EVENT,
	};
}

void watch_device(struct watch *w, struct rxfer_dev *dev)
{
	w->dev = dev;
	trace_device(&w->control->trace, w->runtime->deaf, dev);
}

struct rxfer_wait watch_wait(const struct watch *w)
{
	return (struct rxfer_wait){
		.deadline = rxfer_now() + w->timeout, .cancel_fd = -1, .stop = w->stop};
}

static int say_alive(struct watch *w, uint64_t now)
{
	struct rxfer_wait wait = watch_wait(w);
	uint64_t period = w->timeout / 4 < ALIVE_NS ? w->timeout / 4 : ALIVE_NS;

	if (now - w->said < period)
		return 0;
	w->said = now;
	return control_send(w->control, MSG_ALIVE, NULL, &wait);
}

/* A peer that has been heard since is not stopped, and its network is there. */
static int no_progress(const struct watch *w)
{
	double seconds = (double)w->timeout / 1e9;

	if (w->heard > w->progress)
		return rxfer_fail(
			ETIMEDOUT,
			"no I/O completed for %.1f s, though %s answers on the control connection: are RDMA packets lost, or is a device's link down? (--timeout)",
			seconds, w->control->peer);
	return rxfer_fail(
		ETIMEDOUT,
		"no I/O completed for %.1f s: the peer is stopped, or its link is down (--timeout)",
		seconds);
}

static int look(struct watch *w, uint64_t now, bool busy, enum message *type, json_t **body)
{
	struct rxfer_wait wait = watch_wait(w);
	int rc = control_poll(w->control, type, body, &w->heard, &wait);

	if (w->dev)
		rxfer_dev_look(w->dev);
	if (w->runtime->tick)
		w->runtime->tick(w->runtime->arg);
	if (rc != -EAGAIN)
		return rc ? rc : 1;
	rc = say_alive(w, now);
	if (rc)
		return rc;
	if (w->must_hear && now > w->heard && now - w->heard > w->timeout)
		return rxfer_fail(ETIMEDOUT,
				  "nothing heard from %s for %.1f s: stopped, or cut off?",
				  w->control->peer, (double)w->timeout / 1e9);
	return busy && now - w->progress > w->timeout ? no_progress(w) : 0;
}

void watch_begin(struct watch *w)
{
	w->progress = rxfer_now();
	w->passes = w->idle = 0;
}

/* Is it time for a full look? Who is idle has the time, and is likely to be told something. */
static bool is_time(const struct watch *w, uint64_t now)
{
	bool rests = w->eager && now - w->progress >= REST_NS;

	return w->passive || now - w->looked >= (rests ? REST_NS : LOOK_NS);
}

int watch_pass(struct watch *w, unsigned int did, bool busy, enum message *type, json_t **body)
{
	uint64_t now;

	w->done += did;
	w->passes++;
	if (did == 0) {
		w->idle++;
		w->empty++;
		if (w->yield && !w->passive)
			sched_yield();
	}
	if (w->empty < PASSES_EMPTY && w->done < PASSES_DONE && !w->passive && !w->woken)
		return 0;
	w->now = now = rxfer_now();
	if (w->done)
		w->progress = now;
	w->empty = 0;
	w->done = 0;
	w->woken = false;
	if (!is_time(w, now))
		return 0;
	w->looked = now;
	return look(w, now, busy, type, body);
}

int watch_sleep(struct watch *w, struct rxfer_conn **conns, unsigned int n)
{
	int rc = ticker_start(&w->ticker, w->control->fd, LOOK_NS);

	if (!rc)
		rc = rxfer_sleep(w->dev, conns, n, -1, -1);
	if (rc == 1) {
		w->woken = true;
		w->looked = 0;
	}
	return rc < 0 ? rc : 0;
}

void watch_end(struct watch *w)
{
	ticker_stop(&w->ticker);
}

uint64_t cpu_time_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
