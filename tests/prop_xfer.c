/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The transfer engine in a closed loop on the test double: random connections, random I/Os, a
 * device with a random schedule. For each I/O: the right bytes at the right places and no others
 * touched. For each connection: nothing dead-locks, the device never holds more SQEs than the
 * depth, I/Os come back in posting order, the counts are the device's own, every credit and region
 * is returned, and the double, which is as strict as hardware, has nothing to say.
 *
 * A slot is a piece of local memory and a piece of the peer's. Its pieces are cut anew for each
 * I/O; what lies between them is filled with a byte that nobody may change.
 */
#include <stdio.h>
#include <string.h>
#include "prop.h"
#include "fakehca/engine.h"
#include "xfer_random.h"

#define MAX_SLOTS  12
#define MAX_FRAGS  8
#define MAX_SEGS   5
#define SLOT_BYTES 4096
#define GUARD	   0xee
#define POISON	   0xa5
#define IMM_STEP   0x01020408u /* so that a byte order gone wrong shows */

enum outcome { FINE, DEAD_LOCK };

struct slot {
	bool busy;
	uint64_t number; /* of its I/O; SEND: where in the stream it begins */
	uint32_t bytes, nfrag, nseg;
	struct rxfer_frag frag[MAX_FRAGS];
	struct rxfer_seg seg[MAX_SEGS];
	uint8_t *local, *remote;
	struct rxfer_prepared *prepared; /* while it is in flight */
};

struct sim {
	struct prop *p;
	struct engine e;
	struct rxfer_shape shape;
	const char *strategy;
	uint32_t sge_max, inline_max;
	bool post_single, time_phases, prepare;
	struct slot slot[MAX_SLOTS];
	uint32_t slots, busy, order[MAX_SLOTS], first; /* busy slots in posting order */
	uint32_t n_ios, issued, done;
	struct rxfer_mem *target;
	uint64_t sent, received; /* of the stream of SENDs, bytes */
	uint64_t messages, credits, imms;
	uint64_t moved;
	uint8_t *local, *remote, *recv; /* the arenas */
};

/* ---- Patterns ---- */

static uint8_t byte_of(uint64_t number, uint64_t at)
{
	uint64_t x = (number * 8191 + at) * 0x9e3779b97f4a7c15u;

	return (uint8_t)(x >> 56);
}

/* The bytes of one list of pieces as one, for filling and checking. */
static uint8_t *place(uint8_t *piece, uint32_t len, uint32_t *at)
{
	if (*at < len)
		return piece + *at;
	*at -= len;
	return NULL;
}

static uint8_t *local_byte(const struct slot *s, uint32_t at)
{
	uint8_t *p = NULL;

	for (uint32_t i = 0; !p && i < s->nfrag; i++)
		p = place(s->frag[i].addr, s->frag[i].len, &at);
	return p;
}

static uint8_t *remote_byte(const struct slot *s, uint32_t at)
{
	uint8_t *p = NULL;

	for (uint32_t i = 0; !p && i < s->nseg; i++)
		p = place((uint8_t *)(uintptr_t)s->seg[i].addr, s->seg[i].len, &at);
	return p;
}

/* What the @i-th byte of its I/O is: SENDs are one stream. */
static uint8_t expected(const struct sim *s, const struct slot *slot, uint32_t i)
{
	bool stream = s->shape.op == RXFER_SEND;

	return stream ? byte_of(0, slot->number + i) : byte_of(slot->number, i);
}

/* Both sides as they must be before the I/O. */
static void fill(struct sim *s, struct slot *slot)
{
	bool read = s->shape.op == RXFER_READ;

	memset(slot->local, GUARD, SLOT_BYTES);
	memset(slot->remote, GUARD, SLOT_BYTES);
	for (uint32_t i = 0; i < slot->bytes; i++) {
		uint8_t is = expected(s, slot, i);

		*local_byte(slot, i) = read ? POISON : is;
		if (slot->nseg)
			*remote_byte(slot, i) = read ? is : POISON;
	}
}

/* Both sides now hold the same; with these bytes counted off, all that is left is guard. */
static void check(struct sim *s, struct slot *slot)
{
	for (uint32_t i = 0; i < slot->bytes; i++) {
		uint8_t is = expected(s, slot, i);

		PROP_CHECK(s->p, *local_byte(slot, i) == is);
		PROP_CHECK(s->p, !slot->nseg || *remote_byte(slot, i) == is);
	}
	for (uint32_t i = 0; i < slot->bytes; i++) {
		*local_byte(slot, i) = GUARD;
		if (slot->nseg)
			*remote_byte(slot, i) = GUARD;
	}
	for (uint32_t i = 0; i < SLOT_BYTES; i++)
		PROP_CHECK(s->p, slot->local[i] == GUARD && slot->remote[i] == GUARD);
}

