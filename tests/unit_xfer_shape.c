/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* N and the send queue of a connection, as its I/Os' shape has it: with a reply, in rounds, with
 * lists that are cut alike. And what exposing costs, where that is timed. */
#include "held_fixture.h"

#define LOOK_NS 5000000 /* of the virtual clock, each time that somebody looks: engine_config() */

/* Where each of these is 0: global, a device of 30 SGEs, no reply, the default depth. */
struct sizing {
	struct rxfer_shape shape;
	const char *strategy;
	uint32_t depth, sge_max, max_qp_wr, sq_room, inline_max, max_msg_size;
	bool reply, rounds;
};

static const struct rxfer_shape three_by_two = {
	.op = RXFER_WRITE, .bytes = 3000, .frags = 3, .segments = 2};
/* Of up to 264 WRs: 256 segments, and what 30 SGEs a WR add. */
static const struct rxfer_shape large = {
	.op = RXFER_WRITE, .bytes = BYTES, .frags = 256, .segments = 256};
#define LARGE (256 + 255 / 30)

static int open_sized(struct pair *p, const struct sizing *s)
{
	struct fake_config config = engine_config();
	struct rxfer_conn_attr *a = &p->e.client_attr;

	if (s->max_qp_wr)
		config.device[0].max_qp_wr = s->max_qp_wr;
	if (s->max_msg_size)
		config.device[0].max_msg_size = s->max_msg_size;
	config.device[0].sq_room = s->sq_room;
	open_pair(p, &config, s->strategy ? s->strategy : "global", &s->shape);
	a->sq_depth = s->depth;
	a->sge_max = s->sge_max;
	a->inline_max = s->inline_max;
	a->reply = s->reply;
	a->rounds = s->rounds;
	p->e.server_attr.rq_depth = 2;
	return engine_connect(&p->e);
}

static struct rxfer_conn_info sized(const struct sizing *s)
{
	struct rxfer_conn_info info;
	struct pair p;

	assert_int_equal(open_sized(&p, s), 0);
	rxfer_conn_info(p.e.client, &info);
	assert_int_equal(p.e.client->need, info.need);
	assert_int_equal(p.e.client->sig.need, info.need);
	assert_true(info.need < info.sq_depth);
	assert_true(engine_idle(p.e.client));
	assert_int_equal(rxfer_sq_reserve(rxfer_conn_sq(p.e.client), info.need), 0);
	engine_close(&p.e);
	return info;
}

static void refused(const struct sizing *s, const char *words)
{
	struct pair p;

	assert_int_equal(open_sized(&p, s), -EMSGSIZE);
	engine_said(words);
	engine_close(&p.e);
}

/* ---- N ---- */

static void a_reply_takes_one_more(void **state)
{
	struct sizing s = {.shape = three_by_two};

	(void)state;
	assert_int_equal(sized(&s).need, 2);
	s.reply = true;
	assert_int_equal(sized(&s).need, 3);
	assert_int_equal(sized(&s).sq_wanted, 2 * 3 * 2 + 1); /* of two slots */
	s.strategy = "multi-wr";
	assert_int_equal(sized(&s).need, 5);
	s.depth = 5;
	refused(&s, "it takes 5, and one for the drain: use --sq-depth 6 or more");
	s.depth = 6;
	assert_int_equal(sized(&s).need, 5);
}

/* With more bytes than a WR takes: those WRs that are full, besides the others, which have a byte
 * for each of their pieces at least. */
static void bytes_take_more(void **state)
{
	static const struct {
		uint32_t bytes, limit, frags, segments, sges, need;
	} cases[] = {
		{1000, 1000, 1, 1, 1, 1}, {1001, 1000, 1, 1, 1, 2}, {3500, 1000, 1, 1, 1, 4},
		{3500, 1000, 4, 1, 4, 4}, {3500, 1000, 4, 1, 1, 7}, {3500, 1000, 4, 4, 1, 10},
		{1003, 1000, 4, 1, 1, 4}, {1004, 1000, 4, 1, 1, 5}, {8, 1, 2, 2, 2, 8},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sizing s = {.shape = {.op = RXFER_WRITE,
					     .bytes = cases[i].bytes,
					     .frags = cases[i].frags,
					     .segments = cases[i].segments},
				   .max_msg_size = cases[i].limit,
				   .sge_max = cases[i].sges};

		assert_int_equal(sized(&s).need, cases[i].need);
		assert_int_equal(sized(&s).bytes_per_wr,
				 cases[i].bytes > cases[i].limit ? cases[i].limit : UINT32_MAX);
		s.shape.op = RXFER_READ;
		s.reply = true;
		assert_int_equal(sized(&s).need, cases[i].need + 1);
	}
}

