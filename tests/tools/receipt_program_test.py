#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""--receipt, --quick and --files over loopback: receipt_program_test.py ONEHOP [WORD].

Goal:   both ends say of a tree, by the same root, what was delivered; anybody can work that root
        out from the receipt as docs/receipt.md says. --quick reads nothing that has size and time.
Method: the real program, with small files in shared blocks, large ones, folders, odd names, links
        without a name; sent, sent again, changed, interrupted.
Bounds: exact.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from loopback import Loopback, check
from program import main

SMALL, LARGE = 60, 400_000


def make_tree(folder) -> Path:
    top = folder / "tree"
    (top / "sub" / "empty").mkdir(parents=True)
    for i in range(SMALL):
        (top / "sub" / f"small-{i}").write_bytes(os.urandom(i * 50))
    (top / "large").write_bytes(os.urandom(LARGE))
    (top / "back\\slash \"quoted\"").write_text("odd")
    Path(os.fsdecode(os.fsencode(top) + b"/raw-\xff\x01")).write_text("odder")
    (top / "large").chmod(0o640)
    os.utime(top / "large", ns=(0, -1_500_000_001))
    return top


# name_of() and root_of(), as the page has them.
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "receipt.md").read_text()
PAGE_CODE: dict[str, Any] = {}
exec(PAGE.split("```python\n")[1].split("```")[0], PAGE_CODE)
root_of, unescaped = PAGE_CODE["root_of"], PAGE_CODE["name_of"]


class Run:
    """One transfer of `paths` with a receipt at both ends."""

    def __init__(self, world, *paths, recv=(), on_exist="ask", code=0) -> None:
        files = [world.work / "sent.json", world.work / "received.json"]
        receiver = world.start("recv", "--once", "--dir", world.target, "--listen", world.address,
                               "--json", "--on-exist", on_exist, "--receipt", files[1], *recv)
        receiver.wait_for(lambda: receiver.events("start"), "recv can accept")
        self.sender = world.start("send", *paths, "--to", world.address, "--json", "--receipt",
                                  files[0])
        self.ends = [self.sender, receiver]
        for end in self.ends:
            check(end.code() == code, f"it ends with {code}, not {end.process.returncode}: "
                  f"{end.text()}")
        self.receipts: list[Any] = [json.loads(file.read_text()) for file in files]

    def check_alike(self) -> Any:
        """check_alike gives the receipt, of which both ends have the same."""
        sent, received = self.receipts
        for end, receipt, role in zip(self.ends, self.receipts, ("send", "recv")):
            check(receipt["complete"] and receipt["role"] == role, f"it is whole: {receipt}")
            check(receipt["root"] == root_of(receipt), f"the root follows from it: {receipt}")
            check(end.events("end")[0]["receipt_root"] == receipt["root"], "the event has it")
            check("receipt root " + receipt["root"] in end.text(), "and the summary")
        check(sent["entries"] == received["entries"], "both list the same")
        check(sent["root"] == received["root"], "both have the same root")
        return sent

    def outcomes(self) -> dict[str, str]:
        return {entry["name"]: entry["outcome"] for entry in self.check_alike()["entries"]}


def test_tree(onehop) -> None:
    with Loopback(onehop) as world:
        top = make_tree(world.work)
        link = top / "sub" / "link"
        link.symlink_to("../large")
        os.utime(link, ns=(0, 7), follow_symlinks=False)
        receipt = Run(world, "--symlinks", "copy", top).check_alike()
        listed = {unescaped(entry["name"]): entry for entry in receipt["entries"]}
        check(len(listed) == len(receipt["entries"]), "each entry is there once")
        found = {os.fsencode(path.relative_to(world.work)): path for path in [top, *top.rglob("*")]}
        check(listed.keys() == found.keys(), f"the tree's names: {listed.keys() ^ found.keys()}")
        for path in found.values():
            status, entry = path.lstat(), listed[os.fsencode(path.relative_to(world.work))]
            check(entry["outcome"] == "received", f"it was received: {entry}")
            kind = "symlink" if path == link else "folder" if path.is_dir() else "file"
            check(entry["kind"] == kind, f"{path}: {entry}")
            check((entry["digest"] is None) == path.is_dir(), f"files have a digest: {entry}")
            check(path.is_dir() or entry["size"] == status.st_size, f"{path}: {entry}")
            check(int(entry["mode"], 8) == status.st_mode & 0o777, f"the offered mode: {entry}")
            check(entry["mtime_ns"] == status.st_mtime_ns, f"the time: {entry}")
            check(entry["digest"] is None or entry["digest"].startswith("sha256:"), f"{entry}")
        check(receipt["files_received"] == SMALL + 4 and receipt["folders"] == 3, f"{receipt}")
        there = world.target / "tree/sub/link"
        check(os.readlink(there) == "../large", "the link is one")
        check(there.lstat().st_mtime_ns == 7, "and has its time")
        check(not list(world.work.glob("*.json.*")), "nothing is left beside the receipt")

        # Again: it is all there, and the digests are the same.
        again = Run(world, "--symlinks", "copy", top, on_exist="resume").check_alike()
        check(again["files_there"] == SMALL + 4, f"all were there: {again}")
        check({e["name"]: e["digest"] for e in again["entries"]}
              == {e["name"]: e["digest"] for e in receipt["entries"]}, "the digests are the same")


