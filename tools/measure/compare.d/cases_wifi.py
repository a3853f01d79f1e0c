# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Cases over the lab's Wi-Fi links, where data and acknowledgements share the air: `compare
--wifi`.

As it comes, onehop knows nothing of the link. With the lab's model (--link-model) it knows what a
good Wi-Fi driver tells. Goodput is file to file for all.
"""

import bisect
import csv
import statistics
from typing import Any

import air
import lab as labs
from cases_queue import Pinger, loaded_echoes, percentile
from measure import MeasureError, Sampler, background_cores
from report import Metric
from transfer import run_onehop

MAIN = "wifi-ac80"
FASTER = ("wifi-ac160", "wifi-ax80", "wifi-ax160")
# Its work is little enough for the one core of a virtual machine that counts instructions
# (tests/vm/airtime), where no wake-up is late however busy the machine is.
SLOWER = "wifi-ac80-far"
PORTS = ("udp", "afxdp")
SMALL_BYTES = 10_000_000
PING_SECONDS = 0.020  # each echo costs two turns on the air: 50 a second take 1 % of it
ECHOES_MIN = 50       # for a p95
TAU_SECONDS = 0.008   # qcut's on Wi-Fi, before it adapts


_BACKGROUND = Metric("background", "other programs, before the round", "cores")


def _onehop(context, lab, file, io, *extra, trace=None, has_model=True) -> Any:
    facts = ("--link-model", lab.env["ONEHOP_LAB_FACTS_A"]) if has_model else ()
    return run_onehop(lab, file, context.folder, io, context.work, trace=trace,
                      extra=(*facts, *extra))


def _with_ping(context, lab, move) -> tuple[Any, Any]:
    """_with_ping returns (what move() returns, p95 of the echoes while it moved data, in ms)."""
    flow = Sampler(lab, "b", "rx", "vb", 0.005, context.work)
    pinger = Pinger(lab, context.work, PING_SECONDS)
    value = move()
    echoes = loaded_echoes(pinger.echoes(), flow.rows())
    if len(echoes) < ECHOES_MIN and not context.is_quick:
        raise MeasureError(f"ping beside the transfer: {len(echoes)} echoes, {ECHOES_MIN} wanted")
    return value, percentile(echoes, 0.95) if echoes else None


def _calibration(profile) -> tuple[str, str, Any, Any]:
    loss, name = "-loss-1" if profile.endswith("-loss-1") else "", profile.removeprefix("wifi-")

    def run(context) -> Any:
        values = {"background": background_cores()}
        for traffic in ("udp", "cubic"):
            bps, _ = air.trusted(
                context, profile,
                lambda lab: air.saturated_bps(lab, traffic, context.size(3, 1.5), context.work),
                air.is_saturated if traffic == "udp" else lambda *_: True)
            values[traffic] = bps / 1e6
            values[f"ns3_{traffic}"] = air.NS3[traffic, name]
            values[f"off_{traffic}"] = abs(bps / 1e6 / air.NS3[traffic, name] - 1) * 100
        return values

    metrics = []
    for traffic, text in (("udp", "saturating UDP"), ("cubic", "one TCP flow, Cubic")):
        metrics += [
            Metric(f"off_{traffic}", f"{text}: off ns-3 by", "%", "<=", air.WIDEST_PERCENT),
            Metric(traffic, f"{text}: lab", "Mbit/s"),
            Metric(f"ns3_{traffic}", f"{text}: ns-3", "Mbit/s")
        ]
    metrics.append(_BACKGROUND)
    return f"calibration-{name}", (f"the lab's {profile} beside "
                                   f"ns-3{', 1 % of the MPDUs lost' if loss else ''}"), metrics, run


def _beside_tcp(profile, about, is_required, is_gain_possible=True) -> tuple[Any, str, Any, Any]:
    return profile.removeprefix("wifi-"), f"{profile}: {about}", _beside_tcp_metrics(
        is_required, is_gain_possible), lambda context: _beside_tcp_round(profile, context)


def _beside_tcp_round(profile, context) -> Any:
    big, small = context.file(context.size(250_000_000, 50_000_000)), context.file(SMALL_BYTES)

    def by_cubic(lab, file) -> Any:
        return air.tcp_file(lab, file, context.folder, context.work, "cubic")

    def by_onehop(io, has_model) -> Any:
        return lambda lab, file: _onehop(context, lab, file, io, has_model=has_model).seconds

    programs = [("cubic", by_cubic),
                *((way, by_onehop(io, has_model)) for way, (_, io, has_model) in WAYS.items())]

    background = background_cores()

    def run(lab) -> Any:
        air.give_tcp_its_buffers(lab)
        values, small_seconds = {"background": background}, {name: [] for name, _ in programs}
        for i in range(len(programs)):
            name, move = programs[(i + context.round) % len(programs)]
            seconds, values[f"p95_{name}"] = _with_ping(context, lab, lambda: move(lab, big))
            values[f"bps_{name}"] = big.stat().st_size * 8 / seconds / 1e6
        for _ in range(context.size(5, 2)):
            for name, move in programs:
                small_seconds[name].append(move(lab, small))
        for name, seconds in small_seconds.items():
            values[f"small_{name}"] = statistics.median(seconds)
        values["bps_bbr"] = big.stat().st_size * 8 / air.tcp_file(lab, big, context.folder,
                                                                  context.work, "bbr") / 1e6
        return values

    values, report = air.trusted(context, profile, run)
    ceiling = report.model_bps / 1e6 * labs.PAYLOAD_BYTES / (labs.FRAME_BYTES - 42)
    small_ideal = SMALL_BYTES * 8 / (ceiling * 1e6)
    values |= {
        "ceiling": ceiling, "most": ceiling / values["bps_cubic"],
        "most_sooner": (1 - small_ideal / values["small_cubic"]) * 100
    }
    for way in WAYS:
        values |= {
            f"gain_{way}": values[f"bps_{way}"] / values["bps_cubic"],
            f"use_{way}": labs.of_ceiling(values[f"bps_{way}"], ceiling),
            f"small_use_{way}": small_ideal / values[f"small_{way}"],
            f"sooner_{way}": (1 - values[f"small_{way}"] / values["small_cubic"]) * 100
        }
        if values["p95_cubic"] and values[f"p95_{way}"]:
            values[f"ping_{way}"] = values[f"p95_{way}"] / values["p95_cubic"]
    return values


# A user has no model of the link and names no port: the first is what he gets. The others have the
# facts that a good Wi-Fi driver tells.
WAYS = {"plain": ("onehop as it comes, without the model", "auto", False),
        "udp": ("onehop --io udp", "udp", True), "afxdp": ("onehop --io afxdp", "afxdp", True)}
_TOO_MUCH = (
    "more than the channel carries (the rows 'what the channel allows'); the share of that is "
    "required instead"
)


def _beside_tcp_metrics(is_required, is_gain_possible) -> Any:
    def bound(*given) -> Any:
        return given if is_required else ()

    metrics = []
    for way, (text, _, has_model) in WAYS.items():
        metrics += [
            Metric(f"use_{way}",
                   f"{text}: goodput / that of full frames without any acknowledgement", "",
                   *bound(">=", 0.97)),
            Metric(f"small_use_{way}", f"{text}: 10 MB, of what such frames would take / its time",
                   "", *bound(">=", 0.9)),
            Metric(f"ping_{way}", f"{text}: ping p95 / that beside Cubic", "", *bound("<=", 1.0)),
            Metric(f"gain_{way}", f"{text}: goodput / TCP Cubic's", "",
                   *(bound(">=", 1.25) if has_model and is_gain_possible else ())),
            Metric(f"sooner_{way}", f"{text}: 10 MB sooner than Cubic by", "%",
                   *(bound(">=", 40, _TOO_MUCH) if has_model else ()))
        ]
    metrics += [
        Metric(
            "most",
            "what the channel allows: goodput of full frames without any acknowledgement / TCP "
            "Cubic's"
        ),
        Metric("most_sooner", "what the channel allows: 10 MB sooner than Cubic by", "%"),
        Metric("ceiling", "goodput of full frames without any acknowledgement", "Mbit/s")
    ]
    for name, text in (("cubic", "TCP Cubic, 20 MB buffers"),
                       *((way, text) for way, (text, _, _) in WAYS.items())):
        metrics += [
            Metric(f"bps_{name}", f"{text}: goodput", "Mbit/s"),
            Metric(f"p95_{name}", f"{text}: ping p95", "ms"),
            Metric(f"small_{name}", f"{text}: 10 MB", "s")
        ]
    return metrics + [Metric("bps_bbr", "TCP BBR, 20 MB buffers: goodput", "Mbit/s"), _BACKGROUND]


def trace_delays(path) -> Any:
    """trace_delays: own bytes in the lower queue by the rate at which the model's queue drained
    around then, in seconds."""
    with open(path) as file:
        rows = [
            row for row in csv.DictReader(line for line in file if not line.startswith("#"))
            if row["exact_drained_bytes"]
        ]
    if not rows:
        raise MeasureError(f"read {path}: the model told nothing")
    first = int(rows[0]["t_ns"])
    at = [(int(row["t_ns"]) - int(row["exact_queue_age_ns"]) - first) / 1e9 for row in rows]
    drained = [
        int(row["exact_drained_bytes"]) * labs.PAYLOAD_BYTES / labs.FRAME_BYTES for row in rows
    ]
    delays = []
    for i, row in enumerate(rows):
        begin, end = bisect.bisect_left(at, at[i] - 0.05), min(bisect.bisect_left(at, at[i] + 0.05),
                                                               len(at) - 1)
        if at[i] < 0.2 or row["bottleneck"] == "source" or at[end] - at[begin] < 0.05 or drained[
                end] <= drained[begin]:
            continue
        delays.append(
            int(row["tx_queue_bytes"]) * (at[end] - at[begin]) / (drained[end] - drained[begin]))
    if len(delays) < 100:
        raise MeasureError(f"read {path}: {len(delays)} rows while data flowed")
    return delays


# the second fills whatever is below it
QCUT_LAWS = (("safe-range", "safe-range"), ("fixed", "fixed:800Mbit"))


def _qcut(io) -> tuple[str, str, Any, Any]:
    def run(context) -> Any:
        file, trace = context.file(context.size(180_000_000,
                                                50_000_000)), context.work / "trace.csv"

        def measure(lab) -> Any:
            values = {}
            for key, law in QCUT_LAWS:
                free = _onehop(context, lab, file, io, "--law", law, trace=trace)
                values[f"free_{key}"] = percentile(trace_delays(trace), 0.99) * 1000
                cut = _onehop(context, lab, file, io, "--law", law, "--qcut", trace=trace)
                values[f"cut_{key}"] = percentile(trace_delays(trace), 0.99) * 1000
                values[f"tau_{key}"] = values[f"cut_{key}"] / 1000 / TAU_SECONDS
                values[f"loss_{key}"] = (1 - cut.goodput_bps / free.goodput_bps) * 100
            return values

        return air.trusted(context, MAIN, measure)[0]

    metrics = []
    for key, law in QCUT_LAWS:
        metrics += [
            Metric(f"tau_{key}", f"{law}, gated: p99 of the delay below us / tau", "", "<=", 2),
            Metric(f"loss_{key}", f"{law}: goodput lost by the gate", "%", "<=", 2),
            Metric(f"free_{key}", f"{law}: p99 of the delay below us, ungated", "ms"),
            Metric(f"cut_{key}", f"{law}: the same, gated", "ms")
        ]
    return f"qcut-{io}", f"--qcut around two laws over {MAIN}, --io {io}; tau = 8 ms", metrics, run


def _laws(context) -> Any:
    file = context.file(context.size(90_000_000, 50_000_000))

    def run(lab) -> Any:
        values = {}
        for law in ("auto", "wdtcp", "cupid", "safe-range"):
            for io in PORTS:
                outcome, values[f"p95_{law}_{io}"] = _with_ping(
                    context, lab, lambda: _onehop(context, lab, file, io, "--law", law))
                values[f"bps_{law}_{io}"] = outcome.goodput_bps / 1e6
        return values

    return air.trusted(context, MAIN, run)[0]


_LAW_METRICS = [
    metric for law in ("auto", "wdtcp", "cupid", "safe-range") for io in PORTS
    for metric in (Metric(f"bps_{law}_{io}", f"--law {law} --io {io}: goodput", "Mbit/s"),
                   Metric(f"p95_{law}_{io}", f"--law {law} --io {io}: ping p95", "ms"))
]


def _changing(name, about, least) -> tuple[str, Any, Any, Any]:
    """_changing compares with saturating UDP in frames of the same size over the same channel, over
    whole periods of its trace."""
    profile = f"{MAIN}-{name}"

    def run(context) -> Any:
        period = labs.profile(profile)["wifi"].get("trace_period", 1.0)
        span = context.size(2, 1) * period

        def measure(lab) -> Any:
            udp = air.saturated_bps(lab, "udp", span,
                                    context.work) * labs.PAYLOAD_BYTES / air.PAYLOAD_BYTES
            values = {"udp": udp / 1e6}
            file = context.file(int(udp / 8 * span))
            for way, (_, io, has_model) in WAYS.items():
                outcome, values[f"p95_{way}"] = _with_ping(
                    context, lab, lambda: _onehop(context, lab, file, io, has_model=has_model))
                values |= {
                    f"use_{way}": outcome.goodput_bps / udp, f"bps_{way}": outcome.goodput_bps / 1e6
                }
            return values

        return air.trusted(context, profile, measure)[0]

    metrics = [
        Metric(f"use_{way}", f"{text}: goodput / saturating UDP's", "", ">=", least)
        for way, (text, _, _) in WAYS.items()
    ]
    metrics += [Metric("udp", "saturating UDP, as goodput of our frames", "Mbit/s")]
    metrics += [
        metric for way, (text, _, _) in WAYS.items()
        for metric in (Metric(f"bps_{way}", f"{text}: goodput", "Mbit/s"),
                       Metric(f"p95_{way}", f"{text}: ping p95", "ms"))
    ]
    return f"{profile.removeprefix('wifi-')}", about, metrics, run


def cases() -> list[Any]:
    profiles = dict.fromkeys(f"wifi-{name}" for _, name in air.NS3)
    faster = "the same on a faster channel, of which acknowledgements take a larger share"
    return [
        _beside_tcp(MAIN,
                    "onehop with the model's facts, beside TCP; 250 MB and 10 MB, file to file",
                    True), *(_beside_tcp(profile, faster, False) for profile in FASTER),
        # There acknowledgements take so little of the air that the row "most" stays below 1.25.
        _beside_tcp(SLOWER, "the same with stations far from each other", True,
                    is_gain_possible=False),
        _qcut("udp"),
        _qcut("afxdp"), *(_calibration(profile) for profile in profiles),
        ("laws", f"{MAIN}: the laws with the model's facts, 90 MB", _LAW_METRICS, _laws),
        _changing("mcs", "the PHY rate changes every 0.5 s", 0.9),
        _changing(
            "contender",
            "two other stations always send; the law keeps to 0.8 of an even share of the air", 0.6)
    ]
