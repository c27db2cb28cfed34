/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What prop_xfer.c draws by lot: how lists are cut, a device, a signalling policy. */
#ifndef RXFER_TESTS_XFER_RANDOM_H
#define RXFER_TESTS_XFER_RANDOM_H

#include <stdio.h>
#include "prop.h"
#include "fakehca/engine.h"

/* Cut @total into @n pieces of at least 1. */
static inline void cut(struct prop *p, uint32_t total, uint32_t n, uint32_t *len)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t left = total - (n - 1 - i);

		len[i] = i == n - 1 ? total : prop_range(p, 1, 1 + (left - 1) / 2);
		total -= len[i];
	}
}

/* Some pieces adjoin, some have a gap between them. */
static inline uint32_t gap(struct prop *p)
{
	return prop_chance(p, 50) ? 0 : prop_range(p, 1, 40);
}

static inline uint32_t most_pieces(struct prop *p, uint32_t shape, uint32_t bytes)
{
	uint32_t n = prop_chance(p, 30) ? shape : prop_range(p, 1, shape);

	return n < bytes ? n : bytes;
}

static inline uint32_t sge_limit(struct prop *p)
{
	return prop_chance(p, 30) ? 30 : prop_range(p, 1, 6);
}

static inline struct fake_config device(struct prop *p)
{
	struct fake_config config = engine_config();
	struct fake_device *d = &config.device[0];

	config.seed = prop_next(p) | 1;
	config.sq_delay = prop_chance(p, 50) ? 0 : prop_range(p, 0, 60);
	config.rq_delay = prop_chance(p, 50) ? 0 : prop_range(p, 0, 60);
	config.read_lag = prop_chance(p, 50) ? 0 : prop_range(p, 0, 30);
	config.sq_extra = prop_chance(p, 50) ? 0 : prop_range(p, 1, 50);
	config.cq_order = (enum fake_cq_order)prop_range(p, FAKE_CQ_WRITTEN, FAKE_CQ_RANDOM);
	d->mtu = 256u << prop_range(p, 0, 4);
	d->max_sge = sge_limit(p);
	d->max_sge_rd = prop_range(p, 1, d->max_sge);
	d->max_rd_atomic = prop_range(p, 1, 8);
	return config;
}

static inline void random_signal(struct prop *p, uint32_t depth, char *text, size_t size)
{
	static const char *const names[] = {"all", "io", "half", "half"};
	uint32_t i = prop_range(p, 0, 4);

	if (i < 4)
		snprintf(text, size, "%s", names[i]);
	else
		snprintf(text, size, "every:%u", prop_range(p, 1, depth));
}

#endif
