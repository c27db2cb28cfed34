/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The double's memory: keys, bounds, rights and domains, and who may touch what until when. */
#include <errno.h>
#include <string.h>
#include "fakehca/ends.h"

#define SIGNAL IBV_SEND_SIGNALED
#define LOCAL  IBV_ACCESS_LOCAL_WRITE
#define READ   IBV_ACCESS_REMOTE_READ
#define WRITE  IBV_ACCESS_REMOTE_WRITE

/* One WR with one SGE, all of it given. */
static void raw(struct ends *e, enum ibv_wr_opcode op, struct ibv_sge sge, uint64_t addr,
		uint32_t rkey)
{
	struct ibv_send_wr *bad, wr = {
					 .wr_id = 1,
					 .opcode = op,
					 .send_flags = SIGNAL,
					 .sg_list = &sge,
					 .num_sge = 1,
				 };

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	assert_int_equal(ibv_post_send(e->a.qp, &wr, &bad), 0);
	fake_run();
}

/* The WR ends in @status with these words; where the peer refused, its QP is in error, too. */
static void ended(struct ends *e, enum ibv_wc_status status, const char *words)
{
	ends_refused(words);
	end_expect(&e->a, 1, status);
	if (status == IBV_WC_REM_ACCESS_ERR)
		assert_int_equal(e->b.qp->state, IBV_QPS_ERR);
	assert_int_equal(e->a.qp->state, IBV_QPS_ERR);
	ends_close(e, 0);
}

static struct ibv_sge source(const struct ends *e, uint32_t len)
{
	return (struct ibv_sge){(uintptr_t)e->a.buf, len, e->a.mr->lkey};
}

/* ---- Keys ---- */

static void an_lkey_of_nothing(void **state)
{
	struct ibv_sge sge;
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	sge = source(&e, 64);
	sge.lkey += 1;
	raw(&e, IBV_WR_RDMA_WRITE, sge, (uintptr_t)e.b.buf, e.b.mr->rkey);
	ended(&e, IBV_WC_LOC_PROT_ERR, "opens no region");
}

static void an_rkey_is_no_lkey(void **state)
{
	struct ibv_sge sge;
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	sge = source(&e, 64);
	sge.lkey = e.a.mr->rkey;
	raw(&e, IBV_WR_RDMA_WRITE, sge, (uintptr_t)e.b.buf, e.b.mr->rkey);
	ended(&e, IBV_WC_LOC_PROT_ERR, "lkey");
}

static void an_lkey_is_no_rkey(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	raw(&e, IBV_WR_RDMA_WRITE, source(&e, 64), (uintptr_t)e.b.buf, e.b.mr->lkey);
	ended(&e, IBV_WC_REM_ACCESS_ERR, "rkey");
}

/* The slot is in use again, by memory at the same place; the old key opens nothing. */
static void the_key_of_a_region_that_is_gone(void **state)
{
	struct ends e;
	uint32_t old;

	(void)state;
	ends_open(&e, NULL, NULL);
	old = e.b.mr->rkey;
	ibv_dereg_mr(e.b.mr);
	e.b.mr = ibv_reg_mr(e.b.pd, e.b.buf, ENDS_BYTES, LOCAL | WRITE);
	assert_int_not_equal(old, e.b.mr->rkey);
	raw(&e, IBV_WR_RDMA_WRITE, source(&e, 64), (uintptr_t)e.b.buf, old);
	ended(&e, IBV_WC_REM_ACCESS_ERR, "opens no region");
}

/* ---- Domains ---- */

static void a_local_region_of_another_pd(void **state)
{
	struct ibv_sge sge;
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	sge = source(&e, 64);
	sge.lkey = e.b.mr->lkey;
	sge.addr = (uintptr_t)e.b.buf;
	raw(&e, IBV_WR_RDMA_WRITE, sge, (uintptr_t)e.b.buf, e.b.mr->rkey);
	ended(&e, IBV_WC_LOC_PROT_ERR, "another PD");
}

static void a_remote_region_of_another_pd(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	raw(&e, IBV_WR_RDMA_WRITE, source(&e, 64), (uintptr_t)e.a.buf, e.a.mr->rkey);
	ended(&e, IBV_WC_REM_ACCESS_ERR, "another PD");
}

/* ---- Bounds ---- */

