/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a device can, found out by doing it, and what else there is to say of it: for a list, not
 * for runs.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "reg.h"

/* ---- Strategies ---- */

/* One fragment mapped and unmapped as for an I/O; the strategy sees a connection without queues. */
static int map_one(struct rxfer_conn *conn, void *page, uint32_t len)
{
	struct rxfer_frag frag = {page, len};
	struct ibv_send_wr front[2]; /* that a strategy may put there */
	struct rxfer_seg range = {0};
	struct rxfer_io io = {.range = &range, .wr = front};
	int rc = conn->reg->open(conn);

	if (rc)
		return rc;
	rc = conn->reg->map(conn, &io, &frag, 1);
	if (!rc)
		rc = conn->reg->unmap(conn, &io);
	conn->reg->close(conn);
	return rc;
}

/* The same of what lets the peer in only. */
static int expose_one(struct rxfer_conn *conn)
{
	struct rxfer_exposure *x;
	int rc = conn->reg->open(conn);

	if (rc)
		return rc;
	rc = rxfer_exposure_new(conn, 1, &x);
	if (!rc)
		rxfer_exposure_free(conn, x);
	conn->reg->close(conn);
	return rc;
}

static int use_page(struct rxfer_dev *dev, void *page, uint32_t len)
{
	unsigned int rights = dev->reg->no_map ? RXFER_EXPOSE_READ | RXFER_EXPOSE_WRITE
					       : RXFER_LOCAL;
	struct rxfer_conn *conn = calloc(1, sizeof(*conn));
	struct rxfer_mem *mem;
	int rc;

	if (!conn)
		return rxfer_fail(ENOMEM, "out of memory");
	conn->dev = dev;
	conn->reg = dev->reg;
	conn->nio = 1;
	conn->attr.shape = (struct rxfer_shape){RXFER_WRITE, len, 1, 1, .exposed = 1};
	rc = rxfer_mem_add(dev, page, len, rights, &mem);
	if (!rc) {
		rc = dev->reg->no_map ? expose_one(conn) : map_one(conn, page, len);
		rxfer_mem_del(mem);
	}
	rxfer_keys_destroy(conn);
	free(conn);
	return rc;
}

int rxfer_dev_try(const char *name, const char *strategy)
{
	uint32_t len = (uint32_t)sysconf(_SC_PAGESIZE);
	struct rxfer_dev *dev;
	void *page;
	int rc = rxfer_dev_open_idle(name, strategy, &dev);

	if (rc)
		return rc;
	page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED) {
		rc = rxfer_fail(errno, "mmap of a page: %m");
	} else {
		rc = use_page(dev, page, len);
		munmap(page, len);
	}
	rxfer_dev_close(dev);
	return rc;
}

/* ---- GIDs ---- */

#define GIDS_MAX 1024 /* entries that are looked at; tables have 128 to 1024, mostly empty */

static const char *gid_type(const struct rxfer_dev *dev, const struct ibv_gid_entry *e)
{
	if (!strcmp(dev->info.transport, "iWARP"))
		return "iWARP";
	switch (e->gid_type) {
	case IBV_GID_TYPE_IB:
		return "IB";
	case IBV_GID_TYPE_ROCE_V1:
		return "RoCE v1";
	case IBV_GID_TYPE_ROCE_V2:
		return "RoCE v2";
	default:
		return "unknown";
	}
}

/* An IPv4 address is mapped to one of IPv6, and shown as what it is. */
static void gid_text(const union ibv_gid *gid, char *buf, size_t size)
{
	const struct in6_addr *v6 = (const struct in6_addr *)(const void *)gid->raw;
	bool v4 = IN6_IS_ADDR_V4MAPPED(v6);

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? (const void *)(gid->raw + 12) : gid->raw, buf,
		  (socklen_t)size);
}

