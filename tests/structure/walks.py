"""
How far somebody walks who reads what one command does: `walks.py --tree DIR`.

Runs the `rtscope` of a source tree (its own .venv, the entry point that it has
installed) on the records that lie packed beside this script, and writes down which
function calls which. What is counted:

* A function is one that is defined in a file under src/rtscope of the tree. Lambdas and
  comprehensions belong to the function that they stand in; bodies of modules and
  classes, and methods that dataclasses or libraries generate, are no functions.
* A call goes from the nearest such function on the stack to the one that begins,
  whatever libraries lie between. A generator is called by who takes its first value.
* The reader follows calls depth first: those of a function in the order in which each
  is first made, whenever that is. Each pair of a caller and a callee is read once: the
  reader goes to the callee's file, and on from there to what it calls, unless that was
  read already. Going back to the caller is not counted by itself.
* A *stay* is a longest run of consecutive calls into one file, *files* are the distinct
  files, *returns* the stays in a file that was left before: stays = files + returns.
* With *back* the reader also returns to the caller's file after each call before the
  next one is read, as somebody does who has only one window open.

A part of a command is counted by itself, from the function of that name on. All modules
are imported before; so nothing that importing them calls is counted.
"""

import argparse
import contextlib
import importlib
import importlib.metadata
import io
import itertools
import json
import os
import pkgutil
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from unittest import mock

RECORDS = Path(__file__).parent / "records.tar.gz"
"""The same results for every tree: two kernels under two loads on a virtual board, one
of them with recorded paths; a run of a machine with the events of its trace; a cache
that has the symbols of the board's kernel. Made from the fakes of the tests."""

# title: what is typed (names below RECORDS), and the function that a part begins with
WALKS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "report RECORD": (("report", "board"), ()),
    "report --html": (("report", "board", "--html", "page.html"), ()),
    "report: its model": (("report", "board"), ("build_model",)),
    "explain, a board's run": (("explain", "board"), ()),
    "explain, a machine's run": (("explain", "machine"), ()),
    "explain: explained runs, board": (("explain", "board"), ("explained_runs",)),
    "explain: explained runs, machine": (("explain", "machine"), ("explained_runs",)),
    "explain: a path": (("explain", "board"), ("explain_path",)),
    "explain: a window": (("explain", "machine"), ("explain_events",)),
}
"""A function may have several names here: the first one that was called counts."""

LIMITS = {
    "report RECORD": 132,  # 2 by each wake-up and the meters
    "explain, a board's run": 153,  # 4 by reports of the kernel, 2 each by CTF, pauses
    "explain, a machine's run": 151,  # 38 by lists, names' times, served faults
}
"""The most stays of a walk, held by test_structure.py; lower them as walks shrink."""

_ANONYMOUS = re.compile(r"(\.<locals>)?\.<(lambda|genexpr|listcomp|setcomp|dictcomp)>")

Function = tuple[str, str]
"""The file below src/rtscope, and the qualified name in it."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function that begins, and how many functions of the tree are above it."""

    depth: int
    caller: Function | None
    callee: Function


@dataclass(frozen=True, slots=True)
class Walk:
    """What a reader's way is made of."""

    calls: int
    files: int
    stays: int
    back: int

    @property
    def returns(self) -> int:
        """Stays in a file that was left before."""
        return self.stays - self.files


def walk_of(calls: Sequence[Call]) -> Walk:
    """Read the functions as they were called: see above."""
    below: dict[Function | None, dict[Function, None]] = {}
    for call in calls:
        below.setdefault(call.caller, {})[call.callee] = None
    way: list[str] = []
    there_and_back: list[str] = []
    count = 0
    pairs: list[tuple[Function | None, Function]] = [
        (None, callee) for callee in reversed(below.pop(None, {}))
    ]
    while pairs:
        caller, callee = pairs.pop()
        count += 1
        way.append(callee[0])
        if caller is not None:
            there_and_back.append(caller[0])
        there_and_back.append(callee[0])
        own = reversed(below.pop(callee, {}))
        pairs += [(callee, one) for one in own]
    stays = [file for file, _ in itertools.groupby(way)]
    back = [file for file, _ in itertools.groupby(there_and_back)]
    return Walk(count, len(set(way)), len(stays), len(back))


def part_of(calls: Sequence[Call], names: Sequence[str]) -> list[Call]:
    """Return the calls of the first of the functions that was called, and all below."""
    for name in names:
        found = list(_below(calls, name))
        if found:
            return found
    raise SystemExit(f"walks: no function {' or '.join(names)} was called; see WALKS")


def _below(calls: Sequence[Call], name: str) -> Iterator[Call]:
    top: int | None = None
    for call in calls:
        if top is not None and call.depth <= top:
            top = None
        if top is None and call.callee[1] == name:
            top = call.depth
            yield Call(call.depth, None, call.callee)
        elif top is not None:
            yield call


