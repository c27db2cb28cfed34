/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "ends.h"
#include "fake_internal.h"

struct fake_config ends_config(void)
{
	struct fake_config config;

	fake_config_init(&config);
	return config;
}

struct ends_attr ends_defaults(void)
{
	return (struct ends_attr){
		.sq = 8,
		.rq = 8,
		.sge = 4,
		.inline_data = 64,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
		.rd_atomic = 4,
	};
}

/* ---- One end ---- */

void end_make(struct end *end, struct ibv_context *verbs, const struct ends_attr *attr)
{
	uint32_t entries = attr->cq ? attr->cq : attr->sq + attr->rq;

	end->events = rdma_create_event_channel();
	end->pd = ibv_alloc_pd(verbs);
	end->channel = ibv_create_comp_channel(verbs);
	assert_true(end->events && end->pd && end->channel);
	end->cq = ibv_create_cq(verbs, (int)entries, end, end->channel, 0);
	end->buf = calloc(1, ENDS_BYTES);
	assert_true(end->cq && end->buf);
	end->mr = ibv_reg_mr(end->pd, end->buf, ENDS_BYTES, attr->access);
	assert_non_null(end->mr);
}

int end_make_qp(struct end *end, const struct ends_attr *attr)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = attr->sig_all,
		.cap = {attr->sq, attr->rq, attr->sge, attr->sge, attr->inline_data},
	};
	int rc = rdma_create_qp(end->id, end->pd, &init);

	end->qp = end->id->qp;
	end->cap = init.cap;
	return rc;
}

void end_drop(struct end *end)
{
	if (end->id && end->id->qp)
		rdma_destroy_qp(end->id);
	if (end->id)
		rdma_destroy_id(end->id);
	if (end->mr)
		ibv_dereg_mr(end->mr);
	if (end->cq)
		ibv_destroy_cq(end->cq);
	if (end->channel)
		ibv_destroy_comp_channel(end->channel);
	if (end->pd)
		ibv_dealloc_pd(end->pd);
	if (end->events)
		rdma_destroy_event_channel(end->events);
	free(end->buf);
	*end = (struct end){0};
}

/* ---- Connecting ---- */

struct rdma_cm_id *ends_listen(struct end *end, struct sockaddr_storage *addr)
{
	struct rdma_cm_id *id = NULL;

	fake_net_address(fake_context(end->pd->context)->config, addr);
	assert_int_equal(rdma_create_id(end->events, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)addr), 0);
	assert_int_equal(rdma_listen(id, 4), 0);
	((struct sockaddr_in *)addr)->sin_port = rdma_get_src_port(id);
	return id;
}

