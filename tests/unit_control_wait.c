/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The control connection and time: deadlines, the stop flag, signs of life, failures, and how a
 * connection comes to be. Names are resolved by a stand-in, so that no test depends on a name
 * server.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>

#include "control_fixture.h"

/* ---- The stand-in resolver: ".test" is unknown, and these are the machine's own names ---- */

static const char *const known_hosts[] = {"localhost", "storage1.test", "storage2.test"};
static size_t next_host;

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		struct addrinfo **out)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

	if (strstr(name, ".test"))
		return EAI_NONAME;
	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	return real(name, service, hints, out);
}

void sethostent(int stay_open)
{
	(void)stay_open;
	next_host = 0;
}

void endhostent(void)
{
}

/* One buffer for all, as the real one has. */
struct hostent *gethostent(void)
{
	static struct hostent h;
	static char name[64];

	if (next_host == sizeof(known_hosts) / sizeof(known_hosts[0]))
		return NULL;
	snprintf(name, sizeof(name), "%s", known_hosts[next_host++]);
	h.h_name = name;
	return &h;
}

/* ---- Receiving in time ---- */

static int receive_within(struct control *c, uint64_t ms, const atomic_int *stop)
{
	struct rxfer_wait wait = within(ms);
	enum message type;
	json_t *body;
	int rc;

	wait.stop = stop;
	rc = control_recv(c, &type, &body, &wait);
	if (!rc)
		json_decref(body);
	return rc;
}

static void silence(void **state)
{
	struct link l;

	(void)state;
	for (enum kind kind = PAIR; kind < KINDS; kind++) {
		uint64_t start;

		if (!make_link(&l, kind))
			continue;
		start = rxfer_now();
		assert_int_equal(receive_within(&l.a, 100, NULL), -ETIMEDOUT);
		assert_took(start, 100);
		assert_non_null(strstr(rxfer_error(), l.a.peer));
		assert_non_null(strstr(rxfer_error(), "--timeout"));
		drop_link(&l);
	}
}

/* The deadline is that of the whole message, however many bytes come: in header and payload. */
static void a_slow_drip(void **state)
{
	char message[400];
	struct writer w = {.bytes = message, .n = sizeof(message), .pause_ms = 10};
	struct link l;
	uint64_t start;

	(void)state;
	memset(message, ' ', sizeof(message));
	put_header(message, MAGIC, CONTROL_VERSION, MSG_HELLO, sizeof(message) - HEADER);
	for (uint64_t ms = 60; ms <= 240; ms += 180) {
		make_link(&l, IPV4);
		w.fd = l.a.fd;
		w.limit_ms = ms + 200;
		start = rxfer_now();
		writer_start(&w);
		assert_int_equal(receive_within(&l.b, ms, NULL), -ETIMEDOUT);
		assert_took(start, ms);
		writer_join(&w);
		drop_link(&l);
	}
}

/* Signs of life without end are no message either. */
static void a_flood_of_alive(void **state)
{
	static char flood[18 * 4000];
	struct writer w = {.bytes = flood, .n = sizeof(flood), .limit_ms = 700, .again = true};
	struct alarm_clock alarm_clock;
	struct link l;
	uint64_t start;

	(void)state;
	for (size_t i = 0; i < sizeof(flood); i += 18) {
		put_header(flood + i, MAGIC, CONTROL_VERSION, MSG_ALIVE, 6);
		memcpy(flood + i + HEADER, "{}\r\n\r\n", 6);
	}
	for (int with_stop = 0; with_stop < 2; with_stop++) {
		make_link(&l, PAIR);
		w.fd = l.a.fd;
		start = rxfer_now();
		writer_start(&w);
		alarm_start(&alarm_clock, 100);
		if (with_stop)
			assert_int_equal(receive_within(&l.b, LONG_MS, &alarm_clock.stop), -EINTR);
		else
			assert_int_equal(receive_within(&l.b, 100, NULL), -ETIMEDOUT);
		assert_took(start, 100);
		control_close(&l.b);
		alarm_join(&alarm_clock);
		writer_join(&w);
		drop_link(&l);
	}
}

