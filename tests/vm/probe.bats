#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 69 s in a guest
#
# The probe over software RDMA, whose answers are partly known: how rxe rounds its queues up, that
# neither device needs completions to free entries, that huge pages are few to map.

# What bench.bash sets and reads; perl and awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2028,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench

LIMIT=60

setup() {
	before=$(resources)
}

teardown() {
	end_server
	echo 0 >/proc/sys/vm/nr_hugepages
}

nothing_left() {
	wait_until 5 same_resources "$before" || fail "left over: $(resources), before: $before"
}

# finding QUANTITY VARIANT CONDITION: in the one CSV line of these, of the value v and the note n.
finding() {
	awk -F, -v "q=$1" -v "var=$2" '
	$1 == q && $2 == var {
		v = $3
		n = $5
		found++
		ok = ('"$3"')
	}
	END { exit !(found == 1 && ok) }' "$out_file" || fail "$1, $2: not $3"
}

number='v ~ /^-?[0-9]+(\.[0-9]+)?$/'

# Time, pages and keys: what is true of every device.
sound() {
	local what variant
	[[ ${out%%$'\n'*} == quantity,variant,value,unit,note ]] || fail "another header"
	[[ $(awk -F, 'NF != 5' "$out_file") == '' ]] || fail "a line that has not five fields"
	finding cost_lone_wr 'WRITE of 8 bytes' "$number && v > 0"
	finding cost_silent_wr 'WRITE of 8 bytes' "$number"
	finding cost_signalled_wr 'WRITE of 8 bytes' "$number"
	finding cost_post 'WRITE of 8 bytes' "$number"
	finding sq_depth 'asked 100' "$number && v >= 100"
	for what in registration deregistration; do
		for variant in prefaulted 'first touch' '100 alive'; do
			finding "$what" "$variant" "$number && n ~ /^1\\.\\./"
			finding "${what}_per_page" "$variant" "$number"
		done
	done
	finding registration_per_page 'first touch' 'v > 0'
	grep -q '^rkey_delta,regions kept,' "$out_file" || fail "no keys"
	grep -q '^rkey_delta,each given back,' "$out_file" || fail "no keys"
}

frees='n ~ /frees entries without completions: a forgotten signal never shows on this device/ && n ~ /mlx4/'

@test "CSV over rxe: sound, and known where rxe is; nothing is left" {
	local start=$SECONDS
	bench probe -d "$DEVICE" --format csv
	ended 0
	((SECONDS - start <= 40)) || fail "it took $((SECONDS - start)) s"
	sound
	# 256 asked and granted, and the queue has room for 2^n - 1.
	finding unsignalled_posts 'one call' 'v == 511 && n ~ /256 granted/'
	finding unsignalled_posts 'with waiting' "v == 1024 && $frees"
	finding sq_depth 'asked 100' 'v == 100'
	finding inline_limit '' 'v == 512'
	finding registration '10000 alive' "$number && n ~ /^1\\.\\.4096/"
	finding registration 'huge pages' 'v == "" && n ~ /skipped: needs 8 free huge pages of 2048 KiB/'
	nothing_left
}

@test "table and files: all say the same, a file is replaced; with huge pages" {
	local a=$BATS_TEST_TMPDIR/a.csv b=$BATS_TEST_TMPDIR/b.json t=$BATS_TEST_TMPDIR/t.txt
	echo old >"$a"
	echo 16 >/proc/sys/vm/nr_hugepages
	bench probe loopback -d "$DEVICE" -o "$a" -o "$b" -o "$t"
	ended 0
	cmp "$t" "$out_file"
	[[ $out == *'frees entries without completions'* ]] || fail "rxe is not told so"
	[[ $out == *"device $DEVICE, driver rxe"*'software RDMA'*'no hardware figures'* ]] || fail "no conditions"
	[[ $(head -n 1 "$a") == quantity,variant,value,unit,note ]] || fail "not replaced"
	jq -r '.rows[] | [.[] | if . == null then "" else tostring end] | map(gsub(","; ";")) | join(",")' "$b" |
		awk -F, -v OFS=, '$3 != "" { $3 += 0 } 1' >"$BATS_TEST_TMPDIR/json"
	awk -F, -v OFS=, 'NR > 1 { if ($3 != "") $3 += 0; print }' "$a" >"$BATS_TEST_TMPDIR/csv"
	diff "$BATS_TEST_TMPDIR/csv" "$BATS_TEST_TMPDIR/json" || fail "CSV and JSON differ"
	jq -e '.version and .partial == false and .environment.emulated' "$b" >/dev/null
	out_file=$a finding registration 'huge pages' "$number && n ~ /^512\\.\\.4096 pages/"
}

@test "over siw" {
	[[ -e /sys/class/infiniband/siw0 ]] || skip "no siw here"
	local DEVICE=siw0
	before=$(resources)
	bench probe -d "$DEVICE" --format csv
	ended 0
	sound
	finding unsignalled_posts 'with waiting' "v == 1024 && $frees"
	nothing_left
}

@test "two processes: the server serves a probe, then a run, then ends in order" {
	serve
	bench probe -d "$DEVICE" -p "$PORT" --format csv "$HOST"
	ended 0
	sound
	client --format csv -s 64 -n 50 --verify
	ended 0
	rows "$out_file" 1 'f("status") == "ok"'
	serving
	server_ends
	[[ $(<"$BATS_TEST_TMPDIR/server.err") != *' ended after '* ]] || fail "the server complained"
	nothing_left
}

@test "no server there: one line, and nothing on stdout" {
	bench probe -d "$DEVICE" -p "$PORT" "$HOST"
	refused 1 "$HOST" "$PORT" 'refused'
}

begun() {
	! same_resources "$before"
}

@test "SIGINT: status 130, and what was found is whole" {
	local rc=0
	"$RXFER_BENCH" probe -d "$DEVICE" --format json >"$out_file" 2>"$err_file" </dev/null 3>&- &
	server=$!
	wait_until 20 begun
	sleep 0.3
	kill -INT "$server"
	wait_until 10 gone "$server" || fail "it goes on"
	wait "$server" || rc=$?
	server=''
	out=$(<"$out_file") err=$(<"$err_file") status=$rc
	ended 130
	[[ -z $out ]] || jq -e '.partial' "$out_file" >/dev/null || fail "not whole, or not partial"
	nothing_left
}

@test "an output that cannot be written: nothing is probed" {
	bench probe -d "$DEVICE" -o /no/such/dir/x.csv
	refused 1 '/no/such/dir/x.csv' 'No such file'
	nothing_left
}
