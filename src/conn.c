/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections by rdma_cm: queues sized by the send-queue rules, both sides bound to the device
 * asked for, nothing accepted that does not carry the session's token.
 *
 * All ids of an end report to its one event channel, so whoever waits for its own event also meets
 * others': a peer that went away, a stranger at the listener. They are dealt with where they are
 * met (see other_event).
 *
 * READs in flight: initiator_depth and responder_resources are given by both sides, each the
 * minimum of what it can, what it was asked for, and what it was offered. Left at 0, a READ hangs
 * without a word on some devices.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reg.h"

#define CM_MAGIC    0x52584652u /* "RXFR" */
#define CM_VERSION  1
#define RESOLVE_MS  2000
#define ACCEPT_BACK 128 /* connection requests that may queue up */

/* What a data connection says of itself; rdma_cm leaves us 56 bytes on InfiniBand. */
struct cm_private {
	uint32_t magic;
	uint16_t version;
	uint16_t index;
	uint8_t token[RXFER_TOKEN_BYTES];
} __attribute__((packed));

struct rxfer_listener {
	struct rxfer_dev *dev;
	struct rdma_cm_id *id;
};

int rxfer_conn_break(struct rxfer_conn *conn, int err, const char *format, ...)
{
	va_list args;

	if (!conn->broken) {
		va_start(args, format);
		vsnprintf(conn->broken_why, sizeof(conn->broken_why), format, args);
		va_end(args);
		conn->broken = err ? -abs(err) : -EIO;
		conn->most = 0;
	}
	return rxfer_fail(conn->broken, "%s", conn->broken_why);
}

/* ---- Waiting ---- */

static int wait_over(const struct rxfer_wait *wait, const char *what)
{
	if (wait->stop && *wait->stop)
		return rxfer_fail(EINTR, "interrupted while waiting for %s", what);
	if (rxfer_now() >= wait->deadline)
		return rxfer_fail(
			ETIMEDOUT,
			"no answer in time while waiting for %s: is the peer's RDMA network reachable? (--timeout)",
			what);
	return 0;
}

/*
 * The peer may speak on its control connection before our own event is here (its message took the
 * faster way): only if the event does not follow soon was it bad news.
 */
#define CANCEL_GRACE_NS 500000000u

static int next_event(struct rxfer_dev *dev, const struct rxfer_wait *wait, const char *what,
		      struct rdma_cm_event **ev)
{
	struct pollfd p[2] = {{.fd = dev->events->fd, .events = POLLIN},
			      {.fd = wait->cancel_fd, .events = POLLIN}};
	uint64_t cancelled = UINT64_MAX;

	for (;;) {
		int rc = wait_over(wait, what);

		if (rc)
			return rc;
		if (rxfer_now() >= cancelled)
			return rxfer_fail(ECANCELED,
					  "the peer spoke up or went away while we waited for %s",
					  what);
		if (poll(p, 2, 20) < 0 && errno != EINTR)
			return rxfer_fail(errno, "poll: %m");
		if (p[0].revents & POLLIN && !rdma_get_cm_event(dev->events, ev)) {
			rxfer_dev_trace(dev, *ev);
			return 0;
		}
		if (p[0].revents && errno != EAGAIN)
			return rxfer_fail(errno, "rdma_get_cm_event: %m");
		if (p[1].revents) {
			p[1].fd = -1;
			p[1].revents = 0;
			cancelled = rxfer_now() + CANCEL_GRACE_NS;
		}
	}
}

/* An event that nobody waits for: note that a peer has gone, turn strangers away. Acknowledges it.
 */
static void other_event(struct rdma_cm_event *ev)
{
	struct rdma_cm_id *id = ev->id;
	struct rxfer_conn *conn = id->context;
	enum rdma_cm_event_type type = ev->event;

	rdma_ack_cm_event(ev);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
	} else if (conn && conn->established &&
		   (type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_DEVICE_REMOVAL)) {
		conn->ended = rdma_event_str(type);
		rxfer_conn_break(conn, ECONNRESET, "the data connection ended: %s",
				 rdma_event_str(type));
	}
}

