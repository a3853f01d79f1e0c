#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Links that change under a transfer, and strangers who write to its port: links_trial.py ONEHOP
[WORD].

Goal:   a transfer outlives what happens to a link (an MTU that falls, an interface that goes and
        comes back, a rule against our own
        output), says what stood in its way, and loses little to a flood of somebody else's
        datagrams.
Method: the built program at both ends of a lab link.
Bounds: each transfer ends by itself, with the right bytes; what is sent twice is bounded by what
        was on the way.
"""

import ctypes
import os
import socket
import struct
import subprocess
import sys
import time
from typing import Any

import trial  # noqa: F401  finds tests/lab
from program import ADDRESS_B, World, check, main

MB = 1_000_000


def ends_well(world, path, sender, receiver) -> tuple[Any, Any]:
    check(sender.code() == 0, f"send ends with 0, not {sender.process.returncode}: {sender.text()}")
    check(receiver.code() == 0,
          f"recv ends with 0, not {receiver.process.returncode}: {receiver.text()}")
    world.check_same(path)
    return sender.end(), receiver.end()


def test_an_mtu_that_falls_at_the_receiver_is_found_and_the_transfer_goes_on(onehop) -> None:
    for io in ("udp", "afxdp"):
        with World(onehop, 'rate = "200Mbit"\n') as world:
            path = world.file(60 * MB)
            receiver = world.receive("udp")
            sender = world.send(path, io)
            world.wait_bytes(20 * MB, receiver)
            world.run_on("b", "ip", "link", "set", "dev", "vb", "mtu", "1000")
            sent, _ = ends_well(world, path, sender, receiver)
            # What 300 ms carry before it is noticed, at 200 Mbit/s, and what stood in the queues.
            twice = sent["retransmitted_bytes_total"]
            check(twice <= 20 * MB, f"{io}: it does not send on into nothing: {twice}")


# What refuses a's datagrams: how it is set up, and how it goes. Both make sendmsg() fail with
# EPERM.
RULES = {
    "an nftables rule": (
        "nft add table inet t; nft 'add chain inet t out { type filter hook output priority 0; }'; "
        f"nft add rule inet t out ip daddr {ADDRESS_B} meta l4proto udp drop",
        "nft delete table inet t"), "an IPsec policy": (
            f"ip xfrm policy add src 10.111.0.1 dst {ADDRESS_B} proto udp dir out action block",
            "ip xfrm policy flush")
}


def test_a_rule_against_our_output_is_named_and_outlived(onehop) -> None:
    for name, (begin, end) in RULES.items():
        with World(onehop, 'rate = "200Mbit"\n') as world:
            path, receiver, sender = world.begin("udp", 60 * MB, 20 * MB)
            world.run_on("a", "sh", "-ec", begin)
            sender.wait_for(lambda sender=sender: "firewall" in sender.text(),
                            f"{name}: the line names the firewall")
            time.sleep(2)
            check(sender.process.poll() is None,
                  f"{name}: it waits for the rule to go: {sender.text()}")
            world.run_on("a", "sh", "-ec", end)
            sent, _ = ends_well(world, path, sender, receiver)
            twice = sent["retransmitted_bytes_total"]
            check(twice <= 5 * MB, f"{name}: what it held back was not lost: {twice}")


def replace_interface(world, host) -> None:
    """replace_interface takes the interface that carries the host's addresses away for a second and
    puts another one of its name there.

    It keeps the link address: else the peer's kernel asks for the new one seconds later only."""
    number, name = {"a": (1, "mv0"), "b": (2, "vb")}[host]
    index, mac = (world.run_on(host, "cat", f"/sys/class/net/{name}/{key}").strip()
                  for key in ("ifindex", "address"))
    world.run_on(host, "ip", "link", "del", name)
    time.sleep(1)
    if host == "a":
        world.run_on("a", "ip", "link", "add", "link", "va", "name", "mv0", "address", mac, "type",
                     "macvlan", "mode", "bridge")
    else:
        subprocess.run([
            "ip", "-n", f"{world.name}-b", "link", "add", "name", "vb", "address", mac, "type",
            "veth", "peer", "name", "mb", "netns", f"{world.name}-m"
        ], check=True)
        world.run_on("m", "ip", "link", "set", "mb", "master", "br0", "up")
    world.run_on(host, "ip", "addr", "add", f"10.111.0.{number}/24", "dev", name)
    world.run_on(host, "ip", "link", "set", "dev", name, "up")
    check(
        world.run_on(host, "cat", f"/sys/class/net/{name}/ifindex").strip() != index,
        f"{name} is another one")


def test_an_interface_that_comes_back_under_another_index_is_taken_again(onehop) -> None:
    for host, io_send, io_recv in (("a", "udp", "udp"), ("a", "afxdp", "udp"), ("b", "udp", "udp"),
                                   ("b", "udp", "afxdp")):
        with World(onehop, 'rate = "200Mbit"\n') as world:
            path = world.file(50 * MB)
            receiver = world.receive(io_recv)
            sender = world.send(path, io_send)
            world.wait_bytes(15 * MB, receiver)
            replace_interface(world, host)
            sent, _ = ends_well(world, path, sender, receiver)
            what = f"{io_send} to {io_recv}, {host}'s interface replaced"
            check(sent["link_source"] != "none",
                  f"{what}: the link is read again: {sent['link_source']}")
            check(sent["interface_drops"] is not None, f"{what}: drops are counted again")
            twice = sent["retransmitted_bytes_total"]
            check(twice <= 20 * MB,
                  f"{what}: little is sent into a link that is not there: {twice}")


