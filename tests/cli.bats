#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The command line, as far as it needs no RDMA device, or one of the test double (tests/fakehca) will
# do: help, usage errors, bad input and surroundings, exit statuses.

# What bench.bash sets and reads; perl and awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016,SC2028,SC2030,SC2031
bats_require_minimum_version 1.5.0
load vm/bench

LIMIT=10

teardown() {
	end_server
}

# Nothing of this machine: a device may be there, the options are looked at first.
usage_error() {
	refused 2 "$@"
}

@test "--version: a name and a version" {
	bench --version
	ended 0
	[[ $out =~ ^rxfer-bench\ [0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "no version"
	local version=$out
	bench -V
	ended 0
	[[ $out == "$version" ]]
}

@test "help: every command, on stdout" {
	local word
	for word in help --help -h; do
		bench "$word"
		ended 0
		[[ $out == *server*client*loopback*devices*probe*fence*--version* ]] || fail "a command is missing"
	done
}

@test "help COMMAND and COMMAND --help: its options, the same" {
	local command
	for command in server client loopback devices probe fence; do
		bench help "$command"
		ended 0
		[[ $out == *"usage: rxfer-bench $command"*--device* ]] || fail "an option is missing"
		local first=$out
		bench "$command" --help
		ended 0
		[[ $out == "$first" ]] || fail "two different helps"
	done
	bench help client
	[[ $out == *--port*--op*--size*--frags*--frag-gap*--depth*--sq-depth*--qps*--iters*--duration* ]]
	[[ $out == *--signal*--strategy*--warmup*--verify*--poll*--timeout*--format*--output* ]]
	bench help server
	[[ $out != *--size* ]] || fail "the server takes no --size"
}

@test "help is not to be asked for what there is not" {
	bench help clinet
	usage_error 'clinet' 'did you mean client'
}

@test "a full device as stdout: help and version say so" {
	local words
	for words in help 'help client' --version; do
		read -ra words <<<"$words"
		status=0
		"$RXFER_BENCH" "${words[@]}" >/dev/full 2>"$err_file" || status=$?
		[[ $status == 1 ]] || fail "status $status for: ${words[*]}"
	done
}

@test "no command: the usage, on stderr" {
	bench
	[[ $status == 2 && -z $out && $err == *usage:* ]] || fail "no usage"
}

@test "an unknown command: the nearest" {
	bench sever
	usage_error 'sever' 'did you mean server'
	bench --verison
	usage_error 'did you mean --version'
	bench frobnicate
	usage_error 'frobnicate' 'help'
	bench ''
	usage_error 'help'
}

@test "an unknown option: the nearest" {
	bench loopback --sise 64
	usage_error '--sise' 'did you mean --size'
	bench client host --stratgy global
	usage_error '--stratgy' 'did you mean --strategy'
	bench server --prot 1
	usage_error '--prot' 'did you mean --port'
	bench loopback -Z
	usage_error '-Z' 'help'
	bench loopback -depth 4
	usage_error '-depth' 'did you mean --depth'
}

@test "an option of another command" {
	bench server --size 64
	usage_error '--size' 'client' 'server'
	bench loopback --port 1
	usage_error '--port' 'client' 'server'
}

@test "perftest's letters for values of options: the last holds, and what is wrong names both" {
	bench loopback -Q 0
	usage_error '-Q 0: --signal every:0: K is 0'
	bench loopback -e -Q 64 --sq-depth 8
	usage_error 'contradiction: --signal every:64, --sq-depth 8'
	bench loopback -Q 64 --signal half -n 0
	usage_error 'contradiction: --iters 0'
	bench loopback -a --frags 3
	usage_error 'contradiction: --frags 3, --size 2'
	bench loopback -e1
	usage_error '-e takes no value'
	bench server -a
	usage_error '-a: --size belongs to client and loopback and fence'
}

@test "numbers that are none" {
	local value
	for value in x 4x 1.5 0x10 '' ' 4' 4k4 - -- 1e3 ∞ nan; do
		bench loopback -n "$value"
		usage_error '--iters'
		bench loopback --size "$value"
		usage_error '--size'
	done
	bench loopback --depth=-1
	usage_error '--depth' 'negative'
	bench loopback -D soon
	usage_error '--duration' 'soon'
	bench loopback --size 4k,,8k
	usage_error '--size' 'empty'
}

@test "sizes that are none: 0, 2^63, 2^64, more" {
	local value
	bench loopback --mode direct --size 0
	usage_error '--size 0' '--mode direct' 'take a larger size or --mode rpc'
	for value in 9223372036854775808 18446744073709551616 18446744073709551617 99999999999999999999999 8g 4096g 99999999999g; do
		bench loopback --size "$value"
		usage_error '--size' "$value" 'say'
	done
}

@test "numbers out of range" {
	local words
	for words in '-p 0' '-p 65536' '--depth 0' '--depth 65537' '--qps 0' '--frags 0' '--frags 1025' \
		'--timeout 0' '--timeout 99h' '--rnr-retry 8' '--sq-depth 99999999' '--warmup 18446744073709551616'; do
		read -ra words <<<"$words"
		bench client "${words[@]}" host
		usage_error 'say'
	done
}

@test "names that there are not" {
	bench loopback --strategy gobal
	usage_error 'gobal' 'did you mean global'
	bench loopback --op reed
	usage_error 'reed' 'did you mean read' 'write'
	bench loopback --signal halve
	usage_error 'halve' 'did you mean half'
	bench loopback --signal every
	usage_error 'every'
	bench loopback --signal every:0
	usage_error 'every:0: K is 0' 'take 1'
	bench loopback --signal half:3
	usage_error 'half:3' 'say just half'
	bench loopback --mode direct --signal inferred
	usage_error '--signal inferred, --mode direct' 'no replies to infer anything from'
	bench loopback --mode rpc --peer-signal inferred
	usage_error '--peer-signal inferred' 'no reply comes to the server'
	bench loopback --poll bussy
	usage_error 'did you mean busy'
	bench loopback --format cvs
	usage_error 'did you mean csv'
	bench loopback --output x.xls
	usage_error 'x.xls' '.csv' '.json'
}

@test "contradictions" {
	bench loopback --frags 100 --size 64
	usage_error '--frags 100' '--size 64'
	bench loopback -n 0
	usage_error '--iters 0, --duration 0: ' 'give one of them'
	bench loopback --signal every:64 --sq-depth 8
	usage_error '--signal every:64, --sq-depth 8: ' 'smaller K or a deeper queue'
	bench loopback --size 2g --depth 65536 --qps 16384
	usage_error '--size 2g, --frags 1, --frag-gap 4k, --depth 65536, --qps 16384: .*memory' 'make one smaller'
}

@test "the host" {
	bench client
	usage_error 'HOST'
	bench client a b
	usage_error 'b'
	bench client ''
	usage_error 'HOST'
	bench client 'a b'
	usage_error 'HOST'
	bench loopback host
	usage_error 'host'
	bench devices host
	usage_error 'host'
}

@test "fence: a host at most, sizes of a byte or more, and no option of a run" {
	bench fence a b
	usage_error 'one HOST too many' 'b'
	bench fence ''
	usage_error 'HOST is empty' 'rxfer-bench fence HOST'
	bench fence --depth 4
	usage_error '--depth belongs to client and loopback, not to fence'
	bench fence --size 4k,0
	usage_error '--size 0' 'take 1 or more'
	bench fence --format json
	usage_error '--format json is not for fence' 'table or csv'
	bench fence --revoke never
	usage_error '--revoke' 'never'
}

@test "probe: a host at most, and no option of a run" {
	bench probe a b
	usage_error 'one HOST too many' 'b'
	bench probe ''
	usage_error 'HOST is empty' 'rxfer-bench probe HOST'
	bench probe --size 4k
	usage_error '--size belongs to client and loopback and fence, not to probe'
	bench probe --format xml
	usage_error 'xml' 'table, csv'
	bench probe --format perftest
	usage_error 'perftest is for runs' 'table, csv or json'
	bench probe -o x.xls
	usage_error 'x.xls' '.csv'
}

@test "a value that is missing" {
	bench loopback --size
	usage_error '--size' 'missing'
	bench loopback --size --verify
	usage_error '--size' 'missing'
	bench loopback --verify=yes
	usage_error '--verify' 'no value'
}

@test "control characters are not echoed, long words are cut" {
	local long
	printf -v long '%05000d' 0
	bench loopback --size $'4\e[31mk\n5'
	usage_error '--size'
	[[ $err != *$'\e'* ]] || fail "an escape character on stderr"
	bench loopback --size "${long}x"
	usage_error '--size'
	((${#err} < 600)) || fail "${#err} characters of complaint"
	bench loopback -d "$long"
	usage_error '--device'
	bench "$long"
	usage_error 'help'
}

@test "no device: every command says so, and how to get one" {
	local words device
	for device in /sys/class/infiniband/*; do
		[[ ! -e $device ]] || skip "there is ${device##*/}"
	done
	for words in loopback server devices probe fence 'client localhost' 'probe localhost' 'fence localhost' 'loopback -d rxe0'; do
		read -ra words <<<"$words"
		bench "${words[@]}" -d rxe0
		refused 1 'no RDMA device' 'rxe-up'
		bench "${words[@]}"
		refused 1 'no RDMA device' 'rxe-up'
	done
}

@test "where nothing runs, no output is made" {
	bench loopback -d no_such -o "$BATS_TEST_TMPDIR/x.csv" -o "$BATS_TEST_TMPDIR/x.json"
	refused 1
	bench probe -d no_such -o "$BATS_TEST_TMPDIR/x.csv" -o "$BATS_TEST_TMPDIR/x.json"
	refused 1
	[[ ! -e $BATS_TEST_TMPDIR/x.csv && ! -e $BATS_TEST_TMPDIR/x.json ]]
	bench loopback --size 0 -o "$BATS_TEST_TMPDIR/x.csv"
	usage_error '--size'
	[[ ! -e $BATS_TEST_TMPDIR/x.csv ]]
}

# ---- with the double for a device; in tests/vm the same is asked of real ones ----

on_double() {
	RXFER_BENCH=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
	DEVICE=fake0 HOST=127.0.0.1
	PORT=$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1)->sockport')
}

quick() {
	bench loopback -d "$DEVICE" --format csv -s 64 -n 10 "$@"
}

# refuses PATTERN... of a client, whatever stand-in is at the port.
refuses() {
	client --timeout 2s
	refused 1 "$@"
	end_server
}

@test "a device that is not there: the nearest name" {
	on_double
	bench loopback -d fake00
	refused 1 'fake00' 'did you mean fake0'
	bench server -d fake
	refused 1 'did you mean fake0'
	bench client -d mlx5_0 "$HOST"
	refused 1 'mlx5_0' 'fake0'
	bench devices -d fake1
	refused 1 'fake1' 'did you mean fake0'
}

@test "a device that is down" {
	local command
	on_double
	export FAKEHCA=down=1
	for command in loopback server "client $HOST"; do
		# shellcheck disable=SC2086 # two words
		bench $command -d fake0
		refused 1 'fake0' 'not active' 'bring its link up'
	done
	bench loopback
	refused 1 'of 1 RDMA device none is active' 'rxfer-bench devices'
}

@test "a port that is in use" {
	on_double
	serve
	bench server -d "$DEVICE" -p "$PORT"
	refused 1 "$PORT" 'in use' '--port'
	serving
	server_ends
}

@test "a server outlives those who are no client of it" {
	on_double
	serve
	perl -MIO::Socket::INET -e '
		for my $words ("GET / HTTP/1.0\r\n\r\n", pack("NnnN", 0x52584642, 1, 1, 1 << 30),
			pack("NnnN", 0x52584642, 2, 1, 2) . "{}", pack("NnnN", 0x52584642, 1, 2, 2) . "[]", "x", "") {
			my $c = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $ARGV[0]) or die;
			print $c $words;
			$c->flush;
			shutdown $c, 1;
			1 while sysread $c, my $answer, 4096;
		}' "$PORT"
	serving
	server_ends
	[[ $(<"$BATS_TEST_TMPDIR/server.err") == *HTTP*1073741824*'version 2'* ]] || fail "$(<"$BATS_TEST_TMPDIR/server.err")"
}

@test "no server there" {
	on_double
	refuses "$HOST" "$PORT" 'refused' 'server'
}

@test "a host that nobody knows: the nearest that this machine knows" {
	on_double
	bench client -d "$DEVICE" localhots
	refused 1 'localhots' 'did you mean localhost'
	bench client -d "$DEVICE" no.such.host.invalid
	refused 1 'no.such.host.invalid' 'not known'
}

@test "somebody else at the port: HTTP, SMTP, silence, a door that shuts" {
	on_double
	stand_in 'while (<$c>) { last if /^\r?$/ } print $c "HTTP/1.1 400 Bad Request\r\n\r\n<html>"'
	refuses 'HTTP' '--port'
	stand_in 'print $c "220 mail.example ESMTP\r\n"; $c->flush; sysread $c, my $b, 4096'
	refuses 'does not speak rxfer-bench' '--port'
	stand_in 'sleep 60'
	refuses 'no answer' '--timeout'
	stand_in '1'
	refuses 'closed the control connection'
}

@test "a server of another version, or that sends nonsense" {
	on_double
	stand_in 'print $c pack("NnnN", 0x52584642, 2, 1, 6), "{}\r\n\r\n"; $c->flush; sleep 5'
	refuses 'version 2' 'we speak 1' 'same release'
	stand_in 'print $c pack("NnnN", 0x52584642, 1, 1, 1 << 30); $c->flush; sleep 5'
	refuses '1073741824'
	stand_in 'print $c pack("NnnN", 0x52584642, 1, 1, 7), "\0\xff{}\r\n\r"; $c->flush; sleep 5'
	refuses 'JSON'
	stand_in 'print $c pack("NnnN", 0x52584642, 1, 10, 21), qq({"reason":"\xc2\x9b31m no"}); $c->flush; sleep 5'
	refuses ': \?\?31m no$'
}

@test "more queue pairs than the device has: which limit, and how many would do, before any is made" {
	local limit what
	on_double
	export FAKEHCA_STATS=$BATS_TEST_TMPDIR/stats
	for limit in 'max_qp queue pair' 'max_cq completion queue'; do
		read -r limit what <<<"$limit"
		FAKEHCA=$limit=4 quick --qps 5
		complained 1 "--qps 5 is more than fake0 has \($limit 4\): each takes a $what; use --qps 4 or less\$"
		rows "$out_file" 1 'f("status") == "failed" && f("reason") ~ /--qps 4 or less/'
		grep -qx reg_mr=0 "$FAKEHCA_STATS"
		FAKEHCA=$limit=4 quick --qps 3
		complained 1 "$limit 4" '6 as both ends are on it; use --qps 2 or less$'
		grep -qx posts=0 "$FAKEHCA_STATS"
		FAKEHCA=$limit=4 quick --qps 2
		ended 0
		FAKEHCA=$limit=1 quick
		complained 1 "$limit 1" '2 as both ends are on it; take another device for one end$'
	done
}

@test "more queue pairs than the server's device has: the client is told" {
	on_double
	FAKEHCA=max_qp=4 serve
	client --qps 5 -n 10 -s 64 --format csv
	complained 1 '--qps 5 is more than fake0 has \(max_qp 4\)' 'use --qps 4 or less'
	rows "$out_file" 1 'f("status") == "failed" && f("reason") ~ /max_qp 4/'
	serving
	server_ends
	FAKEHCA=max_cq=4 serve
	client --qps 5 -n 10 -s 64 --format csv
	complained 1 '--qps 5 is more than fake0 has \(max_cq 4\)'
	server_ends
}

# What a device says it has, others may have taken.
@test "a queue pair or completion queue that is refused: the numbers, the likely limit, the remedy" {
	on_double
	FAKEHCA=fail_create_qp=5,fail_create_qp_with=12 quick --qps 4 --sq-depth 20
	complained 1 'queue pair on fake0 with 20 send entries' 'max_qp 1024' \
		'memory after 2 of them, so likely their number' '--qps 2 or less'
	FAKEHCA=fail_create_cq=5,fail_create_cq_with=22 quick --qps 4 --sq-depth 20
	complained 1 'ibv_create_cq of 21 entries' 'max_cq 65536' 'after 2 of them' '--qps 2 or less'
	FAKEHCA=fail_create_qp=1,fail_create_qp_with=12 quick --sq-depth 20
	complained 1 'it may be too large, or others have taken all' '--sq-depth'
	FAKEHCA=fail_create_qp=1,fail_create_qp_with=1 quick --sq-depth 20
	complained 1 'Operation not permitted$'
	FAKEHCA=max_cqe=8 quick --sq-depth 20
	complained 1 'max_cqe 8' '--sq-depth 7 or less'
	FAKEHCA=max_cqe=20 quick --op send
	complained 1 '32 RECVs' 'max_cqe 20' '--depth'
	FAKEHCA=sq_room=10 quick --signal every:20
	complained 1 'the send queue has 10, the most that the device takes' 'use every:10 or less$'
}

@test "the limit of open files: named, wherever it is met; and no queue pair needs one" {
	# A sanitizer's look for leaks needs files of its own.
	local -x ASAN_OPTIONS=detect_leaks=0
	on_double
	least_files 4 -s 64 -n 10 -o "$BATS_TEST_TMPDIR/x.csv"
	((files > 6)) || fail "$files open files were enough"
	with "prlimit --nofile=$files" loopback -d fake0 -s 64 -n 10 --format csv -o "$BATS_TEST_TMPDIR/x.csv" --qps 200
	ended 0
	with 'prlimit --nofile=4' client -d fake0 -p "$PORT" "$HOST"
	complained 1 'ulimit -n'
	with 'prlimit --nofile=4' server -d fake0 -p "$PORT"
	complained 1 'ulimit -n'
}

@test "a size above what one message can carry, a queue too short for one I/O" {
	on_double
	quick --op send -s 2g
	complained 1 '--size 2147483648' 'max_msg_sz 1073741824'
	rows "$out_file" 1 'f("status") == "failed"'
	quick --op write --strategy multi-wr --frags 4 --sq-depth 4
	complained 1 'takes 4' '--sq-depth 5'
	rows "$out_file" 1 'f("status") == "failed"'
}

# The double knows no limit: it is told to fail as the kernel does, and the limit is there to be named.
@test "the limit of locked memory: named, with the remedy" {
	local drop=''
	on_double
	[[ $(id -u) != 0 ]] || drop='setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock'
	ulimit -l 64
	FAKEHCA=fail_reg_mr=1,fail_reg_mr_with=12 with "$drop" loopback -d fake0 -s 1m -n 10 --format csv
	complained 1 'locked-memory limit' '64.0 KiB' 'ulimit -l'
	rows "$out_file" 1 'f("status") == "failed" && f("reason") ~ /locked-memory limit/'
}

@test "an output that cannot be written" {
	on_double
	quick -o /no/such/dir/x.csv
	refused 1 '/no/such/dir/x.csv' 'No such file' 'directory'
	mkdir "$BATS_TEST_TMPDIR/d.csv"
	quick -o "$BATS_TEST_TMPDIR/d.csv"
	refused 1 'd.csv' 'directory'
	quick -o "$BATS_TEST_TMPDIR/a.csv" -o "$BATS_TEST_TMPDIR/b.json" -o /no/such/dir/x.csv
	refused 1 '/no/such/dir/x.csv'
	[[ -z $(find "$BATS_TEST_TMPDIR" -name '[ab].*' -size +0) ]] || fail "half-written"
}

@test "a full disk" {
	local format
	on_double
	for format in csv json table; do
		status=0
		"$RXFER_BENCH" loopback --mode direct -d "$DEVICE" -s 64 -n 10 --format "$format" >/dev/full 2>"$err_file" || status=$?
		out='' err=$(<"$err_file")
		refused 1 'stdout' 'No space left' 'free some space'
	done
	for format in csv json txt; do
		ln -s /dev/full "$BATS_TEST_TMPDIR/full.$format"
		quick -o "$BATS_TEST_TMPDIR/full.$format"
		complained 1 "full.$format" 'No space left' 'free some space'
	done
}

@test "an output with another header, or a last line that is not whole" {
	on_double
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
