/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The transfer engine on the test double, one thing at a time; random ones are in prop_xfer.c. */
#include <errno.h>
#include <string.h>
#include "fakehca/engine.h"

#define BYTES 8192

/* A client with declared memory, and a server with memory that may be read and written. */
struct pair {
	struct engine e;
	struct rxfer_mem *local, *target;
	uint8_t *mine, *theirs;
};

static uint8_t arena[2][BYTES];

static void open_pair(struct pair *p, const struct fake_config *config, const char *strategy,
		      unsigned int rights)
{
	memset(arena, 0, sizeof(arena));
	*p = (struct pair){.mine = arena[0], .theirs = arena[1]};
	engine_open(&p->e, config, strategy);
	assert_int_equal(rxfer_mem_add(p->e.cdev, p->mine, BYTES, rights, &p->local), 0);
	assert_int_equal(rxfer_mem_add(p->e.sdev, p->theirs, BYTES,
				       RXFER_PEER_READ | RXFER_PEER_WRITE, &p->target),
			 0);
}

static void connect_pair(struct pair *p, enum rxfer_opcode op, uint32_t frags, uint32_t slots,
			 uint32_t sq_depth, const char *signal)
{
	struct rxfer_shape shape = {op, 1024, frags, op == RXFER_SEND ? 0 : 2};

	engine_attr(&p->e, &shape, slots, sq_depth, signal);
	assert_int_equal(engine_connect(&p->e), 0);
	assert_int_equal(p->e.accepted, 0);
}

static struct rxfer_seg remote(const struct pair *p, uint64_t at, uint32_t len)
{
	return (struct rxfer_seg){(uintptr_t)p->theirs + at, len, rxfer_mem_rkey(p->target)};
}

static int write_at(struct pair *p, uint64_t at, uint32_t len, uint64_t id, unsigned int flags)
{
	struct rxfer_frag frag = {p->mine + at, len};
	struct rxfer_seg seg = remote(p, at, len);

	return rxfer_post_write(p->e.client, &frag, 1, &seg, 1, id, flags);
}

static int read_at(struct pair *p, uint64_t at, uint32_t len, uint64_t id, unsigned int flags)
{
	struct rxfer_frag frag = {p->mine + at, len};
	struct rxfer_seg seg = remote(p, at, len);

	return rxfer_post_read(p->e.client, &frag, 1, &seg, 1, id, flags);
}

static struct rxfer_done expect_done(struct pair *p, uint64_t id)
{
	struct rxfer_done done = {0};

	assert_int_equal(rxfer_poll(p->e.client, &done, 1), 1);
	assert_int_equal(done.id, id);
	return done;
}

static void expect_nothing(struct pair *p)
{
	struct rxfer_done done;

	assert_int_equal(rxfer_poll(p->e.client, &done, 1), 0);
}

/* ---- Posting ---- */

static void an_io_of_many_pieces_is_one_post(void **state)
{
	struct fake_config config = engine_config();
	struct rxfer_frag frag[3];
	struct rxfer_seg seg[2];
	struct pair p;

	(void)state;
	config.device[0].max_sge = 2;
	open_pair(&p, &config, "global", RXFER_LOCAL);
	connect_pair(&p, RXFER_WRITE, 3, 2, 0, "io");
	for (uint32_t i = 0; i < 3; i++) {
		frag[i] = (struct rxfer_frag){p.mine + i * 1000, 100};
		memset(frag[i].addr, (int)i + 1, 100);
	}
	seg[0] = remote(&p, 0, 250);
	seg[1] = remote(&p, 4000, 50);
	assert_int_equal(rxfer_post_write(p.e.client, frag, 3, seg, 2, 7, 0), 0);
	assert_int_equal(fake_stats()->posts, 1);
	assert_int_equal(fake_stats()->sqes, 3); /* two pieces, half a piece; half a piece */
	fake_run();
	assert_int_equal(expect_done(&p, 7).bytes, 300);
	assert_int_equal(p.theirs[249], 3);
	assert_int_equal(p.theirs[250], 0);
	assert_int_equal(p.theirs[4049], 3);
	assert_true(engine_idle(p.e.client));
	engine_close(&p.e);
}

