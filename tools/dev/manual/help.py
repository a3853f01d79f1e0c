# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What `onehop COMMAND --help-all` says, as data: the one table that man pages and completions are
made of."""

import dataclasses
import re
import subprocess
from collections.abc import Iterator
from typing import Any

COMMANDS = ("Subcommands", "Laboratories")  # the headings of what has a help of its own
INDENT = 28  # where the descriptions begin; a longer name has its description on the next line


@dataclasses.dataclass
class Entry:
    """An option, a positional or a subcommand."""

    head: str   # as printed: "--io auto|udp|afxdp|dpdk", "-h,--help", "send"
    text: str

    @property
    def names(self) -> list[str]:
        return re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", self.head.split(" ", 1)[0])

    @property
    def value(self) -> str:
        """The value's name, "" for a flag."""
        return re.sub(r" *\.\.\.| *\(required\)", "", self.head).partition(" ")[2].strip()

    @property
    def choices(self) -> list[str]:
        if self.value == "LAW":  # its text names them; one is written with a value of its own
            named = re.search(r"rate law: ([^(]*)", self.text)
            return [re.sub("[A-Z]+$", "", word) for word in named[1].replace(",", " ").split()] \
                if named else []
        return self.value.split("|") if re.fullmatch(r"[a-z0-9:_-]+(\|[a-z0-9:_-]+)+",
                                                     self.value) else []

    @property
    def is_path(self) -> bool:
        return any(word in self.value.split("|") for word in ("FILE", "DIR", "FOLDER", "PATH"))


@dataclasses.dataclass
class Command:
    path: tuple[str, ...]  # (), ("send",), ("bench", "loop")
    summary: str
    usage: str
    sections: dict[str, list[Entry]]
    notes: str
    commands: "list[Command]"

    @property
    def name(self) -> str:
        return " ".join(("onehop", *self.path))

    @property
    def options(self) -> list[Entry]:
        return [
            entry for title, entries in self.sections.items()
            if title not in (*COMMANDS, "Positionals") for entry in entries
        ]

    def walk(self) -> Iterator[Any]:
        yield self
        for command in self.commands:
            yield from command.walk()


def parse(text, path) -> Any:
    """Command of one --help text, without its subcommands."""
    before, _, rest = text.partition("\nUsage: ")
    usage, _, rest = rest.partition("\n")
    sections, notes, title = {}, [], None
    for line in rest.splitlines():
        if not line.strip():
            title = None
        elif line[0] != " " and line.endswith(":"):
            title = line[:-1]
            sections[title] = []
        elif line[0] != " ":
            notes.append(line.strip())
        elif title is None and not sections:
            usage += " " + line.strip()
        elif title is not None and line.startswith("  ") and line[2] != " ":
            head, description = (
                line[2:INDENT],
                line[INDENT:]) if len(line) > INDENT and line[INDENT - 1] == " " else (line[2:], "")
            sections[title].append(Entry(head.strip(), description.strip()))
        elif title is not None:
            entry = sections[title][-1]
            entry.text = f"{entry.text} {line.strip()}".strip()
    return Command(path, " ".join(before.split()), usage.strip(), sections, " ".join(notes), [])


def read(program, path=(), left_out=()) -> Any:
    """The command at `path` with all below it, from the program itself. Those that are left out are
    not asked: their program may be about to be made."""
    done = subprocess.run([program, *path, "--help-all"], capture_output=True, text=True,
                          check=True)
    command = parse("\n" + done.stdout, path)
    command.commands = [
        read(program, (*path, entry.head)) for title in COMMANDS
        for entry in command.sections.get(title, [])
        if "(not installed)" not in entry.text and entry.head not in left_out
    ]
    return command
