#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""README's commands, as they stand there: readme_test.py ONEHOP [WORD].

Goal:   whoever copies them line by line gets what the text says.
Method: each line of README's sh blocks is run in the order of the page: the two laptops are the
        lab's hosts with the page's addresses, behind a
        firewall that drops what comes in, until the page's rule lets it.
Bounds: exit codes and the bytes that arrive. A line that no test runs is named with the reason, or
        this fails.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from program import CODE, End, Skip, World, check, end_all, main

ROOT = Path(__file__).resolve().parents[2]
RECEIVER, SENDER = "192.168.49.1", "192.168.49.2"  # of the page
FIREWALL = """table inet filter {
  chain input {
    type filter hook input priority 0; policy drop;
    ct state established accept
    iif lo accept
    icmp type echo-request accept
  }
}
"""
ELSEWHERE = {
    "tools/check": "it runs this test",
    "apt install ./onehop_*.deb": "tests/package plays it on a bare root",
    "ufw allow 7411": "ufw manages the machine's own firewall, not a namespace's",
    "firewall-cmd --add-port=7411/tcp --add-port=7411/udp":
        "firewalld manages the machine's own firewall"
}


def lines() -> list[Any]:
    """The commands of README's sh blocks, in order, without comments."""
    text = (ROOT / "README.md").read_text()
    found = [
        line.split("#")[0].strip() for block in re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M)
        for line in block.splitlines()
    ]
    return [line for line in found if line]


def line_with(start) -> Any:
    found = [line for line in lines() if line.startswith(start)]
    check(len(found) == 1, f"README has one line that begins with '{start}': {found}")
    return found[0]


def in_shell(world, host, line, folder) -> Any:
    """The line in a shell of that host, as somebody types it there."""
    path = f"{Path(world.onehop).resolve().parent}:{os.environ['PATH']}"
    return world.on(host, "env", f"PATH={path}", "sh", "-c",
                    f"cd {shlex.quote(str(folder))} && exec {line}")


def build_folder(onehop) -> Any:
    build = Path(onehop).resolve().parents[2]
    if build != ROOT / "build":
        raise Skip(f"the page's commands are about {ROOT / 'build'}, not {build}")
    return build


def test_the_two_laptops_and_the_firewall_rule(onehop) -> None:
    allow = line_with("nft ")
    with World(onehop) as world:
        outgoing = world.work / "out"
        outgoing.mkdir()
        files = [outgoing / "video.mkv", outgoing / "notes.txt"]
        files[0].write_bytes(os.urandom(8_000_000))
        files[1].write_text("what was said\n")
        for host, interface, address in (("a", "mv0", SENDER), ("b", "vb", RECEIVER)):
            world.run_on(host, "ip", "addr", "add", f"{address}/24", "dev", interface)
            rules = world.work / f"{host}.nft"
            rules.write_text(FIREWALL)
            done = subprocess.run(world.on(host, "nft", "-f", rules), capture_output=True,
                                  text=True, check=False)
            if done.returncode != 0:
                raise Skip(f"nft cannot follow connections here: {done.stderr.splitlines()[0]}")
        ends = []

        def end(host, line, folder, label) -> Any:
            ends.append(End(in_shell(world, host, line, folder), world.work, label, CODE))
            return ends[-1]

        try:
            receiver = end("b", line_with("onehop recv"), world.target, "recv")
            receiver.wait_for(lambda: "listening" in receiver.text(), "recv listens")
            receiver.wait_for(lambda: "firewall" in receiver.text(), "it says what keeps out")
            for how in ("", f" --to {RECEIVER}"):
                refused = end("a", line_with("onehop send") + how, outgoing, f"refused{how[:4]}")
                check(refused.code() == 3,
                      f"the firewall keeps send out: 3, not {refused.process.returncode}: "
                      f"{refused.text()}")
            world.run_on("b", "sh", "-c", allow)

            def send(how) -> None:
                sender = end("a", line_with("onehop send") + how, outgoing, f"send{how[:4]}")
                check(sender.code() == 0,
                      f"send ends with 0, not {sender.process.returncode}: {sender.text()}")
                for path in files:
                    world.check_same(path)
                    (world.target / path.name).unlink()

            send(f" --to {RECEIVER}")  # the receiver's rule alone: both have stateful rules
            world.run_on("a", "nft", "flush", "ruleset")
            send("")
        finally:
            end_all(ends)


def test_the_install(onehop) -> None:
    build_folder(onehop)
    with tempfile.TemporaryDirectory(prefix="onehop-install-") as root:
        done = subprocess.run(shlex.split(line_with("meson install")), cwd=ROOT,
                              env=os.environ | {"DESTDIR": root}, capture_output=True, text=True,
                              check=False)
        check(done.returncode == 0, done.stdout + done.stderr)
        installed = Path(root, "usr/local/bin/onehop")
        shown = subprocess.run([installed, "--version"], capture_output=True, text=True,
                               check=True).stdout
        check(shown.startswith("onehop "), f"what was installed runs: {shown}")
        subprocess.run(["ninja", "-C", "build", "uninstall"], cwd=ROOT, check=True,
                       capture_output=True)
        left = [path for path in Path(root).rglob("*") if not path.is_dir()]
        check(not left, f"nothing is left: {left}")


def test_the_quickstart(onehop) -> None:
    build_folder(onehop)
    done = subprocess.run(["sh", "-c", line_with("tools/quickstart")], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0, (done.stdout + done.stderr)[-2000:])
    check(not any(len(line) > 80 for line in done.stdout.splitlines() if not line.startswith("[")),
          "no line of it is wider than 80 columns")


def test_no_command_of_the_page_is_left_out(_onehop) -> None:
    starts = ("nft ", "onehop recv", "onehop send", "meson install", "tools/quickstart")
    unknown = [line for line in lines() if not line.startswith(starts) and line not in ELSEWHERE]
    check(not unknown,
          f"a test above runs each line of README, or ELSEWHERE says why none does: {unknown}")
    gone = [
        line for line in ELSEWHERE
        if line not in lines() and line not in (ROOT / "README.md").read_text()
    ]
    check(not gone, f"README has no such line: {gone}")


if __name__ == "__main__":
    sys.exit(main(globals()))
