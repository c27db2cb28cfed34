/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What either end of a session needs before a run: its device, what its data connections are to be
 * like, memory for the peer. */
#include <errno.h>
#include <string.h>
#include "load_rpc.h"
#include "pattern.h"
#include "session.h"

/* ---- Data connections ---- */

/* A note needs no slot, so who only receives has none in use; its send queue is for notes. */
#define PASSIVE_SLOTS 4

static int issuer_attr(const struct cfg *cfg, struct rxfer_conn_attr *attr)
{
	attr->slots = (uint32_t)cfg->depth;
	attr->sq_depth = (uint32_t)cfg->sq_depth;
	attr->sge_max = (uint32_t)cfg->max_sge;
	attr->inline_max = (uint32_t)cfg->inline_max;
	attr->post_single = cfg->post == POST_SINGLE;
	attr->time_phases = cfg->timing == TIMING_PHASES;
	attr->shape = (struct rxfer_shape){run_opcode(cfg), cfg->size, (uint32_t)cfg->frags,
					   cfg->op == OP_SEND ? 0 : 1};
	return rxfer_sig_parse(cfg->signal, &attr->sig, &attr->sig_arg);
}

static const char *strategy_of(const struct cfg *cfg, struct roles roles)
{
	if (roles.issues)
		return cfg->strategy;
	return cfg->mode == MODE_RPC ? cfg->peer_strategy : "global";
}

static int attr_of(const struct cfg *cfg, const struct layout *layout, struct roles roles,
		   struct rxfer_conn_attr *attr)
{
	if (cfg->mode == MODE_RPC)
		return rpc_conn_attr(cfg, roles.receives, attr);
	attr->rq_depth = sink_recvs(cfg, layout, roles);
	if (roles.issues)
		return issuer_attr(cfg, attr);
	attr->slots = PASSIVE_SLOTS;
	attr->shape = (struct rxfer_shape){RXFER_SEND, 1, 1, .fixed = 1};
	return rxfer_sig_parse("half", &attr->sig, &attr->sig_arg);
}

int conn_attr(const struct cfg *cfg, const struct layout *layout, struct roles roles,
	      const uint8_t token[RXFER_TOKEN_BYTES], uint64_t qp, struct rxfer_conn_attr *attr)
{
	int rc;

	*attr = (struct rxfer_conn_attr){.rnr_retry = (uint8_t)cfg->rnr_retry,
					 .rd_atomic = (uint32_t)cfg->rd_atomic,
					 .sl = (uint8_t)cfg->sl,
					 .prefetch = cfg->odp_prefetch == ODP_PREFETCH_IO,
					 .index = (uint16_t)qp};
	memcpy(attr->token, token, RXFER_TOKEN_BYTES);
	rc = attr_of(cfg, layout, roles, attr);
	return rc ? rc : memory_fits(rxfer_strategy_memory(strategy_of(cfg, roles), attr));
}

/* Where an end's own transfers are with memory that its strategy has to make usable. */
static bool maps(const struct cfg *cfg, struct roles roles)
{
	struct rpc_plan plan;

	if (cfg->mode != MODE_RPC)
		return roles.issues;
	rpc_plan_make(cfg, &plan);
	return roles.receives ? plan.moves : plan.carries;
}

/* Does --odp-prefetch mean anything in this run, and can the end with this strategy do its part? */
static int can_prefetch(const struct cfg *cfg, const char *strategy, struct rxfer_dev *dev)
{
	if (cfg->odp_prefetch == ODP_PREFETCH_OFF)
		return 0;
	if (rxfer_strategy_on_demand(strategy))
		return rxfer_dev_prefetch(dev);
	if (rxfer_strategy_on_demand(cfg->strategy) ||
	    (cfg->mode == MODE_RPC && rxfer_strategy_on_demand(cfg->peer_strategy)))
		return 0;
	return rxfer_fail(EOPNOTSUPP,
			  "--odp-prefetch io is for memory paged on demand, and %s pins it",
			  cfg->strategy);
}

/* What one I/O needs at once is never given up: a smaller cache would not be one. */
static int cache_fits(const struct cfg *cfg, const char *strategy)
{
	uint64_t regions, bytes;

	if (!rxfer_strategy_caches(strategy))
		return 0;
	layout_regions(cfg, &regions, &bytes);
	if (regions > cfg->rcache_max)
		return rxfer_fail(
			EINVAL,
			"an I/O needs %s at once, and --rcache-max %llu allows fewer: make it %llu or more, or take fewer --frags",
			rxfer_count(regions, "region").s, (unsigned long long)cfg->rcache_max,
			(unsigned long long)regions);
	if (cfg->rcache_max_bytes && bytes > cfg->rcache_max_bytes)
		return rxfer_fail(
			EINVAL,
			"an I/O needs regions of %llu bytes, in whole pages, and --rcache-max-bytes %llu allows fewer: make it %llu or more, or take a smaller --size",
			(unsigned long long)bytes, (unsigned long long)cfg->rcache_max_bytes,
			(unsigned long long)bytes);
	return 0;
}

/* What over iWARP needs a strategy that does not leave it open. */
static bool reads(const struct cfg *cfg, struct roles roles)
{
	if (cfg->mode != MODE_RPC)
		return roles.issues && cfg->op == OP_READ;
	return roles.receives && rpc_reads(cfg);
}

