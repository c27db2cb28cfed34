/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rxfer-bench probe: measures a device instead of believing it.
 *
 * What needs a peer (how many unsignalled WRs a send queue takes, what posting costs) comes first,
 * over the connections of one run of an ordinary session: to the server it is a client that never
 * starts its WRITEs. The rest needs nobody. All findings are rows, written at the end; a finding
 * that failed is a row too, with the reason.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "env.h"
#include "probing.h"
#include "stats.h"

#define QUEUE	     256   /* send queue entries asked for, where a queue is to be filled */
#define DEPTH_MAX    65536 /* asked for at most */
#define SILENT_TIMES 4	   /* try to post so many times what was granted, */
#define SILENT_MAX   65536 /* and no more than that */
#define WRITE_BYTES  8
#define BURST	     32	 /* WRs of a round */
#define ROUNDS	     300 /* of each kind */
#define ROUNDS_NS    1500000000ull
#define INLINE_MAX   65536
#define REPORTS_MAX  16

/* The connections of the session. */
enum { FOR_COSTS, FOR_CHAIN, FOR_SINGLES, CONNS };

/* struct session - of a probe: the peer, and what it gave us to write to. */
struct session {
	struct probe *p;
	const struct server_ops *server;
	void *arg;
	struct control control;
	struct peer peer;
	struct watch watch;
	struct rxfer_conn *conn[CONNS];
	struct rxfer_seg remote;
	struct area local;
};

/* ---- Findings ---- */

void probe_add(struct probe_rows *rows, const struct probe_row *row, const char *note, ...)
{
	struct probe_row *grown = realloc(rows->row, (rows->n + 1) * sizeof(*grown));
	va_list args;

	if (!grown) {
		rows->err = -ENOMEM;
		return;
	}
	rows->row = grown;
	grown += rows->n++;
	*grown = *row;
	grown->section = rows->section;
	va_start(args, note);
	vsnprintf(grown->note, sizeof(grown->note), note, args);
	va_end(args);
	for (char *c = grown->note; *c; c++)
		*c = (unsigned char)*c < ' ' ? ' ' : *c;
}

int probe_stopped(const struct probe *p)
{
	return *p->runtime->stop ? rxfer_fail(EINTR, "interrupted") : 0;
}

/* ---- What is granted ---- */

static void add_depth(struct probe *p, uint32_t asked, const char *note)
{
	struct probe_row row = {.quantity = "sq_depth", .value = NAN, .unit = "entries"};
	struct rxfer_granted granted;

	snprintf(row.variant, sizeof(row.variant), "asked %u", asked);
	if (!rxfer_probe_qp(p->dev, asked, 0, &granted)) {
		row.value = granted.send_wr;
		probe_add(&p->rows, &row, "%s", note);
	} else {
		probe_add(&p->rows, &row, "%s", rxfer_error());
	}
}

/* Up to what the device says; a queue of a million entries would take long, and much memory. */
static int probe_depths(struct probe *p)
{
	static const uint32_t asked[] = {1, 16, 100, 128, 1000, 10000};
	uint32_t most = rxfer_dev_info(p->dev)->max_qp_wr;
	char note[64];
	int rc = 0;

	for (unsigned int i = 0; !rc && i < sizeof(asked) / sizeof(asked[0]); i++) {
		add_depth(p, asked[i], "");
		rc = probe_stopped(p);
	}
	snprintf(note, sizeof(note), "max_qp_wr is %u", most);
	if (!rc)
		add_depth(p, most < DEPTH_MAX ? most : DEPTH_MAX, note);
	return rc;
}

/* Granted in fact, not only in name. */
static bool inline_granted(struct probe *p, uint32_t bytes)
{
	struct rxfer_granted granted;

	return !rxfer_probe_qp(p->dev, 16, bytes, &granted) && granted.inline_bytes >= bytes;
}

