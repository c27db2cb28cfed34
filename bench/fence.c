/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rxfer-bench fence: what can the peer do with an I/O's key, and when? Answered by attempts of the
 * server over the wire, not by what a strategy is said to be.
 *
 * Each cell is one attempt at one stage of an I/O:
 *
 *	the request is sent and has come         during     client and server then stand
 *	the reply has come                       replied    still until the server has
 *	the I/O is complete, by the mode's rule  complete   tried, and said what came of it
 *	the key is proven dead, if that is later revoked
 *
 * The client drives; the server replies and tries when it is told to, so there is no race to be
 * won or lost: at each stage either what opens, or closes, is proven done, or it has not been
 * begun. An access that is refused ends the connection of both ends, so each cell has connections
 * of its own, and the session lives on. What must come of it is in one table (fence_table.c).
 *
 * A cell that the client's own device spoils (a bind that fails, say) is a row that failed. Where
 * the session is lost, the next cell gets another; LOST_MAX of those, and it is over.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "env.h"
#include "fence.h"

#define LOST_MAX 3

/* struct fence - the whole command. @env: conditions; @lost: sessions that were. */
struct fence {
	const struct opts *opts;
	struct cfg cfg;
	const struct runtime *runtime;
	const struct server_ops *server;
	void *arg;
	struct control control;
	bool connected;
	unsigned int lost;
	struct fence_client client;
	struct fence_rows rows;
	struct result env;
};

/* ---- The session ---- */

static struct rxfer_wait wait_now(const struct fence *f)
{
	return (struct rxfer_wait){rxfer_now() + f->cfg.timeout_ns, -1, f->runtime->stop};
}

/* The @i-th size, 0 behind the last. */
static uint64_t size_at(const struct fence *f, unsigned int i)
{
	const char *given = opts_text(f->opts, "size", i);
	struct cfg cfg;
	char why[256];

	if (!given)
		return i ? 0 : f->cfg.size;
	cfg_set(&cfg, "size", given, why, sizeof(why));
	return cfg.size;
}

/* Attempts begin: the server needs to know of the largest size and of the time-out. */
static int configure(struct fence *f)
{
	struct rxfer_wait wait = wait_now(f);
	struct ready ready;
	struct cfg cfg;
	json_t *body;
	int rc;

	cfg_init(&cfg);
	for (unsigned int i = 0; size_at(f, i); i++)
		cfg.size = i && cfg.size > size_at(f, i) ? cfg.size : size_at(f, i);
	cfg.timeout_ns = f->cfg.timeout_ns;
	if (getrandom(f->client.token, sizeof(f->client.token), 0) != sizeof(f->client.token))
		return rxfer_fail(EIO, "getrandom: %m");
	rc = control_send(&f->control, MSG_FENCE, config_to_json(&cfg, f->client.token), &wait);
	if (!rc)
		rc = control_expect(&f->control, MSG_READY, &body, &wait);
	if (rc)
		return rc;
	rc = ready_from_json(body, &ready);
	json_decref(body);
	f->client.addr = ready.addr;
	return rc;
}

/* @rc: why it ends. */
static void close_session(struct fence *f, int rc)
{
	struct rxfer_wait soon = {rxfer_now() + 1000000000u, -1, NULL};

	if (!f->connected)
		return;
	f->connected = false;
	if (rc)
		control_give_up(&f->control, rc);
	else if (!control_send(&f->control, MSG_STOP, NULL, &soon))
		control_send(&f->control, MSG_BYE, NULL, &soon);
	f->server->close(f->arg, &f->control);
}

static int open_session(struct fence *f)
{
	struct rxfer_wait wait = wait_now(f);
	struct peer peer;
	int rc = f->server->open(f->arg, &f->control, &wait);

	if (rc)
		return rc;
	f->connected = true;
	f->client.dead = false;
	f->control.trace = trace_of(f->runtime, "client");
	rc = session_hello(&f->control, true, &peer, &wait);
	if (!rc)
		rc = configure(f);
	if (rc)
		close_session(f, rc);
	else
		snprintf(f->env.peer_host, sizeof(f->env.peer_host), "%s", peer.host);
	return rc;
}

/* ---- Rows ---- */

static struct fence_row *add_row(struct fence *f, const struct fence_cell *cell)
{
	struct fence_row *grown = realloc(f->rows.row, (f->rows.n + 1) * sizeof(*grown));

	if (!grown) {
		rxfer_fail(ENOMEM, "out of memory for %s", rxfer_count(f->rows.n, "row").s);
		return NULL;
	}
	f->rows.row = grown;
	grown += f->rows.n++;
	*grown = (struct fence_row){.cell = *cell};
	return grown;
}

static int skip(struct fence *f, const char *strategy, enum rxfer_revoke revoke, const char *why)
{
	const struct fence_cell cell = {.strategy = strategy, .revoke = revoke};
	struct fence_row *row = add_row(f, &cell);

	if (!row)
		return -ENOMEM;
	row->skipped = true;
	snprintf(row->note, sizeof(row->note), "%s", why);
	return 0;
}