static int unexpected(const struct rdma_cm_event *ev, const char *what)
{
	switch (ev->event) {
	case RDMA_CM_EVENT_REJECTED:
		return rxfer_fail(ECONNREFUSED,
				  "%s: the peer's listener refused the data connection (status %d)",
				  what, ev->status);
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return rxfer_fail(
			EHOSTUNREACH,
			"%s: no way to the peer's RDMA address (%s, %s): are both devices on one network?",
			what, rdma_event_str(ev->event), strerror(abs(ev->status)));
	default:
		return rxfer_fail(EIO, "%s: unexpected %s (status %d)", what,
				  rdma_event_str(ev->event), ev->status);
	}
}

/* What a connection request says of itself; false where it is not one of ours. */
static bool read_request(const struct rdma_cm_event *ev, struct cm_private *said)
{
	const struct rdma_conn_param *p = &ev->param.conn;

	if (ev->event != RDMA_CM_EVENT_CONNECT_REQUEST || !p->private_data ||
	    p->private_data_len < sizeof(*said))
		return false;
	memcpy(said, p->private_data, sizeof(*said));
	return ntohl(said->magic) == CM_MAGIC && ntohs(said->version) == CM_VERSION;
}

/*
 * The peer may ask for its next connection as soon as it sees this one established, and that
 * request can overtake our own event. It is kept for rxfer_accept(); there can be one such at a
 * time.
 */
static void keep_or_drop(struct rxfer_dev *dev, struct rdma_cm_event *ev)
{
	struct cm_private said;

	if (!dev->early && read_request(ev, &said))
		dev->early = ev;
	else
		other_event(ev);
}

const char *rxfer_conn_ended(struct rxfer_conn *conn)
{
	struct rdma_cm_event *ev;

	while (!rdma_get_cm_event(conn->dev->events, &ev)) {
		rxfer_dev_trace(conn->dev, ev);
		keep_or_drop(conn->dev, ev);
	}
	return conn->ended;
}

/* Wait until @id has the event @want; anything else of this id is an error. */
static int await(struct rxfer_dev *dev, const struct rdma_cm_id *id, enum rdma_cm_event_type want,
		 const struct rxfer_wait *wait, const char *what)
{
	struct rdma_cm_event *ev;
	int rc;

	for (;;) {
		rc = next_event(dev, wait, what, &ev);
		if (rc)
			return rc;
		if (ev->id == id)
			break;
		keep_or_drop(dev, ev);
	}
	rc = ev->event == want ? 0 : unexpected(ev, what);
	rdma_ack_cm_event(ev);
	return rc;
}

/* ---- Making one ---- */

/* Everything of a connection but the handshake. Takes @id over, also in failure. */
static int setup(struct rxfer_dev *dev, struct rdma_cm_id *id, const struct rxfer_conn_attr *attr,
		 struct rxfer_conn **out)
{
	struct rxfer_conn *conn = calloc(1, sizeof(*conn));
	int rc;

	if (!conn) {
		rdma_destroy_id(id);
		return rxfer_fail(ENOMEM, "out of memory for a connection");
	}
	conn->dev = dev;
	conn->reg = dev->reg;
	conn->attr = *attr;
	conn->id = id;
	id->context = conn;
	if (!id->verbs || strcmp(ibv_get_device_name(id->verbs->device), dev->info.name)) {
		rc = rxfer_fail(
			ENODEV,
			"rdma_cm chose device %s for the connection, not %s: do both sit on one interface or address? Give %s an interface of its own",
			id->verbs ? ibv_get_device_name(id->verbs->device) : "none", dev->info.name,
			dev->info.name);
		goto fail;
	}
	rc = rxfer_qp_create(conn);
	if (!rc)
		rc = rxfer_xfer_init(conn);
	if (rc)
		goto fail;
	*out = conn;
	return 0;
fail:
	rxfer_conn_close(conn);
	return rc;
}

