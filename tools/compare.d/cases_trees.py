# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Cases about whole trees: onehop beside rsync's daemon, a tar pipe and scp, in one lab.

A tree is made once a round and sent by each program in turn into an empty folder; its entries are
in the kernel's caches before the first of them. Times are from outside: from the client's start to
the end of both ends. The tar pipe is plain text and verifies nothing; rsync syncs nothing.
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
from report import Metric
from transfer import event, make_code

SECONDS_MAX = 900
TAR_PORT = 9100
MIB = 1 << 20


@dataclass
class Run:
    seconds: float
    cpu_seconds: float


def _small(folder: Path, files: int, size: int) -> None:
    """_small makes files of one size in folders of a thousand, each with bytes of its own."""
    pool = os.urandom(MIB)
    for i in range(files):
        if i % 1000 == 0:
            (folder / f"d{i // 1000}").mkdir()
        at = i * 61 % (MIB - size)
        (folder / f"d{i // 1000}" / f"f{i}").write_bytes(pool[at:at + size])


def _photos(folder: Path, files: int) -> None:
    draw = random.Random(1)
    pool = os.urandom(8 * MIB)
    for i in range(files):
        (folder / f"IMG_{i:04}.jpg").write_bytes(pool[:draw.randrange(2 * MIB, 8 * MIB)])


def _headers(folder: Path) -> None:
    sources = sorted(Path("/usr/src").glob("linux-headers-*-common"))
    if not sources:
        raise MeasureError("find the Linux headers: no /usr/src/linux-headers-*-common; install "
                           "linux-headers-amd64")
    shutil.copytree(sources[-1], folder / sources[-1].name, symlinks=True)


def _count(folder: Path) -> tuple[int, int]:
    """_count gives regular files and their bytes."""
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
               client.cpu_seconds + server.cpu_seconds + softirq)


def _onehop(context, lab, tree, folder, *receive_extra) -> Run:
    env = {"ONEHOP_CODE": make_code()}
    receive = Process(
        lab.on("b", lab.onehop, "recv", "--once", "--dir", folder, "--listen", labs.ADDRESS_B,
               "--json", *receive_extra), context.work, "onehop-recv", env)
    try:
        receive.wait_line('"start"', 10)
        send = Process(lab.on("a", lab.onehop, "send", tree, "--to", labs.ADDRESS_B, "--json"),
                       context.work, "onehop-send", env)
        try:
            run = _measured(send, receive, True)
        finally:
            send.end()
    finally:
        receive.end()
    if not event(receive, "end")["hash_ok"]:
        raise MeasureError("onehop: the receiver does not say hash_ok")
    return run


def _rsync(context, lab, tree, folder, *options) -> Run:
    with peers.rsync_daemon(lab, folder, context.work) as server:
        client = Process(
            lab.on("a", "rsync", "-a", *options, tree, peers.rsync_url()), context.work, "rsync")
        return _measured(client, server, False)


def _tar(context, lab, tree, folder) -> Run:
    command = lab.on("b", "sh", "-c",
                     f"socat -u TCP-LISTEN:{TAR_PORT},reuseaddr STDOUT | tar xf - -C {folder}")
    with peers.serving(Process(command, context.work, "tar-b"), lab, "b", TAR_PORT) as server:
        client = Process(
            lab.on("a", "sh", "-c", f"tar cf - -C {tree.parent} {tree.name} | "
                   f"socat -u STDIN TCP:{labs.ADDRESS_B}:{TAR_PORT}"), context.work, "tar-a")
        return _measured(client, server, True)


def _scp(context, lab, tree, folder) -> Run:
    with peers.ssh_server(lab, context.work) as server:
        client = Process(peers.scp_command(lab, context.work, tree, folder, "-r"), context.work,
                         "scp")
        return _measured(client, server, False)


@contextmanager
def _on_ext4(context, room: int) -> Iterator[Path]:
    """_on_ext4 is a fresh ext4 in a file on the scratch disk."""
    image, mount = context.scratch / "ext4.img", context.scratch / "ext4"
    with open(image, "wb") as out:
        out.truncate(room)
    mount.mkdir(exist_ok=True)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-N", "400000", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    try:
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)
        image.unlink()


@contextmanager
def _in_memory(context, _room: int) -> Iterator[Path]:
    yield context.folder


