/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzer of what arrives on a control connection, at either end: client and server must survive
 * whoever is there. The first byte of an input tells what the rest is; its lower four bits are
 *
 *	0	the bytes as they arrive, headers and all
 *	N	the JSON text of one message of type N (enum message), to which the header is made:
 * else hardly a mutation would get beyond the check of the length
 *
 * so "2{...}" is a CONFIG. The peer then closes. The bytes are taken in by each receiver in turn,
 * and each message that comes out goes through all translators; what these accept must come back
 * the same from the opposite direction.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include "fence_msg.h"
#include "fuzz.h"
#include "session.h"

#define HEADER 12
#define BYTES  65536 /* that a socket takes at once */
#define QPS    64

/* struct stream - all that the peer says. */
struct stream {
	uint8_t bytes[BYTES];
	size_t n;
};

static void frame(uint8_t *to, unsigned int type, size_t length)
{
	const uint32_t magic = htonl(0x52584642u), bytes = htonl((uint32_t)length);
	const uint16_t version = htons(CONTROL_VERSION), kind = htons((uint16_t)type);

	memcpy(to, &magic, 4);
	memcpy(to + 4, &version, 2);
	memcpy(to + 6, &kind, 2);
	memcpy(to + 8, &bytes, 4);
}

static void make_stream(const uint8_t *data, size_t size, struct stream *s)
{
	unsigned int type = size ? data[0] & 15 : 0;
	size_t head = type ? HEADER : 0;

	data += size > 0;
	size -= size > 0;
	size = size < BYTES - HEADER ? size : BYTES - HEADER;
	if (type)
		frame(s->bytes, type, size);
	memcpy(s->bytes + head, data, size);
	s->n = head + size;
}

/* The end that hears it; @peer is the other one's, which can still be spoken to. */
static void connect_to(const struct stream *s, struct control *c, struct control *peer)
{
	FUZZ_CHECK(!control_pair(c, peer));
	FUZZ_CHECK(send(peer->fd, s->bytes, s->n, MSG_NOSIGNAL) == (ssize_t)s->n);
	FUZZ_CHECK(!shutdown(peer->fd, SHUT_WR));
}

static void hang_up(struct control *c, struct control *peer)
{
	control_close(c);
	control_close(peer);
}

static struct rxfer_wait patient(void)
{
	return (struct rxfer_wait){rxfer_now() + 60000000000ull, -1, NULL};
}

/* The errors of bytes that are there, from a peer that is gone behind them: none of them may wait.
 */
static void check_error(int rc)
{
	FUZZ_CHECK(rc == -ECONNRESET || rc == -EPROTO || rc == -EBADMSG || rc == -EREMOTEIO);
	fuzz_check_line(rxfer_error());
}

static void check_refusal(int rc)
{
	FUZZ_CHECK(rc == -EBADMSG || rc == -EINVAL);
	fuzz_check_line(rxfer_error());
}

/* ---- What is in a message ---- */

static void same(json_t *a, json_t *b)
{
	FUZZ_CHECK(a && b && json_equal(a, b));
	json_decref(a);
	json_decref(b);
}

/* What was taken from @body is what stands there; an address has more than one spelling. */
static void check_taken(const json_t *body, json_t *taken)
{
	const char *key;
	json_t *value;

	json_object_foreach(taken, key, value)
	{
		FUZZ_CHECK(!json_is_integer(value) || json_integer_value(value) >= 0);
		if (strcmp(key, "address"))
			FUZZ_CHECK(json_equal(value, json_object_get(body, key)));
	}
}

static const char *text_of(const json_t *body, const char *key)
{
	return json_string_value(json_object_get(body, key));
}

