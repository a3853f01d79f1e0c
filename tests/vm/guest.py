# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What the tests of the program in the virtual machine share: two ends in two network namespaces of
the guest, and how such a test gets into the guest. What the ends say is read as in tests/lab.
"""

import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lab"))
import program  # noqa: E402
from program import World, check, end_all  # noqa: E402

# Emulated, the programs are 10 to 50 times slower, and the machine below may be busy. What a test
# that looks too often takes, the program lacks.
program.PATIENCE = 240
program.LOOK_S = 0.05
# CODE has the form that onehop makes. CHOSEN_CODE is one that a user might choose.
CODE, CHOSEN_CODE = "abcd-efgh-ijkl-mnop-qrst-uvwx-yz23", program.CODE
MIB = 1 << 20
INTERRUPTED = 7


class Pair(World):
    """A folder to send from, one to receive into, and a link between the namespaces a and b of the
    guest. `sender` names the namespace that sends; the other one receives. `addresses` has both
    addresses, by namespace."""

    is_used = True  # whether anything has run since all were seen to be clean

    def __init__(self, onehop, addresses, sender="a") -> None:
        super().__init__(onehop)
        self._hosts = {"a": sender, "b": "b" if sender == "a" else "a"}
        self.address = addresses[self._hosts["b"]]

    def __enter__(self) -> Any:
        if Pair.is_used:
            check_nothing_attached("before")
        self.work = Path(tempfile.mkdtemp(prefix="onehop-vm-", dir="/tmp"))
        self.target = self.work / "in"
        self.target.mkdir()
        return self

    def __exit__(self, *_) -> None:
        end_all(self._ends)
        shutil.rmtree(self.work)

    def on(self, host, *command) -> list[Any]:
        """host is a, which sends, or b, which receives."""
        Pair.is_used = True
        return ["ip", "netns", "exec", self._hosts[host], *map(str, command)]

    def file(self, size, name="file.bin") -> Any:
        """file draws one MiB, for that takes long in emulation. No two of its MiB are the same:
        each begins at another byte of the first."""
        path, drawn = self.work / name, os.urandom(MIB)
        with open(path, "wb") as out:
            for begin in range(0, size, MIB):
                at = 4099 * (begin // MIB) % MIB
                out.write((drawn[at:] + drawn[:at])[:size - begin])
        return path

    def receive(self, io="udp", *options, into=None, code=CODE, address=None,
                is_ready=True) -> Any:
        return super().receive(io, *options, into=into, code=code, address=address or self.address,
                               is_ready=is_ready)

    def send(self, files, io="udp", *options, code=CODE, address=None) -> Any:
        return super().send(files, io, "--wait", "60", *options, code=code,
                            address=address or self.address)

    def finish(self, sender, receiver, path) -> tuple[Any, Any]:
        """finish waits for a good end of both, and returns their end events."""
        for end, role in ((sender, "send"), (receiver, "recv")):
            check(end.code() == 0,
                  f"{role} ends with 0, not {end.process.returncode}: {end.text()}")
            check(end.end()["hash_ok"] is True, f"{role}: the digest is right")
        check(self.names() == [path.name], f"nothing else is left: {self.names()}")
        check_nothing_attached("after")
        Pair.is_used = False
        return sender.end(), receiver.end()

    def check_same(self, path, into=None) -> None:
        """By content: in emulation that is faster than two digests."""
        check(filecmp.cmp(path, (into or self.target) / path.name, shallow=False),
              f"{path.name} arrived as it was")

    def arrived(self) -> Any:
        """arrived is what the file that is being received takes up on the disk, in bytes."""
        return sum(blocks_of(os.path.join(folder, name)) * 512
                   for folder, _, names in os.walk(self.target)
                   for name in names if name.endswith(".part"))


def trace_of(name) -> str:
    """trace_of is where a transfer leaves its trace: in memory, for /out is the host's, and a write
    there holds up whoever writes."""
    return f"/run/{name}.csv"


def keep_traces() -> None:
    """keep_traces moves all traces to the folder of ONEHOP_VM_OUT."""
    for path in Path("/run").glob("*.csv"):
        shutil.move(path, "/out")


def blocks_of(path) -> int:
    """0 where it has gone."""
    try:
        return os.stat(path).st_blocks
    except FileNotFoundError:
        return 0


def run(*command) -> Any:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                          timeout=program.PATIENCE)
    check(done.returncode == 0, f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


def on(host, *command) -> Any:
    """on runs it in a network namespace of the guest."""
    return run("ip", "netns", "exec", host, *command)


def received_bytes(end, *interfaces) -> int:
    """received_bytes is what interfaces have received in the network namespace of a program. Read
    by no process of its own: to start one takes 0.1 s and more in emulation."""
    with open(f"/proc/{end.process.pid}/net/dev", encoding="ascii") as devices:
        fields = (line.split() for line in devices)
        return sum(int(field[1]) for field in fields if field[0][:-1] in interfaces)


def attached() -> list[str]:
    """attached lists every XDP program, BPF link and AF_XDP socket of the guest."""
    found = [f"bpf link {link['id']}" for link in json.loads(run("bpftool", "-j", "link", "list"))]
    found += [f"program {entry.get('name', entry['id'])}"
              for entry in json.loads(run("bpftool", "-j", "prog", "list"))
              if entry["type"] == "xdp"]
    for host in ("a", "b"):
        links = json.loads(run("ip", "-n", host, "-j", "link", "show"))
        found += [f"program on {link['ifname']}" for link in links
                  if link.get("xdp", {}).get("attached")]
        found += run("ss", "--net", host, "--xdp", "--all", "--no-header").splitlines()
    return found


def check_nothing_attached(when) -> None:
    """The kernel takes down what a killed process had a moment after its end."""
    give_up_at = time.monotonic() + 20
    while (left := attached()) and time.monotonic() < give_up_at:
        time.sleep(0.1)
    check(not left, f"{when}, nothing is attached to an interface: {left}")


def enter_guest(file, *options, wrapper=(), environment=(), cpus=2, programs=()) -> None:
    """enter_guest starts `file` again inside the virtual machine, with the program as its argument,
    unless it is there already: FILE [BUILD [WORD]]. `options` are those of tests/vm/vm, `wrapper`
    is what runs there before it, `environment` names the variables that the guest gets, too. With
    one of `cpus` the same work takes the host two thirds of the time. `programs` are more of those
    that a counted machine keeps in memory. The code of the exit is that of the guest."""
    if sys.argv[1:2] == ["--inside"]:
        del sys.argv[1]
        return
    build = Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parents[1] / "build").resolve()
    onehop = build / "tools/onehop/onehop"
    check(onehop.exists(), f"{onehop} is built")
    vm = str(HERE / "vm")
    os.environ.setdefault("ONEHOP_VM_CPUS", str(cpus))
    given = [f"{name}={os.environ[name]}" for name in environment if name in os.environ]
    os.execv(vm, [vm, "run", *options, *map(str, wrapper), "env", *given, str(Path(file).resolve()),
                  "--inside", str(onehop), *programs, *sys.argv[2:3]])
