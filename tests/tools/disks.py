# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Disks of a kind to receive into, for tests that run as root; skipped elsewhere."""

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from loopback import check
from program import PATIENCE, Skip, run

IMAGE_BYTES = 200 << 20


def is_whole_root() -> bool:
    """Whether root here is the machine's, and not that of a user namespace (tools/distros)."""
    return Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]


class Disk:
    """A file system at world.target, or another one, for the time of a with block: fat, casefold
    (ext4 that folds case), fuse (onehop-slow-disk, with FAT's names or other options; it shows the
    folder `image`), ext4 with so many inodes."""

    def __init__(self, kind, world, inodes=1000, target=None, options=("--fat", )) -> None:
        self.kind, self.target, self.inodes = kind, target or world.target, inodes
        self.options = options
        self.image = world.work / "image"

    def __enter__(self) -> Any:
        if os.geteuid() != 0:
            raise Skip("mounts need root")
        (self._mount_fuse if self.kind == "fuse" else self._mount_image)()
        return self

    def _mount_fuse(self) -> None:
        program = os.environ.get("ONEHOP_SLOW_DISK", "")
        if not Path("/dev/fuse").exists() or not Path(program).is_file():
            raise Skip("needs /dev/fuse and onehop-slow-disk (ONEHOP_SLOW_DISK)")
        self.image.mkdir()
        self.server = subprocess.Popen([program, self.image, self.target, *self.options])
        give_up_at = time.monotonic() + PATIENCE
        while not os.path.ismount(self.target):
            check(time.monotonic() < give_up_at, "the FUSE disk is there")
            time.sleep(0.01)

    def _mount_image(self) -> None:
        with open(self.image, "wb") as file:
            file.truncate(IMAGE_BYTES)
        kernel = Path("/proc/filesystems").read_text()
        mkfs = {"fat": ["mkfs.vfat"], "casefold": ["mkfs.ext4", "-q", "-F", "-O", "casefold"],
                "ext4": ["mkfs.ext4", "-q", "-F", "-b", 4096, "-N", self.inodes]}[self.kind]
        known = {"fat": "\tvfat\n" in kernel, "ext4": "\text4\n" in kernel,
                 "casefold": Path("/sys/fs/ext4/features/casefold").exists()}[self.kind]
        if shutil.which(mkfs[0]) is None:
            raise Skip(f"{mkfs[0]} is not installed")
        if not known or not Path("/dev/loop-control").exists():
            raise Skip(f"this kernel has no {self.kind}, or no loop devices")
        if not is_whole_root():
            raise Skip("root of a user namespace of its own mounts no disk")
        run(*mkfs, self.image)
        run("mount", "-o", "loop", self.image, self.target)
        if self.kind == "fat":
            return
        (self.target / "lost+found").rmdir()
        if self.kind == "casefold":
            run("chattr", "+F", self.target)

    def __exit__(self, *_) -> None:
        if self.kind == "fuse":
            self.server.terminate()
            self.server.wait()
        else:
            run("umount", self.target)
