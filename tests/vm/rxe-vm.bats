#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# scripts/rxe-vm itself; runs on the host. A boot takes about ten seconds, so one guest does what
# most tests look at.

bats_require_minimum_version 1.5.0
vm="$BATS_TEST_DIRNAME/../../scripts/rxe-vm"

# shellcheck disable=SC2016 # hard to quote, and meant so
hard=('a b' "it's" '"q"' '' '$HOME *' $'t\tn\nl' 'ü')

# What the first guest runs, with those arguments.
write_probe() {
	cat >"$GUEST/probe" <<'PROBE'
printf '<%s>\n' "$@" >"$OUT_DIR/arguments"
echo 'from the guest' >"$OUT_DIR/file"
echo "rxe0: $(cat /sys/class/infiniband/rxe0/ports/1/state)"
echo "address: $(ip -br -4 addr show vrxe0 | awk '{ print $3 }')"
echo "terminal: $([ -t 1 ] || [ -t 2 ] && echo yes || echo no)"
echo "stdin: $(wc -c) bytes"
echo "cwd: $PWD"
echo "word: $RXFER_WORD"
echo "secret: ${SECRET-unset}"
echo "wrote elsewhere: $(touch elsewhere && echo yes)"
echo "cmdline: $(cat /proc/cmdline)"
echo "cpus: $(nproc)"
sleep 3600 &
echo "left: $(kill -0 $! && echo running)"
echo "on stderr" >&2
echo big
echo big >&2
seq 1 160000
seq 160000 -1 1 >&2
exit 7
PROBE
}

setup_file() {
	export GUEST=$BATS_FILE_TMPDIR
	write_probe
	write_node
	mkdir "$GUEST/out, put" "$GUEST/work dir"
	cd "$GUEST/work dir" || return
	OUT_DIR="$GUEST/out, put" RXFER_WORD="a 'b' \"c\" \$d" SECRET=x "$vm" --smp 2 -- \
		bash "$GUEST/probe" "${hard[@]}" >"$GUEST/stdout" 2>"$GUEST/stderr" </etc/passwd || echo $? >"$GUEST/status"
	# Two at once, with what the first has not.
	"$vm" --iwarp -- rdma link >"$GUEST/iwarp" 2>&1 3>&- &
	"$vm" --repeatable -- bash -c 'cat /proc/cmdline; nproc; ls /sys/class/infiniband' \
		>"$GUEST/repeatable" 2>&1 3>&- &
	wait
	"$vm" --nodes 2 -- bash "$GUEST/node" >"$GUEST/nodes" 2>"$GUEST/nodes.err" || echo $? >"$GUEST/nodes.status"
}

# What both nodes run: each finds the other's RDMA address through the cable, and says so.
write_node() {
	cat >"$GUEST/node" <<'NODE'
rping -s -a "10.77.0.$((RXFER_NODE + 1))" -C 3 >/dev/null &
sleep 1
for i in {1..20}; do
	! rping -c -a "10.77.0.$((2 - RXFER_NODE))" -C 3 >/dev/null || { echo "reached the other"; break; }
	sleep 0.5
done
wait
echo "address: $(ip -br -4 addr show vrxe0 | awk '{ print $3 }')"
echo "$RXFER_NODE on stderr" >&2
exit $((5 - RXFER_NODE))
NODE
}

# A line of what the first guest said: "word: value".
said() {
	sed -n "s/^$1: //p" "$GUEST/stdout"
}

# start: a guest that prints "started" and then waits, in the background; $pid, and output in $log.
start() {
	status=0
	log=$BATS_TEST_TMPDIR/log
	TMPDIR=$BATS_TEST_TMPDIR env --default-signal=INT "$vm" "$@" >"$log" 2>&1 </dev/null 3>&- &
	pid=$!
}

wait_for_line() {
	local i
	for ((i = 0; i < 900; i++)); do
		! grep -q "$1" "$log" || return 0
		sleep 0.1
	done
	echo "no '$1' within 90 s:"
	cat "$log"
	return 1
}

