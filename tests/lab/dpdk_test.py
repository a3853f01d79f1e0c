#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Files over DPDK, by the program as users run it: dpdk_test.py ONEHOP [WORD].

Goal:   a whole file moves over each driver that runs without a card; wrong arguments end with their
        code; nothing stays behind.
Method: the real program and EAL; net_memif over loopback without root, net_af_xdp and net_memif
        between the lab's hosts.
Bounds: none on time. Skipped where the build has no DPDK.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from program import (
    ADDRESS_B, ADDRESS_B6, CODE, PATIENCE, End, Skip, World, check, digest, end_all, main)

MB = 1_000_000
RUNTIME = Path("/var/run/dpdk")


def need_dpdk(onehop) -> None:
    said = subprocess.run([onehop, "--version", "-v"], capture_output=True, text=True,
                          timeout=PATIENCE).stdout
    if "dpdk         on" not in said:
        raise Skip("this build has no DPDK port")


def need_root() -> None:
    if os.geteuid() != 0:
        raise Skip("network namespaces and XDP programs need root")


def left_behind() -> list[Any]:
    return sorted(path.name for path in RUNTIME.glob("onehop-*")) if RUNTIME.is_dir() else []


class Memif:
    """Two ends on 127.0.0.1 for control, and a net_memif of their own for data."""

    def __init__(self, onehop, extra="") -> None:
        self.onehop, self.extra = str(onehop), extra

    def __enter__(self) -> Any:
        self._folder = tempfile.TemporaryDirectory(prefix="onehop-dpdk-")
        self.work = Path(self._folder.name)
        (self.work / "in").mkdir()
        self.address, self._ends = f"127.0.0.1:{20_000 + os.getpid() % 20_000}", []
        os.environ["ONEHOP_STATE_DIR"] = ""
        return self

    def __exit__(self, *_) -> None:
        end_all(self._ends)
        self._folder.cleanup()

    def eal(self, role) -> str:
        return (
            f"--vdev=net_memif0,role={role},id=0,socket={self.work}/link.sock,"
            f"socket-abstract=no{self.extra}"
        )

    def start(self, *command) -> Any:
        end = End([self.onehop, *map(str, command)], self.work, f"end{len(self._ends)}", CODE)
        self._ends.append(end)
        return end

    def receive(self, *options) -> Any:
        end = self.start("recv", "--once", "--dir", self.work / "in", "--listen",
                         self.address, "--on-exist", "overwrite", "--io", "dpdk", "--eal",
                         self.eal("server"), "--json", *options)
        end.wait_for(lambda: end.events("start"), "recv can accept")
        return end

    def send(self, path, *options) -> Any:
        return self.start("send", path, "--to", self.address, "--io", "dpdk", "--eal",
                          self.eal("client"), "--json", *options)

    def file(self, size) -> Any:
        path = self.work / "file.bin"
        path.write_bytes(os.urandom(size))
        return path


class Vhost(Memif):
    """The same over vhost-user: the receiver is the back end, the sender a guest of it."""

    def eal(self, role) -> str:
        return (f"--vdev=net_vhost0,iface={self.work}/link.sock"
                if role == "server" else f"--vdev=net_virtio_user0,path={self.work}/link.sock")


def check_end(event, role, driver, size, scope) -> None:
    check(event["io_used"] == "dpdk" and event["io_mode"] == driver,
          f"{role}: {event['io_used']}/{event['io_mode']}")
    check(event["bytes_total"] == size and event["hash_ok"] is True, f"{role}: bytes and hash")
    check(event["tx_queue"]["scope"] == scope,
          f"{role}: scope {event['tx_queue']['scope']}, not {scope}")


def test_memif_carries_a_file_without_root(onehop) -> None:
    need_dpdk(onehop)
    with Memif(onehop) as here:
        path = here.file(30 * MB + 12_345)
        receiver = here.receive()
        sender = here.send(path)
        check(sender.code() == 0,
              f"send ends with 0, not {sender.process.returncode}: {sender.text()}")
        check(receiver.code() == 0,
              f"recv ends with 0, not {receiver.process.returncode}: {receiver.text()}")
        check(digest(here.work / "in" / path.name) == digest(path), "the file arrived as it was")
        for end, role in ((sender, "send"), (receiver, "recv")):
            check_end(end.end(), role, "net_memif", path.stat().st_size, "own_ring")
            check("EAL" not in end.output.read_text(), f"{role}: EAL prints nothing to stdout")
            check(end.end()["link_source"] == "none",
                  f"{role}: the kernel's interface tells nothing of this link")
        check(not left_behind(), f"no runtime folder stays: {left_behind()}")


