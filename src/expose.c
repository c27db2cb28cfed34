/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Exposing: the peer is told where an I/O's memory lies and under which keys, reads or writes it by
 * RDMA, and replies; then the keys are revoked.
 *
 * How a key is made and how it dies is the strategy's business. Whatever it is, three moments are
 * the same for all, and are entered in the ledger where they happen: the key becomes valid; its
 * revoke begins, which it does once; the key is proven dead. The span that the peer could have used
 * memory that it has no business with any more is from its reply to that proof.
 *
 * An exposure has arrays for the most fragments that an I/O may have, made with the connection:
 * exposing and revoking allocate nothing. It is in one I/O at a time, and refuses the next while
 * a key of the one before is not dead.
 *
 * A segment is a run of fragments that adjoin, never more: a key over the gaps between would open
 * memory that is not part of the I/O, and be wrong in every figure about exposure. Nor does a run
 * go on from one declared memory into the next, where the one's region, and its rights, end.
 */
#include <errno.h>
#include <stdlib.h>
#include "reg.h"

#define EXPOSE_RIGHTS (RXFER_EXPOSE_READ | RXFER_EXPOSE_WRITE)

/* ---- For strategies ---- */

static int not_declared(const struct rxfer_frag *frag)
{
	if (frag->len == 0)
		return rxfer_fail(EINVAL, "a fragment of no bytes at %p", frag->addr);
	return rxfer_fail(EFAULT, "memory at %p, %u bytes, was not declared by rxfer_mem_add()",
			  frag->addr, frag->len);
}

static int no_right(const struct rxfer_frag *frag, unsigned int lacks)
{
	return rxfer_fail(
		EACCES,
		"memory at %p, %u bytes, was declared as none that the peer may %s: add %s to its rights",
		frag->addr, frag->len, lacks & RXFER_EXPOSE_WRITE ? "write" : "read",
		lacks & RXFER_EXPOSE_WRITE ? "RXFER_EXPOSE_WRITE" : "RXFER_EXPOSE_READ");
}

int rxfer_reg_cut(struct rxfer_conn *conn, struct rxfer_exposure *x, const struct rxfer_frag *frag,
		  uint32_t n, unsigned int rights, bool merge)
{
	const struct rxfer_mem *mem = &conn->dev->nowhere, *was = NULL;
	struct rxfer_seg *last = x->seg - 1;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = (uintptr_t)frag[i].addr;
		uint32_t len = frag[i].len;

		if (!rxfer_mem_holds(mem, frag[i].addr, len))
			mem = rxfer_mem_find(conn->dev, frag[i].addr, len);
		if (!mem || len == 0)
			return not_declared(&frag[i]);
		if (rights & ~mem->rights)
			return no_right(&frag[i], rights & ~mem->rights);
		if (merge && mem == was && addr == last->addr + last->len &&
		    len <= UINT32_MAX - last->len)
			last->len += len;
		else
			*++last = (struct rxfer_seg){addr, len, mem->mr ? mem->mr->rkey : 0};
		was = mem;
	}
	x->nseg = (uint32_t)(last - x->seg) + 1;
	return 0;
}

int rxfer_reg_cut_runs(struct rxfer_conn *conn, struct rxfer_exposure *x,
		       const struct rxfer_frag *frag, uint32_t n, unsigned int rights)
{
	return rxfer_reg_cut(conn, x, frag, n, rights, true);
}

void rxfer_exposure_granted(struct rxfer_conn *conn, struct rxfer_exposure *x, uint32_t i)
{
	const struct rxfer_seg *s = &x->seg[i];

	if (rxfer_grant_open(&conn->ledger, &x->grant[i], s->key, s->len, rxfer_now()))
		rxfer_conn_break(conn, EEXIST,
				 "a bug of rxfer-bench: key %#x is granted where %#x is not dead",
				 s->key, x->grant[i].key);
	else
		x->open++;
}

/* One revoke for each grant: who comes for another one is told of which key. */
static int breach(int err, uint32_t key)
{
	if (err == -EALREADY)
		return rxfer_fail(
			err, "key %#x was revoked already, and a key is never revoked twice", key);
	return rxfer_fail(err, "key %#x is not granted: there is nothing to revoke", key);
}

