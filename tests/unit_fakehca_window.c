/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The double's memory windows: what a grant opens and what not, their life, and who has none. */
#include "window_fixture.h"

/* ---- Grants ---- */

static void a_grant_and_its_end(void **state)
{
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	assert_int_equal(mw->type, IBV_MW_TYPE_2);
	assert_ptr_equal(mw->pd, e.b.pd);
	do_bind(&e.b, mw, READ | WRITE);
	memset(e.a.buf, 7, LEN);
	accesses(&e, IBV_WR_RDMA_WRITE, AT, LEN, mw->rkey);
	assert_int_equal(e.b.buf[AT - 1], 0);
	assert_int_equal(e.b.buf[AT], 7);
	assert_int_equal(e.b.buf[AT + LEN - 1], 7);
	assert_int_equal(e.b.buf[AT + LEN], 0);
	e.b.buf[AT] = 8;
	accesses(&e, IBV_WR_RDMA_READ, AT, LEN, mw->rkey);
	assert_int_equal(e.a.buf[0], 8);
	do_inv(&e.b, mw->rkey);
	memset(e.a.buf, 9, LEN);
	denied(&e, IBV_WR_RDMA_WRITE, AT, LEN, mw->rkey, "opens no window");
	assert_int_equal(e.b.buf[AT], 8);
	assert_int_equal(fake_stats()->binds, 1);
	assert_int_equal(fake_stats()->invalidates, 1);
	assert_int_equal(fake_stats()->bytes_written, LEN);
	assert_int_equal(fake_stats()->bytes_read, LEN);
	assert_int_equal(fake_stats()->sqes, 5);
	close_ends(&e, mw, 0);
	assert_int_equal(fake_stats()->alloc_mw, 1);
	assert_int_equal(fake_stats()->dealloc_mw, 1);
}

static void a_key_after_the_other(void **state)
{
	struct ibv_mw *mw;
	struct ends e;
	uint32_t old;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	old = mw->rkey;
	do_inv(&e.b, old);
	do_bind(&e.b, mw, WRITE);
	assert_int_equal(old >> 8, mw->rkey >> 8);
	accesses(&e, IBV_WR_RDMA_WRITE, AT, LEN, mw->rkey);
	denied(&e, IBV_WR_RDMA_WRITE, AT, LEN, old, "opens no window");
	close_ends(&e, mw, 0);
}

/* That is all that 8 bits can do: the first key opens what is there now. */
static void keys_come_again_after_256_binds(void **state)
{
	struct ibv_mw *mw;
	struct ends e;
	uint32_t first;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	first = mw->rkey;
	for (int i = 0; i < 256; i++) {
		do_inv(&e.b, mw->rkey);
		do_bind(&e.b, mw, WRITE);
		assert_int_equal(mw->rkey == first, i == 255);
	}
	accesses(&e, IBV_WR_RDMA_WRITE, AT, LEN, first);
	assert_int_equal(fake_stats()->binds, 257);
	assert_int_equal(fake_stats()->invalidates, 256);
	close_ends(&e, mw, 0);
}

static void two_windows(void **state)
{
	struct ibv_mw *mw[2];
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw[0] = window(&e.b);
	mw[1] = window(&e.b);
	assert_int_not_equal(mw[0]->rkey >> 8, mw[1]->rkey >> 8);
	do_bind(&e.b, mw[0], WRITE);
	do_bind(&e.b, mw[1], READ);
	do_inv(&e.b, mw[0]->rkey);
	accesses(&e, IBV_WR_RDMA_READ, AT, LEN, mw[1]->rkey);
	denied(&e, IBV_WR_RDMA_WRITE, AT, LEN, mw[0]->rkey, "opens no window");
	assert_int_equal(ibv_dealloc_mw(mw[0]), 0);
	close_ends(&e, mw[1], 0);
}

/* Far more than there were slots for; a slot that is in use again has another key. */
static void many_windows(void **state)
{
	struct ibv_mw *mw[500];
	struct ends e;
	uint32_t old;

	(void)state;
	open_ends(&e, NULL);
	for (unsigned int i = 0; i < 500; i++)
		mw[i] = window(&e.b);
	do_bind(&e.b, mw[300], WRITE);
	old = mw[300]->rkey;
	accesses(&e, IBV_WR_RDMA_WRITE, AT, LEN, old);
	for (unsigned int i = 0; i < 500; i++)
		assert_int_equal(ibv_dealloc_mw(mw[i]), 0);
	for (unsigned int i = 0; i < 500; i++) {
		mw[i] = window(&e.b);
		do_bind(&e.b, mw[i], WRITE);
		assert_int_not_equal(mw[i]->rkey, old);
	}
	denied(&e, IBV_WR_RDMA_WRITE, AT, LEN, old, "opens no window");
	for (unsigned int i = 0; i < 500; i++)
		assert_int_equal(ibv_dealloc_mw(mw[i]), 0);
	ends_close(&e, 0);
}