int rxfer_conn_check(const struct rxfer_dev *dev, const struct rxfer_conn_attr *attr)
{
	if (attr->rd_atomic > dev->info.max_rd_atomic)
		return rxfer_fail(
			EINVAL,
			"--rd-atomic %u is more than %s has: a queue pair sends and answers %s at a time (the smaller of max_qp_rd_atom and max_qp_init_rd_atom): use --rd-atomic %u or less",
			attr->rd_atomic, dev->info.name,
			rxfer_count(dev->info.max_rd_atomic, "READ").s, dev->info.max_rd_atomic);
	return rxfer_path_check(dev, attr->sl);
}

/* READs in flight that we are ready for, before the peer has its say. */
static uint32_t own_rd_atomic(const struct rxfer_conn *conn)
{
	return conn->attr.rd_atomic ? conn->attr.rd_atomic : conn->dev->info.max_rd_atomic;
}

/* Which of the two numbers holds; an offer of 0 means that the peer's stack did not say. */
static uint8_t agree(uint32_t own, uint8_t offered)
{
	uint32_t most = own > 255 ? 255 : own;

	return offered && offered < most ? offered : (uint8_t)most;
}

/* It stands. READs in flight and service level are noted as the QP really has them. */
static void note_established(struct rxfer_conn *conn)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	conn->established = true;
	rxfer_path_note(conn);
	if (!ibv_query_qp(conn->id->qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC, &init))
		conn->info.rd_atomic = attr.max_rd_atomic;
}

/* ---- The listening side ---- */

int rxfer_listen(struct rxfer_dev *dev, struct rxfer_listener **out)
{
	struct rxfer_listener *l = calloc(1, sizeof(*l));
	struct sockaddr_storage any_port = dev->addr;
	int rc;

	if (!l)
		return rxfer_fail(ENOMEM, "out of memory");
	l->dev = dev;
	if (rdma_create_id(dev->events, &l->id, NULL, RDMA_PS_TCP)) {
		rc = rxfer_fail(errno, "rdma_create_id: %m");
		goto fail;
	}
	if (rdma_bind_addr(l->id, (struct sockaddr *)&any_port) ||
	    rdma_listen(l->id, ACCEPT_BACK)) {
		rc = rxfer_fail(errno, "listening on %s (%s): %m", dev->info.name, dev->info.addr);
		goto fail;
	}
	*out = l;
	return 0;
fail:
	rxfer_listener_close(l);
	return rc;
}

void rxfer_listener_addr(const struct rxfer_listener *l, struct sockaddr_storage *addr)
{
	*addr = l->dev->addr;
	if (addr->ss_family == AF_INET6)
		((struct sockaddr_in6 *)addr)->sin6_port = rdma_get_src_port(l->id);
	else
		((struct sockaddr_in *)addr)->sin_port = rdma_get_src_port(l->id);
}

void rxfer_listener_close(struct rxfer_listener *l)
{
	if (!l)
		return;
	if (l->dev->early)
		other_event(l->dev->early); /* an id waits for its events to be acknowledged */
	l->dev->early = NULL;
	if (l->id)
		rdma_destroy_id(l->id);
	free(l);
}

/* Does this request carry our token and the index that is due? */
static bool is_ours(const struct rdma_cm_event *ev, const struct rxfer_conn_attr *attr)
{
	struct cm_private said;

	return read_request(ev, &said) && ntohs(said.index) == attr->index &&
	       !memcmp(said.token, attr->token, sizeof(said.token));
}

/* The request that came early, or the next event. */
static int next_request(struct rxfer_dev *dev, const struct rxfer_wait *wait,
			struct rdma_cm_event **ev)
{
	if (!dev->early)
		return next_event(dev, wait, "the peer's data connection", ev);
	*ev = dev->early;
	dev->early = NULL;
	return 0;
}

