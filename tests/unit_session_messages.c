/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All of a session's messages but the settings: names, addresses and counts arrive as they were. */
#include "config.h"
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>

#include "session_fixture.h"
#include "env.h"

/* A stand-in for the load of direct mode, of which messages_to_json() asks this alone. */
struct load {
	const uint64_t *messages;
};

uint64_t load_messages(const struct load *d, unsigned int qp)
{
	return d->messages[qp];
}

/* ---- HELLO ---- */

/* What session_hello() makes of a peer's first message, already under way. */
static int meet(bool first, enum message type, json_t *says, struct peer *peer, json_t **answer)
{
	struct rxfer_wait wait = {rxfer_now() + 200000000, -1, NULL};
	struct control ours, theirs;
	enum message got;
	char why[512];
	int rc;

	*answer = NULL;
	memset(peer, 0, sizeof(*peer));
	assert_int_equal(control_pair(&theirs, &ours), 0);
	assert_int_equal(control_send(&theirs, type, says, &wait), 0);
	rxfer_fail(EIO, "stale");
	rc = session_hello(&ours, first, peer, &wait);
	snprintf(why, sizeof(why), "%s", rxfer_error());
	control_close(&ours);
	if (!control_recv(&theirs, &got, answer, &wait))
		assert_int_equal(got, MSG_HELLO);
	control_close(&theirs);
	rxfer_fail(EIO, "%s", why);
	return rc;
}

static json_t *hello(const char *version, const char *host, const char *boot)
{
	return json_pack("{s:s,s:s,s:s}", "version", version, "host", host, "boot", boot);
}

static void both_sides_introduce_themselves(void **state)
{
	char host[RESULT_TEXT], boot[64];
	struct peer peer;
	json_t *answer;

	(void)state;
	env_host(host, sizeof(host));
	env_boot(boot, sizeof(boot));
	for (int first = 0; first < 2; first++) {
		int rc = meet(first, MSG_HELLO, hello("9.8.7", "far-away", boot), &peer, &answer);

		assert_int_equal(rc, 0);
		assert_string_equal(peer.version, "9.8.7");
		assert_string_equal(peer.host, "far-away");
		assert_int_equal(peer.same_machine, boot[0] != '\0');
		assert_string_equal(json_string_value(json_object_get(answer, "version")),
				    PACKAGE_VERSION);
		assert_string_equal(json_string_value(json_object_get(answer, "host")), host);
		assert_string_equal(json_string_value(json_object_get(answer, "boot")), boot);
		json_decref(answer);
	}
}

static void another_boot_is_another_machine(void **state)
{
	struct peer peer;
	json_t *answer;

	(void)state;
	assert_int_equal(meet(true, MSG_HELLO, hello("1", "h", "other"), &peer, &answer), 0);
	assert_false(peer.same_machine);
	json_decref(answer);
	assert_int_equal(meet(true, MSG_HELLO, hello("1", "h", ""), &peer, &answer), 0);
	assert_false(peer.same_machine);
	json_decref(answer);
}

/* Nobody who lacks one is answered. */
static void an_incomplete_hello(void **state)
{
	static const char *const names[] = {"version", "host", "boot"};
	struct peer peer;
	json_t *answer;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		json_t *says = hello("1", "h", "b");

		json_object_del(says, names[i]);
		assert_int_equal(meet(false, MSG_HELLO, says, &peer, &answer), -EBADMSG);
		assert_says(names[i]);
		assert_null(answer);
	}
	assert_int_equal(meet(false, MSG_CONFIG, hello("1", "h", "b"), &peer, &answer), -EPROTO);
	assert_null(answer);
	assert_int_equal(
		meet(false, MSG_FAIL, json_pack("{s:s}", "reason", "full"), &peer, &answer),
		-EREMOTEIO);
	assert_says("full");
}

/* Names of any length and content end in a report. */
static void a_rude_hello(void **state)
{
	static char longest[5000];
	struct peer peer;
	json_t *answer;

	(void)state;
	memset(longest, 'v', sizeof(longest) - 1);
	assert_int_equal(meet(true, MSG_HELLO, hello(longest, longest, longest), &peer, &answer),
			 0);
	assert_int_equal(strlen(peer.version), sizeof(peer.version) - 1);
	assert_int_equal(strlen(peer.host), sizeof(peer.host) - 1);
	json_decref(answer);
	assert_int_equal(meet(true, MSG_HELLO, hello("1\n", "h\x1b[2J", "b"), &peer, &answer), 0);
	assert_string_equal(peer.version, "1?");
	assert_string_equal(peer.host, "h?[2J");
	json_decref(answer);
}

/* ---- READY ---- */

