/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * librxfer - an RDMA transfer engine with pluggable memory-registration strategies and send-queue
 * signalling policies. Internal to rxfer-bench until this interface is declared stable.
 *
 * The upper layer declares memory once, hands over local and remote lists of any length, and gets
 * one completion for each I/O. It never sees local registration, SGE limits or send-queue entries.
 *
 * Conventions: 0 or -errno is returned, outputs are set on success only. What failed, why and what
 * to do about it is worded once, where it is decided; rxfer_error() gives that line. A struct
 * rxfer_dev and all that hangs on it belong to one thread at a time. Times are nanoseconds of
 * rxfer_now().
 */
#ifndef RXFER_H
#define RXFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include "faults.h"
#include "ledger.h"
#include "nearest.h"
#include "sgl.h"
#include "sig.h"
#include "slot.h"
#include "sq.h"
#include "strategy.h"
#include "text.h"
#include "ticket.h"

/*
 * struct rxfer_wait - how long a blocking call may take, and what ends it earlier.
 * @deadline:  rxfer_now() at which it fails with -ETIMEDOUT
 * @cancel_fd: readable or hung up: -ECANCELED (a control connection that has something to say); -1:
 * none
 * @stop:      becomes non-zero: -EINTR; NULL: never
 */
struct rxfer_wait {
	uint64_t deadline;
	int cancel_fd;
	const atomic_int *stop;
};

/* ---- Devices ---- */

/* struct rxfer_dev_info - what a device says of itself. Empty texts: it does not say. */
struct rxfer_dev_info {
	char name[64];
	char driver[32];    /* "rxe", "siw", "mlx5_core", ... */
	char fw[64];	    /* firmware version */
	char transport[16]; /* "RoCE", "IB", "iWARP" */
	char netdev[32];
	char addr[64];	   /* the IP address that rdma_cm reaches it by */
	uint8_t port;	   /* the one that addr belongs to; 1 where there is none */
	char state[32];	   /* of that port: "active", "down", ... */
	char phys[24];	   /* its physical state: "link up", "polling", ... */
	char trouble[256]; /* not empty: it could not be opened, and nothing else is known */
	bool active;
	bool software;	       /* no hardware behind it */
	int numa_node;	       /* -1: unknown */
	uint32_t mtu, max_mtu; /* bytes */
	uint32_t max_qp, max_qp_wr, max_cq, max_cqe, max_sge, max_sge_rd, max_mr, max_mw;
	uint32_t max_rd_atomic;
	uint64_t max_msg_size, max_mr_size;
};

/**
 * rxfer_dev_list() - all RDMA devices of this machine, also those that cannot be opened. @list is
 * freed by free(); no device: 0 and *n = 0.
 */
int rxfer_dev_list(struct rxfer_dev_info **list, unsigned int *n);

/**
 * rxfer_dev_try() - does this strategy work on that device? Found out by registering a page as the
 * strategy does; its port need not be active. 0, or -errno and rxfer_error() is the reason.
 */
int rxfer_dev_try(const char *name, const char *strategy);

/* struct rxfer_gid - an entry of a device's GID table that is set. */
struct rxfer_gid {
	uint8_t port;
	uint32_t index;
	char type[16]; /* "IB", "RoCE v1", "RoCE v2", "iWARP" */
	char addr[64]; /* as IPv6; IPv4 where it is one */
};

/** rxfer_dev_gids() - the entries that are set. @gids is freed by free(). 0 or -errno. */
int rxfer_dev_gids(const char *name, struct rxfer_gid **gids, unsigned int *n);

struct rxfer_dev;
struct rxfer_conn;
struct rxfer_exposure;

/**
 * rxfer_dev_open() - open a device for one end: a protection domain and a completion channel of its
 * own.
 * @name:     "" or NULL: the first active one
 * @strategy: the registration strategy of everything that hangs on it
 * Returns -ENODEV (none; unknown name, the nearest is named; port down), -EOPNOTSUPP (the device
 * cannot do the strategy: rxfer_error() is the reason; the caller reports it as skipped), -ENOENT
 * (no such strategy).
 */
