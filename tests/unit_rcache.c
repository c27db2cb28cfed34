/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The strategy rcache on the test double: what is registered, when, with which rights, and when it
 * goes. Which region that is, is what prop_rcache is about.
 */
#include <errno.h>
#include <string.h>
#include "fakehca/engine.h"
#include "../src/rcache.h"
#include "../src/reg.h"

#define PAGE  4096u
#define PAGES 16u
#define SLOTS 6
#define BOTH  (RXFER_EXPOSE_READ | RXFER_EXPOSE_WRITE)

/* struct pair - the client, with the cache, writes from @mine to @theirs, and exposes @mine. */
struct pair {
	struct engine e;
	struct rxfer_mem *local, *target, *own;
	struct rxfer_exposure *x, *y;
};

static uint8_t mine[PAGES * PAGE] __attribute__((aligned(4096)));
static uint8_t theirs[PAGES * PAGE] __attribute__((aligned(4096)));

static void connect_pair(struct pair *p)
{
	struct rxfer_shape shape = {RXFER_WRITE, sizeof(mine), 4, 1, .exposed = 4};

	engine_attr(&p->e, &shape, SLOTS, 0, "all");
	p->e.server_attr.shape = (struct rxfer_shape){RXFER_READ, sizeof(theirs), 1, 1};
	assert_int_equal(engine_connect(&p->e), 0);
	assert_int_equal(rxfer_exposure_new(p->e.client, 4, &p->x), 0);
	assert_int_equal(rxfer_exposure_new(p->e.client, 4, &p->y), 0);
}

static void open_pair(struct pair *p, const struct fake_config *config,
		      struct rxfer_cache_limits limits, unsigned int rights)
{
	*p = (struct pair){0};
	engine_open(&p->e, config, "rcache");
	rxfer_dev_cache(p->e.cdev, &limits);
	assert_int_equal(rxfer_mem_add(p->e.cdev, mine, sizeof(mine), rights, &p->local), 0);
	assert_int_equal(
		rxfer_mem_add(p->e.sdev, theirs, sizeof(theirs), RXFER_PEER_WRITE, &p->target), 0);
	connect_pair(p);
	assert_int_equal(rxfer_dev_counts(p->e.cdev)->mr_now, 0); /* nothing before its first use */
}

static void close_pair(struct pair *p)
{
	rxfer_conn_close(p->e.client);
	p->e.client = NULL;
	rxfer_mem_del(p->local);
	assert_int_equal(rxfer_dev_counts(p->e.cdev)->mr_now, 0);
	assert_int_equal(rxfer_dev_counts(p->e.cdev)->pinned_now, 0);
	assert_int_equal(rxfer_dev_exposed(p->e.cdev).live, 0);
	engine_close(&p->e);
}

/* Start a WRITE of @len bytes at @at of @mine. */
static int start(struct pair *p, size_t at, uint32_t len)
{
	struct rxfer_frag frag = {mine + at, len};
	struct rxfer_seg to = {(uintptr_t)theirs, len, rxfer_mem_rkey(p->target)};

	return rxfer_post_write(p->e.client, &frag, 1, &to, 1, 7, 0);
}

static void finish(struct pair *p, int n)
{
	struct rxfer_done done;

	fake_run();
	for (; n; n--)
		assert_int_equal(rxfer_poll(p->e.client, &done, 1), 1);
	assert_int_equal(rxfer_poll(p->e.client, &done, 1), 0);
}

static void write_at(struct pair *p, size_t at, uint32_t len)
{
	memset(mine + at, (int)(at / PAGE) + 1, len);
	assert_int_equal(start(p, at, len), 0);
	finish(p, 1);
	assert_memory_equal(theirs, mine + at, len);
}

static void counted(const struct pair *p, uint64_t lookups, uint64_t hits, uint64_t mr_now,
		    uint64_t mr_total)
{
	const struct rxfer_counts *c = rxfer_conn_counts(p->e.client);
	const struct rxfer_dev_counts *d = rxfer_dev_counts(p->e.cdev);

	assert_int_equal(c->lookups, lookups);
	assert_int_equal(c->hits, hits);
	assert_int_equal(d->mr_now, mr_now);
	assert_int_equal(d->mr_total, mr_total);
}

