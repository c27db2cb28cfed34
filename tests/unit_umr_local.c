/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The strategy frwr-umr where an end moves data itself, on the test double: its own fragments under
 * one key, which ends in front of the I/O's next one; and the queue pairs that it takes for that.
 */
#include <errno.h>
#include <string.h>
#include "fakehca/engine.h"
#include "../src/reg.h"

#define FRAGS  4
#define EACH   90
#define STRIDE 200
#define ALL    (FRAGS * EACH)
#define SLOTS  2

static uint8_t mine[SLOTS * FRAGS * STRIDE], theirs[4096];

/* struct pair - a client by frwr-umr; @to: all of the server's memory. */
struct pair {
	struct engine e;
	struct rxfer_frag frag[SLOTS][FRAGS];
	struct rxfer_seg to;
	struct rxfer_mem *mine, *theirs;
};

static struct fake_config mlx5(void)
{
	struct fake_config config = engine_config();

	config.device[0].mlx5 = true;
	config.auto_steps = 8;
	return config;
}

/* All of it but the connection. */
static void prepare(struct pair *p, const struct fake_config *config, enum rxfer_opcode op)
{
	struct rxfer_shape shape = {op, ALL, FRAGS, op == RXFER_SEND ? 0 : 1};

	*p = (struct pair){0};
	engine_open(&p->e, config, "frwr-umr");
	fake_live()->auto_steps = 0;
	assert_int_equal(rxfer_mem_add(p->e.cdev, mine, sizeof(mine), RXFER_LOCAL, &p->mine), 0);
	assert_int_equal(rxfer_mem_add(p->e.sdev, theirs, sizeof(theirs),
				       RXFER_PEER_READ | RXFER_PEER_WRITE | RXFER_FIXED,
				       &p->theirs),
			 0);
	for (uint32_t s = 0; s < SLOTS; s++)
		for (uint32_t i = 0; i < FRAGS; i++)
			p->frag[s][i] =
				(struct rxfer_frag){mine + (size_t)(s * FRAGS + i) * STRIDE, EACH};
	p->to = (struct rxfer_seg){(uintptr_t)theirs, ALL, rxfer_mem_rkey(p->theirs)};
	engine_attr(&p->e, &shape, SLOTS, 0, "all");
}

static void open_op(struct pair *p, enum rxfer_opcode op)
{
	const struct fake_config config = mlx5();

	prepare(p, &config, op);
	assert_int_equal(engine_connect_both(&p->e), 0);
}

static void fill(uint8_t *at, size_t n, uint32_t number)
{
	for (size_t i = 0; i < n; i++)
		at[i] = (uint8_t)(number * 31 + i * 7 + 1);
}

static void gathered_equal(const struct pair *p, uint32_t slot, uint32_t n, const uint8_t *row)
{
	for (uint32_t i = 0; i < n; i++)
		assert_memory_equal(p->frag[slot][i].addr, row + (size_t)i * EACH, EACH);
}

static void done_all(struct pair *p, uint32_t n)
{
	struct rxfer_done done;

	fake_run();
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(rxfer_poll(p->e.client, &done, 1), 1);
	assert_int_equal(rxfer_poll(p->e.client, &done, 1), 0);
}

static void counted(const struct pair *p, enum rxfer_opcode op, uint64_t posts, uint64_t data,
		    uint64_t umrs, uint64_t invs)
{
	const struct rxfer_counts *c = rxfer_conn_counts(p->e.client);

	assert_int_equal(c->posts, posts);
	assert_int_equal(c->sqe_op[op], data);
	assert_int_equal(c->sqe_op[RXFER_BIND], umrs);
	assert_int_equal(c->sqe_op[RXFER_REVOKE], invs);
	assert_int_equal(c->sqe, data + umrs + invs);
}

/* ---- Moving data ---- */

