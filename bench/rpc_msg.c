/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A request is a header, its segments, and its inline data; a reply is a header and its inline
 * data. All numbers are in network order. A message has no more bytes than that: how many have
 * arrived must be what the header says.
 *
 *	request	bytes	field
 *	0	4	magic, "RXFQ"
 *	4	2	version, 1
 *	6	1	operation: enum rpc_op
 *	7	1	flags: enum rpc_flags, 0 in all other bits
 *	8	4	id, the slot of the client's that the request is from
 *	12	4	n, number of segments: none for a send, a write whose data the reply
 *			brings, or where the length is 0
 *	16	8	length: bytes of the I/O
 *	24	4	i, bytes of inline data: the length for a send, else 0
 *	28	4	0
 *	32	16 n	segments
 *	32+16n	i	inline data
 *
 *	segment	bytes	field
 *	0	8	address, in the client's memory
 *	8	4	length: 1 to 2^31 bytes; all segments' sum up to the I/O's
 *	12	4	key
 *
 *	reply	bytes	field
 *	0	4	magic, "RXFA"
 *	4	2	version, 1
 *	6	2	status: enum rpc_status
 *	8	4	id, of the request
 *	12	4	i, bytes of inline data: the I/O's length, asked back; else 0
 *	16	8	bytes moved: the I/O's length; where the status is not 0, none
 *	24	i	inline data
 *
 * Segments, numbers and inline data are aligned as the buffer is, up to 8 bytes. Nothing is said
 * twice but for lengths, which must agree, and all that has no meaning is 0: so one request has one
 * form, and what was accepted, written again, is the same bytes. The sum of the segments cannot
 * wrap: there are few, and each is 2^31 bytes at most.
 *
 * With RPC_REPLY_IMM the immediate data of the last WRITE, the request's id, is the reply, and a
 * good one; a failure is always told by a reply as above. With RPC_INVALIDATE a good reply goes by
 * a SEND that revokes the first segment's key; no byte of it says so.
 *
 * Neither direction allocates. The checks begin with the first field, so that of a message from
 * somebody else the magic is complained of, not what happens to stand further on; the size is
 * compared once the header's numbers are known to be within the limits, and before anything behind
 * the header is looked at.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "rpc_msg.h"
#include "rxfer.h"

#define REQUEST_MAGIC 0x52584651u /* "RXFQ" */
#define REPLY_MAGIC   0x52584641u /* "RXFA" */
#define VERSION	      1
#define FLAGS	      (RPC_DATA_BACK | RPC_REPLY_IMM | RPC_INVALIDATE)

struct wire_request {
	uint32_t magic;
	uint16_t version;
	uint8_t op, flags;
	uint32_t id, nsegs;
	uint64_t length;
	uint32_t inline_len, zero;
};

struct wire_seg {
	uint64_t addr;
	uint32_t len, key;
};

struct wire_reply {
	uint32_t magic;
	uint16_t version, status;
	uint32_t id, inline_len;
	uint64_t bytes;
};

_Static_assert(sizeof(struct wire_request) == RPC_REQUEST_BYTES, "there is a gap");
_Static_assert(sizeof(struct wire_seg) == RPC_SEG_BYTES, "there is a gap");
_Static_assert(sizeof(struct wire_reply) == RPC_REPLY_BYTES, "there is a gap");

/* ---- Writing ---- */

static void write_seg(uint8_t *to, const struct rxfer_seg *seg)
{
	const struct wire_seg w = {
		.addr = htobe64(seg->addr),
		.len = htobe32(seg->len),
		.key = htobe32(seg->key),
	};

	memcpy(to, &w, sizeof(w));
}

void rpc_request_set_segs(void *buf, const struct rxfer_seg *segs, uint32_t nsegs)
{
	uint8_t *to = (uint8_t *)buf + RPC_REQUEST_BYTES;

	for (uint32_t i = 0; i < nsegs; i++, to += RPC_SEG_BYTES)
		write_seg(to, &segs[i]);
}

