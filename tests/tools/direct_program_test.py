#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Large files past the page cache: direct_program_test.py ONEHOP.

Goal:   a confined transfer takes direct I/O where a disk has it, says so, and leaves no page of its
        files in memory; --direct-io never does not; a kill in between costs nothing of either.
Method: the real program between two folders of one disk: an ext4 of its own where root plays, else
        that of the build. Linux's fincore says what is cached.
Bounds: bytes exact. Of 40 MB less than one is cached; without direct I/O nearly all of it.
"""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from disks import Disk, is_whole_root
from loopback import MB, Loopback, check
from program import Skip, main

SIZE = 40 * MB + 4097


def cached(path) -> int:
    """cached is how many bytes of a file the page cache has."""
    words = subprocess.run(["fincore", "--bytes", "--noheadings", "--output", "RES", path],
                           check=True, capture_output=True, text=True).stdout.split()
    return int(words[0]) if words else 0


def drop(path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class OnDisk(Loopback):
    """A loopback whose files, of both ends, are on a disk that can have direct I/O."""

    def __enter__(self) -> Any:
        super().__enter__()
        self.target.rmdir()
        own = Path(self.onehop).resolve().parent / f"direct-test-{os.getpid()}"
        self.disk = own if not (os.geteuid() == 0 and is_whole_root()) else self.work / "disk"
        self.disk.mkdir()
        self._mounted: Any = nullcontext()
        if self.disk.parent == self.work:
            self._mounted = Disk("ext4", self, target=self.disk)
        self._mounted.__enter__()
        self.target = self.disk / "in"
        self.target.mkdir()
        self.source = self.disk / "file.bin"
        self.source.write_bytes(os.urandom(SIZE))
        drop(self.source)
        if cached(self.source) > 0:
            raise Skip("this disk keeps its files in memory")
        return self

    def __exit__(self, *rest) -> None:
        self._mounted.__exit__(*rest)
        if self.disk.exists():
            shutil.rmtree(self.disk)
        super().__exit__(*rest)

    def offer(self, *options) -> Any:
        return self.start("send", self.source, "--to", self.address, "--json", *options)


def test_files_pass_the_page_cache_and_both_ends_say_so(onehop) -> None:
    if shutil.which("fincore") is None:
        raise Skip("there is no fincore")
    with OnDisk(onehop) as here:
        for word, said in (("always", "threads, direct"), ("never", "threads")):
            options = ("--direct-io", word, "-v")
            receiver = here.receive(*options)
            sender = here.offer(*options)
            check(sender.code() == 0 and receiver.code() == 0, f"{sender.text()} {receiver.text()}")
            arrived = here.target / "file.bin"
            for end, path in ((sender, here.source), (receiver, arrived)):
                check(end.events("end")[0]["file_io"] == said, f"{end.events('end')}")
                check(f"files: {said}\n" in end.text(), end.text())
                kept = cached(path)
                check(kept < MB if word == "always" else kept > SIZE * 9 // 10,
                      f"{word}: {kept} bytes of {path} are cached")
            check(arrived.read_bytes() == here.source.read_bytes(), "the file is there")
            arrived.unlink()
            drop(here.source)


def test_C2_a_killed_transfer_goes_on_past_the_page_cache(onehop) -> None:
    with OnDisk(onehop) as here:
        options = ("--direct-io", "always")
        receiver, part = here.receive(*options), here.target / ".file.bin.part"
        sender = here.offer(*options, "--max-rate", "100Mbit")
        receiver.wait_for(lambda: part.exists() and part.stat().st_size > 12 * MB, "a part is")
        receiver.process.send_signal(signal.SIGKILL)
        receiver.code()
        sender.code()
        drop(part)
        there = here.receive(*options)
        again = here.offer(*options)
        check(again.code() == 0 and there.code() == 0, f"{again.text()} {there.text()}")
        arrived = here.target / "file.bin"
        check(again.events("end")[0]["bytes_total"] == SIZE, f"{again.events('end')}")
        check(arrived.read_bytes() == here.source.read_bytes(), "the file is there")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
