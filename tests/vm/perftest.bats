#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 30 s in a guest
#
# perftest's tables: from perftest itself and from us, on the same device.

# What bench.bash sets and reads; perl in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench

setup() {
	theirs=$BATS_TEST_TMPDIR/theirs ours=$BATS_TEST_TMPDIR/ours
}

# perftest PROGRAM ARG...: both of its ends; the client's table, from the line above the header to the
# one below the row, goes to $theirs. perftest times by the CPU's cycle counter, and first measures how
# fast that goes; where an emulated CPU is kept waiting meanwhile, it gives the measurement up and divides
# by 0: a table of inf and nan, so it is asked again.
perftest() {
	local program try
	program=$(command -v "$1") || skip "there is no $1: install the package perftest"
	shift
	for ((try = 0; try < 5; try++)); do
		perftest_once "$@"
		grep -qwE -e '-?(inf|nan)' "$theirs" || return 0
	done
	fail "perftest could not measure how fast the CPU's counter goes: $(<"$BATS_TEST_TMPDIR/all")"
}

perftest_once() {
	timeout 60 "$program" -d "$DEVICE" -p "$PORT" -F "$@" >/dev/null 2>&1 </dev/null 3>&- &
	server=$!
	wait_until 20 listening "$PORT"
	timeout 60 "$program" -d "$DEVICE" -p "$PORT" -F "$@" "$HOST" >"$BATS_TEST_TMPDIR/all" 2>&1 3>&-
	wait "$server"
	grep -B 1 -A 2 '#bytes' "$BATS_TEST_TMPDIR/all" >"$theirs"
	[[ $(grep -c '' "$theirs") == 4 ]] || fail "no table: $(<"$BATS_TEST_TMPDIR/all")"
}

# A table with a # for each character of a figure and of the blanks behind it, up to a tab or the
# next figure: equal for equal formats. Before 2024 perftest had another label and two blanks less.
# The percentiles have room for seven characters; one of 10 ms or more counts as one that fills it.
shape() {
	perl -pe '
		$old = 1 if s,MB/sec,MiB/sec,g;
		s/\t\t   (?=\d)/\t\t     / if $old;
		s/\d{5,}(?=\.\d\d(?! ))/9999/g;
		s/[\d.]+ */"#" x length $&/ge unless /bytes/;
	' "$1"
}

# same_shape FORMAT ARG...: our table in this format has the shape of $theirs.
same_shape() {
	bench loopback -d "$DEVICE" --format "$@"
	complained 0 'software RDMA' 'no hardware figures'
	cp "$out_file" "$ours"
	diff <(shape "$theirs") <(shape "$ours") ||
		fail "they differ: $(cat -A "$theirs" "$ours")"
	[[ $(shape "$ours") == *'##'* ]]
}

@test "the table for bandwidth is that of ib_write_bw" {
	perftest ib_write_bw -s 4096 -n 500
	same_shape perftest --op write -s 4k -n 500
	# size, I/Os, peak, average, rate that hang together
	perl -lane 'print if /^ \d/ && @F == 5 && $F[0] == 4096 && $F[1] == 500 && $F[2] >= $F[3] &&
		$F[3] > 0 && abs($F[3] / ($F[4] * 4096 / 1.048576) - 1) < 0.05' "$ours" >"$theirs"
	[[ $(grep -c '' "$theirs") == 1 ]] || fail "$(<"$ours")"
}

@test "the table for latency is that of ib_read_lat" {
	perftest ib_read_lat -s 64 -n 500
	same_shape perftest-lat --op read -s 64 -n 500 -t 1 --signal io
	# min, max, typical, average, deviation, 99 %, 99.9 %
	perl -lane 'print if /^ \d/ && @F == 9 && 0 < $F[2] && $F[2] <= $F[4] && $F[4] <= $F[7] &&
		$F[7] <= $F[8] && $F[8] <= $F[3] && $F[2] < $F[5] && $F[5] < $F[3] && $F[6] > 0' "$ours" >"$theirs"
	[[ $(grep -c '' "$theirs") == 1 ]] || fail "$(<"$ours")"
}

@test "a table for each run, and nothing else" {
	bench loopback -d "$DEVICE" --format perftest -s 64,128 --op read,write,send -n 50
	complained 0 'no hardware figures'
	[[ $(grep -c '#bytes' "$out_file") == 6 && $(grep -c '' "$out_file") == 24 ]] || fail "not six tables"
}

@test "where nothing was timed, there is no table, and the reason is told" {
	bench loopback -d "$DEVICE" --format perftest-lat -s 64 -n 5 -t 16 --signal half,io
	[[ $status == 1 && $(grep -c '#bytes' "$out_file") == 1 ]] || fail "not one table and status 1"
	[[ $err == *'run 1 of 2 is not in the table: no latency was measured'*'--signal io'* ]] || fail "no reason"
}

@test "a run that failed has no table" {
	bench loopback -d "$DEVICE" --format perftest -s 64 --sq-depth 1 -n 5
	complained 1 'run 1 of 1'
	[[ -z $out ]] || fail "a table"
}

teardown() {
	end_server
}
