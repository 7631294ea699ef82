"""One `rtscope test`, and its answer: kept as a file, so that it is asked once."""

import hashlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
RESULTS = ROOT / "build" / "tested"
_PATIENCE_S = 1800.0


@dataclass(frozen=True, slots=True)
class Places:
    """Where the files of one answer are."""

    answer: Path
    baseline: Path
    facts: Path

    @classmethod
    def of(cls, name: str) -> Self:
        """Return those of a name such as again/cyclictest/3."""
        base = RESULTS / name
        return cls(*(base.with_name(f"{base.name}.{end}") for end in _ENDS))


_ENDS = ("answer.json", "baseline.json", "facts.json")


@dataclass(frozen=True)
class Asked:
    """The answer of one `rtscope test`."""

    name: str
    status: int
    wall_s: float
    cpu_s: float
    error: str

    @cached_property
    def answer(self) -> Mapping[str, Any]:
        """The JSON document; empty if there is none."""
        text = Places.of(self.name).answer.read_text()
        document: Mapping[str, Any] = json.loads(text) if text else {}
        return document

    @property
    def baseline_path(self) -> Path:
        """The file of --save."""
        return Places.of(self.name).baseline

    @cached_property
    def kept(self) -> Sequence[Mapping[str, Any]]:
        """The starts of the baseline: each cycle of each thread."""
        starts: Sequence[Mapping[str, Any]] = json.loads(
            self.baseline_path.read_text()
        )["starts"]
        return starts

    @cached_property
    def digest(self) -> str:
        """Of all cycles and of what the program printed."""
        if self.status == _NO_ANSWER:
            return ""
        printed = [
            (start["stdout"], start["stderr"], start["lasted_ns"])
            for run in self.answer["runs"]
            for start in run["starts"]
        ]
        digest = hashlib.sha256(self.baseline_path.read_bytes())
        digest.update(json.dumps(printed, sort_keys=True).encode())
        return digest.hexdigest()[:16]

    @property
    def ran(self) -> bool:
        """Whether the board ran it; a budget may be broken, or not seen."""
        return self.status != _NO_ANSWER

    @property
    def threads(self) -> Sequence[Mapping[str, Any]]:
        """The judged threads of all starts."""
        rows: Sequence[Mapping[str, Any]] = self.answer.get("threads", ())
        return rows

    def said(self, start: int = 0) -> str:
        """Return what a start printed to its standard output."""
        text: str = self.answer["runs"][0]["starts"][start]["stdout"]["text"]
        return text


_NO_ANSWER = -1

ONLY_KEPT = "RTSCOPE_TESTED_KEPT" in os.environ
"""Say what is there, and ask nothing."""


class NotAskedError(Exception):
    """This was not asked before."""


def ask(
    name: str,
    words: Sequence[str | Path],
    *,
    environment: Mapping[str, str] | None = None,
    python: Sequence[str] = (sys.executable,),
    again: bool = False,
) -> Asked:
    """
    Ask, or return what was answered before; NotAskedError if nothing may be.

    `python` are the words that start the interpreter, as another user for instance.
    """
    places = Places.of(name)
    if places.facts.exists() and not again:
        return Asked(**json.loads(places.facts.read_text()))
    if ONLY_KEPT:
        raise NotAskedError(name)
    places.facts.parent.mkdir(parents=True, exist_ok=True)
    own = {"PYTHONPATH": str(ROOT / "src")}
    env = {**os.environ, **own, **(environment or {})}
    asked = _asked(name, places, words, env, python)
    places.facts.write_text(json.dumps(asdict(asked)) + "\n")
    return asked


def _asked(
    name: str,
    places: Places,
    words: Sequence[str | Path],
    env: Mapping[str, str],
    python: Sequence[str],
) -> Asked:
    argv = [*python, "-m", "rtscope", "test", "--json", "--jobs", "1"]
    places.baseline.unlink(missing_ok=True)
    used_s, begun = _used_s(), time.monotonic()
    done = subprocess.run(
        [*argv, "--save", str(places.baseline), *map(str, words)],
        env=env,
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    cpu_s = _used_s() - used_s
    places.answer.write_text(done.stdout)
    status = done.returncode if done.stdout else _NO_ANSWER
    return Asked(
        name,
        status,
        round(time.monotonic() - begun, 1),
        round(cpu_s, 1),
        done.stderr.strip()[-600:],
    )


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def kept_facts(
    name: str, made: Callable[[], Mapping[str, Any]], *, again: bool = False
) -> Mapping[str, Any]:
    """Return facts that are no answer of a test, made once."""
    places = Places.of(name)
    if ONLY_KEPT and not places.facts.exists():
        raise NotAskedError(name)
    if not places.facts.exists() or again:
        places.facts.parent.mkdir(parents=True, exist_ok=True)
        places.facts.write_text(json.dumps(made(), indent=1) + "\n")
    facts: Mapping[str, Any] = json.loads(places.facts.read_text())
    return facts