static void try_config(const json_t *body)
{
	uint8_t token[RXFER_TOKEN_BYTES], again[RXFER_TOKEN_BYTES];
	struct rxfer_conn_attr attr;
	struct layout layout;
	struct cfg cfg, copy;
	char why[512];
	json_t *sent;
	int rc = config_from_json(body, &cfg, token);

	if (rc) {
		check_refusal(rc);
		return;
	}
	FUZZ_CHECK(!cfg_check(&cfg, why, sizeof(why)));
	layout_make(&cfg, &layout);
	FUZZ_CHECK(
		!conn_attr(&cfg, &layout, (struct roles){true, true}, token, cfg.qps - 1, &attr));
	FUZZ_CHECK(layout.target >= cfg.size || cfg.op == OP_SEND);
	sent = config_to_json(&cfg, token);
	FUZZ_CHECK(!config_from_json(sent, &copy, again));
	FUZZ_CHECK(!memcmp(token, again, sizeof(token)));
	FUZZ_CHECK(!strcasecmp(text_of(sent, "token"), text_of(body, "token")));
	same(sent, config_to_json(&copy, again));
}

static void try_ready(const json_t *body)
{
	struct ready ready, copy;
	json_t *sent;
	int rc = ready_from_json(body, &ready);

	if (rc) {
		check_refusal(rc);
		return;
	}
	sent = ready_to_json(&ready);
	check_taken(body, sent);
	FUZZ_CHECK(!ready_from_json(sent, &copy));
	same(sent, ready_to_json(&copy));
}

static void try_counts(const json_t *body)
{
	struct counts counts;
	json_t *sent;
	int rc = counts_from_json(body, &counts);

	if (rc) {
		check_refusal(rc);
		return;
	}
	sent = counts_to_json(&counts);
	check_taken(body, sent);
	json_decref(sent);
}

/* With --bidir: of a peak that there is none of the text is null. */
static void try_load(const json_t *body)
{
	struct load_result load, copy;
	json_t *sent;
	int rc = load_from_json(body, &load);

	if (rc) {
		check_refusal(rc);
		return;
	}
	FUZZ_CHECK(isnan(load.peak) == json_is_null(json_object_get(body, "peak_mHz")));
	FUZZ_CHECK(isnan(load.peak) || load.peak >= 0);
	if (load.peak > 1e15)
		return; /* no load ever measured that, and it may not fit an integer any more */
	sent = load_to_json(&load, json_object());
	FUZZ_CHECK(!load_from_json(sent, &copy));
	FUZZ_CHECK(load.ios == copy.ios && load.bytes == copy.bytes && load.end == copy.end);
	FUZZ_CHECK(load.cut_short == copy.cut_short);
	json_decref(sent);
}

/* Of MEMORY, and of READY. */
static void try_target(const json_t *body)
{
	struct target target;
	json_t *sent;
	int rc = target_from_json(body, &target);

	if (rc) {
		check_refusal(rc);
		return;
	}
	FUZZ_CHECK(target.addr + target.len >= target.addr);
	sent = json_object();
	target_to_json(&target, sent);
	check_taken(body, sent);
	json_decref(sent);
}

static void try_found(const json_t *body)
{
	struct found found, copy;
	json_t *sent;
	int rc = found_from_json(body, &found);

	if (rc) {
		check_refusal(rc);
		return;
	}
	sent = json_object();
	found_to_json(sent, &found);
	FUZZ_CHECK(!found_from_json(sent, &copy));
	FUZZ_CHECK(!strcmp(found.cpu, copy.cpu) && !strcmp(found.mem_node, copy.mem_node));
	json_decref(sent);
}

/* For as many QPs as it lists, and for one more. */
static void try_messages(const json_t *body)
{
	const json_t *list = json_object_get(body, "messages");
	uint64_t messages[QPS], qps = json_array_size(list);
	int rc;

	if (qps >= QPS)
		return;
	rc = messages_from_json(body, messages, qps);
	if (rc)
		check_refusal(rc);
	for (uint64_t i = 0; !rc && i < qps; i++) {
		FUZZ_CHECK(messages[i] <= INT64_MAX);
		FUZZ_CHECK((json_int_t)messages[i] == json_integer_value(json_array_get(list, i)));
	}
	check_refusal(messages_from_json(body, messages, qps + 1));
}

