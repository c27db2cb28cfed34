/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The exposure ledger: how many bytes lie open to the peer, for how long, and that each key is
 * revoked once. Pure arithmetic, no verbs; times are the caller's, in ns. The essay is on top of
 * ledger.c.
 */
#ifndef RXFER_LEDGER_H
#define RXFER_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct rxfer_ledger - an account of what lies open.
 * @up:       the account that this one is a part of: whatever is entered here is entered there,
 *            too; NULL: none
 * @open:     bytes now
 * @peak:     the most, since @start
 * @live:     grants now
 * @grants:   since @start; @proven: those proven dead since then
 * @start:    when the counting began
 * @at:       the latest change; @integral: bytes times ns, from @start to it
 */
struct rxfer_ledger {
	struct rxfer_ledger *up;
	uint64_t open;
	uint64_t peak;
	uint64_t live;
	uint64_t grants;
	uint64_t proven;
	uint64_t start;
	uint64_t at;
	unsigned __int128 integral;
};

enum rxfer_grant_state {
	RXFER_GRANT_NONE,     /* no key yet */
	RXFER_GRANT_OPEN,     /* the peer can use it */
	RXFER_GRANT_REVOKING, /* so it can now, but its one revoke is under way */
	RXFER_GRANT_DEAD,     /* it cannot: proven */
};

/**
 * struct rxfer_grant - one key that the peer was given; the caller keeps it, zeroed at first, and
 * uses it for one key after the other.
 * @ledger:  that it is entered in
 * @replied: when the peer was done with it; only while @has_reply
 */
struct rxfer_grant {
	struct rxfer_ledger *ledger;
	uint64_t bytes;
	uint64_t replied;
	uint32_t key;
	uint8_t state; /* enum rxfer_grant_state */
	bool has_reply;
};

/* What is measured from a reply that never came. */
#define RXFER_NO_SPAN UINT64_MAX

/** rxfer_ledger_init() - nothing is open. @up: see above. */
void rxfer_ledger_init(struct rxfer_ledger *l, struct rxfer_ledger *up, uint64_t now);

/**
 * rxfer_ledger_restart() - the timed part begins. What is open stays open and counts from here;
 * @up goes on as it was.
 */
void rxfer_ledger_restart(struct rxfer_ledger *l, uint64_t now);

/**
 * struct rxfer_exposed - what an account says.
 * @now, @peak, @avg: bytes; @avg over the time since the start. Bytes under two keys count twice.
 * @live:             keys that are open now
 * @grants, @proven:  keys opened, and proven dead, since the start
 */
struct rxfer_exposed {
	uint64_t now, peak;
	double avg;
	uint64_t live, grants, proven;
};
struct rxfer_exposed rxfer_ledger_read(const struct rxfer_ledger *l, uint64_t now);

/**
 * rxfer_grant_open() - the key is valid from now on.
 * Returns 0, or -EEXIST (nothing changes) where the one before is not proven dead.
 */
int rxfer_grant_open(struct rxfer_ledger *l, struct rxfer_grant *g, uint32_t key, uint64_t bytes,
		     uint64_t now);

/** rxfer_grant_replied() - the peer is done with it. The first time counts; none where it is not
 * open. */
void rxfer_grant_replied(struct rxfer_grant *g, uint64_t now);

/**
 * rxfer_grant_revoking() - to be called before the key is revoked: may it be?
 * Returns 0; -EALREADY where it was, or that is under way; -ENOENT where this key was not granted.
 */
int rxfer_grant_revoking(struct rxfer_grant *g, uint32_t key);

/** rxfer_grant_kept() - the revoke failed, so that the key is open as before. -ENOENT where none
 * was under way. */
int rxfer_grant_kept(struct rxfer_grant *g, uint32_t key);

/**
 * rxfer_grant_proven() - the key is dead, by a revoke of ours or by the peer's.
 * @open_after: out: from the reply to now; RXFER_NO_SPAN where there was none
 * Returns 0, or as rxfer_grant_revoking() does.
 */
int rxfer_grant_proven(struct rxfer_grant *g, uint32_t key, uint64_t now, uint64_t *open_after);

#endif
