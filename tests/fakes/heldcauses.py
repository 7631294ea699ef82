"""
What the unit tests explain, held beside what they ask for: see tests/golden/causes.

`figures.txt` has a line for each explanation of each test: part, nanoseconds and cause
of its segments, and a digest of every word of it. `words.txt` has a few of them whole.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fakes import carried, events, wakeuppaths
from rtscope.explain.model import Confidence, Explanation, Segment
from rtscope.explain.words import caveats_of, evidence, sentence

KEPT = Path(__file__).parents[1] / "golden" / "causes"
FIGURES, WORDS = KEPT / "figures.txt", KEPT / "words.txt"
MODULES = ("test_events_", "test_instructions_")
EXPLAINING = ("explain_events", "explain_path", "explain_event", "explain_gap")
DIGITS = 10
"""Of the digest in hexadecimal."""
_SURE = {Confidence.SEEN: "", Confidence.INFERRED: "~", Confidence.GUESSED: "?"}


@dataclass(slots=True)
class Held:
    """What one test explains, in the order in which it does."""

    key: str
    """The module and the name of the test, with its parameters."""
    made: list[Explanation] = field(default_factory=list)

    @classmethod
    def watching(cls, item: pytest.Function, patch: pytest.MonkeyPatch) -> "Held":
        """Keep all that a test is about to explain."""
        held = cls(key_of(item))
        for place in (carried, events, wakeuppaths, item.module):
            for name in EXPLAINING:
                if hasattr(place, name):
                    patch.setattr(place, name, held.kept(getattr(place, name)))
        return held

    def kept(self, function: Callable[..., Explanation]) -> Callable[..., Explanation]:
        """Return a function that does the same, and keeps its answer."""

        def explain(*given: object, **named: object) -> Explanation:
            self.made.append(function(*given, **named))
            return self.made[-1]

        return explain

    def compare(self, *, rewrite: bool) -> None:
        """
        Compare with what is held, or hold this.

        Raises AssertionError, with every word of it, where it is not the same.
        """
        whole = "\n".join(line for found in self.made for line in lines(found))
        for file, now in (
            (FIGURES, " | ".join(map(figures, self.made))),
            (WORDS, whole),
        ):
            before = read(file)
            if file == WORDS and self.key not in before:
                continue
            if rewrite and before.get(self.key, "") != now:
                write(file, {**before, self.key: now})
            elif before.get(self.key, "") != now:
                raise AssertionError(
                    f"{file.name} holds {before.get(self.key, 'nothing')!r}, this is "
                    f"{now!r}; if that is meant: make golden\n{whole}"
                )


def is_held(item: pytest.Function) -> bool:
    """Tell whether what a test explains is held: not what is drawn by chance."""
    return Path(item.path).name.startswith(MODULES) and not hasattr(
        item.function, "hypothesis"
    )


def key_of(item: pytest.Function) -> str:
    """Return what a test is called in the files."""
    return f"{Path(item.path).stem}: {item.name}"


def read(file: Path) -> dict[str, str]:
    """Return the text of each test; it may have several lines."""
    held: dict[str, str] = {}
    for line in file.read_text("utf-8").splitlines() if file.exists() else ():
        if line.startswith("test_"):
            key, _, text = line.partition(" = ")
            held[key] = text
        else:
            held[key] += f"\n{line}"
    return held


def write(file: Path, held: dict[str, str]) -> None:
    """Write the text of each test that has any."""
    told = (f"{key} = {held[key]}\n" for key in sorted(held) if held[key])
    file.write_text("".join(told), encoding="utf-8")


def figures(found: Explanation) -> str:
    """Write the numbers and ids of an explanation, and the digest of its words."""
    segments = (
        f"{one.part}{one.duration_ns}{_SURE[one.confidence]} {one.cause.name.lower()}"
        for one in found.segments
    )
    whole = "\n".join(lines(found)).encode()
    digest = hashlib.sha256(whole).hexdigest()[:DIGITS]
    return f"{found.latency_ns}: {', '.join(segments)}; {digest}"


def lines(found: Explanation) -> Iterator[str]:
    """Yield every word of an explanation."""
    yield sentence(found)
    yield f"  CPU {found.cpu}, number {found.sequence}, {found.latency_ns} ns"
    for segment in found.segments:
        yield from _segment_lines(segment)
    yield from (f"  note: {note}" for note in found.notes)
    yield from (f"  caveat: {caveat}" for caveat in caveats_of(found))


def _segment_lines(segment: Segment) -> Iterator[str]:
    own = "" if segment.executed_ns is None else f", own {segment.executed_ns}"
    task = f", task {segment.task}" if segment.task else ""
    yield (
        f"  {segment.part} {segment.begin_ns} to {segment.end_ns}{own}: "
        f"{segment.cause.value}, {segment.name!r}{task} ({segment.confidence.value})"
    )
    yield from (f"      {told}" for told in evidence(segment))
    if segment.functions:
        yield f"      inside: {segment.functions}"
    if segment.callers:
        yield f"      callers: {segment.callers}"
