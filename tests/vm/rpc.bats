#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 95 s in a guest
#
# RPC mode over real software RDMA, both kinds of it: whatever the shape of an I/O, it arrives byte by
# byte, in the WRs that the rules say. --rnr-retry 0: a SEND that meets no RECV fails at once, instead
# of hiding. All of it at greater length, on the test double, is in tests/fake_rpc.bats.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench

teardown() {
	end_server
}

# Where CPUs are short, siw (Linux 6.1) can end a queue pair by itself: IBV_WC_LOC_QP_OP_ERR and IBV_EVENT_QP_FATAL.
# The call that posts copies WRs of up to 32 bytes from its own address space, and notes in the queue pair that it
# does (in_syscall). When it hands what is left to siw's thread, and loses its CPU before it takes the note
# back, that thread copies from an address of a process that it is not. With inline data nothing is copied then.
inline=()
on_siw() {
	[[ -d /sys/class/infiniband/siw0 ]] || skip "there is no siw0: run this by scripts/rxe-vm --iwarp"
	DEVICE=siw0 HOST=10.78.0.1
	inline=(--inline 32)
}

# rpc N ARG...: runs that must leave N ok rows.
rpc() {
	local rows=$1
	shift
	loop "$rows" --mode rpc --rnr-retry 0 "${inline[@]}" "$@"
}

# asked N ARG...: the same by a client, of a server that is there.
asked() {
	local rows=$1
	shift
	client --mode rpc --rnr-retry 0 "${inline[@]}" --format csv "$@"
	ended 0
	rows "$out_file" "$rows" 'f("status") == "ok" && f("peer_host") == f("host")'
}

# that N CONDITION: of the latest runs.
that() {
	rows "$out_file" "$@"
}

# ---- what holds on both ----

wrs='f("op") == "send" || f("bytes") == 0 ? 0 : f("frags")'
as_rules='f("sqe_per_io") == 1 && f("posts_per_io") == 1 && f("recv_cqe_per_io") == 1'
as_rules+=" && f(\"peer_sqe_per_io\") == 1 + ($wrs)"
as_rules+=' && f("peer_posts_per_io") == (f("op") == "read" && f("bytes") ? 2 : 1)'
as_rules+=' && f("samples") == f("iterations") && f("lat_min_us") > 0 && f("lat_avg_us") >= f("lat_min_us")'

# every_shape RUN: by rpc, or asked.
every_shape() {
	"$1" 36 --op read,write,send --strategy global,multi-wr,per-io -s 512,4k --frags 1,16 --depth 4 -n 20 --warmup 2 --verify
	that 36 "$as_rules"' && f("iterations") == 20 && f("verify") == "yes"'
	"$1" 18 --op read,write,send --strategy global,multi-wr,per-io -s 256k --frags 1,16 --depth 4 -n 8 --warmup 0 --verify
	that 18 "$as_rules"' && f("iterations") == 8'
}

queues() {
	rpc 3 --op read --sq-depth 33,16,2 -s 4k -n 40 --verify
	that 3 'f("iterations") == 40 && f("sq_peak") < f("sq_depth") && (f("stalls_per_io") > 0) == (f("sq_depth") < 33)'
	bench loopback -d "$DEVICE" --mode rpc --sq-depth 1 -n 5 --format csv
	complained 1 'a send queue of 1 entry cannot hold one I/O'
	rpc 2 --op read,write --strategy multi-wr --frags 256 -s 16k --frag-gap 8 --peer-sq-depth 8 --depth 3 -n 8 \
		--warmup 0 --verify
	that 2 'f("iterations") == 8 && f("peer_sqe_per_io") == 257 && f("peer_posts_per_io") > 30 && f("peer_sq_peak") < 8 && \
		f("peer_stalls_per_io") > 0'
}

