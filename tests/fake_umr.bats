#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Strategy frwr-umr on the test double, as mlx5: what an I/O takes in each way to revoke, and where an end
# moves data itself; that bytes are right, both ends' counts, and that the double has counted the same. It
# refuses a list that is given or taken back in any other order than the rules have it, and then the program
# ends with status 70.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench

LIMIT=60
export FAKEHCA=mlx5=1 FAKEHCA_STATS=$BATS_TEST_TMPDIR/stats

setup() {
	[[ $("$RXFER_BENCH" devices) != *'built without'* ]] || skip "built without libmlx5"
}

# umr ROWS ARG..., direct ROWS ARG...: runs that must leave so many ok rows.
umr() {
	loop "$1" --mode rpc --strategy frwr-umr --rnr-retry 0 "${@:2}"
}

direct() {
	loop "$1" --mode direct --strategy frwr-umr "${@:2}"
}

# that CONDITION: holds for each row of the latest runs.
that() {
	rows "$out_file" "$(($(grep -c '' "$out_file") - 1))" "$1"
}

# of_double NAME: counted by it.
of_double() {
	sed -n "s/^$1=//p" "$FAKEHCA_STATS"
}

# Of I/Os whose slot had one before: all but the first DEPTH on each QP.
again='(f("iterations") - f("depth") * f("qps")) / f("iterations")'
invs='(f("revoke") == "lazy" ? '"$again"' : f("revoke") == "remote" ? 0 : 1)'
posts='(f("revoke") ~ /^(lazy|remote)$/ ? 1 : 2)'
counts='f("engine") == "umr" && f("sqe_send_per_io") == 1 && f("sqe_bind_per_io") == 1 && f("recv_cqe_per_io") == 1'
counts+=' && near(f("sqe_inv_per_io"), '"$invs"') && near(f("sqe_per_io"), 2 + '"$invs"') && f("posts_per_io") == '"$posts"

# UMRs are the rows', and one of each end that tried itself out: of the client alone. A server revokes one by its
# reply.
lists_as_counted() {
	awk -F, '
	FILENAME == ARGV[1] { split($0, a, "="); stats[a[1]] = a[2]; next }
	FNR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
	{
		n = $c["iterations"]
		remote = $c["revoke"] == "remote"
		if (sprintf("%.0f", $c["sqe_bind_per_io"] * n + 1) != stats["umrs"] ||
		    sprintf("%.0f", ($c["sqe_inv_per_io"] + remote) * n + 1) != stats["umr_invalidates"] ||
		    stats["create_mkey"] != stats["destroy_mkey"])
			exit 1
	}' "$FAKEHCA_STATS" "$out_file" || fail "the double counted something else" "$(<"$FAKEHCA_STATS")"
}

# ---- exposing ----

@test "one key and one segment, whatever the fragments: SQEs, posts, in each way to revoke; verified" {
	local op how
	for op in read write; do
		umr 12 --op $op --revoke sync,async,remote,lazy -s 1600 --frags 1,4,16 --warmup 0 -n 60 --depth 4 --verify
		that "$counts"' && f("verify") == "yes" && f("exposure_scope") == "pd"'
		for how in sync async remote lazy; do
			umr 1 --op $op --revoke $how -s 1600 --frags 16 --warmup 0 -n 60 --depth 4
			that "$counts"
			lists_as_counted
		done
	done
}

@test "fragments that adjoin are one piece: more than a list has room for, if they do not" {
	umr 4 --op write --revoke sync,async,remote,lazy -s 4k --frags 100 --frag-gap 0 --warmup 0 -n 50 --depth 4 --verify
	that "$counts"
	bench loopback -d fake0 --mode rpc --strategy frwr-umr --op write --frags 16,17 -s 4k -n 50 --format csv
	complained 1 'a key to 17 pieces of memory is more than a work request of fake0 has room for, 16: use fewer --frags'
	rows "$out_file" 2 'f("status") == (f("frags") == 16 ? "ok" : "failed")'
}

