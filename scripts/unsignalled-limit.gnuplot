# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The picture of scripts/unsignalled-limit: reads runs.csv and limits.csv in the current folder, and
# writes limits.svg there.
set datafile separator ","
set terminal svg size 1000,460 font "sans-serif,13" background "white"
set output "limits.svg"
set multiplot layout 1,2
set key top right
set grid lc rgb "#dddddd"
set tics nomirror

set title "Ungated: the largest signal interval that survives"
set xlabel "posted while a completion is on its way: rate x delay"
set ylabel "sends from signal to signal"
set xrange [0:600]
set yrange [0:1150]
limit(s, x) = x < s ? s - x : 0
at(s, rate) = column(1) == s && column(2) == rate ? column(6) : NaN
plot for [s in "1024 512 256 128"] limit(real(s), x) lc rgb "#888888" notitle, \
	for [i = 1:3] for [s in "128 256 512 1024"] "limits.csv" \
		using 4:(at(real(s), i * 1e6)) every ::1 with points pt (4 + 2 * i) ps 0.8 \
		lc rgb word("#0060ad #dd8800 #007744", i) \
		title (s eq "128" ? sprintf("%d posts/us", i) : ""), \
	NaN lc rgb "#888888" title "entries - rate x delay"

set title "128 entries, 2 posts/us"
set xlabel "delay until a completion is found, us"
set xrange [-2:66]
set yrange [0:180]
mine(gated, outcome) = column(1) == 128 && column(2) == 2e6 && strcol(11) eq "late" && \
	strcol(5) eq gated && strcol(6) eq outcome && column(10) == (gated eq "yes" ? 128 : 2048) && \
	(column(4) == 1 || int(column(4)) % 8 == 0) && int(column(3)) % 8 == 0 ? column(4) : NaN
plot "runs.csv" using 3:(mine("no", "ok")) every ::1 with points pt 7 ps 0.5 lc rgb "#007744" \
		title "ungated, survives", \
	"" using 3:(mine("no", "overflow")) every ::1 with points pt 2 ps 0.7 lc rgb "#cc0000" \
		title "ungated, overflows", \
	"" using 3:(mine("yes", "ok")) every ::1 with points pt 6 ps 0.9 lc rgb "#0060ad" \
		title "gated, survives (all)", \
	"" using 3:(mine("yes", "overflow")) every ::1 with points pt 5 ps 1.2 lc rgb "#cc0000" \
		notitle, \
	128 - 2 * x lc rgb "#888888" title "128 - 2 x delay"
unset multiplot