int rxfer_dev_open(const char *name, const char *strategy, struct rxfer_dev **out);
void rxfer_dev_close(struct rxfer_dev *dev);
const struct rxfer_dev_info *rxfer_dev_info(const struct rxfer_dev *dev);

/**
 * rxfer_dev_room() - could the device have @qps connections for each of @ends ends that are on it?
 * A connection takes a queue pair and a completion queue. What others have in use is not known, so
 * a yes is no promise. Returns 0, or -EINVAL with the limit, the numbers and what to do.
 */
int rxfer_dev_room(const struct rxfer_dev *dev, uint64_t qps, unsigned int ends);

/** rxfer_dev_prefetch() - does the device take advice about pages, for conn_attr.prefetch? 0; or
 * -EOPNOTSUPP with the reason. Of a strategy on demand. */
int rxfer_dev_prefetch(struct rxfer_dev *dev);

/* struct rxfer_dev_counts - registrations of this end, counted where they happen. */
struct rxfer_dev_counts {
	uint64_t mr_now, mr_peak, mr_total;
	uint64_t pinned_now, pinned_peak; /* bytes, whole pages */
};
const struct rxfer_dev_counts *rxfer_dev_counts(const struct rxfer_dev *dev);

/** rxfer_dev_faults() - page faults that the device has counted so far, of whomever they were; all
 * 0 where it counts none, or this end's strategy does not page on demand. Takes system calls. */
struct rxfer_faults rxfer_dev_faults(const struct rxfer_dev *dev);

/*
 * struct rxfer_observer - who is told what goes on beside the transfers, a line each.
 * @event: what the device reports by itself: its port went down, it failed, a queue pair did.
 * NULL: what it reports stays there for another end. All ends of a process share one list of such
 * events per device, so each event reaches one of them only.
 * @trace: rdma_cm's events; NULL: nobody wants to know
 */
struct rxfer_observer {
	void (*event)(void *arg, const char *line);
	void (*trace)(void *arg, const char *line);
	void *arg;
};

/**
 * rxfer_dev_observe() - from now on. @o is copied. What the device has reported before is told at
 * once, and explains no failure later.
 */
void rxfer_dev_observe(struct rxfer_dev *dev, const struct rxfer_observer *o);

/** rxfer_dev_look() - tell what the device has reported since the last look. Never waits. */
void rxfer_dev_look(struct rxfer_dev *dev);

/**
 * rxfer_dev_blame() - a run on @dev failed with @rc: if the device has reported what may be why,
 * add that to rxfer_error(). Waits a moment for it where a completion failed (-EIO, -ENOTCONN).
 * Returns @rc. NULL is fine.
 */
int rxfer_dev_blame(struct rxfer_dev *dev, int rc);

/* ---- Memory ---- */

enum rxfer_rights {
	RXFER_LOCAL = 0,      /* the NIC on this side reads and writes it for our own WRs */
	RXFER_PEER_READ = 1,  /* the peer may RDMA READ it */
	RXFER_PEER_WRITE = 2, /* the peer may RDMA WRITE it */
	RXFER_FIXED = 4, /* keep it registered whatever the strategy: message buffers, checks */
	RXFER_EXPOSE_READ = 8,	 /* as LOCAL, and an I/O may let the peer RDMA READ its part */
	RXFER_EXPOSE_WRITE = 16, /* likewise RDMA WRITE */
	RXFER_READ_SINK = 32, /* our RDMA READs put bytes here. Over iWARP the peer answers them by
			       * writing to it, and must be allowed to: there it lies open */
};

/* Bytes that a key to the whole address space opens: 128 TiB, all that x86-64 gives a process which
 * does not ask for more. */
#define RXFER_ADDRESS_SPACE (1ULL << 47)

struct rxfer_mem;

