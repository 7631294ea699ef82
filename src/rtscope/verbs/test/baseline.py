"""
Results of a test, kept to be compared with later ones: exactly, or with a tolerance.

The file has each cycle's response and instructions, so that the first cycle that
differs can be named; and the inputs, so that what changed can be.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from rtscope.boards.runs.identity import BoardIdentity
from rtscope.host.errors import RecordError, quote
from rtscope.host.files import first_mistake
from rtscope.host.files.documents import json_value
from rtscope.host.files.jsontext import json_text
from rtscope.host.files.opening import read_named
from rtscope.host.version import __version__
from rtscope.present.words import us
from rtscope.programs.outside.model import OutsideThread
from rtscope.verbs.test.file import ProgramTest
from rtscope.verbs.test.grown import Growth, calls_more, growth_of
from rtscope.verbs.test.judge import VIRTUAL, SeenStart, judged_threads
from rtscope.verbs.test.keptcode import KeptCode, kept_code
from rtscope.verbs.test.places import (
    done_more,
    more_words,
    usual_of,
    usually_more_words,
    where,
)

SCHEMA = 1
RESPONSE, INSTRUCTIONS = "response", "instructions"
MAX_BYTES = 256 << 20
MAX_CYCLES = 200_000
"""Of a thread, that are kept; their number is exact."""

CHANGED = {
    "kernel_digest": "the kernel",
    "initrd_digest": "the program, its files or its libraries",
    "qemu_digest": "QEMU",
    "plugin_digest": "rtscope's plugin",
    "board_digest": "the board's model",
    "append": "the kernel parameters",
}
"""Inputs of a boot, in the order in which they are named."""

_CHECKED = ConfigDict(extra="forbid")


@checked_dataclass(frozen=True, slots=True, config=_CHECKED)
class KeptThread:
    """The cycles of a thread."""

    name: str
    cycles: int
    missed: int | None
    response_ns: list[int]
    latency_ns: list[int]
    instructions: list[int]
    usual: dict[str, int] | None = None
    """What its middle cycle did, by functions; None: an older file has none."""
    calls: dict[str, tuple[int, int]] | None = None
    """Calls to the kernel: how often in a cycle at most, and for how many ns that did
    not sleep; likewise."""
    code: KeptCode | None = None
    """The functions that it executed; None: not recorded, or too much for the file."""


@checked_dataclass(frozen=True, slots=True, config=_CHECKED)
class KeptStart:
    """A start, by what it was run on."""

    board: str
    kernel: str
    load: str
    seed: int
    start: int
    inputs: dict[str, str | int | float | None]
    threads: list[KeptThread]


@checked_dataclass(frozen=True, slots=True, config=_CHECKED)
class Baseline:
    """All that is kept of a test."""

    schema: int
    rtscope: str
    command: list[str]
    starts: list[KeptStart]


@dataclass(frozen=True, slots=True)
class Difference:
    """What is not as before, in one thread of one start."""

    where: str
    thread: str
    words: str
    worse: bool
    """Whether it counts with a tolerance."""
    cycle: int | None = None
    """The first one that differs, or is worse than allowed; None: of no single one."""
    worst: int | None = None
    """The worst of them."""
    figure: str = ""
    """What is more: RESPONSE or INSTRUCTIONS; empty: something else."""
    growth: Growth | None = None
    """What that cycle executed otherwise than before; None: not asked."""


def baseline_text(test: ProgramTest, tested: Sequence[SeenStart]) -> str:
    """Return the file of a baseline, with as many cycles as its reader accepts."""
    most = MAX_CYCLES
    text = _text(test, tested, most)
    if len(text) > MAX_BYTES:
        tested = [replace(one, code={}) for one in tested]
    while len(text) > MAX_BYTES and most:
        text, most = _text(test, tested, most), most // 2
    return text


def _text(test: ProgramTest, tested: Sequence[SeenStart], most: int) -> str:
    kept = Baseline(
        schema=SCHEMA,
        rtscope=__version__,
        command=list(test.command),
        starts=[_kept(test, one, most) for one in tested],
    )
    return json_text(asdict(kept), indent=None)


def _kept(test: ProgramTest, one: SeenStart, most: int = MAX_CYCLES) -> KeptStart:
    who = one.identity
    return KeptStart(
        board=who.board,
        kernel=who.kernel,
        load=one.load,
        seed=who.seed,
        start=one.start,
        inputs=_inputs(who),
        threads=[
            _thread(thread, one, most) for thread in judged_threads(test, one.outside)
        ],
    )


def _inputs(identity: BoardIdentity) -> dict[str, str | int | float | None]:
    row = identity.row()
    return {name: row[name] for name in CHANGED}


def _thread(thread: OutsideThread, one: SeenStart, most: int) -> KeptThread:
    kept, profile = thread.cycles[:most], one.code.get(thread.tid)
    return KeptThread(
        name=thread.name,
        cycles=len(thread.cycles),
        missed=thread.missed,
        response_ns=[cycle.response_ns for cycle in kept],
        latency_ns=[cycle.latency_ns for cycle in kept],
        instructions=[cycle.user_instructions for cycle in kept],
        usual=usual_of(thread, one.stacks),
        calls=_most_calls(thread),
        code=None if profile is None else kept_code(profile, thread, most),
    )


def _most_calls(thread: OutsideThread) -> dict[str, tuple[int, int]]:
    """Return how often a cycle made each call at most, and for how long."""
    times: Counter[str] = Counter()
    longest: Counter[str] = Counter()
    for one in thread.cycles:
        times |= Counter(one.calls)
        spent: Counter[str] = Counter()
        for place, ns in one.called.items():
            spent[place.what] += ns
        longest |= spent
    return {name: (times[name], longest[name]) for name in sorted(times)}


def read_baseline(path: Path) -> Baseline:
    """Read a baseline; RecordError names what is wrong with the file."""
    content = read_named(path, kind="baseline of rtscope test", limit=MAX_BYTES)
    value = json_value(content, name=str(path), error=RecordError)
    schema = value.get("schema") if isinstance(value, dict) else None
    if schema != SCHEMA:
        raise RecordError(
            f"{path}: no baseline of this rtscope (schema {schema!r}, not {SCHEMA}): "
            "write one with rtscope test --save FILE"
        )
    try:
        kept = TypeAdapter(Baseline).validate_python(value)
    except ValidationError as error:
        raise RecordError(f"{path}: {first_mistake(error)}") from error
    for one in (thread for start in kept.starts for thread in start.threads):
        cycles = {len(one.response_ns), len(one.latency_ns), len(one.instructions)}
        if len(cycles) > 1 or one.cycles < min(cycles):
            raise RecordError(
                f"{path}: thread {quote(one.name)} has not all figures of its cycles: "
                "write the file anew with rtscope test --save"
            )
    return kept


# --- compare --------------------------------------------------------------------------


def differences(
    test: ProgramTest,
    tested: Sequence[SeenStart],
    before: Baseline,
    *,
    tolerance: float | None,
) -> Iterator[Difference]:
    """
    Yield what is not as before; with a `tolerance`, a share, what is worse by more.

    A start that the baseline does not have, and one that is missing now, differ.
    """
    kept = {_key(one): one for one in before.starts}
    for one in tested:
        now = _kept(test, replace(one, code={}))
        then = kept.pop(_key(now), None)
        if then is None:
            yield Difference(one.name, "", "the baseline has no such run", worse=True)
            continue
        threads = dict(
            zip(_by_name(now.threads), judged_threads(test, one.outside), strict=True)
        )
        before_of = _by_name(then.threads)
        for found in _of_start(one.name, now, then, tolerance):
            if thread := threads.get(found.thread):
                yield _with_places(found, one, thread, before_of.get(found.thread))
            else:
                yield found
    for key in kept:
        where = f"{key[0]} {key[1]} {key[2]} seed {key[3]}"
        if tolerance is None:
            yield Difference(where, "", "only the baseline has this run", worse=False)


def _with_places(
    found: Difference, one: SeenStart, thread: OutsideThread, then: KeptThread | None
) -> Difference:
    """Say what the cycle did that most do not, or did not before, and where."""
    number = found.cycle if found.worst is None else found.worst
    if number is None or number >= len(thread.cycles):
        return found
    more = more_words(done_more(thread, thread.cycles[number]), one.stacks)
    if then is None:
        return replace(found, words=f"{found.words}{more}")
    if then.usual is not None:
        more += usually_more_words(thread, then.usual, one.stacks)
    growth = _growth(found, number, one, thread, then)
    if growth is not None:
        more += growth.words
    return replace(found, words=f"{found.words}{more}", growth=growth)


_TENTH = 10
"""Of a response that is longer, own instructions are a reason from so much on."""


def _growth(
    found: Difference, at: int, one: SeenStart, thread: OutsideThread, then: KeptThread
) -> Growth | None:
    """Return what a cycle executed more than before; None: it may be anything."""
    if not found.figure:
        return None
    cycle, exact = thread.cycles[at], found.worst is None
    by_time = found.figure == RESPONSE
    worst_of = then.response_ns if by_time else then.instructions
    worst = at if exact else worst_of.index(max(worst_of))
    more_ns = cycle.response_ns - then.response_ns[worst]
    calls = calls_more(
        *(cycle, then.calls),
        least_ns=max(1, more_ns // _TENTH),
        at=lambda place: where(one.stacks.get(place.number)),
    )
    more = cycle.user_instructions - then.instructions[worst]
    if not more or (by_time and _TENTH * (more << one.outside.shift) < more_ns):
        return Growth(calls=calls)
    growth = growth_of(
        *(one.code.get(thread.tid), at, then.code), exact=exact, worst=worst
    )
    return replace(growth, calls=calls)


def changed(tested: Sequence[SeenStart], before: Baseline) -> tuple[str, ...]:
    """Return which inputs are not as before, in words."""
    kept = {_key(one): one.inputs for one in before.starts}
    found = [
        name
        for name in CHANGED
        for one in tested
        if (inputs := kept.get(_of_tested(one))) is not None
        and inputs.get(name) != _inputs(one.identity)[name]
    ]
    words = [CHANGED[name] for name in dict.fromkeys(found)]
    if before.rtscope != __version__:
        words.append(f"rtscope ({before.rtscope}, now {__version__})")
    return tuple(words)


Key = tuple[str, str, str, int, int]


def _key(one: KeptStart) -> Key:
    return one.board, one.kernel, one.load, one.seed, one.start


def _of_tested(one: SeenStart) -> Key:
    who = one.identity
    return who.board, who.kernel, one.load, who.seed, one.start


def _of_start(
    where: str, now: KeptStart, then: KeptStart, tolerance: float | None
) -> Iterator[Difference]:
    before = _by_name(then.threads)
    for name, thread in _by_name(now.threads).items():
        other = before.pop(name, None)
        if other is None:
            yield Difference(
                where, name, "the baseline has no such thread", worse=False
            )
        elif tolerance is None:
            yield from _exactly(where, name, thread, other)
        else:
            yield from _within(where, name, thread, other, tolerance)
    for name in before:
        yield Difference(
            where, name, "the thread had cycles before, and has none", worse=True
        )


def _by_name(threads: Sequence[KeptThread]) -> dict[str, KeptThread]:
    """Return threads by name; of equal names the later ones with a number."""
    found: dict[str, KeptThread] = {}
    for one in threads:
        names = [one.name, *(f"{one.name} #{n}" for n in range(2, len(threads) + 2))]
        found[next(name for name in names if name not in found)] = one
    return found


def _exactly(
    where: str, name: str, now: KeptThread, then: KeptThread
) -> Iterator[Difference]:
    rows = zip(_rows(now), _rows(then), strict=False)
    for number, (new, old) in enumerate(rows):
        if new != old:
            figures = (
                f"{what} {shown(a)} then, {shown(b)} now"
                for what, shown, a, b in zip(
                    ("response", "latency", "instructions"),
                    (_us, _us, "{:,}".format),
                    old,
                    new,
                    strict=True,
                )
                if a != b
            )
            said = f"cycle {number} is the first that differs: {'; '.join(figures)}"
            more = new[0] > old[0]
            figure = RESPONSE if new[2] == old[2] else INSTRUCTIONS
            yield Difference(*(where, name, said, more), cycle=number, figure=figure)
            return
    if now.cycles != then.cycles:
        said = (
            f"{then.cycles:,} cycles then, {now.cycles:,} now; those of both are equal"
        )
        yield Difference(where, name, said, worse=now.cycles < then.cycles)
    elif now.missed != then.missed:
        said = f"{then.missed} missed periods then, {now.missed} now"
        yield Difference(
            where, name, said, worse=(now.missed or 0) > (then.missed or 0)
        )


def _rows(thread: KeptThread) -> Iterator[tuple[int, int, int]]:
    """Yield response, latency and instructions of each cycle."""
    return zip(thread.response_ns, thread.latency_ns, thread.instructions, strict=True)


def _within(
    where: str, name: str, now: KeptThread, then: KeptThread, tolerance: float
) -> Iterator[Difference]:
    figures: Mapping[str, tuple[list[int], list[int], bool]] = {
        "worst response": (now.response_ns, then.response_ns, True),
        "most instructions": (now.instructions, then.instructions, False),
    }
    for figure, (new, old, is_time) in figures.items():
        if len(old) < then.cycles:  # of more cycles the worst is not known
            new = new[: len(old)]
        allowed = max(old, default=0) * (1 + tolerance)
        if new and old and max(new) > allowed:
            shown = _us if is_time else "{:,}".format
            share = max(new) / max(old) - 1 if max(old) else float("inf")
            first = next(n for n, value in enumerate(new) if value > allowed)
            worst = new.index(max(new))
            most = f", most in cycle {worst}" if worst != first else ""
            said = (
                f"{figure} {shown(max(old))} then, {shown(max(new))} now: "
                f"{100 * share:.1f} % more, {100 * tolerance:g} % allowed; beyond it "
                f"first in cycle {first}{most}"
            )
            yield Difference(
                *(where, name, said, True),
                cycle=first,
                worst=worst,
                figure=RESPONSE if is_time else INSTRUCTIONS,
            )
    if (now.missed or 0) > (then.missed or 0):
        said = f"{then.missed} missed periods then, {now.missed} now"
        yield Difference(where, name, said, worse=True)


def _us(ns: int) -> str:
    return us(ns, VIRTUAL)
