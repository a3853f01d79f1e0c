# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Two machines with a radio each, for the tests of `onehop p2p`, `send --p2p` and `recv --p2p` in
the virtual machine: network namespaces, each under a wpa_supplicant on a bus of its own, with the
policies of a real system. Everything goes through the program, as users run it.

ROUNDS says how often a group is formed in each way (1).
"""

import contextlib
import grp
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from group import interfaces, logs
from guest import CODE, HERE, check, enter_guest
from program import End, end_all

ROUNDS = int(os.environ.get("ROUNDS", "1"))
DONE, UNREACHABLE, INTERRUPTED, UNAVAILABLE, PRIVILEGE, TIMED_OUT = 0, 3, 7, 9, 10, 11
# tests/vm/bus makes the group where the host has none.
NETDEV = next((one.gr_gid for one in grp.getgrall() if one.gr_name == "netdev"), 990)
MEMBER = ("setpriv", "--reuid=65534", "--regid=65534", f"--groups={NETDEV}")  # and no root


class Machines:
    """Two machines, what runs on them, and a folder for their files."""

    def __init__(self, onehop, code=CODE) -> None:
        self.onehop, self.secret = str(onehop), code
        self.ends: list[End] = []

    def __enter__(self) -> "Machines":
        self.work = Path(tempfile.mkdtemp(prefix="onehop-p2p-", dir="/tmp"))
        self.target = self.work / "in"
        self.target.mkdir()
        return self

    def __exit__(self, *_) -> None:
        end_all(self.ends)
        leaving = [subprocess.Popen(self.command(host, "p2p", "leave"), stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL) for host in "ab"]
        for process in leaving:
            process.wait(200)
        check_nothing_left()

    def command(self, host, *words, bus=None, user=()) -> list[str]:
        return ["ip", "netns", "exec", host, "env",
                f"DBUS_SYSTEM_BUS_ADDRESS=unix:path={bus or f'/run/bus-{host}'}", *user,
                self.onehop, *map(str, words)]

    def start(self, host, *words) -> End:
        end = End(self.command(host, *words), self.work, f"{host}{len(self.ends)}",
                  self.secret)
        self.ends.append(end)
        return end

    def run(self, host, *words, code=DONE, secret=None, pin="", **options) -> Any:
        environment = os.environ | {"ONEHOP_CODE": secret or self.secret, "ONEHOP_PIN": pin}
        done = subprocess.run(self.command(host, *words, **options), capture_output=True,
                              text=True, timeout=200, env=environment)
        said = done.stdout + done.stderr
        check(done.returncode == code,
              f"{host}: {' '.join(map(str, words))}: {code}, not {done.returncode}: {said}")
        return said

    def file(self, size) -> Path:
        path = self.work / "FILE"
        path.write_bytes(os.urandom(size))
        return path


@contextlib.contextmanager
def stranger() -> Iterator[str]:
    """A device with Wi-Fi Direct that has nothing to do with onehop, on the radio wlan2; its
    name."""
    work = Path(tempfile.mkdtemp(prefix="onehop-stranger-", dir="/tmp"))
    config, name = work / "conf", "Screen"
    config.write_text(f"ctrl_interface={work}/ctrl\ndevice_name={name}\ncountry=UY\n"
                      "config_methods=virtual_push_button\n")
    process = subprocess.Popen(["wpa_supplicant", "-i", "wlan2", "-D", "nl80211", "-c",
                                str(config)], stdout=subprocess.DEVNULL)
    try:
        cli = ("wpa_cli", "-p", f"{work}/ctrl", "-i", "p2p-dev-wlan2")
        wait(lambda: subprocess.run([*cli, "p2p_find"], capture_output=True,
                                    text=True).stdout.strip() == "OK", "the stranger searches")
        yield name
    finally:
        process.terminate()
        process.wait(20)
        shutil.rmtree(work)


def network_of(said) -> tuple[str, str]:
    """network_of is what `p2p host` says: the name of its network, and the passphrase."""
    ssid, passphrase = (re.search(rf"{word}\s+(\S+)", said)[1] for word in ("SSID", "passphrase"))
    return ssid, passphrase


def wait(condition, claim, seconds=60) -> None:
    give_up_at = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < give_up_at, f"{claim}, within {seconds} s")
        time.sleep(0.1)


def check_nothing_left() -> None:
    """No group, no network of ours, no process."""
    for host in "ab":
        wait(lambda: not interfaces(host), f"no group is left on {host}: {interfaces(host)}", 20)
    keepers = {"onehop-p2p", "onehop-dhcp", "dnsmasq"}
    wait(lambda: not keepers & processes(), "no keeper is left", 20)


def processes() -> set[str]:
    """The names of all that run, read without one more of them."""
    names = set()
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # it has just ended
            names.add(path.read_text().strip())
    return names


def group_of(end) -> Any:
    groups = end.events("group")
    return groups[0] if groups else None


def form(machines, first, second) -> tuple[Any, Any, float]:
    """Starts accept and connect, or what takes their places; both groups, and the seconds from the
    start of the second to its group."""
    accepting = machines.start("b", *first, "--json")
    started = time.monotonic()
    connecting = machines.start("a", *second, "--json")
    for end in (connecting, accepting):
        give_up_at = time.monotonic() + 200
        while not group_of(end):
            check(time.monotonic() < give_up_at and end.process.poll() in (None, 0),
                  f"it forms a group: {end.text()}\n{logs()}")
            time.sleep(0.05)
        if end is connecting:
            seconds = time.monotonic() - started
    return group_of(accepting), group_of(connecting), seconds


def tell(what, seconds) -> None:
    each = ", ".join(f"{one:.1f}" for one in seconds)
    print(f"      {what}: {len(seconds)} of {len(seconds)}, in {each} s", flush=True)


def enter(file) -> None:
    """enter starts `file` inside the virtual machine, on two such machines."""
    # A round takes two minutes on a quiet machine, and there may be 20.
    os.environ.setdefault("ONEHOP_VM_SECONDS", str(900 + 300 * ROUNDS))
    enter_guest(file, wrapper=(HERE / "p2p", "--bus"), environment=("ROUNDS", ), cpus=1)
