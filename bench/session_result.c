/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a run's ends counted, turned into its result. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "load_rpc.h"
#include "session_client.h"

/* A percentile with fewer samples above it is noise, and left empty. */
#define TAIL_SAMPLES 10

static const char *const op_name[] = {
	[OP_READ] = "read", [OP_WRITE] = "write", [OP_WRITE_IMM] = "write-imm", [OP_SEND] = "send"};

/* The server's end: its own in RPC mode; with --bidir as the client's. */
static void fill_peer_settings(struct result *r, const struct cfg *cfg)
{
	bool rpc = cfg->mode == MODE_RPC;
	const char *strategy = rpc ? cfg->peer_strategy : cfg->bidir ? cfg->strategy : "global";
	const char *signal = rpc ? cfg->peer_signal : cfg->bidir ? cfg->signal : "";

	snprintf(r->peer_strategy, sizeof(r->peer_strategy), "%.*s", RESULT_TEXT - 1, strategy);
	snprintf(r->peer_signal, sizeof(r->peer_signal), "%.*s", RESULT_TEXT - 1, signal);
}

void result_settings(struct result *r, const struct cfg *cfg)
{
	snprintf(r->strategy, sizeof(r->strategy), "%.*s", RESULT_TEXT - 1, cfg->strategy);
	snprintf(r->engine, sizeof(r->engine), "%s", rxfer_strategy_engine(cfg->strategy));
	snprintf(r->mode, sizeof(r->mode), "%s", cfg->mode == MODE_RPC ? "rpc" : "direct");
	snprintf(r->op, sizeof(r->op), "%s", op_name[cfg->op]);
	snprintf(r->signal, sizeof(r->signal), "%.*s", RESULT_TEXT - 1, cfg->signal);
	fill_peer_settings(r, cfg);
	snprintf(r->verify, sizeof(r->verify), "%s", cfg->verify ? "yes" : "no");
	snprintf(r->partial, sizeof(r->partial), "no");
	r->qps = (double)cfg->qps;
	r->depth = (double)cfg->depth;
	r->bytes = (double)cfg->size;
	r->frags = (double)cfg->frags;
	r->frag_gap = (double)cfg->frag_gap;
	cfg_print(cfg, OPT_RUN, r->opts, sizeof(r->opts));
}

/* Over iWARP a WRITE or SEND is complete when TCP has taken it: that time is no latency. */
static bool has_latency(const struct rxfer_dev_info *dev, const struct cfg *cfg)
{
	return cfg->mode == MODE_RPC || cfg->op == OP_READ || !is_iwarp(dev);
}

static void fill_latency(struct result *r, const struct hist *h)
{
	r->latency = *h;
	r->samples = (double)h->count;
	if (h->count == 0)
		return;
	r->lat_min_us = (double)h->min / 1e3;
	r->lat_max_us = (double)h->max / 1e3;
	r->lat_avg_us = hist_mean(h) / 1e3;
	r->lat_stdev_us = hist_stdev(h) / 1e3;
	r->lat_p50_us = hist_quantile(h, 0.5, TAIL_SAMPLES) / 1e3;
	r->lat_p90_us = hist_quantile(h, 0.9, TAIL_SAMPLES) / 1e3;
	r->lat_p99_us = hist_quantile(h, 0.99, TAIL_SAMPLES) / 1e3;
	r->lat_p999_us = hist_quantile(h, 0.999, TAIL_SAMPLES) / 1e3;
	r->lat_p9999_us = hist_quantile(h, 0.9999, TAIL_SAMPLES) / 1e3;
}

/* The device may have granted the QPs different depths: the smallest. */
static void fill_conns(struct result *r, struct rxfer_conn **conns, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		struct rxfer_conn_info info;

		rxfer_conn_info(conns[i], &info);
		if (i && info.sq_depth >= r->sq_depth)
			continue;
		r->sq_depth = info.sq_depth;
		r->sq_wanted = info.sq_wanted;
		r->sqe_max = info.sqe_max;
		r->rd_atomic = info.rd_atomic;
	}
}

/* NAN where nothing was looked up. */
static double hit_pct(const struct counts *c)
{
	return c->lookups ? 100.0 * (double)c->hits / (double)c->lookups : NAN;
}

