/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the double's files know of each other. All fake_* functions here want the lock held. */
#ifndef FAKE_INTERNAL_H
#define FAKE_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "fakehca.h"

#define FAKE_MTU_MAX	 4096
#define FAKE_PRIVATE_MAX 56 /* bytes of private data that rdma_cm leaves its user */

enum fake_kind {
	FAKE_PD,
	FAKE_MR,
	FAKE_MW,
	FAKE_MKEY,
	FAKE_CQ,
	FAKE_QP,
	FAKE_COMP_CHANNEL,
	FAKE_EVENT_CHANNEL,
	FAKE_ID,
	FAKE_DEVICE_LIST,
	FAKE_IFADDRS,
	FAKE_KINDS,
};

/* struct fake_object - in each object; the live ones of a kind are a list. @release frees it. */
struct fake_object {
	enum fake_kind kind;
	struct fake_object *prev, *next;
	void (*release)(struct fake_object *object);
};

struct fake_context {
	struct ibv_device device;
	struct verbs_context verbs;
	const struct fake_device *config;
	unsigned int qps, cqs;
	struct fake_async *async; /* events that wait to be got, in order */
};

struct fake_pd {
	struct ibv_pd verbs; /* first, here and below: the API's pointer is ours */
	struct fake_object object;
	unsigned int users; /* regions, windows and QPs */
};

/* @users: WRs that name it and are not proven done. @bound: windows. */
struct fake_mr {
	struct ibv_mr verbs;
	struct fake_object object;
	unsigned int access;
	uint32_t users, bound;
};

/*
 * struct fake_mw - @rkey: its key now; verbs.rkey is what its user believes. @qp, @mr: that it is
 * bound to, NULL: it is free. @was_bound: once at least.
 */
struct fake_mw {
	struct ibv_mw verbs;
	struct fake_object object;
	uint32_t rkey;
	struct fake_qp *qp;
	struct fake_mr *mr;
	uint64_t addr, len;
	unsigned int access;
	bool was_bound;
};

/*
 * struct fake_mkey - @key: as it is now. @set: it has a list, of @n of @max pieces, @len bytes;
 * @was_set: once at least. @peer_revokes: a message of the peer's may
 */
struct fake_mkey {
	struct fake_object object;
	struct fake_pd *pd;
	uint32_t key;
	bool peer_revokes, tags, set, was_set;
	unsigned int access;
	uint32_t max, n;
	uint64_t len;
	struct ibv_sge *sge;
};

struct fake_mw_slot {
	struct fake_mw *mw;
	uint32_t next_key;
};

/* struct fake_cqe - @seq: of the SQE or RQE that it proves. @order: of writing. */
struct fake_cqe {
	struct ibv_wc wc;
	struct fake_qp *qp;
	uint64_t seq, order;
	bool solicited;
};

/* A ring of completions of one kind of queue; both rings of a CQ share its capacity. */
struct fake_cqes {
	struct fake_cqe *at;
	uint32_t n, first;
};

struct fake_comp_channel {
	struct ibv_comp_channel verbs;
	struct fake_object object;
	unsigned int users;
	struct fake_cq **event; /* that wait to be got, in order */
	uint32_t events, room;
};

enum fake_armed { FAKE_UNARMED, FAKE_SOLICITED, FAKE_ANY };

struct fake_cq {
	struct ibv_cq verbs;
	struct fake_object object;
	struct fake_comp_channel *channel;
	struct fake_cqes sq, rq;
	enum fake_armed armed;
	unsigned int unacked, async_unacked, users;
};

enum fake_wr_state {
	FAKE_QUEUED,
	FAKE_READING, /* a READ whose answer is under way */
	FAKE_ACKED,
	FAKE_FAILED,
};

/* struct fake_bind - what a BIND says; of a WR that revokes, @key alone. @lkey: of the region. */
struct fake_bind {
	uint32_t key, new_key, lkey;
	uint64_t addr, len;
	unsigned int access;
};

/*
 * struct fake_sqe - @moved: bytes that went; @due: the step at which something may happen next;
 * @hash: of the source as it left; @peer_fails: an error that takes the peer's QP along; @told: its
 * completion is written already
 */
struct fake_sqe {
	uint64_t wr_id, len, moved, due, hash, remote_addr;
	struct ibv_sge *sge;
	uint8_t *inline_data;
	uint32_t nsge, rkey;
	struct fake_bind bind;
	struct ibv_sge *list; /* of a UMR: what @bind.new_key is to be */
	uint32_t nlist;
	__be32 imm;
	enum ibv_wr_opcode opcode;
	unsigned int flags;
	enum fake_wr_state state;
	enum ibv_wc_status status;
	bool hashed, peer_fails, silent, told;
};

