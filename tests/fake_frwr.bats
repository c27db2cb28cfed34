#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Strategy frwr on the test double: what an I/O takes and leaves open in each way to revoke, both ends'
# counts, and that the double has counted the same. It refuses a window that is bound or revoked in any
# other order than the rules have it, and then the program ends with status 70.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench

LIMIT=60
export FAKEHCA='' FAKEHCA_STATS=$BATS_TEST_TMPDIR/stats

# frwr N ARG...: runs that must leave N ok rows.
frwr() {
	local rows=$1
	shift
	loop "$rows" --mode rpc --strategy frwr --rnr-retry 0 "$@"
}

# that CONDITION: holds for each row of the latest runs.
that() {
	rows "$out_file" "$(($(grep -c '' "$out_file") - 1))" "$1"
}

# of_double NAME: counted by it.
of_double() {
	sed -n "s/^$1=//p" "$FAKEHCA_STATS"
}

# The runs of an I/O's memory, as an awk expression: each has a key of its own.
k='(f("frag_gap") ? f("frags") : 1)'
# Of I/Os whose slot had one before: all but the first DEPTH on each QP.
again='(f("iterations") - f("depth") * f("qps")) / f("iterations")'
# WRs of the client that revoke, of one I/O; whether a post of their own has them.
invs='(f("revoke") == "lazy" ? '"$k * $again"' : f("revoke") == "remote" ? '"$k"' - 1 : '"$k"')'
post='(f("revoke") == "lazy" || (f("revoke") == "remote" && '"$k"' == 1) ? 0 : 1)'
counts='f("engine") == "mw" && f("sqe_send_per_io") == 1 && f("sqe_bind_per_io") == '"$k"
counts+=' && near(f("sqe_inv_per_io"), '"$invs"') && near(f("sqe_per_io"), 1 + '"$k + $invs"')'
counts+=' && f("posts_per_io") == 1 + '"$post"' && f("recv_cqe_per_io") == 1'

# Under io each I/O has one completion, of its revoke where that is a post of its own. Then its request is
# silent, unless half of the slots are.
ends='near(f("cqe_per_io"), 1 + f("forced_signals") / f("iterations")) && f("cqe_per_io") <= 1.5'
ends+=' && ('"$post"' || f("forced_signals") == 0)'

# The windows that the double knows of are the rows'; a server revokes one of each I/O by its reply.
windows_as_counted() {
	awk -F, '
	FILENAME == ARGV[1] { split($0, a, "="); stats[a[1]] = a[2]; next }
	FNR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
	{
		n = $c["iterations"]
		remote = $c["revoke"] == "remote"
		if (sprintf("%.0f", $c["sqe_bind_per_io"] * n) != stats["binds"] ||
		    sprintf("%.0f", ($c["sqe_inv_per_io"] + remote) * n) != stats["invalidates"] ||
		    stats["alloc_mw"] != stats["dealloc_mw"])
			exit 1
		for (name in stats)
			if (name == "sqes" && sprintf("%.0f", ($c["sqe_per_io"] + $c["peer_sqe_per_io"]) * n) != stats[name])
				exit 1
	}' "$FAKEHCA_STATS" "$out_file" || fail "the double counted something else" "$(<"$FAKEHCA_STATS")"
}

# ---- what an I/O is made of ----

@test "SQEs, posts and completions of an I/O, of one run and of several, in each way to revoke" {
	local op how
	for op in read write; do
		for how in sync async remote lazy; do
			frwr 2 --op $op --revoke $how -s 600 --frags 1,6 --signal io --peer-signal io --warmup 0 -n 500 --depth 4 --verify
			that "$counts"' && '"$ends"' && f("verify") == "yes" && f("revoke") == "'$how'"'
			that 'f("peer_sqe_per_io") == 1 + f("frags") && f("peer_sqe_send_per_io") == 1'
			frwr 1 --op $op --revoke $how -s 600 --frags 6 --signal io --peer-signal io --warmup 0 -n 500 --depth 4
			that "$counts"
			windows_as_counted
		done
	done
}

