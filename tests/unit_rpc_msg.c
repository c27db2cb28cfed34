/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages of remote procedure calls: there and back, and all that they may not be. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rpc_msg.h"
#include "rxfer.h"

#define SLOTS  64
#define INLINE 4096

/* In memory of just its size, so that sanitizers and valgrind see whoever goes beyond. */
struct message {
	uint8_t *bytes;
	uint32_t n;
};

static struct message message_new(uint32_t n)
{
	struct message m = {malloc(n ? n : 1), n};

	assert_non_null(m.bytes);
	return m;
}

/* The last @n bytes of @m become inline data that tell where they stand. */
static void put_inline(struct message *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		m->bytes[m->n - n + i] = (uint8_t)(i * 7 + 1);
}

static struct message request_message(const struct rpc_request *r)
{
	struct message m = message_new(rpc_request_bytes(r->nsegs, r->inline_len));

	assert_int_equal(rpc_request_write(m.bytes, r), m.n - r->inline_len);
	put_inline(&m, r->inline_len);
	return m;
}

static struct message reply_message(const struct rpc_reply *r)
{
	struct message m = message_new(rpc_reply_bytes(r->inline_len));

	assert_int_equal(rpc_reply_write(m.bytes, r), m.n - r->inline_len);
	put_inline(&m, r->inline_len);
	return m;
}

/* One of @n segments; with the largest addresses and keys among them. */
static struct rxfer_seg some_seg(uint32_t i)
{
	return (struct rxfer_seg){i % 2 ? UINT64_MAX - i - 1 : 0x0102030405060708u + i, i + 1,
				  0xfffefdfcu - i};
}

static void fill_segs(struct rpc_request *r)
{
	r->length = r->inline_len;
	for (uint32_t i = 0; i < r->nsegs; i++) {
		r->segs[i] = some_seg(i);
		r->length += r->segs[i].len;
	}
}

/* ---- There and back ---- */

static void request_there_and_back(struct rpc_request r)
{
	struct rxfer_seg segs[RPC_SEGS_MAX], got[RPC_SEGS_MAX];
	struct rpc_request out = {.segs = got};
	struct rpc_limits limits;
	struct message m;

	r.segs = segs;
	fill_segs(&r);
	limits = (struct rpc_limits){SLOTS, r.nsegs, r.length, r.inline_len, r.op, r.flags};
	m = request_message(&r);
	if (rpc_request_parse(m.bytes, m.n, &limits, &out))
		fail_msg("%u segments: %s", r.nsegs, rxfer_error());
	assert_int_equal(out.id, r.id);
	assert_int_equal(out.op, r.op);
	assert_int_equal(out.flags, r.flags);
	assert_int_equal(out.length, r.length);
	assert_int_equal(out.nsegs, r.nsegs);
	assert_memory_equal(got, segs, r.nsegs * sizeof(*got));
	assert_int_equal(out.inline_len, r.inline_len);
	assert_ptr_equal(out.inline_data, r.inline_len ? m.bytes + m.n - r.inline_len : NULL);
	free(m.bytes);
}

static void requests_there_and_back(void **state)
{
	static const uint32_t nsegs[] = {0, 1, 2, 16, 255, 256}, inlines[] = {0, 1, INLINE};
	static const uint32_t ids[] = {0, 1, SLOTS - 1};

	(void)state;
	for (size_t id = 0; id < 3; id++) {
		for (size_t i = 0; i < 6; i++) {
			request_there_and_back(
				(struct rpc_request){ids[id], RPC_READ, 0, nsegs[i]});
			request_there_and_back(
				(struct rpc_request){ids[id], RPC_WRITE, RPC_REPLY_IMM, nsegs[i]});
		}
		for (size_t i = 0; i < 3; i++)
			request_there_and_back((struct rpc_request){
				ids[id], RPC_SEND, RPC_DATA_BACK, .inline_len = inlines[i]});
	}
}

