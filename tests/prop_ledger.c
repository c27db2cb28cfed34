/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The exposure ledger against a naive model: all grants that ever were, each with the time when it
 * began and when it ended, looked through from one end to the other for each answer. Two accounts
 * that are parts of a third one, random calls, right ones and wrong ones.
 */
#include "prop.h"

#include <errno.h>
#include <math.h>

#include "../src/ledger.h"

#define SLOTS	  5
#define STEPS	  40
#define SEQUENCES 200000
#define NEVER	  UINT64_MAX

/* One grant: open in [from, to). */
struct past {
	uint64_t bytes, from, to, reply;
	uint32_t key;
	int part;
	bool revoking;
};

/* struct model - @start, @peak, of each account; the last one is that of the whole. */
struct model {
	struct past past[STEPS];
	int n;
	int of_slot[SLOTS]; /* its latest grant; -1: none */
	uint64_t start[3], peak[3];
};

struct scene {
	struct rxfer_ledger l[3];
	struct rxfer_grant g[SLOTS];
	struct model m;
	uint64_t now;
};

static bool belongs(const struct past *p, int account)
{
	return account == 2 || p->part == account;
}

static struct rxfer_exposed count(const struct scene *s, int account)
{
	const struct model *m = &s->m;
	struct rxfer_exposed x = {.peak = m->peak[account]};
	double sum = 0;
	uint64_t start = m->start[account];

	for (int i = 0; i < m->n; i++) {
		const struct past *p = &m->past[i];
		uint64_t from = p->from > start ? p->from : start;
		uint64_t to = p->to < s->now ? p->to : s->now;

		if (!belongs(p, account))
			continue;
		if (p->to == NEVER) {
			x.now += p->bytes;
			x.live++;
		}
		if (to > from)
			sum += (double)p->bytes * (double)(to - from);
	}
	x.avg = s->now > start ? sum / (double)(s->now - start) : (double)x.now;
	return x;
}

static void compare(struct prop *p, struct scene *s)
{
	for (int a = 0; a < 3; a++) {
		struct rxfer_exposed got = rxfer_ledger_read(&s->l[a], s->now);
		struct rxfer_exposed want = count(s, a);

		PROP_CHECK(p, got.now == want.now);
		PROP_CHECK(p, got.live == want.live);
		PROP_CHECK(p, got.peak == want.peak);
		PROP_CHECK(p, fabs(got.avg - want.avg) <= want.avg * 1e-12);
	}
}

static void note_peak(struct scene *s)
{
	for (int a = 0; a < 3; a++) {
		uint64_t now = count(s, a).now;

		if (s->m.peak[a] < now)
			s->m.peak[a] = now;
	}
}

static struct past *latest(struct scene *s, uint32_t slot)
{
	return s->m.of_slot[slot] < 0 ? NULL : &s->m.past[s->m.of_slot[slot]];
}

static void grant(struct prop *p, struct scene *s, uint32_t slot, uint32_t key)
{
	struct past *was = latest(s, slot);
	int part = (int)prop_range(p, 0, 1);
	uint64_t bytes = prop_next(p) >> prop_range(p, 20, 63);
	int rc = rxfer_grant_open(&s->l[part], &s->g[slot], key, bytes, s->now);

	PROP_CHECK(p, rc == (was && was->to == NEVER ? -EEXIST : 0));
	if (rc)
		return;
	s->m.of_slot[slot] = s->m.n;
	s->m.past[s->m.n++] = (struct past){bytes, s->now, NEVER, NEVER, key, part, false};
	note_peak(s);
}

static int refusal(const struct past *was, uint32_t key)
{
	if (!was || was->key != key)
		return -ENOENT;
	return was->to == NEVER ? 0 : -EALREADY;
}

static void revoke(struct prop *p, struct scene *s, uint32_t slot, uint32_t key)
{
	struct past *was = latest(s, slot);
	int want = refusal(was, key);

	if (!want && was->revoking)
		want = -EALREADY;
	PROP_CHECK(p, rxfer_grant_revoking(&s->g[slot], key) == want);
	if (!want)
		was->revoking = true;
}

static void keep(struct prop *p, struct scene *s, uint32_t slot, uint32_t key)
{
	struct past *was = latest(s, slot);
	bool may = !refusal(was, key) && was->revoking;

	PROP_CHECK(p, rxfer_grant_kept(&s->g[slot], key) == (may ? 0 : -ENOENT));
	if (may)
		was->revoking = false;
}

static void prove(struct prop *p, struct scene *s, uint32_t slot, uint32_t key)
{
	struct past *was = latest(s, slot);
	uint64_t span = 12345;
	int want = refusal(was, key);

	PROP_CHECK(p, rxfer_grant_proven(&s->g[slot], key, s->now, &span) == want);
	PROP_CHECK(p, !want || span == 12345);
	if (want)
		return;
	PROP_CHECK(p, span == (was->reply == NEVER ? RXFER_NO_SPAN : s->now - was->reply));
	was->to = s->now;
}

static void reply(struct scene *s, uint32_t slot)
{
	struct past *was = latest(s, slot);

	rxfer_grant_replied(&s->g[slot], s->now);
	if (was && was->to == NEVER && was->reply == NEVER)
		was->reply = s->now;
}

static void restart(struct prop *p, struct scene *s)
{
	uint32_t a = prop_range(p, 0, 2);

	rxfer_ledger_restart(&s->l[a], s->now);
	s->m.start[a] = s->now;
	s->m.peak[a] = count(s, (int)a).now;
}

/* Mostly the key that the slot has. */
static uint32_t some_key(struct prop *p, const struct scene *s, uint32_t slot)
{
	return prop_chance(p, 85) ? s->g[slot].key : prop_range(p, 0, 3);
}

static void step(struct prop *p, struct scene *s)
{
	uint32_t slot = prop_range(p, 0, SLOTS - 1), what = prop_range(p, 0, 19);

	if (prop_chance(p, 80)) /* else two things at one time */
		s->now += prop_next(p) >> prop_range(p, 24, 63);
	if (what < 6)
		grant(p, s, slot, prop_range(p, 0, 3));
	else if (what < 9)
		reply(s, slot);
	else if (what < 13)
		revoke(p, s, slot, some_key(p, s, slot));
	else if (what < 14)
		keep(p, s, slot, some_key(p, s, slot));
	else if (what < 19)
		prove(p, s, slot, some_key(p, s, slot));
	else
		restart(p, s);
}

static void begin(struct prop *p, struct scene *s)
{
	*s = (struct scene){.now = prop_range(p, 0, 1000)};
	rxfer_ledger_init(&s->l[2], NULL, s->now);
	for (int a = 0; a < 3; a++) {
		if (a < 2)
			rxfer_ledger_init(&s->l[a], &s->l[2], s->now);
		s->m.start[a] = s->now;
	}
	for (int i = 0; i < SLOTS; i++)
		s->m.of_slot[i] = -1;
}

static void as_the_naive_model(void **state)
{
	uint64_t first = prop_first_seed(), n = prop_count(SEQUENCES, 100);
	struct scene s;
	struct prop p;

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		prop_start(&p, first + i);
		begin(&p, &s);
		for (uint32_t k = prop_range(&p, 1, STEPS); k; k--) {
			step(&p, &s);
			compare(&p, &s);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_naive_model),
	};

	return cmocka_run_group_tests_name("prop_ledger", tests, NULL, NULL);
}
