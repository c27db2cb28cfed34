/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Direct mode, the issuing half of an end: keep --depth I/Os in flight on each QP, or start them at
 * --rate, and time them.
 *
 * A slot is one I/O in flight: its piece of local memory, and its start time. It is free, or waits
 * for its I/O; with --verify a WRITE's slot then waits for the READ that fetches back what arrived
 * (load_verify.c).
 *
 * SENDs and WRITEs with immediate data need a RECV at the peer for each message. The peer keeps
 * layout.recvs of them posted and gives credits back by a note for each half of them it has
 * re-posted, so we never send into an empty receive queue.
 *
 * With --rate an I/O starts when it is due, whatever became of those before it, and its latency is
 * counted from then: an I/O that had to wait behind a slow one is not made to look quick.
 *
 * The end: nobody knows which WR is the last one when it is posted (--duration), so the tail may be
 * silent. When nothing is left to issue, the drain WR proves it. Over iWARP a WRITE is complete
 * when TCP has taken it: there a run of them ends with a READ, once that has come back.
 */
#include <errno.h>
#include <string.h>
#include "load_direct.h"

/* ---- Issuing ---- */

/*
 * What the options say is known before the first I/O, so an I/O need not ask: pass() and what it
 * calls are compiled three times. @plain: no check of bytes, no rate, nothing to receive, memory as
 * it is; @sends: they take RECVs of the peer. direct_way() picks. Each I/O on a slot is the same,
 * and was prepared, unless its bytes are checked or its memory is another one each time.
 */
#define HOT static inline __attribute__((always_inline))

HOT int post(const struct direct *d, struct lane *lane, struct slot *s, bool plain)
{
	uint64_t id = lane->next;

	if (plain || s->prepared)
		return rxfer_post_prepared(s->prepared, (uint32_t)lane->turn.number, id, 0);
	switch (d->load.cfg->op) {
	case OP_READ:
		return rxfer_post_read(lane->conn, s->frags, d->nfrags, &s->remote, 1, id, 0);
	case OP_WRITE:
		return rxfer_post_write(lane->conn, s->frags, d->nfrags, &s->remote, 1, id, 0);
	case OP_WRITE_IMM:
		return rxfer_post_write_imm(lane->conn, s->frags, d->nfrags, &s->remote, 1,
					    (uint32_t)lane->turn.number, id, 0);
	default:
		return rxfer_post_send(lane->conn, s->frags, d->nfrags, id, 0);
	}
}

/* When the I/O starts; 0 where nobody wants to know. */
HOT uint64_t start_of(const struct direct *d, const struct lane *lane, bool plain)
{
	if (!plain && d->load.period > 0)
		return (uint64_t)lane->turn.due;
	return d->load.timed ? clock_ticks(&d->load.clock) : 0;
}

/* One I/O on this lane: 1 issued, 0 not now, or -errno. */
HOT int issue(struct direct *d, struct lane *lane, bool sends, bool plain)
{
	struct slot *s = &lane->slots[lane->next];
	int rc = -EAGAIN;

	if (!plain && d->load.access.pieces && !s->placed) {
		load_place(&d->load, &s->piece, s->frags, d->nfrags);
		s->placed = true;
	}
	if (!plain && d->load.cfg->verify) {
		s->number = lane->turn.number;
		verify_prepare(d, lane, s);
	}
	if (!plain && d->load.touch.how && !lane->turn.stalled)
		touch_frags(&d->load.touch, s->frags, d->nfrags);
	s->start = start_of(d, lane, plain);
	if (!sends || lane->credits >= d->load.layout.messages)
		rc = post(d, lane, s, plain);
	if (rc == -EAGAIN) {
		load_stall(&d->load, &lane->turn);
		return 0;
	}
	if (rc)
		return rc;
	if (!plain)
		s->placed = false;
	if (sends)
		lane->credits -= d->load.layout.messages;
	if (lane->turn.stalled)
		load_unstall(&d->load, &lane->turn);
	lane->next = behind(lane, lane->next);
	lane->nfree--;
	lane->turn.number++;
	lane->turn.left--;
	if (!plain)
		lane->turn.due += d->load.period;
	if (s->start >= d->load.deadline)
		load_stop_issuing(&d->load);
	return 1;
}

HOT bool may_issue(const struct direct *d, const struct lane *lane, bool plain)
{
	return lane->nfree && (plain ? lane->turn.left : load_may_issue(&d->load, &lane->turn));
}

/* ---- Completing ---- */

/* The measured I/O of a slot is done, @now where that is asked. */
HOT int io_done(struct direct *d, struct lane *lane, struct slot *s, const struct rxfer_done *done,
		uint64_t now, bool plain)
{
	if (done->own_cqe && d->load.sampling)
		hist_add(&d->load.out->latency, clock_ns(&d->load.clock, now - s->start));
	lane->turn.completed++;
	d->load.bytes += done->bytes;
	if (!plain && d->check.len) {
		lane->to_check++;
		return 0;
	}
	lane->nfree++;
	return !plain && d->load.cfg->verify && d->load.cfg->op == OP_READ ? verify_read(d, lane, s)
									   : 0;
}

