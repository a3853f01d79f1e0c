#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Which way a transfer takes when a VPN has taken the routes: route_test.py ONEHOP [WORD].

Goal:   --iface holds for the control connection and for the data, at both ends, without privilege;
        who is not reached learns which route was taken, and a way that leads around the peer's own
        subnet is said.
Method: two namespaces with a cable; in one of them a device as a tunnel that swallows all,
        with the policy rules that wg-quick and kill switches make.
Bounds: none on time but that everything ends by itself.
"""

import sys
from typing import Any

from program import check, main
from spaces import Spaces

UNREACHABLE, UNAVAILABLE = 3, 9
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env",
          "ONEHOP_STATE_DIR=")
A, B, A6, B6 = "10.5.0.1", "10.5.0.2", "fd05::1", "fd05::2"


def two_hosts(spaces) -> None:
    spaces.join("a", "lan0", "b", "lan0")
    for letter, address, address6 in (("a", A, A6), ("b", B, B6)):
        spaces.ip(letter, f"addr add {address}/24 dev lan0",
                  f"-6 addr add {address6}/64 dev lan0 nodad")


def take_all(spaces, letter) -> None:
    """take_all is a VPN: what bears no mark goes into the tunnel, the own subnet as well."""
    # A device that asks for no neighbour, and whose other end nobody reads.
    spaces.ip(letter, "link add wg0 type veth peer name wg0x", "link set wg0x up",
              "addr add 10.99.0.2/32 dev wg0", "link set wg0 arp off up",
              "route add default dev wg0 table 51820",
              "rule add not fwmark 51820 table 51820 priority 100",
              "-6 route add default dev wg0 table 51820",
              "-6 rule add not fwmark 51820 table 51820 priority 100")


def test_iface_holds_for_both_connections_of_a_sender(onehop) -> None:
    with Spaces(onehop, "ab") as spaces:
        two_hosts(spaces)
        take_all(spaces, "a")
        path = spaces.file(3_000_000)
        for address, io, before in ((B, "udp", ()), (B, "udp", NOBODY), (B6, "udp", ()),
                                    (B, "afxdp", ())):
            receiver = spaces.receive("b")
            sender = spaces.send("a", path, address, "--iface", "lan0", io=io, before=before)
            spaces.check_arrived(sender, receiver, path)
            check("wg0" not in sender.text(), f"no word of a way not taken: {sender.text()}")


def test_iface_holds_for_both_connections_of_a_receiver(onehop) -> None:
    with Spaces(onehop, "ab") as spaces:
        two_hosts(spaces)
        take_all(spaces, "b")
        path = spaces.file(3_000_000)
        for address, io in ((B, "udp"), (B6, "udp"), (B, "afxdp")):
            receiver = spaces.receive("b", "--iface", "lan0",
                                      *(("--listen", B) if io == "afxdp" else ()), io=io)
            spaces.check_arrived(spaces.send("a", path, address), receiver, path)


def test_a_receiver_with_iface_takes_an_interface_that_was_made_anew(onehop) -> None:
    with Spaces(onehop, "ab") as spaces:
        two_hosts(spaces)
        path = spaces.file(1_000_000)
        receiver = spaces.receive("b", "--iface", "lan0")
        spaces.ip("a", "link del lan0")
        two_hosts(spaces)
        spaces.check_arrived(spaces.send("a", path, B), receiver, path)


def test_N10_iface_made_anew_under_a_transfer_is_taken_again(onehop) -> None:
    for io in ("udp", "afxdp"):
        with Spaces(onehop, "ab") as spaces:
            two_hosts(spaces)
            path = spaces.file(40_000_000)
            receiver = spaces.receive("b", "--iface", "lan0")
            sender = spaces.send("a", path, B, "--iface", "lan0", "--max-rate", "100Mbit", io=io)
            spaces.wait_bytes(sender, "b", "lan0", 5_000_000)
            # With the one end goes the other one, so both are new.
            spaces.ip("a", "link del lan0")
            two_hosts(spaces)
            spaces.check_arrived(sender, receiver, path)


def unreached(spaces, *options) -> Any:
    sender = spaces.send("a", spaces.file(1000), B, "--wait", "1", *options)
    check(sender.code() == UNREACHABLE,
          f"nobody is reached: 3, not {sender.process.returncode}: {sender.text()}")
    return sender.events("error")[0]


def test_who_is_not_reached_is_told_the_route_that_was_taken(onehop) -> None:
    with Spaces(onehop, "ab") as spaces:
        two_hosts(spaces)
        take_all(spaces, "a")
        error = unreached(spaces)
        for word in ("wg0", "51820", "lan0", "10.5.0.0/24"):
            check(word in error["cause"], f"the cause names {word}: {error}")
        check("--iface lan0" in error["hint"], f"the remedy: {error}")
        # with nobody there the way that was asked for is named, and no other
        error = unreached(spaces, "--iface", "lan0")
        check("lan0" in error["cause"] and "wg0" not in error["cause"], f"the way taken: {error}")
        # a gateway is named, too
        spaces.ip("a", "route flush table 51820", f"addr add 10.6.0.1/24 dev lan0",
                  "route add 10.5.0.2/32 via 10.6.0.9 dev lan0 table 51820")
        error = unreached(spaces)
        check("10.6.0.9" in error["cause"] and "51820" in error["cause"], f"a gateway: {error}")


def warnings(end) -> list[str]:
    return [line for line in end.text().splitlines() if "10.5.0.0/24" in line]


def test_a_way_around_the_own_subnet_is_said(onehop) -> None:
    with Spaces(onehop, "ab") as spaces:
        two_hosts(spaces)
        # This tunnel leads there in the end.
        spaces.join("a", "wg0", "b", "wg0")
        spaces.ip("a", "addr add 10.99.0.2/24 dev wg0", "route add default dev wg0 table 51820",
                  "rule add not fwmark 51820 table 51820 priority 100",
                  "rule add table main suppress_prefixlength 0 priority 50")
        spaces.ip("b", "addr add 10.99.0.1/24 dev wg0")
        path = spaces.file(1_000_000)

        def warned() -> Any:
            receiver = spaces.receive("b")
            sender = spaces.send("a", path, B)
            spaces.check_arrived(sender, receiver, path)
            return warnings(sender), warnings(receiver)

        # As wg-quick makes it, the tunnel leaves the subnet alone.
        check(warned() == ([], []), "a VPN that leaves the subnet alone is no matter")
        spaces.ip("a", "rule del priority 50")
        for letter in "ab":
            for name in ("all", "lan0", "wg0"):
                spaces.run_on(letter, "sysctl", "-qw", f"net.ipv4.conf.{name}.rp_filter=0")
        ours, theirs = warned()
        check(len(ours) == 1, f"one warning: {ours}")
        for word in ("wg0", "lan0", "--iface lan0", "51820"):
            check(word in ours[0], f"it names {word}: {ours}")
        # The receiver's way back takes the tunnel, to an address of the subnet.
        spaces.ip("a", "rule del priority 100")
        spaces.ip("b", "route add 10.5.0.1/32 dev wg0")
        ours, theirs = warned()
        check(ours == [] and len(theirs) == 1, f"the receiver says it: {theirs}")
        for word in ("wg0", "lan0", "--iface lan0"):
            check(word in theirs[0], f"it names {word}: {theirs}")


if __name__ == "__main__":
    sys.exit(main(globals()))
