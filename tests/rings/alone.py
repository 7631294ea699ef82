"""
The tests that pytest is asked for; few that fail are run once more, alone.

A test of this machine can be failed by other work on it. It is a defect of the test,
and is named as such; but it is no reason to refuse what is tested. `make flakes` runs
none a second time.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

FEW = 3
"""More do not fail by chance."""
FAILED = 1
"""Exit status of pytest: tests failed."""


def run(arguments: Sequence[str], folder: Path) -> int:
    """
    Run pytest twice at most, and return the exit status of the last time.

    `folder` is of this run alone.
    """
    pytest = (sys.executable, "-m", "pytest", "-q", "-o", f"cache_dir={folder}")
    status = subprocess.run((*pytest, *arguments), check=False).returncode
    failed = failed_in(folder)
    if status != FAILED or not 0 < len(failed) <= FEW:
        return status
    print(f"--- {counted(failed)} failed: run once more, alone", flush=True)
    again = subprocess.run((*pytest, "-n0", *failed), check=False).returncode
    if again == 0:
        print(*(f"FLAPS: {name} failed above, and passes alone" for name in failed))
        print("Mend each, and write it down in tests/rings/flaps.toml.", flush=True)
    return again


def failed_in(folder: Path) -> list[str]:
    """Return the tests that failed in the run whose cache is `folder`."""
    try:
        text = (folder / "v" / "cache" / "lastfailed").read_text()
    except FileNotFoundError:
        return []
    return sorted(json.loads(text))


def counted(tests: Sequence[str]) -> str:
    """Return how many they are, in words."""
    return "1 test" if len(tests) == 1 else f"{len(tests)} tests"


def main() -> int:
    """Run what the command line names; exit as pytest does."""
    with tempfile.TemporaryDirectory(prefix="rtscope-tests-alone-") as made:
        try:
            return run(sys.argv[1:], Path(made))
        except KeyboardInterrupt:
            return 130


if __name__ == "__main__":
    raise SystemExit(main())
