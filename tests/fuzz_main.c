/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Drives a fuzzer where libFuzzer is not there, or is not wanted: `make check` runs this one. It
 * takes the kept corpus, then random mutations of it, and reports by TAP. Arguments are like
 * libFuzzer's: files and folders of inputs (default: the corpus in the source tree), and
 *
 *	-runs=N			mutations (default 20000)
 *	-max_total_time=N	seconds that they may take; without -runs they take them all
 *	-seed=N			of the random numbers (default: the clock)
 *	-artifact_prefix=TEXT	what crashes is kept in TEXTinput (default: crash-)
 *
 * There is no feedback from coverage, so this finds less than libFuzzer in the same time.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "fuzz.h"
#include "prop.h"
#include "rxfer.h"

#define INPUT_MAX 4096 /* bytes that a mutation has at most */

struct input {
	uint8_t *data;
	size_t size;
};

/* struct corpus - all inputs, owned. */
struct corpus {
	struct input *input;
	size_t n;
};

struct settings {
	uint64_t runs, seconds, seed;
};

#define PREFIX "-artifact_prefix="

/* The input under way, for the handler of a crash. */
static uint8_t now[65536];
static size_t now_size;
static char crash_name[256] = "crash-input";

static void keep(void)
{
	int fd = open(crash_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, now, now_size) != (ssize_t)now_size)
		return;
	close(fd);
	dprintf(STDERR_FILENO, "# the input is in %s\n", crash_name);
}

static void on_crash(int number)
{
	keep();
	signal(number, SIG_DFL);
	raise(number);
}

/* Sanitizers end the process by other means than a signal. */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

static void keep_crashes(void)
{
	signal(SIGABRT, on_crash);
	if (__sanitizer_set_death_callback) {
		__sanitizer_set_death_callback(keep);
		return;
	}
	signal(SIGSEGV, on_crash);
	signal(SIGBUS, on_crash);
	signal(SIGFPE, on_crash);
}

/* ---- The corpus ---- */

