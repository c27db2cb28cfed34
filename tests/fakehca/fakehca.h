/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fakehca - a test double of libibverbs and librdmacm, linked in their place. Both ends of a
 * connection live in one process; there is no kernel, no wire and no NIC.
 *
 * What it is for. Software RDMA forgives what hardware does not: it frees send-queue entries
 * without a completion, looks at no protection domain, tolerates a second revoke until the kernel
 * falls over. A program that is wrong there works, until it meets a NIC. The double is as strict as
 * the strictest hardware, says so at once, and says where.
 *
 * How it runs. Posting only queues. fake_step() lets the device do one thing: move one MTU-sized
 * piece of one work request, or answer one piece of an outstanding READ, and write the completions
 * that are due. Between steps nothing happens, so a test holds any state as long as it likes. Time
 * is counted in steps: CLOCK_MONOTONIC is virtual too and moves with them. Where two things could
 * happen next, config.seed decides, so that a random schedule can be had again.
 *
 *	post ──► queued ──► issued ──► acknowledged ──► completion written ──► polled
 *	           │           │ piece by piece:  │ sq_delay steps later      │ the SQE comes
 *	           │           │ keys, bounds, PD │ in posting order          │ back, and with it
 *	           └ rd_atomic, fence, RNR        └ source bytes hashed       └ all silent ones
 *	             may hold it                    as they leave               before it; source
 *	                                                                        hashed again
 *
 * A whole program (rxfer-bench-fake) has nobody to call fake_step(): there an empty poll lets the
 * device do config.auto_steps, and whoever asks for a completion event, that is, wants to sleep,
 * first runs it until it is idle. One lock around everything makes it usable from two threads.
 *
 * Memory windows (of type 2B, fake_mw.c) are as strict: tied to the QP that bound them, and bound
 * and revoked by their exact key, of which mw->rkey is for the user to keep.
 *
 * Two kinds of trouble are told apart. What hardware refuses is refused the same way: an errno, a
 * completion in error, a QP that flushes; fake_reason() has the words. What hardware lets pass, or
 * would pay back with a hang or silent corruption, is a violation: recorded, and printed by a
 * program on the double. A test is not done before fake_violations() and fake_leaks() are 0.
 * Violations are:
 *
 *	a completion that found its CQ full (it is lost, and its SQEs with it)
 *	a SEND's or WRITE's source changed between delivery and the proof that it was done
 *	a memory region deregistered while a WR that is not proven done names it, or one of the
 *	peer's that has not arrived
 *	a window's or mkey's key revoked when it grants nothing: twice, or never granted (a
 *	kernel with software RDMA falls over)
 *	an mkey that has a list given another one; its list changed while a WR in front, not
 *	proven done, names it; used by a QP that writes small data into completions
 *	a destroy in the wrong order (a CQ under a QP, a PD under regions, a region under windows
 *	or lists, an id with unacknowledged events, ...), on which real libraries fail or wait
 *	for ever
 *	a connection whose ends do not fit together: another peer's number, more READs in flight
 *	than the other end answers, extensions that it did not agree to
 *	an SGE of length 0 (some NICs read it as 2^31 bytes), or, in a RECV, longer than any
 *	message (of a length above 2^31 they see what the lower 31 bits say)
 *	waiting for an event that nobody will send, or destroying what has events that somebody
 *	got and did not acknowledge
 *
 * It proves rules. It never produces a figure about strategies.
 */
#ifndef FAKEHCA_H
#define FAKEHCA_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#define FAKE_DEVICES 4

/**
 * struct fake_device - one device, with one port and one network interface.
 * @addr:  of the interface, IPv4 or IPv6; NULL: none. getifaddrs() shows these and no others.
 * @iwarp: a READ's sink needs REMOTE_WRITE, no immediate data, and the connecting side must be the
 * first to send
 * @infiniband: its link layer, instead of Ethernet
 * @down:  the port is
 * @closed: nobody may open it: the errno value that says why; 0: it is open
 * @sq_room: send entries that a QP really gets; more are refused with ENOMEM, whatever @max_qp_wr
 * promised (0: no such lie)
 * @sl_told: the bits of a QP's service level that ibv_query_qp() tells; many RoCE drivers tell none
 * @max_mw: memory windows, of type 2B; 0: it knows of none. iWARP has none, whatever this says
 * @mw_wide: a window lets the peer reach all of the region below it, as with rxe; @mw_stays: and
 * what revokes it does nothing
 * @odp: operations that memory paged on demand may be in, bits of enum ibv_odp_transport_cap_bits;
 * 0: it pages none, nor does iWARP, whatever this says. @odp_implicit: nor need that be registered
 * piece by piece. @no_advice: its library has no ibv_advise_mr()
 * @inv_flag_wrong: a RECV whose SEND revoked a key has IBV_WC_IP_CSUM_OK in place of
 * IBV_WC_WITH_INV, as with rxe
 * @mlx5: it has what mlx5 has beyond verbs, as far as mkeys and UMRs go (fake_mkey.c);
 * @mkey_tagless: a key's lower 8 bits are always 0; @mkey_blind: what goes through an mkey succeeds
 * and moves nothing
 * @ece_vendor, @ece_options: extensions that two ends may agree on; vendor 0: it knows of none
 */
