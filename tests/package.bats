#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The packages that "make deb rpm" left in RXFER_PACKAGES (build/packages): linted, then installed,
# used and removed in a copy of this machine, with an account of what that changed.
#
# The copy is the machine's own files by overlayfs: what is written goes into memory, and away with the
# mount namespace of the test. So it needs no network and no second system; what a package depends on
# is there because the build needs it. What was written can be listed, and so it is seen what a
# removed package leaves behind, wherever it may be.
#
# Not among the native tests: needs root, and packages that were built.

# Scripts for other shells are in single quotes, and commands found by name.
# shellcheck disable=SC2016,SC2034
bats_require_minimum_version 1.5.0
scripts=$BATS_TEST_DIRNAME/../scripts

setup() {
	packages=$(cd "${RXFER_PACKAGES:?is not set: RXFER_PACKAGES=build/packages}" && pwd)
	tmp=$BATS_TEST_TMPDIR
}

fail() {
	printf '%s\n' "$@"
	return 1
}

# only PATTERN: the one file of that name.
only() {
	local files
	mapfile -t files < <(compgen -G "$1")
	((${#files[@]} == 1)) || fail "$1 is ${#files[@]} files: run make deb rpm" || return
	echo "${files[0]}"
}

package() {
	case $1 in
	deb) only "$packages/deb/rxfer-bench_*.deb" ;;
	rpm) only "$packages/rpm/rxfer-bench-[0-9]*[!c].rpm" ;;
	esac
}

# must_have PROGRAM
must_have() {
	command -v "$1" >/dev/null || skip "there is no $1"
}

# Its arguments: folder, package, script. / and what is mounted below it that packages write to are
# file systems of their own, if so.
lay_and_run='
	set -euo pipefail
	mount -t tmpfs -o mode=755 tmpfs "$1"
	cd "$1"
	mkdir root
	for dir in / /usr /var; do
		mountpoint -q "$dir" || continue
		layer=$1/layer${dir//\//_}
		mkdir -p "$layer/upper" "$layer/work"
		mount -t overlay overlay -o "lowerdir=$dir,upperdir=$layer/upper,workdir=$layer/work" "root$dir" ||
			exit 77
	done
	for dir in proc sys dev; do
		mount --rbind "/$dir" "root/$dir"
	done
	mount -t tmpfs tmpfs root/tmp
	cp "$2" root/tmp/package
	status=0
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		chroot root bash -euxo pipefail -c "$3" || status=1
	find layer*/upper -mindepth 1 -type d -printf "left %P/\n" -o ! -type c -printf "left %P\n"
	exit "$status"
'

# in_copy KIND SCRIPT: bash runs it in a copy of this machine, where the package is /tmp/package. $left
# is what then is there, or is otherwise, in comparison with the machine.
in_copy() {
	local file status=0
	[[ $(id -u) == 0 ]] || skip "only root can mount a copy of the machine"
	file=$(package "$1") || fail "$file"
	mkdir -p "$tmp/copy"
	unshare -m --propagation private bash -c "$lay_and_run" - "$tmp/copy" "$file" "$2" >"$tmp/out" 2>&1 ||
		status=$?
	((status != 77)) || skip "no overlayfs can be mounted here: $(tail -n 1 "$tmp/out")"
	left=$(sed -n 's/^left //p' "$tmp/out")
	((status == 0)) || fail "$(grep -v '^left ' "$tmp/out")"
}

# --path-include: systems in containers leave out documentation.
install_deb='dpkg --path-include="*" -i /tmp/package'
remove_deb='dpkg --purge rxfer-bench'
# On a Debian, rpm has no database, or an empty one: one for the test, then, and no dependencies.
install_rpm='mkdir /tmp/db; rpm --dbpath /tmp/db --force-debian --nodeps -i /tmp/package'
remove_rpm='rpm --dbpath /tmp/db --force-debian --nodeps -e rxfer-bench'
command -v dpkg >/dev/null || {
	install_rpm=${install_rpm/--force-debian}
	remove_rpm=${remove_rpm/--force-debian}
}

# What someone who installed it does. A device, if this machine has one, is there in its copy too.
use='
	[[ $(command -v rxfer-bench) == /usr/bin/rxfer-bench ]]
	[[ $(rxfer-bench --version) == "rxfer-bench VERSION" ]]

	if [[ -n $(ls /sys/class/infiniband 2>/dev/null) ]]; then
		rxfer-bench devices
	else
		! message=$(rxfer-bench devices 2>&1)
		[[ $message == "rxfer-bench: no RDMA device on this machine: load its driver"* ]]
		[[ $(wc -l <<<"$message") == 1 ]]
	fi

	[[ $(compgen -G "/usr/share/man/man1/rxfer-bench.1*") == /usr/share/man/man1/rxfer-bench.1?(.gz) ]]
	if command -v man; then
		[[ $(man -w rxfer-bench) == /usr/share/man/man1/rxfer-bench.1* ]]
	fi

	. /usr/share/bash-completion/completions/rxfer-bench.bash
	[[ $(complete -p rxfer-bench) == *_rxfer_bench* ]]
	COMP_LINE="rxfer-bench loop" COMP_POINT=16
	_rxfer_bench
	[[ ${COMPREPLY[*]} == loopback ]]

	unit=$(compgen -G "/usr/lib/systemd/system/rxfer-bench.service")
	grep -qx "ExecStart=/usr/bin/rxfer-bench server \$OPTIONS" "$unit"
	! command -v systemd-analyze || systemd-analyze verify "$unit"
	! command -v systemctl || [[ $(systemctl --root=/ is-enabled rxfer-bench) == disabled ]]

	/usr/share/rxfer-bench/scripts/rxe-up --help
	/usr/share/rxfer-bench/scripts/rxe-down --help
	[[ -s /usr/share/rxfer-bench/scripts/lib.bash ]]
'

# The version that the package's file name says.
used() {
	local file version
	file=$(package "$1")
	version=${file##*/rxfer-bench[-_]}
	echo "${use/VERSION/"${version%%-*}"}"
}

# Of what differs from the machine, what is no business of the package managers', and no folder that
# there was.
remains() {
	local path
	while read -r path; do
		case $path in
		'' | var/lib/dpkg/?* | var/log/?* | var/cache/?* | lib/dpkg/?* | log/?* | cache/?*) ;;
		# Where rpm is at home, it is there.
		*share/licenses/) ;;
		*/) [[ -d /$path || -d /usr/$path || -d /var/$path ]] || echo "$path" ;;
		*) echo "$path" ;;
		esac
	done <<<"$left"
}

