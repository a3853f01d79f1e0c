# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Cases about rate over time: the start, a link that changes, loss, a blackout. Rates are read from
b's counter, not from onehop."""

import bisect
from pathlib import Path
from typing import Any

import lab as labs
from cases_queue import LATENCY_METRICS, Pinger, growth_span, idle_median_ms, latency
from measure import MeasureError, Process, Sampler
from report import Metric
from transfer import refused_after, run_onehop

START_BYTES = 10_000_000
BLACKOUT_FLOOD_BYTES = 80_000_000  # 1.1 s: it ends before the lab's first blackout
FLOOD_SECONDS_MAX = 30
SAMPLE_SECONDS = 0.001


def bytes_at(rows, at) -> Any:
    """bytes_at interpolates the counter at a moment: samples are up to some ms apart when the
    machine is busy."""
    times = bytes_at_times(rows)
    i = bisect.bisect_right(times, at)
    if i == 0:
        return rows[0][1]
    if i == len(rows):
        return rows[-1][1]
    (t0, v0), (t1, v1) = rows[i - 1], rows[i]
    return v0 + (v1 - v0) * (at - t0) / (t1 - t0)


_times_of: tuple[Any, Any] = (None, None)


def bytes_at_times(rows) -> Any:
    global _times_of
    if _times_of[0] is not rows:
        _times_of = (rows, [at for at, _ in rows])
    return _times_of[1]


def windows(rows, begin, end, width, bps) -> Any:
    """windows returns, for windows of `width` that step by half a width within begin..end, wire
    bytes / what the link can carry."""
    out, at = [], begin
    while at + width <= end:
        out.append((bytes_at(rows, at + width) - bytes_at(rows, at)) * 8 / (bps * width))
        at += width / 2
    if not out:
        raise MeasureError(
            f"judge windows of {width} s: the data flowed for {end - begin:.3f} s only")
    return out


def sampling_gap_ms(rows, first, last) -> Any:
    """sampling_gap_ms is the longest time between two samples while data flowed: how blind the
    sampler was."""
    return max(
        (b[0] - a[0] for a, b in zip(rows[first:last], rows[first + 1:last + 1])), default=0) * 1000


def bare_lowest(context, profile, size, width, bps) -> Any:
    """bare_lowest is the lowest window of a flood that fills the queue whenever its socket may: a
    yardstick for what the lab's shaper, and the timers that it waits for, leave of the rate on this
    machine."""
    program = Path(__file__).with_name("flood.py")
    with context.lab(profile) as lab:
        flow = Sampler(lab, "b", "rx", "vb", SAMPLE_SECONDS, context.work)
        Process(lab.on("a", "python3", program, labs.ADDRESS_B, size), context.work,
                "flood").wait(FLOOD_SECONDS_MAX)
        rows = flow.rows()
    first, last = growth_span(rows)
    return min(windows(rows, rows[first][0] + 0.020, rows[last][0], width, bps))


BARE_METRIC = Metric("bare", "the same of a bare flood, a yardstick for shaper and machine")


def _start(io) -> tuple[str, str, list[Any], Any]:
    profile = "steady-600-burst16k"

    def run(context) -> dict[Any, Any]:
        file = context.file(START_BYTES)
        with context.lab(profile) as lab:
            flow = Sampler(lab, "b", "rx", "vb", SAMPLE_SECONDS, context.work)
            outcome = run_onehop(lab, file, context.folder, io, context.work)
            rows = flow.rows()
        bare = bare_lowest(context, profile, START_BYTES, 0.010, labs.link_bps(profile))
        first, last = growth_span(rows)
        ratios = windows(rows, rows[first][0] + 0.020, rows[last][0], 0.010, labs.link_bps(profile))
        ideal = START_BYTES * 8 / labs.ceiling_bps(profile)
        return {
            "worst": min(ratios), "bare": bare, "time": (outcome.seconds - 0.020) / ideal,
            "seconds": outcome.seconds, "ideal": ideal,
            "gap_ms": sampling_gap_ms(rows, first, last)
        }

    return f"start-{io}", (f"10 MB at 600 Mbit/s, 16 KB burst, --io {io}: is the link full from "
                           "the first 20 ms on"), [
        Metric("worst", "lowest 10 ms window / link rate", "", ">=", 0.95), BARE_METRIC,
        Metric("time", "(seconds - 20 ms) / ideal", "", "<=", 1.15),
        Metric("seconds", "seconds", "s"),
        Metric("ideal", "ideal (bytes / ceiling)", "s"),
        Metric("gap_ms", "longest gap between samples", "ms")
    ], run


