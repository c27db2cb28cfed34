#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Sessions with runs, side by side, on the test double: a server and its clients in one process
# (rxfer-bench-both), since the double joins no others. It ends with status 70 where anything of the
# device is left. The control port alone is the matter of fake_server.bats, the same over software
# RDMA and with processes of their own that of tests/vm/server.bats.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_BOTH:-$PWD/tests/rxfer-bench-both}
RXFER_DEV=fake0
load vm/bench

export FAKEHCA=real_clock=1
LIMIT=60
dir=$BATS_TEST_TMPDIR

setup() {
	PORT=$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1)->sockport')
}

# both "WIDTH SESSIONS ROUNDS" "SERVER-OPTION..." CLIENT-OPTION...: in direct mode, if these do not say it.
both() {
	local shape=$1 server=$2
	shift 2
	[[ $* == *--mode* ]] || set -- --mode direct "$@"
	rm -f "$dir"/rows-*.csv
	# shellcheck disable=SC2086 # words
	bench $shape "$dir" -d fake0 -p "$PORT" $server -- -d fake0 -p "$PORT" --warmup 0 --format csv "$@" 127.0.0.1
	out='' err=$(grep -v ': begins, client on ' "$err_file" | tail -n 8)
}

# all_rows N CONDITION: of all clients together, as rows() has it.
all_rows() {
	{ head -n 1 "$dir/rows-0.csv"; tail -qn +2 "$dir"/rows-*.csv; } >"$dir/all.csv"
	rows "$dir/all.csv" "$@"
}

# logged COUNT PATTERN: stderr has that many such lines.
logged() {
	local n
	n=$(grep -cE -- "$2" "$err_file") || true
	((n == $1)) || fail "$n lines instead of $1: $2"
}

# round N WHAT: the number in front of that word, of that round.
round() {
	sed -nE "s/^round $1: (.* )?([0-9]+) $2.*/\2/p" "$out_file"
}

# Neither keeps to itself what is freed.
sanitized() {
	grep -qaE '__(asan|tsan)_init' "$RXFER_BENCH"
}

# Memory is what malloc() has not got back: the process keeps stacks and arenas of threads that are gone.
# With a sanitizer, which is slow and keeps memory to itself, it is a fifth of them.
@test "a thousand sessions with three runs each, four at a time: no descriptor, memory or queue pair more than after two hundred" {
	local n files heap each=50
	! sanitized || each=10
	MALLOC_ARENA_MAX=2 both "4 $each 5" '' --op read,write,send --strategy per-io --qps 2 -s 4k -n 8 -e
	[[ $status == 0 ]] || fail "status $status"
	all_rows $((60 * each)) 'f("status") == "ok" && f("iterations") == 16'
	logged $((20 * each)) ': ends after 3 runs$'
	logged $((60 * each)) ': run [123] \(.*\): 16 I/Os, '
	files=$(round 1 files) heap=$(round 1 bytes)
	for n in 1 2 3 4 5; do
		[[ $(round $n sessions) == $((4 * each)) && $(round $n files) == "$files" ]] || fail "round $n"
		grep -qx "round $n: .*, left: " "$out_file" || fail "left behind in round $n"
	done
	echo "after 200: $files files, $heap bytes; after 1000: $(round 5 files) files, $(round 5 bytes) bytes"
	sanitized || (($(round 5 bytes) <= heap + 65536)) || fail "from $heap bytes to $(round 5 bytes)"
}

# bats test_tags=threads
@test "side by side: every operation and strategy, in both directions, verified" {
	both '3 2 1' '' --op read,write,send --strategy global,multi-wr,per-io --frags 3 --qps 2 -s 700 -n 20 -e --verify
	[[ $status == 0 ]]
	all_rows 54 'f("status") == "ok" && f("verify") == "yes" && f("iterations") == 40'
	both '3 2 1' '' --op read,write,send --bidir --strategy per-io -s 700 -n 20 -e --verify
	[[ $status == 0 ]]
	all_rows 18 'f("status") == "ok" && f("peer_iterations") == 20'
	logged 18 ': run [123] \(.*\): 40 I/Os, '
	both '3 2 1' '' --mode rpc --op read,write,send --strategy "$(every)" --frags 3 --qps 2 -s 700 -n 20 -e --verify
	[[ $status == 0 ]]
	all_rows 144 'f("verify") == "yes" && (f("strategy") == "frwr" && f("op") == "send" ? f("status") == "skipped" \
		&& f("reason") ~ /^frwr has no key for local use/ : f("status") == "ok" && f("iterations") == 40)'
	both '2 1 1' '' --op write,send --poll yield -n 20 --depth 4
	all_rows 4 'f("status") == "ok" && f("iterations") == 20'
}

