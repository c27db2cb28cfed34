#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 166 s in a guest
#
# Bad input and bad surroundings, as far as they need a device (the rest is in cli.bats): one line
# that says what, why and what to do; the right status; nothing on stdout where nothing ran; nothing
# half-written; no hang.

# What bench.bash sets and reads; perl and awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2028,SC2030,SC2031
bats_require_minimum_version 1.5.0
load bench

LIMIT=20

teardown() {
	ip link set "v$DEVICE" up
	end_server
	umount "$BATS_TEST_TMPDIR/small" 2>/dev/null || true
}

quick() {
	bench loopback -d "$DEVICE" --format csv -s 64 -n 10 "$@"
}

@test "a device that is not there: the nearest name" {
	bench loopback -d rxe00 -n 1
	refused 1 'rxe00' "did you mean $DEVICE"
	bench server -d mlx5_0
	refused 1 'mlx5_0' "$DEVICE"
	bench client -d rxe "$HOST"
	refused 1 'did you mean'
	bench devices -d rxe00
	refused 1 'rxe00' "did you mean $DEVICE"
}

@test "a device that is down" {
	ip link set "v$DEVICE" down
	wait_until 5 grep -q DOWN "/sys/class/infiniband/$DEVICE/ports/1/state"
	bench loopback -d "$DEVICE" -n 1
	refused 1 "$DEVICE" 'not active' 'bring its link up'
	bench server -d "$DEVICE"
	refused 1 "$DEVICE" 'not active' 'bring its link up'
	bench client -d "$DEVICE" "$HOST"
	refused 1 'not active'
}

@test "a device without an address" {
	local address
	address=$(ip -o -4 addr show "v$DEVICE" | awk '{ print $4 }')
	ip addr del "$address" dev "v$DEVICE"
	bench loopback -d "$DEVICE" -n 1
	ip addr add "$address" dev "v$DEVICE"
	wait_until 5 address_is_back
	complained 1 "$DEVICE" 'address'
}

address_is_back() {
	"$RXFER_BENCH" devices | grep -q "$HOST"
}

@test "no server there" {
	client
	refused 1 "$HOST" "$PORT" 'refused' 'server'
	# An address that nobody has, on the device's own net.
	bench client -d "$DEVICE" --timeout 1s 10.77.0.99
	refused 1 '10.77.0.99' 'server'
}

@test "a host that nobody knows: the nearest that this machine knows" {
	bench client -d "$DEVICE" localhots
	refused 1 'localhots' 'did you mean localhost'
	bench client -d "$DEVICE" no.such.host.invalid
	refused 1 'no.such.host.invalid' 'not known'
}

@test "a web server at the port" {
	stand_in 'while (<$c>) { last if /^\r?$/ } print $c "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n<html>no</html>"'
	client
	refused 1 'HTTP' '--port'
}

@test "a server that speaks first: SMTP" {
	stand_in 'print $c "220 mail.example ESMTP\r\n"; $c->flush; sysread $c, my $b, 4096'
	client
	refused 1 'does not speak rxfer-bench' '--port'
}

@test "a server that never says anything" {
	stand_in 'sleep 60'
	client --timeout 1s
	refused 1 'no answer' '--timeout'
}

@test "a server that closes at once" {
	stand_in '1'
	client --timeout 5s
	refused 1 'closed the control connection'
}

@test "a server of another version" {
	stand_in 'print $c pack("NnnN", 0x52584642, 2, 1, 6), "{}\r\n\r\n"; $c->flush; sleep 5'
	client
	refused 1 'version 2' 'we speak 1' 'same release'
}

@test "a server whose message is too long, or no JSON" {
	stand_in 'print $c pack("NnnN", 0x52584642, 1, 1, 1 << 30); $c->flush; sleep 5'
	client
	refused 1 '1073741824'
	end_server
	stand_in 'print $c pack("NnnN", 0x52584642, 1, 1, 7), "\0\xff{}\r\n\r"; $c->flush; sleep 5'
	client
	refused 1 'JSON'
}

@test "a size above what one message can carry" {
	quick --op send -s 9m
	complained 1 '--size' '9437184' 'max_msg_sz 8388608'
	rows "$out_file" 1 'f("status") == "failed"'
}

@test "more QPs, or deeper queues, than the device grants" {
	quick --sq-depth 1048576
	complained 1 '10485' 'max_' '--sq-depth'
	rows "$out_file" 1 'f("status") == "failed"'
	# Only the default is shrunk to what there is.
	quick -s 4k --strategy multi-wr --frags 1024 --frag-gap 0 --depth 20 -n 3 --warmup 0
	ended 0
	rows "$out_file" 1 'f("sq_wanted") == 40961 && f("sq_depth") < 32767 && f("iterations") == 3'
}

