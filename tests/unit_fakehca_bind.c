/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The double's memory windows: binding, and each way in which that goes wrong. */
#include "window_fixture.h"

/* ---- BINDs that succeed ---- */

static void all_of_a_region(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	wr = bind_wr(&e.b, mw, READ | WRITE | ATOMIC);
	wr.bind_mw.bind_info.addr = (uintptr_t)e.b.buf;
	wr.bind_mw.bind_info.length = ENDS_BYTES;
	done(&e.b, &wr, IBV_WC_BIND_MW);
	accesses(&e, IBV_WR_RDMA_WRITE, 0, ENDS_BYTES, wr.bind_mw.rkey);
	close_ends(&e, mw, 0);
}

/* To be read, memory need not be writable. */
static void a_region_to_read_only(void **state)
{
	struct ibv_mr *mr;
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mr = ibv_reg_mr(e.b.pd, e.b.buf, ENDS_BYTES, BIND);
	mw = window(&e.b);
	wr = bind_wr(&e.b, mw, READ);
	wr.bind_mw.bind_info.mr = mr;
	done(&e.b, &wr, IBV_WC_BIND_MW);
	accesses(&e, IBV_WR_RDMA_READ, AT, LEN, wr.bind_mw.rkey);
	do_inv(&e.b, wr.bind_mw.rkey);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	close_ends(&e, mw, 0);
}