static void no_slot_and_no_credit(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "global", RXFER_LOCAL);
	connect_pair(&p, RXFER_WRITE, 1, 2, 0, "all");
	assert_int_equal(write_at(&p, 0, 8, 1, 0), 0);
	assert_int_equal(write_at(&p, 8, 8, 2, 0), 0);
	assert_int_equal(write_at(&p, 16, 8, 3, 0), -EAGAIN); /* two slots */
	engine_close(&p.e);

	open_pair(&p, NULL, "global", RXFER_LOCAL);
	connect_pair(&p, RXFER_WRITE, 1, 9, 6, "all"); /* N is 2, one credit is the drain's */
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(write_at(&p, 8 * i, 8, i, 0), 0);
	assert_int_equal(write_at(&p, 32, 8, 4, 0), -EAGAIN);
	assert_int_equal(fake_stats()->sqes, 4);
	fake_run();
	expect_done(&p, 0);
	assert_int_equal(write_at(&p, 32, 8, 4, 0), 0);
	engine_close(&p.e);
}

static void wrong_lists_are_refused(void **state)
{
	struct rxfer_frag frag[2] = {{NULL, 8}, {NULL, 8}};
	struct rxfer_seg seg;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "global", RXFER_LOCAL);
	connect_pair(&p, RXFER_WRITE, 1, 2, 0, "all");
	seg = remote(&p, 0, 16);
	assert_int_equal(rxfer_post_write(p.e.client, frag, 2, &seg, 1, 1, 0), -EINVAL);
	engine_said("2 fragments");
	assert_int_equal(rxfer_post_write(p.e.client, frag, 1, &seg, 1, 1, 0), -EFAULT);
	engine_said("rxfer_mem_add");
	assert_true(engine_idle(p.e.client));
	assert_int_equal(fake_stats()->posts, 0);
	assert_int_equal(write_at(&p, 0, 8, 1, 0), 0); /* no harm done */
	engine_close(&p.e);
}

static void a_message_of_too_many_pieces_is_linearised(void **state)
{
	struct fake_config config = engine_config();
	struct rxfer_frag frag[3];
	static uint8_t recv[1024];
	struct rxfer_mem *mem;
	struct rxfer_done done;
	struct pair p;

	(void)state;
	config.device[0].max_sge = 2;
	open_pair(&p, &config, "per-io", RXFER_LOCAL);
	connect_pair(&p, RXFER_SEND, 3, 2, 0, "io");
	assert_int_equal(rxfer_mem_add(p.e.sdev, recv, sizeof(recv), RXFER_FIXED, &mem), 0);
	assert_int_equal(rxfer_post_recv(p.e.server, recv, sizeof(recv), 9), 0);
	for (uint32_t i = 0; i < 3; i++) {
		frag[i] = (struct rxfer_frag){p.mine + i * 1000, 10};
		memset(frag[i].addr, (int)i + 1, 10);
	}
	assert_int_equal(rxfer_post_send(p.e.client, frag, 3, 1, 0), 0);
	memset(p.mine, 0xff, BYTES); /* it was copied: the owner may go on at once */
	fake_run();
	assert_int_equal(expect_done(&p, 1).bytes, 30);
	assert_int_equal(rxfer_conn_counts(p.e.client)->copied_bytes, 30);
	assert_int_equal(rxfer_poll(p.e.server, &done, 1), 1);
	assert_int_equal(done.op, RXFER_RECV);
	assert_int_equal(done.bytes, 30);
	assert_int_equal(recv[29], 3);
	engine_close(&p.e);
}

static void recvs_only_in_fixed_memory(void **state)
{
	uint8_t elsewhere[8];
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "per-io", RXFER_LOCAL);
	connect_pair(&p, RXFER_WRITE, 1, 1, 0, "io");
	assert_int_equal(rxfer_post_recv(p.e.client, elsewhere, 8, 1), -EINVAL);
	assert_int_equal(rxfer_post_recv(p.e.client, p.mine, 8, 1), -EINVAL);
	engine_close(&p.e);
}

/* ---- Completing ---- */

/* A silent I/O is done by the completion of a later one, and says that it had none of its own. */
static void a_later_completion_proves(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "global", RXFER_LOCAL);
	connect_pair(&p, RXFER_WRITE, 1, 8, 0, "half");
	assert_int_equal(write_at(&p, 0, 8, 1, 0), 0);
	fake_run();
	expect_nothing(&p);
	assert_int_equal(write_at(&p, 8, 8, 2, RXFER_MUST_SIGNAL), 0);
	fake_run();
	assert_false(expect_done(&p, 1).own_cqe);
	assert_true(expect_done(&p, 2).own_cqe);
	expect_nothing(&p);
	assert_int_equal(p.e.client->counts.cqe, 1);
	engine_close(&p.e);
}

