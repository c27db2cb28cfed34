/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RPC mode, what both ends work out of the options: messages, queues, memory. */
#include <errno.h>
#include "load_rpc.h"

/* Message buffers begin at a cache line of their own. */
static size_t room(uint32_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

static bool fits_inline(const struct cfg *cfg)
{
	return cfg->op != OP_SEND && cfg->size && cfg->size <= cfg->inline_threshold;
}

/* A small read's data go with the request, as a send's do; a small write's come with the reply. */
static void plan_inline(const struct cfg *cfg, struct rpc_plan *p)
{
	p->limits.inline_max = (uint32_t)cfg->size;
	p->carries = cfg->op != OP_WRITE;
	p->brings = cfg->op == OP_WRITE;
	p->limits.op = p->brings ? RPC_WRITE : RPC_SEND;
	p->limits.flags = p->brings ? RPC_DATA_BACK : 0;
}

static void plan_moves(const struct cfg *cfg, struct rpc_plan *p)
{
	p->moves = true;
	p->limits.segs = rxfer_strategy_copies(cfg->strategy) ? 1 : p->frags;
	p->wrs = rxfer_strategy_copies(cfg->peer_strategy) ? p->limits.segs : p->frags;
	p->imm = cfg->reply == REPLY_IMM;
	p->invalidates = cfg->revoke == RXFER_REVOKE_REMOTE;
	p->limits.flags = (p->imm ? RPC_REPLY_IMM : 0) | (p->invalidates ? RPC_INVALIDATE : 0);
}

/*
 * The server has twice as many places as there are slots, as a target of NVMe over Fabrics does:
 * the replies of the last requests need not be proven when the next ones arrive.
 */
void rpc_plan_make(const struct cfg *cfg, struct rpc_plan *p)
{
	static const enum rpc_op op[] = {
		[OP_READ] = RPC_READ, [OP_WRITE] = RPC_WRITE, [OP_SEND] = RPC_SEND};

	*p = (struct rpc_plan){
		.limits = {.slots = (uint32_t)cfg->depth, .bytes = cfg->size, .op = op[cfg->op]},
		.frags = (uint32_t)cfg->frags,
		.places = 2 * (uint32_t)cfg->depth,
	};
	if (cfg->size == 0)
		p->frags = 1; /* of no bytes, and never looked at */
	else if (cfg->op == OP_SEND || fits_inline(cfg))
		plan_inline(cfg, p);
	else
		plan_moves(cfg, p);
	p->runs = cfg->frag_gap && !rxfer_strategy_copies(cfg->strategy) ? p->frags : 1;
	p->request = rpc_request_bytes(p->limits.segs, p->carries ? (uint32_t)cfg->size : 0);
	p->reply = rpc_reply_bytes(p->brings ? (uint32_t)cfg->size : 0);
	p->request_room = room(p->request);
	p->reply_room = room(p->reply);
}

static int check_message(const struct rxfer_dev_info *dev, const char *what, uint32_t bytes)
{
	if (bytes <= dev->max_msg_size || !dev->max_msg_size)
		return 0;
	return rxfer_fail(
		EMSGSIZE,
		"a %s of %u bytes is more than one message on %s can carry (max_msg_sz %llu): use a smaller --size, or fewer --frags",
		what, bytes, dev->name, (unsigned long long)dev->max_msg_size);
}

int rpc_possible(const struct cfg *cfg, const struct rxfer_dev_info *dev)
{
	struct rpc_plan p;
	int rc;

	rpc_plan_make(cfg, &p);
	rc = check_message(dev, "request", p.request);
	return rc ? rc : check_message(dev, "reply", p.reply);
}

unsigned int rpc_rights(const struct rpc_plan *plan)
{
	if (!plan->moves)
		return 0;
	return plan->limits.op == RPC_READ ? RXFER_EXPOSE_READ : RXFER_EXPOSE_WRITE;
}

bool rpc_reads(const struct cfg *cfg)
{
	struct rpc_plan p;

	rpc_plan_make(cfg, &p);
	return p.moves && p.limits.op == RPC_READ;
}

const char *rpc_peer_strategy(const struct cfg *cfg, const struct rxfer_dev_info *dev)
{
	if (cfg->peer_strategy[0])
		return cfg->peer_strategy;
	return rpc_reads(cfg) && is_iwarp(dev) ? "bounce" : "global";
}

int rpc_revoke(const struct cfg *cfg, enum rxfer_revoke *out)
{
	struct rpc_plan p;

	rpc_plan_make(cfg, &p);
	*out = RXFER_REVOKE_NONE;
	if (!p.moves)
		return rxfer_strategy_revokes(cfg->strategy, (enum rxfer_revoke)cfg->revoke);
	return rxfer_revoke_resolve(cfg->strategy, (enum rxfer_revoke)cfg->revoke, rpc_rights(&p),
				    out);
}

/* ---- Queues ---- */

/* Posts in flight: of each slot its request, and its revoke. */
static int client_attr(const struct cfg *cfg, const struct rpc_plan *p,
		       struct rxfer_conn_attr *attr)
{
	int rc = rpc_revoke(cfg, &attr->revoke);

	attr->shape = (struct rxfer_shape){.op = RXFER_SEND,
					   .bytes = p->request,
					   .frags = 1 + (p->carries ? p->frags : 0),
					   .exposed = p->moves ? p->runs : 0,
					   .fixed = 1,
					   .exposed_bytes = p->moves ? cfg->size : 0,
					   .rights = rpc_rights(p)};
	attr->ios = attr->revoke == RXFER_REVOKE_NONE ? 0 : 2 * attr->slots;
	attr->one_message = true;
	attr->sq_depth = (uint32_t)cfg->sq_depth;
	return rc ? rc : rxfer_sig_parse(cfg->signal, &attr->sig, &attr->sig_arg);
}

/* Posts in flight: of each place its data and its reply, and of one I/O that goes in rounds a few
 * more. */
static int server_attr(const struct cfg *cfg, const struct rpc_plan *p,
		       struct rxfer_conn_attr *attr)
{
	if (p->moves)
		attr->shape = (struct rxfer_shape){.op = p->limits.op == RPC_READ ? RXFER_READ
										  : RXFER_WRITE,
						   .bytes = cfg->size,
						   .frags = p->frags,
						   .segments = p->limits.segs,
						   .aligned = true};
	else
		attr->shape = (struct rxfer_shape){RXFER_SEND, p->reply, 1, .fixed = 1};
	attr->ios = 2 * p->places + 4;
	attr->reply = p->moves && !p->imm;
	attr->rounds = p->moves;
	attr->peer_options = true;
	attr->sq_depth = (uint32_t)cfg->peer_sq_depth;
	return rxfer_sig_parse(cfg->peer_signal, &attr->sig, &attr->sig_arg);
}

int rpc_conn_attr(const struct cfg *cfg, bool server, struct rxfer_conn_attr *attr)
{
	struct rpc_plan p;

	rpc_plan_make(cfg, &p);
	attr->slots = (uint32_t)cfg->depth;
	attr->rq_depth = (uint32_t)cfg->depth;
	attr->sge_max = (uint32_t)cfg->max_sge;
	attr->inline_max = (uint32_t)cfg->inline_max;
	attr->post_single = cfg->post == POST_SINGLE;
	attr->time_phases = cfg->timing == TIMING_PHASES;
	return server ? server_attr(cfg, &p, attr) : client_attr(cfg, &p, attr);
}

/* ---- Memory ---- */

/* What the server keeps of each I/O beside its bytes. */
static uint64_t place_bytes(const struct rpc_plan *p)
{
	return 1024 + 64ull * p->frags + 16ull * p->limits.segs;
}

void rpc_server_need(const struct cfg *cfg, const struct layout *layout, struct need *n)
{
	struct rxfer_conn_attr attr = {0};
	struct rpc_plan p;
	uint64_t places;

	rpc_plan_make(cfg, &p);
	server_attr(cfg, &p, &attr);
	places = cfg->qps * p.places;
	need_add(n, MEM_ANON, places * p.reply_room);
	need_add(n, p.carries ? cfg->mem : (uint64_t)MEM_ANON,
		 cfg->qps * cfg->depth * p.request_room);
	if (p.moves || p.brings)
		need_add(n, cfg->mem, places * layout->slot);
	need_add(n, MEM_ANON, cfg->qps * rxfer_conn_bytes(&attr) + places * place_bytes(&p));
	need_add(n, MEM_ANON, cfg->qps * rxfer_strategy_memory(cfg->peer_strategy, &attr));
}
