#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Entries that the receiver cannot take: barred_program_test.py ONEHOP [WORD].

Goal:   what is in the way of an entry at the receiver, or who may not write there, is a matter of
        that entry and of all below it: it is left out with its cause, all else arrives, both ends
        end with 12, and the same command ends the same way. Folders of our own are opened up and
        closed again. Nothing of the user's is lost, nothing of ours is left.
Method: the real program into folders that are prepared so, under each policy, as root and as
        another user; what this machine cannot make is skipped.
Bounds: exact.
"""

import errno
import os
import shutil
import stat
import subprocess
import sys

from barred import (LARGE, OURS, POLICIES, as_user, barred, below, check_rest, make_tree, names,
                    session)
from disks import Disk
from loopback import Loopback, check
from program import Skip, main
from program import run as command


def test_a_folder_where_a_file_is(onehop) -> None:
    for policy in POLICIES:
        with Loopback(onehop) as world:
            top = make_tree(world.work)
            (world.target / "tree").mkdir()
            (world.target / "tree/sub").write_text("precious")
            is_replaced = policy == "overwrite"
            refused = {} if is_replaced else below(top, "sub", errno.ENOTDIR)
            barred(world, top, refused, policy, again=("overwrite", ) if is_replaced else
                   ("resume", ))
            if not is_replaced:
                check((world.target / "tree/sub").read_text() == "precious", "nothing is lost")


def test_a_folder_where_a_link_to_one_is(onehop) -> None:
    for policy in POLICIES:
        with Loopback(onehop) as world:
            top = make_tree(world.work)
            elsewhere = world.work / "elsewhere"
            elsewhere.mkdir()
            (elsewhere / "b.txt").write_text("precious")
            (world.target / "tree").mkdir()
            (world.target / "tree/sub").symlink_to(elsewhere)
            barred(world, top, below(top, "sub", errno.ELOOP), policy)
            check((elsewhere / "b.txt").read_text() == "precious" and names(elsewhere) ==
                  {"b.txt"}, "what it leads to is as it was")
            check((world.target / "tree/sub").is_symlink(), "and so is the link")


def test_the_top_is_a_link(onehop) -> None:
    """As all of it is left out, there is nothing to do."""
    with Loopback(onehop) as world:
        top = make_tree(world.work)
        (world.target / "tree").symlink_to(world.work / "nowhere")
        codes, told, text = session(world, top)
        check(codes == (12, 12), f"{codes}: {text}")
        check(set(told) == {"tree", *(f"tree/{name}" for name in names(top))}, f"{told}")


def test_a_file_where_a_folder_is(onehop) -> None:
    for policy in POLICIES:
        for name in ("a.txt", "large"):
            with Loopback(onehop) as world:
                top = make_tree(world.work)
                (world.target / "tree" / name).mkdir(parents=True)
                (world.target / "tree" / name / "own").write_text("precious")
                refused = {f"tree/{name}": errno.EISDIR}
                if policy in ("", "resume", "overwrite"):
                    barred(world, top, refused, policy)
                else:
                    codes, _, text = session(world, top, policy)
                    check(codes == ((6, 6) if policy == "skip" else (0, 0)), f"{codes} {text}")
                    check_rest(world, top, refused)
                check((world.target / "tree" / name / "own").read_text() == "precious",
                      "nothing is lost")


def test_a_file_where_an_empty_folder_is(onehop) -> None:
    with Loopback(onehop) as world:
        top = make_tree(world.work)
        for name in ("a.txt", "large"):
            (world.target / "tree" / name).mkdir(parents=True)
        barred(world, top, {}, "overwrite", again=("overwrite", ))


def test_a_file_where_something_else_is(onehop) -> None:
    """A fifo, and a link of the user's own, which is followed by nobody."""
    for policy in ("", "resume", "overwrite"):
        with Loopback(onehop) as world:
            top = make_tree(world.work)
            (world.target / "tree").mkdir()
            os.mkfifo(world.target / "tree/a.txt")
            (world.work / "victim").write_text("precious")
            (world.target / "tree/large").symlink_to(world.work / "victim")
            barred(world, top, {"tree/a.txt": errno.EEXIST, "tree/large": errno.ELOOP}, policy)
            check((world.work / "victim").read_text() == "precious", "nothing is lost")