static void read_into_fragments(void **state)
{
	struct pair p;

	(void)state;
	open_op(&p, RXFER_READ);
	for (uint32_t i = 0; i < 7; i++) {
		memset(mine, 0xee, sizeof(mine));
		fill(theirs, ALL, i);
		assert_int_equal(
			rxfer_post_read(p.e.client, p.frag[i % SLOTS], FRAGS, &p.to, 1, i, 0), 0);
		done_all(&p, 1);
		gathered_equal(&p, i % SLOTS, FRAGS, theirs);
		assert_int_equal(mine[EACH], 0xee);
		counted(&p, RXFER_READ, i + 1, i + 1, i + 1, i < SLOTS ? 0 : i + 1 - SLOTS);
	}
	assert_true(engine_idle(p.e.client));
	engine_close(&p.e);
}

static void write_out_of_fragments(void **state)
{
	uint8_t row[ALL];
	struct pair p;

	(void)state;
	open_op(&p, RXFER_WRITE);
	for (uint32_t i = 0; i < 7; i++) {
		fill(mine, sizeof(mine), i);
		memset(theirs, 0, sizeof(theirs));
		assert_int_equal(rxfer_post_write(p.e.client, p.frag[0], FRAGS, &p.to, 1, i, 0), 0);
		done_all(&p, 1);
		memcpy(row, theirs, ALL);
		gathered_equal(&p, 0, FRAGS, row);
		assert_int_equal(theirs[ALL], 0);
	}
	engine_close(&p.e);
}

/* A message of more fragments than SGEs is gathered by the key, not by copy. */
static void send_fragments(void **state)
{
	struct fake_config config = mlx5();
	struct rxfer_done done;
	struct pair p;

	(void)state;
	config.device[0].max_sge = config.device[0].max_sge_rd = 2;
	prepare(&p, &config, RXFER_SEND);
	assert_int_equal(engine_connect_both(&p.e), 0);
	fill(mine, sizeof(mine), 5);
	assert_int_equal(rxfer_post_recv(p.e.server, theirs, ALL, 9), 0);
	assert_int_equal(rxfer_post_send(p.e.client, p.frag[0], FRAGS, 1, 0), 0);
	done_all(&p, 1);
	assert_int_equal(rxfer_poll(p.e.server, &done, 1), 1);
	assert_int_equal(done.bytes, ALL);
	gathered_equal(&p, 0, FRAGS, theirs);
	assert_int_equal(rxfer_conn_counts(p.e.client)->copied_bytes, 0);
	counted(&p, RXFER_SEND, 1, 1, 1, 0);
	engine_close(&p.e);
}

static void write_with_immediate(void **state)
{
	struct rxfer_done done;
	struct pair p;

	(void)state;
	open_op(&p, RXFER_WRITE_IMM);
	fill(mine, sizeof(mine), 6);
	assert_int_equal(rxfer_post_recv(p.e.server, theirs, 1, 9), 0);
	assert_int_equal(rxfer_post_write_imm(p.e.client, p.frag[0], FRAGS, &p.to, 1, 77, 1, 0), 0);
	done_all(&p, 1);
	assert_int_equal(rxfer_poll(p.e.server, &done, 1), 1);
	assert_true(done.with_imm);
	assert_int_equal(done.imm, 77);
	gathered_equal(&p, 0, FRAGS, theirs);
	engine_close(&p.e);
}

/* Small data would be copied into the WR, but for the key: its addresses are no memory's. What is
 * fixed goes so, and takes no key. */
