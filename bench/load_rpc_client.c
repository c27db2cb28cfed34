/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RPC mode, the client's end: expose an I/O's memory, ask the server to move its data, take the
 * reply, revoke.
 *
 * A slot (slot.h) is one I/O in flight, with its memory, its request's buffer and its exposure. It
 * is handed out with the credits that its I/O may take, and comes back when everything about it is
 * proven, which is later than the I/O is complete.
 *
 * When is the I/O complete, and its latency over? With --revoke sync and remote once its keys are
 * dead, with async, lazy and none at the reply; with --defer recv not before the request's SEND is
 * proven besides, for which it asks by a completion of its own. --revoke async: where it takes a
 * call, keys are revoked when there is nothing better to do, or when slots run out; where it takes
 * WRs, they are posted at once, and nobody waits for them.
 *
 * The reply's RECV is posted again at once. There is one for each slot, so no reply ever meets an
 * empty queue.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "load_rpc_client.h"

/* Waits are timed where phases are. */
static uint64_t now(const struct rpc_client *c)
{
	return c->load.cfg->timing == TIMING_PHASES ? clock_ticks(&c->load.clock) : 0;
}

static struct rpc_bytes bytes_of(const struct rpc_client *c, const struct lane *lane,
				 const struct io *io)
{
	return (struct rpc_bytes){number_of(c, lane), io->number, c->load.cfg->size, ""};
}

/* ---- What became of an I/O ---- */

static __attribute__((noinline)) int complete(struct rpc_client *c, struct lane *lane,
					      const struct io *io)
{
	struct load *l = &c->load;

	if (l->sampling)
		hist_add(&l->out->latency, clock_ns(&l->clock, clock_ticks(&l->clock) - io->start));
	lane->turn.completed++;
	l->bytes += l->cfg->size;
	if (!l->cfg->verify || c->plan.limits.op != RPC_WRITE)
		return 0;
	return rpc_bytes_check(io->frags + 1, c->plan.frags, l->cfg->size, bytes_of(c, lane, io));
}

/* The ring holds all that slots can have in flight, and credits were held. */
static int not_full(int rc)
{
	return rc == -EAGAIN ? rxfer_fail(EPROTO, "a bug of ours: no room for a post of the client")
			     : rc;
}

static __attribute__((cold)) int unexpected(const struct lane *lane, const struct io *io, int err,
					    const char *what)
{
	return rxfer_fail(EBADMSG, "%s for request %u, which is not waiting for that (%s)", what,
			  (unsigned int)(io - lane->io), strerror(-err));
}

/* @events: of slot.h. An error there is a bug of ours, or of the server's: @what happened to it. */
static inline int happened(struct rpc_client *c, struct lane *lane, struct io *io, int events,
			   const char *what)
{
	if (events < 0)
		return unexpected(lane, io, events, what);
	return events & RXFER_SLOT_COMPLETE ? complete(c, lane, io) : 0;
}

static void note_open(struct rpc_client *c, const struct io *io)
{
	uint64_t open = rxfer_open_after(io->exposure);

	if (c->load.out && open != RXFER_NO_SPAN)
		hist_add(&c->open_after, open);
}

/* All its keys are dead. */
static int revoked(struct rpc_client *c, struct lane *lane, struct io *io)
{
	note_open(c, io);
	return happened(c, lane, io, rxfer_slot_revoked(&lane->slots, io->slot), "a revoke");
}

/* @io has posted WRs, the latest of its queue. @before: how many this had had. */
static void shadow_post(const struct rpc_client *c, struct lane *lane, struct io *io,
			uint32_t before, bool request)
{
	if (!c->infers)
		return;
	io->wrs = lane->slots.sq->head - before;
	shadow_posted(&lane->shadow, io->wrs, request);
}

static void shadow_return(const struct rpc_client *c, struct lane *lane, const struct io *io)
{
	if (c->infers)
		shadow_returned(&lane->shadow, io->wrs);
}

static int revoke(struct rpc_client *c, struct lane *lane, struct io *io)
{
	struct rxfer_slot *slot = io->slot;
	uint32_t before = lane->slots.sq->head;
	const struct rxfer_revoking how = {.id = slot->index,
					   .flags = c->waits ? RXFER_MUST_SIGNAL : 0,
					   .epoch = &io->epoch,
					   .held = &slot->held};
	int rc = rxfer_revoke_held(lane->conn, io->exposure, &how);

	if (rc == RXFER_REVOKED)
		return revoked(c, lane, io);
	shadow_post(c, lane, io, before, false);
	return not_full(rc);
}