/* What a fence's client says; and what its server says of an attempt. */
static void try_fence(const json_t *body)
{
	struct fence_hold hold;
	struct fence_reply reply;
	struct fence_try try;
	struct fence_tried tried;
	json_t *sent;

	if (!fence_hold_from_json(body, &hold)) {
		FUZZ_CHECK(hold.conns && hold.conns <= FENCE_CONNS);
		FUZZ_CHECK(hold.requests && hold.requests <= FENCE_REQUESTS);
	}
	if (!fence_reply_from_json(body, &reply)) {
		sent = fence_reply_to_json(&reply);
		check_taken(body, sent);
		json_decref(sent);
	}
	if (!fence_try_from_json(body, &try)) {
		FUZZ_CHECK(try.conn < FENCE_CONNS);
		sent = fence_try_to_json(&try);
		check_taken(body, sent);
		json_decref(sent);
	}
	if (!fence_tried_from_json(body, &tried)) {
		FUZZ_CHECK(fence_outcome_name(tried.outcome));
		if (tried.words[0])
			fuzz_check_line(tried.words);
	} else {
		check_refusal(-EBADMSG);
	}
}

static void try_body(const json_t *body)
{
	FUZZ_CHECK(json_is_object(body));
	try_config(body);
	try_ready(body);
	try_target(body);
	try_counts(body);
	try_load(body);
	try_found(body);
	try_messages(body);
	try_fence(body);
}

/* ---- The receivers ---- */

static void receive(const struct stream *s)
{
	struct rxfer_wait wait = patient();
	struct control c, peer;
	enum message type;
	json_t *body;
	int rc;

	connect_to(s, &c, &peer);
	while (!(rc = control_recv(&c, &type, &body, &wait))) {
		FUZZ_CHECK(type != MSG_ALIVE);
		try_body(body);
		json_decref(body);
	}
	check_error(rc);
	hang_up(&c, &peer);
}

static void expect(const struct stream *s)
{
	struct rxfer_wait wait = patient();
	struct control c, peer;
	json_t *body;
	int rc;

	connect_to(s, &c, &peer);
	rc = control_expect(&c, MSG_READY, &body, &wait);
	if (!rc)
		json_decref(body);
	else
		check_error(rc);
	hang_up(&c, &peer);
}

/* Until it fails: behind what is there, the end of the connection is something to be polled, too.
 */
static void poll_all(const struct stream *s)
{
	struct rxfer_wait wait = patient();
	struct control c, peer;
	enum message type;
	uint64_t heard;
	json_t *body;
	int rc;

	connect_to(s, &c, &peer);
	do {
		heard = 0;
		rc = control_poll(&c, &type, &body, &heard, &wait);
		FUZZ_CHECK(heard || rc);
		FUZZ_CHECK(rc || type != MSG_ALIVE);
		if (!rc)
			json_decref(body);
		else if (rc != -EAGAIN)
			check_error(rc);
	} while (!rc || rc == -EAGAIN);
	hang_up(&c, &peer);
}

/* As the server hears a client, which is answered, and as a client that failed asks for a reason.
 */
static void greet(const struct stream *s)
{
	struct rxfer_wait wait = patient();
	struct control c, peer;
	struct peer who;
	int rc;

	connect_to(s, &c, &peer);
	rc = session_hello(&c, false, &who, &wait);
	if (rc)
		check_error(rc);
	else
		FUZZ_CHECK(strlen(who.version) < sizeof(who.version));
	rxfer_fail(EIO, "out of order");
	rc = control_reason(&c, -EIO);
	FUZZ_CHECK(rc == -EIO || rc == -EREMOTEIO || rc == -EPROTO); /* a FAIL without a reason */
	fuzz_check_line(rxfer_error());
	hang_up(&c, &peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct stream s;

	make_stream(data, size, &s);
	receive(&s);
	expect(&s);
	poll_all(&s);
	greet(&s);
	return 0;
}