def _trace(io) -> tuple[str, str, Any, Any]:
    profile = "trace-150-900"

    def run(context) -> Any:
        steps = labs.profile(profile)["trace"]
        cycle = (steps[1]["at"] - steps[0]["at"]) * len(steps)
        cycles = context.size(4, 2)
        # one second more than the cycles that are judged
        size = int(labs.ceiling_bps(profile) / 8 * (cycles * cycle + 1.0))
        file = context.file(size)
        with context.lab(profile) as lab:
            idle = idle_median_ms(context, lab)
            flow = Sampler(lab, "b", "rx", "vb", SAMPLE_SECONDS, context.work)
            pinger = Pinger(lab, context.work, context.ping_interval)
            outcome = run_onehop(lab, file, context.folder, io, context.work)
            echoes, rows = pinger.echoes(), flow.rows()
        first, last = growth_span(rows)
        begin, end = rows[first][0], rows[last][0]
        whole = int((end - begin) / cycle)
        if whole < 1:
            raise MeasureError(
                f"judge {profile}: the data flowed for {end - begin:.2f} s, less than one cycle")
        # Any span of whole cycles has the same integral of the rate, wherever in the cycle it
        # begins.
        wire = bytes_at(rows, begin + whole * cycle) - rows[first][1]
        useful = outcome.bytes_total / (rows[last][1] - rows[first][1])
        goodput = labs.of_ceiling(wire * useful * 8 / (whole * cycle), labs.ceiling_bps(profile))
        return {
            "goodput": goodput,
            "cycles": whole,
            "retransmitted": outcome.sender["retransmitted_bytes_total"] / size,
        } | latency(context, echoes, rows, idle)

    metrics = [Metric("goodput", "goodput / integral of the ceiling, whole cycles", "", ">=", 0.97),
               Metric("cycles", "cycles judged"), Metric("retransmitted", "retransmitted / bytes")]
    for metric in LATENCY_METRICS:
        metrics.append(
            Metric(metric.key, metric.label, metric.unit) if metric.key ==
            "rtt_median_ms" else metric)
    return f"trace-{io}", f"150/300/600/900 Mbit/s, 0.5 s each, looped, --io {io}", metrics, run


def _loss(percent, io) -> tuple[str, str, list[Any], Any]:
    profile = f"loss-{percent}"

    def run(context) -> dict[Any, Any]:
        file = context.file(context.size(500_000_000, 100_000_000))
        with context.lab(profile) as lab:
            outcome = run_onehop(lab, file, context.folder, io, context.work)
        if outcome.sender["retransmitted_bytes_total"] < outcome.bytes_total * percent / 100 / 2:
            raise MeasureError(
                f"judge {profile}: less than half of {percent} % was sent again; the lab did not "
                "lose what it should"
            )
        return {
            "goodput": labs.of_ceiling(outcome.goodput_bps, labs.ceiling_bps(profile)) /
            (1 - percent / 100), "loss": outcome.sender["loss_ratio"] * 100,
            "retransmitted": outcome.sender["retransmitted_bytes_total"] / outcome.bytes_total * 100
        }

    return f"loss-{percent}-{io}", (f"600 Mbit/s, {percent} % random loss behind the shaper, --io "
                                    f"{io}"), [
        Metric("goodput", "goodput / (ceiling x (1 - loss))", "", ">=", 0.97),
        Metric("loss", "loss seen", "%"),
        Metric("retransmitted", "retransmitted / bytes", "%")
    ], run


