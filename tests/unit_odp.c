/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory on demand, as the engine has it: what a device must be able to, what is registered and
 * counted, what lies open, and which pages are asked for before an I/O.
 */
#include "expose_fixture.h"

/* ---- What a device must be able to ---- */

static void cannot(const struct fake_device *d, const char *strategy, const char *why)
{
	struct fake_config config = engine_config();
	struct rxfer_dev *dev;

	config.device[0] = *d;
	fake_start(&config);
	assert_int_equal(rxfer_dev_open("fake0", strategy, &dev), -EOPNOTSUPP);
	engine_said(why);
}

static void it_says_what_is_lacking(void **state)
{
	struct fake_device d;

	(void)state;
	fake_device_init(&d, 0);
	d.odp_implicit = false;
	cannot(&d, "odp-implicit", "no region over all of the address space");
	d.odp &= ~(uint32_t)IBV_ODP_SUPPORT_READ;
	cannot(&d, "odp", "not for a READ of a reliable connection (rc_odp_caps 0x7)");
	d.odp = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_READ;
	cannot(&d, "odp", "not for a WRITE ");
	cannot(&d, "odp-implicit", "not for a WRITE ");
	d.odp = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
	cannot(&d, "odp", "not for a SEND ");
	d.odp = 0;
	cannot(&d, "odp", "fake0 has no on-demand paging");
	fake_device_init(&d, 0);
	d.iwarp = true;
	cannot(&d, "odp", "fake0 has no on-demand paging");
}

/* RECVs are never in memory that goes by the strategy. */
static void it_takes_no_recv_on_demand(void **state)
{
	struct fake_config config = engine_config();

	(void)state;
	config.device[0].odp &= ~(uint32_t)IBV_ODP_SUPPORT_RECV;
	fake_start(&config);
	assert_int_equal(rxfer_dev_try("fake0", "odp"), 0);
	assert_int_equal(rxfer_dev_try("fake0", "odp-implicit"), 0);
}

static void advice_is_another_matter(void **state)
{
	struct fake_config config = engine_config();
	struct rxfer_dev *dev;

	(void)state;
	assert_true(rxfer_strategy_on_demand("odp") && rxfer_strategy_on_demand("odp-implicit"));
	assert_false(rxfer_strategy_on_demand("global") || rxfer_strategy_on_demand("nonsense"));
	for (int lacks = 0; lacks < 2; lacks++) {
		config.device[0].no_advice = lacks;
		fake_start(&config);
		assert_int_equal(rxfer_dev_open("fake0", "odp", &dev), 0);
		assert_int_equal(rxfer_dev_prefetch(dev), lacks ? -EOPNOTSUPP : 0);
		if (lacks)
			engine_said("takes no advice about pages");
		assert_int_equal(rxfer_dev_counts(dev)->mr_now, 0);
		rxfer_dev_close(dev);
	}
}

/* ---- What is registered ---- */

static void nothing_is_pinned(void **state)
{
	const char *const names[] = {"odp", "odp-implicit"};
	struct pair p;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_pair(&p, NULL, names[i], BOTH);
		assert_int_equal(rxfer_dev_counts(p.e.cdev)->mr_now, 1);
		assert_int_equal(rxfer_dev_counts(p.e.cdev)->pinned_peak, 0);
		rxfer_mem_del(p.local);
		assert_int_equal(rxfer_dev_counts(p.e.cdev)->mr_now, 0);
		assert_int_equal(rxfer_dev_counts(p.e.cdev)->pinned_now, 0);
		assert_int_equal(rxfer_dev_exposed(p.e.cdev).live, 0);
		engine_close(&p.e);
	}
}

/* Message buffers are fixed, and pinned. */
static void what_is_fixed_is_pinned(void **state)
{
	struct rxfer_mem *fixed;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "odp", RXFER_LOCAL);
	assert_int_equal(rxfer_mem_add(p.e.cdev, theirs, 100, RXFER_FIXED, &fixed), 0);
	assert_true(rxfer_dev_counts(p.e.cdev)->pinned_now > 0);
	rxfer_mem_del(fixed);
	assert_int_equal(rxfer_dev_counts(p.e.cdev)->pinned_now, 0);
	close_pair(&p);
}

