#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Attempts of the peer on the test double, which is as strict as the strictest hardware, and can be
# made to let in whom it should not. Each fault must show in just the rows that it is about.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench
load vm/fence

LIMIT=60
CELLS=168 OPEN=5

# fence SETTINGS ARG...: of the double; of the strategies that any device may have, if these do not say it.
fence() {
	local settings=$1
	shift
	[[ $* == *--strategy* ]] || set -- --strategy "$(every)" "$@"
	FAKEHCA=$settings bench fence -d fake0 --format csv "$@"
}

# bats test_tags=threads
@test "all strategies, all modes: each cell is as it must be" {
	fence ''
	ended 0
	rows "$out_file" "$CELLS" 'f("verdict") == "ok" && f("observed") == f("expected") && f("note") == "" && \
		f("device") == "fake0" && f("emulated") == "test double"'
	as_the_rules_say
}

@test "sizes: a byte, what ends in mid-page, pages; each list in full" {
	fence '' --size 1,100,4095,4k,100k --strategy global,frwr --revoke none,sync,lazy
	ended 0
	rows "$out_file" "$((5 * (13 + 15 + 17) + 3))" 'f("verdict") == "ok" || f("verdict") == "skipped"'
	[[ $(awk -F, 'f != $4 && $4 != "" && $4 != "bytes" { f = $4; printf "%s ", f }' "$out_file" | head -c 22) == '1 100 4095 4096 102400' ]] ||
		fail "other sizes"
}

@test "a cache of regions: open for good, and so is the rest of an I/O's last page; other pages are not" {
	fence '' --size 1,4095,4k,5000,64k --strategy rcache
	ended 0
	rows "$out_file" 65 "f(\"verdict\") == \"ok\" && f(\"revoke\") == \"none\" && f(\"observed\") == f(\"expected\") && $as_expected"
	[[ $(grep -c ',after,during,open,open,' "$out_file") == 6 && $(grep -c ',after,during,closed,closed,' "$out_file") == 4 ]] ||
		fail "other rests of pages"
	FAKEHCA='' bench fence -d fake0 --strategy rcache -s 5000
	ended 0
	says '13 cells: 13 as expected, 0 differ.'
	says 'rcache: the peer can use the key at any time, and reach what is in the same page.'
}

@test "windows that do not keep to their bounds: before and after are open, and nothing else differs" {
	fence mw_wide=1
	ended 1
	rows "$out_file" "$CELLS" "$beyond_windows"
	fence mw_wide=1 --strategy global,multi-wr,per-io
	ended 0
	FAKEHCA=mw_wide=1 bench fence -d fake0 --strategy frwr --revoke sync
	ended 1
	says 'frwr     sync   write 65536   after           during   closed   open     differs'
	says '15 cells: 11 as expected, 4 differ.'
	says "frwr: the peer can reach memory beyond an I/O's: this device does not keep to a key's bounds."
	[[ $out != *'at any time'* ]] || fail "said of frwr"
}

@test "windows that a revoke does not close: open at the stage that proves it" {
	fence mw_stays=1 --strategy frwr --revoke sync,async,remote
	ended 1
	rows "$out_file" "$((15 + 17 + 15))" '(f("verdict") == "differs") == (f("attempt") == "use" && f("expected") == "closed") && \
		(f("verdict") == "ok" || f("observed") == "open")'
	# Nor can the next I/O have it: a row that failed, with the device's words.
	fence mw_stays=1 --strategy frwr --revoke lazy
	ended 1
	rows "$out_file" 17 '(f("verdict") == "differs") == (f("stage") == "revoked") && \
		(f("verdict") == "ok" || f("observed") == "failed" && f("note") ~ /^BIND_MW failed: IBV_WC_MW_BIND_ERR/)'
}

# The first WR is the request, the second the attempt.
@test "an attempt that fails otherwise is no closed door, and a request that fails is a row; the others go on" {
	local nth
	for nth in 1 2; do
		fence fail_wr=$nth,fail_wr_with=12 --strategy per-io
		ended 1
		rows "$out_file" 28 'NR == 2 ? f("verdict") == "differs" && f("observed") == "failed" && f("note") ~ /IBV_WC_RETRY_EXC_ERR/ \
			: f("verdict") == "ok"'
	done
	# What is refused for another reason where a refusal is expected: the 3rd cell is that.
	fence fail_wr=8,fail_wr_with=11 --strategy per-io
	ended 1
	rows "$out_file" 28 '(f("verdict") == "differs") == (f("observed") == "failed")'
	[[ $(grep -c ',failed,' "$out_file") == 1 ]] || fail "not one failure"
}

@test "a reply that is to revoke a key, and does not say so: no cell behind it, since a second revoke may do harm" {
	fence inv_flag_wrong=1 --strategy frwr --revoke remote
	ended 1
	rows "$out_file" 15 'f("stage") == "during" ? f("verdict") == "ok" : f("observed") == "failed" && \
		f("note") ~ /^the reply revoked no key/'
}

@test "what a device lacks, and what a strategy lacks: skipped rows with the reason" {
	fence max_mw=0
	ended 0
	rows "$out_file" 108 'f("verdict") == (f("strategy") == "frwr" ? "skipped" : "ok") && \
		(f("verdict") == "ok") == (f("note") == "")'
	rows "$out_file" 108 'f("strategy") != "frwr" || f("note") ~ /^frwr takes memory windows/ && f("attempt") == "" && f("observed") == ""'
	fence max_mw=0 --strategy frwr
	ended 1
	rows "$out_file" 4 'f("verdict") == "skipped"'
	fence '' --strategy global,per-io --revoke sync
	ended 0
	rows "$out_file" 14 'f("strategy") == "global" ? f("note") ~ /^global has no key of its own/ : f("verdict") == "ok"'
}

@test "iWARP: the same of what it has" {
	fence iwarp=1
	ended 0
	rows "$out_file" 84 'f("strategy") ~ /^(frwr|odp|odp-implicit)$/ ? f("verdict") == "skipped" : f("verdict") == "ok"'
}

@test "whatever the device's schedule: completions late, in another order, READs that lag" {
	local how
	for how in seed=7,cq_order=3 sq_delay=40 rq_delay=40 read_lag=30 cq_order=2,sq_delay=9 sq_extra=5,poll_every=7; do
		fence "$how" --size 5000
		ended 0
		rows "$out_file" "$CELLS" 'f("verdict") == "ok"'
	done
}

@test "the table says what global is, and what device it was" {
	FAKEHCA='' bench fence loopback -d fake0 --strategy global,multi-wr
	ended 0
	says '26 cells: 26 as expected, 0 differ.'
	says 'global: the peer can use the key at any time, and reach all declared memory.'
	says 'multi-wr: the peer can use the key at any time, and reach all declared memory.'
	says 'device fake0, driver fake, transport RoCE, mtu 1024, emulated test double'
	[[ $out == *'Warning:'* ]] || fail "no warning"
}

@test "--debug shows the messages, and no token" {
	FAKEHCA='' bench fence -d fake0 --strategy per-io --revoke sync -s 64 --debug
	[[ $status == 0 ]] || fail "status $status"
	local word
	for word in FENCE READY HOLD CONNECTED REPLY TRY TRIED STOP BYE; do
		[[ $err == *" $word: {"* ]] || fail "no $word"
	done
	[[ $err == *'(not shown)'* && ! $err =~ token\":\"[0-9a-f] ]] || fail "a token"
}
