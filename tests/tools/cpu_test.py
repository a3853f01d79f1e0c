#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""tools/measure/cpu without its machine: what has moved is told, in either direction, and values
that were edited by hand do not count."""
import importlib.machinery
import importlib.util
import json
import pathlib
import sys
import tempfile
from typing import Any

KEPT = {"udp": {"sender": 7.0, "sender plane": 130e6}}


def load(path) -> Any:
    loader = importlib.machinery.SourceFileLoader("cpu", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def test_what_has_moved(cpu) -> None:
    for sender, plane, marks in ((1.019, 1.19, 0), (0.981, 0.81, 0), (1.021, 1, 1), (0.979, 1, 1),
                                 (1, 1.21, 1), (1, 0.79, 1), (1.5, 1.5, 2)):
        now = {"udp": {"sender": 7.0 * sender, "sender plane": 130e6 * plane}}
        lines = list(cpu.moved(KEPT, now))
        assert len(lines) == 2 and sum("moved" in line for line in lines) == marks, lines


def test_values_of_another_measure_are_not_kept(cpu) -> None:
    for words in (["--accept", "why it has changed", "--beside", "/bin/true", "--parts"],
                  ["--parts"]):
        try:
            cpu.main(words)
        except SystemExit as ended:
            assert ended.code == 2, words
        else:
            raise AssertionError(f"{words} were taken")


def test_values_of_another_hand(cpu) -> None:
    with tempfile.TemporaryDirectory() as name:
        store, scenario = pathlib.Path(name, "kept.json"), pathlib.Path(name, "scenario")
        scenario.write_text("one way to measure")

        def why() -> Any:
            return cpu.read_store(store, scenario, "tools/measure/cpu")[1]

        assert "is not there" in why()
        cpu.accept(store, scenario, KEPT, "first values of all")
        assert why() is None
        good = store.read_text()
        store.write_text(good.replace("7.0", "7.1"))
        assert "edited by hand" in why()
        store.write_text(good)
        scenario.write_text("another one")
        assert "has changed" in why()
        cpu.accept(store, scenario, {}, "another way to measure")
        assert why() is None and json.loads(store.read_text())["history"][0]["values"] == KEPT


if __name__ == "__main__":
    tool = load(sys.argv[1])
    test_what_has_moved(tool)
    test_values_of_another_measure_are_not_kept(tool)
    test_values_of_another_hand(tool)
