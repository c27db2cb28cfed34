# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The kernel as a witness: kprobes count in uverbs and rxe what the two ends of a run did there, and
# the run's row must say the same. What is counted, WHO being client or server:
#
#	WHO post	ib_uverbs_post_send: by this call rxe's user space rings for each
#			ibv_post_send(), whatever is in its chain, and not for ibv_post_recv()
#	WHO reg, dereg	rxe_reg_user_mr, rxe_dereg_mr
#	bind, revoke	rxe_bind_mw, rxe_invalidate_mw: the latter both for a LOCAL_INV and where
#			a SEND_WITH_INV arrives. They run anywhere, and tell not whose
#	WHO send, ...	rxe_cq_post: good completions, by opcode. It runs anywhere, too, but the
#			CQ tells whose: rxe_create_cq ran in the process that made it
#
# Posts and completions are compared as they are: all that is posted is in the row, but for drains,
# and these are seen too, as completed WRITEs of no bytes. Memory is registered to set a run up as
# well, which is in no row: so each run is done twice, of N and of 2 * N I/Os, and what the second
# has more counts. Of WRs that ask for no completion the kernel can say no more than that a SEND
# arrived: some runs ask for all.
#
# A function that cannot be probed, inlined or renamed, fails the suite, and so does a probe that
# missed a call. One that is inlined here and there would be seen too rarely, which the rows show.
# Nothing is seen of windows but with frwr: its tests are the proof that they would be.

# What bench.bash sets; awk in single quotes.
# shellcheck disable=SC2154,SC2016

tracing=/sys/kernel/tracing
events=$tracing/events/rxfer_witness
N=101 # no multiple of what `half` signals: the last WRs are silent

# ---- probes ----

# probe FUNCTION KEYS [ARGUMENT...]: count its calls by KEYS. The trigger alone enables it: no
# record is written of each call.
probe() {
	echo "p:${events##*/}/$1 $1 ${*:3}" 2>/dev/null >>"$tracing/kprobe_events" ||
		fail "$1 cannot be probed: inlined, or of another name in $(uname -r)?" || return 1
	echo "hist:keys=$2" >>"$events/$1/trigger"
}

# A completion's status, opcode and bytes lie where user space has them (struct ib_uverbs_wc).
start_witness() {
	local by_process=common_pid.execname
	[[ -e $tracing/kprobe_events ]] || mount -t tracefs tracefs "$tracing" ||
		fail "no kprobe events in this kernel" || return 1
	stop_witness
	probe rxe_reg_user_mr "$by_process" && probe rxe_dereg_mr "$by_process" &&
		probe ib_uverbs_post_send "$by_process" &&
		probe rxe_bind_mw "$by_process" && probe rxe_invalidate_mw "$by_process" &&
		probe rxe_create_cq "$by_process,cq" 'cq=$arg1:x64' &&
		probe rxe_cq_post 'cq,opcode,bytes if status == 0' \
			'cq=$arg1:x64 status=+8($arg2):u32 opcode=+12($arg2):u32' \
			'bytes=+20($arg2):u32'
}

stop_witness() {
	local event trigger
	for event in "$events"/*/; do
		[[ -e ${event}trigger ]] || continue
		trigger=$(sed -n 's/ \[active\]$//; s/^hist:/!&/p' "${event}trigger")
		[[ -z $trigger ]] || echo "$trigger" >>"${event}trigger"
		event=${event%/}
		echo "-:${events##*/}/${event##*/}" >>"$tracing/kprobe_events"
	done
}

# look RUN: what all have counted by now, into seen.RUN; to set them to 0 takes the kernel seconds.
# Who made a CQ comes before what was in it.
look() {
	echo "$(<"$tracing/kprobe_profile")" >"$BATS_TEST_TMPDIR/seen.$1"
	grep -E '^\{|Dropped' "$events"/rxe_create_cq/hist "$events"/*/hist \
		>>"$BATS_TEST_TMPDIR/seen.$1"
}

# Whatever was registered is deregistered: the server does its part when the client is gone.
given_back() {
	local name hits registered deregistered
	while read -r name hits _; do
		case $name in
		rxe_reg_user_mr) registered=$hits ;;
		rxe_dereg_mr) deregistered=$hits ;;
		esac
	done <"$tracing/kprobe_profile"
	((registered == deregistered))
}

# ---- runs ----

# Under another name it is told from the client.
serve_apart() {
	local program=$BATS_TEST_TMPDIR/witness-server
	ln -sf "$(realpath "$RXFER_BENCH")" "$program"
	RXFER_BENCH=$program serve
}

# watched RUN N ARG...: a run by two processes, its row in row.RUN.
watched() {
	local run=$1 n=$2
	shift 2
	client --warmup 0 --rnr-retry 0 --format csv -n "$n" "$@"
	ended 0 && wait_until 10 given_back || return 1
	cp "$out_file" "$BATS_TEST_TMPDIR/row.$run"
	look "$run"
}

# agree ARG...: the kernel saw what the rows of these two runs say.
agree() {
	mv "$BATS_TEST_TMPDIR"/seen.{2,0} 2>/dev/null || look 0
	watched 1 "$N" "$@" && watched 2 $((2 * N)) "$@" || return 1
	(compare) || fail "this was: $*"
}

compare() {
	local client=${RXFER_BENCH##*/}
	cd "$BATS_TEST_TMPDIR" && awk -v n="$N" -v client="${client:0:15}" \
		-f "$BATS_TEST_DIRNAME/witness.awk" seen.0 seen.1 seen.2 FS=, row.1 row.2 >&2
}