uint32_t rpc_request_write(void *buf, const struct rpc_request *r)
{
	const struct wire_request w = {
		.magic = htobe32(REQUEST_MAGIC),
		.version = htobe16(VERSION),
		.op = (uint8_t)r->op,
		.flags = (uint8_t)r->flags,
		.id = htobe32(r->id),
		.nsegs = htobe32(r->nsegs),
		.length = htobe64(r->length),
		.inline_len = htobe32(r->inline_len),
	};

	memcpy(buf, &w, sizeof(w));
	rpc_request_set_segs(buf, r->segs, r->nsegs);
	return rpc_request_bytes(r->nsegs, 0);
}

void rpc_request_set_keys(void *buf, const struct rxfer_seg *segs, uint32_t nsegs)
{
	uint8_t *to = (uint8_t *)buf + RPC_REQUEST_BYTES + offsetof(struct wire_seg, key);

	for (uint32_t i = 0; i < nsegs; i++, to += RPC_SEG_BYTES) {
		const uint32_t be = htobe32(segs[i].key);

		memcpy(to, &be, sizeof(be));
	}
}

uint32_t rpc_reply_write(void *buf, const struct rpc_reply *r)
{
	const struct wire_reply w = {
		.magic = htobe32(REPLY_MAGIC),
		.version = htobe16(VERSION),
		.status = htobe16((uint16_t)r->status),
		.id = htobe32(r->id),
		.inline_len = htobe32(r->inline_len),
		.bytes = htobe64(r->bytes),
	};

	memcpy(buf, &w, sizeof(w));
	return RPC_REPLY_BYTES;
}

void rpc_reply_set(void *buf, uint32_t id, uint64_t bytes)
{
	const uint32_t be_id = htobe32(id);
	const uint64_t be_bytes = htobe64(bytes);

	memcpy((uint8_t *)buf + offsetof(struct wire_reply, id), &be_id, sizeof(be_id));
	memcpy((uint8_t *)buf + offsetof(struct wire_reply, bytes), &be_bytes, sizeof(be_bytes));
}

/* ---- What requests and replies have in common ---- */

/* struct kind - of a message. */
struct kind {
	const char *name, *other;
	uint32_t magic, other_magic;
	uint32_t header; /* bytes */
};

static const struct kind request_kind = {
	"request", "reply", REQUEST_MAGIC, REPLY_MAGIC, RPC_REQUEST_BYTES,
};
static const struct kind reply_kind = {
	"reply", "request", REPLY_MAGIC, REQUEST_MAGIC, RPC_REPLY_BYTES,
};

static __attribute__((cold)) int bad_start(const struct kind *k, const void *buf, uint32_t received)
{
	struct wire_reply w;
	uint32_t magic;

	if (received < k->header)
		return rxfer_fail(EBADMSG, "the %s has %s (its header alone has %u)", k->name,
				  rxfer_count(received, "byte").s, k->header);
	memcpy(&w, buf, sizeof(w));
	magic = be32toh(w.magic);
	if (magic == k->other_magic)
		return rxfer_fail(EBADMSG, "a %s came where a %s was due", k->other, k->name);
	if (magic != k->magic)
		return rxfer_fail(EBADMSG, "the %s begins with 0x%08x (it should be 0x%08x)",
				  k->name, magic, k->magic);
	return rxfer_fail(EBADMSG, "the %s is of version %u (ours is %u)", k->name,
			  be16toh(w.version), VERSION);
}

/* Magic and version are at the same place in both. */
static inline int check_start(const struct kind *k, const void *buf, uint32_t received)
{
	struct wire_reply w;

	if (received < k->header)
		return bad_start(k, buf, received);
	memcpy(&w, buf, sizeof(w));
	return w.magic == htobe32(k->magic) && w.version == htobe16(VERSION)
		       ? 0
		       : bad_start(k, buf, received);
}

