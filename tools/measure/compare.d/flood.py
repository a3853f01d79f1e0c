#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Floods an interface: `flood.py ADDRESS BYTES` sends that many bytes of UDP payload to the discard
port, in batches that the kernel cuts into frames, as fast as the socket's buffer lets it. It knows
no rate and no target.
"""

import socket
import sys

SOL_UDP, UDP_SEGMENT, SO_SNDBUFFORCE = 17, 103, 32
DISCARD_PORT = 9
FRAME_BYTES, BATCH_FRAMES = 1472, 44
# the kernel doubles it, and counts its own structures in it; the socket is woken when half of it is
# free
BUFFER_BYTES = 800_000


def main() -> None:
    address, left = sys.argv[1], int(sys.argv[2])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES)
        out.setsockopt(SOL_UDP, UDP_SEGMENT, FRAME_BYTES)
        batch = bytes(FRAME_BYTES * BATCH_FRAMES)
        while left > 0:
            left -= out.sendto(batch, (address, DISCARD_PORT))


if __name__ == "__main__":
    main()
