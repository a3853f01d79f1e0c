#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""tidy and the pages of figures: what they promise is judged, and they stay as they were.

Goal:   no bound that a page of docs/results shows can vanish, and the pages of a tagged version do
        not change.
Method: a small repository with a history of its own, one change at a time; tidy runs as it does in
        the test suite.
Bounds: its exit code and the line printed.
"""
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

from self_test import DUAL, TIDY, clean_tree

HEAD = (f'# {DUAL}\ntitle = "t"\n[[columns]]\nname = "near"\n[[columns]]\nname = "far, 2"\n'
        '[[rows]]\nname = "auto"\n[[rows]]\nname = "UDP"\n')
SCENARIO = f'{HEAD}[[bounds]]\nmetric = "jain"\nrow = "auto"\nat_least = 0.9\n'
OF_UDP = '[[bounds]]\nmetric = "rate"\nrow = "auto"\nat_most = 7.25\ncolumns = ["far, 2"]\n'
PAGE = f"""<!-- {DUAL} -->
# t
## What must hold
| table | bound | |
|---|---|---|
| a | jain, auto, near: 0.9300 >= 0.9000  | met |
| a | jain, auto, far, 2: 0.7 >= 0.9 | **not met** |
## t
| jain | near | far, 2 |
|---|---|---|
| auto | 0.93 | 0.70 |
"""
PATH = "docs/results/0.1.0/papers.md"


class Repository:
    def __init__(self, folder) -> None:
        self.root = pathlib.Path(folder)
        self.git("init", "-q")
        self.write(clean_tree())
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

    def expect(self, name, part=None) -> None:
        """tidy complains of `part`, or of nothing."""
        done = subprocess.run(
            [sys.executable, str(TIDY), "--root",
             str(self.root), "--quiet"], capture_output=True, text=True, check=False)
        wanted = (1, part) if part else (0, "0 errors, 0 warnings")
        assert done.returncode == wanted[0] and wanted[1] in done.stdout, (
            f"{name}: {wanted} wanted:\n{done.returncode} {done.stdout}{done.stderr}")


def test_bounds_do_not_vanish(repository) -> None:
    repository.write({"configs/ns3/a.toml": SCENARIO})
    repository.expect("no page yet")
    repository.write({PATH: PAGE})
    repository.expect("shown and judged")
    lost = f"{PATH}:0: error: [snapshot] nothing judges this any more"
    for name, text in (("softened", SCENARIO.replace("0.9", "0.8")),
                       ("softened by less than a page shows", SCENARIO.replace("0.9", "0.89")),
                       ("turned round", SCENARIO.replace("at_least", "at_most")),
                       ("of another row", SCENARIO.replace('row = "auto"', 'row = "UDP"')),
                       ("beside another row", SCENARIO + 'of_row = "UDP"\n'),
                       ("another metric", SCENARIO.replace("jain", "jain_airtime")),
                       ("one column less", SCENARIO + 'columns = ["near"]\n'),
                       ("a column less in the table", SCENARIO.replace('"far, 2"', '"far"')),
                       ("none", HEAD)):
        repository.write({"configs/ns3/a.toml": text})
        repository.expect(name, lost)
    repository.git("rm", "-qf", "configs/ns3/a.toml")
    repository.expect("no table", lost)
    softer = SCENARIO.replace("0.9", "0.8")
    both = softer + SCENARIO[len(HEAD):] + 'replaced = "why"\n'
    repository.write({"configs/ns3/a.toml": both})
    repository.expect("replaced with a reason")
    repository.write({"configs/ns3/a.toml": both.replace('"why"', '""')})
    repository.expect("replaced without one", "replaced, without a reason")
    for words, complaint in (("less (last row)", "'last row' points by place"),
                             ("more (see UDP)", "'(see UDP)': its page shows no row of that name")):
        repository.write({"configs/ns3/a.toml": f'note = "{words}"\n{both}'})
        repository.expect(words, complaint)
    repository.write({"configs/ns3/a.toml": f'note = "as ever (see auto)"\n{both}'})
    repository.expect("a row that is shown")
    for of, shown in (("", "7.2"), ('of_row = "UDP"\n', "7.2500 of UDP"),
                      ('of_column = "near"\n', "7.2500 of auto, near"),
                      ('of_row = "UDP"\nof_column = "near"\n', "7.2500 of UDP, near")):
        row = f"| a | rate, auto, far, 2: 3 <= {shown} | met | why |\n"
        repository.write({"configs/ns3/a.toml": both + OF_UDP + of,
                          "docs/results/0.2.0/papers.md": PAGE.replace("## t\n", f"{row}## t\n")})
        repository.expect(f"rounded, {shown}")
        repository.write({"configs/ns3/a.toml": both + OF_UDP.replace("7.25", "7.5") + of})
        repository.expect("a bound of any page", f"{PATH.replace('0.1', '0.2')}:0: error: [snapsho")
    repository.git("rm", "-qf", "docs/results/0.2.0/papers.md")
    repository.commit()


def test_a_tagged_page_stays(repository) -> None:
    repository.write({PATH: PAGE.replace("0.9300", "0.9400")})
    repository.expect("measured anew before the version is tagged")
    repository.commit()
    repository.git("tag", "v0.1.0")
    repository.expect("as it was")
    edited = f"{PATH}:0: error: [snapshot] a page of v0.1.0 is never edited"
    repository.write({PATH: PAGE})
    repository.expect("edited", edited)
    repository.commit()
    repository.expect("edited and committed", edited)
    repository.git("rm", "-qf", PATH)
    repository.write({"docs/results/0.1.0/wired.md": f"<!-- {DUAL} -->\n# other\n"})
    repository.expect("taken away", edited)
    repository.git("checkout", "-q", "v0.1.0", "--", PATH)
    repository.git("rm", "-qf", "docs/results/0.1.0/wired.md")
    repository.write({PATH.replace("0.1.0", "0.2.0"): PAGE})
    repository.expect("the next version has pages of its own")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="onehop-tidy-") as folder:
        repository = Repository(folder)
        test_bounds_do_not_vanish(repository)
        test_a_tagged_page_stays(repository)
    print("pages of figures: as expected")


if __name__ == "__main__":
    main()
