#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The whole program on the test double (tests/fakehca), both ends in one process. The double ends the
# program with status 70 where anything was violated or left behind, so each of these tests also says
# that nothing was. FAKEHCA has the double's settings, FAKEHCA_STATS takes what it counted.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench

LIMIT=60
export FAKEHCA='' FAKEHCA_STATS=$BATS_TEST_TMPDIR/stats

teardown() {
	end_server
}

# The double counted that many of NAME.
counted() {
	grep -qx "$1=$2" "$FAKEHCA_STATS" || fail "not $1=$2" "$(<"$FAKEHCA_STATS")"
}

# failed PATTERN...: the run failed in these words, and nothing was left behind.
failed() {
	complained 1 "$@" && rows "$out_file" 1 'f("status") == "failed" && f("reason") != ""'
}

@test "the device is there" {
	bench devices
	ended 0
	[[ $out == *fake0*RoCE*active*10.86.0.1* ]] || fail "no device"
	FAKEHCA=devices=3 bench devices
	[[ $out == *fake0*fake1*fake2*10.86.0.3* ]] || fail "a device is missing"
	FAKEHCA=iwarp=1,down=1 bench devices
	[[ $out == *fake0*iWARP*down* ]] || fail "wrong device"
}

@test "an unknown setting of the double is an error, and so is what is left behind" {
	FAKEHCA=max_sgee=3 bench devices
	[[ $status == 70 && $err == *max_sgee* ]] || fail "taken"
	FAKEHCA=fail_dereg_mr=9,fail_dereg_mr_with=16 bench loopback -d fake0 --op write -s 64 -n 50 \
		--strategy per-io --format csv
	[[ $status == 70 && $err == *'left behind: 1 PDs, 1 memory regions'* ]] || fail "not told"
}

@test "every operation, strategy, number of fragments: verified, every policy" {
	loop 72 --op read,write,send --strategy global,multi-wr,per-io --frags 1,3 -s 777 -n 60 --depth 5 --verify --poll yield \
		--signal all,io,half,every:4
	rows "$out_file" 72 'f("verify") == "yes" && f("iterations") == 60'
}

# Without a warm-up, and with nothing in the silent tail at the end: what the rows say and what the
# double has counted is the same, exactly.
# bats test_tags=threads
@test "the counts are the device's" {
	local op bytes
	for op in read write; do
		loop 1 --op "$op" -s 600 --frags 6 --strategy multi-wr -n 500 --depth 4 --signal io --warmup 0
		rows "$out_file" 1 'f("sqe_per_io") == 6 && f("cqe_per_io") == 1 && f("posts_per_io") == 1'
		counted sqes 3000
		counted posts 500
		counted sq_cqes 500
		counted rq_cqes 0
		[[ $op == read ]] && bytes=bytes_read || bytes=bytes_written
		counted "$bytes" 300000
	done
	loop 1 --op send -s 600 --frags 2 --strategy multi-wr -n 500 --depth 4 --signal all --warmup 0
	rows "$out_file" 1 'f("sqe_per_io") == 2 && f("cqe_per_io") == 2'
	counted bytes_sent 300000 # credits have no bytes
	(($(sent_credits) >= 50))
	counted rnr_waits 0
	loop 1 --op write -s 600 --frags 3 --strategy per-io -n 500 --depth 4 --warmup 0
	counted reg_mr 1501 # the target is one
	counted dereg_mr 1501
}

# Messages that gave credits back: all SQEs but the 1000 of the data.
sent_credits() {
	local sqes
	sqes=$(sed -n 's/^sqes=//p' "$FAKEHCA_STATS")
	echo $((sqes - 1000))
}

@test "devices that grant more, delay, reorder, overtake: all verified" {
	local seed
	for seed in 1 2; do
		FAKEHCA=seed=$seed,sq_delay=50,read_lag=20,cq_order=3,sq_extra=9,mtu=256 \
			loop 9 --op read,write,send --strategy global,multi-wr,per-io --frags 5 -s 3000 -n 100 --depth 7 --verify --poll yield
		FAKEHCA=seed=$seed,rq_delay=80,cq_order=$((seed % 3)),max_sge=2,max_sge_rd=1,max_rd_atomic=1 \
			loop 9 --op read,write,send --strategy global,multi-wr,per-io --frags 5 -s 3000 -n 100 --depth 7 --verify --poll yield
	done
}

