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
#include "topo.h"

struct loopback {
	const struct cfg *cfg;
	const struct runtime *runtime;
	struct control server;
	pthread_t thread;
};

static void *server_thread(void *arg)
{
	static const volatile sig_atomic_t never;
	struct loopback *l = arg;
	struct runtime runtime = {.stop = &never,
				  .topo = l->runtime->topo}; /* it ends when the client says so */

	topo_pin(&runtime.topo, 1);
	session_serve(&l->server, l->cfg->device, l->cfg->timeout_ns, &runtime);
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
	struct cfg cfg;
	struct loopback l = {.cfg = &cfg, .runtime = runtime};

	opts_first(o, &cfg);
	topo_pin(&runtime->topo, 0);
	return use(o, &thread, &l, runtime);
}

int command_loopback(const struct opts *o, const struct runtime *runtime)
{
	return with_own_server(o, runtime, runs_execute);
}
