/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Layout of an end's memory, and the memory itself. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "memory.h"
#include "place.h"

#define PAGE 4096u

static size_t whole_pages(size_t n)
{
	return (n + PAGE - 1) / PAGE * PAGE;
}

void layout_make(const struct cfg *cfg, struct layout *out)
{
	*out = (struct layout){
		.slot = whole_pages(cfg->misalign + cfg->size + (cfg->frags - 1) * cfg->frag_gap),
		.target = whole_pages(cfg->misalign + cfg->size) + (cfg->verify ? TARGET_SLACK : 0),
		.messages = cfg->op == OP_WRITE_IMM
				    ? 1
				    : rxfer_send_messages(cfg->strategy, (uint32_t)cfg->frags),
	};
	out->message = whole_pages(cfg->misalign + (cfg->size + out->messages - 1) / out->messages);
	out->recvs = 2 * (uint32_t)cfg->depth * out->messages;
}

/* Touching and registering: slow machines manage 64 MiB a second. */
uint64_t layout_allowance(const struct cfg *cfg, const struct layout *l)
{
	double bytes =
		(double)cfg->qps * ((double)cfg->depth * ((double)l->slot + (double)l->target) +
				    (double)l->recvs * (double)l->message);

	if (cfg->mode == MODE_RPC) /* the server's places, twice as many, and requests */
		bytes = (double)cfg->qps * (double)cfg->depth *
			(3.0 * (double)l->slot + (double)cfg->size);
	if (rxfer_strategy_copies(cfg->strategy))
		bytes += (double)cfg->qps * (double)cfg->depth * (double)cfg->size;
	if (cfg->mode == MODE_RPC && rxfer_strategy_copies(cfg->peer_strategy))
		bytes += (double)cfg->qps * 4.0 * (double)(cfg->depth + 1) * (double)cfg->size;
	return (uint64_t)(bytes / (64 << 20) * 1e9);
}

void layout_frags(const struct cfg *cfg, void *base, struct rxfer_frag *out)
{
	uint64_t each = cfg->size / cfg->frags, longer = cfg->size % cfg->frags;
	char *at = (char *)base + cfg->misalign;

	for (uint64_t i = 0; i < cfg->frags; i++) {
		out[i] = (struct rxfer_frag){at, (uint32_t)(each + (i < longer))};
		at += out[i].len + cfg->frag_gap;
	}
}

void layout_regions(const struct cfg *cfg, uint64_t *runs, uint64_t *bytes)
{
	uint64_t each = cfg->size / cfg->frags, longer = cfg->size % cfg->frags, at = cfg->misalign;

	*runs = *bytes = 0;
	for (uint64_t i = 0; i < cfg->frags; i++) {
		uint64_t from = at / PAGE * PAGE;

		at += cfg->frag_gap ? each + (i < longer) : cfg->size;
		*bytes += whole_pages(at) - from;
		*runs += 1;
		if (!cfg->frag_gap)
			break;
		at += cfg->frag_gap;
	}
}

void need_add(struct need *n, uint64_t kind, uint64_t len)
{
	uint64_t bytes = pages_rounded(kind, len);

	n->all += bytes;
	if (!pages_pooled(kind))
		n->plain += bytes;
}

/* Without a look at it, a run would end in the OOM killer. */
uint64_t memory_available(void)
{
	unsigned long long kib = 0;
	uint64_t bound = place_available(), all;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	if (!f)
		return bound;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	fclose(f);
	all = kib ? kib * 1024 : UINT64_MAX;
	return all < bound ? all : bound;
}

int memory_fits(uint64_t len)
{
	uint64_t available;

	if (len == 0)
		return 0;
	available = memory_available();
	if (len <= available / 4 * 3)
		return 0;
	return rxfer_fail(
		ENOMEM,
		"%s of memory are needed at once and %s are available: use less (--depth, --size, --qps)",
		rxfer_size(len).s, rxfer_size(available).s);
}

static int make(struct rxfer_dev *dev, const struct pages_ask *ask, size_t len, unsigned int rights,
		struct area *out)
{
	int rc;

	*out = (struct area){0};
	if (len == 0)
		return 0;
	rc = pages_pooled(ask->kind) ? 0 : memory_fits(len); /* that pool is another one */
	if (!rc)
		rc = pages_map(ask, len, &out->pages);
	if (rc)
		return rc;
	out->base = out->pages.base;
	out->len = len;
	rc = rxfer_mem_add(dev, out->base, len, rights, &out->mem);
	if (rc) {
		pages_unmap(&out->pages);
		*out = (struct area){0};
	}
	return rc;
}

int area_make(struct rxfer_dev *dev, size_t len, unsigned int rights, struct area *out)
{
	return make(dev, &(struct pages_ask){MEM_ANON, true, NULL}, len, rights, out);
}

int area_make_io(struct rxfer_dev *dev, const struct cfg *cfg, size_t len, unsigned int rights,
		 struct area *out)
{
	const struct pages_ask ask = {cfg->mem, cfg->prefault == PREFAULT_YES, cfg->mem_file};

	return make(dev, &ask, len, rights, out);
}

void area_drop(struct area *a)
{
	rxfer_mem_del(a->mem);
	pages_unmap(&a->pages);
	*a = (struct area){0};
}