BLACKOUT_SECONDS = 0.200
RECOVERY_SECONDS = 0.050
FRAME_FEW_BYTES = 5 * labs.FRAME_BYTES  # what may pass as feedback or as an echo


def blackout_end(rows, first, last, bps) -> Any:
    """blackout_end is when the link came back: its start, seen as the first 100 ms with under 5 %
    of the rate, plus its length. Never the moment data came back, which is what is to be judged."""
    at = rows[first][0]
    while at + 0.1 < rows[last][0]:
        if bytes_at(rows, at + 0.1) - bytes_at(rows, at) < 0.05 * bps / 8 * 0.1:
            return at + BLACKOUT_SECONDS
        at += 0.001
    raise MeasureError("find the blackout: no 100 ms without data; the transfer did not span it")


def check_shaper_back(rows, queued, back_at) -> None:
    """check_shaper_back fails the round when the shaper itself overstays: it held bytes and let
    none out after its phase. HTB does that: a class that went far into debt at 8 kbit/s sleeps that
    debt off, up to 60 s, whatever its new rate."""
    begin, end = back_at + RECOVERY_SECONDS, back_at + 2 * RECOVERY_SECONDS
    held = [value for at, value in queued if begin <= at <= end]
    if held and min(held) > 0 and bytes_at(rows, end) - bytes_at(rows, begin) < FRAME_FEW_BYTES:
        raise MeasureError(
            f"the lab's shaper held {min(held)} bytes and let none out 50 to 100 ms after its "
            "blackout: "
            "nothing can be said of the sender")


def _blackout(io) -> tuple[str, str, list[Any], Any]:
    profile = "blackout"

    def run(context) -> dict[Any, Any]:
        bps = max(labs.rate_bps(step["rate"]) for step in labs.profile(profile)["trace"])
        file, trace = context.file(context.size(400_000_000,
                                                300_000_000)), context.work / "trace.csv"
        with context.lab(profile) as lab:
            flow = Sampler(lab, "b", "rx", "vb", SAMPLE_SECONDS, context.work)
            backlog = Sampler(lab, "a", "backlog", "va", 0.010, context.work)
            outcome = run_onehop(lab, file, context.folder, io, context.work, trace=trace)
            rows, queued = flow.rows(), backlog.rows()
        first, last = growth_span(rows)
        back_at = blackout_end(rows, first, last, bps)
        check_shaper_back(rows, queued, back_at)
        bare = bare_lowest(context, profile, BLACKOUT_FLOOD_BYTES, 0.020, bps)
        ratios = windows(rows, back_at + RECOVERY_SECONDS, rows[last][0], 0.020, bps)
        return {
            "refused": refused_after(trace, 0.1),
            "retransmitted": outcome.sender["retransmitted_bytes_total"], "worst": min(ratios),
            "bare": bare, "below": sum(ratio < 0.95 for ratio in ratios) / len(ratios),
            "gap_ms": sampling_gap_ms(rows, first, last)
        }

    return f"blackout-{io}", f"600 Mbit/s with 8 kbit/s for 200 ms, --io {io}", [
        Metric("refused", "refused after the first 100 ms", "", "==", 0),
        Metric("retransmitted", "retransmitted", "B", "==", 0),
        Metric("worst", "lowest 20 ms window after the blackout + 50 ms / link rate", "", ">=",
               0.95), BARE_METRIC,
        Metric("below", "share of such windows below 0.95"),
        Metric("gap_ms", "longest gap between samples", "ms")
    ], run


def cases() -> list[Any]:
    return [
        _start("udp"),
        _start("afxdp"),
        _trace("udp"),
        _trace("afxdp"),
        _loss(1, "udp"),
        _loss(1, "afxdp"),
        _loss(5, "udp"),
        _loss(5, "afxdp"),
        _blackout("udp"),
        _blackout("afxdp")
    ]