static int await_request(struct rxfer_listener *l, const struct rxfer_conn_attr *attr,
			 const struct rxfer_wait *wait, struct rdma_cm_id **id,
			 struct rdma_conn_param *offered)
{
	struct rdma_cm_event *ev;
	int rc;

	for (;;) {
		rc = next_request(l->dev, wait, &ev);
		if (rc)
			return rc;
		if (is_ours(ev, attr))
			break;
		other_event(ev);
	}
	*id = ev->id;
	(*id)->context = NULL;
	*offered = ev->param.conn;
	rdma_ack_cm_event(ev);
	return 0;
}

/* Are the QP's steps ours to take? rdma_cm does so with what it made itself, as it likes. */
static bool takes_steps(const struct rxfer_conn *conn)
{
	return conn->attr.sl || conn->reg->create_qp;
}

static int answer(struct rxfer_conn *conn, const struct rdma_conn_param *offered,
		  const struct rxfer_wait *wait)
{
	uint32_t own = own_rd_atomic(conn);
	struct rdma_conn_param param = {
		.responder_resources = agree(own, offered->responder_resources),
		.initiator_depth = agree(own, offered->initiator_depth),
		.rnr_retry_count = conn->attr.rnr_retry,
	};
	int rc = 0;

	if (takes_steps(conn)) {
		rxfer_path_hide(conn, &param);
		rc = rxfer_path_ready(conn, &param);
	}
	if (!rc && rdma_accept(conn->id, &param))
		rc = rxfer_fail(errno, "rdma_accept on %s: %m", conn->dev->info.name);
	rxfer_path_show(conn);
	if (!rc)
		rc = await(conn->dev, conn->id, RDMA_CM_EVENT_ESTABLISHED, wait,
			   "the data connection to be established");
	if (!rc)
		note_established(conn);
	return rc;
}

int rxfer_accept(struct rxfer_listener *l, const struct rxfer_conn_attr *attr,
		 const struct rxfer_wait *wait, struct rxfer_conn **out)
{
	struct rdma_conn_param offered;
	struct rxfer_conn *conn;
	struct rdma_cm_id *id;
	int rc = rxfer_conn_check(l->dev, attr);

	if (!rc)
		rc = await_request(l, attr, wait, &id, &offered);
	if (!rc)
		rc = setup(l->dev, id, attr, &conn);
	if (rc)
		return rc;
	rc = answer(conn, &offered, wait);
	if (rc) {
		rxfer_conn_close(conn);
		return rc;
	}
	*out = conn;
	return 0;
}

/* ---- The connecting side ---- */

static int resolve(struct rxfer_dev *dev, struct rdma_cm_id *id,
		   const struct sockaddr_storage *addr, const struct rxfer_wait *wait)
{
	struct sockaddr_storage to = *addr, from = dev->addr;
	int rc;

	if (rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, RESOLVE_MS))
		return rxfer_fail(errno, "rdma_resolve_addr from %s (%s): %m", dev->info.name,
				  dev->info.addr);
	rc = await(dev, id, RDMA_CM_EVENT_ADDR_RESOLVED, wait, "the peer's RDMA address");
	if (rc)
		return rc;
	if (rdma_resolve_route(id, RESOLVE_MS))
		return rxfer_fail(errno, "rdma_resolve_route: %m");
	return await(dev, id, RDMA_CM_EVENT_ROUTE_RESOLVED, wait, "a route to the peer");
}