/* One completion proves three; whoever asks for more gets those, and the time is the third's,
 * though the next completion is there. */
static void a_burst_ends_with_its_completion(void **state)
{
	struct rxfer_done done[8];
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "global", RXFER_LOCAL);
	connect_pair(&p, RXFER_WRITE, 1, 6, 0, "half");
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(write_at(&p, 64 * i, 64, i, 0), 0);
	fake_run();
	assert_int_equal(rxfer_poll(p.e.client, done, 2), 2);
	assert_int_equal(done[1].id, 1);
	for (uint64_t last = 2; last < 6; last += 3) {
		int n = rxfer_poll(p.e.client, done, 8);

		assert_int_equal(n, last == 2 ? 1 : 3);
		assert_int_equal(done[n - 1].id, last);
		for (int i = 0; i < n; i++)
			assert_int_equal(done[i].own_cqe, i == n - 1);
	}
	assert_int_equal(rxfer_poll(p.e.client, done, 8), 0);
	assert_true(engine_idle(p.e.client));
	engine_close(&p.e);
}

/* The latest look-up is no excuse: what is gone is gone, and its last byte is its last. */
static void keys_are_looked_up_each_time(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "global", RXFER_LOCAL);
	connect_pair(&p, RXFER_WRITE, 1, 4, 0, "all");
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(write_at(&p, BYTES - 64, 64, i, 0), 0);
		assert_int_equal(write_at(&p, BYTES - 63, 64, 9, 0), -EFAULT);
		assert_int_equal(write_at(&p, 0ull - 64, 64, 9, 0), -EFAULT);
		fake_run();
		expect_done(&p, i);
		rxfer_mem_del(p.local);
		assert_int_equal(write_at(&p, 0, 64, 9, 0), -EFAULT);
		assert_int_equal(rxfer_mem_add(p.e.cdev, p.mine, BYTES, RXFER_LOCAL, &p.local), 0);
	}
	assert_true(engine_idle(p.e.client));
	engine_close(&p.e);
}

static void a_drain_proves_the_silent_tail(void **state)
{
	struct rxfer_seg none;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "per-io", RXFER_LOCAL);
	connect_pair(&p, RXFER_WRITE, 1, 8, 0, "half");
	none = remote(&p, 0, 0);
	assert_int_equal(rxfer_drain(p.e.client, &none), 0);
	assert_int_equal(fake_stats()->sqes, 0); /* nothing to prove */
	assert_int_equal(write_at(&p, 0, 8, 1, 0), 0);
	assert_int_equal(rxfer_drain(p.e.client, &none), 0);
	assert_int_equal(rxfer_drain(p.e.client, &none), 0); /* under way already */
	assert_int_equal(fake_stats()->sqes, 2);
	assert_false(rxfer_idle(p.e.client));
	fake_run();
	expect_done(&p, 1);
	assert_true(engine_idle(p.e.client));
	assert_int_equal(p.e.client->counts.sqe, 1);
	assert_int_equal(p.e.client->counts.aside_sqe, 1);
	assert_int_equal(p.e.client->counts.aside_cqe, 1);
	engine_close(&p.e);
}

/* Silent or not, the tail is followed by a READ, which comes back with what was written before it.
 */
