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

int rxfer_cq_create(struct rxfer_conn *conn, uint32_t entries)
{
	conn->cq = ibv_create_cq(conn->dev->verbs, (int)entries, conn, conn->dev->channel, 0);
	if (!conn->cq)
		return rxfer_queue_refused(
			conn, errno, "ibv_create_cq of %u entries on %s (max_cqe %u, max_cq %u)",
			entries, conn->dev->info.name, conn->dev->info.max_cqe,
			conn->dev->info.max_cq);
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

int rxfer_cq_fetch(struct rxfer_conn *conn)
{
	int n = ibv_poll_cq(conn->cq, RXFER_WC_BATCH, conn->wc);

	conn->wc_next = 0;
	conn->wc_count = n > 0 ? n : 0;
	if (n < 0)
		return rxfer_conn_break(conn, EIO, "ibv_poll_cq on %s failed (%d)",
					conn->dev->info.name, n);
	return n;
}

/* Take all events off the channel and note them with their connections; acknowledged at the end. */
static void take_events(struct rxfer_dev *dev)
{
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(dev->channel, &cq, &context))
		((struct rxfer_conn *)context)->cq_events++;
}

/*
 * Asking for an event and sleeping races with a completion that comes in between, so look once more
 * after asking: what is found stays in conn->wc for the next rxfer_poll().
 */
int rxfer_sleep(struct rxfer_dev *dev, struct rxfer_conn **conns, unsigned int n, int fd, int ms)
{
	struct pollfd p[2] = {{.fd = dev->channel->fd, .events = POLLIN},
			      {.fd = fd, .events = POLLIN}};

	for (unsigned int i = 0; i < n; i++) {
		struct rxfer_conn *c = conns[i];
		int rc;

		if (c->broken || c->wc_next < c->wc_count)
			return 0;
		rc = ibv_req_notify_cq(c->cq, 0);
		if (rc)
			return rxfer_fail(rc, "ibv_req_notify_cq on %s: %s", dev->info.name,
					  strerror(abs(rc)));
		rc = rxfer_cq_fetch(c);
		if (rc)
			return rc < 0 ? rc : 0;
	}
	if (poll(p, 2, ms) < 0)
		return errno == EINTR ? 0 : rxfer_fail(errno, "poll: %m");
	if (p[0].revents & POLLIN)
		take_events(dev);
	return p[1].revents != 0;
}
