# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What a cache of registrations must answer, by the size of the working set, the order of I/Os and
# the limits: alike on every device. Pieces are of 4 KiB, so a set of N k has N/4 of them; $1 of each
# is the number of timed I/Os.

# What bench.bash sets, and who loads this reads.
# shellcheck disable=SC2154,SC2034

# of_the_last CONDITION: holds for each row of the latest runs.
of_the_last() {
	rows "$out_file" "$(($(grep -c '' "$out_file") - 1))" "$1"
}

# The warm-up is as long as the set: all of it has been registered when the clock starts.
below_the_limits() {
	loop 6 --strategy rcache --mode rpc,direct --op read,write,send --access zipf -s 4k --working-set 256k --warmup 64 \
		-n "$1" --rcache-max 64 "${@:2}"
	of_the_last 'f("hit_pct") == 100'
	loop 6 --strategy rcache --mode rpc,direct --op read,write,send --access rand --frags 16 -s 4k --working-set 1m --warmup 16 \
		-n "$1" --rcache-max 256 --rcache-max-bytes 1m "${@:2}"
	of_the_last 'f("hit_pct") == 100 && f("frags") == 16'
}

# In order each piece has gone before its turn comes again, by the one limit or the other.
far_above_in_order() {
	loop 6 --strategy rcache --mode rpc,direct --op read,write,send -s 4k --frags 16 --working-set 4m --warmup 64 -n "$1" \
		--rcache-max 256 "${@:2}"
	of_the_last 'f("hit_pct") == 0'
	loop 4 --strategy rcache --mode rpc,direct --op read,write -s 4k --working-set 1m --warmup 100 -n "$1" \
		--rcache-max-bytes 128k "${@:2}"
	of_the_last 'f("hit_pct") == 0'
}

# che LIMIT: the hits in per cent, of 1024 pieces by Zipf's law, in a cache that gives up the one that is
# out of use for longest, by Che's approximation: each stays for the same time t.
che() {
	awk -v limit="$1" 'BEGIN {
		for (r = 1; r <= 1024; r++)
			sum += r ^ -0.99
		for (hi = 1e7; i++ < 60; full > limit ? hi = t : lo = t) {
			t = (lo + hi) / 2
			full = hits = 0
			for (r = 1; r <= 1024; r++) {
				gone = exp(-(r ^ -0.99) / sum * t)
				full += 1 - gone
				hits += (r ^ -0.99) / sum * (1 - gone)
			}
		}
		printf "%.2f", 100 * hits
	}'
}

# within PCT LIMIT: awk, for rows of that limit.
within() {
	echo "(f(\"opts\") !~ /rcache-max=$2( |\$)/ || (f(\"hit_pct\") > $1 - 4 && f(\"hit_pct\") < $1 + 4))"
}

# Of 1024 pieces 64, or 512, are in the cache.
far_above_at_random() {
	local set=(--strategy rcache --mode direct --op write -s 4k --depth 2 --working-set 4m --warmup 1024)
	loop 2 "${set[@]}" -n "$1" --access rand --rcache-max 64,512 "${@:2}"
	of_the_last "$(within 6.2 64) && $(within 50 512)"
	loop 2 "${set[@]}" -n "$1" --access zipf --rcache-max 64,512 "${@:2}"
	of_the_last "$(within "$(che 64)" 64) && $(within "$(che 512)" 512)"
}
