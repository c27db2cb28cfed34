/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Control messages: there and back over each kind of link, and whatever else may arrive. */
#include "control_fixture.h"

/* ---- There and back ---- */

static void there_and_back(struct control *from, struct control *to)
{
	struct rxfer_wait wait = within(LONG_MS);

	for (enum message type = MSG_HELLO; type <= MSG_BYE; type++) {
		json_t *body = json_pack("{s:s,s:[I,I],s:{s:b}}", "text", "a \"b\"\r\n\xc3\xa4",
					 "list", (json_int_t)0, (json_int_t)INT64_MAX, "nested",
					 "flag", 1);
		json_t *got;

		if (type == MSG_ALIVE) {
			json_decref(body);
			continue;
		}
		assert_int_equal(control_send(from, type, json_incref(body), &wait), 0);
		got = receive(to, type);
		assert_true(json_equal(body, got));
		json_decref(got);
		json_decref(body);
	}
}

static void all_messages_both_ways(void **state)
{
	struct link l;

	(void)state;
	for (enum kind kind = PAIR; kind < KINDS; kind++) {
		if (!make_link(&l, kind))
			continue;
		there_and_back(&l.a, &l.b);
		there_and_back(&l.b, &l.a);
		drop_link(&l);
	}
}

static void no_body_is_an_empty_object(void **state)
{
	struct rxfer_wait wait = within(LONG_MS);
	struct link l;
	json_t *body;

	(void)state;
	make_link(&l, PAIR);
	assert_int_equal(control_send(&l.a, MSG_BYE, NULL, &wait), 0);
	body = receive(&l.b, MSG_BYE);
	assert_true(json_is_object(body));
	assert_int_equal(json_object_size(body), 0);
	json_decref(body);
	drop_link(&l);
}

/* Magic, version, type, length, JSON, two line ends. */
static void bytes_on_the_wire(void **state)
{
	static const char want[] = "RXFB\0\1\0\3\0\0\0\13{\"k\":1}\r\n\r\n";
	struct rxfer_wait wait = within(LONG_MS);
	char got[64];
	struct link l;

	(void)state;
	make_link(&l, PAIR);
	assert_int_equal(control_send(&l.a, MSG_READY, json_pack("{s:i}", "k", 1), &wait), 0);
	assert_int_equal(recv(l.b.fd, got, sizeof(got), 0), sizeof(want) - 1);
	assert_memory_equal(got, want, sizeof(want) - 1);
	drop_link(&l);
}

static void messages_keep_their_order(void **state)
{
	struct rxfer_wait wait = within(LONG_MS);
	struct link l;
	uint64_t n;

	(void)state;
	make_link(&l, IPV4);
	for (int i = 0; i < 200; i++)
		assert_int_equal(control_send(&l.a, MSG_START, json_pack("{s:i}", "n", i), &wait),
				 0);
	for (uint64_t i = 0; i < 200; i++) {
		json_t *body = receive(&l.b, MSG_START);

		assert_int_equal(control_uint(body, "n", &n), 0);
		assert_int_equal(n, i);
		json_decref(body);
	}
	drop_link(&l);
}

/* The largest message, far above what a socket holds. */
static void the_largest_message(void **state)
{
	static char message[HEADER + FILLER_MAX];
	struct writer w = {.bytes = message, .limit_ms = LONG_MS};
	struct link l;

	(void)state;
	memset(message, ' ', sizeof(message));
	memcpy(message + HEADER, "{", 1);
	message[HEADER + CONTROL_MAX_PAYLOAD - 1] = '}';
	put_header(message, MAGIC, CONTROL_VERSION, MSG_HELLO, CONTROL_MAX_PAYLOAD);
	w.n = HEADER + CONTROL_MAX_PAYLOAD;
	for (enum kind kind = PAIR; kind < KINDS; kind++) {
		if (!make_link(&l, kind))
			continue;
		w.fd = l.a.fd;
		writer_start(&w);
		json_decref(receive(&l.b, MSG_HELLO));
		writer_join(&w);
		drop_link(&l);
	}
}

/* Byte by byte, but in time. */
static void in_single_bytes(void **state)
{
	static const char text[] = "{\"n\":42}\r\n\r\n";
	char message[HEADER + sizeof(text) - 1];
	struct writer w = {.bytes = message, .n = sizeof(message), .pause_ms = 1, LONG_MS};
	struct link l;
	json_t *body;
	uint64_t n;

	(void)state;
	put_header(message, MAGIC, CONTROL_VERSION, MSG_STOP, sizeof(text) - 1);
	memcpy(message + HEADER, text, sizeof(text) - 1);
	make_link(&l, IPV4);
	w.fd = l.a.fd;
	writer_start(&w);
	body = receive(&l.b, MSG_STOP);
	assert_int_equal(control_uint(body, "n", &n), 0);
	assert_int_equal(n, 42);
	json_decref(body);
	writer_join(&w);
	drop_link(&l);
}

