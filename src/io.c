/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The I/Os of a connection: laid out when it is made, so that posting and completing allocate
 * nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "reg.h"

/* Cut pieces off one allocation, each aligned for anything. */
static void *carve(char **slab, size_t bytes)
{
	void *p = *slab;

	*slab += (bytes + 63) & ~(size_t)63;
	return p;
}

/* The same walk twice: with @slab at NULL it measures, else it hands out. Returns the bytes. */
static size_t lay_out(struct rxfer_conn *conn, char *slab)
{
	const struct rxfer_shape *s = &conn->attr.shape;
	uint32_t pieces = s->frags + (s->segments ? s->segments - 1 : 0);
	char *at = slab;
	struct rxfer_io *io = carve(&at, conn->nio * sizeof(*io));

	if (conn->bytes_max != UINT32_MAX) /* where the bytes of a WR end, a piece may be cut */
		pieces += conn->need;
	for (uint32_t i = 0; i < conn->nio; i++) {
		struct ibv_send_wr *wr = carve(&at, conn->need * sizeof(*wr));
		struct rxfer_seg *range = carve(&at, s->frags * sizeof(*range));
		struct ibv_sge *sge = carve(&at, pieces * sizeof(*sge));
		struct rxfer_sig_wr *sig = carve(&at, conn->need * sizeof(*sig));
		bool *said = carve(&at, conn->need * sizeof(*said));

		if (!slab)
			continue;
		io[i] = (struct rxfer_io){.index = i,
					  .first = range,
					  .range = range,
					  .sge = sge,
					  .wr = wr,
					  .sig = sig,
					  .said = said};
		io[i].next = &io[(i + 1) % conn->nio];
		wr->sg_list = sge;
	}
	if (slab)
		conn->io = conn->next_io = conn->oldest = io;
	return (size_t)(at - slab);
}

#define LEAST_MSG (1u << 20) /* max_msg_sz that devices have at least; all known ones have more */

/* The same sum, with the most WRs that lists become. */
uint64_t rxfer_conn_bytes(const struct rxfer_conn_attr *attr)
{
	const struct rxfer_shape *s = &attr->shape;
	uint64_t nio = attr->ios ? attr->ios : attr->slots;
	uint64_t wrs = 4ull + 2ull * s->exposed +
		       rxfer_cut_worst(s->aligned ? 1 : s->frags,
				       s->aligned ? s->frags : s->segments, 1, s->bytes, LEAST_MSG);
	uint64_t pieces = 2ull * s->frags + s->segments + wrs;
	uint64_t each = sizeof(struct ibv_send_wr) + sizeof(struct rxfer_sig_wr) + sizeof(bool);

	return nio *
	       (sizeof(struct rxfer_io) + wrs * each + pieces * sizeof(struct rxfer_seg) + 6 * 64);
}

/* Where SENDs of more pieces than SGEs are gathered by copy; declared memory like any other. */
static int make_staging(struct rxfer_conn *conn)
{
	const struct rxfer_shape *s = &conn->attr.shape;
	size_t each = (s->bytes + 4095) & ~(size_t)4095;
	int rc;

	if (s->op != RXFER_SEND || s->frags <= conn->sge_max || conn->reg->copies ||
	    conn->reg->gathers)
		return 0;
	if (conn->reg->sge_per_wr && !conn->attr.one_message)
		return 0;
	conn->staging = aligned_alloc(4096, each * conn->nio);
	if (!conn->staging)
		return rxfer_fail(ENOMEM, "out of memory for %s of %s",
				  rxfer_count(conn->nio, "message").s, rxfer_size(each).s);
	memset(conn->staging, 0, each * conn->nio);
	rc = rxfer_mem_add(conn->dev, conn->staging, each * conn->nio, RXFER_LOCAL,
			   &conn->staging_mem);
	for (uint32_t i = 0; i < conn->nio; i++)
		conn->io[i].staging.addr = (char *)conn->staging + i * each;
	return rc;
}

int rxfer_xfer_init(struct rxfer_conn *conn)
{
	size_t bytes;
	int rc;

	conn->nio = conn->attr.ios ? conn->attr.ios : conn->attr.slots;
	bytes = lay_out(conn, NULL);
	conn->slab = aligned_alloc(64, bytes);
	if (!conn->slab)
		return rxfer_fail(ENOMEM, "out of memory for %s of %s",
				  rxfer_count(conn->nio, "I/O").s,
				  rxfer_count(conn->need, "work request").s);
	memset(conn->slab, 0, bytes);
	lay_out(conn, conn->slab);
	conn->most = conn->nio;
	conn->qp = conn->id->qp;
	conn->post = conn->reg->post ? conn->reg->post : conn->dev->verbs->ops.post_send;
	conn->inline_max = conn->attr.inline_max;
	conn->prefetch = conn->attr.prefetch && conn->reg->prefetch;
	conn->keys_only = conn->reg->keys_only && !conn->attr.time_phases && !conn->prefetch;
	conn->by_wr = conn->reg->by_wr;
	conn->revokes = rxfer_cq_revokes(conn->dev);
	conn->key_reuse_min = UINT32_MAX;
	rxfer_ledger_init(&conn->ledger, &conn->dev->ledger, rxfer_now());
	rc = conn->reg->open(conn);
	if (rc)
		return rc;
	conn->reg_open = true;
	return make_staging(conn);
}

/* The QP is gone: unmap what was in flight, revoke what is exposed. Also called on a half-made
 * connection. */
void rxfer_xfer_destroy(struct rxfer_conn *conn)
{
	for (; conn->inflight; conn->inflight--) {
		if (conn->oldest->nrange)
			conn->reg->unmap(conn, conn->oldest);
		conn->oldest = conn->oldest->next;
	}
	rxfer_expose_destroy(conn);
	if (conn->reg_open)
		conn->reg->close(conn);
	rxfer_keys_destroy(conn);
	rxfer_mem_del(conn->staging_mem);
	free(conn->staging);
	free(conn->slab);
	conn->slab = NULL;
}