@test "several queue pairs, misaligned memory, every way to poll, single posts, inline requests: verified" {
	local how
	for how in busy yield event; do
		umr 8 --op read,write --revoke sync,async,remote,lazy --qps 3 --poll $how --misalign 2049 -s 3000 --frags 3 --frag-gap 7 \
			-n 30 --depth 5 --warmup 0 --verify --signal every:5 --inline 128
		that "$counts"' && f("iterations") == 90'
	done
	umr 4 --op write --revoke sync,async,remote,lazy --frags 3 -s 600 --warmup 0 -n 200 --depth 4 --post single --verify
	that 'f("posts_per_io") == f("sqe_per_io") && near(f("sqe_inv_per_io"), '"$invs"')'
}

@test "data in a message: none, in the reply, in the request" {
	umr 2 --op read,write -s 0 --warmup 0 -n 50
	that 'f("sqe_per_io") == 1 && f("sqe_bind_per_io") == 0 && f("sq_wanted") == 33'
	umr 1 --op write -s 600 --inline-threshold 600 --warmup 0 -n 50 --verify
	that 'f("sqe_per_io") == 1 && f("sqe_bind_per_io") == 0'
	umr 2 --op send --frags 1,7 -s 3000 --warmup 0 -n 100 --depth 4 --verify
	that 'f("sqe_bind_per_io") == 1 && f("sqe_send_per_io") == 1 && f("posts_per_io") == 1 && f("copied_bytes_per_io") == 0'
}

@test "the client's queue: 2*N*depth+1 entries never stall, N+1 are enough, N are refused" {
	local how n
	for how in sync async remote lazy; do
		n=3
		[[ $how != remote ]] || n=2
		umr 2 --op write --revoke $how --frags 6 -s 600 -n 200 --depth 8 --sq-depth 0,$((16 * n + 1)) --verify
		that 'f("sq_depth") == '$((16 * n + 1))' && f("sq_wanted") == f("sq_depth") && f("stalls_per_io") == 0'
		umr 1 --op read --revoke $how --frags 6 -s 600 -n 200 --depth 8 --sq-depth $((n + 1)) --verify
		that 'f("iterations") == 200 && f("stalls_per_io") > 0'
		bench loopback -d fake0 --mode rpc --strategy frwr-umr --op read --revoke $how --frags 6 --sq-depth $n -n 5 --format csv
		complained 1 "a send queue of $n entries cannot hold one I/O: it takes $n,"
	done
}

@test "key_reuse_min: 256 I/Os for each slot where keys have tags, else each; --mw-renew puts it off" {
	local how
	for how in sync async remote lazy; do
		umr 1 --op write --revoke $how -s 64 --frags 2 -n 256 --depth 1 --warmup 0
		that 'f("key_reuse_min") == ""'
		umr 1 --op write --revoke $how -s 64 --frags 2 -n 257 --depth 1 --warmup 0
		that 'f("key_reuse_min") == 256'
		umr 1 --op write --revoke $how --mw-renew -s 600 --frags 3 -n 600 --depth 1 --warmup 0 --verify
		that 'f("key_reuse_min") == ""'
		FAKEHCA=mlx5=1,mkey_tagless=1 umr 1 --op write --revoke $how -s 600 --frags 3 -n 300 --depth 1 --warmup 0 --verify
		that "$counts"' && f("key_reuse_min") == 1'
	done
}

@test "devices that delay, reorder, have few SGEs: all verified" {
	local device
	for device in seed=1,sq_delay=50,read_lag=20,cq_order=3,sq_extra=9,mtu=256 seed=2,rq_delay=80,cq_order=1 \
		seed=3,max_sge=2,max_sge_rd=1,max_rd_atomic=1,cq_order=2,infiniband=1; do
		FAKEHCA=mlx5=1,$device umr 8 --op read,write --revoke sync,async,remote,lazy --frags 5 --sq-depth 12 -s 3000 -n 60 --depth 7 --verify
		that 'f("iterations") == 60 && f("verify") == "yes"'
		FAKEHCA=mlx5=1,$device direct 3 --op read,write,send --frags 5 -s 3000 -n 60 --depth 7 --verify
	done
}

# ---- local use ----

