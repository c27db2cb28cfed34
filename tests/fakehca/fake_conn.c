/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdma_cm: how two ids become a connection, and how it ends.
 *
 * What the two sides say of each other when they connect takes effect as in the kernel: either QP
 * sends as many READs as the other end is ready to answer, and is as patient with an empty receive
 * queue as the other end told it to be.
 *
 * An id that has a QP needs no help: it is moved to its states here. Whoever names a QP by number
 * instead, with none at his id, moves it himself (fake_steps.c): before he accepts, or between the
 * event CONNECT_RESPONSE and rdma_establish(), which is when the other end hears of it.
 */
#include <netinet/in.h>
#include "fake_internal.h"

static int fail_with(int err)
{
	errno = err ? err : errno;
	return err ? -1 : 0;
}

/* ---- Listening ---- */

int rdma_listen(struct rdma_cm_id *verbs, int backlog)
{
	struct fake_id *id = (struct fake_id *)(void *)verbs;
	int err = 0;

	fake_lock();
	if (id->state != FAKE_ID_BOUND) {
		err = fake_refuse(EINVAL, "rdma_listen: not bound, or in use");
	} else {
		id->state = FAKE_ID_LISTENING;
		id->backlog = backlog;
	}
	fake_unlock();
	return fail_with(err);
}

static bool same_endpoint(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a6->sin6_port == b6->sin6_port &&
	       !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
}

static struct fake_id *listener_at(const struct sockaddr_storage *addr)
{
	for (struct fake_id *id = fake_id_first(); id; id = fake_id_next(id))
		if (id->state == FAKE_ID_LISTENING &&
		    same_endpoint(&id->verbs.route.addr.src_storage, addr))
			return id;
	return NULL;
}

static int queued_at(const struct fake_id *listener)
{
	int n = 0;

	for (const struct fake_id *id = fake_id_first(); id; id = fake_id_next(id))
		n += id->listener == listener && id->state == FAKE_ID_REQUESTED && !id->fetched;
	return n;
}

/* ---- Connecting ---- */

/* 255 stands for the most that the device has; more than that is refused. */
static int settle(const struct fake_device *d, uint8_t *n, uint8_t stands_for_most)
{
	if (*n == stands_for_most)
		*n = d->max_rd_atomic < 255 ? (uint8_t)d->max_rd_atomic : 255;
	return *n > d->max_rd_atomic ? fake_refuse(EINVAL, "rdma_cm: %u READs in flight of %u", *n,
						   d->max_rd_atomic)
				     : 0;
}

static int check_param(const struct fake_id *id, struct rdma_conn_param *param)
{
	const struct fake_device *d = id->context->config;
	int err = settle(d, &param->initiator_depth, RDMA_MAX_INIT_DEPTH);

	if (!err)
		err = settle(d, &param->responder_resources, RDMA_MAX_RESP_RES);
	if (!err && param->private_data_len > FAKE_PRIVATE_MAX)
		err = fake_refuse(EINVAL, "rdma_cm: %u bytes of private data, at most %u",
				  param->private_data_len, FAKE_PRIVATE_MAX);
	if (!err && (param->rnr_retry_count > 7 || param->retry_count > 7))
		err = fake_refuse(EINVAL, "rdma_cm: more than 7 retries");
	return err;
}

/* What one side may send, the other is asked to answer. */
static void request(struct fake_id *id, struct fake_id *listener)
{
	struct rdma_conn_param seen = id->said;
	struct fake_id *passive =
		fake_id_new(listener->channel, listener->verbs.context, RDMA_PS_TCP);

	if (!passive)
		abort();
	passive->context = listener->context;
	passive->listener = listener;
	passive->peer = id;
	if (id->context->config->ece_vendor) {
		passive->remote_ece.vendor_id = id->context->config->ece_vendor;
		passive->remote_ece.options = id->context->config->ece_options;
	}
	passive->state = FAKE_ID_REQUESTED;
	passive->verbs.verbs = listener->verbs.verbs;
	passive->verbs.port_num = 1;
	passive->verbs.route.addr.src_storage = listener->verbs.route.addr.src_storage;
	passive->verbs.route.addr.dst_storage = id->verbs.route.addr.src_storage;
	id->peer = passive;
	seen.initiator_depth = id->said.responder_resources;
	seen.responder_resources = id->said.initiator_depth;
	fake_cm_event(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0, &seen);
}

