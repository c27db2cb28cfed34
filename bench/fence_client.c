/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rxfer-bench fence, one cell: an I/O on connections of its own is brought to a stage and kept
 * there while the server tries.
 *
 * A completion is believed only where memory agrees. Before the attempt the arena is filled with
 * bytes that no attempt before had; a READ that was let in must have brought those (their sum, of
 * what the server has), a WRITE must have left its own, which differ from them in every byte, and
 * there alone; and whatever else came of it, all of the arena must be as it was.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fence.h"
#include "pattern.h"

#define SENT 0 /* places for messages in their area: that are sent, and that come */
#define CAME FENCE_MESSAGE

/* struct held - the I/O of a cell. @credits: that it has still reserved. */
struct held {
	struct fence_client *f;
	const struct fence_cell *cell;
	struct fence_end end[FENCE_CONNS];
	unsigned int conns;
	struct rxfer_exposure *exposure;
	struct rxfer_seg told; /* where its memory is, and its key */
	uint32_t credits;
};

static struct rxfer_wait wait_now(const struct fence_client *f)
{
	return (struct rxfer_wait){rxfer_now() + f->timeout_ns, f->control->fd, f->runtime->stop};
}

/* The control connection is of no more use after a failure. */
static int over(struct fence_client *f, int rc)
{
	f->dead |= rc != 0;
	return rc;
}

/* ---- Memory ---- */

static uint64_t whole_pages(uint64_t n)
{
	return (n + FENCE_PAGE - 1) / FENCE_PAGE * FENCE_PAGE;
}

int fence_memory(struct fence_client *f, bool write, uint64_t bytes)
{
	size_t len = 2 * FENCE_PAGE + whole_pages(bytes);
	int rc = area_make(f->dev, len, write ? RXFER_EXPOSE_WRITE : RXFER_EXPOSE_READ, &f->arena);

	if (!rc)
		rc = area_make(f->dev, 2 * FENCE_MESSAGE, RXFER_FIXED, &f->messages);
	if (rc)
		return rc;
	f->bytes = bytes;
	f->below = rxfer_mem_below(f->arena.mem);
	f->image = malloc(len + bytes);
	return f->image ? 0 : rxfer_fail(ENOMEM, "out of memory for %s", rxfer_size(len).s);
}

void fence_memory_drop(struct fence_client *f)
{
	area_drop(&f->arena);
	area_drop(&f->messages);
	free(f->image);
	f->image = NULL;
}

/* The complement of the pattern: so a WRITE of the pattern, at its place, changes each byte. */
static void fill(struct fence_client *f)
{
	pattern_fill(f->image, f->arena.len, 0, f->number);
	for (size_t i = 0; i < f->arena.len; i++)
		f->image[i] = (char)~f->image[i];
	memcpy(f->arena.base, f->image, f->arena.len);
}

static struct rxfer_frag fragment(const struct fence_client *f)
{
	return (struct rxfer_frag){f->arena.base + FENCE_PAGE, (uint32_t)f->bytes};
}

/* ---- Connections ---- */

/* At once in flight: two requests, or one and a revoke. */
static int attr_of(const struct held *h, unsigned int i, struct rxfer_conn_attr *attr)
{
	*attr = (struct rxfer_conn_attr){
		.slots = 2,
		.ios = 4,
		.one_message = true,
		.rq_depth = 2,
		.revoke = h->cell->revoke,
		.shape = {.op = RXFER_SEND,
			  .bytes = FENCE_MESSAGE,
			  .frags = 1,
			  .exposed = 1,
			  .fixed = 1,
			  .exposed_bytes = h->f->bytes,
			  .rights = h->cell->write ? RXFER_EXPOSE_WRITE : RXFER_EXPOSE_READ},
		.index = (uint16_t)i,
	};
	memcpy(attr->token, h->f->token, sizeof(attr->token));
	return rxfer_sig_parse("io", &attr->sig, &attr->sig_arg);
}

static int connect_one(struct held *h, unsigned int i)
{
	struct rxfer_wait wait = wait_now(h->f);
	struct rxfer_conn_attr attr;
	int rc = attr_of(h, i, &attr);

	if (!rc)
		rc = rxfer_connect(h->f->dev, &h->f->addr, &attr, &wait, &h->end[i].conn);
	if (rc == -ECANCELED || rc == -ECONNREFUSED || rc == -ETIMEDOUT)
		rc = control_reason(h->f->control, rc);
	return over(h->f, rc); /* the server waits for a connection, and for nothing else */
}

