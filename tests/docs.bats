#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The documentation against the program: what --help and the sources list is in the man page, in
# the same words, and nothing else is; what is shown as a command line is one.

top="$BATS_TEST_DIRNAME/.."
man="$top/man/rxfer-bench.1"
completion="$top/completions/rxfer-bench.bash"

setup() {
	export RXFER_PROFILES="$top/bench/profiles"
	bench=${RXFER_BENCH:-./rxfer-bench}
	[[ -x $bench ]] || { echo "no program $bench: set RXFER_BENCH"; return 1; }
}

# same WHAT FILE FILE: equal, and of some length, or what differs.
same() {
	[[ $(wc -l <"$2") -ge 3 ]] || { echo "$1: next to nothing was found"; return 1; }
	diff -u --label "$1, program" --label "$1, documentation" "$2" "$3"
}

# The lines of a section of the man page.
section() {
	awk -v name="$1" '/^\.S[hs] / { on = $0 ~ "^\\.S[hs] " name "$" } on' "$man"
}

# An option a line: "-s --size client,loopback [1..2g; default 64k]", an alias as "-e - client,loopback",
# sorted.
options_of_help() {
	local command
	for command in server client loopback devices probe fence; do
		"$bench" "$command" --help | awk -v command="$command" '
			/^  (-., |    )--/ { if (text) print text; on = 1
				letter = substr($0, 3, 1) == "-" ? substr($0, 3, 2) : "-"
				match($0, /--[a-z-]+/)
				text = letter " " substr($0, RSTART, RLENGTH) " " command " "; text = text " " $0
				next }
			/^  -. / { if (text) print text; on = 1
				text = substr($0, 3, 2) " - " command "  " $0
				next }
			/^$/ { on = 0 }
			on { sub(/^ +/, " "); text = text $0 }
			END { print text }' | sed 's/^\([^ ]* [^ ]* [^ ]*\) .*\(\[.*\]\)$/\1 \2/; t; s/^\([^ ]* [^ ]* [^ ]*\) .*/\1/'
	done | awk '{ key = $1 " " $2; command = $3; sub(/^[^ ]+ [^ ]+ [^ ]+/, "")
		commands[key] = (key in values ? commands[key] "," : "") command; values[key] = $0 }
		END { for (key in values) print key " " commands[key] values[key] }' | sort
}

options_of_man() {
	section Options | awk '
		/^\.It Fl/ { if (text) print text
			letter = $3 ~ /^.$/ ? "-" $3 : "-"
			text = letter " -"
			if (match($0, /Fl -[a-z-]+/)) text = text substr($0, RSTART + 3, RLENGTH - 3)
			commands = 1; next }
		text && /^\.Bq / { sub(/^\.Bq /, "")
			if (commands) gsub(/, /, ","); else $0 = "[" $0 "]"
			text = text " " $0; commands = 0 }
		END { print text }' | sort
}

@test "each option is in the man page with its commands, range and default, and no other" {
	options_of_help >"$BATS_TEST_TMPDIR/help"
	options_of_man >"$BATS_TEST_TMPDIR/man"
	same options "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/man"
}

# "-s --size" of each row of the option table, "- --op" where there is no letter, "-e -" of an alias,
# sorted.
options_of_table() {
	sed -n -e '/^const struct opt opt_table/,/^};/s/^\t{ "\([a-z-]*\)", \([^,]*\), OPT_.*/\2 --\1/p' \
		-e "/^const struct opt_alias/,/^};/s/^\t{\('.'\),.*/\1 -/p" \
		"$top/bench/opt_table.c" | sed "s/^0 /- /; s/^'\(.\)'/-\1/" | sort
}

@test "each row of the option table is in --help, and nothing else" {
	options_of_table >"$BATS_TEST_TMPDIR/table"
	options_of_help | sed 's/^\([^ ]* [^ ]*\) .*/\1/' >"$BATS_TEST_TMPDIR/help"
	same "option table" "$BATS_TEST_TMPDIR/table" "$BATS_TEST_TMPDIR/help"
}

# What an alias is the same as, without markup: "-e --poll event".
aliases_of_help() {
	"$bench" loopback --help | sed -n 's/^  \(-.\) .*the same as \(--.*\)/\1 \2/p' | sort
}

aliases_of_man() {
	section Options | awk '
		/^\.It Fl .( |$)/ { letter = "-" $3; on = 0; next }
		/^\.Bq / { if (text) print letter " " text; text = ""; on = 0 }
		/^The same as$/ { on = 1; next }
		on { gsub(/\.Fl -/, "--"); gsub(/ Cm/, ""); sub(/ ?\.$/, "")
			text = text (text ? " " : "") $0 }' | sort
}

@test "each alias is in the man page as what it is in --help" {
	aliases_of_help >"$BATS_TEST_TMPDIR/help"
	aliases_of_man >"$BATS_TEST_TMPDIR/man"
	same aliases "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/man"
}

# The letters that are perftest's, one a line, sorted.
perftest_letters_of_help() {
	local command
	for command in server client loopback devices probe fence; do
		"$bench" "$command" --help | sed -n 's/^These letters mean the same in perftest: //p'
	done | tr ' ' '\n' | sort -u
}

