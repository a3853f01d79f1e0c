#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Records what this machine's kernel answers to RTM_GETQDISC and RTM_GETLINK dumps, for the
parsers' tests.

Needs root, ip, tc. It makes a network namespace of its own (unshare), which ends with the process.
Usage:
    record_netlink.py OUTPUT_FOLDER
Writes qdisc.hex and link.hex: `# ` comments, then one message a line.
"""
import ctypes
import os
import platform
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

RTM_GETLINK, RTM_GETQDISC = 18, 38
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
NLMSG_DONE = 3


def dump(kind, body) -> Iterator[Any]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.bind((0, 0))
        s.send(struct.pack("=IHHII", 16 + len(body), kind, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + body)
        while True:
            data = s.recv(65536)
            while data:
                length, message_type = struct.unpack_from("=IH", data)
                if message_type == NLMSG_DONE:
                    return
                yield data[:length]
                data = data[(length + 3) & ~3:]


def main() -> None:
    folder = sys.argv[1]
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000) != 0:
        sys.exit(f"unshare a network namespace: {os.strerror(ctypes.get_errno())}. Run as root.")
    commands = """ip link add va mtu 1500 type veth peer name vb
ip link add mv link va type macvlan mode bridge
ip link set lo up
ip link set va up
ip link set vb up
ip link set mv up
tc qdisc add dev va root handle 1: tbf rate 8kbit burst 2000 limit 1000000
ip link add du type veth peer name dv
ip link set du up
tc qdisc add dev du root handle 2: htb default 10
tc class add dev du parent 2: classid 2:10 htb rate 100mbit
tc qdisc add dev du parent 2:10 handle 20: bfifo limit 750000
ip link add dp type veth peer name dq
ip link set dp up
tc qdisc add dev dp root handle 3: pfifo limit 1000"""
    for command in commands.splitlines():
        subprocess.run(command.split(), check=True)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind(("va", 0))
        for _ in range(20):
            s.send(b"\xff" * 6 + b"\x02" + b"\0" * 5 + b"\x88\xb5" + b"\0" * 986)
    for name, kind, body in (("qdisc", RTM_GETQDISC, struct.pack("=BxxxiIII", 0, 0, 0, 0, 0)),
                             ("link", RTM_GETLINK, struct.pack("=BxHiII", 0, 0, 0, 0, 0))):
        with open(os.path.join(folder, name + ".hex"), "w", encoding="ascii") as out:
            out.write(
                f"# recorded by record_netlink.py on Linux {platform.release()} "
                f"{platform.machine()}\n"
            )
            out.write("# " + commands.replace("\n", "\n# ")
                      + "\n# then 20 frames of 1000 bytes on va\n")
            for message in dump(kind, body):
                out.write(message.hex() + "\n")


main()
