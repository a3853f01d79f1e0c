# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Cases about one service that several paired senders use at once: what they carry together beside
one alone, how even their shares are, and whether the service took the memory that it printed.

All rates are read while every sender sends: each is given a file that outlasts the reading.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

import lab as labs
from measure import MeasureError, Process
from report import Metric
from transfer import START_SECONDS_MAX, make_code

PROFILE, LINK_BYTES_PER_S = "steady-600", 75_000_000
LEAD_S, WINDOW_S, WINDOW_S_QUICK, SPARE_S = 2.0, 8.0, 2.0, 3.0
PAIR_SECONDS_MAX, START_SPREAD_S = 30.0, 0.2


class _Service:
    """bob at b serves ann at a; whatever happens, their programs are gone after the with block."""

    def __init__(self, context, lab) -> None:
        self._lab, self._work, self._folder = lab, context.work, context.folder
        self._started: list[Process] = []

    def __enter__(self) -> "_Service":
        code = {"ONEHOP_CODE": make_code()}
        shows = self._start("b", "pair-b", code, "pair", "--listen", labs.ADDRESS_B, "--name",
                            "bob", "--json")
        shows.wait_line('"start"', START_SECONDS_MAX)
        asks = self._start("a", "pair-a", code, "pair", labs.ADDRESS_B, "--name", "ann", "--json")
        asks.wait(PAIR_SECONDS_MAX)
        shows.wait(PAIR_SECONDS_MAX)
        self._start("b", "rule", {}, "peers", "set", "ann", "--rule",
                    "accept").wait(START_SECONDS_MAX)
        self.receiver = self._start("b", "service", {}, "recv", "--service", "--hidden",
                                    "--sessions", "8", "--io", "udp", "--dir", self._folder,
                                    "--json")
        self.receiver.wait_line('"start"', START_SECONDS_MAX)
        return self

    def __exit__(self, *_) -> None:
        for process in reversed(self._started):
            process.end()

    def _start(self, host, label, env, *words) -> Process:
        home = self._work / ("ann" if host == "a" else "bob")
        process = Process(self._lab.on(host, self._lab.onehop, *words), self._work, label,
                          {**env, "ONEHOP_CONFIG_DIR": str(home)})
        self._started.append(process)
        return process

    def send(self, path) -> Process:
        return self._start("a", f"send-{path.name}", {}, "send", path, "--to",
                           f"bob@{labs.ADDRESS_B}", "--io", "udp", "--json")

    def play(self, paths, window_s) -> tuple[float, list[int]]:
        """play sends all of them, and returns what b received in a second while all sent, and what
        each had brought in the same number of seconds."""
        senders = []
        for path in paths:
            senders.append(self.send(path))
            time.sleep(START_SPREAD_S)
        for sender in senders:
            sender.wait_line('"interval"', START_SECONDS_MAX)
        time.sleep(LEAD_S)
        began, before = time.monotonic(), self._received()
        lines = [len(_came(sender)) for sender in senders]
        time.sleep(window_s)
        rate = (self._received() - before) / (time.monotonic() - began)
        came = [_came(sender)[first:] for sender, first in zip(senders, lines)]
        if any(sender.exit_code is not None for sender in senders):
            raise MeasureError("service: a sender ended before the reading did")
        for sender, path in zip(senders, paths):
            sender.wait(60 * len(paths))
            (Path(self._folder) / path.name).unlink()
        last = min(map(len, came)) - 1
        return rate, [each[last] - each[0] for each in came]

    def _received(self) -> int:
        return int(self._lab.read("b", "cat", "/sys/class/net/vb/statistics/rx_bytes"))

    def memory(self) -> tuple[int, int]:
        """memory is the most that the service has had, and the most that it said."""
        status = Path(f"/proc/{self.receiver.pid}/status").read_text()
        peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
        return peak, max(row["rss_bytes_max"] for row in _rows(self.receiver, "end"))


def _rows(process, kind) -> list[Any]:
    rows = [json.loads(line) for line in process.output.read_text().splitlines()
            if line.startswith("{") and line.endswith("}")]
    return [row for row in rows if row["type"] == kind]


def _came(sender) -> list[int]:
    return [row["bytes_total"] for row in _rows(sender, "interval")]


def _round(count, context) -> dict[str, Any]:
    window = WINDOW_S_QUICK if context.is_quick else WINDOW_S
    spread = START_SPREAD_S * count
    size = int(LINK_BYTES_PER_S * (LEAD_S + window + SPARE_S + spread))
    one = context.file(size)
    paths = [context.work / f"session{i}" for i in range(count)]
    with context.lab(PROFILE) as lab, _Service(context, lab) as service:
        alone, _ = service.play([one], window)
        try:
            for path in paths:
                os.link(one, path)
            together, shares = service.play(paths, window)
        finally:
            for path in paths:
                path.unlink(missing_ok=True)
        peak, said = service.memory()
    return {
        "sum": together / alone,
        "jain": sum(shares)**2 / (count * sum(share**2 for share in shares)),
        "least": min(shares) * count / sum(shares),
        "memory": peak / said,
        "alone": alone * 8e-6,
        "together": together * 8e-6,
        "mib": peak / (1 << 20)
    }


def cases() -> list[Any]:
    metrics = [
        Metric("sum", "all sessions together / one alone", "", ">=", 0.97),
        Metric("jain", "Jain's index of their shares", "", ">=", 0.98),
        Metric("memory", "memory of the service / what it printed", "", "<=", 1.0),
        Metric("least", "the least share / the even one"),
        Metric("alone", "one alone, wire", "Mbit/s"),
        Metric("together", "all together, wire", "Mbit/s"),
        Metric("mib", "memory of the service", "MiB")
    ]
    return [(f"service-{count}", f"{count} paired senders into one service at once, 600 Mbit/s",
             metrics, lambda context, count=count: _round(count, context)) for count in (2, 4, 8)]
