#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 65 s in a guest
#
# Memory windows over real software RDMA: keys granted and revoked by work requests, each byte
# verified, in the SQEs, posts and completions that the rules say. rxe tells of a revoke by the peer
# with another flag than user space has for it, and its kernel does not survive a second revoke of
# one key: that these runs end at all is half of the test. What windows open, and to whom, is in
# fence.bats; what the kernel itself counts, in witness.bats.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench

teardown() {
	end_server
}

# frwr N ARG...: runs that must leave N ok rows.
frwr() {
	local rows=$1
	shift
	loop "$rows" --mode rpc --rnr-retry 0 --strategy frwr "$@"
}

# K runs: K BINDs in front of the request. Revoked by K LOCAL_INVs in a post of their own; by the reply
# and K - 1 of them; or in front of the slot's next request, the first of which has none.
k='f("frags")'
rules="f(\"sqe_bind_per_io\") == $k && f(\"sqe_send_per_io\") == 1"
rules+=" && f(\"sqe_per_io\") == f(\"sqe_bind_per_io\") + f(\"sqe_inv_per_io\") + 1"
rules+=" && f(\"sqe_inv_per_io\") == (f(\"revoke\") == \"remote\" ? $k - 1 : $k)"
rules+=" && f(\"posts_per_io\") == (f(\"revoke\") == \"lazy\" || f(\"revoke\") == \"remote\" && $k == 1 ? 1 : 2)"
rules+=' && f("engine") == "mw" && f("exposure_scope") == "qp" && f("recv_cqe_per_io") == 1'

# An I/O that is complete when its keys are dead waits for a completion of its own, unless the reply
# was the proof; else nobody does, and half of the slots in the silent tail are enough.
cqes='f("revoke") == "sync" || f("revoke") == "remote" && f("frags") > 1 ? f("cqe_per_io") >= 1 : f("cqe_per_io") < 1'
open='f("revoke") == "remote" && f("frags") == 1 ? f("open_after_us_p50") == 0 : f("open_after_us_p50") > 0'

@test "each revoke mode, one run and sixteen: SQEs, posts and completions as the rules say, verified" {
	local before
	before=$(resources)
	frwr 16 --op read,write --revoke sync,async,remote,lazy -s 4k --frags 1,16 --depth 8 -n 60 --warmup 8 --verify
	rows "$out_file" 16 "$rules"
	rows "$out_file" 16 "$cqes"
	rows "$out_file" 16 "$open"
	frwr 16 --op read,write --revoke sync,async,remote,lazy -s 256k --frags 1,16 --depth 4 -n 20 --warmup 4 --verify
	rows "$out_file" 16 "$rules"
	wait_until 5 same_resources "$before"
}

@test "fragments that adjoin are one window" {
	frwr 4 --op write --revoke sync,async,remote,lazy -s 64k --frags 16 --frag-gap 0 --qps 2 --depth 4 -n 20 --warmup 4 --verify
	rows "$out_file" 4 'f("sqe_bind_per_io") == 1 && f("sqe_per_io") == (f("revoke") == "remote" ? 2 : 3)'
}

@test "what lies open: what is in flight, with lazy the I/O before as well" {
	frwr 4 --op write --revoke sync,async,remote,lazy -s 4k --depth 4 -n 200 --warmup 8
	rows "$out_file" 4 'f("exposed_bytes_peak") == 4096 * 4 * (f("revoke") == "lazy" ? 2 : 1)'
	rows "$out_file" 4 'f("exposed_bytes_avg") > 0 && f("exposed_bytes_avg") <= f("exposed_bytes_peak")'
}

# 8 windows have 2048 keys: each comes back twice.
# bats test_tags=slow
@test "5000 I/Os through 8 windows, each key used again, verified; and with windows made anew none" {
	frwr 2 --op write --revoke remote,sync -s 64 --depth 8 -n 5000 --verify --warmup 0
	rows "$out_file" 2 'f("iterations") == 5000 && f("key_reuse_min") > 1024 && f("key_reuse_min") <= 2048'
	frwr 2 --op write --revoke remote,lazy -s 64 --depth 8 -n 2500 --verify --mw-renew
	rows "$out_file" 2 'f("key_reuse_min") == ""'
}

@test "server and client in two processes, and the queue as small as it can be" {
	serve
	client --mode rpc --rnr-retry 0 --op read,write --strategy frwr --revoke sync,async,remote,lazy -s 4k --frags 3 \
		--depth 5 -n 60 --verify --format csv
	ended 0
	rows "$out_file" 8 'f("status") == "ok"'
	rows "$out_file" 8 'f("peer_sqe_send_per_io") == 1'
	client --mode rpc --rnr-retry 0 --op write --strategy frwr --revoke sync,lazy -s 4k --frags 3 --sq-depth 8 --depth 5 \
		-n 60 --verify --format csv
	ended 0
	rows "$out_file" 2 'f("status") == "ok" && f("stalls_per_io") > 0'
	client --mode rpc --op write --strategy frwr --revoke sync -s 4k --frags 3 --sq-depth 7 -n 5 --format csv
	complained 1 'a send queue of 7 entries cannot hold one I/O'
	server_ends
}

@test "where a device has no windows, or an end moves data itself: skipped, with the reason" {
	bench loopback -d "$DEVICE" --mode direct --strategy frwr -n 5 --format csv
	[[ $status == 1 ]]
	rows "$out_file" 1 'f("status") == "skipped" && f("reason") ~ /no key for local use/'
	[[ -d /sys/class/infiniband/siw0 ]] || skip "there is no siw0: run this by scripts/rxe-vm --iwarp"
	bench loopback -d siw0 --mode rpc --strategy frwr -n 5 --format csv
	[[ $status == 1 ]]
	rows "$out_file" 1 'f("status") == "skipped" && f("reason") ~ /memory windows of type 2; and siw0 gives none/'
}
