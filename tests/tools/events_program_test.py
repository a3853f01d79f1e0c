#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Events are what docs/json.md says: events_program_test.py ONEHOP [WORD].

Goal:   each event has the keys of its table, each of its kind, and each table belongs to an event.
Method: transfers on loopback, whose events End holds against the page, as in all other tests that
        read events; then events that are changed.
Bounds: none. Events of Wi-Fi Direct are printed where there is a radio: tests/vm plays those. Those
        of AF_XDP rings need root: tests/lab/rings_test.py.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lab"))
import event_schema  # noqa: E402
from loopback import MB, Loopback  # noqa: E402
from program import check, main  # noqa: E402

P2P = ("radio", "peer", "pin", "group", "network", "member", "left")


def seen_events(onehop) -> list[dict]:
    """Events of every type but those of P2P."""
    with Loopback(onehop) as here:
        tree = here.work / "tree"
        tree.mkdir()
        for i in range(20):
            (tree / f"{i}").write_bytes(bytes(1000))
        (tree / "link").symlink_to("0")
        (tree / "holes").write_bytes(b"")
        with open(tree / "holes", "r+b") as file:
            file.truncate(4 * MB)
        ends = [here.receive("--allow-hidden")]
        # Slow enough for intervals and for a look by watch.
        ends.append(here.start("send", tree, here.file(2 * MB), "--to", here.address, "--json",
                               "--files", "--law", "fixed:10M"))
        ends[1].wait_for(lambda: ends[1].events("interval"), "data flows")
        ends.append(here.start("watch", "--json", "--once", str(ends[1].process.pid)))
        for end in ends:
            check(end.code() in (0, 12), f"it ends well: {end.text()}")
        ends.append(here.start("recv", "--clean", here.target, "--json"))
        ends.append(here.start("doctor", "--json"))
        ends.append(here.start("doctor", "--peer", here.address, "--json"))
        ends.append(here.start("send", "no-such-file", "--to", here.address, "--json"))
        own = here.start("recv", "--once", "--dir", here.target, "--listen", here.address, "--json")
        own.process.terminate()
        ends.append(own)
        for end in ends[3:]:
            end.code()
        return [event for end in ends for event in end.events()]


def test_each_type_is_printed_as_its_table_says(onehop) -> None:
    seen = {event["type"] for event in seen_events(onehop)}
    # A tree that is read within the start has no manifest; a code that is given is no event; on
    # loopback nobody is looked for. Paired devices have tests of their own.
    missing = (set(event_schema.types()) - seen - set(P2P) -
               {"manifest", "code", "receivers", "rings", "paired", "device"})
    check(not missing, f"no event of these types was seen: {missing} of {seen}")


def test_types_that_need_more_are_in_the_source(_onehop) -> None:
    """What no loopback prints has its keys where it is made."""
    own = ("manifest", "code", "receivers", "paired", "device")
    for names, folder in ((P2P, "tools/onehop/p2p"), ((*own, "rings"), "tools/onehop")):
        text = "".join(path.read_text() for path in sorted((ROOT / folder).rglob("*.cpp")))
        for name in names:
            check(f'event("{name}"' in text, f"{name} is printed in {folder}")
            for key in event_schema.schema()[name]:
                check(re.search(rf'\{{\s*"{key}"', text), f"{name}: '{key}' is in {folder}")


def test_the_source_prints_no_other_type(_onehop) -> None:
    printed = {
        name for path in (ROOT / "tools/onehop").rglob("*.cpp")
        for name in re.findall(r'(?:event|head_of)\("(\w+)"', path.read_text())
    }
    check(printed - {"refused"} == set(event_schema.types()),  # refused: on the socket of watch
          f"{printed ^ set(event_schema.types())}")


def test_what_is_not_as_the_page_says_is_found(onehop) -> None:
    with Loopback(onehop) as here:
        sender = here.send(size=MB)
        good = sender.end()
    check(event_schema.faults(good) == [], "as it was printed")
    for change, part in (({"files_total": "1"}, "no whole"), ({"files_total": True}, "no whole"),
                         ({"files_total": 1.5}, "no whole"), ({"hash_ok": 1}, "no flag"),
                         ({"peer": None}, "'peer' is null"), ({"type": "ende"}, "does not have"),
                         ({"schema_version": 2}, "does not have"), ({"more": 1}, "'more'"),
                         ({"tx_queue": {}}, "'scope' is missing"), ({"rx_ring": 1}, "no queue")):
        faults = event_schema.faults(good | change)
        check(len(faults) >= 1 and any(part in fault for fault in faults), f"{change}: {faults}")
    less = {key: value for key, value in good.items() if key != "law"}
    check(event_schema.faults(less) == ["end: 'law' is missing"], f"{event_schema.faults(less)}")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
