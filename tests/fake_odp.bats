#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Memory on demand on the test double: rows, what they count, and why there is none.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench

setup() {
	export FAKEHCA='' FAKEHCA_STATS=$BATS_TEST_TMPDIR/stats
}

of_double() {
	sed -n "s/^$1=//p" "$FAKEHCA_STATS"
}

@test "direct and rpc mode, every operation, with prefetching and without, verified" {
	loop 24 --mode direct,rpc --op read,write,send --strategy odp,odp-implicit --odp-prefetch all --frags 16 -s 9000 \
		--depth 4 -n 40 --verify --rnr-retry 0
	rows "$out_file" 24 'f("iterations") == 40 && f("engine") == (f("strategy") == "odp" ? "explicit" : "implicit")'
	loop 6 --op read,write,send --strategy odp,odp-implicit --odp-prefetch io --frags 3 -s 700 --bidir -n 40 --verify
	loop 4 --mode rpc --op read,write --strategy odp --peer-strategy odp,odp-implicit --odp-prefetch io --frags 3 -s 700 \
		-n 40 --verify
}

@test "nothing is pinned but what is fixed, and the row tells it from memory that is" {
	loop 3 --op write --strategy global,odp,odp-implicit -s 1m --depth 8 -n 20
	rows "$out_file" 3 'f("strategy") == "global" ? f("pinned_bytes") >= 8 * 1048576 : f("pinned_bytes") < 65536'
	rows "$out_file" 3 'f("mr_count") >= 1'
}

@test "what lies open: all declared memory, or all the process has" {
	loop 3 --mode rpc --op write --strategy global,odp,odp-implicit -s 8k --depth 4 -n 50
	rows "$out_file" 3 'f("revoke") == "none" && f("exposure_scope") == "pd" && f("open_after_us_p50") == "" && \
		f("exposed_bytes_avg") == f("exposed_bytes_peak") && \
		f("exposed_bytes_peak") == (f("strategy") == "odp-implicit" ? 2 ^ 47 : 4 * 8192)'
	loop 2 --mode rpc --op send --strategy odp,odp-implicit -s 8k --depth 4 -n 50
	rows "$out_file" 2 'f("exposed_bytes_peak") == 0'
}

@test "--odp-prefetch io: a call for each I/O, and all its bytes" {
	loop 1 --op write --strategy odp --odp-prefetch io -s 600 --frags 3 -n 500 --warmup 0
	# One more, by which it was found out that the device takes advice.
	[[ $(of_double advices) == 501 && $(of_double prefetched) == $((500 * 600 + 1)) ]] || fail "$(cat "$FAKEHCA_STATS")"
	loop 1 --mode rpc --op read --strategy odp --odp-prefetch io -s 600 --frags 3 -n 500 --warmup 0
	[[ $(of_double advices) == 501 && $(of_double prefetched) == $((500 * 600 + 1)) ]] || fail "$(cat "$FAKEHCA_STATS")"
	loop 1 --mode rpc --op read --peer-strategy odp --odp-prefetch io -s 600 --frags 3 -n 500 --warmup 0
	(($(of_double advices) == 501)) || fail "$(cat "$FAKEHCA_STATS")"
	loop 1 --op write --strategy odp -s 600 --frags 3 -n 500
	[[ $(of_double advices) == 0 ]] || fail "$(cat "$FAKEHCA_STATS")"
}

@test "a device that takes no advice: the rows with --odp-prefetch io are skipped, the others are not" {
	FAKEHCA=no_advice=1 bench loopback -d fake0 --mode direct,rpc --strategy odp --odp-prefetch off,io -n 20 --format csv
	ended 0
	rows "$out_file" 4 'f("opts") ~ /odp-prefetch=io/ ? f("status") == "skipped" && f("reason") ~ /takes no advice about pages/ \
		: f("status") == "ok"'
	FAKEHCA=no_advice=1 bench loopback -d fake0 --mode rpc --peer-strategy odp --odp-prefetch io -n 20 --format csv
	ended 1
	rows "$out_file" 1 'f("status") == "skipped" && f("reason") ~ /^the server side: fake0.* takes no advice/'
}

@test "--odp-prefetch io without anything on demand: skipped, in words" {
	bench loopback -d fake0 --mode direct,rpc --strategy global,per-io,odp --odp-prefetch io -n 20 --format csv
	ended 0
	rows "$out_file" 6 'f("strategy") == "odp" ? f("status") == "ok" : f("status") == "skipped" && \
		f("reason") == "--odp-prefetch io is for memory paged on demand; and " f("strategy") " pins it"'
}

@test "what a device cannot: skipped with the reason; of nothing else a run is no success" {
	FAKEHCA=odp=0 bench loopback -d fake0 --strategy global,odp,odp-implicit -n 20 --format csv
	ended 0
	rows "$out_file" 3 'f("strategy") == "global" ? f("status") == "ok" : f("status") == "skipped" && \
		f("reason") ~ /^fake0 has no on-demand paging .odp_caps/'
	FAKEHCA=odp_implicit=0 bench loopback -d fake0 --strategy odp,odp-implicit -n 20 --format csv
	ended 0
	rows "$out_file" 2 'f("strategy") == "odp" ? f("status") == "ok" : f("reason") ~ /no region over all of the address space/'
	FAKEHCA=odp=11 bench loopback -d fake0 --strategy odp -n 20 --format csv
	ended 1
	rows "$out_file" 1 'f("status") == "skipped" && f("reason") ~ /not for a WRITE of a reliable connection .rc_odp_caps 0xb/'
	FAKEHCA=iwarp=1 bench loopback -d fake0 --strategy odp -n 20 --format csv
	ended 1
	rows "$out_file" 1 'f("status") == "skipped"'
}

# No device that this was written on counts them in a way that we read.
@test "page faults: empty fields, and no zeros" {
	loop 1 --strategy odp -n 20
	rows "$out_file" 1 'f("odp_faults_per_io") == "" && f("peer_odp_faults_per_io") == ""'
}
