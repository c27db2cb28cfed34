# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Of scripts/rxe-vm, which sources it: the guest's kernel, found or fetched, never installed. What is
# made in the cache is made by in_cache, in the scratch folder $tmp.
#
# --kernel newer takes a backport of Debian's for the release after this one. Its list of packages is kept
# apart from this machine's, by a configuration of apt's own in APT_CONFIG; all that says where from is
# what this machine's lists come from.
# shellcheck disable=SC2154 # cache, tmp, newer, iwarp are rxe-vm's

kernel_root='' release='' siw=''

# ---- fetching -----------------------------------------------------------------------------------

# kernel_parts PACKAGE: it and the packages it is split into, if it is.
kernel_parts() {
	local todo=("$1") seen=' ' name
	while ((${#todo[@]})); do
		name=${todo[0]} todo=("${todo[@]:1}")
		[[ $seen != *" $name "* ]] || continue
		seen+="$name "
		echo "$name"
		mapfile -t -O ${#todo[@]} todo < <(apt-cache depends "$name" |
			awk '/ Depends: linux-(image|binary|modules|base)-[0-9]/ { print $2 }')
	done
}

# The list of packages may be older than what the archive still has: renewed once.
download_kernel() {
	local parts why
	mapfile -t parts < <(kernel_parts "$1")
	cd "$tmp" || return
	apt_get download "${parts[@]}" && return
	if is_root && apt_get update; then
		mapfile -t parts < <(kernel_parts "$(kernel_package "$1" || echo "$1")")
		apt_get download "${parts[@]}" && return
	fi
	why=$(grep -h '^E:' "$tmp/apt.log" | head -n 1)
	die "cannot fetch the kernel ${parts[*]}: ${why:-apt-get failed}; run 'apt-get update' as root," \
		"or name a kernel that is here in RXFER_VM_KERNEL"
}

# As root apt would drop its rights to a user who must not write here, and complain about it.
apt_get() {
	timeout 600 apt-get -qq -o APT::Sandbox::User=root "$@" </dev/null >>"$tmp/apt.log" 2>&1
}

# unpack_kernel PACKAGE FOLDER
unpack_kernel() {
	local deb root=$tmp/root
	[[ ! -e $2 ]] || return 0
	say "fetching the kernel $1 (once)"
	download_kernel "$1"
	for deb in "$tmp"/*.deb; do
		dpkg-deb -x "$deb" "$root" || die "cannot unpack ${deb##*/}: is the disk full? ($cache)"
	done
	[[ -d $root/lib/modules ]] || ln -s usr/lib "$root/lib"
	link_images "$root"
	make_modules_dep "$root"
	mv -T "$root" "$2"
}

# Newer packages have the kernel beside its modules, and leave it to their scripts to put it into /boot.
link_images() {
	local folder image
	for folder in "$1"/lib/modules/*; do
		image=boot/vmlinuz-${folder##*/}
		[[ -e $folder/vmlinuz && ! -e $1/$image ]] || continue
		mkdir -p "$1/boot"
		ln -s "../lib/modules/${folder##*/}/vmlinuz" "$1/$image"
	done
}

make_modules_dep() {
	local folder
	for folder in "$1"/lib/modules/*; do
		[[ -e $folder/modules.dep.bin ]] || depmod -b "$1" "${folder##*/}" 2>/dev/null ||
			die "depmod failed for $folder: run 'depmod -b $1 ${folder##*/}' where it may write"
	done
}

# own_lists SUITE: from here on apt knows that suite only, in a state folder of its own.
own_lists() {
	local mirror
	# shellcheck disable=SC2016 # apt's own words
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' |
		head -n 1)
	[[ -n $mirror ]] || die "apt has no lists of a Debian archive, where a newer kernel is: run" \
		"'apt-get update' as root, or name a kernel in RXFER_VM_KERNEL"
	mkdir -p "$tmp"/apt/{lists/partial,cache/archives/partial}
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $1 main" >"$tmp/apt/sources"
	cat >"$tmp/apt/conf" <<-CONF
		Dir::Etc::SourceList "$tmp/apt/sources";
		Dir::Etc::SourceParts "/dev/null";
		Dir::Etc::PreferencesParts "/dev/null";
		Dir::State::Lists "$tmp/apt/lists";
		Dir::Cache "$tmp/apt/cache";
	CONF
	export APT_CONFIG=$tmp/apt/conf
}

# unpack_newer NOTE: into a folder of the cache, the name of which goes into the file NOTE.
unpack_newer() {
	local suite=trixie-backports name
	[[ ! -s $1 ]] || return 0
	own_lists "$suite"
	if ! apt_get update || ! name=$(kernel_package linux-image-amd64); then
		die "cannot fetch the list of $suite: $(grep -hm1 '^[EW]:' "$tmp/apt.log" || echo "it has no kernel")"
	fi
	unpack_kernel "$name" "$cache/${name#linux-image-}"
	echo "${name#linux-image-}" >"$1"
}

