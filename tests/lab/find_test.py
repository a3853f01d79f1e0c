#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""How the two ends find each other: find_test.py ONEHOP [WORD].

Goal:   `send PATH` finds who receives on its links, takes the one, has a person choose among
        several, and says what hinders it; whoever answers or asks on the link gains nothing by it.
Method: namespaces on a bridge or with cables between them; forged answers and questions are sent by
        Python from a namespace of their own.
Bounds: an answer has at most the 256 bytes of a question, 10 a second go to an asker; a flood of
        answers costs less than 8 MiB. Nothing on time but that all ends by itself.
"""

import contextlib
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from program import CODE, End, check, main  # noqa: E402
from screen import Screen  # noqa: E402
from spaces import Spaces  # noqa: E402

USAGE, UNREACHABLE, DONE = 2, 3, 0
GROUP, GROUP6, PORT = "239.255.74.11", "ff02::1", 7411
QUESTION = b"onehop-q\x01" + bytes(range(16)) + bytes(231)
HOSTS = "abc"  # a sends


class Room(Spaces):
    """Hosts a, b, c on one link, in 10.5.0.0/24, and what they run."""

    def __init__(self, onehop, families="46", letters=HOSTS) -> None:
        super().__init__(onehop, letters + "s")
        self.hosts, self.families = letters, families
        self.targets: dict[End, Path] = {}

    def __enter__(self) -> Any:
        super().__enter__()
        try:
            self.lay_cables()
        except BaseException:
            self.__exit__()
            raise
        return self

    def lay_cables(self) -> None:
        self.ip("s", "link add name room type bridge", "link set room up")
        for number, letter in enumerate(self.hosts, 1):
            for host in (letter, "s"):
                self.run_on(host, "sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0")
            if "6" not in self.families:
                self.run_on(letter, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
            self.join(letter, "lan0", "s", f"to-{letter}")
            self.ip("s", f"link set to-{letter} master room")
            if "4" in self.families:
                self.ip(letter, f"addr add 10.5.0.{number}/24 dev lan0")

    def recv(self, letter, name, *options) -> End:
        """recv is a receiver that is called so; it can be asked when this returns."""
        target = self.work / f"in-{letter}-{len(self._ends)}"
        target.mkdir()
        end = End(self.on(letter, self.onehop, "recv", "--once", "--io", "udp", "--dir", target,
                          "--name", name, "--json", *options), self.work,
                  f"recv{len(self._ends)}", CODE)
        self._ends.append(end)
        self.targets[end] = target
        end.wait_for(lambda: end.events("start"), "recv can accept")
        return end

    def look(self, *options, letter="a", size=100_000) -> End:
        """look is a sender that was told no address."""
        path = self.file(size)
        end = End(self.on(letter, self.onehop, "send", path, "--io", "udp", "--json", *options),
                  self.work, f"send{len(self._ends)}", CODE)
        self._ends.append(end)
        return end

    def check_sent(self, sender, receiver) -> None:
        check(sender.code() == DONE, f"send ends with 0: {sender.text()}")
        check(receiver.code() == DONE, f"recv ends with 0: {receiver.text()}")
        check([path.name for path in self.targets[receiver].iterdir()] == ["file.bin"],
              "the file is there")

    def screen(self, *options) -> Screen:
        return Screen(self.on("a", self.onehop, "send", self.file(100_000), "--io", "udp",
                              *options), {"ONEHOP_CODE": CODE})


def found(sender) -> dict[str, Any]:
    events = sender.events("receivers")
    check(len(events) == 1, f"one list: {events} {sender.text()}")
    return events[0]


def names(sender) -> list[str]:
    return [one["name"] for one in found(sender)["receivers"]]


def test_the_only_receiver_is_taken_over_one_hop(onehop) -> None:
    for families, first in (("46", "fe80::"), ("6", "fe80::"), ("4", "10.5.0.2")):
        with Room(onehop, families, "ab") as room:
            receiver = room.recv("b", "laptop")
            sender = room.look()
            room.check_sent(sender, receiver)
            ways = found(sender)["receivers"][0]["ways"]
            check(len(ways) == len(families), f"a way for each family: {ways}")
            check(ways[0]["to"].startswith(first), f"the best is first: {ways}")
            check(all(way["is_one_hop"] and way["interface"] == "lan0" for way in ways), f"{ways}")
            check(sender.events("start")[0]["to"] == ways[0]["to"], "that one is taken")
            check("laptop" in sender.text() and "one hop" in sender.text(), sender.text())


def test_several_receivers_are_a_choice(onehop) -> None:
    with Room(onehop) as room:
        laptop, box = room.recv("b", "laptop"), room.recv("c", "the box")
        refused = room.look()
        check(refused.code() == USAGE, f"nobody can choose: {refused.text()}")
        check(sorted(names(refused)) == ["laptop", "the box"], f"both: {names(refused)}")
        for word in ("laptop", "the box", "--to", "fe80::"):
            check(word in refused.text(), f"the error names {word}: {refused.text()}")
        room.check_sent(room.look("--to", "the box"), box)
        box = room.recv("c", "the box")
        screen = room.screen()
        screen.wait_text("Send to (1 to 2")
        screen.write("3\n")
        screen.read_until(lambda: screen.text.count("Send to") == 2, "there is no third")
        screen.write("\n")
        screen.read_until(lambda: screen.text.count("Send to") == 3, "it looks again")
        rows = [row.split() for row in screen.rows() if "laptop" in row]
        check(rows and rows[-1][0] in "12", f"numbered: {screen.rows()}")
        screen.write(rows[-1][0] + "\n")
        check(screen.code() == DONE and laptop.code() == DONE, f"{screen.rows()}")
        screen.check_whole()
        check(box.process.poll() is None, "the other one was left alone")


def test_two_of_one_name_and_two_on_one_machine_are_two(onehop) -> None:
    with Room(onehop) as room:
        room.recv("b", "twin")
        other = room.recv("b", "other", "--listen", "[::]:7412")
        twin = room.recv("c", "twin")
        sender = room.look()
        check(sender.code() == USAGE and sorted(names(sender)) == ["other", "twin", "twin"],
              f"three: {sender.text()}")
        sender = room.look("--to", "twin")
        check(sender.code() == USAGE, f"which one? {sender.text()}")
        room.check_sent(room.look("--to", "10.5.0.3"), twin)
        room.check_sent(room.look("--to", "other"), other)


def test_who_comes_later_is_waited_for(onehop) -> None:
    with Room(onehop, letters="ab") as room:
        sender = room.look("--wait", "60")
        sender.wait_for(lambda: "run 'onehop recv'" in sender.text(), "it says what would help")
        room.check_sent(sender, room.recv("b", "late"))
        sender = room.look("--wait", "60", "--to", "later")
        sender.wait_for(lambda: "run 'onehop recv'" in sender.text(), "also where it has a name")
        room.check_sent(sender, room.recv("b", "later"))
        screen = room.screen()
        screen.wait_text("nobody answers on lan0 yet")
        screen.write("\x03")
        check(screen.code() == 7, f"interrupted: {screen.rows()}")


def test_a_link_that_comes_later_is_answered_on(onehop) -> None:
    with Room(onehop, letters="ab") as room:
        room.ip("b", "link set lan0 down")
        receiver = room.recv("b", "early")
        room.ip("b", "link set lan0 up")
        room.check_sent(room.look("--wait", "60"), receiver)


def test_an_address_with_a_label_is_of_its_interface(onehop) -> None:
    with Room(onehop, "4") as room:
        room.ip("b", "addr add 10.77.0.1/24 dev lan0 label lan0:1")
        receiver = room.recv("b", "labelled")
        room.check_sent(room.look(), receiver)


def test_a_receiver_on_two_links_is_one(onehop) -> None:
    with Room(onehop, letters="ab") as room:
        room.join("a", "two0", "b", "two0")
        room.ip("b", "addr add 10.6.0.2/24 dev two0")
        room.ip("a", "addr add 10.6.0.1/24 dev two0")
        receiver = room.recv("b", "laptop")
        sender = room.look()
        room.check_sent(sender, receiver)
        ways = found(sender)["receivers"][0]["ways"]
        check(found(sender)["count"] == 1, f"one receiver: {ways}")
        check({way["interface"] for way in ways} == {"lan0", "two0"}, f"by both: {ways}")
        receiver = room.recv("b", "laptop")
        sender = room.look("--iface", "two0")
        room.check_sent(sender, receiver)
        check({way["interface"] for way in found(sender)["receivers"][0]["ways"]} == {"two0"},
              "--iface holds for the look")


def test_who_is_hidden_or_listens_elsewhere_is_not_found(onehop) -> None:
    with Room(onehop, letters="ab") as room:
        hidden = room.recv("b", "shy", "--hidden")
        check(room.look("--wait", "0").code() == UNREACHABLE, "hidden")
        room.check_sent(room.look("--to", "10.5.0.2"), hidden)
        room.recv("b", "own", "--listen", "127.0.0.1")
        check(room.look("--wait", "0").code() == UNREACHABLE, "it listens on loopback alone")
        one = room.recv("b", "one", "--listen", "10.5.0.2")
        sender = room.look()
        room.check_sent(sender, one)
        check([way["to"] for way in found(sender)["receivers"][0]["ways"]] == ["10.5.0.2"],
              f"the address that is listened on: {found(sender)}")


def unreached(room, *options) -> str:
    sender = room.look("--wait", "0", *options)
    check(sender.code() == UNREACHABLE, f"nobody: 3: {sender.text()}")
    return sender.events("error")[0]["cause"]


def test_what_hinders_is_named(onehop) -> None:
    with Room(onehop, letters="ab") as room:
        cause = unreached(room)
        check("lan0" in cause and "firewall" not in cause, f"no more than is seen: {cause}")
        check("name service" in unreached(room, "--to", "no-such-name"), "a name is looked up, too")
        receiver = room.recv("b", "laptop")
        drop = ("nft", "add table inet t; add chain inet t in { type filter hook input priority 0; "
                "policy drop; }; add rule inet t in iif lo accept; add rule inet t in ct state "
                "established accept; add rule inet t in meta l4proto { tcp, ipv6-icmp } accept")
        room.run_on("a", *drop)
        check("firewall of this machine" in unreached(room), "our own firewall")
        room.run_on("a", "nft", "add rule inet t in udp sport 7411 accept")
        sender = room.look()
        room.check_sent(sender, receiver)
        room.run_on("b", *drop)
        closed = room.recv("b", "closed")
        closed.wait_for(lambda: "firewall of this machine" in closed.text(), "the receiver's own")
        check("firewall" not in unreached(room), "which the sender does not see")
        devices = room.work / "devices"
        devices.mkdir(mode=0o700)
        pairing = End(room.on("b", "env", f"ONEHOP_CONFIG_DIR={devices}", onehop, "pair",
                              "--listen", "10.5.0.2:7412"), room.work, "pair", CODE)
        room._ends.append(pairing)
        pairing.wait_for(lambda: "firewall of this machine" in pairing.text(), "and pair")
        room.ip("a", "link set lan0 down")
        check("no link is up" in unreached(room), "no link")


def test_a_vpn_that_has_the_route_is_named_and_gone_by(onehop) -> None:
    with Room(onehop, "4", "ab") as room:
        room.ip("a", "link add wg0 type veth peer name wg0x", "link set wg0x up",
                "addr add 10.99.0.2/32 dev wg0", "link set wg0 arp off up",
                "route add default dev wg0 table 51820",
                "rule add not fwmark 51820 table 51820 priority 100")
        cause = unreached(room)
        check("wg0" in cause and "10.5.0.0/24" in cause, f"the VPN: {cause}")
        receiver = room.recv("b", "laptop")
        room.check_sent(room.look(), receiver)  # the answer came over lan0, and so go the files


def test_K7_a_flood_of_forged_answers_hides_nobody(onehop) -> None:
    with Room(onehop, "4") as room:
        receiver = room.recv("b", "honest")
        with forger(room, "flood"):
            sender = room.look("--wait", "0")
            check(sender.code() == USAGE, f"many: {sender.text()}")
            check(found(sender)["count"] > 500, f"they come: {found(sender)['count']}")
            check("honest" in names(sender), "the honest one is in the list")
            screen = room.screen()
            screen.wait_text("Send to (1 to 16")
            peak = memory_peak(screen.pid)
            screen.close()
            room.check_sent(room.look("--to", "honest"), receiver)
        receiver = room.recv("b", "honest")
        room.recv("b", "other", "--listen", "10.5.0.2:7412")
        screen = room.screen()
        screen.wait_text("Send to (1 to 2")
        calm = memory_peak(screen.pid)
        screen.close()
        check(peak - calm < 8 << 20, f"{peak} bytes under the flood, {calm} without")


def test_K7_a_forged_name_is_shown_escaped(onehop) -> None:
    with Room(onehop, "4") as room, forger(room, "name"):
        sender = room.look("--wait", "0", letter="b")
        check(sender.code() != DONE, "nobody is there")
        screen = Screen(room.on("b", onehop, "send", room.file(10), "--wait", "0"),
                        {"ONEHOP_CODE": CODE})
        screen.code()
        for text in (screen.text, sender.errors.read_text()):
            check("evil" in text, f"it is shown: {text!r}")
            check("\x1b]" not in text and "\x07" not in text and "\u202e" not in text,
                  f"escaped: {text!r}")


def answers_to(room, source, seconds=2.0, letter="a", each=0.002) -> list[int]:
    """answers_to asks as `source`, and returns the sizes of what comes back to that host."""
    asking = room.socket(letter, socket.AF_INET6 if ":" in source else socket.AF_INET,
                         socket.SOCK_DGRAM)
    index = int(room.run_on(letter, "cat", "/sys/class/net/lan0/ifindex"))
    sizes: list[int] = []
    with asking:
        asking.setsockopt(socket.SOL_SOCKET, 25, b"lan0")  # SO_BINDTODEVICE
        if ":" in source:
            asking.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
            to: Any = (GROUP6, PORT, 0, index)
        else:
            asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF,
                              struct.pack("4s4si", bytes(4), bytes(4), index))
            to = (GROUP, PORT)
        asking.bind((source, 0, 0, index) if ":" in source else (source, 0))
        asking.setblocking(False)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            asking.sendto(QUESTION, to)
            time.sleep(each)
            with contextlib.suppress(BlockingIOError):
                while True:
                    sizes.append(len(asking.recv(2000)))
    return sizes


def test_K7_a_question_is_no_weapon(onehop) -> None:
    with Room(onehop) as room:
        room.recv("b", "n" * 63)
        room.ip("a", "addr add 192.0.2.1/32 dev lan0", "-6 addr add fe80::aa/64 dev lan0")
        room.ip("b", "route add 192.0.2.1/32 dev lan0")  # it could be answered
        for source in ("10.5.0.1", "fe80::aa"):
            sizes = answers_to(room, source)
            check(10 <= len(sizes) <= 30, f"10 a second of 500: {len(sizes)}")
            check(max(sizes) <= len(QUESTION), f"none is longer than its question: {max(sizes)}")
        check(answers_to(room, "192.0.2.1", 0.5) == [], "who is in no subnet of ours gets none")


def test_K7_a_session_is_not_disturbed_by_questions(onehop) -> None:
    with Room(onehop) as room:
        receiver = room.recv("b", "laptop")
        sender = room.look("--max-rate", "100Mbit", size=20_000_000)
        room.wait_bytes(sender, "b", "lan0", 2_000_000)
        sizes = answers_to(room, "10.5.0.3", 1.0, "c", each=0.0005)
        check(sender.process.poll() is None, "data still flowed")
        check(len(sizes) >= 10, f"it is found while it receives: {len(sizes)}")
        room.check_sent(sender, receiver)
        end = receiver.end()
        check(end["hash_ok"] and end["loss_ratio"] < 0.01, f"nothing was lost by it: {end}")


@contextlib.contextmanager
def forger(room, how) -> Iterator[None]:
    """forger answers from host c, as whom it likes, until the block ends."""
    room.ip("c", "route add local 10.5.128.0/17 dev lo", "addr add 10.5.0.3/16 dev lan0")
    for letter in "ab":
        room.ip(letter, f"addr add 10.5.0.{ord(letter) - 96}/16 dev lan0")
    process = subprocess.Popen(
        room.on("c", sys.executable, Path(__file__).with_name("find_forger.py"), how),
        stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        check(process.stdout.readline() == b"ready\n", "the forger is there")
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def memory_peak(pid) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


if __name__ == "__main__":
    sys.exit(main(globals()))