/**
 * rxfer_mem_add() - declare memory for I/O. The strategy decides what that costs and when.
 * @base, @len: stays mapped until rxfer_mem_del()
 * @rights:     enum rxfer_rights. With RXFER_PEER_* or RXFER_FIXED the memory is registered whole,
 * at once, whatever the strategy; with a right for the peer it lies open until it is deleted. With
 * RXFER_EXPOSE_* it is the strategy's choice whether that opens it now and for good, or each I/O's
 * part by rxfer_expose(); it goes with none of those (-EINVAL).
 */
int rxfer_mem_add(struct rxfer_dev *dev, void *base, size_t len, unsigned int rights,
		  struct rxfer_mem **out);
void rxfer_mem_del(struct rxfer_mem *mem);

/** rxfer_mem_rkey() - the key the peer needs; only for memory with rights for the peer. */
uint32_t rxfer_mem_rkey(const struct rxfer_mem *mem);

/** rxfer_mem_below() - a key that the device has for all of it, whether the peer has a right there
 * or not: what he could guess. 0: there is none, as the strategy registers parts of it alone. */
uint32_t rxfer_mem_below(const struct rxfer_mem *mem);

/* struct rxfer_frag - one contiguous piece of local memory, inside a declared one. */
struct rxfer_frag {
	void *addr;
	uint32_t len;
};

/* ---- Connections ---- */

/* What an I/O is, or a message; and, of a WR, that it grants a key. */
enum rxfer_opcode {
	RXFER_READ,
	RXFER_WRITE,
	RXFER_WRITE_IMM,
	RXFER_SEND,
	RXFER_BIND,   /* a WR that grants a key; part of another I/O */
	RXFER_REVOKE, /* see rxfer_revoke_held() */
	RXFER_RECV,
	RXFER_OPCODES,
};

/** rxfer_dev_can() - 0; or -EOPNOTSUPP with the reason where the device's transport has no such
 * operation (iWARP: immediate data). */
int rxfer_dev_can(const struct rxfer_dev *dev, enum rxfer_opcode op);

/** rxfer_dev_sink_bound() - 0; or -EOPNOTSUPP with the reason where the device's strategy would let
 * the peer write to what our READs fill for longer than an I/O. See RXFER_READ_SINK. */
int rxfer_dev_sink_bound(const struct rxfer_dev *dev);

/*
 * struct rxfer_shape - the largest I/O a connection will see; N, the credits of one I/O, follows
 * from it.
 * @frags:    local pieces
 * @segments: remote pieces
 * @aligned:  each of these ends where a local piece does
 * @exposed:  contiguous runs that the peer is let reach, besides
 * @fixed:    of @frags, those that are in RXFER_FIXED memory in each I/O
 * @exposed_bytes, @rights: of what the peer is let reach, the most of an I/O, and RXFER_EXPOSE_*
 */
struct rxfer_shape {
	enum rxfer_opcode op;
	uint64_t bytes;
	uint32_t frags;
	uint32_t segments;
	bool aligned;
	uint32_t exposed;
	uint32_t fixed;
	uint64_t exposed_bytes;
	unsigned int rights;
};

#define RXFER_TOKEN_BYTES 16

/**
 * struct rxfer_conn_attr - a connection to be.
 * @slots:     I/Os in flight, as the upper layer counts them
 * @ios:       posts in flight, where an I/O of its is several: a WRITE, then a reply; 0: @slots.
 * At least half of @slots times the posts of an I/O, or the ring is full of silent ones for ever
 * @reply:     a SEND of one fragment ends each of its I/Os, besides those of @shape
 * @rounds:    an I/O of more WRs than the send queue has entries goes in rounds (ticket.h): N is
 * what a round takes
 * @one_message: a SEND is one message whatever the strategy does with fragments; for who posts no
 * READs and WRITEs
 * @peer_options: @sq_depth and @sig are the peer's to say, by --peer-sq-depth and --peer-signal;
 * for messages alone
 * @sq_depth:  SQEs, granted exactly or refused; 0: 2 * N * slots + 1 (every:K: at least K + 1), or
 * the most that the device takes
 * @rq_depth:  RECVs posted at most
 * @sge_max:   SGEs of one WR at most; 0: as many as the device and the strategy take
 * @inline_max: WRs of up to so many bytes carry them (WRITE, SEND); granted or refused; 0: none do.
 * Memory is mapped all the same: how it is registered is the strategy's business.
 * @post_single: one ibv_post_send() for each WR, instead of one for all of an I/O
 * @revoke:    how what it exposes is revoked; resolved, and one that the strategy can
 * @prefetch:  have an I/O's pages ready before it; for a strategy on demand, others need none
 * @time_phases: read the clock around map and unmap: rxfer_counts.map_ns, unmap_ns
 * @sig, @sig_arg: signalling policy
 * @rnr_retry: 0..7 (7: for ever)
 * @rd_atomic: READs in flight that we offer to send and to answer; 0: as many as the device can
 * @sl: service level of our QP, 0..15; 0: that of the path, which is up to rdma_cm
 * @token, @index: who this is, for the listener; see rxfer_accept()
 */
