#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What `--io auto` does where AF_XDP does not work out: auto_test.py ONEHOP [WORD].

Goal:   where frames of AF_XDP are lost it goes on over UDP by itself, says so, and the other end
        takes no part; a named --io does not. A kernel that copy transmission may panic is not sent
        to by it, and a named --io says so before it opens.
Method: namespaces with a bridge that drops what AF_XDP sends, told by its UDP checksum of zero; and
        type information of a kernel that has the fault, mounted over the real one's.
Bounds: none on time but that everything ends by itself.
"""

import sys
from pathlib import Path

from down_test import A, B, hold_frames, join_all, nft
from program import check, main
from spaces import Spaces

UNREACHABLE = 3


def lose_afxdp(spaces) -> None:
    """The kernel's sockets fill the checksum in; a sender's device of its own has to do it."""
    nft(spaces, "m", "add table bridge f",
        "add chain bridge f c { type filter hook forward priority 0 ; }",
        "add rule bridge f c udp checksum 0 counter drop")
    for letter in "ab":
        spaces.run_on(letter, "ethtool", "-K", "lan0", "tx", "off", "gro", "off")


def test_K1_a_path_that_loses_what_afxdp_sends_is_left_for_udp(onehop) -> None:
    with Spaces(onehop, "abm") as spaces:
        join_all(spaces)
        lose_afxdp(spaces)
        path = spaces.file(20_000_000)
        receiver = spaces.receive("b", "--listen", B, io="auto")
        sender = spaces.send("a", path, B)
        spaces.check_arrived(sender, receiver, path)
        check("within 2 s" in receiver.text() and "UDP" in receiver.text(),
              f"it says so, with the reason: {receiver.text()}")
        check(receiver.end()["io_used"] == "udp", "and the end event, too")
        # Keys and packet numbers go on: none was used twice, so the sender dropped no frame.
        end = sender.end()
        for key in ("replays_total", "auth_failures_total"):
            check(end.get(key, 0) == 0, f"{key}: {end}")


def test_a_named_afxdp_ends_with_3_there(onehop) -> None:
    with Spaces(onehop, "abm") as spaces:
        join_all(spaces)
        lose_afxdp(spaces)
        receiver = spaces.receive("b", "--listen", B, io="afxdp")
        sender = spaces.send("a", spaces.file(1000), B)
        for end in (receiver, sender):
            check(end.code() == UNREACHABLE, f"3, not {end.process.returncode}: {end.text()}")
        check("--io udp" in receiver.text(), f"it names the way out: {receiver.text()}")


def test_a_kernel_that_copy_transmission_may_panic(onehop) -> None:
    with Spaces(onehop, "abm") as spaces:
        join_all(spaces)
        spaces.run_on("b", "ethtool", "-K", "lan0", "gro", "off")
        btf = spaces.work / "btf"
        real = Path("/sys/kernel/btf/vmlinux").read_bytes()
        btf.write_bytes(real.replace(b"\0xsk_addrs\0", b"\0xsk_none_\0") + b"\0xsk_addr_head\0")
        program = spaces.work / "onehop"
        program.write_text("#!/bin/sh\nexec unshare -m sh -c 'mount --bind "
                           f"{btf} /sys/kernel/btf/vmlinux && exec {onehop} \"$@\"' sh \"$@\"\n")
        program.chmod(0o755)
        spaces.onehop = str(program)
        path = spaces.file(20_000_000)
        receiver = spaces.receive("b", "--listen", B, io="auto")
        spaces.check_arrived(spaces.send("a", path, B), receiver, path)
        check(receiver.end()["io_used"] == "udp", f"auto takes UDP: {receiver.end()['io_used']}")
        check("may panic" in receiver.end()["io_reason"], f"{receiver.end()['io_reason']}")
        # This machine has no such kernel, so what is warned of does not happen.
        receiver = spaces.receive("b", "--listen", B, io="afxdp")
        check("may panic" in receiver.text(), f"a named one warns first: {receiver.text()}")
        spaces.check_arrived(spaces.send("a", path, B), receiver, path)
        found = spaces.run_on("b", program, "doctor", "--iface", "lan0", "--json")
        check('"copy-transmit"' in found and "may panic" in found, "doctor has a row for it")
        check('"not tried: see copy-transmit"' in found, "and does not try it")


if __name__ == "__main__":
    sys.exit(main({name: value for name, value in globals().items() if "test_N10" not in name}))