/* ---- Hits and misses ---- */

static void registered_once(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, (struct rxfer_cache_limits){8}, RXFER_LOCAL);
	write_at(&p, PAGE + 10, 100);
	counted(&p, 1, 0, 1, 1);
	assert_int_equal(rxfer_dev_counts(p.e.cdev)->pinned_now, PAGE);
	write_at(&p, PAGE, PAGE); /* all of the page */
	write_at(&p, 2 * PAGE - 1, 1);
	counted(&p, 3, 2, 1, 1);
	write_at(&p, 3 * PAGE, PAGE);
	counted(&p, 4, 2, 2, 2);
	write_at(&p, 2 * PAGE - 1, 2); /* into the next page: one region instead of the first */
	counted(&p, 5, 2, 2, 3);
	assert_int_equal(rxfer_dev_counts(p.e.cdev)->pinned_now, 3 * PAGE);
	close_pair(&p);
}

static void each_run_is_looked_up(void **state)
{
	struct rxfer_frag frag[4] = {
		{mine, 10}, {mine + 10, 20}, {mine + 2 * PAGE, 5}, {mine + 100, 5}};
	struct rxfer_seg to = {(uintptr_t)theirs, 40, 0};
	struct pair p;

	(void)state;
	open_pair(&p, NULL, (struct rxfer_cache_limits){8}, RXFER_LOCAL);
	to.key = rxfer_mem_rkey(p.target);
	assert_int_equal(rxfer_post_write(p.e.client, frag, 4, &to, 1, 7, 0), 0);
	counted(&p, 3, 1, 2, 2);
	finish(&p, 1);
	close_pair(&p);
}

/* Not beyond the declared memory, nor from one into the next. */
static void within_what_was_declared(void **state)
{
	struct rxfer_mem *next;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, (struct rxfer_cache_limits){8, .merge = true}, RXFER_EXPOSE_READ);
	rxfer_mem_del(p.local);
	assert_int_equal(rxfer_mem_add(p.e.cdev, mine + 100, PAGE, BOTH, &p.local), 0);
	assert_int_equal(rxfer_mem_add(p.e.cdev, mine + 100 + PAGE, PAGE, BOTH, &next), 0);
	write_at(&p, 200, 10);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, PAGE - 100);
	write_at(&p, 300 + PAGE, 10);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, 2 * PAGE - 200);
	counted(&p, 2, 0, 2, 2);
	assert_int_equal(start(&p, PAGE + 90, 20), -EFAULT);
	engine_said("was not declared");
	counted(&p, 2, 0, 2, 2);
	rxfer_mem_del(next);
	counted(&p, 2, 0, 1, 2);
	close_pair(&p);
}

static void memory_that_is_registered_anyhow(void **state)
{
	static uint8_t fixed[64];
	struct rxfer_frag frag = {fixed, 64};
	struct rxfer_seg to = {(uintptr_t)theirs, 64, 0};
	struct pair p;

	(void)state;
	open_pair(&p, NULL, (struct rxfer_cache_limits){8}, RXFER_LOCAL);
	to.key = rxfer_mem_rkey(p.target);
	assert_int_equal(rxfer_mem_add(p.e.cdev, fixed, 64, RXFER_FIXED, &p.own), 0);
	assert_int_equal(rxfer_post_write(p.e.client, &frag, 1, &to, 1, 7, 0), 0);
	finish(&p, 1);
	counted(&p, 0, 0, 1, 1);
	assert_int_equal(rxfer_mem_forget(p.e.cdev, fixed, 64), 0);
	counted(&p, 0, 0, 1, 1);
	rxfer_mem_del(p.own);
	close_pair(&p);
}

