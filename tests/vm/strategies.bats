#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# takes 60 s in a guest
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
# it moves packets of a page rightly, and no others.
mtu() {
	ip link set "v$DEVICE" mtu "$1" && ip link set "p$DEVICE" mtu "$1"
}

teardown() {
	mtu 1500
}

# Awk: a pattern of the reason why a row must be skipped; "" if it must not be.
no_mlx5='f("strategy") == "frwr-umr" ? "^frwr-umr takes mkeys of mlx5"'
no_paging='f("strategy") ~ /^odp/ ? DEVICE " has (no on-demand paging|on-demand paging, but no region over all)"'
no_windows='f("strategy") == "frwr" ? "frwr (takes memory windows of type 2|has no key for local use)"'
not_local='f("strategy") == "frwr" && (f("mode") == "direct" || f("op") == "send") ? "^frwr has no key for local use"'
open_sink='f("mode") == "direct" && f("op") == "read" && f("strategy") ~ /^(global|multi-wr|rcache)$/ ? "--unsafe-global-sink allows it"'

# every_strategy WHY...: of each operation in each mode; of those that one of the conditions says, none.
every_strategy() {
	local why='' one
	for one; do
		why+="${one//DEVICE/\"$DEVICE\"} : "
	done
	why+='""'
	ulimit -l unlimited # siw counts what root pins, too
	bench loopback -d "$DEVICE" --mode direct,rpc --op read,write,send --strategy all -s 16k --frags 4 --depth 4 -n 10 --warmup 2 \
		--verify --rnr-retry 0 --format csv "${more[@]}"
	ended 0
	rows "$out_file" $((6 * ($(strategies) + 1))) "($why) == \"\" ? f(\"status\") == \"ok\" && f(\"reason\") == \"\" && \
		f(\"iterations\") == 10 && f(\"verify\") == \"yes\" : f(\"status\") == \"skipped\" && f(\"reason\") ~ ($why)"
}

@test "over RoCE: every strategy, operation and mode, verified; or skipped, and why" {
	mtu 4400
	if ibv_devinfo -v -d "$DEVICE" | grep -q ODP_SUPPORT; then
		every_strategy "$no_mlx5" "${no_paging/\~ \/^odp\//== \"odp-implicit\"}" "$not_local"
		rows "$out_file" 54 'f("strategy") != "odp" || f("status") == "ok"'
	else
		every_strategy "$no_mlx5" "$no_paging" "$not_local"
	fi
}

# bats test_tags=siw
@test "over iWARP: the same; where READs would leave memory open to the peer, they are skipped as well" {
	[[ -d /sys/class/infiniband/siw0 ]] || skip "there is no siw0: run this by scripts/rxe-vm --iwarp"
	DEVICE=siw0 more=(--inline 32) # see BUGS in the manual
	every_strategy "$no_mlx5" "$no_paging" "$no_windows" "$open_sink"
	rows "$out_file" 54 'f("mode") == "direct" || f("status") == "skipped" || f("peer_strategy") == (f("op") == "read" ? "bounce" : "global")'
}
