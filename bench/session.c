/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* clang-format off */
/*
 * The course of a session (-> from the client, <- from the server):
 *
 *	-> HELLO    <- HELLO      who is there
 *	-> CONFIG   <- READY      one run: the options, a token; where to connect, which memory
 *	            <- CONNECTED  all data connections stand, each made with token and index
 *	-> START    <- STARTED    the warm-up begins
 *	-> START    <- STARTED    the timed part begins: all so far has arrived, counts begin anew
 *	-> STOP     <- RESULT     all has arrived; what the server counted
 *	-> CONFIG   ...           the next run, or
 *	-> BYE
 *
 * With --bidir the server issues too. STARTED and RESULT then say what it has sent; between READY
 * and the connections
 *
 *	-> MEMORY                 the client's memory, which was made while the server could wait for it
 *
 * and after each STARTED
 *
 *	-> GO                     both begin to issue
 *
 * so that nothing is under way in either direction while counts begin anew. Whoever is finished first
 * goes on receiving; a client that is interrupted then says STOP once more, and the server's load is
 * cut short, too. After RESULT
 *
 *	-> CLOSED                 the client's data connections are
 *
 * since it may have a note under way, which would fail if the server's end went first.
 *
 * FAIL from either side, at any time, ends the session: after it nobody has to guess which messages
 * are still under way for which run. A client that goes on with a sweep connects anew.
 *
 * This file translates between messages and structures; the two sides are session_client.c and
 * session_server.c, and what a run needs before it can begin is in session_setup.c.
 */
/* clang-format on */
#include "config.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "env.h"
#include "session.h"

int session_hello(struct control *c, bool first, struct peer *peer, const struct rxfer_wait *wait)
{
	char host[RESULT_TEXT], boot[64], their_boot[64];
	json_t *body = NULL;
	int rc = 0;

	env_host(host, sizeof(host));
	env_boot(boot, sizeof(boot));
	if (first)
		rc = control_send(c, MSG_HELLO,
				  json_pack("{s:s,s:s,s:s}", "version", PACKAGE_VERSION, "host",
					    host, "boot", boot),
				  wait);
	if (!rc)
		rc = control_expect(c, MSG_HELLO, &body, wait);
	if (!rc)
		rc = control_text(body, "version", peer->version, sizeof(peer->version));
	if (!rc)
		rc = control_text(body, "host", peer->host, sizeof(peer->host));
	if (!rc)
		rc = control_text(body, "boot", their_boot, sizeof(their_boot));
	json_decref(body);
	if (!rc)
		peer->same_machine = boot[0] && !strcmp(boot, their_boot);
	if (!rc && !first)
		rc = control_send(c, MSG_HELLO,
				  json_pack("{s:s,s:s,s:s}", "version", PACKAGE_VERSION, "host",
					    host, "boot", boot),
				  wait);
	return rc;
}

/* ---- CONFIG ---- */

static void hex(const uint8_t *bytes, size_t n, char *out)
{
	for (size_t i = 0; i < n; i++)
		sprintf(out + 2 * i, "%02x", bytes[i]);
}

json_t *config_to_json(const struct cfg *cfg, const uint8_t token[RXFER_TOKEN_BYTES])
{
	char text[CFG_TEXT], token_text[2 * RXFER_TOKEN_BYTES + 1];
	json_t *options = json_object();

	for (unsigned int i = 0; i < opt_table_count; i++)
		if ((opt_table[i].flags & OPT_WIRE) &&
		    cfg_text(cfg, &opt_table[i], text, sizeof(text))[0]) /* else it is unset */
			json_object_set_new(options, opt_table[i].name, json_string(text));
	hex(token, RXFER_TOKEN_BYTES, token_text);
	return json_pack("{s:o,s:s}", "options", options, "token", token_text);
}

