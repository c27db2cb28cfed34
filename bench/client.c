/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rxfer-bench client HOST */
#include "command.h"
#include "place.h"

struct where {
	const char *host;
	uint16_t port;
};

static int client_open(void *arg, struct control *c, const struct rxfer_wait *wait)
{
	const struct where *where = arg;

	return control_connect(c, where->host, where->port, wait);
}

static void client_close(void *arg, struct control *c)
{
	(void)arg;
	control_close(c);
}

int with_tcp_server(const struct opts *o, const struct runtime *runtime, server_user *use)
{
	static const struct server_ops tcp = {client_open, client_close};
	struct where where = {.host = o->host};
	struct place place;
	struct cfg cfg;

	opts_first(o, &cfg);
	if (place_make(&cfg, &runtime->topo, &place) || place_thread(&place, 0)) {
		complain("%s", rxfer_error());
		return EXIT_RUN_FAILED;
	}
	where.port = (uint16_t)cfg.port;
	return use(o, &tcp, &where, runtime);
}

int command_client(const struct opts *o, const struct runtime *runtime)
{
	return with_tcp_server(o, runtime, runs_execute);
}