@test "the letters that are perftest's are so in the man page, and in perftest" {
	perftest_letters_of_help >"$BATS_TEST_TMPDIR/help"
	section Options | sed -n '/^These letters mean the same/{n;s/^\.Fl \(.*\) \.$/\1/p}' |
		sed 's/ , /\n/g' | sed 's/^/-/' | sort >"$BATS_TEST_TMPDIR/man"
	same letters "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/man"
	command -v ib_send_bw >/dev/null || skip "there is no perftest to ask"
	{ ib_send_bw --help || true; } 2>&1 | sed -n 's/^ *\(-.\), --.*/\1/p' | sort -u >"$BATS_TEST_TMPDIR/theirs"
	[[ -z $(comm -23 "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/theirs") ]] || {
		echo "no letters of perftest:"
		comm -23 "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/theirs"
		return 1
	}
}

# The values that --help gives for an option, one a line. "all" of a sweep is no name.
values_of_help() {
	options_of_help | sed -n "s/.* --$1 .*\[\(.*\); default.*/\1/p" | sed 's/, all$//; s/, /\n/g'
}

items_of_man() {
	section "$1" | sed -n 's/^\.It Cm //p'
}

@test "each strategy has its paragraph in the man page, in the program's order" {
	values_of_help strategy >"$BATS_TEST_TMPDIR/help"
	items_of_man STRATEGIES >"$BATS_TEST_TMPDIR/man"
	same strategies "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/man"
}

@test "each signalling policy has its paragraph in the man page" {
	values_of_help signal >"$BATS_TEST_TMPDIR/help"
	items_of_man "SIGNALLING POLICIES" >"$BATS_TEST_TMPDIR/man"
	same policies "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/man"
}

@test "each installed profile has its paragraph in the man page, and is accepted" {
	local name n=0
	for name in "$top"/bench/profiles/*; do
		name=${name##*/}
		accepted "loopback --profile $name"
		accepted "client node7 --profile $name"
		echo "$name" >>"$BATS_TEST_TMPDIR/files"
		n=$((n + 1))
	done
	((n >= 2)) || { echo "only $n profiles were found"; return 1; }
	items_of_man PROFILES | diff -u "$BATS_TEST_TMPDIR/files" -
}

@test "each output format has its paragraph in the man page" {
	values_of_help format >"$BATS_TEST_TMPDIR/help"
	items_of_man "OUTPUT FORMATS" >"$BATS_TEST_TMPDIR/man"
	same formats "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/man"
}

@test "each CSV column is in the man page, in the order of the file" {
	sed -n '/^const struct column result_columns/,/^};/p' "$top/bench/result.c" |
		sed -n 's/^\t\(SCHEMA\|STATUS\)().*/\L\1/p; s/^\t\(TEXT\|COUNT\|REAL\)(\([^,)]*\).*/\2/p' \
			>"$BATS_TEST_TMPDIR/code"
	section "OUTPUT FORMATS" | sed -n 's/^\.It Va //p' >"$BATS_TEST_TMPDIR/man"
	same columns "$BATS_TEST_TMPDIR/code" "$BATS_TEST_TMPDIR/man"
}

@test "the commands of --help are those of the man page" {
	"$bench" help | sed -n 's/^  rxfer-bench \([a-z]*\) .*/\1/p' >"$BATS_TEST_TMPDIR/help"
	section DESCRIPTION | sed -n 's/^\.It Cm //p' >"$BATS_TEST_TMPDIR/man"
	same commands "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/man"
}

@test "the faults of the man page are the tests of faults (else: scripts/fault-table --write)" {
	"$top/scripts/fault-table" >"$BATS_TEST_TMPDIR/tests"
	section FAULTS | sed -n '/scripts.fault-table/,/to here/{/^\.\\"/d;p}' >"$BATS_TEST_TMPDIR/man"
	(($(grep -c '^\.It ' "$BATS_TEST_TMPDIR/tests") >= 30))
	same faults "$BATS_TEST_TMPDIR/tests" "$BATS_TEST_TMPDIR/man"
}

# What completion offers behind the words LINE of a command line, one a line.
completed() {
	bash -c '. "$1" && COMP_LINE=$2 COMP_POINT=${#2}; _rxfer_bench; printf "%s\n" "${COMPREPLY[@]}"' \
		- "$completion" "$bench $1"
}

# A command with one of its options, a line each, letters too: "client -s".
completed_options() {
	local command
	for command in server client loopback devices probe fence; do
		completed "$command -" | sed "s/^/$command /"
	done | sort
}

options_of_commands() {
	options_of_help | awk '{ n = split($3, command, ",")
		for (i = 1; i <= n; i++) {
			if ($2 != "-") print command[i], $2
			if ($1 != "-") print command[i], $1
		} }' | sort
}

@test "completion offers each option of a command, and no other" {
	options_of_commands >"$BATS_TEST_TMPDIR/help"
	completed_options >"$BATS_TEST_TMPDIR/completion"
	same options "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/completion"
}

