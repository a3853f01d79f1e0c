#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Transfers across the lab's link, by the program as users run it: transfer_test.py ONEHOP [WORD].

Goal:   bytes arrive whole over every pair of ports, over loss, over changes of the link; both ends
        say what they promise.
Method: the real program, real sockets and XDP programs, in network namespaces.
Bounds: of 20,000 frames at 10 % loss the count has a standard deviation of 42; 8 to 12 % is more
        than 9 of them. Nothing is
        judged by the clock.
"""

import os
import signal
import subprocess
import sys
import time

from program import (
    ADDRESS_B, ADDRESS_B6, CODE, End, World, check, end_all, inherited_of, main)

MB = 1_000_000
TIMED_OUT = 11


def check_end(event, role, io, size) -> None:
    check(event["io_requested"] == io and event["io_used"] == io,
          f"{role}: a named io is the one that is used")
    check(event["io_mode"] in (("zero-copy", "copy", "skb") if io == "afxdp" else ("gso", "plain")),
          f"{role}: io_mode {event['io_mode']}")
    check(event["bytes_total"] == size and event["files_total"] == 1 and event["hash_ok"] is True,
          f"{role}: bytes, files, hash")
    check(
        abs(event["goodput_bps"] - 8 * size / event["seconds"]) <= 0.01 * event["goodput_bps"],
        f"{role}: goodput is bytes by seconds")
    check(event["cpu_seconds"] > 0 and event["cpu_ns_per_byte"] > 0, f"{role}: CPU is counted")


def test_no_child_inherits_a_descriptor_of_afxdp(onehop) -> None:
    with World(onehop) as world:
        receiver, sender = world.receive("afxdp"), world.send(world.file(60_000_000), "afxdp")
        looks, inherited = 0, set()
        while sender.process.poll() is None:
            for end in (sender, receiver):
                inherited |= inherited_of(end.process.pid)
            looks += 1
            time.sleep(0.003)
        check(sender.code() == 0 and receiver.code() == 0, f"{sender.text()} {receiver.text()}")
        check(looks > 20 and not inherited, f"a child would get {inherited} in {looks} looks")


def test_every_pair_of_ports_carries_a_file(onehop) -> None:
    for io_send in ("udp", "afxdp"):
        for io_recv in ("udp", "afxdp"):
            with World(onehop) as world:
                path = world.file(20 * MB + 12_345)
                ends = world.transfer(path, io_send, io_recv)
                for event, role, io in zip(ends, ("send", "recv"), (io_send, io_recv)):
                    check_end(event, f"{io_send} to {io_recv}, {role}", io, path.stat().st_size)


def test_auto_takes_the_cheapest_port_of_each_end_and_says_why(onehop) -> None:
    """Without zero-copy: the socket to send; to receive the driver, where nothing coalesces frames
    and they are small."""
    for profile, received_over, why in (("steady-600", "afxdp", "cheaper than through a socket"),
                                        ("unshaped-gro", "udp", "without GRO alone"),
                                        ("unshaped-mtu9000", "udp", "without GRO alone")):
        with World(onehop, profile) as world:
            sent, received = world.transfer(world.file(20 * MB + 12_345), "auto", "auto")
            check(sent["io_used"] == "udp" and "sending in copy mode" in sent["io_reason"],
                  f"{profile}, send: {sent['io_used']}, {sent['io_reason']}")
            check(received["io_used"] == received_over and why in received["io_reason"],
                  f"{profile}, recv: {received['io_used']}, {received['io_reason']}")


def test_generic_xdp_receives_behind_the_shaper(onehop) -> None:
    """Generic XDP does not see an skb that a tc program redirected, so what stands between the
    hosts must not redirect."""
    for io in ("udp", "afxdp"):
        with World(onehop) as world:
            sent, received = world.transfer(world.file(5 * MB), io, "afxdp",
                                            options=("--xdp-mode", "skb"))
            check(received["io_mode"] == "skb", f"{io}: recv used {received['io_mode']}")
            check(sent["io_used"] == io and received["hash_ok"] is True,
                  f"{io}: sent over {sent['io_used']}, hash {received['hash_ok']}")


def test_ipv6_carries_a_file(onehop) -> None:
    for io in ("udp", "afxdp"):
        with World(onehop) as world:
            world.transfer(world.file(5 * MB), io, io, address=f"[{ADDRESS_B6}]")


def test_link_local_addresses_carry_a_file(onehop) -> None:
    """All that two machines without any configuration have: Wi-Fi Direct, a cable. Each end names
    its own interface."""
    for io_send, io_recv in (("udp", "udp"), ("afxdp", "afxdp"), ("udp", "afxdp")):
        with World(onehop) as world:
            # until duplicate address detection is through, nobody can use them
            for host, device in (("a", "mv0"), ("b", "vb")):
                while not (text := world.run_on(host, "ip", "-6", "-o", "address", "show", "dev",
                                                device, "scope", "link", "-tentative")):
                    time.sleep(0.1)
            [address] = [word.split("/")[0] for word in text.split() if word.startswith("fe80:")]
            path = world.file(5 * MB)
            receiver = world.receive(io_recv, address=f"[{address}%vb]")
            sender = world.send(path, io_send, address=f"[{address}%mv0]")
            check(sender.code() == 0, f"{io_send} to {io_recv}: {sender.text()}")
            check(receiver.code() == 0, f"{io_send} to {io_recv}: {receiver.text()}")
            world.check_same(path)


def add_other_link(world) -> None:
    for command in (f"link add other type veth peer name other netns {world.name}-b",
                    "link set other up", "addr add 10.112.0.1/24 dev other"):
        world.run_on("a", "ip", *command.split())
    for command in ("link set other up", "addr add 10.112.0.2/24 dev other"):
        world.run_on("b", "ip", *command.split())


def test_the_named_interface_carries_all_of_it_where_the_route_prefers_another(onehop) -> None:
    with World(onehop) as world:
        add_other_link(world)
        world.run_on("a", "ip", "route", "add", f"{ADDRESS_B}/32", "via", "10.112.0.2")
        path = world.file(5 * MB)
        receiver = world.receive()
        sender = world.send(path, "udp", "--iface", "mv0")
        check(sender.code() == 0, f"by mv0: {sender.text()}")
        check(receiver.code() == 0, receiver.text())
        check(sender.end()["interface"] == "mv0", "by mv0")
        world.check_same(path)


def test_D5_what_sudo_started_gives_files_to_its_user_and_opens_its_port_anew(onehop) -> None:
    """For a sender that comes by another address, though it has no privilege by then: another
    process keeps it, and ends with it."""
    with World(onehop) as world:
        world.work.chmod(0o755)
        os.chown(world.target, 65534, 65534)
        path = world.file(2 * MB)
        receiver = End(
            world.on("b", "env", "SUDO_UID=65534", "SUDO_GID=65534", onehop, "recv", "--dir",
                     world.target, "--io", "afxdp", "--on-exist", "overwrite", "--json"),
            world.work, "sudo", CODE)
        try:
            receiver.wait_for(lambda: receiver.events("start"), "recv can accept")
            for address in (ADDRESS_B, ADDRESS_B6, ADDRESS_B):
                sender = world.send(path, "udp", address=address)
                check(sender.code() == 0, f"{address} ends with 0: {sender.text()}")
            rights = subprocess.check_output(
                ["pgrep", "-P", str(receiver.process.pid), "onehop-rights"], text=True).split()
            world.check_same(path)
            check((world.target / path.name).stat().st_uid == 65534, "the file belongs to the user")
        finally:
            end_all([receiver])
        for _ in range(100):
            time.sleep(0.05)
            if not os.path.exists(f"/proc/{rights[0]}"):
                return
        raise AssertionError("what keeps the rights is left after a kill")


def test_background_frames_carry_lower_effort_and_others_do_not(onehop) -> None:
    """A packet socket on b counts the traffic classes of the frames to the data port; UDP receives,
    so it sees them all."""
    count = (
        "import socket,struct,sys\ns=socket.socket(socket.AF_PACKET,socket.SOCK_RAW,"
        "socket.htons(3))\ns.bind(('vb',0))\n"
        "s.settimeout(30)\nprint('ready',flush=True)\nseen={}\n"
        "while sum(seen.values())<500:\n f=s.recv(65536)\n"
        " if f[12:14]==b'\\x08\\x00' and f[23]==17 and f[36:38]==struct.pack('!H',7411) and "
        "len(f)>1000: seen[f[15]]=seen.get(f[15],0)+1\n"
        "print(sorted(seen))\n")
    ect0, cs1 = 2, 8 << 2
    for io in ("udp", "afxdp"):
        for priority, wanted in (("normal", ect0), ("background", cs1 | ect0)):
            with World(onehop) as world:
                receiver = world.receive("udp")
                counter = subprocess.Popen(world.on("b", sys.executable, "-c", count),
                                           stdout=subprocess.PIPE, text=True)
                check(counter.stdout.readline().strip() == "ready", "the packet socket listens")
                sender = world.send(world.file(4 * MB), io, "--priority", priority)
                check(sender.code() == 0 and receiver.code() == 0,
                      f"{io}: {sender.text()} {receiver.text()}")
                seen = counter.communicate(timeout=40)[0].strip()
                check(seen == str([wanted]),
                      f"{io}, {priority}: traffic class {wanted}, seen {seen}")


def test_N11_loss_of_ten_percent_is_seen_by_the_port_and_repaired(onehop) -> None:
    """The loss is injected between the hosts, so that an XDP program on b, which runs before tc,
    misses the frames as well."""
    for io in ("udp", "afxdp"):
        with World(onehop, "loss-10") as world:
            sender, receiver = world.transfer(world.file(28 * MB), io, io)
            check(0.08 <= sender["loss_ratio"] <= 0.12,
                  f"{io}: 10 % of the frames are lost, the sender says {sender['loss_ratio']:.3f}")
            check(sender["retransmitted_bytes_total"] >= 0.08 * 28 * MB,
                  f"{io}: what was lost is sent again")
            check(receiver["duplicate_bytes_total"] <= 0.05 * 28 * MB, f"{io}: and not much else")


def test_what_the_interface_drops_is_named_by_the_sender(onehop) -> None:
    """Below the macvlan another program sends frames that the wire's far end is too narrow for: the
    veth drops them, as it does with what finds its ring full, and tells nobody."""
    oversize = (
        "import socket\ns=socket.socket(socket.AF_PACKET,socket.SOCK_RAW)\ns.bind(('va',0x88b5))\n"
        "for _ in range({}): s.send(b'\\xff'*6+b'\\x02'+bytes(5)+b'\\x88\\xb5'+bytes(1576))\n")
    for io in ("udp", "afxdp"):
        for frames in (0, 7):
            with World(onehop) as world:
                world.run_on("a", "ip", "link", "set", "dev", "va", "mtu", "1600")
                path, receiver, sender = world.begin(io, 50 * MB, 5 * MB)
                world.run_on("a", sys.executable, "-c", oversize.format(frames))
                check(sender.code() == 0 and receiver.code() == 0,
                      f"{io}: {sender.text()} {receiver.text()}")
                world.check_same(path)
                dropped = [{"interface": "va", "tx_dropped_frames": frames}] if frames else []
                check(sender.end()["interface_drops"] == dropped,
                      f"{io}: {frames} frames were dropped: {sender.end()['interface_drops']}")
                says = f"{frames} frames dropped by interface va" in sender.text()
                check(says == (frames > 0),
                      f"{io}: the summary says so where there are any: {sender.text()}")
                check(
                    receiver.end()["interface_drops"] is None,
                    f"{io}: the receiving end does not know: {receiver.end()['interface_drops']}")


def test_a_slow_disk_holds_the_sender_back_and_loses_nothing(onehop) -> None:
    """The file is larger than all buffers, and the link six times as fast as the disk. A fixed rate
    takes no heed of the receiver: there it is credit alone that keeps the receiver from
    dropping."""
    disk_bps, size = 100_000_000, 60 * MB
    profile = f'rate = "600Mbit"\n[disk]\nrate = "{disk_bps // 1_000_000}Mbit"\nstall = ["1:2"]\n'
    for io, options in (("udp", []), ("afxdp", []), ("udp", ["--law", "fixed:500Mbit"])):
        with World(onehop, profile) as world:
            path = world.file(size)
            receiver = world.receive(io, into=world.disk)
            sender = world.send(path, io, *options)
            check(sender.code() == 0 and receiver.code() == 0,
                  f"{io}: {sender.text()} {receiver.text()}")
            world.check_same(path, world.disk)
            sent, received = sender.end(), receiver.end()
            buffer = received["app_buffer"]
            # The disk lets a file pass at its rate at best; 10 % for its own burst. Faster means
            # that it was not slow and shows nothing.
            check(sent["goodput_bps"] <= 1.1 * disk_bps,
                  f"{io}: the sender went as fast as the disk, not at {sent['goodput_bps']} bit/s")
            check(1 * MB <= buffer["occupancy_bytes_max"] <= buffer["capacity_bytes"] < size,
                  f"{io}: the buffer filled, and held: {buffer}")
            check(sent["retransmitted_bytes_total"] == sent["tail_probes_total"] == 0,
                  f"{io}: nothing was sent twice")
            check(sent["loss_ratio"] == 0 and received["rx_ring"]["refused_total"] == 0,
                  f"{io}: nothing was dropped")


def test_N9_the_mtu_is_lowered_in_the_transfer(onehop) -> None:
    for io in ("udp", "afxdp"):
        with World(onehop) as world:
            path, receiver, sender = world.begin(io, 100 * MB, 10 * MB)
            world.run_on("a", "ip", "link", "set", "dev", "mv0", "mtu", "1300")
            check(sender.code() == 0,
                  f"{io}: send ends with 0, not {sender.process.returncode}: {sender.text()}")
            check(receiver.code() == 0, f"{io}: recv ends with 0: {receiver.text()}")
            world.check_same(path)


def test_N10_the_interface_goes_down_and_comes_back(onehop) -> None:
    for io in ("udp", "afxdp"):
        with World(onehop) as world:
            path, receiver, sender = world.begin(io, 100 * MB, 10 * MB)
            world.run_on("b", "ip", "link", "set", "dev", "vb", "down")
            time.sleep(0.5)
            world.run_on("b", "ip", "link", "set", "dev", "vb", "up")
            check(sender.code() == 0,
                  f"{io}: send ends with 0, not {sender.process.returncode}: {sender.text()}")
            check(receiver.code() == 0, f"{io}: recv ends with 0: {receiver.text()}")
            world.check_same(path)


def test_a_link_model_is_kept_when_the_route_moves_to_another_interface(onehop) -> None:
    with World(onehop) as world:
        add_other_link(world)
        path, receiver = world.file(100 * MB), world.receive("udp")
        sender = world.send(path, "udp", "--link-model", world.work / "model")
        world.wait_bytes(10 * MB, receiver)
        world.run_on("a", "ip", "route", "add", f"{ADDRESS_B}/32", "via", "10.112.0.2")
        check(sender.code() == 0, sender.text())
        check(receiver.code() == 0, receiver.text())
        check(sender.end()["interface"] == "other", "it moved")
        world.check_same(path)


def test_N10_the_link_goes_for_good_and_both_ends_say_so(onehop) -> None:
    with World(onehop) as world:
        receiver = world.receive("udp")
        sender = world.send(world.file(100 * MB), "afxdp")
        world.wait_bytes(10 * MB, receiver)
        world.run_on("m", "ip", "link", "set", "dev", "mb", "down")
        for end, role in ((sender, "send"), (receiver, "recv")):
            check(end.code() == TIMED_OUT,
                  f"{role} ends with {TIMED_OUT}, not {end.process.returncode}: {end.text()}")
            [error] = end.events("error")
            # Whichever path is found out first, data or control; b's own end of the link has no
            # carrier, and it says so.
            is_path = error["cause"].startswith(
                ("nothing came back", "the peer said nothing")) and "link" in error["hint"]
            is_own_link = role == "recv" and error["cause"].startswith(
                "vb was down") and "Bring it up" in error["hint"]
            check(is_path or is_own_link, f"{role}: cause and remedy: {error}")
        check(world.names() == [".file.bin.onehop-journal", ".file.bin.part"],
              f"what arrived is kept, without its final name: {world.names()}")


def test_N7_garbage_at_the_data_port_changes_nothing(onehop) -> None:
    """The flood runs before the first byte and after the last one, and what of it reached b is
    counted at b's device."""
    garbage = ("import os,socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\ns.connect(('"
               + ADDRESS_B + "',7411))\n"
               "print('floods',flush=True)\n"
               "while True:\n try:\n  s.send(os.urandom(1400))\n except OSError: pass\n")
    for io in ("udp", "afxdp"):
        with World(onehop) as world:
            path = world.file(30 * MB)
            receiver = world.receive(io)
            flood = subprocess.Popen(world.on("a", sys.executable, "-c", garbage),
                                     stdout=subprocess.PIPE, text=True)
            try:
                check(flood.stdout.readline().strip() == "floods", "the flood runs")
                before = int(world.run_on("b", "cat", "/sys/class/net/vb/statistics/rx_packets"))
                sender = world.send(path, io)
                check(sender.code() == 0, f"{io}: {sender.text()}")
                check(receiver.code() == 0, f"{io}: {receiver.text()}")
                arrived = int(world.run_on("b", "cat",
                                           "/sys/class/net/vb/statistics/rx_packets")) - before
                check(flood.poll() is None, "the flood still runs")
            finally:
                flood.send_signal(signal.SIGKILL)
                flood.wait()
            world.check_same(path)
            sent, received = sender.end(), receiver.end()
            strange = arrived - sent["frames_total"]
            check(strange >= sent["frames_total"] / 10,
                  f"{io}: {strange} frames of garbage came beside {sent['frames_total']} of ours")
            check(received["bytes_total"] == path.stat().st_size and received["hash_ok"] is True,
                  f"{io}: bytes and hash")
            check(received["duplicate_bytes_total"] <= sent["retransmitted_bytes_total"],
                  f"{io}: no byte came from elsewhere")