@dataclass(slots=True)
class Tracer:
    """Writes down the calls of functions that are defined below a folder."""

    source: str
    calls: list[Call] = field(default_factory=list)
    known: dict[CodeType, Function | None] = field(default_factory=dict)

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Take an event of `sys.setprofile`."""
        if event != "call":
            return
        callee = self._function(frame.f_code)
        if callee is None or _ANONYMOUS.search(frame.f_code.co_qualname):
            return
        stack = self._stack(frame.f_back)
        caller = stack[0] if stack else None
        self.calls.append(Call(len(stack), caller, callee))

    def _stack(self, frame: FrameType | None) -> list[Function]:
        found = []
        while frame is not None:
            function = self._function(frame.f_code)
            if function is not None:
                found.append(function)
            frame = frame.f_back
        return found

    def _function(self, code: CodeType) -> Function | None:
        if code not in self.known:
            name = _ANONYMOUS.split(code.co_qualname)[0]
            inside = code.co_filename.startswith(self.source)
            self.known[code] = (
                (code.co_filename[len(self.source) :], name)
                if inside and "<module>" not in code.co_qualname
                else None
            )
        return self.known[code]


def trace(words: Sequence[str], source: Path) -> list[Call]:
    """Run the installed `rtscope` on these words in this process."""
    (entry,) = importlib.metadata.entry_points(group="console_scripts", name="rtscope")
    main = entry.load()
    package = importlib.import_module("rtscope")
    for module in pkgutil.walk_packages(package.__path__, "rtscope."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    tracer = Tracer(f"{source}{os.sep}")
    sys.argv = ["rtscope", *words]
    out, status = io.StringIO(), None
    sys.setprofile(tracer)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
            # A slow machine shows its progress, a fast one does not.
            mock.patch("time.monotonic", return_value=0.0),
        ):
            main()
    except SystemExit as end:
        status = end.code
    finally:
        sys.setprofile(None)
    if status not in (0, None):
        told = f"rtscope {' '.join(words)} ended with {status}"
        raise SystemExit(f"{out.getvalue()}walks: {told}")
    return tracer.calls


def measure(tree: Path) -> dict[str, Walk]:
    """Return the walks of a tree, each command run once, by its own interpreter."""
    traced: dict[tuple[str, ...], list[Call]] = {}
    found = {}
    for title, (words, names) in WALKS.items():
        if words not in traced:
            python = tree / ".venv" / "bin" / "python"
            traced[words] = calls_of(tree, words, python=python)
        calls = traced[words]
        found[title] = walk_of(part_of(calls, names) if names else calls)
    return found


def unpack_records(into: Path) -> None:
    """Unpack what the commands read."""
    with tarfile.open(RECORDS) as records:
        # Python 3.11.2, of Debian 12, has no filters yet.
        records.extraction_filter = getattr(
            tarfile, "data_filter", lambda member, path: member
        )
        records.extractall(into)


def calls_of(tree: Path, words: Sequence[str], *, python: Path) -> list[Call]:
    """Trace a command in a process of its own; `python` has the tree installed."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / "records"
        unpack_records(here)
        answer = Path(folder) / "calls.json"
        subprocess.run(
            [python, __file__, "--tree", tree, "--into", answer, *words],
            cwd=here,
            env={
                **os.environ,
                "XDG_CACHE_HOME": str(here / "cache"),
                "XDG_STATE_HOME": str(here / "state"),
                "COLUMNS": "100",
            },
            stdin=subprocess.DEVNULL,
            check=True,
            timeout=600,
        )
        rows = json.loads(answer.read_bytes())
    return [
        Call(depth, tuple(caller) if caller else None, tuple(callee))
        for depth, caller, callee in rows
    ]


def main() -> int:
    """Print a table of one tree or of several, or trace one command of one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--tree", type=Path, action="append", required=True)
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    asked, words = parser.parse_known_args()
    trees = [tree.resolve() for tree in asked.tree]
    if asked.into is not None:
        calls = trace(words, trees[0] / "src" / "rtscope")
        rows = [(call.depth, call.caller, call.callee) for call in calls]
        asked.into.write_text(json.dumps(rows))
        return 0
    print(f"{'':34}" + "".join(f"{tree.name[:34]:>36}" for tree in trees))
    print(f"{'':34}" + "  calls files stays returns   back" * len(trees))
    measured = [measure(tree) for tree in trees]
    for title in WALKS:
        print(f"{title:34}" + "".join(_cells(found[title]) for found in measured))
    return 0


def _cells(walk: Walk) -> str:
    figures = (walk.calls, walk.files, walk.stays, walk.returns, walk.back)
    return "  {:5} {:5} {:5} {:7} {:6}".format(*figures)


if __name__ == "__main__":
    raise SystemExit(main())