/* A message of the peer: data, or that RECVs are free again. */
static int receive(struct direct *d, struct lane *lane, const struct rxfer_done *done)
{
	int rc = sink_take(d->sink, (unsigned int)(lane - d->lanes), done);

	if (rc < 0)
		return rc;
	lane->credits += (uint64_t)rc;
	return 0;
}

HOT int take(struct direct *d, struct lane *lane, const struct rxfer_done *done, uint64_t now,
	     bool plain)
{
	struct slot *s = &lane->slots[done->id];

	if (done->op == RXFER_RECV)
		return receive(d, lane, done);
	if (plain || !s->checking)
		return io_done(d, lane, s, done, now, plain);
	s->checking = false;
	lane->nfree++;
	return verify_write(d, lane, s);
}

/* ---- Passes ---- */

/* What goes before new I/Os: the peer waits for its credits, slots wait to be checked. */
static int before_issuing(struct direct *d, struct lane *lane)
{
	int rc = 0;

	if (lane->to_check)
		rc = verify_fetch_back(d, lane);
	if (!rc && d->load.cfg->bidir)
		rc = sink_return(d->sink, (unsigned int)(lane - d->lanes));
	return rc;
}

/*
 * What a poll handed up. An I/O that had a completion of its own is the last of it: the clock is
 * read for it before the others of its burst are attended to.
 */
HOT int take_all(struct direct *d, struct lane *lane, const struct rxfer_done *done, int n,
		 bool plain)
{
	const struct rxfer_done *end = done + n;
	uint64_t now = end[-1].own_cqe && d->load.sampling ? clock_ticks(&d->load.clock) : 0;

	for (const struct rxfer_done *one = done; one < end; one++) {
		int rc = take(d, lane, one, now, plain);

		if (rc)
			return rc;
	}
	return 0;
}

/* What may be issued now: how much, or -errno. */
HOT int issue_all(struct direct *d, struct lane *lane, bool sends, bool plain)
{
	int did = 0, rc;

	while (may_issue(d, lane, plain)) {
		rc = issue(d, lane, sends, plain);
		if (rc < 0)
			return rc;
		if (rc == 0)
			break;
		did++;
	}
	return did;
}

/*
 * One look at one lane: how much was done, or -errno. While its completions come, it is not left:
 * each makes place for the next I/O. But not for ever, since others wait.
 */
HOT int pass(struct direct *d, struct lane *lane, bool sends, bool plain)
{
	struct rxfer_done done[BURST];
	int did = 0, n, rc = plain ? 0 : before_issuing(d, lane);

	if (rc)
		return rc;
	do {
		n = issue_all(d, lane, sends, plain);
		if (n < 0)
			return n;
		did += n;
		n = rxfer_poll(lane->conn, done, BURST);
		if (n <= 0)
			return n ? n : did;
		did += n;
		rc = take_all(d, lane, done, n, plain);
	} while (!rc && did < BURST);
	return rc ? rc : did;
}

static int pass_plain(struct direct *d, struct lane *lane)
{
	return pass(d, lane, false, true);
}

static int pass_messages(struct direct *d, struct lane *lane)
{
	return pass(d, lane, true, true);
}

static int pass_any(struct direct *d, struct lane *lane)
{
	return pass(d, lane, op_takes_recvs(d->load.cfg), false);
}

static bool is_plain(const struct cfg *cfg)
{
	return !cfg->verify && !cfg->rate && !cfg->bidir && !cfg->working_set && !cfg->touch;
}

int (*direct_way(const struct cfg *cfg))(struct direct *d, struct lane *lane)
{
	if (!is_plain(cfg))
		return pass_any;
	return op_takes_recvs(cfg) ? pass_messages : pass_plain;
}

static int direct_pass(struct load *l, struct turn *turn)
{
	struct direct *d = direct_of(l);

	return d->pass(d, (struct lane *)turn);
}

/* Fetch the last byte that was written, behind it. Of no bytes it would prove nothing: a READ's
 * answer is what the WRITEs before it left at its address. */
static int ask_for_proof(struct direct *d, struct lane *lane)
{
	struct rxfer_seg last = lane->slots[(lane->next ? lane->next : lane->depth) - 1].remote;

	lane->asked = lane->turn.number;
	last.addr += last.len - 1;
	last.len = 1;
	return rxfer_drain_read(lane->conn, &last, &(struct rxfer_frag){d->proof.base, 1});
}

/* Asks for the drain once nothing but a silent tail is left, or for proof of what was written. */
static int direct_ended(struct load *l, struct turn *turn, bool *yes)
{
	struct lane *lane = (struct lane *)turn;
	struct direct *d = direct_of(l);
	const struct target *t = d->target;

	if (d->proof.len && lane->asked != turn->number)
		return ask_for_proof(d, lane);
	*yes = lane->nfree == lane->depth && rxfer_idle(lane->conn);
	return *yes ? 0 : rxfer_drain(lane->conn, &(struct rxfer_seg){t->addr, 0, t->key});
}

const struct load_ops direct_ops = {
	.pass = direct_pass,
	.ended = direct_ended,
	.free = direct_free,
};
