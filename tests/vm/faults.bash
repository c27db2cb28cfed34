# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What tests of faults share: a client in the background, what is left of it, and a server that must
# be as before.

# What bench.bash sets and reads.
# shellcheck disable=SC2154,SC2034

# background ARG...: the program, until it has sent something; in direct mode, if the words do not say it.
background() {
	[[ $* == *--mode* ]] || set -- "$1" --mode direct "${@:2}"
	traffic mark
	timeout 120 "$RXFER_BENCH" "$@" >"$out_file" 2>"$err_file" </dev/null 3>&- &
	client=$!
	wait_until 20 traffic 1000 || fail "no traffic: $(<"$err_file")"
}

# A client in a run too long to end.
long_client() {
	background client -d "$DEVICE" -p "$PORT" --format csv -s 64 -n 100000000 "$@" "$HOST"
}

# client_ends SECONDS: ends by itself in that time; like bench, but in the background.
client_ends() {
	status=0
	wait_until "$1" gone "$client" || return 1
	wait "$client" || status=$?
	out=$(<"$out_file") err=$(<"$err_file") client=''
}

end_client() {
	[[ -n ${client-} ]] || return 0
	kill -KILL "$(bench_of "$client")" "$client" 2>/dev/null || true
	client=''
}

# The program itself: `timeout` passes no SIGKILL or SIGSTOP on.
bench_of() {
	local child
	read -r child _ <"/proc/$1/task/$1/children"
	echo "$child"
}

# failed PATTERN...: the client ended with one line in these words, and a row that has no figures but
# the same reason.
failed() {
	complained 1 'run 1 of 1' "$@" &&
		rows "$out_file" 1 'f("status") == "failed" && f("reason") != "" && f("iterations") == ""'
}

# partial: the client ended as by SIGINT, in silence, and what it measured is whole, and marked.
partial() {
	[[ $status == 130 ]] || fail "not status 130" || return 1
	[[ -z $err ]] || fail "something on stderr" || return 1
	rows "$out_file" 1 'f("status") == "ok" && f("partial") == "yes" && f("bw_avg_MiBps") > 0 && f("iterations") > 0 && f("iterations") < 100000000'
}

# A server that waits for clients has the device open, and no more.
holds_nothing() {
	[[ $(resources) == *' cq 1 qp 1 cm_id 0 mr 0 '* ]]
}

still_serves() {
	client --format csv -s 64 -n 50 --verify
	ended 0
	rows "$out_file" 1 'f("status") == "ok" && f("iterations") == 50'
}

# The server is as it was before, ends when it is told to, and nothing is left: objects of the device,
# RDMA ports, the TCP port.
serves_on() {
	still_serves || return 1
	wait_until 10 holds_nothing || fail "the server holds: $(resources)" || return 1
	server_ends || return 1
	nothing_left
}

nothing_left() {
	wait_until 5 same_resources "$before" || fail "left over: $(resources), before: $before" || return 1
	! listening "$PORT" || fail "port $PORT is in use"
}

# server_said PATTERN
server_said() {
	grep -Eq "$1" "$BATS_TEST_TMPDIR/server.err" || fail "the server does not say: $1" \
		"$(<"$BATS_TEST_TMPDIR/server.err")"
}

# stranger PERL: somebody at the server's port, with the connection in $s, who must be turned away:
# the server closes within 8 s.
stranger() {
	perl -MIO::Socket::INET -MTime::HiRes=sleep -e 'my $s = IO::Socket::INET->new("127.0.0.1:" . shift) or die;
		$SIG{PIPE} = "IGNORE"; $s->autoflush(1); alarm 8; eval shift; die $@ if $@; 1 while sysread $s, my $b, 4096' \
		"$PORT" "$1" || fail "not turned away: $1"
}

# between PERL: at port $PORT + 1 somebody who passes on what one client and the server say, and does
# PERL with each piece ($_) before.
between() {
	# shellcheck disable=SC2016 # perl
	perl -MIO::Socket::INET -MIO::Select -e '
		my ($port, $change) = @ARGV;
		my $l = IO::Socket::INET->new(LocalPort => $port + 1, Listen => 1, ReuseAddr => 1) or die;
		my $c = $l->accept; my $s = IO::Socket::INET->new("127.0.0.1:$port") or die;
		my $both = IO::Select->new($c, $s);
		while (1) { for my $from ($both->can_read) {
			my $to = $from == $c ? $s : $c;
			sysread $from, local $_, 300000 or exit;
			eval $change; die $@ if $@;
			syswrite $to, $_ or exit;
		} }' "$PORT" "$1" </dev/null >"$BATS_TEST_TMPDIR/between.out" 2>&1 3>&- &
	wait_until 20 listening $((PORT + 1))
}

# rxe's own management QP does not survive a message that it had to send over a link that was down:
# afterwards nothing connects any more. Where that was so, the device is made anew, and that only when
# nobody has it open: till then the kernel waits, and nothing can stop that.
renew_device() {
	[[ -e $BATS_TEST_TMPDIR/broken ]] || return 0
	rm "$BATS_TEST_TMPDIR/broken"
	rdma link del "$DEVICE" 2>/dev/null || true
	ip link set "v$DEVICE" up
	rdma link add "$DEVICE" type rxe netdev "v$DEVICE"
	wait_until 10 reachable
	before=$(resources) # it has another number
}

reachable() {
	"$RXFER_BENCH" devices | grep -q "active.*$HOST"
}
