#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 12 s in a guest
#
# Server and client as two processes, where all goes well. What each does where it does not is in
# faults.bats.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench
load faults

setup() {
	before=$(resources)
}

teardown() {
	end_server
}

@test "a server serves one client after the other, ends by SIGTERM, and leaves nothing" {
	serve
	client --mode direct --op write --strategy per-io -s 64k -n 1000 --signal half --verify --format csv
	ended 0
	rows "$out_file" 1 'f("status") == "ok" && f("iterations") == 1000 && f("peer_host") == f("host")'
	client --op read,write,send --strategy global,multi-wr,per-io -s 4k --frags 3 --qps 2 -n 20 --verify --rnr-retry 0 --format csv
	ended 0
	rows "$out_file" 9 'f("status") == "ok" && f("iterations") == 40'
	serving
	server_ends
	nothing_left
}
