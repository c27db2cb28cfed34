#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The whole program on the test double under valgrind: no finding and nothing lost, in runs that end
# well, that fail, and that are refused. By `make check-valgrind`, since that is slow.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench

LIMIT=60

# hwloc cannot ask the CPU there, and says so.
setup() {
	command -v valgrind >/dev/null || skip "there is no valgrind"
	! grep -qaE '__[at]san_init' "$RXFER_BENCH" || skip "built with a sanitizer"
	export HWLOC_COMPONENTS=-x86
	grind="valgrind $VALGRIND_FLAGS --fair-sched=yes"
}

# under_valgrind ARG...: the program, short runs.
under_valgrind() {
	with "$grind" loopback -d fake0 --format csv -s 700 -n 20 --depth 3 "$@"
}

@test "every operation, strategy and policy, verified" {
	under_valgrind --op read,write,send --strategy global,multi-wr,per-io --frags 3 --verify
	ended 0
	rows "$out_file" 9 'f("status") == "ok"'
	under_valgrind --mode rpc --op read,write --strategy odp,odp-implicit --odp-prefetch io --frags 3 --verify
	ended 0
	rows "$out_file" 4 'f("status") == "ok"'
	under_valgrind --mode rpc --op read,write --strategy frwr --revoke sync,async,remote,lazy --frags 3 --verify --mw-renew
	ended 0
	rows "$out_file" 8 'f("status") == "ok"'
	under_valgrind --op write,send --strategy multi-wr --frags 4 --signal all,io,every:3,half --sq-depth 5
	ended 0
	rows "$out_file" 8 'f("status") == "ok"'
}

@test "several queue pairs, sleeping, on a device that delays and reorders" {
	FAKEHCA=sq_delay=50,read_lag=20,cq_order=3,sq_extra=9 under_valgrind --op read,send --qps 3 -e --verify
	ended 0
	rows "$out_file" 2 'f("status") == "ok"'
}

@test "runs that fail half-way: posting, completing, registering, connecting" {
	local fault
	for fault in fail_post_send=5,fail_post_send_with=28 fail_wr=9,fail_wr_with=12 \
		fail_reg_mr=2,fail_reg_mr_with=12 fail_create_qp=3,fail_create_qp_with=12 \
		fail_resolve=1,fail_resolve_with=110; do
		FAKEHCA=$fault under_valgrind --op write --strategy per-io --frags 3 --qps 2 \
			--sq-depth 20
		complained 1
		rows "$out_file" 1 'f("status") == "failed"'
	done
}

@test "attempts of the peer, with windows that let him in" {
	FAKEHCA=mw_wide=1 with "$grind" fence -d fake0 --format csv -s 700 --strategy per-io,frwr --revoke async,remote,lazy
	[[ $status == 1 && -z $err ]] || fail "status $status"
	rows "$out_file" 66 'f("verdict") != "differs" || f("attempt") ~ /^(before|after)$/'
}

@test "what is refused, and what only shows something" {
	FAKEHCA=max_qp=3 under_valgrind --qps 2
	complained 1 'max_qp 3'
	under_valgrind --strategy multi-wr --frags 4 --sq-depth 4
	complained 1 '--sq-depth 5'
	under_valgrind -Q 7,,8
	refused 2 'empty element'
	with "$grind" devices
	ended 0
	with "$grind" loopback --help
	ended 0
}
