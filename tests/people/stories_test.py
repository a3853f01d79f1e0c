#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What people do with onehop: stories_test.py --build BUILD | --root ROOT.

Goal:   each story goes as the pages tell it: three words, devices that know each other, a service
        of the machine and one of a person, a firewall, a receiver that is started anew.
Method: two machines, each with Debian's systemd, D-Bus, Avahi and nftables in namespaces of its
        own, over a copy of this system with what BUILD installs, or of ROOT, where the package is
        installed. Persons type into windows of 80 x 24 and 50 x 20. Commands of the machine's
        service are taken from docs/service.md.
Bounds: 60 characters by both between fresh machines. The service starts, is not failed when it is
        stopped, and starts anew when it hangs (watchdog) or is killed. All else is exact.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/lab"))

from machine import Layer, Machine, Terminal, join, wait_until  # noqa: E402
from program import SKIP, check  # noqa: E402
from rooted import own_mounts, run  # noqa: E402

WORDS = r"^ *([a-z]{3,8})-([a-z]{3,8})-([a-z]{3,8})$"
TYPED_MAX = 60
PROGRAMS = {"/lib/systemd/systemd": "systemd", "/lib/systemd/system/dbus.service": "dbus",
            "/usr/sbin/avahi-daemon": "avahi-daemon", "/usr/bin/avahi-browse": "avahi-utils",
            "/usr/sbin/nft": "nftables", "/usr/bin/tmux": "tmux",
            "/usr/share/pam-configs/systemd": "libpam-systemd"}
# A firewall as an installer leaves it: it answers what was asked, and takes nothing else.
CLOSED = """table inet filter {
  chain input {
    type filter hook input priority 0; policy drop;
    iif lo accept
    ct state established,related accept
    meta l4proto ipv6-icmp accept
  }
}
"""


class Story:
    """ann at study, with a window of 80 x 24, and bob at laptop, with one of 50 x 20."""

    def __init__(self, lower: Path, work: Path) -> None:
        self.study = Machine(lower, work, "study")
        try:
            self.laptop = Machine(lower, work, "laptop")
        except BaseException:
            self.study.close()
            raise
        join(self.study, self.laptop, ("10.7.0.1/24", "10.7.0.2/24"))
        self.study.add_person("ann")
        self.laptop.add_person("bob")
        self.ann = Terminal(self.study, "ann", 80, 24)
        self.bob = Terminal(self.laptop, "bob", 50, 20)

    def close(self) -> None:
        self.laptop.close()
        self.study.close()

    def same(self, sent: str, arrived: str) -> None:
        digests = [machine.run("sha256sum", path).split()[0]
                   for machine, path in ((self.laptop, sent), (self.study, arrived))]
        check(digests[0] == digests[1], f"{sent} arrived as {arrived}, and is another")

    def make(self, name: str, megabytes: int) -> None:
        self.laptop.shell(f"head -c {megabytes}000000 /dev/urandom >{name}", user="bob")


def words_on(terminal: Terminal) -> tuple[str, ...]:
    found: list[tuple[str, ...]] = []

    def look() -> bool:
        found[:] = re.findall(WORDS, terminal.text(), re.M)
        return bool(found)

    wait_until(look, lambda: f"no words:\n{terminal.text()}")
    return found[-1]


def readme_rule() -> str:
    """The rule of nftables that the README names."""
    return re.search(r"^nft (add rule .*)$", (ROOT / "README.md").read_text(), re.M)[1]


def story_of_three_words_and_a_firewall(story: Story) -> None:
    ann, bob = story.ann, story.bob
    story.make("video", 20)
    story.study.write("/etc/nftables.conf", CLOSED)
    story.study.run("nft", "-f", "/etc/nftables.conf")
    ann.say("onehop recv --dir Downloads")
    ann.wait("No such file or directory")
    story.study.run("mkdir", "Downloads", user="ann")
    ann.say("onehop recv --dir Downloads")
    ann.wait("firewall")
    ann.key("C-c")
    ann.wait_prompt()
    story.study.shell(f"nft {readme_rule()}")
    typed = ann.typed, bob.typed
    ann.say("onehop recv --dir Downloads")
    words = words_on(ann)
    seen = story.laptop.run("avahi-browse", "--parsable", "--terminate", "--resolve",
                            "_onehop._tcp")
    check(re.search(r"^=;eth0;IPv4;study;_onehop._tcp;.*;10\.7\.0\.1;7411;", seen, re.M), seen)
    bob.say("onehop send video")
    bob.wait("Code:")
    bob.say(" ".join(word[:3] for word in words))
    bob.wait("Downloads/video, at")
    bob.wait_prompt()
    story.same("/home/bob/video", "/home/ann/Downloads/video")
    # --dir Downloads is the story's own: its names are not bob's to type.
    count = sum(end.typed - before for end, before in zip((ann, bob), typed, strict=True))
    print(f"      typed by both: {count}", flush=True)
    check(count <= TYPED_MAX, f"{count} characters between fresh machines")
    ann.key("C-c")
    ann.wait_prompt()


