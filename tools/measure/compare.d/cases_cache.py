# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Cases of large files between two disks: what a byte costs, and what the page cache has of the
files behind it, beside rsync --inplace over the same link, cp and dd on the same disks.

Both disks are loop devices with direct I/O, so that the host's page cache has nothing of them. They
are mounted anew before each program, which therefore finds an empty cache, and each has its bytes
on the disk before its time ends.
"""

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import lab as labs
import peers
from measure import Process, SystemMeter, background_cores
from report import Metric
from transfer import run_onehop

GIB, MIB = 1 << 30, 1 << 20
SECONDS_MAX = 1200
MKFS = {"ext4": ("mkfs.ext4", "-q", "-F"), "xfs": ("mkfs.xfs", "-q", "-f"),
        "btrfs": ("mkfs.btrfs", "-q", "-f")}
SPARE_BYTES = GIB  # for journals and metadata


def _run(*command) -> str:
    return subprocess.run([str(word) for word in command], check=True, capture_output=True,
                          text=True).stdout.strip()


class LoopDisk:
    """A file system of a kind in a file of the scratch disk."""

    def __init__(self, context, kind, name, room) -> None:
        self.image, self.at = context.scratch / f"{name}.img", context.scratch / name
        with open(self.image, "wb") as out:
            out.truncate(room)
        self.at.mkdir()
        self.device = _run("losetup", "--find", "--show", "--direct-io=on", self.image)
        try:
            _run(*MKFS[kind], self.device)
            self._mount()
        except BaseException:
            _run("losetup", "--detach", self.device)
            raise

    def _mount(self) -> None:
        _run("mount", self.device, self.at)

    def again(self) -> None:
        """again mounts it anew: its page cache is empty then."""
        _run("umount", self.at)
        self._mount()

    def close(self) -> None:
        _run("umount", self.at)
        _run("losetup", "--detach", self.device)
        self.image.unlink()
        self.at.rmdir()


@contextmanager
def _disks(context, kind, room) -> Iterator[list[LoopDisk]]:
    with ExitStack() as stack:
        disks = []
        for name in ("from", "to"):
            disks.append(LoopDisk(context, kind, name, room))
            stack.callback(disks[-1].close)
        yield disks


def _write(path, size) -> None:
    """_write makes a file that no file system makes smaller, on the disk."""
    chunk = os.urandom(16 * MIB)
    with open(path, "wb") as out:
        for at in range(0, size, len(chunk)):
            out.write(chunk[:size - at])
        out.flush()
        os.fsync(out.fileno())


def cached_bytes(*paths) -> int:
    """cached_bytes is what the page cache has of files."""
    rows = _run("fincore", "--bytes", "--noheadings", "--output", "RES", *paths).split()
    return sum(map(int, rows))


def _cached_by_all() -> int:
    line = next(row for row in Path("/proc/meminfo").read_text().splitlines()
                if row.startswith("Cached:"))
    return int(line.split()[1]) * 1024


class Peak:
    """Peak is by how much the whole page cache grew at most, while it is entered."""

    def __enter__(self) -> Any:
        self.bytes, self._first, self._over = 0, _cached_by_all(), threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def _look(self) -> None:
        while not self._over.wait(0.1):
            self.bytes = max(self.bytes, _cached_by_all() - self._first)

    def __exit__(self, *_) -> None:
        self._over.set()
        self._thread.join()


def _by_onehop(context, lab, file, to) -> dict[str, float]:
    # A small file would go through the cache, as it should.
    options = ("--direct-io", "always") if context.is_quick else ()
    seen: list[int] = []
    arrived = to / file.name
    outcome = run_onehop(lab, file, to, "auto", context.work, extra=options, receive_extra=options,
                         at_end=lambda: seen.append(cached_bytes(file, arrived)))
    used = outcome.cpu_seconds + outcome.softirq_seconds
    by_files = (outcome.sender["thread_cpu_seconds"]["read"] +
                outcome.receiver["thread_cpu_seconds"]["write"])
    return {"cpu": used, "busy": outcome.busy_seconds, "files": by_files, "kept": seen[0]}


def _measured(command, context, label, file, arrived, server=None) -> dict[str, float]:
    """_measured runs a program to its end, with what it wrote on the disk."""
    meter = SystemMeter()
    client = Process(command, context.work, label)
    client.wait(SECONDS_MAX)
    synced = time.process_time()
    with open(arrived, "rb") as out:
        os.fsync(out.fileno())
    synced = time.process_time() - synced
    time.sleep(0.2)  # a server's child ends after its client, and counts once it was reaped
    softirq, busy = meter.softirq_seconds(), meter.busy_seconds()
    if server is not None:
        server.end()
    used = client.cpu_seconds + synced + softirq + (server.cpu_seconds if server else 0)
    kept = cached_bytes(file, arrived)
    arrived.unlink()
    return {"cpu": used, "busy": busy, "kept": kept}


def _by_rsync(context, lab, file, to) -> dict[str, float]:
    with peers.rsync_daemon(lab, to, context.work) as server:
        command = lab.on("a", "rsync", "--inplace", file, peers.rsync_url())
        return _measured(command, context, "rsync", file, to / file.name, server)


def _by_cp(context, _lab, file, to) -> dict[str, float]:
    return _measured(("cp", "--reflink=never", file, to), context, "cp", file, to / file.name)


def _by_dd(context, _lab, file, to) -> dict[str, float]:
    command = ("dd", f"if={file}", f"of={to / file.name}", "bs=1M", "status=none")
    return _measured(command, context, "dd", file, to / file.name)


PROGRAMS: dict[str, tuple[str, Callable[..., dict[str, float]]]] = {
    "onehop": ("onehop", _by_onehop), "rsync": ("rsync --inplace, daemon", _by_rsync),
    "cp": ("cp --reflink=never, one disk to the other", _by_cp), "dd": ("dd bs=1M, likewise",
                                                                      _by_dd)}


def _values(context, lab, name, file, to) -> dict[str, float]:
    size = file.stat().st_size
    with Peak() as peak:
        found = PROGRAMS[name][1](context, lab, file, to)
    values = {f"kept_{name}": found.pop("kept") / MIB, f"peak_{name}": peak.bytes / MIB}
    return values | {f"{what}_{name}": seconds * 1e9 / size for what, seconds in found.items()}


def _case(kind, ratio_max) -> tuple[str, str, list[Any], Any]:
    def run(context) -> Any:
        if shutil.which(MKFS[kind][0]) is None:
            raise labs.LabError(f"make {kind}: {MKFS[kind][0]} is not installed")
        size = context.size(8 * GIB, GIB)
        values: dict[str, Any] = {"background": background_cores()}
        with _disks(context, kind, size + SPARE_BYTES) as (here, there), \
                context.lab("unshaped") as lab:
            file = here.at / "file"
            _write(file, size)
            names = list(PROGRAMS)
            for i in range(len(names)):
                name = names[(i + context.round) % len(names)]
                here.again()
                there.again()
                values |= context.backed(
                    2 * size, lambda name=name: _values(context, lab, name, file, there.at))
        return values | {"ratio": values["busy_onehop"] / values["busy_rsync"],
                         "ratio_cpu": values["cpu_onehop"] / values["cpu_rsync"]}

    bound = ("<=", ratio_max) if ratio_max is not None else ()
    metrics = [Metric("ratio", "busy time of a byte, onehop / rsync", "", *bound),
               Metric("ratio_cpu", "CPU of a byte of the programs, onehop / rsync"),
               Metric("files_onehop", "onehop: CPU of what reads and what writes files", "ns/B"),
               Metric("kept_onehop", "onehop: in the page cache behind it", "MiB", "<=", 64)]
    for name, (text, _) in PROGRAMS.items():
        metrics += [Metric(f"busy_{name}", f"{text}: busy", "ns/B"),
                    Metric(f"cpu_{name}", f"{text}: CPU", "ns/B"),
                    Metric(f"peak_{name}", f"{text}: page cache grew by", "MiB")]
        if name != "onehop":
            metrics.append(Metric(f"kept_{name}", f"{text}: in the page cache behind it", "MiB"))
    metrics.append(Metric("background", "other programs, before the round", "cores"))
    return f"disk-{kind}", f"8 GiB, {kind} to {kind}, unshaped link", metrics, run


def cases() -> list[Any]:
    return [_case("ext4", 0.25), _case("xfs", None), _case("btrfs", None)]
