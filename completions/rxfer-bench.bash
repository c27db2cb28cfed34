# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Completion in bash: commands, options, and their values; of a list, its last element.
#
# What there is, the program itself says: all is read from its help, and so fits the version at
# hand. tests/docs.bats holds it against the option table.

# The options of PROGRAM COMMAND, one a line: letter, name, argument, and the values that have names;
# "-" for what there is not. So "- --op OP,... read write send all", "-h --help - ", or of a letter
# that has no name of its own, "-Q - K,... ".
_rxfer_bench_options() {
	"$1" help "$2" 2>/dev/null | awk '
	function names() {
		if (!match(text, /\[[^]]*\]$/))
			return ""
		values = substr(text, RSTART + 1, RLENGTH - 2)
		sub(/;.*/, "", values)
		gsub(/,/, "", values)
		gsub(/:K/, ":", values)
		return values ~ /\.\./ ? "" : values
	}
	function option() {
		letter = substr(text, 3, 1) == "-" ? substr(text, 3, 2) : "-"
		split(substr(text, 7), word, " ")
		takes = substr(text, 7) ~ /^--[a-z-]+ [A-Z]+(,\.\.\.)?( |$)/
		if (word[1] ~ /^--/)
			print letter, word[1], takes ? word[2] : "-", names()
		else if (text ~ /^  -. /)
			print letter, "-", text ~ /^  -. [A-Z]/ ? word[1] : "-", ""
	}
	/^  (-.,|   ) --/ || /^  -. / || /^$/ { option(); text = $0; next }
	{ sub(/^ +/, " "); text = text $0 }
	END { option() }'
}

_rxfer_bench_commands() {
	"$1" help 2>/dev/null | awk '/^  rxfer-bench / { print $2 }'
}

# A list goes on behind its last comma, and takes no name twice.
# Usage: _rxfer_bench_list WORD NAME...
_rxfer_bench_list() {
	local word=$1 before='' name
	shift
	[[ $word != *,* ]] || before=${word%,*},
	for name; do
		[[ ,$before == *,"$name",* ]] || compgen -W "$before$name" -- "$word"
	done
}

# Profiles by name: one's own, and those beside the program; behind a slash, files.
# Usage: _rxfer_bench_profiles WORD
_rxfer_bench_profiles() {
	local dir
	if [[ $1 == */* ]]; then
		compgen -f -- "$1"
		return
	fi
	dir=$(type -P rxfer-bench)
	for dir in "$RXFER_PROFILES" "${dir%/*/*}/share/rxfer-bench/profiles"; do
		[[ ! -d $dir ]] || (cd "$dir" && compgen -f -- "$1")
	done | sort -u
}

# What can stand for WORD as the value of an option.
# Usage: _rxfer_bench_values WORD NAME ARGUMENT VALUE...
_rxfer_bench_values() {
	local word=$1 name=$2 argument=$3
	shift 3
	case "$name $argument" in
	'--device '*) (cd /sys/class/infiniband && compgen -f -- "$word") ;;
	*' FILE') compgen -f -- "$word" ;;
	*' PROFILE') _rxfer_bench_profiles "$word" ;;
	*,...) _rxfer_bench_list "$word" "$@" ;;
	*) compgen -W "$*" -- "$word" ;;
	esac
}

# What can stand for WORD behind an option, or joined to it; fails where it is no option's value.
# Usage: _rxfer_bench_option WORD OPTION JOINED, with the options on standard input
_rxfer_bench_option() {
	local letter name argument values candidate
	while read -r letter name argument values; do
		[[ $2 == "$letter" || $2 == "$name" ]] || continue
		[[ $argument != - ]] || return
		# shellcheck disable=SC2086 # the values are words
		while IFS= read -r candidate; do
			printf '%s\n' "$3$candidate"
		done < <(_rxfer_bench_values "$1" "$name" "$argument" $values)
		return 0
	done
	return 1
}

# What can stand for WORD behind the WORDS of the command line, one a line.
# Usage: _rxfer_bench_candidates WORD PROGRAM WORDS...
_rxfer_bench_candidates() {
	local word=$1 options
	if (($# == 2)) || [[ $# == 3 && $3 == help ]]; then
		compgen -W "$(_rxfer_bench_commands "$2")" -- "$word"
		return
	fi
	options=$(_rxfer_bench_options "$2" "$3")
	if [[ $word == --*=* ]]; then
		_rxfer_bench_option "${word#*=}" "${word%%=*}" "${word%%=*}=" <<<"$options"
	elif ! _rxfer_bench_option "$word" "${!#}" '' <<<"$options"; then
		case $word in
		-*)
			compgen -W "$(awk '{ for (i = 1; i <= 2; i++) if ($i != "-") print $i }' \
				<<<"$options")" -- "$word"
			;;
		*) [[ $3 != @(client|probe|fence) ]] || compgen -A hostname -- "$word" ;;
		esac
	fi
}

# The words are split here, since bash ends them at = and : too; but it replaces only what is behind.
_rxfer_bench() {
	local line=${COMP_LINE:0:COMP_POINT} words word='' kept='' candidate
	read -ra words <<<"$line"
	if [[ $line != *[[:blank:]] ]]; then
		word=${words[-1]}
		unset 'words[-1]'
	fi
	[[ $COMP_WORDBREAKS != *=* || $word != *[=:]* ]] || kept=${word%"${word##*[=:]}"}
	words[0]=${words[0]/#\~\//$HOME/}
	COMPREPLY=()
	while IFS= read -r candidate; do
		COMPREPLY+=("${candidate#"$kept"}")
	done < <(_rxfer_bench_candidates "$word" "${words[@]}")
	[[ ${COMPREPLY[*]} != *[:=] ]] || compopt -o nospace
	[[ ${words[-1]} != @(-o|--output|--profile|--mem-file) && $word != --@(output|profile|mem-file)=* ]] || compopt -o filenames
} 2>/dev/null

complete -F _rxfer_bench rxfer-bench
