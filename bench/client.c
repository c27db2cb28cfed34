/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rxfer-bench client HOST */
#include "command.h"

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

int command_client(const struct opts *o, const struct runtime *runtime)
{
	static const struct server_ops tcp = {client_open, client_close};
	struct where where = {.host = o->host};
	struct cfg cfg;

	opts_first(o, &cfg);
	where.port = (uint16_t)cfg.port;
	return runs_execute(o, &tcp, &where, runtime);
}
