#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The laboratories as programs of their own, and the module for DPDK: laboratories_test.py ONEHOP
[WORD].

Goal:   `onehop NAME` is the laboratory's program, and no program that somebody else put there; the
        same holds for the module that --io dpdk loads.
Method: the real onehop, copied into an installation of its own, in which a script stands for the
        laboratory and says what it was given. Other scripts stand where they must not be started.
Bounds: none but equality.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))
sys.dont_write_bytecode = True
from program import Skip, check, main  # noqa: E402

NAMES = ("bench", "lab", "stress", "plot", "ns3")
SAYS = """#!/bin/sh
printf '%s\\n' "$#" "$@"
echo "pid $$ value $ONEHOP_TEST"
grep SigIgn /proc/self/status
cat
exit 42
"""
PLANTED = "#!/bin/sh\ntouch {mark}\nexit 0\n"


class Installation:
    """bin/onehop, and whatever a test puts beside it."""

    def __init__(self, onehop, below=None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="onehop-labs-", dir=below)
        self.root = Path(self._folder.name)
        self.onehop = self.root / "bin/onehop"
        self.mark = self.root / "started"
        self.onehop.parent.mkdir()
        shutil.copy(onehop, self.onehop)
        self.onehop.chmod(0o755)

    def __enter__(self) -> "Installation":
        return self

    def __exit__(self, *_) -> None:
        self._folder.cleanup()

    def script(self, place, text=PLANTED) -> Path:
        path = self.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(mark=self.mark) if text is PLANTED else text)
        path.chmod(0o755)
        return path

    def run(self, *words, **options) -> subprocess.CompletedProcess[Any]:
        return subprocess.run([self.onehop, *words], capture_output=True, text=True, timeout=60,
                              check=False, **options)

    def refused(self, why, *words, **options) -> None:
        done = self.run("lab", "up", **options)
        check(done.returncode == 9, f"{why}: {done.returncode} {done.stderr}")
        check(done.stderr.startswith("onehop lab: start ") and not done.stdout, done.stderr)
        for word in words:
            check(word in done.stderr, f"{why}: '{word}' is in {done.stderr}")
        check(not self.mark.exists(), f"{why}: it was not started")


def ignored(text) -> str:
    return re.findall(r"SigIgn:\s*(\w+)", text)[0]


def test_it_gets_all_that_onehop_was_given(onehop) -> None:
    with Installation(onehop) as here:
        program = here.script("libexec/onehop/onehop-lab", SAYS)
        words = ("run", "--on", "a b", "", "--", "-v", "--help")
        process = subprocess.Popen(
            [here.onehop, "lab", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "ONEHOP_TEST": "kept"})
        said, _ = process.communicate("from the other end of a pipe\n", timeout=60)
        lines = said.splitlines()
        check(lines[:8] == [str(len(words)), *words], f"its words: {lines}")
        check(lines[8] == f"pid {process.pid} value kept", f"the same process: {lines[8]}")
        check(lines[-1] == "from the other end of a pipe", "standard input")
        check(process.returncode == 42, f"its exit code: {process.returncode}")
        alone = subprocess.run([program], input="", capture_output=True, text=True, check=False)
        check(ignored(said) == ignored(alone.stdout), "no signal is ignored that was not")
        check(here.run("-v", "lab", "x", input="").stdout.startswith("1\nx\n"), "behind -v")


