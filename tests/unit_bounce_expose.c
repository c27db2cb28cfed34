/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Strategy bounce, what the peer is let reach, on the test double: a buffer, all the time, and
 * never the memory of an I/O; what is copied to it and from it, and when.
 */
#include "expose_fixture.h"
#include "load_rpc.h"

#define N    3
#define EACH 100

static struct rxfer_frag frag[N];

/* N fragments of EACH bytes with gaps as large as they are. */
static void lay_fragments(void)
{
	for (uint32_t i = 0; i < N; i++)
		frag[i] = (struct rxfer_frag){mine + 1000 + 2 * i * EACH, EACH};
}

/* The connection's buffers have these @rights, and are as large as that. */
static void open_bounce(struct pair *p, unsigned int rights, uint64_t bytes)
{
	struct rxfer_shape shape = {.op = RXFER_SEND,
				    .bytes = 8,
				    .frags = 1,
				    .exposed = 1,
				    .fixed = 1,
				    .exposed_bytes = bytes,
				    .rights = rights};

	for (int i = 0; i < BYTES; i++) {
		mine[i] = (uint8_t)(i % 251);
		theirs[i] = 0;
	}
	*p = (struct pair){0};
	engine_open(&p->e, NULL, "bounce");
	assert_int_equal(rxfer_mem_add(p->e.cdev, mine, BYTES, BOTH, &p->local), 0);
	assert_int_equal(rxfer_mem_add(p->e.sdev, theirs, BYTES, RXFER_FIXED, &p->target), 0);
	engine_attr(&p->e, &shape, 4, 0, "io");
	p->e.server_attr.shape = (struct rxfer_shape){RXFER_READ, BYTES, 1, 1};
	assert_int_equal(engine_connect(&p->e), 0);
	assert_int_equal(p->e.accepted, 0);
	if (bytes)
		assert_int_equal(rxfer_exposure_new(p->e.client, FRAGS, &p->x), 0);
}

static void close_bounce(struct pair *p)
{
	rxfer_conn_close(p->e.client);
	p->e.client = NULL;
	assert_int_equal(rxfer_dev_exposed(p->e.cdev).live, 0);
	engine_close(&p->e);
}

static int expose_all(struct pair *p, unsigned int rights)
{
	int rc;

	lay_fragments();
	rc = rxfer_expose(p->e.client, p->x, frag, N, rights);
	memset(frag, 0, sizeof(frag)); /* the list is the caller's again */
	return rc;
}

static uint64_t copied(const struct pair *p)
{
	return rxfer_conn_counts(p->e.client)->copied_bytes;
}

static void mine_is_as_it_was(void)
{
	for (int i = 0; i < BYTES; i++)
		assert_int_equal(mine[i], i % 251);
}

/* ---- Copying ---- */

static void the_peer_reads_what_was_there(void **state)
{
	struct pair p;

	(void)state;
	open_bounce(&p, RXFER_EXPOSE_READ, N * EACH);
	assert_int_equal(expose_all(&p, RXFER_EXPOSE_READ), 0);
	assert_int_equal(copied(&p), N * EACH);
	assert_int_equal(nseg(&p), 1);
	assert_int_equal(seg(&p, 0).len, N * EACH);
	memset(mine, 0xee, BYTES);
	assert_int_equal(reach(&p, RXFER_READ, seg(&p, 0)), 0);
	for (int i = 0; i < N * EACH; i++)
		assert_int_equal(theirs[1000 + i], (1000 + 2 * EACH * (i / EACH) + i % EACH) % 251);
	assert_int_equal(rxfer_replied(p.e.client, p.x), 0);
	assert_int_equal(copied(&p), N * EACH); /* nothing comes back */
	assert_int_equal(mine[1000], 0xee);
	close_bounce(&p);
}