@test "fragments that adjoin are one run, and one window, however many" {
	frwr 12 --op write --revoke sync,async,remote,lazy -s 4k --frags 2,16,100 --frag-gap 0 --warmup 0 -n 200 --depth 4 --verify
	that "$counts"' && f("sqe_bind_per_io") == 1 && f("exposed_bytes_peak") <= 2 * 4 * 4096'
	frwr 2 --op read,write --frags 256 -s 64k --warmup 0 -n 20 --depth 3 --peer-sq-depth 8 --verify
	that "$counts"' && f("sqe_bind_per_io") == 256'
}

@test "several queue pairs, misaligned memory, every way to poll, both policies: verified" {
	local how
	for how in busy yield event; do
		frwr 8 --op read,write --revoke sync,async,remote,lazy --qps 3 --poll $how --misalign 2049 -s 3000 --frags 3 --frag-gap 7 \
			-n 60 --depth 5 --warmup 0 --verify --signal every:5 --peer-signal every:3
		that "$counts"' && f("iterations") == 180 && f("verify") == "yes"'
	done
}

@test "--post single: a call for each WR" {
	frwr 4 --op write --revoke sync,async,remote,lazy --frags 3 -s 600 --warmup 0 -n 200 --depth 4 --post single --verify
	that 'f("posts_per_io") == f("sqe_per_io") && near(f("sqe_inv_per_io"), '"$invs"')'
}

@test "--reply imm: with each way to revoke but the reply's own, which is refused" {
	frwr 3 --op write --reply imm --revoke sync,async,lazy --frags 3 -s 600 --warmup 0 -n 200 --depth 4 --verify
	that "$counts"' && f("peer_sqe_send_per_io") == 0'
	bench loopback -d fake0 --mode rpc --strategy frwr --op write --reply imm --revoke remote
	refused 2 'contradiction: --reply imm, --revoke remote: it is a SEND that revokes'
}

# Of a write whose data come with the reply nothing is exposed; a read's are in the request.
@test "data in a message: nothing is granted; in a request they are not frwr's to send" {
	frwr 2 --op read,write -s 0 --warmup 0 -n 50
	that 'f("sqe_per_io") == 1 && f("sqe_bind_per_io") == 0 && f("exposure_scope") == "" && f("revoke") == ""'
	frwr 2 --op write --revoke auto,remote -s 600 --inline-threshold 600 --warmup 0 -n 50 --verify
	that 'f("sqe_per_io") == 1 && f("sqe_bind_per_io") == 0 && f("exposed_bytes_peak") == 0'
	bench loopback -d fake0 --mode rpc --strategy frwr --op read -s 600,601 --inline-threshold 600 -n 50 --format csv
	ended 0
	rows "$out_file" 2 'f("bytes") == 601 ? f("status") == "ok" : f("status") == "skipped" && f("reason") ~ /^frwr has no key for local use: /'
}

@test "what cannot be is skipped, with the reason: no way to revoke, no windows over iWARP" {
	bench loopback -d fake0 --mode rpc --strategy frwr --revoke none -n 5 --format csv
	ended 1
	rows "$out_file" 1 'f("status") == "skipped" && f("reason") ~ /^frwr has one key after the other for the same window/'
	FAKEHCA=iwarp=1 bench loopback -d fake0 --mode rpc --strategy frwr -n 5 --format csv
	ended 1
	rows "$out_file" 1 'f("status") == "skipped" && f("reason") ~ /^frwr takes memory windows of type 2; and fake0 gives none/'
}