static void a_drain_may_be_a_read(void **state)
{
	struct fake_config config = engine_config();
	struct rxfer_frag into;
	struct rxfer_mem *mem;
	struct rxfer_seg last;
	char byte = 0;
	struct pair p;

	(void)state;
	config.device[0].iwarp = true;
	config.read_lag = 20;
	open_pair(&p, &config, "per-io", RXFER_LOCAL);
	connect_pair(&p, RXFER_WRITE, 1, 8, 0, "all");
	assert_int_equal(rxfer_mem_add(p.e.cdev, &byte, 1, RXFER_FIXED | RXFER_READ_SINK, &mem), 0);
	into = (struct rxfer_frag){&byte, 1};
	last = remote(&p, 63, 1);
	memset(p.mine, 7, 64);
	assert_int_equal(write_at(&p, 0, 64, 1, 0), 0);
	assert_int_equal(rxfer_drain_read(p.e.client, &last, &(struct rxfer_frag){p.mine, 1}),
			 -EINVAL); /* memory that the strategy registers */
	assert_int_equal(rxfer_drain_read(p.e.client, &last, &into), 0);
	assert_int_equal(fake_stats()->sqes, 2);
	for (int i = 0; i < 15; i++)
		fake_step();
	expect_done(&p, 1);
	assert_false(rxfer_idle(p.e.client)); /* it may not have arrived yet */
	assert_int_equal(byte, 0);
	fake_run();
	expect_nothing(&p); /* but that it is back */
	assert_true(engine_idle(p.e.client));
	assert_int_equal(byte, 7);
	assert_int_equal(p.e.client->counts.sqe, 1);
	assert_int_equal(p.e.client->counts.aside_sqe, 1);
	assert_int_equal(p.e.client->counts.aside_cqe, 1);
	rxfer_mem_del(mem);
	engine_close(&p.e);
}

/*
 * A READ aside and a WRITE behind it, on a device that is slow to answer READs; some steps of it.
 * Over iWARP a WRITE may be reported before a READ that came first.
 */
static void read_and_write(struct pair *p, bool iwarp)
{
	struct fake_config config = engine_config();

	config.device[0].iwarp = iwarp;
	config.early_sends = iwarp;
	config.read_lag = 50;
	open_pair(p, &config, "global", RXFER_FIXED | RXFER_READ_SINK);
	connect_pair(p, RXFER_WRITE, 1, 4, 0, "all");
	memset(p->theirs, 5, 64);
	p->mine[100] = 6;
	assert_int_equal(read_at(p, 0, 64, 1, RXFER_ASIDE), 0);
	assert_int_equal(write_at(p, 100, 8, 2, 0), 0);
	for (int i = 0; i < 20; i++) {
		fake_step();
		expect_nothing(p);
	}
}

static void expect_both(struct pair *p)
{
	fake_run();
	assert_int_equal(p->theirs[100], 6);
	expect_done(p, 1);
	assert_int_equal(p->mine[63], 5);
	expect_done(p, 2);
	assert_int_equal(p->e.client->counts.aside_posts, 1);
	assert_int_equal(p->e.client->counts.posts, 1);
	assert_true(engine_idle(p->e.client));
	engine_close(&p->e);
}

static void over_iwarp_what_follows_a_read_is_fenced(void **state)
{
	struct pair p;

	(void)state;
	read_and_write(&p, true);
	assert_int_equal(p.theirs[100], 0);
	expect_both(&p);
}

/* A READ into memory with these @rights: how it ends, and how much lies open before and in it. */
static int read_into(const char *strategy, unsigned int rights, bool iwarp, uint64_t before,
		     uint64_t meanwhile)
{
	struct fake_config config = engine_config();
	struct rxfer_done done;
	struct pair p;
	int rc;

	config.device[0].iwarp = iwarp;
	open_pair(&p, &config, strategy, rights);
	connect_pair(&p, RXFER_READ, 1, 4, 0, "all");
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, before);
	assert_int_equal(read_at(&p, 0, 64, 1, 0), 0);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, meanwhile);
	fake_run();
	rc = rxfer_poll(p.e.client, &done, 1);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, before);
	engine_close(&p.e);
	return rc;
}

static void over_iwarp_a_sink_must_be_declared(void **state)
{
	(void)state;
	assert_int_equal(read_into("global", RXFER_LOCAL, true, 0, 0), -EIO);
	assert_int_equal(read_into("global", RXFER_READ_SINK, true, BYTES, BYTES), 1);
	assert_int_equal(read_into("global", RXFER_LOCAL, false, 0, 0), 1);
	assert_int_equal(read_into("global", RXFER_READ_SINK, false, 0, 0), 1);
	assert_int_equal(read_into("per-io", RXFER_READ_SINK, true, 0, 64), 1);
	assert_int_equal(read_into("per-io", RXFER_READ_SINK, false, 0, 0), 1);
}

/* A queue pair of rxe's with fences may stand still for good after a loss: see poll.c. */
static void elsewhere_nothing_is_fenced(void **state)
{
	struct pair p;

	(void)state;
	read_and_write(&p, false);
	assert_int_equal(p.theirs[100], 6);
	expect_both(&p);
}

