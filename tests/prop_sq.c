/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The account of a send queue against a naive model of one: an array with one element per SQE, each
 * with a state and, if posted, a 64-bit sequence number. The model finds everything by looking at
 * all entries; it subtracts nothing and wraps nowhere. Both are driven by the same random calls,
 * correct ones and wrong ones, and must agree on every answer and, after each call, on every count.
 *
 * The last tests drive a broken account instead, one for each rule, and demand that the comparison
 * notices: a check that nothing can fail would prove nothing.
 */
#include <errno.h>
#include <string.h>

#include "prop.h"
#include "../src/sq.h"

#define MAX_DEPTH 64

enum entry_state { FREE, RESERVED, POSTED };

struct entry {
	enum entry_state state;
	uint64_t seq;
};

struct model {
	struct entry sqe[MAX_DEPTH];
	uint32_t depth;
	uint32_t peak;
	uint64_t next_seq;
};

/* The account under test; a broken one differs in one call. */
struct account_ops {
	int (*reserve)(struct rxfer_sq *sq, uint32_t n);
	int (*commit)(struct rxfer_sq *sq, uint32_t n, uint32_t actual, uint32_t keep,
		      uint32_t *first_seq);
	int (*release)(struct rxfer_sq *sq, uint32_t n);
	int (*unpost)(struct rxfer_sq *sq, uint32_t n);
	int64_t (*complete)(struct rxfer_sq *sq, uint32_t seq);
};

static const struct account_ops real = {
	.reserve = rxfer_sq_reserve,
	.commit = rxfer_sq_commit,
	.release = rxfer_sq_release,
	.unpost = rxfer_sq_unpost,
	.complete = rxfer_sq_complete,
};

/*
 * One sequence: the account, the model, and who holds how many credits. @agree turns false at the
 * first difference; what the tests then make of it is up to them.
 */
struct run {
	const struct account_ops *ops;
	struct prop *p;
	struct rxfer_sq sq;
	struct model m;
	uint32_t held[MAX_DEPTH];
	uint32_t n_held;
	bool agree;
};

static void expect(struct run *r, bool cond)
{
	if (!cond)
		r->agree = false;
}

/* ---- the model ---- */

static uint32_t model_count(const struct model *m, enum entry_state state)
{
	uint32_t i, n = 0;

	for (i = 0; i < m->depth; i++)
		n += m->sqe[i].state == state;
	return n;
}

/* Turn @n entries from one state into another; entries that get posted are numbered. */
static void model_turn(struct model *m, uint32_t n, enum entry_state from, enum entry_state to)
{
	uint32_t i;

	for (i = 0; i < m->depth && n; i++) {
		if (m->sqe[i].state != from)
			continue;
		m->sqe[i].state = to;
		if (to == POSTED)
			m->sqe[i].seq = m->next_seq++;
		n--;
	}
}

static bool model_is_posted(const struct model *m, uint64_t seq)
{
	uint32_t i;

	for (i = 0; i < m->depth; i++) {
		if (m->sqe[i].state == POSTED && m->sqe[i].seq == seq)
			return true;
	}
	return false;
}

/* Frees what is posted and not after @seq; how many that was. */
static uint32_t model_complete(struct model *m, uint64_t seq)
{
	uint32_t i, n = 0;

	for (i = 0; i < m->depth; i++) {
		if (m->sqe[i].state == POSTED && m->sqe[i].seq <= seq) {
			m->sqe[i].state = FREE;
			n++;
		}
	}
	return n;
}

static uint64_t model_oldest(const struct model *m)
{
	uint64_t oldest = m->next_seq;
	uint32_t i;

	for (i = 0; i < m->depth; i++) {
		if (m->sqe[i].state == POSTED && m->sqe[i].seq < oldest)
			oldest = m->sqe[i].seq;
	}
	return oldest;
}

static void compare(struct run *r)
{
	const struct rxfer_sq *sq = &r->sq;
	uint32_t posted = model_count(&r->m, POSTED);

	if (posted > r->m.peak)
		r->m.peak = posted;
	expect(r, rxfer_sq_posted(sq) == posted);
	expect(r, sq->reserved == model_count(&r->m, RESERVED));
	expect(r, rxfer_sq_free(sq) == model_count(&r->m, FREE));
	expect(r, sq->head == (uint32_t)r->m.next_seq);
	expect(r, sq->tail == (uint32_t)model_oldest(&r->m));
	expect(r, sq->peak == r->m.peak);
	expect(r, rxfer_sq_check(sq) == 0);
}

