#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""clang_tidy_test.py BUILD_FOLDER: clang-tidy finds nothing in the product, and what is planted.

Goal:   a moved-from value that is read, a division that loses its fraction, a string that is built
        of a wrong length: what compiles without a warning and is wrong.
Method: tools/dev/tidy/clang_tidy.py over every C++ file of program and library; a planted fault.
Bounds: none but zero. Exit code 77 where clang-tidy-16 is not installed.
"""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLANTED = """#include <string>
#include <utility>
std::size_t size_of_both(std::string first) {
  const std::string second = std::move(first);
  return first.size() + second.size();
}
"""


def look(*words: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, str(ROOT / "tools/dev/tidy/clang_tidy.py"), *words],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def main() -> int:
    build = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        planted = pathlib.Path(folder, "planted.cpp")
        planted.write_text(PLANTED)
        code, output = look(build, str(planted))
    if code == 77:
        print(output)
        return 77
    if code != 1 or "bugprone-use-after-move" not in output:
        print(f"the planted fault was not found: exit code {code}: {output}")
        return 1
    code, output = look(build)
    print(output)
    return code


if __name__ == "__main__":
    sys.exit(main())
