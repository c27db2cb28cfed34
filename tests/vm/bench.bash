# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the tests of the program share: run it, judge its streams, read its rows, keep a server in
# the background. Processes are dear on an emulated CPU, so little is forked here.
#
# Of what is run last: $status, $out and $err (the streams), and the files that they come from.

RXFER_BENCH=${RXFER_BENCH:-$PWD/rxfer-bench}
DEVICE=${RXFER_DEV:-rxe0}
HOST=${RXFER_TEST_HOST:-10.77.0.1}
PORT=18515
: "${BATS_TEST_TMPDIR:=/tmp}"
out_file=$BATS_TEST_TMPDIR/out err_file=$BATS_TEST_TMPDIR/err
server=''

[[ ${RXFER_DEV-} != siw* ]] || ulimit -l unlimited # siw counts what root pins, too

# bench ARG...: the program; status 124: it hung ($LIMIT seconds, 60 if not set).
bench() {
	with '' "$@"
}

# with COMMAND ARG...: the program, as the last words of COMMAND (a text, split at blanks). Runs are in
# direct mode, which most tests are about, where the words do not say which.
#
# A whole suite over iWARP is about the bytes: what the transport's rules refuse there has tests of its own,
# and so has a fault of siw's that inline data avoid (BUGS in the manual).
with() {
	local before=()
	read -ra before <<<"$1"
	shift
	case "$*" in
	*--mode* | *--profile* | *--help*) ;;
	loopback* | client*) set -- "$1" --mode direct "${@:2}" ;;
	esac
	if [[ ${RXFER_DEV-} == siw* && $1 == @(loopback|client) ]]; then
		[[ " $* " != *' --mode rpc '* || " $* " == *' --inline '* ]] || set -- "$1" --inline 32 "${@:2}"
		[[ " $* " == *' --unsafe-global-sink '* ]] || set -- "$1" --unsafe-global-sink "${@:2}"
	fi
	status=0
	timeout -k 2 "${LIMIT:-60}" "${before[@]}" "$RXFER_BENCH" "$@" >"$out_file" 2>"$err_file" \
		</dev/null 3>&- || status=$?
	out=$(<"$out_file") err=$(<"$err_file")
}

# loop N ARG...: runs, both ends in one process, that must end well and leave N ok rows in $out_file.
loop() {
	local rows=$1
	shift
	bench loopback -d "$DEVICE" --format csv "$@"
	ended 0 && rows "$out_file" "$rows" 'f("status") == "ok"'
}

# every: the strategies that need no mlx5, for an option. strategies: how many they are.
every() {
	"${RXFER_BENCH/%-both/-fake}" loopback --help | tr -s '\n ' ' ' |
		sed -n 's/.* --strategy [^[]*\[\([^]]*\), all;.*/\1/; T; s/ //g; s/,frwr-umr//; p'
}

strategies() {
	every | tr , ' ' | wc -w
}

fail() {
	printf '%s\n' "$@" "--- status: ${status-}" "--- stdout: ${out-}" "--- stderr: ${err-}" >&2
	return 1
}

# ended STATUS: with this status and nothing on stderr.
ended() {
	[[ $status == "$1" && -z $err ]] || fail "not ended with status $1 and in silence"
}

# refused STATUS PATTERN...: with this status, nothing on stdout, and the one line on stderr.
refused() {
	complained "$@" || return 1
	[[ -z $out ]] || fail "something on stdout"
}

# complained STATUS PATTERN...: with this status, and one line on stderr that matches every PATTERN
# (an extended regular expression).
complained() {
	local pattern
	[[ $status == "$1" ]] || fail "not ended with status $1" || return 1
	one_line "$err" || return 1
	shift
	for pattern; do
		[[ $err =~ $pattern ]] || fail "the complaint does not say: $pattern" || return 1
	done
}

one_line() {
	[[ $1 == 'rxfer-bench: '?* && $1 != *$'\n'* ]] || fail "not one line of complaint"
}

# least_files N ARG...: $files is the least limit of open files, from N on, with which loopback runs;
# below it, each complaint names that limit, once.
least_files() {
	files=$1
	shift
	while true; do
		with "prlimit --nofile=$files" loopback -d "$DEVICE" --format csv "$@"
		[[ $status == 1 ]] || break
		complained 1 'ulimit -n' || return 1
		[[ $err != *'ulimit -n'*'ulimit -n'* ]] || fail "said twice" || return 1
		((++files < 64)) || fail "64 files are not enough" || return 1
	done
	ended 0
}

