/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is open is what the peer holds a key for. It begins when the key becomes valid, and ends
 * with a proof that it is not: ibv_dereg_mr() has returned, a LOCAL_INV or an invalidating message
 * was polled. A revoke that was only posted proves nothing, so the bytes count until then.
 *
 *	           open               revoking              proven
 *	NONE, DEAD ────► OPEN ───────────────────► REVOKING ───────► DEAD
 *	                  ▲ │        kept              │               ▲
 *	                  │ └─── proven (the peer has revoked it) ─────┤
 *	                  └────────────────────────────┘
 *
 * A key is never revoked twice. For what is revoked by a WR the second one is an error that ends
 * the connection, and there are kernels that it brings down: so it is asked for beforehand, by
 * rxfer_grant_revoking(), and not found out. A grant remembers its key when that is dead: who comes
 * with it once more is told that it was revoked (-EALREADY), who comes with another one that it is
 * not there (-ENOENT).
 *
 * Memory that lies open all the time, as under one key for everything, is one grant that nobody
 * revokes: its bytes count, it has no reply, and so nothing that could be measured from there. It
 * ends when the memory goes.
 *
 * The average is an integral over time, advanced at each change: exact, in 128 bits, since a TiB
 * for an hour does not fit into 64.
 */
#include <errno.h>
#include "ledger.h"

void rxfer_ledger_init(struct rxfer_ledger *l, struct rxfer_ledger *up, uint64_t now)
{
	*l = (struct rxfer_ledger){.up = up, .start = now, .at = now};
}

void rxfer_ledger_restart(struct rxfer_ledger *l, uint64_t now)
{
	l->peak = l->open;
	l->grants = 0;
	l->proven = 0;
	l->integral = 0;
	l->start = now;
	l->at = now;
}

/* A clock that goes back has stood still. */
static uint64_t since(uint64_t then, uint64_t now)
{
	return now > then ? now - then : 0;
}

static void advance(struct rxfer_ledger *l, uint64_t now)
{
	uint64_t span = since(l->at, now);

	l->integral += (unsigned __int128)l->open * span;
	l->at += span;
}

struct rxfer_exposed rxfer_ledger_read(const struct rxfer_ledger *l, uint64_t now)
{
	struct rxfer_ledger here = *l;
	uint64_t span;

	advance(&here, now);
	span = here.at - here.start;
	return (struct rxfer_exposed){
		.now = l->open,
		.peak = l->peak,
		.avg = span ? (double)here.integral / (double)span : (double)l->open,
		.live = l->live,
		.grants = l->grants,
		.proven = l->proven,
	};
}

int rxfer_grant_open(struct rxfer_ledger *l, struct rxfer_grant *g, uint32_t key, uint64_t bytes,
		     uint64_t now)
{
	if (g->state == RXFER_GRANT_OPEN || g->state == RXFER_GRANT_REVOKING)
		return -EEXIST;
	*g = (struct rxfer_grant){
		.ledger = l, .bytes = bytes, .key = key, .state = RXFER_GRANT_OPEN};
	for (; l; l = l->up) {
		advance(l, now);
		l->open += bytes;
		if (l->peak < l->open)
			l->peak = l->open;
		l->live++;
		l->grants++;
	}
	return 0;
}

void rxfer_grant_replied(struct rxfer_grant *g, uint64_t now)
{
	if (g->has_reply || (g->state != RXFER_GRANT_OPEN && g->state != RXFER_GRANT_REVOKING))
		return;
	g->replied = now;
	g->has_reply = true;
}

int rxfer_grant_revoking(struct rxfer_grant *g, uint32_t key)
{
	if (g->state == RXFER_GRANT_NONE || g->key != key)
		return -ENOENT;
	if (g->state != RXFER_GRANT_OPEN)
		return -EALREADY;
	g->state = RXFER_GRANT_REVOKING;
	return 0;
}

int rxfer_grant_kept(struct rxfer_grant *g, uint32_t key)
{
	if (g->state != RXFER_GRANT_REVOKING || g->key != key)
		return -ENOENT;
	g->state = RXFER_GRANT_OPEN;
	return 0;
}

int rxfer_grant_proven(struct rxfer_grant *g, uint32_t key, uint64_t now, uint64_t *open_after)
{
	if (g->state == RXFER_GRANT_NONE || g->key != key)
		return -ENOENT;
	if (g->state == RXFER_GRANT_DEAD)
		return -EALREADY;
	g->state = RXFER_GRANT_DEAD;
	for (struct rxfer_ledger *l = g->ledger; l; l = l->up) {
		advance(l, now);
		l->open -= g->bytes;
		l->live--;
		l->proven++;
	}
	*open_after = g->has_reply ? since(g->replied, now) : RXFER_NO_SPAN;
	return 0;
}
