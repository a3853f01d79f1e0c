#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Samples one counter of an interface of the namespace it runs in: `sampler.py rx|backlog|udp IFACE
PERIOD_SECONDS OUT`.

rx is the interface's received bytes, Ethernet headers included in every mode; backlog is the root
qdisc's bytes, from the same netlink dump that `tc -s qdisc show` prints (a fork of tc per sample
would cost the measured machine more than the transfer); udp is the UDP datagrams that the
namespace's sockets were given, whatever the interface. Keeps rows in memory and writes
`monotonic_ns value` lines at SIGTERM. Runs as a process of its own.
"""

import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

RTM_GETQDISC = 38
NLM_F_REQUEST_DUMP = 0x301
TCA_STATS2, TCA_STATS_QUEUE = 7, 3
TC_H_ROOT = 0xFFFFFFFF
RTM_GETLINK, IFLA_XDP, IFLA_XDP_ATTACHED, XDP_ATTACHED_NATIVE = 18, 43, 2, 1
ETHERNET_HEADER_BYTES = 14
# how often to ask whether a program is attached: it comes before the data and goes after it
XDP_LOOK_SECONDS = 0.02
ROWS_MAX = 2_000_000


def attributes(data) -> Iterator[Any]:
    at = 0
    while at + 4 <= len(data):
        size, kind = struct.unpack_from("=HH", data, at)
        if size < 4:
            return
        yield kind & 0x3FFF, data[at + 4 : at + size]
        at += (size + 3) & ~3


class QdiscReader:
    def __init__(self, interface) -> None:
        self._index = socket.if_nametoindex(interface)
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)

    def read(self) -> Any:
        body = struct.pack("=BxxxiIII", 0, self._index, 0, 0, 0)
        self._socket.send(
            struct.pack("=IHHII", 16 + len(body), RTM_GETQDISC, NLM_F_REQUEST_DUMP, 1, 0) + body)
        backlog = 0
        while True:
            data = self._socket.recv(1 << 17)
            at = 0
            while at + 16 <= len(data):
                size, kind = struct.unpack_from("=IH", data, at)
                if kind in (2, 3):  # NLMSG_ERROR, NLMSG_DONE
                    return backlog
                index, _, parent = struct.unpack_from("=iII", data, at + 20)
                if index == self._index and parent == TC_H_ROOT:
                    backlog = self._backlog(data[at + 36 : at + size], backlog)
                at += (size + 3) & ~3

    @staticmethod
    def _backlog(data, otherwise) -> Any:
        for kind, value in attributes(data):
            if kind == TCA_STATS2:
                for inner, stats in attributes(value):
                    if inner == TCA_STATS_QUEUE:
                        return struct.unpack_from("=II", stats)[1]
        return otherwise


class RxReader:
    """Received bytes with Ethernet headers. veth counts 1514 bytes for a full frame, but 1500 once
    a native XDP program is attached (seen on Linux 6.18); without this correction every AF_XDP rate
    would read 0.9 % low."""

    def __init__(self, interface) -> None:
        base = f"/sys/class/net/{interface}/statistics/"
        self._bytes, self._packets = (os.open(base + name, os.O_RDONLY)
                                      for name in ("rx_bytes", "rx_packets"))
        self._index = socket.if_nametoindex(interface)
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._headers_bytes = 0
        self._is_native = self._has_native_program()
        self._packets_seen = int(os.pread(self._packets, 32, 0))
        # A thread, because the question takes the kernel's rtnl lock and can wait 50 ms for it
        # while a namespace goes.
        threading.Thread(target=self._follow_program, daemon=True).start()

    def read(self) -> Any:
        packets, received = int(os.pread(self._packets, 32, 0)), int(os.pread(self._bytes, 32, 0))
        if self._is_native:
            self._headers_bytes += (packets - self._packets_seen) * ETHERNET_HEADER_BYTES
        self._packets_seen = packets
        return received + self._headers_bytes

    def _follow_program(self) -> None:
        while True:
            self._is_native = self._has_native_program()
            time.sleep(XDP_LOOK_SECONDS)

    def _has_native_program(self) -> bool:
        body = struct.pack("=BxHiII", 0, 0, self._index, 0, 0)
        self._socket.send(struct.pack("=IHHII", 16 + len(body), RTM_GETLINK, 1, 1, 0) + body)
        data = self._socket.recv(1 << 17)
        for kind, value in attributes(data[32:]):
            if kind == IFLA_XDP:
                return any(inner == IFLA_XDP_ATTACHED and state[0] == XDP_ATTACHED_NATIVE
                           for inner, state in attributes(value))
        return False


class UdpReader:
    def __init__(self) -> None:
        self._file = os.open("/proc/thread-self/net/snmp", os.O_RDONLY)

    def read(self) -> Any:
        lines = os.pread(self._file, 1 << 14, 0).decode().splitlines()
        names, values = (line.split() for line in lines if line.startswith("Udp:"))
        return int(values[names.index("InDatagrams")])


def main() -> None:
    what, interface, period, out = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
    rows, is_ended = [], []
    signal.signal(signal.SIGTERM, lambda *_: is_ended.append(True))
    if what in ("rx", "udp"):
        read = RxReader(interface).read if what == "rx" else UdpReader().read
        # One ms is below a scheduler slice on a busy core; the reader uses about 3 % of a core.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    else:
        read = QdiscReader(interface).read
    next_at = time.monotonic()
    while not is_ended and len(rows) < ROWS_MAX:
        value = read()
        rows.append((time.monotonic_ns(), value))
        next_at = max(next_at + period, time.monotonic() - period)
        time.sleep(max(0.0, next_at - time.monotonic()))
    with open(out + ".tmp", "w") as file:
        file.writelines(f"{at} {value}\n" for at, value in rows)
    os.rename(out + ".tmp", out)


if __name__ == "__main__":
    main()
