# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The tables of docs/json.md as a schema, and what of an event is not as they say."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs/json.md"
OBJECT = re.compile(r"^(##+) (\w+)\n(.*?)(?=^#|\Z)", re.S | re.M)
ROW = re.compile(r"^\| `(\w+)` \| (\w+)( or null)?(?:, (send|recv|maybe))? \| .*\|$", re.M)
KINDS: dict[str, Any] = {"text": str, "whole": int, "number": (int, float), "flag": bool,
                         "list": list, "object": dict}


@functools.cache
def schema() -> dict[str, Any]:
    """schema returns, by event or object, {key: (kind, whether null will do, who has it)}."""
    found = {name: {key: (kind, bool(null), who) for key, kind, null, who in ROW.findall(body)}
             for _, name, body in OBJECT.findall(PAGE.read_text())}
    assert all(found.values()), f"{PAGE} has a table without keys: {found}"
    return found


def types() -> list[str]:
    """Of the events; an object within one has a heading of a lower level."""
    return [name for level, name, _ in OBJECT.findall(PAGE.read_text()) if level == "##"]


def faults_of(name, value) -> Iterator[str]:
    keys = schema()[name]
    for key in value.keys() - keys.keys():
        yield f"{name}: no table has the key '{key}'"
    for key, (kind, may_be_null, who) in keys.items():
        if key not in value:
            if who != "maybe" and who in ("", value.get("role")):
                yield f"{name}: '{key}' is missing"
            continue
        one = value[key]
        if who in ("send", "recv") and who != value["role"]:
            yield f"{name}: '{key}' is of the end that does {who}"
        if one is None:
            if not may_be_null:
                yield f"{name}: '{key}' is null"
        elif kind in schema() and isinstance(one, dict):
            yield from (f"{key} of {name}, {fault}" for fault in faults_of(kind, one))
        elif (not isinstance(one, KINDS.get(kind, dict))
              or (kind != "flag" and isinstance(one, bool))):
            yield f"{name}: '{key}' is no {kind}: {one!r}"


def faults(event) -> list[str]:
    """What of an event is not as the page says."""
    everywhere = ("schema_version", "type", "session")
    body = {key: value for key, value in event.items() if key not in everywhere}
    if event.get("schema_version") != 1 or event.get("type") not in types():
        return [f"an event that the page does not have: {event}"]
    return list(faults_of(event["type"], body))