@test "too few windows: one line with the device's limit, and a failed row" {
	FAKEHCA=max_mw=20 frwr 1 --op write --frags 4 -s 600 --depth 5 -n 50
	FAKEHCA=max_mw=19 bench loopback -d fake0 --mode rpc --strategy frwr --op write --frags 4 -s 600 --depth 5 -n 50 --format csv
	complained 1 'ibv_alloc_mw on fake0: .*max_mw 19.: use a smaller --depth or --frags'
	rows "$out_file" 1 'f("status") == "failed"'
}

# ---- completions ----

@test "--signal all: each WR; io: the last of each I/O" {
	frwr 32 --op read,write --revoke sync,async,remote,lazy --frags 1,6 -s 600 --signal all,io --warmup 0 -n 300 --depth 12
	that "$counts"' && (f("signal") == "io" ? '"$ends"' : f("cqe_per_io") == f("sqe_per_io") && f("forced_signals") == 0)'
}

# Who waits for a revoke has it signalled. Who waits for none has one completion for six I/Os, half of the
# slots, of which each counts twice where it has two posts.
@test "--signal half: a completion for each revoke that is waited for; else one for half of the slots" {
	frwr 16 --op read,write --revoke sync,async,remote,lazy --frags 1,6 -s 600 --signal half --warmup 0 -n 600 --depth 12
	that "$counts"' && (f("revoke") == "sync" || (f("revoke") == "remote" && '"$post"') ? \
		f("cqe_per_io") >= 1 && f("cqe_per_io") <= 1.34 : f("cqe_per_io") <= (1 + '"$post"') / 6 + 0.01)'
	that 'near(f("cqe_per_io"), f("forced_signals") / 600)'
}

@test "--signal every:K counts all WRs" {
	frwr 8 --op write --revoke async,lazy --frags 1,6 -s 600 --signal every:3,every:13 --warmup 0 -n 390 --depth 12
	that "$counts"' && near(f("cqe_per_io"), \
		(floor(f("sqe_per_io") * 390 / substr(f("signal"), 7) + 0.02) + f("forced_signals")) / 390)'
	frwr 2 --op write --revoke sync,remote --frags 6 -s 600 --signal every:13 --warmup 0 -n 390 --depth 12 --verify
	that "$counts"' && f("cqe_per_io") > 1'
}

@test "--defer recv: each request's completion besides" {
	frwr 8 --op read,write --defer recv --revoke sync,async,remote,lazy --frags 3 -s 600 --warmup 0 -n 300 --depth 8 --verify
	that "$counts"' && f("cqe_per_io") >= 1 + (f("revoke") ~ /^(sync|remote)$/) && f("cqe_per_io") <= 2'
}

# ---- queues ----

# The most SQEs of an I/O: its SEND, K grants, K revokes, of which the reply may be one.
@test "the client's queue: 2*N*depth+1 entries never stall, N+1 are enough, N are refused" {
	local how n frags
	for frags in 1 6; do
		for how in sync async remote lazy; do
			n=$((2 * frags + 1))
			[[ $how != remote ]] || n=$((2 * frags))
			frwr 2 --op write --revoke $how --frags $frags -s 600 -n 200 --depth 8 --sq-depth 0,$((16 * n + 1)) --verify
			that 'f("sq_depth") == '$((16 * n + 1))' && f("sq_wanted") == f("sq_depth") && f("stalls_per_io") == 0'
			frwr 2 --op read --revoke $how --frags $frags -s 600 -n 200 --depth 8 --sq-depth $((4 * n)),$((n + 1)) --verify
			that 'f("iterations") == 200 && f("sq_peak") < f("sq_depth") && (f("sq_depth") > '$((n + 1))' || f("stalls_per_io") > 0.5)'
			bench loopback -d fake0 --mode rpc --strategy frwr --op read --revoke $how --frags $frags --sq-depth $n -n 5 --format csv
			complained 1 "a send queue of $n entries cannot hold one I/O: it takes $n," "use --sq-depth $((n + 1)) or more"
			rows "$out_file" 1 'f("status") == "failed"'
		done
	done
}

