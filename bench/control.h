/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The control connection: framed JSON messages over TCP (or, for a loopback, a socket pair), every
 * wait with a deadline. The essay is on top of control.c.
 */
#ifndef BENCH_CONTROL_H
#define BENCH_CONTROL_H

#include <jansson.h>
#include <stdint.h>
#include <sys/socket.h>
#include "trace.h"

#define CONTROL_VERSION	    1
#define CONTROL_MAX_PAYLOAD 262144

/* In the order of a session; C: the client sends it, S: the server. */
enum message {
	MSG_HELLO = 1, /* C, S: {version, host, boot} */
	MSG_CONFIG,    /* C: {options: {name: text}, token}: one run begins */
	MSG_READY,     /* S: {address, port, memory, bytes, key}: connect now */
	MSG_CONNECTED, /* S: {}: all data connections stand */
	MSG_START,     /* C: {messages}: what was SENT so far on each QP; counts begin anew */
	MSG_STARTED,   /* S: {}; --bidir: {messages} */
	MSG_STOP,      /* C: {messages}: the timed part is over */
	MSG_RESULT,    /* S: the server's counts; --bidir: {messages} and what it measured */
	MSG_ALIVE,     /* C, S: {}: nothing to say, still there */
	MSG_FAIL,      /* C, S: {reason}: the session is over */
	MSG_BYE,       /* C: {} */
	MSG_GO,	       /* C: {}: with --bidir, both begin to issue */
	MSG_CLOSED,    /* C: {}: with --bidir, its data connections are closed */
	MSG_MEMORY,    /* C: {memory, bytes, key}: with --bidir, after READY */
	MSG_FENCE,     /* C: as CONFIG: not a run begins, but attempts (fence_msg.h) */
	MSG_HOLD,  /* C: {connections, requests}: data connections for one I/O; then CONNECTED */
	MSG_REPLY, /* C: {revoke, key}: reply to its request now */
	MSG_TRY,   /* C: {write, connection, address, bytes, key, position, seed}: an attempt */
	MSG_TRIED, /* S: {outcome, sum, words}: what came of it */
};

struct control {
	int fd;
	char peer[128];		      /* for messages: "10.1.2.3" or "the other thread" */
	struct sockaddr_storage addr; /* of who called us; else empty */
	struct trace trace;
};

/** control_send() - one message; takes the reference to @body (NULL: {}). 0 or -errno: where the
 * peer has gone, as control_reason() says. */
int control_send(struct control *c, enum message type, json_t *body, const struct rxfer_wait *wait);

/**
 * control_recv() - the next message that is not MSG_ALIVE. @body is the caller's.
 * -ETIMEDOUT, -EINTR as @wait says (its cancel_fd is not looked at); -ECONNRESET: the peer has
 * gone; -EPROTO: what it says is no message of ours (HTTP is recognised), or of another version;
 * -EBADMSG: malformed.
 */
int control_recv(struct control *c, enum message *type, json_t **body,
		 const struct rxfer_wait *wait);

/**
 * control_expect() - control_recv(), and it must be @want; anything else goes to
 * control_bad_news().
 */
int control_expect(struct control *c, enum message want, json_t **body,
		   const struct rxfer_wait *wait);

/**
 * control_bad_news() - a message that is not the one due: a MSG_FAIL becomes -EREMOTEIO with the
 * peer's reason as rxfer_error(), or -EREMOTE where that is what its device cannot do; anything
 * else -EPROTO. Drops @body.
 */
int control_bad_news(const struct control *c, enum message type, json_t *body);

/**
 * control_reason() - something failed, and the peer may be about to say why: wait a moment for its
 * MSG_FAIL, behind what it said before, and return as control_bad_news() does; @rc, and
 * rxfer_error() kept, where none comes.
 */
int control_reason(struct control *c, int rc);

/**
 * control_poll() - a message that is not MSG_ALIVE, if one is there: -EAGAIN where none is. Never
 * waits for one to begin.
 * @heard: set to rxfer_now() if anything was there
 */
int control_poll(struct control *c, enum message *type, json_t **body, uint64_t *heard,
		 const struct rxfer_wait *wait);

/** control_fail() - tell the peer rxfer_error(): the session is over. Best effort; keeps
 * rxfer_error(). */
void control_fail(struct control *c, const struct rxfer_wait *wait);

/**
 * control_give_up() - the session is over because of @rc and rxfer_error(): tell the peer, unless
 * it is who said so, or has gone.
 */
void control_give_up(struct control *c, int rc);

/** control_unable() - the same, where rxfer_error() is what our device cannot do at all. */
void control_unable(struct control *c);

/** control_connect() - to a server; unknown hosts, refusals and silence are worded. */
int control_connect(struct control *c, const char *host, uint16_t port,
		    const struct rxfer_wait *wait);

/** control_refuse() - tell who has just called rxfer_error(), without waiting, and close. */
void control_refuse(struct control *c);

/**
 * control_listen() - a listening socket; returns it or -errno.
 * @address: of this machine, or a name of it, of which the first address is taken; empty or NULL:
 * every one, IPv6 and IPv4
 */
int control_listen(const char *address, uint16_t port);

/** control_accept() - take a connection off a listening socket. 0 or -errno. */
int control_accept(int listener, struct control *c);

/** control_pair() - two connected ends inside this process. */
int control_pair(struct control *a, struct control *b);

void control_close(struct control *c);

/**
 * control_uint(), control_text() - a member of a message; -EBADMSG where it lacks or is of another
 * kind. A text is cut at @size, with '?' for all that is not printable ASCII.
 */
int control_uint(const json_t *body, const char *key, uint64_t *out);
int control_text(const json_t *body, const char *key, char *out, size_t size);

#endif