/* The reply says that it revoked a key, or was to. */
static int peer_revoked(struct rpc_client *c, struct lane *lane, struct io *io,
			const struct rxfer_done *done)
{
	unsigned int request = (unsigned int)(io - lane->io);

	if (!c->plan.invalidates)
		return rxfer_fail(EBADMSG,
				  "the reply to request %u revoked key %#x, which nobody asked for",
				  request, done->imm);
	if (!done->with_inv)
		return rxfer_fail(
			EBADMSG,
			"the reply to request %u revoked no key, as --revoke remote has it; to revoke it from here could be the second time",
			request);
	return rxfer_peer_revoked(lane->conn, io->exposure, done->imm);
}

static void revoke_later(struct lane *lane, struct io *io)
{
	io->due = NULL;
	*lane->due_end = io;
	lane->due_end = &io->due;
}

/* The oldest of those that are due. */
static int revoke_one(struct rpc_client *c, struct lane *lane)
{
	struct io *io = lane->due;

	lane->due = io->due;
	if (!lane->due)
		lane->due_end = &lane->due;
	return revoke(c, lane, io);
}

static int revoke_all(struct rpc_client *c, struct lane *lane)
{
	int rc = 0;

	while (!rc && lane->due)
		rc = revoke_one(c, lane);
	return rc;
}

/* ---- Issuing ---- */

/* A slot; where the only thing that the oldest lacks is a revoke, after that. NULL: none now, and
 * *@rc tells whether something failed. */
static struct rxfer_slot *get_slot(struct rpc_client *c, struct lane *lane, int *rc)
{
	enum rxfer_slot_cause cause;
	struct rxfer_slot *slot;

	for (*rc = 0; *rc == 0;) {
		slot = rxfer_slot_get(&lane->slots, now(c), &cause);
		if (slot)
			return slot;
		if (cause == RXFER_SLOT_NO_SQES) {
			load_stall(&c->load, &lane->turn);
			shadow_refused(&lane->shadow, lane->slots.need);
		}
		if (cause != RXFER_SLOT_KEY || !lane->due)
			return NULL;
		*rc = revoke_one(c, lane);
	}
	return NULL;
}

/*
 * Open its memory. The request says where that lies; only keys can be new in it, and with a working
 * set addresses. Also where they never are: a protocol's memory is another one each time, so to
 * find its segments is a part of what an I/O costs, under each strategy.
 */
static int expose(struct rpc_client *c, struct lane *lane, struct io *io)
{
	const struct rxfer_seg *segs;
	uint32_t n;
	int rc;

	if (!c->plan.moves)
		return 0;
	rc = rxfer_expose(lane->conn, io->exposure, io->frags + 1, c->plan.frags, c->rights);
	if (rc || !(c->keys || c->load.access.pieces))
		return rc;
	segs = rxfer_exposure_segs(io->exposure, &n);
	if (c->load.access.pieces)
		rpc_request_set_segs(io->frags[0].addr, segs, n);
	else
		rpc_request_set_keys(io->frags[0].addr, segs, n);
	return 0;
}

static int post_it(struct rpc_client *c, struct lane *lane, struct rxfer_slot *slot, struct io *io)
{
	struct rxfer_op op;

	if (io->request)
		return rxfer_post_prepared_held(io->request, 0, slot->index, c->flags, &slot->held,
						c->later);
	op = rpc_client_request(c, io);
	op.id = slot->index;
	op.flags = c->flags;
	return rxfer_post_held(lane->conn, &op, &slot->held, c->later);
}

static int post_request(struct rpc_client *c, struct lane *lane, struct rxfer_slot *slot,
			struct io *io)
{
	uint32_t before = lane->slots.sq->head;
	int rc = not_full(post_it(c, lane, slot, io));

	if (rc)
		return rc;
	shadow_post(c, lane, io, before, true);
	rc = rxfer_slot_sent(&lane->slots, slot, c->revokes);
	return rc ? rxfer_fail(rc, "a bug of ours: a slot is used twice") : 0;
}

static uint64_t start_of(const struct rpc_client *c, const struct lane *lane)
{
	if (c->load.period > 0)
		return (uint64_t)lane->turn.due;
	return c->load.timed ? clock_ticks(&c->load.clock) : 0;
}

static void count_issued(struct rpc_client *c, struct lane *lane, const struct io *io)
{
	if (lane->turn.stalled)
		load_unstall(&c->load, &lane->turn);
	lane->turn.number++;
	lane->turn.left--;
	lane->turn.due += c->load.period;
	if (io->start >= c->load.deadline)
		load_stop_issuing(&c->load);
}

/* Keys that are new to the server. What ends with their window was open until now. */
static int renew(struct rpc_client *c, struct lane *lane, struct io *io)
{
	int rc = rxfer_exposure_renew(lane->conn, io->exposure);

	if (rc == RXFER_REVOKED)
		note_open(c, io);
	return rc < 0 ? rc : 0;
}