/* ---- The peer ends early ---- */

static void cut_off_anywhere(void **state)
{
	static const char text[] = "{\"reason\":\"none\"}\r\n\r\n";
	char message[HEADER + sizeof(text) - 1];
	struct link l;

	(void)state;
	put_header(message, MAGIC, CONTROL_VERSION, MSG_FAIL, sizeof(text) - 1);
	memcpy(message + HEADER, text, sizeof(text) - 1);
	for (enum kind kind = PAIR; kind <= IPV4; kind++) {
		for (size_t n = 0; n < sizeof(message); n++) {
			make_link(&l, kind);
			if (n)
				put(&l.a, message, n);
			control_close(&l.a);
			assert_refused(&l.b, ECONNRESET, "closed the control connection");
			drop_link(&l);
		}
	}
}

/* A reset instead of an orderly end. */
static void reset_by_the_peer(void **state)
{
	struct linger now = {1, 0};
	struct link l;

	(void)state;
	make_link(&l, IPV4);
	put(&l.a, "RXFB", 4);
	nap(10);
	setsockopt(l.a.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	control_close(&l.a);
	assert_refused(&l.b, ECONNRESET, "closed the control connection");
	drop_link(&l);
}

/* SIGPIPE would end this test. */
static void send_to_nobody(void **state)
{
	struct rxfer_wait wait = within(LONG_MS);
	struct link l;

	(void)state;
	for (enum kind kind = PAIR; kind <= IPV4; kind++) {
		int rc = 0;

		make_link(&l, kind);
		control_close(&l.b);
		for (int i = 0; i < 100 && !rc; i++) {
			rc = control_send(&l.a, MSG_ALIVE, NULL, &wait);
			nap(1);
		}
		assert_int_equal(rc, -ECONNRESET);
		assert_non_null(strstr(rxfer_error(), "closed the control connection"));
		assert_int_equal(control_send(&l.a, MSG_ALIVE, NULL, &wait), -ECONNRESET);
		drop_link(&l);
	}
}

/* ---- Something else ---- */

static void somebody_else(const char *first, size_t n, const char *part)
{
	struct link l;

	make_link(&l, PAIR);
	put(&l.a, first, n);
	assert_refused(&l.b, EPROTO, part);
	drop_link(&l);
}

static void web_servers_are_recognised(void **state)
{
	static const char *const http[] = {
		"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
		"HTTP/1.0 200 OK\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /x HTTP/1.1\r\n\r\n",
		"HEAD / HTTP/1.0\r\n\r\n",
		"PUT /x HTTP/1.1\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(http) / sizeof(http[0]); i++)
		somebody_else(http[i], strlen(http[i]), "speaks HTTP");
}

static void noise_is_refused(void **state)
{
	static const char zeros[64], ssh[] = "SSH-2.0-OpenSSH_9.2\r\n",
				     smtp[] = "220 ready ESMTP\r\n";
	static const char near[] = "RXFA\0\1\0\1\0\0\0\2{}", swapped[] = "BFXR\1\0\1\0\2\0\0\0{}";
	char ones[64];

	(void)state;
	memset(ones, 0xff, sizeof(ones));
	somebody_else(zeros, sizeof(zeros), "does not speak");
	somebody_else(ones, sizeof(ones), "does not speak");
	somebody_else(ssh, sizeof(ssh) - 1, "does not speak");
	somebody_else(smtp, sizeof(smtp) - 1, "does not speak");
	somebody_else(near, sizeof(near) - 1, "does not speak");
	somebody_else(swapped, sizeof(swapped) - 1, "does not speak");
}

static void another_version_names_both(void **state)
{
	static const uint16_t versions[] = {0, CONTROL_VERSION + 1, 256, 65535};
	char header[HEADER], part[64];

	(void)state;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		put_header(header, MAGIC, versions[i], MSG_HELLO, 0xffffffff);
		snprintf(part, sizeof(part), "version %u of the control protocol, we speak %u",
			 versions[i], CONTROL_VERSION);
		somebody_else(header, HEADER, part);
	}
}

/* ---- Malformed ---- */

/* Refused on sight of the header: nothing is allocated or waited for. */
static void too_long_is_refused_at_once(void **state)
{
	static const uint32_t lengths[] = {CONTROL_MAX_PAYLOAD + 1, 1u << 30, 1u << 31, UINT32_MAX};
	char header[HEADER], part[64];
	struct link l;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		make_link(&l, PAIR);
		put_header(header, MAGIC, CONTROL_VERSION, MSG_HELLO, lengths[i]);
		put(&l.a, header, HEADER);
		snprintf(part, sizeof(part), "of %u bytes, at most %u", lengths[i],
			 CONTROL_MAX_PAYLOAD);
		assert_refused(&l.b, EBADMSG, part);
		drop_link(&l);
	}
}

