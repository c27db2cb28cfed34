/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rxfer-bench fence without a device: the table of what must come of attempts, what is made of the
 * answers, and the messages. */
#include "session_fixture.h"

#include "fence.h"

/* ---- The table ---- */

static const enum rxfer_revoke of_kind[][5] = {
	[FENCE_WHOLE] = {RXFER_REVOKE_NONE, RXFER_REVOKE_AUTO},
	[FENCE_PAGES] = {RXFER_REVOKE_NONE, RXFER_REVOKE_AUTO},
	[FENCE_TAIL] = {RXFER_REVOKE_NONE, RXFER_REVOKE_AUTO},
	[FENCE_REGION] = {RXFER_REVOKE_SYNC, RXFER_REVOKE_ASYNC, RXFER_REVOKE_AUTO},
	[FENCE_WINDOW] = {RXFER_REVOKE_SYNC, RXFER_REVOKE_ASYNC, RXFER_REVOKE_REMOTE,
			  RXFER_REVOKE_LAZY, RXFER_REVOKE_AUTO},
	[FENCE_BUFFER] = {RXFER_REVOKE_NONE, RXFER_REVOKE_AUTO},
	[FENCE_LIST] = {RXFER_REVOKE_SYNC, RXFER_REVOKE_ASYNC, RXFER_REVOKE_REMOTE,
			RXFER_REVOKE_LAZY, RXFER_REVOKE_AUTO},
};

typedef void visit(const struct fence_cell *cell);

static void each_cell(visit *fn)
{
	struct fence_cell c = {.strategy = "one", .bytes = 64};

	for (unsigned int kind = 0; kind <= FENCE_LIST; kind++)
		for (unsigned int m = 0; of_kind[kind][m] != RXFER_REVOKE_AUTO; m++)
			for (unsigned int i = 0; i < 2 * FENCE_ATTEMPTS * FENCE_STAGES; i++) {
				c.kind = kind;
				c.revoke = of_kind[kind][m];
				c.write = i % 2;
				c.attempt = i / 2 / FENCE_STAGES;
				c.stage = i / 2 % FENCE_STAGES;
				fn(&c);
			}
}

/* Does the I/O's end, whichever it is, revoke the key at this stage? */
static bool is_dead(const struct fence_cell *c)
{
	switch (c->revoke) {
	case RXFER_REVOKE_SYNC:
		return c->stage == FENCE_COMPLETE;
	case RXFER_REVOKE_REMOTE:
		return c->stage != FENCE_DURING;
	default:
		return c->stage == FENCE_REVOKED;
	}
}

static bool has_revoked(const struct fence_cell *c)
{
	return c->revoke == RXFER_REVOKE_ASYNC || c->revoke == RXFER_REVOKE_LAZY;
}

static void a_use(const struct fence_cell *c)
{
	bool there = c->stage != FENCE_REVOKED || has_revoked(c);
	enum fence_outcome out;

	if (c->attempt != FENCE_USE)
		return;
	assert_int_equal(fence_expected(c, &out), there);
	if (there)
		assert_int_equal(out, is_dead(c) ? FENCE_CLOSED : FENCE_OPEN);
}

static void not_a_use(const struct fence_cell *c)
{
	bool open = c->kind == FENCE_WHOLE ||
		    (c->attempt == FENCE_OTHER_QP && c->kind != FENCE_WINDOW) ||
		    (c->attempt == FENCE_AFTER && c->kind == FENCE_TAIL);
	bool there = c->stage == FENCE_DURING;
	enum fence_outcome out;

	if (c->attempt == FENCE_USE)
		return;
	if (c->attempt == FENCE_WRITE_READ_ONLY) {
		there &= !c->write;
		open = false;
	}
	if (c->attempt == FENCE_PARENT) {
		there &= c->kind == FENCE_WINDOW || c->kind == FENCE_LIST;
		open = false;
	}
	if (c->attempt == FENCE_MEMORY) {
		there &= c->kind == FENCE_BUFFER;
		open = false;
	}
	if (c->attempt == FENCE_BEFORE || c->attempt == FENCE_AFTER)
		there &= c->kind != FENCE_BUFFER;
	there &= c->attempt != FENCE_BEFORE || c->kind != FENCE_LIST;
	assert_int_equal(fence_expected(c, &out), there);
	if (there)
		assert_int_equal(out, open ? FENCE_OPEN : FENCE_CLOSED);
}

