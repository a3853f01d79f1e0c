# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Where the cycles of all CPUs go at 600 Mbit/s, onehop beside iperf3 (perf over the whole
machine), and what the parts alone take.

They say where; how much scatters from round to round as busy time does, with where the host has our
CPUs (placement.py).
"""

import collections
import re
import shutil
import signal
import statistics
import subprocess
import time
from typing import Any

import peers
from cases_parts import BASE, FILES, PARTS, bench
from measure import MeasureError
from report import Metric
from transfer import run_onehop

PERIOD = 200_000  # cycles per sample: thousands of samples of 300 MB
SAMPLE = re.compile(
    r"^\s*(?P<comm>.+?)\s+(?P<pid>-?\d+)\s+[0-9a-f]+ (?P<symbol>.+) \((?P<object>[^)]*)\)\s*$")
GROUPS = (("engine-sender", "sender's engine"), ("engine-receiver", "receiver's engine"),
          ("read", "sender's read thread"), ("write", "receiver's write thread"),
          ("rate", "sender's rate thread"), ("plane", "both planes"),
          ("softirq", "softirqs of idle CPUs and ksoftirqd"), ("other", "everything else"))
ROWS = 16  # of the table of functions


def _why_not() -> Any:
    """_why_not says why nothing can be sampled here, or returns None."""
    if shutil.which("perf") is None:
        return "off: perf is not installed (Debian: linux-perf)"
    done = subprocess.run(["perf", "stat", "-a", "-x,", "-e", "cycles", "true"],
                          capture_output=True, text=True)
    return ("off: the CPU counts no cycles for perf here"
            if done.returncode != 0 or "<not" in done.stderr else None)


def _sampled(context, run) -> tuple[Any, Any]:
    """_sampled runs `run` under perf and returns (what it returned, [(comm, pid, symbol)])."""
    data = context.work / "perf.data"
    perf = subprocess.Popen(
        ["perf", "record", "-q", "-a", "-e", "cycles", "-c",
         str(PERIOD), "-o", data], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.3)  # its start is not part of the load
        outcome = run()
    finally:
        perf.send_signal(signal.SIGINT)
        perf.wait(60)
    text = subprocess.run(["perf", "script", "-i", data, "-F", "comm,pid,ip,sym,dso"],
                          capture_output=True, text=True, errors="replace").stdout
    data.unlink()
    samples = [
        match.group("comm", "pid", "symbol", "object")
        for match in map(SAMPLE.match, text.splitlines()) if match
    ]
    if not samples:
        raise MeasureError("perf: no samples")
    return outcome, samples


def _group(comm, pid, receiver_pids) -> Any:
    if comm == "onehop-engine":
        return "engine-receiver" if pid in receiver_pids else "engine-sender"
    if comm in ("onehop-read", "onehop-write", "onehop-rate"):
        return comm.split("-")[1]
    if comm == "onehop":
        return "plane"
    return "softirq" if comm == "swapper" or comm.startswith("ksoftirqd") else "other"


def _function(symbol, path) -> Any:
    """_function names what a sample was in: short, and the library where the symbol is not
    known."""
    if symbol.startswith("[unknown"):
        return path.rsplit("/", 1)[-1].split(".so")[0]
    return re.sub(r"<.*>|\(.*|\.isra.*|\.part.*", "", symbol).removeprefix("onehop::")


def _cycles(samples, size) -> tuple[Any, Any]:
    """_cycles sums samples into cycles per byte by group and by (group, function)."""
    receivers = {pid for comm, pid, _, _ in samples if comm == "onehop-write"}
    groups, functions = collections.Counter(), collections.Counter()
    for comm, pid, symbol, path in samples:
        group = _group(comm, pid, receivers)
        groups[group] += PERIOD / size
        functions[group, _function(symbol, path)] += PERIOD / size
    return groups, functions


def _round(context) -> dict[Any, Any]:
    reason = _why_not()
    if reason is not None:
        return {"note": reason}
    size = context.size(300_000_000, 100_000_000)
    file = context.file(size)
    with context.lab("steady-600") as lab:
        order = {
            "iperf3": lambda: peers.iperf3(lab, size, context.work),
            "onehop": lambda: run_onehop(lab, file, context.folder, "udp", context.work)
        }
        names = list(order)[::-1] if context.round % 2 else list(order)
        taken = {name: _sampled(context, order[name])[1] for name in names}
    groups, functions = _cycles(taken["onehop"], size)
    base = len(taken["iperf3"]) * PERIOD / size
    program = sum(comm == "iperf3" for comm, *_ in taken["iperf3"]) * PERIOD / size
    points = bench(context, "steady-600", ("udp", ), "--bytes",
                   context.size(600_000_000, 100_000_000), *FILES)
    own, tcp = points["udp"], points[BASE]
    parts = own["part_port_busy_ns_per_byte"] + sum(own[f"part_{key}_ns_per_byte"]
                                                    for key, _ in PARTS if key != "port")
    return {
        "ratio": sum(groups.values()) / base, "own": sum(groups.values()), "base": base,
        "base_program": program, **{group: groups[group] for group, _ in GROUPS},
        **{("function", *key): value for key, value in functions.items()}, "parts": parts,
        "limit": parts / tcp["busy_ns_per_byte"], "over": own["busy_ns_per_byte"] / parts,
        "flood": own["part_port_busy_ns_per_byte"], "tcp": tcp["busy_ns_per_byte"]
    }


def cases() -> list[Any]:
    metrics = [
        Metric("ratio", "cycles of all CPUs per byte / iperf3's"),
        Metric("own", "onehop --io udp: cycles of all CPUs", "1/B"),
        *[Metric(group, f"  of that: {text}", "1/B") for group, text in GROUPS],
        Metric("base", "iperf3: cycles of all CPUs", "1/B"),
        Metric("base_program", "  of that: iperf3 itself", "1/B"),
        Metric("flood", "parts: bare paced port, system busy", "ns/B"),
        Metric("parts", "parts: with AEAD, digest, read and write", "ns/B"),
        Metric("tcp", "iperf3 of that run: system busy", "ns/B"),
        Metric("limit", "sum of parts / iperf3, system busy"),
        Metric("over", "whole / sum of parts, system busy")
    ]
    return [(
        "shares",
        "600 Mbit/s, file to file in tmpfs: where the cycles of all CPUs go, and what the parts "
        "alone take",
        metrics, _round)]


def by_function(results) -> Any:
    """by_function returns the lines of a table of the dearest functions, from the `shares` case
    among `results`."""
    rounds = next((result.values
                   for result in results if result.name == "shares" and result.values.get("own")),
                  None)
    if rounds is None:
        return []
    count, names = len(rounds["own"]), dict(GROUPS)
    total = statistics.median(rounds["own"])
    functions = {
        key: sum(values) / count for key, values in rounds.items() if isinstance(key, tuple)
    }
    lines = [
        "", "## Where the cycles go at 600 Mbit/s", "",
        "Of one file over UDP, by thread and function: what of all cycles of all CPUs lies there, "
        "mean of the rounds.",
        "", "| thread | function | cycles per byte | share |", "|---|---|---|---|"
    ]
    for (_, group, function), value in sorted(functions.items(), key=lambda item: -item[1])[:ROWS]:
        lines.append(
            f"| {names[group]} | `{function}` | {value:.2f} | {100 * value / total:.1f} % |")
    return lines
