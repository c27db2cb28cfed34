#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 100 s in a guest
#
# Faults, over software RDMA: each ends in time, says what happened, keeps what was measured, and
# leaves a server that serves on. What each case is called is what users read in the manual page
# (scripts/fault-table): what happens | what the client shows | what becomes of the server.
#
# Tagged slow, and run by scripts/check --slow alone, is what does not need the kernel's RDMA and has
# its equal on the test double: tests/fake_server.bats, tests/fake_both.bats, tests/cli.bats.

# What bench.bash sets and reads; perl and awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2028,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench
load faults

LIMIT=60

setup() {
	before=$(resources)
}

teardown() {
	end_client
	end_server
	renew_device
}

# ---- one end goes away ----

@test "kill -9 of the client | nothing more | gives back what that client held, and serves on" {
	local how
	serve --timeout 2s
	for how in '--mode rpc --op read' '--op send --bidir'; do
		# shellcheck disable=SC2086 # words
		long_client $how --timeout 2s
		end_client
		wait_until 10 holds_nothing || fail "the server holds: $(resources)"
	done
	serves_on
}

@test "kill -9 of the server | one line, and a failed row with the reason | its port is free at once" {
	local how
	for how in '--mode rpc --op write' '--op send --bidir'; do
		serve
		# shellcheck disable=SC2086 # words
		long_client $how --timeout 3s
		kill -KILL "$server"
		client_ends 20
		failed
		end_server
		nothing_left
	done
}

first_row_is_there() {
	[[ $(wc -l <"$BATS_TEST_TMPDIR/sweep.csv") == 2 ]]
}

# bats test_tags=slow
@test "kill -9 of the server in a sweep | the rows so far stay, the next is failed, and the sweep ends there | its port is free at once" {
	serve
	background client -d "$DEVICE" -p "$PORT" --format csv -s 64,1m,128 -n 5000 --depth 1 --timeout 5s \
		-o "$BATS_TEST_TMPDIR/sweep.csv" "$HOST"
	wait_until 20 first_row_is_there
	kill -KILL "$server"
	client_ends 20
	[[ $status == 1 && $err == *'run 2 of 3: '*'no rxfer-bench server'* ]] || fail "does not say which run, and why no more"
	rows "$out_file" 2 'f("bytes") == 64 ? f("status") == "ok" && f("partial") == "no" : f("status") == "failed" && f("reason") != ""'
	cmp "$out_file" "$BATS_TEST_TMPDIR/sweep.csv"
	end_server
	nothing_left
}

# bats test_tags=slow
@test "SIGSTOP of the server | one line within --timeout, and a failed row | serves on when it is continued" {
	local how
	serve
	for how in '--mode rpc --op send' '--op read --bidir'; do
		# shellcheck disable=SC2086 # words
		long_client $how --timeout 2s # with --bidir both poll, and one can be late
		kill -STOP "$server"
		client_ends 20
		failed '--timeout|nothing heard'
		kill -CONT "$server"
	done
	serves_on
}

# bats test_tags=slow
@test "SIGSTOP of the client | one line when it is continued, and a failed row | gives up on it within the client's --timeout, says so, and serves on" {
	local how
	for how in '--mode rpc --op read --strategy per-io' '--op send --bidir'; do
		serve
		# shellcheck disable=SC2086 # words
		long_client $how --timeout 2s
		stopped=$(bench_of "$client")
		kill -STOP "$stopped"
		wait_until 20 grep -Eq '(nothing heard|no I/O completed)' "$BATS_TEST_TMPDIR/server.err"
		still_serves
		long_gone "$stopped"
		serves_on
	done
}

# What still_serves has overwritten is of no interest.
long_gone() {
	kill -CONT "$1"
	wait_until 10 gone "$client"
	status=0
	wait "$client" || status=$?
	client=''
	[[ $status == 1 ]] || fail "not ended with status 1"
}

# ---- signals ----

@test "SIGINT to the client | its row is whole and partial, status 130 | serves on" {
	local how
	serve
	for how in '--mode rpc --op write' '--op send --rnr-retry 0 --bidir -q 2'; do
		# shellcheck disable=SC2086 # words
		long_client $how -o "$BATS_TEST_TMPDIR/cut.csv"
		kill -INT "$(bench_of "$client")"
		client_ends 20
		partial
		[[ $how != *bidir* ]] || rows "$out_file" 1 'f("peer_iterations") > 0'
		cmp "$out_file" "$BATS_TEST_TMPDIR/cut.csv"
		rm "$BATS_TEST_TMPDIR/cut.csv"
	done
	serves_on
}

# bats test_tags=slow
@test "SIGTERM to the client | its row is whole and partial, status 130 | serves on" {
	serve
	long_client --op write
	kill -TERM "$(bench_of "$client")"
	client_ends 20
	partial
	serves_on
}

