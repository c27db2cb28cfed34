/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rpc-own-cost OP IOS: RPC mode's client and server on the test double, in one thread, for
 * scripts/bench-overhead to count. Two threads that poll would look in vain as often as chance has
 * it; here an end looks when the double has done all there is to do.
 */
#include <stdio.h>
#include <stdlib.h>
#include "rpc_load_fixture.h"

static int set_options(struct cfg *cfg, const char *op)
{
	char why[256];

	cfg_init(cfg);
	cfg->mode = MODE_RPC;
	cfg->size = 64;
	cfg->depth = 64;
	if (!cfg_set(cfg, "op", op, why, sizeof(why)))
		return 0;
	fprintf(stderr, "rpc-own-cost: %s\n", why);
	return -EINVAL;
}

static int go(struct rpc_load *l)
{
	while (!load_finished(l->load)) {
		int rc = rpc_load_client_pass(l);

		while (fake_step())
			;
		if (rc >= 0)
			rc = rpc_server_pass(l->rpc);
		while (fake_step())
			;
		if (rc < 0)
			return rc;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct fake_config config = engine_config();
	static struct load_result out;
	struct rpc_load l = {0};
	struct cfg cfg;
	int rc;

	if (argc != 3 || set_options(&cfg, argv[1]))
		return EXIT_FAILURE;
	rc = rpc_load_open(&l, &cfg, &config);
	if (!rc)
		rc = rpc_load_make(&l);
	if (!rc) {
		rpc_load_begin(&l, strtoull(argv[2], NULL, 10), 0, &out);
		rc = go(&l);
	}
	if (rc)
		fprintf(stderr, "rpc-own-cost: %s\n", rxfer_error());
	rpc_load_close(&l);
	return rc || fake_violations() ? EXIT_FAILURE : 0;
}
