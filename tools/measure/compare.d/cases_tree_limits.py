# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Cases about trees that only onehop plays: how even its rate is, what a session that goes on
costs, a million names, the first byte, and a shaped link."""

import os
import shutil
from pathlib import Path
from typing import Any

import lab as labs
import trees
from measure import Sampler
from report import Metric
from transfer import event

MIB = 1 << 20
SAMPLE_SECONDS = 0.001
# More than the datagrams that prove the path.
DATA_DATAGRAMS = 16


def _small(context) -> Any:
    return lambda folder: trees.make_small(folder, context.size(100_000, 5_000), 4096)


def _tenths(rows) -> tuple[float, float]:
    """_tenths gives the seconds that the first and the last tenth of the bytes took."""
    rows = [(at, value - rows[0][1]) for at, value in rows]
    total = rows[-1][1]
    at = [next(when for when, value in rows if value >= total * part)
          for part in (0.01, 0.1, 0.9, 0.99)]
    return at[1] - at[0], at[3] - at[2]


def _even(context) -> dict[str, Any]:
    with trees.made(context, _small(context)) as tree, context.lab("unshaped") as lab:
        flow = Sampler(lab, "b", "rx", "vb", SAMPLE_SECONDS, context.work)
        trees.by_onehop(context, lab, tree, context.folder)
        first, last = _tenths(flow.rows())
        shutil.rmtree(context.folder / tree.name)
    return {"even": first / last}


def _resume(context) -> dict[str, Any]:
    """_resume: the halves by themselves are half of a tree that is sent, and half of one that is
    there and compared. Two ends that share their cores cannot be far below that."""
    with trees.made(context, _small(context)) as tree, context.lab("unshaped") as lab:
        def run(*options) -> trees.Run:
            done = trees.by_onehop(context, lab, tree, context.folder, *options)
            trees.check_arrived("onehop", tree, context.folder)
            return done

        def halve() -> None:
            for folder in arrived.iterdir():
                for path in sorted(folder.iterdir())[::2]:
                    path.unlink()

        arrived = context.folder / tree.name
        whole = run()
        halve()
        rest = run("--on-exist", "resume")
        there = run("--on-exist", "resume")
        halve()
        quick = run("--on-exist", "resume", "--quick")
        shutil.rmtree(arrived)
    halves = (whole.seconds + there.seconds) / 2
    return {"resume": rest.seconds / whole.seconds, "to_halves": rest.seconds / halves,
            "halves": halves / whole.seconds,
            "quick": quick.seconds / whole.seconds,
            "s_whole": whole.seconds, "s_rest": rest.seconds, "s_there": there.seconds,
            "s_quick": quick.seconds}


def _shaped(context) -> dict[str, Any]:
    with trees.made(context, _small(context)) as tree, context.lab("steady-600") as lab:
        run = trees.by_onehop(context, lab, tree, context.folder)
        shutil.rmtree(context.folder / tree.name)
        _, total = trees.count(tree)
        names = sum(len(name) for _, _, files in os.walk(tree) for name in files)
    seconds = event(run.receiver, "end")["seconds"]
    bps, ceiling = (total + names) * 8 / seconds, labs.ceiling_bps("steady-600")
    return {"use": labs.of_ceiling(bps, ceiling), "bps": bps / 1e6, "s_data": seconds,
            "s_all": run.seconds}


def _make_million(folder: Path, files: int) -> None:
    """_make_million makes files of 0 to 8 KB."""
    pool = os.urandom(MIB)
    for i in range(files):
        if i % 1000 == 0:
            at = folder / f"d{i // 1000}"
            at.mkdir()
        size = i * 7919 % 8193
        (at / f"f{i}").write_bytes(pool[i * 61 % (MIB - size):][:size])


_UNUSED = ("blocks that are not used take no memory, so that the pools' size says nothing of what "
           "is in VmHWM: all of it is judged")


def _pools(process) -> int:
    end = event(process, "end")
    return end["port_memory_bytes"] + end["block_pool_bytes"]


def _million(context) -> dict[str, Any]:
    files = context.size(1_000_000, 20_000)
    with trees.made(context, lambda folder: _make_million(folder, files)) as tree:
        _, total = trees.count(tree)
        with trees.on_ext4(context, total * 2 + files * 4096 + (2 << 30),
                           files + 100_000) as folder, context.lab("unshaped") as lab:
            run = trees.by_onehop(context, lab, tree, folder, is_memory_read=True)
            trees.check_arrived("onehop", tree, folder)
    peak_a, peak_b = run.sender.rss_bytes_max, run.receiver.rss_bytes_max
    return {"over_a": (peak_a - _pools(run.sender)) / MIB,
            "over_b": (peak_b - _pools(run.receiver)) / MIB,
            "peak_a": peak_a / MIB, "peak_b": peak_b / MIB, "rate": files / run.seconds}


def _first_byte(context, lab, tree) -> float:
    """_first_byte is from the start of `send` to the first data at the receiver, in ms."""
    flow = Sampler(lab, "b", "udp", "vb", SAMPLE_SECONDS, context.work)
    run = trees.by_onehop(context, lab, tree, context.folder, "--io", "udp",
                          send_extra=("--io", "udp"))
    rows = flow.rows()
    shutil.rmtree(context.folder / tree.name)
    first = next(at for at, value in rows if value - rows[0][1] >= DATA_DATAGRAMS)
    return (first - run.sender.started_at) * 1000


def _first(context) -> dict[str, Any]:
    files = context.size(1_000_000, 20_000)
    with context.lab("unshaped") as lab:
        with trees.made(context, lambda folder: trees.make_small(folder, 1, 100_000)) as tree:
            one = _first_byte(context, lab, tree)
        with trees.made(context, lambda folder: _make_million(folder, files)) as tree:
            many = _first_byte(context, lab, tree)
    return {"first": many - one, "ms_one": one, "ms_many": many}


def cases() -> list[Any]:
    return [
        ("trees-even", "100,000 x 4 KiB, unshaped link: the rate at the beginning and the end",
         [Metric("even", "rate of the last tenth / of the first", "", ">=", 0.9)], _even),
        ("trees-resume", "100,000 x 4 KiB, every second file is there",
         [Metric("resume", "time / that of the whole", "", "<=", 0.65,
                 "the ends share two cores, and a file that is compared is read at both: what the "
                 "halves take by themselves is more than that"),
          Metric("to_halves", "time / that of its halves, each by itself", "", "<=", 1),
          Metric("halves", "time of its halves, each by itself / that of the whole"),
          Metric("quick", "time with --quick / that of the whole"),
          Metric("s_whole", "the whole: time", "s"), Metric("s_rest", "the rest: time", "s"),
          Metric("s_there", "all is there: time", "s"),
          Metric("s_quick", "the rest, with --quick: time", "s")],
         _resume),
        ("trees-600", "100,000 x 4 KiB over 600 Mbit/s",
         [Metric("use", "goodput of bytes and names / ceiling", "", ">=", 0.95),
          Metric("bps", "goodput", "Mbit/s"), Metric("s_data", "data: time", "s"),
          Metric("s_all", "from start to end: time", "s")], _shaped),
        ("trees-million", "1,000,000 files of 0 to 8 KB, to ext4 on a loop device",
         [Metric("over_a", "sender: VmHWM - port and block pools", "MiB", "<=", 24, _UNUSED),
          Metric("over_b", "receiver: VmHWM - port and block pools", "MiB", "<=", 24, _UNUSED),
          Metric("peak_a", "sender: VmHWM", "MiB", "<=", 64),
          Metric("peak_b", "receiver: VmHWM", "MiB", "<=", 64),
          Metric("rate", "files a second")], _million),
        ("trees-first", "the first byte of 1,000,000 files, and of one, --io udp",
         [Metric("first", "first byte, later than that of one file by", "ms", "<=", 200),
          Metric("ms_one", "one file: from the start of send", "ms"),
          Metric("ms_many", "a million: from the start of send", "ms")], _first),
    ]