struct fake_device {
	const char *name, *addr, *fw;
	uint32_t vendor_id;
	bool iwarp, infiniband, down, inv_flag_wrong, mw_wide, mw_stays, odp_implicit, no_advice;
	bool mlx5, mkey_tagless, mkey_blind;
	uint32_t closed, mtu, max_qp, max_qp_wr, max_cqe, max_sge, max_sge_rd, max_rd_atomic,
		max_mr, max_mw;
	uint32_t max_msg_size, max_inline, max_cq, sq_room, sl_told;
	uint32_t ece_vendor, ece_options, odp;
};

/* struct fake_fault - the @nth such call from now on fails with @err. 0: none does. */
struct fake_fault {
	uint32_t nth;
	int err;
};

/* Which of the written completions a poll finds first: real CQs keep no order between the queues.
 */
enum fake_cq_order { FAKE_CQ_WRITTEN, FAKE_CQ_SQ_FIRST, FAKE_CQ_RQ_FIRST, FAKE_CQ_RANDOM };

/**
 * struct fake_config - all that can be set; may be changed while running (fake_live()).
 * @seed:       of the schedule; 0: QPs in turns, READ answers before new WRs
 * @step_ns:    virtual time of a step
 * @clock_read_ns: virtual time of one look at the clock; 0: only steps move it, so that nobody
 * else's looks can, and a program's run repeats exactly if one thread alone polls
 * @real_clock: CLOCK_MONOTONIC is the machine's
 * @auto_steps: steps of an empty poll; 0: only fake_step() steps
 * @sq_delay, @rq_delay: steps from the last piece to the completion. With sq_delay above rq_delay a
 * reply is there before the completion of the SEND that asked for it.
 * @read_lag:   steps from a READ's request to its first answer: later WRs overtake it
 * @rnr_delay:  steps between two attempts to deliver where the peer has no RECV
 * @early_sends: a WRITE's or SEND's completion does not wait for READs before it (iWARP: siw)
 * @sq_extra:   send entries granted above what was asked for
 * @sq_real:    send entries that a QP has, where it was granted more (0: it has what was granted).
 * No device does this: it is how to see what becomes of a program that no account holds back,
 * without a switch in the program
 * @poll_every: polls find something only at steps that are a multiple of this (0: at all), as those
 * of a program that polls by a timer do
 * @negative_errno: posts fail with -errno, as some providers' do
 * @post_part:  the @nth post takes @take WRs of its chain and fails with @err
 * @event, @event_at: what the first device reports by itself (enum ibv_event_type) at that step;
 * that its port goes down or comes up is then so, too
 * @stuck_reg_mr: that registration from now on never comes back (0: all do), as where the kernel
 * does not
 * @fail_wr:    the @nth WR that is executed completes with status @err and moves nothing
 * @mw_numbered_on: a window's number is none that another had before (else the one that went last)
 * @fail_bind:  the @nth BIND from now on that is executed fails, though all is right with it
 */
struct fake_config {
	struct fake_device device[FAKE_DEVICES];
	unsigned int devices;
	uint64_t seed;
	uint32_t step_ns, clock_read_ns;
	bool real_clock;
	uint32_t auto_steps;
	uint32_t sq_delay, rq_delay, read_lag, rnr_delay;
	bool early_sends;
	uint32_t sq_extra, sq_real, poll_every;
	enum fake_cq_order cq_order;
	bool negative_errno, mw_numbered_on;
	uint32_t event, event_at;
	struct {
		uint32_t nth, take;
		int err;
	} post_part;
	uint32_t stuck_reg_mr, fail_bind;
	struct fake_fault fail_post_send, fail_post_recv, fail_reg_mr, fail_dereg_mr;
	struct fake_fault fail_create_qp, fail_create_cq, fail_alloc_pd, fail_channel;
	struct fake_fault fail_poll, fail_notify, fail_resolve, fail_accept, fail_wr;
	struct fake_fault fail_modify_qp, fail_query_qp, fail_establish;
	struct fake_fault fail_alloc_mw, fail_dealloc_mw, fail_create_mkey, fail_destroy_mkey;
};

