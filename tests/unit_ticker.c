/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A blocking read that ends when time is up, and when the peer says something. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../bench/ticker.h"
#include "../src/rxfer.h"

#define MS 1000000l

/* struct scene - @quiet: a pipe that nobody writes to; @peer: a connection, ours is [0]. */
struct scene {
	struct ticker ticker;
	int quiet[2], peer[2];
};

static int set_scene(void **state)
{
	static struct scene scene;

	scene = (struct scene){0};
	assert_int_equal(pipe(scene.quiet), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, scene.peer), 0);
	*state = &scene;
	return 0;
}

static int clear_scene(void **state)
{
	struct scene *s = *state;

	ticker_stop(&s->ticker);
	for (int i = 0; i < 2; i++) {
		close(s->quiet[i]);
		close(s->peer[i]);
	}
	return 0;
}

/* It would never end by itself. */
static void expect_interrupted(const struct scene *s)
{
	char c;

	assert_int_equal(read(s->quiet[0], &c, 1), -1);
	assert_int_equal(errno, EINTR);
}

static void time_ends_a_read_again_and_again(void **state)
{
	struct scene *s = *state;
	uint64_t begin = rxfer_now();

	assert_int_equal(ticker_start(&s->ticker, s->peer[0], 20 * MS), 0);
	assert_int_equal(ticker_start(&s->ticker, s->peer[0], 20 * MS), 0); /* it runs already */
	for (int i = 0; i < 5; i++)
		expect_interrupted(s);
	assert_true(rxfer_now() - begin >= 80 * MS);
}

static void *speak_up(void *arg)
{
	const struct timespec nap = {.tv_nsec = 30 * MS};
	struct scene *s = arg;

	nanosleep(&nap, NULL);
	assert_int_equal(write(s->peer[1], "x", 1), 1);
	return NULL;
}

static void the_peer_ends_a_read(void **state)
{
	struct scene *s = *state;
	pthread_t other;

	assert_int_equal(ticker_start(&s->ticker, s->peer[0], 999 * MS), 0);
	assert_int_equal(pthread_create(&other, NULL, speak_up, s), 0);
	expect_interrupted(s);
	pthread_join(other, NULL);
}

/* A thread that sleeps, and says how its sleep ended. */
static void *sleep_a_while(void *arg)
{
	const struct timespec nap = {.tv_nsec = 100 * MS};

	*(int *)arg = nanosleep(&nap, NULL);
	return NULL;
}

static void other_threads_are_left_alone(void **state)
{
	struct scene *s = *state;
	pthread_t other;
	int ended = -2;

	assert_int_equal(ticker_start(&s->ticker, s->peer[0], 10 * MS), 0);
	assert_int_equal(pthread_create(&other, NULL, sleep_a_while, &ended), 0);
	while (pthread_tryjoin_np(other, NULL))
		expect_interrupted(s);
	assert_int_equal(ended, 0);
}

static void after_the_stop_nothing_comes(void **state)
{
	const struct timespec nap = {.tv_nsec = 60 * MS};
	struct scene *s = *state;

	assert_int_equal(ticker_start(&s->ticker, s->peer[0], 5 * MS), 0);
	expect_interrupted(s);
	ticker_stop(&s->ticker);
	ticker_stop(&s->ticker);
	assert_int_equal(write(s->peer[1], "x", 1), 1);
	assert_int_equal(nanosleep(&nap, NULL), 0);
	assert_int_equal(ticker_start(&s->ticker, s->peer[0], 5 * MS), 0);
	expect_interrupted(s);
}

static void what_cannot_be_listened_to(void **state)
{
	struct scene *s = *state;
	char c;

	assert_int_equal(ticker_start(&s->ticker, -1, 5 * MS), -EBADF);
	assert_string_equal(rxfer_error(), "cannot start a timer: Bad file descriptor");
	assert_false(s->ticker.runs);
	fcntl(s->quiet[0], F_SETFL, O_NONBLOCK);
	assert_int_equal(read(s->quiet[0], &c, 1), -1);
	assert_int_equal(errno, EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(time_ends_a_read_again_and_again, set_scene,
						clear_scene),
		cmocka_unit_test_setup_teardown(the_peer_ends_a_read, set_scene, clear_scene),
		cmocka_unit_test_setup_teardown(other_threads_are_left_alone, set_scene,
						clear_scene),
		cmocka_unit_test_setup_teardown(after_the_stop_nothing_comes, set_scene,
						clear_scene),
		cmocka_unit_test_setup_teardown(what_cannot_be_listened_to, set_scene, clear_scene),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
