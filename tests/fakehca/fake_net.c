/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The addresses of the devices' interfaces. getifaddrs() is the double's too: what a test sees does
 * not depend on the machine it runs on.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include "fake_internal.h"

void fake_net_address(const struct fake_device *device, struct sockaddr_storage *addr)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)addr;

	memset(addr, 0, sizeof(*addr));
	if (!device->addr)
		return;
	if (inet_pton(AF_INET, device->addr, &v4->sin_addr) == 1)
		addr->ss_family = AF_INET;
	else if (inet_pton(AF_INET6, device->addr, &v6->sin6_addr) == 1)
		addr->ss_family = AF_INET6;
}

static bool same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
		       &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr));
}

/* The first device of that address, as rdma_cm has it; NULL: none. */
struct fake_context *fake_net_device(const struct sockaddr *addr)
{
	struct sockaddr_storage own;

	for (unsigned int i = 0; i < fake.config.devices; i++) {
		fake_net_address(&fake.config.device[i], &own);
		if (own.ss_family && same_host(addr, (struct sockaddr *)&own))
			return &fake.context[i];
	}
	return NULL;
}

/* All that a list consists of; its first entry is what the caller gets. */
struct address_list {
	struct ifaddrs entry[FAKE_DEVICES];
	struct sockaddr_storage addr[FAKE_DEVICES];
	char name[FAKE_DEVICES][IFNAMSIZ];
	struct fake_object object;
};

static void release(struct fake_object *object)
{
	free(FAKE_OF(object, struct address_list));
}

int getifaddrs(struct ifaddrs **out)
{
	struct address_list *list = calloc(1, sizeof(*list));
	struct ifaddrs *before = NULL;

	*out = NULL;
	if (!list)
		return -1;
	fake_lock();
	for (unsigned int i = 0; i < fake.config.devices; i++) {
		struct ifaddrs *a = &list->entry[i];

		fake_net_address(&fake.config.device[i], &list->addr[i]);
		snprintf(list->name[i], sizeof(list->name[i]), "net%u", i);
		a->ifa_name = list->name[i];
		a->ifa_flags = IFF_UP;
		a->ifa_addr = list->addr[i].ss_family ? (struct sockaddr *)&list->addr[i] : NULL;
		if (before)
			before->ifa_next = a;
		before = a;
	}
	fake_object_add(&list->object, FAKE_IFADDRS, release);
	fake_unlock();
	*out = list->entry;
	return 0;
}

void freeifaddrs(struct ifaddrs *first)
{
	if (!first)
		return;
	fake_lock();
	fake_object_del(&((struct address_list *)(void *)first)->object);
	fake_unlock();
}
