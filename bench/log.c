/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Event lines on stderr. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include "log.h"

#define LINE	2048 /* the longest: a run with all options set, and why it failed */
#define GATE_NS 1000000000u

bool log_timed(const char *stream, int fd)
{
	uintmax_t dev, ino;
	struct stat st;

	if (!stream || sscanf(stream, "%ju:%ju", &dev, &ino) != 2 || fstat(fd, &st))
		return true;
	return st.st_dev != dev || st.st_ino != ino;
}

static void clock_text(char *buf, size_t size)
{
	time_t now = time(NULL);
	struct tm tm;

	if (!localtime_r(&now, &tm) || !strftime(buf, size, "%Y-%m-%d %H:%M:%S ", &tm))
		buf[0] = '\0';
}

void log_line(bool timed, const char *format, ...)
{
	char line[LINE], when[32] = "";
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	for (char *p = line; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	if (timed)
		clock_text(when, sizeof(when));
	fprintf(stderr, "%s%s\n", when, line);
}

bool log_gate_open(struct log_gate *g, uint64_t now, unsigned int *kept_back)
{
	if (now < g->next) {
		g->kept_back++;
		return false;
	}
	*kept_back = g->kept_back;
	*g = (struct log_gate){.next = now + GATE_NS};
	return true;
}
