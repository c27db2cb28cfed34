/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of remote procedure calls: random ones within random limits, with at most one thing
 * changed in either, against a naive reader that takes numbers out byte by byte and knows the
 * rules, but no words and no order. Both must accept the same; what is accepted must, written
 * again, be the same bytes; what is refused must be so in a line that names a field.
 */
#include <errno.h>
#include <string.h>

#include "prop.h"
#include "rpc_msg.h"
#include "rxfer.h"

#define SEGS   8   /* of a request here, at most */
#define INLINE 40  /* bytes of it, at most */
#define BYTES  320 /* of a message, changed or not, at most */

/* struct trial - a message, and what it is parsed by. */
struct trial {
	struct prop *p;
	struct rpc_limits limits;
	bool is_reply;
	uint8_t bytes[BYTES];
	uint32_t n;
};

/* ---- Messages ---- */

static void random_segs(struct trial *t, struct rpc_request *r)
{
	r->nsegs = t->limits.bytes ? prop_range(t->p, 1, t->limits.segs) : 0;
	for (uint32_t i = 0; i < r->nsegs; i++) {
		uint32_t len = prop_chance(t->p, 10) ? RPC_SEG_LEN_MAX : prop_range(t->p, 1, 99);
		uint64_t room = UINT64_MAX - len;

		r->segs[i] =
			(struct rxfer_seg){prop_chance(t->p, 30) ? room : prop_next(t->p) % room,
					   len, (uint32_t)prop_next(t->p)};
		r->length += len;
	}
}

static void random_request(struct trial *t)
{
	struct rxfer_seg segs[SEGS];
	struct rpc_limits *l = &t->limits;
	struct rpc_request r = {
		.id = prop_range(t->p, 0, l->slots - 1), l->op, l->flags, .segs = segs};

	if (l->op != RPC_SEND)
		random_segs(t, &r);
	else if (l->bytes)
		r.length = r.inline_len = prop_range(t->p, 1, l->inline_max);
	if (l->bytes && prop_chance(t->p, 50))
		l->bytes = r.length;
	t->n = rpc_request_write(t->bytes, &r) + r.inline_len;
}

static void random_reply(struct trial *t)
{
	struct rpc_reply r = {.id = prop_range(t->p, 0, t->limits.slots - 1),
			      (enum rpc_status)prop_range(t->p, RPC_OK, RPC_FAILED),
			      prop_next(t->p),
			      prop_range(t->p, 0, t->limits.inline_max),
			      NULL};

	t->n = rpc_reply_write(t->bytes, &r) + r.inline_len;
}

static void random_trial(struct trial *t, struct prop *p)
{
	*t = (struct trial){.p = p, .is_reply = prop_chance(p, 25)};
	t->limits = (struct rpc_limits){
		.slots = prop_chance(p, 20) ? UINT32_MAX : prop_range(p, 1, 70),
		.segs = prop_range(p, 1, SEGS),
		.bytes = prop_chance(p, 20) ? 0 : 1ull << 40,
		.inline_max = prop_range(p, 1, INLINE),
		.op = (enum rpc_op)prop_range(p, RPC_READ, RPC_SEND),
	};
	if (prop_chance(p, 50))
		t->limits.flags = t->limits.op == RPC_SEND    ? RPC_DATA_BACK
				  : t->limits.op == RPC_WRITE ? RPC_REPLY_IMM
							      : 0;
	if (t->limits.op != RPC_SEND && prop_chance(p, 30))
		t->limits.flags |= RPC_INVALIDATE;
	for (uint32_t i = 0; i < BYTES; i++)
		t->bytes[i] = (uint8_t)prop_next(p);
	if (t->is_reply)
		random_reply(t);
	else
		random_request(t);
}

/* A number of @width bytes becomes one that is near another, or an end of a range. */
static void change_number(struct trial *t)
{
	static const uint64_t telling[] = {0, 1, UINT32_MAX, UINT64_MAX, 1u << 31, RPC_SEGS_MAX};
	uint32_t width = 1u << prop_range(t->p, 0, 3);
	uint32_t at = prop_range(t->p, 0, t->n - width) / width * width;
	uint64_t value = telling[prop_range(t->p, 0, 5)] + prop_range(t->p, 0, 2) - 1;

	if (prop_chance(t->p, 50))
		value = t->bytes[at + width - 1] + prop_range(t->p, 0, 32) - 16u;
	for (uint32_t i = 0; i < width; i++)
		t->bytes[at + i] = (uint8_t)(value >> (8 * (width - 1 - i)));
}

/* Less is allowed, or other amounts; never more segments, for which there would be no room. */
static void change_limits(struct trial *t)
{
	struct rpc_limits *l = &t->limits;

	switch (prop_range(t->p, 0, 3)) {
	case 0:
		l->slots = prop_range(t->p, 1, 70);
		break;
	case 1:
		l->segs = prop_range(t->p, 1, l->segs);
		break;
	case 2:
		l->bytes = l->bytes ? l->bytes - prop_range(t->p, 0, 1) : 1;
		break;
	default:
		l->inline_max = prop_range(t->p, 0, INLINE);
	}
}

static void change(struct trial *t)
{
	switch (prop_range(t->p, 0, 7)) {
	case 0: /* as it is */
		break;
	case 1:
		t->n = prop_range(t->p, 0, t->n);
		break;
	case 2:
		t->n += prop_range(t->p, 1, 2 * RPC_SEG_BYTES);
		break;
	case 3:
		t->bytes[prop_range(t->p, 0, t->n - 1)] ^= (uint8_t)(1u << prop_range(t->p, 0, 7));
		break;
	case 4:
		t->bytes[prop_range(t->p, 0, t->n - 1)] = (uint8_t)prop_next(t->p);
		break;
	case 5:
		change_limits(t);
		break;
	default:
		change_number(t);
	}
}