void ends_resolve(struct end *end, const struct sockaddr_storage *to)
{
	struct sockaddr_storage from, copy = *to;

	fake_net_address(fake_context(end->pd->context)->config, &from);
	assert_int_equal(rdma_create_id(end->events, &end->id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(end->id, (struct sockaddr *)&from,
					   (struct sockaddr *)&copy, 1000),
			 0);
	ends_event(end, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(end->id, 1000), 0);
	ends_event(end, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

struct rdma_cm_id *ends_event(struct end *end, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev = NULL;
	struct rdma_cm_id *id;

	assert_int_equal(rdma_get_cm_event(end->events, &ev), 0);
	assert_string_equal(rdma_event_str(ev->event), rdma_event_str(type));
	id = ev->id;
	rdma_ack_cm_event(ev);
	return id;
}

void ends_almost(struct ends *e, const struct fake_config *config, const struct ends_attr *attr)
{
	struct fake_config default_config = ends_config();
	struct ends_attr default_attr = ends_defaults();
	struct sockaddr_storage addr;
	int n;

	fake_start(config ? config : &default_config);
	attr = attr ? attr : &default_attr;
	*e = (struct ends){.devices = rdma_get_devices(&n)};
	end_make(&e->a, e->devices[0], attr);
	end_make(&e->b, e->devices[0], attr);
	e->listener = ends_listen(&e->b, &addr);
	ends_resolve(&e->a, &addr);
	assert_int_equal(end_make_qp(&e->a, attr), 0);
}

void ends_open(struct ends *e, const struct fake_config *config, const struct ends_attr *attr)
{
	struct ends_attr default_attr = ends_defaults();
	struct rdma_conn_param param;

	attr = attr ? attr : &default_attr;
	param = (struct rdma_conn_param){
		.initiator_depth = attr->rd_atomic,
		.responder_resources = attr->rd_atomic,
		.rnr_retry_count = attr->rnr_retry,
	};
	ends_almost(e, config, attr);
	assert_int_equal(rdma_connect(e->a.id, &param), 0);
	e->b.id = ends_event(&e->b, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(end_make_qp(&e->b, attr), 0);
	assert_int_equal(rdma_accept(e->b.id, &param), 0);
	ends_event(&e->a, RDMA_CM_EVENT_ESTABLISHED);
	ends_event(&e->b, RDMA_CM_EVENT_ESTABLISHED);
}

void ends_close(struct ends *e, unsigned int violations)
{
	char leaks[256];

	if (e->listener)
		rdma_destroy_id(e->listener);
	end_drop(&e->a);
	end_drop(&e->b);
	rdma_free_devices(e->devices);
	if (fake_leaks(leaks, sizeof(leaks)))
		fail_msg("left behind: %s", leaks);
	if (fake_violations() != violations)
		fail_msg("%u violations, not %u: %s", fake_violations(), violations,
			 fake_violations() ? fake_violation(0) : "");
}

/* ---- Posting and polling ---- */

int end_post(struct end *from, const struct end *to, enum ibv_wr_opcode op, uint64_t wr_id,
	     unsigned int flags, uint64_t at, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)from->buf + at, len, from->mr->lkey};
	struct ibv_send_wr *bad = NULL, wr = {
						.wr_id = wr_id,
						.sg_list = &sge,
						.num_sge = len ? 1 : 0,
						.opcode = op,
						.send_flags = flags,
						.imm_data = 0x01020304,
					};
	int rc;

	if (to) {
		wr.wr.rdma.remote_addr = (uintptr_t)to->buf + at;
		wr.wr.rdma.rkey = to->mr->rkey;
	}
	rc = ibv_post_send(from->qp, &wr, &bad);
	assert_ptr_equal(bad, rc ? &wr : NULL);
	return rc;
}

int end_recv(struct end *end, uint64_t wr_id, uint64_t at, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)end->buf + at, len, end->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	return ibv_post_recv(end->qp, &wr, &bad);
}

bool end_poll(struct end *end, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(end->cq, 1, wc);

	assert_in_range(n, 0, 1);
	return n == 1;
}

struct ibv_wc end_expect(struct end *end, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = {0};

	if (!end_poll(end, &wc))
		fail_msg("no completion of WR %llu", (unsigned long long)wr_id);
	if (wc.wr_id != wr_id || wc.status != status)
		fail_msg("a completion of WR %llu with status %d (%s), not of %llu with %d",
			 (unsigned long long)wc.wr_id, wc.status, fake_reason(),
			 (unsigned long long)wr_id, status);
	assert_int_equal(wc.qp_num, end->qp->qp_num);
	return wc;
}

void end_expect_nothing(struct end *end)
{
	struct ibv_wc wc;

	if (end_poll(end, &wc))
		fail_msg("a completion of WR %llu with status %d", (unsigned long long)wc.wr_id,
			 wc.status);
}

/* ---- Records ---- */

void ends_violated(const char *words)
{
	unsigned int n = fake_violations();
	const char *text = n ? fake_violation(n - 1) : "none";

	if (!text || !strstr(text, words))
		fail_msg("violation: %s; wanted: %s", text ? text : "too many", words);
}

void ends_refused(const char *words)
{
	if (!strstr(fake_reason(), words))
		fail_msg("refused: %s; wanted: %s", fake_reason(), words);
}
