# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What more than one script needs. Source it first thing:
#
#	. "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

prog=${0##*/}
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034 # for those who source this
top=${scripts%/*}
die_status=1
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# die MESSAGE...: one line on stderr (what failed, why, what to do), exit $die_status.
die() {
	printf '%s: %s\n' "$prog" "$*" >&2
	exit "$die_status"
}

say() {
	printf '%s: %s\n' "$prog" "$*" >&2
}

have() {
	command -v "$1" >/dev/null 2>&1
}

is_root() {
	[[ $(id -u) == 0 ]]
}

# kernel_package NAME: the package with a kernel in it that a Debian package NAME stands for now
# (linux-image-amd64 -> linux-image-6.1.0-57-amd64). Fails where apt knows no such package.
kernel_package() {
	local name=$1 next
	while [[ $name != linux-image-[0-9]* ]]; do
		next=$(apt-cache depends "$name" 2>/dev/null | awk '/ Depends: linux-image-/ { print $2; exit }')
		[[ -n $next ]] || return 1
		name=$next
	done
	[[ -n $(apt-cache show --no-all-versions "$name" 2>/dev/null) ]] || return 1
	echo "$name"
}

# wait_for SECONDS COMMAND...: until the command succeeds; fails when it has not in that time.
wait_for() {
	local i tries=$(($1 * 10))
	shift
	for ((i = 0; i < tries; i++)); do
		"$@" && return 0
		sleep 0.1
	done
	return 1
}

# rdma_active DEVICE: its first port is up.
rdma_active() {
	grep -qs ACTIVE "/sys/class/infiniband/$1/ports/1/state"
}

# rdma_has_gid DEVICE ADDRESS: the port's table has the GID that belongs to the IPv4 address.
rdma_has_gid() {
	local a b c d gid
	IFS=. read -r a b c d <<<"$2"
	printf -v gid 'ffff:%02x%02x:%02x%02x' "$a" "$b" "$c" "$d"
	grep -qs "$gid" "/sys/class/infiniband/$1/ports/1/gids/"*
}

# veth_pair NAME: two virtual Ethernet devices joined back to back, vNAME and pNAME, both up.
veth_pair() {
	ip link add "v$1" type veth peer name "p$1" && ip link set "v$1" up && ip link set "p$1" up
}

# rdma_on_veth NAME TYPE ADDRESS: a software RDMA device on a veth pair of its own.
# An address given before the RDMA link exists can leave rdma_cm without a usable GID (ENODEV):
# the link first, the address second, then wait for what follows from both.
rdma_on_veth() {
	veth_pair "$1" &&
		rdma link add "$1" type "$2" netdev "v$1" &&
		ip addr add "$3/24" dev "v$1" &&
		wait_for 5 rdma_active "$1"
}
