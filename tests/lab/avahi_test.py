#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A receiver in DNS-SD: avahi_test.py ONEHOP [WORD].

Goal:   where avahi-daemon runs, `recv` is published as _onehop._tcp for as long as it lives, and
        `send` lists who does not answer it as well. Without the daemon nothing is different.
Method: two hosts in namespaces, each with a dbus-daemon and an avahi-daemon of its own; a firewall
        that keeps our own question out.
Bounds: none on time but that all ends by itself; the time to find is printed.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from find_test import DONE, Room, found, names  # noqa: E402
from notify_program_test import CONFIG  # noqa: E402
from program import LOOK_S, PATIENCE, Skip, check, main  # noqa: E402

DAEMON = """[server]
use-ipv4=yes
use-ipv6=yes
host-name={}
[publish]
publish-workstation=no
publish-hinfo=no
"""


class Published(Room):
    """Hosts a and b, and Avahi on both."""

    def __init__(self, onehop) -> None:
        for program, package in (("avahi-daemon", "avahi-daemon"), ("avahi-browse", "avahi-utils"),
                                 ("dbus-daemon", "dbus-daemon")):
            if shutil.which(program) is None and not Path("/usr/sbin", program).exists():
                raise Skip(f"{program} is missing (Debian: {package})")
        super().__init__(onehop, letters="ab")
        self._daemons: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Any:
        super().__enter__()
        try:
            for letter in "ab":
                self.start_bus(letter)
                self.start_avahi(letter)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *what) -> None:
        for daemon in reversed(self._daemons):
            daemon.kill()
            daemon.wait()
        super().__exit__(*what)

    def on(self, letter, *command) -> list[str]:
        return super().on(letter, "env", f"DBUS_SYSTEM_BUS_ADDRESS=unix:path={self.bus(letter)}",
                          *command)

    def bus(self, letter) -> Path:
        return self.work / f"bus-{letter}"

    def start(self, *command) -> "subprocess.Popen[bytes]":
        self._daemons.append(subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                              stderr=subprocess.DEVNULL))
        return self._daemons[-1]

    def start_bus(self, letter) -> None:
        config = self.work / f"bus-{letter}.conf"
        config.write_text(CONFIG.format(self.bus(letter)))
        self.start(*self.on(letter, "dbus-daemon", f"--config-file={config}", "--nofork"))
        self.wait(self.bus(letter).exists, "the bus is there")

    def start_avahi(self, letter) -> "subprocess.Popen[bytes]":
        config = self.work / f"avahi-{letter}.conf"
        config.write_text(DAEMON.format(f"host-{letter}"))
        # Its process file has one name for all daemons of a machine.
        daemon = self.start(*self.on(
            letter, "unshare", "-m", "sh", "-c", "mkdir -p /run/avahi-daemon && "
            "mount -t tmpfs none /run/avahi-daemon && exec avahi-daemon --no-drop-root "
            f"--no-chroot --no-rlimits --no-proc-title -f {config}"))
        self.wait(lambda: "2" in self.busctl(letter, "GetState"), "Avahi runs")
        return daemon

    def busctl(self, letter, method) -> str:
        return subprocess.run(
            self.on(letter, "busctl", "--system", "--timeout=1", "--auto-start=no", "call",
                    "org.freedesktop.Avahi", "/", "org.freedesktop.Avahi.Server", method),
            capture_output=True, text=True, check=False).stdout

    def wait(self, condition, claim) -> None:
        give_up_at = time.monotonic() + PATIENCE
        while not condition():
            check(time.monotonic() < give_up_at, claim)
            time.sleep(LOOK_S)

    def browse(self, letter) -> str:
        """What another program sees there."""
        return self.run_on(letter, "avahi-browse", "-rptk", "_onehop._tcp")

    def deafen(self, letter) -> None:
        """No question of ours comes in there; mDNS does."""
        self.run_on(letter, "nft", "add table inet deaf; add chain inet deaf in { type filter hook "
                    "input priority 0; }; add rule inet deaf in ip daddr 239.255.74.11 drop; "
                    "add rule inet deaf in udp dport 7411 ip6 daddr ff02::1 drop")


def test_a_receiver_is_published_as_long_as_it_lives(onehop) -> None:
    with Published(onehop) as room:
        receiver = room.recv("b", "laptop")
        room.wait(lambda: ";laptop;" in room.browse("a"), "others see it")
        twin = room.recv("b", "laptop", "--listen", "0.0.0.0:7412")
        room.wait(lambda: "laptop\\032\\0352;" in room.browse("a"), "the second has another name")
        hidden = room.recv("b", "secret", "--listen", "0.0.0.0:7413", "--hidden")
        for end, number in ((receiver, signal.SIGTERM), (twin, signal.SIGKILL)):
            end.process.send_signal(number)
            end.code()
        room.wait(lambda: "laptop" not in room.browse("a"), "it is withdrawn, also by a kill")
        check("secret" not in room.browse("a"), "one that is hidden is not published")
        hidden.process.kill()


def test_who_does_not_answer_is_listed_all_the_same(onehop) -> None:
    with Published(onehop) as room:
        room.deafen("b")
        receiver = room.recv("b", "laptop")
        room.wait(lambda: ";laptop;" in room.browse("a"), "others see it")
        sender = room.look("--wait", "20")
        room.check_sent(sender, receiver)
        one, = found(sender)["receivers"]
        check(not one["has_answered"] and one["device"] is None, f"a hint: {one}")
        check("seen by Avahi" in sender.text(), sender.text())


def test_who_answers_is_listed_once(onehop) -> None:
    with Published(onehop) as room:
        for _ in range(3):
            receiver = room.recv("b", "laptop")
            room.wait(lambda: ";laptop;" in room.browse("a"), "others see it")
            began = time.monotonic()
            sender = room.look()
            sender.wait_for(lambda end=sender: end.events("receivers"), "it is found")
            print(f"found after {time.monotonic() - began:.2f} s with Avahi")
            room.check_sent(sender, receiver)
            check(names(sender) == ["laptop"] and found(sender)["receivers"][0]["has_answered"],
                  f"{found(sender)}")


def test_without_the_daemon_nothing_is_different(onehop) -> None:
    with Published(onehop) as room:
        daemon = room._daemons[1]
        daemon.terminate()
        daemon.wait()
        receiver = room.recv("b", "laptop")
        began = time.monotonic()
        sender = room.look()
        sender.wait_for(lambda: sender.events("receivers"), "it is found")
        print(f"found after {time.monotonic() - began:.2f} s without Avahi")
        room.check_sent(sender, receiver)
        check("Avahi" not in sender.text() and sender.code() == DONE, sender.text())


if __name__ == "__main__":
    sys.exit(main(globals()))
