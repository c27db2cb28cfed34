#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Server and client as two processes, and what each does when the other goes away in the middle.

# What bench.bash sets and reads; perl and awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2028,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench

setup() {
	before=$(resources)
}

teardown() {
	ip link set "v$DEVICE" up
	end_server
	[[ -z ${client-} ]] || kill -KILL "$client" 2>/dev/null || true
}

nothing_left() {
	wait_until 5 same_resources "$before" || fail "left over: $(resources), before: $before"
}

# background ARG...: the program, until it has sent something.
background() {
	traffic mark
	timeout 120 "$RXFER_BENCH" "$@" >"$out_file" 2>"$err_file" </dev/null 3>&- &
	client=$!
	wait_until 20 traffic 1000 || fail "no traffic: $(<"$err_file")"
}

# A client in a run too long to end.
long_client() {
	background client -d "$DEVICE" -p "$PORT" --format csv -s 64 -n 100000000 "$@" "$HOST"
}

# client_ends SECONDS: ends by itself in that time; like bench, but in the background.
client_ends() {
	status=0
	wait_until "$1" gone "$client" || return 1
	wait "$client" || status=$?
	out=$(<"$out_file") err=$(<"$err_file") client=''
}

# The program itself: `timeout` passes no SIGKILL or SIGSTOP on.
bench_of() {
	pgrep -P "$1"
}

# A server that waits for clients has the device open, and no more.
holds_nothing() {
	[[ $(resources) == *' cq 1 qp 1 cm_id 0 mr 0 '* ]]
}

still_serves() {
	client --format csv -s 64 -n 50 --verify
	ended 0
	rows "$out_file" 1 'f("status") == "ok" && f("iterations") == 50'
}

@test "a server serves one client after the other, ends by SIGTERM, and leaves nothing" {
	serve
	client --mode direct --op write --strategy per-io -s 64k -n 1000 --signal half --verify --format csv
	ended 0
	rows "$out_file" 1 'f("status") == "ok" && f("iterations") == 1000 && f("peer_host") == f("host")'
	client --op read,write,send --strategy all -s 4k --frags 3 --qps 2 -n 20 --verify --rnr-retry 0 --format csv
	ended 0
	rows "$out_file" 9 'f("status") == "ok" && f("iterations") == 40'
	serving
	server_ends
	nothing_left
	run ! listening "$PORT"
}

@test "two clients at once are both served" {
	local rc=0
	serve
	"$RXFER_BENCH" client -d "$DEVICE" -p "$PORT" --op read,write,send -s 64 -n 500 --verify --format csv "$HOST" \
		>"$BATS_TEST_TMPDIR/other" </dev/null 3>&- &
	client --op read,write,send -s 4k -n 200 --verify --format csv
	ended 0
	wait $! || rc=$?
	[[ $rc == 0 ]]
	rows "$out_file" 3 'f("status") == "ok" && f("iterations") == 200'
	rows "$BATS_TEST_TMPDIR/other" 3 'f("status") == "ok" && f("iterations") == 500'
	server_ends
	nothing_left
}

@test "SIGINT: the run ends early, its row says so and is whole, status 130; the server lives on" {
	serve
	long_client -o "$BATS_TEST_TMPDIR/cut.csv"
	kill -INT "$(bench_of "$client")"
	client_ends 10
	[[ $status == 130 ]] || fail "not status 130"
	[[ -z $err ]] || fail "something on stderr"
	rows "$out_file" 1 'f("status") == "ok" && f("partial") == "yes" && f("iterations") > 0 && f("iterations") < 100000000'
	cmp "$out_file" "$BATS_TEST_TMPDIR/cut.csv"
	still_serves
	server_ends
	nothing_left
}

@test "SIGINT in a sweep: what was run is kept, the rest is left out" {
	background loopback -d "$DEVICE" --format json -s 64,128 -D 1m --op read,send
	kill -INT "$(bench_of "$client")"
	client_ends 10
	[[ $status == 130 && -z $err ]] || fail "not status 130, in silence"
	out=$(jq -c '[.rows[] | [.status, .partial]]' "$out_file")
	[[ $out == '[["ok","yes"]]' ]] || fail "not one cut row"
	nothing_left
}

@test "SEND is cut short by SIGINT as well" {
	serve
	long_client --op send --rnr-retry 0
	kill -INT "$(bench_of "$client")"
	client_ends 10
	[[ $status == 130 ]] || fail "not status 130"
	rows "$out_file" 1 'f("status") == "ok" && f("partial") == "yes"'
	still_serves
}

