#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Paired devices over loopback: pair_program_test.py ONEHOP [WORD].

Goal:   words are typed once; then nothing is, and the receiver does what its rule for the device
        says. Whoever is not that device gets nothing: with a copy of its key, with what it said
        before, with another key.
Method: the real program at both ends, each with a folder of devices of its own; the attacks by
        Python on the same port, and by changing the files of keys.
Bounds: exact.
"""

import contextlib
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loopback import Loopback, check
from program import CODE, End, free_address, main
from screen import Screen

DONE, USAGE, UNREACHABLE, AUTH, REFUSED, UNVERIFIED, LOCAL = 0, 2, 3, 4, 5, 6, 8
TAG, AS_DEVICE = b"onehop1\n", b"\x01"


class Pair(Loopback):
    """Devices, each with a folder of its own."""

    def device(self, name) -> dict[str, str]:
        return {"ONEHOP_CONFIG_DIR": str(self.work / name)}

    def files(self, name) -> Path:
        return self.work / name / "pairing"

    def run_as(self, name, *command, code=None) -> End:
        """run_as starts a command of that device, with a code where one is given."""
        os.environ["ONEHOP_STATE_DIR"] = ""
        # Else `onehop watch` of another test wakes it.
        runtime = self.work / "run"
        runtime.mkdir(mode=0o700, exist_ok=True)
        words = ["env", *([] if code else ["-u", "ONEHOP_CODE"]), f"XDG_RUNTIME_DIR={runtime}",
                 f"ONEHOP_CONFIG_DIR={self.work / name}", self.onehop, *map(str, command)]
        end = End(words, self.work, f"end{len(self._ends)}", code or "")
        self._ends.append(end)
        return end

    def done(self, name, *command, code=DONE) -> End:
        end = self.run_as(name, *command)
        check(end.code() == code, f"{command} is {code}, not {end.process.returncode}: "
              f"{end.text()}")
        return end

    def pair(self, one="ann", other="bob", known="") -> None:
        """pair has `one` ask for what `other` shows, and calls `known` from now on."""
        address = free_address()
        shows = self.run_as(other, "pair", "--listen", address, "--name", other, "--json",
                            code=CODE)
        shows.wait_for(lambda: shows.events("start"), "it waits")
        asks = self.run_as(one, "pair", address, "--name", one, "--json", code=CODE)
        for end, device in ((asks, other), (shows, known or one)):
            check(end.code() == DONE, f"it ends with 0: {end.text()}")
            check([event["device"] for event in end.events("paired")] == [device],
                  f"it knows {device}: {end.text()}")

    def waiting(self, name="bob", *options) -> End:
        end = self.run_as(name, "recv", "--once", "--dir", self.target, "--listen", self.address,
                          "--json", *options)
        end.wait_for(lambda: end.events("start"), "recv can accept")
        return end

    def send_to(self, device="bob", name="ann", options=(), size=300_000) -> End:
        return self.run_as(name, "send", self.file(size), "--to", f"{device}@{self.address}",
                           "--json", *options)

    def check_sent(self, receiver, sender) -> None:
        for end in (sender, receiver):
            check(end.code() == DONE, f"it ends with 0: {end.text()}")
        sent = (self.work / "file.bin").read_bytes()
        check((self.target / "file.bin").read_bytes() == sent, "the file is there")

    def check_refused(self, sender, code, *words) -> None:
        check(sender.code() == code, f"send ends with {code}: {sender.text()}")
        for word in words:
            check(word in sender.text(), f"it says {word}: {sender.text()}")
        check(not list(self.target.iterdir()), "nothing was written")


def test_paired_devices_type_nothing(onehop) -> None:
    with Pair(onehop) as world:
        world.pair()
        for name in ("ann", "bob"):
            folder = world.files(name)
            for path in (folder, folder / "peers", *folder.rglob("*")):
                mode = stat.S_IMODE(path.stat().st_mode)
                check(mode == (0o700 if path.is_dir() else 0o600), f"{path} is private: {mode:o}")
        world.done("bob", "peers", "set", "ann", "--rule", "accept")
        world.check_sent(world.waiting(), world.send_to())
        # The other way round, into a folder of its own.
        own = world.work / "own"
        own.mkdir()
        world.done("ann", "peers", "set", "bob", "--rule", "accept", "--dir", own)
        receiver = world.waiting("ann")
        sender = world.send_to("ann", "bob")
        check(sender.code() == DONE and receiver.code() == DONE, f"{sender.text()}")
        check((own / "file.bin").exists(), "it is in the folder that was named")


def test_the_rule_decides(onehop) -> None:
    with Pair(onehop) as world:
        world.pair()
        receiver = world.waiting()
        world.check_refused(world.send_to(), REFUSED)  # ask, and nobody is there
        check(receiver.code() == REFUSED, f"{receiver.text()}")
        world.done("bob", "peers", "set", "ann", "--rule", "refuse")
        receiver = world.waiting()
        world.check_refused(world.send_to(), REFUSED, "takes no files of this device")
        receiver.process.terminate()
        world.done("bob", "peers", "set", "ann", "--rule", "ask")
        environment = world.device("bob") | {"ONEHOP_STATE_DIR": ""}
        for answer, code in (("n", REFUSED), ("y", DONE)):
            screen = Screen([world.onehop, "recv", "--once", "--dir", world.target, "--listen",
                             world.address], environment)
            screen.wait_text("listening on")
            sender = world.send_to()
            screen.wait_text("Take them?")
            shown = " ".join(screen.text.split())
            check(all(words in shown for words in ("'ann' (127.0.0.1)", "offers 1 file, ", "free",
                                                   "'file.bin', ")),
                  f"who, how many, how much, room: {screen.rows()}")
            screen.write(answer + "\n")
            check(sender.code() == code, f"{answer} is {code}: {sender.text()}")
            screen.code()
        check((world.target / "file.bin").exists(), "the file is there")


def test_remember_in_a_transfer(onehop) -> None:
    with Pair(onehop) as world:
        for here, there in ((True, False), (False, True), (True, True)):
            receiver = world.run_as("bob", "recv", "--once", "--dir", world.target, "--listen",
                                    world.address, "--on-exist", "overwrite", "--json", "--name",
                                    "bob", *(["--remember"] if here else []), code=CODE)
            receiver.wait_for(lambda end=receiver: end.events("start"), "recv can accept")
            sender = world.run_as("ann", "send", world.file(100), "--to", world.address, "--json",
                                  *(["--remember"] if there else []), code=CODE)
            world.check_sent(receiver, sender)
            count = len(sender.events("paired")) + len(receiver.events("paired"))
            check(count == (2 if here and there else 0), f"both or neither: {sender.text()}")
        world.done("bob", "peers", "set", sender_name(world), "--rule", "accept")
        (world.target / "file.bin").unlink()
        world.check_sent(world.waiting(), world.send_to())


def sender_name(world) -> str:
    """What bob calls the sender, which introduced itself by its host's name."""
    listed = world.done("bob", "peers", "--json").events("device")
    check(len(listed) == 1, f"one device: {listed}")
    return str(listed[0]["device"])


