/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --touch in RPC mode, on the test double: each I/O's memory, once, before its clock starts. */
#include <string.h>
#include "rpc_load_fixture.h"

#define IOS   40
#define FRAGS 3

/* What the client's load calls, instead of touch_frags(). */
uint64_t __wrap_touch_frags(const struct touch *t, const struct rxfer_frag *frags, uint32_t n);

static unsigned int calls;
static uint64_t expected;

uint64_t __wrap_touch_frags(const struct touch *t, const struct rxfer_frag *frags, uint32_t n)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += frags[i].len;
	assert_int_equal(t->how, expected);
	assert_int_equal(n, FRAGS);
	assert_int_equal(bytes, 1000);
	memset(frags[0].addr, (int)++calls,
	       frags[0].len); /* what is copied later tells when it was */
	return 0;
}

static void run(struct rpc_load *l)
{
	while (!load_finished(l->load)) {
		assert_true(rpc_load_client_pass(l) >= 0);
		fake_run();
		assert_true(rpc_server_pass(l->rpc) >= 0);
		fake_run();
	}
}

/* The last I/O was copied after that; it went to one of the server's two places. */
static void last_was_read_touched(const struct rpc_load *l)
{
	const char *base = rpc_server_memory(l->rpc)->base;

	assert_true(base[0] == IOS || base[l->layout.slot] == IOS);
}

static void touching(uint64_t how, uint64_t op)
{
	struct fake_config config = engine_config();
	static struct load_result out;
	struct rpc_load l = {0};
	struct cfg cfg;

	cfg_init(&cfg);
	cfg.mode = MODE_RPC;
	cfg.op = op;
	cfg.size = 1000;
	cfg.frags = FRAGS;
	cfg.depth = 1;
	cfg.touch = expected = how;
	strcpy(cfg.strategy, "bounce");
	calls = 0;
	assert_int_equal(rpc_load_open(&l, &cfg, &config), 0);
	assert_int_equal(rpc_load_make(&l), 0);
	rpc_load_begin(&l, IOS, 0, &out);
	run(&l);
	assert_int_equal(out.ios, IOS);
	assert_int_equal(calls, how == TOUCH_OFF ? 0 : IOS);
	if (op == OP_READ && how != TOUCH_OFF)
		last_was_read_touched(&l);
	rpc_load_close(&l);
}

static void each_io_once_before_it_begins(void **state)
{
	(void)state;
	for (uint64_t how = TOUCH_OFF; how <= TOUCH_COLD; how++) {
		touching(how, OP_READ);
		touching(how, OP_WRITE);
		touching(how, OP_SEND);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_io_once_before_it_begins)};

	return cmocka_run_group_tests_name("unit_rpc_touch", tests, NULL, NULL);
}