static void the_stop_flag_ends_a_wait(void **state)
{
	struct alarm_clock alarm_clock;
	struct link l;
	uint64_t start;

	(void)state;
	make_link(&l, IPV4);
	start = rxfer_now();
	alarm_start(&alarm_clock, 80);
	assert_int_equal(receive_within(&l.a, LONG_MS, &alarm_clock.stop), -EINTR);
	assert_took(start, 80);
	alarm_join(&alarm_clock);
	assert_int_equal(receive_within(&l.a, LONG_MS, &alarm_clock.stop), -EINTR);
	drop_link(&l);
}

/* ---- Sending in time ---- */

/* Until the peer, who never reads, has no more room. */
static int send_until_full(struct control *c, const struct rxfer_wait *wait)
{
	int rc = 0;

	while (!rc)
		rc = control_send(c, MSG_START, json_pack("{s:s}", "some", "filler"), wait);
	return rc;
}

static void a_peer_that_never_reads(void **state)
{
	struct alarm_clock alarm_clock;
	struct rxfer_wait wait;
	struct link l;
	uint64_t start;

	(void)state;
	make_link(&l, PAIR);
	start = rxfer_now();
	wait = within(300);
	assert_int_equal(send_until_full(&l.a, &wait), -ETIMEDOUT);
	assert_took(start, 300);

	start = rxfer_now();
	wait = within(LONG_MS);
	wait.stop = &alarm_clock.stop;
	alarm_start(&alarm_clock, 50);
	assert_int_equal(send_until_full(&l.a, &wait), -EINTR);
	assert_took(start, 50);
	alarm_join(&alarm_clock);
	drop_link(&l);
}

/* ---- Signs of life ---- */

static void alive_is_passed_over(void **state)
{
	struct rxfer_wait wait = within(LONG_MS);
	struct link l;

	(void)state;
	make_link(&l, PAIR);
	for (int i = 0; i < 5; i++)
		assert_int_equal(control_send(&l.a, MSG_ALIVE, NULL, &wait), 0);
	assert_int_equal(control_send(&l.a, MSG_STARTED, NULL, &wait), 0);
	json_decref(receive(&l.b, MSG_STARTED));
	assert_int_equal(control_send(&l.a, MSG_ALIVE, NULL, &wait), 0);
	assert_int_equal(receive_within(&l.b, 50, NULL), -ETIMEDOUT);
	drop_link(&l);
}

static void poll_never_waits_for_a_message_to_begin(void **state)
{
	struct rxfer_wait wait = within(LONG_MS);
	uint64_t heard = 7, start = rxfer_now();
	enum message type;
	struct link l;
	json_t *body;

	(void)state;
	make_link(&l, PAIR);
	assert_int_equal(control_poll(&l.b, &type, &body, &heard, &wait), -EAGAIN);
	assert_int_equal(heard, 7);
	control_send(&l.a, MSG_ALIVE, NULL, &wait);
	assert_int_equal(control_poll(&l.b, &type, &body, &heard, &wait), -EAGAIN);
	assert_in_range(heard, start, rxfer_now());
	heard = 7;
	control_send(&l.a, MSG_STOP, json_pack("{s:i}", "n", 3), &wait);
	assert_int_equal(control_poll(&l.b, &type, &body, &heard, &wait), 0);
	assert_int_equal(type, MSG_STOP);
	assert_int_equal(json_integer_value(json_object_get(body, "n")), 3);
	assert_in_range(heard, start, rxfer_now());
	json_decref(body);
	control_close(&l.a);
	assert_int_equal(control_poll(&l.b, &type, &body, &heard, &wait), -ECONNRESET);
	drop_link(&l);
}