def test_a_run_leaves_no_program_and_can_be_repeated_at_once(onehop) -> None:
    with World(onehop) as world:
        path = world.file(2 * MB)
        for _ in range(3):
            world.transfer(path, "afxdp", "afxdp", options=("--on-exist", "overwrite"))
            for host, device in (("a", "mv0"), ("b", "vb")):
                check("xdp" not in world.run_on(host, "ip", "link", "show", device),
                      f"no XDP program is left on {device}")
        receiver = world.receive("afxdp")
        receiver.process.kill()
        receiver.code()
        world.transfer(path, "afxdp", "afxdp", options=("--on-exist", "overwrite"))


def test_N6_nothing_answers_a_stranger(onehop) -> None:
    with World(onehop) as world:
        receiver = world.receive("udp")
        probe = (
            "import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\ns.settimeout(1)\n"
            "for size in (1,20,64,1200,1472): s.sendto(bytes(size),('" + ADDRESS_B + "',7411))\n"
            "try: print(len(s.recv(2000)))\nexcept (TimeoutError, ConnectionRefusedError): "
            "print('silence')\n"
        )
        check(
            world.run_on("a", sys.executable, "-c", probe).strip() == "silence",
            "no datagram answers an unauthenticated one")
        check(receiver.process.poll() is None, "the receiver goes on waiting")
        stranger = socket_probe(world)
        check(stranger == "closed",
              f"an unauthenticated connection ends without a word of ours, not with {stranger!r}")


def socket_probe(world) -> str:
    """A client that talks nonsense to the control port: what does it get before the connection is
    closed?"""
    code = (
        "import socket\ns=socket.create_connection(('" + ADDRESS_B
        + "',7411),5)\ns.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\ns.settimeout(15)\n"
        "got=b''\ntry:\n while True:\n  some=s.recv(4096)\n  if not some: break\n  "
        "got+=some\nexcept ConnectionResetError: pass\n"
        "print('closed' if len(got)<=7 else got[:40])\n")  # a TLS alert is 7 bytes
    return world.run_on("a", sys.executable, "-c", code).strip()


if __name__ == "__main__":
    sys.exit(main(globals()))
