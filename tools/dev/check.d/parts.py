# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The parts of tools/check, in the order in which they are played, and whose turn it is.

A part is played in the foreground, one after the other, or aside: at idle priority beside the lab,
whose tests wait more than they compute. `seconds` is what it took in the foreground on two cores of
an AMD EPYC (Linux 6.18): the time left is derived from it. For one aside it is what is left to do
when the foreground has ended.
"""

import dataclasses
import os
import pathlib
import shutil
from collections.abc import Callable

import run
import systems
from run import Commands

BUILD, ASAN, TSAN = "build", "build-asan", "build-tsan"
PLAIN = ["-Dbuildtype=release", "-Dlabs=auto"]
# Processes for suites whose tests wait more than they compute.
MANY = str((os.cpu_count() or 1) * 3 // 2 + 1)
ROOTLESS = systems.ROOTLESS
ASAN_SUITES = ["sanitize", "fuzz", "contract", "unit", "scenario"]
# -g1: a finding names its lines, and no more is linked.
SANITIZED = ["-Dbuildtype=debugoptimized", "-Ddebug=false", "-Doptimization=1", "-Dcpp_args=-g1",
             "-Dtests=enabled", "-Dns3=disabled", "-Dmicro=disabled", "-Db_lundef=false"]
# As tools/bootstrap installs it: 16 on Debian 12, 18 on Ubuntu 24.04, 19 on Debian 13.
LLVM = next((version for version in ("16", "18", "19") if shutil.which(f"clang++-{version}")), "16")
CLANG = {"CC": f"clang-{LLVM}", "CXX": f"clang++-{LLVM}", "CXX_LD": "gold"}
# The other Debian than this machine's, and what only a root has.
OTHER = "bookworm" if "trixie" in pathlib.Path("/etc/os-release").read_text() else "trixie"
SYSTEMS = (OTHER, "trixie:clang", "trixie:arm64", f"{OTHER}:package")

Play = Callable[[Commands], None]


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    what: str
    seconds: float
    play: Play
    why_off: Callable[[], str] = lambda: ""  # the reason why it cannot run here
    is_aside: bool = False
    needs: tuple[str, ...] = ()  # parts that are played before it


def _build(do: Commands) -> None:
    suites = [*ROOTLESS, "lab", "trial"]
    if do.setup(BUILD, PLAIN):
        names = [test["name"] for test in run.tests_of(BUILD, suites)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            do.tally.failures.append(run.Failure(
                "several tests have one name", "tools/check build",
                f"{', '.join(twice)}: one of them could vanish, and no comparison would see it"))
        targets = run.targets_of(BUILD, suites)
        if _has_ns3():
            targets.append("tools/labs/ns3/onehop-ns3")
        do.ninja(BUILD, targets)


def _has_ns3() -> bool:
    return any(test["name"] == "tools/measure/headline" for test in run.tests_of(BUILD, ["ns3"]))


def _suite(*suites: str, processes: str = "1") -> Play:
    def play(do: Commands) -> None:
        if do.setup(BUILD, PLAIN):
            options = ["--num-processes", processes]
            failed = do.suites(BUILD, list(suites), options)
            do.again(BUILD, list(suites), failed, len(do.tally.failures) - len(failed), [])
    return play


def _one(name: str, *words: str) -> Play:
    return lambda do: do.one(name, list(words), " ".join(words))


def _several(*plays: Play) -> Play:
    def play(do: Commands) -> None:
        for each in plays:
            each(do)
    return play


def _sanitized_build(folder: str, suites: list[str], options: list[str]) -> Play:
    def play(do: Commands) -> None:
        if do.setup(folder, [*SANITIZED, *options], CLANG):
            do.ninja(folder, run.targets_of(folder, suites))
    return play


def _sanitized(folder: str, suites: list[str], times: str) -> Play:
    """A report always counts. A test that failed without one may have failed for its time alone,
    which is up to ten times as long: it is played once more, alone."""
    def play(do: Commands) -> None:
        reports = pathlib.Path(folder, "reports").resolve()
        shutil.rmtree(reports, ignore_errors=True)
        reports.mkdir(parents=True)
        # clang-16 comes without a symbolizer of its own.
        flags = f"log_path={reports}/report:print_stacktrace=1" \
                f":external_symbolizer_path={shutil.which('addr2line')}"
        environment = {"ASAN_OPTIONS": flags, "UBSAN_OPTIONS": flags,
                       "TSAN_OPTIONS": flags + ":halt_on_error=1"}
        before = len(do.tally.failures)
        failed = do.suites(folder, suites, ["--timeout-multiplier", times, "--num-processes", MANY],
                           environment)
        do.again(folder, suites, failed, before, ["--timeout-multiplier", "10"], environment)
        words = ("ERROR: ", "runtime error: ", "WARNING: ThreadSanitizer")
        # Of a process that finds no symbolizer in its PATH there is a file that says no more.
        for report in sorted(reports.iterdir()):
            text = report.read_text(errors="replace")
            if any(word in text for word in words):
                do.tally.failures.append(run.Failure(
                    f"{folder}: a report of the sanitizers",
                    f"tools/check {folder.removeprefix('build-')}", text))
    return play


def _no_root() -> str:
    return "" if os.geteuid() == 0 else "it makes network namespaces: run tools/check as root"


def _no_ns3() -> str:
    # Asked before the build exists: Debian 12 has /usr/include/ns3, other releases ns3.VERSION.
    return "" if any(pathlib.Path("/usr/include").glob("ns3*")) or _has_ns3() else \
        "onehop-ns3 is not built: libns3-dev is not installed"


def _no_clang() -> str:
    return "" if shutil.which(f"clang++-{LLVM}") else \
        "clang-16 and libclang-rt-16-dev (or 18, 19) are not installed"


def _no_package() -> str:
    return _no_root() or ("" if shutil.which("mmdebstrap") and shutil.which("lintian") else
                          "mmdebstrap and lintian are not installed: tools/bootstrap installs them")


def _no_clang_tidy() -> str:
    return "" if shutil.which(f"clang-tidy-{LLVM}") else f"clang-tidy-{LLVM} is not installed"


def part_of(system: systems.System) -> Part:
    # Tests are compared with this machine's.
    return Part(system.name, system.words(), system.seconds, lambda do: systems.play(system, do),
                lambda: systems.why_off(system),
                needs=() if system.is_package else ("build", "rootless"))


PARTS = [
    Part("build", "the program, its laboratories and their tests", 400, _build),
    Part("rootless", "suites unit, contract, scenario and tidy", 480,
         _suite(*ROOTLESS, processes=MANY)),
    Part("headline", "goodput, delay and fairness over ns-3, against tests/ns3/headline*.json", 12,
         _one("tools/measure/headline", "tools/measure/headline"), _no_ns3, is_aside=True,
         needs=("build",)),
    Part("lab", "the program over AF_XDP, shapers and netlink in network namespaces", 1350,
         _suite("lab"), _no_root),
    Part("trial", "interrupts, strangers, links that come and go", 250, _suite("trial"), _no_root),
]
MORE = [
    Part("vm", "mac80211, Wi-Fi Direct, AF_XDP zero-copy in virtual machines (190 MB, once)", 390,
         _suite("vm", processes="3"), needs=("build",)),
    Part("cpu", "instructions of a byte in a virtual machine, against tests/vm/cpu.json", 30,
         _one("tools/measure/cpu", "tools/measure/cpu"), needs=("build",), is_aside=True),
    Part("asan-build", "the build with ASan and UBSan", 60,
         _sanitized_build(ASAN, ASAN_SUITES, ["-Dfuzz=true", "-Db_sanitize=address,undefined"]),
         _no_clang, is_aside=True),
    Part("asan", "the root-less suites and the fuzz targets with ASan and UBSan", 520,
         _sanitized(ASAN, ASAN_SUITES, "5"), _no_clang, needs=("asan-build",)),
    Part("tsan-build", "the build with TSan", 60,
         _sanitized_build(TSAN, ["threads"], ["-Db_sanitize=thread"]), _no_clang, is_aside=True),
    Part("tsan", "loops, sessions, files and whole transfers with TSan", 60,
         _sanitized(TSAN, ["threads"], "10"), _no_clang, needs=("tsan-build",)),
    Part("lint", "clang-tidy over program and library", 60,
         _one("clang-tidy", "tests/tidy/clang_tidy_test.py", BUILD), _no_clang_tidy, is_aside=True,
         needs=("build",)),
    Part("papers", "every table of the papers for a second, one row of them whole", 60,
         _several(_one("tools/measure/papers --short", "tools/measure/papers", "--short"),
                  _one("tools/measure/papers --check-row", "tools/measure/papers", "--check-row")),
         _no_ns3, is_aside=True, needs=("build",)),
    Part("ns3", "suite ns3: the simulator and its tools", 60, _suite("ns3", processes=MANY),
         _no_ns3),
    Part("package", "Debian packages: made, installed on a bare root, used, purged", 700,
         _suite("package"), _no_package),
    *(part_of(systems.system_of(name)) for name in SYSTEMS),
]
# What --turn adds, by the number of the commit. Each takes about the same.
TURNS = [("vm", "cpu"), ("asan-build", "asan"), ("tsan-build", "tsan", "lint"), ("papers", "ns3")]
# Parts of --all that build the whole tree once more: too long to be added to a change's own check.
WHOLE_BUILDS = ("package", *SYSTEMS)
GROUPS = {"distros": SYSTEMS}  # one name for several parts