@test "direct mode: a key of each I/O's own, ended in front of the slot's next; one post; verified" {
	direct 16 --op read,write,write-imm,send --frags 1,16 -s 4k --signal half,all --warmup 0 -n 100 --depth 4 --verify
	that 'f("engine") == "umr" && f("sqe_bind_per_io") == 1 && near(f("sqe_inv_per_io"), '"$again"') && f("posts_per_io") == 1 \
		&& near(f("sqe_per_io"), 2 + '"$again"') && f("sq_wanted") == 25 && f("copied_bytes_per_io") == 0'
	direct 2 --op write,send --frags 3 -s 90 --inline 128 --bidir -n 100 --depth 3 --verify
	direct 2 --op read,write --frags 3 -s 900 --post single --sl 3 -n 100 --depth 3 --verify --warmup 0
	that 'near(f("posts_per_io"), f("sqe_per_io"))'
	FAKEHCA=mlx5=1,max_sge=2 direct 1 --op send --frags 7 -s 4k -n 100 --verify
	that 'f("copied_bytes_per_io") == 0'
}

# ---- who has it ----

@test "what cannot be is skipped, with the reason" {
	bench loopback -d fake0 --mode rpc --strategy frwr-umr --revoke none -n 5 --format csv
	ended 1
	rows "$out_file" 1 'f("status") == "skipped" && f("reason") ~ /^frwr-umr gives one list after the other to the same key/'
	bench loopback -d fake0 --mode rpc --peer-strategy frwr-umr -n 5 --format csv
	ended 1
	rows "$out_file" 1 'f("status") == "skipped" && f("reason") ~ /^the server side: frwr-umr takes two work requests more/'
	FAKEHCA='' bench loopback -d fake0 --mode rpc --strategy frwr-umr -n 5 --format csv
	ended 1
	rows "$out_file" 1 'f("status") == "skipped" && f("reason") ~ /^frwr-umr takes mkeys of mlx5; and fake0 is another driver/'
}

# Each run tries it out first, whatever the device promises.
@test "a device whose mkeys move nothing, and succeed: nothing is measured" {
	FAKEHCA=mlx5=1,mkey_blind=1 bench loopback -d fake0 --strategy frwr-umr,global -n 50 --format csv
	ended 0
	rows "$out_file" 2 'f("strategy") == "global" ? f("status") == "ok" : f("status") == "skipped" && f("iterations") == "" && \
		f("reason") ~ /a WRITE to an mkey succeeded and moved wrong bytes/'
	FAKEHCA=mlx5=1,mkey_blind=1 bench devices
	[[ $out == *'frwr-umr: no: frwr-umr tried itself out on fake0 before use'* ]] || fail "$out"
	FAKEHCA=mlx5=1 bench devices
	[[ $out == *'frwr-umr: yes'* ]] || fail "$out"
}

@test "attempts of the peer: a list has bounds and rights, any queue pair may use it; and what differs shows" {
	bench fence -d fake0 --strategy frwr-umr -s 64,5000 --format csv
	ended 0
	rows "$out_file" 112 'f("verdict") == "ok" && f("attempt") != "before" && \
		(f("attempt") != "other-qp" || f("observed") == "open") && (f("attempt") != "after" || f("observed") == "closed")'
	FAKEHCA=mlx5=1,mw_stays=1 bench fence -d fake0 --strategy frwr-umr --revoke sync --format csv
	ended 1
	rows "$out_file" 13 '(f("verdict") == "differs") == (f("attempt") == "use" && f("expected") == "closed")'
}

@test "a grant or a revoke that fails: one line that names it, a failed row, and nothing is left" {
	local n seen=''
	for n in 7 8 9 10 11; do # after those of the trial
		FAKEHCA=mlx5=1,fail_wr=$n,fail_wr_with=6 bench loopback -d fake0 --mode rpc --strategy frwr-umr --op write --frags 2 \
			--depth 1 -n 20 --warmup 0 --format csv
		[[ $status == 1 ]] && one_line "$err"
		rows "$out_file" 1 'f("status") == "failed"'
		seen+=$err
	done
	[[ $seen == *'UMR failed'* && $seen == *'LOCAL_INV failed'* ]] || fail "not named" "$seen"
}
