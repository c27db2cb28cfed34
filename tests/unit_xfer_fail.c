/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the transfer engine does when the device fails it: in the middle of a map, in the middle of
 * a post, at a WR, at a poll, or because its peer is gone. Each test ends with engine_close(), and
 * so with everything freed and nothing that the double would object to.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
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
	engine_said("ibv_reg_mr of 100 bytes on ");
	engine_said("6 of 7 regions are in use");
	fake_run();
	assert_int_equal(rxfer_poll(p.e.client, &(struct rxfer_done){0}, 1), 1);
	works(&p, 3);
	engine_close(&p.e);
}

/* Where so many bytes may be locked. */
static void refused(rlim_t limit, int err)
{
	struct rlimit was, now;
	struct pair p;

	open_pair(&p, NULL, "per-io", "io");
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &was), 0);
	now = (struct rlimit){limit, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &now), 0);
	fake_live()->fail_reg_mr = (struct fake_fault){2, err};
	assert_int_equal(write_all(&p, 1), -err);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &was), 0);
	engine_close(&p.e);
}

/* It is whole pages that are locked, be they touched ever so little. */
static void the_reason_of_a_refusal(void **state)
{
	(void)state;
	refused(4000, ENOMEM);
	engine_said("registering 100 bytes (0 bytes are pinned) exceeds the locked-memory limit of "
		    "3.9 KiB: raise it (ulimit -l");
	refused(0, EPERM);
	engine_said("exceeds the locked-memory limit of 0 bytes");
	refused(60000, ENOMEM);
	engine_said("Cannot allocate memory (1 of ");
	engine_said("0 bytes are pinned now of the locked-memory limit of 58.6 KiB: see ulimit -l");
	refused(4000, EFAULT);
	engine_said("Bad address (1 of ");
	engine_said("pages that cannot be pinned: since Linux 6.5 those of a file");
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

/* What would be longer elsewhere than it is here: opcode, strategy, address, numbers. */
#define LONGER 70

/* Everything that there is to say, each in its place, and it fits in. */
static void says_all(const struct pair *p, enum ibv_wc_status status, const char *name)
{
	char words[128];

	engine_said("RDMA WRITE failed: IBV_WC_");
	snprintf(words, sizeof(words), "%s (%s, status %d, vendor ", name,
		 ibv_wc_status_str(status), status);
	engine_said(words);
	snprintf(words, sizeof(words),
		 "), strategy per-io, peer 10.86.0.1, QP %u: ", p->e.client->qp->qp_num);
	engine_said(words);
	assert_true(strlen(rxfer_error()) + LONGER < sizeof(p->e.client->broken_why));
}

static void a_wr_fails(void **state)
{
	static const struct {
		enum ibv_wc_status status;
		const char *name, *cause, *remedy;
	} cases[] = {
		{IBV_WC_LOC_LEN_ERR, "LOC_LEN_ERR", ": a message longer than", "; use a smaller"},
		{IBV_WC_LOC_QP_OP_ERR, "LOC_QP_OP_ERR", ": the device could not", "dmesg"},
		{IBV_WC_LOC_EEC_OP_ERR, "LOC_EEC_OP_ERR", ": belongs to", "; suspect"},
		{IBV_WC_LOC_PROT_ERR, "LOC_PROT_ERR", ": our own memory is not registered", "; if"},
		{IBV_WC_WR_FLUSH_ERR, "WR_FLUSH_ERR", ": the peer closed the connection, or",
		 "; see what the peer"},
		{IBV_WC_MW_BIND_ERR, "MW_BIND_ERR", ": a memory window", "; use another"},
		{IBV_WC_BAD_RESP_ERR, "BAD_RESP_ERR", "answered with", "; suspect"},
		{IBV_WC_LOC_ACCESS_ERR, "LOC_ACCESS_ERR", ": what arrived", "; if --strategy"},
		{IBV_WC_REM_INV_REQ_ERR, "REM_INV_REQ_ERR", "refused it", "--rd-atomic 1"},
		{IBV_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR", "not open to us", "; see whether"},
		{IBV_WC_REM_OP_ERR, "REM_OP_ERR", ": the peer's device could not", "; see what"},
		{IBV_WC_RETRY_EXC_ERR, "RETRY_EXC_ERR", "no longer answers", "; ping it"},
		{IBV_WC_RNR_RETRY_EXC_ERR, "RNR_RETRY_EXC_ERR", "no RECV", "; use a larger"},
		{IBV_WC_LOC_RDD_VIOL_ERR, "LOC_RDD_VIOL_ERR", ": belongs to", "; suspect"},
		{IBV_WC_REM_INV_RD_REQ_ERR, "REM_INV_RD_REQ_ERR", ": belongs to", "; suspect"},
		{IBV_WC_REM_ABORT_ERR, "REM_ABORT_ERR", "gave it up", "; see dmesg there"},
		{IBV_WC_INV_EECN_ERR, "INV_EECN_ERR", ": belongs to", "; suspect"},
		{IBV_WC_INV_EEC_STATE_ERR, "INV_EEC_STATE_ERR", ": belongs to", "; suspect"},
		{IBV_WC_FATAL_ERR, "FATAL_ERR", ": the device has failed", "; see dmesg"},
		{IBV_WC_RESP_TIMEOUT_ERR, "RESP_TIMEOUT_ERR", ": no answer", "; look at the link"},
		{IBV_WC_GENERAL_ERR, "GENERAL_ERR", "does not say more", "; look the vendor"},
		{IBV_WC_TM_ERR, "TM_ERR", ": belongs to", "; suspect"},
		{IBV_WC_TM_RNDV_INCOMPLETE, "TM_RNDV_INCOMPLETE", ": belongs to", "; suspect"},
		{99, "unknown status", ": it is none", "; suspect the driver"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool lost = cases[i].status == IBV_WC_RETRY_EXC_ERR ||
			    cases[i].status == IBV_WC_WR_FLUSH_ERR;
		int err = lost ? ENOTCONN : EIO;
		struct pair p;

		open_pair(&p, NULL, "per-io", "half");
		fake_live()->fail_wr = (struct fake_fault){2, (int)cases[i].status};
		assert_int_equal(write_all(&p, 1), 0);
		assert_int_equal(write_all(&p, 2), 0);
		fake_run();
		assert_int_equal(rxfer_poll(p.e.client, &(struct rxfer_done){0}, 1), -err);
		if (cases[i].status != 99)
			says_all(&p, cases[i].status, cases[i].name);
		engine_said(cases[i].cause);
		engine_said(cases[i].remedy);
		broken(&p, -err, cases[i].name);
	}
}

/* Each status has its line, in the order of the enumeration. */
static void the_names_are_in_order(void **state)
{
	(void)state;
	for (int i = IBV_WC_LOC_LEN_ERR; i <= IBV_WC_TM_RNDV_INCOMPLETE; i++) {
		struct rxfer_reason r = rxfer_wc_reason((enum ibv_wc_status)i);

		assert_int_equal(strncmp(rxfer_wc_name((enum ibv_wc_status)i), "IBV_WC_", 7), 0);
		assert_true(r.cause && *r.cause && r.remedy && *r.remedy);
	}
}

/* The CQ hands up the flushed RECV first: the words are of the WR that failed. */
static void a_flushed_recv_is_seen_first(void **state)
{
	struct fake_config config = engine_config();
	struct rxfer_mem *mem;
	struct pair p;
	uint8_t buf[8];

	(void)state;
	config.cq_order = FAKE_CQ_RQ_FIRST;
	open_pair(&p, &config, "global", "half");
	assert_int_equal(rxfer_mem_add(p.e.cdev, buf, sizeof(buf), RXFER_FIXED, &mem), 0);
	assert_int_equal(rxfer_post_recv(p.e.client, buf, sizeof(buf), 1), 0);
	fake_live()->fail_wr = (struct fake_fault){1, IBV_WC_REM_OP_ERR};
	assert_int_equal(write_all(&p, 1), 0);
	fake_run();
	assert_int_equal(rxfer_poll(p.e.client, &(struct rxfer_done){0}, 1), -EIO);
	broken(&p, -EIO, "RDMA WRITE failed: IBV_WC_REM_OP_ERR");
}

/* Whatever the status is: that the port is down is known for sure, and explains it. */
static void a_port_is_down(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL, "global", "half");
	fake_live()->device[0].down = true;
	fake_live()->fail_wr = (struct fake_fault){1, IBV_WC_RETRY_EXC_ERR};
	assert_int_equal(write_all(&p, 1), 0);
	fake_run();
	assert_int_equal(rxfer_poll(p.e.client, &(struct rxfer_done){0}, 1), -ENOTCONN);
	engine_said("IBV_WC_RETRY_EXC_ERR");
	broken(&p, -ENOTCONN, ": port 1 of fake0 is not active; bring its link up");
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
	broken(&p, -ENOTCONN,
	       ": the peer closed the connection (disconnected); see what the peer says");
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

static void numbers_in_words(void **state)
{
	(void)state;
	assert_string_equal(rxfer_count(0, "run").s, "0 runs");
	assert_string_equal(rxfer_count(1, "run").s, "1 run");
	assert_string_equal(rxfer_count(2, "I/O").s, "2 I/Os");
	assert_string_equal(rxfer_count(1, "send entry").s, "1 send entry");
	assert_string_equal(rxfer_count(UINT64_MAX, "send entry").s,
			    "18446744073709551615 send entries");
	assert_string_equal(rxfer_size(0).s, "0 bytes");
	assert_string_equal(rxfer_size(1).s, "1 byte");
	assert_string_equal(rxfer_size(1023).s, "1023 bytes");
	assert_string_equal(rxfer_size(1024).s, "1.0 KiB");
	assert_string_equal(rxfer_size(100000).s, "97.7 KiB");
	assert_string_equal(rxfer_size(1 << 20).s, "1.0 MiB");
	assert_string_equal(rxfer_size(3ull << 39).s, "1572864.0 MiB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_registration_fails_in_the_middle),
		cmocka_unit_test(more_regions_than_the_device_has),
		cmocka_unit_test(the_reason_of_a_refusal),
		cmocka_unit_test(a_deregistration_fails),
		cmocka_unit_test(a_post_is_taken_in_part),
		cmocka_unit_test(a_drain_is_refused),
		cmocka_unit_test(a_recv_is_refused),
		cmocka_unit_test(a_wr_fails),
		cmocka_unit_test(the_names_are_in_order),
		cmocka_unit_test(a_flushed_recv_is_seen_first),
		cmocka_unit_test(a_port_is_down),
		cmocka_unit_test(a_silent_read_fails),
		cmocka_unit_test(a_poll_fails),
		cmocka_unit_test(a_key_is_wrong),
		cmocka_unit_test(the_peer_says_goodbye),
		cmocka_unit_test(the_peer_closes),
		cmocka_unit_test(the_peer_falls_silent),
		cmocka_unit_test(closing_in_the_middle),
		cmocka_unit_test(numbers_in_words),
	};

	return cmocka_run_group_tests_name("unit_xfer_fail", tests, NULL, NULL);
}
