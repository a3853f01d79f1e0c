# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Bounds that cannot vanish: docs/bounds.toml lists each one that a page ever required, and each is still judged.

A bound that no longer holds is missed on its page. One that is no longer the right question gets `replaced`, with the reason, where it is
written: it is judged and shown all the same, beside what is required instead. Nothing is taken from the list; git remembers it.
"""

import re
import subprocess
import sys
import tomllib

LIST = "docs/bounds.toml"
SCENARIO = re.compile(r"configs/ns3/([\w-]+)\.toml")


def scenario_bounds(tree):
    """Of the papers' tables, one line per [[bounds]]."""
    for path, text in sorted(tree.texts.items()):
        if not (found := SCENARIO.fullmatch(path)):
            continue
        for bound in tomllib.loads(text).get("bounds", []):
            if "replaced" in bound and not bound["replaced"].strip():
                raise ValueError(f"{path}: {bound['metric']}, {bound['row']}: replaced, without a reason")
            columns = " + ".join(bound.get("columns", ["all columns"]))
            limit = f">= {bound['at_least']:g}" if "at_least" in bound else f"<= {bound['at_most']:g}"
            of = ", ".join(bound[key] for key in ("of_row", "of_column") if key in bound)
            yield f"{found[1]}: {bound['metric']}, {bound['row']}, {columns}: {limit}{f' of {of}' if of else ''}"


def compare_bounds(tree):
    """Of tools/compare's cases, as it lists them itself."""
    if "tools/compare" in tree.texts:
        done = subprocess.run([sys.executable, str(tree.root / "tools/compare"), "--bounds"], capture_output=True, text=True, check=True)
        yield from done.stdout.splitlines()


def ever_listed(tree):
    """What the list held in any commit before this one."""
    done = subprocess.run(["git", "-c", f"safe.directory={tree.root}", "-C", str(tree.root), "log", "-p", "--unified=0", "--format=", "--", LIST],
                          capture_output=True, text=True, check=False)
    return set(re.findall(r'^[-+]  "(.*)",$', done.stdout, re.M))


def findings(tree):
    """findings yields (path, text)."""
    try:
        now = {"papers": list(scenario_bounds(tree)), "compare": list(compare_bounds(tree))}
    except (KeyError, ValueError, subprocess.CalledProcessError) as error:
        yield LIST, f"the bounds cannot be read: {error}"
        return
    if LIST not in tree.texts:
        if any(now.values()):
            yield LIST, "it is not there: every bound of configs/ns3 and tools/compare is listed in it"
        return
    kept = tomllib.loads(tree.texts[LIST])
    for page, bounds in now.items():
        listed = kept.get(page, [])
        for bound in sorted(set(listed) - set(bounds)):
            yield LIST, f"nothing judges this any more; a bound is replaced, with a reason, and not removed: {bound}"
        for bound in sorted(set(bounds) - set(listed)):
            yield LIST, f"a bound that is not listed: {bound}"
    for bound in sorted(ever_listed(tree) - {bound for bounds in kept.values() for bound in bounds}):
        yield LIST, f"this was listed, and is no longer: {bound}"
