/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --allow: networks read, refused with a reason that helps, and who is in them. */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "allow.h"

#define LINE 256

static struct sockaddr_storage caller(const char *text)
{
	struct sockaddr_storage addr = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&addr;

	addr.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET;
	assert_int_equal(inet_pton(addr.ss_family, text,
				   addr.ss_family == AF_INET ? (void *)&in->sin_addr
							     : (void *)&in6->sin6_addr),
			 1);
	return addr;
}

/* Is @who in @list? */
static bool permits(const char *list, const char *who)
{
	struct sockaddr_storage from = caller(who);
	struct allow a = {0};
	char why[LINE];

	if (allow_add(&a, list, why, sizeof(why)))
		fail_msg("%s: %s", list, why);
	return allow_permits(&a, &from);
}

static void everybody_unless_there_is_a_list(void **state)
{
	struct sockaddr_storage from = caller("203.0.113.9");
	struct allow a = {0};

	(void)state;
	assert_true(allow_permits(&a, &from));
}

static void networks_of_ipv4(void **state)
{
	(void)state;
	assert_true(permits("10.1.0.0/16", "10.1.0.0"));
	assert_true(permits("10.1.0.0/16", "10.1.255.255"));
	assert_false(permits("10.1.0.0/16", "10.2.0.0"));
	assert_false(permits("10.1.0.0/16", "10.0.255.255"));
	assert_true(permits("192.0.2.7", "192.0.2.7"));
	assert_false(permits("192.0.2.7", "192.0.2.6"));
	assert_true(permits("192.0.2.8/29", "192.0.2.15"));
	assert_false(permits("192.0.2.8/29", "192.0.2.16"));
	assert_false(permits("192.0.2.8/29", "192.0.2.7"));
	assert_true(permits("0.0.0.0/0", "255.255.255.255"));
	assert_true(permits("128.0.0.0/1", "128.0.0.0"));
	assert_false(permits("128.0.0.0/1", "127.255.255.255"));
}

static void networks_of_ipv6(void **state)
{
	(void)state;
	assert_true(permits("2001:db8::/32", "2001:db8:ffff::1"));
	assert_false(permits("2001:db8::/32", "2001:db9::1"));
	assert_true(permits("fe80::/10", "febf::1"));
	assert_false(permits("fe80::/10", "fec0::1"));
	assert_true(permits("::1", "::1"));
	assert_false(permits("::1", "::2"));
	assert_true(permits("2001:db8::8/127", "2001:db8::9"));
	assert_false(permits("2001:db8::8/127", "2001:db8::a"));
}

/* A listener for both sees IPv4 in the clothes of IPv6. */
static void one_family_is_not_the_other(void **state)
{
	(void)state;
	assert_true(permits("10.1.0.0/16", "::ffff:10.1.2.3"));
	assert_false(permits("10.1.0.0/16", "::ffff:10.2.2.3"));
	assert_true(permits("::ffff:10.1.0.0/112", "10.1.2.3"));
	assert_false(permits("::ffff:10.1.0.0/112", "10.2.2.3"));
	assert_false(permits("::/0", "10.1.2.3"));
	assert_false(permits("::/0", "::ffff:10.1.2.3"));
	assert_true(permits("::/0", "2001:db8::1"));
	assert_false(permits("0.0.0.0/0", "2001:db8::1"));
	assert_false(permits("0.0.0.0/0", "::1"));
}

/* 1.2.3.4 and an IPv6 address that begins with the same bytes. */
static void the_same_bytes_in_another_family(void **state)
{
	(void)state;
	assert_false(permits("32.1.13.184/32", "2001:db8::"));
	assert_false(permits("2001:db8::/32", "32.1.13.184"));
}

static void any_of_a_list(void **state)
{
	static const char list[] = "192.0.2.7,10.0.0.0/8,2001:db8::/32";

	(void)state;
	assert_true(permits(list, "192.0.2.7"));
	assert_true(permits(list, "10.9.9.9"));
	assert_true(permits(list, "2001:db8::5"));
	assert_false(permits(list, "192.0.2.8"));
}

static void lists_add_up_and_a_bad_one_adds_nothing(void **state)
{
	struct sockaddr_storage from = caller("192.0.2.7");
	struct allow a = {0};
	char why[LINE];

	(void)state;
	assert_int_equal(allow_add(&a, "10.0.0.0/8", why, sizeof(why)), 0);
	assert_int_equal(allow_add(&a, "192.0.2.7,nonsense", why, sizeof(why)), -EINVAL);
	assert_int_equal(a.n, 1);
	assert_false(allow_permits(&a, &from));
	assert_int_equal(allow_add(&a, "192.0.2.7", why, sizeof(why)), 0);
	assert_int_equal(a.n, 2);
	assert_true(allow_permits(&a, &from));
}

