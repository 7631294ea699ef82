"""
`rtscope test` on programs that others wrote: `make tested`, or `ARGS="clocks starts"`.

Each answer is kept in build/tested, so a run that was ended goes on with what is not
there; --again forgets, and RTSCOPE_TESTED_KEPT=1 asks nothing more. Only virtual times
are judged: other work makes it slower, and changes nothing. Programs come from packages
of Debian, which rtscope fetches, or are built from sources: sources.py.
"""

import argparse
import os
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from itertools import product
from pathlib import Path
from statistics import median_low
from typing import Any

from programs.tested.asking import (
    HERE,
    ONLY_KEPT,
    RESULTS,
    Asked,
    NotAskedError,
    ask,
)
from programs.tested.boards import clocks, offences, watched
from programs.tested.fifty import beside_load, fifty
from programs.tested.readings import reading_of
from programs.tested.sources import make, make_modules, rows

AGAIN, BESIDE_LOAD = 10, 3
"""Boots of each program, unchanged, and those of them that a load makes slower."""
STARTS, STARTS_OF_A_BOOT = 1_000, 250
NO_PROGRAMS = ("plan", "fifty")
TOLERANCE = "1%"
_MANY = 10_000


def main() -> int:
    """Print a line for each fact; 1 if one of them is not as it has to be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("steps", nargs="*", help=f"default: {' '.join(STEPS)}")
    parser.add_argument("--only", nargs="*", help="of the programs: default all")
    parser.add_argument("--again", action="store_true", help="forget earlier answers")
    asked = parser.parse_args()
    if unknown := set(asked.steps) - STEPS.keys():
        parser.error(f"no step {', '.join(sorted(unknown))}")
    names = asked.only or sorted(
        one.stem for one in HERE.glob("*.toml") if one.stem not in NO_PROGRAMS
    )
    bad = 0
    for step in asked.steps or STEPS:
        print(f"\n{step}", flush=True)
        try:
            for says, right in STEPS[step](names, asked.again):
                bad += not right
                print(f"{'' if right else 'WRONG '}{says}", flush=True)
        except NotAskedError as error:
            print(f"not asked yet: {error}")
    print(f"\n{bad} facts are not as they have to be")
    return int(bad > 0)


Facts = Iterator[tuple[str, bool]]


def _programs(names: Sequence[str], again: bool) -> Facts:
    for name in names:
        try:
            _prepare(name)
            one = ask(f"program/{name}", [f"{name}.toml"], again=again)
        except NotAskedError:
            continue
        if not one.ran:
            yield f"| {name} | did not run: {one.error[-300:]} |", False
            continue
        reading = reading_of(name, one)
        yield (
            f"| {name} | {len(one.threads)} | {one.answer['answer']} | {reading.says} "
            f"| {one.cpu_s} |",
            reading.agrees,
        )


def _prepare(name: str, *, planted: bool = False) -> None:
    """Build what the test file of a program names, if it is not one of packages."""
    if name not in rows() or ONLY_KEPT:
        return
    test = tomllib.loads((HERE / f"{name}.toml").read_text())
    make(name, planted=planted)
    make_modules(name, test["board"]["kernel"])


def _repeats(names: Sequence[str], again: bool) -> Facts:
    """Boot each program ten times more, in rounds; any alarm is wrong."""
    ways = ["--identical-to"] * (AGAIN - 1) + ["--no-worse-than"]
    more: dict[str, list[Asked]] = {name: [] for name in names}
    for number, way in enumerate(ways, 1):
        for name, boots in more.items():
            with suppress(NotAskedError):
                first = ask(f"program/{name}", [f"{name}.toml"])
                key = f"again/{name}/{number}"
                _prepare(name)
                words = [f"{name}.toml", way, str(first.baseline_path)]
                slower = number % (AGAIN // BESIDE_LOAD) == 0
                with beside_load(key, again=again) if slower else nullcontext():
                    boots.append(ask(key, words, again=again))
    for name, boots in more.items():
        alarms = [one for one in boots if not one.ran or one.answer["differences"]]
        digests = {one.digest for one in boots}
        yield (
            f"{name}: {len(boots)} boots more, {len(alarms)} alarms, {len(digests)} "
            "digest of cycles and output",
            not alarms and len(digests) <= 1,
        )


def _planted(names: Sequence[str], again: bool) -> Facts:
    """Make programs worse, and compare them as a server would, and exactly."""
    plans = tomllib.loads((HERE / "plan.toml").read_text())
    for way, name in product(("--no-worse-than", "--identical-to"), plans):
        if name not in names:
            continue
        _prepare(name)
        _prepare(name, planted=True)
        first = ask(f"program/{name}", [f"{name}.toml"])
        with tempfile.TemporaryDirectory() as folder:
            words = [f"{name}.toml", *_changed(name, plans[name], Path(folder))]
            words += [way, str(first.baseline_path)]
            if way == "--no-worse-than":
                words += ["--tolerance", TOLERANCE]
            key = f"planted/{name}{way.removeprefix('-')}"
            yield _found(name, plans[name], way, ask(key, words, again=again))


def _found(
    name: str, plan: Mapping[str, Any], way: str, one: Asked
) -> tuple[str, bool]:
    if not one.ran:
        return f"{name}: {plan['what']}: did not run: {one.error[-300:]}", False
    of_thread = [
        row["says"]
        for row in one.answer["differences"]
        if row["thread"].startswith(plan["thread"])
    ]
    wanted = plan["figure"] if way == "--no-worse-than" else "the first that differs"
    named = [says for says in of_thread if wanted in says]
    cycles = _heavy(one, plan)
    if "every" in plan:
        step = plan["every"]
        wanted = set(range(step, max(cycles, default=0) + 1, step))
        named = named if cycles == wanted else []
    changed = ", ".join(one.answer["changed"])
    if way == "--no-worse-than":
        named = [says for says in named if plan.get("line", "") in says]
    return (
        f"{name}, {plan['what']}, {way}: status {one.status}, {plan['thread']}: "
        f"{(named or of_thread or ['nothing'])[0]}; changed: {changed}"
        + (f"; cycles {min(cycles)} to {max(cycles)}" if cycles else ""),
        bool(named) and one.status == 1 and bool(changed),
    )


def _heavy(one: Asked, plan: Mapping[str, Any]) -> set[int]:
    """Return which cycles, from 1 on, have many instructions more than usual."""
    found: set[int] = set()
    for thread in one.kept[0]["threads"]:
        if thread["name"].startswith(plan["thread"]) and "every" in plan:
            used = thread["instructions"]
            usual = median_low(used)
            found |= {n for n, ns in enumerate(used, 1) if ns > usual + _MANY}
    return found


def _changed(name: str, plan: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Yield the options that plant a change."""
    test = tomllib.loads((HERE / f"{name}.toml").read_text())
    files = dict(test["program"].get("files", {})) | plan.get("files", {})
    files = {place: str(HERE / path) for place, path in files.items()}
    if "preload" in plan:
        library = folder / "planted.so"
        source = HERE / "files" / plan["preload"]
        options = ("-O1", "-shared", "-fPIC", "-o", library)
        subprocess.run(["gcc", *options, source, "-ldl"], check=True)
        files["planted.so"] = str(library)
        yield from ("--environment", "LD_PRELOAD=/planted.so")
    if files:
        pairs = ",".join(f"{place}={path}" for place, path in files.items())
        yield from ("--files", pairs)


