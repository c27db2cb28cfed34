/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The account of one send queue.
 *
 * An SQE is occupied from the post until the provider lets go of it, and that is later than one
 * might think. On mlx4 and mlx5 the provider learns how far the device has come from nothing but
 * the CQEs that it polls: a WR that asked for no completion keeps its entry, long executed, until
 * a later WR asks for one and that completion is polled. Software devices are laxer; a program
 * that relies on this fails on real NICs only, under load only, with an ENOMEM that names no
 * cause. So the strict reading is the only one here, for all devices: an entry is free when a
 * polled completion proves it.
 *
 * What makes the proof cheap is that the send queue is strongly ordered. WRs complete in the order
 * of posting, so one completion proves its own WR and every silent one before it. The queue is
 * then no more than an interval of sequence numbers:
 *
 *	tail                             head
 *	 |  s  s  s  S  s  s  S  s  s  s  |       s silent, S signalled
 *	             `-- when this is polled, four come back: the tail moves behind it
 *
 * Nothing else is a proof. In particular a reply from the peer is none: it shows that the request
 * arrived, but not that the acknowledgement did. The NIC may still retransmit, and the SQE and the
 * send buffer are in use until the completion says otherwise.
 *
 * Credits are reserved before they are spent. An I/O asks at once for its worst case (N, all that
 * it may ever post, the revoke after the reply included), because an I/O that is stuck half-way
 * for want of an entry holds its memory open and, if all others are stuck likewise, for ever. When
 * it posts, it knows what it really needs: commit() turns that into posted entries, keeps what
 * later WRs of the same I/O may want, and frees the rest. At all times
 *
 *	0 <= posted + reserved <= depth
 *
 * where depth is what was asked for. Devices like to grant more. To use that would make one
 * program behave differently on each, and hide on the generous ones a breach that breaks the
 * others. commit() checks the account before every post, in release builds too: it costs a few
 * comparisons, and a breach is reported as what it is, a bug of ours, with our numbers.
 *
 * What is prepared, posted out of credits that its caller holds, asks check() itself, and enters by
 * posted_one() what the device has taken.
 *
 * An I/O of one WR that needs nothing later need not write a reservation down to spend it at once:
 * room() is what the two calls check, posted + reserved + n <= depth, and posted_one() what they
 * leave behind, once the device has taken the WR. Only where there is no room are they called, for
 * the reason.
 *
 * Credits are anonymous. A reservation spent twice is refused when the account no longer has that
 * many; it cannot be told apart from somebody else's, so whoever holds n must remember n.
 *
 * Sequence numbers are 32 bits and wrap. They are never compared with each other: what is compared
 * is the distance from the tail, modulo 2^32, with the number of posted entries. In a queue of at
 * most 2^30 entries, what lies before the tail or behind the head is too far away to pass.
 */
#include "sq.h"

#include <errno.h>

int rxfer_sq_init(struct rxfer_sq *sq, uint32_t depth)
{
	if (depth == 0 || depth > RXFER_SQ_MAX_DEPTH)
		return -EINVAL;

	*sq = (struct rxfer_sq){.depth = depth};
	return 0;
}

int rxfer_sq_unpost(struct rxfer_sq *sq, uint32_t n)
{
	uint32_t posted = rxfer_sq_posted(sq);

	if (n > posted)
		return -EOVERFLOW;

	posted -= n;
	sq->head -= n;
	sq->peak = posted > sq->peak_was ? posted : sq->peak_was;
	return 0;
}