/* ---- I/Os ---- */

static void cut_slot(struct sim *s, struct slot *slot)
{
	uint32_t len[MAX_FRAGS > MAX_SEGS ? MAX_FRAGS : MAX_SEGS], at = 0;

	slot->bytes = prop_range(s->p, 1, (uint32_t)s->shape.bytes);
	slot->nfrag = most_pieces(s->p, s->shape.frags, slot->bytes);
	cut(s->p, slot->bytes, slot->nfrag, len);
	for (uint32_t i = 0; i < slot->nfrag; i++) {
		at += gap(s->p);
		slot->frag[i] = (struct rxfer_frag){slot->local + at, len[i]};
		at += len[i];
	}
	slot->nseg = 0;
	if (s->shape.op == RXFER_SEND)
		return;
	slot->nseg = most_pieces(s->p, s->shape.segments, slot->bytes);
	cut(s->p, slot->bytes, slot->nseg, len);
	at = 0;
	for (uint32_t i = 0; i < slot->nseg; i++) {
		at += gap(s->p);
		slot->seg[i] = (struct rxfer_seg){(uintptr_t)slot->remote + at, len[i],
						  rxfer_mem_rkey(s->target)};
		at += len[i];
	}
}

static uint32_t messages_of(const struct sim *s, const struct slot *slot)
{
	if (s->shape.op != RXFER_SEND)
		return s->shape.op == RXFER_WRITE_IMM;
	return strcmp(s->strategy, "multi-wr") ? 1 : slot->nfrag;
}

static unsigned int some_flags(struct sim *s)
{
	return prop_chance(s->p, 10) ? RXFER_MUST_SIGNAL : 0;
}

/* The same by a prepared I/O, which is given up when it is done. */
static int post_prepared(struct sim *s, struct slot *slot)
{
	const struct rxfer_op op = {s->shape.op, slot->frag, slot->nfrag, 0,
				    slot->seg,	 slot->nseg, .imm = 0};
	int rc = rxfer_prepare(s->e.client, &op, &slot->prepared);

	if (!rc)
		rc = rxfer_post_prepared(slot->prepared, (uint32_t)s->issued * IMM_STEP,
					 (uint64_t)(slot - s->slot), some_flags(s));
	if (rc) {
		rxfer_unprepare(slot->prepared);
		slot->prepared = NULL;
	}
	return rc;
}

/* By its lists; now and then held back, until the next post or poll. */
static int post(struct sim *s, struct slot *slot)
{
	unsigned int flags = some_flags(s) | (prop_chance(s->p, 25) ? RXFER_MORE : 0);
	int (*data)(struct rxfer_conn *, const struct rxfer_frag *, uint32_t,
		    const struct rxfer_seg *, uint32_t, uint64_t,
		    unsigned int) = s->shape.op == RXFER_READ ? rxfer_post_read : rxfer_post_write;
	uint64_t id = (uint64_t)(slot - s->slot);

	if (s->shape.op == RXFER_SEND)
		return rxfer_post_send(s->e.client, slot->frag, slot->nfrag, id, flags);
	if (s->shape.op == RXFER_WRITE_IMM)
		return rxfer_post_write_imm(s->e.client, slot->frag, slot->nfrag, slot->seg,
					    slot->nseg, (uint32_t)s->issued * IMM_STEP, id, flags);
	return data(s->e.client, slot->frag, slot->nfrag, slot->seg, slot->nseg, id, flags);
}

/* One more I/O, if there is room for it. */
static bool issue(struct sim *s)
{
	struct slot *slot = s->slot;
	int rc;

	if (s->issued == s->n_ios || s->busy == s->slots)
		return false;
	while (slot->busy)
		slot++;
	slot->number = s->shape.op == RXFER_SEND ? s->sent : s->issued;
	cut_slot(s, slot);
	fill(s, slot);
	if (s->credits < messages_of(s, slot))
		return false;
	rc = s->prepare && prop_chance(s->p, 70) ? post_prepared(s, slot) : post(s, slot);
	PROP_CHECK(s->p, rc == 0 || rc == -EAGAIN);
	if (rc)
		return false;
	slot->busy = true;
	s->order[(s->first + s->busy++) % MAX_SLOTS] = (uint32_t)(slot - s->slot);
	s->credits -= messages_of(s, slot);
	s->messages += messages_of(s, slot);
	s->sent += slot->bytes;
	s->moved += slot->bytes;
	s->issued++;
	return true;
}

