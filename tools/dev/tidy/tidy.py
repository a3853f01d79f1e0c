#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""tidy: rules of this repository that a compiler does not check, over the files that git tracks.

Each check is a function of the tree that yields findings; CHECKS lists them all. A finding fails
the run, a warning does not. Nothing is written. Exit code: 0 clean, 1 findings, 2 usage.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

import columns  # noqa: E402
import constants  # noqa: E402
import cost  # noqa: E402
import documents  # noqa: E402
import equations  # noqa: E402
import layers  # noqa: E402
import snapshots  # noqa: E402

DUAL = "Apache-2.0 OR GPL-2.0-only"
BPF = "GPL-2.0-only OR BSD-2-Clause"  # the kernel loads it only under a GPL-compatible licence

# A law is a function of its samples: it takes the time as an argument and prints nothing.
BANNED_IN_LAWS = re.compile(
    r"\w*_clock::now|\bclock_gettime\b|\bgettimeofday\b|\bthis_thread\b|\bstd::(cout|cerr|clog)\b"
    r"|\b(f|s|sn)?printf\b|\bfmt::print\b|\bsocket\s*\(|\bgetenv\b")

CODE = (".cpp", ".hpp", ".c", ".h", ".S", ".py", ".sh", ".build")
CPP = (".cpp", ".hpp")
# what a kernel said, as it said it; every other tracked file is text
BINARY = ("tests/control/link/recorded/", "docs/pictures/")
# formats without a place for a licence line
NO_COMMENTS = (".json", ".hex", ".csv", ".svg", ".ndjson")
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
MARKER = "TODO" + "-CITE"  # a number that nobody has checked yet

THREATS = (
    "P1 P2 P3 P4 P5 P6 P7 P8 Z1 Z2 Z3 Z4 N1 N2 N3 N4 N5 N6 N7 N8 N9 N10 N11 N12 T1 T2 C1 C2 C3 C4 "
    "C5 K1 K2 K3 K4 K5 K6 K7 K8 K9 K10 K11 D1 D2 D3 D4 D5 U1 U2 U3").split()


@dataclasses.dataclass(frozen=True)
class Finding:
    path: str
    line: int
    rule: str
    text: str
    is_warning: bool = False

    def __str__(self) -> str:
        kind = "warning" if self.is_warning else "error"
        return f"{self.path}:{self.line}: {kind}: [{self.rule}] {self.text}"


@dataclasses.dataclass
class Tree:
    root: pathlib.Path
    texts: dict  # path from the root -> text of the file
    executables: set
    strays: list  # binary and empty files

    def code(self, suffixes) -> Any:
        return ((path, text) for path, text in self.texts.items() if path.endswith(suffixes))


def tracked_paths(root) -> list[Any]:
    """Files git tracks; in a tree without git (a release archive), all files outside hidden and
    build folders."""
    if (root / ".git").exists():
        listed = subprocess.run(
            ["git", "-c", f"safe.directory={root}", "-C",
             str(root), "ls-files", "-z"], check=True, capture_output=True)
        return sorted(name for name in os.fsdecode(listed.stdout).split("\0") if name)
    paths = []
    for folder, names, files in os.walk(root):
        names[:] = [n for n in names if not n.startswith((".", "build", "__pycache__"))]
        paths += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return sorted(paths)


def read_tree(root) -> Any:
    tree = Tree(root, {}, set(), [])
    for path in tracked_paths(root):
        full = root / path
        if full.is_symlink() or not full.is_file():
            continue
        data = full.read_bytes()
        if b"\0" in data or not data:
            tree.strays.append(path)
            continue
        tree.texts[path] = data.decode("utf-8", errors="replace")
        if os.access(full, os.X_OK):
            tree.executables.add(path)
    return tree


def check_strays(tree) -> Iterator[Any]:
    for path in tree.strays:
        if not path.startswith(BINARY):
            yield Finding(path, 0, "stray", f"binary or empty, outside {' and '.join(BINARY)}")


def is_licence_text(path) -> bool:
    return path == "LICENSE" or path.startswith("LICENSES/")


def allowed_licences(path) -> set[Any]:
    if path.endswith(".bpf.c"):
        return {BPF}
    # Headers a BPF program shares with C++, and objects it is embedded by, may carry either.
    if re.fullmatch(
            r"(xdp/steer|tools/labs/(lab/lossy|lab/air/gate_|bench/softirq_))[^/]*\.[chS]",
            path):
        return {BPF, DUAL}
    return {DUAL}