/* A piece each, or less: as many WRs as pieces, and those that bytes fill. */
static void bytes_of_lists_that_are_cut_alike(void **state)
{
	struct sizing s = {.shape = {.op = RXFER_READ,
				     .bytes = 3500,
				     .frags = 4,
				     .segments = 4,
				     .aligned = true},
			   .max_msg_size = 1000};

	(void)state;
	assert_int_equal(sized(&s).need, 4 + 3496 / 1000);
	s.shape.segments = 1;
	assert_int_equal(sized(&s).need, 4 + 3496 / 1000);
	s.strategy = "bounce";
	assert_int_equal(sized(&s).need, 1 + 3499 / 1000);
	s.rounds = s.reply = true;
	s.depth = 3;
	assert_int_equal(sized(&s).need, 2);
	s.shape.op = RXFER_SEND;
	s.rounds = s.reply = false;
	assert_int_equal(sized(&s).need, 1);
}

/* More bytes than the connection was made for, and so more WRs than it has room for. */
static void more_bytes_than_the_shape(void **state)
{
	struct sizing s = {.shape = {.op = RXFER_WRITE, .bytes = 2000, .frags = 1, .segments = 1},
			   .max_msg_size = 500};
	struct rxfer_frag frag = {pool, 2001};
	struct rxfer_seg to;
	struct pair p;

	(void)state;
	assert_int_equal(open_sized(&p, &s), 0);
	to = remote(&p, 0, 2001);
	assert_int_equal(rxfer_post_write(p.e.client, &frag, 1, &to, 1, 1, 0), -EMSGSIZE);
	engine_said("a post of more than 4 WRs: the connection was made for fewer bytes");
	assert_int_equal(fake_stats()->posts, 0);
	frag.len = to.len = 2000;
	assert_int_equal(rxfer_post_write(p.e.client, &frag, 1, &to, 1, 1, 0), 0);
	assert_int_equal(expect_done(&p, 1).bytes, 2000);
	assert_int_equal(fake_stats()->sqes, 4);
	assert_memory_equal(theirs, pool, 2000);
	assert_true(engine_idle(p.e.client));
	engine_close(&p.e);
}

static void lists_that_are_cut_alike(void **state)
{
	static const struct {
		uint32_t frags, segments, sges, apart, aligned;
	} cases[] = {
		{16, 16, 4, 19, 16}, {16, 1, 4, 4, 16}, {16, 16, 1, 31, 16},
		{1, 1, 4, 1, 1},     {8, 2, 30, 2, 8},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sizing s = {.shape = {.op = RXFER_WRITE,
					     .bytes = BYTES,
					     .frags = cases[i].frags,
					     .segments = cases[i].segments},
				   .sge_max = cases[i].sges};

		assert_int_equal(sized(&s).need, cases[i].apart);
		s.shape.aligned = true;
		assert_int_equal(sized(&s).need, cases[i].aligned);
		s.shape.op = RXFER_READ;
		s.reply = true;
		assert_int_equal(sized(&s).need, cases[i].aligned + 1);
	}
}

/* @n WRs for 16 fragments into @nseg segments, each of which ends where a fragment does. */
static void post_aligned(struct pair *p, uint32_t nseg, uint32_t n)
{
	struct rxfer_frag frag[16];
	struct rxfer_seg seg[16];
	struct rxfer_op op = {.op = RXFER_WRITE, .local = frag, .nlocal = 16, .remote = seg};
	uint32_t held = p->e.client->need, before = (uint32_t)fake_stats()->sqes;

	for (uint32_t i = 0; i < 16; i++)
		frag[i] = (struct rxfer_frag){pool + 200 * i, 10};
	for (uint32_t i = 0; i < nseg; i++)
		seg[i] = remote(p, 200 * i, 10);
	seg[nseg - 1].len += 10 * (16 - nseg);
	op.nremote = nseg;
	assert_int_equal(rxfer_sq_reserve(p->sq, held), 0);
	assert_int_equal(rxfer_post_held(p->e.client, &op, &held, 0), 0);
	assert_int_equal(fake_stats()->sqes - before, n);
	assert_int_equal(expect_done(p, 0).bytes, 160);
	for (uint32_t i = 0; i < 16; i++)
		assert_memory_equal(
			theirs + (i < nseg ? 200 * i : 200 * (nseg - 1) + 10 * (i - nseg + 1)),
			pool + 200 * i, 10);
}

