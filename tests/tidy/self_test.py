#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""tidy reports each violation that is planted in a clean tree, at its place, and nothing in the
clean tree.

Goal: no rule of tools/dev/tidy passes because it looks at nothing. Method: a small tree in a
        temporary git repository, one fault at a time; the program runs as it does in the test
        suite. Bounds: exit code and the line printed.
"""
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

TIDY = pathlib.Path(__file__).resolve().parents[2] / "tools/dev/tidy/tidy.py"
DUAL = "SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only"
BPF = "SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause"
THREATS = (
    "P1 P2 P3 P4 P5 P6 P7 P8 Z1 Z2 Z3 Z4 N1 N2 N3 N4 N5 N6 N7 N8 N9 N10 N11 N12 T1 T2 C1 C2 C3 C4 "
    "C5 K1 K2 K3 K4 K5 K6 K7 K8 K9 K10 K11 D1 D2 D3 D4 D5 U1 U2 U3").split()


def cpp(*lines) -> str:
    return "\n".join((f"// {DUAL}", *lines, ""))


def clean_tree() -> dict[Any, Any]:
    names = "\n".join(f'TEST_CASE("{threat} holds", "[x]") {{}}' for threat in THREATS
                      if threat != "D4")
    return {
        "README.md": f"<!-- {DUAL} -->\n# x\n`onehop send`, `onehop lab up`\n\n### Exit codes\n| 0 "
                     "| done | 7 | later |\n",
        "engine/base/result.hpp": cpp("enum class ExitCode : int {", "  done = 0,",
                                      "  interrupted = 7,", "};"),
        "engine/run/loop.hpp": cpp('#include "engine/crypto/aead.hpp"',
                                   "#include <boost/outcome/result.hpp>"),
        "control/law/law.cpp": cpp('#include "engine/base/units.hpp"', "#include <chrono>",
                                   "// not printf(", 'auto x = "socket(";'),
        "xdp/steer.bpf.c": f"// {BPF}\n#include <linux/bpf.h>\n#include \"steer_config.h\"\n",
        "xdp/steer_config.h": f"// {BPF}\n",
        "tools/main.cpp": cpp('app.add_subcommand("send", "x");',
                              'lab->add_subcommand("up", "x");'),
        "engine/port/dpdk/dpdk_port.cpp": cpp("#include <rte_mbuf.h>"),
        "engine/port/dpdk/frame_pool.cpp": cpp("#include <rte_spinlock.h>"),
        "engine/disk/thread.cpp": cpp("#include <condition_variable>"),
        "tests/a_test.cpp": cpp('#include "engine/run/loop.hpp"', names),
        "tests/lab/test_x.py": f"#!/usr/bin/env python3\n# {DUAL}\ndef test_D4_holds():\n    "
                               "pass\n",
        "configs/a.toml": f"# {DUAL}\nrate = 1\n",
        "configs/a.json": '{"rate": 1}\n',
        "LICENSE": "either\n",
        "LICENSES/X.txt": "no licence line,\ttabs\n",
    }


RESULTS = f"""<!-- {DUAL} -->
- commit: `0123456789ab`
- machine: one
- date: today
## gib-gro
| scp aes128-gcm: whole machine busy, the worse of both [ns/B] | 1.61 | 1.5..1.7 (n=2) |  |  |
"""
README_OF_COSTS = (
    f"<!-- {DUAL} -->\n<!-- by tools/dev/tidy/cost.py --write; do not edit -->\n| scp | 1.0 | 8.3 "
    "|\n<!-- to here -->\n"
)


LAW = cpp("class Law {", "  void step();", "};", "enum class SmallLaw : int { one };")


def long_function(lines) -> str:
    return cpp("int f(int a) {", *["  a += 1;"] * (lines - 3), "  return a;", "}")


# what is planted: (name, {path: text or None to remove}, expected part of the output, arguments)
FAULTS: Any = (
    ("a long line of Python", {"tools/a.py": f"# {DUAL}\n# {'x' * 99}\n"},
     "tools/a.py:2: error: [columns]"),
    ("a long line of C++", {"engine/base/a.hpp": cpp("// " + "x" * 98)},
     "engine/base/a.hpp:2: error: [columns]"),
    ("a long line of a script", {"tools/a": f"#!/usr/bin/env python3\n# {DUAL}\n# {'x' * 99}\n"},
     "tools/a:3: error: [columns]"),
    ("a long line of shell", {"tools/a": f"#!/usr/bin/env bash\n# {DUAL}\n# {'x' * 99}\n"},
     "tools/a:3: error: [columns]"),
    ("no licence line", {"engine/base/a.hpp": "int a;\n"}, "engine/base/a.hpp:1: error: [licence]"),
    ("licence line too late", {"engine/base/a.hpp": f"\n\n\n// {DUAL}\n"},
     "engine/base/a.hpp:1: error: [licence]"),
    ("other licence", {"engine/base/a.hpp": "// SPDX-License-Identifier: MIT\n"},
     "engine/base/a.hpp:1: error: [licence]"),
    ("longer licence", {"engine/base/a.hpp": f"// {DUAL} OR MIT\n"},
     "engine/base/a.hpp:1: error: [licence]"),
    ("kernel program, wrong licence", {"xdp/steer.bpf.c": f"// {DUAL}\n"},
     "xdp/steer.bpf.c:1: error: [licence]"),
    ("kernel licence elsewhere", {"engine/base/a.hpp": f"// {BPF}\n"},
     "engine/base/a.hpp:1: error: [licence]"),
    ("visible line in Markdown", {"control/README.md": f"{DUAL}\n"},
     "control/README.md:1: error: [licence]"),
    ("base sees wire", {"engine/base/a.hpp": cpp('#include "engine/wire/frame.hpp"')},
     "engine/base/a.hpp:2: error: [include]"),
    ("engine sees xdp", {"engine/run/a.hpp": cpp('#include "xdp/umem.hpp"')},
     "engine never includes xdp"),
    ("engine sees DPDK", {"engine/run/a.cpp": cpp("#include <rte_mbuf.h>")},
     "engine never includes rte_mbuf.h"),
    ("DPDK in a header of its port", {"engine/port/dpdk/a.hpp": cpp("#include <rte_mbuf.h>")},
     "engine never includes rte_mbuf.h"),
    ("engine sees control", {"engine/run/a.hpp": cpp("#include <control/law/law.hpp>")},
     "must not include control/law"),
    ("engine sees asio", {"engine/run/a.hpp": cpp("#include <boost/asio.hpp>")},
     "never includes boost/asio.hpp"),
    ("engine sees asio's part", {"engine/run/a.hpp": cpp("#  include <boost/asio/ip/tcp.hpp>")},
     "never includes boost/asio"),
    ("xdp sees control", {"xdp/a.cpp": cpp('#include "control/link/x.hpp"')},
     "must not include control/link"),
    ("disk sees wire", {"engine/disk/a.cpp": cpp('#include "engine/wire/x.hpp"')},
     "must not include engine/wire"),
    ("disk sees list", {"engine/disk/a.cpp": cpp('#include "engine/list/x.hpp"')},
     "must not include engine/list"),
    ("source sees sink", {"engine/source/a.cpp": cpp('#include "engine/sink/x.hpp"')},
     "must not include engine/sink"),
    ("session sees rate", {"control/session/a.cpp": cpp('#include "control/rate/x.hpp"')},
     "must not include control/rate"),
    ("control sees tools", {"control/rate/a.cpp": cpp('#include "tools/x/y.hpp"')},
     "must not include tools"),
    ("law sees link", {"control/law/a.cpp": cpp('#include "control/link/x.hpp"')},
     "must not include control/link"),
    ("law has threads", {"control/law/a.cpp": cpp("#include <thread>")}, "never includes thread"),
    ("law has sockets", {"control/law/a.cpp": cpp("#include <sys/socket.h>")},
     "never includes sys/socket.h"),
    ("law has stdio", {"control/law/a.cpp": cpp("#include <cstdio>")}, "never includes cstdio"),
    ("law reads a clock", {"control/law/a.cpp": cpp("auto t = std::chrono::steady_clock::now();")},
     "control/law/a.cpp:2: error: [law]"),
    ("law prints",
     {"control/law/a.cpp": cpp("/* one", "two */ void f() {", '  fmt::print("x");',
                               "}")}, "control/law/a.cpp:4: error: [law]"),
    ("transfer has a lock", {"engine/protocol/a.hpp": cpp("#include <mutex>")},
     "engine/protocol/a.hpp:2: error: [include] engine/protocol runs on the engine core"),
    ("port waits for a condition", {"engine/port/a.cpp": cpp("#include <condition_variable>")},
     "takes no lock: never condition_variable"),
    ("run has a future", {"engine/run/a.hpp": cpp("#include <future>")},
     "takes no lock: never future"),
    ("xdp has a lock of C", {"xdp/a.cpp": cpp("#include <pthread.h>")},
     "takes no lock: never pthread.h"),
    ("port has a lock of DPDK", {"engine/port/dpdk/a.cpp": cpp("#include <rte_spinlock.h>")},
     "takes no lock: never rte_spinlock.h"),
    ("lock that is gone", {"engine/port/dpdk/frame_pool.cpp": cpp("#include <rte_mbuf.h>")},
     "it includes no lock any more"),
    ("law's constant without a reason",
     {"control/law/a.cpp": cpp("constexpr Nanos span{1s};  // a second")
      }, "a.cpp:2: error: [constant] span needs"),
    ("law's constant without a cost",
     {"control/law/a.hpp": cpp("// Ours. Low: noise.", "inline constexpr double part = 0.5;")
      }, "a.hpp:3: error: [constant] part"),
    ("law's constant without a source",
     {"control/law/a.cpp": cpp("  static constexpr Gain g{1};  // low: noise; high: late")
      }, "[constant] g needs"),
    ("unknown room", {"engine/new/a.cpp": cpp('#include "engine/base/x.hpp"')}, "not in the table"),
    ("binary file", {"f.bin": "a\0b"}, "f.bin:0: error: [stray]"),
    ("empty file", {"engine/base/r.out": ""}, "engine/base/r.out:0: error: [stray]"),
    ("include of a sibling", {"engine/base/a.cpp": cpp('#include "a.hpp"')},
     "not written from the root"),
    ("long file", {"tests/a.cpp": cpp(*["int a;"] * 400)}, "tests/a.cpp:401: error: [length]"),
    ("long build file", {"tests/meson.build": f"# {DUAL}\n" + "\n" * 400},
     "tests/meson.build:401: error: [length]"),
    ("path that is not there", {
        "docs/a.md": f"<!-- {DUAL} -->\n`configs/a.toml`, `configs`, `docs/NAME.md`, "
                     "`/etc/a`\n`configs/b.toml`\n"
    }, "docs/a.md:3: error: [path] configs/b.toml is not there"),
    ("link that leads nowhere", {
        "docs/a.md": f"<!-- {DUAL} -->\n[a](a.md#x) [b](../README.md) [c](results/b.md#y)\n",
    }, "docs/a.md:2: error: [path] docs/results/b.md, which the link results/b.md leads to"),
    ("class that is not there", {
        "control/README.md": f"<!-- {DUAL} -->\n`Law`, `Law::step()`, `law::Law`, `Rule`\n",
        "control/law/a.hpp": LAW
    }, "control/README.md:2: error: [path] the code has no Rule\n"),
    ("member that is not there", {
        "docs/architecture.md": f"<!-- {DUAL} -->\n`Law::step()`\n`Law::walk()`\n",
        "control/law/a.hpp": LAW
    }, "docs/architecture.md:3: error: [path] the code has no Law::walk"),
    ("function that is not there", {
        "xdp/README.md": f"<!-- {DUAL} -->\n`step()`, `walk()`\n", "control/law/a.hpp": LAW
    }, "xdp/README.md:2: error: [path] the code has no walk()"),
    ("class of a drawing that is not there", {
        "engine/README.md": f"<!-- {DUAL} -->\n```text\nSmallLaw TallLaw\n```\n",
        "control/law/a.hpp": LAW
    }, "engine/README.md:3: error: [path] the code has no TallLaw"),
    ("word that is defined twice", {
        "docs/architecture.md":
            f"<!-- {DUAL} -->\n## Ten words\n\n| word | meaning |\n|---|---|\n| block | x |\n\n"
            "## End\n",
        "engine/README.md": f"<!-- {DUAL} -->\nA **frame** is y. A **block** is z.\n"
    }, "engine/README.md:2: error: [path] 'block' is defined in docs/architecture.md"),
    ("unchecked number", {"engine/base/a.hpp": cpp("int a; // TODO" + "-CITE")},
     "engine/base/a.hpp:2: error: [cite]"),
    ("tab", {"engine/base/a.hpp": cpp("\tint a;")}, "engine/base/a.hpp:2: error: [tab]"),
    ("script without its bit", {"tools/x": f"#!/bin/sh\n# {DUAL}\n"},
     "tools/x:1: error: [executable]"),
    ("bit without script", {"engine/base/a.hpp": (cpp(), 0o755)},
     "engine/base/a.hpp:1: error: [executable]"),
    ("broken toml", {"configs/b.toml": f"# {DUAL}\nrate = = 1\n"},
     "configs/b.toml:1: error: [config]"),
    ("broken json", {"configs/b.json": '{\n"rate": }\n'}, "configs/b.json:2: error: [config]"),
    ("command not in README", {"tools/b.cpp": cpp('app.add_subcommand(',
                                                  '    "watch", "x");')}, "the command 'watch'"),
    ("exit code not in README", {
        "engine/base/result.hpp": cpp("enum class ExitCode : int {", "  done = 0,", "  x = 9,",
                                      "};")
    }, "exit code 9"),
    ("exit codes gone", {"engine/base/result.hpp": None}, "no ExitCode"),
    ("README's table of costs is of other results",
     {"docs/results/0.1.0/cost.md": RESULTS, "README.md": README_OF_COSTS
      }, "README.md:1: error: [cost] 'What it costs' is not what docs/results/0.1.0/cost.md says"),
    ("README's table of costs has no marks", {"docs/results/0.1.0/cost.md": RESULTS},
     "README.md:1: error: [cost]"),
    ("results without a cost", {"docs/results/0.1.0/cost.md": RESULTS.replace("scp", "cp")},
     "docs/results/0.1.0/cost.md:1: error: [cost] no case has figures"),
    ("README gone", {"README.md": None}, "the command 'send'"),
    ("threat without test", {"tests/lab/test_x.py": None}, "D4 is in the name of no test",
     "--require-threats"),
    ("threat in a comment only",
     {"tests/lab/test_x.py": None, "tests/b.cpp": cpp('// TEST_CASE("D4 holds") {}')
      }, "D4 is in the name of no test", "--require-threats"),
)


def run_tidy(folder, files, *arguments) -> tuple[Any, Any]:
    """Writes the files into a repository of their own and runs tidy there."""
    with tempfile.TemporaryDirectory(prefix="onehop-tidy-", dir=folder) as name:
        root = pathlib.Path(name)
        for path, content in files.items():
            text, mode = content if isinstance(
                content, tuple) else (content, 0o755 if path.startswith("tests/lab/") else 0o644)
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
            (root / path).chmod(mode)
        for command in (["init", "-q"], ["add", "-A"]):
            subprocess.run(["git", "-C", name, *command], check=True)
        (root / "untracked.hpp").write_text("not tracked, so not looked at\n")
        done = subprocess.run(
            [sys.executable, str(TIDY), "--root", name, *arguments], capture_output=True, text=True,
            check=False)
        return done.returncode, done.stdout + done.stderr


def main() -> int:
    failures = []

    def expect(name, is_true, output) -> None:
        if not is_true:
            failures.append(name)
            print(f"FAILED: {name}\n{output}")

    with tempfile.TemporaryDirectory(prefix="onehop-tidy-") as folder:
        code, output = run_tidy(folder, clean_tree(), "--require-threats")
        expect("a clean tree is clean", code == 0 and "0 errors, 0 warnings" in output, output)
        expect("the table names tests", "D4   tests/lab/test_x.py: test D4 holds" in output, output)
        for name, plant, expected, *arguments in FAULTS:
            files = {
                path: text for path, text in {**clean_tree(), **plant}.items() if text is not None
            }
            code, output = run_tidy(folder, files, "--quiet", *arguments)
            expect(name, code == 1 and expected in output, output)
        code, output = run_tidy(folder, clean_tree() | {"tests/b.cpp": long_function(71)})
        expect("a long function warns", code == 0
               and "tests/b.cpp:2: warning: [function] about 71 lines" in output, output)
        code, output = run_tidy(folder, clean_tree() | {"tests/b.cpp": long_function(70)})
        expect("70 lines are a function", code == 0 and "0 warnings" in output, output)
        code, output = run_tidy(folder, {})
        expect("an empty tree is an error", code == 1, output)
    print(f"{len(FAULTS) + 5} expectations, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