struct rxfer_conn_attr {
	uint32_t slots;
	uint32_t ios;
	bool reply;
	bool rounds;
	bool one_message;
	bool peer_options;
	uint32_t sq_depth;
	uint32_t rq_depth;
	uint32_t sge_max;
	uint32_t inline_max;
	bool post_single;
	enum rxfer_revoke revoke;
	bool prefetch;
	bool time_phases;
	struct rxfer_shape shape;
	const struct rxfer_sig_ops *sig;
	uint32_t sig_arg;
	uint8_t rnr_retry;
	uint32_t rd_atomic;
	uint8_t sl;
	uint8_t token[RXFER_TOKEN_BYTES];
	uint16_t index;
};

/* struct rxfer_conn_info - what became of it. */
struct rxfer_conn_info {
	uint32_t need;	    /* N: credits of one I/O, its worst case, */
	uint32_t later;	    /* of which so many for the revoke that follows its request */
	uint32_t sq_wanted; /* the default, whatever the device takes */
	uint32_t sq_depth;  /* what is counted against */
	uint32_t sqe_max;   /* what the device granted */
	uint32_t sq_peak;   /* most SQEs posted at once */
	uint32_t sge_per_wr;
	uint32_t frags_per_wr;	/* likewise; all of an I/O, where the strategy copies */
	uint32_t bytes_per_wr;	/* UINT32_MAX: no I/O of its shape has more than the device takes */
	uint32_t rd_atomic;	/* READs in flight, as the QP has them */
	int sl;			/* service level, as the QP has it; -1: its driver does not say */
	uint32_t key_reuse_min; /* fewest exposures from a key's use to its next; 0: none had one */
	uint64_t forced_signals;
};

/* struct rxfer_counts - counted where they happen. */
struct rxfer_counts {
	uint64_t sqe;			/* WRs posted */
	uint64_t sqe_op[RXFER_OPCODES]; /* of these; notes are SENDs */
	uint64_t cqe;			/* SQ completions polled */
	uint64_t posts;			/* ibv_post_send() calls that posted the WRs */
	uint64_t recv_cqe;		/* RQ completions polled */
	uint64_t copied_bytes;		/* by the CPU, to or from memory that the device uses */
	uint64_t lookups, hits;	   /* of the cache of registrations, where a strategy has one */
	uint64_t map_ns, unmap_ns; /* with time_phases */
	uint64_t aside_sqe, aside_cqe,
		aside_posts; /* of RXFER_ASIDE posts and drain WRs: in none of the above */
};

/** rxfer_conn_bytes() - memory that such a connection takes for its I/Os, at most, in bytes;
 * without what the strategy (rxfer_strategy_memory()) or the provider has. */
uint64_t rxfer_conn_bytes(const struct rxfer_conn_attr *attr);
uint64_t rxfer_strategy_memory(const char *strategy, const struct rxfer_conn_attr *attr);

struct rxfer_listener;

/**
 * rxfer_listen() - accept data connections on the device's address, at a free port.
 * rxfer_listener_addr() - where: what rxfer_connect() of the peer needs.
 */