/* struct fake_stats - counted where it happens, both ends together. */
struct fake_stats {
	uint64_t posts, sqes;  /* post_send calls that took something, WRs taken */
	uint64_t recvs;	       /* RECV WRs taken */
	uint64_t sq_cqes;      /* completions polled: of send queues, */
	uint64_t rq_cqes;      /* and of receive queues */
	uint64_t lost_cqes;    /* found their CQ full */
	uint64_t polls, empty; /* poll_cq calls, and those that found nothing */
	uint64_t reg_mr, dereg_mr;
	uint64_t advices, prefetched; /* ibv_advise_mr() calls that were taken, bytes in them */
	uint64_t alloc_mw, dealloc_mw;
	uint64_t binds, invalidates; /* of windows, that succeeded; by whoever revoked */
	uint64_t create_mkey, destroy_mkey;
	uint64_t umrs, umr_invalidates; /* of mkeys, likewise */
	uint64_t mw_outlived;		/* windows that were bound when their QP was destroyed */
	uint64_t bytes_read, bytes_written, bytes_sent;
	uint64_t rnr_waits; /* deliveries put off for want of a RECV */
	uint64_t steps;
};

/* ---- Life ---- */

/** fake_config_init() - one RoCE device "fake0" at 10.86.0.1, generous limits, no delays. */
void fake_config_init(struct fake_config *config);

/** fake_device_init() - another device's defaults: "fake<i>" at 10.86.0.<i + 1>. */
void fake_device_init(struct fake_device *device, unsigned int i);

/** fake_start() - forget everything, what leaked included, and begin anew. Never while in use. */
void fake_start(const struct fake_config *config);

/** fake_live() - the configuration that holds now. Devices' names and addresses stay as they were.
 */
struct fake_config *fake_live(void);

/* ---- Time ---- */

/** fake_step() - one step. False: nothing to do, now or later, until somebody calls the API. */
bool fake_step(void);

/** fake_run() - steps until idle; how many. */
uint64_t fake_run(void);

/** fake_now() - the virtual clock, ns. */
uint64_t fake_now(void);

/**
 * fake_while_waiting() - @fn is called at each look at the virtual clock: what blocks looks at it,
 * and so one thread can play both ends of a connection. Never while @fn runs. NULL: no more.
 */
void fake_while_waiting(void (*fn)(void *arg), void *arg);

/* ---- What a test may look at ---- */

/** fake_stats() - what was counted up to now. Valid until this thread asks again. */
const struct fake_stats *fake_stats(void);
unsigned int fake_violations(void);
const char *fake_violation(unsigned int i); /* the first few are kept; NULL behind them */

/** fake_leaks() - objects that are alive; @text (NULL is fine) says which. */
unsigned int fake_leaks(char *text, size_t size);

/** fake_reason() - why the latest refused call was. */
const char *fake_reason(void);

/** fake_pending_requests() - connection requests that no rdma_get_cm_event() has fetched. */
unsigned int fake_pending_requests(void);

/** fake_sq_posted() - SQEs of @qp in use now; fake_sq_peak() - most ever; fake_rq_posted() - RECVs
 * that nothing has consumed. */
uint32_t fake_sq_posted(const struct ibv_qp *qp);
uint32_t fake_sq_peak(const struct ibv_qp *qp);
uint32_t fake_rq_posted(const struct ibv_qp *qp);

/* ---- What a test may do to it ---- */

/** fake_disconnect() - the peer of @qp goes away in an orderly way: an event, and all flushes. */
void fake_disconnect(struct ibv_qp *qp);

/** fake_unplug() - the peer of @qp does not answer any more: what is sent fails by retries. */
void fake_unplug(struct ibv_qp *qp);

/** fake_raise() - the first device reports this by itself, of port 1, or of the oldest QP or its
 * CQ; nothing where there is none. */
void fake_raise(enum ibv_event_type type);

/** fake_set_rd_atomic() - READs in flight of @qp, whatever was agreed. */
void fake_set_rd_atomic(struct ibv_qp *qp, uint32_t rd_atomic);

#endif
