# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A machine of a story: systemd with D-Bus, Avahi and a firewall over a copy of a root (overlayfs),
in namespaces of its own, with persons and their terminals."""

import subprocess
import time
from pathlib import Path
from typing import Any, Callable

from program import check
from rooted import run

PATIENCE = 60
SERVICES = ("dbus.service", "systemd-logind.service", "avahi-daemon.service")
# A person's words run at home, with the bus of that person's manager.
AT_HOME = ('cd && id=$(id -u) && export XDG_RUNTIME_DIR=/run/user/$id '
           'DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/$id/bus && exec "$@"')


def wait_until(is_so: Callable[[], Any], what: Callable[[], str],
               seconds: float = PATIENCE) -> None:
    give_up_at = time.monotonic() + seconds
    while not is_so():
        check(time.monotonic() < give_up_at, what())
        time.sleep(0.1)


class Layer:
    """A copy of a root: what is written there lies in a tmpfs (work)."""

    def __init__(self, lower: Path, work: Path) -> None:
        self.root = work / "root"
        for name in ("root", "upper", "worked"):
            (work / name).mkdir(parents=True)
        run("mount", "-t", "overlay", "overlay", "-o",
            f"lowerdir={lower},upperdir={work}/upper,workdir={work}/worked", self.root)

    def close(self) -> None:
        run("umount", "--lazy", self.root)


class Machine:
    """It runs from the start to close(), with a loopback device and no other link."""

    def __init__(self, lower: Path, work: Path, name: str) -> None:
        self.name, self._layer = name, Layer(lower, work / name)
        with (work / f"{name}.log").open("w") as log:
            self._unshare = subprocess.Popen(
                ["unshare", "--pid", "--mount", "--cgroup", "--net", "--uts", "--ipc", "--fork",
                 "--kill-child=KILL", Path(__file__).with_name("boot"), self._layer.root, name],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        try:
            children = Path(f"/proc/{self._unshare.pid}/task/{self._unshare.pid}/children")
            said = (work / f"{name}.log").read_text
            wait_until(lambda: children.read_text().split(), lambda: f"{name} has no process")
            self.pid = int(children.read_text().split()[0])
            wait_until(lambda: self._unshare.poll() is not None or self.is_so(
                "systemctl", "--quiet", "is-active", "basic.target"),
                       lambda: f"{name} does not start: {said()}")
            self.run("systemctl", "start", *SERVICES)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._unshare.kill()
        self._unshare.wait()
        self._layer.close()

    def on(self, *words: Any, user: str = "root") -> list[str]:
        """on is the command that runs these words here, as root or as that person."""
        home = "/root" if user == "root" else f"/home/{user}"
        return ["nsenter", "--target", str(self.pid), "--all", "env", "-i", "-C", "/",
                "PATH=/usr/local/bin:/usr/sbin:/usr/bin", "LC_ALL=C.UTF-8", "TERM=xterm-256color",
                f"HOME={home}", *([] if user == "root" else ["runuser", "-u", user, "--"]),
                "sh", "-c", AT_HOME, "sh", *map(str, words)]

    def run(self, *words: Any, user: str = "root") -> str:
        return run(*self.on(*words, user=user), timeout=PATIENCE)

    def shell(self, text: str, user: str = "root") -> str:
        return self.run("sh", "-euc", text, user=user)

    def is_so(self, *words: Any, user: str = "root") -> bool:
        return subprocess.run(self.on(*words, user=user), check=False, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=PATIENCE).returncode == 0

    def write(self, path: str, text: str) -> None:
        subprocess.run(self.on("tee", path), input=text, text=True, check=True,
                       stdout=subprocess.DEVNULL, timeout=PATIENCE)

    def add_person(self, name: str) -> None:
        """A person who is logged in: has a home folder, a manager of services, and a bus."""
        self.run("useradd", "--create-home", "--shell", "/bin/bash", name)
        self.run("loginctl", "enable-linger", name)
        unit = f"user@{self.run('id', '-u', name).strip()}.service"
        wait_until(lambda: self.is_so("systemctl", "--quiet", "is-active", unit),
                   lambda: f"{name} has no manager of services")


def join(one: Machine, other: Machine, addresses: tuple[str, str], name: str = "eth0") -> None:
    """join lays a cable between two machines."""
    run("nsenter", "--target", one.pid, "--net", "ip", "link", "add", name, "type", "veth", "peer",
        "name", name, "netns", other.pid)
    for machine, address in zip((one, other), addresses, strict=True):
        machine.run("ip", "addr", "add", address, "dev", name)
        machine.run("ip", "link", "set", name, "up")


class Terminal:
    """A person's window of a size, by tmux, with a shell in it."""

    def __init__(self, machine: Machine, user: str, columns: int, rows: int) -> None:
        self._machine, self._user = machine, user
        self.typed = 0
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", rows, "env",
                   "PS1=ready> ", "ENV=", "sh", "-i")
        self.wait("ready>")

    def _tmux(self, *words: Any) -> str:
        return self._machine.run("tmux", "-L", self._user, *words, user=self._user)

    def type(self, text: str) -> None:
        self.typed += len(text)
        self._tmux("send-keys", "-l", text)

    def key(self, name: str) -> None:
        """key presses one that has a name: Enter, C-c, Tab."""
        self.typed += 1
        self._tmux("send-keys", name)

    def say(self, text: str) -> None:
        """say types a line below an empty window, so that wait() finds what came after it."""
        self._tmux("send-keys", "-R")
        self._tmux("clear-history")
        self.type(text)
        self.key("Enter")

    def rows(self) -> list[str]:
        """rows is what stands in the window and above it."""
        return self._tmux("capture-pane", "-p", "-S", "-200").rstrip("\n").split("\n")

    def text(self) -> str:
        return "\n".join(self.rows())

    def wait(self, words: str, seconds: float = PATIENCE) -> None:
        """wait returns when these words stand there, wherever a line of them ends."""
        wait_until(lambda: words in " ".join(self.text().split()),
                   lambda: f"'{words}' is not on the screen:\n{self.text()}", seconds)

    def wait_prompt(self, seconds: float = PATIENCE) -> None:
        wait_until(lambda: len(self.rows()) > 1 and self.rows()[-1].strip() == "ready>",
                   lambda: f"no prompt:\n{self.text()}", seconds)
