#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""make: man pages and completions of what the program's own --help-all says. make.py PROGRAM README
FOLDER [COMMAND...]

FOLDER gets onehop.1 and onehop-COMMAND.1 (by scdoc; where it is not installed, it says so and makes
none), and the completions onehop (bash), _onehop (zsh) and onehop.fish. The table of exit codes is
README's. COMMANDs are left out. Exit code: 0, 1 a page cannot be made, 2 wrong arguments.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from collections.abc import Iterator
from typing import Any

sys.dont_write_bytecode = True
from help import Command, Entry, read  # noqa: E402


SECTIONS = tomllib.loads(Path(__file__).with_name("sections.toml").read_text())
# Those that move files, and those that read labs' profiles.
TRANSFERS, LABS = ("onehop", "onehop-send", "onehop-recv"), ("onehop-lab", "onehop-bench")

# --- man pages


def escape(text) -> str:
    """For scdoc, where _ and * are markup and a line must not begin with certain signs."""
    return re.sub(r"([\\_*`#~<>\[\]])", r"\\\1", text).replace("...", "…")


def exit_codes(readme) -> list[Any]:
    section = re.search(r"^#+ Exit codes\n(.*?)(?=^#|\Z)", readme, re.S | re.M)
    found = re.findall(r"\| *(\d+) *\| *([^|]+?) *(?=\|)", section[1]) if section else []
    return sorted((int(code), text) for code, text in found)


def entries_of(entries) -> Iterator[Any]:
    for entry in entries:
        yield from (f"*{escape(entry.head)}*", f"\t{escape(entry.text)}", "")


def described(title) -> list[str]:
    lines = ["# DESCRIPTION", ""]
    for paragraph in SECTIONS[title]["description"]:
        lines += [escape(paragraph), ""]
    return lines


def around(title) -> list[str]:
    """What a command reads beside its options, and how it is called."""
    def listed(heading, rows) -> list[str]:
        lines = [f"# {heading}", ""]
        for head, text in rows.items():
            lines += [f"*{escape(head)}*", f"\t{escape(text)}", ""]
        return lines

    variables = dict(SECTIONS["environment"] if title in TRANSFERS else {})
    variables |= SECTIONS["environment-lab"] if title in LABS else {}
    lines = listed("ENVIRONMENT", variables) if variables else []
    lines += listed("FILES", SECTIONS["files"]) if title in TRANSFERS else []
    return lines + listed("EXAMPLES", dict(SECTIONS[title]["examples"]))


def page(command: Command, codes) -> str:
    """A man page's source; what is below a command of its own is in the same page."""
    title = "-".join(("onehop", *command.path))
    lines = [
        f"{title}(1)", "", "# NAME", "", f"{title} - {escape(command.summary)}", "", "# SYNOPSIS",
        "", f"*{escape(command.usage)}*", "", *described(title)
    ]
    for below in (command, *(command.commands if command.path else ())):
        if below is not command:
            lines += [
                f"# {below.name.upper()}", "",
                escape(below.summary), "", f"*{escape(below.usage)}*", ""
            ]
        for name, entries in below.sections.items():
            lines += [
                f"{'##' if below is not command else '#'} {name.upper()}", "", *entries_of(entries)
            ]
        if below.notes:
            lines += [escape(below.notes), ""]
    lines += [
        "# EXIT STATUS", "",
        *(line for code, text in codes for line in (f"*{code}*", f"\t{escape(text)}", ""))
    ]
    lines += around(title)
    others = [below.path[0] for below in command.commands] if not command.path else []
    lines += [
        "# SEE ALSO", "",
        ", ".join(f"*onehop-{name}*(1)" for name in others) if others else "*onehop*(1)", ""
    ]
    return "\n".join(lines)


def write_pages(root: Command, codes, folder) -> None:
    scdoc = shutil.which("scdoc")
    if scdoc is None:
        print("make.py: no man pages: scdoc is not installed")
        return
    for command in (root, *root.commands):
        name, source = "-".join(("onehop", *command.path)), page(command, codes)
        done = subprocess.run([scdoc], input=source, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"make.py: write {name}.1: scdoc: {done.stderr.strip()}")
        (folder / f"{name}.1").write_text(done.stdout)


# --- completions

PROFILES = Path(__file__).resolve().parents[3] / "configs/lab"


def values_of(entry: Entry) -> str | None:
    """What may follow an option: its words, "FILE", "IF" for an interface, or "" where nobody can
    tell; None for a flag."""
    if not entry.value:
        return None
    if entry.choices:
        return " ".join(entry.choices)
    if entry.names == ["--profile"]:
        return " ".join(sorted(path.stem for path in PROFILES.glob("*.toml")))
    return "IF" if entry.value == "IF" else "FILE" if entry.is_path else ""


