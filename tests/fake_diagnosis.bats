#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the program says when something is wrong, and when it is asked to say more, on the test double:
# what the device reports by itself, and --debug.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench

LIMIT=60
export FAKEHCA=''

# enum ibv_event_type
QP_FATAL=1 DEVICE_FATAL=8 PORT_ACTIVE=9 PORT_ERR=10 GID_CHANGE=18

teardown() {
	end_server
}

# said N PATTERN: N lines of stderr match.
said() {
	[[ $(grep -cE -- "$2" "$err_file") == "$1" ]] || fail "not said $1 times: $2"
}

@test "a failed completion: status, operation, strategy, peer, queue pair, cause, remedy" {
	FAKEHCA=fail_wr=9,fail_wr_with=10 bench loopback -d fake0 --op read --strategy multi-wr --frags 2 -n 200 --format csv
	complained 1 'RDMA READ failed: IBV_WC_REM_ACCESS_ERR .remote access error, status 10, vendor 0x' \
		', strategy multi-wr, peer 10.86.0.1, QP [12]: the peer.s memory is not open to us there: key or bounds; see'
	rows "$out_file" 1 'f("status") == "failed" && f("reason") ~ /IBV_WC_REM_ACCESS_ERR/'
	grep -q 'reason' "$out_file"
}

@test "the port goes down in mid-run: told when it happens, and in the reason" {
	FAKEHCA=event=$PORT_ERR,event_at=3000 bench loopback -d fake0 --op write -n 100000 --format csv
	[[ $status == 1 ]] || fail "not failed"
	said 1 '^rxfer-bench: port 1 of fake0 went down: look at its link$'
	said 1 '^rxfer-bench: run 1 of 1: .*: port 1 of fake0 is not active; bring its link up; [0-9.]* s before: port 1 of fake0 went down'
	said 2 .
	grep -q ',failed,.*s before: port 1 of fake0 went down' "$out_file" || fail "not in the row"
}

@test "the device fails: the reason has it" {
	FAKEHCA=event=$DEVICE_FATAL,event_at=200,fail_wr=200,fail_wr_with=19 bench loopback -d fake0 --op write -n 1000 \
		--format csv
	[[ $status == 1 ]] || fail "not failed"
	said 1 '^rxfer-bench: device fake0 has failed and needs a reset: see dmesg$'
	said 1 'IBV_WC_FATAL_ERR.* s before: device fake0 has failed'
}

@test "what the device reports and nothing suffers from: told, and the run is good" {
	local event
	for event in $QP_FATAL $PORT_ACTIVE $GID_CHANGE; do
		FAKEHCA=event=$event,event_at=200 bench loopback -d fake0 --op send -n 1000 -D 300ms --format csv
		[[ $status == 0 ]] || fail "failed"
		said 1 '^rxfer-bench: (port 1|queue pair [12]) of fake0 '
		said 1 .
		rows "$out_file" 1 'f("status") == "ok"'
	done
}

# message WHO DIRECTION TYPE: one such line at least, with its time.
message() {
	grep -qE "^rxfer-bench: debug: [0-9]+\.[0-9]{6} $1: $2 [^:]*$3: \{" "$err_file" || fail "$1 did not tell: $2 $3"
}

@test "--debug: each message of both ends and rdma_cm's events, without tokens; else nothing" {
	local type
	bench loopback -d fake0 -n 10 --format csv
	ended 0
	bench loopback -d fake0 -n 10 --bidir --format csv --debug
	[[ $status == 0 ]] || fail "failed"
	for type in CONFIG START STOP GO CLOSED BYE HELLO; do
		message client to $type
		message server from $type
	done
	for type in READY CONNECTED STARTED RESULT HELLO; do
		message server to $type
		message client from $type
	done
	said 2 'CONFIG.*"token":"\(not shown\)"'
	said 0 'token":"[0-9a-f]{32}'
	said 2 'rdma_cm on fake0: established, status 0, connection 0$'
	said 1 'server: rdma_cm on fake0: connect request'
	[[ $(grep -cvE '^rxfer-bench: debug: [0-9.]+ (client|server): ' "$err_file") == 0 ]] || fail "other lines"
	rows "$out_file" 1 'f("opts") !~ /debug/'
	bench loopback -d fake0 -s 1k -n 10 --debug=yes
	refused 2 '--debug takes no value'
}

@test "--debug: long messages are cut" {
	bench loopback -d fake0 -s 64 --depth 1 --qps 300 -n 2 --format csv --debug
	[[ $status == 0 ]] || fail "failed"
	said 6 'ST(ART|OP): \{"messages":\[[0-9,]* \.\.\.$'
	[[ $(awk '{ if (length > max) max = length } END { print max < 800 }' "$err_file") == 1 ]] || fail "a line is too long"
}

@test "--debug of a server, of a client, of a probe" {
	local PORT=18529 HOST=127.0.0.1 DEVICE=fake0
	FAKEHCA=max_rd_atomic=5,real_clock=1 serve --debug
	FAKEHCA=real_clock=1 client --rd-atomic 6 -n 5 --format csv --debug
	message client from FAIL
	said 1 'client: from 127.0.0.1 FAIL: \{"reason":".*--rd-atomic 6 is more'
	server_ends
	err_file=$BATS_TEST_TMPDIR/server.err
	message server to FAIL
	said 1 'server: from 127.0.0.1 CONFIG'
	err_file=$BATS_TEST_TMPDIR/err
	bench probe -d fake0 --debug
	message client to CONFIG
	message server from STOP
	bench devices --debug
	refused 2 '--debug belongs to' 'not to devices'
}
