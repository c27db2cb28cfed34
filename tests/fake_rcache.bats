#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A cache of registrations, and working sets, on the test double: what the rows say is what it counted.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench
load vm/rcache

LIMIT=60
export FAKEHCA='' FAKEHCA_STATS=$BATS_TEST_TMPDIR/stats

# counted NAME VALUE: by the double.
counted() {
	local is
	is=$(sed -n "s/^$1=//p" "$FAKEHCA_STATS")
	[[ $is == "$2" ]] || fail "the double counted $1=$is, not $2"
}

@test "a working set below the limits: all are hits once the warm-up has been everywhere" {
	below_the_limits 100 --verify
}

@test "a working set far above: in order none is a hit, by either limit" {
	far_above_in_order 300 --verify
}

@test "far above, at random: each as often as its piece can be in the cache" {
	far_above_at_random 10000
}

@test "without a working set each slot has its place: registered once, by the double's count, too" {
	loop 1 --mode direct --op write --strategy rcache -s 4k --depth 8 -n 500 --warmup 0
	of_the_last 'f("hit_pct") == 98.4 && f("mr_count") == 8'
	counted reg_mr 9
	counted dereg_mr 9
	loop 1 --mode rpc --op write --strategy rcache --peer-strategy rcache -s 4k --depth 8 -n 200 --warmup 0
	of_the_last 'f("hit_pct") == 96 && f("peer_hit_pct") >= 92 && f("peer_hit_pct") < 100'
	loop 2 --mode rpc --op write --strategy global,per-io -s 4k -n 50
	of_the_last 'f("hit_pct") == "" && f("peer_hit_pct") == ""'
}

@test "a warm-up that has not been everywhere leaves the rest to be missed" {
	loop 2 --mode rpc,direct --op write --strategy rcache -s 4k --working-set 1m --warmup 100 -n 400
	of_the_last 'f("hit_pct") == 61'
	loop 1 --mode direct --op write --strategy rcache -s 4k --qps 2 --working-set 1m --warmup 128 -n 1000
	of_the_last 'f("hit_pct") > 99'
}

@test "merged: what adjoins is one region, and a set in one region is below any limit of regions" {
	loop 1 --mode direct --op write --strategy rcache -s 4k --working-set 1m --warmup 256 -n 1000 --rcache-max 64 --rcache-merge --verify
	of_the_last 'f("hit_pct") == 100 && f("opts") ~ /rcache-merge=yes/'
	loop 1 --mode rpc --op write --strategy rcache -s 4k --frags 16 --warmup 16 -n 50 --rcache-merge --verify
	of_the_last 'f("hit_pct") == 100'
	loop 1 --mode direct --op write --strategy rcache -s 4k --working-set 1m --warmup 256 -n 1000 --rcache-merge --rcache-max-bytes 128k
	of_the_last 'f("hit_pct") == 0'
}

@test "every strategy, order and op in a working set: verified" {
	local op set=(--working-set 512k --access all --frags 3 -s 5000 -n 60 --verify)
	for op in read write; do
		loop $((3 * $(strategies))) --mode rpc --op $op --strategy "$(every)" "${set[@]}"
	done
	loop 12 --mode rpc --op send --strategy global,multi-wr,per-io,rcache "${set[@]}"
	loop 48 --mode direct --op all --strategy global,multi-wr,per-io,rcache "${set[@]}"
}

@test "a working set with what else there is: data in messages, both ways, a rate" {
	local set=(--working-set 512k --access zipf -s 2k -n 60 --verify)
	loop 12 --mode rpc --op write,read --strategy per-io,multi-wr,rcache --inline-threshold 0,2k "${set[@]}"
	loop 4 --mode direct --op write,send --strategy global,rcache --bidir "${set[@]}"
	loop 2 --mode rpc,direct --op write --strategy rcache --rate 100000 "${set[@]}"
	loop 4 --mode rpc --op read,write --strategy frwr --revoke sync,lazy "${set[@]}"
}

@test "over iWARP, and whatever the schedule: READs into cached memory, verified" {
	local how
	for how in iwarp=1,read_lag=20,early_sends=1 seed=7,cq_order=3 sq_delay=40,rq_delay=40; do
		FAKEHCA=$how loop 6 --mode rpc,direct --op read,write,send --strategy rcache --unsafe-global-sink --frags 4 \
			--working-set 512k --access zipf -n 60 -s 4k --rcache-max 20 --verify
		FAKEHCA=$how loop 2 --mode rpc --op read,write --peer-strategy rcache --unsafe-global-sink --frags 4 -s 4k -n 60 --rcache-max 20 --verify
	done
}

@test "exposed is what is kept, in whole pages: after the warm-up all of the set, or the limit" {
	loop 1 --mode rpc --op write --strategy rcache -s 4k --working-set 256k --warmup 64 -n 100
	of_the_last 'f("exposed_bytes_avg") == 262144 && f("exposed_bytes_peak") == 262144 && f("open_after_us_p50") == ""'
	loop 1 --mode rpc --op write --strategy rcache -s 4k --working-set 256k --warmup 64 -n 100 --rcache-max 16
	of_the_last 'f("exposed_bytes_peak") <= 65536 + 4096 && f("exposed_bytes_avg") > 60000'
}

# The double gives so many regions, of which messages and the other end have some.
@test "a device that has no room for more: others go, and the run goes on" {
	FAKEHCA=max_mr=20 loop 2 --mode rpc,direct --op write --strategy rcache -s 4k --depth 4 --working-set 256k --warmup 64 -n 300 \
		--access rand --verify
	of_the_last 'f("hit_pct") > 5 && f("hit_pct") < 40'
	FAKEHCA=max_mr=6 bench loopback -d fake0 --mode direct --op write --strategy rcache -s 4k --depth 8 -n 50 --format csv
	complained 1 'ibv_reg_mr of 4.0 KiB on fake0: Cannot allocate memory'
}

@test "refused: limits below one I/O, sets smaller than what is in flight, orders of nothing" {
	bench loopback -d fake0 --strategy rcache --frags 16 -s 4k --rcache-max 15 --format csv
	complained 1 'an I/O needs 16 regions at once, and --rcache-max 15 allows fewer: make it 16 or more, or take fewer --frags'
	bench loopback -d fake0 --mode rpc --peer-strategy rcache --op write -s 5000 --rcache-max-bytes 4k --format csv
	complained 1 'an I/O needs regions of 8192 bytes, in whole pages, and --rcache-max-bytes 4096 allows fewer: make it 8192 or more'
	loop 1 --strategy rcache --frags 16 --frag-gap 0 -s 4k --rcache-max 1 --rcache-max-bytes 4k -n 50
	loop 1 --strategy global --frags 16 -s 4k --rcache-max 1 -n 50
	bench loopback -d fake0 -s 64k --depth 17 --working-set 1m
	refused 2 '1048576 bytes has 16 pieces of 65536 bytes, one for an I/O, and 17 I/Os are in flight .qps x depth.; take 1114112'
	bench loopback -d fake0 --access zipf
	refused 2 'contradiction: --access zipf, --working-set 0: '
	loop 2 --mode rpc,direct -s 64k --depth 16 --working-set 1m -n 50 --verify
}

@test "pinned is the set, and the CSV says what was asked" {
	loop 1 --mode direct --op write --strategy global -s 4k --depth 4 -n 50 --working-set 1m --access rand
	of_the_last 'f("opts") ~ /working-set=1m access=rand/ && f("pinned_bytes") == 1048576'
}
