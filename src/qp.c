/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The queues of a connection, sized by the rules of the send queue: N from the shape of its I/Os,
 * the depth from N and the slots, a completion queue that holds both queues, and the account on
 * top.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "probe.h"
#include "reg.h"

/* A READ's are limited twice: no QP has more than max_sge, and some devices promise READs more. */
static uint32_t device_sges(const struct rxfer_conn *conn)
{
	const struct rxfer_dev_info *info = &conn->dev->info;

	if (conn->attr.shape.op == RXFER_READ && info->max_sge_rd < info->max_sge)
		return info->max_sge_rd;
	return info->max_sge;
}

/* Local pieces of one I/O. */
static uint32_t local_pieces(const struct rxfer_conn *conn)
{
	const struct rxfer_shape *s = &conn->attr.shape;

	bool one = conn->reg->copies || conn->reg->gathers;

	return one && s->fixed < s->frags ? s->fixed + 1 : s->frags;
}

/* Bytes of one WR, where an I/O may have more. A device that says 0 does not say. */
static uint32_t most_bytes(const struct rxfer_conn *conn)
{
	uint64_t device = conn->dev->info.max_msg_size;

	return device && device < conn->attr.shape.bytes && device < UINT32_MAX ? (uint32_t)device
										: UINT32_MAX;
}

/* WRs that move the data of one I/O, however its lists lie; where these are aligned, it is as if
 * each remote piece were one local one. */
static uint32_t data_wrs(const struct rxfer_conn *conn, uint32_t local, bool cuts)
{
	const struct rxfer_shape *s = &conn->attr.shape;

	if (s->op == RXFER_SEND && !cuts)
		return 1; /* one message; more pieces than SGEs are linearised */
	if (s->aligned)
		return rxfer_cut_worst(1, conn->reg->copies ? s->segments : s->frags, 1, s->bytes,
				       conn->bytes_max);
	return rxfer_cut_worst(local, s->op == RXFER_SEND ? 0 : s->segments, conn->sge_max,
			       s->bytes, conn->bytes_max);
}

/* Credits of one I/O, and SGEs and bytes of one WR: device, opcode and strategy each have a say. */
static void size_io(struct rxfer_conn *conn)
{
	const struct rxfer_shape *s = &conn->attr.shape;
	uint32_t device = device_sges(conn);
	uint32_t local = local_pieces(conn), pieces = local + (s->segments ? s->segments - 1 : 0);
	struct rxfer_need extra = conn->reg->need(s, conn->attr.revoke);
	bool cuts = conn->reg->sge_per_wr && !conn->attr.one_message;

	conn->sge_max = cuts ? conn->reg->sge_per_wr : device;
	if (conn->sge_max > device)
		conn->sge_max = device;
	if (conn->attr.sge_max && conn->sge_max > conn->attr.sge_max)
		conn->sge_max = conn->attr.sge_max;
	if (conn->sge_max > pieces)
		conn->sge_max = pieces;
	conn->bytes_max = most_bytes(conn);
	conn->bounded = conn->attr.rounds || conn->bytes_max != UINT32_MAX;
	conn->need = data_wrs(conn, local, cuts) + extra.at_submit + extra.later + conn->attr.reply;
	conn->later = extra.later;
	conn->ranges = !conn->reg->copies			      ? UINT32_MAX
		       : s->op == RXFER_SEND && local > conn->sge_max ? conn->sge_max
								      : local;
}

/* Of the options that size its queues: at a server they may be its client's --peer-sq-depth. */
static const char *whose(const struct rxfer_conn *conn)
{
	return conn->attr.peer_options ? "peer-" : "";
}

/*
 * Devices answer all kinds of "too much" alike. What is known is what went well before: where
 * queues like these were had, it is their number that is too large, whoever has the others; else it
 * may be their size. Many devices pin the memory of their queues, which has a limit of its own.
 */
