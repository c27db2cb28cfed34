/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The strategy frwr, I/O after I/O through the windows of SLOTS slots: random modes, devices and
 * schedules, and a server that reads and writes by the keys that it is told and replies in any
 * order. Whatever the order: what counts as open is what a model says, and never less than what is;
 * each key is revoked once, by one of the two ends; the double has nothing to say; all comes back.
 */
#include "frwr_fixture.h"
#include "prop.h"

#define IOS	    2500  /* of a sequence, */
#define LONG	    50000 /* and of one through SLOTS windows alone */
#define DEAD_ROUNDS 20000
#define PIECES	    3

/* What a request says, to the server. */
struct told {
	uint32_t slot, n;
	struct rxfer_seg seg[PIECES];
};

/* What a slot's I/O misses. */
enum { REPLIED = 1, PROVEN = 2, REVOKED = 4 };

/*
 * struct slot - @missing: 0: it is free. @due: to be revoked, some time. @n: keys that it has
 * granted; @was: that are open from before; @keys: those of now
 */
struct slot {
	unsigned int missing;
	bool due;
	uint32_t n, was;
	uint32_t keys[PIECES];
};

/* A request that the server has. */
struct job {
	struct told told;
	bool reading;
};

struct sim {
	struct prop *p;
	struct pair pair;
	struct how how;
	bool renews, waits;
	struct slot slot[SLOTS];
	struct job job[SLOTS];
	bool writing[SLOTS]; /* from this buffer of the server's */
	uint32_t jobs;
	uint32_t ios, issued, done;
	uint64_t open, granted, revoked, ended;
};

/* ---- The client ---- */

static uint32_t place(uint32_t i, uint32_t k)
{
	return i * ROOM + AT + k * GAPS;
}

/* By the number of the I/O, so that an older one's bytes are wrong. */
static uint8_t byte_of(uint32_t i, uint32_t k, uint32_t key)
{
	return (uint8_t)(key * 7 + i * 31 + k);
}

/* What the server writes there. */
static uint8_t answer_of(uint32_t i, uint32_t key)
{
	return (uint8_t)(byte_of(i, 0, key) + 128);
}

/* The windows of this slot are others now, where their keys were all used. */
static void renew(struct sim *s, uint32_t i)
{
	uint32_t before = rxfer_exposure_open(s->pair.x[i]), ended;
	int rc = rxfer_exposure_renew(s->pair.e.client, s->pair.x[i]);

	ended = before - rxfer_exposure_open(s->pair.x[i]);
	PROP_CHECK(s->p, rc == (ended ? RXFER_REVOKED : 0));
	PROP_CHECK(s->p, !ended || s->how.revoke == RXFER_REVOKE_LAZY);
	s->slot[i].n -= ended;
	s->open -= ended;
	s->ended += ended;
}

static void issue(struct sim *s, uint32_t i)
{
	struct slot *slot = &s->slot[i];
	struct told told = {.slot = i, .n = prop_range(s->p, 1, s->how.exposed)};
	const struct rxfer_seg *seg;

	if (s->renews)
		renew(s, i);
	while (prop_chance(s->p, 10)) /* chosen, and not posted */
		expose(&s->pair, i, prop_range(s->p, 1, s->how.exposed), GAPS);
	expose(&s->pair, i, told.n, GAPS);
	seg = segs(&s->pair, i, told.n);
	for (uint32_t k = 0; k < told.n; k++) {
		told.seg[k] = seg[k];
		slot->keys[k] = seg[k].key;
		memset(mine + place(i, k), byte_of(i, k, seg[k].key), LEN);
	}
	memcpy(messages + i * MESSAGE, &told, sizeof(told));
	if (s->pair.held[i])
		PROP_CHECK(s->p,
			   !rxfer_sq_release(rxfer_conn_sq(s->pair.e.client), s->pair.held[i]));
	s->pair.held[i] = 0;
	if (post_request(&s->pair, i, 0) == -EAGAIN)
		return;
	slot->was = slot->n;
	slot->n = told.n;
	s->open += told.n;
	s->granted += told.n;
	slot->missing = REPLIED | PROVEN | (s->how.revoke == RXFER_REVOKE_LAZY ? 0 : REVOKED);
	s->issued++;
}