@test "completion offers the names that an option may have, and of a list those that are left" {
	local name commands values n=0
	while read -r _ name commands values; do
		[[ $values == \[* && $values != *..* ]] || continue
		sed 's/^.//; s/[];].*//; s/, /\n/g; s/:K/:/g' <<<"$values" >"$BATS_TEST_TMPDIR/help"
		completed "${commands%%,*} $name " >"$BATS_TEST_TMPDIR/completion"
		diff -u "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/completion"
		n=$((n + 1))
	done < <(options_of_help)
	((n >= 6)) || { echo "only $n options with names were found"; return 1; }
	[[ $(completed 'loopback --op=write,se') == write,send ]]
	[[ $(completed 'loopback --op send,send') == '' ]]
	[[ $(completed 'loopback --signal half,every:4,io') == 4,io ]] # bash takes a : for a word's end
}

@test "completion offers commands, files, and nothing where there is nothing" {
	completed 'help ' >"$BATS_TEST_TMPDIR/completion"
	"$bench" help | sed -n 's/^  rxfer-bench \([a-z-]*\) .*/\1/p' >"$BATS_TEST_TMPDIR/help"
	same commands "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/completion"
	[[ $(completed 'loop') == loopback ]]
	[[ $(completed "loopback -o $BATS_TEST_TMPDIR/hel") == "$BATS_TEST_TMPDIR/help" ]]
	[[ $(completed "loopback --output=$BATS_TEST_TMPDIR/hel") == "$BATS_TEST_TMPDIR/help" ]]
	[[ $(completed 'loopback --profile nfs') == nfs-rdma ]]
	[[ $(completed 'client node7 --profile=o2') == o2iblnd ]]
	[[ $(completed "loopback --profile $BATS_TEST_TMPDIR/hel") == "$BATS_TEST_TMPDIR/help" ]]
	[[ $(completed 'loopback --size ') == '' ]]
	[[ $(completed 'loopback -Q ') == '' ]]
	[[ $(completed 'loopback -e --pol') == --poll ]]
	[[ $(completed 'frobnicate -') == '' ]]
}

# The program's own words of all command lines that are shown, one a line: what stands in a sh block
# or in an example, from rxfer-bench on and up to a comment, pipe or ampersand.
# shellcheck disable=SC2016 # backquotes as Markdown has them
shown() {
	{
		sed -n '/^```sh$/,/^```$/p' "$top/README.md" "$top/CONTRIBUTING.md" |
			sed -e ':a' -e '/\\$/ { N; s/\\\n//; ba' -e '}'
		sed -n 's/^\.Dl //p' "$man"
	} | sed -n 's/^.*\brxfer-bench \(\(server\|client\|loopback\|devices\|probe\|fence\|help\|-\).*\)/\1/p' |
		sed 's/ *[#|&>].*//'
}

# Without a device of that name nothing is run: the last --device holds, and what the parser and
# the rules between options refuse ends with 2. A server would claim its port before that.
accepted() {
	local words status=0 want=1
	read -ra words <<<"$1"
	case ${words[0]} in
	client | loopback | probe | fence) words+=(--device no-such-device) ;;
	server | devices) words+=(--help) want=0 ;;
	*) want=0 ;;
	esac
	output=$("$bench" "${words[@]}" 2>&1) || status=$?
	if [[ $status != "$want" || ($want == 1 && $output != *"RDMA device"*) ]]; then
		echo "rxfer-bench $1"
		echo "exit status $status: $output"
		return 1
	fi
}

@test "the command lines shown in README, CONTRIBUTING and the man page are accepted" {
	local line n=0
	while read -r line; do
		accepted "$line"
		n=$((n + 1))
	done < <(shown)
	((n >= 8)) || { echo "only $n command lines were found"; return 1; }
}

# shellcheck disable=SC2016 # as above
names_in() {
	grep -oE '`(src|bench|tests|man|scripts|results)/[A-Za-z0-9_.*/-]+`' "$1" | tr -d '`' |
		grep -vE 'NAME|results/local' | sort -u
}

@test "the files that README, ARCHITECTURE and CONTRIBUTING name are there" {
	local doc name n=0
	[[ -e $top/.ci/run ]] || skip "a release has fewer files than the source tree"
	for doc in README ARCHITECTURE CONTRIBUTING; do
		while read -r name; do
			n=$((n + 1))
			compgen -G "$top/$name" >/dev/null || { echo "$doc.md names $name"; return 1; }
		done < <(names_in "$top/$doc.md")
	done
	((n >= 40)) || { echo "only $n names were found"; return 1; }
}

@test "each source file is in ARCHITECTURE" {
	local file base missing=()
	for file in "$top"/src/*.[ch] "$top"/bench/*.[ch]; do
		base=${file##*/}
		[[ $base == reg_list.h ]] || grep -qF "$base" "$top/ARCHITECTURE.md" || missing+=("$base")
	done
	((${#missing[@]} == 0)) || { echo "not in ARCHITECTURE.md: ${missing[*]}"; return 1; }
}