struct fake_rqe {
	uint64_t wr_id, len, due;
	struct ibv_sge *sge;
	uint32_t nsge;
	bool done; /* @wc is ready to be written */
	struct ibv_wc wc;
	bool solicited;
};

/*
 * struct fake_qp - sequence numbers count WRs for ever: tail <= done <= issue <= head.
 * SQ: [tail, done) completed and not proven by a polled CQE, [done, issue) on their way,
 * [issue, head) queued. RQ: [rq_tail, rq_done) completed and not polled, [rq_done, rq_next) full,
 * [rq_next, rq_head) waiting for messages.
 */
struct fake_qp {
	union {
		struct ibv_qp verbs;
		struct ibv_qp_ex ex; /* of one that was made for ibv_wr_start(), */
	};
	struct fake_object object;
	void *dv;		  /* and for mlx5's WRs: NULL, or its struct mlx5dv_qp_ex */
	struct fake_batch *batch; /* since ibv_wr_start() */
	uint32_t lists;		  /* pieces that a UMR may have */
	bool scatters;		  /* small data into completions */
	struct fake_context *context;
	struct fake_pd *pd;
	struct fake_cq *send_cq, *recv_cq;
	struct fake_id *id;
	struct fake_qp *peer; /* NULL: not connected, or gone */
	struct ibv_qp_cap cap;
	bool sig_all, mute, unplugged; /* mute: iWARP's passive side before it heard anything */
	uint32_t rd_atomic, peer_rd_atomic, reads;
	unsigned int access; /* what the peer may do by this QP, whatever the keys say */
	uint32_t ece_options;
	uint8_t rnr_retry, rnr_left, sl;
	unsigned int unacked;	  /* asynchronous events */
	bool rnr_waiting, halted; /* halted: a WR failed, nothing more is issued */
	uint64_t rnr_due;

	struct fake_sqe *sq;
	struct ibv_sge *sq_sge;
	uint8_t *sq_inline;
	uint64_t tail, done, issue, head;
	uint32_t sq_size, sq_peak;

	struct fake_rqe *rq;
	struct ibv_sge *rq_sge;
	uint64_t rq_tail, rq_done, rq_next, rq_head;
	uint32_t rq_size;
};

enum fake_id_state {
	FAKE_ID_NEW,
	FAKE_ID_BOUND,
	FAKE_ID_LISTENING,
	FAKE_ID_ADDR,
	FAKE_ID_ROUTE,
	FAKE_ID_CONNECTING,
	FAKE_ID_REQUESTED, /* made by a connection request, not answered yet */
	FAKE_ID_RESPONDED, /* has the peer's answer, and takes the last steps itself */
	FAKE_ID_ACCEPTED,  /* has answered such a one */
	FAKE_ID_ACTIVE,
	FAKE_ID_OVER,
};

/* struct fake_event_channel - @first: events until they are acknowledged, in order. */
struct fake_event_channel {
	struct rdma_event_channel verbs;
	struct fake_object object;
	struct fake_cm_event *first;
	unsigned int ids;
};

/* struct fake_cm_event - @owner: the id that must not be destroyed before it is acknowledged. */
struct fake_cm_event {
	struct rdma_cm_event verbs;
	struct fake_cm_event *next;
	struct fake_event_channel *channel;
	struct fake_id *owner;
	bool got;
	uint8_t private_data[FAKE_PRIVATE_MAX];
};

/*
 * struct fake_id - @said: when it connected, or accepted. @fetched: the user knows of this request.
 * @used: the QP that it connected, or accepted, with: its own, or one that its user named by number
 * and moves through its states. verbs.qp is its user's to write, whenever he likes.
 * @remote_ece: what the other end said, or agreed to
 */
struct fake_id {
	struct rdma_cm_id verbs;
	struct fake_object object;
	struct fake_event_channel *channel;
	struct fake_context *context;
	struct fake_id *peer, *listener;
	enum fake_id_state state;
	int backlog;
	bool fetched;
	struct fake_qp *used;
	struct ibv_ece remote_ece;
	struct rdma_conn_param said;
};

#define FAKE_VIOLATIONS_KEPT 16

struct fake_state {
	pthread_mutex_t lock;
	bool started;
	struct fake_config config;
	struct fake_context context[FAKE_DEVICES];
	struct fake_object *objects[FAKE_KINDS];
	unsigned int count[FAKE_KINDS];

	struct fake_mr **mr; /* by slot, and each slot's generation */
	uint16_t *mr_generation;
	uint32_t *mr_free;
	uint32_t mr_slots, mr_nfree;