def test_peers_are_listed_renamed_and_forgotten(onehop) -> None:
    with Pair(onehop) as world:
        check("No device is paired" in world.done("bob", "peers").output.read_text(), "none yet")
        world.pair()
        world.done("bob", "peers", "rename", "ann", "the box")
        world.done("bob", "peers", "rename", "ann", "x", code=USAGE)
        world.done("bob", "peers", "rename", "the box", "a@b", code=USAGE)
        world.done("bob", "peers", "set", "the box", "--rule", "maybe", code=USAGE)
        world.done("bob", "peers", "set", "the box", "--dir", "/no/such", code=LOCAL)
        world.done("bob", "peers", "set", "the box", "--dir", "two\nlines", code=USAGE)
        gone = world.work / "gone"
        gone.mkdir()
        world.done("bob", "peers", "set", "the box", "--dir", gone)
        gone.rmdir()
        world.done("bob", "peers", "set", "the box", "--rule", "refuse")
        world.done("bob", "peers", "set", "the box", "--rule", "ask", "--dir", "none")
        listed = world.done("bob", "peers", "--json").events("device")
        check([one["device"] for one in listed] == ["the box"] and listed[0]["rule"] == "ask",
              f"{listed}")
        check("the box" in world.done("bob", "peers").output.read_text(), "and for people")
        world.pair(known="the box")  # again: the name stays, the secret is another
        check(len(world.done("bob", "peers", "--json").events("device")) == 1, "it is the same one")
        world.done("bob", "peers", "forget", "the box")
        receiver = world.waiting()
        world.check_refused(world.send_to(), AUTH, "has forgotten this device", "onehop pair")
        check("none that is known here" in receiver.text(), f"{receiver.text()}")
        world.done("ann", "send", "/etc/hostname", "--to", f"nobody@{world.address}", code=USAGE)


