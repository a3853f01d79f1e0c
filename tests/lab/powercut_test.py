#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Power cuts while a tree is received: powercut_test.py ONEHOP [WORD].

Goal:   at any instant of a power cut a visible name has its whole, right content; what recv said
        was done is on the disk; the same two commands end with an equal tree and nothing beside
        it; two batches at most, and what is on its way, are sent again.
Method: the real program in the lab receives into ext4 or XFS on a disk that forgets what was not
        flushed (power_disk.py). The cut is drawn from all writes and flushes of a transfer: between
        two of them the disk does not change. Of each cut several outcomes are mounted and looked
        at; with one of them the round goes on, to another cut or to the end.
Bounds: exact; what is sent again as in tree_test.py. ONEHOP_POWER_ROUNDS sets the rounds of each
        file system (3; the long form is 100), ONEHOP_TREE_FILES the files of the tree,
        ONEHOP_SEED the seed. A failure names its round and its cuts. A round's draws depend on its
        number and the seed, and ONEHOP_POWER_ROUND plays that one alone; what the disk is asked
        for at a given request depends on the machine's speed, too.
"""

import os
import random
import signal
import stat
import sys
from pathlib import Path
from typing import Any

from power_disk import MODES, Mounted, PowerDisk, blank, outcome, require, wait_until
from program import World, check, main
from tree_test import (AGAIN_BYTES_MAX, FILES, OK, check_equal, finish, make_tree, picture,
                       received_bytes, sent_again)

ROUNDS = int(os.environ.get("ONEHOP_POWER_ROUNDS", "3"))
ONLY = os.environ.get("ONEHOP_POWER_ROUND")
SEED = os.environ.get("ONEHOP_SEED", "1")
# The receiver goes on for a moment before the test sees the cut, and what arrives then is lost.
NOTICE_BYTES = 64 << 20


def is_temporary(name: bytes) -> bool:
    leaf = os.path.basename(name)
    return b".onehop-" in name or (leaf.startswith(b".") and leaf.endswith(b".part"))


def wrong_names(wanted, target) -> tuple[int, list[str]]:
    """How many files are visible, and which of them are not what was sent: content, mode, time."""
    files, wrong = 0, []
    for name, found in picture(target).items():
        if is_temporary(name):
            continue
        if not stat.S_ISREG(found[0]):
            if name not in wanted:
                wrong.append(f"{name!r} was never sent")
            continue
        files += 1
        if found != wanted.get(name):
            size = os.lstat(os.path.join(os.fsencode(target), name)).st_size
            wrong.append(f"{name!r} ({size} bytes) is {found[:3]}, not {wanted.get(name)}")
    return files, wrong


def temporaries(folder) -> list[str]:
    """What is left of sessions, for the words of a failure."""
    found = []
    for at, _, names in os.walk(os.fsencode(folder)):
        for name in names:
            path = os.path.join(at, name)
            if is_temporary(os.path.relpath(path, os.fsencode(folder))):
                status = os.lstat(path)
                with open(path, "rb") as file:
                    found.append(f"{path!r} mode {status.st_mode:o}, {status.st_size} bytes, "
                                 f"begins {file.read(16)!r}")
    return found


class Bench:
    """The lab, the tree, and the disk of one file system."""

    def __init__(self, world, kind, disk) -> None:
        self.world, self.kind, self.disk = world, kind, disk
        self.tree = world.work / "tree"
        draw = random.Random(SEED)
        make_tree(self.tree, draw, FILES)
        for number, size in enumerate((24_000_000, 9_000_000)):  # with journals of their own
            (self.tree / f"large{number}").write_bytes(draw.randbytes(size))
        os.utime(self.tree, ns=(0, 10**18))
        self.wanted = {
            os.path.join(os.fsencode(self.tree.name), name): value
            for name, value in picture(self.tree).items()
        } | {os.fsencode(self.tree.name): None}
        self.look, self.image = world.work / "look", world.work / "image"
        self.blank = blank(kind, world.work)
        world.target = disk.mount / "in"
        self.requests: dict[str, int] = {}
        self.bytes = sum(path.stat().st_size for path in self.tree.rglob("*") if path.is_file())
        self.cuts = self.looked = self.files = self.again_bytes_max = self.unflushed_bytes_max = 0

    def start(self, durability) -> tuple[Any, Any]:
        receiver = self.world.receive("udp", "--durability", durability)
        return receiver, self.world.send(self.tree, "udp")

    def whole_requests(self, durability) -> int:
        """How many writes and flushes a whole transfer makes."""
        if durability not in self.requests:
            self.disk.on(self.blank)
            before = self.disk.report()["requests"]
            finish(self.world, self.tree, "udp", "--durability", durability)
            self.requests[durability] = self.disk.report()["requests"] - before
            self.disk.off()
        return self.requests[durability]

    def look_at(self, image) -> tuple[int, list[str]]:
        with Mounted(image, self.look) as mount:
            return wrong_names(self.wanted, mount / "in")

    def transfer_until_cut(self, durability, requests) -> int:
        """Runs the two commands into the cut, or to the end and then the cut. Returns the bytes
        that arrived."""
        before = received_bytes(self.world)
        self.disk.cut(requests)
        receiver, sender = self.start(durability)
        wait_until(lambda: self.disk.report()["cut"] == 1 or receiver.process.poll() is not None,
                   "the cut comes")
        if self.disk.report()["cut"] == 1:
            self.cuts += 1
        else:  # through before so many
            check(receiver.process.poll() == OK, f"recv: {receiver.text()}")
        self.disk.cut()
        for end in (receiver, sender):
            end.process.send_signal(signal.SIGKILL)
            end.process.wait()
        self.unflushed_bytes_max = max(self.unflushed_bytes_max,
                                       self.disk.report()["unflushed_bytes"])
        return received_bytes(self.world) - before

    def finish(self, label, durability) -> Any:
        try:
            return finish(self.world, self.tree, "udp", "--durability", durability)[1]
        except AssertionError as error:
            raise AssertionError(f"{label}: {error}; {temporaries(self.world.target)}") from None

    def round(self, number) -> None:
        draw = random.Random(f"{SEED} {self.kind} {number}")
        durability = draw.choice(("batch", "batch", "batch", "file"))
        cuts = draw.choice((1, 1, 2))
        source, arrived = self.blank, 0
        label = f"{self.kind}, round {number}, seed {SEED}, {durability}"
        requests = self.whole_requests(durability)
        for _ in range(cuts):
            at = draw.randrange(1, requests + 1)
            label += f", cut at {at} of {requests}"
            self.disk.on(source)
            arrived += self.transfer_until_cut(durability, at)
            self.disk.off()
            modes = draw.sample(MODES, len(MODES))
            for mode in modes:  # the last one goes on
                outcome(self.disk, self.image, mode, draw)
                files, wrong = self.look_at(self.image)
                self.files, self.looked = self.files + files, self.looked + 1
                check(not wrong, f"{label}, {mode}: {len(wrong)} of {files} visible files are "
                      f"wrong: {wrong[:3]}")
            label += f" with {modes[-1]}"
            source = self.image
        self.disk.on(source)
        end = self.finish(label, durability)
        again = sent_again(arrived, end)
        check(again <= cuts * (AGAIN_BYTES_MAX + NOTICE_BYTES),
              f"{label}: {again} bytes of {arrived} are sent again")
        if cuts == 1:
            self.again_bytes_max = max(self.again_bytes_max, again)
        self.check_done_is_done(label, durability, draw)

    def check_done_is_done(self, label, durability, draw) -> None:
        """The power goes right after recv said that all is done. The removal of what is temporary
        need not be on the disk then: the same two commands once more see to it."""
        self.disk.cut()
        self.disk.off()
        outcome(self.disk, self.image, draw.choice(MODES), draw)
        with Mounted(self.image, self.look) as mount:
            try:
                check_equal(self.tree, mount / "in" / self.tree.name)
            except AssertionError as error:
                raise AssertionError(f"{label}: after the end: {error}") from None
        if draw.random() < 0.25:
            self.disk.on(self.image)
            self.finish(f"{label}: once more after the end", durability)
            self.disk.off()


def power_disk_of(onehop) -> Path:
    return Path(onehop).resolve().parents[2] / "tests/support/power_disk/onehop-power-disk"


def cut_rounds(onehop, kind) -> None:
    require(kind, power_disk_of(onehop))
    rounds = range(ROUNDS) if ONLY is None else [int(ONLY)]
    with PowerDisk(power_disk_of(onehop)) as disk, World(onehop, "unshaped") as world:
        bench = Bench(world, kind, disk)
        for number in rounds:
            bench.round(number)
        print(f"      {len(rounds)} rounds, {bench.cuts} cuts on the way, {bench.looked} outcomes, "
              f"{bench.files} visible files compared, 0 wrong; at most {bench.again_bytes_max} of "
              f"{bench.bytes} bytes sent again, {bench.unflushed_bytes_max} bytes unflushed at a "
              f"cut; requests of a whole transfer: {bench.requests}")


def test_C2_power_cuts_on_ext4_never_show_wrong_content(onehop) -> None:
    cut_rounds(onehop, "ext4")


def test_C2_power_cuts_on_xfs_never_show_wrong_content(onehop) -> None:
    cut_rounds(onehop, "xfs")


def names_after_cut_without_durability(onehop, kind) -> tuple[int, list[str]]:
    """A tree is received with --durability none; somebody else syncs a file of his, which makes the
    names durable on both file systems; then the power goes."""
    require(kind, power_disk_of(onehop))
    with PowerDisk(power_disk_of(onehop)) as disk, World(onehop, "unshaped") as world:
        bench = Bench(world, kind, disk)
        disk.on(bench.blank)
        finish(world, bench.tree, "udp", "--durability", "none")
        with open(disk.mount / "other", "wb") as other:
            other.write(b"somebody else's")
            other.flush()
            os.fsync(other.fileno())
        disk.cut()
        disk.off()
        outcome(disk, bench.image, "nothing", random.Random(SEED))
        with Mounted(bench.image, bench.look) as mount:
            check((mount / "other").read_bytes() == b"somebody else's", "what was synced stays")
        return bench.look_at(bench.image)


def test_the_disk_forgets_what_was_not_synced_on_ext4(onehop) -> None:
    files, wrong = names_after_cut_without_durability(onehop, "ext4")
    check(wrong, f"--durability none is caught: {files} visible files, none is wrong")


def test_the_disk_forgets_what_was_not_synced_on_xfs(onehop) -> None:
    files, wrong = names_after_cut_without_durability(onehop, "xfs")
    check(wrong, f"--durability none is caught: {files} visible files, none is wrong")


def end_by_signal(number, _) -> None:
    """With blocks unmount what they mounted: a test that is ended ends in good order."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end_by_signal)
    signal.signal(signal.SIGHUP, end_by_signal)
    sys.exit(main(globals()))
