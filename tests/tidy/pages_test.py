#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""tidy and time: pages of figures that are older than the code below them, and bounds that were
once listed.

Goal: a page cannot be of older code without saying so, and no bound can vanish. Method: a small
        repository with a history of its own, one change at a time; tidy runs as it does in the test
        suite. Bounds: its exit code and the line printed.
"""
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

from self_test import DUAL, TIDY, clean_tree, cpp

PAGES = (
    f"# {DUAL}\n[figures]\ndepends = [\"engine/run\", \"configs\"]\n[by_hand]\npages = "
    "[\"words\"]\n"
)
LAW = "control/law/law.cpp"
LOOP = "engine/run/loop.hpp"
SCENARIO = (
    f"# {DUAL}\ntitle = \"t\"\n[[bounds]]\nmetric = \"jain\"\nrow = \"auto\"\nat_least = 0.9\n")
LISTED = f"# {DUAL}\npapers = [\n  \"a: jain, auto, all columns: >= 0.9\",\n]\n"
MARK = (
    "**Stale**: code below this page has changed since its figures were made. They are of the "
    "commit that is named here."
)


class Repository:
    def __init__(self, folder) -> None:
        self.root = pathlib.Path(folder)
        self.git("init", "-q")
        self.write(clean_tree()
                   | {"docs/pages.toml": PAGES, "docs/words.md": f"<!-- {DUAL} -->\n# words\n"})
        self.commit()
        self.write({"docs/figures.md": self.page()})
        self.commit()

    def git(self, *words) -> Any:
        command = ["git", "-C", str(self.root), "-c", "user.name=x", "-c", "user.email=x@y", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def write(self, files) -> None:
        for path, text in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
            if path.startswith("tests/lab/"):
                (self.root / path).chmod(0o755)
        self.git("add", "-A")

    def commit(self) -> None:
        self.git("commit", "-qm", "x")

    def page(self, mark="", dirty="", commit=None) -> str:
        return (
            f"<!-- {DUAL} -->\n# Figures\n{mark}\n- commit: "
            f"`{commit or self.git('rev-parse', '--short=12', 'HEAD').strip()}`{dirty}\n"
        )

    def expect(self, name, code, part) -> None:
        done = subprocess.run(
            [sys.executable, str(TIDY), "--root",
             str(self.root), "--quiet"], capture_output=True, text=True, check=False)
        assert done.returncode == code and part in done.stdout, (
            f"{name}: {code} and {part!r} wanted:\n{done.returncode} {done.stdout}{done.stderr}")


def test_a_page_is_as_old_as_the_code_below_it(repository) -> None:
    clean = (repository.root / LOOP).read_text()
    first = repository.git("rev-parse", "--short=12", "HEAD~").strip()
    repository.expect("of this code", 0, "0 errors, 0 warnings")
    repository.write({LAW: cpp("int elsewhere;")})
    repository.expect("what it does not depend on", 0, "0 errors, 0 warnings")
    repository.write({LOOP: clean.replace("#include <boost", "// A comment.\n\n#include <boost")})
    repository.expect("a comment is no code", 0, "0 errors, 0 warnings")
    repository.write({"engine/run/README.md": f"<!-- {DUAL} -->\n# run\n"})
    repository.expect("Markdown is no code", 0, "0 errors, 0 warnings")
    repository.write({LOOP: clean + "int more;\n"})
    repository.expect("not committed", 1,
                      "docs/figures.md:0: error: [page] stale, and does not say so")
    repository.commit()
    repository.expect("committed", 1, "1 files differ since: engine/run/loop.hpp")
    repository.write({"docs/figures.md": repository.page(mark=f"\n{MARK}\n", commit=first)})
    repository.expect("it says so", 0, "docs/figures.md:0: warning: [page] stale: 1 files differ")
    repository.write({
        "docs/pages.toml": PAGES.replace(
            "[by_hand]", 'harmless = { "engine/run/loop.hpp" = "unused" }\n[by_hand]')
    })
    repository.expect("harmless by the manifest", 1, "it says that it is stale and is not")
    repository.write({
        "docs/pages.toml": PAGES,
        "docs/figures.md": repository.page(dirty=" with uncommitted changes")
    })
    repository.expect("measured with uncommitted changes", 1, "made with uncommitted changes")
    repository.write({"docs/figures.md": repository.page()})
    repository.expect("measured anew", 0, "0 errors, 0 warnings")
    repository.commit()
    repository.write({"engine/run/new.cpp": cpp("int x;")})
    repository.expect("a new file", 1, "engine/run/new.cpp")
    repository.git("rm", "-qf", "engine/run/new.cpp")
    repository.git("rm", "-qf", "configs/a.json")
    repository.expect("a file that is gone", 1, "configs/a.json")
    repository.git("reset", "-q", "--hard")


def test_a_page_cannot_go_without(repository) -> None:
    kept = (repository.root / "docs/figures.md").read_text()
    for name, files, part in (
        ("no commit", {"docs/figures.md": f"<!-- {DUAL} -->\n# Figures\n"}, "it names no commit"),
        ("an unknown commit", {"docs/figures.md": repository.page(commit="0123456789ab")},
         "commit 0123456789ab is not known"),
        ("a page nobody knows", {"docs/other.md": f"<!-- {DUAL} -->\n# x\n"},
         "docs/other.md:0: error: [page]"),
        ("no manifest", {"docs/pages.toml": ""}, "docs/pages.toml"),
        ("a folder that is not there",
         {"docs/pages.toml": PAGES.replace("engine/run", "engine/walk")}, "depends on engine/walk"),
    ):
        if files == {"docs/pages.toml": ""}:
            repository.git("rm", "-qf", "docs/pages.toml")
        else:
            repository.write(files)
        repository.expect(name, 1, part)
        repository.git("rm", "-qf", "--ignore-unmatch", "docs/other.md")
        repository.write({"docs/figures.md": kept, "docs/pages.toml": PAGES})
    repository.expect("all is well again", 0, "0 errors, 0 warnings")


def test_bounds_do_not_vanish(repository) -> None:
    repository.write(
        {"docs/pages.toml": PAGES.replace(', "configs"', ""), "configs/ns3/a.toml": SCENARIO})
    repository.expect("no list", 1, "docs/bounds.toml:0: error: [bound] it is not there")
    repository.write({"docs/bounds.toml": LISTED})
    repository.expect("listed and judged", 0, "0 errors, 0 warnings")
    repository.commit()
    softer = SCENARIO.replace("0.9", "0.8")
    repository.write({"configs/ns3/a.toml": softer})
    repository.expect(
        "softened", 1,
        "nothing judges this any more; a bound is replaced, with a reason, and not removed: a: "
        "jain, auto"
    )
    repository.expect(
        "and the new one is not listed", 1,
        "a bound that is not listed (tools/tidy/bounds.py --add): a: jain, auto, all columns: >= "
        "0.8"
    )
    repository.write({"docs/bounds.toml": LISTED.replace("0.9", "0.8")})
    repository.expect("softened in the list as well", 1,
                      "this was listed, and is no longer: a: jain, auto, all columns: >= 0.9")
    both = softer + '[[bounds]]\nmetric = "jain"\nrow = "auto"\nat_least = 0.9\nreplaced = "why"\n'
    repository.write({
        "configs/ns3/a.toml": both,
        "docs/bounds.toml": LISTED.replace("]\n", '  "a: jain, auto, all columns: >= 0.8",\n]\n')
    })
    repository.expect("replaced with a reason", 0, "0 errors, 0 warnings")
    repository.write({"configs/ns3/a.toml": both.replace('"why"', '""')})
    repository.expect("replaced without one", 1, "replaced, without a reason")
    for words, complaint in (("less (last row)", "'last row' points by place"),
                             ("more (see UDP)", "'(see UDP)': its page shows no row of that name")):
        repository.write({"configs/ns3/a.toml": f'note = "{words}"\n{both}'})
        repository.expect(words, 1, complaint)
    repository.write({"configs/ns3/a.toml": f'note = "as ever (see auto)"\n{both}'})
    repository.expect("a row that is shown", 0, "0 errors, 0 warnings")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="onehop-tidy-") as folder:
        repository = Repository(folder)
        test_a_page_is_as_old_as_the_code_below_it(repository)
        test_a_page_cannot_go_without(repository)
        test_bounds_do_not_vanish(repository)
    print("pages and bounds: as expected")


if __name__ == "__main__":
    main()