/* ---- The whole address space ---- */

static uint64_t open_now(const struct pair *p)
{
	return rxfer_dev_exposed(p->e.cdev).now;
}

static void one_region_for_each_set_of_rights(void **state)
{
	struct rxfer_mem *more, *local;
	static uint8_t other[64];
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "odp-implicit", RXFER_LOCAL);
	assert_int_equal(open_now(&p), 0);
	assert_int_equal(rxfer_mem_add(p.e.cdev, other, 64, RXFER_LOCAL, &local), 0);
	assert_int_equal(rxfer_dev_counts(p.e.cdev)->mr_now, 1);
	assert_int_equal(rxfer_mem_add(p.e.cdev, other, 64, RXFER_EXPOSE_READ, &more), 0);
	assert_int_equal(rxfer_dev_counts(p.e.cdev)->mr_now, 2);
	assert_int_equal(open_now(&p), RXFER_ADDRESS_SPACE);
	rxfer_mem_del(local);
	assert_int_equal(rxfer_dev_counts(p.e.cdev)->mr_now, 2);
	rxfer_mem_del(more);
	assert_int_equal(rxfer_dev_counts(p.e.cdev)->mr_now, 1);
	assert_int_equal(open_now(&p), 0);
	close_pair(&p);
}

/* Whichever goes first: what is open is open until the last one has gone. */
static void its_grant_ends_with_the_last(void **state)
{
	static uint8_t other[64];

	(void)state;
	for (int first = 0; first < 2; first++) {
		struct rxfer_mem *mem[2];
		struct pair p;

		open_pair(&p, NULL, "odp-implicit", RXFER_LOCAL);
		for (int i = 0; i < 2; i++)
			assert_int_equal(rxfer_mem_add(p.e.cdev, other + 8 * i, 8,
						       RXFER_EXPOSE_WRITE, &mem[i]),
					 0);
		assert_int_equal(open_now(&p), RXFER_ADDRESS_SPACE);
		assert_int_equal(rxfer_dev_exposed(p.e.cdev).live, 1);
		rxfer_mem_del(mem[first]);
		assert_int_equal(open_now(&p), RXFER_ADDRESS_SPACE);
		rxfer_mem_del(mem[!first]);
		assert_int_equal(open_now(&p), 0);
		close_pair(&p);
	}
}

/* The peer reaches what was never declared, with the right that was, and with no other. */
static void the_peer_reaches_everything(void **state)
{
	uint8_t undeclared[64] = {1, 2, 3};
	struct rxfer_seg at;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "odp-implicit", RXFER_EXPOSE_READ);
	assert_int_equal(expose(&p, 1, 0, RXFER_EXPOSE_READ), 0);
	at = seg(&p, 0);
	at.addr = (uintptr_t)undeclared;
	at.len = sizeof(undeclared);
	assert_int_equal(reach(&p, RXFER_READ, at), 0);
	assert_memory_equal(theirs + 1000, undeclared, sizeof(undeclared));
	assert_int_equal(reach(&p, RXFER_WRITE, at), -EIO);
	close_pair(&p);
}

/* Our own I/Os stay within what was declared. */
static void our_own_stay_within(void **state)
{
	uint8_t undeclared[64];
	struct rxfer_frag frag = {undeclared, sizeof(undeclared)};
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "odp-implicit", BOTH);
	assert_int_equal(rxfer_post_send(p.e.client, &frag, 1, 1, 0), -EFAULT);
	engine_said("was not declared");
	assert_int_equal(rxfer_expose(p.e.client, p.x, &frag, 1, BOTH), -EFAULT);
	close_pair(&p);
}

/* ---- Prefetching ---- */