static void counts_begin_anew(void **state)
{
	struct rxfer_conn_info info;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "global", RXFER_LOCAL);
	connect_pair(&p, RXFER_WRITE, 1, 4, 0, "all");
	for (uint64_t i = 0; i < 3; i++)
		write_at(&p, 0, 8, i, 0);
	fake_run();
	for (uint64_t i = 0; i < 3; i++)
		expect_done(&p, i);
	rxfer_conn_info(p.e.client, &info);
	assert_int_equal(info.sq_peak, 3);
	rxfer_conn_restart(p.e.client);
	write_at(&p, 0, 8, 7, 0);
	fake_run();
	expect_done(&p, 7);
	rxfer_conn_info(p.e.client, &info);
	assert_int_equal(info.sq_peak, 1);
	assert_int_equal(rxfer_conn_counts(p.e.client)->sqe, 1);
	assert_int_equal(rxfer_conn_counts(p.e.client)->cqe, 1);
	engine_close(&p.e);
}

/* ---- Sleeping ---- */

static void sleep_sees_what_is_there(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "global", RXFER_LOCAL);
	connect_pair(&p, RXFER_WRITE, 1, 4, 0, "all");
	write_at(&p, 0, 8, 1, 0);
	fake_run();
	assert_int_equal(rxfer_sleep(p.e.cdev, &p.e.client, 1, -1, 60000), 0);
	expect_done(&p, 1);
	engine_close(&p.e);
}

/* Who asks for an event runs the device here, so the event is there before the second look. */
static void events_are_taken_and_acknowledged(void **state)
{
	struct fake_config config = engine_config();
	struct pair p;

	(void)state;
	config.auto_steps = 1;
	config.sq_delay = 5;
	open_pair(&p, &config, "global", RXFER_LOCAL);
	connect_pair(&p, RXFER_WRITE, 1, 4, 0, "all");
	for (unsigned int i = 0; i < 3; i++) {
		/* The CQ is asked, and not again before its event is taken: the next sleep ends by
		 * it. */
		assert_int_equal(p.e.client->cq_events, i);
		write_at(&p, 0, 8, i, 0);
		assert_int_equal(rxfer_sleep(p.e.cdev, &p.e.client, 1, -1, 60000), 0);
		expect_done(&p, i);
		assert_int_equal(p.e.client->cq_events, i);
		assert_int_equal(rxfer_sleep(p.e.cdev, &p.e.client, 1, -1, 60000), 0);
		assert_int_equal(p.e.client->cq_events, i + 1);
	}
	assert_int_equal(rxfer_sleep(p.e.cdev, &p.e.client, 1, -1, 1), 1); /* by the clock */
	assert_int_equal(p.e.client->cq_events, 3);
	engine_close(&p.e);
}

static void asking_for_an_event_may_fail(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "global", RXFER_LOCAL);
	connect_pair(&p, RXFER_WRITE, 1, 4, 0, "all");
	fake_live()->fail_notify = (struct fake_fault){1, EIO};
	assert_int_equal(rxfer_sleep(p.e.cdev, &p.e.client, 1, -1, 60000), -EIO);
	engine_said("ibv_req_notify_cq");
	engine_close(&p.e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_io_of_many_pieces_is_one_post),
		cmocka_unit_test(no_slot_and_no_credit),
		cmocka_unit_test(wrong_lists_are_refused),
		cmocka_unit_test(a_message_of_too_many_pieces_is_linearised),
		cmocka_unit_test(recvs_only_in_fixed_memory),
		cmocka_unit_test(a_later_completion_proves),
		cmocka_unit_test(a_burst_ends_with_its_completion),
		cmocka_unit_test(keys_are_looked_up_each_time),
		cmocka_unit_test(a_drain_proves_the_silent_tail),
		cmocka_unit_test(a_drain_may_be_a_read),
		cmocka_unit_test(over_iwarp_what_follows_a_read_is_fenced),
		cmocka_unit_test(over_iwarp_a_sink_must_be_declared),
		cmocka_unit_test(elsewhere_nothing_is_fenced),
		cmocka_unit_test(counts_begin_anew),
		cmocka_unit_test(sleep_sees_what_is_there),
		cmocka_unit_test(events_are_taken_and_acknowledged),
		cmocka_unit_test(asking_for_an_event_may_fail),
	};

	return cmocka_run_group_tests_name("unit_xfer", tests, NULL, NULL);
}
