/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a device reports by itself, beside all completions: asynchronous events.
 *
 * They come by one file descriptor of the context, and the context is librdmacm's: all ends of this
 * process that are on the device share it, two of a loopback or the sessions of a server. Whoever
 * looks first gets an event, and nobody else does. So a line about it is told at once, by whoever
 * got it; it explains a failure of that end, unless it is about another end's queues. Nothing is
 * passed on between ends, which would need a lock. Whether a port is down, which is what matters
 * most, an end that fails asks for itself (see poll.c).
 *
 * An event is acknowledged as soon as it is in words: until then its queue cannot be destroyed,
 * which is also why another end's queue can be looked at here.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include "internal.h"

/* How much an event explains. What is INFO is told, and blamed for nothing. */
enum weight { SILENT, INFO, CHANGE, FAILURE };

enum about { PORT, QP, CQ, DEVICE };

/* @words: behind the port, queue or device that it is about. */
static const struct kind {
	enum ibv_event_type type;
	enum about about;
	enum weight weight;
	const char *words;
} kinds[] = {
	{IBV_EVENT_PORT_ERR, PORT, FAILURE, "went down: look at its link"},
	{IBV_EVENT_PORT_ACTIVE, PORT, INFO, "is active"},
	{IBV_EVENT_LID_CHANGE, PORT, CHANGE, "got another LID from its subnet manager"},
	{IBV_EVENT_GID_CHANGE, PORT, CHANGE,
	 "has another table of GIDs: an address of its interface came or went"},
	{IBV_EVENT_PKEY_CHANGE, PORT, CHANGE, "has other partition keys"},
	{IBV_EVENT_SM_CHANGE, PORT, INFO, "has another subnet manager"},
	{IBV_EVENT_CLIENT_REREGISTER, PORT, INFO, "is to register anew with its subnet manager"},
	{IBV_EVENT_DEVICE_FATAL, DEVICE, FAILURE, "has failed and needs a reset: see dmesg"},
	{IBV_EVENT_QP_FATAL, QP, FAILURE, "has failed: see dmesg"},
	{IBV_EVENT_QP_REQ_ERR, QP, FAILURE, "got a request from its peer that is none"},
	{IBV_EVENT_QP_ACCESS_ERR, QP, FAILURE, "got a request that its peer has no right to"},
	{IBV_EVENT_CQ_ERR, CQ, FAILURE, "has failed: it was full, or see dmesg"},
	{IBV_EVENT_COMM_EST, QP, SILENT, ""},
	{IBV_EVENT_SQ_DRAINED, QP, SILENT, ""},
	{IBV_EVENT_QP_LAST_WQE_REACHED, QP, SILENT, ""},
};

static const struct kind *kind_of(enum ibv_event_type type)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].type == type)
			return &kinds[i];
	return NULL;
}

/* The port, queue or device that it is about. */
static void name_it(const struct rxfer_dev *dev, enum about about, const struct ibv_async_event *ev,
		    char *buf, size_t size)
{
	const char *device = dev->info.name;

	switch (about) {
	case PORT:
		snprintf(buf, size, "port %d of %s", ev->element.port_num, device);
		break;
	case QP:
		snprintf(buf, size, "queue pair %u of %s", ev->element.qp->qp_num, device);
		break;
	case CQ:
		snprintf(buf, size, "a completion queue of %s", device);
		break;
	default:
		snprintf(buf, size, "device %s", device);
	}
}

/* Is it about a queue of another end? Each has a protection domain and a channel of its own. */
static bool is_others(const struct rxfer_dev *dev, enum about about,
		      const struct ibv_async_event *ev)
{
	if (about == QP)
		return ev->element.qp->pd != dev->pd;
	return about == CQ && ev->element.cq->channel != dev->channel;
}

static void keep(struct rxfer_dev *dev, enum weight weight, const char *line)
{
	if (weight < CHANGE || weight < dev->event_weight)
		return;
	snprintf(dev->event, sizeof(dev->event), "%s", line);
	dev->event_weight = weight;
	dev->event_at = rxfer_now();
}

static void take(struct rxfer_dev *dev, struct ibv_async_event *ev)
{
	const struct kind *kind = kind_of(ev->event_type);
	char what[128], line[sizeof(dev->event)];

	if (kind && kind->weight == SILENT)
		return;
	name_it(dev, kind ? kind->about : DEVICE, ev, what, sizeof(what));
	snprintf(line, sizeof(line), "%s %s%s", what,
		 kind ? "" : "reports: ", kind ? kind->words : ibv_event_type_str(ev->event_type));
	if (kind && !is_others(dev, kind->about, ev))
		keep(dev, kind->weight, line);
	dev->observer.event(dev->observer.arg, line);
}

void rxfer_dev_look(struct rxfer_dev *dev)
{
	struct ibv_async_event ev;

	if (!dev->observer.event)
		return;
	while (!ibv_get_async_event(dev->verbs, &ev)) {
		take(dev, &ev);
		ibv_ack_async_event(&ev);
	}
}

/* Nobody else reads the descriptor, so nobody minds that reading does not wait any more. */
void rxfer_dev_observe(struct rxfer_dev *dev, const struct rxfer_observer *o)
{
	int fd = dev->verbs->async_fd;

	dev->observer = *o;
	if (!o->event)
		return;
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK)) {
		dev->observer.event = NULL;
		return;
	}
	rxfer_dev_look(dev);
	dev->event[0] = '\0';
	dev->event_weight = SILENT;
}

/* A WR may fail before the device says why: seen on rxe, whose link is down before its port is. */
#define BLAME_MS 200

int rxfer_dev_blame(struct rxfer_dev *dev, int rc)
{
	struct pollfd p = {.events = POLLIN};
	char before[512];

	if (!dev || !dev->observer.event)
		return rc;
	rxfer_dev_look(dev);
	p.fd = dev->verbs->async_fd;
	if ((rc == -EIO || rc == -ENOTCONN) && !dev->event[0] && poll(&p, 1, BLAME_MS) > 0)
		rxfer_dev_look(dev);
	if (!dev->event[0])
		return rc;
	snprintf(before, sizeof(before), "%s", rxfer_error());
	return rxfer_fail(rc, "%s; %.1f s before: %s", before,
			  (double)(rxfer_now() - dev->event_at) / 1e9, dev->event);
}

void rxfer_dev_trace(const struct rxfer_dev *dev, const struct rdma_cm_event *ev)
{
	const struct rxfer_conn *conn = ev->id->context;
	char line[160], of[32] = "";

	if (!dev->observer.trace)
		return;
	if (conn)
		snprintf(of, sizeof(of), ", connection %u", conn->attr.index);
	snprintf(line, sizeof(line), "rdma_cm on %s: %s, status %d%s", dev->info.name,
		 rdma_event_str(ev->event), ev->status, of);
	dev->observer.trace(dev->observer.arg, line);
}
