#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 200 s in a guest
#
# A server over software RDMA for many clients, one after the other and side by side: nothing of the
# process or of the device is left of them. Its control port is the matter of tests/fake_server.bats.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench

log=$BATS_TEST_TMPDIR/server.err

setup() {
	before=$(resources) clients=()
}

teardown() {
	((${#clients[@]} == 0)) || kill -KILL "${clients[@]}" 2>/dev/null || true
	end_server
}

# holding: descriptors and resident KiB of the server, once it has no session.
holding() {
	wait_until 20 idle || fail "not idle: $(resources)" || return 1
	files=$(find "/proc/$server/fd" -mindepth 1 | wc -l)
	rss=$(awk '/^VmRSS:/ { print $2 }' "/proc/$server/status")
}

# It has the device open, and no more: no queue pair but the device's own, no memory region.
idle() {
	grep -qx $'Threads:\t1' "/proc/$server/status" && [[ $(resources) == *' cq 1 qp 1 cm_id 0 mr 0 '* ]]
}

nothing_left() {
	wait_until 5 same_resources "$before" || fail "left over: $(resources), before: $before"
}

# sessions N FILE: one client, and 2 * N sessions one after the other, each of a run that is ok and one
# that fails, after which the client begins anew. Starting a program is dear here, a session is not.
sessions() {
	"$RXFER_BENCH" client --mode direct -d "$DEVICE" -p "$PORT" --op write,send -s 4k -n 8 --warmup 0 --qps 2 --format csv \
		--frag-gap "$(seq -s, 1 "$1")" --rd-atomic 0,200 "$HOST" >"$2" 2>/dev/null </dev/null 3>&- || true
	rows "$2" $((4 * $1)) 'f("status") == (f("opts") ~ /rd-atomic=200/ ? "failed" : "ok")' &&
		rows "$2" $((4 * $1)) 'f("status") == "ok" || f("reason") ~ /rd-atomic 200 is more than/'
}

# side_by_side WIDTH N: so many such clients at once.
side_by_side() {
	local i pids=() pid failed=0
	for ((i = 0; i < $1; i++)); do
		sessions "$2" "$BATS_TEST_TMPDIR/rows.$i" 3>&- &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || failed=1
	done
	return "$failed"
}

# logged COUNT PATTERN: the log has that many such lines.
logged() {
	local n
	n=$(grep -cE -- "$2" "$log") || true
	((n == $1)) || fail "$n lines instead of $1: $2" "$(tail -n 6 "$log")"
}

@test "a hundred sessions with runs, one after the other: as many descriptors and as much memory as after twenty" {
	serve
	sessions 10 "$out_file"
	holding
	local files_then=$files rss_then=$rss
	sessions 40 "$out_file"
	holding
	echo "after 20: $files_then files, $rss_then KiB; after 100: $files files, $rss KiB"
	((files == files_then))
	((rss <= rss_then + 1024))
	logged 100 ': run 1 \(mode=direct op=(write|send) .*\): 16 I/Os, [0-9.]+ MiB/s$'
	logged 100 ': ended after 1 run: .* is more than '
	server_ends
	nothing_left
}

@test "a hundred sessions, eight at a time" {
	serve --max-sessions 8
	side_by_side 8 2
	holding
	local files_then=$files rss_then=$rss
	side_by_side 8 5
	holding
	echo "after 32: $files_then files, $rss_then KiB; after 112: $files files, $rss KiB"
	((files == files_then))
	((rss <= rss_then + 2048))
	logged 0 'turned away'
	logged 112 ': ended after 1 run: .* is more than '
	server_ends
	nothing_left
}

@test "runs that fail at either end leave nothing either, and the log says why" {
	local i
	serve --max-memory 1m
	for i in 1 2; do
		client --op write -s 1k,128k,64k,256k,4k -n 5 --format csv
		[[ $status == 1 ]]
		rows "$out_file" 5 'f("status") == (f("bytes") > 65536 ? "failed" : "ok")'
		holding
	done
	logged 2 ': run 2 \(mode=direct op=write size=128k iters=5\) failed: this run takes 2.0 MiB on the server, which may have 1.0 MiB'
	logged 2 ': run 2 \(mode=direct op=write size=256k iters=5\) failed: this run takes 4.0 MiB'
	server_ends
	nothing_left
}

@test "a client that is interrupted, and one that issues in both directions, in the log" {
	serve
	traffic mark
	"$RXFER_BENCH" client --mode direct -d "$DEVICE" -p "$PORT" --op write -s 4k -n 100000000 --format csv "$HOST" \
		>"$out_file" 2>&1 </dev/null 3>&- &
	client=$!
	wait_until 20 traffic 1000
	kill -INT "$client"
	wait "$client" || true
	client --op write -s 4k --bidir -n 20 --format csv
	ended 0
	holding
	logged 1 ': run 1 \(mode=direct op=write size=4k iters=100000000\): [0-9]+ I/Os, [0-9.]+ MiB/s, cut short$'
	logged 1 ': run 1 \(mode=direct op=write size=4k iters=20 bidir=yes\): 40 I/Os, [0-9.]+ MiB/s$'
	server_ends
	nothing_left
}

# endless OPTION...: a client in the background, in a run too long to end; its streams are in FILE.I.
endless() {
	local i=${#clients[@]}
	traffic mark
	"$RXFER_BENCH" client --mode direct -d "$DEVICE" -p "$PORT" -s 4k -n 100000000 --format csv "$@" "$HOST" \
		>"$out_file.$i" 2>"$err_file.$i" </dev/null 3>&- &
	clients+=($!)
	wait_until 20 grep -q "session $((i + 1)) of .* begins" "$log" && wait_until 20 traffic 1000
}

# told I: that client ended with a failed row, since the server was told to stop.
told() {
	local rc=0
	wait_until 20 gone "${clients[$1]}" || return 1
	wait "${clients[$1]}" || rc=$?
	[[ $rc == 1 && $(<"$err_file.$1") == *'the server was told to stop'* ]] || fail "$rc: $(<"$err_file.$1")" || return 1
	rows "$out_file.$1" 1 'f("status") == "failed" && f("reason") ~ /the server was told to stop/'
}

@test "SIGTERM with runs in progress, of which one client is stopped: all are told, and nothing is left" {
	serve
	endless --op write
	endless --op send
	endless --op read --qps 2 --strategy per-io
	kill -STOP "${clients[2]}"
	server_ends
	told 0
	told 1
	logged 1 'told to stop, [0-9]+ sessions? to end'
	logged 3 ': run 1 .* failed: the server was told to stop$'
	logged 0 'did not end'
	kill -CONT "${clients[2]}"
	told 2
	nothing_left
}

# status_of_server STATUS
status_of_server() {
	local rc=0
	wait_until 40 gone "$server" || return 1
	wait "$server" || rc=$?
	server=''
	((rc == $1)) || fail "the server ended with status $rc" "$(<"$log")"
}

# bats test_tags=preload
@test "a session that the kernel does not give back: waited for 30 s, and no longer; not at all after a second signal" {
	local lib=$BATS_TEST_TMPDIR/stuck.so begin signal
	"${CC:-cc}" -shared -fPIC -o "$lib" "$BATS_TEST_DIRNAME/stuck.c"
	for signal in '' TERM; do
		LD_PRELOAD=$lib serve
		client --op write -s 4k -n 20 --format csv
		ended 0
		begin=$SECONDS
		kill -TERM "$server"
		wait_until 5 grep -q 'told to stop, 1 session to end' "$log"
		if [[ -z $signal ]]; then
			status_of_server 1
			((SECONDS - begin >= 29 && SECONDS - begin < 36)) || fail "after $((SECONDS - begin)) s"
			logged 1 ': 1 session did not end within 30 s: left to the kernel$'
		else
			sleep 1
			serving
			kill -"$signal" "$server"
			status_of_server 143
			((SECONDS - begin < 10)) || fail "after $((SECONDS - begin)) s"
			logged 0 'did not end'
		fi
		nothing_left
	done
}
