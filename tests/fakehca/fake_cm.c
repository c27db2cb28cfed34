/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdma_cm: event channels, ids, addresses. Each event wakes the channel's file descriptor once, so
 * that poll() works; events are answered by the call that causes them, and wait there until they
 * are got. An id that has events which were got and not acknowledged must not be destroyed: the
 * real library would wait for ever.
 */
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "fake_internal.h"

/* ---- Event channels ---- */

static void release_channel(struct fake_object *object)
{
	struct fake_event_channel *channel = FAKE_OF(object, struct fake_event_channel);
	struct fake_cm_event *ev;

	while ((ev = channel->first)) {
		channel->first = ev->next;
		free(ev);
	}
	close(channel->verbs.fd);
	free(channel);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct fake_event_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->verbs.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (channel->verbs.fd < 0) {
		free(channel);
		return NULL;
	}
	fake_lock();
	fake_object_add(&channel->object, FAKE_EVENT_CHANNEL, release_channel);
	fake_unlock();
	return &channel->verbs;
}

void rdma_destroy_event_channel(struct rdma_event_channel *verbs)
{
	struct fake_event_channel *channel = (struct fake_event_channel *)(void *)verbs;

	fake_lock();
	if (channel->ids)
		fake_violate("rdma_destroy_event_channel: %u ids still report to it", channel->ids);
	fake_object_del(&channel->object);
	fake_unlock();
}

/* ---- Events ---- */

static void append(struct fake_event_channel *channel, struct fake_cm_event *ev)
{
	struct fake_cm_event **p = &channel->first;
	uint64_t one = 1;

	while (*p)
		p = &(*p)->next;
	*p = ev;
	if (write(channel->verbs.fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

/* InfiniBand's private data always arrives in full length, iWARP's as long as it was. */
static void set_param(struct fake_cm_event *ev, const struct fake_id *id,
		      const struct rdma_conn_param *param)
{
	ev->verbs.param.conn = *param;
	ev->verbs.param.conn.private_data = NULL;
	if (!param->private_data_len)
		return;
	memcpy(ev->private_data, param->private_data, param->private_data_len);
	ev->verbs.param.conn.private_data = ev->private_data;
	if (!id->context->config->iwarp)
		ev->verbs.param.conn.private_data_len = FAKE_PRIVATE_MAX;
}

void fake_cm_event(struct fake_id *id, enum rdma_cm_event_type type, int status,
		   const struct rdma_conn_param *param)
{
	struct fake_cm_event *ev = calloc(1, sizeof(*ev));

	if (!ev)
		abort();
	ev->channel = id->channel;
	ev->owner = id->listener ? id->listener : id;
	ev->verbs.id = &id->verbs;
	ev->verbs.listen_id = id->listener ? &id->listener->verbs : NULL;
	ev->verbs.event = type;
	ev->verbs.status = status;
	if (param)
		set_param(ev, id, param);
	append(id->channel, ev);
}

int rdma_get_cm_event(struct rdma_event_channel *verbs, struct rdma_cm_event **out)
{
	struct fake_event_channel *channel = (struct fake_event_channel *)(void *)verbs;
	struct fake_cm_event *ev;
	uint64_t one;

	fake_lock();
	ev = channel->first;
	while (ev && ev->got)
		ev = ev->next;
	if (!ev) {
		fake_no_event(verbs->fd, "rdma_get_cm_event");
	} else {
		ev->got = true;
		((struct fake_id *)(void *)ev->verbs.id)->fetched = true;
		if (read(channel->verbs.fd, &one, sizeof(one)) != sizeof(one))
			abort();
		*out = &ev->verbs;
	}
	fake_unlock();
	errno = EAGAIN;
	return ev ? 0 : -1;
}

static void drop_event(struct fake_cm_event *ev)
{
	struct fake_cm_event **p = &ev->channel->first;
	uint64_t one;

	while (*p != ev)
		p = &(*p)->next;
	*p = ev->next;
	if (!ev->got && read(ev->channel->verbs.fd, &one, sizeof(one)) != sizeof(one))
		abort();
	free(ev);
}

int rdma_ack_cm_event(struct rdma_cm_event *verbs)
{
	fake_lock();
	drop_event((struct fake_cm_event *)(void *)verbs);
	fake_unlock();
	return 0;
}

unsigned int fake_pending_requests(void)
{
	unsigned int n = 0;

	fake_lock();
	for (const struct fake_id *id = fake_id_first(); id; id = fake_id_next(id))
		n += id->state == FAKE_ID_REQUESTED && !id->fetched;
	fake_unlock();
	return n;
}

/* ---- Ids ---- */

static void release_id(struct fake_object *object)
{
	free(FAKE_OF(object, struct fake_id));
}

struct fake_id *fake_id_new(struct fake_event_channel *channel, void *context,
			    enum rdma_port_space ps)
{
	struct fake_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->channel = channel;
	channel->ids++;
	id->verbs.channel = &channel->verbs;
	id->verbs.context = context;
	id->verbs.ps = ps;
	fake_object_add(&id->object, FAKE_ID, release_id);
	return id;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
		   enum rdma_port_space ps)
{
	struct fake_id *id = NULL;

	fake_lock();
	if (ps == RDMA_PS_TCP && channel)
		id = fake_id_new((struct fake_event_channel *)(void *)channel, context, ps);
	fake_unlock();
	if (!id) {
		errno = EINVAL;
		return -1;
	}
	*out = &id->verbs;
	return 0;
}

/* Events that nobody got are dropped; one that somebody got loses its id. */
static unsigned int forget_events(struct fake_id *id)
{
	struct fake_cm_event *ev = id->channel->first, *next;
	unsigned int unacked = 0;

	for (; ev; ev = next) {
		next = ev->next;
		if (ev->owner == id && ev->got) {
			unacked++;
			ev->owner = NULL;
		} else if (!ev->got && (ev->owner == id || ev->verbs.id == &id->verbs)) {
			drop_event(ev);
		}
	}
	return unacked;
}

void fake_id_del(struct fake_id *id)
{
	unsigned int unacked = forget_events(id);

	if (unacked)
		fake_violate("rdma_destroy_id: %u events are not acknowledged; it would wait",
			     unacked);
	id->channel->ids--;
	fake_object_del(&id->object);
}

/* Its QP may be hidden. */
static void check_qps(const struct fake_id *id)
{
	for (struct fake_object *o = fake.objects[FAKE_QP]; o; o = o->next) {
		struct fake_qp *qp = FAKE_OF(o, struct fake_qp);

		if (qp->id != id)
			continue;
		fake_violate("rdma_destroy_id: its QP is still there");
		qp->id = NULL;
	}
}

int rdma_destroy_id(struct rdma_cm_id *verbs)
{
	struct fake_id *id = (struct fake_id *)(void *)verbs;

	fake_lock();
	check_qps(id);
	fake_conn_leave(id);
	fake_id_del(id);
	fake_unlock();
	return 0;
}

/* ---- Addresses ---- */

static __be16 *port_of(struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)addr)->sin6_port
					   : &((struct sockaddr_in *)addr)->sin_port;
}

static bool port_is_taken(__be16 port)
{
	for (const struct fake_id *id = fake_id_first(); id; id = fake_id_next(id)) {
		struct sockaddr_storage own = id->verbs.route.addr.src_storage;

		if (id->state == FAKE_ID_LISTENING && *port_of(&own) == port)
			return true;
	}
	return false;
}

static size_t size_of(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in);
}