# installs KIND: all of it must be seen installed, or nothing would be seen left.
installs() {
	local install=install_$1 file
	in_copy "$1" "${!install}; $(used "$1")"
	for file in bin/rxfer-bench systemd/system/rxfer-bench.service share/rxfer-bench/scripts/rxe-up \
		share/man/man1/rxfer-bench.1; do
		[[ $left == *"$file"* ]] || fail "$file is nothing new: the copy does not tell what was installed" "$left"
	done
}

# removes KIND
removes() {
	local install=install_$1 remove=remove_$1
	in_copy "$1" "${!install}; rxfer-bench --version; ${!remove}; hash -r; ! command -v rxfer-bench"
	[[ -z $(remains) ]] || fail "left behind:" "$(remains)"
}

@test "deb: lintian finds nothing" {
	must_have lintian
	cd "$packages/deb"
	run lintian --allow-root --fail-on error,warning "$(only 'rxfer-bench_*.changes')"
	[[ $status == 0 && $output != *[EW]:* ]] || fail "$output"
}

@test "deb: installed, with all it depends on, it can be used" {
	must_have dpkg
	installs deb
}

@test "deb: purged, it leaves nothing" {
	must_have dpkg
	removes deb
}

@test "deb: readme, news and licence are in it" {
	must_have dpkg-deb
	local files name
	files=$(dpkg-deb -c "$(package deb)")
	for name in README.md.gz NEWS.gz copyright changelog.Debian.gz; do
		[[ $files == *"/usr/share/doc/rxfer-bench/$name"* ]] || fail "no $name:" "$files"
	done
}

