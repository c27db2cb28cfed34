/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bounce: no memory of the callers' is ever registered. A connection has buffers, registered once
 * when it is made, and an I/O costs a memcpy into one of them or out of it, by the CPU. Whatever
 * fragments an I/O is in, it is one range then, and one segment for the peer.
 *
 * There are two kinds of buffers, each kind in one region:
 *
 *	of I/Os        one for each in the ring. What is sent or written is copied in before the
 *	               post. What a READ brings is copied out once that is proven, and no sooner:
 *	               of an I/O that a broken connection leaves behind nothing is.
 *	of exposures   one for each slot, with the peer's rights. What it may read is copied in
 *	               before the request; what it may write is copied out at its reply.
 *
 * What lies open is the buffers of exposures, and over iWARP those of READs, all of them and all
 * the time: also bytes of I/Os that are long done. The callers' own memory never does.
 *
 * Where the peer writes is no place for our accounts: those of both kinds are aside.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "reg.h"

/* struct buffers - @n of them, @bytes each, @stride apart. @grant: open while the peer has a right
 * in them. */
struct buffers {
	char *base;
	uint64_t bytes, stride;
	uint32_t n;
	struct ibv_mr *mr;
	struct rxfer_grant grant;
};

/* struct bounce - of a connection. @kept: for each I/O, where what a READ brings is wanted. */
struct bounce {
	struct buffers ios, exposures;
	bool *taken; /* of the buffers of exposures */
	struct rxfer_frag *kept;
};

/* struct exposed - of an exposure. @out: bytes of its fragments that are to be copied out. */
struct exposed {
	char *buffer;
	uint64_t out;
	struct rxfer_frag frag[];
};

/* ---- Copying ---- */

static uint64_t total(const struct rxfer_frag *frag, uint32_t n)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += frag[i].len;
	return bytes;
}

static void copy_in(struct rxfer_conn *conn, char *to, const struct rxfer_frag *frag, uint64_t left)
{
	conn->counts.copied_bytes += left;
	for (; left; left -= frag++->len) {
		memcpy(to, frag->addr, frag->len);
		to += frag->len;
	}
}

static void copy_out(struct rxfer_conn *conn, const struct rxfer_frag *frag, const char *from,
		     uint64_t left)
{
	conn->counts.copied_bytes += left;
	for (; left; left -= frag++->len) {
		memcpy(frag->addr, from, frag->len);
		from += frag->len;
	}
}

static int too_large(const struct buffers *b, uint64_t bytes)
{
	return rxfer_fail(EMSGSIZE, "an I/O of %s, and the buffers of its connection have %s",
			  rxfer_count(bytes, "byte").s, rxfer_count(b->bytes, "byte").s);
}

/* ---- Buffers ---- */

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + 4095) & ~(uint64_t)4095;
}

/* Those of I/Os, where any has memory that is to be mapped; those of exposures. */
static struct buffers of_ios(const struct rxfer_conn_attr *a, uint32_t nio)
{
	bool maps = a->shape.frags > a->shape.fixed;

	return (struct buffers){.n = maps ? nio : 0,
				.bytes = maps ? a->shape.bytes : 0,
				.stride = whole_pages(a->shape.bytes)};
}

static struct buffers of_exposures(const struct rxfer_conn_attr *a)
{
	return (struct buffers){.n = a->shape.exposed_bytes ? a->slots : 0,
				.bytes = a->shape.exposed_bytes,
				.stride = whole_pages(a->shape.exposed_bytes)};
}

static uint64_t bounce_memory(const struct rxfer_conn_attr *a)
{
	struct buffers ios = of_ios(a, a->ios ? a->ios : a->slots), exposures = of_exposures(a);

	return ios.n * ios.stride + exposures.n * exposures.stride;
}