@test "the smallest queue works, one entry less is refused" {
	loop 3 --op write --strategy global,multi-wr,per-io --frags 4 -s 4096 -n 200 --depth 8 --sq-depth 5 --verify
	bench loopback -d fake0 --op write --strategy multi-wr --frags 4 -n 5 --sq-depth 4 --format csv
	failed 'takes 4' '--sq-depth 5'
}

@test "a queue that the device does not have: the default shrinks, an explicit one is refused" {
	FAKEHCA=sq_room=10 loop 1 --op write -n 100 --depth 16
	rows "$out_file" 1 'f("sq_depth") == 10 && f("sq_wanted") == 33'
	FAKEHCA=sq_room=10 bench loopback -d fake0 --op write -n 100 --sq-depth 11 --format csv
	failed '11 send entries'
}

# bats test_tags=threads
@test "several queue pairs, polling by yielding and by sleeping" {
	loop 4 --op write,send --qps 1,4 -s 2000 -n 100 --depth 3 --poll yield --verify
	loop 4 --op read,send --qps 1,4 -s 2000 -n 100 --depth 3 --poll event --verify
}

# What fails in the middle of a run is in fake_faults.bats.
# bats test_tags=threads
@test "what fails in setting up fails the run, in the device's words, and all is freed" {
	local strategy
	local common=(loopback -d fake0 --op write -s 512 --frags 2 -n 200 --format csv)
	for strategy in global multi-wr per-io; do
		FAKEHCA=fail_reg_mr=2,fail_reg_mr_with=12 bench "${common[@]}" --strategy $strategy
		failed 'ibv_reg_mr|memory'
	done
	FAKEHCA=fail_resolve=1,fail_resolve_with=110 bench "${common[@]}"
	failed 'no way to the peer'
	FAKEHCA=fail_create_cq=1,fail_create_cq_with=1 bench "${common[@]}"
	failed 'ibv_create_cq|refused'
}

@test "READs in flight: as many as asked for, and no more than the device has" {
	loop 4 --op read --rd-atomic 0,1,4,16 -s 2000 -n 100 --depth 20 --verify --poll yield
	rows "$out_file" 4 'f("rd_atomic") == (f("opts") ~ /rd-atomic=/ ? \
		substr(f("opts"), index(f("opts"), "rd-atomic=") + 10) + 0 : 16)'
	FAKEHCA=max_rd_atomic=5 bench loopback -d fake0 --rd-atomic 6 -n 5 --format csv
	failed '--rd-atomic 6 is more than fake0 has' '--rd-atomic 5 or less'
}

# bats test_tags=threads
@test "service levels: had, told, or refused" {
	loop 18 --op read,write,send --sl 0,1,7 --qps 1,3 -s 2000 --frags 3 -n 60 --depth 5 --verify --poll yield
	rows "$out_file" 18 'f("iterations") == 60 * f("qps") && f("rd_atomic") == 16'
	FAKEHCA=sl_told=0 loop 1 --sl 5 -n 60
	FAKEHCA=infiniband=1 loop 1 -S 15 -n 60
	FAKEHCA=infiniband=1,sl_told=2 bench loopback -d fake0 --sl 5 -n 5 --format csv
	failed '--sl 5: the queue pair on fake0 has service level 0 instead'
	bench loopback -d fake0 --sl 8 -n 5 --format csv
	failed '--sl 8 cannot be had on fake0' '8 priorities'
	FAKEHCA=iwarp=1 bench loopback -d fake0 --sl 1 --op write -n 5 --format csv
	failed '--sl 1 cannot be had on fake0: it is iWARP'
	FAKEHCA=fail_modify_qp=2,fail_modify_qp_with=22 bench loopback -d fake0 --sl 1 -n 5 --format csv
	failed 'fake0 refuses to make the queue pair ready .RTR.'
	# The client's own step: its words count, not those of the server that was left alone.
	FAKEHCA=fail_modify_qp=5,fail_modify_qp_with=22 bench loopback -d fake0 --sl 1 -n 5 --format csv
	failed 'fake0 refuses to make the queue pair ready .RTR.'
	FAKEHCA=fail_establish=1,fail_establish_with=22 bench loopback -d fake0 --sl 1 -n 5 --format csv
	failed 'rdma_establish on fake0'
}

