# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""One onehop transfer in the lab: recv on b, send on a, both measured from outside.

Owns nothing beyond the call; whatever happens both processes are gone when run_onehop() returns.
"""

import csv
import json
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lab as labs
from measure import MeasureError, Process, SystemMeter

START_SECONDS_MAX = 10
SLOWEST_BPS, EXTRA_SECONDS = 100e6, 60  # a transfer slower than this, stalls aside, is hung


@dataclass
class Outcome:
    """What one transfer cost, of whichever program; CPU is of both ends together."""

    bytes_total: int
    seconds: float
    goodput_bps: float
    cpu_seconds: float
    softirq_seconds: float
    busy_seconds: float
    wall_seconds: float
    client_seconds: float = 0  # of the sending program, from its start to its exit
    switches_a: int = 0
    switches_b: int = 0
    rss_a_bytes: int = 0
    rss_b_bytes: int = 0
    sender: dict = field(default_factory=dict)
    receiver: dict = field(default_factory=dict)
    threads_a: dict = field(default_factory=dict)
    threads_b: dict = field(default_factory=dict)

    @property
    def ns_per_byte(self) -> Any:
        return (self.cpu_seconds + self.softirq_seconds) * 1e9 / self.bytes_total

    @property
    def busy_ns_per_byte(self) -> Any:
        return self.busy_seconds * 1e9 / self.bytes_total


def make_code() -> str:
    """make_code is one of the form that `onehop recv` makes by itself."""
    return "-".join("".join(secrets.choice("abcdefghijklmnopqrstuvwxyz234567") for _ in range(4))
                    for _ in range(7))


def event(process, kind) -> Any:
    """event returns the last JSON line of that type in a process's output."""
    found = None
    for line in process.output.read_text(errors="replace").splitlines():
        if line.startswith("{"):
            row = json.loads(line)
            if row.get("type") == kind:
                found = row
    if found is None:
        raise MeasureError(f"{process.label}: no '{kind}' event: {process.tail()}")
    return found


def run_onehop(lab, file, folder, io, work, trace=None, extra=(), receive_extra=(),
               while_running=None, is_memory_read=False, are_threads_read=False,
               at_end=None) -> Any:
    """run_onehop moves `file` from a to `folder` on b; `extra` are options of the sender,
    `receive_extra` of the receiver. `while_running(sender)` is called once data is on its way to
    start, `at_end()` before what arrived is removed."""
    env = {"ONEHOP_CODE": make_code()}
    receive = sender = None
    try:
        receive = Process(
            lab.on("b", lab.onehop, "recv", "--once", "--dir", folder, "--listen", labs.ADDRESS_B,
                   "--io", io, "--json", *receive_extra), work, f"onehop-recv-{io}", env,
            is_memory_read, are_threads_read)
        receive.wait_line('"start"', START_SECONDS_MAX)
        meter = SystemMeter()
        started_at = time.monotonic()
        command = [lab.onehop, "send", file, "--to", labs.ADDRESS_B, "--io", io, "--json", *extra]
        if trace is not None:
            command += ["--trace", trace]
        sender = Process(lab.on("a", *command), work, f"onehop-send-{io}", env, is_memory_read,
                         are_threads_read)
        if while_running is not None:
            while_running(sender)
        sender.wait(EXTRA_SECONDS + Path(file).stat().st_size * 8 / SLOWEST_BPS)
        receive.wait(20)
        wall = time.monotonic() - started_at
        busy, softirq = meter.busy_seconds(), meter.softirq_seconds()
    finally:
        for process in (sender, receive):
            if process is not None:
                process.end()
    sent, received = event(sender, "end"), event(receive, "end")
    size = Path(file).stat().st_size
    if sent["bytes_total"] != size or received["bytes_total"] != size or not received["hash_ok"]:
        raise MeasureError(
            f"onehop {io}: {size} bytes offered, {received['bytes_total']} verified, hash_ok "
            f"{received['hash_ok']}"
        )
    if io != "auto" and (sent["io_used"] != io or received["io_used"] != io):
        raise MeasureError(
            f"onehop: asked for {io}, got {sent['io_used']} and {received['io_used']}")
    if at_end is not None:
        at_end()
    (Path(folder) / Path(file).name).unlink(missing_ok=True)
    return Outcome(size, sent["seconds"], sent["goodput_bps"],
                   sender.cpu_seconds + receive.cpu_seconds, softirq, busy, wall,
                   sender.ended_at - sender.started_at, sender.voluntary_switches_total,
                   receive.voluntary_switches_total, sender.rss_bytes_max, receive.rss_bytes_max,
                   sent, received, sender.thread_switches, receive.thread_switches)


def refused_after(trace, skip_seconds) -> Any:
    """refused_after is the growth of refused_total in a trace, counted from `skip_seconds` after
    the first queued byte."""
    with open(trace) as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    first = next((row for row in rows if int(row["tx_queue_bytes"]) > 0), None)
    if first is None:
        raise MeasureError(f"read {trace}: no row with a byte in the queue")
    from_ns = int(first["t_ns"]) + int(skip_seconds * 1e9)
    later = [int(row["refused_total"]) for row in rows if int(row["t_ns"]) >= from_ns]
    return later[-1] - later[0] if later else 0
