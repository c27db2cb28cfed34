/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the transfer engine does when the device fails it: in the middle of a map, in the middle of
 * a post, at a WR, at a poll, or because its peer is gone. Each test ends with engine_close(), and
 * so with everything freed and nothing that the double would object to.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "fakehca/engine.h"

#define BYTES 8192
#define FRAGS 4

struct pair {
	struct engine e;
	struct rxfer_mem *local, *target;
	struct rxfer_frag frag[FRAGS]; /* with gaps between: a run each */
	struct rxfer_seg seg[2];
};

static uint8_t mine[BYTES], theirs[BYTES];

static void open_pair(struct pair *p, const struct fake_config *config, const char *strategy,
		      const char *signal)
{
	struct rxfer_shape shape = {RXFER_WRITE, FRAGS * 100, FRAGS, 2};

	*p = (struct pair){0};
	engine_open(&p->e, config, strategy);
	assert_int_equal(rxfer_mem_add(p->e.cdev, mine, BYTES, RXFER_LOCAL, &p->local), 0);
	assert_int_equal(rxfer_mem_add(p->e.sdev, theirs, BYTES, RXFER_PEER_READ | RXFER_PEER_WRITE,
				       &p->target),
			 0);
	engine_attr(&p->e, &shape, 4, 0, signal);
	assert_int_equal(engine_connect(&p->e), 0);
	for (uint32_t i = 0; i < FRAGS; i++)
		p->frag[i] = (struct rxfer_frag){mine + i * 1000, 100};
	for (uint32_t i = 0; i < 2; i++)
		p->seg[i] = (struct rxfer_seg){(uintptr_t)theirs + i * 1000, 200,
					       rxfer_mem_rkey(p->target)};
}

static int write_all(struct pair *p, uint64_t id)
{
	return rxfer_post_write(p->e.client, p->frag, FRAGS, p->seg, 2, id, 0);
}

static int read_all(struct pair *p, uint64_t id)
{
	return rxfer_post_read(p->e.client, p->frag, FRAGS, p->seg, 2, id, 0);
}

/* It is broken, for good, and says so each time in the words of the first failure. */
static void broken(struct pair *p, int err, const char *words)
{
	struct rxfer_done done;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(rxfer_poll(p->e.client, &done, 1), err);
		engine_said(words);
		rxfer_fail(EIO, "something else");
		assert_int_equal(write_all(p, 9), err);
		engine_said(words);
	}
	assert_int_equal(rxfer_post_recv(p->e.client, mine, 8, 1), err);
	engine_close(&p->e);
}

/* ---- Mapping ---- */

static void works(struct pair *p, uint64_t id)
{
	struct rxfer_done done;

	memset(mine, (int)id, BYTES);
	memset(theirs, 0, BYTES);
	assert_int_equal(write_all(p, id), 0);
	fake_run();
	assert_int_equal(rxfer_poll(p->e.client, &done, 1), 1);
	assert_int_equal(done.id, id);
	assert_int_equal(theirs[0], id);
	assert_int_equal(theirs[1199], id);
	assert_int_equal(theirs[1200], 0);
}

/* The @nth of the four registrations of an I/O fails. */
static void registration_fails(uint32_t nth)
{
	struct pair p;
	uint64_t posts;

	open_pair(&p, NULL, "per-io", "io");
	works(&p, 1);
	posts = fake_stats()->posts;
	fake_live()->fail_reg_mr = (struct fake_fault){nth, ENOSPC};
	assert_int_equal(write_all(&p, 2), -ENOSPC);
	engine_said("ibv_reg_mr");
	assert_int_equal(fake_stats()->posts, posts);
	assert_int_equal(rxfer_dev_counts(p.e.cdev)->mr_now, 0);
	assert_int_equal(rxfer_dev_counts(p.e.cdev)->pinned_now, 0);
	assert_int_equal(fake_stats()->reg_mr - fake_stats()->dereg_mr, 1); /* the target */
	assert_true(engine_idle(p.e.client));
	works(&p, 3); /* the connection is as good as before */
	engine_close(&p.e);
}

static void a_registration_fails_in_the_middle(void **state)
{
	(void)state;
	for (uint32_t nth = 1; nth <= FRAGS; nth++)
		registration_fails(nth);
}