messages() {
	rpc 4 --op read,write -s 0,4k --inline-threshold 4k -n 20 --verify
	that 4 'f("peer_sqe_per_io") == 1 && f("exposed_bytes_peak") == 0 && f("samples") == 20'
	rpc 2 --op send -s 0,4k -n 20 --verify
	that 2 'f("peer_sqe_per_io") == 1 && f("exposed_bytes_peak") == 0 && f("samples") == 20'
	rpc 2 --op read,write -s 4097 --inline-threshold 4k -n 20 --verify
	that 2 'f("peer_sqe_per_io") == 2 && f("exposed_bytes_peak") > 0'
	rpc 4 --op read,write --defer recv,slot -s 4k -n 40 --warmup 0 --verify
	that 4 'near(f("cqe_per_io"), f("opts") ~ /defer=recv/ ? 1 : 5 / 40) && f("samples") == 40'
}

@test "every operation, strategy, number of fragments, size: verified, and each count as the rules say" {
	every_shape rpc
}

# bats test_tags=siw
@test "over iWARP: every operation, strategy, number of fragments, size" {
	on_siw
	rpc 18 --op read,write,send --strategy global,multi-wr,per-io -s 4k --frags 1,16 --depth 4 -n 20 --warmup 2 --verify
	that 18 "$as_rules"' && f("iterations") == 20 && f("transport") == "iWARP"'
	that 18 'f("peer_strategy") == (f("op") == "read" ? "bounce" : "global")'
	rpc 9 --op read,write,send --strategy global,multi-wr,per-io -s 256k --frags 16 --depth 4 -n 8 --warmup 0 --verify
	that 9 "$as_rules"
}

@test "queues: as deep as they need be, half, the least; a server of 8 entries for I/Os of 256 segments" {
	queues
}

# bats test_tags=siw
@test "over iWARP: where the server READs to: for the I/O alone, or as --unsafe-global-sink allows" {
	on_siw
	bench loopback -d siw0 --mode rpc --op read --peer-strategy all -s 4k --frags 16 -n 10 --verify --inline 32 --format csv
	ended 0
	rows "$out_file" 9 'f("peer_strategy") ~ /^(per-io|bounce)$/ ? f("status") == "ok" && f("peer_sqe_per_io") == 17 : \
		f("status") == "skipped" && f("reason") ~ (f("peer_strategy") == "frwr" ? "no key for local use" : f("peer_strategy") ~ /^(frwr-umr|odp)/ ? "mlx5|no on-demand paging|work requests more" : "--unsafe-global-sink")'
	rpc 2 --op read --peer-strategy global,multi-wr -s 4k --frags 16 -n 10 --verify --unsafe-global-sink
	that 2 'f("peer_sqe_per_io") == 17'
}

# bats test_tags=siw,slow
@test "over iWARP: queues" {
	on_siw
	queues
}

@test "size 0, inline thresholds, completions that are waited for" {
	messages
}

# bats test_tags=siw,slow
@test "over iWARP: size 0, inline thresholds, completions that are waited for" {
	on_siw
	messages
}

# bats test_tags=rxe
@test "--reply imm: verified, one WR less" {
	rpc 4 --op write --reply imm,send --strategy global,per-io --frags 3 -s 9000 -n 20 --verify
	that 4 'f("peer_sqe_per_io") == (f("opts") ~ /reply=imm/ ? 3 : 4) && f("peer_posts_per_io") == 1'
}

# bats test_tags=siw
@test "over iWARP: --reply imm is skipped, with the reason" {
	on_siw
	bench loopback -d "$DEVICE" --mode rpc --op write --reply imm,send -s 9000 -n 20 --format csv
	ended 0
	rows "$out_file" 2 'f("opts") ~ /reply=imm/ ? f("status") == "skipped" && f("reason") == "iWARP has no immediate data" \
		: f("status") == "ok"'
}

# ---- keys, policies, how to wait ----

