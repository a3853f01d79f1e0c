#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Records what the kernel answers to nl80211 requests, for the parsers' tests. In the virtual
machine, under tests/vm/wifi:

    tests/vm/wifi python3 tests/vm/record_nl80211.py /out BUILD

Each file holds whole netlink messages one after another, as the kernel gave them. README.md of the
folder says which.
"""
import contextlib
import ctypes
import os
import platform
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME = 0x10, 3, 2
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
GET_INTERFACE, GET_STATION, GET_SURVEY = 5, 17, 50
ATTR_IFINDEX = 3


def attribute(kind, value) -> Any:
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def ask(family, command, body, is_dump) -> Iterator[Any]:
    """Whole messages of the answer."""
    flags = NLM_F_REQUEST | (NLM_F_DUMP if is_dump else NLM_F_ACK)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW,
                       socket.NETLINK_GENERIC if hasattr(socket, "NETLINK_GENERIC") else 16) as s:
        s.bind((0, 0))
        s.send(struct.pack("=IHHIIBBH", 20 + len(body), family, flags, 1, 0, command, 1, 0) + body)
        while True:
            data = s.recv(65536)
            while data:
                length, kind = struct.unpack_from("=IH", data)
                if kind == NLMSG_DONE:
                    return
                if kind == NLMSG_ERROR:
                    error = struct.unpack_from("=i", data, 16)[0]
                    if error:
                        sys.exit(f"command {command}: {os.strerror(-error)}")
                    return
                yield data[:length]
                data = data[(length + 3) & ~3:]


def family_of(message) -> Any:
    at = 20
    while at < len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        if kind == 1:
            return struct.unpack_from("=H", message, at + 4)[0]
        at += (length + 3) & ~3
    sys.exit("the kernel named no nl80211 family")


@contextlib.contextmanager
def namespace(name) -> Iterator[Any]:
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as home, open(f"/run/netns/{name}") as there:
        for fd in (there, home):
            if libc.setns(fd.fileno(), 0x40000000) != 0:
                sys.exit(f"setns {name}: {os.strerror(ctypes.get_errno())}")
            if fd is there:
                yield


def send(name, target, count) -> None:
    with namespace(name), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setblocking(False)
        for _ in range(count):
            with contextlib.suppress(BlockingIOError):
                s.sendto(b"x" * 1400, (target, 9))


def record(folder, name, netns, command, interface, is_dump) -> None:
    with namespace(netns):
        family = family_of(
            next(
                ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, attribute(CTRL_ATTR_FAMILY_NAME,
                                                                b"nl80211\0"), False)))
        index = socket.if_nametoindex(interface)
        messages = list(
            ask(family, command, attribute(ATTR_IFINDEX, struct.pack("=I", index)), is_dump))
    with open(os.path.join(folder, name), "wb") as out:
        for message in messages:
            out.write(message)
    print(f"{name}: {len(messages)} messages, ifindex {index}")


def main() -> None:
    folder = sys.argv[1]
    with namespace("ap"), open(os.path.join(folder, "family.bin"), "wb") as out:
        out.write(
            next(
                ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, attribute(CTRL_ATTR_FAMILY_NAME,
                                                                b"nl80211\0"), False)))
    for target in ("10.80.0.2", "10.80.0.3"):
        send("ap", target, 3)
        time.sleep(1)
        send("ap", target, 300)
    send("sta1", "10.80.0.1", 100)
    time.sleep(1)
    record(folder, "interface_ap.bin", "ap", GET_INTERFACE, "wlan0", False)
    record(folder, "interface_sta.bin", "sta1", GET_INTERFACE, "wlan1", False)
    record(folder, "stations_ap.bin", "ap", GET_STATION, "wlan0", True)
    record(folder, "stations_sta.bin", "sta1", GET_STATION, "wlan1", True)
    record(folder, "survey_ap.bin", "ap", GET_SURVEY, "wlan0", True)
    record(folder, "survey_sta.bin", "sta1", GET_SURVEY, "wlan1", True)
    medium = os.path.join(sys.argv[2], "tests/vm/medium")
    # A medium that loses every tenth frame.
    options = ["--width", "80", "--mcs", "3", "--loss", "100", "--seconds", "3"]
    with subprocess.Popen([medium, *options], stdout=subprocess.PIPE, text=True) as lossy:
        lossy.stdout.readline()
        send("ap", "10.80.0.3", 200)
        print(lossy.stdout.read())
    record(folder, "stations_ap_lossy.bin", "ap", GET_STATION, "wlan0", True)
    # An access point that announces a channel switch holds all frames back until it is there (2 s):
    # they wait in mac80211's queues. (A medium that stands still does not do: hwsim takes and
    # drops.)
    subprocess.run([
        "ip", "netns", "exec", "ap", "hostapd_cli", "-p", os.environ["HOSTAPD_CTRL"], "-i", "wlan0",
        "chan_switch", "20", "5200", "sec_channel_offset=-1", "center_freq1=5210", "bandwidth=80",
        "blocktx", "ht", "vht"
    ], check=True)
    send("ap", "10.80.0.2", 300)
    record(folder, "stations_ap_backlog.bin", "ap", GET_STATION, "wlan0", True)
    # The words of another reader of the same messages, to compare with.
    print(
        subprocess.run(["ip", "netns", "exec", "ap", "iw", "dev", "wlan0", "station", "dump", "-v"],
                       check=True, capture_output=True, text=True).stdout)
    print(
        subprocess.run(["ip", "netns", "exec", "ap", "iw", "dev", "wlan0", "survey", "dump"],
                       check=True, capture_output=True, text=True).stdout)
    print(
        subprocess.run(["ip", "netns", "exec", "ap", "iw", "dev"], check=True, capture_output=True,
                       text=True).stdout)
    with open(os.path.join(folder, "kernel"), "w", encoding="ascii") as out:
        out.write(platform.release() + "\n")


main()
