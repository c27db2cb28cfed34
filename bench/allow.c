/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Networks in CIDR notation. A listener for both IPv4 and IPv6 sees an IPv4 caller as
 * ::ffff:10.1.2.3, so such addresses, and networks of them, are IPv4 ones here: then 10.0.0.0/8
 * means what it says, and ::/0 is all of IPv6 and nothing else.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "allow.h"
#include "opt.h"

static const unsigned char wrapped[12] = {[10] = 0xff, [11] = 0xff};

static unsigned int width(const struct allow_net *net)
{
	return net->v6 ? 128 : 32;
}

/* An IPv4 address in the clothes of an IPv6 one is made one. */
static void unwrap(struct allow_net *net)
{
	if (!net->v6 || net->bits < 96 || memcmp(net->addr, wrapped, sizeof(wrapped)))
		return;
	memmove(net->addr, net->addr + 12, 4);
	memset(net->addr + 4, 0, 12);
	net->v6 = false;
	net->bits -= 96;
}

/* The bits behind the network's are cleared. */
static void clear_host(struct allow_net *net)
{
	for (unsigned int i = net->bits; i < width(net); i++)
		net->addr[i / 8] &= (unsigned char)~(0x80 >> i % 8);
}

static void net_text(const struct allow_net *net, char *buf, unsigned int size)
{
	inet_ntop(net->v6 ? AF_INET6 : AF_INET, net->addr, buf, size);
	text_add(buf, size, "/%u", net->bits);
}

static int no_address(const char *address, char *why, unsigned int size)
{
	char clean[CLEAN_TEXT];

	if (!*address)
		return text_error(why, size,
				  "an address is missing; say networks like 10.1.0.0/16");
	text_clean(address, clean, sizeof(clean));
	if (strchr(address, '%'))
		return text_error(why, size,
				  "%s: a zone (%%) is not part of a network; leave it out", clean);
	return text_error(why, size,
			  "%s is no IP address, and names are not looked up here; say a network "
			  "like 10.1.0.0/16 or 2001:db8::/32",
			  clean);
}

/* "/16"; NULL: all of them, one host. */
static int read_bits(const char *text, struct allow_net *net, char *why, unsigned int size)
{
	char clean[CLEAN_TEXT];
	size_t digits = text ? strspn(text, "0123456789") : 0;

	net->bits = width(net);
	if (!text)
		return 0;
	if (digits == 0 || digits > 3 || text[digits] || (unsigned int)atoi(text) > width(net))
		return text_error(why, size, "/%s: IPv%d networks have a number from 0 to %u there",
				  text_clean(text, clean, sizeof(clean)), net->v6 ? 6 : 4,
				  width(net));
	net->bits = (unsigned int)atoi(text);
	return 0;
}

/* 10.1.2.3/8: was all of 10.0.0.0/8 meant, or one host? */
static int check_host(const char *address, const struct allow_net *net, char *why,
		      unsigned int size)
{
	struct allow_net whole = *net;
	char text[ALLOW_TEXT];

	clear_host(&whole);
	if (!memcmp(whole.addr, net->addr, sizeof(whole.addr)))
		return 0;
	net_text(&whole, text, sizeof(text));
	return text_error(why, size,
			  "%s/%u is a host in a network; say %s for the network, or %s for the "
			  "host",
			  address, net->bits, text, address);
}

static int read_net(const char *text, struct allow_net *net, char *why, unsigned int size)
{
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	char address[ALLOW_TEXT];
	int rc;

	snprintf(address, sizeof(address), "%.*s", (int)len, text);
	*net = (struct allow_net){.v6 = strchr(address, ':')};
	if (inet_pton(net->v6 ? AF_INET6 : AF_INET, address, net->addr) != 1)
		return no_address(address, why, size);
	rc = read_bits(slash ? slash + 1 : NULL, net, why, size);
	if (!rc)
		rc = check_host(address, net, why, size);
	unwrap(net);
	return rc;
}

int allow_add(struct allow *a, const char *list, char *why, unsigned int size)
{
	char *copy = strdup(list), *rest = copy, *text;
	struct allow grown = *a;
	int rc = copy ? 0 : text_error(why, size, "out of memory");

	while (!rc && (text = strsep(&rest, ","))) {
		if (grown.n == ALLOW_MAX)
			rc = text_error(why, size, "more than %d networks; join some", ALLOW_MAX);
		else
			rc = read_net(text, &grown.net[grown.n++], why, size);
	}
	free(copy);
	if (!rc)
		*a = grown;
	return rc;
}

int allow_check(const char *list, char *why, unsigned int size)
{
	struct allow scratch = {0};

	return allow_add(&scratch, list, why, size);
}

static bool is_in(const struct allow_net *net, struct allow_net host)
{
	if (host.v6 != net->v6)
		return false;
	host.bits = net->bits;
	clear_host(&host);
	return !memcmp(host.addr, net->addr, sizeof(host.addr));
}

static bool read_caller(const struct sockaddr_storage *from, struct allow_net *host)
{
	*host = (struct allow_net){.v6 = from->ss_family == AF_INET6};
	host->bits = width(host);
	if (host->v6)
		memcpy(host->addr, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
	else if (from->ss_family == AF_INET)
		memcpy(host->addr, &((const struct sockaddr_in *)from)->sin_addr, 4);
	else
		return false;
	unwrap(host);
	return true;
}

bool allow_permits(const struct allow *a, const struct sockaddr_storage *from)
{
	struct allow_net host;

	if (a->n == 0)
		return true;
	if (!read_caller(from, &host))
		return false;
	for (unsigned int i = 0; i < a->n; i++)
		if (is_in(&a->net[i], host))
			return true;
	return false;
}
