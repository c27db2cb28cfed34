/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which WRs ask for a completion.
 *
 * Every completion costs: the device writes a CQE, the CPU polls it. A silent WR saves that, but
 * its SQE and its buffers stay in use until a later completion proves it done (the essay of sq.c
 * says why nothing else does). The silent tail, the WRs since the last signalled one, is what no
 * completion is on its way for. If everybody waits for something in the silent tail, nobody ever
 * posts the WR that would prove it: the program hangs with an idle NIC. A policy chooses how many
 * completions there are; the rules (rxfer_sig_must(), rxfer_sig_keeps_alive()) see to it that this
 * never happens, whatever the policy. They add signals and take none away, and a signal that only
 * they wanted is counted as forced.
 *
 *	(a) half of the depth is silent           the policy `half` itself, no rule for the others
 *	(b) half of the slots are in the tail     on the WR that ends its post
 *	(c) free credits are fewer than N         on the WR that ends its post
 *	(d) whoever posts it waits for it
 *
 * Why it cannot hang. Whoever waits in vain waits for a slot, for credits, or for a WR of its
 * own. The last is (d). Look at the last post before everything stopped, and suppose that its
 * last WR was left silent (were it signalled, its completion would come and return all that was
 * ever posted).
 *
 * - Slots. An I/O gives its slot back when its WRs are proven. If all slots wait for proof and no
 *   completion is on its way, all of them are in the silent tail, and so more than enough for (b),
 *   which would have signalled. A slot that is not in the tail is idle, or the proof of it is on
 *   its way, or it waits for its peer and not for us.
 *
 *   To compare SQEs alone, as in (a), does not see this: eight slots that each reserve ten entries
 *   but use two leave sixteen silent SQEs in a queue of a hundred, far from half of it, and stand
 *   still. This is why (b) counts I/Os. To stay alive it would be enough to signal when all slots
 *   are in the tail; at half of them, the others are busy while the proof travels.
 *
 * - Credits. Since the post was left silent, (c) says that N credits were free right after it. No
 *   post came since, so only reservations can have taken them. Whoever holds one either spends
 *   it, which is a post, and this was the last; or gives it back; or waits for its peer, and then
 *   does either. So if nothing happens any more, nobody holds any of those N, they are free, and
 *   a reservation of up to N succeeds. It follows that nobody may ask for more than N at once.
 *   What is reserved for ever, the one credit for the drain WR, never counts as free: N + 1 must
 *   fit into the depth.
 *
 * That is also why (c) looks at the end of a post only. Its WRs are posted together, and a
 * completion of the last proves all of them, so asking for more buys nothing but CQEs: when the
 * queue is tight, which a small depth makes it at every post, a chain of k WRs would ask for k
 * completions instead of one. The same holds for (b). The price is a duty of the caller,
 * who must know the last WR of a post: where WRs were held back for company that never came, what
 * (b) and (c) say is asked of the last of them when they are let go (rxfer_flush()). And where the
 * device took only part of a post, the end of the post is gone and with it the proof above, until
 * the caller posts again.
 *
 * Distinct I/Os are counted without a list: each I/O has a word that holds the number (epoch) of
 * the silent tail that last counted it. A signal starts a new tail and thereby forgets them all.
 *
 * A decision is taken for each WR and is one of the dearest things that an I/O pays us for. So a
 * policy is asked once, for numbers: how many silent SQEs are enough, and how many WRs since it
 * last had its way. What the decisions of one post did can be undone one by one, backwards, so no
 * state is copied before a post: a silent WR only moved counters by one, and a signalled one, the
 * rarer kind, keeps in its struct rxfer_sig_wr what it reset.
 */
#include "sig.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Each WR is counted before it is looked at, so a limit of 1 is every WR. */
static struct rxfer_sig_limits wants_all(uint32_t arg, uint32_t depth)
{
	(void)arg;
	(void)depth;
	return (struct rxfer_sig_limits){RXFER_SIG_NEVER_SILENT, {1, 1, 1}};
}

static struct rxfer_sig_limits wants_io(uint32_t arg, uint32_t depth)
{
	(void)arg;
	(void)depth;
	return (struct rxfer_sig_limits){RXFER_SIG_NEVER_SILENT, {RXFER_SIG_NEVER_COUNTED, 1, 1}};
}

static struct rxfer_sig_limits wants_every(uint32_t arg, uint32_t depth)
{
	(void)depth;
	return (struct rxfer_sig_limits){RXFER_SIG_NEVER_SILENT, {arg, arg, arg}};
}