/* ---- correct use ---- */

static void hold(struct run *r, uint32_t n)
{
	if (n)
		r->held[r->n_held++] = n;
}

/* Takes a random holder off the list; what it holds. There must be one. */
static uint32_t unhold(struct run *r)
{
	uint32_t i = prop_range(r->p, 0, r->n_held - 1);
	uint32_t n = r->held[i];

	r->held[i] = r->held[--r->n_held];
	return n;
}

static void do_reserve(struct run *r)
{
	uint32_t n = prop_range(r->p, 1, r->m.depth);
	bool fits = n <= model_count(&r->m, FREE);

	expect(r, r->ops->reserve(&r->sq, n) == (fits ? 0 : -EAGAIN));
	if (!fits)
		return;
	model_turn(&r->m, n, FREE, RESERVED);
	hold(r, n);
}

/* A post: the device takes @taken of @actual WRs, and now and then not all of them. */
static void do_post(struct run *r)
{
	uint32_t n, actual, keep, taken, first = ~0u;

	if (!r->n_held)
		return;
	n = unhold(r);
	actual = prop_range(r->p, 0, n);
	keep = prop_chance(r->p, 50) ? prop_range(r->p, 0, n - actual) : 0;
	taken = prop_chance(r->p, 20) ? prop_range(r->p, 0, actual) : actual;

	expect(r, r->ops->commit(&r->sq, n, actual, keep, &first) == 0);
	expect(r, first == (uint32_t)r->m.next_seq);
	if (taken < actual)
		expect(r, r->ops->unpost(&r->sq, actual - taken) == 0);

	model_turn(&r->m, taken, RESERVED, POSTED);
	model_turn(&r->m, n - taken - keep, RESERVED, FREE);
	hold(r, keep);
}

static void do_release(struct run *r)
{
	uint32_t n, back;

	if (!r->n_held)
		return;
	n = unhold(r);
	back = prop_range(r->p, 1, n);
	expect(r, r->ops->release(&r->sq, back) == 0);
	model_turn(&r->m, back, RESERVED, FREE);
	hold(r, n - back);
}

static void do_complete(struct run *r)
{
	uint32_t posted = model_count(&r->m, POSTED);
	uint64_t seq;

	if (!posted)
		return;
	seq = model_oldest(&r->m) + prop_range(r->p, 0, posted - 1);
	expect(r, r->ops->complete(&r->sq, (uint32_t)seq) == model_complete(&r->m, seq));
}

/* ---- wrong use: the documented error, and nothing changes ---- */

/* A number above @limit: just above, near the end of the range where sums wrap, or anything. */
static uint32_t above(struct prop *p, uint32_t limit)
{
	switch (prop_range(p, 0, 2)) {
	case 0:
		return limit + prop_range(p, 1, 3);
	case 1:
		return ~0u - prop_range(p, 0, 7);
	default:
		return prop_range(p, limit + 1, ~0u);
	}
}

static int wrong_commit(struct run *r, uint32_t *first)
{
	uint32_t reserved = r->sq.reserved;
	uint32_t n = prop_range(r->p, 0, reserved);
	uint32_t actual;

	switch (prop_range(r->p, 0, 2)) {
	case 0: /* not reserved, or no longer: a reservation spent twice */
		n = above(r->p, reserved);
		return r->ops->commit(&r->sq, n, prop_range(r->p, 0, n), 0, first);
	case 1: /* more WRs than were reserved for them */
		return r->ops->commit(&r->sq, n, above(r->p, n), prop_range(r->p, 0, n), first);
	default: /* more posted and kept than reserved; the sum may wrap */
		actual = prop_range(r->p, 0, n);
		return r->ops->commit(&r->sq, n, actual, above(r->p, n - actual), first);
	}
}

