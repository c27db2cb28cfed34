# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the tests of RPC mode on the test double share, besides vm/bench.bash.

# rpc N ARG...: runs that must leave N ok rows.
rpc() {
	local rows=$1
	shift
	loop "$rows" --mode rpc "$@"
}

# of_all N ARG...: the same of the strategies that work here, of which frwr has no key for data in a request: such a row is
# skipped.
of_all() {
	bench loopback -d fake0 --format csv --mode rpc --strategy "$(every)" "${@:2}"
	ended 0 && rows "$out_file" "$1" 'f("strategy") f("op") == "frwrsend" ? f("status") == "skipped" && \
		f("reason") ~ /^frwr has no key for local use: / : f("status") == "ok"'
}

# that CONDITION: holds for each row of the latest runs.
that() {
	rows "$out_file" "$(($(grep -c '' "$out_file") - 1))" "$1"
}

# of_double NAME: counted by it.
of_double() {
	sed -n "s/^$1=//p" "$FAKEHCA_STATS"
}

# counted NAME VALUE: by the double.
counted() {
	local is
	is=$(of_double "$1")
	[[ $is == "$2" ]] || fail "the double counted $1=$is, not $2"
}