static int check_id(const char *whose, uint32_t id, uint32_t slots)
{
	if (id >= slots)
		return rxfer_fail(EBADMSG, "%s has id %u (allowed are 0 to %u)", whose, id,
				  slots - 1);
	return 0;
}

static __attribute__((cold)) int bad_size(const struct kind *k, uint32_t received, uint64_t says)
{
	return rxfer_fail(EBADMSG, "the %s is %s: it has %s (its header says %llu)", k->name,
			  received < says ? "cut off" : "too long", rxfer_count(received, "byte").s,
			  (unsigned long long)says);
}

/* @says: bytes, by the header; a sum that 32 bits may be too few for. */
static inline int check_size(const struct kind *k, uint32_t received, uint64_t says)
{
	return received == says ? 0 : bad_size(k, received, says);
}

/* ---- Requests ---- */

static const char *op_name(unsigned int op)
{
	static const char *const names[] = {
		[RPC_READ] = "read", [RPC_WRITE] = "write", [RPC_SEND] = "send"};

	return op < sizeof(names) / sizeof(names[0]) ? names[op] : NULL;
}

static int check_op(unsigned int op, const struct rpc_limits *limits)
{
	const char *name = op_name(op);

	if (op == limits->op)
		return 0;
	if (!name)
		return rxfer_fail(EBADMSG, "the request has operation %u (known are %u to %u)", op,
				  RPC_READ, RPC_SEND);
	return rxfer_fail(EBADMSG, "the request is a %s (agreed was %s)", name,
			  op_name(limits->op));
}

static int check_flags(unsigned int flags, const struct rpc_limits *limits)
{
	if (flags == limits->flags)
		return 0;
	if (flags & ~(unsigned int)FLAGS)
		return rxfer_fail(EBADMSG, "the request has flags 0x%02x (known are 0x%02x)", flags,
				  FLAGS);
	return rxfer_fail(EBADMSG, "the request has flags 0x%02x (agreed were 0x%02x)", flags,
			  limits->flags);
}

/* Are the data in one of the messages? */
static bool is_inline(const struct rpc_request *r)
{
	return r->op == RPC_SEND || (r->op == RPC_WRITE && r->flags & RPC_DATA_BACK);
}

static int check_nsegs(const struct rpc_request *r, const struct rpc_limits *limits)
{
	if (is_inline(r) && r->nsegs)
		return rxfer_fail(EBADMSG, "the request says %s (a %s has none)",
				  rxfer_count(r->nsegs, "segment").s,
				  r->op == RPC_SEND ? "send" : "write with its data in the reply");
	if (r->nsegs > limits->segs)
		return rxfer_fail(EBADMSG, "the request says %s (at most %u)",
				  rxfer_count(r->nsegs, "segment").s, limits->segs);
	if (!is_inline(r) && r->length && !r->nsegs)
		return rxfer_fail(EBADMSG, "the request says 0 segments (at least 1 for %s)",
				  rxfer_count(r->length, "byte").s);
	if (!r->length && r->nsegs)
		return rxfer_fail(EBADMSG, "the request says %s (none for 0 bytes)",
				  rxfer_count(r->nsegs, "segment").s);
	return 0;
}

static int check_length(const struct rpc_request *r, const struct rpc_limits *limits)
{
	if (r->length > limits->bytes)
		return rxfer_fail(EBADMSG, "the request says a length of %s (at most %llu)",
				  rxfer_count(r->length, "byte").s,
				  (unsigned long long)limits->bytes);
	if (!r->length && limits->bytes)
		return rxfer_fail(EBADMSG,
				  "the request says a length of 0 bytes (allowed are 1 to %llu)",
				  (unsigned long long)limits->bytes);
	return 0;
}

