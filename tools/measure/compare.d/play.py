# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Plays cases in interleaved rounds and tells what they gave: tools/measure/compare and
tools/measure/limits. Owns the folders of a run; when it returns, nothing that it started is left.
"""

import argparse
import contextlib
import mmap
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lab as labs
import measure
import report

POOLS_BYTES = 128 << 20  # more than the pools of both ends


class Context:
    """What a case gets: sizes, files, folders, labs. One per run; `round` changes."""

    def __init__(self, options, work) -> None:
        self.onehop, self.is_quick = options.onehop, options.quick
        self.work, self.round = work, 0
        self.folder = work / "in"
        self.folder.mkdir()
        self.scratch = Path(options.scratch) / f"onehop-compare-{os.getpid()}"
        self.scratch.mkdir()
        self.ping_interval = 0.005 if self.is_quick else 0.02

    def size(self, full, quick) -> Any:
        return quick if self.is_quick else full

    def file(self, size) -> Any:
        """file makes (and keeps) a file of that size; its content repeats every 16 MiB, which no
        program compared exploits."""
        path = self.work / f"file-{size}"
        if not path.exists():
            for old in self.work.glob("file-*"):
                if old.stat().st_size > 1 << 28:
                    old.unlink()  # one big file at a time: they are in memory
            chunk = os.urandom(min(size, 16 << 20))
            with open(path, "wb") as out:
                left = size
                while left > 0:
                    left -= out.write(chunk[:left])
        return path

    def backed(self, size, run) -> Any:
        """backed returns run(), before which it touches as much free memory as that will take: what
        the host of a virtual machine has taken back costs whoever writes to it first, and that is
        not the program's cost. Single pages, as files take, and huge ones, as pools do: neither
        stands in for the other."""
        path, chunk = self.folder / "touched", b"\1" * (1 << 20)
        try:
            with open(path, "wb") as out:
                for _ in range(size // len(chunk) + 1):
                    out.write(chunk)
        finally:
            path.unlink(missing_ok=True)
        with mmap.mmap(-1, POOLS_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as pools:
            with contextlib.suppress(OSError):  # a kernel without huge pages has none to touch
                pools.madvise(mmap.MADV_HUGEPAGE)
            for at in range(0, POOLS_BYTES, mmap.PAGESIZE):
                pools[at] = 1
        return run()

    def lab(self, profile) -> Any:
        return labs.Lab(self.onehop, profile, self.work, f"cmp{os.getpid() % 100000}")


def count(text) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return int(text)


def add_options(parser) -> None:
    """add_options adds those that all programs have that play cases."""
    parser.add_argument("--bounds", action="store_true", help="list what the cases require")
    parser.add_argument("--rounds", type=count, default=5, help="rounds, cases interleaved (5)")
    parser.add_argument("--quick", action="store_true",
                        help="small files: a check that it works, not a measurement")
    parser.add_argument("--onehop", type=Path, default=labs.ROOT / "build/tools/onehop/onehop",
                        metavar="PATH")
    parser.add_argument("--scratch", default="/var/tmp", metavar="DIR",
                        help="disk for the 20 GB of the memory cases (/var/tmp)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the page (Markdown)")


def missing(options, programs) -> Any:
    """missing says why nothing can be measured here, or returns None."""
    if os.geteuid() != 0:
        return "the lab needs root"
    if not os.access(options.onehop, os.X_OK):
        return f"{options.onehop} is not there: build it, or name it with --onehop"
    absent = [name for name in programs if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else None


def run_rounds(options, context, results) -> None:
    """run_rounds fills `results` as it goes, so that an interrupted run still shows what it
    measured."""
    for context.round in range(options.rounds):
        for name, _, _, run in options.cases:
            print(f"round {context.round + 1}/{options.rounds} {name}", file=sys.stderr, flush=True)
            at = time.monotonic()
            try:
                results[name].add(run(context))
            except (measure.MeasureError, labs.LabError, OSError, KeyError, ValueError,
                    subprocess.SubprocessError) as error:
                text = f"round {context.round + 1}: {type(error).__name__}: {error}"
                results[name].failures.append(text)
                print(f"  {text}", file=sys.stderr, flush=True)
            print(f"  {time.monotonic() - at:.1f} s", file=sys.stderr, flush=True)


def main(options, programs, title, tcp_law, summary: Callable[..., list[str]]) -> int:
    """main plays options.cases and returns the exit code; `summary(results)` gives the lines that
    go before the cases on the page."""
    program = Path(sys.argv[0]).name
    reason = missing(options, programs)
    if reason is not None:
        print(f"{program}: cannot run: {reason}", file=sys.stderr)
        return 77
    options.onehop = options.onehop.resolve()
    # runs the finally blocks below and in the cases
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    load = os.getloadavg()[0]
    work = Path(f"/dev/shm/onehop-{program}-{os.getpid()}")
    work.mkdir(mode=0o700)
    context, interrupted = None, 0
    results = {
        name: report.Result(name, about, metrics) for name, about, metrics, _ in options.cases
    }
    try:
        context = Context(options, work)
        run_rounds(options, context, results)
    except KeyboardInterrupt:
        interrupted = 130
    except SystemExit as stop:  # from the signal handlers above
        interrupted = stop.code if isinstance(stop.code, int) else 1
    finally:
        measure.end_all()
        shutil.rmtree(work, ignore_errors=True)
        if context is not None:
            shutil.rmtree(context.scratch, ignore_errors=True)
    kept = [
        result for result in results.values() if not interrupted or result.values or result.failures
    ]
    for result in kept:
        report.print_result(result)
    print(f"\n{report.machine()}; load average at the start {load:.2f}")
    if interrupted:
        print(f"{program}: interrupted; nothing written", file=sys.stderr)
        return interrupted
    if options.write:
        version = subprocess.run([options.onehop, "--version"], capture_output=True,
                                 text=True).stdout.strip() or "unknown"
        command = shlex.join([f"tools/measure/{program}", *sys.argv[1:]])
        report.write_page(options.write, title, kept, command, version, load, tcp_law,
                          summary(kept))
    return 0 if all(result.is_ok for result in kept) else 1
