/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Under which conditions figures were taken. */
#ifndef BENCH_ENV_H
#define BENCH_ENV_H

#include "result.h"
#include "rxfer.h"

void env_host(char *buf, size_t size);

/** env_boot() - this boot of this machine's id: equal on both sides where they are one machine. */
void env_boot(char *buf, size_t size);

/** env_fill() - device, kernel, host, emulation, version and date of a row. */
void env_fill(struct result *r, const struct rxfer_dev_info *dev);

#endif
