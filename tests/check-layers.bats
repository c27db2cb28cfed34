#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# scripts/check-layers bites: each test breaks one rule in a small tree that keeps all of them.

check="$BATS_TEST_DIRNAME/../scripts/check-layers"

setup() {
	tree=$BATS_TEST_TMPDIR/tree
	mkdir -p "$tree/src" "$tree/bench"
	write src/sq.h '#include <stdint.h>'
	write src/sq.c '#include "sq.h"' '#include <errno.h>' '/* what ibv_post_send() wants */'
	write src/rxfer.h '#include <infiniband/verbs.h>'
	write src/dev.c '#include <rdma/rdma_cma.h>' '#include "rxfer.h"' 'x = ibv_open_device(d);'
	write src/other.c '#include "sq.h"' 'snprintf(b, n, "stdout exit(1) ibv_x()");'
	write src/reg_global.c '#include "rxfer.h"' 'struct ops rxfer_reg_global;'
	write src/reg_per_io.c '#include "reg_list.h"' 'struct ops rxfer_reg_per_io = {reg_per_io_map};'
	write src/reg_list.h 'REG(global)'
	write bench/hist.h '#include <stdio.h>'
	write bench/main.c '#include "hist.h"' '#include "rxfer.h"' 'exit(2); printf("x"); // ibv_x()'
	write bench/load.c 'my_exit(1); rxfer_rdma_x(2);'
	write bench/report_csv.c '#include "hist.h"' 'fprintf(stdout, "x");'
}

# write FILE LINE...
write() {
	local file=$tree/$1
	shift
	printf '%s\n' "$@" >"$file"
}

# breaks FILE:LINE REASON LINE...: the lines, appended to what there is in FILE, are reported.
breaks() {
	local where=$1 reason=$2
	shift 2
	printf '%s\n' "$@" >>"$tree/${where%:*}"
	run "$check" "$tree"
	echo "$output"
	[ "$status" -eq 1 ]
	[[ ${lines[0]} == "$where: "*"$reason"* ]]
	[[ ${lines[-1]} == 'check-layers: the layers are broken'* ]]
}

@test "a tree that keeps all rules passes, silently" {
	run "$check" "$tree"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "src includes nothing from bench, by path" {
	breaks src/other.c:3 'nothing of the benchmark' '#include "../bench/hist.h"'
}

@test "src includes nothing from bench, by name" {
	breaks src/rxfer.h:2 'nothing of the benchmark' '# include "hist.h"'
}

@test "the send queue's arithmetic includes no verbs" {
	breaks src/sq.h:2 'pure arithmetic' '#include <infiniband/verbs.h>'
}

@test "the send queue's arithmetic includes nothing else of the engine" {
	breaks src/sq.c:4 'pure arithmetic' '#include "rxfer.h"'
}

@test "the send queue's arithmetic speaks no verbs" {
	breaks src/sq.h:2 'pure arithmetic' 'struct ibv_qp *qp;'
}

@test "other files of the engine include no verbs" {
	breaks src/other.c:3 'verbs stay' '#include <infiniband/verbs.h>'
}

@test "other files of the engine call no verbs" {
	breaks src/other.c:3 'verbs stay' 'rdma_disconnect (id);'
}

@test "the benchmark includes no verbs" {
	breaks bench/load.c:2 'verbs stay' '#include <rdma/rdma_cma.h>'
}

@test "the benchmark calls no verbs" {
	breaks bench/main.c:4 'verbs stay' 'return ibv_post_send(qp, wr, &bad);'
}

@test "a registration strategy includes no other" {
	write src/reg_global.h ''
	breaks src/reg_per_io.c:3 'knows no other' '#include "reg_global.h"'
}

@test "a registration strategy uses no other" {
	breaks src/reg_per_io.c:3 'knows no other' 'return rxfer_reg_global.map(io);'
	[ "${#lines[@]}" -eq 2 ]
}

@test "a strategy whose name begins as another's may use its own" {
	write src/reg_global_lazy.c 'struct ops rxfer_reg_global_lazy = {reg_global_lazy_map};'
	run "$check" "$tree"
	[ "$status" -eq 0 ]
	breaks src/reg_global_lazy.c:2 'knows no other' 'reg_global_map();'
}

@test "only main ends the program" {
	breaks bench/load.c:2 'only main ends' 'exit(1);'
}

@test "nothing aborts in the engine" {
	breaks src/dev.c:4 'only main ends' 'if (x) abort();'
}

@test "the engine does not print" {
	breaks src/dev.c:4 'prints nothing' 'printf("%d", x);'
}

@test "the engine does not write to stderr" {
	breaks src/dev.c:4 'prints nothing' 'fputs("x", stderr);'
}

@test "a report includes nothing from the engine" {
	breaks bench/report_csv.c:3 'sees results' '#include "rxfer.h"'
}

@test "the program sees the engine by its one header" {
	breaks bench/main.c:4 'by rxfer.h' '#include "internal.h"'
	breaks bench/main.c:4 'by rxfer.h' '#include "reg.h"'
}

@test "only tests include cmocka" {
	breaks bench/main.c:4 'only the tests' '#include <cmocka.h>'
}

@test "comments and strings break no rule, over several lines either" {
	write src/other.c '/* exit(1);' ' * printf() "' ' */' 'f("/*"); g("\"exit(1)", 0);'
	run "$check" "$tree"
	[ "$status" -eq 0 ]
	breaks src/other.c:5 'only main ends' 'exit(1); /* here */'
}

@test "a folder without sources is an error, not a pass" {
	rm "$tree"/src/*.c
	run "$check" "$tree"
	[ "$status" -eq 1 ]
	[[ $output == *'no src/*.c'* ]]
}