/* One I/O on this lane: 1 issued, 0 not now, or -errno. */
static int issue(struct rpc_client *c, struct lane *lane)
{
	struct rxfer_slot *slot;
	struct io *io;
	int rc;

	slot = get_slot(c, lane, &rc);
	if (!slot)
		return rc;
	io = &lane->io[slot->index];
	if (c->load.cfg->mw_renew && c->keys)
		rc = renew(c, lane, io);
	if (rc)
		return rc;
	io->number = lane->turn.number;
	if (c->load.access.pieces)
		load_place(&c->load, &io->piece, io->frags + 1, c->plan.frags);
	if (c->load.cfg->verify && c->plan.limits.op == RPC_WRITE)
		rpc_bytes_poison(io->frags + 1, c->plan.frags);
	else if (c->load.cfg->verify)
		rpc_bytes_fill(io->frags + 1, c->plan.frags, bytes_of(c, lane, io));
	if (c->load.touch.how)
		touch_frags(&c->load.touch, io->frags + 1, c->plan.frags);
	io->start = start_of(c, lane);
	rc = expose(c, lane, io);
	if (!rc)
		rc = post_request(c, lane, slot, io);
	if (rc)
		return rc;
	count_issued(c, lane, io);
	return 1;
}

/* ---- Replies ---- */

/* The data that came with the reply go where they are wanted. */
static void take_data(struct rpc_client *c, const struct io *io, const char *from)
{
	for (uint32_t i = 1; i <= c->plan.frags; i++) {
		memcpy(io->frags[i].addr, from, io->frags[i].len);
		from += io->frags[i].len;
	}
	c->copied += c->load.cfg->size;
}

/* Immediate data are a good reply, where that was agreed. */
static int take_imm(struct rpc_client *c, struct lane *lane, const struct rxfer_done *done,
		    struct io **io)
{
	if (!c->plan.imm || done->imm >= c->plan.limits.slots)
		return rxfer_fail(EBADMSG, "the server sent immediate data %u, which %s", done->imm,
				  c->plan.imm ? "is no request" : "nobody asked for");
	*io = &lane->io[done->imm];
	return 0;
}

static int refused(const struct rpc_reply *r)
{
	return rxfer_fail(EIO, "the server answers request %u by status %u (%s)", r->id, r->status,
			  r->status == RPC_REFUSED ? "it could not take it"
						   : "it could not move the data");
}

static int take_message(struct rpc_client *c, struct lane *lane, const struct rxfer_done *done,
			struct io **io)
{
	struct rpc_reply r;
	int rc = rpc_reply_parse(reply_buffer(c, lane, done->id), (uint32_t)done->bytes,
				 &c->plan.limits, &r);

	if (rc)
		return rc;
	*io = &lane->io[r.id];
	rc = rpc_reply_match(&r, &(*io)->asked);
	if (!rc && r.status != RPC_OK)
		rc = refused(&r);
	else if (!rc && c->plan.imm)
		rc = rxfer_fail(EBADMSG,
				"the reply to request %u is a message (agreed were immediate data)",
				r.id);
	if (!rc && c->plan.brings)
		take_data(c, *io, r.inline_data);
	return rc;
}

/* The reply to @io: what was exposed for it is no business of the server's any more. */
static int replied(struct rpc_client *c, struct lane *lane, struct io *io,
		   const struct rxfer_done *done)
{
	int rc = 0;

	shadow_return(c, lane, io);
	if (c->plan.moves)
		rc = rxfer_replied(lane->conn, io->exposure);
	if (!rc && (c->plan.invalidates || done->with_inv))
		rc = peer_revoked(c, lane, io, done);
	if (!rc)
		rc = happened(c, lane, io, rxfer_slot_replied(&lane->slots, io->slot), "a reply");
	if (rc || !c->revokes)
		return rc;
	if (c->plan.invalidates && !rxfer_exposure_open(io->exposure))
		return revoked(c, lane, io);
	if (c->waits || c->by_wr)
		return revoke(c, lane, io);
	revoke_later(lane, io);
	return 0;
}

static int take_reply(struct rpc_client *c, struct lane *lane, const struct rxfer_done *done)
{
	struct io *io = NULL;
	int rc = done->with_imm ? take_imm(c, lane, done, &io) : take_message(c, lane, done, &io);

	if (!rc)
		rc = replied(c, lane, io, done);
	if (!rc)
		rc = post_recv(c, lane, done->id);
	if (rc)
		return rc;
	return happened(c, lane, io, rxfer_slot_recv_posted(&lane->slots, io->slot), "a RECV");
}