/* What the user does with his structs after the post is nobody's business. */
static void a_bind_is_as_it_was_posted(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	wr = bind_wr(&e.b, mw, WRITE);
	assert_int_equal(post(&e.b, &wr), 0);
	mw->rkey = wr.bind_mw.rkey;
	wr.bind_mw.bind_info.length = 0;
	assert_int_equal(fake_stats()->binds, 0);
	fake_run();
	assert_int_equal(end_expect(&e.b, 10, IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW);
	accesses(&e, IBV_WR_RDMA_WRITE, AT, LEN, mw->rkey);
	close_ends(&e, mw, 0);
}

/* Fill b's queue with binds and revokes that nobody hears of; the current key as the user goes. */
static void fill_silently(struct ends *e, struct ibv_mw *mw)
{
	for (int i = 0; i < 4; i++) {
		struct ibv_send_wr bind = bind_wr(&e->b, mw, WRITE), inv;

		bind.send_flags = 0;
		bind.next = &inv;
		inv = inv_wr(bind.bind_mw.rkey);
		inv.send_flags = 0;
		assert_int_equal(post(&e->b, &bind), 0);
		mw->rkey = bind.bind_mw.rkey;
	}
}

/* Silent ones keep their entries until a later completion is polled. */
static void each_takes_an_entry(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	fill_silently(&e, mw);
	assert_int_equal(fake_sq_posted(e.b.qp), 8);
	fake_run();
	end_expect_nothing(&e.b);
	assert_int_equal(fake_stats()->binds, 4);
	assert_int_equal(fake_stats()->invalidates, 4);
	assert_int_equal(fake_stats()->posts, 4);
	assert_int_equal(fake_stats()->sqes, 8);
	assert_int_equal(fake_sq_posted(e.b.qp), 8);
	wr = bind_wr(&e.b, mw, WRITE);
	assert_int_equal(post(&e.b, &wr), ENOMEM);
	wr = inv_wr(mw->rkey);
	assert_int_equal(post(&e.b, &wr), ENOMEM);
	close_ends(&e, mw, 0);
}

static void a_later_completion_returns_the_entries(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	wr = bind_wr(&e.b, mw, WRITE);
	wr.send_flags = 0;
	assert_int_equal(post(&e.b, &wr), 0);
	fake_run();
	end_expect_nothing(&e.b);
	assert_int_equal(fake_sq_posted(e.b.qp), 1);
	wr = inv_wr(wr.bind_mw.rkey);
	assert_int_equal(post(&e.b, &wr), 0);
	fake_run();
	assert_int_equal(fake_sq_posted(e.b.qp), 2);
	end_expect(&e.b, 20, IBV_WC_SUCCESS);
	end_expect_nothing(&e.b);
	assert_int_equal(fake_sq_posted(e.b.qp), 0);
	assert_int_equal(fake_stats()->sq_cqes, 1);
	close_ends(&e, mw, 0);
}

/* ---- BINDs that the driver refuses ---- */

static void refused(struct ends *e, struct ibv_send_wr *wr, const char *words)
{
	assert_int_equal(post(&e->b, wr), EINVAL);
	ends_refused(words);
	assert_int_equal(fake_sq_posted(e->b.qp), 0);
}

static void what_makes_no_sense_is_not_taken(void **state)
{
	struct ibv_send_wr wr, good;
	struct ibv_sge sge;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	good = bind_wr(&e.b, mw, WRITE);
	sge = (struct ibv_sge){(uintptr_t)e.b.buf, 8, e.b.mr->lkey};
	wr = good;
	wr.num_sge = 1;
	wr.sg_list = &sge;
	refused(&e, &wr, "1 SGEs");
	wr = good;
	wr.imm_data = 7;
	refused(&e, &wr, "imm_data 0x7");
	wr = good;
	wr.bind_mw.bind_info.mr = NULL;
	refused(&e, &wr, "without a window or a region");
	wr = good;
	wr.bind_mw.mw = NULL;
	refused(&e, &wr, "without a window or a region");
	wr = inv_wr(mw->rkey);
	wr.num_sge = 1;
	wr.sg_list = &sge;
	refused(&e, &wr, "a LOCAL_INV with 1 SGEs");
	assert_int_equal(fake_stats()->sqes, 0);
	done(&e.b, &good, IBV_WC_BIND_MW);
	close_ends(&e, mw, 0);
}

/* ---- BINDs that fail ---- */

/* Who forgets to keep mw->rkey binds once and no more. */
static void the_current_key_is_the_users_to_keep(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	wr = bind_wr(&e.b, mw, WRITE);
	done(&e.b, &wr, IBV_WC_BIND_MW);
	do_inv(&e.b, wr.bind_mw.rkey);
	wr = bind_wr(&e.b, mw, WRITE);
	wr.bind_mw.rkey = ibv_inc_rkey(wr.bind_mw.rkey);
	fails(&e, &wr, IBV_WC_MW_BIND_ERR, "the window's key is");
	assert_int_equal(fake_stats()->binds, 1);
	close_ends(&e, mw, 0);
}

static void it_is_bound_already(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	wr = bind_wr(&e.b, mw, WRITE);
	fails(&e, &wr, IBV_WC_MW_BIND_ERR, "which is bound");
	assert_int_equal(fake_stats()->binds, 1);
	assert_int_equal(ibv_dereg_mr(e.b.mr), EBUSY); /* as before */
	close_ends(&e, mw, 1);
}

/* struct broken - what is wrong with a BIND: @key is added to the new key, @addr and @len to the
 * range; @access: the window's rights; @region: the region's. */
static const struct broken {
	const char *words;
	uint32_t key;
	int64_t addr, len;
	unsigned int access;
	int region;
} broken[] = {
	{"to the key it has", UINT32_MAX, 0, 0, READ, LOCAL | BIND},
	{"to the key 0x", 0x100, 0, 0, READ, LOCAL | BIND},
	{"no bytes", 0, 0, -(int64_t)LEN, READ, LOCAL | BIND},
	{"outside", 0, -1 - (int64_t)AT, 0, READ, LOCAL | BIND},
	{"outside", 0, ENDS_BYTES - AT - LEN + 1, 0, READ, LOCAL | BIND},
	{"outside", 0, 0, ENDS_BYTES - AT - LEN + 1, READ, LOCAL | BIND},
	{"outside", 0, 0, -1 - (int64_t)LEN, READ, LOCAL | BIND}, /* 2^64 - 1 bytes */
	{"a BIND with rights", 0, 0, 0, READ | LOCAL, LOCAL | BIND},
	{"grants", 0, 0, 0, READ, LOCAL | READ | WRITE},
	{"grants", 0, 0, 0, WRITE, READ | BIND},
	{"grants", 0, 0, 0, ATOMIC, READ | BIND},
};

/* Each completes, in error, silent or not; the window and its key stay as they were. */
static void fails_broken(const struct broken *b, unsigned int flags)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	open_with(&e, NULL, b->region);
	mw = window(&e.b);
	wr = bind_wr(&e.b, mw, b->access);
	wr.send_flags = flags;
	wr.bind_mw.rkey += b->key;
	wr.bind_mw.bind_info.addr += (uint64_t)b->addr;
	wr.bind_mw.bind_info.length += (uint64_t)b->len;
	fails(&e, &wr, IBV_WC_MW_BIND_ERR, b->words);
	end_expect_nothing(&e.b);
	assert_int_equal(fake_stats()->binds, 0);
	assert_int_equal(fake_sq_posted(e.b.qp), 0);
	assert_int_equal(ibv_dereg_mr(e.b.mr), 0);
	e.b.mr = NULL;
	close_ends(&e, mw, 0);
}

