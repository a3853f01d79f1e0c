#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What passes between two machines: reach_test.py ONEHOP [WORD].

Goal:   doctor --peer tells a receiver that is there from one that is not, from a firewall, and from
        an access point that keeps its stations apart.
Method: hosts on a bridge in namespaces; nftables; a bridge's isolated ports.
Bounds: exit codes and texts.
"""

import json
import subprocess
import sys
from typing import Any

import event_schema
from find_test import DONE, UNREACHABLE, Room
from program import check, main


def tried(room, *options) -> Any:
    """tried is doctor --peer's event and exit code on a."""
    done = subprocess.run(room.on("a", room.onehop, "doctor", "--json", "--peer", *options),
                          capture_output=True, text=True, timeout=60)
    event = json.loads(done.stdout.splitlines()[-1])
    faults = list(event_schema.faults(event))
    check(not faults, f"as docs/json.md says: {faults}")
    return event, done.returncode


def said(event) -> str:
    return " ".join(f"{one['key']} {one['ok']} {one['text']} {one.get('remedy', '')}"
                    for one in event["findings"])


def test_doctor_tells_what_passes_to_a_peer(onehop) -> None:
    with Room(onehop, "4") as room:
        receiver = room.recv("b", "laptop")
        event, code = tried(room, "laptop")
        check(code == DONE and event["is_reached"], f"{code}: {event}")
        check("question True" in said(event) and "connection True" in said(event), said(event))
        event, code = tried(room, "10.5.0.2")
        check(code == DONE and "question True" in said(event), f"by its address: {said(event)}")
        event, code = tried(room, "10.5.0.3")
        check(code == UNREACHABLE and "takes no connection" in said(event), said(event))
        event, code = tried(room, "nobody")
        check(code == UNREACHABLE and "question False" in said(event), said(event))
        room.run_on("b", "nft", "add table ip f; add chain ip f in { type filter hook input "
                    "priority 0; }; add rule ip f in tcp dport 7411 drop")
        event, code = tried(room, "laptop")
        check(code == UNREACHABLE and "what comes is dropped" in said(event), said(event))
        room.run_on("b", "nft", "flush chain ip f in; add rule ip f in udp dport 7411 drop")
        event, code = tried(room, "10.5.0.2")
        check(code == DONE and "question False" in said(event) and "--to ADDRESS" in said(event),
              said(event))
        # As an access point does that keeps its stations apart: both reach c alone, the gateway.
        room.run_on("b", "nft", "delete table ip f")
        room.ip("a", "route add default via 10.5.0.3")
        for letter in "ab":
            room.run_on("s", "bridge", "link", "set", "dev", f"to-{letter}", "isolated", "on")
        room.ip("a", "neigh flush dev lan0")
        event, code = tried(room, "10.5.0.2")
        check(code == UNREACHABLE and "gateway True" in said(event) and "apart" in said(event),
              said(event))
        check(receiver.process.poll() is None, f"it waits on: {receiver.text()}")
        check("rejected" not in receiver.text(), f"and says nothing of it: {receiver.text()}")


if __name__ == "__main__":
    sys.exit(main(globals()))
