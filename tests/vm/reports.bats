#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 25 s in a guest
#
# What is written: the CSV's columns, JSON that agrees with it, tables; into files and to stdout.

# What bench.bash sets and reads; perl and awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2028,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench

header=schema,status,reason,strategy,engine,mode,op,signal,revoke,peer_strategy,peer_signal,qps,depth
header+=,sq_depth,sq_wanted,sqe_max,bytes,frags,frag_gap,iterations,seconds,bw_peak_MiBps,bw_avg_MiBps
header+=,msg_rate_Mpps,lat_min_us,lat_p50_us,lat_p90_us,lat_p99_us,lat_p999_us,lat_p9999_us,lat_max_us
header+=,lat_avg_us,lat_stdev_us,samples,sqe_per_io,peer_sqe_per_io,cqe_per_io,peer_cqe_per_io
header+=,recv_cqe_per_io,posts_per_io,peer_posts_per_io,forced_signals,sq_peak,peer_sq_peak
header+=,stalls_per_io,stall_us_per_io,map_us_per_io,unmap_us_per_io,cpu_us_per_io,peer_cpu_us_per_io
header+=,poll_idle_pct,pinned_bytes,mr_count,exposed_bytes_peak,exposed_bytes_avg,exposure_scope
header+=,open_after_us_p50,open_after_us_p99,key_reuse_min,verify,partial,clock,device,driver,fw
header+=,transport,mtu,rd_atomic,kernel,host,peer_host,emulated,version,started,opts
header+=,cpu,mem_node,mem_huge_pct,peer_cpu,peer_mem_node,peer_iterations
header+=,sqe_read_per_io,sqe_write_per_io,sqe_send_per_io,peer_sqe_read_per_io,peer_sqe_write_per_io,peer_sqe_send_per_io
header+=,unproven_per_io,unrevoked_per_io,unproven_us_per_io,unrevoked_us_per_io,peer_stalls_per_io,peer_unproven_per_io,peer_stall_us_per_io,sqe_bind_per_io,sqe_inv_per_io,overposts
header+=,copied_bytes_per_io,peer_copied_bytes_per_io,hit_pct,peer_hit_pct,odp_faults_per_io,peer_odp_faults_per_io
header+=,peer_unproven_us_per_io,peer_round_waits_per_io,peer_round_wait_us_per_io

@test "CSV: the header once, every field in every row, whatever became of the run" {
	bench loopback -d "$DEVICE" --format csv -s 64 -n 100 --sq-depth 1,0 --op read,send
	[[ $status == 1 && $(grep -c '' "$err_file") == 2 ]] || fail "not two failed runs"
	[[ ${out%%$'\n'*} == "$header" ]] || fail "another header"
	rows "$out_file" 4 'f("schema") == 1 && f("driver") == "rxe" && f("transport") == "RoCE" && f("version") != ""'
	rows "$out_file" 4 'f("status") == (NR % 2 ? "ok" : "failed") && (f("reason") == "") == (f("status") == "ok")'
	rows "$out_file" 4 'f("opts") ~ (f("status") == "ok" ? "size=64" : "sq-depth=1") && f("opts") ~ /iters=100/'
	rows "$out_file" 4 'f("started") ~ /^20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z$/'
}

@test "figures that hang together" {
	loop 2 -s 4k -n 500 --signal all,half --warmup 0
	rows "$out_file" 2 'f("samples") == (f("signal") == "all" ? 500 : 62)'
	rows "$out_file" 2 'f("lat_min_us") <= f("lat_p50_us") && f("lat_p50_us") <= f("lat_max_us") && f("lat_min_us") <= f("lat_avg_us") && f("lat_avg_us") <= f("lat_max_us")'
	# A percentile that fewer than ten samples are above is left empty.
	rows "$out_file" 2 'f("lat_p999_us") == "" && (f("lat_p90_us") == "") == (f("signal") == "half")'
	rows "$out_file" 2 '(x = f("bw_avg_MiBps") * f("seconds") / (500 * 4096 / 1048576)) > 0.98 && x < 1.02'
	rows "$out_file" 2 'f("bw_peak_MiBps") >= f("bw_avg_MiBps") && f("bw_avg_MiBps") > 0'
	rows "$out_file" 2 'f("emulated") ~ /software RDMA/ && f("poll_idle_pct") <= 100'
}

