/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A message is a header of 12 bytes and a JSON text. The header carries a magic number and the
 * protocol's version in every message, so that whatever is at the other end, the first bytes from
 * there tell: another version, a web server, noise.
 *
 * The JSON text ends with two line ends. They are white space to JSON; a line-based server that we
 * were pointed at by mistake takes them as the end of a request, and answers instead of waiting for
 * ever.
 *
 * A peer may be slow or malicious: lengths are bounded before anything is allocated, and the
 * deadline of a receive holds for the whole message, not for each of its bytes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "control.h"

#define REASON_NS     1000000000u /* for whoever gives up to say why */
#define CONTROL_MAGIC 0x52584642u /* "RXFB" */

struct header {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint32_t length;
};

/* ---- Bytes ---- */

static int wait_over(const struct control *c, const struct rxfer_wait *wait)
{
	if (wait->stop && *wait->stop)
		return rxfer_fail(EINTR, "interrupted");
	if (rxfer_now() >= wait->deadline)
		return rxfer_fail(
			ETIMEDOUT,
			"no answer from %s in time: is it stopped, or no rxfer-bench of this version? (--timeout)",
			c->peer);
	return 0;
}

/* Wait for @events. 0, -ETIMEDOUT or -EINTR. */
static int wait_for(const struct control *c, short events, const struct rxfer_wait *wait)
{
	struct pollfd p = {.fd = c->fd, .events = events};

	for (;;) {
		int rc = wait_over(c, wait);

		if (rc)
			return rc;
		if (poll(&p, 1, 50) > 0)
			return 0;
	}
}

static int gone(const struct control *c, int err)
{
	if (err == 0 || err == ECONNRESET || err == EPIPE)
		return rxfer_fail(ECONNRESET, "%s closed the control connection", c->peer);
	return rxfer_fail(err, "control connection to %s: %s", c->peer, strerror(err));
}

