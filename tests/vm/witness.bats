#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 75 s in a guest
#
# What the kernel counted of a run by two processes is what the program counted itself, exactly:
# posts, completions, WRs by their opcodes, memory registered, windows. How: witness.bash.

# What bench.bash sets and reads.
# shellcheck disable=SC2154,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench
load witness

all=(--signal all --peer-signal all)
four=(--frags 4 --frag-gap 64)

setup_file() {
	start_witness
	BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR serve_apart
}

teardown_file() {
	end_server
	stop_witness
}

@test "per-io: an MR for each I/O, at the server too" {
	agree --mode rpc --strategy per-io --op read -s 4k
	agree --mode rpc --strategy per-io --peer-strategy per-io --op write -s 4k --revoke async \
		"${all[@]}"
}

@test "per-io: an MR for each run of fragments, which gaps part" {
	agree --mode rpc --strategy per-io --op read -s 4k "${four[@]}" "${all[@]}"
	agree --mode rpc --strategy per-io --op write -s 4k "${four[@]}"
	agree --mode rpc --strategy per-io --op send -s 4k --frags 4 --frag-gap 0 "${all[@]}"
}

@test "global: no MR for an I/O" {
	agree --mode rpc --strategy global --op read -s 4k --frags 4 "${all[@]}"
	agree --mode rpc --strategy global --op write -s 4k --frags 4
}

@test "multi-wr: no MR for an I/O, a WR for each fragment" {
	agree --mode rpc --strategy multi-wr --op read -s 4k --frags 4
	agree --mode rpc --strategy multi-wr --op write -s 4k --frags 4 --qps 2 --post single \
		"${all[@]}"
}

@test "frwr: a window bound for each run of fragments, and revoked once, whoever does it" {
	agree --mode rpc --strategy frwr --op read -s 4k --revoke sync "${all[@]}"
	agree --mode rpc --strategy frwr --op write -s 4k "${four[@]}" --revoke remote
	agree --mode rpc --strategy frwr --op read -s 4k "${four[@]}" --revoke lazy
	agree --mode rpc --strategy frwr --op write -s 4k "${four[@]}" --revoke async \
		"${all[@]}"
}
