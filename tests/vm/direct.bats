#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 95 s in a guest
#
# Direct mode over real software RDMA, both ends in one process: whatever the shape of an I/O, it
# arrives byte by byte. --rnr-retry 0: a SEND that meets no RECV fails at once, instead of hiding.

# What bench.bash sets and reads; perl and awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2028,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench

# Over iWARP a WRITE has no latency.
# bats test_tags=rxe
@test "one registration per I/O, half the completions, verified: one row, which says so" {
	loop 1 --mode direct --op write --strategy per-io -s 64k -n 1000 --signal half --verify
	rows "$out_file" 1 'f("strategy") == "per-io" && f("mode") == "direct" && f("op") == "write" \
		&& f("bytes") == 65536 && f("iterations") == 1000 && f("signal") == "half" \
		&& f("verify") == "yes" && f("partial") == "no" && f("seconds") > 0 \
		&& f("samples") > 0 && f("lat_min_us") > 0 && f("lat_max_us") >= f("lat_p50_us") \
		&& f("bw_avg_MiBps") > 0 && f("device") == "'"$DEVICE"'"'
}

# Of a SEND beyond the device's SGEs too (33 and 100 fragments): it is gathered by copy.
@test "every operation, strategy and number of fragments, sizes even and odd, with gaps and without" {
	loop 72 --op read,write,send --strategy global,multi-wr,per-io -s 4097 --frags 1,3,33,100 --frag-gap 0,13 --depth 4 -n 6 \
		--warmup 1 --verify --rnr-retry 0
	rows "$out_file" 72 'f("iterations") == 6 && f("verify") == "yes"'
	loop 18 --op read,write,send --strategy global,multi-wr,per-io -s 65537 --frags 3,100 --frag-gap 4097 --depth 3 -n 5 --warmup 0 \
		--verify --rnr-retry 0
}

@test "I/Os of one byte" {
	loop 9 --op read,write,send --strategy global,multi-wr,per-io -s 1 --depth 4 -n 50 --verify --rnr-retry 0
	rows "$out_file" 9 'f("bytes") == 1 && f("iterations") == 50'
}

@test "fragments of one byte each, as many as there may be" {
	loop 3 --op read,write,send -s 1024 --frags 1024 --frag-gap 1 --depth 2 -n 5 --verify --rnr-retry 0
	loop 1 --op send --strategy multi-wr -s 1024 --frags 1024 --frag-gap 0 --depth 1 -n 2 \
		--verify --rnr-retry 0
}

@test "a megabyte, and the largest message that the device takes" {
	loop 3 --op read,write,send --strategy per-io -s 1m --frags 16 --depth 3 -n 4 --warmup 0 --verify --rnr-retry 0
	loop 1 --op send -s 8m --depth 1 -n 1 --warmup 0 --verify --rnr-retry 0
}

# As much as the messages of rxe have, for the double, too. Over siw they have no such limit, nor do they
# with the rxe of newer kernels, where it is more memory than a guest has.
# bats test_tags=rxe
@test "READs and WRITEs of more than a message: more WRs; a SEND is refused" {
	export FAKEHCA=max_msg_size=8388608
	bench devices -d "$DEVICE"
	[[ $out == *'max_msg_sz 8388608'* ]] || skip "the largest message of $DEVICE is too large for this"
	loop 2 --op read,write --strategy multi-wr -s 8388609 --frags 1 --depth 1 -n 1 --warmup 0 --signal all --verify
	rows "$out_file" 2 'f("sqe_per_io") == 2'
	loop 1 --mode rpc --op write -s 20m --frags 4 --depth 1 -n 1 --warmup 0 --peer-sq-depth 3 --verify
	rows "$out_file" 1 'f("peer_sqe_per_io") == 5'
	loop 1 --mode rpc --op read -s 9m --depth 1 -n 1 --warmup 0 --verify
	rows "$out_file" 1 'f("peer_sqe_per_io") == 3'
	bench loopback -d "$DEVICE" --mode direct --op send -s 8388609 -n 1 --format csv
	complained 1 '--size 8388609 is more than one message' 'max_msg_sz 8388608'
}

@test "pages of memfds and files, not touched before, in both modes" {
	loop 12 --mode direct,rpc --op read,write,send --mem memfd,file --prefault no --strategy per-io --frags 3 -s 4097 --depth 4 \
		-n 12 --warmup 0 --verify --rnr-retry 0
	rows "$out_file" 12 'f("mem_huge_pct") == "0.0"'
}

@test "several queue pairs, every signalling policy" {
	loop 12 --op read,write,send --strategy per-io --signal all,io,every:3,half -s 5000 --frags 5 --frag-gap 7 \
		--depth 4 --qps 3 -n 50 --verify --rnr-retry 0
	rows "$out_file" 12 'f("iterations") == 150 && f("qps") == 3'
}

@test "polling by yielding and by sleeping" {
	local how
	for how in yield event; do
		loop 3 --op read,write,send --poll "$how" -s 64 -n 200 --verify --rnr-retry 0
		rows "$out_file" 3 'f("opts") ~ /poll='"$how"'/'
	done
}

@test "a run of a given time lasts about as long" {
	loop 3 --op read,write,send -s 64 -D 0.3s
	rows "$out_file" 3 'f("seconds") >= 0.3 && f("seconds") < 3 && f("iterations") > 0 && f("partial") == "no"'
}

@test "a run of a given time and count ends at whichever comes first" {
	loop 1 -s 64 -D 50s -n 100
	rows "$out_file" 1 'f("iterations") == 100 && f("seconds") < 20'
}

@test "without a warm-up" {
	loop 3 --op read,write,send -s 64 -n 100 --warmup 0 --rnr-retry 0
	rows "$out_file" 3 'f("iterations") == 100'
}

