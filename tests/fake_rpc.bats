#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# RPC mode at full width, on the test double: each option does what it says, both ends' counts are
# what the rules say, and the double has counted the same.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench
load vm/matrix
load fake_rpc

LIMIT=60
export FAKEHCA='' FAKEHCA_STATS=$BATS_TEST_TMPDIR/stats

# What one row says of both ends is what the double counted, which knows of no ends. Of a run without
# a warm-up and without a drain, which no row counts.
as_counted() {
	awk -F, '
	FILENAME == ARGV[1] { split($0, a, "="); stats[a[1]] = a[2]; next }
	FNR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
	function f(name) { return $c[name] }
	function same(name, value) {
		if (sprintf("%.0f", value) != stats[name]) {
			printf "the double counted %s=%s, the row says %.2f\n", name, stats[name], value
			bad = 1
		}
	}
	{
		n = f("iterations")
		same("sqes", (f("sqe_per_io") + f("peer_sqe_per_io")) * n)
		same("posts", (f("posts_per_io") + f("peer_posts_per_io")) * n)
		same("sq_cqes", (f("cqe_per_io") + f("peer_cqe_per_io")) * n)
		same("rq_cqes", (f("recv_cqe_per_io") + 1) * n)
		same("recvs", 2 * f("depth") * f("qps") + 2 * n)
		same("bytes_read", f("op") == "read" && f("peer_sqe_read_per_io") > 0 ? f("bytes") * n : 0)
		same("bytes_written", f("peer_sqe_write_per_io") > 0 ? f("bytes") * n : 0)
		same("rnr_waits", 0)
		same("lost_cqes", 0)
		rows++
	}
	END { exit bad || rows != 1 }' "$FAKEHCA_STATS" "$out_file" >&2 || fail "the double counted something else"
}

# exactly CONDITION ARG...: of one run with each I/O signalled, no warm-up.
exactly() {
	local condition=$1
	shift
	rpc 1 --signal io --peer-signal io --warmup 0 -n 500 --depth 4 --rnr-retry 0 "$@" || return 1
	as_counted || return 1
	that "$condition"' && f("sqe_per_io") == 1 && f("sqe_send_per_io") == 1 && f("cqe_per_io") == 1 \
		&& f("posts_per_io") == 1 && f("recv_cqe_per_io") == 1 && f("samples") == f("iterations")' || return 1
	that 'near(f("peer_sqe_per_io"), f("peer_sqe_read_per_io") + f("peer_sqe_write_per_io") + f("peer_sqe_send_per_io"))'
}

# server READS WRITES SENDS POSTS CQES: of one I/O, at the server, as a condition.
server() {
	printf 'f("peer_sqe_read_per_io") == %s && f("peer_sqe_write_per_io") == %s && f("peer_sqe_send_per_io") == %s && f("peer_posts_per_io") == %s && f("peer_cqe_per_io") == %s' "$@"
}

# ---- what an I/O is made of ----

@test "read: N READs in one post, the reply in another; the double has counted the same" {
	exactly "$(server 1 0 1 2 2)" --op read -s 600
	exactly "$(server 6 0 1 2 2)" --op read -s 600 --frags 6 --strategy multi-wr
	exactly "$(server 6 0 1 2 2)" --op read -s 600 --frags 6 --strategy global
	exactly "$(server 6 0 1 2 2)" --op read -s 600 --frags 6 --strategy per-io --qps 3
}

@test "write: data and reply in one post, proven by one completion" {
	exactly "$(server 0 1 1 1 1)" --op write -s 600
	exactly "$(server 0 6 1 1 1)" --op write -s 600 --frags 6 --strategy multi-wr
	exactly "$(server 0 6 1 1 1)" --op write -s 600 --frags 6 --strategy per-io --qps 3
}

@test "write with --reply imm: the last WRITE is the reply, one WR less" {
	exactly "$(server 0 1 0 1 1)" --op write --reply imm -s 600
	exactly "$(server 0 6 0 1 1)" --op write --reply imm -s 600 --frags 6 --strategy multi-wr
	rpc $((2 * $(strategies))) --op write --reply imm,send --strategy "$(every)" --frags 5 -s 777 -n 100 --verify --rnr-retry 0
}