static int post_recv(struct held *h, unsigned int i)
{
	return rxfer_post_recv(h->end[i].conn, h->f->messages.base + CAME, FENCE_MESSAGE, 0);
}

/* The server may use the connection now. */
static int greet(struct held *h, unsigned int i)
{
	struct rxfer_wait wait = wait_now(h->f);

	return fence_send(&h->end[i], h->f->messages.base + SENT, 0, 0, &wait);
}

/* One RECV for the reply, and one for what follows a WRITE: on the first connection both. */
static int connect_all(struct held *h)
{
	const struct fence_cell *c = h->cell;
	bool twice = c->revoke == RXFER_REVOKE_LAZY && c->stage == FENCE_REVOKED;
	const struct fence_hold hold = {c->attempt == FENCE_OTHER_QP ? 2 : 1, twice ? 2 : 1};
	struct rxfer_wait wait = wait_now(h->f);
	int rc =
		over(h->f, control_send(h->f->control, MSG_HOLD, fence_hold_to_json(&hold), &wait));

	for (; !rc && h->conns < hold.conns; h->conns++)
		rc = connect_one(h, h->conns);
	wait = wait_now(h->f);
	if (!rc)
		rc = over(h->f, control_expect(h->f->control, MSG_CONNECTED, NULL, &wait));
	for (unsigned int i = 0; !rc && i < 2; i++)
		rc = post_recv(h, i % hold.conns);
	for (unsigned int i = 1; !rc && i < hold.conns; i++)
		rc = greet(h, i);
	return rc;
}

/* ---- To the stage ---- */

/* Wait on the I/O's connection. */
static int await(struct held *h, enum rxfer_opcode op, unsigned int n, const char *what)
{
	struct rxfer_wait wait = wait_now(h->f);
	int rc = fence_await(&h->end[0], op, n, what, &wait);

	if (rc == -ECANCELED)
		return over(h->f, control_reason(h->f->control, rc));
	return rc;
}

/* Expose its memory, and send the request. Its completion says that the server's device has it,
 * and that the grants before it are done. */
static int request(struct held *h)
{
	const struct rxfer_frag memory = fragment(h->f);
	const struct rxfer_frag message = {h->f->messages.base + SENT, FENCE_MESSAGE};
	const struct rxfer_op op = {.op = RXFER_SEND,
				    .local = &message,
				    .nlocal = 1,
				    .fixed = 1,
				    .flags = RXFER_MUST_SIGNAL,
				    .grants = h->exposure};
	struct rxfer_conn *conn = h->end[0].conn;
	struct rxfer_conn_info info;
	int rc = rxfer_expose(conn, h->exposure, &memory, 1,
			      h->cell->write ? RXFER_EXPOSE_WRITE : RXFER_EXPOSE_READ);

	rxfer_conn_info(conn, &info);
	if (!rc)
		rc = rxfer_sq_reserve(rxfer_conn_sq(conn), info.need);
	if (rc)
		return rc;
	h->credits = info.need;
	rc = rxfer_post_held(conn, &op, &h->credits, info.later);
	if (rc)
		return rc;
	return await(h, RXFER_SEND, h->end[0].done[RXFER_SEND] + 1, "the request's SEND");
}

/* The key that the reply was to revoke. */
static int peer_revoked(struct held *h)
{
	const struct rxfer_done *reply = &h->end[0].message;

	if (!reply->with_inv)
		return rxfer_fail(
			EBADMSG,
			"the reply revoked no key; to revoke it from here could be the second time");
	return rxfer_peer_revoked(h->end[0].conn, h->exposure, reply->imm);
}

static int get_reply(struct held *h)
{
	const struct fence_reply r = {h->cell->revoke == RXFER_REVOKE_REMOTE, h->told.key};
	struct rxfer_wait wait = wait_now(h->f);
	int rc = over(h->f, control_send(h->f->control, MSG_REPLY, fence_reply_to_json(&r), &wait));

	if (!rc)
		rc = await(h, RXFER_RECV, 1, "the reply");
	if (rc)
		return rc;
	rc = rxfer_replied(h->end[0].conn, h->exposure);
	return rc || !r.revoke ? rc : peer_revoked(h);
}