static void neighbours_are_merged_where_asked(void **state)
{
	struct pair p;

	(void)state;
	for (int merge = 0; merge < 2; merge++) {
		open_pair(&p, NULL, (struct rxfer_cache_limits){8, .merge = merge}, RXFER_LOCAL);
		for (size_t page = 0; page < 4; page++)
			write_at(&p, page * PAGE, PAGE);
		counted(&p, 4, 0, merge ? 1 : 4, 4);
		write_at(&p, PAGE, 2 * PAGE);
		counted(&p, 5, merge, merge ? 1 : 3, merge ? 4 : 5);
		close_pair(&p);
	}
}

/* ---- Limits ---- */

static void the_oldest_goes(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, (struct rxfer_cache_limits){2}, RXFER_LOCAL);
	write_at(&p, 0, 1);
	write_at(&p, PAGE, 1);
	write_at(&p, 0, 1);
	write_at(&p, 2 * PAGE, 1); /* instead of the second */
	counted(&p, 4, 1, 2, 3);
	write_at(&p, 0, 1);
	counted(&p, 5, 2, 2, 3);
	write_at(&p, PAGE, 1);
	counted(&p, 6, 2, 2, 4);
	close_pair(&p);
}

static void bytes_are_limited(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, (struct rxfer_cache_limits){99, 4 * PAGE}, RXFER_LOCAL);
	write_at(&p, 0, 2 * PAGE);
	write_at(&p, 4 * PAGE, 2 * PAGE);
	counted(&p, 2, 0, 2, 2);
	write_at(&p, 8 * PAGE, PAGE);
	counted(&p, 3, 0, 2, 3);
	assert_int_equal(rxfer_dev_counts(p.e.cdev)->pinned_now, 3 * PAGE);
	close_pair(&p);
}

/* What is in use stays, and goes when it is not. */
static void above_the_limit_while_in_use(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, (struct rxfer_cache_limits){1}, RXFER_LOCAL);
	for (size_t page = 0; page < 4; page++)
		assert_int_equal(start(&p, page * PAGE, 1), 0);
	counted(&p, 4, 0, 4, 4);
	finish(&p, 4);
	counted(&p, 4, 0, 1, 4);
	close_pair(&p);
}

/* ---- Registering fails ---- */

static struct fake_config few_regions(uint32_t n)
{
	struct fake_config config = engine_config();

	config.device[0].max_mr = n + 1; /* one is the server's */
	return config;
}

static void room_is_made(void **state)
{
	struct fake_config config = few_regions(3);
	struct pair p;

	(void)state;
	open_pair(&p, &config, (struct rxfer_cache_limits){8}, RXFER_LOCAL);
	for (size_t page = 0; page < 5; page++)
		write_at(&p, page * PAGE, 1);
	counted(&p, 5, 0, 3, 5);
	write_at(&p, 2 * PAGE, 1); /* the third is not among those that went */
	counted(&p, 6, 1, 3, 5);
	close_pair(&p);
}

static void all_are_in_use(void **state)
{
	struct fake_config config = few_regions(2);
	struct pair p;

	(void)state;
	open_pair(&p, &config, (struct rxfer_cache_limits){8}, RXFER_LOCAL);
	assert_int_equal(start(&p, 0, 1), 0);
	assert_int_equal(start(&p, PAGE, 1), 0);
	assert_int_equal(start(&p, 2 * PAGE, 1), -ENOMEM);
	engine_said("ibv_reg_mr of 4.0 KiB on fake0");
	counted(&p, 3, 0, 2, 2);
	finish(&p, 2);
	assert_true(engine_idle(p.e.client));
	write_at(&p, 2 * PAGE, 1);
	counted(&p, 4, 0, 2, 3);
	close_pair(&p);
}

/* The runs before the one that fails are given back. */
static void half_of_an_io(void **state)
{
	struct rxfer_frag frag[2] = {{mine, 10}, {mine + 2 * PAGE, 10}};
	struct fake_config config = engine_config();
	struct rxfer_seg to = {(uintptr_t)theirs, 20, 0};
	struct pair p;

	(void)state;
	config.fail_reg_mr = (struct fake_fault){3, EINVAL};
	open_pair(&p, &config, (struct rxfer_cache_limits){1}, RXFER_LOCAL);
	to.key = rxfer_mem_rkey(p.target);
	assert_int_equal(rxfer_post_write(p.e.client, frag, 2, &to, 1, 7, 0), -EINVAL);
	counted(&p, 2, 0, 1, 1);
	write_at(&p, 4 * PAGE, 1); /* the first goes for it */
	write_at(&p, 4 * PAGE, 1);
	counted(&p, 4, 1, 1, 2);
	close_pair(&p);
}