static void free_slot(struct sim *s, struct slot *slot, unsigned int what)
{
	PROP_CHECK(s->p, slot->missing & what);
	slot->missing &= ~what;
	s->done += !slot->missing;
}

static void keys_are_dead(struct sim *s, struct slot *slot, uint32_t n)
{
	s->open -= n;
	s->revoked += n;
	slot->n -= n;
}

static void post_revoke(struct sim *s, uint32_t i)
{
	s->slot[i].due = false;
	PROP_CHECK(s->p, revoke(&s->pair, i, s->waits ? RXFER_MUST_SIGNAL : 0) == 0);
}

/* The reply says so by the slot's number; what the server wrote is there. */
static void take_reply(struct sim *s, const struct rxfer_done *done)
{
	uint32_t i = messages[(SLOTS + done->id) * MESSAGE], at = i * ROOM + AT;
	struct slot *slot = &s->slot[i];

	for (uint32_t k = 0; k < LEN; k++)
		PROP_CHECK(s->p, mine[at + k] == answer_of(i, slot->keys[0]));
	PROP_CHECK(s->p, rxfer_post_recv(s->pair.e.client, messages + (SLOTS + done->id) * MESSAGE,
					 MESSAGE, done->id) == 0);
	rxfer_replied(s->pair.e.client, s->pair.x[i]);
	free_slot(s, slot, REPLIED);
	PROP_CHECK(s->p, done->with_inv == (s->how.revoke == RXFER_REVOKE_REMOTE));
	if (done->with_inv) {
		PROP_CHECK(s->p, !rxfer_peer_revoked(s->pair.e.client, s->pair.x[i], done->imm));
		keys_are_dead(s, slot, 1);
		if (!slot->n) {
			PROP_CHECK(s->p, rxfer_open_after(s->pair.x[i]) == 0);
			free_slot(s, slot, REVOKED);
		}
	}
	slot->due = slot->missing & REVOKED;
	if (slot->due && (s->waits || prop_chance(s->p, 70)))
		post_revoke(s, i);
}

static void take(struct sim *s, const struct rxfer_done *done)
{
	struct slot *slot;

	if (done->op == RXFER_RECV) {
		take_reply(s, done);
		return;
	}
	slot = &s->slot[done->id % REVOKE];
	if (done->op == RXFER_SEND) {
		s->open -= slot->was;
		s->revoked += slot->was;
		slot->was = 0;
		free_slot(s, slot, PROVEN);
	} else {
		PROP_CHECK(s->p, done->op == RXFER_REVOKE);
		PROP_CHECK(s->p, rxfer_exposure_open(s->pair.x[done->id - REVOKE]) == 0);
		keys_are_dead(s, slot, slot->n);
		free_slot(s, slot, REVOKED);
	}
}

/* All were issued and answered: what is silent is proven by one WR more. */
static void drain(struct sim *s)
{
	const struct rxfer_seg nowhere = {0};
	int rc;

	for (uint32_t i = 0; i < SLOTS; i++)
		if (s->slot[i].missing & REPLIED || s->slot[i].due)
			return;
	rc = rxfer_drain(s->pair.e.client, &nowhere);
	PROP_CHECK(s->p, rc == 0 || rc == -EAGAIN);
}

static bool client(struct sim *s)
{
	uint32_t i = prop_range(s->p, 0, SLOTS - 1);
	struct rxfer_done done[4];
	int n;

	if (s->slot[i].due)
		post_revoke(s, i);
	if (!s->slot[i].missing && s->issued < s->ios)
		issue(s, i);
	if (s->issued == s->ios)
		drain(s);
	n = rxfer_poll(s->pair.e.client, done, (int)prop_range(s->p, 1, 4));
	if (n < 0)
		fail_msg("%s (%s); repeat with RXFER_PROP_SEED=%llu", rxfer_error(), fake_reason(),
			 (unsigned long long)s->p->seed);
	for (int k = 0; k < n; k++)
		take(s, &done[k]);
	return n > 0;
}

/* ---- The server ---- */

static void start_job(struct sim *s, const struct rxfer_done *done)
{
	struct job *job = &s->job[s->jobs++];

	PROP_CHECK(s->p, s->jobs <= SLOTS);
	*job = (struct job){0};
	memcpy(&job->told, inbox + done->id * MESSAGE, sizeof(job->told));
	PROP_CHECK(s->p, rxfer_post_recv(s->pair.e.server, inbox + done->id * MESSAGE, MESSAGE,
					 done->id) == 0);
}