# Of 3.5 times what a message may have: the WRs that its bytes take, or that its segments and their bytes do.
@test "more bytes than a message may have: more WRs, all in one post where the queue has room" {
	export FAKEHCA=max_msg_size=4096
	exactly "$(server 4 0 1 2 2)" --op read -s 14336
	exactly "$(server 0 4 1 1 1)" --op write -s 14336
	exactly "$(server 0 4 0 1 1)" --op write --reply imm -s 14336
	exactly "$(server 4 0 1 2 2)" --op read -s 14336 --frags 4
	exactly "$(server 0 4 1 1 1)" --op write -s 14336 --frags 4 --strategy multi-wr
	exactly "$(server 0 6 1 1 1)" --op write -s 14337 --frags 3
	exactly "$(server 0 4 1 1 1)" --op write -s 14337 --frags 3 --strategy bounce
	exactly "$(server 0 4 1 1 1)" --op write -s 14336 --frags 4 --frag-gap 0
	exactly "$(server 1 0 1 2 2)" --op read -s 4096
	exactly "$(server 2 0 1 2 2)" --op read -s 4097
	rpc $((8 * $(strategies))) --op read,write --strategy "$(every)" --frags 1,4 -s 14336,14337 -n 40 --verify --rnr-retry 0
	rpc 20 --op read,write --peer-strategy global,multi-wr,per-io,bounce,rcache --frags 1,4 -s 14336 -n 40 --verify
	rpc 2 --op write --reply imm --frags 1,4 -s 14336 -n 40 --verify
}

# The server's queue has the drain, the reply, and so many entries beside them.
@test "more bytes than a message may have, in rounds: the same WRs, in more posts" {
	export FAKEHCA=max_msg_size=4096
	rpc 6 --op read,write --frags 1,4,5 -s 14336 -n 60 --peer-sq-depth 3 --verify
	that 'f("peer_sqe_per_io") == (f("frags") == 5 ? 6 : 5) && f("peer_sq_peak") <= 2 && f("peer_sqe_send_per_io") == 1'
	that 'f("peer_posts_per_io") == f("peer_sqe_per_io") - (f("op") == "write")'
	rpc 4 --op read,write --frags 1,4 -s 14336 -n 60 --peer-sq-depth 4 --verify
	that 'f("peer_sqe_per_io") == 5 && f("peer_sq_peak") <= 3 && f("peer_posts_per_io") == 2 + (f("op") == "read")'
	rpc 2 --op write --reply imm --frags 1,4 -s 14336 -n 60 --peer-sq-depth 3 --verify
	that 'f("peer_sqe_per_io") == 4 && f("peer_sq_peak") <= 2 && f("peer_posts_per_io") == 3'
	rpc 8 --op read,write --frags 1,4 -s 14336 -n 40 --peer-sq-depth 4 --peer-strategy per-io,bounce --qps 2 --verify
	rpc 4 --op write --frags 4 -s 14336 --frag-gap 0 -n 40 --peer-sq-depth 3,4,5,6 --verify
}

@test "what is one message is refused where the device has none that long" {
	FAKEHCA=max_msg_size=4096 bench loopback -d fake0 --mode rpc --op send -s 14336 -n 5 --format csv
	complained 1 'a request of 14368 bytes is more than one message on fake0 can carry .max_msg_sz 4096.: use a smaller --size'
	FAKEHCA=max_msg_size=4096 bench loopback -d fake0 --mode rpc --op write -s 4096 --inline-threshold 4k -n 5 --format csv
	complained 1 'a reply of 4120 bytes is more than one message on fake0 can carry .max_msg_sz 4096.: use a smaller --size'
	counted sqes 0
}

@test "send: one message there, one back, and the data are in the first" {
	local bytes
	exactly "$(server 0 0 1 1 1)" --op send -s 0
	bytes=$(of_double bytes_sent)
	exactly "$(server 0 0 1 1 1)" --op send -s 600
	counted bytes_sent "$((bytes + 500 * 600))"
	exactly "$(server 0 0 1 1 1)" --op send -s 600 --frags 6 --strategy multi-wr
	counted bytes_sent "$((bytes + 500 * 600))"
}

@test "size 0: request and reply alone, whatever the operation; nothing is exposed" {
	local op
	for op in read write send; do
		exactly "$(server 0 0 1 1 1)" --op $op -s 0
		that 'f("bytes") == 0 && f("exposed_bytes_peak") == 0 && f("exposure_scope") == "" && f("bw_avg_MiBps") == 0 && f("msg_rate_Mpps") > 0'
	done
	rpc 3 --op read,write,send --strategy per-io --qps 3 -s 0 -n 50 --verify
}

