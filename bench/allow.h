/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who may connect to a server (--allow): networks as texts and numbers. Nothing is looked up. */
#ifndef BENCH_ALLOW_H
#define BENCH_ALLOW_H

#include <netinet/in.h>
#include <stdbool.h>

#define ALLOW_MAX  256
#define ALLOW_TEXT 80 /* of one network */

/* struct allow_net - the first @bits of @addr are those of all its hosts. */
struct allow_net {
	bool v6;
	unsigned int bits;
	unsigned char addr[16]; /* IPv4: the first four */
};

/* struct allow - @n 0: everybody. Zeroed to begin with. */
struct allow {
	unsigned int n;
	struct allow_net net[ALLOW_MAX];
};

/**
 * allow_add() - more networks, "10.1.0.0/16,2001:db8::/32,192.0.2.7", behind those that are there.
 * Returns 0; or -EINVAL with the reason, and @a is as before.
 */
int allow_add(struct allow *a, const char *list, char *why, unsigned int size);

/** allow_check() - the same, for the option table. */
int allow_check(const char *list, char *why, unsigned int size);

/**
 * allow_permits() - may who calls from @from connect? An IPv4 address that IPv6 wraps
 * (::ffff:10.1.2.3) counts as IPv4.
 */
bool allow_permits(const struct allow *a, const struct sockaddr_storage *from);

#endif
