#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 8 s in a guest
#
# Memory on demand over real software RDMA, where its kernel has that (scripts/rxe-vm --kernel newer); on
# others the rows are skipped, which is what is tested there.
#
# rxe (Linux 7.3) takes all bytes that it moves on demand from, or to, the begin of their page. What is
# right there is what is tested to be right: packets of a page, and fragments that begin with one. That
# --verify finds the rest is a test of its own, which fails once rxe does not do so any more, and then
# these limits can go.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016
bats_require_minimum_version 1.5.0
load bench

paging() {
	ibv_devinfo -v -d "$DEVICE" | grep -q 'ODP_SUPPORT'
}

needs_paging() {
	paging || skip "$DEVICE of Linux $(uname -r) has no on-demand paging: run this by scripts/rxe-vm --kernel newer"
}

# mtu BYTES: of the interface below, and of the one at the other end of it.
mtu() {
	ip link set "v$DEVICE" mtu "$1" && ip link set "p$DEVICE" mtu "$1"
}

packets_are_pages() {
	mtu 4400
	wait_until 5 mtu_is 4096
}

mtu_is() {
	ibv_devinfo -d "$DEVICE" | grep -q "active_mtu:.*$1"
}

teardown() {
	mtu 1500
}

@test "without paging: skipped with the reason, and devices says the same" {
	! paging || skip "$DEVICE has on-demand paging"
	bench loopback -d "$DEVICE" --strategy odp,odp-implicit,global -n 20 --format csv
	ended 0
	rows "$out_file" 3 'f("strategy") == "global" ? f("status") == "ok" : \
		f("status") == "skipped" && f("reason") ~ /has no on-demand paging .odp_caps/'
	bench devices -d "$DEVICE"
	ended 0
	[[ $out == *"odp: no: $DEVICE has no on-demand paging"* ]] || fail "devices says otherwise"
}

@test "direct mode: every operation, in one fragment and in 16, verified" {
	needs_paging
	packets_are_pages
	loop 12 --op read,write,send --strategy odp -s 512,4k,64k,256k --depth 8 -n 40 --verify --rnr-retry 0
	loop 6 --op read,write,send --strategy odp -s 64k,256k --frags 16 --depth 8 -n 40 --verify --rnr-retry 0
	loop 3 --op read,write,send --strategy odp -s 512 --frags 16 --frag-gap 4064 --depth 8 -n 40 --verify --rnr-retry 0
	# rxe counts no faults.
	rows "$out_file" 3 'f("odp_faults_per_io") == "" && f("peer_odp_faults_per_io") == ""'
}

@test "rpc mode: the peer reads and writes memory on demand, at either end, verified" {
	needs_paging
	packets_are_pages
	loop 12 --mode rpc --op read,write --strategy odp --peer-strategy global,odp -s 4k,64k,256k --depth 8 -n 40 --verify
	loop 4 --mode rpc --op read,write --strategy odp -s 64k,256k --frags 16 --depth 8 -n 40 --verify
	loop 1 --mode rpc --op send --strategy odp -s 512 --depth 8 -n 40 --verify
}

@test "pages of every kind" {
	needs_paging
	packets_are_pages
	echo 64 >/proc/sys/vm/nr_hugepages
	loop 15 --op read,write,send --strategy odp --mem all -s 256k --depth 4 -n 20 --verify --rnr-retry 0
	loop 10 --mode rpc --op read,write --strategy odp --mem all -s 256k --depth 4 -n 20 --verify
	echo 0 >/proc/sys/vm/nr_hugepages
}

@test "nothing of it is pinned" {
	needs_paging
	loop 4 --mode direct,rpc --op read --strategy global,odp -s 1m --depth 8 -n 16
	rows "$out_file" 4 'f("strategy") == "odp" ? f("pinned_bytes") < 65536 && f("engine") == "explicit" : \
		f("pinned_bytes") >= 8 * 1048576'
	rows "$out_file" 4 'f("mode") == "direct" || f("exposed_bytes_peak") >= 8 * 1048576'
}

@test "what rxe moves wrongly, --verify finds: within a page, and behind the first packet of one" {
	needs_paging
	bench loopback -d "$DEVICE" --op write --strategy global,odp -s 512 --misalign 8 -n 20 --verify --format csv
	complained 1 'byte 0 of 512 is wrong'
	rows "$out_file" 2 'f("strategy") == "global" ? f("status") == "ok" : f("status") == "failed" && \
		f("reason") ~ /^verification failed: .* byte 0 of 512 is wrong/'
	bench loopback -d "$DEVICE" --op write --strategy global,odp -s 4k -n 20 --verify --format csv
	complained 1 'byte 1024 of 4096 is wrong'
	rows "$out_file" 2 'f("strategy") == "global" ? f("status") == "ok" : f("status") == "failed" && \
		f("reason") ~ /^verification failed: .* byte 1024 of 4096 is wrong/'
}

@test "--odp-prefetch io: it is done, or the row is skipped and says what is lacking" {
	needs_paging
	bench loopback -d "$DEVICE" --mode direct,rpc --op read --strategy odp --odp-prefetch off,io -s 4k -n 20 --format csv
	ended 0
	rows "$out_file" 4 'f("opts") ~ /prefetch=io/ && f("status") == "skipped" ? f("reason") ~ /takes no advice about pages .ibv_advise_mr/ \
		: f("status") == "ok"'
}

# The byte before the I/O is the last one of a page: rxe lets the peer in, and to another byte.
@test "fence: open to the peer all the time, and what differs is what rxe moves wrongly" {
	needs_paging
	packets_are_pages
	bench fence -d "$DEVICE" -s 4k --strategy odp --format csv
	ended 1
	rows "$out_file" 13 'f("attempt") == "before" ? f("observed") == "failed" && f("note") ~ /^told to be open; but / : \
		f("verdict") == "ok" && f("observed") == (f("attempt") == "write-read-only" ? "closed" : "open")'
}

@test "all is given back" {
	local before
	needs_paging
	before=$(resources)
	loop 2 --mode rpc --op read,write --strategy odp --peer-strategy odp -s 64k --qps 3 -n 20
	wait_until 5 same_resources "$before"
}