static void do_wrong(struct run *r)
{
	struct rxfer_sq before = r->sq;
	uint32_t posted = rxfer_sq_posted(&r->sq);
	uint32_t first = 0xabad1deau;

	switch (prop_range(r->p, 0, 5)) {
	case 0:
		expect(r, r->ops->reserve(&r->sq, above(r->p, r->m.depth)) == -EMSGSIZE);
		break;
	case 1:
		expect(r, wrong_commit(r, &first) == -EOVERFLOW);
		expect(r, first == 0xabad1deau);
		break;
	case 2:
		expect(r, r->ops->release(&r->sq, above(r->p, before.reserved)) == -EOVERFLOW);
		break;
	case 3:
		expect(r, r->ops->unpost(&r->sq, above(r->p, posted)) == -EOVERFLOW);
		break;
	case 4: /* already returned: completed twice */
		expect(r,
		       r->ops->complete(&r->sq, before.tail - prop_range(r->p, 1, 9)) == -ERANGE);
		break;
	default: /* not posted yet */
		expect(r,
		       r->ops->complete(&r->sq, before.head + prop_range(r->p, 0, 9)) == -ERANGE);
	}
	expect(r, !memcmp(&before, &r->sq, sizeof(before)));
}

/* ---- sequences ---- */

/* Where the counters start: mostly so that this sequence carries them across 2^32, or 2^31. */
static uint64_t start_seq(struct prop *p, uint32_t depth)
{
	static const uint64_t edges[] = {1ull << 32, 1ull << 32, 1ull << 31};
	uint32_t i = prop_range(p, 0, 3);

	return i < 3 ? edges[i] - prop_range(p, 0, 2 * depth) : prop_next(p) >> 16;
}

static void run_start(struct run *r, const struct account_ops *ops, struct prop *p, uint64_t seed)
{
	uint32_t depth = 1 + (uint32_t)(seed % MAX_DEPTH);

	prop_start(p, seed);
	*r = (struct run){.ops = ops, .p = p, .agree = true};
	expect(r, rxfer_sq_init(&r->sq, depth) == 0);
	r->m.depth = depth;
	r->m.next_seq = start_seq(p, depth);
	r->sq.head = r->sq.tail = (uint32_t)r->m.next_seq;
}

/* All is given back in the end, whatever happened before. */
static void run_end(struct run *r)
{
	uint64_t last = r->m.next_seq - 1;

	while (r->n_held && r->agree)
		do_release(r);
	if (model_is_posted(&r->m, last))
		expect(r, r->ops->complete(&r->sq, (uint32_t)last) == model_complete(&r->m, last));
	compare(r);
	expect(r, rxfer_sq_free(&r->sq) == r->m.depth);
}

static bool run_agrees(const struct account_ops *ops, struct prop *p, uint64_t seed)
{
	struct run r;
	uint32_t steps;

	run_start(&r, ops, p, seed);
	for (steps = prop_range(p, 4, 28); steps && r.agree; steps--) {
		uint32_t what = prop_range(p, 0, 99);

		if (what < 30)
			do_reserve(&r);
		else if (what < 60)
			do_post(&r);
		else if (what < 70)
			do_release(&r);
		else if (what < 90)
			do_complete(&r);
		else
			do_wrong(&r);
		compare(&r);
	}
	if (r.agree)
		run_end(&r);
	return r.agree;
}

static void agrees_with_the_model(void **state)
{
	uint64_t seed = prop_first_seed();
	uint64_t n = prop_count(1500000, 64);
	struct prop p;

	(void)state;
	for (; n; n--, seed++)
		PROP_CHECK(&p, run_agrees(&real, &p, seed));
}

/* ---- each rule bites ---- */

/* Invariant 1, promise: sets aside what is not free. */
static int broken_reserve(struct rxfer_sq *sq, uint32_t n)
{
	if (n > sq->depth)
		return -EMSGSIZE;
	sq->reserved += n;
	return 0;
}

/* Invariant 1, spending: posts whatever it is told to. */
static int broken_commit_unchecked(struct rxfer_sq *sq, uint32_t n, uint32_t actual, uint32_t keep,
				   uint32_t *first_seq)
{
	*first_seq = sq->head;
	sq->head += actual;
	sq->reserved -= n - keep;
	sq->peak_was = sq->peak;
	if (rxfer_sq_posted(sq) > sq->peak)
		sq->peak = rxfer_sq_posted(sq);
	return 0;
}

