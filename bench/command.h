/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sub-commands, one file each, and what they share. */
#ifndef BENCH_COMMAND_H
#define BENCH_COMMAND_H

#include "opt.h"
#include "plan.h"
#include "session.h"

/* Exit statuses. */
#define EXIT_RUN_FAILED	 1 /* a failed row, or none that is ok */
#define EXIT_USAGE	 2
#define EXIT_INTERRUPTED 130

/* Each returns an exit status. */
int command_server(const struct opts *o, const struct runtime *runtime);
int command_client(const struct opts *o, const struct runtime *runtime);
int command_loopback(const struct opts *o, const struct runtime *runtime);
int command_devices(const struct opts *o, const struct runtime *runtime);
int command_probe(const struct opts *o, const struct runtime *runtime);
int command_fence(const struct opts *o, const struct runtime *runtime);

/**
 * struct server_ops - how the client's side gets a session with a server.
 * @open:  a control connection, before the hello; 0 or -errno
 * @close: undo; @c is closed
 */
struct server_ops {
	int (*open)(void *arg, struct control *c, const struct rxfer_wait *wait);
	void (*close)(void *arg, struct control *c);
};

/** runs_execute() - all runs of a command line against one server; reports; returns an exit status.
 */
int runs_execute(const struct opts *o, const struct server_ops *server, void *arg,
		 const struct runtime *runtime);

/* What is done with a server, wherever it is. */
typedef int server_user(const struct opts *o, const struct server_ops *server, void *arg,
			const struct runtime *runtime);

/**
 * with_tcp_server(), with_own_server() - use the server at o->host, or a thread of this process;
 * both return what @use returns.
 */
int with_tcp_server(const struct opts *o, const struct runtime *runtime, server_user *use);
int with_own_server(const struct opts *o, const struct runtime *runtime, server_user *use);

/**
 * check_device() - is there a device to run on? Asked before anything else is touched. 0; or
 * -ENODEV, and the reason is on stderr.
 */
int check_device(const char *name, struct rxfer_dev_info *info);

#endif