static void one_byte_behind_the_source(void **state)
{
	struct ibv_sge sge;
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	sge = source(&e, 64);
	sge.addr += ENDS_BYTES - 63;
	raw(&e, IBV_WR_RDMA_WRITE, sge, (uintptr_t)e.b.buf, e.b.mr->rkey);
	ended(&e, IBV_WC_LOC_PROT_ERR, "outside");
}

static void one_byte_before_the_target(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	raw(&e, IBV_WR_RDMA_WRITE, source(&e, 64), (uintptr_t)e.b.buf - 1, e.b.mr->rkey);
	ended(&e, IBV_WC_REM_ACCESS_ERR, "outside");
}

/* Pieces are checked one by one: what fitted has moved, the byte too many stops it. */
static void bounds_hold_for_each_piece(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	memset(e.a.buf, 9, 4096);
	raw(&e, IBV_WR_RDMA_WRITE, source(&e, 2049), (uintptr_t)e.b.buf + ENDS_BYTES - 2048,
	    e.b.mr->rkey);
	assert_int_equal(e.b.buf[ENDS_BYTES - 1], 9);
	ended(&e, IBV_WC_REM_ACCESS_ERR, "outside");
}

static void nothing_has_no_bounds(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	assert_int_equal(end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 1, SIGNAL, ENDS_BYTES + 9, 0), 0);
	fake_run();
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	ends_close(&e, 0);
}

/* ---- Rights ---- */

static void open_with(struct ends *e, int access, bool iwarp)
{
	struct fake_config config = ends_config();
	struct ends_attr attr = ends_defaults();

	config.device[0].iwarp = iwarp;
	attr.access = access;
	ends_open(e, &config, &attr);
}

static void writing_needs_remote_write(void **state)
{
	struct ends e;

	(void)state;
	open_with(&e, LOCAL | READ, false);
	raw(&e, IBV_WR_RDMA_WRITE, source(&e, 64), (uintptr_t)e.b.buf, e.b.mr->rkey);
	ended(&e, IBV_WC_REM_ACCESS_ERR, "grants");
}

static void reading_needs_remote_read(void **state)
{
	struct ends e;

	(void)state;
	open_with(&e, LOCAL | WRITE, false);
	raw(&e, IBV_WR_RDMA_READ, source(&e, 64), (uintptr_t)e.b.buf, e.b.mr->rkey);
	ended(&e, IBV_WC_REM_ACCESS_ERR, "grants");
}

static void a_read_writes_its_sink(void **state)
{
	struct ends e;

	(void)state;
	open_with(&e, READ, false);
	raw(&e, IBV_WR_RDMA_READ, source(&e, 64), (uintptr_t)e.b.buf, e.b.mr->rkey);
	ended(&e, IBV_WC_LOC_PROT_ERR, "grants");
}

static void a_message_writes_its_recv(void **state)
{
	struct ends e;

	(void)state;
	open_with(&e, READ, false);
	end_recv(&e.b, 2, 0, 64);
	end_post(&e.a, NULL, IBV_WR_SEND, 1, SIGNAL, 0, 64);
	fake_run();
	end_expect(&e.b, 2, IBV_WC_LOC_PROT_ERR);
	ended(&e, IBV_WC_REM_OP_ERR, "grants");
}

/* On iWARP the answer to a READ is a WRITE by the peer. */
static void iwarp_reads_into_what_the_peer_may_write(void **state)
{
	struct ends e;

	(void)state;
	open_with(&e, LOCAL | READ, true);
	raw(&e, IBV_WR_RDMA_READ, source(&e, 64), (uintptr_t)e.b.buf, e.b.mr->rkey);
	ended(&e, IBV_WC_LOC_PROT_ERR, "grants");
	open_with(&e, LOCAL | READ | WRITE, true);
	raw(&e, IBV_WR_RDMA_READ, source(&e, 64), (uintptr_t)e.b.buf, e.b.mr->rkey);
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	ends_close(&e, 0);
}

static void rights_that_make_no_sense(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	assert_null(ibv_reg_mr(e.a.pd, e.a.buf, 64, WRITE));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_mr(e.a.pd, e.a.buf, 0, LOCAL));
	assert_int_equal(errno, EINVAL);
	ends_close(&e, 0);
}

/* ---- Time ---- */