@test "--inline-threshold: up to so many bytes in the message, one more by RDMA" {
	local op moved bytes
	for op in read write; do
		[[ $op == read ]] && moved=$(server 1 0 1 2 2) || moved=$(server 0 1 1 1 1)
		exactly "$(server 0 0 1 1 1)" --op $op -s 0 --inline-threshold 600
		bytes=$(of_double bytes_sent)
		exactly "$moved" --op $op -s 601 --inline-threshold 600
		exactly "$(server 0 0 1 1 1)" --op $op -s 600 --inline-threshold 600
		counted bytes_sent "$((bytes + 500 * 600))"
		that 'f("exposed_bytes_peak") == 0 && f("exposure_scope") == "" && f("revoke") == ""'
		exactly "$(server 0 0 1 1 1)" --op $op -s 599 --inline-threshold 600
		counted bytes_sent "$((bytes + 500 * 599))"
	done
	rpc 4 --op read,write --strategy per-io --inline-threshold 776,777 --frags 5 -s 777 -n 60 --verify
}

# The shape of the server's own memory is the client's; where fragments adjoin, they are one run.
@test "fragments: adjoining ones are one WR where one key has them, else one each; multi-wr never merges" {
	local strategy gap wrs
	for strategy in global multi-wr per-io; do
		for gap in 0 4k; do
			[[ $gap == 0 && $strategy != multi-wr ]] && wrs=1 || wrs=16
			exactly "$(server "$wrs" 0 1 2 2)" --op read --strategy $strategy --frag-gap $gap -s 64k --frags 16 -n 100
			exactly "$(server 0 "$wrs" 1 1 1)" --op write --strategy $strategy --frag-gap $gap -s 64k --frags 16 -n 100
		done
	done
}

# What goes inside the request is gathered from the I/O's own memory; what comes with the reply is copied
# there.
@test "per-io: so many registrations as the I/O has runs, each undone" {
	local how n
	while read -r n how; do
		# shellcheck disable=SC2086 # words
		registers "$n" $how
	done <<-'END'
		1 --op read --frags 1
		1 --op write --frags 16 --frag-gap 0
		16 --op write --frags 16
		16 --op read --frags 16 --revoke async
		16 --op read --frags 16 --revoke sync
		3 --op send --frags 3
		1 --op read --inline-threshold 64k
		0 --op write --inline-threshold 64k
	END
}

# registers N ARG...: that many registrations more for each I/O more, at the client.
registers() {
	local each=$1 few many
	shift
	rpc 1 --strategy per-io -s 64k --depth 4 -n 100 "$@" || return 1
	few=$(of_double reg_mr)
	counted dereg_mr "$few" || return 1
	rpc 1 --strategy per-io -s 64k --depth 4 -n 150 "$@" || return 1
	many=$(of_double reg_mr)
	counted dereg_mr "$many" || return 1
	((many - few == 50 * each)) || fail "$((many - few)) registrations in 50 I/Os: $*"
}

@test "--peer-strategy: the server's own memory; verified with each of both ends" {
	bench loopback -d fake0 --mode rpc --op read,write,send --strategy per-io --peer-strategy "$(every)" --frags 3 -s 777 -n 60 \
		--depth 5 --verify --format csv
	ended 0
	# Data of a send lie where they arrive.
	rows "$out_file" $((3 * $(strategies))) 'f("verify") == "yes" && (f("peer_strategy") == "frwr" && f("op") != "send" ? f("status") == "skipped" \
		&& f("reason") ~ /^the server side: frwr has no key for local use: / : f("status") == "ok" && \
		f("opts") ~ (f("peer_strategy") == "global" ? "." : "peer-strategy=" f("peer_strategy")))'
	rpc 1 --op write --peer-strategy per-io --frags 3 -s 600 -n 500 --warmup 0
	rows "$out_file" 1 'f("strategy") == "global" && f("peer_strategy") == "per-io"'
	(($(of_double reg_mr) >= 1500)) || fail "not registered for each I/O"
	counted dereg_mr "$(of_double reg_mr)"
}

@test "--post single: a call for each WR, at both ends; the same WRs and completions" {
	exactly "$(server 4 0 1 5 2)" --op read --frags 4 -s 600 --post single
	exactly "$(server 0 4 1 5 1)" --op write --frags 4 -s 600 --post single
	exactly "$(server 0 4 0 4 1)" --op write --frags 4 -s 600 --post single --reply imm
	exactly "$(server 0 0 1 1 1)" --op send --frags 4 -s 600 --post single
}

