/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Page faults of a device, as it counts them itself: those that its on-demand paging led to. Verbs
 *do not tell them; the kernel does, by netlink, region by region (RDMA_NLDEV_CMD_STAT_GET, what
 * `rdma statistic show mr` of iproute2 asks). An answer is a list of regions, of which those whose
 * driver counts have a list of counters, by name:
 *
 *	RES_MR { RES_MR_ENTRY { RES_MRN, STAT_HWCOUNTERS { STAT_HWCOUNTER_ENTRY { NAME, VALUE } ...
 *} } ... }
 *
 * Which region is whose only root is told, so the sum is over all of the device. mlx5 is the driver
 * that counts (drivers/infiniband/hw/mlx5/restrack.c: "page_faults", of regions on demand); rxe
 *does not. Lengths in messages are not believed.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "faults.h"

/* ---- Reading ---- */

/* The next attribute in [*@at, @end), whose payload is [*data, *data + *len); NULL: none. */
static const struct nlattr *next(const char **at, const char *end, const char **data, size_t *len)
{
	const struct nlattr *a = (const void *)*at;

	if ((size_t)(end - *at) < sizeof(*a) || a->nla_len < sizeof(*a) ||
	    a->nla_len > (size_t)(end - *at))
		return NULL;
	*data = *at + NLA_HDRLEN;
	*len = a->nla_len - sizeof(*a);
	*at = NLA_ALIGN(a->nla_len) < end - *at ? *at + NLA_ALIGN(a->nla_len) : end;
	return a;
}

static unsigned int type_of(const struct nlattr *a)
{
	return a->nla_type & NLA_TYPE_MASK;
}

/* One counter: is it that of faults? */
static void add_counter(const char *at, const char *end, struct rxfer_faults *sum)
{
	static const char name[] = "page_faults";
	const struct nlattr *a;
	const char *data;
	bool is_it = false;
	uint64_t value = 0;
	size_t len;

	while ((a = next(&at, end, &data, &len))) {
		if (type_of(a) == RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME)
			is_it = len == sizeof(name) && !memcmp(data, name, len);
		else if (type_of(a) == RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE &&
			 len == sizeof(value))
			memcpy(&value, data, len);
	}
	sum->faults += is_it ? value : 0;
	sum->regions += is_it;
}

/* What is nested in what, down to a counter. */
static const unsigned int nest[] = {RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY,
				    RDMA_NLDEV_ATTR_STAT_HWCOUNTERS,
				    RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY};

#define LEVELS (sizeof(nest) / sizeof(nest[0]))

static void walk(const char *at, const char *end, unsigned int level, struct rxfer_faults *sum)
{
	const struct nlattr *a;
	const char *data;
	size_t len;

	if (level == LEVELS) {
		add_counter(at, end, sum);
		return;
	}
	while ((a = next(&at, end, &data, &len)))
		if (type_of(a) == nest[level])
			walk(data, data + len, level + 1, sum);
}

/* One message of @len bytes, as rxfer_faults_add(). */
static int add_message(const struct nlmsghdr *h, size_t len, struct rxfer_faults *sum)
{
	const char *payload = (const char *)h + NLMSG_HDRLEN;
	int err;

	if (h->nlmsg_type == NLMSG_DONE)
		return 0;
	if (h->nlmsg_type == NLMSG_ERROR) {
		if (len < NLMSG_HDRLEN + sizeof(err))
			return -EBADMSG;
		memcpy(&err, payload, sizeof(err));
		return err < 0 ? err : -EBADMSG;
	}
	if (h->nlmsg_type != RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_STAT_GET))
		return -EBADMSG;
	walk(payload, (const char *)h + len, 0, sum);
	return 1;
}

int rxfer_faults_add(const void *messages, size_t len, struct rxfer_faults *sum)
{
	const char *at = messages;
	int rc = len ? 1 : -EBADMSG;

	while (rc == 1 && len) {
		const struct nlmsghdr *h = (const void *)at;
		size_t step;

		if (len < NLMSG_HDRLEN || h->nlmsg_len < NLMSG_HDRLEN || h->nlmsg_len > len)
			return -EBADMSG;
		rc = add_message(h, h->nlmsg_len, sum);
		step = NLMSG_ALIGN(h->nlmsg_len) < len ? NLMSG_ALIGN(h->nlmsg_len) : len;
		at += step;
		len -= step;
	}
	return rc;
}

/* ---- Asking ---- */

struct question {
	struct nlmsghdr head;
	struct nlattr device;
	uint32_t index;
	struct nlattr what;
	uint32_t of;
};

static int ask(int fd, uint32_t index)
{
	const struct question q = {
		.head = {.nlmsg_len = sizeof(q),
			 .nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_STAT_GET),
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.device = {NLA_HDRLEN + sizeof(q.index), RDMA_NLDEV_ATTR_DEV_INDEX},
		.index = index,
		.what = {NLA_HDRLEN + sizeof(q.of), RDMA_NLDEV_ATTR_STAT_RES},
		.of = RDMA_NLDEV_ATTR_RES_MR,
	};

	return send(fd, &q, sizeof(q), 0) == sizeof(q) ? 0 : -errno;
}

/* The kernel answers at once, if it does; nobody is to wait for it for ever. */
static int listen_to(int fd, struct rxfer_faults *sum)
{
	static _Thread_local _Alignas(8) char buf[32768];
	const struct timeval patience = {.tv_sec = 1};
	int rc = setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ? -errno : 1;

	while (rc == 1) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		rc = n < 0 ? -errno : rxfer_faults_add(buf, (size_t)n, sum);
	}
	return rc;
}

struct rxfer_faults rxfer_faults_of(int index)
{
	int fd = index < 0 ? -1 : socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	struct rxfer_faults sum = {0, 0};
	int rc = -1;

	if (fd >= 0) {
		rc = ask(fd, (uint32_t)index);
		rc = rc ? rc : listen_to(fd, &sum);
		close(fd);
	}
	return rc ? (struct rxfer_faults){0, 0} : sum;
}