# ---- rows ----

# rows FILE N CONDITION: a CSV of N rows, for each of which the awk CONDITION holds; f("name") is a
# field's value, near(a, b) compares what has four digits behind the point.
rows() {
	awk -F, -v "wanted=$2" '
	function f(name) {
		if (!(name in column)) {
			print "no column is called " name
			bad = 1
		}
		return $column[name]
	}
	function near(a, b) { return a - b < 0.000051 && b - a < 0.000051 }
	function floor(x) { return int(x) }
	NR == 1 {
		for (i = 1; i <= NF; i++)
			column[$i] = i
		fields = NF
		next
	}
	{ n++ }
	NF != fields {
		print "row " n " has " NF " fields, the header " fields
		bad = 1
	}
	!('"$3"') {
		print "row " n " is wrong: " $0
		bad = 1
	}
	END {
		if (n != wanted) {
			print n + 0 " rows instead of " wanted
			bad = 1
		}
		if (bad)
			print "the condition: '"${3//\"/\\\"}"'"
		exit bad
	}' "$1" >&2
}

# ---- a server in the background ----

# listening PORT: somebody is. Asks the kernel: a connection would be a client's.
listening() {
	local port
	printf -v port ':%04X' "$1"
	awk -v "port=$port\$" '$2 ~ port && $4 == "0A" { found = 1 } END { exit !found }' \
		/proc/net/tcp /proc/net/tcp6
}

# wait_until SECONDS COMMAND...: until it succeeds.
wait_until() {
	local end=$((SECONDS + $1 + 1))
	shift
	until "$@"; do
		((SECONDS < end)) || fail "this did not come true in time: $*" || return 1
		sleep 0.1
	done
}

serve() {
	"$RXFER_BENCH" server -d "$DEVICE" -p "$PORT" "$@" >"$BATS_TEST_TMPDIR/server.out" \
		2>"$BATS_TEST_TMPDIR/server.err" </dev/null 3>&- &
	server=$!
	wait_until 20 listening "$PORT"
}

serving() {
	kill -0 "$server"
}

client() {
	bench client -d "$DEVICE" -p "$PORT" "$@" "$HOST"
}

# server_ends [SIGNAL]: SIGTERM, if not another, and it ends with status 0 in time, having said nothing
# on stdout.
server_ends() {
	local rc=0
	kill -"${1-TERM}" "$server"
	wait_until 10 gone "$server" || return 1
	wait "$server" || rc=$?
	server=''
	[[ $rc == 0 ]] || fail "the server ended with status $rc" || return 1
	[[ ! -s $BATS_TEST_TMPDIR/server.out ]] || fail "the server wrote to stdout"
}

# Zombies count as gone: we have not waited for it yet.
gone() {
	local stat
	stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
	[[ $stat == *') Z '* ]]
}

# What RDMA objects there are on the device.
resources() {
	rdma resource show | awk -v "dev=$DEVICE:" '$2 == dev'
}

same_resources() {
	[[ $(resources) == "$1" ]]
}

# traffic N: N more packets were sent than at the last `traffic mark`.
packets=/sys/class/infiniband/$DEVICE/ports/1/hw_counters/sent_pkts
traffic() {
	if [[ $1 == mark ]]; then
		packets_then=$(<"$packets")
	else
		(($(<"$packets") >= packets_then + $1))
	fi
}

# stand_in PERL: at $PORT somebody who is no rxfer-bench, but PERL, with the connection in $c.
stand_in() {
	perl -MIO::Socket::INET -e '
		my $l = IO::Socket::INET->new(LocalPort => shift, Listen => 5, ReuseAddr => 1) or die;
		while (my $c = $l->accept) { eval shift @ARGV; die $@ if $@; close $c; exit }
	' "$PORT" "$1" </dev/null >/dev/null 2>"$BATS_TEST_TMPDIR/stand_in.err" 3>&- &
	server=$!
	wait_until 20 listening "$PORT"
}

end_server() {
	[[ -n $server ]] || return 0
	kill -KILL "$server" 2>/dev/null || true
	wait "$server" 2>/dev/null || true
	server=''
}
