/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Run after run: plan -> session -> result -> reports. A failed run is a row like any other, and
 * the next one gets a session of its own; only a peer that cannot be reached any more ends the
 * sweep.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "command.h"
#include "report.h"

#define REPORTS_MAX 16
#define PROGRESS_NS 1000000000ull

struct sweep {
	const struct opts *opts;
	struct runtime runtime; /* the process's, with our tick */
	const struct server_ops *server;
	void *arg;
	struct control control;
	struct peer peer;
	bool connected;
	struct plan plan;
	struct report *report[REPORTS_MAX];
	unsigned int reports;
	unsigned int now; /* the run under way */
	uint64_t began;
	uint64_t shown; /* when a progress line was last written */
	bool terminal;	/* stderr is one */
	bool showing;
	unsigned int ok, failed, rows;
	unsigned int left_out; /* rows that have no place in a format */
	bool warned;
};

/* ---- Progress ---- */

static void progress(void *arg)
{
	struct sweep *s = arg;
	const struct cfg *cfg = &s->plan.run[s->now];
	char text[1024];

	if (!s->terminal || rxfer_now() - s->shown < PROGRESS_NS)
		return;
	s->shown = rxfer_now();
	cfg_print(cfg, OPT_RUN, text, sizeof(text));
	fprintf(stderr, "\r\033[K[%u of %u, %.0f s] %.60s", s->now + 1, s->plan.n,
		(double)(rxfer_now() - s->began) / 1e9, text);
	s->showing = true;
}

static void progress_off(struct sweep *s)
{
	if (s->showing)
		fputs("\r\033[K", stderr);
	s->showing = false;
}

/* ---- Reports ---- */

static int open_report(struct sweep *s, const char *format, const char *path)
{
	char canonical[4096], error[512];

	if (s->reports == REPORTS_MAX) {
		complain("more than %u outputs", REPORTS_MAX - 1);
		return -EINVAL;
	}
	opts_print(s->opts, canonical, sizeof(canonical));
	if (report_open(report_find(format), path, canonical, &s->report[s->reports], error,
			sizeof(error))) {
		complain("%s", error);
		return -EIO;
	}
	s->reports++;
	return 0;
}

static int open_reports(struct sweep *s)
{
	const char *path;
	int rc = 0;

	for (unsigned int i = 0; !rc && (path = opts_output(s->opts, i)); i++)
		rc = open_report(s, output_format(path), path);
	return rc ? rc : open_report(s, s->plan.run[0].format, NULL);
}

static int write_row(struct sweep *s, const struct result *r)
{
	char error[512];
	int rc = 0;

	s->rows++;
	for (unsigned int i = 0; i < s->reports; i++) {
		int err = report_row(s->report[i], r, error, sizeof(error));

		if (err == -ENODATA) {
			complain("run %u of %u is not in the table: %s", s->now + 1, s->plan.n,
				 error);
			s->left_out++;
		} else if (err) {
			complain("%s", error);
			rc = -EIO;
		}
	}
	return rc;
}

/* What other formats say beside the figures. */
static void warn(struct sweep *s, const struct result *r)
{
	if (!report_find(s->plan.run[0].format)->bare || r->status != RESULT_OK)
		return;
	if (!strcmp(r->partial, "yes"))
		complain("run %u of %u is partial: interrupted before its end", s->now + 1,
			 s->plan.n);
	if (r->emulated[0] && !s->warned)
		complain("%s: these figures compare software paths; they are no hardware figures",
			 r->emulated);
	s->warned |= r->emulated[0] != '\0';
}

static int close_reports(struct sweep *s)
{
	char error[512];
	int rc = 0;

	for (unsigned int i = 0; i < s->reports; i++) {
		if (report_close(s->report[i], s->rows > 0, error, sizeof(error))) {
			complain("%s", error);
			rc = -EIO;
		}
	}
	return rc;
}

/* ---- Runs ---- */