def check_licence_lines(tree) -> Iterator[Any]:
    for path, text in tree.texts.items():
        if path.endswith(NO_COMMENTS) or is_licence_text(path) or not text.strip():
            continue
        head = "\n".join(text.splitlines()[:3])
        found = re.search(r"SPDX-License-Identifier: ([^\n]*?)\s*(?:-->|\*/)?\s*(?:\n|$)", head)
        allowed = allowed_licences(path)
        if not found:
            yield Finding(path, 1, "licence", "no SPDX-License-Identifier in the first 3 lines")
        elif found[1] not in allowed:
            yield Finding(path, 1, "licence",
                          f"'{found[1]}' where {' or '.join(sorted(allowed))} belongs")
        elif path.endswith(".md") and not head.startswith("<!--"):
            yield Finding(path, 1, "licence",
                          "Markdown carries its licence line in an HTML comment at the top")


def check_includes(tree) -> Iterator[Any]:
    for path, number, text in layers.findings(tree):
        yield Finding(path, number, "include", text)


def without_comments_and_strings(text) -> Any:
    """The same lines, with comments and literals blanked, so that braces and calls can be
    counted."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
                         r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'", re.S)
    return pattern.sub(
        lambda m: "\n" * m[0].count("\n")
        if m[0][0] == "/" else '""' + "\n" * m[0].count("\n"), text)


def check_columns(tree) -> Iterator[Any]:
    for path, number, text in columns.findings(tree):
        yield Finding(path, number, "columns", text)


def check_laws(tree) -> Iterator[Any]:
    for path, text in tree.code(CPP):
        if not path.startswith("control/law/"):
            continue
        for number, line in enumerate(without_comments_and_strings(text).splitlines(), 1):
            if found := BANNED_IN_LAWS.search(line):
                yield Finding(path, number, "law",
                              f"a law takes time as an argument and has no I/O: {found[0]}")


def check_file_length(tree) -> Iterator[Any]:
    for path, text in tree.texts.items():
        lines = len(text.splitlines())
        is_code = path.endswith(CODE) or text.startswith("#!")
        if is_code and lines > FILE_LINES_MAX:
            yield Finding(path, lines, "length",
                          f"{lines} lines, at most {FILE_LINES_MAX}: split by noun")


OPENS_FUNCTION = re.compile(
    r"^\s*(?!(?:namespace|class|struct|enum|union|extern|if|else|for|while|switch|do|return|"
    r"using|case|catch|try)\b)[^\s#}].*\)[^;={}]*\{\s*$")


def functions_of(text) -> Iterator[Any]:
    """(first line, lines) of what looks like a function: a line with ')' that ends in '{', up to
    its closing brace."""
    lines = without_comments_and_strings(text).splitlines()
    index = 0
    while index < len(lines):
        if not OPENS_FUNCTION.match(lines[index]):
            index += 1
            continue
        depth, end = 0, index
        while end < len(lines):
            depth += lines[end].count("{") - lines[end].count("}")
            end += 1
            if depth <= 0:
                break
        yield index + 1, end - index
        index = end


def check_function_length(tree) -> Iterator[Any]:
    for path, text in tree.code(CPP):
        for line, count in functions_of(text):
            if count > FUNCTION_LINES_MAX:
                yield Finding(path, line, "function",
                              f"about {count} lines, at most {FUNCTION_LINES_MAX}", is_warning=True)


def check_words(tree) -> Iterator[Any]:
    for path, text in tree.texts.items():
        if is_licence_text(path):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if MARKER in line:
                yield Finding(path, number, "cite", f"{MARKER}: check the number or remove it")
            if "\t" in line and not path.endswith("debian/rules"):  # which is a makefile
                yield Finding(path, number, "tab", "tab character")


def check_executable_bits(tree) -> Iterator[Any]:
    for path, text in tree.texts.items():
        if text.startswith("#!") and path not in tree.executables:
            yield Finding(path, 1, "executable", "a script with a #! line has no executable bit")
        if path in tree.executables and not text.startswith("#!"):
            yield Finding(path, 1, "executable", "executable bit on a file without a #! line")


def check_configs(tree) -> Iterator[Any]:
    for path, text in tree.code((".toml", ".json")):
        try:
            (tomllib if path.endswith(".toml") else json).loads(text)
        except ValueError as error:
            yield Finding(path, getattr(error, "lineno", 1), "config", f"does not parse: {error}")


def commands_of(tree) -> Iterator[Any]:
    for path, text in tree.code(CPP):
        if path.startswith("tools/"):
            yield from ((path, name) for name in re.findall(r'add_subcommand\(\s*"([\w-]+)"', text))


def exit_codes_of(tree) -> Any:
    text = tree.texts.get("engine/base/result.hpp", "")
    body = re.search(r"enum class ExitCode[^{]*\{(.*?)\}", text, re.S)
    return re.findall(r"\w+\s*=\s*(\d+)", without_comments_and_strings(body[1])) if body else []


def check_readme(tree) -> Iterator[Any]:
    """Each command is in README.md or a page of docs, each exit code in README's table."""
    readme = tree.texts.get("README.md", "")
    pages_text = readme + "".join(
        text for path, text in tree.code((".md", )) if path.startswith("docs/"))
    commands, codes = list(commands_of(tree)), exit_codes_of(tree)
    if not commands or not codes:  # a check that finds nothing to look at would pass for ever
        yield Finding("README.md", 1, "readme",
                      "no add_subcommand() in tools/, or no ExitCode in engine/base/result.hpp")
    for path, name in commands:
        if not re.search(rf"onehop(?: [a-z0-9]+)? {re.escape(name)}\b", pages_text):
            yield Finding("README.md", 1, "readme",
                          f"the command '{name}' ({path}) is mentioned neither here nor in docs")
    section = re.search(r"^#+ Exit codes\n(.*?)(?=^#|\Z)", readme, re.S | re.M)
    for code in codes:
        if not section or not re.search(rf"\|\s*{code}\s*\|", section[1]):
            yield Finding("README.md", 1, "readme",
                          f"exit code {code} is not in the table 'Exit codes'")