def test_vhost_and_virtio_user_carry_a_file_and_both_ends_end_in_order(onehop) -> None:
    """Whichever end closes first: the other one's driver writes to a socket that nobody reads any
    more."""
    need_dpdk(onehop)
    with Vhost(onehop) as here:
        path = here.file(20 * MB + 12_345)
        for _ in range(2):
            receiver = here.receive()
            sender = here.send(path)
            check(sender.code() == 0,
                  f"send ends with 0, not {sender.process.returncode}: {sender.text()}")
            check(receiver.code() == 0,
                  f"recv ends with 0, not {receiver.process.returncode}: {receiver.text()}")
            check(
                digest(here.work / "in" / path.name) == digest(path), "the file arrived as it was")
            check_end(sender.end(), "send", "net_virtio_user", path.stat().st_size, "own_ring")
            check_end(receiver.end(), "recv", "net_vhost", path.stat().st_size, "own_ring")
        check(not left_behind(), f"no runtime folder stays: {left_behind()}")


def test_C1_after_sigkill_the_link_serves_the_next_run(onehop) -> None:
    need_dpdk(onehop)
    with Memif(onehop) as here:
        path = here.file(60 * MB)
        receiver = here.receive()
        sender = here.send(path, "--law", "fixed:200Mbit")
        receiver.wait_for(lambda: any((here.work / "in").glob(".*.part")), "data comes")
        for end in (sender, receiver):
            end.process.send_signal(signal.SIGKILL)
            end.process.wait()
        check(not left_behind(), f"no runtime folder stays: {left_behind()}")
        (here.work / "link.sock").unlink(missing_ok=True)  # as docs/dpdk.md says
        receiver = here.receive()
        sender = here.send(path)
        check(sender.code() == 0 and receiver.code() == 0, f"{sender.text()} {receiver.text()}")


def test_C1_C2_when_one_end_is_killed_the_other_ends_in_order(onehop) -> None:
    """net_memif unmaps its rings when the peer goes, whoever polls them: its control thread has to
    be held back."""
    need_dpdk(onehop)
    for poll in ("busy", "adaptive"):
        for victim in (0, 1):
            with Memif(onehop) as here:
                receiver = here.receive("--poll", poll)
                ends = (here.send(here.file(60 * MB), "--law", "fixed:200Mbit", "--poll",
                                  poll), receiver)
                receiver.wait_for(lambda: any((here.work / "in").glob(".*.part")), "data comes")
                ends[victim].process.send_signal(signal.SIGKILL)
                ends[victim].process.wait()
                survivor = ends[1 - victim]
                check(
                    survivor.code() == 7,
                    f"{poll}: the other end ends with 7, not {survivor.process.returncode}: "
                    f"{survivor.text()}"
                )


def test_wrong_arguments_are_usage_and_a_failing_driver_is_the_io(onehop) -> None:
    need_dpdk(onehop)
    for eal, code, word in (("", 2, "value is empty"), ("-l 0", 2, "names no device"),
                            ("'x", 2, "quote"),
                            ("--help --vdev=net_null0", 2, "help"), ("--bogus --vdev=net_null0", 2,
                                                                     "--bogus"), ("--vdev=net_foo0",
                                                                                  2, "net_foo0"),
                            ("--vdev=net_null0 --vdev=net_null1", 2,
                             "several"), ("--vdev=net_memif0,role=bogus", 9,
                                          "bogus"), ("--vdev=net_null0 -m 1", 9, "")):
        with Memif(onehop) as here:
            end = here.start("recv", "--listen", here.address, "--dir", here.work, "--io", "dpdk",
                             "--eal", eal, "--json")
            check(end.code() == code,
                  f"'{eal}' is {code}, not {end.process.returncode}: {end.text()}")
            check(word in end.text(), f"'{eal}' names '{word}': {end.text()}")
            check("Usage:" not in end.output.read_text() + end.errors.read_text(),
                  f"'{eal}': EAL's usage text is kept away")
    with Memif(onehop) as here:
        end = here.start("recv", "--eal", "--vdev=net_null0")
        check(end.code() == 2 and "--io dpdk" in end.text(), f"--eal alone is usage: {end.text()}")
    check(not left_behind(), f"no runtime folder stays: {left_behind()}")