static int revoke(struct held *h)
{
	const struct rxfer_revoking how = {.flags = RXFER_MUST_SIGNAL, .held = &h->credits};
	int rc = rxfer_revoke_held(h->end[0].conn, h->exposure, &how);

	if (rc == RXFER_REVOKED)
		return 0;
	return rc ? rc : await(h, RXFER_REVOKE, 1, "the proof of a revoke");
}

/* Its key is dead: by what the mode has for it, once. */
static int get_revoked(struct held *h)
{
	switch (h->cell->revoke) {
	case RXFER_REVOKE_SYNC:
	case RXFER_REVOKE_ASYNC:
		return revoke(h);
	case RXFER_REVOKE_LAZY:
		return request(h); /* the next I/O of the slot */
	default:
		return 0;
	}
}

/*
 * Where the I/O is copied to a buffer, that is what the peer is told of. What the I/O's memory has
 * must be in there; where the peer is to write it, it is put there for him, so that it is no other
 * once that is copied out.
 */
static void note_buffer(struct held *h)
{
	const struct fence_client *f = h->f;

	if (h->cell->kind != FENCE_BUFFER)
		return;
	memcpy(f->image + f->arena.len, f->image + FENCE_PAGE, f->bytes);
	if (h->cell->write)
		memcpy((void *)(uintptr_t)h->told.addr, f->image + FENCE_PAGE, f->bytes);
}

static int reach_stage(struct held *h)
{
	enum fence_stage stage = h->cell->stage;
	bool dead = stage == FENCE_REVOKED ||
		    (stage == FENCE_COMPLETE && h->cell->revoke == RXFER_REVOKE_SYNC);
	uint32_t n;
	int rc = rxfer_exposure_new(h->end[0].conn, 1, &h->exposure);

	if (!rc)
		rc = request(h);
	if (rc)
		return rc;
	h->told = rxfer_exposure_segs(h->exposure, &n)[0];
	note_buffer(h);
	if (stage != FENCE_DURING)
		rc = get_reply(h);
	return !rc && dead ? get_revoked(h) : rc;
}

/* ---- The attempt ---- */

static struct fence_try attempt_of(const struct held *h)
{
	const struct fence_cell *c = h->cell;
	uint64_t memory = (uintptr_t)fragment(h->f).addr;
	uint64_t begin = c->attempt == FENCE_MEMORY ? memory : h->told.addr;
	struct fence_try t = {.write = c->write,
			      .addr = begin,
			      .len = h->told.len,
			      .key = h->told.key,
			      .position = FENCE_PAGE,
			      .seed = h->f->number};

	if (c->attempt == FENCE_BEFORE || c->attempt == FENCE_AFTER) {
		uint64_t by = c->attempt == FENCE_BEFORE ? UINT64_MAX : t.len;

		t.addr += by;
		t.position += by;
		t.len = 1;
	}
	if (c->attempt == FENCE_PARENT) {
		t.addr = memory;
		t.key = h->f->below;
	}
	t.write |= c->attempt == FENCE_WRITE_READ_ONLY;
	t.conn = c->attempt == FENCE_OTHER_QP;
	return t;
}

/* The server may need all its time until it knows. */
static int try(struct fence_client *f, const struct fence_try *t, struct fence_tried *out)
{
	struct rxfer_wait wait = wait_now(f);
	json_t *body;
	int rc = control_send(f->control, MSG_TRY, fence_try_to_json(t), &wait);

	wait.deadline += 2 * f->timeout_ns;
	if (!rc)
		rc = control_expect(f->control, MSG_TRIED, &body, &wait);
	if (rc)
		return over(f, rc);
	rc = over(f, fence_tried_from_json(body, out));
	json_decref(body);
	return rc;
}

static int failed(struct fence_row *row, const char *words)
{
	row->observed = FENCE_FAILED;
	snprintf(row->note, sizeof(row->note), "%s", words);
	return 0;
}