@test "with --bidir both ends are cut short by SIGINT" {
	local op
	serve
	for op in write send; do
		long_client --op "$op" --bidir --rnr-retry 0 -q 2
		kill -INT "$(bench_of "$client")"
		client_ends 10
		[[ $status == 130 && -z $err ]] || fail "not status 130, in silence"
		rows "$out_file" 1 'f("status") == "ok" && f("partial") == "yes" && f("iterations") > 0 && f("peer_iterations") > 0'
	done
	still_serves
	server_ends
	nothing_left
}

@test "kill -9 of the client: the server lives on and gives back what that one held" {
	local args
	for args in 'read' 'send' 'write --bidir' 'send --bidir'; do
		serve --timeout 2s
		# shellcheck disable=SC2086 # words
		long_client --op $args --timeout 2s
		kill -KILL "$(bench_of "$client")"
		wait "$client" || true
		still_serves
		wait_until 10 holds_nothing || fail "left over: $(resources)"
		server_ends
	done
}

@test "kill -9 of the server: the client says so in one line and ends" {
	local args
	for args in 'write' 'send' 'read --bidir' 'send --bidir'; do
		serve
		# shellcheck disable=SC2086 # words
		long_client --op $args --timeout 3s
		kill -KILL "$server"
		client_ends 10
		complained 1 'run 1 of 1'
		rows "$out_file" 1 'f("status") == "failed" && f("reason") != ""'
		end_server
	done
	nothing_left
}

@test "SIGTERM of the server in mid-run: both end, the client says why" {
	local args
	for args in 'read' 'write --bidir' 'send --bidir'; do
		serve
		# shellcheck disable=SC2086 # words
		long_client --op $args --timeout 5s
		server_ends
		client_ends 10
		complained 1 'run 1 of 1' 'told to stop'
		nothing_left
	done
}

@test "a stopped server: the client gives up in the time that it was given" {
	serve
	long_client --op send --timeout 1s
	kill -STOP "$server"
	client_ends 10
	complained 1 'run 1 of 1' '--timeout'
	kill -CONT "$server"
	still_serves
	long_client --op write --bidir --timeout 3s # both poll: on an emulated CPU one can be late
	kill -STOP "$server"
	client_ends 10
	complained 1 'run 1 of 1' 'nothing heard from'
	kill -CONT "$server"
	still_serves
}

@test "a stopped client: the server gives up on it" {
	local args
	for args in 'read' 'write --bidir' 'send --bidir'; do
		serve
		# shellcheck disable=SC2086 # words
		long_client --op $args --timeout 3s
		stopped=$(bench_of "$client")
		kill -STOP "$stopped"
		wait_until 10 grep -Eq 'nothing heard|no I/O completed' "$BATS_TEST_TMPDIR/server.err"
		still_serves
		kill -CONT "$stopped"
		client_ends 10
		complained 1 'run 1 of 1'
		server_ends
	done
}

# rxe's own management QP does not survive a message that it had to send over a link that was down:
# afterwards nothing connects any more, so the device is made anew.
@test "the link goes down in mid-run: both ends notice, in time, with one line" {
	serve --timeout 2s
	long_client --op write --timeout 2s
	ip link set "v$DEVICE" down
	client_ends 30
	server_ends
	renew_device
	complained 1 'run 1 of 1' 'link'
	rows "$out_file" 1 'f("status") == "failed"'
	serve
	still_serves
}

renew_device() {
	rdma link del "$DEVICE"
	ip link set "v$DEVICE" up
	rdma link add "$DEVICE" type rxe netdev "v$DEVICE"
	wait_until 10 reachable
}

reachable() {
	"$RXFER_BENCH" devices | grep -q "active.*$HOST"
}

# A line each, in perl: a web browser, noise, an endless message, one that says nothing, one that
# leaves in the middle of a header, numbers that are none.
strangers() {
	local head='pack("NnnN", 0x52584642, 1'
	echo 'print $s "GET / HTTP/1.1\r\nHost: x\r\n\r\n"'
	echo 'print $s "\0" x 5000'
	echo "print \$s $head, 1, 0xffffffff)"
	echo "print \$s $head, 1, 4), '[1]'"
	echo "print \$s $head, 2, 2), '{}'"
	echo "print \$s $head, 1, 32), '{\"version\":1,\"host\":[],\"boot\":-1}'"
	echo 'print $s "RXF"; exit'
}

@test "strangers at the server's port: turned away with a line each, and it serves on" {
	serve --timeout 1s
	strangers | while read -r words; do
		perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new("127.0.0.1:" . shift) or die;
			eval shift; die $@ if $@; $s->flush; alarm 8; 1 while sysread $s, my $b, 4096' \
			"$PORT" "$words" || fail "not turned away: $words"
	done
	still_serves
	server_ends
	[[ $(grep -c 'was dropped before it began' "$BATS_TEST_TMPDIR/server.err") == 7 ]] || fail "$(<"$BATS_TEST_TMPDIR/server.err")"
	grep -q 'HTTP' "$BATS_TEST_TMPDIR/server.err"
}
