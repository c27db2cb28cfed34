/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Direct mode, the client's side: keep --depth I/Os in flight on each QP, and time them.
 *
 * A slot is one I/O in flight: its piece of local memory, and its start time. It is free, or waits
 * for its I/O; with --verify a WRITE's slot then waits for a READ that fetches back what arrived
 * (posted aside: neither timed nor counted).
 *
 * SEND needs a RECV at the peer for each message. The peer keeps layout.recvs of them posted and
 * gives credits back by a small message for each half of them it has re-posted, so we never send
 * into an empty receive queue.
 *
 * The end: nobody knows which WR is the last one when it is posted (--duration), so the tail may be
 * silent. When nothing is left to issue, the drain WR proves it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "load.h"
#include "pattern.h"
#include "peak.h"

#define POISON 0xa5

enum slot_state {
	SLOT_FREE,
	SLOT_IO,
	SLOT_TO_CHECK, /* its WRITE is done, the READ that fetches it back waits for credits */
	SLOT_CHECK,    /* that READ is under way */
};

struct slot {
	uint64_t start;	 /* rxfer_now() before map */
	uint64_t number; /* of the I/O on its QP */
	enum slot_state state;
	char *base;
	struct rxfer_frag *frags;
	struct rxfer_seg remote;
};

/* struct lane - one QP. */
struct lane {
	struct rxfer_conn *conn;
	struct slot *slots;
	uint32_t *free; /* a stack of slot numbers */
	uint32_t nfree;
	uint64_t issued;    /* I/Os in this phase */
	uint64_t completed; /* likewise */
	uint64_t number;    /* I/Os ever */
	uint64_t credits;   /* RECVs at the peer */
	uint32_t to_check;  /* slots in that state */
	bool stalled;	    /* the next I/O has been counted as one that had to wait */
};

struct direct {
	const struct cfg *cfg;
	struct layout layout;
	struct rxfer_dev *dev;
	struct rxfer_conn **conns;
	const struct target *target;
	struct watch *watch;
	struct area work;   /* local memory of all slots */
	struct area check;  /* where --verify fetches WRITEs back to */
	struct area credit; /* RECV buffers for credit messages */
	struct lane *lanes;
	struct slot *slots;
	struct rxfer_frag *frags;
	uint32_t *free;

	/* The phase. */
	uint64_t limit, deadline;
	bool issuing;
	struct load_result *out;
	uint64_t stalls, bytes;
	struct peak peak;
};

/* ---- Making it ---- */

static void init_slot(struct direct *d, uint64_t i)
{
	struct slot *s = &d->slots[i];

	s->base = d->work.base + i * d->layout.slot;
	s->frags = d->frags + i * d->cfg->frags;
	layout_frags(d->cfg, s->base, s->frags);
	s->remote = (struct rxfer_seg){
		.addr = d->target->addr + i * d->layout.target,
		.len = (uint32_t)d->cfg->size,
		.key = d->target->key,
	};
}

static int post_credit_recv(struct direct *d, uint32_t qp, uint64_t i)
{
	char *at = d->credit.base + (qp * CREDIT_RECVS + i) * CREDIT_BYTES;

	return rxfer_post_recv(d->conns[qp], at, CREDIT_BYTES, i);
}

static int init_lane(struct direct *d, uint32_t qp)
{
	struct lane *lane = &d->lanes[qp];
	uint32_t depth = (uint32_t)d->cfg->depth;

	lane->conn = d->conns[qp];
	lane->slots = d->slots + (size_t)qp * depth;
	lane->free = d->free + (size_t)qp * depth;
	lane->nfree = depth;
	lane->credits = d->layout.recvs;
	for (uint32_t i = 0; i < depth; i++) {
		lane->free[i] = depth - 1 - i;
		init_slot(d, (uint64_t)qp * depth + i);
	}
	for (uint64_t i = 0; d->cfg->op == OP_SEND && i < CREDIT_RECVS; i++) {
		int rc = post_credit_recv(d, qp, i);

		if (rc)
			return rc;
	}
	return 0;
}

