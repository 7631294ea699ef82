"""
Which functions execute more than before, of the program and of what it calls. Pure.

A function has its own instructions, not those of what it calls. One is found again by
its name and file, or by its name if only one has that: lines move with each change.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Any

from rtscope.host.units import count
from rtscope.present.document import Table, table
from rtscope.present.words import enumeration, us
from rtscope.programs.outside.model import OutsideCycle, Place
from rtscope.verbs.test.executed import WhyLeftOut
from rtscope.verbs.test.functions import KERNEL, UNKNOWN, Function
from rtscope.verbs.test.judge import VIRTUAL
from rtscope.verbs.test.keptcode import KeptCode, KeptFunction
from rtscope.verbs.test.profile import ThreadProfile

MOST_SHOWN = 3
"""Functions in a sentence,"""
MOST_ROWS = 20
"""and in a table."""


class Than(StrEnum):
    """With what a cycle is compared, in words."""

    SAME = ""
    ANY = " than in any cycle before"
    WORST = " than in the worst cycle before"


@dataclass(frozen=True, slots=True)
class Grown:
    """A function, and what it executed."""

    function: str
    """A word in brackets: it is not known."""
    file: str
    line: int
    """Where it grew; 0: it is not the program's own, or its lines are not known."""
    before: int
    now: int

    @property
    def more(self) -> int:
        """How much more than before."""
        return self.now - self.before

    @property
    def words(self) -> str:
        """It, and its figures."""
        name = self.function if "(" in self.function else f"{self.function}()"
        where = f" {self.file}:{self.line}" if self.line else ""
        if self.function == UNKNOWN:
            name = f"code without a name{f' in {self.file}' if self.file else ''}"
        elif not self.line and self.file:
            where = f" of {self.file}"
        return f"{name}{where} ({self.before:,} then, {self.now:,} now)"


@dataclass(frozen=True, slots=True)
class MoreCalls:
    """A call to the kernel, and how often and for how long it was made in a cycle."""

    call: str
    where: str
    """The place in the program at which it took most time; empty: not known."""
    before: int
    now: int
    before_ns: int
    now_ns: int

    @property
    def is_more(self) -> bool:
        """Whether it was made more often."""
        return self.now > self.before

    @property
    def words(self) -> str:
        """It, where it was, and its figures."""
        figures = f"{self.before:,} then, {self.now:,} now"
        if not self.is_more:
            then, now = us(self.before_ns, VIRTUAL), us(self.now_ns, VIRTUAL)
            figures = f"{then} then, {now} now"
        return f"{self.call}{self.where and f' in {self.where}'} ({figures})"


@dataclass(frozen=True, slots=True)
class Growth:
    """What a cycle executed otherwise than before."""

    than: Than = Than.SAME
    functions: tuple[Grown, ...] = ()
    """Those that changed most first; with any cycle before, only those with more."""
    gone: tuple[Grown, ...] = ()
    """Functions that are not executed any more, beside ones that were not before."""
    calls: tuple[MoreCalls, ...] = ()
    """Those to the kernel that were more, or longer, than in any cycle before."""
    unknown: str = ""
    """Why the functions are not known; empty: they are."""

    @property
    def words(self) -> str:
        """The end of a sentence, lines of the program first; empty for nothing."""
        more = [one for one in self.functions if one.more > 0]
        fewer = [one for one in self.functions if one.more < 0]
        longer = [one for one in self.calls if not one.is_more]
        said = [
            _said(f"more instructions{self.than}", more),
            _calls_said("more calls", [one for one in self.calls if one.is_more]),
            _calls_said("longer in calls", longer),
        ]
        said.sort(key=lambda one: not one[0])
        said += [_said("fewer", fewer), _said("not any more", self.gone)]
        words = [one for _, one in said]
        if self.unknown:
            words.append(f"which functions, is not known: {self.unknown}")
        return "".join(f"; {one}" for one in words if one)


def _said(what: str, some: Sequence[Grown]) -> tuple[bool, str]:
    """Name those that changed most behind the program's own, and say if that is one."""
    own = next((one for one in some if one.line), None)
    most = [one for one in some if one is not own]
    shown = ([own] if own else []) + most
    left = len(some) - MOST_SHOWN
    words = [one.words for one in shown[:MOST_SHOWN]]
    if left > 0:
        words.append(f"{left:,} other function{'s' if left > 1 else ''}")
    return own is not None, f"{what}: {enumeration(words)}" if words else ""


def _calls_said(what: str, some: Sequence[MoreCalls]) -> tuple[bool, str]:
    """Name the calls, and say if a place in the program is known."""
    left = len(some) - MOST_SHOWN
    words = [one.words for one in some[:MOST_SHOWN]]
    if left > 0:
        words.append(f"{left:,} others")
    own = any(one.where for one in some[:MOST_SHOWN])
    return own, f"{what}{Than.ANY}: {enumeration(words)}" if words else ""


NO_CODE = (
    "the baseline has no functions of this thread; write one anew with rtscope test "
    "--save"
)