@test "a warm-up is posted, but not counted" {
	rpc 1 --op read -s 600 -n 300 --warmup 20 --signal io --peer-signal io
	that 'f("iterations") == 300 && f("samples") == 300 && f("sqe_per_io") == 1 && f("peer_sqe_per_io") == 2 && f("peer_cqe_per_io") == 2'
	counted sqes 960
	counted bytes_read 192000
}

# ---- revoking, exposure ----

@test "revoke: none where nothing has a key of its own; auto is async where the server reads, sync where it writes" {
	of_all $((3 * $(strategies))) --op read,write,send -s 8k --frags 2 -n 100 --depth 4
	that 'f("revoke") == (f("op") == "send" ? "" : f("strategy") !~ /^(per-io|frwr)$/ ? "none" : f("op") == "read" ? "async" : "sync")'
	that 'f("opts") !~ /revoke/'
	# At once, so that nobody waits for it with the reply there; or later, and somebody does.
	rpc 4 --op read,write --strategy per-io --revoke sync,async -s 8k -n 200 --depth 2 --verify
	that 'f("opts") ~ "revoke=" f("revoke") && (f("unrevoked_per_io") > 0) == (f("revoke") == "async")'
	rpc 4 --op read,write --strategy global,multi-wr --revoke none -s 8k -n 100
	that 'f("revoke") == "none" && f("opts") ~ /revoke=none/'
}

@test "revoke: what a strategy lacks is one skipped row with the reason; of nothing else a run is no success" {
	bench loopback -d fake0 --mode rpc --op read --strategy "$(every)" --revoke sync,none -n 50 -s 64 --format csv
	ended 0
	rows "$out_file" $((2 * $(strategies))) 'f("status") == ((f("strategy") ~ /^(per-io|frwr)$/) == (f("opts") ~ /revoke=sync/) ? "ok" : "skipped") \
		&& (f("status") == "ok" || f("iterations") == "")'
	rows "$out_file" $((2 * $(strategies))) 'f("status") == "ok" ? f("reason") == "" : f("reason") ~ "^" f("strategy") " .*--revoke"'
	bench loopback -d fake0 --mode rpc --op write --strategy global,multi-wr,per-io --revoke remote,lazy -n 50 -s 64 --format csv
	ended 1
	rows "$out_file" 6 'f("status") == "skipped" && f("reason") ~ "^" f("strategy") " .*--revoke"'
	counted sqes 0
}

@test "exposed: all of it, all the time, under one key; else what is in flight; of a send nothing" {
	local all='f("depth") * f("qps") * (f("bytes") + f("frag_gap") * (f("frags") - 1))'
	of_all $((3 * $(strategies))) --op read,write,send -s 8k --frags 2 -n 200 --depth 4
	that 'f("op") == "send" ? f("exposed_bytes_peak") + f("exposed_bytes_avg") == 0 && f("exposure_scope") == "" \
		: f("exposure_scope") == (f("strategy") == "frwr" ? "qp" : "pd")'
	that 'f("op") == "send" || f("strategy") !~ /^(global|multi-wr|odp.*)$/ || \
		(f("exposed_bytes_peak") == (f("strategy") == "odp-implicit" ? 2 ^ 47 : '"$all"') && f("exposed_bytes_avg") == f("exposed_bytes_peak"))'
	that 'f("op") == "send" || f("strategy") !~ /^(per-io|frwr)$/ || (f("exposed_bytes_peak") <= f("depth") * f("bytes") && \
		f("exposed_bytes_peak") >= f("bytes") && f("exposed_bytes_avg") > 0 && f("exposed_bytes_avg") <= f("exposed_bytes_peak"))'
	rpc 2 --op write --strategy global,per-io -s 8k -n 200 --depth 4 --qps 3
	that 'f("strategy") == "global" ? f("exposed_bytes_peak") == '"$all"' : f("exposed_bytes_peak") <= 12 * 8192'
}

@test "exposed: one I/O in flight of one key is as many bytes as it has" {
	rpc 4 --op read,write --strategy per-io --revoke sync,async -s 8k --frags 3 -n 200 --depth 1
	that 'f("exposed_bytes_peak") == 8192 && f("exposed_bytes_avg") > 0 && f("exposed_bytes_avg") < 8192'
}