# The guest of `start`: QEMU has the run's folder, which is in this test's, on its command line.
qemu_is_gone() {
	local i
	for ((i = 0; i < 20; i++)); do
		! pgrep -f "qemu-system.*$BATS_TEST_TMPDIR" >/dev/null || { sleep 0.1; continue; }
		return 0
	done
	return 1
}

nothing_stays() {
	qemu_is_gone
	run find "$BATS_TEST_TMPDIR" -name 'rxe-vm.*'
	[ -z "$output" ]
}

@test "the exit status comes back" {
	[ "$(cat "$GUEST/status")" -eq 7 ]
}

@test "arguments arrive as they are" {
	printf '<%s>\n' "${hard[@]}" | cmp - "$GUEST/out, put/arguments"
}

@test "rxe0 is active at 10.77.0.1" {
	[ "$(said rxe0)" = '4: ACTIVE' ]
	[ "$(said address)" = 10.77.0.1/24 ]
}

@test "standard output and standard error are kept apart" {
	grep -q '^on stderr$' "$GUEST/stderr"
	run ! grep -q 'on stderr' "$GUEST/stdout"
	run ! grep -q 'rxe0:' "$GUEST/stderr"
}

@test "the output is no terminal and has no CR" {
	[ "$(said terminal)" = no ]
	run ! grep -q $'\r' "$GUEST/stdout"
}

@test "a megabyte on each stream is intact" {
	sed '1,/^big$/d' "$GUEST/stdout" >"$BATS_TEST_TMPDIR/out"
	seq 1 160000 | cmp - "$BATS_TEST_TMPDIR/out"
	sed '1,/^big$/d' "$GUEST/stderr" >"$BATS_TEST_TMPDIR/err"
	seq 160000 -1 1 | cmp - "$BATS_TEST_TMPDIR/err"
}

@test "standard input is empty" {
	[ "$(said stdin)" = '0 bytes' ]
}

@test "the working directory is the same" {
	[ "$(said cwd)" = "$GUEST/work dir" ]
}

@test "of the environment, RXFER_* and what is documented is passed on" {
	[ "$(said word)" = "a 'b' \"c\" \$d" ]
	[ "$(said secret)" = unset ]
}

@test "what is written below OUT_DIR comes back, else nothing" {
	[ "$(cat "$GUEST/out, put/file")" = 'from the guest' ]
	[ "$(said 'wrote elsewhere')" = yes ]
	[ ! -e "$GUEST/work dir/elsewhere" ]
}

@test "the guest's kernel command line says what it is" {
	[[ " $(said cmdline) " == *' rxfer.vm=1 '* ]]
	[[ $(said cmdline) != *rxfer.clock* ]]
}

@test "--smp sets the number of CPUs" {
	[ "$(said cpus)" = 2 ]
}

@test "what the command leaves running does not keep the guest" {
	# It left a sleep of an hour; that we are here shows it.
	[ "$(said left)" = running ]
}

@test "--iwarp brings siw0 besides rxe0" {
	cat "$GUEST/iwarp"
	grep -q 'link siw0/1 state ACTIVE' "$GUEST/iwarp"
	grep -q 'link rxe0/1 state ACTIVE' "$GUEST/iwarp"
}

@test "--repeatable has one CPU and says so to the guest's kernel" {
	cat "$GUEST/repeatable"
	grep -q 'rxfer.clock=virtual' "$GUEST/repeatable"
	[ "$(sed -n 2p "$GUEST/repeatable")" = 1 ]
	grep -qx rxe0 "$GUEST/repeatable"
}

@test "--nodes 2: two guests reach each other, say which they are, and the worse status comes back" {
	local node
	cat "$GUEST/nodes" "$GUEST/nodes.err"
	for node in 0 1; do
		grep -qx "$node: reached the other" "$GUEST/nodes"
		grep -qx "$node: address: 10.77.0.$((node + 1))/24" "$GUEST/nodes"
		grep -qx "$node: $node on stderr" "$GUEST/nodes.err"
	done
	[ "$(cat "$GUEST/nodes.status")" -eq 5 ]
}

