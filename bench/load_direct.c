/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Direct mode, the issuing half of an end: keep --depth I/Os in flight on each QP, or start them at
 * --rate, and time them.
 *
 * A slot is one I/O in flight: its piece of local memory, and its start time. It is free, or waits
 * for its I/O; with --verify a WRITE's slot then waits for the READ that fetches back what arrived
 * (load_verify.c).
 *
 * SENDs and WRITEs with immediate data need a RECV at the peer for each message. The peer keeps
 * layout.recvs of them posted and gives credits back by a note for each half of them it has
 * re-posted, so we never send into an empty receive queue.
 *
 * With --rate an I/O starts when it is due, whatever became of those before it, and its latency is
 * counted from then: an I/O that had to wait behind a slow one is not made to look quick.
 *
 * The end: nobody knows which WR is the last one when it is posted (--duration), so the tail may be
 * silent. When nothing is left to issue, the drain WR proves it.
 */
#include <errno.h>
#include <string.h>
#include "load_internal.h"

uint64_t direct_messages(const struct direct *d, unsigned int qp)
{
	return d->lanes[qp].number * d->layout.messages;
}

const struct area *direct_memory(const struct direct *d)
{
	return &d->work;
}

/* ---- Issuing ---- */

static int post(const struct direct *d, struct lane *lane, struct slot *s)
{
	uint32_t n = (uint32_t)d->cfg->frags;
	uint64_t id = (uint64_t)(s - lane->slots);

	switch (d->cfg->op) {
	case OP_READ:
		return rxfer_post_read(lane->conn, s->frags, n, &s->remote, 1, id, 0);
	case OP_WRITE:
		return rxfer_post_write(lane->conn, s->frags, n, &s->remote, 1, id, 0);
	case OP_WRITE_IMM:
		return rxfer_post_write_imm(lane->conn, s->frags, n, &s->remote, 1,
					    (uint32_t)s->number, id, 0);
	default:
		return rxfer_post_send(lane->conn, s->frags, n, id, 0);
	}
}

/* A free slot, but no SQEs or no RECV at the peer: counted once for each I/O that it happens to. */
static void begin_stall(struct direct *d, struct lane *lane)
{
	if (lane->stalled)
		return;
	d->stalls++;
	lane->stalled = d->cfg->timing == TIMING_PHASES ? rxfer_now() : 1;
}

static void end_stall(struct direct *d, struct lane *lane)
{
	if (d->cfg->timing == TIMING_PHASES)
		d->stall_ns += rxfer_now() - lane->stalled;
	lane->stalled = 0;
}

/* When the I/O starts; 0 where nobody wants to know. */
static uint64_t start_of(const struct direct *d, const struct lane *lane)
{
	if (d->period > 0)
		return (uint64_t)lane->due;
	return d->cfg->timing == TIMING_OFF ? 0 : rxfer_now();
}

/* One I/O on this lane: 1 issued, 0 not now, or -errno. */
static int issue(struct direct *d, struct lane *lane)
{
	struct slot *s = &lane->slots[lane->free[lane->nfree - 1]];
	int rc = -EAGAIN;

	s->number = lane->number;
	if (d->cfg->verify)
		verify_prepare(d, lane, s);
	s->start = start_of(d, lane);
	if (!d->sends || lane->credits >= d->layout.messages)
		rc = post(d, lane, s);
	if (rc == -EAGAIN) {
		begin_stall(d, lane);
		return 0;
	}
	if (rc)
		return rc;
	if (d->sends)
		lane->credits -= d->layout.messages;
	if (lane->stalled)
		end_stall(d, lane);
	lane->nfree--;
	lane->number++;
	lane->issued++;
	lane->due += d->period;
	s->state = SLOT_IO;
	if (d->deadline && s->start >= d->deadline)
		d->issuing = false;
	return 1;
}

static bool may_issue(const struct direct *d, const struct lane *lane)
{
	return d->issuing && lane->nfree && (!d->limit || lane->issued < d->limit) &&
	       (d->period == 0 || (uint64_t)lane->due <= d->now);
}

