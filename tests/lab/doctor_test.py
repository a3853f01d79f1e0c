#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""onehop doctor, and the link sources of onehop send, on real interfaces: doctor_test.py ONEHOP
[WORD].

Method: the program on the lab's veth and macvlan, on loopback, and as a user without any
        capability.
"""

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from typing import Any

from program import PATIENCE, World, check, main

SECTIONS = {
    "link": "state kind driver mtu addresses receive-queues speed qdisc", "io": "udp auto dpdk",
    "telemetry": "socket qdisc nl80211 wired softnet",
    "limits": "receive-buffer send-buffer capabilities locked-memory io_uring aead"
}


def run(command, **options) -> subprocess.CompletedProcess[Any]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE,
                          **options)


def doctor(command) -> Any:
    done = run(command)
    check(done.returncode == 0, f"doctor ends with 0, not {done.returncode}: {done.stderr}")
    report = json.loads(done.stdout)
    check(report["type"] == "doctor" and report["schema_version"] == 1, "it is a doctor event")
    for section, keys in SECTIONS.items():
        missing = [key for key in keys.split() if key not in report[section]]
        check(not missing, f"{section} lacks {missing}")
        for key, entry in report[section].items():
            check(
                set(entry) <= {"ok", "value", "text", "remedy"} and entry["text"],
                f"{section}.{key}: {entry}")
    return report


def test_doctor_of_the_labs_interfaces(onehop) -> None:
    with World(onehop) as world:
        report = doctor(world.on("a", onehop, "doctor", "--iface", "va", "--json"))
        check(report["is_usable"] is True and report["link"]["state"]["value"] == "running",
              "va can be used")
        check(
            report["link"]["kind"]["value"] == "veth"
            and report["link"]["driver"]["value"] == "veth", "va is a veth")
        check("ignored" in report["link"]["speed"]["text"], "a veth's speed is worth nothing")
        io = report["io"]
        check(
            io["afxdp-zero-copy"]["ok"] is False
            and "Operation not supported" in io["afxdp-zero-copy"]["text"], "no zero-copy on veth")
        check(io["afxdp-copy"]["ok"] is True and io["afxdp-skb"]["ok"] is True,
              f"copy and skb work: {io}")
        check(io["auto"]["value"] == {"send": "udp", "recv": "afxdp"},
              f"auto takes the cheapest pair: {io['auto']}")
        queue = report["telemetry"]["qdisc"]
        check(
            queue["ok"] is True and queue["value"]["capacity_bytes"] > 0
            and queue["value"]["cost_ns"] > 0, f"the shaper is read: {queue}")
        check(
            report["telemetry"]["wired"]["ok"] is False
            and "software" in report["telemetry"]["wired"]["text"], "no speed of a veth")
        left = world.run_on("a", "ip", "-j", "link", "show", "dev", "va")
        check("xdp" not in json.loads(left)[0] or not json.loads(left)[0]["xdp"].get("attached"),
              f"no program is left: {left}")
        names = [
            json.loads(line)["interface"]
            for line in world.run_on("a", onehop, "doctor", "--no-probe", "--json").splitlines()
        ]
        check("va" in names and "lo" not in names, f"without --iface all that are up: {names}")


def test_doctor_of_loopback_in_eighty_columns(onehop) -> None:
    report = doctor([onehop, "doctor", "--iface", "lo", "--json"])
    check(
        report["link"]["kind"]["value"] == "loopback"
        and "127.0.0.1" in report["link"]["addresses"]["value"], "it is lo")
    check(report["telemetry"]["softnet"]["value"]["softnet_dropped_total"] >= 0,
          "the host's counters are read")
    done = run([onehop, "doctor", "--iface", "lo"])
    check(done.returncode == 0 and done.stderr == "", f"text on standard output: {done.stderr}")
    wide = [line for line in done.stdout.splitlines() if len(line) > 80]
    check(not wide, f"80 columns: {wide}")
    for title in ("The interface", "How frames can leave", "What can be read while sending",
                  "Limits of this process"):
        check(title in done.stdout, title)


def test_doctor_without_privilege_names_what_is_missing(onehop) -> None:
    def drop() -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    # The build folder may be closed to others: the program comes by a descriptor.
    fd = os.open(onehop, os.O_RDONLY)
    done = run([f"/proc/self/fd/{fd}", "doctor", "--iface", "lo", "--json"], preexec_fn=drop,
               pass_fds=[fd])
    os.close(fd)
    check(done.returncode == 0, f"it works without privilege: {done.returncode} {done.stderr}")
    report = json.loads(done.stdout)
    missing = report["limits"]["capabilities"]
    check(
        missing["ok"] is False and "CAP_NET_RAW" in missing["value"]["missing"]
        and "setcap" in missing["remedy"], f"{missing}")
    check(report["io"]["udp"]["ok"] is True, "UDP works")
    refused = [entry for key, entry in report["io"].items() if key.startswith("afxdp-")]
    check(
        all(entry["ok"] is False for entry in refused) and "CAP_" in refused[0]["remedy"],
        f"AF_XDP says why not: {refused}")


def test_doctor_of_an_interface_that_is_down_or_missing(onehop) -> None:
    with World(onehop) as world:
        world.run_on("a", "ip", "link", "add", "dead0", "type", "veth", "peer", "name", "dead1")
        done = run(world.on("a", onehop, "doctor", "--iface", "dead0", "--json"))
        report = json.loads(done.stdout)
        check(done.returncode == 9 and report["is_usable"] is False,
              f"down is 9, not {done.returncode}")
        check(
            report["link"]["state"]["value"] == "down"
            and "ip link set dead0 up" in report["link"]["state"]["remedy"], "and says what helps")
        check(report["io"]["afxdp"]["value"] is None and "carrier" in report["io"]["afxdp"]["text"],
              "AF_XDP was not tried")
    done = run([onehop, "doctor", "--iface", "no-such-if"])
    check(done.returncode == 9 and "none of this name" in done.stderr and "ip link" in done.stderr,
          done.stderr)
    for wrong in (["--iface"], ["--nonsense"], ["extra"]):
        done = run([onehop, "doctor", *wrong])
        check(done.returncode == 2 and done.stderr,
              f"{wrong} is a usage error, not {done.returncode}")


def test_doctor_probe_tries_the_last_queue_with_a_frame(onehop) -> None:
    with World(onehop) as world:
        add = ("ip link add wide0 numrxqueues 4 numtxqueues 4 type veth "
               "peer name wide1 numrxqueues 2 numtxqueues 2")
        for words in (add, "ip link set wide0 up", "ip link set wide1 up"):
            world.run_on("a", *words.split())
        io = doctor(world.on("a", onehop, "doctor", "--iface", "wide0", "--probe", "--json"))["io"]
        for mode in ("copy", "skb"):
            found = io[f"afxdp-{mode}"]
            check(
                found["ok"] is True and "on queue 3, the last of 4; a frame left" in found["text"],
                f"{mode}: {found}")
        check(io["udp"]["ok"] is True, f"{io['udp']}")
        narrow = doctor(world.on("a", onehop, "doctor", "--iface", "wide1", "--json"))
        copy = narrow["io"]["afxdp-copy"]
        check(copy["ok"] is False and "ethtool -L" in copy["remedy"],
              f"what this driver is known for is the remedy: {copy}")
        check("peer-queues" in narrow["quirks"] and narrow["quirks"]["peer-queues"]["value"],
              f"and is listed: {narrow['quirks']}")
        left = world.run_on("a", "ip", "-j", "link", "show", "dev", "wide0")
        check("xdp" not in json.loads(left)[0], f"no program is left: {left}")
    done = run([onehop, "doctor", "--probe", "--no-probe"])
    check(done.returncode == 2 and "--no-probe" in done.stderr, f"one of the two: {done.stderr}")


# Goal:   nothing in a report tells whose machine it is of.
# Method: an interface, its alias and addresses, a host and a user get names that occur nowhere
#         else, and are looked for in the file, in each writing. SSIDs: tests/vm/live.
def test_a_report_names_nobody(onehop) -> None:
    planted = ["plantedif0", "planted-alias", "planted-host", "planted-user", "10.253.251.249",
               "fd5a:5a5a::beef", "5a:5a:5a:5a:5a:5a", "5a5a5a5a5a5a"]
    with World(onehop) as world:
        file = world.work / "planted-folder" / "report.json"
        file.parent.mkdir()
        world.run_on("a", "ip", "link", "add", "plantedif0", "address", "5a:5a:5a:5a:5a:5a", "type",
                     "veth", "peer", "name", "plantedif1")
        for words in (["link", "set", "plantedif0", "alias", "planted-alias", "up"],
                      ["link", "set", "plantedif1", "up"],
                      ["addr", "add", "10.253.251.249/24", "dev", "plantedif0"],
                      ["addr", "add", "fd5a:5a5a::beef/64", "dev", "plantedif0", "nodad"]):
            world.run_on("a", "ip", *words)
        command = (f"hostname planted-host && USER=planted-user LOGNAME=planted-user "
                   f"HOME=/home/planted-user exec {onehop} doctor --probe --report {file}")
        said = run(world.on("a", "unshare", "--uts", "sh", "-c", command))
        check(said.returncode == 0 and "Read it before" in said.stderr, said.stderr)
        check("10.253.251.249" in said.stdout, "the text for this user has them")
        text = file.read_text()
        found = [word for word in planted + ["planted"] if word.lower() in text.lower()]
        check(not found, f"the report has {found}: {text}")
        report = json.loads(text)
        check(report["type"] == "doctor_report" and report["kernel"][0].isdigit(), text)
        modes = [entry["io"] for entry in report["interfaces"]]
        check(
            any("Operation not supported" in io["afxdp-zero-copy"]["cause"] for io in modes),
            f"why a mode does not work is there: {modes}")
        check(all("driver" in entry["interface"] for entry in report["interfaces"]), text)
        again = run(world.on("a", onehop, "doctor", "--no-probe", "--report", file))
        check(
            again.returncode == 8 and "it is there already" in again.stderr
            and "Name another file" in again.stderr, f"no file is written over: {again.stderr}")
        check(file.read_text() == text, "it is as it was")
        lost = run(world.on("a", onehop, "doctor", "--no-probe", "--report", "/nonexistent/file"))
        check(lost.returncode == 8 and "write the report '/nonexistent/file'" in lost.stderr,
              lost.stderr)


def test_send_names_its_link_sources(onehop) -> None:
    with World(onehop) as world:
        trace = world.work / "trace.csv"
        receiver = world.receive()
        sender = world.send(world.file(4_000_000), "udp", "--trace", trace)
        check(sender.code() == 0 and receiver.code() == 0, sender.text())
        check(sender.end()["link_source"] == "softnet",
              f"a veth has the host's counters alone: {sender.end()['link_source']}")
        check(sender.end()["link_acked_total"] == 0, "no driver of a veth acknowledges")
        rows = [line for line in trace.read_text().splitlines() if not line.startswith("#")]
        names = rows[0].split(",")
        last = dict(zip(names, rows[-1].split(",")))
        check(
            last["link_source"] == "softnet" and last["exact_queue_bytes"] == ""
            and last["link_rate_bytes_per_s"] == "", f"absent is empty: {last}")
        check(int(last["host_dropped_total"]) >= 0, "softnet's counter is there")


class Model(threading.Thread):
    """A model of a link in twelve lines: publishes a rate and a queue each millisecond
    (control/link/facts_datagram.hpp)."""

    def __init__(self, path) -> None:
        super().__init__(daemon=True)
        self.path, self.is_stopped, self.sent = str(path), threading.Event(), 0

    def run(self) -> None:
        sequence = 0
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            while not self.is_stopped.wait(0.001):
                now = time.monotonic_ns()
                head = struct.pack(">4sBBH", b"OHLF", 2, 2, 0b11)
                queue = struct.pack(">QIQQQQQ", now, 2000, 12345, 999_000_000 + sequence, 1 << 20,
                                    0, 0)
                rate = struct.pack(">QIQ", now, 2000, 150_000_000)
                try:
                    s.sendto(head + queue + rate, self.path)
                    self.sent += 1
                except (FileNotFoundError, ConnectionRefusedError, BlockingIOError):
                    pass
                sequence += 1


def test_send_takes_the_facts_of_a_model(onehop) -> None:
    with World(onehop) as world:
        trace, path = world.work / "trace.csv", world.work / "model"
        model = Model(path)
        model.start()
        receiver = world.receive()
        sender = world.send(world.file(20_000_000), "udp", "--trace", trace, "--link-model", path)
        check(sender.code() == 0 and receiver.code() == 0, sender.text())
        model.is_stopped.set()
        check(sender.end()["link_source"] == "emulated+softnet", sender.end()["link_source"])
        check(model.sent > 0, "the model was listened to")
        lines = [line for line in trace.read_text().splitlines() if not line.startswith("#")]
        rows = [dict(zip(lines[0].split(","), line.split(","))) for line in lines[1:]]
        told = [row for row in rows if row["exact_queue_bytes"]]
        check(told and all(row["exact_queue_bytes"] == "12345" for row in told),
              "the model's queue is in the trace")
        check(all(row["link_rate_bytes_per_s"] == "150000000" for row in told), "and its rate")
        check(all(int(row["exact_queue_age_ns"]) >= 0 for row in told),
              "no reading is of the future")
        check(not path.exists(), "the socket file is gone")


def test_send_with_a_model_that_cannot_be_listened_to(onehop) -> None:
    with World(onehop) as world:
        sender = world.send(world.file(1000), "udp", "--link-model", "/nonexistent/folder/model")
        check(sender.code() == 8, f"a local file error, not {sender.process.returncode}")
        check(
            "listen for a model of the link on /nonexistent/folder/model" in sender.text()
            and "folder exist" in sender.text(), sender.text())
        check(
            world.send(world.file(1000), "udp", "--link-model", "x" * 300).code() == 2,
            "a path too long is usage")


if __name__ == "__main__":
    sys.exit(main(globals()))