/* Did it find anything, be it only the proof of a drain? */
static bool poll_client(struct sim *s)
{
	uint64_t polled = fake_stats()->sq_cqes;
	struct rxfer_done done[5];
	int rc = rxfer_flush(s->e.client);
	int n = rc ? rc : rxfer_poll(s->e.client, done, (int)prop_range(s->p, 1, 5));

	PROP_CHECK(s->p, n >= 0);
	for (int i = 0; i < n; i++) {
		struct slot *slot = &s->slot[done[i].id];

		PROP_CHECK(s->p, s->busy && done[i].id == s->order[s->first]);
		PROP_CHECK(s->p, done[i].op == s->shape.op && done[i].bytes == slot->bytes);
		check(s, slot);
		s->first = (s->first + 1) % MAX_SLOTS;
		s->busy--;
		slot->busy = false;
		rxfer_unprepare(slot->prepared);
		slot->prepared = NULL;
		s->done++;
	}
	return n > 0 || fake_stats()->sq_cqes != polled;
}

static void post_recv(struct sim *s, uint64_t i)
{
	uint32_t len = s->shape.op == RXFER_SEND ? SLOT_BYTES : 1; /* for immediate data: any */

	PROP_CHECK(s->p, !rxfer_post_recv(s->e.server, s->recv + i * SLOT_BYTES, len, i));
	s->credits++;
}

static bool takes_recvs(const struct sim *s)
{
	return s->shape.op == RXFER_SEND || s->shape.op == RXFER_WRITE_IMM;
}

static bool poll_server(struct sim *s)
{
	struct rxfer_done done;
	int n = takes_recvs(s) ? rxfer_poll(s->e.server, &done, 1) : 0;

	PROP_CHECK(s->p, n >= 0);
	if (n == 0)
		return false;
	PROP_CHECK(s->p, done.op == RXFER_RECV && done.with_imm == (s->shape.op != RXFER_SEND));
	if (done.with_imm)
		PROP_CHECK(s->p, done.imm == (uint32_t)s->imms++ * IMM_STEP);
	for (uint64_t i = 0; !done.with_imm && i < done.bytes; i++)
		PROP_CHECK(s->p, s->recv[done.id * SLOT_BYTES + i] == byte_of(0, s->received++));
	post_recv(s, done.id);
	return true;
}

/* ---- A connection ---- */

/* Often less than an I/O has: it becomes up to some 20 WRs for that alone. A SEND is never cut. */
static void random_message(struct sim *s, struct prop *p, struct fake_device *d)
{
	uint32_t bytes = (uint32_t)s->shape.bytes;

	if (s->shape.op != RXFER_SEND && prop_chance(p, 40))
		d->max_msg_size = prop_range(p, bytes / 20 + 1, bytes);
}

static void random_extras(struct sim *s, struct prop *p, const struct fake_device *d)
{
	uint32_t sges = s->shape.op == RXFER_READ ? d->max_sge_rd : d->max_sge;

	s->sge_max = prop_chance(p, 50) ? 0 : prop_range(p, 1, sges);
	s->inline_max = prop_chance(p, 50) ? 0 : prop_range(p, 1, d->max_inline);
	s->post_single = prop_chance(p, 30);
	s->time_phases = prop_chance(p, 30);
	s->prepare = prop_chance(p, 50);
}

static void set_extras(struct sim *s)
{
	s->e.client_attr.sge_max = s->sge_max;
	s->e.client_attr.inline_max = s->inline_max;
	s->e.client_attr.post_single = s->post_single;
	s->e.client_attr.time_phases = s->time_phases;
}

/* N of this shape: asked of the engine by a connection that is sized by itself. */
static uint32_t need_of(struct sim *s)
{
	struct rxfer_conn_info info;

	engine_attr(&s->e, &s->shape, 1, 0, "half");
	set_extras(s);
	PROP_CHECK(s->p, engine_connect(&s->e) == 0);
	rxfer_conn_info(s->e.client, &info);
	rxfer_conn_close(s->e.client);
	rxfer_conn_close(s->e.server);
	s->e.client = s->e.server = NULL;
	return info.need;
}

