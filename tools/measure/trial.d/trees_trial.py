#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Trees that are attacked, touched and killed at once: trees_trial.py ONEHOP [WORD].

Goal:   whatever is done to a tree while it is sent, and whichever end is killed at whatever moment,
        no name shows what no source ever was, nothing from outside the tree arrives, and the next
        undisturbed run brings all and leaves nothing of ours.
Method: the real program in the lab. Beside each run a thread exchanges a folder of the tree for a
        link to secrets and changes files, as another user could; SIGKILL to either end at a moment
        that a seed draws.
Bounds: exact.
"""

import ctypes
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import trial
from files_trial import GONE, MB, OK, change, received, wait_until
from program import World, check, digest, main

SECRET = b"ROOT-ONLY-SECRET"
OPTIONS = ("--on-exist", "overwrite")
AT_FDCWD, RENAME_EXCHANGE = -100, 2


class Tree:
    """A log, a folder of files of all sizes, and a link to secrets that changes places with that
    folder. `versions`: the digest of each content that a file has had."""

    def __init__(self, work, random) -> None:
        self.random, self.root, self.link = random, work / "tree", work / "link"
        self.sub, secrets = self.root / "sub", work / "secrets"
        self.sub.mkdir(parents=True)
        secrets.mkdir(mode=0o700)
        self.versions: dict[str, set[str]] = {}
        for i in range(random.randrange(20, 60)):
            size = random.choice((0, 300, random.randrange(70_000), random.randrange(2 * MB)))
            (self.sub / f"f{i}").write_bytes(os.urandom(size))
            (secrets / f"f{i}").write_bytes(SECRET * (size // len(SECRET) + 2))
        (self.root / "log").write_bytes(os.urandom(random.randrange(8 * MB, 24 * MB)))
        self.link.symlink_to(secrets)
        self.exchanges = 0
        self.paths = [*self.sub.iterdir(), self.root / "log"]
        self.total = sum(path.stat().st_size for path in self.paths)
        for path in self.paths:
            self.note(path)

    def note(self, path) -> None:
        self.versions.setdefault(path.name, set()).add(digest(path))

    def exchange(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.renameat2(AT_FDCWD, os.fsencode(self.sub), AT_FDCWD, os.fsencode(self.link),
                          RENAME_EXCHANGE):
            raise OSError(ctypes.get_errno(), "renameat2")
        self.exchanges += 1

    def touch(self) -> None:
        path = self.random.choice(self.paths)
        change(path, self.random)
        self.note(path)

    def attack(self, is_over) -> None:
        """attack leaves the folder in its place."""
        while not is_over.is_set():
            self.exchange()
            is_over.wait(self.random.random() * 0.004)
            self.exchange()
            if self.random.random() < 0.1:
                self.touch()
            is_over.wait(self.random.random() * 0.02)

    def check_names(self, target) -> None:
        """check_names: each file that shows under its name was a source's content once."""
        for path in Path(target).rglob("*"):
            if path.is_symlink() or not path.is_file() or path.name not in self.versions:
                continue
            check(digest(path) in self.versions[path.name], f"{path} was a source once")


def is_secret(path) -> bool:
    return path.is_file() and not path.is_symlink() and SECRET in path.read_bytes()


def kill_once(world, tree, target) -> bool:
    """kill_once starts both ends and the attack, and kills one end. False: it was over before."""
    receiver, is_over = world.receive("udp", *OPTIONS, into=target), threading.Event()
    begun_at = received(world)
    attack = threading.Thread(target=tree.attack, args=(is_over, ))
    attack.start()
    try:
        sender = world.send(tree.root)
        victim, is_by_time = tree.random.choice((sender, receiver)), tree.random.random() < 0.25
        if is_by_time:
            time.sleep(tree.random.uniform(0, 0.5))
        else:
            wanted = begun_at + tree.random.randrange(tree.total)
            wait_until(lambda: received(world) >= wanted or any(
                end.process.poll() is not None for end in (sender, receiver)), "bytes come")
        was_running = victim.process.poll() is None
        victim.process.kill()
        if victim is sender:
            time.sleep(0.5)
            if receiver.process.poll() is None:  # its sender did not come as far as an offer
                receiver.process.terminate()
        codes = (sender.code(), receiver.code())
    finally:
        is_over.set()
        attack.join()
    check(all(code in (*GONE, 8, 12) for code in codes),
          f"both ends end: {codes}: {sender.text()} {receiver.text()}")
    return was_running


def contents(root) -> dict[str, Any]:
    return {
        str(path.relative_to(root)): None if path.is_dir() else digest(path)
        for path in root.rglob("*")
    }


def play(world, random, number) -> int:
    work, target = world.work / f"tree{number}", world.work / f"tree{number}.in"
    work.mkdir()
    target.mkdir()
    tree, killed = Tree(work, random), 0
    for _ in range(random.choice((1, 1, 2, 3))):
        killed += kill_once(world, tree, target)
        tree.check_names(target)
        secret = [path for path in target.rglob("*") if is_secret(path)]
        check(not secret, f"nothing from outside the tree: {secret}")
    check(tree.exchanges > 0 and not tree.sub.is_symlink(), "the attack came, and went")
    receiver = world.receive("udp", *OPTIONS, into=target)
    sender = world.send(tree.root)
    codes = (sender.code(), receiver.code())
    check(codes == (OK, OK), f"the same commands go on: {codes}: {sender.text()} {receiver.text()}")
    check(contents(target / "tree") == contents(tree.root), "all is there, and nothing else")
    names = world.names(target)
    check(names == ["tree"], f"nothing of ours is left: {names}")
    world.run_on("b", "rm", "-rf", work, target)
    return killed


def test_P2_C2_C5_trees_that_are_attacked_touched_and_killed_arrive(onehop) -> None:
    random, killed, count = trial.dice("trees"), 0, trial.rounds(3)
    with World(onehop) as world:
        for number in range(count):
            try:
                killed += play(world, random, number)
            except AssertionError as error:
                raise AssertionError(f"round {number}: {error}") from None
    print(f"info  {count} rounds, {killed} SIGKILLs", flush=True)


if __name__ == "__main__":
    sys.exit(main(globals()))
