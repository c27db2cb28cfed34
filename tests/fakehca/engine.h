/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine on the double, both ends in one thread: rxfer_connect() waits for the other end by
 * looking at the clock, and at the first look that finds its request there, rxfer_accept() runs.
 */
#ifndef FAKE_ENGINE_H
#define FAKE_ENGINE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "fakehca.h"
#include "../../src/internal.h"

#define ENGINE_WAIT_NS 500000000u

/*
 * struct engine - @accepted: what rxfer_accept() returned; 1: it never ran. @accept_error: its
 * words.
 */
struct engine {
	struct rxfer_dev *cdev, *sdev; /* the client's and the server's end */
	struct rxfer_listener *listener;
	struct rxfer_conn *client, *server;
	struct rxfer_conn_attr client_attr, server_attr;
	int accepted;
	char accept_error[320];
};

/** engine_config() - as fake_config_init(), with a clock that lets waits end soon. */
struct fake_config engine_config(void);

/** engine_open() - start the double; open the device for both ends (the server's with `global`),
 * listen. */
void engine_open(struct engine *e, const struct fake_config *config, const char *strategy);

/** engine_attr() - of a client's connection; @signal as in --signal. The server's are made to fit
 * (SEND: @recvs RECVs). */
void engine_attr(struct engine *e, const struct rxfer_shape *shape, uint32_t slots,
		 uint32_t sq_depth, const char *signal);

/** engine_connect() - what rxfer_connect() returned. */
int engine_connect(struct engine *e);

/**
 * engine_connect_both() - the same, with a thread of its own for the server: for a hand-shake in
 * which either end waits for the other.
 */
int engine_connect_both(struct engine *e);

/** engine_close() - connections, listener, devices; then nothing is left and nothing was violated.
 */
void engine_close(struct engine *e);

/** engine_wait() - a wait that ends soon. */
struct rxfer_wait engine_wait(void);

/** engine_idle() - are all credits and I/Os of @conn back? */
bool engine_idle(const struct rxfer_conn *conn);

/** engine_said() - rxfer_error() has these words. */
void engine_said(const char *words);

#endif