def bash(root: Command) -> str:
    rows = []
    for command in root.walk():
        where = " ".join(command.path) or "-"
        options = [name for entry in command.options for name in entry.names]
        rows.append(f"  options[{where}]={' '.join(options)!r}")
        below = " ".join(each.path[-1] for each in command.commands)
        rows.append(f"  commands[{where}]={below!r}")
        rows += [f"  values[{' '.join(command.path) or '-'},{name}]={values_of(entry)!r}"
                 for entry in command.options if entry.value for name in entry.names]
    return "\n".join([
        "# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only",
        "# Made of `onehop --help`; do not edit.", "_onehop() {",
        "  local -A options commands values", *rows,
        "  local at='' path i word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}",
        "  # The shell makes three words of --io=udp.",
        "  if [[ $before == = && COMP_CWORD -ge 2 ]]; then before=${COMP_WORDS[COMP_CWORD-2]}",
        "  elif [[ $word == = ]]; then word=''; fi",
        "  for ((i = 1; i < COMP_CWORD; ++i)); do", "    path=\"${at:+$at }${COMP_WORDS[i]}\"",
        "    [[ -z ${options[$path]+x} ]] || at=$path", "  done", "  at=${at:--}",
        "  if [[ -n ${values[$at,$before]+x} ]]; then", "    case ${values[$at,$before]} in",
        "      FILE) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;",
        "      IF) mapfile -t COMPREPLY < <(cd /sys/class/net && compgen -G \"$word*\") ;;",
        "      *) mapfile -t COMPREPLY < <(compgen -W \"${values[$at,$before]}\" -- \"$word\") ;;",
        "    esac", "    return", "  fi",
        "  if [[ $word == -* ]]; then",
        "    mapfile -t COMPREPLY < <(compgen -W \"${options[$at]}\" -- \"$word\")",
        "  elif [[ -n ${commands[$at]} ]]; then",
        "    mapfile -t COMPREPLY < <(compgen -W \"${commands[$at]}\" -- \"$word\")",
        "  else", "    mapfile -t COMPREPLY < <(compgen -f -- \"$word\")", "  fi",
        "}", "complete -o filenames -F _onehop onehop", ""
    ])


def one_line(text) -> str:
    return text.replace("'", "’").replace("[", "(").replace("]",
                                                            ")").replace(":",
                                                                         " -").replace("\\", "")


def zsh(root: Command) -> str:
    lines = [
        "#compdef onehop", "# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only",
        "# Made of `onehop --help`; do not edit."
    ]
    for command in reversed(list(root.walk())):
        lines.append(f"_{'_'.join(('onehop', *command.path))}() {{")
        specs = []
        for entry in command.options:
            value = values_of(entry)
            action = ("" if value is None else {"FILE": ":value:_files",
                                                "IF": ":value:_net_interfaces",
                                                "": ":value:"}.get(value, f":value:({value})"))
            specs += [f"'{name}[{one_line(entry.text)}]{action}'" for name in entry.names]
        if command.commands:
            names = " ".join(f"'{below.path[-1]}:{one_line(below.summary)}'"
                             for below in command.commands)
            calls = " ".join(f"{below.path[-1]}) _{'_'.join(('onehop', *below.path))} ;;"
                             for below in command.commands)
            lines += [
                f"  local -a names=({names})", "  local state line",
                f"  _arguments -C {' '.join(specs)} '1:command:->names' '*::rest:->rest'",
                "  case $state in", "    names) _describe command names ;;",
                f"    rest) case $line[1] in {calls} esac ;;", "  esac"
            ]
        else:
            lines.append(f"  _arguments {' '.join(specs)} '*:file:_files'")
        lines.append("}")
    return "\n".join([*lines, "_onehop \"$@\"", ""])


def fish(root: Command) -> str:
    lines = [
        "# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only",
        "# Made of `onehop --help`; do not edit."
    ]
    for command in root.walk():
        seen = "; and ".join(f"__fish_seen_subcommand_from {name}" for name in command.path)
        below = " ".join(each.path[-1] for each in command.commands)
        where = "; and ".join(
            filter(None,
                   (seen, f"not __fish_seen_subcommand_from {below}" if below else ""))) or "true"
        for each in command.commands:
            lines.append(
                f"complete -c onehop -f -n '{where}' -a {each.path[-1]} -d "
                f"'{one_line(each.summary)}'"
            )
        for entry in command.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                             for name in entry.names)
            value = values_of(entry)
            kinds = {"FILE": "-r -F", "IF": "-x -a '(ls /sys/class/net)'", "": "-x"}
            action = "" if value is None else kinds.get(value, f"-x -a '{value}'")
            lines.append(
                f"complete -c onehop -n '{where}' {names} {action} -d '{one_line(entry.text)}'".
                replace("  ", " "))
    return "\n".join([*lines, ""])


def main(argv) -> int:
    if len(argv) < 3:
        print("usage: make.py PROGRAM README FOLDER [COMMAND...]", file=sys.stderr)
        return 2
    program, readme, folder, *left_out = argv
    Path(folder).mkdir(parents=True, exist_ok=True)
    root = read(program, left_out=left_out)
    write_pages(root, exit_codes(Path(readme).read_text()), Path(folder))
    for name, text in (("onehop", bash(root)), ("_onehop", zsh(root)), ("onehop.fish", fish(root))):
        Path(folder, name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
