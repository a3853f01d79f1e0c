#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Files with holes over loopback: sparse_program_test.py ONEHOP.

Goal:   C4: the holes of a source are not sent, a file of 2^32 + 1 bytes with little data is over in
        a moment, and what arrives is the file, holes and all, after a kill of the receiver as well.
Method: the real program; data at odd offsets: in the first block, in the short last one, across two
        blocks, in half a block.
Bounds: bytes exact. On the wire twice the data, for headers and repeats. Room on the disk: the
        source's and 64 KiB. 60 GiB of hole within 20 s: 0.4 s measured; where its zeros were read
        and sent, 10 GiB took 33 s on the same machine.
"""

import errno
import os
import signal
import sys
import time
from pathlib import Path

from loopback import Loopback, check
from program import is_sanitized, main

BLOCK, MIB, GIB = 256 * 1024, 1 << 20, 1 << 30


def sparse(path, size, pieces) -> Path:
    """A file of `size` that has data at the (offset, bytes) of `pieces` alone."""
    with open(path, "wb") as file:
        file.truncate(size)
        for offset, count in pieces:
            file.seek(offset)
            file.write(os.urandom(count))
    return path


def blocks_with_data(size, pieces) -> int:
    """Bytes of the blocks that no hole covers."""
    blocks = {at for offset, count in pieces
              for at in range(offset // BLOCK, (offset + count - 1) // BLOCK + 1)}
    return sum(min(BLOCK, size - at * BLOCK) for at in blocks)


def data_of(path) -> list[tuple[int, bytes]]:
    """(offset, bytes) of each mebibyte that has data, up to the end: all else is zero."""
    with open(path, "rb") as file:
        size, at, found = os.fstat(file.fileno()).st_size, 0, []
        while at < size:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA) // MIB * MIB
            except OSError as error:
                if error.errno == errno.ENXIO:  # a hole up to the end
                    break
                raise
            data = os.pread(file.fileno(), MIB, at)
            if data.strip(b"\0"):
                found.append((at, data))
            at += MIB
        return [*found, (size, b"")]


def check_alike(source, copy) -> None:
    check(data_of(source) == data_of(copy), "the copy has the same bytes")
    room = [path.stat().st_blocks * 512 for path in (source, copy)]
    check(room[1] <= room[0] + 65_536, f"and takes no more room: {room}")


def check_end(end, size, moved, skipped=0) -> None:
    """moved: bytes of file data that this session carried."""
    event = end.events("end")[0]
    check(event["bytes_total"] == size, f"all of it: {event}")
    check(event["bytes_skipped_total"] == skipped, f"{skipped} were there: {event}")
    check(event["bytes_hole_total"] == size - moved - skipped, f"{moved} were sent: {event}")
    check("are holes" in end.text(), f"and the summary tells: {end.text()}")
    busy_ns = 1e9 * (event["cpu_seconds"] + (event["softirq_seconds"] or 0))
    per_byte = busy_ns / max(1, size - event["bytes_hole_total"])
    check(abs(event["cpu_ns_per_byte"] - per_byte) <= 0.01 * per_byte + 0.01 or moved == 0,
          f"a hole is no byte that costs: {per_byte} {event}")


def test_sparse(onehop) -> None:
    size = 4 * GIB + 1
    pieces = [(0, 5), (3 * BLOCK - 1, 2), (9 * BLOCK, BLOCK // 2), (1 * GIB + 7, 3_000_000),
              (2 * GIB, 1), (size - 45, 45)]
    moved = blocks_with_data(size, pieces)
    with Loopback(onehop) as world:
        source = sparse(world.work / "disk.img", size, pieces)
        receiver = world.receive()
        sender = world.start("send", source, "--to", world.address, "--json")
        for end in (sender, receiver):
            check(end.code() == 0, f"it ends with 0: {end.text()}")
            check_end(end, size, moved)
        event = sender.events("end")[0]
        wire = event["frames_total"] * event["frame_bytes"]
        check(wire < 2 * moved, f"{wire} bytes on the wire at most, for {moved} of data")
        check_alike(source, world.target / source.name)
        check(sender.events("file")[0]["digest"] == receiver.events("file")[0]["digest"], "alike")

        # Compared with what is there, nothing of it is sent.
        receiver = world.start("recv", "--once", "--dir", world.target, "--listen", world.address,
                               "--on-exist", "skip", "--json")
        receiver.wait_for(lambda: receiver.events("start"), "recv can accept")
        sender = world.start("send", source, "--to", world.address, "--json")
        for end in (sender, receiver):
            check(end.code() == 0, f"it is there: {end.text()}")
            event = end.events("end")[0]
            check(event["bytes_skipped_total"] == size, f"all of it: {event}")
            check(event["bytes_hole_total"] == 0, f"{event}")


def test_hole_alone(onehop) -> None:
    size = 60 * GIB - 1
    for digest in ("xxh3", "sha256"):
        with Loopback(onehop) as world:
            if os.statvfs(world.work).f_bavail * os.statvfs(world.work).f_frsize < 2 * size:
                size = GIB - 1  # the receiver asks for room for all of it
            source = sparse(world.work / "hole", size, [])
            begin = time.monotonic()
            receiver = world.receive()
            sender = world.start("send", source, "--to", world.address, "--json", "--digest",
                                 digest)
            for end in (sender, receiver):
                check(end.code() == 0, f"it ends with 0: {end.text()}")
                check_end(end, size, 0)
                rss = end.events("end")[0]["rss_bytes_max"]
                check(rss < 150_000_000 or is_sanitized(onehop), f"in the memory of any: {rss}")
            check(time.monotonic() - begin < 20, "in a moment")
            copy = world.target / source.name
            check(copy.stat().st_size == size and copy.stat().st_blocks == 0, "a hole again")


def test_killed(onehop) -> None:
    """The receiver is killed in the middle, and the part gets other bytes where holes are."""
    size = 2 * GIB + 77
    pieces = [(0, 20_000_000), (GIB, 20_000_000), (size - 77, 77)]
    moved = blocks_with_data(size, pieces)
    with Loopback(onehop) as world:
        source = sparse(world.work / "disk.img", size, pieces)
        receiver = world.receive()
        sender = world.start("send", source, "--to", world.address, "--json", "--max-rate",
                             "60Mbit")
        part = world.target / ".disk.img.part"
        # The first piece has arrived: what lies behind it was announced.
        receiver.wait_for(lambda: part.exists() and part.stat().st_blocks * 512 > 21_000_000,
                          "half of it is on the disk")
        receiver.process.send_signal(signal.SIGKILL)
        receiver.process.wait()
        check(sender.code() not in (0, None), "the sender ends")
        with open(part, "r+b") as file:
            for offset in (700 * 1024 * 1024 + 3, GIB + 400 * 1024 * 1024):
                file.seek(offset)
                file.write(b"of another time")
        receiver = world.receive()
        sender = world.start("send", source, "--to", world.address, "--json")
        for end in (sender, receiver):
            check(end.code() == 0, f"it ends with 0: {end.text()}")
        skipped = sender.events("end")[0]["bytes_skipped_total"]
        check(skipped >= 19_000_000, f"what had arrived is not sent again: {skipped}")
        for end in (sender, receiver):
            check_end(end, size, moved - skipped, skipped)
        check_alike(source, world.target / source.name)
        check([path.name for path in world.target.iterdir()] == [source.name], "nothing is left")


def test_changed(onehop) -> None:
    """A source that gets data in a hole while it is sent is sent again, as it is then."""
    size = 300 * 1024 * 1024
    pieces = [(0, 1), (100 * 1024 * 1024, 80_000_000)]
    with Loopback(onehop) as world:
        source = sparse(world.work / "disk.img", size, pieces)
        receiver = world.receive()
        sender = world.start("send", source, "--to", world.address, "--json", "--max-rate",
                             "200Mbit")
        sender.wait_for(lambda: sender.events("interval"), "data flows")
        with open(source, "r+b") as file:
            file.seek(50 * 1024 * 1024)
            file.write(b"late")
        moved = blocks_with_data(size, [*pieces, (50 * 1024 * 1024, 4)])
        for end in (sender, receiver):
            check(end.code() == 0, f"it ends with 0: {end.text()}")
            holes = end.events("end")[0]["bytes_hole_total"]
            check(holes == size - moved, f"holes count once: {holes}, not {size - moved}")
        check("changed while it was being sent" in sender.text(), sender.text())
        check_alike(source, world.target / source.name)


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
