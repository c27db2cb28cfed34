/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Devices: list them, open one for an end.
 *
 * librdmacm opens each device once in a process and puts its ids on that context. A memory region
 * or QP of ours must be on the same one, so we open nothing ourselves but take librdmacm's
 * contexts, and give each end a protection domain of its own (left to itself librdmacm would share
 * one within a process, and exposure would mean nothing).
 *
 * rdma_cm reaches a device by an IP address. Which one belongs to which device differs with the
 * transport (a GID table for RoCE, an IPoIB interface, an Ethernet one for iWARP), so we ask the
 * one that knows: each local address is bound once, and the device that it lands on noted.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "reg.h"

/* Software devices have no driver of a bus; their vendor ids tell them (kernel: rxe_param.h, siw.h;
 * and the test double, so that none of its figures can be taken for one of hardware). */
static const struct {
	uint32_t vendor_id;
	const char *driver;
} software_vendors[] = {{0xffffff, "rxe"}, {0x626d74, "siw"}, {0x66616b, "fake"}};

#define CACHE_REGIONS 1024 /* unless rxfer_dev_cache() says otherwise */

/* ---- Reading what a device says of itself ---- */

static void read_driver(struct rxfer_dev_info *info, const struct ibv_device_attr *attr)
{
	char path[512], link[512];
	const char *name;
	ssize_t n;

	/* First by vendor: some kernels give a software device the parent of its network interface.
	 */
	for (size_t i = 0; i < sizeof(software_vendors) / sizeof(software_vendors[0]); i++) {
		if (attr->vendor_id == software_vendors[i].vendor_id) {
			snprintf(info->driver, sizeof(info->driver), "%s",
				 software_vendors[i].driver);
			info->software = true;
			return;
		}
	}
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/driver", info->name);
	n = readlink(path, link, sizeof(link) - 1);
	if (n <= 0)
		return;
	link[n] = '\0';
	name = strrchr(link, '/');
	snprintf(info->driver, sizeof(info->driver), "%.31s", name ? name + 1 : link);
}

/* One line of a sysfs file of the device, without its end; "" where there is none. */
static void read_sysfs(const char *device, const char *file, char *buf, size_t size)
{
	char path[512];
	FILE *f;

	buf[0] = '\0';
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", device, file);
	f = fopen(path, "re");
	if (!f)
		return;
	if (!fgets(buf, (int)size, f))
		buf[0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	fclose(f);
}

static const char *port_state(enum ibv_port_state state)
{
	switch (state) {
	case IBV_PORT_DOWN:
		return "down";
	case IBV_PORT_INIT:
		return "initializing";
	case IBV_PORT_ARMED:
		return "armed";
	case IBV_PORT_ACTIVE:
		return "active";
	case IBV_PORT_ACTIVE_DEFER:
		return "deferred";
	default:
		return "unknown";
	}
}

/* As numbered by the InfiniBand specification; verbs.h has no names for them. */
static const char *phys_state(uint8_t state)
{
	static const char *const names[] = {NULL,	"asleep",  "polling",	  "disabled",
					    "training", "link up", "in recovery", "in a test"};

	return state < sizeof(names) / sizeof(names[0]) && names[state] ? names[state] : "";
}

static void read_port(struct ibv_context *verbs, struct rxfer_dev_info *info, uint8_t number)
{
	struct ibv_port_attr port;

	info->port = number;
	if (ibv_query_port(verbs, number, &port)) {
		snprintf(info->state, sizeof(info->state), "no port %u", number);
		return;
	}
	snprintf(info->state, sizeof(info->state), "%s", port_state(port.state));
	info->active = port.state == IBV_PORT_ACTIVE;
	snprintf(info->phys, sizeof(info->phys), "%s", phys_state(port.phys_state));
	info->mtu = 128u << port.active_mtu;
	info->max_mtu = 128u << port.max_mtu;
	info->max_msg_size = port.max_msg_sz;
	if (verbs->device->transport_type == IBV_TRANSPORT_IWARP)
		strcpy(info->transport, "iWARP");
	else
		strcpy(info->transport, port.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "IB");
}

static int read_info(struct ibv_context *verbs, struct rxfer_dev_info *info)
{
	struct ibv_device_attr attr;
	char text[64];
	int err;

	memset(info, 0, sizeof(*info));
	snprintf(info->name, sizeof(info->name), "%s", ibv_get_device_name(verbs->device));
	err = ibv_query_device(verbs, &attr);
	if (err)
		return rxfer_fail(err, "device %s does not answer: ibv_query_device: %s",
				  info->name, strerror(abs(err)));
	snprintf(info->fw, sizeof(info->fw), "%s", attr.fw_ver);
	info->max_qp = attr.max_qp;
	info->max_qp_wr = attr.max_qp_wr;
	info->max_cq = attr.max_cq;
	info->max_cqe = attr.max_cqe;
	info->max_sge = attr.max_sge;
	info->max_sge_rd = attr.max_sge_rd ? attr.max_sge_rd : attr.max_sge;
	info->max_mr = attr.max_mr;
	info->max_mw = attr.max_mw;
	info->max_mr_size = attr.max_mr_size;
	info->max_rd_atomic = attr.max_qp_rd_atom < attr.max_qp_init_rd_atom
				      ? attr.max_qp_rd_atom
				      : attr.max_qp_init_rd_atom;
	read_driver(info, &attr);
	read_sysfs(info->name, "device/numa_node", text, sizeof(text));
	info->numa_node = text[0] ? atoi(text) : -1;
	read_port(verbs, info, 1);
	return 0;
}

/* ---- Addresses ---- */

/* The device and port that rdma_cm binds this local address to; 0 for none. */
static uint8_t device_of_addr(struct rdma_event_channel *events, struct sockaddr *addr, char *name,
			      size_t size)
{
	struct rdma_cm_id *id;
	uint8_t port = 0;

	if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP))
		return 0;
	if (!rdma_bind_addr(id, addr) && id->verbs) {
		snprintf(name, size, "%s", ibv_get_device_name(id->verbs->device));
		port = id->port_num;
	}
	rdma_destroy_id(id);
	return port;
}