static int check_inline(const struct rpc_request *r, const struct rpc_limits *limits)
{
	if (r->op != RPC_SEND && r->inline_len)
		return rxfer_fail(EBADMSG, "the request says %s of inline data (a %s has none)",
				  rxfer_count(r->inline_len, "byte").s, op_name(r->op));
	if (r->inline_len > limits->inline_max)
		return rxfer_fail(EBADMSG, "the request says %s of inline data (at most %u)",
				  rxfer_count(r->inline_len, "byte").s, limits->inline_max);
	if (r->op == RPC_SEND && r->inline_len != r->length)
		return rxfer_fail(
			EBADMSG, "the request says %s of inline data (its length is %llu)",
			rxfer_count(r->inline_len, "byte").s, (unsigned long long)r->length);
	return 0;
}

static int take_header(const void *buf, const struct rpc_limits *limits, struct rpc_request *r)
{
	struct wire_request w;
	int rc;

	memcpy(&w, buf, sizeof(w));
	r->op = w.op;
	r->flags = w.flags;
	r->id = be32toh(w.id);
	r->nsegs = be32toh(w.nsegs);
	r->length = be64toh(w.length);
	r->inline_len = be32toh(w.inline_len);
	rc = check_op(w.op, limits);
	if (!rc)
		rc = check_flags(w.flags, limits);
	if (!rc)
		rc = check_id("the request", r->id, limits->slots);
	if (!rc)
		rc = check_length(r, limits);
	if (!rc)
		rc = check_nsegs(r, limits);
	if (!rc)
		rc = check_inline(r, limits);
	if (!rc && w.zero)
		rc = rxfer_fail(EBADMSG, "the request has 0x%08x in bytes 28 to 31 (0 is due)",
				be32toh(w.zero));
	return rc;
}

static int check_seg(const struct rxfer_seg *seg, uint32_t i)
{
	if (seg->len == 0 || seg->len > RPC_SEG_LEN_MAX)
		return rxfer_fail(
			EBADMSG,
			"segment %u of the request has a length of %s (allowed are 1 to %u)", i,
			rxfer_count(seg->len, "byte").s, RPC_SEG_LEN_MAX);
	if (seg->addr > UINT64_MAX - seg->len)
		return rxfer_fail(
			EBADMSG,
			"segment %u of the request has address 0x%llx (at most 0x%llx for %s)", i,
			(unsigned long long)seg->addr, (unsigned long long)(UINT64_MAX - seg->len),
			rxfer_count(seg->len, "byte").s);
	return 0;
}

static int take_segs(const uint8_t *from, struct rpc_request *r)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->nsegs; i++, from += RPC_SEG_BYTES) {
		struct wire_seg w;
		int rc;

		memcpy(&w, from, sizeof(w));
		r->segs[i] = (struct rxfer_seg){be64toh(w.addr), be32toh(w.len), be32toh(w.key)};
		rc = check_seg(&r->segs[i], i);
		if (rc)
			return rc;
		sum += r->segs[i].len;
	}
	if (!is_inline(r) && sum != r->length)
		return rxfer_fail(
			EBADMSG,
			"the segments of the request have %s together (its length is %llu)",
			rxfer_count(sum, "byte").s, (unsigned long long)r->length);
	return 0;
}

int rpc_request_parse(const void *buf, uint32_t received, const struct rpc_limits *limits,
		      struct rpc_request *out)
{
	struct rpc_request r = {.segs = out->segs};
	const uint8_t *from = buf;
	uint64_t data;
	int rc = check_start(&request_kind, buf, received);

	if (!rc)
		rc = take_header(buf, limits, &r);
	if (rc)
		return rc;
	data = RPC_REQUEST_BYTES + (uint64_t)r.nsegs * RPC_SEG_BYTES;
	rc = check_size(&request_kind, received, data + r.inline_len);
	if (!rc)
		rc = take_segs(from + RPC_REQUEST_BYTES, &r);
	if (rc)
		return rc;
	r.inline_data = r.inline_len ? from + data : NULL;
	*out = r;
	return 0;
}

