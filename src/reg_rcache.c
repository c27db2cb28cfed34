/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rcache: memory is registered when an I/O first needs it, and stays so for the next ones, as UCX
 * and MPI libraries do it. A hit costs a look-up, a miss that and ibv_reg_mr(), and ibv_dereg_mr()
 * of whatever has to go for it. What stays open is whatever was ever used and has not gone yet, in
 * whole pages: the peer's key of an I/O is good after it, and beside its bytes.
 *
 * A key is one of a protection domain, so there is one cache for each device (each end has its own
 * domain). Which region is found, replaced, given up is decided in rcache.c; here is what that
 * means for verbs. An I/O holds a reference to the region of each of its runs from map to unmap, an
 * exposure from expose to the peer's reply: so long its key is not taken away.
 *
 * A region has all rights that its memory was declared with, since the next I/O may need those that
 * this one does not.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "rcache.h"
#include "reg.h"

/* What a region is to verbs. @grant: open where the peer has a right in it. */
struct made {
	struct ibv_mr *mr;
	struct rxfer_grant grant;
};

/* struct cache - of a device. @made: for each of @rcache's entries. */
struct cache {
	struct rxfer_rcache rcache;
	struct made *made;
	uint32_t nmade;
	uint64_t page; /* bytes */
};

/* struct refs - of an exposure, @n that it holds; of a connection, @n for each of its I/Os, of
 * which io->nrange are held. */
struct refs {
	uint32_t n;
	uint32_t region[];
};

/* ---- The cache of a device ---- */

static int out_of_memory(void)
{
	return rxfer_fail(ENOMEM, "out of memory for a cache of registrations");
}

static int make_cache(struct rxfer_dev *dev)
{
	const struct rxfer_cache_limits *limits = &dev->cache_limits;
	struct cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return out_of_memory();
	cache->page = (uint64_t)sysconf(_SC_PAGESIZE);
	rxfer_rcache_init(&cache->rcache, limits->regions, limits->bytes, limits->merge);
	dev->reg_data = cache;
	return 0;
}

static int grow_made(struct cache *cache)
{
	uint32_t entries = cache->rcache.entries;
	struct made *made;

	if (entries == cache->nmade)
		return 0;
	made = realloc(cache->made, entries * sizeof(*made));
	if (!made)
		return -ENOMEM;
	memset(made + cache->nmade, 0, (entries - cache->nmade) * sizeof(*made));
	cache->made = made;
	cache->nmade = entries;
	return 0;
}

/* @n more references can be held at once, which it allocates. NULL: that failed. */
static struct refs *make_refs(struct rxfer_dev *dev, uint64_t n)
{
	struct refs *refs = calloc(1, sizeof(*refs) + n * sizeof(refs->region[0]));
	struct cache *cache;

	if (!refs || (!dev->reg_data && make_cache(dev)))
		goto fail;
	cache = dev->reg_data;
	if (rxfer_rcache_room(&cache->rcache, (int64_t)n))
		goto fail;
	if (!grow_made(cache))
		return refs;
	rxfer_rcache_room(&cache->rcache, -(int64_t)n);
fail:
	out_of_memory();
	free(refs);
	return NULL;
}

static void free_refs(struct rxfer_dev *dev, struct refs *refs, uint64_t n)
{
	struct cache *cache = dev->reg_data;

	rxfer_rcache_room(&cache->rcache, -(int64_t)n);
	free(refs);
}

static void rcache_dev_close(struct rxfer_dev *dev)
{
	struct cache *cache = dev->reg_data;

	if (!cache)
		return;
	rxfer_rcache_free(&cache->rcache);
	free(cache->made);
	free(cache);
}

/* ---- Regions ---- */

static int drop(struct rxfer_dev *dev, uint32_t i)
{
	struct cache *cache = dev->reg_data;
	struct made *m = &cache->made[i];
	uint32_t key = m->mr->rkey;
	int rc = rxfer_dev_dereg_mr(dev, m->mr);
	uint64_t none;

	if (rc)
		return rc;
	if (m->grant.state == RXFER_GRANT_OPEN)
		rc = rxfer_grant_proven(&m->grant, key, rxfer_now(), &none);
	rxfer_rcache_gone(&cache->rcache, i);
	return rc;
}

/* All that has to go, also behind one that the device keeps; @bytes: what is to come. */
static int drop_victims(struct rxfer_dev *dev, uint64_t bytes)
{
	struct cache *cache = dev->reg_data;
	int rc = 0, this;
	uint32_t i;

	while ((i = rxfer_rcache_victim(&cache->rcache, bytes)) != RXFER_NO_REGION) {
		this = drop(dev, i);
		if (this)
			rc = this;
	}
	return rc;
}

