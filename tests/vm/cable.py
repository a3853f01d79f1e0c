#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A cable with a rate between the two cards of a virtual machine:
cable.py --rate BITS_PER_S --log FILE -- QEMU ARGUMENT...

    card 0 ── fd 10 ──▶ [queue of QUEUE_FRAMES] ──▶ the wire: a frame at a time ──▶ fd 11 ── card 1
                                                                          and the same way back

It becomes QEMU, and leaves a child that is the cable. QEMU sends each frame of a card as one
datagram. When the cable's queue is full, QEMU stops taking frames from the card, and goes on when
there is room: so the card's queue empties at the rate of the wire, and the driver of the guest sees
a frame completed only then. What the card's own queue does not show is at most QUEUE_FRAMES in the
socket, and one on the wire.

The length of a socket's queue is a setting of its network namespace, so the child makes one, in a
user namespace, which needs no root. Where that is forbidden the queue is as long as the machine has
it (10 and one), and the first line of the log says so.

The log has one line for each frame: direction (0: from card 0), bytes, when it came (the sender's
send()), when its first bit left, when its last one had, and how much later than that the cable gave
it to the other card: ns, of the host's clock. A cable that is late has lost time that the wire
would have used.
"""

import argparse
import ctypes
import os
import select
import signal
import socket
import struct
import time

CARD_FDS = (10, 11)  # where tests/vm/vm tells QEMU to look
QUEUE_FRAMES = 2
# Linux' own numbers, which Python's modules do not have.
CLONE_NEWUSER, CLONE_NEWNET, PR_SET_PDEATHSIG, PR_SET_TIMERSLACK = 0x10000000, 0x40000000, 1, 29
SO_TIMESTAMPNS = 35
QUEUE_SETTING = "/proc/sys/net/unix/max_dgram_qlen"
TIME = struct.Struct("qq")
FRAME_BYTES_MAX = 65536
FLUSH_S = 0.1
libc = ctypes.CDLL(None, use_errno=True)


def datagram_socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    made.bind("")  # the kernel names it
    return made


class Direction:
    """The wire from one card to the other: the queue before it, and the frame that is on it."""

    def __init__(self, number, queue, card, out) -> None:
        """queue: the socket that the frames come to; card: socket and name of the other card."""
        self.number, self.queue, self._card, self._out = number, queue, card, out
        self._frame = b""
        self._came = self._left = self.free_at = 0  # free_at: when the frame's last bit has left
        self.dropped = 0

    def is_busy(self) -> bool:
        return len(self._frame) > 0

    def step(self, now, ns_per_byte) -> None:
        """step gives the other card what has left the wire, and puts the next frame on it."""
        while True:
            if self._frame:
                if now < self.free_at:
                    return
                self._deliver(now)
            try:
                frame, data, _, _ = self.queue.recvmsg(FRAME_BYTES_MAX, 64)
            except BlockingIOError:
                return
            seconds, nanoseconds = TIME.unpack(data[0][2])
            self._frame, self._came = frame, seconds * 10**9 + nanoseconds
            self._left = max(self._came, self.free_at)
            self.free_at = self._left + int(len(frame) * ns_per_byte)

    def _deliver(self, now) -> None:
        try:
            self._card[0].sendto(self._frame, self._card[1])
        except OSError:  # the card has taken none for long: lost, as on a cable
            self.dropped += 1
        self._out.write(f"{self.number},{len(self._frame)},{self._came},{self._left},"
                        f"{self.free_at},{now - self.free_at}\n")
        self._frame = b""


def make_sockets() -> tuple[list[socket.socket], list[socket.socket], int]:
    """Both ends of each card: QEMU's, whose own queue is long, and ours, whose queue is short; and
    how many frames that one takes."""
    frames = 11
    try:
        if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        with open(QUEUE_SETTING, "w", encoding="ascii") as setting:
            setting.write("1000")
        ends = [datagram_socket() for _ in CARD_FDS]
        with open(QUEUE_SETTING, "w", encoding="ascii") as setting:
            setting.write(str(QUEUE_FRAMES - 1))  # the kernel takes one more
        frames = QUEUE_FRAMES
    except OSError:
        ends = [datagram_socket() for _ in CARD_FDS]
    queues = [datagram_socket() for _ in CARD_FDS]
    for end, queue in zip(ends, queues):
        queue.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        end.connect(queue.getsockname())
    return ends, queues, frames


def hurry() -> None:
    """hurry puts this thread, and none that it starts, before all others of the machine."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except OSError:
        pass  # not root: as late as anybody


def carry(parent, to_parent, rate_bps, log) -> None:
    """carry is the child's life: the cable, until its parent ends."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(PR_SET_TIMERSLACK, 1)
    hurry()
    ends, queues, frames = make_sockets()
    socket.send_fds(to_parent, [b"."], [end.fileno() for end in ends])
    to_parent.close()
    names = [end.getsockname() for end in ends]
    for end in ends:
        end.close()
    with open(log, "w", encoding="ascii") as out:
        out.write(f"# {rate_bps} bit/s, {frames} frames in the queue\n")
        out.flush()
        directions = [Direction(number, queues[number], (queues[1 - number], names[1 - number]),
                                out) for number in (0, 1)]
        ns_per_byte, flushed_at = 8e9 / rate_bps, 0
        while os.getppid() == parent:
            now = time.time_ns()
            for direction in directions:
                direction.step(now, ns_per_byte)
            if now - flushed_at > FLUSH_S * 1e9:
                out.flush()
                flushed_at = now
            busy = [direction for direction in directions if direction.is_busy()]
            idle = [direction.queue for direction in directions if not direction.is_busy()]
            until = min((direction.free_at for direction in busy), default=now + int(FLUSH_S * 1e9))
            select.select(idle, [], [], max(until - time.time_ns(), 0) / 1e9)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=int, required=True, help="bit/s, each way")
    parser.add_argument("--log", required=True)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    if os.fork() == 0:
        ours.close()
        carry(parent, theirs, options.rate, options.log)
        os._exit(0)
    theirs.close()
    _, fds, _, _ = socket.recv_fds(ours, 1, len(CARD_FDS))
    for fd, number in zip(fds, CARD_FDS):
        os.dup2(fd, number)
    hurry()  # QEMU's main loop, which hands over the frames; not its processors
    os.execvp(options.command[0], options.command)


if __name__ == "__main__":
    main()
