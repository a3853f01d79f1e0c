# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Kept values of what gives the same numbers for the same code: tools/measure/headline and
tools/measure/cpu. Only `--accept WHY` writes them, and it adds what they were and why they changed.
A file that was edited by hand is refused, and so are values of another way to measure.
"""
import datetime
import hashlib
import json
from typing import Any


def digest_of(store) -> Any:
    return hashlib.sha256(
        json.dumps({key: store[key] for key in ("scenario", "values", "history")},
                   sort_keys=True).encode()).hexdigest()


def read_store(path, scenario, tool) -> Any:
    """The kept values, or a text that says why they do not count. `scenario` is the file that says
    how they are measured."""
    if not path.exists():
        return None, f"{path} is not there: {tool} --accept WHY writes it"
    store = json.loads(path.read_text())
    if store.get("digest") != digest_of(store):
        return None, f"{path} was edited by hand: take it back, or {tool} --accept WHY"
    if store["scenario"] != hashlib.sha256(scenario.read_bytes()).hexdigest():
        return None, f"{scenario} has changed since the values were kept: {tool} --accept WHY"
    return store, None


def text_of(value, margin="") -> str:
    """JSON with one line for what holds single values alone, which is a line for each case."""
    if isinstance(value, dict):
        begin, parts, end = "{", [(f"{json.dumps(key)}: ", one) for key, one in value.items()], "}"
    elif isinstance(value, list):
        begin, parts, end = "[", [("", one) for one in value], "]"
    else:
        return json.dumps(value)
    if not any(isinstance(one, (dict, list)) for _, one in parts):
        return json.dumps(value)
    lines = [f"{margin} {key}{text_of(one, margin + ' ')}" for key, one in parts]
    return "\n".join([begin, ",\n".join(lines), margin + end])


def accept(path, scenario, values, why) -> None:
    history = []
    if path.exists():
        before = json.loads(path.read_text())
        history = [
            *before["history"], {
                "until": datetime.date.today().isoformat(), "why": why, "values": before["values"]
            }
        ]
    new = {
        "scenario": hashlib.sha256(scenario.read_bytes()).hexdigest(), "values": values,
        "history": history
    }
    path.write_text(text_of({**new, "digest": digest_of(new)}) + "\n")
    print(f"wrote {path}")


def add_accept(parser) -> None:
    parser.add_argument("--accept", metavar="WHY", help="keep today's values from now on")


def check_accept(parser, options) -> None:
    if options.accept is not None and len(options.accept.split()) < 3:
        parser.error("--accept wants to know why, in words")