static bool usable(const struct ifaddrs *a)
{
	if (!a->ifa_addr || !(a->ifa_flags & IFF_UP))
		return false;
	if (a->ifa_addr->sa_family == AF_INET)
		return true;
	return a->ifa_addr->sa_family == AF_INET6 &&
	       !IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)a->ifa_addr)->sin6_addr);
}

/* The first address, IPv4 if there is any: did this one become it? */
static bool note_addr(struct rxfer_dev_info *info, struct sockaddr_storage *out,
		      const struct ifaddrs *a)
{
	bool v4 = a->ifa_addr->sa_family == AF_INET;

	if (info->addr[0] && !(v4 && out->ss_family == AF_INET6))
		return false;
	memset(out, 0, sizeof(*out));
	memcpy(out, a->ifa_addr, v4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	inet_ntop(a->ifa_addr->sa_family,
		  v4 ? (void *)&((struct sockaddr_in *)a->ifa_addr)->sin_addr
		     : (void *)&((struct sockaddr_in6 *)a->ifa_addr)->sin6_addr,
		  info->addr, sizeof(info->addr));
	snprintf(info->netdev, sizeof(info->netdev), "%s", a->ifa_name);
	return true;
}

/* Fill in the addresses of @n devices, and look at the port that an address belongs to. Or -errno.
 */
static int find_addrs(struct ibv_context **verbs, struct rxfer_dev_info *info,
		      struct sockaddr_storage *addr, unsigned int n)
{
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct ifaddrs *all = NULL;
	int rc = 0;
	char name[64];
	uint8_t port;

	if (!events) {
		rc = rxfer_fail(
			errno,
			"rdma_cm cannot be used: /dev/infiniband/rdma_cm: %m: load rdma_ucm, and let this user open it");
		goto out;
	}
	if (getifaddrs(&all)) {
		rc = rxfer_fail(errno, "looking for the devices' IP addresses: %m");
		goto out;
	}
	for (struct ifaddrs *a = all; a; a = a->ifa_next) {
		if (!usable(a))
			continue;
		port = device_of_addr(events, a->ifa_addr, name, sizeof(name));
		for (unsigned int i = 0; port && i < n; i++)
			if (!strcmp(name, info[i].name) && note_addr(&info[i], &addr[i], a))
				read_port(verbs[i], &info[i], port);
	}
	freeifaddrs(all);
out:
	if (events)
		rdma_destroy_event_channel(events);
	return rc;
}

/* ---- Listing and opening ---- */

/* librdmacm's contexts; NULL and *n = 0 where it has none, with errno. */
static struct ibv_context **get_contexts(unsigned int *n)
{
	int count = 0;
	struct ibv_context **all;

	errno = 0;
	all = rdma_get_devices(&count);
	*n = all && count > 0 ? (unsigned int)count : 0;
	return all;
}

/* Information and addresses of @n contexts; both arrays are the caller's to free. */
static int describe(struct ibv_context **all, unsigned int n, struct rxfer_dev_info **info,
		    struct sockaddr_storage **addr)
{
	int rc = -ENOMEM;

	*info = calloc(n + 1, sizeof(**info));
	*addr = calloc(n + 1, sizeof(**addr));
	if (!*info || !*addr) {
		rxfer_fail(ENOMEM, "out of memory while listing devices");
		goto fail;
	}
	for (unsigned int i = 0; i < n; i++)
		if (read_info(all[i], &(*info)[i]))
			snprintf((*info)[i].state, sizeof((*info)[i].state), "no answer");
	rc = n ? find_addrs(all, *info, *addr, n) : 0;
	if (!rc)
		return 0;
fail:
	free(*info);
	free(*addr);
	return rc;
}

int rxfer_dev_list(struct rxfer_dev_info **list, unsigned int *n)
{
	struct sockaddr_storage *addr;
	unsigned int count;
	struct ibv_context **all = get_contexts(&count);
	int rc = describe(all, count, list, &addr);

	if (!rc) {
		free(addr);
		*n = count;
		rc = rxfer_dev_add_closed(list, n);
	}
	if (all)
		rdma_free_devices(all);
	return rc;
}

/* Devices that the kernel has and librdmacm does not see: a module or a right is missing. */
static int no_device(int err)
{
	DIR *dir = opendir("/sys/class/infiniband");
	const struct dirent *entry;
	char seen[64] = "";

	if (!dir && errno == EMFILE)
		err = EMFILE;
	if (err == EMFILE && dir)
		closedir(dir);
	if (err == EMFILE)
		return rxfer_fail(err, "looking for RDMA devices: %s", strerror(err));
	while (dir && !seen[0] && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			snprintf(seen, sizeof(seen), "%.63s", entry->d_name);
	if (dir)
		closedir(dir);
	if (seen[0])
		return rxfer_fail(
			ENODEV,
			"the kernel has RDMA device %s, but rdma_cm cannot open it (%s): load ib_uverbs and rdma_ucm, and allow access to /dev/infiniband",
			seen, strerror(err ? err : ENODEV));
	return rxfer_fail(
		ENODEV,
		"no RDMA device on this machine: load its driver, or make a software one with scripts/rxe-up (scripts/quickstart finds a way on any machine)");
}

static int unknown_device(const char *name, const struct rxfer_dev_info *info, unsigned int n)
{
	struct rxfer_nearest nearest = {.word = name};
	const char *near;
	char all[256] = "";
	size_t used = 0;

	for (unsigned int i = 0; i < n && used < sizeof(all) - 1; i++) {
		rxfer_nearest_try(&nearest, info[i].name);
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
					 info[i].name);
	}
	near = nearest.best;
	return rxfer_fail(ENODEV, "no RDMA device is called %s%s%s; there is: %s", name,
			  near ? "; did you mean " : "", near ? near : "", all);
}

/* Which of the devices: the one of that name, or the first that is active and has an address.
 * @idle: a device of that name need be neither. */
static int choose(const char *name, bool idle, const struct rxfer_dev_info *info, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		bool wanted = name && name[0] ? !strcmp(name, info[i].name)
					      : info[i].active && info[i].addr[0];
		if (wanted)
			break;
	}
	if (i == n && name && name[0])
		return unknown_device(name, info, n);
	if (i == n)
		return rxfer_fail(
			ENODEV,
			"of %s none is active and has an IP address: bring a link up, give its interface an address; see rxfer-bench devices",
			rxfer_count(n, "RDMA device").s);
	if (idle)
		return (int)i;
	if (!info[i].active)
		return rxfer_fail(ENODEV,
				  "device %s is not active (port %u is %s): bring its link up",
				  info[i].name, info[i].port, info[i].state);
	if (!info[i].addr[0])
		return rxfer_fail(
			ENODEV,
			"device %s has no IP address, and rdma_cm connects by one: give its interface an address (after the device exists)",
			info[i].name);
	return (int)i;
}

