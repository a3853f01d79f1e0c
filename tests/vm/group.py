# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A Wi-Fi Direct group between the two radios of tests/vm/p2p, for the tests in the virtual
machine that send over one.
"""

import re
import subprocess
import time
from pathlib import Path
from typing import Any

from guest import check, received_bytes, run

ADDRESSES = {"a": "192.168.49.1", "b": "192.168.49.2"}  # a becomes the group's owner
RADIOS = {"a": "wlan0", "b": "wlan1"}
FORM_S, ATTEMPT_S = 240, 30


class Group:
    """The group, and the two wpa_supplicants that form it."""

    def __init__(self) -> None:
        self.interfaces: dict[str, str] = {}

    def cli(self, host, *words, interface=None) -> str:
        """cli is what wpa_cli says; nothing where there is nothing, or no such interface yet."""
        return subprocess.run(
            ["ip", "netns", "exec", host, "wpa_cli", "-p", f"/run/wpa-{host}", "-i",
             interface or f"p2p-dev-{RADIOS[host]}", *words], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, timeout=FORM_S).stdout.strip()

    def found(self, host) -> Any:
        """found is the group's interface, or nothing."""
        return next(iter(interfaces(host)), None)

    def is_complete(self, host) -> bool:
        name = self.found(host)
        return bool(name) and "wpa_state=COMPLETED" in self.cli(host, "status", interface=name)

    def remove(self) -> None:
        """remove ends the group at its owner; the client hears of it, or is made to."""
        for host in "ab":
            name = self.found(host)
            if name:
                self.cli(host, "p2p_group_remove", name)
            wait(lambda: self.found(host) is None, 10)
        self.interfaces = {}

    def received_bytes(self, end) -> int:
        """received_bytes is what the interface of b, where a program runs, has received."""
        return received_bytes(end, self.interfaces["b"])

    def form(self) -> None:
        """form has a group with addresses when it returns. wpa_cli answers FAIL now and then, for a
        peer of which it has only heard a request; it has to look again."""
        give_up_at = time.monotonic() + FORM_S
        while not self.is_formed_at_once():
            check(time.monotonic() < give_up_at, f"a group is formed within {FORM_S} s: {logs()}")
            for host in "ab":
                self.cli(host, "p2p_cancel")
            self.remove()
        for host in "ab":
            name = self.interfaces[host] = self.found(host)
            run("ip", "-n", host, "addr", "add", f"{ADDRESSES[host]}/24", "dev", name)

    def is_formed_at_once(self) -> bool:
        for host in "ab":
            self.cli(host, "p2p_find", "type=social")
        if not wait(lambda: all(self.cli(host, "p2p_peers") for host in "ab"), ATTEMPT_S):
            return False
        for host, options in (("a", ("go_intent=15", "freq=5180")), ("b", ("go_intent=0", ))):
            peer = self.cli(host, "p2p_peers").split()[0]

            def is_connecting() -> bool:
                if self.cli(host, "p2p_connect", peer, "pbc", *options) == "OK":
                    return True
                self.cli(host, "p2p_find", "2")
                return False

            if not wait(is_connecting, ATTEMPT_S, 1):
                return False
        return wait(lambda: all(self.is_complete(host) for host in "ab"), ATTEMPT_S)


def interfaces(host) -> set[str]:
    """interfaces has those of a host's groups. Read in the network namespace of its
    wpa_supplicant, and by no process of its own: to start one takes 0.1 s and more in emulation."""
    supplicant = Path(f"/run/wpa-{host}.pid").read_text().strip()
    devices = Path(f"/proc/{supplicant}/net/dev").read_text()
    return set(re.findall(rf"\b(p2p-{RADIOS[host]}-\d+)", devices))


def wait(condition, seconds, period=0.2) -> bool:
    give_up_at = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(period)
    return True


def logs() -> str:
    return "\n".join(run("tail", "-n", "8", f"/run/wpa-{host}.log") for host in "ab")


GROUP = Group()


def formed() -> Group:
    """formed is the group of all tests, formed by the first that asks for it."""
    if not GROUP.interfaces:
        started = time.monotonic()
        GROUP.form()
        print(f"      the group is formed in {time.monotonic() - started:.1f} s", flush=True)
    return GROUP