/* All @n bytes, as many as go at a time. @way: POLLOUT, they are sent; POLLIN, received. */
static int move_all(struct control *c, short way, void *data, size_t n,
		    const struct rxfer_wait *wait)
{
	char *p = data;

	while (n) {
		ssize_t done = way == POLLOUT ? send(c->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT)
					      : recv(c->fd, p, n, MSG_DONTWAIT);
		int rc;

		if (done == 0)
			return gone(c, 0);
		if (done > 0) {
			p += done;
			n -= (size_t)done;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return gone(c, errno);
		rc = wait_for(c, way, wait);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- Messages ---- */

static const char *type_name(enum message type)
{
	static const char *const names[] = {
		[MSG_HELLO] = "HELLO",	       [MSG_CONFIG] = "CONFIG", [MSG_READY] = "READY",
		[MSG_CONNECTED] = "CONNECTED", [MSG_START] = "START",	[MSG_STARTED] = "STARTED",
		[MSG_STOP] = "STOP",	       [MSG_RESULT] = "RESULT", [MSG_ALIVE] = "ALIVE",
		[MSG_FAIL] = "FAIL",	       [MSG_BYE] = "BYE",	[MSG_GO] = "GO",
		[MSG_CLOSED] = "CLOSED",       [MSG_MEMORY] = "MEMORY", [MSG_FENCE] = "FENCE",
		[MSG_HOLD] = "HOLD",	       [MSG_REPLY] = "REPLY",	[MSG_TRY] = "TRY",
		[MSG_TRIED] = "TRIED",
	};
	unsigned int i = type;

	return i < sizeof(names) / sizeof(names[0]) && names[i] ? names[i] : "an unknown type";
}

#define TRACED_TEXT 800 /* of a message's body; more is cut */

/* A token lets in whoever has it, and traces are sent around: it is not shown. */
static void trace_message(const struct control *c, const char *what, enum message type,
			  const json_t *body)
{
	json_t *shown = json_copy((json_t *)body);
	char *text;

	if (json_object_get(shown, "token"))
		json_object_set_new(shown, "token", json_string("(not shown)"));
	text = json_dumps(shown, JSON_COMPACT | JSON_ENSURE_ASCII);
	trace_line(&c->trace, "%s %s %s: %.*s%s", what, c->peer, type_name(type), TRACED_TEXT,
		   text ? text : "{}", text && strlen(text) > TRACED_TEXT ? " ..." : "");
	free(text);
	json_decref(shown);
}

int control_send(struct control *c, enum message type, json_t *body, const struct rxfer_wait *wait)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : strdup("{}");
	struct header h = {htonl(CONTROL_MAGIC), htons(CONTROL_VERSION), htons(type), 0};
	char *frame = NULL;
	size_t length;
	int rc;

	if (c->trace.who)
		trace_message(c, "to", type, body);
	json_decref(body);
	if (!text)
		goto no_memory;
	length = strlen(text) + 4;
	frame = malloc(sizeof(h) + length + 1);
	if (!frame)
		goto no_memory;
	h.length = htonl((uint32_t)length);
	memcpy(frame, &h, sizeof(h));
	snprintf(frame + sizeof(h), length + 1, "%s\r\n\r\n", text);
	rc = move_all(c, POLLOUT, frame, sizeof(h) + length, wait);
	free(frame);
	free(text);
	return rc == -ECONNRESET ? control_reason(c, rc) : rc; /* it may have said why it went */
no_memory:
	free(text);
	return rxfer_fail(ENOMEM, "out of memory for a control message");
}

/* The first bytes are not ours: say what they look like. */
static int stranger(const struct control *c, const struct header *h)
{
	static const char *const http[] = {"HTTP", "GET ", "POST", "HEAD", "PUT ", "OPTI"};
	static const char tls[] = {0x16, 0x03}; /* a handshake */

	for (size_t i = 0; i < sizeof(http) / sizeof(http[0]); i++)
		if (!memcmp(h, http[i], 4))
			return rxfer_fail(EPROTO,
					  "%s speaks HTTP, not rxfer-bench: wrong host or --port?",
					  c->peer);
	if (!memcmp(h, tls, sizeof(tls)))
		return rxfer_fail(EPROTO, "%s speaks TLS, not rxfer-bench: wrong host or --port?",
				  c->peer);
	return rxfer_fail(EPROTO, "%s does not speak rxfer-bench: wrong host or --port?", c->peer);
}

static int check_header(const struct control *c, struct header *h)
{
	if (ntohl(h->magic) != CONTROL_MAGIC)
		return stranger(c, h);
	if (ntohs(h->version) != CONTROL_VERSION)
		return rxfer_fail(
			EPROTO,
			"%s speaks version %u of the control protocol, we speak %u: use the same release of rxfer-bench on both sides",
			c->peer, ntohs(h->version), CONTROL_VERSION);
	h->length = ntohl(h->length);
	if (h->length > CONTROL_MAX_PAYLOAD)
		return rxfer_fail(
			EBADMSG,
			"%s announces a control message of %u bytes, at most %u are allowed",
			c->peer, h->length, CONTROL_MAX_PAYLOAD);
	return 0;
}

static int recv_message(struct control *c, enum message *type, json_t **body,
			const struct rxfer_wait *wait)
{
	struct header h;
	json_error_t why;
	char *text;
	int rc = move_all(c, POLLIN, &h, sizeof(h), wait);

	if (!rc)
		rc = check_header(c, &h);
	if (rc)
		return rc;
	text = malloc(h.length + 1);
	if (!text)
		return rxfer_fail(ENOMEM, "out of memory for a control message");
	rc = move_all(c, POLLIN, text, h.length, wait);
	if (!rc) {
		*body = json_loadb(text, h.length, 0, &why);
		if (!json_is_object(*body)) {
			json_decref(*body);
			rc = rxfer_fail(EBADMSG, "%s sent a control message that is no JSON object",
					c->peer);
		}
	}
	free(text);
	*type = ntohs(h.type);
	if (!rc && c->trace.who)
		trace_message(c, "from", *type, *body);
	return rc;
}

int control_recv(struct control *c, enum message *type, json_t **body,
		 const struct rxfer_wait *wait)
{
	for (;;) {
		int rc = recv_message(c, type, body, wait);

		if (rc || *type != MSG_ALIVE)
			return rc;
		json_decref(*body);
		rc = wait_over(c, wait); /* a peer that says only that must not hold us for ever */
		if (rc)
			return rc;
	}
}

int control_bad_news(const struct control *c, enum message type, json_t *body)
{
	bool unable = json_integer_value(json_object_get(body, "unable")) > 0;
	char reason[400];
	int rc;

	if (type == MSG_FAIL && !control_text(body, "reason", reason, sizeof(reason)))
		rc = rxfer_fail(unable ? EREMOTE : EREMOTEIO, "%s: %s", c->peer, reason);
	else
		rc = rxfer_fail(EPROTO, "%s sent message %d when none such was due", c->peer, type);
	json_decref(body);
	return rc;
}

int control_expect(struct control *c, enum message want, json_t **body,
		   const struct rxfer_wait *wait)
{
	enum message type;
	json_t *got;
	int rc = control_recv(c, &type, &got, wait);

	if (rc)
		return rc;
	if (type != want)
		return control_bad_news(c, type, got);
	if (body)
		*body = got;
	else
		json_decref(got);
	return 0;
}

int control_reason(struct control *c, int rc)
{
	struct rxfer_wait soon = {rxfer_now() + REASON_NS, -1, NULL};
	enum message type;
	char ours[512];
	json_t *body;

	snprintf(ours, sizeof(ours), "%s", rxfer_error());
	if (rc == -EINTR)
		return rc;
	/* What it said before is of no more use. */
	while (rxfer_now() < soon.deadline && !control_recv(c, &type, &body, &soon)) {
		if (type == MSG_FAIL)
			return control_bad_news(c, type, body);
		json_decref(body);
	}
	return rxfer_fail(rc, "%s", ours);
}

static void fail(struct control *c, bool unable, const struct rxfer_wait *wait)
{
	char reason[512], sent[400];
	json_t *body;

	snprintf(reason, sizeof(reason), "%s", rxfer_error());
	snprintf(sent, sizeof(sent), "%.399s", reason);
	for (char *p = sent; *p; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?'; /* JSON takes no text but UTF-8; this may be cut, or foreign */
	body = json_pack("{s:s}", "reason", sent);
	if (unable)
		json_object_set_new(body, "unable", json_integer(1));
	control_send(c, MSG_FAIL, body, wait);
	rxfer_fail(EIO, "%s", reason);
}

void control_fail(struct control *c, const struct rxfer_wait *wait)
{
	fail(c, false, wait);
}

void control_give_up(struct control *c, int rc)
{
	struct rxfer_wait soon = {rxfer_now() + REASON_NS, -1, NULL};

	if (rc != -EREMOTEIO && rc != -EREMOTE && rc != -ECONNRESET)
		control_fail(c, &soon);
}

void control_unable(struct control *c)
{
	struct rxfer_wait soon = {rxfer_now() + REASON_NS, -1, NULL};

	fail(c, true, &soon);
}

int control_poll(struct control *c, enum message *type, json_t **body, uint64_t *heard,
		 const struct rxfer_wait *wait)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	int rc;

	if (poll(&p, 1, 0) <= 0)
		return -EAGAIN;
	rc = recv_message(c, type, body, wait);
	if (rc)
		return rc;
	*heard = rxfer_now();
	if (*type != MSG_ALIVE)
		return 0;
	json_decref(*body);
	return -EAGAIN;
}

int control_uint(const json_t *body, const char *key, uint64_t *out)
{
	const json_t *value = json_object_get(body, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return rxfer_fail(EBADMSG, "the peer's message lacks the number %s", key);
	*out = (uint64_t)json_integer_value(value);
	return 0;
}

int control_text(const json_t *body, const char *key, char *out, size_t size)
{
	const char *text = json_string_value(json_object_get(body, key));

	if (!text)
		return rxfer_fail(EBADMSG, "the peer's message lacks the text %s", key);
	snprintf(out, size, "%s", text);
	for (char *p = out; *p; p++)
		if (*p < ' ' || *p > '~') /* UTF-8 has control characters, too, and may be cut */
			*p = '?';
	return 0;
}

/* ---- Connections ---- */

static void set_up(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

static void name_peer(struct control *c, const struct sockaddr *addr, socklen_t size)
{
	if (getnameinfo(addr, size, c->peer, sizeof(c->peer), NULL, 0, NI_NUMERICHOST))
		snprintf(c->peer, sizeof(c->peer), "the peer");
	if (!strncmp(c->peer, "::ffff:", 7))
		memmove(c->peer, c->peer + 7, strlen(c->peer + 7) + 1);
}

/* The name looked for, or the nearest that this machine knows by itself. */
static int unknown_host(const char *host, int err)
{
	struct rxfer_nearest nearest = {.word = host};
	char best[NI_MAXHOST] = "";
	struct hostent *h;

	if (err == EAI_SYSTEM)
		return rxfer_fail(errno, "looking for host %s: %m", host);
	sethostent(0);
	while ((h = gethostent())) {
		rxfer_nearest_try(&nearest, h->h_name);
		if (nearest.best == h->h_name) { /* the next call will overwrite it */
			snprintf(best, sizeof(best), "%s", h->h_name);
			nearest.best = best;
		}
	}
	endhostent();
	return rxfer_fail(ENOENT, "host %s is not known: %s%s%s", host, gai_strerror(err),
			  best[0] ? "; did you mean " : "", best);
}

/* Try one address until the deadline. 0 or an errno value. */
static int try_address(struct control *c, const struct addrinfo *a, const struct rxfer_wait *wait)
{
	socklen_t size = sizeof(int);
	int err = 0;

	c->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return errno;
	name_peer(c, a->ai_addr, a->ai_addrlen);
	if (!connect(c->fd, a->ai_addr, a->ai_addrlen))
		return 0;
	err = errno;
	if (err == EINPROGRESS) {
		err = -wait_for(c, POLLOUT, wait);
		if (!err)
			getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &size);
	}
	if (err) {
		close(c->fd);
		c->fd = -1;
	}
	return err;
}

int control_connect(struct control *c, const char *host, uint16_t port,
		    const struct rxfer_wait *wait)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all;
	char service[8];
	int err;

	*c = (struct control){.fd = -1};
	snprintf(service, sizeof(service), "%u", port);
	err = getaddrinfo(host, service, &hints, &all);
	if (err)
		return unknown_host(host, err);
	for (struct addrinfo *a = all; a; a = a->ai_next) {
		err = try_address(c, a, wait);
		if (!err)
			break;
	}
	freeaddrinfo(all);
	if (err == EINTR)
		return rxfer_fail(EINTR, "interrupted");
	if (err == EMFILE)
		return rxfer_fail(err, "connecting to %s port %u: %s", host, port, strerror(err));
	if (err)
		return rxfer_fail(
			err,
			"no rxfer-bench server at %s port %u: %s: is `rxfer-bench server` running there, and the port open?",
			host, port, strerror(err));
	set_up(c->fd);
	return 0;
}

static int not_listening(const char *address, uint16_t port, int err)
{
	const char *at = address ? address : "", *glue = address ? " " : "";

	if (err == EADDRINUSE)
		return rxfer_fail(
			err,
			"%s%sport %u is in use, perhaps by another rxfer-bench server: choose another with --port on both sides",
			at, glue, port);
	if (err == EADDRNOTAVAIL)
		return rxfer_fail(
			err,
			"--bind %s: this machine has no such address: say one that `ip addr` shows",
			at);
	return rxfer_fail(err, "listening on %s%sport %u: %s", at, glue, port, strerror(err));
}

/* @both: IPv4 callers, too. The socket, or -errno without words. */
static int listen_at(const struct sockaddr *addr, socklen_t size, bool both)
{
	int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, off = 0, err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (both)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (!bind(fd, addr, size) && !listen(fd, 64))
		return fd;
	err = errno;
	close(fd);
	return -err;
}

static int listen_everywhere(uint16_t port)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = listen_at((struct sockaddr *)&any, sizeof(any), true);

	if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL) /* no IPv6 here */
		fd = listen_at((struct sockaddr *)&any4, sizeof(any4), false);
	return fd < 0 ? not_listening(NULL, port, -fd) : fd;
}

