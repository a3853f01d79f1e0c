#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Keeps the queue of an interface full: `flood.py ADDRESS BYTES` sends that many bytes of UDP payload to the discard port, in
batches that the kernel cuts into frames. The socket waits where its buffer is full, so the queue below never runs dry.
"""

import socket
import sys

SOL_UDP, UDP_SEGMENT, SO_SNDBUFFORCE = 17, 103, 32
DISCARD_PORT = 9
FRAME_BYTES, BATCH_FRAMES = 1472, 44
BUFFER_BYTES = 600_000  # 8 ms at 600 Mbit/s; SO_SNDBUF counts what the kernel's structures take, too, and doubles what it is told


def main():
    address, left = sys.argv[1], int(sys.argv[2])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES)
        out.setsockopt(SOL_UDP, UDP_SEGMENT, FRAME_BYTES)
        batch = bytes(FRAME_BYTES * BATCH_FRAMES)
        while left > 0:
            left -= out.sendto(batch, (address, DISCARD_PORT))


if __name__ == "__main__":
    main()
