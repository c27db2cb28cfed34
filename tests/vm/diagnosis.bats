#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 28 s in a guest
#
# What is said of a real device, and what it says itself.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016
bats_require_minimum_version 1.5.0
load bench
load faults

LIMIT=60

teardown() {
	chmod 666 /dev/infiniband/uverbs*
	ip link set "v$DEVICE" up
	end_server
	renew_device
}

@test "devices: the GID that is our address, as RoCE v2, and every strategy tried" {
	bench devices -d "$DEVICE"
	ended 0
	[[ $(awk 'length > 100' "$out_file") == '' ]] || fail "a line is above 100 columns"
	grep -qE "^ +(GIDs +)?[0-9]+ +RoCE v2 +$HOST\$" "$out_file" || fail "no such GID"
	grep -qE "^  device +RoCE, driver rxe \(software RDMA\), .*NUMA node" "$out_file"
	grep -qE "^  port 1 +active \(link up\), MTU .*, interface v$DEVICE, address $HOST\$" "$out_file"
	[[ $(grep -cE '(global|multi-wr|per-io|rcache|frwr): yes$' "$out_file") == 5 ]] || fail "not five strategies"
}

@test "devices: a locked-memory limit of nothing: each strategy says no, and names it" {
	ulimit -l 0
	with 'setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock' devices -d "$DEVICE"
	ended 0
	[[ $(grep -cE '(global|multi-wr|per-io|rcache|frwr): no: registering .* exceeds' "$out_file") == 5 ]] ||
		fail "not five refusals"
}

@test "devices: no right to open it: said, with what to do" {
	chmod 600 /dev/infiniband/uverbs*
	with 'setpriv --reuid=65534 --regid=65534 --clear-groups' devices
	ended 0
	[[ $out == *"$DEVICE"$'\n  trouble '*'Permission denied'*'run as root'* ]] || fail "not told"
}

@test "a peer that is killed: the failed completion has its address" {
	serve
	"$RXFER_BENCH" client --mode direct -d "$DEVICE" -p "$PORT" --op write -D 20s --timeout 5s --format csv "$HOST" \
		>"$out_file" 2>"$err_file" </dev/null 3>&- &
	local client=$!
	traffic mark
	wait_until 10 traffic 100
	kill -KILL "$server"
	wait_until 20 gone "$client"
	status=$(wait "$client" && echo 0 || echo $?) out=$(<"$out_file") err=$(<"$err_file")
	[[ $err == *"$HOST closed the control connection"* || $err == *"failed: IBV_WC_"*"peer $HOST, QP "* ]] ||
		fail "not told"
}

# A port that goes down in mid-run: the device says so, and the run fails of it.
@test "the link goes down in mid-run: told by whoever listens, and in the reason" {
	touch "$BATS_TEST_TMPDIR/broken"
	serve
	"$RXFER_BENCH" client --mode direct -d "$DEVICE" -p "$PORT" --op write -D 20s --timeout 5s --format csv "$HOST" \
		>"$out_file" 2>"$err_file" </dev/null 3>&- &
	local client=$! rc=0
	traffic mark
	wait_until 10 traffic 100
	ip link set "v$DEVICE" down
	wait_until 20 gone "$client"
	wait "$client" || rc=$?
	ip link set "v$DEVICE" up
	status=$rc out=$(<"$out_file") err=$(<"$err_file")
	[[ $rc == 1 ]] || fail "not failed"
	grep -q "^rxfer-bench: port 1 of $DEVICE went down" "$err_file" || fail "the client was not told"
	grep -q "^rxfer-bench: port 1 of $DEVICE went down" "$BATS_TEST_TMPDIR/server.err" || fail "the server was not told"
	rows "$out_file" 1 'f("status") == "failed"'
	grep -q 's before: port 1 of .* went down' "$out_file" || fail "not in the reason"
}
