/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The client's side of a session: set one run up, drive it, and turn what was counted into a
 * result. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "env.h"
#include "session.h"

/* A percentile with fewer samples above it is noise, and left empty. */
#define TAIL_SAMPLES 10

static const char *const op_name[] = {[OP_READ] = "read", [OP_WRITE] = "write", [OP_SEND] = "send"};
static const enum rxfer_opcode op_code[] = {
	[OP_READ] = RXFER_READ, [OP_WRITE] = RXFER_WRITE, [OP_SEND] = RXFER_SEND};

/* struct run - one run, as the client has it. */
struct run {
	struct control *control;
	const struct peer *peer;
	const struct cfg *cfg;
	const struct runtime *runtime;
	struct layout layout;
	struct rxfer_dev *dev;
	struct ready server;
	struct rxfer_conn **conns;
	uint64_t nconns;
	struct direct *load;
	struct watch watch;
	struct load_result mine;
	struct counts theirs;
};

/* ---- Results ---- */

static void fill_settings(struct result *r, const struct cfg *cfg)
{
	snprintf(r->strategy, sizeof(r->strategy), "%.*s", RESULT_TEXT - 1, cfg->strategy);
	snprintf(r->engine, sizeof(r->engine), "%s", rxfer_strategy_engine(cfg->strategy));
	snprintf(r->mode, sizeof(r->mode), "direct");
	snprintf(r->op, sizeof(r->op), "%s", op_name[cfg->op]);
	snprintf(r->signal, sizeof(r->signal), "%.*s", RESULT_TEXT - 1, cfg->signal);
	snprintf(r->peer_strategy, sizeof(r->peer_strategy), "global");
	if (cfg->op == OP_SEND)
		snprintf(r->peer_signal, sizeof(r->peer_signal), "half");
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
	return cfg->op == OP_READ || strcmp(dev->transport, "iWARP");
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

static void fill_counts(struct result *r, const struct load_result *mine,
			const struct counts *theirs)
{
	double ios = (double)mine->ios;

	r->sq_peak = (double)mine->counts.sq_peak;
	r->peer_sq_peak = (double)theirs->sq_peak;
	r->forced_signals = (double)mine->counts.forced_signals;
	if (mine->counts.passes)
		r->poll_idle_pct = 100.0 * (double)mine->counts.idle / (double)mine->counts.passes;
	if (mine->ios == 0)
		return;
	r->sqe_per_io = (double)mine->counts.sqe / ios;
	r->cqe_per_io = (double)mine->counts.cqe / ios;
	r->recv_cqe_per_io = (double)mine->counts.recv_cqe / ios;
	r->posts_per_io = (double)mine->counts.posts / ios;
	r->stalls_per_io = (double)mine->stalls / ios;
	r->cpu_us_per_io = (double)mine->counts.cpu_ns / 1e3 / ios;
	r->peer_sqe_per_io = (double)theirs->sqe / ios;
	r->peer_cqe_per_io = (double)theirs->cqe / ios;
	r->peer_posts_per_io = (double)theirs->posts / ios;
	r->peer_cpu_us_per_io = (double)theirs->cpu_ns / 1e3 / ios;
}

static void fill_result(struct run *run, struct result *r)
{
	const struct load_result *mine = &run->mine;
	const struct rxfer_dev_counts *mem = rxfer_dev_counts(run->dev);
	double seconds = (double)(mine->end - mine->start) / 1e9;

	r->iterations = (double)mine->ios;
	r->seconds = seconds;
	if (seconds > 0) {
		r->bw_avg_MiBps = (double)mine->bytes / 1048576 / seconds;
		r->msg_rate_Mpps = (double)mine->ios / 1e6 / seconds;
	}
	r->bw_peak_MiBps = mine->peak * (double)run->cfg->size / 1048576;
	if (has_latency(rxfer_dev_info(run->dev), run->cfg))
		fill_latency(r, &mine->latency);
	else
		r->samples = 0;
	fill_conns(r, run->conns, run->nconns);
	fill_counts(r, mine, &run->theirs);
	r->pinned_bytes = (double)mem->pinned_peak;
	r->mr_count = (double)mem->mr_peak;
	if (mine->cut_short)
		snprintf(r->partial, sizeof(r->partial), "yes");
}

/* ---- Setting up ---- */

static int check_limits(const struct run *run)
{
	const struct rxfer_dev_info *info = rxfer_dev_info(run->dev);

	if (run->cfg->size > info->max_msg_size)
		return rxfer_fail(
			EMSGSIZE,
			"--size %llu is more than one message on %s can carry (max_msg_sz %llu)",
			(unsigned long long)run->cfg->size, info->name,
			(unsigned long long)info->max_msg_size);
	if (run->cfg->qps > info->max_qp)
		return rxfer_fail(EINVAL, "--qps %llu is more than %s has (max_qp %u)",
				  (unsigned long long)run->cfg->qps, info->name, info->max_qp);
	return 0;
}

static int configure(struct run *run, const uint8_t token[RXFER_TOKEN_BYTES])
{
	struct rxfer_wait wait = watch_wait(&run->watch);
	json_t *body;
	int rc;

	wait.deadline += layout_allowance(run->cfg, &run->layout);
	rc = control_send(run->control, MSG_CONFIG, config_to_json(run->cfg, token), &wait);

	if (!rc)
		rc = control_expect(run->control, MSG_READY, &body, &wait);
	if (rc)
		return rc;
	rc = ready_from_json(body, &run->server);
	json_decref(body);
	if (!rc && run->cfg->op != OP_SEND &&
	    run->server.target.len < run->cfg->qps * run->cfg->depth * run->layout.target)
		rc = rxfer_fail(EBADMSG,
				"the server offers %llu bytes of memory, too few for this run",
				(unsigned long long)run->server.target.len);
	return rc;
}

static int connect_all(struct run *run, const uint8_t token[RXFER_TOKEN_BYTES])
{
	const struct cfg *cfg = run->cfg;
	struct rxfer_conn_attr attr;

	for (; run->nconns < cfg->qps; run->nconns++) {
		struct rxfer_wait wait = watch_wait(&run->watch);
		int rc = conn_attr(cfg, token, run->nconns, &attr);

		if (rc)
			return rc;
		wait.cancel_fd = run->control->fd;
		attr.slots = (uint32_t)cfg->depth;
		attr.sq_depth = (uint32_t)cfg->sq_depth;
		attr.rq_depth = cfg->op == OP_SEND ? CREDIT_RECVS : 0;
		attr.shape = (struct rxfer_shape){op_code[cfg->op], cfg->size, (uint32_t)cfg->frags,
						  cfg->op == OP_SEND ? 0 : 1};
		rc = rxfer_connect(run->dev, &run->server.addr, &attr, &wait,
				   &run->conns[run->nconns]);
		if (rc)
			return control_reason(run->control, rc);
	}
	return 0;
}

static int set_up(struct run *run)
{
	uint8_t token[RXFER_TOKEN_BYTES];
	struct rxfer_wait wait;
	int rc;

	if (getrandom(token, sizeof(token), 0) != sizeof(token))
		return rxfer_fail(EIO, "getrandom: %m");
	run->conns = calloc(run->cfg->qps, sizeof(run->conns[0]));
	if (!run->conns)
		return rxfer_fail(ENOMEM, "out of memory");
	layout_make(run->cfg, &run->layout);
	rc = configure(run, token);
	if (!rc)
		rc = connect_all(run, token);
	wait = watch_wait(&run->watch);
	if (!rc)
		rc = control_expect(run->control, MSG_CONNECTED, NULL, &wait);
	if (rc)
		return rc;
	run->load = direct_new(run->cfg, &run->layout, run->dev, run->conns, &run->server.target,
			       &run->watch);
	return run->load ? 0 : -ENOMEM;
}

/* ---- Driving ---- */

/* Tell the server where we stand, and wait until it has caught up. */
static int sync_with_server(struct run *run, enum message say, enum message expect, json_t **body)
{
	struct rxfer_wait wait = watch_wait(&run->watch);
	int rc = control_send(run->control, say, messages_to_json(run->load, run->cfg->qps), &wait);

	wait.stop = NULL; /* an interrupted run still wants its result */
	return rc ? rc : control_expect(run->control, expect, body, &wait);
}

static int drive(struct run *run)
{
	const struct cfg *cfg = run->cfg;
	json_t *body;
	int rc = sync_with_server(run, MSG_START, MSG_STARTED, NULL);

	if (!rc && cfg->warmup)
		rc = direct_run(run->load, cfg->warmup, 0, NULL);
	if (!rc && *run->runtime->stop)
		rc = rxfer_fail(EINTR, "interrupted before the timed part");
	if (!rc)
		rc = sync_with_server(run, MSG_START, MSG_STARTED, NULL);
	for (uint64_t i = 0; !rc && i < run->nconns; i++)
		rxfer_conn_restart(run->conns[i]);
	if (!rc)
		rc = direct_run(run->load, cfg->iters, cfg->duration_ns, &run->mine);
	if (!rc)
		rc = sync_with_server(run, MSG_STOP, MSG_RESULT, &body);
	if (rc)
		return rc;
	rc = counts_from_json(body, &run->theirs);
	json_decref(body);
	return rc;
}

static void clean_up(struct run *run)
{
	for (uint64_t i = 0; i < run->nconns; i++)
		rxfer_conn_close(run->conns[i]);
	free(run->conns);
	direct_free(run->load);
	rxfer_dev_close(run->dev);
}

int session_run(struct control *c, const struct peer *peer, const struct cfg *cfg,
		const struct runtime *runtime, struct result *result)
{
	struct run *run = calloc(1, sizeof(*run));
	int rc;

	if (!run)
		return rxfer_fail(ENOMEM, "out of memory");
	*run = (struct run){.control = c, .peer = peer, .cfg = cfg, .runtime = runtime};
	fill_settings(result, cfg);
	snprintf(result->peer_host, sizeof(result->peer_host), "%s", peer->host);
	rc = rxfer_dev_open(cfg->device, cfg->strategy, &run->dev);
	if (rc == -EOPNOTSUPP) {
		result->status = RESULT_SKIPPED;
		snprintf(result->reason, sizeof(result->reason), "%s", rxfer_error());
		free(run);
		return 0;
	}
	if (rc)
		goto out;
	env_fill(result, rxfer_dev_info(run->dev));
	watch_init(&run->watch, c, cfg, runtime, cfg->op == OP_SEND && peer->same_machine ? 2 : 1,
		   rxfer_dev_info(run->dev)->software);
	rc = check_limits(run);
	if (!rc)
		rc = set_up(run);
	if (!rc)
		rc = drive(run);
	if (!rc)
		fill_result(run, result);
out:
	if (rc) {
		struct rxfer_wait soon = {rxfer_now() + 1000000000u, -1, NULL};

		result->status = RESULT_FAILED;
		snprintf(result->reason, sizeof(result->reason), "%s", rxfer_error());
		if (rc != -EREMOTEIO && rc != -ECONNRESET)
			control_fail(c, &soon);
		rxfer_fail(rc, "%s", result->reason);
	}
	clean_up(run);
	free(run);
	return rc;
}
