# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Other systems: a root of another release, in which the suites without root are built and played.

  NAME = RELEASE[:clang|:arm64|:package]     trixie, trixie:clang, trixie:arm64, bookworm, noble

A root lies in ~/.cache/onehop/roots and is made once, by mmdebstrap; what is built in it lies in
build-NAME beside `build`. A command in it has a mount and a process namespace of its own, sees this
folder under its own path, and ends with whoever started it. With :arm64 the cross compiler builds,
and the programs run under qemu-user by a binfmt_misc of a user namespace's own (Linux 6.7): nothing
is registered on this machine. With :package the packages' test is played there instead.

Its tests are compared with this machine's, as they were played: one that is gone, or has another
number of Catch2's cases, is a failure.
"""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess

from run import Commands, Failure, log_of, tail, targets_of

LLVM = {"bookworm": "16", "trixie": "19", "noble": "18"}  # as tools/bootstrap installs it
VARIANTS = ("", "clang", "arm64", "package")
ROOTLESS = ["unit", "contract", "scenario", "tidy"]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
HERE = pathlib.Path(__file__).resolve().parent
# What qemu-user lacks, so that a test there has seen another way, or skipped.
NOT_EMULATED = "qemu-user has no io_uring, no seccomp and no AF_XDP: these are not seen on arm64"
ENTER = """set -e
root=$1 here=$PWD; shift
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mkdir -p old
while [ "$1" != -- ]; do
  mkdir -p ".$1"
  mount --bind "$1" ".$1"
  shift
done
shift
[ ! -e /etc/resolv.conf ] || cp -L /etc/resolv.conf etc/resolv.conf
pivot_root . old
umount -l /old
cd "$here"
# The first process of a namespace ends by a signal that it has a handler for, and by no other.
trap 'kill "$job" 2>/dev/null; exit 143' INT TERM
env PATH=/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin "$@" <&0 & job=$!
wait "$job"
"""


@dataclasses.dataclass(frozen=True)
class System:
    name: str
    release: str
    variant: str  # one of VARIANTS

    @property
    def seconds(self) -> float:
        """With the compiler's cache, on the machine that parts.py names."""
        return {"arm64": 2000, "package": 700}.get(self.variant, 400)

    def words(self) -> str:
        name = {"bookworm": "Debian 12", "trixie": "Debian 13", "noble": "Ubuntu 24.04"}
        means = {"": "", "clang": ", built by clang", "arm64": " for arm64, under qemu-user"}
        if self.is_package:
            return f"the packages' test on {name[self.release]}"
        return f"the suites without root on {name[self.release]}{means[self.variant]}"

    @property
    def folder(self) -> str:
        return "build-" + self.name.replace(":", "-")

    @property
    def root(self) -> pathlib.Path:
        return CACHE / "onehop/roots" / (self.release + ("-arm64" if self.is_emulated else ""))

    @property
    def is_emulated(self) -> bool:
        return self.variant == "arm64"

    @property
    def is_package(self) -> bool:
        return self.variant == "package"

    def enter(self) -> list[str]:
        """What stands before a command that is to run in the root."""
        ccache = pathlib.Path(os.environ.get("CCACHE_DIR") or CACHE / "ccache")
        ccache.mkdir(parents=True, exist_ok=True)
        # Of a worktree, what git needs is elsewhere.
        git = subprocess.run(["git", "rev-parse", "--path-format=absolute", "--git-common-dir"],
                             capture_output=True, text=True, check=False).stdout.strip()
        seen = [os.getcwd(), str(ccache), *([git] if git else [])]
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh",
                str(self.root), *seen, "--", f"CCACHE_DIR={ccache}"]

    def emulate(self) -> list[str]:
        """The same, where programs of the root's architecture run as well."""
        emulator = ["python3", str(HERE / "emulate.py")] if self.is_emulated else []
        return [*self.enter(), *emulator]


def system_of(name: str) -> System:
    release, _, variant = name.partition(":")
    if release not in LLVM or name.endswith(":") or variant not in VARIANTS:
        raise ValueError(f"no system is called {name}. Systems: {', '.join(LLVM)}, each also "
                         "with :clang, :arm64 or :package behind it")
    return System(name, release, variant)


def why_off(system: System) -> str:
    if os.geteuid() != 0:
        return "a root of another release is made and entered by root"
    if not system.root.exists() and shutil.which("mmdebstrap") is None:
        return "mmdebstrap is not installed"
    if system.release == "noble" and not system.root.exists() and not _keyring():
        return "the keys of Ubuntu's archive are not here: tools/distros trixie, and then " \
               "tools/distros trixie -- apt-get install -y ubuntu-keyring"
    return ""