/* What the device keeps stays where it is: it may still be reached. */
static void drop(struct rxfer_dev *dev, struct buffers *b)
{
	uint64_t none;

	if (b->mr && rxfer_dev_dereg_mr(dev, b->mr))
		return;
	if (b->grant.ledger)
		rxfer_grant_proven(&b->grant, b->grant.key, rxfer_now(), &none);
	free(b->base);
}

/* All are touched by that. */
static int make(struct rxfer_dev *dev, struct buffers *b, int access)
{
	size_t len = b->n * b->stride;
	int rc;

	if (!len)
		return 0;
	b->base = aligned_alloc(4096, len);
	if (!b->base)
		return rxfer_fail(ENOMEM, "out of memory for %s of %s",
				  rxfer_count(b->n, "buffer").s, rxfer_size(b->stride).s);
	memset(b->base, 0, len);
	rc = rxfer_dev_reg_mr(dev, b->base, len, access, &b->mr);
	if (rc || !(access & (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)))
		return rc;
	return rxfer_grant_open(&dev->ledger, &b->grant, b->mr->rkey, len, rxfer_now());
}

static void bounce_close(struct rxfer_conn *conn)
{
	struct bounce *b = conn->reg_data;

	drop(conn->dev, &b->ios);
	drop(conn->dev, &b->exposures);
	free(b->taken);
	free(b->kept);
	free(b);
	conn->reg_data = NULL;
}

static int bounce_open(struct rxfer_conn *conn)
{
	const struct rxfer_shape *s = &conn->attr.shape;
	struct bounce *b = calloc(1, sizeof(*b));
	int rc = 0;

	if (!b)
		return rxfer_fail(ENOMEM, "out of memory");
	conn->reg_data = b;
	b->ios = of_ios(&conn->attr, conn->nio);
	b->exposures = of_exposures(&conn->attr);
	b->kept = calloc((size_t)b->ios.n * s->frags + 1, sizeof(b->kept[0]));
	b->taken = calloc((size_t)b->exposures.n + 1, sizeof(b->taken[0]));
	if (!b->kept || !b->taken)
		rc = rxfer_fail(ENOMEM, "out of memory for the fragments of %s",
				rxfer_count(conn->nio, "I/O").s);
	if (!rc)
		rc = make(conn->dev, &b->ios,
			  s->op == RXFER_READ ? rxfer_sink_access(conn->dev)
					      : IBV_ACCESS_LOCAL_WRITE);
	if (!rc)
		rc = make(conn->dev, &b->exposures, rxfer_peer_access(s->rights));
	if (rc)
		bounce_close(conn);
	return rc;
}

/* ---- I/Os ---- */

static struct rxfer_frag *kept_of(const struct rxfer_conn *conn, const struct rxfer_io *io)
{
	const struct bounce *b = conn->reg_data;

	return b->kept + (size_t)io->index * conn->attr.shape.frags;
}

static int bounce_map(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *frag,
		      uint32_t n)
{
	const struct buffers *b = &((struct bounce *)conn->reg_data)->ios;
	char *buffer = b->base + io->index * b->stride;
	uint64_t bytes = total(frag, n);

	if (bytes > b->bytes)
		return too_large(b, bytes);
	if (io->done.op == RXFER_READ)
		memcpy(kept_of(conn, io), frag, n * sizeof(*frag));
	else
		copy_in(conn, buffer, frag, bytes);
	io->range[0] = (struct rxfer_seg){(uintptr_t)buffer, (uint32_t)bytes, b->mr->lkey};
	io->nrange = 1;
	return 0;
}

static int bounce_unmap(struct rxfer_conn *conn, struct rxfer_io *io)
{
	const struct rxfer_seg *r = io->range;

	if (io->done.op == RXFER_READ && io->moved)
		copy_out(conn, kept_of(conn, io), (char *)(uintptr_t)r->addr, r->len);
	io->nrange = 0;
	return 0;
}

/* ---- The peer's side ---- */