static void half_of_an_exposure(void **state)
{
	struct rxfer_frag frag[2] = {{mine, 10}, {mine + 2 * PAGE, 10}};
	struct fake_config config = engine_config();
	struct pair p;
	uint32_t n;

	(void)state;
	config.fail_reg_mr = (struct fake_fault){3, EINVAL};
	open_pair(&p, &config, (struct rxfer_cache_limits){1}, RXFER_EXPOSE_READ);
	assert_int_equal(rxfer_expose(p.e.client, p.x, frag, 2, RXFER_EXPOSE_READ), -EINVAL);
	rxfer_exposure_segs(p.x, &n);
	assert_int_equal(n, 0);
	counted(&p, 2, 0, 1, 1);
	write_at(&p, 4 * PAGE, 1); /* the first goes for it */
	write_at(&p, 4 * PAGE, 1);
	counted(&p, 4, 1, 1, 2);
	close_pair(&p);
}

/* ---- Memory that goes ---- */

static void forgotten(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, (struct rxfer_cache_limits){8}, RXFER_LOCAL);
	for (size_t page = 0; page < 4; page++)
		write_at(&p, page * PAGE, PAGE);
	assert_int_equal(rxfer_mem_forget(p.e.cdev, mine + 2 * PAGE - 1, 2), 0);
	counted(&p, 4, 0, 2, 4);
	write_at(&p, 0, PAGE);
	write_at(&p, 3 * PAGE, PAGE);
	counted(&p, 6, 2, 2, 4);
	write_at(&p, PAGE, PAGE);
	counted(&p, 7, 2, 3, 5);
	assert_int_equal(rxfer_mem_forget(p.e.cdev, theirs, PAGE), 0); /* not of this device */
	counted(&p, 7, 2, 3, 5);
	assert_int_equal(rxfer_mem_forget(p.e.cdev, mine, sizeof(mine)), 0);
	counted(&p, 7, 2, 0, 5);
	close_pair(&p);
}

static void forgotten_in_flight(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, (struct rxfer_cache_limits){8}, RXFER_LOCAL);
	assert_int_equal(start(&p, 0, PAGE), 0);
	assert_int_equal(start(&p, 0, PAGE), 0);
	counted(&p, 2, 1, 1, 1);
	assert_int_equal(rxfer_mem_forget(p.e.cdev, mine, 1), 0);
	counted(&p, 2, 1, 1, 1);
	assert_int_equal(start(&p, 0, PAGE), 0); /* is not had for another one */
	counted(&p, 3, 1, 2, 2);
	finish(&p, 3);
	counted(&p, 3, 1, 1, 2);
	close_pair(&p);
}

static void the_device_keeps_one(void **state)
{
	struct fake_config config = engine_config();
	struct pair p;

	(void)state;
	config.fail_dereg_mr = (struct fake_fault){1, EIO};
	open_pair(&p, &config, (struct rxfer_cache_limits){8}, RXFER_EXPOSE_READ);
	write_at(&p, 0, 1);
	write_at(&p, PAGE, 1);
	assert_int_equal(rxfer_mem_forget(p.e.cdev, mine, sizeof(mine)), -EIO);
	engine_said("ibv_dereg_mr on fake0");
	counted(&p, 2, 0, 1, 2); /* the other one is gone all the same */
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, PAGE);
	write_at(&p, 0, 1);
	counted(&p, 3, 0, 2, 3);
	rxfer_conn_close(p.e.client);
	rxfer_conn_close(p.e.server);
	rxfer_listener_close(p.e.listener);
	rxfer_dev_close(p.e.cdev);
	rxfer_dev_close(p.e.sdev);
}