static void end_read(struct sim *s, uint32_t i)
{
	for (struct job *job = s->job; job < s->job + s->jobs; job++)
		if (job->told.slot == i)
			job->reading = false;
	for (uint32_t k = 1; k < LEN; k++)
		PROP_CHECK(s->p, theirs[i * LEN + k] == theirs[i * LEN]);
}

/* All of it by one WRITE and the reply, which revokes any one of the keys. */
static void answer(struct sim *s, uint32_t j)
{
	struct told *t = &s->job[j].told;
	uint32_t k = prop_range(s->p, 0, t->n - 1);
	bool inv = s->how.revoke == RXFER_REVOKE_REMOTE;
	struct rxfer_frag bytes = {theirs + (SLOTS + t->slot) * LEN, LEN};
	struct rxfer_frag frag = {inbox + (RECVS + t->slot) * MESSAGE, REPLY};
	const struct rxfer_op op = {.op = RXFER_SEND,
				    .local = &frag,
				    .nlocal = 1,
				    .fixed = 1,
				    .imm = t->seg[k].key,
				    .id = 100,
				    .flags = inv ? RXFER_INVALIDATE : 0};

	if (s->writing[t->slot])
		return;
	*(uint8_t *)frag.addr = (uint8_t)t->slot;
	memset(bytes.addr, answer_of(t->slot, t->seg[0].key), LEN);
	if (rxfer_post_write(s->pair.e.server, &bytes, 1, t->seg, 1, t->slot, RXFER_MUST_SIGNAL))
		return;
	s->writing[t->slot] = true;
	if (rxfer_post(s->pair.e.server, &op))
		return; /* the WRITE goes once more, the next time */
	s->job[j] = s->job[--s->jobs];
}

static void go_on(struct sim *s)
{
	uint32_t j = prop_range(s->p, 0, s->jobs - 1);
	struct job *job = &s->job[j];
	uint32_t k = prop_range(s->p, 0, job->told.n - 1);
	struct rxfer_frag frag = {theirs + job->told.slot * LEN, LEN};

	if (job->reading)
		return;
	if (prop_chance(s->p, 70))
		answer(s, j);
	else
		job->reading = !rxfer_post_read(s->pair.e.server, &frag, 1, &job->told.seg[k], 1,
						job->told.slot, RXFER_MUST_SIGNAL);
}

static bool server(struct sim *s)
{
	struct rxfer_done done[4];
	int n;

	if (s->jobs)
		go_on(s);
	n = rxfer_poll(s->pair.e.server, done, (int)prop_range(s->p, 1, 4));
	if (n < 0)
		fail_msg("%s (%s); repeat with RXFER_PROP_SEED=%llu", rxfer_error(), fake_reason(),
			 (unsigned long long)s->p->seed);
	for (int k = 0; k < n; k++)
		if (done[k].op == RXFER_RECV)
			start_job(s, &done[k]);
		else if (done[k].op == RXFER_READ)
			end_read(s, (uint32_t)done[k].id);
		else if (done[k].op == RXFER_WRITE)
			s->writing[done[k].id] = false;
	return n > 0;
}

/* ---- A sequence ---- */

/* The books agree with the model, and what is open in the device is in them. */
static void books(const struct sim *s)
{
	struct rxfer_exposed e = rxfer_conn_exposed(s->pair.e.client);
	const struct fake_stats *f = fake_stats();

	PROP_CHECK(s->p, e.live == s->open && e.now == s->open * LEN);
	PROP_CHECK(s->p, e.grants == s->granted && e.proven == s->revoked + s->ended);
	PROP_CHECK(s->p, f->binds <= s->granted && f->invalidates >= s->revoked);
	PROP_CHECK(s->p, f->binds - f->invalidates - s->ended <= e.live);
}

