/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of rxfer.h about registrations that a strategy keeps for later I/Os. Included by it. */
#ifndef RXFER_CACHE_H
#define RXFER_CACHE_H

#include "rxfer.h"

/** rxfer_strategy_caches() - does it keep registrations for later I/Os, within limits? */
bool rxfer_strategy_caches(const char *strategy);

/*
 * struct rxfer_cache_limits - of all that is registered so on a device. What is in use stays, so it
 * is more for a while where I/Os in flight need more.
 * @regions: 1 or more
 * @bytes:   whole pages; 0: no limit but the device's
 * @merge:   a new region takes in those that it adjoins: fewer regions, larger ones, and each miss
 *           registers its neighbours anew
 */
struct rxfer_cache_limits {
	uint32_t regions;
	uint64_t bytes;
	bool merge;
};

/** rxfer_dev_cache() - set them, before the first connection. Else 1024 regions of any size. What
 * strategies have no cache do not care. */
void rxfer_dev_cache(struct rxfer_dev *dev, const struct rxfer_cache_limits *limits);

/**
 * rxfer_mem_forget() - the caller is about to unmap, or use for something else, that part of
 * declared memory: what is cached of it is not used for another I/O, and deregistered now or when
 * the last I/O on it is done. It stays declared. Where nothing is cached there is nothing to do:
 * memory that is registered whole stays so until rxfer_mem_del().
 * Returns 0, or -errno where the device keeps a region.
 */
int rxfer_mem_forget(struct rxfer_dev *dev, const void *addr, size_t len);

#endif