/* The key may go out in a message behind the BIND, before that has completed. */
static void a_message_behind_a_bind(void **state)
{
	struct ibv_sge sge;
	struct ibv_send_wr send = {.wr_id = 11, .opcode = IBV_WR_SEND, .num_sge = 1}, wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	fake_live()->sq_delay = 100;
	mw = window(&e.b);
	assert_int_equal(end_recv(&e.a, 4, 8192, 8), 0);
	sge = (struct ibv_sge){(uintptr_t)e.b.buf, 8, e.b.mr->lkey};
	send.sg_list = &sge;
	wr = bind_wr(&e.b, mw, WRITE);
	wr.next = &send;
	assert_int_equal(post(&e.b, &wr), 0);
	assert_int_equal(fake_stats()->binds, 0);
	fake_step();
	assert_int_equal(fake_stats()->binds, 1);
	fake_step();
	end_expect(&e.a, 4, IBV_WC_SUCCESS);
	end_expect_nothing(&e.b);
	accesses(&e, IBV_WR_RDMA_WRITE, AT, LEN, wr.bind_mw.rkey);
	end_expect(&e.b, 10, IBV_WC_SUCCESS);
	close_ends(&e, mw, 0);
}

/* ---- What a grant does not open ---- */

static void one_byte_too_many(uint64_t at, uint32_t len)
{
	struct ibv_mw *mw;
	struct ends e;

	open_ends(&e, NULL);
	mw = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	denied(&e, IBV_WR_RDMA_WRITE, at, len, mw->rkey, "outside");
	close_ends(&e, mw, 0);
}

/* A piece that is longer than all of the window. */
static void more_than_there_is(void)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	open_ends(&e, NULL);
	mw = window(&e.b);
	wr = bind_wr(&e.b, mw, WRITE);
	wr.bind_mw.bind_info.length = 8;
	done(&e.b, &wr, IBV_WC_BIND_MW);
	accesses(&e, IBV_WR_RDMA_WRITE, AT, 8, wr.bind_mw.rkey);
	denied(&e, IBV_WR_RDMA_WRITE, AT, 16, wr.bind_mw.rkey, "outside");
	close_ends(&e, mw, 0);
}

static void bounds(void **state)
{
	(void)state;
	more_than_there_is();
	one_byte_too_many(AT - 1, 1);
	one_byte_too_many(AT - 1, 2);
	one_byte_too_many(AT + LEN, 1);
	one_byte_too_many(AT + LEN - 1, 2);
	one_byte_too_many(AT, LEN + 1);
}

static void right_missing(unsigned int granted, enum ibv_wr_opcode op)
{
	struct ibv_mw *mw;
	struct ends e;

	open_ends(&e, NULL);
	memset(e.a.buf, 1, 64);
	mw = window(&e.b);
	do_bind(&e.b, mw, granted);
	denied(&e, op, AT, 64, mw->rkey, "grants");
	assert_int_equal(e.b.buf[AT], 0);
	assert_int_equal(e.a.buf[0], 1);
	close_ends(&e, mw, 0);
}

static void rights(void **state)
{
	(void)state;
	right_missing(READ, IBV_WR_RDMA_WRITE);
	right_missing(WRITE, IBV_WR_RDMA_READ);
	right_missing(0, IBV_WR_RDMA_READ);
}

static void the_regions_own_key_stays_shut(void **state)
{
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	do_bind(&e.b, mw, READ | WRITE);
	denied(&e, IBV_WR_RDMA_WRITE, AT, 64, e.b.mr->rkey, "grants");
	close_ends(&e, mw, 0);
}

static void a_window_that_is_not_bound(void **state)
{
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	denied(&e, IBV_WR_RDMA_READ, AT, 64, mw->rkey, "opens no window");
	close_ends(&e, mw, 0);
}