def test_a_folder_of_another_user(onehop) -> None:
    with Loopback(onehop) as world:
        as_user(world)
        top = make_tree(world.work)
        (world.target / "tree/sub").mkdir(parents=True)
        os.chown(world.target / "tree", OURS, OURS)
        (world.target / "tree/other").mkdir(mode=0o700)  # nor to be looked into
        refused = below(top, "sub", errno.EACCES) | below(top, "other", errno.EACCES)
        del refused["tree/sub"], refused["tree/other"]  # the folders themselves are there
        codes, told, text = session(world, top)
        check(codes == (12, 12), f"{codes}: {text}")
        check(set(told) == set(refused), f"{sorted(told)}: {text}")
        (world.target / "tree/other").chmod(0o755)
        barred(world, top, refused, "resume")


def test_folders_of_our_own_that_are_closed(onehop) -> None:
    """As Go's module cache and Nix have them: a second run that brings more, and one after a
    kill."""
    for mode in (0o555, 0o311, 0o111, 0o000, 0o444):
        with Loopback(onehop) as world:
            as_user(world)
            top = make_tree(world.work)
            folders = [top / "sub/deep", top / "sub", top / "other"]

            def close(mode) -> None:
                for folder in folders:
                    folder.chmod(mode)

            def offer(mode) -> None:
                # The sender reads them by capability: closed at the receiver alone.
                for folder in folders:
                    os.chown(folder, OURS, OURS)
                close(mode | 0o500)

            offer(mode)
            wanted = mode | 0o500
            closed = [world.target / "tree" / folder.relative_to(top) for folder in folders]
            codes, _, text = session(world, top)
            check(codes == (0, 0), f"{mode:o}: {codes}: {text}")
            for round_ in range(3):
                check([stat.S_IMODE(folder.stat().st_mode) for folder in closed] ==
                      [wanted if round_ == 0 else mode] * 3, f"{mode:o}: {round_}")
                for folder in closed:
                    folder.chmod(mode)
                for folder in reversed(folders):
                    folder.chmod(0o755)
                    (folder / f"more-{round_}").write_text("more")
                    (folder / f"more-{round_}.large").write_bytes(os.urandom(LARGE))
                close(wanted)
                codes, told, text = session(world, top, ("resume", "overwrite", "skip")[round_])
                check(codes == (0, 0), f"{mode:o}: {round_}: {codes}: {told} {text}")
                for folder, there in zip(folders, closed):
                    check((there / f"more-{round_}").read_text() == "more", "it arrived")
                    check((there / f"more-{round_}.large").read_bytes() ==
                          (folder / f"more-{round_}.large").read_bytes(), "it arrived")
                    check(not [path for path in there.iterdir() if path.name.startswith(".")],
                          "nothing is left")


def test_what_may_not_be_changed(onehop) -> None:
    with Loopback(onehop) as world:
        top = make_tree(world.work)
        (world.target / "tree/sub").mkdir(parents=True)
        for name in ("a.txt", "large"):
            (world.target / "tree" / name).write_text("precious")
        fixed = [world.target / "tree" / name for name in ("a.txt", "large", "sub")]
        if os.geteuid() != 0 or subprocess.run(["chattr", "+i", *fixed], capture_output=True,
                                               check=False).returncode != 0:
            raise Skip("files that may not be changed (chattr +i) cannot be made here")
        refused = {name: errno.EPERM for name in ("tree/a.txt", "tree/large")}
        refused |= below(top, "sub", errno.EPERM)
        del refused["tree/sub"]
        try:
            barred(world, top, refused, "overwrite", again=("overwrite", ))
            for path in fixed[:2]:
                check(path.read_text() == "precious", "nothing is lost")
        finally:
            command("chattr", "-i", *fixed)


