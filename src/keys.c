/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keys that work requests grant and revoke: when they become valid, and when they are dead.
 *
 * Registering memory by a call has one moment for each of both. By WRs there are several.
 * rxfer_expose() chooses the keys, so that they can be written into the request. The post of the
 * request carries the WRs that make them valid in front of it, in one chain: the queue is ordered,
 * so whoever receives the request can use them. A LOCAL_INV is posted after the reply, or goes in
 * front of the next request (RXFER_REVOKE_LAZY), or there is none, as the peer's reply did it
 * (RXFER_REVOKE_REMOTE).
 *
 *	expose        post                      reply        post          completion
 *	  │ keys       │ BIND_MW.. SEND           │       LOCAL_INV..          │
 *	  └────────────┴──────────────────────────┴────────────┴───────────────┘
 *	               └── counts as open ─────────────────────────────────────┘
 *
 * What counts as open does so from the post, though the device looks at it later, and until the
 * completion, though the device was done earlier: never less than the truth. The completion of a
 * later WR proves a silent LOCAL_INV as well as its own would.
 *
 * Until it is posted nothing has happened: an exposure that was chosen keys for and not posted is
 * chosen the same ones again. Were they counted forward, the window's key in the device and ours
 * would differ for good. (Lustre's o2iblnd had that: LU-16349.)
 *
 * A key is revoked once. A device may take a second revoke for an error that ends the connection,
 * and there is one whose kernel it brings down (rxe, Linux 6.1 to 7.3), so each is asked of the
 * ledger before its WR is made; a peer that revokes what is not granted ends the connection, and
 * nothing is sent after it.
 *
 * A key's upper 24 bits are the device's, its number, and 8 are ours. So a key comes back after so
 * many grants under its number, and who still holds the old one then holds a good one. How far
 * apart that is is measured here where it happens: exposures of the connection between two uses of
 * one key. A device may give the number of something that is gone to the next that is made, so what
 * was used is kept for each number of 24 bits, not for what has it now.
 */
#include <errno.h>
#include <stdlib.h>
#include "reg.h"

#define BUCKETS 256

/*
 * struct rxfer_number - what is known of one.
 * @used: for each of the 8 other bits, the exposure that used it last; 0: none did
 */
struct rxfer_number {
	struct rxfer_number *next; /* in its bucket */
	uint32_t number;
	uint32_t used[RXFER_KEYS];
};

/* ---- Granting ---- */

static void chain(struct ibv_send_wr *wr, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		wr[i].next = &wr[i + 1];
}

int rxfer_keys_build(struct rxfer_conn *conn, struct rxfer_io *io, struct rxfer_exposure *x)
{
	if (x->open)
		return rxfer_fail(
			EBUSY,
			"what is exposed was granted already: each request takes an rxfer_expose()");
	io->front = conn->by_wr->grant(conn, x, io->wr);
	io->proves = x->nwas ? x : NULL;
	chain(io->wr, io->front);
	return 0;
}

/* What was open before is being revoked by the same post. */
void rxfer_keys_granting(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	for (uint32_t i = 0; i < x->nwas; i++)
		rxfer_grant_revoking(&x->was[i], x->was[i].key); /* those that are open */
	for (uint32_t i = 0; i < x->nseg; i++)
		rxfer_exposure_granted(conn, x, i);
}

void rxfer_keys_granted(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	conn->exposed_ios++;
	conn->by_wr->granted(conn, x);
}

/* ---- Revoking ---- */

static int were_proven(struct rxfer_exposure *x, uint64_t now)
{
	int rc = 0;

	for (; !rc && x->nwas; x->nwas--)
		if (x->was[x->nwas - 1].state == RXFER_GRANT_REVOKING)
			rc = rxfer_exposure_was_proven(x, x->nwas - 1, now);
	return rc;
}

/* A request revoked what was open before it, and not what it granted. */
int rxfer_keys_dead(const struct rxfer_io *io)
{
	struct rxfer_exposure *x = io->proves;
	uint64_t now = rxfer_now();
	int rc = 0;

	if (io->done.op != RXFER_REVOKE)
		return were_proven(x, now);
	for (uint32_t i = 0; !rc && i < x->nseg; i++)
		if (x->grant[i].state == RXFER_GRANT_REVOKING)
			rc = rxfer_exposure_proven(x, i, now);
	return rc;
}

static int post_revoke(struct rxfer_conn *conn, struct rxfer_exposure *x,
		       const struct rxfer_revoking *how)
{
	struct rxfer_io *io = conn->next_io;
	int n;

	if (conn->broken || conn->inflight >= conn->nio)
		return rxfer_no_io(conn);
	n = conn->by_wr->revoke(conn, x, io->wr);
	if (n < 0)
		return n;
	io->done.id = how->id;
	io->done.op = RXFER_REVOKE;
	io->done.bytes = 0;
	io->aside = false;
	io->epoch = how->epoch ? how->epoch : &io->sig_epoch;
	io->nrange = 0;
	io->front = io->nwr = (uint32_t)n;
	io->proves = x;
	chain(io->wr, io->nwr - 1);
	io->wr[io->nwr - 1].next = NULL;
	return rxfer_submit(conn, io, how->flags, how->held, 0);
}

int rxfer_revoke_held(struct rxfer_conn *conn, struct rxfer_exposure *x,
		      const struct rxfer_revoking *how)
{
	uint64_t begin;
	int rc;

	if (!conn->by_wr || !x->open) {
		rc = rxfer_revoke(conn, x);
		return rc ? rc : RXFER_REVOKED;
	}
	if (!conn->attr.time_phases)
		return post_revoke(conn, x, how);
	begin = rxfer_now();
	rc = post_revoke(conn, x, how);
	conn->counts.unmap_ns += rxfer_now() - begin;
	return rc;
}

int rxfer_peer_revoked(struct rxfer_conn *conn, struct rxfer_exposure *x, uint32_t key)
{
	for (uint32_t i = 0; i < x->nseg; i++)
		if (x->seg[i].key == key && x->grant[i].state == RXFER_GRANT_OPEN)
			return rxfer_exposure_proven(x, i, conn->fetched);
	return rxfer_conn_break(
		conn, EPROTO,
		"the peer revoked key %#x, which is not one that its request granted: nothing more is sent on this connection",
		key);
}

int rxfer_exposure_renew(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	return conn->by_wr ? conn->by_wr->renew(conn, x) : 0;
}

/* ---- Keys that come back ---- */

/* What is known of that number: nothing, if it is new. */
struct rxfer_number *rxfer_key_number(struct rxfer_conn *conn, uint32_t key)
{
	uint32_t number = key / RXFER_KEYS;
	struct rxfer_number **bucket, *p;

	if (!conn->numbers)
		conn->numbers = calloc(BUCKETS, sizeof(struct rxfer_number *));
	if (!conn->numbers)
		return NULL;
	bucket = &conn->numbers[number % BUCKETS];
	p = *bucket;
	while (p && p->number != number)
		p = p->next;
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->number = number;
	p->next = *bucket;
	*bucket = p;
	return p;
}

void rxfer_keys_destroy(struct rxfer_conn *conn)
{
	struct rxfer_number *p;

	for (uint32_t i = 0; conn->numbers && i < BUCKETS; i++)
		while ((p = conn->numbers[i])) {
			conn->numbers[i] = p->next;
			free(p);
		}
	free(conn->numbers);
	conn->numbers = NULL;
}

void rxfer_key_used(struct rxfer_conn *conn, struct rxfer_number *number, uint32_t key)
{
	uint32_t *used = &number->used[key % RXFER_KEYS];

	if (*used && conn->exposed_ios - *used < conn->key_reuse_min)
		conn->key_reuse_min = conn->exposed_ios - *used;
	*used = conn->exposed_ios;
}

/* One of the two at most: of now, or under RXFER_REVOKE_LAZY of the I/O before. */
int rxfer_key_ended(struct rxfer_exposure *x, uint32_t i)
{
	int rc;

	if (i < x->nseg && x->grant[i].state == RXFER_GRANT_OPEN)
		rc = rxfer_exposure_proven(x, i, rxfer_now());
	else if (i < x->nwas && x->was[i].state == RXFER_GRANT_OPEN)
		rc = rxfer_exposure_was_proven(x, i, rxfer_now());
	else
		return 0;
	return rc ? rc : RXFER_REVOKED;
}

static void bury(struct rxfer_grant *g)
{
	uint64_t none;

	if (g->state == RXFER_GRANT_OPEN || g->state == RXFER_GRANT_REVOKING)
		rxfer_grant_proven(g, g->key, rxfer_now(), &none);
}

/* The same with the connection, where both may be. */
void rxfer_key_buried(struct rxfer_exposure *x, uint32_t i)
{
	bury(&x->grant[i]);
	bury(&x->was[i]);
}