static void connect_it(struct sim *s, const char *signal)
{
	uint32_t need = need_of(s), depth, recvs = MAX_FRAGS + 2 * s->slots;
	char text[32];

	depth = prop_range(s->p, need + 1, 2 * need * s->slots + 1);
	random_signal(s->p, depth, text, sizeof(text));
	engine_attr(&s->e, &s->shape, s->slots, depth, signal ? signal : text);
	set_extras(s);
	s->e.server_attr.rq_depth = recvs;
	PROP_CHECK(s->p, engine_connect(&s->e) == 0);
	PROP_CHECK(s->p, s->e.accepted == 0);
	/* Anywhere on the ring of sequence numbers, often shortly before it wraps. */
	s->e.client->sq.head = s->e.client->sq.tail = s->e.client->proven =
		prop_chance(s->p, 50) ? 0u - prop_range(s->p, 1, 50) : (uint32_t)prop_next(s->p);
	for (uint64_t i = 0; takes_recvs(s) && i < recvs; i++)
		post_recv(s, i);
}

static void make_memory(struct sim *s)
{
	struct rxfer_mem *mem;

	PROP_CHECK(s->p,
		   !rxfer_mem_add(s->e.cdev, s->local, MAX_SLOTS * SLOT_BYTES, RXFER_LOCAL, &mem));
	PROP_CHECK(s->p,
		   !rxfer_mem_add(s->e.sdev, s->remote, MAX_SLOTS * SLOT_BYTES,
				  s->shape.op == RXFER_READ ? RXFER_PEER_READ : RXFER_PEER_WRITE,
				  &s->target));
	PROP_CHECK(s->p, !rxfer_mem_add(s->e.sdev, s->recv, 64 * SLOT_BYTES, RXFER_FIXED, &mem));
	for (uint32_t i = 0; i < MAX_SLOTS; i++) {
		s->slot[i].local = s->local + i * SLOT_BYTES;
		s->slot[i].remote = s->remote + i * SLOT_BYTES;
	}
}

static void configure(struct sim *s, struct prop *p, const char *signal, uint32_t n_ios)
{
	static const char *const strategies[] = {"global", "multi-wr", "per-io"};
	static uint8_t arena[(2 * MAX_SLOTS + 64) * SLOT_BYTES];
	struct fake_config config = device(p);

	*s = (struct sim){.p = p, .n_ios = n_ios ? n_ios : prop_range(p, 1, 120)};
	s->local = arena;
	s->remote = s->local + MAX_SLOTS * SLOT_BYTES;
	s->recv = s->remote + MAX_SLOTS * SLOT_BYTES;
	s->strategy = strategies[prop_range(p, 0, 2)];
	s->slots = prop_range(p, 1, MAX_SLOTS);
	s->shape.op = (enum rxfer_opcode)prop_range(p, RXFER_READ, RXFER_SEND);
	s->shape.frags = prop_range(p, 1, MAX_FRAGS);
	s->shape.segments = s->shape.op == RXFER_SEND ? 0 : prop_range(p, 1, MAX_SEGS);
	s->shape.bytes = prop_chance(p, 70) ? prop_range(p, 1, 100) : prop_range(p, 1, 3000);
	random_extras(s, p, &config.device[0]);
	random_message(s, p, &config.device[0]);
	engine_open(&s->e, &config, s->strategy);
	make_memory(s);
	connect_it(s, signal);
}

/* ---- A run ---- */

static bool step(struct sim *s)
{
	uint32_t n = prop_range(s->p, 1, 20);
	bool more = false;

	while (n--)
		more |= fake_step();
	return more;
}

static bool (*const events[])(struct sim *) = {issue, issue, poll_client, poll_server, step};

#define N_EVENTS (sizeof(events) / sizeof(events[0]))

/* Something happens: at random; if that cannot, whatever can. */
static bool happens(struct sim *s)
{
	if (events[prop_range(s->p, 0, N_EVENTS - 1)](s))
		return true;
	for (size_t i = 0; i < N_EVENTS; i++)
		if (events[i](s))
			return true;
	return false;
}

static void drain(struct sim *s)
{
	struct rxfer_seg none = {(uintptr_t)s->remote, 0, rxfer_mem_rkey(s->target)};
	bool silent = rxfer_sig_tail_silent(&s->e.client->sig);

	PROP_CHECK(s->p, rxfer_drain(s->e.client, &none) == 0);
	PROP_CHECK(s->p, s->e.client->counts.aside_sqe == silent);
	while (happens(s))
		;
}

/* The client's: memory registered whole, its own and the staging buffers. */
static uint64_t regions_at_rest(const struct sim *s)
{
	if (!strcmp(s->strategy, "per-io"))
		return 0;
	return s->e.client->staging ? 2 : 1;
}

