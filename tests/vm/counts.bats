#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 40 s in a guest
#
# The counts are exact: what was posted and completed on real queues is what the rules say, whatever
# the timing. Without a warm-up, so that every queue's first WR is the first that is counted.
#
# One WR an I/O, and default queues: --signal half signals when ceil(depth/2) I/Os are silent (a rule
# that keeps slots coming back: "forced"), but for depth 1, where that is the half of its queue too.
# every:7 signals each 7th WR and the same rule adds to that.

# What bench.bash sets and reads; perl and awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2028,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench

one_wr='f("sqe_per_io") == 1 && f("posts_per_io") == 1 && f("sq_peak") >= 1 && f("sq_peak") <= f("depth")'
one_wr+=' && f("iterations") == 10000 * f("qps") && f("sq_depth") == f("sq_wanted")'
one_wr+=' && f("sq_wanted") == (f("signal") == "every:7" && f("depth") < 4 ? 8 : 2 * f("depth") + 1)'
one_wr+=' && f("stalls_per_io") == 0 && f("partial") == "no"'

# bats test_tags=slow
@test "half: 10000 I/Os at depths 1, 12, 128 on 1 and 5 QPs: every count as the rules say" {
	loop 6 --op write -s 64 -n 10000 --depth 1,12,128 --qps 1,5 --signal half --warmup 0
	rows "$out_file" 6 "$one_wr"
	rows "$out_file" 6 'f("forced_signals") == f("qps") * (f("depth") == 1 ? 0 : f("depth") == 12 ? 1666 : 156)'
	rows "$out_file" 6 'near(f("cqe_per_io"), f("depth") == 1 ? 1 : f("forced_signals") / f("iterations"))'
}

# bats test_tags=slow
@test "every:7: the same, also where a queue has fewer than 7 entries" {
	loop 6 --op write -s 64 -n 10000 --depth 1,12,128 --qps 1,5 --signal every:7 --warmup 0
	rows "$out_file" 6 "$one_wr"
	rows "$out_file" 6 'f("forced_signals") == f("qps") * (f("depth") == 1 ? 8572 : f("depth") == 12 ? 1428 : 0)'
	rows "$out_file" 6 'near(f("cqe_per_io"), (1428 * f("qps") + f("forced_signals")) / f("iterations"))'
}

@test "a READ is counted as a WRITE is, and with a warm-up the sums hold too" {
	loop 2 --op read -s 64 -n 10000 --depth 12 --signal half,every:7
	rows "$out_file" 2 "$one_wr"
	rows "$out_file" 2 'f("peer_sqe_per_io") == 0 && f("peer_cqe_per_io") == 0 && f("recv_cqe_per_io") == 0'
	rows "$out_file" 2 'f("cqe_per_io") * 10000 - f("forced_signals") <= (f("signal") == "half" ? 0 : 1429)'
	rows "$out_file" 2 'f("cqe_per_io") * 10000 - f("forced_signals") >= (f("signal") == "half" ? 0 : 1428)'
}

# The peer gives credits back once for every --depth messages.
# bats test_tags=slow
@test "SEND: 10000 messages without one into an empty receive queue, and the peer's counts" {
	loop 2 --op send -s 64 -n 10000 --depth 12 --signal half,every:7 --warmup 0 --rnr-retry 0
	send_counts 2 10000
	loop 3 --op send -s 64 -n 600 --depth 1,12,128 --qps 5 --warmup 0 --rnr-retry 0
	send_counts 3 600
}

send_counts() {
	local n=$2
	rows "$out_file" "$1" 'f("sqe_per_io") == 1 && f("posts_per_io") == 1 && f("iterations") == '"$n"' * f("qps") \
		&& near(f("peer_sqe_per_io"), floor('"$n"' / f("depth")) / '"$n"') \
		&& f("peer_posts_per_io") == f("peer_sqe_per_io") && f("recv_cqe_per_io") <= f("peer_sqe_per_io") \
		&& f("recv_cqe_per_io") > f("peer_sqe_per_io") - 5.1 / '"$n"' \
		&& near(f("cqe_per_io"), f("depth") == 1 ? 1 : ((f("signal") == "half" ? 0 : 1428) + f("forced_signals")) / f("iterations"))'
}