/* NAN where nobody counts them. */
static double faults_per_io(const struct counts *c, double ios)
{
	return c->fault_counts ? (double)c->faults / ios : NAN;
}

/* @ios: of whose work @c are the counts. */
static void fill_own_counts(struct result *r, const struct cfg *cfg, const struct counts *c,
			    double ios)
{
	r->sqe_per_io = (double)c->sqe / ios;
	r->cqe_per_io = (double)c->cqe / ios;
	r->recv_cqe_per_io = (double)c->recv_cqe / ios;
	r->posts_per_io = (double)c->posts / ios;
	r->sqe_read_per_io = (double)c->sqe_read / ios;
	r->sqe_write_per_io = (double)c->sqe_write / ios;
	r->sqe_send_per_io = (double)c->sqe_send / ios;
	r->sqe_bind_per_io = (double)c->sqe_bind / ios;
	r->sqe_inv_per_io = (double)c->sqe_inv / ios;
	r->stalls_per_io = (double)c->stalls / ios;
	r->cpu_us_per_io = (double)c->cpu_ns / 1e3 / ios;
	r->copied_bytes_per_io = (double)c->copied_bytes / ios;
	r->hit_pct = hit_pct(c);
	r->odp_faults_per_io = faults_per_io(c, ios);
	if (cfg->timing != TIMING_PHASES)
		return;
	r->map_us_per_io = (double)c->map_ns / 1e3 / ios;
	r->unmap_us_per_io = (double)c->unmap_ns / 1e3 / ios;
	r->stall_us_per_io = (double)c->stall_ns / 1e3 / ios;
}

/* What only RPC mode has: what an I/O waited for besides SQEs. */
static void fill_waits(struct result *r, const struct cfg *cfg, const struct counts *c, double ios)
{
	if (cfg->mode != MODE_RPC)
		return;
	if (!strcmp(cfg->signal, "inferred"))
		r->overposts = (double)c->overposts;
	r->unproven_per_io = (double)c->unproven / ios;
	r->unrevoked_per_io = (double)c->unrevoked / ios;
	if (cfg->timing != TIMING_PHASES)
		return;
	r->unproven_us_per_io = (double)c->unproven_ns / 1e3 / ios;
	r->unrevoked_us_per_io = (double)c->unrevoked_ns / 1e3 / ios;
}

static void fill_peer_counts(struct result *r, const struct cfg *cfg, const struct counts *c,
			     double ios)
{
	r->peer_sqe_per_io = (double)c->sqe / ios;
	r->peer_cqe_per_io = (double)c->cqe / ios;
	r->peer_posts_per_io = (double)c->posts / ios;
	r->peer_cpu_us_per_io = (double)c->cpu_ns / 1e3 / ios;
	r->peer_sqe_read_per_io = (double)c->sqe_read / ios;
	r->peer_sqe_write_per_io = (double)c->sqe_write / ios;
	r->peer_sqe_send_per_io = (double)c->sqe_send / ios;
	r->peer_copied_bytes_per_io = (double)c->copied_bytes / ios;
	r->peer_hit_pct = hit_pct(c);
	r->peer_odp_faults_per_io = faults_per_io(c, ios);
	if (cfg->mode != MODE_RPC)
		return;
	r->peer_stalls_per_io = (double)c->stalls / ios;
	r->peer_unproven_per_io = (double)c->unproven / ios;
	r->peer_round_waits_per_io = (double)c->round_waits / ios;
	if (cfg->timing != TIMING_PHASES)
		return;
	r->peer_stall_us_per_io = (double)c->stall_ns / 1e3 / ios;
	r->peer_unproven_us_per_io = (double)c->unproven_ns / 1e3 / ios;
	r->peer_round_wait_us_per_io = (double)c->round_wait_ns / 1e3 / ios;
}

