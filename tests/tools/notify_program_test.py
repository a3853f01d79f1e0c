#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Notifications of a receiver that is always there: notify_program_test.py ONEHOP [WORD].

Goal:   `recv --service` asks the person at the desktop about a device whose rule is `ask`, shows
        what it asks about as it is, and takes nothing without a yes. It tells what came. Without a
        desktop the rule decides.
Method: the real program at both ends and a real dbus-daemon of the test's own; a notification
        daemon and a file manager on it that do as the test says (desktop_daemon).
Bounds: 2 wake-ups a second at rest, and 20 MiB for both processes of the service. Else exact.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from loopback import check
from pair_program_test import DONE, REFUSED
from program import LOOK_S, PATIENCE, is_sanitized, main
from service_program_test import (RSS_KIB_MAX, WAKEUPS_PER_S_MAX, Served, switches)

CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/>
<allow send_type="signal"/><allow receive_sender="*"/></policy></busconfig>
"""
BUTTONS = ("actions", "body", "body-markup")


class Daemon:
    """What owns the names of a notification daemon and of a file manager."""

    def __init__(self, folder, *capabilities) -> None:
        self._said = folder / "daemon.out"
        with open(self._said, "wb") as out:
            self.process = subprocess.Popen([os.environ["ONEHOP_DESKTOP_DAEMON"], *capabilities],
                                            stdin=subprocess.PIPE, stdout=out)
        self.wait_for(lambda: "ready" in self._said.read_text(), "it has its names")

    def calls(self, member) -> list[Any]:
        lines = [json.loads(line) for line in self._said.read_text().splitlines()
                 if line.startswith("[") and line.endswith("]")]
        return [line[1:] for line in lines if line[0] == member]

    def wait_for(self, condition, claim) -> None:
        give_up_at = time.monotonic() + PATIENCE
        while not condition():
            check(time.monotonic() < give_up_at, f"{claim}: {self._said.read_text()[-800:]}")
            time.sleep(LOOK_S)

    def shown(self, count=1) -> Any:
        """The newest notification, once there are as many."""
        self.wait_for(lambda: len(self.calls("Notify")) >= count, f"{count} are shown")
        return self.calls("Notify")[count - 1]

    def tell(self, line) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


class Desk(Served):
    """bob is asked about ann at his desktop; he takes all of eve."""

    def __enter__(self) -> Any:
        super().__enter__()
        socket = self.work / "bus"
        config = self.text("bus.conf", CONFIG.format(socket))
        self._bus = subprocess.Popen(["dbus-daemon", f"--config-file={config}", "--nofork"],
                                     stderr=subprocess.DEVNULL)
        os.environ["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={socket}"
        give_up_at = time.monotonic() + PATIENCE
        while not socket.exists() and time.monotonic() < give_up_at:
            time.sleep(LOOK_S)
        self.daemons: list[Daemon] = []
        self.done("bob", "peers", "set", "ann", "--rule", "ask")
        return self

    def __exit__(self, *what) -> None:
        os.environ["DBUS_SESSION_BUS_ADDRESS"] = ""
        for daemon in self.daemons:
            daemon.end()
        self.end_bus()
        super().__exit__(*what)

    @property
    def bus_pid(self) -> int:
        return self._bus.pid

    def end_bus(self) -> None:
        self._bus.kill()
        self._bus.wait()

    def daemon(self, *capabilities) -> Daemon:
        self.daemons.append(Daemon(self.work, *capabilities))
        return self.daemons[-1]


def helper_of(pid) -> int:
    """The process that is on the bus."""
    for task in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if Path(f"/proc/{task}/comm").read_text().strip() == "onehop-desktop":
            return int(task)
    raise AssertionError(f"{pid} has no onehop-desktop")


def kind_of(descriptor, bus_pid) -> str:
    """What a descriptor in /proc/PID/fd is. sd-bus keeps one of the bus's process (systemd 257)."""
    name = os.readlink(descriptor)
    if name != "anon_inode:[pidfd]":
        return name.partition(":")[0]
    told = (descriptor.parents[1] / "fdinfo" / descriptor.name).read_text()
    return "the bus's process" if f"\nPid:\t{bus_pid}\n" in told else told


