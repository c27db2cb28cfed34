#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The server and the client under valgrind, on the test double: no use of what was never written, and
# nothing lost, whatever becomes of a session. Both in one process where there are runs
# (rxfer-bench-both), each by itself where it is about peers that are none. By `make check-valgrind`.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
program=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
both=${RXFER_BENCH_BOTH:-$PWD/tests/rxfer-bench-both}
RXFER_BENCH=$program
RXFER_DEV=fake0
load vm/bench

export FAKEHCA=real_clock=1
LIMIT=60 HOST=127.0.0.1
dir=$BATS_TEST_TMPDIR

# hwloc cannot ask the CPU there, and says so.
setup() {
	command -v valgrind >/dev/null || skip "there is no valgrind"
	! grep -qaE '__[at]san_init' "$program" || skip "built with a sanitizer"
	export HWLOC_COMPONENTS=-x86
	grind="valgrind $VALGRIND_FLAGS --fair-sched=yes"
	PORT=$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1)->sockport')
}

teardown() {
	end_server
}

# both "WIDTH SESSIONS ROUNDS" "SERVER-OPTION..." CLIENT-OPTION...: in direct mode, if these do not say it.
both() {
	local shape=$1 server=$2
	shift 2
	[[ $* == *--mode* ]] || set -- --mode direct "$@"
	rm -f "$dir"/rows-*.csv
	# shellcheck disable=SC2086 # words
	RXFER_BENCH=$both with "$grind" $shape "$dir" -d fake0 -p "$PORT" $server -- \
		-d fake0 -p "$PORT" --warmup 0 --format csv -s 700 "$@" "$HOST"
	out=''
}

# all_rows N CONDITION: of all clients together; and valgrind had nothing to say.
all_rows() {
	[[ $status == 0 && $err != *==[0-9]*==* ]] || fail "status $status" || return 1
	{ head -n 1 "$dir/rows-0.csv"; tail -qn +2 "$dir"/rows-*.csv; } >"$dir/all.csv"
	rows "$dir/all.csv" "$@"
}

# The server by itself, under valgrind; the program is its last words.
serve_ground() {
	printf '#!/bin/bash\nexec %s %q "$@"\n' "$grind" "$program" >"$dir/ground"
	chmod +x "$dir/ground"
	RXFER_BENCH=$dir/ground serve "$@"
}

visit() {
	visits=$("$BATS_TEST_DIRNAME/vm/visitor.pl" "$HOST" "$PORT" "$@" 3>&-)
}

@test "sessions with runs side by side: every operation and strategy, both directions, verified" {
	both '2 2 1' '' --op read,write,write-imm,send --strategy global,multi-wr,per-io --frags 3 --qps 2 -n 6 -e --depth 3 --verify
	all_rows 48 'f("status") == "ok" && f("iterations") == 12'
	both '2 1 1' '' --op write,send --bidir --strategy per-io -n 6 -e
	all_rows 4 'f("status") == "ok" && f("peer_iterations") == 6'
	both '2 2 1' '' --mode rpc --op read,write,send --strategy "$(every)" --frags 3 --qps 2 -n 6 -e --depth 3 --verify
	all_rows 96 'f("status") == (f("strategy") f("op") == "frwrsend" ? "skipped" : "ok") && \
		(f("status") == "skipped" || f("iterations") == 12)'
}

@test "sessions whose runs fail: beyond a limit, out of memory, at a device that refuses" {
	both '2 2 1' '--max-memory 100k' --op write --rd-atomic 0,200 --depth 1,200 -n 6 -e
	all_rows 16 'f("status") == (f("opts") ~ /rd-atomic=200|depth=200/ ? "failed" : "ok")'
	FAKEHCA=real_clock=1,fail_create_qp=5,fail_create_qp_with=12,fail_wr=9,fail_wr_with=12 \
		both '2 1 1' '' --op write,send --strategy per-io --frags 3 --qps 2 -n 9 -e
	all_rows 4 'f("status") == "ok" || f("reason") != ""'
	grep -q ',failed,' "$dir/all.csv"
}

@test "SIGTERM with runs in progress" {
	local how
	for how in '--op write --strategy per-io' '--op send --bidir -e' '--mode rpc --op write --strategy per-io'; do
		# shellcheck disable=SC2086 # words
		BOTH_STOP_AFTER=200 both '2 1 1' '' -n 100000000 $how
		all_rows 2 'f("status") == "failed" && f("reason") ~ /the server was told to stop/'
	done
}

@test "the server, with peers of every kind, and told to stop with some of them there" {
	serve_ground --max-sessions 20 --max-memory 4m --timeout 5s
	visit 17 polite nobody half leaver wrong refuser write send http tls huge rude polite write wrong half polite
	[[ $(grep -c 'polite: ok' <<<"$visits") == 3 ]] || fail "$visits"
	"$BATS_TEST_DIRNAME/vm/visitor.pl" "$HOST" "$PORT" 3 stays holds stays >"$dir/kept" 3>&- &
	wait_until 10 grep -q holds "$dir/kept"
	server_ends
	! grep '^==' "$dir/server.err" || fail "valgrind found something"
	grep -q 'told to stop, [1-9]' "$dir/server.err"
}

@test "the client: no server, one that is none, one that turns it away" {
	with "$grind" client -d fake0 -p "$PORT" --timeout 2s "$HOST"
	refused 1 'no rxfer-bench server at'
	stand_in 'print $c "HTTP/1.0 400 no\r\n\r\n"; sysread $c, my $x, 9999'
	with "$grind" client -d fake0 -p "$PORT" --timeout 2s "$HOST"
	complained 1 'HTTP'
	end_server
	serve --max-memory 1k
	with "$grind" client -d fake0 -p "$PORT" -n 1 --format csv "$HOST"
	complained 1 'which may have 1.0 KiB'
	server_ends
}