/* Register; where there is no room, in the place of what is unused for longest. */
static int make(struct rxfer_dev *dev, const struct rxfer_mem *mem, struct rxfer_span span,
		struct made *m)
{
	struct cache *cache = dev->reg_data;
	int access = rxfer_mem_access(mem), rc;
	uint64_t bytes = span.end - span.addr;
	uint32_t oldest;

	for (;;) {
		rc = rxfer_dev_reg_mr(dev, (void *)(uintptr_t)span.addr, bytes, access, &m->mr);
		if (rc != -ENOMEM)
			break;
		oldest = rxfer_rcache_oldest(&cache->rcache);
		if (oldest == RXFER_NO_REGION)
			return rc;
		rc = drop(dev, oldest);
		if (rc)
			return rc;
	}
	if (rc || !(access & (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)))
		return rc;
	return rxfer_grant_open(&dev->ledger, &m->grant, m->mr->rkey, bytes, rxfer_now());
}

static struct rxfer_span whole_pages(const struct cache *cache, const struct rxfer_mem *mem,
				     uint64_t addr, uint64_t end)
{
	uint64_t base = (uintptr_t)mem->base, top = (uintptr_t)mem->end;

	addr -= addr % cache->page;
	end += (cache->page - end % cache->page) % cache->page;
	return (struct rxfer_span){addr < base ? base : addr, end > top ? top : end};
}

static __attribute__((noinline)) int miss(struct rxfer_dev *dev, const struct rxfer_mem *mem,
					  struct rxfer_span want, uint32_t *out)
{
	struct cache *cache = dev->reg_data;
	struct rxfer_span span = rxfer_rcache_miss(&cache->rcache, (uintptr_t)mem, want);
	int rc = drop_victims(dev, span.end - span.addr);
	struct made m = {0};

	if (!rc)
		rc = make(dev, mem, span, &m);
	if (rc)
		return rc;
	*out = rxfer_rcache_add(&cache->rcache, (uintptr_t)mem, span);
	if (*out == RXFER_NO_REGION) { /* the device has kept regions that were to go */
		rxfer_dev_dereg_mr(dev, m.mr);
		return out_of_memory();
	}
	cache->made[*out] = m;
	return 0;
}

static int not_declared(const struct rxfer_seg *run)
{
	return rxfer_fail(EFAULT, "memory at %#llx, %u bytes, was not declared by rxfer_mem_add()",
			  (unsigned long long)run->addr, run->len);
}

/*
 * A reference to the region that holds the run, which is found or made; hot. @mr: what it is to
 * verbs. Memory that is registered whole whatever the strategy takes none: RXFER_NO_REGION.
 */
static inline int take(struct rxfer_conn *conn, const struct rxfer_seg *run, uint32_t *out,
		       const struct ibv_mr **mr)
{
	struct rxfer_dev *dev = conn->dev;
	const struct rxfer_mem *mem = rxfer_mem_find(dev, (void *)(uintptr_t)run->addr, run->len);
	struct cache *cache = dev->reg_data;
	uint64_t end = run->addr + run->len;
	int rc = 0;

	if (!mem)
		return not_declared(run);
	*out = RXFER_NO_REGION;
	*mr = mem->mr;
	if (mem->mr)
		return 0;
	conn->counts.lookups++;
	*out = rxfer_rcache_get(&cache->rcache, (uintptr_t)mem, run->addr, end);
	if (*out != RXFER_NO_REGION)
		conn->counts.hits++;
	else
		rc = miss(dev, mem, whole_pages(cache, mem, run->addr, end), out);
	if (!rc)
		*mr = cache->made[*out].mr;
	return rc;
}

/* Give @n references back. */
static int put(struct rxfer_dev *dev, const uint32_t *region, uint32_t n)
{
	struct cache *cache = dev->reg_data;
	bool too_many = false;

	while (n--)
		if (region[n] != RXFER_NO_REGION)
			too_many |= rxfer_rcache_put(&cache->rcache, region[n]);
	return too_many ? drop_victims(dev, 0) : 0;
}

/* ---- Memory ---- */

static int rcache_mem_add(struct rxfer_dev *dev, struct rxfer_mem *mem)
{
	(void)dev;
	(void)mem;
	return 0;
}

static int rcache_forget(struct rxfer_dev *dev, const struct rxfer_mem *mem, const void *addr,
			 size_t len)
{
	const struct rxfer_span what = {(uintptr_t)addr, (uintptr_t)addr + len};
	struct cache *cache = dev->reg_data;

	if (!cache)
		return 0;
	rxfer_rcache_forget(&cache->rcache, (uintptr_t)mem, what);
	return drop_victims(dev, 0);
}