def check_documents(tree) -> Iterator[Any]:
    for path, number, text in documents.findings(tree):
        yield Finding(path, number, "path", text)


def check_snapshots(tree) -> Iterator[Any]:
    for path, text in snapshots.findings(tree):
        yield Finding(path, 0, "snapshot", text)


def check_equations(tree) -> Iterator[Any]:
    for path, number, text in equations.findings(tree):
        yield Finding(path, number, "equation", text)


def check_cost(tree) -> Iterator[Any]:
    for path, number, text in cost.findings(tree):
        yield Finding(path, number, "cost", text)


def check_constants(tree) -> Iterator[Any]:
    for path, number, text in constants.findings(tree):
        yield Finding(path, number, "constant", text)


CHECKS = (check_strays, check_licence_lines, check_columns, check_includes, check_laws,
          check_file_length, check_function_length, check_words, check_executable_bits,
          check_configs, check_readme, check_documents, check_snapshots, check_equations,
          check_constants, check_cost)


def test_names_of(path, text) -> Iterator[Any]:
    """Names of Catch2 tests; of Python and shell tests, the function names and the comments."""
    if path.endswith(CPP):
        text = re.sub(r"^\s*//.*$", "", text, flags=re.M)
        for literals in re.findall(
                r'TEST_CASE(?:_METHOD)?\s*\((?:\s*\w+\s*,)?\s*((?:"(?:\\.|[^"\\])*"\s*)+)', text):
            yield "".join(re.findall(r'"((?:\\.|[^"\\])*)"', literals))
    elif path.endswith((".py", ".sh")) or text.startswith("#!"):
        for found in re.finditer(r"^\s*def (test\w+)|^\s*(?:#(?!!)|\"\"\")\s*(\S[^\n]*)", text,
                                 re.M):
            yield found[1].replace("_", " ") if found[1] else found[2]


def threat_table(tree) -> Any:
    table = {threat: [] for threat in THREATS}
    for path, text in tree.texts.items():
        if not path.startswith("tests/") or path.startswith("tests/tidy/"):
            continue
        for name in test_names_of(path, text):
            for threat in sorted(set(re.findall(r"\b[A-Z]\d+\b", name)) & table.keys()):
                table[threat].append(f"{path}: {name}")
    return table


def print_threats(table) -> None:
    for threat, names in table.items():
        print(f"{threat:4} {names[0] if names else '-- no test --'}")
        for name in names[1:]:
            print(f"     {name}")


def check_threats(table) -> Iterator[Any]:
    for threat, names in table.items():
        if not names:
            yield Finding("tests", 0, "threat", f"{threat} is in the name of no test")


def parse_arguments(argv) -> Any:
    parser = argparse.ArgumentParser(description="Check the rules of this repository.")
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[3])
    parser.add_argument("--require-threats", action="store_true",
                        help="fail when a threat has no test")
    parser.add_argument("--quiet", action="store_true", help="no table of threats")
    return parser.parse_args(argv)


def main(argv) -> int:
    options = parse_arguments(argv)
    tree = read_tree(options.root.resolve())
    table = threat_table(tree)
    if not options.quiet:
        print_threats(table)
    findings = [finding for check in CHECKS for finding in check(tree)]
    if options.require_threats:
        findings += check_threats(table)
    for finding in findings:
        print(finding)
    errors = sum(not finding.is_warning for finding in findings)
    print(f"tidy: {len(tree.texts)} files, {errors} errors, {len(findings) - errors} warnings")
    return 1 if errors or not tree.texts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
