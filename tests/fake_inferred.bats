#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# --signal inferred, on the test double: the account that takes a reply for the proof that entries are
# free, what it would have let go, and what becomes of that.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench

LIMIT=60
export FAKEHCA=''
rpc=(--mode rpc --depth 8 -s 512 -n 300 --warmup 0 --verify)

@test "revokes ask for a completion, requests only where the queue would stop" {
	loop 2 "${rpc[@]}" --strategy frwr --revoke async --signal inferred,half
	rows "$out_file" 2 'f("sqe_per_io") == 3'
	rows "$out_file" 2 'f("signal") == "half" ? f("cqe_per_io") < 0.6 : f("cqe_per_io") >= 1'
	loop 1 "${rpc[@]}" --strategy global --signal inferred
	rows "$out_file" 1 'f("cqe_per_io") < 0.3 && f("forced_signals") == f("cqe_per_io") * 300'
}

@test "with the default queue nobody waits for entries, and nothing would have been let go too early" {
	FAKEHCA=sq_delay=40 loop 2 "${rpc[@]}" --op read --strategy global,frwr --signal inferred --revoke auto
	rows "$out_file" 2 'f("overposts") == 0 && f("stalls_per_io") == 0'
	loop 1 "${rpc[@]}" --strategy frwr
	rows "$out_file" 1 'f("overposts") == ""'
}

# Completions are late, replies are not: the queue is full, and by the replies it is not.
@test "in a smaller queue: what waited for entries, and would not have; the queue itself never overflows" {
	FAKEHCA=sq_delay=40 loop 3 "${rpc[@]}" --strategy frwr --signal inferred --sq-depth 24,12,6
	rows "$out_file" 3 'f("overposts") > 0 && f("overposts") <= f("stalls_per_io") * 300 + 0.5'
	rows "$out_file" 3 'f("sq_peak") < f("sq_depth")'
	FAKEHCA=sq_delay=40 loop 1 "${rpc[@]}" --strategy global --signal inferred --sq-depth 6
	rows "$out_file" 1 'f("overposts") > 0'
	loop 1 "${rpc[@]}" --strategy global --signal inferred --sq-depth 6
	rows "$out_file" 1 'f("stalls_per_io") > 0'
}

# The double's queues have fewer entries than it says, so nothing holds the program back there.
@test "an overpost, let go, overflows the queue" {
	FAKEHCA=sq_delay=40,sq_real=12 bench loopback -d fake0 "${rpc[@]}" --strategy frwr --signal inferred --format csv
	[[ $status == 1 ]]
	rows "$out_file" 1 'f("status") == "failed" && f("reason") ~ /ibv_post_send on fake0 took .* WRs \(Cannot allocate memory\)/'
	FAKEHCA=sq_delay=40 loop 1 "${rpc[@]}" --strategy frwr --signal inferred --sq-depth 12
	rows "$out_file" 1 'f("overposts") > 0'
}
