/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A session: one control connection, over which run after run is configured, connected, driven and
 * reported. The client owns the configuration. The essay is on top of session.c.
 */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include "control.h"
#include "load.h"
#include "result.h"

/* struct peer - what the other side said of itself. */
struct peer {
	char version[64];
	char host[RESULT_TEXT];
	bool same_machine;
};

/** session_hello() - introduce ourselves and learn who is there. 0 or -errno. */
int session_hello(struct control *c, bool first, struct peer *peer, const struct rxfer_wait *wait);

/**
 * session_run() - the client's side of one run.
 * @result: filled as far as the run came; its status is skipped where the device cannot do the
 * strategy Returns 0 (ok or skipped), or -errno with rxfer_error(): the run failed, and the session
 * is over.
 */
int session_run(struct control *c, const struct peer *peer, const struct cfg *cfg,
		const struct runtime *runtime, struct result *result);

/**
 * session_serve() - the server's side, from hello to farewell.
 * @device, @timeout_ns: of the server's command line; a run's own timeout comes from the client
 * Returns how many runs were served, or -errno where the session ended badly.
 */
int session_serve(struct control *c, const char *device, uint64_t timeout_ns,
		  const struct runtime *runtime);

/* Messages from and to the settings of a run. */
json_t *config_to_json(const struct cfg *cfg, const uint8_t token[RXFER_TOKEN_BYTES]);
int config_from_json(const json_t *body, struct cfg *cfg, uint8_t token[RXFER_TOKEN_BYTES]);

/* struct ready - where the client finds the server's listener and memory. */
struct ready {
	struct sockaddr_storage addr;
	struct target target;
};
json_t *ready_to_json(const struct ready *r);
int ready_from_json(const json_t *body, struct ready *r);

json_t *messages_to_json(const struct direct *d, uint64_t qps);
int messages_from_json(const json_t *body, uint64_t *messages, uint64_t qps);

json_t *counts_to_json(const struct counts *c);
int counts_from_json(const json_t *body, struct counts *c);

/** conn_attr() - the attributes that both sides of a QP share. 0 or -errno. */
int conn_attr(const struct cfg *cfg, const uint8_t token[RXFER_TOKEN_BYTES], uint64_t qp,
	      struct rxfer_conn_attr *attr);

#endif
