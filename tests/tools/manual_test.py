#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Man pages, completions, and the commands in README and docs: manual_test.py ONEHOP [WORD].

Goal:   the first two know every command and option that --help-all knows, and no other; no page
        shows an option that is not there.
Method: tools/dev/manual makes them of the real program; the bash completion is asked in bash, as
        the shell would; the others are parsed by their shells
        where these are installed. Pages are read as their source, where man is not installed.
Bounds: none but equality.
"""

import itertools
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from collections.abc import Iterator
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
for folder in ("tests/lab", "tools/dev/manual"):
    sys.path.insert(0, str(ROOT / folder))
sys.dont_write_bytecode = True
from help import read  # noqa: E402
from make import SECTIONS  # noqa: E402
from program import Skip, check, main  # noqa: E402

ASK = """. {file}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _onehop
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def made(onehop, folder) -> Path:
    done = subprocess.run(
        [sys.executable, ROOT / "tools/dev/manual/make.py", onehop, ROOT / "README.md", folder],
        capture_output=True, text=True, check=False)
    check(done.returncode == 0, done.stderr)
    return Path(folder)


def completed(folder, *words) -> Any:
    shown = " ".join(f"'{word}'" for word in words)
    done = subprocess.run(
        ["bash", "-c", ASK.format(file=folder / "onehop", words=shown)], capture_output=True,
        text=True, check=True)
    return done.stdout.split()


def test_help_is_read_whole(onehop) -> None:
    root = read(onehop)
    names = [command.path[0] for command in root.commands]
    check({"send", "recv", "doctor", "watch", "plot", "bench"} <= set(names),
          f"the commands: {names}")
    for command in root.walk():
        text = subprocess.run([onehop, *command.path, "--help-all"], capture_output=True, text=True,
                              check=True).stdout
        printed = {
            name for line in re.findall(r"^  (--?\S+)", text, re.M) for name in line.split(",")
        }
        known = {name for entry in command.options for name in entry.names}
        check(printed == known, f"{command.name}: {printed ^ known}")
        check(all(entry.text for entry in command.options),
              f"{command.name}: each option has its text")


def test_bash_completes(onehop) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = made(onehop, name)
        check("send" in completed(folder, "onehop", ""), "commands")
        check(completed(folder, "onehop", "bench", "lo") == ["loop"], "commands of a command")
        check(
            completed(folder, "onehop", "send", "--io", "a") == ["auto", "afxdp"],
            "the words of an option")
        check(completed(folder, "onehop", "recv", "--dir", "/et") == ["/etc"], "folders")
        check({"auto", "safe-range", "wdtcp", "fixed:"} <= set(completed(
            folder, "onehop", "send", "--law", "")), "laws")
        check(completed(folder, "onehop", "send", "--io", "=", "a") == ["auto", "afxdp"],
              "what follows --io=")
        check(completed(folder, "onehop", "send", "--io", "=") == ["auto", "udp", "afxdp", "dpdk"],
              "--io= itself")
        check("lo" in completed(folder, "onehop", "send", "--iface", ""), "interfaces")
        check("steady-600" in completed(folder, "onehop", "lab", "up", "--profile", ""),
              "profiles of the lab")
        (folder / "a file").touch()
        check(completed(folder, "onehop", "send", f"{folder}/a") == f"{folder}/a file".split(),
              "files of a folder")
        offered = completed(folder, "onehop", "send", "")
        check(offered != [] and "--to" not in offered, f"files first: {offered}")
        check("/etc/hostname" in completed(folder, "onehop", "send", "/etc/hostn"), "files to send")
        for command in read(onehop).walk():
            offered = set(completed(folder, "onehop", *command.path, "--"))
            known = {
                option for entry in command.options for option in entry.names
                if option.startswith("--")
            }
            check(offered == known, f"{command.name}: {offered ^ known}")


def test_the_other_shells_take_theirs(onehop) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = made(onehop, name)
        shells = [(shell, file) for shell, file in (("zsh", "_onehop"), ("fish", "onehop.fish"))
                  if shutil.which(shell)]
        if not shells:
            raise Skip("neither zsh nor fish is installed")
        for shell, file in shells:
            done = subprocess.run([shell, "-n", folder / file], capture_output=True, text=True,
                                  check=False)
            check(done.returncode == 0, f"{shell}: {done.stderr}")


def test_pages_have_every_option(onehop) -> None:
    if shutil.which("scdoc") is None:
        raise Skip("scdoc is not installed")
    with tempfile.TemporaryDirectory() as name:
        folder = made(onehop, name)
        root = read(onehop)
        for top in (root, *root.commands):
            text = (folder / f"{'-'.join(('onehop', *top.path))}.1").read_text().replace(
                "\\-", "-").replace("\\", "")
            for command in ((top,) if top is root else top.walk()):
                missing = [
                    option for entry in command.options for option in entry.names
                    if option not in text
                ]
                check(not missing, f"{command.name}: {missing}")
            for section in ("DESCRIPTION", "EXAMPLES"):
                check(f".SH {section}" in text, f"{top.name}: {section}")
            if top is root or top.path[0] in ("send", "recv"):
                for section in ("ENVIRONMENT", "FILES"):
                    check(f".SH {section}" in text, f"{top.name}: {section}")
            check("EXIT STATUS" in text and "authentication failed" in text,
                  f"{top.name}: exit codes")


def examples() -> Iterator[Any]:
    for title, section in SECTIONS.items():
        for line, _ in section.get("examples", []):
            yield title, line


def shown_commands() -> Iterator[Any]:
    """(page, words) of each onehop command in a sh block of README and docs, and of the examples
    of the man pages. What stands behind another command is one, too."""
    for title, line in examples():
        for part in re.split(r" && | \| |(?<=--) (?=onehop )", line):
            if part.startswith("onehop "):
                yield title, shlex.split(part)[1:]
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.S | re.M):
            for line in block.splitlines():
                for part in re.split(r" ; | && |(?<=--) (?=onehop )|(?<=sudo )",
                                     line.split(" #")[0]):
                    if part.startswith("onehop "):
                        yield page.relative_to(ROOT), shlex.split(part.rstrip(" &"))[1:]


def test_pages_show_options_that_are_there(onehop) -> None:
    root, seen = read(onehop), 0
    absent = {entry.head for entry in root.sections["Laboratories"]
              if "(not installed)" in entry.text}
    for page, words in shown_commands():
        if words and words[0] in absent:
            continue
        command = root
        while words and (below := next(
            (each for each in command.commands if each.path[-1] == words[0]), None)):
            command, words = below, words[1:]
        takes_value = {name: bool(entry.value) for entry in command.options for name in entry.names}
        words = iter(list(itertools.takewhile(lambda word: word != "--", words)))
        for word in words:
            name, _, value = word.partition("=")
            if not re.match(r"--?[a-zA-Z]", word):
                continue
            seen += 1
            check(name in takes_value, f"{page}: '{command.name}' has no {name}")
            if takes_value[name] and not value:
                check(
                    next(words, None) is not None,
                    f"{page}: {name} of '{command.name}' takes a value")
    check(seen > 50, f"the pages show options: {seen}")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
