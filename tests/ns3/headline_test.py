#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""tools/measure/headline with a small scenario: nothing but --accept changes what is kept, and what
has moved is told, in either direction."""
import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

SCENARIO = """
title = "small"
source = "none"
metrics = ["throughput", "delay_p95"]
[run]
warm_up_s = 0.05
measure_s = 0.05
[[columns]]
name = "a"
[[rows]]
name = "UDP"
flow = { kind = "udp" }
[[rows]]
name = "auto"
flow = { law = "auto" }
"""


def load(path) -> Any:
    loader = importlib.machinery.SourceFileLoader("headline", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def main(tool, program) -> None:
    headline = load(tool)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scenario, store = folder / "small.toml", folder / "kept.json"
        scenario.write_text(SCENARIO)

        def run(*arguments) -> subprocess.CompletedProcess[Any]:
            return subprocess.run([
                sys.executable, tool, "--program", program, "--scenario",
                str(scenario), "--store",
                str(store), *arguments
            ], capture_output=True, text=True, check=False)

        def falsify(key, factor) -> None:
            """Values that were kept by the tool's own rules, and are not today's."""
            kept = json.loads(good)
            kept["values"]["a"][key] *= factor
            kept["digest"] = headline.digest_of(kept)
            store.write_text(json.dumps(kept))

        assert run().returncode == 2 and "--accept" in run().stderr
        assert run("--accept", "so").returncode == 2  # that is no reason
        assert run("--program", "/nonexistent").returncode == 77
        assert run("--accept", "first values of all").returncode == 0
        good = store.read_text()
        done = run()
        assert done.returncode == 0 and "as kept" in done.stdout, done
        for key, factor in (("goodput", 1.01), ("goodput", 0.99), ("p95_us", 1 / 1.3), ("p95_us",
                                                                                        1.4)):
            falsify(key, factor)
            done = run()
            assert done.returncode == 1 and "moved: a: " + ("goodput" if key == "goodput" else
                                                            "p95") in done.stdout, (key, factor,
                                                                                    done)
        store.write_text(good.replace('"p95_us": ', '"p95_us": 1'))
        done = run()
        assert done.returncode == 2 and "edited by hand" in done.stderr, done
        store.write_text(good)
        scenario.write_text(SCENARIO.replace("measure_s = 0.05", "measure_s = 0.06"))
        assert run().returncode == 2 and "has changed" in run().stderr
        assert run("--accept", "a longer point it is").returncode == 0
        history = json.loads(store.read_text())["history"]
        assert len(history) == 1 and history[0]["why"] == "a longer point it is" and history[0][
            "values"] == json.loads(good)["values"], history
        assert run().returncode == 0


if __name__ == "__main__":
    main(*sys.argv[1:])