static void what_it_wrote_is_there_at_its_reply(void **state)
{
	struct pair p;

	(void)state;
	open_bounce(&p, RXFER_EXPOSE_WRITE, N * EACH);
	assert_int_equal(expose_all(&p, RXFER_EXPOSE_WRITE), 0);
	assert_int_equal(copied(&p), 0);
	for (int i = 0; i < N * EACH; i++)
		theirs[1000 + i] = (uint8_t)(i / EACH + 7);
	assert_int_equal(reach(&p, RXFER_WRITE, seg(&p, 0)), 0);
	mine_is_as_it_was();
	assert_int_equal(rxfer_replied(p.e.client, p.x), 0);
	assert_int_equal(copied(&p), N * EACH);
	for (int i = 0; i < BYTES; i++) {
		int in = (i - 1000) / EACH;
		bool wrote = i >= 1000 && in < 2 * N && in % 2 == 0;

		assert_int_equal(mine[i], wrote ? in / 2 + 7 : i % 251);
	}
	close_bounce(&p);
}

/* One that comes twice finds the memory somebody else's: it changes nothing there. */
static void a_second_reply_changes_nothing(void **state)
{
	struct pair p;

	(void)state;
	open_bounce(&p, RXFER_EXPOSE_WRITE, N * EACH);
	assert_int_equal(expose_all(&p, RXFER_EXPOSE_WRITE), 0);
	assert_int_equal(rxfer_replied(p.e.client, p.x), 0);
	for (int i = 0; i < BYTES; i++)
		mine[i] = (uint8_t)(i % 251);
	memset(theirs, 77, BYTES);
	assert_int_equal(reach(&p, RXFER_WRITE, seg(&p, 0)), 0);
	assert_int_equal(rxfer_replied(p.e.client, p.x), 0);
	assert_int_equal(copied(&p), N * EACH);
	mine_is_as_it_was();
	close_bounce(&p);
	mine_is_as_it_was();
}

static void without_a_reply_nothing_is_copied_out(void **state)
{
	struct pair p;

	(void)state;
	open_bounce(&p, BOTH, N * EACH);
	assert_int_equal(expose_all(&p, BOTH), 0);
	memset(theirs, 77, BYTES);
	assert_int_equal(reach(&p, RXFER_WRITE, seg(&p, 0)), 0);
	close_bounce(&p);
	mine_is_as_it_was();
}

static void both_ways(void **state)
{
	struct pair p;

	(void)state;
	open_bounce(&p, BOTH, N * EACH);
	assert_int_equal(expose_all(&p, BOTH), 0);
	assert_int_equal(reach(&p, RXFER_READ, seg(&p, 0)), 0);
	assert_memory_equal(theirs + 1000, mine + 1000, EACH);
	assert_int_equal(rxfer_replied(p.e.client, p.x), 0); /* what was copied in */
	assert_int_equal(copied(&p), 2 * N * EACH);
	mine_is_as_it_was();
	close_bounce(&p);
}

/* What the I/O before was to get is no business of the next one's. */
static void an_io_after_another(void **state)
{
	struct rxfer_frag other = {mine + 4000, EACH};
	struct rxfer_seg first;
	struct pair p;

	(void)state;
	open_bounce(&p, BOTH, N * EACH);
	assert_int_equal(expose_all(&p, RXFER_EXPOSE_WRITE), 0);
	first = seg(&p, 0);
	assert_int_equal(rxfer_expose(p.e.client, p.x, &other, 1, RXFER_EXPOSE_READ), 0);
	assert_int_equal(seg(&p, 0).addr, first.addr); /* its buffer and key, for good */
	assert_int_equal(seg(&p, 0).key, first.key);
	assert_int_equal(seg(&p, 0).len, EACH);
	assert_int_equal(rxfer_replied(p.e.client, p.x), 0);
	assert_int_equal(copied(&p), EACH);
	mine_is_as_it_was();
	close_bounce(&p);
}

/* ---- What lies open ---- */

