/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What issues I/Os, whatever the pattern: the phases of a run, from the begin until all is
 * complete, and what is counted over them.
 */
#include <string.h>
#include "load_internal.h"

void load_init(struct load *l, const struct cfg *cfg, const struct layout *layout,
	       struct rxfer_conn **conns, struct watch *watch)
{
	*l = (struct load){.cfg = cfg,
			   .layout = *layout,
			   .conns = conns,
			   .watch = watch,
			   .clock = watch->runtime->clock,
			   .nlanes = (uint32_t)cfg->qps,
			   .timed = cfg->timing != TIMING_OFF,
			   .finished = true};
	touch_init(&l->touch, cfg->touch);
}

uint64_t load_work_bytes(const struct cfg *cfg, const struct layout *layout)
{
	uint64_t pieces = cfg->working_set ? cfg->working_set / layout->slot
					   : cfg->qps * cfg->depth;

	return pieces * layout->slot;
}

int load_make_work(struct load *l, struct rxfer_dev *dev, unsigned int rights)
{
	uint64_t bytes = load_work_bytes(l->cfg, &l->layout);
	int rc = area_make_io(dev, l->cfg, bytes, rights, &l->work);

	if (rc || !l->cfg->working_set)
		return rc;
	rc = access_init(&l->access, (enum access_order)l->cfg->access, bytes / l->layout.slot,
			 l->cfg->qps * l->cfg->depth);
	return rc ? rxfer_fail(rc, "the order of %s in a working set: %s",
			       rxfer_count(bytes / l->layout.slot, "piece").s, strerror(-rc))
		  : 0;
}

void load_drop_work(struct load *l)
{
	area_drop(&l->work);
	access_free(&l->access);
}

uint64_t load_messages(const struct load *l, unsigned int qp)
{
	return load_turn(l, qp)->number * l->messages;
}

const struct area *load_memory(const struct load *l)
{
	return &l->work;
}

void load_free(struct load *l)
{
	if (l)
		l->ops->free(l);
}

/* ---- Issuing ---- */

void load_stall(struct load *l, struct turn *turn)
{
	if (turn->stalled)
		return;
	l->stalls++;
	turn->stalled = l->cfg->timing == TIMING_PHASES ? clock_ticks(&l->clock) : 1;
}

void load_unstall(struct load *l, struct turn *turn)
{
	if (l->cfg->timing == TIMING_PHASES)
		l->stall_ns += clock_ns(&l->clock, clock_ticks(&l->clock) - turn->stalled);
	turn->stalled = 0;
}

void load_stop_issuing(struct load *l)
{
	for (uint32_t qp = 0; qp < l->nlanes; qp++)
		load_turn(l, qp)->left = 0;
}

/* ---- The end of a phase ---- */

static void mark_peak(struct load *l, uint64_t now)
{
	uint64_t issued = 0, completed = 0;

	for (uint32_t qp = 0; qp < l->nlanes; qp++) {
		const struct turn *turn = load_turn(l, qp);

		issued += turn->number - turn->first;
		completed += turn->completed;
	}
	peak_mark(&l->peak, now, issued, completed);
}

static void conclude(struct load *l)
{
	struct load_result *out = l->out;

	l->finished = true;
	if (!out)
		return;
	out->end = rxfer_now();
	out->counts.cpu_ns = cpu_time_ns() - out->counts.cpu_ns;
	out->counts.passes = l->watch->passes;
	out->counts.idle = l->watch->idle;
	out->counts.stall_ns = l->stall_ns;
	out->counts.stalls = l->stalls;
	out->bytes = l->bytes;
	for (uint32_t qp = 0; qp < l->nlanes; qp++)
		out->ios += load_turn(l, qp)->completed;
	mark_peak(l, out->end);
	out->peak = peak_rate(&l->peak);
	if (l->ops->end)
		l->ops->end(l, out);
}

static void look_at_clock(struct load *l)
{
	l->now = clock_ticks(&l->clock);
	if (l->now >= l->deadline)
		load_stop_issuing(l);
}

int load_pass(struct load *l)
{
	bool all = !l->finished;
	int did = 0;

	if (l->period > 0)
		look_at_clock(l);
	for (uint32_t qp = 0; qp < l->nlanes; qp++) {
		struct turn *turn = load_turn(l, qp);
		bool done = false;
		int rc = l->ops->pass(l, turn);

		if (rc < 0)
			return rc;
		did += rc;
		if (turn->left == 0 && !l->finished) {
			rc = l->ops->ended(l, turn, &done);
			if (rc)
				return rc;
		}
		all = all && done;
	}
	if (all)
		conclude(l);
	return did;
}

bool load_finished(const struct load *l)
{
	return l->finished;
}

static bool awaits_answer(const struct load *l, const struct turn *turn)
{
	return l->answered && turn->number - turn->first > turn->completed;
}

