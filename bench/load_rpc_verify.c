/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --verify in RPC mode. Requests arrive in the order in which they were sent, so the n-th one of a
 * QP is the client's n-th I/O, and both ends know which bytes it has: another place of a
 * position-dependent pattern each. Who sends them fills them in, who gets them poisons the place
 * before and checks it afterwards.
 */
#include <errno.h>
#include <string.h>
#include "load_rpc.h"
#include "pattern.h"

#define POISON 0xa5

void rpc_bytes_fill(const struct rxfer_frag *frags, uint32_t n, struct rpc_bytes bytes)
{
	uint64_t pos = bytes.number * bytes.size;

	for (uint32_t i = 0; i < n; i++) {
		pattern_fill(frags[i].addr, frags[i].len, pos, bytes.qp);
		pos += frags[i].len;
	}
}

void rpc_bytes_poison(const struct rxfer_frag *frags, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (frags[i].len) /* an I/O of no bytes may have no memory */
			memset(frags[i].addr, POISON, frags[i].len);
}

static int wrong_byte(uint64_t at, const struct rpc_bytes *b)
{
	return rxfer_fail(EILSEQ,
			  "verification failed: QP %u, I/O %llu, byte %llu of %llu is wrong%s",
			  b->qp, (unsigned long long)b->number, (unsigned long long)at,
			  (unsigned long long)b->size, b->where);
}

int rpc_bytes_check(const struct rxfer_frag *frags, uint32_t n, uint64_t length,
		    struct rpc_bytes bytes)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < n && at < length; i++) {
		uint64_t len = frags[i].len < length - at ? frags[i].len : length - at;
		int64_t bad =
			pattern_check(frags[i].addr, len, bytes.number * bytes.size + at, bytes.qp);

		if (bad >= 0)
			return wrong_byte(at + (uint64_t)bad, &bytes);
		at += len;
	}
	return 0;
}