static int open_chosen(struct rxfer_dev *dev, const char *name, bool idle)
{
	struct rxfer_dev_info *info;
	struct sockaddr_storage *addr;
	unsigned int n;
	int i;

	dev->all = get_contexts(&n);
	if (n == 0)
		return no_device(errno);
	i = describe(dev->all, n, &info, &addr);
	if (i < 0)
		return i;
	i = choose(name, idle, info, n);
	if (i >= 0) {
		dev->info = info[i];
		dev->addr = addr[i];
		dev->verbs = dev->all[i];
	}
	free(info);
	free(addr);
	return i < 0 ? i : 0;
}

static int open_dev(const char *name, const char *strategy, bool idle, struct rxfer_dev **out)
{
	const struct rxfer_reg_ops *reg = rxfer_reg_find(strategy);
	struct rxfer_dev *dev;
	int rc;

	if (!reg)
		return -ENOENT;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return rxfer_fail(ENOMEM, "out of memory");
	dev->reg = reg;
	dev->cache_limits.regions = CACHE_REGIONS;
	dev->found = &dev->nowhere;
	dev->generation = 1;
	rxfer_ledger_init(&dev->ledger, NULL, rxfer_now());
	rc = open_chosen(dev, name, idle);
	if (rc)
		goto fail;
	dev->pd = ibv_alloc_pd(dev->verbs);
	if (!dev->pd) {
		rc = rxfer_fail(errno, "ibv_alloc_pd on %s: %m", dev->info.name);
		goto fail;
	}
	rc = reg->supported(dev);
	if (rc)
		goto fail;
	dev->channel = ibv_create_comp_channel(dev->verbs);
	dev->events = rdma_create_event_channel();
	if (!dev->channel || !dev->events) {
		rc = rxfer_fail(errno, "event channels on %s: %m", dev->info.name);
		goto fail;
	}
	/* Every wait is ours, with a deadline: reading must never block. The channel of completions
	 * is read only where there is one, or by who has a signal to end it. */
	fcntl(dev->events->fd, F_SETFL, fcntl(dev->events->fd, F_GETFL) | O_NONBLOCK);
	*out = dev;
	return 0;
fail:
	rxfer_dev_close(dev);
	return rc;
}