static struct ready at(int family, const char *address, uint16_t port)
{
	struct ready r = {.target = {0x7fffffffffffffff, 0x7fffffffffffffff, 0xffffffff}};

	r.addr.ss_family = (sa_family_t)family;
	if (family == AF_INET) {
		struct sockaddr_in *in = (struct sockaddr_in *)&r.addr;

		in->sin_port = htons(port);
		assert_int_equal(inet_pton(family, address, &in->sin_addr), 1);
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&r.addr;

		in6->sin6_port = htons(port);
		assert_int_equal(inet_pton(family, address, &in6->sin6_addr), 1);
	}
	return r;
}

static void ready_travels(void **state)
{
	const struct ready cases[] = {
		at(AF_INET, "192.0.2.1", 1),
		at(AF_INET, "255.255.255.255", 65535),
		at(AF_INET6, "2001:db8::1", 18515),
		at(AF_INET6, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 65535),
		at(AF_INET6, "::ffff:192.0.2.1", 18515),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *body = travel(ready_to_json(&cases[i]));
		struct ready got;

		memset(&got, 0xee, sizeof(got));
		assert_int_equal(ready_from_json(body, &got), 0);
		assert_memory_equal(&got.addr, &cases[i].addr, sizeof(got.addr));
		assert_true(got.target.addr == cases[i].target.addr);
		assert_true(got.target.len == cases[i].target.len);
		assert_int_equal(got.target.key, cases[i].target.key);
		json_decref(body);
	}
}

/* With @name set to @value (NULL: left out) READY is refused, and the reason names it. */
static void ready_refuses(const char *name, json_t *value)
{
	struct ready r = at(AF_INET, "192.0.2.1", 18515), got;
	json_t *body = ready_to_json(&r);

	if (value)
		json_object_set_new(body, name, value);
	else
		json_object_del(body, name);
	body = travel(body);
	rxfer_fail(EIO, "stale");
	if (ready_from_json(body, &got) != -EBADMSG) {
		char *text = json_dumps(json_object_get(body, name), JSON_ENCODE_ANY);

		fail_msg("%s: %s was taken", name, text);
	}
	assert_says(name);
	json_decref(body);
}

static void malformed_ready(void **state)
{
	static const char *const names[] = {"address", "port", "memory", "bytes", "key"};
	static const char *const addresses[] = {"",	     "1.2.3",	   "1.2.3.4.5",
						"256.1.1.1", "::g",	   "localhost",
						"1.2.3.4 ",  "fe80::1%lo", "\x1b[2J"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ready_refuses(names[i], NULL);
		ready_refuses(names[i], json_null());
		ready_refuses(names[i], json_real(1.5));
		ready_refuses(names[i], json_integer(-1));
	}
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
		ready_refuses("address", json_string(addresses[i]));
	ready_refuses("port", json_string("18515"));
	ready_refuses("key", json_array());
}

/* A port or a key that had to be cut would be another one. */
static void a_port_too_large(void **state)
{
	(void)state;
	ready_refuses("port", json_integer(65536 + 18515));
}

static void a_key_too_large(void **state)
{
	(void)state;
	ready_refuses("key", json_integer((1ll << 32) + 5));
}

/* ---- START, STOP ---- */

static void messages_travel(void **state)
{
	static uint64_t sent[16384], got[16384];
	static const uint64_t qps[] = {1, 2, 100, 16384};
	struct load d = {sent};

	(void)state;
	for (size_t i = 0; i < 16384; i++)
		sent[i] = 1000000000000 - i;
	sent[0] = 0;
	sent[1] = INT64_MAX;
	for (size_t i = 0; i < sizeof(qps) / sizeof(qps[0]); i++) {
		json_t *body = travel(messages_to_json(&d, qps[i]));

		memset(got, 0xee, sizeof(got));
		assert_int_equal(messages_from_json(body, got, qps[i]), 0);
		assert_memory_equal(got, sent, qps[i] * sizeof(got[0]));
		json_decref(body);
	}
}

static void messages_refuse(const char *text, uint64_t qps)
{
	json_t *body = json_loads(text, 0, NULL);
	uint64_t got[8];

	assert_non_null(body);
	rxfer_fail(EIO, "stale");
	if (messages_from_json(body, got, qps) != -EBADMSG)
		fail_msg("%s was taken for %llu QPs", text, (unsigned long long)qps);
	assert_says("messages");
	json_decref(body);
}

static void another_number_of_messages(void **state)
{
	(void)state;
	messages_refuse("{}", 1);
	messages_refuse("{\"messages\":[]}", 1);
	messages_refuse("{\"messages\":[1]}", 2);
	messages_refuse("{\"messages\":[1,2,3]}", 2);
	messages_refuse("{\"messages\":7}", 1);
	messages_refuse("{\"messages\":\"7\"}", 1);
	messages_refuse("{\"messages\":{\"a\":1}}", 1);
}