int run_device(const struct cfg *cfg, const char *name, struct roles roles, struct rxfer_dev **out)
{
	enum rxfer_opcode op = run_opcode(cfg);
	const char *strategy = strategy_of(cfg, roles);
	const struct rxfer_cache_limits limits = {(uint32_t)cfg->rcache_max, cfg->rcache_max_bytes,
						  cfg->rcache_merge};
	int rc = maps(cfg, roles) ? rxfer_strategy_maps(strategy, !roles.issues) : 0;

	if (!rc)
		rc = rxfer_dev_open(name, strategy, out);
	if (!rc && reads(cfg, roles) && !cfg->unsafe_global_sink)
		rc = rxfer_dev_sink_bound(*out);
	if (!rc)
		rc = can_prefetch(cfg, strategy, *out);
	if (!rc) {
		rxfer_dev_cache(*out, &limits);
		rc = cache_fits(cfg, strategy);
	}
	if (cfg->mode == MODE_RPC && cfg->reply == REPLY_IMM)
		op = RXFER_WRITE_IMM;
	return rc ? rc : rxfer_dev_can(*out, op);
}

int message_possible(const struct cfg *cfg, const struct rxfer_dev *dev)
{
	const struct rxfer_dev_info *info = rxfer_dev_info(dev);

	if (cfg->size <= info->max_msg_size || !info->max_msg_size)
		return 0;
	return rxfer_fail(
		EMSGSIZE, "--size %llu is more than one message on %s can carry (max_msg_sz %llu)",
		(unsigned long long)cfg->size, info->name, (unsigned long long)info->max_msg_size);
}

/* READs and WRITEs are split; a SEND is one message, whoever has the data in it. */
int conn_possible(const struct cfg *cfg, const struct rxfer_dev *dev)
{
	const struct rxfer_conn_attr attr = {.rd_atomic = (uint32_t)cfg->rd_atomic,
					     .sl = (uint8_t)cfg->sl};
	int rc = cfg->mode == MODE_RPC ? rpc_possible(cfg, rxfer_dev_info(dev))
		 : cfg->op == OP_SEND  ? message_possible(cfg, dev)
				       : 0;

	if (!rc)
		rc = rxfer_dev_room(dev, cfg->qps, 1);
	return rc ? rc : rxfer_conn_check(dev, &attr);
}

/* ---- Memory for the peer ---- */

#define EMPTY_RECV 8 /* bytes behind RECVs that no byte ever comes to */

/* Who writes also reads: what arrived, to check it; over iWARP, that it arrived. */
static unsigned int target_rights(const struct cfg *cfg, const struct rxfer_dev *dev)
{
	if (cfg->op == OP_READ)
		return RXFER_PEER_READ;
	if (cfg->verify || is_iwarp(rxfer_dev_info(dev)))
		return RXFER_PEER_WRITE | RXFER_PEER_READ;
	return RXFER_PEER_WRITE;
}

static uint64_t recv_bytes(const struct cfg *cfg, const struct layout *layout, struct roles roles)
{
	uint64_t recvs = cfg->qps * sink_recvs(cfg, layout, roles);

	if (cfg->mode == MODE_RPC) /* its load has its own memory */
		return 0;
	if (sink_takes_bytes(cfg, roles))
		return recvs * layout->message;
	return recvs ? EMPTY_RECV : 0;
}

static uint64_t target_bytes(const struct cfg *cfg, const struct layout *layout, struct roles roles)
{
	bool has = cfg->mode == MODE_DIRECT && roles.receives && cfg->op != OP_SEND;

	return has ? cfg->qps * cfg->depth * layout->target : 0;
}

void exposed_need(const struct cfg *cfg, const struct layout *layout, struct roles roles,
		  struct need *n)
{
	need_add(n, sink_takes_bytes(cfg, roles) ? cfg->mem : (uint64_t)MEM_ANON,
		 recv_bytes(cfg, layout, roles));
	need_add(n, cfg->mem, target_bytes(cfg, layout, roles));
}

int exposed_make(const struct cfg *cfg, const struct layout *layout, struct roles roles,
		 struct rxfer_dev *dev, struct exposed *out)
{
	uint64_t recv = recv_bytes(cfg, layout, roles);
	int rc;

	*out = (struct exposed){0};
	if (sink_takes_bytes(cfg, roles))
		rc = area_make_io(dev, cfg, recv, RXFER_FIXED, &out->recv);
	else
		rc = area_make(dev, recv, RXFER_FIXED, &out->recv);
	if (!rc)
		rc = area_make_io(dev, cfg, target_bytes(cfg, layout, roles),
				  target_rights(cfg, dev), &out->target);
	if (!rc && out->target.len && cfg->op == OP_READ && cfg->verify)
		pattern_fill(out->target.base, out->target.len, 0, 0);
	return rc;
}

void exposed_drop(struct exposed *e)
{
	area_drop(&e->target);
	area_drop(&e->recv);
}

struct target exposed_target(const struct exposed *e)
{
	if (!e->target.len)
		return (struct target){0};
	return (struct target){(uintptr_t)e->target.base, e->target.len,
			       rxfer_mem_rkey(e->target.mem)};
}
