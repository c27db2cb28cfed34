#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# RPC mode on the test double: ways to run, devices of all kinds, what is reported. What an I/O is made of
# is in fake_rpc.bats.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench
load fake_rpc

LIMIT=60
export FAKEHCA='' FAKEHCA_STATS=$BATS_TEST_TMPDIR/stats
profiles=$BATS_TEST_DIRNAME/../bench/profiles

# ---- running ----

@test "several queue pairs, and every way to poll" {
	local how
	for how in busy yield event; do
		rpc 3 --op read,write,send --strategy per-io --qps 3 --poll $how -s 2000 --frags 3 -n 60 --depth 3 --verify
		rows "$out_file" 3 'f("iterations") == 60 * f("qps") && f("samples") == f("iterations")'
	done
}

@test "a run of a given time, with a count and without, timed and not" {
	rpc 3 --op read,write,send -s 64 -D 60ms
	that 'f("seconds") >= 0.06 && f("seconds") < 5 && f("iterations") > 0 && f("partial") == "no"'
	rpc 1 --op write -s 64 -D 60ms --timing off
	that 'f("seconds") >= 0.06 && f("iterations") > 0 && f("samples") == 0 && f("lat_p50_us") == ""'
	rpc 1 --op write -s 64 -D 50s -n 100
	that 'f("iterations") == 100 && f("seconds") < 20'
}

@test "rate: I/Os start when they are due, over all QPs, and latency is counted from then" {
	rpc 3 --op read,write,send -s 64 -n 50 -q 2 -t 4 --rate 1000 --warmup 0
	that 'f("iterations") == 100 && f("samples") == 100 && f("seconds") >= 0.098'
	rpc 1 --op write -s 64 -n 300 -t 1 --rate 1000000000 --warmup 0
	that 'f("lat_max_us") > f("seconds") * 1e6 * 0.9'
}

@test "SIGINT, SIGTERM: what was measured is one whole row, marked partial; status 130" {
	local op signal
	for op in read send; do
		[[ $op == read ]] && signal=INT || signal=TERM
		with "timeout --foreground --preserve-status -s $signal 2" loopback -d fake0 --mode rpc --op $op --strategy per-io -s 64 \
			-D 50s --format csv -q 2
		ended 130
		rows "$out_file" 1 'f("status") == "ok" && f("partial") == "yes" && f("iterations") > 0 && f("seconds") < 20 \
			&& f("samples") == f("iterations") && f("peer_sqe_per_io") == (f("op") == "read" ? 2 : 1)'
	done
}

@test "timing: what is not timed is empty" {
	local times='f("map_us_per_io") f("unmap_us_per_io") f("stall_us_per_io") f("unproven_us_per_io") f("unrevoked_us_per_io") f("peer_stall_us_per_io") f("peer_unproven_us_per_io") f("peer_round_wait_us_per_io")'
	rpc 2 --op write --strategy global,per-io -s 64 -n 50 --timing io
	that "($times)"' == "" && f("samples") == 50'
	rpc 2 --op write --strategy global,per-io -s 64 -n 50 --timing phases
	that "($times)"' ~ /^([0-9]+[.][0-9][0-9][0-9])+$/ && f("samples") == 50'
	that "${times// / != \"\" && } != \"\""
	rpc 2 --op read,write --strategy per-io -s 64 -n 200 --timing phases
	that 'f("map_us_per_io") > 0 && f("unmap_us_per_io") > 0 && f("map_us_per_io") < f("lat_avg_us")'
	rpc 1 --op write --strategy per-io -s 64 -n 50 --timing off
	that 'f("map_us_per_io") == "" && f("samples") == 0'
}

@test "timing: each wait has a time where it happens" {
	rpc 1 --op read --sq-depth 3 -s 64 -n 200 --timing phases
	that 'f("stalls_per_io") > 0 && f("stall_us_per_io") > 0 && f("unrevoked_per_io") == 0 && f("unrevoked_us_per_io") == 0'
	rpc 1 --op read --strategy per-io --revoke async -s 64 -n 500 --depth 2 --timing phases
	that 'f("stalls_per_io") == 0 && f("unrevoked_per_io") > 0 && f("unrevoked_us_per_io") > 0'
	FAKEHCA=sq_delay=2000 rpc 1 --op send -s 64 -n 100 --depth 2 --signal all --timing phases
	that 'f("stalls_per_io") == 0 && f("unproven_per_io") > 0 && f("unproven_us_per_io") > 0'
}

