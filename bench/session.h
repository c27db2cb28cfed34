/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A session: one control connection, over which run after run is configured, connected, driven and
 * reported. The client owns the configuration. The essay is on top of session.c.
 */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include "budget.h"
#include "control.h"
#include "found.h"
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
 * @result: filled as far as the run came; its status is skipped where a device cannot do the
 * strategy or the operation
 * Returns 0 (ok or skipped), or -errno with rxfer_error(), and the session is over: the run failed,
 * or was skipped (-EREMOTE) as it is the server's device that cannot.
 */
int session_run(struct control *c, const struct peer *peer, const struct cfg *cfg,
		const struct runtime *runtime, struct result *result);

/**
 * struct host - what the server's side of a session lives on.
 * @device, @timeout_ns: of the server's command line; a run's own timeout comes from the client
 * @budget: that its runs take their memory from; NULL: there is none but the machine's
 * @say:    gets a line for each thing that happens: the session begins, a run is over, the session
 *          ends; NULL: nobody wants to know
 */
struct host {
	const char *device;
	uint64_t timeout_ns;
	const struct runtime *runtime;
	struct budget *budget;
	void (*say)(void *arg, const char *what);
	void *arg;
};

/**
 * session_serve() - the server's side, from hello to farewell. A peer that it gives up on is told
 * why. Returns how many runs were served, or -errno where the session ended badly.
 */
int session_serve(struct control *c, const struct host *host);

/* Messages from and to the settings of a run. */
json_t *config_to_json(const struct cfg *cfg, const uint8_t token[RXFER_TOKEN_BYTES]);
int config_from_json(const json_t *body, struct cfg *cfg, uint8_t token[RXFER_TOKEN_BYTES]);

/* struct ready - where the client finds the server's listener and memory. */
struct ready {
	struct sockaddr_storage addr;
	struct target target;
};
/** addr_text() - the IP address, without the port; at least INET6_ADDRSTRLEN bytes. */
void addr_text(const struct sockaddr_storage *addr, char *buf, unsigned int size);
json_t *ready_to_json(const struct ready *r);
int ready_from_json(const json_t *body, struct ready *r);

/** target_to_json() - add memory for the peer to a message; target_from_json() - take it out of
 * one. */
void target_to_json(const struct target *t, json_t *body);
int target_from_json(const json_t *body, struct target *t);

/** target_check() - is @t, of @whose ("the server"), large enough for the run? 0 or -EBADMSG. */
int target_check(const struct target *t, const char *whose, const struct cfg *cfg,
		 const struct layout *layout);

json_t *messages_to_json(const struct load *d, uint64_t qps);
int messages_from_json(const json_t *body, uint64_t *messages, uint64_t qps);

json_t *counts_to_json(const struct counts *c);
int counts_from_json(const json_t *body, struct counts *c);

/* Where the server found itself to be, in the message that has its counts. */
void found_to_json(json_t *body, const struct found *f);
int found_from_json(const json_t *body, struct found *f);

/* struct moved - what an end moved, and in which time: the client's in STOP, for the server's log.
 */
struct moved {
	uint64_t ios, bytes, ns;
};
void moved_to_json(const struct load_result *l, json_t *body);
int moved_from_json(const json_t *body, struct moved *m);

/* With --bidir: what the server measured of its own load, beside its counts. */
json_t *load_to_json(const struct load_result *l, json_t *body);
int load_from_json(const json_t *body, struct load_result *l);

/** conn_attr() - the attributes of a QP, at an end in these @roles. 0 or -errno; -ENOMEM where
 * there is not the memory that the strategy takes for it. */
int conn_attr(const struct cfg *cfg, const struct layout *layout, struct roles roles,
	      const uint8_t token[RXFER_TOKEN_BYTES], uint64_t qp, struct rxfer_conn_attr *attr);

/* struct exposed - an end's memory for what the peer sends: empty where that needs none. */
struct exposed {
	struct area target; /* of READs and WRITEs */
	struct area recv;   /* RECV buffers */
};

/** exposed_need() - add the memory that it will take. */
void exposed_need(const struct cfg *cfg, const struct layout *layout, struct roles roles,
		  struct need *n);

/** exposed_make() - 0 or -errno; exposed_drop() also after failure. */
int exposed_make(const struct cfg *cfg, const struct layout *layout, struct roles roles,
		 struct rxfer_dev *dev, struct exposed *out);
void exposed_drop(struct exposed *e);

/** exposed_target() - as the peer needs to know it; all 0 where there is none. */
struct target exposed_target(const struct exposed *e);

/**
 * run_device() - open the device of an end in these @roles. -EOPNOTSUPP: it cannot do the strategy
 * or the operation, and rxfer_error() is the reason; @out may be open then.
 */
int run_device(const struct cfg *cfg, const char *name, struct roles roles, struct rxfer_dev **out);

/** server_polls() - does the server's end have completions to look for? */
static inline bool server_polls(const struct cfg *cfg)
{
	return cfg->mode == MODE_RPC || cfg->bidir || op_takes_recvs(cfg);
}

/** message_possible() - does @dev have messages of --size bytes? 0; or -EMSGSIZE with the numbers.
 */
int message_possible(const struct cfg *cfg, const struct rxfer_dev *dev);

/** conn_possible() - can @dev, at either end, have connections as the options ask for? 0 or -errno.
 */
int conn_possible(const struct cfg *cfg, const struct rxfer_dev *dev);

#endif