/* Rule (a). The WR itself is silent so far, so that a depth of 1 needs no special case. */
static struct rxfer_sig_limits wants_half(uint32_t arg, uint32_t depth)
{
	(void)arg;
	return (struct rxfer_sig_limits){
		depth / 2,
		{RXFER_SIG_NEVER_COUNTED, RXFER_SIG_NEVER_COUNTED, RXFER_SIG_NEVER_COUNTED}};
}

/* The reply is taken for the proof that a request's entries are free; see shadow.h for what it
 * would allow. */
static struct rxfer_sig_limits wants_inferred(uint32_t arg, uint32_t depth)
{
	(void)arg;
	(void)depth;
	return (struct rxfer_sig_limits){RXFER_SIG_NEVER_SILENT,
					 {RXFER_SIG_NEVER_COUNTED, RXFER_SIG_NEVER_COUNTED, 1}};
}

static const struct rxfer_sig_ops policies[] = {
	{"all", "every WR", false, wants_all},
	{"io", "the last WR of each I/O", false, wants_io},
	{"every", "each K-th WR", true, wants_every},
	{"half", "when half of the send queue is silent", false, wants_half},
	{"inferred", "rpc: revokes alone, as if replies gave entries back", false, wants_inferred},
};

#define N_POLICIES (sizeof(policies) / sizeof(policies[0]))

const struct rxfer_sig_ops *rxfer_sig_list(unsigned int i)
{
	return i < N_POLICIES ? &policies[i] : NULL;
}

static const struct rxfer_sig_ops *find_policy(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < N_POLICIES; i++) {
		if (strlen(policies[i].name) == len && !strncmp(policies[i].name, name, len))
			return &policies[i];
	}
	return NULL;
}

/* Decimal digits only: strtoul() would let blanks and signs pass. */
static int parse_arg(const char *text, uint32_t *arg)
{
	uint64_t n = 0;
	const char *p;

	for (p = text; *p >= '0' && *p <= '9'; p++) {
		n = n * 10 + (uint64_t)(*p - '0');
		if (n > RXFER_SQ_MAX_DEPTH)
			return -EINVAL;
	}
	if (*p || n == 0)
		return -EINVAL;
	*arg = (uint32_t)n;
	return 0;
}

int rxfer_sig_parse(const char *text, const struct rxfer_sig_ops **ops, uint32_t *arg)
{
	size_t len = strcspn(text, ":");
	const struct rxfer_sig_ops *found = find_policy(text, len);
	uint32_t k = 0;

	if (!found)
		return -ENOENT;
	if (found->takes_arg != (text[len] == ':'))
		return -EINVAL;
	if (found->takes_arg && parse_arg(text + len + 1, &k))
		return -EINVAL;

	*ops = found;
	*arg = k;
	return 0;
}

int rxfer_sig_init(struct rxfer_sig *sig, const struct rxfer_sig_ops *ops, uint32_t arg,
		   uint32_t depth, uint32_t slots, uint32_t need)
{
	if (depth == 0 || slots == 0 || need == 0 || (ops->takes_arg && arg == 0))
		return -EINVAL;
	if (need > depth)
		return -EMSGSIZE;
	if (ops->takes_arg && arg > depth)
		return -ERANGE;

	if (!ops->takes_arg)
		arg = 0;
	*sig = (struct rxfer_sig){
		.ops = ops,
		.arg = arg,
		.limits = ops->wants(arg, depth),
		.depth = depth,
		.slots = slots,
		.need = need,
		.epoch = 1,
	};
	return 0;
}

/* Backwards, since WRs of one I/O share their word, and each undoes what the state was after it. */
void rxfer_sig_rollback(struct rxfer_sig *sig, const struct rxfer_sig_wr *wr, const bool *said,
			uint32_t taken, uint32_t n)
{
	while (n-- > taken) {
		if (said[n]) {
			sig->epoch--;
			sig->signalled--;
			sig->forced -= wr[n].forced;
			sig->silent = wr[n].silent_was;
			sig->silent_ios = wr[n].silent_ios_was;
			sig->counted = wr[n].counted_was;
		}
		sig->silent--;
		sig->counted--;
		sig->silent_ios -= wr[n].epoch_was != sig->epoch;
		*wr[n].io_epoch = wr[n].epoch_was;
	}
}