static void rcache_mem_del(struct rxfer_dev *dev, struct rxfer_mem *mem)
{
	rcache_forget(dev, mem, mem->base, mem->len);
}

/* ---- Our own side ---- */

static int rcache_open(struct rxfer_conn *conn)
{
	uint32_t each = conn->attr.shape.frags;
	struct refs *refs = make_refs(conn->dev, (uint64_t)conn->nio * each);

	if (!refs)
		return -ENOMEM;
	refs->n = each;
	conn->reg_data = refs;
	return 0;
}

static void rcache_close(struct rxfer_conn *conn)
{
	struct refs *refs = conn->reg_data;

	free_refs(conn->dev, refs, (uint64_t)conn->nio * refs->n);
	conn->reg_data = NULL;
}

static uint32_t *refs_of(const struct rxfer_conn *conn, const struct rxfer_io *io)
{
	struct refs *refs = conn->reg_data;

	return refs->region + (size_t)io->index * refs->n;
}

static int rcache_unmap(struct rxfer_conn *conn, struct rxfer_io *io)
{
	uint32_t n = io->nrange;

	io->nrange = 0;
	return put(conn->dev, refs_of(conn, io), n);
}

static int rcache_map(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *frag,
		      uint32_t n)
{
	uint32_t *region = refs_of(conn, io), runs = rxfer_reg_runs(frag, n, io->range);
	const struct ibv_mr *mr = NULL;

	for (io->nrange = 0; io->nrange < runs; io->nrange++) {
		struct rxfer_seg *r = &io->range[io->nrange];
		int rc = take(conn, r, &region[io->nrange], &mr);

		if (rc) {
			rcache_unmap(conn, io);
			return rc;
		}
		r->key = mr->lkey;
	}
	return 0;
}

/* ---- The peer's side: references until its reply ---- */

static int rcache_expose_open(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	x->reg_data = make_refs(conn->dev, x->max);
	return x->reg_data ? 0 : -ENOMEM;
}

static int rcache_replied(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	struct refs *refs = x->reg_data;
	uint32_t n = refs->n;

	refs->n = 0;
	return put(conn->dev, refs->region, n);
}

static void rcache_expose_close(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	rcache_replied(conn, x);
	free_refs(conn->dev, x->reg_data, x->max);
}

/* Who exposes again has no use for the answer to the I/O before. */
static int rcache_expose(struct rxfer_conn *conn, struct rxfer_exposure *x,
			 const struct rxfer_frag *frag, uint32_t n, unsigned int rights)
{
	struct refs *refs = x->reg_data;
	const struct ibv_mr *mr = NULL;
	int rc = rcache_replied(conn, x);

	if (!rc)
		rc = rxfer_reg_cut(conn, x, frag, n, rights, true);
	while (!rc && refs->n < x->nseg) {
		struct rxfer_seg *s = &x->seg[refs->n];

		rc = take(conn, s, &refs->region[refs->n], &mr);
		if (rc)
			break;
		s->key = mr->rkey;
		refs->n++;
	}
	if (rc)
		rcache_replied(conn, x);
	return rc;
}

#define KEEPS "keeps the region of an I/O, and its key, for the next ones (--revoke none)"

const struct rxfer_reg_ops rxfer_reg_rcache = {
	.name = "rcache",
	.summary = "a cache of regions: registered at first use, kept for the next",
	.engine = "",
	.supported = rxfer_reg_always,
	.dev_close = rcache_dev_close,
	.mem_add = rcache_mem_add,
	.mem_del = rcache_mem_del,
	.forget = rcache_forget,
	.open = rcache_open,
	.close = rcache_close,
	.need = rxfer_reg_need_nothing,
	.map = rcache_map,
	.unmap = rcache_unmap,
	.revokes = RXFER_REVOKES(NONE),
	.no_revoke =
		{
			[RXFER_REVOKE_SYNC] = KEEPS,
			[RXFER_REVOKE_ASYNC] = KEEPS,
			[RXFER_REVOKE_REMOTE] =
				"exposes memory regions, and a peer's message revokes memory windows only (--revoke none)",
			[RXFER_REVOKE_LAZY] = KEEPS,
		},
	.keys_vary = true,
	.open_sink =
		"keeps what it registered: over iWARP what READs filled would lie open to the peer's writes after the I/O (--unsafe-global-sink allows it)",
	.expose_open = rcache_expose_open,
	.expose_close = rcache_expose_close,
	.expose = rcache_expose,
	.replied = rcache_replied,
	.revoke = rxfer_reg_revoke_refused,
	.cut = rxfer_reg_cut_runs,
};
