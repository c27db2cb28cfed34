#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Both machines' part of netem.bats: node 0 serves, node 1 is the client, and both make their own end
# of the cable as bad as node 1 says. They meet in $OUT_DIR, which both see; what netem.bats judges is
# left there:
#
#	NAME.csv, NAME.err, NAME.status		of the client, in the weather NAME
#	NAME.0, NAME.1				what tc has dropped meanwhile at each node, and those counts
#						of rxe's that have changed
#	server.err, server.status, left
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
BATS_TEST_TMPDIR=$(mktemp -d)
HOST=10.77.0.1 DEVICE=rxe0
. ./bench.bash
node=$RXFER_NODE counters=/sys/class/infiniband/$DEVICE/ports/1/hw_counters

# weather [WORD...]: of tc's netem, for what this node sends; none: clear.
weather() {
	tc qdisc del dev "v$DEVICE" root 2>/dev/null || true
	(($# == 0)) || tc qdisc add dev "v$DEVICE" root netem limit 10000 "$@"
}

count() {
	grep -H . "$counters"/* | sed 's|.*/||; s/:/=/'
}

# What changed since the counts in FILE, and what tc dropped.
changed() {
	diff "$1" <(count) | sed -n 's/^> //p' || true
	tc -s qdisc show dev "v$DEVICE" root | sed -n 's/.*(dropped \([0-9]*\),.*/dropped=\1/p'
}

# ---- node 0 ----

# settle N NAME [WORD...]: that weather from now on; of the one before, the counts.
settle() {
	[[ -z $name ]] || changed "$BATS_TEST_TMPDIR/then" >"$OUT_DIR/$name.0"
	name=$2
	count >"$BATS_TEST_TMPDIR/then"
	weather "${@:3}"
	echo "$1" >"$OUT_DIR/have"
}

# Does what the file `want` says, until that is "end".
follow() {
	local last=0 name='' words
	while true; do
		words=(0)
		[[ ! -e $OUT_DIR/want ]] || read -ra words <"$OUT_DIR/want" || true
		if ((words[0] > last)); then
			last=${words[0]}
			settle "${words[@]}"
			[[ $name != end ]] || return 0
		fi
		sleep 0.2
	done
}

be_server() {
	serve --timeout 10s
	touch "$OUT_DIR/serving"
	follow
	resources >"$OUT_DIR/left"
	server_ends TERM && echo 0 >"$OUT_DIR/server.status"
	cp "$BATS_TEST_TMPDIR/server.err" "$OUT_DIR/server.err"
}

# ---- node 1 ----

has() {
	[[ -e $OUT_DIR/have && $(<"$OUT_DIR/have") == "$1" ]]
}

# both NAME [WORD...]: node 0 has this weather; ours comes after.
told=0
both() {
	echo "$((++told)) $*" >"$OUT_DIR/want.new"
	mv "$OUT_DIR/want.new" "$OUT_DIR/want"
	wait_until 30 has "$told"
	shift
	weather "$@"
}

# keep NAME: what the client has left.
keep() {
	cp "$out_file" "$OUT_DIR/$1.csv"
	cp "$err_file" "$OUT_DIR/$1.err"
	echo "$status" >"$OUT_DIR/$1.status"
	changed "$BATS_TEST_TMPDIR/then" >"$OUT_DIR/$1.1"
}

# in_weather NAME [WORD...]: runs of each operation.
in_weather() {
	both "$@"
	count >"$BATS_TEST_TMPDIR/then"
	LIMIT=120 client --op read,write,send -s 4k -n 150 --verify --timeout 20s --format csv
	keep "$1"
	weather
}

# in_mid_run NAME COMMAND...: what happens in a run that would not end.
in_mid_run() {
	both "$1"
	count >"$BATS_TEST_TMPDIR/then"
	status=0
	timeout 60 "$RXFER_BENCH" client --mode direct -d "$DEVICE" -p "$PORT" -s 64 -n 100000000 --timeout 2s --format csv "$HOST" \
		>"$out_file" 2>"$err_file" </dev/null &
	sleep 3
	"${@:2}"
	wait $! || status=$?
	keep "$1"
}

# filter: RoCE's packets do not reach this node any more, all others do. (Where they do not leave it, rxe
# tries again at once, for ever, and lets nobody else run.)
filter() {
	tc qdisc add dev "v$DEVICE" clsact
	tc filter add dev "v$DEVICE" ingress protocol ip u32 match ip protocol 17 0xff match ip dport 4791 0xffff \
		action drop
}

no_filter() {
	tc qdisc del dev "v$DEVICE" clsact
}

be_client() {
	wait_until 60 test -e "$OUT_DIR/serving"
	in_weather clear
	in_weather loss1 loss 1%
	in_weather loss5 loss 5%
	in_weather reorder delay 1ms reorder 1%
	in_mid_run filtered filter
	no_filter
	# The network goes away, and comes back after the run has ended.
	in_mid_run cut weather loss 100%
	in_weather after
	both end
}

modprobe sch_netem
if ((node == 0)); then
	be_server
else
	be_client
fi
