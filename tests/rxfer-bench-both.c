/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A server and its clients in one process: the test double joins the ends of one process only. The
 * server is that of the program; each client is the program's too, in a thread of its own, with
 * session after session. They meet by TCP, as ever.
 *
 *	rxfer-bench-both WIDTH SESSIONS ROUNDS FOLDER SERVER-OPTION... -- CLIENT-OPTION... HOST
 *
 * In each round WIDTH clients have SESSIONS sessions each, one after the other, and their rows are
 * in FOLDER/rows-N.csv. Then it is waited until the server has no session, and a line on stdout
 * says what the process has. At last the server is told to stop; the exit status is the server's.
 * SIGTERM and SIGINT are the server's as well, the clients do not hear of them. With
 * BOTH_STOP_AFTER=N in the environment the process sends itself SIGTERM when all clients have their
 * queue pairs and the double has taken N work requests since.
 */
#include <ctype.h>
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "command.h"
#include "fakehca/fakehca.h"

#define WIDTH_MAX 64
#define WORDS_MAX 64
#define SECONDS	  20 /* to be listening, and to have no session any more */

/* struct words - the options of a role. */
struct words {
	int n;
	char *word[WORDS_MAX];
};

struct both {
	unsigned int width, sessions, rounds;
	const char *folder;
	unsigned long long stop_after; /* work requests; 0: never */
	unsigned long long stop_at;    /* so many; 0: not all have their queue pairs yet */
	unsigned int queue_pairs;      /* of all, at both ends */
	struct words server, client;
	struct runtime runtime, clients_runtime;
	unsigned int port;
	unsigned int threads; /* of the process without a session */
};

/* struct client - @running: atomic; @good: sessions that ended with status 0. */
struct client {
	struct both *both;
	unsigned int number, good;
	bool running;
	pthread_t thread;
};

static atomic_int stop;
static const atomic_int never;

static void on_signal(int number)
{
	stop = number;
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
}

static void nap(void)
{
	usleep(10000);
}

static void die(const char *what)
{
	fprintf(stderr, "rxfer-bench-both: %s\n", what);
	_exit(EXIT_USAGE);
}

static void parse(unsigned int command, struct words *w, struct opts *out)
{
	char error[512];

	if (opts_parse(command, w->n, w->word, out, error, sizeof(error)))
		die(error);
}

static void *client_thread(void *arg)
{
	struct client *c = arg;
	struct words words = c->both->client;
	char output[512];
	struct opts o;

	snprintf(output, sizeof(output), "--output=%s/rows-%u.csv", c->both->folder, c->number);
	memmove(words.word + 1, words.word, (size_t)words.n * sizeof(words.word[0]));
	words.word[0] = output;
	words.n++;
	parse(CMD_CLIENT, &words, &o);
	for (unsigned int i = 0; i < c->both->sessions && !stop; i++)
		c->good += !command_client(&o, &c->both->clients_runtime);
	opts_free(&o);
	__atomic_store_n(&c->running, false, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- What the process has ---- */

/* The number behind @name in /proc/self/status; 0: it is not there. */
static unsigned int status_of(const char *name)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	unsigned int n = 0;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			n = (unsigned int)strtoul(line + strlen(name), NULL, 10);
	if (f)
		fclose(f);
	return n;
}

static unsigned int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n - 3; /* ".", ".." and the folder itself */
}

