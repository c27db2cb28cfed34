/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RPC mode, the client's end: expose an I/O's memory, ask the server to move its data, take the
 * reply, revoke.
 *
 * A slot (slot.h) is one I/O in flight, with its memory, its request's buffer and its exposure. It
 * is handed out with the credits that its I/O may take, and comes back when everything about it is
 * proven, which is later than the I/O is complete.
 *
 * When is the I/O complete, and its latency over? With --revoke sync once its keys are dead, with
 * async and none at the reply; with --defer recv not before the request's SEND is proven besides,
 * for which it asks by a completion of its own. --revoke async: keys are revoked when there is
 * nothing better to do, or when slots run out.
 *
 * The reply's RECV is posted again at once. There is one for each slot, so no reply ever meets an
 * empty queue.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "load_internal.h"
#include "load_rpc.h"

/*
 * struct io - what a slot has beside its struct rxfer_slot.
 * @start:  clock_ticks() before it was exposed, or when it was due
 * @number: of the I/O on its QP
 * @frags:  its request's header, then its memory
 * @asked:  what the request says
 * @bytes:  of the request's header and segments; 0: not written yet
 * @due:    the next one whose keys are to be revoked some time
 */
struct io {
	uint64_t start;
	uint64_t number;
	struct rxfer_frag *frags;
	struct rxfer_exposure *exposure;
	struct rpc_request asked;
	uint32_t bytes;
	struct io *due;
};

/* struct lane - one QP. @due: slots whose keys are to be revoked some time, oldest first. */
struct lane {
	struct turn turn;
	struct rxfer_conn *conn;
	struct rxfer_slots slots;
	struct io *io;
	struct io *due, **due_end;
};

/* @keys: requests have new keys each time, which are revoked afterwards. */
struct rpc_client {
	struct load load;
	struct rpc_plan plan;
	enum rxfer_revoke revoke;
	bool keys;
	unsigned int rights;
	unsigned int flags; /* of a request's post */
	struct rxfer_dev *dev;
	struct lane *lanes;
	struct io *ios;
	struct rxfer_frag *frags;
	struct area requests, replies;
	struct hist open_after;
	uint64_t copied;
};

static struct rpc_client *client_of(struct load *l)
{
	return (struct rpc_client *)l; /* its first member */
}

static unsigned int number_of(const struct rpc_client *c, const struct lane *lane)
{
	return (unsigned int)(lane - c->lanes);
}

/* Waits are timed where phases are. */
static uint64_t now(const struct rpc_client *c)
{
	return c->load.cfg->timing == TIMING_PHASES ? clock_ticks(&c->load.clock) : 0;
}

static char *reply_buffer(const struct rpc_client *c, const struct lane *lane, uint64_t recv)
{
	return c->replies.base +
	       (number_of(c, lane) * c->load.cfg->depth + recv) * c->plan.reply_room;
}

static int post_recv(const struct rpc_client *c, const struct lane *lane, uint64_t recv)
{
	return rxfer_post_recv(lane->conn, reply_buffer(c, lane, recv),
			       (uint32_t)c->plan.reply_room, recv);
}

static struct rpc_bytes bytes_of(const struct rpc_client *c, const struct lane *lane,
				 const struct io *io)
{
	return (struct rpc_bytes){number_of(c, lane), io->number, c->load.cfg->size, ""};
}

/* ---- What became of an I/O ---- */

static int complete(struct rpc_client *c, struct lane *lane, const struct io *io)
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

/* @events: of slot.h. An error there is a bug of ours, or of the server's: @what happened to it. */
static int happened(struct rpc_client *c, struct lane *lane, struct io *io, int events,
		    const char *what)
{
	if (events < 0)
		return rxfer_fail(EBADMSG, "%s for request %u, which is not waiting for that (%s)",
				  what, (unsigned int)(io - lane->io), strerror(-events));
	return events & RXFER_SLOT_COMPLETE ? complete(c, lane, io) : 0;
}

static struct rxfer_slot *slot_of(struct lane *lane, const struct io *io)
{
	return &lane->slots.slot[io - lane->io];
}