@test "open after the reply: not told where nothing is revoked; else a time for each I/O" {
	rpc 4 --op read,write --strategy global,multi-wr -s 64 -n 100
	that 'f("open_after_us_p50") == "" && f("open_after_us_p99") == ""'
	rpc 4 --op read,write --strategy per-io --revoke sync,async -s 64 -n 2000
	that 'f("open_after_us_p50") > 0 && f("open_after_us_p99") >= f("open_after_us_p50")'
	rpc 1 --op send --strategy per-io -s 64 -n 100
	that 'f("open_after_us_p50") == ""'
}

# ---- queues ----

@test "the client's queue: 2*N*depth+1 entries never stall, half of them do, N+1 are enough, fewer are refused" {
	local op
	for op in read write send; do
		rpc 2 --op $op -s 600 -n 500 --depth 16 --sq-depth 0,33 --verify
		that 'f("sq_depth") == 33 && f("sq_wanted") == 33 && f("stalls_per_io") == 0 && f("sq_peak") <= 16'
		rpc 2 --op $op -s 600 -n 500 --depth 16 --sq-depth 16,2 --verify
		that 'f("stalls_per_io") > 0 && f("iterations") == 500 && f("sq_peak") < f("sq_depth")'
	done
	bench loopback -d fake0 --mode rpc --op read --sq-depth 1 -n 5 --format csv
	complained 1 'a send queue of 1 entry cannot hold one I/O' 'use --sq-depth 2 or more'
	rows "$out_file" 1 'f("status") == "failed" && f("reason") ~ /cannot hold one I.O/'
}

@test "the server's queue: 8 entries for I/Os of 256 segments, in rounds, by turns" {
	rpc $((2 * $(strategies))) --op read,write --strategy "$(every)" --frags 256 -s 64k -n 60 --peer-sq-depth 8 --verify --rnr-retry 0
	# A client that registers 256 times for each, or binds, may be the slower one: then nobody waits to begin.
	# What bounce exposes is one segment, and the server gathers its own memory by 30 SGEs.
	that 'f("iterations") == 60 && f("peer_sqe_per_io") == (f("strategy") == "bounce" ? 10 : 257) && f("peer_sq_peak") < 8 && \
		(f("peer_stalls_per_io") > 0 || f("strategy") ~ /^(per-io|rcache|frwr|bounce)$/)'
	that 'f("stalls_per_io") == 0'
	rpc 2 --op write --reply imm,send --strategy multi-wr --frags 256 -s 64k -n 60 --peer-sq-depth 8 --verify --rnr-retry 0
	that 'f("peer_sqe_per_io") == (f("opts") ~ /reply=imm/ ? 256 : 257)'
}

@test "the server's queue: one WR and its reply are the least, and one large enough stalls nobody" {
	rpc 2 --op read,write --frags 16 -s 4k -n 60 --peer-sq-depth 3 --verify
	that 'f("peer_sq_peak") <= 2 && f("peer_sqe_per_io") == 17'
	bench loopback -d fake0 --mode rpc --op read --frags 16 --peer-sq-depth 2 -n 5 --format csv
	complained 1 'the server side: a send queue of 2 entries cannot hold one I/O'
	rows "$out_file" 1 'f("status") == "failed"'
	# Twice as many I/Os as are in flight at once may be unproven there.
	rpc 3 --op read,write,send --frags 16 -s 4k -n 300 --depth 4 --peer-sq-depth 161
	that 'f("peer_stalls_per_io") == 0'
}

@test "256 segments are the most that a request names; a send may have more fragments" {
	rpc 1 --op read --frags 256 -s 4k -n 20 --verify
	bench loopback -d fake0 --mode rpc --op read --frags 257 -n 5
	refused 2 'contradiction: --mode rpc, --op read, --frags 257: '
	rpc 1 --op send --frags 1024 -s 4k -n 20 --verify
}

# ---- completions ----

@test "--defer recv: each request asks for a completion, whatever the policy wants" {
	rpc 12 --op read,write,send --defer recv --signal half,io,every:7,all -s 600 -n 500 --warmup 0 --verify
	that 'f("cqe_per_io") == 1 && f("forced_signals") == (f("signal") == "half" ? 500 : f("signal") == "every:7" ? 429 : 0)'
	rpc 3 --op read,write,send --defer slot -s 600 -n 500 --warmup 0 --verify
	that 'f("cqe_per_io") < 0.2'
}

# Completions of SENDs that come long after the replies: only who waits for them is the slower for it.
@test "--defer recv: an I/O is complete when its request's SEND is proven, not before" {
	FAKEHCA=real_clock=0,sq_delay=200000,step_ns=100 rpc 2 --op send -s 64 -n 20 --depth 1 --defer slot,recv --signal io --warmup 0
	rows "$out_file" 2 'f("opts") ~ /defer=recv/ ? f("lat_min_us") >= 20000 : f("lat_min_us") < 20000'
}

