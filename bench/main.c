/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rxfer-bench: the sub-commands. */
#include "config.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "command.h"
#include "topo.h"

static const struct command {
	const char *name;
	unsigned int id;
	int (*run)(const struct opts *o, const struct runtime *runtime);
	const char *synopsis;
	const char *summary;
} commands[] = {
	{"server", CMD_SERVER, command_server, "server [OPTION...]",
	 "wait for clients and serve their runs"},
	{"client", CMD_CLIENT, command_client, "client [OPTION...] HOST",
	 "run against the server at HOST"},
	{"loopback", CMD_LOOPBACK, command_loopback, "loopback [OPTION...]",
	 "run with both ends in this process"},
	{"devices", CMD_DEVICES, command_devices, "devices [OPTION...]",
	 "list RDMA devices and registration strategies"},
	{"probe", CMD_PROBE, command_probe, "probe [OPTION...] [HOST]",
	 "measure what a device grants, takes and costs"},
	{"fence", CMD_FENCE, command_fence, "fence [OPTION...] [HOST]",
	 "try what a peer can do with an I/O's key, and when"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static atomic_int stop; /* sessions' threads look at it, too */

/* The first one ends in order; the second one, of whichever kind, at once, by the default action.
 */
static void on_signal(int number)
{
	stop = number;
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
}

static void set_up_signals(void)
{
	struct sigaction act = {.sa_handler = on_signal};

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	signal(SIGPIPE, SIG_IGN); /* a write says EPIPE instead */
	signal(SIGXFSZ, SIG_IGN); /* EFBIG */
}

static const char *command_word(unsigned int i)
{
	static const char *const words[] = {"help", "--help", "--version"};

	if (i < COMMANDS)
		return commands[i].name;
	return i < COMMANDS + 3 ? words[i - COMMANDS] : NULL;
}

static void print_usage(FILE *out)
{
	fprintf(out, "rxfer-bench " PACKAGE_VERSION
		     ": what registering memory and signalling sends costs over RDMA\n\nusage:\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  rxfer-bench %-26s %s\n", commands[i].synopsis, commands[i].summary);
	fprintf(out, "  rxfer-bench %-26s %s\n", "help [COMMAND]", "this, or a command's options");
	fprintf(out, "  rxfer-bench %-26s %s\n", "--version", "print the version");
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	return NULL;
}

static int unknown(const char *word)
{
	char clean[CLEAN_TEXT];
	const char *near = rxfer_nearest(word, command_word);

	text_clean(word, clean, sizeof(clean));
	if (near)
		complain("no command is called %s; did you mean %s? See rxfer-bench help", clean,
			 near);
	else
		complain("no command is called %s; see rxfer-bench help", clean);
	return EXIT_USAGE;
}

static int print_help(const struct command *c)
{
	printf("usage: rxfer-bench %s\n%s\n\noptions:\n", c->synopsis, c->summary);
	opts_help(c->id, stdout);
	return 0;
}

static int help(const char *about)
{
	const struct command *c = about ? find(about) : NULL;

	if (about && !c)
		return unknown(about);
	if (c)
		return print_help(c);
	print_usage(stdout);
	return 0;
}

static int run(const struct command *c, int argc, char **argv)
{
	struct runtime runtime = {.stop = &stop};
	char error[512];
	struct cfg cfg;
	struct opts o;
	int status;

	if (opts_parse(c->id, argc, argv, &o, error, sizeof(error))) {
		complain("%s", error);
		return EXIT_USAGE;
	}
	set_up_signals();
	opts_first(&o, &cfg);
	runtime.debug = cfg.debug ? rxfer_now() : 0;
	topo_init(&runtime.topo);
	if (!o.want_help && (c->id & (CMD_SERVER | CMD_CLIENT | CMD_LOOPBACK)))
		clock_init(&runtime.clock);
	status = o.want_help ? print_help(c) : c->run(&o, &runtime);
	opts_free(&o);
	return status;
}

static int dispatch(const char *word, int argc, char **argv)
{
	if (!word) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(word, "help") || !strcmp(word, "--help") || !strcmp(word, "-h"))
		return help(argc > 2 ? argv[2] : NULL);
	if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
		puts("rxfer-bench " PACKAGE_VERSION);
		return 0;
	}
	if (!find(word))
		return unknown(word);
	return run(find(word), argc - 2, argv + 2);
}

int main(int argc, char **argv)
{
	int status = dispatch(argc > 1 ? argv[1] : NULL, argc, argv);

	if ((fflush(stdout) || ferror(stdout)) && status == 0) {
		complain("writing to stdout: %m");
		status = EXIT_RUN_FAILED;
	}
	return status;
}