static void poll_has_a_deadline_for_the_rest(void **state)
{
	uint64_t heard = 7, start = rxfer_now();
	struct rxfer_wait wait = within(60);
	enum message type;
	struct link l;
	json_t *body;

	(void)state;
	make_link(&l, PAIR);
	put(&l.a, "RXFB\0\1", 6);
	assert_int_equal(control_poll(&l.b, &type, &body, &heard, &wait), -ETIMEDOUT);
	assert_took(start, 60);
	assert_int_equal(heard, 7);
	drop_link(&l);
}

/* ---- The reason of a failure: the peer's, if it has one to tell ---- */

static int reason_for(int rc, enum message type, const char *payload)
{
	struct link l;

	make_link(&l, PAIR);
	if (payload)
		put_message(&l.a, type, payload, strlen(payload));
	control_close(&l.a);
	rxfer_fail(EIO, "our own reason");
	rc = control_reason(&l.b, rc);
	drop_link(&l);
	return rc;
}

static void the_peers_reason_comes_first(void **state)
{
	(void)state;
	assert_int_equal(reason_for(-ECANCELED, MSG_FAIL, "{\"reason\":\"full\"}"), -EREMOTEIO);
	assert_string_equal(rxfer_error(), "the client side: full");
	assert_int_equal(reason_for(-ECANCELED, MSG_STARTED, "{}"), -ECANCELED);
	assert_string_equal(rxfer_error(), "our own reason");
	assert_int_equal(reason_for(-ECANCELED, MSG_FAIL, "nonsense"), -ECANCELED);
	assert_string_equal(rxfer_error(), "our own reason");
	assert_int_equal(reason_for(-ECANCELED, MSG_FAIL, NULL), -ECANCELED);
	assert_string_equal(rxfer_error(), "our own reason");
}

/* What it said before it failed is passed over, but not for longer than a second. */
static void the_reason_stands_behind_others(void **state)
{
	static char flood[18 * 4000];
	struct writer w = {.bytes = flood, .n = sizeof(flood), .limit_ms = 3000, .again = true};
	uint64_t start;
	struct link l;

	(void)state;
	make_link(&l, PAIR);
	put_message(&l.a, MSG_STARTED, "{}", 2);
	put_message(&l.a, MSG_FAIL, "{\"reason\":\"full\"}", 17);
	rxfer_fail(EIO, "our own reason");
	assert_int_equal(control_reason(&l.b, -ENOTCONN), -EREMOTEIO);
	assert_string_equal(rxfer_error(), "the client side: full");
	drop_link(&l);
	for (size_t i = 0; i < sizeof(flood); i += 18) {
		put_header(flood + i, MAGIC, CONTROL_VERSION, MSG_STARTED, 6);
		memcpy(flood + i + HEADER, "{}\r\n\r\n", 6);
	}
	make_link(&l, PAIR);
	w.fd = l.a.fd;
	rxfer_fail(EIO, "our own reason");
	start = rxfer_now();
	writer_start(&w);
	assert_int_equal(control_reason(&l.b, -ENOTCONN), -ENOTCONN);
	assert_took(start, 1000);
	assert_string_equal(rxfer_error(), "our own reason");
	control_close(&l.b);
	writer_join(&w);
	drop_link(&l);
}

/* It is waited for no longer than a second, and not at all once we were told to stop. */
static void a_peer_without_a_reason(void **state)
{
	uint64_t start = rxfer_now();
	struct link l;

	(void)state;
	make_link(&l, PAIR);
	rxfer_fail(EINTR, "interrupted");
	assert_int_equal(control_reason(&l.b, -EINTR), -EINTR);
	assert_string_equal(rxfer_error(), "interrupted");
	assert_true(rxfer_now() - start < 500 * MS);
	rxfer_fail(EIO, "our own reason");
	start = rxfer_now();
	assert_int_equal(control_reason(&l.b, -EIO), -EIO);
	assert_took(start, 1000);
	assert_string_equal(rxfer_error(), "our own reason");
	drop_link(&l);
}

/* ---- control_fail() ---- */