/* ---- Replies ---- */

int rpc_reply_parse(const void *buf, uint32_t received, const struct rpc_limits *limits,
		    struct rpc_reply *out)
{
	struct wire_reply w;
	struct rpc_reply r;
	int rc = check_start(&reply_kind, buf, received);

	if (rc)
		return rc;
	memcpy(&w, buf, sizeof(w));
	r.status = be16toh(w.status);
	if (r.status > RPC_FAILED)
		return rxfer_fail(EBADMSG, "the reply has status %u (known are 0 to %u)", r.status,
				  RPC_FAILED);
	r.id = be32toh(w.id);
	rc = check_id("the reply", r.id, limits->slots);
	if (rc)
		return rc;
	r.inline_len = be32toh(w.inline_len);
	if (r.inline_len > limits->inline_max)
		return rxfer_fail(EBADMSG, "the reply says %s of inline data (at most %u)",
				  rxfer_count(r.inline_len, "byte").s, limits->inline_max);
	r.bytes = be64toh(w.bytes);
	r.inline_data = r.inline_len ? (const uint8_t *)buf + RPC_REPLY_BYTES : NULL;
	rc = check_size(&reply_kind, received, (uint64_t)RPC_REPLY_BYTES + r.inline_len);
	if (!rc)
		*out = r;
	return rc;
}

int rpc_reply_match(const struct rpc_reply *reply, const struct rpc_request *asked)
{
	uint64_t moved = reply->status == RPC_OK ? asked->length : 0;
	uint64_t back = asked->flags & RPC_DATA_BACK ? moved : 0;

	if (reply->bytes != moved)
		return rxfer_fail(
			EBADMSG,
			"the reply to request %u says %s moved (with status %u it is %llu)",
			reply->id, rxfer_count(reply->bytes, "byte").s, reply->status,
			(unsigned long long)moved);
	if (reply->inline_len != back)
		return rxfer_fail(
			EBADMSG,
			"the reply to request %u says %s of inline data (with status %u it is %llu)",
			reply->id, rxfer_count(reply->inline_len, "byte").s, reply->status,
			(unsigned long long)back);
	return 0;
}

/* ---- What is in flight ---- */

int rpc_ids_init(struct rpc_ids *ids, uint32_t slots)
{
	uint64_t *bits = calloc(slots / 64 + 1, sizeof(*bits));

	if (!bits)
		return rxfer_fail(ENOMEM, "no memory for the ids of %s",
				  rxfer_count(slots, "request").s);
	*ids = (struct rpc_ids){.bits = bits, .slots = slots};
	return 0;
}

void rpc_ids_free(struct rpc_ids *ids)
{
	free(ids->bits);
	*ids = (struct rpc_ids){0};
}

/* Turn the bit of @id, which is in range; @why it cannot be, where it is not @before. */
static int turn(struct rpc_ids *ids, uint32_t id, bool before, const char *why)
{
	uint64_t bit = (uint64_t)1 << (id & 63), *word = &ids->bits[id >> 6];

	if (!!(*word & bit) != before)
		return rxfer_fail(EBADMSG, "request %u %s", id, why);
	*word ^= bit;
	return 0;
}

int rpc_ids_take(struct rpc_ids *ids, uint32_t id)
{
	int rc = check_id("a request", id, ids->slots);

	if (!rc)
		rc = turn(ids, id, false, "is in flight already (one of each id at a time)");
	if (!rc)
		ids->in_flight++;
	return rc;
}

int rpc_ids_give(struct rpc_ids *ids, uint32_t id)
{
	int rc = check_id("a reply", id, ids->slots);

	if (!rc)
		rc = turn(ids, id, true, "is not in flight (never sent, or answered already)");
	if (!rc)
		ids->in_flight--;
	return rc;
}
