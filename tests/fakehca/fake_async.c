/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a device reports by itself. As in the kernel, a context has one list of such events, and who
 * asks first gets the next one; those of a queue that is destroyed go with it, but for the ones
 * that somebody got: until they are acknowledged, the real library waits.
 */
#include <sys/eventfd.h>
#include <unistd.h>
#include "fake_internal.h"

struct fake_async {
	struct ibv_async_event verbs;
	struct fake_async *next;
};

void fake_async_open(struct fake_context *c)
{
	c->verbs.context.async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
}

static struct fake_async *take(struct fake_context *c, struct fake_async **at)
{
	struct fake_async *ev = *at;
	uint64_t one;

	*at = ev->next;
	if (read(c->verbs.context.async_fd, &one, sizeof(one)) != sizeof(one))
		abort();
	return ev;
}

void fake_async_close(struct fake_context *c)
{
	while (c->async)
		free(take(c, &c->async));
	if (c->config && c->verbs.context.async_fd >= 0)
		close(c->verbs.context.async_fd);
}

static void append(struct fake_context *c, const struct ibv_async_event *verbs)
{
	struct fake_async *ev = calloc(1, sizeof(*ev)), **p = &c->async;
	uint64_t one = 1;

	if (!ev)
		abort();
	ev->verbs = *verbs;
	while (*p)
		p = &(*p)->next;
	*p = ev;
	if (write(c->verbs.context.async_fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

static bool of_qp(enum ibv_event_type type)
{
	return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
	       type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_COMM_EST ||
	       type == IBV_EVENT_SQ_DRAINED || type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

/* Those in use, which an event of the type could be about. */
static unsigned int *waiting_of(const struct ibv_async_event *ev)
{
	if (of_qp(ev->event_type))
		return &((struct fake_qp *)(void *)ev->element.qp)->unacked;
	if (ev->event_type == IBV_EVENT_CQ_ERR)
		return &((struct fake_cq *)(void *)ev->element.cq)->async_unacked;
	return NULL;
}

/* The first device's; of the QP that was made first, and of its CQ. */
void fake_async_raise(enum ibv_event_type type)
{
	struct fake_context *c = &fake.context[0];
	struct ibv_async_event ev = {.event_type = type, .element.port_num = 1};
	struct fake_object *o = fake.objects[FAKE_QP];

	if (type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_PORT_ACTIVE)
		fake.config.device[0].down = type == IBV_EVENT_PORT_ERR;
	while (o && o->next)
		o = o->next;
	if (of_qp(type) || type == IBV_EVENT_CQ_ERR) {
		if (!o)
			return;
		ev.element.qp = &FAKE_OF(o, struct fake_qp)->verbs;
	}
	if (type == IBV_EVENT_CQ_ERR)
		ev.element.cq = ev.element.qp->send_cq;
	if (c->verbs.context.async_fd >= 0)
		append(c, &ev);
}

void fake_raise(enum ibv_event_type type)
{
	fake_lock();
	fake_async_raise(type);
	fake_unlock();
}

void fake_async_forget(struct fake_context *c, const void *queue, unsigned int unacked)
{
	struct fake_async **p = &c->async;

	while (*p) {
		const struct ibv_async_event *ev = &(*p)->verbs;
		bool its = waiting_of(ev) && (ev->element.qp == queue || ev->element.cq == queue);

		if (its)
			free(take(c, p));
		else
			p = &(*p)->next;
	}
	if (unacked)
		fake_violate("a queue is destroyed, and %u of its asynchronous events are not "
			     "acknowledged; it would wait",
			     unacked);
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *out)
{
	struct fake_context *c = fake_context(context);
	struct fake_async *ev = NULL;
	unsigned int *waiting;

	fake_lock();
	if (c->async) {
		ev = take(c, &c->async);
		*out = ev->verbs;
		waiting = waiting_of(out);
		if (waiting)
			++*waiting;
	} else {
		fake_no_event(context->async_fd, "ibv_get_async_event");
	}
	fake_unlock();
	free(ev);
	errno = EAGAIN;
	return ev ? 0 : -1;
}

void ibv_ack_async_event(struct ibv_async_event *ev)
{
	unsigned int *waiting;

	fake_lock();
	waiting = waiting_of(ev);
	if (waiting)
		--*waiting;
	fake_unlock();
}

const char *ibv_event_type_str(enum ibv_event_type type)
{
	return type == IBV_EVENT_PATH_MIG_ERR ? "failed to migrate path" : "some event";
}