static void random_how(struct sim *s, struct fake_config *config)
{
	static const enum rxfer_revoke modes[] = {RXFER_REVOKE_SYNC, RXFER_REVOKE_ASYNC,
						  RXFER_REVOKE_REMOTE, RXFER_REVOKE_LAZY};
	static const char *const signals[] = {"all", "io", "half", "every:5"};
	struct prop *p = s->p;

	s->how.revoke = modes[prop_range(p, 0, 3)];
	s->how.signal = signals[prop_range(p, 0, 3)];
	s->how.exposed = prop_chance(p, 70) ? 1 : prop_range(p, 2, PIECES);
	s->how.sq_depth = prop_chance(p, 50) ? 0 : prop_range(p, 14, 40);
	s->how.post_single = prop_chance(p, 20);
	s->waits = s->how.revoke == RXFER_REVOKE_SYNC || s->how.revoke == RXFER_REVOKE_REMOTE;
	s->renews = prop_chance(p, 30);
	config->seed = 1 + prop_next(p) % 1000000;
	config->cq_order = (enum fake_cq_order)prop_range(p, 0, 3);
	config->sq_delay = prop_range(p, 0, 20);
	config->rq_delay = prop_range(p, 0, 20);
	config->read_lag = prop_range(p, 0, 20);
	config->mw_numbered_on = prop_chance(p, 50);
}

/* All were answered: the silent tail is proven, and both ends are idle. */
static void all_is_back(struct sim *s)
{
	const struct rxfer_counts *c = rxfer_conn_counts(s->pair.e.client);
	bool lazily = s->how.revoke == RXFER_REVOKE_LAZY;

	PROP_CHECK(s->p, s->done == s->ios && c->sqe_op[RXFER_SEND] == s->ios);
	PROP_CHECK(s->p, c->sqe_op[RXFER_BIND] == s->granted);
	PROP_CHECK(s->p, fake_stats()->binds == s->granted);
	PROP_CHECK(s->p, fake_stats()->invalidates == s->revoked);
	PROP_CHECK(s->p, s->revoked + s->ended + s->open == s->granted);
	PROP_CHECK(s->p, lazily || (s->open == 0 && s->ended == 0));
	fake_run();
	while (client(s))
		;
	for (uint32_t i = 0; i < SLOTS; i++)
		if (s->pair.held[i])
			rxfer_sq_release(rxfer_conn_sq(s->pair.e.client), s->pair.held[i]);
	PROP_CHECK(s->p, engine_idle(s->pair.e.client));
	if (fake_violations())
		fail_msg("%s; repeat with RXFER_PROP_SEED=%llu", fake_violation(0),
			 (unsigned long long)s->p->seed);
}

/* @ios: through one window a slot; 0: IOS, through one or some more */
static void sequence(struct prop *p, uint64_t seed, uint32_t ios)
{
	struct fake_config config = engine_config();
	struct sim s = {.p = p, .ios = ios ? ios : IOS};
	uint32_t dead = 0;

	prop_start(p, seed);
	random_how(&s, &config);
	s.how.exposed = ios ? 1 : s.how.exposed;
	open_with(&s.pair, &config, &s.how);
	fake_live()->clock_read_ns = 1;
	while (s.done < s.ios && dead < DEAD_ROUNDS) {
		uint32_t what = prop_range(p, 0, 3), before = s.done;
		bool did = what == 0 ? client(&s) : what == 1 && server(&s);

		for (uint32_t n = what > 1 ? prop_range(p, 1, 6) : 0; n; n--)
			did = fake_step() || did;
		dead = s.done == before ? dead + 1 : 0;
		if (what == 0)
			books(&s);
	}
	if (dead == DEAD_ROUNDS)
		fail_msg("it stands still (%s, mode %d, depth %u, %u done); repeat with "
			 "RXFER_PROP_SEED=%llu",
			 s.how.signal, s.how.revoke, s.pair.info.sq_depth, s.done,
			 (unsigned long long)seed);
	all_is_back(&s);
	close_pair(&s.pair);
}

static void each_key_is_revoked_once(void **state)
{
	uint64_t seed = prop_first_seed(), n = prop_count(48, 4);
	struct prop p;

	(void)state;
	for (; n; n--, seed++)
		sequence(&p, seed, 0);
}

static void windows_are_bound_again_and_again(void **state)
{
	struct prop p;

	(void)state;
	sequence(&p, prop_first_seed(), (uint32_t)prop_count(LONG, 2000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_key_is_revoked_once),
		cmocka_unit_test(windows_are_bound_again_and_again),
	};

	return cmocka_run_group_tests_name("prop_frwr", tests, NULL, NULL);
}
