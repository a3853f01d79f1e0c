#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Names that the receiver's file system cannot hold: names_program_test.py ONEHOP [WORD].

Goal:   a name that is refused there, or is another entry's there, is an error of that entry alone:
        12 at both ends, with events, receipts, --report and the short list alike, and the rest
        arrives. No file gets another's content.
Method: the real program into FAT, ext4 that folds case, and a FUSE disk with FAT's names
        (ONEHOP_SLOW_DISK); what cannot be mounted here is skipped.
Bounds: exact.
"""

import json
import os
import pty
import sys
from pathlib import Path
from typing import Any

from disks import Disk
from loopback import Loopback, check
from program import CODE, End, main

EINVAL = "the file system there refuses the name: Invalid argument"
TAKEN = "another entry of this session has this name there"


def make_tree(folder, names) -> Path:
    top = folder / "tree"
    for name in names:
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return top


def expected(refused, taken) -> dict[str, tuple[str, str]]:
    return {f"tree/{name}": ("name_refused", EINVAL) for name in refused} | {
        f"tree/{name}": ("name_taken", TAKEN) for name in taken}


class Run:
    """One transfer, with all that it can tell at both ends."""

    def __init__(self, world, *paths, recv=("--on-exist", "ask"), terminal=None) -> None:
        self.world, self.files = world, {}
        words = {}
        for role in ("send", "recv"):
            self.files[role] = [world.work / f"{role}.{kind}" for kind in ("report", "receipt")]
            words[role] = ["--json", "--report", self.files[role][0], "--receipt",
                           self.files[role][1]]
        command = ["recv", "--once", "--dir", world.target, "--listen", world.address, *recv,
                   *words["recv"]]
        self.receiver = world.start(*command) if terminal is None else End(
            [world.onehop, *map(str, command)], world.work, "asked", CODE, terminal)
        self.receiver.wait_for(lambda: self.receiver.events("start"), "recv can accept")
        self.sender = world.start("send", *paths, "--to", world.address, *words["send"])

    def check_unnamed(self, unnamed, there) -> None:
        """check_unnamed: `unnamed` by name has outcome and cause, all else is `there`."""
        for role, end in (("send", self.sender), ("recv", self.receiver)):
            check(end.code() == 12, f"{role} ends with 12, not {end.process.returncode}: "
                  f"{end.text()}")
            report, receipt = [json.loads(file.read_text()) for file in self.files[role]]
            listed = {item["path"]: (item["kind"], item["cause"]) for item in report["left_out"]}
            check(listed == unnamed, f"{role} --report: {listed}")
            outcomes = {entry["name"]: entry["outcome"] for entry in receipt["entries"]
                        if entry["name"] in unnamed}
            check(outcomes == {name: kind for name, (kind, _) in unnamed.items()},
                  f"{role} --receipt: {outcomes}")
            check(receipt["complete"] and receipt["names_refused"] == len(unnamed), f"{receipt}")
            count = end.events("end")[0]["names_refused_total"]
            check(count == len(unnamed), f"the end counts them: {count}")
            types = [event["type"] for event in end.events()]
            left_out = end.events("left_out")
            check(sum(event["failures"] for event in left_out) == len(unnamed), f"{left_out}")
            told = {event["name"]: event["outcome"] for event in end.events("file")
                    if event["name"] in unnamed}
            check(set(told.values()) <= {"name_refused", "name_taken"} and told, f"{told}")
            check("interval" not in types[:types.index("left_out")], "before data flows")
            error = end.events("error")[0]
            check(error["exit_code"] == 12 and f"(and {len(unnamed) - 1} more)" in error["cause"],
                  f"{error}")
        check(json.loads(self.files["send"][1].read_text())["root"] ==
              json.loads(self.files["recv"][1].read_text())["root"], "both have the same root")
        found = sorted(str(path.relative_to(self.world.target))
                       for path in self.world.target.rglob("*"))
        check(found == sorted(there), f"what is there: {found}")


# With the order in which the disk gives names either of two may be first.
NAMES = ["A", "b", "dir/f", "dir/g", "plain"] + [f"small-{i}" for i in range(40)]
BAD = ["a:b", "x?", "bad|/f", "tail."]


def there_of(names) -> list[str]:
    folders = {"tree"} | {f"tree/{parent}" for name in names for parent in Path(name).parents
                          if str(parent) != "."}
    return [*folders, *(f"tree/{name}" for name in names)]


def transfer(onehop, kind) -> None:
    bad = [] if kind == "casefold" else BAD
    with Loopback(onehop) as world:
        top = make_tree(world.work, [*NAMES, *bad])
        with Disk(kind, world):
            # Names in their order, so that the first is known: given one by one.
            (top / "DIR").mkdir()
            (top / "DIR" / "F").write_text("another")
            (top / "a").write_text("another")
            first = Run(world, top)
            codes = first.sender.code(), first.receiver.code()
            check(codes == (12, 12), f"{codes}: {first.sender.text()} {first.receiver.text()}")
            report = json.loads(first.files["recv"][0].read_text())["left_out"]
            taken = {item["path"][5:] for item in report if item["kind"] == "name_taken"}
            check(taken in [a | b for a in ({"A"}, {"a"})
                            for b in ({"DIR", "DIR/F"}, {"dir", "dir/f", "dir/g"})], f"{taken}")
            refused = [*bad, *(["bad|"] if bad else [])]
            unnamed = expected(refused, taken)
            names = [name for name in [*NAMES, "a", "DIR/F"] if name not in taken]
            first.check_unnamed(unnamed, there_of(names))
            for name in names:
                check((world.target / "tree" / name).read_text() == (top / name).read_text(),
                      f"{name} has its own content")
            for end in (first.receiver, first.sender):
                text = end.errors.read_text()
                check(f"{len(unnamed) - 5} more" in text, f"a short list: {text}")
            check(first.receiver.errors.read_text().count("not received: ") == 5, "of five")

            # The same again, over what is there: no name is anybody else's.
            again = Run(world, top, recv=("--on-exist", "overwrite"))
            again.check_unnamed(unnamed, there_of(names))
            for name in names:
                check((world.target / "tree" / name).read_text() == (top / name).read_text(),
                      f"{name} keeps its content")


def test_fuse(onehop) -> None:
    transfer(onehop, "fuse")


def test_fat(onehop) -> None:
    transfer(onehop, "fat")


def test_casefold(onehop) -> None:
    transfer(onehop, "casefold")


def test_volumes(onehop) -> None:
    """A name of a later part of the tree is held against those of all parts before."""
    with Loopback(onehop) as world, Disk("fuse", world):
        first, last = world.work / "first", world.work / "last"
        for folder, names in ((first, ["a", "F/x"]), (last, ["A", "f/x", "f/y", "b"])):
            for name in names:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(f"{folder.name} {name}")
        for i in range(4200):
            (first / f"more{i // 100}").mkdir(exist_ok=True)
            (first / f"more{i // 100}" / f"{i}").write_text(f"{i}")
        run_ = Run(world, f"{first}/", f"{last}/", recv=("--on-exist", "overwrite"))
        check((run_.sender.code(), run_.receiver.code()) == (12, 12), f"{run_.receiver.text()}")
        report = json.loads(run_.files["send"][0].read_text())["left_out"]
        check(sorted(item["path"] for item in report if item["kind"] == "name_taken")
              == ["A", "f", "f/x", "f/y"], f"{report}")
        for name, content in (("a", "first a"), ("F/x", "first F/x"), ("b", "last b")):
            check((world.target / name).read_text() == content, f"{name} has its own content")
        check(len(list(world.target.rglob("*"))) == 4200 + 42 + 4, "and all else is there")


def test_asked(onehop) -> None:
    """A question about other names of the list, with an answer."""
    with Loopback(onehop) as world, Disk("fuse", world):
        top = make_tree(world.work, ["a:b", "x", "y?"])
        (world.target / "tree").mkdir()
        (world.target / "tree" / "X").write_text("of somebody, and longer")
        person, terminal = pty.openpty()
        run_ = Run(world, top, recv=("--on-exist", "ask"), terminal=terminal)
        said: Any = b""
        while b"anything else refuses" not in said:
            said += os.read(person, 1000)
        check(b"names that exist there: 1" in b" ".join(said.split()) and b"a:b" not in said,
              f"{said}")
        os.write(person, b"o\n")
        try:
            check(run_.receiver.code() == 12 and run_.sender.code() == 12, run_.sender.text())
        finally:
            os.close(terminal)
            os.close(person)
        check((world.target / "tree" / "X").read_text() == "x", "overwritten, as was said")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
