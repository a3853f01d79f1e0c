# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A file system whose power can be cut, for tests that run as root.

    receiver ─▶ ext4 or XFS ─▶ loop device ─▶ FUSE: onehop-power-disk ─▶ durable image + log

The kernel's file system is real, and so are its journal and its replay. The disk below it forgets
what was not flushed: after off() the image `durable` has what was, and the log the rest, from which
outcome() makes what a disk may have of it: nothing, a prefix, or any of its sectors.
"""

import os
import random
import shutil
import struct
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from program import PATIENCE, Skip, check, run

SECTOR_BYTES = 4096
IMAGE_BYTES = 1 << 30
# Nothing is left to be written in the background: a request is one of the test's.
MKFS = {"ext4": ["mkfs.ext4", "-q", "-F", "-b", str(SECTOR_BYTES), "-E",
                 "lazy_itable_init=0,lazy_journal_init=0"],
        "xfs": ["mkfs.xfs", "-q", "-f", "-s", f"size={SECTOR_BYTES}"]}
MODES = ("nothing", "prefix", "sectors")


def wait_until(condition, claim) -> None:
    give_up_at = time.monotonic() + PATIENCE
    while not condition():
        check(time.monotonic() < give_up_at, f"{claim}: not in {PATIENCE} s")
        time.sleep(0.005)


def require(kind, program) -> None:
    if not Path(program).exists():
        raise Skip("onehop-power-disk was not built: libfuse3 was not found")
    if not Path("/dev/fuse").exists() or not Path("/dev/loop-control").exists():
        raise Skip("the kernel has no FUSE or no loop devices here")
    if shutil.which(MKFS[kind][0]) is None:
        raise Skip(f"{MKFS[kind][0]} is not installed")
    if f"\t{kind}\n" not in Path("/proc/filesystems").read_text():
        raise Skip(f"the kernel has no {kind}")


def copy_image(source, target) -> None:
    run("cp", "--sparse=always", source, target)


class Mounted:
    """An image, mounted for the time of a with block: what the kernel makes of it after a cut."""

    def __init__(self, image, mount) -> None:
        self.image, self.mount = Path(image), Path(mount)
        self._device = ""

    def __enter__(self) -> Path:
        self.mount.mkdir(exist_ok=True)
        self._device = run("losetup", "--find", "--show", "--sector-size", SECTOR_BYTES, self.image)
        try:
            run("mount", self._device, self.mount)
        except BaseException:
            detach(self._device)
            raise
        return self.mount

    def __exit__(self, *_) -> None:
        run("umount", self.mount)
        detach(self._device)


def detach(device) -> None:
    """detach returns when nobody has the device any more. A mount namespace that was made in the
    meantime, as `lab exec` makes one, keeps a file system for as long as it lives."""
    run("losetup", "--detach", device)
    state = Path("/sys/block", Path(device).name, "loop/backing_file")
    wait_until(lambda: not state.exists(), f"{device} is free")


class PowerDisk:
    """`mount` is a file system on a disk that forgets, between on() and off(). End whoever uses it
    before the with block ends: a World belongs inside."""

    def __init__(self, program) -> None:
        self.program = str(program)
        self.folder = Path(
            tempfile.mkdtemp(prefix="onehop-power-",
                             dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        self.mount, self.fuse = self.folder / "mount", self.folder / "fuse"
        self.durable, self.live, self.log = (self.folder / name
                                             for name in ("durable", "live", "log"))
        self._server: Any = None
        self._device = ""
        self._is_mounted = False
        self.mount.mkdir()
        self.fuse.mkdir()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_) -> None:
        self.off()
        shutil.rmtree(self.folder)

    def on(self, image) -> None:
        """on mounts a copy of `image`. Its power is on until off() or cut()."""
        copy_image(image, self.durable)
        copy_image(image, self.live)
        self._server = subprocess.Popen(
            [self.program, self.fuse, self.durable, self.live, self.log])
        disk = self.fuse / "disk"
        wait_until(lambda: disk.exists() or self._server.poll() is not None, "the disk is there")
        self._device = run("losetup", "--find", "--show", "--sector-size", SECTOR_BYTES, disk)
        run("mount", self._device, self.mount)
        self._is_mounted = True

    def cut(self, requests=0) -> None:
        """cut takes the power before the `requests`-th write or flush from now; 0: now."""
        (self.fuse / "control").write_text(f"cut {requests}")

    def report(self) -> dict[str, int]:
        words = (self.fuse / "control").read_text().split()
        return {key: int(value) for key, value in (word.split("=") for word in words)}

    def off(self) -> None:
        """off takes all down that on() made. Without cut() before it is an orderly unmount."""
        if self._is_mounted:
            run("umount", self.mount)
            self._is_mounted = False
        if self._device:
            detach(self._device)
            self._device = ""
        if self._server is not None:
            self._server.terminate()
            self._server.wait(PATIENCE)
            self._server = None


def log_records(log) -> list[tuple[int, bytes]]:
    records, content, at = [], Path(log).read_bytes(), 0
    while at < len(content):
        offset, size = struct.unpack_from("=QQ", content, at)
        records.append((offset, content[at + 16:at + 16 + size]))
        at += 16 + size
    return records


def outcome(disk: PowerDisk, image, mode: str, draw: random.Random) -> None:
    """outcome makes `image`: what the disk has after the cut. `sectors`: any of them may have been
    written before any other one, a sector as a whole or not at all."""
    copy_image(disk.durable, image)
    records = log_records(disk.log)
    kept = {"nothing": 0, "prefix": draw.randrange(len(records) + 1),
            "sectors": len(records)}[mode]
    share = draw.choice((0.1, 0.5, 0.9)) if mode == "sectors" else 1.0
    with open(image, "r+b") as out:
        for offset, data in records[:kept]:
            for begin in range(0, len(data), SECTOR_BYTES):
                if draw.random() < share:
                    os.pwrite(out.fileno(), data[begin:begin + SECTOR_BYTES], offset + begin)


def blank(kind, folder) -> Path:
    """blank makes an image with an empty file system, in which there is a folder `in`."""
    image = Path(folder, f"{kind}.blank")
    with open(image, "wb") as out:
        out.truncate(IMAGE_BYTES)
    run(*MKFS[kind], image)
    with Mounted(image, Path(folder, "look")) as mount:
        (mount / "in").mkdir()
    return image