/* ---- Completing ---- */

static void release(struct lane *lane, struct slot *s)
{
	s->state = SLOT_FREE;
	lane->free[lane->nfree++] = (uint32_t)(s - lane->slots);
}

/* The measured I/O of a slot is done. */
static int io_done(struct direct *d, struct lane *lane, struct slot *s,
		   const struct rxfer_done *done)
{
	if (done->own_cqe && d->out && d->cfg->timing != TIMING_OFF)
		hist_add(&d->out->latency, rxfer_now() - s->start);
	lane->completed++;
	d->bytes += done->bytes;
	if (d->check.len) {
		s->state = SLOT_TO_CHECK;
		lane->to_check++;
		return 0;
	}
	release(lane, s);
	return d->cfg->verify && d->cfg->op == OP_READ ? verify_read(d, lane, s) : 0;
}

static int take(struct direct *d, struct lane *lane, const struct rxfer_done *done)
{
	struct slot *s = &lane->slots[done->id];
	int rc;

	if (done->op == RXFER_RECV) {
		rc = sink_take(d->sink, (unsigned int)(lane - d->lanes), done);
		lane->credits += rc > 0 ? (uint64_t)rc : 0;
		return rc < 0 ? rc : 0;
	}
	if (s->state == SLOT_CHECK) {
		release(lane, s);
		return verify_write(d, lane, s);
	}
	return io_done(d, lane, s, done);
}

/* ---- Passes ---- */

/* What goes before new I/Os: the peer waits for its credits, slots wait to be checked. */
static int before_issuing(struct direct *d, struct lane *lane)
{
	int rc = 0;

	if (lane->to_check)
		rc = verify_fetch_back(d, lane);
	if (!rc && d->cfg->bidir)
		rc = sink_return(d->sink, (unsigned int)(lane - d->lanes));
	return rc;
}

/* One look at one lane: how much was done, or -errno. */
static int pass(struct direct *d, struct lane *lane)
{
	struct rxfer_done done;
	int did = 0, rc = before_issuing(d, lane);

	if (rc)
		return rc;
	while (may_issue(d, lane)) {
		rc = issue(d, lane);
		if (rc < 0)
			return rc;
		if (rc == 0)
			break;
		did++;
	}
	while ((rc = rxfer_poll(lane->conn, &done, 1)) > 0) {
		rc = take(d, lane, &done);
		if (rc)
			return rc;
		did++;
	}
	return rc < 0 ? rc : did;
}

/* Is this lane finished? Asks for the drain once nothing but a silent tail is left. */
static int lane_finished(struct direct *d, struct lane *lane, bool *yes)
{
	*yes = false;
	if (d->issuing && (!d->limit || lane->issued < d->limit))
		return 0;
	*yes = lane->nfree == d->cfg->depth && rxfer_idle(lane->conn);
	if (*yes)
		return 0;
	return rxfer_drain(lane->conn, &(struct rxfer_seg){d->target->addr, 0, d->target->key});
}

static void mark_peak(struct direct *d, uint64_t now)
{
	uint64_t issued = 0, completed = 0;

	for (uint64_t qp = 0; qp < d->cfg->qps; qp++) {
		issued += d->lanes[qp].issued;
		completed += d->lanes[qp].completed;
	}
	peak_mark(&d->peak, now, issued, completed);
}

static void conclude(struct direct *d)
{
	struct load_result *out = d->out;

	d->finished = true;
	if (!out)
		return;
	out->end = rxfer_now();
	out->counts.cpu_ns = cpu_time_ns() - out->counts.cpu_ns;
	out->counts.passes = d->watch->passes;
	out->counts.idle = d->watch->idle;
	out->counts.stall_ns = d->stall_ns;
	out->stalls = d->stalls;
	out->bytes = d->bytes;
	for (uint64_t qp = 0; qp < d->cfg->qps; qp++)
		out->ios += d->lanes[qp].completed;
	mark_peak(d, out->end);
	out->peak = peak_rate(&d->peak);
}

