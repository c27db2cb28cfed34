/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The client of the simulation: what it does, one event each, and the truth about its slots. */
#include "rpc_sim.h"

/* ---- the truth about slots ---- */

static bool send_proven(const struct rpc_sim *s, const struct rpc_io *io)
{
	return s->client.handed > io->send;
}

bool rpc_truly_in_use(const struct rpc_sim *s, const struct rpc_io *io)
{
	return io->handed && !(io->replied && io->recv && !io->live && send_proven(s, io));
}

static bool waits_for_revoke(const struct rpc_sim *s)
{
	return s->c.completes == RXFER_SLOT_AT_REVOKE || s->c.completes == RXFER_SLOT_AT_ALL;
}

static bool waits_for_proof(const struct rpc_sim *s)
{
	return s->c.completes == RXFER_SLOT_AT_PROOF || s->c.completes == RXFER_SLOT_AT_ALL;
}

bool rpc_truly_complete(const struct rpc_sim *s, const struct rpc_io *io)
{
	if (!io->replied || (waits_for_revoke(s) && io->live))
		return false;
	return !waits_for_proof(s) || send_proven(s, io);
}

/* Is the cause that was told one that a slot has, and EXECUTING that of all? */
static bool truly_cause(const struct rpc_sim *s, enum rxfer_slot_cause cause)
{
	uint32_t i, n = 0;

	for (i = 0; i < s->c.slots; i++) {
		const struct rpc_io *io = &s->io[i];
		const bool has[RXFER_SLOT_CAUSES] = {
			[RXFER_SLOT_EXECUTING] = !io->replied,
			[RXFER_SLOT_UNPROVEN] = io->replied && !send_proven(s, io) && !io->live,
			[RXFER_SLOT_KEY] = io->replied && io->live,
			[RXFER_SLOT_NO_RECV] = io->replied && !io->recv && send_proven(s, io),
			[RXFER_SLOT_NO_SQES] = !rpc_truly_in_use(s, io),
		};

		n += has[cause];
	}
	return n >= (cause == RXFER_SLOT_EXECUTING ? s->c.slots : 1);
}

static void refused_rightly(struct rpc_sim *s, enum rxfer_slot_cause cause)
{
	bool short_of_sqes = rxfer_sq_free(&s->client.sq) < s->slots.need;
	uint32_t i, in_use = 0;

	for (i = 0; i < s->c.slots; i++)
		in_use += rpc_truly_in_use(s, &s->io[i]);
	rpc_expect(s, in_use == s->c.slots || (cause == RXFER_SLOT_NO_SQES && short_of_sqes));
	rpc_expect(s, truly_cause(s, cause));
}

/* ---- the client ---- */

static void led_to(struct rpc_sim *s, struct rpc_io *io, int events)
{
	if (!rpc_expect(s, events >= 0))
		return;
	if (events & RXFER_SLOT_COMPLETE) {
		rpc_expect(s, !io->told);
		io->told = true;
		s->complete++;
	}
}

static void begin_io(struct rpc_sim *s, struct rxfer_slot *slot)
{
	struct rpc_io *io = &s->io[slot->index];
	struct rpc_op op = {.kind = WR_REG,
			    .last = WR_SEND,
			    .n = rpc_up_to(s, 1, s->c.submit) - 1,
			    .who = slot->index,
			    .must = waits_for_proof(s),
			    .epoch = &io->epoch};

	rpc_expect(s, !rpc_truly_in_use(s, io));
	*io = (struct rpc_io){
		.handed = true, .recv = true, .revoke = RPC_NEVER, .epoch = io->epoch};
	io->n = rpc_up_to(s, 0, s->c.most);
	if (io->n)
		io->revoker = s->c.later ? (enum rpc_revoker)rpc_up_to(s, BY_PEER, BY_WRS)
					 : (enum rpc_revoker)prop_range(s->p, BY_PEER, BY_CALL);
	io->live = io->revoker != NOBODY;
	io->send = rpc_post_held(s, &s->client, &op, &slot->held,
				 io->revoker != NOBODY ? s->c.later : 0);
	rpc_expect(s, rxfer_slot_sent(&s->slots, slot, io->live) == 0);
	s->started++;
}

bool rpc_client_start(struct rpc_sim *s)
{
	enum rxfer_slot_cause cause = RXFER_SLOT_CAUSES;
	struct rxfer_slot *slot;

	if (s->started == s->c.n_ios)
		return false;
	slot = rxfer_slot_get(&s->slots, s->now, &cause);
	if (s->waiting && slot)
		s->slot_ns += s->now - s->since;
	if (!s->waiting)
		s->since = s->now;
	s->waiting = !slot;
	if (slot)
		begin_io(s, slot);
	else
		refused_rightly(s, cause);
	return slot;
}

