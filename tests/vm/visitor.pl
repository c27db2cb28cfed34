#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Clients of every kind but the real one, one after the other, at a server's control port. For each
# a line: its kind, and what became of it: "ok", "closed", or the server's reason.
#
# Usage: visitor.pl ADDRESS PORT TIMES KIND...
use strict;
use warnings;
use IO::Socket::INET;
use Time::HiRes 'sleep';

my ($address, $port, $times, @kinds) = @ARGV;
my ($HELLO, $CONFIG, $READY, $ALIVE, $FAIL, $BYE) = (1, 2, 3, 9, 10, 11);
my $hello = '{"version":"0","host":"visitor","boot":""}';
my ($server, @kept);
$SIG{PIPE} = 'IGNORE';
alarm 120;

sub head { pack 'NnnN', 0x52584642, 1, @_ }

sub say_to { $server->syswrite(head($_[0], length $_[1]) . $_[1]) }

# The reason of a FAIL, the type of another message, "" where the server has closed.
sub heard {
	my ($head, $body) = ('', '');
	while (length $head < 12) { sysread $server, $head, 12 - length $head, length $head or return '' }
	my (undef, undef, $type, $n) = unpack 'NnnN', $head;
	while (length $body < $n) { sysread $server, $body, $n - length $body, length $body or return '' }
	return $type == $FAIL && $body =~ /"reason": *"(.*?)"\}/ ? $1 : $type;
}

# The rest, up to the end of the connection: its last reason, or "closed".
sub to_the_end {
	my $last = 'closed';
	while ((my $got = heard()) ne '') { $last = $got unless $got =~ /^\d+$/ }
	return $last;
}

# Up to the server's answer @want to @type; anything else ends the visit.
sub ask {
	my ($type, $body, $want) = @_;
	say_to($type, $body);
	my $got = heard();
	die(($got eq '' ? 'closed' : $got) . "\n") if $got ne $want;
}

sub config { '{"options":{"mode":"direct"' . ($_[0] && ",$_[0]") . '},"token":"' . '0' x 32 . '"}' }

sub drip {
	for my $byte (split //, $_[0]) { $server->syswrite($byte) or last; sleep 0.05 }
	return to_the_end();
}

my %visit = (
	polite  => sub { ask($HELLO, $hello, $HELLO); say_to($BYE, '{}'); to_the_end() eq 'closed' ? 'ok' : 'told' },
	nobody  => sub { 'ok' },
	half    => sub { $server->syswrite(substr head($HELLO, 6), 0, 7); 'ok' },
	leaver  => sub { ask($HELLO, $hello, $HELLO); 'ok' },
	wrong   => sub { ask($HELLO, $hello, $HELLO); say_to($CONFIG, config('"size":"-1"')); to_the_end() },
	refuser => sub { ask($HELLO, $hello, $HELLO); say_to($FAIL, '{"reason":"no \u001b[2J"}'); to_the_end() },
	# Promises to connect, and leaves instead.
	write   => sub { ask($HELLO, $hello, $HELLO); ask($CONFIG, config('"op":"write"'), $READY); 'ok' },
	send    => sub { ask($HELLO, $hello, $HELLO); ask($CONFIG, config('"op":"send","qps":"3"'), $READY); 'ok' },
	# The same, but stays until this process ends.
	stays   => sub { ask($HELLO, $hello, $HELLO); push @kept, $server; 'ok' },
	holds   => sub { ask($HELLO, $hello, $HELLO); ask($CONFIG, config('"op":"write","timeout":"1m"'), $READY); push @kept, $server; 'ok' },
	idle    => sub { to_the_end() },
	idles   => sub { ask($HELLO, $hello, $HELLO); to_the_end() },
	alive   => sub {
		ask($HELLO, $hello, $HELLO);
		for (1 .. 200) { say_to($ALIVE, '{}') or last; sleep 0.02 }
		to_the_end();
	},
	drip    => sub { drip(head($HELLO, 200) . $hello . ' ' x 160) },
	drips   => sub { ask($HELLO, $hello, $HELLO); drip(head($CONFIG, 200) . config('') . ' ' x 160) },
	http    => sub { $server->syswrite("GET / HTTP/1.1\r\nHost: x\r\n\r\n"); to_the_end() },
	tls     => sub { $server->syswrite("\x16\x03\x01\x02\x00" . "\1" x 100); to_the_end() },
	huge    => sub { $server->syswrite(head($HELLO, 1 << 31)); to_the_end() },
	zeros   => sub { $server->syswrite("\0" x 5000); to_the_end() },
	noise   => sub { $server->syswrite(join '', map { chr rand 256 } 1 .. 5000); to_the_end() },
	list    => sub { say_to($HELLO, '[1]'); to_the_end() },
	early   => sub { say_to($CONFIG, '{}'); to_the_end() },
	fields  => sub { say_to($HELLO, '{"version":"0","host":[],"boot":-1}'); to_the_end() },
	# Cut short: in the header, and behind it.
	stub    => sub { $server->syswrite('RXF'); 'ok' },
	cut     => sub { $server->syswrite(head($HELLO, 100) . '{"version":'); 'ok' },
	stuck   => sub { $server->syswrite(head($HELLO, 100) . '{"version":'); to_the_end() },
	rude    => sub { say_to($HELLO, '{"version":"0","host":"\u001b[2J\n2026 forged","boot":""}'); heard(); 'ok' },
);

$| = 1;
for my $i (0 .. $times - 1) {
	my $kind = $kinds[$i % @kinds];
	$server = IO::Socket::INET->new(PeerAddr => $address, PeerPort => $port) or die "no server: $!\n";
	my $end = eval { $visit{$kind}->() };
	chomp($end = $@) unless defined $end;
	print "$kind: $end\n";
	close $server unless @kept && $kept[-1] == $server;
}
# Those that stay: until the server, or who started this, has had enough.
for (@kept) { $server = $_; print 'kept: ' . to_the_end() . "\n" }