static void replies_there_and_back(void **state)
{
	static const uint32_t inlines[] = {0, 1, INLINE};
	const struct rpc_limits limits = {SLOTS, 1, INLINE, INLINE, RPC_SEND, 0};

	(void)state;
	for (size_t i = 0; i < 9; i++) {
		struct rpc_reply r = {SLOTS - 1, (enum rpc_status)(i % 3), UINT64_MAX - i,
				      inlines[i / 3], NULL};
		struct message m = reply_message(&r);
		struct rpc_reply out;

		assert_int_equal(rpc_reply_parse(m.bytes, m.n, &limits, &out), 0);
		assert_int_equal(out.id, r.id);
		assert_int_equal(out.status, r.status);
		assert_true(out.bytes == r.bytes);
		assert_int_equal(out.inline_len, r.inline_len);
		assert_ptr_equal(out.inline_data, r.inline_len ? m.bytes + RPC_REPLY_BYTES : NULL);
		free(m.bytes);
	}
}

/* As the table on top of rpc_msg.c has it. */
static void bytes_on_the_wire(void **state)
{
	static const char request[] = "RXFQ\0\1\2\2\0\0\1\2\0\0\0\1\0\0\0\0\0\0\4\0\0\0\0\0\0\0\0\0"
				      "\1\2\3\4\5\6\7\x8\0\0\4\0\xa\xb\xc\xd";
	static const char reply[] = "RXFA\0\1\0\2\0\0\1\2\0\0\0\3\1\2\3\4\5\6\7\x8";
	struct rxfer_seg seg = {0x0102030405060708u, 1024, 0x0a0b0c0d};
	const struct rpc_request q = {0x102, RPC_WRITE, RPC_REPLY_IMM, 1, 1024, &seg, 0, NULL};
	const struct rpc_reply a = {0x102, RPC_FAILED, 0x0102030405060708u, 3, NULL};
	struct message m = request_message(&q), n = reply_message(&a);

	(void)state;
	assert_int_equal(m.n, sizeof(request) - 1);
	assert_memory_equal(m.bytes, request, m.n);
	assert_int_equal(n.n, sizeof(reply) - 1 + 3);
	assert_memory_equal(n.bytes, reply, sizeof(reply) - 1);
	free(m.bytes);
	free(n.bytes);
}

static void a_patched_request_is_as_one_written_anew(void **state)
{
	static const uint32_t nsegs[] = {0, 1, 2, 255, 256};
	struct rxfer_seg segs[RPC_SEGS_MAX];

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct rpc_request r = {7, RPC_READ, 0, nsegs[i], .segs = segs};
		struct message patched, anew;

		fill_segs(&r);
		patched = request_message(&r);
		for (uint32_t s = 0; s < r.nsegs; s++)
			segs[s].key = 0x01020304 * (s + 1);
		anew = request_message(&r);
		rpc_request_set_keys(patched.bytes, segs, r.nsegs);
		assert_memory_equal(patched.bytes, anew.bytes, anew.n);
		free(patched.bytes);
		free(anew.bytes);
	}
}

/* ---- Malformed ones ---- */

/* What is changed to be malformed: what is no reply is a request. */
enum base { READ, WRITE, EMPTY, SEND, REPLY };

static const struct rpc_limits limits_of[] = {
	[READ] = {SLOTS, 256, 128, 0, RPC_READ, 0},
	[WRITE] = {SLOTS, 256, 1ull << 33, 0, RPC_WRITE, RPC_REPLY_IMM},
	[EMPTY] = {SLOTS, 256, 0, 0, RPC_WRITE, 0},
	[SEND] = {SLOTS, 0, 128, 6, RPC_SEND, RPC_DATA_BACK},
	[REPLY] = {SLOTS, 0, 128, 6, RPC_SEND, RPC_DATA_BACK},
};

static struct message good(enum base base)
{
	struct rxfer_seg segs[] = {{0x1000, 100, 7}, {0x2000, 28, 8}};
	const struct rpc_limits *l = &limits_of[base];
	struct rpc_request r = {5, l->op, l->flags, 2, 128, segs, 0, NULL};
	const struct rpc_reply reply = {5, RPC_OK, 5, 5, NULL};

	if (base == REPLY)
		return reply_message(&reply);
	if (base == SEND || base == EMPTY) {
		r.nsegs = 0;
		r.inline_len = base == SEND ? 5 : 0;
		r.length = r.inline_len;
	}
	return request_message(&r);
}

