#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Every signalling policy at every depth of I/Os and of queues, on the test double: the counts are
# what the rules say, and refused is what they forbid. tests/vm/matrix.bash has the rules.

# What bench.bash sets and reads.
# shellcheck disable=SC2154,SC2034,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench
load vm/matrix

@test "policies, I/Os in flight, queue pairs: each count as the rules say" {
	matrix --op write -n 1000
}

@test "the same in queues that are as small as they can be" {
	small_queues --op write -n 1000
}

@test "the same with completions that come late or together" {
	local delay
	for delay in sq_delay=50,read_lag=20 cq_order=3 auto_steps=1; do
		FAKEHCA=$delay small_queues --op read -n 400
	done
}

@test "refused are queues that cannot hold an I/O and the drain, or K entries, and no others" {
	refusals --op write
}