# bats test_tags=slow
@test "--nodes 2: where one crashes the other does not go on alone, and nothing stays" {
	TMPDIR=$BATS_TEST_TMPDIR run "$vm" --nodes 2 --timeout 90 -- \
		bash -c '((RXFER_NODE == 0)) || echo o >/proc/sysrq-trigger; sleep 100'
	echo "$output"
	[ "$status" -eq 125 ]
	[[ $output == *'rxe-vm: node 1: the guest ended without a status'* ]]
	[[ $output != *'node 0: '* ]]
	nothing_stays
}

# bats test_tags=slow
@test "output streams; at SIGINT the guest ends at once, and nothing stays" {
	start -- bash -c 'echo started; sleep 100'
	wait_for_line started
	kill -INT "$pid"
	SECONDS=0
	wait "$pid" || status=$?
	[ "$status" -eq 130 ]
	((SECONDS <= 2))
	nothing_stays
}

# bats test_tags=slow
@test "at SIGTERM the guest ends at once, while it boots too, and nothing stays" {
	start -- sleep 100
	sleep 3
	kill -TERM "$pid"
	SECONDS=0
	wait "$pid" || status=$?
	[ "$status" -eq 143 ]
	((SECONDS <= 2))
	nothing_stays
}

# bats test_tags=slow
@test "the guest does not outlive a script that is killed" {
	start -- sleep 100
	sleep 3
	pgrep -f "qemu-system.*$BATS_TEST_TMPDIR"
	kill -KILL "$pid"
	wait "$pid" || true
	qemu_is_gone
}

# bats test_tags=slow
@test "at its limit it ends with 125 and says so" {
	SECONDS=0
	TMPDIR=$BATS_TEST_TMPDIR run "$vm" --timeout 3 -- sleep 100
	[ "$status" -eq 125 ]
	[[ ${lines[0]} == 'rxe-vm: the guest reached its limit of 3 s'* ]]
	((SECONDS <= 10))
	nothing_stays
}

@test "a kernel that there is not: 125 and the reason" {
	local name
	for name in nonsense linux-image-nonsense /nonexistent/folder "$BATS_TEST_TMPDIR"; do
		RXFER_VM_KERNEL=$name run "$vm" -- true
		echo "$output"
		[ "$status" -eq 125 ]
		[ "${#lines[@]}" -eq 1 ]
		[[ $output == "rxe-vm: "*"$name"* ]]
	done
}

@test "--kernel newer has no siw, and is not named twice: refused with the reason" {
	run "$vm" --kernel newer --iwarp -- true
	echo "$output"
	[ "$status" -eq 125 ]
	[[ $output == 'rxe-vm: --iwarp does not go with --kernel newer: Debian builds no siw,'* ]]
	RXFER_VM_KERNEL=6.1.0-1-amd64 run "$vm" --kernel newer -- true
	echo "$output"
	[ "$status" -eq 125 ]
	[[ $output == *'--kernel newer and RXFER_VM_KERNEL name two kernels'* ]]
}

@test "a missing program is named with its package" {
	local name
	for name in bash dirname id uname; do
		ln -s "$(command -v "$name")" "$BATS_TEST_TMPDIR/$name"
	done
	sed 's|^PATH=.*||' "${vm%/*}/lib.bash" >"$BATS_TEST_TMPDIR/lib.bash"
	cp "$vm" "$vm-kernel.bash" "$BATS_TEST_TMPDIR"
	run env PATH="$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/rxe-vm" -- true
	echo "$output"
	[ "$status" -eq 125 ]
	[[ $output == *'qemu-system-x86_64 is missing: install the package qemu-system-x86 '* ]]
}

@test "wrong usage: 125 and one line" {
	local words
	for words in '' '--smp 0 -- true' '--mem x -- true' '--timeout' '--nonsense -- true' \
		'--repeatable --smp 2 -- true' '--nodes 3 -- true' '--nodes 2 --iwarp -- true' '--kernel' \
		'--kernel older -- true'; do
		# shellcheck disable=SC2086 # words they are
		run "$vm" $words
		echo "$words: $output"
		[ "$status" -eq 125 ]
		[ "${#lines[@]}" -eq 1 ]
	done
}
