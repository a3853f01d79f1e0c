# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Case about CPU per byte by aggregation and by scheme [SMUFF]: the UDP port with one frame a call
and with full batches (`onehop bench port`), a whole transfer from memory to memory beside iperf3's
UDP (one datagram a call) and TCP.

Where aggregation paid, the paper's phones spent 18.0 % less at the sender and 21.9 % less at the
receiver, and SMUFF 37 % less than the schemes beside it: these are the bounds.
"""

import json
from typing import Any

from measure import Process
from report import Metric

SINGLE, FULL = 1, 44  # frames of a batch; 44 of them fill what UDP_SEGMENT takes
SECONDS_MAX = 300
ENDS = (("sender", 0.820), ("receiver", 0.781))


def _bench(context, part, *extra) -> dict[str, Any]:
    """_bench runs `onehop bench` over the unshaped link and returns {point: {metric: value}}."""
    command = [
        context.onehop, "bench", part, "--profile", "unshaped", "--io", "udp", "--rounds", "1",
        "--time", context.size(2, 1), "--quiet", "-J", *extra
    ]
    process = Process(command, context.work, "onehop-bench")
    try:
        process.wait(SECONDS_MAX)
    finally:
        process.end()  # also when we are interrupted: it takes its lab down
    rows = json.loads(process.output.read_text())["results"]
    return {
        row["name"]: {key: value["median"] for key, value in row["metrics"].items()} for row in rows
    }


def _round(context) -> dict[str, float]:
    values = {}
    port = {}
    order = (SINGLE, FULL) if context.round % 2 else (FULL, SINGLE)
    for frames in order:
        (port[frames],) = _bench(context, "port", "--burst", frames).values()
    for end, _ in ENDS:
        for frames, name in ((SINGLE, "single"), (FULL, "full")):
            values[f"{end}_{name}"] = port[frames][f"{end}_ns_per_byte"]
        values[f"{end}_saved"] = values[f"{end}_full"] / values[f"{end}_single"]
    for base in ("iperf3-udp", "iperf3-tcp"):
        points = _bench(context, "loop", "--baseline", base)
        whole, other = points["udp"]["cpu_ns_per_byte"], points[base]["cpu_ns_per_byte"]
        values |= {f"to_{base}": whole / other, f"ns_{base}": other, "whole": whole}
    return values


def cases() -> list[Any]:
    metrics = []
    for end, bound in ENDS:
        metrics += [
            Metric(f"{end}_saved", f"{end}: full batches / single frames, CPU per byte", "", "<=",
                   bound),
            Metric(f"{end}_single", f"  {end}, single frames", "ns/B"),
            Metric(f"{end}_full", f"  {end}, batches of {FULL}", "ns/B")
        ]
    metrics += [
        Metric("to_iperf3-udp", "a transfer, sealed and digested / iperf3 UDP, CPU per byte", "",
               "<=", 0.63),
        Metric("to_iperf3-tcp", "a transfer, sealed and digested / iperf3 TCP, CPU per byte"),
        Metric("whole", "onehop --io udp, memory to memory: CPU, both ends", "ns/B"),
        Metric("ns_iperf3-udp", "iperf3 UDP, a datagram a call: CPU, both ends", "ns/B"),
        Metric("ns_iperf3-tcp", "iperf3 TCP Cubic: CPU, both ends", "ns/B")
    ]
    return [("batches", "unshaped veth, MTU 1500: full batches beside single frames, and a whole "
             "transfer beside iperf3", metrics, _round)]
