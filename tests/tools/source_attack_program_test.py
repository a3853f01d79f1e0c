#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Trees that another user can write to: source_attack_program_test.py ONEHOP [WORD].

Goal:   a sender gives away nothing from outside its tree, whoever exchanges folders of it for links
        to what only the sender may read; all else arrives.
Method: the real program; the folder is exchanged while data flows, and a byte is appended to the
        file that is being read, so that all that is left is looked at again. Then the same at
        random moments, by a thread that does nothing else.
Bounds: exact; no byte of a secret in the receiver's folder, under any name.
"""

import ctypes
import json
import os
import random
import sys
import threading
import time
from typing import Any

from loopback import MB, Loopback, check
from program import main

SECRET = b"ROOT-ONLY-SECRET"
AT_FDCWD, RENAME_EXCHANGE = -100, 2


def exchange(one, other) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE):
        raise OSError(ctypes.get_errno(), "renameat2")


class Attack:
    """A tree with a log and a folder of small and large files, and a link to secrets beside it."""

    def __init__(self, here, files=40, log_bytes=48 * MB) -> None:  # not read at once
        self.work, self.target = here.work, here.target
        self.tree, self.sub, self.link = (here.work / name for name in ("tree", "tree/sub", "link"))
        self.sub.mkdir(parents=True)
        secrets = here.work / "secrets"
        secrets.mkdir(mode=0o700)
        self.content = {}
        for i in range(files):
            size = 200_000 if i % 4 == 0 else 300
            self.content[f"f{i}"] = os.urandom(size)
            (self.sub / f"f{i}").write_bytes(self.content[f"f{i}"])
            (secrets / f"f{i}").write_bytes(SECRET * (size // len(SECRET) + 2))
        (self.tree / "log").write_bytes(os.urandom(log_bytes))
        self.link.symlink_to(secrets)

    def exchange(self) -> None:
        exchange(self.sub, self.link)

    def append(self) -> None:
        with open(self.tree / "log", "ab") as log:
            log.write(b"l")

    def check_target(self) -> None:
        for path in self.target.rglob("*"):
            if path.is_file() and not path.is_symlink():
                content = path.read_bytes()
                check(SECRET not in content, f"{path} has a secret")
                if path.parent.name == "sub" and path.name in self.content:
                    check(content == self.content[path.name], f"{path} is what was there")


def is_begun(target) -> bool:
    """Of the log; folders of ours come and go meanwhile."""
    try:
        return any(target.rglob(".log*.part"))
    except FileNotFoundError:
        return False


def test_P2_C3_a_folder_that_is_exchanged_for_a_link_gives_nothing_away(onehop) -> None:
    for symlinks in ("skip", "copy", "follow-inside"):
        with Loopback(onehop) as here:
            attack = Attack(here)
            receiver = here.receive()
            sender = here.start("send", attack.tree, "--to", here.address, "--json", "--symlinks",
                                symlinks, "--law", "fixed:200M", "--report", here.work / "report")
            receiver.wait_for(lambda: is_begun(here.target), "data comes")
            attack.exchange()
            attack.append()
            check(sender.code() == 12, f"12: {sender.text()}")
            check(receiver.code() == 0, f"recv: {receiver.text()}")
            attack.check_target()
            kinds = [item["kind"]
                     for item in json.loads((here.work / "report").read_text())["left_out"]]
            check(kinds.count("changed") == len(attack.content), f"each is changed: {kinds}")
            check((here.target / "tree/log").read_bytes() == (attack.tree / "log").read_bytes(),
                  "what can be sent arrives")


def race(here, attack, seed) -> None:
    draw, is_over = random.Random(seed), threading.Event()

    def run() -> None:
        while not is_over.is_set():
            attack.exchange()
            if draw.random() < 0.02:
                attack.append()
            time.sleep(draw.random() * 0.002)

    attacker = threading.Thread(target=run)
    attacker.start()
    try:
        receiver = here.receive()
        sender = here.start("send", attack.tree, "--to", here.address, "--symlinks",
                            draw.choice(("skip", "follow-inside")))
        check(sender.code() in (0, 8, 12), f"send: {sender.text()}")
        receiver.code()
    finally:
        is_over.set()
        attacker.join()
    attack.check_target()


def test_P2_C3_a_race_of_links_against_a_sender_gives_nothing_away(onehop) -> None:
    for seed in range(5):
        with Loopback(onehop) as here:
            print(f"seed {seed}", flush=True)
            race(here, Attack(here, 400, 16 * MB), seed)


def arguments_of(attack) -> Any:
    return [attack.sub / name for name in sorted(attack.content)]


def test_P2_C3_a_file_that_was_named_is_read_from_the_folder_that_was_named(onehop) -> None:
    with Loopback(onehop) as here:
        attack = Attack(here)
        receiver = here.receive()
        sender = here.start("send", attack.tree / "log", *arguments_of(attack), "--to",
                            here.address, "--law", "fixed:200M")
        receiver.wait_for(lambda: is_begun(here.target), "data comes")
        attack.exchange()
        attack.append()
        check(sender.code() == 0, f"send: {sender.text()}")
        check(receiver.code() == 0, f"recv: {receiver.text()}")
        attack.check_target()
        for name, content in attack.content.items():
            check((here.target / name).read_bytes() == content, f"{name} arrives")


sys.exit(main(globals(), needs_root=False))