# ---- keys ----

# A window is bound 256 times until a key of it comes back: of a connection with one, after 256 I/Os; with
# many that take turns, after so many times 256.
@test "key_reuse_min: 256 I/Os for each slot; none before the 257th" {
	local how
	for how in sync async remote lazy; do
		frwr 2 --op write --revoke $how -s 64 --frags 1,8 -n 256 --depth 1 --warmup 0
		that 'f("key_reuse_min") == ""'
		frwr 2 --op write --revoke $how -s 64 --frags 1,8 -n 257 --depth 1 --warmup 0
		that 'f("key_reuse_min") == 256'
		frwr 2 --op read --revoke $how -s 64 --frags 1,8 -n 2200 --depth 8 --warmup 0
		that 'f("key_reuse_min") > 1900 && f("key_reuse_min") <= 2048'
	done
	frwr 1 --op write -s 64 -n 2000 --depth 8 --qps 2
	that 'f("key_reuse_min") == ""'
}

@test "eight windows and many I/Os: each key of each, time and again, verified" {
	frwr 4 --op write --revoke sync,async,remote,lazy -s 200 -n 5000 --depth 8 --warmup 0 --verify
	that "$counts"' && f("iterations") == 5000 && f("key_reuse_min") > 1900'
	windows_are_8
	frwr 4 --op read --revoke sync,async,remote,lazy -s 200 --frags 8 -n 800 --depth 1 --warmup 0 --verify
	that "$counts"' && f("iterations") == 800 && f("key_reuse_min") == 256'
}

# The one more is asked for to see whether the device has any.
windows_are_8() {
	frwr 1 --op write -s 200 -n 300 --depth 8
	[[ $(of_double alloc_mw) == 9 && $(of_double dealloc_mw) == 9 ]] || fail "not 8 windows" "$(<"$FAKEHCA_STATS")"
}

# The double hands a window's number out again at once, so its keys do come back, after those that are left:
# what the column says is what was.
@test "--mw-renew: windows are made anew before they have had all their keys; verified" {
	local how few
	for how in sync async remote lazy; do
		frwr 1 --op write --revoke $how --mw-renew -s 200 -n 255 --depth 1 --warmup 0 --verify
		few=$(of_double alloc_mw)
		that "$counts"' && f("key_reuse_min") == "" && f("opts") ~ /mw-renew=yes/'
		frwr 1 --op write --revoke $how --mw-renew -s 200 -n 256 --depth 1 --warmup 0 --verify
		[[ $(of_double alloc_mw) == $((few + 1)) && $(of_double dealloc_mw) == $((few + 1)) ]] || fail "not one window more"
		frwr 2 --op write --revoke $how --mw-renew -s 600 --frags 3 -n 3000 --depth 2,8 --warmup 0 --verify
		that 'f("iterations") == 3000 && f("sqe_bind_per_io") == 3'
	done
	(($(of_double alloc_mw) > 24)) || fail "no window was made anew"
	bench loopback -d fake0 --mode direct --op write --mw-renew
	refused 2 'contradiction: --mw-renew'
}

# ---- what lies open ----

@test "exposed: of the queue pair alone, what is in flight; lazy: until the next I/O of the slot, and its own" {
	local most='f("depth") * f("qps") * f("bytes") * (f("revoke") == "lazy" ? 2 : 1)'
	frwr 16 --op read,write --revoke sync,async,remote,lazy -s 8k --frags 1,2 -n 200 --depth 4 --qps 2
	that 'f("exposure_scope") == "qp" && f("exposed_bytes_peak") <= '"$most"' && f("exposed_bytes_peak") >= f("bytes")'
	that 'f("exposed_bytes_avg") > 0 && f("exposed_bytes_avg") <= f("exposed_bytes_peak")'
	frwr 8 --op read,write --revoke sync,async,remote,lazy -s 8k --frags 3 -n 200 --depth 1
	that 'f("exposed_bytes_peak") == (f("revoke") == "lazy" ? 16384 : 8192)'
	that 'f("revoke") == "lazy" ? f("exposed_bytes_avg") > 8192 : f("exposed_bytes_avg") < 8192'
	frwr 2 --op read,write -s 8k -n 50
	that 'f("revoke") == (f("op") == "read" ? "async" : "sync") && f("opts") !~ /revoke/'
}