/* Where the image has what must be at @addr. */
static char *image_of(const struct held *h, uint64_t addr)
{
	const struct fence_client *f = h->f;

	if (h->cell->kind == FENCE_BUFFER && addr - h->told.addr < f->bytes)
		return f->image + f->arena.len + (addr - h->told.addr);
	return f->image + (addr - (uintptr_t)f->arena.base);
}

/* The same of what is tried: a list has addresses of its own. */
static char *image_tried(const struct held *h, const struct fence_try *t)
{
	return h->cell->kind == FENCE_LIST ? h->f->image + t->position : image_of(h, t->addr);
}

/* Is so much of the client's memory as it must be now? */
static int check_piece(const struct held *h, const char *is, size_t len, const struct fence_try *t,
		       struct fence_row *row)
{
	const char *must = image_of(h, (uintptr_t)is);
	size_t i = 0;
	char words[160];

	while (i < len && is[i] == must[i])
		i++;
	if (i == len)
		return 0;
	snprintf(words, sizeof(words),
		 "told to be %s, but byte %lld from where it was to %s is not as it must be",
		 fence_outcome_name(row->observed), (long long)i - (long long)t->position,
		 t->write ? "write" : "read");
	return failed(row, words);
}

static int check_memory(const struct held *h, const struct fence_try *t, struct fence_row *row)
{
	const struct fence_client *f = h->f;

	if (h->cell->kind == FENCE_BUFFER)
		check_piece(h, (char *)(uintptr_t)h->told.addr, f->bytes, t, row);
	return check_piece(h, f->arena.base, f->arena.len, t, row);
}

/* Over iWARP the end of our connection says as much as anything does. */
static void note_ended(const struct fence_client *f, struct fence_end *e, struct fence_row *row)
{
	struct rxfer_wait wait = wait_now(f);
	int rc;

	if (row->observed != FENCE_FAILED || !fence_is_iwarp(f->dev))
		return;
	wait.deadline -= f->timeout_ns / 2;
	rc = fence_await(e, RXFER_RECV, e->done[RXFER_RECV] + 1, "the connection's end", &wait);
	if (rc != -ENOTCONN && rc != -EIO && rc != -ECONNRESET)
		return;
	row->observed = FENCE_ENDED;
	row->note[0] = '\0';
}

/* Is what the server calls open so? What follows a WRITE comes behind its bytes. */
static int check_open(struct held *h, const struct fence_try *t, const struct fence_tried *tried,
		      struct fence_row *row)
{
	struct fence_end *e = &h->end[t->conn];
	struct rxfer_wait wait = wait_now(h->f);
	int rc;

	if (!t->write && tried->sum != fence_sum((char *)h->f->arena.base + t->position, t->len))
		return failed(row, "told to be open, but the READ brought other bytes");
	if (!t->write)
		return 0;
	rc = fence_await(e, RXFER_RECV, e->done[RXFER_RECV] + 1, "what follows a WRITE", &wait);
	if (rc == -EINTR)
		return rc;
	if (rc)
		return failed(row, rxfer_error());
	pattern_fill(image_tried(h, t), t->len, t->position, t->seed);
	return 0;
}

/* What @tried says, and whether memory agrees. */
static int judge(struct held *h, const struct fence_try *t, const struct fence_tried *tried,
		 struct fence_row *row)
{
	int rc = 0;

	row->observed = tried->outcome;
	if (tried->outcome == FENCE_FAILED)
		failed(row, tried->words);
	else if (tried->outcome == FENCE_OPEN)
		rc = check_open(h, t, tried, row);
	note_ended(h->f, &h->end[t->conn], row);
	return rc ? rc : check_memory(h, t, row);
}

static void close_all(struct held *h)
{
	for (unsigned int i = 0; i < FENCE_CONNS; i++)
		fence_close(&h->end[i]);
}

int fence_cell(struct fence_client *f, const struct fence_cell *cell, struct fence_row *row)
{
	struct held h = {.f = f, .cell = cell};
	struct fence_tried tried;
	struct fence_try t;
	int rc;

	f->number++;
	fill(f);
	rc = connect_all(&h);
	if (!rc)
		rc = reach_stage(&h);
	if (!rc) {
		t = attempt_of(&h);
		rc = try(f, &t, &tried);
	}
	if (!rc)
		rc = judge(&h, &t, &tried, row);
	close_all(&h);
	return rc;
}