static void messages_that_are_no_counts(void **state)
{
	static const char *const bad[] = {"-1", "\"1\"", "null", "1.5", "[]", "true", "{}"};
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "{\"messages\":[5,%s]}", bad[i]);
		messages_refuse(text, 2);
	}
}

/* ---- RESULT ---- */

static const char *const count_names[] = {"sqe",
					  "posts",
					  "cqe",
					  "recv_cqe",
					  "copied_bytes",
					  "lookups",
					  "hits",
					  "faults",
					  "fault_counts",
					  "passes",
					  "idle",
					  "sq_peak",
					  "forced_signals",
					  "cpu_ns",
					  "sqe_read",
					  "sqe_write",
					  "sqe_send",
					  "stalls",
					  "unproven",
					  "round_waits",
					  "stall_ns",
					  "unproven_ns",
					  "round_wait_ns"};

/* The client's alone. */
static void forget_own(struct counts *c)
{
	c->map_ns = c->unmap_ns = c->unrevoked = c->unrevoked_ns = 0;
	c->sqe_bind = c->sqe_inv = c->overposts = 0;
}

static void counts_travel(void **state)
{
	struct counts got, sent = {.sqe = 1,
				   .posts = 2,
				   .cqe = 3,
				   .recv_cqe = INT64_MAX,
				   .copied_bytes = 5,
				   .lookups = 4,
				   .hits = 3,
				   .faults = 17,
				   .fault_counts = 18,
				   .passes = 6,
				   .idle = 7,
				   .sq_peak = 8,
				   .cpu_ns = 10,
				   .sqe_read = 11,
				   .sqe_write = 12,
				   .sqe_send = 13,
				   .stalls = 14,
				   .unproven = 15,
				   .round_waits = 19,
				   .stall_ns = 16,
				   .unproven_ns = 20,
				   .round_wait_ns = 21};
	json_t *body = travel(counts_to_json(&sent));

	(void)state;
	assert_int_equal(sizeof(sent), 30 * sizeof(uint64_t)); /* a new member needs a name here */
	memset(&got, 0xee, sizeof(got));
	forget_own(&got);
	assert_int_equal(counts_from_json(body, &got), 0);
	assert_memory_equal(&got, &sent, sizeof(got));
	for (size_t i = 0; i < sizeof(count_names) / sizeof(count_names[0]); i++) {
		json_t *less = json_copy(body);

		json_object_del(less, count_names[i]);
		assert_int_equal(counts_from_json(less, &got), -EBADMSG);
		assert_says(count_names[i]);
		json_object_set_new(less, count_names[i], json_integer(-1));
		assert_int_equal(counts_from_json(less, &got), -EBADMSG);
		assert_says(count_names[i]);
		json_decref(less);
	}
	json_decref(body);
}

/* Texts beside the counts, which do not mind them. */
static void what_was_found_travels(void **state)
{
	static const char *const names[] = {"cpu", "mem_node"};
	struct counts counts = {.sqe = 7}, got_counts;
	struct found sent = {"moved", "0+1"}, got;
	json_t *body = counts_to_json(&counts);

	(void)state;
	found_to_json(body, &sent);
	body = travel(body);
	memset(&got, 0xee, sizeof(got));
	assert_int_equal(found_from_json(body, &got), 0);
	assert_string_equal(got.cpu, "moved");
	assert_string_equal(got.mem_node, "0+1");
	assert_int_equal(counts_from_json(body, &got_counts), 0);
	assert_int_equal(got_counts.sqe, 7);
	for (size_t i = 0; i < 2; i++) {
		json_t *less = json_copy(body);

		json_object_del(less, names[i]);
		assert_int_equal(found_from_json(less, &got), -EBADMSG);
		assert_says(names[i]);
		json_object_set_new(less, names[i], json_integer(1));
		assert_int_equal(found_from_json(less, &got), -EBADMSG);
		json_object_set_new(less, names[i], json_string("\x1b[2J"));
		assert_int_equal(found_from_json(less, &got), 0);
		assert_string_equal(i ? got.mem_node : got.cpu, "?[2J");
		json_decref(less);
	}
	json_decref(body);
}

/* ---- Data connections ---- */

