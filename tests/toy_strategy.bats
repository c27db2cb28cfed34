#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A registration strategy is one file, and one word in Makefile.am, as CONTRIBUTING.md says. Here that is
# done, in a copy of the sources, and make does the rest: ten seconds of CPU time.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016
bats_require_minimum_version 1.5.0
LIMIT=60
top=$BATS_TEST_DIRNAME/..
copy=$BATS_FILE_TMPDIR/tree
RXFER_BENCH=$copy/build/tests/rxfer-bench-fake
RXFER_DEV=fake0
load vm/bench

# How much of the sources is there may differ, between a clone, a tarball and a tree that was built in; what
# was made of them is left where it is.
copy_sources() {
	mkdir -p "$copy/build"
	tar -C "$top" -cf - --exclude=./.git --exclude=./results --exclude=./build --exclude=./build-check --exclude=./_build --exclude=./_inst --exclude='*.o' --exclude='*.a' \
		--exclude=./config.status --exclude=./config.h --exclude=./Makefile --exclude=./stamp-h1 . |
		tar -C "$copy" -xf -
	chmod -R u+w "$copy"
}

build_it() {
	unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES CPPFLAGS LDFLAGS
	cd "$copy/build" || return
	../configure --disable-dependency-tracking CFLAGS=-O0
	make -j2 tests/rxfer-bench-fake
}

setup_file() {
	command -v automake >/dev/null || skip "no automake here to take the word in Makefile.am"
	copy_sources
	# One file ...
	sed 's/\bglobal:/toy:/; s/global_map/toy_map/; s/rxfer_reg_global/rxfer_reg_toy/; s/"global"/"toy"/; s/"one region over/"a toy: &/; s/: "one/: one/' \
		"$copy/src/reg_global.c" >"$copy/src/reg_toy.c"
	# ... and one word.
	sed -i 's|^reg_sources = .*[^\\]$|& src/reg_toy.c|' "$copy/Makefile.am"
	(build_it) >"$copy/log" 2>&1 || {
		cat "$copy/log" >&2
		return 1
	}
}

@test "--help, devices and the messages have it" {
	bench loopback --help
	[[ ${out//$'\n'/ } =~ ' --strategy NAME,'[^[]*'['[^]]*toy ]] || fail "not in --help"
	bench devices
	ended 0
	[[ $out == *toy* ]] || fail "not tried by devices"
	bench loopback --strategy tyo
	refused 2 'did you mean toy'
}

@test "it moves the right bytes, in both modes and as the server's, and --strategy all has it" {
	loop 6 --op read,write,send --frags 1,16 -s 4k -n 60 --verify --strategy toy
	loop 6 --mode rpc --op read,write,send --frags 1,16 -s 4k -n 60 --verify --strategy toy --peer-strategy toy
	rows "$out_file" 6 'f("strategy") == "toy" && f("peer_strategy") == "toy" && f("verify") == "yes"'
	bench loopback -d fake0 --strategy all -n 5 --format csv
	ended 0
	[[ $(grep -c ',toy,' "$out_file") == 1 ]] || fail "not one of all"
}

@test "the attempts of fence go by what it is, and the layers hold" {
	bench fence -d fake0 -s 64 --strategy toy --format csv
	ended 0
	rows "$out_file" 13 'f("strategy") == "toy" && f("verdict") == "ok"'
	"$copy/scripts/check-layers" "$copy"
}