static void fill_counts(const struct run *run, struct result *r)
{
	const struct load_result *mine = &run->mine, *theirs = &run->theirs;
	double ios = (double)mine->ios;
	double their_ios = run->cfg->bidir ? (double)theirs->ios : ios;

	r->sq_peak = (double)mine->counts.sq_peak;
	r->peer_sq_peak = (double)theirs->counts.sq_peak;
	r->forced_signals = (double)mine->counts.forced_signals;
	if (mine->counts.passes)
		r->poll_idle_pct = 100.0 * (double)mine->counts.idle / (double)mine->counts.passes;
	if (mine->ios) {
		fill_own_counts(r, run->cfg, &mine->counts, ios);
		fill_waits(r, run->cfg, &mine->counts, ios);
	}
	if (their_ios > 0)
		fill_peer_counts(r, run->cfg, &theirs->counts, their_ios);
}

/* What an I/O left open to the server, and for how long. */
static void fill_exposure(const struct run *run, struct result *r)
{
	const struct rxfer_exposed *e = &run->mine.exposed;
	const struct hist *after = run->mine.open_after;

	r->exposed_bytes_peak = (double)e->peak;
	r->exposed_bytes_avg = e->avg;
	if (e->peak)
		snprintf(r->exposure_scope, sizeof(r->exposure_scope), "%s",
			 rxfer_strategy_on_qp(run->cfg->strategy) ? "qp" : "pd");
	if (run->mine.key_reuse)
		r->key_reuse_min = run->mine.key_reuse;
	if (e->peak || run->revoke != RXFER_REVOKE_NONE)
		snprintf(r->revoke, sizeof(r->revoke), "%s", rxfer_revoke_name(run->revoke));
	if (!after || after->count == 0)
		return;
	r->open_after_us_p50 = hist_quantile(after, 0.5, TAIL_SAMPLES) / 1e3;
	r->open_after_us_p99 = hist_quantile(after, 0.99, TAIL_SAMPLES) / 1e3;
}

/* What an end moved, by its own clock: added to what the other end did, as both count. */
static void add_speed(struct result *r, const struct load_result *l, uint64_t size)
{
	double seconds = (double)(l->end - l->start) / 1e9;

	r->bw_peak_MiBps += l->peak * (double)size / 1048576;
	if (seconds > 0) {
		r->bw_avg_MiBps += (double)l->bytes / 1048576 / seconds;
		r->msg_rate_Mpps += (double)l->ios / 1e6 / seconds;
	}
}

static void fill_speed(const struct run *run, struct result *r)
{
	r->iterations = (double)run->mine.ios;
	r->seconds = (double)(run->mine.end - run->mine.start) / 1e9;
	r->bw_peak_MiBps = r->bw_avg_MiBps = r->msg_rate_Mpps = 0;
	add_speed(r, &run->mine, run->cfg->size);
	if (run->cfg->bidir) {
		r->peer_iterations = (double)run->theirs.ios;
		add_speed(r, &run->theirs, run->cfg->size);
	}
}

static void fill_found(struct run *run, struct result *r)
{
	const struct area *work = load_memory(run->load);

	found_nodes(&run->found, work->base, work->len);
	snprintf(r->cpu, sizeof(r->cpu), "%s", run->found.cpu);
	snprintf(r->mem_node, sizeof(r->mem_node), "%s", run->found.mem_node);
	snprintf(r->peer_cpu, sizeof(r->peer_cpu), "%s", run->theirs_found.cpu);
	snprintf(r->peer_mem_node, sizeof(r->peer_mem_node), "%s", run->theirs_found.mem_node);
	r->mem_huge_pct = found_huge_pct(work->base, work->len);
}

void result_fill(struct run *run, struct result *r)
{
	const struct rxfer_dev_counts *mem = rxfer_dev_counts(run->dev);

	fill_speed(run, r);
	if (has_latency(rxfer_dev_info(run->dev), run->cfg))
		fill_latency(r, &run->mine.latency);
	else
		r->samples = 0;
	fill_conns(r, run->conns, run->nconns);
	fill_counts(run, r);
	fill_found(run, r);
	if (run->cfg->mode == MODE_RPC)
		fill_exposure(run, r);
	r->pinned_bytes = (double)mem->pinned_peak;
	r->mr_count = (double)mem->mr_peak;
	if (run->mine.cut_short || run->theirs.cut_short)
		snprintf(r->partial, sizeof(r->partial), "yes");
}
