/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the server's side of a session share. */
#ifndef BENCH_SESSION_SERVER_H
#define BENCH_SESSION_SERVER_H

#include "load_rpc.h"
#include "session.h"

/* struct served - one run, as the server has it. */
struct served {
	struct control *control;
	const struct runtime *runtime;
	const struct host *host;
	const struct peer *peer;
	struct cfg cfg;
	bool configured; /* @cfg is what the client wants */
	bool unable;	 /* our device cannot do that */
	struct share share;
	struct layout layout;
	uint8_t token[RXFER_TOKEN_BYTES];
	struct rxfer_dev *dev;
	struct rxfer_listener *listener;
	struct roles roles;
	struct exposed exposed; /* what the client READs, WRITEs or SENDs to */
	struct target theirs;	/* --bidir: the client's */
	struct rxfer_conn **conns;
	uint64_t nconns;
	struct sink *sink;
	struct load *load;	     /* --bidir, else NULL */
	struct rpc_server *rpc;	     /* --mode rpc, else NULL */
	struct rxfer_faults faults;  /* at the client's latest START */
	struct load_result measured; /* --bidir: by us */
	struct moved moved;	     /* by the client, as it says */
	bool cut_short;		     /* it was interrupted */
	bool begun;		     /* its first phase has been */
	bool between; /* --bidir: STARTED is said, what comes next is a message, and only then I/Os
		       */
	struct watch watch;
	uint64_t *messages;	     /* that the client says it has sent, per QP */
	uint64_t cpu_start, cpu_end; /* of this thread: at START, and after its latest work */
	unsigned int quiet;	     /* passes since that work */
	int cpu;		     /* of this thread, at START */
};

/** host_say() - a line to whoever listens. */
void host_say(const struct host *host, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** served_say() - what became of run @number. @reason: why it failed, with @rc */
void served_say(const struct served *s, unsigned int number, int rc, const char *reason);

#endif