@test "deb: the licence in it is that of the sources" {
	must_have dpkg-deb
	dpkg-deb --fsys-tarfile "$(package deb)" | tar -xO ./usr/share/doc/rxfer-bench/copyright |
		sed -n '/^License: BSD/,$ { s/^ //; s/^\.$//; p }' | sed 1d >"$tmp/package"
	awk '/^Redistribution and use/ { on = 1 } /^====/ { on = 0 } on' "$BATS_TEST_DIRNAME/../COPYING" |
		sed '${ /^$/d }' >"$tmp/sources"
	[[ $(wc -l <"$tmp/sources") -ge 15 ]] || fail "COPYING has no BSD licence"
	diff -u "$tmp/sources" "$tmp/package"
}

@test "rpm: rpmlint finds nothing" {
	must_have rpmlint
	run rpmlint -c "$BATS_TEST_DIRNAME/../packaging/rpmlint.toml" "$packages"/rpm/*.rpm "$packages"/rpm/*.spec
	[[ $status == 0 && $output == *' 0 errors, 0 warnings'* ]] || fail "$output"
}

@test "rpm: installed, it can be used" {
	must_have rpm
	installs rpm
}

@test "rpm: erased, it leaves nothing" {
	must_have rpm
	removes rpm
}

@test "rpm: readme, news and licence are in it" {
	must_have rpm
	run rpm -qp --docfiles "$(package rpm)"
	[[ $output == */README.md* && $output == */NEWS* ]] || fail "$output"
	run rpm -qp --licensefiles "$(package rpm)"
	[[ $output == */COPYING ]] || fail "$output"
}

# unit_of CONFIGURE-OPTION...: what the release tarball's `make install` puts of the unit below $tmp/root.
unit_of() {
	rm -rf "$tmp/root" "$tmp/build"
	mkdir "$tmp/build"
	(cd "$tmp/build" && "$tmp/tree/configure" --prefix=/opt/x "$@" && make install-data DESTDIR="$tmp/root") \
		>"$tmp/install.log" 2>&1 || fail "$(tail -n 20 "$tmp/install.log")" || return 1
	[[ -d $tmp/root/opt/x/share/rxfer-bench ]] || fail "nothing installed" || return 1
	unit=$(find "$tmp/root" -name '*.service' -printf '%P\n')
}

@test "tarball: make install puts no unit, unless configure is told where" {
	mkdir "$tmp/tree"
	tar -C "$tmp/tree" --strip-components 1 -xf "$(only "$packages/deb/*.orig.tar.xz")"
	unit_of
	[[ -z $unit ]] || fail "$unit"
	unit_of --with-systemdsystemunitdir=/opt/units
	[[ $unit == opt/units/rxfer-bench.service ]] || fail "$unit"
	grep -qx 'ExecStart=/opt/x/bin/rxfer-bench server $OPTIONS' "$tmp/root/$unit"
}

# What is there of programs, but for those that make packages.
without_packagers() {
	local program path
	mkdir "$tmp/bin"
	for program in bash cat cp date dirname env id mkdir mktemp mv rm sed tar xz; do
		path=$(command -v "$program")
		ln -s "$path" "$tmp/bin/$program"
	done
}

@test "where what makes packages is missing, it is named, and nothing is made" {
	local kind
	without_packagers
	cp "$(only "$packages/deb/*.orig.tar.xz")" "$tmp/rxfer-bench-9.9.9.tar.xz"
	for kind in deb:dpkg-buildpackage rpm:rpmbuild; do
		# The script itself adds the folders of root's programs.
		PATH=$tmp/bin run -1 "$scripts/make-package" "${kind%:*}" "$tmp/rxfer-bench-9.9.9.tar.xz" "$tmp/out"
		[[ $output == *"no ${kind%:*} package without ${kind#*:}"*"scripts/deps package"* ]] || fail "$output"
		[[ -z $(find "$tmp/out" -type f 2>/dev/null) ]]
	done
}
