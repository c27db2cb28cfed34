#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What is different over iWARP, on the test double, which refuses a READ whose bytes go where the peer may not
# write: where READs may go, what READs there cost, and when a run of WRITEs is over.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench

LIMIT=60
export FAKEHCA=iwarp=1 FAKEHCA_STATS=$BATS_TEST_TMPDIR/stats

# counted NAME VALUE: by the double.
counted() {
	local is
	is=$(sed -n "s/^$1=//p" "$FAKEHCA_STATS")
	[[ $is == "$2" ]] || fail "the double counted $1=$is, not $2"
}

# sweep N CONDITION ARG...: N rows, skipped ones among them.
sweep() {
	bench loopback -d fake0 --frags 3 -s 777 -n 20 --verify --format csv "${@:3}"
	ended 0
	rows "$out_file" "$1" "$2"
}

# Memory that lies open to the peer's writes for longer than an I/O is no place for READs.
refused='f("status") == "skipped" && f("iterations") == "" && f("reason") ~ "(registers memory whole|keeps what it registered): over iWARP .*--unsafe-global-sink"'
refused_here="$refused && f(\"reason\") ~ \"^\" f(\"strategy\") \" \""
refused_there="$refused && f(\"reason\") ~ \"^the server side: \" f(\"peer_strategy\") \" \""
lacks='f("status") == "skipped" && f("reason") ~ /frwr (has no key for local use|takes memory windows)|frwr-umr |no on-demand paging/'

@test "direct mode: READs under strategies that bind the peer's right to the I/O alone" {
	sweep 27 "f(\"strategy\") ~ /^(frwr|odp)/ ? $lacks : f(\"op\") == \"read\" && f(\"strategy\") ~ /^(global|multi-wr|rcache)\$/ ? \
		$refused_here : f(\"status\") == \"ok\"" --op read,write,send --strategy all
	bench loopback -d fake0 --op read --bidir -n 5 --format csv
	ended 1
	rows "$out_file" 1 "$refused_here"
	counted reg_mr 0
}

@test "rpc mode: the server READs under strategies that bind the client's right to the I/O alone" {
	sweep 27 "f(\"peer_strategy\") ~ /^(frwr|odp)/ ? $lacks : f(\"op\") == \"read\" && \
		f(\"peer_strategy\") ~ /^(global|multi-wr|rcache)\$/ ? $refused_there : f(\"status\") == \"ok\"" \
		--mode rpc --op read,write,send --peer-strategy all
}

@test "rpc mode: how the server registers its memory where it is not told; the row says so" {
	sweep 3 'f("status") == "ok" && f("peer_strategy") == (f("op") == "read" ? "bounce" : "global") && \
		f("opts") !~ /peer-strategy/' --mode rpc --op read,write,send
	sweep 1 'f("status") == "ok" && f("peer_strategy") == "global"' --mode rpc --op read --inline-threshold 1k
	sweep 1 'f("status") == "ok" && f("peer_strategy") == "bounce"' --mode rpc --op read --unsafe-global-sink
	FAKEHCA='' sweep 3 'f("status") == "ok" && f("peer_strategy") == "global"' --mode rpc --op read,write,send
	FAKEHCA='' sweep 1 'f("peer_strategy") == "global" && f("opts") ~ /peer-strategy=global/' --mode rpc --peer-strategy global
}

@test "--unsafe-global-sink: READs to where all lies open; each row says that it was allowed" {
	sweep 2 'f("status") == "ok" && f("opts") ~ /unsafe-global-sink=yes/' --unsafe-global-sink --op read --strategy global,multi-wr
	sweep 2 'f("status") == "ok" && f("opts") ~ /unsafe-global-sink=yes/' --unsafe-global-sink --mode rpc --op read \
		--peer-strategy global,multi-wr
	sweep 1 'f("status") == "ok"' --unsafe-global-sink --op read --strategy global --bidir
}

@test "elsewhere nothing is refused" {
	FAKEHCA='' sweep 2 'f("status") == "ok"' --op read --strategy global,multi-wr
	FAKEHCA='' sweep 2 'f("status") == "ok"' --mode rpc --op read --peer-strategy global,multi-wr
}

@test "a READ of one SGE: a WR for each fragment, or one for a buffer; in both modes" {
	FAKEHCA=iwarp=1,max_sge_rd=1 sweep 3 'f("status") == "ok" && f("sqe_per_io") == (f("strategy") == "bounce" ? 1 : 3)' \
		--unsafe-global-sink --op read --strategy global,per-io,bounce
	FAKEHCA=iwarp=1,max_sge_rd=1 sweep 3 'f("status") == "ok" && f("peer_sqe_per_io") == 4' --unsafe-global-sink --mode rpc \
		--op read --peer-strategy global,per-io,bounce
}

# The clock stops when a byte has been fetched from behind the last WRITE: of each QP, of warm-up and timed part.
@test "a run of WRITEs ends with a READ, whatever the tail, and with its time; READs and SENDs do not" {
	local signal
	for signal in all half; do
		FAKEHCA=iwarp=1,read_lag=20 loop 1 --op write -s 300 -n 50 --qps 3 --signal $signal
		counted bytes_read 6
		rows "$out_file" 1 'f("sqe_per_io") == 1 && f("sqe_read_per_io") == 0'
	done
	loop 1 --op write -s 300 -n 50 --bidir
	counted bytes_read 4
	loop 1 --op send -s 300 -n 50
	counted bytes_read 0
	FAKEHCA='' loop 1 --op write -s 300 -n 50
	counted bytes_read 0
	FAKEHCA=iwarp=1,read_lag=1000000 loop 1 --op write -s 300 -n 5 --warmup 0 --signal all
	rows "$out_file" 1 'f("seconds") > 0.002 && f("samples") == 0 && f("lat_avg_us") == ""'
}