/* struct bad - @more bytes behind it, and the @width bytes at @at set to @value. */
static const struct bad {
	enum base base;
	int more;
	uint32_t at, width;
	uint64_t value;
	const char *want;
} bad_messages[] = {
	/* the size */
	{READ, -64, 0, 0, 0, "the request has 0 bytes (its header alone has 32)"},
	{READ, -63, 0, 0, 0, "the request has 1 byte (its header alone has 32)"},
	{READ, -33, 0, 0, 0, "the request has 31 bytes (its header alone has 32)"},
	{READ, -32, 0, 0, 0, "the request is cut off: it has 32 bytes (its header says 64)"},
	{READ, -1, 0, 0, 0, "the request is cut off: it has 63 bytes (its header says 64)"},
	{SEND, -1, 0, 0, 0, "the request is cut off: it has 36 bytes (its header says 37)"},
	{READ, 0, 12, 4, 256, "the request is cut off: it has 64 bytes (its header says 4128)"},
	{READ, 1, 0, 0, 0, "the request is too long: it has 65 bytes (its header says 64)"},
	{SEND, 1, 0, 0, 0, "the request is too long: it has 38 bytes (its header says 37)"},
	{READ, 0, 12, 4, 1, "the request is too long: it has 64 bytes (its header says 48)"},
	/* the header */
	{READ, 0, 0, 4, 0, "the request begins with 0x00000000 (it should be 0x52584651)"},
	{READ, 0, 0, 4, 0x51465852, "the request begins with 0x51465852 (it should be 0x52584651)"},
	{READ, 0, 0, 4, 0x52584641, "a reply came where a request was due"},
	{READ, 0, 4, 2, 0, "the request is of version 0 (ours is 1)"},
	{READ, 0, 4, 2, 0x100, "the request is of version 256 (ours is 1)"},
	{READ, 0, 6, 1, 0, "the request has operation 0 (known are 1 to 3)"},
	{READ, 0, 6, 1, 4, "the request has operation 4 (known are 1 to 3)"},
	{READ, 0, 6, 1, 255, "the request has operation 255 (known are 1 to 3)"},
	{READ, 0, 6, 1, 2, "the request is a write (agreed was read)"},
	{READ, 0, 6, 1, 3, "the request is a send (agreed was read)"},
	{WRITE, 0, 6, 1, 1, "the request is a read (agreed was write)"},
	{READ, 0, 7, 1, 8, "the request has flags 0x08 (known are 0x07)"},
	{WRITE, 0, 7, 1, 0x82, "the request has flags 0x82 (known are 0x07)"},
	{READ, 0, 7, 1, 2, "the request has flags 0x02 (agreed were 0x00)"},
	{READ, 0, 7, 1, 4, "the request has flags 0x04 (agreed were 0x00)"},
	{WRITE, 0, 7, 1, 6, "the request has flags 0x06 (agreed were 0x02)"},
	{WRITE, 0, 7, 1, 0, "the request has flags 0x00 (agreed were 0x02)"},
	{READ, 0, 8, 4, 64, "the request has id 64 (allowed are 0 to 63)"},
	{READ, 0, 8, 4, 0xffffffff, "the request has id 4294967295 (allowed are 0 to 63)"},
	{READ, 0, 28, 4, 0x100, "the request has 0x00000100 in bytes 28 to 31 (0 is due)"},
	/* the length */
	{READ, 0, 16, 8, 129, "the request says a length of 129 bytes (at most 128)"},
	{READ, 0, 16, 8, UINT64_MAX,
	 "the request says a length of 18446744073709551615 bytes (at most 128)"},
	{EMPTY, 0, 16, 8, 1, "the request says a length of 1 byte (at most 0)"},
	{READ, 0, 16, 8, 0, "the request says a length of 0 bytes (allowed are 1 to 128)"},
	/* the number of segments */
	{READ, 0, 12, 4, 0, "the request says 0 segments (at least 1 for 128 bytes)"},
	{READ, 0, 12, 4, 257, "the request says 257 segments (at most 256)"},
	{READ, 0, 12, 4, 300, "the request says 300 segments (at most 256)"},
	{READ, 0, 12, 4, 0x10000002, "the request says 268435458 segments (at most 256)"},
	{SEND, 0, 12, 4, 1, "the request says 1 segment (a send has none)"},
	{EMPTY, 16, 12, 4, 1, "the request says 1 segment (none for 0 bytes)"},
	/* inline data */
	{READ, 1, 24, 4, 1, "the request says 1 byte of inline data (a read has none)"},
	{WRITE, 2, 24, 4, 2, "the request says 2 bytes of inline data (a write has none)"},
	{SEND, 2, 24, 4, 7, "the request says 7 bytes of inline data (at most 6)"},
	{SEND, 0, 24, 4, 0xffffffff,
	 "the request says 4294967295 bytes of inline data (at most 6)"},
	{SEND, 1, 24, 4, 6, "the request says 6 bytes of inline data (its length is 5)"},
	{SEND, -5, 24, 4, 0, "the request says 0 bytes of inline data (its length is 5)"},
	{SEND, 0, 16, 8, 0x100000005,
	 "the request says a length of 4294967301 bytes (at most 128)"},
	/* segments */
	{READ, 0, 40, 4, 0,
	 "segment 0 of the request has a length of 0 bytes (allowed are 1 to 2147483648)"},
	{WRITE, 0, 56, 4, 0x80000001,
	 "segment 1 of the request has a length of 2147483649 bytes (allowed are 1 to 2147483648)"},
	{READ, 0, 48, 8, UINT64_MAX,
	 "segment 1 of the request has address 0xffffffffffffffff (at most 0xffffffffffffffe3 for 28 bytes)"},
	{READ, 0, 32, 8, UINT64_MAX - 99,
	 "segment 0 of the request has address 0xffffffffffffff9c (at most 0xffffffffffffff9b for 100 bytes)"},
	{READ, 0, 56, 4, 27,
	 "the segments of the request have 127 bytes together (its length is 128)"},
	{WRITE, 0, 56, 4, 1u << 31,
	 "the segments of the request have 2147483748 bytes together (its length is 128)"},
	{WRITE, 0, 16, 8, 0x100000080,
	 "the segments of the request have 128 bytes together (its length is 4294967424)"},
	/* replies */
	{REPLY, -29, 0, 0, 0, "the reply has 0 bytes (its header alone has 24)"},
	{REPLY, -6, 0, 0, 0, "the reply has 23 bytes (its header alone has 24)"},
	{REPLY, -1, 0, 0, 0, "the reply is cut off: it has 28 bytes (its header says 29)"},
	{REPLY, 1, 0, 0, 0, "the reply is too long: it has 30 bytes (its header says 29)"},
	{REPLY, 0, 0, 4, 0x52584642, "the reply begins with 0x52584642 (it should be 0x52584641)"},
	{REPLY, 0, 0, 4, 0x52584651, "a request came where a reply was due"},
	{REPLY, 0, 4, 2, 2, "the reply is of version 2 (ours is 1)"},
	{REPLY, 0, 6, 2, 3, "the reply has status 3 (known are 0 to 2)"},
	{REPLY, 0, 6, 2, 0x100, "the reply has status 256 (known are 0 to 2)"},
	{REPLY, 0, 8, 4, 64, "the reply has id 64 (allowed are 0 to 63)"},
	{REPLY, 2, 12, 4, 7, "the reply says 7 bytes of inline data (at most 6)"},
	{REPLY, 0, 12, 4, 0xffffffff, "the reply says 4294967295 bytes of inline data (at most 6)"},
	{REPLY, 0, 12, 4, 0, "the reply is too long: it has 29 bytes (its header says 24)"},
};

