#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Strategy bounce at full width, on the test double: the right bytes, each copied once and counted, and
# nothing registered but the buffers.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench

LIMIT=60
export FAKEHCA='' FAKEHCA_STATS=$BATS_TEST_TMPDIR/stats

# bounce N ARG...: N ok rows of it, at both ends where both have a strategy.
bounce() {
	local rows=$1
	shift
	[[ "$*" != *'--mode rpc'* ]] || set -- --peer-strategy bounce "$@"
	loop "$rows" --strategy bounce "$@"
}

# that CONDITION: holds for each row of the latest runs.
that() {
	rows "$out_file" "$(($(grep -c '' "$out_file") - 1))" "$1"
}

# of_double NAME: counted by it.
of_double() {
	sed -n "s/^$1=//p" "$FAKEHCA_STATS"
}

@test "direct: each operation, size and number of fragments, verified; each byte is copied once" {
	bounce 24 --op all --frags 1,16 -s 16,4k,70000 -n 60 --depth 5 --verify --rnr-retry 0
	that 'f("copied_bytes_per_io") == f("bytes") && f("peer_copied_bytes_per_io") == 0 && f("sqe_per_io") == 1'
	bounce 4 --op read,write --frags 1,16 -s 5000 -n 60 --timing phases --post single --verify
	that 'f("copied_bytes_per_io") == 5000 && f("map_us_per_io") > 0 && f("unmap_us_per_io") > 0'
}

@test "rpc: likewise at both ends; data in a message are copied once, too" {
	bounce 18 --mode rpc --op read,write,send --frags 1,16 -s 16,4k,70000 -n 60 --depth 5 --verify --rnr-retry 0
	that 'f("copied_bytes_per_io") == f("bytes") && f("peer_copied_bytes_per_io") == (f("op") == "send" ? 0 : f("bytes")) && \
		f("sqe_per_io") == 1 && f("peer_sqe_per_io") == (f("op") == "send" ? 1 : 2)'
	bounce 2 --mode rpc --op read,write --inline-threshold 4k --frags 3 -s 600 -n 60 --verify
	that 'f("copied_bytes_per_io") == 600 && f("peer_copied_bytes_per_io") == (f("op") == "read" ? 0 : 600)'
	bounce 1 --mode rpc --op write --reply imm --frags 3 -s 600 -n 60 --verify
	that 'f("peer_sqe_per_io") == 1'
	bounce 1 --mode rpc -s 0 -n 60
	that 'f("copied_bytes_per_io") == 0 && f("peer_copied_bytes_per_io") == 0'
}

@test "with any strategy at the other end, and READs and WRITEs in rounds there" {
	local other
	for other in global multi-wr per-io; do
		loop 2 --mode rpc --op read,write --strategy $other --peer-strategy bounce --frags 16 -s 4000 -n 100 --verify
		loop 2 --mode rpc --op read,write --strategy bounce --peer-strategy $other --frags 16 -s 4000 -n 100 --verify
	done
	loop 2 --mode rpc --op read,write --strategy multi-wr --peer-strategy bounce --frags 16 -s 4001 -n 100 --peer-sq-depth 4 --verify
	that 'f("peer_sqe_per_io") == 17 && f("peer_sq_peak") <= 3 && f("peer_copied_bytes_per_io") == 4001'
}

@test "fragments take no WRs, however few SGEs there are, nor a copy more for a message" {
	bounce 16 --op all --frags 1,64 --max-sge 1,0 -s 6400 -n 100 --signal all --warmup 0 --verify
	that 'f("sqe_per_io") == 1 && f("copied_bytes_per_io") == 6400'
	bounce 2 --mode rpc --op read,write --frags 64 --max-sge 2 -s 6400 -n 100 --verify
	that 'f("peer_sqe_per_io") == 2'
	# Where the request's head and the data do not go into one message, the head is copied with them.
	bounce 2 --mode rpc --op send --frags 64 --max-sge 1,2 -s 6400 -n 100 --verify
	that 'f("sqe_per_io") == 1 && f("copied_bytes_per_io") == 6400 + (f("opts") ~ /max-sge=1/ ? 32 : 0)'
	FAKEHCA=max_sge=1 bounce 4 --op all --frags 5 -s 6400 -n 100 --verify
}