@test "fragments: one WR for all up to the SGEs of one, one each with multi-wr; one post in any case" {
	loop 6 --op read,write --strategy global,multi-wr,per-io -s 64 --frags 16 -n 500 --depth 4 --warmup 0
	rows "$out_file" 6 'f("sqe_per_io") == (f("strategy") == "multi-wr" ? 16 : 1) && f("posts_per_io") == 1'
	rows "$out_file" 6 'f("sq_depth") == (f("strategy") == "multi-wr" ? 129 : 9) && f("sq_peak") <= f("sq_depth")'
	rows "$out_file" 6 'f("cqe_per_io") == 0.5 && f("forced_signals") == 250'
	loop 3 --op read,write,send --strategy global -s 64 --frags 33 -n 100 --warmup 0
	rows "$out_file" 3 'f("sqe_per_io") == (f("op") == "send" ? 1 : 2) && f("posts_per_io") == 1'
}

# 16 WRs a post, of which each 7th is signalled: no post leaves more than its own I/O silent.
@test "policies count WRs, not I/Os" {
	loop 4 --strategy multi-wr -s 64 --frags 16 -n 700 --depth 4 --warmup 0 --signal all,io,every:7,every:16
	rows "$out_file" 4 'f("forced_signals") == 0 && f("sqe_per_io") == 16'
	rows "$out_file" 4 'near(f("cqe_per_io"), f("signal") == "all" ? 16 : f("signal") == "every:7" ? 16 / 7 : 1)'
}

@test "SEND with multi-wr: a message for each fragment" {
	loop 1 --op send --strategy multi-wr -s 64 --frags 16 -n 300 --depth 4 --warmup 0 --rnr-retry 0 --verify
	rows "$out_file" 1 'f("sqe_per_io") == 16 && f("posts_per_io") == 1 && near(f("peer_sqe_per_io"), 0.25)'
}

@test "the smallest queue that holds one I/O works, and is waited for" {
	loop 3 --op read,write,send -s 64 --depth 12 --sq-depth 2 -n 300 --warmup 0 --rnr-retry 0
	rows "$out_file" 3 'f("sq_depth") == 2 && f("sq_wanted") == 25 && f("sq_peak") == 1'
	rows "$out_file" 3 'f("sqe_per_io") == 1 && f("cqe_per_io") == 1 && f("stalls_per_io") > 0.5 && f("stalls_per_io") <= 1'
	loop 4 --op write --strategy multi-wr -s 64 --frags 16 --depth 12 --sq-depth 17,40 --signal half,every:7 \
		-n 100 --warmup 0 --verify
	rows "$out_file" 4 'f("sqe_per_io") == 16 && f("stalls_per_io") > 0 && f("sq_peak") <= f("sq_depth")'
}

@test "a queue that cannot hold one I/O is refused, with the numbers, and the next run goes on" {
	bench loopback -d "$DEVICE" --format csv -s 64 --frags 16 --strategy multi-wr --sq-depth 16 -n 10
	complained 1 'run 1 of 1' '16 entries' 'takes 16' '--sq-depth 17'
	rows "$out_file" 1 'f("status") == "failed" && f("reason") ~ /--sq-depth 17/ && f("iterations") == ""'
	bench loopback -d "$DEVICE" --format csv -s 64 --sq-depth 1,2 -n 10
	complained 1 'run 1 of 2' '1 entry' 'takes 1' '--sq-depth 2'
	rows "$out_file" 2 'f("status") == (NR == 2 ? "failed" : "ok")'
}

@test "a queue deeper than the default is had as asked for" {
	loop 1 -s 64 --depth 12 --sq-depth 1000 -n 100
	rows "$out_file" 1 'f("sq_depth") == 1000 && f("sq_wanted") == 25 && f("sqe_max") >= 1000 && f("stalls_per_io") == 0'
}
