/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RPC mode's two ends on the test double, in one thread and without a control connection: devices,
 * connections, the client's load and the server's, as a session makes them. */
#ifndef RXFER_TESTS_RPC_LOAD_FIXTURE_H
#define RXFER_TESTS_RPC_LOAD_FIXTURE_H

#include "fakehca/engine.h"
#include "load_internal.h"
#include "load_rpc.h"
#include "session.h"

#define RPC_LOAD_QPS 3

/*
 * struct rpc_load - @cfg is the caller's. @watch: of the client's load, which looks at no more of
 * it than its counts and its clock.
 */
struct rpc_load {
	const struct cfg *cfg;
	struct engine e;
	struct layout layout;
	struct runtime runtime;
	struct watch watch;
	struct rxfer_conn *client[RPC_LOAD_QPS], *server[RPC_LOAD_QPS];
	struct load *load;
	struct rpc_server *rpc;
};

/* The QP @qp. 0, or what rxfer_connect() or rxfer_accept() returned. */
static inline int rpc_load_connect(struct rpc_load *l, uint32_t qp)
{
	static const uint8_t token[RXFER_TOKEN_BYTES] = "who I am";
	const struct roles asks = {.issues = true}, answers = {.receives = true};
	int rc = conn_attr(l->cfg, &l->layout, asks, token, qp, &l->e.client_attr);

	if (!rc)
		rc = conn_attr(l->cfg, &l->layout, answers, token, qp, &l->e.server_attr);
	if (rc)
		return rc;
	l->e.accepted = 1;
	rc = engine_connect(&l->e);
	l->client[qp] = l->e.client;
	l->server[qp] = l->e.server;
	l->e.client = l->e.server = NULL;
	return rc ? rc : l->e.accepted;
}

/* All but the loads. 0, or what the first failure was. */
static inline int rpc_load_open(struct rpc_load *l, const struct cfg *cfg,
				const struct fake_config *config)
{
	const struct rxfer_cache_limits limits = {(uint32_t)cfg->rcache_max, cfg->rcache_max_bytes,
						  cfg->rcache_merge};
	int rc;

	*l = (struct rpc_load){.cfg = cfg};
	fake_start(config);
	l->watch.runtime = &l->runtime;
	layout_make(cfg, &l->layout);
	rc = rxfer_dev_open("", cfg->strategy, &l->e.cdev);
	if (!rc)
		rc = rxfer_dev_open("", rpc_peer_strategy(cfg, rxfer_dev_info(l->e.cdev)),
				    &l->e.sdev);
	if (!rc) {
		rxfer_dev_cache(l->e.cdev, &limits);
		rxfer_dev_cache(l->e.sdev, &limits);
	}
	if (!rc)
		rc = rxfer_listen(l->e.sdev, &l->e.listener);
	for (uint32_t qp = 0; !rc && qp < cfg->qps; qp++)
		rc = rpc_load_connect(l, qp);
	fake_live()->clock_read_ns = 1; /* nobody waits by looking any more */
	return rc;
}

/* Both loads: RECVs are posted. */
static inline int rpc_load_make(struct rpc_load *l)
{
	int rc = rpc_server_new(l->cfg, &l->layout, l->e.sdev, l->server, &l->runtime.clock,
				&l->rpc);

	return rc ? rc
		  : rpc_client_new(l->cfg, &l->layout, l->e.cdev, l->client, &l->watch, &l->load);
}

/* Counts of connections and loads begin anew at both ends, and the client issues. */
static inline void rpc_load_begin(struct rpc_load *l, uint64_t ios, uint64_t duration,
				  struct load_result *out)
{
	for (uint64_t qp = 0; qp < l->cfg->qps; qp++) {
		rxfer_conn_restart(l->client[qp]);
		rxfer_conn_restart(l->server[qp]);
	}
	rpc_server_restart(l->rpc);
	load_begin(l->load, ios, duration, out);
}

/* A pass of the client, and what goes on beside it. How much was done, or -errno. */
static inline int rpc_load_client_pass(struct rpc_load *l)
{
	int did = load_pass(l->load), rc;

	if (did < 0)
		return did;
	l->watch.passes++;
	l->watch.idle += did == 0;
	l->watch.now = rxfer_now();
	rc = load_rest(l->load, did);
	return rc ? rc : did;
}

/* Connections first, as a session does it. What is left behind then is for fake_leaks() to say. */
static inline void rpc_load_close(struct rpc_load *l)
{
	for (uint64_t qp = 0; qp < l->cfg->qps; qp++) {
		rxfer_conn_close(l->client[qp]);
		rxfer_conn_close(l->server[qp]);
	}
	load_free(l->load);
	rpc_server_free(l->rpc);
	rxfer_listener_close(l->e.listener);
	rxfer_dev_close(l->e.cdev);
	rxfer_dev_close(l->e.sdev);
}

#endif
