#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 70 s in a guest
#
# What the peer can do with a key, over real software RDMA, both kinds of it. rxe (Linux 6.1, and the
# same in the sources since) looks up a window by its key and then checks the bounds of the region
# below it, not the window's: so one byte before and after an I/O's bounds is open there, and these
# tests say so. Should that change, they fail, and README.md is to be changed with them.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench
load fence

LIMIT=60
CELLS=118

teardown() {
	end_server
}

fence() {
	bench fence -d "$DEVICE" --format csv "$@"
}

logged() {
	grep -qE -- "$1" "$BATS_TEST_TMPDIR/server.err" || fail "not in the log: $1" "$(<"$BATS_TEST_TMPDIR/server.err")"
}

@test "two processes: each cell as it must be, but that windows do not keep to their bounds" {
	local before
	before=$(resources)
	serve
	fence -p "$PORT" -s 4k "$HOST"
	ended 1
	rows "$out_file" "$CELLS" "$beyond_windows"' && f("emulated") ~ /software RDMA/ && f("note") == ""'
	as_the_rules_say
	logged 'fence 1 \(4\.0 KiB\): [0-9]+ attempts open, [0-9]+ closed, 0 failed'
	serving
	client --format csv -s 64 -n 50 --strategy frwr,per-io
	ended 0
	server_ends
	wait_until 5 same_resources "$before"
}

@test "one process: sizes off pages, in a table" {
	bench fence -d "$DEVICE" -s 1,5001 --strategy per-io,frwr --revoke sync
	ended 1
	says '56 cells: 48 as expected, 8 differ.'
	says "frwr: the peer can reach memory beyond an I/O's: this device does not keep to a key's bounds."
	[[ $out == *"device $DEVICE, driver rxe"*'software RDMA'* ]] || fail "no conditions"
	bench fence -d "$DEVICE" -s 1,5001 --strategy global --revoke none
	ended 0
	says '26 cells: 26 as expected, 0 differ.'
	says 'global: the peer can use the key at any time, and reach all declared memory.'
}

@test "over iWARP: open where it must be, else the connection's end; windows there are none" {
	[[ -d /sys/class/infiniband/siw0 ]] || skip "there is no siw0: run this by scripts/rxe-vm --iwarp"
	DEVICE=siw0
	fence -s 4k --timeout 2s
	ended 0
	rows "$out_file" 58 'f("strategy") == "frwr" ? f("verdict") == "skipped" : f("verdict") == "ok" && \
		f("observed") == (f("expected") == "closed" ? "ended" : "open") && '"$as_expected"
}

@test "a server that goes away in the middle: rows so far, and one line that says so" {
	serve
	"$RXFER_BENCH" fence -d "$DEVICE" -p "$PORT" --timeout 2s --format csv "$HOST" >"$out_file" 2>"$err_file" </dev/null 3>&- &
	local fence=$! rc=0
	wait_until 20 grep -q begins "$BATS_TEST_TMPDIR/server.err"
	sleep 1
	kill -KILL "$server"
	wait "$fence" || rc=$?
	status=$rc out=$(<"$out_file") err=$(<"$err_file")
	complained 1 'no rxfer-bench server at'
	rows "$out_file" "$(($(grep -c '' "$out_file") - 1))" 'f("verdict") != "ok" ? f("observed") == "failed" && f("note") != "" || '"$beyond"' : 1'
	[[ $(grep -c ',ok,' "$out_file") -ge 1 ]] || fail "nothing before that"
}

@test "SIGINT: status 130, and the rows so far are whole" {
	local rc=0
	"$RXFER_BENCH" fence -d "$DEVICE" >"$out_file" 2>"$err_file" </dev/null 3>&- &
	server=$!
	wait_until 20 eval '[[ -n $(resources) ]]'
	sleep 1
	kill -INT "$server"
	wait_until 10 gone "$server" || fail "it goes on"
	wait "$server" || rc=$?
	server=''
	status=$rc out=$(<"$out_file") err=$(<"$err_file")
	ended 130
	[[ $out == *'Partial: ended before all was tried.'* ]] || fail "not partial"
	[[ $out != *failed* ]] || fail "a row that was not to its end"
}
