#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 60 s in a guest
#
# Strategy bounce over real software RDMA, both kinds of it: the right bytes, counted where they are copied.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench

LIMIT=100

# All of it on $DEVICE, at both ends where both have a strategy.
moves() {
	ulimit -l unlimited # siw counts what root pins, too
	loop 18 --op read,write,send --strategy bounce -s 512,4k,256k --frags 1,16 --depth 4 -n 12 --warmup 2 --verify --rnr-retry 0
	rows "$out_file" 18 'f("copied_bytes_per_io") == f("bytes") && f("sqe_per_io") == 1'
	loop 18 --mode rpc --op read,write,send --strategy bounce --peer-strategy bounce -s 512,4k,256k --frags 1,16 --depth 4 -n 12 \
		--warmup 2 --verify --rnr-retry 0
	rows "$out_file" 18 'f("copied_bytes_per_io") == f("bytes") && f("peer_copied_bytes_per_io") == (f("op") == "send" ? 0 : f("bytes")) && \
		f("peer_sqe_per_io") == (f("op") == "send" ? 1 : 2)'
	loop 4 --mode rpc --op read,write --strategy global,per-io --peer-strategy bounce -s 4k --frags 16 --depth 4 -n 12 --verify
}

@test "both modes, verified" {
	moves
}

# bats test_tags=siw
@test "over iWARP as well, where the buffers are sinks that the peer writes" {
	[[ -d /sys/class/infiniband/siw0 ]] || skip "there is no siw0: run this by scripts/rxe-vm --iwarp"
	DEVICE=siw0 moves
}

@test "--touch: verified, and told" {
	loop 4 --op write --touch warm,cold --strategy bounce,per-io -s 4k -n 20 --verify
	rows "$out_file" 4 'f("opts") ~ /touch=(warm|cold) /'
}
