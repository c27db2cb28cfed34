/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Page faults out of the kernel's messages, which are made here as the kernel makes them. */
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdlib.h>
#include <string.h>

#include "prop.h"
#include "faults.h"

#define STAT_GET RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_STAT_GET)

static _Alignas(8) char buf[4096];
static size_t used;

static void put(const void *data, size_t len)
{
	memcpy(buf + used, data, len);
	used += (len + 3) & ~(size_t)3;
}

static size_t begin(uint16_t type)
{
	const struct nlattr a = {0, type};
	size_t at = used;

	put(&a, sizeof(a));
	return at;
}

static void end(size_t at)
{
	uint16_t len = (uint16_t)(used - at);

	memcpy(buf + at, &len, sizeof(len));
}

static void leaf(uint16_t type, const void *data, size_t len)
{
	const struct nlattr a = {(uint16_t)(NLA_HDRLEN + len), type};

	put(&a, sizeof(a));
	put(data, len);
}

static void counter(const char *name, uint64_t value)
{
	size_t at = begin(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY | NLA_F_NESTED);

	leaf(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name, strlen(name) + 1);
	leaf(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, &value, sizeof(value));
	end(at);
}

/* A region; without counters where its driver has none for it. */
static void region(uint32_t mrn, bool counts, uint64_t faults)
{
	size_t at = begin(RDMA_NLDEV_ATTR_RES_MR_ENTRY), table;

	leaf(RDMA_NLDEV_ATTR_RES_MRN, &mrn, sizeof(mrn));
	if (counts) {
		table = begin(RDMA_NLDEV_ATTR_STAT_HWCOUNTERS | NLA_F_NESTED);
		counter("page_invalidations", 1000000);
		counter("page_faults", faults);
		counter("page_prefetch", 5);
		end(table);
	}
	end(at);
}

static size_t head(uint16_t type)
{
	const struct nlmsghdr h = {.nlmsg_type = type, .nlmsg_flags = NLM_F_MULTI};
	size_t at = used;

	put(&h, sizeof(h));
	return at;
}

static void end_message(size_t at)
{
	uint32_t len = (uint32_t)(used - at);

	memcpy(buf + at, &len, sizeof(len));
}

static void done(void)
{
	const int none = 0;
	size_t at = head(NLMSG_DONE);

	put(&none, sizeof(none));
	end_message(at);
}

static void regions(uint64_t first, uint64_t second)
{
	size_t at = head(STAT_GET), table;
	const uint32_t index = 3;

	leaf(RDMA_NLDEV_ATTR_DEV_INDEX, &index, sizeof(index));
	leaf(RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_0", 7);
	table = begin(RDMA_NLDEV_ATTR_RES_MR);
	region(1, true, first);
	region(2, false, 0);
	region(3, true, second);
	end(table);
	end_message(at);
}

/* From a copy of just so many bytes, so that a read beyond them is seen. */
static int add(size_t len, struct rxfer_faults *sum)
{
	char *copy = malloc(len + 1);
	int rc;

	assert_non_null(copy);
	memcpy(copy, buf, len);
	rc = rxfer_faults_add(copy, len, sum);
	free(copy);
	return rc;
}

static void sums_over_messages(void **state)
{
	struct rxfer_faults sum = {0, 0};

	(void)state;
	used = 0;
	regions(10, 0);
	assert_int_equal(add(used, &sum), 1); /* more are to come */
	assert_int_equal(sum.faults, 10);
	assert_int_equal(sum.regions, 2);
	used = 0;
	regions(1ull << 40, 7);
	regions(1, 1);
	done();
	assert_int_equal(add(used, &sum), 0);
	assert_int_equal(sum.faults, 10 + (1ull << 40) + 9);
	assert_int_equal(sum.regions, 6);
}

static void nobody_counts(void **state)
{
	struct rxfer_faults sum = {0, 0};
	size_t at, table;

	(void)state;
	used = 0;
	at = head(STAT_GET);
	table = begin(RDMA_NLDEV_ATTR_RES_MR);
	region(1, false, 0);
	end(table);
	end_message(at);
	done();
	assert_int_equal(add(used, &sum), 0);
	assert_int_equal(sum.faults, 0);
	assert_int_equal(sum.regions, 0);
}

static void errors(void **state)
{
	static const int said[] = {-EINVAL, -EPERM, -ENODEV};
	struct rxfer_faults sum = {0, 0};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct nlmsgerr e = {.error = said[i]};
		size_t at;

		used = 0;
		at = head(NLMSG_ERROR);
		put(&e, sizeof(e));
		end_message(at);
		assert_int_equal(add(used, &sum), said[i]);
	}
	used = 0;
	end_message(head(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET)));
	assert_int_equal(add(used, &sum), -EBADMSG);
	assert_int_equal(add(0, &sum), -EBADMSG);
	assert_int_equal(sum.regions, 0);
}

/* Cut anywhere, or with any bit wrong, it is read no further than it goes. */
static void lengths_are_not_believed(void **state)
{
	size_t whole;

	(void)state;
	used = 0;
	regions(3, 4);
	done();
	whole = used;
	for (size_t len = 0; len < whole; len++) {
		struct rxfer_faults sum = {0, 0};
		int rc = add(len, &sum);

		assert_true(rc == 1 || rc == -EBADMSG);
	}
	for (size_t bit = 0; bit < 8 * whole; bit++) {
		struct rxfer_faults sum = {0, 0};

		buf[bit / 8] ^= (char)(1 << bit % 8);
		add(whole, &sum);
		assert_true(sum.regions <= 2);
		buf[bit / 8] ^= (char)(1 << bit % 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_over_messages),
		cmocka_unit_test(nobody_counts),
		cmocka_unit_test(errors),
		cmocka_unit_test(lengths_are_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