def pss_kib(pid) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def test_K11_a_person_is_asked_and_told(onehop) -> None:
    with Desk(onehop) as desk:
        daemon, service = desk.daemon(*BUTTONS), desk.serve()
        path = desk.files_of(300_000, "a <b>bold & odd\x1b[2J%.bin")
        sender = desk.send_as("ann", path)
        name, replaces, _, summary, body, buttons, hints, ends_ms, number = daemon.shown()
        check((name, replaces, ends_ms) == ("onehop", 0, 0), "it stays until it is answered")
        check(buttons == ["accept", "Accept", "refuse", "Refuse"], f"{buttons}")
        check(hints["urgency"] == 2 and hints["desktop-entry"] == "onehop", f"{hints}")
        check("'ann'" in summary, summary)
        for words in ("'ann' (127.0.0.1) offers 1 file, 300 kB, into ", str(desk.target), " free)",
                      "\n'a &lt;b&gt;bold &amp; odd\\u{1B}[2J%.bin', 300 kB"):
            check(words in body, f"{words}: {body}")
        check(not (desk.target / path.name).exists(), "nothing is there before the answer")
        daemon.tell(f"action {number} accept")
        check(sender.code() == DONE, sender.text())
        check((desk.target / path.name).read_bytes() == path.read_bytes(), "it is there")
        *_, summary, body, buttons, hints, ends_ms, number = daemon.shown(2)
        check(summary == "Received 1 file of 'ann'" and "300 kB in " in body, f"{summary} {body}")
        check(buttons == ["show", "Show in folder"] and ends_ms == -1, f"{buttons} {ends_ms}")
        daemon.tell(f"action {number} show")
        daemon.wait_for(lambda: daemon.calls("ShowFolders"), "an escaped name shows its folder")
        check(daemon.calls("ShowFolders") == [[[f"file://{desk.target}/"], ""]],
              f"{daemon.calls('ShowFolders')}")
        # Whom the rule lets in is not asked about, and all the same told of.
        check(desk.send_as("eve", desk.files_of(10, "ä ?.bin")).code() == DONE, "of eve")
        *_, number = daemon.shown(3)
        daemon.tell(f"action {number} show")
        daemon.wait_for(lambda: daemon.calls("ShowItems"), "the file manager shows it")
        check(daemon.calls("ShowItems") == [[[f"file://{desk.work}/of-eve/%C3%A4%20%3F.bin"], ""]],
              f"{daemon.calls('ShowItems')}")
        service.process.terminate()
        check(service.code() == DONE, service.text())


def test_K11_nothing_is_taken_without_a_yes(onehop) -> None:
    with Desk(onehop) as desk:
        daemon, service = desk.daemon("actions"), desk.serve()
        path = desk.files_of(1000, "a&b.bin")
        for turn, answer in enumerate(("action {} refuse", "close {} 2", "close {} 1",
                                       "action {} default"), 1):
            sender = desk.send_as("ann", path)
            *_, body, _, _, _, number = daemon.shown(turn)
            check("'a&b.bin'" in body, f"a daemon without markup gets none: {body}")
            daemon.tell("action 77 accept")  # another's
            daemon.tell(answer.format(number))
            check(sender.code() == REFUSED and "refused there" in sender.text(), sender.text())
            check(not (desk.target / path.name).exists(), "nothing was taken")
        # Two at once: each has its own answer.
        paths = [desk.files_of(1000, f"{name}.bin") for name in ("one", "two")]
        senders = [desk.send_as("ann", each) for each in paths]
        daemon.shown(6)
        asked = daemon.calls("Notify")[4:6]
        yes = next(one for one in asked if "one.bin" in one[4])
        no = next(one for one in asked if "two.bin" in one[4])
        daemon.tell(f"action {no[-1]} refuse")
        check(senders[1].code() == REFUSED, senders[1].text())
        daemon.tell(f"action {yes[-1]} accept")
        check(senders[0].code() == DONE, senders[0].text())
        check((desk.target / "one.bin").exists() and not (desk.target / "two.bin").exists(), "")
        check("no notifications" not in service.errors.read_text(), service.text())


def test_a_question_goes_with_its_session(onehop) -> None:
    with Desk(onehop) as desk:
        daemon, service = desk.daemon(*BUTTONS), desk.serve()
        path = desk.files_of(1000, "file.bin")
        sender = desk.send_as("ann", path)
        *_, number = daemon.shown()
        sender.process.kill()
        daemon.wait_for(lambda: [number] in daemon.calls("CloseNotification"), "it is taken away")
        desk.send_as("ann", path)
        *_, number = daemon.shown(2)
        service.process.terminate()
        daemon.wait_for(lambda: [number] in daemon.calls("CloseNotification"),
                        "and so it is where the service ends")


def check_unasked(sender) -> None:
    check(sender.code() == REFUSED and "asks nobody" in sender.text(), sender.text())