static void nothing_gathered_is_inline(void **state)
{
	const struct fake_config config = mlx5();
	struct rxfer_frag fixed;
	struct rxfer_mem *mem;
	struct rxfer_op op;
	struct pair p;

	(void)state;
	prepare(&p, &config, RXFER_WRITE);
	p.e.client_attr.inline_max = 200;
	assert_int_equal(rxfer_mem_add(p.e.cdev, theirs + 2000, 100, RXFER_FIXED, &mem), 0);
	assert_int_equal(engine_connect_both(&p.e), 0);
	fill(mine, sizeof(mine), 7);
	assert_int_equal(rxfer_post_write(p.e.client, p.frag[0], 2, &p.to, 1, 1, 0), 0);
	assert_false(p.e.client->oldest->wr[1].send_flags & IBV_SEND_INLINE);
	done_all(&p, 1);
	gathered_equal(&p, 0, 2, theirs);
	fixed = (struct rxfer_frag){theirs + 2000, 100};
	fill(fixed.addr, 100, 8);
	op = (struct rxfer_op){.op = RXFER_WRITE,
			       .local = &fixed,
			       .nlocal = 1,
			       .fixed = 1,
			       .remote = &p.to,
			       .nremote = 1};
	assert_int_equal(rxfer_post(p.e.client, &op), 0);
	assert_true(p.e.client->oldest->wr[0].send_flags & IBV_SEND_INLINE);
	memset(fixed.addr, 0, 100); /* it has been taken along */
	done_all(&p, 1);
	fill(theirs + 1000, 100, 8);
	assert_memory_equal(theirs, theirs + 1000, 100);
	counted(&p, RXFER_WRITE, 2, 2, 1, 0);
	engine_close(&p.e);
}

/* Fragments in a row are one piece, in whatever region they lie: two are never joined. */
static void what_adjoins_is_one_piece(void **state)
{
	struct rxfer_frag row[FRAGS];
	struct pair p;

	(void)state;
	open_op(&p, RXFER_WRITE);
	fill(mine, sizeof(mine), 9);
	for (uint32_t i = 0; i < FRAGS; i++)
		row[i] = (struct rxfer_frag){mine + (size_t)(i + i / 3) * EACH, EACH};
	assert_int_equal(rxfer_post_write(p.e.client, row, FRAGS, &p.to, 1, 1, 0), 0);
	assert_int_equal(p.e.client->oldest->wr[0].num_sge, 2);
	assert_int_equal(p.e.client->oldest->wr[0].sg_list[0].length, 3 * EACH);
	done_all(&p, 1);
	assert_memory_equal(theirs, mine, 3 * EACH);
	assert_memory_equal(theirs + 3 * EACH, mine + 4 * EACH, EACH);
	engine_close(&p.e);
}

/* Several I/Os of one post, each with its own key in front. */
static void in_one_chain(void **state)
{
	struct pair p;

	(void)state;
	open_op(&p, RXFER_WRITE);
	for (uint32_t round = 0; round < 3; round++) {
		fill(mine, sizeof(mine), round);
		p.to.addr = (uintptr_t)theirs;
		assert_int_equal(
			rxfer_post_write(p.e.client, p.frag[0], FRAGS, &p.to, 1, 1, RXFER_MORE), 0);
		p.to.addr += ALL;
		assert_int_equal(rxfer_post_write(p.e.client, p.frag[1], FRAGS, &p.to, 1, 2, 0), 0);
		done_all(&p, 2);
		gathered_equal(&p, 0, FRAGS, theirs);
		gathered_equal(&p, 1, FRAGS, theirs + ALL);
		counted(&p, RXFER_WRITE, round + 1, 2 * (round + 1), 2 * (round + 1), 2 * round);
	}
	engine_close(&p.e);
}

static void a_call_for_each(void **state)
{
	const struct fake_config config = mlx5();
	struct pair p;

	(void)state;
	prepare(&p, &config, RXFER_READ);
	p.e.client_attr.post_single = true;
	assert_int_equal(engine_connect_both(&p.e), 0);
	for (uint32_t i = 0; i < 2 * SLOTS; i++) {
		fill(theirs, ALL, i);
		assert_int_equal(rxfer_post_read(p.e.client, p.frag[0], FRAGS, &p.to, 1, i, 0), 0);
		done_all(&p, 1);
		gathered_equal(&p, 0, FRAGS, theirs);
	}
	counted(&p, RXFER_READ, 2 * 2 * SLOTS + SLOTS, 2 * SLOTS, 2 * SLOTS, SLOTS);
	engine_close(&p.e);
}