# ---- finding ------------------------------------------------------------------------------------

# The newest of a folder that has modules too.
use_folder() {
	local image
	kernel_root=$1
	while read -r image; do
		release=${image##*/vmlinuz-}
		[[ ! -d $kernel_root/lib/modules/$release ]] || return 0
	done < <(find -L "$kernel_root/boot" -maxdepth 1 -name 'vmlinuz-*' 2>/dev/null | sort -rV)
	die "no kernel in $kernel_root: it must have boot/vmlinuz-RELEASE and lib/modules/RELEASE"
}

# Asking apt takes a second: its answer for the default is good until its lists change.
default_package() {
	local note=$cache/default-kernel
	if [[ ! $note -nt /var/lib/apt/lists || ! -s $note ]]; then
		kernel_package linux-image-amd64 >"$note.$$" || true
		mv "$note.$$" "$note"
	fi
	cat "$note"
}

newest_cached() {
	find "$cache" -maxdepth 1 -regex '.*/[0-9.]+-[0-9]+-amd64' -printf '%f\n' | sort -V | tail -n 1
}

use_package() {
	local name
	if [[ -z ${1-} ]]; then
		name=$(default_package)
		# No package lists here, but a kernel from earlier: as good.
		[[ -n $name ]] || name=$(newest_cached)
		[[ -n $name ]] || die "apt knows no linux-image-amd64: run 'apt-get update' as root," \
			"or name a kernel in RXFER_VM_KERNEL"
	elif [[ -d $cache/${1#linux-image-}/boot ]]; then
		name=$1
	elif [[ $1 == linux-* ]]; then
		name=$(kernel_package "$1") || die "RXFER_VM_KERNEL: apt knows no package $1"
	else
		name=$(kernel_package "linux-image-$1") ||
			die "RXFER_VM_KERNEL: '$1' is no folder, and apt knows no package linux-image-$1"
	fi
	name=${name#linux-image-}
	[[ -e $cache/$name ]] || in_cache unpack_kernel "linux-image-$name" "$cache/$name"
	use_folder "$cache/$name"
}

# What was fetched once is kept: who wants a newer one yet removes the note.
use_newer() {
	local note=$cache/newer-kernel
	[[ -s $note ]] || in_cache unpack_newer "$note"
	use_folder "$cache/$(cat "$note")"
}

find_kernel() {
	local wanted=${RXFER_VM_KERNEL-}
	if [[ -n $newer ]] && have apt-get && have dpkg-deb; then
		use_newer
	elif [[ -d $wanted ]]; then
		use_folder "$(realpath "$wanted")"
		make_modules_dep "$kernel_root"
	elif [[ $wanted == */* ]]; then
		die "RXFER_VM_KERNEL: there is no folder $wanted"
	elif have apt-get && have dpkg-deb; then
		use_package "$wanted"
	else
		die "this is no Debian, whose kernel would be fetched: name a folder with boot/vmlinuz-*" \
			"and lib/modules/* in RXFER_VM_KERNEL"
	fi
	has_module rdma_rxe || die "the kernel $release in $kernel_root has no rdma_rxe: name another in" \
		"RXFER_VM_KERNEL"
}

has_module() {
	modinfo -b "$kernel_root" -k "$release" "$1" >/dev/null 2>&1
}

# Debian builds no siw; its source package and headers do it in seconds.
build_siw() {
	local headers=/usr/src/linux-headers-$release version source
	version=$(cut -d. -f1,2 <<<"$release")
	source=/usr/src/linux-source-$version.tar.xz
	[[ ! -e $1 ]] || return 0
	[[ -d $headers ]] || die "siw must be built for $release: install the package linux-headers-$release"
	[[ -e $source ]] || die "siw must be built for $release: install the package linux-source-$version"
	tar -C "$tmp" --strip-components=4 -xf "$source" --wildcards '*/drivers/infiniband/sw/siw/*'
	make -s -C "$headers" M="$tmp/siw" CONFIG_RDMA_SIW=m modules >"$tmp/log" 2>&1 ||
		die "siw does not build for $release: $(grep -m1 -i error "$tmp/log" || echo 'make failed')"
	strip --strip-debug "$tmp/siw/siw.ko"
	mv "$tmp/siw/siw.ko" "$1"
}

find_siw() {
	[[ -n $iwarp ]] || return 0
	siw=siw
	has_module siw && return
	siw=$cache/siw-$release.ko
	[[ -e $siw ]] || in_cache build_siw "$siw"
}