static void fill_gids(const struct rxfer_dev *dev, const struct ibv_gid_entry *table, ssize_t n,
		      struct rxfer_gid *out)
{
	for (ssize_t i = 0; i < n; i++) {
		out[i].port = (uint8_t)table[i].port_num;
		out[i].index = table[i].gid_index;
		snprintf(out[i].type, sizeof(out[i].type), "%s", gid_type(dev, &table[i]));
		gid_text(&table[i].gid, out[i].addr, sizeof(out[i].addr));
	}
}

int rxfer_dev_gids(const char *name, struct rxfer_gid **gids, unsigned int *n)
{
	struct ibv_gid_entry *table = calloc(GIDS_MAX, sizeof(*table));
	struct rxfer_gid *out = NULL;
	struct rxfer_dev *dev;
	ssize_t got;
	int rc = rxfer_dev_open_idle(name, "global", &dev);

	if (rc) {
		free(table);
		return rc;
	}
	got = table ? ibv_query_gid_table(dev->verbs, table, GIDS_MAX, 0) : -ENOMEM;
	if (got >= 0)
		out = calloc((size_t)got + 1, sizeof(*out));
	if (got >= 0 && !out)
		got = -ENOMEM;
	if (got < 0) {
		rc = rxfer_fail((int)got, "the GID table of %s: %s", name, strerror((int)-got));
	} else {
		fill_gids(dev, table, got, out);
		*gids = out;
		*n = (unsigned int)got;
	}
	rxfer_dev_close(dev);
	free(table);
	return rc;
}

/* ---- Devices that cannot be opened ---- */

static bool is_among(const char *name, const struct rxfer_dev_info *info, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (!strcmp(name, info[i].name))
			return true;
	return false;
}

static const char *open_remedy(int err)
{
	switch (err) {
	case EACCES:
	case EPERM:
		return "run as root, or let this user open /dev/infiniband/uverbs* and rdma_cm (rdma-core's udev rules, a group, or a container's device list)";
	case ENOENT:
	case ENXIO:
		return "load ib_uverbs; in a container, pass /dev/infiniband in";
	case EMFILE:
		return "raise the limit of open files (ulimit -n)";
	default:
		return "see dmesg";
	}
}

/* libibverbs looks elsewhere for a node that it may not open, and returns why it is not there. */
static int open_error(const struct ibv_device *device, int err)
{
	char node[sizeof(device->dev_name) + 32];
	int fd;

	snprintf(node, sizeof(node), "/dev/infiniband/%s", device->dev_name);
	if (!device->dev_name[0] || access(node, F_OK))
		return err ? err : EIO;
	fd = open(node, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno;
	close(fd);
	return err && err != ENOENT ? err : EIO;
}

static void why_not(struct ibv_device *device, struct rxfer_dev_info *info)
{
	struct ibv_context *verbs;

	*info = (struct rxfer_dev_info){.numa_node = -1, .port = 1};
	snprintf(info->name, sizeof(info->name), "%s", ibv_get_device_name(device));
	snprintf(info->state, sizeof(info->state), "not opened");
	errno = 0;
	verbs = ibv_open_device(device);
	if (verbs) {
		ibv_close_device(verbs);
		snprintf(info->trouble, sizeof(info->trouble),
			 "rdma_cm cannot open it: load rdma_ucm, and run again");
	} else {
		int err = open_error(device, errno);

		snprintf(info->trouble, sizeof(info->trouble), "it cannot be opened: %s: %s",
			 strerror(err), open_remedy(err));
	}
}

int rxfer_dev_add_closed(struct rxfer_dev_info **list, unsigned int *n)
{
	int count = 0;
	struct ibv_device **all = ibv_get_device_list(&count);
	struct rxfer_dev_info *more;

	if (!all)
		return 0;
	more = realloc(*list, (*n + (unsigned int)count + 1) * sizeof(*more));
	if (!more) {
		ibv_free_device_list(all);
		return rxfer_fail(ENOMEM, "out of memory while listing devices");
	}
	*list = more;
	for (int i = 0, known = (int)*n; i < count; i++)
		if (!is_among(ibv_get_device_name(all[i]), more, (unsigned int)known))
			why_not(all[i], &more[(*n)++]);
	ibv_free_device_list(all);
	return 0;
}