static void all_is_back(struct sim *s)
{
	const struct rxfer_counts *c = rxfer_conn_counts(s->e.client);
	const struct fake_stats *f = fake_stats();
	struct rxfer_conn_info info;

	PROP_CHECK(s->p, engine_idle(s->e.client));
	PROP_CHECK(s->p, s->done == s->n_ios && s->busy == 0);
	PROP_CHECK(s->p, s->post_single ? c->posts == c->sqe : c->posts <= s->n_ios);
	PROP_CHECK(s->p, c->posts + c->aside_posts == f->posts);
	PROP_CHECK(s->p, c->sqe + c->aside_sqe == f->sqes);
	PROP_CHECK(s->p, c->cqe + c->aside_cqe == f->sq_cqes);
	PROP_CHECK(s->p, s->e.server->counts.recv_cqe == f->rq_cqes && f->rq_cqes == s->messages);
	PROP_CHECK(s->p, f->bytes_read + f->bytes_written + f->bytes_sent == s->moved);
	PROP_CHECK(s->p, f->rnr_waits == 0 && f->lost_cqes == 0);
	PROP_CHECK(s->p, s->shape.op != RXFER_SEND || s->received == s->sent);
	PROP_CHECK(s->p, s->shape.op != RXFER_WRITE_IMM || s->imms == s->n_ios);
	PROP_CHECK(s->p, (c->map_ns != 0) == s->time_phases);
	rxfer_conn_info(s->e.client, &info);
	PROP_CHECK(s->p, info.sq_peak <= info.sq_depth);
	PROP_CHECK(s->p, fake_sq_peak(s->e.client->id->qp) <= info.sq_peak);
	PROP_CHECK(s->p, s->e.cdev->counts.mr_now == regions_at_rest(s));
}

/* What a policy promises of its completions, where that is exact. */
static void completions_are_as_asked(struct sim *s)
{
	const struct rxfer_counts *c = rxfer_conn_counts(s->e.client);
	const char *name = s->e.client_attr.sig->name;

	if (!strcmp(name, "all"))
		PROP_CHECK(s->p, c->cqe == c->sqe && c->aside_sqe == 0);
	if (!strcmp(name, "io"))
		PROP_CHECK(s->p, c->cqe == s->n_ios && c->aside_sqe == 0);
	PROP_CHECK(s->p, c->cqe + c->aside_cqe <= c->sqe + c->aside_sqe);
}

/* @n_ios: 0 for a random number. @rule_b false: the connection believes to have more slots than it
 * can ever use. */
static enum outcome run(struct sim *s, struct prop *p, uint64_t seed, bool rule_b,
			const char *signal, uint32_t n_ios)
{
	enum outcome outcome = FINE;

	prop_start(p, seed);
	configure(s, p, signal, n_ios);
	if (!rule_b)
		s->e.client->sig.slots = ~0u;
	while (happens(s))
		;
	if (s->issued < s->n_ios) {
		outcome = DEAD_LOCK;
	} else {
		drain(s);
		all_is_back(s);
		completions_are_as_asked(s);
	}
	for (uint32_t k = 0; k < MAX_SLOTS; k++) /* of a dead-lock's */
		rxfer_unprepare(s->slot[k].prepared);
	PROP_CHECK(p, fake_violations() == 0);
	engine_close(&s->e);
	return outcome;
}

#define N_LOCKS 3000 /* connections, to see how many dead-lock */

static void everything_arrives_and_everything_comes_back(void **state)
{
	uint64_t seed = prop_first_seed(), n = prop_count(5000, 20);
	struct prop p;
	struct sim s;

	(void)state;
	for (; n; n--, seed++)
		PROP_CHECK(&p, run(&s, &p, seed, true, NULL, 0) == FINE);
}

static uint32_t dead_locks(bool rule_b)
{
	uint64_t seed = prop_first_seed();
	uint32_t n = 0, runs = (uint32_t)prop_count(N_LOCKS, 50);
	struct prop p;
	struct sim s;

	for (uint32_t i = 0; i < runs; i++)
		n += run(&s, &p, seed + i, rule_b, "half", 40) == DEAD_LOCK;
	return n * N_LOCKS / runs;
}

/* I/Os that use fewer SQEs than their worst case stand still with the queue far from full. */
static void half_dead_locks_without_rule_b(void **state)
{
	uint32_t n = dead_locks(false);

	(void)state;
	assert_in_range(n, N_LOCKS / 10, N_LOCKS);
}

static void half_never_dead_locks_with_it(void **state)
{
	(void)state;
	assert_int_equal(dead_locks(true), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_arrives_and_everything_comes_back),
		cmocka_unit_test(half_dead_locks_without_rule_b),
		cmocka_unit_test(half_never_dead_locks_with_it),
	};

	return cmocka_run_group_tests_name("prop_xfer", tests, NULL, NULL);
}
