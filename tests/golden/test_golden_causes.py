"""
Each wake-up that the unit tests explain, to the letter: parts, causes and evidence.

The unit tests ask for what they are about. Here they are run once more, and all that
was explained meanwhile is held against what it was.
"""

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from fakes import events, wakeuppaths
from rtscope.explain.model import Explanation, Segment
from rtscope.explain.words import caveats_of, evidence, sentence

UNIT = Path(__file__).parents[1] / "unit"
KEPT = Path(__file__).parent / "causes"
MODULES = ("test_events_*.py", "test_instructions_*.py")
EXPLAINING = ("explain_events", "explain_path")
PATHS = sorted(path for pattern in MODULES for path in UNIT.glob(pattern))


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"again_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def runs_of(module: ModuleType) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the tests of a module with each of their parameters, but drawn ones."""
    for name, test in list(vars(module).items()):
        if not name.startswith("test_") or hasattr(test, "hypothesis"):
            continue
        marks = [m for m in getattr(test, "pytestmark", ()) if m.name == "parametrize"]
        if not marks:
            yield name, test
        for mark in marks:
            names, rows = mark.args
            names = names.split(",") if isinstance(names, str) else names
            for row in rows:
                values = dict(zip(names, row if len(names) > 1 else [row], strict=True))
                told = [_in_order(value) for value in values.values()]
                yield f"{name} {told}", partial(test, **values)


def _in_order(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _in_order(one) for key, one in value.items()}
    return sorted(value) if isinstance(value, frozenset) else value


def lines(found: Explanation) -> Iterator[str]:
    yield f"  {sentence(found)}"
    yield f"    CPU {found.cpu}, number {found.sequence}, {found.latency_ns} ns"
    for segment in found.segments:
        yield from _segment_lines(segment)
    yield from (f"    note: {note}" for note in found.notes)
    yield from (f"    caveat: {caveat}" for caveat in caveats_of(found))


def _segment_lines(segment: Segment) -> Iterator[str]:
    own = "" if segment.executed_ns is None else f", own {segment.executed_ns}"
    task = f", task {segment.task}" if segment.task else ""
    yield (
        f"    {segment.part} {segment.begin_ns} to {segment.end_ns}{own}: "
        f"{segment.cause.value}, {segment.name!r}{task} ({segment.confidence.value})"
    )
    yield from (f"        {told}" for told in evidence(segment))
    if segment.functions:
        yield f"        inside: {segment.functions}"
    if segment.callers:
        yield f"        callers: {segment.callers}"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_what_is_explained_has_not_changed(
    path: Path, rewrite: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = loaded(path)
    made: list[Explanation] = []

    def kept(function: Callable[..., Explanation]) -> Callable[..., Explanation]:
        def explain(*given: object, **named: object) -> Explanation:
            made.append(function(*given, **named))
            return made[-1]

        return explain

    for place in (events, wakeuppaths, module):
        for name in EXPLAINING:
            if hasattr(place, name):
                monkeypatch.setattr(place, name, kept(getattr(place, name)))
    text = "".join(_told(name, run, made) for name, run in runs_of(module))

    file = KEPT / f"{path.stem.removeprefix('test_')}.txt"
    if rewrite and text:
        KEPT.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == (file.read_text("utf-8") if file.exists() else "")


def _told(name: str, run: Callable[[], object], made: list[Explanation]) -> str:
    made.clear()
    run()
    told: Sequence[str] = [line for found in made for line in lines(found)]
    return "\n".join([name, *told, "", ""]) if told else ""