static void look_at_clock(struct direct *d)
{
	d->now = rxfer_now();
	if (d->deadline && d->now >= d->deadline)
		d->issuing = false;
}

int direct_pass(struct direct *d)
{
	bool all = !d->finished, yes = false;
	int did = 0;

	if (d->period > 0)
		look_at_clock(d);
	for (uint64_t qp = 0; qp < d->cfg->qps; qp++) {
		struct lane *lane = &d->lanes[qp];
		int rc = pass(d, lane);

		if (rc < 0)
			return rc;
		did += rc;
		rc = d->finished ? 0 : lane_finished(d, lane, &yes);
		if (rc)
			return rc;
		all = all && yes;
	}
	if (all)
		conclude(d);
	return did;
}

bool direct_finished(const struct direct *d)
{
	return d->finished;
}

bool direct_waits(const struct direct *d)
{
	if (d->period == 0)
		return !d->finished;
	for (uint64_t qp = 0; qp < d->cfg->qps; qp++)
		if (d->lanes[qp].stalled || rxfer_due(d->lanes[qp].conn))
			return true;
	return false;
}

void direct_stop(struct direct *d)
{
	if (d->finished || !d->issuing)
		return;
	d->issuing = false;
	if (d->out)
		d->out->cut_short = true;
}

int direct_rest(struct direct *d, int did)
{
	struct watch *w = d->watch;

	if (w->stop && *w->stop)
		direct_stop(d);
	if (d->deadline && w->now >= d->deadline)
		d->issuing = false;
	if (d->out && !d->finished && w->now >= d->peak.next)
		mark_peak(d, w->now);
	if (did || !w->sleep)
		return 0;
	return watch_woken(
		w, rxfer_sleep(d->dev, d->conns, (unsigned int)d->cfg->qps, w->control->fd, 50));
}

/* ---- Phases ---- */

/* The lanes take turns in being due, so that all together keep the rate. */
static void begin_rate(struct direct *d)
{
	uint64_t now = rxfer_now();

	d->period = d->cfg->rate ? 1e9 * (double)d->cfg->qps / (double)d->cfg->rate : 0;
	for (uint64_t qp = 0; qp < d->cfg->qps; qp++)
		d->lanes[qp].due = (double)now + d->period * (double)qp / (double)d->cfg->qps;
}

void direct_begin(struct direct *d, uint64_t ios, uint64_t duration, struct load_result *out)
{
	for (uint64_t qp = 0; qp < d->cfg->qps; qp++)
		d->lanes[qp].issued = d->lanes[qp].completed = d->lanes[qp].stalled = 0;
	d->limit = ios;
	d->deadline = 0;
	d->issuing = true;
	d->finished = false;
	d->out = out;
	d->stalls = d->stall_ns = d->bytes = 0;
	watch_begin(d->watch);
	if (out) {
		memset(out, 0, sizeof(*out));
		hist_init(&out->latency);
		out->counts.cpu_ns = cpu_time_ns();
		out->start = rxfer_now();
		if (duration)
			d->deadline = out->start + duration;
		peak_begin(&d->peak, out->start);
	}
	begin_rate(d);
}

void direct_count(struct direct *d)
{
	if (d->out)
		counts_take(&d->out->counts, d->conns, (unsigned int)d->cfg->qps);
}

void counts_take(struct counts *c, struct rxfer_conn **conns, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct rxfer_counts *from = rxfer_conn_counts(conns[i]);
		struct rxfer_conn_info info;

		rxfer_conn_info(conns[i], &info);
		c->sqe += from->sqe;
		c->posts += from->posts;
		c->cqe += from->cqe;
		c->recv_cqe += from->recv_cqe;
		c->copied_bytes += from->copied_bytes;
		c->map_ns += from->map_ns;
		c->unmap_ns += from->unmap_ns;
		c->forced_signals += info.forced_signals;
		if (c->sq_peak < info.sq_peak)
			c->sq_peak = info.sq_peak;
	}
}