static void open_prefetching(struct pair *p, const char *strategy)
{
	struct rxfer_shape shape = {RXFER_WRITE, 400, FRAGS, 1};

	*p = (struct pair){0};
	engine_open(&p->e, NULL, strategy);
	assert_int_equal(rxfer_mem_add(p->e.cdev, mine, BYTES, BOTH, &p->local), 0);
	assert_int_equal(rxfer_mem_add(p->e.sdev, theirs, BYTES, RXFER_PEER_WRITE, &p->target), 0);
	engine_attr(&p->e, &shape, 4, 0, "io");
	p->e.client_attr.prefetch = true;
	assert_int_equal(engine_connect(&p->e), 0);
	assert_int_equal(rxfer_exposure_new(p->e.client, FRAGS, &p->x), 0);
}

static void write_once(struct pair *p, const struct rxfer_frag *frag, struct rxfer_prepared *again)
{
	struct rxfer_seg to = {(uintptr_t)theirs, 200, rxfer_mem_rkey(p->target)};
	struct rxfer_done done;

	if (again)
		assert_int_equal(rxfer_post_prepared(again, 0, 1, 0), 0);
	else
		assert_int_equal(rxfer_post_write(p->e.client, frag, 2, &to, 1, 1, 0), 0);
	fake_run();
	assert_int_equal(rxfer_poll(p->e.client, &done, 1), 1);
}

/* Prepared or not, own memory or what is exposed: one call for all pieces of each I/O. */
static void pages_are_asked_for(const char *strategy, unsigned int advices)
{
	struct rxfer_frag frag[2];
	struct rxfer_seg to;
	struct rxfer_prepared *again;
	struct rxfer_op op;
	struct pair p;

	open_prefetching(&p, strategy);
	fragments(frag, 2, 200);
	to = (struct rxfer_seg){(uintptr_t)theirs, 200, rxfer_mem_rkey(p.target)};
	op = (struct rxfer_op){
		.op = RXFER_WRITE, .local = frag, .nlocal = 2, .remote = &to, .nremote = 1};
	assert_int_equal(rxfer_prepare(p.e.client, &op, &again), 0);
	assert_int_equal(fake_stats()->advices, 0);
	write_once(&p, frag, NULL);
	write_once(&p, frag, again);
	write_once(&p, frag, again);
	assert_int_equal(fake_stats()->advices, 3 * advices);
	assert_int_equal(fake_stats()->prefetched, 600 * advices);
	assert_int_equal(expose(&p, 3, 200, RXFER_EXPOSE_WRITE), 0);
	assert_int_equal(fake_stats()->advices, 4 * advices);
	assert_int_equal(fake_stats()->prefetched, 900 * advices);
	rxfer_unprepare(again);
	close_pair(&p);
}

static void each_io_asks_for_its_pages(void **state)
{
	(void)state;
	pages_are_asked_for("odp", 1);
	pages_are_asked_for("odp-implicit", 1);
	pages_are_asked_for("global", 0);
}

/* A page that is gone is found before anything is posted. */
static void pages_that_are_gone(void **state)
{
	struct rxfer_frag frag[2];
	struct rxfer_seg to;
	struct ibv_mr *mr;
	struct pair p;

	(void)state;
	open_prefetching(&p, "odp");
	fragments(frag, 2, 200);
	to = (struct rxfer_seg){(uintptr_t)theirs, 200, rxfer_mem_rkey(p.target)};
	mr = p.local->mr;
	p.local->lkey++;
	assert_int_equal(rxfer_post_write(p.e.client, frag, 2, &to, 1, 1, 0), -EFAULT);
	engine_said("could not bring in the pages");
	p.local->lkey = mr->lkey;
	assert_true(engine_idle(p.e.client));
	write_once(&p, frag, NULL);
	close_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_says_what_is_lacking),
		cmocka_unit_test(it_takes_no_recv_on_demand),
		cmocka_unit_test(advice_is_another_matter),
		cmocka_unit_test(nothing_is_pinned),
		cmocka_unit_test(what_is_fixed_is_pinned),
		cmocka_unit_test(one_region_for_each_set_of_rights),
		cmocka_unit_test(its_grant_ends_with_the_last),
		cmocka_unit_test(the_peer_reaches_everything),
		cmocka_unit_test(our_own_stay_within),
		cmocka_unit_test(each_io_asks_for_its_pages),
		cmocka_unit_test(pages_that_are_gone),
	};

	return cmocka_run_group_tests_name("unit_odp", tests, NULL, NULL);
}
