/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * To be preloaded: regions of 5000 bytes are registered as a copy at another place, under the same
 * addresses, so that the device moves the copy's bytes. The original gets them when the region is
 * deregistered. The bit at byte $WRONG_BIT_AT, if that is set, is inverted in the copy at
 * registration (what the device sends is wrong) and again on the way back (what it received is).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <infiniband/verbs.h>
#undef ibv_reg_mr

#define WRONG_BYTES 5000
#define PAGE	    4096u
#define REGIONS	    256

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access);
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				unsigned int access);

/* With --bidir both ends register, and a loopback's are two threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct region {
	struct ibv_mr *mr;
	char *copy, *original;
} regions[REGIONS];

static void invert(char *bytes)
{
	const char *at = getenv("WRONG_BIT_AT");

	if (at && *at)
		bytes[atoi(at)] ^= 1;
}

/* The device wants both addresses at the same place in their pages. */
static char *copy_of(const char *original)
{
	char *pages = mmap(NULL, WRONG_BYTES + 2 * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *copy = pages + (uintptr_t)original % PAGE;

	memcpy(copy, original, WRONG_BYTES);
	invert(copy);
	return copy;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				unsigned int access)
{
	struct ibv_mr *(*next)(struct ibv_pd *, void *, size_t, uint64_t, unsigned int) =
		dlsym(RTLD_NEXT, "ibv_reg_mr_iova2");
	struct region *r = regions;
	struct ibv_mr *mr;

	if (len != WRONG_BYTES)
		return next(pd, addr, len, iova, access);
	pthread_mutex_lock(&lock);
	while (r->mr)
		r++;
	r->original = addr;
	r->copy = copy_of(addr);
	mr = r->mr = next(pd, r->copy, len, iova, access);
	pthread_mutex_unlock(&lock);
	return mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return ibv_reg_mr_iova2(pd, addr, len, (uintptr_t)addr, (unsigned int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int (*next)(struct ibv_mr *) = dlsym(RTLD_NEXT, "ibv_dereg_mr");
	int rc;

	pthread_mutex_lock(&lock);
	rc = next(mr);
	for (struct region *r = regions; r < regions + REGIONS; r++) {
		if (r->mr != mr)
			continue;
		invert(r->copy);
		memcpy(r->original, r->copy, WRONG_BYTES);
		r->mr = NULL;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}