@test "the client's policies: each count as the rules say" {
	by_rules 12 --mode rpc --op write -n 400 --signal all,io,every:7,half --depth 1,12,128 --qps 3
	by_rules 6 --mode rpc --op send -n 400 --signal all,io,half --depth 12 --sq-depth 2,9
	by_rules 2 --mode rpc --op read -n 400 --signal every:7 --depth 12,128 --sq-depth 8
}

# peer_by_rules N: N ok rows without a warm-up, with the server's completions as the rules say (see
# vm/matrix.bash): a WRITE's data and reply are one post, a READ's two, of which the first must be
# signalled; the last WR ends the I/O. Exact where their order decides nothing; of READs by many at once
# replies may share a completion, and no more is said than that there are not fewer than must be.
peer_by_rules() {
	awk -F, -v wanted="$1" '
	function f(name) { return $c[name] }
	function post(wrs, must, ends,    i, want, sig) {
		for (i = 1; i <= wrs; i++) {
			if (seen != epoch) {
				seen = epoch
				ios++
			}
			silent++
			counted++
			want = signal == "all" || (signal == "io" && ends && i == wrs) || (k && counted >= k) ||
				(signal == "half" && silent >= int(entries / 2))
			sig = want || (i == wrs && (must || 2 * ios >= slots))
			if (want)
				counted = 0
			if (sig) {
				cqe++
				silent = ios = 0
				epoch++
			}
		}
	}
	function wrong(why) {
		print "row " n ": " why ": " $0
		bad = 1
	}
	NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
	{
		n++
		signal = f("peer_signal")
		k = signal ~ /^every:/ ? substr(signal, 7) + 0 : 0
		entries = f("opts") ~ /peer-sq-depth=/ ? substr(f("opts"), index(f("opts"), "peer-sq-depth=") + 14) + 0 : 0
		slots = f("depth")
		ios = silent = counted = cqe = 0
		epoch = 1
		of_qp = f("iterations") / f("qps")
		data = f("op") == "send" ? 0 : f("frags")
		for (io = 0; io < of_qp; io++) {
			seen = 0
			if (f("op") == "read")
				post(data, 1, 0)
			post(f("op") == "read" ? 1 : data + 1, 0, 1)
		}
		is = f("peer_cqe_per_io")
		exact = f("op") != "read" || slots == 1 || (slots == 2 && !k) || signal == "all" || signal == "io"
		if (f("status") != "ok" || f("peer_sqe_per_io") != data + 1)
			wrong("not ok, or other WRs")
		if (exact && sprintf("%.4f", cqe / of_qp) != is)
			wrong(sprintf("peer_cqe_per_io is not %.4f", cqe / of_qp))
		if (!exact && (is < 1 || is > data + 1))
			wrong("peer_cqe_per_io is out of bounds")
	}
	END {
		if (n != wanted)
			wrong(n + 0 " rows instead of " wanted)
		exit bad
	}' "$out_file" >&2
}

# Queues so deep that no I/O is signalled for want of credits.
@test "the server's policies: each count as the rules say" {
	rpc 36 --op read,write,send --peer-signal all,io,every:7,half --depth 1,2,12 --frags 3 --strategy multi-wr -s 600 \
		-n 400 --warmup 0 --peer-sq-depth 1000
	peer_by_rules 36
	rpc 6 --op write,send --peer-signal every:64,every:5,half --depth 128 --frags 3 --qps 3 -s 600 -n 400 --warmup 0 \
		--peer-sq-depth 2000
	peer_by_rules 6
	# Of half the queue each: whole batches and the tail.
	rpc 6 --op send --peer-signal half,all,io --depth 128 -s 600 -n 400 --warmup 0 --peer-sq-depth 9,33
	peer_by_rules 6
}

@test "policies of both ends at once, verified" {
	rpc 12 --op read,write,send --signal every:7,half --peer-signal every:7,half --strategy per-io \
		--frags 3 -s 777 -n 60 --depth 5 --verify --rnr-retry 0
	that 'f("verify") == "yes" && f("iterations") == 60'
	bench loopback -d fake0 --mode rpc --peer-signal every:9 --peer-sq-depth 8
	refused 2 'contradiction: --peer-signal every:9, --peer-sq-depth 8: '
}