static int read_input(const char *path, struct corpus *c)
{
	static uint8_t data[sizeof(now)];
	FILE *f = fopen(path, "r");
	struct input *grown;
	size_t size;

	if (!f)
		return -errno;
	size = fread(data, 1, sizeof(data), f);
	fclose(f);
	grown = realloc(c->input, (c->n + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	c->input = grown;
	c->input[c->n] = (struct input){malloc(size + 1), size};
	if (!c->input[c->n].data)
		return -ENOMEM;
	memcpy(c->input[c->n++].data, data, size);
	return 0;
}

static int read_folder(const char *path, struct corpus *c)
{
	struct dirent **entry;
	int n = scandir(path, &entry, NULL, alphasort), rc = n < 0 ? -errno : 0;

	for (int i = 0; i < n; i++) {
		char name[4096];

		snprintf(name, sizeof(name), "%s/%s", path, entry[i]->d_name);
		if (!rc && entry[i]->d_name[0] != '.')
			rc = read_input(name, c);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	return rc;
}

static int read_corpus(const char *path, struct corpus *c)
{
	struct stat st;
	int rc;

	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		rc = read_folder(path, c);
	else
		rc = read_input(path, c);
	if (rc)
		printf("Bail out! %s: %s\n", path, strerror(-rc));
	return rc;
}

static void drop_corpus(struct corpus *c)
{
	while (c->n)
		free(c->input[--c->n].data);
	free(c->input);
}

/* ---- Mutations ---- */

static void insert(const uint8_t *what, size_t size, size_t at)
{
	if (size > INPUT_MAX || now_size > INPUT_MAX - size)
		return;
	memmove(now + at + size, now + at, now_size - at);
	memcpy(now + at, what, size);
	now_size += size;
}

static void cut(size_t at, size_t size)
{
	memmove(now + at, now + at + size, now_size - at - size);
	now_size -= size;
}

/* A piece of any input. */
static void graft(struct prop *p, const struct corpus *c, size_t at)
{
	const struct input *in = &c->input[prop_range(p, 0, (uint32_t)c->n - 1)];
	size_t from = prop_range(p, 0, (uint32_t)in->size);

	insert(in->data + from, prop_range(p, 0, (uint32_t)(in->size - from)), at);
}

static void mutate(struct prop *p, const struct corpus *c)
{
	static const char telling[] = "0123456789\n-=,:{}[]\"\\'.%\x00\x1b\x7f\x80\xff";
	uint8_t byte = (uint8_t)telling[prop_range(p, 0, sizeof(telling) - 2)];
	size_t at = prop_range(p, 0, (uint32_t)now_size), left = now_size - at;
	size_t some = prop_range(p, 0, left < 16 ? (uint32_t)left : 16);
	uint8_t piece[16];

	memcpy(piece, now + at, some);
	switch (prop_range(p, 0, 6)) {
	case 0:
		cut(at, some);
		break;
	case 1:
		insert(piece, some, prop_range(p, 0, (uint32_t)now_size));
		break;
	case 2:
		graft(p, c, at);
		break;
	case 3:
		insert(&byte, 1, at);
		break;
	case 4:
		if (left)
			now[at] = byte;
		break;
	case 5:
		if (left)
			now[at] ^= (uint8_t)(1u << prop_range(p, 0, 7));
		break;
	default:
		if (left)
			now[at] = (uint8_t)prop_range(p, 0, 255);
	}
}

static void take(const struct input *in)
{
	memcpy(now, in->data, in->size);
	now_size = in->size;
}

/* In memory of just its size, so that sanitizers see whoever reads beyond. */
static void run(void)
{
	uint8_t *data = malloc(now_size ? now_size : 1);

	if (!data)
		abort();
	memcpy(data, now, now_size);
	LLVMFuzzerTestOneInput(data, now_size);
	free(data);
}

static uint64_t run_mutations(const struct corpus *c, const struct settings *s)
{
	uint64_t n, end = s->seconds ? rxfer_now() + s->seconds * 1000000000u : UINT64_MAX;
	struct prop p;

	prop_start(&p, s->seed);
	for (n = 0; n < s->runs && rxfer_now() < end; n++) {
		take(&c->input[prop_range(&p, 0, (uint32_t)c->n - 1)]);
		for (uint32_t i = prop_range(&p, 1, 4); i; i--)
			mutate(&p, c);
		run();
	}
	return n;
}

/* ---- The program ---- */

static int set(const char *word, struct settings *s)
{
	const struct {
		const char *name;
		uint64_t *value;
	} known[] = {{"-runs=", &s->runs}, {"-max_total_time=", &s->seconds}, {"-seed=", &s->seed}};

	if (!strncmp(word, PREFIX, strlen(PREFIX))) {
		snprintf(crash_name, sizeof(crash_name), "%.240sinput", word + strlen(PREFIX));
		return 0;
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t len = strlen(known[i].name);

		if (strncmp(word, known[i].name, len))
			continue;
		*known[i].value = strtoull(word + len, NULL, 10);
		return 0;
	}
	printf("Bail out! no option is called %s\n", word);
	return -EINVAL;
}

/* Below the source folder, which the test driver names. */
static int read_kept(const char *name, struct corpus *c)
{
	const char *srcdir = getenv("srcdir");
	char path[4096];

	snprintf(path, sizeof(path), "%s/tests/corpus/%s", srcdir ? srcdir : ".", name);
	return read_corpus(path, c);
}

int main(int argc, char **argv)
{
	const char *name = strchr(program_invocation_short_name, '_');
	struct settings s = {.runs = UINT64_MAX, .seed = prop_first_seed()};
	struct corpus c = {0};
	int rc = 0;

	keep_crashes();
	for (int i = 1; !rc && i < argc; i++)
		rc = argv[i][0] == '-' ? set(argv[i], &s) : read_corpus(argv[i], &c);
	if (!rc && !c.n)
		rc = read_kept(name ? name + 1 : "", &c);
	if (!rc && !c.n)
		rc = printf("Bail out! there are no inputs\n");
	if (s.runs == UINT64_MAX && !s.seconds)
		s.runs = prop_count(20000, 1000);
	if (!rc) {
		printf("1..2\n# -seed=%llu\n", (unsigned long long)s.seed);
		fflush(stdout);
		for (size_t i = 0; i < c.n; i++) {
			take(&c.input[i]);
			run();
		}
		printf("ok 1 - the %zu inputs of the corpus\n", c.n);
		printf("ok 2 - %llu mutations of them\n",
		       (unsigned long long)run_mutations(&c, &s));
	}
	drop_corpus(&c);
	return rc != 0;
}