/* ---- The naive reader ---- */

static uint64_t number(const struct trial *t, uint32_t at, uint32_t width)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < width; i++)
		value = value << 8 | t->bytes[at + i];
	return value;
}

static bool segs_are_good(const struct trial *t, uint64_t nsegs, uint64_t length)
{
	uint64_t sum = 0;

	for (uint32_t at = 32; at < 32 + 16 * nsegs; at += 16) {
		uint64_t len = number(t, at + 8, 4);
		bool wraps = number(t, at, 8) + len < len;

		if (len < 1 || len > 0x80000000u || wraps)
			return false;
		sum += len;
	}
	return sum == length;
}

static bool request_is_good(const struct trial *t)
{
	const struct rpc_limits *l = &t->limits;
	bool send = l->op == RPC_SEND;
	uint64_t nsegs, length, data;

	if (t->n < 32 || memcmp(t->bytes, "RXFQ\0\1", 6))
		return false;
	nsegs = number(t, 12, 4);
	length = number(t, 16, 8);
	data = number(t, 24, 4);
	return number(t, 6, 1) == l->op && number(t, 7, 1) == l->flags &&
	       number(t, 8, 4) < l->slots && length <= l->bytes && (length > 0) == (l->bytes > 0) &&
	       (nsegs > 0) == (!send && length) && nsegs <= l->segs &&
	       data == (send ? length : 0) && data <= l->inline_max && number(t, 28, 4) == 0 &&
	       t->n == 32 + 16 * nsegs + data && (send || segs_are_good(t, nsegs, length));
}

static bool reply_is_good(const struct trial *t)
{
	return t->n >= 24 && !memcmp(t->bytes, "RXFA\0\1\0", 7) && t->bytes[7] <= 2 &&
	       number(t, 8, 4) < t->limits.slots && number(t, 12, 4) <= t->limits.inline_max &&
	       t->n == 24 + number(t, 12, 4);
}

/* ---- Both ---- */

/* It is refused, by a line that names what of it is wrong. */
static void check_refusal(struct prop *p, int rc)
{
	static const char *const fields[] = {
		"header",  "begins",   "came where", "version", "operation", "agreed",
		"flags",   " id ",     "length",     "segment", "inline",    "bytes 28",
		"cut off", "too long", "address",    "status",
	};
	bool named = false;

	PROP_CHECK(p, rc == -EBADMSG);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		named = named || strstr(rxfer_error(), fields[i]);
	PROP_CHECK(p, named);
}

/* @buf: just the message, so that sanitizers and valgrind see whoever goes beyond. */
static void try_request(struct trial *t, const uint8_t *buf)
{
	struct rxfer_seg *segs = malloc(t->limits.segs * sizeof(*segs));
	struct rpc_request r = {.segs = segs};
	uint8_t again[BYTES];
	int rc;

	assert_non_null(segs);
	rxfer_fail(EIO, "nothing was said");
	rc = rpc_request_parse(buf, t->n, &t->limits, &r);
	PROP_CHECK(t->p, !rc == request_is_good(t));
	if (rc) {
		check_refusal(t->p, rc);
	} else {
		uint32_t head = rpc_request_write(again, &r);

		PROP_CHECK(t->p, head + r.inline_len == t->n && !memcmp(again, buf, head));
		PROP_CHECK(t->p, r.inline_data == (r.inline_len ? buf + head : NULL));
	}
	free(segs);
}

static void try_reply(struct trial *t, const uint8_t *buf)
{
	struct rpc_reply r;
	uint8_t again[BYTES];
	int rc;

	rxfer_fail(EIO, "nothing was said");
	rc = rpc_reply_parse(buf, t->n, &t->limits, &r);
	PROP_CHECK(t->p, !rc == reply_is_good(t));
	if (rc) {
		check_refusal(t->p, rc);
	} else {
		uint32_t head = rpc_reply_write(again, &r);

		PROP_CHECK(t->p, head + r.inline_len == t->n && !memcmp(again, buf, head));
		PROP_CHECK(t->p, r.inline_data == (r.inline_len ? buf + head : NULL));
	}
}

static void try(struct trial *t)
{
	uint8_t *buf = malloc(t->n ? t->n : 1);

	assert_non_null(buf);
	memcpy(buf, t->bytes, t->n);
	if (t->is_reply)
		try_reply(t, buf);
	else
		try_request(t, buf);
	free(buf);
}

static void as_they_are_all_are_accepted(void **state)
{
	uint64_t seed = prop_first_seed(), n = prop_count(20000, 1000);
	struct trial t;
	struct prop p;

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		prop_start(&p, seed + i);
		random_trial(&t, &p);
		PROP_CHECK(&p, t.is_reply ? reply_is_good(&t) : request_is_good(&t));
		try(&t);
	}
}

static void changed_they_are_the_same_or_refused(void **state)
{
	uint64_t seed = prop_first_seed(), n = prop_count(200000, 5000);
	struct trial t;
	struct prop p;

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		prop_start(&p, seed + i);
		random_trial(&t, &p);
		change(&t);
		try(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_they_are_all_are_accepted),
		cmocka_unit_test(changed_they_are_the_same_or_refused),
	};

	return cmocka_run_group_tests_name("prop_rpc_msg", tests, NULL, NULL);
}