@test "what is registered is the buffers, once, whatever the number of I/Os" {
	local n
	for n in 1 100; do
		bounce 1 --op write -s 4k --frags 3 --depth 4 --qps 2 -n $n --warmup 0
		# The target, and 4 buffers of each queue pair.
		[[ $(of_double reg_mr) == 3 ]] || fail "$(of_double reg_mr) registrations"
		that 'f("mr_count") == 2 && f("pinned_bytes") == 8 * 4096'
		bounce 1 --mode rpc --op write -s 4k --frags 3 --depth 4 -n $n --warmup 0
		that 'f("exposed_bytes_peak") == 4 * 4096 && f("exposed_bytes_avg") == 4 * 4096 && f("exposure_scope") == "pd" && \
			f("revoke") == "none" && f("open_after_us_p50") == ""'
	done
	# Beside those for messages there are none where no data are moved.
	bounce 1 --mode rpc --op read -s 4k --inline-threshold 4k -n 20
	that 'f("exposed_bytes_peak") == 0'
}

@test "READs over iWARP: the sinks are the buffers, which the peer may write" {
	FAKEHCA=iwarp=1,read_lag=20 bounce 4 --op read,write --frags 1,4 -s 5000 -n 60 --verify
	FAKEHCA=iwarp=1,read_lag=20 bounce 6 --mode rpc --op read,write,send --frags 1,4 -s 5000 -n 60 --verify
	FAKEHCA=iwarp=1,read_lag=20,early_sends=1 bounce 2 --mode rpc --op read,write -s 5000 -n 60 --verify
}

@test "both ways at once, many queue pairs, off page boundaries, completions that come late" {
	bounce 4 --op all --bidir --qps 3 --frags 3 -s 3001 --misalign 77 -n 60 --rnr-retry 0
	that 'f("copied_bytes_per_io") == 3001 && f("peer_copied_bytes_per_io") == 3001'
	FAKEHCA=sq_delay=40,rq_delay=20,read_lag=30,cq_order=3 bounce 4 --op all --qps 2 -s 3001 --misalign 77 --depth 7 -n 100 --verify
	FAKEHCA=sq_delay=40,rq_delay=20,read_lag=30,cq_order=3 bounce 3 --mode rpc --op read,write,send --qps 2 -s 3001 --depth 7 \
		-n 100 --verify --signal every:7 --peer-signal every:5
}

@test "--touch: in both modes, verified; told in the row" {
	loop 12 --op read,write --touch all --strategy bounce,per-io -s 5000 --frags 3 -n 60 --verify
	loop 6 --mode rpc --op read,write,send --touch warm,cold --strategy bounce -s 5000 --frags 3 -n 60 --verify
	that 'f("opts") ~ /touch=(warm|cold) /'
	loop 3 --op send --touch all --depth 3 --bidir -s 64 -n 60
	loop 2 --op write --touch warm,cold --rate 20000 -s 64 -n 60
}

# least COLUMN TOUCH: of the latest runs.
least() {
	awk -F, -v name="$1" -v want="touch=$2 " '
	NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i }
	NR > 1 && index($c["opts"], want) && (least == "" || $c[name] + 0 < least) { least = $c[name] + 0 }
	END { print least }' "$out_file"
}

# Others use the machine, too: the least of ten each.
@test "--touch: a copy from memory takes longer than one from the cache" {
	! grep -q 'QEMU TCG' /proc/cpuinfo || skip "an emulated CPU has no caches"
	loop 20 --op write --touch warm,cold --strategy bounce --timing phases -s 64k --depth 1 -n 30 --sq-depth 3,4,5,6,7,8,9,10,11,12
	awk -v cold="$(least map_us_per_io cold)" -v warm="$(least map_us_per_io warm)" \
		'BEGIN { print cold, warm; exit !(warm > 0 && cold > 1.3 * warm) }' >&2 || fail "cold is as quick as warm"
}

@test "buffers that do not fit into memory are refused before they are made, at either end" {
	bench loopback -d fake0 --mode rpc --strategy bounce --op write -s 1g --depth 4096 -n 1 --format csv
	complained 1 'run 1 of 1: 4194304\.0 MiB of memory are needed at once and '
	bench loopback -d fake0 --mode rpc --peer-strategy bounce --op write -s 1g --depth 4096 -n 1 --format csv
	complained 1 'the server side: 16781312\.0 MiB of memory are needed at once and '
}

@test "a device that registers nothing more: the run fails, by the reason; nothing is left" {
	FAKEHCA=fail_reg_mr=2,fail_reg_mr_with=12 bench loopback -d fake0 --strategy bounce --op write -n 5 --format csv
	complained 1 'ibv_reg_mr of 1\.0 MiB on fake0: '
	rows "$out_file" 1 'f("status") == "failed"'
	[[ $(of_double reg_mr) == "$(of_double dereg_mr)" ]] || fail "something is left"
}