def play(system: System, do: Commands) -> None:
    """Makes the root, builds in it and plays there."""
    if not (_make_root(system, do) and _install(system, do)):
        return
    do.inside, do.root = system.emulate(), system.root
    do.alone = f"tools/distros {system.name} -- "
    if system.is_package:
        words = ["python3", "tests/package/package_test.py"]
        do.one("packages", words, do.alone + " ".join(words))
        return
    if system.is_emulated:
        do.tally.skipped.append((system.name, NOT_EMULATED))
    options = ["-Dbuildtype=release", "-Dtests=enabled", "-Dns3=disabled", "-Dmicro=disabled"]
    llvm = LLVM[system.release]
    compilers = {"CC": f"clang-{llvm}", "CXX": f"clang++-{llvm}"} if system.variant == "clang" \
        else {}
    if system.is_emulated:
        options += ["--cross-file", str(HERE / "arm64.ini")]
    if do.setup(system.folder, options, compilers) and \
            do.ninja(system.folder, targets_of(system.folder, ROOTLESS)):
        times = ["--timeout-multiplier", "10" if system.is_emulated else "2"]
        patience = {"ONEHOP_TEST_PATIENCE": "600"} if system.is_emulated else {}
        before = len(do.tally.failures)
        failed = do.suites(system.folder, ROOTLESS, times, patience)
        do.again(system.folder, ROOTLESS, failed, before, times, patience)
        do.tally.skipped = [(name if name == system.name else f"{system.name}: {name}", why)
                            for name, why in do.tally.skipped]
        compare(system, do)


def _keyring() -> str:
    for folder in (pathlib.Path("/usr"), system_of("trixie").root / "usr"):
        path = folder / "share/keyrings/ubuntu-archive-keyring.gpg"
        if path.exists():
            return str(path)
    return ""


def _make_root(system: System, do: Commands) -> bool:
    if system.root.exists():
        return True
    system.root.parent.mkdir(parents=True, exist_ok=True)
    half = system.root.with_name(system.root.name + ".part")
    shutil.rmtree(half, ignore_errors=True)
    # What is made again by one command need not outlive a loss of power: no fsync() per file.
    words = ["mmdebstrap", "--variant=apt", "--include=ca-certificates,ccache,mount",
             "--dpkgopt=force-unsafe-io"]
    if system.is_emulated:
        words.append("--architectures=amd64,arm64")
    if system.release == "noble":
        words += ["--components=main,universe", "--keyring=" + _keyring()]
    lines: list[str] = []

    def on_line(line: str) -> None:
        lines.append(line)
        do.update(0, 1, f"makes {system.root}: {line[:60]}")

    code = do.run([*words, system.release, str(half)], on_line)
    if code != 0:
        do.tally.failures.append(Failure(f"make the root {system.root}",
                                         f"tools/distros {system.name}", tail(lines)))
        shutil.rmtree(half, ignore_errors=True)
        return False
    half.rename(system.root)
    return True


def _install(system: System, do: Commands) -> bool:
    """What tools/bootstrap installs there, with its own words about how far it is."""
    lines: list[str] = []

    def on_line(line: str) -> None:
        lines.append(line)
        do.update(0, 1, line.strip()[:100])

    words = ["tools/bootstrap", *(["--package"] if system.is_package else ["--suites"]),
             *(["--cross", "arm64"] if system.is_emulated else [])]
    code = do.run([*system.enter(), *words], on_line)
    if code != 0:
        do.tally.failures.append(Failure(f"install what is missing in {system.root}",
                                         f"tools/distros {system.name}", tail(lines)))
    return code == 0


def played(folder: str, suites: list[str]) -> dict[str, tuple[str, int]]:
    """By name of a test: how it ended, and how many of Catch2's cases it says it has played."""
    log = log_of(folder, suites)
    found = {}
    for line in log.read_text(errors="replace").splitlines() if log.exists() else []:
        test = json.loads(line)
        cases = re.search(r"All tests passed \(\d+ assertions? in (\d+) test cases?\)",
                          test.get("stdout", ""))
        found[test["name"].split(" / ")[-1]] = (test["result"], int(cases[1]) if cases else 0)
    return found


def compare(system: System, do: Commands) -> None:
    """None may have vanished."""
    ours, theirs = played("build", ROOTLESS), played(system.folder, ROOTLESS)
    wrong = [] if ours else ["this machine's suites were not played: tools/check rootless"]
    wrong += [f"{name} is not there" for name in ours if name not in theirs]
    # One that failed, or was skipped, is listed as such.
    wrong += [f"{name}: {theirs[name][1]} cases, here {cases}"
              for name, (result, cases) in ours.items()
              if result == "OK" and theirs.get(name, ("", 0))[0] == "OK"
              and theirs[name][1] != cases]
    do.say(f"   {system.name}: {len(theirs)} tests, here {len(ours)}; cases of Catch2 "
           f"{sum(cases for _, cases in theirs.values())}, here "
           f"{sum(cases for _, cases in ours.values())}")
    if wrong:
        do.tally.failures.append(Failure(f"{system.name}: tests have vanished",
                                         f"tools/distros {system.name}", "\n".join(wrong)))
    else:
        do.tally.passed += 1
