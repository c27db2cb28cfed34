/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues: one for each connection, holding SQ and RQ entries together, so that it can
 * never be full (a full CQ loses completions). All CQs of an end report to its one completion
 * channel.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

/*
 * The flags of a RECV's completion that tell of a SEND_WITH_INV. rxe hands up the kernel's own bit
 * for it, 1 << 2, which means something else to user space and does not occur there (Linux 6.1 to
 * 6.12: rxe_resp.c fills uverbs' wc_flags with enum ib_wc_flags). Who asked for IBV_WC_WITH_INV
 * alone would take the key for live, and revoke it a second time.
 */
unsigned int rxfer_cq_revokes(const struct rxfer_dev *dev)
{
	bool rxe = !strcmp(dev->info.driver, "rxe");

	return IBV_WC_WITH_INV | (rxe ? 1u << 2 : 0);
}

int rxfer_cq_create(struct rxfer_conn *conn, uint32_t entries)
{
	conn->cq = ibv_create_cq(conn->dev->verbs, (int)entries, conn, conn->dev->channel, 0);
	if (!conn->cq)
		return rxfer_queue_refused(conn, errno,
					   "ibv_create_cq of %s on %s (max_cqe %u, max_cq %u)",
					   rxfer_count(entries, "entry").s, conn->dev->info.name,
					   conn->dev->info.max_cqe, conn->dev->info.max_cq);
	return 0;
}

void rxfer_cq_destroy(struct rxfer_conn *conn)
{
	if (!conn->cq)
		return;
	if (conn->cq_events)
		ibv_ack_cq_events(conn->cq, conn->cq_events);
	ibv_destroy_cq(conn->cq);
	conn->cq = NULL;
}

int rxfer_cq_failed(struct rxfer_conn *conn, int n)
{
	conn->wc_next = conn->wc_count = 0;
	return rxfer_conn_break(conn, EIO, "ibv_poll_cq on %s failed (%d)", conn->dev->info.name,
				n);
}

/*
 * Take an event off the channel, and note it with its connection; acknowledged at the end. Blocks
 * until there is one or a signal comes. 0, 1 for the signal, or -errno.
 */
static int take_event(struct rxfer_dev *dev)
{
	struct rxfer_conn *conn;
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(dev->channel, &cq, &context))
		return errno == EINTR
			       ? 1
			       : rxfer_fail(errno, "ibv_get_cq_event on %s: %m", dev->info.name);
	conn = context;
	conn->cq_events++;
	conn->armed = false;
	return 0;
}

/* Ask the CQ for an event with its next completion, unless it was asked and has given none. */
static int arm(struct rxfer_conn *conn)
{
	int rc;

	if (conn->armed)
		return 0;
	rc = ibv_req_notify_cq(conn->cq, 0);
	if (rc)
		return rxfer_fail(rc, "ibv_req_notify_cq on %s: %s", conn->dev->info.name,
				  strerror(abs(rc)));
	conn->armed = true;
	return 0;
}

/* What else is there: one event for each CQ that has one, or each would end a sleep of its own. */
static int take_others(struct rxfer_dev *dev)
{
	struct pollfd p = {.fd = dev->channel->fd, .events = POLLIN};
	int rc = 0;

	while (!rc && poll(&p, 1, 0) > 0)
		rc = take_event(dev);
	return rc;
}

/* Is there an event within @ms? Then it is taken. As rxfer_sleep(). */
static int await_event(struct rxfer_dev *dev, int fd, int ms)
{
	struct pollfd p[2] = {{.fd = dev->channel->fd, .events = POLLIN},
			      {.fd = fd, .events = POLLIN}};
	int ready = poll(p, 2, ms), rc = 0;

	if (ready < 0)
		return errno == EINTR ? 1 : rxfer_fail(errno, "poll: %m");
	if (p[0].revents & POLLIN)
		rc = take_event(dev);
	return rc ? rc : ready == 0 || p[1].revents != 0;
}

/*
 * Asking for an event and sleeping races with a completion that comes in between, so look once more
 * after asking: what is found stays in conn->wc for the next rxfer_poll().
 */
int rxfer_sleep(struct rxfer_dev *dev, struct rxfer_conn **conns, unsigned int n, int fd, int ms)
{
	int rc;

	for (unsigned int i = 0; i < n; i++) {
		struct rxfer_conn *c = conns[i];

		if (c->broken || c->wc_next < c->wc_count)
			return 0;
		rc = arm(c);
		if (!rc)
			rc = rxfer_cq_fetch(c);
		if (rc)
			return rc < 0 ? rc : 0;
	}
	rc = fd < 0 && ms < 0 ? take_event(dev) : await_event(dev, fd, ms);
	return rc || n == 1 ? rc : take_others(dev);
}
