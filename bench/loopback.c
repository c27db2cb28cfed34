/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rxfer-bench loopback: both ends in one process, each in a thread of its own on a core of its own,
 * with a protection domain of its own. The server's side is the same code as in rxfer-bench server,
 * behind a socket pair.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include "command.h"
#include "place.h"

struct loopback {
	const struct cfg *cfg;
	const struct runtime *runtime;
	struct place place;
	struct control server;
	pthread_t thread;
};

/* This thread, the client's (0) or the server's (1), goes to its core or to where it was told. */
static int settle(const struct loopback *l, unsigned int which)
{
	if (!l->place.cpus.n)
		topo_pin(&l->runtime->topo, which);
	return place_thread(&l->place, which);
}

static void *server_thread(void *arg)
{
	static const atomic_int never;
	struct loopback *l = arg;
	struct runtime runtime = {.stop = &never,
				  .topo = l->runtime->topo,
				  .clock = l->runtime->clock,
				  .debug = l->runtime->debug,
				  .deaf = true}; /* it ends when the client says so */
	int rc;

	rc = settle(l, 1);
	if (rc) {
		control_give_up(&l->server, rc);
	} else {
		struct host host = {.device = l->cfg->device,
				    .timeout_ns = l->cfg->timeout_ns,
				    .runtime = &runtime};

		session_serve(&l->server, &host);
	}
	control_close(&l->server);
	return NULL;
}

static int loopback_open(void *arg, struct control *c, const struct rxfer_wait *wait)
{
	struct loopback *l = arg;
	int rc = control_pair(c, &l->server);

	(void)wait;
	if (rc)
		return rc;
	l->server.trace = trace_of(l->runtime, "server");
	rc = pthread_create(&l->thread, NULL, server_thread, l);
	if (rc) {
		control_close(c);
		control_close(&l->server);
		return rxfer_fail(rc, "starting the server's thread: %s", strerror(rc));
	}
	return 0;
}

static void loopback_close(void *arg, struct control *c)
{
	struct loopback *l = arg;

	control_close(c);
	pthread_join(l->thread, NULL);
}

int with_own_server(const struct opts *o, const struct runtime *runtime, server_user *use)
{
	static const struct server_ops thread = {loopback_open, loopback_close};
	struct runtime ours = *runtime;
	struct cfg cfg;
	struct loopback l = {.cfg = &cfg, .runtime = &ours};

	opts_first(o, &cfg);
	if (place_make(&cfg, &runtime->topo, &l.place) || settle(&l, 0)) {
		complain("%s", rxfer_error());
		return EXIT_RUN_FAILED;
	}
	if (l.place.cpus.n == 1)
		ours.topo.cpus = 1; /* both poll on it: they have to yield to each other */
	return use(o, &thread, &l, &ours);
}

int command_loopback(const struct opts *o, const struct runtime *runtime)
{
	return with_own_server(o, runtime, runs_execute);
}
