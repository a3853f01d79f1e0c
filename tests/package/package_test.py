#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The Debian packages, from tools/package to purge: package_test.py [--packages FOLDER]
[--root FOLDER].

Goal:   A package says the release that it was built on, a later release's is a later version;
        `apt install ./onehop_*.deb` on a bare system, and `onehop recv` receives; it needs only
        what sending and receiving take, and purging leaves nothing.
Method: tools/package makes the packages (or takes those of FOLDER); lintian judges them; mmdebstrap
        makes a bare root of this release (or a copy of FOLDER is taken); apt installs there, a file
        goes from one network namespace to another by the installed program, apt purges, and the
        root's list of files is compared. Then the library, its header and the laboratories; and the
        stories of tests/people over that root.
Bounds: lintian: no error, no warning. What differs after a purge is in apt's and dpkg's own
        records. The time from apt to the first file is printed, and judged by nobody here.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/lab"))

from program import SKIP, Skip, check  # noqa: E402
from rooted import own_mounts, run  # noqa: E402
from spaces import Spaces  # noqa: E402

# Where apt and dpkg keep their books, and what they tell of them.
BOOKS = ("/var/lib/apt/", "/var/lib/dpkg/", "/var/cache/", "/var/log/", "/etc/ld.so.cache")
PLACES = ("/usr/share/man/man1/onehop-send.1.gz", "/usr/share/bash-completion/completions/onehop",
          "/usr/share/zsh/vendor-completions/_onehop", "/usr/share/doc/onehop/copyright",
          "/usr/share/fish/vendor_completions.d/onehop.fish",
          "/usr/share/dbus-1/system.d/org.onehop.p2p.conf", "/usr/share/onehop/law/auto.json",
          "/usr/lib/systemd/system/onehop-recv.service",
          "/usr/lib/systemd/user/onehop-recv.service")
PEOPLE = ("systemd", "dbus", "libpam-systemd", "avahi-daemon", "avahi-utils", "nftables", "tmux",
          "iproute2")
LABS = ("bench", "lab", "plot", "stress")
CODE_ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C", "PATH": os.environ["PATH"]}


def release() -> str:
    return re.search(r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(), re.M)[1]


class Bare:
    """A root with apt and nothing else, and what a test does in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for kind, place in (("proc", "proc"), ("sysfs", "sys"), ("tmpfs", "run")):
            run("mount", "-t", kind, kind, root / place)

    def close(self) -> None:
        for place in ("work", "run", "sys", "proc"):
            if os.path.ismount(self.root / place):
                run("umount", self.root / place)

    def inside(self, *words: Any) -> str:
        return run("chroot", self.root, *words, env=CODE_ENVIRONMENT)

    def apt(self, *words: Any) -> str:
        return self.inside("apt-get", "-y", "-q", *words)

    def files(self) -> dict[str, Any]:
        """Everything on its disk: name, and what a change of it would change."""
        seen: dict[str, Any] = {}
        for line in run("find", self.root, "-xdev", "-printf", "%P\t%y %m %U %G %s\n").splitlines():
            name, _, what = line.partition("\t")
            name = "/" + name
            if not f"{name}/".startswith(BOOKS):
                seen[name] = "" if what.startswith("d") else what
        return seen


def revision(system: str) -> str:
    """The Debian revision on a system with this /etc/os-release."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(system)
        file.flush()
        return run("bash", "-euc", ". tools/dev/package.d/revision.sh; package_revision \"$0\"",
                   file.name, cwd=ROOT).strip()


def judge_versions(made: list[Path]) -> None:
    bookworm, trixie = revision("ID=debian\nVERSION_ID=12\n"), revision("ID=debian\nVERSION_ID=13")
    check((bookworm, trixie) == ("1~deb12u1", "1~deb13u1"), f"of Debian: {bookworm}, {trixie}")
    noble = revision("ID=ubuntu\nVERSION_ID=\"24.04\"\n")
    check(noble == "1~ubuntu24.04.1", f"of Ubuntu: {noble}")
    sid = revision("ID=debian\n")
    for low, high in ((bookworm, trixie), (trixie, sid)):
        run("dpkg", "--compare-versions", f"0.1.0-{low}", "lt", f"0.1.0-{high}")
    here = revision(Path("/etc/os-release").read_text())
    for path in made:
        version = run("dpkg-deb", "-f", path, "Version").strip()
        check(version.endswith("-" + here) and f"_{version}_" in path.name,
              f"{path.name} has version {version}, built on {here}")


def make_packages(folder: Path) -> list[Path]:
    said = run(ROOT / "tools/package", folder)
    made = [Path(line) for line in said.splitlines() if line.endswith(".deb")]
    names = sorted(path.name.partition("_")[0] for path in made)
    dpdk = ["onehop-dpdk"] if any("_amd64." in path.name for path in made) else []
    check(names == ["libonehop-dev", "libonehop0", "onehop", *dpdk, "onehop-labs"],
          f"made: {said[-500:]}")
    return made


def judge_packages(made: list[Path]) -> None:
    if shutil.which("lintian") is None:
        raise Skip("lintian is not installed")
    found = run("lintian", "--allow-root", "--fail-on", "none", *made)
    bad = [line for line in found.splitlines() if line.startswith(("E:", "W:"))]
    check(not bad, "lintian: " + "\n".join(bad))
    strange = [str(ROOT), str(made[0].parent)]
    with tempfile.TemporaryDirectory() as folder:
        for path in made:
            run("dpkg-deb", "-x", path, folder)
        for path in Path(folder).rglob("*"):
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                check(not any(word.encode() in data for word in strange),
                      f"{path.relative_to(folder)} names a folder of its build")
        for place in PLACES:
            check(Path(folder + place).exists(), f"{place} is in a package")