# The two doubles know nothing of each other, but the server looks at its device first, before it
# registers any memory.
# bats test_tags=threads
@test "what the server's device cannot do reaches the client as the reason" {
	local PORT=18517 HOST=127.0.0.1 DEVICE=fake0
	FAKEHCA=max_rd_atomic=5,real_clock=1 serve
	FAKEHCA=real_clock=1 client --rd-atomic 6 -n 5 --format csv
	failed '--rd-atomic 6 is more than fake0 has' '--rd-atomic 5 or less'
	server_ends
	FAKEHCA=max_msg_size=4096,real_clock=1 serve
	FAKEHCA=real_clock=1 client --op send -s 4097 --bidir -n 5 --format csv
	failed '--size 4097 is more than one message on fake0 can carry .max_msg_sz 4096.'
	server_ends
	counted reg_mr 0
}

@test "pages of each kind: verified, and the row says what there was; no kind stands in for another" {
	local needed huge free
	grep -qs '^[^[]*\[\(always\|madvise\)' /sys/kernel/mm/transparent_hugepage/enabled ||
		skip "no transparent huge pages here"
	loop 6 --op read,write,send --mem anon,thp -s 64k -n 60 --depth 32 --verify
	rows "$out_file" 6 'f("mem_huge_pct") ~ /^[0-9]+[.][0-9]$/ && f("mem_huge_pct") <= 100 && (f("opts") ~ /mem=thp/ || f("mem_huge_pct") == "0.0")'
	rows "$out_file" 6 'f("cpu") ~ /^([0-9]+|moved)$/ && f("peer_cpu") ~ /^([0-9]+|moved)$/'
	rows "$out_file" 6 'f("mem_node") ~ /^([0-9]+([+][0-9]+)*)?$/ && (f("peer_mem_node") == "") == (f("mem_node") == "")'
	huge=$(awk '/^Hugepagesize:/ { print $2 }' /proc/meminfo)
	free=$(awk '/^HugePages_Free:/ { print $2 }' /proc/meminfo)
	needed=$((free + 2))
	[[ -n $huge ]] && ((needed * huge < 2097152)) || skip "no huge pages, or too many"
	bench loopback -d fake0 --mem hugetlb -s "$((needed * huge))k" --depth 1 -n 5 --format csv
	failed '--mem hugetlb' "$needed huge pages of $huge KiB are needed" 'missing: sysctl vm.nr_hugepages='
}

@test "pages of memfds and files, touched before or not: every operation and strategy, verified; no file is left" {
	export TMPDIR=$BATS_TEST_TMPDIR/pages
	mkdir "$TMPDIR"
	loop 54 --op read,write,send --strategy global,multi-wr,per-io --mem anon,memfd,file --prefault all --qps 2 --frags 3 -s 9k \
		-n 30 --verify
	rows "$out_file" 54 'f("mem_huge_pct") == "0.0"'
	loop 8 --op read,send --bidir --strategy per-io --mem memfd,file --prefault all -s 9k -n 30 --verify
	bench loopback -d fake0 --mode rpc --op read,write,send --strategy "$(every)" --peer-strategy per-io --mem memfd,file --prefault all \
		--frags 3 -s 9k -n 30 --verify --format csv
	ended 0
	rows "$out_file" $((12 * $(strategies))) 'f("status") == (f("strategy") == "frwr" && f("op") == "send" ? "skipped" : "ok")'
	[[ -z $(ls -A "$TMPDIR") ]] || fail "left: $(ls -A "$TMPDIR")"
	rm -r "$TMPDIR"
	bench loopback -d fake0 --mem file -n 5 --format csv
	failed "the server side: --mem file: a temporary file in $TMPDIR: No such file or directory: name another directory"
}