static int probe_inline(struct probe *p)
{
	struct probe_row row = {.quantity = "inline_limit", .unit = "bytes"};
	uint32_t yes = 0, no = INLINE_MAX + 1;

	while (no - yes > 1) {
		uint32_t middle = yes + (no - yes) / 2;
		int rc = probe_stopped(p);

		if (rc)
			return rc;
		if (inline_granted(p, middle))
			yes = middle;
		else
			no = middle;
	}
	row.value = yes;
	probe_add(&p->rows, &row, "with 16 send entries of one SGE%s",
		  yes == INLINE_MAX ? "; more was not tried" : "");
	return 0;
}

/* ---- The session ---- */

static int open_session(struct session *s)
{
	struct rxfer_wait wait = {rxfer_now() + s->p->cfg.timeout_ns, -1, s->p->runtime->stop};
	int rc = s->server->open(s->arg, &s->control, &wait);

	if (rc)
		return rc;
	s->control.trace = trace_of(s->p->runtime, "client");
	rc = session_hello(&s->control, true, &s->peer, &wait);
	if (rc)
		s->server->close(s->arg, &s->control);
	return rc;
}

/* As a run of WRITEs the server knows it. */
static int configure(struct session *s, const uint8_t token[RXFER_TOKEN_BYTES], struct ready *ready)
{
	struct cfg cfg = s->p->cfg;
	struct rxfer_wait wait;
	json_t *body;
	int rc;

	cfg.op = OP_WRITE;
	cfg.size = WRITE_BYTES;
	cfg.qps = CONNS;
	cfg.depth = 1;
	watch_init(&s->watch, &s->control, &cfg, s->p->runtime, 1,
		   rxfer_dev_info(s->p->dev)->software);
	s->watch.passive = true;
	watch_device(&s->watch, s->p->dev);
	wait = watch_wait(&s->watch);
	rc = control_send(&s->control, MSG_CONFIG, config_to_json(&cfg, token), &wait);
	if (!rc)
		rc = control_expect(&s->control, MSG_READY, &body, &wait);
	if (rc)
		return rc;
	rc = ready_from_json(body, ready);
	json_decref(body);
	if (!rc && ready->target.len < WRITE_BYTES)
		rc = rxfer_fail(EBADMSG, "the server offers too little memory");
	s->remote = (struct rxfer_seg){ready->target.addr, WRITE_BYTES, ready->target.key};
	return rc;
}

/* A completion queue holds the entries of both queues: the RECVs make room for what is posted
 * beyond the send queue's depth. */
static int connect_all(struct session *s)
{
	uint32_t most = rxfer_dev_info(s->p->dev)->max_qp_wr;
	const struct layout none = {0};
	uint8_t token[RXFER_TOKEN_BYTES];
	struct ready ready;
	struct rxfer_wait wait;
	int rc;

	if (getrandom(token, sizeof(token), 0) != sizeof(token))
		return rxfer_fail(EIO, "getrandom: %m");
	rc = configure(s, token, &ready);
	for (unsigned int i = 0; !rc && i < CONNS; i++) {
		struct rxfer_conn_attr attr;

		rc = conn_attr(&s->p->cfg, &none, (struct roles){.issues = true}, token, i, &attr);
		if (rc)
			return rc;
		attr.slots = 1;
		attr.sq_depth = QUEUE < most ? QUEUE : most;
		attr.rq_depth = 3 * QUEUE < most ? 3 * QUEUE : most;
		attr.shape = (struct rxfer_shape){RXFER_WRITE, WRITE_BYTES, 1, 1};
		wait = watch_wait(&s->watch);
		wait.cancel_fd = s->control.fd;
		rc = rxfer_connect(s->p->dev, &ready.addr, &attr, &wait, &s->conn[i]);
		if (rc)
			return control_reason(&s->control, rc);
	}
	wait = watch_wait(&s->watch);
	if (!rc)
		rc = control_expect(&s->control, MSG_CONNECTED, NULL, &wait);
	return rc ? rc : area_make(s->p->dev, WRITE_BYTES, RXFER_FIXED, &s->local);
}