static int bind_id(struct fake_id *id, const struct sockaddr *addr)
{
	struct sockaddr_storage *src = &id->verbs.route.addr.src_storage;

	if (id->state != FAKE_ID_NEW)
		return fake_refuse(EINVAL, "rdma_bind_addr: it is bound already");
	id->context = fake_net_device(addr);
	if (!id->context)
		return fake_refuse(ENODEV, "rdma_bind_addr: no device has this address");
	memcpy(src, addr, size_of(addr));
	if (*port_of(src) == 0)
		*port_of(src) = htons((uint16_t)(40000 + fake.ports++ % 20000));
	if (port_is_taken(*port_of(src)))
		return fake_refuse(EADDRINUSE, "rdma_bind_addr: the port is taken");
	id->verbs.verbs = &id->context->verbs.context;
	id->verbs.port_num = 1;
	id->state = FAKE_ID_BOUND;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *verbs, struct sockaddr *addr)
{
	int err;

	fake_lock();
	err = bind_id((struct fake_id *)(void *)verbs, addr);
	fake_unlock();
	errno = err ? err : errno;
	return err ? -1 : 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *verbs)
{
	return *port_of(&verbs->route.addr.src_storage);
}

int rdma_resolve_addr(struct rdma_cm_id *verbs, struct sockaddr *src, struct sockaddr *dst, int ms)
{
	struct fake_id *id = (struct fake_id *)(void *)verbs;
	int err = 0, fault;

	(void)ms;
	fake_lock();
	if (id->state == FAKE_ID_NEW)
		err = src ? bind_id(id, src) : EINVAL;
	if (!err && id->state != FAKE_ID_BOUND)
		err = fake_refuse(EINVAL, "rdma_resolve_addr: out of order");
	if (err)
		goto out;
	memcpy(&verbs->route.addr.dst_storage, dst, size_of(dst));
	fault = fake_fault(&fake.config.fail_resolve);
	if (fault || !fake_net_device(dst)) {
		fake_cm_event(id, RDMA_CM_EVENT_ADDR_ERROR, fault ? -fault : -ENETUNREACH, NULL);
	} else {
		id->state = FAKE_ID_ADDR;
		fake_cm_event(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL);
	}
out:
	fake_unlock();
	errno = err ? err : errno;
	return err ? -1 : 0;
}

int rdma_resolve_route(struct rdma_cm_id *verbs, int ms)
{
	struct fake_id *id = (struct fake_id *)(void *)verbs;
	int err = 0;

	(void)ms;
	fake_lock();
	if (id->state != FAKE_ID_ADDR) {
		err = fake_refuse(EINVAL, "rdma_resolve_route: no address yet");
	} else {
		id->state = FAKE_ID_ROUTE;
		fake_cm_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL);
	}
	fake_unlock();
	errno = err ? err : errno;
	return err ? -1 : 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const words[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED] = "address resolved",
		[RDMA_CM_EVENT_ADDR_ERROR] = "address error",
		[RDMA_CM_EVENT_ROUTE_RESOLVED] = "route resolved",
		[RDMA_CM_EVENT_ROUTE_ERROR] = "route error",
		[RDMA_CM_EVENT_CONNECT_REQUEST] = "connect request",
		[RDMA_CM_EVENT_CONNECT_RESPONSE] = "connect response",
		[RDMA_CM_EVENT_CONNECT_ERROR] = "connect error",
		[RDMA_CM_EVENT_UNREACHABLE] = "unreachable",
		[RDMA_CM_EVENT_REJECTED] = "rejected",
		[RDMA_CM_EVENT_ESTABLISHED] = "established",
		[RDMA_CM_EVENT_DISCONNECTED] = "disconnected",
		[RDMA_CM_EVENT_DEVICE_REMOVAL] = "device removal",
	};
	unsigned int i = (unsigned int)event;

	return i < sizeof(words) / sizeof(words[0]) && words[i] ? words[i] : "some event";
}
