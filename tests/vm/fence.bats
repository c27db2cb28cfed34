#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 20 s in a guest
#
# What the peer can do with a key, over real software RDMA, both kinds of it. rxe (seen with Linux
# 6.1) looks up a window by its key and then checks the bounds of the region
# below it, not the window's: so one byte before and after an I/O's bounds is open there, and these
# tests say so. Should that change, they fail, and README.md is to be changed with them.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench
load fence

LIMIT=60
CELLS=142 OPEN=3
# Those that rxe and siw of this kernel have.
ours=global,multi-wr,per-io,rcache,frwr,bounce

teardown() {
	end_server
}

# fence ARG...: of the strategies that any device may have, if these do not say it.
fence() {
	[[ $* == *--strategy* ]] || set -- --strategy "$ours" "$@"
	bench fence -d "$DEVICE" --format csv "$@"
}

# in_background ARG...: it is $fence, and has come to its first attempts.
in_background() {
	"$RXFER_BENCH" fence -d "$DEVICE" --debug "$@" >"$out_file" 2>"$err_file" </dev/null 3>&- &
	fence=$!
	wait_until 20 some_tried
}

some_tried() {
	(($(grep -c 'from .* TRIED: ' "$err_file") >= 5))
}

is_over() {
	wait_until 20 gone "$1" || fail "it goes on"
	status=0
	wait "$1" || status=$?
	out=$(<"$out_file") err=$(<"$err_file")
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

# bats test_tags=slow
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
	bench fence -d "$DEVICE" -s 4096,5001 --strategy rcache
	ended 0
	says '26 cells: 26 as expected, 0 differ.'
	says 'rcache: the peer can use the key at any time, and reach what is in the same page.'
}

# bats test_tags=slow
@test "over iWARP: open where it must be, else the connection's end; windows there are none" {
	[[ -d /sys/class/infiniband/siw0 ]] || skip "there is no siw0: run this by scripts/rxe-vm --iwarp"
	DEVICE=siw0
	fence -s 4k --timeout 2s
	ended 0
	rows "$out_file" 82 'f("strategy") == "frwr" ? f("verdict") == "skipped" : f("verdict") == "ok" && \
		f("observed") == (f("expected") == "closed" ? "ended" : "open") && '"$as_expected"
}

# See wrong_bit.c: there is a region, but it is not the memory that it should be.
# bats test_tags=slow
@test "a completion is not believed where memory does not agree: other bytes read, none written" {
	local lib=$BATS_TEST_TMPDIR/wrong_bit.so use='f("attempt") ~ /^(use|other-qp)$/ && f("expected") == "open"'
	"${CC:-cc}" -shared -fPIC -O1 -o "$lib" "$BATS_TEST_DIRNAME/wrong_bit.c" -ldl
	with "env LD_PRELOAD=$lib WRONG_BIT_AT=4321" fence -d "$DEVICE" --format csv -s 5000 --strategy per-io --revoke sync
	ended 1
	rows "$out_file" 13 '('"$use"') ? f("verdict") == "differs" && f("observed") == "failed" && \
		f("note") ~ (f("right") == "read" ? "the READ brought other bytes" : "byte 0 from where it was to write") \
		: f("verdict") == "ok"'
	with "env LD_PRELOAD=$lib" fence -d "$DEVICE" --format csv -s 5000 --strategy per-io --revoke sync
	ended 1
	rows "$out_file" 13 '(f("verdict") == "ok") == (f("right") == "read" || !('"$use"'))'
}

# bats test_tags=slow
@test "a server that goes away in the middle: rows so far, and one line that says so" {
	serve
	in_background -p "$PORT" --timeout 2s --format csv "$HOST"
	kill -KILL "$server"
	is_over "$fence"
	[[ $status == 1 && $err =~ 'rxfer-bench: '(no rxfer-bench server at|[^ ]+ closed the control connection) ]] ||
		fail "not told"
	rows "$out_file" "$(($(grep -c '' "$out_file") - 1))" 'f("verdict") != "ok" ? f("observed") == "failed" && f("note") != "" || '"$beyond"' : 1'
	[[ $(grep -c ',ok,' "$out_file") -ge 1 ]] || fail "nothing before that"
}

@test "SIGINT: status 130, and the rows so far are whole" {
	in_background
	kill -INT "$fence"
	is_over "$fence"
	[[ $status == 130 ]] || fail "status $status"
	[[ $out == *'Partial: ended before all was tried.'* ]] || fail "not partial"
	[[ $out != *failed* ]] || fail "a row that was not to its end"
}
