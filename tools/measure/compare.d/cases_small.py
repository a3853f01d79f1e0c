# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Cases about what is over at once: one small file beside curl and nginx with TLS, and a thousand
small files beside rsync.

One such transfer is a few milliseconds of CPU, so each round plays several, the programs in turn,
and takes their medians. Server and receiver are started for each: their start is in the figures.
"""

import shutil
import statistics
from collections.abc import Callable
from typing import Any

import peers
import trees
from report import Metric
from transfer import run_onehop

REPEATS, REPEATS_QUICK = 10, 2
MIB = 1 << 20


def _medians(context, programs: dict[str, Callable[[], tuple[float, float]]]) -> dict[str, Any]:
    """_medians plays the programs in turn; each gives the CPU of both ends and the client's time
    from start to exit."""
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for _ in range(REPEATS_QUICK if context.is_quick else REPEATS):
        for name, play in programs.items():
            seen[name].append(play())
    values = {}
    for name, played in seen.items():
        values[f"cpu_{name}"], values[f"s_{name}"] = (
            statistics.median(column) for column in zip(*played))
    return values


def _file(context) -> dict[str, Any]:
    file, memory = context.file(1024), []

    def onehop(lab) -> tuple[float, float]:
        done = run_onehop(lab, file, context.folder, "auto", context.work, is_memory_read=True)
        memory.append((done.rss_a_bytes, done.rss_b_bytes))
        return done.cpu_seconds, done.client_seconds

    def curl(lab) -> tuple[float, float]:
        done = peers.curl(lab, file, context.folder, context.work, has_tls=True)
        return done.cpu_seconds, done.seconds

    with context.lab("unshaped") as lab:
        values = _medians(context, {"onehop": lambda: onehop(lab), "curl": lambda: curl(lab)})
    values["cpu"] = values["cpu_onehop"] / values["cpu_curl"]
    values["time"] = values["s_onehop"] / values["s_curl"]
    values["memory"] = max(max(ends) for ends in memory) / MIB
    return values


def _files(context) -> dict[str, Any]:
    def played(name, lab, tree) -> tuple[float, float]:
        if name == "onehop":
            run = trees.by_onehop(context, lab, tree, context.folder)
        else:
            run = trees.by_rsync(context, lab, tree, context.folder)
        trees.check_arrived(name, tree, context.folder)
        shutil.rmtree(context.folder / tree.name)
        return run.cpu_seconds, run.sender.ended_at - run.sender.started_at

    with trees.made(context, lambda folder: trees.make_small(folder, 1000, 4096)) as tree:
        with context.lab("unshaped") as lab:
            values = _medians(context, {
                "onehop": lambda: played("onehop", lab, tree),
                "rsync": lambda: played("rsync", lab, tree)})
    values["cpu"] = values["cpu_onehop"] / values["cpu_rsync"]
    values["time"] = values["s_onehop"] / values["s_rsync"]
    return values


def cases() -> list[Any]:
    def times(*names) -> list[Metric]:
        return [metric for name in names for metric in (
            Metric(f"cpu_{name}", f"{name}: CPU of both ends", "s"),
            Metric(f"s_{name}", f"{name}: client, from start to exit", "s"))]

    return [
        ("small-file", "1 KiB, tmpfs to tmpfs, unshaped link; receiver and server started for it",
         [Metric("cpu", "CPU of both ends / nginx and curl with TLS", "", "<=", 1.0),
          Metric("time", "send from start to exit / curl", "", "<=", 4.0),
          Metric("memory", "memory of the larger end", "MiB", "<=", 64),
          *times("onehop", "curl")], _file),
        ("small-files", "1,000 x 4 KiB in one folder, tmpfs to tmpfs, unshaped link",
         [Metric("time", "send from start to exit / rsync -a", "", "<=", 1.0),
          Metric("cpu", "CPU of both ends / rsync -a"),
          *times("onehop", "rsync")], _files),
    ]