static void who_has_no_ip_address_is_a_stranger(void **state)
{
	struct sockaddr_storage from = {.ss_family = AF_UNIX};
	struct allow a = {0};
	char why[LINE];

	(void)state;
	assert_int_equal(allow_add(&a, "0.0.0.0/0,::/0", why, sizeof(why)), 0);
	assert_false(allow_permits(&a, &from));
}

static const char *refusal(const char *list)
{
	static char why[LINE];

	assert_int_equal(allow_check(list, why, sizeof(why)), -EINVAL);
	return why;
}

#define NO_ADDRESS                                                                                \
	" is no IP address, and names are not looked up here; say a network like 10.1.0.0/16 or " \
	"2001:db8::/32"

static void what_is_no_network(void **state)
{
	static const char missing[] = "an address is missing; say networks like 10.1.0.0/16";

	(void)state;
	assert_string_equal(refusal(""), missing);
	assert_string_equal(refusal("10.0.0.0/8,"), missing);
	assert_string_equal(refusal("/8"), missing);
	assert_string_equal(refusal("node7"), "node7" NO_ADDRESS);
	assert_string_equal(refusal("10.1/16"), "10.1" NO_ADDRESS);
	assert_string_equal(refusal("10.1.2.256"), "10.1.2.256" NO_ADDRESS);
	assert_string_equal(refusal("10.0.0.0/8, 192.0.2.7"), " 192.0.2.7" NO_ADDRESS);
	assert_string_equal(refusal("2001:db8::\x1b/32"), "2001:db8::?" NO_ADDRESS);
	assert_string_equal(refusal("fe80::1%eth0"),
			    "fe80::1%eth0: a zone (%) is not part of a network; leave it out");
}

static void bits_that_are_none(void **state)
{
	(void)state;
	assert_string_equal(refusal("10.0.0.0/33"),
			    "/33: IPv4 networks have a number from 0 to 32 there");
	assert_string_equal(refusal("10.0.0.0/"),
			    "/: IPv4 networks have a number from 0 to 32 there");
	assert_string_equal(refusal("10.0.0.0/-8"),
			    "/-8: IPv4 networks have a number from 0 to 32 there");
	assert_string_equal(refusal("10.0.0.0/8/8"),
			    "/8/8: IPv4 networks have a number from 0 to 32 there");
	assert_string_equal(refusal("10.0.0.0/255.0.0.0"),
			    "/255.0.0.0: IPv4 networks have a number from 0 to 32 there");
	assert_string_equal(refusal("10.0.0.0/4294967304"),
			    "/4294967304: IPv4 networks have a number from 0 to 32 there");
	assert_string_equal(refusal("::/129"),
			    "/129: IPv6 networks have a number from 0 to 128 there");
}

static void a_host_where_a_network_stands(void **state)
{
	(void)state;
	assert_string_equal(refusal("10.1.2.3/8"),
			    "10.1.2.3/8 is a host in a network; say 10.0.0.0/8 for the network, or "
			    "10.1.2.3 for the host");
	assert_string_equal(refusal("2001:db8::1/64"),
			    "2001:db8::1/64 is a host in a network; say 2001:db8::/64 for the "
			    "network, or 2001:db8::1 for the host");
	assert_string_equal(refusal("0.0.0.1/0"),
			    "0.0.0.1/0 is a host in a network; say 0.0.0.0/0 for the network, or "
			    "0.0.0.1 for the host");
}

static void too_many_networks(void **state)
{
	char list[8 * ALLOW_MAX + 16] = "1.1.1.1", why[LINE];

	(void)state;
	for (int i = 1; i < ALLOW_MAX; i++)
		strcat(list, ",1.1.1.1");
	assert_int_equal(allow_check(list, why, sizeof(why)), 0);
	strcat(list, ",1.1.1.1");
	assert_string_equal(refusal(list), "more than 256 networks; join some");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everybody_unless_there_is_a_list),
		cmocka_unit_test(networks_of_ipv4),
		cmocka_unit_test(networks_of_ipv6),
		cmocka_unit_test(one_family_is_not_the_other),
		cmocka_unit_test(the_same_bytes_in_another_family),
		cmocka_unit_test(any_of_a_list),
		cmocka_unit_test(lists_add_up_and_a_bad_one_adds_nothing),
		cmocka_unit_test(who_has_no_ip_address_is_a_stranger),
		cmocka_unit_test(what_is_no_network),
		cmocka_unit_test(bits_that_are_none),
		cmocka_unit_test(a_host_where_a_network_stands),
		cmocka_unit_test(too_many_networks),
	};

	return cmocka_run_group_tests_name("unit_allow", tests, NULL, NULL);
}