def test_inside(onehop) -> None:
    """A receipt in the folder that is sent is not sent, nor a part of it."""
    with Loopback(onehop) as world:
        top = make_tree(world.work)
        receiver = world.receive()
        sender = world.start("send", f"{top}/", "--to", world.address, "--json", "--receipt",
                             top / "r.json")
        check(sender.code() == 0 and receiver.code() == 0, f"{sender.text()}")
        check(not [path for path in world.target.rglob("*") if "r.json" in path.name], "not sent")
        check(json.loads((top / "r.json").read_text())["complete"], "and written")


def test_quick(onehop) -> None:
    with Loopback(onehop) as world:
        top = make_tree(world.work)
        Run(world, top)
        # The same size and time, and another content: nobody may look.
        for name in ("large", "sub/small-50"):
            path, there = top / name, world.target / "tree" / name
            time = path.stat().st_mtime_ns
            there.write_bytes(bytes(path.stat().st_size))
            os.utime(there, ns=(0, time))
        other = top / "sub/small-51"
        os.utime(other, ns=(0, 5))
        run = Run(world, top, recv=("--quick",), on_exist="overwrite")
        outcomes = run.outcomes()
        check(outcomes.pop("tree/sub/small-51") == "received", "another time is another file")
        files = [outcomes[name] for name in outcomes if not (world.target / unescaped(name).decode(
            errors="surrogateescape")).is_dir()]
        check(set(files) == {"there_unread"} and len(files) == SMALL + 2, f"the others: {outcomes}")
        for end, receipt in zip(run.ends, run.receipts):
            event = end.events("end")[0]
            check(event["files_there_unread_total"] == receipt["files_there_unread"] == SMALL + 2,
                  f"counted: {event}")
            check(event["files_total"] == SMALL + 3 and not event["hash_ok"], f"{event}")
            check("compared by size and time alone" in end.text(), "and said")
            told = [(event["name"], event["outcome"], event["digest"], event["path"])
                    for event in end.events("file")]
            check(told == [("tree/large", "there_unread", None, str(world.target / "tree/large"))],
                  f"small ones have no line: {told}")
        check((world.target / "tree/large").read_bytes() == bytes(LARGE), "it was not written")

        # Without --quick they are compared.
        run = Run(world, top, on_exist="skip", code=6)
        kept = [e["name"] for e in run.receipts[0]["entries"] if e["outcome"] == "kept"]
        check(sorted(kept) == ["tree/large", "tree/sub/small-50"], f"compared by digest: {kept}")


def test_files(onehop) -> None:
    with Loopback(onehop) as world:
        top = make_tree(world.work)
        run = Run(world, top, recv=("--files",))
        receipt = run.check_alike()
        told = {event["name"]: event["digest"] for event in run.ends[1].events("file")}
        check(told == {e["name"]: e["digest"].removeprefix("sha256:") for e in receipt["entries"]
                       if e["kind"] == "file"}, f"an event for each file, with its digest: {told}")
        check(len(run.sender.events("file")) == 1, "at the other end of the large one alone")
        run = Run(world, top, recv=("--files", "--quick"))
        check({e["outcome"] for e in run.ends[1].events("file")} == {"there_unread"}, "unread too")


def test_changed(onehop) -> None:
    """Of a tree of several volumes, in which a file changes while it is sent, each entry is listed
    once, and as it was delivered."""
    with Loopback(onehop) as world:
        top = make_tree(world.work)
        for i in range(4200):
            (top / "sub" / "empty" / f"{i}").write_bytes(b"%d" % i)
        large = top / "large"
        large.write_bytes(os.urandom(80_000_000))
        files = [world.work / "sent.json", world.work / "received.json"]
        receiver = world.receive("--receipt", files[1])
        sender = world.start("send", top, "--to", world.address, "--json", "--receipt", files[0],
                             "--max-rate", "200Mbit")
        sender.wait_for(lambda: sender.events("interval"), "data flows")
        with open(large, "r+b") as file:
            file.write(b"another beginning")
        for end in (sender, receiver):
            check(end.code() == 0, f"it ends with 0: {end.text()}")
        check("changed while it was being sent" in sender.text(), f"{sender.text()}")
        sent, received = (json.loads(file.read_text()) for file in files)
        check(sent["entries"] == received["entries"], "both list the same")
        check(sent["root"] == received["root"] == root_of(sent), "both have the same root")
        listed = {entry["name"]: entry for entry in sent["entries"]}
        check(len(listed) == len(sent["entries"]) == 1 + len(list(top.rglob("*"))), "once each")
        check(listed["tree/large"]["mtime_ns"] == large.stat().st_mtime_ns, "as it is now")
        check((world.target / "tree/large").read_bytes() == large.read_bytes(), "it is there")


