# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the rules of src/sig.c make of a run, worked out WR by WR and held against its row. For I/Os of
# one WR (N is 1, each WR ends its I/O and its post) and without a warm-up:
#
#	wanted	all, io: each. every:K: when K were counted since it last wanted one. half: when half of
#		the queue, rounded down, is silent
#	(b)	half of the slots, rounded up, are in the silent tail
#	(c)	fewer than N entries are free, one of them being the drain's
#
# (c) depends on how fast completions come, and so do the counts then; not where it never holds for a
# WR that would else be silent, whatever came when:
#
#	2 * depth + 1 entries or more	depth of them are posted at most, N are always free
#	half, 2 * h + 1 entries		posted are whole batches of h and the tail: with all 2 * h of
#					them in use, the tail is one that half wanted signalled
#	every:K, K + 1 entries		K can be posted: that many only if the last is the K-th, or if
#					(b) wants a signal there
#	2 entries			it holds for each WR
#
# rows_by_rules FILE N: N ok rows, each as the rules say.

# What bench.bash sets.
# shellcheck disable=SC2154

rows_by_rules() {
	awk -F, -v wanted="$2" '
	function f(name) {
		if (!(name in column))
			wrong("no column is called " name)
		return $column[name]
	}
	function wrong(why) {
		print why
		bad = 1
	}
	# Of one QP: cqe and forced.
	function by_rules(signal, ios, slots, entries,    k, i, silent, counted, want, must) {
		cqe = forced = silent = counted = 0
		k = signal ~ /^every:/ ? substr(signal, 7) + 0 : 0
		for (i = 0; i < ios; i++) {
			silent++
			counted++
			want = signal == "all" || signal == "io" || (k && counted >= k) ||
				(signal == "half" && silent >= int(entries / 2))
			must = silent >= slots - int(slots / 2) || entries == 2
			if (want)
				counted = 0
			if (want || must) {
				cqe++
				forced += !want
				silent = 0
			}
		}
	}
	function expect(name, value) {
		if (f(name) "" != value "")
			wrong("row " n ": " name " is " f(name) ", not " value ": --signal " f("signal") \
				" --depth " f("depth") " --qps " f("qps") " --sq-depth " f("sq_depth"))
	}
	# What is given, and what the default is where it is not.
	function entries_wanted(signal, slots,    k) {
		k = signal ~ /^every:/ ? substr(signal, 7) + 0 : 0
		return 2 * slots + 1 > k ? 2 * slots + 1 : k + 1
	}
	NR == 1 {
		for (i = 1; i <= NF; i++)
			column[$i] = i
		next
	}
	{
		n++
		ios = f("iterations") / f("qps")
		by_rules(f("signal"), ios, f("depth"), f("sq_depth"))
		expect("status", "ok")
		expect("sq_wanted", entries_wanted(f("signal"), f("depth")))
		expect("sqe_per_io", "1.0000")
		expect("posts_per_io", "1.0000")
		expect("cqe_per_io", sprintf("%.4f", cqe / ios))
		expect("forced_signals", forced * f("qps"))
		if (f("sq_peak") > f("depth") || f("sq_peak") > f("sq_depth") - 1 || f("sq_peak") < 1)
			wrong("row " n ": sq_peak is " f("sq_peak"))
		if (f("iterations") >= 10000)
			wrong("row " n ": too many I/Os for four digits to tell one completion more")
	}
	END {
		if (n != wanted)
			wrong(n + 0 " rows instead of " wanted)
		exit bad
	}' "$1" >&2
}

# by_rules N ARG...: runs that leave N rows, each as the rules say.
by_rules() {
	local rows=$1
	shift
	loop "$rows" --warmup 0 -s 64 "$@" && rows_by_rules "$out_file" "$rows"
}

# As the default would be, and where that is something else, the least that makes no difference.
matrix() {
	by_rules 60 --signal all,io,every:1,every:7,every:64,half --depth 1,2,3,12,128 --qps 1,3 "$@" &&
		by_rules 60 --signal all,io,every:1,every:7,every:64,half --depth 1,2,3,12,128 --qps 1,3 \
			--sq-depth 257 "$@"
}

small_queues() {
	by_rules 32 --signal all,io,every:1,half --depth 1,2,12,128 --qps 1,3 --sq-depth 2 "$@" &&
		by_rules 8 --signal every:2 --depth 1,2,12,128 --qps 1,3 --sq-depth 2 "$@" &&
		by_rules 48 --signal all,io,half --depth 1,2,12,128 --qps 1,3 --sq-depth 9,33 "$@" &&
		by_rules 8 --signal every:7 --depth 1,2,12,128 --qps 1,3 --sq-depth 8 "$@" &&
		by_rules 8 --signal every:64 --depth 1,2,12,128 --qps 1,3 --sq-depth 65 "$@"
}

# refused_exactly SIGNAL ENTRIES ENTRIES_OF_AN_IO ARG...: by the command line where K is larger than the
# queue, by the run where that cannot hold an I/O and the drain, and by nothing else.
refused_exactly() {
	local signal=$1 entries=$2 need=$3 k=${1#every:}
	shift 3
	[[ $signal == every:* ]] || k=0
	bench loopback -d "$DEVICE" --format csv -s 64 -n 20 --signal "$signal" --sq-depth "$entries" "$@"
	if ((k > entries)); then
		refused 2 "contradiction: --signal $signal, --sq-depth $entries: K is larger"
	elif ((entries < need + 1)); then
		complained 1 "send queue of $entries entr(y|ies) cannot hold one I/O: it takes $need" \
			"--sq-depth $((need + 1)) or more"
	else
		ended 0 && rows "$out_file" 1 'f("status") == "ok" && f("sq_depth") == '"$entries"
	fi
}

# Few that fail as runs: the two ends need more than a second for it.
refusals() {
	local signal entries
	for signal in all every:1 every:7 every:64 half; do
		for entries in 2 6 7 63 64; do
			refused_exactly "$signal" "$entries" 1 "$@" || return 1
		done
	done
	refused_exactly half 1 1 "$@" && refused_exactly every:1 1 1 "$@" &&
		refused_exactly every:7 1 1 "$@" || return 1
	for signal in every:3 every:4; do
		for entries in 2 3 4; do
			refused_exactly "$signal" "$entries" 3 --strategy multi-wr --frags 3 "$@" || return 1
		done
	done
}