int rxfer_listen(struct rxfer_dev *dev, struct rxfer_listener **out);
void rxfer_listener_addr(const struct rxfer_listener *l, struct sockaddr_storage *addr);
void rxfer_listener_close(struct rxfer_listener *l);

/**
 * rxfer_conn_check() - can the device have such a connection at all? Looks at what @attr asks of
 * the device, not at its queues. -EINVAL, -EOPNOTSUPP where it cannot. rxfer_accept() and
 * rxfer_connect() begin with it; a caller may, too, before he goes to expense.
 */
int rxfer_conn_check(const struct rxfer_dev *dev, const struct rxfer_conn_attr *attr);

/**
 * rxfer_accept() - wait for the connection that carries our token and index, reject all others.
 * rxfer_connect() - be that connection.
 * Both: -ETIMEDOUT, -ECANCELED, -EINTR as @wait says; -EMSGSIZE where N + 1 is above the depth;
 * -EINVAL, -ENOMEM where the device refuses the queues; -EOPNOTSUPP where the QP got another
 * service level.
 */
int rxfer_accept(struct rxfer_listener *l, const struct rxfer_conn_attr *attr,
		 const struct rxfer_wait *wait, struct rxfer_conn **out);
int rxfer_connect(struct rxfer_dev *dev, const struct sockaddr_storage *addr,
		  const struct rxfer_conn_attr *attr, const struct rxfer_wait *wait,
		  struct rxfer_conn **out);

/**
 * rxfer_conn_close() - flush, unmap what is in flight, destroy. NULL is fine. The dev must still be
 * open.
 */
void rxfer_conn_close(struct rxfer_conn *conn);

void rxfer_conn_info(const struct rxfer_conn *conn, struct rxfer_conn_info *info);
const struct rxfer_counts *rxfer_conn_counts(const struct rxfer_conn *conn);

/** rxfer_conn_refused() - did it break because the peer's device refused an access of ours to its
 * memory: no such key, beyond its bounds, or without the right? */
bool rxfer_conn_refused(const struct rxfer_conn *conn);

/** rxfer_conn_restart() - forget all counts and peaks: the timed part begins. Nothing may be in
 * flight but notes, whose completions then count as little as they themselves do. */
void rxfer_conn_restart(struct rxfer_conn *conn);

/* ---- Transfer ---- */

enum rxfer_flags {
	RXFER_MUST_SIGNAL = 1, /* the caller waits for this very I/O */
	RXFER_ASIDE = 2,       /* no measured work: counted apart, in RXFER_FIXED memory only */
	RXFER_MORE = 4,	       /* hold it back: more follows, for one post of all; not with ASIDE */
	RXFER_PART = 8,	       /* more of the same I/O of the upper layer follows, now or later */
	RXFER_INVALIDATE = 16, /* of a SEND: it revokes @imm, a key that the peer granted */
};

/**
 * rxfer_post_read/write/write_imm/send() - start one I/O.
 * @local:  @nlocal fragments inside declared memory; theirs must stay valid until it is done
 * @remote: @nremote segments; their lengths sum up to those of @local (SEND: none)
 * @imm:    immediate data of the last WR; consumes one RECV of the peer
 * @id:     comes back in struct rxfer_done
 * Returns 0; -EAGAIN where no slot or no credits are free (nothing of it posted); another -errno
 * where the connection is broken or the strategy could not map the memory (nothing posted, nothing
 * left mapped).
 * @flags MUST_SIGNAL marks the I/O's last WR.
 */
int rxfer_post_read(struct rxfer_conn *conn, const struct rxfer_frag *local, uint32_t nlocal,
		    const struct rxfer_seg *remote, uint32_t nremote, uint64_t id,
		    unsigned int flags);
int rxfer_post_write(struct rxfer_conn *conn, const struct rxfer_frag *local, uint32_t nlocal,
		     const struct rxfer_seg *remote, uint32_t nremote, uint64_t id,
		     unsigned int flags);
int rxfer_post_write_imm(struct rxfer_conn *conn, const struct rxfer_frag *local, uint32_t nlocal,
			 const struct rxfer_seg *remote, uint32_t nremote, uint32_t imm,
			 uint64_t id, unsigned int flags);
