#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The whole program on the test double, with options and a device drawn by lot: all runs end well,
# --verify finds nothing, the double sees no violation and nothing is left behind. RNR is never
# forgiven, so a message without a RECV fails. RXFER_PROP_SEED=N RUNS=1 repeats the run of seed N.

# What bench.bash sets and reads.
# shellcheck disable=SC2154,SC2034,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench

LIMIT=30
RUNS=${RUNS:-50}

# one_of WORD...: one of them, in $it. No subshell: it would have random numbers of its own.
one_of() {
	shift $((RANDOM % $#))
	it=$1
}

# add OPTION WORD...: the option with one of the words.
add() {
	local option=$1
	shift
	one_of "$@"
	args+=("$option" "$it")
}

# flag PERCENT OPTION
flag() {
	((RANDOM % 100 >= $1)) || args+=("$2")
}

# The I/O, and queues for it from the smallest that holds one: its fragments, each by a WR, and the
# drain.
draw_io() {
	local frags size smallest
	one_of read write write-imm send
	args=(--op "$it")
	[[ $it == read ]] || add --inline 0 0 16 256
	one_of 1 2 7 64 777 4096 4097 20000
	size=$it
	one_of 1 1 2 3 7 16
	((frags = it < size ? it : size, smallest = frags + 1))
	args+=(--size "$size" --frags "$frags")
	one_of global multi-wr per-io rcache bounce odp odp-implicit "$umr"
	args+=(--strategy "$it")
	[[ $it != frwr-umr || $smallest -gt 3 ]] || smallest=4
	add --frag-gap 0 1 8 4096
	add --misalign 0 0 1 63 4095
	add --touch off off warm cold
	add --max-sge 0 0 1 2 4
	add --depth 1 1 2 3 5 16 64
	add --qps 1 1 2 3 8
	add --sq-depth 0 0 $smallest $((smallest + 1)) $((2 * smallest))
	add --signal all io half "every:$((RANDOM % smallest + 1))"
	add --rd-atomic 0 1 2 16
}

# In RPC mode: how the keys are revoked is among what the strategy can; frwr has none for data in a request.
# The smallest queues are for N and the drain at the client, for a WR, the reply and the drain at the server.
draw_rpc() {
	local op frags runs smallest revoke=auto
	one_of read write send
	op=$it
	args=(--op "$op" --mode rpc)
	one_of 1 64 777 4096 20000
	((frags = it < 7 ? 1 : RANDOM % 7 + 1, runs = frags))
	args+=(--size "$it" --frags "$frags")
	one_of 0 1 8 4096
	args+=(--frag-gap "$it")
	[[ $it != 0 ]] || runs=1
	one_of global multi-wr per-io rcache bounce odp odp-implicit "$umr"
	[[ $op == send ]] || one_of global multi-wr per-io rcache bounce odp odp-implicit frwr frwr frwr "$umr" "$umr"
	args+=(--strategy "$it")
	case $it in
	per-io) one_of sync async auto ;;
	frwr | frwr-umr) one_of sync async remote lazy auto ;;
	*) one_of none auto ;;
	esac
	revoke=$it
	args+=(--revoke "$revoke")
	smallest=2
	[[ ${args[*]} != *frwr* ]] || ((smallest = 2 * runs + 2))
	[[ $op != write || $revoke == remote ]] || add --reply send imm
	add --peer-strategy global multi-wr per-io rcache bounce odp odp-implicit
	add --defer slot recv
	add --depth 1 1 2 3 5 16 64
	add --qps 1 1 2 3 8
	add --sq-depth 0 0 $smallest $((smallest + 1)) $((2 * smallest))
	add --peer-sq-depth 0 3 8
	add --signal all io half "every:$((RANDOM % smallest + 1))"
	add --peer-signal all io half every:3
	flag 30 --mw-renew
}

draw_run() {
	[[ ${args[*]} != *odp* ]] || add --odp-prefetch off io
	[[ ${args[*]} == *rpc* ]] || flag 70 --bidir
	flag 60 --verify
	add --mem anon anon memfd file
	add --prefault yes no
	add --post chain single
	add --timing off io phases
	add --warmup 0 1 16 40
	if ((RANDOM % 5)); then
		add --iters 1 2 17 100 300
	else
		add --duration 5ms 20ms
	fi
	if ((RANDOM % 5)); then
		add --poll busy yield event
	else
		add --poll busy yield
		add --rate 2000 20000 1000000
	fi
	((RANDOM % 5)) || args+=(--cpu "$cpu")
}

draw_device() {
	local setting
	FAKEHCA=seed=$1
	for setting in sq_delay={0,5,50} rq_delay={0,5,80} cq_order={0,1,2,3} read_lag={1,20} \
		sq_extra={1,9} mtu={256,4096} max_sge={4,5}; do
		((RANDOM % 5)) || FAKEHCA+=,$setting
	done
	[[ ${args[*]} != *frwr-umr* ]] || FAKEHCA+=,mlx5=1
	[[ ${args[*]} =~ imm|frwr|odp ]] || ((RANDOM % 5)) || {
		FAKEHCA+=,iwarp=1,early_sends=1
		args+=(--unsafe-global-sink)
	}
}

# draws DRAW: $RUNS runs, of what that function draws.
draws() {
	local umr=frwr-umr cpu first=${RXFER_PROP_SEED:-$((RANDOM * 32768 + RANDOM))} it args
	cpu=$(sed -n 's/^Cpus_allowed_list:[[:blank:]]*\([0-9]*\).*/\1/p' /proc/self/status)
	export FAKEHCA
	[[ $("$RXFER_BENCH" devices) != *'built without'* ]] || umr=per-io
	for ((seed = first; seed < first + RUNS; seed++)); do
		RANDOM=$seed
		"$1"
		draw_run
		draw_device "$seed"
		echo "RXFER_PROP_SEED=$seed RUNS=1: FAKEHCA=$FAKEHCA ${args[*]}"
		loop 1 "${args[@]}" --rnr-retry 0 --timeout 5s
	done
}

@test "any combination of options, on any device: all bytes right, nothing violated or left behind" {
	draws draw_io
}

@test "the same in RPC mode, with keys revoked in each way that a strategy has" {
	draws draw_rpc
}
