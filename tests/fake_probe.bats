#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The probe on the test double, which is what software RDMA is not: a device that frees entries by
# completions only, and that can be made as small as no real one is. The double ends the program with
# status 70 where anything was violated or left behind.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench

LIMIT=60

# probe SETTINGS: of the double.
probe() {
	FAKEHCA=$1 bench probe -d fake0 --format csv
}

# has LINE: one line of the CSV, an extended regular expression.
has() {
	[[ $(grep -cxE "$1" "$out_file") == 1 ]] || fail "not one line like: $1"
}

@test "a strict device: full at what it granted, and for good" {
	probe ''
	ended 0
	has 'unsignalled_posts,one call,256,posts,of 1024 tried; 256 asked; 256 granted'
	has 'unsignalled_posts,until full,256,posts,one by one until the first ENOMEM'
	has 'unsignalled_posts,with waiting,256,posts,entries come free by completions only'
	has 'sq_depth,asked 100,100,entries,'
	has 'inline_limit,,256,bytes,.*'
	has 'registration,10000 alive,[0-9]+,ns,1\.\.4096 pages; off by [0-9]+ % at most'
	has 'rkey_delta,each given back,1,,255 of 255 times; one of 1 delta'
	[[ $out != *'forgotten signal'* ]] || fail "told that it forgives"
}

@test "the inline limit, wherever it is" {
	local limit
	for limit in 0 1 255 1000; do
		probe "max_inline=$limit"
		ended 0
		has "inline_limit,,$limit,bytes,with 16 send entries of one SGE"
	done
	probe max_inline=65536
	has 'inline_limit,,65536,bytes,.*more was not tried'
}

@test "a device with few of everything: what it refuses is said, and the rest measured" {
	probe max_qp_wr=20,max_mr=50
	ended 0
	has 'sq_depth,asked 100,,entries,fake0 refuses a queue pair of 100 send entries .*'
	has 'sq_depth,asked 20,20,entries,max_qp_wr is 20'
	has 'unsignalled_posts,one call,20,posts,of 80 tried; 20 asked; 20 granted'
	has 'cost_lone_wr,WRITE of 8 bytes,[0-9.]+,ns,medians of 300 rounds of 20'
	[[ $(grep -c '^registration,25 alive,.*a limit forbids' "$out_file") == 2 ]] || fail "not 25 regions"
}

@test "a step that fails is a line, the others are done, and the status is 1" {
	probe fail_post_send=9,fail_post_send_with=5
	complained 1 'connection: posting a WRITE on fake0: Input/output error'
	has 'connection,,,,failed: posting a WRITE on fake0: Input/output error'
	has 'inline_limit,,256,bytes,.*'
	has 'registration,prefaulted,[0-9]+,ns,.*'
	probe fail_poll=2,fail_poll_with=5
	complained 1 'connection: ibv_poll_cq on fake0 failed'
	# The third region is the first that is measured: there is no smaller size.
	probe fail_reg_mr=3,fail_reg_mr_with=12
	complained 1 'registration: ibv_reg_mr of 4.0 KiB on fake0'
	has 'registration,,,,failed: ibv_reg_mr .*'
	has 'rkey_delta,each given back,.*'
	# That many later, sizes are beyond a limit and smaller ones are not.
	probe fail_reg_mr=70,fail_reg_mr_with=12
	ended 0
	has 'registration,prefaulted,[0-9]+,ns,1\.\.[0-9]+ pages; .*; beyond: ibv_reg_mr of [0-9]+.0 KiB on fake0.*'
	has 'deregistration,prefaulted,[0-9]+,ns,1\.\.[0-9]+ pages; off by [0-9]+ % at most'
}

@test "--format json is one document, with what was not found out as null" {
	FAKEHCA=max_qp_wr=20 bench probe -d fake0 --format json
	ended 0
	[[ $(grep -c '"value": null' "$out_file") -ge 3 ]] || fail "nothing is null"
	[[ $out == '{'*'"partial": false'*'}' ]] || fail "no document"
}
