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

# line LABEL PATTERN: the paragraph behind that label matches, its lines joined.
line() {
	awk -v "label=$1" 'substr($0, 3, 1) != " " { on = 0 } index($0, "  " label " ") == 1 { on = 1 }
		on { sub(/^ +/, " "); text = text $0 } END { print text }' "$out_file" >"$BATS_TEST_TMPDIR/line"
	grep -qE -- "$2" "$BATS_TEST_TMPDIR/line" || fail "$1 is not: $2" "$(<"$BATS_TEST_TMPDIR/line")"
}

narrow() {
	[[ $(awk 'length > 100' "$out_file") == '' ]] || fail "a line is above 100 columns"
}

@test "devices: what each is, its port, limits, GIDs with their addresses, strategies tried" {
	bench devices
	ended 0
	narrow
	[[ $out == fake0$'\n'* ]]
	line device 'RoCE, driver fake .software RDMA., firmware double, NUMA node unknown$'
	line 'port 1' ' active .link up., MTU 1024 of 4096, interface net0, address 10.86.0.1$'
	line limits 'max_qp 1024, max_qp_wr 16384, max_cq 65536, .*max_sge_rd 30, max_rd_atomic 16, .*max_msg_sz 1073741824$'
	line GIDs '0 +RoCE v1 +fe80::86:1 2 +RoCE v1 +10.86.0.1 3 +RoCE v2 +10.86.0.1$'
	line strategies ' global: yes multi-wr: yes per-io: yes rcache: yes frwr: yes frwr-umr: no: frwr-umr .* bounce: yes odp: yes odp-implicit: yes$'
	[[ $out != *'  runs '* && $out != *'  trouble '* ]]
	FAKEHCA=devices=3 bench devices
	ended 0
	[[ $(grep -c '^fake' "$out_file") == 3 && $(grep -c '10.86.0.3$' "$out_file") == 3 ]] || fail "not three"
	FAKEHCA=devices=3 bench devices -d fake1
	ended 0
	[[ $(grep -c '^fake' "$out_file") == 1 ]] && line 'port 1' 'net1, address 10.86.0.2'
}

@test "devices: what is down is told, and its strategies are tried all the same" {
	FAKEHCA=iwarp=1,down=1 bench devices
	ended 0
	line device 'iWARP'
	line 'port 1' ' down .disabled.'
	line GIDs ' 0 +iWARP +fe80'
	line strategies ' global: yes multi-wr: yes per-io: yes rcache: yes frwr: no: frwr takes memory windows of type 2, and fake0 gives none .* odp: no: fake0 has no on-demand paging '
	line runs ' no: its port is not active'
	FAKEHCA=infiniband=1 bench devices
	line device ' IB, '
	line GIDs ' 0 +IB +fe80'
}

@test "devices: a strategy that fails when it is tried: no, and why; the others are not touched" {
	local i names=(global multi-wr per-io rcache frwr bounce odp odp-implicit) whole='the whole address space'
	export FAKEHCA_STATS=$BATS_TEST_TMPDIR/stats
	for i in "${!names[@]}"; do
		FAKEHCA=fail_reg_mr=$((i + 1)),fail_reg_mr_with=95 bench devices
		ended 0
		narrow
		line strategies "${names[i]}: no: ibv_reg_mr of (4.0 KiB|$whole) on fake0: Operation not supported"
		[[ $(grep -o ': yes' "$out_file" | wc -l) == 7 ]] || fail "not seven that work"
	done
	bench devices
	grep -qx reg_mr=8 "$FAKEHCA_STATS" && grep -qx dereg_mr=8 "$FAKEHCA_STATS"
}

@test "devices: one that cannot be opened: why, and what to do; the others are told of" {
	FAKEHCA=closed=13,devices=2 bench devices
	ended 0
	narrow
	line trouble 'cannot be opened: Permission denied: run as root, or let this user open /dev/infiniband/uverbs'
	[[ $out == fake1$'\n'*10.86.0.2*fake0$'\n'* ]] || fail "not both"
	FAKEHCA=closed=2 bench devices
	ended 0
	line trouble 'No such file or directory: load ib_uverbs'
	FAKEHCA=closed=5 bench devices -d fake0
	line trouble 'see dmesg$'
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
	bench loopback -d fake0 -s 64 --depth 1 --qps 500 -n 2 --format csv --debug
	[[ $status == 0 ]] || fail "failed"
	said 6 'ST(ART|OP): \{"messages":\[[0-9,]* \.\.\.$'
	[[ $(awk '{ if (length > max) max = length } END { print max < 1000 }' "$err_file") == 1 ]] || fail "a line is too long"
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
