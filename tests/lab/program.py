# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What the tests of the program in the lab share: a lab, the two ends, and the reading of what they
say.

A `lab exec` becomes the program, so a process here is the program itself and takes its signals.
"""

import functools
import hashlib
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import event_schema

SKIP = 77
CODE = "a-code-of-the-lab-tests-0123456789"
ADDRESS_B, ADDRESS_B6 = "10.111.0.2", "fd00:111::2"
# Seconds for anything that has to end by itself. It is no bound on speed: a hung program must not
# hang the suite. An emulated processor takes longer (tools/distros).
PATIENCE = int(os.environ.get("ONEHOP_TEST_PATIENCE", "60"))
STEPS = itertools.count(os.getpid() * 7)  # of free_address()
LOOK_S = 0.01  # how often a test looks at what the ends have said


class Skip(Exception):
    pass


def check(condition, claim) -> None:
    if not condition:
        raise AssertionError(claim)


def free_address() -> str:
    """A port of 127.0.0.1 that is free for TCP and UDP, below those that the kernel draws, and by
    the process: what other tests open meanwhile takes another. Another one each time."""
    for step in itertools.islice(STEPS, 1000):
        port = 10_000 + step % 20_000
        try:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                with socket.socket(type=kind) as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return f"127.0.0.1:{port}"
    raise RuntimeError("find a free port: 1000 are taken")


class End:
    """One end of a transfer: a running `onehop send` or `recv`."""

    def __init__(self, command, folder, label, code, terminal=None) -> None:
        """terminal: a descriptor that is standard input and standard error instead of nothing and a
        file."""
        self.output, self.errors = Path(folder, f"{label}.out"), Path(folder, f"{label}.err")
        self._judged = 0
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith("SUDO_")
        } | {"ONEHOP_CODE": code}
        environment.setdefault("ONEHOP_PATIENCE", "0")  # where a receiver ends, its sender does
        with open(self.output, "wb") as out, open(self.errors, "wb") as err:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL if terminal is None else terminal, stdout=out,
                stderr=err if terminal is None else terminal, env=environment)

    def events(self, kind=None) -> list[Any]:
        """All of them are as docs/json.md says."""
        lines = [
            line for line in self.output.read_text().splitlines()
            if line.startswith("{") and line.endswith("}")
        ]
        events = [json.loads(line) for line in lines]
        faults = [fault for event in events[self._judged:] for fault in event_schema.faults(event)]
        check(not faults, f"events are as docs/json.md says: {faults}")
        self._judged = len(events)
        return [event for event in events if kind is None or event["type"] == kind]

    def wait_for(self, condition, claim) -> None:
        give_up_at = time.monotonic() + PATIENCE
        while not condition():
            check(self.process.poll() is None,
                  f"{claim}: it ended with {self.process.returncode}: {self.text()}")
            check(time.monotonic() < give_up_at, f"{claim}: not in {PATIENCE} s: {self.text()}")
            time.sleep(LOOK_S)

    def code(self) -> Any:
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it ends by itself: {self.text()}") from None

    def end(self) -> Any:
        ends = self.events("end")
        check(len(ends) == 1, f"one end event, not {len(ends)}: {self.text()}")
        return ends[0]

    def text(self) -> Any:
        return self.errors.read_text(errors="replace").strip()[-800:]


def end_all(ends) -> None:
    for end in ends:
        if end.process.poll() is None:
            end.process.kill()
        end.process.wait()


def descriptors_of(pid) -> list[Path]:
    """Root of a user namespace may not look at one that is ending (Linux 6.18)."""
    give_up_at = time.monotonic() + PATIENCE
    while True:
        try:
            return list(Path(f"/proc/{pid}/fdinfo").iterdir())
        except PermissionError:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
            if state in "ZX":
                return []
            if time.monotonic() > give_up_at:
                raise
            time.sleep(LOOK_S)


def is_emulator_s(pid, name) -> bool:
    """Whether it is the program's own file, which qemu-user keeps open."""
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return "/qemu-" in os.readlink(f"/proc/{pid}/exe") and \
        name in [os.path.realpath(word) for word in words[:2]]


def inherited_of(pid) -> set[str]:
    """What the process's descriptors above 2 are, of those that a child would get. OpenSSL reads
    its configuration by fopen(), for a moment, when it is first used, and libnuma, which DPDK
    brings, counts nodes so before main()."""
    brief = ("/openssl.cnf", "/meminfo", "/cpumap")
    o_cloexec, found = 0o2000000, set()
    for entry in descriptors_of(pid):
        try:
            flags = int(entry.read_text().split("flags:")[1].split()[0], 8)
            if int(entry.name) > 2 and not flags & o_cloexec:
                name = os.readlink(f"/proc/{pid}/fd/{entry.name}")
                found |= set() if name.endswith(brief) or is_emulator_s(pid, name) else {name}
        except (OSError, IndexError):
            pass  # it was closed meanwhile
    return found


