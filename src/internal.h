/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the engine know of each other; no other layer includes this. */
#ifndef RXFER_INTERNAL_H
#define RXFER_INTERNAL_H

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include "rxfer.h"

struct rxfer_reg_ops;
struct rxfer_reg_by_wr;
struct rxfer_need;
struct rxfer_number;

struct rxfer_mem {
	struct rxfer_dev *dev;
	char *base;
	char *end; /* base + len */
	size_t len;
	unsigned int rights;
	uint32_t lkey;	   /* mr's */
	struct ibv_mr *mr; /* over all of it; NULL where a strategy registers piece by piece */
	bool on_demand;	   /* mr pins nothing */
	struct rxfer_grant grant; /* mr's, where the peer may use it */
	struct rxfer_mem *next;
};

struct rxfer_dev {
	struct rxfer_dev_info info;
	struct ibv_context *verbs; /* librdmacm's own, so that its ids live on the same one */
	struct ibv_context **all;  /* keeps it open */
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* completions of all its CQs */
	struct rdma_event_channel
		*events; /* rdma_cm events of all its ids; an id's context is its conn */
	struct rdma_cm_event *early; /* a request that came before it was due; see conn.c */
	const struct rxfer_reg_ops *reg;
	void *reg_data; /* the strategy's own */
	struct rxfer_cache_limits cache_limits;
	struct rxfer_mem *mems;
	uint64_t generation;	  /* of them: each one that goes makes a new one */
	struct rxfer_mem *found;  /* by the latest look-up, most likely by the next one too */
	struct rxfer_mem nowhere; /* holds nothing: what @found is while it is nothing */
	struct rxfer_dev_counts counts;
	struct rxfer_ledger ledger; /* of all that lies open on this end */
	struct sockaddr_storage addr;
	struct rxfer_observer observer;
	char event[192]; /* the latest of the gravest kind that the device reported; "": none */
	unsigned int event_weight;
	uint64_t event_at;
};

/*
 * struct rxfer_io - one I/O in flight: prebuilt WRs, and what is needed to finish it.
 * @done:     what will be handed up, filled in on the way: then it is one copy
 * @next:     in the ring of all I/Os of the connection
 * @epoch:    the word that the signalling rules tell it by: its own, or one that it shares
 * @last_seq: of its last WR: proven done when a completion at or behind it is polled
 * @front:    WRs before those that move data: they grant keys, or revoke them; 0 while it is free
 * @gathered: its SGEs name no memory that could be copied from
 * @proves:   whose keys are dead once it is done; NULL: nobody's, or it is free
 */
struct rxfer_io {
	struct rxfer_done done;
	struct rxfer_io *next;
	uint64_t *epoch;
	uint64_t sig_epoch;
	struct ibv_send_wr *wr; /* room for N */
	uint32_t last_seq;
	uint32_t nwr;
	uint32_t front;
	struct rxfer_exposure *proves;
	struct ibv_sge *sge;	  /* room for the worst cut */
	struct rxfer_sig_wr *sig; /* for each WR */
	bool aside;
	bool moved; /* the transfer is proven done */
	bool gathered;
	uint32_t index; /* of this I/O, for a strategy's own data */
	uint32_t nrange;
	struct rxfer_seg *range;   /* local pieces with keys: map fills them, behind */
	struct rxfer_seg *first;   /* those of the fragments in RXFER_FIXED memory */
	bool *said;		   /* the signalling answers, and how many WRs the device took, */
	uint32_t taken;		   /* for a rollback */
	struct rxfer_frag staging; /* where a SEND of too many pieces is linearised */
};

/*
 * struct rxfer_exposure - what one I/O exposes.
 * @seg, @grant: @max of each. The first @nseg are what was exposed last; a strategy that has a key
 * for each I/O has a grant for each segment.
 * @open:        of these grants, how many are not proven dead
 * @was, @nwas:  under RXFER_REVOKE_LAZY: grants of the I/O before, which die with the post of the
 * next one; proven dead, they are none any more
 * @open_after:  of those that are dead, the longest
 */
struct rxfer_exposure {
	struct rxfer_exposure *next; /* of the same connection */
	struct rxfer_seg *seg;
	uint32_t nseg;
	uint32_t open;
	uint32_t max;
	uint32_t nwas;
	struct rxfer_grant *grant, *was;
	uint64_t open_after;
	void *reg_data; /* the strategy's own */
};

#define RXFER_WC_BATCH 16

/* In a wr_id above the 32 bits of the sequence number. */
#define WR_ASIDE (1ull << 32)
#define WR_DRAIN (1ull << 33)
#define WR_NOTE	 (1ull << 34)
#define WR_RECV	 (1ull << 63) /* the rest is the caller's id */