static int unhex(const char *text, uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char two[3] = {text[2 * i], text[2 * i + 1], '\0'};

		if (!isxdigit((unsigned char)two[0]) || !isxdigit((unsigned char)two[1]))
			return -EBADMSG;
		bytes[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return 0;
}

int config_from_json(const json_t *body, struct cfg *cfg, uint8_t token[RXFER_TOKEN_BYTES])
{
	json_t *options = json_object_get(body, "options"), *value;
	char text[2 * RXFER_TOKEN_BYTES + 1], why[256], clean[CLEAN_TEXT];
	const char *name;
	int rc = control_text(body, "token", text, sizeof(text));

	if (rc)
		return rc;
	if (json_string_length(json_object_get(body, "token")) != 2 * RXFER_TOKEN_BYTES ||
	    unhex(text, token, RXFER_TOKEN_BYTES))
		return rxfer_fail(EBADMSG, "the client's token is malformed");
	if (!json_is_object(options))
		return rxfer_fail(EBADMSG, "the client's message lacks the object options");
	cfg_init(cfg);
	json_object_foreach(options, name, value)
	{
		if (!json_is_string(value))
			return rxfer_fail(EBADMSG, "the client's option %s is no text",
					  text_clean(name, clean, sizeof(clean)));
		if (cfg_set(cfg, name, json_string_value(value), why, sizeof(why)))
			return rxfer_fail(EINVAL, "the client's options: %s", why);
	}
	if (cfg_check(cfg, why, sizeof(why)))
		return rxfer_fail(EINVAL, "the client's options: %s", why);
	return 0;
}

/* ---- READY ---- */

void target_to_json(const struct target *t, json_t *body)
{
	json_object_set_new(body, "memory", json_integer((json_int_t)t->addr));
	json_object_set_new(body, "bytes", json_integer((json_int_t)t->len));
	json_object_set_new(body, "key", json_integer((json_int_t)t->key));
}

int target_from_json(const json_t *body, struct target *t)
{
	uint64_t key;

	if (control_uint(body, "memory", &t->addr) || control_uint(body, "bytes", &t->len) ||
	    control_uint(body, "key", &key))
		return -EBADMSG;
	if (key > UINT32_MAX)
		return rxfer_fail(EBADMSG, "the peer's key is out of range");
	t->key = (uint32_t)key;
	return 0;
}

int target_check(const struct target *t, const char *whose, const struct cfg *cfg,
		 const struct layout *layout)
{
	if (cfg->mode == MODE_RPC || cfg->op == OP_SEND ||
	    t->len >= cfg->qps * cfg->depth * layout->target)
		return 0;
	return rxfer_fail(EBADMSG, "%s offers %s of memory, too few for this run", whose,
			  rxfer_count(t->len, "byte").s);
}

void addr_text(const struct sockaddr_storage *addr, char *buf, unsigned int size)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;

	inet_ntop(addr->ss_family,
		  addr->ss_family == AF_INET ? (void *)&in->sin_addr : (void *)&in6->sin6_addr, buf,
		  size);
}

json_t *ready_to_json(const struct ready *r)
{
	bool v4 = r->addr.ss_family == AF_INET;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&r->addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&r->addr;
	char text[INET6_ADDRSTRLEN];
	json_t *body;

	addr_text(&r->addr, text, sizeof(text));
	body = json_pack("{s:s,s:i}", "address", text, "port",
			 (int)ntohs(v4 ? in->sin_port : in6->sin6_port));
	target_to_json(&r->target, body);
	return body;
}

int ready_from_json(const json_t *body, struct ready *r)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&r->addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&r->addr;
	char text[INET6_ADDRSTRLEN];
	uint64_t port;

	memset(r, 0, sizeof(*r));
	if (control_text(body, "address", text, sizeof(text)) ||
	    control_uint(body, "port", &port) || target_from_json(body, &r->target))
		return -EBADMSG;
	if (port > UINT16_MAX)
		return rxfer_fail(EBADMSG, "the server's port is out of range");
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)port);
	} else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)port);
	} else {
		return rxfer_fail(EBADMSG, "the server's RDMA address %s is malformed", text);
	}
	return 0;
}

/* ---- START, STOP ---- */

json_t *messages_to_json(const struct load *d, uint64_t qps)
{
	json_t *list = json_array();

	for (uint64_t qp = 0; qp < qps; qp++)
		json_array_append_new(list,
				      json_integer((json_int_t)load_messages(d, (unsigned int)qp)));
	return json_pack("{s:o}", "messages", list);
}

int messages_from_json(const json_t *body, uint64_t *messages, uint64_t qps)
{
	const json_t *list = json_object_get(body, "messages");

	if (json_array_size(list) != qps)
		return rxfer_fail(EBADMSG, "the peer counts messages on %s instead of %llu",
				  rxfer_count(json_array_size(list), "QP").s,
				  (unsigned long long)qps);
	for (uint64_t qp = 0; qp < qps; qp++) {
		const json_t *count = json_array_get(list, qp);

		if (!json_is_integer(count) || json_integer_value(count) < 0)
			return rxfer_fail(EBADMSG, "the peer's messages on QP %llu are no count",
					  (unsigned long long)qp);
		messages[qp] = (uint64_t)json_integer_value(count);
	}
	return 0;
}