def test_a_file_that_is_mounted(onehop) -> None:
    if os.geteuid() != 0:
        raise Skip("mounts need root")
    with Loopback(onehop) as world:
        top = make_tree(world.work)
        (world.target / "tree").mkdir()
        (world.work / "victim").write_text("precious")
        mounted = [world.target / "tree" / name for name in ("a.txt", "large")]
        for path in mounted:
            path.touch()
            command("mount", "--bind", world.work / "victim", path)
        try:
            barred(world, top, {"tree/a.txt": errno.EBUSY, "tree/large": errno.EBUSY},
                   "overwrite", again=("overwrite", ))
            check((world.work / "victim").read_text() == "precious", "nothing is lost")
        finally:
            for path in mounted:
                command("umount", path)


def test_a_file_system_below(onehop) -> None:
    """One that is read only, too."""
    if os.geteuid() != 0:
        raise Skip("mounts need root")
    for option in ("rw", "ro"):
        with Loopback(onehop) as world:
            top = make_tree(world.work)
            mounted = world.target / "tree/sub"
            mounted.mkdir(parents=True)
            command("mount", "-t", "tmpfs", "-o", option, "none", mounted)
            try:
                fault = errno.EXDEV if option == "rw" else errno.EROFS
                refused = below(top, "sub", fault)
                del refused["tree/sub"]
                if option == "rw":
                    del refused["tree/sub/large"], refused["tree/sub/deep"]
                barred(world, top, refused)
            finally:
                command("umount", mounted)


def test_a_file_that_is_too_large(onehop) -> None:
    with Loopback(onehop) as world:
        top = make_tree(world.work)
        large = {f"tree/{name}": errno.EFBIG for name in ("large", "sub/large", "other/large")}
        barred(world, top, large, before_recv=("prlimit", f"--fsize={LARGE - 1}"))


def test_a_disk_that_fails_under_a_file(onehop) -> None:
    """It is read only from then on, say, which is no matter of the one entry."""
    for fault in ("EROFS", "EINVAL"):
        with Loopback(onehop) as world, \
                Disk("fuse", world, options=("--error", f"write@4000000={fault}")):
            top = world.work / "tree"
            top.mkdir()
            (top / "large").write_bytes(os.urandom(8_000_000))
            codes, told, text = session(world, top)
            check(codes[1] == 8 and not told, f"{fault}: {codes}: {told} {text}")


def test_two_receivers_of_the_same(onehop) -> None:
    """Into one folder, at the same time: the file of the other is there."""
    for policy in ("resume", "rename", "overwrite"):
        with Loopback(onehop) as world, Loopback(onehop) as second:
            top = make_tree(world.work)
            for i in range(300):
                (top / f"more-{i}").write_bytes(os.urandom(20_000))
            second.target = world.target
            ends = []
            for one in (world, second):
                ends.append(one.start("recv", "--once", "--dir", one.target, "--listen",
                                      one.address, "--json", "--on-exist", policy))
            for end in ends:
                end.wait_for(lambda end=end: end.events("start"), "recv can accept")
            for one in (world, second):
                ends.append(one.start("send", top, "--to", one.address, "--max-rate", "40Mbit"))
            codes = [end.code() for end in ends]
            check(codes == [0] * 4, f"{policy}: {codes}: {[end.text() for end in ends]}")
            check_rest(world, top, {})


