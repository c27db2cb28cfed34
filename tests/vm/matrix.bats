#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 150 s in a guest
#
# Of tests/fake_matrix.bats what a real device, with timing of its own, can add: the same counts.

# What bench.bash sets and reads.
# shellcheck disable=SC2154,SC2034,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench
load matrix

@test "policies, I/Os in flight, queue pairs: each count as the rules say" {
	by_rules 60 --op write --signal all,io,every:1,every:7,every:64,half --depth 1,2,3,12,128 --qps 1,3 -n 200
}

@test "the same in queues that are as small as they can be" {
	by_rules 6 --op read --signal all,every:2,half --depth 1,12 --sq-depth 2 -n 100
	by_rules 4 --op write --signal half --depth 12,128 --qps 1,3 --sq-depth 9 -n 200
	by_rules 4 --op read --signal every:7 --depth 12,128 --qps 1,3 --sq-depth 8 -n 200
	by_rules 2 --op write --signal every:64 --depth 12,128 --sq-depth 65 -n 200
}

@test "refused are queues that cannot hold an I/O and the drain, or K entries, and no others" {
	refused_exactly half 1 1
	refused_exactly half 2 1
	refused_exactly every:7 6 1
	refused_exactly every:7 7 1
	refused_exactly io 3 3 --strategy multi-wr --frags 3
	refused_exactly every:4 4 3 --strategy multi-wr --frags 3
}