def _disk_rate(folder: Path) -> float:
    """_disk_rate is what one file written and synced gets, in MB/s."""
    path, chunk, at = folder / "rate", os.urandom(MIB), time.monotonic()
    with open(path, "wb") as out:
        for _ in range(256):
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    path.unlink()
    return 256 * MIB / 1e6 / (time.monotonic() - at)


def _round(context, make, place, has_scp) -> dict[str, Any]:
    tree = context.work / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir()
    make(tree)
    wanted = _count(tree)
    runs: dict[str, Callable[..., Run]] = {
        "onehop": _onehop,
        "rsync": _rsync,
        "inplace": lambda *a: _rsync(*a, "-W", "--inplace"),
        "tar": _tar,
    }
    if has_scp:
        runs["scp"] = _scp
    if place is _on_ext4:
        runs["none"] = lambda *a: _onehop(*a, "--durability", "none")
    done: dict[str, Run] = {}
    values: dict[str, Any] = {}
    with place(context, 2 * wanted[1] + (2 << 30)) as folder:
        if place is _on_ext4:
            values["disk"] = _disk_rate(folder)
        with context.lab("unshaped") as lab:
            names = list(runs)
            for i in range(len(names)):
                name = names[(i + context.round) % len(names)]
                done[name] = runs[name](context, lab, tree, folder)
                arrived = _count(folder / tree.name)
                if arrived != wanted:
                    raise MeasureError(f"{name}: {arrived} files and bytes arrived of {wanted}")
                shutil.rmtree(folder / tree.name)
                subprocess.run(["sync", "-f", folder], check=True)
    shutil.rmtree(tree)
    for name, run in done.items():
        values[f"s_{name}"] = run.seconds
        values[f"cpu_{name}"] = run.cpu_seconds
    own = done["onehop"]
    for name in ("rsync", "inplace", "tar"):
        values[f"to_{name}"] = own.seconds / done[name].seconds
    values["cpu"] = own.cpu_seconds / done["rsync"].cpu_seconds
    values["rate"] = wanted[0] / own.seconds
    if "none" in done:
        values["durable"] = done["none"].seconds / own.seconds
    return values


def _case(name, about, make, rsync_max, tar_max=None, cpu_max=None, place=_in_memory,
          has_scp=True) -> tuple[str, str, list[Any], Any]:
    def bound(value) -> tuple[Any, ...]:
        return ("<=", value) if value is not None else ()

    metrics = [
        Metric("to_rsync", "time / rsync -a", "", "<=", rsync_max),
        Metric("to_tar", "time / tar pipe", "", *bound(tar_max)),
        Metric("cpu", "CPU of both ends / rsync's", "", *bound(cpu_max)),
        Metric("to_inplace", "time / rsync -aW --inplace"),
        Metric("rate", "onehop: files a second"),
    ]
    if place is _on_ext4:
        metrics += [Metric("durable", "rate / that of --durability none", "", ">=", 0.8),
                    Metric("disk", "the disk: one file of 256 MiB, written and synced", "MB/s"),
                    Metric("s_none", "onehop --durability none: time", "s")]
    for key in ("onehop", "rsync", "inplace", "tar", *(["scp"] if has_scp else [])):
        metrics += [Metric(f"s_{key}", f"{key}: time", "s"),
                    Metric(f"cpu_{key}", f"{key}: CPU of both ends", "s")]

    def run(context) -> dict[str, Any]:
        return _round(context, lambda folder: make(folder, context), place, has_scp)

    return f"trees-{name}", about, metrics, run


def cases() -> list[Any]:
    def small(folder, context) -> None:
        _small(folder, context.size(100_000, 5_000), 4096)

    return [
        _case("small", "100,000 x 4 KiB in 100 folders, tmpfs to tmpfs, unshaped link", small, 0.9,
              1.2, 0.8, has_scp=False),
        _case("small-ext4", "100,000 x 4 KiB in 100 folders, tmpfs to ext4 on a loop device", small,
              1.1, place=_on_ext4, has_scp=False),
        _case("medium", "10,000 x 100 KB, tmpfs to tmpfs",
              lambda folder, context: _small(folder, context.size(10_000, 1_000), 100_000), 0.9),
        _case("headers", "the Linux headers package, tmpfs to tmpfs",
              lambda folder, _: _headers(folder), 0.9),
        _case("photos", "200 files of 2 to 8 MB, tmpfs to tmpfs",
              lambda folder, context: _photos(folder, context.size(200, 20)), 0.9),
    ]
