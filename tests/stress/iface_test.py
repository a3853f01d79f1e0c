#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""`onehop stress rings --iface`: iface_test.py ONEHOP. Root.

Goal:   over a link that is not the command's own, to a peer that is not its child, each schedule is
        a transfer with faults that ends in order and leaves the peer ready for the next. What is
        missing is said before anything is sent.
Method: two network namespaces made here, a veth pair with a shaper below a macvlan, so that AF_XDP
        has a lower queue as well; `onehop recv` in one, the command in the other, over both ports.
Bounds: each schedule is full again in time (the command's own verdict) at least once in four runs,
        for a busy machine can spoil one of them (verdict.py).
"""

from collections.abc import Iterator
from typing import Any
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))
from program import PATIENCE, check, main  # noqa: E402  (found beside the lab's tests)
from verdict import check_in_time, read  # noqa: E402

USAGE, NO_IO = 2, 9
HERE, THERE = f"oh-rings-a{os.getpid()}", f"oh-rings-b{os.getpid()}"
ADDRESS_HERE, ADDRESS_THERE = "10.112.0.1", "10.112.0.2"
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("SUDO_")} | {
    "ONEHOP_CODE": "a-code-for-the-interface-test-0123"
}


def must(*words) -> None:
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False
    )
    check(done.returncode == 0, f"{' '.join(map(str, words))}: {done.stderr}")


@contextlib.contextmanager
def link() -> Iterator[Any]:
    """A shaped link between the two namespaces, which go with it."""
    try:
        for host in (HERE, THERE):
            must("ip", "netns", "add", host)
            must("ip", "-n", host, "link", "set", "dev", "lo", "up")
        must(
            "ip",
            "link",
            "add",
            "ra",
            "netns",
            HERE,
            "type",
            "veth",
            "peer",
            "name",
            "rb",
            "netns",
            THERE,
        )
        must(
            "ip",
            "-n",
            HERE,
            "link",
            "add",
            "link",
            "ra",
            "name",
            "rm",
            "type",
            "macvlan",
            "mode",
            "bridge",
        )
        for host, device in ((HERE, "ra"), (HERE, "rm"), (THERE, "rb")):
            must(
                "ip",
                "netns",
                "exec",
                host,
                "ethtool",
                "-K",
                device,
                "tso",
                "off",
                "gso",
                "off",
                "gro",
                "off",
            )
            must("ip", "-n", host, "link", "set", "dev", device, "up")
        must("ip", "-n", HERE, "addr", "add", f"{ADDRESS_HERE}/24", "dev", "rm")
        must("ip", "-n", THERE, "addr", "add", f"{ADDRESS_THERE}/24", "dev", "rb")
        must(
            "tc",
            "-n",
            HERE,
            "qdisc",
            "add",
            "dev",
            "ra",
            "root",
            "tbf",
            "rate",
            "50mbit",
            "burst",
            "8kb",
            "limit",
            "200kb",
        )
        yield
    finally:
        for host in (HERE, THERE):
            subprocess.run(["ip", "netns", "del", host], capture_output=True, check=False)


@contextlib.contextmanager
def receiver(onehop) -> Iterator[Any]:
    with tempfile.TemporaryDirectory(prefix="onehop-rings-") as folder:
        said = os.path.join(folder, "said.txt")
        with open(said, "wb") as out:
            process = subprocess.Popen(
                ["ip", "netns", "exec", THERE, onehop, "recv", "--dir", folder, "--json"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.DEVNULL,
                env=ENVIRONMENT,
            )
        try:
            give_up_at = time.monotonic() + PATIENCE
            while '"start"' not in open(said, encoding="utf-8").read():
                check(process.poll() is None and time.monotonic() < give_up_at, "recv is ready")
                time.sleep(0.01)
            yield lambda: [
                json.loads(line)
                for line in open(said, encoding="utf-8")
                if line.startswith("{") and line.endswith("}\n")
            ]
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def rings(onehop, *words, environment=None) -> subprocess.CompletedProcess[Any]:
    return subprocess.run(
        ["ip", "netns", "exec", HERE, onehop, "stress", "rings", *words],
        capture_output=True,
        text=True,
        env=environment or ENVIRONMENT,
        check=False,
    )


def test_transfers_over_the_interface(onehop) -> None:
    for io in ("udp", "afxdp"):
        with link(), receiver(onehop) as events:
            played = []

            def play(*words) -> Any:
                played.append(
                    rings(
                        onehop, "--iface", "rm", "--to", ADDRESS_THERE, "--io", io, "--json", *words
                    )
                )
                return played[-1]

            faults, summary = check_in_time(play, 2)
            check(
                faults
                and all(fault["io"] == io and fault["fault"] == "sender-stall" for fault in faults),
                f"{io}: {faults}",
            )
            runs = [read(done)[1] for done in played]
            transfers = sum(run["schedules_total"] + run["played_again_total"] for run in runs)
            give_up_at = time.monotonic() + PATIENCE
            while len(ends := [event for event in events() if event["type"] == "end"]) < transfers:
                check(
                    time.monotonic() < give_up_at,
                    f"{io}: the peer saw each of {transfers} transfers end: {ends}",
                )
                time.sleep(0.05)
            check(
                all(end["exit_code"] == 7 and end["bytes_total"] == 0 for end in ends),
                f"{io}: interrupted in order: {ends}",
            )
            print(f"      {io}: {summary}")


def test_what_is_missing_is_said_first(onehop) -> None:
    with link():
        done = rings(onehop, "--iface", "none0", "--to", ADDRESS_THERE)
        check(
            done.returncode == NO_IO and "none0" in done.stderr,
            f"no such interface: {done.returncode} {done.stderr}",
        )
        done = rings(
            onehop,
            "--iface",
            "rm",
            "--to",
            ADDRESS_THERE,
            environment={key: value for key, value in ENVIRONMENT.items() if key != "ONEHOP_CODE"},
        )
        check(
            done.returncode == USAGE and "ONEHOP_CODE" in done.stderr,
            f"no code: {done.returncode} {done.stderr}",
        )
        done = rings(onehop, "--iface", "rm", "--to", ADDRESS_THERE, "--schedules", "1")
        check(
            done.returncode == 3 and ADDRESS_THERE in done.stderr,
            f"nobody receives: {done.returncode} {done.stderr}",
        )


if __name__ == "__main__":
    sys.exit(main(globals()))
