# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Cases about whole trees: onehop beside rsync's daemon, a tar pipe and scp, in one lab.

A tree is made once a round and sent by each program in turn into an empty folder; its entries are
in the kernel's caches before the first of them.
"""

import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import trees
from report import Metric


def _round(context, make, place, has_scp) -> dict[str, Any]:
    runs: dict[str, Callable[..., trees.Run]] = {
        "onehop": trees.by_onehop,
        "rsync": trees.by_rsync,
        "inplace": lambda *a: trees.by_rsync(*a, "-W", "--inplace"),
        "tar": trees.by_tar,
    }
    if has_scp:
        runs["scp"] = trees.by_scp
    if place is trees.on_ext4:
        runs["none"] = lambda *a: trees.by_onehop(*a, "--durability", "none")
    done: dict[str, trees.Run] = {}
    values: dict[str, Any] = {}
    with trees.made(context, make) as tree:
        files, total = trees.count(tree)
        with place(context, 2 * total + (2 << 30)) as folder, context.lab("unshaped") as lab:
            if place is trees.on_ext4:
                values["disk"] = trees.disk_rate(folder)
            names = list(runs)
            for i in range(len(names)):
                name = names[(i + context.round) % len(names)]
                done[name] = runs[name](context, lab, tree, folder)
                trees.check_arrived(name, tree, folder)
                shutil.rmtree(folder / tree.name)
                subprocess.run(["sync", "-f", folder], check=True)
    for name, run in done.items():
        values[f"s_{name}"] = run.seconds
        values[f"cpu_{name}"] = run.cpu_seconds
    own = done["onehop"]
    for name in ("rsync", "inplace", "tar"):
        values[f"to_{name}"] = own.seconds / done[name].seconds
    values["cpu"] = own.cpu_seconds / done["rsync"].cpu_seconds
    values["rate"] = files / own.seconds
    if "none" in done:
        values["durable"] = done["none"].seconds / own.seconds
    return values


def _case(name, about, make, rsync_max, tar_max=None, cpu_max=None, place=trees.in_memory,
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
    if place is trees.on_ext4:
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
        trees.make_small(folder, context.size(100_000, 5_000), 4096)

    def medium(folder, context) -> None:
        trees.make_small(folder, context.size(10_000, 1_000), 100_000)

    return [
        _case("small", "100,000 x 4 KiB in 100 folders, tmpfs to tmpfs, unshaped link", small, 0.9,
              1.2, 0.8, has_scp=False),
        _case("small-ext4", "100,000 x 4 KiB in 100 folders, tmpfs to ext4 on a loop device", small,
              1.1, place=trees.on_ext4, has_scp=False),
        _case("medium", "10,000 x 100 KB, tmpfs to tmpfs", medium, 0.9),
        _case("one", "one file of 10 GB, or of a quarter of the memory, tmpfs to tmpfs",
              lambda folder, context: trees.make_one(folder, context.size(10**10, 10**8)), 0.9,
              has_scp=False),
        _case("headers", "the Linux headers package, tmpfs to tmpfs",
              lambda folder, _: trees.make_headers(folder), 0.9),
        _case("photos", "200 files of 2 to 8 MB, tmpfs to tmpfs",
              lambda folder, context: trees.make_photos(folder, context.size(200, 20)), 0.9),
    ]