static void likely_limit(const struct rxfer_conn *conn, char *buf, size_t size)
{
	struct rlimit limit;
	int used;

	if (conn->attr.index)
		used = snprintf(
			buf, size,
			" after %u of them, so likely their number, other users' included: use --qps %u or less",
			conn->attr.index, conn->attr.index);
	else
		used = snprintf(
			buf, size,
			"; it may be too large, or others have taken all: use a smaller --%ssq-depth or --depth",
			whose(conn));
	if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY)
		snprintf(buf + used, size - (size_t)used,
			 ", or raise the locked-memory limit of %s (ulimit -l)",
			 rxfer_size(limit.rlim_cur).s);
}

int rxfer_queue_refused(const struct rxfer_conn *conn, int err, const char *format, ...)
{
	char what[256], limit[256] = "";
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (err == ENOMEM || err == EINVAL || err == ENOSPC || err == EAGAIN)
		likely_limit(conn, limit, sizeof(limit));
	return rxfer_fail(err, "%s: %s%s", what, strerror(abs(err)), limit);
}

static int create_qp(struct rxfer_conn *conn, struct ibv_qp_init_attr *qp)
{
	if (conn->reg->create_qp)
		return conn->reg->create_qp(conn, qp);
	return rdma_create_qp(conn->id, conn->dev->pd, qp) ? -errno : 0;
}

static int create_queues(struct rxfer_conn *conn, uint32_t depth)
{
	uint32_t rq = conn->attr.rq_depth ? conn->attr.rq_depth : 1;
	struct ibv_qp_init_attr qp = {.qp_type = IBV_QPT_RC};
	int rc = rxfer_cq_create(conn, depth + rq);

	if (rc)
		return rc;
	qp.send_cq = qp.recv_cq = conn->cq;
	qp.cap.max_send_wr = depth;
	qp.cap.max_recv_wr = rq;
	qp.cap.max_send_sge = conn->sge_max;
	qp.cap.max_recv_sge = 1;
	qp.cap.max_inline_data = conn->attr.inline_max;
	rc = create_qp(conn, &qp);
	if (rc && rc != -EMSGSIZE)
		rc = rxfer_queue_refused(
			conn, -rc,
			"creating a queue pair on %s with %s of %s and %s (max_qp_wr %u, max_qp %u)",
			conn->dev->info.name, rxfer_count(depth, "send entry").s,
			rxfer_count(conn->sge_max, "SGE").s, rxfer_count(rq, "receive entry").s,
			conn->dev->info.max_qp_wr, conn->dev->info.max_qp);
	if (rc) {
		rxfer_cq_destroy(conn);
		return rc;
	}
	if (qp.cap.max_inline_data < conn->attr.inline_max) {
		rdma_destroy_qp(conn->id);
		rxfer_cq_destroy(conn);
		return rxfer_fail(EMSGSIZE, "--inline %u is more than %s granted, %u: use less",
				  conn->attr.inline_max, conn->dev->info.name,
				  qp.cap.max_inline_data);
	}
	conn->info.sqe_max = qp.cap.max_send_wr;
	conn->info.sq_depth = depth;
	return 0;
}

static void destroy_queues(struct rxfer_conn *conn)
{
	rdma_destroy_qp(conn->id);
	rxfer_cq_destroy(conn);
}

/* The largest depth in [@least, @most] that the device takes; @most itself at the first try if it
 * does. */
static int create_largest(struct rxfer_conn *conn, uint32_t least, uint32_t most)
{
	int rc = create_queues(conn, most);

	if (rc != -ENOMEM && rc != -EINVAL)
		return rc;
	most--;
	while (least < most) {
		uint32_t middle = most - (most - least) / 2;

		rc = create_queues(conn, middle);
		if (rc == 0) {
			destroy_queues(conn);
			least = middle;
		} else if (rc == -ENOMEM || rc == -EINVAL) {
			most = middle - 1;
		} else {
			return rc;
		}
	}
	return create_queues(conn, least);
}

