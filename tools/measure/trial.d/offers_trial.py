#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What an offer may do to a receiver, and what its person is asked and told: offers_trial.py ONEHOP
[WORD].

Goal:   a question ends with its session; an answer holds for what was shown; hidden names
        and lists beyond the limits are refused with a reason; what is kept, renamed or compared is
        told as it is, at both ends.
Method: the real program in the lab. The person is a pseudo terminal, the dishonest sender is
        offer-tool (tests/lab/offer_tool.cpp).
Bounds: none on time but that everything ends by itself. Memory: see the largest volume.
"""

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from typing import Any

import trial  # noqa: F401  finds tests/lab
from program import ADDRESS_B, CODE, PATIENCE, World, check, main

OK, REFUSED, UNVERIFIED, INTERRUPTED, DISK = 0, 5, 6, 7, 8
QUESTION = "anything else refuses: "


class Person:
    """`onehop recv` at a terminal of 24 rows, and the person before it."""

    def __init__(self, world, *options) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        command = world.on("b", world.onehop, "recv", "--dir", world.target, "--listen", ADDRESS_B,
                           *options)
        environment = os.environ | {"ONEHOP_CODE": CODE}

        def take_terminal() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave,
                                        env=environment, preexec_fn=take_terminal)
        os.close(slave)
        self.text, self._seen = "", 0
        threading.Thread(target=self._read, daemon=True).start()
        self.wait_for("listening on")

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # EIO: the other side has closed
            while data := os.read(self._master, 65536):
                self.text += data.decode(errors="replace")

    def wait_for(self, words) -> Any:
        """wait_for returns what came up to and with `words`, after what an earlier call
        returned."""
        give_up_at = time.monotonic() + PATIENCE
        while (at := self.text.find(words, self._seen)) < 0:
            check(time.monotonic() < give_up_at,
                  f"'{words}' is not shown in {PATIENCE} s: {self.text[self._seen:]}")
            time.sleep(0.01)
        begin, self._seen = self._seen, at + len(words)
        return self.text[begin:self._seen]

    def type(self, keys) -> None:
        os.write(self._master, keys.encode())

    def code(self) -> Any:
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it ends by itself: {self.text[-800:]}") from None

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)


def send(world, *paths) -> Any:
    return world.send([world.work / path for path in paths])


def ends(end, code, claim) -> None:
    check(end.code() == code, f"{claim}: {code}, not {end.process.returncode}: {end.text()}")


def write(folder, name, text) -> None:
    (folder / name).write_text(text)


def offered_by_tool(world, *words) -> str:
    tool = Path(world.onehop).resolve().parents[2] / "tests/lab/offer-tool"
    done = subprocess.run(world.on("a", tool, ADDRESS_B, "7411",
                                   *words), capture_output=True, text=True, timeout=5 * PATIENCE,
                          env=os.environ | {"ONEHOP_CODE": CODE}, check=False)
    check(done.returncode == 0, f"the receiver answers {words[:2]}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def test_a_question_ends_with_its_session(onehop) -> None:
    with World(onehop) as world, Person(world) as person:
        write(world.work, "a", "new")
        write(world.work, "b", "new")
        write(world.target, "a", "mine")
        sender = send(world, "a")
        person.wait_for(QUESTION)
        person.type("o")  # and no Enter
        sender.process.kill()
        person.wait_for("went away")
        ends(send(world, "b"), OK, "the next sender is served, and nobody has answered")
        sender = send(world, "a")
        person.wait_for(QUESTION)
        person.type("\n")
        ends(sender, REFUSED, "what was typed for the question before is no answer to this one")
        check((world.target / "a").read_text() == "mine", "the file is as it was")
        sender = send(world, "a")
        person.wait_for(QUESTION)
        person.type("\x03")
        check(person.code() == INTERRUPTED,
              f"Ctrl-C at the question ends it, without Enter: {person.process.returncode}")
        ends(sender, INTERRUPTED, "and its sender")


def test_SIGTERM_at_a_question_ends_it(onehop) -> None:
    with World(onehop) as world, Person(world, "--once") as person:
        write(world.work, "a", "new")
        write(world.target, "a", "mine")
        sender = send(world, "a")
        person.wait_for(QUESTION)
        person.process.send_signal(signal.SIGTERM)
        check(person.code() == INTERRUPTED, f"recv: {person.process.returncode}")
        ends(sender, INTERRUPTED, "send")


def test_every_name_in_the_way_is_shown_before_the_one_answer(onehop) -> None:
    with World(onehop) as world, Person(world) as person:
        names = [f"file-{i:02}" for i in range(58)] + ["a\x1b[2J", "b\r\nc"]
        for name in names:
            write(world.work, name, "new")
            write(world.target, name, "mine")
        write(world.work, "free", "new")
        sender = send(world, *names, "free")
        person.wait_for(QUESTION)
        person.type("o\n")  # at the end of the first page
        ends(sender, REFUSED, "an answer before every name was shown refuses")
        check({(world.target / name).read_text() for name in names} == {"mine"},
              "nothing was overwritten")
        person.wait_for("as do 59 more")
        sender, shown = send(world, *names, "free"), ""
        while "[o]verwrite" not in shown.rsplit("\n", 1)[-1]:
            page = person.wait_for(QUESTION)
            check(page.count("\n") <= 24, f"a page fits the terminal: {page.count(chr(10))} lines")
            shown += page
            if "Enter: more" in page.rsplit("\n", 1)[-1]:
                person.type("\n")
        for name in names[:58]:
            check(f"'{name}'" in shown, f"{name} is shown")
        check("'a\\u{1B}[2J'" in shown and "'b\\u{D}\\u{A}c'" in shown and "\x1b" not in shown,
              "names are escaped")
        shown = " ".join(shown.split())
        check("names that exist there: 60" in shown and "[o]verwrite them" in shown,
              f"and counted: {shown[:200]}")
        check("'free'" not in shown, "a name that is free is no conflict")
        person.type("o\n")
        ends(sender, OK, "the answer holds for all that were shown")
        check({(world.target / name).read_text() for name in [*names, "free"]} == {"new"},
              "they were overwritten")


def test_an_answer_holds_for_no_name_that_came_up_later(onehop) -> None:
    with World(onehop) as world, Person(world) as person:
        for name in ("shown", "late"):
            write(world.work, name, "new")
        write(world.target, "shown", "mine")
        sender = send(world, "shown", "late")
        check("'late'" not in person.wait_for(QUESTION), "it is not there yet")
        write(world.target, "late", "mine")
        person.type("o\n")
        second = person.wait_for(QUESTION)
        check("'late'" in second and "'shown'" not in second,
              f"it has a question of its own: {second}")
        person.type("no\n")
        ends(sender, REFUSED, "refused")
        check((world.target / "late").read_text() == "mine", "the late one is as it was")
        check((world.target / "shown").read_text() == "mine",
              "and so is the other: the offer was refused as a whole")


def test_without_a_terminal_the_refusal_counts_the_names(onehop) -> None:
    with World(onehop) as world:
        for name in ("a", "b", "c", "d"):
            write(world.work, name, "new")
        for name in ("b", "c", "d"):
            write(world.target, name, "mine")
        receiver = world.receive()
        sender = send(world, "a", "b", "c", "d")
        ends(sender, REFUSED, "send")
        ends(receiver, DISK, "recv")
        check(
            "'b'" in receiver.text() and "as do 2 more" in receiver.text()
            and "--on-exist" in receiver.text(), receiver.text())
        check("refused there" in sender.text() and "exist" not in sender.text(),
              f"the sender learns nothing of what is there: {sender.text()}")


def test_hidden_names_are_refused_by_name_unless_allowed(onehop) -> None:
    with World(onehop) as world:
        for name in ("plain", ".bashrc"):
            write(world.work, name, "new")
        receiver = world.receive()
        sender = send(world, "plain", ".bashrc")
        ends(sender, REFUSED, "send .bashrc")
        ends(receiver, DISK, "recv")
        for end in (sender, receiver):
            check(
                "'.bashrc'" in end.text() and "--allow-hidden" in end.text()
                and "dot" in end.text(), end.text())
        check(world.names() == [], f"nothing was written: {world.names()}")
        for name, why in ((".ssh/authorized_keys", "'.ssh' begins with a dot"),
                          (".profile", "'.profile' begins with a dot")):
            receiver = world.receive()
            answer = offered_by_tool(world, "names", "plain", name)
            check(
                answer.startswith("Refuse:") and f"'{name}'" in answer and why in answer
                and "--allow-hidden" in answer, answer)
            ends(receiver, DISK, f"recv, offered {name}")
            check(f"'{name}'" in receiver.text(), receiver.text())
            check(world.names() == [], f"nothing was written: {world.names()}")
            receiver = world.receive("udp", "--allow-hidden")
            check(offered_by_tool(world, "names", name) == "Accept", f"{name} is allowed")
            receiver.code()
        receiver = world.receive("udp", "--allow-hidden")
        ends(send(world, ".bashrc"), OK, "allowed")
        ends(receiver, OK, "allowed")
        check((world.target / ".bashrc").read_text() == "new", "it is there")


def test_skip_tells_what_is_the_same_and_what_is_not(onehop) -> None:
    def same(there, data) -> None:
        there.write_bytes(data)

    def other_content(there, data) -> None:
        there.write_bytes(data[:300_000] + b"x" + data[300_001:])

    def other_size(there, data) -> None:
        there.write_bytes(data + b"x")

    def fifo(there, _) -> None:
        os.mkfifo(there)

    def symlink(there, data) -> None:
        there.with_name("elsewhere").write_bytes(data)
        there.symlink_to("elsewhere")

    with World(onehop) as world:
        (world.work / "f").write_bytes(data := bytes(range(1, 251)) * 4000)
        write(world.work, "new", "new")
        for make, code in ((same, OK), (other_content, UNVERIFIED), (other_size, UNVERIFIED),
                           (fifo, UNVERIFIED), (symlink, UNVERIFIED)):
            make(world.target / "f", data)
            before = (world.target / "f").lstat()
            receiver = world.receive("udp", "--on-exist", "skip")
            sender = send(world, "f", "new")
            for role, end in (("send", sender), ("recv", receiver)):
                claim = f"{make.__name__}, {role}"
                ends(end, code, claim)
                files = {event["name"]: event for event in end.events("file")}
                outcome = "there" if code == OK else "kept"
                check((files["f"]["outcome"], files["f"]["verified"]) == (outcome, code == OK),
                      f"{claim}: {files['f']}")
                check((files["f"]["digest"] is None) == (code != OK), f"{claim}: {files['f']}")
                check((files["new"]["outcome"], files["new"]["verified"]) == ("received", True),
                      f"{claim}: {files['new']}")
                last = end.end()
                check(
                    last["files_total"] == (2 if code == OK else 1)
                    and last["files_kept_total"] == (0 if code == OK else 1),
                    f"{claim}: counted: {last}")
                check(last["bytes_total"] == 3 + (len(data) if code == OK else 0),
                      f"{claim}: bytes: {last['bytes_total']}")
                check(last["bytes_skipped_total"] == (len(data) if code == OK else 0),
                      f"{claim}: there before: {last['bytes_skipped_total']}")
                check(last["hash_ok"] == (code == OK) and last["exit_code"] == code,
                      f"{claim}: {last}")
                told = ("there already" in end.text() if code == OK else
                        "not the same" in end.text() and "'f'" in end.text())
                check(told, f"{claim}: {end.text()}")
                check("the peer has it" not in end.text(), f"{claim}: {end.text()}")
            after = (world.target / "f").lstat()
            check((before.st_ino, before.st_size,
                   before.st_mtime_ns) == (after.st_ino, after.st_size, after.st_mtime_ns),
                  f"{make.__name__}: it is as it was")
            check((world.target / "new").read_text() == "new", "the other file came")
            check(
                sender.end()["frames_total"] < 100,
                f"{make.__name__}: no byte of it was sent: {sender.end()['frames_total']} frames")
            for name in world.names():
                (world.target / name).unlink()


def test_what_arrived_is_told_with_its_path_and_the_peer_at_both_ends(onehop) -> None:
    with World(onehop) as world:
        write(world.work, "aa", "new")
        write(world.target, "aa", "mine")
        for number in (2, 3):
            receiver = world.receive("udp", "--on-exist", "rename")
            sender = send(world, "aa")
            ends(sender, OK, "send")
            ends(receiver, OK, "recv")
            path = str(world.target.resolve() / f"aa ({number})")
            check(Path(path).read_text() == "new", "it has that name")
            for end, peer in ((sender, ADDRESS_B), (receiver, "10.111.0.1")):
                [event] = end.events("file")
                check(
                    event["name"] == "aa" and event["path"] == path
                    and event["outcome"] == "received", f"{event}")
                check(
                    end.end()["peer"] == peer
                    and end.end()["directory"] == str(world.target.resolve()), f"{end.end()}")
                check(path in end.text() and peer in end.text().split(path)[-1],
                      f"the summary names both: {end.text()}")
                check(not re.search(r"^aa  ", end.text(), re.MULTILINE),
                      f"the name that it did not get is not shown: {end.text()}")


def test_a_list_beyond_the_limits_is_refused_with_the_number(onehop) -> None:
    with World(onehop) as world:
        receiver = world.receive()
        answer = offered_by_tool(world, "sized", str(2 ** 63 - 1))
        said = (str(2 ** 63 - 1), str(2 ** 62))
        check(answer.startswith("Refuse:") and all(word in answer for word in said), answer)
        receiver.wait_for(lambda: all(word in receiver.text() for word in said), "recv says so")
        write(world.work, "a", "new")
        ends(send(world, "a"), OK, "it still serves an honest sender")
        ends(receiver, OK, "recv --once")


# Method: the largest volume that a peer may offer, and one entry more. Bounds: entries of 64
# bytes, whose names fit into them, 24 bytes beside each for what was found of it, twice as much
# while the list grows, and the 33 MB of buffers that any transfer has.
def test_the_largest_volume_costs_a_bounded_memory(onehop) -> None:
    count = 65_536
    with World(onehop) as world:
        receiver = world.receive()
        answer = offered_by_tool(world, "many", str(count + 1))
        check(answer.startswith("Failure:") and "too many" in answer, answer)

        def peak() -> int:
            return int(
                re.search(r"VmHWM:\s+(\d+)",
                          Path(f"/proc/{receiver.process.pid}/status").read_text())[1]) * 1024

        before = peak()
        check(offered_by_tool(world, "many", str(count)) == "Accept", "so many are taken")
        cost, most = peak() - before, 40e6 + 200 * count
        check(cost < most,
              f"{count} files cost the receiver {cost / 1e6:.0f} MB, at most {most / 1e6:.0f}")
        receiver.code()


if __name__ == "__main__":
    sys.exit(main(globals()))
