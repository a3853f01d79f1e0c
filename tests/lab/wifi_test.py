#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The lab's Wi-Fi links: wifi_test.py LAB_PROGRAM [WORD]. Needs root; exits 77 with the reason
otherwise.

Goal:   a Wi-Fi link carries what its model says, both directions pay for the same air, and without
        its control process
        nothing passes.
Method: flood UDP through the link and count at the receiver's device; the report of `lab run` says
        what the model makes of a
        saturated sender. The model's time is virtual, so a busy machine lowers the goodput only
        where it holds the sender back; the report then refuses trust.
Bounds: goodput within 7 % of the model's own where the run is trusted; else no more than that above
        it.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lab_world import NAME, PROGRAM, check, lab, profile_file, run
from program import main

SECONDS = 1.5
# Programs on the first core, the control process is on the last.
FLOOD = r"""
import os, socket, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
def counter(host):
    import subprocess
    interface = {"a": "va", "b": "vb"}[host]
    return int(subprocess.run(["ip", "netns", "exec", sys.argv[1] + "-" + host, "cat",
                               "/sys/class/net/" + interface + "/statistics/rx_packets"],
                              capture_output=True, check=True).stdout)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, 32, 4 << 20)
sender.setsockopt(socket.SOL_IP, 11, 1)  # a full queue is an error of the call
if len(sys.argv) > 3: sender.setsockopt(socket.IPPROTO_UDP, 103, 1472)
sender.connect((os.environ["ONEHOP_LAB_B4"], 7000))
def flood(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            sender.send(bytes(1472 * (20 if len(sys.argv) > 3 else 1)))
        except OSError:
            time.sleep(0.0005)
flood(0.3)
begin_at, begin = time.monotonic(), counter("b")
flood(float(sys.argv[2]))
end_at, end = time.monotonic(), counter("b")
print((end - begin) * 1472 * 8 / (end_at - begin_at) / 1e6)
"""


def report_of(done) -> tuple[float, bool]:
    """report_of reads what the control process says at the end: the model's own goodput, and
    whether it trusts the run."""
    model = re.search(r"the model carries ([\d.]+) Mbit/s", done.stderr)
    check(model and "trusted: " in done.stderr, f"the lab reports: {done.returncode} {done.stderr}")
    for line in done.stderr.splitlines():
        check(len(line) <= 80 or "trusted: NO" in line, f"the report fits a terminal: {line}")
    return float(model[1]), "trusted: yes" in done.stderr


def check_goodput(profile, *gso) -> Any:
    done = run(profile, sys.executable, "-c", FLOOD, NAME, str(SECONDS), *gso, on="a")
    check(done.returncode == 0, done.stderr)
    goodput, (model, is_trusted) = float(done.stdout), report_of(done)
    print(
        f"      {profile}: {goodput:.0f} of {model:.0f} "
        f"Mbit/s{'' if is_trusted else ', not trusted'}",
        flush=True)
    check(goodput <= 1.07 * model,
          f"{profile}: {goodput:.1f} Mbit/s, and the model carries {model:.1f}: {done.stderr}")
    check(not is_trusted or goodput >= 0.93 * model,
          f"{profile}: {goodput:.1f} of {model:.1f} Mbit/s: {done.stderr}")
    return done.stderr


def test_each_profile_carries_what_its_model_says(_) -> None:
    for name in ("wifi-ac80", "wifi-ac160", "wifi-ax80", "wifi-ax160"):
        check_goodput(name, "gso")
    lossy = check_goodput("wifi-ax80-loss-1", "gso")
    retries = int(re.search(r"a: .*?(\d+) retries", lossy, re.DOTALL)[1])
    frames = int(re.search(r"a: (\d+) frames", lossy)[1])
    check(0.005 * frames <= retries <= 0.02 * frames,
          f"{retries} retries of {frames} frames at 1 % loss")


def test_aggregates_of_256_frames_carry_more_and_what_the_model_says(_) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = (
            "[wifi]\nstandard = 'ax'\nwidth_mhz = 80\nblock_ack = 256\naggregate_bytes = "
            "4194304\nqueue_frames = 2000\n"
        )
        report = check_goodput(profile_file(folder, text), "gso")
    frames, exchanges = (
        int(value) for value in re.search(r"a: (\d+) frames in (\d+) exchanges", report).groups())
    check(frames / exchanges > 100,
          f"{frames} frames in {exchanges} exchanges: they are of more than 64")


def test_a_sender_without_segmentation_is_charged_the_same(_) -> None:
    check_goodput("wifi-ac80")


ANSWER = r"""
import os, socket, sys, threading, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
out = socket.create_connection((os.environ["ONEHOP_LAB_B4"], 7001))
end = time.monotonic() + 1.5
while time.monotonic() < end:
    out.send(bytes(1 << 16))
"""


