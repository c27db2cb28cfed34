#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 75 s in a guest
#
# Direct mode at full width over software RDMA: immediate data, both directions, inline, and the shape
# of buffers and posts. What each option means exactly is tested on the double (tests/fake_direct.bats);
# here it is that real verbs and a real kernel take it.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2016
bats_require_minimum_version 1.5.0
load bench

@test "write-imm: verified with every strategy, and credits never run out" {
	loop 12 --op write-imm --strategy global,multi-wr,per-io --frags 1,33 --qps 1,2 -s 5000 --depth 5 -n 50 --verify --rnr-retry 0
	loop 1 --op write-imm --strategy multi-wr --frags 4 -s 400 --depth 4 -n 400 --signal io --warmup 0 --rnr-retry 0
	rows "$out_file" 1 'f("sqe_per_io") == 4 && f("cqe_per_io") == 1 && f("peer_sqe_per_io") == 0.25'
}

@test "both directions, verified" {
	loop 24 --op all --strategy global,multi-wr,per-io --frags 1,5 -s 5000 --depth 5 -n 60 --bidir --verify --rnr-retry 0
	rows "$out_file" 24 'f("iterations") == 60 && f("peer_iterations") == 60 && f("peer_strategy") == f("strategy")'
	loop 4 --op all -s 64 --qps 3 -n 200 --bidir --verify --rnr-retry 0 --poll event
}

@test "both directions: counts of both ends" {
	loop 2 --op write,write-imm --strategy multi-wr --frags 4 -s 400 --depth 4 -n 400 --signal io --warmup 0 \
		--rnr-retry 0 --bidir
	rows "$out_file" 2 'f("sqe_per_io") == (f("op") == "write" ? 4 : 4.25) && f("peer_sqe_per_io") == f("sqe_per_io")'
	rows "$out_file" 2 'f("cqe_per_io") == (f("op") == "write" ? 1 : 1.25) && f("recv_cqe_per_io") == (f("op") == "write" ? 0 : 1.25)'
}

@test "both directions between two processes" {
	serve
	client --op all -s 3000 --frags 2 -n 100 --bidir --verify --rnr-retry 0 --format csv
	ended 0
	rows "$out_file" 4 'f("status") == "ok" && f("iterations") == 100 && f("peer_iterations") == 100'
	client --op send -s 64 -D 0.3s --bidir --rnr-retry 0 --format csv
	ended 0
	rows "$out_file" 1 'f("status") == "ok" && f("peer_iterations") > 0'
	server_ends
}

@test "inline, up to what the device grants; more is refused with that number" {
	local most
	loop 6 --op write,write-imm,send -s 32,300 --inline 128 -n 100 --verify --rnr-retry 0
	bench loopback -d "$DEVICE" --op write --inline 64k -n 5 --format csv
	complained 1 '--inline 65536 is more than '"$DEVICE"' grants: use --inline [1-9]'
	most=$(sed -n 's/.*use --inline \([0-9]*\) or less.*/\1/p' "$err_file")
	loop 1 --op write -s "$most" --inline "$most" -n 50 --verify
}

@test "buffers off page boundaries, few SGEs, a post for each WR" {
	loop 24 --op read,write,send --misalign 0,1 --max-sge 1,3 --post all -s 5001 --frags 5 -n 20 --verify --rnr-retry 0
	bench loopback -d "$DEVICE" --op write --max-sge 1024 -n 5 --format csv
	complained 1 '1024 SGEs in a WR are more than '"$DEVICE"' can have .max_sge [0-9]+.'
}

@test "an open loop keeps its rate, where the machine can; phases are timed" {
	loop 1 --op write -s 64 -D 1s --rate 50 --signal io --timing phases --warmup 0
	rows "$out_file" 1 'f("iterations") > 5 && f("iterations") <= 52 && f("map_us_per_io") > 0'
}

# bats test_tags=siw
@test "over iWARP: both directions; no immediate data" {
	[[ -d /sys/class/infiniband/siw0 ]] || skip "there is no siw0: run this by scripts/rxe-vm --iwarp"
	DEVICE=siw0 loop 6 --op read,write,send --frags 1,5 -s 5000 --depth 4 -n 40 --bidir --verify \
		--unsafe-global-sink
	bench loopback -d siw0 --op write-imm,write -n 5 --format csv
	ended 0
	rows "$out_file" 2 'f("status") == (f("op") == "write" ? "ok" : "skipped") && (f("op") == "write" || f("reason") ~ /immediate/)'
}
