#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A receiver that is always there, over loopback: service_program_test.py ONEHOP [WORD].

Goal:   `recv --service` serves paired devices alone, several at once, and asks nobody. It tells
        systemd, a program and a file what it did. A sender goes on when its receiver comes back.
Method: the real program at all ends, each with a folder of devices of its own; a socket of the test
        in systemd's place.
Bounds: those of the service at rest are the project's: 2 wake-ups a second, and 20 MiB, before its
        first session and after the last one. Else exact.
"""

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from loopback import MB, check
from pair_program_test import AUTH, DONE, REFUSED, USAGE, Pair
from program import CODE, Skip, free_address, is_sanitized, main

os.environ["DBUS_SESSION_BUS_ADDRESS"] = ""  # that of who tests is no part of it
ROOT = Path(__file__).resolve().parents[2]
INTERRUPTED = 7
WAKEUPS_PER_S_MAX, RSS_KIB_MAX, EXPOSURE_MAX = 2, 20 * 1024, 1.5


class Served(Pair):
    """bob serves ann and eve."""

    def __enter__(self) -> Any:
        super().__enter__()
        for name in ("ann", "eve"):
            self.pair(name)
            (self.work / f"of-{name}").mkdir()
            self.done("bob", "peers", "set", name, "--rule", "accept", "--dir",
                      self.work / f"of-{name}")
        return self

    def serve(self, *options) -> Any:
        end = self.run_as("bob", "recv", "--service", "--dir", self.target, "--listen",
                          self.address, "--json", *options)
        end.wait_for(lambda: end.events("start"), "it can accept")
        return end

    def files_of(self, size, name) -> Path:
        path = self.work / name
        path.write_bytes(os.urandom(size))
        return path

    def send_as(self, name, path, *options) -> Any:
        return self.run_as(name, "send", path, "--to", f"bob@{self.address}", "--json", *options)

    def check_received(self, name, path) -> None:
        check((self.work / f"of-{name}" / path.name).read_bytes() == path.read_bytes(),
              f"{path.name} of {name} is there")


def switches(pid) -> int:
    found = [re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read_text(), re.M)
             for status in Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(int(one[1]) for one in found if one)


def threads(pid) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def rss_kib(pid) -> int:
    found = re.search(r"^VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M)
    return int(found[1]) if found else 0


def test_several_sessions_at_once_and_then_rest(onehop) -> None:
    with Served(onehop) as world:
        service = world.serve("--hidden")  # other tests look for receivers
        at_start, threads_at_start = rss_kib(service.process.pid), threads(service.process.pid)
        check(at_start <= RSS_KIB_MAX or is_sanitized(onehop), f"{at_start} KiB at rest")
        paths = [world.files_of(12 * MB, f"file{i}.bin") for i in range(4)]
        senders = [world.send_as(name, path, "--max-rate", "60Mbit")
                   for name, path in zip(("ann", "eve", "ann", "eve"), paths)]
        for sender in senders:
            check(sender.code() == DONE, f"{sender.text()}")
        for name, path in zip(("ann", "eve", "ann", "eve"), paths):
            world.check_received(name, path)
        service.wait_for(lambda: len(service.events("end")) == 4, "it has told all four")
        told = [(event["type"], event["session"]) for event in service.events()
                if event["type"] in ("port", "end")]
        check([kind for kind, _ in told] == ["port"] * 4 + ["end"] * 4, f"all at once: {told}")
        check({number for _, number in told} == {1, 2, 3, 4}, f"each has its number: {told}")
        devices = [end["device"] for end in service.events("end")]
        check(sorted(devices) == ["ann", "ann", "eve", "eve"], f"and its device: {devices}")
        service.wait_for(lambda: threads(service.process.pid) <= threads_at_start,
                         "the sessions' threads have ended")
        before, seconds = switches(service.process.pid), 5
        time.sleep(seconds)
        wakeups = (switches(service.process.pid) - before) / seconds
        at_end = rss_kib(service.process.pid)
        print(f"at rest: {wakeups:.1f} wake-ups/s, {at_start} KiB, and {at_end} KiB after the "
              "sessions")
        if not is_sanitized(onehop):
            check(at_end <= RSS_KIB_MAX, f"{at_end} KiB after the sessions")
        check(wakeups <= WAKEUPS_PER_S_MAX, f"{wakeups} wake-ups a second at rest")
        service.process.terminate()
        check(service.code() == DONE, f"it ends in order: {service.text()}")


def test_K11_what_is_changed_holds_for_the_next_session(onehop) -> None:
    with Pair(onehop) as world:
        world.pair()
        receiver = world.run_as("bob", "recv", "--dir", world.target, "--listen", world.address,
                                "--on-exist", "overwrite", "--json")
        receiver.wait_for(lambda: receiver.events("start"), "recv can accept")
        world.check_refused(world.send_to(), REFUSED)  # ask, and nobody is there
        world.done("bob", "peers", "set", "ann", "--rule", "accept")
        sender = world.send_to()
        check(sender.code() == DONE and (world.target / "file.bin").exists(), sender.text())
        (world.target / "file.bin").unlink()
        world.done("bob", "peers", "set", "ann", "--rule", "refuse")
        world.check_refused(world.send_to(), REFUSED, "takes no files of this device")
        world.pair("eve")
        world.done("bob", "peers", "set", "eve", "--rule", "accept")
        check(world.send_to(name="eve").code() == DONE, "one that was paired meanwhile is served")
        (world.target / "file.bin").unlink()
        kept = next(path for path in (world.files("bob") / "peers").iterdir()
                    if '"ann"' in path.read_text())
        whole = kept.read_text()
        kept.write_text("broken")
        check(world.send_to(name="eve").code() == DONE, "what cannot be read changes nothing")
        check("stay as they were known" in receiver.text(), receiver.text())
        (world.target / "file.bin").unlink()
        kept.write_text(whole)
        world.done("bob", "peers", "forget", "ann")
        world.check_refused(world.send_to(), AUTH, "has forgotten this device")


def test_K11_paired_devices_alone_and_nobody_is_asked(onehop) -> None:
    with Served(onehop) as world:
        refused = world.run_as("bob", "recv", "--service", "--listen", world.address, code=CODE)
        check(refused.code() == USAGE and "a code was given" in refused.text(), refused.text())
        service = world.serve()
        check(not service.events("code"), "no code is shown")
        file = world.files_of(1000, "file.bin")
        stranger = world.run_as("dan", "send", file, "--to", world.address, code=CODE)
        check(stranger.code() == AUTH, f"a stranger: {stranger.text()}")
        world.done("bob", "peers", "set", "eve", "--rule", "ask")
        asked = world.send_as("eve", file)
        check(asked.code() == REFUSED and "asks nobody" in asked.text(), asked.text())
        service.wait_for(lambda: "asks nobody" in service.text(), "it says so here, too")
        world.done("bob", "peers", "forget", "eve")
        check(world.send_as("eve", file).code() == AUTH, "who was forgotten is a stranger")
        check(world.send_as("ann", file).code() == DONE, "and the others are served")
        file.write_bytes(b"another")
        there = world.send_as("ann", file)
        check(there.code() == REFUSED, f"what a person would be asked is refused: {there.text()}")


def test_a_program_is_run_after_each_session(onehop) -> None:
    with Served(onehop) as world:
        program = world.text("arrived.sh", f"""#!/bin/sh