# bats test_tags=slow
@test "files beside stdout: CSV and JSON of one run say the same" {
	local a=$BATS_TEST_TMPDIR/a.csv b=$BATS_TEST_TMPDIR/b.json t=$BATS_TEST_TMPDIR/t.txt
	bench loopback -d "$DEVICE" --format table -s 64,128 --op read,write -n 50 --output "$a" --output "$b" -o "$t"
	ended 0
	cmp "$t" "$out_file"
	rows "$a" 4 'f("status") == "ok"'
	jq -e '.version and .environment.device and .options and (.rows | length == 4)' "$b" >/dev/null
	jq -e 'all(.rows[]; .histogram | map(.[1]) | add > 0)' "$b" >/dev/null
	jq -e 'all(.rows[]; .samples == (.histogram | map(.[1]) | add))' "$b" >/dev/null
	# The histogram is JSON's alone; an empty field is null there; texts are as they are.
	jq -r '[.rows[0] | keys_unsorted[] | select(. != "histogram" and . != "perftest")] | join(",")' "$b" >"$BATS_TEST_TMPDIR/names"
	[[ $(<"$BATS_TEST_TMPDIR/names") == "$header" ]]
	awk -F, -v OFS=, 'NR > 1 { for (i = 1; i <= NF; i++) if ($i ~ /^-?[0-9.]+$/) $i = $i + 0; print }' "$a" >"$BATS_TEST_TMPDIR/csv"
	jq -r '.rows[] | del(.histogram, .perftest) | map(if . == null then "" else tostring end) | join(",")' "$b" |
		awk -F, -v OFS=, '{ for (i = 1; i <= NF; i++) if ($i ~ /^-?[0-9.]+$/) $i = $i + 0; print }' >"$BATS_TEST_TMPDIR/json"
	diff "$BATS_TEST_TMPDIR/csv" "$BATS_TEST_TMPDIR/json" || fail "they differ"
}

# bats test_tags=slow
@test "CSV files grow, JSON files are replaced" {
	local a=$BATS_TEST_TMPDIR/a.csv b=$BATS_TEST_TMPDIR/b.json
	loop 1 -s 64 -n 10 -o "$a" -o "$b"
	loop 2 -s 128,256 -n 10 -o "$a" -o "$b"
	rows "$a" 3 'f("status") == "ok" && f("bytes") == 2 ^ (NR + 4)'
	[[ $(grep -c schema "$a") == 1 ]]
	[[ $(jq -c '[.rows[].bytes]' "$b") == '[128,256]' ]]
	[[ $(find "$BATS_TEST_TMPDIR" -name '*.tmp') == '' ]]
}

@test "stdout carries the format alone" {
	bench loopback -d "$DEVICE" --format json -s 64 -n 10
	ended 0
	jq -e '.rows[0].status == "ok"' "$out_file" >/dev/null
	bench loopback -d "$DEVICE" -s 64 -n 10
	ended 0
	[[ $out != *schema,* && -n $out ]]
	loop 1 -s 64 -n 20000
}

@test "a sweep runs every combination, in the order of the options" {
	loop 8 --op read,write -s 64,128 --signal all,half -n 5
	rows "$out_file" 8 'f("signal") == (NR % 2 ? "half" : "all") && f("op") == (NR < 6 ? "read" : "write")'
	rows "$out_file" 8 'f("bytes") == (int((NR - 2) / 2) % 2 ? 128 : 64)'
}

@test "devices: what there is, and what it can" {
	bench devices
	ended 0
	[[ $out == *"$DEVICE"$'\n'*RoCE*rxe*active*"$HOST"* ]] || fail "the device is not told of"
	[[ $out == *global*multi-wr*per-io*frwr* ]] || fail "the strategies are not told of"
	bench devices -d "$DEVICE"
	ended 0
}