int rxfer_exposure_revoking(struct rxfer_exposure *x, uint32_t i)
{
	int rc = rxfer_grant_revoking(&x->grant[i], x->seg[i].key);

	return rc ? breach(rc, x->seg[i].key) : 0;
}

void rxfer_exposure_kept(struct rxfer_exposure *x, uint32_t i)
{
	rxfer_grant_kept(&x->grant[i], x->seg[i].key);
}

static int proven(struct rxfer_exposure *x, struct rxfer_grant *g, uint32_t key, uint64_t now)
{
	uint64_t span;
	int rc = rxfer_grant_proven(g, key, now, &span);

	if (rc)
		return breach(rc, key);
	if (span != RXFER_NO_SPAN && (x->open_after == RXFER_NO_SPAN || x->open_after < span))
		x->open_after = span;
	return 0;
}

int rxfer_exposure_proven(struct rxfer_exposure *x, uint32_t i, uint64_t now)
{
	int rc = proven(x, &x->grant[i], x->seg[i].key, now);

	x->open -= !rc;
	return rc;
}

int rxfer_exposure_was_proven(struct rxfer_exposure *x, uint32_t i, uint64_t now)
{
	return proven(x, &x->was[i], x->was[i].key, now);
}

/* ---- For the upper layer ---- */

int rxfer_exposure_new(struct rxfer_conn *conn, uint32_t frags, struct rxfer_exposure **out)
{
	struct rxfer_exposure *x;
	int rc;

	if (frags == 0)
		return rxfer_fail(EINVAL, "an exposure of no fragments");
	x = calloc(1, sizeof(*x) + frags * (2 * sizeof(x->grant[0]) + sizeof(x->seg[0])));
	if (!x)
		return rxfer_fail(ENOMEM, "out of memory for what an I/O of %s exposes",
				  rxfer_count(frags, "fragment").s);
	x->max = frags;
	x->grant = (struct rxfer_grant *)(void *)(x + 1);
	x->was = x->grant + frags;
	x->seg = (struct rxfer_seg *)(void *)(x->was + frags);
	x->open_after = RXFER_NO_SPAN;
	rc = conn->reg->expose_open(conn, x);
	if (rc) {
		free(x);
		return rc;
	}
	x->next = conn->exposures;
	conn->exposures = x;
	conn->stamps = conn->reg->revokes != RXFER_REVOKES(NONE);
	*out = x;
	return 0;
}

/* What is in flight proves nothing of it any more: nobody is there to be told. */
static void forget(struct rxfer_conn *conn, const struct rxfer_exposure *x)
{
	struct rxfer_io *io = conn->oldest;

	for (uint32_t i = 0; i < conn->inflight; i++, io = io->next)
		if (io->proves == x)
			io->proves = NULL;
}

void rxfer_exposure_free(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	struct rxfer_exposure **p;

	if (!x)
		return;
	forget(conn, x);
	for (p = &conn->exposures; *p != x; p = &(*p)->next)
		;
	*p = x->next;
	conn->reg->expose_close(conn, x);
	free(x);
}

void rxfer_expose_destroy(struct rxfer_conn *conn)
{
	while (conn->exposures)
		rxfer_exposure_free(conn, conn->exposures);
}

static uint32_t live_key(const struct rxfer_exposure *x)
{
	uint32_t i = 0;

	while (i + 1 < x->nseg && x->grant[i].state == RXFER_GRANT_DEAD)
		i++;
	return x->seg[i].key;
}

/* Why an I/O cannot be exposed, whatever its memory is. */
static int refused(struct rxfer_conn *conn, const struct rxfer_exposure *x, uint32_t n,
		   unsigned int rights)
{
	if (conn->broken)
		return rxfer_no_io(conn);
	if (x->open)
		return rxfer_fail(
			EBUSY, "key %#x, of the I/O before, is not revoked: rxfer_revoke() first",
			live_key(x));
	if (n == 0 || n > x->max)
		return rxfer_fail(EINVAL, "exposing %s where there is room for 1 to %u",
				  rxfer_count(n, "fragment").s, x->max);
	return rxfer_fail(EINVAL, "exposing memory with rights %#x, of %#x that there are", rights,
			  EXPOSE_RIGHTS);
}