def test_tcp_acknowledgements_cost_airtime(_) -> None:
    with tempfile.TemporaryDirectory() as folder:
        started = lab("up", "--name", NAME, "--profile", "wifi-ax80")
        check(started.returncode == 0, started.stderr)
        try:
            sink = subprocess.Popen([
                PROGRAM, "lab", "exec", "--name", NAME, "b", "--", sys.executable, "-c",
                "import socket\ns=socket.create_server(('10.111.0.2',7001))\nprint('ready',"
                "flush=True)\nc,_=s.accept()\nwhile c.recv(1<<20): pass"
            ], stdout=subprocess.PIPE, text=True)
            check(sink.stdout.readline() == "ready\n", "the sink listens")
            done = lab("exec", "--name", NAME, "a", "--", sys.executable, "-c", ANSWER)
            check(done.returncode == 0, done.stderr)
            sink.wait(10)
            sink.stdout.close()
        finally:
            done = lab("down", "--name", NAME)
        report_of(done)
        air = [float(value) for value in re.findall(r"air ([\d.]+) s", done.stderr)]
        exchanges = [int(value) for value in re.findall(r"in (\d+) exchanges", done.stderr)]
        check(air[0] > 0.3 and air[1] > 0.02, f"both directions use air: {done.stderr}")
        check(exchanges[1] > 0.2 * exchanges[0],
              f"acknowledgements go in exchanges of their own: {done.stderr}")
        collisions = [int(value) for value in re.findall(r"(\d+) collisions", done.stderr)]
        check(collisions[0] == collisions[1] > 0, f"who shares a channel collides: {done.stderr}")


def rx_packets() -> int:
    path = f"/sys/class/net/vb/statistics/rx_packets"
    return int(
        subprocess.run(["ip", "netns", "exec", f"{NAME}-b", "cat", path], capture_output=True,
                       text=True, check=True).stdout)


def test_without_its_control_process_nothing_passes(_) -> None:
    for number in (signal.SIGSTOP, signal.SIGKILL):
        started = lab("up", "--name", NAME, "--profile", "wifi-ax160")
        check(started.returncode == 0, started.stderr)
        try:
            flood = subprocess.Popen([
                PROGRAM, "lab", "exec", "--name", NAME, "a", "--", sys.executable, "-c", FLOOD,
                NAME, "1.2", "gso"
            ], stdout=subprocess.PIPE, text=True)
            time.sleep(0.6)
            before = rx_packets()
            check(before > 1000, f"{before} frames passed at first")
            pid = int(Path(f"/run/onehop-lab/{NAME}.air").read_text().split()[0])
            os.kill(pid, number)
            time.sleep(0.05)
            stopped = rx_packets()
            time.sleep(0.6)
            passed = rx_packets() - stopped
            check(passed <= 2, f"{passed} frames passed after {number.name}")
            if number == signal.SIGSTOP:
                os.kill(pid, signal.SIGCONT)
                time.sleep(0.4)
                check(rx_packets() > stopped + 1000, "it goes on when it is let")
            flood.communicate(timeout=30)
        finally:
            done = lab("down", "--name", NAME)
        check(done.returncode == 0, done.stderr)
        wanted = "control process had died" if number == signal.SIGKILL else "trusted: "
        check(wanted in done.stderr, f"the lab says so: {done.stderr}")


def test_a_run_whose_control_process_died_fails(_) -> None:
    killer = f"kill -9 $(head -1 /run/onehop-lab/{NAME}.air); sleep 0.2"
    done = run("wifi-ax160", "sh", "-c", killer, on="a")
    check(done.returncode == 1 and "control process died" in done.stderr,
          f"{done.returncode} {done.stderr}")


def test_the_model_tells_its_facts_over_its_socket(_) -> None:
    started = lab("up", "--name", NAME, "--profile", "wifi-ax160")
    check(started.returncode == 0, started.stderr)
    path = f"/run/onehop-lab/{NAME}.a.facts"
    try:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listener.bind(path)
        listener.settimeout(5)
        datagrams = [listener.recv(400) for _ in range(5)]
        listener.close()
        os.unlink(path)
    finally:
        check(lab("down", "--name", NAME).returncode == 0, "lab down")
    for datagram in datagrams:
        check(datagram[:4] == b"OHLF", "a datagram of facts")
    rate = 2401.9e6 / 8
    rates = [
        int.from_bytes(datagram[i:i + 8], "big") for datagram in datagrams
        for i in range(8,
                       len(datagram) - 8)
    ]
    check(any(abs(value - rate) < 1e-3 * rate for value in rates), "the PHY rate is told")


def test_wrong_wifi_tables_are_refused_with_the_key(_) -> None:
    for text, word in (('rate = "1Mbit"\n[wifi]', "rate"), ("[wifi]\nstandard = 'n'", "standard"),
                       ("[wifi]\nspeed = 1", "speed"), ("mtu = 4000\n[wifi]", "mtu")):
        with tempfile.TemporaryDirectory() as folder:
            done = run(profile_file(folder, text), "true", on="a")
            check(done.returncode == 2 and word in done.stderr,
                  f"{text!r}: {done.returncode} {done.stderr}")


if __name__ == "__main__":
    code = main(globals())
    lab("down", "--name", NAME)
    sys.exit(code)
