#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""check_test.py: what tools/check counts, says and leaves behind.

Goal:   a failed test is named with the command that plays it alone; one that passes when played
        again is called unsteady and not hidden; a skipped one says why; what another system does
        not play is named; after a failed build nothing else is played; somebody who waits reads a
        line every three seconds; an interrupt ends what was started; every part is somebody's turn,
        or known as too long; no part is off for a package that is there.
Method: a project of Meson with a test of each kind, played by tools/dev/check.d; tools/check itself
        for its arguments.
Bounds: lines at most 3 s apart while a command is silent for 6 s.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools/dev/check.d"))

import check  # noqa: E402
import parts  # noqa: E402
import systems  # noqa: E402
from run import Commands, Failure, cases_skipped, log_of, targets_of  # noqa: E402

INSIDE = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
OPTIONS = "option('labs', type: 'feature', value: 'auto')\n"
PROJECT = """project('tiny', 'c')
if get_option('labs').disabled()
  subdir_done()
endif
made = executable('made', 'made.c', build_by_default: false)
test('passes', made, suite: 'one')
test('fails', find_program('sh'), args: ['-c', 'echo it is broken; exit 3'], suite: 'one')
test('cannot run', find_program('sh'), args: ['-c', 'echo no radio here; exit 77'], suite: 'one')
test('fails once', find_program('sh'),
  args: ['-c', 'test -e @BUILD@/seen || { touch @BUILD@/seen; exit 1; }'], suite: 'one')
test('of another suite', find_program('false'), suite: 'two')
"""
PROGRAM = """
import sys, time
sys.path.insert(0, sys.argv[1])
from progress import Progress
progress = Progress([("first", 4.0), ("second", 8.0)])
progress.enter("first")
progress.update(1, 4, "something")
time.sleep(6)
progress.stop()
"""


def counts() -> None:
    said: list[str] = []
    do = Commands(said.append, lambda done, total, doing: None)
    assert do.setup("build", ["-Dlabs=disabled"]), do.tally.failures  # as tools/quickstart does
    assert do.setup("build", ["-Dlabs=auto"]), do.tally.failures
    assert targets_of("build", ["one"]) == ["made"], targets_of("build", ["one"])
    assert do.ninja("build", targets_of("build", ["one"])), do.tally.failures
    failed = do.suites("build", ["one"])
    assert sorted(failed) == ["fails", "fails once"], failed
    do.again("build", ["one"], failed, 0, [])
    tally = do.tally
    assert tally.passed == 2, tally
    assert [failure.name.split(" (")[0] for failure in tally.failures] == ["one: fails"], tally
    assert tally.failures[0].again == "meson test -C build --suite one 'fails'", tally
    assert "it is broken" in tally.failures[0].output, tally
    assert len(tally.unsteady) == 1 and tally.unsteady[0].startswith("one: fails once"), tally
    assert tally.skipped == [("cannot run", "no radio here")], tally
    assert tally.cpu_s > 0, tally
    assert any("FAILED" in line and "fails" in line for line in said), said
    left_out = "ok    a (0.1 s)\nskip  b: no root\n" + "warning:\n  skipped: no ring\n" * 2
    assert cases_skipped(left_out) == ["b: no root", "no ring"], cases_skipped(left_out)
    code = subprocess.run(["sh", "-c", tally.failures[0].again], capture_output=True, check=False)
    assert code.returncode == 1, code


def failed_build() -> None:
    pathlib.Path("made.c").write_text("int main(void) { return nothing; }\n")
    do = Commands(lambda text: None, lambda done, total, doing: None)
    assert not do.ninja("build", ["made"])
    failure = do.tally.failures[0]
    assert isinstance(failure, Failure) and "nothing" in failure.output, failure


def after_failed_build() -> None:
    """Nothing else is played: what it found would be of an older build."""
    fails = parts.Part("build", "", 1, lambda do: do.one("build", ["false"], "false"))
    never = parts.Part("rootless", "", 1, lambda do: do.one("played", ["true"], "true"))
    aside = parts.Part("headline", "", 1, lambda do: do.one("played", ["true"], "true"),
                       is_aside=True)
    played = check.Check([fails, never, aside])
    try:
        played.play()
    finally:
        played.progress.stop()
    assert list(played.tallies) == ["build"], played.tallies
    assert played.off == {"rootless": "the build failed", "headline": "the build failed"}, played