/* The depth that never makes an I/O with a free slot wait; every:K counts on K entries besides. */
static uint32_t default_depth(const struct rxfer_conn *conn)
{
	uint64_t depth = 2ull * conn->need * conn->attr.slots + 1;

	if (depth <= conn->attr.sig_arg)
		depth = conn->attr.sig_arg + 1ull;
	return depth > UINT32_MAX ? UINT32_MAX : (uint32_t)depth;
}

/* It holds one I/O and the drain; in rounds at least one WR of it and its reply, which may be the
 * last of its WRs. */
static uint32_t least_depth(const struct rxfer_conn *conn)
{
	return 1 + (conn->attr.rounds && conn->need > 2 ? 2 : conn->need);
}

/* What makes an I/O take fewer entries. */
static const char *less(const struct rxfer_conn *conn)
{
	return conn->bytes_max == UINT32_MAX ? "fewer --frags"
					     : "fewer --frags or a smaller --size";
}

/* Is a send queue possible at all that holds one I/O, and the depth that was asked for? */
static int check_depth(const struct rxfer_conn *conn, uint32_t rq, uint32_t most)
{
	const struct rxfer_dev_info *dev = &conn->dev->info;
	uint32_t asked = conn->attr.sq_depth, least = least_depth(conn);

	if (asked && asked < least)
		return rxfer_fail(
			EMSGSIZE,
			"a send queue of %s cannot hold one I/O: it takes %u, and one for the drain: use --%ssq-depth %u or more, or %s",
			rxfer_count(asked, "entry").s, least - 1, whose(conn), least, less(conn));
	if (asked > most)
		return rxfer_fail(
			EMSGSIZE,
			"a send queue of %u entries is more than %s can have (max_qp_wr %u; max_cqe %u holds its entries and %s): use --%ssq-depth %u or less",
			asked, dev->name, dev->max_qp_wr, dev->max_cqe, rxfer_count(rq, "RECV").s,
			whose(conn), most);
	if (most < least)
		return rxfer_fail(
			EMSGSIZE,
			"%s grants too small a send queue: one I/O takes %s, and one for the drain: use %s",
			dev->name, rxfer_count(least - 1, "entry").s, less(conn));
	return 0;
}

/* An explicit depth is had or refused; the default is what the device can give. */
static int size_queues(struct rxfer_conn *conn)
{
	const struct rxfer_dev_info *dev = &conn->dev->info;
	uint32_t rq = conn->attr.rq_depth ? conn->attr.rq_depth : 1;
	uint32_t wanted = default_depth(conn), most;
	int rc;

	conn->info.sq_wanted = wanted;
	conn->info.sge_per_wr = conn->sge_max;
	conn->info.bytes_per_wr = conn->bytes_max;
	conn->info.frags_per_wr = conn->reg->copies ? conn->attr.shape.frags : conn->sge_max;
	if (rq > dev->max_qp_wr || rq >= dev->max_cqe)
		return rxfer_fail(
			EMSGSIZE,
			"%u RECVs are more than %s can have (max_qp_wr %u, max_cqe %u): use less (--depth, --frags)",
			rq, dev->name, dev->max_qp_wr, dev->max_cqe);
	most = dev->max_cqe - rq < dev->max_qp_wr ? dev->max_cqe - rq : dev->max_qp_wr;
	rc = check_depth(conn, rq, most);
	if (rc)
		return rc;
	if (conn->attr.sq_depth)
		return create_queues(conn, conn->attr.sq_depth);
	return create_largest(conn, least_depth(conn), wanted < most ? wanted : most);
}

/* In rounds nobody asks for more at once than the queue has beside the drain's entry. */
static void settle_need(struct rxfer_conn *conn)
{
	if (conn->attr.rounds && conn->need >= conn->info.sq_depth)
		conn->need = conn->info.sq_depth - 1;
	conn->info.need = conn->need;
	conn->info.later = conn->later;
}