def test_K9_a_paired_device_pairs_nothing_without_the_code(onehop) -> None:
    with Pair(onehop) as world:
        world.pair()
        before = (world.files("bob") / "peers").iterdir().__next__().read_text()
        shows = world.run_as("bob", "pair", "--listen", world.address, "--json", code=CODE)
        shows.wait_for(lambda: shows.events("start"), "it waits")
        world.check_refused(world.send_to(options=("--remember", )), AUTH, "forgotten this device")
        check(shows.process.poll() is None and not shows.events("paired"), "it waits for the code")
        shows.process.terminate()
        shows.code()
        after = (world.files("bob") / "peers").iterdir().__next__().read_text()
        check(after == before, "and nothing was kept")
        # Who is known is not asked again.
        receiver = world.waiting("bob", "--remember")
        world.done("bob", "peers", "set", "ann", "--rule", "accept")
        sender = world.send_to(options=("--remember", ))
        check(not sender.events("paired") and not receiver.events("paired"), "nobody is kept anew")
        sender.process.terminate()


def test_K9_a_code_is_not_passed_over(onehop) -> None:
    with Pair(onehop) as world:
        world.pair()
        sender = world.run_as("ann", "send", "/etc/hostname", "--to", f"bob@{world.address}",
                              code=CODE)
        check(sender.code() == USAGE and "a code was given" in sender.text(), sender.text())


def test_K9_a_key_that_changed_is_refused(onehop) -> None:
    with Pair(onehop) as world:
        world.pair()
        world.pair("eve", "dan")
        world.done("bob", "peers", "set", "ann", "--rule", "accept")
        kept = world.files("bob") / "device.key"
        own = kept.read_text()
        kept.write_text((world.files("dan") / "device.key").read_text())
        receiver = world.waiting()
        world.check_refused(world.send_to(), AUTH, "is not the one that it was paired with",
                            "peers forget bob")
        check("by another key" in receiver.text(), f"{receiver.text()}")
        receiver.process.terminate()
        receiver.code()
        kept.write_text(own)
        (world.files("ann") / "device.key").write_text(
            (world.files("eve") / "device.key").read_text())
        receiver = world.waiting()
        world.check_refused(world.send_to(), AUTH, "knows this device by another key")
        check("shows another key" in receiver.text(), f"{receiver.text()}")


def test_K9_a_key_that_was_copied_is_of_no_use(onehop) -> None:
    with Pair(onehop) as world:
        world.pair()
        world.done("bob", "peers", "set", "ann", "--rule", "accept")
        # All of it, on another machine.
        if os.geteuid() == 0 and Path("/etc/machine-id").exists():
            other = world.text("machine-id", "0123456789abcdef0123456789abcdef\n")
            os.environ["ONEHOP_CONFIG_DIR"] = str(world.work / "ann")
            copied = subprocess.run(
                ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/machine-id && exec "$@"',
                 other, world.onehop, "send", "/etc/hostname", "--to", f"bob@{world.address}"],
                capture_output=True, text=True, check=False, env={
                    key: value for key, value in os.environ.items() if key != "ONEHOP_CODE"})
            del os.environ["ONEHOP_CONFIG_DIR"]
            check(copied.returncode == LOCAL and "another machine" in copied.stderr,
                  f"it is refused there: {copied.stderr}")
        # The key alone, and what is public of the pair.
        world.pair("eve", "dan")
        shutil.copy(world.files("ann") / "device.key", world.files("eve") / "device.key")
        for path in (world.files("eve") / "peers").iterdir():
            path.unlink()
        peer = next((world.files("ann") / "peers").iterdir())
        lines = [f'secret = "{"00" * 32}"' if line.startswith("secret") else line
                 for line in peer.read_text().splitlines()]
        copy = world.files("eve") / "peers" / peer.name
        copy.write_text("\n".join(lines) + "\n")
        copy.chmod(0o600)
        receiver = world.waiting()
        world.check_refused(world.send_to("bob", "eve"), AUTH)
        check("none that is known here" in receiver.text(), f"{receiver.text()}")
        # And a device is not paired with its own copy.
        address = free_address()
        shows = world.run_as("ann", "pair", "--listen", address, "--json", code=CODE)
        shows.wait_for(lambda: shows.events("start"), "it waits")
        asks = world.run_as("eve", "pair", address, "--json", code=CODE)
        check(asks.code() == REFUSED, f"{asks.text()}")
        shows.wait_for(lambda: "has the same key" in shows.text(), "it says why")


