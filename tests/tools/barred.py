# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A tree, and sessions that leave some of it out: for barred_program_test.py."""

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

from loopback import check
from program import Skip

OURS = 65534
LARGE = 300_000
POLICIES = ("", "resume", "skip", "rename", "overwrite")
CAUSES = {errno.ENOTDIR: "that is no folder", errno.ELOOP: "a symbolic link there",
          errno.EISDIR: "a folder there has this name", errno.EACCES: "no right to it",
          errno.EXDEV: "another file system", errno.EROFS: "is read only",
          errno.EPERM: "not permitted", errno.EBUSY: "mounted on it",
          errno.EFBIG: "larger than a file may be", errno.ENAMETOOLONG: "File name too long",
          errno.EEXIST: "something else there"}


def make_tree(folder) -> Path:
    """make_tree: small files and large ones, at the top, in `sub` and below it."""
    top = folder / "tree"
    for path in ("a.txt", "sub/b.txt", "sub/deep/c.txt", "other/d.txt", "z.txt"):
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(f"content of {path}")
    for path in ("large", "sub/large", "other/large"):
        (top / path).write_bytes(os.urandom(LARGE))
    for i in range(40):
        (top / f"small-{i}").write_text(f"{i}")
    for i, path in enumerate(sorted(top.rglob("*")) + [top]):
        os.utime(path, ns=(0, 10**18 + i * 10**9))
    return top


def names(folder) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def as_user(world) -> None:
    """as_user: both ends are another user, who owns the destination."""
    if os.geteuid() != 0:
        raise Skip("another user is needed, which root alone can be")
    world.become(OURS)
    for path in (world.work, world.target):
        os.chown(path, OURS, OURS)


def session(world, top, policy="", before_recv=()) -> Any:
    """session plays one; its codes and what was left out at each end."""
    options = ("--on-exist", policy) if policy else ()
    reports = [world.target.parent / f"report-{end}" for end in ("send", "recv")]
    for report in reports:
        report.unlink(missing_ok=True)
    prefix, world.prefix = world.prefix, [*before_recv, *world.prefix]
    receiver = world.start("recv", "--once", "--dir", world.target, "--listen", world.address,
                           "--json", "--files", "--report", reports[1], *options)
    world.prefix = prefix
    receiver.wait_for(lambda: receiver.events("start"), "recv can accept")
    sender = world.start("send", top, "--to", world.address, "--json", "--files", "--report",
                         reports[0])
    codes = sender.code(), receiver.code()
    told = [{item["path"]: item["cause"] for item in json.loads(report.read_text())["left_out"]}
            if report.exists() else {} for report in reports]
    check(told[0] == told[1], f"both ends tell the same: {told}")
    return codes, told[0], f"{sender.text()} | {receiver.text()}"


def check_rest(world, top, refused) -> None:
    """check_rest: all else is there, as it was sent, and nothing of ours."""
    for path in [top, *sorted(top.rglob("*"))]:
        name = str(path.relative_to(top.parent))
        if name in refused:
            continue
        there = world.target / name
        check(there.is_dir() if path.is_dir() else there.read_bytes() == path.read_bytes(),
              f"{name} arrived")
        is_above = any(other.startswith(f"{name}/") for other in refused)
        if not path.is_dir():
            check(there.stat().st_mtime_ns == path.stat().st_mtime_ns, f"{name}: its time")
            check(there.stat().st_mode == path.stat().st_mode, f"{name}: its mode")
        elif not is_above:
            check(stat.S_IMODE(there.stat().st_mode) == stat.S_IMODE(path.stat().st_mode),
                  f"{name}: mode {there.stat().st_mode:o}")
    ours = [name for name in names(world.target) if ".onehop-" in name or name.endswith(".part")]
    check(not ours, f"nothing of ours is left: {ours}")


def barred(world, top, refused, policy="", again=("resume", "overwrite"), **how) -> None:
    """barred: `refused`, with the errno of each, is left out, now and when it is played again."""
    for round_, now in enumerate((policy, *again)):
        codes, told, text = session(world, top, now, **how)
        wanted = 12 if refused else 0
        check(codes == (wanted, wanted), f"{now} {round_}: {codes}: {text}")
        check(set(told) == set(refused), f"{now} {round_}: {sorted(told)}: {text}")
        for name, fault in refused.items():
            check(CAUSES[fault] in told[name], f"{name}: {told[name]}")
        check_rest(world, top, refused)


def below(top, name, fault) -> dict[str, int]:
    """below: `name` and all that it holds."""
    return {f"tree/{path.relative_to(top)}": fault
            for path in [top / name, *(top / name).rglob("*")]}