static void spoil(struct message *m, const struct bad *bad)
{
	struct message to = message_new(m->n + (uint32_t)bad->more);

	memset(to.bytes, 0, to.n);
	memcpy(to.bytes, m->bytes, to.n < m->n ? to.n : m->n);
	for (uint32_t i = 0; i < bad->width; i++)
		to.bytes[bad->at + i] = (uint8_t)(bad->value >> (8 * (bad->width - 1 - i)));
	free(m->bytes);
	*m = to;
}

static int parse(enum base base, const struct message *m)
{
	struct rxfer_seg segs[RPC_SEGS_MAX];
	struct rpc_request request = {.id = 77, .segs = segs};
	struct rpc_reply reply = {.id = 77};
	int rc;

	if (base == REPLY)
		rc = rpc_reply_parse(m->bytes, m->n, &limits_of[base], &reply);
	else
		rc = rpc_request_parse(m->bytes, m->n, &limits_of[base], &request);
	if (rc) /* nothing was set */
		assert_int_equal(base == REPLY ? reply.id : request.id, 77);
	return rc;
}

static void what_is_malformed_is_refused_by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad_messages) / sizeof(bad_messages[0]); i++) {
		const struct bad *bad = &bad_messages[i];
		struct message m = good(bad->base);

		if (parse(bad->base, &m))
			fail_msg("a good one is refused: %s", rxfer_error());
		spoil(&m, bad);
		rxfer_fail(EIO, "nothing was said");
		if (parse(bad->base, &m) != -EBADMSG)
			fail_msg("accepted: %s", bad->want);
		assert_string_equal(rxfer_error(), bad->want);
		free(m.bytes);
	}
}