def test_a_signal_is_the_laboratory_s(onehop) -> None:
    with Installation(onehop) as here:
        here.script("libexec/onehop/onehop-stress", "#!/bin/sh\necho ready\nread line\n")
        with subprocess.Popen([here.onehop, "stress"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            check(process.stdout.readline() == "ready\n", "it runs")
            process.send_signal(signal.SIGTERM)
            check(process.wait(60) == -signal.SIGTERM, f"it ends by it: {process.returncode}")


def test_where_there_is_none_nothing_else_is_started(onehop) -> None:
    """Not what PATH names, and nothing of the current folder."""
    with Installation(onehop) as here:
        for place in ("onehop-lab", "libexec/onehop/onehop-lab", "lab/onehop-lab",
                      "bin/onehop-lab"):
            here.script(f"elsewhere/{place}")
        here.script("bin/onehop-lab")
        elsewhere = here.root / "elsewhere"
        here.refused("not installed", "onehop-lab: it is not installed", "onehop-labs", "-Dlabs",
                     cwd=elsewhere, env={**os.environ, "PATH": f"{elsewhere}:{elsewhere}/bin"})
        done = here.run("ns3", cwd=elsewhere)
        check(done.returncode == 9 and "libns3-dev" in done.stderr, done.stderr)
        text = " ".join(here.run("--help").stdout.split("Laboratories:")[1].split())
        for name in NAMES:
            check(re.search(rf"\b{name} [^()]*(\(root\) )?\(not installed\)", text) is not None,
                  f"the help says so of {name}: {text}")
        versions = here.run("--version", "-v").stdout
        missing = re.findall(r"^  (\w+) +off: it is not installed", versions, re.M)
        check(set(NAMES) <= set(missing), versions)
        here.script("libexec/onehop/onehop-lab")
        check("lab (not" not in here.run("--help").stdout and here.run("lab").returncode == 0,
              "and is there when it is")


def test_what_others_can_write_is_not_started(onehop) -> None:
    with Installation(onehop) as here:
        program = here.script("libexec/onehop/onehop-lab")
        for path in (program, program.parent, here.root / "libexec"):
            path.chmod(0o757)
            here.refused(f"{path} is everybody's", f"can write {path}.")
            path.chmod(0o775)
            here.refused(f"{path} is a group's", f"can write {path}.")
            path.chmod(0o755)
        # Who could as well write onehop itself.
        program.chmod(0o775)
        here.onehop.chmod(0o775)
        check(here.run("lab").returncode == 0 and here.mark.exists(), "the group of onehop itself")
        here.mark.unlink()
        if os.geteuid() != 0:
            raise Skip("that others own it is tried as root")
        os.chown(program, -1, 65534)
        here.refused("another group's", str(program))
        os.chown(program, 0, 0)
        program.chmod(0o755)
        here.onehop.chmod(0o755)
        for path in (program, program.parent):
            os.chown(path, 65534, 0)
            here.refused(f"{path} is somebody's", str(path))
            os.chown(path, 0, 0)
        planted = here.script("theirs/onehop-lab")
        os.chown(planted.parent, 65534, 0)
        program.unlink()
        program.symlink_to(planted)
        here.refused("a link into somebody's folder", str(planted.parent))


def test_the_module_of_dpdk_is_found_by_its_place(onehop) -> None:
    folder = Path(onehop).resolve().parents[2]
    built = folder / "engine/port/dpdk/onehop-dpdk.so"
    if not built.exists():
        raise Skip("this build has no DPDK port")
    libraries = subprocess.run(["readelf", "-dW", onehop], capture_output=True, text=True,
                               check=True).stdout
    check("librte" not in libraries, "nobody else loads DPDK's libraries")

    def state(here) -> str:
        said = here.run("--version", "-v", cwd=here.root).stdout
        return re.findall(r"\n  dpdk +(\S[^\n]*)\n", said)[0]

    with Installation(onehop) as here:
        # Nothing of the current folder is loaded, and nothing of LD_LIBRARY_PATH.
        shutil.copy(built, here.root)
        check(state(here) == "off: it is not installed", state(here))
        done = here.run("send", __file__, "--to", "127.0.0.1", "--io", "dpdk", "--eal",
                        "--vdev=net_null0", env={**os.environ, "LD_LIBRARY_PATH": str(here.root),
                                                 "ONEHOP_CODE": "a-code-of-27-characters-or-so"})
        check(done.returncode == 9 and "onehop-dpdk.so" in done.stderr
              and "not installed" in done.stderr and "Install the package onehop-dpdk"
              in " ".join(done.stderr.split()), f"{done.returncode} {done.stderr}")
        # Where this build installs it, which may be for another processor.
        options = json.loads((folder / "meson-info/intro-buildoptions.json").read_text())
        libdir = next(option["value"] for option in options if option["name"] == "libdir")
        module = here.root / libdir / "onehop/onehop-dpdk.so"
        module.parent.mkdir(parents=True)
        module.write_text("no module")
        check(re.match("off: .*(too short|invalid ELF)", state(here)) is not None, state(here))
        shutil.copy(built, module)
        module.chmod(0o644)
        check(state(here) == "on", state(here))
        for path in (module, module.parent):
            path.chmod(0o757)
            check(state(here) == f"off: others than the owner of {here.onehop} can write {path}",
                  state(here))
            path.chmod(0o755)


def test_each_reads_its_command_line_as_before(onehop) -> None:
    installed = subprocess.run([onehop, "--help"], capture_output=True, text=True,
                               check=True).stdout.split("Laboratories:")[1]
    seen = 0
    for name in NAMES:
        if re.search(rf"^  {name} [^\n]*(\n    [^\n]*)*\(not installed\)", installed, re.M):
            continue
        seen += 1
        done = subprocess.run([onehop, name, "--help"], capture_output=True, text=True, check=True)
        check(f"\nUsage: onehop {name} " in done.stdout, done.stdout)
        check(max(map(len, done.stdout.splitlines())) < 80, f"{name}: it fits into 80 columns")
        done = subprocess.run([onehop, name, "--no-such"], capture_output=True, text=True,
                              check=False)
        check(done.returncode == 2 and not done.stdout
              and done.stderr.startswith(f"onehop {name}: read the command line: '--no-such' was "
                                         "not expected"), done.stderr)
    check(seen >= 3, f"laboratories of this build: {seen}")
    done = subprocess.run([onehop, "--config", "/dev/null", "lab"], capture_output=True, text=True,
                          check=False)
    check(done.returncode == 2 and "onehop lab: " in done.stderr, done.stderr)


def test_onehop_holds_nothing_of_them(onehop) -> None:
    if shutil.which("nm") is None:
        raise Skip("nm is not installed")
    names = subprocess.run(["nm", "-C", onehop], capture_output=True, text=True, check=True).stdout
    check("onehop::tool::" in names, "its symbols are there to be read")
    for space in ("bench", "lab", "stress", "plot", "sim"):
        found = re.findall(rf"\bonehop::{space}::\w+", names)
        check(not found, f"of {space}: {found[:3]}")
    check(not re.search("toml::|lossy_object|gate_object|softirq_object", names),
          "nor of their libraries")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