int rxfer_dev_open(const char *name, const char *strategy, struct rxfer_dev **out)
{
	return open_dev(name, strategy, false, out);
}

int rxfer_dev_open_idle(const char *name, const char *strategy, struct rxfer_dev **out)
{
	return open_dev(name, strategy, true, out);
}

void rxfer_dev_close(struct rxfer_dev *dev)
{
	if (!dev)
		return;
	while (dev->mems)
		rxfer_mem_del(dev->mems);
	if (dev->reg->dev_close)
		dev->reg->dev_close(dev);
	if (dev->events)
		rdma_destroy_event_channel(dev->events);
	if (dev->channel)
		ibv_destroy_comp_channel(dev->channel);
	if (dev->pd)
		ibv_dealloc_pd(dev->pd);
	if (dev->all)
		rdma_free_devices(dev->all);
	free(dev);
}

void rxfer_dev_cache(struct rxfer_dev *dev, const struct rxfer_cache_limits *limits)
{
	dev->cache_limits = *limits;
}

const struct rxfer_dev_info *rxfer_dev_info(const struct rxfer_dev *dev)
{
	return &dev->info;
}

int rxfer_dev_can(const struct rxfer_dev *dev, enum rxfer_opcode op)
{
	if (op == RXFER_WRITE_IMM && !strcmp(dev->info.transport, "iWARP"))
		return rxfer_fail(EOPNOTSUPP, "iWARP has no immediate data");
	return 0;
}

int rxfer_dev_prefetch(struct rxfer_dev *dev)
{
	return dev->reg->prefetch(dev);
}

int rxfer_dev_sink_bound(const struct rxfer_dev *dev)
{
	if (!dev->reg->open_sink || !(rxfer_sink_access(dev) & IBV_ACCESS_REMOTE_WRITE))
		return 0;
	return rxfer_fail(EOPNOTSUPP, "%s %s", dev->reg->name, dev->reg->open_sink);
}

struct rxfer_faults rxfer_dev_faults(const struct rxfer_dev *dev)
{
	if (!dev->reg->prefetch)
		return (struct rxfer_faults){0, 0};
	return rxfer_faults_of(ibv_get_device_index(dev->verbs->device));
}

const struct rxfer_dev_counts *rxfer_dev_counts(const struct rxfer_dev *dev)
{
	return &dev->counts;
}