/* The largest of each number that is allowed. */
static void the_limits_are_allowed(void **state)
{
	struct rxfer_seg segs[] = {{UINT64_MAX - RPC_SEG_LEN_MAX, RPC_SEG_LEN_MAX, UINT32_MAX},
				   {0, RPC_SEG_LEN_MAX, 0},
				   {UINT64_MAX - 1, 1, 0},
				   {0, RPC_SEG_LEN_MAX - 1, 1},
				   {0, RPC_SEG_LEN_MAX, 0}};
	struct rpc_request r = {SLOTS - 1, RPC_WRITE, RPC_REPLY_IMM, 5, 1ull << 33, segs, 0, NULL};
	struct message m = request_message(&r);

	(void)state;
	assert_int_equal(parse(WRITE, &m), 0);
	free(m.bytes);
}

static void each_place_where_a_message_is_cut_off(void **state)
{
	(void)state;
	for (enum base base = READ; base <= REPLY; base++) {
		struct message whole = good(base);

		for (uint32_t n = 0; n < whole.n; n++) {
			struct message m = message_new(n);

			memcpy(m.bytes, whole.bytes, n);
			assert_int_equal(parse(base, &m), -EBADMSG);
			free(m.bytes);
		}
		free(whole.bytes);
	}
}

/* A RECV buffer may begin anywhere. */
static void at_any_alignment(void **state)
{
	(void)state;
	for (enum base base = READ; base <= REPLY; base++) {
		for (uint32_t shift = 0; shift < 8; shift++) {
			struct message m = good(base), shifted = message_new(m.n + shift);
			const struct message at = {shifted.bytes + shift, m.n};

			memcpy(at.bytes, m.bytes, m.n);
			assert_int_equal(parse(base, &at), 0);
			free(m.bytes);
			free(shifted.bytes);
		}
	}
}

/* ---- Replies against requests ---- */

static void replies_that_match(void **state)
{
	const struct rpc_request plain = {.id = 5, .op = RPC_READ, .length = 100};
	const struct rpc_request back = {
		.id = 5, .op = RPC_SEND, .flags = RPC_DATA_BACK, .length = 100};

	(void)state;
	assert_int_equal(rpc_reply_match(&(struct rpc_reply){5, RPC_OK, 100, 0, NULL}, &plain), 0);
	assert_int_equal(rpc_reply_match(&(struct rpc_reply){5, RPC_OK, 100, 100, ""}, &back), 0);
	for (enum rpc_status s = RPC_REFUSED; s <= RPC_FAILED; s++) {
		const struct rpc_reply bad_news = {5, s, 0, 0, NULL};

		assert_int_equal(rpc_reply_match(&bad_news, &plain), 0);
		assert_int_equal(rpc_reply_match(&bad_news, &back), 0);
	}
}