static void progress(const struct fence *f, const struct fence_cell *c)
{
	if (!isatty(STDERR_FILENO))
		return;
	fputs("\r\033[K", stderr);
	if (c)
		fprintf(stderr, "cell %u: %s, %s, %s, %s", f->rows.n + 1, c->strategy,
			rxfer_revoke_name(c->revoke), fence_attempt_name(c->attempt),
			fence_stage_name(c->stage));
}

/* What a cell that did not come to an attempt leads to: a row, and perhaps another session. */
static int spoilt(struct fence *f, struct fence_row *row, int rc)
{
	row->observed = FENCE_FAILED;
	snprintf(row->note, sizeof(row->note), "%s", rxfer_error());
	if (!f->client.dead)
		return 0;
	close_session(f, rc);
	if (++f->lost >= LOST_MAX)
		return rxfer_fail(rc, "%s were lost, the last one: %s",
				  rxfer_count(f->lost, "session").s, row->note);
	return open_session(f);
}

static int one_cell(struct fence *f, const struct fence_cell *cell)
{
	struct fence_row *row;
	int rc;

	progress(f, cell);
	row = add_row(f, cell);
	if (!row)
		return -ENOMEM;
	fence_expected(cell, &row->expected);
	rc = fence_cell(&f->client, cell, row);
	if (!rc && !*f->runtime->stop)
		return 0;
	if (rc == -EINTR || *f->runtime->stop) {
		f->rows.n--; /* it was not to its end */
		return rxfer_fail(EINTR, "interrupted");
	}
	return spoilt(f, row, rc);
}

/* ---- What there is to try ---- */

static enum fence_kind kind_of(const char *strategy, uint64_t bytes)
{
	if (rxfer_strategy_copies(strategy))
		return FENCE_BUFFER;
	if (rxfer_strategy_caches(strategy))
		return bytes % FENCE_PAGE ? FENCE_TAIL : FENCE_PAGES;
	if (!rxfer_strategy_revokes(strategy, RXFER_REVOKE_NONE))
		return FENCE_WHOLE;
	if (!rxfer_strategy_by_wr(strategy))
		return FENCE_REGION;
	return rxfer_strategy_on_qp(strategy) ? FENCE_WINDOW : FENCE_LIST;
}

/* All attempts at all stages that there are. */
static int all_cells(struct fence *f, struct fence_cell cell)
{
	enum fence_outcome ignored;
	int rc = 0;

	for (unsigned int i = 0; !rc && i < FENCE_ATTEMPTS * FENCE_STAGES; i++) {
		cell.attempt = i / FENCE_STAGES;
		cell.stage = i % FENCE_STAGES;
		if (!fence_expected(&cell, &ignored) ||
		    (cell.attempt == FENCE_PARENT && !f->client.below))
			continue;
		rc = one_cell(f, &cell);
	}
	return rc;
}

static int all_sizes(struct fence *f, struct fence_cell cell)
{
	int rc = 0;

	for (unsigned int i = 0; !rc && (cell.bytes = size_at(f, i)); i++) {
		cell.kind = kind_of(cell.strategy, cell.bytes);
		rc = fence_memory(&f->client, cell.write, cell.bytes);
		if (!rc)
			rc = all_cells(f, cell);
		fence_memory_drop(&f->client);
	}
	return rc;
}

/* The I/O lets the peer read, then another one lets it write. */
static int both_rights(struct fence *f, const char *strategy, enum rxfer_revoke revoke)
{
	struct fence_cell cell = {.strategy = strategy};
	int rc = 0;

	for (unsigned int write = 0; !rc && write < 2; write++) {
		cell.write = write;
		rc = rxfer_revoke_resolve(strategy, revoke,
					  write ? RXFER_EXPOSE_WRITE : RXFER_EXPOSE_READ,
					  &cell.revoke);
		if (rc == -EOPNOTSUPP)
			return skip(f, strategy, revoke, rxfer_error());
		if (!rc)
			rc = all_sizes(f, cell);
	}
	return rc;
}

/* The @i-th revoke mode: of those given, else of those that the strategy has. */
static bool mode_at(const struct fence *f, const char *strategy, unsigned int i,
		    enum rxfer_revoke *out)
{
	const char *given = opts_text(f->opts, "revoke", i);
	unsigned int mode = 0;

	if (given) {
		while (strcmp(rxfer_revoke_name(mode), given))
			mode++;
		*out = (enum rxfer_revoke)mode;
		return true;
	}
	if (opts_text(f->opts, "revoke", 0))
		return false;
	for (; mode < RXFER_REVOKE_AUTO; mode++)
		if (!rxfer_strategy_revokes(strategy, (enum rxfer_revoke)mode) && !i--)
			break;
	*out = (enum rxfer_revoke)mode;
	return mode < RXFER_REVOKE_AUTO;
}