/*
 * struct rxfer_conn - a connection. What each I/O needs comes first, in few cache lines.
 *
 * I/Os are handed up in the order in which they were posted, so one ring of them is enough: those
 * in flight begin at @oldest, the free ones at @next_io.
 */
struct rxfer_conn {
	/* Posting. */
	struct rxfer_io *next_io;
	uint32_t inflight;
	uint32_t most;	/* that may be in flight: all, or 0 while some are held back or once it is
			   broken */
	uint32_t need;	/* N */
	uint32_t later; /* of these, credits kept after the submit */
	const struct rxfer_reg_by_wr
		*by_wr; /* the strategy's, where the peer is to be let in by WRs */
	bool keys_only; /* map is a look-up of keys, unmap is nothing, and nobody times them */
	bool prefetch;	/* see there */
	uint64_t inline_max;
	uint32_t unordered; /* 1 where a completion may come before an earlier READ's: iWARP */
	uint32_t reads;	    /* READs in flight, counted there only: what follows one is fenced */
	struct rxfer_sq sq;
	struct rxfer_sig sig;
	struct rxfer_dev *dev;
	struct ibv_qp *qp; /* id's, also while it is hidden there */
	/* What posts to it: the provider's part of ibv_post_send(), or the strategy. */
	int (*post)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

	/* Polling. */
	struct rxfer_io *oldest;
	uint32_t proven; /* every WR before this sequence number is done */
	int broken;	 /* -errno of the first failure; its text is broken_why */
	struct rxfer_counts counts;
	struct ibv_cq *cq;
	int wc_next, wc_count; /* completions polled and not yet looked at */
	bool stamps;	       /* keys are revoked: it matters when a reply was polled, */
	uint64_t fetched;      /* which was then */
	unsigned int revokes;  /* flags of a completion that say that a message revoked a key */
	struct ibv_wc wc[RXFER_WC_BATCH];
	uint32_t drains;    /* drain WRs in flight: 0 or 1 */
	uint32_t notes;	    /* notes in flight */
	uint32_t old_notes; /* those of them whose SQE is in counts that have been forgotten */

	/* The rest. */
	const struct rxfer_reg_ops *reg;
	void *reg_data; /* the strategy's own */
	bool reg_open;
	bool established;
	const char *ended;  /* rdma_cm's word for how its connection ended; NULL: it has not said */
	uint32_t sge_max;   /* per WR: device, opcode, strategy */
	uint32_t bytes_max; /* of a WR: the device's; UINT32_MAX where no I/O comes to it */
	bool bounded;	    /* lists of the shape may be more WRs than N: that is looked at first */
	uint32_t ranges;    /* of an I/O at most, where the strategy copies; else no limit */
	uint32_t nio;
	struct rxfer_io *io;
	/* I/Os whose WRs RXFER_MORE holds back: one chain of the WRs of @nheld I/Os of the ring. */
	struct rxfer_io *held, *last_held;
	uint32_t nheld;
	char broken_why[320];
	bool refused; /* it broke as the peer's memory is not open to us */
	struct ibv_qp
		*hidden; /* while we take the steps of the QP, which id->qp does not show then */
	struct rxfer_conn_attr attr;
	struct rxfer_conn_info info;
	struct rdma_cm_id *id;
	unsigned int cq_events; /* got, not yet acknowledged */
	bool armed;		/* the CQ was asked for an event, which has not been got */
	void *slab;		/* one allocation behind all arrays above */
	struct rxfer_mem *staging_mem;
	void *staging;
	struct rxfer_exposure *exposures;
	struct rxfer_ledger ledger;	  /* of these, a part of the device's */
	uint32_t exposed_ios;		  /* exposures so far, modulo 2^32 */
	uint32_t key_reuse_min;		  /* fewest between two uses of one key; UINT32_MAX: none */
	struct rxfer_number **numbers;	  /* of keys, see keys.c */
	uint64_t generation;		  /* of the dev's memory when @recv_mem was found */
	const struct rxfer_mem *recv_mem; /* that the latest RECV buffer was in */
};

/* dev.c: as rxfer_dev_open(), also where its port is not active or has no address. */
int rxfer_dev_open_idle(const char *name, const char *strategy, struct rxfer_dev **out);

/* survey.c: add the devices that librdmacm has not opened, with the reason. */
int rxfer_dev_add_closed(struct rxfer_dev_info **list, unsigned int *n);

/* mem.c: the only registrar; counts, and words a lack of locked memory. */
int rxfer_dev_reg_mr(struct rxfer_dev *dev, void *addr, size_t len, int access, struct ibv_mr **mr);
int rxfer_dev_dereg_mr(struct rxfer_dev *dev, struct ibv_mr *mr);
/* All of it, as mem->mr; what the peer may do with it is entered in the ledger.
 * rxfer_mem_register_as(): with this access, whatever the rights are.
 * rxfer_mem_register_on_demand(): nothing is pinned; @all: the process's whole address space. */