static void replies_that_do_not_match(void **state)
{
	static const struct {
		unsigned int flags;
		struct rpc_reply reply;
		const char *want;
	} cases[] = {
		{0, {5, RPC_OK, 99, 0, NULL}, "says 99 bytes moved (with status 0 it is 100)"},
		{0,
		 {5, RPC_OK, 1ull << 32 | 100, 0, NULL},
		 "says 4294967396 bytes moved (with status 0 it is 100)"},
		{0, {5, RPC_REFUSED, 100, 0, NULL}, "says 100 bytes moved (with status 1 it is 0)"},
		{RPC_DATA_BACK,
		 {5, RPC_FAILED, 1, 0, NULL},
		 "says 1 byte moved (with status 2 it is 0)"},
		{0,
		 {5, RPC_OK, 100, 1, NULL},
		 "says 1 byte of inline data (with status 0 it is 0)"},
		{RPC_DATA_BACK,
		 {5, RPC_OK, 100, 0, NULL},
		 "says 0 bytes of inline data (with status 0 it is 100)"},
		{RPC_DATA_BACK,
		 {5, RPC_FAILED, 0, 100, NULL},
		 "says 100 bytes of inline data (with status 2 it is 0)"},
	};
	static const char who[] = "the reply to request 5 ";

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct rpc_request asked = {.id = 5, .flags = cases[i].flags, .length = 100};

		assert_int_equal(rpc_reply_match(&cases[i].reply, &asked), -EBADMSG);
		assert_memory_equal(rxfer_error(), who, sizeof(who) - 1);
		assert_string_equal(rxfer_error() + sizeof(who) - 1, cases[i].want);
	}
}

/* ---- Ids ---- */

static void refused(int rc, const struct rpc_ids *ids, uint32_t in_flight, const char *want)
{
	assert_int_equal(rc, -EBADMSG);
	assert_string_equal(rxfer_error(), want);
	assert_int_equal(ids->in_flight, in_flight);
}

static void ids_in_flight_once(void **state)
{
	struct rpc_ids ids;

	(void)state;
	assert_int_equal(rpc_ids_init(&ids, 130), 0);
	refused(rpc_ids_give(&ids, 64), &ids, 0,
		"request 64 is not in flight (never sent, or answered already)");
	assert_int_equal(rpc_ids_take(&ids, 64), 0);
	refused(rpc_ids_take(&ids, 64), &ids, 1,
		"request 64 is in flight already (one of each id at a time)");
	refused(rpc_ids_take(&ids, 130), &ids, 1, "a request has id 130 (allowed are 0 to 129)");
	refused(rpc_ids_give(&ids, 130), &ids, 1, "a reply has id 130 (allowed are 0 to 129)");
	refused(rpc_ids_give(&ids, UINT32_MAX), &ids, 1,
		"a reply has id 4294967295 (allowed are 0 to 129)");
	assert_int_equal(rpc_ids_give(&ids, 64), 0);
	refused(rpc_ids_give(&ids, 64), &ids, 0,
		"request 64 is not in flight (never sent, or answered already)");
	assert_int_equal(rpc_ids_take(&ids, 64), 0);
	rpc_ids_free(&ids);
	rpc_ids_free(&ids);
}

/* Each is there, and none is another. */
static void all_ids_at_once(void **state)
{
	static const uint32_t slots[] = {1, 63, 64, 65, 128, 65536};

	(void)state;
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		struct rpc_ids ids;

		assert_int_equal(rpc_ids_init(&ids, slots[i]), 0);
		for (uint32_t id = 0; id < slots[i]; id++)
			assert_int_equal(rpc_ids_take(&ids, id), 0);
		assert_int_equal(ids.in_flight, slots[i]);
		for (uint32_t id = slots[i]; id--;)
			assert_int_equal(rpc_ids_give(&ids, id), 0);
		assert_int_equal(ids.in_flight, 0);
		rpc_ids_free(&ids);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_there_and_back),
		cmocka_unit_test(replies_there_and_back),
		cmocka_unit_test(bytes_on_the_wire),
		cmocka_unit_test(a_patched_request_is_as_one_written_anew),
		cmocka_unit_test(what_is_malformed_is_refused_by_name),
		cmocka_unit_test(the_limits_are_allowed),
		cmocka_unit_test(each_place_where_a_message_is_cut_off),
		cmocka_unit_test(at_any_alignment),
		cmocka_unit_test(replies_that_match),
		cmocka_unit_test(replies_that_do_not_match),
		cmocka_unit_test(ids_in_flight_once),
		cmocka_unit_test(all_ids_at_once),
	};

	return cmocka_run_group_tests_name("rpc_msg", tests, NULL, NULL);
}