/* The sum of two numbers near 2^32 passes for a small one. */
static int broken_commit_wrapping(struct rxfer_sq *sq, uint32_t n, uint32_t actual, uint32_t keep,
				  uint32_t *first_seq)
{
	if (actual + keep > n || n > sq->reserved || rxfer_sq_check(sq))
		return -EOVERFLOW;
	return broken_commit_unchecked(sq, n, actual, keep, first_seq);
}

/* Rule 2: forgets to give back what was reserved and is neither used nor kept. */
static int broken_commit_leaking(struct rxfer_sq *sq, uint32_t n, uint32_t actual, uint32_t keep,
				 uint32_t *first_seq)
{
	int ret = rxfer_sq_commit(sq, n, actual, keep, first_seq);

	if (!ret)
		sq->reserved += n - actual - keep;
	return ret;
}

static int broken_release(struct rxfer_sq *sq, uint32_t n)
{
	sq->reserved -= n;
	return 0;
}

/* Leaves a hole in the sequence numbers and loses the credits. */
static int broken_unpost(struct rxfer_sq *sq, uint32_t n)
{
	return n > rxfer_sq_posted(sq) ? -EOVERFLOW : 0;
}

/* Counts what the device never took as posted. */
static int broken_unpost_peak(struct rxfer_sq *sq, uint32_t n)
{
	uint32_t peak = sq->peak;
	int ret = rxfer_sq_unpost(sq, n);

	sq->peak = peak;
	return ret;
}

/* Strong ordering: returns the signalled SQE and none of the silent ones before it. */
static int64_t broken_complete_one(struct rxfer_sq *sq, uint32_t seq)
{
	if (seq - sq->tail >= rxfer_sq_posted(sq))
		return -ERANGE;
	sq->tail++;
	return 1;
}

/* Compares numbers that wrap. */
static int64_t broken_complete_no_wrap(struct rxfer_sq *sq, uint32_t seq)
{
	if (seq < sq->tail || seq >= sq->head)
		return -ERANGE;
	return rxfer_sq_complete(sq, seq);
}

/* Believes every completion. */
static int64_t broken_complete_unchecked(struct rxfer_sq *sq, uint32_t seq)
{
	uint32_t before = seq - sq->tail;

	sq->tail = seq + 1;
	return (int64_t)before + 1;
}

/* How many of @n sequences notice that something is wrong with @ops. */
static uint64_t noticed(const struct account_ops *ops, uint64_t n)
{
	uint64_t seed = prop_first_seed();
	uint64_t i, count = 0;
	struct prop p;

	for (i = 0; i < n; i++)
		count += !run_agrees(ops, &p, seed + i);
	return count;
}

#define BITES(name, member, broken)                               \
	static void name(void **state)                            \
	{                                                         \
		struct account_ops ops = real;                    \
                                                                  \
		(void)state;                                      \
		ops.member = broken;                              \
		assert_in_range(noticed(&ops, 10000), 20, 10000); \
	}

BITES(bites_reserve_beyond_depth, reserve, broken_reserve)
BITES(bites_commit_unchecked, commit, broken_commit_unchecked)
BITES(bites_commit_sum_wraps, commit, broken_commit_wrapping)
BITES(bites_commit_leaks, commit, broken_commit_leaking)
BITES(bites_release_unchecked, release, broken_release)
BITES(bites_unpost_lost, unpost, broken_unpost)
BITES(bites_unpost_counts_in_peak, unpost, broken_unpost_peak)
BITES(bites_complete_returns_one, complete, broken_complete_one)
BITES(bites_complete_compares_numbers, complete, broken_complete_no_wrap)
BITES(bites_complete_unchecked, complete, broken_complete_unchecked)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_model),
		cmocka_unit_test(bites_reserve_beyond_depth),
		cmocka_unit_test(bites_commit_unchecked),
		cmocka_unit_test(bites_commit_sum_wraps),
		cmocka_unit_test(bites_commit_leaks),
		cmocka_unit_test(bites_release_unchecked),
		cmocka_unit_test(bites_unpost_lost),
		cmocka_unit_test(bites_unpost_counts_in_peak),
		cmocka_unit_test(bites_complete_returns_one),
		cmocka_unit_test(bites_complete_compares_numbers),
		cmocka_unit_test(bites_complete_unchecked),
	};

	return cmocka_run_group_tests_name("prop_sq", tests, NULL, NULL);
}
