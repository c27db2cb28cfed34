/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of registration strategies, and what several of them share. */
#include <errno.h>
#include <string.h>
#include "reg.h"

#define RXFER_REG(name) extern const struct rxfer_reg_ops rxfer_reg_##name;
#include "reg_list.h"
#undef RXFER_REG

#define RXFER_REG(name) &rxfer_reg_##name,
static const struct rxfer_reg_ops *const strategies[] = {
#include "reg_list.h"
};
#undef RXFER_REG

#define STRATEGIES (sizeof(strategies) / sizeof(strategies[0]))

const char *rxfer_strategy_name(unsigned int i)
{
	return i < STRATEGIES ? strategies[i]->name : NULL;
}

const char *rxfer_strategy_summary(unsigned int i)
{
	return i < STRATEGIES ? strategies[i]->summary : NULL;
}

/* Each mode is there, or it is said why not. */
static bool revokes_complete(const struct rxfer_reg_ops *o)
{
	for (unsigned int mode = 0; mode < RXFER_REVOKE_AUTO; mode++)
		if (!(o->revokes & 1u << mode) && !o->no_revoke[mode])
			return false;
	return o->revokes && o->expose_open && o->expose_close && o->expose && o->replied &&
	       o->revoke && o->cut;
}

static bool complete(const struct rxfer_reg_ops *o)
{
	return o->name && o->summary && o->engine && o->supported && o->mem_add && o->mem_del &&
	       o->open && o->close && o->need && o->map && o->unmap && revokes_complete(o);
}

const struct rxfer_reg_ops *rxfer_reg_find(const char *name)
{
	const char *near;

	for (size_t i = 0; i < STRATEGIES; i++) {
		if (strcmp(strategies[i]->name, name))
			continue;
		if (complete(strategies[i]))
			return strategies[i];
		rxfer_fail(ENOSYS, "strategy %s lacks a mandatory operation", name);
		return NULL;
	}
	near = rxfer_nearest(name, rxfer_strategy_name);
	rxfer_fail(ENOENT, "no registration strategy is called %s%s%s", name,
		   near ? "; did you mean " : "", near ? near : "");
	return NULL;
}

const char *rxfer_strategy_engine(const char *strategy)
{
	const struct rxfer_reg_ops *reg = rxfer_reg_find(strategy);

	return reg ? reg->engine : "";
}

int rxfer_strategy_maps(const char *strategy, bool rounds)
{
	const struct rxfer_reg_ops *reg = rxfer_reg_find(strategy);
	const char *why;

	if (!reg)
		return -ENOENT;
	why = reg->no_map || !rounds ? reg->no_map : reg->no_rounds;
	return why ? rxfer_fail(EOPNOTSUPP, "%s %s", reg->name, why) : 0;
}

bool rxfer_strategy_keys_vary(const char *strategy)
{
	const struct rxfer_reg_ops *reg = rxfer_reg_find(strategy);

	return reg && (reg->keys_vary || reg->revokes != RXFER_REVOKES(NONE));
}

bool rxfer_strategy_on_demand(const char *strategy)
{
	const struct rxfer_reg_ops *reg = rxfer_reg_find(strategy);

	return reg && reg->prefetch;
}

bool rxfer_strategy_caches(const char *strategy)
{
	const struct rxfer_reg_ops *reg = rxfer_reg_find(strategy);

	return reg && reg->forget;
}

bool rxfer_strategy_by_wr(const char *strategy)
{
	const struct rxfer_reg_ops *reg = rxfer_reg_find(strategy);

	return reg && reg->by_wr;
}

bool rxfer_strategy_copies(const char *strategy)
{
	const struct rxfer_reg_ops *reg = rxfer_reg_find(strategy);

	return reg && reg->copies;
}

uint64_t rxfer_strategy_memory(const char *strategy, const struct rxfer_conn_attr *attr)
{
	const struct rxfer_reg_ops *reg = rxfer_reg_find(strategy);

	return reg && reg->memory ? reg->memory(attr) : 0;
}

bool rxfer_strategy_on_qp(const char *strategy)
{
	const struct rxfer_reg_ops *reg = rxfer_reg_find(strategy);

	return reg && reg->on_qp;
}

uint32_t rxfer_send_messages(const char *strategy, uint32_t frags)
{
	const struct rxfer_reg_ops *reg = rxfer_reg_find(strategy);

	if (!reg || reg->sge_per_wr == 0)
		return 1;
	return rxfer_cut_worst(frags, 0, reg->sge_per_wr, 0, UINT32_MAX);
}

static const char *const revoke_names[] = {
	[RXFER_REVOKE_NONE] = "none",	[RXFER_REVOKE_SYNC] = "sync",
	[RXFER_REVOKE_ASYNC] = "async", [RXFER_REVOKE_REMOTE] = "remote",
	[RXFER_REVOKE_LAZY] = "lazy",	[RXFER_REVOKE_AUTO] = "auto",
};

const char *rxfer_revoke_name(unsigned int mode)
{
	return mode <= RXFER_REVOKE_AUTO ? revoke_names[mode] : NULL;
}

