#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 85 s in a guest
#
# Kinds of pages and places over software RDMA, on a kernel whose settings may be changed: what the
# row says was found is compared with what the kernel was made to give.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2028,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench

LIMIT=60
thp=/sys/kernel/mm/transparent_hugepage/enabled

setup() {
	thp_before=$(sed 's/.*\[\(.*\)\].*/\1/' "$thp")
}

teardown() {
	end_server
	echo "$thp_before" >"$thp"
	echo 0 >/proc/sys/vm/nr_hugepages
}

free_pages() {
	[[ $(awk '/^HugePages_Free:/ { print $2 }' /proc/meminfo) == "$1" ]]
}

# Each end lacks three pages: the server takes its first.
@test "hugetlb: too few pages is a failed run that says how many and the sysctl; which then helps" {
	local run=(loopback -d "$DEVICE" --format csv --mem hugetlb -s 1m --depth 5 -n 50)
	bench "${run[@]}"
	complained 1 'the server side: --mem hugetlb: 3 huge pages of 2048 KiB are needed and 0 are free' \
		'3 are missing: sysctl vm.nr_hugepages=3,'
	rows "$out_file" 1 'f("status") == "failed" && f("reason") ~ /vm.nr_hugepages=3/'
	sysctl -q vm.nr_hugepages=3
	bench "${run[@]}"
	complained 1 '3 huge pages of 2048 KiB are needed and 0 are free' '3 are missing: sysctl vm.nr_hugepages=6,'
	[[ $err != *'the server side'* ]] || fail "it is the client that lacks them"
	free_pages 3 || fail "the failed run kept some"
	bench "${run[@]}" --prefault no --strategy per-io
	complained 1 '3 huge pages of 2048 KiB are needed and 0 are free' '3 are missing: sysctl vm.nr_hugepages=6,'
	free_pages 3 || fail "the failed run kept some"
	sysctl -q vm.nr_hugepages=6
	bench "${run[@]}" --verify --prefault all
	ended 0
	rows "$out_file" 2 'f("mem_huge_pct") == "100.0" && f("opts") ~ /mem=hugetlb/ && f("mem_node") == "0" && f("peer_mem_node") == "0"'
	free_pages 6 || fail "not all came back"
}

# The pool has them; who touches one of them too many is ended by SIGBUS.
@test "hugetlb: pages that a cgroup does not let one have fail the run, to be touched before or not, and end nobody" {
	local group=$BATS_TEST_TMPDIR/group few prefault
	few=$group/few
	mkdir "$group"
	mount -t cgroup2 none "$group"
	echo +hugetlb >"$group/cgroup.subtree_control"
	mkdir "$few"
	echo 4m >"$few/hugetlb.2MB.max"
	printf '#!/bin/sh\necho $$ >%s/cgroup.procs\nexec "$@"\n' "$few" >"$BATS_TEST_TMPDIR/in_few"
	sysctl -q vm.nr_hugepages=8
	for prefault in yes no; do
		with "sh $BATS_TEST_TMPDIR/in_few" loopback -d "$DEVICE" --format csv --mem hugetlb --prefault $prefault --strategy per-io \
			-s 1m --depth 5 -n 20
		complained 1 '3 huge pages of 2048 KiB are needed and 8 are free, but not where this process may take them'
		rows "$out_file" 1 'f("status") == "failed"'
	done
	rmdir "$few"
	umount "$group"
}

@test "all operations and strategies are right on pages of every kind, and the row says what there was" {
	sysctl -q vm.nr_hugepages=16
	echo madvise >"$thp"
	loop 45 --op read,write,send --strategy global,multi-wr,per-io --mem all -s 64k --frags 3 --depth 4 -n 20 --verify --warmup 4
	rows "$out_file" 45 'f("opts") ~ /mem=thp/ ? f("mem_huge_pct") > 0 : f("mem_huge_pct") == (f("opts") ~ /mem=hugetlb/ ? "100.0" : "0.0")'
	free_pages 16
}

@test "plain pages stay plain where the kernel always takes huge ones" {
	echo always >"$thp"
	loop 2 --mem anon,thp -s 1m --depth 4 -n 40
	rows "$out_file" 2 'f("opts") ~ /mem=thp/ ? f("mem_huge_pct") > 0 : f("mem_huge_pct") == "0.0"'
}

@test "a temporary file that there is no room for fails the run, with where and what to do; nobody is ended by it" {
	local small=$BATS_TEST_TMPDIR/small
	mkdir "$small"
	mount -t tmpfs -o size=1m tmpfs "$small"
	for prefault in yes no; do
		TMPDIR=$small bench loopback -d "$DEVICE" --format csv --mem file --prefault $prefault --strategy per-io -s 64k -n 40
		complained 1 "--mem file: 1.0 MiB in $small: No space left on device: name another directory .TMPDIR."
		[[ $err != *'the server side'* ]] || fail "it is the client that finds none"
	done
	umount "$small"
}

@test "transparent huge pages that are switched off fail the run, and no other kind stands in" {
	echo never >"$thp"
	bench loopback -d "$DEVICE" --format csv --mem thp,anon -s 1m -n 40
	complained 1 '--mem thp: transparent huge pages are switched off' 'echo madvise >/sys/kernel/mm'
	rows "$out_file" 2 'f("status") == (f("opts") ~ /mem=thp/ ? "failed" : "ok")'
}

@test "both ends of one process on their CPUs, and near a device that is nowhere" {
	loop 2 --op read,send --cpu 1,0 -s 4k -n 200
	rows "$out_file" 2 'f("cpu") == 1 && f("peer_cpu") == 0'
	loop 2 --op read,send --cpu 0,1 --numa 0 -s 4k -n 200
	rows "$out_file" 2 'f("cpu") == 0 && f("peer_cpu") == 1 && f("mem_node") == "0"'
	loop 2 --op read,send --cpu 1 -s 4k -n 200
	rows "$out_file" 2 'f("cpu") == 1 && f("peer_cpu") == 1'
	loop 1 --cpu near --numa near -s 4k -n 200
	rows "$out_file" 1 'f("cpu") == 0 && f("peer_cpu") == 1 && f("peer_mem_node") == "0"'
}

# A second client is the server's second session, and that is on the next of its CPUs.
@test "two processes: each side has its own places, the server's sessions take turns" {
	serve --cpu 1,0 --numa 0
	client --format csv --op read,send --cpu 0 -s 4k -n 200
	ended 0
	rows "$out_file" 2 'f("cpu") == 0 && f("peer_cpu") == 1 && f("opts") ~ /cpu=0/'
	client --format csv --op read,send --cpu 1 -s 4k -n 200
	ended 0
	rows "$out_file" 2 'f("cpu") == 1 && f("peer_cpu") == 0 && f("peer_mem_node") == "0"'
	client --format csv -s 4k -n 200
	ended 0
	rows "$out_file" 1 'f("peer_cpu") == 1'
	server_ends
}

@test "huge pages of the server are the client's wish, and the server's lack" {
	serve
	client --format csv --mem hugetlb -s 2m --depth 2 -n 20
	complained 1 'the server side|10.77.0.1' '2 huge pages of 2048 KiB are needed' 'sysctl vm.nr_hugepages=2,'
	sysctl -q vm.nr_hugepages=4
	client --format csv --mem hugetlb -s 2m --depth 2 -n 20 --op write
	ended 0
	rows "$out_file" 1 'f("mem_huge_pct") == "100.0"'
	server_ends
	free_pages 4
}