	struct fake_mkey **mkey;
	uint32_t mkeys;

	struct fake_mw_slot *mw;
	uint32_t *mw_free;
	uint32_t mw_slots, mw_nfree;

	uint64_t step, now, random, cqe_order, next_qp;
	uint32_t qp_numbers;
	uint16_t ports;
	struct fake_stats stats;
	char violation[FAKE_VIOLATIONS_KEPT][200];
	unsigned int violations;
	bool loud; /* a program's: print them at once */
	char reason[200];
	void (*waiting)(void *arg);
	void *waiting_arg;
	bool in_waiting;
};

extern struct fake_state fake;

/* fake_state.c. fake_lock() starts the double from the environment where nobody has. */
void fake_lock(void);
void fake_unlock(void);
void fake_start_locked(const struct fake_config *config);
void fake_object_add(struct fake_object *object, enum fake_kind kind,
		     void (*release)(struct fake_object *object));
void fake_object_del(struct fake_object *object); /* off its list, and released */
void fake_violate(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Keeps the words for fake_reason(); returns @err. */
int fake_refuse(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Somebody reads from an empty channel: with O_NONBLOCK he may. */
void fake_no_event(int fd, const char *who);
/* Does this call fail? Its errno, or 0. */
int fake_fault(struct fake_fault *fault);
uint32_t fake_random(uint32_t below);

/* The @type that an object is part of. */
#define FAKE_OF(part, type) ((type *)(void *)((char *)(part)-offsetof(type, object)))

/* fake_clock.c: the virtual clock begins anew, and nobody waits. */
void fake_clock_start(void);

/* fake_env.c: the configuration in the environment, and a report when the program ends. */
void fake_env_start(void);

/* fake_net.c */
void fake_net_address(const struct fake_device *device, struct sockaddr_storage *addr);
struct fake_context *fake_net_device(const struct sockaddr *addr);

/* fake_device.c: make the contexts of config.device[]. */
void fake_contexts_make(void);
struct fake_context *fake_context(struct ibv_context *context);

/* fake_async.c */
void fake_async_open(struct fake_context *c);
void fake_async_close(struct fake_context *c);
void fake_async_raise(enum ibv_event_type type);
void fake_async_forget(struct fake_context *c, const void *queue, unsigned int unacked);

/* fake_mr.c */
void fake_mr_forget_slots(void);
uint32_t fake_odp(const struct fake_device *d);
int fake_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		   struct ibv_sge *sge, uint32_t n);
/* Is [addr, addr + len) open under @key for @pd and all of @access? */
bool fake_mr_allows(uint32_t key, bool remote, const struct ibv_pd *pd, uint64_t addr, uint64_t len,
		    unsigned int access);
void fake_mr_use(uint32_t key, bool remote, int32_t change);
struct fake_mr *fake_mr_find(uint32_t key, bool remote);

/* fake_mw.c */
void fake_mw_forget_slots(void);
struct ibv_mw *fake_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int fake_dealloc_mw(struct ibv_mw *mw);
uint32_t fake_mw_limit(const struct fake_device *device);
/* @qp is destroyed: what was bound to it is free. */
void fake_mw_forget_qp(const struct fake_qp *qp);
/* A WR that binds or revokes: what is wrong with it for a driver, and what it keeps of it. */
int fake_mw_check_post(const struct fake_qp *qp, const struct ibv_send_wr *wr);
void fake_mw_queue(struct fake_sqe *sqe, const struct ibv_send_wr *wr);
/* BIND_MW and LOCAL_INV, at once. */
enum ibv_wc_status fake_mw_execute(struct fake_qp *qp, const struct fake_sqe *sqe);
/* Revoke @key, which must be bound to @qp. */
bool fake_mw_revoke(const struct fake_qp *qp, uint32_t key);
bool fake_is_window(uint32_t key);
/* Is [addr, addr + len) open to the peer of @qp, for all of @access, by a window's @key? */
bool fake_mw_allows(const struct fake_qp *qp, uint32_t key, uint64_t addr, uint64_t len,
		    unsigned int access);

/* fake_mkey.c */
bool fake_is_mkey(uint32_t key);
void fake_mkey_forget_slots(void);
struct fake_mkey *fake_mkey_make(struct ibv_pd *pd, uint32_t max, bool peer_revokes, bool tags);
int fake_mkey_drop(struct fake_mkey *mkey);
/* By any of its keys; NULL. */
struct fake_mkey *fake_mkey_find(uint32_t key);
/* Is [addr, addr + len) under @key, for @pd and all of @access? Says nothing of what lies below. */
bool fake_mkey_allows(uint32_t key, const struct ibv_pd *pd, uint64_t addr, uint64_t len,
		      unsigned int access);
/* As fake_mw_revoke(), and by whom. */
bool fake_mkey_revoke(const struct fake_qp *qp, uint32_t key, bool by_peer);
enum ibv_wc_status fake_mkey_execute(struct fake_qp *qp, const struct fake_sqe *sqe);

/* fake_wr.c: the other way to post, ibv_wr_start() to ibv_wr_complete(). */
void fake_wr_init(struct fake_qp *qp);
void fake_wr_destroy(struct fake_qp *qp);
/* One more WR of the batch, whose data come next. */
struct ibv_send_wr *fake_wr_add(struct fake_qp *qp, enum ibv_wr_opcode opcode);
void fake_wr_sge(struct fake_qp *qp, const struct ibv_sge *sge, size_t n);
void fake_wr_fail(struct fake_qp *qp, int err); /* all of the batch */

/* fake_cq.c */
void fake_cq_write(struct fake_cq *cq, bool sq, const struct fake_cqe *cqe);
void fake_cq_forget(struct fake_cq *cq, const struct fake_qp *qp);
int fake_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* fake_qp.c, fake_post.c */
void fake_qp_fail(struct fake_qp *qp); /* to the error state: everything flushes */
void fake_qp_retire_sq(struct fake_qp *qp, uint64_t seq, bool proven);
void fake_qp_retire_rq(struct fake_qp *qp, uint64_t seq);
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_all(struct fake_qp *qp, struct ibv_send_wr *wr); /* or nothing */
struct fake_qp *fake_qp_make(struct fake_context *c, struct ibv_pd *pd,
			     const struct ibv_qp_init_attr *attr);
int fake_qp_check_args(const struct fake_context *c, const struct ibv_pd *pd,
		       const struct ibv_qp_init_attr *attr);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

void fake_qp_cut_off(struct fake_qp *qp);
void fake_sqe_let_go(struct fake_sqe *sqe); /* the regions that it names by other than its SGEs */

static inline bool fake_qp_reachable(const struct fake_qp *qp)
{
	return qp->peer && !qp->unplugged && !qp->context->config->down &&
	       qp->peer->verbs.state == IBV_QPS_RTS;
}

static inline struct fake_sqe *fake_sqe(const struct fake_qp *qp, uint64_t seq)
{
	return &qp->sq[seq % qp->sq_size];
}

static inline struct fake_rqe *fake_rqe(const struct fake_qp *qp, uint64_t seq)
{
	return &qp->rq[seq % qp->rq_size];
}

/* fake_exec.c, fake_move.c */
/* Is [addr, addr + len) usable under this lkey, also an mkey's? */
bool fake_lkey_allows(uint32_t key, const struct ibv_pd *pd, uint64_t addr, uint64_t len,
		      unsigned int access);
bool fake_step_locked(void);
/* Write the completions of @qp that are due. */
void fake_qp_complete(struct fake_qp *qp);
/* Move one piece of a READ's answer, or of a WRITE or SEND. Sets the SQE's state when it ends. */
void fake_move_read(struct fake_qp *qp, struct fake_sqe *sqe);
void fake_move_out(struct fake_qp *qp, struct fake_sqe *sqe);
/* All of it is done, but for its completion. */
void fake_acknowledge(struct fake_sqe *sqe);
/* The source's bytes, as a number. */
uint64_t fake_hash_source(const struct fake_qp *qp, const struct fake_sqe *sqe);

/* fake_cm.c */
struct fake_id *fake_id_new(struct fake_event_channel *channel, void *context,
			    enum rdma_port_space ps);
/* Queue an event for @id; the words of @param are copied. */
void fake_cm_event(struct fake_id *id, enum rdma_cm_event_type type, int status,
		   const struct rdma_conn_param *param);
void fake_id_del(struct fake_id *id);
static inline struct fake_id *fake_id_first(void)
{
	return fake.objects[FAKE_ID] ? FAKE_OF(fake.objects[FAKE_ID], struct fake_id) : NULL;
}

static inline struct fake_id *fake_id_next(const struct fake_id *id)
{
	return id->object.next ? FAKE_OF(id->object.next, struct fake_id) : NULL;
}

/* fake_conn.c: @id is being destroyed: tell whoever is at its other end. */
void fake_conn_leave(struct fake_id *id);

/* The QP of @id's connection, also of an id that is another thread's. */
static inline struct fake_qp *fake_id_qp(const struct fake_id *id)
{
	return id->used;
}

#endif