def eal_of(interface) -> tuple[str, str]:
    return ("--eal", f"--vdev=net_af_xdp0,iface={interface}")


def carry(world, size, io_send, io_recv, address=ADDRESS_B) -> tuple[Any, Any]:
    path = world.file(size)
    receiver = world.receive(io_recv, *(eal_of("vb") if io_recv == "dpdk" else ()), address=address)
    sender = world.send(path, io_send, *(eal_of("mv0") if io_send == "dpdk" else ()),
                        address=address)
    check(
        sender.code() == 0,
        f"{io_send} to {io_recv}: send ends with 0, not {sender.process.returncode}: "
        f"{sender.text()}"
    )
    check(receiver.code() == 0, f"{io_send} to {io_recv}: recv ends with 0: {receiver.text()}")
    world.check_same(path)
    return sender.end(), receiver.end()


def attached(world, host, interface) -> Any:
    return json.loads(world.run_on(host, "ip", "-j", "link", "show", "dev",
                                   interface))[0].get("xdp", {}).get("attached")


def test_af_xdp_shares_the_interface_with_the_kernel_and_pairs_with_every_port(onehop) -> None:
    need_dpdk(onehop)
    need_root()
    for io_send, io_recv in (("dpdk", "dpdk"), ("dpdk", "udp"), ("udp", "dpdk"), ("dpdk", "afxdp"),
                             ("afxdp", "dpdk")):
        with World(onehop) as world:
            sender, receiver = carry(world, 20 * MB + 777, io_send, io_recv)
            if io_send == "dpdk":
                check_end(sender, "send", "net_af_xdp", 20 * MB + 777, "lower_queue")
            if io_recv == "dpdk":
                check_end(receiver, "recv", "net_af_xdp", 20 * MB + 777, "own_ring")
            check(not attached(world, "a", "mv0") and not attached(world, "b", "vb"),
                  "no program stays")


def test_af_xdp_carries_a_file_over_ipv6(onehop) -> None:
    need_dpdk(onehop)
    need_root()
    with World(onehop) as world:
        carry(world, 5 * MB, "dpdk", "dpdk", address=f"[{ADDRESS_B6}]")


def test_C1_after_sigkill_no_program_stays_on_the_interface(onehop) -> None:
    need_dpdk(onehop)
    need_root()
    with World(onehop) as world:
        receiver = world.receive("dpdk", *eal_of("vb"))
        check(attached(world, "b", "vb"), "the steering program is there")
        receiver.process.send_signal(signal.SIGKILL)
        receiver.process.wait()
        again = world.receive("dpdk", *eal_of("vb"))
        check(again.process.poll() is None, "the next run takes the interface")
        again.process.send_signal(signal.SIGKILL)
        again.process.wait()
        check(not attached(world, "b", "vb"), "no program stays")
    check(not left_behind(), f"no runtime folder stays: {left_behind()}")


def test_memif_between_hosts_while_control_goes_over_the_lab(onehop) -> None:
    need_dpdk(onehop)
    need_root()
    with World(onehop) as world:
        def eal(role) -> tuple[str, str]:
            return (
                "--eal",
                f"--vdev=net_memif0,role={role},id=0,socket={world.work}/link.sock,"
                "socket-abstract=no"
            )
        path = world.file(40 * MB)
        receiver = world.receive("dpdk", *eal("server"))
        sender = world.send(path, "dpdk", *eal("client"))
        check(sender.code() == 0 and receiver.code() == 0, f"{sender.text()} {receiver.text()}")
        world.check_same(path)
        sent = int(world.run_on("a", "cat", "/sys/class/net/va/statistics/tx_bytes"))
        check(sent < 10 * MB, f"data does not take the lab's link, which carried {sent} bytes")


def test_foreign_interfaces_and_programs_are_refused(onehop) -> None:
    need_dpdk(onehop)
    need_root()
    with World(onehop) as world:
        path = world.file(1000)
        end = world.send(path, "dpdk", *eal_of("va"))
        check(end.code() == 2 and "--iface va" in end.text(),
              f"the way to the peer leads elsewhere: {end.process.returncode} {end.text()}")
        first = world.receive("dpdk", *eal_of("vb"))
        second = world.receive("dpdk", *eal_of("vb"), address="10.111.0.2:7999", is_ready=False)
        check(second.code() == 9 and "onehop_steer" in second.text(),
              f"another's program stays: {second.process.returncode} {second.text()}")
        check(first.process.poll() is None, "and the other goes on")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
