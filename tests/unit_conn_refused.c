/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Did a connection break because the peer's device refused an access? And by which key could that
 * be tried: that of the region below what an I/O exposes. */
#include <errno.h>
#include <string.h>
#include "fakehca/engine.h"

#define BYTES 4096

static uint8_t mine[BYTES], theirs[BYTES];

struct pair {
	struct engine e;
	struct rxfer_mem *local, *target;
};

static void open_pair(struct pair *p, unsigned int rights)
{
	struct rxfer_shape shape = {RXFER_WRITE, 64, 1, 1};

	*p = (struct pair){0};
	engine_open(&p->e, NULL, "global");
	assert_int_equal(rxfer_mem_add(p->e.cdev, mine, BYTES, RXFER_LOCAL, &p->local), 0);
	assert_int_equal(rxfer_mem_add(p->e.sdev, theirs, BYTES, rights, &p->target), 0);
	engine_attr(&p->e, &shape, 4, 0, "io");
	assert_int_equal(engine_connect(&p->e), 0);
	assert_false(rxfer_conn_refused(p->e.client));
}

/* What the client's poll says of a WRITE, or READ, to there. */
static int access_to(struct pair *p, bool write, uint64_t addr, uint32_t key)
{
	const struct rxfer_frag frag = {mine, 64};
	const struct rxfer_seg seg = {addr, 64, key};
	struct rxfer_done done;

	assert_int_equal(
		(write ? rxfer_post_write : rxfer_post_read)(p->e.client, &frag, 1, &seg, 1, 1, 0),
		0);
	fake_run();
	return rxfer_poll(p->e.client, &done, 1);
}

static void an_access_that_is_refused(void **state)
{
	static const struct {
		bool write;
		int64_t at;
		uint32_t twist;
		bool refused;
	} cases[] = {
		{false, 0, 0, false}, {false, BYTES - 64, 0, false}, {false, 0, 1, true},
		{false, -1, 0, true}, {false, BYTES - 63, 0, true},  {true, 0, 0, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t addr = (uintptr_t)theirs + (uint64_t)cases[i].at;
		struct pair p;
		int rc;

		open_pair(&p, RXFER_PEER_READ);
		rc = access_to(&p, cases[i].write, addr, rxfer_mem_rkey(p.target) ^ cases[i].twist);
		assert_int_equal(rc, cases[i].refused ? -EIO : 1);
		assert_int_equal(rxfer_conn_refused(p.e.client), cases[i].refused);
		engine_close(&p.e);
	}
}

/* Each other way for a connection to break is none. */
static void another_end(void **state)
{
	struct pair p;

	(void)state;
	for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_TM_RNDV_INCOMPLETE; status++) {
		open_pair(&p, RXFER_PEER_READ);
		fake_live()->fail_wr = (struct fake_fault){1, status};
		assert_true(access_to(&p, false, (uintptr_t)theirs, rxfer_mem_rkey(p.target)) < 0);
		assert_int_equal(rxfer_conn_refused(p.e.client), status == IBV_WC_REM_ACCESS_ERR);
		engine_close(&p.e);
	}
	open_pair(&p, RXFER_PEER_READ);
	fake_disconnect(p.e.server->qp);
	assert_int_equal(access_to(&p, false, (uintptr_t)theirs, rxfer_mem_rkey(p.target)),
			 -ENOTCONN);
	assert_false(rxfer_conn_refused(p.e.client));
	engine_close(&p.e);
}

/* The first failure is the cause, whatever comes after it. */
static void broken_before(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, RXFER_PEER_READ);
	rxfer_conn_break(p.e.client, EPROTO, "something else");
	assert_false(rxfer_conn_refused(p.e.client));
	engine_close(&p.e);
}

static uint32_t below(const char *strategy, unsigned int rights, uint32_t *rkey)
{
	struct fake_config config = engine_config();
	struct rxfer_mem *mem;
	struct engine e = {0};
	uint32_t key;

	engine_open(&e, &config, strategy);
	assert_int_equal(rxfer_mem_add(e.cdev, mine, BYTES, rights, &mem), 0);
	key = rxfer_mem_below(mem);
	*rkey = rxfer_mem_rkey(mem);
	engine_close(&e);
	return key;
}

static void the_region_below(void **state)
{
	uint32_t rkey, key = below("global", RXFER_EXPOSE_READ, &rkey);

	(void)state;
	assert_int_equal(key, rkey);
	assert_int_not_equal(key, 0);
	assert_int_equal(below("per-io", RXFER_EXPOSE_READ, &rkey), 0);
	assert_int_not_equal(below("frwr", RXFER_EXPOSE_WRITE, &rkey), 0);
	assert_int_not_equal(below("per-io", RXFER_FIXED, &rkey), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_access_that_is_refused),
		cmocka_unit_test(another_end),
		cmocka_unit_test(broken_before),
		cmocka_unit_test(the_region_below),
	};

	return cmocka_run_group_tests_name("unit_conn_refused", tests, NULL, NULL);
}
