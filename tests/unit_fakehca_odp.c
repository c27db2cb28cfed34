/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The double's memory on demand: what may be registered, what may be used, what advice it takes. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "fakehca/ends.h"

#define LOCAL	  IBV_ACCESS_LOCAL_WRITE
#define ON_DEMAND IBV_ACCESS_ON_DEMAND
#define PAGE	  65536 /* or more than one, whatever they are here */

/* Two pages, of which the second goes. */
static uint8_t *half_a_mapping(void)
{
	uint8_t *p =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	memset(p, 7, 2 * PAGE);
	assert_int_equal(munmap(p + PAGE, PAGE), 0);
	return p;
}

static void write_from(struct ends *e, const void *from, uint32_t len, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)from, len, lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .sg_list = &sge,
					 .num_sge = 1,
				 };

	wr.wr.rdma.remote_addr = (uintptr_t)e->b.buf;
	wr.wr.rdma.rkey = e->b.mr->rkey;
	assert_int_equal(ibv_post_send(e->a.qp, &wr, &bad), 0);
	fake_run();
}

static void what_is_mapped_can_be_used(void **state)
{
	uint8_t *p = half_a_mapping();
	struct ibv_mr *mr;
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	mr = ibv_reg_mr(e.a.pd, p, 2 * PAGE, LOCAL | ON_DEMAND);
	assert_non_null(mr);
	write_from(&e, p + PAGE - 64, 64, mr->lkey);
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	assert_memory_equal(e.b.buf, p, 64);
	write_from(&e, p + PAGE - 64, 65, mr->lkey);
	ends_refused("is not mapped");
	end_expect(&e.a, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(p, PAGE);
	ends_close(&e, 0);
}

static void all_of_the_address_space(void **state)
{
	uint8_t *p = half_a_mapping();
	struct ibv_mr *mr;
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	mr = ibv_reg_mr(e.a.pd, NULL, SIZE_MAX, LOCAL | ON_DEMAND);
	assert_non_null(mr);
	write_from(&e, p, 64, mr->lkey);
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	write_from(&e, &e, 64, mr->lkey);
	end_expect(&e.a, 1, IBV_WC_SUCCESS);
	write_from(&e, p + PAGE, 1, mr->lkey);
	end_expect(&e.a, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(p, PAGE);
	ends_close(&e, 0);
}

static void refused(struct ends *e, void *addr, size_t len, int access, int err)
{
	assert_null(ibv_reg_mr(e->a.pd, addr, len, access));
	assert_int_equal(errno, err);
}

static void what_the_device_has_not(void **state)
{
	struct fake_config config = ends_config();
	struct ibv_device_attr_ex attr;
	struct ends e;

	(void)state;
	config.device[0].odp_implicit = false;
	ends_open(&e, &config, NULL);
	assert_int_equal(ibv_query_device_ex(e.a.id->verbs, NULL, &attr), 0);
	assert_int_equal(attr.odp_caps.general_caps, IBV_ODP_SUPPORT);
	assert_true(attr.orig_attr.max_qp > 0);
	refused(&e, NULL, SIZE_MAX, LOCAL | ON_DEMAND, EINVAL);
	refused(&e, NULL, SIZE_MAX, LOCAL, EINVAL);
	ends_close(&e, 0);
	config.device[0].odp = 0;
	ends_open(&e, &config, NULL);
	assert_int_equal(ibv_query_device_ex(e.a.id->verbs, NULL, &attr), 0);
	assert_int_equal(attr.odp_caps.general_caps, 0);
	assert_int_equal(attr.odp_caps.per_transport_caps.rc_odp_caps, 0);
	refused(&e, e.a.buf, 64, LOCAL | ON_DEMAND, EOPNOTSUPP);
	ends_close(&e, 0);
}

static int advise(struct ends *e, enum ibv_advise_mr_advice advice, const void *addr, uint32_t lkey)
{
	struct ibv_sge sge[2] = {{(uintptr_t)addr, 64, lkey}, {(uintptr_t)addr + 1, 64, lkey}};

	return ibv_advise_mr(e->a.pd, advice, IBV_ADVISE_MR_FLAG_FLUSH, sge, 2);
}

static void advice_is_for_what_is_paged(void **state)
{
	const enum ibv_advise_mr_advice read = IBV_ADVISE_MR_ADVICE_PREFETCH,
					write = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	uint8_t *p = half_a_mapping();
	struct ibv_mr *mr, *read_only;
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	mr = ibv_reg_mr(e.a.pd, p, 2 * PAGE, LOCAL | ON_DEMAND);
	read_only = ibv_reg_mr(e.a.pd, p, PAGE, ON_DEMAND);
	assert_int_equal(advise(&e, write, p, mr->lkey), 0);
	assert_int_equal(advise(&e, read, p, read_only->lkey), 0);
	assert_int_equal(fake_stats()->advices, 2);
	assert_int_equal(fake_stats()->prefetched, 256);
	assert_int_equal(advise(&e, write, p, read_only->lkey), EFAULT);
	ends_refused("grants");
	assert_int_equal(advise(&e, read, p + PAGE - 64, mr->lkey), EFAULT); /* its second piece */
	ends_refused("is not mapped");
	assert_int_equal(advise(&e, read, p + PAGE - 64, read_only->lkey), EFAULT);
	ends_refused("is outside");
	assert_int_equal(advise(&e, read, e.a.buf, e.a.mr->lkey), EINVAL);
	ends_refused("pages nothing");
	assert_int_equal(advise(&e, read, p, mr->lkey + 1), EFAULT);
	assert_int_equal(ibv_advise_mr(e.a.pd, read, 0, NULL, 0), EINVAL);
	assert_int_equal(fake_stats()->advices, 2);
	ibv_dereg_mr(mr);
	ibv_dereg_mr(read_only);
	munmap(p, PAGE);
	ends_close(&e, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_mapped_can_be_used),
		cmocka_unit_test(all_of_the_address_space),
		cmocka_unit_test(what_the_device_has_not),
		cmocka_unit_test(advice_is_for_what_is_paged),
	};

	return cmocka_run_group_tests_name("unit_fakehca_odp", tests, NULL, NULL);
}