bool rpc_client_leave(struct rpc_sim *s)
{
	return rpc_queue_leave(s, &s->client);
}

bool rpc_client_execute(struct rpc_sim *s)
{
	return rpc_queue_execute(s, &s->client);
}

static void peer_revoked(struct rpc_sim *s, struct rpc_io *io, struct rxfer_slot *slot)
{
	io->live = false;
	led_to(s, io, rxfer_slot_revoked(&s->slots, slot));
}

static void reply_came(struct rpc_sim *s, struct rpc_io *io, struct rxfer_slot *slot)
{
	rpc_expect(s, io->handed && !io->replied);
	io->replied = true;
	io->recv = false;
	io->recv_due = true;
	led_to(s, io, rxfer_slot_replied(&s->slots, slot));
	if (s->broken == RPC_REPLY_PROVES_SEND && slot->missing & RXFER_SLOT_MISSES_PROOF)
		led_to(s, io, rxfer_slot_proven(&s->slots, slot));
	if (s->broken == RPC_RECV_FORGOTTEN)
		led_to(s, io, rxfer_slot_recv_posted(&s->slots, slot));
	if (io->revoker == BY_PEER)
		peer_revoked(s, io, slot);
	else
		io->revoke_due = io->live;
}

/* Left out: proof that was told before it came is not told again. */
static void done(struct rpc_sim *s, const struct rpc_done *done)
{
	struct rxfer_slot *slot = &s->slots.slot[done->who];
	struct rpc_io *io = &s->io[done->who];

	if (done->kind == WR_RECV)
		reply_came(s, io, slot);
	else if (done->kind == WR_SEND && (s->broken != RPC_REPLY_PROVES_SEND || !io->replied))
		led_to(s, io, rxfer_slot_proven(&s->slots, slot));
	else if (done->kind == WR_INV && s->broken != RPC_POSTED_IS_REVOKED)
		led_to(s, io, rxfer_slot_revoked(&s->slots, slot));
}

bool rpc_client_poll(struct rpc_sim *s)
{
	struct rpc_done some[RPC_MAX_DONE];
	uint32_t i, n;

	if (!rpc_queue_poll(s, &s->client, some, &n))
		return false;
	for (i = 0; i < s->c.slots; i++) {
		if (s->client.handed > s->io[i].revoke && s->io[i].revoke != RPC_NEVER)
			s->io[i].live = false;
	}
	for (i = 0; i < n; i++)
		done(s, &some[i]);
	return true;
}

/* Some slot that has it to do: the first behind a random one. */
static struct rxfer_slot *some_slot(struct rpc_sim *s, bool revoke)
{
	uint32_t i, offset = prop_range(s->p, 0, s->c.slots - 1);

	for (i = 0; i < s->c.slots; i++) {
		struct rxfer_slot *slot = &s->slots.slot[(i + offset) % s->c.slots];
		const struct rpc_io *io = &s->io[slot->index];

		if (revoke ? io->revoke_due : io->recv_due)
			return slot;
	}
	return NULL;
}

static void revoke_by_wrs(struct rpc_sim *s, struct rpc_io *io, struct rxfer_slot *slot)
{
	struct rpc_op op = {.kind = WR_INV,
			    .last = WR_INV,
			    .n = rpc_up_to(s, 1, s->c.later) - 1,
			    .who = slot->index,
			    .must = waits_for_revoke(s),
			    .epoch = &io->epoch};

	io->revoke = rpc_post_held(s, &s->client, &op, &slot->held, 0);
	if (s->broken == RPC_POSTED_IS_REVOKED)
		led_to(s, io, rxfer_slot_revoked(&s->slots, slot));
}

bool rpc_client_revoke(struct rpc_sim *s)
{
	struct rxfer_slot *slot = some_slot(s, true);
	struct rpc_io *io;

	if (!slot)
		return false;
	io = &s->io[slot->index];
	io->revoke_due = false;
	if (io->revoker == BY_CALL)
		peer_revoked(s, io, slot);
	else
		revoke_by_wrs(s, io, slot);
	return true;
}

bool rpc_client_recv(struct rpc_sim *s)
{
	struct rxfer_slot *slot = some_slot(s, false);
	struct rpc_io *io;

	if (!slot)
		return false;
	io = &s->io[slot->index];
	io->recv_due = false;
	io->recv = true;
	s->client.recvs++;
	if (s->broken != RPC_RECV_FORGOTTEN)
		led_to(s, io, rxfer_slot_recv_posted(&s->slots, slot));
	return true;
}