int rxfer_mem_register(struct rxfer_mem *mem);
int rxfer_mem_register_as(struct rxfer_mem *mem, int access);
int rxfer_mem_register_on_demand(struct rxfer_mem *mem, bool all);
void rxfer_mem_unregister(struct rxfer_mem *mem); /* does nothing where it is not */
struct rxfer_mem *rxfer_mem_search(struct rxfer_dev *dev, const void *addr, size_t len);

/* What a region must allow for what the peer may do with it. Who writes by a region must be allowed
 * to on this side, too: verbs want it so. */
static inline int rxfer_peer_access(unsigned int rights)
{
	int access = 0;

	if (rights & (RXFER_PEER_READ | RXFER_EXPOSE_READ))
		access |= IBV_ACCESS_REMOTE_READ;
	if (rights & (RXFER_PEER_WRITE | RXFER_EXPOSE_WRITE))
		access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	return access;
}

/* What a region must allow for our own READs to put bytes into it. Over iWARP the sink's key goes
 * to the peer, who answers by a tagged write (RFC 5040, 5.2; ibv_reg_mr(3) says nothing of it). */
static inline int rxfer_sink_access(const struct rxfer_dev *dev)
{
	bool iwarp = dev->verbs->device->transport_type == IBV_TRANSPORT_IWARP;

	return IBV_ACCESS_LOCAL_WRITE | (iwarp ? IBV_ACCESS_REMOTE_WRITE : 0);
}

/* What a region of @mem must allow for all that its rights do. */
static inline int rxfer_mem_access(const struct rxfer_mem *mem)
{
	int sink = mem->rights & RXFER_READ_SINK ? rxfer_sink_access(mem->dev) : 0;

	return IBV_ACCESS_LOCAL_WRITE | rxfer_peer_access(mem->rights) | sink;
}

static inline bool rxfer_mem_contains(const struct rxfer_mem *m, const void *addr, size_t len)
{
	size_t offset =
		(size_t)((uintptr_t)addr - (uintptr_t)m->base); /* huge where it lies before */

	return len <= m->len && offset <= m->len - len;
}

/* The same, and it is one byte at least. Hot: few registers, no sum that can wrap. */
static inline bool rxfer_mem_holds(const struct rxfer_mem *m, const char *addr, uint32_t len)
{
	return addr >= m->base && addr < m->end && len - 1ull < (size_t)(m->end - addr);
}

/* The declared memory that holds all of it; NULL for none. Hot: mostly the one found last. */
static inline struct rxfer_mem *rxfer_mem_find(struct rxfer_dev *dev, const void *addr, size_t len)
{
	if (rxfer_mem_contains(dev->found, addr, len))
		return dev->found;
	return rxfer_mem_search(dev, addr, len);
}

/* The memory that is registered whole and holds all of it; NULL for none. Hot: mostly @was, that of
 * the last time, which is good as long as no memory goes. */
static inline const struct rxfer_mem *rxfer_fixed_mem(struct rxfer_conn *conn,
						      const struct rxfer_mem **was,
						      const void *addr, uint32_t len)
{
	const struct rxfer_mem *mem = *was;

	if (mem && conn->generation == conn->dev->generation && rxfer_mem_holds(mem, addr, len))
		return mem;
	mem = rxfer_mem_find(conn->dev, addr, len);
	*was = mem && mem->mr ? mem : NULL;
	conn->generation = conn->dev->generation;
	return *was;
}

/* dev_events.c: for whoever wants to follow; costs nothing where nobody does. */
void rxfer_dev_trace(const struct rxfer_dev *dev, const struct rdma_cm_event *ev);

/* conn.c: the connection is unusable from here on; the first failure's words stay. Returns
 * conn->broken. */