/* The same memory and the same PD: what differs is the QP. */
static void the_peer_of_another_qp(void **state)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 5, .opcode = IBV_WR_RDMA_WRITE, .num_sge = 1};
	struct ibv_mw *mw;
	struct more m;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	open_more(&e, &m);
	mw = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	sge = (struct ibv_sge){(uintptr_t)m.c.buf, 64, m.c.mr->lkey};
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr = (uintptr_t)e.b.buf + AT;
	wr.wr.rdma.rkey = mw->rkey;
	assert_int_equal(post(&m.c, &wr), 0);
	fake_run();
	ends_refused("of another QP");
	end_expect(&m.c, 5, IBV_WC_REM_ACCESS_ERR);
	accesses(&e, IBV_WR_RDMA_WRITE, AT, 64, mw->rkey); /* whose it is has it still */
	close_more(&m);
	close_ends(&e, mw, 0);
}

/* ---- Life ---- */

static void deregistering_under_a_window(void **state)
{
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	assert_int_equal(ibv_dereg_mr(e.b.mr), EBUSY);
	ends_violated("1 windows or lists are bound to the region");
	assert_int_equal(fake_stats()->dereg_mr, 0);
	accesses(&e, IBV_WR_RDMA_WRITE, AT, LEN, mw->rkey); /* all is as it was */
	do_inv(&e.b, mw->rkey);
	assert_int_equal(ibv_dereg_mr(e.b.mr), 0);
	e.b.mr = NULL;
	close_ends(&e, mw, 1);
}

/* A BIND that has not been executed names it, too. */
static void deregistering_under_a_bind(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	wr = bind_wr(&e.b, mw, WRITE);
	assert_int_equal(post(&e.b, &wr), 0);
	assert_int_equal(ibv_dereg_mr(e.b.mr), 0);
	e.b.mr = NULL;
	ends_violated("1 WRs that are not proven done");
	fake_run();
	end_expect(&e.b, 10, IBV_WC_MW_BIND_ERR);
	close_ends(&e, mw, 1);
}

/* That the peer used the key proves that the BIND is done, though its completion is not there. */
static void deregistering_after_the_peers_revoke(void **state)
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
	send_with_inv(&e, wr.bind_mw.rkey);
	end_expect(&e.b, 3, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(e.b.mr), 0);
	e.b.mr = NULL;
	close_ends(&e, mw, 0);
}

static void a_pd_under_a_window(void **state)
{
	struct ibv_pd *pd;
	struct ibv_mw *mw;
	struct ends e;
	char text[128];

	(void)state;
	open_ends(&e, NULL);
	pd = ibv_alloc_pd(e.devices[0]);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	ends_violated("1 regions, windows or QPs");
	fake_leaks(text, sizeof(text));
	assert_non_null(strstr(text, "1 memory windows"));
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	ends_close(&e, 1);
}

static void deallocating_a_grant_ends_it(void **state)
{
	struct ibv_mw *mw;
	struct ends e;
	uint32_t key;

	(void)state;
	open_ends(&e, NULL);
	mw = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	key = mw->rkey;
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	denied(&e, IBV_WR_RDMA_WRITE, AT, 64, key, "opens no window");
	assert_int_equal(ibv_dereg_mr(e.b.mr), 0);
	e.b.mr = NULL;
	assert_int_equal(fake_stats()->invalidates, 0);
	assert_int_equal(fake_stats()->dealloc_mw, 1);
	ends_close(&e, 0);
}

/* Destroying the QP frees what was bound to it, and nothing else: another QP may bind it then. */
static void the_qp_goes_first(void **state)
{
	struct ibv_mw *mw, *other;
	struct more m;
	struct ends e;

	(void)state;
	open_ends(&e, NULL);
	open_more(&e, &m);
	mw = window(&e.b);
	other = window(&e.b);
	do_bind(&e.b, mw, WRITE);
	do_bind(&m.d, other, WRITE);
	rdma_destroy_qp(e.b.id);
	do_bind(&m.d, mw, WRITE);
	do_inv(&m.d, mw->rkey);
	assert_int_equal(ibv_dereg_mr(e.b.mr), EBUSY); /* the other one */
	close_more(&m);
	assert_int_equal(ibv_dereg_mr(e.b.mr), 0);
	e.b.mr = NULL;
	assert_int_equal(ibv_dealloc_mw(other), 0);
	close_ends(&e, mw, 1);
}

/* ---- What a device has ---- */