/* Between two steps: give and look for signs of life, and for a stop signal. */
static int keep_up(struct session *s)
{
	enum message type;
	json_t *body;
	int rc = probe_stopped(s->p);

	if (!rc)
		rc = watch_pass(&s->watch, 1, false, &type, &body);
	return rc == 1 ? control_bad_news(&s->control, type, body) : rc;
}

/* The server's run ends in order. */
static int end_run(struct session *s)
{
	struct rxfer_wait wait = watch_wait(&s->watch);
	int rc = control_send(&s->control, MSG_STOP, json_pack("{s:[i,i,i]}", "messages", 0, 0, 0),
			      &wait);

	return rc ? rc : control_expect(&s->control, MSG_RESULT, NULL, &wait);
}

static void close_session(struct session *s, int rc)
{
	struct rxfer_wait soon = {rxfer_now() + 1000000000u, -1, NULL};

	if (!rc)
		control_send(&s->control, MSG_BYE, NULL, &soon);
	else
		control_give_up(&s->control, rc);
	for (unsigned int i = 0; i < CONNS; i++)
		rxfer_conn_close(s->conn[i]);
	area_drop(&s->local);
	s->server->close(s->arg, &s->control);
}

/* ---- What is taken ---- */

static const char frees_by_itself[] =
	"frees entries without completions: a forgotten signal never shows on this device, while it dead-locks others (mlx4, mlx5)";

static void add_silent(struct probe *p, const char *variant, uint32_t taken, const char *note)
{
	struct probe_row row = {.quantity = "unsignalled_posts", .value = taken, .unit = "posts"};

	snprintf(row.variant, sizeof(row.variant), "%s", variant);
	probe_add(&p->rows, &row, "%s", note);
}

/* After a full queue, or beyond what fits at once: neither can be without entries coming free. */
const char *probe_verdict(const struct rxfer_silent *chain, const struct rxfer_silent *singles,
			  uint32_t limit)
{
	if (singles->total > singles->burst || singles->total > chain->burst)
		return frees_by_itself;
	if (singles->total < limit)
		return "entries come free by completions only";
	return "all that were tried: entries are freed without completions, or there are more than granted";
}

/* One after the other without polling, on connections of their own: in one call, and by many. */
static int probe_silent(struct session *s)
{
	struct rxfer_silent chain, singles;
	struct rxfer_conn_info info;
	struct rxfer_wait wait;
	char note[96];
	uint32_t limit;
	int rc;

	rxfer_conn_info(s->conn[FOR_CHAIN], &info);
	s->p->rows.section++;
	limit = info.sqe_max < SILENT_MAX / SILENT_TIMES ? SILENT_TIMES * info.sqe_max : SILENT_MAX;
	wait = watch_wait(&s->watch);
	rc = rxfer_probe_silent(s->conn[FOR_CHAIN], &s->remote, limit, true, &wait, &chain);
	if (!rc)
		rc = keep_up(s);
	wait = watch_wait(&s->watch);
	if (!rc)
		rc = rxfer_probe_silent(s->conn[FOR_SINGLES], &s->remote, limit, false, &wait,
					&singles);
	if (rc)
		return rc;
	snprintf(note, sizeof(note), "of %u tried; %u asked, %u granted", limit, info.sq_depth,
		 info.sqe_max);
	add_silent(s->p, "one call", chain.burst, note);
	add_silent(s->p, "until full", singles.burst,
		   singles.burst == limit ? "never full" : "one by one until the first ENOMEM");
	add_silent(s->p, "with waiting", singles.total, probe_verdict(&chain, &singles, limit));
	return 0;
}

/* ---- What it costs ---- */

enum { LONE, CHAIN, SINGLES, SIGNALLED, KINDS };

static struct rxfer_round round_of(unsigned int kind, uint32_t burst, bool yield)
{
	return (struct rxfer_round){
		.wrs = kind == LONE ? 1 : burst,
		.single = kind == SINGLES,
		.all = kind == SIGNALLED,
		.yield = yield,
	};
}