def growth_of(
    now: ThreadProfile | None,
    at: int,
    then: KeptCode | None,
    *,
    exact: bool,
    worst: int,
) -> Growth:
    """
    Return which functions a cycle executed more than before; if `exact`, or less.

    It is compared with the same cycle if all has to be equal; else with what each
    function executed at most, and if all is as before, with the `worst` one.
    """
    if now is None:
        return Growth(unknown="a search records none")
    executed = now.of_cycle(at)
    if isinstance(executed, WhyLeftOut):
        return Growth(unknown=f"{executed}, cycle {at}")
    if then is None:
        return Growth(unknown=NO_CODE)
    called = _called_now(now.most, [one.key for one in then.functions])
    kept = {called[one.key]: one for one in then.functions}

    def changed(then_did: Mapping[Function, int]) -> Iterator[Grown]:
        before = {called[key]: instructions for key, instructions in then_did.items()}
        for key in dict.fromkeys([*executed, *before]):
            figures = before.get(key, 0), executed.get(key, 0)
            lines = dict(kept[key].lines) if key in kept else {}
            if figures[0] != figures[1]:
                line = line_of(now.lines_of(key, at), lines) or line_of(lines, {})
                yield Grown(*key, line, *figures)

    if exact and (same := then.of_cycle(at)) is not None:
        return Growth(Than.SAME, _ordered(changed(same)))
    most = {one.key: one.instructions for one in then.functions}
    than, found = Than.ANY, [one for one in changed(most) if one.more > 0]
    if not found and (before := then.of_cycle(worst)) is not None:
        than, found = Than.WORST, [one for one in changed(before) if one.more > 0]
    new = any(not one.before for one in found)
    gone = [one for key, one in kept.items() if new and key not in now.most]
    return Growth(than, _ordered(found), _ordered(map(_gone, gone)))


def _gone(one: KeptFunction) -> Grown:
    return Grown(*one.key, line_of(dict(one.lines), {}), one.instructions, 0)


def calls_more(
    cycle: OutsideCycle,
    then: Mapping[str, tuple[int, int]] | None,
    *,
    least_ns: int,
    at: Callable[[Place], str],
) -> tuple[MoreCalls, ...]:
    """
    Return calls that a cycle made more often than any before, or that took longer.

    Longer by `least_ns`; one in which it waited has its words elsewhere. `at` gives
    the words for a place.
    """
    if then is None:
        return ()
    spent: dict[str, tuple[int, Place]] = {}
    for place, ns in cycle.called.items():
        before_ns, longest = spent.get(place.what, (0, place))
        more = ns > cycle.called[longest]
        spent[place.what] = before_ns + ns, place if more else longest
    waited = {wait.call for wait in cycle.waits}
    found: list[MoreCalls] = []
    for name in sorted(cycle.calls.keys() - waited):
        times, (ns, place) = cycle.calls[name], spent.get(name, (0, Place(name, 0)))
        before, before_ns = then.get(name, (0, 0))
        if times > before or ns - before_ns >= least_ns:
            found.append(MoreCalls(name, at(place), before, times, before_ns, ns))
    return tuple(
        sorted(
            found,
            key=lambda one: (
                *(one.before_ns - one.now_ns, one.before - one.now),
                one.call,
            ),
        )
    )


def _ordered(some: Iterable[Grown]) -> tuple[Grown, ...]:
    return tuple(sorted(some, key=lambda one: (-abs(one.more), one.function, one.file)))


def _called_now(
    now: Iterable[Function], then: Sequence[Function]
) -> Mapping[Function, Function]:
    """Return how each function is called now: its file may have another name."""
    known, before = set(now), set(then)
    new = [key for key in known - before if key[0] != UNKNOWN]
    old = [key for key in then if key not in known and key[0] != UNKNOWN]
    times = [Counter(name for name, _ in keys) for keys in (new, old)]
    only = {key[0]: key for key in new if times[0][key[0]] == 1}
    return {key: key for key in then} | {
        key: only[key[0]] for key in old if times[1][key[0]] == 1 and key[0] in only
    }


def line_of(now: Mapping[int, int], then: Mapping[int, int]) -> int:
    """
    Return the line of a function that executes more; 0: none is known.

    Lines have other numbers after a change, but keep their order, and most of them
    their instructions: of the others it is that with most.
    """
    old, new = list(then.values()), list(now.values())
    parts = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changed = {
        line: instructions
        for what, _, _, first, last in parts
        for line, instructions in list(now.items())[first:last]
        if what != "equal"
    }
    some = changed or now
    return max(some, key=lambda line: (some[line], -line), default=0)


# --- shown ----------------------------------------------------------------------------


def growth_row(growth: Growth | None) -> dict[str, Any]:
    """Return it for a JSON document; null is not known, or no reason."""
    if growth is None:
        return {"functions": None, "functions_than": "", "calls": []}
    functions = [asdict(one) for one in (*growth.functions, *growth.gone)]
    return {
        "functions": None if growth.unknown else functions,
        "functions_than": growth.than.name.lower(),
        "calls": [
            asdict(Grown(one.call, KERNEL, 0, one.before, one.now))
            for one in growth.calls
        ],
    }


def growth_table(growth: Growth) -> Iterator[Table]:
    """Yield the functions that changed, most first, and a line for all others."""
    every = (*growth.functions, *growth.gone)
    rows = [
        [
            one.function,
            f"{one.file}:{one.line}" if one.line else one.file,
            count(one.before),
            count(one.now),
        ]
        for one in every[:MOST_ROWS]
    ]
    left = every[MOST_ROWS:]
    if left:
        figures = [(one.before, one.now) for one in left]
        before, now = (sum(one) for one in zip(*figures, strict=True))
        rows.append([f"{count(len(left))} others", "", count(before), count(now)])
    if rows:
        yield table(("function", "place"), ("instructions then", "now"), rows)