/* The reason as the peer sees it. */
static void fail_with(const char *reason, char *seen, size_t size)
{
	struct rxfer_wait wait = within(LONG_MS);
	struct link l;
	json_t *body;

	make_link(&l, PAIR);
	rxfer_fail(EIO, "%s", reason);
	control_fail(&l.a, &wait);
	assert_string_equal(rxfer_error(), reason);
	body = receive(&l.b, MSG_FAIL);
	if (control_text(body, "reason", seen, size))
		fail_msg("no reason was sent");
	json_decref(body);
	drop_link(&l);
}

static void fail_tells_the_peer(void **state)
{
	char seen[400];

	(void)state;
	fail_with("rxe0: port 1 is down: \"ip link set\" it up", seen, sizeof(seen));
	assert_string_equal(seen, "rxe0: port 1 is down: \"ip link set\" it up");
}

/* A file's or host's name may be any bytes; a reason may have been cut within a character. */
static void fail_tells_the_peer_whatever_the_bytes(void **state)
{
	char seen[400];

	(void)state;
	fail_with("host caf\xe9 is not known", seen, sizeof(seen));
	assert_non_null(strstr(seen, "is not known"));
}

static void fail_to_nobody_keeps_the_reason(void **state)
{
	struct rxfer_wait wait = within(100);
	struct link l;

	(void)state;
	make_link(&l, PAIR);
	control_close(&l.b);
	rxfer_fail(EIO, "the first reason");
	control_fail(&l.a, &wait);
	assert_string_equal(rxfer_error(), "the first reason");
	drop_link(&l);
}

/* ---- Connecting ---- */

static int connect_to(const char *host, uint16_t port, const struct rxfer_wait *wait)
{
	struct control c;
	int rc;

	memset(&c, 0x77, sizeof(c));
	rxfer_fail(EIO, "stale");
	rc = control_connect(&c, host, port, wait);
	if (rc)
		assert_int_equal(c.fd, -1);
	control_close(&c);
	return rc;
}

static void nobody_listens(void **state)
{
	struct rxfer_wait wait = within(LONG_MS);
	int listener = control_listen(NULL, 0);
	uint16_t port = port_of(listener);
	char text[64];

	(void)state;
	close(listener);
	assert_int_equal(connect_to("127.0.0.1", port, &wait), -ECONNREFUSED);
	snprintf(text, sizeof(text), "127.0.0.1 port %u", port);
	assert_non_null(strstr(rxfer_error(), text));
	assert_non_null(strstr(rxfer_error(), "rxfer-bench server"));
	if (have_ipv6())
		assert_int_equal(connect_to("::1", port, &wait), -ECONNREFUSED);
}

static void unknown_hosts(void **state)
{
	struct rxfer_wait wait = within(LONG_MS);

	(void)state;
	assert_int_equal(connect_to("storgae1.test", 1, &wait), -ENOENT);
	assert_non_null(strstr(rxfer_error(), "storgae1.test"));
	assert_non_null(strstr(rxfer_error(), "did you mean storage1.test"));
	assert_int_equal(connect_to("quite-another.test", 1, &wait), -ENOENT);
	assert_non_null(strstr(rxfer_error(), "quite-another.test"));
	assert_null(strstr(rxfer_error(), "did you mean"));
}

/* The kernel accepts, nobody answers. */
static void a_silent_listener(void **state)
{
	struct rxfer_wait wait = within(LONG_MS);
	int listener = control_listen(NULL, 0);
	struct control c;
	uint64_t start;

	(void)state;
	assert_int_equal(control_connect(&c, "127.0.0.1", port_of(listener), &wait), 0);
	assert_string_equal(c.peer, "127.0.0.1");
	start = rxfer_now();
	assert_int_equal(receive_within(&c, 100, NULL), -ETIMEDOUT);
	assert_took(start, 100);
	assert_non_null(strstr(rxfer_error(), "127.0.0.1"));
	control_close(&c);
	close(listener);
}

#define CALLERS 8

/* A listener that the kernel lets nobody through to any more: SYNs go unanswered. */
static int full_listener(int callers[CALLERS])
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(listen(fd, 0), 0);
	to.sin_port = htons(port_of(fd));
	for (int i = 0; i < CALLERS; i++) {
		callers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)!connect(callers[i], (struct sockaddr *)&to, sizeof(to));
	}
	nap(20);
	return fd;
}

