/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The line that says what failed, kept for each thread; numbers in words; and the clock. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "rxfer.h"

static _Thread_local char last_error[512];

const char *rxfer_error(void)
{
	return last_error[0] ? last_error : "no error was recorded";
}

/*
 * Anything may lack a descriptor, and the remedy is the same for all of it. Once: a line that is
 * passed on is worded again.
 */
static void name_file_limit(void)
{
	size_t used = strlen(last_error);
	struct rlimit limit;

	if (strstr(last_error, "ulimit -n") || getrlimit(RLIMIT_NOFILE, &limit))
		return;
	snprintf(
		last_error + used, sizeof(last_error) - used,
		"; this process may have %llu open: raise that (ulimit -n; LimitNOFILE= in a systemd unit)",
		(unsigned long long)limit.rlim_cur);
}

int rxfer_fail(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(last_error, sizeof(last_error), format, args);
	va_end(args);
	if (abs(err) == EMFILE)
		name_file_limit();
	if (err == 0) /* a library that failed without saying why must not look like a success */
		err = EIO;
	return err < 0 ? err : -err;
}

struct rxfer_text rxfer_count(uint64_t n, const char *noun)
{
	int stem = (int)strlen(noun);
	bool y = n != 1 && stem && noun[stem - 1] == 'y';
	struct rxfer_text text;

	snprintf(text.s, sizeof(text.s), "%llu %.*s%s", (unsigned long long)n, stem - y, noun,
		 n == 1 ? ""
		 : y	? "ies"
			: "s");
	return text;
}

struct rxfer_text rxfer_size(uint64_t bytes)
{
	struct rxfer_text text;

	if (bytes < 1024)
		return rxfer_count(bytes, "byte");
	if (bytes < 1 << 20)
		snprintf(text.s, sizeof(text.s), "%.1f KiB", (double)bytes / 1024);
	else
		snprintf(text.s, sizeof(text.s), "%.1f MiB", (double)bytes / (1 << 20));
	return text;
}

uint64_t rxfer_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
