#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Direct mode at full width, on the test double: each option does what it says, and the double has
# counted what the rows say.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench

LIMIT=60
export FAKEHCA='' FAKEHCA_STATS=$BATS_TEST_TMPDIR/stats

# field NAME [ROW]
field() {
	awk -F, -v name="$1" -v row="${2:-1}" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i }
		NR == row + 1 { print $c }' "$out_file"
}

# counted NAME VALUE: by the double.
counted() {
	local is
	is=$(sed -n "s/^$1=//p" "$FAKEHCA_STATS")
	[[ $is == "$2" ]] || { echo "the double counted $1=$is, not $2"; return 1; }
}

is() {
	local got
	got=$(field "$1")
	[[ $got == "$2" ]] || { echo "$1 is '$got', not '$2'"; return 1; }
}

@test "write-imm: verified with every strategy; one message for each I/O" {
	loop 18 --op write-imm --strategy global,multi-wr,per-io --frags 1,5 -s 777 --signal all,io,half -n 100 -t 5 --verify
	loop 1 --op write-imm --strategy multi-wr --frags 4 -s 400 -n 300 -t 4 --signal io --warmup 0
	is sqe_per_io 4.0000
	is cqe_per_io 1.0000
	counted bytes_written 120000
	counted bytes_sent 0
	counted rnr_waits 0
}

@test "write-imm and SEND with --rnr-retry 0: credits never run out" {
	loop 8 --op write-imm,send -n 500 -t 1,32 -s 64 --frags 1,2 --strategy multi-wr --rnr-retry 0
	counted rnr_waits 0
}

@test "write-imm over iWARP is skipped, with the reason; a run of nothing else is no success" {
	FAKEHCA=iwarp=1 bench loopback -d fake0 --op write-imm -n 5 --format csv
	[[ $status == 1 ]]
	is status skipped
	is reason "iWARP has no immediate data"
}

@test "frwr is skipped, with the reason; a run of nothing else is no success" {
	bench loopback -d fake0 --op all --strategy "$(every)" --frags 3 -s 777 -n 20 --verify --format csv
	ended 0
	rows "$out_file" $((4 * $(strategies))) 'f("strategy") != "frwr" ? f("status") == "ok" && f("iterations") == 20 : f("status") == "skipped" && \
		f("engine") == "mw" && f("iterations") == "" && f("reason") ~ /^frwr has no key for local use: .*take another strategy/'
	bench loopback -d fake0 --op write --strategy frwr --bidir -n 5 --format csv
	ended 1
	is status skipped
	counted sqes 0
	counted reg_mr 0
}

# The peer answers a READ by writing: each sink must allow it, and a completion may overtake a READ.
@test "READs over iWARP, and WRITEs that are fetched back: every strategy, verified" {
	FAKEHCA=iwarp=1,read_lag=20 loop 12 --op read,write --strategy global,multi-wr,per-io --frags 1,4 -n 50 --verify \
		--unsafe-global-sink
	FAKEHCA=iwarp=1,read_lag=20,early_sends=1 loop 3 --op write --strategy global,multi-wr,per-io -n 50 --verify
}

@test "max-sge: WRs follow from it" {
	loop 3 --op write --frags 6 -s 600 -n 100 --max-sge 1,2,4 --signal all --warmup 0
	[[ $(field sqe_per_io 1) == 6.0000 && $(field sqe_per_io 2) == 3.0000 && $(field sqe_per_io 3) == 2.0000 ]]
}

@test "max-sge: READs, too, are within what a queue pair has" {
	FAKEHCA=max_sge=2,max_sge_rd=16 loop 1 --op read --frags 6 -s 600 -n 100 --signal all --warmup 0 --verify
	is sqe_per_io 3.0000
	FAKEHCA=max_sge=2,max_sge_rd=16 bench loopback -d fake0 --op read --max-sge 3 -n 5 --format csv
	complained 1 '3 SGEs in a WR are more than fake0 can have .max_sge 2.: use --max-sge 2 or less'
	FAKEHCA=max_sge=4,max_sge_rd=1 bench loopback -d fake0 --op read --max-sge 3 -n 5 --format csv
	complained 1 '3 SGEs in a WR are more than fake0 can have .max_sge_rd 1.: use --max-sge 1 or less'
}