static void start(struct fake_id *id)
{
	const struct sockaddr_storage *to = &id->verbs.route.addr.dst_storage;
	const struct fake_context *there = fake_net_device((const struct sockaddr *)to);
	struct fake_id *listener = listener_at(to);

	id->state = FAKE_ID_CONNECTING;
	if (id->context->config->down || (there && there->config->down))
		fake_cm_event(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
	else if (!listener || queued_at(listener) >= listener->backlog)
		fake_cm_event(id, RDMA_CM_EVENT_REJECTED,
			      id->context->config->iwarp ? -ECONNREFUSED : 8, NULL);
	else
		request(id, listener);
}

/* The QP at the id, or the one made for it and hidden since, or made by other means, by its number.
 * iWARP: none such. */
static struct fake_qp *find_qp(struct fake_id *id, uint32_t number)
{
	if (id->verbs.qp || id->context->config->iwarp)
		return id->used = (struct fake_qp *)(void *)id->verbs.qp;
	for (struct fake_object *o = fake.objects[FAKE_QP]; o && !id->used; o = o->next) {
		struct fake_qp *qp = FAKE_OF(o, struct fake_qp);

		if ((qp->id == id || (!qp->id && qp->context == id->context)) &&
		    qp->verbs.qp_num == number)
			id->used = qp;
	}
	if (id->used)
		id->used->id = id;
	return id->used;
}

int rdma_connect(struct rdma_cm_id *verbs, struct rdma_conn_param *param)
{
	struct fake_id *id = (struct fake_id *)(void *)verbs;
	int err = 0;

	fake_lock();
	if (id->state != FAKE_ID_ROUTE || !find_qp(id, param->qp_num))
		err = fake_refuse(EINVAL, "rdma_connect: no route or no QP");
	if (!err) {
		id->said = *param;
		err = check_param(id, &id->said);
	}
	if (!err)
		start(id);
	id->said.private_data = NULL; /* it was copied */
	fake_unlock();
	return fail_with(err);
}

/* ---- Answering ---- */

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* The id's QP may now send: its own side said @own, the other one @other. */
static void open_qp(struct fake_id *id)
{
	const struct rdma_conn_param *own = &id->said, *other = &id->peer->said;
	struct fake_qp *qp = fake_id_qp(id);

	if (!id->verbs.qp)
		return; /* its user has done so */
	qp->verbs.state = IBV_QPS_RTS;
	qp->access =
		IBV_ACCESS_REMOTE_WRITE |
		(other->initiator_depth ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC : 0);
	qp->rd_atomic = least(own->initiator_depth, other->responder_resources);
	qp->peer_rd_atomic = own->responder_resources;
	qp->rnr_retry = other->rnr_retry_count;
}

/* More READs than the other end is ready for: it takes them for an attack, and fails. */
static void check_reads(const struct fake_qp *qp, const struct fake_qp *peer)
{
	if (qp->rd_atomic > peer->peer_rd_atomic)
		fake_violate("QP %u may have %u READs in flight, and its peer answers %u",
			     qp->verbs.qp_num, qp->rd_atomic, peer->peer_rd_atomic);
}

static void establish(struct fake_id *active, struct fake_id *passive)
{
	struct fake_qp *a = fake_id_qp(active), *p = fake_id_qp(passive);

	if (a && p) { /* else one of them is about to go */
		a->peer = p;
		p->peer = a;
		check_reads(a, p);
		check_reads(p, a);
		p->mute = passive->context->config->iwarp;
	}
	active->state = passive->state = FAKE_ID_ACTIVE;
	fake_cm_event(passive, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
}

/* Whoever has his QP at the id has only to be told that all is done. */
static void respond(struct fake_id *passive)
{
	struct fake_id *active = passive->peer;

	passive->listener = NULL;
	open_qp(passive);
	open_qp(active);
	if (!active->verbs.qp) {
		active->state = FAKE_ID_RESPONDED;
		passive->state = FAKE_ID_ACCEPTED;
		active->remote_ece = passive->remote_ece;
		active->remote_ece.options = fake_id_qp(passive)->ece_options;
		fake_cm_event(active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, &passive->said);
		return;
	}
	fake_cm_event(active, RDMA_CM_EVENT_ESTABLISHED, 0, &passive->said);
	establish(active, passive);
}

static int check_accept(struct fake_id *id, uint32_t qp_num)
{
	const struct fake_qp *qp = id->state == FAKE_ID_REQUESTED ? find_qp(id, qp_num) : NULL;

	if (!qp)
		return fake_refuse(EINVAL, "rdma_accept: no request or no QP");
	if (!id->verbs.qp && qp->verbs.state != IBV_QPS_RTR && qp->verbs.state != IBV_QPS_RTS)
		return fake_refuse(EINVAL, "rdma_accept: QP %u is not ready to receive", qp_num);
	return 0;
}

int rdma_accept(struct rdma_cm_id *verbs, struct rdma_conn_param *param)
{
	struct fake_id *id = (struct fake_id *)(void *)verbs;
	struct rdma_conn_param said = *param;
	int err;

	fake_lock();
	err = fake_fault(&fake.config.fail_accept);
	if (!err)
		err = check_accept(id, param->qp_num);
	if (!err)
		err = check_param(id, &said);
	if (!err)
		id->said = said;
	if (!err && id->peer) {
		respond(id);
	} else if (!err) { /* it has given up meanwhile */
		id->listener = NULL;
		id->state = FAKE_ID_OVER;
		fake_cm_event(id, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET, NULL);
	}
	id->said.private_data = NULL;
	fake_unlock();
	return fail_with(err);
}

/* To say "ready" with a QP that cannot send yet is an error that only a hang would tell of. */
static int check_establish(const struct fake_id *id)
{
	int err = fake_fault(&fake.config.fail_establish);

	if (err)
		return err;
	if (id->verbs.qp)
		return fake_refuse(EINVAL, "rdma_establish: the id has a QP");
	if (id->state != FAKE_ID_RESPONDED)
		return fake_refuse(EINVAL, "rdma_establish: nobody has answered");
	if (!id->used || id->used->verbs.state != IBV_QPS_RTS)
		return fake_refuse(EINVAL, "rdma_establish: no QP that is ready to send");
	return 0;
}

int rdma_establish(struct rdma_cm_id *verbs)
{
	struct fake_id *id = (struct fake_id *)(void *)verbs;
	int err;

	fake_lock();
	err = check_establish(id);
	if (!err)
		establish(id, id->peer);
	fake_unlock();
	return fail_with(err);
}

static void reject(struct fake_id *id)
{
	if (id->peer) {
		id->peer->peer = NULL;
		id->peer->state = FAKE_ID_OVER;
		fake_cm_event(id->peer, RDMA_CM_EVENT_REJECTED, 28, NULL); /* by its user */
	}
	id->peer = NULL;
	id->state = FAKE_ID_OVER;
}

int rdma_reject(struct rdma_cm_id *verbs, const void *private_data, uint8_t len)
{
	struct fake_id *id = (struct fake_id *)(void *)verbs;
	int err = 0;

	(void)private_data;
	(void)len;
	fake_lock();
	if (id->state == FAKE_ID_REQUESTED)
		reject(id);
	else
		err = fake_refuse(EINVAL, "rdma_reject: not a request");
	fake_unlock();
	return fail_with(err);
}

/* ---- Ending ---- */

/* The other end learns of it, and keeps its QP as it is: what it sends is answered no more. */
static void part(struct fake_id *id)
{
	struct fake_id *peer = id->peer;

	id->peer = NULL;
	id->state = FAKE_ID_OVER;
	if (!peer)
		return;
	peer->peer = NULL;
	if (peer->state == FAKE_ID_ACTIVE)
		fake_cm_event(peer, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
}

int rdma_disconnect(struct rdma_cm_id *verbs)
{
	struct fake_id *id = (struct fake_id *)(void *)verbs;
	int err = 0;

	fake_lock();
	if (id->state != FAKE_ID_ACTIVE && id->state != FAKE_ID_OVER) {
		err = fake_refuse(EINVAL, "rdma_disconnect: not connected");
	} else {
		if (verbs->qp)
			fake_qp_fail((struct fake_qp *)(void *)verbs->qp);
		part(id);
	}
	fake_unlock();
	return fail_with(err);
}

static void drop_requests(struct fake_id *listener)
{
	struct fake_id *id = fake_id_first(), *next;

	for (; id; id = next) {
		next = fake_id_next(id);
		if (id->listener != listener)
			continue;
		if (id->state == FAKE_ID_REQUESTED && !id->fetched) {
			reject(id);
			fake_id_del(id);
		} else {
			id->listener = NULL;
		}
	}
}

void fake_conn_leave(struct fake_id *id)
{
	if (id->state == FAKE_ID_LISTENING)
		drop_requests(id);
	else if (id->state == FAKE_ID_REQUESTED || id->state == FAKE_ID_RESPONDED ||
		 id->state == FAKE_ID_ACCEPTED)
		reject(id);
	else if (id->state == FAKE_ID_ACTIVE)
		part(id);
	else if (id->peer)
		id->peer->peer = NULL;
}

void fake_disconnect(struct ibv_qp *verbs)
{
	struct fake_qp *qp = (struct fake_qp *)(void *)verbs;

	fake_lock();
	if (qp->id->peer) {
		if (qp->peer)
			fake_qp_fail(qp->peer);
		part(qp->id->peer);
	}
	fake_qp_fail(qp);
	fake_unlock();
}