static bool has_revoke(const struct rxfer_reg_ops *reg, enum rxfer_revoke mode)
{
	return reg->revokes & 1u << mode;
}

int rxfer_strategy_revokes(const char *strategy, enum rxfer_revoke mode)
{
	const struct rxfer_reg_ops *reg = rxfer_reg_find(strategy);

	if (!reg)
		return -ENOENT;
	if (mode == RXFER_REVOKE_AUTO || has_revoke(reg, mode))
		return 0;
	return rxfer_fail(EOPNOTSUPP, "%s %s", reg->name, reg->no_revoke[mode]);
}

int rxfer_revoke_resolve(const char *strategy, enum rxfer_revoke mode, unsigned int rights,
			 enum rxfer_revoke *out)
{
	enum rxfer_revoke wanted = rights & RXFER_EXPOSE_WRITE ? RXFER_REVOKE_SYNC
							       : RXFER_REVOKE_ASYNC;
	const struct rxfer_reg_ops *reg = rxfer_reg_find(strategy);

	if (!reg)
		return -ENOENT;
	if (mode == RXFER_REVOKE_AUTO)
		mode = reg->revokes == RXFER_REVOKES(NONE) ? RXFER_REVOKE_NONE : wanted;
	if (!has_revoke(reg, mode))
		return rxfer_fail(EOPNOTSUPP, "%s %s", reg->name, reg->no_revoke[mode]);
	*out = mode;
	return 0;
}

int rxfer_reg_always(const struct rxfer_dev *dev)
{
	(void)dev;
	return 0;
}

int rxfer_reg_mem_whole(struct rxfer_dev *dev, struct rxfer_mem *mem)
{
	(void)dev;
	return rxfer_mem_register(mem);
}

void rxfer_reg_mem_drop(struct rxfer_dev *dev, struct rxfer_mem *mem)
{
	(void)dev;
	rxfer_mem_unregister(mem);
}

int rxfer_reg_mem_nothing(struct rxfer_dev *dev, struct rxfer_mem *mem)
{
	(void)dev;
	(void)mem;
	return 0;
}

void rxfer_reg_mem_del_nothing(struct rxfer_dev *dev, struct rxfer_mem *mem)
{
	(void)dev;
	(void)mem;
}

int rxfer_reg_open_nothing(struct rxfer_conn *conn)
{
	(void)conn;
	return 0;
}

void rxfer_reg_close_nothing(struct rxfer_conn *conn)
{
	(void)conn;
}

struct rxfer_need rxfer_reg_need_nothing(const struct rxfer_shape *shape, enum rxfer_revoke revoke)
{
	(void)shape;
	(void)revoke;
	return (struct rxfer_need){0, 0};
}

int rxfer_reg_unmap_nothing(struct rxfer_conn *conn, struct rxfer_io *io)
{
	(void)conn;
	(void)io;
	return 0;
}

int rxfer_reg_expose_nothing(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	(void)conn;
	(void)x;
	return 0;
}

void rxfer_reg_unexpose_nothing(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	(void)conn;
	(void)x;
}

int rxfer_reg_revoke_refused(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	(void)x;
	return rxfer_strategy_revokes(conn->reg->name, RXFER_REVOKE_SYNC);
}

int rxfer_reg_replied_nothing(struct rxfer_conn *conn, struct rxfer_exposure *x)
{
	(void)conn;
	(void)x;
	return 0;
}

int rxfer_reg_map_whole(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *frag,
			uint32_t n)
{
	const struct rxfer_mem *mem = &conn->dev->nowhere;

	for (uint32_t i = 0; i < n; i++) {
		mem = rxfer_reg_holder(conn->dev, mem, frag[i].addr, frag[i].len);
		if (!mem)
			return rxfer_fail(
				EFAULT,
				"memory at %p, %u bytes, is not registered: declare it by rxfer_mem_add()",
				frag[i].addr, frag[i].len);
		io->range[i] = (struct rxfer_seg){
			.addr = (uintptr_t)frag[i].addr,
			.len = frag[i].len,
			.key = mem->lkey,
		};
	}
	io->nrange = n;
	return 0;
}

int rxfer_reg_map_runs(struct rxfer_conn *conn, struct rxfer_io *io, const struct rxfer_frag *frag,
		       uint32_t n)
{
	uint32_t runs = rxfer_reg_runs(frag, n, io->range);
	const struct rxfer_mem *mem = &conn->dev->nowhere;

	for (uint32_t i = 0; i < runs; i++) {
		struct rxfer_seg *r = &io->range[i];

		mem = rxfer_reg_holder(conn->dev, mem, (void *)(uintptr_t)r->addr, r->len);
		if (!mem)
			return rxfer_fail(
				EFAULT,
				"memory at %#llx, %u bytes, was not declared by rxfer_mem_add()",
				(unsigned long long)r->addr, r->len);
		r->key = mem->lkey;
	}
	io->nrange = runs;
	return 0;
}