@test "more bytes than a message may have: more WRs, the last of which has the immediate data; a SEND is refused" {
	export FAKEHCA=max_msg_size=4096
	loop 9 --op read,write,write-imm --strategy global,multi-wr,per-io -s 14336 -n 100 --signal all --warmup 0
	rows "$out_file" 9 'f("sqe_per_io") == 4 && f("posts_per_io") == 1 && f("sq_wanted") == 2 * 4 * 16 + 1'
	loop 6 --op read,write,write-imm -s 14337 --frags 5 -n 100 --signal all --warmup 0 --max-sge 1,2
	rows "$out_file" 6 'f("sqe_per_io") == (f("opts") ~ /max-sge=1/ ? 5 : 4)'
	loop 2 --op write -s 4096,4097 -n 100 --signal all --warmup 0
	[[ $(field sqe_per_io 1) == 1.0000 && $(field sqe_per_io 2) == 2.0000 ]]
	loop $((3 * 2 * 2 * 5)) --op read,write,write-imm --strategy global,multi-wr,per-io,bounce,rcache --frags 1,4 -s 14336,14337 \
		-n 60 --verify --rnr-retry 0
	loop 6 --op read,write,write-imm --frags 1,7 --qps 2 --bidir -s 14336 -n 60 --verify --rnr-retry 0
	bench loopback -d fake0 --op send -s 14336 -n 5 --format csv
	complained 1 '--size 14336 is more than one message on fake0 can carry .max_msg_sz 4096.'
	bench loopback -d fake0 --op write -s 14336 --sq-depth 4 -n 5 --format csv
	complained 1 'it takes 4, and one for the drain: use --sq-depth 5 or more'
}

@test "post: a call for each I/O, or for each WR; the same signals" {
	loop 2 --op write --frags 6 --strategy multi-wr -s 600 -n 100 --post all --signal half --warmup 0
	[[ $(field posts_per_io 1) == 1.0000 && $(field posts_per_io 2) == 6.0000 ]]
	[[ $(field cqe_per_io 1) == "$(field cqe_per_io 2)" ]]
	[[ $(field sqe_per_io 1) == 6.0000 && $(field sqe_per_io 2) == 6.0000 ]]
}

@test "inline: verified up to the device's limit; beyond it refused with what it grants" {
	loop 6 --op write,write-imm,send -s 32,300 --inline 256 -n 100 --verify
	FAKEHCA=max_inline=60 bench loopback -d fake0 --op write --inline 61 -n 5 --format csv
	complained 1 '--inline 61 is more than fake0 grants: use --inline 60 or less'
	bench loopback -d fake0 --op read --inline 8
	refused 2 'contradiction: --inline 8, --op read: '
}

@test "misalign: verified at both ends; the memory grows by what is needed" {
	loop 32 --op all --misalign 1,2049 -s 4096 --frags 1,3 -n 60 --verify --frag-gap 0,8 -t 3
	loop 2 --op write -s 4096 --frags 1 -n 10 --misalign 0,1 -t 4
	[[ $(field pinned_bytes 1) == 16384 && $(field pinned_bytes 2) == 32768 ]]
}


@test "a RECV is as long as the longest message, and no longer" {
	FAKEHCA=max_msg_size=4096 loop 2 --op send --misalign 1 -s 4096 -n 20 --verify --strategy global,multi-wr
	FAKEHCA=max_msg_size=4096 loop 1 --op send --misalign 1 -s 4096 --frags 3 -n 20 --verify --strategy multi-wr
}

@test "timing: what is not timed is empty" {
	loop 1 --op write --strategy per-io -s 64 -n 200 --signal io --timing off
	is samples 0
	is lat_p50_us ''
	is map_us_per_io ''
	loop 1 --op write --strategy per-io -s 64 -n 200 --signal io --timing io
	is samples 200
	is map_us_per_io ''
	is stall_us_per_io ''
	loop 1 --op write --strategy per-io -s 64 -n 200 --signal io --timing phases
	is samples 200
	awk -v map="$(field map_us_per_io)" -v un="$(field unmap_us_per_io)" -v p="$(field lat_avg_us)" \
		'BEGIN { exit !(map > 0 && un > 0 && map + un < p) }'
	is stall_us_per_io 0.000
}

@test "timing off with a duration: it ends" {
	loop 1 --op write -s 64 -D 50ms --timing off
	awk -v s="$(field seconds)" 'BEGIN { exit !(s >= 0.05) }'
}

