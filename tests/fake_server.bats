#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The server and its control port, on the test double: limits, peers that are none, what it logs, how
# it ends, and that a thousand sessions leave nothing behind. The double ends the program with status
# 70 where anything of the device is left, so each `server_ends` also says that nothing is. What
# needs data connections is in tests/vm/server.bats.

# What bench.bash sets and reads.
# shellcheck disable=SC2154,SC2034,SC2030,SC2031
bats_require_minimum_version 1.5.0
RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
RXFER_DEV=fake0
load vm/bench

export FAKEHCA=real_clock=1 FAKEHCA_STATS=$BATS_TEST_TMPDIR/stats
LIMIT=60 HOST=127.0.0.1
log=$BATS_TEST_TMPDIR/server.err

setup() {
	PORT=$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1)->sockport')
	visitor=''
}

teardown() {
	[[ -z $visitor ]] || kill -KILL "$visitor" 2>/dev/null || true
	end_server
}

# visit TIMES KIND...: what became of them is in $visits.
visit() {
	visits=$("$BATS_TEST_DIRNAME/vm/visitor.pl" "$HOST" "$PORT" "$@" 3>&-)
}

# keep KIND...: visitors in the background that have come so far, and stay.
keep() {
	local file=$BATS_TEST_TMPDIR/kept
	: >"$file"
	"$BATS_TEST_DIRNAME/vm/visitor.pl" "$HOST" "$PORT" $# "$@" >"$file" 3>&- &
	visitor=$!
	wait_until 10 lines_in "$file" $#
}

lines_in() {
	(($(wc -l <"$1") >= $2))
}

# says PATTERN...: the log has a line for each.
says() {
	local pattern
	for pattern; do
		grep -qE -- "$pattern" "$log" || fail "the log does not say: $pattern" "$(<"$log")" || return 1
	done
}

