/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The double's mkeys: what a list opens and what not, its life, and posting by ibv_wr_start(). */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <string.h>
#include "fakehca/ends.h"

#define SIGNAL	 IBV_SEND_SIGNALED
#define LOCAL	 IBV_ACCESS_LOCAL_WRITE
#define READ	 IBV_ACCESS_REMOTE_READ
#define WRITE	 IBV_ACCESS_REMOTE_WRITE
#define EACH	 100u
#define APART	 1000u /* from one piece to the next in a buffer */
#define SCATTERS 1u
#define PLAIN	 2u

/*
 * struct one - a QP that is connected to itself, over the first end's memory: its mkeys are its
 * own and its peer's. WR 10 is a UMR, 20 a LOCAL_INV, 1 data.
 */
struct one {
	struct ends e;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct mlx5dv_mkey *mkey;
	struct ibv_sge piece[8];
};

static struct mlx5dv_mkey *make(struct ibv_pd *pd, uint32_t flags, uint16_t max)
{
	struct mlx5dv_mkey_init_attr attr = {.pd = pd,
					     .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
							     flags,
					     .max_entries = max};
	struct mlx5dv_mkey *mkey = mlx5dv_create_mkey(&attr);

	if (mkey)
		assert_int_equal(attr.max_entries, (max + 3) / 4 * 4);
	return mkey;
}

static struct ibv_qp *make_qp(struct end *end, uint32_t inline_data, unsigned int how)
{
	struct ibv_qp_init_attr_ex ex = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = {8, 2, 2, 1, inline_data},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = end->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ};
	struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
					 .send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST};

	if (!(how & SCATTERS)) {
		dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
		dv.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
	}
	if (how & PLAIN)
		dv.send_ops_flags = 0;
	return mlx5dv_create_qp(end->pd->context, &ex, &dv);
}

static void connect_to_itself(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = LOCAL | READ | WRITE};

	assert_int_equal(
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .dest_qp_num = qp->qp_num, .max_dest_rd_atomic = 4};
	attr.ah_attr.is_global = 1;
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
			 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .max_rd_atomic = 4};
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					       IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

static struct fake_config config_mlx5(void)
{
	struct fake_config config = ends_config();

	config.device[0].mlx5 = true;
	return config;
}

static void open_one(struct one *o, uint32_t flags, uint32_t inline_data, unsigned int how)
{
	const struct fake_config config = config_mlx5();
	struct ends_attr attr = ends_defaults();

	attr.access = LOCAL | READ | WRITE;
	ends_open(&o->e, &config, &attr);
	o->qp = make_qp(&o->e.a, inline_data, how);
	assert_non_null(o->qp);
	o->ex = ibv_qp_to_qp_ex(o->qp);
	connect_to_itself(o->qp);
	o->mkey = make(o->e.a.pd, flags, 4);
	assert_non_null(o->mkey);
	for (uint32_t i = 0; i < 8; i++)
		o->piece[i] =
			(struct ibv_sge){(uintptr_t)o->e.a.buf + i * APART, EACH, o->e.a.mr->lkey};
}

static void close_one(struct one *o, unsigned int violations)
{
	assert_int_equal(ibv_destroy_qp(o->qp), 0);
	if (o->mkey)
		assert_int_equal(mlx5dv_destroy_mkey(o->mkey), 0);
	ends_close(&o->e, violations);
}

/* ---- Posting ---- */

static void put_umr(struct one *o, uint16_t n, uint32_t access)
{
	o->ex->wr_id = 10;
	o->ex->wr_flags = SIGNAL | IBV_SEND_INLINE;
	mlx5dv_wr_mr_list(mlx5dv_qp_ex_from_ibv_qp_ex(o->ex), o->mkey, access, n, o->piece);
}

static int post_umr(struct one *o, uint16_t n, uint32_t access)
{
	ibv_wr_start(o->ex);
	put_umr(o, n, access);
	return ibv_wr_complete(o->ex);
}

static void completes(struct one *o, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	fake_run();
	if (!end_poll(&o->e.a, &wc))
		fail_msg("no completion of WR %llu", (unsigned long long)wr_id);
	assert_int_equal(wc.wr_id, wr_id);
	if (wc.status != status)
		fail_msg("status %d (%s)", wc.status, fake_reason());
	if (status == IBV_WC_SUCCESS && wr_id == 10)
		assert_int_equal(wc.opcode, MLX5DV_WC_UMR);
	if (status == IBV_WC_SUCCESS && wr_id == 20)
		assert_int_equal(wc.opcode, IBV_WC_LOCAL_INV);
}