/* What is in flight on a connection that is closed is given back, and then goes. */
static void a_connection_goes(void **state)
{
	struct rxfer_frag frag = {mine + 8 * PAGE, 1};
	struct pair p;

	(void)state;
	open_pair(&p, NULL, (struct rxfer_cache_limits){1}, RXFER_EXPOSE_READ);
	for (size_t page = 0; page < 3; page++)
		assert_int_equal(start(&p, page * PAGE, 1), 0);
	assert_int_equal(rxfer_expose(p.e.client, p.x, &frag, 1, RXFER_EXPOSE_READ), 0);
	counted(&p, 4, 0, 4, 4);
	rxfer_conn_close(p.e.client);
	p.e.client = NULL;
	assert_int_equal(rxfer_dev_counts(p.e.cdev)->mr_now, 1);
	assert_int_equal(((struct rxfer_rcache *)p.e.cdev->reg_data)->refs, 0);
	close_pair(&p);
}

/* ---- The peer ---- */

static int reach(struct pair *p, enum rxfer_opcode op, struct rxfer_seg at)
{
	struct rxfer_frag frag = {theirs, at.len};
	struct rxfer_done done;
	int rc;

	if (op == RXFER_READ)
		rc = rxfer_post_read(p->e.server, &frag, 1, &at, 1, 5, 0);
	else
		rc = rxfer_post_write(p->e.server, &frag, 1, &at, 1, 5, 0);
	assert_int_equal(rc, 0);
	fake_run();
	rc = rxfer_poll(p->e.server, &done, 1);
	return rc == 1 ? 0 : rc;
}

static struct rxfer_seg expose(struct pair *p, struct rxfer_exposure *x, size_t page)
{
	struct rxfer_frag frag = {mine + page * PAGE + 10, 100};
	const struct rxfer_seg *seg;
	uint32_t n;

	assert_int_equal(rxfer_expose(p->e.client, x, &frag, 1, RXFER_EXPOSE_READ), 0);
	seg = rxfer_exposure_segs(x, &n);
	assert_int_equal(n, 1);
	assert_int_equal(seg->addr, (uintptr_t)frag.addr);
	assert_int_equal(seg->len, 100);
	return *seg;
}

/* A key is kept until the reply, whatever needs the place; and then until something does. */
static void a_key_until_the_reply(void **state)
{
	struct rxfer_seg a, b;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, (struct rxfer_cache_limits){1}, RXFER_EXPOSE_READ);
	a = expose(&p, p.x, 0);
	b = expose(&p, p.y, 1);
	counted(&p, 2, 0, 2, 2);
	assert_int_equal(reach(&p, RXFER_READ, a), 0);
	assert_int_equal(rxfer_replied(p.e.client, p.x), 0); /* and gone, as it is one too many */
	counted(&p, 2, 0, 1, 2);
	assert_int_equal(reach(&p, RXFER_READ, b), 0);
	assert_int_equal(rxfer_replied(p.e.client, p.y), 0);
	counted(&p, 2, 0, 1, 2);
	assert_int_equal(reach(&p, RXFER_READ, b), 0); /* that is what is cached */
	b = expose(&p, p.y, 1);
	counted(&p, 3, 1, 1, 2);
	assert_int_equal(reach(&p, RXFER_READ, a), -EIO);
	close_pair(&p);
}

/* It is the server's memory that is closed to the peer's WRITE, not the I/O's rights. */
static void rights_are_those_of_the_memory(void **state)
{
	struct rxfer_seg a;
	struct pair p;

	(void)state;
	open_pair(&p, NULL, (struct rxfer_cache_limits){8}, BOTH);
	write_at(&p, 0, 1); /* of its own; and it is open from now on */
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, PAGE);
	a = expose(&p, p.x, 0);
	counted(&p, 2, 1, 1, 1);
	assert_int_equal(reach(&p, RXFER_WRITE, a), 0);
	a.addr -= 10;
	assert_int_equal(reach(&p, RXFER_READ, a), 0);
	a.addr -= 1;
	assert_int_equal(reach(&p, RXFER_READ, a), -EIO);
	close_pair(&p);
	open_pair(&p, NULL, (struct rxfer_cache_limits){8}, RXFER_EXPOSE_READ);
	assert_int_equal(reach(&p, RXFER_WRITE, expose(&p, p.x, 0)), -EIO);
	close_pair(&p);
}

