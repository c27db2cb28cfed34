/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Page faults that a device has counted, out of the kernel's messages. See faults.c. */
#ifndef RXFER_FAULTS_H
#define RXFER_FAULTS_H

#include <stddef.h>
#include <stdint.h>

/* struct rxfer_faults - @faults, in all @regions that have such a count. */
struct rxfer_faults {
	uint64_t faults, regions;
};

/**
 * rxfer_faults_add() - add up what is in the @len bytes of netlink messages. Returns 1: more are to
 * come; 0: that was all; -EBADMSG: that is no answer to the question; or the kernel's -errno.
 */
int rxfer_faults_add(const void *messages, size_t len, struct rxfer_faults *sum);

/** rxfer_faults_of() - of the device with that index (ibv_get_device_index(3)); all 0 where nobody
 * counts, or tells. */
struct rxfer_faults rxfer_faults_of(int index);

#endif