static int make_areas(struct direct *d)
{
	uint64_t slots = d->cfg->qps * d->cfg->depth;
	bool fetch_back = d->cfg->verify && d->cfg->op == OP_WRITE;
	int rc = area_make(d->dev, slots * d->layout.slot, RXFER_LOCAL, &d->work);

	if (!rc)
		rc = area_make(d->dev, fetch_back ? slots * d->layout.target : 0, RXFER_FIXED,
			       &d->check);
	if (!rc && d->cfg->op == OP_SEND)
		rc = area_make(d->dev, d->cfg->qps * CREDIT_RECVS * CREDIT_BYTES, RXFER_FIXED,
			       &d->credit);
	return rc;
}

static int make_arrays(struct direct *d)
{
	size_t slots = d->cfg->qps * d->cfg->depth;

	d->lanes = calloc(d->cfg->qps, sizeof(*d->lanes));
	d->slots = calloc(slots, sizeof(*d->slots));
	d->frags = calloc(slots * d->cfg->frags, sizeof(*d->frags));
	d->free = calloc(slots, sizeof(*d->free));
	if (!d->lanes || !d->slots || !d->frags || !d->free)
		return rxfer_fail(ENOMEM, "out of memory for %zu I/Os in flight", slots);
	return 0;
}

struct direct *direct_new(const struct cfg *cfg, const struct layout *layout, struct rxfer_dev *dev,
			  struct rxfer_conn **conns, const struct target *target,
			  struct watch *watch)
{
	struct direct *d = calloc(1, sizeof(*d));

	if (!d) {
		rxfer_fail(ENOMEM, "out of memory");
		return NULL;
	}
	*d = (struct direct){.cfg = cfg,
			     .layout = *layout,
			     .dev = dev,
			     .conns = conns,
			     .target = target,
			     .watch = watch};
	if (make_areas(d) || make_arrays(d))
		goto fail;
	for (uint32_t qp = 0; qp < cfg->qps; qp++)
		if (init_lane(d, qp))
			goto fail;
	return d;
fail:
	direct_free(d);
	return NULL;
}

void direct_free(struct direct *d)
{
	if (!d)
		return;
	area_drop(&d->work);
	area_drop(&d->check);
	area_drop(&d->credit);
	free(d->lanes);
	free(d->slots);
	free(d->frags);
	free(d->free);
	free(d);
}

uint64_t direct_messages(const struct direct *d, unsigned int qp)
{
	return d->lanes[qp].number * d->layout.messages;
}

/* ---- Verification ---- */

/* Where in the target a READ with --verify starts: another place each time. */
static uint64_t read_offset(const struct slot *s)
{
	return s->number * 8 % TARGET_SLACK;
}

/* Before an I/O: give the bytes it will carry, or poison the place it must fill. */
static void prepare(struct direct *d, struct lane *lane, struct slot *s)
{
	uint64_t pos = s->number * d->cfg->size;
	size_t qp = (size_t)(lane - d->lanes);

	for (uint64_t i = 0; i < d->cfg->frags; i++) {
		if (d->cfg->op == OP_READ)
			memset(s->frags[i].addr, POISON, s->frags[i].len);
		else
			pattern_fill(s->frags[i].addr, s->frags[i].len, pos, qp);
		pos += s->frags[i].len;
	}
	if (d->cfg->op == OP_READ)
		s->remote.addr = d->target->addr + (uint64_t)(s - d->slots) * d->layout.target +
				 read_offset(s);
}

static int wrong_byte(const struct lane *lane, const struct direct *d, const struct slot *s,
		      uint64_t at)
{
	return rxfer_fail(EILSEQ,
			  "verification failed: QP %zu, I/O %llu, byte %llu of %llu is wrong",
			  (size_t)(lane - d->lanes), (unsigned long long)s->number,
			  (unsigned long long)at, (unsigned long long)d->cfg->size);
}

