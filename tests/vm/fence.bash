# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the tests of attempts share: who may do what, and when, said once more and otherwise than in
# bench/fence_table.c. Of the rows in $out_file.

# What bench.bash sets, and who loads this reads.
# shellcheck disable=SC2154,SC2034

# says LINE: of what is on stdout.
says() {
	grep -qxF -- "$1" "$out_file" || fail "no line: $1"
}

# Awk, for each row. A key of the I/O's own is what all have whose memory, or buffers, do not lie open all
# the time; that of rcache is one of whole pages, of which an I/O begins with the first.
own='f("strategy") !~ /^(global|multi-wr|rcache|bounce|odp|odp-implicit)$/'
ends_with_page='f("strategy") == "rcache" && (f("attempt") == "before" || f("bytes") % 4096 == 0)'
closes_at='(f("revoke") == "sync" ? "complete" : f("revoke") == "remote" ? "replied,complete" : "revoked")'
must_be_closed="f(\"attempt\") == \"use\" ? $own && index($closes_at, f(\"stage\")) : \
	f(\"attempt\") ~ /^(before|after)\$/ ? $own || $ends_with_page : f(\"attempt\") == \"other-qp\" ? f(\"strategy\") == \"frwr\" : 1"
as_expected="f(\"expected\") == (($must_be_closed) ? \"closed\" : \"open\")"

# Where windows do not keep to their bounds, and all else is as it must be.
beyond='f("strategy") == "frwr" && f("attempt") ~ /^(before|after)$/'
beyond_windows="f(\"verdict\") == (($beyond) ? \"differs\" : \"ok\") && \
	f(\"observed\") == (($beyond) ? \"open\" : f(\"expected\")) && $as_expected"

# The expected answers are those of the rules above; and the numbers of cells for each attempt, where
# $OPEN strategies lie open all the time.
as_the_rules_say() {
	rows "$out_file" "$CELLS" "$as_expected" || return 1
	awk -F, -v "open=$OPEN" 'NR > 1 { n[$5 " " $6]++ } END {
		memory = 12 + 2 * open # of a strategy without buffers
		all = memory + 2
		bad = n["use during"] != all || n["use replied"] != all || n["use complete"] != all || n["use revoked"] != 6 || \
			n["before during"] != memory || n["after during"] != memory || n["other-qp during"] != all || \
			n["write-read-only during"] != all / 2 || n["parent during"] != 8 || n["memory during"] != 2
		exit bad }' "$out_file" || fail "other cells"
}