/* ---- RESULT ---- */

static const struct {
	const char *name;
	size_t offset;
} counted[] = {
	{"sqe", offsetof(struct counts, sqe)},
	{"posts", offsetof(struct counts, posts)},
	{"sqe_read", offsetof(struct counts, sqe_read)},
	{"sqe_write", offsetof(struct counts, sqe_write)},
	{"sqe_send", offsetof(struct counts, sqe_send)},
	{"stalls", offsetof(struct counts, stalls)},
	{"unproven", offsetof(struct counts, unproven)},
	{"round_waits", offsetof(struct counts, round_waits)},
	{"stall_ns", offsetof(struct counts, stall_ns)},
	{"unproven_ns", offsetof(struct counts, unproven_ns)},
	{"round_wait_ns", offsetof(struct counts, round_wait_ns)},
	{"cqe", offsetof(struct counts, cqe)},
	{"recv_cqe", offsetof(struct counts, recv_cqe)},
	{"passes", offsetof(struct counts, passes)},
	{"idle", offsetof(struct counts, idle)},
	{"copied_bytes", offsetof(struct counts, copied_bytes)},
	{"lookups", offsetof(struct counts, lookups)},
	{"hits", offsetof(struct counts, hits)},
	{"faults", offsetof(struct counts, faults)},
	{"fault_counts", offsetof(struct counts, fault_counts)},
	{"sq_peak", offsetof(struct counts, sq_peak)},
	{"forced_signals", offsetof(struct counts, forced_signals)},
	{"cpu_ns", offsetof(struct counts, cpu_ns)},
};

#define COUNTED (sizeof(counted) / sizeof(counted[0]))

json_t *counts_to_json(const struct counts *c)
{
	json_t *body = json_object();

	for (size_t i = 0; i < COUNTED; i++) {
		const uint64_t *value = (const void *)((const char *)c + counted[i].offset);

		json_object_set_new(body, counted[i].name, json_integer((json_int_t)*value));
	}
	return body;
}

int counts_from_json(const json_t *body, struct counts *c)
{
	for (size_t i = 0; i < COUNTED; i++) {
		int rc = control_uint(body, counted[i].name,
				      (void *)((char *)c + counted[i].offset));

		if (rc)
			return rc;
	}
	return 0;
}

/* A clock's own times are no use to the other end, their difference is. */
void moved_to_json(const struct load_result *l, json_t *body)
{
	json_object_set_new(body, "ios", json_integer((json_int_t)l->ios));
	json_object_set_new(body, "moved_bytes", json_integer((json_int_t)l->bytes));
	json_object_set_new(body, "ns", json_integer((json_int_t)(l->end - l->start)));
}

int moved_from_json(const json_t *body, struct moved *m)
{
	if (control_uint(body, "ios", &m->ios) || control_uint(body, "moved_bytes", &m->bytes) ||
	    control_uint(body, "ns", &m->ns))
		return -EBADMSG;
	return 0;
}

/* The peak is a rate, the only figure with a fraction, and the only one that a run may not have. */
json_t *load_to_json(const struct load_result *l, json_t *body)
{
	moved_to_json(l, body);
	json_object_set_new(body, "peak_mHz",
			    isnan(l->peak) ? json_null()
					   : json_integer((json_int_t)(l->peak * 1e3)));
	json_object_set_new(body, "cut_short", json_integer(l->cut_short));
	return body;
}

int load_from_json(const json_t *body, struct load_result *l)
{
	bool no_peak = json_is_null(json_object_get(body, "peak_mHz"));
	uint64_t peak = 0, cut_short;
	struct moved m;

	if (moved_from_json(body, &m) || control_uint(body, "cut_short", &cut_short) ||
	    (!no_peak && control_uint(body, "peak_mHz", &peak)))
		return -EBADMSG;
	*l = (struct load_result){.ios = m.ios,
				  .bytes = m.bytes,
				  .end = m.ns,
				  .peak = no_peak ? NAN : (double)peak / 1e3,
				  .cut_short = cut_short};
	return 0;
}

void found_to_json(json_t *body, const struct found *f)
{
	json_object_set_new(body, "cpu", json_string(f->cpu));
	json_object_set_new(body, "mem_node", json_string(f->mem_node));
}

int found_from_json(const json_t *body, struct found *f)
{
	int rc = control_text(body, "cpu", f->cpu, sizeof(f->cpu));

	return rc ? rc : control_text(body, "mem_node", f->mem_node, sizeof(f->mem_node));
}
