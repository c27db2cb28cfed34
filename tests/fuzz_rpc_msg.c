/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzer of requests and replies of remote procedure calls: either end must survive whoever is at
 * the other. The first byte of an input tells by which limits the rest, a message, is parsed:
 *
 *	bits 0, 1	the operation that was agreed; 0: read
 *	bits 2, 3	the flags
 *	bit 4		all I/Os are of 0 bytes
 *	bit 5		few slots, segments and bytes
 *	bit 6		the third flag
 *
 * so "1..." is a small read. It is parsed as a request and as a reply. What is accepted is within
 * the limits and, written again, the same bytes; what is refused is so in one clean line.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "fuzz.h"
#include "rpc_msg.h"
#include "rxfer.h"

static struct rpc_limits limits_of(uint8_t byte)
{
	bool small = byte & 32;
	struct rpc_limits l = {
		.slots = small ? 8 : UINT32_MAX,
		.segs = small ? 4 : RPC_SEGS_MAX,
		.bytes = small ? 4096 : UINT64_MAX,
		.inline_max = small ? 64 : RPC_INLINE_MAX,
		.op = byte & 3 ? (enum rpc_op)(byte & 3) : RPC_READ,
		.flags = (byte >> 2 & 3) | (byte >> 4 & RPC_INVALIDATE),
	};

	if (byte & 16)
		l.bytes = 0;
	return l;
}

static void check_refusal(int rc)
{
	FUZZ_CHECK(rc == -EBADMSG);
	fuzz_check_line(rxfer_error());
}

/* The inline data are the last bytes of the message, and behind @head bytes of it. */
static void check_inline(const uint8_t *data, uint32_t size, uint32_t head, const void *at,
			 uint32_t len)
{
	FUZZ_CHECK(head + (uint64_t)len == size);
	FUZZ_CHECK(at == (len ? data + head : NULL));
}

/* Other id and keys, in place, are those that are parsed. */
static void try_patches(uint8_t *message, uint32_t size, const struct rpc_limits *l,
			struct rpc_request *r)
{
	static struct rxfer_seg segs[RPC_SEGS_MAX];
	struct rpc_request patched = {.segs = segs};

	for (uint32_t i = 0; i < r->nsegs; i++)
		r->segs[i].key = ~r->segs[i].key;
	rpc_request_set_keys(message, r->segs, r->nsegs);
	FUZZ_CHECK(!rpc_request_parse(message, size, l, &patched));
	FUZZ_CHECK(patched.id == r->id && patched.length == r->length);
	FUZZ_CHECK(patched.nsegs == r->nsegs);
	FUZZ_CHECK(!memcmp(segs, r->segs, r->nsegs * sizeof(*segs)));
}

static void try_request(const uint8_t *data, uint32_t size, const struct rpc_limits *l)
{
	static struct rxfer_seg segs[RPC_SEGS_MAX];
	static uint8_t again[RPC_REQUEST_BYTES + RPC_SEGS_MAX * RPC_SEG_BYTES + 65536];
	struct rpc_request r = {.segs = segs};
	uint32_t head;
	int rc = rpc_request_parse(data, size, l, &r);

	if (rc) {
		check_refusal(rc);
		return;
	}
	FUZZ_CHECK(r.op == l->op && r.flags == l->flags && r.id < l->slots);
	FUZZ_CHECK(r.length <= l->bytes && r.nsegs <= l->segs && r.inline_len <= l->inline_max);
	FUZZ_CHECK(rxfer_sgl_total(segs, r.nsegs) == (r.op == RPC_SEND ? 0 : r.length));
	head = rpc_request_write(again, &r);
	check_inline(data, size, head, r.inline_data, r.inline_len);
	FUZZ_CHECK(!memcmp(again, data, head));
	if (size > sizeof(again))
		return;
	memcpy(again + head, data + head, size - head);
	try_patches(again, size, l, &r);
}

static void try_reply(const uint8_t *data, uint32_t size, const struct rpc_limits *l)
{
	struct rpc_request asked = {.op = l->op, .flags = l->flags, .length = l->bytes};
	uint8_t again[RPC_REPLY_BYTES];
	struct rpc_reply r;
	int rc = rpc_reply_parse(data, size, l, &r);

	if (rc) {
		check_refusal(rc);
		return;
	}
	FUZZ_CHECK(r.id < l->slots && r.inline_len <= l->inline_max && r.status <= RPC_FAILED);
	check_inline(data, size, rpc_reply_write(again, &r), r.inline_data, r.inline_len);
	FUZZ_CHECK(!memcmp(again, data, sizeof(again)));
	rc = rpc_reply_match(&r, &asked);
	if (rc)
		check_refusal(rc);
	else
		FUZZ_CHECK(r.bytes == (r.status == RPC_OK ? l->bytes : 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rpc_limits l = limits_of(size ? data[0] : 0);
	size_t n = size ? size - 1 : 0;
	uint8_t *message = malloc(n ? n : 1);

	FUZZ_CHECK(message);
	if (n)
		memcpy(message, data + 1, n);
	try_request(message, (uint32_t)n, &l);
	try_reply(message, (uint32_t)n, &l);
	free(message);
	return 0;
}