env | grep ^ONEHOP_ | sort > {world.work}/facts.new
[ $# -eq 0 ] && mv {world.work}/facts.new {world.work}/facts
echo to standard output
exit 3
""")
        program.chmod(0o755)
        service = world.serve("--on-received", program)
        name = "$(touch made) `touch made`;.bin"
        check(world.send_as("ann", world.files_of(1000, name)).code() == DONE, "it is received")
        facts = world.work / "facts"
        service.wait_for(facts.exists, "the program has run")
        found = dict(line.split("=", 1) for line in facts.read_text().splitlines())
        check(found["ONEHOP_DEVICE"] == "ann" and found["ONEHOP_FILES"] == "1"
              and found["ONEHOP_BYTES"] == "1000", f"{found}")
        check(found["ONEHOP_PATH"] == str(world.work / "of-ann" / name), f"{found}")
        check("ONEHOP_CODE" not in found, "no code")
        check(not list(Path.cwd().glob("made")), "no shell has seen the name")
        service.wait_for(lambda: "ended with 3" in service.text(), "how it ended is said")
        check("to standard output" not in service.output.read_text(), "JSON lines stay alone")
        for place in (world.work / "none", world.work):
            refused = world.run_as("bob", "recv", "--service", "--listen", free_address(),
                                   "--on-received", place)
            check(refused.code() == 8 and "may run" in refused.text(), refused.text())


def arrivals_of(pid) -> Path:
    """The process that runs programs for the receiver `pid`, in /proc."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if (Path("/proc") / child / "comm").read_text() == "onehop-arrivals\n":
            return Path("/proc") / child
    raise AssertionError(f"{pid} has none")


def sockets_of(process) -> dict[int, int]:
    """Descriptors of a process by the inodes of their sockets."""
    named = {int(entry.name): os.readlink(entry) for entry in (process / "fd").iterdir()}
    return {int(name[8:-1]): fd for fd, name in named.items() if name.startswith("socket:[")}


def other_end_of(pid, process) -> socket.socket:
    """The end of `pid` of the one socket that `process` has: a pair has numbers in a row."""
    theirs = next(iter(sockets_of(process)))
    ours = sockets_of(Path(f"/proc/{pid}"))
    number = next(ours[inode] for inode in (theirs - 1, theirs + 1) if inode in ours)
    pidfd_getfd = 438
    fd = ctypes.CDLL(None, use_errno=True).syscall(pidfd_getfd, os.pidfd_open(pid), number, 0)
    if fd < 0:
        raise Skip(f"take the receiver's descriptor: {os.strerror(ctypes.get_errno())}")
    return socket.socket(fileno=fd)


def test_D5_who_takes_over_the_receiver_has_no_program_started_by_a_variable(onehop) -> None:
    with Served(onehop) as world:
        told = world.work / "told"
        program = world.text("told.sh", f"#!/bin/sh\nenv > {told}.new && mv {told}.new {told}\n")
        program.chmod(0o755)
        service = world.serve("--on-received", program)
        pid = service.process.pid
        with other_end_of(pid, arrivals_of(pid)) as end:
            end.send(b"LD_LIBRARY_PATH=/tmp\0ENV=/tmp/evil\0ONEHOP_DEVICE=ann\0")
        service.wait_for(told.exists, "a program has run")
        names = {line.split("=")[0] for line in told.read_text().splitlines()}
        check("ONEHOP_DEVICE" in names and not names & {"LD_LIBRARY_PATH", "ENV"}, f"{names}")


def test_D5_a_program_has_no_rights_and_no_signals_of_the_receiver(onehop) -> None:
    if os.geteuid() != 0:
        raise Skip("another user's process is started by root alone")
    nobody = 65534
    with Served(onehop) as world:
        world.become(nobody)
        told = world.target / "told"
        program = world.text("told.sh", f"""#!/bin/sh
grep -E '^(Sig(Blk|Ign)|Cap(Prm|Eff|Amb)):' /proc/self/status > {told}.new
mv {told}.new {told}
""")
        program.chmod(0o755)
        for path in (world.work / "bob", *(world.work / "bob").rglob("*"), world.target,
                     world.work / "of-ann"):
            os.chown(path, nobody, nobody)
        caps = "+net_raw,+net_admin"
        world.onehop = "/usr/bin/env"  # run_as() starts it with the words that follow
        service = world.run_as(
            "bob", "setpriv", "--reuid", nobody, "--regid", nobody, "--clear-groups", "--inh-caps",
            caps, "--ambient-caps", caps, onehop_of(onehop, world), "recv", "--service", "--dir",
            world.target, "--listen", world.address, "--json", "--on-received", program)
        service.wait_for(lambda: service.events("start"), "it can accept")
        world.onehop = str(onehop)
        check(world.send_as("ann", world.files_of(10, "file.bin")).code() == DONE, "received")
        service.wait_for(told.exists, "the program has run")
        for line in told.read_text().splitlines():
            check(int(line.split()[1], 16) == 0, f"none of the receiver's: {line}")


def onehop_of(onehop, world) -> Path:
    """The program, where another user can start it."""
    copy = world.work / "onehop"
    return copy if copy.exists() else Path(onehop)


def test_metrics_are_written_as_a_whole(onehop) -> None:
    with Served(onehop) as world:
        file = world.work / "onehop.prom"
        service = world.serve("--metrics", file)
        check(file.read_text().endswith("# EOF\n"), "from the start on")
        check(world.send_as("ann", world.files_of(5000, "file.bin")).code() == DONE, "received")
        service.wait_for(lambda: "onehop_bytes_total" in file.read_text(), "it is counted")
        text = file.read_text()
        for line in ('onehop_bytes_total{device="ann"} 5000', 'onehop_files_total{device="ann"} 1',
                     'onehop_sessions_total{device="ann",exit_code="0"} 1'):
            check(line in text, f"{line}: {text}")
        families = re.findall(r"^# TYPE (\w+) (counter|gauge|summary)$", text, re.M)
        for line in text.splitlines():
            name = re.split(r"[{ ]", line)[0]
            check(line.startswith("#") or any(name.startswith(family) for family, _ in families),
                  f"of a family: {line}")
            check(line.startswith("#") or re.fullmatch(r"\w+(\{.*\})? [0-9.e+-]+", line), line)
        check([path.name for path in world.work.glob("onehop.prom*")] == [file.name],
              "nothing is left beside it")


def test_an_end_in_order_waits_for_nobody_new(onehop) -> None:
    with Served(onehop) as world:
        service = world.serve("--sessions", "2", "--hidden")
        senders = [world.send_as("ann", world.files_of(30 * MB, f"file{i}.bin"), "--max-rate",
                                 "30Mbit", "--wait", "60") for i in range(4)]
        service.wait_for(lambda: len(service.events("port")) == 2, "two are served")
        service.wait_for(lambda: sum("is busy" in sender.text() for sender in senders) == 2,
                         "and two wait")
        service.process.terminate()
        # What two senders send is 8 s each at that rate.
        check(service.process.wait(6) == INTERRUPTED, f"it ends: {service.text()}")
        for sender in senders:
            check(sender.code() in (REFUSED, INTERRUPTED), f"and says so: {sender.text()}")
        check(len(service.events("end")) == 2, "nobody's session began")


def test_systemd_is_told(onehop) -> None:
    with Served(onehop) as world, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        path = str(world.work / "notify")
        manager.bind(path)
        manager.settimeout(20)
        os.environ |= {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "400000"}
        try:
            service = world.serve()
        finally:
            del os.environ["NOTIFY_SOCKET"], os.environ["WATCHDOG_USEC"]
        heard = [manager.recv(100) for _ in range(4)]
        check(sorted(set(heard)) == [b"READY=1", b"WATCHDOG=1"], f"{heard}")
        service.process.send_signal(signal.SIGSTOP)
        manager.settimeout(1)
        try:
            while True:
                manager.recv(100)
        except TimeoutError:
            pass  # a service that hangs is silent
        service.process.send_signal(signal.SIGCONT)


def test_a_sender_goes_on_when_its_receiver_is_back(onehop) -> None:
    for number in (signal.SIGKILL, signal.SIGTERM):
        with Served(onehop) as world:
            service = world.serve()
            path = world.files_of(40 * MB, "file.bin")
            sender = world.send_as("ann", path, "--max-rate", "100Mbit", "--patience", "60")
            service.wait_for(lambda end=service: any(
                event["bytes_total"] > 8 * MB for event in end.events("interval")), "it flows")
            service.process.send_signal(number)
            service.code()
            sender.wait_for(lambda end=sender: "goes on when bob is back" in end.text(), "it waits")
            time.sleep(1)
            service = world.serve()
            check(sender.code() == DONE, f"after {number!r}: {sender.text()}")
            world.check_received("ann", path)
            end = sender.end()
            check(end["bytes_total"] == 40 * MB, f"all of it: {end}")
            # What was complete and durable is not sent again; the rest was in flight.
            there = end["bytes_skipped_total"]
            check(there > 0, f"what was there was not sent again: {there}")
            check(not sender.events("error"), "nothing failed in the end")


def test_patience_ends(onehop) -> None:
    with Served(onehop) as world:
        service = world.serve()
        sender = world.send_as("ann", world.files_of(20 * MB, "file.bin"), "--max-rate", "50Mbit",
                               "--patience", "1s")
        service.wait_for(lambda: service.events("interval"), "it flows")
        service.process.kill()
        check(sender.code() == 3, f"nobody came back: {sender.text()}")


def test_K11_the_system_unit_is_shut_in(onehop) -> None:
    del onehop
    if shutil.which("systemd-analyze") is None:
        raise Skip("systemd-analyze is missing (Debian: systemd)")
    unit = ROOT / "configs/systemd/onehop-recv.service.in"
    with Pair("none") as world:
        file = world.text("onehop-recv.service", unit.read_text().replace("@bindir@", "/usr/bin"))
        done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", file],
                              capture_output=True, text=True, check=False)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    check(found and float(found[1]) <= EXPOSURE_MAX, done.stdout[-300:] + done.stderr)


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
