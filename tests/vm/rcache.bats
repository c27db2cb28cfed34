#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 12 s in a guest
#
# A cache of registrations over real software RDMA: the hits are those that the sizes of working set
# and cache allow, and the bytes are right.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench
load rcache

LIMIT=120

@test "a working set below the limits: all are hits, and verified" {
	below_the_limits 60 --verify
}

# bats test_tags=slow
@test "a working set far above, in order: none is a hit, and verified" {
	far_above_in_order 200 --verify
}

# bats test_tags=slow
@test "far above, at random: each as often as its piece can be in the cache" {
	far_above_at_random 3000
}

# bats test_tags=slow
@test "at the server, too; and nothing is left behind" {
	local before
	before=$(resources)
	loop 4 --mode rpc --op read,write --strategy rcache --peer-strategy rcache --frags 1,16 -s 4k --depth 4 -n 100 --verify
	of_the_last 'f("hit_pct") == 100 && f("peer_hit_pct") > 80'
	wait_until 5 same_resources "$before"
}

# bats test_tags=siw
@test "over iWARP: verified" {
	[[ -d /sys/class/infiniband/siw0 ]] || skip "there is no siw0: run this by scripts/rxe-vm --iwarp"
	DEVICE=siw0
	loop 6 --mode rpc,direct --op read,write,send --strategy rcache --unsafe-global-sink --frags 16 -s 4k --depth 4 --working-set 1m \
		--access zipf -n 60 --verify
}