def test_what_others_can_read_is_refused(onehop) -> None:
    with Pair(onehop) as world:
        world.pair()
        key = world.files("ann") / "device.key"
        for path, mode, hint in ((key, 0o644, "chmod 600"), (key, 0o600, ""),
                                 (world.files("ann"), 0o777, "chmod go-w")):
            path.chmod(mode)
            if hint:
                end = world.send_to()
                check(end.code() == LOCAL and hint in end.text(), f"{end.text()}")


@contextlib.contextmanager
def relay(address) -> Iterator[Any]:
    """relay passes one connection on, and keeps what the sender said."""
    host, port = address.split(":")
    own = socket.create_server(("127.0.0.1", 0))
    said: list[bytes] = []

    def pump(source, sink, keep) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if keep:
                    said.append(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                sender, _ = own.accept()
                receiver = socket.create_connection((host, int(port)))
                threading.Thread(target=pump, args=(receiver, sender, False), daemon=True).start()
                pump(sender, receiver, True)

    threading.Thread(target=serve, daemon=True).start()
    yield own.getsockname()[1], said
    own.close()


def ask(address, *parts) -> bytes:
    """ask says that to a receiver, which may close before all is said, and gives its answer."""
    host, port = address.split(":")
    heard = b""
    with socket.create_connection((host, int(port)), timeout=10) as peer:
        with contextlib.suppress(OSError):
            for part in parts:
                peer.sendall(part)
            peer.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            while data := peer.recv(65536):
                heard += data
    return heard


def test_K10_what_was_said_before_opens_nothing(onehop) -> None:
    with Pair(onehop) as world:
        world.pair()
        world.done("bob", "peers", "set", "ann", "--rule", "refuse")
        receiver = world.waiting()
        with relay(world.address) as (port, said):
            sender = world.run_as("ann", "send", world.file(100), "--to", f"bob@127.0.0.1:{port}")
            check(sender.code() == REFUSED, f"a relay passes it on: {sender.text()}")
        receiver.process.terminate()
        receiver.code()
        receiver = world.waiting()
        recorded = b"".join(said)
        check(recorded.startswith(TAG) and recorded[24:25] == AS_DEVICE, "it came as a device")
        for words in ([recorded], [recorded[:25], os.urandom(32)],
                      [TAG + os.urandom(16) + AS_DEVICE, recorded[25:]]):
            heard = ask(world.address, *words)
            # A greeting and 32 bytes that are random to us, and no byte of TLS.
            check(len(heard) == 25 + 32, f"{len(heard)} bytes")
        receiver.wait_for(lambda: "none that is known here" in receiver.text(), "it says so")
        check(not list(world.target.iterdir()), "nothing was written")


def test_K10_who_knows_no_device_shows_nothing_of_it(onehop) -> None:
    with Pair(onehop) as world:
        receiver = world.waiting()
        words = TAG + os.urandom(16) + AS_DEVICE, os.urandom(32)
        heard = {ask(world.address, *words) for _ in range(2)}
        check({len(one) for one in heard} == {57} and len({one[25:] for one in heard}) == 2,
              "as one that knows others, it answers with random bytes")
        check(receiver.process.poll() is None, "and goes on")


def test_receipts_are_signed(onehop) -> None:
    with Pair(onehop) as world:
        world.pair()
        world.done("bob", "peers", "set", "ann", "--rule", "accept")
        files = [world.work / "sent.json", world.work / "received.json"]
        receiver = world.waiting("bob", "--receipt", files[1])
        world.check_sent(receiver, world.send_to(options=("--receipt", files[0])))
        for file in files:
            check(len(json.loads(file.read_text())["signature"]) == 128, "it has a signature")
            for name in ("ann", "bob"):
                text = world.done(name, "receipt", "--check", file).output.read_text()
                is_own = (name == "ann") == (file == files[0])
                check(("this device" if is_own else "paired device") in text, text)
            world.done("eve", "receipt", "--check", file, code=AUTH)
        whole = files[1].read_text()
        for old, new in (("file.bin", "file.bim"), ('"complete": true', '"complete": false'),
                         ('"signature": "', '"signature": "0')):
            files[1].write_text(whole.replace(old, new))
            world.done("ann", "receipt", "--check", files[1], code=UNVERIFIED)
        files[1].write_text(whole.replace(json.loads(whole)["device_key"],
                                          json.loads(files[0].read_text())["device_key"]))
        world.done("ann", "receipt", "--check", files[1], code=UNVERIFIED)
        world.done("ann", "receipt", "--check", world.text("none", "{}"), code=UNVERIFIED)
        world.done("ann", "receipt", "--check", world.work / "absent", code=LOCAL)


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