# became WHAT...: of the visitors, one after the other, in patterns.
became() {
	local line i=0 lines
	mapfile -t lines <<<"$visits"
	((${#lines[@]} == $#)) || fail "not $# visits:" "$visits" || return 1
	for line; do
		[[ ${lines[i++]} =~ $line ]] || fail "not $line:" "$visits" || return 1
	done
}

# alone: no session is left, nor a thread of one. ThreadSanitizer has one of its own.
alone() {
	local n=1
	! grep -q libtsan "/proc/$server/maps" || n=2
	grep -qx "Threads:"$'\t'"$n" "/proc/$server/status"
}

# holding: descriptors, and resident KiB.
holding() {
	wait_until 10 alone || return 1
	files=$(find "/proc/$server/fd" -mindepth 1 | wc -l)
	rss=$(awk '/^VmRSS:/ { print $2 }' "/proc/$server/status")
}

# Sanitizers keep for a while what is freed, and AddressSanitizer finds what is not by itself.
sanitized() {
	grep -qE 'lib[at]san' "/proc/$server/maps"
}

# Four at a time at most, whatever the machine has to do besides: each stack and arena of a thread that
# was there once is kept for the next.
thousand() {
	local i
	for ((i = $1; i < $2; i += 100)); do
		visit 100 polite polite nobody wrong write polite half leaver http polite refuser polite send \
			polite nobody tls polite half polite refuser
		wait_until 10 alone || return 1
	done
}

@test "a thousand sessions: no descriptor, thread or memory more than after two hundred" {
	local last=1000 files_then rss_then
	MALLOC_ARENA_MAX=2 serve --max-sessions 4
	! sanitized || last=400 # it is slow, and memory is not looked at
	thousand 0 200
	holding
	files_then=$files rss_then=$rss
	thousand 200 $last
	holding
	echo "after 200: $files_then files, $rss_then KiB; after $last: $files files, $rss KiB"
	((files == files_then))
	sanitized || ((rss <= rss_then + 512))
	says "session $((last - 100)) of 127.0.0.1: begins"
	server_ends
	grep -qxE 'reg_mr=[1-9][0-9]+' "$FAKEHCA_STATS"
	[[ $(sed -n 's/^reg_mr=//p' "$FAKEHCA_STATS") == "$(sed -n 's/^dereg_mr=//p' "$FAKEHCA_STATS")" ]]
}

# bats test_tags=threads
@test "one session too many is told so, and what to do; when there is room again it is served" {
	serve --max-sessions 2
	keep stays stays
	visit 3 polite
	became 'has 2 sessions, as many as it may have: try again .* larger --max-sessions$' \
		'has 2 sessions' 'has 2 sessions'
	client -n 1 --format csv
	complained 1 'has 2 sessions, as many as it may have'
	says '127.0.0.1 turned away: there are 2 sessions, as many as may be \(--max-sessions\)'
	kill "$visitor"
	visit 1 polite
	became 'polite: ok'
	server_ends
	serve --max-sessions 1
	keep stays
	visit 1 polite
	became 'has 1 session, as many as it may have'
	says 'turned away: there is 1 session, as many as may be'
	server_ends
	says 'told to stop, 1 session to end$'
}

# The old session is not always gone when the next one comes.
# bats test_tags=threads
@test "one session at a time: clients one right behind the other are all served" {
	serve --max-sessions 1
	visit 20 polite leaver nobody wrong write
	! grep -q 'as many as' <<<"$visits" || fail "turned away:" "$visits"
	[[ $(grep -c 'polite: ok' <<<"$visits") == 4 ]]
	server_ends
}

# bats test_tags=threads
@test "no limit of sessions" {
	serve --max-sessions 0
	mapfile -t many < <(yes stays | head -n 70)
	keep "${many[@]}"
	! grep -v ': ok' "$BATS_TEST_TMPDIR/kept" || fail "not all were let in"
	server_ends
}

@test "--allow: others are closed without a word, with one line in the log" {
	serve --allow 127.0.0.8/29,2001:db8::/32 --allow 10.0.0.0/8
	visit 20 polite
	[[ $(grep -c 'polite: closed' <<<"$visits") == 20 ]] || fail "$visits"
	says '127.0.0.1 turned away: not of a network that --allow names'
	(($(grep -c 'turned away' "$log") < 5))
	! grep -q 'session 1' "$log" || fail "a stranger has a session"
	client -n 1 --format csv
	complained 1 'closed the control connection'
	server_ends
	serve --allow 127.0.0.0/8
	visit 1 polite
	became 'polite: ok'
	server_ends
}

@test "--allow, --bind and the limits: what is wrong with them" {
	bench server --allow 10.0.0.1/8
	refused 2 '--allow 10.0.0.1/8: 10.0.0.1/8 is a host in a network; say 10.0.0.0/8 '
	bench server --allow node7
	refused 2 '--allow node7: node7 is no IP address'
	bench server --bind 'a b'
	refused 2 "--bind a b: not an address or a name of this machine; say one like"
	bench server --bind ''
	refused 2 '--bind'
	bench server --max-sessions -1
	refused 2 '--max-sessions -1: negative; say 0..65536'
	bench server --max-memory 1x
	refused 2 '--max-memory 1x: not a size'
	bench client --max-memory 1g node7
	refused 2 '--max-memory belongs to server, not to client'
	bench loopback --allow 10.0.0.0/8
	refused 2 '--allow belongs to server'
}

@test "--bind: one address of this machine, and nowhere else" {
	serve --bind 127.0.0.3
	says 'listening on 127.0.0.3 port '
	HOST=127.0.0.3 visit 1 polite
	became 'polite: ok'
	! visit 1 polite 2>/dev/null || fail "at 127.0.0.1, too"
	bench server -d fake0 -p "$PORT" --bind 127.0.0.3
	refused 1 "127.0.0.3 port $PORT is in use" '--port'
	server_ends
	bench server -d fake0 -p "$PORT" --bind 192.0.2.7
	refused 1 '--bind 192.0.2.7: this machine has no such address'
	bench server -d fake0 -p "$PORT" --bind no.such.host.invalid
	refused 1 'no.such.host.invalid' 'not known'
	serve --bind localhost
	server_ends
	grep -q '^[0-9a-f]\{31\}1 .* lo$' /proc/net/if_inet6 || skip "no IPv6 here"
	serve --bind ::1
	"$RXFER_BENCH" client --mode direct -p "$PORT" -d fake0 -n 1 --timeout 2s ::1 >/dev/null 2>&1 3>&- || true
	says 'session 1 of ::1: begins'
	server_ends
}

# A WRITE of 64 KiB, 16 deep, takes 1 MiB here.
# bats test_tags=threads
@test "--max-memory: what is beyond is refused with the numbers, before there is any of it" {
	serve --max-memory 1500k
	client --op write -s 1m -n 5 --format csv
	complained 1 'this run takes 16.0 MiB on the server, which may have 1.5 MiB \(its --max-memory\): use less'
	rows "$out_file" 1 'f("status") == "failed" && f("reason") ~ /16.0 MiB/'
	client --op send -s 64k -n 5 --format csv
	complained 1 'this run takes 2.0 MiB'
	client --op write -s 64k --bidir -n 5 --format csv
	complained 1 'this run takes 2.0 MiB'
	keep holds
	visit 1 write
	became 'write: this run takes 1.0 MiB on the server, and other sessions have 1.0 MiB of the 1.5 MiB .*wait for them'
	kill "$visitor"
	wait_until 10 alone
	visit 1 write
	became 'write: ok'
	server_ends
	grep -qx 'reg_mr=2' "$FAKEHCA_STATS" || fail "$(<"$FAKEHCA_STATS")"
}

# bats test_tags=threads
@test "peers that say nothing, or nothing whole: dropped in time, with a line each" {
	local begin=$SECONDS
	serve --timeout 1s
	visit 5 idle idles drip drips alive
	became 'said no hello within 1.0 s .the server.s --timeout' 'asked for no run within 1.0 s' 'said no hello within 1.0 s' \
		'asked for no run within 1.0 s' 'asked for no run within 1.0 s'
	((SECONDS - begin < 25))
	says 'session 1 of 127.0.0.1: was dropped before it began: .* said no hello' \
		'session 2 of 127.0.0.1: ended after 0 runs: .* asked for no run' \
		'session 3 .*no hello' 'session 4 .*asked for no run' 'session 5 .*asked for no run'
	visit 1 polite
	became 'polite: ok'
	server_ends
}

# A header that was begun, and the rest of it at the pace of a snail, holds nobody else up.
# bats test_tags=threads
@test "while one drips, others are served" {
	serve --timeout 30s
	"$BATS_TEST_DIRNAME/vm/visitor.pl" "$HOST" "$PORT" 3 drip >/dev/null 3>&- &
	visitor=$!
	visit 10 polite
	[[ $(grep -c ': ok' <<<"$visits") == 10 ]]
	server_ends
}

@test "what only the server's device cannot do is skipped, and the sweep goes on" {
	FAKEHCA=iwarp=1,real_clock=1 serve
	client --op write-imm -s 64,128 -n 5 --bidir --format csv
	[[ $status == 1 && -z $err ]] || fail "not status 1 without a complaint"
	rows "$out_file" 2 'f("status") == "skipped" && f("reason") == "127.0.0.1: iWARP has no immediate data"'
	server_ends
	says 'session 1 of 127.0.0.1: run 1 \(mode=direct op=write-imm .*\) skipped: iWARP has no immediate data' \
		'session 2 of 127.0.0.1: run 1 .* skipped: '
}

# bats test_tags=threads
@test "peers that speak something else: told what, and logged" {
	serve
	visit 4 http tls huge wrong
	became 'speaks HTTP' 'speaks TLS' '2147483648 bytes, at most 262144' "the client's options: --size -1"
	says 'session 1 of .* dropped before it began: 127.0.0.1 speaks HTTP' 'session 2 .* speaks TLS' \
		'session 3 .* 2147483648 bytes' 'session 4 of 127.0.0.1: run 1 \(options unknown\) failed: .*--size -1' \
		'session 4 of 127.0.0.1: ended after 0 runs'
	server_ends
}

# bats test_tags=threads
@test "noise, nonsense, and messages that are cut short: each is turned away, with a line, and who comes next is served" {
	serve --timeout 1s
	visit 8 zeros noise list early fields stub cut stuck
	became 'does not speak rxfer-bench' 'does not speak rxfer-bench' 'is no JSON object' 'message 2 when none such was due' \
		'lacks the text host' '^stub: ok$' '^cut: ok$' 'said no hello within 1.0 s'
	[[ $(grep -c 'was dropped before it began: ' "$log") == 8 ]] || fail "$(<"$log")"
	says 'session 6 .* closed the control connection' 'session 7 .* closed the control connection' 'session 8 .* said no hello'
	visit 1 polite
	became 'polite: ok'
	server_ends
}

@test "the log: a line for each event with the time, and nothing but printable ASCII" {
	serve
	visit 2 rude refuser
	server_ends
	! grep -qvE '^20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} server: ' "$log" || fail "$(<"$log")"
	! LC_ALL=C grep -q '[^ -~]' "$log" || fail "$(<"$log")"
	says "server: listening on port $PORT, device fake0 " 'session 1 of 127.0.0.1: begins, client on .*\?\[2J\?2026 forged' \
		'session 1 of 127.0.0.1: ended after 0 runs' 'session 2 .*ended after 0 runs: 127.0.0.1: no \?\[2J' \
		'server: told to stop, [0-9]+ sessions? to end'
}

@test "into the journal of systemd without the time, which is there already" {
	: >"$log"
	JOURNAL_STREAM=$(stat -c %d:%i "$log") serve
	visit 1 polite
	server_ends
	! grep -v '^server: ' "$log" || fail "with something before it"
}

# bats test_tags=threads
@test "SIGTERM: every session is told, whatever it is at, and the server ends with status 0" {
	local signal begin
	for signal in TERM INT; do
		serve
		keep stays holds stays
		begin=$SECONDS
		kill -"$signal" "$server"
		wait_until 5 gone "$server"
		((SECONDS - begin < 6))
		wait "$visitor" || true
		visits=$(sed -n 's/^kept: //p' "$BATS_TEST_TMPDIR/kept")
		became 'the server was told to stop' 'the server was told to stop' 'the server was told to stop'
		wait "$server"
		server='' visitor=''
		says 'session 2 .*: run 1 \(mode=direct op=write timeout=1m\) failed: the server was told to stop' \
			'session 3 of 127.0.0.1: ended after 0 runs: the server was told to stop' 'told to stop, 3 sessions'
		run ! listening "$PORT"
	done
}

# Its clients are stopped themselves, and neither read nor close.
@test "SIGTERM with peers that are stalled: the server does not wait for them" {
	local begin
	serve
	keep stays holds stays holds
	kill -STOP "$visitor"
	begin=$SECONDS
	server_ends
	((SECONDS - begin < 6)) || fail "took $((SECONDS - begin)) s"
	says 'told to stop, [0-9]+ sessions?' 'session 4 of .*: ended after 0 runs: the server was told to stop'
	! grep 'did not end' "$log" || fail "it waited"
	kill -CONT "$visitor"
	wait "$visitor" || true
	visitor=''
	[[ $(grep -c '^kept: the server was told to stop' "$BATS_TEST_TMPDIR/kept") == 4 ]] || fail "$(<"$BATS_TEST_TMPDIR/kept")"
}

# stuck: a server with a session that is in the kernel and does not come back.
stuck() {
	serve --timeout 600s
	"$BATS_TEST_DIRNAME/vm/visitor.pl" "$HOST" "$PORT" 1 write >/dev/null 3>&- &
	visitor=$!
	wait_until 10 grep -q 'session 1 of .* begins' "$log"
	sleep 0.3
	kill -TERM "$server"
	wait_until 5 grep -q 'told to stop, 1 session to end' "$log"
}

# status_of_server STATUS
status_of_server() {
	local rc=0
	wait_until 10 gone "$server" || return 1
	wait "$server" || rc=$?
	server=''
	((rc == $1)) || fail "the server ended with status $rc" "$(<"$log")"
}

@test "a second signal ends the server at once, whichever it is" {
	local signal begin
	for signal in TERM INT; do
		FAKEHCA=real_clock=1,stuck_reg_mr=1 stuck
		sleep 0.5
		serving || fail "it did not wait"
		begin=$SECONDS
		kill -"$signal" "$server"
		status_of_server $((128 + $(kill -l "$signal")))
		((SECONDS - begin < 3)) || fail "took $((SECONDS - begin)) s"
		! grep 'did not end' "$log" || fail "no signal ended it"
		wait "$visitor" || true
		visitor=''
	done
}

# On the virtual clock of the double, of which 30 s are 150 looks, 10 ms each. It tells that a session
# was left, by its status; a real device has the kernel for that.
@test "a session that does not end is waited for as long as the log says, and left to the kernel" {
	local begin
	FAKEHCA=real_clock=0,clock_read_ns=200000000,stuck_reg_mr=1 stuck
	begin=${EPOCHREALTIME/.}
	status_of_server 70
	echo "$((${EPOCHREALTIME/.} - begin)) us"
	((${EPOCHREALTIME/.} - begin > 1000000)) || fail "it did not wait"
	says 'told to stop, 1 session to end' '1 session did not end within 30 s: left to the kernel' \
		'^fakehca: left behind: '
}