static int account(struct rxfer_conn *conn)
{
	const struct rxfer_conn_attr *a = &conn->attr;
	int rc = rxfer_sq_init(&conn->sq, conn->info.sq_depth);

	if (!rc)
		rc = rxfer_sig_init(&conn->sig, a->sig, a->sig_arg, conn->info.sq_depth, a->slots,
				    conn->need);
	if (rc == -ERANGE)
		return rxfer_fail(
			EINVAL,
			"--%ssignal %s:%u asks for a completion every %u entries, but the send queue has %u%s: it would fill up first; use %s:%u or less%s%s%s",
			whose(conn), a->sig->name, a->sig_arg, a->sig_arg, conn->info.sq_depth,
			a->sq_depth ? "" : ", the most that the device takes", a->sig->name,
			conn->info.sq_depth, a->sq_depth ? ", or a larger --" : "",
			a->sq_depth ? whose(conn) : "", a->sq_depth ? "sq-depth" : "");
	if (rc)
		return rxfer_fail(rc, "the send queue's account: %s", strerror(-rc));
	conn->unordered = conn->dev->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	return rxfer_sq_reserve(&conn->sq, 1); /* the drain WR's, for good */
}

static int check_sges(const struct rxfer_conn *conn)
{
	const struct rxfer_dev_info *dev = &conn->dev->info;
	uint32_t most = device_sges(conn);
	bool read = most != dev->max_sge;

	if (conn->attr.sge_max <= most)
		return 0;
	return rxfer_fail(
		EMSGSIZE,
		"%u SGEs in a WR are more than %s can have (%s %u): use --max-sge %u or less",
		conn->attr.sge_max, dev->name, read ? "max_sge_rd" : "max_sge", most, most);
}

/* How many bytes a WR may carry is in no list of limits: to ask for it is the only way to know. */
static int check_inline(const struct rxfer_conn *conn)
{
	uint32_t asked = conn->attr.inline_max, least = 0, most = asked;
	struct rxfer_granted granted;

	if (asked == 0 || !rxfer_probe_qp(conn->dev, least_depth(conn), asked, &granted))
		return 0;
	if (rxfer_probe_qp(conn->dev, least_depth(conn), 0, &granted))
		return 0; /* it is something else: the real queues will tell */
	while (least + 1 < most) {
		uint32_t middle = least + (most - least) / 2;

		if (rxfer_probe_qp(conn->dev, least_depth(conn), middle, &granted))
			most = middle;
		else
			least = middle;
	}
	return rxfer_fail(EMSGSIZE, "--inline %u is more than %s grants: use --inline %u or less",
			  asked, conn->dev->info.name, least);
}

int rxfer_qp_create(struct rxfer_conn *conn)
{
	int rc = check_sges(conn);

	size_io(conn);
	if (!rc)
		rc = check_inline(conn);
	if (!rc)
		rc = size_queues(conn);
	if (rc)
		return rc;
	settle_need(conn);
	return account(conn);
}

/* One limit of the device on @qps queues of one kind for each of @ends ends; 0: it does not say. */
static int check_room(const struct rxfer_dev *dev, uint64_t qps, unsigned int ends, uint32_t limit,
		      const char *name, const char *what)
{
	char total[64] = "", remedy[96];

	if (!limit || qps * ends <= limit)
		return 0;
	if (ends > 1)
		snprintf(total, sizeof(total), ", %llu as both ends are on it",
			 (unsigned long long)qps * ends);
	if (limit >= ends)
		snprintf(remedy, sizeof(remedy), "use --qps %u or less", limit / ends);
	else
		snprintf(remedy, sizeof(remedy), "take another device for one end");
	return rxfer_fail(EINVAL, "--qps %llu is more than %s has (%s %u): each takes a %s%s; %s",
			  (unsigned long long)qps, dev->info.name, name, limit, what, total,
			  remedy);
}

int rxfer_dev_room(const struct rxfer_dev *dev, uint64_t qps, unsigned int ends)
{
	int rc = check_room(dev, qps, ends, dev->info.max_qp, "max_qp", "queue pair");

	return rc ? rc : check_room(dev, qps, ends, dev->info.max_cq, "max_cq", "completion queue");
}
