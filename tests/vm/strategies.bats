#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 25 s in a guest
#
# All strategies, in both modes, over real software RDMA of both kinds: each moves the right bytes, or
# is skipped for what the device, its kernel or the mode lacks, which the row says.

# What bench.bash sets and reads; awk in single quotes.
# shellcheck disable=SC2154,SC2034,SC2016
bats_require_minimum_version 1.5.0
load bench

LIMIT=120
more=()

# The MTU of the interface below, and of the one at the other end of it. Where rxe has on-demand paging,
# it moves packets of a page rightly, and messages of one packet, and no others.
mtu() {
	ip link set "v$DEVICE" mtu "$1" && ip link set "p$DEVICE" mtu "$1"
}

teardown() {
	mtu 1500
}

# Awk: a pattern of the reason why a row must be skipped; "" if it must not be.
no_mlx5='f("strategy") == "frwr-umr" ? "^frwr-umr takes mkeys of mlx5"'
no_paging='f("strategy") ~ /^odp/ ? DEVICE " has (no on-demand paging|on-demand paging; but no region over all)"'
no_windows='f("strategy") == "frwr" ? "frwr (takes memory windows of type 2|has no key for local use)"'
not_local='f("strategy") == "frwr" && (f("mode") == "direct" || f("op") == "send") ? "^frwr has no key for local use"'
open_sink='f("mode") == "direct" && f("op") == "read" && f("strategy") ~ /^(global|multi-wr|rcache)$/ ? "--unsafe-global-sink allows it"'

# every_strategy MODE OPERATIONS SIZE WHY...: with as many fragments as there are pages; of those that one of
# the conditions says, none.
every_strategy() {
	local mode=$1 ops=$2 size=$3 why='' one n
	for one in "${@:4}"; do
		why+="${one//DEVICE/\"$DEVICE\"} : "
	done
	why+='""'
	n=$(tr , ' ' <<<"$ops" | wc -w)
	ulimit -l unlimited # siw counts what root pins, too
	bench loopback -d "$DEVICE" --mode "$mode" --op "$ops" --strategy all -s "${size}k" --frags $(((size + 3) / 4)) --depth 4 -n 10 --warmup 2 \
		--verify --rnr-retry 0 --format csv "${more[@]}"
	ended 0
	rows "$out_file" $((n * ($(strategies) + 1))) "($why) == \"\" ? f(\"status\") == \"ok\" && f(\"reason\") == \"\" && \
		f(\"iterations\") == 10 && f(\"verify\") == \"yes\" : f(\"status\") == \"skipped\" && f(\"reason\") ~ ($why)"
}

@test "over RoCE: every strategy, operation and mode, verified; or skipped, and why" {
	local pages=$no_paging
	mtu 4400
	! ibv_devinfo -v -d "$DEVICE" | grep -q ODP_SUPPORT || pages=${no_paging/\~ \/^odp\//== \"odp-implicit\"}
	every_strategy direct read,write,send 16 "$no_mlx5" "$pages" "$not_local"
	every_strategy rpc read,write 16 "$no_mlx5" "$pages" "$not_local"
	every_strategy rpc send 2 "$no_mlx5" "$pages" "$not_local"
}

# bats test_tags=siw
@test "over iWARP: the same; where READs would leave memory open to the peer, they are skipped as well" {
	[[ -d /sys/class/infiniband/siw0 ]] || skip "there is no siw0: run this by scripts/rxe-vm --iwarp"
	DEVICE=siw0
	every_strategy direct read,write,send 16 "$no_mlx5" "$no_paging" "$no_windows" "$open_sink"
	more=(--inline 32) # see BUGS in the manual
	every_strategy rpc read,write,send 16 "$no_mlx5" "$no_paging" "$no_windows"
	rows "$out_file" 27 'f("status") == "skipped" || f("peer_strategy") == (f("op") == "read" ? "bounce" : "global")'
}