# Of each session the second run is refused, and the third has a session of its own.
# bats test_tags=threads
@test "side by side: runs that fail in one session are not felt in another" {
	both '3 2 1' '' --op write --rd-atomic 0,200 --frag-gap 1,2 -s 4k -n 20 -e
	[[ $status == 0 ]]
	all_rows 24 'f("status") == (f("opts") ~ /rd-atomic=200/ ? "failed" : "ok")'
	logged 12 ': run [12] \(.*op=.*\): 20 I/Os, '
	logged 12 ': ended after (0 runs|1 run): .* is more than '
}

# Each has six runs, of which one meets it.
# bats test_tags=threads
@test "side by side: a registration that fails in mid-run, at either end, ends that run alone" {
	local how
	for how in '--strategy per-io' '--strategy global --peer-strategy per-io'; do
		# shellcheck disable=SC2086 # words
		FAKEHCA=real_clock=1,fail_reg_mr=1000,fail_reg_mr_with=12 both '3 2 1' '' --mode rpc --op read,write,send \
			--frags 3 -s 4k -n 100 -e $how
		[[ $status == 0 ]]
		all_rows 18 'f("status") == "ok" ? f("iterations") == 100 : f("reason") ~ /ibv_reg_mr of .* on fake0: Cannot allocate memory/'
		[[ $(grep -c ',failed,' "$dir/all.csv") == 1 ]] || fail "not one of them"
	done
}

# A run takes 1 MiB of the server's: two find room, and who comes third is refused. The last session's is
# back when that is over, a moment after its client has gone: hence rounds.
# bats test_tags=threads
@test "side by side: --max-memory is never overdrawn, and all of it is there again" {
	both '4 6 2' '--max-memory 2560k' --op write -s 64k --depth 16 -n 100 -e
	[[ $status == 0 ]]
	all_rows 48 'f("status") == "ok" || f("reason") ~ /takes 1.0 MiB on the server; and other sessions have 2.0 MiB of the 2.5 MiB/'
	grep -q ',ok,' "$dir/all.csv"
	both '1 1 4' '--max-memory 1m' --op write -s 64k --depth 16 -n 20
	[[ $status == 0 ]]
	all_rows 4 'f("status") == "ok"'
}

# told SESSIONS: each run in progress was told, and the server's log says so.
told() {
	[[ $status == 0 ]] || fail "status $status"
	all_rows "$1" 'f("status") == "failed" && f("reason") ~ /the server was told to stop/'
	logged 1 "server: told to stop, [0-9]+ sessions? to end"
	logged "$1" ': run 1 \(.*\) failed: the server was told to stop'
	logged "$1" ': ended after 0 runs: the server was told to stop'
	logged 0 'did not end within'
}

# bats test_tags=threads
@test "SIGTERM with runs in progress: each is told, its row says so, and the server ends at once with status 0" {
	local how begin
	for how in '--op write' '--op read --qps 2 --strategy per-io --frags 3' '--op send -e' '--op send --bidir' \
		'--op write --bidir --verify -s 4k' '--op write --rate 2000' \
		'--mode rpc --op write' '--mode rpc --op read --strategy per-io --frags 3 -e'; do
		begin=$SECONDS
		# shellcheck disable=SC2086 # words
		BOTH_STOP_AFTER=2000 both '3 1 1' '' -s 512 -n 100000000 $how
		told 3
		((SECONDS - begin < 10)) || fail "$how took $((SECONDS - begin)) s"
	done
}
