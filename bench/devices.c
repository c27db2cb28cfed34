/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rxfer-bench devices: what there is, and what it can. No line is above 100 columns. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "command.h"

#define COLUMNS 98
#define INDENT	14

/* Words one after the other, each in one piece, broken into lines behind an indented label. */
struct words {
	unsigned int at;
};

static void begin(struct words *w, const char *label)
{
	printf("  %-*s", INDENT - 2, label);
	w->at = INDENT;
}

static void add(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct words *w, const char *format, ...)
{
	char word[640];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(word, sizeof(word), format, args);
	va_end(args);
	if (n < 0)
		return;
	if (w->at > INDENT && w->at + 2 + (unsigned int)n > COLUMNS) {
		printf(",\n%*s", INDENT, "");
		w->at = INDENT;
	} else if (w->at > INDENT) {
		fputs(", ", stdout);
		w->at += 2;
	}
	fputs(word, stdout);
	w->at += (unsigned int)n;
}

/* Text of any length, broken at blanks. */
static void prose(const char *text)
{
	unsigned int at = INDENT;

	while (*text) {
		unsigned int n = (unsigned int)strcspn(text, " ");

		if (at > INDENT && at + 1 + n > COLUMNS) {
			printf("\n%*s", INDENT, "");
			at = INDENT;
		} else if (at > INDENT) {
			putchar(' ');
			at++;
		}
		printf("%.*s", (int)n, text);
		at += n;
		text += n + (text[n] == ' ');
	}
	putchar('\n');
}

static void print_identity(const struct rxfer_dev_info *d)
{
	struct words w;

	begin(&w, "device");
	add(&w, "%s", d->transport[0] ? d->transport : "transport unknown");
	add(&w, "driver %s%s", d->driver[0] ? d->driver : "unknown",
	    d->software ? " (software RDMA)" : "");
	add(&w, "firmware %s", d->fw[0] ? d->fw : "unknown");
	if (d->numa_node >= 0)
		add(&w, "NUMA node %d", d->numa_node);
	else
		add(&w, "NUMA node unknown");
	putchar('\n');
}

static void print_port(const struct rxfer_dev_info *d)
{
	char label[16];
	struct words w;

	snprintf(label, sizeof(label), "port %u", d->port);
	begin(&w, label);
	add(&w, "%s%s%s%s", d->state, d->phys[0] ? " (" : "", d->phys, d->phys[0] ? ")" : "");
	add(&w, "MTU %u of %u", d->mtu, d->max_mtu);
	add(&w, "interface %s", d->netdev[0] ? d->netdev : "none");
	add(&w, "address %s", d->addr[0] ? d->addr : "none");
	putchar('\n');
}

static void print_limits(const struct rxfer_dev_info *d)
{
	const struct {
		const char *name;
		uint64_t value;
	} limits[] = {
		{"max_qp", d->max_qp},
		{"max_qp_wr", d->max_qp_wr},
		{"max_cq", d->max_cq},
		{"max_cqe", d->max_cqe},
		{"max_sge", d->max_sge},
		{"max_sge_rd", d->max_sge_rd},
		{"max_rd_atomic", d->max_rd_atomic},
		{"max_mr", d->max_mr},
		{"max_mr_size", d->max_mr_size},
		{"max_mw", d->max_mw},
		{"max_msg_sz", d->max_msg_size},
	};
	struct words w;

	begin(&w, "limits");
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		add(&w, "%s %llu", limits[i].name, (unsigned long long)limits[i].value);
	putchar('\n');
}

static void print_gids(const struct rxfer_dev_info *d)
{
	struct rxfer_gid *gids;
	unsigned int n;

	if (rxfer_dev_gids(d->name, &gids, &n)) {
		printf("  %-*s", INDENT - 2, "GIDs");
		prose(rxfer_error());
		return;
	}
	if (n == 0)
		printf("  %-*snone\n", INDENT - 2, "GIDs");
	for (unsigned int i = 0; i < n; i++) {
		printf("  %-*s", INDENT - 2, i ? "" : "GIDs");
		if (gids[i].port != 1)
			printf("port %u ", gids[i].port);
		printf("%-3u %-8s %s\n", gids[i].index, gids[i].type, gids[i].addr);
	}
	free(gids);
}

/* Each is tried. */
static void print_strategies(const struct rxfer_dev_info *d)
{
	const char *name;
	char line[640];

	for (unsigned int i = 0; (name = rxfer_strategy_name(i)); i++) {
		int rc = rxfer_dev_try(d->name, name);

		snprintf(line, sizeof(line), "%s: %s%s", name, rc ? "no: " : "yes",
			 rc ? rxfer_error() : "");
		printf("  %-*s", INDENT - 2, i ? "" : "strategies");
		prose(line);
	}
}

/* Why no run can be made on it, if so. */
static void print_verdict(const struct rxfer_dev_info *d)
{
	if (d->active && d->addr[0])
		return;
	printf("  %-*s", INDENT - 2, "runs");
	prose(!d->active
		      ? "no: its port is not active: bring its link up"
		      : "no: no IP address, and rdma_cm connects by one: give its interface one");
}

static void print_device(const struct rxfer_dev_info *d)
{
	printf("%s\n", d->name);
	if (d->trouble[0]) {
		printf("  %-*s", INDENT - 2, "trouble");
		prose(d->trouble);
		return;
	}
	print_identity(d);
	print_port(d);
	print_limits(d);
	print_gids(d);
	print_strategies(d);
	print_verdict(d);
}

static void print_summaries(void)
{
	const char *name;

	printf("\nstrategies:\n");
	for (unsigned int i = 0; (name = rxfer_strategy_name(i)); i++)
		printf("  %-12s %s\n", name, rxfer_strategy_summary(i));
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
		if (shown++)
			putchar('\n');
		print_device(&list[i]);
	}
	free(list);
	if (!shown) {
		struct rxfer_dev_info info;

		check_device(cfg.device, &info); /* for its words: none, or none of that name */
		return EXIT_RUN_FAILED;
	}
	print_summaries();
	return 0;
}