# What an end's memory is made of shows in the file: a WRITE's is not touched by itself.
@test "--mem-file: the client's memory is that file, and zeroed unless --prefault no; too small a file is refused with both sizes" {
	local file=$BATS_TEST_TMPDIR/pages
	yes | head -c 64k >"$file"
	cp "$file" "$file.was"
	loop 1 --op write --mem file --mem-file "$file" --prefault no -s 4k -n 50
	rows "$out_file" 1 'f("opts") ~ "mem=file mem-file='"$file"' prefault=no"'
	cmp "$file" "$file.was"
	loop 1 --op write --mem file --mem-file "$file" -s 4k -n 50
	cmp "$file" <(head -c 64k /dev/zero)
	cp "$file.was" "$file"
	loop 1 --op read --mem file --mem-file "$file" --prefault no -s 4k -n 50 # the target is zeroes
	cmp "$file" <(head -c 64k /dev/zero)
	truncate -s 65535 "$file"
	bench loopback -d fake0 --mem file --mem-file "$file" -s 4k -n 50 --format csv
	failed "--mem-file $file: has 65535 bytes, and 65536 are needed: truncate -s 65536 $file, or use less"
	bench loopback -d fake0 --mem file --mem-file "$BATS_TEST_TMPDIR" -s 4k -n 50 --format csv
	failed "--mem-file .*: Is a directory"
	bench loopback -d fake0 --mem file --mem-file /dev/null -s 4k -n 50 --format csv
	failed '--mem-file /dev/null: not a regular file'
}

# The CPUs or nodes that this process may use, "0-1,4": the first and the last of them.
allowed() {
	local list
	list=$(sed -n "s/^$1_allowed_list:[[:blank:]]*//p" /proc/self/status)
	first=${list%%[,-]*} last=${list##*[,-]}
}

@test "threads run where they are told: the client on the first CPU of the list, the server on the next" {
	local first last
	allowed Cpus
	loop 3 --op read,write,send --cpu "$last" -n 100
	rows "$out_file" 3 'f("cpu") == '"$last"' && f("peer_cpu") == '"$last"' && f("opts") ~ /cpu='"$last"'/'
	[[ $first != "$last" ]] || skip "one CPU only"
	loop 3 --op read,write,send --cpu "$last,$first" -n 100
	rows "$out_file" 3 'f("cpu") == '"$last"' && f("peer_cpu") == '"$first"
	loop 1 --cpu "$first,$last" -n 100
	rows "$out_file" 1 'f("cpu") == '"$first"' && f("peer_cpu") == '"$last"
}

@test "memory lies on the node that it is told" {
	local first last
	allowed Mems
	bench loopback -d fake0 --numa "$last" -n 100 --format csv
	[[ $err != *'not permitted'* ]] || skip "no policy of memory is permitted here"
	ended 0
	rows "$out_file" 1 'f("mem_node") == '"$last"' && f("peer_mem_node") == '"$last"' && f("opts") ~ /numa='"$last"'/'
}

# Of the double nobody knows where it is: near where there is one node only. hwloc draws up the other.
@test "near the device: where there is one node, or the device tells; else it is refused" {
	HWLOC_SYNTHETIC='numa:1 pu:2' loop 1 --cpu near -n 100
	rows "$out_file" 1 'f("cpu") ~ /^[0-9]+$/ && f("peer_cpu") ~ /^[0-9]+$/ && f("opts") ~ /cpu=near/'
	HWLOC_SYNTHETIC='numa:2 pu:1' bench loopback -d fake0 --cpu near
	refused 1 '--cpu near: device fake0 does not say which NUMA node' 'several \(0-1\)'
	HWLOC_SYNTHETIC='numa:2 pu:1' bench probe -d fake0 --numa near
	refused 1 '--numa near: device fake0 does not say which NUMA node' 'several \(0-1\)'
}

@test "a CPU or a node that is not there: refused at once by every command, with what is there" {
	local list
	list=$(sed -n 's/^Cpus_allowed_list:[[:blank:]]*//p' /proc/self/status)
	for command in server loopback probe 'client 192.0.2.1'; do
		# shellcheck disable=SC2086 # words
		bench $command -d fake0 --cpu 1023
		refused 1 'no CPU 1023 for this process' "but $list:"
		# shellcheck disable=SC2086
		bench $command -d fake0 --numa 1023
		refused 1 'no NUMA node 1023 for this process'
	done
	bench loopback -d fake0 --cpu 0,1,0
	refused 2 '--cpu 0,1,0: CPU 0 is given twice'
	bench loopback -d fake0 --cpu 3-1
	refused 2 '--cpu 3-1: 3-1 goes backwards; say 1-3'
	bench loopback -d fake0 --numa 0,1
	refused 2 '--numa 0,1: not a NUMA node'
}
