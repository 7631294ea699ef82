"""
What the fast tests execute: which of them runs each line, and how long each takes.

Caches of functions are emptied before each test, or only the first test to call one
would be seen to execute it.
"""

import functools
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import coverage
import pytest


@dataclass(slots=True)
class Baseline:
    """The fast tests of unchanged code; a test is known by its node id."""

    cpu_s: dict[str, float] = field(default_factory=dict)
    """CPU time of each test that passed, with its fixtures and its processes."""
    broken: list[str] = field(default_factory=list)
    """Tests that fail without any mutant: they notice none."""
    tests: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    """By file below src/rtscope and line; under 0 those of any line of the file."""

    def covering(self, file: str, lines: set[int]) -> set[str]:
        """Return the tests that execute one of these lines."""
        known = self.tests.get(file, {})
        return {test for line in lines for test in known.get(line, ())}

    def of_files(self, files: Sequence[str]) -> set[str]:
        """Return the tests that execute any line of these files."""
        return {test for file in files for test in self.tests.get(file, {}).get(0, ())}

    def fastest(self, tests: set[str]) -> list[str]:
        """Return tests those of least CPU time first."""
        return sorted(tests & self.cpu_s.keys(), key=lambda t: (self.cpu_s[t], t))


@dataclass(slots=True, eq=False)
class _Watcher:
    """A plugin of pytest that tells coverage which test runs."""

    measuring: coverage.Coverage
    began: float = 0.0
    modules: int = 0
    caches: list["functools._lru_cache_wrapper[object]"] = field(default_factory=list)
    cpu_s: dict[str, float] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if len(sys.modules) != self.modules:
            self.modules = len(sys.modules)
            self.caches = list(_caches())
        for cache in self.caches:
            cache.cache_clear()
        self.measuring.switch_context(item.nodeid)
        began = _cpu_s()
        answer = yield
        self.measuring.switch_context("")
        self.cpu_s[item.nodeid] = _cpu_s() - began
        return answer

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.broken.append(report.nodeid)


def _cpu_s() -> float:
    """Return the CPU time of this process and of those it waited for."""
    return sum(os.times()[:4])


def _caches() -> Iterator["functools._lru_cache_wrapper[object]"]:
    for name, module in list(sys.modules.items()):
        if name.startswith("rtscope."):
            for value in list(vars(module).values()):
                if isinstance(value, functools._lru_cache_wrapper):
                    yield value


def measure(
    tree: Path, *, tests: Sequence[str], lines: dict[str, set[int]], to: Path
) -> int:
    """Run tests in this process, write which execute these lines; return the status."""
    source = tree / "src" / "rtscope"
    measuring = coverage.Coverage(
        data_file=None,
        include=[str(source / file) for file in lines],
        config_file=False,
    )
    watcher = _Watcher(measuring)
    measuring.start()
    status = pytest.main([*OPTIONS, "-m", FAST, *tests], plugins=[watcher])
    measuring.stop()
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return int(status)
    data = measuring.get_data()
    found = Baseline(watcher.cpu_s, watcher.broken)
    for path in data.measured_files():
        file = Path(path).relative_to(source).as_posix()
        known = found.tests[file] = {0: set()}
        for line, contexts in data.contexts_by_lineno(path).items():
            known[0].update(contexts)
            if line in lines[file]:
                known[line] = set(contexts) - {""}
        known[0].discard("")
    write(found, to)
    return int(status)


def write(known: Baseline, to: Path) -> None:
    """Write one; each test by its number."""
    names = sorted({*known.cpu_s, *known.broken})
    numbers = {name: i for i, name in enumerate(names)}
    tests = {
        file: {
            line: [numbers[t] for t in tests if t in numbers]
            for line, tests in lines.items()
        }
        for file, lines in known.tests.items()
    }
    to.write_text(
        json.dumps(
            {
                "names": names,
                "cpu_s": known.cpu_s,
                "broken": known.broken,
                "tests": tests,
            }
        )
    )


FAST = "not system"
"""The slow ones too: what `make check` leaves to `make test` still kills mutants."""

OPTIONS = (
    *("-q", "--no-header", "--tb=short", "-p", "no:randomly", "-p", "no:cacheprovider"),
    *("--hypothesis-seed=0", "-W", "ignore::pytest.PytestAssertRewriteWarning"),
)


def merged(answers: Sequence[Path]) -> Baseline:
    """Put together what several processes measured."""
    found = Baseline()
    for path in answers:
        answer = json.loads(path.read_text())
        names = answer["names"]
        found.broken += answer["broken"]
        found.cpu_s |= answer["cpu_s"]
        for file, lines in answer["tests"].items():
            known = found.tests.setdefault(file, {})
            for line, tests in lines.items():
                known.setdefault(int(line), set()).update(names[i] for i in tests)
    for test in found.broken:
        found.cpu_s.pop(test, None)
    return found