def story_of_devices_that_know_each_other(story: Story) -> None:
    ann, bob = story.ann, story.bob
    ann.say("onehop pair")
    words = words_on(ann)
    bob.say("onehop pair")
    bob.wait("Code:")
    bob.say(" ".join(word[:3] for word in words))
    bob.wait("paired with 'study'")
    ann.wait("paired with 'laptop'")
    ann.wait_prompt()
    check("0 files" not in bob.text(), f"a pairing counts no files: {bob.text()}")
    story.make("notes", 1)
    ann.say("onehop recv --dir Downloads")
    ann.wait("listening")
    bob.say("onehop send notes")
    ann.wait("notes")
    ann.wait("Take them?")
    ann.say("y")
    bob.wait("Downloads/notes, at")
    story.same("/home/bob/notes", "/home/ann/Downloads/notes")
    ann.key("C-c")
    ann.wait_prompt()
    ann.say("onehop peers set laptop --rule accept")
    ann.wait_prompt()


def journal(machine: Machine) -> str:
    return machine.run("journalctl", "--unit", "onehop-recv", "--no-pager", "--output", "cat")


def as_the_service() -> list[str]:
    """What docs/service.md puts in front of `onehop pair` for the machine's service."""
    page = (ROOT / "docs/service.md").read_text()
    words = re.search(r"systemd-run --pty(.*?)onehop pair", page, re.S)[1].replace("\\\n", " ")
    return ["systemd-run", *words.split()]


def story_of_the_machines_service(story: Story) -> None:
    study, bob = story.study, story.bob
    unit = "onehop-recv.service"
    study.run("systemctl", "enable", "--now", unit)
    check("not confined" not in journal(study), journal(study))
    # Without pages of the manual: a bare root has no man-db to find them.
    verified = study.run("systemd-analyze", "verify", "--man=no", unit)
    check("onehop" not in verified, verified)
    # Here study asks, and its firewall has to let answers in (docs/finding.md).
    study.run("nft", "add", "rule", "inet", "filter", "input", "udp", "sport", "7411", "accept")
    root = Terminal(study, "root", 80, 24)
    # While the service has the port, the other machine shows the words.
    bob.say("onehop pair")
    words = words_on(bob)
    root.say(" ".join(["systemd-run --pty", *as_the_service()[1:], "onehop pair laptop"]))
    root.wait("Code:")
    root.say(" ".join(words))
    root.wait("paired with 'laptop'")
    root.wait_prompt()
    study.run(*as_the_service(), "--pipe", "onehop", "peers", "set", "laptop", "--rule", "accept")
    received = "/var/lib/onehop/received"
    story.make("first", 30)
    bob.say("onehop send first")
    bob.wait("30.0 MB in")
    story.same("/home/bob/first", f"{received}/first")
    check("onehop" in study.run("cat", "/var/lib/onehop/onehop.prom"), "metrics are written")

    # It is started anew while something is under way, and the sender goes on by itself.
    story.make("second", 40)
    bob.say("onehop send second --max-rate 80Mbit")
    bob.wait("ETA")
    study.run("systemctl", "kill", "--signal=KILL", unit)
    bob.wait("received/second, at")
    story.same("/home/bob/second", f"{received}/second")

    study.run("mkdir", "-p", f"/etc/systemd/system/{unit}.d")
    study.write(f"/etc/systemd/system/{unit}.d/watchdog.conf", "[Service]\nWatchdogSec=2\n")
    study.run("systemctl", "daemon-reload")
    study.run("systemctl", "restart", unit)
    main = ("systemctl", "show", "--property=MainPID", "--value", unit)
    first = study.run(*main).strip()
    study.run("kill", "-STOP", first)
    wait_until(lambda: study.run(*main).strip() not in ("0", first)
               and study.is_so("systemctl", "--quiet", "is-active", unit),
               lambda: f"it is not started anew: {journal(study)}")
    check("Watchdog timeout" in journal(study), journal(study))

    # AF_XDP, as the page says.
    page = (ROOT / "docs/service.md").read_text()
    told = re.search(r"For AF_XDP add, .*?\n\n", page, re.S)[0]
    rights = re.search(r"with `(CAP_[A-Z_ ]+)`", told)[1]
    lines = [f"{name}={rights}" for name in ("AmbientCapabilities", "CapabilityBoundingSet")]
    lines += re.findall(r"`(RestrictAddressFamilies=\w+|SystemCallFilter=[\w ]+|PrivateUsers=no)`",
                        told)
    check(len(lines) == 5, f"{lines}")
    study.write(f"/etc/systemd/system/{unit}.d/afxdp.conf", "\n".join(["[Service]", *lines, ""]))
    study.run("systemctl", "daemon-reload")
    study.run("systemctl", "restart", unit)
    story.make("third", 50)
    bob.say("onehop send third")
    bob.wait("50.0 MB in")
    story.same("/home/bob/third", f"{received}/third")
    check("afxdp" in journal(study).splitlines()[-1], journal(study))
    check("not confined" not in journal(study), journal(study))

    study.run("systemctl", "stop", unit)
    check(not study.is_so("systemctl", "is-failed", unit), f"it is stopped: {journal(study)}")
    left = study.run("find", received, "-name", ".*").strip()
    check(not left, f"nothing of ours is left: {left}")
    study.run("systemctl", "disable", unit)


