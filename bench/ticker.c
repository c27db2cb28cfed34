/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * With --poll event an end sleeps until a completion comes. It must also notice what its peer says,
 * that it is to stop, and that time is up. poll(2) over the completion channel and the control
 * socket does it, at the price of one more system call for each sleep, some 2,000 instructions:
 * with small SENDs, where the receiver sleeps before each message, that is 7 % of the whole
 * message. It would be the benchmark's cost, not the network's, and no program that waits for
 * completions alone has it.
 *
 * So an end sleeps in the read of the completion channel itself, and a signal to its thread ends
 * the read: SIGIO's mechanism when the control socket has something to read, a timer for all else.
 * A signal that comes just before the read does not end it, so the timer goes on for ever: the read
 * lasts one period longer at worst.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../src/rxfer.h"
#include "ticker.h"

#ifndef sigev_notify_thread_id /* the C library of 2023 has it in the kernel's header alone */
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define TICK SIGRTMIN

static void on_tick(int number)
{
	(void)number;
}

/* Without SA_RESTART: what is interrupted returns. Where the user has too many signals pending to
 * queue one more, the kernel sends SIGIO in its place, which would end the process. */
static int catch_ticks(void)
{
	struct sigaction act = {.sa_handler = on_tick};

	return sigaction(TICK, &act, NULL) || sigaction(SIGIO, &act, NULL) ? -errno : 0;
}

static int make_timer(struct ticker *t, pid_t thread)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = TICK};

	event.sigev_notify_thread_id = thread;
	return timer_create(CLOCK_MONOTONIC, &event, &t->timer) ? -errno : 0;
}

static int set_period(const struct ticker *t, long ns)
{
	struct itimerspec period = {{0, ns}, {0, ns}};

	return timer_settime(t->timer, 0, &period, NULL) ? -errno : 0;
}

static int listen_to(int fd, pid_t thread)
{
	struct f_owner_ex owner = {F_OWNER_TID, thread};

	if (fcntl(fd, F_SETOWN_EX, &owner) || fcntl(fd, F_SETSIG, TICK) ||
	    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC))
		return -errno;
	return 0;
}

int ticker_start(struct ticker *t, int fd, long ns)
{
	pid_t thread = (pid_t)syscall(SYS_gettid);
	int rc;

	if (t->runs)
		return 0;
	rc = catch_ticks();
	if (!rc)
		rc = make_timer(t, thread);
	if (rc)
		return rxfer_fail(rc, "cannot make a timer: %s%s", strerror(-rc),
				  rc == -EAGAIN ? " (more pending signals: ulimit -i)" : "");
	t->fd = fd;
	t->runs = true;
	rc = listen_to(fd, thread);
	if (!rc)
		rc = set_period(t, ns);
	if (!rc)
		return 0;
	ticker_stop(t);
	return rxfer_fail(rc, "cannot start a timer: %s", strerror(-rc));
}

void ticker_stop(struct ticker *t)
{
	if (!t->runs)
		return;
	fcntl(t->fd, F_SETFL, fcntl(t->fd, F_GETFL) & ~O_ASYNC);
	timer_delete(t->timer);
	t->runs = false;
}