static void the_table_of_use(void **state)
{
	(void)state;
	each_cell(a_use);
}

static void the_table_of_all_else(void **state)
{
	(void)state;
	each_cell(not_a_use);
}

/* ---- Verdicts ---- */

static void verdicts(void **state)
{
	static const struct {
		enum fence_outcome expected, observed;
		enum fence_verdict verdict;
	} cases[] = {
		{FENCE_OPEN, FENCE_OPEN, FENCE_OK},
		{FENCE_CLOSED, FENCE_CLOSED, FENCE_OK},
		{FENCE_CLOSED, FENCE_ENDED, FENCE_OK},
		{FENCE_OPEN, FENCE_CLOSED, FENCE_DIFFERS},
		{FENCE_OPEN, FENCE_ENDED, FENCE_DIFFERS},
		{FENCE_OPEN, FENCE_FAILED, FENCE_DIFFERS},
		{FENCE_CLOSED, FENCE_OPEN, FENCE_DIFFERS},
		{FENCE_CLOSED, FENCE_FAILED, FENCE_DIFFERS},
	};
	struct fence_row row[sizeof(cases) / sizeof(cases[0]) + 1] = {0};
	struct fence_rows rows = {row, sizeof(cases) / sizeof(cases[0]) + 1};
	struct fence_tally t;

	(void)state;
	for (unsigned int i = 0; i < rows.n - 1; i++) {
		row[i].expected = cases[i].expected;
		row[i].observed = cases[i].observed;
		assert_int_equal(fence_verdict(&row[i]), cases[i].verdict);
	}
	row[rows.n - 1].skipped = true;
	row[rows.n - 1].observed = FENCE_FAILED;
	assert_int_equal(fence_verdict(&row[rows.n - 1]), FENCE_SKIPPED);
	t = fence_count(&rows);
	assert_int_equal(t.cells, rows.n - 1);
	assert_int_equal(t.differ, 5);
	assert_int_equal(t.skipped, 1);
}

static struct fence_found found(struct fence_cell cell, enum fence_outcome observed)
{
	struct fence_row row = {.cell = cell, .observed = observed};
	struct fence_rows rows = {&row, 1};

	fence_expected(&cell, &row.expected);
	return fence_find(&rows, "one");
}

static bool nothing(struct fence_found f)
{
	return !f.always && !f.all && !f.pages && !f.beyond;
}