# Fragments that do not adjoin are a WR each: with room for four, 16 go in four rounds. The wait for a place
# is met where completions come late, in some of these rows.
@test "timing: the server's waits are its own" {
	rpc 4 --op read,write --frags 16 --peer-sq-depth 18,161 -s 4k -n 200 --depth 4 --timing phases
	that 'f("stalls_per_io") == 0 && f("stall_us_per_io") == 0'
	that 'f("opts") ~ /peer-sq-depth=18/ ? f("peer_stalls_per_io") > 0 && f("peer_stall_us_per_io") > 0 : \
		f("peer_stalls_per_io") == 0 && f("peer_stall_us_per_io") == 0'
	that 'f("peer_round_waits_per_io") == 0 && f("peer_round_wait_us_per_io") == 0'
	rpc 2 --op read,write --frags 16 --frag-gap 4k --peer-sq-depth 6 -s 4k -n 200 --depth 4 --timing phases
	that 'f("peer_round_waits_per_io") == 3 && f("peer_round_wait_us_per_io") > 0'
	FAKEHCA=sq_delay=2000,cq_order=2 rpc 4 --op send,write -s 64 -n 300 --depth 1,2 --signal all --timing phases
	that '(waits += f("peer_unproven_per_io")) >= 0 && f("peer_stalls_per_io") == 0 && (NR < 5 || waits > 0)'
	that '(f("peer_unproven_per_io") > 0) == (f("peer_unproven_us_per_io") > 0)'
}

@test "CPU time: of each end's own thread, and no more than there was" {
	local us
	rpc 2 --op read,send --poll busy -s 64 -D 200ms
	for us in cpu_us_per_io peer_cpu_us_per_io; do
		that "f(\"$us\") > 0 && f(\"$us\") * f(\"iterations\") < f(\"seconds\") * 1e6 + 5e4"
	done
}

# ---- devices ----

# Of a region that is named by the peer's WRITE the double wants that WRITE proven at the peer before it is
# deregistered; the reply behind it is proof enough. So where completions come late no keys are revoked
# there.
@test "devices that grant more, delay, reorder, overtake: all verified, no RECV is ever missing" {
	local device how
	for device in seed=1,sq_delay=50,read_lag=20,cq_order=3,sq_extra=9,mtu=256 seed=2,rq_delay=80,cq_order=1 \
		seed=3,max_sge=2,max_sge_rd=1,max_rd_atomic=1,cq_order=2 iwarp=1,read_lag=20,early_sends=1,sq_delay=30; do
		for how in '--op read --strategy per-io --defer slot,recv' '--op write --strategy multi-wr --defer slot,recv' \
			'--op read,send --strategy global,per-io --peer-sq-depth 4'; do
			# shellcheck disable=SC2086 # words
			FAKEHCA=$device bench loopback -d fake0 --mode rpc --unsafe-global-sink $how --frags 5 -s 3000 -n 60 --depth 7 --verify \
				--rnr-retry 0 --format csv
			ended 0
			that 'f("status") == "ok" && f("iterations") == 60 && f("verify") == "yes"'
			counted rnr_waits 0
		done
	done
	FAKEHCA=seed=2,rq_delay=80,cq_order=1 rpc 2 --op write --strategy per-io --revoke sync,async --frags 5 -s 3000 -n 60 \
		--depth 7 --verify
}

@test "--reply imm over iWARP is skipped, with the reason; a run of nothing else is no success" {
	FAKEHCA=iwarp=1 bench loopback -d fake0 --mode rpc --op write --reply imm -n 5 --format csv
	ended 1
	rows "$out_file" 1 'f("status") == "skipped" && f("reason") == "iWARP has no immediate data"'
	FAKEHCA=iwarp=1 bench loopback -d fake0 --mode rpc --op write --reply imm,send -n 50 --format csv
	ended 0
	rows "$out_file" 2 'f("status") == (f("opts") ~ /reply=imm/ ? "skipped" : "ok")'
}

@test "iWARP: an I/O's latency is told, whatever its operation" {
	FAKEHCA=iwarp=1 rpc 3 --op read,write,send -s 64 -n 100
	that 'f("samples") == 100 && f("lat_p50_us") > 0 && f("transport") == "iWARP"'
}

@test "misaligned memory and verbs' inline data, verified" {
	rpc 6 --op read,write,send --strategy global,per-io --misalign 2049 --frags 3 -s 4096 -n 60 --frag-gap 8 --verify
	rpc 3 --op read,write,send --inline 128 -s 32 -n 100 --verify
}

# ---- reports ----

@test "profiles: those that are here run" {
	rpc 6 --profile "$profiles/nfs-rdma" -n 20 --warmup 2
	that 'f("depth") == 128 && f("strategy") == "frwr" && f("peer_signal") == "io" && f("revoke") == "remote" && f("signal") == "every:16"'
	rpc 1 --profile "$profiles/o2iblnd" -n 20 --warmup 2 --verify
	that 'f("op") == "write" && f("peer_sqe_write_per_io") == 256 && f("peer_cqe_per_io") == 1 && f("peer_posts_per_io") == 1'
	rpc 1 --profile "$profiles/o2iblnd" -n 20 -s 4000 --frags 1
	that 'f("peer_sqe_per_io") == 1'
}

