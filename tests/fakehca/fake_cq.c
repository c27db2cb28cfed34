/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues and channels.
 *
 * A CQ holds what fits into it and loses the rest: a completion that finds it full is gone, and
 * with it the send-queue entries that only it could have returned. It is kept as two rings that
 * share the capacity, since a CQ promises order within a queue and none between queues;
 * config.cq_order says which ring a poll looks at first.
 *
 * An event is sent once for each time it was asked for, at the next completion that is written, not
 * for one that lies there already: who asks and then sleeps without another look may sleep for
 * ever.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "fake_internal.h"

/* ---- Channels ---- */

static void release_channel(struct fake_object *object)
{
	struct fake_comp_channel *channel = FAKE_OF(object, struct fake_comp_channel);

	close(channel->verbs.fd);
	free(channel->event);
	free(channel);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct fake_comp_channel *channel = NULL;
	int err;

	fake_lock();
	err = fake_fault(&fake.config.fail_channel);
	if (!err)
		channel = calloc(1, sizeof(*channel));
	if (channel) {
		channel->verbs.context = context;
		channel->verbs.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
		err = channel->verbs.fd < 0 ? errno : 0;
	}
	if (channel && err) {
		free(channel);
		channel = NULL;
	}
	if (channel)
		fake_object_add(&channel->object, FAKE_COMP_CHANNEL, release_channel);
	fake_unlock();
	errno = err ? err : errno;
	return channel ? &channel->verbs : NULL;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *verbs)
{
	struct fake_comp_channel *channel = (struct fake_comp_channel *)(void *)verbs;
	int err = 0;

	fake_lock();
	if (channel->users) {
		fake_violate("ibv_destroy_comp_channel: %u CQs still report to it", channel->users);
		err = EBUSY;
	} else {
		fake_object_del(&channel->object);
	}
	fake_unlock();
	return err;
}