static void disconnect(struct sweep *s)
{
	if (s->connected)
		s->server->close(s->arg, &s->control);
	s->connected = false;
}

/* A session, if there is none. */
static int get_session(struct sweep *s)
{
	struct rxfer_wait wait = {rxfer_now() + s->plan.run[s->now].timeout_ns, -1,
				  s->runtime.stop};
	int rc;

	if (s->connected)
		return 0;
	rc = s->server->open(s->arg, &s->control, &wait);
	if (rc)
		return rc;
	s->connected = true;
	s->control.trace = trace_of(&s->runtime, "client");
	rc = session_hello(&s->control, true, &s->peer, &wait);
	if (rc)
		disconnect(s);
	return rc;
}

static int reconnect(struct sweep *s)
{
	int rc = get_session(s);

	if (rc && rc != -EINTR)
		complain("%s", rxfer_error());
	return rc;
}

/* One run: its row is written whatever becomes of it. */
static int one_run(struct sweep *s)
{
	static _Thread_local struct result result; /* with its histogram too large for a stack */
	int rc;

	result_init(&result);
	s->began = s->shown = rxfer_now();
	rc = session_run(&s->control, &s->peer, &s->plan.run[s->now], &s->runtime, &result);
	progress_off(s);
	if (rc == -EINTR && result.status == RESULT_FAILED)
		return rc; /* before it began: there is nothing to report */
	if (result.status == RESULT_FAILED)
		complain("run %u of %u: %s", s->now + 1, s->plan.n, result.reason);
	if (rc)
		disconnect(s);
	s->ok += result.status == RESULT_OK;
	s->failed += result.status == RESULT_FAILED;
	rc = write_row(s, &result);
	if (!rc)
		warn(s, &result);
	return rc;
}

static int all_runs(struct sweep *s)
{
	for (s->now = 0; s->now < s->plan.n && !*s->runtime.stop; s->now++) {
		int rc = reconnect(s);

		if (!rc)
			rc = one_run(s);
		if (rc)
			return rc;
	}
	return 0;
}

/* Say good-bye, so that the server does not think us lost. */
static void farewell(struct sweep *s)
{
	struct rxfer_wait wait = {rxfer_now() + 1000000000ull, -1, NULL};

	if (s->connected)
		control_send(&s->control, MSG_BYE, NULL, &wait);
	disconnect(s);
}

int check_device(const char *name, struct rxfer_dev_info *info)
{
	struct rxfer_dev *dev;

	if (rxfer_dev_open(name, "global", &dev)) {
		complain("%s", rxfer_error());
		return -ENODEV;
	}
	*info = *rxfer_dev_info(dev);
	rxfer_dev_close(dev);
	return 0;
}

static int make_plan(struct sweep *s)
{
	char error[512];

	if (!plan_make(s->opts, &s->plan, error, sizeof(error)))
		return 0;
	complain("%s", error);
	return -EINVAL;
}

int runs_execute(const struct opts *o, const struct server_ops *server, void *arg,
		 const struct runtime *runtime)
{
	struct rxfer_dev_info info;
	struct sweep s = {.opts = o, .server = server, .arg = arg, .runtime = *runtime};
	int rc, status = EXIT_RUN_FAILED;

	s.runtime.tick = progress;
	s.runtime.arg = &s;
	s.terminal = isatty(STDERR_FILENO);
	if (make_plan(&s))
		return EXIT_USAGE;
	if (check_device(s.plan.run[0].device, &info) || reconnect(&s))
		goto out;
	rc = open_reports(&s);
	if (!rc)
		rc = all_runs(&s);
	farewell(&s);
	if (close_reports(&s))
		rc = rc ? rc : -EIO;
	if (!rc && s.ok && !s.failed && !s.left_out)
		status = 0;
out:
	if (*runtime->stop)
		status = EXIT_INTERRUPTED;
	disconnect(&s);
	plan_free(&s.plan);
	return status;
}
