/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Devices, contexts, protection domains.
 *
 * Most of verbs.h is inline and calls through the context: poll_cq, req_notify_cq, post_send,
 * post_recv, alloc_mw and dealloc_mw through its ops, query_port, query_device_ex and advise_mr
 * through the struct verbs_context around it, which is looked for only where abi_compat carries the
 * mark of the extended interface.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include "fake_internal.h"

#undef ibv_query_port

struct fake_context *fake_context(struct ibv_context *context)
{
	for (unsigned int i = 0; i < FAKE_DEVICES; i++)
		if (&fake.context[i].verbs.context == context)
			return &fake.context[i];
	abort(); /* no context of ours: the program is lost */
}

static enum ibv_mtu mtu_code(uint32_t bytes)
{
	enum ibv_mtu code = IBV_MTU_256;

	while (code < IBV_MTU_4096 && (128u << code) < bytes)
		code++;
	return code;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		      size_t size)
{
	struct ibv_port_attr all = {0};
	const struct fake_device *d;

	fake_lock();
	d = fake_context(context)->config;
	all.state = d->down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
	all.phys_state = d->down ? 3 : 5;
	all.max_mtu = IBV_MTU_4096;
	all.active_mtu = mtu_code(d->mtu);
	all.max_msg_sz = d->max_msg_size;
	all.link_layer = d->infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
	fake_unlock();
	if (port != 1)
		return EINVAL;
	memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
	return 0;
}

static int query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	const struct fake_device *d;

	(void)input;
	memset(attr, 0, size);
	fake_lock();
	d = fake_context(context)->config;
	if (fake_odp(d))
		attr->odp_caps.general_caps = IBV_ODP_SUPPORT;
	if (fake_odp(d) && d->odp_implicit)
		attr->odp_caps.general_caps |= IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = fake_odp(d);
	fake_unlock();
	return ibv_query_device(context, &attr->orig_attr);
}

/* The entry point of programs from before struct verbs_context; nothing built today uses it. */
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	(void)context;
	(void)port;
	(void)attr;
	return ENOSYS;
}

static void make_context(struct fake_context *c, const struct fake_device *config)
{
	*c = (struct fake_context){.config = config};
	c->device.node_type = config->iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
	c->device.transport_type = config->iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	snprintf(c->device.name, sizeof(c->device.name), "%s", config->name);
	c->verbs.sz = sizeof(c->verbs);
	c->verbs.query_port = query_port;
	c->verbs.query_device_ex = query_device_ex;
	c->verbs.advise_mr = config->no_advice ? NULL : fake_advise_mr;
	c->verbs.context.device = &c->device;
	c->verbs.context.cmd_fd = c->verbs.context.async_fd = -1;
	c->verbs.context.num_comp_vectors = 1;
	c->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	c->verbs.context.ops.poll_cq = fake_poll_cq;
	c->verbs.context.ops.req_notify_cq = fake_req_notify_cq;
	c->verbs.context.ops.post_send = fake_post_send;
	c->verbs.context.ops.post_recv = fake_post_recv;
	c->verbs.context.ops.alloc_mw = fake_alloc_mw;
	c->verbs.context.ops.dealloc_mw = fake_dealloc_mw;
}

void fake_contexts_make(void)
{
	for (unsigned int i = 0; i < FAKE_DEVICES; i++) {
		fake_async_close(&fake.context[i]);
		make_context(&fake.context[i], &fake.config.device[i]);
		if (i < fake.config.devices)
			fake_async_open(&fake.context[i]);
	}
}

/* ---- The list of devices ---- */

struct device_list {
	struct ibv_context *at[FAKE_DEVICES + 1]; /* what the caller gets */
	struct fake_object object;
};

static void release_list(struct fake_object *object)
{
	free(FAKE_OF(object, struct device_list));
}

struct ibv_context **rdma_get_devices(int *n)
{
	struct device_list *list = calloc(1, sizeof(*list));
	int count = 0;

	if (!list)
		return NULL;
	fake_lock();
	for (unsigned int i = 0; i < fake.config.devices; i++)
		if (!fake.config.device[i].closed)
			list->at[count++] = &fake.context[i].verbs.context;
	if (n)
		*n = count;
	fake_object_add(&list->object, FAKE_DEVICE_LIST, release_list);
	fake_unlock();
	return list->at;
}

void rdma_free_devices(struct ibv_context **list)
{
	fake_lock();
	fake_object_del(&((struct device_list *)(void *)list)->object);
	fake_unlock();
}

/* libibverbs' own list has those that cannot be opened, too. */
struct ibv_device **ibv_get_device_list(int *n)
{
	struct ibv_device **list = calloc(FAKE_DEVICES + 1, sizeof(*list));

	if (!list)
		return NULL;
	fake_lock();
	for (unsigned int i = 0; i < fake.config.devices; i++)
		list[i] = &fake.context[i].device;
	if (n)
		*n = (int)fake.config.devices;
	fake_unlock();
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

static struct fake_context *context_of(const struct ibv_device *device)
{
	unsigned int i = 0;

	while (&fake.context[i].device != device)
		i++;
	return &fake.context[i];
}

/* The one context that there is of each; librdmacm has it open already. */
struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct fake_context *c = context_of(device);

