#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# scripts/unsignalled-limit: what results/unsignalled-limit/ claims holds, and the script would say so
# if it did not. Its few cells, on the double.

bats_require_minimum_version 1.5.0
program=${RXFER_BENCH_FAKE:-$PWD/tests/rxfer-bench-fake}
script=$BATS_TEST_DIRNAME/../scripts/unsignalled-limit

# runs CONDITION: how many rows of runs.csv it holds for.
runs() {
	awk -F, "NR > 1 && ($1) { n++ } END { print n + 0 }" "$BATS_TEST_TMPDIR/out/runs.csv"
}

@test "an ungated queue overflows above entries - rate x delay, a gated one never" {
	run --separate-stderr "$script" --quick --out "$BATS_TEST_TMPDIR/out" "$program"
	[[ $status == 0 && -z $stderr ]]
	[[ ${lines[-1]} == *' different runs, 0 wrong' ]]
	# shellcheck disable=SC2016 # awk's
	[[ $(runs '$5 == "no" && $6 == "overflow"') -ge 20 && $(runs '$5 == "yes" && $6 == "ok"') -ge 10 ]]
	[[ $(grep -c '^128,2000000,24,48,80,80$' "$BATS_TEST_TMPDIR/out/limits.csv") == 1 ]]
}

# A program between: what is gated and what is not are exchanged for queues of 128, one delay is 2 us
# longer, and no two runs are of the same length.
in_disorder() {
	cat <<-EOF
	#!/usr/bin/env bash
	for word; do
		case \$word in
		128) word=2048 ;;
		2048) word=128 ;;
		esac
		words+=("\$word")
	done
	FAKEHCA=\${FAKEHCA/sq_delay=240/sq_delay=260} exec "$program" "\${words[@]}" -n \$((1500 + RANDOM % 999))
	EOF
}

@test "it finds a gated queue that overflows, an ungated one that is gated, a wrong limit, no repetition" {
	local words
	in_disorder >"$BATS_TEST_TMPDIR/program"
	chmod +x "$BATS_TEST_TMPDIR/program"
	run --separate-stderr "$script" --quick "$BATS_TEST_TMPDIR/program"
	[[ $status == 1 && ${lines[-1]} != *', 0 wrong' ]]
	for words in '128 entries, 2/us, 24 us, every:128: overflow, though gated' \
		'every:96: something gated an ungated run' \
		'256 entries, 2/us, 24 us: the limit is 204, not 208' \
		'a run did not repeat: 128,'; do
		[[ $stderr == *"$words"* ]] || { echo "not found: $words: $stderr"; return 1; }
	done
}

@test "it says so where the program is not the one, or gives no result" {
	run --separate-stderr "$script" --quick "$BATS_TEST_TMPDIR/nothing"
	[[ $status == 1 && $stderr == *"name tests/rxfer-bench-fake of a build"* ]]
	run --separate-stderr "$script" --quick "$(type -P false)"
	[[ $status == 1 && $stderr == *"a run gave no result"* ]]
}