static void add_cost(struct probe *p, const char *quantity, double ns, const char *note)
{
	struct probe_row row = {.value = ns, .digits = 1, .unit = "ns"};

	snprintf(row.quantity, sizeof(row.quantity), "%s", quantity);
	snprintf(row.variant, sizeof(row.variant), "WRITE of %u bytes", WRITE_BYTES);
	probe_add(&p->rows, &row, "%s", note);
}

/* Differences of medians, so that what all rounds share drops out. */
static void add_costs(struct probe *p, double sample[KINDS][ROUNDS], unsigned int n, uint32_t burst)
{
	double ns[KINDS], more = burst - 1.0;
	char note[96];

	for (unsigned int i = 0; i < KINDS; i++)
		ns[i] = stats_median(sample[i], n);
	snprintf(note, sizeof(note), "medians of %s of %u", rxfer_count(n, "round").s, burst);
	add_cost(p, "cost_lone_wr", ns[LONE], note);
	add_cost(p, "cost_post", (ns[SINGLES] - ns[CHAIN]) / more, "one more call");
	add_cost(p, "cost_silent_wr", (ns[CHAIN] - ns[LONE]) / more, "one more in a call");
	add_cost(p, "cost_signalled_wr", (ns[SIGNALLED] - ns[LONE]) / more,
		 "one more in a call, polled");
}

/* The kinds take turns, so that whatever else the machine does meets all of them. */
static int probe_costs(struct session *s)
{
	static _Thread_local double sample[KINDS][ROUNDS];
	uint64_t start = rxfer_now();
	struct rxfer_conn_info info;
	uint32_t burst;
	unsigned int n;

	rxfer_conn_info(s->conn[FOR_COSTS], &info);
	burst = info.sq_depth < BURST ? info.sq_depth : BURST;
	for (n = 0; n < ROUNDS && (n == 0 || rxfer_now() - start < ROUNDS_NS); n++) {
		for (unsigned int i = 0; i < KINDS; i++) {
			struct rxfer_round round = round_of(i, burst, s->watch.yield);
			struct rxfer_wait wait = watch_wait(&s->watch);
			uint64_t ns;
			int rc;

			rc = rxfer_probe_round(s->conn[FOR_COSTS], s->local.mem, &s->remote, &round,
					       &wait, &ns);
			if (!rc)
				rc = keep_up(s);
			if (rc)
				return rc;
			sample[i][n] = (double)ns;
		}
	}
	add_costs(s->p, sample, n, burst);
	return 0;
}

static int probe_over_connections(struct session *s)
{
	int rc = connect_all(s);

	if (!rc)
		rc = probe_costs(s);
	if (!rc)
		rc = probe_silent(s);
	return rc ? rc : end_run(s);
}

/* ---- All of it ---- */

static const struct step {
	const char *name;
	int (*run)(struct probe *p);
} steps[] = {
	{"sq_depth", probe_depths},
	{"inline_limit", probe_inline},
	{"registration", probe_registration},
	{"rkey_delta", probe_keys},
};

static void progress(const char *what)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s%s", what[0] ? "probing " : "", what);
}

/* A step that failed is a finding, and the next one is taken all the same. */
static int failed(struct probe *p, const char *name, int rc)
{
	struct probe_row row = {.value = NAN};

	if (!rc || rc == -EINTR)
		return rc;
	complain("%s: %s", name, rxfer_error());
	snprintf(row.quantity, sizeof(row.quantity), "%s", name);
	probe_add(&p->rows, &row, "failed: %s", rxfer_error());
	return -EIO;
}

/* Returns 0, or -EINTR, or -EIO where a step failed. */
static int probe_all(struct session *s)
{
	struct probe *p = s->p;
	int rc, worst;

	progress("posting");
	rc = probe_over_connections(s);
	progress("");
	worst = failed(p, "connection", rc);
	close_session(s, rc);
	for (unsigned int i = 0; worst != -EINTR && i < sizeof(steps) / sizeof(steps[0]); i++) {
		progress(steps[i].name);
		p->rows.section++;
		rc = steps[i].run(p);
		progress("");
		rc = failed(p, steps[i].name, rc);
		worst = rc ? rc : worst;
	}
	return worst;
}

