#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Links that a peer sends: symlinks_program_test.py ONEHOP [WORD].

Goal:   P2, P7: a link of a peer's leads nowhere but below the folder that was sent, has no hidden
        name in its target unless that is allowed, and goes through no link that was there. What is
        refused is named at both ends, which end with 12, and all else arrives. `recv --symlinks
        refuse` takes none.
Method: the real program. `send DIR/ --symlinks copy` sends what lies in DIR under its own names, so
        the links of a folder of DIR lead as a hostile sender's would.
Bounds: exact.
"""

import json
import os
import sys

from loopback import Loopback, check
from program import main


def transfer(world, *options, code, refused, either=()) -> None:
    """transfer sends `top/` and checks what was refused, at both ends, and one of `either`."""
    reports = [world.work / "send.json", world.work / "recv.json"]
    receiver = world.receive("--report", reports[1], *options)
    sender = world.start("send", f"{world.work}/top/", "--symlinks", "copy", "--to", world.address,
                         "--json", "--report", reports[0])
    codes = sender.code(), receiver.code()
    check(codes == (code, code), f"{codes}: {sender.text()} {receiver.text()}")
    for report in reports:
        left_out = json.loads(report.read_text())["left_out"]
        found = {item["path"]: item["cause"] for item in left_out}
        check({item["kind"] for item in left_out} <= {"name_refused"}, f"{left_out}")
        together = [path for path in either if path in found]
        check(len(together) == (1 if either else 0), f"one of {either}: {found}")
        check(set(found) - set(together) == set(refused), f"{found}")
        for path, word in refused.items():
            check(word in found[path], f"{path}: {found[path]}")
    for path in refused:
        check(not os.path.lexists(world.target / path), f"{path} has no name")
    check((world.target / "photos" / "a").read_text() == "a", "all else arrived")


def make(world, **links) -> None:
    photos = world.work / "top" / "photos"
    photos.mkdir(parents=True, exist_ok=True)
    (photos / "a").write_text("a")
    for name, target in links.items():
        (photos / name).symlink_to(target)
    # What the user has.
    for folder in (".ssh", "Documents", "photos/album"):
        (world.target / folder).mkdir(parents=True)
    (world.target / ".ssh" / "authorized_keys").write_text("keys")
    (world.target / "Documents" / "plan").write_text("plan")
    (world.target / "photos" / "disk").symlink_to("/etc")
    (world.target / "photos" / "mine").symlink_to("album")
    (world.target / "photos" / "album" / "out").symlink_to("../../Documents")


HIDDEN, OUT, OTHER = "begins with a dot", "not below the folder that was sent", "another one there"


def test_links_that_lead_elsewhere_are_refused(onehop) -> None:
    with Loopback(onehop) as world:
        make(world, keys="../.ssh/authorized_keys", own=".config/x", plan="../Documents/plan",
             root="..", passwd="disk/passwd", disk2="disk", through="mine/x", chain="link/out/plan",
             link="album", b="a", dangling="none/x", again="b")
        transfer(world, code=12, refused={
            "photos/keys": HIDDEN, "photos/own": HIDDEN, "photos/plan": OUT, "photos/root": OUT,
            "photos/passwd": OTHER, "photos/disk2": OTHER, "photos/through": OTHER},
                 either=("photos/chain", "photos/link"))  # whichever came last
        for name in ("b", "dangling", "again"):
            check((world.target / "photos" / name).is_symlink(), f"{name} is taken")
        check((world.target / ".ssh/authorized_keys").read_text() == "keys", "nothing was touched")


def test_hidden_targets_are_taken_where_they_are_allowed(onehop) -> None:
    with Loopback(onehop) as world:
        make(world, own=".config/x", keys="../.ssh/authorized_keys")
        transfer(world, "--allow-hidden", code=12, refused={"photos/keys": OUT})
        check((world.target / "photos/own").is_symlink(), "it is taken")


def test_links_that_lead_inside_are_taken_and_again(onehop) -> None:
    with Loopback(onehop) as world:
        make(world, b="a", up="../photos/a", beside="../other/f", through="b", deep="x/y/z")
        (world.work / "top" / "other").mkdir()
        (world.work / "top" / "other" / "f").write_text("f")
        (world.work / "top" / "other" / "l").symlink_to("../photos/b")
        transfer(world, code=0, refused={})
        transfer(world, code=0, refused={})
        (world.target / "photos" / "beside").unlink()
        (world.target / "other" / "l").unlink()  # as after an interrupt
        transfer(world, code=0, refused={})
        check((world.target / "photos" / "beside").read_text() == "f", "it is taken again")


def test_all_links_are_refused_where_they_are_not_wanted(onehop) -> None:
    with Loopback(onehop) as world:
        make(world, b="a", keys="../.ssh/authorized_keys")
        word = "not taken there"
        transfer(world, "--symlinks", "refuse", code=12,
                 refused={"photos/b": word, "photos/keys": word})
        world.refused("recv", "--symlinks", "copy", words=("--symlinks", "refuse", "take"))


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
