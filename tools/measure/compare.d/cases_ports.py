# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Which port wins where: the same file over UDP, over AF_XDP and over what `auto` takes at each
end, on links that differ in rate, receive offload and frame size.

What is compared is whole-system busy time: the two ports leave different shares of their work to
the idle task's softirqs.
"""

from placement import hold
from report import Metric
from transfer import run_onehop
from typing import Any

PORTS = ("udp", "afxdp", "auto")
# profile, what it stands for, bytes
LINKS = (("steady-600", "600 Mbit/s, MTU 1500", 400_000_000),
         ("unshaped", "as fast as the CPUs go, MTU 1500", 1 << 30),
         ("unshaped-gro", "the same, software GRO on", 1 << 30),
         ("unshaped-mtu3498", "as fast as the CPUs go, MTU 3498", 1 << 30),
         ("unshaped-mtu9000", "as fast as the CPUs go, MTU 9000", 1 << 30))


def _ports(profile, size_full) -> Any:
    def run(context) -> Any:
        return hold(context.onehop, lambda place: run_at(place, context))

    def run_at(place, context) -> Any:
        size = context.size(size_full, 200_000_000)
        file = context.file(size)
        values = {"round_trip": place.round_trip_ns}
        with context.lab(profile) as lab:
            for i in range(len(PORTS)):
                io = PORTS[(i + context.round) % len(PORTS)]
                done = place.run(lambda io=io: context.backed(
                    size, lambda: run_onehop(lab, file, context.folder, io, context.work)))
                values[f"busy_{io}"], values[
                    f"bps_{io}"] = done.busy_ns_per_byte, done.goodput_bps / 1e9
        values["ratio"], values["ratio_auto"] = values["busy_afxdp"] / values["busy_udp"], values[
            "busy_auto"] / values["busy_udp"]
        return values

    return run


def cases() -> list[Any]:
    metrics = [
        Metric("ratio", "busy time per byte, AF_XDP / UDP"),
        Metric("ratio_auto", "busy time per byte, auto / UDP")
    ]
    for io in PORTS:
        metrics += [
            Metric(f"busy_{io}", f"--io {io}: system busy", "ns/B"),
            Metric(f"bps_{io}", f"--io {io}: goodput", "Gbit/s")
        ]
    metrics.append(
        Metric("round_trip", "a cache line between two CPUs and back, equal within a round", "ns"))
    return [(f"ports-{profile}", f"{text}: AF_XDP in copy mode and auto beside UDP", metrics,
             _ports(profile, size)) for profile, text, size in LINKS]


def verdicts(results) -> Any:
    """verdicts returns the lines of a table that says which port wins on which link, from the
    `ports-` cases among `results`."""
    ports = [
        result for result in results
        if result.name.startswith("ports-") and result.values.get("ratio")
    ]
    if not ports:
        return []
    lines = [
        "", "## When which I/O wins", "",
        "Zero-copy AF_XDP is taken wherever the driver has it; the lab's veth has none. Between "
        "UDP and AF_XDP in copy mode at both",
        "ends, and what `--io auto` takes: UDP to send, and to receive AF_XDP where GRO is off and "
        "frames are of 1500 bytes:",
        "",
        "| link | UDP, ns/B busy | AF_XDP, ns/B busy | auto, ns/B busy | UDP, Gbit/s | AF_XDP, "
        "Gbit/s | auto, Gbit/s | cheapest | fastest |",
        "|---|---|---|---|---|---|---|---|---|"
    ]
    for result in ports:
        busy, speed = ({io: result.median(f"{key}_{io}") for io in PORTS}
                       for key in ("busy", "bps"))
        figures = " | ".join(f"{values[io]:.2f}" for values in (busy, speed) for io in PORTS)
        lines.append(
            f"| {result.about.split(':')[0]} | {figures} | {_winner(min, busy)} | "
            f"{_winner(max, speed)} |"
        )
    return lines


def _winner(best, values) -> str:
    """_winner names what is within 10 % of the best: by so much the rounds differ on a shared
    machine."""
    top = best(values.values())
    near = [io for io, value in values.items() if max(value, top) < 1.1 * min(value, top)]
    return "about equal" if len(near) == len(values) else ", ".join(near)