static int take(struct rpc_client *c, struct lane *lane, const struct rxfer_done *done)
{
	struct io *io;

	if (done->op == RXFER_RECV)
		return take_reply(c, lane, done);
	io = &lane->io[done->id];
	if (done->op == RXFER_REVOKE) {
		shadow_return(c, lane, io);
		return revoked(c, lane, io);
	}
	if (c->revoke == RXFER_REVOKE_LAZY && c->keys)
		note_open(c, io);
	return happened(c, lane, io, rxfer_slot_proven(&lane->slots, io->slot), "a completion");
}

/* ---- Passes ---- */

static int issue_all(struct rpc_client *c, struct lane *lane)
{
	int did = 0, rc;

	while (load_may_issue(&c->load, &lane->turn)) {
		rc = issue(c, lane);
		if (rc < 0)
			return rc;
		if (rc == 0)
			break;
		did++;
	}
	return did;
}

/* Is there a slot, or one that only its revoke keeps? */
static bool slot_at_hand(const struct lane *lane)
{
	return rxfer_slots_count(&lane->slots, RXFER_SLOT_AVAILABLE) || lane->due;
}

/* What was polled. A slot that is free by it is used before the next of them is looked at: no I/O
 * waits for others' replies, or that others are exposed, without its latency telling so. Returns
 * how many I/Os were issued, or -errno. */
static int take_all(struct rpc_client *c, struct lane *lane, const struct rxfer_done *done, int n)
{
	int issued = 0, rc;

	for (int i = 0; i < n; i++) {
		rc = take(c, lane, &done[i]);
		if (!rc && slot_at_hand(lane))
			rc = issue_all(c, lane);
		if (rc < 0)
			return rc;
		issued += rc;
	}
	return issued;
}

/* One look at one lane: how much was done, or -errno. */
static int client_pass(struct load *l, struct turn *turn)
{
	struct lane *lane = (struct lane *)turn;
	struct rpc_client *c = client_of(l);
	struct rxfer_done done[BURST];
	int did = 0, n, rc;

	do {
		rc = issue_all(c, lane);
		if (rc < 0)
			return rc;
		n = rxfer_poll(lane->conn, done, BURST);
		if (n < 0)
			return n;
		did += rc + n;
		rc = take_all(c, lane, done, n);
		if (rc < 0)
			return rc;
		did += rc;
	} while (n && did < BURST);
	if (did || !lane->due)
		return did;
	rc = revoke_one(c, lane);
	return rc ? rc : 1;
}

/* Asks for the drain once nothing but silent requests are left: all are answered then. */
static int client_ended(struct load *l, struct turn *turn, bool *yes)
{
	struct lane *lane = (struct lane *)turn;
	const struct rxfer_seg nowhere = {0};
	uint32_t free = rxfer_slots_count(&lane->slots, RXFER_SLOT_AVAILABLE);
	int rc;

	rxfer_slots_stop_waiting(&lane->slots, now(client_of(l)));
	if (turn->stalled)
		load_unstall(l, turn);
	*yes = free == l->cfg->depth && rxfer_idle(lane->conn);
	if (*yes || rxfer_slots_count(&lane->slots, RXFER_SLOT_IN_USE))
		return 0;
	rc = revoke_all(client_of(l), lane);
	return rc ? rc : rxfer_drain(lane->conn, &nowhere);
}

static void client_begin(struct load *l)
{
	struct rpc_client *c = client_of(l);

	hist_init(&c->open_after);
	c->copied = 0;
	rxfer_dev_exposed_restart(c->dev);
	for (struct lane *lane = c->lanes; lane < c->lanes + l->nlanes; lane++) {
		rxfer_slots_restart(&lane->slots, now(c));
		lane->shadow.overposts = 0;
	}
}

static void client_end(struct load *l, struct load_result *out)
{
	struct rpc_client *c = client_of(l);

	out->exposed = rxfer_dev_exposed(c->dev);
	out->open_after = &c->open_after;
	out->counts.copied_bytes += c->copied;
	for (struct lane *lane = c->lanes; lane < c->lanes + l->nlanes; lane++) {
		const struct rxfer_sq_waits *w = lane->slots.waits;
		struct rxfer_conn_info info;

		rxfer_conn_info(lane->conn, &info);
		if (info.key_reuse_min && (!out->key_reuse || info.key_reuse_min < out->key_reuse))
			out->key_reuse = info.key_reuse_min;
		out->counts.overposts += lane->shadow.overposts;
		out->counts.unproven += w[RXFER_SLOT_UNPROVEN].count;
		out->counts.unrevoked += w[RXFER_SLOT_KEY].count;
		out->counts.unproven_ns += clock_ns(&l->clock, w[RXFER_SLOT_UNPROVEN].ns);
		out->counts.unrevoked_ns += clock_ns(&l->clock, w[RXFER_SLOT_KEY].ns);
	}
}

const struct load_ops rpc_client_ops = {
	.pass = client_pass,
	.ended = client_ended,
	.begin = client_begin,
	.end = client_end,
	.free = rpc_client_free,
};
