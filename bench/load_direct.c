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

/*
 * What the options say is known before the first I/O, so an I/O need not ask: pass() and what it
 * calls are compiled three times. @plain: no check of bytes, no rate, nothing to receive; @sends:
 * they take RECVs of the peer. direct_way() picks. Each I/O on a slot is the same, and was
 * prepared, unless its bytes are checked.
 */
#define HOT static inline __attribute__((always_inline))

HOT int post(const struct direct *d, struct lane *lane, struct slot *s, bool plain)
{
	uint64_t id = lane->next;

	if (plain || s->prepared)
		return rxfer_post_prepared(s->prepared, (uint32_t)lane->number, id, 0);
	switch (d->cfg->op) {
	case OP_READ:
		return rxfer_post_read(lane->conn, s->frags, d->nfrags, &s->remote, 1, id, 0);
	case OP_WRITE:
		return rxfer_post_write(lane->conn, s->frags, d->nfrags, &s->remote, 1, id, 0);
	case OP_WRITE_IMM:
		return rxfer_post_write_imm(lane->conn, s->frags, d->nfrags, &s->remote, 1,
					    (uint32_t)lane->number, id, 0);
	default:
		return rxfer_post_send(lane->conn, s->frags, d->nfrags, id, 0);
	}
}

/* A free slot, but no SQEs or no RECV at the peer: counted once for each I/O that it happens to. */
static void begin_stall(struct direct *d, struct lane *lane)
{
	if (lane->stalled)
		return;
	d->stalls++;
	lane->stalled = d->cfg->timing == TIMING_PHASES ? clock_ticks(&d->clock) : 1;
}

static void end_stall(struct direct *d, struct lane *lane)
{
	if (d->cfg->timing == TIMING_PHASES)
		d->stall_ns += clock_ns(&d->clock, clock_ticks(&d->clock) - lane->stalled);
	lane->stalled = 0;
}

static void stop_issuing(struct direct *d)
{
	for (uint32_t qp = 0; qp < d->nlanes; qp++)
		d->lanes[qp].left = 0;
}

/* When the I/O starts; 0 where nobody wants to know. */
HOT uint64_t start_of(const struct direct *d, const struct lane *lane, bool plain)
{
	if (!plain && d->period > 0)
		return (uint64_t)lane->due;
	return d->timed ? clock_ticks(&d->clock) : 0;
}

/* One I/O on this lane: 1 issued, 0 not now, or -errno. */
HOT int issue(struct direct *d, struct lane *lane, bool sends, bool plain)
{
	struct slot *s = &lane->slots[lane->next];
	int rc = -EAGAIN;

	if (!plain && d->cfg->verify) {
		s->number = lane->number;
		verify_prepare(d, lane, s);
	}
	s->start = start_of(d, lane, plain);
	if (!sends || lane->credits >= d->layout.messages)
		rc = post(d, lane, s, plain);
	if (rc == -EAGAIN) {
		begin_stall(d, lane);
		return 0;
	}
	if (rc)
		return rc;
	if (sends)
		lane->credits -= d->layout.messages;
	if (lane->stalled)
		end_stall(d, lane);
	lane->next = behind(lane, lane->next);
	lane->nfree--;
	lane->number++;
	lane->left--;
	if (!plain)
		lane->due += d->period;
	if (s->start >= d->deadline)
		stop_issuing(d);
	return 1;
}

HOT bool may_issue(const struct direct *d, const struct lane *lane, bool plain)
{
	return lane->left && lane->nfree &&
	       (plain || d->period == 0 || (uint64_t)lane->due <= d->now);
}

/* ---- Completing ---- */

/* The measured I/O of a slot is done, @now where that is asked. */
HOT int io_done(struct direct *d, struct lane *lane, struct slot *s, const struct rxfer_done *done,
		uint64_t now, bool plain)
{
	if (done->own_cqe && d->sampling)
		hist_add(&d->out->latency, clock_ns(&d->clock, now - s->start));
	lane->completed++;
	d->bytes += done->bytes;
	if (!plain && d->check.len) {
		lane->to_check++;
		return 0;
	}
	lane->nfree++;
	return !plain && d->cfg->verify && d->cfg->op == OP_READ ? verify_read(d, lane, s) : 0;
}