static void attributes_of_a_qp(void **state)
{
	const struct roles client = {.issues = true}, server = {.receives = true};
	struct rxfer_conn_attr attr;
	struct layout layout;
	struct cfg cfg;

	(void)state;
	cfg_init(&cfg);
	cfg.mode = MODE_DIRECT;
	cfg.op = OP_SEND;
	cfg.rnr_retry = 3;
	cfg.depth = 9;
	cfg.inline_max = 64;
	cfg.max_sge = 3;
	cfg.post = POST_SINGLE;
	cfg.timing = TIMING_PHASES;
	snprintf(cfg.signal, sizeof(cfg.signal), "every:77");
	layout_make(&cfg, &layout);
	assert_int_equal(conn_attr(&cfg, &layout, client, token, 16383, &attr), 0);
	assert_int_equal(attr.index, 16383);
	assert_int_equal(attr.rnr_retry, 3);
	assert_memory_equal(attr.token, token, sizeof(token));
	assert_string_equal(attr.sig->name, "every");
	assert_int_equal(attr.sig_arg, 77);
	assert_int_equal(attr.slots, 9);
	assert_int_equal(attr.inline_max, 64);
	assert_int_equal(attr.sge_max, 3);
	assert_true(attr.post_single && attr.time_phases);
	assert_int_equal(attr.rq_depth, CREDIT_RECVS);
	assert_int_equal(conn_attr(&cfg, &layout, server, token, 1, &attr), 0);
	assert_string_equal(attr.sig->name, "half");
	assert_int_equal(attr.inline_max, 0);
	assert_int_equal(attr.rq_depth, 18);
}

/* RECVs are for messages of data where they arrive, and for notes where they were sent from. */
static void recvs_of_an_end(void **state)
{
	static const struct {
		enum cfg_op op;
		struct roles roles;
		uint32_t recvs;
	} cases[] = {
		{OP_READ, {true, true}, 0},
		{OP_WRITE, {false, true}, 0},
		{OP_SEND, {true, false}, CREDIT_RECVS},
		{OP_SEND, {false, true}, 32},
		{OP_WRITE_IMM, {true, true}, 32 + CREDIT_RECVS},
	};
	struct layout layout;
	struct cfg cfg;

	(void)state;
	cfg_init(&cfg);
	cfg.mode = MODE_DIRECT;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cfg.op = cases[i].op;
		layout_make(&cfg, &layout);
		assert_int_equal(sink_recvs(&cfg, &layout, cases[i].roles), cases[i].recvs);
	}
}

static void a_load_travels(void **state)
{
	static const char *const names[] = {"ios", "moved_bytes", "ns", "peak_mHz", "cut_short"};
	struct load_result got, sent = {.ios = 7, .bytes = 1ull << 40, .start = 1000, .end = 4000};
	json_t *body;

	(void)state;
	sent.peak = 1234.5678;
	body = travel(load_to_json(&sent, json_object()));
	assert_int_equal(load_from_json(body, &got), 0);
	assert_int_equal(got.ios, 7);
	assert_int_equal(got.bytes, 1ull << 40);
	assert_int_equal(got.end - got.start, 3000);
	assert_true(got.peak > 1234.56 && got.peak < 1234.57);
	assert_false(got.cut_short);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		json_t *less = json_copy(body);

		json_object_del(less, names[i]);
		rxfer_fail(EIO, "stale");
		assert_int_equal(load_from_json(less, &got), -EBADMSG);
		assert_says(names[i]);
		json_object_set_new(less, names[i], json_integer(-1));
		assert_int_equal(load_from_json(less, &got), -EBADMSG);
		json_decref(less);
	}
	json_decref(body);
}

/* Nothing was done, or in no time: there is no peak, and that is told. */
static void a_load_without_a_peak_travels(void **state)
{
	struct load_result got, sent = {.end = 5, .peak = NAN, .cut_short = true};
	json_t *body = travel(load_to_json(&sent, json_object()));

	(void)state;
	assert_int_equal(load_from_json(body, &got), 0);
	assert_true(isnan(got.peak));
	assert_int_equal(got.ios, 0);
	assert_true(got.cut_short);
	json_decref(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_introduce_themselves),
		cmocka_unit_test(another_boot_is_another_machine),
		cmocka_unit_test(an_incomplete_hello),
		cmocka_unit_test(a_rude_hello),
		cmocka_unit_test(ready_travels),
		cmocka_unit_test(malformed_ready),
		cmocka_unit_test(a_port_too_large),
		cmocka_unit_test(a_key_too_large),
		cmocka_unit_test(messages_travel),
		cmocka_unit_test(another_number_of_messages),
		cmocka_unit_test(messages_that_are_no_counts),
		cmocka_unit_test(counts_travel),
		cmocka_unit_test(what_was_found_travels),
		cmocka_unit_test(attributes_of_a_qp),
		cmocka_unit_test(recvs_of_an_end),
		cmocka_unit_test(a_load_travels),
		cmocka_unit_test(a_load_without_a_peak_travels),
	};

	return cmocka_run_group_tests_name("unit_session_messages", tests, NULL, NULL);
}
