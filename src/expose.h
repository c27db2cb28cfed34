/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of rxfer.h about exposing: what the peer may reach of an I/O's memory, and for how long.
 * Included by it. */
#ifndef RXFER_EXPOSE_H
#define RXFER_EXPOSE_H

#include "rxfer.h"

/** rxfer_revoke_name() - as the user types it; NULL behind the last, which is "auto". */
const char *rxfer_revoke_name(unsigned int mode);

/** rxfer_strategy_revokes() - 0; or -EOPNOTSUPP with the reason where the strategy cannot revoke
 * like that; -ENOENT: no such strategy. */
int rxfer_strategy_revokes(const char *strategy, enum rxfer_revoke mode);

/**
 * rxfer_revoke_resolve() - the mode that RXFER_REVOKE_AUTO stands for, for exposures with these
 * @rights (RXFER_EXPOSE_*); another one stands for itself. Errors as above.
 */
int rxfer_revoke_resolve(const char *strategy, enum rxfer_revoke mode, unsigned int rights,
			 enum rxfer_revoke *out);

/*
 * struct rxfer_exposure - what an I/O exposes: one for each slot, made when the connection is and
 * used for one I/O after the other.
 */
struct rxfer_exposure;

/**
 * rxfer_exposure_new() - for I/Os of up to @frags fragments. rxfer_exposure_free() - revokes what
 * is open, and forgets it; NULL is fine. rxfer_conn_close() does it for all that are left.
 */
int rxfer_exposure_new(struct rxfer_conn *conn, uint32_t frags, struct rxfer_exposure **out);
void rxfer_exposure_free(struct rxfer_conn *conn, struct rxfer_exposure *x);

/**
 * rxfer_expose() - let the peer reach an I/O's fragments.
 * @frag:   @n of them, in memory declared with these rights
 * @rights: RXFER_EXPOSE_READ, _WRITE, or both
 * Returns 0; -EBUSY where what @x exposed before is not revoked; -EFAULT, -EACCES where the memory
 * was not declared, or not with these rights; another -errno where the connection is broken or the
 * strategy failed. Then nothing is exposed.
 */
int rxfer_expose(struct rxfer_conn *conn, struct rxfer_exposure *x, const struct rxfer_frag *frag,
		 uint32_t n, unsigned int rights);

/**
 * rxfer_exposure_cut() - as rxfer_expose() with the same arguments, but nothing is exposed: only to
 * know the segments, whose keys are those of memory that lies open anyhow, or 0.
 */
int rxfer_exposure_cut(struct rxfer_conn *conn, struct rxfer_exposure *x,
		       const struct rxfer_frag *frag, uint32_t n, unsigned int rights);

/**
 * rxfer_exposure_segs() - what the peer must be told: @n segments with its keys, in the order of
 * the fragments, as many as these or fewer. None spans a gap between them. Good until the next
 * rxfer_expose().
 */
const struct rxfer_seg *rxfer_exposure_segs(const struct rxfer_exposure *x, uint32_t *n);

/** rxfer_replied() - the peer's reply came with the completions that were polled last: it needs the
 * memory no more, since then; and what it wrote is in the fragments from now on, which stay as they
 * are until then. 0 or -errno. */
int rxfer_replied(struct rxfer_conn *conn, struct rxfer_exposure *x);

/**
 * rxfer_revoke() - by a call, in the modes sync and async; when it returns, the keys are dead.
 * Returns 0; -EALREADY, naming the key, where that was done already; -ENOENT where nothing was
 * exposed; -EOPNOTSUPP where the strategy cannot revoke; another -errno where the device refused:
 * then what it left open may be tried again. Works on a broken connection.
 */
int rxfer_revoke(struct rxfer_conn *conn, struct rxfer_exposure *x);

/*
 * struct rxfer_revoking - how rxfer_revoke_held() posts, where it does.
 * @id, @flags, @epoch: as in struct rxfer_op
 * @held: credits that were kept for it; afterwards 0
 */
struct rxfer_revoking {
	uint64_t id;
	unsigned int flags;
	uint64_t *epoch;
	uint32_t *held;
};

#define RXFER_REVOKED 1

/**
 * rxfer_revoke_held() - revoke what is open, however the strategy does it.
 * Returns RXFER_REVOKED where that was a call, and the keys are dead; 0 where WRs were posted: they
 * are once an I/O of op RXFER_REVOKE and this id is done; -EAGAIN where @ios posts are in flight;
 * else as rxfer_revoke() and rxfer_post_held() do.
 */
int rxfer_revoke_held(struct rxfer_conn *conn, struct rxfer_exposure *x,
		      const struct rxfer_revoking *how);

/**
 * rxfer_peer_revoked() - a message revoked @key (struct rxfer_done.with_inv), which is to be one of
 * those that @x exposes. 0; or -EPROTO where it is none, or dead: the connection is broken then,
 * since what the peer's device has done there nobody knows.
 */
int rxfer_peer_revoked(struct rxfer_conn *conn, struct rxfer_exposure *x, uint32_t key);

/** rxfer_exposure_open() - how many of its keys are not proven dead. */
uint32_t rxfer_exposure_open(const struct rxfer_exposure *x);

/**
 * rxfer_exposure_renew() - before rxfer_expose(), once all WRs of the I/O before are proven: where
 * a key of the next one would be one that the window had before, have another window. Costs system
 * calls, now and then. Returns 0; RXFER_REVOKED where that ended keys that were open until the next
 * I/O: rxfer_open_after() is theirs then; or -errno, and the old window goes on.
 */
int rxfer_exposure_renew(struct rxfer_conn *conn, struct rxfer_exposure *x);

/** rxfer_open_after() - of what was revoked last: ns from the reply until its last key was proven
 * dead; RXFER_NO_SPAN: nothing was revoked, or it had no reply. */
uint64_t rxfer_open_after(const struct rxfer_exposure *x);

/**
 * rxfer_dev_exposed() - all memory of this end that the peer holds a key for. rxfer_conn_exposed()
 * - what I/Os of this connection exposed; not what lies open for good, which is the device's.
 * rxfer_dev_exposed_restart() - the device's peak and average begin anew; rxfer_conn_restart() does
 * that for the connection's.
 */
struct rxfer_exposed rxfer_dev_exposed(const struct rxfer_dev *dev);
struct rxfer_exposed rxfer_conn_exposed(const struct rxfer_conn *conn);
void rxfer_dev_exposed_restart(struct rxfer_dev *dev);

#endif