int rxfer_post_send(struct rxfer_conn *conn, const struct rxfer_frag *local, uint32_t nlocal,
		    uint64_t id, unsigned int flags);

/*
 * struct rxfer_op - one I/O, as the posts above take it.
 * @local:   @nlocal fragments, of which the first @fixed are in RXFER_FIXED memory: those the
 * strategy has no part in
 * @imm:     immediate data, or the key of RXFER_INVALIDATE
 * @grants:  what rxfer_expose() was called for: keys that WRs grant are granted by the same post,
 * before all else of it; NULL: nothing. Not with RXFER_MORE
 * @epoch:   a word that it shares with others that are parts of one I/O of the upper layer, 0 at
 * first, so that the signalling rules count them as one; NULL: with none
 */
struct rxfer_op {
	enum rxfer_opcode op;
	const struct rxfer_frag *local;
	uint32_t nlocal, fixed;
	const struct rxfer_seg *remote;
	uint32_t nremote;
	uint32_t imm;
	uint64_t id;
	unsigned int flags;
	struct rxfer_exposure *grants;
	uint64_t *epoch;
};

/** rxfer_post() - any of them. */
int rxfer_post(struct rxfer_conn *conn, const struct rxfer_op *op);

/** rxfer_conn_sq() - the account of its send queue, for who reserves credits of it (slot.h,
 * ticket.h) and spends them by rxfer_post_held(). */
struct rxfer_sq *rxfer_conn_sq(struct rxfer_conn *conn);

/**
 * rxfer_post_held() - as the posts above, out of credits that were reserved before.
 * @held: of rxfer_conn_sq(), as many as it may take and @keep. Once spent it is @keep, which stay
 * reserved; what was left over is free. Untouched where it did not come to a post.
 * Returns also -EAGAIN where @ios posts are in flight; never for want of credits.
 */
int rxfer_post_held(struct rxfer_conn *conn, const struct rxfer_op *op, uint32_t *held,
		    uint32_t keep);

struct rxfer_prepared;

/**
 * rxfer_prepare() - an I/O that will be posted many times, as rxfer_post() would. Its lists, and
 * what they name, must stay as they are until rxfer_unprepare(), which may also come after the
 * connection. To be posted again it must be done; one and the same may not be in flight twice.
 * rxfer_post_prepared(), rxfer_post_prepared_held() - do what rxfer_post() and rxfer_post_held()
 * do, with less work where that is possible. @op's id, imm and flags are not looked at: they are
 * given at each post.
 * rxfer_post_prepared_to() - the same, into or from @remote, one segment, which is read in this
 * call alone; for an I/O that is never posted otherwise. It was prepared with any one segment.
 * rxfer_post_prepared_two() - @data to @remote, as a part of an I/O, and @last, its end, by one
 * post. @imm and @flags are those of @last. Once posted, all that was @held is spent or free.
 */
int rxfer_prepare(struct rxfer_conn *conn, const struct rxfer_op *op, struct rxfer_prepared **out);
void rxfer_unprepare(struct rxfer_prepared *p);
int rxfer_post_prepared(struct rxfer_prepared *p, uint32_t imm, uint64_t id, unsigned int flags);
int rxfer_post_prepared_held(struct rxfer_prepared *p, uint32_t imm, uint64_t id,
			     unsigned int flags, uint32_t *held, uint32_t keep);
int rxfer_post_prepared_to(struct rxfer_prepared *p, const struct rxfer_seg *remote, uint32_t imm,
			   uint64_t id, unsigned int flags, uint32_t *held, uint32_t keep);
int rxfer_post_prepared_two(struct rxfer_prepared *data, const struct rxfer_seg *remote,
			    struct rxfer_prepared *last, uint32_t imm, uint64_t id,
			    unsigned int flags, uint32_t *held);

/**
 * rxfer_flush() - post what RXFER_MORE has held back. A post without it does so too, and goes last;
 * an I/O for which nothing is free now lets it go at once. What is held back is in flight by all
 * counts, but does not move: nothing may be waited for before it is posted. 0 or -errno.
 */