/* What malloc() has given out and not got back, in all arenas. */
static size_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static bool listens(const char *path, unsigned int port)
{
	FILE *f = fopen(path, "re");
	unsigned int at, state;
	bool found = false;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		found |= sscanf(line, " %*u: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &at, &state) == 2 &&
			 at == port && state == 0x0a;
	if (f)
		fclose(f);
	return found;
}

static bool is_listening(const struct both *b)
{
	return listens("/proc/net/tcp", b->port) || listens("/proc/net/tcp6", b->port);
}

static bool is_idle(const struct both *b)
{
	return status_of("Threads:") <= b->threads;
}

static void wait_until(bool (*is)(const struct both *b), const struct both *b, const char * not )
{
	uint64_t end = rxfer_now() + SECONDS * 1000000000ull;

	while (!is(b)) {
		if (rxfer_now() > end)
			die(not );
		nap();
	}
}

static unsigned int queue_pairs(void)
{
	char text[256];
	const char *at;

	fake_leaks(text, sizeof(text));
	at = strstr(text, " QPs");
	while (at && at > text && isdigit((unsigned char)at[-1]))
		at--;
	return at ? (unsigned int)strtoul(at, NULL, 10) : 0;
}

/* ---- Rounds ---- */

static bool is_due(struct both *b)
{
	unsigned long long sqes = fake_stats()->sqes;

	if (!b->stop_after || stop)
		return false;
	if (!b->stop_at && queue_pairs() >= b->queue_pairs)
		b->stop_at = sqes + b->stop_after;
	return b->stop_at && sqes >= b->stop_at;
}

static void wait_for(struct both *b, struct client *c)
{
	while (__atomic_load_n(&c->running, __ATOMIC_ACQUIRE)) {
		if (is_due(b))
			kill(getpid(), SIGTERM);
		nap();
	}
	pthread_join(c->thread, NULL);
}

static void one_round(struct both *b, unsigned int number)
{
	struct client client[WIDTH_MAX];
	unsigned int good = 0;
	char left[256];

	for (unsigned int i = 0; i < b->width; i++) {
		client[i] = (struct client){.both = b, .number = i, .running = true};
		if (pthread_create(&client[i].thread, NULL, client_thread, &client[i]))
			die("no thread for a client");
	}
	for (unsigned int i = 0; i < b->width; i++) {
		wait_for(b, &client[i]);
		good += client[i].good;
	}
	if (stop)
		return;
	wait_until(is_idle, b, "sessions do not end");
	fake_leaks(left, sizeof(left));
	printf("round %u: %u sessions, %u files, %zu bytes, left: %s\n", number, good, open_files(),
	       heap_bytes(), left);
	fflush(stdout);
}

static unsigned int number(const char *text, unsigned int max)
{
	unsigned long n = strtoul(text, NULL, 10);

	if (n < 1 || n > max)
		die("a number is out of range");
	return (unsigned int)n;
}

static void read_words(struct both *b, int argc, char **argv)
{
	struct words *to = &b->server;

	if (argc < 6)
		die("usage: WIDTH SESSIONS ROUNDS FOLDER SERVER-OPTION... -- CLIENT-OPTION... HOST");
	b->width = number(argv[1], WIDTH_MAX);
	b->sessions = number(argv[2], 1000000);
	b->rounds = number(argv[3], 1000);
	b->folder = argv[4];
	for (int i = 5; i < argc; i++) {
		if (!strcmp(argv[i], "--") && to == &b->server)
			to = &b->client;
		else if (to->n < WORDS_MAX - 1)
			to->word[to->n++] = argv[i];
		else
			die("too many words");
	}
}

static void set_up(struct both *b)
{
	struct sigaction act = {.sa_handler = on_signal};
	const char *after = getenv("BOTH_STOP_AFTER");
	struct opts o;
	struct cfg cfg;

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	signal(SIGPIPE, SIG_IGN);
	b->stop_after = after ? strtoull(after, NULL, 10) : 0;
	parse(CMD_SERVER, &b->server, &o);
	opts_first(&o, &cfg);
	opts_free(&o);
	b->port = (unsigned int)cfg.port;
	parse(CMD_CLIENT, &b->client, &o);
	opts_first(&o, &cfg);
	opts_free(&o);
	b->queue_pairs = 2 * b->width * (unsigned int)cfg.qps;
	b->runtime.stop = &stop;
	topo_init(&b->runtime.topo);
	clock_init(&b->runtime.clock);
	b->clients_runtime = b->runtime;
	b->clients_runtime.stop = &never;
}

/* Beside the server, which has the main thread and so gets the signals. */
static void *rounds_thread(void *arg)
{
	struct both *b = arg;

	wait_until(is_listening, b, "the server does not listen");
	b->threads = status_of("Threads:");
	for (unsigned int i = 0; i < b->rounds && !stop; i++)
		one_round(b, i + 1);
	if (!stop)
		kill(getpid(), SIGTERM);
	return NULL;
}

int main(int argc, char **argv)
{
	struct both b = {0};
	pthread_t rounds;
	struct opts o;
	int status;

	read_words(&b, argc, argv);
	set_up(&b);
	parse(CMD_SERVER, &b.server, &o);
	if (pthread_create(&rounds, NULL, rounds_thread, &b))
		die("no thread for the clients");
	status = command_server(&o, &b.runtime);
	opts_free(&o);
	pthread_join(rounds, NULL);
	return status;
}
