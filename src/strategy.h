/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of rxfer.h about registration strategies: which there are, and what each is like.
 * Included by it. */
#ifndef RXFER_STRATEGY_H
#define RXFER_STRATEGY_H

#include <stdbool.h>
#include <stdint.h>

/** rxfer_strategy_name(), _summary() - of the i-th strategy; NULL behind the last. */
const char *rxfer_strategy_name(unsigned int i);
const char *rxfer_strategy_summary(unsigned int i);

/** rxfer_strategy_engine() - which mechanism of several it runs on; "" where there is one only. */
const char *rxfer_strategy_engine(const char *strategy);

/*
 * How a key that the peer was given for an I/O is taken from it again.
 * @NONE:   not at all: the memory lies open all the time
 * @SYNC:   before the I/O is complete
 * @ASYNC:  later, when there is time for it, or its slot is to be used again
 * @REMOTE: by the peer's reply
 * @LAZY:   when the key is to be used again
 * @AUTO:   sync where the peer may write, async where it may only read, none where there is no
 * other; see rxfer_revoke_resolve()
 */
enum rxfer_revoke {
	RXFER_REVOKE_NONE,
	RXFER_REVOKE_SYNC,
	RXFER_REVOKE_ASYNC,
	RXFER_REVOKE_REMOTE,
	RXFER_REVOKE_LAZY,
	RXFER_REVOKE_AUTO,
};

/** rxfer_strategy_maps() - 0; or -EOPNOTSUPP with the reason where it makes no local memory usable,
 * but only exposes, or not where I/Os go in @rounds (struct rxfer_conn_attr); -ENOENT: no such
 * strategy. */
int rxfer_strategy_maps(const char *strategy, bool rounds);

/** rxfer_strategy_by_wr() - are the keys that the peer is given granted and revoked by WRs? */
bool rxfer_strategy_by_wr(const char *strategy);

/** rxfer_strategy_on_qp() - are they good on their connection alone? Else on all of this end. */
bool rxfer_strategy_on_qp(const char *strategy);

/** rxfer_strategy_copies() - are I/Os copied to and from memory of the strategy's own? Then an I/O,
 * whatever its fragments are, is one piece of that, also to the peer. */
bool rxfer_strategy_copies(const char *strategy);

/** rxfer_strategy_on_demand() - is its memory paged in where the device uses it, and not pinned? */
bool rxfer_strategy_on_demand(const char *strategy);

/** rxfer_strategy_keys_vary() - may the keys of an exposure be others in each I/O? */
bool rxfer_strategy_keys_vary(const char *strategy);

/** rxfer_send_messages() - how many messages one SEND I/O of @frags fragments becomes. */
uint32_t rxfer_send_messages(const char *strategy, uint32_t frags);

#endif
