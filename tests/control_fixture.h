/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of the control connection share: links of each kind, raw bytes, and time. */
#ifndef RXFER_TESTS_CONTROL_FIXTURE_H
#define RXFER_TESTS_CONTROL_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "control.h"

#define MAGIC	   0x52584642u
#define HEADER	   12
#define MS	   1000000ull
#define LONG_MS	   5000 /* a wait that must never be used up */
#define LATE_MS	   900	/* by which a deadline may be overrun on a busy machine */
#define FILLER_MAX (CONTROL_MAX_PAYLOAD + 64)

enum kind { PAIR, IPV4, IPV6, KINDS };

/* Two connected ends. */
struct link {
	struct control a, b;
};

static inline struct rxfer_wait within(uint64_t ms)
{
	return (struct rxfer_wait){rxfer_now() + ms * MS, -1, NULL};
}

static inline uint16_t port_of(int listener)
{
	struct sockaddr_storage addr;
	socklen_t size = sizeof(addr);

	assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &size), 0);
	return ntohs(addr.ss_family == AF_INET ? ((struct sockaddr_in *)&addr)->sin_port
					       : ((struct sockaddr_in6 *)&addr)->sin6_port);
}

/* Does this machine have ::1? */
static inline bool have_ipv6(void)
{
	struct sockaddr_in6 addr = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool have = fd >= 0 && !bind(fd, (struct sockaddr *)&addr, sizeof(addr));

	if (fd >= 0)
		close(fd);
	return have;
}

/* Ends over TCP through control_connect(), control_listen() and control_accept(). */
static inline void make_tcp(struct link *l, const char *host)
{
	struct rxfer_wait wait = within(LONG_MS);
	int listener = control_listen(NULL, 0);

	assert_true(listener >= 0);
	assert_int_equal(control_connect(&l->a, host, port_of(listener), &wait), 0);
	assert_int_equal(control_accept(listener, &l->b), 0);
	close(listener);
}

/* False where this machine cannot. */
static inline bool make_link(struct link *l, enum kind kind)
{
	if (kind == PAIR)
		assert_int_equal(control_pair(&l->a, &l->b), 0);
	else if (kind == IPV4)
		make_tcp(l, "127.0.0.1");
	else if (have_ipv6())
		make_tcp(l, "::1");
	else
		return false;
	return true;
}

static inline void drop_link(struct link *l)
{
	control_close(&l->a);
	control_close(&l->b);
}

static inline void put_header(void *to, uint32_t magic, uint16_t version, uint16_t type,
			      uint32_t length)
{
	unsigned char *p = to;

	magic = htonl(magic);
	version = htons(version);
	type = htons(type);
	length = htonl(length);
	memcpy(p, &magic, 4);
	memcpy(p + 4, &version, 2);
	memcpy(p + 6, &type, 2);
	memcpy(p + 8, &length, 4);
}

/* All of it at once: for what fits into a socket's buffer. */
static inline void put(const struct control *c, const void *bytes, size_t n)
{
	assert_int_equal(send(c->fd, bytes, n, MSG_NOSIGNAL), n);
}

/* A whole message with any payload. */
static inline void put_message(const struct control *c, enum message type, const void *payload,
			       size_t n)
{
	char header[HEADER];

	put_header(header, MAGIC, CONTROL_VERSION, type, (uint32_t)n);
	put(c, header, HEADER);
	if (n)
		put(c, payload, n);
}

/* One message is due, and none: -errno with @part in rxfer_error(). */
static inline void assert_refused(struct control *c, int err, const char *part)
{
	struct rxfer_wait wait = within(LONG_MS);
	enum message type;
	json_t *body;

	rxfer_fail(EIO, "stale");
	assert_int_equal(control_recv(c, &type, &body, &wait), -err);
	if (!strstr(rxfer_error(), part) || !strstr(rxfer_error(), c->peer))
		fail_msg("neither %s nor %s in: %s", part, c->peer, rxfer_error());
}

static inline json_t *receive(struct control *c, enum message want)
{
	struct rxfer_wait wait = within(LONG_MS);
	enum message type;
	json_t *body;

	if (control_recv(c, &type, &body, &wait))
		fail_msg("%s", rxfer_error());
	assert_int_equal(type, want);
	return body;
}

/* It took from @ms to a little more. */
static inline void assert_took(uint64_t start, uint64_t ms)
{
	assert_in_range(rxfer_now() - start, ms * MS, (ms + LATE_MS) * MS);
}

static inline void nap(unsigned int ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

/*
 * struct writer - a peer in a thread of its own.
 * @pause_ms: between bytes; 0: all at once
 * @limit_ms: it gives up then
 * @again:    over and over
 */
struct writer {
	int fd;
	const void *bytes;
	size_t n;
	unsigned int pause_ms, limit_ms;
	bool again;
	pthread_t thread;
};

static inline void *write_all(void *arg)
{
	const struct writer *w = arg;
	uint64_t end = rxfer_now() + w->limit_ms * MS;
	size_t at = 0;

	while (at < w->n && rxfer_now() < end) {
		ssize_t done = send(w->fd, (const char *)w->bytes + at, w->pause_ms ? 1 : w->n - at,
				    MSG_NOSIGNAL | MSG_DONTWAIT);

		if (done < 0 && errno != EAGAIN)
			break;
		if (done > 0)
			at += (size_t)done;
		else
			sched_yield();
		if (at == w->n && w->again)
			at = 0;
		if (w->pause_ms)
			nap(w->pause_ms);
	}
	shutdown(w->fd, SHUT_WR);
	return NULL;
}

static inline void writer_start(struct writer *w)
{
	assert_int_equal(pthread_create(&w->thread, NULL, write_all, w), 0);
}

static inline void writer_join(struct writer *w)
{
	assert_int_equal(pthread_join(w->thread, NULL), 0);
}

/* struct alarm_clock - sets a stop flag after a while, as a signal would. */
struct alarm_clock {
	atomic_int stop;
	unsigned int ms;
	pthread_t thread;
};

static inline void *ring(void *arg)
{
	struct alarm_clock *a = arg;

	nap(a->ms);
	a->stop = 1;
	return NULL;
}

static inline void alarm_start(struct alarm_clock *a, unsigned int ms)
{
	a->stop = 0;
	a->ms = ms;
	assert_int_equal(pthread_create(&a->thread, NULL, ring, a), 0);
}

static inline void alarm_join(struct alarm_clock *a)
{
	assert_int_equal(pthread_join(a->thread, NULL), 0);
}

#endif
