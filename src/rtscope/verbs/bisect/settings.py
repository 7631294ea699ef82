"""
Settings that two configurations differ in, and those that make a kernel bad. Pure.

A setting is one that somebody can choose in one of the two: what follows by the rules
of Kconfig is left to kbuild. Settings of one choice change together. A setting that is
switched on takes along what it depends on and what it selects, one that is switched off
whatever depends on it or selects it, as far as the two configurations differ there.

The algorithm is ddmin (Zeller and Hildebrandt 2002): try halves, then their
complements, then smaller parts. One cause among n takes at most two tries each time the
set is halved; several causes that only work together take more, and are all found.

What is found is smallest: each setting is needed for the effect. What it must be
changed with is tried without it at the end, because that may be the cause itself.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rtscope.boards.kernels.kconfig import Symbol, symbols_of, unmet
from rtscope.boards.kernels.resolved import differing_names

# --- two configurations, the settings that they differ in, and sets of them to try ----

Config = Mapping[str, str]
"""Values by names without CONFIG_; what is not there is n."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is changed at once: a symbol, or the symbols of one choice."""

    names: tuple[str, ...]

    @property
    def title(self) -> str:
        """Return how it is called."""
        return "/".join(self.names)


@dataclass(frozen=True, slots=True)
class Differences:
    """Two configurations of one source."""

    good: Config
    bad: Config
    settings: tuple[Setting, ...]
    """In the order of the Kconfig files: what belongs together is near."""
    needs: Mapping[Setting, frozenset[Setting]]
    """What each of them must be changed with, at any distance."""
    off: frozenset[str] = frozenset()
    """What can be chosen and is off in both: kbuild would choose its default."""
    texts: frozenset[str] = frozenset()
    """Whose values are texts, in quotes."""

    def closed(self, chosen: Iterable[Setting]) -> tuple[Setting, ...]:
        """Return settings with all that they must be changed with, in order."""
        wanted = set(chosen)
        for setting in list(wanted):
            wanted |= self.needs[setting]
        return tuple(one for one in self.settings if one in wanted)

    def mixed(self, chosen: Iterable[Setting]) -> str:
        """
        Return the good configuration with some settings of the bad one.

        It leaves kbuild nothing to choose that somebody could: what is off in both is
        off in it, too.
        """
        changed = {name for one in self.closed(chosen) for name in one.names}
        known = {name for one in self.settings for name in one.names}
        lines = []
        for name in sorted({*self.good, *self.bad, *self.off}):
            old, new = self.good.get(name, "n"), self.bad.get(name, "n")
            # What nobody chooses follows; its new value must not be lost before.
            value = (
                new if name in changed or (name not in known and old == "n") else old
            )
            lines.append(self._line(name, value))
        return "\n".join(lines) + "\n"

    def _line(self, name: str, value: str) -> str:
        if name in self.texts:
            return f'CONFIG_{name}="{"" if value == "n" else value}"'
        return (
            f"# CONFIG_{name} is not set" if value == "n" else f"CONFIG_{name}={value}"
        )


def differences_of(
    good: Config, bad: Config, symbols: Mapping[str, Symbol]
) -> Differences:
    """Return the settings in which two resolved configurations differ."""
    can_be_chosen = frozenset(
        name
        for name, symbol in symbols.items()
        if any(_can_be_chosen(symbol, config) for config in (good, bad))
    )
    differing = can_be_chosen.intersection(differing_names(good, bad))
    changed = [name for name in symbols if name in differing]
    by_choice: dict[str, list[str]] = {}
    for name in changed:
        by_choice.setdefault(symbols[name].choice or name, []).append(name)
    settings = tuple(Setting(tuple(names)) for names in by_choice.values())
    chosen = {name for name, symbol in symbols.items() if symbol.prompts}
    return Differences(
        good,
        bad,
        settings,
        _needs(settings, good, bad, symbols, can_be_chosen),
        off=frozenset(
            name
            for name in chosen - {*good, *bad}
            if symbols[name].kind in ("bool", "tristate")
        ),
        texts=frozenset(n for n, symbol in symbols.items() if symbol.kind == "string"),
    )


def name_of(chosen: Sequence[Setting]) -> str:
    """Return a name for a set of settings, the same for the same set."""
    text = " ".join(sorted(one.title for one in chosen))
    return f"settings-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _needs(
    settings: Sequence[Setting],
    good: Config,
    bad: Config,
    symbols: Mapping[str, Symbol],
    can_be_chosen: frozenset[str],
) -> Mapping[Setting, frozenset[Setting]]:
    owner = {name: one for one in settings for name in one.names}
    direct: dict[Setting, set[Setting]] = {one: set() for one in settings}

    def add(upper: str, lower: str) -> None:
        """Note that the upper one is on only together with the lower one."""
        one, other = owner[upper], owner[lower]
        if one is not other and bad.get(upper, "n") != "n":
            direct[one].add(other)
        if one is not other and good.get(upper, "n") != "n":
            direct[other].add(one)

    for name in owner:
        for other in _conditions(symbols[name], symbols, can_be_chosen) & owner.keys():
            add(name, other)
        for other in symbols[name].selected_by.keys() & owner.keys():
            # What selects it switches it on, and keeps it from being switched off.
            if "n" not in (bad.get(other, "n"), bad.get(name, "n")):
                direct[owner[other]].add(owner[name])
            if "n" not in (good.get(other, "n"), good.get(name, "n")):
                direct[owner[name]].add(owner[other])
    return {one: _reached(one, direct) for one in settings}


