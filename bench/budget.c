/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A server's memory, shared out among its sessions. */
#include <errno.h>
#include "budget.h"
#include "rxfer.h"

/* Add @bytes to *@count where that stays within @limit. False: @had, and nothing is added. */
static bool claim(uint64_t *count, uint64_t bytes, uint64_t limit, uint64_t *had)
{
	*had = __atomic_load_n(count, __ATOMIC_RELAXED);
	do {
		if (bytes > limit || *had > limit - bytes)
			return false;
	} while (!__atomic_compare_exchange_n(count, had, *had + bytes, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	return true;
}

static void drop(uint64_t *count, uint64_t bytes)
{
	__atomic_sub_fetch(count, bytes, __ATOMIC_ACQ_REL);
}

static int over_limit(const struct budget *b, uint64_t bytes, uint64_t used)
{
	if (bytes > b->limit)
		return rxfer_fail(
			ENOMEM,
			"this run takes %s on the server, which may have %s (its --max-memory): use less (--depth, --size, --qps)",
			rxfer_size(bytes).s, rxfer_size(b->limit).s);
	return rxfer_fail(
		ENOMEM,
		"this run takes %s on the server, and other sessions have %s of the %s that there may be (its --max-memory): wait for them, or use less (--depth, --size, --qps)",
		rxfer_size(bytes).s, rxfer_size(used).s, rxfer_size(b->limit).s);
}

static int over_available(uint64_t plain, uint64_t promised, uint64_t available)
{
	return rxfer_fail(
		ENOMEM,
		"%s of memory are needed on the server, where %s are available and %s of them promised to other sessions: use less (--depth, --size, --qps)",
		rxfer_size(plain).s, rxfer_size(available).s, rxfer_size(promised).s);
}

int budget_take(struct budget *b, uint64_t bytes, uint64_t plain, uint64_t available,
		struct share *out)
{
	uint64_t had;

	*out = (struct share){0};
	if (!b)
		return 0;
	if (!claim(&b->used, bytes, b->limit ? b->limit : UINT64_MAX, &had))
		return over_limit(b, bytes, had);
	if (!claim(&b->promised, plain, available / 4 * 3, &had)) {
		drop(&b->used, bytes);
		return over_available(plain, had, available);
	}
	*out = (struct share){.bytes = bytes, .promised = plain};
	return 0;
}

void budget_settle(struct budget *b, struct share *s)
{
	if (b)
		drop(&b->promised, s->promised);
	s->promised = 0;
}

void budget_give(struct budget *b, struct share *s)
{
	budget_settle(b, s);
	if (b)
		drop(&b->used, s->bytes);
	s->bytes = 0;
}