/* @unable: why the device cannot do it; NULL: it can. */
static int all_modes(struct fence *f, const char *strategy, const char *unable)
{
	enum rxfer_revoke revoke;
	int rc = 0;

	for (unsigned int i = 0; !rc && mode_at(f, strategy, i, &revoke); i++)
		rc = unable ? skip(f, strategy, revoke, unable) : both_rights(f, strategy, revoke);
	return rc;
}

static int one_strategy(struct fence *f, const char *strategy)
{
	struct fence_client *c = &f->client;
	int rc = rxfer_dev_open(f->cfg.device, strategy, &c->dev);
	char why[512];

	snprintf(why, sizeof(why), "%s", rxfer_error());
	if (rc == -EOPNOTSUPP)
		return all_modes(f, strategy, why);
	if (rc)
		return rc;
	trace_device(&f->control.trace, true, c->dev);
	rc = all_modes(f, strategy, NULL);
	rxfer_dev_close(c->dev);
	c->dev = NULL;
	return rc;
}

static const char *strategy_at(const struct fence *f, unsigned int i)
{
	if (opts_text(f->opts, "strategy", 0))
		return opts_text(f->opts, "strategy", i);
	return rxfer_strategy_name(i);
}

static int all_strategies(struct fence *f)
{
	const char *strategy;
	int rc = open_session(f);

	for (unsigned int i = 0; !rc && (strategy = strategy_at(f, i)); i++)
		rc = one_strategy(f, strategy);
	progress(f, NULL);
	close_session(f, rc);
	return rc;
}

/* ---- The command ---- */

static int report_all(struct fence *f, struct report *r, bool partial)
{
	char error[512];
	int rc = f->rows.n ? fence_write(r, &f->rows, &f->env, partial) : 0;

	if (rc)
		complain("out of memory for the report");
	if (report_close(r, f->rows.n && !rc, error, sizeof(error))) {
		complain("%s", error);
		rc = -EIO;
	}
	return rc;
}

static int open_report(const struct fence *f, struct report **out)
{
	char canonical[4096], error[512];
	int rc;

	opts_print(f->opts, canonical, sizeof(canonical));
	rc = report_open(fence_format(f->cfg.format), NULL, canonical, out, error, sizeof(error));
	if (rc)
		complain("%s", error);
	return rc;
}

static int status_of(const struct fence *f, int rc)
{
	struct fence_tally t = fence_count(&f->rows);

	if (*f->runtime->stop)
		return EXIT_INTERRUPTED;
	return rc || t.differ || !t.cells ? EXIT_RUN_FAILED : 0;
}

static int run(struct fence *f)
{
	struct rxfer_dev_info info;
	struct report *report;
	int rc = check_device(f->cfg.device, &info);

	if (!rc)
		rc = open_report(f, &report);
	if (rc)
		return status_of(f, rc);
	result_init(&f->env);
	env_fill(&f->env, &info);
	rc = all_strategies(f);
	if (rc && rc != -EINTR)
		complain("%s", rxfer_error());
	if (report_all(f, report, rc != 0))
		rc = rc ? rc : -EIO;
	return status_of(f, rc);
}

static int fence_execute(const struct opts *o, const struct server_ops *server, void *arg,
			 const struct runtime *runtime)
{
	struct fence *f =
		calloc(1, sizeof(*f)); /* its result has a histogram: no stack is so large */
	int status;

	if (!f) {
		complain("out of memory");
		return EXIT_RUN_FAILED;
	}
	*f = (struct fence){.opts = o, .runtime = runtime, .server = server, .arg = arg};
	opts_first(o, &f->cfg);
	f->client.timeout_ns = f->cfg.timeout_ns;
	f->client.runtime = runtime;
	f->client.control = &f->control;
	status = run(f);
	free(f->rows.row);
	free(f);
	return status;
}

/* What no rule between options of a run is about. */
static int check(const struct opts *o, const struct cfg *cfg)
{
	const char *size;

	if (!fence_format(cfg->format)) {
		complain("--format %s is not for fence, which writes table or csv", cfg->format);
		return -EINVAL;
	}
	for (unsigned int i = 0; (size = opts_text(o, "size", i)); i++) {
		if (strcmp(size, "0"))
			continue;
		complain("--size 0: an I/O of no bytes lets nobody in; take 1 or more");
		return -EINVAL;
	}
	return 0;
}

int command_fence(const struct opts *o, const struct runtime *runtime)
{
	struct cfg cfg;

	opts_first(o, &cfg);
	if (check(o, &cfg))
		return EXIT_USAGE;
	if (o->host[0] && strcmp(o->host, "loopback"))
		return with_tcp_server(o, runtime, fence_execute);
	return with_own_server(o, runtime, fence_execute);
}