@test "SIGINT in a sweep | the rows so far stay, the one under way is partial, the rest is left out | serves on" {
	background loopback -d "$DEVICE" --format json -s 64,128 -D 1m --op read,send
	kill -INT "$(bench_of "$client")"
	client_ends 20
	[[ $status == 130 && -z $err ]] || fail "not status 130, in silence"
	out=$(jq -c '[.rows[] | [.status, .partial]]' "$out_file")
	[[ $out == '[["ok","yes"]]' ]] || fail "not one cut row"
	nothing_left
}

# bats test_tags=slow
@test "SIGINT twice, where the server is stopped | ends at once | serves on when it is continued" {
	serve
	long_client --op send --timeout 30s
	kill -STOP "$server"
	kill -INT "$(bench_of "$client")"
	sleep 0.5
	kill -0 "$client" || fail "ended at the first"
	kill -INT "$(bench_of "$client")"
	client_ends 10
	[[ $status == 130 ]] || fail "not status 130"
	kill -CONT "$server"
	serves_on
}

@test "SIGTERM or SIGINT to the server in mid-run | one line that says so, and a failed row | ends with status 0" {
	local signal
	for signal in TERM INT; do
		serve
		long_client --op send --timeout 5s
		server_ends "$signal"
		client_ends 20
		failed 'told to stop'
		nothing_left
	done
}

# ---- the link, the device ----

# The device's own word, the port's, is a line of its own before the run's.
failed_after_event() {
	[[ $err == *"port 1 of $DEVICE went down"* ]] || fail "the device's event is not told"
	err=$(grep -v "^rxfer-bench: port 1 of $DEVICE " <<<"$err")
	failed "$@"
}

@test "the link goes down | one line within --timeout, and a failed row | notices too, and can be ended" {
	touch "$BATS_TEST_TMPDIR/broken"
	serve --timeout 2s
	long_client --op write --timeout 2s
	ip link set "v$DEVICE" down
	client_ends 30
	failed_after_event 'link'
	wait_until 10 server_said '(failed|ended after .*): '
	server_ends
	nothing_left
}

# bats test_tags=slow
@test "the link goes down and up again | one line, and a failed row | notices too, and serves on once the device connects again (rxe0 must be made anew)" {
	touch "$BATS_TEST_TMPDIR/broken"
	serve --timeout 2s
	long_client --op send --timeout 2s
	ip link set "v$DEVICE" down
	sleep 0.3
	ip link set "v$DEVICE" up
	client_ends 30
	failed_after_event 'link'
	wait_until 10 server_said '(failed|ended after .*): '
	server_ends
	renew_device
	serve
	serves_on
}

@test "the device is removed | the run goes on and can be ended: the kernel waits for it (rxe) | can be ended, and the device is gone" {
	touch "$BATS_TEST_TMPDIR/broken"
	serve --timeout 2s
	long_client --op write --timeout 2s
	rdma link del "$DEVICE" &
	sleep 1
	kill -INT "$(bench_of "$client")"
	client_ends 20
	partial
	server_ends
	wait_until 10 gone $!
	[[ ! -e /sys/class/infiniband/$DEVICE ]]
}

# ---- memory ----

# unlocked: $RXFER_BENCH, without the right that lifts the limit of locked memory, and root has.
unlocked() {
	printf '#!/bin/sh\nexec setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock "%s" "$@"\n' "$RXFER_BENCH" \
		>"$BATS_TEST_TMPDIR/unlocked"
	chmod +x "$BATS_TEST_TMPDIR/unlocked"
	RXFER_BENCH=$BATS_TEST_TMPDIR/unlocked
}

# limit_in_run PID: from now on nothing more can be registered there, and what is goes on.
limit_in_run() {
	prlimit --pid "$1" --memlock=4096
	client_ends 20
	failed 'registering .* exceeds the locked-memory limit of 4.0 KiB: raise it .ulimit -l unlimited'
	wait_until 10 holds_nothing || fail "the server holds: $(resources)"
}

# bats test_tags=slow
@test "the limit of locked memory is reached in mid-run | one line with the limit and what to do, and a failed row; that I/O is undone | serves on, also where it is the server's limit" {
	local how
	unlocked
	serve
	for how in '--mode rpc --op read' '--op write'; do
		# shellcheck disable=SC2086 # words
		long_client $how --strategy per-io --frags 3
		limit_in_run "$(bench_of "$client")"
	done
	long_client --mode rpc --op write --peer-strategy per-io --frags 3
	limit_in_run "$server"
	prlimit --pid "$server" --memlock=unlimited
	serves_on
}

# ---- strangers ----