@test "both modes in one sweep: one CSV, in which only rpc has what only rpc has" {
	loop 12 --mode rpc,direct --op read,write,send --strategy global,per-io -s 600 -n 50 --verify
	rows "$out_file" 12 'f("mode") == (NR <= 7 ? "rpc" : "direct")'
	that 'f("mode") == "rpc" ? f("peer_signal") == "half" && f("exposed_bytes_peak") != "" && f("unproven_per_io") != "" \
		: f("revoke") f("peer_signal") f("exposed_bytes_peak") f("exposure_scope") f("unproven_per_io") f("peer_stalls_per_io") == ""'
	bench loopback -d fake0 --mode rpc,direct --op write --reply imm
	refused 2 'contradiction: --reply imm, --mode direct: only rpc mode has it'
}

@test "what rpc mode has not is refused" {
	bench loopback -d fake0 --mode rpc --op write-imm
	refused 2 'contradiction: --mode rpc, --op write-imm: ' '--op write --reply imm'
	bench loopback -d fake0 --mode rpc --bidir
	refused 2 'contradiction: --mode rpc, --bidir'
	bench loopback -d fake0 --mode rpc --op read --reply imm
	refused 2 'contradiction: --reply imm, --op read: '
	bench loopback -d fake0 --mode rpc --op write --reply imm -s 0
	refused 2 'contradiction: --reply imm, --size 0: '
	bench loopback -d fake0 --mode rpc --op write --reply imm --strategy frwr --revoke remote
	refused 2 'contradiction: --reply imm, --revoke remote: '
	bench loopback -d fake0 --mode rpc --op write --reply imm -s 64 --inline-threshold 64
	refused 2 'contradiction: --reply imm, --size 64, --inline-threshold 64: '
}

@test "perftest's formats: one table each run, with the figures of the row" {
	local csv=$BATS_TEST_TMPDIR/rows.csv op
	for op in read write send; do
		rm -f "$csv"
		bench loopback -d fake0 --mode rpc --op $op -s 4096 -n 200 --format perftest -o "$csv"
		[[ $status == 0 ]]
		figures=$(awk '$1 == 4096' "$out_file")
		rows "$csv" 1 '"'"$figures"'" ~ /^ *4096 +200 / && split("'"$figures"'", w, " ") == 5 && \
			w[3] == f("bw_peak_MiBps") && w[4] == f("bw_avg_MiBps") && w[5] == f("msg_rate_Mpps") && w[4] > 0'
		rm -f "$csv"
		bench loopback -d fake0 --mode rpc --op $op -s 4096 -n 200 --format perftest-lat -o "$csv"
		[[ $status == 0 ]]
		figures=$(awk '$1 == 4096' "$out_file")
		rows "$csv" 1 'split("'"$figures"'", w, " ") == 9 && w[2] == 200 && w[3] == sprintf("%.2f", f("lat_min_us")) && \
			w[3] <= w[5] && w[5] <= w[4] && w[6] > 0'
	done
}

@test "JSON has the row's fields, and the table its own" {
	local csv=$BATS_TEST_TMPDIR/rows.csv
	bench loopback -d fake0 --mode rpc --op read,send --strategy per-io -s 4096 -n 200 --format json -o "$csv"
	ended 0
	[[ $out == *'"mode": "rpc"'*'"revoke": "async"'*'"peer_signal": "half"'*'"exposure_scope": "pd"'*'"peer_stalls_per_io": '* ]] ||
		fail "a field is missing"
	[[ $out == *'"revoke": "async"'*'"revoke": null'*'"exposed_bytes_peak": 0'*'"exposure_scope": null'* ]] || fail "a null is missing"
	perl -MJSON::PP -0777 -ne 'exit(@{JSON::PP->new->decode($_)->{rows}} != 2)' "$out_file"
	rows "$csv" 2 'f("status") == "ok" && f("mode") == "rpc"'
	bench loopback -d fake0 --mode rpc --op read -s 4096 -n 200
	ended 0
	[[ $out == *'mode rpc'* && $out != *'Both directions'* ]] || fail "another table"
}

@test "a RECV that cannot be posted, at either end: one line, and nothing is freed that is in use" {
	local n
	for n in 1 2 5 6 8; do
		FAKEHCA=fail_post_recv=$n,fail_post_recv_with=12 bench loopback -d fake0 --mode rpc --depth 4 -n 20 --format csv
		complained 1 'ibv_post_recv on fake0: Cannot allocate memory'
	done
}