static void the_buffers_all_the_time(void **state)
{
	struct rxfer_seg at;
	struct pair p;

	(void)state;
	open_bounce(&p, RXFER_EXPOSE_READ, N * EACH);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, 4 * 4096);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).live, 1);
	assert_int_equal(rxfer_dev_counts(p.e.cdev)->mr_now, 1);
	assert_int_equal(rxfer_strategy_memory("bounce", &p.e.client_attr), 4 * 4096);
	lay_fragments();
	assert_int_equal(rxfer_exposure_cut(p.e.client, p.x, frag, N, RXFER_EXPOSE_READ), 0);
	at = seg(&p, 0);
	assert_int_equal(copied(&p), 0);
	assert_int_equal(reach(&p, RXFER_READ, at), 0); /* before any I/O */
	assert_int_equal(expose_all(&p, RXFER_EXPOSE_READ), 0);
	assert_memory_equal(&at, &p.x->seg[0], sizeof(at));
	assert_int_equal(rxfer_replied(p.e.client, p.x), 0);
	assert_int_equal(rxfer_revoke(p.e.client, p.x), -EOPNOTSUPP);
	engine_said("its buffers lie open all the time");
	assert_int_equal(reach(&p, RXFER_READ, at), 0); /* and after it */
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, 4 * 4096);
	assert_int_equal(rxfer_conn_exposed(p.e.client).live, 0);
	close_bounce(&p);
}

static void peer_cannot(enum rxfer_opcode op, unsigned int rights, uint64_t addr)
{
	struct rxfer_seg at;
	struct pair p;

	open_bounce(&p, rights, N * EACH);
	assert_int_equal(expose_all(&p, rights), 0);
	at = seg(&p, 0);
	if (addr)
		at.addr = addr;
	assert_int_equal(reach(&p, op, at), -EIO);
	mine_is_as_it_was();
	close_bounce(&p);
}

static void never_the_memory_of_an_io(void **state)
{
	(void)state;
	peer_cannot(RXFER_READ, BOTH, (uintptr_t)mine + 1000);
	peer_cannot(RXFER_WRITE, BOTH, (uintptr_t)mine + 1000);
	peer_cannot(RXFER_WRITE, RXFER_EXPOSE_READ, 0);
	peer_cannot(RXFER_READ, RXFER_EXPOSE_WRITE, 0);
}

/* ---- Buffers ---- */

static void each_exposure_has_one(void **state)
{
	struct rxfer_exposure *x[4], *one_more;
	struct rxfer_frag one = {mine, N * EACH};
	struct pair p;

	(void)state;
	open_bounce(&p, RXFER_EXPOSE_WRITE, N * EACH);
	x[0] = p.x;
	for (int i = 1; i < 4; i++)
		assert_int_equal(rxfer_exposure_new(p.e.client, FRAGS, &x[i]), 0);
	assert_int_equal(rxfer_exposure_new(p.e.client, FRAGS, &one_more), -ENOBUFS);
	engine_said("its connection has 4");
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t n;

		one.addr = mine + i * N * EACH;
		assert_int_equal(rxfer_expose(p.e.client, x[i], &one, 1, RXFER_EXPOSE_WRITE), 0);
		memset(theirs, (int)(100 + i), BYTES);
		assert_int_equal(reach(&p, RXFER_WRITE, rxfer_exposure_segs(x[i], &n)[0]), 0);
	}
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(rxfer_replied(p.e.client, x[i]), 0);
		for (uint32_t k = 0; k < N * EACH; k++)
			assert_int_equal(mine[i * N * EACH + k], 100 + i);
	}
	rxfer_exposure_free(p.e.client, x[2]); /* its buffer is for another one */
	assert_int_equal(rxfer_exposure_new(p.e.client, FRAGS, &one_more), 0);
	assert_int_equal(rxfer_expose(p.e.client, one_more, &one, 1, RXFER_EXPOSE_WRITE), 0);
	close_bounce(&p);
}

static void refused(struct pair *p, struct rxfer_frag one, unsigned int rights, int want,
		    const char *words)
{
	assert_int_equal(rxfer_expose(p->e.client, p->x, &one, 1, rights), want);
	engine_said(words);
	assert_int_equal(nseg(p), 0);
	assert_int_equal(copied(p), 0);
	assert_int_equal(rxfer_replied(p->e.client, p->x), 0);
	mine_is_as_it_was();
}

