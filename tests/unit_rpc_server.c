/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The server in RPC mode, and a client that sends malformed requests. Each ends its session with a
 * reason that names the field and its value, moves not a byte, and the next client is served.
 */
#include "rpc_client_fixture.h"

/* Where a request's fields are: see rpc_msg.c. */
#define AT_MAGIC   0, 4
#define AT_VERSION 4, 2
#define AT_OP	   6, 1
#define AT_FLAGS   7, 1
#define AT_ID	   8, 4
#define AT_NSEGS   12, 4
#define AT_LENGTH  16, 8
#define AT_INLINE  24, 4
#define AT_ZERO	   28, 4
#define AT_ADDR(i) (32 + 16 * (i)), 8
#define AT_LEN(i)  (32 + 16 * (i) + 8), 4

enum run { READ, WRITE, IMM, SEND, BACK, EMPTY };

/* struct change - of a field: @width bytes at @at become @value. */
struct change {
	uint32_t at, width;
	uint64_t value;
};

/*
 * struct kind - of a malformed request.
 * @run:     what was agreed on
 * @change:  what is done to a good one
 * @longer:  how many bytes more than it has are sent
 * @says:    part of the reason
 */
struct kind {
	const char *name;
	enum run run;
	struct change change[4];
	int longer;
	const char *says;
};