def story_of_a_persons_service(story: Story) -> None:
    study, bob = story.study, story.bob
    study.shell("rm -rf Downloads", user="ann")
    started = study.is_so("systemctl", "--user", "enable", "--now", "onehop-recv", user="ann")
    check(started, study.run("journalctl", "_UID=" + study.run("id", "-u", "ann").strip(),
                             "--no-pager", "--output", "cat"))
    story.make("fourth", 5)
    bob.say("onehop send fourth")
    bob.wait("5.00 MB in")
    story.same("/home/bob/fourth", "/home/ann/Downloads/fourth")
    study.run("systemctl", "--user", "stop", "onehop-recv", user="ann")
    check(not study.is_so("systemctl", "--user", "is-failed", "onehop-recv", user="ann"),
          "it is stopped, and not failed")


def play(lower: Path, work: Path) -> int:
    try:
        story = Story(lower, work)
    except (AssertionError, subprocess.SubprocessError) as failure:
        print(f"skipped: no machine with systemd can be started here: {failure}")
        return SKIP
    failures = 0
    try:
        for name, tell in [(name, value) for name, value in globals().items()
                           if name.startswith("story_")]:
            begun = time.monotonic()
            title = name.removeprefix("story_").replace("_", " ")
            try:
                tell(story)
                print(f"ok    {title} ({time.monotonic() - begun:.1f} s)", flush=True)
            except (AssertionError, subprocess.SubprocessError) as failure:
                failures += 1
                print(f"FAIL  {title}: {failure}", flush=True)
                for terminal in (story.ann, story.bob):
                    print(terminal.text(), flush=True)
                    terminal.key("C-c")
    finally:
        story.close()
    return 1 if failures else 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, help="what it installs is laid over this system")
    parser.add_argument("--root", type=Path, help="a root in which the package is installed")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: it starts machines in namespaces: run it as root")
        return SKIP
    own_mounts()
    lower: Any = options.root or Path("/")
    missing = [package for path, package in PROGRAMS.items() if not (lower / path[1:]).exists()]
    if missing:
        print(f"skipped: not installed: {' '.join(missing)}")
        return SKIP
    work = Path(tempfile.mkdtemp(prefix="onehop-people-", dir="/var/tmp"))
    try:
        run("mount", "-t", "tmpfs", "tmpfs", work)
        if options.build:
            installed = Layer(lower, work / "installed")
            subprocess.run(["meson", "install", "-C", options.build.resolve(), "--no-rebuild",
                            "--quiet", "--destdir", installed.root], check=True,
                           stdout=subprocess.DEVNULL)
            run("chroot", installed.root, "ldconfig")
            lower = installed.root
        return play(lower, work)
    finally:
        run("umount", "--lazy", work)
        shutil.rmtree(work)


if __name__ == "__main__":
    sys.exit(main())
