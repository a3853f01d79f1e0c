# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Which port wins where: the same file over UDP and over AF_XDP, on links that differ in rate, receive offload and frame size.

What is compared is whole-system busy time: the two ports leave different shares of their work to the idle task's softirqs.
"""

from placement import hold
from report import Metric
from transfer import run_onehop

PORTS = ("udp", "afxdp")
# profile, what it stands for, bytes
LINKS = (("steady-600", "600 Mbit/s, MTU 1500", 500_000_000),
         ("unshaped", "as fast as the CPUs go, MTU 1500", 1 << 30),
         ("unshaped-gro", "the same, software GRO on", 1 << 30),
         ("unshaped-mtu3498", "as fast as the CPUs go, MTU 3498", 1 << 30),
         ("unshaped-mtu9000", "as fast as the CPUs go, MTU 9000", 1 << 30))


def _ports(profile, size_full):
    def run(context):
        return hold(context.onehop, lambda place: run_at(place, context))

    def run_at(place, context):
        size = context.size(size_full, 200_000_000)
        file = context.file(size)
        values = {"round_trip": place.round_trip_ns}
        with context.lab(profile) as lab:
            for i in range(len(PORTS)):
                io = PORTS[(i + context.round) % len(PORTS)]
                done = place.run(lambda io=io: run_onehop(lab, file, context.folder, io, context.work))
                values[f"busy_{io}"], values[f"bps_{io}"] = done.busy_ns_per_byte, done.goodput_bps / 1e9
        values["ratio"] = values["busy_afxdp"] / values["busy_udp"]
        return values

    return run


def cases():
    metrics = [Metric("ratio", "busy time per byte, AF_XDP / UDP")]
    for io in PORTS:
        metrics += [Metric(f"busy_{io}", f"--io {io}: system busy", "ns/B"), Metric(f"bps_{io}", f"--io {io}: goodput", "Gbit/s")]
    metrics.append(Metric("round_trip", "a cache line between two CPUs and back, equal within a round", "ns"))
    return [(f"ports-{profile}", f"{text}: AF_XDP in copy mode beside UDP", metrics, _ports(profile, size))
            for profile, text, size in LINKS]


def verdicts(results):
    """verdicts returns the lines of a table that says which port wins on which link, from the `ports-` cases among `results`."""
    ports = [result for result in results if result.name.startswith("ports-") and result.values.get("ratio")]
    if not ports:
        return []
    lines = ["", "## When which I/O wins", "",
             "Zero-copy AF_XDP is taken wherever the driver has it; the lab's veth has none. Between UDP and AF_XDP in copy mode:", "",
             "| link | UDP, ns/B busy | AF_XDP, ns/B busy | UDP, Gbit/s | AF_XDP, Gbit/s | cheaper | faster |", "|---|---|---|---|---|---|---|"]
    for result in ports:
        busy, speed = ({io: result.median(f"{key}_{io}") for io in PORTS} for key in ("busy", "bps"))
        lines.append(f"| {result.about.split(':')[0]} | {busy['udp']:.2f} | {busy['afxdp']:.2f} | {speed['udp']:.2f} | {speed['afxdp']:.2f} "
                     f"| {_winner(min, busy)} | {_winner(max, speed)} |")
    return lines


def _winner(best, values):
    """_winner names the better port, or neither where they differ by less than the rounds do on a shared machine (10 %)."""
    low, high = sorted(values.values())
    return "about equal" if high < 1.1 * low else best(values, key=values.get)