int rxfer_conn_break(struct rxfer_conn *conn, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* What rdma_cm has said since it was last asked; conn->ended. */
const char *rxfer_conn_ended(struct rxfer_conn *conn);
/* The address at the other end, as text. Returns @buf. */
const char *rxfer_conn_peer(const struct rxfer_conn *conn, char *buf, size_t size);

/* wc_status.c: what is most likely behind the status of a failed completion, and what to do. */
struct rxfer_reason {
	const char *cause, *remedy;
};
const char *rxfer_wc_name(enum ibv_wc_status status);
struct rxfer_reason rxfer_wc_reason(enum ibv_wc_status status);

/* qp.c: queue pair, completion queue and accounts; needs conn->dev, reg, attr, id. */
int rxfer_qp_create(struct rxfer_conn *conn);
/* Words @err of a call that was to make one of its queues: with what limit it is likely to be. */
int rxfer_queue_refused(const struct rxfer_conn *conn, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* path.c: the service level; where one is asked for, the QP's steps in a hand-shake. */
int rxfer_path_check(const struct rxfer_dev *dev, uint8_t sl);
void rxfer_path_hide(struct rxfer_conn *conn, struct rdma_conn_param *param);
void rxfer_path_show(struct rxfer_conn *conn); /* does nothing where it is not hidden */
/* The hidden QP may receive and send. @answer: that we are about to give, or NULL. */
int rxfer_path_ready(struct rxfer_conn *conn, const struct rdma_conn_param *answer);
/* After the peer's answer: likewise, and tell it. Shows the QP, also in failure. */
int rxfer_path_establish(struct rxfer_conn *conn);
void rxfer_path_note(struct rxfer_conn *conn); /* what became of it, in conn->info */

/* cq.c */
unsigned int rxfer_cq_revokes(const struct rxfer_dev *dev);
int rxfer_cq_create(struct rxfer_conn *conn, uint32_t entries);
void rxfer_cq_destroy(struct rxfer_conn *conn);
int rxfer_cq_failed(struct rxfer_conn *conn, int n);

/* One ibv_poll_cq() into conn->wc, where all known ones were looked at; how many, or -errno. */
static inline int rxfer_cq_fetch(struct rxfer_conn *conn)
{
	int n = ibv_poll_cq(conn->cq, RXFER_WC_BATCH, conn->wc);

	if (__builtin_expect(n < 0, 0))
		return rxfer_cq_failed(conn, n);
	conn->wc_next = 0;
	conn->wc_count = n;
	if (__builtin_expect(conn->stamps, 0) && n)
		conn->fetched = rxfer_now();
	return n;
}

/* io.c: the I/Os of a connection; needs conn->need, sge_max, attr. */
int rxfer_xfer_init(struct rxfer_conn *conn);
void rxfer_xfer_destroy(struct rxfer_conn *conn);

/* What an I/O's WRs are to verbs. */
static inline enum ibv_wr_opcode rxfer_wr_opcode(enum rxfer_opcode op)
{
	static const enum ibv_wr_opcode opcode[] = {
		[RXFER_READ] = IBV_WR_RDMA_READ,
		[RXFER_WRITE] = IBV_WR_RDMA_WRITE,
		[RXFER_WRITE_IMM] = IBV_WR_RDMA_WRITE, /* but for the last one: see below */
		[RXFER_SEND] = IBV_WR_SEND,
		[RXFER_BIND] = IBV_WR_BIND_MW,
		[RXFER_REVOKE] = IBV_WR_LOCAL_INV,
	};

	return opcode[op];
}

/* A SEND that revokes a key of the peer's. */
static inline void rxfer_wr_add_inv(struct ibv_send_wr *wr, uint32_t key)
{
	wr->opcode = IBV_WR_SEND_WITH_INV;
	wr->invalidate_rkey = key;
}

/* Immediate data go with an I/O's last WR: its arrival is that of all the others. */
static inline void rxfer_wr_add_imm(struct ibv_send_wr *wr, uint32_t imm)
{
	wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->imm_data = htonl(imm);
}

/* xfer.c, for other ways to post: an I/O whose WRs are made, out of @held credits, of which @keep
 * stay. Where the account does not hold it is not posted, and *@held as it was. */
int rxfer_submit(struct rxfer_conn *conn, struct rxfer_io *io, unsigned int flags, uint32_t *held,
		 uint32_t keep);

/* xfer.c, likewise: the device took @taken of @nwr WRs; why no I/O can start; why it
 * had no credits. All return -errno. */
int rxfer_post_refused(struct rxfer_conn *conn, uint32_t taken, uint32_t nwr, int err);
int rxfer_no_io(struct rxfer_conn *conn);
int rxfer_no_credits(struct rxfer_conn *conn);

/* expose.c: the QP is gone: whatever is exposed still goes, too. */
void rxfer_expose_destroy(struct rxfer_conn *conn);

/* keys.c: the WRs of what @x is to expose go to the head of the I/O (-EBUSY: they were posted
 * before); they are about to be posted; the device took them; an I/O that revokes is done. */
int rxfer_keys_build(struct rxfer_conn *conn, struct rxfer_io *io, struct rxfer_exposure *x);
static inline void rxfer_keys_forget(struct rxfer_io *io)
{
	io->front = 0;
	io->proves = NULL;
}
void rxfer_keys_granting(struct rxfer_conn *conn, struct rxfer_exposure *x);
void rxfer_keys_granted(struct rxfer_conn *conn, struct rxfer_exposure *x);
int rxfer_keys_dead(const struct rxfer_io *io);
void rxfer_keys_destroy(struct rxfer_conn *conn); /* what is known of numbers */

/* poll.c: undo what the strategy's map did; timed when asked, nothing for an aside I/O. */
int rxfer_io_unmap(struct rxfer_conn *conn, struct rxfer_io *io);

#endif