@test "the limit of open files: named, wherever it is met; and no queue pair needs one" {
	least_files 8 -s 64 -n 1 --warmup 0 # with less, libibverbs has a word of its own
	((files > 8)) || fail "$files open files were enough"
	with "prlimit --nofile=$files" loopback -d "$DEVICE" --format csv -s 64 -n 1 --warmup 0 --qps 40
	ended 0
}

# CAP_IPC_LOCK lifts the limit, and root has it.
limited() {
	local kib=$1
	shift
	ulimit -l "$kib"
	with "setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock" loopback -d "$DEVICE" --format csv -n 10 "$@"
}

@test "the limit of locked memory: named, with the remedy" {
	limited 256 -s 1m
	complained 1 'locked-memory limit' '256.0 KiB' 'ulimit -l'
	rows "$out_file" 1 'f("status") == "failed" && f("reason") ~ /locked-memory limit/'
	limited 256 -s 64k --strategy per-io --op read
	complained 1 'locked-memory limit' '256.0 KiB' 'ulimit -l'
}

@test "just below the limit of locked memory all is well" {
	limited 1024 -s 4k --depth 4
	ended 0
	rows "$out_file" 1 'f("status") == "ok"'
}

@test "an output that cannot be written" {
	quick -o /no/such/dir/x.csv
	refused 1 '/no/such/dir/x.csv' 'No such file' 'directory'
	quick -o /proc/x.json
	refused 1 '/proc/x.json'
	mkdir "$BATS_TEST_TMPDIR/d.csv"
	quick -o "$BATS_TEST_TMPDIR/d.csv"
	refused 1 'd.csv' 'directory'
}

@test "where one output cannot be opened, another is not left behind with a header alone" {
	quick -o "$BATS_TEST_TMPDIR/a.csv" -o "$BATS_TEST_TMPDIR/b.json" -o /no/such/dir/x.csv
	refused 1 '/no/such/dir/x.csv'
	[[ -z $(find "$BATS_TEST_TMPDIR" -name '[ab].*' -size +0) ]] || fail "$(find "$BATS_TEST_TMPDIR" -name '[ab].*')"
}

@test "an output with another header, or a last line that is not whole" {
	printf 'a,b\n1,2\n' >"$BATS_TEST_TMPDIR/x.csv"
	quick -o "$BATS_TEST_TMPDIR/x.csv"
	refused 1 'x.csv' 'header' 'another'
	[[ $(<"$BATS_TEST_TMPDIR/x.csv") == $'a,b\n1,2' ]]
	quick
	printf '%s\n1,ok' "${out%%$'\n'*}" >"$BATS_TEST_TMPDIR/y.csv"
	cp "$BATS_TEST_TMPDIR/y.csv" "$BATS_TEST_TMPDIR/y.was"
	quick -o "$BATS_TEST_TMPDIR/y.csv"
	refused 1 'y.csv' 'not complete'
	cmp "$BATS_TEST_TMPDIR/y.csv" "$BATS_TEST_TMPDIR/y.was"
}

@test "a full device as stdout, in every format; a closed one" {
	local format
	for format in csv json table perftest perftest-lat; do
		status=0
		timeout 20 "$RXFER_BENCH" loopback --mode direct -d "$DEVICE" -s 64 -n 10 --signal io --format "$format" >/dev/full \
			2>"$err_file" || status=$?
		out='' err=$(<"$err_file")
		refused 1 'stdout' 'No space left' 'free some space'
	done
	status=0
	timeout 20 "$RXFER_BENCH" loopback --mode direct -d "$DEVICE" -s 64 -n 10 >&- 2>"$err_file" || status=$?
	err=$(<"$err_file")
	refused 1 'stdout' '--output'
}

@test "a disk that fills up: what is in the file is whole, and nothing else is left" {
	local small=$BATS_TEST_TMPDIR/small
	mkdir "$small"
	mount -t tmpfs -o size=4k tmpfs "$small"
	bench loopback -d "$DEVICE" -n 5 --format csv -s 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20 \
		--op write -o "$small/x.csv"
	complained 1 'x.csv' 'No space left' 'free some space'
	[[ $(tail -c 1 "$small/x.csv" | od -An -tx1) == ' 0a' ]] || fail "half a row"
	rows "$small/x.csv" "$(($(wc -l <"$small/x.csv") - 1))" 'f("status") == "ok" && NR < 20'
	rm "$small/x.csv"
	head -c 4096 /dev/zero >"$small/full"
	quick -o "$small/y.json"
	complained 1 'y.json' 'No space left'
	[[ $(ls "$small") == full ]] || fail "left over: $(ls "$small")"
}

@test "a reader that goes away" {
	status=0
	timeout 20 "$RXFER_BENCH" loopback --mode direct -d "$DEVICE" -s 64,128,256 -n 10 --format csv 2>"$err_file" |
		: || status=${PIPESTATUS[0]}
	out='' err=$(<"$err_file")
	one_line "$err"
	[[ $err == *'reader has gone'* ]] || fail "does not say why"
}
