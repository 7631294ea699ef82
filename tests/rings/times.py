"""
The dearest tests and fixtures: `python -m rings.times ARGUMENTS OF PYTEST`.

CPU seconds are of the process of the tests and of the programs that it has waited for;
a fixture is apart from the fixtures that it asks for. Boots are QEMUs, builds are runs
of a compiler, both seen every 50 ms, so that shorter ones may be missed; sleeps are
those of the tests' own process.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pytest

FOLDER = "RTSCOPE_TEST_TIMES"
"""Names the folder into which each process of pytest writes what it saw."""
DEAREST = 40
LOOK_EVERY_S = 0.05
SYSTEM = "tests/system"
_COMPILERS = frozenset({"cc1", "cc1plus", "rustc", "compile"})
_QEMU = "qemu-system", "ld-linux"
"""A board's own QEMU is started by the loader that came with it."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one test or fixture took."""

    name: str
    cpu_s: float
    wall_s: float
    boots: int
    builds: int
    slept_s: float

    def added(self, other: "Cost") -> "Cost":
        """Return both together, under the name of this one."""
        sums = {
            one.name: getattr(self, one.name) + getattr(other, one.name)
            for one in fields(self)
            if one.name != "name"
        }
        return Cost(self.name, **sums)


class Watcher:
    """Counts the boots, builds and sleeps of this process until now."""

    def __init__(self) -> None:
        self.slept_s = 0.0
        self._seen: dict[str, set[tuple[int, str]]] = {"boots": set(), "builds": set()}
        self._sleep = time.sleep
        time.sleep = self._counted  # type: ignore[assignment]
        threading.Thread(target=self._look, daemon=True).start()

    def _counted(self, seconds: float) -> None:
        begun = time.monotonic()
        self._sleep(seconds)
        self.slept_s += time.monotonic() - begun

    def _look(self) -> None:
        while True:
            for kind, seen in self._seen.items():
                seen.update(_descendants(os.getpid()).get(kind, ()))
            self._sleep(LOOK_EVERY_S)

    def now(self, name: str) -> Cost:
        """Return what this process and its programs took until now."""
        used = os.times()
        return Cost(
            name,
            sum(used[:4]),
            time.monotonic(),
            len(self._seen["boots"]),
            len(self._seen["builds"]),
            self.slept_s,
        )


def _descendants(root: int) -> dict[str, set[tuple[int, str]]]:
    """Return the QEMUs and compilers below a process, by pid and start."""
    parents: dict[int, int] = {}
    found: dict[str, set[tuple[int, str]]] = {"boots": set(), "builds": set()}
    named: list[tuple[str, int, str]] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with suppress(OSError):
            head, _, tail = (entry / "stat").read_text().rpartition(")")
            words, pid = tail.split(), int(entry.name)
            parents[pid] = int(words[1])
            name = head.partition("(")[2]
            if name.startswith(_QEMU):
                named.append(("boots", pid, words[19]))
            elif name in _COMPILERS:
                named.append(("builds", pid, words[19]))
    for kind, pid, start in named:
        above = parents.get(pid, 0)
        while above not in (0, root):
            above = parents.get(above, 0)
        if above == root:
            found[kind].add((pid, start))
    return found


class Plugin:
    """Writes what each test and fixture costs into a file of its own."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{os.getpid()}.jsonl"
        self._watcher = Watcher()

    @contextmanager
    def _noting(self, name: str) -> Iterator[None]:
        begun = self._watcher.now(name)
        yield
        ended = self._watcher.now(name)
        cost = {
            key: value - getattr(begun, key)
            for key, value in asdict(ended).items()
            if key != "name"
        }
        with self._path.open("a") as file:
            file.write(json.dumps({"name": name, **cost}) + "\n")

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Any:
        """Note the setup of a fixture, once for each scope that has it."""
        where = str(request.node.nodeid).partition("::")[0]
        with self._noting(f"{where} fixture {fixturedef.argname}"):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        """Note a test itself."""
        with self._noting(item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Any:
        """Note what a test's end takes, its waits for what it may leave too."""
        with self._noting(f"{item.nodeid} teardown"):
            return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """Note costs where a folder for them is named."""
    if FOLDER in os.environ:
        config.pluginmanager.register(Plugin(Path(os.environ[FOLDER])))


def costs_in(folder: Path) -> list[Cost]:
    """Return what was noted, by name, the dearest in CPU time first."""
    whole: dict[str, Cost] = {}
    for path in folder.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            cost = Cost(**json.loads(line))
            known = whole.get(cost.name)
            whole[cost.name] = known.added(cost) if known else cost
    return sorted(whole.values(), key=lambda one: -one.cpu_s)


def table(costs: Sequence[Cost], dearest: int = DEAREST) -> Iterator[str]:
    """Write the dearest, and the sum of all."""
    yield f"{'CPU s':>8} {'wall s':>8} {'boots':>5} {'builds':>6} {'slept s':>8}  what"
    whole = Cost("all", 0, 0, 0, 0, 0)
    for cost in costs:
        whole = whole.added(cost)
    for cost in [*costs[:dearest], whole]:
        yield (
            f"{cost.cpu_s:8.1f} {cost.wall_s:8.1f} {cost.boots:5} {cost.builds:6} "
            f"{cost.slept_s:8.1f}  {cost.name}"
        )


def main() -> int:
    """Run pytest, print the table, and end with pytest's exit status."""
    with tempfile.TemporaryDirectory(prefix="rtscope-times-") as name:
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "rings.times"]
        env = {**os.environ, FOLDER: name}
        statuses = [
            subprocess.run([*argv, *words], env=env, check=False).returncode
            for words in _apart(sys.argv[1:])
        ]
        print(*table(costs_in(Path(name))), sep="\n")
    return max(statuses)


def _apart(arguments: Sequence[str]) -> list[list[str]]:
    """Return a pytest's words each: files of one name are in two folders."""
    named = [one for one in arguments if Path(one.partition("::")[0]).exists()]
    options = [one for one in arguments if one not in named]
    system = [one for one in named if one.startswith(SYSTEM)]
    others = [one for one in named if one not in system]
    return [[*options, *some] for some in (others, system) if some] or [options]


if __name__ == "__main__":
    raise SystemExit(main())
