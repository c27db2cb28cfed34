/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the server says of its sessions, a line each. */
#include <stdarg.h>
#include <stdio.h>
#include "session_server.h"

void host_say(const struct host *host, const char *format, ...)
{
	char what[2048];
	va_list args;

	if (!host->say)
		return;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	host->say(host->arg, what);
}

static double mib_per_s(const struct moved *m)
{
	return m->ns ? (double)m->bytes / 1048576 / ((double)m->ns / 1e9) : 0;
}

/* A client of an older version does not tell what it moved. */
static void say_done(const struct served *s, unsigned int number, const char *options)
{
	const struct load_result *l = &s->measured;
	const struct moved ours = {l->ios, l->bytes, l->end - l->start};

	if (!s->moved.ios && !ours.ios)
		host_say(s->host, "run %u (%s) is done", number, options);
	else
		host_say(s->host, "run %u (%s): %s, %.1f MiB/s%s", number, options,
			 rxfer_count(s->moved.ios + ours.ios, "I/O").s,
			 mib_per_s(&s->moved) + mib_per_s(&ours),
			 s->cut_short ? ", cut short" : "");
}

void served_say(const struct served *s, unsigned int number, int rc, const char *reason)
{
	char options[1024] = "options unknown";

	if (s->configured)
		cfg_print(&s->cfg, OPT_WIRE, options, sizeof(options));
	if (!options[0])
		snprintf(options, sizeof(options), "all defaults");
	if (rc)
		host_say(s->host, "run %u (%s) %s: %s", number, options,
			 s->unable ? "skipped" : "failed", reason);
	else
		say_done(s, number, options);
}
