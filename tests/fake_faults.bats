#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Faults that software RDMA cannot be made to have, on the test double, both ends in one process. The
# double ends the program with status 70 where anything was violated or left behind. Each case plays
# a sweep whose second run meets the fault: what was measured before stays, the run after it is served.
# What each case is called is what users read in the manual page (scripts/fault-table): what happens |
# what the client shows | what becomes of the server.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench

LIMIT=60
export FAKEHCA='' FAKEHCA_STATS=$BATS_TEST_TMPDIR/stats

# How often the double counted NAME.
counted() {
	sed -n "s/^$1=//p" "$FAKEHCA_STATS"
}

# sweep ARG...: three runs.
sweep() {
	bench loopback -d fake0 --format csv -s 64,128,256 -n 200 "$@"
}

# calls NAME ARG...: how often the double counts NAME in the first of these runs.
calls() {
	local name=$1
	shift
	FAKEHCA='' loop 1 -s 64 -n 200 "$@" || return 1
	counted "$name"
}

# second_failed PATTERN...: that run alone failed, in these words; it has no figures.
second_failed() {
	complained 1 'run 2 of 3' "$@" || return 1
	rows "$out_file" 3 'f("bytes") == 128 ? f("status") == "failed" && f("reason") != "" && f("iterations") == "" : f("status") == "ok" && f("iterations") == 200 && f("partial") == "no"'
}

# In the middle: all of the first run, and half as much again.
mid_second() {
	local n
	n=$(calls "$@") || return 1
	echo $((n + n / 2 + 5))
}

# The peer's first note, which the device executes too, comes after 16 messages: before it all are ours.
@test "a SEND finds no RECV (RNR) | one line that says so, and a failed row | serves the next run" {
	local how nth
	for how in '--op send' '--op write-imm --rnr-retry 0'; do
		# shellcheck disable=SC2086 # words
		nth=$(($(calls sqes --warmup 0 $how) + 12))
		# shellcheck disable=SC2086
		FAKEHCA=fail_wr=$nth,fail_wr_with=13 sweep --warmup 0 $how
		second_failed 'RNR retry counter exceeded' 'the peer had no RECV posted'
	done
}

@test "the peer no longer answers | one line that says so, and a failed row | serves the next run" {
	local how nth
	for how in '--op read' '--op write --strategy per-io' '--op send --bidir'; do
		# shellcheck disable=SC2086 # words
		nth=$(mid_second sqes $how)
		# shellcheck disable=SC2086
		FAKEHCA=fail_wr=$nth,fail_wr_with=12 sweep $how
		second_failed 'transport retry counter exceeded' 'the peer no longer answers'
	done
}

@test "a work request fails | one line with the device's status and what it means, and a failed row | serves the next run" {
	local strategy nth
	for strategy in global multi-wr per-io; do
		nth=$(mid_second sqes --op write --frags 2 --strategy $strategy)
		FAKEHCA=fail_wr=$nth,fail_wr_with=10 sweep --op write --frags 2 --strategy $strategy
		second_failed 'RDMA WRITE failed: IBV_WC_REM_ACCESS_ERR .remote access error' 'key or bounds'
		FAKEHCA=fail_wr=$nth,fail_wr_with=4 sweep --op write --frags 2 --strategy $strategy
		second_failed 'RDMA WRITE failed: IBV_WC_LOC_PROT_ERR .local protection error' 'our own memory is not registered'
	done
}

@test "posting or polling fails | one line with the call and the device's word, and a failed row | serves the next run" {
	local strategy nth
	for strategy in global multi-wr per-io; do
		nth=$(mid_second posts --op write --frags 2 --strategy $strategy)
		FAKEHCA=fail_post_send=$nth,fail_post_send_with=28 sweep --op write --frags 2 --strategy $strategy
		second_failed 'ibv_post_send on fake0 took 0 of' 'No space left'
	done
	FAKEHCA=fail_poll=6,fail_poll_with=5 bench loopback -d fake0 --op write -n 200 --format csv
	complained 1 'ibv_poll_cq'
	rows "$out_file" 1 'f("status") == "failed" && f("reason") ~ /ibv_poll_cq/'
}

# At the first fragment of an I/O, and behind one or two that are then to be undone; at the client, and at the
# server of an rpc.
@test "a registration fails in mid-run | one line that says how many there are, and a failed row; that I/O is undone, and nothing stays registered | serves the next run" {
	local how nth more
	for how in '--op write --strategy per-io' '--op write --strategy per-io --frags 3 --bidir' \
		'--op read --strategy per-io --frags 3' '--mode rpc --op read --strategy per-io --frags 3 --revoke async' \
		'--mode rpc --op write --strategy per-io --frags 3' '--mode rpc --op send --strategy per-io --frags 3' \
		'--mode rpc --op read --peer-strategy per-io --frags 3' \
		'--mode rpc --op write --peer-strategy per-io --frags 3 --reply imm'; do
		# shellcheck disable=SC2086 # words
		nth=$(mid_second reg_mr $how)
		for more in 0 1 2; do
			# shellcheck disable=SC2086
			FAKEHCA=fail_reg_mr=$((nth + more)),fail_reg_mr_with=12 sweep $how
			[[ $how != *peer* || $err == *': the server side: ibv_reg_mr'* ]] || fail "not the server's"
			second_failed 'ibv_reg_mr of .* on fake0: Cannot allocate memory \([0-9]+ of [0-9]+ regions'
			[[ $(counted reg_mr) == "$(counted dereg_mr)" ]] || fail "$(<"$FAKEHCA_STATS")"
			(($(counted reg_mr) > nth))
		done
	done
}

@test "a completion queue too small for the run | one line with the device's limit and what would fit, and a failed row; the default --sq-depth shrinks instead | serves the next run" {
	FAKEHCA=max_cqe=20 loop 1 --op write -n 200 --depth 16
	rows "$out_file" 1 'f("sq_depth") < f("sq_wanted") && f("iterations") == 200'
	FAKEHCA=max_cqe=20 bench loopback -d fake0 --op write,send --sq-depth 20 -n 200 --format csv
	[[ $status == 1 && $err == *'max_cqe 20'*'use --sq-depth 19 or less'* ]] || fail "does not say what would fit"
	FAKEHCA=max_cqe=20 bench loopback -d fake0 --op write,send,read -n 200 --format csv
	complained 1 'run 2 of 3' 'RECVs are more than fake0 can have' 'max_cqe 20' '--depth'
	rows "$out_file" 3 'f("op") == "send" ? f("status") == "failed" : f("status") == "ok" && f("iterations") == 200'
}