	if (c->config->closed) {
		errno = (int)c->config->closed;
		return NULL;
	}
	return &c->verbs.context;
}

int ibv_close_device(struct ibv_context *context)
{
	(void)context;
	return 0;
}

/* Its address, as RoCE v1 and v2; before it a link-local one. iWARP has its hardware's. */
ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max,
			     uint32_t flags, size_t entry_size)
{
	const struct fake_device *d = fake_context(context)->config;
	enum ibv_gid_type v1 = d->iwarp || d->infiniband ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V1;
	struct sockaddr_storage addr;
	ssize_t n = 0;

	if (flags || max < 3 || entry_size != sizeof(*entries))
		return -EINVAL;
	memset(entries, 0, 3 * sizeof(*entries));
	inet_pton(AF_INET6, "fe80::86:1", entries[n].gid.raw);
	entries[n] = (struct ibv_gid_entry){
		.gid = entries[n].gid, .gid_index = 0, .port_num = 1, .gid_type = v1};
	n++;
	fake_net_address(d, &addr);
	if (d->iwarp || d->infiniband || addr.ss_family != AF_INET)
		return n;
	for (unsigned int i = 2; i <= 3; i++, n++) {
		memset(entries[n].gid.raw + 10, 0xff, 2);
		memcpy(entries[n].gid.raw + 12, &((struct sockaddr_in *)&addr)->sin_addr, 4);
		entries[n].gid_index = i;
		entries[n].port_num = 1;
		entries[n].gid_type = i == 2 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
	}
	return n;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	struct ibv_gid_entry entries[3];
	ssize_t n = _ibv_query_gid_table(context, entries, 3, 0, sizeof(entries[0]));

	if (port != 1 || index < 0 || index >= n)
		return -1;
	*gid = entries[index].gid;
	return 0;
}

/* Nor does the kernel know of it. */
int ibv_get_device_index(struct ibv_device *device)
{
	(void)device;
	return -1;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct fake_device *d;

	memset(attr, 0, sizeof(*attr));
	fake_lock();
	d = fake_context(context)->config;
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%s", d->fw);
	attr->vendor_id = d->vendor_id;
	attr->max_mr_size = UINT64_MAX;
	attr->max_qp = (int)d->max_qp;
	attr->max_qp_wr = (int)d->max_qp_wr;
	attr->max_sge = (int)d->max_sge;
	attr->max_sge_rd = (int)d->max_sge_rd;
	attr->max_cq = (int)d->max_cq;
	attr->max_cqe = (int)d->max_cqe;
	attr->max_mr = (int)d->max_mr;
	attr->max_mw = (int)fake_mw_limit(d);
	if (attr->max_mw)
		attr->device_cap_flags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	attr->max_pd = 65536;
	attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = (int)d->max_rd_atomic;
	attr->phys_port_cnt = 1;
	fake_unlock();
	return 0;
}

/* ---- Protection domains ---- */

static void release_pd(struct fake_object *object)
{
	free(FAKE_OF(object, struct fake_pd));
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct fake_pd *pd = NULL;
	int err;

	fake_lock();
	err = fake_fault(&fake.config.fail_alloc_pd);
	if (!err)
		pd = calloc(1, sizeof(*pd));
	if (pd) {
		pd->verbs.context = context;
		fake_object_add(&pd->object, FAKE_PD, release_pd);
	}
	fake_unlock();
	errno = err ? err : errno;
	return pd ? &pd->verbs : NULL;
}

int ibv_dealloc_pd(struct ibv_pd *verbs)
{
	struct fake_pd *pd = (struct fake_pd *)(void *)verbs;
	int err = 0;

	fake_lock();
	if (pd->users) {
		fake_violate("ibv_dealloc_pd: %u regions, windows or QPs are still on it",
			     pd->users);
		err = EBUSY;
	} else {
		fake_object_del(&pd->object);
	}
	fake_unlock();
	return err;
}

/* ---- Words ---- */

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	static const char *const words[] = {
		[IBV_WC_SUCCESS] = "success",
		[IBV_WC_LOC_LEN_ERR] = "local length error",
		[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[IBV_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
		[IBV_WC_LOC_PROT_ERR] = "local protection error",
		[IBV_WC_WR_FLUSH_ERR] = "work request flushed error",
		[IBV_WC_MW_BIND_ERR] = "memory window bind error",
		[IBV_WC_BAD_RESP_ERR] = "bad response error",
		[IBV_WC_LOC_ACCESS_ERR] = "local access error",
		[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
		[IBV_WC_REM_ACCESS_ERR] = "remote access error",
		[IBV_WC_REM_OP_ERR] = "remote operation error",
		[IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
		[IBV_WC_LOC_RDD_VIOL_ERR] = "local RDD violation error",
		[IBV_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
		[IBV_WC_REM_ABORT_ERR] = "aborted error",
		[IBV_WC_INV_EECN_ERR] = "invalid EE context number",
		[IBV_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
		[IBV_WC_FATAL_ERR] = "fatal error",
		[IBV_WC_RESP_TIMEOUT_ERR] = "response timeout error",
		[IBV_WC_GENERAL_ERR] = "general error",
	};
	unsigned int i = (unsigned int)status;

	return i < sizeof(words) / sizeof(words[0]) && words[i] ? words[i] : "some error";
}
