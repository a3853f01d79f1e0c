#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What a person reads on the first screen: first_screen_test.py ONEHOP [WORD].

Goal:   each moment of a transfer can be understood from the screen alone: what to type on the other
        machine, what is waited for, what was decided, what became of the files.
Method: the real program over UDP on loopback, in a terminal of 80 x 24; two lab hosts for a cable
        that is pulled out.
Bounds: texts; that no line is wider than the terminal.
"""

import os
import re
import signal
import subprocess
import sys
import time
from typing import Any

from disks import Disk
from loopback import MB, Loopback, check
from program import CODE, World, main, without_confinement
from screen import ROWS, Screen

GIVEN = {"ONEHOP_CODE": CODE}
ERASED = "\x1b[K"


class Desk(Loopback):
    """Two ends on loopback, each in a terminal where it is asked for."""

    def __enter__(self) -> Any:
        super().__enter__()
        self.screens = []
        return self

    def __exit__(self, *_) -> None:
        for screen in self.screens:
            screen.close()
        super().__exit__()

    def screen(self, *words, environment=None, rows=ROWS) -> Screen:
        screen = Screen([self.onehop, *words], environment, self.state, rows)
        self.screens.append(screen)
        return screen

    def recv(self, *options, environment=None, rows=ROWS) -> Screen:
        screen = self.screen("recv", "--dir", self.target, "--listen", self.address, "--io", "udp",
                             *options, environment=GIVEN if environment is None else environment,
                             rows=rows)
        screen.wait_text("listening on" if environment is not None else "--to")
        return screen

    def typing(self, *options) -> Screen:
        """typing is a sender that asks for the code."""
        sender = self.screen("send", self.text("note", "a few words"), "--to", self.address, "--io",
                             "udp", *options)
        sender.wait_text("Code:")
        return sender

    def sender(self, *words) -> Screen:
        return self.screen("send", *words, "--to", self.address, "--io", "udp", environment=GIVEN)


def frames_of(screen) -> list[str]:
    """frames_of is all that was drawn on the progress line."""
    return [part.split("\r")[-1] for part in screen.text.split(ERASED)]


LONG = r"^ *((?:[a-z2-7]{4}-){6}[a-z2-7]{4})$"
WORDS = r"^ *([a-z]{3,8}-[a-z]{3,8}-[a-z]{3,8})$"


def made_code(receiver, form=LONG) -> str:
    found = re.search(form, "\n".join(receiver.rows()), re.M)
    check(found is not None, f"the code stands alone in its line: {receiver.rows()}")
    return found.group(1) if found else ""


def test_recv_prints_what_is_typed_on_the_other_machine(onehop) -> None:
    with Desk(onehop) as desk:
        for options, form in ((), WORDS), (("--long", ), LONG):
            receiver = desk.recv(*options, environment={})
            rows = [row.strip() for row in receiver.rows()]
            at = rows.index(f"onehop send PATH --to {desk.address}")
            check(rows[at + 1] == made_code(receiver, form), f"the code follows: {rows}")
            check("ONEHOP_CODE" not in receiver.text, "and is in no line that a shell keeps")
            check(not any(block in receiver.text for block in "█▀▄"), "no picture scrolls it away")
            receiver.check_whole()
            receiver.close()
        given = desk.recv()
        check(f"onehop send PATH --to {desk.address}" in "\n".join(given.rows()),
              f"the address also where the code was given: {given.rows()}")
        check(CODE not in given.text, "which is not shown")


def test_a_tall_terminal_has_a_picture_of_the_words(onehop) -> None:
    version = subprocess.run([onehop, "--version", "-v"], capture_output=True, text=True,
                             timeout=60).stdout
    with Desk(onehop) as desk:
        receiver = desk.recv(environment={}, rows=60)
        made_code(receiver, WORDS)
        if "QR codes" in version:  # it is named where it is off
            return
        receiver.read_until(lambda: "█" in receiver.text, "a picture of it")
        receiver.check_whole()


def test_an_open_interface_is_filled_in(onehop) -> None:
    """What recv prints of a link-local address can be typed as it is."""
    for to in ("[fe80::1%IF]:7411", "fe80::1", "fe80::1%IF"):
        names = [name for name in os.listdir("/sys/class/net") if name != "lo"]
        done = subprocess.run(
            [onehop, "send", "/etc/hostname", "--to", to, "--iface", names[0], "--wait", "0"],
            capture_output=True, text=True, env=os.environ | GIVEN, timeout=60)
        check(done.returncode == 3 and f"fe80::1%{names[0]}" in done.stderr,
              f"{to}: {done.returncode} {done.stderr}")


def test_the_reason_for_the_io_is_told_on_request(onehop) -> None:
    with Desk(onehop) as desk:
        for option, is_told in ((), False), (("-v", ), True):
            receiver = desk.screen("recv", "--once", "--dir", desk.target, "--listen", desk.address,
                                   "--on-exist", "overwrite", *option, environment=GIVEN)
            receiver.wait_text("listening on")
            sender = desk.screen("send", desk.file(MB), "--to", desk.address, *option,
                                 environment=GIVEN)
            check(sender.code() == 0 and receiver.code() == 0, f"{sender.rows()}")
            for end in (sender, receiver):
                for told in ("I/O:", "keys: TLS 1.3 with "):
                    check(any(row.startswith(told) for row in end.rows()) == is_told,
                          f"{option}, {told}: {end.rows()}")
        sender = desk.send()
        port = sender.events("port")
        check(len(port) == 1 and port[0]["io_reason"] != "", f"programs read it: {port}")


def test_what_is_waited_for_is_said(onehop) -> None:
    with Desk(onehop) as desk:
        path = desk.file(MB)
        sender = desk.sender(path, "--wait", "60")
        sender.wait_text(f"waiting for {desk.address} ...")
        (desk.target / path.name).write_bytes(b"another one")
        receiver = desk.recv()
        receiver.wait_text("Enter or anything else refuses")
        sender.wait_text("waiting for the answer there ...")
        receiver.write("\n")
        check(sender.code() == 5, f"{sender.rows()}")
        check("refused" in sender.text and "--on-exist" not in sender.text,
              f"the sender reads what was decided: {sender.rows()}")
        check(not any("waiting" in row for row in sender.rows()),
              f"nothing of it is left: {sender.rows()}")
        for end in (sender, receiver):
            end.check_whole()
        # For a program each is a line.
        piped = desk.start("send", path, "--to", desk.address, "--io", "udp")
        receiver.read_until(lambda: receiver.text.count("Enter or") == 2, "it is asked again")
        piped.wait_for(lambda: "waiting for the answer there ..." in piped.text(), "it says so")
        receiver.write("o\n")
        check(piped.code() == 0, piped.text())
        check(piped.text().count("waiting for the answer") == 1 and "\x1b" not in piped.text(),
              f"{piped.text()}")


def test_phases_are_as_they_are(onehop) -> None:
    with Desk(onehop) as desk:
        receiver = desk.recv("--once")
        sender = desk.sender(desk.file(21 * MB), "--max-rate", "60Mbit")
        check(sender.code() == 0 and receiver.code() == 0, f"{sender.rows()}")
        for end in (sender, receiver):
            frames = frames_of(end)
            check(any("transferring" in frame for frame in frames), f"data flowed: {frames}")
            for frame in frames:
                found = re.search(r"verifying +(\d+) %", frame)
                check(found is None or int(found.group(1)) == 99,
                      f"what is verified has arrived: {frame}")


def test_the_summary_is_last_and_digests_are_asked_for(onehop) -> None:
    with Desk(onehop) as desk:
        tree = desk.work / "photos"
        tree.mkdir()
        for i in range(400):
            (tree / f"{i}.jpg").write_bytes(os.urandom(20_000 if i % 3 else 300_000))
        for extra, exit_code in (((), 0), (("pipe", ), 12)):
            for name in extra:
                os.mkfifo(tree / name)
            receiver = desk.recv("--once", "--on-exist", "overwrite")
            sender = desk.sender(tree)
            codes = (sender.code(), receiver.code())
            check(codes[0] == exit_code, f"{codes}: {sender.rows()}")
            for end in (sender, receiver):
                rows = [row for row in end.rows() if row]
                check(re.search(r"MB in \d+\.\d\d s ", rows[-1]) is not None, f"last: {rows[-3:]}")
                check("400 files in" in rows[-2] or "400 files in" in rows[-3], f"{rows[-4:]}")
                check("xxh3:" not in end.text and len(rows) < ROWS, f"no digests: {rows}")
                end.check_whole()
        receiver = desk.recv("--once", "--on-exist", "overwrite")
        sender = desk.sender(desk.text("one", "some text"), "--files")
        check(sender.code() == 0, f"{sender.rows()}")
        check("xxh3:" in sender.text, f"--files: {sender.rows()}")


def test_a_cable_that_is_out_is_said(onehop) -> None:
    with World(onehop) as world:
        receiver, path = world.receive(), world.file(60 * MB)
        sender = Screen(world.on("a", onehop, "send", path, "--to", "10.111.0.2", "--io", "udp",
                                 "--max-rate", "60Mbit"), GIVEN)
        sender.wait_text("transferring")
        world.wait_bytes(2 * MB, receiver)
        world.run_on("b", "ip", "link", "set", "dev", "vb", "down")
        receiver.wait_for(lambda: "link down: goes on by itself" in receiver.text(),
                          "a program reads a line")
        world.run_on("b", "ip", "link", "set", "dev", "vb", "up")
        world.run_on("a", "ip", "link", "set", "dev", "mv0", "down")
        sender.wait_text("link down for 0:02, goes on by itself")
        world.run_on("a", "ip", "link", "set", "dev", "mv0", "up")
        check(sender.code() == 0 and receiver.code() == 0, f"{sender.rows()} {receiver.text()}")
        check("link up again" in receiver.text(), receiver.text())


def test_a_cap_has_its_name(onehop) -> None:
    with Desk(onehop) as desk:
        desk.state = desk.work / "state"
        first = desk.recv("--on-exist", "overwrite")
        path = desk.file(30 * MB)
        check(desk.sender(path).code() == 0, "what is remembered is fast")
        sender = desk.sender(path, "--max-rate", "20Mbit")
        sender.wait_text("held at 20.0 Mbit/s by --max-rate")
        time.sleep(0.5)
        done = subprocess.run([onehop, "watch", str(sender.pid), "--once"], capture_output=True,
                              text=True, timeout=60)
        check("bottleneck: a cap: --max-rate, 20.0 Mbit/s" in done.stdout, done.stdout)
        check("starting at" not in sender.text, f"what does not hold is not said: {sender.rows()}")
        os.kill(sender.pid, signal.SIGINT)
        check(sender.code() == 7, f"{sender.rows()}")
        first.wait_text("Still listening")
        first.close()
        receiver = desk.recv("--on-exist", "overwrite", "--max-rate", "2.5MB/s")
        sender = desk.sender(path)
        sender.wait_text("held at 20.0 Mbit/s by the receiver: its --max-rate, or other")
        receiver.close()


def test_ctrl_c_at_the_sender_is_told_with_what_is_waited_for(onehop) -> None:
    with Desk(onehop) as desk:
        for options, said in ((), "Still listening: it goes on when the same is sent again"), (
                ("--once", ), "Run the same commands again, this one first, to go on"):
            receiver = desk.recv("--on-exist", "overwrite", *options)
            sender = desk.sender(desk.file(21 * MB), "--max-rate", "60Mbit")
            sender.wait_text("transferring")
            sender.write("\x03")
            check(sender.code() == 7, f"{sender.rows()}")
            receiver.wait_text(said)
            receiver.check_whole()
            receiver.close()


def test_errors_are_broken_between_words(onehop) -> None:
    with Desk(onehop) as desk:
        long_name = desk.text("a file with a name of some length", "x")
        commands = (("send", long_name, "--to", desk.address, "--wait", "0"),
                    ("send", desk.work / "nothing", "--to", desk.address),
                    ("send", long_name, "--to", desk.address, "--max-rate", "fast"),
                    ("send", long_name, "--to", desk.address, "--priority", "sometimes"),
                    ("recv", "--listen", "[fe80::1"), ("plot", "--only", "no-such-plate"),
                    ("watch", "4194303"),
                    ("doctor", "--iface", "no-such-interface"))
        for command in commands:
            screen = desk.screen(*command, environment=GIVEN)
            check(screen.code() != 0, f"{command}: {screen.rows()}")
            screen.check_whole()
            piped = subprocess.run([onehop, *map(str, command)], capture_output=True, text=True,
                                   env=os.environ | GIVEN, timeout=60)
            lines = without_confinement(onehop, piped.stderr.splitlines())
            check(len(lines) == 1, f"a line for a program: {piped.stderr}")
            check(" ".join(lines[0].split()) in " ".join(screen.text.split()),
                  f"the same words: {screen.rows()}")


def test_a_disk_with_little_room_is_told_in_three_numbers(onehop) -> None:
    with Desk(onehop) as desk, Disk("ext4", desk):
        free = os.statvfs(desk.target).f_bavail * os.statvfs(desk.target).f_frsize
        receiver = desk.recv()
        path = desk.work / "large"
        with open(path, "wb") as file:
            file.truncate(free)
        sender = desk.sender(path)
        check(sender.code() == 5, f"{sender.rows()}")
        receiver.wait_text("are needed.")
        words = " ".join(receiver.text.split())
        number = r"\d+(?:\.\d+)? M?B"
        told = (rf"has room for {number}: {number} are free, of which 67\.1 MB are kept for other "
                rf"programs, and {number} are needed\.")
        check(re.search(told, words) is not None, words)
        receiver.check_whole()


def test_a_dry_run_needs_no_receiver(onehop) -> None:
    with Desk(onehop) as desk:
        screen = desk.screen("send", desk.text("note", "a few words"), "--dry-run")
        check(screen.code() == 0 and "Nothing was sent" in screen.text, f"{screen.rows()}")


def test_help_has_what_a_person_uses(onehop) -> None:
    for command in ("send", "recv"):
        short, whole = (Screen([onehop, command, word]) for word in ("--help", "--help-all"))
        check(short.code() == 0 and whole.code() == 0, f"{short.rows()}")
        experiments = ["--bounds", "--target", "--key-interval", "--eal", "--file-io",
                       "--direct-io", "wdtcp:paper"]
        if command == "send":
            experiments += ["--link-model", "--fragment", "--mac-noack"]
        for word in experiments:
            check(word not in short.text and word in whole.text, f"{command}: {word}")
        for word in ("--max-rate", "--io", "--law", "--help-all"):
            check(word in short.text, f"{command}: {word}")
        short.check_whole()
        whole.check_whole()


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