/* What was mapped and came to nothing leaves no trace: the next one begins as if it had not been.
 */
static void mapped_in_vain(void **state)
{
	struct rxfer_seg small;
	struct pair p;

	(void)state;
	open_op(&p, RXFER_WRITE);
	small = p.to;
	p.frag[0][1].len = 0;
	p.frag[0][1].addr = theirs;
	assert_int_equal(rxfer_post_write(p.e.client, p.frag[0], FRAGS, &small, 1, 1, 0), -EFAULT);
	engine_said("is not registered");
	p.e.client->attr.shape.frags++; /* as if it had been made for more */
	assert_int_equal(rxfer_post_write(p.e.client, p.frag[0], FRAGS + 1, &small, 1, 1, 0),
			 -EINVAL);
	engine_said("an I/O of 5 fragments to be mapped on a connection made for fewer");
	p.e.client->attr.shape.frags--;
	fill(mine, sizeof(mine), 3);
	for (uint32_t i = 0; i < 2 * SLOTS; i++) {
		assert_int_equal(rxfer_post_write(p.e.client, p.frag[1], FRAGS, &p.to, 1, i, 0), 0);
		done_all(&p, 1);
	}
	gathered_equal(&p, 1, FRAGS, theirs);
	assert_true(engine_idle(p.e.client));
	engine_close(&p.e);
}

/* ---- Queues ---- */

static void what_an_io_takes(void **state)
{
	static const struct {
		enum rxfer_opcode op;
		uint32_t frags, fixed, exposed, max_sge, need, sges;
		enum rxfer_revoke revoke;
	} cases[] = {
		{RXFER_READ, 16, 0, 0, 2, 3, 1, RXFER_REVOKE_NONE},
		{RXFER_WRITE, 1, 0, 0, 30, 3, 1, RXFER_REVOKE_NONE},
		{RXFER_SEND, 16, 0, 0, 2, 3, 1, RXFER_REVOKE_NONE},
		{RXFER_SEND, 1, 1, 0, 30, 1, 1, RXFER_REVOKE_NONE},
		{RXFER_SEND, 9, 1, 0, 2, 3, 2, RXFER_REVOKE_NONE},
		{RXFER_SEND, 9, 1, 5, 30, 5, 2, RXFER_REVOKE_SYNC},
		{RXFER_SEND, 9, 1, 5, 30, 5, 2, RXFER_REVOKE_LAZY},
		{RXFER_SEND, 9, 1, 5, 30, 4, 2, RXFER_REVOKE_REMOTE},
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fake_config config = mlx5();
		struct rxfer_conn_info info;
		struct pair p;

		config.device[0].max_sge = config.device[0].max_sge_rd = cases[i].max_sge;
		prepare(&p, &config, cases[i].op);
		p.e.client_attr.shape.frags = cases[i].frags;
		p.e.client_attr.shape.fixed = cases[i].fixed;
		p.e.client_attr.shape.exposed = cases[i].exposed;
		p.e.client_attr.revoke = cases[i].revoke;
		assert_int_equal(engine_connect_both(&p.e), 0);
		rxfer_conn_info(p.e.client, &info);
		assert_int_equal(info.need, cases[i].need);
		assert_int_equal(info.sge_per_wr, cases[i].sges);
		assert_int_equal(info.sq_wanted, 2 * cases[i].need * SLOTS + 1);
		engine_close(&p.e);
	}
}

static void refused(struct pair *p, int err, const char *words)
{
	assert_int_equal(engine_connect(&p->e), err);
	engine_said(words);
	engine_close(&p->e);
}