static void a_read_fills_its_sink_when_it_is_executed(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	memset(e.b.buf, 3, 2048);
	end_post(&e.a, &e.b, IBV_WR_RDMA_READ, 1, SIGNAL, 0, 2048);
	assert_int_equal(e.a.buf[0], 0);
	fake_step(); /* asks */
	assert_int_equal(e.a.buf[0], 0);
	fake_step();
	assert_int_equal(e.a.buf[1023], 3);
	assert_int_equal(e.a.buf[1024], 0);
	fake_step();
	assert_int_equal(e.a.buf[2047], 3);
	assert_int_equal(end_expect(&e.a, 1, IBV_WC_SUCCESS).byte_len, 2048);
	ends_close(&e, 0);
}

/* Before delivery the source may still change, though nobody should; what counts is what leaves. */
static void a_source_is_read_at_delivery(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 1, SIGNAL, 0, 64);
	e.a.buf[0] = 4;
	fake_run();
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(e.b.buf[0], 4);
	ends_close(&e, 0);
}

/* A buffer must rest until a completion proves its WR, even one of a later WR. */
static void reusing_a_buffer_unproven(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	end_recv(&e.b, 2, 512, 64);
	end_post(&e.a, NULL, IBV_WR_SEND, 1, 0, 0, 64);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 3, SIGNAL, 128, 64);
	fake_run();
	end_expect(&e.b, 2, IBV_WC_SUCCESS); /* it has arrived: this proves nothing to us */
	e.a.buf[7]++;
	assert_int_equal(fake_violations(), 0);
	end_expect(&e.a, 3, IBV_WC_SUCCESS);
	ends_violated("reused unproven");
	ends_close(&e, 1);
}

static void reusing_a_buffer_proven(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 1, 0, 0, 3000);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 2, SIGNAL, 4096, 64);
	fake_run();
	end_expect(&e.a, 2, IBV_WC_SUCCESS);
	memset(e.a.buf, 1, ENDS_BYTES);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 3, SIGNAL, 0, 64);
	fake_run();
	end_expect(&e.a, 3, IBV_WC_SUCCESS);
	ends_close(&e, 0);
}

static void deregistering_a_queued_source(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 1, SIGNAL, 0, 64);
	ibv_dereg_mr(e.a.mr);
	e.a.mr = NULL;
	ends_violated("1 WRs that are not proven done");
	fake_run();
	end_expect(&e.a, 1, IBV_WC_LOC_PROT_ERR);
	ends_close(&e, 1);
}

/* Delivered is not proven: the NIC may have to send it once more. */
static void deregistering_a_delivered_source(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 1, SIGNAL, 0, 64);
	fake_run();
	ibv_dereg_mr(e.a.mr);
	e.a.mr = NULL;
	ends_violated("not proven done");
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	ends_close(&e, 1);
}

static void deregistering_in_the_middle(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	memset(e.a.buf, 6, 4096);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 1, SIGNAL, 0, 4096);
	fake_step();
	ibv_dereg_mr(e.b.mr); /* under the peer's WR */
	e.b.mr = NULL;
	ends_violated("not proven done");
	fake_run();
	end_expect(&e.a, 1, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(e.b.buf[1023], 6);
	assert_int_equal(e.b.buf[1024], 0);
	ends_close(&e, 1);
}

/* A message behind a WRITE says that it has arrived, long before this is proven to who posted it.
 */
static void deregistering_what_was_written(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	fake_live()->sq_delay = 100;
	memset(e.a.buf, 6, 3000);
	end_recv(&e.b, 2, 4096, 64);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 1, 0, 0, 3000);
	end_post(&e.a, NULL, IBV_WR_SEND, 3, SIGNAL, 0, 64);
	for (int i = 0; i < 10; i++)
		fake_step();
	end_expect(&e.b, 2, IBV_WC_SUCCESS);
	assert_int_equal(e.b.buf[2999], 6);
	assert_int_equal(fake_stats()->sq_cqes, 0);
	ibv_dereg_mr(e.b.mr);
	e.b.mr = NULL;
	fake_run();
	end_expect(&e.a, 3, IBV_WC_SUCCESS);
	ends_close(&e, 0);
}

static void deregistering_a_posted_recv(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	end_recv(&e.b, 2, 0, 64);
	ibv_dereg_mr(e.b.mr);
	e.b.mr = NULL;
	ends_violated("not proven done");
	end_post(&e.a, NULL, IBV_WR_SEND, 1, SIGNAL, 0, 64);
	fake_run();
	end_expect(&e.b, 2, IBV_WC_LOC_PROT_ERR);
	end_expect(&e.a, 1, IBV_WC_REM_OP_ERR);
	ends_close(&e, 1);
}