/* ---- Reports ---- */

struct outputs {
	struct report *report[REPORTS_MAX];
	unsigned int n;
};

static int open_one(struct outputs *out, const struct opts *o, const char *format, const char *path)
{
	char canonical[4096], error[512];

	if (out->n == REPORTS_MAX) {
		complain("more than %u outputs", REPORTS_MAX - 1);
		return -EINVAL;
	}
	opts_print(o, canonical, sizeof(canonical));
	if (report_open(probe_format(format), path, canonical, &out->report[out->n], error,
			sizeof(error))) {
		complain("%s", error);
		return -EIO;
	}
	out->n++;
	return 0;
}

static int open_all(struct outputs *out, const struct probe *p)
{
	const char *path;
	int rc = 0;

	for (unsigned int i = 0; !rc && (path = opts_output(p->opts, i)); i++)
		rc = open_one(out, p->opts, output_format(path), path);
	return rc ? rc : open_one(out, p->opts, p->cfg.format, NULL);
}

/* Write the findings, if there are any, and close. */
static int close_all(struct outputs *out, const struct probe *p, const struct result *env,
		     bool partial)
{
	char error[512];
	int rc = 0;

	for (unsigned int i = 0; i < out->n; i++) {
		int err = p->rows.n ? probe_write(out->report[i], &p->rows, env, partial) : 0;

		if (err)
			complain("out of memory for the report");
		if (report_close(out->report[i], p->rows.n && !err, error, sizeof(error))) {
			complain("%s", error);
			err = -EIO;
		}
		rc = rc ? rc : err;
	}
	return rc;
}

/* ---- The command ---- */

static int open_device_and_session(struct session *s)
{
	int rc = rxfer_dev_open(s->p->cfg.device, "global", &s->p->dev);

	if (!rc)
		rc = open_session(s);
	if (rc && rc != -EINTR)
		complain("%s", rxfer_error());
	return rc;
}

static int probe_execute(const struct opts *o, const struct server_ops *server, void *arg,
			 const struct runtime *runtime)
{
	static _Thread_local struct result env; /* with its histogram too large for a stack */
	struct probe p = {.opts = o, .runtime = runtime};
	struct session s = {.p = &p, .server = server, .arg = arg};
	struct outputs out = {.n = 0};
	int rc;

	opts_first(o, &p.cfg);
	p.cfg.mode = MODE_DIRECT; /* who only answers is all that is needed of the other end */
	rc = open_device_and_session(&s);
	if (rc)
		goto done;
	result_init(&env);
	env_fill(&env, rxfer_dev_info(p.dev));
	snprintf(env.peer_host, sizeof(env.peer_host), "%s", s.peer.host);
	rc = open_all(&out, &p);
	if (rc)
		close_session(&s, 0);
	else
		rc = probe_all(&s);
	if (p.rows.err)
		rc = p.rows.err;
	if (close_all(&out, &p, &env, rc != 0) && !rc)
		rc = -EIO;
done:
	rxfer_dev_close(p.dev);
	free(p.rows.row);
	if (*runtime->stop)
		return EXIT_INTERRUPTED;
	return rc ? EXIT_RUN_FAILED : 0;
}

int command_probe(const struct opts *o, const struct runtime *runtime)
{
	struct cfg cfg;

	opts_first(o, &cfg);
	if (!probe_format(cfg.format)) {
		complain("--format %s is for runs; probe writes table, csv or json", cfg.format);
		return EXIT_USAGE;
	}
	if (o->host[0] && strcmp(o->host, "loopback"))
		return with_tcp_server(o, runtime, probe_execute);
	return with_own_server(o, runtime, probe_execute);
}
