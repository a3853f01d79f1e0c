# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Cases about the queue at a steady rate: goodput, refusals, what the telemetry says against what
the kernel says, latency."""

import re
import signal
import statistics
import time
from typing import Any

import lab as labs
from measure import MeasureError, Process, Sampler
from report import Metric
from transfer import refused_after, run_onehop

ECHOES_MIN = 200
REFUSED_SKIP_SECONDS = 0.1
_ECHO = re.compile(r"^\[(\d+\.\d+)\].*time=([\d.]+) ms", re.M)


class Pinger:
    """ping from a to b until echoes() ends it; echoes are (wall-clock seconds, ms)."""

    def __init__(self, lab, work, interval) -> None:
        self._process = Process(lab.on("a", "ping", "-D", "-n", "-i", interval, labs.ADDRESS_B),
                                work, "ping")

    def wait(self, echoes, seconds) -> None:
        """wait until that many came: on a kernel with 100 Hz an interval of 5 ms can be 10."""
        give_up_at = time.monotonic() + seconds
        while self._process.output.read_text().count(
                "time=") < echoes and time.monotonic() < give_up_at:
            time.sleep(0.1)

    def echoes(self) -> list[Any]:
        self._process.end(signal.SIGINT)  # SIGTERM would lose what ping has not flushed
        return [(float(at), float(ms))
                for at, ms in _ECHO.findall(self._process.output.read_text())]


def idle_median_ms(context, lab) -> Any:
    """idle_median_ms is the median of at least ECHOES_MIN echoes on the quiet link."""
    pinger = Pinger(lab, context.work, context.ping_interval)
    pinger.wait(ECHOES_MIN, 20)
    echoes = [ms for _, ms in pinger.echoes()]
    if len(echoes) < ECHOES_MIN:
        raise MeasureError(f"ping the idle link: {len(echoes)} echoes, {ECHOES_MIN} wanted")
    return statistics.median(echoes)


# so much growth in so short a time is data; handshakes, PINGs and echoes are less
FLOW_BYTES, FLOW_SECONDS = 10_000, 0.010
# two full frames between two samples: the edge of the data inside its first and last 10 ms
STEP_BYTES = 3000


def growth_span(rows) -> tuple[Any, Any]:
    """growth_span returns (first, last) index of the rows between which data flowed; first is the
    row before the first data."""
    starts, ends = None, None
    back = 0
    for i, (at, value) in enumerate(rows):
        while at - rows[back][0] > FLOW_SECONDS and back < i - 1:
            back += 1
        if value - rows[back][1] >= FLOW_BYTES:
            starts = (back, i) if starts is None else starts
            ends = (back, i)
    if starts is None:
        raise MeasureError("find the data in the samples: the counter never grew")
    first = next((j for j in range(*starts) if rows[j + 1][1] - rows[j][1] >= STEP_BYTES),
                 starts[0])
    last = next(
        (j for j in range(ends[1], ends[0], -1) if rows[j][1] - rows[j - 1][1] >= STEP_BYTES),
        ends[1])
    return first, last


def loaded_echoes(echoes, rows) -> list[Any]:
    """loaded_echoes keeps the echoes sent while data flowed, without its first 200 ms."""
    first, last = growth_span(rows)
    shift = time.time() - time.monotonic()
    return [ms for at, ms in echoes if rows[first][0] + 0.2 <= at - shift <= rows[last][0]]


def percentile(values, q) -> Any:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def latency(context, echoes, rows, idle) -> Any:
    loaded = loaded_echoes(echoes, rows)
    out: dict[str, Any] = {"echoes": len(loaded)}
    if len(loaded) < ECHOES_MIN:
        out["note"] = (
            f"only {len(loaded)} echoes while data flowed ({ECHOES_MIN} wanted): latency not "
            "measured in that round"
        )
        return out
    return out | {"rtt_idle_ms": idle, "rtt_median_ms": statistics.median(loaded) - idle,
                  "rtt_p95_ms": percentile(loaded, 0.95) - idle}


LATENCY_METRICS = [
    Metric("rtt_idle_ms", "ping, idle median", "ms"),
    Metric("rtt_median_ms", "ping, loaded median - idle", "ms", "<=", 10),
    Metric("rtt_p95_ms", "ping, loaded p95 - idle", "ms", "<=", 12),
    Metric("echoes", "echoes while data flowed"),
]


def _steady(io) -> tuple[str, str, Any, Any]:
    profile = "steady-600"

    def run(context) -> Any:
        size = context.size(1 << 30, 200_000_000)
        file, trace = context.file(size), context.work / "trace.csv"
        with context.lab(profile) as lab:
            idle = idle_median_ms(context, lab)
            flow = Sampler(lab, "b", "rx", "vb", 0.005, context.work)
            backlog = Sampler(lab, "a", "backlog", "va", 0.020, context.work)
            pinger = Pinger(lab, context.work, context.ping_interval)
            outcome = run_onehop(lab, file, context.folder, io, context.work, trace=trace)
            echoes, queued, rows = pinger.echoes(), backlog.rows(), flow.rows()
        first, last = growth_span(rows)
        busy = [value for at, value in queued if rows[first][0] + 0.2 <= at <= rows[last][0] - 0.2]
        if not busy:
            raise MeasureError("sample the qdisc backlog: no sample while data flowed")
        outside, queue = statistics.mean(busy), outcome.sender["tx_queue"]
        mean, target = queue["occupancy_bytes_mean"], queue["target_bytes"]
        values = {
            "goodput": labs.of_ceiling(outcome.goodput_bps, labs.ceiling_bps(profile)),
            "refused": refused_after(trace, REFUSED_SKIP_SECONDS),
            "to_target": abs(mean / target - 1) if target else None,
            "to_qdisc": abs(mean / outside - 1) if outside else None,
            "mean_kb": mean / 1000, "target_kb": target / 1000, "qdisc_kb": outside / 1000,
            "ns": outcome.ns_per_byte,
        }
        return values | latency(context, echoes, rows, idle)

    metrics = [
        Metric("goodput", "goodput / ceiling", "", ">=", 0.97),
        Metric("refused", "refused after the first 100 ms", "", "==", 0),
        Metric("to_target", "|occupancy mean / target - 1|", "", "<=", 0.25),
        Metric("to_qdisc", "|occupancy mean / qdisc backlog - 1|", "", "<=", 0.25),
        Metric("mean_kb", "occupancy mean", "kB"), Metric("target_kb", "occupancy target", "kB"),
        Metric("qdisc_kb", "qdisc backlog, read from outside", "kB"),
        Metric("ns", "CPU, both ends", "ns/B"),
        *LATENCY_METRICS,
    ]
    return f"steady-{io}", f"600 Mbit/s, --io {io}: goodput, queue and latency", metrics, run


def cases() -> list[Any]:
    return [_steady("udp"), _steady("afxdp")]