bool load_waits(const struct load *l)
{
	if (l->finished || l->period == 0)
		return !l->finished;
	for (uint32_t qp = 0; qp < l->nlanes; qp++) {
		const struct turn *turn = load_turn(l, qp);

		if (turn->stalled || awaits_answer(l, turn) || rxfer_due(l->conns[qp]))
			return true;
	}
	return false;
}

void load_stop(struct load *l)
{
	bool early = false;

	for (uint32_t qp = 0; qp < l->nlanes; qp++)
		early = early || load_turn(l, qp)->left;
	if (l->finished || !early)
		return;
	load_stop_issuing(l);
	if (l->out)
		l->out->cut_short = true;
}

/* What is due when the watch has looked at the clock. */
static void attend(struct load *l, const struct watch *w)
{
	l->seen = w->now;
	if (w->stop && *w->stop)
		load_stop(l);
	if (l->deadline != UINT64_MAX && clock_ticks(&l->clock) >= l->deadline)
		load_stop_issuing(l);
	if (l->out && !l->finished && w->now >= l->peak.next)
		mark_peak(l, w->now);
}

int load_rest(struct load *l, int did)
{
	struct watch *w = l->watch;

	if (w->now != l->seen)
		attend(l, w);
	if (did || !w->sleep)
		return 0;
	return watch_sleep(w, l->conns, l->nlanes);
}

/* ---- Phases ---- */

/* The lanes take turns in being due, so that all together keep the rate. */
static void begin_rate(struct load *l)
{
	uint64_t now = clock_ticks(&l->clock);

	l->period = l->cfg->rate
			    ? clock_span(&l->clock, 1e9) * (double)l->nlanes / (double)l->cfg->rate
			    : 0;
	for (uint32_t qp = 0; qp < l->nlanes; qp++)
		load_turn(l, qp)->due = (double)now + l->period * (double)qp / (double)l->nlanes;
}

static void begin_turn(struct turn *turn, uint64_t ios)
{
	turn->left = ios ? ios : UINT64_MAX;
	turn->first = turn->number;
	turn->completed = turn->stalled = 0;
}

static void begin_result(struct load *l, uint64_t duration, struct load_result *out)
{
	memset(out, 0, sizeof(*out));
	hist_init(&out->latency);
	out->counts.cpu_ns = cpu_time_ns();
	out->start = rxfer_now();
	if (duration)
		l->deadline =
			clock_ticks(&l->clock) + (uint64_t)clock_span(&l->clock, (double)duration);
	peak_begin(&l->peak, out->start);
}

void load_begin(struct load *l, uint64_t ios, uint64_t duration, struct load_result *out)
{
	for (uint32_t qp = 0; qp < l->nlanes; qp++)
		begin_turn(load_turn(l, qp), ios);
	l->deadline = UINT64_MAX;
	l->finished = false;
	l->out = out;
	l->sampling = out && l->timed;
	l->stalls = l->stall_ns = l->bytes = 0;
	/* A warm-up goes through the working set in order, so that it has been in all of it once it
	 * is as long as that. */
	l->access.order = out ? l->cfg->access : (uint64_t)ACCESS_SEQ;
	watch_begin(l->watch);
	if (l->ops->begin)
		l->ops->begin(l);
	if (out)
		begin_result(l, duration, out);
	begin_rate(l);
}

/* ---- Counts ---- */

void load_count(struct load *l)
{
	if (l->out)
		counts_take(&l->out->counts, l->conns, l->nlanes);
}

void counts_take(struct counts *c, struct rxfer_conn **conns, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct rxfer_counts *from = rxfer_conn_counts(conns[i]);
		struct rxfer_conn_info info;

		rxfer_conn_info(conns[i], &info);
		c->sqe += from->sqe;
		c->sqe_read += from->sqe_op[RXFER_READ];
		c->sqe_write += from->sqe_op[RXFER_WRITE] + from->sqe_op[RXFER_WRITE_IMM];
		c->sqe_send += from->sqe_op[RXFER_SEND];
		c->sqe_bind += from->sqe_op[RXFER_BIND];
		c->sqe_inv += from->sqe_op[RXFER_REVOKE];
		c->posts += from->posts;
		c->cqe += from->cqe;
		c->recv_cqe += from->recv_cqe;
		c->copied_bytes += from->copied_bytes;
		c->lookups += from->lookups;
		c->hits += from->hits;
		c->map_ns += from->map_ns;
		c->unmap_ns += from->unmap_ns;
		c->forced_signals += info.forced_signals;
		if (c->sq_peak < info.sq_peak)
			c->sq_peak = info.sq_peak;
	}
}

/* What is gone has taken its count along: then the difference is none. */
void counts_faults(struct counts *c, const struct rxfer_dev *dev, struct rxfer_faults before)
{
	struct rxfer_faults now = rxfer_dev_faults(dev);

	if (now.regions < before.regions || now.faults < before.faults)
		return;
	c->faults = now.faults - before.faults;
	c->fault_counts = now.regions;
}
