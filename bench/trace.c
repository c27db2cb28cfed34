/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include "trace.h"

void complain(const char *format, ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	/* In one piece: threads complain, too. Over a line of progress, where there may be one. */
	fprintf(stderr, "%srxfer-bench: %s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", line);
}

void trace_line(const struct trace *t, const char *format, ...)
{
	char line[900];
	va_list args;

	if (!t->who)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	complain("debug: %.6f %s: %s", (double)(rxfer_now() - t->began) / 1e9, t->who, line);
}

static void on_event(void *arg, const char *line)
{
	(void)arg;
	complain("%s", line);
}

static void on_trace(void *arg, const char *line)
{
	trace_line(arg, "%s", line);
}

void trace_device(const struct trace *t, bool deaf, struct rxfer_dev *dev)
{
	struct rxfer_observer o = {
		.event = deaf ? NULL : on_event,
		.trace = t->who ? on_trace : NULL,
		.arg = (void *)t,
	};

	rxfer_dev_observe(dev, &o);
}
