/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The line that says what failed, kept for each thread; and the clock. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include "rxfer.h"

static _Thread_local char last_error[512];

const char *rxfer_error(void)
{
	return last_error[0] ? last_error : "no error was recorded";
}

int rxfer_fail(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(last_error, sizeof(last_error), format, args);
	va_end(args);
	if (err == 0) /* a library that failed without saying why must not look like a success */
		err = EIO;
	return err < 0 ? err : -err;
}

uint64_t rxfer_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