/* That N is enough, on a queue that has room for no more. */
static void as_many_as_there_are_fragments(void **state)
{
	struct sizing s = {.shape = {.op = RXFER_WRITE,
				     .bytes = BYTES,
				     .frags = 16,
				     .segments = 16,
				     .aligned = true},
			   .sge_max = 4,
			   .depth = 17};
	struct pair p;

	(void)state;
	assert_int_equal(open_sized(&p, &s), 0);
	p.sq = rxfer_conn_sq(p.e.client);
	post_aligned(&p, 16, 16);
	post_aligned(&p, 12, 13); /* the last takes five */
	post_aligned(&p, 1, 4);
	assert_true(engine_idle(p.e.client));
	engine_close(&p.e);
}

/* ---- Rounds ---- */

/* Without them it is refused with the numbers; with them N is what the queue has. */
static void a_large_io_in_a_small_queue(void **state)
{
	struct sizing s = {.shape = large, .depth = 8};

	(void)state;
	refused(&s, "a send queue of 8 entries cannot hold one I/O: it takes 264, and one for the "
		    "drain: use --sq-depth 265 or more");
	s.reply = true;
	refused(&s, "it takes 265, and one for the drain: use --sq-depth 266 or more");
	s.rounds = true;
	assert_int_equal(sized(&s).need, 7);
	assert_int_equal(sized(&s).sq_depth, 8);
	s.reply = false;
	assert_int_equal(sized(&s).need, 7);
}

/* One WR of a round, the reply, which may be one of its WRs, the drain. */
static void the_least_depth(void **state)
{
	struct sizing s = {.shape = large, .rounds = true, .reply = true, .depth = 2};

	(void)state;
	refused(&s, "a send queue of 2 entries cannot hold one I/O: it takes 2, and one for the "
		    "drain: use --sq-depth 3 or more");
	s.depth = 3;
	assert_int_equal(sized(&s).need, 2);
	s.reply = false;
	assert_int_equal(sized(&s).need, 2);
	s.depth = 2;
	refused(&s, "it takes 2, and one for the drain: use --sq-depth 3 or more");
}

/* What fits goes in one, and N is what it was. */
static void no_rounds_where_it_fits(void **state)
{
	struct sizing s = {.shape = large, .rounds = true, .reply = true};

	(void)state;
	s.depth = LARGE + 2;
	assert_int_equal(sized(&s).need, LARGE + 1);
	s.depth = LARGE + 1;
	assert_int_equal(sized(&s).need, LARGE);
	s.depth = 0; /* the default: for whole I/Os */
	assert_int_equal(sized(&s).need, LARGE + 1);
	assert_int_equal(sized(&s).sq_depth, 2 * (LARGE + 1) * 2 + 1);
	s.shape = three_by_two;
	s.depth = 200;
	assert_int_equal(sized(&s).need, 3);
}

/* No I/O is larger than what the device gives, if it may go in rounds. */
static void as_deep_as_the_device_has_it(void **state)
{
	struct sizing s = {.shape = large, .rounds = true, .reply = true, .max_qp_wr = 20};

	(void)state;
	assert_int_equal(sized(&s).sq_depth, 20);
	assert_int_equal(sized(&s).need, 19);
	s.max_qp_wr = 3;
	assert_int_equal(sized(&s).need, 2);
	s.max_qp_wr = 2;
	refused(&s, "fake0 grants too small a send queue: one I/O takes 2 entries, and one for the "
		    "drain");
	s.rounds = false;
	s.max_qp_wr = 20;
	refused(&s,
		"fake0 grants too small a send queue: one I/O takes 265 entries, and one for the "
		"drain");
}

/* It promises more than it gives: what it does give is found, below what a whole I/O takes. */
static void less_than_the_device_promises(void **state)
{
	struct sizing s = {.shape = large, .rounds = true, .reply = true, .sq_room = 50};

	(void)state;
	assert_int_equal(sized(&s).sq_depth, 50);
	assert_int_equal(sized(&s).need, 49);
	s.sq_room = 3;
	assert_int_equal(sized(&s).sq_depth, 3);
	assert_int_equal(sized(&s).need, 2);
}