def test_a_name_that_comes_up_meanwhile(onehop) -> None:
    """Another content: what is there stays, and is named; an equal one is there."""
    with Loopback(onehop) as world:
        top = make_tree(world.work)
        receiver = world.start("recv", "--once", "--dir", world.target, "--listen",
                               world.address, "--json")
        receiver.wait_for(lambda: receiver.events("start"), "recv can accept")
        (top / "very-large").write_bytes(os.urandom(4_000_000))
        sender = world.start("send", top, "--to", world.address, "--json", "--max-rate", "10Mbit")
        receiver.wait_for(lambda: list(world.target.rglob("*.part")), "it begins")
        there = world.target / "tree"
        there.mkdir(exist_ok=True)
        (there / "very-large").write_text("precious")
        shutil.copy2(top / "large", there / "large.copy")
        codes = sender.code(), receiver.code()
        check(codes == (12, 12), f"{codes}: {sender.text()} {receiver.text()}")
        check((there / "very-large").read_text() == "precious", "nothing is lost")
        (there / "large.copy").unlink()
        check_rest(world, top, {"tree/very-large"})


def test_equal_content_gets_mode_and_time(onehop) -> None:
    with Loopback(onehop) as world:
        top = make_tree(world.work)
        shutil.copytree(top, world.target / "tree")
        for path in sorted((world.target / "tree").rglob("*")):
            if path.is_file():
                path.chmod(0o600)
                os.utime(path, ns=(0, 5 * 10**17))
        codes, _, text = session(world, top, "skip")
        check(codes == (0, 0), f"{codes}: {text}")
        kept = [path.stat() for path in (world.target / "tree").rglob("*.txt")]
        check({(stat.S_IMODE(one.st_mode), one.st_mtime_ns) for one in kept} == {(0o600,
                                                                                  5 * 10**17)},
              "skip leaves what is there as it is")
        for _ in range(2):
            barred(world, top, {}, "resume", again=())


def test_a_umask_that_takes_our_own_rights(onehop) -> None:
    for umask in ("0277", "0777"):
        with Loopback(onehop) as world:
            as_user(world)
            top = make_tree(world.work)
            runtime = world.work / "runtime"
            runtime.mkdir()
            os.chown(runtime, world.target.stat().st_uid, -1)
            shell = ("sh", "-c",
                     f'export XDG_RUNTIME_DIR={runtime}; umask {umask}; exec "$@"', "sh")
            for policy in ("", "overwrite"):
                codes, _, text = session(world, top, policy, before_recv=shell)
                check(codes == (0, 0), f"{umask} {policy}: {codes}: {text}")
                for path in [top, *top.rglob("*")]:
                    there = world.target / path.relative_to(top.parent)
                    check(stat.S_IMODE(there.stat().st_mode) ==
                          stat.S_IMODE(path.stat().st_mode) & ~int(umask, 8), f"{there}")
                check(not [name for name in names(world.target) if "onehop" in name or
                           name.endswith(".part")], f"{umask}: {names(world.target)}")
                check(stat.S_IMODE((runtime / "onehop").stat().st_mode) == 0o700,
                      "the folder for the sockets of onehop watch serves the next run")


def test_names_that_the_file_system_has_no_room_for(onehop) -> None:
    """Also where the name fits and a longer one of our own would not."""
    for limit in (143, 175, 60):
        with Loopback(onehop) as world, Disk("fuse", world, options=("--name", str(limit))):
            top = world.work / "tree"
            top.mkdir()
            for content in (b"small", os.urandom(LARGE)):
                for size in (limit - 30, limit - 10, limit, limit + 1, 200):
                    (top / (f"{len(content):06}" + "n" * (size - 6))).write_bytes(content)
            (top / ("d" * limit)).mkdir()
            (top / ("d" * limit) / "file").write_text("content")
            (top / ("e" * (limit + 1))).mkdir()
            (top / ("e" * (limit + 1)) / "file").write_text("content")
            refused = {f"tree/{path.relative_to(top)}": errno.ENAMETOOLONG
                       for path in top.rglob("*")
                       if max(len(part) for part in path.relative_to(top).parts) > limit}
            barred(world, top, refused)


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