@test "revoking: at once and later, counted and gone at the end" {
	local before
	before=$(resources)
	rpc 4 --op read,write --strategy per-io --revoke sync,async --frags 3 -s 9000 -n 40 --depth 4 --verify
	that 4 'f("revoke") ~ /^a?sync$/ && f("exposed_bytes_peak") <= 4 * 9000 && f("exposed_bytes_avg") > 0 && \
		f("exposed_bytes_avg") <= f("exposed_bytes_peak") && f("open_after_us_p50") > 0 && f("exposure_scope") == "pd"'
	rpc 1 --op write --strategy global --frags 3 -s 9000 -n 20 --depth 4
	that 1 'f("revoke") == "none" && f("exposed_bytes_avg") == f("exposed_bytes_peak") && f("exposed_bytes_peak") >= 4 * 9000'
	wait_until 5 same_resources "$before"
}

@test "policies at both ends, several queue pairs, verified" {
	rpc 3 --op read,write,send --signal every:3 --peer-signal half --strategy per-io --peer-strategy per-io --qps 3 \
		--frags 5 --frag-gap 7 -s 5000 -n 30 --depth 4 --verify
	that 3 'f("iterations") == 90 && f("peer_strategy") == "per-io"'
	rpc 3 --op read,write,send --signal io --peer-signal io -s 4k -n 20 --warmup 0
	that 3 'f("cqe_per_io") == 1 && f("peer_cqe_per_io") == (f("op") == "read" ? 2 : 1)'
}

@test "polling by yielding and by sleeping; for a time, and at a rate" {
	rpc 3 --op read,write,send --poll event -s 4k -n 40 --verify
	rpc 1 --op read --poll yield -s 4k -n 40 --verify
	rpc 1 --op read -s 64 -D 0.3s
	that 1 'f("seconds") >= 0.3 && f("seconds") < 5 && f("iterations") > 0 && f("partial") == "no"'
	rpc 1 --op write -s 64 -n 30 --rate 100 --warmup 0
	that 1 'f("seconds") >= 0.28 && f("samples") == 30'
}

# ---- two processes ----

both() {
	serve
	asked 6 --op read,write,send --strategy global,per-io -s 4k --frags 16 --depth 4 -n 20 --verify
	that 6 "$as_rules"
	asked 2 --op read,write --qps 2 --depth 4 --peer-sq-depth 8 --frags 40 -s 16k -n 10 --poll event --verify
	that 2 'f("iterations") == 20 && f("peer_sqe_per_io") == 41'
	server_ends
}

@test "server and client in two processes" {
	both
}

# bats test_tags=siw
@test "over iWARP: server and client in two processes" {
	on_siw
	both
}

# bats test_tags=slow
@test "two processes: every operation, strategy, number of fragments, size" {
	serve
	every_shape asked
	server_ends
}

# See wrong_bit.c. In a read it is the server that finds it, in a write the client.
# bats test_tags=rxe
@test "a wrong bit is found by --verify, at whichever end, and the run fails" {
	local lib=$BATS_TEST_TMPDIR/wrong_bit.so op
	"${CC:-cc}" -shared -fPIC -O1 -o "$lib" "$BATS_TEST_DIRNAME/wrong_bit.c" -ldl
	for op in read write; do
		wrong_bit 4321 --op $op
		complained 1 'verification failed: QP 0, I/O [0-9]+, byte 4321 of 5000 is wrong'
		rows "$out_file" 1 'f("status") == "failed" && f("reason") ~ /verification failed/'
		if [[ $op == write ]]; then
			[[ $err != *"at the server"* ]] || fail "at the server"
		else
			[[ $err == *"is wrong at the server"* ]] || fail "at the client"
		fi
	done
}

wrong_bit() {
	local at=$1
	shift
	with "env LD_PRELOAD=$lib WRONG_BIT_AT=$at" loopback -d "$DEVICE" --mode rpc --format csv -s 5000 \
		--strategy per-io --revoke sync --warmup 0 -n 20 --verify "$@"
}