static int check_read(const struct direct *d, const struct lane *lane, const struct slot *s)
{
	uint64_t start = s->remote.addr - d->target->addr, done = 0;

	for (uint64_t i = 0; i < d->cfg->frags; i++) {
		int64_t bad = pattern_check(s->frags[i].addr, s->frags[i].len, start + done, 0);

		if (bad >= 0)
			return wrong_byte(lane, d, s, done + (uint64_t)bad);
		done += s->frags[i].len;
	}
	return 0;
}

static char *check_buffer(const struct direct *d, const struct slot *s)
{
	return d->check.base + (size_t)(s - d->slots) * d->layout.target;
}

static int check_write(const struct direct *d, const struct lane *lane, const struct slot *s)
{
	int64_t bad = pattern_check(check_buffer(d, s), d->cfg->size, s->number * d->cfg->size,
				    (uint64_t)(lane - d->lanes));

	return bad < 0 ? 0 : wrong_byte(lane, d, s, (uint64_t)bad);
}

/* Fetch back what a WRITE left at the peer. -EAGAIN: no credits yet. */
static int fetch_back(const struct direct *d, struct lane *lane, struct slot *s)
{
	struct rxfer_frag into = {check_buffer(d, s), (uint32_t)d->cfg->size};
	int rc;

	memset(into.addr, POISON, into.len);
	rc = rxfer_post_read(lane->conn, &into, 1, &s->remote, 1, (uint64_t)(s - lane->slots),
			     RXFER_MUST_SIGNAL | RXFER_ASIDE);
	if (rc)
		return rc;
	s->state = SLOT_CHECK;
	lane->to_check--;
	return 0;
}

/* All slots whose WRITEs are done, as far as credits allow. */
static int fetch_all_back(const struct direct *d, struct lane *lane)
{
	int rc = 0;

	for (uint64_t i = 0; lane->to_check && rc == 0 && i < d->cfg->depth; i++)
		if (lane->slots[i].state == SLOT_TO_CHECK)
			rc = fetch_back(d, lane, &lane->slots[i]);
	return rc == -EAGAIN ? 0 : rc;
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
	default:
		return rxfer_post_send(lane->conn, s->frags, n, id, 0);
	}
}

/* One I/O on this lane: 1 issued, 0 not now, or -errno. */
static int issue(struct direct *d, struct lane *lane)
{
	struct slot *s = &lane->slots[lane->free[lane->nfree - 1]];
	int rc = -EAGAIN;

	s->number = lane->number;
	if (d->cfg->verify)
		prepare(d, lane, s);
	s->start = rxfer_now();
	if (d->cfg->op != OP_SEND || lane->credits >= d->layout.messages)
		rc = post(d, lane, s);
	if (rc == -EAGAIN) {
		d->stalls += !lane->stalled;
		lane->stalled = true;
		return 0;
	}
	if (rc)
		return rc;
	if (d->cfg->op == OP_SEND)
		lane->credits -= d->layout.messages;
	lane->stalled = false;
	lane->nfree--;
	lane->number++;
	lane->issued++;
	s->state = SLOT_IO;
	if (d->deadline && s->start >= d->deadline)
		d->issuing = false;
	return 1;
}

static bool may_issue(const struct direct *d, const struct lane *lane)
{
	return d->issuing && lane->nfree && (!d->limit || lane->issued < d->limit);
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
	if (done->own_cqe && d->out)
		hist_add(&d->out->latency, rxfer_now() - s->start);
	lane->completed++;
	d->bytes += done->bytes;
	if (d->cfg->verify && d->cfg->op == OP_WRITE) {
		s->state = SLOT_TO_CHECK;
		lane->to_check++;
		return 0;
	}
	release(lane, s);
	return d->cfg->verify && d->cfg->op == OP_READ ? check_read(d, lane, s) : 0;
}

static int take(struct direct *d, struct lane *lane, const struct rxfer_done *done)
{
	struct slot *s = &lane->slots[done->id];

	if (done->op == RXFER_RECV) {
		lane->credits += d->layout.recvs / 2;
		return post_credit_recv(d, (uint32_t)(lane - d->lanes), done->id);
	}
	if (s->state == SLOT_CHECK) {
		release(lane, s);
		return check_write(d, lane, s);
	}
	return io_done(d, lane, s, done);
}