@test "stalls are counted and timed" {
	loop 1 --op write --frags 4 --strategy multi-wr -s 64 -t 8 --sq-depth 5 -n 200 --timing phases --signal io
	awk -v n="$(field stalls_per_io)" -v us="$(field stall_us_per_io)" 'BEGIN { exit !(n > 0.5 && us > 0) }'
}

@test "rate: I/Os start when they are due, over all QPs" {
	loop 1 --op write -s 64 -n 100 -q 2 -t 4 --rate 1000 --signal io --warmup 0
	is iterations 200
	# The last of 200 is due 199 ms after the first, the others before it.
	awk -v s="$(field seconds)" 'BEGIN { exit !(s >= 0.198) }'
	loop 1 --op write -s 64 -D 100ms --rate 500 --warmup 0
	awk -v n="$(field iterations)" 'BEGIN { exit !(n >= 3 && n <= 51) }'
}

@test "rate: latency is counted from when an I/O was due" {
	# One slot, and a device that takes long: the queue grows, and with it what is counted.
	loop 1 --op write -s 64 -n 300 -t 1 --rate 1000000000 --signal io --warmup 0
	awk -v max="$(field lat_max_us)" -v s="$(field seconds)" 'BEGIN { exit !(max > s * 1e6 * 0.9) }'
}

@test "rate and a poller that sleeps contradict each other" {
	bench loopback -d fake0 --rate 10 --poll event
	refused 2 'contradiction: --rate 10, --poll event: '
}

@test "a rate with long pauses is no lack of progress" {
	loop 1 --op write -s 64 -n 3 --rate 1 --warmup 0 --timeout 900ms
	is iterations 3
}

@test "bidir: every operation and strategy, verified in both directions" {
	loop 24 --op all --strategy global,multi-wr,per-io --frags 1,3 -s 777 -n 100 -t 5 -q 2 --bidir --verify
	loop 4 --op all --poll event -s 64 -n 100 --bidir --verify
}

@test "bidir: both ends' counts, exactly" {
	loop 1 --op write --strategy multi-wr --frags 3 -s 600 -n 400 --bidir --signal io --warmup 0
	is iterations 400
	is peer_iterations 400
	is sqe_per_io 3.0000
	is peer_sqe_per_io 3.0000
	is cqe_per_io 1.0000
	is peer_cqe_per_io 1.0000
	is peer_strategy multi-wr
	is peer_signal io
	counted sqes 2400
	counted posts 800
	counted bytes_written 480000
	loop 1 --op send -s 600 -n 400 -t 16 --bidir --signal all --warmup 0
	# 400 messages and a note for each 16 of them that came.
	is sqe_per_io 1.0625
	is peer_sqe_per_io 1.0625
	is recv_cqe_per_io 1.0625
	counted rnr_waits 0
	counted sqes 850
}

@test "bidir: one that ends sooner goes on receiving, with a warm-up and without" {
	loop 2 --op send,write-imm -s 64 -D 60ms -t 4 --bidir --warmup 0
	loop 2 --op send,write-imm -s 64 -n 700 -t 1 --bidir --warmup 50 --rate 20000
}

# Of the counted ones some are the client's, some the server's; it ends in the middle of waiting for
# the other's warm-up, too. Who looks at memory that is gone is found by the sanitizers' build.
@test "bidir: whatever fails, at either end, fails the run with one line, and all is freed" {
	local op n
	for op in read send; do
		for n in 1 20 21 150; do
			FAKEHCA=fail_wr=$n,fail_wr_with=10 bench loopback -d fake0 --op $op -s 512 -n 100 -t 4 \
				--bidir --format csv
			complained 1 'failed: IBV_WC_REM_ACCESS_ERR .remote access error'
		done
	done
	for n in 2 20 60 150; do
		FAKEHCA=fail_reg_mr=$n,fail_reg_mr_with=12 bench loopback -d fake0 --op write -s 512 -n 100 \
			-t 4 --strategy per-io --bidir --format csv
		complained 1 'ibv_reg_mr of .* on fake0'
	done
}

@test "without --bidir there is no peer that issues" {
	loop 1 --op write -s 64 -n 10
	is peer_iterations ''
}

@test "the clock: the CPU's counter or the kernel's, but never past a virtual one" {
	loop 1 --op write -s 64 -n 100
	rows "$out_file" 1 'f("clock") ~ /^(tsc|monotonic)$/'
	FAKEHCA=real_clock=0 loop 1 --op write -s 64 -n 100
	is clock monotonic
}