static void give_list(struct one *o, uint16_t n, uint32_t access)
{
	assert_int_equal(post_umr(o, n, access), 0);
	completes(o, 10, IBV_WC_SUCCESS);
}

static void post_inv(struct one *o, uint32_t key)
{
	struct ibv_send_wr wr = {.wr_id = 20,
				 .opcode = IBV_WR_LOCAL_INV,
				 .send_flags = SIGNAL,
				 .invalidate_rkey = key},
			   *bad;

	assert_int_equal(ibv_post_send(o->qp, &wr, &bad), 0);
}

/* Data between the key's list and as many bytes behind the pieces. */
static void post_data(struct one *o, enum ibv_wr_opcode op, bool list_is_remote, uint64_t at,
		      uint32_t len)
{
	uint8_t *plain = o->e.a.buf + 8 * APART;
	struct ibv_sge sge = {(uintptr_t)plain, len, o->e.a.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1,
				 .opcode = op,
				 .send_flags = SIGNAL,
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;

	wr.wr.rdma.remote_addr = list_is_remote ? at : (uintptr_t)plain;
	wr.wr.rdma.rkey = list_is_remote ? o->mkey->rkey : o->e.a.mr->rkey;
	if (!list_is_remote)
		sge = (struct ibv_sge){at, len, o->mkey->lkey};
	assert_int_equal(ibv_post_send(o->qp, &wr, &bad), 0);
}

static void refuses(struct one *o, enum ibv_wr_opcode op, bool list_is_remote, uint64_t at,
		    uint32_t len, const char *words)
{
	post_data(o, op, list_is_remote, at, len);
	completes(o, 1, list_is_remote ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR);
	ends_refused(words);
}

/* ---- What a list opens ---- */

static void either_side_either_way(void **state)
{
	static const struct {
		enum ibv_wr_opcode op;
		bool remote, into_list;
	} cases[] = {
		{IBV_WR_RDMA_WRITE, true, true},
		{IBV_WR_RDMA_READ, true, false},
		{IBV_WR_RDMA_READ, false, true},
		{IBV_WR_RDMA_WRITE, false, false},
	};
	struct one o;
	uint8_t *buf;

	(void)state;
	for (uint32_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		open_one(&o, 0, 0, 0);
		buf = o.e.a.buf;
		for (uint32_t i = 0; i < ENDS_BYTES; i++)
			buf[i] = (uint8_t)(i * 13 + i / 251);
		give_list(&o, 3, LOCAL | READ | WRITE);
		post_data(&o, cases[c].op, cases[c].remote, 50, 200); /* parts of all pieces */
		completes(&o, 1, IBV_WC_SUCCESS);
		assert_memory_equal(buf + 50, buf + 8 * APART, 50);
		assert_memory_equal(buf + APART, buf + 8 * APART + 50, 100);
		assert_memory_equal(buf + 2 * APART, buf + 8 * APART + 150, 50);
		assert_int_equal(buf[49], (uint8_t)(49 * 13));
		assert_int_equal(buf[100], (uint8_t)(100 * 13));
		assert_int_equal(buf[2 * APART + 50], (uint8_t)(2050 * 13 + 8));
		assert_int_equal(fake_stats()->umrs, 1);
		close_one(&o, 0);
	}
}

static void bounds_and_rights(void **state)
{
	struct one o;

	(void)state;
	open_one(&o, 0, 0, 0);
	give_list(&o, 2, READ);
	refuses(&o, IBV_WR_RDMA_READ, true, 1, 200, "is outside [0, +200)");
	close_one(&o, 0);
	open_one(&o, 0, 0, 0);
	give_list(&o, 2, READ);
	refuses(&o, IBV_WR_RDMA_READ, true, UINT64_MAX, 1, "is outside [0, +200)");
	close_one(&o, 0);
	open_one(&o, 0, 0, 0);
	give_list(&o, 2, READ);
	refuses(&o, IBV_WR_RDMA_WRITE, true, 0, 200, "grants 0x4, not 0x2");
	close_one(&o, 0);
	open_one(&o, 0, 0, 0);
	give_list(&o, 2, READ);
	refuses(&o, IBV_WR_RDMA_READ, false, 0, 200, "grants 0x4, not 0x1");
	close_one(&o, 0);
	open_one(&o, 0, 0, 0);
	refuses(&o, IBV_WR_RDMA_READ, true, 0, 1, "opens no list");
	close_one(&o, 0);
}

/* ---- Its life ---- */

static void revoked(void **state)
{
	struct one o;

	(void)state;
	open_one(&o, 0, 0, 0);
	give_list(&o, 2, READ);
	post_inv(&o, o.mkey->lkey);
	completes(&o, 20, IBV_WC_SUCCESS);
	assert_int_equal(fake_stats()->umr_invalidates, 1);
	refuses(&o, IBV_WR_RDMA_READ, true, 0, 200, "opens no list");
	close_one(&o, 0);
}

static void revoked_twice(void **state)
{
	struct one o;

	(void)state;
	for (int granted = 0; granted < 2; granted++) {
		open_one(&o, 0, 0, 0);
		if (granted) {
			give_list(&o, 2, READ);
			post_inv(&o, o.mkey->lkey);
			completes(&o, 20, IBV_WC_SUCCESS);
		}
		post_inv(&o, o.mkey->lkey);
		completes(&o, 20, IBV_WC_LOC_QP_OP_ERR);
		ends_violated(granted ? "key revoked twice" : "key revoked that was never granted");
		close_one(&o, 1);
	}
}

static void given_two_lists(void **state)
{
	struct one o;

	(void)state;
	open_one(&o, 0, 0, 0);
	give_list(&o, 2, READ);
	give_list(&o, 3, READ);
	ends_violated("is given a list, and has one");
	close_one(&o, 1);
}

/* Who sends again reads again: an unproven WR's own memory must stay what it is. */
static void changed_under_a_wr(void **state)
{
	struct one o;

	(void)state;
	for (int proven = 0; proven < 2; proven++) {
		open_one(&o, 0, 0, 0);
		give_list(&o, 2, 0);
		post_data(&o, IBV_WR_RDMA_WRITE, false, 0, 200);
		if (proven)
			completes(&o, 1, IBV_WC_SUCCESS);
		post_inv(&o, o.mkey->lkey);
		fake_run();
		if (!proven)
			ends_violated("which is not proven done, has it as its memory");
		close_one(&o, !proven);
	}
}

static void tags(void **state)
{
	struct one o;
	uint32_t old;

	(void)state;
	open_one(&o, MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG, 0, 0);
	give_list(&o, 2, READ);
	old = o.mkey->lkey;
	post_inv(&o, old);
	completes(&o, 20, IBV_WC_SUCCESS);
	o.mkey->lkey = o.mkey->rkey = old + 1;
	give_list(&o, 2, READ);
	post_data(&o, IBV_WR_RDMA_READ, true, 0, 200);
	completes(&o, 1, IBV_WC_SUCCESS);
	o.mkey->rkey = old;
	refuses(&o, IBV_WR_RDMA_READ, true, 0, 200, "opens no list");
	o.mkey->rkey = o.mkey->lkey;
	close_one(&o, 0);
}

static void no_tags(void **state)
{
	const struct fake_config config = config_mlx5();
	struct one o;

	(void)state;
	open_one(&o, 0, 0, 0);
	o.mkey->lkey = o.mkey->rkey = o.mkey->lkey + 1;
	assert_int_equal(post_umr(&o, 1, READ), EOPNOTSUPP);
	ends_refused("a tag, of an mkey without");
	fake_live()->device[0].mkey_tagless = true;
	assert_null(make(o.e.a.pd, MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG, 1));
	assert_int_equal(errno, EOPNOTSUPP);
	*fake_live() = config;
	close_one(&o, 0);
}

static void a_region_in_a_list(void **state)
{
	struct ibv_mr *mr;
	struct one o;

	(void)state;
	open_one(&o, 0, 0, 0);
	mr = ibv_reg_mr(o.e.a.pd, o.e.a.buf, EACH, LOCAL);
	o.piece[0].lkey = mr->lkey;
	give_list(&o, 1, READ);
	assert_int_equal(ibv_dereg_mr(mr), EBUSY);
	ends_violated("1 windows or lists are bound to the region");
	assert_int_equal(mlx5dv_destroy_mkey(o.mkey), 0);
	o.mkey = NULL;
	assert_int_equal(ibv_dereg_mr(mr), 0);
	close_one(&o, 1);
}

static void another_domain(void **state)
{
	struct one o;

	(void)state;
	open_one(&o, 0, 0, 0);
	o.piece[1].lkey = o.e.b.mr->lkey;
	assert_int_equal(post_umr(&o, 2, READ), 0);
	completes(&o, 10, IBV_WC_MW_BIND_ERR);
	ends_refused("is of another PD");
	close_one(&o, 0);
	open_one(&o, 0, 0, 0);
	assert_int_equal(mlx5dv_destroy_mkey(o.mkey), 0);
	o.mkey = make(o.e.b.pd, 0, 4);
	assert_int_equal(post_umr(&o, 2, READ), 0);
	completes(&o, 10, IBV_WC_MW_BIND_ERR);
	ends_refused("a UMR of an mkey of another PD");
	close_one(&o, 0);
}

/* ---- Posting ---- */

static void room_for_pieces(void **state)
{
	struct one o;

	(void)state;
	open_one(&o, 0, 0, 0);
	assert_int_equal(post_umr(&o, 5, READ), ENOMEM);
	ends_refused("5 pieces, the QP has room for 4");
	give_list(&o, 4, READ);
	close_one(&o, 0);
	open_one(&o, 0, 16 * 5 - 4, 0);
	assert_int_equal(post_umr(&o, 5, READ), 0);
	completes(&o, 10, IBV_WC_MW_BIND_ERR);
	ends_refused("a UMR of 5 pieces, the mkey has room for 4");
	close_one(&o, 0);
}

/* All of a batch or nothing. */
static void a_batch(void **state)
{
	struct ibv_sge sge;
	struct one o;

	(void)state;
	open_one(&o, 0, 0, 0);
	sge = (struct ibv_sge){0, 200, o.mkey->lkey};
	for (int bad = 1; bad >= 0; bad--) {
		ibv_wr_start(o.ex);
		put_umr(&o, bad ? 5 : 2, LOCAL);
		o.ex->wr_id = 1;
		o.ex->wr_flags = SIGNAL;
		ibv_wr_rdma_read(o.ex, o.e.a.mr->rkey, (uintptr_t)o.e.a.buf + 8 * APART);
		ibv_wr_set_sge_list(o.ex, 1, &sge);
		assert_int_equal(ibv_wr_complete(o.ex), bad ? ENOMEM : 0);
		assert_int_equal(fake_sq_posted(o.qp), bad ? 0 : 2);
	}
	completes(&o, 10, IBV_WC_SUCCESS);
	completes(&o, 1, IBV_WC_SUCCESS);
	ibv_wr_start(o.ex);
	put_umr(&o, 2, LOCAL);
	ibv_wr_abort(o.ex);
	assert_int_equal(fake_sq_posted(o.qp), 0);
	for (int i = 0; i < 2; i++) {
		ibv_wr_start(o.ex);
		for (int k = 0; k < 5; k++) {
			o.ex->wr_id = 20;
			ibv_wr_local_inv(o.ex, o.mkey->lkey);
		}
		assert_int_equal(ibv_wr_complete(o.ex), i ? ENOMEM : 0);
	}
	assert_int_equal(fake_sq_posted(o.qp), 5);
	close_one(&o, 0);
}

static void not_as_the_driver_wants_it(void **state)
{
	struct one o;

	(void)state;
	open_one(&o, 0, 0, SCATTERS);
	o.ex->wr_flags = 0;
	ibv_wr_start(o.ex);
	mlx5dv_wr_mr_list(mlx5dv_qp_ex_from_ibv_qp_ex(o.ex), o.mkey, READ, 1, o.piece);
	assert_int_equal(ibv_wr_complete(o.ex), EOPNOTSUPP);
	ends_refused("without IBV_SEND_INLINE");
	o.mkey->rkey++;
	assert_int_equal(post_umr(&o, 1, READ), EINVAL);
	o.mkey->rkey--;
	give_list(&o, 1, READ);
	ends_violated("which may write small data into completions");
	assert_null(make_qp(&o.e.a, 0, PLAIN));
	assert_int_equal(errno, EOPNOTSUPP);
	close_one(&o, 1);
}

static void who_has_none(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, NULL, NULL);
	assert_false(mlx5dv_is_supported(e.a.pd->context->device));
	assert_null(make(e.a.pd, 0, 1));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(make_qp(&e.a, 0, 0));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(ibv_qp_to_qp_ex(e.a.qp));
	ends_close(&e, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(either_side_either_way),
		cmocka_unit_test(bounds_and_rights),
		cmocka_unit_test(revoked),
		cmocka_unit_test(revoked_twice),
		cmocka_unit_test(given_two_lists),
		cmocka_unit_test(changed_under_a_wr),
		cmocka_unit_test(tags),
		cmocka_unit_test(no_tags),
		cmocka_unit_test(a_region_in_a_list),
		cmocka_unit_test(another_domain),
		cmocka_unit_test(room_for_pieces),
		cmocka_unit_test(a_batch),
		cmocka_unit_test(not_as_the_driver_wants_it),
		cmocka_unit_test(who_has_none),
	};

	return cmocka_run_group_tests_name("unit_fakehca_mkey", tests, NULL, NULL);
}
