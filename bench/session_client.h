/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the client's side of a session share. */
#ifndef BENCH_SESSION_CLIENT_H
#define BENCH_SESSION_CLIENT_H

#include "session.h"

/* struct run - one run, as the client has it. */
struct run {
	struct control *control;
	const struct peer *peer;
	const struct cfg *cfg;
	struct cfg settled; /* the same, with what was left open until the device was known */
	const struct runtime *runtime;
	struct layout layout;
	struct rxfer_dev *dev;
	struct ready server;
	struct rxfer_conn **conns;
	uint64_t nconns;
	struct roles roles;
	struct exposed exposed;
	struct sink *sink;
	struct load *load;
	enum rxfer_revoke revoke; /* rpc: how keys are taken back, where there are any */
	struct watch watch;
	uint64_t *messages;		 /* that the server says it has sent, per QP (--bidir) */
	bool told_to_stop;		 /* the server, that its load is to be cut short */
	struct rxfer_faults faults;	 /* before the timed part */
	struct load_result mine, theirs; /* the server's: its counts; with --bidir also its load */
	struct found found, theirs_found;
};

/** result_settings() - what is known before a run: what it is to be. */
void result_settings(struct result *r, const struct cfg *cfg);

/** result_fill() - what is known after it. */
void result_fill(struct run *run, struct result *r);

#endif