/* A list lies in its WR: 16 bytes a piece, and the double gives 256 of inline data at most. */
static void more_than_a_wr_has_room_for(void **state)
{
	const struct fake_config config = mlx5();
	struct pair p;

	(void)state;
	for (uint32_t frags = 16; frags <= 17; frags++) {
		prepare(&p, &config, RXFER_READ);
		p.e.client_attr.shape.frags = frags;
		if (frags == 16) {
			assert_int_equal(engine_connect_both(&p.e), 0);
			engine_close(&p.e);
		} else {
			refused(&p, -EMSGSIZE,
				"a key to 17 pieces of memory is more than a work request of fake0 has room for, 16: use fewer --frags");
		}
	}
	prepare(&p, &config, RXFER_READ);
	p.e.client_attr.shape = (struct rxfer_shape){RXFER_SEND, 8, 1, .exposed = 40, .fixed = 1};
	refused(&p, -EMSGSIZE, "a key to 40 pieces");
}

/* Another limit is told as such. */
static void too_deep(void **state)
{
	struct fake_config config = mlx5();
	struct pair p;

	(void)state;
	config.device[0].sq_room = 30;
	prepare(&p, &config, RXFER_READ);
	p.e.client_attr.sq_depth = 31;
	refused(&p, -ENOMEM, "creating a queue pair on fake0 with 31 send entries");
	prepare(&p, &config, RXFER_READ);
	p.e.client_attr.slots = 100;
	assert_int_equal(engine_connect_both(&p.e), 0);
	assert_int_equal(p.e.client->sq.depth, 30);
	engine_close(&p.e);
}

static void keys_that_cannot_be_made(void **state)
{
	const struct fake_config config = mlx5();
	struct pair p;

	(void)state;
	prepare(&p, &config, RXFER_READ);
	fake_live()->fail_create_mkey = (struct fake_fault){2, ENOMEM};
	refused(&p, -ENOMEM, "mlx5dv_create_mkey on fake0, for 4 pieces");
}

static void not_in_rounds(void **state)
{
	const struct fake_config config = mlx5();
	struct pair p;

	(void)state;
	prepare(&p, &config, RXFER_READ);
	p.e.client_attr.rounds = true;
	refused(&p, -EOPNOTSUPP, "frwr-umr takes two work requests more for each post of data");
}

/* Its steps are ours, so a service level is had, too; and a step that fails is told. */
static void the_steps_of_its_queue_pair(void **state)
{
	struct fake_config config = mlx5();
	struct rxfer_conn_info info;
	struct pair p;

	(void)state;
	config.device[0].infiniband = true;
	for (uint8_t sl = 0; sl < 6; sl += 5) {
		prepare(&p, &config, RXFER_READ);
		p.e.client_attr.sl = p.e.server_attr.sl = sl;
		assert_int_equal(engine_connect_both(&p.e), 0);
		rxfer_conn_info(p.e.client, &info);
		assert_int_equal(info.sl, sl);
		assert_int_equal(info.rd_atomic, 16);
		engine_close(&p.e);
	}
	prepare(&p, &config, RXFER_READ);
	fake_live()->fail_modify_qp = (struct fake_fault){1, EINVAL};
	assert_int_equal(engine_connect_both(&p.e), -EINVAL);
	engine_said("fake0 refuses to make the queue pair ready (INIT): Invalid argument");
	engine_close(&p.e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_into_fragments),
		cmocka_unit_test(write_out_of_fragments),
		cmocka_unit_test(send_fragments),
		cmocka_unit_test(write_with_immediate),
		cmocka_unit_test(nothing_gathered_is_inline),
		cmocka_unit_test(what_adjoins_is_one_piece),
		cmocka_unit_test(in_one_chain),
		cmocka_unit_test(a_call_for_each),
		cmocka_unit_test(mapped_in_vain),
		cmocka_unit_test(what_an_io_takes),
		cmocka_unit_test(more_than_a_wr_has_room_for),
		cmocka_unit_test(too_deep),
		cmocka_unit_test(keys_that_cannot_be_made),
		cmocka_unit_test(not_in_rounds),
		cmocka_unit_test(the_steps_of_its_queue_pair),
	};

	return cmocka_run_group_tests_name("unit_umr_local", tests, NULL, NULL);
}