static void malformed(const void *payload, size_t n)
{
	struct link l;

	make_link(&l, PAIR);
	put_message(&l.a, MSG_HELLO, payload, n);
	assert_refused(&l.b, EBADMSG, "no JSON object");
	drop_link(&l);
}

static void payloads_that_are_no_object(void **state)
{
	static const char *const texts[] = {
		" ",
		"\r\n\r\n",
		"x",
		"null",
		"true",
		"1",
		"1e999",
		"\"text\"",
		"[]",
		"[{}]",
		"{",
		"}",
		"{}x",
		"{}{}",
		"{]",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"{'a':1}",
		"{a:1}",
		"{\"a\":\"\xff\xfe\"}",
		"{\"a\":\"\xc3\"}",
		"{\"a\":\"\\ud800\"}",
		"{\"a\":99999999999999999999}",
		"{\"a\":\"\\u0000\"}",
		"{\"a\":\"\1\"}",
	};

	(void)state;
	malformed("", 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		malformed(texts[i], strlen(texts[i]));
}

static void nul_bytes(void **state)
{
	static const char behind[] = "{}\0", before[] = "\0{}", within_key[] = "{\"a\0b\":1}";
	static const char hidden[] = "{\"a\":1}\0{\"a\":2}", zeros[100];

	(void)state;
	malformed(behind, sizeof(behind) - 1);
	malformed(before, sizeof(before) - 1);
	malformed(within_key, sizeof(within_key) - 1);
	malformed(hidden, sizeof(hidden) - 1);
	malformed(zeros, sizeof(zeros));
}

/* The stack must not depend on the peer: as deep as a message can be. */
static void deep_nesting(void **state)
{
	static char message[HEADER + CONTROL_MAX_PAYLOAD];
	struct writer w = {.bytes = message, .n = sizeof(message), .limit_ms = LONG_MS};
	static const char *const units[] = {"[", "{\"a\":", "[{\"a\":"};
	struct link l;

	(void)state;
	put_header(message, MAGIC, CONTROL_VERSION, MSG_HELLO, CONTROL_MAX_PAYLOAD);
	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
		for (size_t i = 0; i < CONTROL_MAX_PAYLOAD; i++)
			message[HEADER + i] = units[u][i % strlen(units[u])];
		make_link(&l, PAIR);
		w.fd = l.a.fd;
		writer_start(&w);
		assert_refused(&l.b, EBADMSG, "no JSON object");
		writer_join(&w);
		drop_link(&l);
	}
}

/* What a type means is not looked at here. */
static void unknown_types_are_the_callers(void **state)
{
	struct link l;

	(void)state;
	make_link(&l, PAIR);
	put_message(&l.a, (enum message)99, "{}", 2);
	json_decref(receive(&l.b, (enum message)99));
	put_message(&l.a, (enum message)0, "{}", 2);
	json_decref(receive(&l.b, (enum message)0));
	put_message(&l.a, (enum message)65535, "{}", 2);
	json_decref(receive(&l.b, (enum message)65535));
	drop_link(&l);
}

/* ---- Members ---- */