static void send_event(struct fake_comp_channel *channel, struct fake_cq *cq)
{
	struct fake_cq **event = channel->event;
	uint64_t one = 1;

	if (channel->events == channel->room) {
		event = realloc(event, (channel->room + 16) * sizeof(struct fake_cq *));
		if (!event)
			abort();
		channel->event = event;
		channel->room += 16;
	}
	event[channel->events++] = cq;
	if (write(channel->verbs.fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

/* Take the @i-th event out. */
static struct fake_cq *take_event(struct fake_comp_channel *channel, uint32_t i)
{
	struct fake_cq *cq = channel->event[i];
	uint64_t one;

	channel->events--;
	memmove(channel->event + i, channel->event + i + 1,
		(channel->events - i) * sizeof(struct fake_cq *));
	if (read(channel->verbs.fd, &one, sizeof(one)) != sizeof(one))
		abort();
	return cq;
}

/* Where devices are run by threads that poll, another one may bring an event: wait, as a kernel
 * does. False: a signal ended it. */
static bool await_event(const struct fake_comp_channel *channel)
{
	int fd = channel->verbs.fd;
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (!fake.config.auto_steps || fcntl(fd, F_GETFL) & O_NONBLOCK)
		return true;
	return poll(&p, 1, -1) >= 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *verbs, struct ibv_cq **cq, void **context)
{
	struct fake_comp_channel *channel = (struct fake_comp_channel *)(void *)verbs;
	struct fake_cq *got = NULL;

	if (!await_event(channel))
		return -1;
	fake_lock();
	if (channel->events) {
		got = take_event(channel, 0);
		got->unacked++;
		*cq = &got->verbs;
		*context = got->verbs.cq_context;
	} else {
		fake_no_event(verbs->fd, "ibv_get_cq_event");
	}
	fake_unlock();
	errno = EAGAIN;
	return got ? 0 : -1;
}

void ibv_ack_cq_events(struct ibv_cq *verbs, unsigned int n)
{
	struct fake_cq *cq = (struct fake_cq *)(void *)verbs;

	fake_lock();
	if (n > cq->unacked)
		fake_violate("ibv_ack_cq_events: %u of %u", n, cq->unacked);
	cq->unacked -= n < cq->unacked ? n : cq->unacked;
	fake_unlock();
}

/* ---- Making ---- */

static void release_cq(struct fake_object *object)
{
	struct fake_cq *cq = FAKE_OF(object, struct fake_cq);

	free(cq->sq.at);
	free(cq->rq.at);
	free(cq);
}

static struct fake_cq *new_cq(uint32_t entries)
{
	struct fake_cq *cq = calloc(1, sizeof(*cq));

	if (!cq)
		return NULL;
	cq->sq.at = calloc(entries, sizeof(cq->sq.at[0]));
	cq->rq.at = calloc(entries, sizeof(cq->rq.at[0]));
	fake_object_add(&cq->object, FAKE_CQ, release_cq);
	if (cq->sq.at && cq->rq.at)
		return cq;
	fake_object_del(&cq->object);
	return NULL;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *cq_context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct fake_cq *cq = NULL;
	const struct fake_device *d;
	int err;

	fake_lock();
	d = fake_context(context)->config;
	err = fake_fault(&fake.config.fail_create_cq);
	if (!err && (entries <= 0 || (uint32_t)entries > d->max_cqe))
		err = fake_refuse(EINVAL, "ibv_create_cq: %d entries, max_cqe %u", entries,
				  d->max_cqe);
	if (!err && fake_context(context)->cqs >= d->max_cq)
		err = fake_refuse(ENOMEM, "ibv_create_cq: %u CQs of %u", fake_context(context)->cqs,
				  d->max_cq);
	if (!err && vector)
		err = fake_refuse(EINVAL, "ibv_create_cq: vector %d of 1", vector);
	if (!err)
		cq = new_cq((uint32_t)entries);
	if (cq) {
		cq->channel = (struct fake_comp_channel *)(void *)channel;
		if (cq->channel)
			cq->channel->users++;
		fake_context(context)->cqs++;
		cq->verbs.context = context;
		cq->verbs.channel = channel;
		cq->verbs.cq_context = cq_context;
		cq->verbs.cqe = entries;
	}
	fake_unlock();
	errno = err ? err : errno;
	return cq ? &cq->verbs : NULL;
}

int ibv_destroy_cq(struct ibv_cq *verbs)
{
	struct fake_cq *cq = (struct fake_cq *)(void *)verbs;
	int err = 0;

	fake_lock();
	if (cq->unacked)
		fake_violate("ibv_destroy_cq: %u events are not acknowledged; it would wait",
			     cq->unacked);
	if (cq->users) {
		fake_violate("ibv_destroy_cq: %u queues still complete into it", cq->users);
		err = EBUSY;
		goto out;
	}
	for (uint32_t i = 0; cq->channel && i < cq->channel->events;) {
		if (cq->channel->event[i] == cq)
			take_event(cq->channel, i);
		else
			i++;
	}
	if (cq->channel)
		cq->channel->users--;
	fake_async_forget(fake_context(verbs->context), cq, cq->async_unacked);
	fake_context(verbs->context)->cqs--;
	fake_object_del(&cq->object);
out:
	fake_unlock();
	return err;
}

/* ---- Writing ---- */

static struct fake_cqe *entry(const struct fake_cq *cq, const struct fake_cqes *ring, uint32_t i)
{
	return &ring->at[(ring->first + i) % (uint32_t)cq->verbs.cqe];
}

void fake_cq_write(struct fake_cq *cq, bool sq, const struct fake_cqe *cqe)
{
	struct fake_cqes *ring = sq ? &cq->sq : &cq->rq;
	bool tells = cqe->solicited || cqe->wc.status != IBV_WC_SUCCESS;

	if (cq->sq.n + cq->rq.n == (uint32_t)cq->verbs.cqe) {
		fake_violate("a CQ of %d entries is full: the completion of WR %#llx is lost",
			     cq->verbs.cqe, (unsigned long long)cqe->wc.wr_id);
		fake.stats.lost_cqes++;
		return;
	}
	*entry(cq, ring, ring->n) = *cqe;
	entry(cq, ring, ring->n)->order = fake.cqe_order++;
	ring->n++;
	if (cq->channel && (cq->armed == FAKE_ANY || (cq->armed == FAKE_SOLICITED && tells))) {
		cq->armed = FAKE_UNARMED;
		send_event(cq->channel, cq);
	}
}

static void forget(struct fake_cq *cq, struct fake_cqes *ring, const struct fake_qp *qp)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < ring->n; i++)
		if (entry(cq, ring, i)->qp != qp)
			*entry(cq, ring, kept++) = *entry(cq, ring, i);
	ring->n = kept;
}

/* A QP is destroyed: its completions go with it. */
void fake_cq_forget(struct fake_cq *cq, const struct fake_qp *qp)
{
	forget(cq, &cq->sq, qp);
	forget(cq, &cq->rq, qp);
}

/* ---- Polling ---- */

static bool sq_first(const struct fake_cq *cq)
{
	switch (fake.config.cq_order) {
	case FAKE_CQ_SQ_FIRST:
		return true;
	case FAKE_CQ_RQ_FIRST:
		return false;
	case FAKE_CQ_RANDOM:
		return fake_random(2) == 0;
	default:
		return entry(cq, &cq->sq, 0)->order < entry(cq, &cq->rq, 0)->order;
	}
}

static bool take(struct fake_cq *cq, struct ibv_wc *wc)
{
	bool sq = cq->sq.n && (!cq->rq.n || sq_first(cq));
	struct fake_cqes *ring = sq ? &cq->sq : &cq->rq;
	const struct fake_cqe *cqe = entry(cq, ring, 0);

	if (ring->n == 0)
		return false;
	*wc = cqe->wc;
	ring->first = (ring->first + 1) % (uint32_t)cq->verbs.cqe;
	ring->n--;
	if (sq) {
		fake.stats.sq_cqes++;
		if (cqe->seq < cqe->qp->done) /* else it came early */
			fake_qp_retire_sq(cqe->qp, cqe->seq, cqe->wc.status == IBV_WC_SUCCESS);
	} else {
		fake.stats.rq_cqes++;
		fake_qp_retire_rq(cqe->qp, cqe->seq);
	}
	return true;
}

static bool findable(const struct fake_cq *cq)
{
	uint32_t every = fake.config.poll_every;

	return cq->sq.n + cq->rq.n && (every == 0 || fake.step % every == 0);
}

int fake_poll_cq(struct ibv_cq *verbs, int n, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)(void *)verbs;
	int got = 0, err;

	fake_lock();
	for (uint32_t i = 0; i < fake.config.auto_steps && !findable(cq); i++)
		if (!fake_step_locked())
			break;
	fake.stats.polls++;
	err = fake_fault(&fake.config.fail_poll);
	while (!err && got < n && findable(cq) && take(cq, &wc[got]))
		got++;
	fake.stats.empty += !err && got == 0;
	fake_unlock();
	return err ? -err : got;
}

/* On its own the device works while its user sleeps; stepped by polls, it must do so before. */
int fake_req_notify_cq(struct ibv_cq *verbs, int solicited_only)
{
	struct fake_cq *cq = (struct fake_cq *)(void *)verbs;
	int err;

	fake_lock();
	err = fake_fault(&fake.config.fail_notify);
	if (!err && !cq->channel)
		err = fake_refuse(EINVAL, "ibv_req_notify_cq: the CQ has no channel");
	if (!err && cq->armed != FAKE_ANY)
		cq->armed = solicited_only ? FAKE_SOLICITED : FAKE_ANY;
	while (!err && fake.config.auto_steps && fake_step_locked())
		;
	fake_unlock();
	return fake.config.negative_errno ? -err : err;
}
