# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Loopback: two ends of the real program on 127.0.0.1, for tests without root."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))
from program import (CODE, End, check, end_all, free_address,  # noqa: E402
                     without_confinement)

MB = 1_000_000


class Loopback:
    """Two ends on 127.0.0.1, and a folder for all that they touch."""

    def __init__(self, onehop) -> None:
        self.onehop = str(onehop)

    def __enter__(self) -> Any:
        self._folder = tempfile.TemporaryDirectory(prefix="onehop-program-")
        self.work = Path(self._folder.name)
        self.target = self.work / "in"
        self.target.mkdir()
        self.state, self._ends, self.prefix = "", [], []
        self.address = free_address()
        return self

    def __exit__(self, *_) -> None:
        end_all(self._ends)
        self._folder.cleanup()

    def become(self, uid) -> None:
        """become lets both ends be another user, as root alone can."""
        self.prefix = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"]
        self.work.chmod(0o755)
        if subprocess.run([*self.prefix, self.onehop, "--version"], capture_output=True,
                          check=False).returncode != 0:
            copy = self.work / "onehop"  # it lies where only root can run it
            shutil.copy(self.onehop, copy)
            copy.chmod(0o755)
            self.onehop = str(copy)

    def start(self, *command) -> Any:
        os.environ["ONEHOP_STATE_DIR"] = str(self.state)
        end = End([*self.prefix, self.onehop, *map(str, command)], self.work,
                  f"end{len(self._ends)}", CODE)
        self._ends.append(end)
        return end

    def receive(self, *options) -> Any:
        end = self.start("recv", "--once", "--dir", self.target, "--listen", self.address,
                         "--on-exist", "overwrite", "--json", *options)
        end.wait_for(lambda: end.events("start"), "recv can accept")
        return end

    def file(self, size) -> Any:
        path = self.work / "file.bin"
        path.write_bytes(os.urandom(size))
        return path

    def text(self, name, text) -> Any:
        path = self.work / name
        path.write_text(text)
        return path

    def send(self, *options, size=8 * MB) -> Any:
        """send makes a file, sends it to the end, and returns the sender."""
        receiver = self.receive()
        sender = self.start("send", self.file(size), "--to", self.address, "--json", *options)
        check(sender.code() == 0,
              f"send ends with 0, not {sender.process.returncode}: {sender.text()}")
        check(receiver.code() == 0, f"recv ends with 0: {receiver.text()}")
        return sender

    def refused(self, *command, words=(), code=2) -> Any:
        end = self.start(*command)
        check(end.code() == code,
              f"{command} is {code}, not {end.process.returncode}: {end.text()}")
        for word in words:
            check(word in end.text(), f"{command} names {word}: {end.text()}")
        return end

    def refused_at_once(self, *command, words=(), code=2) -> None:
        """refused, and with one line that tells of the command, and nothing else."""
        end = self.refused(*command, words=words, code=code)
        lines = without_confinement(self.onehop, end.text().splitlines())
        check(
            len(lines) == 1 and lines[0].startswith(f"onehop {command[0]}: "),
            f"{command} is one line: {lines}")
        check(lines[0].count(": ") >= 2 and ". " in lines[0],
              f"with attempt, cause and remedy: {lines}")
        check(not end.events("start"), f"{command} did not begin")
