#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A radio medium for mac80211_hwsim in user space: rate, loss and standstill, which hwsim itself
has not.

    tests/vm/medium.py RATE_MBIT LOSS_PERMILLE SECONDS      RATE_MBIT 0: nothing is sent on, and
    queues fill

It registers with hwsim's netlink family, is handed every frame that a radio sends, keeps the medium
busy for the frame's time, gives it to the other radios and tells the sender whether it was
acknowledged. Frames are lost by their number (every 1000 / LOSS_PERMILLE-th unicast data frame), so
that a run can be counted out. When it ends, hwsim's own perfect medium is back. In the first
network namespace, as root. Prints how many data frames were acknowledged and lost.
"""
import select
import socket
import struct
import sys
import time
from collections.abc import Iterator
from typing import Any

GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 0x10, 3
SOL_NETLINK, NETLINK_NO_ENOBUFS = 270, 5
REGISTER, FRAME, TX_INFO = 1, 2, 3
ADDR_RECEIVER, ADDR_TRANSMITTER, ATTR_FRAME, FLAGS = 1, 2, 3, 4
RX_RATE, SIGNAL, ATTR_TX_INFO, COOKIE = 5, 6, 7, 8
NO_ACK, STAT_ACK = 2, 4
OVERHEAD_S = 100e-6  # preamble, spaces and acknowledgement of a frame


def attribute(kind, value) -> Any:
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def attributes(data) -> Any:
    out = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            break
        out[kind & 0x3fff] = data[4:length]
        data = data[(length + 3) & ~3:]
    return out


class Medium:
    def __init__(self, rate_mbit, loss_permille) -> None:
        self.rate, self.loss = rate_mbit * 1e6, loss_permille
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        # Full, the socket drops frames as any medium does. An error would end this program.
        self.socket.setsockopt(SOL_NETLINK, NETLINK_NO_ENOBUFS, 1)
        self.socket.bind((0, 0))
        self.send(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, attribute(2, b"MAC80211_HWSIM\0"))
        self.family = struct.unpack("=H", attributes(self.socket.recv(65536)[20:])[1])[0]
        self.send(self.family, REGISTER, b"")
        self.radios, self.data_frames, self.acked, self.lost = set(), 0, 0, 0

    def send(self, family, command, body) -> None:
        self.socket.send(
            struct.pack("=IHHIIBBH", 20 + len(body), family, 1, 0, 0, command, 1, 0) + body)

    def run(self, seconds) -> None:
        end = free_at = time.monotonic()
        end += seconds
        pending: list[Any] = []
        while (now := time.monotonic()) < end:
            wait = min(end, free_at if pending else end) - now
            if select.select([self.socket], [], [], max(wait, 0))[0]:
                pending += self.receive()
            while pending and self.rate > 0 and free_at <= time.monotonic():
                frame = pending.pop(0)
                free_at = max(
                    free_at,
                    time.monotonic() - 0.01) + len(frame[ATTR_FRAME]) * 8 / self.rate + OVERHEAD_S
                self.carry(frame)

    def receive(self) -> Iterator[Any]:
        data = self.socket.recv(65536)
        while len(data) >= 20:
            length, kind = struct.unpack_from("=IH", data)
            if kind == self.family and data[16] == FRAME:
                frame = attributes(data[20:length])
                self.radios.add(frame[ADDR_TRANSMITTER])
                yield frame
            data = data[(length + 3) & ~3:]

    def carry(self, frame) -> None:
        payload, flags = frame[ATTR_FRAME], struct.unpack("=I", frame[FLAGS])[0]
        is_unicast = payload[4] & 1 == 0
        is_lost = False
        if is_unicast and payload[0] & 0x0c == 0x08:
            self.data_frames += 1
            is_lost = self.loss > 0 and self.data_frames * self.loss % 1000 < self.loss
            self.lost += is_lost
            self.acked += not is_lost
        # Every radio that has sent is on the air; hwsim drops frames for a radio on another
        # channel.
        if not is_lost:
            for radio in self.radios - {frame[ADDR_TRANSMITTER]}:
                self.send(
                    self.family, FRAME,
                    attribute(ADDR_RECEIVER, radio) + attribute(ATTR_FRAME, payload)
                    + attribute(RX_RATE, struct.pack("=I", 0))
                    + attribute(SIGNAL, struct.pack("=i", -40)))
        if is_unicast and not is_lost and not flags & NO_ACK:
            flags |= STAT_ACK
        self.send(
            self.family, TX_INFO,
            attribute(ADDR_TRANSMITTER, frame[ADDR_TRANSMITTER])
            + attribute(FLAGS, struct.pack("=I", flags)) + attribute(COOKIE, frame[COOKIE])
            + attribute(ATTR_TX_INFO, frame[ATTR_TX_INFO])
            + attribute(SIGNAL, struct.pack("=i", -40)))


medium = Medium(float(sys.argv[1]), int(sys.argv[2]))
print("on the air", flush=True)
medium.run(float(sys.argv[3]))
print(f"acked {medium.acked} lost {medium.lost}", flush=True)