# bats test_tags=slow
@test "a web browser, noise or nonsense at the server's port | - | turns each away with a line, and serves on" {
	local head='pack("NnnN", 0x52584642, 1' words
	serve --timeout 1s
	for words in 'print $s "GET / HTTP/1.1\r\nHost: x\r\n\r\n"' 'print $s "\0" x 5000' \
		'print $s map { chr rand 256 } 1 .. 5000' "print \$s $head, 1, 4), '[1]'" "print \$s $head, 2, 2), '{}'" \
		"print \$s $head, 1, 32), '{\"version\":1,\"host\":[],\"boot\":-1}'"; do
		stranger "$words"
	done
	serves_on
	[[ $(grep -c 'was dropped before it began' "$BATS_TEST_TMPDIR/server.err") == 6 ]] || fail "$(<"$BATS_TEST_TMPDIR/server.err")"
	server_said 'speaks HTTP'
}

# bats test_tags=slow
@test "a message said to be of 2 GiB | - | takes no memory for it, turns it away with a line, and serves on" {
	serve --timeout 1s
	stranger 'print $s pack("NnnN", 0x52584642, 1, 1, 1 << 31)'
	server_said 'announces a control message of 2147483648 bytes'
	serves_on
}

# bats test_tags=slow
@test "a message that is cut short | - | turns it away with a line, and serves on" {
	serve --timeout 1s
	stranger 'print $s "RXF"; exit'
	stranger 'print $s pack("NnnN", 0x52584642, 1, 1, 100), "{\"version\":"; exit'
	stranger 'print $s pack("NnnN", 0x52584642, 1, 1, 100), "{\"version\":"'
	serves_on
	[[ $(grep -c 'was dropped before it began.* closed the control' "$BATS_TEST_TMPDIR/server.err") == 2 ]] ||
		fail "$(<"$BATS_TEST_TMPDIR/server.err")"
	server_said 'was dropped before it began: .* said no hello within 1.0 s'
}

# bats test_tags=slow
@test "a message that comes byte by byte | - | waits no longer than --timeout for all of it, and serves on" {
	serve --timeout 1s
	stranger 'for (split //, pack("NnnN", 0x52584642, 1, 1, 64) . "{" . " " x 63) { print $s $_ or last; sleep 0.3 }'
	server_said 'was dropped before it began: .* said no hello within 1.0 s'
	serves_on
}

# bats test_tags=slow
@test "rping at a run's data port | nothing: the run goes on | turns it away, and serves on" {
	serve --timeout 5s
	between 'system "timeout 10 rping -c -a '"$HOST"' -p $1 -C 1; echo rping \$?" if /"port":(\d+)/'
	PORT=$((PORT + 1)) client --format csv -s 64 -n 50 --verify --qps 2
	ended 0
	rows "$out_file" 1 'f("status") == "ok" && f("iterations") == 100'
	grep -q 'rping [1-9]' "$BATS_TEST_TMPDIR/between.out" || fail "rping: $(<"$BATS_TEST_TMPDIR/between.out")"
	serves_on
}

# bats test_tags=slow
@test "a wrong token at a run's data port | one line: refused, and a failed row | turns it away, and serves on" {
	serve --timeout 2s
	between 's/"token":"(.)/"\"token\":\"" . ($1 eq "0" ? "1" : "0")/e'
	PORT=$((PORT + 1)) client --format csv -s 64 -n 50 --timeout 2s
	failed 'refused the data connection'
	serves_on
}

# ---- many ----

# bats test_tags=slow
@test "16 clients at once | each has its row | serves all of them, and on" {
	local pids=() pid
	serve
	for i in {1..16}; do
		"$RXFER_BENCH" client --mode direct -d "$DEVICE" -p "$PORT" --op send -s 64 -n 50 --depth 4 --poll event --format csv \
			"$HOST" >"$BATS_TEST_TMPDIR/of.$i" 2>&1 </dev/null 3>&- &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || fail "$(head -n 3 "$BATS_TEST_TMPDIR"/of.*)"
	done
	for i in {1..16}; do
		rows "$BATS_TEST_TMPDIR/of.$i" 1 'f("status") == "ok" && f("iterations") == 50'
	done
	serves_on
}

# bats test_tags=slow
@test "two clients at once, with sweeps | each has its rows | serves both, and on" {
	local rc=0
	serve
	"$RXFER_BENCH" client --mode direct -d "$DEVICE" -p "$PORT" --op read,write,send -s 64 -n 500 --verify --format csv "$HOST" \
		>"$BATS_TEST_TMPDIR/other" </dev/null 3>&- &
	client --op read,write,send -s 4k -n 200 --verify --format csv
	ended 0
	wait $! || rc=$?
	[[ $rc == 0 ]]
	rows "$out_file" 3 'f("status") == "ok" && f("iterations") == 200'
	rows "$BATS_TEST_TMPDIR/other" 3 'f("status") == "ok" && f("iterations") == 500'
	serves_on
}

# bats test_tags=slow
@test "a second server on one port | one line: in use, and which option | the first serves on" {
	serve
	bench server -d "$DEVICE" -p "$PORT"
	refused 1 "$PORT" 'in use' '--port'
	serves_on
}
