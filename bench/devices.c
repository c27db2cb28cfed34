/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rxfer-bench devices: what there is, and what it can. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "command.h"

static void print_device(const struct rxfer_dev_info *d)
{
	printf("%-12s %-10s %-9s %-12s %-6s %-16s %s\n", d->name, d->driver[0] ? d->driver : "-",
	       d->transport[0] ? d->transport : "-", d->state, d->netdev[0] ? d->netdev : "-",
	       d->addr[0] ? d->addr : "-", d->software ? "software RDMA" : d->fw);
	printf("%-12s mtu %u, max: qp %u, send entries %u, cq %u, cqe %u, sge %u (read %u), reads in flight %u, mr %u, windows %u, message %llu\n",
	       "", d->mtu, d->max_qp, d->max_qp_wr, d->max_cq, d->max_cqe, d->max_sge,
	       d->max_sge_rd, d->max_rd_atomic, d->max_mr, d->max_mw,
	       (unsigned long long)d->max_msg_size);
}

static void print_strategies(void)
{
	const char *name;

	printf("\nstrategies:\n");
	for (unsigned int i = 0; (name = rxfer_strategy_name(i)); i++)
		printf("  %-10s %s\n", name, rxfer_strategy_summary(i));
}

int command_devices(const struct opts *o, const struct runtime *runtime)
{
	struct rxfer_dev_info *list;
	struct cfg cfg;
	unsigned int n, shown = 0;

	(void)runtime;
	opts_first(o, &cfg);
	if (rxfer_dev_list(&list, &n)) {
		complain("%s", rxfer_error());
		return EXIT_RUN_FAILED;
	}
	for (unsigned int i = 0; i < n; i++) {
		if (cfg.device[0] && strcmp(cfg.device, list[i].name))
			continue;
		if (!shown++)
			printf("%-12s %-10s %-9s %-12s %-6s %-16s %s\n", "device", "driver",
			       "transport", "state", "netdev", "address", "firmware");
		print_device(&list[i]);
	}
	free(list);
	if (!shown) {
		struct rxfer_dev_info info;

		check_device(cfg.device, &info); /* for its words: none, or none of that name */
		return EXIT_RUN_FAILED;
	}
	print_strategies();
	return 0;
}
