# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The lab's Wi-Fi links: what saturating UDP and TCP carry over them, what ns-3 gave for the same
channel, and whether to trust a run.

Owns the processes of one measurement. Used by the cases of `compare --wifi` and by
tools/labs/lab/air/calibrate.
"""

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lab as labs
from measure import MeasureError, Process

# Mbit/s of goodput in ns-3 3.37, mean of 5 seeds, +-1 %: onehop-ns3 --scenario
# tools/labs/lab/air/ns3.toml.
NS3 = {("udp", "ac80"): 620.2, ("cubic", "ac80"): 502.4,
       ("udp", "ac80-loss-1"): 607.0, ("cubic", "ac80-loss-1"): 491.3,
       ("udp", "ac160"): 994.7, ("cubic", "ac160"): 754.7,
       ("udp", "ac160-loss-1"): 966.1, ("cubic", "ac160-loss-1"): 730.0,
       ("udp", "ax80"): 756.0, ("cubic", "ax80"): 599.2,
       ("udp", "ax80-loss-1"): 737.8, ("cubic", "ax80-loss-1"): 578.1,
       ("udp", "ax160"): 1128.2, ("cubic", "ax160"): 844.5,
       ("udp", "ax160-loss-1"): 1093.4, ("cubic", "ax160-loss-1"): 816.9}
WIDEST_PERCENT = 7  # what the lab may differ from ns-3
PAYLOAD_BYTES = 1448  # of a full TCP segment with timestamps, and of our datagrams
PORT, TCP_PORT = 5201, 7001
TCP_BUFFER_BYTES = 20 * 1024 * 1024
SETTLE_SECONDS = 1.2
ATTEMPTS = 3  # a busy machine: again


class Untrusted(MeasureError):
    """The lab refuses to vouch for the run: its control process came too late."""


@dataclass
class AirReport:
    """What the lab's control process said at the end."""

    text: str
    model_bps: float   # UDP in frames of MTU size, by the model alone
    is_trusted: bool
    frames_a: int
    exchanges_a: int
    exchanges_b: int
    air_a_seconds: float
    air_b_seconds: float


def read_report(text) -> Any:
    model = re.search(r"the model carries ([\d.]+) Mbit/s", text)
    ends = re.findall(r"[ab]: (\d+) frames in (\d+) exchanges.*air ([\d.]+) s", text)
    if model is None or len(ends) != 2:
        raise MeasureError(f"read the lab's report: {text.strip()[-300:]}")
    (frames, exchanges, air), (_, exchanges_b, air_b) = ends
    return AirReport(text,
                     float(model[1]) * 1e6, "trusted: yes" in text, int(frames), int(exchanges),
                     int(exchanges_b), float(air), float(air_b))


def trusted(context, profile, run, is_sound=lambda value, report: True) -> tuple[Any, Any]:
    """trusted calls run(lab) in a lab of its own and returns (its value, AirReport); a run that is
    not to be trusted, by the lab or by is_sound(value, report), is made again."""
    for _ in range(ATTEMPTS):
        lab = context.lab(profile)
        with lab:
            value = run(lab)
        report = read_report((context.work / "lab.log").read_text())
        if report.is_trusted and is_sound(value, report):
            return value, report
    reason = ("the machine held the senders back" if report.is_trusted else
              report.text.strip().splitlines()[-1].strip())
    raise Untrusted(f"{profile}: {reason}")


def is_saturated(bps, report) -> bool:
    """is_saturated: UDP's sender filled the air. Below nine tenths of the model it was kept from
    its core."""
    return bps >= 0.9 * report.model_bps


def give_tcp_its_buffers(lab) -> None:
    """give_tcp_its_buffers: sockets made from now on have 20 MB from the start; nothing learnt from
    an earlier connection."""
    for host in "ab":
        for key in ("tcp_rmem", "tcp_wmem"):
            lab.read(host, "sysctl", "-qw",
                     f"net.ipv4.{key}=4096 {TCP_BUFFER_BYTES} {TCP_BUFFER_BYTES}")
        lab.read(host, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")


def tcp_file(lab, file, folder, work, law) -> float:
    """tcp_file moves a file over one connection and returns the seconds from connect to `it is on
    disk`."""
    program, target = Path(__file__).with_name("tcp_file.py"), Path(folder) / "tcp-file"
    receive = Process(lab.on("b", "python3", program, "recv", labs.ADDRESS_B, TCP_PORT, target),
                      work, f"{law}-recv")
    try:
        receive.wait_line("ready", 10)
        send = Process(lab.on("a", "python3", program, "send", labs.ADDRESS_B, TCP_PORT, file, law),
                       work, f"{law}-send")
        try:
            send.wait(60)
            receive.wait(10)
        finally:
            send.end()
    finally:
        receive.end()
    size, got = Path(file).stat().st_size, target.stat().st_size
    target.unlink()
    if got != size:
        raise MeasureError(f"{law}: {got} of {size} bytes arrived")
    return float(send.output.read_text())


def _received(lab) -> int:
    return int(lab.read("b", "cat", "/sys/class/net/vb/statistics/rx_packets"))


def saturated_bps(lab, traffic, seconds, work) -> Any:
    """saturated_bps is the goodput of `traffic`, "udp" or the name of a TCP law, after it has
    settled.

    Frames are counted at the receiver's device: iperf3's own figures of UDP do not add up when its
    sender is refused a send.
    """
    cores = sorted(os.sched_getaffinity(0))
    server = Process(
        lab.on("b", "taskset", "-c", cores[-1], "iperf3", "-s", "-1", "-B", labs.ADDRESS_B, "-p",
               PORT, "--forceflush"), work, "air-server")
    client = None
    try:
        server.wait_line("listening", 10)
        kind = ("-u", "-b", "1300M", "-l", PAYLOAD_BYTES, "-w",
                "4M") if traffic == "udp" else ("-C", traffic)
        client = Process(
            lab.on("a", "taskset", "-c", cores[0], "iperf3", "-c", labs.ADDRESS_B, "-p", PORT, "-t",
                   int(seconds + 3), *kind), work, "air-client")
        time.sleep(SETTLE_SECONDS)
        begin_at, begin = time.monotonic(), _received(lab)
        time.sleep(seconds)
        end_at, end = time.monotonic(), _received(lab)
        if not client.is_alive:
            raise MeasureError(f"iperf3, {traffic}: it ended early: {client.tail()}")
    finally:
        for process in (client, server):
            if process is not None:
                process.end()
    return (end - begin) * PAYLOAD_BYTES * 8 / (end_at - begin_at)