static void what_is_said_below(void **state)
{
	struct fence_cell c = {"one", FENCE_WHOLE, RXFER_REVOKE_NONE, false,
			       64,    FENCE_USE,   FENCE_COMPLETE};

	(void)state;
	assert_true(found(c, FENCE_OPEN).always);
	assert_true(nothing(found(c, FENCE_CLOSED)));
	c.stage = FENCE_DURING;
	assert_true(nothing(found(c, FENCE_OPEN)));
	c.attempt = FENCE_AFTER;
	assert_true(found(c, FENCE_OPEN).all && !found(c, FENCE_OPEN).beyond);
	assert_true(nothing(found(c, FENCE_FAILED)));
	c.kind = FENCE_WINDOW;
	assert_true(found(c, FENCE_OPEN).beyond && !found(c, FENCE_OPEN).all);
	c = (struct fence_cell){"one", FENCE_BUFFER, RXFER_REVOKE_NONE, false,
				64,    FENCE_USE,    FENCE_COMPLETE};
	assert_true(found(c, FENCE_OPEN).always && !found(c, FENCE_OPEN).beyond);
	c.stage = FENCE_DURING;
	c.attempt = FENCE_MEMORY;
	assert_true(found(c, FENCE_OPEN).beyond && !found(c, FENCE_OPEN).all);
	assert_true(nothing(found(c, FENCE_CLOSED)));
	c.attempt = FENCE_AFTER;
	c.stage = FENCE_DURING;
	c.kind = FENCE_PAGES;
	assert_true(found(c, FENCE_OPEN).beyond && !found(c, FENCE_OPEN).pages);
	c.kind = FENCE_TAIL;
	assert_true(found(c, FENCE_OPEN).pages && !found(c, FENCE_OPEN).beyond);
	c.attempt = FENCE_BEFORE;
	assert_true(found(c, FENCE_OPEN).beyond && !found(c, FENCE_OPEN).pages);
	c.strategy = "another";
	assert_true(nothing(found(c, FENCE_OPEN)));
	c = (struct fence_cell){"one", FENCE_TAIL, RXFER_REVOKE_NONE, true,
				64,    FENCE_USE,  FENCE_COMPLETE};
	assert_true(found(c, FENCE_OPEN).always);
	c = (struct fence_cell){"one", FENCE_REGION, RXFER_REVOKE_ASYNC, false,
				64,    FENCE_USE,    FENCE_COMPLETE};
	assert_true(nothing(found(c, FENCE_OPEN)));
}

/* ---- Messages ---- */

static void messages_travel(void **state)
{
	const struct fence_hold hold = {2, 1};
	const struct fence_reply reply = {true, UINT32_MAX};
	const struct fence_try try = {true, 1, INT64_MAX, 1, 0x80000000u, 4095, 118};
	struct fence_tried tried = {FENCE_CLOSED, INT64_MAX, "why \"so\""};
	struct fence_hold h;
	struct fence_reply r;
	struct fence_try t;
	struct fence_tried d;
	json_t *body;

	(void)state;
	body = travel(fence_hold_to_json(&hold));
	assert_int_equal(fence_hold_from_json(body, &h), 0);
	assert_true(h.conns == 2 && h.requests == 1);
	json_decref(body);
	body = travel(fence_reply_to_json(&reply));
	assert_int_equal(fence_reply_from_json(body, &r), 0);
	assert_true(r.revoke && r.key == UINT32_MAX);
	json_decref(body);
	body = travel(fence_try_to_json(&try));
	assert_int_equal(fence_try_from_json(body, &t), 0);
	assert_true(t.write && t.conn == 1 && t.addr == INT64_MAX && t.len == 1);
	assert_true(t.key == 0x80000000u && t.position == 4095 && t.seed == 118);
	json_decref(body);
	for (unsigned int i = 0; fence_outcome_name(i); i++) {
		tried.outcome = i;
		body = travel(fence_tried_to_json(&tried));
		assert_int_equal(fence_tried_from_json(body, &d), 0);
		assert_true(d.outcome == i && d.sum == tried.sum);
		assert_string_equal(d.words, tried.words);
		json_decref(body);
	}
}

/* What is no UTF-8 would be no message. */
static void foreign_words(void **state)
{
	struct fence_tried tried = {.words = "a\xffz"}, d;
	json_t *body = travel(fence_tried_to_json(&tried));

	(void)state;
	assert_int_equal(fence_tried_from_json(body, &d), 0);
	assert_string_equal(d.words, "a?z");
	json_decref(body);
}

enum type { HOLD, REPLY, TRY, TRIED };

static int take(enum type type, const json_t *body)
{
	struct fence_hold h;
	struct fence_reply r;
	struct fence_try t;
	struct fence_tried d;

	switch (type) {
	case HOLD:
		return fence_hold_from_json(body, &h);
	case REPLY:
		return fence_reply_from_json(body, &r);
	case TRY:
		return fence_try_from_json(body, &t);
	default:
		return fence_tried_from_json(body, &d);
	}
}

