#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two machines with a bad network between them; runs on the host (scripts/check --slow). Both boot
# once, and do what netem.bash says; here it is judged. What each case is called is what users read in
# the manual page (scripts/fault-table): what happens | what the client shows | what becomes of the
# server.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench

setup_file() {
	local top=$BATS_TEST_DIRNAME/../..
	mkdir "$BATS_FILE_TMPDIR/out"
	OUT_DIR=$BATS_FILE_TMPDIR/out "$top/scripts/rxe-vm" --nodes 2 --timeout 540 -- \
		bash "$BATS_TEST_DIRNAME/netem.bash" >"$BATS_FILE_TMPDIR/log" 2>&1 3>&- || cat "$BATS_FILE_TMPDIR/log" >&2
}

# found NAME: what the client left in that weather.
found() {
	dir=$BATS_FILE_TMPDIR/out
	out_file=$dir/$1.csv
	status=$(<"$dir/$1.status") out=$(<"$out_file") err=$(<"$dir/$1.err")
}

# all_well NAME: each I/O, checked byte by byte.
all_well() {
	found "$1"
	ended 0
	rows "$out_file" 3 'f("status") == "ok" && f("iterations") == 150 && f("verify") == "yes" && f("partial") == "no"'
}

# met NAME EXPRESSION: a count of tc or rxe at either node that says that the weather was bad.
met() {
	cat "$dir/$1.0" "$dir/$1.1" | grep -Eq "^($2)=[1-9]" || fail "no $2 in $1:" "$(tail "$dir/$1".[01])"
}

@test "two machines with a good network between them: all I/Os, checked" {
	all_well clear
	rows "$out_file" 3 'f("host") != f("peer_host")'
}

@test "1 % of the packets are lost, both ways | all I/Os, checked | serves on" {
	all_well loss1
	met loss1 dropped
	met loss1 'out_of_seq_request|rcvd_seq_err|completer_retry_err|duplicate_request'
}

@test "5 % of the packets are lost, both ways | all I/Os, checked | serves on" {
	all_well loss5
	met loss5 dropped
	met loss5 'out_of_seq_request|rcvd_seq_err|completer_retry_err|duplicate_request'
}

@test "one packet in a hundred overtakes others | all I/Os, checked | serves on" {
	all_well reorder
	met reorder 'out_of_seq_request|rcvd_seq_err|duplicate_request'
}

@test "the network drops what is RDMA, and nothing else | one line within --timeout that says that the server answers, and a failed row | says so too, and serves on" {
	found filtered
	complained 1 'run 1 of 1' 'no I/O completed for 2.0 s, though .*10.77.0.1 answers' '--timeout'
	rows "$out_file" 1 'f("status") == "failed" && f("reason") != ""'
	grep -Eq '(failed|ended after .*): .*though' "$dir/server.err"
}

@test "the network is cut | one line within --timeout, and a failed row | notices too, and serves on when it is mended" {
	found cut
	complained 1 'run 1 of 1' '--timeout|nothing heard|no longer answers|no answer'
	rows "$out_file" 1 'f("status") == "failed" && f("reason") != ""'
	grep -Eq '(failed|ended after .*): .*(nothing heard|no longer answers|closed)' "$dir/server.err"
	all_well after
}

@test "the server has served all of them, holds nothing, and ends as it should" {
	local dir=$BATS_FILE_TMPDIR/out
	cat "$dir/server.err" "$dir/left"
	[[ $(<"$dir/left") == *' cq 1 qp 1 cm_id 0 mr 0 '* ]]
	[[ $(<"$dir/server.status") == 0 ]]
	(($(grep -c 'ends after 3 runs' "$dir/server.err") >= 2)) # before, and after
}
