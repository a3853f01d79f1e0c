# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Trees, and how each program moves one: onehop, rsync's daemon, a tar pipe and scp.

Times are from outside: from the client's start to the end of both ends. The tar pipe is plain text
and verifies nothing; rsync syncs nothing.
"""

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lab as labs
import peers
from measure import MeasureError, Process, SystemMeter
from transfer import event, make_code

SECONDS_MAX = 900
TAR_PORT = 9100
MIB = 1 << 20


@dataclass
class Run:
    seconds: float
    cpu_seconds: float
    sender: Process
    receiver: Process


def make_small(folder: Path, files: int, size: int) -> None:
    """make_small makes files of one size in folders of a thousand, each with bytes of its own."""
    pool = os.urandom(MIB)
    for i in range(files):
        if i % 1000 == 0:
            (folder / f"d{i // 1000}").mkdir()
        at = i * 61 % (MIB - size)
        (folder / f"d{i // 1000}" / f"f{i}").write_bytes(pool[at:at + size])


def make_photos(folder: Path, files: int) -> None:
    draw = random.Random(1)
    pool = os.urandom(8 * MIB)
    for i in range(files):
        (folder / f"IMG_{i:04}.jpg").write_bytes(pool[:draw.randrange(2 * MIB, 8 * MIB)])


def make_one(folder: Path, size: int) -> None:
    """make_one makes one file; source and copy are in memory."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    left, chunk = min(size, memory // 4), os.urandom(16 * MIB)
    with open(folder / "one", "wb") as out:
        while left > 0:
            left -= out.write(chunk[:left])


def make_headers(folder: Path) -> None:
    sources = sorted(Path("/usr/src").glob("linux-headers-*-common"))
    if not sources:
        raise MeasureError("find the Linux headers: no /usr/src/linux-headers-*-common; install "
                           "linux-headers-amd64")
    # Its few links lead to another package, and scp follows them.
    shutil.copytree(sources[-1], folder / sources[-1].name, ignore=lambda at, names: {
        name for name in names if os.path.islink(os.path.join(at, name))})


@contextmanager
def made(context, make: Callable[[Path], None]) -> Iterator[Path]:
    """made is a fresh tree, gone afterwards."""
    tree = context.work / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir()
    try:
        make(tree)
        yield tree
    finally:
        shutil.rmtree(tree)


def check_arrived(name, tree: Path, folder: Path) -> None:
    wanted, arrived = count(tree), count(folder / tree.name)
    if arrived != wanted:
        raise MeasureError(f"{name}: {arrived} files and bytes arrived of {wanted}")


def count(folder: Path) -> tuple[int, int]:
    """count gives regular files and their bytes."""
    files = total = 0
    for at, _, names in os.walk(folder):
        for name in names:
            status = os.lstat(os.path.join(at, name))
            if not os.path.islink(os.path.join(at, name)):
                files, total = files + 1, total + status.st_size
    return files, total


def _measured(client: Process, server: Process, is_server_ending: bool) -> Run:
    meter = SystemMeter()
    client.wait(SECONDS_MAX)
    if is_server_ending:
        server.wait(SECONDS_MAX)
        ended_at = max(client.ended_at, server.ended_at)
    else:
        ended_at = client.ended_at
        time.sleep(0.2)  # the server's child ends after the client
    softirq = meter.softirq_seconds()
    server.end()
    return Run(ended_at - client.started_at,
               client.cpu_seconds + server.cpu_seconds + softirq, client, server)


def by_onehop(context, lab, tree, folder, *receive_extra, send_extra=(),
              is_memory_read=False) -> Run:
    env = {"ONEHOP_CODE": make_code()}
    receive = Process(
        lab.on("b", lab.onehop, "recv", "--once", "--dir", folder, "--listen", labs.ADDRESS_B,
               "--json", *receive_extra), context.work, "onehop-recv", env, is_memory_read)
    try:
        receive.wait_line('"start"', 10)
        send = Process(
            lab.on("a", lab.onehop, "send", tree, "--to", labs.ADDRESS_B, "--json", *send_extra),
            context.work, "onehop-send", env, is_memory_read)
        try:
            run = _measured(send, receive, True)
        finally:
            send.end()
    finally:
        receive.end()
    if not event(receive, "end")["hash_ok"] and "--quick" not in receive_extra:
        raise MeasureError("onehop: the receiver does not say hash_ok")
    return run


def by_rsync(context, lab, tree, folder, *options, law=None) -> Run:
    """by_rsync: with `law`, of the kernel's for TCP, socat makes the connection."""
    # IPPROTO_TCP, TCP_CONGESTION: 6, 13
    connect = f"socat STDIO TCP:%H:{peers.RSYNC_PORT},setsockopt-string=6:13:{law}"
    env = {"RSYNC_CONNECT_PROG": connect} if law is not None else None
    with peers.rsync_daemon(lab, folder, context.work) as server:
        client = Process(
            lab.on("a", "rsync", "-a", *options, tree, peers.rsync_url()), context.work, "rsync",
            env)
        return _measured(client, server, False)


def by_tar(context, lab, tree, folder) -> Run:
    command = lab.on("b", "sh", "-c",
                     f"socat -u TCP-LISTEN:{TAR_PORT},reuseaddr STDOUT | tar xf - -C {folder}")
    with peers.serving(Process(command, context.work, "tar-b"), lab, "b", TAR_PORT) as server:
        client = Process(
            lab.on("a", "sh", "-c", f"tar cf - -C {tree.parent} {tree.name} | "
                   f"socat -u STDIN TCP:{labs.ADDRESS_B}:{TAR_PORT}"), context.work, "tar-a")
        return _measured(client, server, True)


def by_scp(context, lab, tree, folder) -> Run:
    with peers.ssh_server(lab, context.work) as server:
        client = Process(peers.scp_command(lab, context.work, tree, folder, "-r"), context.work,
                         "scp")
        return _measured(client, server, False)


@contextmanager
def on_ext4(context, room: int, inodes=400_000) -> Iterator[Path]:
    """on_ext4 is a fresh ext4 in a file on the scratch disk."""
    image, mount = context.scratch / "ext4.img", context.scratch / "ext4"
    with open(image, "wb") as out:
        out.truncate(room)
    mount.mkdir(exist_ok=True)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-N", str(inodes), image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    try:
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)
        image.unlink()


@contextmanager
def in_memory(context, _room: int) -> Iterator[Path]:
    yield context.folder


def disk_rate(folder: Path) -> float:
    """disk_rate is what one file written and synced gets, in MB/s."""
    path, chunk, at = folder / "rate", os.urandom(MIB), time.monotonic()
    with open(path, "wb") as out:
        for _ in range(256):
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    path.unlink()
    return 256 * MIB / 1e6 / (time.monotonic() - at)


