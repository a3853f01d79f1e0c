# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Bare network namespaces, for tests that lay routes, tunnels and address translation themselves,
where a lab has a link of its own between its two hosts."""

import ctypes
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from program import CODE, End, check, digest, end_all

os.environ["ONEHOP_STATE_DIR"] = ""  # a test starts at no remembered rate, and leaves none


class Spaces:
    """Namespaces named by a letter each, and the two ends in them, for the time of a with block."""

    def __init__(self, onehop, letters) -> None:
        self.onehop, self._letters, self._ends = str(onehop), letters, []

    def __enter__(self) -> Any:
        self.work = Path(tempfile.mkdtemp(prefix="onehop-spaces-"))
        self.work.chmod(0o755)
        self.target = self.work / "in"
        self.target.mkdir()
        for letter in self._letters:
            subprocess.run(["ip", "netns", "add", self.space(letter)], check=True)
            self.ip(letter, "link set lo up")
        return self

    def __exit__(self, *_) -> None:
        end_all(self._ends)
        for letter in self._letters:
            subprocess.run(["ip", "netns", "del", self.space(letter)], check=False)
        shutil.rmtree(self.work)

    def space(self, letter) -> str:
        return f"onehoptest{os.getpid()}-{letter}"

    def on(self, letter, *command) -> list[str]:
        return ["ip", "netns", "exec", self.space(letter), *map(str, command)]

    def run_on(self, letter, *command) -> str:
        done = subprocess.run(self.on(letter, *command), capture_output=True, text=True, timeout=60)
        check(done.returncode == 0, f"{command}: {done.stderr}")
        return done.stdout

    def socket(self, letter, *arguments) -> Any:
        """socket opens one in a host's namespace; it stays there when this process goes home."""
        libc, clone_newnet = ctypes.CDLL(None, use_errno=True), 0x40000000
        with open("/proc/self/ns/net") as home, open(f"/run/netns/{self.space(letter)}") as there:
            check(libc.setns(there.fileno(), clone_newnet) == 0, "setns")
            try:
                return socket.socket(*arguments)
            finally:
                check(libc.setns(home.fileno(), clone_newnet) == 0, "setns back")

    def ip(self, letter, *lines) -> None:
        """ip runs `ip LINE` for each line in a host's namespace."""
        for line in lines:
            self.run_on(letter, "ip", *line.split())

    def join(self, one, one_name, other, other_name) -> None:
        """join lays a cable between two hosts, with both ends up."""
        self.run_on(one, "ip", "link", "add", "name", one_name, "type", "veth", "peer",
                    "name", other_name,
                    "netns", self.space(other))
        self.ip(one, f"link set {one_name} up")
        self.ip(other, f"link set {other_name} up")

    def file(self, size, name="file.bin") -> Path:
        path = self.work / name
        path.write_bytes(os.urandom(size))
        return path

    def receive(self, letter, *options, io="udp") -> End:
        end = End(
            self.on(letter, self.onehop, "recv", "--once", "--dir", self.target, "--io", io,
                    "--on-exist", "overwrite", "--json", *options), self.work,
            f"recv{len(self._ends)}", CODE)
        self._ends.append(end)
        end.wait_for(lambda: end.events("start"), "recv can accept")
        return end

    def send(self, letter, path, address, *options, io="udp", before=()) -> End:
        """before: words in front of the program, which give up privileges for instance."""
        end = End(
            self.on(letter, *before, self.onehop, "send", path, "--to", address, "--io", io,
                    "--json", *options), self.work, f"send{len(self._ends)}", CODE)
        self._ends.append(end)
        return end

    def wait_bytes(self, end, letter, name, count) -> None:
        """wait_bytes returns when a host's interface has received so much since it was made."""
        counter = f"/sys/class/net/{name}/statistics/rx_bytes"
        end.wait_for(lambda: int(self.run_on(letter, "cat", counter)) > count, "data flows")

    def check_arrived(self, sender, receiver, path) -> None:
        check(sender.code() == 0,
              f"send ends with 0, not {sender.process.returncode}: {sender.text()}")
        check(receiver.code() == 0,
              f"recv ends with 0, not {receiver.process.returncode}: {receiver.text()}")
        check(digest(self.target / path.name) == digest(path), f"{path.name} arrived as it was")