static const struct kind kinds[] = {
	{"magic",
	 READ,
	 {{AT_MAGIC, 0x47455420}},
	 0,
	 "begins with 0x47455420 (it should be 0x52584651)"},
	{"a reply", READ, {{AT_MAGIC, 0x52584641}}, 0, "a reply came where a request was due"},
	{"version 0", READ, {{AT_VERSION, 0}}, 0, "is of version 0 (ours is 1)"},
	{"version 2", READ, {{AT_VERSION, 2}}, 0, "is of version 2"},
	{"version 256", READ, {{AT_VERSION, 256}}, 0, "is of version 256"},
	{"op 0", READ, {{AT_OP, 0}}, 0, "operation 0 (known are 1 to 3)"},
	{"op 4", READ, {{AT_OP, 4}}, 0, "operation 4 "},
	{"op 255", READ, {{AT_OP, 255}}, 0, "operation 255 "},
	{"a write for a read", READ, {{AT_OP, 2}}, 0, "is a write (agreed was read)"},
	{"a send for a read", READ, {{AT_OP, 3}}, 0, "is a send (agreed was read)"},
	{"a read for a write", WRITE, {{AT_OP, 1}}, 0, "is a read (agreed was write)"},
	{"a read for a send", SEND, {{AT_OP, 1}}, 0, "is a read (agreed was send)"},
	{"a write for a send", SEND, {{AT_OP, 2}}, 0, "is a write (agreed was send)"},
	{"flags 8", READ, {{AT_FLAGS, 8}}, 0, "flags 0x08 (known are 0x07)"},
	{"flags 255", READ, {{AT_FLAGS, 255}}, 0, "flags 0xff "},
	{"data back", WRITE, {{AT_FLAGS, 1}}, 0, "flags 0x01 (agreed were 0x00)"},
	{"immediate data", WRITE, {{AT_FLAGS, 2}}, 0, "flags 0x02 (agreed were 0x00)"},
	{"a revoke", READ, {{AT_FLAGS, 4}}, 0, "flags 0x04 (agreed were 0x00)"},
	{"a revoke by a WRITE", IMM, {{AT_FLAGS, 6}}, 0, "flags 0x06 (agreed were 0x02)"},
	{"no immediate data", IMM, {{AT_FLAGS, 0}}, 0, "flags 0x00 (agreed were 0x02)"},
	{"no data back", BACK, {{AT_FLAGS, 0}}, 0, "flags 0x00 (agreed were 0x01)"},
	{"id 2", READ, {{AT_ID, 2}}, 0, "has id 2 (allowed are 0 to 1)"},
	{"id 2^31", WRITE, {{AT_ID, 1u << 31}}, 0, "has id 2147483648 "},
	{"id 2^32-1", SEND, {{AT_ID, UINT32_MAX}}, 0, "has id 4294967295 "},
	{"no segments", READ, {{AT_NSEGS, 0}}, 0, "0 segments (at least 1 for 96 bytes)"},
	{"a segment too many", WRITE, {{AT_NSEGS, 4}}, 16, "4 segments (at most 3)"},
	{"257 segments", READ, {{AT_NSEGS, 257}}, 0, "257 segments (at most 3)"},
	{"2^28 segments", READ, {{AT_NSEGS, 1u << 28}}, 0, "268435456 segments"},
	{"2^32-1 segments", WRITE, {{AT_NSEGS, UINT32_MAX}}, 0, "4294967295 segments"},
	{"segments of a send", SEND, {{AT_NSEGS, 1}}, 0, "1 segment (a send has none)"},
	{"segments, data back", BACK, {{AT_NSEGS, 2}}, 32, "2 segments (a write with its data"},
	{"segments of nothing", EMPTY, {{AT_NSEGS, 1}}, 16, "1 segment (at most 0)"},
	{"fewer segments",
	 READ,
	 {{AT_NSEGS, 2}},
	 0,
	 "too long: it has 80 bytes (its header says 64)"},
	{"length 0", READ, {{AT_LENGTH, 0}}, 0, "length of 0 bytes (allowed are 1 to 96)"},
	{"length 97", WRITE, {{AT_LENGTH, 97}}, 0, "length of 97 bytes (at most 96)"},
	{"length 2^32+96", READ, {{AT_LENGTH, (1ull << 32) + 96}}, 0, "length of 4294967392 bytes"},
	{"length 2^64-1",
	 READ,
	 {{AT_LENGTH, UINT64_MAX}},
	 0,
	 "length of 18446744073709551615 bytes"},
	{"length of nothing", EMPTY, {{AT_LENGTH, 1}}, 0, "length of 1 byte (at most 0)"},
	{"length 95", WRITE, {{AT_LENGTH, 95}}, 0, "have 96 bytes together (its length is 95)"},
	{"a send's length",
	 SEND,
	 {{AT_LENGTH, 95}},
	 0,
	 "96 bytes of inline data (its length is 95)"},
	{"inline data", READ, {{AT_INLINE, 1}}, 1, "1 byte of inline data (a read has none)"},
	{"inline data, back",
	 BACK,
	 {{AT_INLINE, 96}},
	 0,
	 "96 bytes of inline data (a write has none)"},
	{"inline data 95",
	 SEND,
	 {{AT_INLINE, 95}},
	 -1,
	 "95 bytes of inline data (its length is 96)"},
	{"inline data 97", SEND, {{AT_INLINE, 97}}, 0, "97 bytes of inline data (at most 96)"},
	{"inline 2^32-1", SEND, {{AT_INLINE, UINT32_MAX}}, 0, "4294967295 bytes of inline data"},
	{"bytes 28 to 31", READ, {{AT_ZERO, 0x01000000}}, 0, "0x01000000 in bytes 28 to 31"},
	{"segment of 0",
	 READ,
	 {{AT_LEN(0), 0}},
	 0,
	 "segment 0 of the request has a length of 0 bytes"},
	{"segment of 2^31+1",
	 READ,
	 {{AT_LEN(1), (1u << 31) + 1}},
	 0,
	 "segment 1 of the request has a length of 2147483649 bytes"},
	{"segment of 2^32-1",
	 WRITE,
	 {{AT_LEN(2), UINT32_MAX}},
	 0,
	 "segment 2 of the request has a length of 4294967295 bytes"},
	{"segment that wraps",
	 READ,
	 {{AT_ADDR(2), UINT64_MAX - 31}},
	 0,
	 "segment 2 of the request has address 0xffffffffffffffe0"},
	{"segment at the end",
	 WRITE,
	 {{AT_ADDR(0), UINT64_MAX}},
	 0,
	 "segment 0 of the request has address 0xffffffffffffffff"},
	{"a byte too many",
	 READ,
	 {{AT_LEN(2), 33}},
	 0,
	 "have 97 bytes together (its length is 96)"},
	{"a byte too few",
	 WRITE,
	 {{AT_LEN(0), 31}},
	 0,
	 "have 95 bytes together (its length is 96)"},
	{"a sum above 2^32",
	 READ,
	 {{AT_LEN(0), 1u << 31}, {AT_LEN(1), 1u << 31}, {AT_LEN(2), 96}},
	 0,
	 "have 4294967392 bytes together (its length is 96)"},
	{"cut off", READ, {{0}}, -1, "cut off: it has 79 bytes (its header says 80)"},
	{"no last segment", WRITE, {{0}}, -16, "cut off: it has 64 bytes (its header says 80)"},
	{"a header alone", READ, {{0}}, -48, "cut off: it has 32 bytes (its header says 80)"},
	{"less than a header",
	 READ,
	 {{0}},
	 -49,
	 "the request has 31 bytes (its header alone has 32)"},
	{"one byte", READ, {{0}}, -79, "the request has 1 byte (its header alone has 32)"},
	{"no byte", READ, {{0}}, -80, "the request has 0 bytes (its header alone has 32)"},
	{"no byte, no data",
	 EMPTY,
	 {{0}},
	 -32,
	 "the request has 0 bytes (its header alone has 32)"},
	{"a byte behind", READ, {{0}}, 1, "too long: it has 81 bytes (its header says 80)"},
	{"a byte behind a send", SEND, {{0}}, 1, "RECV failed: IBV_WC_LOC_LEN_ERR"},
	{"all of the buffer", WRITE, {{0}}, 48, "too long: it has 128 bytes (its header says 80)"},
	{"more than the buffer", WRITE, {{0}}, 49, "RECV failed: IBV_WC_LOC_LEN_ERR"},
	{"a page", READ, {{0}}, 512, "RECV failed: IBV_WC_LOC_LEN_ERR"},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void agree_on(struct rpc_scene *r, enum run run)
{
	static const enum cfg_op op[] = {OP_READ, OP_WRITE, OP_WRITE, OP_SEND, OP_WRITE, OP_READ};
	struct cfg *cfg = &r->s.cfg;

	rpc_cfg(r, op[run]);
	if (run == IMM)
		cfg->reply = REPLY_IMM;
	if (run == BACK)
		cfg->inline_threshold = SIZE;
	if (run == EMPTY)
		cfg->size = 0;
	cfg->frags = run == EMPTY ? 1 : FRAGS;
}

static void put(uint8_t *request, const struct change *c)
{
	for (uint32_t i = 0; i < c->width; i++)
		request[c->at + i] = (uint8_t)(c->value >> 8 * (c->width - 1 - i));
}

static void a_request(struct rpc_scene *r, const struct kind *k)
{
	struct fake_stats before;
	uint32_t bytes;

	agree_on(r, k->run);
	connect_to_server(r);
	before = *fake_stats();
	bytes = good_request(r, 0, 0);
	for (int i = 0; i < 4; i++)
		put(send_buffer(r, 0), &k->change[i]);
	post_bytes(r, 0, bytes + (uint32_t)k->longer);
	hear_why(r, k->name, k->says);
	memory_is_untouched(r, true);
	end_session(r);
	assert_true(r->s.rc < 0);
	one_line(k->name, r->s.error, k->says);
	assert_true(fake_stats()->bytes_read == before.bytes_read);
	assert_true(fake_stats()->bytes_written == before.bytes_written);
}

/* The good one that all of them are made of is one. */
static void good_requests(void **state)
{
	static const uint64_t moved[] = {SIZE, SIZE, SIZE, SIZE, SIZE, 0};
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (enum run run = READ; run <= EMPTY; run++) {
		agree_on(&r, run);
		connect_to_server(&r);
		for (int i = 0; i < 3; i++) {
			post_bytes(&r, 0, good_request(&r, 0, 1));
			if (run == IMM)
				assert_int_equal(ntohl(await_reply(&r).imm_data), 1);
			else
				reply_is_good(&r, 1, moved[run]);
		}
		memory_is_untouched(&r, run != WRITE && run != IMM);
		end_session(&r);
	}
}

/* What it may yet have to touch is still to be had, as the kernel sees it: so it stays promised. */
static void memory_that_nobody_has_touched(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (uint64_t prefault = PREFAULT_NO; prefault <= PREFAULT_YES; prefault++) {
		agree_on(&r, READ);
		r.s.cfg.prefault = prefault;
		connect_to_server(&r);
		post_bytes(&r, 0, good_request(&r, 0, 1));
		reply_is_good(&r, 1, SIZE);
		assert_true(r.budget.used > 0);
		assert_true(r.budget.promised == (prefault == PREFAULT_YES ? 0 : r.budget.used));
		end_session(&r);
	}
}

static void malformed_requests(void **state)
{
	static const enum cfg_op ops[] = {OP_READ, OP_WRITE, OP_SEND};
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (size_t i = 0; i < KINDS; i++) {
		a_request(&r, &kinds[i]);
		good_run(&r, ops[i % 3]);
	}
}

/* The client's word is no better behind good requests, one of which is still in flight. */
static void malformed_behind_good_ones(void **state)
{
	struct rpc_scene r;

	(void)state;
	open_rpc_scene(&r);
	for (size_t i = 0; i < KINDS; i++) {
		const struct kind *k = &kinds[i];
		uint32_t bytes;

		agree_on(&r, k->run);
		connect_to_server(&r);
		post_bytes(&r, 0, good_request(&r, 0, 1));
		await_reply(&r);
		post_bytes(&r, 1, good_request(&r, 1, 1));
		bytes = good_request(&r, 2, 0);
		for (int c = 0; c < 4; c++)
			put(send_buffer(&r, 2), &k->change[c]);
		post_bytes(&r, 2, bytes + (uint32_t)k->longer);
		hear_why(&r, k->name, k->says);
		memory_is_untouched(&r, false);
		end_session(&r);
	}
	good_run(&r, OP_READ);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_requests),
		cmocka_unit_test(memory_that_nobody_has_touched),
		cmocka_unit_test(malformed_requests),
		cmocka_unit_test(malformed_behind_good_ones),
	};

	return cmocka_run_group_tests_name("unit_rpc_server", tests, NULL, NULL);
}