@test "open after the reply: nothing where the reply itself revokes; else a time, and lazy the longest" {
	local op
	for op in read write; do
		frwr 4 --op $op --revoke sync,async,remote,lazy -s 64 -n 2000 --depth 4
		that 'f("revoke") == "remote" ? f("open_after_us_p50") == 0 && f("open_after_us_p99") == 0 : \
			f("open_after_us_p50") > 0 && f("open_after_us_p99") >= f("open_after_us_p50")'
		frwr 1 --op $op --revoke remote -s 64 --frags 2 -n 2000 --depth 4
		that 'f("open_after_us_p50") > 0'
	done
}

# Completions come long after the reply: only who waits for the revoke's is the slower for it.
@test "latency: sync and remote until the keys are dead, async and lazy until the reply" {
	FAKEHCA=real_clock=0,sq_delay=2000,step_ns=10000 frwr 8 --op write --revoke sync,async,remote,lazy -s 64 --frags 1,2 \
		-n 40 --depth 1 --signal io --warmup 0
	that '(f("revoke") == "sync" || (f("revoke") == "remote" && f("frags") == 2)) == (f("lat_min_us") >= 20000)'
}

@test "timing: each wait where it happens" {
	frwr 2 --op write --revoke async,lazy -s 64 -n 500 --depth 2 --timing phases --signal io
	that 'f("map_us_per_io") > 0 && (f("revoke") == "lazy" ? f("unrevoked_per_io") == 0 : \
		f("unrevoked_per_io") > 0 && f("unrevoked_us_per_io") > 0)'
}

# ---- devices ----

@test "devices that grant more, delay, reorder: all verified, no RECV is ever missing" {
	local device
	for device in seed=1,sq_delay=50,read_lag=20,cq_order=3,sq_extra=9,mtu=256 seed=2,rq_delay=80,cq_order=1 \
		seed=3,max_sge=2,max_sge_rd=1,max_rd_atomic=1,cq_order=2; do
		FAKEHCA=$device frwr 16 --op read,write --revoke sync,async,remote,lazy --frags 5 --sq-depth 0,12 -s 3000 -n 60 --depth 7 --verify
		that 'f("iterations") == 60 && f("verify") == "yes"'
		[[ $(of_double rnr_waits) == 0 ]]
	done
}

# To revoke the key from here as well would be the second time.
@test "a reply that revoked nothing, as far as the device tells: the run fails, and nothing more is revoked" {
	FAKEHCA=inv_flag_wrong=1 bench loopback -d fake0 --mode rpc --strategy frwr --revoke remote -n 20 --format csv
	complained 1 'the reply to request 0 revoked no key, as --revoke remote has it'
	rows "$out_file" 1 'f("status") == "failed"'
}

@test "a grant or a revoke that fails: one line that names it, a failed row, and nothing is left" {
	local n how seen=''
	for how in sync remote lazy; do
		for n in 1 2 3 7 8; do
			FAKEHCA=fail_wr=$n,fail_wr_with=10 bench loopback -d fake0 --mode rpc --strategy frwr --op write --frags 2 \
				--revoke $how --depth 1 -n 20 --warmup 0 --format csv
			[[ $status == 1 ]] && one_line "$err"
			rows "$out_file" 1 'f("status") == "failed"'
			seen+=$err
		done
	done
	[[ $seen == *'BIND_MW failed'* && $seen == *'LOCAL_INV failed'* ]] || fail "not named" "$seen"
}