def test_nothing_is_sent_into_a_link_that_is_down(onehop) -> None:
    with World(onehop, 'rate = "200Mbit"\n') as world:
        path, receiver, sender = world.begin("udp", 50 * MB, 15 * MB)
        for _ in range(3):
            world.run_on("a", "ip", "link", "set", "dev", "mv0", "down")
            time.sleep(1)
            world.run_on("a", "ip", "link", "set", "dev", "mv0", "up")
            time.sleep(0.3)
        sent, _ = ends_well(world, path, sender, receiver)
        refused = sent["tx_queue"]["refused_total"]
        check(refused == 0, f"no frame is offered to a link that is down: {refused}")
        # What the link below still had, and what the kernel drops until it knows the peer's link
        # address again.
        twice = sent["retransmitted_bytes_total"]
        check(twice <= 8 * MB, f"little is sent twice: {twice}")


def data_ports(world) -> tuple[int, int] | None:
    """data_ports gives the UDP ports of a's end and of b's, once both are connected to each
    other."""
    for line in world.run_on("b", "cat", "/proc/net/udp").splitlines()[1:]:
        local, remote = line.split()[1:3]
        if remote != "00000000:0000":
            return int(remote[-4:], 16), int(local[-4:], 16)
    return None


def forged_frame(world, ports) -> Any:
    """forged_frame is a datagram of 64 random bytes that seems to come from the sender's own
    socket."""
    macs = [
        bytes.fromhex(
            world.run_on(host, "cat", f"/sys/class/net/{name}/address").strip().replace(":", ""))
        for host, name in (("b", "vb"), ("a", "mv0"))
    ]
    body = os.urandom(64)
    addresses = socket.inet_aton("10.111.0.1"), socket.inet_aton(ADDRESS_B)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(body), 0, 0, 64, 17, 0, *addresses)
    total = sum(struct.unpack("!10H", ip))
    total = (total & 0xffff) + (total >> 16)
    ip = ip[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xffff) + ip[12:]
    return macs[0] + macs[1] + b"\x08\x00" + ip + struct.pack("!HHHH", *ports, 8 + len(body),
                                                              0) + body


def test_a_flood_of_forged_datagrams_costs_little(onehop) -> None:
    """100,000 a second, beside the shaper. What they cost depends on the machine: the speed without
    and with them is shown."""
    with World(onehop, 'rate = "500Mbit"\n') as world:
        path = world.file(60 * MB)
        speeds = {True: [], False: []}
        for has_flood in (False, True):
            receiver = world.receive("udp", "--on-exist", "overwrite")
            sender = world.send(path)
            flooding = None
            if has_flood:
                sender.wait_for(lambda: data_ports(world), "both ends are connected")
                frame = forged_frame(world, data_ports(world))
                flooding = subprocess.Popen(
                    world.on("m", sys.executable, __file__, "flood", "mb", frame.hex()))
            sent, _ = ends_well(world, path, sender, receiver)
            if flooding:
                flooding.kill()
                flooding.wait()
            speeds[has_flood].append(sent["goodput_bps"] / 1e6)
            twice = sent["retransmitted_bytes_total"]
            check(twice <= 10 * MB, f"the flood is no loss of the session's: {twice}")
        print(f"      Mbit/s without and with a flood: {speeds[False]} {speeds[True]}", flush=True)


def flood(interface, frame) -> None:
    """flood sends the frame 100,000 times a second, until it is killed."""
    libc = ctypes.CDLL(None, use_errno=True)

    class Piece(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    class Message(ctypes.Structure):
        _fields_ = [("name", ctypes.c_void_p), ("name_length", ctypes.c_uint),
                    ("pieces", ctypes.POINTER(Piece)), ("count", ctypes.c_size_t),
                    ("control", ctypes.c_void_p), ("control_length", ctypes.c_size_t),
                    ("flags", ctypes.c_int), ("sent", ctypes.c_uint)]

    batch, body = 100, ctypes.create_string_buffer(frame, len(frame))
    piece = Piece(ctypes.addressof(body), len(frame))
    messages = (Message * batch)(*(Message(None, 0, ctypes.pointer(piece), 1, None, 0, 0, 0)
                                   for _ in range(batch)))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind((interface, 0))
        began, sent = time.monotonic(), 0
        while True:
            if sent > (time.monotonic() - began) * 100_000:
                time.sleep(0.0005)
            else:
                sent += max(libc.sendmmsg(out.fileno(), messages, batch, 0), 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["flood"]:
        flood(sys.argv[2], bytes.fromhex(sys.argv[3]))
    sys.exit(main(globals()))
