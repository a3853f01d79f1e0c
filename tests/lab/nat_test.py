#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A sender behind an address translation (NAT), as of a container: nat_test.py ONEHOP [WORD].

Goal:   whatever port or address its frames get on the way, the receiver finds it and the transfer
        goes, over every port that a receiver may use; where one cannot follow, the error says that
        there is NAT. Another port in the middle does not end the transfer.
Method: a namespace that masquerades between two others, by nftables, with ports kept where they are
        free and drawn at random.
Bounds: 3 of 3 runs each.
"""

import sys

from program import check, main
from spaces import Spaces

UNREACHABLE = 3
RUNS = 3
A, B, N = "192.168.9.2", "10.5.0.2", "10.5.0.1"


def join_all(spaces, *rules) -> None:
    spaces.join("n", "in0", "a", "eth0")
    spaces.join("n", "out0", "b", "lan0")
    spaces.ip("a", f"addr add {A}/24 dev eth0", "route add default via 192.168.9.1",
              "-6 addr add fd09::2/64 dev eth0 nodad", "-6 route add default via fd09::1")
    spaces.ip("n", "addr add 192.168.9.1/24 dev in0", f"addr add {N}/24 dev out0",
              "-6 addr add fd09::1/64 dev in0 nodad", "-6 addr add fd05::1/64 dev out0 nodad")
    spaces.ip("b", f"addr add {B}/24 dev lan0", "-6 addr add fd05::2/64 dev lan0 nodad")
    spaces.run_on("n", "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
    spaces.run_on("n", "nft", "add table inet nat")
    spaces.run_on("n", "nft", "add chain inet nat post { type nat hook postrouting priority 100; }")
    for rule in rules:
        spaces.run_on("n", "nft", f"add rule inet nat post oif out0 {rule}")


def runs(onehop, rule, io="udp", address=B, runs=RUNS) -> None:
    with Spaces(onehop, "anb") as spaces:
        join_all(spaces, rule)
        path = spaces.file(3_000_000)
        for _ in range(runs):
            receiver = spaces.receive("b", *(("--listen", address) if io == "afxdp" else ()), io=io)
            spaces.check_arrived(spaces.send("a", path, address), receiver, path)
            if "random" in rule:
                check("NAT" in receiver.text(), f"the receiver says what it met: {receiver.text()}")


def test_N8_a_sender_behind_nat_that_keeps_ports(onehop) -> None:
    runs(onehop, "masquerade")


def test_N8_a_sender_behind_nat_with_ports_drawn_at_random(onehop) -> None:
    for io in ("udp", "afxdp", "auto"):
        runs(onehop, "masquerade random", io)


def test_N8_a_sender_behind_nat_over_ipv6(onehop) -> None:
    runs(onehop, "masquerade random", address="fd05::2", runs=1)


# The control connection and the data leave by different addresses of the pool.
POOL = ("ip protocol tcp snat ip to 10.5.0.1",
        "ip protocol udp snat ip to 10.5.0.9:2000-3000 random")


def test_N8_a_sender_behind_nat_with_another_address_for_its_data(onehop) -> None:
    with Spaces(onehop, "anb") as spaces:
        join_all(spaces, *POOL)
        spaces.ip("n", "addr add 10.5.0.9/24 dev out0")
        path = spaces.file(3_000_000)
        receiver = spaces.receive("b")
        spaces.check_arrived(spaces.send("a", path, B), receiver, path)
        # A raw port knows no link address of another one.
        receiver = spaces.receive("b", "--listen", B, io="afxdp")
        sender = spaces.send("a", path, B)
        check(receiver.code() == UNREACHABLE, f"3: {receiver.text()}")
        check("NAT" in receiver.text() and "--io udp" in receiver.text(),
              f"it names NAT and the way out: {receiver.text()}")
        check(sender.code() == UNREACHABLE, f"3: {sender.text()}")


def test_N8_a_flow_that_gets_another_port_in_the_middle(onehop) -> None:
    """Stateless, because only conntrack(8) makes the kernel's own NAT forget a flow."""
    with Spaces(onehop, "anb") as spaces:
        join_all(spaces)
        spaces.ip("b", "route add 192.168.9.0/24 via 10.5.0.1")
        path = spaces.file(60_000_000)
        receiver = spaces.receive("b")
        sender = spaces.send("a", path, B, "--max-rate", "200Mbit")
        spaces.wait_bytes(receiver, "b", "lan0", 8_000_000)
        port = spaces.run_on("a", "ss", "-uanH").split()[3].rsplit(":", 1)[1]
        ours, back = "udp dport 7411 udp sport set 2001", f"udp dport 2001 udp dport set {port}"
        for chain, hook, rule in (("out", "postrouting", f"oif out0 {ours}"),
                                  ("back", "prerouting", f"iif out0 {back}")):
            spaces.run_on("n", "nft", f"add chain inet nat {chain} {{ type filter hook {hook} "
                          "priority -300; }")
            spaces.run_on("n", "nft", f"add rule inet nat {chain} {rule}")
        spaces.check_arrived(sender, receiver, path)
        check("2001" in receiver.text(), f"the receiver says what it met: {receiver.text()}")


if __name__ == "__main__":
    sys.exit(main(globals()))
