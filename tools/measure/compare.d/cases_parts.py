# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What a transfer costs beside the sum of its parts (`onehop bench loop --parts`): the bare port
with payload copied, AEAD, digest, tmpfs read and write, each alone and warm, of the same round.

`parts / iperf3` says how near to TCP a whole at exactly its parts would be. That is a yardstick and
no lower bound: parts that share a wake-up can cost less together than each alone.
"""

import json
from typing import Any

from measure import Process
from report import Metric

PORTS = ("udp", "afxdp:skb")
BASE = "iperf3-tcp"
SECONDS_MAX = 600
PARTS = (("port", "bare port"), ("aead", "AEAD"), ("digest", "digest"), ("read", "tmpfs read"),
         ("write", "tmpfs write"))
FILES = ("--source", "file", "--sink", "file")
OVER_PARTS = 1.10
_WARM = (
    "a part touches memory that is new to it and the whole does not: the sum comes out at up to "
    "twice the whole, and nothing that is added to the whole would be seen; `tools/measure/cpu "
    "--beside PROGRAM --parts` holds the whole and each part against another build instead"
)
# case, profile, what it stands for, what of whole / parts is bounded, bounds of CPU / iperf3's and
# goodput / iperf3's (0: none)
LINKS = (("parts-1500", "unshaped", "MTU 1500", ("best",), 1.2, 0.8),
         ("parts-gro", "unshaped-gro", "MTU 1500, software GRO on", ("best",), 1.5, 0),
         ("parts-3498", "unshaped-mtu3498", "MTU 3498", ("best", "over_afxdp:skb"), 0, 0),
         ("parts-9000", "unshaped-mtu9000", "MTU 9000", ("best", "over_afxdp:skb"), 0, 0))


def rows(context, part, *words) -> Any:
    """rows runs `onehop bench PART` and returns its results, as it writes them."""
    process = Process([context.onehop, "bench", part, *map(str, words), "--quiet", "-J"],
                      context.work, "onehop-bench")
    try:
        process.wait(SECONDS_MAX)
    finally:
        process.end()  # also when we are interrupted: it takes its lab down
    return json.loads(process.output.read_text())["results"]


def medians(row) -> dict[str, float]:
    return {key: value["median"] for key, value in row["metrics"].items()}


def bench(context, profile, ports, *extra, rounds=1) -> dict[Any, Any]:
    """bench runs `onehop bench loop --parts` and returns {point: {metric: value}}."""
    return {row["name"]: medians(row)
            for row in loop(context, profile, ports, *extra, rounds=rounds)}


def loop(context, profile, ports, *extra, rounds=1) -> Any:
    return rows(context, "loop", "--profile", profile, "--io", ",".join(ports), "--rounds", rounds,
                "--parts", "--baseline", BASE, *extra)


def _in_turn(context) -> Any:
    return PORTS[::-1] if context.round % 2 else PORTS


def _round(profile) -> Any:
    def run(context) -> Any:
        points = bench(context, profile, _in_turn(context), "--bytes",
                       context.size(1 << 30, 256 << 20), *FILES)
        base = points[BASE]
        best = min((points[port] for port in PORTS), key=lambda point: point["cpu_ns_per_byte"])
        values = {
            "best": best["whole_over_parts"],
            "ratio": best["cpu_ns_per_byte"] / base["cpu_ns_per_byte"],
            "goodput": best["goodput_bps"] / base["goodput_bps"],
            "limit": best["parts_ns_per_byte"] / base["cpu_ns_per_byte"],
            "base": base["cpu_ns_per_byte"], "hand_over": best.get("hand_over_ns_per_byte"),
            "handed": best.get("whole_over_parts_and_hand_over"),
            "round_trip": best["core_round_trip_ns"]
        }
        for port in PORTS:
            values |= {
                f"whole_{port}": points[port]["cpu_ns_per_byte"],
                f"over_{port}": points[port]["whole_over_parts"]
            }
            values |= {f"{key}_{port}": points[port][f"part_{key}_ns_per_byte"] for key, _ in PARTS}
        return values

    return run


def _metrics(bounded, over_tcp, goodput) -> Any:
    def over_parts(key, text) -> Any:
        return Metric(key, f"{text}: whole / sum of parts", "", "<=" if key in bounded else "",
                      OVER_PARTS, _WARM if key in bounded else "")

    metrics = [
        over_parts("best", "cheaper port"),
        Metric("ratio", "cheaper port / iperf3, CPU per byte", "", "<=" if over_tcp else "",
               over_tcp),
        Metric("goodput", "cheaper port's goodput / iperf3's", "", ">=" if goodput else "",
               goodput),
        Metric("hand_over", "cheaper port: handing blocks over between threads, in no part",
               "ns/B"),
        Metric("handed", "cheaper port: whole / parts and hand-over"),
        Metric("limit", "cheaper port's parts / iperf3"),
        Metric("base", "iperf3 TCP: CPU, both ends", "ns/B")
    ]
    for port in PORTS:
        metrics += [
            over_parts(f"over_{port}", port),
            Metric(f"whole_{port}", f"{port}: whole", "ns/B")
        ]
        metrics += [Metric(f"{key}_{port}", f"  {port}: {text}", "ns/B") for key, text in PARTS]
    return metrics + [Metric("round_trip", "a cache line between two CPUs and back", "ns")]


def _memory_round(context) -> dict[Any, Any]:
    # By time, and without the start: a flood has none.
    points = bench(context, "unshaped", _in_turn(context), "--time", context.size(3, 1), "--omit",
                   0.3, rounds=3)
    return {
        f"{key}_{port}": points[port][name] for port in PORTS
        for key, name in (("frames", "frames_over_flood"), ("rate", "frames_per_second"),
                          ("flood", "flood_frames_per_second"))
    }


def cases() -> list[Any]:
    listed = [
        (name,
         f"unshaped veth, {text}, file to file in tmpfs: the whole beside the sum of its parts",
         _metrics(*bounds), _round(profile)) for name, profile, text, *bounds in LINKS
    ]
    bounds = {"udp": 0.85, "afxdp:skb": 0.90}
    metrics = []
    for port in PORTS:
        metrics += [
            Metric(f"frames_{port}", f"{port}: frames / bare flood's", "", ">=", bounds[port]),
            Metric(f"rate_{port}", f"{port}: frames", "1/s"),
            Metric(f"flood_{port}", f"{port}: bare flood with payload copied", "1/s")
        ]
    return [
        *listed,
        ("parts-memory",
         "unshaped veth, MTU 1500, memory to memory, sealed and digested: frames beside a bare "
         "flood's",
         metrics, _memory_round)
    ]