# Over iWARP a WRITE has one more, for the byte that proves it.
# bats test_tags=rxe
@test "registrations are counted and gone at the end: no more regions than I/Os in flight" {
	local before
	before=$(resources)
	loop 1 --op write --strategy per-io -s 8k --frags 4 --depth 3 -n 20
	rows "$out_file" 1 'f("mr_count") >= 4 && f("mr_count") <= 12'
	loop 1 --op write --strategy global -s 8k --frags 4 --depth 3 -n 20
	rows "$out_file" 1 'f("mr_count") == 1'
	wait_until 5 same_resources "$before"
}

# rd-atomic=16 and so on in "opts", 0 where it is not given.
asked='(f("opts") ~ /rd-atomic=/ ? substr(f("opts"), index(f("opts"), "rd-atomic=") + 10) + 0 : 0)'

@test "--rd-atomic: so many READs in flight, and what they brought verified" {
	loop 4 --op read --rd-atomic 0,1,4,16 -s 9000 --frags 3 --depth 24 -n 60 --verify
	rows "$out_file" 4 "$asked"' ? f("rd_atomic") == '"$asked"' : f("rd_atomic") >= 16'
	bench loopback -d "$DEVICE" --rd-atomic 255 -n 5 --format csv
	complained 1 '--rd-atomic 255 is more than '"$DEVICE"' has' 'max_qp_rd_atom' 'or less'
	rows "$out_file" 1 'f("status") == "failed" && f("reason") ~ /max_qp_rd_atom/'
}

# rxe takes any and tells none. What is to be seen here is that our own way through the states of the
# queue pairs makes the same connection as rdma_cm's: READs and WRITEs are let in, and all is freed.
# bats test_tags=rxe,slow
@test "--sl: a service level, on queue pairs that we make ready ourselves" {
	local before
	before=$(resources)
	loop 16 --op all --sl 0,3 --qps 1,3 --rd-atomic 4 -s 9000 --frags 3 -n 40 --verify --rnr-retry 0
	rows "$out_file" 16 'f("rd_atomic") == 4 && f("iterations") == 40 * f("qps")'
	bench loopback -d "$DEVICE" --sl 8 -n 5 --format csv
	complained 1 '--sl 8 cannot be had on '"$DEVICE" '8 priorities'
	wait_until 5 same_resources "$before"
}

# bats test_tags=siw
@test "--sl: iWARP has no service level, and the run says so" {
	[[ -d /sys/class/infiniband/siw0 ]] || skip "there is no siw0: run this by scripts/rxe-vm --iwarp"
	bench loopback -d siw0 --op write --sl 0,3 -n 5 --format csv
	complained 1 '--sl 3 cannot be had on siw0: it is iWARP'
	rows "$out_file" 2 'f("opts") ~ /sl=3/ ? f("status") == "failed" && f("reason") ~ /iWARP/ \
		: f("status") == "ok"'
}

# bats test_tags=siw
@test "over iWARP as well" {
	[[ -d /sys/class/infiniband/siw0 ]] || skip "there is no siw0: run this by scripts/rxe-vm --iwarp"
	DEVICE=siw0 loop 24 --op read,write,send --strategy global,multi-wr,per-io,bounce -s 4097 --frags 3,33 --frag-gap 13 --depth 4 \
		-n 10 --verify --unsafe-global-sink
	rows "$out_file" 24 'f("transport") == "iWARP" && f("iterations") == 10'
	bench loopback -d siw0 --op read --strategy all -s 4k --frags 16 -n 10 --verify --format csv
	ended 0
	rows "$out_file" 9 'f("strategy") ~ /^(per-io|bounce)$/ ? f("status") == "ok" && f("sqe_per_io") == (f("strategy") == "bounce" ? 1 : 16) : \
		f("status") == "skipped" && f("reason") ~ (f("strategy") == "frwr" ? "no key for local use" : f("strategy") ~ /^(frwr-umr|odp)/ ? "mlx5|no on-demand paging" : "--unsafe-global-sink")'
}

# A library between the program and libibverbs gives the device a copy of the memory of each I/O,
# which goes back to the program when it is deregistered, with one bit of it changed or not.
# bats test_tags=preload,slow,rxe
@test "a wrong bit is found by --verify, whichever way it went, and the run fails" {
	local lib=$BATS_TEST_TMPDIR/wrong_bit.so op
	[[ $DEVICE != fake* ]] || skip "there is no libibverbs in a program on the double"
	"${CC:-cc}" -shared -fPIC -O1 -o "$lib" "$BATS_TEST_DIRNAME/wrong_bit.c" -ldl
	for op in read write send; do
		wrong_bit "" --op "$op"
		ended 0
		rows "$out_file" 1 'f("status") == "ok"'
		wrong_bit 4321 --op "$op"
		complained 1 'verification failed: .*byte 4321 of 5000 is wrong'
		rows "$out_file" 1 'f("status") == "failed" && f("reason") ~ /verification failed/'
	done
	wrong_bit 4321 --op send --bidir
	complained 1 'verification failed: .*byte 4321 of 5000 is wrong'
	serve # what the server finds is the reason that the client gives
	with "env LD_PRELOAD=$lib WRONG_BIT_AT=4321" client -d "$DEVICE" -p "$PORT" --format csv -s 5000 \
		--strategy per-io --warmup 0 -n 20 --op send --bidir --verify "$HOST"
	complained 1 "$HOST: verification failed: QP 0, message 0, byte 4321 of 5000 is wrong"
	server_ends
}

wrong_bit() {
	local at=$1
	shift
	with "env LD_PRELOAD=$lib WRONG_BIT_AT=$at" loopback -d "$DEVICE" --format csv -s 5000 \
		--strategy per-io --warmup 0 -n 20 --verify "$@"
}