static void broken_ones(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		fails_broken(&broken[i], SIGNAL);
		fails_broken(&broken[i], 0);
	}
}

static void a_window_of_another_pd(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.a);
	wr = bind_wr(&e.b, mw, READ);
	fails(&e, &wr, IBV_WC_MW_BIND_ERR, "a window of another PD");
	close_ends(&e, mw, 0);
}

static void a_region_of_another_pd(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	wr = bind_wr(&e.a, mw, READ);
	fails(&e, &wr, IBV_WC_MW_BIND_ERR, "another PD");
	close_ends(&e, mw, 0);
}

/* What is behind it flushes. */
static void the_queue_behind_it(void **state)
{
	struct ibv_send_wr wr, inv;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	wr = bind_wr(&e.b, mw, READ);
	wr.send_flags = 0;
	wr.bind_mw.bind_info.length = 0;
	inv = inv_wr(wr.bind_mw.rkey);
	inv.send_flags = 0;
	wr.next = &inv;
	fails(&e, &wr, IBV_WC_MW_BIND_ERR, "no bytes");
	end_expect(&e.b, 20, IBV_WC_WR_FLUSH_ERR);
	close_ends(&e, mw, 0);
}

/* All is right with these. */
static void binds_fail_when_told_to(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	fake_live()->fail_bind = 2;
	do_bind(&e.b, mw, READ);
	do_inv(&e.b, mw->rkey);
	wr = bind_wr(&e.b, mw, READ);
	fails(&e, &wr, IBV_WC_MW_BIND_ERR, "told to fail");
	assert_int_equal(fake_stats()->binds, 1);
	close_ends(&e, mw, 0);
	open_ends(&e, NULL);
	mw = window(&e.b);
	fake_live()->fail_wr = (struct fake_fault){1, IBV_WC_MW_BIND_ERR};
	wr = bind_wr(&e.b, mw, READ);
	wr.send_flags = 0;
	fails(&e, &wr, IBV_WC_MW_BIND_ERR, "told to fail");
	assert_int_equal(fake_stats()->binds, 0);
	close_ends(&e, mw, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_a_region),
		cmocka_unit_test(a_region_to_read_only),
		cmocka_unit_test(a_bind_is_as_it_was_posted),
		cmocka_unit_test(each_takes_an_entry),
		cmocka_unit_test(a_later_completion_returns_the_entries),
		cmocka_unit_test(what_makes_no_sense_is_not_taken),
		cmocka_unit_test(the_current_key_is_the_users_to_keep),
		cmocka_unit_test(it_is_bound_already),
		cmocka_unit_test(broken_ones),
		cmocka_unit_test(a_window_of_another_pd),
		cmocka_unit_test(a_region_of_another_pd),
		cmocka_unit_test(the_queue_behind_it),
		cmocka_unit_test(binds_fail_when_told_to),
	};

	return cmocka_run_group_tests_name("unit_fakehca_bind", tests, NULL, NULL);
}