/* How much inline data the device takes is found out by queues that it has. */
static void inline_data_in_rounds(void **state)
{
	struct sizing s = {
		.shape = large, .rounds = true, .reply = true, .max_qp_wr = 20, .inline_max = 300};

	(void)state;
	refused(&s, "--inline 300 is more than fake0 grants: use --inline 256 or less");
	s.inline_max = 256;
	assert_int_equal(sized(&s).need, 19);
}

/* ---- Exposing, timed ---- */

/* struct spans - of an exposure and its revoke: what was counted, and what the caller saw. */
struct spans {
	uint64_t map, unmap, expose, revoke;
};

static struct spans expose_once(const char *strategy, bool timed, int want)
{
	struct rxfer_shape shape = {.op = RXFER_SEND, .bytes = 8, .frags = 1};
	struct rxfer_frag frag[] = {{theirs, 100}, {theirs + 200, 100}};
	const struct rxfer_counts *c;
	struct rxfer_exposure *x;
	struct rxfer_mem *mem;
	struct spans s = {0};
	struct pair p;

	open_pair(&p, NULL, strategy, &shape);
	p.e.client_attr.time_phases = timed;
	connect_pair(&p);
	c = rxfer_conn_counts(p.e.client);
	assert_int_equal(rxfer_mem_add(p.e.cdev, theirs, BYTES, RXFER_EXPOSE_WRITE, &mem), 0);
	assert_int_equal(rxfer_exposure_new(p.e.client, 2, &x), 0);
	s.expose = fake_now();
	assert_int_equal(rxfer_expose(p.e.client, x, frag, 2, RXFER_EXPOSE_WRITE), 0);
	s.expose = fake_now() - s.expose;
	s.map = c->map_ns;
	assert_int_equal(c->unmap_ns, 0);
	s.revoke = fake_now();
	assert_int_equal(rxfer_revoke(p.e.client, x), want);
	s.revoke = fake_now() - s.revoke;
	s.unmap = c->unmap_ns;
	assert_int_equal(c->map_ns, s.map);
	rxfer_exposure_free(p.e.client, x);
	engine_close(&p.e);
	return s;
}

/* The clock moves at each look, so the two looks around a phase are one LOOK_NS apart, and one more
 * before them is the caller's alone. Two grants begin and end: a look each. */
static void exposing_is_timed(void **state)
{
	struct spans s = expose_once("per-io", true, 0);

	(void)state;
	assert_int_equal(s.map, 3 * LOOK_NS);
	assert_int_equal(s.expose, 4 * LOOK_NS);
	assert_int_equal(s.unmap, 3 * LOOK_NS);
	assert_int_equal(s.revoke, 4 * LOOK_NS);
	s = expose_once("global", true, -EOPNOTSUPP);
	assert_int_equal(s.map, LOOK_NS);
	assert_int_equal(s.expose, 2 * LOOK_NS);
	assert_int_equal(s.unmap, LOOK_NS);
}

/* And not where nobody asks, nor is the clock looked at for it. */
static void exposing_is_not_timed(void **state)
{
	struct spans s = expose_once("per-io", false, 0);

	(void)state;
	assert_int_equal(s.map, 0);
	assert_int_equal(s.unmap, 0);
	assert_int_equal(s.expose, 2 * LOOK_NS); /* the grants' own */
	assert_int_equal(s.revoke, 2 * LOOK_NS);
	s = expose_once("global", false, -EOPNOTSUPP);
	assert_int_equal(s.map + s.unmap + s.expose + s.revoke, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reply_takes_one_more),
		cmocka_unit_test(lists_that_are_cut_alike),
		cmocka_unit_test(bytes_take_more),
		cmocka_unit_test(bytes_of_lists_that_are_cut_alike),
		cmocka_unit_test(more_bytes_than_the_shape),
		cmocka_unit_test(as_many_as_there_are_fragments),
		cmocka_unit_test(a_large_io_in_a_small_queue),
		cmocka_unit_test(the_least_depth),
		cmocka_unit_test(no_rounds_where_it_fits),
		cmocka_unit_test(as_deep_as_the_device_has_it),
		cmocka_unit_test(less_than_the_device_promises),
		cmocka_unit_test(inline_data_in_rounds),
		cmocka_unit_test(exposing_is_timed),
		cmocka_unit_test(exposing_is_not_timed),
	};

	return cmocka_run_group_tests_name("unit_xfer_shape", tests, NULL, NULL);
}