static int timed_expose(struct rxfer_conn *conn, struct rxfer_exposure *x,
			const struct rxfer_frag *frag, uint32_t n, unsigned int rights)
{
	uint64_t begin = rxfer_now();
	int rc = conn->reg->expose(conn, x, frag, n, rights);

	conn->counts.map_ns += rxfer_now() - begin;
	return rc;
}

static int timed_revoke(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	uint64_t begin = rxfer_now();
	int rc = conn->reg->revoke(conn, x);

	conn->counts.unmap_ns += rxfer_now() - begin;
	return rc;
}

/* Lazily revoked keys live on until the next post of the exposure ends them. */
static void retire(struct rxfer_exposure *x)
{
	struct rxfer_grant *was = x->grant;

	x->grant = x->was;
	x->was = was;
	x->nwas = x->nseg;
	x->open = 0;
}

int rxfer_expose(struct rxfer_conn *conn, struct rxfer_exposure *x, const struct rxfer_frag *frag,
		 uint32_t n, unsigned int rights)
{
	bool lazy = conn->attr.revoke == RXFER_REVOKE_LAZY && !x->nwas;
	int rc;

	if (conn->broken || (x->open && !lazy) || n - 1 >= x->max || !rights ||
	    rights & ~EXPOSE_RIGHTS)
		return refused(conn, x, n, rights);
	if (x->open)
		retire(x);
	x->nseg = 0;
	x->open_after = RXFER_NO_SPAN;
	if (conn->attr.time_phases)
		rc = timed_expose(conn, x, frag, n, rights);
	else
		rc = conn->reg->expose(conn, x, frag, n, rights);
	if (rc && !x->open)
		x->nseg = 0;
	return rc;
}

int rxfer_exposure_cut(struct rxfer_conn *conn, struct rxfer_exposure *x,
		       const struct rxfer_frag *frag, uint32_t n, unsigned int rights)
{
	if (conn->broken || x->open || n - 1 >= x->max || !rights || rights & ~EXPOSE_RIGHTS)
		return refused(conn, x, n, rights);
	return conn->reg->cut(conn, x, frag, n, rights);
}

const struct rxfer_seg *rxfer_exposure_segs(const struct rxfer_exposure *x, uint32_t *n)
{
	*n = x->nseg;
	return x->seg;
}

static int timed_replied(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	uint64_t begin = rxfer_now();
	int rc = conn->reg->replied(conn, x);

	conn->counts.unmap_ns += rxfer_now() - begin;
	return rc;
}

int rxfer_replied(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	for (uint32_t i = 0; x->open && i < x->nseg; i++)
		rxfer_grant_replied(&x->grant[i], conn->fetched);
	return conn->attr.time_phases ? timed_replied(conn, x) : conn->reg->replied(conn, x);
}

int rxfer_revoke(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	if (x->open || conn->reg->revokes == RXFER_REVOKES(NONE))
		return conn->attr.time_phases ? timed_revoke(conn, x) : conn->reg->revoke(conn, x);
	if (!x->nseg)
		return rxfer_fail(ENOENT, "nothing was exposed: there is no key to revoke");
	return breach(rxfer_grant_revoking(&x->grant[0], x->seg[0].key), x->seg[0].key);
}

uint64_t rxfer_open_after(const struct rxfer_exposure *x)
{
	return x->open_after;
}

uint32_t rxfer_exposure_open(const struct rxfer_exposure *x)
{
	uint32_t n = x->open;

	for (uint32_t i = 0; i < x->nwas; i++)
		n += x->was[i].state != RXFER_GRANT_DEAD;
	return n;
}

/* ---- What lies open ---- */

struct rxfer_exposed rxfer_dev_exposed(const struct rxfer_dev *dev)
{
	return rxfer_ledger_read(&dev->ledger, rxfer_now());
}

struct rxfer_exposed rxfer_conn_exposed(const struct rxfer_conn *conn)
{
	return rxfer_ledger_read(&conn->ledger, rxfer_now());
}

void rxfer_dev_exposed_restart(struct rxfer_dev *dev)
{
	rxfer_ledger_restart(&dev->ledger, rxfer_now());
}