static int revoke(struct rpc_client *c, struct lane *lane, struct io *io)
{
	int rc = rxfer_revoke(lane->conn, io->exposure);
	uint64_t open;

	if (rc)
		return rc;
	open = rxfer_open_after(io->exposure);
	if (c->load.out && open != RXFER_NO_SPAN)
		hist_add(&c->open_after, open);
	return happened(c, lane, io, rxfer_slot_revoked(&lane->slots, slot_of(lane, io)),
			"a revoke");
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

static struct rxfer_slot *get_slot(struct rpc_client *c, struct lane *lane, int *rc)
{
	enum rxfer_slot_cause cause;
	struct rxfer_slot *slot = rxfer_slot_get(&lane->slots, now(c), &cause);

	*rc = 0;
	if (slot)
		return slot;
	if (cause == RXFER_SLOT_KEY && lane->due) {
		*rc = revoke_one(c, lane);
		return *rc ? NULL : rxfer_slot_get(&lane->slots, now(c), &cause);
	}
	if (cause == RXFER_SLOT_NO_SQES)
		load_stall(&c->load, &lane->turn);
	return NULL;
}

/* What the request says of the memory; all else in it is the same each time. */
static int write_request(struct rpc_client *c, struct lane *lane, struct io *io)
{
	const struct rxfer_seg *segs = NULL;
	uint32_t n = 0;
	int rc = 0;

	if (c->plan.moves)
		rc = rxfer_expose(lane->conn, io->exposure, io->frags + 1, c->plan.frags,
				  c->rights);
	if (rc)
		return rc;
	if (c->plan.moves)
		segs = rxfer_exposure_segs(io->exposure, &n);
	if (io->bytes && c->keys)
		rpc_request_set_keys(io->frags[0].addr, segs, n);
	if (io->bytes)
		return 0;
	io->asked.segs = (struct rxfer_seg *)segs;
	io->asked.nsegs = n;
	io->bytes = rpc_request_write(io->frags[0].addr, &io->asked);
	io->frags[0].len = io->bytes;
	return 0;
}

static int post_request(struct rpc_client *c, struct lane *lane, struct rxfer_slot *slot,
			struct io *io)
{
	const struct rxfer_op op = {.op = RXFER_SEND,
				    .local = io->frags,
				    .nlocal = 1 + (c->plan.carries ? c->plan.frags : 0),
				    .fixed = 1,
				    .id = slot->index,
				    .flags = c->flags};
	int rc = rxfer_post_held(lane->conn, &op, &slot->held, 0);

	if (rc == -EAGAIN)
		rc = rxfer_fail(EPROTO, "a bug of ours: no room for a post of the client");
	return rc ? rc : rxfer_slot_sent(&lane->slots, slot, c->keys);
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

/* One I/O on this lane: 1 issued, 0 not now, or -errno. */
static int issue(struct rpc_client *c, struct lane *lane)
{
	uint64_t start = start_of(c, lane);
	struct rxfer_slot *slot;
	struct io *io;
	int rc;

	slot = get_slot(c, lane, &rc);
	if (!slot)
		return rc;
	io = &lane->io[slot->index];
	io->start = start;
	io->number = lane->turn.number;
	if (c->load.cfg->verify && c->plan.limits.op == RPC_WRITE)
		rpc_bytes_poison(io->frags + 1, c->plan.frags);
	else if (c->load.cfg->verify)
		rpc_bytes_fill(io->frags + 1, c->plan.frags, bytes_of(c, lane, io));
	rc = write_request(c, lane, io);
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
	if (!rc && c->plan.brings)
		take_data(c, *io, r.inline_data);
	return rc;
}

/* The reply to @io: what was exposed for it is no business of the server's any more. */
static int replied(struct rpc_client *c, struct lane *lane, struct io *io)
{
	int rc;

	if (c->keys)
		rxfer_replied(lane->conn, io->exposure);
	rc = happened(c, lane, io, rxfer_slot_replied(&lane->slots, slot_of(lane, io)), "a reply");
	if (rc || !c->keys)
		return rc;
	if (c->revoke == RXFER_REVOKE_SYNC)
		return revoke(c, lane, io);
	revoke_later(lane, io);
	return 0;
}

static int take_reply(struct rpc_client *c, struct lane *lane, const struct rxfer_done *done)
{
	struct io *io = NULL;
	int rc = done->with_imm ? take_imm(c, lane, done, &io) : take_message(c, lane, done, &io);

	if (!rc)
		rc = replied(c, lane, io);
	if (!rc)
		rc = post_recv(c, lane, done->id);
	if (rc)
		return rc;
	return happened(c, lane, io, rxfer_slot_recv_posted(&lane->slots, slot_of(lane, io)),
			"a RECV");
}

static int take(struct rpc_client *c, struct lane *lane, const struct rxfer_done *done)
{
	struct io *io;

	if (done->op == RXFER_RECV)
		return take_reply(c, lane, done);
	io = &lane->io[done->id];
	return happened(c, lane, io, rxfer_slot_proven(&lane->slots, slot_of(lane, io)),
			"a completion");
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

/* One look at one lane: how much was done, or -errno. */
static int client_pass(struct load *l, struct turn *turn)
{
	struct lane *lane = (struct lane *)turn;
	struct rpc_client *c = client_of(l);
	struct rxfer_done done[BURST];
	int did = 0, n, rc = 0;

	do {
		n = issue_all(c, lane);
		if (n < 0)
			return n;
		did += n;
		n = rxfer_poll(lane->conn, done, BURST);
		if (n < 0)
			return n;
		did += n;
		for (int i = 0; !rc && i < n; i++)
			rc = take(c, lane, &done[i]);
	} while (!rc && n && did < BURST);
	if (!rc && !did && lane->due) {
		rc = revoke_one(c, lane);
		did = 1;
	}
	return rc ? rc : did;
}

/* Asks for the drain once nothing but silent requests are left: all are answered then. */
static int client_ended(struct load *l, struct turn *turn, bool *yes)
{
	struct lane *lane = (struct lane *)turn;
	const struct rxfer_seg nowhere = {0};
	uint32_t free = rxfer_slots_count(&lane->slots, RXFER_SLOT_AVAILABLE);
	int rc;

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
	for (struct lane *lane = c->lanes; lane < c->lanes + l->nlanes; lane++)
		rxfer_slots_restart(&lane->slots, now(c));
}

static void client_end(struct load *l, struct load_result *out)
{
	struct rpc_client *c = client_of(l);

	out->exposed = rxfer_dev_exposed(c->dev);
	out->open_after = &c->open_after;
	out->counts.copied_bytes += c->copied;
	for (struct lane *lane = c->lanes; lane < c->lanes + l->nlanes; lane++) {
		const struct rxfer_sq_waits *w = lane->slots.waits;

		rxfer_slots_stop_waiting(&lane->slots, now(c));
		out->counts.unproven += w[RXFER_SLOT_UNPROVEN].count;
		out->counts.unrevoked += w[RXFER_SLOT_KEY].count;
		out->counts.unproven_ns += clock_ns(&l->clock, w[RXFER_SLOT_UNPROVEN].ns);
		out->counts.unrevoked_ns += clock_ns(&l->clock, w[RXFER_SLOT_KEY].ns);
	}
}

/* ---- Making one ---- */

static int make_areas(struct rpc_client *c)
{
	const struct cfg *cfg = c->load.cfg;
	uint64_t slots = cfg->qps * cfg->depth;
	unsigned int rights = c->rights ? c->rights : RXFER_LOCAL;
	int rc = area_make_io(c->dev, cfg, slots * c->load.layout.slot, rights, &c->load.work);

	if (!rc)
		rc = area_make(c->dev, slots * c->plan.request_room, RXFER_FIXED, &c->requests);
	if (!rc)
		rc = area_make(c->dev, slots * c->plan.reply_room, RXFER_FIXED, &c->replies);
	return rc;
}

static int make_arrays(struct rpc_client *c)
{
	size_t slots = c->load.cfg->qps * c->load.cfg->depth;

	c->lanes = calloc(c->load.cfg->qps, sizeof(*c->lanes));
	c->ios = calloc(slots, sizeof(*c->ios));
	c->frags = calloc(slots * (1 + c->plan.frags), sizeof(*c->frags));
	if (!c->lanes || !c->ios || !c->frags)
		return rxfer_fail(ENOMEM, "out of memory for %s in flight",
				  rxfer_count(slots, "I/O").s);
	c->load.lanes = (char *)c->lanes;
	c->load.stride = sizeof(c->lanes[0]);
	return 0;
}

/* @i: of the slot, over all QPs. */
static int init_io(struct rpc_client *c, struct lane *lane, size_t i)
{
	struct io *io = &c->ios[i];

	io->frags = c->frags + i * (1 + c->plan.frags);
	io->frags[0].addr = c->requests.base + i * c->plan.request_room;
	layout_frags(c->load.cfg, c->load.work.base + i * c->load.layout.slot, io->frags + 1);
	io->asked = (struct rpc_request){
		.id = (uint32_t)(io - lane->io),
		.op = c->plan.limits.op,
		.flags = c->plan.limits.flags,
		.length = c->load.cfg->size,
		.inline_len = c->plan.carries ? (uint32_t)c->load.cfg->size : 0,
	};
	return c->plan.moves ? rxfer_exposure_new(lane->conn, c->plan.frags, &io->exposure) : 0;
}

/* When an I/O is complete: see the top of the file. */
static enum rxfer_slot_completes completes(const struct rpc_client *c)
{
	if (c->load.cfg->defer == DEFER_RECV)
		return RXFER_SLOT_AT_PROOF;
	return c->revoke == RXFER_REVOKE_SYNC ? RXFER_SLOT_AT_REVOKE : RXFER_SLOT_AT_REPLY;
}

static int init_lane(struct rpc_client *c, uint64_t qp)
{
	struct lane *lane = &c->lanes[qp];
	size_t depth = c->load.cfg->depth;
	struct rxfer_conn_info info;
	int rc;

	lane->conn = c->load.conns[qp];
	lane->io = c->ios + qp * depth;
	lane->due_end = &lane->due;
	rxfer_conn_info(lane->conn, &info);
	rc = rxfer_slots_init(&lane->slots, rxfer_conn_sq(lane->conn), (uint32_t)depth, info.need,
			      completes(c));
	if (rc)
		return rxfer_fail(rc, "the slots of a connection: %s", strerror(-rc));
	for (size_t i = 0; !rc && i < depth; i++) {
		rc = init_io(c, lane, qp * depth + i);
		if (!rc)
			rc = post_recv(c, lane, i);
	}
	return rc;
}

static void client_free(struct load *l)
{
	struct rpc_client *c = client_of(l);

	for (uint64_t qp = 0; c->lanes && qp < l->cfg->qps; qp++)
		rxfer_slots_free(&c->lanes[qp].slots);
	area_drop(&l->work);
	area_drop(&c->requests);
	area_drop(&c->replies);
	free(c->lanes);
	free(c->ios);
	free(c->frags);
	free(c);
}

static const struct load_ops client_ops = {
	.pass = client_pass,
	.ended = client_ended,
	.begin = client_begin,
	.end = client_end,
	.free = client_free,
};

static int set_up(struct rpc_client *c)
{
	const struct cfg *cfg = c->load.cfg;
	int rc = rpc_revoke(cfg, &c->revoke);

	c->rights = rpc_rights(&c->plan);
	c->keys = c->rights && c->revoke != RXFER_REVOKE_NONE;
	c->flags = cfg->defer == DEFER_RECV ? RXFER_MUST_SIGNAL : 0;
	if (!rc)
		rc = make_areas(c);
	if (!rc)
		rc = make_arrays(c);
	for (uint64_t qp = 0; !rc && qp < cfg->qps; qp++)
		rc = init_lane(c, qp);
	return rc;
}

struct load *rpc_client_new(const struct cfg *cfg, const struct layout *layout,
			    struct rxfer_dev *dev, struct rxfer_conn **conns, struct watch *watch)
{
	struct rpc_client *c = calloc(1, sizeof(*c));

	if (!c) {
		rxfer_fail(ENOMEM, "out of memory");
		return NULL;
	}
	load_init(&c->load, cfg, layout, conns, watch);
	c->load.ops = &client_ops;
	c->load.answered = true;
	c->dev = dev;
	rpc_plan_make(cfg, &c->plan);
	if (!set_up(c))
		return &c->load;
	client_free(&c->load);
	return NULL;
}