static int shake_hands(struct rxfer_conn *conn, const struct rxfer_wait *wait)
{
	struct cm_private said = {
		.magic = htonl(CM_MAGIC),
		.version = htons(CM_VERSION),
		.index = htons(conn->attr.index),
	};
	uint8_t most = agree(own_rd_atomic(conn), 0);
	struct rdma_conn_param param = {
		.private_data = &said,
		.private_data_len = sizeof(said),
		.responder_resources = most,
		.initiator_depth = most,
		.retry_count = 7,
		.rnr_retry_count = conn->attr.rnr_retry,
	};
	int rc;

	memcpy(said.token, conn->attr.token, sizeof(said.token));
	if (takes_steps(conn))
		rxfer_path_hide(conn, &param);
	if (rdma_connect(conn->id, &param))
		return rxfer_fail(errno, "rdma_connect on %s: %m", conn->dev->info.name);
	rc = await(conn->dev, conn->id,
		   conn->hidden ? RDMA_CM_EVENT_CONNECT_RESPONSE : RDMA_CM_EVENT_ESTABLISHED, wait,
		   "the peer to accept the data connection");
	if (!rc && conn->hidden)
		rc = rxfer_path_establish(conn);
	if (!rc)
		note_established(conn);
	return rc;
}

int rxfer_connect(struct rxfer_dev *dev, const struct sockaddr_storage *addr,
		  const struct rxfer_conn_attr *attr, const struct rxfer_wait *wait,
		  struct rxfer_conn **out)
{
	struct rdma_cm_id *id;
	struct rxfer_conn *conn;
	int rc = rxfer_conn_check(dev, attr);

	if (rc)
		return rc;
	if (rdma_create_id(dev->events, &id, NULL, RDMA_PS_TCP))
		return rxfer_fail(errno, "rdma_create_id: %m");
	rc = resolve(dev, id, addr, wait);
	if (rc) {
		rdma_destroy_id(id);
		return rc;
	}
	rc = setup(dev, id, attr, &conn);
	if (rc)
		return rc;
	rc = shake_hands(conn, wait);
	if (rc) {
		rxfer_conn_close(conn);
		return rc;
	}
	*out = conn;
	return 0;
}

/* ---- Both ---- */

/* The QP goes first: only then can no NIC touch the memory that is unmapped next. */
void rxfer_conn_close(struct rxfer_conn *conn)
{
	if (!conn)
		return;
	if (conn->established)
		rdma_disconnect(conn->id);
	rxfer_path_show(conn);
	/* A bound window holds on to its QP, whose destruction waits for it: 50 s over rxe. */
	if (conn->by_wr)
		rxfer_expose_destroy(conn);
	if (conn->id->qp)
		rdma_destroy_qp(conn->id);
	rxfer_xfer_destroy(conn);
	rxfer_cq_destroy(conn);
	rdma_destroy_id(conn->id);
	free(conn);
}

const char *rxfer_conn_peer(const struct rxfer_conn *conn, char *buf, size_t size)
{
	const struct sockaddr *addr = rdma_get_peer_addr(conn->id);
	const void *ip = addr->sa_family == AF_INET6
				 ? (const void *)&((const struct sockaddr_in6 *)addr)->sin6_addr
				 : (const void *)&((const struct sockaddr_in *)addr)->sin_addr;

	if ((addr->sa_family != AF_INET && addr->sa_family != AF_INET6) ||
	    !inet_ntop(addr->sa_family, ip, buf, (socklen_t)size))
		snprintf(buf, size, "unknown");
	return buf;
}

void rxfer_conn_info(const struct rxfer_conn *conn, struct rxfer_conn_info *info)
{
	*info = conn->info;
	info->sq_peak = conn->sq.peak;
	info->forced_signals = conn->sig.forced;
	info->key_reuse_min = conn->key_reuse_min == UINT32_MAX ? 0 : conn->key_reuse_min;
}

const struct rxfer_counts *rxfer_conn_counts(const struct rxfer_conn *conn)
{
	return &conn->counts;
}

bool rxfer_conn_refused(const struct rxfer_conn *conn)
{
	return conn->refused;
}

void rxfer_conn_restart(struct rxfer_conn *conn)
{
	memset(&conn->counts, 0, sizeof(conn->counts));
	conn->key_reuse_min = UINT32_MAX;
	rxfer_ledger_restart(&conn->ledger, rxfer_now());
	conn->old_notes = conn->notes;
	conn->sq.peak = rxfer_sq_posted(&conn->sq);
	conn->sig.forced = 0;
	conn->sig.signalled = 0;
}