static void windows_of(const struct fake_device *device, unsigned int flags, int max)
{
	struct ibv_device_attr attr;
	struct ibv_context **devices;
	struct fake_config config = ends_config();
	int n;

	config.device[0] = *device;
	fake_start(&config);
	devices = rdma_get_devices(&n);
	assert_int_equal(ibv_query_device(devices[0], &attr), 0);
	assert_int_equal(attr.device_cap_flags, flags);
	assert_int_equal(attr.max_mw, max);
	rdma_free_devices(devices);
}

static void devices_say_what_they_have(void **state)
{
	const unsigned int has = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	struct fake_device device;

	(void)state;
	fake_device_init(&device, 0);
	windows_of(&device, has, 65536);
	device.max_mw = 3;
	windows_of(&device, has, 3);
	device.iwarp = true;
	windows_of(&device, 0, 0);
	device.iwarp = false;
	device.max_mw = 0;
	windows_of(&device, 0, 0);
}

/* Without windows a device takes none of the WRs that need one; a message that revokes it sends. */
static void has_none(bool iwarp)
{
	struct fake_config config = ends_config();
	struct ibv_mw mw = {0};
	struct ibv_send_wr wr;
	struct ends e;

	config.device[0].iwarp = iwarp;
	config.device[0].max_mw = iwarp ? 5 : 0;
	open_ends(&e, &config);
	errno = 0;
	assert_null(ibv_alloc_mw(e.a.pd, IBV_MW_TYPE_2));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(ibv_alloc_mw(e.a.pd, IBV_MW_TYPE_1));
	wr = bind_wr(&e.a, &mw, READ);
	assert_int_equal(post(&e.a, &wr), EINVAL);
	ends_refused("no windows");
	wr = inv_wr(1);
	assert_int_equal(post(&e.a, &wr), EINVAL);
	ends_refused("no windows");
	send_with_inv_fails(&e, 1, "is no window's");
	assert_int_equal(fake_stats()->alloc_mw, 0);
	ends_close(&e, 0);
}

static void devices_without(void **state)
{
	(void)state;
	has_none(true);
	has_none(false);
}

static void allocations_that_fail(void **state)
{
	struct fake_config config = ends_config();
	struct ibv_mw *mw[2];
	struct ends e;

	(void)state;
	config.device[0].max_mw = 2;
	open_ends(&e, &config);
	assert_null(ibv_alloc_mw(e.b.pd, IBV_MW_TYPE_1));
	assert_int_equal(errno, EINVAL);
	mw[0] = window(&e.b);
	fake_live()->fail_alloc_mw = (struct fake_fault){1, EFAULT};
	assert_null(ibv_alloc_mw(e.b.pd, IBV_MW_TYPE_2));
	assert_int_equal(errno, EFAULT);
	mw[1] = window(&e.b);
	assert_null(ibv_alloc_mw(e.b.pd, IBV_MW_TYPE_2));
	assert_int_equal(errno, ENOMEM);
	ends_refused("2 windows of 2");
	fake_live()->fail_dealloc_mw = (struct fake_fault){1, EIO};
	assert_int_equal(ibv_dealloc_mw(mw[0]), EIO);
	assert_int_equal(ibv_dealloc_mw(mw[0]), 0);
	assert_int_equal(fake_stats()->alloc_mw, 2);
	assert_int_equal(fake_stats()->dealloc_mw, 1);
	close_ends(&e, mw[1], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_grant_and_its_end),
		cmocka_unit_test(a_key_after_the_other),
		cmocka_unit_test(keys_come_again_after_256_binds),
		cmocka_unit_test(two_windows),
		cmocka_unit_test(many_windows),
		cmocka_unit_test(a_message_behind_a_bind),
		cmocka_unit_test(bounds),
		cmocka_unit_test(rights),
		cmocka_unit_test(the_regions_own_key_stays_shut),
		cmocka_unit_test(a_window_that_is_not_bound),
		cmocka_unit_test(the_peer_of_another_qp),
		cmocka_unit_test(deregistering_under_a_window),
		cmocka_unit_test(deregistering_under_a_bind),
		cmocka_unit_test(deregistering_after_the_peers_revoke),
		cmocka_unit_test(a_pd_under_a_window),
		cmocka_unit_test(deallocating_a_grant_ends_it),
		cmocka_unit_test(the_qp_goes_first),
		cmocka_unit_test(devices_say_what_they_have),
		cmocka_unit_test(devices_without),
		cmocka_unit_test(allocations_that_fail),
	};

	return cmocka_run_group_tests_name("unit_fakehca_window", tests, NULL, NULL);
}