/* A message of the peer: data, or that RECVs are free again. */
static int receive(struct direct *d, struct lane *lane, const struct rxfer_done *done)
{
	int rc = sink_take(d->sink, (unsigned int)(lane - d->lanes), done);

	if (rc < 0)
		return rc;
	lane->credits += (uint64_t)rc;
	return 0;
}

HOT int take(struct direct *d, struct lane *lane, const struct rxfer_done *done, uint64_t now,
	     bool plain)
{
	struct slot *s = &lane->slots[done->id];

	if (done->op == RXFER_RECV)
		return receive(d, lane, done);
	if (plain || !s->checking)
		return io_done(d, lane, s, done, now, plain);
	s->checking = false;
	lane->nfree++;
	return verify_write(d, lane, s);
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

/*
 * What a poll handed up. An I/O that had a completion of its own is the last of it: the clock is
 * read for it before the others of its burst are attended to.
 */
HOT int take_all(struct direct *d, struct lane *lane, const struct rxfer_done *done, int n,
		 bool plain)
{
	const struct rxfer_done *end = done + n;
	uint64_t now = end[-1].own_cqe && d->sampling ? clock_ticks(&d->clock) : 0;

	for (const struct rxfer_done *one = done; one < end; one++) {
		int rc = take(d, lane, one, now, plain);

		if (rc)
			return rc;
	}
	return 0;
}

/* What may be issued now: how much, or -errno. */
HOT int issue_all(struct direct *d, struct lane *lane, bool sends, bool plain)
{
	int did = 0, rc;

	while (may_issue(d, lane, plain)) {
		rc = issue(d, lane, sends, plain);
		if (rc < 0)
			return rc;
		if (rc == 0)
			break;
		did++;
	}
	return did;
}

/*
 * One look at one lane: how much was done, or -errno. While its completions come, it is not left:
 * each makes place for the next I/O. But not for ever, since others wait.
 */
HOT int pass(struct direct *d, struct lane *lane, bool sends, bool plain)
{
	struct rxfer_done done[BURST];
	int did = 0, n, rc = plain ? 0 : before_issuing(d, lane);

	if (rc)
		return rc;
	do {
		n = issue_all(d, lane, sends, plain);
		if (n < 0)
			return n;
		did += n;
		n = rxfer_poll(lane->conn, done, BURST);
		if (n <= 0)
			return n ? n : did;
		did += n;
		rc = take_all(d, lane, done, n, plain);
	} while (!rc && did < BURST);
	return rc ? rc : did;
}

static int pass_plain(struct direct *d, struct lane *lane)
{
	return pass(d, lane, false, true);
}

static int pass_messages(struct direct *d, struct lane *lane)
{
	return pass(d, lane, true, true);
}

static int pass_any(struct direct *d, struct lane *lane)
{
	return pass(d, lane, op_takes_recvs(d->cfg), false);
}

static bool is_plain(const struct cfg *cfg)
{
	return !cfg->verify && !cfg->rate && !cfg->bidir;
}

int (*direct_way(const struct cfg *cfg))(struct direct *d, struct lane *lane)
{
	if (!is_plain(cfg))
		return pass_any;
	return op_takes_recvs(cfg) ? pass_messages : pass_plain;
}

/* Is this lane finished? Asks for the drain once nothing but a silent tail is left. */
static int lane_finished(struct direct *d, struct lane *lane, bool *yes)
{
	*yes = lane->nfree == lane->depth && rxfer_idle(lane->conn);
	if (*yes)
		return 0;
	return rxfer_drain(lane->conn, &(struct rxfer_seg){d->target->addr, 0, d->target->key});
}

static void mark_peak(struct direct *d, uint64_t now)
{
	uint64_t issued = 0, completed = 0;

	for (uint32_t qp = 0; qp < d->nlanes; qp++) {
		issued += d->lanes[qp].number - d->lanes[qp].first;
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
	for (uint32_t qp = 0; qp < d->nlanes; qp++)
		out->ios += d->lanes[qp].completed;
	mark_peak(d, out->end);
	out->peak = peak_rate(&d->peak);
}

static void look_at_clock(struct direct *d)
{
	d->now = clock_ticks(&d->clock);
	if (d->now >= d->deadline)
		stop_issuing(d);
}

int direct_pass(struct direct *d)
{
	bool all = !d->finished;
	int did = 0;

	if (d->period > 0)
		look_at_clock(d);
	for (struct lane *lane = d->lanes; lane < d->lanes + d->nlanes; lane++) {
		bool done = false;
		int rc = d->pass(d, lane);

		if (rc < 0)
			return rc;
		did += rc;
		if (lane->left == 0 && !d->finished) {
			rc = lane_finished(d, lane, &done);
			if (rc)
				return rc;
		}
		all = all && done;
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
	if (d->finished || d->period == 0)
		return !d->finished;
	for (uint32_t qp = 0; qp < d->nlanes; qp++)
		if (d->lanes[qp].stalled || rxfer_due(d->lanes[qp].conn))
			return true;
	return false;
}

void direct_stop(struct direct *d)
{
	bool early = false;

	for (uint32_t qp = 0; qp < d->nlanes; qp++)
		early = early || d->lanes[qp].left;
	if (d->finished || !early)
		return;
	stop_issuing(d);
	if (d->out)
		d->out->cut_short = true;
}

/* What is due when the watch has looked at the clock. */
static void attend(struct direct *d, const struct watch *w)
{
	d->seen = w->now;
	if (w->stop && *w->stop)
		direct_stop(d);
	if (d->deadline != UINT64_MAX && clock_ticks(&d->clock) >= d->deadline)
		stop_issuing(d);
	if (d->out && !d->finished && w->now >= d->peak.next)
		mark_peak(d, w->now);
}

int direct_rest(struct direct *d, int did)
{
	struct watch *w = d->watch;

	if (w->now != d->seen)
		attend(d, w);
	if (did || !w->sleep)
		return 0;
	return watch_sleep(w, d->conns, d->nlanes);
}

/* ---- Phases ---- */

/* The lanes take turns in being due, so that all together keep the rate. */
static void begin_rate(struct direct *d)
{
	uint64_t now = clock_ticks(&d->clock);

	d->period = d->cfg->rate
			    ? clock_span(&d->clock, 1e9) * (double)d->nlanes / (double)d->cfg->rate
			    : 0;
	for (uint32_t qp = 0; qp < d->nlanes; qp++)
		d->lanes[qp].due = (double)now + d->period * (double)qp / (double)d->nlanes;
}

static void begin_lane(struct lane *lane, uint64_t ios)
{
	lane->left = ios ? ios : UINT64_MAX;
	lane->first = lane->number;
	lane->completed = lane->stalled = 0;
}

void direct_begin(struct direct *d, uint64_t ios, uint64_t duration, struct load_result *out)
{
	for (uint32_t qp = 0; qp < d->nlanes; qp++)
		begin_lane(&d->lanes[qp], ios);
	d->deadline = UINT64_MAX;
	d->finished = false;
	d->out = out;
	d->sampling = out && d->timed;
	d->stalls = d->stall_ns = d->bytes = 0;
	watch_begin(d->watch);
	if (out) {
		memset(out, 0, sizeof(*out));
		hist_init(&out->latency);
		out->counts.cpu_ns = cpu_time_ns();
		out->start = rxfer_now();
		if (duration)
			d->deadline = clock_ticks(&d->clock) +
				      (uint64_t)clock_span(&d->clock, (double)duration);
		peak_begin(&d->peak, out->start);
	}
	begin_rate(d);
}

void direct_count(struct direct *d)
{
	if (d->out)
		counts_take(&d->out->counts, d->conns, d->nlanes);
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