def _starts(_names: Sequence[str], again: bool) -> Facts:
    """A thousand starts, in boots of some hundred: the second round as the first."""
    words = ["cyclictest.toml", "--starts", str(STARTS_OF_A_BOOT)]
    words += ["--duration", "100ms"]
    seeds = ",".join(str(n) for n in range(1, STARTS // STARTS_OF_A_BOOT + 1))
    rounds = [
        ask(f"starts/{number}", [*words, "--seed", seeds], again=again)
        for number in (1, 2)
    ]
    for one in rounds:
        starts = sum(len(run["starts"]) for run in one.answer["runs"])
        cycles = {
            len(thread["latency_ns"]) for s in one.kept for thread in s["threads"]
        }
        yield (
            f"{starts} starts in {len(one.answer['runs'])} boots: digest {one.digest}, "
            f"{sorted(cycles)} cycles each, {one.cpu_s / starts:.2f} s of CPU each",
            starts == STARTS,
        )
    digests = {one.digest for one in rounds}
    yield f"{len(digests)} digest in {len(rounds)} rounds", len(digests) == 1


Step = Callable[[Sequence[str], bool], Facts]

STEPS: Mapping[str, Step] = {
    "programs": _programs,
    "planted": _planted,
    "offences": offences,
    "clocks": clocks,
    "watched": watched,
    "starts": _starts,
    "repeats": _repeats,
    "fifty": fifty,
}


if __name__ == "__main__":
    RESULTS.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    raise SystemExit(main())