static void wrong_calls_are_refused(void **state)
{
	static uint8_t elsewhere[8];
	struct rxfer_mem *local;
	struct pair p;

	(void)state;
	open_bounce(&p, RXFER_EXPOSE_WRITE, N * EACH);
	assert_int_equal(rxfer_mem_add(p.e.cdev, elsewhere, 4, RXFER_LOCAL, &local), 0);
	refused(&p, (struct rxfer_frag){elsewhere, 8}, RXFER_EXPOSE_WRITE, -EFAULT,
		"rxfer_mem_add");
	refused(&p, (struct rxfer_frag){elsewhere, 4}, RXFER_EXPOSE_WRITE, -EACCES,
		"RXFER_EXPOSE_WRITE");
	refused(&p, (struct rxfer_frag){mine, 4}, RXFER_EXPOSE_READ, -EACCES, "whose buffers have");
	refused(&p, (struct rxfer_frag){mine, 0}, RXFER_EXPOSE_WRITE, -EINVAL, "no bytes");
	refused(&p, (struct rxfer_frag){mine, N * EACH + 1}, RXFER_EXPOSE_WRITE, -EMSGSIZE,
		"an I/O of 301 bytes");
	refused(&p, (struct rxfer_frag){mine, 4}, 0, -EINVAL, "rights 0");
	close_bounce(&p);
	open_bounce(&p, 0, 0);
	assert_int_equal(rxfer_exposure_new(p.e.client, FRAGS, &p.x), -ENOBUFS);
	engine_said("its connection has 0");
	close_bounce(&p);
}

/* ---- What a server's run takes of --max-memory ---- */

static uint64_t need_of(const char *peer_strategy, uint64_t op, uint64_t threshold)
{
	struct need need = {0};
	struct layout layout;
	struct cfg cfg;

	cfg_init(&cfg);
	cfg.mode = MODE_RPC;
	cfg.op = op;
	cfg.size = 5000;
	cfg.depth = 3;
	cfg.qps = 2;
	cfg.inline_threshold = threshold;
	strcpy(cfg.peer_strategy, peer_strategy);
	layout_make(&cfg, &layout);
	rpc_server_need(&cfg, &layout, &need);
	assert_int_equal(need.all, need.plain);
	return need.all;
}

static void a_servers_buffers_are_counted(void **state)
{
	uint64_t buffers = 2 * (4 * 3 + 4) * 8192;

	(void)state;
	for (int op = OP_READ; op <= OP_WRITE; op++)
		assert_int_equal(need_of("bounce", op, 0), need_of("global", op, 0) + buffers);
	assert_int_equal(need_of("bounce", OP_SEND, 0), need_of("global", OP_SEND, 0));
	assert_int_equal(need_of("bounce", OP_WRITE, 5000), need_of("global", OP_WRITE, 5000));
}

/* ---- What the ends of a run agree on ---- */

static void agreed(const char *strategy, const char *peer_strategy, uint32_t segs, uint32_t wrs)
{
	struct rpc_plan plan;
	struct cfg cfg;

	cfg_init(&cfg);
	cfg.mode = MODE_RPC;
	cfg.frags = 16;
	strcpy(cfg.strategy, strategy);
	strcpy(cfg.peer_strategy, peer_strategy);
	rpc_plan_make(&cfg, &plan);
	assert_int_equal(plan.limits.segs, segs);
	assert_int_equal(plan.runs, segs);
	assert_int_equal(plan.wrs, wrs);
}

static void one_segment_and_one_wr_for_it(void **state)
{
	(void)state;
	agreed("global", "global", 16, 16);
	agreed("global", "bounce", 16, 16);
	agreed("bounce", "global", 1, 16);
	agreed("bounce", "bounce", 1, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_peer_reads_what_was_there),
		cmocka_unit_test(what_it_wrote_is_there_at_its_reply),
		cmocka_unit_test(a_second_reply_changes_nothing),
		cmocka_unit_test(without_a_reply_nothing_is_copied_out),
		cmocka_unit_test(both_ways),
		cmocka_unit_test(an_io_after_another),
		cmocka_unit_test(the_buffers_all_the_time),
		cmocka_unit_test(never_the_memory_of_an_io),
		cmocka_unit_test(each_exposure_has_one),
		cmocka_unit_test(wrong_calls_are_refused),
		cmocka_unit_test(a_servers_buffers_are_counted),
		cmocka_unit_test(one_segment_and_one_wr_for_it),
	};

	return cmocka_run_group_tests_name("unit_bounce_expose", tests, NULL, NULL);
}