static int bounce_expose_open(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	struct bounce *b = conn->reg_data;
	struct exposed *e;
	uint32_t i = 0;

	while (i < b->exposures.n && b->taken[i])
		i++;
	if (i == b->exposures.n)
		return rxfer_fail(
			ENOBUFS, "no buffer is left for an exposure: its connection has %u of them",
			b->exposures.n);
	e = calloc(1, sizeof(*e) + x->max * sizeof(e->frag[0]));
	if (!e)
		return rxfer_fail(ENOMEM, "out of memory for what an I/O of %s exposes",
				  rxfer_count(x->max, "fragment").s);
	e->buffer = b->exposures.base + i * b->exposures.stride;
	b->taken[i] = true;
	x->reg_data = e;
	return 0;
}

static void bounce_expose_close(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	struct bounce *b = conn->reg_data;
	struct exposed *e = x->reg_data;

	b->taken[(size_t)(e->buffer - b->exposures.base) / b->exposures.stride] = false;
	free(e);
}

/* The memory is looked at as if it were to be exposed itself; then its buffer is, in its place. */
static int bounce_cut(struct rxfer_conn *conn, struct rxfer_exposure *x,
		      const struct rxfer_frag *frag, uint32_t n, unsigned int rights)
{
	const struct buffers *b = &((struct bounce *)conn->reg_data)->exposures;
	const struct exposed *e = x->reg_data;
	uint64_t bytes = total(frag, n);
	int rc = rxfer_reg_cut(conn, x, frag, n, rights, true);

	if (rc)
		return rc;
	x->nseg = 0;
	if (rights & ~conn->attr.shape.rights)
		return rxfer_fail(
			EACCES,
			"exposing memory with rights %#x on a connection whose buffers have %#x",
			rights, conn->attr.shape.rights);
	if (bytes > b->bytes)
		return too_large(b, bytes);
	x->seg[0] = (struct rxfer_seg){(uintptr_t)e->buffer, (uint32_t)bytes, b->mr->rkey};
	x->nseg = 1;
	return 0;
}

static int bounce_expose(struct rxfer_conn *conn, struct rxfer_exposure *x,
			 const struct rxfer_frag *frag, uint32_t n, unsigned int rights)
{
	struct exposed *e = x->reg_data;
	int rc = bounce_cut(conn, x, frag, n, rights);

	e->out = 0;
	if (rc)
		return rc;
	if (rights & RXFER_EXPOSE_READ)
		copy_in(conn, e->buffer, frag, x->seg[0].len);
	if (!(rights & RXFER_EXPOSE_WRITE))
		return 0;
	memcpy(e->frag, frag, n * sizeof(*frag));
	e->out = x->seg[0].len;
	return 0;
}

/* Once: whose I/O is over has his memory to himself, whatever the peer sends yet. */
static int bounce_replied(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	struct exposed *e = x->reg_data;

	copy_out(conn, e->frag, e->buffer, e->out);
	e->out = 0;
	return 0;
}

#define LIES_OPEN                                                                                    \
	"has no key of its own for each I/O: its buffers lie open all the time, the memory of I/Os " \
	"never (--revoke none)"

const struct rxfer_reg_ops rxfer_reg_bounce = {
	.name = "bounce",
	.summary = "a copy to or from buffers that are registered once",
	.engine = "",
	.copies = true,
	.supported = rxfer_reg_always,
	.mem_add = rxfer_reg_mem_nothing,
	.mem_del = rxfer_reg_mem_del_nothing,
	.memory = bounce_memory,
	.open = bounce_open,
	.close = bounce_close,
	.need = rxfer_reg_need_nothing,
	.map = bounce_map,
	.unmap = bounce_unmap,
	.revokes = RXFER_REVOKES(NONE),
	.no_revoke = {NULL, LIES_OPEN, LIES_OPEN, LIES_OPEN, LIES_OPEN},
	.expose_open = bounce_expose_open,
	.expose_close = bounce_expose_close,
	.expose = bounce_expose,
	.replied = bounce_replied,
	.cut = bounce_cut,
	.revoke = rxfer_reg_revoke_refused,
};
