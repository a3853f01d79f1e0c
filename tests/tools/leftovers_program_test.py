#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Names of our own in the destination: leftovers_program_test.py ONEHOP [WORD].

Goal:   P2, P8, U3: whatever another user puts under the names that sessions use neither stops a
        transfer nor is followed, changed or removed. What an interrupted session left is gone after
        the next one that succeeds, whatever of its file has changed meanwhile; blocks of it that
        are still right are not sent again; no number of interrupts blocks a name.
Method: the real program into a folder of mode 1777, as a user who does not own what was planted
        (as root; else only what a user can do to himself), SIGKILL at both ends while data flows.
Bounds: exact; of 8 MB that were interrupted a third is there at least.
"""

import os
import re
import shutil
import stat
import sys
from typing import Any

from loopback import MB, Loopback, check
from program import Skip, main

OTHER, OURS = 65533, 65534
SIZE = 8 * MB


def names(folder) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def receive(world, *options) -> Any:
    end = world.start("recv", "--once", "--dir", world.target, "--listen", world.address, "--json",
                      *options)
    end.wait_for(lambda: end.events("start"), "recv can accept")
    return end


def run(world, *paths, code=0, options=()) -> tuple[int, str]:
    """run sends the paths; what the receiver had already, and what it said."""
    receiver = receive(world, *options)
    sender = world.start("send", *paths, "--to", world.address, "--json")
    codes = sender.code(), receiver.code()
    check(codes == (code, code), f"{codes}: {sender.text()} {receiver.text()}")
    return receiver.end()["bytes_skipped_total"], receiver.text()


def interrupt(world, *paths, part, options=()) -> None:
    """interrupt kills both ends once a third of the part is there."""
    receiver = receive(world, *options)
    sender = world.start("send", *paths, "--to", world.address, "--max-rate", "200Mbit")

    def grown() -> bool:
        try:
            found = [path for path in world.target.rglob(part) if not path.is_symlink()]
        except FileNotFoundError:  # a stage of another session has just gone
            return False
        return any(path.is_file() and path.stat().st_uid == receiver_uid(world) and
                   path.stat().st_blocks * 512 > SIZE // 3 for path in found)

    receiver.wait_for(grown, f"{part} grows")
    for end in (receiver, sender):
        end.process.kill()
        end.process.wait()


def receiver_uid(world) -> int:
    return OURS if world.prefix else os.geteuid()


def plant(folder, name, kind) -> None:
    path = folder / name
    if kind == "file":
        path.write_bytes(b"")
    elif kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(folder.parent / "victim")
    if not path.is_symlink():
        path.chmod(0o600 if kind != "folder" else 0o700)
    os.chown(path, OTHER, OTHER, follow_symlinks=False)


def state_of(folder) -> dict[str, tuple[int, int, int, int]]:
    return {path.name: (path.lstat().st_ino, path.lstat().st_mode, path.lstat().st_size,
                        path.lstat().st_mtime_ns) for path in folder.iterdir()}


def shared(world, kind) -> None:
    """shared makes the destination one for all, with every name taken that can be guessed."""
    world.become(OURS)
    world.work.chmod(0o777)
    world.target.chmod(0o1777)
    (world.work / "victim").write_text("precious")
    numbered = ["", *(f".{number}" for number in range(1, 40))]
    for number in numbered:
        plant(world.target, f"{number}.onehop-session", kind)
        plant(world.target, f"{number}.onehop-stage", kind)
    for name in ("big", "small", "file.bin"):
        for number in numbered[:11]:
            plant(world.target, f".{name}{number}.part", kind)
            plant(world.target, f".{name}{number}.onehop-journal", kind)


def test_names_that_another_user_has_taken_stop_nothing(onehop) -> None:
    if os.geteuid() != 0:
        raise Skip("another user is needed, which root alone can be")
    for kind in ("file", "folder", "fifo", "symlink"):
        with Loopback(onehop) as world:
            shared(world, kind)
            before = state_of(world.target)
            big, small = world.work / "big", world.work / "small"
            big.write_bytes(os.urandom(SIZE))
            small.write_text("small")
            tree = world.work / "tree"
            tree.mkdir()
            for i in range(40):
                (tree / f"f{i}").write_text(f"{i}")
            run(world, small)  # alone it has a part
            run(world, tree, big)
            (world.target / "small").unlink()
            run(world, small, options=("--on-exist", "rename"))
            check((world.target / "big").read_bytes() == big.read_bytes(), "its content")
            check((world.target / "small").read_text() == "small", "its content")
            check((world.work / "victim").read_text() == "precious", "no link is followed")
            wanted = {"big", "small", "tree", *before}
            check({path.name for path in world.target.iterdir()} == wanted,
                  f"{kind}: nothing of ours is left: {state_of(world.target).keys() - wanted}")
            after = state_of(world.target)
            check({name: after[name] for name in before} == before, f"{kind}: all is as it was")


def test_what_was_interrupted_goes_on_beside_them(onehop) -> None:
    if os.geteuid() != 0:
        raise Skip("another user is needed, which root alone can be")
    with Loopback(onehop) as world:
        shared(world, "file")
        before = set(names(world.target))
        big = world.work / "big"
        big.write_bytes(os.urandom(SIZE))
        interrupt(world, big, part=".big*.part")
        ours = [path for path in world.target.iterdir() if path.lstat().st_uid == OURS]
        check(len(ours) == 2 and all(
            re.match(r"\.big\.[0-9a-f]{16}\.", path.name) and
            stat.S_IMODE(path.stat().st_mode) == 0o600 for path in ours),
              f"nobody can guess them: {ours}")
        skipped, _ = run(world, big)
        check(skipped >= SIZE // 4, f"it goes on: {skipped}")
        check(set(names(world.target)) == before | {"big"}, "nothing of ours is left")


def test_a_file_that_changes_between_interrupts_has_one_part(onehop) -> None:
    with Loopback(onehop) as world:
        source = world.file(SIZE)
        for round_ in range(12):
            interrupt(world, source, part=".file.bin*.part")
            found = names(world.target)
            check(found == [".file.bin.onehop-journal", ".file.bin.part"], f"{round_}: {found}")
            if round_ % 3 == 0:
                os.utime(source, ns=(0, (round_ + 1) * 10**18 // 100))
            elif round_ % 3 == 1:
                with open(source, "ab") as more:
                    more.write(os.urandom(100_000))
            else:
                source.chmod(0o600 + round_)
        skipped, _ = run(world, source)
        check(skipped >= SIZE // 4, f"what is still right is not sent again: {skipped}")
        check(names(world.target) == ["file.bin"], f"nothing is left: {names(world.target)}")
        check((world.target / "file.bin").read_bytes() == source.read_bytes(), "its content")


def test_blocks_that_changed_are_sent_again(onehop) -> None:
    with Loopback(onehop) as world:
        source = world.file(SIZE)
        interrupt(world, source, part=".file.bin.part")
        with open(source, "r+b") as file:
            file.seek(300_000)
            file.write(b"other bytes")
        skipped, _ = run(world, source)
        check(SIZE // 4 <= skipped < SIZE, f"{skipped}")
        check((world.target / "file.bin").read_bytes() == source.read_bytes(), "its content")
        check(names(world.target) == ["file.bin"], f"nothing is left: {names(world.target)}")


def test_a_file_that_shrinks_leaves_no_part(onehop) -> None:
    """P8: below the size of small files, which have no part; and one that is cut in the middle."""
    with Loopback(onehop) as world:
        tree = world.work / "tree"
        (tree / "below").mkdir(parents=True)
        for i in range(20):
            (tree / f"f{i}").write_text(f"{i}")
        for length in (1000, SIZE // 2):
            big = tree / "below" / "big"
            big.write_bytes(os.urandom(SIZE))
            interrupt(world, tree, part=".big.part")
            with open(big, "r+b") as file:
                file.truncate(length)
            run(world, tree)
            check(names(world.target) == ["tree", *(f"tree/{name}" for name in names(tree))],
                  f"nothing is left: {names(world.target)}")
            check((world.target / "tree/below/big").read_bytes() == big.read_bytes(), "content")
            times = [folder.stat().st_mtime_ns
                     for folder in (tree / "below", world.target / "tree/below")]
            check(times[0] == times[1], f"what went before its folder got its time: {times}")
            shutil.rmtree(world.target / "tree")


def test_a_stage_that_was_left_goes_with_any_session(onehop) -> None:
    with Loopback(onehop) as world:
        stage = world.target / ".onehop-stage"
        stage.mkdir(mode=0o700)
        (stage / "1f").write_text("left")
        run(world, world.file(MB))
        check(names(world.target) == ["file.bin"], f"{names(world.target)}")


def test_old_parts_with_numbers_go(onehop) -> None:
    """Earlier versions left `.NAME.N.part`, with a journal of version 1 beside it."""
    with Loopback(onehop) as world:
        source = world.file(SIZE)
        interrupt(world, source, part=".file.bin.part")
        part, journal = (world.target / f".file.bin.{kind}" for kind in ("part", "onehop-journal"))
        for number in range(1, 10):
            for path in (part, journal):
                shutil.copy2(path, path.with_name(
                    path.name.replace(".file.bin.", f".file.bin.{number}.")))
        (world.target / ".file.bin.3.part").write_text("not ours")
        (world.target / ".file.bin.3.onehop-journal").unlink()
        skipped, _ = run(world, source)
        check(skipped >= SIZE // 4, f"the newest goes on: {skipped}")
        check(names(world.target) == [".file.bin.3.part", "file.bin"], f"{names(world.target)}")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