class World:
    """A lab with a profile, a folder to send from and one to receive into, for the time of a with
    block."""

    def __init__(self, onehop, profile="steady-600") -> None:
        self.onehop, self.name = str(onehop), f"progtest{os.getpid()}"
        self._profile, self._ends = profile, []

    def __enter__(self) -> Any:
        self.work = Path(
            tempfile.mkdtemp(prefix="onehop-lab-",
                             dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        self.target = self.work / "in"
        try:
            self.target.mkdir()
            done = self.lab("up", "--profile", self._profile_file())
            if done.returncode == 9:
                raise Skip(done.stderr.strip())
            check(done.returncode == 0, done.stderr)
        except subprocess.TimeoutExpired:  # killed: it could not take down what it had made
            self.__exit__()
            raise
        except BaseException:
            shutil.rmtree(self.work)
            raise
        return self

    def __exit__(self, *_) -> None:
        end_all(self._ends)
        done = self.lab("down")
        shutil.rmtree(self.work)
        check(done.returncode == 0, done.stderr)

    def _profile_file(self) -> Any:
        if "\n" not in self._profile and "=" not in self._profile:
            return self._profile
        path = self.work / "profile.toml"
        path.write_text(self._profile)
        return str(path)

    def lab(self, verb, *arguments) -> subprocess.CompletedProcess[Any]:
        return subprocess.run([self.onehop, "lab", verb, "--name", self.name, *arguments],
                              capture_output=True, text=True, timeout=PATIENCE)

    def on(self, host, *command) -> list[Any]:
        return [self.onehop, "lab", "exec", "--name", self.name, host, "--", *map(str, command)]

    def run_on(self, host, *command) -> Any:
        done = subprocess.run(self.on(host, *command), capture_output=True, text=True,
                              timeout=PATIENCE)
        check(done.returncode == 0, f"{command}: {done.stderr}")
        return done.stdout

    @property
    def disk(self) -> Path:
        return Path(self.run_on("b", "sh", "-c", "echo $ONEHOP_LAB_DISK").strip())

    def file(self, size, name="file.bin") -> Any:
        path = self.work / name
        with open(path, "wb") as out:
            for begin in range(0, size, 1 << 20):
                out.write(os.urandom(min(1 << 20, size - begin)))
        return path

    def receive(self, io="udp", *options, into=None, code=CODE, address=ADDRESS_B,
                is_ready=True) -> Any:
        end = End(
            self.on("b", self.onehop, "recv", "--once", "--dir", into or self.target, "--listen",
                    address, "--io", io, "--json", *options), self.work, f"recv{len(self._ends)}",
            code)
        self._ends.append(end)
        if is_ready:
            end.wait_for(lambda: end.events("start"), "recv can accept")
        return end

    def send(self, files, io="udp", *options, code=CODE, address=ADDRESS_B) -> Any:
        files = files if isinstance(files, list) else [files]
        end = End(
            self.on("a", self.onehop, "send", *files, "--to", address, "--io", io, "--json",
                    *options), self.work, f"send{len(self._ends)}", code)
        self._ends.append(end)
        return end

    def transfer(self, path, io_send="udp", io_recv="udp", address=ADDRESS_B,
                 options=()) -> tuple[Any, Any]:
        """transfer runs both ends to a good end and returns their end events."""
        receiver = self.receive(io_recv, *options, address=address)
        sender = self.send(path, io_send, address=address)
        check(sender.code() == 0,
              f"send ends with 0, not {sender.process.returncode}: {sender.text()}")
        check(receiver.code() == 0,
              f"recv ends with 0, not {receiver.process.returncode}: {receiver.text()}")
        self.check_same(path)
        return sender.end(), receiver.end()

    def check_same(self, path, into=None) -> None:
        check(
            digest((into or self.target) / path.name) == digest(path),
            f"{path.name} arrived as it was")

    def begin(self, io, size, arrived) -> tuple[Any, Any, Any]:
        """begin starts a transfer of `size` bytes and returns file, receiver and sender when
        `arrived` bytes came."""
        path = self.file(size)
        receiver = self.receive(io)
        sender = self.send(path, io)
        self.wait_bytes(arrived, receiver)
        return path, receiver, sender

    def wait_bytes(self, count, receiver) -> None:
        """wait_bytes returns when b's device has received so much since it was made."""
        receiver.wait_for(
            lambda: int(self.run_on("b", "cat", "/sys/class/net/vb/statistics/rx_bytes")) >= count,
            f"{count} bytes come")

    def names(self, into=None) -> list[Any]:
        return sorted(entry.name for entry in (into or self.target).iterdir())


@functools.cache
def is_confined(onehop) -> bool:
    """Whether this kernel has all that confines the program. One that lacks Landlock or seccomp
    makes it say so, in lines of their own."""
    told = subprocess.run([onehop, "--version", "-v"], capture_output=True, text=True, check=True)
    return "not confined by all means" not in told.stdout


def without_confinement(onehop, lines) -> list[str]:
    """What the program said but for these lines, where the kernel is the cause of them."""
    return lines if is_confined(str(onehop)) else [
        line for line in lines if not line.startswith("not confined by all means: ")]


def is_sanitized(program) -> bool:
    """Whether it is built with a sanitizer, whose own memory is then the most of it."""
    return any(name in Path(program).read_bytes() for name in (b"__asan_init", b"__tsan_init"))


def digest(path) -> Any:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run(*command) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=PATIENCE)
    check(done.returncode == 0, f"{command}: {done.stderr.strip()}")
    return done.stdout.strip()


def main(namespace, needs_root=True) -> Any:
    """main runs the test functions of a module: FILE ONEHOP [WORD]; a word picks tests by name."""
    if needs_root and os.geteuid() != 0:
        print("skipped: network namespaces need root")
        return SKIP
    failed = skipped = 0
    tests = [(name, value) for name, value in namespace.items()
             if name.startswith("test_") and (len(sys.argv) < 3 or sys.argv[2] in name)]
    for name, test in tests:
        title, started = name[5:].replace("_", " "), time.monotonic()
        try:
            test(sys.argv[1])
            print(f"ok    {title} ({time.monotonic() - started:.1f} s)", flush=True)
        except Skip as reason:
            skipped += 1
            print(f"skip  {title}: {reason}", flush=True)
        except Exception as error:  # each test stands alone
            failed += 1
            if not isinstance(error, AssertionError):
                traceback.print_exc()
            print(f"FAIL  {title}: {error}", flush=True)
    return 1 if failed else SKIP if skipped == len(tests) else 0
