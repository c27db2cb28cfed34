#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The command line, as far as it needs no RDMA device: help, usage errors, exit statuses.

# What bench.bash sets and reads; perl and awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2028,SC2030,SC2031
bats_require_minimum_version 1.5.0
load vm/bench

LIMIT=10

# Nothing of this machine: a device may be there, the options are looked at first.
usage_error() {
	refused 2 "$@"
}

@test "--version: a name and a version" {
	bench --version
	ended 0
	[[ $out =~ ^rxfer-bench\ [0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "no version"
	local version=$out
	bench -V
	ended 0
	[[ $out == "$version" ]]
}

@test "help: every command, on stdout" {
	local word
	for word in help --help -h; do
		bench "$word"
		ended 0
		[[ $out == *server*client*loopback*devices*--version* ]] || fail "a command is missing"
	done
}

@test "help COMMAND and COMMAND --help: its options, the same" {
	local command
	for command in server client loopback devices; do
		bench help "$command"
		ended 0
		[[ $out == *"usage: rxfer-bench $command"*--device* ]] || fail "an option is missing"
		local first=$out
		bench "$command" --help
		ended 0
		[[ $out == "$first" ]] || fail "two different helps"
	done
	bench help client
	[[ $out == *--port*--op*--size*--frags*--frag-gap*--depth*--sq-depth*--qps*--iters*--duration* ]]
	[[ $out == *--signal*--strategy*--warmup*--verify*--poll*--timeout*--format*--output* ]]
	bench help server
	[[ $out != *--size* ]] || fail "the server takes no --size"
}

@test "help is not to be asked for what there is not" {
	bench help clinet
	usage_error 'clinet' 'did you mean client'
}

@test "a full device as stdout: help and version say so" {
	local words
	for words in help 'help client' --version; do
		read -ra words <<<"$words"
		status=0
		"$RXFER_BENCH" "${words[@]}" >/dev/full 2>"$err_file" || status=$?
		[[ $status == 1 ]] || fail "status $status for: ${words[*]}"
	done
}

@test "no command: the usage, on stderr" {
	bench
	[[ $status == 2 && -z $out && $err == *usage:* ]] || fail "no usage"
}

@test "an unknown command: the nearest" {
	bench sever
	usage_error 'sever' 'did you mean server'
	bench --verison
	usage_error 'did you mean --version'
	bench frobnicate
	usage_error 'frobnicate' 'help'
	bench ''
	usage_error 'help'
}

@test "an unknown option: the nearest" {
	bench loopback --sise 64
	usage_error '--sise' 'did you mean --size'
	bench client host --stratgy global
	usage_error '--stratgy' 'did you mean --strategy'
	bench server --prot 1
	usage_error '--prot' 'did you mean --port'
	bench loopback -Z
	usage_error '-Z' 'help'
	bench loopback -depth 4
	usage_error '-depth' 'did you mean --depth'
}

@test "an option of another command" {
	bench server --size 64
	usage_error '--size' 'client' 'server'
	bench loopback --port 1
	usage_error '--port' 'client' 'server'
}

@test "numbers that are none" {
	local value
	for value in x 4x 1.5 0x10 '' ' 4' 4k4 - -- 1e3 ∞ nan; do
		bench loopback -n "$value"
		usage_error '--iters'
		bench loopback --size "$value"
		usage_error '--size'
	done
	bench loopback --depth=-1
	usage_error '--depth' 'negative'
	bench loopback -D soon
	usage_error '--duration' 'soon'
	bench loopback --size 4k,,8k
	usage_error '--size' 'empty'
}

@test "sizes that are none: 0, 2^63, 2^64, more" {
	local value
	for value in 0 9223372036854775808 18446744073709551616 18446744073709551617 99999999999999999999999 8g 4096g 99999999999g; do
		bench loopback --size "$value"
		usage_error '--size' "$value" 'say'
	done
}

@test "numbers out of range" {
	local words
	for words in '-p 0' '-p 65536' '--depth 0' '--depth 65537' '--qps 0' '--frags 0' '--frags 1025' \
		'--timeout 0' '--timeout 99h' '--rnr-retry 8' '--sq-depth 99999999' '--warmup 18446744073709551616'; do
		read -ra words <<<"$words"
		bench client "${words[@]}" host
		usage_error 'say'
	done
}

@test "names that there are not" {
	bench loopback --strategy gobal
	usage_error 'gobal' 'did you mean global'
	bench loopback --op reed
	usage_error 'reed' 'did you mean read' 'write'
	bench loopback --signal halve
	usage_error 'halve' 'did you mean half'
	bench loopback --signal every
	usage_error 'every'
	bench loopback --signal every:0
	usage_error 'every'
	bench loopback --signal half:3
	usage_error 'half:3'
	bench loopback --poll bussy
	usage_error 'did you mean busy'
	bench loopback --format cvs
	usage_error 'did you mean csv'
	bench loopback --output x.xls
	usage_error 'x.xls' '.csv' '.json'
}

@test "contradictions" {
	bench loopback --frags 100 --size 64
	usage_error '--frags 100' '--size 64'
	bench loopback -n 0
	usage_error '--iters' '--duration'
	bench loopback --signal every:64 --sq-depth 8
	usage_error 'every:64' '--sq-depth 8'
	bench loopback --size 2g --depth 65536 --qps 16384
	usage_error 'memory'
}

@test "the host" {
	bench client
	usage_error 'HOST'
	bench client a b
	usage_error 'b'
	bench client ''
	usage_error 'HOST'
	bench client 'a b'
	usage_error 'HOST'
	bench loopback host
	usage_error 'host'
	bench devices host
	usage_error 'host'
}

@test "a value that is missing" {
	bench loopback --size
	usage_error '--size' 'missing'
	bench loopback --size --verify
	usage_error '--size' 'missing'
	bench loopback --verify=yes
	usage_error '--verify' 'no value'
}

@test "control characters are not echoed, long words are cut" {
	local long
	printf -v long '%05000d' 0
	bench loopback --size $'4\e[31mk\n5'
	usage_error '--size'
	[[ $err != *$'\e'* ]] || fail "an escape character on stderr"
	bench loopback --size "${long}x"
	usage_error '--size'
	((${#err} < 600)) || fail "${#err} characters of complaint"
	bench loopback -d "$long"
	usage_error '--device'
	bench "$long"
	usage_error 'help'
}

@test "no device: every command says so, and how to get one" {
	local words device
	for device in /sys/class/infiniband/*; do
		[[ ! -e $device ]] || skip "there is ${device##*/}"
	done
	for words in loopback server devices 'client localhost' 'loopback -d rxe0'; do
		read -ra words <<<"$words"
		bench "${words[@]}" -d rxe0
		refused 1 'no RDMA device' 'rxe-up'
		bench "${words[@]}"
		refused 1 'no RDMA device' 'rxe-up'
	done
}

@test "where nothing runs, no output is made" {
	bench loopback -d no_such -o "$BATS_TEST_TMPDIR/x.csv" -o "$BATS_TEST_TMPDIR/x.json"
	refused 1
	[[ ! -e $BATS_TEST_TMPDIR/x.csv && ! -e $BATS_TEST_TMPDIR/x.json ]]
	bench loopback --size 0 -o "$BATS_TEST_TMPDIR/x.csv"
	usage_error '--size'
	[[ ! -e $BATS_TEST_TMPDIR/x.csv ]]
}