def send_a_file(bare: Bare, folder: Path) -> None:
    """Both ends are the installed program, each in a network namespace of its own."""
    program = folder / "onehop"
    program.write_text("#!/bin/sh\n"
                       f"mount -t sysfs sysfs '{bare.root}/sys' && exec chroot '{bare.root}' "
                       "env -C /work HOME=/work /usr/bin/onehop \"$@\"\n")
    program.chmod(0o755)
    with Spaces(program, "ab") as world:
        (bare.root / "work").mkdir()
        run("mount", "--bind", world.work, bare.root / "work")
        world.target = Path("/work/in")
        world.join("a", "va", "b", "vb")
        world.ip("a", "addr add 10.111.0.1/24 dev va")
        world.ip("b", "addr add 10.111.0.2/24 dev vb")
        world.file(4_000_000)
        receiver = world.receive("b", io="auto")
        sender = world.send("a", "/work/file.bin", "10.111.0.2", io="auto")
        for end in (sender, receiver):
            check(end.code() == 0, f"an end ends with {end.process.returncode}: {end.text()}")
        same = (world.work / "file.bin").read_bytes() == (world.work / "in/file.bin").read_bytes()
        check(same, "the file arrived as it was")
        run("umount", bare.root / "work")
        (bare.root / "work").rmdir()


def play(bare: Bare, made: list[Path], folder: Path) -> None:
    named = {path.name.partition("_")[0]: f"/{path.name}" for path in made}
    bare.apt("update")
    before = bare.files()
    for path in made:
        shutil.copy(path, bare.root)

    # 1. From nothing to a file that arrived.
    begun = time.monotonic()
    said = bare.apt("install", f".{named['onehop']}")
    installed = time.monotonic()
    send_a_file(bare, folder)
    print(f"seconds from apt install to the first file: {time.monotonic() - begun:.1f} "
          f"(apt {installed - begun:.1f}; {re.search('Need to get .*', said)[0]} "
          f"{re.search('After this .*', said)[0]})")
    brought = re.search(r"The following NEW packages will be installed:\n((?:  .*\n)+)", said)[1]
    print(f"it brings: {' '.join(brought.split())}")
    version = bare.inside("onehop", "--version", "-v")
    check("unknown" not in version.splitlines()[0] or not (ROOT / ".git").exists(),
          f"it knows its commit: {version}")
    bare.inside("onehop", "doctor")
    for name in LABS:
        done = subprocess.run(["chroot", bare.root, "onehop", name], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(done.returncode != 0 and "onehop-labs" in done.stdout,
              f"{name} says where it is: {done.stdout}")

    # 2. The others, and what they are for.
    others = [f".{named[name]}" for name in ("libonehop0", "onehop-labs")]
    bare.apt("install", "--no-install-recommends", *others)
    for name in LABS:
        bare.inside("onehop", name, "--help")
    check("libonehop.so.0" in bare.inside("ldconfig", "-p"), "the library is found")
    if "onehop-dpdk" in named:
        check("onehop-dpdk" in bare.inside("onehop", "doctor"), "what DPDK takes is said")
        bare.apt("install", "--no-install-recommends", f".{named['onehop-dpdk']}")
        check("dpdk         on" in bare.inside("onehop", "--version", "-v"), "and then it is there")
        bare.apt("purge", "onehop-dpdk")

    # 3. Back to nothing.
    bare.apt("purge", "onehop", "onehop-labs", "libonehop0")
    bare.apt("autoremove", "--purge")
    for path in made:
        (bare.root / path.name).unlink()
    after = bare.files()
    left = sorted(name for name in after if after[name] != before.get(name))
    gone = sorted(name for name in before if name not in after)
    check(not left and not gone, f"after a purge: left or changed {left[:20]}, gone {gone[:20]}")

    # 4. What people do with it.
    shutil.copy(made[0].parent / named["onehop"][1:], bare.root)
    bare.apt("install", f".{named['onehop']}", *PEOPLE)
    enabled = [str(path) for path in (bare.root / "etc/systemd").rglob("onehop*")]
    check(not enabled, f"no unit is enabled, which would open a port: {enabled}")
    print(run(ROOT / "tests/people/stories_test.py", "--root", bare.root))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", type=Path, help="those that are there, instead of new ones")
    parser.add_argument("--root", type=Path, help="a bare root; a copy of it is used")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: it makes a root and network namespaces: run it as root")
        return SKIP
    own_mounts()
    for program, package in (("mmdebstrap", "mmdebstrap"), ("dpkg-buildpackage", "dpkg-dev")):
        if shutil.which(program) is None:
            print(f"skipped: {package} is not installed")
            return SKIP
    work = Path(tempfile.mkdtemp(prefix="onehop-package-", dir="/var/tmp"))
    bare = None
    try:
        packages = options.packages.resolve() if options.packages else work / "packages"
        made = sorted(packages.glob("*.deb")) if options.packages else make_packages(packages)
        judge_versions(made)
        judge_packages(made)
        if options.root:
            run("cp", "-a", options.root, work / "root")
        else:
            run("mmdebstrap", "--variant=apt", release(), work / "root")
        bare = Bare(work / "root")
        play(bare, made, work)
    finally:
        if bare is not None:
            bare.close()
        shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