/* ---- Running ---- */

/* One look at one lane: how much was done, or -errno. */
static int pass(struct direct *d, struct lane *lane)
{
	struct rxfer_done done;
	int did = 0, rc = fetch_all_back(d, lane);

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
static int finished(struct direct *d, struct lane *lane, bool *yes)
{
	*yes = false;
	if (d->issuing && (!d->limit || lane->issued < d->limit))
		return 0;
	*yes = lane->nfree == d->cfg->depth && rxfer_idle(lane->conn);
	if (*yes)
		return 0;
	return rxfer_drain(lane->conn, &(struct rxfer_seg){d->target->addr, 0, d->target->key});
}

static int all_lanes(struct direct *d, int *did, bool *finished_all)
{
	*did = 0;
	*finished_all = true;
	for (uint64_t qp = 0; qp < d->cfg->qps; qp++) {
		struct lane *lane = &d->lanes[qp];
		bool yes;
		int rc = pass(d, lane);

		if (rc < 0)
			return rc;
		*did += rc;
		rc = finished(d, lane, &yes);
		if (rc)
			return rc;
		*finished_all &= yes;
	}
	return 0;
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

static int between_passes(struct direct *d, int did)
{
	struct watch *w = d->watch;
	enum message type;
	json_t *body;
	int rc = 0;

	if (w->stop && *w->stop && d->issuing) {
		d->issuing = false;
		if (d->out)
			d->out->cut_short = true;
	}
	if (did == 0 && w->sleep)
		rc = watch_woken(w, rxfer_sleep(d->dev, d->conns, (unsigned int)d->cfg->qps,
						w->control->fd, 50));
	if (!rc)
		rc = watch_pass(w, (unsigned int)did, true, &type, &body);
	if (d->out && w->now >= d->peak.next)
		mark_peak(d, w->now);
	/* In mid-run there is nothing good that the server could have to say. */
	return rc == 1 ? control_bad_news(w->control, type, body) : rc;
}

static void begin(struct direct *d, uint64_t ios, uint64_t duration, struct load_result *out)
{
	for (uint64_t qp = 0; qp < d->cfg->qps; qp++)
		d->lanes[qp].issued = d->lanes[qp].completed = 0;
	d->limit = ios;
	d->deadline = 0;
	d->issuing = true;
	d->out = out;
	d->stalls = d->bytes = 0;
	watch_begin(d->watch);
	if (!out)
		return;
	memset(out, 0, sizeof(*out));
	hist_init(&out->latency);
	out->counts.cpu_ns = cpu_time_ns();
	out->start = rxfer_now();
	if (duration)
		d->deadline = out->start + duration;
	peak_begin(&d->peak, out->start);
}

static void conclude(struct direct *d, struct load_result *out)
{
	out->end = rxfer_now();
	out->counts.cpu_ns = cpu_time_ns() - out->counts.cpu_ns;
	out->stalls = d->stalls;
	out->bytes = d->bytes;
	for (uint64_t qp = 0; qp < d->cfg->qps; qp++)
		out->ios += d->lanes[qp].completed;
	out->counts.passes = d->watch->passes;
	out->counts.idle = d->watch->idle;
	mark_peak(d, out->end);
	out->peak = peak_rate(&d->peak);
	counts_take(&out->counts, d->conns, (unsigned int)d->cfg->qps);
}

int direct_run(struct direct *d, uint64_t ios, uint64_t duration, struct load_result *out)
{
	bool finished_all = false;
	int rc, did;

	begin(d, ios, duration, out);
	for (;;) {
		rc = all_lanes(d, &did, &finished_all);
		if (rc)
			return rc;
		if (finished_all)
			break;
		rc = between_passes(d, did);
		if (rc)
			return rc;
	}
	if (out)
		conclude(d, out);
	return 0;
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
		c->forced_signals += info.forced_signals;
		if (c->sq_peak < info.sq_peak)
			c->sq_peak = info.sq_peak;
	}
}