static void messages_that_are_none(void **state)
{
	static const struct {
		enum type type;
		const char *text, *says;
	} cases[] = {
		{HOLD, "{}", "lacks the number connections"},
		{HOLD, "{\"connections\":1}", "lacks the number requests"},
		{HOLD, "{\"connections\":3,\"requests\":1}", "says connections 3, at most 2"},
		{HOLD, "{\"connections\":2,\"requests\":3}", "says requests 3, at most 2"},
		{HOLD, "{\"connections\":0,\"requests\":1}", "without a connection"},
		{HOLD, "{\"connections\":1,\"requests\":0}", "without a request"},
		{HOLD, "{\"connections\":-1,\"requests\":1}", "lacks the number connections"},
		{REPLY, "{\"revoke\":2,\"key\":1}", "says revoke 2, at most 1"},
		{REPLY, "{\"revoke\":1,\"key\":4294967296}", "says key 4294967296"},
		{REPLY, "{\"revoke\":1}", "lacks the number key"},
		{TRY, "{\"write\":2}", "says write 2"},
		{TRY, "{\"write\":1,\"connection\":2}", "says connection 2, at most 1"},
		{TRY, "{\"write\":1,\"connection\":1,\"key\":4294967296}", "says key"},
		{TRY, "{\"write\":1,\"connection\":1,\"key\":7}", "lacks the number address"},
		{TRY,
		 "{\"write\":1,\"connection\":1,\"key\":7,\"address\":-1,\"bytes\":1,\"position\":1,\"seed\":1}",
		 "lacks the number address"},
		{TRY,
		 "{\"write\":1,\"connection\":1,\"key\":7,\"address\":1,\"bytes\":1,\"position\":1}",
		 "lacks the number seed"},
		{TRIED, "{\"outcome\":\"ajar\",\"sum\":1,\"words\":\"\"}", "was ajar"},
		{TRIED, "{\"outcome\":\"\",\"sum\":1,\"words\":\"\"}", "was "},
		{TRIED, "{\"outcome\":\"open\",\"words\":\"\"}", "lacks the number sum"},
		{TRIED, "{\"outcome\":\"open\",\"sum\":1}", "lacks the text words"},
		{TRIED, "{\"outcome\":1,\"sum\":1,\"words\":\"\"}", "lacks the text outcome"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *body = json_loads(cases[i].text, 0, NULL);

		assert_non_null(body);
		assert_int_equal(take(cases[i].type, body), -EBADMSG);
		assert_says(cases[i].says);
		json_decref(body);
	}
}

/* Of the same bytes the same; of any other byte, or order, or length, another; never too large. */
static void sums(void **state)
{
	unsigned char a[300], b[300];
	uint64_t sum;

	(void)state;
	for (size_t i = 0; i < sizeof(a); i++)
		a[i] = b[i] = (unsigned char)(i * 7);
	sum = fence_sum(a, sizeof(a));
	assert_true(sum <= INT64_MAX);
	for (size_t i = 0; i < sizeof(a); i++) {
		assert_true(fence_sum(b, sizeof(b)) == sum);
		assert_true(fence_sum(b, i) != sum);
		b[i] ^= 1;
		assert_true(fence_sum(b, sizeof(b)) != sum);
		b[i] ^= 1;
	}
	b[10] = a[11];
	b[11] = a[10];
	assert_true(fence_sum(b, sizeof(b)) != sum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_of_use),
		cmocka_unit_test(the_table_of_all_else),
		cmocka_unit_test(verdicts),
		cmocka_unit_test(what_is_said_below),
		cmocka_unit_test(messages_travel),
		cmocka_unit_test(foreign_words),
		cmocka_unit_test(messages_that_are_none),
		cmocka_unit_test(sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