int control_listen(const char *address, uint16_t port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *first;
	char service[8];
	int fd;

	if (!address || !address[0])
		return listen_everywhere(port);
	snprintf(service, sizeof(service), "%u", port);
	fd = getaddrinfo(address, service, &hints, &first);
	if (fd)
		return unknown_host(address, fd);
	fd = listen_at(first->ai_addr, first->ai_addrlen, false);
	freeaddrinfo(first);
	return fd < 0 ? not_listening(address, port, -fd) : fd;
}

int control_accept(int listener, struct control *c)
{
	struct sockaddr *from = (struct sockaddr *)&c->addr;
	socklen_t size = sizeof(c->addr);

	*c = (struct control){.fd = -1};
	c->fd = accept4(listener, from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (c->fd < 0)
		return rxfer_fail(errno, "accept: %m");
	name_peer(c, from, size);
	set_up(c->fd);
	return 0;
}

/*
 * What the caller has said already is read, and dropped: closing with bytes unread resets the
 * connection, and a reset may overtake the reason.
 */
void control_refuse(struct control *c)
{
	struct rxfer_wait now = {rxfer_now(), -1, NULL};
	char said[4096];

	control_fail(c, &now);
	shutdown(c->fd, SHUT_WR);
	for (int i = 0; i < 16 && recv(c->fd, said, sizeof(said), MSG_DONTWAIT) > 0; i++)
		;
	control_close(c);
}

int control_pair(struct control *a, struct control *b)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd))
		return rxfer_fail(errno, "socketpair: %m");
	*a = (struct control){.fd = fd[0], .peer = "the server side"};
	*b = (struct control){.fd = fd[1], .peer = "the client side"};
	return 0;
}

void control_close(struct control *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}