/* The ledger has a region from its registration to the end of that. */
static void what_lies_open(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, (struct rxfer_cache_limits){2}, RXFER_EXPOSE_WRITE);
	for (size_t page = 0; page < 4; page++)
		write_at(&p, page * PAGE, 1);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, 2 * PAGE);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).peak, 2 * PAGE);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).grants, 4);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).proven, 2);
	assert_int_equal(rxfer_conn_exposed(p.e.client).grants, 0);
	close_pair(&p);
	open_pair(&p, NULL, (struct rxfer_cache_limits){2}, RXFER_LOCAL);
	write_at(&p, 0, 1);
	assert_int_equal(rxfer_dev_exposed(p.e.cdev).peak, 0);
	close_pair(&p);
}

/* Over iWARP the peer answers a READ by writing: the sink lies open to that. */
static void sinks(void **state)
{
	struct pair p;

	(void)state;
	for (int iwarp = 0; iwarp < 2; iwarp++) {
		struct fake_config config = engine_config();

		config.device[0].iwarp = iwarp;
		open_pair(&p, &config, (struct rxfer_cache_limits){2}, RXFER_READ_SINK);
		write_at(&p, 0, 1);
		assert_int_equal(rxfer_dev_exposed(p.e.cdev).now, iwarp ? PAGE : 0);
		close_pair(&p);
	}
}

/* Exposing again without a reply is the end of the I/O before. */
static void exposed_again(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, (struct rxfer_cache_limits){1}, RXFER_EXPOSE_READ);
	for (size_t page = 0; page < 8; page++)
		expose(&p, p.x, page);
	counted(&p, 8, 0, 1, 8);
	rxfer_exposure_free(p.e.client, p.x);
	expose(&p, p.y, 9);
	counted(&p, 9, 0, 1, 9);
	close_pair(&p);
}

static void who_caches(void **state)
{
	(void)state;
	assert_true(rxfer_strategy_caches("rcache"));
	assert_false(rxfer_strategy_caches("global"));
	assert_true(rxfer_strategy_keys_vary("rcache"));
	assert_int_equal(rxfer_strategy_revokes("rcache", RXFER_REVOKE_NONE), 0);
	assert_int_equal(rxfer_strategy_revokes("rcache", RXFER_REVOKE_SYNC), -EOPNOTSUPP);
	engine_said("rcache keeps the region of an I/O, and its key, for the next ones");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registered_once),
		cmocka_unit_test(each_run_is_looked_up),
		cmocka_unit_test(within_what_was_declared),
		cmocka_unit_test(memory_that_is_registered_anyhow),
		cmocka_unit_test(neighbours_are_merged_where_asked),
		cmocka_unit_test(the_oldest_goes),
		cmocka_unit_test(bytes_are_limited),
		cmocka_unit_test(above_the_limit_while_in_use),
		cmocka_unit_test(room_is_made),
		cmocka_unit_test(all_are_in_use),
		cmocka_unit_test(half_of_an_io),
		cmocka_unit_test(half_of_an_exposure),
		cmocka_unit_test(forgotten),
		cmocka_unit_test(forgotten_in_flight),
		cmocka_unit_test(the_device_keeps_one),
		cmocka_unit_test(a_connection_goes),
		cmocka_unit_test(a_key_until_the_reply),
		cmocka_unit_test(rights_are_those_of_the_memory),
		cmocka_unit_test(what_lies_open),
		cmocka_unit_test(sinks),
		cmocka_unit_test(exposed_again),
		cmocka_unit_test(who_caches),
	};

	return cmocka_run_group_tests_name("unit_rcache", tests, NULL, NULL);
}