int rxfer_flush(struct rxfer_conn *conn);

/**
 * rxfer_post_recv() - one buffer, in RXFER_FIXED memory, for one message. @len: at least 1, also
 * where a note or a WRITE's immediate data is to come, which may share one buffer: siw refuses a
 * RECV without memory, and some devices read an empty piece of it as 2^31 bytes.
 */
int rxfer_post_recv(struct rxfer_conn *conn, void *addr, uint32_t len, uint64_t id);

/**
 * rxfer_post_note() - a SEND of no bytes: a word to the peer that something may go on. It takes one
 * of its RECVs and arrives there as a message of 0 bytes; always signalled; needs no slot, and is
 * never handed up by rxfer_poll(). Counted. Returns 0; -EAGAIN where no credit is free; -errno as
 * above.
 */
int rxfer_post_note(struct rxfer_conn *conn);

/**
 * rxfer_drain() - post the drain WR: a signalled 0-byte WRITE that proves the silent tail. @remote:
 * any segment the peer lets us write. Does nothing where the tail is not silent. Counted aside.
 */
int rxfer_drain(struct rxfer_conn *conn, const struct rxfer_seg *remote);

/** rxfer_drain_read() - in its place, silent tail or not: a READ of @remote into @into
 * (RXFER_FIXED). Over iWARP it proves more: that WRITEs before it are placed (RFC 5040, 5.5). */
int rxfer_drain_read(struct rxfer_conn *conn, const struct rxfer_seg *remote,
		     const struct rxfer_frag *into);

/**
 * struct rxfer_done - one I/O whose memory belongs to the owner again, or one message received.
 * @own_cqe: its last WR had a completion of its own (else a later one proved it)
 * @bytes:   moved, or received
 * @with_imm, @with_inv, @imm: a message that brought immediate data; one that revoked this key
 */
struct rxfer_done {
	uint64_t id;
	enum rxfer_opcode op;
	bool own_cqe;
	bool with_imm, with_inv;
	uint32_t imm;
	uint64_t bytes;
};

/**
 * rxfer_poll() - up to @max (1 or more) I/Os that are done, in posting order; one ibv_poll_cq() at
 * most, and not while known ones are left. One call hands up no more than one completion proved, so
 * an I/O that had one of its own is the last: memory is unmapped on the way, and who times I/Os
 * takes the time at the return, whatever @max. Or it hands up messages, as many as came one behind
 * the other. Returns how many (0: none now), or -errno where the connection broke: rxfer_error()
 * names opcode and status. -ENOTCONN: the peer answers no more, or has closed it, so the cause may
 * be with him.
 */
int rxfer_poll(struct rxfer_conn *conn, struct rxfer_done *done, int max);

/**
 * rxfer_more() - after a poll: is more to be had at once? Not where the last look at the device
 * found fewer completions than it had room for and all of them have been handed up: another look
 * then would most likely be in vain.
 */
bool rxfer_more(const struct rxfer_conn *conn);

/** rxfer_due() - is a completion on its way? A silent tail alone has none, whatever is in flight.
 */
bool rxfer_due(const struct rxfer_conn *conn);

/** rxfer_idle() - is nothing in flight, not even an aside or a drain WR? Notes do not count: who
 * receives from a peer that goes on sending has one under way nearly always. */
bool rxfer_idle(const struct rxfer_conn *conn);

/**
 * rxfer_sleep() - block until one of the @n connections has completions, @fd (-1: none) is
 * readable, @ms passed or a signal came. Returns 0 where there may be completions, 1 where there is
 * reason to look at all else too, or -errno. A completion that is there already ends it at once.
 * @fd and @ms -1: no other file, no limit, and one system call less; only for who has a signal to
 * end it with.
 */
int rxfer_sleep(struct rxfer_dev *dev, struct rxfer_conn **conns, unsigned int n, int fd, int ms);

#include "cache.h"
#include "expose.h"

#endif