/* With the QP gone nobody can touch it. */
static void deregistering_after_the_qp(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	end_recv(&e.a, 2, 0, 64);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 1, 0, 0, 64);
	end_post(&e.a, &e.b, IBV_WR_RDMA_WRITE, 1, SIGNAL, 0, 64);
	fake_step();
	rdma_destroy_qp(e.a.id);
	ibv_dereg_mr(e.a.mr);
	ibv_dereg_mr(e.b.mr);
	e.a.mr = e.b.mr = NULL;
	ends_close(&e, 0);
}

/* ---- Limits ---- */

static void registrations_fail_when_told_to(void **state)
{
	struct fake_config config = ends_config();
	struct ends e;

	(void)state;
	config.device[0].max_mr = 2;
	ends_open(&e, &config, NULL);
	assert_null(ibv_reg_mr(e.a.pd, e.a.buf, 64, LOCAL));
	assert_int_equal(errno, ENOMEM);
	ends_refused("2 regions of 2");
	fake_live()->fail_reg_mr = (struct fake_fault){1, EFAULT};
	assert_null(ibv_reg_mr(e.a.pd, e.a.buf, 64, LOCAL));
	assert_int_equal(errno, EFAULT);
	fake_live()->fail_dereg_mr = (struct fake_fault){1, EBUSY};
	assert_int_equal(ibv_dereg_mr(e.a.mr), EBUSY);
	ends_close(&e, 0);
}

/* Far more regions than there were slots for; each opens its own memory only. */
static void many_regions(void **state)
{
	struct ibv_mr *mr[500];
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	for (unsigned int i = 0; i < 500; i++) {
		mr[i] = ibv_reg_mr(e.b.pd, e.b.buf + i, 1, LOCAL | WRITE);
		assert_non_null(mr[i]);
	}
	raw(&e, IBV_WR_RDMA_WRITE, source(&e, 1), (uintptr_t)e.b.buf + 300, mr[300]->rkey);
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	raw(&e, IBV_WR_RDMA_WRITE, source(&e, 1), (uintptr_t)e.b.buf + 300, mr[301]->rkey);
	end_expect(&e.a, 1, IBV_WC_REM_ACCESS_ERR);
	for (unsigned int i = 0; i < 500; i++)
		assert_int_equal(ibv_dereg_mr(mr[i]), 0);
	ends_close(&e, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_lkey_of_nothing),
		cmocka_unit_test(an_rkey_is_no_lkey),
		cmocka_unit_test(an_lkey_is_no_rkey),
		cmocka_unit_test(the_key_of_a_region_that_is_gone),
		cmocka_unit_test(a_local_region_of_another_pd),
		cmocka_unit_test(a_remote_region_of_another_pd),
		cmocka_unit_test(one_byte_behind_the_source),
		cmocka_unit_test(one_byte_before_the_target),
		cmocka_unit_test(bounds_hold_for_each_piece),
		cmocka_unit_test(nothing_has_no_bounds),
		cmocka_unit_test(writing_needs_remote_write),
		cmocka_unit_test(reading_needs_remote_read),
		cmocka_unit_test(a_read_writes_its_sink),
		cmocka_unit_test(a_message_writes_its_recv),
		cmocka_unit_test(iwarp_reads_into_what_the_peer_may_write),
		cmocka_unit_test(rights_that_make_no_sense),
		cmocka_unit_test(a_read_fills_its_sink_when_it_is_executed),
		cmocka_unit_test(a_source_is_read_at_delivery),
		cmocka_unit_test(reusing_a_buffer_unproven),
		cmocka_unit_test(reusing_a_buffer_proven),
		cmocka_unit_test(deregistering_a_queued_source),
		cmocka_unit_test(deregistering_a_delivered_source),
		cmocka_unit_test(deregistering_in_the_middle),
		cmocka_unit_test(deregistering_what_was_written),
		cmocka_unit_test(deregistering_a_posted_recv),
		cmocka_unit_test(deregistering_after_the_qp),
		cmocka_unit_test(registrations_fail_when_told_to),
		cmocka_unit_test(many_regions),
	};

	return cmocka_run_group_tests_name("unit_fakehca_memory", tests, NULL, NULL);
}
