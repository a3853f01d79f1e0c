#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Descriptors of both ends, over loopback: descriptors_program_test.py ONEHOP [WORD].

Goal:   a child inherits none of them but the standard streams; where they are few, a transfer works
        or says how many it needs, and no file is blamed for it.
Method: /proc/PID/fdinfo of both ends from before a connection until the end; prlimit.
Bounds: exact.
"""

import os
import sys
import time
from pathlib import Path

from loopback import MB, Loopback, check
from program import Skip, inherited_of, is_sanitized, main

def test_no_child_inherits_a_descriptor(onehop) -> None:
    for options in ((), ("--file-io", "io_uring")):
        with Loopback(onehop) as here:
            outputs = ("--trace", here.work / "trace", "--receipt", here.work / "receipt")
            tree = here.work / "tree"
            tree.mkdir()
            for i in range(300):
                (tree / str(i)).write_bytes(os.urandom(1000))
            (tree / "large").write_bytes(os.urandom(24 * MB))
            receiver = here.receive(*outputs, *options)
            looks, inherited = 0, inherited_of(receiver.process.pid)
            sender = here.start("send", tree, here.file(MB), "--to", here.address, "--json",
                                "--law", "fixed:100M", "--report", here.work / "report", *options)
            while sender.process.poll() is None:
                for end in (sender, receiver):
                    inherited |= inherited_of(end.process.pid)
                looks += 1
                time.sleep(0.002)
            sender.code()
            if "set up io_uring" in sender.text() + receiver.text():
                raise Skip("both ways to read files: this kernel has no io_uring")
            check(sender.code() == 0 and receiver.code() == 0, f"{sender.text()} {receiver.text()}")
            check(looks > 10, f"it was looked at {looks} times")
            if is_sanitized(onehop):  # which reads what the kernel says of it
                inherited = {path for path in inherited if not path.startswith("/proc/")}
            check(not inherited, f"a child would get {inherited}")


def limited(soft, hard) -> list[str]:
    return ["prlimit", f"--nofile={soft}:{hard}"]


def test_too_few_are_refused_at_once(onehop) -> None:
    if is_sanitized(onehop):
        raise Skip("few descriptors: a sanitizer takes some itself")
    for limit in (4, 7, 12, 40):
        with Loopback(onehop) as here:
            file = here.file(1)
            here.prefix = limited(limit, limit)
            for command in (("send", file, "--to", here.address),
                            ("recv", "--listen", here.address, "--dir", here.target)):
                here.refused_at_once(*command, words=("Too many open files", "ulimit"), code=9)


def tree_of(here, files) -> Path:
    tree = here.work / "tree"
    tree.mkdir()
    for i in range(files):
        (tree / f"d{i % 10}").mkdir(exist_ok=True)
        (tree / f"d{i % 10}" / f"f{i}").write_bytes(bytes([i % 251]) * (i % 5 * 50_000))
    return tree


def test_few_are_enough_for_many_files(onehop) -> None:
    """The soft limit is low; or both, at one end and the other."""
    for send, recv in (((64, 4096), (64, 4096)), ((100, 100), ())):
        with Loopback(onehop) as here:
            tree = tree_of(here, 1200)
            here.prefix = limited(*recv) if recv else []
            receiver = here.receive()
            here.prefix = limited(*send) if send else []
            sender = here.start("send", tree, "--to", here.address, "--json")
            check(sender.code() == 0, f"{send} {recv}: {sender.text()}")
            check(receiver.code() == 0, f"{send} {recv}: {receiver.text()}")
            arrived = {path.relative_to(here.target): path.read_bytes()
                       for path in here.target.rglob("*") if path.is_file()}
            check(arrived == {path.relative_to(here.work): path.read_bytes()
                              for path in tree.rglob("*") if path.is_file()}, "all of them arrive")


def test_running_out_is_said_and_blames_no_file(onehop) -> None:
    """Arguments in more folders than a sender may hold open."""
    with Loopback(onehop) as here:
        files = []
        for i in range(200):
            folder = here.work / f"folder{i}"
            folder.mkdir()
            files.append(folder / f"f{i}")
            files[-1].write_bytes(b"x")
        here.receive()
        here.prefix = limited(120, 120)
        here.refused("send", *files, "--to", here.address, words=("Too many open files", "ulimit"),
                     code=9)


def test_a_receiver_that_runs_out_says_how_many_it_needs(onehop) -> None:
    """It has files open from their first byte to their root, as many as fit into its buffers."""
    with Loopback(onehop) as here:
        tree = here.work / "tree"
        tree.mkdir()
        for i in range(200):
            (tree / f"f{i}").write_bytes(bytes([i]) * 140_000)
        here.prefix = limited(90, 90)
        receiver = here.receive()
        here.prefix = []
        sender = here.start("send", tree, "--to", here.address, "--json")
        codes = (sender.code(), receiver.code())
        check(codes in ((0, 0), (5, 9)), f"{codes}: {sender.text()} {receiver.text()}")
        if codes == (5, 9):
            for end in (sender, receiver):
                check("Too many open files" in end.text() and "ulimit" in end.text(), end.text())


sys.exit(main(globals(), needs_root=False))