static void a_host_that_does_not_answer(void **state)
{
	struct alarm_clock alarm_clock;
	int callers[CALLERS], listener = full_listener(callers);
	uint16_t port = port_of(listener);
	struct rxfer_wait wait = within(150);
	uint64_t start = rxfer_now();

	(void)state;
	assert_int_equal(connect_to("127.0.0.1", port, &wait), -ETIMEDOUT);
	assert_took(start, 150);
	assert_non_null(strstr(rxfer_error(), "127.0.0.1 port"));

	wait = within(LONG_MS);
	wait.stop = &alarm_clock.stop;
	start = rxfer_now();
	alarm_start(&alarm_clock, 80);
	assert_int_equal(connect_to("127.0.0.1", port, &wait), -EINTR);
	assert_took(start, 80);
	assert_string_equal(rxfer_error(), "interrupted");
	alarm_join(&alarm_clock);
	for (int i = 0; i < CALLERS; i++)
		close(callers[i]);
	close(listener);
}

/* ---- Listening ---- */

static void a_port_in_use(void **state)
{
	int listener = control_listen(NULL, 0);
	uint16_t port = port_of(listener);
	char text[32];

	(void)state;
	assert_int_equal(control_listen(NULL, port), -EADDRINUSE);
	snprintf(text, sizeof(text), "port %u is in use", port);
	assert_non_null(strstr(rxfer_error(), text));
	assert_non_null(strstr(rxfer_error(), "--port"));
	close(listener);
	listener = control_listen(NULL, port);
	assert_true(listener >= 0);
	close(listener);
}

static void callers_are_named(void **state)
{
	static const char *const address[] = {[IPV4] = "127.0.0.1", [IPV6] = "::1"};
	struct link l;

	(void)state;
	for (enum kind kind = IPV4; kind <= IPV6; kind++) {
		if (!make_link(&l, kind))
			continue;
		assert_string_equal(l.a.peer, address[kind]);
		assert_string_equal(l.b.peer, address[kind]);
		assert_true(fcntl(l.a.fd, F_GETFD) & FD_CLOEXEC);
		assert_true(fcntl(l.b.fd, F_GETFD) & FD_CLOEXEC);
		drop_link(&l);
	}
}

/* The caller may have gone between poll() and accept(). */
static void accept_never_waits(void **state)
{
	int listener = control_listen(NULL, 0);
	struct control c;

	(void)state;
	assert_int_equal(control_accept(listener, &c), -EAGAIN);
	control_close(&c);
	control_close(&c);
	assert_int_equal(c.fd, -1);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silence),
		cmocka_unit_test(a_slow_drip),
		cmocka_unit_test(a_flood_of_alive),
		cmocka_unit_test(the_stop_flag_ends_a_wait),
		cmocka_unit_test(a_peer_that_never_reads),
		cmocka_unit_test(alive_is_passed_over),
		cmocka_unit_test(poll_never_waits_for_a_message_to_begin),
		cmocka_unit_test(poll_has_a_deadline_for_the_rest),
		cmocka_unit_test(the_peers_reason_comes_first),
		cmocka_unit_test(the_reason_stands_behind_others),
		cmocka_unit_test(a_peer_without_a_reason),
		cmocka_unit_test(fail_tells_the_peer),
		cmocka_unit_test(fail_tells_the_peer_whatever_the_bytes),
		cmocka_unit_test(fail_to_nobody_keeps_the_reason),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(unknown_hosts),
		cmocka_unit_test(a_silent_listener),
		cmocka_unit_test(a_host_that_does_not_answer),
		cmocka_unit_test(a_port_in_use),
		cmocka_unit_test(callers_are_named),
		cmocka_unit_test(accept_never_waits),
	};

	return cmocka_run_group_tests_name("unit_control_wait", tests, NULL, NULL);
}