static void more_regions_than_the_device_has(void **state)
{
	struct fake_config config = engine_config();
	struct pair p;

	(void)state;
	config.device[0].max_mr = 1 + FRAGS + 2;
	open_pair(&p, &config, "per-io", "io");
	assert_int_equal(write_all(&p, 1), 0);
	assert_int_equal(write_all(&p, 2), -ENOMEM);
	engine_said("regions of 7");
	fake_run();
	assert_int_equal(rxfer_poll(p.e.client, &(struct rxfer_done){0}, 1), 1);
	works(&p, 3);
	engine_close(&p.e);
}

static void a_deregistration_fails(void **state)
{
	char left[64];
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "per-io", "io");
	assert_int_equal(write_all(&p, 1), 0);
	fake_run();
	fake_live()->fail_dereg_mr = (struct fake_fault){2, EBUSY};
	assert_int_equal(rxfer_poll(p.e.client, &(struct rxfer_done){0}, 1), -EBUSY);
	engine_said("ibv_dereg_mr");
	assert_int_equal(rxfer_dev_counts(p.e.cdev)->mr_now, 1); /* stuck, and known to be */
	rxfer_conn_close(p.e.client);
	rxfer_conn_close(p.e.server);
	rxfer_listener_close(p.e.listener);
	rxfer_dev_close(p.e.cdev);
	rxfer_dev_close(p.e.sdev);
	fake_leaks(left, sizeof(left));
	assert_string_equal(left, "1 PDs, 1 memory regions");
	fake_start(&(struct fake_config){0});
}

/* ---- Posting ---- */

/* The device takes @take of an I/O's WRs. */
static void part_of_a_post(const char *strategy, uint32_t take, bool negative)
{
	struct pair p;
	uint32_t wrs;

	open_pair(&p, NULL, strategy, "io");
	works(&p, 1);
	wrs = p.e.client->need;
	wrs = wrs > 2 ? 4 : 2; /* a segment each, and a fragment each */
	fake_live()->negative_errno = negative;
	fake_live()->post_part.nth = 1;
	fake_live()->post_part.take = take;
	fake_live()->post_part.err = ENOSPC;
	assert_int_equal(write_all(&p, 2), take < wrs ? -ENOSPC : 0);
	if (take >= wrs) {
		engine_close(&p.e);
		return;
	}
	assert_int_equal(rxfer_sq_posted(&p.e.client->sq), fake_sq_posted(p.e.client->id->qp));
	assert_int_equal(p.e.client->counts.sqe, fake_stats()->sqes);
	if (!strcmp(strategy, "per-io"))
		assert_int_equal(rxfer_dev_counts(p.e.cdev)->mr_now, FRAGS); /* while the QP is */
	fake_run();
	broken(&p, -ENOSPC, "took");
}

static void a_post_is_taken_in_part(void **state)
{
	(void)state;
	for (uint32_t take = 0; take <= 4; take++) {
		part_of_a_post("global", take, false);
		part_of_a_post("multi-wr", take, false);
		part_of_a_post("per-io", take, false);
		part_of_a_post("per-io", take, true);
	}
}

static void a_drain_is_refused(void **state)
{
	struct rxfer_seg none;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "global", "half");
	none = (struct rxfer_seg){p.seg[0].addr, 0, p.seg[0].key};
	assert_int_equal(write_all(&p, 1), 0);
	fake_live()->fail_post_send = (struct fake_fault){1, ENOMEM};
	assert_int_equal(rxfer_drain(p.e.client, &none), -ENOMEM);
	broken(&p, -ENOMEM, "drain");
}

static void a_recv_is_refused(void **state)
{
	struct rxfer_mem *mem;
	uint8_t buf[64];
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "global", "half");
	assert_int_equal(rxfer_mem_add(p.e.cdev, buf, sizeof(buf), RXFER_FIXED, &mem), 0);
	assert_int_equal(rxfer_post_recv(p.e.client, buf, 64, 1), 0);
	assert_int_equal(rxfer_post_recv(p.e.client, buf, 64, 2), 0);
	assert_int_equal(rxfer_post_recv(p.e.client, buf, 64, 3), -ENOMEM);
	broken(&p, -ENOMEM, "ibv_post_recv");
}

/* ---- Completing ---- */