def vanished() -> None:
    """Of tests on another system, and of cases within one."""
    system = systems.system_of("trixie:clang")
    every = {"a": "All tests passed (9 assertions in 3 test cases)", "b": "", "c": "",
             "d": "All tests passed (1 assertion in 1 test case)"}

    def compared(theirs: dict[str, str], result: str = "OK") -> str:
        for folder, tests in (("build", every), (system.folder, theirs)):
            log = log_of(folder, systems.ROOTLESS)
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text("".join(json.dumps({
                "name": f"onehop:unit / {name}", "stdout": text,
                "result": "OK" if folder == "build" else result}) + "\n"
                                   for name, text in tests.items()))
        do = Commands(lambda text: None, lambda done, total, doing: None)
        systems.compare(system, do)
        assert len(do.tally.failures) + do.tally.passed == 1, do.tally
        return do.tally.failures[0].output if do.tally.failures else ""

    assert compared(every) == "", compared(every)
    assert compared({"a": every["a"], "d": every["d"]}) == "b is not there\nc is not there"
    fewer = every | {"a": "All tests passed (2 assertions in 2 test cases)"}
    assert compared(fewer) == "a: 2 cases, here 3", compared(fewer)
    assert compared(every | {"a": ""}) == "a: 0 cases, here 3"
    assert compared(every | {"a": ""}, "SKIP") == ""  # listed with its reason
    log_of("build", systems.ROOTLESS).unlink()
    do = Commands(lambda text: None, lambda done, total, doing: None)
    systems.compare(system, do)
    assert "were not played" in do.tally.failures[0].output, do.tally
    for wrong in ("sid", "trixie:", "trixie:arm", ":clang"):
        done = subprocess.run([str(ROOT / "tools/distros"), wrong], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 2 and "Systems: bookworm" in done.stderr, done


def lines_while_silent() -> None:
    begun = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(ROOT / "tools/dev/check.d")],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    last, lines = begun + 1.0, []  # the interpreter starts
    for line in process.stdout:
        now = time.monotonic()
        assert now - last < 3.0, f"silent for {now - last:.1f} s before {line}"
        last = now
        lines.append(line)
    assert process.wait() == 0
    assert any("1 of 4, something" in line and "left" in line for line in lines), lines


def interrupt() -> None:
    do = Commands(lambda text: None, lambda done, total, doing: None)
    lines: list[str] = []
    threading.Timer(0.5, do.stop).start()
    begun = time.monotonic()
    code = do.run(["sh", "-c", "echo $$; exec sleep 600"], lines.append)
    assert code != 0 and time.monotonic() - begun < 60, code
    assert not pathlib.Path("/proc", lines[0]).exists(), "the command is still there"
    assert do.run(["true"], lines.append) == 130, "it goes on after a stop"

    if subprocess.run([*INSIDE, "true"], capture_output=True, check=False).returncode == 0:
        do = Commands(lambda text: None, lambda done, total, doing: None)
        do.inside = INSIDE
        threading.Timer(0.5, do.stop).start()
        begun = time.monotonic()
        code = do.run(["sh", "-c", "sleep 600; true"], lines.append)
        assert code != 0 and time.monotonic() - begun < 60, code


def arguments() -> None:
    def play_check(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, str(ROOT / "tools/dev/check.d/check.py"), *words],
                              capture_output=True, text=True, check=False)

    listed = play_check("--list")
    turns = [name for turn in parts.TURNS for name in turn]
    assert listed.returncode == 0 and len(turns) == len(set(turns)), listed
    for part in parts.MORE:
        assert (part.name in turns) != (part.name in parts.WHOLE_BUILDS), f"{part.name}: its turn"
        assert part.name in listed.stdout, listed.stdout
    names = [part.name for part in [*parts.PARTS, *parts.MORE]]
    for part in [*parts.PARTS, *parts.MORE]:
        assert set(part.needs) <= set(names[:names.index(part.name)]), f"{part.name}: its needs"
    unknown = play_check("labb")
    assert unknown.returncode == 2 and "no part is called labb" in unknown.stderr, unknown
    assert play_check("--all", "lab").returncode == 2


def reasons() -> None:
    """Before anything is built, no part is off for a package that is there."""
    for part in [*parts.PARTS, *parts.MORE]:
        for package in re.findall(r"[a-z0-9][a-z0-9+.-]*-dev\b|clang[a-z0-9-]*", part.why_off()):
            state = subprocess.run(["dpkg-query", "-W", "-f", "${Status}", package],
                                   capture_output=True, text=True, check=False).stdout
            assert state != "install ok installed", f"{part.name}: {package} is installed"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        build = pathlib.Path(folder, "build")
        pathlib.Path("meson.build").write_text(PROJECT.replace("@BUILD@", str(build)))
        pathlib.Path("meson_options.txt").write_text(OPTIONS)
        pathlib.Path("made.c").write_text("int main(void) { return 0; }\n")
        reasons()
        counts()
        failed_build()
        after_failed_build()
        vanished()
        lines_while_silent()
        interrupt()
        arguments()
        os.chdir("/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