def test_kept(onehop) -> None:
    """What was kept is listed, and is not in the root."""
    with Loopback(onehop) as world:
        top = make_tree(world.work)
        Run(world, top)
        (world.target / "tree/large").write_bytes(os.urandom(LARGE))
        (world.target / "tree/sub/small-9").write_bytes(os.urandom(9 * 50))
        run = Run(world, top, on_exist="skip", code=6)
        sent, received = run.receipts
        check(sent["root"] == received["root"] == root_of(sent) and sent["complete"], f"{sent}")
        kept = {entry["name"] for entry in sent["entries"] if entry["outcome"] == "kept"}
        check(kept == {"tree/large", "tree/sub/small-9"} and sent["files_kept"] == 2, f"{kept}")
        check(all(entry["digest"] is None for entry in sent["entries"] if entry["name"] in kept),
              "without a digest")


def test_renamed(onehop) -> None:
    with Loopback(onehop) as world:
        file = world.file(1000)
        (world.target / file.name).write_text("another")
        receipt = Run(world, file, on_exist="rename").check_alike()
        entry = receipt["entries"][0]
        check((entry["name"], entry["final_name"]) == ("file.bin", "file (2).bin"), f"{entry}")


def test_partly(onehop) -> None:
    """An interrupted session says so, and what was delivered; one without a file says nothing."""
    with Loopback(onehop) as world:
        first, last = world.text("first", "1"), world.work / "last"
        last.write_bytes(os.urandom(30_000_000))
        files = [world.work / "sent.json", world.work / "received.json"]
        for file in files:
            file.write_text("before")
        receiver = world.receive("--receipt", files[1])
        sender = world.start("send", first, last, "--to", world.address, "--json", "--max-rate",
                             "20Mbit", "--receipt", files[0])
        sender.wait_for(lambda: sender.events("file"), "the first file is there")
        sender.process.send_signal(2)
        check(sender.code() == 7 and receiver.code() == 7, f"interrupted: {sender.text()}")
        for file in files:
            receipt = json.loads(file.read_text())
            check(not receipt["complete"] and receipt["root"] is None, f"partial: {receipt}")
            check([entry["name"] for entry in receipt["entries"]] == ["first"], f"{receipt}")
            check(receipt["exit_code"] == 7, f"{receipt}")
            file.write_text("before")
        sender = world.start("send", first, "--to", world.address, "--wait", 0, "--receipt",
                             files[0])
        check(sender.code() == 3 and files[0].read_text() == "before", "nothing took place")


def test_beside(onehop) -> None:
    """On its way to its name a receipt takes no name that a file of somebody has."""
    with Loopback(onehop) as world:
        receiver = world.receive("--receipt", world.work / "r.json")
        pid = receiver.process.pid
        others = [world.text(f"r.json.{number}", "precious") for number in range(pid, pid + 200)]
        sender = world.start("send", world.file(1000), "--to", world.address)
        check(sender.code() == 0 and receiver.code() == 0, f"both are done: {receiver.text()}")
        check(json.loads((world.work / "r.json").read_text())["complete"], "it is written")
        check([file for file in others if file.read_text() == "precious"] == others, "they stay")
        check(len(list(world.work.glob("r.json.*"))) == len(others), "nothing is left beside it")


def test_refused(onehop) -> None:
    with Loopback(onehop) as world:
        file = world.file(10)
        for words in (("--receipt", world.work), ("--receipt", world.work / "none" / "r.json")):
            world.refused_at_once("send", file, "--to", world.address, *words, words=["--receipt"],
                                  code=8)
            world.refused_at_once("recv", *words, words=["--receipt"], code=8)


def test_full(onehop) -> None:
    """A receipt that cannot be written is 8 at its own end, and the files are there all the
    same."""
    with Loopback(onehop) as world:
        top, receipt = make_tree(world.work), world.work / "r.json"
        world.refused("send", top, "--to", world.address, "--receipt", "/dev/null",
                      words=["no regular file"], code=8)
        receipt.write_text("before")
        receiver = world.receive()
        # A limit on what may be written, without the signal that else ends the program: EFBIG. The
        # receipt is longer, what the program says is shorter.
        world.prefix = ["sh", "-c", "trap '' XFSZ; exec prlimit --fsize=5000 \"$@\"", "sh"]
        sender = world.refused("send", top, "--to", world.address, "--receipt", receipt,
                               words=["write the receipt", "File too large"], code=8)
        check(receiver.code() == 0, f"the other end is done: {receiver.text()}")
        there = world.target / "tree/large"
        check(there.read_bytes() == (top / "large").read_bytes(), "the files are there")
        check(receipt.read_text() == "before", "and what had the receipt's name")
        check(not list(world.work.glob("r.json.*")), f"nothing is left beside it: {sender.text()}")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