static void a_wr_fails(void **state)
{
	static const struct {
		enum ibv_wc_status status;
		int err;
		const char *words;
	} cases[] = {
		{IBV_WC_RETRY_EXC_ERR, ENOTCONN, "no longer answers"},
		{IBV_WC_REM_ACCESS_ERR, EIO, "not open to us"},
		{IBV_WC_LOC_PROT_ERR, EIO, "not registered"},
		{IBV_WC_WR_FLUSH_ERR, ENOTCONN, "closed the connection"},
		{IBV_WC_RNR_RETRY_EXC_ERR, EIO, "no RECV"},
		{IBV_WC_GENERAL_ERR, EIO, "status 21"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pair p;

		open_pair(&p, NULL, "per-io", "half");
		fake_live()->fail_wr = (struct fake_fault){2, (int)cases[i].status};
		assert_int_equal(write_all(&p, 1), 0);
		assert_int_equal(write_all(&p, 2), 0);
		fake_run();
		assert_int_equal(rxfer_poll(p.e.client, &(struct rxfer_done){0}, 1), -cases[i].err);
		engine_said("RDMA WRITE failed");
		broken(&p, -cases[i].err, cases[i].words);
	}
}

/* A silent one, behind others: the words are of its own I/O. */
static void a_silent_read_fails(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "global", "half");
	fake_live()->fail_wr = (struct fake_fault){3, IBV_WC_REM_OP_ERR};
	assert_int_equal(write_all(&p, 1), 0);
	assert_int_equal(read_all(&p, 2), 0);
	assert_int_equal(write_all(&p, 3), 0);
	fake_run();
	assert_int_equal(rxfer_poll(p.e.client, &(struct rxfer_done){0}, 1), -EIO);
	broken(&p, -EIO, "RDMA READ failed");
}

static void a_poll_fails(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "global", "half");
	fake_live()->fail_poll = (struct fake_fault){1, EIO};
	assert_int_equal(rxfer_poll(p.e.client, &(struct rxfer_done){0}, 1), -EIO);
	broken(&p, -EIO, "ibv_poll_cq");
}

/* ---- The peer ---- */

static void a_key_is_wrong(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "per-io", "half");
	p.seg[1].key++;
	assert_int_equal(write_all(&p, 1), 0);
	fake_run();
	assert_int_equal(rxfer_poll(p.e.client, &(struct rxfer_done){0}, 1), -EIO);
	broken(&p, -EIO, "remote access error");
}

static void the_peer_says_goodbye(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "per-io", "half");
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(write_all(&p, i), 0);
	fake_step();
	fake_disconnect(p.e.client->id->qp);
	assert_int_equal(rxfer_poll(p.e.client, &(struct rxfer_done){0}, 1), -ENOTCONN);
	broken(&p, -ENOTCONN, "closed the connection");
}

static void the_peer_closes(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "per-io", "half");
	rxfer_conn_close(p.e.server);
	p.e.server = NULL;
	assert_int_equal(write_all(&p, 1), 0);
	fake_run();
	assert_int_equal(rxfer_poll(p.e.client, &(struct rxfer_done){0}, 1), -ENOTCONN);
	broken(&p, -ENOTCONN, "no longer answers");
}

static void the_peer_falls_silent(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "multi-wr", "half");
	fake_unplug(p.e.client->id->qp);
	assert_int_equal(read_all(&p, 1), 0);
	fake_run();
	assert_int_equal(rxfer_poll(p.e.client, &(struct rxfer_done){0}, 1), -ENOTCONN);
	broken(&p, -ENOTCONN, "no longer answers");
}

static void closing_in_the_middle(void **state)
{
	static const char *const strategies[] = {"global", "multi-wr", "per-io"};

	(void)state;
	for (int i = 0; i < 3; i++) {
		for (uint32_t steps = 0; steps < 10; steps++) {
			struct pair p;

			open_pair(&p, NULL, strategies[i], "half");
			assert_int_equal(write_all(&p, 1), 0);
			assert_int_equal(read_all(&p, 2), 0);
			for (uint32_t n = 0; n < steps; n++)
				fake_step();
			engine_close(&p.e);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_registration_fails_in_the_middle),
		cmocka_unit_test(more_regions_than_the_device_has),
		cmocka_unit_test(a_deregistration_fails),
		cmocka_unit_test(a_post_is_taken_in_part),
		cmocka_unit_test(a_drain_is_refused),
		cmocka_unit_test(a_recv_is_refused),
		cmocka_unit_test(a_wr_fails),
		cmocka_unit_test(a_silent_read_fails),
		cmocka_unit_test(a_poll_fails),
		cmocka_unit_test(a_key_is_wrong),
		cmocka_unit_test(the_peer_says_goodbye),
		cmocka_unit_test(the_peer_closes),
		cmocka_unit_test(the_peer_falls_silent),
		cmocka_unit_test(closing_in_the_middle),
	};

	return cmocka_run_group_tests_name("unit_xfer_fail", tests, NULL, NULL);
}