static void numbers_of_a_message(void **state)
{
	static const char *const wrong[] = {"none",    "text",	"real",	 "list",
					    "nothing", "minus", "object"};
	json_t *body = json_pack("{s:i,s:I,s:s,s:f,s:[i],s:n,s:i,s:{}}", "zero", 0, "most",
				 (json_int_t)INT64_MAX, "text", "7", "real", 7.0, "list", 7,
				 "nothing", "minus", -1, "object");
	uint64_t n = 99;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(control_uint(body, wrong[i], &n), -EBADMSG);
		assert_non_null(strstr(rxfer_error(), wrong[i]));
		assert_int_equal(n, 99);
	}
	assert_int_equal(control_uint(body, "zero", &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(control_uint(body, "most", &n), 0);
	assert_true(n == INT64_MAX);
	json_decref(body);
}

static void texts_of_a_message(void **state)
{
	json_t *body = json_pack("{s:s,s:s,s:s,s:i,s:s}", "plain", "some text", "rude",
				 "a\x1b[2J\r\nb\tc\x7f"
				 "d\x01",
				 "c1", "\xc2\x9b[2J", "number", 1, "empty", "");
	char text[16];

	(void)state;
	assert_int_equal(control_text(body, "plain", text, sizeof(text)), 0);
	assert_string_equal(text, "some text");
	assert_int_equal(control_text(body, "plain", text, 5), 0);
	assert_string_equal(text, "some");
	assert_int_equal(control_text(body, "rude", text, sizeof(text)), 0);
	assert_string_equal(text, "a?[2J??b?c?d?");
	assert_int_equal(control_text(body, "c1", text, sizeof(text)), 0);
	assert_string_equal(text, "??[2J");
	assert_int_equal(control_text(body, "empty", text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(control_text(body, "number", text, sizeof(text)), -EBADMSG);
	assert_non_null(strstr(rxfer_error(), "number"));
	assert_int_equal(control_text(body, "absent", text, sizeof(text)), -EBADMSG);
	assert_non_null(strstr(rxfer_error(), "absent"));
	json_decref(body);
}

/* ---- Expectations ---- */

/* What control_expect(MSG_READY) makes of a message. */
static int expect_ready(enum message type, const char *payload)
{
	struct rxfer_wait wait = within(LONG_MS);
	json_t *body = NULL;
	struct link l;
	int rc;

	make_link(&l, PAIR);
	put_message(&l.a, type, payload, strlen(payload));
	rxfer_fail(EIO, "stale");
	rc = control_expect(&l.b, MSG_READY, &body, &wait);
	if (!rc)
		assert_true(json_is_object(body));
	json_decref(body);
	drop_link(&l);
	return rc;
}

static void the_expected_message(void **state)
{
	struct rxfer_wait wait = within(LONG_MS);
	struct link l;

	(void)state;
	assert_int_equal(expect_ready(MSG_READY, "{\"a\":1}"), 0);
	make_link(&l, PAIR);
	put_message(&l.a, MSG_STARTED, "{\"a\":1}", 7);
	assert_int_equal(control_expect(&l.b, MSG_STARTED, NULL, &wait), 0);
	control_close(&l.a);
	assert_int_equal(control_expect(&l.b, MSG_STARTED, NULL, &wait), -ECONNRESET);
	drop_link(&l);
}

static void another_message(void **state)
{
	(void)state;
	assert_int_equal(expect_ready(MSG_STARTED, "{}"), -EPROTO);
	assert_non_null(strstr(rxfer_error(), "the client side sent message 6"));
	assert_int_equal(expect_ready(MSG_STARTED, "{\"reason\":\"none\"}"), -EPROTO);
	assert_int_equal(expect_ready((enum message)4711, "{}"), -EPROTO);
	assert_non_null(strstr(rxfer_error(), "4711"));
}

static void the_peers_reason(void **state)
{
	static char longest[20000];

	(void)state;
	assert_int_equal(expect_ready(MSG_FAIL, "{\"reason\":\"no such device\"}"), -EREMOTEIO);
	assert_string_equal(rxfer_error(), "the client side: no such device");
	assert_int_equal(expect_ready(MSG_FAIL, "{\"reason\":\"a\\u001b[31m\\r\\nb\\u007f\"}"),
			 -EREMOTEIO);
	assert_string_equal(rxfer_error(), "the client side: a?[31m??b?");

	memset(longest, 'x', sizeof(longest) - 1);
	memcpy(longest, "{\"reason\":\"", 11);
	memcpy(longest + sizeof(longest) - 3, "\"}", 2);
	assert_int_equal(expect_ready(MSG_FAIL, longest), -EREMOTEIO);
	assert_in_range(strlen(rxfer_error()), 300, 511);
}

static void a_failure_without_a_reason(void **state)
{
	(void)state;
	assert_int_equal(expect_ready(MSG_FAIL, "{}"), -EPROTO);
	assert_non_null(strstr(rxfer_error(), "message 10"));
	assert_int_equal(expect_ready(MSG_FAIL, "{\"reason\":[1]}"), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_messages_both_ways),
		cmocka_unit_test(no_body_is_an_empty_object),
		cmocka_unit_test(bytes_on_the_wire),
		cmocka_unit_test(messages_keep_their_order),
		cmocka_unit_test(the_largest_message),
		cmocka_unit_test(in_single_bytes),
		cmocka_unit_test(cut_off_anywhere),
		cmocka_unit_test(reset_by_the_peer),
		cmocka_unit_test(send_to_nobody),
		cmocka_unit_test(web_servers_are_recognised),
		cmocka_unit_test(noise_is_refused),
		cmocka_unit_test(another_version_names_both),
		cmocka_unit_test(too_long_is_refused_at_once),
		cmocka_unit_test(payloads_that_are_no_object),
		cmocka_unit_test(nul_bytes),
		cmocka_unit_test(deep_nesting),
		cmocka_unit_test(unknown_types_are_the_callers),
		cmocka_unit_test(numbers_of_a_message),
		cmocka_unit_test(texts_of_a_message),
		cmocka_unit_test(the_expected_message),
		cmocka_unit_test(another_message),
		cmocka_unit_test(the_peers_reason),
		cmocka_unit_test(a_failure_without_a_reason),
	};

	return cmocka_run_group_tests_name("unit_control", tests, NULL, NULL);
}
