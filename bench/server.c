/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rxfer-bench server: accept sessions, one thread each, until told to stop. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "command.h"
#include "place.h"

/* struct guest - one session's thread. */
struct guest {
	struct control control;
	const struct cfg *cfg;
	const struct runtime *runtime;
	const struct place *place;
	unsigned int number; /* of the session */
	pthread_t thread;
	bool over; /* atomic: written by the thread, read by the accept loop */
	struct guest *next;
};

static void *guest_thread(void *arg)
{
	struct guest *g = arg;
	int rc = place_thread(g->place, g->number);

	if (rc) {
		struct rxfer_wait soon = {rxfer_now() + 1000000000u, -1, NULL};

		control_fail(&g->control, &soon);
	} else {
		rc = session_serve(&g->control, g->cfg->device, g->cfg->timeout_ns, g->runtime);
	}
	if (rc >= 0)
		complain("server: %s: %d runs", g->control.peer, rc);
	else if (rc != -EREMOTEIO)
		complain("server: %s: session ended: %s", g->control.peer, rxfer_error());
	else
		complain("server: session ended by %s", rxfer_error());
	control_close(&g->control);
	__atomic_store_n(&g->over, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Join the threads of sessions that are over; with @all also those that are not yet. */
static void reap(struct guest **list, bool all)
{
	while (*list) {
		struct guest *g = *list;

		if (!all && !__atomic_load_n(&g->over, __ATOMIC_ACQUIRE)) {
			list = &g->next;
			continue;
		}
		pthread_join(g->thread, NULL);
		*list = g->next;
		free(g);
	}
}

/* @like: what all guests have in common. */
static void welcome(int listener, struct guest **list, struct guest *like)
{
	struct guest *g = malloc(sizeof(*g));
	int rc;

	if (!g)
		return;
	*g = *like;
	if (control_accept(listener, &g->control)) {
		complain("server: %s", rxfer_error());
		free(g);
		poll(NULL, 0, 100); /* out of descriptors: do not spin on the waiting connection */
		return;
	}
	rc = pthread_create(&g->thread, NULL, guest_thread, g);
	if (rc) {
		complain("server: no thread for %s: %s", g->control.peer, strerror(rc));
		control_close(&g->control);
		free(g);
		return;
	}
	like->number++;
	g->next = *list;
	*list = g;
}

int command_server(const struct opts *o, const struct runtime *runtime)
{
	struct guest *guests = NULL, like;
	struct rxfer_dev_info info;
	struct place place;
	struct cfg cfg;
	int listener;

	opts_first(o, &cfg);
	if (place_make(&cfg, &runtime->topo, &place) || place_memory(&place)) {
		complain("%s", rxfer_error());
		return EXIT_RUN_FAILED;
	}
	like = (struct guest){.cfg = &cfg, .runtime = runtime, .place = &place};
	listener = control_listen(NULL, (uint16_t)cfg.port);
	if (listener < 0) {
		complain("%s", rxfer_error());
		return EXIT_RUN_FAILED;
	}
	if (check_device(cfg.device, &info)) {
		close(listener);
		return EXIT_RUN_FAILED;
	}
	complain("server: listening on port %llu, device %s (%s)", (unsigned long long)cfg.port,
		 info.name, info.addr);
	while (!*runtime->stop) {
		struct pollfd p = {.fd = listener, .events = POLLIN};

		if (poll(&p, 1, 200) > 0)
			welcome(listener, &guests, &like);
		reap(&guests, false);
	}
	close(listener);
	reap(&guests, true);
	return 0;
}