def _can_be_chosen(symbol: Symbol, config: Config) -> bool:
    """Tell whether a symbol's prompt, if it has one, is shown with a configuration."""
    return any(not text or not unmet(text, config) for text in symbol.prompts)


def _conditions(
    symbol: Symbol, symbols: Mapping[str, Symbol], can_be_chosen: frozenset[str]
) -> set[str]:
    """Return what a symbol depends on, through symbols that nobody can choose."""
    conditions: set[str] = set()
    left = _depends_on(symbol, can_be_chosen)
    while left:
        name = left.pop()
        if name in conditions or name not in symbols:
            continue
        conditions.add(name)
        if name not in can_be_chosen:
            left |= _depends_on(symbols[name], can_be_chosen) - conditions
    return conditions - {symbol.name}


def _depends_on(symbol: Symbol, can_be_chosen: frozenset[str]) -> set[str]:
    follows = symbol.name not in can_be_chosen
    texts = [text for parts in symbol.definitions for text in parts]
    texts += symbol.prompts
    if follows:
        texts += symbol.defaults
    names = {name for text in texts for name in symbols_of(text)}
    if follows:
        # What selects or implies it sets it, and must be changed with it.
        names |= symbol.selected_by.keys() | symbol.implied_by.keys()
    return names


def _reached(
    start: Setting, direct: Mapping[Setting, set[Setting]]
) -> frozenset[Setting]:
    settings: set[Setting] = set()
    left = set(direct[start])
    while left:
        one = left.pop()
        if one not in settings:
            settings.add(one)
            left |= direct[one] - settings
    return frozenset(settings - {start})


# --- delta debugging: a smallest set of changes that still makes a kernel bad ---------

Change = TypeVar("Change")


def minimize(
    changes: Sequence[Change], is_bad: Callable[[Sequence[Change]], bool]
) -> list[Change]:
    """
    Return changes that are bad together, and of which none can be left out.

    All of them together are known to be bad. A set that cannot be tested counts as not
    bad: what remains may then be larger than needed, and never lacks a cause.
    """
    left, parts = list(changes), 2
    while len(left) > 1:
        pieces = _split(left, parts)
        smaller = next((piece for piece in pieces if is_bad(piece)), None)
        if smaller is not None:
            left, parts = list(smaller), 2
            continue
        if parts > 2:
            rests = [_without(left, piece) for piece in pieces]
            smaller = next((rest for rest in rests if is_bad(rest)), None)
        if smaller is not None:
            left, parts = list(smaller), max(parts - 1, 2)
        elif parts < len(left):
            parts = min(2 * parts, len(left))
        else:
            break
    return left


def _split(changes: Sequence[Change], parts: int) -> list[Sequence[Change]]:
    """Cut into parts of nearly equal length, none empty."""
    size = math.ceil(len(changes) / min(parts, len(changes)))
    return [changes[at : at + size] for at in range(0, len(changes), size)]


def _without(changes: Sequence[Change], piece: Sequence[Change]) -> list[Change]:
    return [change for change in changes if change not in piece]


# --- find the settings of a configuration that make a kernel bad, by delta debugging --


@dataclass(frozen=True, slots=True)
class Blamed:
    """The settings that make a kernel bad."""

    settings: tuple[Setting, ...]
    along: tuple[Setting, ...]
    """What they must be changed with, and which is not bad without them."""


def blame(
    differences: Differences,
    is_bad: Callable[[Sequence[Setting]], bool],
    *,
    progress: Callable[[int], None] = lambda _left: None,
) -> Blamed:
    """
    Return the settings that make the good configuration bad.

    `is_bad` gets sets that hold all that their settings must be changed with; what
    cannot be tested is not bad. `progress` gets the number of settings in question.
    """

    def closed_is_bad(chosen: Sequence[Setting]) -> bool:
        progress(len(chosen))
        return is_bad(differences.closed(chosen))

    candidates: Sequence[Setting] = differences.settings
    while True:
        chosen = minimize(candidates, closed_is_bad)
        rests = _without_one(differences, chosen)
        smaller = next((rest for rest in rests if closed_is_bad(rest)), None)
        if smaller is None:
            return _blamed(differences, chosen)
        candidates = smaller


def _without_one(
    differences: Differences, chosen: Sequence[Setting]
) -> list[Sequence[Setting]]:
    """
    Return sets with what a setting needs and without itself, for each that needs any.

    The search has tried to leave it out, but what it needs went with it.
    """
    whole = differences.closed(chosen)
    rests: list[Sequence[Setting]] = []
    for one in chosen:
        rest = [x for x in whole if x != one and one not in differences.needs[x]]
        others = [other for other in chosen if other != one]
        if rest and set(rest) != set(differences.closed(others)):
            rests.append(rest)
    return rests


def _blamed(differences: Differences, chosen: Sequence[Setting]) -> Blamed:
    """Tell what has an effect from what only goes along; inseparable ones have both."""
    whole = differences.closed(chosen)
    blamed = {
        one for one in whole if one in chosen or differences.needs[one] & set(chosen)
    }
    return Blamed(
        tuple(one for one in whole if one in blamed),
        tuple(one for one in whole if one not in blamed),
    )
