# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two rows, of N and of 2 * N I/Os, held against what the kernel's counters said before these runs,
# between them and after: see witness.bash. N and the client's name as variables; the files are
# seen.0, seen.1, seen.2, and then, with FS=, in front, row.1, row.2.
#
# Per I/O, K keys are made and revoked: one for each run of fragments, which gaps part. per-io does
# it at the client, for the server to reach or to go with a SEND, and at the server for itself.

# ---- the counters: seen[RUN, WHAT], before[WHICH]: as one was at the look before ----
function who(process) {
	if (process == "witness-server")
		return "server"
	return process == client ? "client" : "other"
}
function count(which, what, value) {
	seen[run, what] += value - before[which]
	before[which] = value
}
function completed(code, bytes) {
	if (code == 1 && bytes == 0)
		return "drain"
	return code in opcode ? opcode[code] : "opcode " code
}
BEGIN {
	split("rxe_reg_user_mr reg rxe_dereg_mr dereg ib_uverbs_post_send post", pair, " ")
	for (i = 1; i in pair; i += 2)
		called[pair[i]] = pair[i + 1]
	split("0 send 1 write 2 read 5 bind 6 local_inv 128 recv", pair, " ")
	for (i = 1; i in pair; i += 2)
		opcode[pair[i]] = pair[i + 1]
}
FNR == 1 { run = substr(FILENAME, length(FILENAME)) }
FILENAME ~ /^seen/ && NF == 3 && !/Dropped/ {
	count("hits " $1, $1, $2)
	count("misses " $1, "missed", $3)
	next
}
FILENAME ~ /^seen/ {
	sub(/.*rxfer_witness\//, "")
	gsub(/\/hist:|[][{},]|: /, " ")
	value = $NF
	which = $0
	sub(/ *[0-9]+ *$/, "", which) # padded
}
FILENAME !~ /^seen/ { next_row() }
FILENAME ~ /^seen/ && $2 == "Dropped" { count(which, "missed", value) }
$1 == "rxe_create_cq" && $2 == "common_pid" && value > before[which] {
	owners[run, $6] += value - before[which]
	owner[run, $6] = who($3)
}
$1 == "rxe_create_cq" && $2 == "common_pid" { before[which] = value }
$1 == "rxe_cq_post" && $2 == "cq" && (run, $3) in owner {
	if (owners[run, $3] > 1)
		seen[run, "missed"]++ # whose they are
	count(which, owner[run, $3] " " completed($5, $7), value)
}
$1 in called && $2 == "common_pid" { count(which, who($3) " " called[$1], value) }

# ---- the rows ----
function next_row() {
	for (i = 1; i <= NF; i++)
		if (FNR == 1)
			name[i] = $i
		else
			row[run, name[i]] = $i
}
function f(name, i) {
	i = i ? i : 2
	if (!((i, name) in row))
		wrong("no column is called " name)
	return row[i, name]
}
# Four digits behind the point give the count back, of fewer than 10000 I/Os.
function told(name, i,    ios, x, whole) {
	ios = f("iterations", i)
	x = ios * f(name, i)
	whole = int(x + 0.5)
	if (ios >= 10000 || (x - whole) ^ 2 > (ios * 0.000051) ^ 2)
		wrong(name " is of no whole count: " x)
	return whole
}

# ---- both ----
function wrong(what) {
	print what
	bad = 1
}
function same(what, kernel, rows) {
	if (kernel != rows)
		wrong(what ": the kernel saw " kernel ", the rows say " rows)
}
function saw(what, i) { return seen[i, what] + 0 }
function more(what) { return saw(what, 2) - saw(what, 1) }
function more_told(name) { return told(name, 2) - told(name, 1) }
function sends_done(side, i) {
	return saw(side " send", i) + saw(side " write", i) + saw(side " read", i) \
		+ saw(side " bind", i) + saw(side " local_inv", i)
}
function end_is(side, peer, strategy,    i, drains, posts, mrs) {
	mrs = strategy == "per-io" ? keys : 0
	same(side ": registered", more(side " reg"), mrs)
	same(side ": deregistered", more(side " dereg"), mrs)
	for (i = 1; i <= 2; i++) {
		drains = saw(side " drain", i)
		if (drains > (all ? 0 : f("qps")))
			wrong(side ": " drains " drains")
		posts = saw(side " post", i) - drains
		same(side ": posts", posts, told(peer "posts_per_io", i))
		same(side ": completions", sends_done(side, i), told(peer "cqe_per_io", i))
		same(side ": WRs, as all their kinds", kinds(peer, i), told(peer "sqe_per_io", i))
		same(side ": left", saw(side " reg", i) - saw(side " dereg", i), 0)
		if (all)
			each_wr_is(side, peer, i)
	}
}
# Only the client has keys to make and to revoke.
function kinds(peer, i) {
	return told(peer "sqe_read_per_io", i) + told(peer "sqe_write_per_io", i) \
		+ told(peer "sqe_send_per_io", i) \
		+ (peer ? 0 : told("sqe_bind_per_io", i) + told("sqe_inv_per_io", i))
}
# Each of its WRs asked for a completion, which tells what it was.
function each_wr_is(side, peer, i) {
	same(side ": WRs", sends_done(side, i), told(peer "sqe_per_io", i))
	same(side ": READs", saw(side " read", i), told(peer "sqe_read_per_io", i))
	same(side ": WRITEs", saw(side " write", i), told(peer "sqe_write_per_io", i))
	same(side ": SENDs", saw(side " send", i), told(peer "sqe_send_per_io", i))
}
# With --revoke remote the reply revokes one of an I/O; lazy leaves the last ones open.
function windows_are(made,    i, bound, revoked) {
	same("windows bound", more("rxe_bind_mw"), made)
	same("windows revoked", more("rxe_invalidate_mw"), made)
	for (i = 1; i <= 2; i++) {
		bound = saw("rxe_bind_mw", i)
		revoked = saw("rxe_invalidate_mw", i)
		if (f("revoke") == "remote")
			revoked -= f("iterations", i)
		same("windows bound", bound, told("sqe_bind_per_io", i))
		same("windows revoked by the client", revoked, told("sqe_inv_per_io", i))
		if (all) {
			same("BINDs", saw("client bind", i), bound)
			same("LOCAL_INVs", saw("client local_inv", i), revoked)
		}
	}
}
# The most that the client had: what it set up, and what I/Os in flight took.
function mr_count_is(i,    more_mrs, io) {
	io = f("strategy") == "per-io" ? keys / n : 0
	more_mrs = f("mr_count", i) - (saw("client reg", i) - io * f("iterations", i))
	if (io ? more_mrs < 1 || more_mrs > io * f("depth") * f("qps") : more_mrs)
		wrong("client: mr_count " f("mr_count", i) " of " saw("client reg", i))
}
function both(what, i) { return saw("client " what, i) + saw("server " what, i) }
function all_is_seen(i) {
	same("missed", saw("missed", i), 0)
	same("posts by both", saw("ib_uverbs_post_send", i), both("post", i))
	same("registered by both", saw("rxe_reg_user_mr", i), both("reg", i))
	same("deregistered by both", saw("rxe_dereg_mr", i), both("dereg", i))
	if (saw("client reg", i) < 1 || saw("server reg", i) < 1)
		wrong("no MR was seen")
}
END {
	if (f("status") != "ok" || f("partial") != "no")
		wrong("no whole run")
	n *= f("qps")
	same("I/Os", n, f("iterations", 1))
	same("I/Os", 2 * n, f("iterations", 2))
	keys = n * (f("frag_gap") > 0 ? f("frags") : 1)
	all = f("signal") == "all" && f("peer_signal") == "all"
	end_is("client", "", f("strategy"))
	end_is("server", "peer_", f("peer_strategy"))
	windows_are(f("strategy") == "frwr" ? keys : 0)
	for (i = 1; i <= 2; i++) {
		same("replies", saw("client recv", i), told("recv_cqe_per_io", i))
		same("replies sent", saw("client recv", i), told("peer_sqe_send_per_io", i))
		same("requests sent", saw("server recv", i), told("sqe_send_per_io", i))
		mr_count_is(i)
		all_is_seen(i)
	}
	exit bad
}