def test_K11_without_a_desktop_the_rule_decides(onehop) -> None:
    with Desk(onehop) as desk:
        path = desk.files_of(1000, "file.bin")
        service = desk.serve()
        check_unasked(desk.send_as("ann", path))  # no daemon
        check_unasked(desk.send_as("ann", path))
        said = service.errors.read_text().count("no notifications")
        check(said == 1, f"said once: {service.text()}")
        daemon = desk.daemon("body")  # no buttons
        check_unasked(desk.send_as("ann", path))
        daemon.end()
        daemon = desk.daemon(*BUTTONS)
        sender = desk.send_as("ann", path)
        daemon.shown()
        daemon.end()  # while it asks
        check_unasked(sender)
        daemon = desk.daemon(*BUTTONS)
        sender = desk.send_as("ann", path)
        *_, number = daemon.shown()
        daemon.tell(f"action {number} accept")
        check(sender.code() == DONE, "who comes back is asked")
        path = desk.files_of(1000, "other.bin")
        sender = desk.send_as("ann", path)
        daemon.shown(3)
        desk.end_bus()
        check_unasked(sender)
        check_unasked(desk.send_as("ann", path))
        said = service.errors.read_text().count("no notifications")
        check(said == 2, f"said again: {service.text()}")
        sender = desk.send_as("eve", path)
        check(sender.code() == DONE, "others are served")
        os.kill(helper_of(service.process.pid), signal.SIGKILL)
        check_unasked(desk.send_as("ann", path))
        check(desk.send_as("eve", desk.files_of(10, "x.bin")).code() == DONE, "and still")


def test_names_that_exist_are_not_asked_about(onehop) -> None:
    with Desk(onehop) as desk:
        daemon, service = desk.daemon(*BUTTONS), desk.serve()
        path = desk.files_of(1000, "file.bin")
        (desk.target / "file.bin").write_text("mine")
        sender = desk.send_as("ann", path)
        check(sender.code() == REFUSED and not daemon.calls("Notify"), sender.text())
        check((desk.target / "file.bin").read_text() == "mine", "it is as it was")
        # Of many files the first names are shown, and all are counted.
        tree = desk.work / "tree"
        tree.mkdir()
        for number in range(100):
            (tree / f"{number:03}.bin").write_bytes(b"x" * 1000)
        sender = desk.send_as("ann", tree)
        *_, body, _, _, _, number = daemon.shown()
        check("offers 100 files, 100 kB" in body and body.count("\n'") == 8
              and body.endswith(" more"), body)
        daemon.tell(f"action {number} accept")
        check(sender.code() == DONE, sender.text())
        *_, number = daemon.shown(2)
        daemon.tell(f"action {number} show")
        daemon.wait_for(lambda: daemon.calls("ShowItems") or daemon.calls("ShowFolders"), "shown")
        check("no notifications" not in service.errors.read_text(), service.text())


def test_K11_the_one_on_the_bus_has_no_peer(onehop) -> None:
    with Desk(onehop) as desk:
        daemon, service = desk.daemon(*BUTTONS), desk.serve("--hidden")
        path = desk.files_of(1000, "file.bin")
        sender = desk.send_as("ann", path)
        *_, number = daemon.shown()
        daemon.tell(f"action {number} accept")
        check(sender.code() == DONE, sender.text())
        daemon.shown(2)
        pid, helper = service.process.pid, helper_of(service.process.pid)
        open_there = sorted(kind_of(entry, desk.bus_pid)
                            for entry in Path(f"/proc/{helper}/fd").iterdir())
        check([name for name in open_there if name not in ("/dev/null", "the bus's process")]
              == ["socket", "socket"],
              f"the pipe to the service and the bus: {open_there}")
        status = Path(f"/proc/{helper}/status").read_text()
        check("CapEff:\t0000000000000000" in status and "CapBnd:\t0000000000000000" in status
              and "NoNewPrivs:\t1" in status, status)
        time.sleep(1)
        before, seconds = switches(pid) + switches(helper), 5
        time.sleep(seconds)
        wakeups = (switches(pid) + switches(helper) - before) / seconds
        memory = pss_kib(pid) + pss_kib(helper)
        print(f"at rest with a notification daemon: {wakeups:.1f} wake-ups/s, {memory} KiB, of "
              f"which {pss_kib(helper)} KiB are onehop-desktop's")
        check(wakeups <= WAKEUPS_PER_S_MAX, f"{wakeups} wake-ups a second at rest")
        check(memory <= RSS_KIB_MAX or is_sanitized(onehop), f"{memory} KiB at rest")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
